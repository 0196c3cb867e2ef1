"""All particle surfaces of a world: each moves on its own, by exact steps, and meets colliders only."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
import warp as wp
from numpy.typing import NDArray

from phyxel.body.holds import DRAG_TIME
from phyxel.body.probes import Probe, SheetProbe
from phyxel.contact.colliders import Collider, Funnel
from phyxel.contact.mold import Mold
from phyxel.contact.table import ColliderTable, top_speed
from phyxel.errors import BlowUpError, PhyxelError
from phyxel.fields import ForceField, SurfaceField, Wind, drawn_to, filled_with
from phyxel.material import Mixture
from phyxel.models.particles.model import ParticleModel
from phyxel.movers.mover import Piece
from phyxel.movers.surroundings import Surroundings
from phyxel.state import State, prefixed, unprefixed
from phyxel.surface.surfels import Surfels

if TYPE_CHECKING:
    from phyxel.body import Body
    from phyxel.world import World

Floats = NDArray[np.float64]

LONGEST_VARYING, LONGEST_LINKED = 1 / 60, 1 / 240
"""Longest step in which something may change, and with links [s]; with neither, a step has any length."""
CROSSED = 0.3
"""Share of the way through a collider, where it is thin, that a particle may go in one step: from its surface well
short of the middle, or it would be put out on the far side."""
SHORTEST = 1e-3
"""Share of the longest step that one before colliders, or under pressure, has at least."""
RESOLVED = 4
"""Cells of a mold's grid that its thinnest parts have."""


class SheetBody:
    """Moves one particle surface among colliders."""

    def __init__(self, world: World, body: Body) -> None:
        self.world, self.body = world, body
        self._model: ParticleModel | None = None
        self._setting = Surroundings(world, body)
        self._colliders = ColliderTable([body.unit], wp.float64, world.device)
        self._held = np.zeros(0, np.int64)
        """particles that are held"""
        self._goal_of = np.zeros(0, np.int64)
        """which of the points of all holds says where each of them goes"""
        self._told: tuple[Any, ...] = ()
        """the steady forces that the model knows of: the even acceleration [m/s²], and fields"""

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

    def take_material(self) -> None:
        """The body got another material."""
        if self._model is not None:
            self._model.set_material(self.body.mixture)
        self._told = ()  # the weight of particles may be another

    def take_hold(self) -> None:
        """Other particles are held from now on. One that several holds have goes with the last of them."""
        if self._model is None:
            return
        taken = np.concatenate([np.zeros(0, np.int64), *(handle.nodes for handle in self.body.handles)])
        self._held, last = np.unique(taken[::-1], return_index=True)
        self._goal_of = len(taken) - 1 - last
        self._model.set_holds(self._held)

    def put_down(self) -> None:
        """See `Mover.put_down`."""
        self.model.stop()
        self._told = ()
        self.surroundings_changed(collider_came=True)

    def surroundings_changed(self, collider_came: bool) -> None:
        """Colliders, fields or gravity are others now."""
        self._setting.arrived |= collider_came

    # Stepping

    def advance(self, dt: float) -> int:
        """Go on by dt [s]; in how many steps."""
        self._set_down()
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
        return taken

    def _set_down(self) -> None:
        self._setting.set_down(0.5 * float(self.body.mixture.number("thickness").max()))

    def _step(self, dt: float, end: float) -> None:
        self._act(end - dt, dt)
        colliders = self.world.colliders
        self._colliders.write(colliders, self.body.origin[None], (end - dt, end), end)
        self.model.step(dt, self._goals(end), self._colliders if colliders else None)
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
        filling = filled_with(acting)
        self.model.set_filling(*(0.0, 1.0) if filling is None else (filling.bulk, filling.amount))
        masses = body.masses
        even = world.gravity + body.force / masses.sum()
        self.model.set_wraps(drawn_to(world.colliders, acting))
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
        self._set_down()
        time, colliders = self.world.time, self.world.colliders
        self._act(time, 0.0)
        self._colliders.write(colliders, self.body.origin[None], (time, time), time)
        goals = self._goals(time + DRAG_TIME)
        try:
            self.model.settle(goals, self._colliders if colliders else None, tolerance)
        except PhyxelError as error:
            raise PhyxelError(f"{self.body.name}: settle: {error}") from None

    # Reading

    def field(self, name: str) -> Floats:
        """See `Mover.field`."""
        body = self.body
        if name in ("u", "v") and self._model is None:
            return np.zeros_like(body.birth) if name == "u" else body.start_velocities / body.unit
        if name == "u":
            return self.model.u
        if name == "v":
            return self.model.v
        if name == "gradient":
            return body.ring.gradient(self.model.u)
        if name == "past":
            return np.broadcast_to(np.eye(3), (len(body.birth), 3, 3))
        raise body.no_solid(f"{name} strain")

    def displacement_at(self, X: Floats) -> Floats:
        """Displacement [m] of (m, 3) reference positions [m], shape (m, 3)."""
        body = self.body
        even = body.origin - body.centre
        return np.broadcast_to(even, X.shape) if self._model is None else SheetProbe(body, X).displacement()

    def diagnostics(self) -> dict[str, Any]:
        """See `Body.diagnostics`."""
        body, model, mass = self.body, self.model, float(self.body.masses.sum())
        elastic, kinetic = model.energies()
        momentum, spin = model.momenta()
        return {
            "mass": mass,
            "momentum": momentum,
            "angular_momentum": spin + np.cross(body.origin, momentum),
            "kinetic": kinetic,
            "elastic": elastic,
            "potential": float(-mass * (body.origin + body.unit * model.middle()) @ self.world.gravity),
            "volume": model.volume(),
        }

    def carry(self, surfels: Surfels) -> None:
        """Move surfels to where the body is."""
        self._setting.carry(surfels, *self.model.shown())

    def walls(self) -> tuple[Any, int]:
        """See `Mover.walls`."""
        return self._setting.walls()

    # Checkpoints

    def state(self) -> State:
        """All that a checkpoint must keep."""
        return prefixed("model.", self.model.state()) | {"origin": self.body.origin}

    def restore(self, state: State) -> None:
        """Take over what `state` gave."""
        self.model.restore(unprefixed("model.", state))
        self.body.origin = state["origin"]
        self._setting.arrived = False
        self._told = ()


