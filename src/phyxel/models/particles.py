# mypy: disable-error-code="valid-type,no-untyped-def"
"""Particle surfaces (W96): every point of a surface is a damped oscillator about its place, followed by its exact
solution, so that no step is too long.

    m ü + c u̇ + K (u − u₀) = F + P,   m = density · thickness · area,  c = drag · m,  K = foundation · area

A step finds where the particles get without their links (`Arrival`), adds the pressure of a filling and the pull P of
links, both of where the surface will be at its end, and puts what has come into colliders on their surface.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import warp as wp
from numpy.typing import NDArray

from phyxel import device as dev
from phyxel.contact.colliders import rebound
from phyxel.contact.table import ColliderTable, distance_to, table_type
from phyxel.contact.wrapping import draw_to_colliders
from phyxel.errors import PhyxelError
from phyxel.material import Mixture
from phyxel.models.arrival import Arrival, no_arrival
from phyxel.models.dents import Flight, Pull, dent_of, flown, fly, may_yield
from phyxel.models.filling import Filling, enclosed, is_closed
from phyxel.models.oscillator import response
from phyxel.models.sheet import Sheet
from phyxel.models.tension import Tension

wp.set_module_options(dev.KERNEL_OPTIONS)

Floats = NDArray[np.float64]
Colliders = table_type(wp.float64)

PUSHES = wp.constant(3)
"""Rounds in which a particle is put on the surface of colliders: the distance to some is exact only there."""
SETTLING_STEP = 1 / 30
"""[s]"""
SETTLING_STEPS = 5000


@wp.struct
class Stuff:
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
def find_paces(first: int, stuff: Stuff, clock: wp.array(dtype=wp.float64)):
    """The exact step of each material, of dt = clock[0]."""
    k = first + wp.tid()
    stuff.pace[k] = response(stuff.drag[k], stuff.stiffness[k], clock[0])


@wp.func
def remember(stuff: Stuff, p: Particles, i: int, peak: wp.vec3d, dt: wp.float64):
    """The farthest displacement of a particle, and what follows of it."""
    k = p.kind[i]
    _, steeper = dent_of(peak, stuff.plasticity[k], stuff.limit[k])
    p.peak[i] = peak
    p.pace[i] = response(stuff.drag[k], steeper * stuff.stiffness[k], dt)


@wp.kernel
def find_dented_paces(first: int, stuff: Stuff, p: Particles, clock: wp.array(dtype=wp.float64)):
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
    calms what it cannot resolve; not where the particle swings back."""
    per_mass = wp.float64(1.0) / mass
    ahead = wp.max(damping, wp.float64(0.5) * dt)
    arrival.A[i] = a * per_mass
    arrival.B[i] = b * per_mass
    arrival.H[i] = (a + ahead * wp.max(b, wp.float64(0.0))) * per_mass


@wp.kernel
def arrive(first: int, stuff: Stuff, p: Particles, clock: wp.array(dtype=wp.float64), arrival: Arrival):
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


@wp.kernel
def arrive_plastic(first: int, stuff: Stuff, p: Particles, clock: wp.array(dtype=wp.float64), arrival: Arrival):
    """The same of particles that keep dents. Whether they yield on the way is seen with links pulling and the filling
    pressing as they last did; what they do in this step is then not counted twice."""
    i = first + wp.tid()
    if p.hold[i] >= 0:
        arrive_held(p, i, clock[0], arrival)
        return
    k = p.kind[i]
    dt = clock[0]
    start = Flight()
    start.u = p.u[i]
    start.v = p.v[i]
    inner = (p.pull[i] + p.pressed[i]) / p.mass[i]
    rest, steeper = dent_of(p.peak[i], stuff.plasticity[k], stuff.limit[k])
    line = Pull()
    line.f = p.force[i] / p.mass[i] + inner
    line.rest = rest
    line.w = steeper * stuff.stiffness[k]
    line.d = stuff.drag[k]
    end = flown(start, line, p.pace[i])
    reach = wp.max(wp.length(p.peak[i]), stuff.limit[k])
    if line.w > wp.float64(0.0) and stuff.plasticity[k] > wp.float64(0.0) and may_yield(start, line, reach):
        virgin = line
        virgin.rest = wp.vec3d()
        virgin.w = stuff.stiffness[k]
        end, peak = fly(start, p.peak[i], virgin, stuff.plasticity[k], stuff.limit[k], dt)
        remember(stuff, p, i, peak, dt)
    arrival.x[i] = end.u - end.a * inner
    arrival.v[i] = end.v - end.b * inner
    arrive_with(i, end.a, end.b, p.mass[i], stuff.damping[k], dt, arrival)


