# mypy: disable-error-code="valid-type,no-untyped-def"
"""Velocities of a modal body and their kinetic energy, as they are seen (physics 11.7): those of the warped shape,

    u̇ = R̃(w) ṗ + (∂R̃/∂w · ẇ) p,   K = ½ u̇ᵀ M u̇

and not ½|ż|² of the linear field.
"""

from __future__ import annotations

import numpy as np
import warp as wp
from numpy.typing import NDArray
from scipy.sparse import csr_array, diags_array, triu

from phyxel import device as dev
from phyxel.device import Launch, Program, Shared, float32s, float64s, int32s, vec2ds, vec3ds
from phyxel.models.modal.warping import NEARBY, ONE, Basis, linear_field, vec6d, weighted_sum

wp.set_module_options(dev.KERNEL_OPTIONS)

Floats = NDArray[np.float64]


@wp.func
def warped_rate(w: wp.vec3d, p: wp.vec3d, dw: wp.vec3d, dp: wp.vec3d, turn: wp.vec2d):
    """u̇ of u = R̃(w) p = p + a w × p + b w × (w × p), (a, b) = `turn` (physics 11.3)"""
    square, a, b = wp.dot(w, w), turn[0], turn[1]
    slope_a = -ONE / wp.float64(12.0) + square / wp.float64(180.0) - square * square / wp.float64(6720.0)
    slope_b = -ONE / wp.float64(60.0) + square / wp.float64(1260.0) - square * square / wp.float64(60480.0)
    if square >= NEARBY:  # a′/|w|, b′/|w|
        slope_a = (ONE - b * square - wp.float64(2.0) * a) / square
        slope_b = (a - wp.float64(3.0) * b) / square
    along = wp.dot(w, dw)
    c = wp.cross(w, p)
    dc = wp.cross(dw, p) + wp.cross(w, dp)
    inner = slope_a * along * c + a * dc + b * wp.cross(dw, c)
    return dp + inner + wp.cross(w, slope_b * along * c + b * dc)


@wp.kernel
def rate_nodes(
    first: int,
    l: int,
    rows: float32s,
    rate: float64s,
    linear: wp.array(dtype=vec6d),
    turn: vec2ds,
    weight: float64s,
    v: vec3ds,
    bound: float64s,
):
    """u̇ of each node (physics 11.3), of amplitudes that change at `rate` (l,), and ½ Σ_j |M_ij| |u̇_i|²."""
    i = first + wp.tid()
    now, change = linear[i], linear_field(rows, rate, i, l)
    p, w = wp.vec3d(now[0], now[1], now[2]), wp.vec3d(now[3], now[4], now[5])
    dp, dw = wp.vec3d(change[0], change[1], change[2]), wp.vec3d(change[3], change[4], change[5])
    v[i] = warped_rate(w, p, dw, dp, turn[i])
    bound[i] = weight[i] * wp.dot(v[i], v[i])


@wp.kernel
def kinetic_nodes(first: int, starts: int32s, columns: int32s, mass: float64s, v: vec3ds, energy: float64s):
    """Each node's share of ½ u̇ᵀMu̇ (physics 11.7); of the two M_ij of a pair `mass` has one, and half of M_ii."""
    i = first + wp.tid()
    energy[i] = wp.dot(v[i], weighted_sum(mass, 0, columns, starts[i], starts[i + 1], v))


class WarpedMotion:
    """Velocities of the warped shape of a basis. The clamp takes a part of them off, P u̇ is left: it is in PᵀMP."""

    def __init__(self, mass: csr_array, basis: Basis) -> None:
        """With M (n, n) of a density of 1."""
        if basis.clamp is not None:
            mass = csr_array(basis.clamp.without(basis.clamp.without(mass.toarray()).T))
        pairs = csr_array(triu(mass, 1) + diags_array(0.5 * mass.diagonal()))
        n, device = len(basis.shapes), basis.device
        self._basis = basis
        self._followed: tuple[Floats, Floats] | None = None
        self._rate = Shared(basis.padded, wp.float64, device)
        self._v = Shared(n, wp.vec3d, device)
        self._bound, self._energy = (Shared(n, wp.float64, device) for _ in range(2))
        weight, values = (
            wp.array(part, dtype=wp.float64, device=device) for part in (0.5 * abs(mass).sum(1), pairs.data)
        )
        starts, columns = (wp.array(part, dtype=wp.int32, device=device) for part in (pairs.indptr, pairs.indices))
        field = [basis.stored, self._rate.array, basis.shared_linear.array, basis.turn, weight]
        follow = Launch(rate_nodes, n, [basis.padded, *field, self._v.array, self._bound.array], 0.1)
        weigh = Launch(kinetic_nodes, n, [starts, columns, values, self._v.array, self._energy.array], 0.1)
        self._follow, self._weigh = Program([follow], device), Program([weigh], device)

    def follow(self, z: Floats, rate: Floats) -> Floats:
        """u̇ of the field that was laid for amplitudes z (l,), which change at `rate` (l,), unless that was asked last;
        before the clamp takes its part off, shape (n, 3)."""
        if self._followed is None or self._followed[0] is not z or self._followed[1] is not rate:
            self._followed = z, rate
            self._rate.host[: len(rate)] = rate
            self._rate.push()
            self._follow.run()
        return self._v.pull()

    def velocities(self, z: Floats, rate: Floats) -> Floats:
        """u̇ as it is seen, shape (n, 3)."""
        v, clamp = self.follow(z, rate), self._basis.clamp
        return v.copy() if clamp is None else clamp.without(v)

    @property
    def bound(self) -> float:
        """What ½ u̇ᵀMu̇ of what was followed last is at most, as 2 u̇_i·u̇_j ≤ |u̇_i|² + |u̇_j|². Of slow swings it is about
        a hundredth more, and found in no time."""
        return float(self._bound.pull().sum())

    @property
    def kinetic(self) -> float:
        """½ u̇ᵀMu̇ of what was followed last."""
        self._weigh.run()
        return float(self._energy.pull().sum())
