# mypy: disable-error-code="valid-type,no-untyped-def"
"""Conjugate gradients for the stiffness of sheets, in terms of the blocks of single particles (physics 13.9): where
links are so soft that some √(H D) iterations cost less than a factor. On the CPU, in double.

Touches come on top as they are, Jᵀ(−∂p/∂s)J, of particles and of answers of guests (physics 15.16): who touches whom
changes from round to round, and within one, and nothing is made anew for it."""

from __future__ import annotations

from dataclasses import dataclass

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
FOOTINGS = 5
"""How often a round finds who touches, at most."""


@wp.func_native("""
#if !defined(__CUDA_ARCH__)
    typedef double Four __attribute__((ext_vector_type(4), aligned(8)));
    const double* B = blocks.data;
    const Four* R0 = (const Four*)r0.data;
    Four* X = (Four*)x.data; Four* R = (Four*)r.data; Four* P = (Four*)p.data; Four* Q = (Four*)q.data;
    struct Dense {
        static inline Four row(const double* m) { return *(const Four*)m; }  // a fourth lane that nothing asks for
        // of matrices row by row the transposed times v; of symmetric ones the same as they times v
        static inline Four across(const double* m, Four v) {
            return row(m) * v.x + row(m + 3) * v.y + row(m + 6) * v.z;
        }
        static inline double dot(Four a, Four b) { return a.x * b.x + a.y * b.y + a.z * b.z; }
    };
    const int n = (int)(x.shape[0] / 4), entries = (int)row.shape[0];
    const int touching = (int)gap.shape[0], answers = (int)alone.shape[0];
    double* A = a.data; double* RA = ra.data; double* PA = pa.data; double* QA = qa.data;
    double* M = eased.data; double* E = resists.data;
    // what those push that lean, beyond what all do: p_n = −k s of them alone
    auto expect = [&]() {
        for (int i = 0; i < n; ++i) R[i] = R0[i];
        for (int i = 0; i < answers; ++i) RA[i] = ra0.data[i];
        for (int k = 0; k < touching; ++k) {
            const double* b = bend.data + 9 * (size_t)k;
            for (int i = 0; i < 9; ++i) E[9 * (size_t)k + i] = b[i];
            if (leans.data[k] < 0) continue;  // holds both ways
            if (!leans.data[k]) E[9 * (size_t)k] = 0.0;
            const double now = gap.data[k];
            const double f = scale * b[0] * ((now < 0.0 ? now : 0.0) - (leans.data[k] ? now : 0.0));
            if (f == 0.0) continue;
            const Four push = {f, 0.0, 0.0, 0.0};
            for (int slot = touch.data[k]; slot < touch.data[k + 1]; ++slot)
                R[who.data[slot]] += Dense::across(J.data + 9 * (size_t)slot, push);
            for (int i = 0; i < answers; ++i) RA[i] += f * G.data[3 * (size_t)k * answers + i];
        }
    };
    auto resisting = [&](int k) {
        const double* b = E + 9 * (size_t)k;
        return b[0] != 0.0 || b[4] != 0.0 || b[8] != 0.0;
    };
    // how single particles are eased
    auto ease = [&]() {
        for (int i = 0; i < 9 * n; ++i) M[i] = own.data[i];
        for (int k = 0; k < touching; ++k) {
            if (!resisting(k)) continue;
            const double* b = E + 9 * (size_t)k;
            for (int slot = touch.data[k]; slot < touch.data[k + 1]; ++slot) {
                const double* j = J.data + 9 * (size_t)slot;
                double* m = M + 9 * (size_t)who.data[slot];
                double bj[9];
                for (int r = 0; r < 3; ++r)
                    for (int c = 0; c < 3; ++c)
                        bj[3 * r + c] = b[3 * r] * j[c] + b[3 * r + 1] * j[3 + c] + b[3 * r + 2] * j[6 + c];
                for (int r = 0; r < 3; ++r)
                    for (int c = 0; c < 3; ++c)
                        m[3 * r + c] += j[r] * bj[c] + j[3 + r] * bj[3 + c] + j[6 + r] * bj[6 + c];
            }
        }
        for (int i = 0; i < n; ++i) {
            double* m = M + 9 * (size_t)i;
            const double c0 = m[4] * m[8] - m[5] * m[7], c1 = m[5] * m[6] - m[3] * m[8], c2 = m[3] * m[7] - m[4] * m[6];
            const double over = free.data[i] ? 1.0 / (m[0] * c0 + m[1] * c1 + m[2] * c2) : 0.0;
            const double d[9] = {
                c0, m[2] * m[7] - m[1] * m[8], m[1] * m[5] - m[2] * m[4],
                c1, m[0] * m[8] - m[2] * m[6], m[2] * m[3] - m[0] * m[5],
                c2, m[1] * m[6] - m[0] * m[7], m[0] * m[4] - m[1] * m[3]};
            for (int l = 0; l < 9; ++l) m[l] = over * d[l];
        }
    };
    auto seen = [&](int k, const Four* v, const double* va) {
        Four s = 0.0;
        for (int slot = touch.data[k]; slot < touch.data[k + 1]; ++slot)
            s += Dense::across(turned.data + 9 * (size_t)slot, v[who.data[slot]]);
        const double* g = G.data + 3 * (size_t)k * answers;
        for (int i = 0; i < answers; ++i) {
            s.x += g[i] * va[i];
            s.y += g[answers + i] * va[i];
            s.z += g[2 * answers + i] * va[i];
        }
        return s;
    };
    // q = A p, for the particles and for the answers
    auto multiply = [&]() {
        for (int i = 0; i < n; ++i) Q[i] = 0.0;
        for (int s = 0; s < entries;) {
            const int i = row.data[s];
            const Four v = P[i];
            Four sum = 0.0;
            for (; s < entries && row.data[s] == i; ++s) {
                const int j = column.data[s];
                const double* m = B + 9 * (size_t)s;
                sum += Dense::across(m, P[j]);
                if (i != j) Q[j] += Dense::across(m, v);
            }
            Q[i] += sum;
        }
        for (int i = 0; i < answers; ++i) QA[i] = alone.data[i] * PA[i];
        for (int k = 0; k < touching; ++k) {
            if (!resisting(k)) continue;
            const Four f = Dense::across(E + 9 * (size_t)k, seen(k, P, PA));
            const double* g = G.data + 3 * (size_t)k * answers;
            for (int slot = touch.data[k]; slot < touch.data[k + 1]; ++slot)
                Q[who.data[slot]] += Dense::across(J.data + 9 * (size_t)slot, f);
            for (int i = 0; i < answers; ++i) QA[i] += g[i] * f.x + g[answers + i] * f.y + g[2 * answers + i] * f.z;
        }
    };
    // q, z of r in terms of single particles and of all answers together; r·z
    auto eased_of = [&]() {
        double size = 0.0;
        for (int i = 0; i < n; ++i) {
            Q[i] = Dense::across(M + 9 * (size_t)i, R[i]);
            size += Dense::dot(R[i], Q[i]);
        }
        for (int i = 0; i < answers; ++i) {
            QA[i] = 0.0;
            for (int j = 0; j < answers; ++j) QA[i] += easy.data[i * answers + j] * RA[j];
            size += RA[i] * QA[i];
        }
        return size;
    };
    for (int footing = 0; footing < footings; ++footing) {
        expect();
        ease();
        const double enough = share * share * eased_of();
        for (int i = 0; i < n; ++i) P[i] = X[i];
        for (int i = 0; i < answers; ++i) PA[i] = A[i];
        multiply();
        for (int i = 0; i < n; ++i) R[i] -= Q[i];
        for (int i = 0; i < answers; ++i) RA[i] -= QA[i];
        double left = eased_of();
        for (int i = 0; i < n; ++i) P[i] = Q[i];
        for (int i = 0; i < answers; ++i) PA[i] = QA[i];
        for (int step = 0; step < most && left > enough; ++step) {
            multiply();
            double bent = 0.0;
            for (int i = 0; i < n; ++i) bent += Dense::dot(P[i], Q[i]);
            for (int i = 0; i < answers; ++i) bent += PA[i] * QA[i];
            if (!(bent > 0.0)) break;  // forces so small that their squares are nothing
            const double far = left / bent;
            for (int i = 0; i < n; ++i) {
                X[i] += far * P[i];
                R[i] -= far * Q[i];
            }
            for (int i = 0; i < answers; ++i) {
                A[i] += far * PA[i];
                RA[i] -= far * QA[i];
            }
            const double now = eased_of();
            const double turn = now / left;
            for (int i = 0; i < n; ++i) P[i] = Q[i] + turn * P[i];
            for (int i = 0; i < answers; ++i) PA[i] = QA[i] + turn * PA[i];
            left = now;
        }
        bool same = true;
        for (int k = 0; k < touching; ++k) {
            if (leans.data[k] < 0) continue;
            const int there = gap.data[k] + seen(k, X, A).x / scale < 0.0;
            same = same && there == leans.data[k];
            leans.data[k] = there;
        }
        if (same) break;
    }
#endif
""")
def iterated(
    most: int, footings: int, share: wp.float64, scale: wp.float64, row: int32s, column: int32s, blocks: float64s,
    own: float64s, free: int32s, touch: int32s, who: int32s, J: float64s, turned: float64s, bend: float64s, G: float64s,
    gap: float64s, leans: int32s, alone: float64s, easy: float64s, r0: float64s, ra0: float64s, x: float64s,
    a: float64s, eased: float64s, resists: float64s, r: float64s, p: float64s, q: float64s, ra: float64s, pa: float64s,
    qa: float64s,
):  # fmt: skip
    """x, a of A (x, a) = (r, ra), until √(r·z) is so small a share of what it was, z = r in terms of single particles
    and of all answers together; then again, as those lean that it leads to. On the CPU only."""


