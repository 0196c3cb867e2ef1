"""What a body asks of the world it is in, and of what moves it there."""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum, auto
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import warp as wp
from numpy.typing import NDArray

from phyxel.contact.colliders import Collider, Ground
from phyxel.material import Mixture
from phyxel.surface.motion import Motion

if TYPE_CHECKING:
    from phyxel.body.body import Body
    from phyxel.body.probes import Probe

Floats = NDArray[np.float64]


class Change(Enum):
    """What can happen to a body other than that it moves."""

    MATERIAL = auto()
    """it is made of another material"""
    HOLDS = auto()
    """it was taken hold of, or let go"""
    FORCE = auto()
    """it got another `force`"""
    CRACK = auto()
    """it got a crack"""
    PLACE = auto()
    """it was put elsewhere as it is, and nothing holds it: it is at rest there, and may be in a collider"""


class Nodal(Protocol):
    """What the nodes of a body have now, in its units about its origin; each is found when it is asked for."""

    @property
    def unmoved(self) -> bool:
        """Whether no node has moved since birth: nothing need be made to know where they are."""

    @property
    def X(self) -> Floats:
        """Reference positions, shape (n, 3)."""

    @property
    def u(self) -> Floats:
        """Displacements, shape (n, 3)."""

    @property
    def v(self) -> Floats:
        """Velocities [1/s], shape (n, 3)."""

    @property
    def gradient(self) -> Floats:
        """∇u, (∇u)_ab = ∂u_a/∂X_b, shape (n, 3, 3)."""

    @property
    def past(self) -> Floats:
        """Deformation gradient of the reference shape against that at birth, shape (n, 3, 3)."""

    @property
    def plastic(self) -> Floats:
        """Permanent strain, shape (n, 3, 3)."""

    @property
    def stress(self) -> Floats:
        """Cauchy stress [Pa], shape (n, 3, 3)."""

    def momenta(self, nodes: NDArray[np.int64]) -> tuple[Floats, Floats]:
        """Momentum [kg m/s] and angular momentum about the body's origin [kg m²/s] of some nodes, shape (3,) each."""


class BodyMover(Protocol):
    """What moves a body, as the body sees it."""

    def changed(self, change: Change, body: Body, before: Mixture | None = None) -> None:
        """Something has happened to a body; `before` is what it was made of until a MATERIAL change."""

    def nodal(self, body: Body) -> Nodal:
        """What its nodes have."""

    def motion(self, body: Body) -> Motion:
        """What its surfels follow."""

    def probe(self, body: Body, X: Floats) -> Probe:
        """Places (m, 3) of its reference shape [m] that can be asked again and again while that shape stays."""

    def diagnostics(self, bodies: Sequence[Body]) -> list[dict[str, Any]]:
        """What `Body.diagnostics` promises, of some bodies at once."""


class BodyWorld(Protocol):
    """A world, as the bodies in it see it."""

    device: wp.Device
    time: float
    bodies: list[Body]
    colliders: list[Ground | Collider]
    revision: int
    """counts changes of the bodies' shape, so that surfaces know when to follow"""

    @property
    def gravity(self) -> Floats:
        """[m/s²], shape (3,)."""

    def mover_of(self, body: Body) -> BodyMover:
        """What moves a body of this world."""

    def changed(self, change: Change, body: Body, before: Mixture | None = None) -> None:
        """Something has happened to a body: tell what moves it."""


class AtBirth:
    """What the nodes of a body have that is in no world yet (`Nodal`)."""

    def __init__(self, body: Body) -> None:
        self._body, n = body, len(body.birth)
        self.unmoved = True
        self.X = (body.birth - body.centre) / body.unit
        self.u, self.v = np.zeros((n, 3)), body.start_velocities / body.unit
        self.gradient = self.plastic = self.stress = np.zeros((n, 3, 3))
        self.past = np.broadcast_to(np.eye(3), (n, 3, 3))

    def momenta(self, nodes: NDArray[np.int64]) -> tuple[Floats, Floats]:
        return momenta_of(self._body, nodes)


def momenta_of(body: Body, nodes: NDArray[np.int64]) -> tuple[Floats, Floats]:
    """Momentum [kg m/s] and angular momentum about the body's origin [kg m²/s] of some nodes as point masses."""
    carried = body.masses[nodes, None] * body.velocities[nodes]
    return carried.sum(axis=0), np.cross(body.positions[nodes] - body.origin, carried).sum(axis=0)
