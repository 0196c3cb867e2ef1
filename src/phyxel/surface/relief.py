"""The relief of a mold, L_C: surfels that have come to its wall lie on it, and look the way it does (M04 §5.2.3)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from phyxel.contact.mold import Mold

Floats = NDArray[np.floating]

TOUCHES, NEARS = 0.5, 0.9
"""Distance from the wall of a mold, in node spacings, up to which what fills it lies on the wall, and from which on it
does not feel it. Phyxels keep half a spacing away: their skin ends somewhere about the wall."""


def pressed(
    positions: Floats, normals: Floats, mold: Mold, time: float, spacing: float
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.bool_]]:
    """Surfels (m, 3) [m] with the relief of a mold, their normals, and which lie on its wall (m,); `spacing` of the
    nodes [m]. Between the two distances they get there by degrees, so that no edge shows where they begin to."""
    x, n = np.array(positions, np.float64), np.array(normals, np.float64)
    touching = np.zeros(len(x), bool)
    place, rotation = mold.pose(time)
    own = (x - place) @ rotation
    near = np.flatnonzero(mold.near_wall(own, NEARS * spacing))
    if len(near) == 0:
        return x, n, touching
    foot, upright, distance = mold.wall(own[near])
    share = np.clip((NEARS - np.abs(distance) / spacing) / (NEARS - TOUCHES), 0, 1)[:, None]
    share = share * share * (3 - 2 * share)
    x[near] = place + (own[near] + share * (foot - own[near])) @ rotation.T
    blended = (1 - share) * n[near] + share * (upright @ rotation.T)
    n[near] = blended / np.maximum(np.linalg.norm(blended, axis=1, keepdims=True), 1e-12)
    touching[near] = share[:, 0] == 1
    return x, n, touching
