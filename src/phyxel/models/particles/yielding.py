# mypy: disable-error-code="valid-type,no-untyped-def"
"""The way of a particle that may yield within a step, however long that is (physics 13.7)."""

from __future__ import annotations

import math

import warp as wp

from phyxel import device as dev
from phyxel.models.particles.arrival import Arrival
from phyxel.models.particles.flight import Particles, arrive_held, dent_of, led_by, remember
from phyxel.models.particles.oscillator import response

wp.set_module_options(dev.KERNEL_OPTIONS)

SWINGS = wp.constant(16)
"""Quarters of a swing from the start of a step on in which it is seen whether a particle yields; after them it goes
along the line, which is always safe, and swings less than before."""
TIME_HALVINGS = wp.constant(40)
"""Of a quarter of a swing, to find when a particle yields or turns back to 1e-12 of it."""
QUARTER = wp.constant(wp.float64(math.pi / 2))
"""Of a swing [rad]."""


@wp.struct
class Flight:
    """A motion from u, v: where it has led, and how far a unit of acceleration leads from rest on the same way."""

    u: wp.vec3d
    v: wp.vec3d
    a: wp.float64
    """[s²]"""
    b: wp.float64
    """[s]"""


@wp.struct
class Restoring:
    """The forces of a motion, per mass: f − w (u − rest) − d v."""

    f: wp.vec3d
    rest: wp.vec3d
    w: wp.float64
    d: wp.float64


@wp.func
def flown(flight: Flight, pull: Restoring, pace: wp.vec3d):
    """A motion that goes on for the time of `pace` (physics 13.1)."""
    a, b, h = pace[0], pace[1], pace[2]
    w = pull.w
    push = pull.f - w * (flight.u - pull.rest)
    after = Flight()
    after.u = flight.u + b * flight.v + a * push
    after.v = h * flight.v + b * push
    after.a = flight.a - w * a * flight.a + b * flight.b + a
    after.b = h * flight.b - w * b * flight.a + b
    return after


@wp.func
def go_on(flight: Flight, pull: Restoring, t: wp.float64):
    """The same for t [s]."""
    return flown(flight, pull, response(pull.d, pull.w, t))


@wp.func
def may_yield(flight: Flight, pull: Restoring, reach: wp.float64):
    """Whether it has the energy to get farther than `reach` from its place."""
    balance = pull.rest + pull.f / pull.w
    swing = wp.length_sq(flight.u - balance) + wp.length_sq(flight.v) / pull.w
    return wp.length(balance) + wp.sqrt(swing) > reach * (wp.float64(1.0) + wp.float64(1.0e-9))


@wp.func
def recedes(before: Flight, now: Flight):
    """Whether it is farther out than before, and still on its way."""
    return wp.length_sq(now.u) >= wp.length_sq(before.u) and wp.dot(now.u, now.v) >= wp.float64(0.0)


@wp.func
def turning(flight: Flight, pull: Restoring, t: wp.float64):
    """When it is farthest out, if that is before t."""
    low = wp.float64(0.0)
    high = t
    for _ in range(TIME_HALVINGS):
        middle = wp.float64(0.5) * (low + high)
        if recedes(flight, go_on(flight, pull, middle)):
            low = middle
        else:
            high = middle
    return low


@wp.func
def crossing(flight: Flight, pull: Restoring, reach: wp.float64, t: wp.float64):
    """When it gets `reach` out, if it is farther out at t."""
    low = wp.float64(0.0)
    if wp.dot(flight.u, flight.v) > low and wp.length(flight.u) >= reach * (wp.float64(1.0) - wp.float64(1.0e-12)):
        return low  # as in most steps of a load that grows
    high = t
    for _ in range(TIME_HALVINGS):
        middle = wp.float64(0.5) * (low + high)
        if wp.length(go_on(flight, pull, middle).u) <= reach:
            low = middle
        else:
            high = middle
    return low


