# mypy: disable-error-code="valid-type,no-untyped-def"
"""Conjugate gradients for an implicit step, as kernels: nothing comes back to the host between iterations
(physics 5.5).

    A = M(1 + αh) + (h² + βh) K + rub,   P⁻¹ = (3 × 3 blocks of A)⁻¹ + rigid motions of each body

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
from phyxel.device import entries
from phyxel.models.reductions import CHUNK

wp.set_module_options(dev.KERNEL_OPTIONS)

RZ, ALPHA, BETA, INDEFINITE, GAINED = (wp.constant(k) for k in range(5))
"""Numbers of the solver, kept on the device."""


@dataclass
class StepArrays:
    """What an implicit step works with; vectors of shape (n,) where nothing else is said."""

    dt: wp.array
    """h of each body's stage [s], 0 for one that has none; shape (bodies,)"""
    stage: wp.array
    """which that is (`stages`), shape (bodies,), int32"""
    length: wp.array
    """how much of δ is taken, shape (1,)"""
    v_start: wp.array
    """v at the beginning of the step"""
    base: wp.array
    """ū, from where the stage goes"""
    v_old: wp.array
    """v̂, with which it goes"""
    ahead: wp.array
    """ū + h v'"""
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
    loose: wp.array
    """what of a rigid motion of each body counts in the preconditioner, shape (bodies,)"""
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
    """numbers of the conjugate gradients, shape (5,), float64"""
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
def across(e: Any, way: Any):
    """What of a sliding friction resists like a stiffness: all of it where it holds (way 0), else that across the way
    it goes (physics 15.3)."""
    return e - wp.dot(e, way) * way


@wp.func
def stretch_block(d: Any, stiff: Any, shear: Any):
    """∂²W/∂u² of a sample whose gradient takes u with the vector d, for an isotropic law: (λ+μ) d dᵀ + μ|d|² I
    (physics 5.5)."""
    return (stiff - shear) * wp.outer(d, d) + shear * wp.dot(d, d) * wp.identity(n=3, dtype=d.dtype)


@wp.kernel
def make_blocks(
    first: int, X: entries, volume: entries, hourglass: entries, near: Any, inverse: entries, lever: entries, laws: Any,
    block: entries,
):  # fmt: skip
    """Diagonal 3 × 3 blocks of K in the reference shape, for the preconditioner (physics 5.5)."""
    i = first + wp.tid()
    row = laws.of[i]
    C = laws.stiffness[row]
    stiff = wp.max(C[0, 0], wp.max(C[1, 1], C[2, 2])) + laws.k_v[row]
    shear = wp.max(C[3, 3], wp.max(C[4, 4], C[5, 5]))
    own = inverse[i] * lever[i]
    K = volume[i] * stretch_block(own, stiff, shear)
    tie = X[i].dtype(0.0)
    entry = near.start[i]
    end = entry + near.count[i] * near.stride
    while entry < end:
        j = near.index[entry]
        d = inverse[j] * (X[i] - X[j]) * near.weight_back[entry]
        K += volume[j] * stretch_block(d, stiff, shear)
        tie += hourglass[i] * near.weight[entry] + hourglass[j] * near.weight_back[entry]
        entry += near.stride
    block[i] = K + tie * wp.identity(n=3, dtype=X[i].dtype)


@wp.kernel
def invert_blocks(
    first: int, body: entries, mass: entries, damping: entries, drag: entries, dt: entries, gradient: entries,
    rub: entries, way: entries, block: entries, inverse_block: entries, stiffer: entries,
):  # fmt: skip
    """(m(1 + αh) I + (h² + βh) R K Rᵀ)⁻¹, K turned with the phyxel's rotation R; `stiffer` by its contacts
    (physics 5.5)."""
    i = first + wp.tid()
    t = dt[body[i]]
    one = wp.identity(n=3, dtype=mass.dtype)
    U, _s, V = wp.svd3(gradient[i] + one)
    R = U * wp.transpose(V)
    inertia = (mass[i] * (mass.dtype(1.0) + drag[i] * t) + rub[i]) * one - rub[i] * wp.outer(way[i], way[i])
    K = R * block[i] * wp.transpose(R)
    A = inertia + stiffer[i] + (t + damping[i]) * t * K
    size = wp.trace(A)  # cubed, as in a determinant, it may be no number any more
    inverse_block[i] = wp.inverse(A / size) / size


@wp.kernel
def find_frames(
    first: int, X: entries, mass: entries, ahead: entries, begin: entries, total: entries, middle: entries,
    inverse_inertia: entries,
):  # fmt: skip
    """Mass, middle of mass and inverse inertia about it of each body, where the stage leads (physics 5.5)."""
    b = first + wp.tid()
    m = mass.dtype(0.0)
    lever = X[begin[b]] * mass.dtype(0.0)
    i = begin[b]
    while i < begin[b + 1]:
        m += mass[i]
        lever += mass[i] * (X[i] + ahead[i])
        i += 1
    centre = lever / m
    inertia = wp.outer(centre, centre) * mass.dtype(0.0)
    i = begin[b]
    while i < begin[b + 1]:
        arm = X[i] + ahead[i] - centre
        inertia += mass[i] * (wp.dot(arm, arm) * wp.identity(n=3, dtype=mass.dtype) - wp.outer(arm, arm))
        i += 1
    total[b] = m
    middle[b] = centre
    inverse_inertia[b] = wp.inverse(inertia)


