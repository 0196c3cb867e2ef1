# mypy: disable-error-code="valid-type,no-untyped-def"
"""How the particles of a surface move within a step: where each gets by itself, exactly (physics 13.1), the dents it
keeps (13.7), and how it lands on colliders (13.8)."""

from __future__ import annotations

from typing import Any

import warp as wp

from phyxel import device as dev
from phyxel.contact.colliders import rebound
from phyxel.contact.table import distance_to
from phyxel.models.particles.arrival import Arrival, look_ahead
from phyxel.models.particles.oscillator import response

wp.set_module_options(dev.KERNEL_OPTIONS)

TOUCHING = 1.0e-4
"""Gap to a collider [units] below which a particle lies on it: far less than anyone sees, far more than rounding."""
ROUNDED = 1.0e-10
"""Depth in a collider [units] that is none: what rounding leaves where a particle was put on its surface. Taken for a
touch, it would end a bounce that has just begun."""
PUSHES = wp.constant(3)
"""Rounds in which a particle is put on the surface of colliders: the distance to some is exact only there."""
STIFFEST = wp.constant(wp.float64(1.0e3))
"""Most that the line to a dent is steeper than w: steeper ones would ring faster than any step follows."""


@wp.func
def dent_of(e: wp.vec3d, plasticity: wp.float64, limit: wp.float64):
    """The dent u₀ and w'/w of a particle whose peak is e (physics 13.7).

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
    """Numbers of materials that a particle moves by, in body units; each array has shape (materials,)."""

    drag: wp.array(dtype=wp.float64)
    """c/m [1/s]"""
    stiffness: wp.array(dtype=wp.float64)
    """K/m [1/s²]"""
    damping: wp.array(dtype=wp.float64)
    """of links [s]"""
    plasticity: wp.array(dtype=wp.float64)
    """share of the way beyond the limit that stays as a dent"""
    limit: wp.array(dtype=wp.float64)
    """distance from its place from which on it keeps a dent"""
    clearance: wp.array(dtype=wp.float64)
    """half the thickness"""
    ahead: wp.array(dtype=wp.float64)
    """how far beyond the end of a step links look [s]"""
    pace: wp.array(dtype=wp.vec3d)
    """(a, b, h) of the oscillator over a step"""


def laws_of(count: int, device: wp.Device) -> Any:
    """Room for the numbers of so many materials."""
    laws: Any = ParticleLaws()
    for name in ("drag", "stiffness", "damping", "plasticity", "limit", "clearance", "ahead"):
        setattr(laws, name, wp.zeros(count, dtype=wp.float64, device=device))
    laws.pace = wp.zeros(count, dtype=wp.vec3d, device=device)
    return laws


@wp.struct
class Particles:
    """All that a surface's particles are and do; each array has shape (n,), `goal` that of held particles."""

    laws: ParticleLaws
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
    """(a, b, h) over a step, with a dent of that peak; only where something is plastic"""
    pull: wp.array(dtype=wp.vec3d)
    """P of the links in the last step [N/unit]"""
    pressed: wp.array(dtype=wp.vec3d)
    """force of the filling in the last step [N/unit]"""


@wp.kernel
def find_paces(first: int, laws: ParticleLaws, clock: wp.array(dtype=wp.float64)):
    """(a, b, h) of each material over a step of clock[0] (W96, physics 13.1). Its links look ahead by their damping, at
    least by half a step, which calms what it cannot resolve (physics 13.3)."""
    k = first + wp.tid()
    laws.ahead[k] = wp.max(laws.damping[k], wp.float64(0.5) * clock[0])
    laws.pace[k] = response(laws.drag[k], laws.stiffness[k], clock[0])


@wp.func
def remember(p: Particles, i: int, peak: wp.vec3d, dt: wp.float64):
    """The farthest displacement of a particle, and (a, b, h) along the line to the dent that it leaves."""
    k = p.kind[i]
    _, steeper = dent_of(peak, p.laws.plasticity[k], p.laws.limit[k])
    p.peak[i] = peak
    p.pace[i] = response(p.laws.drag[k], steeper * p.laws.stiffness[k], dt)


@wp.kernel
def find_dented_paces(first: int, clock: wp.array(dtype=wp.float64), p: Particles):
    """(a, b, h) of each particle, where some have dents."""
    i = first + wp.tid()
    remember(p, i, p.peak[i], clock[0])


