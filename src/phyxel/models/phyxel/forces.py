# mypy: disable-error-code="valid-type,no-untyped-def"
"""Forces between phyxels: two passes over the neighbour lists, gathered, never scattered.

    pass 1, per phyxel:  ∇u_i = Σ_j w_ij (u_j − u_i) X_ijᵀ A_i⁻¹
                         Q_i = −v_i ∂W/∂J A_i⁻¹ + c_i ∇u_i
                         own_i = c_i Σ_j w_ij (u_j − u_i) − Q_i Σ_j w_ij X_ij
    pass 2, per phyxel:  f_i = own_i + Σ_j w_ji [c_j (u_j − u_i) − Q_j X_ij]

c_i = β E v_i / tr A_i penalises what the linear fit cannot see (hourglass modes): energy ½ Σ_i c_i Σ_j w_ij |e_ij|²,
e_ij = u_j − u_i − ∇u_i X_ij. It vanishes for every affine field. All of it is written in displacements, in units of the
node spacing (length), the pascal and the second, so that mass is in pascal·spacing·s².
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import warp as wp
from numpy.typing import NDArray

from phyxel import device as dev
from phyxel.device import Launch
from phyxel.mls.moments import Moments, prepare_neighbourhood
from phyxel.mls.neighbours import Neighbourhood, PairList
from phyxel.mls.sums import sum_fit, sum_load
from phyxel.models.law import (
    Laws,
    energy_density,
    first_stress,
    first_stress_change,
    flowed,
    molten,
    molten_swell,
    positive_stress_change,
    stiffening,
)
from phyxel.models.reductions import CHUNK

wp.set_module_options(dev.KERNEL_OPTIONS)

HOURGLASS = 0.1
"""β of the hourglass stiffness, as a share of Young's modulus."""


@wp.func
def fitted_gradient(sums: Any, A_inverse: Any):
    """Σ w (y_j − y_i) X_ijᵀ A⁻¹ from the sums of a fit."""
    B = wp.matrix_from_rows(
        wp.vector(sums[0, 0], sums[0, 1], sums[0, 2]),
        wp.vector(sums[1, 0], sums[1, 1], sums[1, 2]),
        wp.vector(sums[2, 0], sums[2, 1], sums[2, 2]),
    )
    return B * A_inverse


@wp.func
def fitted_sum(sums: Any):
    """Σ w (y_j − y_i) from the sums of a fit."""
    return wp.vector(sums[0, 3], sums[1, 3], sums[2, 3])


@wp.func
def packed_load(Q: Any, c: Any):
    """Qᵀ with c behind its first row: what `sum_load` takes from a neighbour."""
    none = type(c)(0.0)
    return wp.matrix_from_rows(
        wp.vector(Q[0, 0], Q[1, 0], Q[2, 0], c),
        wp.vector(Q[0, 1], Q[1, 1], Q[2, 1], none),
        wp.vector(Q[0, 2], Q[1, 2], Q[2, 2], none),
    )


@wp.kernel
def make_stress(
    first: int,
    X: wp.array(dtype=Any),
    volume: wp.array(dtype=Any),
    hourglass: wp.array(dtype=Any),
    inverse: wp.array(dtype=Any),
    lever: wp.array(dtype=Any),
    start: wp.array(dtype=wp.int32),
    count: wp.array(dtype=wp.int32),
    stride: int,
    index: wp.array(dtype=wp.int32),
    weight: wp.array(dtype=Any),
    law: wp.array(dtype=wp.int32),
    stiffness: wp.array(dtype=Any),
    k_v: wp.array(dtype=Any),
    k_b: wp.array(dtype=Any),
    plastic: wp.array(dtype=Any),
    swell: wp.array(dtype=Any),
    u: wp.array(dtype=Any),
    gradient: wp.array(dtype=Any),
    load: wp.array(dtype=Any),
    own: wp.array(dtype=Any),
):
    """Pass 1: ∇u, Q and own of each phyxel (M04 eq. 8 to 15)."""
    i = first + wp.tid()
    sums = sum_fit(i, start[i], count[i], stride, index, weight, X, u)
    row = law[i]
    A_inverse = inverse[i]
    grad = fitted_gradient(sums, A_inverse)
    J = grad + wp.identity(n=3, dtype=grad.dtype)
    c = hourglass[i]
    P = first_stress(J, plastic[i], swell[i], stiffness[row], k_v[row], k_b[row])
    q = grad * c - P * A_inverse * volume[i]
    gradient[i] = grad
    load[i] = packed_load(q, c)
    own[i] = c * fitted_sum(sums) - q * lever[i]


