# mypy: disable-error-code="valid-type,no-untyped-def"
"""Forces between phyxels: two passes over the neighbour lists, gathered, never scattered (physics 4).

    pass 1, per phyxel:  ∇u_i = Σ_j w_ij (u_j − u_i) X_ijᵀ A_i⁻¹
                         Q_i = −v_i ∂W/∂J A_i⁻¹ + c_i ∇u_i
                         own_i = c_i Σ_j w_ij (u_j − u_i) − Q_i Σ_j w_ij X_ij
    pass 2, per phyxel:  f_i = own_i + Σ_j w_ji [c_j (u_j − u_i) − Q_j X_ij]

c_i = β E v_i / tr A_i penalises what the linear fit cannot see (hourglass modes): energy ½ Σ_i c_i Σ_j w_ij |e_ij|²,
e_ij = u_j − u_i − ∇u_i X_ij. It vanishes for every affine field. What has flowed may stay bent besides (`bends`).
All of it is written in displacements.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import warp as wp

from phyxel import device as dev
from phyxel.device import Launch, entries, float64s, over, packed
from phyxel.mls.sums import sum_fit, sum_load
from phyxel.models.law import (
    energy_density,
    first_stress,
    first_stress_change,
    molten,
    molten_swell,
    positive_stress_change,
    stiffening,
    straining_stress,
)
from phyxel.models.phyxel.bends import LastingBends, flowed_tie
from phyxel.models.phyxel.matter import Materials, Matter, PhyxelState
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
    first: int, X: entries, volume: entries, hourglass: entries, near: Any, inverse: entries, lever: entries, laws: Any,
    gradient: entries, plastic: entries, swell: entries, u: entries, load: entries, own: entries,
):  # fmt: skip
    """Pass 1: ∇u, Q and own of each phyxel (M04 eq. 8 to 15, physics 4.2)."""
    i = first + wp.tid()
    sums = sum_fit(i, near.start[i], near.count[i], near.stride, near.index, near.weight, X, u)
    A_inverse = inverse[i]
    grad = fitted_gradient(sums, A_inverse)
    row = laws.of[i]
    P = first_stress(deformation(grad), plastic[i], swell[i], laws.stiffness[row], laws.k_v[row], laws.k_b[row])
    c = flowed_tie(hourglass[i], plastic[i], laws.yield_strain[row])
    Q = grad * c - P * A_inverse * volume[i]
    gradient[i] = grad
    load[i] = packed_load(Q, c)
    own[i] = c * fitted_sum(sums) - Q * lever[i]


@wp.kernel
def make_damped_stress(
    first: int, X: entries, volume: entries, hourglass: entries, near: Any, inverse: entries, lever: entries, laws: Any,
    gradient: entries, plastic: entries, swell: entries, u: entries, y: entries, load: entries, own: entries,
):  # fmt: skip
    """Pass 1 with damping β: y = u + βv, so that the stress is P(∇u) + ∂P·(∇y − ∇u), of ∂P what straining makes
    (physics 5.7)."""
    i = first + wp.tid()
    sums = sum_fit(i, near.start[i], near.count[i], near.stride, near.index, near.weight, X, u)
    sums_y = sum_fit(i, near.start[i], near.count[i], near.stride, near.index, near.weight, X, y)
    A_inverse = inverse[i]
    grad = fitted_gradient(sums, A_inverse)
    grad_y = fitted_gradient(sums_y, A_inverse)
    J = deformation(grad)
    row = laws.of[i]
    P = first_stress(J, plastic[i], swell[i], laws.stiffness[row], laws.k_v[row], laws.k_b[row])
    P += straining_stress(J, swell[i], grad_y - grad, laws.stiffness[row], laws.k_v[row], laws.k_b[row])
    c = flowed_tie(hourglass[i], plastic[i], laws.yield_strain[row])
    Q = grad_y * c - P * A_inverse * volume[i]
    gradient[i] = grad
    load[i] = packed_load(Q, c)
    own[i] = c * fitted_sum(sums_y) - Q * lever[i]


@wp.kernel
def make_stress_change(
    first: int, X: entries, volume: entries, hourglass: entries, near: Any, inverse: entries, lever: entries, laws: Any,
    gradient: entries, plastic: entries, swell: entries, p: entries, load: entries, own: entries,
):  # fmt: skip
    """Pass 1 of the tangent product −K p: the change of Q and own along p, at the ∇u of the last pass 1
    (physics 4.4)."""
    i = first + wp.tid()
    sums = sum_fit(i, near.start[i], near.count[i], near.stride, near.index, near.weight, X, p)
    A_inverse = inverse[i]
    dJ = fitted_gradient(sums, A_inverse)
    J = deformation(gradient[i])
    row = laws.of[i]
    dP = first_stress_change(J, plastic[i], swell[i], dJ, laws.stiffness[row], laws.k_v[row], laws.k_b[row])
    c = flowed_tie(hourglass[i], plastic[i], laws.yield_strain[row])
    Q = dJ * c - dP * A_inverse * volume[i]
    load[i] = packed_load(Q, c)
    own[i] = c * fitted_sum(sums) - Q * lever[i]


@wp.kernel
def make_positive_stress_change(
    first: int, X: entries, volume: entries, hourglass: entries, near: Any, inverse: entries, lever: entries, laws: Any,
    gradient: entries, plastic: entries, swell: entries, p: entries, load: entries, own: entries,
):  # fmt: skip
    """Pass 1 of the product with a positive part of the tangent: for solves where K itself is not (physics 5.5)."""
    i = first + wp.tid()
    sums = sum_fit(i, near.start[i], near.count[i], near.stride, near.index, near.weight, X, p)
    A_inverse = inverse[i]
    dJ = fitted_gradient(sums, A_inverse)
    J = deformation(gradient[i])
    row = laws.of[i]
    dP = positive_stress_change(J, plastic[i], swell[i], dJ, laws.stiffness[row], laws.k_v[row], laws.k_b[row])
    c = flowed_tie(hourglass[i], plastic[i], laws.yield_strain[row])
    Q = dJ * c - dP * A_inverse * volume[i]
    load[i] = packed_load(Q, c)
    own[i] = c * fitted_sum(sums) - Q * lever[i]


@wp.kernel
def gather_forces(first: int, X: entries, near: Any, y: entries, load: entries, own: entries, force: entries):
    """Pass 2: what the neighbours lay on each phyxel (M04 eq. 18, 19 with hourglass control, physics 4.3)."""
    i = first + wp.tid()
    force[i] = own[i] + sum_load(i, near.start[i], near.count[i], near.stride, near.index, near.weight_back, X, y, load)


@wp.kernel
def measure_energy(
    first: int, X: entries, volume: entries, hourglass: entries, near: Any, laws: Any, gradient: entries,
    plastic: entries, swell: entries, u: entries, energy: entries,
):  # fmt: skip
    """Elastic energy of each phyxel, the hourglass part included (physics 3.2, 4.1)."""
    packed(near.index)
    packed(near.weight)
    i = first + wp.tid()
    Xi = X[i]
    ui = u[i]
    grad = gradient[i]
    missed = hourglass[i] * Xi.dtype(0.0)
    entry = near.start[i]
    end = entry + near.count[i] * near.stride
    while entry < end:
        j = near.index[entry]
        missed += near.weight[entry] * wp.length_sq(u[j] - ui - grad * (X[j] - Xi))
        entry += near.stride
    row = laws.of[i]
    C = laws.stiffness[row]
    W = energy_density(deformation(grad), plastic[i], swell[i], C, laws.k_v[row], laws.k_b[row])
    c = flowed_tie(hourglass[i], plastic[i], laws.yield_strain[row])
    energy[i] = volume[i] * W + Xi.dtype(0.5) * c * missed


@wp.func
def cauchy_stress(gradient: Any, plastic: Any, swell: Any, C: Any, k_v: Any, k_b: Any):
    """(∂W/∂J) Jᵀ/|J| [Pa] (physics 3.3)."""
    J = deformation(gradient)
    P = first_stress(J, plastic, swell, C, k_v, k_b)
    return P * wp.transpose(J) / wp.determinant(J)


@wp.kernel
def measure_stress(first: int, laws: Any, gradient: entries, plastic: entries, swell: entries, stress: entries):
    """Cauchy stress of each phyxel [Pa]."""
    i = first + wp.tid()
    row = laws.of[i]
    stress[i] = cauchy_stress(gradient[i], plastic[i], swell[i], laws.stiffness[row], laws.k_v[row], laws.k_b[row])


@wp.kernel
def measure_stiffening(
    first: int, n: int, volume: entries, laws: Any, gradient: entries, plastic: entries, swell: entries,
    largest: float64s,
):  # fmt: skip
    """Largest stiffening among the CHUNK phyxels of each chunk; not a number if any is none (physics 3.5)."""
    c = first + wp.tid()
    found = wp.float64(0.0)
    i = c * CHUNK
    end = wp.min(n, i + CHUNK)
    while i < end:
        row = laws.of[i]
        J = deformation(gradient[i])
        C, C_norm = laws.stiffness[row], laws.shear_norm[row]
        value = wp.float64(stiffening(J, plastic[i], swell[i], C, C_norm, laws.k_v[row], laws.k_b[row]))
        if wp.isnan(value):
            found = value
            break
        if volume[i] > J.dtype(0.0):
            found = wp.max(found, value)
        i += 1
    largest[c] = found


@wp.kernel
def fade(first: int, slot: int, laws: Any, step: entries, gradient: entries, plastic: entries, swell: entries):
    """Fading of a melt's stored strain over a step of `step[slot]` [s] (M04 §4.2; physics 7.2)."""
    i = first + wp.tid()
    row = laws.of[i]
    if laws.fluid[row] > step.dtype(0.0):
        J = deformation(gradient[i])
        share = step.dtype(1.0) - wp.exp(-laws.creep[row] * step[slot])
        plastic[i] = molten(J, plastic[i], share)
        swell[i] = molten_swell(J, swell[i], share)


