"""A flock of phyxel bodies: one model moves them all by one integrator, for they touch and flow together."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from phyxel import device as dev
from phyxel.body import Body
from phyxel.body.holds import DRAG_TIME
from phyxel.body.placement import Anchor
from phyxel.body.probes import CarriedProbe, Probe
from phyxel.body.protocols import Change
from phyxel.contact.colliders import Collider
from phyxel.contact.table import top_speed
from phyxel.errors import BlowUpError, PhyxelError
from phyxel.material import Mixture
from phyxel.models.phyxel.contact.impulses import BodyContact
from phyxel.models.phyxel.matter import Ties
from phyxel.models.phyxel.model import PhyxelModel
from phyxel.models.phyxel.relaxation import relax
from phyxel.movers.energy_guard import EnergyGuard
from phyxel.movers.melting import Melting, is_fluid
from phyxel.movers.mover import Floats, MoverWorld, Parts, Piece
from phyxel.movers.phyxel_contact import contact_of, place_contact
from phyxel.movers.phyxel_cracks import PhyxelCracks
from phyxel.movers.phyxel_holds import PhyxelHolds
from phyxel.movers.phyxel_impacts import PhyxelImpacts
from phyxel.movers.phyxel_nodes import PhyxelNodes, measured_of, part_of, parts_of, pieces_of
from phyxel.movers.phyxel_pushes import PhyxelPushes
from phyxel.movers.phyxel_steps import PhyxelSteps
from phyxel.movers.surroundings import raised_from_ground, refuse_overlap
from phyxel.state import State, prefixed, unprefixed
from phyxel.surface.motion import Motion
from phyxel.surface.walls import Walls

FARTHEST_FROM_ORIGIN = 16.0
"""A body that has moved this many spacings gets a new origin, so that displacements keep their digits."""
MOST_STEPS_AT_ONCE = 10
"""Substeps after which the stable step is found anew: a body that is crushed stiffens within milliseconds."""
LONGEST_UNASKED = 0.002
"""Time of explicit substeps after which fields are asked anew, if one substep is not longer [s]."""
SUBSTEPS_OF_A_TICK = 8
"""Leap-frog steps that a live view lets pass between two looks at most, so that hands are felt at once."""
TURNING_STEPS = 8
"""Steps of settling within which a turn is done that takes no time: half a turn at once would go either way round."""

Phyxels = tuple[PhyxelModel, NDArray[np.int64]]
"""Some of a model, by their numbers, (m,)."""


class PhyxelBodies:
    """The mover of a flock of phyxel bodies: finds the stable step and moves them together. A world has one for each
    integrator that its bodies choose (`movers.Movers`)."""

    def __init__(self, world: MoverWorld) -> None:
        self.world, self.device = world, world.device
        self.bodies: list[Body] = []
        self.time = 0.0
        """how far they have come [s]: ahead of the world's clock while they advance"""
        self.steps = 0
        self._model: PhyxelModel | None = None
        self.melting = Melting(self)
        """what has melted"""
        self.cracks = PhyxelCracks(self)
        self.energies = EnergyGuard(self.bodies)
        self._collider_speed, self._span = 0.0, (0.0, 0.0)
        """the fastest a collider gets in the time that is being stepped over [m/s]; that time, as last written [s]"""
        self.chosen, self.impacts = PhyxelSteps(self), PhyxelImpacts(self)
        self.holds, self.pushes = PhyxelHolds(self), PhyxelPushes(self)
        self._arrived: list[Body] = []
        """bodies that have not moved since they, or a collider, came"""

    def add(self, body: Body) -> None:
        self.bodies.append(body)
        self.time = self.world.time
        self._arrived.append(body)
        self.chosen.choose_anew()
        if self._model is not None:
            self._rebuild([(self._model, np.arange(low, high)) for low, high in self._model.ranges])

    def divide(self, body: Body, pieces: Sequence[Body], nodes: Sequence[NDArray[np.int64]]) -> None:
        at = self.bodies.index(body)
        for piece in pieces:
            self.cracks.take_after(piece, body)
        self.chosen.take_after(pieces, body)
        self.bodies[at : at + 1] = pieces
        self.energies.forget()
        if self._model is not None:
            own = [(self._model, np.arange(low, high)) for low, high in self._model.ranges]
            own[at : at + 1] = [(self._model, own[at][1][chosen]) for chosen in nodes]
            self._rebuild(own)
        if self._model is not None:
            self._model.relaid = True

    def _rebuild(self, first: list[Phyxels]) -> None:
        """Another model, whose first bodies have these phyxels of others, and are where they were."""
        self._model = None
        self.world.revision += 1
        if not first:
            return
        self._make([old.matter.ties(nodes) for old, nodes in first])
        # Those of one model stay together: phyxels that have flowed together are neighbours across bodies.
        sources = [(old, list(some)) for old, some in itertools.groupby(first, key=lambda one: one[0])]
        self.model.take_over([(old, np.concatenate([nodes for _, nodes in some])) for old, some in sources])
        self.melting.set_melt()
        self.write_surroundings()  # forces of a melt know of walls, and may be asked for before the next step

    def phyxels(self) -> dict[Body, Phyxels | None]:
        """Which phyxels each body has, if there is a model."""
        if self._model is None:
            return dict.fromkeys(self.bodies)
        return {body: (self._model, np.arange(*own)) for body, own in zip(self.bodies, self._model.ranges, strict=True)}

    def become(self, bodies: dict[Body, tuple[PhyxelBodies, Phyxels | None]]) -> None:
        """Move these bodies from now on, and no others. They have been in these flocks, as these phyxels of them, and
        go on where they are; those that have melted were here."""
        for body, (flock, _) in bodies.items():
            if flock is not self:
                self.cracks.adopt(body, flock.cracks)
                self.melting.adopt(body, flock.melting)
        self._arrived = [body for body, (flock, _) in bodies.items() if body in flock._arrived]
        self.bodies[:] = bodies
        self.time = self.world.time
        self.energies.forget()
        self._rebuild([own for _, own in bodies.values() if own is not None])

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

    def _make(self, known: list[Ties]) -> None:
        """Make the model; what ties the phyxels of the first bodies is known."""
        both = itertools.zip_longest(self.bodies, known)
        parts = [replace(part_of(body), known=one or self._neighbours_at_birth(body)) for body, one in both]
        model = self._model = PhyxelModel(parts, self.device)
        for index, body in enumerate(self.bodies):
            model.set_material(index, body.mixture, body.shape.rotation)
        for body in self.bodies[len(known) :]:
            self.cracks.laid_out(body)
        self.cracks.outdate()
        self.renew_contact()
        self.holds.write()
        for body in self.bodies[len(known) :]:
            self.melting.take_in(body)
        dev.trim_memory()

    def _neighbours_at_birth(self, body: Body) -> Ties | None:
        """What ties the phyxels of a body in which there is no crack."""
        if body.has_cracked:
            return None
        return body.once(("ties", body.support, str(self.device)), lambda: part_of(body).tied(self.device))

    @property
    def contact(self) -> BodyContact:
        """Contact between the bodies, and of each with itself."""
        assert self.model.contact is not None
        return self.model.contact

    def renew_contact(self) -> None:
        """Other bodies than before meet each other, or otherwise."""
        model = self.model
        model.set_contact(contact_of(model, self.bodies, self.melting.bodies, self.melting.flows))

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
                self.energies.forget(body)
                if self._model is not None:
                    self.holds.write()
            case Change.FORCE:
                self.energies.forget(body)
            case Change.CRACK:
                if self._model is not None:
                    self.cracks.follow()
            case Change.PLACE:
                self._put_down(body)

    def _take_material(self, body: Body, before: Mixture) -> None:
        self.energies.forget()
        self.chosen.choose_anew()
        self.cracks.outdate()
        self.model.set_material(self.bodies.index(body), body.mixture, body.shape.rotation)
        self.melting.material_changed(body, before)

    def _put_down(self, body: Body) -> None:
        self.energies.forget()
        self.model.stop([self.bodies.index(body)])
        self.model.forget_contacts()
        if body not in self._arrived:
            self._arrived.append(body)
        self.contact.outdate()
        self.write_surroundings()

    def surroundings_changed(self, collider_came: bool) -> None:
        """Surfaces keep out of the colliders that are there now, also before the next step."""
        self.energies.forget()
        if self._model is not None:
            self.write_surroundings()
        if collider_came:
            self._arrived = list(self.bodies)

    # Stepping

    def set_clock(self, time: float) -> None:
        self.time = time
        if self._model is not None:
            self._move_colliders((time, time), time)

    def advance(self, dt: float) -> None:
        self.time = self.world.time
        self.set_down()
        self.cracks.follow()
        start, left = self.time, dt
        followed = any(handle.follows for handle in self.holds.handles())
        self._collider_speed = max((top_speed(one, start, start + dt) for one in self.solid_colliders()), default=0.0)
        self.write_surroundings()
        while left > 0:
            implicit = self.integrator == "implicit" and not self.impacts.followed
            most = 1 if implicit or followed else MOST_STEPS_AT_ONCE
            longest = min(self.contact.longest_step(), self.cracks.longest if implicit else math.inf)
            substeps = (self.chosen.implicit if implicit else self.chosen.stable)(left, longest)
            if self.world.acting:
                most = min(most, max(1, round(LONGEST_UNASKED * substeps / left)))
            if self.model.melt is not None:
                most = min(most, self.model.melt.steps_until_flowed(left / substeps))
            most = min(most, max(1, int(min(self.cracks.longest * substeps / left, most))))
            now = self.contact.prepare(left / substeps, min(substeps, most))
            before, whole = self.time, left / substeps
            step = self.impacts.foresee(whole) if implicit else whole
            if step == 0:
                continue  # by leap-frog
            left = left * (substeps - now) / substeps if step == whole else left - step
            self.pushes.write(0.5 * step if implicit else 0.5 * (now - 1) * step, step)
            self.time = start + dt - left
            self._move_colliders((before, self.time), self.time if implicit else before)
            self.holds.move(self.time, step, now)
            (self.model.step_implicitly if implicit else self.model.step)(step, now)
            self.impacts.pass_time(now * step)
            self.melting.refresh()
            self.cracks.advance(now * step)
            self._recentre()
            self.energies.steps += now
            self.steps += now
            if sum(body.follow_ramp(self.time) for body in self.bodies):  # each goes on with its own ramp
                self.write_surroundings()
        self._collider_speed = 0.0
        self.model.synchronise()
        self._check_for_blow_up()

    @property
    def integrator(self) -> str:
        return self.chosen.integrator

    def set_down(self) -> None:
        for body in self._arrived:
            if raised_from_ground(self.world, body, partial(self._lowest, body)):
                self.contact.outdate()
            refuse_overlap(self.world, body)
        self._arrived.clear()

    def _lowest(self, body: Body, up: Floats) -> float:
        """How far down a body reaches [m]: its cloud before it moves, its nodes with their balls afterwards."""
        if self.time == 0:
            return float((body.placed_cloud() @ up).min() + (body.origin - body.centre) @ up)
        balls = np.minimum(np.abs(self.model.matter.reach.numpy()[self.nodes_of(body)]), 0.5) * body.unit
        return float((body.positions @ up - balls).min())

    def solid_colliders(self) -> list[Collider]:
        return [one for one in self.world.colliders if isinstance(one, Collider)]

    def write_surroundings(self) -> None:
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
            self.energies.forget()

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
            self.blow_up_where_not_finite()
        gained = self.energies.gained(self.contact.parties, self.diagnostics, self.world)
        if gained is not None:
            body, energy = gained
            raise BlowUpError(self.blow_up_text(body.name, f"it gained {energy:.3g} J from nowhere"))

    def blow_up_where_not_finite(self) -> NoReturn:
        broken = [body.name for body in self.bodies if not np.isfinite(self.nodal(body).v).all()]
        name = broken[0] if broken else self.bodies[0].name
        raise BlowUpError(self.blow_up_text(name, "its velocities are no longer numbers"))

    def blow_up_text(self, name: str, what: str) -> str:
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
        (energy, ratio), gained = self.model.measure(), self.model.halfway.gained()
        pairs, gravity = [(body, self.nodes_of(body)) for body in bodies], self.world.gravity
        return [measured_of(body, gained[o], energy[o], ratio[o], gravity) for body, o in pairs]

    def parts(self, body: Body) -> Parts:
        return parts_of(self, body)

    def pieces(self) -> list[Piece]:
        """Bodies that have flowed together are one piece, one that has flowed apart is several."""
        return pieces_of(self)

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
        self.write_surroundings()  # makes the model, which knows what flows
        if self.melting.flows:
            molten = next(body.name for body in self.bodies if is_fluid(body))
            raise PhyxelError(f"settle: {molten} is molten and flows on; use world.advance, or solidify it first")
        self.world.make_ready("implicit")
        turning = TURNING_STEPS if any(handle.turns for handle in self.holds.handles()) else 1

        def drive(number: int, step: float) -> None:
            self.pushes.write(0.0, step)
            self.holds.move(self.time + min((number + 1) / turning, 1.0) * DRAG_TIME, step, 1)

        relax(self.model, tolerance, most_steps, drive)
        self.energies.forget()
        self._recentre()

    # Checkpoints

    def state(self) -> State:
        return {
            **prefixed("model.", self.model.state()),
            **prefixed("melting.", self.melting.state()),
            **prefixed("energies.", self.energies.state()),
            **prefixed("cracks.", self.cracks.state()),
            **prefixed("chosen.", self.chosen.state()),
            **prefixed("impacts.", self.impacts.state()),
            "origins": np.array([body.origin for body in self.bodies]),
            "slack": self.contact.slack,
            "touch": self.contact.kept,
        }

    def restore(self, state: State) -> None:
        if (self.model.reshaped or self.model.relaid) and not state["model.changed"].any():
            self.be_born_again()
        self.model.restore(unprefixed("model.", state))
        self.melting.restore(unprefixed("melting.", state))
        if self.model.relaid:
            self.renew_contact()
        self.chosen.restore(unprefixed("chosen.", state))
        self.impacts.restore(unprefixed("impacts.", state))
        self._arrived.clear()
        for body, origin in zip(self.bodies, state["origins"], strict=True):
            body.origin = origin
        self.write_surroundings()
        self.contact.resume(state["slack"], state["touch"])
        self.energies.restore(unprefixed("energies.", state))
        self.cracks.restore(unprefixed("cracks.", state))

    def be_born_again(self) -> None:
        """Bodies that have been reshaped since get their first shape back."""
        self.melting.be_born_again()
        self._model, self.melting = None, Melting(self)
        for body in self.bodies:
            body.anchor = Anchor(body.born.unit, body.born.centre, body.born.origin.copy())
            body.appearance.outdate()
            body.reshaped = body.has_melted = False


def phyxels_of(world: MoverWorld) -> PhyxelBodies:
    """What moves the phyxel bodies of a world."""
    return next(mover for body in world.bodies if isinstance(mover := world.mover_of(body), PhyxelBodies))
