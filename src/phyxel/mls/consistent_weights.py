# mypy: disable-error-code="valid-type,no-untyped-def"
"""Pair weights with which uniform stress leaves nodes alone but across the surface (physics 2.9).

Unit stress pushes node i by

    b_i = −Σ_j (v_i w_ij A_i⁻¹ + v_j w_ji A_j⁻¹) X_ij

which should vanish inside, and on the surface be upright: along it there is no traction. With plain weights it is up to
0.9 spacings² where nodes lie uneven, and no body holds a uniform strain. Weights change once, at birth, by a vector ξ
at each node, on the surface along it, at sharp edges along those, 0 in corners:

    w_ij = w⁰_ij exp(η_ij),   η_ij = p_ij·(ξ_j − ξ_i − ∇ξ_i X_ij),   p_ij = v_i A⁰_i⁻¹ X_ij,   |η| ≤ 1.2

Affine fields are exact with any weights, and forces remain the slope of an energy. ξ comes from a few steps of Newton's
method with its first matrix, ξ ← ξ − S⁻¹b, S = Jᵀ diag(w⁰) J, Jξ = η, by conjugate gradients, all of it along those:

    z_ij = w⁰_ij η_ij p_ij,   t_i = Σ_k z_ik X_ikᵀ
    (Sξ)_i = Σ_j [z_ji − z_ij − w⁰_ji t_j A⁰_j⁻¹ X_ji + w⁰_ij t_i A⁰_i⁻¹ X_ij]

Lengths are in spacings, everything is in double.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import warp as wp
from numpy.typing import NDArray

from phyxel import device as dev
from phyxel.device import float64s, int32s, mat33ds, vec3ds, vec4ds
from phyxel.mls.moments import leaning, prepare_neighbourhood, slope_of_lean
from phyxel.mls.neighbours import Neighbourhood, PairList

wp.set_module_options(dev.KERNEL_OPTIONS)

Floats = NDArray[np.floating]

MOST_ROUNDS = 24
"""Steps of Newton's method at most. Each leaves a fifth of b, and four fifths where weights change as much as they may,
as beside corners."""
GOOD = 1e-3
"""Largest |b| [spacings²] that is good enough."""
MOST_ITERATIONS, LEFT = 60, 1e-2
"""Of conjugate gradients at most, and what of the residual may be left: the matrix itself is not Newton's."""
REGULAR = 1e-6
"""Added to the diagonal of S, over its mean: ξ that change no weight stay small."""


@wp.kernel
def sum_leans(
    first: int, X: vec3ds, start: int32s, count: int32s, stride: int, index: int32s, weight: float64s,
    inverse: mat33ds, lean: vec4ds, slope: mat33ds, pull: mat33ds,
):  # fmt: skip
    """t_i A⁰_i⁻¹ (physics 2.9)."""
    i = first + wp.tid()
    t = wp.mat33d()
    entry = start[i]
    end = entry + count[i] * stride
    while entry < end:
        j = index[entry]
        Xij = X[j] - X[i]
        z = weight[entry] * lean[i][3] * leaning(lean[i], lean[j], slope[i], inverse[i], Xij)
        t += z * wp.outer(inverse[i] * Xij, Xij)
        entry += stride
    pull[i] = t * inverse[i]


@wp.kernel
def gather_leans(
    first: int, X: vec3ds, start: int32s, count: int32s, stride: int, index: int32s, weight: float64s,
    weight_back: float64s, inverse: mat33ds, lean: vec4ds, slope: mat33ds, pull: mat33ds, product: vec3ds,
):  # fmt: skip
    """(Sξ)_i (physics 2.9)."""
    i = first + wp.tid()
    total = wp.vec3d()
    entry = start[i]
    end = entry + count[i] * stride
    while entry < end:
        j = index[entry]
        Xij = X[j] - X[i]
        forth = lean[i][3] * leaning(lean[i], lean[j], slope[i], inverse[i], Xij)
        back = lean[j][3] * leaning(lean[j], lean[i], slope[j], inverse[j], -Xij)
        total -= weight[entry] * (forth * (inverse[i] * Xij) - pull[i] * Xij)
        total -= weight_back[entry] * (back * (inverse[j] * Xij) - pull[j] * Xij)
        entry += stride
    product[i] = total


@wp.kernel
def push_of_unit_stress(
    first: int, X: vec3ds, start: int32s, count: int32s, stride: int, index: int32s, weight: float64s,
    weight_back: float64s, inverse: mat33ds, lean: vec4ds, push: vec3ds, diagonal: mat33ds,
):  # fmt: skip
    """b_i, and of S the part Σ_j (w_ij p_ij p_ijᵀ + w_ji p_ji p_jiᵀ) of its diagonal block (physics 2.9)."""
    i = first + wp.tid()
    total = wp.vec3d()
    block = wp.mat33d()
    entry = start[i]
    end = entry + count[i] * stride
    while entry < end:
        j = index[entry]
        Xij = X[j] - X[i]
        forth = lean[i][3] * (inverse[i] * Xij)
        back = lean[j][3] * (inverse[j] * Xij)
        total -= weight[entry] * forth + weight_back[entry] * back
        block += weight[entry] * wp.outer(forth, forth) + weight_back[entry] * wp.outer(back, back)
        entry += stride
    push[i] = total
    diagonal[i] = block


