# mypy: disable-error-code="valid-type,no-untyped-def"
"""Forces between phyxels: two passes over the neighbour lists, gathered, never scattered (physics 4).

    pass 1, per phyxel:  ∇u_i = Σ_j w_ij (u_j − u_i) X_ijᵀ A_i⁻¹
                         Q_i = −v_i ∂W/∂J A_i⁻¹ + c_i ∇u_i
                         own_i = c_i Σ_j w_ij (u_j − u_i) − Q_i Σ_j w_ij X_ij
    pass 2, per phyxel:  f_i = own_i + Σ_j w_ji [c_j (u_j − u_i) − Q_j X_ij]

c_i = β E v_i / tr A_i penalises what the linear fit cannot see (hourglass modes): energy ½ Σ_i c_i Σ_j w_ij |e_ij|²,
e_ij = u_j − u_i − ∇u_i X_ij. It vanishes for every affine field. All of it is written in displacements. Kernels take
`Matter`, its neighbours, its laws and `PhyxelState` as structs. Functions that they call take none: a struct that is
handed on is copied, which costs 8 % of a pass.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import warp as wp

from phyxel import device as dev
from phyxel.device import Launch, as_struct
from phyxel.mls.sums import sum_fit, sum_load
from phyxel.models.law import (
    energy_density,
    first_stress,
    first_stress_change,
    flowed,
    molten,
    molten_swell,
    positive_stress_change,
    stiffening,
)
from phyxel.models.phyxel.matter import Matter, PhyxelState
from phyxel.models.reductions import CHUNK

wp.set_module_options(dev.KERNEL_OPTIONS)


@wp.func
def deformation(gradient: Any):
    """J = I + ∇u."""
    return gradient + wp.identity(n=3, dtype=gradient.dtype)


@wp.func
def fitted_gradient(sums: Any, A_inverse: Any):
    """∇y = Σ w (y_j − y_i) X_ijᵀ A⁻¹ from the sums of a fit (physics 2.2)."""
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
    matter: Any,
    near: Any,
    law: Any,
    now: Any,
    u: wp.array(dtype=Any),
    load: wp.array(dtype=Any),
    own: wp.array(dtype=Any),
):
    """Pass 1: ∇u, Q and own of each phyxel (M04 eq. 8 to 15, physics 4.2)."""
    i = first + wp.tid()
    sums = sum_fit(i, near.start[i], near.count[i], near.stride, near.index, near.weight, matter.X, u)
    A_inverse = matter.moments.inverse[i]
    grad = fitted_gradient(sums, A_inverse)
    row = law.of[i]
    P = first_stress(deformation(grad), now.plastic[i], now.swell[i], law.stiffness[row], law.k_v[row], law.k_b[row])
    c = matter.hourglass[i]
    Q = grad * c - P * A_inverse * matter.volume[i]
    now.gradient[i] = grad
    load[i] = packed_load(Q, c)
    own[i] = c * fitted_sum(sums) - Q * matter.moments.lever[i]


@wp.kernel
def make_damped_stress(
    first: int,
    matter: Any,
    near: Any,
    law: Any,
    now: Any,
    u: wp.array(dtype=Any),
    y: wp.array(dtype=Any),
    load: wp.array(dtype=Any),
    own: wp.array(dtype=Any),
):
    """Pass 1 with Rayleigh's −βK v: y = u + βv, so that the stress is P(∇u) + ∂P·(∇y − ∇u) (physics 5.7)."""
    i = first + wp.tid()
    sums = sum_fit(i, near.start[i], near.count[i], near.stride, near.index, near.weight, matter.X, u)
    sums_y = sum_fit(i, near.start[i], near.count[i], near.stride, near.index, near.weight, matter.X, y)
    A_inverse = matter.moments.inverse[i]
    grad = fitted_gradient(sums, A_inverse)
    grad_y = fitted_gradient(sums_y, A_inverse)
    J = deformation(grad)
    row = law.of[i]
    P = first_stress(J, now.plastic[i], now.swell[i], law.stiffness[row], law.k_v[row], law.k_b[row])
    P += first_stress_change(
        J, now.plastic[i], now.swell[i], grad_y - grad, law.stiffness[row], law.k_v[row], law.k_b[row]
    )
    c = matter.hourglass[i]
    Q = grad_y * c - P * A_inverse * matter.volume[i]
    now.gradient[i] = grad
    load[i] = packed_load(Q, c)
    own[i] = c * fitted_sum(sums_y) - Q * matter.moments.lever[i]


