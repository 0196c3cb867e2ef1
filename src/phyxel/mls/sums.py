# mypy: disable-error-code="valid-type,no-untyped-def,no-redef"
"""Sums over a node's neighbours, the innermost loops of every step.

They are C++ because Warp's own loops stay scalar on the CPU: an explicit loop over the list is vectorised by its
compiler (gathers of 8 or 16 neighbours at once) and takes half the time. CUDA compiles the same text.
Each is written once and declared for single and for double precision.
"""

from __future__ import annotations

import warp as wp

from phyxel import device as dev

wp.set_module_options(dev.KERNEL_OPTIONS)

_LIST = """
    const auto* x = X.data;
    const auto* v = y.data;
    const int* js = index.data + start;
    const auto* ws = weight.data + start;
    const auto x0 = x[i][0], x1 = x[i][1], x2 = x[i][2];
    const auto v0 = v[i][0], v1 = v[i][1], v2 = v[i][2];
"""

_FIT = (
    _LIST
    + """
    auto b00 = x0 - x0, b01 = b00, b02 = b00, b10 = b00, b11 = b00, b12 = b00, b20 = b00, b21 = b00, b22 = b00;
    auto s0 = b00, s1 = b00, s2 = b00;
    #pragma clang loop vectorize(enable)
    for (int k = 0; k < count; ++k) {
        const int j = js[k * stride];
        const auto w = ws[k * stride];
        const auto d0 = w * (v[j][0] - v0), d1 = w * (v[j][1] - v1), d2 = w * (v[j][2] - v2);
        const auto r0 = x[j][0] - x0, r1 = x[j][1] - x1, r2 = x[j][2] - x2;
        b00 += d0 * r0; b01 += d0 * r1; b02 += d0 * r2; s0 += d0;
        b10 += d1 * r0; b11 += d1 * r1; b12 += d1 * r2; s1 += d1;
        b20 += d2 * r0; b21 += d2 * r1; b22 += d2 * r2; s2 += d2;
    }
    wp::mat_t<3, 4, REAL> sums;
    sums.data[0][0] = b00; sums.data[0][1] = b01; sums.data[0][2] = b02; sums.data[0][3] = s0;
    sums.data[1][0] = b10; sums.data[1][1] = b11; sums.data[1][2] = b12; sums.data[1][3] = s1;
    sums.data[2][0] = b20; sums.data[2][1] = b21; sums.data[2][2] = b22; sums.data[2][3] = s2;
    return sums;
"""
)

_LOAD = (
    _LIST
    + """
    const auto* c = stiffness.data;
    const auto* q = Q.data;
    auto f0 = x0 - x0, f1 = f0, f2 = f0;
    #pragma clang loop vectorize(enable)
    for (int k = 0; k < count; ++k) {
        const int j = js[k * stride];
        const auto w = ws[k * stride], wc = w * c[j];
        const auto r0 = w * (x[j][0] - x0), r1 = w * (x[j][1] - x1), r2 = w * (x[j][2] - x2);
        f0 += wc * (v[j][0] - v0) - (q[j].data[0][0] * r0 + q[j].data[0][1] * r1 + q[j].data[0][2] * r2);
        f1 += wc * (v[j][1] - v1) - (q[j].data[1][0] * r0 + q[j].data[1][1] * r1 + q[j].data[1][2] * r2);
        f2 += wc * (v[j][2] - v2) - (q[j].data[2][0] * r0 + q[j].data[2][1] * r1 + q[j].data[2][2] * r2);
    }
    return {f0, f1, f2};
"""
)

_mat34 = wp.types.matrix((3, 4), wp.float32)
_mat34d = wp.types.matrix((3, 4), wp.float64)


@wp.func_native(_FIT.replace("REAL", "float"))
def sum_fit(
    i: int,
    start: int,
    count: int,
    stride: int,
    index: wp.array(dtype=wp.int32),
    weight: wp.array(dtype=wp.float32),
    X: wp.array(dtype=wp.vec3f),
    y: wp.array(dtype=wp.vec3f),
) -> _mat34:
    """[Σ w_ij (y_j − y_i) X_ijᵀ | Σ w_ij (y_j − y_i)]: three columns for the gradient's fit, one for the hourglass."""


@wp.func_native(_FIT.replace("REAL", "double"))
def sum_fit(  # noqa: F811
    i: int,
    start: int,
    count: int,
    stride: int,
    index: wp.array(dtype=wp.int32),
    weight: wp.array(dtype=wp.float64),
    X: wp.array(dtype=wp.vec3d),
    y: wp.array(dtype=wp.vec3d),
) -> _mat34d:
    """The same in double."""


@wp.func_native(_LOAD)
def sum_load(
    i: int,
    start: int,
    count: int,
    stride: int,
    index: wp.array(dtype=wp.int32),
    weight: wp.array(dtype=wp.float32),
    X: wp.array(dtype=wp.vec3f),
    y: wp.array(dtype=wp.vec3f),
    stiffness: wp.array(dtype=wp.float32),
    Q: wp.array(dtype=wp.mat33f),
) -> wp.vec3f:
    """Σ w_ji [c_j (y_j − y_i) − Q_j X_ij]: what the neighbours lay on node i."""


@wp.func_native(_LOAD)
def sum_load(  # noqa: F811
    i: int,
    start: int,
    count: int,
    stride: int,
    index: wp.array(dtype=wp.int32),
    weight: wp.array(dtype=wp.float64),
    X: wp.array(dtype=wp.vec3d),
    y: wp.array(dtype=wp.vec3d),
    stiffness: wp.array(dtype=wp.float64),
    Q: wp.array(dtype=wp.mat33d),
) -> wp.vec3d:
    """The same in double."""
