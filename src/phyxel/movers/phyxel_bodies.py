"""The phyxel bodies of a world: one model moves them all, for they touch and flow together."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NoReturn

import numpy as np
import warp as wp
from numpy.typing import NDArray

from phyxel import device as dev
from phyxel.body import Body
from phyxel.body.fragments import reach_beside_cracks
from phyxel.body.holds import DRAG_TIME, Handle
from phyxel.body.placement import Anchor
from phyxel.body.probes import CarriedProbe, Probe
from phyxel.body.protocols import Change, momenta_of
from phyxel.contact.colliders import Collider, Ground
from phyxel.contact.table import top_speed
from phyxel.errors import BlowUpError, PhyxelError
from phyxel.material import Mixture
from phyxel.mls.moments import choose_supports
from phyxel.mls.neighbours import PairList
from phyxel.models.phyxel import cuts
from phyxel.models.phyxel.contact.impulses import BodyContact
from phyxel.models.phyxel.model import PhyxelModel, PhyxelPart
from phyxel.models.phyxel.relaxation import STEPS_OF_A_STAGE, relax
from phyxel.movers.energy_guard import EnergyGuard
from phyxel.movers.melting import Melting, is_fluid
from phyxel.movers.mover import Floats, MoverWorld, Parts, Piece
from phyxel.movers.phyxel_contact import contact_of, place_contact
from phyxel.movers.phyxel_cracks import PhyxelCracks
from phyxel.movers.surroundings import refuse_overlap
from phyxel.state import State, prefixed, unprefixed
from phyxel.surface.motion import Motion
from phyxel.surface.walls import Walls

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
SUBSTEPS_OF_A_TICK = 8
"""Leap-frog steps that a live view lets pass between two looks at most, so that hands are felt at once."""
HOPELESS = 1e-4
"""Step over the period of the fastest vibration below which something is going wrong."""
MOSTLY = 0.5
"""Share of a part's phyxels without a stress of their own from which on it cannot bend."""
TURNING_STAGES = 8
"""Stages of settling within which a turn is done that takes no time: half a turn at once would go either way round."""


class PhyxelNodes:
    """What the nodes of a phyxel body have now (`body.protocols.Nodal`)."""

    def __init__(self, mover: PhyxelBodies, body: Body) -> None:
        self._mover, self._body = mover, body

    @property
    def unmoved(self) -> bool:
        return not self._mover.is_made

    def _own(self, array: wp.array) -> Floats:
        return array.numpy()[self._mover.nodes_of(self._body)].astype(np.float64)

    @property
    def X(self) -> Floats:
        return self._own(self._mover.model.matter.X)

    @property
    def past(self) -> Floats:
        return self._own(self._mover.model.matter.past)

    @property
    def u(self) -> Floats:
        # A scene that is being built asks already: no reason to make the model yet.
        return np.zeros(self._body.birth.shape) if self.unmoved else self._own(self._mover.model.u)

    @property
    def v(self) -> Floats:
        return self._own(self._mover.model.v)

    @property
    def gradient(self) -> Floats:
        self._mover.model.ensure_forces()
        return self._own(self._mover.model.now.gradient)

    @property
    def plastic(self) -> Floats:
        return self._own(self._mover.model.now.plastic)

    @property
    def stress(self) -> Floats:
        return self._mover.model.stress()[self._mover.nodes_of(self._body)].astype(np.float64)

    def momenta(self, nodes: NDArray[np.int64]) -> tuple[Floats, Floats]:
        return momenta_of(self._body, nodes)


