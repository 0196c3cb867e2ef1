"""What moves some bodies of a world: each family of models has a mover."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from phyxel.body import Body
from phyxel.body.protocols import BodyMover, BodyWorld
from phyxel.fields import ForceField
from phyxel.movers.attachments import Attachments
from phyxel.state import State

Floats = NDArray[np.float64]
Piece = dict[Body, NDArray[np.int64]]
"""What hangs together: the nodes of each body that it has a part of."""


class Parts(NamedTuple):
    """What cracks have made of a body."""

    label: NDArray[np.int32]
    """the part that each node belongs to, shape (n,)"""
    crumbs: NDArray[np.bool_]
    """which parts are too small or too flat to bend, shape (parts,)"""


class MoverWorld(BodyWorld, Protocol):
    """A world, as movers see it."""

    attachments: Attachments
    """what ties its bodies to each other"""

    @property
    def acting(self) -> list[ForceField]:
        """The fields that act now."""

    def make_ready(self, *more: str) -> None:
        """Have the kernels compiled that it launches, also those with `more` of what `kernels.ready` knows."""


class Mover(BodyMover, Protocol):
    """What the world asks of whatever moves bodies; what bodies ask of it stands in `BodyMover`.

    Colliders, fields and gravity are the world's; a mover looks at them when it advances. What changes the shape of a
    body other than by advancing counts up `World.revision`, so that surfaces follow.
    """

    bodies: list[Body]
    """those it moves"""
    steps: int
    """substeps taken so far"""

    @property
    def integrator(self) -> str:
        """How it steps in time: "leapfrog", "implicit" or "exact"."""

    def add(self, body: Body) -> None:
        """Move one more body from now on."""

    def advance(self, dt: float) -> None:
        """Go on by `dt` [s] from the world's time, above 0; no event happens meanwhile, and the fields that act
        (`World.acting`) stay the same."""

    def set_clock(self, time: float) -> None:
        """It is `time` [s], to the bit; what depends on the time alone follows: a resumed run must find the same."""

    def settle(self, tolerance: float, most_steps: int) -> None:
        """Relax to static equilibrium at this time, to `tolerance` spacings."""

    def surroundings_changed(self, collider_came: bool) -> None:
        """Colliders, fields or gravity are others now. Bodies may start in a collider that came."""

    def set_down(self) -> None:
        """Raise free bodies out of the ground that have not moved since they, or a collider, came."""

    def parts(self, body: Body) -> Parts:
        """What cracks have made of a body."""

    def divide(self, body: Body, pieces: Sequence[Body], nodes: Sequence[NDArray[np.int64]]) -> None:
        """A body has fallen apart: move these pieces, each of which has so many of its nodes, in place of it. It may be
        one of them. Nothing jumps."""

    def pieces(self) -> list[Piece]:
        """What hangs together."""

    def longest_tick(self) -> float:
        """Time that a live view may let pass between two looks [s], for a look to cost about as much as one step."""

    def state(self) -> State:
        """All that a checkpoint must keep of its bodies and of itself; it keeps the holds by itself."""

    def restore(self, state: State) -> None:
        """Take over what `state` gave, in a world in which the same has happened until now."""
