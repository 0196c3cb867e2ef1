"""A body that moves on its own, by a Galerkin or a modal model: what it is told of the world, and what it tells."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from phyxel import device as dev
from phyxel.body.holds import DRAG_TIME, Handle
from phyxel.body.probes import FieldProbe, Probe
from phyxel.contact.colliders import Collider
from phyxel.errors import BlowUpError, PhyxelError
from phyxel.material import Mixture
from phyxel.models.field_contact import scattered
from phyxel.models.galerkin.model import GalerkinModel
from phyxel.models.modal.model import ModalModel
from phyxel.models.protocol import FieldModel, Goal, Hold
from phyxel.models.rigid.model import RigidModel
from phyxel.movers.galerkin_cracks import GalerkinCracks
from phyxel.movers.surroundings import Surroundings
from phyxel.state import State, prefixed, unprefixed
from phyxel.surface.surfels import Surfels

if TYPE_CHECKING:
    from phyxel.body import Body
    from phyxel.world import World

Floats = NDArray[np.float64]

LONGEST_STEP = 0.01
"""[s]"""
CROSSED = 0.5
"""Node spacings that a body may go in one step where there is something with a far side."""


class FieldBody:
    """Moves one body among colliders; what it does to other bodies is for the company it is in."""

    def __init__(self, world: World, body: Body) -> None:
        self.world, self.body = world, body
        self._model: FieldModel | None = None
        self._fracturing: GalerkinCracks | None = None
        self._setting = Surroundings(world, body)
        self._mass = float(body.masses.sum())
        self._even = np.full((1, 3), np.nan)
        """acceleration of all nodes by gravity and force [1/s²], shape (n, 3)"""
        self._fit: Callable[[Floats], Floats] | None = None
        """takes accelerations around the nodes to coefficients"""

    @property
    def model(self) -> FieldModel:
        """What moves the body, made when first needed."""
        if self._model is None:
            self._take(self._made())
        assert self._model is not None
        return self._model

    def _take(self, model: FieldModel) -> None:
        body = self.body
        model.set_material(body.mixture, body.rotation)
        model.set_holds(self._holds())
        self._model = model
        if isinstance(model, GalerkinModel):
            self._fracturing = GalerkinCracks(body, model)

    def parted(self, body: Body, nodes: NDArray[np.int64]) -> FieldBody:
        """What moves a piece that has these nodes (k,) of its body from now on; its body may be that piece."""
        assert isinstance(self.model, GalerkinModel)
        solo = FieldBody(self.world, body)
        solo._setting.arrived = False
        faces = body.surfels.carried.shape.points[len(body.cloud) :]
        if len(faces):
            chosen, count = scattered(np.asarray(faces, np.float64))
            faces = faces[chosen[:count]]
        solo._take(self.model.part(body.space, nodes, body.outermost, np.asarray(faces, np.float64)))
        return solo

    def throw(self, positions: Floats, momentum: Floats, spin: Floats) -> None:
        """Let a crumb start with nodes at about these positions [m], (n, 3), with this momentum [kg m/s] and angular
        momentum about its origin [kg m²/s]."""
        body, model = self.body, self.model
        assert isinstance(model, RigidModel)
        self._setting.arrived = False
        model.throw((positions - body.origin) / body.unit, momentum, spin)

    def momenta_of(self, nodes: NDArray[np.int64]) -> tuple[Floats, Floats]:
        """Momentum [kg m/s] and angular momentum about the body's origin [kg m²/s] of some nodes."""
        assert isinstance(self.model, GalerkinModel)
        return self.model.momenta(nodes)

    def _made(self) -> FieldModel:
        body = self.body
        if body.model == "rigid":
            return RigidModel(body.space, body.unit, body.start_velocities / body.unit, self.world.device)
        known = (body.space, body.unit, body.start_velocities / body.unit, body.outermost)
        if body.model == "modal":
            return ModalModel(*known, self.world.device, body.modes)
        return GalerkinModel(*known, self.world.device)

    # What has changed

    def material_changed(self, body: Body, before: Mixture) -> None:
        with dev.one_blas_thread():
            self.model.set_material(body.mixture, body.rotation)
        self._mass = float(body.masses.sum())
        self._fit = None

    def holds_changed(self, body: Body) -> None:
        if self._model is not None:
            with dev.one_blas_thread():  # as in a step: a resumed run does it there, and must get the same bits
                self._model.set_holds(self._holds())

    def force_changed(self, body: Body) -> None:
        pass

    def cut(self, body: Body) -> None:
        _ = self.model
        if self._fracturing is not None:
            self._fracturing.follow()
        self._fit = None

    def put_down(self) -> None:
        """See `Mover.put_down`."""
        with dev.one_blas_thread():
            self.model.stop()
        self.surroundings_changed(collider_came=True)

    def surroundings_changed(self, collider_came: bool) -> None:
        self._setting.place_now()
        self._setting.arrived |= collider_came

    def _holds(self) -> list[Hold]:
        body = self.body
        return [
            Hold((one.points - body.centre) / body.unit, one.still, one.turns and len(one.points) == 1)
            for one in body.handles
        ]

    def _goals(self, time: float) -> list[Goal]:
        body = self.body

        def goal(handle: Handle) -> Goal:
            there = handle.goals(time) - body.origin
            return Goal((there - (handle.points - body.centre)) / body.unit, handle.turn(time))

        return [goal(handle) for handle in body.handles]

    # Stepping

    def set_clock(self, time: float) -> None:
        self._setting.place(time, time)

    def step(self, dt: float, end: float) -> None:
        """Go on by dt [s] until `end`."""
        self._setting.place(end - dt, end)
        push, goals = self._push(end), self._goals(end)
        try:
            with dev.one_blas_thread():
                self.model.step(dt, push, goals, self._setting.feel)
        except PhyxelError as error:
            raise BlowUpError(
                f"{self.body.name}: blew up before t = {end:.4g} s: {error}. Try a softer material, more damping, or "
                "gentler drags; the last good frame is kept"
            ) from error

    def finish(self, dt: float, end: float) -> None:
        """A step of dt [s] until `end` is done, meetings with other bodies, too."""
        if self._fracturing is not None:
            self._fracturing.advance(dt)
        self.body.follow_ramp(end)

    def longest_step(self) -> float:
        """[s]. Only the ground has no far side that one could come out of."""
        longest = LONGEST_STEP if self._fracturing is None else min(LONGEST_STEP, self._fracturing.longest)
        if any(isinstance(one, Collider) for one in self.world.colliders):
            speed = float(np.linalg.norm(self.model.v, axis=1).max())
            longest = min(longest, max(CROSSED / max(speed, 1e-9), 1e-2 * longest))
        return longest

    def _push(self, time: float) -> Floats:
        """Acceleration of the nodes by gravity, force and fields [1/s²], shape (n, 3)."""
        body = self.body
        even = (self.world.gravity + body.force / self._mass) / body.unit
        fields = [field for field in self.world.acting if field.acts_on(body)]
        if not np.array_equal(self._even[0], even):
            self._even = np.tile(even, (len(body.birth), 1))
        if not fields:
            return self._even
        if self._fit is None:
            self._fit = body.space.fit(body.mixture.number("density")[body.space.owner])
        x, v = body.positions, body.velocities
        acting = np.sum([field.acceleration(body, x, v, time) for field in fields], axis=0)
        return self._even + self._fit(acting) / body.unit

    def set_down(self) -> None:
        """See `Surroundings.set_down`."""
        self._setting.set_down()

    def settle(self, tolerance: float, most_steps: int) -> None:
        self.set_down()
        time = self.world.time
        self._setting.place_now()
        with dev.one_blas_thread():
            self.model.settle(self._push(time), self._goals(time + DRAG_TIME), self._setting.feel, tolerance)

    # Reading

    def parts_of(self, body: Body) -> NDArray[np.int32]:
        return body.space.parts()

    def field(self, body: Body, name: str) -> Floats:
        if self._model is None and name == "u":  # taking hold must not make a model that does not know of the hold
            return np.zeros_like(body.birth)
        model, at = self.model, body.space.at_nodes
        if name == "u":
            return model.displacement(at)
        if name == "v":
            return np.asarray(at.values @ model.v)
        if name == "gradient":
            return model.gradient(at)
        if name == "past":
            return np.broadcast_to(np.eye(3), (len(body.birth), 3, 3))
        if name == "plastic":
            return model.plastic(at)
        raise KeyError(name)

    def stress_of(self, body: Body) -> Floats:
        return self.model.stress(body.space.at_nodes, body.mixture, body.mixture.which)

    def displacement_at(self, body: Body, X: Floats) -> Floats:
        if self._model is None:
            return np.broadcast_to(body.origin - body.centre, np.shape(X))
        return self.probe(body, X).displacement()

    def probe(self, body: Body, X: Floats) -> Probe:
        return FieldProbe(body, self.model, X)

    def diagnostics(self, body: Body) -> dict[str, Any]:
        model, masses = self.model, body.masses
        elastic, kinetic = model.energies()
        momentum, spin = model.momenta()
        return {
            "mass": float(masses.sum()),
            "momentum": momentum,
            "angular_momentum": spin + np.cross(body.origin, momentum),
            "kinetic": kinetic,
            "elastic": elastic,
            "potential": float(-masses.sum() * (body.origin + body.unit * model.middle()) @ self.world.gravity),
            "volume": model.volume(),
        }

    def carry(self, body: Body, surfels: Surfels) -> None:
        self._setting.carry(surfels, *self.model.shown())

    def walls(self, body: Body) -> tuple[Any, int]:
        return self._setting.walls()

    # Checkpoints

    def state(self) -> State:
        model = prefixed("model.", self.model.state())
        cracks = {} if self._fracturing is None else prefixed("fracturing.", self._fracturing.state())
        return model | cracks | {"origin": self.body.origin}

    def restore(self, state: State) -> None:
        with dev.one_blas_thread():  # as in a step: what it has inverted has the same bits
            self.model.restore(unprefixed("model.", state))
        if self._fracturing is not None:
            self._fracturing.restore(unprefixed("fracturing.", state))
        self.body.origin = state["origin"]
        self._setting.arrived = False
        self._setting.place_now()
