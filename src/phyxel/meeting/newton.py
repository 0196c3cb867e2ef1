# mypy: disable-error-code="valid-type,no-untyped-def,index,attr-defined"
"""Newton's method for Coulomb's problem (physics 15.13), on all contacts of an island at once."""

from __future__ import annotations

import warp as wp

from phyxel import device as dev
from phyxel.device import float64s, mat33ds, vec2ds, vec3ds
from phyxel.meeting.answer_blocks import Islands, System, answer, assemble, factor, moved, product, solve, vec6ds

wp.set_module_options(dev.KERNEL_OPTIONS)

SOFT = wp.constant(wp.float64(1e-5))
"""What a contact gives way, over what the bodies do."""
MOST_LOOKS = wp.constant(20)
"""along a step"""
FLAT = wp.constant(wp.float64(0.1))
"""Slope along a step, over that at its start, at which it has led far enough."""
LEFT = wp.constant(wp.float64(1e-14))
"""Share of the energy of the velocities at contacts that may be left to gain."""
ROUNDING = wp.constant(wp.float64(1e-18))
"""Share of the energy of the answers that is not worth another step: where velocities are 0 without impulses, nothing
else says what is little."""
PASSES = wp.constant(4)
"""How often friction is found anew at most, with the pressure of the pass before."""
SETTLED = wp.constant(wp.float64(0.02))
"""Change of the pressure, over the largest, at which that ends."""
TINY = wp.constant(wp.float64(1e-300))


@wp.struct
class Touching:
    """What is known of k contacts, as `coulomb.CoulombProblem` has it; each array has shape (k,)."""

    free: vec3ds
    room: float64s
    friction: float64s
    slip: vec2ds
    creep: float64s
    tied: float64s
    gives: float64s
    """tr W/3, and of ties what they are to be as soft as, over SOFT [kg⁻¹]"""


@wp.struct
class Found:
    """What is found of k contacts and n blocks of answers, and room for steps towards it."""

    a: vec6ds
    """answers, shape (n,)"""
    v: vec3ds
    """velocities, shape (k,)"""
    p: vec3ds
    """impulses [N s], shape (k,)"""
    pressure: float64s
    """what friction goes by [N s], shape (k,)"""
    step: vec6ds
    way: vec3ds
    """of answers and velocities"""
    kept: vec3ds
    """impulses of the best pass [N s], shape (k,)"""
    bend: mat33ds
    """how impulses decrease with velocities, shape (k,)"""


@wp.struct
class Slide:
    """How fast a contact slides, f₀'/that of the mollified length, and f₀''."""

    length: wp.float64
    slope: wp.float64
    steeper: wp.float64


@wp.func
def mollified(along: wp.vec2d, creep: wp.float64):
    """f₀' = 2x − x² of x = length/ε up to ε, and 1 from there on."""
    one = wp.float64(1.0)
    s = Slide()
    s.length = wp.length(along)
    x = wp.min(s.length / creep, one)
    s.slope = (wp.float64(2.0) - x) / creep
    if s.length > creep:
        s.slope = one / s.length
    s.steeper = wp.float64(2.0) * (one - x) / creep
    return s


@wp.func
def sliding(contacts: Touching, c: int, v: wp.vec3d):
    """v_t + s."""
    return wp.vec2d(v[1], v[2]) + contacts.slip[c]


@wp.func
def impulse_of(contacts: Touching, c: int, v: wp.vec3d, pressure: wp.float64):
    """p of a contact at a velocity, where friction goes by a pressure."""
    soft = SOFT * contacts.gives[c]
    push = (-v[0] - contacts.room[c]) / soft
    along = sliding(contacts, c, v)
    if contacts.tied[c] > wp.float64(0.0):
        return wp.vec3d(push, -along[0] / soft, -along[1] / soft)
    rub = contacts.friction[c] * pressure * mollified(along, contacts.creep[c]).slope
    return wp.vec3d(wp.max(push, wp.float64(0.0)), -rub * along[0], -rub * along[1])


@wp.func
def bend_of(contacts: Touching, c: int, v: wp.vec3d, pressure: wp.float64):
    """How that decreases with the velocity."""
    none = wp.float64(0.0)
    pushes = wp.float64(1.0) / (SOFT * contacts.gives[c])
    if contacts.tied[c] > none:
        return wp.diag(wp.vec3d(pushes, pushes, pushes))
    if -v[0] <= contacts.room[c]:
        pushes = none
    along = sliding(contacts, c, v)
    s = mollified(along, contacts.creep[c])
    limit = contacts.friction[c] * pressure
    d = along / wp.max(s.length, TINY)
    more = limit * (s.steeper - s.slope)
    rub = limit * s.slope
    return wp.mat33d(
        pushes, none, none,
        none, rub + more * d[0] * d[0], more * d[0] * d[1],
        none, more * d[0] * d[1], rub + more * d[1] * d[1],
    )  # fmt: skip


@wp.func
def see_velocities(island: int, islands: Islands, contacts: Touching, found: Found):
    """v = v₀ + G a."""
    for c in range(islands.first_contact[island], islands.first_contact[island + 1]):
        found.v[c] = contacts.free[c] + moved(islands, c, found.a)