class PhyxelBodies:
    """The mover of all phyxel bodies of a world: finds the stable step and moves them together."""

    def __init__(self, world: MoverWorld) -> None:
        self.world = world
        self.device = world.device
        self.bodies: list[Body] = []
        self.time = 0.0
        """how far they have come [s]: ahead of the world's clock while they advance"""
        self.steps = 0
        self._model: PhyxelModel | None = None
        self.melting = Melting(self)
        """what has melted"""
        self.cracks = PhyxelCracks(self)
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

    def divide(self, body: Body, pieces: Sequence[Body], nodes: Sequence[NDArray[np.int64]]) -> None:
        at = self.bodies.index(body)
        for piece in pieces:
            self.cracks.take_after(piece, body)
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
        self.melting.set_melt()
        self._write_surroundings()  # forces of a melt know of walls, and may be asked for before the next step

    @property
    def is_made(self) -> bool:
        """Whether there is a model already."""
        return self._model is not None

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
        parts = [replace(part_of(body), known=one or self._neighbours_at_birth(body)) for body, one in both]
        model = self._model = PhyxelModel(parts, self.device)
        for index, body in enumerate(self.bodies):
            model.set_material(index, body.mixture, body.shape.rotation)
        for body in self.bodies[len(known) :]:
            self.cracks.laid_out(body)
        self.cracks.outdate()
        self.renew_contact()
        self._write_holds()
        for body in self.bodies:
            self.melting.take_in(body)
        dev.trim_memory()

    def _neighbours_at_birth(self, body: Body) -> tuple[Floats, PairList] | None:
        """Supports and neighbours of a body in which there is no crack."""
        part, device = part_of(body), self.device
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
        model.set_contact(contact_of(model, self.bodies, self.melting.bodies, self.melting.flows))

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

    def changed(self, change: Change, body: Body, before: Mixture | None = None) -> None:
        match change:
            case Change.MATERIAL:
                assert before is not None
                self._take_material(body, before)
            case Change.HOLDS:
                self._energies.forget(body)
                if self._model is not None:
                    self._write_holds()
            case Change.FORCE:
                self._energies.forget(body)
            case Change.CRACK:
                if self._model is not None:
                    self.cracks.follow()
            case Change.PLACE:
                self._put_down(body)

    def _take_material(self, body: Body, before: Mixture) -> None:
        self._energies.forget()
        self._integrator = None
        self.cracks.outdate()
        self.model.set_material(self.bodies.index(body), body.mixture, body.shape.rotation)
        self.melting.material_changed(body, before)

    def _put_down(self, body: Body) -> None:
        self._energies.forget()
        self.model.stop([self.bodies.index(body)])
        self.model.forget_contacts()
        if body not in self._arrived:
            self._arrived.append(body)
        self.contact.outdate()
        self._write_surroundings()

    def surroundings_changed(self, collider_came: bool) -> None:
        """Surfaces keep out of the colliders that are there now, also before the next step."""
        self._energies.forget()
        if self._model is not None:
            self._write_surroundings()
        if collider_came:
            self._arrived = list(self.bodies)

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
        self.cracks.follow()
        start, left = self.time, dt
        followed = any(handle.follows for handle in self._handles())
        self._collider_speed = max((top_speed(one, start, start + dt) for one in self._solid_colliders()), default=0.0)
        self._write_surroundings()
        while left > 0:
            implicit = self.integrator == "implicit"
            most = 1 if implicit or followed else MOST_STEPS_AT_ONCE
            longest = min(self.contact.longest_step(), self.cracks.longest if implicit else math.inf)
            substeps = self._implicit_substeps(left, longest) if implicit else self._stable_substeps(left, longest)
            if self.world.acting:
                most = min(most, max(1, round(LONGEST_UNASKED * substeps / left)))
            if self.melting.flows:
                most = min(most, self.model.steps_until_flowed(left / substeps))
            most = min(most, max(1, int(min(self.cracks.longest * substeps / left, most))))
            now = self.contact.prepare(left / substeps, min(substeps, most))
            before = self.time
            step, left = left / substeps, left * (substeps - now) / substeps
            self._write_fields(0.5 * (now - 1) * step)
            self.time = start + dt - left
            self._move_colliders((before, self.time), self.time if implicit else before)
            self._move_holds(self.time, step, now)
            (self.model.step_implicitly if implicit else self.model.step)(step, now)
            self.melting.refresh()
            self.cracks.advance(now * step)
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
            if self.melting.flows:
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
        balls = np.minimum(np.abs(self.model.matter.reach.numpy()[self.nodes_of(body)]), 0.5) * body.unit
        return float((body.positions @ up - balls).min())

    def _stable_substeps(self, dt: float, longest: float) -> int:
        """How many stable steps make up dt (physics 5.2).

        The size of a step is kept while it is about right: leap-frog keeps the energy only while its step stays the
        same, and a size that follows every breath of the stability limit pumps energy into the motion.
        """
        # What is many times faster than sound, which crosses a spacing in 1/ω, is blowing up: steps need not follow it.
        longest = max(longest, 1 / (16 * self.model.vibration.at_rest()))
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
        if step * self.model.vibration.at_rest() < HOPELESS:
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
        place_contact(self.contact, self.bodies)

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
        """Accelerations by the fields (physics 16.2), as they will be a little ahead [s]: in the middle of the kicks
        they are for, or they would lag and drive what circles a centre outward."""
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
        """Move the origins of bodies that have gone far (physics 16.1), so that displacements stay small."""
        first_nodes = self.model.u.numpy()
        for anchor in {id(body.anchor): body.anchor for body in self.bodies}.values():
            bodies = [b for b, body in enumerate(self.bodies) if body.anchor is anchor]
            moved = first_nodes[self.model.ranges[bodies[0]][0]]
            if np.abs(moved).max() > FARTHEST_FROM_ORIGIN:
                shift = moved.astype(np.float64)
                self.model.recentre(bodies, shift)
                anchor.origin = anchor.origin + anchor.unit * shift
                self._place_colliders(self.time)
                place_contact(self.contact, self.bodies)

    def _check_for_blow_up(self) -> None:
        if not math.isfinite(self.model.fastest()):
            self._blow_up_where_not_finite()
        gained = self._energies.gained(self.contact.parties, self.diagnostics, self.world)
        if gained is not None:
            body, energy = gained
            raise BlowUpError(self._blow_up_text(body.name, f"it gained {energy:.3g} J from nowhere"))

    def _blow_up_where_not_finite(self) -> NoReturn:
        broken = [body.name for body in self.bodies if not np.isfinite(self.nodal(body).v).all()]
        name = broken[0] if broken else self.bodies[0].name
        raise BlowUpError(self._blow_up_text(name, "its velocities are no longer numbers"))

    def _blow_up_text(self, name: str, what: str) -> str:
        return (
            f"{name}: blew up before t = {self.time:.4g} s: {what}. "
            "Try a softer material, more damping, or gentler drags; the last good frame is kept"
        )

    # Reading

    def nodal(self, body: Body) -> PhyxelNodes:
        return PhyxelNodes(self, body)

    def probe(self, body: Body, X: Floats) -> Probe:
        return CarriedProbe(body, X)

    def diagnostics(self, bodies: Sequence[Body]) -> list[dict[str, Any]]:
        energy, volume_ratio = self.model.measure()

        def measured(body: Body) -> dict[str, Any]:
            own, x, v, m = self.nodes_of(body), body.positions, body.velocities, body.masses
            return {
                "mass": float(m.sum()),
                "momentum": m @ v,
                "angular_momentum": np.cross(x, m[:, None] * v).sum(axis=0),
                "kinetic": float(0.5 * m @ (v * v).sum(axis=1)),
                "elastic": float(energy[own].sum() * body.unit**3),
                "potential": float(-(m @ x) @ self.world.gravity),
                "volume": float(body.volumes @ volume_ratio[own]),
            }

        return [measured(body) for body in bodies]

    def parts(self, body: Body) -> Parts:
        label = cuts.components(self.model, self.bodies.index(body))
        matter, own = self.model.matter, self.nodes_of(body)
        numb = (matter.moments.degenerate | (matter.volume.numpy() == 0))[own]
        return Parts(label, np.array([numb[label == part].mean() > MOSTLY for part in range(label.max() + 1)]))

    def pieces(self) -> list[Piece]:
        """Bodies that have flowed together are one piece, one that has flowed apart is several."""
        label = cuts.pieces(self.model)
        found: list[Piece] = [{} for _ in range(int(label.max()) + 1)]
        for body in self.bodies:
            own = label[self.nodes_of(body)]
            for piece in np.unique(own):
                found[piece][body] = np.flatnonzero(own == piece)
        return found

    def motion(self, body: Body) -> Motion:
        model, index = self.model, self.bodies.index(body)
        model.ensure_forces()
        walls = Walls(model.colliders, self.device, index)
        X, gradient, skin = model.matter.X, model.now.gradient, self.melting.surface.skin_now
        return Motion(model.u, body.unit, body.origin, walls, X, gradient, model.ranges[index], skin)

    def longest_tick(self) -> float:
        return SUBSTEPS_OF_A_TICK * self.model.stable_step() if self.integrator == "leapfrog" else math.inf

    # Relaxing

    def settle(self, tolerance: float, most_steps: int) -> None:
        """Relax until what is left to go is below `tolerance` spacings."""
        self.time = self.world.time
        self._write_surroundings()  # makes the model, which knows what flows
        if self.melting.flows:
            molten = next(body.name for body in self.bodies if is_fluid(body))
            raise PhyxelError(f"settle: {molten} is molten and flows on; use world.advance, or solidify it first")
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
            **prefixed("melting.", self.melting.state()),
            **prefixed("energies.", self._energies.state()),
            **prefixed("cracks.", self.cracks.state()),
            "step": np.array(self._step),
            "integrator": np.array(self._integrator or ""),
            "origins": np.array([body.origin for body in self.bodies]),
            "slack": self.contact.slack,
        }

    def restore(self, state: State) -> None:
        if (self.model.reshaped or self.model.relaid) and not state["model.changed"].any():
            self._be_born_again()
        self.model.restore(unprefixed("model.", state))
        self.melting.restore(unprefixed("melting.", state))
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
        self.cracks.restore(unprefixed("cracks.", state))

    def _be_born_again(self) -> None:
        """Bodies that have been reshaped since get their first shape back."""
        self._model, self.melting = None, Melting(self)
        for body in self.bodies:
            body.anchor = Anchor(body.born.unit, body.born.centre, body.born.origin.copy())
            body.appearance.outdate()
            body.reshaped = body.has_melted = False


def part_of(body: Body) -> PhyxelPart:
    """What the model takes of a body, in units of its mean node spacing about its origin."""
    return PhyxelPart(
        positions=(body.birth - body.centre) / body.unit,
        velocities=body.start_velocities / body.unit,
        volumes=body.volumes / body.unit**3,
        reach=reach_beside_cracks(body),
        unit=body.unit,
        support=body.support,
        sees=body.sees,
    )


def phyxels_of(world: MoverWorld) -> PhyxelBodies:
    """What moves the phyxel bodies of a world."""
    return next(mover for body in world.bodies if isinstance(mover := world.mover_of(body), PhyxelBodies))
