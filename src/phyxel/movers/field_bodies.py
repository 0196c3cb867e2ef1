"""All bodies of a world that move on their own, Galerkin, modal and rigid ones: they step together, then they meet
(physics 15.8)."""

from __future__ import annotations

import itertools
import math
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import cKDTree

from phyxel import device as dev
from phyxel.body.probes import Probe
from phyxel.material import Mixture
from phyxel.models.field_contact import Meeting, Outline, Party
from phyxel.models.rigid.model import RigidSpace
from phyxel.movers.field_body import FieldBody
from phyxel.movers.mover import Piece
from phyxel.state import State, prefixed, unprefixed
from phyxel.surface.surfels import Surfels

if TYPE_CHECKING:
    from phyxel.body import Body
    from phyxel.world import World

Floats = NDArray[np.float64]

FEW = 4
"""Nodes below which what is left of a body is a crumb, whatever its shape."""
THINNEST = 0.25
"""Root mean square distance of nodes from the plane nearest to them all, over that between neighbours, below which
they are a crumb: two layers have a half."""
_ways = np.array([way for way in itertools.product((-1, 0, 1), repeat=3) if any(way)], np.float64)
AROUND: Floats = _ways / np.linalg.norm(_ways, axis=1, keepdims=True)
"""Directions all around, shape (26, 3)."""


class FieldBodies:
    """Moves bodies that have a model each (`mover.Mover`). Galerkin and rigid ones touch each other; a modal body, and
    phyxel bodies for any of them, are not there."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.bodies: list[Body] = []
        self.steps = 0
        self._solos: dict[Body, FieldBody] = {}
        self._outlines: dict[Body, Outline] = {}

    def add(self, body: Body) -> None:
        """Move one more body from now on."""
        self.bodies.append(body)
        self._solos[body] = FieldBody(self.world, body)

    def divide(self, body: Body, pieces: list[Body], nodes: list[NDArray[np.int64]]) -> None:
        whole = self._solos.pop(body)
        self.bodies.remove(body)
        self._outlines.pop(body, None)
        for piece, own in zip(pieces, nodes, strict=True):
            self._solos[piece] = whole.parted(piece, own)
        self.bodies += pieces

    def add_crumb(self, body: Body, positions: Floats, momentum: Floats, spin: Floats) -> None:
        """Move a crumb from now on: see `FieldBody.throw`."""
        self.add(body)
        self._solos[body].throw(positions, momentum, spin)

    def cut(self, body: Body) -> None:
        """A body got a crack."""
        self._solos[body].cut(body)

    def put_down(self, bodies: list[Body]) -> None:
        for body in bodies:
            self._solos[body].put_down()

    def parts_of(self, body: Body) -> NDArray[np.int32]:
        return self._solos[body].parts_of(body)

    def crumbs_of(self, body: Body, parts: list[NDArray[np.int64]]) -> NDArray[np.bool_]:
        return np.array([is_flat(body.space.nodes[own]) for own in parts])

    def momenta_of(self, body: Body, nodes: NDArray[np.int64]) -> tuple[Floats, Floats]:
        return self._solos[body].momenta_of(nodes)

    # What has changed

    def material_changed(self, body: Body, before: Mixture) -> None:
        self._solos[body].material_changed(body, before)

    def holds_changed(self, body: Body) -> None:
        self._solos[body].holds_changed(body)

    def force_changed(self, body: Body) -> None:
        self._solos[body].force_changed(body)

    def surroundings_changed(self, collider_came: bool) -> None:
        for solo in self._solos.values():
            solo.surroundings_changed(collider_came)

    # Stepping

    def set_clock(self, time: float) -> None:
        for solo in self._solos.values():
            solo.set_clock(time)

    def advance(self, dt: float) -> None:
        solos = list(self._solos.values())
        for solo in solos:
            solo.set_down()
        start, left = self.world.time, dt
        while left > 0:
            meeting = Meeting(self._parties(), min(solo.longest_step() for solo in solos))
            longest = meeting.longest_step
            substeps = max(1, math.ceil(left / longest * (1 - 1e-9)))
            step, left = left / substeps, left * (substeps - 1) / substeps
            end = start + dt - left
            for solo in solos:
                solo.step(step, end)
            with dev.one_blas_thread():
                meeting.resolve(step)
            self.steps += 1
            for solo in solos:
                solo.finish(step, end)

    def _parties(self) -> list[Party]:
        """Those that can touch each other, as they are now; none if there is but one."""
        able = [body for body in self.bodies if body.model != "modal"]
        return [self._party(body) for body in able] if len(able) > 1 else []

    def _party(self, body: Body) -> Party:
        model: Any = self._solos[body].model
        return Party(model, lambda: self._outline(body), body.unit, body.origin, body.friction)

    def _outline(self, body: Body) -> Outline:
        if body not in self._outlines and len(body.birth) < FEW:
            self._outlines[body] = _ball(body.space)
        if body not in self._outlines:
            shape = body.surfels.carried.shape
            normals = np.cross(shape.axis_a, shape.axis_b)
            self._outlines[body] = Outline(shape.points, normals / np.linalg.norm(normals, axis=1)[:, None])
        outline = self._outlines[body]
        outline.follow(body.space)
        return outline

    def settle(self, tolerance: float, most_steps: int) -> None:
        """Each to its own rest: they do not feel each other."""
        for solo in self._solos.values():
            solo.settle(tolerance, most_steps)

    # Reading

    def field(self, body: Body, name: str) -> Floats:
        return self._solos[body].field(body, name)

    def stress_of(self, body: Body) -> Floats:
        return self._solos[body].stress_of(body)

    def displacement_at(self, body: Body, X: Floats) -> Floats:
        return self._solos[body].displacement_at(body, X)

    def probe(self, body: Body, X: Floats) -> Probe:
        return self._solos[body].probe(body, X)

    def diagnostics(self, body: Body) -> dict[str, Any]:
        return self._solos[body].diagnostics(body)

    def pieces(self) -> list[Piece]:
        return [{body: np.arange(len(body.birth))} for body in self._solos]

    def carry(self, body: Body, surfels: Surfels) -> None:
        self._solos[body].carry(body, surfels)

    def walls(self, body: Body) -> tuple[Any, int]:
        return self._solos[body].walls(body)

    # Checkpoints

    def state(self) -> State:
        states = [prefixed(f"body{k}.", solo.state()) for k, solo in enumerate(self._solos.values())]
        return {name: array for state in states for name, array in state.items()}

    def restore(self, state: State) -> None:
        for k, solo in enumerate(self._solos.values()):
            solo.restore(unprefixed(f"body{k}.", state))


def _ball(space: RigidSpace) -> Outline:
    """That of a ball in place of a crumb, with its volume: faces of the smallest crumbs are not worth finding."""
    radius = np.cbrt(0.75 / np.pi * space.weights.sum())
    return Outline(space.nodes[0] + radius * AROUND, AROUND)


def is_flat(places: Floats) -> bool:
    """Whether places (n, 3) are so few, or lie so nearly in a plane, that they determine no linear field."""
    if len(places) < FEW:
        return True
    spread = np.linalg.svd(places - places.mean(axis=0), compute_uv=False)
    apart = np.median(cKDTree(places).query(places, 2)[0][:, 1])
    return bool(spread[2] < THINNEST * apart * np.sqrt(len(places)))
