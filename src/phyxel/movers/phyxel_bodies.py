"""The phyxel bodies of a world: one model moves them all, for they touch and flow together."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from phyxel import device as dev
from phyxel.body import Body
from phyxel.body.holds import DRAG_TIME, Handle
from phyxel.body.probes import CarriedProbe, Probe
from phyxel.contact.colliders import Collider, Ground
from phyxel.contact.table import top_speed
from phyxel.errors import BlowUpError, PhyxelError
from phyxel.material import Mixture
from phyxel.mls.moments import choose_supports
from phyxel.mls.neighbours import PairList
from phyxel.models.phyxel import cuts
from phyxel.models.phyxel.contact.impulses import BodyContact
from phyxel.models.phyxel.model import PhyxelModel
from phyxel.models.phyxel.relaxation import STEPS_OF_A_STAGE, relax
from phyxel.movers.energy_guard import EnergyGuard
from phyxel.movers.melting import Melting, is_fluid
from phyxel.movers.mover import Floats, Piece
from phyxel.movers.phyxel_cracks import PhyxelCracks
from phyxel.movers.surroundings import refuse_overlap
from phyxel.state import State, prefixed, unprefixed
from phyxel.surface.surfels import Surfels

if TYPE_CHECKING:
    from phyxel.world import World

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
MOSTLY = 0.5
"""Share of a part's phyxels without a stress of their own from which on it cannot bend."""
TURNING_STAGES = 8
"""Stages of settling within which a turn is done that takes no time: half a turn at once would go either way round."""


