# mypy: disable-error-code="valid-type,no-untyped-def"
"""Links as they lie in memory, so that eight particles, or eight elements, go abreast, and their pull (physics 13.2).

Positions are subtracted in double: what they have in common is lost exactly there. Springs go on so, as they may be
stiff; the pull of bending, as all that iterations only correct, needs no more than single precision.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import warp as wp
from numpy.typing import NDArray

from phyxel import device as dev
from phyxel.mls.neighbours import curve_order
from phyxel.models.particles.elements import Elements

wp.set_module_options(dev.KERNEL_OPTIONS)

Floats = NDArray[np.float64]
Ints = NDArray[np.integer]

ABREAST = wp.constant(8)
"""Particles or elements that a CPU thread takes at once, as wide as its widest registers."""
SORTED_TOGETHER = 64
"""Particles along a curve that may change their order."""
mat38d = wp.types.matrix((3, 8), wp.float64)


@wp.struct
class LinkSprings:
    """The springs of each particle: a spring is listed at both of its ends. Eight particles share rows of eight, one
    spring of each, as many as one of them needs; without a spring there is one of no stiffness to itself."""

    first: wp.array(dtype=wp.int32)
    """first row of each eight, shape (eights + 1,)"""
    other: wp.array(dtype=wp.int32)
    rest: wp.array(dtype=wp.float64)
    k: wp.array(dtype=float)


@wp.struct
class Bends:
    """Elements of three to six particles, in eights, and which of them each particle is part of."""

    wide: int
    """corners that each has, or has room for"""
    corner: wp.array(dtype=wp.int32)
    """the first corners of eight, the second, .. the last; the first again where there is none"""
    weight: wp.array(dtype=float)
    """c of corners in the same order; that of the first is what makes the sum zero, and is not looked at"""
    rest: wp.array(dtype=float)
    k: wp.array(dtype=float)
    f: wp.array(dtype=wp.vec4)
    """its pull k (1 − r/|e|) e"""
    first: wp.array(dtype=wp.int32)
    """where the list of elements of a particle begins, shape (particles + 1,)"""
    element: wp.array(dtype=wp.int32)
    share: wp.array(dtype=float)
    """−c of that particle in it"""


@wp.func_native("""
#if !defined(__CUDA_ARCH__)
    typedef float Four __attribute__((ext_vector_type(4), aligned(4)));
    const Four* from = (const Four*)values.data;
    Four even = {}, odd = {};
    int slot = begin;
    for (; slot + 1 < end; slot += 2) {
        even += share.data[slot] * from[index.data[slot]];
        odd += share.data[slot + 1] * from[index.data[slot + 1]];
    }
    if (slot < end) even += share.data[slot] * from[index.data[slot]];
    even += odd;
    return wp::vec_t<4, float>(even.x, even.y, even.z, even.w);
#else
    wp::vec_t<4, float> total;
    for (int slot = begin; slot < end; ++slot) {
        const float4 value = *(const float4*)(values.data + index.data[slot]);
        total[0] += share.data[slot] * value.x;
        total[1] += share.data[slot] * value.y;
        total[2] += share.data[slot] * value.z;
    }
    return total;
#endif
""")
def gathered(
    begin: int, end: int, index: wp.array(dtype=wp.int32), share: wp.array(dtype=float), values: wp.array(dtype=wp.vec4)
) -> wp.vec4:
    """Σ share · values[index] over a part of a list."""


@wp.func
def spring_pull(k: wp.float64, rest: wp.float64, e: wp.vec3d) -> wp.vec3d:
    """k (1 − r/|e|) e (physics 13.2); a spring of no length pulls nowhere."""
    length = wp.length(e)
    if length == wp.float64(0.0):
        return wp.vec3d()
    return (k * (wp.float64(1.0) - rest / length)) * e


@wp.func
def bend_pull(k: float, rest: float, e: wp.vec3) -> wp.vec4:
    """The same in single precision."""
    length = wp.length(e)
    if length == 0.0:
        return wp.vec4()
    f = (k * (1.0 - rest / length)) * e
    return wp.vec4(f[0], f[1], f[2], 0.0)


@wp.func
def springs_of(springs: LinkSprings, i: int, alone: int, give: wp.array(dtype=float), y: wp.array(dtype=wp.vec3d)):
    """Pull of all springs of a particle (physics 13.2); `alone` (0, 1): each softer by what its ends give."""
    P = wp.vec3d()
    block = i // ABREAST
    for row in range(springs.first[block], springs.first[block + 1]):
        slot = row * ABREAST + i % ABREAST
        j = springs.other[slot]
        k = springs.k[slot] / (1.0 + float(alone) * springs.k[slot] * (give[i] + give[j]))
        P -= spring_pull(wp.float64(k), springs.rest[slot], y[i] - y[j])
    return P


@wp.func_native("""
    wp::mat_t<3, 8, double> total;
