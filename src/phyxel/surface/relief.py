"""The relief of a mold, L_C: surfels that have come to its wall lie on it, and look the way it does (M04 §5.2.3)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from phyxel.contact.mold import Mold

Floats = NDArray[np.floating]

NEARS = 0.9
"""Distance from a wall, in node spacings, beyond which it is none of a surfel's business."""


class Walls:
    """The walls of all molds, as they stand at a time [s], in node spacings of `unit` [m] about
    `origin` [m]."""

    def __init__(self, molds: Sequence[Mold], time: float, unit: float, origin: Floats) -> None:
        self._molds, self._time, self._unit = molds, time, unit
        self._origin = np.asarray(origin, np.float64)

    def closest(self, points: Floats) -> tuple[NDArray[np.float32], NDArray[np.float32], NDArray[np.float32]]:
        """Of (m, 3) points the nearest on a wall (m, 3), its normal there (m, 3), which points into the wall, and how
        far the point is in it (m,), negative on the free side; −∞ where no wall is within NEARS. Of several walls
        the one it is deepest in."""
        foot, normal = np.array(points, np.float32), np.zeros((len(points), 3), np.float32)
        distance = np.full(len(points), -np.inf, np.float32)
        for mold in self._molds:
            place, rotation = mold.pose(self._time)
            own = (self._origin - place + self._unit * np.asarray(points, np.float64)) @ rotation
            some = np.flatnonzero(mold.near_wall(own, NEARS * self._unit))
            there, upright, away = mold.wall(own[some])
            side = 1 if mold.inside_out else -1
            depth = side * away / self._unit
            near = (np.abs(depth) < NEARS) & (depth > distance[some])
            some = some[near]
            foot[some] = (place - self._origin + there[near] @ rotation.T) / self._unit
            normal[some] = side * upright[near] @ rotation.T
            distance[some] = depth[near]
        return foot, normal, distance
