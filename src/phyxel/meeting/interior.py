# mypy: disable-error-code="valid-type,no-untyped-def,index,attr-defined"
"""About where Coulomb's problem has its minimum (physics 15.13), by interior points: where much meets at once, Newton's
method would open and close contacts one after the other.

Pressures p > 0 and what they leave room for, s = v_n + b + R p > 0, go to p s = 0 together: each step heads for
p s = τ, with a τ that its own first guess says is in reach (Mehrotra, SIAM J. Optim. 2, 1992). Friction goes along, up
to μ p as it is by then; its direction q is an unknown as well, q |d| = −μ p d (Chan, Golub and Mulet, SIAM J. Sci.
Comput. 20, 1999): what sticks here and slides there is found in a few steps, however small ε is.
"""

from __future__ import annotations

import warp as wp

from phyxel import device as dev
from phyxel.device import float64s, vec2ds
from phyxel.meeting.answer_blocks import Islands, System, answer, assemble, factor, moved, solve, vec6d
from phyxel.meeting.newton import SOFT, TINY, Found, Touching, mollified, see_velocities, sliding

wp.set_module_options(dev.KERNEL_OPTIONS)

MOST_STEPS = wp.constant(40)
GAP = wp.constant(wp.float64(1e-9))
"""Σ p s, over the energy of the velocities at contacts, at which that ends."""
FOLLOWED = wp.constant(16)
"""Steps in which friction follows the pressure; then it stays as it is, for where what slides would press the harder
the more it is rubbed the two might never agree."""
WHOLE = wp.constant(wp.float64(0.99))
"""Share of the way to where a p or an s would be 0 that is gone."""


@wp.struct
class Slacks:
    """Of k contacts that are no ties; each array has shape (k,)."""

    p: float64s
    s: float64s
    q: vec2ds
    """friction [N s]"""
    to_p: float64s
    to_s: float64s
    """steps of p and s"""
    goal: float64s
    """of p s"""


@wp.func
def is_open(contacts: Touching, c: int):
    """Whether a contact is no tie."""
    return contacts.tied[c] == wp.float64(0.0)


@wp.func
def begin_as_springs(island: int, islands: Islands, contacts: Touching, system: System, found: Found, inside: Slacks):
    """Begin where contacts would be springs as soft as the bodies are."""
    none = wp.float64(0.0)
    for b in range(islands.first_block[island], islands.first_block[island + 1]):
        found.a[b] = vec6d()
    for c in range(islands.first_contact[island], islands.first_contact[island + 1]):
        found.bend[c] = wp.mat33d()
        if is_open(contacts, c):
            stiff = wp.float64(1.0) / contacts.gives[c]
            found.bend[c] = wp.diag(wp.vec3d(stiff, none, none))
            push = wp.max(-contacts.free[c][0] - contacts.room[c], none) * stiff
            answer(islands, c, wp.vec3d(push, none, none), found.a)
    assemble(island, islands, system, found.bend)
    factor(island, islands, system)
    solve(island, islands, system, found.a, 0)
    see_velocities(island, islands, contacts, found)
    pressure = none
    count = none
    for c in range(islands.first_contact[island], islands.first_contact[island + 1]):
        inside.q[c] = wp.vec2d()
        inside.p[c] = none
        if is_open(contacts, c):
            inside.s[c] = found.v[c][0] + contacts.room[c]
            inside.p[c] = wp.max(-inside.s[c], none) / contacts.gives[c]
            pressure += inside.p[c]
            count += wp.float64(1.0)
    room = none
    for c in range(islands.first_contact[island], islands.first_contact[island + 1]):
        if is_open(contacts, c):
            inside.p[c] += pressure / count
            room += contacts.gives[c] * inside.p[c] / count
    for c in range(islands.first_contact[island], islands.first_contact[island + 1]):
        found.pressure[c] = inside.p[c]
        if is_open(contacts, c):
            inside.s[c] = wp.max(inside.s[c], none) + room


