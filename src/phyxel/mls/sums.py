# mypy: disable-error-code="valid-type,no-untyped-def,no-redef"
"""Sums over a node's neighbours, the innermost loops of every step.

They are C++ because Warp's own loops stay scalar on the CPU. Here a three-vector sits in one SIMD register, and a pair
takes some fifteen instructions: three times as fast. CUDA, where each thread is a lane, takes the same sums unpacked.
Each is written once and declared for single and for double precision.
"""

from __future__ import annotations

import warp as wp

from phyxel import device as dev
from phyxel.device import float32s, float64s, int32s, vec3ds, vec3s

wp.set_module_options(dev.KERNEL_OPTIONS)

_LIST = """
    const int* js = index.data + start;
    const REAL* ws = weight.data + start;
    const REAL* x = (const REAL*)X.data;
    const REAL* v = (const REAL*)y.data;
#if !defined(__CUDA_ARCH__)
    typedef REAL four __attribute__((vector_size(4 * sizeof(REAL))));
    auto three = [](const REAL* from) { four to = {}; __builtin_memcpy(&to, from, 3 * sizeof(REAL)); return to; };
    const four xi = three(x + 3 * i), vi = three(v + 3 * i);
#endif
"""

_FIT = (
    _LIST
    + """
    wp::mat_t<3, 4, REAL> sums;
#if defined(__CUDA_ARCH__)
    const REAL x0 = x[3 * i], x1 = x[3 * i + 1], x2 = x[3 * i + 2];
    const REAL v0 = v[3 * i], v1 = v[3 * i + 1], v2 = v[3 * i + 2];
    for (int k = 0; k < count; ++k) {
        const int j = 3 * js[k * stride];
        const REAL w = ws[k * stride];
        const REAL d[3] = {w * (v[j] - v0), w * (v[j + 1] - v1), w * (v[j + 2] - v2)};
        const REAL r[4] = {x[j] - x0, x[j + 1] - x1, x[j + 2] - x2, 1};
        for (int a = 0; a < 3; ++a)
            for (int b = 0; b < 4; ++b) sums.data[a][b] += d[a] * r[b];
    }
#else
    four b0 = {}, b1 = {}, b2 = {}, s = {};
    for (int k = 0; k < count; ++k) {
        const int j = 3 * js[k * stride];
        const four d = ws[k * stride] * (three(v + j) - vi);
        const four r = three(x + j) - xi;
        b0 += d * r[0];
        b1 += d * r[1];
        b2 += d * r[2];
        s += d;
    }
    for (int a = 0; a < 3; ++a) {
        sums.data[a][0] = b0[a];
        sums.data[a][1] = b1[a];
        sums.data[a][2] = b2[a];
        sums.data[a][3] = s[a];
    }
#endif
    return sums;
"""
)

_LOAD = (
    _LIST
    + """
    const REAL* q = (const REAL*)load.data;
#if defined(__CUDA_ARCH__)
    const REAL x0 = x[3 * i], x1 = x[3 * i + 1], x2 = x[3 * i + 2];
    const REAL v0 = v[3 * i], v1 = v[3 * i + 1], v2 = v[3 * i + 2];
    REAL f[3] = {};
    for (int k = 0; k < count; ++k) {
        const int j = js[k * stride];
        const REAL* xj = x + 3 * j;
        const REAL* vj = v + 3 * j;
        const REAL* qj = q + 12 * j;
        const REAL w = ws[k * stride], wc = w * qj[3];
        const REAL r0 = w * (xj[0] - x0), r1 = w * (xj[1] - x1), r2 = w * (xj[2] - x2);
        f[0] += wc * (vj[0] - v0) - (qj[0] * r0 + qj[4] * r1 + qj[8] * r2);
        f[1] += wc * (vj[1] - v1) - (qj[1] * r0 + qj[5] * r1 + qj[9] * r2);
        f[2] += wc * (vj[2] - v2) - (qj[2] * r0 + qj[6] * r1 + qj[10] * r2);
    }
#else
    struct column { four all; } __attribute__((packed, aligned(sizeof(REAL))));
    four f0 = {}, f1 = {}, f2 = {}, f3 = {};  // four sums, so that no addition waits for the one before
    for (int k = 0; k < count; ++k) {
        const int j = js[k * stride];
        const REAL w = ws[k * stride];
        const column* qj = (const column*)(q + 12 * j);
        const four r = w * (three(x + 3 * j) - xi), q0 = qj[0].all;
        f0 += q0 * r[0];
        f1 += qj[1].all * r[1];
        f2 += qj[2].all * r[2];
        f3 += (w * q0[3]) * (three(v + 3 * j) - vi);
    }
    const four f = f3 - (f0 + (f1 + f2));
#endif
    return {f[0], f[1], f[2]};
"""
)

