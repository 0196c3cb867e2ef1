"""Particle surfaces (W96): every point of a surface is a damped oscillator about its place, followed by its exact
solution, so that no step is too long.

    m ü + c u̇ + K (u − u₀) = F + P,   m = density · thickness · area,  c = drag · m,  K = foundation · area

A step finds where the particles get without their links (`Arrival`), adds the pressure of a filling and the pull P of
links, both of where the surface will be at its end, and puts particles that have come into colliders on their surface
(physics 13).
"""

from __future__ import annotations

from typing import Any

import numpy as np
import warp as wp
from numpy.typing import NDArray

from phyxel import device as dev
from phyxel.contact.table import ColliderTable
from phyxel.errors import PhyxelError
from phyxel.material import Mixture
from phyxel.models.particles.arrival import arrived_at_once, no_arrival, set_walls
from phyxel.models.particles.equilibrium import Equilibrium
from phyxel.models.particles.filling import EnclosedGas, enclosed
from phyxel.models.particles.flight import (
    Particles,
    arrive,
    find_dented_paces,
    find_paces,
    land,
    land_among,
    laws_of,
    lean,
    rests_of,
    show,
    touch_down,
)
from phyxel.models.particles.sheet import LARGEST, Sheet
from phyxel.models.particles.tension import Tension
from phyxel.models.particles.wrapping import drawing_to
from phyxel.models.particles.yielding import arrive_dented, arrive_plastic
from phyxel.models.reductions import CHUNK, find_fastest

Floats = NDArray[np.float64]

SETTLING_STEP, LINKED_SETTLING_STEP = 1 / 30, 1 / 240
"""[s]; with links as long as a step otherwise is, or what a longer one cannot resolve of them would come to rest
elsewhere"""
SETTLING_STEPS = 5000
"""After which a surface is said not to come to rest."""
STEPS_TO_REST = 1000
"""In which particles without links are at rest, unless a step throws one to and fro: a pull leads through the edge of a
collider, where it is put out of another face, and back. From then on steps are half as long."""
LEANING = 0.5
"""Longest step, over the time √(ρhl/p) in which a pressure takes a particle about half its way to its neighbours."""
NARROWEST = 0.3
"""Least spacing [units] that counts for this, so that a sliver of a mesh does not slow all."""


