# mypy: disable-error-code="valid-type,no-untyped-def"
"""Flow that varies within a phyxel: where a body bends beyond its yield, the outer half of a phyxel flows further than
the inner one, and what stays bent is no hourglass any more (physics 6.5).

Where ∇u is measured, the middle m_i = X_i + Σ_j w_ij |X_ij|² X_ij / tr A_i, strain is ε_i; around it, it changes by

    ∂_a ε_i = Σ_b D⁻¹_ab Σ_j w_ij (ε_j − ε_i) d_b,   d = m_j − m_i,   D = Σ_j w_ij d dᵀ

Each phyxel flows at four points of its cell, m_i + ℓ t_k, t = (1, 1, 1), (1, −1, −1), (−1, 1, −1), (−1, −1, 1),
ℓ = ∛v_i/√12, as exact as Gauss' for what is linear there. Its law knows their mean εᵖ_i; the rest is kept as B_a,

    εᵖ at k = εᵖ_i + Σ_a t_ka B_a,   B_a = ¼ Σ_k t_ka εᵖ at k

A cell of which ε = εᵖ everywhere is bent: its points lie at J (X + ½ Γ X X), Γ the Christoffel symbols of the metric
g = I + 2εᵖ. Of that the hourglass is free. With q_ij = ½ Γ_i X_ij X_ij and what a linear fit misses of it, p_ij:

    energy ½ Σ_i c_i Σ_j w_ij |e_ij − J_i p_ij|²,   p_ij = q_ij − G_i X_ij,   G_i = Σ_j w_ij q_ij X_ijᵀ A_i⁻¹

It is quadratic in u: forces along it are linear, and its tangent is the same again but for the I in J.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import warp as wp

from phyxel import device as dev
from phyxel.device import Launch, entries, over, packed
from phyxel.mls.sums import sum_slopes
from phyxel.models.law import flowed, green_strain
from phyxel.models.phyxel.matter import Matter, PhyxelState

wp.set_module_options(dev.KERNEL_OPTIONS)

ARM = wp.constant(1 / math.sqrt(12))
"""ℓ over the edge of a cube"""
RIDGE = wp.constant(1e-3)
"""Share of D's trace that is added to its diagonal: a single layer knows nothing of what changes across it."""
FLAT = wp.constant(0.05)
"""|I + 2εᵖ| below which a phyxel has been crushed, and no bend is known."""
LEAST_TIE = wp.constant(0.1)
"""What of the hourglass stiffness is left to a phyxel that flows, at least."""
BENT = wp.constant(1)
"""Row of a load whose fourth number says whether a phyxel is bent."""
ANY_BENT, ANY_STRAINED = wp.constant(0), wp.constant(1)
"""What has ever happened to any phyxel: where it has not, there is nothing to look for."""
STRAINED = wp.constant(1.0 / 3.0)
"""Share of the yield below which no corner of a cell is beyond it, unless a neighbour is above that share."""


@wp.func
def tensor_of(parts: Any, a: int):
    """B_a of the six parts of each of three symmetric tensors, in the order of `law.VOIGT`."""
    return wp.matrix_from_rows(
        wp.vector(parts[a, 0], parts[a, 5], parts[a, 4]),
        wp.vector(parts[a, 5], parts[a, 1], parts[a, 3]),
        wp.vector(parts[a, 4], parts[a, 3], parts[a, 2]),
    )


@wp.func
def in_parts(A: Any, B: Any, C: Any):
    """Three symmetric tensors as the six parts of each."""
    return wp.matrix_from_rows(
        wp.vector(A[0, 0], A[1, 1], A[2, 2], A[1, 2], A[0, 2], A[0, 1]),
        wp.vector(B[0, 0], B[1, 1], B[2, 2], B[1, 2], B[0, 2], B[0, 1]),
        wp.vector(C[0, 0], C[1, 1], C[2, 2], C[1, 2], C[0, 2], C[0, 1]),
    )


@wp.func
def squares(X: Any):
    """So that ½ Γ X X = Γ squares(X) of a Γ of six columns, in the order of `law.VOIGT`."""
    half = X.dtype(0.5)
    return wp.vector(half * X[0] * X[0], half * X[1] * X[1], half * X[2] * X[2], X[1] * X[2], X[0] * X[2], X[0] * X[1])


