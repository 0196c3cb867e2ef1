"""How the octants of a tree lie to the solid: interior, exterior, or cut, and how much of it they hold."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from phyxel.solid.octree import DOUBT, HALVES, TOUCH, Floats, Integers, Kind, Mask, Octree, SolidShape


@dataclass(frozen=True)
class Parts:
    """Halves and quarters of the octants that the surface may cut."""

    owner: Integers
    """the octant, ascending over the halves and again over the quarters, shape (p,)"""
    centres: Floats
    """[m], shape (p, 3)"""
    sides: Floats
    """[m], shape (p, 3)"""
    distance: Floats
    """of the centre from the surface [m], negative inside, shape (p,)"""
    gradient: Floats
    """of the distance, from a part and its seven siblings, shape (p, 3)"""

    @property
    def doubtful(self) -> Mask:
        """Parts that the surface may cut, shape (p,)."""
        return np.asarray(np.abs(self.distance) < DOUBT * np.linalg.norm(self.sides, axis=1))

    @property
    def share(self) -> Floats:
        """How much of each lies inside, 0 to 1, if the surface were flat there and square to an axis; shape (p,)."""
        return np.clip(0.5 - self.distance / self.sides.min(axis=1), 0.0, 1.0)

    def __getitem__(self, chosen: Mask | Integers) -> Parts:
        return Parts(
            self.owner[chosen],
            self.centres[chosen],
            self.sides[chosen],
            self.distance[chosen],
            self.gradient[chosen],
        )


@dataclass(frozen=True)
class Octants:
    """The terminal octants of a tree, classified."""

    tree: Octree
    kinds: NDArray[np.int8]
    """`Kind` of each, shape (m,)"""
    share: Floats
    """how much of each lies inside the solid, 0 to 1, shape (m,)"""
    parts: Parts

    @property
    def cut(self) -> Mask:
        """Octants that the surface cuts, shape (m,)."""
        return np.asarray((self.kinds == Kind.INTERIOR_BOUNDARY) | (self.kinds == Kind.EXTERIOR_BOUNDARY))

    def corners(self) -> tuple[Floats, Integers]:
        """All corners of octants that hold some of the solid [m], (c, 3), and for each the largest of the octants it
        belongs to, (c,)."""
        held = np.flatnonzero(self.kinds != Kind.EXTERIOR)
        held = held[np.argsort(self.tree.levels[held], kind="stable")]  # the first to have a corner is the largest
        positions, place = _corners(self.tree, held)
        owner = np.full(len(positions), -1)
        owner[place.reshape(-1)[::-1]] = np.repeat(held, 8)[::-1]
        return positions, owner


def classified(solid: SolidShape, tree: Octree) -> Octants:
    """Kinds and shares of a tree's octants."""
    parts = _parts(solid, tree)
    cut = _cut(solid, tree, parts)
    inside = tree.distance < 0
    kinds = np.where(
        cut,
        np.where(inside, Kind.INTERIOR_BOUNDARY, Kind.EXTERIOR_BOUNDARY),
        np.where(inside, Kind.INTERIOR, Kind.EXTERIOR),
    )
    held = np.bincount(parts.owner, parts.share * parts.sides.prod(axis=1), minlength=len(tree))
    share = np.where(cut, held / tree.sides.prod(axis=1), inside)
    return Octants(tree, kinds.astype(np.int8), share, parts)


def _parts(solid: SolidShape, tree: Octree) -> Parts:
    doubtful = np.flatnonzero(tree.doubtful)
    halves = _halved(solid, doubtful, tree.centres[doubtful], tree.sides[doubtful])
    again = halves.doubtful
    whole, split = halves[~again], halves[again]
    quarters = _halved(solid, split.owner, split.centres, split.sides)
    return Parts(
        np.concatenate([whole.owner, quarters.owner]),
        np.concatenate([whole.centres, quarters.centres]),
        np.concatenate([whole.sides, quarters.sides]),
        np.concatenate([whole.distance, quarters.distance]),
        np.concatenate([whole.gradient, quarters.gradient]),
    )


def _halved(solid: SolidShape, owner: Integers, centres: Floats, sides: Floats) -> Parts:
    """The eight parts of each box."""
    parts = (centres[:, None] + (HALVES - 0.5) * sides[:, None] / 2).reshape(-1, 3)
    distance = solid.distance(parts)
    gradient = (distance.reshape(-1, 8) @ (HALVES - 0.5)) / sides
    return Parts(np.repeat(owner, 8), parts, np.repeat(sides / 2, 8, axis=0), distance, np.repeat(gradient, 8, axis=0))


def _cut(solid: SolidShape, tree: Octree, parts: Parts) -> Mask:
    """Which octants hold both inside and outside, and not by a hair only; shape (m,)."""
    m = len(tree)
    slack = TOUCH * tree.sides.min(axis=1)
    # The ball inside a part reaches the surface: this sees sheets and spikes thinner than a part.
    pierced = np.abs(parts.distance) < 0.5 * parts.sides.min(axis=1) - slack[parts.owner]
    some_inside = np.bincount(parts.owner[parts.distance < 0], minlength=m) > 0
    some_outside = np.bincount(parts.owner[parts.distance > 0], minlength=m) > 0
    cut = (np.bincount(parts.owner[pierced], minlength=m) > 0) | (some_inside & some_outside)
    # A slanted surface may yet take a corner off an octant.
    near = np.bincount(parts.owner[parts.doubtful], minlength=m) > 0
    rest = np.flatnonzero(near & ~cut)
    corners = _corner_distance(solid, tree, rest)
    outward = np.where(tree.distance[rest] < 0, 1.0, -1.0)
    cut[rest] = (outward[:, None] * corners > slack[rest, None]).any(axis=1)
    return cut


def _corner_distance(solid: SolidShape, tree: Octree, chosen: Integers) -> Floats:
    """Distance of the eight corners of some octants [m], shape (N, 8); shared corners are asked for once."""
    positions, place = _corners(tree, chosen)
    return solid.distance(positions)[place]


def _corners(tree: Octree, chosen: Integers) -> tuple[Floats, Integers]:
    """The corners of some octants [m], each once, (c, 3), and which of them are each octant's eight, (N, 8)."""
    finest = int(tree.levels[chosen].max(initial=0))
    corners = (tree.cells[chosen, None] + HALVES) << (finest - tree.levels[chosen])[:, None, None]
    size = (np.array(tree.lattice.shape, np.int64) << finest) + 1
    keys, place = np.unique(
        (corners[..., 0] * size[1] + corners[..., 1]) * size[2] + corners[..., 2], return_inverse=True
    )
    unique = np.stack([keys // (size[1] * size[2]), keys // size[2] % size[1], keys % size[2]], axis=1)
    return tree.lattice.lower + unique * tree.lattice.sides(finest), place.reshape(len(chosen), 8)