@wp.kernel
def make_damped_stress(
    first: int,
    X: wp.array(dtype=Any),
    volume: wp.array(dtype=Any),
    hourglass: wp.array(dtype=Any),
    inverse: wp.array(dtype=Any),
    lever: wp.array(dtype=Any),
    start: wp.array(dtype=wp.int32),
    count: wp.array(dtype=wp.int32),
    stride: int,
    index: wp.array(dtype=wp.int32),
    weight: wp.array(dtype=Any),
    law: wp.array(dtype=wp.int32),
    stiffness: wp.array(dtype=Any),
    k_v: wp.array(dtype=Any),
    k_b: wp.array(dtype=Any),
    plastic: wp.array(dtype=Any),
    swell: wp.array(dtype=Any),
    u: wp.array(dtype=Any),
    y: wp.array(dtype=Any),
    gradient: wp.array(dtype=Any),
    load: wp.array(dtype=Any),
    own: wp.array(dtype=Any),
):
    """Pass 1 with Rayleigh's −βK v: y = u + βv, so that the stress is P(∇u) + ∂P·(∇y − ∇u)."""
    i = first + wp.tid()
    sums = sum_fit(i, start[i], count[i], stride, index, weight, X, u)
    sums_y = sum_fit(i, start[i], count[i], stride, index, weight, X, y)
    row = law[i]
    A_inverse = inverse[i]
    grad = fitted_gradient(sums, A_inverse)
    grad_y = fitted_gradient(sums_y, A_inverse)
    J = grad + wp.identity(n=3, dtype=grad.dtype)
    P = first_stress(J, plastic[i], swell[i], stiffness[row], k_v[row], k_b[row])
    P += first_stress_change(J, plastic[i], swell[i], grad_y - grad, stiffness[row], k_v[row], k_b[row])
    c = hourglass[i]
    q = grad_y * c - P * A_inverse * volume[i]
    gradient[i] = grad
    load[i] = packed_load(q, c)
    own[i] = c * fitted_sum(sums_y) - q * lever[i]


@wp.kernel
def make_stress_change(
    first: int,
    X: wp.array(dtype=Any),
    volume: wp.array(dtype=Any),
    hourglass: wp.array(dtype=Any),
    inverse: wp.array(dtype=Any),
    lever: wp.array(dtype=Any),
    start: wp.array(dtype=wp.int32),
    count: wp.array(dtype=wp.int32),
    stride: int,
    index: wp.array(dtype=wp.int32),
    weight: wp.array(dtype=Any),
    law: wp.array(dtype=wp.int32),
    stiffness: wp.array(dtype=Any),
    k_v: wp.array(dtype=Any),
    k_b: wp.array(dtype=Any),
    plastic: wp.array(dtype=Any),
    swell: wp.array(dtype=Any),
    p: wp.array(dtype=Any),
    gradient: wp.array(dtype=Any),
    load: wp.array(dtype=Any),
    own: wp.array(dtype=Any),
):
    """Pass 1 of the tangent product −K p: the change of Q and own along p, at the ∇u of the last pass 1."""
    i = first + wp.tid()
    sums = sum_fit(i, start[i], count[i], stride, index, weight, X, p)
    row = law[i]
    A_inverse = inverse[i]
    dJ = fitted_gradient(sums, A_inverse)
    J = gradient[i] + wp.identity(n=3, dtype=dJ.dtype)
    c = hourglass[i]
    dP = first_stress_change(J, plastic[i], swell[i], dJ, stiffness[row], k_v[row], k_b[row])
    q = dJ * c - dP * A_inverse * volume[i]
    load[i] = packed_load(q, c)
    own[i] = c * fitted_sum(sums) - q * lever[i]


