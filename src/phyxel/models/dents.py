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

import warp as wp

from phyxel import device as dev
from phyxel.models.oscillator import response

wp.set_module_options(dev.KERNEL_OPTIONS)

STIFFEST = wp.constant(wp.float64(1.0e3))
"""Most that the line is steeper than w."""
TURNS = wp.constant(4)
"""Most times in a step that a particle yields anew; then it goes along the line, which is always safe."""
HALVINGS = wp.constant(40)
"""of a step, to find when it yields or turns back"""


@wp.struct
class Flight:
    """A motion from u, v: where it has led, and how far a unit of acceleration leads from rest on the same way."""

    u: wp.vec3d
    v: wp.vec3d
    a: wp.float64
    """[s²]"""
    b: wp.float64
    """[s]"""


@wp.func
def flown(flight: Flight, f: wp.vec3d, rest: wp.vec3d, w: wp.float64, pace: wp.vec3d):
    """A motion that goes on for the time of `pace` under an acceleration f, pulled to `rest` by w."""
    a, b, h = pace[0], pace[1], pace[2]
    push = f - w * (flight.u - rest)
    after = Flight()
    after.u = flight.u + b * flight.v + a * push
    after.v = h * flight.v + b * push
    after.a = flight.a - w * a * flight.a + b * flight.b + a
    after.b = h * flight.b - w * b * flight.a + b
    return after


@wp.func
def go_on(flight: Flight, f: wp.vec3d, rest: wp.vec3d, d: wp.float64, w: wp.float64, t: wp.float64):
    """The same for t [s], slowed down by d."""
    return flown(flight, f, rest, w, response(d, w, t))


@wp.func
def kept_of(e: wp.vec3d, plasticity: wp.float64, limit: wp.float64):
    """How much of a peak e stays."""
    far = wp.length(e)
    most = (wp.float64(1.0) - wp.float64(1.0) / STIFFEST) * far
    return wp.min(plasticity * wp.max(far - limit, wp.float64(0.0)), most)


@wp.func
def dent_of(e: wp.vec3d, plasticity: wp.float64, limit: wp.float64):
    """u₀ and w'/w of a particle whose peak is e."""
    kept = kept_of(e, plasticity, limit)
    steeper = wp.float64(1.0)
    rest = wp.vec3d()
    if kept > wp.float64(0.0):
        far = wp.length(e)
        steeper = far / (far - kept)
        rest = e * (kept / far)
    return rest, steeper


@wp.func
def fly(
    start: Flight,
    peak: wp.vec3d,
    f: wp.vec3d,
    d: wp.float64,
    w: wp.float64,
    plasticity: wp.float64,
    limit: wp.float64,
    dt: wp.float64,
):
    """The motion over dt [s] and the peak after it.

    What goes beyond its peak yields from the moment on that it gets there to that when it turns back, both found by
    halving: then no step can be so long that a particle swings back along a way it should have lost energy on."""
    half = wp.float64(0.5)
    flight = start
    e = peak
    left = dt
    turn = int(0)
    while turn < TURNS:
        rest, steeper = dent_of(e, plasticity, limit)
        whole = go_on(flight, f, rest, d, w * steeper, left)
        reach = wp.max(wp.length(e), limit)
        if wp.length(whole.u) <= reach:
            return whole, e
        low = wp.float64(0.0)
        high = left
        for _ in range(HALVINGS):
            t = half * (low + high)
            if wp.length(go_on(flight, f, rest, d, w * steeper, t).u) <= reach:
                low = t
            else:
                high = t
        flight = go_on(flight, f, rest, d, w * steeper, low)
        left -= low
        whole = go_on(flight, f, wp.vec3d(), d, w, left)
        if yields(flight, whole):
            return whole, whole.u
        low = wp.float64(0.0)
        high = left
        for _ in range(HALVINGS):
            t = half * (low + high)
            if yields(flight, go_on(flight, f, wp.vec3d(), d, w, t)):
                low = t
            else:
                high = t
        flight = go_on(flight, f, wp.vec3d(), d, w, low)
        left -= low
        if wp.length(flight.u) > reach:
            e = flight.u
        turn += 1
    rest, steeper = dent_of(e, plasticity, limit)
    flight = go_on(flight, f, rest, d, w * steeper, left)
    if wp.length(flight.u) > wp.max(wp.length(e), limit):
        e = flight.u
    return flight, e


@wp.func
def yields(before: Flight, now: Flight):
    """Whether it is farther out than before, and still on its way."""
    return wp.length(now.u) >= wp.length(before.u) and wp.dot(now.u, now.v) >= wp.float64(0.0)
