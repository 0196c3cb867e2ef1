# mypy: disable-error-code="valid-type,no-untyped-def"
"""How the particles of a surface move within a step: where each gets by itself, exactly, and how it lands."""

from __future__ import annotations

from typing import Any

import warp as wp

from phyxel import device as dev
from phyxel.contact.colliders import rebound
from phyxel.contact.table import distance_to
from phyxel.models.particles.arrival import TINY, Arrival
from phyxel.models.particles.oscillator import response

wp.set_module_options(dev.KERNEL_OPTIONS)

TOUCHING = 1.0e-4
"""Gap to a collider [units] below which a particle lies on it."""
PUSHES = wp.constant(3)
"""Rounds in which a particle is put on the surface of colliders: the distance to some is exact only there."""
STIFFEST = wp.constant(wp.float64(1.0e3))
"""Most that the line to a dent is steeper than w: steeper ones would ring faster than any step follows."""


@wp.func
def dent_of(e: wp.vec3d, plasticity: wp.float64, limit: wp.float64):
    """The dent u₀ and w'/w of a particle whose peak is e (physics 13).

    While its displacement u grows beyond its peak a particle is pulled back by w u (per mass), as one that never
    yielded. Below the peak it goes along the straight line from there to the dent that is left when it is let go,

        u₀ = kept e/|e|,   kept = plasticity max(|e| − limit, 0),   w' = w |e| / (|e| − kept),

    so the pull has no jump at the peak, and a dent is the same however long a load is held and however it rings. (W96
    lets the rest place follow by a share of the excess in every step: under a held load it creeps all the way, whatever
    the share.) Energy is only lost: what the line holds at the peak is less than what went in.
    """
    far = wp.length(e)
    most = (wp.float64(1.0) - wp.float64(1.0) / STIFFEST) * far
    kept = wp.min(plasticity * wp.max(far - limit, wp.float64(0.0)), most)
    steeper = wp.float64(1.0)
    rest = wp.vec3d()
    if kept > wp.float64(0.0):
        steeper = far / (far - kept)
        rest = e * (kept / far)
    return rest, steeper


@wp.struct
class ParticleLaws:
    """What materials say of a particle's motion, in body units; each array has shape (materials,)."""

    drag: wp.array(dtype=wp.float64)
    """c/m [1/s]"""
    stiffness: wp.array(dtype=wp.float64)
    """K/m [1/s²]"""
    damping: wp.array(dtype=wp.float64)
    """of links [s]"""
    plasticity: wp.array(dtype=wp.float64)
    limit: wp.array(dtype=wp.float64)
    """distance from its place from which on it keeps a dent"""
    clearance: wp.array(dtype=wp.float64)
    """half the thickness"""
    pace: wp.array(dtype=wp.vec3d)
    """response over a step"""


def no_stuff(count: int, device: wp.Device) -> Any:
    """Room for that of so many materials."""
    stuff: Any = ParticleLaws()
    for name in ("drag", "stiffness", "damping", "plasticity", "limit", "clearance"):
        setattr(stuff, name, wp.zeros(count, dtype=wp.float64, device=device))
    stuff.pace = wp.zeros(count, dtype=wp.vec3d, device=device)
    return stuff


@wp.struct
class Particles:
    """All that a surface's particles are and do; each array has shape (n,), `goal` that of what is held."""

    X: wp.array(dtype=wp.vec3d)
    kind: wp.array(dtype=wp.int32)
    """which material"""
    mass: wp.array(dtype=wp.float64)
    """[kg]"""
    force: wp.array(dtype=wp.vec3d)
    """F [N/unit]"""
    hold: wp.array(dtype=wp.int32)
    """which goal, -1: free"""
    goal: wp.array(dtype=wp.vec3d)
    """displacement at the end of the step"""
    u: wp.array(dtype=wp.vec3d)
    v: wp.array(dtype=wp.vec3d)
    peak: wp.array(dtype=wp.vec3d)
    """the farthest displacement; only where something is plastic"""
    pace: wp.array(dtype=wp.vec3d)
    """response over a step, with a dent of that peak; only where something is plastic"""
    pull: wp.array(dtype=wp.vec3d)
    """P of the links in the last step [N/unit]"""
    pressed: wp.array(dtype=wp.vec3d)
    """force of the filling in the last step [N/unit]"""


@wp.kernel
def find_paces(first: int, stuff: ParticleLaws, clock: wp.array(dtype=wp.float64)):
    """The exact step of each material, of dt = clock[0]."""
    k = first + wp.tid()
    stuff.pace[k] = response(stuff.drag[k], stuff.stiffness[k], clock[0])


@wp.func
def remember(stuff: ParticleLaws, p: Particles, i: int, peak: wp.vec3d, dt: wp.float64):
    """The farthest displacement of a particle, and what follows of it."""
    k = p.kind[i]
    _, steeper = dent_of(peak, stuff.plasticity[k], stuff.limit[k])
    p.peak[i] = peak
    p.pace[i] = response(stuff.drag[k], steeper * stuff.stiffness[k], dt)


