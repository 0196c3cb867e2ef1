"""What holds leave of the motion of a rigid body (physics 12.12): one point is a ball joint, points on a line are a
hinge, others, and a hold that turns, lead all of it.

It turns about the middle p of the held points by ω = Ω + A(L − JΩ), with Ω that of the holds, J its inertia about p, L
its angular momentum there and A = G(GᵀJG)⁻¹Gᵀ over the axes G that are left. Impulses of the joint have no torque
along these: as it is taken hold of, L along them stays.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from phyxel.models.protocol import Hold
from phyxel.rotation import nearest_rotation, rotation_by

Floats = NDArray[np.float64]

NARROW = 1e-3
"""Distances of held points, over the size of the body, below which they are one point, or on a line."""


@dataclass(frozen=True)
class Joint:
    """Held points of a body, in its reference shape."""

    points: Floats
    """X, shape (k, 3)"""
    axes: Floats
    """about which the body can still turn, shape (3, f)"""

    @staticmethod
    def of(holds: Sequence[Hold], size: float) -> Joint | None:
        """That of all holds on a body of a size, if there are any."""
        if not holds:
            return None
        points = np.concatenate([hold.points for hold in holds])
        _, spread, axes = np.linalg.svd(points - points.mean(axis=0))
        spans = int((spread > NARROW * size).sum())
        if spans > 1 or any(hold.turns for hold in holds):
            return Joint(points, np.zeros((3, 0)))
        return Joint(points, axes[:1].T if spans else np.eye(3))

    @property
    def pivot(self) -> Floats:
        """Their middle, X, shape (3,)."""
        return self.points.mean(axis=0)

    def led(self, R: Floats, there: Floats, turned: Floats | None) -> Floats:
        """The rotation that has the points where they are held (k, 3), `turned` so if that is asked for; as near to R
        as that goes."""
        if turned is not None:
            return turned
        free = self.axes.shape[1]
        if free == 3:
            return R
        seen = (there - there.mean(axis=0)).T @ (self.points - self.pivot)
        return nearest_rotation(seen) if free == 0 else _between(R @ self.axes[:, 0], seen @ self.axes[:, 0]) @ R


def _between(one: Floats, other: Floats) -> Floats:
    """The shortest rotation of one direction (3,) into another, 3 × 3."""
    normal = np.cross(one, other)
    sine = float(np.linalg.norm(normal))
    if sine == 0:
        return np.eye(3)
    return rotation_by(np.arctan2(sine, one @ other) / sine * normal)
