# mypy: disable-error-code="valid-type,no-untyped-def"
"""Cholesky's factor of the stiffness of a sheet, front by front (physics 13.9).

A front is dense: it gathers the stiffness of its own particles and what fronts below leave to their borders, eliminates
its own, and leaves U = F₂₂ − L₂₁ L₂₁ᵀ to the front above (Duff and Reid 1983). Who is in which front depends on who is
linked with whom alone and is found once; numbers are found anew as often as they change. All is done on the CPU, in
double.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import warp as wp
from numpy.typing import NDArray
from scipy.sparse import csr_array

from phyxel import device as dev
from phyxel.models.particles.dissection import SheetFront, dissected

wp.set_module_options(dev.KERNEL_OPTIONS)

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

WORK = 1.0e-3
"""That a thread of its own is worth, in phyxels of a force pass, of a multiplication."""


@wp.struct
class FrontLists:
    """All fronts, level by level; particles are counted in the order of elimination."""

    own: wp.array(dtype=wp.int32)
    """first particle of each, shape (fronts + 1,)"""
    border: wp.array(dtype=wp.int32)
    """where the list of its border begins, shape (fronts + 1,)"""
    beyond: wp.array(dtype=wp.int32)
    """borders of all, one after the other"""
    place: wp.array(dtype=wp.int32)
    """what each of them is in the front above, counted from its first own particle"""
    below: wp.array(dtype=wp.int32)
    """the first of the two fronts below, -1 of leaves"""
    entry: wp.array(dtype=wp.int32)
    """where the entries of the stiffness in it begin, shape (fronts + 1,)"""
    at: wp.array(dtype=wp.vec2i)
    """row and column of an entry, in particles of its front"""
    factor: wp.array(dtype=wp.int64)
    """where its columns of L begin, shape (fronts,)"""
    left: wp.array(dtype=wp.int64)
    """where its U begins among those of every other level, shape (fronts,)"""


@wp.func_native("""
#if !defined(__CUDA_ARCH__)
    typedef double Four __attribute__((ext_vector_type(4), aligned(8)));
    struct Dense {
        // s -= rows a · rows b over k < n, of three rows each
        static inline void less(double* s, size_t step, const double* a, const double* b, size_t stride, int n) {
            Four sum[9] = {};
            int k = 0;
            for (; k + 4 <= n; k += 4) {
                Four x = *(const Four*)(a + k), y = *(const Four*)(a + stride + k);
                Four z = *(const Four*)(a + 2 * stride + k);
                for (int j = 0; j < 3; ++j) {
                    Four other = *(const Four*)(b + j * stride + k);
                    sum[j] += x * other; sum[3 + j] += y * other; sum[6 + j] += z * other;
                }
            }
            for (int i = 0; i < 3; ++i)
                for (int j = 0; j < 3; ++j) {
                    Four all = sum[3 * i + j];
                    double total = (all.x + all.z) + (all.y + all.w);
                    for (int l = k; l < n; ++l) total += a[i * stride + l] * b[j * stride + l];
                    s[i * step + j] -= total;
                }
        }
    };
    const int own = f.own.data[q + 1] - f.own.data[q], begin = f.border.data[q];
    const int edge = f.border.data[q + 1] - begin;
    const size_t p = 3 * own, b = 3 * edge;
    double* L = L_all.data + f.factor.data[q];
    double* U = put.data + f.left.data[q];
    for (size_t k = 0; k < (p + b) * p; ++k) L[k] = 0.0;
    for (size_t k = 0; k < b * b; ++k) U[k] = 0.0;
    for (int slot = f.entry.data[q]; slot < f.entry.data[q + 1]; ++slot) {
        const double* value = (const double*)(values.data + slot);
        const size_t row = 3 * (size_t)f.at.data[slot].c[0], column = 3 * (size_t)f.at.data[slot].c[1];
        for (int i = 0; i < 3; ++i)
            for (int j = 0; j < 3; ++j) L[(row + i) * p + column + j] = value[3 * i + j];
    }
    for (int child = f.below.data[q]; child >= 0 && child < f.below.data[q] + 2; ++child) {
        const int from = f.border.data[child], count = f.border.data[child + 1] - from;
        const size_t wide = 3 * (size_t)count;
        const double* V = taken.data + f.left.data[child];
        for (int r = 0; r < count; ++r) {
            const int row = f.place.data[from + r];
            for (int c = 0; c <= r; ++c) {
                const int column = f.place.data[from + c];
                double* to = column < own ? L + 3 * (row * p + column) : U + 3 * ((row - own) * b + (column - own));
                const size_t step = column < own ? p : b;
                for (int i = 0; i < 3; ++i)
                    for (int j = 0; j < 3; ++j) to[i * step + j] += V[(3 * r + i) * wide + 3 * c + j];
            }
        }
    }
    for (int r = 0; r < own + edge; ++r) {
        double* row = L + 3 * r * p;
        for (int c = 0; c < own && c <= r; ++c) {
            double* s = row + 3 * c;
            double* pivot = L + 3 * c * p + 3 * c;
            Dense::less(s, p, row, L + 3 * c * p, p, 3 * c);
            if (c < r) {
                for (int i = 0; i < 3; ++i, s += p) {
                    s[0] /= pivot[0];
                    s[1] = (s[1] - s[0] * pivot[p]) / pivot[p + 1];
                    s[2] = (s[2] - s[0] * pivot[2 * p] - s[1] * pivot[2 * p + 1]) / pivot[2 * p + 2];
                }
            } else {
                for (int i = 0; i < 3; ++i)
                    for (int j = 0; j < 3; ++j) {
                        double x = s[i * p + j];
                        for (int k = 0; k < j && j <= i; ++k) x -= s[i * p + k] * s[j * p + k];
                        s[i * p + j] = j < i ? x / s[j * p + j] : j == i ? __builtin_sqrt(x) : 0.0;
                    }
            }
        }
        for (int c = own; c <= r; ++c)
            Dense::less(U + 3 * ((r - own) * b + (c - own)), b, row, L + 3 * c * p, p, (int)p);
    }
