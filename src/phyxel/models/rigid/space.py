"""Fields that a rigid body can have: a + B X."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property

import numpy as np
import warp as wp
from numpy.typing import NDArray
from scipy.spatial import cKDTree

from phyxel.mls.shape_values import ShapeValues
from phyxel.points.sampling import scattered

Floats = NDArray[np.float64]

POINTS = 1.0
"""How far places that touch colliders are apart [spacings]."""


class RigidSpace:
    """Fields over a body with four coefficients: those of `nodes`, its middle and three places beside it.

    The body has points X (n, 3) with `volumes` (n,), surfels `skin` (m, 3), and `corners` (k, 3) that touch first.
    `spread` (n, 3, 3) is ∫(x − X)(x − X)ᵀ over what each point stands for, over its volume; of a crumb, whose points
    are those of the body it was part of, that of balls.
    """

    def __init__(
        self,
        X: Floats,
        volumes: Floats,
        skin: Floats,
        device: wp.Device,
        spread: Floats | None = None,
        corners: Floats | None = None,
    ) -> None:
        self.device = device
        self.points, self.weights, self.owner = X, volumes, np.arange(len(X))
        balls = 0.2 * np.cbrt(0.75 * volumes / np.pi) ** 2
        self.spread: Floats = balls[:, None, None] * np.eye(3) if spread is None else spread
        self._skin, self.corners = skin, np.zeros((0, 3)) if corners is None else corners
        self._middle = volumes @ X / volumes.sum()
        self.nodes: Floats = self._middle + np.concatenate([np.zeros((1, 3)), np.eye(3)])
        self.radius = float(np.linalg.norm(np.concatenate([X, skin]) - self._middle, axis=1).max())

    def __len__(self) -> int:
        return 4

    def at(self, X: NDArray[np.floating]) -> ShapeValues:
        """φ and ∇φ at (m, 3) positions."""
        away = np.asarray(X, np.float64).reshape(-1, 3) - self._middle
        count = len(away)
        slopes = np.concatenate([-np.ones((1, 3)), np.eye(3)])
        state = {
            "start": 4 * np.arange(count + 1, dtype=np.int32), "index": np.tile(np.arange(4, dtype=np.int32), count),
            "phi": np.concatenate([1 - away.sum(axis=1, keepdims=True), away], axis=1).reshape(-1),
            "dphi": np.tile(slopes, (count, 1)), "condition": np.ones(count),
        }  # fmt: skip
        return ShapeValues.restored(state, 4, self.device)

    @cached_property
    def at_nodes(self) -> ShapeValues:
        """φ and ∇φ at X."""
        return self.at(self.points)

    @cached_property
    def at_skin(self) -> ShapeValues:
        """φ and ∇φ at the surfels."""
        return self.at(self._skin)

    @cached_property
    def felt(self) -> ShapeValues:
        """φ at some places of its surface, well apart, its corners first; of one without surfels, at X."""
        if not len(self._skin):
            return self.at_nodes
        places = _apart(self.corners)
        others = _apart(self._skin)
        if len(places):
            others = others[cKDTree(places).query(others)[0] > POINTS]
        return self.at(np.concatenate([places, others]))

    def fit(self, density: Floats) -> Callable[[Floats], Floats]:
        """It takes accelerations as they are around its nodes."""
        return lambda a: a


def _apart(places: Floats) -> Floats:
    """Some of the places (m, 3), well apart."""
    chosen, count = scattered(places, POINTS, POINTS)
    return places[chosen[:count]]
