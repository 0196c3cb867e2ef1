# mypy: disable-error-code="valid-type,no-untyped-def"
"""Conjugate gradients for the stiffness of a sheet, in terms of the blocks of single particles (physics 13.9): where
links are so soft that some √(H D) iterations cost less than a factor. On the CPU, in double."""

from __future__ import annotations

import numpy as np
import warp as wp
from numpy.typing import NDArray

from phyxel import device as dev

wp.set_module_options(dev.KERNEL_OPTIONS)

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

ENOUGH = 0.01
"""Share of the force, in the norm of how far it leads, at which a round ends: the next one sees what is left."""
MOST = 400
"""Iterations of a round."""


@wp.func_native("""
#if !defined(__CUDA_ARCH__)
    typedef double Four __attribute__((ext_vector_type(4)));
    const double* B = (const double*)blocks.data;
    const double* M = (const double*)eased.data;
    Four* X = (Four*)x.data; Four* R = (Four*)r.data; Four* P = (Four*)p.data; Four* Q = (Four*)q.data;
    struct Dense {
        static inline Four times(const double* m, Four v) {
            Four out;
            out.x = m[0] * v.x + m[1] * v.y + m[2] * v.z;
            out.y = m[3] * v.x + m[4] * v.y + m[5] * v.z;
            out.z = m[6] * v.x + m[7] * v.y + m[8] * v.z;
            out.w = 0.0;
            return out;
        }
        static inline double dot(Four a, Four b) { return a.x * b.x + a.y * b.y + a.z * b.z; }
    };
    const int n = (int)x.shape[0], entries = (int)row.shape[0];
    double left = 0.0;
    for (int i = 0; i < n; ++i) {
        X[i] = 0.0;
        P[i] = Dense::times(M + 9 * i, R[i]);
        left += Dense::dot(R[i], P[i]);
    }
    const double enough = share * share * left;
    int step = 0;
    while (step < most && left > enough) {
        ++step;
        for (int i = 0; i < n; ++i) Q[i] = 0.0;
        for (int s = 0; s < entries; ++s) {
            const int i = row.data[s], j = column.data[s];
            const double* m = B + 9 * (size_t)s;
            const Four v = P[j];
            Q[i] += Dense::times(m, v);
            if (i != j) {
                const Four w = P[i];
                Four out;
                out.x = m[0] * w.x + m[3] * w.y + m[6] * w.z;
                out.y = m[1] * w.x + m[4] * w.y + m[7] * w.z;
                out.z = m[2] * w.x + m[5] * w.y + m[8] * w.z;
                out.w = 0.0;
                Q[j] += out;
            }
        }
        double bent = 0.0;
        for (int i = 0; i < n; ++i) bent += Dense::dot(P[i], Q[i]);
        const double far = left / bent;
        double now = 0.0;
        for (int i = 0; i < n; ++i) {
            X[i] += far * P[i];
            R[i] -= far * Q[i];
            Q[i] = Dense::times(M + 9 * i, R[i]);
            now += Dense::dot(R[i], Q[i]);
        }
        const double turn = now / left;
        for (int i = 0; i < n; ++i) P[i] = Q[i] + turn * P[i];
        left = now;
    }
#endif
""")
def iterated(
    most: int, share: wp.float64, row: wp.array(dtype=wp.int32), column: wp.array(dtype=wp.int32),
    blocks: wp.array(dtype=wp.mat33d), eased: wp.array(dtype=wp.mat33d),
    r: wp.array(dtype=wp.vec4d), p: wp.array(dtype=wp.vec4d), q: wp.array(dtype=wp.vec4d), x: wp.array(dtype=wp.vec4d),
):  # fmt: skip
    """x of A x = r, until √(r·z) is so small a share of what it was, z = r in terms of single particles. On the CPU
    only."""


@wp.kernel
def iterate_gradients(
    first: int, most: int, share: wp.float64, row: wp.array(dtype=wp.int32), column: wp.array(dtype=wp.int32),
    blocks: wp.array(dtype=wp.mat33d), eased: wp.array(dtype=wp.mat33d),
    r: wp.array(dtype=wp.vec4d), p: wp.array(dtype=wp.vec4d), q: wp.array(dtype=wp.vec4d), x: wp.array(dtype=wp.vec4d),
):  # fmt: skip
    """x of A x = r, about (physics 13.9)."""
    if first + wp.tid() == 0:
        iterated(most, share, row, column, blocks, eased, r, p, q, x)


class Gradients:
    """Solves for a stiffness of blocks of 3 × 3, symmetric each."""

    def __init__(self, n: int, rows: Ints, columns: Ints) -> None:
        """`rows` and `columns` are the two of n particles of each entry, one of each pair."""
        cpu = dev.pick("cpu")
        self._own = np.flatnonzero(rows == columns)
        self._whose = rows[self._own]
        self._blocks = wp.zeros(len(rows), dtype=wp.mat33d, device=cpu)
        self._eased = wp.zeros(n, dtype=wp.mat33d, device=cpu)
        self._r, p, q, self._x = (wp.zeros(n, dtype=wp.vec4d, device=cpu) for _ in range(4))
        pair = [wp.array(one, dtype=wp.int32, device=cpu) for one in (rows, columns)]
        inputs = [MOST, wp.float64(ENOUGH), *pair, self._blocks, self._eased, self._r, p, q, self._x]
        self._solve = dev.Program([dev.Launch(iterate_gradients, 1, inputs)], cpu)

    def solve(self, blocks: Floats, r: Floats) -> Floats:
        """About what r (n, 3) leads to, shape (n, 3), of the blocks of all entries, (entries, 3, 3)."""
        self._blocks.numpy()[:] = blocks
        self._eased.numpy()[self._whose] = np.linalg.inv(blocks[self._own])
        self._r.numpy()[:, :3] = r
        self._solve.run()
        return self._x.numpy()[:, :3].copy()