@wp.func
def flowed_tie(c: Any, plastic: Any, yield_strain: Any):
    """c_i of a phyxel that has flowed by εᵖ: as its stress stays at the yield Y, what it does not see of its
    neighbours is Y/(Y + |εᵖ|) as stiff, never below a share that hourglasses need. A melt, of no yield, keeps it
    (physics 4.1)."""
    square = wp.ddot(plastic, plastic)
    if square == type(c)(0.0) or yield_strain == type(c)(0.0):
        return c
    return c * wp.max(yield_strain / (yield_strain + wp.sqrt(square)), type(c)(LEAST_TIE))


@wp.func
def is_bent(bend: Any):
    return wp.ddot(bend, bend) > bend.dtype(0.0)


@wp.func
def arm_of(volume: Any):
    """ℓ."""
    return wp.pow(volume, type(volume)(1.0 / 3.0)) * type(volume)(ARM)


@wp.func
def christoffel(bend: Any, plastic: Any, volume: Any):
    """Γ, 3 × 6: (I + 2εᵖ)⁻¹ (∂_a εᵖ_lb + ∂_b εᵖ_la − ∂_l εᵖ_ab), ∂ at most 1 over a cell's edge (physics 6.5)."""
    A, B, C = tensor_of(bend, 0), tensor_of(bend, 1), tensor_of(bend, 2)
    two = bend.dtype(2.0)
    lowered = wp.matrix_from_cols(
        wp.vector(A[0, 0], two * A[1, 0] - B[0, 0], two * A[2, 0] - C[0, 0]),
        wp.vector(two * B[0, 1] - A[1, 1], B[1, 1], two * B[2, 1] - C[1, 1]),
        wp.vector(two * C[0, 2] - A[2, 2], two * C[1, 2] - B[2, 2], C[2, 2]),
        wp.vector(B[0, 2] + C[0, 1] - A[1, 2], C[1, 1], B[2, 2]),
        wp.vector(C[0, 0], A[1, 2] + C[1, 0] - B[0, 2], A[2, 2]),
        wp.vector(B[0, 0], A[1, 1], A[2, 1] + B[2, 0] - C[0, 1]),
    )
    metric = wp.identity(n=3, dtype=plastic.dtype) + plastic * plastic.dtype(2.0)
    scale = bend.dtype(0.0)
    if wp.determinant(metric) > metric.dtype(FLAT):
        sharp = wp.sqrt(wp.ddot(lowered, lowered)) / bend.dtype(ARM)
        scale = bend.dtype(1.0) / (arm_of(volume) * wp.max(bend.dtype(1.0), sharp))
    return wp.inverse(metric) * lowered * scale


@wp.func
def bent_sums(i: int, near: Any, X: Any, y: Any, curve: Any, A_inverse: Any):
    """Σ w y_ij X_ijᵀ, Σ w y_ij p_ijᵀ, Σ w p_ij p_ijᵀ, G and Σ w q_ij of a phyxel, y_ij = y_j − y_i (physics 6.5)."""
    Xi, yi = X[i], y[i]
    zero = A_inverse.dtype(0.0)
    fit = A_inverse * zero
    along = A_inverse * zero
    linear = A_inverse * zero
    square = A_inverse * zero
    whole = Xi * zero
    entry = near.start[i]
    end = entry + near.count[i] * near.stride
    while entry < end:
        j = near.index[entry]
        Xij, yij = X[j] - Xi, near.weight[entry] * (y[j] - yi)
        q = curve * squares(Xij)
        wq = near.weight[entry] * q
        fit += wp.outer(yij, Xij)
        along += wp.outer(yij, q)
        linear += wp.outer(wq, Xij)
        square += wp.outer(wq, q)
        whole += wq
        entry += near.stride
    G = linear * A_inverse
    back = wp.transpose(G)
    return fit, along - fit * back, square - linear * back, G, whole


@wp.kernel
def add_bends(
    first: int, identity: Any, X: entries, volume: entries, hourglass: entries, near: Any, inverse: entries,
    lever: entries, laws: Any, plastic: entries, bend: entries, ever: entries, y: entries, load: entries, own: entries,
    turn: entries,
):  # fmt: skip
    """What pass 1 adds for phyxels that stay bent: to Q c (S A⁻¹ − J G), S = Σ w (e − J p) pᵀ, to own what is of that
    and −c J Σ w q, and `turn` c J Γ for pass 2. J is ∇y, and the identity unless y is a change (physics 6.5)."""
    packed(near.index)
    packed(near.weight)
    i = first + wp.tid()
    v = volume[i]
    if not is_bent(bend[i]) or not v > type(v)(0.0):
        return
    c = flowed_tie(hourglass[i], plastic[i], laws.yield_strain[laws.of[i]])
    A_inverse = inverse[i]
    curve = christoffel(bend[i], plastic[i], v)
    fit, along, square, G, whole = bent_sums(i, near, X, y, curve, A_inverse)
    J = fit * A_inverse + wp.identity(n=3, dtype=A_inverse.dtype) * identity
    Q = ((along - J * square) * A_inverse - J * G) * c
    columns = wp.transpose(Q)
    packed_load = load[i]
    for a in range(3):
        for b in range(3):
            packed_load[a, b] += columns[a, b]
    packed_load[BENT, 3] = type(c)(1.0)
    ever[ANY_BENT] = 1
    load[i] = packed_load
    own[i] = own[i] - Q * lever[i] - c * (J * whole)
    turn[i] = J * curve * c


