"""What the phyxel model takes of a body, and what a body reads of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import warp as wp
from numpy.typing import NDArray

from phyxel.body import Body
from phyxel.body.fragments import crack_beside, reach_beside_cracks
from phyxel.body.protocols import momenta_of
from phyxel.models.phyxel import cuts
from phyxel.models.phyxel.matter import PhyxelPart
from phyxel.movers.mover import Parts, Piece

if TYPE_CHECKING:
    from phyxel.movers.phyxel_bodies import PhyxelBodies

Floats = NDArray[np.float64]
Measured = NDArray[np.floating]

MOSTLY = 0.5
"""Share of a part's phyxels without a stress of their own from which on it cannot bend."""
BESIDE = 1.0
"""Spacings from a crack within which nodes lie beside it."""


def part_of(body: Body) -> PhyxelPart:
    """What the model takes of a body, in units of its mean node spacing about its origin."""
    return PhyxelPart(
        positions=(body.birth - body.centre) / body.unit,
        velocities=body.start_velocities / body.unit,
        volumes=body.volumes / body.unit**3,
        reach=reach_beside_cracks(body),
        unit=body.unit,
        support=body.support,
        sees=body.sees,
        free=free_directions(body),
        heft=body.nodes.heft,
        hourglass=body.kind.scheme(body.scheme).hourglass,
    )


def free_directions(body: Body) -> Floats | None:
    """Projections (n, 3, 3) onto directions along which uniform stress is to leave nodes of a body alone, if its scheme
    sees to that: all of them inside, along the surface on it, none beside a crack."""
    if not body.kind.scheme(body.scheme).consistent:
        return None
    reach = body.nodes.reach / body.unit
    beside = crack_beside(body) < np.where(reach > 0, np.minimum(reach, BESIDE), BESIDE)
    return np.where(beside[:, None, None], 0.0, body.nodes.along)


def measured_of(
    body: Body, gained: Measured, energy: Measured, volume_ratio: Measured, gravity: Floats
) -> dict[str, Any]:
    """What `Body.diagnostics` promises, of a body whose nodes have gained such velocities in their last half step, in
    its units, (n, 3), and have elastic energies [J over unit³] and volumes over those at rest, (n,) each.

    Of vibration leap-frog keeps ½ m v₋·v₊ = ½ m (v² − (v − v₋)²) (`leapfrog.Halfway`); a body's middle, which nothing
    in it shakes, moves as it does."""
    x, v, m = body.positions, body.velocities, body.masses
    shaken = body.unit * (gained - m @ gained / m.sum())
    return {
        "mass": float(m.sum()),
        "momentum": m @ v,
        "angular_momentum": np.cross(x, m[:, None] * v).sum(axis=0),
        "kinetic": float(0.5 * m @ (v * v - shaken * shaken).sum(axis=1)),
        "elastic": float(energy.sum() * body.unit**3),
        "potential": float(-(m @ x) @ gravity),
        "volume": float(body.volumes @ volume_ratio),
    }


def parts_of(mover: PhyxelBodies, body: Body) -> Parts:
    """What cracks have made of a body."""
    label = cuts.components(mover.model, mover.bodies.index(body))
    matter, own = mover.model.matter, mover.nodes_of(body)
    numb = (matter.moments.degenerate | (matter.volume.numpy() == 0))[own]
    return Parts(label, np.array([numb[label == part].mean() > MOSTLY for part in range(label.max() + 1)]))


def pieces_of(mover: PhyxelBodies) -> list[Piece]:
    """What hangs together of the bodies of a mover."""
    label = cuts.pieces(mover.model)
    found: list[Piece] = [{} for _ in range(int(label.max()) + 1)]
    for body in mover.bodies:
        own = label[mover.nodes_of(body)]
        for piece in np.unique(own):
            found[piece][body] = np.flatnonzero(own == piece)
    return found


class PhyxelNodes:
    """What the nodes of a phyxel body have now (`body.protocols.Nodal`)."""

    def __init__(self, mover: PhyxelBodies, body: Body) -> None:
        self._mover, self._body = mover, body

    @property
    def unmoved(self) -> bool:
        return not self._mover.is_made

    def _own(self, array: wp.array) -> Floats:
        return array.numpy()[self._mover.nodes_of(self._body)].astype(np.float64)

    @property
    def X(self) -> Floats:
        return self._own(self._mover.model.matter.X)

    @property
    def past(self) -> Floats:
        return self._own(self._mover.model.matter.past)

    @property
    def u(self) -> Floats:
        # A scene that is being built asks already: no reason to make the model yet.
        return np.zeros(self._body.birth.shape) if self.unmoved else self._own(self._mover.model.u)

    @property
    def v(self) -> Floats:
        return self._own(self._mover.model.v)

    @property
    def gradient(self) -> Floats:
        self._mover.model.ensure_forces()
        return self._own(self._mover.model.now.gradient)

    @property
    def plastic(self) -> Floats:
        return self._own(self._mover.model.now.plastic)

    @property
    def stress(self) -> Floats:
        return self._mover.model.stress()[self._mover.nodes_of(self._body)].astype(np.float64)

    def momenta(self, nodes: NDArray[np.int64]) -> tuple[Floats, Floats]:
        return momenta_of(self._body, nodes)
