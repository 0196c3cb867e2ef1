"""The world: bodies, colliders, fields, gravity and the clock."""

from __future__ import annotations

import hashlib
import math
import os
import zipfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from phyxel import device as dev
from phyxel.body import DRAG_TIME, Body
from phyxel.contact.bodies import BodyContact
from phyxel.contact.colliders import Collider, Ground
from phyxel.contact.table import measured, top_speed
from phyxel.errors import BlowUpError, CheckpointError, PhyxelError
from phyxel.fields import ForceField
from phyxel.files import whole_file
from phyxel.material import Mixture
from phyxel.models.phyxel import PhyxelModel
from phyxel.pool import Pool, is_fluid, under
from phyxel.region import Vector, as_vector
from phyxel.surface.surfels import Surfels

Floats = NDArray[np.float64]

CHECKPOINT_FORMAT = 3
FARTHEST_FROM_ORIGIN = 16.0
"""A body that has moved this many spacings gets a new origin, so that displacements keep their digits."""
MOST_STEPS_AT_ONCE = 10
"""Substeps after which the stable step is found anew: a body that is crushed stiffens within milliseconds."""
LONGEST_UNASKED = 0.002
"""Time of explicit substeps after which fields are asked anew, if one substep is not longer [s]."""
LONGEST_IMPLICIT = 0.01
"""Longest implicit step [s]."""
MOST_EXPLICIT = 500
"""Leap-frog steps in a sixtieth of a second, at rest, above which a world is moved implicitly unless told otherwise."""
SMALLEST_STEP, LARGEST_STEP = 0.7, 1.05
"""Size of a step over the stability limit between which it is kept."""
ROOM_TO_SHRINK = 0.9
"""Size over the limit that is chosen when the old one no longer fits."""
HOPELESS = 1e-4
"""Step over the period of the fastest vibration below which something is going wrong."""
SETTLING_STEPS = 50
"""Steps between two looks at how fast a settling world still moves."""
STEPS_BETWEEN_CHECKS = 100
"""Substeps after which the energy is looked at."""


@dataclass(frozen=True)
class Frame:
    """A moment of `World.play`."""

    index: int
    time: float
    bodies: Sequence[Body]


