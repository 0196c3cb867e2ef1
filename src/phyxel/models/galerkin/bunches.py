# mypy: disable-error-code="valid-type,no-untyped-def"
"""Points of a quadrature eight at a time: those next to each other feel nearly the same nodes, and a bunch of them
takes each of these once, for all eight side by side, as vector units do.

Gradients of fields and forces of stresses take by far the most of a Galerkin step. They are in double where a force is
found; where conjugate gradients ask how it changes, which they need not know better than to a thousandth, slopes and
sums over a bunch are in single precision, of what its nodes do beside the first of them: what they do together makes
no gradient.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import warp as wp

from phyxel import device as dev
from phyxel.device import Launch, entries, float32s, float64s, int32s, mat33ds, vec3ds
from phyxel.models.galerkin.point_functions import PointFunctions

wp.set_module_options(dev.KERNEL_OPTIONS)

ABREAST = 8
"""Points of a bunch."""
LANES = wp.constant(ABREAST)
NOBODY = wp.constant(2**31 - 1)
"""A number above all nodes'."""


@wp.func
def begin_of(start: int32s, b: int, k: int):
    """Where the list of the k-th point of a bunch begins; of one that is not there, where all of them end."""
    return start[wp.min(LANES * b + k, start.shape[0] - 1)]


@wp.func
def heads_of(start: int32s, b: int):
    """Where the lists of its points begin."""
    heads = wp.vector(dtype=wp.int32, length=LANES)
    for k in range(LANES):
        heads[k] = begin_of(start, b, k)
    return heads


@wp.func
def next_node(start: int32s, node: int32s, b: int, head: Any):
    """The least node on what is left of these lists, from `head` on."""
    least = NOBODY
    for k in range(LANES):
        if head[k] < begin_of(start, b, k + 1):
            least = wp.min(least, node[head[k]])
    return least


@wp.func
def has_next(start: int32s, node: int32s, b: int, k: int, head: int, J: int):
    """Whether node J is the next one on the k-th list, if there is one."""
    if head < begin_of(start, b, k + 1):
        return node[head] == J
    return False


@wp.kernel
def count_nodes(first: int, start: int32s, node: int32s, count: int32s):
    """How many nodes the points of each bunch feel."""
    b = first + wp.tid()
    head = heads_of(start, b)
    total = int(0)
    J = next_node(start, node, b, head)
    while J < NOBODY:
        for k in range(LANES):
            if has_next(start, node, b, k, head[k], J):
                head[k] += 1
        total += 1
        J = next_node(start, node, b, head)
    count[b] = total


@wp.kernel
def lay_slopes(first: int, start: int32s, node: int32s, dphi: vec3ds, begin: int32s, felt: int32s, slope: entries):
    """The nodes that each bunch feels, ascending, and ∇φ of them at its points: eight numbers along each axis."""
    b = first + wp.tid()
    head = heads_of(start, b)
    for entry in range(begin[b], begin[b + 1]):
        J = next_node(start, node, b, head)
        felt[entry] = J
        for k in range(LANES):
            g = wp.vec3d()
            if has_next(start, node, b, k, head[k], J):
                g = dphi[head[k]]
                head[k] += 1
            for c in range(3):
                slope[LANES * (3 * entry + c) + k] = slope.dtype(g[c])


@wp.func_native("""
    typedef decltype(slope.data[0] * slope.data[0]) Real;
    const int points = gradient.shape[0];
    const double* about = (const double*)(u.data + felt.data[begin]);
#if !defined(__CUDA_ARCH__)
    typedef Real Eight __attribute__((ext_vector_type(8), aligned(sizeof(Real))));
    Eight sum[9] = {};
#else
    Real sum[9][8] = {};
#endif
    for (int entry = begin; entry < end; ++entry) {
        const double* at = (const double*)(u.data + felt.data[entry]);
        const Real* g = slope.data + 24 * (size_t)entry;
        for (int a = 0; a < 3; ++a) {
            const Real way = (Real)(at[a] - about[a]);
            for (int c = 0; c < 3; ++c) {
#if !defined(__CUDA_ARCH__)
                sum[3 * a + c] += way * ((const Eight*)g)[c];
#else
                for (int k = 0; k < 8; ++k) sum[3 * a + c][k] += way * g[8 * c + k];
#endif
            }
        }
    }
    for (int k = 0; k < 8 && 8 * b + k < points; ++k) {
        double* J = (double*)(gradient.data + 8 * b + k);
        for (int i = 0; i < 9; ++i) J[i] = (double)sum[i][k] + (i % 4 == 0 ? identity : 0.0f);
    }
""")
def sum_gradients(
    b: int, begin: int, end: int, felt: int32s, slope: Any, identity: float, u: vec3ds, gradient: mat33ds
):
    """Σ_I u_I ⊗ ∇φ_I of the points of one bunch; the compiler would not make vectors of sums side by side."""


