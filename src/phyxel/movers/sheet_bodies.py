"""All particle surfaces of a world: each moves on its own among colliders, by exact steps, where no body is near."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import warp as wp
from numpy.typing import NDArray

from phyxel.body import Body
from phyxel.body.holds import DRAG_TIME
from phyxel.body.probes import Probe, SheetProbe
from phyxel.body.protocols import Change, momenta_of
from phyxel.contact.colliders import Collider, Funnel, Ground
from phyxel.contact.mold import Mold
from phyxel.contact.table import ColliderTable, top_speed
from phyxel.errors import BlowUpError, PhyxelError, tell
from phyxel.fields import Filling, ForceField, SurfaceField, Wind, Wrap
from phyxel.material import Mixture
from phyxel.models.particles.met import MetFlight, MetSteps
from phyxel.models.particles.model import ParticleModel
from phyxel.models.particles.sheet import LARGEST
from phyxel.movers.each import diagnosed, restore_states, states_of
from phyxel.movers.mover import MoverWorld, Parts, Piece
from phyxel.movers.surroundings import Surroundings
from phyxel.state import State, prefixed, unprefixed
from phyxel.surface.motion import Motion

Floats = NDArray[np.float64]

LONGEST_VARYING, LONGEST_LINKED = 1 / 60, 1 / 240
"""Longest step in which something may change, and with links [s]; with neither, a step has any length."""
CROSSED = 0.3
"""Share of the way through a collider, where it is thin, that a particle may go in one step: from its surface well
short of the middle, or it would be put out on the far side."""
SHORTEST = 1e-3
"""Share of the longest step that one before colliders, or under pressure, has at least."""
LEFT_OVER = 1.0
"""Force left over by links, in what they pull with, from which on that is said."""
RESOLVED = 4
"""Cells of a mold's grid that its thinnest parts have."""


