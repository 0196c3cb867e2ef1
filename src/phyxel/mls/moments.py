# mypy: disable-error-code="valid-type,no-untyped-def"
"""Moving least squares at the nodes: weights, moment matrices and their safe inverse (M04 §3.3).

    w_ij = (1 − r²/h_i²)³,   A_i = Σ_j w_ij X_ij X_ijᵀ,   ∇u|_i = Σ_j (u_j − u_i) (A_i⁻¹ X_ij w_ij)ᵀ

M04's weight has a prefactor 315/(64π h³) that cancels in ∇u; without it no scale costs digits. Sums are in double over
weights and positions as they are stored, so that affine fields come out exact to the rounding of the step's precision.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import warp as wp
from numpy.typing import NDArray

from phyxel import device as dev
from phyxel.device import float64s, int32s, mat33ds, vec4ds
from phyxel.mls.neighbours import Neighbourhood, PairList, find_pairs, mean_spacing
from phyxel.mls.visibility import Sees

wp.set_module_options(dev.KERNEL_OPTIONS)

THINNEST = 0.02
"""Smallest allowed ratio of the moment matrix' eigenvalues: below it, gradients across the thin side are noise."""
GROWTH, MOST_GROWTHS = 1.2, 8
"""Factor by which the support of a node with thin moments grows, and how often at most."""
MOST_LEAN = wp.constant(wp.float64(1.2))
"""Largest |η|: weights change by 3.3 times at most."""


@wp.func
def weight(squared_distance: wp.float64, support: wp.float64):
    """(1 − r²/h²)³ inside the support, else 0 (M04 §3.3, physics 2.1)."""
    inside = wp.max(wp.float64(1.0) - squared_distance / (support * support), wp.float64(0.0))
    return inside * inside * inside


@wp.func
def in_double(x: Any):
    return wp.vec3d(wp.float64(x[0]), wp.float64(x[1]), wp.float64(x[2]))


@wp.kernel
def weigh_pairs(
    first: int,
    nodes: int32s,
    X: wp.array(dtype=Any),
    support: float64s,
    start: int32s,
    count: int32s,
    stride: int,
    index: int32s,
    weight_forth: wp.array(dtype=Any),
    weight_back: wp.array(dtype=Any),
):
    """w_ij and w_ji of every pair of some nodes (physics 2.1)."""
    i = nodes[first + wp.tid()]
    Xi = in_double(X[i])
    entry = start[i]
    end = entry + count[i] * stride
    while entry < end:
        j = index[entry]
        squared = wp.length_sq(in_double(X[j]) - Xi)
        weight_forth[entry] = weight_forth.dtype(weight(squared, support[i]))
        weight_back[entry] = weight_back.dtype(weight(squared, support[j]))
        entry += stride


@wp.func
def matrix_in_double(M: Any):
    return wp.matrix_from_rows(
        wp.vec3d(wp.float64(M[0, 0]), wp.float64(M[0, 1]), wp.float64(M[0, 2])),
        wp.vec3d(wp.float64(M[1, 0]), wp.float64(M[1, 1]), wp.float64(M[1, 2])),
        wp.vec3d(wp.float64(M[2, 0]), wp.float64(M[2, 1]), wp.float64(M[2, 2])),
    )


@wp.func
def leant(lean: wp.vec4d):
    """ξ of a node."""
    return wp.vec3d(lean[0], lean[1], lean[2])


@wp.func
def leaning(lean_i: wp.vec4d, lean_j: wp.vec4d, slope: wp.mat33d, A_inverse: wp.mat33d, Xij: wp.vec3d):
    """η_ij = v_i A⁰_i⁻¹ X_ij · (ξ_j − ξ_i − ∇ξ_i X_ij) (physics 2.9)."""
    return lean_i[3] * wp.dot(A_inverse * Xij, leant(lean_j) - leant(lean_i) - slope * Xij)


@wp.kernel
def slope_of_lean(
    first: int,
    X: wp.array(dtype=Any),
    start: int32s,
    count: int32s,
    stride: int,
    index: int32s,
    weight_forth: wp.array(dtype=Any),
    inverse: wp.array(dtype=Any),
    lean: vec4ds,
    slope: mat33ds,
):
    """∇ξ_i = Σ_j w⁰_ij (ξ_j − ξ_i) X_ijᵀ A⁰_i⁻¹ (physics 2.9)."""
    i = first + wp.tid()
    Xi = in_double(X[i])
    B = wp.mat33d()
    entry = start[i]
    end = entry + count[i] * stride
    while entry < end:
        j = index[entry]
        B += wp.float64(weight_forth[entry]) * wp.outer(leant(lean[j]) - leant(lean[i]), in_double(X[j]) - Xi)
        entry += stride
    slope[i] = B * matrix_in_double(inverse[i])


