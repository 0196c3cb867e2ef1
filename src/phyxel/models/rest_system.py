# mypy: disable-error-code="valid-type,no-untyped-def"
"""What preconditions the system of a step: the system at rest, inverted once, turned with each node.

    H ≈ R (A + K₀ + c V Vᵀ) Rᵀ + Gᵀ G

A is the inertia, K₀ the stiffness at rest, R the rotation of each node; the stiff springs c V Vᵀ stand for what is held
(V: orthonormal, shape (n, r)) and the rows G for contacts, which come and go: Woodbury's formula adds them.
"""

from __future__ import annotations

from functools import cached_property

import numpy as np
import warp as wp
from numpy.typing import NDArray
from scipy.linalg import blas, lapack
from scipy.sparse import bsr_array, csr_array

from phyxel import device as dev
from phyxel.device import Launch, Program, Shared

wp.set_module_options(dev.KERNEL_OPTIONS)

Floats = NDArray[np.float64]

MOST_INVERTED = 3000
"""Unknowns up to which the inverse is kept as a matrix (72 MB); beyond, blocks of single nodes have to do."""
STIFFER = 1e3
"""Springs that stand for what is held, over the largest stiffness of a node."""
ROUNDING = 1e-10
"""Share by which the diagonal is raised: what nothing holds at all would have no inverse."""


@wp.kernel
def turn_back(
    first: int,
    turn: wp.array(dtype=wp.mat33d),
    residual: wp.array(dtype=wp.vec3d),
    turned: wp.array(dtype=wp.vec3d),
):
    """Rᵀ r"""
    I = first + wp.tid()
    turned[I] = wp.transpose(turn[I]) * residual[I]


@wp.kernel
def solve_whole(
    first: int,
    inverse: wp.array2d(dtype=wp.float64),
    turn: wp.array(dtype=wp.mat33d),
    turned: wp.array(dtype=wp.vec3d),
    found: wp.array(dtype=wp.vec3d),
):
    """R H₀⁻¹ of what was turned back."""
    I = first + wp.tid()
    x = wp.float64(0.0)
    y = wp.float64(0.0)
    z = wp.float64(0.0)
    for J in range(turned.shape[0]):
        r = turned[J]
        x += inverse[3 * I, 3 * J] * r[0] + inverse[3 * I, 3 * J + 1] * r[1] + inverse[3 * I, 3 * J + 2] * r[2]
        y += (
            inverse[3 * I + 1, 3 * J] * r[0]
            + inverse[3 * I + 1, 3 * J + 1] * r[1]
            + inverse[3 * I + 1, 3 * J + 2] * r[2]
        )
        z += (
            inverse[3 * I + 2, 3 * J] * r[0]
            + inverse[3 * I + 2, 3 * J + 1] * r[1]
            + inverse[3 * I + 2, 3 * J + 2] * r[2]
        )
    found[I] = turn[I] * wp.vec3d(x, y, z)


@wp.kernel
def solve_blocks(
    first: int,
    inverse: wp.array(dtype=wp.mat33d),
    turn: wp.array(dtype=wp.mat33d),
    turned: wp.array(dtype=wp.vec3d),
    found: wp.array(dtype=wp.vec3d),
):
    """The same with the inverse of each node's block."""
    I = first + wp.tid()
    found[I] = turn[I] * (inverse[I] * turned[I])