#if !defined(__CUDA_ARCH__)
    typedef double Eight __attribute__((ext_vector_type(8), aligned(8)));
    typedef float Floats __attribute__((ext_vector_type(8), aligned(4)));
    const double* at = (const double*)y.data;
    const double* own = at + 24 * (size_t)block;
    Eight x, y_, z, P[3] = {};
    for (int lane = 0; lane < 8; ++lane) {
        x[lane] = own[3 * lane];
        y_[lane] = own[3 * lane + 1];
        z[lane] = own[3 * lane + 2];
    }
    for (int row = springs.first.data[block]; row < springs.first.data[block + 1]; ++row) {
        const int* there = springs.other.data + 8 * (size_t)row;
        Eight ex, ey, ez;
        for (int lane = 0; lane < 8; ++lane) {
            const double* place = at + 3 * (size_t)there[lane];
            ex[lane] = place[0];
            ey[lane] = place[1];
            ez[lane] = place[2];
        }
        ex -= x;
        ey -= y_;
        ez -= z;
        Eight square = ex * ex + ey * ey + ez * ez;
        square = __builtin_elementwise_max(square, (Eight)1e-300);  // no length: pulls nowhere
        Floats single = *(const Floats*)(springs.k.data + 8 * (size_t)row);
        if (alone) {
            Floats far;
            for (int lane = 0; lane < 8; ++lane) far[lane] = give.data[there[lane]];
            single /= 1.0f + single * (far + *(const Floats*)(give.data + 8 * (size_t)block));
        }
        Eight stiff = __builtin_convertvector(single, Eight);
        Eight length = *(const Eight*)(springs.rest.data + 8 * (size_t)row);
        Eight share = stiff - stiff * length / __builtin_elementwise_sqrt(square);
        P[0] += share * ex;
        P[1] += share * ey;
        P[2] += share * ez;
    }
    __builtin_memcpy(&total, P, sizeof(total));
#endif
    return total;
""")
def springs_abreast(
    springs: LinkSprings, block: int, alone: int, give: wp.array(dtype=float), y: wp.array(dtype=wp.vec3d)
) -> mat38d:
    """`springs_of` eight particles, one in each column. On the CPU only."""


@wp.func
def bent(bends: Bends, i: int) -> wp.vec4:
    """Pull of all elements of more than two particles."""
    return gathered(bends.first[i], bends.first[i + 1], bends.element, bends.share, bends.f)


@wp.func
def corner_of(bends: Bends, b: int, a: int) -> int:
    """Where corner a of an element is listed, and its weight."""
    return b // ABREAST * (bends.wide * ABREAST) + a * ABREAST + b % ABREAST


@wp.func
def stretch(bends: Bends, b: int, y: wp.array(dtype=wp.vec3d)) -> wp.vec3:
    """e = Σ_a c_a y_a = Σ_a c_a (y_a − y_0)."""
    e = wp.vec3()
    base = y[bends.corner[corner_of(bends, b, 0)]]
    for a in range(1, bends.wide):
        slot = corner_of(bends, b, a)
        e += bends.weight[slot] * wp.vec3(y[bends.corner[slot]] - base)
    return e


@wp.func
def bend_one(bends: Bends, b: int, alone: int, give: wp.array(dtype=float), y: wp.array(dtype=wp.vec3d)):
    """f of one element of more than two particles (physics 13.2); `alone` (0, 1): softer by what its particles give."""
    given = float(0.0)
    for a in range(bends.wide):
        slot = corner_of(bends, b, a)
        given += wp.abs(bends.weight[slot]) * give[bends.corner[slot]]
    k = bends.k[b] / (1.0 + float(alone) * bends.k[b] * given)
    bends.f[b] = bend_pull(k, bends.rest[b], stretch(bends, b, y))


@wp.func_native("""
#if !defined(__CUDA_ARCH__)
    typedef double Eight __attribute__((ext_vector_type(8), aligned(8)));
    typedef float Floats __attribute__((ext_vector_type(8), aligned(4)));
    const double* at = (const double*)y.data;
    const int* corners = bends.corner.data + 8 * bends.wide * (size_t)block;
    const Floats* weights = (const Floats*)(bends.weight.data + 8 * bends.wide * (size_t)block);
    Floats e[3] = {};
    Eight base[3], tip[3];
    for (int a = 0; a < bends.wide; ++a) {
        for (int lane = 0; lane < 8; ++lane) {
            const double* place = at + 3 * (size_t)corners[8 * a + lane];
            for (int axis = 0; axis < 3; ++axis) tip[axis][lane] = place[axis];
        }
        for (int axis = 0; axis < 3; ++axis) {
            if (a == 0) base[axis] = tip[axis];
            else e[axis] += weights[a] * __builtin_convertvector(tip[axis] - base[axis], Floats);
        }
    }
    Floats square = e[0] * e[0] + e[1] * e[1] + e[2] * e[2];
    square = __builtin_elementwise_max(square, (Floats)1e-36f);  // no length: pulls nowhere
    Floats stiff = *(const Floats*)(bends.k.data + 8 * (size_t)block);
    if (alone) {
        Floats given = {};
        for (int a = 0; a < bends.wide; ++a)
            for (int lane = 0; lane < 8; ++lane)
                given[lane] += __builtin_fabsf(weights[a][lane]) * give.data[corners[8 * a + lane]];
        stiff /= 1.0f + stiff * given;
    }
    Floats length = *(const Floats*)(bends.rest.data + 8 * (size_t)block);
    Floats share = stiff - stiff * length / __builtin_elementwise_sqrt(square);
    for (int axis = 0; axis < 3; ++axis) e[axis] *= share;
    float* out = (float*)(bends.f.data + 8 * (size_t)block);
    for (int lane = 0; lane < 8; ++lane)
        for (int axis = 0; axis < 3; ++axis) out[4 * lane + axis] = e[axis][lane];
