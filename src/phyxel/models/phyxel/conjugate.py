# mypy: disable-error-code="valid-type,no-untyped-def"
"""Conjugate gradients for an implicit step, as kernels: nothing comes back to the host between iterations
(physics 5.5).

    A = M(1 + αΔt) + (Δt² + βΔt) K + rub,   P⁻¹ = (3 × 3 blocks of A)⁻¹ + rigid motions of each body

Rigid motions are what no diagonal sees: a stiff body resists everything else a million times more. Held phyxels and the
direction across a plane that is touched are filtered out of residuals and directions (Baraff and Witkin 1998).
Bodies compute in units of their own. For those that touch, A is symmetric in the sum of joules: a body's part of a
scalar product counts by its `worth`, the cube of its unit.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import warp as wp

from phyxel import device as dev
from phyxel.models.reductions import CHUNK

wp.set_module_options(dev.KERNEL_OPTIONS)

RZ, ALPHA, BETA, INDEFINITE = (wp.constant(k) for k in range(4))
"""Numbers of the solver, kept on the device."""


@dataclass
class StepArrays:
    """What an implicit step works with; vectors of shape (n,) where nothing else is said."""

    dt: wp.array
    """[s], shape (1,)"""
    length: wp.array
    """how much of δ is taken, shape (1,)"""
    v_old: wp.array
    """v at the beginning"""
    ahead: wp.array
    """u + Δt v'"""
    y: wp.array
    """the same plus βv'"""
    r: wp.array
    """residual"""
    delta: wp.array
    """δ, correction of v'"""
    z: wp.array
    """P⁻¹ r"""
    p: wp.array
    """search direction"""
    Ap: wp.array
    coupling: wp.array
    """the part of A p that contacts between bodies make"""
    block: wp.array
    """diagonal blocks of K, 3 × 3"""
    inverse_block: wp.array
    """inverse diagonal blocks of A, 3 × 3"""
    stiffer: wp.array
    """diagonal blocks that contacts between bodies add to A, 3 × 3"""
    energy: wp.array
    """of each phyxel, numbers"""
    begin: wp.array
    """first phyxel of each body, and the end of the last, shape (bodies + 1,), int32"""
    worth: wp.array
    """of a body's part in a scalar product: the cube of its unit, shape (bodies,), float64"""
    total: wp.array
    """mass of each body, shape (bodies,)"""
    middle: wp.array
    """of mass of each body, shape (bodies,)"""
    inverse_inertia: wp.array
    """of each body, shape (bodies,) of 3 × 3"""
    drift: wp.array
    """velocity of each body as a rigid one, shape (bodies,)"""
    spin: wp.array
    """of each body as a rigid one, shape (bodies,)"""
    partial: wp.array
    """partial sums, shape (chunks,), float64"""
    solver: wp.array
    """numbers of the conjugate gradients, shape (4,), float64"""
    changed: wp.array
    """1 if any phyxel meets something otherwise than before, shape (1,), int32"""


@wp.func
def filtered(r: Any, held: int, contact: int, n: Any):
    """What of a residual or direction of a phyxel is free to move (Baraff and Witkin 1998, physics 5.5)."""
    if held >= 0:
        return r * r.dtype(0.0)
    if contact > 0:
        return r - wp.dot(r, n) * n
    return r


@wp.func
def stretch_block(d: Any, stiff: Any, shear: Any):
    """∂²W/∂u² of a sample whose gradient takes u with the vector d, for an isotropic law: (λ+μ) d dᵀ + μ|d|² I
    (physics 5.5)."""
    return (stiff - shear) * wp.outer(d, d) + shear * wp.dot(d, d) * wp.identity(n=3, dtype=d.dtype)


@wp.kernel
def make_blocks(first: int, matter: Any, step: Any):
    """Diagonal 3 × 3 blocks of K in the reference shape, for the preconditioner (physics 5.5)."""
    i = first + wp.tid()
    row = matter.laws.of[i]
    C = matter.laws.stiffness[row]
    stiff = wp.max(C[0, 0], wp.max(C[1, 1], C[2, 2])) + matter.laws.k_v[row]
    shear = wp.max(C[3, 3], wp.max(C[4, 4], C[5, 5]))
    own = matter.moments.inverse[i] * matter.moments.lever[i]
    K = matter.volume[i] * stretch_block(own, stiff, shear)
    tie = matter.X[i].dtype(0.0)
    entry = matter.near.start[i]
    end = entry + matter.near.count[i] * matter.near.stride
    while entry < end:
        j = matter.near.index[entry]
        d = matter.moments.inverse[j] * (matter.X[i] - matter.X[j]) * matter.near.weight_back[entry]
        K += matter.volume[j] * stretch_block(d, stiff, shear)
        tie += matter.hourglass[i] * matter.near.weight[entry] + matter.hourglass[j] * matter.near.weight_back[entry]
        entry += matter.near.stride
    step.block[i] = K + tie * wp.identity(n=3, dtype=matter.X[i].dtype)


@wp.kernel
def invert_blocks(first: int, matter: Any, now: Any, met: Any, step: Any):
    """(m(1 + αΔt) I + (Δt² + βΔt) R K Rᵀ)⁻¹, K turned with the phyxel's rotation R; `stiffer` by its contacts
    (physics 5.5)."""
    i = first + wp.tid()
    dt = step.dt[0]
    one = wp.identity(n=3, dtype=matter.mass.dtype)
    U, _s, V = wp.svd3(now.gradient[i] + one)
    R = U * wp.transpose(V)
    inertia = (matter.mass[i] * (matter.mass.dtype(1.0) + matter.drag[i] * dt) + met.rub[i]) * one
    K = R * step.block[i] * wp.transpose(R)
    step.inverse_block[i] = wp.inverse(inertia + step.stiffer[i] + (dt + matter.damping[i]) * dt * K)