_SLOPE = """
    const int* js = index.data + start;
    const REAL* ws = weight.data + start;
    const REAL* all = (const REAL*)field.data;
    const REAL* here = all + 12 * i;
    wp::mat_t<3, 12, REAL> sums;
#if defined(__CUDA_ARCH__)
    for (int k = 0; k < count; ++k) {
        const REAL* there = all + 12 * js[k * stride];
        const REAL w = ws[k * stride] * there[3];
        for (int a = 0; a < 3; ++a) {
            const REAL d = w * (there[a] - here[a]);
            for (int b = 0; b < 12; ++b) sums.data[a][b] += d * (there[b] - here[b]);
        }
    }
#else
    typedef REAL four __attribute__((vector_size(4 * sizeof(REAL))));
    struct row { four all; } __attribute__((packed, aligned(sizeof(REAL))));
    const row* at = (const row*)here;
    const four x0 = at[0].all, y0 = at[1].all, z0 = at[2].all;
    four x[3] = {}, y[3] = {}, z[3] = {};
    for (int k = 0; k < count; ++k) {
        const row* there = (const row*)(all + 12 * js[k * stride]);
        const four far = there[0].all, d = far - x0, e = there[1].all - y0, g = there[2].all - z0;
        const four wd = (ws[k * stride] * far[3]) * d;
        for (int a = 0; a < 3; ++a) {
            x[a] += d * wd[a];
            y[a] += e * wd[a];
            z[a] += g * wd[a];
        }
    }
    for (int a = 0; a < 3; ++a)
        for (int b = 0; b < 4; ++b) {
            sums.data[a][b] = x[a][b];
            sums.data[a][4 + b] = y[a][b];
            sums.data[a][8 + b] = z[a][b];
        }
#endif
    return sums;
"""

_mat34, _mat34d = wp.types.matrix((3, 4), wp.float32), wp.types.matrix((3, 4), wp.float64)
_mat34s, _mat34ds = wp.array(dtype=_mat34), wp.array(dtype=_mat34d)
_mat312, _mat312d = wp.types.matrix((3, 12), wp.float32), wp.types.matrix((3, 12), wp.float64)


@wp.func_native(_FIT.replace("REAL", "float"))
def sum_fit(i: int, start: int, count: int, stride: int, index: int32s, weight: float32s, X: vec3s, y: vec3s) -> _mat34:
    """[Σ w_ij (y_j − y_i) X_ijᵀ | Σ w_ij (y_j − y_i)] (physics 2.2, 4.1): three columns for the gradient's fit, one for
    the hourglass."""


@wp.func_native(_FIT.replace("REAL", "double"))
def sum_fit(  # noqa: F811
    i: int, start: int, count: int, stride: int, index: int32s, weight: float64s, X: vec3ds, y: vec3ds
) -> _mat34d:
    """The same in double."""


@wp.func_native(_LOAD.replace("REAL", "float"))
def sum_load(
    i: int, start: int, count: int, stride: int, index: int32s, weight: float32s, X: vec3s, y: vec3s, load: _mat34s
) -> wp.vec3f:
    """Σ w_ji [c_j (y_j − y_i) − Q_j X_ij] (physics 4.3): what the neighbours lay on node i. A load is Qᵀ with c behind
    its first row: a column of Q and its fourth number are one register."""


@wp.func_native(_LOAD.replace("REAL", "double"))
def sum_load(  # noqa: F811
    i: int, start: int, count: int, stride: int, index: int32s, weight: float64s, X: vec3ds, y: vec3ds, load: _mat34ds
) -> wp.vec3d:
    """The same in double."""


@wp.func_native(_SLOPE.replace("REAL", "float"))
def sum_slopes(i: int, start: int, count: int, stride: int, index: int32s, weight: float32s, field: _mat34s) -> _mat312:
    """Σ w_ij s_j d_ij (F_j − F_i)ᵀ of twelve numbers F, d what the first three of them change by, s the fourth: a least
    squares fit of how the others vary (physics 6.5)."""


@wp.func_native(_SLOPE.replace("REAL", "double"))
def sum_slopes(  # noqa: F811
    i: int, start: int, count: int, stride: int, index: int32s, weight: float64s, field: _mat34ds
) -> _mat312d:
    """The same in double."""