@wp.kernel
def find_dented_paces(first: int, stuff: ParticleLaws, p: Particles, clock: wp.array(dtype=wp.float64)):
    """The exact step of each particle, where some have dents."""
    i = first + wp.tid()
    remember(stuff, p, i, p.peak[i], clock[0])


@wp.func
def arrive_held(p: Particles, i: int, dt: wp.float64, arrival: Arrival):
    """What is held is at its goal, whatever pulls."""
    goal = p.goal[p.hold[i]]
    way = goal - p.u[i]
    arrival.x[i] = goal
    arrival.v[i] = way / dt
    arrival.A[i] = wp.float64(0.0)
    arrival.B[i] = wp.float64(0.0)
    arrival.H[i] = wp.float64(0.0)


@wp.func
def arrive_with(
    i: int, a: wp.float64, b: wp.float64, mass: wp.float64, damping: wp.float64, dt: wp.float64, arrival: Arrival
):
    """How far a force leads. Links look ahead of the end of the step by their damping, at least by half a step, which
    calms what it cannot resolve."""
    per_mass = wp.float64(1.0) / mass
    ahead = wp.max(damping, wp.float64(0.5) * dt)
    arrival.A[i] = a * per_mass
    arrival.B[i] = b * per_mass
    arrival.H[i] = (a + ahead * wp.abs(b)) * per_mass


@wp.kernel
def arrive(first: int, stuff: ParticleLaws, p: Particles, clock: wp.array(dtype=wp.float64), arrival: Arrival):
    """The exact step without links. `arrival` may be where the particles are: then they are moved."""
    i = first + wp.tid()
    if p.hold[i] >= 0:
        arrive_held(p, i, clock[0], arrival)
        return
    k = p.kind[i]
    pace = stuff.pace[k]
    a, b, h = pace[0], pace[1], pace[2]
    u = p.u[i]
    v = p.v[i]
    mass = p.mass[i]
    push = p.force[i] * (wp.float64(1.0) / mass) - stuff.stiffness[k] * u
    arrival.x[i] = u + b * v + a * push
    arrival.v[i] = h * v + b * push
    arrive_with(i, a, b, mass, stuff.damping[k], clock[0], arrival)


@wp.func
def gap_to(colliders: Any, k: int, arm: wp.vec3d, way: wp.vec3d, clearance: wp.float64):
    """Distance of a particle from being `clearance` off a collider, and the direction out."""
    turn = colliders.turn[k]
    kind, layout = colliders.kind[k], colliders.layout[k]
    distance, normal = distance_to(kind, turn, colliders.size[k], layout, colliders.values, arm, way)
    return distance - clearance, normal


@wp.kernel
def lean(
    first: int, stuff: ParticleLaws, p: Particles, clock: wp.array(dtype=wp.float64), colliders: Any, arrival: Arrival
):
    """What each particle lies on: links are to know that it bears them."""
    i = first + wp.tid()
    arrival.wall[i] = wp.vec3d()
    if p.hold[i] >= 0:
        return
    ahead = clock[0]
    added = arrival.H[i] - arrival.A[i]
    if added > wp.float64(TINY) * arrival.H[i]:
        ahead += added / arrival.B[i]
    x = p.X[i] + p.u[i]
    nearest = wp.float64(TOUCHING)
    for k in range(colliders.count):
        carried = colliders.drift[k] + wp.cross(colliders.spin[k], x + colliders.place[k])
        arm = x + clock[0] * carried + colliders.place[k]
        gap, n = gap_to(colliders, k, arm, wp.vec3d(), stuff.clearance[p.kind[i]])
        if gap < nearest:
            nearest = gap
            arrival.wall[i] = n
            arrival.spot[i] = x + ahead * carried - gap * n
            arrival.grip[i] = colliders.friction[k]