@dataclass
class Forces:
    """Launches that turn displacements into forces. The packed Q (`load`) and `own` are scratch between the passes."""

    matter: Matter
    now: PhyxelState
    load: wp.array
    own: wp.array
    bends: LastingBends | None = None
    """of solids that flow, or have flowed"""

    @staticmethod
    def over(matter: Matter, now: PhyxelState) -> Forces:
        n, device, real = len(matter.X), matter.X.device, matter.volume.dtype
        return Forces(
            matter=matter,
            now=now,
            load=wp.zeros(n, dtype=wp.types.matrix((3, 4), real), device=device),
            own=wp.zeros(n, dtype=matter.X.dtype, device=device),
        )

    def _over(self, kernel: wp.Kernel, **named: wp.array) -> Launch:
        return over(kernel, len(self.matter.X), self, **named)

    def know_bends(self, yields: bool) -> None:
        """See to what stays bent, from the next launches on, if solids can flow or have flowed."""
        if self.bends is None and (yields or self.now.bend.numpy().any()):
            self.bends = LastingBends.over(self.matter, self.now, self.load, self.own)

    def _passes(
        self, kernel: wp.Kernel, y: wp.array, force: wp.array, change: bool = False, **named: wp.array
    ) -> list[Launch]:
        first, second = self._over(kernel, y=y, **named), self._over(gather_forces, y=y, force=force)
        if self.bends is None:
            return [first, second]
        return [first, self.bends.added(y, change), second, self.bends.gathered(force)]

    def elastic(self, u: wp.array, force: wp.array) -> list[Launch]:
        """force = −∂U/∂u, and the gradient of u."""
        return self._passes(make_stress, u, force, u=u)

    def damped(self, u: wp.array, y: wp.array, force: wp.array) -> list[Launch]:
        """force = −∂U/∂u − K' (y − u), K' what of K resists straining, and the gradient of u."""
        return self._passes(make_damped_stress, y, force, u=u)

    def tangent(self, p: wp.array, change: wp.array) -> list[Launch]:
        """change = −K p at the gradient of the last force."""
        return self._passes(make_stress_change, p, change, change=True, p=p)

    def positive_tangent(self, p: wp.array, change: wp.array) -> list[Launch]:
        """change = −K⁺ p, K⁺ a positive part of K."""
        return self._passes(make_positive_stress_change, p, change, change=True, p=p)

    def energy(self, u: wp.array, energy: wp.array) -> list[Launch]:
        """Elastic energy per phyxel at the gradient of the last force."""
        bent = [] if self.bends is None else [self.bends.energy(u, energy)]
        return [self._over(measure_energy, u=u, energy=energy), *bent]

    def stress(self, stress: wp.array) -> Launch:
        """Cauchy stress per phyxel [Pa] at the gradient of the last force."""
        return self._over(measure_stress, stress=stress)

    def stiffening(self, largest: wp.array) -> Launch:
        """Largest stiffening of each chunk at the gradient of the last force."""
        n = len(self.matter.X)
        return over(measure_stiffening, len(largest), self, work=CHUNK // 4, n=n, largest=largest)

    def fade(self, step: wp.array, slot: int) -> Launch:
        """Fading of what melts have stored over `step[slot]` [s] at the gradient of the last force."""
        return self._over(fade, step=step, slot=slot)

    def flow(self, step: wp.array, slot: int) -> list[Launch]:
        """Flow of solids over `step[slot]` [s] at the gradient of the last force."""
        return [] if self.bends is None else self.bends.flow(step, slot)

    def flowing(self, laws: Materials, step: wp.array, slot: int) -> list[Launch]:
        """What of both is needed under these laws."""
        fading = [self.fade(step, slot)] if laws.fades else []
        return fading + (self.flow(step, slot) if laws.yields else [])