@wp.func
def arrive_held(p: Particles, i: int, dt: wp.float64, arrival: Arrival):
    """A held particle is at its goal, whatever pulls (physics 16.5)."""
    goal = p.goal[p.hold[i]]
    way = goal - p.u[i]
    arrival.x[i] = goal
    arrival.v[i] = way / dt
    arrival.A[i] = wp.float64(0.0)
    arrival.B[i] = wp.float64(0.0)
    arrival.H[i] = wp.float64(0.0)


@wp.func
def led_by(a: wp.float64, b: wp.float64, mass: wp.float64, ahead: wp.float64):
    """A, B and H of a particle (physics 13.3): how far a force leads."""
    per_mass = wp.float64(1.0) / mass
    return a * per_mass, b * per_mass, (a + ahead * wp.abs(b)) * per_mass


@wp.kernel
def arrive(first: int, clock: wp.array(dtype=wp.float64), p: Particles, arrival: Arrival):
    """The exact step without links (W96, physics 13.1). `arrival` may be where the particles are: then they move."""
    i = first + wp.tid()
    if p.hold[i] >= 0:
        arrive_held(p, i, clock[0], arrival)
        return
    k = p.kind[i]
    pace = p.laws.pace[k]
    a, b, h = pace[0], pace[1], pace[2]
    u = p.u[i]
    v = p.v[i]
    mass = p.mass[i]
    push = p.force[i] * (wp.float64(1.0) / mass) - p.laws.stiffness[k] * u
    A, B, H = led_by(a, b, mass, p.laws.ahead[k])
    arrival.x[i] = u + b * v + a * push
    arrival.v[i] = h * v + b * push
    arrival.A[i] = A
    arrival.B[i] = B
    arrival.H[i] = H


@wp.func
def gap_to(colliders: Any, k: int, arm: wp.vec3d, way: wp.vec3d, clearance: wp.float64):
    """Distance of a particle from being `clearance` off a collider, and the direction out."""
    turn = colliders.turn[k]
    kind, layout = colliders.kind[k], colliders.layout[k]
    distance, normal = distance_to(kind, turn, colliders.size[k], layout, colliders.values, arm, way)
    return distance - clearance, normal


@wp.func
def lean_on(p: Particles, i: int, dt: wp.float64, colliders: Any, reach: wp.float64, arrival: Arrival):
    """The nearest collider that a particle is no farther from than it can `reach` (physics 13.3)."""
    arrival.wall[i] = wp.vec3d()
    if p.hold[i] >= 0:
        return
    ahead = dt + look_ahead(arrival.A[i], arrival.B[i], arrival.H[i])
    x = p.X[i] + p.u[i]
    nearest = reach
    for k in range(colliders.count):
        carried = colliders.drift[k] + wp.cross(colliders.spin[k], x + colliders.place[k])
        arm = x + dt * carried + colliders.place[k]
        gap, n = gap_to(colliders, k, arm, wp.vec3d(), p.laws.clearance[p.kind[i]])
        if gap < nearest:
            nearest = gap
            arrival.wall[i] = n
            arrival.spot[i] = x + ahead * carried - gap * n
            arrival.grip[i] = colliders.friction[k]


@wp.kernel
def lean(first: int, clock: wp.array(dtype=wp.float64), p: Particles, colliders: Any, arrival: Arrival):
    """The collider that each particle lies on, which bears its links (physics 13.3)."""
    lean_on(p, first + wp.tid(), clock[0], colliders, wp.float64(TOUCHING), arrival)


@wp.kernel
def lean_within(
    first: int, clock: wp.array(dtype=wp.float64), p: Particles, colliders: Any, reach: wp.float64, arrival: Arrival
):
    """The collider that each particle may come to lie on within the step, pushed by others (physics 15.16)."""
    lean_on(p, first + wp.tid(), clock[0], colliders, reach, arrival)


