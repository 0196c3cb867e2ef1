"""What of a body others can touch: places of its surface, well apart, and how its coefficients carry them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from phyxel.mls.shape_values import ShapeValues, entries_of
from phyxel.points.sampling import scattered

Floats = NDArray[np.float64]
Indices = NDArray[np.int64]
Measure = Callable[[Floats], tuple[Floats, Floats]]
"""Signed distance (k,) of places (k, 3) in the reference shape, and the unit direction in which it grows (k, 3)."""

POINTS, PLANES = 1.0, 0.5
"""How far places that meet others are apart, and those that others find themselves near [spacings]."""


class Outline:
    """Some places X (m, 3) [spacings] of the reference surface with normals N (m, 3). The first `points` of them are
    enough to meet others with: corners first."""

    def __init__(
        self, positions: NDArray[np.floating], normals: NDArray[np.floating], measure: Measure | None, corners: Floats
    ) -> None:
        """Chosen among surface points with normals, (n, 3) each, after `corners` (c, 3); `measure` tells how far places
        are from the solid, in spacings; a body without is a ball about its places."""
        # Both faces of an edge have places there.
        chosen, points = scattered(np.concatenate([positions, normals], axis=1).astype(np.float64), POINTS, PLANES)
        X, N = (np.asarray(field[chosen], np.float64) for field in (positions, normals))
        self.X: Floats = np.concatenate([corners, X])
        outward = corners - X.mean(axis=0) if len(corners) else corners
        outward = outward / np.maximum(np.linalg.norm(outward, axis=1, keepdims=True), 1e-300)
        self.N: Floats = np.concatenate([outward, N])
        self.points = len(corners) + points
        self.measure = measure
        self._carried_by: Any = None

    def __len__(self) -> int:
        return len(self.X)

    def follow(self, carried_by: Any, at: Callable[[Floats], ShapeValues]) -> None:
        """Be carried by the shape functions that `at` gives at places, unless they are those of the same thing."""
        if carried_by is self._carried_by:
            return
        values = at(self.X)
        self._carried_by = carried_by
        self.carry(values.values, values.gradients)

    def carry(self, phi: csr_array, slopes: Sequence[csr_array]) -> None:
        """Be carried by φ (m, n) with these slopes along three axes."""
        # Sums of φ are 1 but for rounding; momenta are kept to their last digits.
        counts = np.diff(phi.indptr)
        self.phi = _with_data(phi, phi.data / np.repeat(phi.sum(axis=1), counts))
        """φ at the places, shape (m, n)"""
        self.slopes = [
            _with_data(phi, slope.data - self.phi.data * np.repeat(slope.sum(axis=1), counts)) for slope in slopes
        ]
        """∂φ along each axis, shape (m, n)"""

    def rows(self, places: Indices, beside: Floats) -> csr_array:
        """φ at places that lie beside some of the outline's by (k, 3), in the reference shape, fields going on."""
        start, entries = entries_of(self.phi.indptr, places)
        data = self.phi.data[entries]
        for slope, along in zip(self.slopes, beside.T, strict=True):
            data = data + np.repeat(along, np.diff(start)) * slope.data[entries]
        return csr_array((data, self.phi.indices[entries], start), (len(places), self.phi.shape[1]))


def _with_data(matrix: csr_array, data: Floats) -> csr_array:
    return csr_array((data, matrix.indices, matrix.indptr), matrix.shape)