@wp.func
def go_inside(island: int, islands: Islands, contacts: Touching, system: System, found: Found, inside: Slacks):
    """Answers and pressures, and impulses to keep if nothing better is found."""
    energy = wp.float64(0.0)
    for c in range(islands.first_contact[island], islands.first_contact[island + 1]):
        if is_open(contacts, c):
            energy += wp.length_sq(contacts.free[c]) / contacts.gives[c]
    begin_as_springs(island, islands, contacts, system, found, inside)
    steps = int(0)
    left = left_inside(wp.float64(0.0), wp.float64(0.0), island, islands, contacts, inside)
    while steps < MOST_STEPS and left > GAP * energy:
        if steps < FOLLOWED:
            for c in range(islands.first_contact[island], islands.first_contact[island + 1]):
                found.pressure[c] = inside.p[c]
        step_inside(left, island, islands, contacts, system, found, inside)
        left = left_inside(wp.float64(0.0), wp.float64(0.0), island, islands, contacts, inside)
        steps += 1
    for c in range(islands.first_contact[island], islands.first_contact[island + 1]):
        found.pressure[c] = inside.p[c]
        q = held(contacts, c, found, inside)
        found.kept[c] = wp.vec3d(inside.p[c], q[0], q[1])
        if not is_open(contacts, c):
            found.kept[c] = impulse_inside(contacts, c, found, inside)
    return steps


@wp.func
def left_inside(
    share_p: wp.float64,
    share_s: wp.float64,
    island: int,
    islands: Islands,
    contacts: Touching,
    inside: Slacks,
):
    """Σ p s after shares of their steps."""
    left = wp.float64(0.0)
    for c in range(islands.first_contact[island], islands.first_contact[island + 1]):
        if is_open(contacts, c):
            left += (inside.p[c] + share_p * inside.to_p[c]) * (inside.s[c] + share_s * inside.to_s[c])
    return left


@wp.func
def step_inside(
    left: wp.float64,
    island: int,
    islands: Islands,
    contacts: Touching,
    system: System,
    found: Found,
    inside: Slacks,
):
    """One step, from where Σ p s is `left`."""
    one = wp.float64(1.0)
    none = wp.float64(0.0)
    count = none
    for c in range(islands.first_contact[island], islands.first_contact[island + 1]):
        found.bend[c] = bend_inside(contacts, c, found, inside)
        inside.goal[c] = none
        if is_open(contacts, c):
            count += one
    assemble(island, islands, system, found.bend)
    factor(island, islands, system)
    head_for_goal(island, islands, contacts, system, found, inside)
    share_p = one / wp.max(one, fastest(island, islands, contacts, inside.p, inside.to_p))
    share_s = one / wp.max(one, fastest(island, islands, contacts, inside.s, inside.to_s))
    gap = left_inside(share_p, share_s, island, islands, contacts, inside)
    ratio = wp.min(gap / left, one)
    for c in range(islands.first_contact[island], islands.first_contact[island + 1]):
        inside.goal[c] = ratio * ratio * ratio * left / count - inside.to_p[c] * inside.to_s[c]
    head_for_goal(island, islands, contacts, system, found, inside)
    fast_p = fastest(island, islands, contacts, inside.p, inside.to_p)
    fast_s = fastest(island, islands, contacts, inside.s, inside.to_s)
    share = wp.min(one, WHOLE / wp.max(one, wp.max(fast_p, fast_s)))
    for b in range(islands.first_block[island], islands.first_block[island + 1]):
        found.a[b] += share * found.step[b]
    for c in range(islands.first_contact[island], islands.first_contact[island + 1]):
        way = share * found.way[c]
        if is_open(contacts, c):
            inside.q[c] = friction_inside(contacts, c, found, inside, wp.vec2d(way[1], way[2]))
            inside.p[c] += share * inside.to_p[c]
            inside.s[c] += share * inside.to_s[c]
        found.v[c] += way


@wp.func
def held(contacts: Touching, c: int, found: Found, inside: Slacks):
    """q as far as friction can hold it now."""
    limit = contacts.friction[c] * found.pressure[c]
    return wp.min(limit / wp.max(wp.length(inside.q[c]), TINY), wp.float64(1.0)) * inside.q[c]


@wp.func
def turning(length: wp.float64, slope: wp.float64, creep: wp.float64):
    """How 1/slope grows with the length, times the slope: friction turns by that share of itself."""
    x = length / creep
    if x < wp.float64(1.0):
        return slope / ((wp.float64(2.0) - x) * (wp.float64(2.0) - x))
    return slope


