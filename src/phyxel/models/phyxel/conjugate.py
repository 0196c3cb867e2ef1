# mypy: disable-error-code="valid-type,no-untyped-def"
"""Conjugate gradients for an implicit step, as kernels: nothing comes back to the host between iterations.

    A = M(1 + αΔt) + (Δt² + βΔt) K + rub,   P⁻¹ = (3 × 3 blocks of A)⁻¹ + rigid motions of each body

Rigid motions are what no diagonal sees: a stiff body resists everything else a million times more. Held phyxels and the
direction across a plane that is touched are filtered out of residuals and directions (Baraff and Witkin 1998).
Bodies compute in units of their own. For those that touch, A is symmetric in the sum of joules: a body's part of a
scalar product counts by its `worth`, the cube of its unit.
"""

from __future__ import annotations

from typing import Any

import warp as wp

from phyxel import device as dev
from phyxel.models.reductions import CHUNK

wp.set_module_options(dev.KERNEL_OPTIONS)

RZ, ALPHA, BETA, INDEFINITE = (wp.constant(k) for k in range(4))
"""Numbers of the solver, kept on the device."""


@wp.func
def filtered(r: Any, held: int, contact: int, n: Any):
    """What of a residual or direction is free to move."""
    if held >= 0:
        return r * r.dtype(0.0)
    if contact > 0:
        return r - wp.dot(r, n) * n
    return r


@wp.kernel
def find_frames(
    first: int,
    begin: wp.array(dtype=wp.int32),
    X: wp.array(dtype=Any),
    ahead: wp.array(dtype=Any),
    mass: wp.array(dtype=Any),
    total: wp.array(dtype=Any),
    middle: wp.array(dtype=Any),
    inverse_inertia: wp.array(dtype=Any),
):
    """Mass, middle of mass and inverse inertia about it of each body, at u + Δt v'."""
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
    first: int,
    begin: wp.array(dtype=wp.int32),
    X: wp.array(dtype=Any),
    ahead: wp.array(dtype=Any),
    total: wp.array(dtype=Any),
    middle: wp.array(dtype=Any),
    inverse_inertia: wp.array(dtype=Any),
    r: wp.array(dtype=Any),
    drift: wp.array(dtype=Any),
    spin: wp.array(dtype=Any),
):
    """How each body would move under the residual if it were rigid.

    These motions are a million times softer than what a stiff body resists, and no diagonal sees them.
    """
    b = first + wp.tid()
    push = X[begin[b]] * total.dtype(0.0)
    torque = push
    i = begin[b]
    while i < begin[b + 1]:
        push += r[i]
        torque += wp.cross(X[i] + ahead[i] - middle[b], r[i])
        i += 1
    drift[b] = push / total[b]
    spin[b] = inverse_inertia[b] * torque


@wp.func
def preconditioned(
    i: int,
    inverse_block: wp.array(dtype=Any),
    body: wp.array(dtype=wp.int32),
    X: wp.array(dtype=Any),
    ahead: wp.array(dtype=Any),
    middle: wp.array(dtype=Any),
    drift: wp.array(dtype=Any),
    spin: wp.array(dtype=Any),
    r: wp.array(dtype=Any),
):
    """P⁻¹ r: by the phyxel's own block, and by the body as a whole."""
    b = body[i]
    return inverse_block[i] * r[i] + drift[b] + wp.cross(spin[b], X[i] + ahead[i] - middle[b])


@wp.kernel
def restart(first: int, z: wp.array(dtype=Any), delta: wp.array(dtype=Any), p: wp.array(dtype=Any)):
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
def keep_first(first: int, chunks: int, partial: wp.array(dtype=wp.float64), solver: wp.array(dtype=wp.float64)):
    """r·z at the start."""
    solver[RZ] = sum_of(partial, chunks)
    solver[INDEFINITE] = wp.float64(0.0)