@wp.kernel
def gather_bends(
    first: int, X: entries, near: Any, load: entries, turn: entries, ever: entries, force: entries
):  # fmt: skip
    """What pass 2 adds: Σ_j w_ji c_j J_j ½ Γ_j X_ij X_ij of neighbours that stay bent (physics 6.5)."""
    packed(near.index)
    packed(near.weight_back)
    i = first + wp.tid()
    if ever[ANY_BENT] == 0:
        return
    Xi = X[i]
    total = Xi * Xi.dtype(0.0)
    entry = near.start[i]
    end = entry + near.count[i] * near.stride
    while entry < end:
        j = near.index[entry]
        if load[j][BENT, 3] > Xi.dtype(0.0):
            total += near.weight_back[entry] * (turn[j] * squares(X[j] - Xi))
        entry += near.stride
    force[i] = force[i] + total


@wp.kernel
def add_bent_energy(
    first: int, X: entries, volume: entries, hourglass: entries, near: Any, inverse: entries, gradient: entries,
    laws: Any, plastic: entries, bend: entries, u: entries, energy: entries,
):  # fmt: skip
    """½ c Σ w (|e − J p|² − |e|²) of phyxels that stay bent (physics 6.5)."""
    packed(near.index)
    packed(near.weight)
    i = first + wp.tid()
    v = volume[i]
    if not is_bent(bend[i]) or not v > type(v)(0.0):
        return
    curve = christoffel(bend[i], plastic[i], v)
    _fit, along, square, _G, _whole = bent_sums(i, near, X, u, curve, inverse[i])
    J = gradient[i] + wp.identity(n=3, dtype=v.dtype)
    c = flowed_tie(hourglass[i], plastic[i], laws.yield_strain[laws.of[i]])
    energy[i] = energy[i] + c * (v.dtype(0.5) * wp.ddot(J, J * square) - wp.ddot(J, along))


@wp.func
def strain_at(gradient: Any):
    """ε of a phyxel."""
    return green_strain(gradient + wp.identity(n=3, dtype=gradient.dtype))


@wp.kernel
def see_strain(
    first: int, X: entries, volume: entries, middle: entries, laws: Any, gradient: entries, plastic: entries,
    ever: entries, seen: entries,
):  # fmt: skip
    """Where each phyxel's strain is measured, whether it has a volume, and the strain in six parts, row after row."""
    i = first + wp.tid()
    place, strain = X[i] + middle[i], strain_at(gradient[i])
    limit = laws.yield_strain[laws.of[i]] * type(volume[i])(STRAINED)
    # The square of a deviator is at most that of its tensor.
    if wp.ddot(strain, strain) > limit * limit or wp.ddot(plastic[i], plastic[i]) > type(volume[i])(0.0):
        ever[ANY_STRAINED] = 1
    none = type(volume[i])(0.0)
    there = wp.where(volume[i] > none, type(volume[i])(1.0), none)
    seen[i] = wp.matrix_from_rows(
        wp.vector(place[0], place[1], place[2], there),
        wp.vector(strain[0, 0], strain[1, 1], strain[2, 2], strain[1, 2]),
        wp.vector(strain[0, 2], strain[0, 1], none, none),
    )


