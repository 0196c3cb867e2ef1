"""The phyxel model (M04): point masses with elastic forces, moved by leap-frog with a computed stable step.

All phyxel bodies share one set of arrays; a body is a range of it. Each body computes in units of its own mean node
spacing, about an origin that its `Body` keeps in double. What phyxels are made of (`matter`), what varies while they
move (`now`) and what acts from outside (`outside`) are apart; a checkpoint is `now`, and shapes not of birth.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import warp as wp
from numpy.typing import NDArray

from phyxel import device as dev
from phyxel.contact.colliders import Collider, Ground
from phyxel.contact.table import ColliderTable, carry_colliders
from phyxel.device import Launch, Program, Shared
from phyxel.material import Mixture
from phyxel.mls.neighbours import PairList
from phyxel.models.phyxel.contact.guests import GuestContacts, Guests
from phyxel.models.phyxel.forces import Forces
from phyxel.models.phyxel.implicit import Implicit
from phyxel.models.phyxel.leapfrog import DRIFT, Halfway, longest_step, move, shift_bodies
from phyxel.models.phyxel.matter import Materials, Matter, Outside, PhyxelPart, PhyxelState, assign, kept
from phyxel.models.phyxel.melt import Melt
from phyxel.models.phyxel.vibration import Vibration
from phyxel.models.reductions import CHUNK, find_fastest
from phyxel.state import State

if TYPE_CHECKING:
    from phyxel.models.phyxel.contact.impulses import BodyContact

Floats = NDArray[np.floating]

FARTHEST_MOVE = 0.5
"""No phyxel moves farther than this share of the node spacing in one step."""


class PhyxelModel:
    """The phyxels of all bodies. `real` is the precision of a step; tests also run it in double."""

    def __init__(self, parts: Sequence[PhyxelPart], device: wp.Device, real: Any = wp.float32) -> None:
        self.device, self.real = device, real
        counts = [len(part.positions) for part in parts]
        self.ranges = list(itertools.pairwise(np.cumsum([0, *counts]).tolist()))
        self.units = [part.unit for part in parts]
        self.matter = Matter.made(parts, real, device)
        self.materials = Materials(self.matter, parts)
        self.now = PhyxelState.at_rest(np.concatenate([part.velocities for part in parts]), self.matter)
        self.forces = Forces.over(self.matter, self.now)
        n, vector = len(self), self.matter.X.dtype
        self._acceleration, self._extra, self._hold_velocity = (
            Shared(count, vector, device) for count in (len(parts), 0, 1)
        )
        self._hold = wp.full(n, value=-1, dtype=wp.int32, device=device)
        self._colliders = ColliderTable(self.units, real, device)
        self._collider_speed = 0.0
        self.contact: BodyContact | None = None
        """between bodies, and of a body with itself"""
        self.guests: Guests | None = None
        """bodies of other models, once some have been met"""
        self.melt: Melt | None = None
        self.reshaped = self.relaid = False
        """whether any reference shape is not that of birth; and neighbours not those of it: cracks have parted some"""
        self.vibration = Vibration(self)
        self._implicit: Implicit | None = None
        self._programs: dict[str, Program] = {}
        self._clock = Shared(3, real, device)
        self._y = wp.zeros(n, dtype=vector, device=device)
        self._speeds, self._stiffening = (Shared((n + CHUNK - 1) // CHUNK, wp.float64, device) for _ in range(2))
        self.halfway = Halfway(self.now.v)
        self._owed = 0.0
        """time by which velocities are behind the positions [s]"""
        self._forces_known = False
        self._fastest: float | None = None
        """as last surveyed, until something moves"""

    def __len__(self) -> int:
        return len(self.matter.X)

    @property
    def u(self) -> wp.array:
        return self.now.u

    @property
    def v(self) -> wp.array:
        return self.now.v

    @property
    def outside(self) -> Outside:
        """What acts on phyxels from outside, as of now."""
        return Outside(self._acceleration.array, self._extra.array, self._hold, self._hold_velocity.array)

    @property
    def colliders(self) -> Any:
        return self._colliders.table

    # What the world sets

    def set_material(self, body: int, mixture: Mixture, rotation: NDArray[np.float64]) -> None:
        """Give the phyxels of one body their laws and masses."""
        if self.materials.set(body, mixture, rotation, self.units[body]):
            self.forces.know_bends(self.materials.yields)
            self.outdate_programs()
        elif self._implicit is not None:
            self._implicit.outdate_blocks()
        self._outdate()

    def set_acceleration(self, body: int, acceleration: Floats) -> None:
        """Gravity and pushes on a body, in its units [1/s²]."""
        self._acceleration.host[body] = acceleration
        self._acceleration.push()

    def set_extra(self, extra: Floats) -> None:
        """What fields add to the acceleration of every phyxel, in its body's units [1/s²], shape (n, 3); or nothing,
        shape (0, 3)."""
        if len(extra) != len(self._extra.host):
            self._extra = Shared(len(extra), self.matter.X.dtype, self.device)
            self.outdate_programs()
        if len(extra):
            self._extra.host[:] = extra
            self._extra.push()

    def set_holds(self, hold: NDArray[np.integer], slots: int) -> None:
        """Which hold each phyxel follows (-1: none), shape (n,)."""
        self._hold.assign(hold.astype(np.int32))
        if slots > len(self._hold_velocity.host):
            self._hold_velocity = Shared(2 * slots, self.matter.X.dtype, self.device)
            self.outdate_programs()

    def set_hold_velocities(self, velocities: Floats) -> None:
        """How fast each hold moves, in units of the held body [1/s], shape (slots, 3)."""
        self._hold_velocity.host[: len(velocities)] = velocities
        self._hold_velocity.push()

    def meet(
        self,
        colliders: Sequence[Ground | Collider],
        origins: NDArray[np.float64],
        span: tuple[float, float] = (0.0, 0.0),
        at: float = 0.0,
        speed: float = 0.0,
    ) -> None:
        """Colliders as they are at the time `at` [s] and move over a span of time, for bodies with these origins [m],
        shape (bodies, 3). `speed` [m/s] is the fastest they get in the steps to come."""
        self._collider_speed = speed / min(self.units)
        gone = any(all(one is not other for other in colliders) for one in self._colliders.met)
        if self._colliders.write(colliders, origins, span, at):
            self.outdate_programs()
        if gone and self._implicit is not None:
            self._implicit.forget_contacts()

    def _outdate(self) -> None:
        """Laws or neighbours have changed: forces and frequency are to be found anew."""
        self.shape_changed()
        self.vibration.omega = 0.0
        if self.melt is not None:
            self.melt.outdate()

    def set_contact(self, contact: BodyContact) -> None:
        """How bodies meet each other from now on."""
        self.contact = contact
        if self._implicit is not None:
            self._implicit.forget_springs()
        self.outdate_programs()

    def set_guests(self, contacts: GuestContacts | None) -> Guests:
        """What bodies meet of those of other models in the steps to come; these book what they do."""
        if self.guests is None:
            self.guests = Guests(self)
        self.guests.meet(contacts)
        return self.guests

    def outdate_programs(self) -> None:
        """Arrays that launches work with are elsewhere in memory, or other launches are needed."""
        self._programs.clear()
        if self._implicit is not None:
            self._implicit.outdate()

    # Changing shape for good

    def lay_out(self, pairs: PairList, nodes: NDArray[np.integer], room: int) -> None:
        """Other neighbours: those of `nodes` may come to have `room` of them."""
        rooms = np.zeros(len(self), np.int64)
        rooms[nodes] = room
        self.matter.lay_out(pairs, rooms)
        self.outdate_programs()
        self._outdate()

    def shape_changed(self) -> None:
        """The reference shape has changed, and with it the forces."""
        self._forces_known, self._fastest = False, None
        if self._implicit is not None:
            self._implicit.carried.forget()

    def take_over(self, sources: Sequence[tuple[PhyxelModel, NDArray[np.integer]]]) -> None:
        """Go on where others are: the first phyxels are those of each of these models with these numbers, (m,)."""
        self.relaid = any(old.relaid for old, _ in sources)
        self.reshaped = any(old.reshaped for old, _ in sources)
        if self.reshaped:
            known = PairList.joined([old.matter.near.pairs().taken(nodes) for old, nodes in sources])
            pairs = self.matter.near.pairs().replaced(np.arange(len(known.count)), known)
            self._copy_first(sources)
            self.lay_out(pairs, np.arange(0), 0)
        self._copy_first(sources)
        self.forces.know_bends(self.materials.yields)
        self.outdate_programs()
        self.shape_changed()

    def _copy_first(self, sources: Sequence[tuple[PhyxelModel, NDArray[np.integer]]]) -> None:
        first = 0
        for old, nodes in sources:
            known = old._state_arrays()
            for name, array in self._state_arrays().items():
                if name in known:
                    dev.write(array, first, known[name].numpy()[nodes])
            first += len(nodes)

    def set_melt(self, bodies: list[int]) -> None:
        """Bodies with melted parts, and what they have flowed together with."""
        self.melt = Melt(self, bodies) if bodies else None
        self.outdate_programs()

    # Stepping

    def _launches(self) -> dict[str, list[Launch]]:
        n, clock, now, forces = len(self), self._clock.array, self.now, self.forces
        more = {"colliders": self.colliders, "clock": clock, "y": self._y}
        moving = [dev.over(move, n, self.matter, self.outside, now, **more)]
        carried = Launch(carry_colliders, self._colliders.rows, [self.colliders, clock, DRIFT])
        carrying = [carried] * self._colliders.moves
        touching = self.contact.launches(clock, DRIFT, self._y) if self.contact is not None else []
        meeting = {"": [], "touching ": touching}
        if self.guests is not None:
            received = self.guests.launches(clock, self._y)
            meeting |= {"receiving ": received, "touching receiving ": touching + received}
        elastic = forces.elastic(now.u, now.force)
        inner = forces.damped(now.u, self._y, now.force) if self.materials.most_damping > 0 else elastic
        pressure = [] if self.melt is None else self.melt.launches()
        inner = inner + pressure + forces.flowing(self.materials, clock, DRIFT)
        return {
            "force": elastic + pressure,
            **{f"{name}move": moving + met for name, met in meeting.items()},
            **{f"{name}substep": carrying + moving + met + inner for name, met in meeting.items()},
            "survey": [
                Launch(find_fastest, len(self._speeds.host), [n, now.v, self._speeds.array], work=CHUNK // 8),
                forces.stiffening(self._stiffening.array),
            ],
            **self.vibration.launches(),
        }

    def run(self, name: str, times: int = 1) -> None:
        """Run one of the model's programs."""
        if not self._programs:
            launches = self._launches()
            # Also what runs only now and then: a kernel that comes later would have its module compiled again.
            rare = [
                *self.forces.energy(self.u, self.matter.mass),
                self.forces.stress(self.now.gradient),
                Launch(shift_bodies, len(self), [self.matter.body, self.u, self.u]),
                self.forces.fade(self._clock.array, DRIFT),
                *self.forces.flow(self._clock.array, DRIFT),
            ]
            dev.prepare([*rare, *(item for items in launches.values() for item in items)], self.device)
            self._programs = {key: Program(items, self.device) for key, items in launches.items()}
        self._programs[name].run(times)

    def _set_clock(self, kick: float, drift: float, drag: float) -> None:
        self._clock.host[:] = (kick, drift, drag)
        self._clock.push()

    def stable_step(self) -> float:
        """That of `leapfrog.longest_step` [s]; less where a phyxel would move half a spacing (physics 5.2).

        ω comes from above: that at rest times the root of the largest stiffening. A power iteration at every frame
        would cost more and come from below: warm from the frame before, it stays in the corner that was stiffest then
        and does not see another one being crushed.
        """
        self.ensure_forces()
        at_rest = self.vibration.at_rest() if self.melt is None else self.melt.rest_omega
        step = longest_step(at_rest * self.stiffened(), self.materials.most_drag, self.materials.most_damping)
        return min(step, self.crossing_time())

    def stiffened(self) -> float:
        """How much faster than at rest phyxels can vibrate, at most."""
        self.fastest()
        return float(np.sqrt(max(self._stiffening.pull().max(), 1.0)))

    def crossing_time(self) -> float:
        """Longest step in which no phyxel comes half a spacing nearer to a collider, both moving [s]."""
        speed = self.fastest() + self._collider_speed
        return FARTHEST_MOVE / speed if speed > 0 else math.inf

    def fastest(self) -> float:
        """Largest speed of a phyxel, in spacings per second; NaN if any is none."""
        if self._fastest is None:
            self.run("survey")
            self._fastest = float(self._speeds.pull().max())
        return self._fastest

    def ensure_forces(self) -> None:
        """Forces and gradients belong to the displacements."""
        if not self._forces_known:
            self.run("force")
            self._forces_known, self._fastest = True, None

    @property
    def _meeting(self) -> str:
        """How programs are called that see to contact."""
        touching = self.contact is not None and self.contact.possible
        receiving = self.guests is not None and self.guests.there
        return "touching " * touching + "receiving " * receiving

    def step(self, dt: float, substeps: int, extra_drag: float = 0.0) -> None:
        """Take substeps of dt. Velocities are half a step behind then, until `synchronise`; other steps may follow."""
        self.ensure_forces()
        self.vibration.begin_step()
        self._fastest = None
        first_kick = self._owed + 0.5 * dt
        if first_kick != dt:
            self._set_clock(first_kick, dt, extra_drag)
            self.run(self._meeting + "substep")
            substeps -= 1
        if substeps:
            self._set_clock(dt, dt, extra_drag)
            self.run(self._meeting + "substep", substeps)
        self._owed = 0.5 * dt

    def step_implicitly(self, dt: float, substeps: int) -> None:
        """Take implicit steps of dt; velocities are those of the positions."""
        for _ in range(substeps):
            self.about_to_move().step(dt)

    def about_to_move(self) -> Implicit:
        """The implicit integrator, to be used at once."""
        self.vibration.begin_step()
        self.synchronise()
        self._forces_known, self._fastest = False, None
        return self.implicit

    @property
    def implicit(self) -> Implicit:
        """The implicit integrator, made when first needed."""
        if self._implicit is None:
            self._implicit = Implicit(self)
        return self._implicit

    def synchronise(self, extra_drag: float = 0.0) -> None:
        """Bring velocities to the time of the positions: the half kick that `step` still owes."""
        if self._owed:
            self._fastest = None
            self._set_clock(self._owed, 0.0, extra_drag)
            with self.halfway:
                self.run(self._meeting + "move")
            self._owed = 0.0

    def stop(self, bodies: list[int] | None = None) -> None:
        """Set all velocities to zero, or those of some bodies."""
        for low, high in self.ranges if bodies is None else [self.ranges[body] for body in bodies]:
            dev.write(self.v, low, np.zeros((high - low, 3)))
        self._fastest = None

    def forget_contacts(self) -> None:
        """What was touched until now is elsewhere; forces are those of bodies as they are, not as they moved."""
        self._forces_known = False
        if self._implicit is not None:
            self._implicit.forget_contacts()
            self._implicit.carried.forget()

    def recentre(self, bodies: list[int], amount: Floats) -> None:
        """u ← u − amount for bodies whose origin moves by as much."""
        amounts = np.zeros((len(self.ranges), 3))
        amounts[bodies] = amount
        shift = wp.array(amounts, dtype=self.matter.X.dtype, device=self.device)
        dev.launch(shift_bodies, len(self), [self.matter.body, shift, self.u], self.device, split=False)

    # Reading

    def measure(self) -> tuple[Floats, Floats]:
        """Elastic energy [Pa·spacing³] and volume over that at rest of every phyxel, each of shape (n,)."""
        self.ensure_forces()
        energy = wp.zeros(len(self), dtype=self.real, device=self.device)
        self._launch(*self.forces.energy(self.u, energy))
        J = self.now.gradient.numpy().astype(np.float64) + np.eye(3)
        stored, ratio = energy.numpy().astype(np.float64), self.now.swell.numpy() * np.linalg.det(J)
        if self.melt is not None:
            crowding, laws = np.maximum(self.melt.crowding.numpy(), 1.0), self.matter.laws
            bulk = laws.bulk.numpy().astype(np.float64)[laws.of.numpy()]
            stored += 0.5 * bulk * self.now.rest_volume.numpy() * (crowding - 1) ** 2
            ratio /= crowding
        return stored, ratio

    def stress(self) -> Floats:
        """Cauchy stress [Pa], shape (n, 3, 3)."""
        self.ensure_forces()
        stress = wp.zeros(len(self), dtype=self.now.gradient.dtype, device=self.device)
        self._launch(self.forces.stress(stress))
        pressure = 0.0 if self.melt is None else self.melt.hydrostatic()[:, None, None] * np.eye(3)
        return stress.numpy() * (self.matter.volume.numpy() > 0)[:, None, None] - pressure

    def _launch(self, *items: Launch) -> None:
        for item in items:
            dev.launch(item.kernel, item.count, item.inputs, self.device)

    # Checkpoints

    def state(self) -> State:
        """Everything that varies, so that a restored run goes on with the same bits."""
        state = kept(self._state_arrays()) | {
            "forces_known": np.array(self._forces_known),
            "rest_omega": self.vibration.numbers,
            "changed": np.array([self.reshaped, self.relaid]),
        }
        if self.reshaped or self.relaid:
            pairs = self.matter.near.pairs()
            state |= {"pairs.count": pairs.count, "pairs.index": pairs.index}
        if self.melt is not None:
            state["melt"] = self.melt.numbers
        return state

    def restore(self, state: State) -> None:
        """Take over what `state` gave."""
        self._implicit = self.implicit if "contact" in state else None
        self.reshaped, self.relaid = state["changed"].tolist()
        assign(self._state_arrays(), state)
        if self.reshaped or self.relaid:
            pairs = PairList(state["pairs.count"], state["pairs.index"])
            if self.melt is None:
                self.lay_out(pairs, np.arange(0), 0)
            else:
                self.melt.restore(pairs, state["melt"])
            assign(self._state_arrays(), state)  # what was made anew for these neighbours
        self.forces.know_bends(self.materials.yields)
        self.outdate_programs()
        self.vibration.numbers = state["rest_omega"]
        self._forces_known, self._fastest = bool(state["forces_known"]), None

    def _state_arrays(self) -> dict[str, wp.array]:
        return {
            **self.now.arrays,
            **self.halfway.arrays,
            **({} if self._implicit is None else self._implicit.state),
            **({} if self.melt is None else {"crowding": self.melt.crowding}),
            **(self.matter.shape if self.reshaped or self.relaid else {}),
        }