@wp.kernel
def find_gradients(
    first: int, begin: int32s, felt: int32s, slope: entries, identity: float, u: vec3ds, gradient: mat33ds
):
    """Σ_I u_I ⊗ ∇φ_I (G04 eq. 17) at the points of each bunch, and I as often as `identity` says."""
    b = first + wp.tid()
    sum_gradients(b, begin[b], begin[b + 1], felt, slope, identity, u, gradient)


@wp.func_native("""
    typedef decltype(slope.data[0] * slope.data[0]) Real;
    const int points = stress.shape[0];
#if !defined(__CUDA_ARCH__)
    typedef Real Eight __attribute__((ext_vector_type(8), aligned(sizeof(Real))));
    Eight P[9] = {};
#else
    Real P[9][8] = {};
#endif
    for (int k = 0; k < 8 && 8 * b + k < points; ++k) {
        const double* own = (const double*)(stress.data + 8 * b + k);
        for (int i = 0; i < 9; ++i) P[i][k] = (Real)own[i];
    }
    for (int entry = begin; entry < end; ++entry) {
        const Real* g = slope.data + 24 * (size_t)entry;
        double* into = (double*)(part.data + entry);
        for (int a = 0; a < 3; ++a) {
#if !defined(__CUDA_ARCH__)
            const Eight* G = (const Eight*)g;
            const Eight f = P[3 * a] * G[0] + P[3 * a + 1] * G[1] + P[3 * a + 2] * G[2];
#else
            Real f[8];
            for (int k = 0; k < 8; ++k)
                f[k] = P[3 * a][k] * g[k] + P[3 * a + 1][k] * g[8 + k] + P[3 * a + 2][k] * g[16 + k];
#endif
            const double sum = (double)(((f[0] + f[4]) + (f[2] + f[6])) + ((f[1] + f[5]) + (f[3] + f[7])));
            into[a] = more ? into[a] + sum : sum;
        }
    }
""")
def press_nodes(b: int, begin: int, end: int, slope: Any, stress: mat33ds, more: bool, part: vec3ds):
    """Σ_q P_q ∇φ_I(q) over the points of one bunch, for each of its nodes."""


@wp.kernel
def press(first: int, begin: int32s, slope: entries, stress: mat33ds, more: bool, part: vec3ds):
    """What each bunch has of Σ_q P_q ∇φ_I(q) (physics 10.3); on top of what there is, if it is to be more."""
    b = first + wp.tid()
    press_nodes(b, begin[b], begin[b + 1], slope, stress, more, part)


BENDS = wp.constant(18)
"""Numbers that say how a point's stress changes: J, the stress S that turns, and three factors."""