#endif
""")
def factor_one(
    f: FrontLists,
    q: int,
    values: wp.array(dtype=wp.mat33d),
    taken: wp.array(dtype=wp.float64),
    put: wp.array(dtype=wp.float64),
    L_all: wp.array(dtype=wp.float64),
):
    """L of one front, rows of its own particles and of its border; and U (physics 13.9). On the CPU only."""


@wp.kernel
def factor_front(
    first: int,
    begin: int,
    f: FrontLists,
    values: wp.array(dtype=wp.mat33d),
    taken: wp.array(dtype=wp.float64),
    put: wp.array(dtype=wp.float64),
    L: wp.array(dtype=wp.float64),
):
    """L of the fronts of a level, from what the level below has left (physics 13.9)."""
    factor_one(f, begin + first + wp.tid(), values, taken, put, L)


@wp.func_native("""
#if !defined(__CUDA_ARCH__)
    typedef double Four __attribute__((ext_vector_type(4), aligned(8)));
    struct Dense {
        static inline double dot(const double* a, const double* b, int n) {
            Four sum = {};
            int k = 0;
            for (; k + 4 <= n; k += 4) sum += *(const Four*)(a + k) * *(const Four*)(b + k);
            double total = (sum.x + sum.z) + (sum.y + sum.w);
            for (; k < n; ++k) total += a[k] * b[k];
            return total;
        }
    };
    for (int q = 0; q < fronts; ++q) {
        const int own = f.own.data[q + 1] - f.own.data[q], begin = f.border.data[q];
        const int edge = f.border.data[q + 1] - begin, p = 3 * own;
        const double* row = L.data + f.factor.data[q];
        double* z = x.data + 3 * (size_t)f.own.data[q];
        for (int i = 0; i < p; ++i, row += p) z[i] = (z[i] - Dense::dot(row, z, i)) / row[i];
        for (int r = 0; r < edge; ++r) {
            double* to = x.data + 3 * (size_t)f.beyond.data[begin + r];
            for (int i = 0; i < 3; ++i, row += p) to[i] -= Dense::dot(row, z, p);
        }
    }
    for (int q = fronts - 1; q >= 0; --q) {
        const int own = f.own.data[q + 1] - f.own.data[q], begin = f.border.data[q];
        const int edge = f.border.data[q + 1] - begin, p = 3 * own;
        double* z = x.data + 3 * (size_t)f.own.data[q];
        const double* row = L.data + f.factor.data[q] + (size_t)p * p;
        for (int r = 0; r < edge; ++r) {
            const double* from = x.data + 3 * (size_t)f.beyond.data[begin + r];
            for (int i = 0; i < 3; ++i, row += p)
                for (int k = 0; k < p; ++k) z[k] -= row[k] * from[i];
        }
        row = L.data + f.factor.data[q] + (size_t)p * p;
        for (int i = p - 1; i >= 0; --i) {
            row -= p;
            z[i] /= row[i];
            for (int k = 0; k < i; ++k) z[k] -= row[k] * z[i];
        }
    }