@wp.func
def slopes(sums: Any):
    """∂_a ε, six parts along each axis, from the sums of their fit (physics 6.5)."""
    D = wp.matrix_from_cols(
        wp.vector(sums[0, 0], sums[1, 0], sums[2, 0]),
        wp.vector(sums[0, 1], sums[1, 1], sums[2, 1]),
        wp.vector(sums[0, 2], sums[1, 2], sums[2, 2]),
    )
    change = wp.matrix_from_cols(
        wp.vector(sums[0, 4], sums[1, 4], sums[2, 4]),
        wp.vector(sums[0, 5], sums[1, 5], sums[2, 5]),
        wp.vector(sums[0, 6], sums[1, 6], sums[2, 6]),
        wp.vector(sums[0, 7], sums[1, 7], sums[2, 7]),
        wp.vector(sums[0, 8], sums[1, 8], sums[2, 8]),
        wp.vector(sums[0, 9], sums[1, 9], sums[2, 9]),
    )
    spread = wp.trace(D)
    if spread == sums.dtype(0.0):
        return change
    return wp.inverse(D + wp.identity(n=3, dtype=D.dtype) * (spread * D.dtype(RIDGE))) * change


@wp.func
def corner(k: int, one: Any):
    """t_k: every other corner of the cube from −1 to 1."""
    x = wp.where(k < 2, one, -one)
    y = wp.where(k == 0 or k == 2, one, -one)
    z = wp.where(k == 0 or k == 3, one, -one)
    return wp.vector(x, y, z)


@wp.func
def combined(parts: Any, t: Any):
    """Σ_a t_a B_a."""
    return tensor_of(parts, 0) * t[0] + tensor_of(parts, 1) * t[1] + tensor_of(parts, 2) * t[2]


@wp.kernel
def flow(
    first: int, slot: int, volume: entries, near: Any, laws: Any, step: entries, gradient: entries, ever: entries,
    seen: entries, plastic: entries, bend: entries,
):  # fmt: skip
    """Flow of solids over a step of `step[slot]` [s], at four points of each phyxel (M04 §4.1; physics 6.1, 6.5)."""
    i = first + wp.tid()
    row = laws.of[i]
    none = step.dtype(0.0)
    if laws.fluid[row] > none or ever[ANY_STRAINED] == 0:
        return
    strain = strain_at(gradient[i])
    sums = sum_slopes(i, near.start[i], near.count[i], near.stride, near.index, near.weight, seen)
    across = slopes(sums) * arm_of(volume[i])
    limit, most = laws.yield_strain[row], laws.max_strain[row]
    share = step.dtype(1.0) - wp.exp(-laws.creep[row] * step[slot])
    before = bend[i]
    mean = plastic[i]
    grown = strain * none
    gained = before * none
    for k in range(4):
        t = corner(k, step.dtype(1.0))
        old = mean + combined(before, t)
        change = flowed(strain + combined(across, t), old, limit, share, most) - old
        grown += change
        gained += in_parts(change * t[0], change * t[1], change * t[2])
    quarter = step.dtype(0.25)
    plastic[i] = mean + grown * quarter
    bend[i] = before + gained * quarter


@dataclass(frozen=True)
class LastingBends:
    """Launches about what stays bent. `load` and `own` are what the passes of the forces leave to each other."""

    matter: Matter
    now: PhyxelState
    load: wp.array
    own: wp.array
    turn: wp.array
    """c J Γ of phyxels that are bent, shape (n,) of 3 × 6"""
    seen: wp.array
    """what `flow` asks neighbours for, shape (n,) of 3 × 4"""
    ever: wp.array
    """ANY_BENT and ANY_STRAINED, int32"""

    @staticmethod
    def over(matter: Matter, now: PhyxelState, load: wp.array, own: wp.array) -> LastingBends:
        turn = wp.zeros(len(own), dtype=now.bend.dtype, device=own.device)
        ever = wp.zeros(2, dtype=wp.int32, device=own.device)
        return LastingBends(matter, now, load, own, turn, wp.zeros_like(load), ever)

    def _over(self, kernel: wp.Kernel, **named: Any) -> Launch:
        return over(kernel, len(self.own), self, **named)

    def added(self, y: wp.array, change: bool) -> Launch:
        """What pass 1 adds, of displacements or of a change of them."""
        return self._over(add_bends, y=y, identity=self.matter.volume.dtype(0.0 if change else 1.0))

    def gathered(self, force: wp.array) -> Launch:
        """What pass 2 adds to the forces."""
        return self._over(gather_bends, force=force)

    def energy(self, u: wp.array, energy: wp.array) -> Launch:
        """What is added to the energy of each phyxel at the gradient of the last force."""
        return self._over(add_bent_energy, u=u, energy=energy)

    def flow(self, step: wp.array, slot: int) -> list[Launch]:
        """Flow over `step[slot]` [s] at the gradient of the last force."""
        return [self._over(see_strain), self._over(flow, step=step, slot=slot)]