@wp.kernel
def make_positive_stress_change(
    first: int,
    X: wp.array(dtype=Any),
    volume: wp.array(dtype=Any),
    hourglass: wp.array(dtype=Any),
    inverse: wp.array(dtype=Any),
    lever: wp.array(dtype=Any),
    start: wp.array(dtype=wp.int32),
    count: wp.array(dtype=wp.int32),
    stride: int,
    index: wp.array(dtype=wp.int32),
    weight: wp.array(dtype=Any),
    law: wp.array(dtype=wp.int32),
    stiffness: wp.array(dtype=Any),
    k_v: wp.array(dtype=Any),
    k_b: wp.array(dtype=Any),
    plastic: wp.array(dtype=Any),
    swell: wp.array(dtype=Any),
    p: wp.array(dtype=Any),
    gradient: wp.array(dtype=Any),
    load: wp.array(dtype=Any),
    own: wp.array(dtype=Any),
):
    """Pass 1 of the product with a part of the tangent that is positive: for solves where −K p itself is not."""
    i = first + wp.tid()
    sums = sum_fit(i, start[i], count[i], stride, index, weight, X, p)
    row = law[i]
    A_inverse = inverse[i]
    dJ = fitted_gradient(sums, A_inverse)
    J = gradient[i] + wp.identity(n=3, dtype=dJ.dtype)
    c = hourglass[i]
    dP = positive_stress_change(J, plastic[i], swell[i], dJ, stiffness[row], k_v[row], k_b[row])
    q = dJ * c - dP * A_inverse * volume[i]
    load[i] = packed_load(q, c)
    own[i] = c * fitted_sum(sums) - q * lever[i]


@wp.kernel
def gather_forces(
    first: int,
    X: wp.array(dtype=Any),
    start: wp.array(dtype=wp.int32),
    count: wp.array(dtype=wp.int32),
    stride: int,
    index: wp.array(dtype=wp.int32),
    weight_back: wp.array(dtype=Any),
    y: wp.array(dtype=Any),
    load: wp.array(dtype=Any),
    own: wp.array(dtype=Any),
    force: wp.array(dtype=Any),
):
    """Pass 2: what the neighbours lay on each phyxel (M04 eq. 18, 19 with hourglass control)."""
    i = first + wp.tid()
    force[i] = own[i] + sum_load(i, start[i], count[i], stride, index, weight_back, X, y, load)


@wp.kernel
def measure_energy(
    first: int,
    X: wp.array(dtype=Any),
    volume: wp.array(dtype=Any),
    hourglass: wp.array(dtype=Any),
    start: wp.array(dtype=wp.int32),
    count: wp.array(dtype=wp.int32),
    stride: int,
    index: wp.array(dtype=wp.int32),
    weight: wp.array(dtype=Any),
    law: wp.array(dtype=wp.int32),
    stiffness: wp.array(dtype=Any),
    k_v: wp.array(dtype=Any),
    k_b: wp.array(dtype=Any),
    plastic: wp.array(dtype=Any),
    swell: wp.array(dtype=Any),
    u: wp.array(dtype=Any),
    gradient: wp.array(dtype=Any),
    energy: wp.array(dtype=Any),
):
    """Elastic energy of each phyxel, the hourglass part included."""
    i = first + wp.tid()
    Xi = X[i]
    ui = u[i]
    grad = gradient[i]
    missed = hourglass[i] * Xi.dtype(0.0)
    entry = start[i]
    end = entry + count[i] * stride
    while entry < end:
        j = index[entry]
        missed += weight[entry] * wp.length_sq(u[j] - ui - grad * (X[j] - Xi))
        entry += stride
    row = law[i]
    J = grad + wp.identity(n=3, dtype=Xi.dtype)
    W = energy_density(J, plastic[i], swell[i], stiffness[row], k_v[row], k_b[row])
    energy[i] = volume[i] * W + Xi.dtype(0.5) * hourglass[i] * missed


@wp.kernel
def measure_stress(
    first: int,
    law: wp.array(dtype=wp.int32),
    stiffness: wp.array(dtype=Any),
    k_v: wp.array(dtype=Any),
    k_b: wp.array(dtype=Any),
    plastic: wp.array(dtype=Any),
    swell: wp.array(dtype=Any),
    gradient: wp.array(dtype=Any),
    stress: wp.array(dtype=Any),
):
    """Cauchy stress (∂W/∂J) Jᵀ/|J| [Pa] of each phyxel."""
    i = first + wp.tid()
    row = law[i]
    J = gradient[i] + wp.identity(n=3, dtype=gradient[i].dtype)
    P = first_stress(J, plastic[i], swell[i], stiffness[row], k_v[row], k_b[row])
    stress[i] = P * wp.transpose(J) / wp.determinant(J)