@wp.func
def gap_to(colliders: Colliders, k: int, arm: wp.vec3d, way: wp.vec3d, clearance: wp.float64):
    """Distance of a particle from being `clearance` off a collider, and the direction out."""
    turn = colliders.turn[k]
    kind, layout = colliders.kind[k], colliders.layout[k]
    distance, normal = distance_to(kind, turn, colliders.size[k], layout, colliders.values, arm, way)
    return distance - clearance, normal


@wp.func
def meet(
    colliders: Colliders,
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
def put(stuff: Stuff, p: Particles, i: int, u: wp.vec3d, v: wp.vec3d, dt: wp.float64):
    """This is where a particle is."""
    p.u[i] = u
    p.v[i] = v
    if p.peak.shape[0] > 0:
        if wp.length(u) > wp.max(wp.length(p.peak[i]), stuff.limit[p.kind[i]]):
            remember(stuff, p, i, u, dt)


@wp.kernel
def land(first: int, stuff: Stuff, p: Particles, clock: wp.array(dtype=wp.float64), arrival: Arrival):
    """The end of a step: links have pulled."""
    i = first + wp.tid()
    u = arrival.x[i]
    v = arrival.v[i]
    if p.pull.shape[0] > 0:
        u += arrival.A[i] * p.pull[i]
        v += arrival.B[i] * p.pull[i]
    put(stuff, p, i, u, v, clock[0])


@wp.kernel
def land_among(
    first: int, stuff: Stuff, p: Particles, clock: wp.array(dtype=wp.float64), colliders: Colliders, arrival: Arrival
):
    """The same where there are colliders: nothing is in one."""
    i = first + wp.tid()
    u = arrival.x[i]
    v = arrival.v[i]
    A = arrival.A[i]
    B = arrival.B[i]
    if p.pull.shape[0] > 0:
        u += A * p.pull[i]
        v += B * p.pull[i]
    if p.hold[i] < 0:
        clearance = stuff.clearance[p.kind[i]]
        time = wp.float64(0.0)
        if B * clock[0] > A:
            time = A / B
        rounds = wp.min(colliders.count, 2)  # what one collider pushes into another is pushed out of both
        for c in range(rounds * colliders.count):
            k = c % colliders.count
            arm = p.X[i] + u + colliders.place[k]
            shift, after = meet(colliders, k, arm, u - p.u[i], p.v[i], v, clearance, time, clock[0])
            u += shift
            v = after
    put(stuff, p, i, u, v, clock[0])


@wp.kernel
def show(first: int, u: wp.array(dtype=wp.vec3d), shown: wp.array(dtype=wp.vec3)):
    """u less that of the first particle, in single precision."""
    i = first + wp.tid()
    shown[i] = wp.vec3(u[i] - u[0])


@wp.kernel
def find_rests(first: int, stuff: Stuff, p: Particles, rest: wp.array(dtype=wp.vec3d), steeper: wp.array(dtype=wp.float64)):
    """u₀ and K'/K of each particle."""
    i = first + wp.tid()
    k = p.kind[i]
    place, factor = dent_of(p.peak[i], stuff.plasticity[k], stuff.limit[k])
    rest[i] = place
    steeper[i] = factor


class ParticleModel:
    """Moves one surface. Lengths are in body units about the body's origin, axes are the world's, all in double."""

    _stuff: Any
    _mixture: Mixture

    def __init__(self, sheet: Sheet, unit: float, velocities: Floats, device: wp.Device) -> None:
        """`unit` is the body unit [m], `velocities` (n, 3) are those at the start [units/s]."""
        self.sheet, self.unit, self.device = sheet, unit, device
        n = len(sheet.X)
        self._count = n
        self._clock = dev.Shared(1, wp.float64, device)
        self._force = dev.Shared(n, wp.vec3d, device)
        self._goals = dev.Shared(0, wp.vec3d, device)
        self._pressures = dev.Shared(0, wp.float64, device)
        """with which it is drawn to each collider, times the unit [Pa m]; none if it is to none"""
        self._walls = ColliderTable([unit], wp.float64, device)
        self._tension = Tension(sheet, device) if len(sheet.elements) else None
        self._filling: Filling | None = None
        self._arrival = no_arrival(n, device)
        self._shown = wp.zeros(n, dtype=wp.vec3, device=device)
        p: Any = Particles()
        p.X = wp.array(sheet.X, dtype=wp.vec3d, device=device)
        p.kind, p.mass = wp.zeros(n, dtype=wp.int32, device=device), wp.zeros(n, dtype=wp.float64, device=device)
        p.force, p.goal = self._force.array, self._goals.array
        p.hold = wp.full(n, -1, dtype=wp.int32, device=device)
        p.u = wp.zeros(n, dtype=wp.vec3d, device=device)
        p.v = wp.array(np.asarray(velocities, np.float64), dtype=wp.vec3d, device=device)
        p.pull = self._vectors(self._tension is not None)
        p.pressed, p.peak, p.pace = (self._vectors(False) for _ in range(3))
        self._particles = p
        self._program: dev.Program | None = None
        self._met: Any = None

    def _vectors(self, wanted: bool) -> wp.array:
        return wp.zeros(self._count if wanted else 0, dtype=wp.vec3d, device=self.device)

    def _make_room(self, *names: str) -> None:
        """For numbers of the particles that not all surfaces have."""
        for name in names:
            if not len(getattr(self._particles, name)):
                setattr(self._particles, name, self._vectors(True))
                self._program = None

    # What it is made of, what holds it and what acts on it

    def set_material(self, mixture: Mixture) -> None:
        """What each particle is made of (membranes); motion goes on from where it is."""
        self._mixture = mixture
        self._write_stuff(calm=False)
        p, device = self._particles, self.device
        p.kind = wp.array(mixture.which.astype(np.int32), dtype=wp.int32, device=device)
        self._mass = mixture.number("density") * mixture.number("thickness") * self.sheet.areas * self.unit**2
        p.mass = wp.array(self._mass, dtype=wp.float64, device=device)
        if self._plastic:
            self._make_room("peak", "pace", "pull", "pressed")
        if self._tension is not None:
            self._tension.set_stiffness(self.sheet.elements.stiffness(mixture, self.unit))

    def _write_stuff(self, calm: bool) -> None:
        """`calm`: damped so that it goes straight to rest, critically where a settling step cannot follow the swing or
        an overshoot would leave a dent, else not at all."""
        materials: Any = self._mixture.materials
        stuff: Any = Stuff()
        stiffness = np.array([one.foundation / (one.density * one.thickness) for one in materials])
        drag = np.array([one.drag for one in materials])
        plasticity = np.array([one.plasticity for one in materials])
        if calm:
            omega = np.sqrt(stiffness)
            drag = np.where((omega * SETTLING_STEP > 1) | (plasticity > 0), 2 * omega, 0.0)
        columns = {
            "drag": drag,
            "stiffness": stiffness,
            "damping": np.array([one.damping for one in materials]),
            "plasticity": plasticity,
            "limit": np.array([one.elastic_limit for one in materials]) / self.unit,
            "clearance": np.array([one.thickness for one in materials]) / (2 * self.unit),
        }
        for name, values in columns.items():
            setattr(stuff, name, wp.array(values, dtype=wp.float64, device=self.device))
        stuff.pace = wp.zeros(len(materials), dtype=wp.vec3d, device=self.device)
        self._stuff, self._program = stuff, None
        self._plastic = bool(((plasticity > 0) & (stiffness > 0)).any())

    def set_holds(self, nodes: NDArray[np.integer]) -> None:
        """Which particles are held from now on, (k,) in the order of the goals of a step; nothing jumps."""
        hold = np.full(self._count, -1, np.int32)
        hold[nodes] = np.arange(len(nodes))
        self._particles.hold = wp.array(hold, dtype=wp.int32, device=self.device)
        self._goals = dev.Shared(len(nodes), wp.vec3d, self.device)
        self._particles.goal = self._goals.array
        self._held = np.asarray(nodes, np.int64)
        self._program = None

    def set_force(self, force: Floats | None) -> None:
        """F [N] on each particle from now on, gravity included, shape (n, 3)."""
        self._force.host[:] = 0.0 if force is None else np.asarray(force, np.float64) / self.unit
        self._force.push()

    def set_filling(self, bulk: float, amount: float = 1.0) -> None:
        """What is enclosed presses with p = bulk (amount − V/V₀) [Pa] from now on; bulk = 0: nothing is."""
        if self._filling is None and bulk > 0:
            self._filling = Filling(self.sheet.X, self.sheet.faces, self.unit, self.device)
            self._make_room("pull", "pressed")
        if self._filling is not None:
            self._filling.set(bulk, amount)

    def set_wraps(self, pressures: Floats) -> None:
        """Pressure [Pa] times area at rest with which particles outside of each collider are drawn to it from now on,
        shape (k,)."""
        drawn = pressures if pressures.any() else np.zeros(0)
        if len(drawn) != len(self._pressures.host):
            self._pressures = dev.Shared(len(drawn), wp.float64, self.device)
            self._particles.force = self._vectors(True) if len(drawn) else self._force.array
            self._program = None
        self._pressures.host[:] = self.unit * drawn
        self._pressures.push()

    # Stepping

    def step(self, dt: float, goals: Floats | None = None, colliders: ColliderTable | None = None) -> None:
        """Go on by dt [s], with what is held displaced by `goals` (k, 3) [units] at the end, and out of colliders.

        The table, in double for one body of this unit, is to be written for the end of the step, with the motion over
        it: `write(colliders, origin[None], (end - dt, end), end)`."""
        table = (self._walls if colliders is None else colliders).table
        if self._program is None or table is not self._met:
            self._capture(table)
        assert self._program is not None
        if self._clock.host[0] != dt:
            self._clock.host[0] = dt
            self._clock.push()
            self._find_paces()
        if goals is not None and len(goals):
            self._goals.host[:] = goals
            self._goals.push()
        self._program.run()

    def _find_paces(self) -> None:
        count = len(self._stuff.pace)
        dev.launch(find_paces, count, [self._stuff, self._clock.array], self.device, split=False)
        if self._plastic:
            inputs = [self._stuff, self._particles, self._clock.array]
            dev.launch(find_dented_paces, self._count, inputs, self.device)

    def _capture(self, table: Any) -> None:
        stuff, p, n, clock, arrival = self._stuff, self._particles, self._count, self._clock.array, self._arrival
        press = [] if self._filling is None else self._filling.launches(arrival, p.pull, p.pressed)
        pull = [] if self._tension is None else self._tension.launches(arrival, p.pull)
        if self._plastic:
            way = dev.Launch(arrive_plastic, n, [stuff, p, clock, arrival], 1.0)
        else:
            way = dev.Launch(arrive, n, [stuff, p, clock, arrival], 0.1)
        if table.count:
            end = dev.Launch(land_among, n, [stuff, p, clock, table, arrival], 0.5 * table.count)
        else:
            end = dev.Launch(land, n, [stuff, p, clock, arrival], 0.1)
        launches = [*self._drawing(table), way, *press, *pull, end]
        if not (press or pull or table.count or self._plastic):  # nothing is left to do where they arrive
            launches = [dev.Launch(arrive, n, [stuff, p, clock, self._arrived_at_once()], 0.1)]
        self._program = dev.Program(launches, self.device)
        self._met = table
        self._find_paces()

    def _arrived_at_once(self) -> Any:
        """An arrival at where the particles are."""
        arrival: Any = Arrival()
        arrival.x, arrival.v = self._particles.u, self._particles.v
        arrival.A, arrival.B, arrival.H = self._arrival.A, self._arrival.B, self._arrival.H
        return arrival

    def _drawing(self, table: Any) -> list[dev.Launch]:
        if not len(self._pressures.host):
            return []
        p, areas = self._particles, wp.array(self.sheet.areas, dtype=wp.float64, device=self.device)
        inputs = [table, self._pressures.array, p.X, p.u, areas, self._force.array, p.force]
        return [dev.Launch(draw_to_colliders, self._count, inputs, 0.1 + 0.5 * table.count)]

    def settle(
        self, goals: Floats | None = None, colliders: ColliderTable | None = None, tolerance: float = 1e-6
    ) -> None:
        """Go to static equilibrium, to about `tolerance` [units]; it is then at rest.

        Whenever the surface as a whole gets slower it is stopped: it has passed its equilibrium. If nothing has gone
        farther than the tolerance from stop to stop, that is it."""
        self._write_stuff(calm=True)
        v = self._particles.v
        v.zero_()
        last, before = 0.0, self.u
        try:
            for _ in range(SETTLING_STEPS):
                self.step(SETTLING_STEP, goals, colliders)
                kinetic = self.energies()[1]
                if kinetic <= last:
                    v.zero_()
                    now = self.u
                    if np.abs(now - before).max() <= tolerance:
                        return
                    kinetic, before = 0.0, now
                last = kinetic
        finally:
            v.zero_()
            self._write_stuff(calm=False)
        raise PhyxelError("the surface does not come to rest; hold it somewhere, or give it a foundation to rest on")

    # What it is like

    @property
    def u(self) -> Floats:
        """Displacements [units], shape (n, 3)."""
        return np.array(self._particles.u.numpy())

    @property
    def v(self) -> Floats:
        """Velocities [units/s], shape (n, 3)."""
        return np.array(self._particles.v.numpy())

    @property
    def rest(self) -> Floats:
        """u₀: displacements of the places they are pulled to, which plasticity moves [units], shape (n, 3)."""
        return self._rests()[0]

    def _rests(self) -> tuple[Floats, Floats]:
        """u₀ (n, 3), and how many times stiffer the pull to it is than the foundation, (n,)."""
        if not self._plastic:
            return np.zeros((self._count, 3)), np.ones(self._count)
        rest, steeper = self._vectors(True), wp.zeros(self._count, dtype=wp.float64, device=self.device)
        dev.launch(find_rests, self._count, [self._stuff, self._particles, rest, steeper], self.device)
        return rest.numpy(), steeper.numpy()

    def shown(self) -> tuple[wp.array, Floats]:
        """u about an even displacement, on the device in single precision, (n,) of vec3; and that even one, (3,)."""
        u = self._particles.u
        dev.launch(show, self._count, [u, self._shown], self.device)
        return self._shown, np.array(u[:1].numpy()[0])

    def top_speed(self) -> float:
        """Of the fastest particle [units/s]."""
        v = self._particles.v.numpy()
        return float(np.sqrt(np.einsum("na,na->n", v, v).max()))

    def energies(self) -> tuple[float, float]:
        """Elastic (of foundation, links and filling) and kinetic energy [J]."""
        p = self._particles
        u, v = p.u.numpy(), p.v.numpy()
        rest, steeper = self._rests()
        foundation = self._mixture.number("foundation") * self.sheet.areas * self.unit**2 * steeper
        elastic = 0.5 * foundation @ ((u - rest) ** 2).sum(axis=1) * self.unit**2
        if self._tension is not None:
            elastic += self._tension.energy(p.u) * self.unit**2
        if self._filling is not None:
            elastic += self._filling.energy(self.sheet.X + u)
        return float(elastic), float(0.5 * self._mass @ (v**2).sum(axis=1) * self.unit**2)

    def momenta(self) -> tuple[Floats, Floats]:
        """Σ m v [kg m/s] and Σ m x × v [kg m²/s] about the body's origin, shape (3,) each."""
        moved = self._mass[:, None] * self.v
        spin = np.cross(self.sheet.X + self.u, moved).sum(axis=0)
        return moved.sum(axis=0) * self.unit, spin * self.unit**2

    def middle(self) -> Floats:
        """The middle of mass [units], shape (3,)."""
        return np.asarray(self._mass @ (self.sheet.X + self.u) / self._mass.sum())

    def volume(self) -> float:
        """What the surface encloses [m³]; of an open one that of the membrane itself, area · thickness."""
        faces = self.sheet.faces
        if faces is not None and is_closed(faces):
            return abs(enclosed(self.sheet.X + self.u, faces)) * self.unit**3
        return float(self._mixture.number("thickness") @ self.sheet.areas) * self.unit**2

    def state(self) -> dict[str, NDArray[Any]]:
        """All that a checkpoint must keep."""
        kept = {name: np.array(getattr(self._particles, name).numpy()) for name in ("u", "v", "peak", "pull", "pressed")}
        return {name: values for name, values in kept.items() if len(values)}

    def restore(self, state: dict[str, NDArray[Any]]) -> None:
        """Take over what `state` gave."""
        for name, values in state.items():
            self._make_room(name)
            getattr(self._particles, name).assign(values)
        self._program = None  # paces follow from peaks
