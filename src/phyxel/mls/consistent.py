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

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csc_array, csr_array
from scipy.sparse.linalg import splu

from phyxel.mls.shape_functions import Basis

Floats = NDArray[np.float64]

REGULAR = 1e-12
"""Added to the diagonal, over its mean: where all functions around a point are corrected ξ is not unique."""


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
    owner = np.repeat(np.arange(len(points)), np.diff(values.indptr))
    node, phi = values.indices, values.data
    span = np.sqrt(np.bincount(owner, ((points[owner] - nodes[node]) ** 2).sum(axis=1)) / np.diff(values.indptr))
    arm = (nodes[node] - points[owner]) / span[owner, None]
    y = -arm * span[owner, None] / span.mean()  # x − X_I, about one
    y = np.ones((len(owner), 1)) if basis == "linear" else np.column_stack([np.ones(len(owner)), y])
    missing = _missing(gradients, phi, owner, node, weights, y, len(nodes), span.mean())
    p = _polynomials(arm, basis)
    m = np.abs(phi)
    seen = _orthonormal(p, m, owner, len(points))

    column = np.full(len(nodes), -1)
    column[chosen] = np.arange(len(chosen))
    inner = column[node] >= 0
    terms = y.shape[1]
    load = (weights[owner, None] * y)[inner]
    size = len(chosen) * terms
    columns = (column[node[inner], None] * terms + np.arange(terms)).reshape(-1)
    pair = np.repeat(np.flatnonzero(inner), terms)
    spread = csr_array((load.reshape(-1), (pair, columns)), (len(owner), size))
    # A_q⁻¹ in an orthonormal basis is the identity: E = (basis)ᵀ m (load)
    averaged = [
        csr_array((m * seen[:, a], (owner, np.arange(len(owner)))), (len(points), len(owner)))
        for a in range(p.shape[1])
    ]
    system = spread.T @ (csr_array(spread.multiply(m[:, None])))
    for average in averaged:
        part = average @ spread
        system = system - part.T @ part
    diagonal = system.diagonal().mean()
    system = csc_array(system)
    system.setdiag(system.diagonal() + REGULAR * diagonal)
    solver = splu(system)
    changed = gradients.copy()
    for k in range(3):
        xi = solver.solve(missing[chosen, :, k].reshape(-1))
        pushed = spread @ xi
        alpha = [average @ pushed for average in averaged]
        changed[:, k] += m * (pushed - sum(alpha[a][owner] * seen[:, a] for a in range(len(alpha))))
    return changed


def _missing(
    gradients: Floats,
    phi: Floats,
    owner: NDArray[np.integer],
    node: NDArray[np.integer],
    weights: Floats,
    y: Floats,
    count: int,
    length: float,
) -> Floats:
    """r: what the sums Σ_q w_q y_m ∇φ_I lack, shape (n, terms, 3)."""
    missing = np.zeros((count, y.shape[1], 3))
    for m in range(y.shape[1]):
        for k in range(3):
            missing[:, m, k] = -np.bincount(node, weights[owner] * y[:, m] * gradients[:, k], count)
    for m in range(1, y.shape[1]):
        missing[:, m, m - 1] -= np.bincount(node, weights[owner] * phi, count) / length
    return missing


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
