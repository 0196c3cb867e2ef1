"""What a cut changes of the matrices of a space: integrals over the points whose functions are others now."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from phyxel.mls.shape_functions import entries_of
from phyxel.models.law import VOIGT

if TYPE_CHECKING:
    from phyxel.models.galerkin.space import Space

Floats = NDArray[np.float64]
Indices = NDArray[np.integer]
Lists = tuple[NDArray[np.int32], NDArray[np.int32]]
"""Where the lists of nodes that meet each node start, and the lists, ascending."""

_PLACE = np.zeros((3, 3), int)
for _number, (_a, _b) in enumerate(VOIGT):
    _PLACE[_a, _b] = _PLACE[_b, _a] = _number


@dataclass(frozen=True)
class Difference:
    """Points at which two spaces differ: once with the new functions, and once with the old ones, which count less than
    nothing."""

    points: Indices
    """shape (2k,)"""
    nodes: Indices
    """those that are felt there, ascending, shape (m,)"""
    functions: Floats
    """φ and ∇φ, shape (4, 2k, m)"""
    weights: Floats
    """volumes, those of the old functions negative, shape (2k,)"""

    @staticmethod
    def between(before: Space, space: Space) -> Difference:
        """Of a space that was cut from that `before`, at once or by and by."""
        rows = space.changed_from(before)
        starts, entries = entries_of(space.values.indptr, rows)
        nodes = np.flatnonzero(np.bincount(space.values.indices[entries], minlength=len(space)))
        rank = np.zeros(len(space), int)
        rank[nodes] = np.arange(len(nodes))
        functions = np.zeros((4, 2 * len(rows), len(nodes)))
        for one, first in ((space, 0), (before, len(rows))):
            starts, entries = entries_of(one.values.indptr, rows)
            owner = first + np.repeat(np.arange(len(rows)), np.diff(starts))
            place = owner * len(nodes) + rank[one.values.indices[entries]]
            slopes = one.gradients[entries]
            for part, values in zip(functions, (one.values.data[entries], *slopes.T), strict=True):
                part.reshape(-1)[place] = values
        weights = space.weights[rows]
        return Difference(np.tile(rows, 2), nodes, functions, np.concatenate([weights, -weights]))

    def mass(self, density: Floats) -> Floats:
        """Of ∫ ρ φ_I φ_J for densities (q,) at all points, shape (m, m)."""
        phi = self.functions[0]
        return np.asarray(phi.T @ ((self.weights * density[self.points])[:, None] * phi))

    def slopes(self) -> Floats:
        """Of ∫ ∇φ_I · ∇φ_J, shape (m, m)."""
        flat = self.functions[1:].reshape(3 * len(self.points), len(self.nodes))
        return np.asarray(flat.T @ (np.tile(self.weights, 3)[:, None] * flat))

    def stiffness(self, laws: Sequence[Floats], which: Indices) -> Floats:
        """Of ∫ φ_I,c C_acbd φ_J,d for laws C, 6 × 6, of which that of each of all points is `which`; shape
        (m, m, 3, 3)."""
        count, law = len(self.nodes), np.asarray(which)[self.points]
        total = np.zeros((9, count * count))
        for number in np.unique(law):
            own = law == number
            slopes = self.functions[1:, own].transpose(1, 0, 2).reshape(own.sum(), 3 * count)
            sums = (slopes.T @ (self.weights[own, None] * slopes)).reshape(3, count, 3, count)
            C = laws[number][_PLACE[:, :, None, None], _PLACE]  # (a, c, b, d)
            total += C.transpose(0, 2, 1, 3).reshape(9, 9) @ sums.transpose(0, 2, 1, 3).reshape(9, count * count)
        return np.ascontiguousarray(total.reshape(3, 3, count, count).transpose(2, 3, 0, 1))

    def added(self, change: Floats, entries: Floats, known: Lists, lists: Lists) -> Floats:
        """The entries of a matrix, of which those before are given with their lists, with the change (m, m, ...)."""
        start, index = lists
        if known[1] is index:
            result = entries.copy()
        else:
            result = np.zeros((len(index), *entries.shape[1:]))
            result[np.searchsorted(_keys(*lists), _keys(*known))] = entries
        local = np.full(len(start) - 1, -1)
        local[self.nodes] = np.arange(len(self.nodes))
        starts, places = entries_of(start, self.nodes)
        row, column = np.repeat(np.arange(len(self.nodes)), np.diff(starts)), local[index[places]]
        met = column >= 0
        result[places[met]] += change[row[met], column[met]]
        return result


def _keys(start: NDArray[np.int32], index: NDArray[np.int32]) -> NDArray[np.int64]:
    rows = np.repeat(np.arange(len(start) - 1, dtype=np.int64), np.diff(start))
    return rows * (len(start) - 1) + index


def met(values: csr_array) -> csr_array:
    """Which nodes share a point, given which points feel which nodes: entries of any value, shape (n, n)."""
    meets = csr_array((np.ones(values.nnz, np.float32), values.indices, values.indptr), values.shape)
    common = csr_array(meets.T @ meets)
    common.sort_indices()
    return common
