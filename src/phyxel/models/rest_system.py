"""What preconditions the system of a step: the system at rest, inverted once, turned with each node.

    H ≈ R (A + K₀ + c V Vᵀ) Rᵀ + Gᵀ G

A is the inertia, K₀ the stiffness at rest, R the rotation of each node; the stiff springs c V Vᵀ stand for what is held
(V: orthonormal, shape (n, r)) and the rows G for contacts, which come and go: Woodbury's formula adds them.
"""

from __future__ import annotations

from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import blas, lapack
from scipy.sparse import bsr_array, csr_array

Floats = NDArray[np.float64]

MOST_INVERTED = 3000
"""Unknowns up to which the inverse is kept as a matrix (72 MB); beyond, blocks of single nodes have to do."""
STIFFER = 1e3
"""Springs that stand for what is held, over the largest stiffness of a node."""


class RestSystem:
    """An approximate inverse of H."""

    def __init__(self, inertia: csr_array, stiffness: bsr_array, held: Floats) -> None:
        self._held = held
        self._turn = np.broadcast_to(np.eye(3), (inertia.shape[0], 3, 3))
        self._grip: Floats | None = None
        self._whole = stiffness.shape[0] <= MOST_INVERTED
        if self._whole:
            self._inverse = _inverted(inertia, stiffness, held)
        else:
            blocks = _diagonal_blocks(stiffness) + inertia.diagonal()[:, None, None] * np.eye(3)
            self._blocks = np.linalg.inv(blocks)

    def turn(self, rotations: Floats) -> None:
        """R of each node, shape (n, 3, 3)."""
        self._turn = rotations
        self._grip = None

    def grip(self, rows: csr_array, roots: Floats) -> None:
        """Contacts: G is, at each of c points with φ in `rows` (c, n), the 3 × 3 matrix of `roots`."""
        self._grip = None
        if len(roots) == 0 or not self._whole:
            return
        count = 3 * len(roots)
        G = np.einsum("cn,cab->nbca", rows.toarray(), roots).reshape(-1, 3, count)
        self._grip = self._apply(self._free(G)).reshape(-1, count)
        flat = G.reshape(-1, count)
        small = np.eye(count) + flat.T @ self._grip
        factor, _ = lapack.dpotrf(small, lower=1)
        # P − P Gᵀ (1 + G P Gᵀ)⁻¹ G P = P − Y Yᵀ
        self._grip = np.ascontiguousarray(blas.dtrsm(1.0, factor, self._grip, side=1, lower=1, trans_a=1))

    def apply(self, residual: Floats) -> Floats:
        """H⁻¹ residual, about, shape (n, 3)."""
        found = self._apply(residual[:, :, None])[:, :, 0]
        if self._grip is not None:
            found = found - (self._grip @ (residual.reshape(-1) @ self._grip)).reshape(-1, 3)
        return found

    def lift(self, amounts: Floats) -> Floats:
        """The field with Vᵀ u = amounts (r, 3) that costs least at rest, shape (n, 3)."""
        found = (self._lift @ amounts.reshape(-1)).reshape(-1, 3)
        return found + self._held @ (amounts - self._held.T @ found)

    @cached_property
    def _lift(self) -> Floats:
        """H₀⁻¹ V (Vᵀ H₀⁻¹ V)⁻¹, shape (3n, 3r)."""
        count, held = self._held.shape
        spread = np.zeros((3 * count, 3 * held))
        for a in range(3):
            spread[a::3, a::3] = self._held
        if not self._whole:
            return spread
        response = self._inverse @ spread
        return np.linalg.solve(spread.T @ response, response.T).T

    def _free(self, fields: Floats) -> Floats:
        flat = fields.reshape(len(fields), -1)
        return (flat - self._held @ (self._held.T @ flat)).reshape(fields.shape)

    def _apply(self, fields: Floats) -> Floats:
        """R H₀⁻¹ Rᵀ of fields (n, 3, m), without contacts."""
        back = np.swapaxes(self._turn, 1, 2) @ fields
        if not self._whole:
            return self._turn @ (self._blocks @ back)
        flat = back.reshape(len(self._inverse), -1)
        if flat.shape[1] == 1:
            solved = blas.dsymv(1.0, self._inverse, flat[:, 0], lower=0)
        else:
            solved = self._inverse @ flat
        return self._turn @ solved.reshape(fields.shape)


def _inverted(inertia: csr_array, stiffness: bsr_array, held: Floats) -> Floats:
    """(A + K₀ + c V Vᵀ)⁻¹, shape (3n, 3n)."""
    system = stiffness.toarray()
    within = inertia.toarray()
    within = within + (STIFFER * system.diagonal().max()) * (held @ held.T)
    for a in range(3):
        system[a::3, a::3] += within
    # What nothing holds at all is held a little, or there would be no inverse.
    system.flat[:: len(system) + 1] *= 1 + 1e-10
    factor, failed = lapack.dpotrf(np.asfortranarray(system), lower=0, overwrite_a=1)
    if failed:
        raise np.linalg.LinAlgError("the system at rest is not positive")
    inverse, _ = lapack.dpotri(factor, lower=0, overwrite_c=1)
    upper = np.triu(inverse)
    return np.asfortranarray(upper + np.triu(upper, 1).T)


def _diagonal_blocks(matrix: bsr_array) -> Floats:
    rows = np.repeat(np.arange(len(matrix.indptr) - 1), np.diff(matrix.indptr))
    return matrix.data[rows == matrix.indices]
