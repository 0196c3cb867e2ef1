"""A tiny model of its own: bodies that only translate. What a newcomer has to write for one more model."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import warp as wp
from numpy.typing import NDArray

import phyxel as px
from phyxel.body.probes import CarriedProbe
from phyxel.body.protocols import Change, momenta_of
from phyxel.contact.table import ColliderTable
from phyxel.device import as_vectors
from phyxel.material import Mixture
from phyxel.models.kind import KINDS, ModelKind, register
from phyxel.movers.mover import MoverWorld, Parts, Piece
from phyxel.state import State
from phyxel.surface.motion import Motion
from phyxel.surface.walls import Walls

Floats = NDArray[np.float64]


class Drifter:
    """One body: ẍ = g, or where its first hold leads it (`body.protocols.Nodal`)."""

    unmoved = False

    def __init__(self, body: px.Body, device: wp.Device) -> None:
        self.body, self._n = body, len(body.birth)
        self.moved, self.velocity = np.zeros(3), body.start_velocities.mean(axis=0)
        self.X = (body.birth - body.centre) / body.unit
        self.gradient = self.plastic = self.stress = np.zeros((self._n, 3, 3))
        self.past = np.broadcast_to(np.eye(3), (self._n, 3, 3))
        self._walls = ColliderTable([body.unit], wp.float32, device)

    @property
    def u(self) -> Floats:
        return np.tile(self.moved / self.body.unit, (self._n, 1))

    @property
    def v(self) -> Floats:
        return np.tile(self.velocity / self.body.unit, (self._n, 1))

    def momenta(self, nodes: NDArray[np.int64]) -> tuple[Floats, Floats]:
        return momenta_of(self.body, nodes)

    def step(self, dt: float, time: float, gravity: Floats) -> None:
        if self.body.handles:
            handle = self.body.handles[0]
            home = self.body.birth[handle.nodes] + self.body.origin - self.body.centre
            goal = (handle.goals(time + dt) - home).mean(axis=0)
            self.velocity, self.moved = (goal - self.moved) / dt, goal
        else:
            self.moved = self.moved + dt * self.velocity + 0.5 * dt**2 * gravity
            self.velocity = self.velocity + dt * gravity

    def motion(self, world: MoverWorld) -> Motion:
        body, device, now = self.body, world.device, (world.time, world.time)
        self._walls.write(world.colliders, body.origin[None], now, world.time)
        u, X = as_vectors(self.u, device), as_vectors(self.X, device)
        gradient, walls = wp.zeros(self._n, dtype=wp.mat33, device=device), Walls(self._walls.table, device)
        return Motion(u, body.unit, body.origin, walls, X, gradient, (0, self._n))


class Drifters:
    """Moves bodies that only translate (`mover.Mover`)."""

    integrator = "exact"

    def __init__(self, world: MoverWorld) -> None:
        self.world, self.steps = world, 0
        self.bodies: list[px.Body] = []
        self.told: list[Any] = []
        """changes that it heard of"""
        self.spans: list[tuple[float, float]] = []
        """when it went on [s], and how far"""
        self._each: dict[px.Body, Drifter] = {}

    def add(self, body: px.Body) -> None:
        self.bodies.append(body)
        self._each[body] = Drifter(body, self.world.device)

    def advance(self, dt: float) -> None:
        self.spans.append((self.world.time, dt))
        self.steps += 1
        for one in self._each.values():
            one.step(dt, self.world.time, self.world.gravity)

    def set_clock(self, time: float) -> None:
        pass

    def set_down(self) -> None:
        pass

    def settle(self, tolerance: float, most_steps: int) -> None:
        self.told.append(("settle", tolerance))

    def changed(self, change: Change, body: px.Body, before: Mixture | None = None) -> None:
        self.told.append(change)

    def surroundings_changed(self, collider_came: bool) -> None:
        self.told.append("surroundings")

    def parts(self, body: px.Body) -> Parts:
        return Parts(np.zeros(len(body.birth), np.int32), np.zeros(1, bool))

    def divide(self, body: px.Body, pieces: Sequence[px.Body], nodes: Sequence[NDArray[np.int64]]) -> None:
        raise px.PhyxelError(f"{body.name}: stays whole")

    def nodal(self, body: px.Body) -> Drifter:
        return self._each[body]

    def motion(self, body: px.Body) -> Motion:
        return self._each[body].motion(self.world)

    def probe(self, body: px.Body, X: Floats) -> CarriedProbe:
        return CarriedProbe(body, X)

    def diagnostics(self, bodies: Sequence[px.Body]) -> list[dict[str, Any]]:
        def measured(body: px.Body) -> dict[str, Any]:
            mass, v, x = float(body.masses.sum()), self._each[body].velocity, body.masses @ body.positions
            momenta = {"momentum": mass * v, "angular_momentum": np.cross(x, v), "volume": float(body.volumes.sum())}
            energies = {"kinetic": 0.5 * mass * v @ v, "elastic": 0.0, "potential": float(-x @ self.world.gravity)}
            return {"mass": mass, **momenta, **energies}

        return [measured(body) for body in bodies]

    def pieces(self) -> list[Piece]:
        return [{body: np.arange(len(body.birth))} for body in self.bodies]

    def longest_tick(self) -> float:
        return math.inf

    def state(self) -> State:
        return {"each": np.array([[one.moved, one.velocity] for one in self._each.values()])}

    def restore(self, state: State) -> None:
        for one, (moved, velocity) in zip(self._each.values(), state["each"], strict=True):
            one.moved, one.velocity = moved, velocity


DRIFT = ModelKind(
    name="drift",
    summary="translates, never bends",
    mover=Drifters,
    nodes="inside",
    carried_by="neighbours",
    integrators=("exact",),
    cannot=dict.fromkeys(("melt", "yield", "crack"), "it never bends"),
)
"""The one row."""


@contextmanager
def drift_known() -> Iterator[ModelKind]:
    """While this lasts there is one more model."""
    register(DRIFT)
    try:
        yield DRIFT
    finally:
        del KINDS[DRIFT.name]