@wp.kernel
def measure_stiffening(
    first: int,
    law: wp.array(dtype=wp.int32),
    stiffness: wp.array(dtype=Any),
    k_v: wp.array(dtype=Any),
    k_b: wp.array(dtype=Any),
    plastic: wp.array(dtype=Any),
    swell: wp.array(dtype=Any),
    shear_norm: wp.array(dtype=Any),
    volume: wp.array(dtype=Any),
    gradient: wp.array(dtype=Any),
    n: int,
    largest: wp.array(dtype=wp.float64),
):
    """Largest stiffening among the CHUNK phyxels of each chunk; not a number if any is none."""
    c = first + wp.tid()
    found = wp.float64(0.0)
    i = c * CHUNK
    end = wp.min(n, i + CHUNK)
    while i < end:
        row = law[i]
        J = gradient[i] + wp.identity(n=3, dtype=gradient[i].dtype)
        value = wp.float64(stiffening(J, plastic[i], swell[i], stiffness[row], shear_norm[row], k_v[row], k_b[row]))
        if wp.isnan(value):
            found = value
            break
        if volume[i] > volume.dtype(0.0):
            found = wp.max(found, value)
        i += 1
    largest[c] = found


@wp.kernel
def flow(
    first: int,
    law: wp.array(dtype=wp.int32),
    yield_strain: wp.array(dtype=Any),
    creep: wp.array(dtype=Any),
    max_strain: wp.array(dtype=Any),
    fluid: wp.array(dtype=Any),
    step: wp.array(dtype=Any),
    slot: int,
    gradient: wp.array(dtype=Any),
    plastic: wp.array(dtype=Any),
    swell: wp.array(dtype=Any),
):
    """Flow of each phyxel's stored strain over a step of `step[slot]` [s] (M04 §4.1, §4.2)."""
    i = first + wp.tid()
    row = law[i]
    J = gradient[i] + wp.identity(n=3, dtype=step.dtype)
    share = step.dtype(1.0) - wp.exp(-creep[row] * step[slot])
    if fluid[row] > step.dtype(0.0):
        plastic[i] = molten(J, plastic[i], share)
        swell[i] = molten_swell(J, swell[i], share)
    else:
        plastic[i] = flowed(J, plastic[i], yield_strain[row], share, max_strain[row])


@dataclass
class Matter:
    """What does not change from step to step: where phyxels are in the reference shape, and what they are made of.

    Lengths in each body's mean node spacing."""

    X: wp.array
    """shape (n,) of vectors"""
    volume: wp.array
    """of the reference shape, shape (n,); 0 for what has too few neighbours left to have a stress of its own"""
    rest_volume: wp.array
    """shape (n,)"""
    hourglass: wp.array
    """c_i, shape (n,)"""
    support: wp.array
    """h_i, shape (n,), float64"""
    near: Neighbourhood
    moments: Moments
    birth: wp.array
    """X in the first reference shape, shape (n,) of vectors"""
    past: wp.array
    """deformation gradient of the reference shape against the first one, shape (n,) of 3 × 3"""
    body: wp.array
    """body of each phyxel, shape (n,), int32"""
    plastic: wp.array
    """εᵖ, shape (n,) of 3 × 3; with `swell` the only part of matter that changes as it moves"""
    swell: wp.array
    """volume of the reference shape over that at rest, shape (n,)"""
    laws: Laws

    @staticmethod
    def made(
        positions: NDArray[np.floating],
        support: NDArray[np.floating],
        volume: NDArray[np.floating],
        body: NDArray[np.integer],
        pairs: PairList,
        real: Any,
        device: wp.Device,
    ) -> Matter:
        """Phyxels of all bodies; their laws still to be set."""
        X = wp.array(positions, dtype=wp.types.vector(3, real), device=device)
        near, moments = prepare_neighbourhood(X, support, pairs, device)
        tensor = wp.types.matrix((3, 3), real)
        one = np.broadcast_to(np.eye(3), (len(positions), 3, 3))
        return Matter(
            X=X,
            volume=wp.array(volume, dtype=real, device=device),
            rest_volume=wp.array(volume, dtype=real, device=device),
            support=wp.array(support.astype(np.float64), dtype=wp.float64, device=device),
            birth=wp.clone(X),
            past=wp.array(one, dtype=tensor, device=device),
            hourglass=wp.zeros(len(positions), dtype=real, device=device),
            near=near,
            moments=moments,
            body=wp.array(body.astype(np.int32), dtype=wp.int32, device=device),
            plastic=wp.zeros(len(positions), dtype=tensor, device=device),
            swell=wp.ones(len(positions), dtype=real, device=device),
            laws=Laws.blank(len(positions), 1, real, device),
        )

    @property
    def lists(self) -> list[Any]:
        return [self.near.start, self.near.count, self.near.stride, self.near.index]

    @property
    def law(self) -> list[wp.array]:
        laws = self.laws
        return [laws.of, laws.stiffness, laws.k_v, laws.k_b, self.plastic, self.swell]