@wp.func
def fly(start: Flight, peak: wp.vec3d, virgin: Restoring, plasticity: wp.float64, limit: wp.float64, dt: wp.float64):
    """The motion over dt [s] and the peak after it, of a particle that may yield (physics 13.7).

    It does so from the moment on that it gets beyond its peak to that when it turns back, both found by halving: then
    no step can be so long that it swings back along a way that it should have lost energy on."""
    none = wp.float64(0.0)
    flight = start
    e = peak
    left = dt
    swing = int(0)
    line = virgin
    while swing < SWINGS and left > none:
        rest, steeper = dent_of(e, plasticity, limit)
        line.rest = rest
        line.w = virgin.w * steeper
        reach = wp.max(wp.length(e), limit)
        span = wp.min(left, QUARTER / wp.sqrt(line.w))
        now = go_on(flight, line, span)
        t = span
        beyond = wp.length(now.u) > reach
        if not beyond and wp.dot(flight.u, flight.v) >= none and wp.dot(now.u, now.v) < none:
            t = turning(flight, line, span)
            beyond = wp.length(go_on(flight, line, t).u) > reach
        if beyond:
            t = crossing(flight, line, reach, t)
            flight = go_on(flight, line, t)
            left -= t
            span = wp.min(left, QUARTER / wp.sqrt(virgin.w))
            now = go_on(flight, virgin, span)
            if not recedes(flight, now):
                span = turning(flight, virgin, span)
                now = go_on(flight, virgin, span)
            if wp.length(now.u) > reach:
                e = now.u
        flight = now
        left -= span
        swing += 1
    rest, steeper = dent_of(e, plasticity, limit)
    line.rest = rest
    line.w = virgin.w * steeper
    return go_on(flight, line, wp.max(left, none)), e


@wp.func
def taking_off(p: Particles, i: int) -> Flight:
    """A particle at the start of the step."""
    start = Flight()
    start.u = p.u[i]
    start.v = p.v[i]
    return start


@wp.func
def line_to_dent(p: Particles, i: int) -> Restoring:
    """The pull on a particle below its peak."""
    k = p.kind[i]
    rest, steeper = dent_of(p.peak[i], p.laws.plasticity[k], p.laws.limit[k])
    line = Restoring()
    line.f = p.force[i] / p.mass[i]
    line.rest = rest
    line.w = steeper * p.laws.stiffness[k]
    line.d = p.laws.drag[k]
    return line


@wp.func
def arrive_at(p: Particles, i: int, end: Flight, arrival: Arrival):
    """The end of a flight, and how far a force leads on it."""
    A, B, H = led_by(end.a, end.b, p.mass[i], p.laws.ahead[p.kind[i]])
    arrival.x[i] = end.u
    arrival.v[i] = end.v
    arrival.A[i] = A
    arrival.B[i] = B
    arrival.H[i] = H


@wp.kernel
def arrive_plastic(first: int, clock: wp.array(dtype=wp.float64), p: Particles, arrival: Arrival):
    """The exact step of particles that keep dents and have nothing between them (physics 13.1, 13.7)."""
    i = first + wp.tid()
    if p.hold[i] >= 0:
        arrive_held(p, i, clock[0], arrival)
        return
    k = p.kind[i]
    start = taking_off(p, i)
    line = line_to_dent(p, i)
    end = flown(start, line, p.pace[i])
    plasticity, limit = p.laws.plasticity[k], p.laws.limit[k]
    reach = wp.max(wp.length(p.peak[i]), limit)
    if line.w > wp.float64(0.0) and plasticity > wp.float64(0.0) and may_yield(start, line, reach):
        virgin = line
        virgin.rest = wp.vec3d()
        virgin.w = p.laws.stiffness[k]
        end, peak = fly(start, p.peak[i], virgin, plasticity, limit, clock[0])
        remember(p, i, peak, clock[0])
    arrive_at(p, i, end, arrival)


@wp.kernel
def arrive_dented(first: int, clock: wp.array(dtype=wp.float64), p: Particles, arrival: Arrival):
    """The same with links or a filling, whose pull is not known yet: along the line to the dent, where no
    energy comes from. How far particles went, and so whether they yielded, is seen when they land; beyond the peak the
    line is too steep, so that a held load makes its dent within |e|/(|e| − kept) steps or so rather than one."""
    i = first + wp.tid()
    if p.hold[i] >= 0:
        arrive_held(p, i, clock[0], arrival)
        return
    arrive_at(p, i, flown(taking_off(p, i), line_to_dent(p, i), p.pace[i]), arrival)
