"""How far places are from solids, and which way that grows: of one body, or of many at once (physics 15.12)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Indices = NDArray[np.int64]
Distance = Callable[[Floats], NDArray[np.floating]]
"""Signed distance (m,) of places (m, 3), in a solid's own coordinates"""

RISE = 1e-4
"""Spacings over which the distance of a shape is seen to grow."""
AHEAD = RISE * np.concatenate([np.zeros((1, 3)), np.eye(3)])


@dataclass(frozen=True)
class SolidDistance:
    """How far places of a body's reference shape are from its solid, in spacings."""

    solid: Distance
    in_solid: Callable[[Floats], Floats]
    """where places (m, 3) are in the solid's own coordinates"""
    scale: float
    """of lengths there, in spacings"""
    start: Floats
    """where the origin is there, shape (3,)"""
    turn: Floats
    """and where places are from it, X @ turn, 3 × 3"""

    def __call__(self, places: Floats) -> tuple[Floats, Floats]:
        """Signed distance (k,) of places (k, 3), and the unit direction in which it grows (k, 3); by differences, all
        in one call."""
        probes = (places[None] + AHEAD[:, None]).reshape(-1, 3)
        values = np.asarray(self.solid(self.in_solid(probes)), np.float64)
        return _grown(values.reshape(4, -1) * self.scale)


class SolidDistances:
    """The same for places of several bodies: one call for all whose solid is the same."""

    def __init__(self, each: Sequence[SolidDistance]) -> None:
        self._solids = list(dict.fromkeys(one.solid for one in each))
        number = {solid: k for k, solid in enumerate(self._solids)}
        self._which = np.array([number[one.solid] for one in each])
        self._scale, self._start, self._turn = (
            np.array([getattr(one, name) for one in each]) for name in ("scale", "start", "turn")
        )

    def distance(self, body: Indices, places: Floats) -> Floats:
        """Of places (k, 3) of bodies (k,)."""
        there = self._start[body] + along(places, self._turn[body])
        return self._distance(body, there[None])[0]

    def __call__(self, body: Indices, places: Floats) -> tuple[Floats, Floats]:
        """Of places (k, 3) of bodies (k,)."""
        turn = self._turn[body]
        there = self._start[body] + along(places, turn)
        return _grown(self._distance(body, np.concatenate([there[None], there + RISE * np.swapaxes(turn, 0, 1)])))

    def _distance(self, body: Indices, there: Floats) -> Floats:
        """Of places (p, k, 3) in the coordinates of the solids of bodies (k,), shape (p, k)."""
        found, which = np.empty(there.shape[:2]), self._which[body]
        for number, solid in enumerate(self._solids):
            own = np.flatnonzero(which == number)
            if len(own):
                found[:, own] = np.reshape(solid(there[:, own].reshape(-1, 3)), (len(there), -1))
        return found * self._scale[body]


def along(vectors: Floats, matrices: Floats) -> Floats:
    """v M of vectors (k, 3) and matrices (k, 3, 3) each, shape (k, 3)."""
    x, y, z = vectors.T
    return x[:, None] * matrices[:, 0] + y[:, None] * matrices[:, 1] + z[:, None] * matrices[:, 2]


def _grown(values: Floats) -> tuple[Floats, Floats]:
    """Distances, and their unit slopes, of those at places and a little ahead along each axis (4, k)."""
    slope = (values[1:] - values[0]).T
    return values[0], slope / np.maximum(np.linalg.norm(slope, axis=1, keepdims=True), 1e-300)
