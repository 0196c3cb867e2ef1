"""Shape functions at the skin, without tears.

A surfel does not depend on nodes it cannot see, and its neighbour may see others: at creases, in an armpit or at the
base of an ear, the field jumps from one to the next, and what was closed opens. There, and only there, a surfel goes
with a mean of what its neighbours say,

    φ̄_I(x) = Σ_j ω_j (φ_I(x_j) + ∇φ_I(x_j)·(x − x_j)) / Σ ω_j,   ω = (1 − r²/ρ²)²  on the same side of the body,

which reproduces linear fields as each of them does. How far it does so depends on how much it differs from its own φ.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from scipy.spatial import cKDTree

from phyxel.mls.shape_values import ShapeValues

Floats = NDArray[np.float64]

ASKED = 40
"""Surfels around each node whose word is taken."""
NEIGHBOURS = 16
REACH = 0.4
"""ρ, in spacings of the nodes."""
ALIKE, TORN = 0.15, 0.4
"""Σ_I |φ̄_I − φ_I| up to which a surfel goes its own way, and from which on it goes with its neighbours."""


def mended(
    values: ShapeValues, points: NDArray[np.floating], normals: NDArray[np.floating], spacing: float
) -> ShapeValues:
    """φ and ∇φ at points (m, 3) of the skin with normals (m, 3), for nodes about `spacing` apart."""
    asked = np.arange(0, len(points), max(1, len(points) // (ASKED * values.node_count)))
    meeting = _Meeting.of(points, normals, asked, REACH * spacing)
    phi, slopes = values.values[asked], [part[asked] for part in values.gradients]
    mean = meeting.mean(phi, slopes, meeting.shares)
    differs = np.asarray(abs(mean - values.values).sum(axis=1)).reshape(-1)
    share = np.clip((differs - ALIKE) / (TORN - ALIKE), 0.0, 1.0) * (meeting.total > 0)
    torn = np.flatnonzero(share)
    if len(torn) == 0:
        return values
    here = meeting.only(torn)
    gradients = []
    for k in range(3):
        mean_slope = here.weights @ slopes[k] + here.mean(phi, slopes, here.changes(k))
        gradients.append(_blend(values.gradients[k], mean_slope, torn, share))
    return values.replaced(_blend(values.values, mean[torn], torn, share), gradients)


def _blend(own: csr_array, mean: csr_array, torn: NDArray[np.integer], share: Floats) -> csr_array:
    """Rows of `own`, the torn ones mixed with `mean`."""
    count = own.shape[0]
    spread = csr_array((share[torn], (torn, np.arange(len(torn)))), (count, len(torn)))
    kept = csr_array((1 - share, (np.arange(count), np.arange(count))), (count, count))
    return csr_array(kept @ own + spread @ mean)


class _Meeting:
    """Surfels and the neighbours they ask."""

    def __init__(
        self, rows: int, row: NDArray[np.integer], column: NDArray[np.integer], arm: Floats, rho: float, columns: int
    ):
        self._row, self._column, self._arm, self._rho, self._shape = row, column, arm, rho, (rows, columns)
        fall = np.maximum(1 - (arm * arm).sum(axis=1) / rho**2, 0.0)
        self._omega, self._fall = fall**2, fall
        self.total: Floats = np.asarray(np.bincount(row, self._omega, rows), np.float64)
        """Σ ω, shape (m,)"""
        self._each = np.maximum(self.total, 1e-300)[row]
        self.shares: Floats = self._omega / self._each
        """ω_j / Σ ω of every pair"""
        self.weights = self._matrix(self.shares)
        """the same, shape (m, asked)"""

    @staticmethod
    def of(
        points: NDArray[np.floating], normals: NDArray[np.floating], asked: NDArray[np.integer], rho: float
    ) -> _Meeting:
        count = min(NEIGHBOURS, len(asked))
        distance, index = cKDTree(points[asked]).query(points, count, distance_upper_bound=rho, workers=-1)
        row = np.repeat(np.arange(len(points)), count)
        index, near = index.reshape(-1), np.isfinite(distance.reshape(-1))
        row, column = row[near], index[near]
        same = (normals[row] * normals[asked[column]]).sum(axis=1) > 0
        row, column = row[same], column[same]
        return _Meeting(len(points), row, column, points[row] - points[asked[column]], rho, len(asked))

    def only(self, rows: NDArray[np.integer]) -> _Meeting:
        """Some of the surfels."""
        place = np.full(self._shape[0], -1)
        place[rows] = np.arange(len(rows))
        kept = place[self._row] >= 0
        row = place[self._row[kept]]
        return _Meeting(len(rows), row, self._column[kept], self._arm[kept], self._rho, self._shape[1])

    def _matrix(self, entries: Floats) -> csr_array:
        return csr_array((entries, (self._row, self._column)), self._shape)

    def changes(self, k: int) -> Floats:
        """∂/∂x_k of ω_j / Σ ω, of every pair."""
        slope = -4 * self._fall * self._arm[:, k] / self._rho**2
        total = np.bincount(self._row, slope, self._shape[0])
        return slope / self._each - self._omega * total[self._row] / self._each**2

    def mean(self, phi: csr_array, slopes: list[csr_array], share: Floats) -> csr_array:
        """Σ_j s_j (φ(x_j) + ∇φ(x_j)·(x − x_j)) with a share s of every pair, shape (m, n)."""
        result = self._matrix(share) @ phi
        for k in range(3):
            result = result + self._matrix(share * self._arm[:, k]) @ slopes[k]
        return csr_array(result)
