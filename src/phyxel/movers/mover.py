"""What moves some bodies of a world: each model of motion has a mover of its own."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray

from phyxel.state import State

if TYPE_CHECKING:
    from phyxel.body import Body
    from phyxel.body.probes import Probe
    from phyxel.material import Mixture
    from phyxel.surface.surfels import Surfels

Floats = NDArray[np.float64]
Piece = dict["Body", NDArray[np.int64]]


class Mover(Protocol):
    """What the world asks of whatever moves bodies, and the bodies of what moves them.

    Colliders, fields and gravity are the world's; a mover looks at them when it advances. What changes the shape of a
    body other than by advancing counts up `World.revision`, so that surfaces follow.
    """

    bodies: list[Body]
    """those it moves"""
    steps: int
    """substeps taken so far"""

    # Moving

    def advance(self, dt: float) -> None:
        """Go on by `dt` [s] from the world's time, above 0; no event happens meanwhile, and the fields that act
        (`World.acting`) stay the same."""

    def set_clock(self, time: float) -> None:
        """It is `time` [s], to the bit; what depends on the time alone follows: a resumed run must find the same."""

    def settle(self, tolerance: float, most_steps: int) -> None:
        """Relax to static equilibrium at this time, to `tolerance` spacings."""

    # What has changed

    def material_changed(self, body: Body, before: Mixture) -> None:
        """A body got another material."""

    def holds_changed(self, body: Body) -> None:
        """A body was taken hold of, or let go."""

    def force_changed(self, body: Body) -> None:
        """A body got another `force`."""

    def surroundings_changed(self, collider_came: bool) -> None:
        """Colliders, fields or gravity are others now. Bodies may start in a collider that came."""

    def cut(self, body: Body) -> None:
        """A body got a crack."""

    def put_down(self, bodies: list[Body]) -> None:
        """Bodies were put elsewhere as they are, which nothing holds. They are at rest there, and may be in something
        as when they came into the world."""

    def divide(self, body: Body, pieces: list[Body], nodes: list[NDArray[np.int64]]) -> None:
        """A body has fallen apart: move these pieces, each of which has so many of its nodes, in place of it. It may be
        one of them. Nothing jumps."""

    # Reading

    def parts_of(self, body: Body) -> NDArray[np.int32]:
        """Number of the part of a body that each of its nodes belongs to, shape (n,): what cracks have not parted."""

    def crumbs_of(self, body: Body, parts: list[NDArray[np.int64]]) -> NDArray[np.bool_]:
        """Which parts of a body with these nodes are too small or too flat to bend, shape (parts,)."""

    def momenta_of(self, body: Body, nodes: NDArray[np.int64]) -> tuple[Floats, Floats]:
        """Momentum [kg m/s] and angular momentum about the body's origin [kg m²/s] of some nodes."""

    def field(self, body: Body, name: str) -> Floats:
        """What a body's nodes have, in its units about its origin: "u", "v" (n, 3), "gradient" ∇u (n, 3, 3), ..."""

    def stress_of(self, body: Body) -> Floats:
        """Cauchy stress of a body's nodes [Pa], shape (n, 3, 3)."""

    def displacement_at(self, body: Body, X: Floats) -> Floats:
        """Displacement [m] of (m, 3) reference positions [m] in or near a body, shape (m, 3)."""

    def probe(self, body: Body, X: Floats) -> Probe:
        """Places (m, 3) of a body's reference shape [m] that can be asked again and again while that shape stays."""

    def diagnostics(self, body: Body) -> dict[str, Any]:
        """What `Body.diagnostics` promises."""

    def pieces(self) -> list[Piece]:
        """What hangs together: the nodes of each body that a piece has a part of."""

    def carry(self, body: Body, surfels: Surfels) -> None:
        """Move a body's surfels to where the body is."""

    def walls(self, body: Body) -> tuple[Any, int]:
        """The colliders as kernels take them, and which body in them this is."""

    # Checkpoints

    def state(self) -> State:
        """All that a checkpoint must keep of its bodies and of itself; it keeps the holds by itself."""

    def restore(self, state: State) -> None:
        """Take over what `state` gave, in a world in which the same has happened until now."""