@wp.func
def take_impulses(island: int, islands: Islands, contacts: Touching, found: Found):
    """p of all contacts as their velocities say."""
    for c in range(islands.first_contact[island], islands.first_contact[island + 1]):
        found.p[c] = impulse_of(contacts, c, found.v[c], found.pressure[c])


@wp.func
def find_step(island: int, islands: Islands, contacts: Touching, system: System, found: Found):
    """Newton's step of answers and velocities."""
    for b in range(islands.first_block[island], islands.first_block[island + 1]):
        found.step[b] = -found.a[b]
    for c in range(islands.first_contact[island], islands.first_contact[island + 1]):
        answer(islands, c, found.p[c], found.step)
        found.bend[c] = bend_of(contacts, c, found.v[c], found.pressure[c])
    assemble(island, islands, system, found.bend)
    factor(island, islands, system)
    solve(island, islands, system, found.step, 0)
    for c in range(islands.first_contact[island], islands.first_contact[island + 1]):
        found.way[c] = moved(islands, c, found.step)


@wp.func
def slope_at(
    share: wp.float64, island: int, islands: Islands, contacts: Touching, found: Found,
    start: wp.float64, square: wp.float64,
):  # fmt: skip
    """How the energy grows along the step after a share of it, where a · step is `start` and step · step `square`."""
    slope = start + share * square
    for c in range(islands.first_contact[island], islands.first_contact[island + 1]):
        way = found.way[c]
        slope -= wp.dot(impulse_of(contacts, c, found.v[c] + share * way, found.pressure[c]), way)
    return slope


@wp.func
def share_of(gain: wp.float64, island: int, islands: Islands, contacts: Touching, found: Found):
    """How much of a step to take: all, or to about where the energy is the least along it. That is convex, with bends
    where contacts open, close, stick and slide: halving would stop far short of it or beyond."""
    if gain <= wp.float64(0.0):  # by rounding: there is nothing to gain
        return wp.float64(0.0)
    start = product(islands, island, found.a, found.step)
    square = product(islands, island, found.step, found.step)
    half = wp.float64(0.5)
    low = wp.float64(0.0)
    high = wp.float64(1.0)
    at_low = -gain
    share = wp.float64(1.0)
    at_high = slope_at(share, island, islands, contacts, found, start, square)
    for _ in range(MOST_LOOKS):
        if at_high <= FLAT * gain:
            return high
        share = low - at_low * (high - low) / (at_high - at_low)
        slope = slope_at(share, island, islands, contacts, found, start, square)
        if wp.abs(slope) <= FLAT * gain:
            return share
        if slope < wp.float64(0.0):
            low = share
            at_low = slope
            at_high = half * at_high
        else:
            high = share
            at_high = slope
            at_low = half * at_low
    return share


@wp.func
def minimum(
    island: int,
    islands: Islands,
    contacts: Touching,
    system: System,
    found: Found,
    enough: wp.float64,
    most: int,
):
    """The least energy where friction goes by the pressure that is found; how many steps that took, `most` if they were
    not enough."""
    see_velocities(island, islands, contacts, found)
    take_impulses(island, islands, contacts, found)
    for steps in range(most):
        find_step(island, islands, contacts, system, found)
        gain = wp.float64(0.0)
        for b in range(islands.first_block[island], islands.first_block[island + 1]):
            gain -= wp.dot(found.a[b], found.step[b])
        for c in range(islands.first_contact[island], islands.first_contact[island + 1]):
            gain += wp.dot(found.p[c], found.way[c])
        share = share_of(gain, island, islands, contacts, found)
        for b in range(islands.first_block[island], islands.first_block[island + 1]):
            found.a[b] += share * found.step[b]
        for c in range(islands.first_contact[island], islands.first_contact[island + 1]):
            found.v[c] += share * found.way[c]
        take_impulses(island, islands, contacts, found)
        if gain <= wp.max(enough, ROUNDING * product(islands, island, found.a, found.a)):
            return steps
    return most


@wp.func
def passes(island: int, islands: Islands, contacts: Touching, system: System, found: Found, most: int):
    """Impulses from answers and pressures that are found on; whether there is a pass that `most` steps were enough for.
    One that is cut short would make energy. Where what slides presses the harder the more it is rubbed passes need not
    agree: after the first, whose pressure is of another moment, impulses are kept of that whose pressure is the nearest
    to what its friction went by."""
    none = wp.float64(0.0)
    enough = none
    rubs = none
    for c in range(islands.first_contact[island], islands.first_contact[island + 1]):
        enough += LEFT * wp.length_sq(contacts.free[c]) / contacts.gives[c]
        rubs = wp.max(rubs, contacts.friction[c])
    least = wp.float64(wp.inf)
    for number in range(PASSES):
        if minimum(island, islands, contacts, system, found, enough, most) == most:
            return number > 0
        change = none
        largest = none
        for c in range(islands.first_contact[island], islands.first_contact[island + 1]):
            if contacts.tied[c] == none:
                change = wp.max(change, wp.abs(found.p[c][0] - found.pressure[c]))
                largest = wp.max(largest, found.p[c][0])
            found.pressure[c] = found.p[c][0]
        if number < 2 or change < least:
            for c in range(islands.first_contact[island], islands.first_contact[island + 1]):
                found.kept[c] = found.p[c]
        if number > 0:
            least = wp.min(least, change)
        if change <= SETTLED * largest or rubs == none:
            return True
    return True