class PhyxelBodies:
    """The mover of all phyxel bodies of a world: finds the stable step and moves them together."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.device = world.device
        self.bodies: list[Body] = []
        self.time = 0.0
        """how far they have come [s]: ahead of the world's clock while they advance"""
        self.steps = 0
        self._model: PhyxelModel | None = None
        self.pool = Melting(self)
        """what has melted"""
        self.cracking = PhyxelCracks(self)
        self._energies = EnergyGuard(self.bodies)
        self._collider_speed = 0.0
        """the fastest a collider gets in the time that is being stepped over [m/s]"""
        self._span = (0.0, 0.0)
        """the time over which colliders move as last written [s]"""
        self._integrator: str | None = None
        self._arrived: list[Body] = []
        """bodies that have not moved since they, or a collider, came"""
        self._step = 0.0
        """size of a step as last chosen [s]; 0: none yet"""

    def add(self, body: Body) -> None:
        """Move one more body from now on."""
        self.bodies.append(body)
        self.time = self.world.time
        self._arrived.append(body)
        self._integrator = None
        if self._model is not None:
            self._rebuild([np.arange(low, high) for low, high in self._model.ranges])

    def cut(self, body: Body) -> None:
        if self._model is not None:
            self.cracking.follow()

    def put_down(self, bodies: list[Body]) -> None:
        self.model.stop([self.bodies.index(body) for body in bodies])
        self.model.forget_contacts()
        self._arrived += [body for body in bodies if body not in self._arrived]
        self._energies.forget()
        self.contact.outdate()
        self._write_surroundings()

    def divide(self, body: Body, pieces: list[Body], nodes: list[NDArray[np.int64]]) -> None:
        at = self.bodies.index(body)
        for piece in pieces:
            self.cracking.take_after(piece, body)
        self.bodies[at : at + 1] = pieces
        self._energies.forget()
        if self._model is not None:
            order = [np.arange(low, high) for low, high in self._model.ranges]
            order[at : at + 1] = [order[at][own] for own in nodes]
            self._rebuild(order)
        if self._model is not None:
            self._model.relaid = True

    def _rebuild(self, order: list[NDArray[np.int64]]) -> None:
        """Another model, whose first bodies have these phyxels of the old one, and are where they were."""
        assert self._model is not None
        old, self._model = self._model, None
        self.world.revision += 1
        if not order:
            return
        pairs, support = old.matter.near.pairs(), old.matter.support.numpy()
        self._make([(support[own], pairs.taken(own)) for own in order])
        self.model.take_over(old, np.concatenate(order))
        self.pool.set_melt()
        self._write_surroundings()  # forces of a melt know of walls, and may be asked for before the next step

    @property
    def model(self) -> PhyxelModel:
        """The model that moves the bodies, made when first needed."""
        if self._model is None:
            if not self.bodies:
                raise PhyxelError("the world has no body; call world.add(body) first")
            self._make([])
        assert self._model is not None
        return self._model

    def _make(self, known: list[tuple[Floats, PairList]]) -> None:
        """Make the model; supports and neighbours of the first bodies are known."""
        both = itertools.zip_longest(self.bodies, known)
        parts = [replace(body.part(), known=one or self._neighbours_at_birth(body)) for body, one in both]
        model = self._model = PhyxelModel(parts, self.device)
        for index, body in enumerate(self.bodies):
            model.set_material(index, body.mixture, body.rotation)
        for body in self.bodies[len(known) :]:
            self.cracking.laid_out(body)
        self.cracking.outdate()
        self.renew_contact()
        self._write_holds()
        for body in self.bodies:
            self.pool.take_in(body)
        dev.trim_memory()

    def _neighbours_at_birth(self, body: Body) -> tuple[Floats, PairList] | None:
        """Supports and neighbours of a body in which there is no crack."""
        part, device = body.part(), self.device
        if body.has_cracked:
            return None
        return body.once(
            ("supports", body.support, str(device)),
            lambda: choose_supports(part.positions, part.support, device, part.sees),
        )

    @property
    def contact(self) -> BodyContact:
        """Contact between the bodies, and of each with itself."""
        assert self.model.contact is not None
        return self.model.contact

    def renew_contact(self) -> None:
        """Other bodies than before meet each other, or otherwise."""
        model = self.model
        model.set_contact(BodyContact(model, tuple(self.bodies), self.pool.bodies, self.pool.flows))

    def neighbours_changed(self) -> None:
        """Cracks have parted some."""
        self.renew_contact()
        self._write_surroundings()

    def anchors_changed(self) -> None:
        """Bodies are counted from elsewhere."""
        self._write_surroundings()

    def nodes_of(self, body: Body) -> slice:
        """Where a body's nodes are among those of the model."""
        return slice(*self.model.ranges[self.bodies.index(body)])

    # What has changed

    def material_changed(self, body: Body, before: Mixture) -> None:
        self._energies.forget()
        self._integrator = None
        self.cracking.outdate()
        self.model.set_material(self.bodies.index(body), body.mixture, body.rotation)
        self.pool.material_changed(body, before)

    def force_changed(self, body: Body) -> None:
        self._energies.forget(body)

    def surroundings_changed(self, collider_came: bool) -> None:
        """Surfaces keep out of the colliders that are there now, also before the next step."""
        self._energies.forget()
        if self._model is not None:
            self._write_surroundings()
        if collider_came:
            self._arrived = list(self.bodies)

    def holds_changed(self, body: Body) -> None:
        self._energies.forget(body)
        if self._model is not None:
            self._write_holds()

    def _handles(self) -> list[Handle]:
        return [handle for body in self.bodies for handle in body.handles]

    def _write_holds(self) -> None:
        assert self._model is not None
        hold, slots = np.full(len(self._model), -1), 0
        for handle in self._handles():
            # What turns has a velocity for each node.
            own = np.arange(len(handle.nodes)) if handle.turns else np.zeros(1, int)
            hold[self.nodes_of(handle.body)][handle.nodes] = slots + own
            slots += len(own)
        self._model.set_holds(hold, slots)

    # Stepping

    def set_clock(self, time: float) -> None:
        self.time = time
        if self._model is not None:
            self._move_colliders((time, time), time)

    def advance(self, dt: float) -> None:
        self.time = self.world.time
        self._set_down()
        self.cracking.follow()
        start, left = self.time, dt
        followed = any(handle.follows for handle in self._handles())
        self._collider_speed = max((top_speed(one, start, start + dt) for one in self._solid_colliders()), default=0.0)
        self._write_surroundings()
        while left > 0:
            implicit = self.integrator == "implicit"
            most = 1 if implicit or followed else MOST_STEPS_AT_ONCE
            longest = min(self.contact.longest_step(), self.cracking.longest if implicit else math.inf)
            substeps = self._implicit_substeps(left, longest) if implicit else self._stable_substeps(left, longest)
            if self.world.acting:
                most = min(most, max(1, round(LONGEST_UNASKED * substeps / left)))
            if self.pool.flows:
                most = min(most, self.model.steps_until_flowed(left / substeps))
            most = min(most, max(1, int(min(self.cracking.longest * substeps / left, most))))
            now = self.contact.prepare(left / substeps, min(substeps, most))
            before = self.time
            step, left = left / substeps, left * (substeps - now) / substeps
            self._write_fields(0.5 * (now - 1) * step)
            self.time = start + dt - left
            self._move_colliders((before, self.time), self.time if implicit else before)
            self._move_holds(self.time, step, now)
            (self.model.step_implicitly if implicit else self.model.step)(step, now)
            self.pool.refresh()
            self.cracking.advance(now * step)
            self._recentre()
            self._energies.steps += now
            self.steps += now
            if self._follow_ramps():
                self._write_surroundings()
        self._collider_speed = 0.0
        self.model.synchronise()
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
            for ground in self.world.colliders:
                if not isinstance(ground, Ground):
                    continue
                up = np.array(ground.normal)
                depth = ground.height - self._lowest(body, up)
                if depth > 0 and not body.handles:
                    body.origin = body.origin + depth * up
                    self.contact.outdate()
                    self.world.revision += 1
            refuse_overlap(self.world, body)
        self._arrived.clear()

    def _lowest(self, body: Body, up: Floats) -> float:
        """How far down a body reaches [m]: its cloud before it moves, its nodes with their balls afterwards."""
        if self.time == 0:
            return float((body.placed_cloud() @ up).min() + (body.origin - body.centre) @ up)
        balls = np.minimum(np.abs(self.model.reach.numpy()[self.nodes_of(body)]), 0.5) * body.unit
        return float((body.positions @ up - balls).min())

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
        return [one for one in self.world.colliders if isinstance(one, Collider)]

    def _write_surroundings(self) -> None:
        """Pushes on the bodies, and the colliders as they are now."""
        model = self.model
        for b, body in enumerate(self.bodies):
            push = self.world.gravity + body.force / float(body.masses.sum())
            model.set_acceleration(b, push / body.unit)
        self._span = (self.time, self.time)
        self._place_colliders(self.time)
        self.contact.place()

    def _place_colliders(self, at: float) -> None:
        origins = np.array([body.origin for body in self.bodies])
        self.model.meet(self.world.colliders, origins, self._span, at, self._collider_speed)

    def _move_colliders(self, span: tuple[float, float], at: float) -> None:
        """Colliders that move go on over a span of time; they stand where they are at the time `at` [s]."""
        if any(one.moves for one in self.world.colliders):
            self._span = span
            self._place_colliders(at)
            self._energies.forget()

    def _write_fields(self, ahead: float) -> None:
        """Accelerations by the fields, as they will be a little ahead [s]: in the middle of the kicks they are for, or
        they would lag and drive what circles a centre outward."""
        model, acting_now = self.model, self.world.acting
        extra = np.zeros((len(model) if acting_now else 0, 3))
        for body, (low, high) in zip(self.bodies, model.ranges, strict=True):
            fields = [field for field in acting_now if field.acts_on(body)]
            if fields:
                self._energies.forget(body)
                velocities = body.velocities
                positions, time = body.positions + ahead * velocities, self.time + ahead
                acting = [field.acceleration(body, positions, velocities, time) for field in fields]
                extra[low:high] = np.sum(acting, axis=0) / body.unit
        model.set_extra(extra)

    def _follow_ramps(self) -> bool:
        """Give bodies on their way to another material what they are made of now; whether any changed."""
        changed = [body.follow_ramp(self.time) for body in self.bodies]
        return any(changed)

    def _move_holds(self, time: float, step: float, steps: int) -> None:
        """Set hold velocities so that every hold is where it should be at `time`, so many steps from now."""
        velocities = [np.zeros((0, 3))]
        for handle in self._handles():
            way = self._way_around(handle, time, steps) if handle.turns else self._way(handle, time)
            velocities.append(way / (steps * step) / handle.body.unit)
            if way.any():
                self._energies.forget(handle.body)
        self.model.set_hold_velocities(np.concatenate(velocities))

    def _way(self, handle: Handle, time: float) -> Floats:
        """How far all nodes of a handle have to go until `time` [m], shape (1, 3)."""
        goal = handle.to(time)
        way, handle.moved = goal - handle.moved, goal
        return way[None]

    def _way_around(self, handle: Handle, time: float, steps: int) -> Floats:
        """How far each node of a turning handle has to go [m], shape (k, 3): from where it is in single precision, so
        that rounding does not add up around the circle."""
        body, nodes = handle.body, handle.nodes
        u = self.model.u.numpy()[self.nodes_of(body)][nodes]
        home = body.origin + (body.reference[nodes] - body.centre)
        way = ((handle.goals(time) - home) / body.unit).astype(u.dtype) - u
        way[u + way / u.dtype.type(steps) == u] = 0  # so little is lost in rounding: it would be a speed without motion
        return body.unit * way.astype(np.float64)

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
        gained = self._energies.gained(self.contact.parties, self.world)
        if gained is not None:
            body, energy = gained
            raise BlowUpError(self._blow_up_text(body.name, f"it gained {energy:.3g} J from nowhere"))

    def _blow_up_where_not_finite(self) -> NoReturn:
        broken = [body.name for body in self.bodies if not np.isfinite(self.field(body, "v")).all()]
        name = broken[0] if broken else self.bodies[0].name
        raise BlowUpError(self._blow_up_text(name, "its velocities are no longer numbers"))

    def _blow_up_text(self, name: str, what: str) -> str:
        return (
            f"{name}: blew up before t = {self.time:.4g} s: {what}. "
            "Try a softer material, more damping, or gentler drags; the last good frame is kept"
        )

    # Reading

    def field(self, body: Body, name: str) -> Floats:
        """The "u", "v", "gradient", "plastic" strain or "swell" of one body's nodes, in its units."""
        if self._model is None and name == "u":
            return np.zeros(body.birth.shape)  # asked while a scene is being built: no reason to make the model yet
        model = self.model
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
        return arrays[name].numpy()[self.nodes_of(body)].astype(np.float64)

    def stress_of(self, body: Body) -> Floats:
        return self.model.stress()[self.nodes_of(body)].astype(np.float64)

    def displacement_at(self, body: Body, X: Floats) -> Floats:
        return self.probe(body, X).displacement()

    def probe(self, body: Body, X: Floats) -> Probe:
        return CarriedProbe(body, X)

    def diagnostics(self, body: Body) -> dict[str, Any]:
        x, v, m = body.positions, body.velocities, body.masses
        energy, volume_ratio = (each[self.nodes_of(body)] for each in self.model.measure())
        return {
            "mass": float(m.sum()),
            "momentum": m @ v,
            "angular_momentum": np.cross(x, m[:, None] * v).sum(axis=0),
            "kinetic": float(0.5 * m @ (v * v).sum(axis=1)),
            "elastic": float(energy.sum() * body.unit**3),
            "potential": float(-(m @ x) @ self.world.gravity),
            "volume": float(body.volumes @ volume_ratio),
        }

    def parts_of(self, body: Body) -> NDArray[np.int32]:
        return cuts.components(self.model, self.bodies.index(body))

    def crumbs_of(self, body: Body, parts: list[NDArray[np.int64]]) -> NDArray[np.bool_]:
        matter, own = self.model.matter, self.nodes_of(body)
        flat = (matter.moments.degenerate | (matter.volume.numpy() == 0))[own]
        return np.array([flat[part].mean() > MOSTLY for part in parts])

    def momenta_of(self, body: Body, nodes: NDArray[np.int64]) -> tuple[Floats, Floats]:
        carried = body.masses[nodes, None] * body.velocities[nodes]
        return carried.sum(axis=0), np.cross(body.positions[nodes] - body.origin, carried).sum(axis=0)

    def pieces(self) -> list[Piece]:
        """Bodies that have flowed together are one piece, one that has flowed apart is several."""
        label = self.model.pieces()
        found: list[Piece] = [{} for _ in range(int(label.max()) + 1)]
        for body in self.bodies:
            own = label[self.nodes_of(body)]
            for piece in np.unique(own):
                found[piece][body] = np.flatnonzero(own == piece)
        return found

    def carry(self, body: Body, surfels: Surfels) -> None:
        self.model.ensure_forces()
        surfels.follow(self.model, self.bodies.index(body), body.unit, body.origin)
        self.pool.skins.finish(body, surfels)

    def walls(self, body: Body) -> tuple[Any, int]:
        return self.model.colliders, self.bodies.index(body)

    # Relaxing

    def settle(self, tolerance: float, most_steps: int) -> None:
        """Relax until what is left to go is below `tolerance` spacings."""
        self.time = self.world.time
        if self.pool.flows:
            molten = next(body.name for body in self.bodies if is_fluid(body))
            raise PhyxelError(f"settle: {molten} is molten and flows on; use world.advance, or solidify it first")
        self._write_surroundings()
        stages = TURNING_STAGES if any(handle.turns for handle in self._handles()) else 1

        def drive(stage: int, step: float) -> None:
            self._write_fields(0.0)
            self._move_holds(self.time + min((stage + 1) / stages, 1.0) * DRAG_TIME, step, STEPS_OF_A_STAGE)

        relax(self.model, tolerance, most_steps, drive)
        self._energies.forget()
        self._recentre()

    # Checkpoints

    def state(self) -> State:
        return {
            **prefixed("model.", self.model.state()),
            **prefixed("pool.", self.pool.state()),
            **prefixed("energies.", self._energies.state()),
            **prefixed("cracking.", self.cracking.state()),
            "step": np.array(self._step),
            "integrator": np.array(self._integrator or ""),
            "origins": np.array([body.origin for body in self.bodies]),
            "slack": self.contact.slack,
        }

    def restore(self, state: State) -> None:
        if (self.model.reshaped or self.model.relaid) and not state["model.changed"].any():
            self._be_born_again()
        self.model.restore(unprefixed("model.", state))
        self.pool.restore(unprefixed("pool.", state))
        if self.model.relaid:
            self.renew_contact()
        self._step = float(state["step"])
        self._integrator = str(state["integrator"]) or None
        self._arrived.clear()
        for body, origin in zip(self.bodies, state["origins"], strict=True):
            body.origin = origin
        self._write_surroundings()
        self.contact.resume(state["slack"])
        self._energies.restore(unprefixed("energies.", state))
        self.cracking.restore(unprefixed("cracking.", state))

    def _be_born_again(self) -> None:
        """Bodies that have been reshaped since get their first shape back."""
        self._model, self.pool = None, Melting(self)
        for body in self.bodies:
            body.be_born_again()