@wp.func_native("""
#if !defined(__CUDA_ARCH__)
    typedef float Eight __attribute__((ext_vector_type(8), aligned(4)));
#else
    struct Eight {
        float v[8];
        float& operator[](int k) { return v[k]; }
        float operator[](int k) const { return v[k]; }
        Eight operator+(const Eight& b) const { Eight c; for (int k = 0; k < 8; ++k) c.v[k] = v[k] + b.v[k]; return c; }
        Eight operator-(const Eight& b) const { Eight c; for (int k = 0; k < 8; ++k) c.v[k] = v[k] - b.v[k]; return c; }
        Eight operator*(const Eight& b) const { Eight c; for (int k = 0; k < 8; ++k) c.v[k] = v[k] * b.v[k]; return c; }
        Eight operator*(float b) const { Eight c; for (int k = 0; k < 8; ++k) c.v[k] = v[k] * b; return c; }
        Eight& operator+=(const Eight& b) { for (int k = 0; k < 8; ++k) v[k] += b.v[k]; return *this; }
    };
#endif
    const int points = law.shape[0];
    const double* about = (const double*)(u.data + felt.data[begin]);
    Eight dJ[9] = {}, P[9] = {}, cof[9], dcof[9], e[6], dS[6] = {};
    for (int entry = begin; entry < end; ++entry) {
        const double* at = (const double*)(u.data + felt.data[entry]);
        const Eight* g = (const Eight*)slope.data + 3 * (size_t)entry;
        for (int a = 0; a < 3; ++a) {
            const float way = (float)(at[a] - about[a]);
            for (int c = 0; c < 3; ++c) dJ[3 * a + c] += g[c] * way;
        }
    }
    const Eight* J = (const Eight*)bends.data + 18 * (size_t)b;
    const Eight *S = J + 9, scale = J[15], swelling = J[16], pressure = J[17];
    const int strain[6] = {0, 4, 8, 5, 2, 1}, symmetric[9] = {0, 5, 4, 5, 1, 3, 4, 3, 2};
    for (int i = 0; i < 6; ++i) {
        const int c = strain[i] / 3, d = strain[i] % 3;
        e[i] = J[c] * dJ[d] + J[3 + c] * dJ[3 + d] + J[6 + c] * dJ[6 + d];
        if (i > 2) e[i] += J[d] * dJ[c] + J[3 + d] * dJ[3 + c] + J[6 + d] * dJ[6 + c];
    }
    bool alike = 8 * b + 8 <= points;
    for (int k = 1; k < 8 && alike; ++k) alike = law.data[8 * b + k] == law.data[8 * b];
    for (int i = 0; i < 6; ++i)
        for (int j = 0; j < 6; ++j)
            if (alike)
                dS[i] += e[j] * stiffness.data[36 * law.data[8 * b] + 6 * i + j];
            else
                for (int k = 0; k < 8 && 8 * b + k < points; ++k)
                    dS[i][k] = dS[i][k] + e[j][k] * stiffness.data[36 * law.data[8 * b + k] + 6 * i + j];
    for (int i = 0; i < 6; ++i) dS[i] = dS[i] * scale;
    for (int a = 0; a < 3; ++a)
        for (int c = 0; c < 3; ++c) {
            const int a1 = (a + 1) % 3, a2 = (a + 2) % 3, c1 = (c + 1) % 3, c2 = (c + 2) % 3;
            const Eight *x = J + 3 * a1, *y = J + 3 * a2;
            const Eight *dx = dJ + 3 * a1, *dy = dJ + 3 * a2;
            cof[3 * a + c] = x[c1] * y[c2] - x[c2] * y[c1];
            dcof[3 * a + c] = dx[c1] * y[c2] - dx[c2] * y[c1] + x[c1] * dy[c2] - x[c2] * dy[c1];
        }
    Eight swell = {};
    for (int i = 0; i < 9; ++i) swell += cof[i] * dJ[i];
    for (int k = 0; k < 8 && 8 * b + k < points; ++k) swollen.data[8 * b + k] = (double)swell[k];
    swell = swell * swelling;
    for (int a = 0; a < 3; ++a)
        for (int c = 0; c < 3; ++c) {
            Eight sum = cof[3 * a + c] * swell + dcof[3 * a + c] * pressure;
            for (int d = 0; d < 3; ++d)
                sum += J[3 * a + d] * dS[symmetric[3 * d + c]] + dJ[3 * a + d] * S[symmetric[3 * d + c]];
            P[3 * a + c] = sum;
        }
    for (int entry = begin; entry < end; ++entry) {
        const Eight* g = (const Eight*)slope.data + 3 * (size_t)entry;
        double* into = (double*)(part.data + entry);
        for (int a = 0; a < 3; ++a) {
            const Eight f = P[3 * a] * g[0] + P[3 * a + 1] * g[1] + P[3 * a + 2] * g[2];
            into[a] = (double)(((f[0] + f[4]) + (f[2] + f[6])) + ((f[1] + f[5]) + (f[3] + f[7])));
        }
    }
""")
def bend_bunch(
    b: int,
    begin: int,
    end: int,
    felt: int32s,
    slope: float32s,
    u: vec3ds,
    law: int32s,
    stiffness: float32s,
    bends: float32s,
    swollen: float64s,
    part: vec3ds,
):
    """Σ_q δP_q ∇φ_I(q) over the points of one bunch, with w δP = J δS + δJ S + cof J (f cof J : δJ) + p δcof J; and
    cof J : δJ."""