@wp.kernel
def lean_pairs(
    first: int,
    X: wp.array(dtype=Any),
    start: int32s,
    count: int32s,
    stride: int,
    index: int32s,
    weight_forth: wp.array(dtype=Any),
    weight_back: wp.array(dtype=Any),
    inverse: wp.array(dtype=Any),
    lean: vec4ds,
    slope: mat33ds,
):
    """w_ij ← w_ij exp(η_ij), and w_ji as j has it (physics 2.9)."""
    i = first + wp.tid()
    Xi = in_double(X[i])
    Ai = matrix_in_double(inverse[i])
    entry = start[i]
    end = entry + count[i] * stride
    while entry < end:
        j = index[entry]
        Xij = in_double(X[j]) - Xi
        forth = leaning(lean[i], lean[j], slope[i], Ai, Xij)
        back = leaning(lean[j], lean[i], slope[j], matrix_in_double(inverse[j]), -Xij)
        forth = wp.exp(wp.clamp(forth, -MOST_LEAN, MOST_LEAN))
        back = wp.exp(wp.clamp(back, -MOST_LEAN, MOST_LEAN))
        weight_forth[entry] = weight_forth.dtype(wp.float64(weight_forth[entry]) * forth)
        weight_back[entry] = weight_back.dtype(wp.float64(weight_back[entry]) * back)
        entry += stride


@wp.func
def extreme_eigenvalues(A: Any):
    """Smallest and largest eigenvalue of a symmetric 3 × 3 matrix, by the trigonometric closed form."""
    mean = wp.trace(A) / A.dtype(3.0)
    B = A - mean * wp.identity(n=3, dtype=A.dtype)
    spread = wp.sqrt(wp.ddot(B, B) / A.dtype(6.0))
    tiny = A.dtype(1.0e-30)
    half_det = wp.determinant(B / (spread + tiny)) * A.dtype(0.5)
    angle = wp.acos(wp.clamp(half_det, A.dtype(-1.0), A.dtype(1.0))) / A.dtype(3.0)
    largest = mean + A.dtype(2.0) * spread * wp.cos(angle)
    smallest = mean + A.dtype(2.0) * spread * wp.cos(angle + A.dtype(2.0943951023931953))
    return smallest, largest


@wp.kernel
def sum_moments(
    first: int,
    nodes: int32s,
    X: wp.array(dtype=Any),
    start: int32s,
    count: int32s,
    stride: int,
    index: int32s,
    weight_forth: wp.array(dtype=Any),
    thinnest: wp.float64,
    inverse: wp.array(dtype=Any),
    lever: wp.array(dtype=Any),
    middle: wp.array(dtype=Any),
    trace: wp.array(dtype=Any),
    ratio: float64s,
):
    """A_i⁻¹ (zero where A_i is too thin), lever_i = Σ_j w_ij X_ij, Σ_j w_ij |X_ij|² X_ij / tr A_i, tr A_i and the ratio
    of A_i's eigenvalues (M04 §3.3, physics 2.2)."""
    i = nodes[first + wp.tid()]
    Xi = in_double(X[i])
    A = wp.mat33d()
    arm = wp.vec3d()
    far = wp.vec3d()
    entry = start[i]
    end = entry + count[i] * stride
    while entry < end:
        Xij = in_double(X[index[entry]]) - Xi
        w = wp.float64(weight_forth[entry])
        A += w * wp.outer(Xij, Xij)
        arm += w * Xij
        far += w * wp.length_sq(Xij) * Xij
        entry += stride
    smallest, largest = extreme_eigenvalues(A)
    ratio[i] = wp.where(largest > wp.float64(0.0), smallest / largest, wp.float64(0.0))
    A_inverse = wp.mat33d()
    if ratio[i] >= thinnest:
        A_inverse = wp.inverse(A)
    M = type(inverse[i])()
    for a in range(3):
        for b in range(3):
            M[a, b] = M.dtype(A_inverse[a, b])
    inverse[i] = M
    lever[i] = type(lever[i])(trace.dtype(arm[0]), trace.dtype(arm[1]), trace.dtype(arm[2]))
    far /= wp.max(wp.trace(A), wp.float64(1.0e-30))
    middle[i] = type(middle[i])(trace.dtype(far[0]), trace.dtype(far[1]), trace.dtype(far[2]))
    trace[i] = trace.dtype(wp.trace(A))


