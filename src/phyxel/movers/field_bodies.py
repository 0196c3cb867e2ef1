"""Bodies that have a displacement field each, Galerkin, modal and rigid ones: they step together, then they meet
(physics 15.8)."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import cKDTree

from phyxel import device as dev
from phyxel.body import Body
from phyxel.body.holds import DRAG_TIME, Handle
from phyxel.body.probes import FieldProbe, Probe
from phyxel.body.protocols import Change
from phyxel.contact.colliders import Collider
from phyxel.contact.touch import ColliderQuery
from phyxel.errors import BlowUpError, PhyxelError
from phyxel.material import Mixture
from phyxel.meeting.meeting import Meeting
from phyxel.meeting.memory import ContactMemory
from phyxel.meeting.outline import POINTS, Outline
from phyxel.meeting.party import Party
from phyxel.models.protocol import BrittleModel, FieldModel, Goal, Hold, Tangible
from phyxel.movers.each import diagnosed, restore_states, states_of
from phyxel.movers.galerkin_cracks import GalerkinCracks
from phyxel.movers.mover import MoverWorld, Parts, Piece
from phyxel.movers.outlines import outline_of
from phyxel.movers.surroundings import Surroundings
from phyxel.points.sampling import scattered
from phyxel.state import State, prefixed, unprefixed
from phyxel.surface.motion import Motion

Floats = NDArray[np.float64]

FEW = 4
"""Nodes below which what is left of a body is a crumb, whatever its shape."""
THINNEST = 0.25
"""Root mean square distance of nodes from the plane nearest to them all, over that between neighbours, below which
they are a crumb: two layers have a half."""
LONGEST_STEP = 0.01
"""[s]"""
CROSSED = 0.5
"""Node spacings that a body may go in one step where there is something with a far side."""


class FieldBody:
    """Moves one body among colliders (`body.protocols.Nodal` of its nodes); `FieldBodies` lets bodies meet."""

    def __init__(self, world: MoverWorld, body: Body) -> None:
        self.world, self.body = world, body
        self._model: FieldModel | None = None
        self._cracks: GalerkinCracks | None = None
        self._surroundings = Surroundings(world, body)
        self._surroundings.arrived = body.thrown is None
        self.mass = float(body.masses.sum())
        """[kg]"""
        self._even = np.full((1, 3), np.nan)
        """acceleration of all nodes by gravity and force [1/s²], shape (n, 3)"""
        self._fit: Callable[[Floats], Floats] | None = None
        """takes accelerations around the nodes to coefficients"""
        self.with_others = False
        """whether it meets colliders together with other bodies, not within its own step"""

    @property
    def model(self) -> FieldModel:
        """What moves the body, made when first needed."""
        if self._model is None:
            assert self.body.kind.make is not None
            self.take(self.body.kind.make(self.body, self.world.device))
        assert self._model is not None
        return self._model

    def take(self, model: FieldModel) -> None:
        """Be moved by this model."""
        body = self.body
        model.set_material(body.mixture, body.shape.rotation)
        model.set_holds(self._holds())
        self._model = model
        if isinstance(model, BrittleModel):
            self._cracks = GalerkinCracks(body, model)

    @property
    def around(self) -> ColliderQuery:
        """The colliders around it."""
        return self._surroundings.around

    def parted(self, piece: Body, nodes: NDArray[np.int64]) -> FieldBody:
        """What moves a piece that has these nodes (k,) of the body from now on; the body may be that piece."""
        assert self._cracks is not None
        new = FieldBody(self.world, piece)
        new._surroundings.arrived = False
        faces = np.asarray(piece.surfels.carried.shape.points[len(piece.cloud) :], np.float64)
        if len(faces):
            chosen, count = scattered(faces, POINTS, POINTS)
            faces = faces[chosen[:count]]
        new.take(self._cracks.model.part(piece.space, nodes, piece.outermost, faces))
        return new

    # What has changed

    def changed(self, change: Change) -> None:
        """See `BodyMover.changed`."""
        match change:
            case Change.MATERIAL:
                with dev.one_blas_thread():
                    self.model.set_material(self.body.mixture, self.body.shape.rotation)
                self.mass = float(self.body.masses.sum())
                self._fit = None
            case Change.HOLDS if self._model is not None:
                with dev.one_blas_thread():  # as in a step: a resumed run does it there, and must get the same bits
                    self._model.set_holds(self._holds())
            case Change.CRACK:
                _ = self.model
                if self._cracks is not None:
                    self._cracks.follow()
                self._fit = None
            case Change.PLACE:
                with dev.one_blas_thread():
                    self.model.stop()
                self.surroundings_changed(collider_came=True)

    def surroundings_changed(self, collider_came: bool) -> None:
        """Colliders, fields or gravity are others now."""
        self._surroundings.place_now()
        self._surroundings.arrived |= collider_came

    def _holds(self) -> list[Hold]:
        body = self.body
        return [handle.in_units(body.centre, body.unit) for handle in body.handles]

    def _goals(self, time: float) -> list[Goal]:
        body = self.body

        def goal(handle: Handle) -> Goal:
            there = handle.goals(time) - body.origin
            return Goal((there - (handle.points - body.centre)) / body.unit, handle.turn(time))

        return [goal(handle) for handle in body.handles]

    # Stepping

    def set_clock(self, time: float) -> None:
        self._surroundings.place(time, time)

    def step(self, dt: float, end: float) -> None:
        """Go on by dt [s] until `end`."""
        self._surroundings.place(end - dt, end)
        push, goals = self._push(end - 0.5 * dt, 0.5 * dt), self._goals(end)
        try:
            self.model.step(dt, push, goals, None if self.with_others else self._surroundings.feel)
        except PhyxelError as error:
            raise BlowUpError(
                f"{self.body.name}: blew up before t = {end:.4g} s: {error}. Try a softer material, more damping, or "
                "gentler drags; the last good frame is kept"
            ) from error

    def finish(self, dt: float, end: float) -> None:
        """A step of dt [s] until `end` is done, meetings with other bodies, too."""
        if self._cracks is not None:
            self._cracks.advance(dt)
        self.body.follow_ramp(end)

    def longest_step(self) -> float:
        """[s]. Only the ground has no far side that one could come out of."""
        longest = LONGEST_STEP if self._cracks is None else min(LONGEST_STEP, self._cracks.longest)
        if any(isinstance(one, Collider) for one in self.world.colliders):
            speed = float(np.linalg.norm(self.model.v, axis=1).max())
            longest = min(longest, max(CROSSED / max(speed, 1e-9), 1e-2 * longest))
        return longest

    def _push(self, time: float, ahead: float = 0.0) -> Floats:
        """Acceleration of the nodes by gravity, force and fields [1/s²], shape (n, 3); fields as they are at a time a
        little ahead of now [s], where nodes are by then: did they lag, they would drive what circles outward."""
        body = self.body
        even = (self.world.gravity + body.force / self.mass) / body.unit
        fields = [field for field in self.world.acting if field.acts_on(body)]
        if not np.array_equal(self._even[0], even):
            self._even = np.tile(even, (len(body.birth), 1))
        if not fields:
            return self._even
        if self._fit is None:
            self._fit = body.space.fit(body.mixture.number("density")[body.space.owner])
        v = body.velocities
        x = body.positions + ahead * v
        acting = np.sum([field.acceleration(body, x, v, time) for field in fields], axis=0)
        return self._even + self._fit(acting) / body.unit

    def set_down(self) -> None:
        """See `Surroundings.set_down`."""
        self._surroundings.set_down()

    def settle(self, tolerance: float) -> None:
        """Relax to static equilibrium at this time, to `tolerance` spacings."""
        self.set_down()
        time = self.world.time
        self._surroundings.place_now()
        with dev.one_blas_thread():
            self.model.settle(self._push(time), self._goals(time + DRAG_TIME), self._surroundings.feel, tolerance)

    # Reading (`body.protocols.Nodal`)

    @property
    def unmoved(self) -> bool:
        return self._model is None and self.body.thrown is None

    @property
    def X(self) -> Floats:
        body = self.body
        return (body.birth - body.centre) / body.unit

    @property
    def u(self) -> Floats:
        if self.unmoved:  # taking hold must not make a model that does not know of the hold
            return np.zeros_like(self.body.birth)
        return self.model.displacement(self.body.space.at_nodes)

    @property
    def v(self) -> Floats:
        return np.asarray(self.body.space.at_nodes.values @ self.model.v)

    @property
    def gradient(self) -> Floats:
        return self.model.gradient(self.body.space.at_nodes)

    @property
    def past(self) -> Floats:
        return np.broadcast_to(np.eye(3), (len(self.body.birth), 3, 3))

    @property
    def plastic(self) -> Floats:
        return self.model.plastic(self.body.space.at_nodes)

    @property
    def stress(self) -> Floats:
        mixture = self.body.mixture
        return self.model.stress(self.body.space.at_nodes, mixture, mixture.which)

    def momenta(self, nodes: NDArray[np.int64]) -> tuple[Floats, Floats]:
        assert self._cracks is not None
        return self._cracks.model.momenta(nodes)

    def motion(self) -> Motion:
        """See `BodyMover.motion`."""
        return self._surroundings.motion(*self.model.shown())

    # Checkpoints

    def state(self) -> State:
        model = prefixed("model.", self.model.state())
        cracks = {} if self._cracks is None else prefixed("cracks.", self._cracks.state())
        return model | cracks | {"origin": self.body.origin}

    def restore(self, state: State) -> None:
        with dev.one_blas_thread():  # as in a step: what it has inverted has the same bits
            self.model.restore(unprefixed("model.", state))
        if self._cracks is not None:
            self._cracks.restore(unprefixed("cracks.", state))
        self.body.origin = state["origin"]
        self._surroundings.arrived = False
        self._surroundings.place_now()


class FieldBodies:
    """Moves bodies that have a model each (`mover.Mover`). They touch those of the models that their own meets."""

    integrator = "implicit"

    def __init__(self, world: MoverWorld) -> None:
        self.world = world
        self.bodies: list[Body] = []
        self.steps = 0
        self._each: dict[Body, FieldBody] = {}
        self._outlines: dict[Body, Outline] = {}
        self._memory = ContactMemory()
        self._attachments = world.attachments
        self._around = ColliderQuery(1.0)
        """colliders, in metres about the world's origin"""

    def add(self, body: Body) -> None:
        self.bodies.append(body)
        self._each[body] = FieldBody(self.world, body)

    def model_of(self, body: Body) -> FieldModel:
        """What moves one of the bodies."""
        return self._each[body].model

    def divide(self, body: Body, pieces: Sequence[Body], nodes: Sequence[NDArray[np.int64]]) -> None:
        whole = self._each.pop(body)
        self.bodies.remove(body)
        self._outlines.pop(body, None)
        self._memory.clear()
        for piece, own in zip(pieces, nodes, strict=True):
            self._each[piece] = whole.parted(piece, own)
        self.bodies += pieces

    def parts(self, body: Body) -> Parts:
        label = body.space.parts()
        crumbs = [is_flat(body.space.nodes[label == part]) for part in range(label.max() + 1)]
        return Parts(label, np.array(crumbs))

    # What has changed

    def changed(self, change: Change, body: Body, before: Mixture | None = None) -> None:
        self._each[body].changed(change)

    def surroundings_changed(self, collider_came: bool) -> None:
        for one in self._each.values():
            one.surroundings_changed(collider_came)

    def set_down(self) -> None:
        for one in self._each.values():
            one.set_down()

    # Stepping

    def set_clock(self, time: float) -> None:
        for one in self._each.values():
            one.set_clock(time)

    def advance(self, dt: float) -> None:
        self.set_down()
        start, left = self.world.time, dt
        while left > 0:
            meeting = self.meeting()
            substeps = max(1, math.ceil(left / meeting.longest_step * (1 - 1e-9)))
            step, left = left / substeps, left * (substeps - 1) / substeps
            end = start + dt - left
            self.step(meeting, step, end)
            self.finish(step, end)

    def step(self, meeting: Meeting, dt: float, end: float, load: Callable[[], None] | None = None) -> None:
        """Let all go on by dt [s] until `end`, and meet each other and colliders, under a `load` of others."""
        with dev.one_blas_thread():
            for one in self._each.values():
                one.step(dt, end)
        self._around.place(self.world.colliders, np.zeros(3), (end - dt, end), end)
        with dev.one_blas_thread():
            meeting.resolve(dt, self._around, load)
        for ties in meeting.ties:
            self._attachments.bear(ties, meeting.parties, self._memory.recalled(ties.key)[0], end)
        self.steps += 1

    def finish(self, dt: float, end: float) -> None:
        """A step of dt [s] until `end` is done, meetings with all others, too."""
        for one in self._each.values():
            one.finish(dt, end)

    def meeting(self, company: frozenset[Body] = frozenset()) -> Meeting:
        """Of those that can touch others, in the longest step that they can take. Says who meets colliders with others:
        with those of other movers, if it is in their company, as well."""
        longest = min(one.longest_step() for one in self._each.values())
        able = [body for body in self.bodies if body.kind.meets]
        if len(able) == 1 and not company and not self._model_that_meets(able[0]).with_others:
            able = []
        meeting = Meeting(
            [self._party(body) for body in able], longest, float(np.linalg.norm(self.world.gravity)), self._memory
        )
        number = {body: k for k, body in enumerate(able)}
        meeting.tie(self._attachments.among(number, meeting.parties))
        for k, body in enumerate(able):
            model, one = self._model_that_meets(body), self._each[body]
            one.with_others = model.with_others or (
                model.with_others is None and (k in meeting.together or body in company)
            )
            meeting.parties[k].around = one.around if one.with_others else None
        meeting.bodies = able
        return meeting

    def _model_that_meets(self, body: Body) -> Tangible:
        return cast(Tangible, self.model_of(body))

    def _party(self, body: Body) -> Party:
        model = self._model_that_meets(body)
        young = float(body.mixture.number("young").max()) if body.kind.bends else math.inf
        damping = float(body.mixture.number("damping").min()) if body.kind.bends else 0.0
        about = body.unit, body.origin, self._each[body].mass, body.friction, body.restitution
        party = Party(model, lambda: self._outline(body), *about, young, damping)
        party.family = body.whole if body.has_cracked else ""
        return party

    def _outline(self, body: Body) -> Outline:
        if body not in self._outlines:
            self._outlines[body] = outline_of(body)
        outline = self._outlines[body]
        outline.follow(body.space, body.space.at)
        return outline

    def settle(self, tolerance: float, most_steps: int) -> None:
        """Each to its own rest: they do not feel each other."""
        for one in self._each.values():
            one.settle(tolerance)

    # Reading

    def nodal(self, body: Body) -> FieldBody:
        return self._each[body]

    def motion(self, body: Body) -> Motion:
        return self._each[body].motion()

    def probe(self, body: Body, X: Floats) -> Probe:
        return FieldProbe(body, self.model_of(body), X)

    def diagnostics(self, bodies: Sequence[Body]) -> list[dict[str, Any]]:
        return [diagnosed(body, self.model_of(body), self.world.gravity) for body in bodies]

    def pieces(self) -> list[Piece]:
        return [{body: np.arange(len(body.birth))} for body in self._each]

    def longest_tick(self) -> float:
        return LONGEST_STEP

    # Checkpoints

    def state(self) -> State:
        return states_of(self._each.values()) | prefixed("contacts.", self._memory.state())

    def restore(self, state: State) -> None:
        restore_states(self._each.values(), state)
        self._memory.restore(unprefixed("contacts.", state))


def is_flat(places: Floats) -> bool:
    """Whether places (n, 3) are so few, or lie so nearly in a plane, that they determine no linear field."""
    if len(places) < FEW:
        return True
    spread = np.linalg.svd(places - places.mean(axis=0), compute_uv=False)
    apart = np.median(cKDTree(places).query(places, 2)[0][:, 1])
    return bool(spread[2] < THINNEST * apart * np.sqrt(len(places)))