@wp.kernel
def apply_system(
    first: int,
    n: int,
    dt: wp.array(dtype=Any),
    mass: wp.array(dtype=Any),
    body: wp.array(dtype=wp.int32),
    damping: wp.array(dtype=Any),
    drag: wp.array(dtype=Any),
    rub: wp.array(dtype=Any),
    hold: wp.array(dtype=wp.int32),
    contact: wp.array(dtype=wp.int32),
    normal: wp.array(dtype=Any),
    p: wp.array(dtype=Any),
    change: wp.array(dtype=Any),
    coupling: wp.array(dtype=Any),
    worth: wp.array(dtype=wp.float64),
    partial: wp.array(dtype=wp.float64),
):
    """A p in place of `change` = −K p, `coupling` being the part of contacts; partial sums of p·A p."""
    c = first + wp.tid()
    total = wp.float64(0.0)
    i = c * CHUNK
    end = wp.min(n, i + CHUNK)
    while i < end:
        b = body[i]
        stays = mass[i] * (mass.dtype(1.0) + drag[i] * dt[0]) + rub[i]
        whole = stays * p[i] - (dt[0] + damping[i]) * dt[0] * change[i] + coupling[i]
        Ap = filtered(whole, hold[i], contact[i], normal[i])
        change[i] = Ap
        total += worth[b] * wp.float64(wp.dot(p[i], Ap))
        i += 1
    partial[c] = total


@wp.kernel
def choose_length(first: int, chunks: int, partial: wp.array(dtype=wp.float64), solver: wp.array(dtype=wp.float64)):
    """How far to go along p; not at all once a direction of negative curvature is met."""
    total = sum_of(partial, chunks)
    zero = wp.float64(0.0)
    if total <= zero and solver[RZ] > zero:
        solver[INDEFINITE] = wp.float64(1.0)
    solver[ALPHA] = wp.where(total > zero and solver[INDEFINITE] == zero, solver[RZ] / total, zero)


@wp.kernel
def go_along(
    first: int,
    solver: wp.array(dtype=wp.float64),
    p: wp.array(dtype=Any),
    Ap: wp.array(dtype=Any),
    delta: wp.array(dtype=Any),
    r: wp.array(dtype=Any),
):
    """δ += αp, r −= αA p."""
    i = first + wp.tid()
    alpha = r[i].dtype(solver[ALPHA])
    delta[i] = delta[i] + alpha * p[i]
    r[i] = r[i] - alpha * Ap[i]


@wp.kernel
def precondition(
    first: int,
    n: int,
    inverse_block: wp.array(dtype=Any),
    body: wp.array(dtype=wp.int32),
    X: wp.array(dtype=Any),
    ahead: wp.array(dtype=Any),
    middle: wp.array(dtype=Any),
    drift: wp.array(dtype=Any),
    spin: wp.array(dtype=Any),
    r: wp.array(dtype=Any),
    hold: wp.array(dtype=wp.int32),
    contact: wp.array(dtype=wp.int32),
    normal: wp.array(dtype=Any),
    z: wp.array(dtype=Any),
    worth: wp.array(dtype=wp.float64),
    partial: wp.array(dtype=wp.float64),
):
    """z = P⁻¹ r; partial sums of r·z."""
    c = first + wp.tid()
    total = wp.float64(0.0)
    i = c * CHUNK
    end = wp.min(n, i + CHUNK)
    while i < end:
        pulled = preconditioned(i, inverse_block, body, X, ahead, middle, drift, spin, r)
        z[i] = filtered(pulled, hold[i], contact[i], normal[i])
        total += worth[body[i]] * wp.float64(wp.dot(r[i], z[i]))
        i += 1
    partial[c] = total


@wp.kernel
def choose_turn(first: int, chunks: int, partial: wp.array(dtype=wp.float64), solver: wp.array(dtype=wp.float64)):
    """β, the share of the old direction in the new."""
    total = sum_of(partial, chunks)
    solver[BETA] = wp.where(solver[RZ] > wp.float64(0.0), total / solver[RZ], wp.float64(0.0))
    solver[RZ] = total


@wp.kernel
def turn(first: int, solver: wp.array(dtype=wp.float64), z: wp.array(dtype=Any), p: wp.array(dtype=Any)):
    """p = z + βp."""
    i = first + wp.tid()
    p[i] = z[i] + p[i].dtype(solver[BETA]) * p[i]
