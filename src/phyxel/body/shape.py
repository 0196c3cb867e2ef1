"""Where the cloud and the solid of a body lie at birth, and how its nodes lie in them."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from phyxel.body.birth import Made
from phyxel.body.placement import Anchor, Placement

if TYPE_CHECKING:
    from phyxel.body.body import Body

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class NodeData:
    """What each node of a body has from birth on; of a piece, what its nodes have. Each has n rows."""

    X: Floats
    """in the first reference shape [m], shape (n, 3)"""
    volumes: Floats
    """[m³], shape (n,)"""
    reach: Floats
    """how far from the surface [m], shape (n,)"""
    heft: Floats
    """mass over that of the volume, shape (n,)"""
    along: Floats
    """projection onto the directions along the surface, all of them inside, shape (n, 3, 3)"""
    velocities: Floats
    """[m/s], shape (n, 3)"""
    luck: Floats
    """by how many standard deviations stronger than its material, shape (n,)"""
    number: NDArray[np.int64]
    """its place among those of the body at birth, whole, shape (n,)"""

    def part(self, nodes: NDArray[np.integer]) -> NodeData:
        """That of some nodes, (k,) ascending."""
        return NodeData(**{one.name: getattr(self, one.name)[nodes] for one in fields(self)})


@dataclass(frozen=True, eq=False)
class Shape:
    """A body's cloud and solid at birth. In units means in node spacings about the middle, which cracks count in."""

    made: Made
    born: Anchor

    @property
    def placement(self) -> Placement:
        """From the cloud's coordinates to the world's."""
        return self.made.placement

    @property
    def rotation(self) -> Floats:
        """How the cloud's axes stand in the world, 3 × 3."""
        return self.placement.rotation

    def in_units(self, positions: Floats) -> Floats:
        """Positions (n, 3) [m], in units."""
        return (positions - self.born.centre) / self.born.unit

    def in_cloud(self, positions: NDArray[np.floating]) -> Floats:
        """Positions (n, 3) in units, in the cloud's coordinates."""
        return self.placement.unplaced(self.born.centre + self.born.unit * np.asarray(positions, np.float64))

    def sees(self, one: NDArray[np.floating], other: NDArray[np.floating]) -> NDArray[np.bool_]:
        """Whether positions (n, 3) and (n, 3) in units see each other inside the solid, if there is one, shape (n,)."""
        if self.made.solid is None:
            return np.ones(len(one), bool)
        return self.made.solid().sees(self.in_cloud(one), self.in_cloud(other))

    def depth(self, positions: NDArray[np.floating]) -> Floats:
        """How deep (n, 3) positions lie in the solid, all in units, shape (n,)."""
        assert self.made.solid is not None
        distance = self.made.solid().distance(self.in_cloud(positions))
        return -distance * (self.placement.scale / self.born.unit)


def certificate_of(body: Body) -> bytes:
    """What a body is at birth, as a hash: a checkpoint fits only what was born the same."""
    digest = hashlib.sha256(f"{body.model} {body.basis} {body.modes}".encode())
    if body.kind.schemes:
        digest.update(body.scheme.encode())
    if body.sheet is not None:
        digest.update(body.sheet.elements.index.tobytes() + body.sheet.elements.kind.tobytes())
    digest.update(np.ascontiguousarray(body.birth).tobytes())
    digest.update(np.ascontiguousarray(body.volumes).tobytes())
    digest.update(body.mixture.signature())
    return digest.digest()
