"""Gradients of shape functions that a quadrature integrates as it should (after Chen, Hillman, Rüter 2013).

A function φ_I that vanishes on the surface has ∫ ∇φ_I = 0: without it a constant stress pushes nodes about, and no body
holds a uniform strain. Plain Gauss points miss it by 1e-3 to 8e-3, as shape functions of moving least squares are no
polynomials. For a quadratic basis stress is linear, and ∫ ∂_k φ_I x_m = −δ_km ∫ φ_I must hold, too.

Chen, Hillman and Rüter correct the test functions alone, which makes the stiffness unsymmetric: there is no energy any
more. Here the gradients B_qI at the quadrature points q change by C_qI, for test and trial functions alike, as little
as possible (in Σ C²/m, with a weight m = |φ|) such that

    Σ_I C_qI p(X_I) = 0            for all p of the basis: fields of the basis keep their exact gradients
    Σ_q w_q y_m C_qI = r_Im        for all m: what the sum over the points lacks, y = (1) or (1, x, y, z)

for each direction k on its own. With C_qI = m_qI (w_q Σ_m y_m ξ_Im − p_qI·α_q) the first line gives α_q, the second a
sparse, symmetric, positive system for ξ. Functions that reach the surface are left as they are: their integrals are not
zero, and the points know them about as well as any.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csc_array, csr_array
from scipy.sparse.linalg import splu

from phyxel.mls.shape_functions import Basis

Floats = NDArray[np.float64]

REGULAR = 1e-12
"""Added to the diagonal, over its mean: where all functions around a point are corrected ξ is not unique."""


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
    moments: Floats
    """y_m, in `length`, shape (pairs, 1 or 4)"""
    length: float


def consistent_gradients(
    gradients: Floats,
    values: csr_array,
    points: Floats,
    weights: Floats,
    nodes: Floats,
    within: NDArray[np.bool_],
    basis: Basis = "linear",
) -> Floats:
    """∇φ of all pairs (pairs, 3), as `values` (q, n) lists them, for points (q, 3) with weights (q,) and nodes (n, 3);
    `within` says which functions vanish on the surface, (n,)."""
    chosen = np.flatnonzero(within)
    if len(chosen) == 0:
        return gradients
    pairs = _paired(values, points, weights, nodes, basis)
    missing = _missing(gradients, pairs, len(nodes))[chosen]
    m = np.abs(pairs.phi)
    p = _orthonormal(_polynomials(pairs.arm, basis), m, pairs.point, len(points))
    entry = np.arange(len(m))
    averages = [csr_array((m * term, (pairs.point, entry)), (len(points), len(m))) for term in p.T]
    spread = _spread(pairs, chosen, len(nodes))
    solver = splu(_system(spread, m, averages))
    changed = gradients.copy()
    for k in range(3):
        pushed = spread @ solver.solve(missing[:, :, k].reshape(-1))
        fitted = sum((average @ pushed)[pairs.point] * term for average, term in zip(averages, p.T, strict=True))
        changed[:, k] += m * (pushed - fitted)
    return changed


def _paired(values: csr_array, points: Floats, weights: Floats, nodes: Floats, basis: Basis) -> _Pairs:
    count = np.diff(values.indptr)
    point, node = np.repeat(np.arange(len(points)), count), values.indices
    arm = nodes[node] - points[point]
    span = np.sqrt(np.bincount(point, (arm * arm).sum(axis=1)) / count)
    length = float(span.mean())
    one = np.ones((len(point), 1))
    moments = one if basis == "linear" else np.hstack([one, -arm / length])
    return _Pairs(point, node, values.data, weights[point], arm / span[point, None], moments, length)


def _missing(gradients: Floats, pairs: _Pairs, count: int) -> Floats:
    """r: what the sums Σ_q w_q y_m ∇φ_I lack, shape (n, terms, 3). About X_I, ∫ ∂_k φ_I (x − X_I)_m = −δ_km ∫ φ_I."""
    terms = pairs.moments.shape[1]
    missing = np.zeros((count, terms, 3))
    for m in range(terms):
        for k in range(3):
            missing[:, m, k] = -np.bincount(pairs.node, pairs.weight * pairs.moments[:, m] * gradients[:, k], count)
    for m in range(1, terms):
        missing[:, m, m - 1] -= np.bincount(pairs.node, pairs.weight * pairs.phi, count) / pairs.length
    return missing


def _spread(pairs: _Pairs, chosen: NDArray[np.integer], count: int) -> csr_array:
    """ξ of the chosen nodes -> w_q Σ_m y_m ξ_Im of every pair."""
    column = np.full(count, -1)
    column[chosen] = np.arange(len(chosen))
    inner = np.flatnonzero(column[pairs.node] >= 0)
    terms = pairs.moments.shape[1]
    columns = column[pairs.node[inner], None] * terms + np.arange(terms)
    load = pairs.weight[inner, None] * pairs.moments[inner]
    shape = len(pairs.node), len(chosen) * terms
    return csr_array((load.reshape(-1), (np.repeat(inner, terms), columns.reshape(-1))), shape)


def _system(spread: csr_array, m: Floats, averages: list[csr_array]) -> csc_array:
    """ξ -> Σ_q w_q y_m C_qI. The polynomials are orthonormal: what they take away is a square."""
    system = spread.T @ csr_array(spread.multiply(m[:, None]))
    for average in averages:
        part = average @ spread
        system = system - part.T @ part
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
    """The same polynomials, orthonormal at each point under the weight m: Σ_I m p pᵀ = 1."""
    terms = p.shape[1]
    moments = np.zeros((count, terms, terms))
    for a in range(terms):
        for b in range(a + 1):
            moments[:, a, b] = moments[:, b, a] = np.bincount(owner, m * p[:, a] * p[:, b], count)
    inverse = np.linalg.inv(np.linalg.cholesky(moments))
    return np.einsum("pab,pb->pa", inverse[owner], p)
