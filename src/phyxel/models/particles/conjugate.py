# mypy: disable-error-code="valid-type,no-untyped-def"
"""Conjugate gradients for the stiffness of sheets, in terms of the blocks of single particles (physics 13.9): where
links are so soft that some √(H D) iterations cost less than a factor. On the CPU, in double.

Touches come on top as they are, Jᵀ(−∂p/∂s)J, of particles and of answers of guests (physics 15.16): who touches whom
changes from round to round, and nothing is made anew for it."""

from __future__ import annotations

import numpy as np
import warp as wp
from numpy.typing import NDArray
from scipy.sparse import csr_array

from phyxel import device as dev
from phyxel.device import float64s, int32s
from phyxel.models.particles.touches import Touches

wp.set_module_options(dev.KERNEL_OPTIONS)

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

ENOUGH = 0.01
"""Share of the force, in the norm of how far it leads, at which a round ends: the next one sees what is left."""
MOST = 400
"""Iterations of a round."""


@wp.func_native("""
#if !defined(__CUDA_ARCH__)
    typedef double Four __attribute__((ext_vector_type(4), aligned(8)));
    const double* B = blocks.data;
    const double* M = eased.data;
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
        static inline Four across(const double* m, Four v) {
            Four out;
            out.x = m[0] * v.x + m[3] * v.y + m[6] * v.z;
            out.y = m[1] * v.x + m[4] * v.y + m[7] * v.z;
            out.z = m[2] * v.x + m[5] * v.y + m[8] * v.z;
            out.w = 0.0;
            return out;
        }
        static inline double dot(Four a, Four b) { return a.x * b.x + a.y * b.y + a.z * b.z; }
    };
    const int n = (int)(x.shape[0] / 4), entries = (int)row.shape[0];
    const int touching = (int)touch.shape[0] - 1, answers = (int)alone.shape[0];
    double* A = a.data; double* RA = ra.data; double* PA = pa.data; double* QA = qa.data;
    double left = 0.0;
    for (int i = 0; i < n; ++i) {
        X[i] = 0.0;
        P[i] = Dense::times(M + 9 * i, R[i]);
        left += Dense::dot(R[i], P[i]);
    }
    for (int i = 0; i < answers; ++i) {
        A[i] = PA[i] = 0.0;
        for (int j = 0; j < answers; ++j) PA[i] += easy.data[i * answers + j] * RA[j];
        left += RA[i] * PA[i];
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
            if (i != j) Q[j] += Dense::across(m, P[i]);
        }
        for (int i = 0; i < answers; ++i) QA[i] = alone.data[i] * PA[i];
        for (int k = 0; k < touching; ++k) {
            Four s = 0.0;
            for (int slot = touch.data[k]; slot < touch.data[k + 1]; ++slot)
                s += Dense::times(J.data + 9 * (size_t)slot, P[who.data[slot]]);
            const double* g = G.data + 3 * (size_t)k * answers;
            for (int i = 0; i < answers; ++i) {
                s.x += g[i] * PA[i];
                s.y += g[answers + i] * PA[i];
                s.z += g[2 * answers + i] * PA[i];
            }
            const Four f = Dense::times(bend.data + 9 * (size_t)k, s);
            for (int slot = touch.data[k]; slot < touch.data[k + 1]; ++slot)
                Q[who.data[slot]] += Dense::across(J.data + 9 * (size_t)slot, f);
            for (int i = 0; i < answers; ++i) QA[i] += g[i] * f.x + g[answers + i] * f.y + g[2 * answers + i] * f.z;
        }
        double bent = 0.0;
        for (int i = 0; i < n; ++i) bent += Dense::dot(P[i], Q[i]);
        for (int i = 0; i < answers; ++i) bent += PA[i] * QA[i];
        if (!(bent > 0.0)) break;  // forces so small that their squares are nothing
        const double far = left / bent;
        double now = 0.0;
        for (int i = 0; i < n; ++i) {
            X[i] += far * P[i];
            R[i] -= far * Q[i];
            Q[i] = Dense::times(M + 9 * i, R[i]);
            now += Dense::dot(R[i], Q[i]);
        }
        for (int i = 0; i < answers; ++i) {
            A[i] += far * PA[i];
            RA[i] -= far * QA[i];
        }
        for (int i = 0; i < answers; ++i) {
            QA[i] = 0.0;
            for (int j = 0; j < answers; ++j) QA[i] += easy.data[i * answers + j] * RA[j];
            now += RA[i] * QA[i];
        }
        const double turn = now / left;
        for (int i = 0; i < n; ++i) P[i] = Q[i] + turn * P[i];
        for (int i = 0; i < answers; ++i) PA[i] = QA[i] + turn * PA[i];
        left = now;
    }
#endif
""")
def iterated(
    most: int, share: wp.float64, row: int32s, column: int32s, blocks: float64s, eased: float64s,
    touch: int32s, who: int32s, J: float64s, bend: float64s, G: float64s, alone: float64s, easy: float64s,
    r: float64s, p: float64s, q: float64s, x: float64s, ra: float64s, pa: float64s, qa: float64s, a: float64s,
):  # fmt: skip
    """x, a of A (x, a) = (r, ra), until √(r·z) is so small a share of what it was, z = r in terms of single particles
    and of all answers together. On the CPU only."""