@wp.kernel
def iterate_gradients(
    first: int,
    most: int, footings: int, share: wp.float64, scale: wp.float64, row: int32s, column: int32s, blocks: float64s,
    own: float64s, free: int32s, touch: int32s, who: int32s, J: float64s, turned: float64s, bend: float64s, G: float64s,
    gap: float64s, leans: int32s, alone: float64s, easy: float64s, r0: float64s, ra0: float64s, x: float64s,
    a: float64s, eased: float64s, resists: float64s, r: float64s, p: float64s, q: float64s, ra: float64s, pa: float64s,
    qa: float64s,
):  # fmt: skip
    """x, a of A (x, a) = (r, ra), and who leans there (physics 13.9, 15.16)."""
    if first + wp.tid() == 0:
        iterated(
            most,
            footings,
            share,
            scale,
            row,
            column,
            blocks,
            own,
            free,
            touch,
            who,
            J,
            turned,
            bend,
            G,
            gap,
            leans,
            alone,
            easy,
            r0,
            ra0,
            x,
            a,
            eased,
            resists,
            r,
            p,
            q,
            ra,
            pa,
            qa,
        )


@dataclass(frozen=True)
class Resisting:
    """Touches in a round."""

    touches: Touches
    s: Floats
    """[m], shape (k, 3)"""
    bend: Floats
    """−∂p/∂s/σ [N/m] of all if they lean, shape (k, 3, 3)"""
    leans: NDArray[np.bool_]
    """those that may, at first, shape (k,)"""
    scale: float
    """σ"""

    @staticmethod
    def none(particles: int) -> Resisting:
        """Nothing touches so many."""
        touches = Touches.none(particles, 0)
        return Resisting(touches, touches.offset, touches.axes, touches.ties, 1.0)


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
        free = np.ones(3 * self._n, bool)
        return self.touched(blocks, free, r.reshape(-1), Resisting.none(self._n), np.zeros(0)).reshape(-1, 3)

    def touched(
        self, blocks: Floats, free: NDArray[np.bool_], r: Floats, resisting: Resisting, alone: Floats
    ) -> Floats:
        """The same of what is `free` (q,), which r (q,) acts on: particles, and behind them nodes and answers of
        guests, which have an inertia of `alone` (q - 3n,). Who touches is found with it, from those that may on: those
        that it leads there, and no others."""
        touches, bend = resisting.touches, resisting.bend
        n = touches.J.shape[1]
        nodes = alone[: n - 3 * self._n].reshape(-1, 3)[:, :, None] * np.eye(3)
        behind = np.arange(self._n, n // 3, dtype=np.int32)
        row, column = (np.append(one, behind) for one in self._pairs)
        own = np.concatenate([np.zeros((self._n, 3, 3)), nodes])
        own[self._whose] = blocks[self._own]
        alone = alone[3 * len(nodes) :].astype(np.float64)
        leans = np.where(touches.ties, -1, resisting.leans).astype(np.int32)
        acts = np.flatnonzero(leans)
        G = np.ascontiguousarray(touches.G).reshape(len(bend), 3, len(alone))
        easy = np.diag(alone)
        if len(alone):
            easy = np.linalg.inv(easy + np.einsum("kai,kaj->ij", G[acts], bend[acts] @ G[acts]))
        force, led = np.zeros((n // 3, 4)), np.zeros((n // 3, 4))
        force[:, :3] = r[:n].reshape(-1, 3)
        answer, J = np.zeros(len(alone)), touches.J
        inputs = [
            row, column, _beyond(blocks, nodes), own, free[:n:3].astype(np.int32),
            J.indptr.astype(np.int32), J.indices.astype(np.int32), _beyond(J.data), _beyond(J.data.swapaxes(1, 2)),
            bend, G, resisting.s[:, 0], leans, alone, easy, force, r[n:], led, answer,
            np.empty(own.size + 1), np.empty(bend.size + 1),
            *(np.empty_like(force) for _ in range(3)), *(np.empty_like(answer) for _ in range(3)),
        ]  # fmt: skip
        # NumPy's arrays as they are: there are others in every round.
        flat = [np.ascontiguousarray(one).reshape(-1) for one in inputs]
        numbers = [0, MOST, FOOTINGS, wp.float64(self._share), wp.float64(resisting.scale)]
        wp.launch(iterate_gradients, 1, inputs=[*numbers, *flat], device="cpu")
        return np.concatenate([led[:, :3].reshape(-1), answer])


def _beyond(*blocks: Floats) -> Floats:
    """Blocks of 3 × 3 one after the other, and a number more: rows are read by four."""
    return np.concatenate([*(one.reshape(-1) for one in blocks), np.zeros(1)])


def bearing(touches: Touches, bend: Floats) -> Floats:
    """How stiffly touches that resist so (k, 3, 3) bear each particle or node alone, shape (n, 3, 3)."""
    J = touches.J
    many, count = np.diff(J.indptr), J.shape[1] // 3
    each = np.swapaxes(J.data, 1, 2) @ np.repeat(bend, many, axis=0) @ J.data
    of = csr_array((np.ones(len(each)), (J.indices, np.arange(len(each)))), (count, len(each)))
    return np.asarray(of @ each.reshape(-1, 9)).reshape(-1, 3, 3)