#endif
""")
def bends_abreast(bends: Bends, block: int, alone: int, give: wp.array(dtype=float), y: wp.array(dtype=wp.vec3d)):
    """`bend_one` of eight. On the CPU only."""


def along_a_curve(X: Floats, elements: Elements) -> NDArray[np.int64]:
    """Particles along a curve, and by the number of their springs within short pieces of it: eights of equal ones have
    the fewest rows."""
    order = curve_order(X)
    pairs = elements.index[elements.index[:, 2] < 0, :2]
    links = np.bincount(pairs.ravel(), minlength=len(order))[order]
    return order[np.lexsort((links, np.arange(len(order)) // SORTED_TOGETHER))]


def starts(particles: Ints, count: int) -> NDArray[np.int64]:
    """Where the list of each particle begins, (count + 1,)."""
    return np.concatenate([[0], np.cumsum(np.bincount(particles, minlength=count))])


class Listed:
    """All links of n particles as lists on the device."""

    def __init__(self, elements: Elements, n: int, device: wp.Device) -> None:
        two = elements.index[:, 2] < 0
        self._spring, bends = np.flatnonzero(two), np.flatnonzero(~two)
        self._bend = bend = bends[np.argsort(elements.index[bends].max(axis=1), kind="stable")]
        """in the order of their particles, who look for them"""
        self._device = device
        self.springs = self._listed_springs(elements.index[two, :2], elements.rest[two], n)
        self.bends = self._listed_bends(elements.index[bend], elements.weight[bend], elements.rest[bend], n)

    @property
    def bend_count(self) -> int:
        return len(self._bend)

    def _array(self, values: NDArray[Any], dtype: Any) -> wp.array:
        return wp.array(values, dtype=dtype, device=self._device)

    def _listed_springs(self, pairs: Ints, rest: Floats, n: int) -> Any:
        ends, others = pairs.T.ravel(), pairs[:, ::-1].T.ravel()
        order = np.argsort(ends, kind="stable")
        ends, others = ends[order], others[order]
        blocks = -(-n // int(ABREAST))
        begin = starts(ends, n)
        most = np.pad(np.diff(begin), (0, blocks * int(ABREAST) - n)).reshape(blocks, -1).max(axis=1)
        first = np.append(0, np.cumsum(most))
        rank = np.arange(len(ends)) - begin[ends]
        self._place = int(ABREAST) * (first[ends // int(ABREAST)] + rank) + ends % int(ABREAST)
        self._number = order % max(len(pairs), 1)
        """which spring is where in the list"""
        lanes = np.arange(blocks * int(ABREAST)).reshape(blocks, -1)
        other = np.repeat(lanes, most, axis=0).ravel()
        other[self._place] = others
        length = np.ones(len(other))
        length[self._place] = rest[self._number]
        springs: Any = LinkSprings()
        springs.first, springs.other = self._array(first, wp.int32), self._array(other, wp.int32)
        springs.rest = self._array(length, wp.float64)
        springs.k = wp.zeros(len(other), dtype=float, device=self._device)
        return springs

    def _listed_bends(self, index: Ints, weight: Floats, rest: Floats, n: int) -> Any:
        known = index >= 0
        count = len(index)
        full = (-count) % int(ABREAST)
        bends: Any = Bends()
        bends.wide = wide = max(int(known.any(axis=0).sum()), 1)

        def eights(values: NDArray[Any]) -> NDArray[Any]:
            padded = np.pad(values[:, :wide], ((0, full), (0, 0)))
            return padded.reshape(-1, int(ABREAST), wide).transpose(0, 2, 1).ravel()

        bends.corner = self._array(eights(np.where(known, index, index[:, :1])), wp.int32)
        bends.weight = self._array(eights(weight), float)
        bends.rest = self._array(np.pad(rest, (0, full)), float)
        bends.k = wp.zeros(count + full, dtype=float, device=self._device)
        bends.f = wp.zeros(count + full, dtype=wp.vec4, device=self._device)
        order = np.argsort(index[known], kind="stable")
        bends.first = self._array(starts(index[known], n), wp.int32)
        bends.element = self._array(np.nonzero(known)[0][order], wp.int32)
        bends.share = self._array(-weight[known][order], float)
        return bends

    def set_stiffness(self, k: Floats) -> None:
        """k [N/m] of each element, shape (E,)."""
        listed = np.zeros(len(self.springs.k), np.float32)
        listed[self._place] = k[self._spring][self._number]
        self.springs.k.assign(listed)
        self.bends.k.assign(np.pad(k[self._bend], (0, len(self.bends.k) - len(self._bend))).astype(np.float32))
