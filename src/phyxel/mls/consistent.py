"""Gradients of shape functions that a quadrature integrates as it should (after Chen, Hillman, Rüter 2013).

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

from phyxel.mls.shape_functions import Basis

Floats = NDArray[np.float64]

REGULAR = 1e-12
"""Added to the diagonal, over its mean: where all functions around a point are corrected ξ is not unique."""
VANISHED = 1e-6
"""Root mean square of a field on the surface, over the largest, below which it vanishes there."""
MOST_COMBINED = 3000
"""Functions that reach the surface up to which combinations are looked for: it takes their number cubed."""


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
    """∇φ of all pairs (pairs, 3), as `values` (q, n) lists them, for points (q, 3) with weights (q,) and nodes (n, 3);
    `vanishing` (n, k) are the coefficients c of fields that vanish on the surface (`vanishing_fields`)."""
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
    """Coefficients (n, k) of independent fields that vanish at the points of the surface at which φ is `skin` (m, n):
    all functions that do not reach it, and combinations of those that do."""
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
    """The same polynomials, orthonormal at each point under the weight m: Σ_I m p pᵀ = 1."""
    terms = p.shape[1]
    moments = np.zeros((count, terms, terms))
    for a in range(terms):
        for b in range(a + 1):
            moments[:, a, b] = moments[:, b, a] = np.bincount(owner, m * p[:, a] * p[:, b], count)
    inverse = np.linalg.inv(np.linalg.cholesky(moments))
    return np.einsum("pab,pb->pa", inverse[owner], p)