@wp.kernel
def make_stress_change(
    first: int,
    matter: Any,
    near: Any,
    law: Any,
    now: Any,
    p: wp.array(dtype=Any),
    load: wp.array(dtype=Any),
    own: wp.array(dtype=Any),
):
    """Pass 1 of the tangent product −K p: the change of Q and own along p, at the ∇u of the last pass 1
    (physics 4.4)."""
    i = first + wp.tid()
    sums = sum_fit(i, near.start[i], near.count[i], near.stride, near.index, near.weight, matter.X, p)
    A_inverse = matter.moments.inverse[i]
    dJ = fitted_gradient(sums, A_inverse)
    J = deformation(now.gradient[i])
    c = matter.hourglass[i]
    row = law.of[i]
    dP = first_stress_change(J, now.plastic[i], now.swell[i], dJ, law.stiffness[row], law.k_v[row], law.k_b[row])
    Q = dJ * c - dP * A_inverse * matter.volume[i]
    load[i] = packed_load(Q, c)
    own[i] = c * fitted_sum(sums) - Q * matter.moments.lever[i]


@wp.kernel
def make_positive_stress_change(
    first: int,
    matter: Any,
    near: Any,
    law: Any,
    now: Any,
    p: wp.array(dtype=Any),
    load: wp.array(dtype=Any),
    own: wp.array(dtype=Any),
):
    """Pass 1 of the product with a positive part of the tangent: for solves where K itself is not (physics 5.5)."""
    i = first + wp.tid()
    sums = sum_fit(i, near.start[i], near.count[i], near.stride, near.index, near.weight, matter.X, p)
    A_inverse = matter.moments.inverse[i]
    dJ = fitted_gradient(sums, A_inverse)
    J = deformation(now.gradient[i])
    c = matter.hourglass[i]
    row = law.of[i]
    dP = positive_stress_change(J, now.plastic[i], now.swell[i], dJ, law.stiffness[row], law.k_v[row], law.k_b[row])
    Q = dJ * c - dP * A_inverse * matter.volume[i]
    load[i] = packed_load(Q, c)
    own[i] = c * fitted_sum(sums) - Q * matter.moments.lever[i]


@wp.kernel
def gather_forces(
    first: int,
    matter: Any,
    near: Any,
    y: wp.array(dtype=Any),
    load: wp.array(dtype=Any),
    own: wp.array(dtype=Any),
    force: wp.array(dtype=Any),
):
    """Pass 2: what the neighbours lay on each phyxel (M04 eq. 18, 19 with hourglass control, physics 4.3)."""
    i = first + wp.tid()
    entry, count = near.start[i], near.count[i]
    force[i] = own[i] + sum_load(i, entry, count, near.stride, near.index, near.weight_back, matter.X, y, load)


@wp.kernel
def measure_energy(
    first: int, matter: Any, near: Any, law: Any, now: Any, u: wp.array(dtype=Any), energy: wp.array(dtype=Any)
):
    """Elastic energy of each phyxel, the hourglass part included (physics 3.2, 4.1)."""
    i = first + wp.tid()
    Xi = matter.X[i]
    ui = u[i]
    grad = now.gradient[i]
    missed = matter.hourglass[i] * Xi.dtype(0.0)
    entry = near.start[i]
    end = entry + near.count[i] * near.stride
    while entry < end:
        j = near.index[entry]
        missed += near.weight[entry] * wp.length_sq(u[j] - ui - grad * (matter.X[j] - Xi))
        entry += near.stride
    row = law.of[i]
    C = law.stiffness[row]
    W = energy_density(deformation(grad), now.plastic[i], now.swell[i], C, law.k_v[row], law.k_b[row])
    energy[i] = matter.volume[i] * W + Xi.dtype(0.5) * matter.hourglass[i] * missed


@wp.func
def cauchy_stress(i: int, law: Any, now: Any):
    """(∂W/∂J) Jᵀ/|J| of phyxel i [Pa] (physics 3.3)."""
    J = deformation(now.gradient[i])
    row = law.of[i]
    P = first_stress(J, now.plastic[i], now.swell[i], law.stiffness[row], law.k_v[row], law.k_b[row])
    return P * wp.transpose(J) / wp.determinant(J)


@wp.kernel
def measure_stress(first: int, law: Any, now: Any, stress: wp.array(dtype=Any)):
    """Cauchy stress of each phyxel [Pa]."""
    i = first + wp.tid()
    stress[i] = cauchy_stress(i, law, now)


