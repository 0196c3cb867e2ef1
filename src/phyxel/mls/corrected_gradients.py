"""Shape functions corrected where plain moving least squares will not do (physics 10): gradients that a quadrature
integrates as it should (after Chen, Hillman, Rüter 2013), and values at the skin without tears (`mended`).

A field ψ = Σ_I c_I φ_I that vanishes on the surface has ∫ ∇ψ = 0: without it a constant stress pushes nodes about, and
no body holds a uniform strain. Plain Gauss points miss it by 1e-3 to 8e-3, as shape functions of moving least squares
are no polynomials.

Chen, Hillman and Rüter correct the test functions alone, which makes the stiffness unsymmetric: there is no energy any
more. Here the gradients B_qI at the quadrature points q change by C_qI, for test and trial functions alike, as little
as possible (in Σ C²/m, with a weight m = |φ|) such that

    Σ_I C_qI p(X_I) = 0          for all p of the basis: fields of the basis keep their exact gradients
    Σ_q w_q Σ_I c_I C_qI = r     for all ψ: what the sum over the points lacks

for each direction on its own. With C_qI = m_qI (w_q Σ_ψ c_I ξ_ψ − p_qI·α_q) the first line gives α_q, the second a
symmetric, positive system for ξ. Fields that do not vanish on the surface are left as they are: their integrals are not
zero, and the points know them about as well as any. The same for linear stress, which a quadratic basis could ask for,
was tried: it spoils what the points know of the surface, and costs more than it brings.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csc_array, csr_array, diags_array, hstack
from scipy.sparse.linalg import splu
from scipy.spatial import cKDTree

from phyxel.mls.shape_functions import Basis
from phyxel.mls.shape_values import ShapeValues, places_among

Floats = NDArray[np.float64]

REGULAR = 1e-12
"""Added to the diagonal, over its mean: where all functions around a point are corrected ξ is not unique."""
DEPENDENT = 1e-13
"""Σ m p² of a polynomial, over the largest, below which it counts as zero at all nodes: one at which φ is zero, or a
rounding error, does not tell polynomials apart."""
VANISHED = 1e-6
"""Root mean square of a field on the surface, over the largest, below which it vanishes there."""
MOST_COMBINED = 3000
"""Functions that reach the surface up to which combinations are looked for: it takes their number cubed."""
SURFELS_ASKED = 40
"""Surfels for each node whose φ goes into means: all of them would take as long as the rest of a body's birth."""
SURFELS_AROUND = 16
"""Nearest of these that a mean is of."""
MEAN_RADIUS = 0.4
"""ρ of a mean, in spacings of the nodes."""
ALIKE, TORN = 0.15, 0.4
"""Σ_I |φ̄_I − φ_I| up to which a surfel keeps its own φ, and from which on it takes the mean of its neighbours."""


@dataclass(frozen=True)
class _Pairs:
    """Points and nodes that meet."""

    point: NDArray[np.integer]
    node: NDArray[np.integer]
    phi: Floats
    weight: Floats
    """w of the point"""
    arm: Floats
    """X_I − x, in units of the root mean square of these at the point, shape (pairs, 3)"""


def consistent_gradients(
    gradients: Floats,
    values: csr_array,
    points: Floats,
    weights: Floats,
    nodes: Floats,
    vanishing: csr_array,
    basis: Basis = "linear",
) -> Floats:
    """∇φ of all pairs (pairs, 3), as `values` (q, n) lists them, for points (q, 3) with weights (q,) and nodes (n, 3),
    physics 2.6; `vanishing` (n, k) are the coefficients c of fields that vanish on the surface (`vanishing_fields`)."""
    if vanishing.shape[1] == 0:
        return gradients
    pairs = _paired(values, points, weights, nodes)
    missing = _missing(gradients, pairs, vanishing)
    m = np.abs(pairs.phi)
    p = _orthonormal(_polynomials(pairs.arm, basis), m, pairs.point, len(points))
    solver = splu(_system(pairs, m, p, vanishing))
    changed = gradients.copy()
    for k in range(3):
        pushed = pairs.weight * (vanishing @ solver.solve(missing[:, k]))[pairs.node]
        means = [np.bincount(pairs.point, m * term * pushed, len(points)) for term in p.T]
        fitted = sum(mean[pairs.point] * term for mean, term in zip(means, p.T, strict=True))
        changed[:, k] += m * (pushed - fitted)
    return changed


def vanishing_fields(skin: csr_array) -> csr_array:
    """Coefficients (n, k) of independent fields that vanish at the points of the surface at which φ is `skin` (m, n),
    physics 2.6: all functions that do not reach it, and combinations of those that do."""
    reached = np.unique(skin.indices)
    alone = np.setdiff1d(np.arange(skin.shape[1]), reached)
    units = csr_array((np.ones(len(alone)), (alone, np.arange(len(alone)))), (skin.shape[1], len(alone)))
    if not 0 < len(reached) <= MOST_COMBINED:
        return units
    square = (skin.T @ skin)[reached][:, reached].toarray()
    values, vectors = np.linalg.eigh(square)
    none = values < VANISHED**2 * values[-1]
    combined = np.zeros((skin.shape[1], int(none.sum())))
    combined[reached] = vectors[:, none]
    return csr_array(hstack([units, csr_array(combined)]))


