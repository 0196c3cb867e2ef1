"""Gradients of shape functions that a quadrature integrates as it should (after Chen, Hillman, Rüter 2013).

Gauss's theorem says ∫ ∂_k φ_I = ∮ φ_I n_k; a field that vanishes on the surface has ∫ ∇φ = 0. Without it a constant
stress pushes nodes about, and no body holds a uniform strain. Plain Gauss points miss it by 1e-3 to 8e-3, as shape
functions of moving least squares are no polynomials. For a quadratic basis stress is linear, and
∫ ∂_k φ_I x_m = ∮ φ_I x_m n_k − δ_km ∫ φ_I must hold, too.

Chen, Hillman and Rüter correct the test functions alone, which makes the stiffness unsymmetric: there is no energy any
more. Here the gradients B_qI at the quadrature points q change by C_qI, for test and trial functions alike, as little
as possible (in Σ C²/m, with a weight m = |φ|) such that

    Σ_I C_qI p(X_I) = 0            for all p of the basis: fields of the basis keep their exact gradients
    Σ_q w_q y_m C_qI = r_Im        for all m: what the sum over the points lacks, y = (1) or (1, x, y, z)

for each direction k on its own. With C_qI = m_qI (w_q Σ_m y_m ξ_Im − p_qI·α_q) the first line gives α_q, the second a
sparse, symmetric, positive system for ξ.

Linear basis: the surface integral is a sum over points s of the skin, Σ_s φ_I(s) a_s. Any vectors a_s will do for
fields that vanish at these points, single functions or combinations of functions that each reach the surface. Nobody
knows n dA of a scanned surface well; so a_s are those that change the gradients least, by least squares, and close the
surface, Σ_s p(s) a_sk = ∫ ∂_k p, or no C could do it. Quadratic basis: only functions that do not reach the surface at
all are corrected, the others left as they are.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csc_array, csr_array
from scipy.sparse.linalg import lsqr, splu

from phyxel.mls.shape_functions import Basis

Floats = NDArray[np.float64]

FITTING = 60
"""Iterations of least squares for the vectors on the skin: more of them change the gradients a little less."""
REGULAR = 1e-12
"""Added to the diagonal, over its mean: where all functions around a point are corrected ξ is not unique."""


def consistent_gradients(
    gradients: Floats,
    values: csr_array,
    points: Floats,
    weights: Floats,
    nodes: Floats,
    skin: Floats,
    on_skin: csr_array,
    basis: Basis = "linear",
) -> Floats:
    """∇φ of all pairs (pairs, 3), as `values` (q, n) lists them, for points (q, 3) with weights (q,) and nodes (n, 3);
    `on_skin` are φ (s, n) at points `skin` (s, 3) of the surface."""
    owner = np.repeat(np.arange(len(points)), np.diff(values.indptr))
    node, phi = values.indices, values.data
    chosen = np.arange(len(nodes))
    if basis == "quadratic":
        chosen = np.setdiff1d(chosen, on_skin.indices)
    if len(chosen) == 0:
        return gradients
    span = np.sqrt(np.bincount(owner, ((points[owner] - nodes[node]) ** 2).sum(axis=1)) / np.diff(values.indptr))
    length = float(span.mean())
    arm = (nodes[node] - points[owner]) / span[owner, None]
    y = np.ones((len(owner), 1))
    if basis == "quadratic":
        y = np.hstack([y, (points[owner] - nodes[node]) / length])
    missing = _missing(gradients, phi, owner, node, weights, y, len(nodes), length)
    if basis == "linear":
        missing[:, 0] += _over_surface(-missing[:, 0], skin, on_skin, float(weights.sum()))
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
    each = np.arange(len(owner))
    averaged = [csr_array((m * seen[:, a], (owner, each)), (len(points), len(owner))) for a in range(p.shape[1])]
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
        right = missing[chosen, :, k].reshape(-1)
        xi = solver.solve(right)
        xi += solver.solve(right - system @ xi)  # what the regular part has taken
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
    """r: what the sums Σ_q w_q y_m ∇φ_I lack where φ_I is zero on the surface, shape (n, terms, 3)."""
    missing = np.zeros((count, y.shape[1], 3))
    for m in range(y.shape[1]):
        for k in range(3):
            missing[:, m, k] = -np.bincount(node, weights[owner] * y[:, m] * gradients[:, k], count)
    for m in range(1, y.shape[1]):
        missing[:, m, m - 1] -= np.bincount(node, weights[owner] * phi, count) / length
    return missing


def _over_surface(sums: Floats, skin: Floats, on_skin: csr_array, volume: float) -> Floats:
    """Σ_s φ_I(s) a_s, as near to `sums` (n, 3) as can be with Σ_s a_sk = 0 and Σ_s x_m a_sk = V δ_mk, shape (n, 3)."""
    p = _polynomials(skin - skin.mean(axis=0), "linear")
    closed = np.vstack([np.zeros(3), volume * np.eye(3)])
    a = np.stack([lsqr(on_skin.T, part, atol=0, btol=0, iter_lim=FITTING)[0] for part in sums.T], axis=1)
    a += p @ np.linalg.solve(p.T @ p, closed - p.T @ a)
    return np.asarray(on_skin.T @ a)


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