@wp.kernel
def find_frames(first: int, matter: Any, step: Any):
    """Mass, middle of mass and inverse inertia about it of each body, at u + Δt v' (physics 5.5)."""
    b = first + wp.tid()
    m = matter.mass.dtype(0.0)
    lever = matter.X[step.begin[b]] * matter.mass.dtype(0.0)
    i = step.begin[b]
    while i < step.begin[b + 1]:
        m += matter.mass[i]
        lever += matter.mass[i] * (matter.X[i] + step.ahead[i])
        i += 1
    centre = lever / m
    inertia = wp.outer(centre, centre) * matter.mass.dtype(0.0)
    i = step.begin[b]
    while i < step.begin[b + 1]:
        arm = matter.X[i] + step.ahead[i] - centre
        inertia += matter.mass[i] * (wp.dot(arm, arm) * wp.identity(n=3, dtype=matter.mass.dtype) - wp.outer(arm, arm))
        i += 1
    step.total[b] = m
    step.middle[b] = centre
    step.inverse_inertia[b] = wp.inverse(inertia)


@wp.kernel
def move_rigidly(first: int, matter: Any, step: Any):
    """How each body would move under the residual if it were rigid (physics 5.5)."""
    b = first + wp.tid()
    push = matter.X[step.begin[b]] * matter.mass.dtype(0.0)
    torque = push
    i = step.begin[b]
    while i < step.begin[b + 1]:
        push += step.r[i]
        torque += wp.cross(matter.X[i] + step.ahead[i] - step.middle[b], step.r[i])
        i += 1
    step.drift[b] = push / step.total[b]
    step.spin[b] = step.inverse_inertia[b] * torque


@wp.kernel
def restart(first: int, step: Any):
    """δ = 0, p = z."""
    i = first + wp.tid()
    step.delta[i] = step.z[i] * step.z[i].dtype(0.0)
    step.p[i] = step.z[i]


@wp.func
def sum_of(partial: wp.array(dtype=wp.float64), chunks: int):
    """The partial sums of all chunks, in their order."""
    total = wp.float64(0.0)
    c = int(0)
    while c < chunks:
        total += partial[c]
        c += 1
    return total


@wp.kernel
def keep_first(first: int, chunks: int, step: Any):
    """r·z at the start."""
    step.solver[RZ] = sum_of(step.partial, chunks)
    step.solver[INDEFINITE] = wp.float64(0.0)


@wp.kernel
def apply_system(first: int, n: int, matter: Any, outside: Any, met: Any, step: Any):
    """A p in place of −K p, `coupling` being the part of contacts; partial sums of p·A p (physics 5.5)."""
    c = first + wp.tid()
    total = wp.float64(0.0)
    i = c * CHUNK
    end = wp.min(n, i + CHUNK)
    while i < end:
        b = matter.body[i]
        stays = matter.mass[i] * (matter.mass.dtype(1.0) + matter.drag[i] * step.dt[0]) + met.rub[i]
        whole = stays * step.p[i] - (step.dt[0] + matter.damping[i]) * step.dt[0] * step.Ap[i] + step.coupling[i]
        Ap = filtered(whole, outside.hold[i], met.contact[i], met.normal[i])
        step.Ap[i] = Ap
        total += step.worth[b] * wp.float64(wp.dot(step.p[i], Ap))
        i += 1
    step.partial[c] = total


@wp.kernel
def choose_length(first: int, chunks: int, step: Any):
    """How far to go along p; not at all once a direction of negative curvature is met (physics 5.5)."""
    total = sum_of(step.partial, chunks)
    zero = wp.float64(0.0)
    if total <= zero and step.solver[RZ] > zero:
        step.solver[INDEFINITE] = wp.float64(1.0)
    step.solver[ALPHA] = wp.where(total > zero and step.solver[INDEFINITE] == zero, step.solver[RZ] / total, zero)


@wp.kernel
def go_along(first: int, step: Any):
    """δ += αp, r −= αA p."""
    i = first + wp.tid()
    alpha = step.r[i].dtype(step.solver[ALPHA])
    step.delta[i] = step.delta[i] + alpha * step.p[i]
    step.r[i] = step.r[i] - alpha * step.Ap[i]


@wp.kernel
def precondition(first: int, n: int, matter: Any, outside: Any, met: Any, step: Any):
    """z = P⁻¹ r, by the phyxel's own block and by the body as a whole; partial sums of r·z (physics 5.5)."""
    c = first + wp.tid()
    total = wp.float64(0.0)
    i = c * CHUNK
    end = wp.min(n, i + CHUNK)
    while i < end:
        b = matter.body[i]
        arm = matter.X[i] + step.ahead[i] - step.middle[b]
        pulled = step.inverse_block[i] * step.r[i] + step.drift[b] + wp.cross(step.spin[b], arm)
        step.z[i] = filtered(pulled, outside.hold[i], met.contact[i], met.normal[i])
        total += step.worth[b] * wp.float64(wp.dot(step.r[i], step.z[i]))
        i += 1
    step.partial[c] = total


@wp.kernel
def choose_turn(first: int, chunks: int, step: Any):
    """β, the share of the old direction in the new."""
    total = sum_of(step.partial, chunks)
    step.solver[BETA] = wp.where(step.solver[RZ] > wp.float64(0.0), total / step.solver[RZ], wp.float64(0.0))
    step.solver[RZ] = total


@wp.kernel
def turn(first: int, step: Any):
    """p = z + βp."""
    i = first + wp.tid()
    step.p[i] = step.z[i] + step.p[i].dtype(step.solver[BETA]) * step.p[i]