def _paired(values: csr_array, points: Floats, weights: Floats, nodes: Floats) -> _Pairs:
    count = np.diff(values.indptr)
    point, node = np.repeat(np.arange(len(points)), count), values.indices
    arm = nodes[node] - points[point]
    span = np.sqrt(np.bincount(point, (arm * arm).sum(axis=1)) / count)
    return _Pairs(point, node, values.data, weights[point], arm / span[point, None])


def _missing(gradients: Floats, pairs: _Pairs, vanishing: csr_array) -> Floats:
    """r: what the sums Σ_q w_q ∇ψ lack, shape (k, 3)."""
    sums = [-np.bincount(pairs.node, pairs.weight * slope, vanishing.shape[0]) for slope in gradients.T]
    return np.asarray(vanishing.T @ np.stack(sums, axis=1))


def _system(pairs: _Pairs, m: Floats, p: Floats, vanishing: csr_array) -> csc_array:
    """ξ -> Σ_q w_q Σ_I c_I C_qI. The polynomials are orthonormal: what they take away is a square."""
    shape = int(pairs.point.max()) + 1, vanishing.shape[0]
    system = vanishing.T @ diags_array(np.bincount(pairs.node, pairs.weight**2 * m, shape[1])) @ vanishing
    for term in p.T:
        taken = csr_array((pairs.weight * m * term, (pairs.point, pairs.node)), shape) @ vanishing
        system = system - taken.T @ taken
    system = csc_array(system)
    diagonal = system.diagonal()
    system.setdiag(diagonal + REGULAR * diagonal.mean())
    return system


def _polynomials(arm: Floats, basis: Basis) -> Floats:
    """p of each pair, shape (pairs, 4 or 10)."""
    one = np.ones((len(arm), 1))
    if basis == "linear":
        return np.hstack([one, arm])
    x, y, z = arm.T
    return np.hstack([one, arm, arm * arm, np.column_stack([y * z, z * x, x * y])])


def _orthonormal(p: Floats, m: Floats, owner: NDArray[np.integer], count: int) -> Floats:
    """The same polynomials, orthonormal at each point under the weight m: Σ_I m p pᵀ = 1. Where nodes with any weight
    are few or lie in one plane, some polynomial vanishes at all of them: it is zero here, and asks nothing of C."""
    terms = p.shape[1]
    moments = np.zeros((count, terms, terms))
    for a in range(terms):
        for b in range(a + 1):
            moments[:, a, b] = moments[:, b, a] = np.bincount(owner, m * p[:, a] * p[:, b], count)
    values, vectors = np.linalg.eigh(moments)
    there = values > DEPENDENT * values[:, -1:]
    inverse = np.where(there, 1 / np.sqrt(np.where(there, values, 1.0)), 0.0)[:, :, None] * vectors.transpose(0, 2, 1)
    return np.einsum("pab,pb->pa", inverse[owner], p)


def mended(
    values: ShapeValues, points: NDArray[np.floating], normals: NDArray[np.floating], spacing: float
) -> ShapeValues:
    """φ and ∇φ at points (m, 3) of the skin with normals (m, 3), for nodes about `spacing` apart (physics 2.8).

    A surfel does not depend on nodes it cannot see, and its neighbour may see others: at creases, in an armpit or at
    the base of an ear, the field jumps from one to the next, and what was closed opens. There, and only there, a surfel
    takes a mean of its neighbours' φ,

        φ̄_I(x) = Σ_j ω_j (φ_I(x_j) + ∇φ_I(x_j)·(x − x_j)) / Σ ω_j,   ω = (1 − r²/ρ²)²  on the same side of the body,

    which reproduces linear fields as each of them does, the more of it the more it differs from its own φ.
    """
    asked = np.arange(0, len(points), max(1, len(points) // (SURFELS_ASKED * values.node_count)))
    means = _SurfelMeans.of(points, normals, asked, MEAN_RADIUS * spacing)
    phi, slopes = values.values[asked], [part[asked] for part in values.gradients]
    mean = means.mean(phi, slopes, means.shares)
    differs = np.asarray(abs(mean - values.values).sum(axis=1)).reshape(-1)
    share = np.clip((differs - ALIKE) / (TORN - ALIKE), 0.0, 1.0) * (means.total > 0)
    torn = np.flatnonzero(share)
    if len(torn) == 0:
        return values
    here = means.only(torn)
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


class _SurfelMeans:
    """Means over the neighbours of surfels."""

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
    ) -> _SurfelMeans:
        count = min(SURFELS_AROUND, len(asked))
        distance, index = cKDTree(points[asked]).query(points, count, distance_upper_bound=rho, workers=-1)
        row = np.repeat(np.arange(len(points)), count)
        index, near = index.reshape(-1), np.isfinite(distance.reshape(-1))
        row, column = row[near], index[near]
        same = (normals[row] * normals[asked[column]]).sum(axis=1) > 0
        row, column = row[same], column[same]
        return _SurfelMeans(len(points), row, column, points[row] - points[asked[column]], rho, len(asked))

    def only(self, rows: NDArray[np.integer]) -> _SurfelMeans:
        """Some of the surfels."""
        place = places_among(rows, self._shape[0])[self._row]
        kept = place >= 0
        return _SurfelMeans(len(rows), place[kept], self._column[kept], self._arm[kept], self._rho, self._shape[1])

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