@dataclass(frozen=True)
class Forces:
    """Launches that turn displacements into forces. The packed Q (`load`) and `own` are scratch between the passes."""

    matter: Matter
    gradient: wp.array
    load: wp.array
    own: wp.array

    @staticmethod
    def over(matter: Matter) -> Forces:
        n, device = len(matter.X), matter.X.device
        tensor = matter.moments.inverse.dtype
        return Forces(
            matter=matter,
            gradient=wp.zeros(n, dtype=tensor, device=device),
            load=wp.zeros(n, dtype=wp.types.matrix((3, 4), tensor._wp_scalar_type_), device=device),
            own=wp.zeros(n, dtype=matter.X.dtype, device=device),
        )

    def _pass_one(self, kernel: wp.Kernel, fields: Sequence[wp.array]) -> Launch:
        m = self.matter
        shape = [m.X, m.volume, m.hourglass, m.moments.inverse, m.moments.lever]
        inputs = [*shape, *m.lists, m.near.weight, *m.law, *fields, self.gradient, self.load, self.own]
        return Launch(kernel, len(m.X), inputs)

    def _pass_two(self, y: wp.array, force: wp.array) -> Launch:
        m = self.matter
        inputs = [m.X, *m.lists, m.near.weight_back, y, self.load, self.own, force]
        return Launch(gather_forces, len(m.X), inputs)

    def elastic(self, u: wp.array, force: wp.array) -> list[Launch]:
        """force = −∂U/∂u, and the gradient of u."""
        return [self._pass_one(make_stress, [u]), self._pass_two(u, force)]

    def damped(self, u: wp.array, y: wp.array, force: wp.array) -> list[Launch]:
        """force = −∂U/∂u − K (y − u), and the gradient of u."""
        return [self._pass_one(make_damped_stress, [u, y]), self._pass_two(y, force)]

    def tangent(self, p: wp.array, change: wp.array) -> list[Launch]:
        """change = −K p at the gradient of the last force."""
        return [self._pass_one(make_stress_change, [p]), self._pass_two(p, change)]

    def positive_tangent(self, p: wp.array, change: wp.array) -> list[Launch]:
        """change = −K⁺ p, K⁺ a positive part of K."""
        return [self._pass_one(make_positive_stress_change, [p]), self._pass_two(p, change)]

    def energy(self, u: wp.array, energy: wp.array) -> Launch:
        """Elastic energy per phyxel at the gradient of the last force."""
        m = self.matter
        inputs = [m.X, m.volume, m.hourglass, *m.lists, m.near.weight, *m.law, u, self.gradient, energy]
        return Launch(measure_energy, len(m.X), inputs)

    def stress(self, stress: wp.array) -> Launch:
        """Cauchy stress per phyxel [Pa] at the gradient of the last force."""
        return Launch(measure_stress, len(self.matter.X), [*self.matter.law, self.gradient, stress])

    def stiffening(self, largest: wp.array) -> Launch:
        """Largest stiffening of each chunk at the gradient of the last force."""
        known = [*self.matter.law, self.matter.laws.shear_norm, self.matter.volume]
        inputs = [*known, self.gradient, len(self.matter.X), largest]
        return Launch(measure_stiffening, len(largest), inputs, work=CHUNK // 4)

    def flow(self, step: wp.array, slot: int) -> Launch:
        """Flow of stored strain over `step[slot]` [s] at the gradient of the last force."""
        m, laws = self.matter, self.matter.laws
        rows = [laws.of, laws.yield_strain, laws.creep, laws.max_strain, laws.fluid]
        return Launch(flow, len(m.X), [*rows, step, slot, self.gradient, m.plastic, m.swell])
