"""Motions of nodes for tests of surfels."""

import numpy as np
import warp as wp
from numpy.typing import NDArray

from phyxel.contact.colliders import Collider, Ground
from phyxel.contact.table import ColliderTable
from phyxel.device import as_vectors
from phyxel.surface.motion import Motion
from phyxel.surface.walls import Walls


def motion(
    u: NDArray[np.floating],
    unit: float,
    device: wp.Device,
    *colliders: Ground | Collider,
    origin: tuple[float, float, float] = (0.0, 0.0, 0.0),
) -> Motion:
    """Coefficients u (n, 3) [units] of shape functions among colliders, of a body that counts from `origin` [m]."""
    table = ColliderTable([unit], wp.float32, device)
    table.write(colliders, np.zeros((1, 3)), (0.0, 0.0), 0.0)
    return Motion(as_vectors(u, device), unit, np.array(origin), Walls(table.table, device))