@wp.func
def meet(
    colliders: Any,
    k: int,
    arm: wp.vec3d,
    moved: wp.vec3d,
    before: wp.vec3d,
    after: wp.vec3d,
    clearance: wp.float64,
    time: wp.float64,
    dt: wp.float64,
):
    """What a collider does in a step to a particle that is `arm` away from its origin, has moved there at velocities
    from `before` to `after`: how far it is shifted, and its velocity.

    `time` is how far a unit of velocity that a force makes in the step has led: what friction has kept from sliding has
    not slid. It is 0 where a particle swings faster than steps follow: it has slid as little as it is slower. Only what
    it came with bounces back, not what forces have done in this step: what lies there stays."""
    none = wp.float64(0.0)
    carried = colliders.drift[k] + wp.cross(colliders.spin[k], arm)
    way = moved - dt * carried
    gap, n = gap_to(colliders, k, arm, way, clearance)
    shift = wp.vec3d()
    v = after
    if gap < none:
        # What lay there goes back along the normal it lay on: along that of where it got to it would creep on a curve.
        lay, normal = gap_to(colliders, k, arm - way, wp.vec3d(), clearance)
        if lay < wp.float64(TOUCHING):
            n = normal
        sliding = after - carried
        press = -wp.dot(sliding, n)
        if press <= none:  # on its way out, from below the surface: that swing has not happened
            press = -wp.float64(2.0) * gap / dt
        along = sliding - wp.dot(sliding, n) * n
        bounce = colliders.restitution[k] * wp.clamp(-wp.dot(before - carried, n) / press, none, wp.float64(1.0))
        kept = rebound(along - press * n, n, colliders.friction[k], bounce)
        v = carried + kept
        shift = time * (kept - wp.dot(kept, n) * n - along)
        if time == none:
            slowed = wp.dot(kept, along) / wp.max(wp.length_sq(along), wp.float64(1.0e-300))
            shift = (slowed - wp.float64(1.0)) * (way - wp.dot(way, n) * n)
        for _ in range(PUSHES):
            gap, n = gap_to(colliders, k, arm + shift, way + shift, clearance)
            shift -= wp.min(gap, none) * n
    return shift, v


@wp.func
def put(stuff: ParticleLaws, p: Particles, i: int, u: wp.vec3d, v: wp.vec3d, dt: wp.float64):
    """This is where a particle is."""
    p.u[i] = u
    p.v[i] = v
    if p.peak.shape[0] == 0:
        return
    if wp.length(u) > wp.max(wp.length(p.peak[i]), stuff.limit[p.kind[i]]):
        remember(stuff, p, i, u, dt)


@wp.kernel
def land(first: int, stuff: ParticleLaws, p: Particles, clock: wp.array(dtype=wp.float64), arrival: Arrival):
    """The end of a step: links have pulled."""
    i = first + wp.tid()
    u = arrival.x[i]
    v = arrival.v[i]
    if p.pull.shape[0] > 0:
        u += arrival.A[i] * p.pull[i]
        v += arrival.B[i] * p.pull[i]
    put(stuff, p, i, u, v, clock[0])


@wp.func
def out_of(
    colliders: Any,
    stuff: ParticleLaws,
    p: Particles,
    i: int,
    u: wp.vec3d,
    v: wp.vec3d,
    arrival: Arrival,
    dt: wp.float64,
):
    """Where a particle that gets to u with v is if it meets colliders, and its velocity."""
    a = arrival.A[i]
    b = arrival.B[i]
    time = wp.float64(0.0)
    if b * dt > a:
        time = a / b
    rounds = wp.min(colliders.count, 2)  # what one collider pushes into another is pushed out of both
    for c in range(rounds * colliders.count):
        k = c % colliders.count
        arm = p.X[i] + u + colliders.place[k]
        clearance = stuff.clearance[p.kind[i]]
        shift, after = meet(colliders, k, arm, u - p.u[i], p.v[i], v, clearance, time, dt)
        u += shift
        v = after
    return u, v


@wp.kernel
def touch_down(
    first: int, stuff: ParticleLaws, p: Particles, clock: wp.array(dtype=wp.float64), colliders: Any, arrival: Arrival
):
    """Colliders stop what flies into them before links are asked: these would be stretched by what is pushed out."""
    i = first + wp.tid()
    if p.hold[i] < 0:
        u, v = out_of(colliders, stuff, p, i, arrival.x[i], arrival.v[i], arrival, clock[0])
        arrival.x[i] = u
        arrival.v[i] = v


@wp.kernel
def land_among(
    first: int, stuff: ParticleLaws, p: Particles, clock: wp.array(dtype=wp.float64), colliders: Any, arrival: Arrival
):
    """The same where there are colliders: nothing is in one."""
    i = first + wp.tid()
    u = arrival.x[i]
    v = arrival.v[i]
    if p.pull.shape[0] > 0:
        u += arrival.A[i] * p.pull[i]
        v += arrival.B[i] * p.pull[i]
    if p.hold[i] < 0:
        u, v = out_of(colliders, stuff, p, i, u, v, arrival, clock[0])
    put(stuff, p, i, u, v, clock[0])


@wp.kernel
def show(first: int, u: wp.array(dtype=wp.vec3d), shown: wp.array(dtype=wp.vec3)):
    """u less that of the first particle, in single precision."""
    i = first + wp.tid()
    shown[i] = wp.vec3(u[i] - u[0])


@wp.kernel
def find_rests(
    first: int, stuff: ParticleLaws, p: Particles, rest: wp.array(dtype=wp.vec3d), steeper: wp.array(dtype=wp.float64)
):
    """u₀ and K'/K of each particle."""
    i = first + wp.tid()
    k = p.kind[i]
    place, factor = dent_of(p.peak[i], stuff.plasticity[k], stuff.limit[k])
    rest[i] = place
    steeper[i] = factor