class SheetBody:
    """Moves one particle surface among colliders."""

    def __init__(self, world: MoverWorld, body: Body) -> None:
        self.world, self.body = world, body
        self._model: ParticleModel | None = None
        self._met: MetSteps | None = None
        """its steps while it touches something"""
        self._surroundings = Surroundings(world, body)
        self._colliders = ColliderTable([body.unit], wp.float64, world.device)
        self._held = np.zeros(0, np.int64)
        """particles that are held"""
        self._goal_of = np.zeros(0, np.int64)
        """which of the points of all holds says where each of them goes"""
        self._told: tuple[Any, ...] = ()
        """the steady forces that the model knows of: the even acceleration [m/s²], and fields"""
        self._doubted = False
        """whether it has been said that links do not come into equilibrium"""

    @property
    def model(self) -> ParticleModel:
        """What moves the body, made when first needed."""
        if self._model is None:
            body = self.body
            assert body.sheet is not None
            self._model = ParticleModel(body.sheet, body.unit, body.start_velocities / body.unit, self.world.device)
            self._model.set_material(body.mixture)
            self.take_hold()
        return self._model

    # What has changed

    def changed(self, change: Change) -> None:
        """See `BodyMover.changed`."""
        match change:
            case Change.MATERIAL:
                if self._model is not None:
                    self._model.set_material(self.body.mixture)
                self._told = ()  # the weight of particles may be another
            case Change.HOLDS:
                self.take_hold()
            case Change.CRACK:
                raise self.body.no_solid("cut")
            case Change.PLACE:
                self.model.stop()
                self._told = ()
                self.surroundings_changed(collider_came=True)

    def take_hold(self) -> None:
        """Other particles are held from now on. One that several holds have goes with the last of them."""
        if self._model is None:
            return
        taken = np.concatenate([np.zeros(0, np.int64), *(handle.nodes for handle in self.body.handles)])
        self._held, last = np.unique(taken[::-1], return_index=True)
        self._goal_of = len(taken) - 1 - last
        self._model.set_holds(self._held)

    def surroundings_changed(self, collider_came: bool) -> None:
        """Colliders, fields or gravity are others now."""
        self._surroundings.arrived |= collider_came

    # Stepping

    def advance(self, dt: float) -> int:
        """Go on by dt [s]; in how many steps."""
        self.set_down()
        start, left, taken = self.world.time, dt, 0
        while left > 0:
            steps = max(1, math.ceil(left / self._longest_step(start + dt - left, left) * (1 - 1e-9)))
            step, left = left / steps, left * (steps - 1) / steps
            self._step(step, start + dt - left)
            taken += 1
        if not math.isfinite(self.model.top_speed()):
            raise BlowUpError(
                f"{self.body.name}: blew up before t = {start + dt:.4g} s. Try a softer membrane, more damping, or "
                "gentler drags; the last good frame is kept"
            )
        self._tell_of_what_is_left()
        return taken

    def _tell_of_what_is_left(self) -> None:
        """Say once that links do not come into equilibrium."""
        if self._doubted or (left := self.model.left_over()) < LEFT_OVER:
            return
        self._doubted = True
        few = len(self.body.birth) <= LARGEST
        remedy = "" if few else f" Up to {LARGEST} particles are solved for exactly: take fewer."
        tell(
            f"{self.body.name}: its links do not come into equilibrium within a step: forces of {left:.2g} times what "
            f"they pull with are left over, so it may bend and stretch more than its data sheet says, or tremble."
            f"{remedy} A softer membrane (young, bending) is solved for sooner"
        )

    def set_down(self) -> None:
        """See `Surroundings.set_down`."""
        self._surroundings.set_down(0.5 * float(self.body.mixture.number("thickness").max()))

    def _step(self, dt: float, end: float) -> None:
        self._act(end - dt, dt)
        colliders = self.world.colliders
        self._colliders.write(colliders, self.body.origin[None], (end - dt, end), end)
        self.model.step(dt, self._goals(end), self._colliders if colliders else None)
        self.body.follow_ramp(end)

    def depart(self, dt: float, end: float) -> MetFlight:
        """Begin a step of dt [s] until `end` that something else solves for."""
        self._act(end - dt, dt)
        self._colliders.write(self.world.colliders, self.body.origin[None], (end - dt, end), end)
        if self._met is None:
            self._met = MetSteps(self.model)
        return self._met.depart(dt, self._goals(end), self._colliders)

    def land(self, x: Floats, v: Floats, pull: Floats, end: float) -> None:
        """End that step at x (n, 3) [m] from the body's origin with v (n, 3) [m/s]."""
        assert self._met is not None
        self._met.land(x, v, pull, self._colliders)
        self.body.follow_ramp(end)

    def _longest_step(self, time: float, left: float) -> float:
        """[s]. As long as nothing changes, each particle goes where it goes in one step."""
        body, longest = self.body, math.inf
        ramp = body.substance.ramp
        if (
            any(not field.steady for field in self._acting())
            or self.world.colliders
            or any(not handle.still for handle in body.handles)
            or (ramp is not None and time < ramp.finish)
        ):
            longest = LONGEST_VARYING
        assert body.sheet is not None
        if len(body.sheet.elements):
            longest = LONGEST_LINKED
        blown = sum(field.pressure for field in self._acting() if isinstance(field, Wind))
        longest = min(longest, max(self.model.leans_within(blown), SHORTEST * LONGEST_VARYING))
        bars = [one for one in self.world.colliders if isinstance(one, Collider)]  # the ground has no far side
        if bars:
            self._act(time, min(left, longest))
        within = min((self._crossed_within(one, time, min(left, longest)) for one in bars), default=math.inf)
        return min(longest, max(within, SHORTEST * longest))

    def _crossed_within(self, bar: Collider, time: float, step: float) -> float:
        """Time in which no particle gets through a collider [s], or through the ball around it that it is outside of;
        infinite if none can within `step` [s]."""
        body, model, moving = self.body, self.model, top_speed(bar, time, time + step, looks=2)
        thin, pushed = CROSSED * _thinnest(bar), body.unit * model.top_acceleration()
        if (body.unit * model.top_speed() + moving + 0.5 * pushed * step) * step <= thin:
            return math.inf
        x = body.origin + (body.birth - body.centre) + body.unit * model.u
        way = np.maximum(np.linalg.norm(x - bar.pose(time)[0], axis=1) - bar.extent, thin)
        v = body.unit * np.linalg.norm(model.v, axis=1) + moving
        twice = v + np.sqrt(v**2 + 2 * pushed * way)  # v t + ½ a t² = way
        return float((2 * way / np.maximum(twice, np.finfo(float).tiny)).min())

    def _acting(self) -> list[ForceField]:
        return [field for field in self.world.acting if field.acts_on(self.body)]

    def _act(self, time: float, dt: float) -> None:
        """Tell the model what acts on its particles within dt [s] from a time [s] on."""
        body, world, acting = self.body, self.world, self._acting()
        filling = _filled_with(acting)
        self.model.set_filling(*(0.0, 1.0) if filling is None else (filling.bulk, filling.amount))
        masses = body.masses
        even = world.gravity + body.force / masses.sum()
        self.model.set_wraps(_drawn_to(world.colliders, acting))
        pushing = [field for field in acting if not isinstance(field, SurfaceField)]
        told = (*even.tolist(), *pushing) if all(field.steady for field in pushing) else ()
        if told and told == self._told:
            return
        self._told = told
        # As they will be in the middle of the step, or they would lag and drive what circles a centre outward.
        v, u = self.model.v, self.model.u
        x = body.origin + (body.birth - body.centre) + body.unit * (u + 0.5 * dt * v)
        accelerations = [field.acceleration(body, x, body.unit * v, time + 0.5 * dt) for field in pushing]
        self.model.set_force(masses[:, None] * sum(accelerations, start=even))

    def _goals(self, time: float) -> Floats:
        """Displacements of what is held at a time [s], in units, shape (k, 3)."""
        body = self.body
        there = np.concatenate([np.zeros((0, 3)), *(handle.goals(time) for handle in body.handles)])[self._goal_of]
        return (there - body.origin - (body.birth[self._held] - body.centre)) / body.unit

    def settle(self, tolerance: float) -> None:
        """Relax to static equilibrium at this time, to `tolerance` spacings."""
        self.set_down()
        time, colliders = self.world.time, self.world.colliders
        self._act(time, 0.0)
        self._colliders.write(colliders, self.body.origin[None], (time, time), time)
        goals = self._goals(time + DRAG_TIME)
        try:
            self.model.settle(goals, self._colliders if colliders else None, tolerance)
        except PhyxelError as error:
            raise PhyxelError(f"{self.body.name}: settle: {error}") from None

    # Reading (`body.protocols.Nodal`)

    @property
    def unmoved(self) -> bool:
        return self._model is None

    @property
    def X(self) -> Floats:
        body = self.body
        return (body.birth - body.centre) / body.unit

    @property
    def u(self) -> Floats:
        return np.zeros_like(self.body.birth) if self._model is None else self._model.u

    @property
    def v(self) -> Floats:
        return self.body.start_velocities / self.body.unit if self._model is None else self._model.v

    @property
    def gradient(self) -> Floats:
        return self.body.ring.gradient(self.u)

    @property
    def past(self) -> Floats:
        return np.broadcast_to(np.eye(3), (len(self.body.birth), 3, 3))

    @property
    def plastic(self) -> Floats:
        raise self.body.no_solid("plastic strain")

    @property
    def stress(self) -> Floats:
        raise self.body.no_solid("stress")

    def momenta(self, nodes: NDArray[np.int64]) -> tuple[Floats, Floats]:
        return momenta_of(self.body, nodes)

    def motion(self) -> Motion:
        """See `BodyMover.motion`."""
        return self._surroundings.motion(*self.model.shown())

    # Checkpoints

    def state(self) -> State:
        """All that a checkpoint must keep."""
        return prefixed("model.", self.model.state()) | {"origin": self.body.origin}

    def restore(self, state: State) -> None:
        """Take over what `state` gave."""
        self.model.restore(unprefixed("model.", state))
        self.body.origin = state["origin"]
        self._surroundings.arrived = False
        self._told = ()