#endif
""")
def solve_all(f: FrontLists, fronts: int, L: wp.array(dtype=wp.float64), x: wp.array(dtype=wp.float64)):
    """L Lᵀ x = x, forward from the leaves and back. On the CPU only."""


@wp.kernel
def solve_fronts(first: int, fronts: int, f: FrontLists, L: wp.array(dtype=wp.float64), x: wp.array(dtype=wp.float64)):
    """x of L Lᵀ x = r, in the place of r (physics 13.9)."""
    if first + wp.tid() == 0:
        solve_all(f, fronts, L, x)


class Fronts:
    """The factor of a stiffness of blocks of 3 × 3, symmetric each."""

    def __init__(self, X: Floats, joined: csr_array) -> None:
        """Particles at X (n, 3), coupled where `joined` (n, n, symmetric) has an entry."""
        self._cpu = dev.pick("cpu")
        levels = dissected(X, joined)
        fronts = [front for level in levels for front in level]
        self._count = len(fronts)
        self.order = np.concatenate([front.own for front in fronts])
        """particles as they are eliminated, shape (n,)"""
        rank = np.empty(len(X), np.int64)
        rank[self.order] = np.arange(len(X))
        owns, edges = (np.array([len(part) for part in parts]) for parts in _sides(fronts))
        columns = 9 * owns * (owns + edges)
        self.multiplications = float((9.0 * owns * (owns + edges) ** 2).sum())
        """about as many as a factor takes"""
        f: Any = FrontLists()
        f.own, f.border = (self._ints(np.append(0, np.cumsum(sizes))) for sizes in (owns, edges))
        f.beyond = self._ints(np.concatenate([rank[front.border] for front in fronts]))
        f.factor = wp.array(np.cumsum(columns) - columns, dtype=wp.int64, device=self._cpu)
        self._list_entries(f, fronts, rank, joined)
        self._list_levels(f, levels, edges)
        self._L = wp.zeros(int(columns.sum()), dtype=wp.float64, device=self._cpu)
        self._values = wp.zeros(len(self.rows), dtype=wp.mat33d, device=self._cpu)
        self._x = wp.zeros(3 * len(X), dtype=wp.float64, device=self._cpu)
        self._lists = f
        self._factor = dev.Program(self._launches(levels), self._cpu)
        self._solve = dev.Program([dev.Launch(solve_fronts, 1, [self._count, f, self._L, self._x])], self._cpu)

    def _ints(self, values: NDArray[np.integer]) -> wp.array:
        return wp.array(values, dtype=wp.int32, device=self._cpu)

    def _list_entries(self, f: Any, fronts: list[SheetFront], rank: Ints, joined: csr_array) -> None:
        """Which entry of the stiffness goes where: each to the front that eliminates the first of its two."""
        pairs = joined.tocoo()
        row, column = pairs.coords
        once = rank[row] >= rank[column]
        row, column = row[once], column[once]
        of = np.repeat(np.arange(len(fronts)), [len(front.own) for front in fronts])[rank[column]]
        order = np.lexsort((rank[row], rank[column], of))
        row, column, of = row[order], column[order], of[order]
        self.rows, self.columns = row, column
        """the two particles of each entry"""
        starts = np.searchsorted(of, np.arange(len(fronts) + 1))
        first = np.append(0, np.cumsum([len(front.own) for front in fronts]))[:-1]
        at = np.stack([rank[row], rank[column]], axis=1) - first[of][:, None]
        for q, front in enumerate(fronts):
            mine = slice(starts[q], starts[q + 1])
            outside = rank[row[mine]] >= first[q] + len(front.own)
            places = len(front.own) + np.searchsorted(rank[front.border], rank[row[mine]])
            at[mine, 0] = np.where(outside, places, at[mine, 0])
        f.entry = self._ints(starts)
        f.at = wp.array(at, dtype=wp.vec2i, device=self._cpu)

    def _list_levels(self, f: Any, levels: list[list[SheetFront]], edges: Ints) -> None:
        """What fronts leave to those above, and where: levels take turns with two stores."""
        below, left, place, number = [], [], [], 0
        self._room = [1, 1]
        for height, level in enumerate(levels):
            sizes = 9 * edges[number : number + len(level)] ** 2
            left.append(np.cumsum(sizes) - sizes)
            self._room[height % 2] = max(self._room[height % 2], int(sizes.sum()))
            beneath = number - 2 * len(level)
            below += [beneath + front.below[0] if front.below else -1 for front in level]
            for index, front in enumerate(level):
                if height + 1 < len(levels):
                    above = levels[height + 1][index // 2]
                    local = {particle: k for k, particle in enumerate([*above.own, *above.border])}
                    place += [local[particle] for particle in front.border]
            number += len(level)
        f.below, f.place = self._ints(np.array(below)), self._ints(np.array(place))
        f.left = wp.array(np.concatenate(left), dtype=wp.int64, device=self._cpu)

    def _launches(self, levels: list[list[SheetFront]]) -> list[dev.Launch]:
        stores = [wp.zeros(room, dtype=wp.float64, device=self._cpu) for room in self._room]
        launches, number = [], 0
        for height, level in enumerate(levels):
            put, taken = stores[height % 2], stores[1 - height % 2]
            work = WORK * self.multiplications / self._count
            inputs = [number, self._lists, self._values, taken, put, self._L]
            launches.append(dev.Launch(factor_front, len(level), inputs, work))
            number += len(level)
        return launches

    def factor(self, blocks: Floats) -> None:
        """Of the blocks of all entries, shape (entries, 3, 3)."""
        self._values.numpy()[:] = blocks
        self._factor.run()

    def solve(self, r: Floats) -> Floats:
        """What r (n, 3) leads to, shape (n, 3)."""
        x = self._x.numpy()
        x[:] = r[self.order].ravel()
        self._solve.run()
        found = np.empty_like(r)
        found[self.order] = x.reshape(-1, 3)
        return found


def _sides(fronts: list[SheetFront]) -> tuple[list[Ints], list[Ints]]:
    return [front.own for front in fronts], [front.border for front in fronts]