@wp.kernel
def iterate_gradients(
    first: int,
    most: int, share: wp.float64, row: int32s, column: int32s, blocks: float64s, eased: float64s,
    touch: int32s, who: int32s, J: float64s, bend: float64s, G: float64s, alone: float64s, easy: float64s,
    r: float64s, p: float64s, q: float64s, x: float64s, ra: float64s, pa: float64s, qa: float64s, a: float64s,
):  # fmt: skip
    """x, a of A (x, a) = (r, ra), about (physics 13.9, 15.16)."""
    if first + wp.tid() == 0:
        iterated(
            most, share, row, column, blocks, eased, touch, who, J, bend, G, alone, easy, r, p, q, x, ra, pa, qa, a
        )


class Gradients:
    """Solves for a stiffness of blocks of 3 × 3, symmetric each, and of what touches."""

    def __init__(self, n: int, rows: Ints, columns: Ints, share: float = ENOUGH) -> None:
        """`rows` and `columns` are the two of n particles of each entry, one of each pair; a round ends at such a
        `share` of the force."""
        self._n, self._pairs, self._share = n, (rows.astype(np.int32), columns.astype(np.int32)), share
        self._own = np.flatnonzero(rows == columns)
        self._whose = rows[self._own]

    def solve(self, blocks: Floats, r: Floats) -> Floats:
        """About what r (n, 3) leads to, shape (n, 3), of the blocks of all entries, (entries, 3, 3)."""
        none, free = Touches.none(self._n, 0), np.ones(3 * self._n, bool)
        return self.touched(blocks, free, r.reshape(-1), none, np.zeros((0, 3, 3)), free[:0]).reshape(-1, 3)

    def touched(
        self, blocks: Floats, free: NDArray[np.bool_], r: Floats, touches: Touches, bend: Floats, alone: Floats
    ) -> Floats:
        """The same of what is `free` (q,), which r (q,) acts on: particles, and behind them nodes and answers of
        guests, which have an inertia of `alone` (q - 3n,). Touches resist so, (k, 3, 3)."""
        n = touches.J.shape[1]
        own = np.arange(self._n, n // 3)
        row, column = (np.append(one, own.astype(np.int32)) for one in self._pairs)
        nodes = alone[: n - 3 * self._n].reshape(-1, 3)[:, :, None] * np.eye(3)
        size = bearing(touches, bend)
        size[self._whose] += blocks[self._own]
        size[self._n :] += nodes
        eased = np.linalg.inv(size) * free[:n:3, None, None]
        alone = alone[len(nodes) * 3 :].astype(np.float64)
        G = np.ascontiguousarray(touches.G)
        easy = np.linalg.inv(np.diag(alone) + G.T @ (bend @ G.reshape(len(bend), 3, len(alone))).reshape(G.shape))
        force, p, q, led = (np.zeros((n // 3, 4)) for _ in range(4))
        force[:, :3] = r[:n].reshape(-1, 3)
        rest, pa, qa, answer = r[n:].copy(), *(np.zeros(len(alone)) for _ in range(3))
        every = np.concatenate([blocks, nodes])
        touching = [touches.J.indptr.astype(np.int32), touches.J.indices.astype(np.int32), touches.J.data, bend]
        inputs = [row, column, every, eased, *touching, G, alone, easy, force, p, q, led, rest, pa, qa, answer]
        # NumPy's arrays as they are: there are others in every round.
        flat = [np.ascontiguousarray(one).reshape(-1) for one in inputs]
        wp.launch(iterate_gradients, 1, inputs=[0, MOST, wp.float64(self._share), *flat], device="cpu")
        return np.concatenate([led[:, :3].reshape(-1), answer])


def bearing(touches: Touches, bend: Floats) -> Floats:
    """How stiffly touches that resist so (k, 3, 3) bear each particle or node alone, shape (n, 3, 3)."""
    J = touches.J
    many, count = np.diff(J.indptr), J.shape[1] // 3
    each = np.swapaxes(J.data, 1, 2) @ np.repeat(bend, many, axis=0) @ J.data
    of = csr_array((np.ones(len(each)), (J.indices, np.arange(len(each)))), (count, len(each)))
    return np.asarray(of @ each.reshape(-1, 9)).reshape(-1, 3, 3)