class _Net:
    """The nodes of one body and what is summed over their neighbours."""

    def __init__(self, positions: Floats, volumes: Floats, support: Floats, pairs: PairList, device: wp.Device) -> None:
        n = len(positions)
        self._X = wp.array(positions, dtype=wp.vec3d, device=device)
        self._support, self._pairs, self._device = support, pairs, device
        self._volumes = volumes
        self._slope, self._pull, self._diagonal = (wp.zeros(n, dtype=wp.mat33d, device=device) for _ in range(3))
        self._out = wp.zeros(n, dtype=wp.vec3d, device=device)
        self._near, self._moments = prepare_neighbourhood(self._X, support, pairs, device)

    def packed(self, xi: Floats) -> Floats:
        """ξ and v of each node, shape (n, 4)."""
        return np.concatenate([xi, self._volumes[:, None]], axis=1)

    def _lean(self, xi: Floats) -> wp.array:
        return wp.array(self.packed(xi), dtype=wp.vec4d, device=self._device)

    def push(self, xi: Floats) -> tuple[Floats, Floats]:
        """b (n, 3) with weights that lean by ξ, and of S the diagonal blocks (n, 3, 3)."""
        lean = self._lean(xi)
        near, moments = prepare_neighbourhood(self._X, self._support, self._pairs, self._device, lean=lean)
        both = [near.weight, near.weight_back, moments.inverse, lean, self._out, self._diagonal]
        self._launch(push_of_unit_stress, near, *both)
        return self._out.numpy().copy(), self._diagonal.numpy()

    def product(self, xi: Floats) -> Floats:
        """S ξ, shape (n, 3)."""
        near, inverse, lean = self._near, self._moments.inverse, self._lean(xi)
        self._launch(slope_of_lean, near, near.weight, inverse, lean, self._slope)
        self._launch(sum_leans, near, near.weight, inverse, lean, self._slope, self._pull)
        self._launch(
            gather_leans, near, near.weight, near.weight_back, inverse, lean, self._slope, self._pull, self._out
        )
        return self._out.numpy().copy()

    def _launch(self, kernel: wp.Kernel, near: Neighbourhood, *more: wp.array) -> None:
        inputs = [self._X, near.start, near.count, near.stride, near.index, *more]
        dev.launch(kernel, len(self._X), inputs, self._device)


def consistent_lean(
    positions: Floats, volumes: Floats, support: Floats, pairs: PairList, free: Floats, device: wp.Device
) -> Floats:
    """ξ and v of each node of a body, shape (n, 4), with which unit stress leaves nodes alone along directions that are
    `free`, as far as that can be had; these as projections, (n, 3, 3). Lengths in spacings."""
    net = _Net(positions, volumes, support, pairs, device)
    xi = np.zeros((len(positions), 3))
    if not free.any():
        return net.packed(xi)

    def along(vectors: Floats) -> Floats:
        return np.einsum("nab,nb->na", free, vectors)

    b, blocks = net.push(xi)
    ridge = max(REGULAR * float(np.trace(blocks, axis1=1, axis2=2).mean() / 3), np.finfo(float).tiny)
    left, hats = along(b), _inverted_along(blocks + ridge * np.eye(3), free)
    best, least = xi, np.inf
    for _ in range(MOST_ROUNDS):
        worst = float(np.abs(left).max())
        if worst < least:
            best, least = xi, worst
        if not worst > GOOD:
            break
        xi = xi - _solved(lambda p: along(net.product(p)) + ridge * p, left, hats)
        left = along(net.push(xi)[0])
    return net.packed(xi if float(np.abs(left).max()) < least else best)


def _inverted_along(blocks: Floats, free: Floats) -> Floats:
    """P (P B P + I − P)⁻¹ of blocks B and projections P, (n, 3, 3) each: inverses within what P leaves."""
    return np.asarray(free @ np.linalg.inv(free @ blocks @ free + np.eye(3) - free))


def _solved(times: Callable[[Floats], Floats], right: Floats, hats: Floats) -> Floats:
    """The solution (n, 3) of a symmetric positive system by conjugate gradients with blocks as preconditioner."""
    found, left = np.zeros_like(right), right.copy()
    goal = LEFT * float(np.linalg.norm(right))
    way, before = np.zeros_like(right), np.inf
    for _ in range(MOST_ITERATIONS):
        if float(np.linalg.norm(left)) <= goal:
            break
        capped = np.einsum("nab,nb->na", hats, left)
        now = float((left * capped).sum())
        way, before = capped + (now / before) * way, now
        product = times(way)
        step = now / float((way * product).sum())
        found += step * way
        left -= step * product
    return found