@wp.func
def meet(p: Particles, i: int, u: wp.vec3d, after: wp.vec3d, time: wp.float64, dt: wp.float64, colliders: Any, k: int):
    """How a collider shifts a particle that gets to u with the velocity `after` within a step, and
    its velocity (physics 13.8, 15.2).

    `time` is how far a unit of velocity that a force makes in the step has led: what friction has kept from sliding has
    not slid. It is 0 where a particle swings faster than steps follow: it has slid as little as it is slower. Only the
    velocity it came with bounces back, not what forces have added in this step: a particle that lies there stays."""
    none = wp.float64(0.0)
    clearance = p.laws.clearance[p.kind[i]]
    arm = p.X[i] + u + colliders.place[k]
    carried = colliders.drift[k] + wp.cross(colliders.spin[k], arm)
    way = u - p.u[i] - dt * carried
    gap, n = gap_to(colliders, k, arm, way, clearance)
    shift = wp.vec3d()
    v = after
    if gap < -wp.float64(ROUNDED):
        # What lay there goes back along the normal it lay on: along that of where it got to it would creep on a curve.
        lay, normal = gap_to(colliders, k, arm - way, wp.vec3d(), clearance)
        if lay < wp.float64(TOUCHING):
            n = normal
        sliding = after - carried
        press = -wp.dot(sliding, n)
        if press <= none:  # on its way out, from below the surface: that swing has not happened
            press = -wp.float64(2.0) * gap / dt
        along = sliding - wp.dot(sliding, n) * n
        bounce = colliders.restitution[k] * wp.clamp(-wp.dot(p.v[i] - carried, n) / press, none, wp.float64(1.0))
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
def out_of(p: Particles, i: int, u: wp.vec3d, v: wp.vec3d, dt: wp.float64, colliders: Any, arrival: Arrival):
    """Where a particle that gets to u with v is if it meets colliders, and its velocity."""
    a = arrival.A[i]
    b = arrival.B[i]
    time = wp.float64(0.0)
    if b * dt > a:
        time = a / b
    rounds = wp.min(colliders.count, 2)  # a particle that one collider pushes into another is pushed out of both
    for c in range(rounds * colliders.count):
        shift, after = meet(p, i, u, v, time, dt, colliders, c % colliders.count)
        u += shift
        v = after
    return u, v


@wp.kernel
def touch_down(first: int, clock: wp.array(dtype=wp.float64), p: Particles, colliders: Any, arrival: Arrival):
    """Colliders stop particles that fly into them before links are asked: pushing these out later would stretch
    links."""
    i = first + wp.tid()
    if p.hold[i] < 0:
        u, v = out_of(p, i, arrival.x[i], arrival.v[i], clock[0], colliders, arrival)
        arrival.x[i] = u
        arrival.v[i] = v


@wp.func
def pulled(p: Particles, i: int, arrival: Arrival):
    """x + A P and v + B P: where a particle gets when links have pulled."""
    u = arrival.x[i]
    v = arrival.v[i]
    if p.pull.shape[0] > 0:
        u += arrival.A[i] * p.pull[i]
        v += arrival.B[i] * p.pull[i]
    return u, v


@wp.func
def put(p: Particles, i: int, u: wp.vec3d, v: wp.vec3d, dt: wp.float64):
    """This is where a particle is; if it is farther out than ever, that is its peak."""
    p.u[i] = u
    p.v[i] = v
    if p.peak.shape[0] == 0:
        return
    if wp.length(u) > wp.max(wp.length(p.peak[i]), p.laws.limit[p.kind[i]]):
        remember(p, i, u, dt)


@wp.kernel
def land(first: int, clock: wp.array(dtype=wp.float64), p: Particles, arrival: Arrival):
    """The end of a step (physics 13.3)."""
    i = first + wp.tid()
    u, v = pulled(p, i, arrival)
    put(p, i, u, v, clock[0])


@wp.kernel
def land_among(first: int, clock: wp.array(dtype=wp.float64), p: Particles, colliders: Any, arrival: Arrival):
    """The same where there are colliders: no free particle ends in one (physics 13.8)."""
    i = first + wp.tid()
    u, v = pulled(p, i, arrival)
    if p.hold[i] < 0:
        u, v = out_of(p, i, u, v, clock[0], colliders, arrival)
    put(p, i, u, v, clock[0])


@wp.kernel
def show(first: int, u: wp.array(dtype=wp.vec3d), shown: wp.array(dtype=wp.vec3)):
    """u less that of the first particle, in single precision."""
    i = first + wp.tid()
    shown[i] = wp.vec3(u[i] - u[0])


@wp.kernel
def find_rests(first: int, p: Particles, rest: wp.array(dtype=wp.vec3d), steeper: wp.array(dtype=wp.float64)):
    """u₀ and K'/K of each particle (physics 13.7)."""
    i = first + wp.tid()
    k = p.kind[i]
    place, factor = dent_of(p.peak[i], p.laws.plasticity[k], p.laws.limit[k])
    rest[i] = place
    steeper[i] = factor


def rests_of(p: Any, n: int, device: wp.Device) -> tuple[Any, Any]:
    """u₀ (n, 3) and K'/K (n,) of n particles."""
    rest, steeper = wp.zeros(n, dtype=wp.vec3d, device=device), wp.zeros(n, dtype=wp.float64, device=device)
    dev.launch(find_rests, n, [p, rest, steeper], device)
    return rest.numpy(), steeper.numpy()