class ParticleModel:
    """Moves one surface. Lengths are in body units about the body's origin, axes are the world's, all in double."""

    mixture: Mixture

    def __init__(self, sheet: Sheet, unit: float, velocities: Floats, device: wp.Device) -> None:
        """`unit` is the body unit [m], `velocities` (n, 3) are those at the start [units/s]."""
        self.sheet, self.unit, self.device = sheet, unit, device
        n = len(sheet.X)
        self._count = n
        self.clock = dev.Shared(1, wp.float64, device)
        self._force = dev.Shared(n, wp.vec3d, device)
        self._goals = dev.Shared(0, wp.vec3d, device)
        self._pressures = dev.Shared(0, wp.float64, device)
        """with which it is drawn to each collider, times the unit [Pa m]; none if it is to none"""
        self._walls = ColliderTable([unit], wp.float64, device)
        self._tension = Tension(sheet, device) if len(sheet.elements) else None
        self._settling_step = SETTLING_STEP if self._tension is None else LINKED_SETTLING_STEP
        self._filling: EnclosedGas | None = None
        self._arrival = no_arrival(n, device)
        self._fastest = wp.zeros(-(-n // CHUNK), dtype=wp.float64, device=device)
        """of chunks of particles"""
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
        self.particles = p
        self._laws = p.laws = laws_of(0, device)
        self._plastic = False
        self._equilibrium = Equilibrium(self._tension) if self._tension is not None else None
        self._exact = self._soft = False
        """whether links are solved for by `Equilibrium`, and if so, by iterations all the same unless it is calm"""
        self._program: dev.Program | None = None
        self._iteration: dev.Program | None = None
        """of soft links"""
        self._landing: dev.Program | None = None
        """what follows when links are in equilibrium; none if that is a part of the program"""
        self._met: Any = None

    def _vectors(self, wanted: bool) -> wp.array:
        return wp.zeros(self._count if wanted else 0, dtype=wp.vec3d, device=self.device)

    def _make_room(self, *names: str) -> None:
        """For numbers of the particles that not all surfaces have."""
        for name in names:
            if not len(getattr(self.particles, name)):
                setattr(self.particles, name, self._vectors(True))
                self._program = None

    # Material, holds, forces

    def set_material(self, mixture: Mixture) -> None:
        """What each particle is made of (membranes); motion goes on from where it is."""
        self.mixture = mixture
        self._write_laws(calm=False)
        self.particles.kind.assign(mixture.which.astype(np.int32))
        self._mass = mixture.number("density") * mixture.number("thickness") * self.sheet.areas * self.unit**2
        self.particles.mass.assign(self._mass)
        if self._plastic:
            self._make_room("peak", "pace")
        if self._tension is not None:
            self._tension.set_stiffness(self.sheet.elements.stiffness(mixture, self.unit))

    def _write_laws(self, calm: bool) -> None:
        """`calm`: damped so that it goes straight to rest, critically where a settling step cannot follow the swing or
        an overshoot would leave a dent, else not at all."""
        materials: Any = self.mixture.materials
        stiffness = np.array([one.foundation / (one.density * one.thickness) for one in materials])
        drag = np.array([one.drag for one in materials])
        plasticity = np.array([one.plasticity for one in materials])
        if calm:
            omega = np.sqrt(stiffness)
            drag = np.where((omega * self._settling_step > 1) | (plasticity > 0), 2 * omega, 0.0)
        columns = {
            "drag": drag,
            "stiffness": stiffness,
            "damping": np.array([one.damping for one in materials]),
            "plasticity": plasticity,
            "limit": np.array([one.elastic_limit for one in materials]) / self.unit,
            "clearance": np.array([one.thickness for one in materials]) / (2 * self.unit),
        }
        plastic = bool(((plasticity > 0) & (stiffness > 0)).any())
        if len(self._laws.pace) != len(materials) or plastic != self._plastic:
            self._laws = self.particles.laws = laws_of(len(materials), self.device)
            self._plastic, self._program = plastic, None
        for name, values in columns.items():
            getattr(self._laws, name).assign(values)
        self.clock.host[0] = 0.0  # the next step is to find its paces

    def set_holds(self, nodes: NDArray[np.integer]) -> None:
        """Which particles are held from now on, (k,) in the order of the goals of a step; nothing jumps."""
        hold = np.full(self._count, -1, np.int32)
        hold[nodes] = np.arange(len(nodes))
        self.particles.hold = wp.array(hold, dtype=wp.int32, device=self.device)
        self._goals = dev.Shared(len(nodes), wp.vec3d, self.device)
        self.particles.goal = self._goals.array
        self._held = np.asarray(nodes, np.int64)
        self._program = None

    def set_force(self, force: Floats | None) -> None:
        """F [N] on each particle from now on, gravity included, shape (n, 3)."""
        self._force.host[:] = 0.0 if force is None else np.asarray(force, np.float64) / self.unit
        self._force.push()

    def set_filling(self, bulk: float, amount: float = 1.0) -> None:
        """The filling presses with p = bulk (amount − V/V₀) [Pa] from now on; bulk = 0: there is none."""
        if self._filling is None and bulk > 0:
            sheet, linked = self.sheet, self._tension is not None
            self._filling = EnclosedGas(sheet.X, sheet.faces, self.unit, self.device, None if linked else sheet.normals)
            self._make_room("pull", "pressed")
        if self._filling is not None:
            self._filling.set(bulk, amount)

    def set_wraps(self, pressures: Floats) -> None:
        """Pressure [Pa] times area at rest with which particles outside of each collider are drawn to it from now on,
        shape (k,)."""
        drawn = pressures if pressures.any() else np.zeros(0)
        if len(drawn) != len(self._pressures.host):
            self._pressures = dev.Shared(len(drawn), wp.float64, self.device)
            self.particles.force = self._vectors(True) if len(drawn) else self._force.array
            self._program = None
        self._pressures.host[:] = self.unit * drawn
        self._pressures.push()

    # Stepping

    def leans_within(self, pressure: float = 0.0) -> float:
        """Time [s] in which the filling, with another pressure [Pa] such as that of wind, takes no particle out of its
        neighbourhood: √(ρhl/p), l being its spacing. The areas that they press on lean with the surface but are those
        of the step before, so that longer steps would let it tremble and crumple; where nothing presses, any length."""
        push = np.full(self._count, pressure * self.unit) * self.sheet.areas
        if self._tension is not None and len(self.particles.pressed):
            push += np.linalg.norm(self.particles.pressed.numpy(), axis=1)
        spacing = np.maximum(np.sqrt(self.sheet.areas), NARROWEST)
        sharpest = float((push / (self._mass * spacing)).max())
        return LEANING / np.sqrt(sharpest) if sharpest > 0 else np.inf

    def step(self, dt: float, goals: Floats | None = None, colliders: ColliderTable | None = None) -> None:
        """Go on by dt [s], with held particles displaced by `goals` (k, 3) [units] at the end, and out of colliders.

        The table, in double for one body of this unit, is to be written for the end of the step, with the motion over
        it: `write(colliders, origin[None], (end - dt, end), end)`."""
        table = (self._walls if colliders is None else colliders).table
        if self._program is None or table is not self._met or self.clock.host[0] != dt:
            self.set_pace(dt)
            solver = self._solver()
            if self._program is None or table is not self._met or solver != (self._exact, self._soft):
                self._exact, self._soft = solver
                self._capture(table)
        assert self._program is not None
        self.set_goals(goals)
        self._program.run()
        if self._landing is not None:
            assert self._equilibrium is not None
            if not self._equilibrium.follow(self._iteration, self.particles, self._arrival, dt):
                self._equilibrium.find(self.particles.u, self.particles.pull, self._arrival, self._soft)
            self._landing.run()

    def _solver(self) -> tuple[bool, bool]:
        """Whether steps of this length need `Equilibrium`, and whether links are soft all the same: as particles yield,
        lie or not is of no account, so that a resumed run chooses alike."""
        if self._tension is None:
            return False, False
        arrival = no_arrival(self._count, self.device)
        launches = [dev.Launch(arrive, self._count, [self.clock.array, self.particles, arrival])]
        for one in [*launches, *self._tension.planned(arrival)]:
            dev.launch(one.kernel, one.count, one.inputs, self.device, split=False)
        short = not self._tension.gets_there()
        soft = short and self._tension.is_soft()
        return soft or (short and self._count <= LARGEST), soft

    def set_goals(self, goals: Floats | None) -> None:
        """Held particles are displaced by (k, 3) [units] at the end of the next step."""
        if goals is not None and len(goals):
            self._goals.host[:] = goals
            self._goals.push()

    def set_pace(self, dt: float) -> None:
        """The next step takes dt [s]."""
        self.clock.host[0] = dt
        self.clock.push()
        dev.launch(find_paces, len(self._laws.pace), [self._laws, self.clock.array], self.device, split=False)
        if self._plastic:
            dev.launch(find_dented_paces, self._count, [self.clock.array, self.particles], self.device)

    def _capture(self, table: Any) -> None:
        clock, p, n, arrival = self.clock.array, self.particles, self._count, self._arrival
        press = self.pressing(arrival)
        lain = bool(table.count) and self._tension is not None
        set_walls(arrival, n if lain else 0, self.device)
        taken: list[dev.Launch] = []
        self._iteration = None
        if self._tension is None:
            pull = []
        elif self._exact:
            pull, taken = self._tension.planned(arrival), self._tension.taken(arrival, p.pull)
            if self._soft:
                self._iteration = dev.Program(self._tension.iterated(arrival, p.pull), self.device)
        else:
            pull = self._tension.launches(arrival, p.pull)
        if lain:
            contact = [dev.Launch(one, n, [clock, p, table, arrival], 0.5 * table.count) for one in (touch_down, lean)]
            pull = [*contact, *pull]
        if self._plastic:
            way = dev.Launch(arrive_dented if press or pull else arrive_plastic, n, [clock, p, arrival], 1.0)
        else:
            way = dev.Launch(arrive, n, [clock, p, arrival], 0.1)
        if table.count:
            end = dev.Launch(land_among, n, [clock, p, table, arrival], 0.5 * table.count)
        else:
            end = dev.Launch(land, n, [clock, p, arrival], 0.1)
        landing = [*taken, end]
        launches = [*self.drawing(table), way, *press, *pull, *(() if taken else landing)]
        if not (press or pull or table.count or self._plastic):  # nothing is left to do where they arrive
            launches = [
                dev.Launch(
                    arrive, n, [clock, p, arrived_at_once(self.particles.u, self.particles.v, self._arrival)], 0.1
                )
            ]
        self._program = dev.Program(launches, self.device)
        self._landing = dev.Program(landing, self.device) if taken else None
        self._met = table

    def pressing(self, arrival: Any) -> list[dev.Launch]:
        """The filling presses particles that get to an arrival."""
        gas, p = self._filling, self.particles
        return [] if gas is None else gas.launches(arrival, p.pull, p.pressed)

    def forget_tensions(self) -> None:
        """Links were solved for elsewhere, in a step of another length maybe."""
        self._program = None
        if self._equilibrium is not None:
            self._equilibrium.forget()

    def drawing(self, table: Any) -> list[dev.Launch]:
        """Wraps draw particles to colliders."""
        pressures = self._pressures.array if len(self._pressures.host) else None
        return drawing_to(table, pressures, self.sheet.areas, self.particles, self._force.array)

    def settle(
        self, goals: Floats | None = None, colliders: ColliderTable | None = None, tolerance: float = 1e-6
    ) -> None:
        """Go to static equilibrium, to about `tolerance` [units]; it is then at rest.

        Whenever the surface as a whole gets slower it is stopped: it has passed its equilibrium. If nothing has gone
        farther than the tolerance from stop to stop, that is it."""
        self._write_laws(calm=True)
        v = self.particles.v
        v.zero_()
        last, before = 0.0, self.u
        try:
            for taken in range(SETTLING_STEPS):
                longest = self._settling_step
                if self._tension is None:
                    longest /= 2 ** (taken // STEPS_TO_REST)
                self.step(min(longest, self.leans_within()), goals, colliders)
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
            self._write_laws(calm=False)
        raise PhyxelError(
            "the surface does not come to rest; hold it somewhere, or give it a foundation to rest on. If it lies on "
            "something, less may do: px.settle(world, tolerance=1e-3)"
        )

    def stop(self) -> None:
        """Be at rest in the present shape."""
        self.particles.v.zero_()

    @property
    def u(self) -> Floats:
        """Displacements [units], shape (n, 3)."""
        return np.array(self.particles.u.numpy())

    @property
    def v(self) -> Floats:
        """Velocities [units/s], shape (n, 3)."""
        return np.array(self.particles.v.numpy())

    @property
    def rest(self) -> Floats:
        """u₀: displacements of the places they are pulled to, which plasticity moves [units], shape (n, 3)."""
        return self.rests()[0]

    def rests(self) -> tuple[Floats, Floats]:
        """u₀ (n, 3), and how many times stiffer the pull to it is than the foundation, (n,)."""
        if not self._plastic:
            return np.zeros((self._count, 3)), np.ones(self._count)
        return rests_of(self.particles, self._count, self.device)

    def shown(self) -> tuple[wp.array, Floats]:
        """u about an even displacement, on the device in single precision, (n,) of vec3; and that even one, (3,)."""
        u = self.particles.u
        dev.launch(show, self._count, [u, self._shown], self.device)
        return self._shown, np.array(u[:1].numpy()[0])

    def top_speed(self) -> float:
        """Of the fastest particle [units/s]."""
        inputs = [self._count, self.particles.v, self._fastest]
        dev.launch(find_fastest, len(self._fastest), inputs, self.device)
        return float(self._fastest.numpy().max())

    def left_over(self) -> float:
        """Force on particles that links left unbalanced in the last step, over what they pull with."""
        if self._tension is None:
            return 0.0
        if self._landing is not None:
            assert self._equilibrium is not None
            return self._equilibrium.missing
        return self._tension.left_over(self.particles.pull)

    def top_acceleration(self) -> float:
        """Of the particle that forces, and what it is drawn to, push most [units/s²]; links and foundation left out."""
        given = np.sqrt(np.einsum("na,na->n", self._force.host, self._force.host))
        drawn = self._pressures.host.sum() * self.sheet.areas
        return float(((given + drawn) / self._mass).max())

    def energies(self) -> tuple[float, float]:
        """Elastic (of foundation, links and filling) and kinetic energy [J]."""
        p = self.particles
        u, v = p.u.numpy(), p.v.numpy()
        rest, steeper = self.rests()
        foundation = self.mixture.number("foundation") * self.sheet.areas * self.unit**2 * steeper
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
        if self.sheet.closed:
            assert self.sheet.faces is not None
            return abs(enclosed(self.sheet.X + self.u, self.sheet.faces)) * self.unit**3
        return float(self.mixture.number("thickness") @ self.sheet.areas) * self.unit**2

    def state(self) -> dict[str, NDArray[Any]]:
        """All that a checkpoint must keep."""
        kept = {name: np.array(getattr(self.particles, name).numpy()) for name in ("u", "v", "peak", "pull", "pressed")}
        if self._equilibrium is not None:
            kept["tensions"], kept["friction"] = self._equilibrium.tensions.copy(), self._equilibrium.friction.copy()
        return {name: values for name, values in kept.items() if len(values)}

    def restore(self, state: dict[str, NDArray[Any]]) -> None:
        """Take over what `state` gave."""
        for name, values in state.items():
            if name in ("tensions", "friction"):
                setattr(self._equilibrium, name, values)
                continue
            self._make_room(name)
            getattr(self.particles, name).assign(values)
        self._program = None  # paces follow from peaks