@wp.kernel
def measure_stiffening(first: int, n: int, matter: Any, law: Any, now: Any, largest: wp.array(dtype=wp.float64)):
    """Largest stiffening among the CHUNK phyxels of each chunk; not a number if any is none (physics 3.5)."""
    c = first + wp.tid()
    found = wp.float64(0.0)
    i = c * CHUNK
    end = wp.min(n, i + CHUNK)
    while i < end:
        row = law.of[i]
        J = deformation(now.gradient[i])
        k_v, k_b = law.k_v[row], law.k_b[row]
        C, C_norm = law.stiffness[row], law.shear_norm[row]
        value = wp.float64(stiffening(J, now.plastic[i], now.swell[i], C, C_norm, k_v, k_b))
        if wp.isnan(value):
            found = value
            break
        if matter.volume[i] > J.dtype(0.0):
            found = wp.max(found, value)
        i += 1
    largest[c] = found


@wp.kernel
def flow(first: int, law: Any, now: Any, step: wp.array(dtype=Any), slot: int):
    """Flow of each phyxel's stored strain over a step of `step[slot]` [s] (M04 §4.1, §4.2; physics 6.1, 7.2)."""
    i = first + wp.tid()
    row = law.of[i]
    J = deformation(now.gradient[i])
    share = step.dtype(1.0) - wp.exp(-law.creep[row] * step[slot])
    if law.fluid[row] > step.dtype(0.0):
        now.plastic[i] = molten(J, now.plastic[i], share)
        now.swell[i] = molten_swell(J, now.swell[i], share)
    else:
        limit, most = law.yield_strain[row], law.max_strain[row]
        now.plastic[i] = flowed(J, now.plastic[i], limit, share, most)


@dataclass(frozen=True)
class Forces:
    """Launches that turn displacements into forces. The packed Q (`load`) and `own` are scratch between the passes."""

    matter: Matter
    now: PhyxelState
    load: wp.array
    own: wp.array

    @staticmethod
    def over(matter: Matter, now: PhyxelState) -> Forces:
        n, device, real = len(matter.X), matter.X.device, matter.volume.dtype
        return Forces(
            matter=matter,
            now=now,
            load=wp.zeros(n, dtype=wp.types.matrix((3, 4), real), device=device),
            own=wp.zeros(n, dtype=matter.X.dtype, device=device),
        )

    def _launch(self, kernel: wp.Kernel, *inputs: Any) -> Launch:
        matter, now = self.matter, self.now
        structs = [as_struct(arrays) for arrays in (matter, matter.near, matter.laws, now)]
        return Launch(kernel, len(matter.X), [*structs, *inputs])

    def _passes(self, kernel: wp.Kernel, fields: list[wp.array], force: wp.array) -> list[Launch]:
        gathered = [as_struct(self.matter), as_struct(self.matter.near), fields[-1], self.load, self.own, force]
        return [
            self._launch(kernel, *fields, self.load, self.own),
            Launch(gather_forces, len(self.matter.X), gathered),
        ]

    def elastic(self, u: wp.array, force: wp.array) -> list[Launch]:
        """force = −∂U/∂u, and the gradient of u."""
        return self._passes(make_stress, [u], force)

    def damped(self, u: wp.array, y: wp.array, force: wp.array) -> list[Launch]:
        """force = −∂U/∂u − K (y − u), and the gradient of u."""
        return self._passes(make_damped_stress, [u, y], force)

    def tangent(self, p: wp.array, change: wp.array) -> list[Launch]:
        """change = −K p at the gradient of the last force."""
        return self._passes(make_stress_change, [p], change)

    def positive_tangent(self, p: wp.array, change: wp.array) -> list[Launch]:
        """change = −K⁺ p, K⁺ a positive part of K."""
        return self._passes(make_positive_stress_change, [p], change)

    def energy(self, u: wp.array, energy: wp.array) -> Launch:
        """Elastic energy per phyxel at the gradient of the last force."""
        return self._launch(measure_energy, u, energy)

    def stress(self, stress: wp.array) -> Launch:
        """Cauchy stress per phyxel [Pa] at the gradient of the last force."""
        return Launch(measure_stress, len(self.matter.X), [as_struct(self.matter.laws), as_struct(self.now), stress])

    def stiffening(self, largest: wp.array) -> Launch:
        """Largest stiffening of each chunk at the gradient of the last force."""
        structs = [as_struct(arrays) for arrays in (self.matter, self.matter.laws, self.now)]
        inputs = [len(self.matter.X), *structs, largest]
        return Launch(measure_stiffening, len(largest), inputs, work=CHUNK // 4)

    def flow(self, step: wp.array, slot: int) -> Launch:
        """Flow of stored strain over `step[slot]` [s] at the gradient of the last force."""
        inputs = [as_struct(self.matter.laws), as_struct(self.now), step, slot]
        return Launch(flow, len(self.matter.X), inputs)