@dataclass(frozen=True)
class Moments:
    """What moving least squares needs at each node, in units of the node spacing."""

    inverse: wp.array
    """A_i⁻¹, shape (n,) of 3 × 3; zero where degenerate"""
    lever: wp.array
    """Σ_j w_ij X_ij, shape (n,) of vectors"""
    middle: wp.array
    """where the gradient of a field that bends is measured, from X_i: Σ_j w_ij |X_ij|² X_ij / tr A_i, shape (n,) of
    vectors"""
    trace: wp.array
    """tr A_i, shape (n,)"""
    ratio: wp.array
    """smallest over largest eigenvalue of A_i, shape (n,), float64"""

    @property
    def degenerate(self) -> NDArray[np.bool_]:
        """Nodes without a usable gradient: lone points, sheets."""
        return self.ratio.numpy() < THINNEST

    @staticmethod
    def blank(n: int, real: Any, device: wp.Device) -> Moments:
        return Moments(
            inverse=wp.zeros(n, dtype=wp.types.matrix((3, 3), real), device=device),
            lever=wp.zeros(n, dtype=wp.types.vector(3, real), device=device),
            middle=wp.zeros(n, dtype=wp.types.vector(3, real), device=device),
            trace=wp.zeros(n, dtype=real, device=device),
            ratio=wp.zeros(n, dtype=wp.float64, device=device),
        )


def weighing(
    nodes: wp.array, X: wp.array, support: wp.array, near: Neighbourhood, moments: Moments, thinnest: float = THINNEST
) -> list[dev.Launch]:
    """Launches that find weights and moments of some nodes, (m,) int32; `support` is float64, shape (n,)."""
    lists = [near.start, near.count, near.stride, near.index]
    found = [moments.inverse, moments.lever, moments.middle, moments.trace, moments.ratio]
    return [
        dev.Launch(weigh_pairs, len(nodes), [nodes, X, support, *lists, near.weight, near.weight_back]),
        dev.Launch(sum_moments, len(nodes), [nodes, X, *lists, near.weight, wp.float64(thinnest), *found]),
    ]


def _leaning(
    nodes: wp.array, X: wp.array, lean: wp.array, near: Neighbourhood, moments: Moments, again: dev.Launch
) -> list[dev.Launch]:
    """Launches that make plain weights lean, and the moments anew by `again`."""
    n, slope = len(nodes), wp.empty(len(X), dtype=wp.mat33d, device=X.device)
    lists = [near.start, near.count, near.stride, near.index]
    fit = [X, *lists, near.weight, moments.inverse, lean, slope]
    pairs = [X, *lists, near.weight, near.weight_back, moments.inverse, lean, slope]
    return [dev.Launch(slope_of_lean, n, fit), dev.Launch(lean_pairs, n, pairs), again]


def prepare_neighbourhood(
    X: wp.array,
    support: NDArray[np.floating],
    pairs: PairList,
    device: wp.Device,
    room: NDArray[np.integer] | None = None,
    lean: wp.array | None = None,
) -> tuple[Neighbourhood, Moments]:
    """Weights and moments of all nodes; `X` decides the precision. `lean`, (n,) of ξ and v, makes weights lean."""
    n, real = len(X), X.dtype._wp_scalar_type_
    near, moments = Neighbourhood.laid_out(pairs, real, device, room), Moments.blank(n, real, device)
    h = wp.array(support.astype(np.float64), dtype=wp.float64, device=device)
    nodes = wp.array(np.arange(n, dtype=np.int32), dtype=wp.int32, device=device)
    launches = weighing(nodes, X, h, near, moments)
    if lean is not None:
        launches += _leaning(nodes, X, lean, near, moments, launches[-1])
    dev.prepare(launches, device)
    for item in launches:
        dev.launch(item.kernel, item.count, item.inputs, device)
    return near, moments


def choose_supports(
    positions: NDArray[np.floating],
    factor: float,
    device: wp.Device,
    sees: Sees | None = None,
    birth: NDArray[np.floating] | None = None,
) -> tuple[NDArray[np.float64], PairList]:
    """Supports h_i = factor·r̄_i, grown where the moment matrix is thin, and the pairs they make (M04 §3.2, physics
    2.1).

    Nodes that do not see each other, as `sees` says of their places at birth, (n, 3) (without: their positions), are no
    pair. A node that stays thin however far it looks (a lone point, a sheet) keeps its support and is degenerate.
    """
    places = positions if birth is None else birth
    support = factor * mean_spacing(positions)
    X = wp.array(positions.astype(np.float32), dtype=wp.vec3, device=device)
    for _ in range(MOST_GROWTHS):
        pairs = find_pairs(positions, support, device)
        if sees is not None:
            pairs = pairs.seen(lambda i, j: sees(places[i], places[j]))
        _, moments = prepare_neighbourhood(X, support, pairs, device)
        thin = moments.degenerate
        if not thin.any():
            break
        support[thin] *= GROWTH
    return support, pairs