class World:
    """Owns the clock: asks for the stable step and moves all bodies together."""

    def __init__(self, gravity: Sequence[float] = (0.0, -9.81, 0.0), device: str | None = None) -> None:
        self._ceilings: dict[Body, float] = {}
        self.gravity = gravity
        self._first_gravity = self._gravity
        self.device = dev.pick(device)
        self.bodies: list[Body] = []
        self.colliders: list[Ground | Collider] = []
        self.fields: list[ForceField] = []
        self.time = 0.0
        self.revision = 0
        """counts changes of the bodies' shape, so that surfaces know when to follow"""
        self._events: list[tuple[float, Callable[[World], None]]] = []
        self._next_event = 0
        self._model: PhyxelModel | None = None
        self.pool = Pool(self)
        """what has melted"""
        self._parties: set[frozenset[Body]] = set()
        """bodies that could touch between the last two looks at the energy"""
        self._steps_since_check = 0
        self._collider_speed = 0.0
        """the fastest a collider gets in the time that is being stepped over [m/s]"""
        self._span = (0.0, 0.0)
        """the time over which colliders move as last written [s]"""
        self._integrator: str | None = None
        self._arrived: list[Body] = []
        """bodies that have not moved since they, or a collider, came"""
        self._step = 0.0
        """size of a step as last chosen [s]; 0: none yet"""
        self.steps = 0
        """substeps taken so far"""

    # Building

    @property
    def gravity(self) -> Floats:
        """[m/s²], shape (3,); assign another at any time."""
        return self._gravity

    @gravity.setter
    def gravity(self, gravity: Vector) -> None:
        self._gravity = as_vector("gravity", gravity, "m/s²")
        self._gravity.setflags(write=False)  # the blow-up check must hear of a change
        self._ceilings.clear()

    def add(self, thing: Body | Ground | Collider | ForceField) -> None:
        """Put a body, a collider or a field into the world; also while it runs."""
        if isinstance(thing, Ground | Collider):
            if not math.isfinite(thing.extent):
                raise PhyxelError(f"world.add({thing!r}): a collider has an end on every side; only regions are open")
            self.colliders.append(thing)
            self._surroundings_changed()
            self._arrived = list(self.bodies)
        elif isinstance(thing, Body):
            self._add_body(thing)
        elif isinstance(thing, ForceField):
            self._add_field(thing)
        else:
            raise PhyxelError(f"world.add({thing!r}): give a Body, a collider such as Ground or a field such as Wind")

    def remove(self, thing: Ground | Collider | ForceField) -> None:
        """Take a collider or a field out of the world; also while it runs."""
        kept: list[Any] = self.fields if isinstance(thing, ForceField) else self.colliders
        if thing not in kept:
            raise PhyxelError(f"world.remove({thing!r}): it is not in this world; give a collider or a field that is")
        kept.remove(thing)
        self._surroundings_changed()

    def _surroundings_changed(self) -> None:
        """Surfaces keep out of the colliders that are there now, also before the next step."""
        self._ceilings.clear()
        if self._model is not None:
            self._write_surroundings()
            self.revision += 1

    def _add_field(self, field: ForceField) -> None:
        if field in self.fields:
            raise PhyxelError(f"{field.label}: this field is in the world already")
        field.check_bodies(self.bodies)
        self.fields.append(field)
        self._ceilings.clear()

    def _add_body(self, body: Body) -> None:
        if body._world is not None:
            raise PhyxelError(f"{body.name}: this body is in a world already")
        names = {other.name for other in self.bodies}
        if body.name in names:
            body.name = next(name for k in range(2, 10**6) if (name := f"{body.name}-{k}") not in names)
        body._world = self
        self.bodies.append(body)
        self._arrived.append(body)
        self._integrator = None
        if self._model is not None:
            old, self._model = self._model, None
            self.model.take_over(old)
            self.pool.set_melt()
            self.revision += 1

    @property
    def model(self) -> PhyxelModel:
        """The model that moves the bodies, made when first needed."""
        if self._model is None:
            if not self.bodies:
                raise PhyxelError("the world has no body; call world.add(body) first")
            self._model = PhyxelModel([body.part() for body in self.bodies], self.device)
            for index, body in enumerate(self.bodies):
                self._model.set_material(index, body.mixture, body.rotation)
            self.renew_contact()
            self._write_holds()
            for body in self.bodies:
                self.pool.take_in(body)
            dev.trim_memory()
        return self._model

    def at(self, time: float, action: Callable[[World], None]) -> None:
        """Call `action(world)` when the clock reaches `time` [s]."""
        if not math.isfinite(time) or time < self.time:
            raise PhyxelError(f"world.at({time}): it is {self.time:g} s already; give a later time")
        self._events.append((time, action))
        pending = sorted(self._events[self._next_event :], key=lambda event: event[0])
        self._events[self._next_event :] = pending

    # What bodies report

    def material_changed(self, body: Body, before: Mixture) -> None:
        """A body got another material."""
        self._ceilings.clear()
        self._integrator = None
        self.model.set_material(self.bodies.index(body), body.mixture, body.rotation)
        self.pool.material_changed(body, before)
        self.revision += 1

    def anchors_changed(self) -> None:
        """Bodies are counted from elsewhere."""
        self._write_surroundings()

    def renew_contact(self) -> None:
        """Other bodies than before meet each other, or otherwise."""
        model = self.model
        model.set_contact(BodyContact(model, tuple(self.bodies), self.pool.bodies, self.pool.flows))

    def energy_changed(self, body: Body) -> None:
        """Something from outside may have done work on a body."""
        self._ceilings.pop(body, None)

    def holds_changed(self, body: Body) -> None:
        """A body was taken hold of, or let go."""
        self._ceilings.pop(body, None)
        if self._model is not None:
            self._write_holds()

    def _handles(self) -> list[Any]:
        return [handle for body in self.bodies for handle in body.handles]

    def _write_holds(self) -> None:
        assert self._model is not None
        hold = np.full(len(self._model), -1)
        for slot, handle in enumerate(self._handles()):
            low, _ = self._model.ranges[self.bodies.index(handle.body)]
            hold[low + handle.nodes] = slot
        self._model.set_holds(hold, len(self._handles()))

    # Stepping

    def advance(self, dt: float) -> None:
        """Go on by `dt` [s], in as many stable steps as it takes; events happen at their time."""
        if not (math.isfinite(dt) and dt >= 0):
            raise PhyxelError(f"world.advance({dt}): give a time of 0 s or more")
        end = self.time + dt
        tiny = 1e-9 * max(dt, 1e-6)
        while self._next_event < len(self._events) and self._events[self._next_event][0] <= end + tiny:
            time, action = self._events[self._next_event]
            self._advance_quietly(max(time - self.time, 0.0))
            self._next_event += 1
            self._set_clock(time)
            action(self)
        self._advance_quietly(end - self.time)
        self._set_clock(end)

    def _set_clock(self, time: float) -> None:
        """The time to the bit, with what depends on it alone: a resumed run must find the same."""
        self.time = time
        if self._model is not None:
            self._move_colliders((time, time), time)
        self._follow_ramps()

    def _advance_quietly(self, dt: float) -> None:
        if dt <= 0 or not self.bodies:
            self.time += max(dt, 0.0)
            return
        self._set_down()
        start, left = self.time, dt
        followed = any(handle.follows for handle in self._handles())
        self._collider_speed = max((top_speed(one, start, start + dt) for one in self._solid_colliders()), default=0.0)
        self._write_surroundings()
        while left > 0:
            implicit = self.integrator == "implicit"
            most = 1 if implicit or followed else MOST_STEPS_AT_ONCE
            longest = self.contact.longest_step()
            substeps = self._implicit_substeps(left, longest) if implicit else self._stable_substeps(left, longest)
            if self.fields:
                most = min(most, max(1, round(LONGEST_UNASKED * substeps / left)))
            if self.pool.flows:
                most = min(most, self.model.steps_until_flowed(left / substeps))
            now = self.contact.prepare(left / substeps, min(substeps, most))
            before = self.time
            step, left = left / substeps, left * (substeps - now) / substeps
            self._write_fields(0.5 * (now - 1) * step)
            self.time = start + dt - left
            self._move_colliders((before, self.time), self.time if implicit else before)
            self._move_holds(self.time, now * step)
            (self.model.step_implicitly if implicit else self.model.step)(step, now)
            self.pool.refresh()
            self._recentre()
            self._steps_since_check += now
            self.steps += now
            if self._follow_ramps():
                self._write_surroundings()
        self._collider_speed = 0.0
        self.model.synchronise()
        self.revision += 1
        self._check_for_blow_up()

    @property
    def integrator(self) -> str:
        """ "leapfrog" or "implicit", for all bodies: what a body asks for; else implicit if leap-frog would need more
        than some hundred steps for a sixtieth of a second."""
        if self._integrator is None:
            asked = {body.integrator for body in self.bodies} - {None}
            if self.pool.flows:
                asked = {"leapfrog"}  # neighbours change, and pressure is stiff
            if not asked:
                steps = 1 / 60 / self.model.stable_step()
                asked = {"implicit" if steps > MOST_EXPLICIT else "leapfrog"}
            self._integrator = "implicit" if "implicit" in asked else "leapfrog"
        return self._integrator

    def _set_down(self) -> None:
        """Raise free bodies that start in the ground until they stand on it, also in one that comes later. Scans have
        their origin anywhere, and what starts in the ground would be shot out of it. The reference shape stays where it
        was given."""
        for body in self._arrived:
            for ground in self.colliders:
                if not isinstance(ground, Ground):
                    continue
                up = np.array(ground.normal)
                depth = ground.height - self._lowest(body, up)
                if depth > 0 and not body.handles:
                    body.origin = body.origin + depth * up
                    self.contact.outdate()
                    self.revision += 1
            self._refuse_overlap(body)
        self._arrived.clear()

    def _lowest(self, body: Body, up: Floats) -> float:
        """How far down a body reaches [m]: its cloud before it moves, its nodes with their balls afterwards."""
        if self.time == 0:
            return float((body.placed_cloud() @ up).min() + (body.origin - body.centre) @ up)
        low, high = self.model.ranges[self.bodies.index(body)]
        balls = np.minimum(np.abs(self.model.reach.numpy()[low:high]), 0.5) * body.unit
        return float((body.positions @ up - balls).min())

    def _refuse_overlap(self, body: Body) -> None:
        """What starts deep in a collider would be shot out of it."""
        for collider in self._solid_colliders():
            place, rotation = collider.pose(self.time)
            depth = -float(measured(collider, (body.positions - place) @ rotation, self.device)[0].min())
            if depth > body.unit:
                raise PhyxelError(f"{body.name}: starts {depth:.3g} m inside the {collider.label}; move one of them")

    @property
    def contact(self) -> BodyContact:
        """Contact between the bodies, and of each with itself."""
        assert self.model.contact is not None
        return self.model.contact

    def _stable_substeps(self, dt: float, longest: float) -> int:
        """How many stable steps make up dt.

        The size of a step is kept while it is about right: leap-frog keeps the energy only while its step stays the
        same, and a size that follows every breath of the stability limit pumps energy into the motion.
        """
        # What is many times faster than sound, which crosses a spacing in 1/ω, is blowing up: steps need not follow it.
        longest = max(longest, 1 / (16 * self.model.rest_frequency()))
        limit = min(self.model.stable_step(), longest)
        if not (math.isfinite(limit) and limit > 0):
            self._blow_up_where_not_finite()
        self._refuse_hopeless(limit)
        steps = max(1, round(dt / self._step)) if self._step else 0
        if steps == 0 or not SMALLEST_STEP * limit <= dt / steps <= LARGEST_STEP * limit:
            room = 1.0 if self._step == 0 else ROOM_TO_SHRINK
            steps = max(1, math.ceil(dt / (room * limit) * (1 - 1e-12)))
            self._step = dt / steps
        return steps

    def _implicit_substeps(self, dt: float, longest: float) -> int:
        """How many implicit steps make up dt. Only the ground has no far side that one could come out of."""
        crossing = self.model.crossing_time() if self._solid_colliders() else math.inf
        step = min(LONGEST_IMPLICIT, longest, crossing)
        self._refuse_hopeless(step)
        return math.ceil(dt / step * (1 - 1e-9))

    def _refuse_hopeless(self, step: float) -> None:
        """Stop where steps have become so short [s] that the end would never be reached."""
        if step * self.model.rest_frequency() < HOPELESS:
            fastest = max(self.bodies, key=lambda body: np.abs(body.velocities).max())
            raise BlowUpError(self._blow_up_text(fastest.name, "it is crushed or flung apart"))

    def _solid_colliders(self) -> list[Collider]:
        return [one for one in self.colliders if isinstance(one, Collider)]

    def _write_surroundings(self) -> None:
        """Pushes on the bodies, and the colliders as they are now."""
        model = self.model
        for b, body in enumerate(self.bodies):
            push = self._gravity + body.force / float(body.masses.sum())
            model.set_acceleration(b, push / body.unit)
        self._span = (self.time, self.time)
        self._place_colliders(self.time)
        self.contact.place()

    def _place_colliders(self, at: float) -> None:
        origins = np.array([body.origin for body in self.bodies])
        self.model.meet(self.colliders, origins, self._span, at, self._collider_speed)

    def _move_colliders(self, span: tuple[float, float], at: float) -> None:
        """Colliders that move go on over a span of time; they stand where they are at the time `at` [s]."""
        if any(one.moves for one in self.colliders):
            self._span = span
            self._place_colliders(at)
            self._ceilings.clear()

    def _write_fields(self, ahead: float) -> None:
        """Accelerations by the fields, as they will be a little ahead [s]: in the middle of the kicks they are for, or
        they would lag and drive what circles a centre outward."""
        model = self.model
        extra = np.zeros((len(model) if self.fields else 0, 3))
        for body, (low, high) in zip(self.bodies, model.ranges, strict=True):
            fields = [field for field in self.fields if field.acts_on(body)]
            if fields:
                velocities = body.velocities
                positions, time = body.positions + ahead * velocities, self.time + ahead
                acting = [field.acceleration(body, positions, velocities, time) for field in fields]
                extra[low:high] = np.sum(acting, axis=0) / body.unit
        model.set_extra(extra)

    def _follow_ramps(self) -> bool:
        """Give bodies on their way to another material what they are made of now; whether any changed."""
        changed = [body.follow_ramp(self.time) for body in self.bodies]
        return any(changed)

    def _move_holds(self, time: float, duration: float) -> None:
        """Set hold velocities so that every hold is where it should be at `time`."""
        velocities = []
        for handle in self._handles():
            goal = handle.to(time)
            way = goal - handle.moved
            velocities.append(way / duration / handle.body.unit)
            handle.moved = goal
            if way.any():
                self._ceilings.pop(handle.body, None)
        self.model.set_hold_velocities(np.array(velocities).reshape(-1, 3))

    def _recentre(self) -> None:
        """Move the origins of bodies that have gone far, so that displacements stay small."""
        first_nodes = self.model.u.numpy()
        for anchor in {id(body.anchor): body.anchor for body in self.bodies}.values():
            bodies = [b for b, body in enumerate(self.bodies) if body.anchor is anchor]
            moved = first_nodes[self.model.ranges[bodies[0]][0]]
            if np.abs(moved).max() > FARTHEST_FROM_ORIGIN:
                shift = moved.astype(np.float64)
                self.model.recentre(bodies, shift)
                anchor.origin = anchor.origin + anchor.unit * shift
                self._place_colliders(self.time)
                self.contact.place()

    def _check_for_blow_up(self) -> None:
        if not math.isfinite(self.model.fastest()):
            self._blow_up_where_not_finite()
        if self._steps_since_check < STEPS_BETWEEN_CHECKS:
            return
        self._steps_since_check = 0
        parties = {frozenset(self.bodies[b] for b in party) for party in self.contact.parties()}
        for party in parties:
            self._check_energy(party, met_before=party in self._parties)
        self._parties = parties

    def _blow_up_where_not_finite(self) -> NoReturn:
        broken = [body.name for body in self.bodies if not np.isfinite(self.field(body, "v")).all()]
        name = broken[0] if broken else self.bodies[0].name
        raise BlowUpError(self._blow_up_text(name, "its velocities are no longer numbers"))

    def _check_energy(self, party: frozenset[Body], met_before: bool) -> None:
        """Without work from outside, kinetic + elastic + potential energy of bodies that touch can only fall."""
        if any(body.force.any() or any(field.acts_on(body) for field in self.fields) for body in party):
            return
        now = {body: body.diagnostics() for body in party}
        lively = sum(one["kinetic"] + one["elastic"] for one in now.values())
        totals = {body: one["kinetic"] + one["elastic"] + one["potential"] for body, one in now.items()}
        known = all(body in self._ceilings for body in party) and (met_before or len(party) == 1)
        if not known:
            self._ceilings.update(totals)
            return
        weight = sum(one["mass"] for one in now.values()) * float(np.linalg.norm(self.gravity))
        gains = {body: total - self._ceilings[body] for body, total in totals.items()}
        gained, most = sum(gains.values()), max(gains, key=lambda body: gains[body])
        if gained > 0.5 * lively and gained > 1e-3 * weight * most.unit:
            raise BlowUpError(self._blow_up_text(most.name, f"it gained {gained:.3g} J from nowhere"))

    def _blow_up_text(self, name: str, what: str) -> str:
        return (
            f"{name}: blew up before t = {self.time:.4g} s: {what}. "
            "Try a softer material, more damping, or gentler drags; the last good frame is kept"
        )

    def play(self, seconds: float, fps: float = 60.0) -> Iterator[Frame]:
        """Frames at 0, 1/fps, ... up to `seconds` [s] from now, both ends included."""
        if not (seconds > 0 and fps > 0 and math.isfinite(seconds) and math.isfinite(fps)):
            raise PhyxelError(f"world.play(seconds={seconds}, fps={fps}): give numbers above 0")
        start = self.time
        for index in range(round(seconds * fps) + 1):
            self.advance(max(start + index / fps - self.time, 0.0))
            yield Frame(index, self.time, tuple(self.bodies))

    # Reading, for bodies

    def field(self, body: Body, name: str) -> NDArray[np.float64]:
        """The "u", "v", "gradient", "plastic" strain or "swell" of one body's nodes, in its units."""
        model = self.model
        low, high = model.ranges[self.bodies.index(body)]
        if name == "gradient":
            model.ensure_forces()
        matter = model.matter
        arrays = {
            "X": matter.X,
            "past": matter.past,
            "u": model.u,
            "v": model.v,
            "gradient": model.forces.gradient,
            "plastic": matter.plastic,
            "swell": matter.swell,
        }
        return arrays[name].numpy()[low:high].astype(np.float64)

    def pieces(self) -> list[dict[Body, NDArray[np.int64]]]:
        """What hangs together, the heaviest first: the nodes of each body that a piece has a part of. Bodies that have
        flowed together are one piece, one that has flowed apart is several."""
        label = self.model.pieces()
        found: list[dict[Body, NDArray[np.int64]]] = [{} for _ in range(int(label.max()) + 1)]
        for body, (low, high) in zip(self.bodies, self.model.ranges, strict=True):
            for piece in np.unique(label[low:high]):
                found[piece][body] = np.flatnonzero(label[low:high] == piece)
        return sorted(found, key=lambda piece: -sum(body.masses[nodes].sum() for body, nodes in piece.items()))

    def stress_of(self, body: Body) -> NDArray[np.float64]:
        """Cauchy stress of one body's nodes [Pa], shape (n, 3, 3)."""
        low, high = self.model.ranges[self.bodies.index(body)]
        return self.model.stress()[low:high].astype(np.float64)

    def measure(self, body: Body) -> tuple[NDArray[np.floating], NDArray[np.floating]]:
        """Elastic energy and volume ratio of one body's nodes, in its units."""
        low, high = self.model.ranges[self.bodies.index(body)]
        energy, ratio = self.model.measure()
        return energy[low:high], ratio[low:high]

    def carry(self, body: Body, surfels: Surfels) -> None:
        """Move a body's surfels to where the body is."""
        self.model.ensure_forces()
        surfels.follow(self.model, self.bodies.index(body), body.unit, body.origin)
        self.pool.skins.finish(body, surfels)

    def synchronize(self) -> None:
        """Wait until the device has done all it was told to."""
        dev.synchronize(self.device)

    # Relaxing

    def settle(self, tolerance: float = 1e-6, most_steps: int = 200_000) -> None:
        """Relax to static equilibrium at this time. Ends when what is left to go is below `tolerance` spacings.

        Dynamic relaxation: leap-frog with the drag α = 2ω₀ that just stops the slowest motion, ω₀² = v·Kv / v·Mv.
        ω₀ falls at once and rises slowly, since quick ripples hide the slow motion under them.
        """
        model = self.model
        if self.pool.flows:
            molten = next(body.name for body in self.bodies if is_fluid(body))
            raise PhyxelError(f"settle: {molten} is molten and flows on; use world.advance, or solidify it first")
        self._write_surroundings()
        model.stop()
        slowest, quiet, steps = math.inf, 0, 0
        while quiet < 3:
            step = min(model.stable_step(), self.contact.longest_step())
            drag = 2 * slowest if math.isfinite(slowest) else 0.0
            self._write_fields(0.0)
            self._move_holds(self.time + DRAG_TIME, SETTLING_STEPS * step)
            left = SETTLING_STEPS
            while left > 0:
                self.contact.longest_step()
                now = self.contact.prepare(step, left)
                model.step(step, now, drag)
                left -= now
            model.synchronise(drag)
            steps += SETTLING_STEPS
            fastest = model.fastest()
            if not math.isfinite(fastest) or steps > most_steps:
                raise PhyxelError(f"settle: no rest after {steps} steps; is every body held or on the ground?")
            slowest = min(model.relaxation_frequency(), 1.02 * slowest)
            quiet = quiet + 1 if fastest <= tolerance * slowest or fastest == 0 else 0
        model.stop()
        self._ceilings.clear()
        self.revision += 1
        self._recentre()

    # Checkpoints

    def fingerprint(self) -> str:
        """What this world is built of, as a hash: a checkpoint fits only a world with the same."""
        digest = hashlib.sha256(f"{CHECKPOINT_FORMAT} {self._first_gravity.tolist()}".encode())
        for body in self.bodies:
            digest.update(body.name.encode())
            digest.update(np.ascontiguousarray(body.birth).tobytes())
            digest.update(np.ascontiguousarray(body.volumes).tobytes())
            digest.update(body.first_mixture.signature() + str(body.friction).encode())
        return digest.hexdigest()

    def _materials(self) -> list[str]:
        """What each body is made of now, as a hash."""
        return [hashlib.sha256(body.mixture.signature()).hexdigest() for body in self.bodies]

    def _surroundings(self) -> list[str]:
        """Colliders and fields that are there now: they may come and go with events."""
        return [*(one.signature() for one in self.colliders), *(field.label for field in self.fields)]

    def save(self, path: str | os.PathLike[str], note: str = "") -> None:
        """Write the state to `path` (.npz); `restore` goes on from it with the same bits. A `note` must match then."""
        handles = self._handles()
        content: dict[str, Any] = {f"model.{name}": array for name, array in self.model.state().items()}
        content |= {f"pool.{name}": array for name, array in self.pool.state().items()}
        content |= {
            "fingerprint": np.array(self.fingerprint() + note),
            "clock": np.array([self.time, self._steps_since_check, self._next_event, self._step]),
            "integrator": np.array(self._integrator or ""),
            "materials": np.array(self._materials()),
            "gravity": self._gravity,
            "surroundings": np.array(self._surroundings(), str),
            "origins": np.array([body.origin for body in self.bodies]),
            "moved": np.array([handle.moved for handle in handles]).reshape(-1, 3),
            "ceilings": np.array([self._ceilings.get(body, math.nan) for body in self.bodies]),
            "slack": self.contact.slack,
        }
        with whole_file(path) as file:
            np.savez(file, **content)

    def restore(self, path: str | os.PathLike[str], note: str = "") -> None:
        """Go to the state that `save` wrote, in a world built from the same scene."""
        try:
            with open(path, "rb") as opened, zipfile.ZipFile(opened), np.load(opened, allow_pickle=False) as file:
                content = {name: file[name] for name in file.files}
        except (OSError, ValueError, EOFError, KeyError, zipfile.BadZipFile) as error:
            raise CheckpointError(f"{path}: not a readable checkpoint ({error})") from error
        if str(content.get("fingerprint")) != self.fingerprint() + note:
            raise CheckpointError(f"{path}: a checkpoint of another scene; build the world it was saved from")
        if int(content["clock"][2]) < self._next_event:
            raise CheckpointError(f"{path}: lies before an event that has happened here; build the world anew")
        self._replay_events(int(content["clock"][2]))
        if len(content["moved"]) != len(self._handles()):
            raise CheckpointError(f"{path}: other holds than this world has; build the world it was saved from")
        if content["surroundings"].tolist() != self._surroundings():
            raise CheckpointError(
                f"{path}: other colliders or fields than this world has; build that it was saved from"
            )
        self._set_clock(float(content["clock"][0]))
        if content["materials"].tolist() != self._materials():
            raise CheckpointError(
                f"{path}: bodies had been changed, melted or made solid by a script; do the same to them before you "
                "restore, or let it happen by world.at"
            )
        self.gravity = content["gravity"]
        if self.model.reshaped and "model.pairs.count" not in content:
            self._be_born_again()
        self.model.restore(under("model.", content))
        self.pool.restore(under("pool.", content))
        self._steps_since_check = int(content["clock"][1])
        self._step = float(content["clock"][3])
        self._integrator = str(content["integrator"]) or None
        self._arrived.clear()
        for body, origin in zip(self.bodies, content["origins"], strict=True):
            body.origin = origin
        for handle, moved in zip(self._handles(), content["moved"], strict=True):
            handle.moved = moved
        self._write_surroundings()
        self.contact.resume(content["slack"])
        known = zip(self.bodies, content["ceilings"].tolist(), strict=True)
        self._ceilings = {body: ceiling for body, ceiling in known if not math.isnan(ceiling)}
        self.revision += 1

    def _be_born_again(self) -> None:
        """Bodies that have been reshaped since get their first shape back."""
        self._model, self.pool = None, Pool(self)
        for body in self.bodies:
            body.be_born_again()

    def _replay_events(self, count: int) -> None:
        """Let past events happen again, each at its time: they change materials, holds and fields; the state is then
        overwritten."""
        for time, action in self._events[self._next_event : count]:
            self._set_clock(time)
            action(self)
        self._next_event = count


def settle(world: World, tolerance: float = 1e-6) -> None:
    """Relax a world to static equilibrium."""
    world.settle(tolerance)