@wp.kernel
def move_rigidly(
    first: int, X: entries, mass: entries, ahead: entries, r: entries, begin: entries, loose: entries, total: entries,
    middle: entries, inverse_inertia: entries, drift: entries, spin: entries,
):  # fmt: skip
    """How each body would move under the residual if it were rigid, as far as that counts (physics 5.5)."""
    b = first + wp.tid()
    push = X[begin[b]] * mass.dtype(0.0)
    torque = push
    i = begin[b]
    while i < begin[b + 1]:
        push += r[i]
        torque += wp.cross(X[i] + ahead[i] - middle[b], r[i])
        i += 1
    drift[b] = loose[b] * push / total[b]
    spin[b] = loose[b] * (inverse_inertia[b] * torque)


@wp.kernel
def restart(first: int, delta: entries, z: entries, p: entries):
    """δ = 0, p = z."""
    i = first + wp.tid()
    delta[i] = z[i] * z[i].dtype(0.0)
    p[i] = z[i]


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
def keep_first(first: int, chunks: int, partial: entries, solver: entries):
    """r·z at the start."""
    solver[RZ] = sum_of(partial, chunks)
    solver[GAINED] = wp.float64(0.0)
    solver[INDEFINITE] = wp.float64(0.0)


@wp.kernel
def apply_system(
    first: int, n: int, body: entries, mass: entries, damping: entries, drag: entries, hold: entries, dt: entries,
    contact: entries, normal: entries, rub: entries, way: entries, p: entries, Ap: entries, coupling: entries,
    worth: entries, partial: entries,
):  # fmt: skip
    """A p in place of −K p, `coupling` being the part of contacts; partial sums of p·A p (physics 5.5)."""
    c = first + wp.tid()
    total = wp.float64(0.0)
    i = c * CHUNK
    end = wp.min(n, i + CHUNK)
    while i < end:
        b = body[i]
        h = dt[b]
        stays = mass[i] * (mass.dtype(1.0) + drag[i] * h) * p[i] + rub[i] * across(p[i], way[i])
        whole = stays - (h + damping[i]) * h * Ap[i] + coupling[i]
        free = filtered(whole, hold[i], contact[i], normal[i])
        Ap[i] = free
        total += worth[b] * wp.float64(wp.dot(p[i], free))
        i += 1
    partial[c] = total


@wp.kernel
def choose_length(first: int, chunks: int, partial: entries, solver: entries):
    """How far to go along p; not at all once a direction of negative curvature is met. `GAINED` is δ·Aδ (physics
    5.5)."""
    total = sum_of(partial, chunks)
    zero = wp.float64(0.0)
    if total <= zero and solver[RZ] > zero:
        solver[INDEFINITE] = wp.float64(1.0)
    solver[ALPHA] = wp.where(total > zero and solver[INDEFINITE] == zero, solver[RZ] / total, zero)
    solver[GAINED] = solver[GAINED] + solver[ALPHA] * solver[RZ]


@wp.kernel
def go_along(first: int, r: entries, delta: entries, p: entries, Ap: entries, solver: entries):
    """δ += αp, r −= αA p."""
    i = first + wp.tid()
    alpha = r[i].dtype(solver[ALPHA])
    delta[i] = delta[i] + alpha * p[i]
    r[i] = r[i] - alpha * Ap[i]


@wp.kernel
def precondition(
    first: int, n: int, X: entries, body: entries, hold: entries, contact: entries, normal: entries, ahead: entries,
    r: entries, z: entries, inverse_block: entries, worth: entries, middle: entries, drift: entries, spin: entries,
    partial: entries,
):  # fmt: skip
    """z = P⁻¹ r, by the phyxel's own block and by the body as a whole; partial sums of r·z (physics 5.5)."""
    c = first + wp.tid()
    total = wp.float64(0.0)
    i = c * CHUNK
    end = wp.min(n, i + CHUNK)
    while i < end:
        b = body[i]
        arm = X[i] + ahead[i] - middle[b]
        pulled = inverse_block[i] * r[i] + drift[b] + wp.cross(spin[b], arm)
        z[i] = filtered(pulled, hold[i], contact[i], normal[i])
        total += worth[b] * wp.float64(wp.dot(r[i], z[i]))
        i += 1
    partial[c] = total


@wp.kernel
def choose_turn(first: int, chunks: int, partial: entries, solver: entries):
    """β, the share of the old direction in the new."""
    total = sum_of(partial, chunks)
    solver[BETA] = wp.where(solver[RZ] > wp.float64(0.0), total / solver[RZ], wp.float64(0.0))
    solver[RZ] = total


@wp.kernel
def turn(first: int, z: entries, p: entries, solver: entries):
    """p = z + βp."""
    i = first + wp.tid()
    p[i] = z[i] + p[i].dtype(solver[BETA]) * p[i]