class SheetBodies:
    """Moves particle surfaces (`mover.Mover`), each by itself; `SheetEncounters` lets them meet what is near."""

    integrator = "exact"

    def __init__(self, world: MoverWorld) -> None:
        self.world = world
        self.bodies: list[Body] = []
        self.steps = 0
        self._sheets: dict[Body, SheetBody] = {}

    def add(self, body: Body) -> None:
        self.bodies.append(body)
        self._sheets[body] = SheetBody(self.world, body)

    def sheet_of(self, body: Body) -> SheetBody:
        """What moves one of the bodies, by itself."""
        return self._sheets[body]

    def model_of(self, body: Body) -> ParticleModel:
        """What moves one of the bodies."""
        return self._sheets[body].model

    def advance(self, dt: float, bodies: Sequence[Body] | None = None) -> None:
        """Go on by dt [s], all or some of them."""
        self.steps += max((self._sheets[body].advance(dt) for body in self._some(bodies)), default=1)

    def _some(self, bodies: Sequence[Body] | None) -> Sequence[Body]:
        return self.bodies if bodies is None else bodies

    def set_clock(self, time: float) -> None:
        pass

    def settle(self, tolerance: float, most_steps: int) -> None:
        for sheet in self._sheets.values():
            sheet.settle(tolerance)

    def changed(self, change: Change, body: Body, before: Mixture | None = None) -> None:
        self._sheets[body].changed(change)

    def surroundings_changed(self, collider_came: bool) -> None:
        for sheet in self._sheets.values():
            sheet.surroundings_changed(collider_came)

    def set_down(self) -> None:
        for sheet in self._sheets.values():
            sheet.set_down()

    def parts(self, body: Body) -> Parts:
        return Parts(np.zeros(len(body.birth), np.int32), np.zeros(1, bool))

    def divide(self, body: Body, pieces: Sequence[Body], nodes: Sequence[NDArray[np.int64]]) -> None:
        raise body.no_solid("fall apart")

    # Reading

    def nodal(self, body: Body) -> SheetBody:
        return self._sheets[body]

    def motion(self, body: Body) -> Motion:
        return self._sheets[body].motion()

    def probe(self, body: Body, X: Floats) -> Probe:
        return SheetProbe(body, X)

    def diagnostics(self, bodies: Sequence[Body]) -> list[dict[str, Any]]:
        return [diagnosed(body, self.model_of(body), self.world.gravity) for body in bodies]

    def pieces(self) -> list[Piece]:
        return [{body: np.arange(len(body.birth))} for body in self._sheets]

    def longest_tick(self) -> float:
        return math.inf

    # Checkpoints

    def state(self) -> State:
        return states_of(self._sheets.values())

    def restore(self, state: State) -> None:
        restore_states(self._sheets.values(), state)


def _thinnest(collider: Collider) -> float:
    """How far it is through a collider where that is thin [m]."""
    if isinstance(collider, Funnel):
        return collider.thickness
    if isinstance(collider, Mold):
        return RESOLVED * collider.sizes[0]
    lower, upper = collider.box
    return float((upper - lower).min())


def _filled_with(fields: Iterable[ForceField]) -> Filling | None:
    """One filling that presses as all among some fields do together."""
    fillings = [field for field in fields if isinstance(field, Filling)]
    if not fillings:
        return None
    bulk = sum(one.bulk for one in fillings)
    return Filling(bulk, sum(one.bulk * one.amount for one in fillings) / bulk)


def _drawn_to(colliders: Sequence[Ground | Collider], fields: Iterable[ForceField]) -> Floats:
    """Pressure with which wraps among some fields draw to each of some colliders [Pa], shape (k,)."""
    wraps = [field for field in fields if isinstance(field, Wrap)]
    return np.array([sum(wrap.pressure for wrap in wraps if wrap.collider is one) for one in colliders], np.float64)