class SheetBodies:
    """Moves particle surfaces (`mover.Mover`). They do not feel each other, nor bodies of other models."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.bodies: list[Body] = []
        self.steps = 0
        self._films: dict[Body, SheetBody] = {}

    def add(self, body: Body) -> None:
        """Move one more body from now on."""
        self.bodies.append(body)
        self._films[body] = SheetBody(self.world, body)

    def advance(self, dt: float) -> None:
        self.steps += max(film.advance(dt) for film in self._films.values())

    def set_clock(self, time: float) -> None:
        pass

    def settle(self, tolerance: float, most_steps: int) -> None:
        for film in self._films.values():
            film.settle(tolerance)

    # What has changed

    def material_changed(self, body: Body, before: Mixture) -> None:
        self._films[body].take_material()

    def holds_changed(self, body: Body) -> None:
        self._films[body].take_hold()

    def force_changed(self, body: Body) -> None:
        pass

    def surroundings_changed(self, collider_came: bool) -> None:
        for film in self._films.values():
            film.surroundings_changed(collider_came)

    def put_down(self, bodies: list[Body]) -> None:
        for body in bodies:
            self._films[body].put_down()

    # What never happens to a surface: it neither cracks nor falls apart

    def cut(self, body: Body) -> None:
        raise body.no_solid("cut")

    def divide(self, body: Body, pieces: list[Body], nodes: list[NDArray[np.int64]]) -> None:
        raise body.no_solid("fall apart")

    def parts_of(self, body: Body) -> NDArray[np.int32]:
        return np.zeros(len(body.birth), np.int32)

    def crumbs_of(self, body: Body, parts: list[NDArray[np.int64]]) -> NDArray[np.bool_]:
        return np.zeros(len(parts), bool)

    # Reading

    def momenta_of(self, body: Body, nodes: NDArray[np.int64]) -> tuple[Floats, Floats]:
        momenta = body.masses[nodes, None] * body.velocities[nodes]
        return momenta.sum(axis=0), np.cross(body.positions[nodes] - body.origin, momenta).sum(axis=0)

    def field(self, body: Body, name: str) -> Floats:
        return self._films[body].field(name)

    def stress_of(self, body: Body) -> Floats:
        raise body.no_solid("stress")

    def displacement_at(self, body: Body, X: Floats) -> Floats:
        return self._films[body].displacement_at(X)

    def probe(self, body: Body, X: Floats) -> Probe:
        return SheetProbe(body, X)

    def diagnostics(self, body: Body) -> dict[str, Any]:
        return self._films[body].diagnostics()

    def pieces(self) -> list[Piece]:
        return [{body: np.arange(len(body.birth))} for body in self._films]

    def carry(self, body: Body, surfels: Surfels) -> None:
        self._films[body].carry(surfels)

    def walls(self, body: Body) -> tuple[Any, int]:
        return self._films[body].walls()

    # Checkpoints

    def state(self) -> State:
        states = [prefixed(f"body{k}.", film.state()) for k, film in enumerate(self._films.values())]
        return {name: array for state in states for name, array in state.items()}

    def restore(self, state: State) -> None:
        for k, film in enumerate(self._films.values()):
            film.restore(unprefixed(f"body{k}.", state))


def _thinnest(collider: Collider) -> float:
    """How far it is through a collider where that is thin [m]."""
    if isinstance(collider, Funnel):
        return collider.thickness
    if isinstance(collider, Mold):
        return RESOLVED * collider.sizes[0]
    lower, upper = collider.box
    return float((upper - lower).min())