class RestSystem:
    """An approximate inverse of H."""

    def __init__(self, inertia: csr_array, stiffness: bsr_array, held: Floats, device: wp.Device) -> None:
        self._held = held
        count = inertia.shape[0]
        self._turn = Shared(count, wp.mat33d, device)
        self._residual, self._found = Shared(count, wp.vec3d, device), Shared(count, wp.vec3d, device)
        self._grip: Floats | None = None
        self._gripped = b""
        self._whole = 3 * count <= MOST_INVERTED
        if self._whole:
            self._inverse = _inverted(inertia, stiffness, held)
            kernel, inverse = solve_whole, wp.array(self._inverse, dtype=wp.float64, device=device, copy=False)
        else:
            blocks = _diagonal_blocks(stiffness) + inertia.diagonal()[:, None, None] * np.eye(3)
            kernel, inverse = solve_blocks, wp.array(np.linalg.inv(blocks), dtype=wp.mat33d, device=device)
        turned = wp.zeros(count, dtype=wp.vec3d, device=device)
        launches = [
            Launch(turn_back, count, [self._turn.array, self._residual.array, turned]),
            Launch(kernel, count, [inverse, self._turn.array, turned, self._found.array], count / 40),
        ]
        self._solve = Program(launches, device)
        self.turn(np.broadcast_to(np.eye(3), (count, 3, 3)))

    def turn(self, rotations: Floats) -> None:
        """R of each node, shape (n, 3, 3)."""
        self._turn.host[:] = rotations
        self._turn.push()
        self._grip, self._gripped = None, b""

    def grip(self, rows: csr_array, roots: Floats) -> None:
        """Contacts: G is, at each of c points with φ in `rows` (c, n), the 3 × 3 matrix of `roots`."""
        key = rows.indices.tobytes() + roots.tobytes()
        if key == self._gripped:
            return
        self._grip, self._gripped = None, key
        if len(roots) == 0 or not self._whole:
            return
        count = 3 * len(roots)
        turn = self._turn.host
        G = np.einsum("cn,cab->nbca", rows.toarray(), roots).reshape(-1, 3, count)
        back = (np.swapaxes(turn, 1, 2) @ self._free(G)).reshape(-1, count)
        response = self._free(turn @ (self._inverse @ back).reshape(-1, 3, count)).reshape(-1, count)
        small = np.eye(count) + G.reshape(-1, count).T @ response
        factor, _ = lapack.dpotrf(small, lower=1)
        # P − P Gᵀ (1 + G P Gᵀ)⁻¹ G P = P − Y Yᵀ
        self._grip = np.ascontiguousarray(blas.dtrsm(1.0, factor, response, side=1, lower=1, trans_a=1))

    def apply(self, residual: Floats) -> Floats:
        """H⁻¹ residual, about, shape (n, 3)."""
        self._residual.host[:] = residual
        self._residual.push()
        self._solve.run()
        found = self._found.pull().copy()
        if self._grip is not None:
            found -= (self._grip @ (residual.reshape(-1) @ self._grip)).reshape(-1, 3)
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
        return np.asarray(np.linalg.solve(spread.T @ response, response.T).T, np.float64)

    def _free(self, fields: Floats) -> Floats:
        flat = fields.reshape(len(fields), -1)
        return (flat - self._held @ (self._held.T @ flat)).reshape(fields.shape)


def _inverted(inertia: csr_array, stiffness: bsr_array, held: Floats) -> Floats:
    """(A + K₀ + c V Vᵀ)⁻¹, shape (3n, 3n)."""
    system = stiffness.toarray()
    springs = inertia.toarray() + (STIFFER * system.diagonal().max()) * (held @ held.T)
    for a in range(3):
        system[a::3, a::3] += springs
    system.flat[:: len(system) + 1] *= 1 + ROUNDING
    factor, failed = lapack.dpotrf(system.T, lower=0, overwrite_a=1)
    if failed:
        raise np.linalg.LinAlgError("the system at rest is not positive")
    inverse, _ = lapack.dpotri(factor, lower=0, overwrite_c=1)
    upper = np.triu(inverse)
    return np.ascontiguousarray(upper + np.triu(upper, 1).T)


def _diagonal_blocks(matrix: bsr_array) -> Floats:
    rows = np.repeat(np.arange(len(matrix.indptr) - 1), np.diff(matrix.indptr))
    return matrix.data[rows == matrix.indices]