@wp.kernel
def bend(
    first: int,
    begin: int32s,
    felt: int32s,
    slope: float32s,
    u: vec3ds,
    law: int32s,
    stiffness: float32s,
    bends: float32s,
    swollen: float64s,
    part: vec3ds,
):
    """What each bunch has of the change of the force along a field u (physics 3.4, 10.3), all in one go: slopes are
    read once; and how each point swells, cof J : δJ."""
    b = first + wp.tid()
    bend_bunch(b, begin[b], begin[b + 1], felt, slope, u, law, stiffness, bends, swollen, part)


@wp.kernel
def gather(first: int, start_of_node: int32s, entry: int32s, part: vec3ds, total: vec3ds):
    """Σ_q P_q ∇φ_I(q) of each node (physics 10.3), of what its bunches have of it."""
    I = first + wp.tid()
    sum = wp.vec3d()
    for k in range(start_of_node[I], start_of_node[I + 1]):
        sum += part[entry[k]]
    total[I] = sum


class Bunches:
    """All points of a body, in bunches of eight that follow each other."""

    def __init__(self, functions: PointFunctions) -> None:
        lists, pairs = functions.lists, functions.pairs
        points, nodes = lists.shape
        self._device, self._count, self._nodes = lists.device, -(-points // ABREAST), nodes
        count = wp.zeros(self._count, dtype=wp.int32, device=self._device)
        dev.launch(count_nodes, self._count, [pairs.start, pairs.node, count], self._device)
        begin = np.concatenate([[0], np.cumsum(count.numpy())])
        size = int(begin[-1])
        self._begin = wp.array(begin, dtype=wp.int32, device=self._device)
        self._felt = wp.zeros(size, dtype=wp.int32, device=self._device)
        self._slopes, self._rough = (
            wp.zeros(3 * ABREAST * size, dtype=real, device=self._device) for real in (wp.float64, wp.float32)
        )
        """∇φ in double and in single precision"""
        self._part = wp.zeros(size, dtype=wp.vec3d, device=self._device)
        self.follow(functions)
        felt = self._felt.numpy()
        entry = np.argsort(felt, kind="stable")
        start = np.searchsorted(felt[entry], np.arange(nodes + 1))
        self._of_nodes = [wp.array(part, dtype=wp.int32, device=self._device) for part in (start, entry)]

    def follow(self, functions: PointFunctions) -> None:
        """∇φ are others now, of the same pairs."""
        pairs = functions.pairs
        for slope in (self._slopes, self._rough):
            inputs = [pairs.start, pairs.node, pairs.dphi, self._begin, self._felt, slope]
            dev.launch(lay_slopes, self._count, inputs, self._device)

    def gradients(self, identity: float, u: wp.array, into: wp.array) -> Launch:
        """Σ_I u_I ⊗ ∇φ_I of a field u, and I as often as `identity` says, at the points."""
        about = [self._begin, self._felt, self._slopes]
        return Launch(find_gradients, self._count, [*about, identity, u, into], self._work)

    def room_for_bends(self) -> wp.array:
        """For what says how the stress of each point changes, eight by eight."""
        return wp.zeros(self._count * BENDS * ABREAST, dtype=wp.float32, device=self._device)

    def bent(
        self,
        law: wp.array,
        stiffness: wp.array,
        bends: wp.array,
        u: wp.array,
        swollen: wp.array,
        means: list[Launch],
        stress: wp.array,
        into: wp.array,
    ) -> list[Launch]:
        """The change of the force along a field u, roughly, for points whose stress changes as `bends` say; how they
        swell; and on top, if there are `means` that go by that, the `stress` that these lead to."""
        inputs = [self._begin, self._felt, self._rough, u, law, stiffness, bends, swollen, self._part]
        on_top = [*means, self._pressed(self._rough, stress, True)] if means else []
        return [Launch(bend, self._count, inputs, self._work), *on_top, self._gathered(into)]

    def gathered(self, stress: wp.array, into: wp.array) -> list[Launch]:
        """Σ_q P_q ∇φ_I(q) of a stress P at the points, for the nodes."""
        return [self._pressed(self._slopes, stress, False), self._gathered(into)]

    def _pressed(self, slope: wp.array, stress: wp.array, more: bool) -> Launch:
        return Launch(press, self._count, [self._begin, slope, stress, more, self._part], self._work)

    def _gathered(self, into: wp.array) -> Launch:
        return Launch(gather, self._nodes, [*self._of_nodes, self._part, into])

    @property
    def _work(self) -> float:
        """What a bunch takes, in what others of a phyxel do: some 40 neighbours."""
        return ABREAST