@wp.func
def friction_inside(contacts: Touching, c: int, found: Found, inside: Slacks, gone: wp.vec2d):
    """q of a contact that is where it is found, after it has `gone` on so much faster."""
    along = sliding(contacts, c, found.v[c])
    s = mollified(along, contacts.creep[c])
    unit = along / wp.max(s.length, TINY)
    turns = turning(s.length, s.slope, contacts.creep[c]) * wp.dot(unit, gone)
    rub = contacts.friction[c] * found.pressure[c] * s.slope
    return -rub * (along + gone) - turns * held(contacts, c, found, inside)


@wp.func
def bend_inside(contacts: Touching, c: int, found: Found, inside: Slacks):
    """How impulses decrease with velocities."""
    soft = SOFT * contacts.gives[c]
    none = wp.float64(0.0)
    if not is_open(contacts, c):
        return wp.diag(wp.vec3d(wp.float64(1.0) / soft, wp.float64(1.0) / soft, wp.float64(1.0) / soft))
    along = sliding(contacts, c, found.v[c])
    s = mollified(along, contacts.creep[c])
    unit = along / wp.max(s.length, TINY)
    half = wp.float64(0.5) * turning(s.length, s.slope, contacts.creep[c])
    q = held(contacts, c, found, inside)
    rub = contacts.friction[c] * found.pressure[c] * s.slope
    across = half * (q[0] * unit[1] + q[1] * unit[0])
    return wp.mat33d(
        inside.p[c] / (inside.s[c] + soft * inside.p[c]), none, none,
        none, rub + wp.float64(2.0) * half * q[0] * unit[0], across,
        none, across, rub + wp.float64(2.0) * half * q[1] * unit[1],
    )  # fmt: skip


@wp.func
def head_for_goal(island: int, islands: Islands, contacts: Touching, system: System, found: Found, inside: Slacks):
    """Steps of answers, velocities, p and s to where p s are the goals."""
    for b in range(islands.first_block[island], islands.first_block[island + 1]):
        found.step[b] = -found.a[b]
    for c in range(islands.first_contact[island], islands.first_contact[island + 1]):
        answer(islands, c, impulse_inside(contacts, c, found, inside), found.step)
    solve(island, islands, system, found.step, 0)
    for c in range(islands.first_contact[island], islands.first_contact[island + 1]):
        way = moved(islands, c, found.step)
        found.way[c] = way
        inside.to_p[c] = wp.float64(0.0)
        inside.to_s[c] = wp.float64(0.0)
        if is_open(contacts, c):
            soft = SOFT * contacts.gives[c]
            p = inside.p[c]
            inside.to_p[c] = impulse_inside(contacts, c, found, inside)[0] - p - p / (inside.s[c] + soft * p) * way[0]
            inside.to_s[c] = way[0] + soft * inside.to_p[c] + off(contacts, c, found, inside)


@wp.func
def off(contacts: Touching, c: int, found: Found, inside: Slacks):
    """v_n + b + R p − s: 0 but for steps that were not whole."""
    return found.v[c][0] + contacts.room[c] + SOFT * contacts.gives[c] * inside.p[c] - inside.s[c]


@wp.func
def impulse_inside(contacts: Touching, c: int, found: Found, inside: Slacks):
    """Impulses that lead to the goal, but for what they decrease by with velocities."""
    soft = SOFT * contacts.gives[c]
    along = sliding(contacts, c, found.v[c])
    if not is_open(contacts, c):
        return -wp.vec3d(found.v[c][0] + contacts.room[c], along[0], along[1]) / soft
    p = inside.p[c]
    s = inside.s[c]
    rub = contacts.friction[c] * found.pressure[c] * mollified(along, contacts.creep[c]).slope
    push = p + (inside.goal[c] - p * (s + off(contacts, c, found, inside))) / (s + soft * p)
    return wp.vec3d(push, -rub * along[0], -rub * along[1])


@wp.func
def fastest(island: int, islands: Islands, contacts: Touching, x: float64s, step: float64s):
    """How many times as fast as to 0 in one step what is positive goes there."""
    most = wp.float64(0.0)
    for c in range(islands.first_contact[island], islands.first_contact[island + 1]):
        if is_open(contacts, c):
            most = wp.max(most, -step[c] / x[c])
    return most
