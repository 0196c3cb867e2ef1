# mypy: disable-error-code="valid-type,no-untyped-def"
"""How a particle that went too far from its place keeps a dent.

While its displacement u grows beyond its peak e it is pulled back by w u (per mass), as one that never yielded. Below
the peak it goes along the straight line from there to the dent u₀ that is left when it is let go,

    u₀ = kept e/|e|,   kept = plasticity max(|e| − limit, 0),   w' = w |e| / (|e| − kept),

so the pull has no jump at the peak, and a dent is the same however long a load is held and however it rings. (W96 lets
the rest place follow by a share of the excess in every step: under a held load it creeps all the way, whatever the
share.) Energy is only lost: what the line holds at the peak is less than what went in.
"""

from __future__ import annotations

import math

import warp as wp

from phyxel import device as dev
from phyxel.models.oscillator import response

wp.set_module_options(dev.KERNEL_OPTIONS)

STIFFEST = wp.constant(wp.float64(1.0e3))
"""Most that the line is steeper than w."""
SWINGS = wp.constant(16)
"""Quarters of a swing from the start of a step on in which it is seen whether a particle yields; after them it goes
along the line, which is always safe, and swings less than before."""
HALVINGS = wp.constant(40)
"""of a quarter, to find when it yields or turns back"""
QUARTER = wp.constant(wp.float64(math.pi / 2))


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
class Pull:
    """What acts on it, per mass: f − w (u − rest) − d v."""

    f: wp.vec3d
    rest: wp.vec3d
    w: wp.float64
    d: wp.float64


@wp.func
def flown(flight: Flight, pull: Pull, pace: wp.vec3d):
    """A motion that goes on for the time of `pace`."""
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
def go_on(flight: Flight, pull: Pull, t: wp.float64):
    """The same for t [s]."""
    return flown(flight, pull, response(pull.d, pull.w, t))


@wp.func
def dent_of(e: wp.vec3d, plasticity: wp.float64, limit: wp.float64):
    """u₀ and w'/w of a particle whose peak is e."""
    far = wp.length(e)
    most = (wp.float64(1.0) - wp.float64(1.0) / STIFFEST) * far
    kept = wp.min(plasticity * wp.max(far - limit, wp.float64(0.0)), most)
    steeper = wp.float64(1.0)
    rest = wp.vec3d()
    if kept > wp.float64(0.0):
        steeper = far / (far - kept)
        rest = e * (kept / far)
    return rest, steeper


@wp.func
def may_yield(flight: Flight, pull: Pull, reach: wp.float64):
    """Whether it has the energy to get farther than `reach` from its place."""
    balance = pull.rest + pull.f / pull.w
    swing = wp.length_sq(flight.u - balance) + wp.length_sq(flight.v) / pull.w
    return wp.length(balance) + wp.sqrt(swing) > reach * (wp.float64(1.0) + wp.float64(1.0e-9))


@wp.func
def recedes(before: Flight, now: Flight):
    """Whether it is farther out than before, and still on its way."""
    return wp.length_sq(now.u) >= wp.length_sq(before.u) and wp.dot(now.u, now.v) >= wp.float64(0.0)


@wp.func
def turning(flight: Flight, pull: Pull, t: wp.float64):
    """When it is farthest out, if that is before t."""
    low = wp.float64(0.0)
    high = t
    for _ in range(HALVINGS):
        middle = wp.float64(0.5) * (low + high)
        if recedes(flight, go_on(flight, pull, middle)):
            low = middle
        else:
            high = middle
    return low


@wp.func
def crossing(flight: Flight, pull: Pull, reach: wp.float64, t: wp.float64):
    """When it gets `reach` out, if it is farther out at t."""
    low = wp.float64(0.0)
    high = t
    for _ in range(HALVINGS):
        middle = wp.float64(0.5) * (low + high)
        if wp.length(go_on(flight, pull, middle).u) <= reach:
            low = middle
        else:
            high = middle
    return low


@wp.func
def fly(start: Flight, peak: wp.vec3d, virgin: Pull, plasticity: wp.float64, limit: wp.float64, dt: wp.float64):
    """The motion over dt [s] and the peak after it, of a particle that may yield.

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
