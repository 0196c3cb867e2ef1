# mypy: disable-error-code="valid-type,no-untyped-def"
"""The system at rest, H₀ = A + K₀ + c V Vᵀ (physics 10.6), inverted, and products with it.

Conjugate gradients take as many iterations with an inverse in single precision, but for fields that hardly any point
feels; each product has half as much to read then. It is kept in rows of eight nodes abreast, column by column.
"""

from __future__ import annotations

import numpy as np
import warp as wp
from numpy.typing import NDArray
from scipy.linalg import lapack
from scipy.sparse import bsr_array, csr_array

from phyxel import device as dev
from phyxel.device import Launch, float32s, mat33ds, vec3ds

wp.set_module_options(dev.KERNEL_OPTIONS)

Floats = NDArray[np.float64]
Packed = NDArray[np.float32] | NDArray[np.float64]

MOST_IN_DOUBLE = 3000
"""Unknowns up to which there is one in double, too (72 MB)."""
ABREAST = 8
"""Nodes whose rows go together."""
CHUNK = wp.constant(48)
"""Nodes whose columns are summed up in single precision; sums of these are in double."""
STIFFER = 1e3
"""Springs that stand for held points, over the largest stiffness of a node."""
BLOCK = 256
"""Rows of a matrix that are mirrored at a time."""
ROUNDING = 1e-10
"""Share by which the diagonal is raised: a body that nothing holds would have no inverse at rest."""


@wp.kernel
def turn_back(first: int, turn: mat33ds, residual: vec3ds, turned: vec3ds):
    """Rᵀ r"""
    I = first + wp.tid()
    turned[I] = wp.transpose(turn[I]) * residual[I]


@wp.func_native("""
#if !defined(__CUDA_ARCH__)
    typedef float Eight __attribute__((ext_vector_type(8), aligned(4)));
    Eight sum[9] = {};
#else
    float sum[9][8] = {};
#endif
    const float* h = inverse.data + 72 * ((size_t)group * nodes + start);
    for (int J = start; J < to; ++J, h += 72) {
        const double* r = (const double*)(turned.data + J);
        for (int b = 0; b < 3; ++b) {
            const float part = (float)r[b];
            for (int a = 0; a < 3; ++a) {
#if !defined(__CUDA_ARCH__)
                sum[3 * b + a] += part * ((const Eight*)h)[3 * b + a];
#else
                for (int k = 0; k < 8; ++k) sum[3 * b + a][k] += part * h[8 * (3 * b + a) + k];
#endif
            }
        }
    }
    for (int a = 0; a < 3; ++a)
        for (int k = 0; k < 8; ++k) into.data[24 * (size_t)i + 8 * a + k] = sum[a][k] + sum[3 + a][k] + sum[6 + a][k];
""")
def add_columns(i: int, group: int, nodes: int, start: int, to: int, inverse: float32s, turned: vec3ds, into: float32s):
    """Products of eight nodes' rows with what some nodes have; the compiler would not make vectors of them."""


@wp.kernel
def multiply(first: int, chunks: int, inverse: float32s, turned: vec3ds, part: float32s):
    """H₀⁻¹ r of eight nodes, as far as one chunk of all nodes goes."""
    i = first + wp.tid()
    nodes = turned.shape[0]
    begin = (i % chunks) * CHUNK
    add_columns(i, i / chunks, nodes, begin, wp.min(begin + CHUNK, nodes), inverse, turned, part)


@wp.kernel
def turn_sums(first: int, chunks: int, part: float32s, turn: mat33ds, found: vec3ds):
    """R of the sum over all chunks."""
    I = first + wp.tid()
    total = wp.vec3d()
    for chunk in range(chunks):
        start = 24 * ((I / 8) * chunks + chunk) + I % 8
        total += wp.vec3d(wp.float64(part[start]), wp.float64(part[start + 8]), wp.float64(part[start + 16]))
    found[I] = turn[I] * total


class Inverse:
    """H₀⁻¹, symmetric, of n nodes."""

    def __init__(self, inertia: csr_array, stiffness: bsr_array, held: Floats, device: wp.Device) -> None:
        matrix = inverted(inertia, stiffness, held)
        self._nodes, self._device = len(matrix) // 3, device
        single = _abreast(matrix, np.float32)
        self._kept: Packed = _abreast(matrix, np.float64) if len(matrix) <= MOST_IN_DOUBLE else single
        """shape (groups, 3n, 3, 8)"""
        self._single = wp.array(single.reshape(-1), dtype=wp.float32, device=device, copy=False)
        self._groups, self._chunks = len(single), -(-self._nodes // CHUNK)
        self._part = wp.zeros(24 * self._groups * self._chunks, dtype=wp.float32, device=device)

    def product(self, turn: wp.array, residual: wp.array, turned: wp.array, found: wp.array) -> list[Launch]:
        """R H₀⁻¹ Rᵀ r, in single precision."""
        work = CHUNK / 5
        return [
            Launch(turn_back, self._nodes, [turn, residual, turned]),
            Launch(multiply, self._groups * self._chunks, [self._chunks, self._single, turned, self._part], work),
            Launch(turn_sums, self._nodes, [self._chunks, self._part, turn, found]),
        ]

    def times(self, entries: NDArray[np.integer], forces: Floats) -> Floats:
        """Of forces (k, c) on some of the unknowns, entries (k,): shape (3n, c)."""
        some = self._kept[:, entries].transpose(0, 3, 2, 1).reshape(-1, len(entries)).astype(np.float64)
        return (some @ forces)[: 3 * self._nodes]

    def between(self, entries: NDArray[np.integer]) -> Floats:
        """Its rows and columns that belong to some unknowns (k,), shape (k, k)."""
        node, axis = np.divmod(entries, 3)
        group, lane = np.divmod(node, ABREAST)
        return self._kept[group[:, None], entries, axis[:, None], lane[:, None]].astype(np.float64)


def inverted(inertia: csr_array, stiffness: bsr_array, held: Floats) -> Floats:
    """(A + K₀ + c V Vᵀ)⁻¹, shape (3n, 3n)."""
    system = stiffness.toarray()
    springs = inertia.toarray() + (STIFFER * system.diagonal().max()) * (held @ held.T)
    for a in range(3):
        system[a::3, a::3] += springs
    diagonal = system.diagonal()
    system.flat[:: len(system) + 1] = np.maximum((1 + ROUNDING) * diagonal, ROUNDING * diagonal.mean())
    factor, failed = lapack.dpotrf(system.T, lower=0, overwrite_a=1)
    if failed:
        raise np.linalg.LinAlgError("the system at rest is not positive")
    inverse, _ = lapack.dpotri(factor, lower=0, overwrite_c=1)
    for first in range(0, len(inverse), BLOCK):  # the part below the diagonal is not written
        last = first + BLOCK
        own = np.triu(inverse[first:last, first:last])
        inverse[first:last, first:last] = own + np.triu(own, 1).T
        inverse[last:, first:last] = inverse[first:last, last:].T
    return np.asarray(inverse)


def _abreast(matrix: Floats, precision: type[np.floating]) -> Packed:
    """Rows of eight nodes at a time, column by column, shape (groups, 3n, 3, 8)."""
    size = len(matrix)
    groups = np.zeros((-(-size // (3 * ABREAST)), size, 3, ABREAST), precision)
    for number, group in enumerate(groups):
        rows = matrix[:, 3 * ABREAST * number : 3 * ABREAST * (number + 1)].reshape(size, -1, 3)
        group[:, :, : rows.shape[1]] = rows.transpose(0, 2, 1)
    return groups
