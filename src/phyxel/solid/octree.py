"""A graded octree over a solid (G04 §4.2.2): its octants, and which of them hold the solid's inside and its surface.

Level 0 is the level of a body to which nothing else is asked: its octants form a lattice. Octants of positive levels
are halved so often; those of negative levels lie outside the solid and were never split so far. Above the coarsest
of them nothing would be decided, so the tree has a lattice of roots in place of a single one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from enum import IntEnum
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from phyxel.errors import PhyxelError
from phyxel.region import BoxRegion

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Mask = NDArray[np.bool_]

DOUBT = 0.6
"""An octant may hold surface if its centre is nearer to it than this share of the diagonal: a half, and a fifth more
because distances of blended and fitted solids are off by some ten per cent away from the surface."""
TOUCH = 1e-3
"""Surface that enters an octant by less than this share of its side only touches it."""
MOST_LEVELS = 8
"""More levels than a region can ask for: eight already make sixteen million octants of one."""

HALVES = np.stack(np.meshgrid([0, 1], [0, 1], [0, 1], indexing="ij"), axis=-1).reshape(-1, 3)
"""The eight corners of a unit cube, which are also the offsets of an octant's children; shape (8, 3)."""
_AROUND = np.stack(np.meshgrid(*[[-1, 0, 1]] * 3, indexing="ij"), axis=-1).reshape(-1, 3)
NEIGHBOURS = _AROUND[np.abs(_AROUND).sum(axis=1) < 3]
"""An octant itself and those it shares a face or an edge with; shape (19, 3)."""


class SolidShape(Protocol):
    """What an octree, nodes and a quadrature need to know of a solid; lengths in metres."""

    @property
    def name(self) -> str: ...
    @property
    def lower(self) -> Floats: ...
    @property
    def upper(self) -> Floats: ...
    @property
    def volume(self) -> float: ...
    def distance(self, positions: Floats, /) -> Floats:
        """(N, 3) -> (N,), negative inside."""
        ...

    def project(self, positions: Floats, /) -> Floats:
        """(N, 3) -> the nearest points on the surface, (N, 3)."""
        ...

    def closest(self, positions: Floats, /) -> tuple[Floats, Floats, Floats]:
        """(N, 3) -> the nearest points on the surface, outward normals there, (N, 3) each, and distances (N,)."""
        ...


Where = BoxRegion | Callable[[Floats], Mask]
Region = tuple[Where, int]
"""Where finer octants are wanted, and by how many levels."""


class Kind(IntEnum):
    """How an octant lies to the solid (G04 fig. 6)."""

    INTERIOR = 0
    """inside; the surface may touch it but does not cut it"""
    INTERIOR_BOUNDARY = 1
    """cut by the surface, centre inside"""
    EXTERIOR_BOUNDARY = 2
    """cut by the surface, centre outside"""
    EXTERIOR = 3
    """holds nothing of the solid"""


# --- the lattice of level 0 ----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class RootOctants:
    """Equal boxes side by side: the octants of level 0."""

    lower: Floats
    """corner of the first box [m], shape (3,)"""
    side: Floats
    """of a box [m], shape (3,)"""
    shape: tuple[int, int, int]

    @staticmethod
    def fitted(lower: Floats, upper: Floats, shape: Sequence[int]) -> RootOctants:
        """Boxes that fill a bounding box exactly, so that flat faces of a body lie on faces of octants."""
        x, y, z = (int(n) for n in shape)
        return RootOctants(np.asarray(lower), (upper - lower) / np.array([x, y, z]), (x, y, z))

    @staticmethod
    def cubes(lower: Floats, upper: Floats, side: float, phase: Sequence[float]) -> RootOctants:
        """Cubes of any side [m] over a bounding box. At phase 0 a corner, at ½ a centre of a cube is in its middle."""
        middle, half = 0.5 * (lower + upper), 0.5 * (upper - lower) / side
        below, above = np.ceil(half + phase).astype(int), np.ceil(half - phase).astype(int)
        x, y, z = (int(n) for n in np.maximum(below + above, 1))
        return RootOctants(middle + (np.asarray(phase) - below) * side, np.full(3, side), (x, y, z))

    @property
    def octants(self) -> int:
        return int(np.prod(self.shape))

    def sides(self, levels: Integers | int) -> Floats:
        """Sides [m] of octants of these levels, shape (..., 3)."""
        return self.side * np.exp2(-np.asarray(levels, np.float64))[..., None]

    def centres(self, levels: Integers | int, cells: Integers) -> Floats:
        """Centres [m] of octants, shape (N, 3)."""
        return self.lower + (cells + 0.5) * self.sides(levels)

    def keys(self, level: int, cells: Integers) -> Integers:
        """One number for each octant of one level, -1 where it lies beyond the lattice; shape (N,)."""
        shape = np.array(self.shape, np.int64) << level
        beyond = ((cells < 0) | (cells >= shape)).any(axis=1)
        return np.where(beyond, -1, (cells[:, 0] * shape[1] + cells[:, 1]) * shape[2] + cells[:, 2])

    def cells(self, level: int, keys: Integers) -> Integers:
        """Back from keys to indices, shape (N, 3)."""
        shape = np.array(self.shape, np.int64) << level
        return np.stack([keys // (shape[1] * shape[2]), keys // shape[2] % shape[1], keys % shape[2]], axis=1)


# --- the tree ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Octree:
    """The terminal octants: they fill the lattice and do not overlap."""

    lattice: RootOctants
    levels: Integers
    """shape (m,)"""
    cells: Integers
    """index of an octant among those of its level, shape (m, 3)"""
    distance: Floats
    """of the centre from the surface [m], negative inside, shape (m,)"""

    def __len__(self) -> int:
        return len(self.levels)

    @property
    def sides(self) -> Floats:
        """[m], shape (m, 3)."""
        return self.lattice.sides(self.levels)

    @property
    def centres(self) -> Floats:
        """[m], shape (m, 3)."""
        return self.lattice.centres(self.levels, self.cells)

    @property
    def doubtful(self) -> Mask:
        """Octants so near to the surface that it may cut them, shape (m,)."""
        return np.asarray(np.abs(self.distance) < DOUBT * np.linalg.norm(self.sides, axis=1))


def grow(solid: SolidShape, lattice: RootOctants, refine: Sequence[Region] = ()) -> Octree:
    """The tree over a lattice (physics 9.3): level 0 wherever the solid is, finer in the regions, graded in between."""
    outside, held = _descend(solid, lattice)
    cells, distance = held.cells, held.distance
    leaves = [outside]
    splits = _graded(lattice, cells, _wanted(solid, lattice, cells, refine))
    for level, split in enumerate(splits):
        divided = np.isin(lattice.keys(level, cells), split)
        leaves.append(_octants(lattice, level, cells[~divided], distance[~divided]))
        cells = _children(cells[divided])
        distance = solid.distance(lattice.centres(level + 1, cells))
    leaves.append(_octants(lattice, len(splits), cells, distance))
    return _joined(leaves)


def _descend(solid: SolidShape, lattice: RootOctants) -> tuple[Octree, Octree]:
    """Octants far outside, as large as can be, and those of level 0 that may hold something of the solid."""
    above = max(0, int(np.log2(max(lattice.shape) / 4)))
    roots = -(-np.array(lattice.shape) // 2**above)
    cells = np.stack(np.meshgrid(*[np.arange(n) for n in roots], indexing="ij"), axis=-1).reshape(-1, 3)
    outside = []
    for level in range(-above, 1):
        distance = solid.distance(lattice.centres(level, cells))
        far = distance >= DOUBT * float(np.linalg.norm(lattice.sides(level)))
        outside.append(_octants(lattice, level, cells[far], distance[far]))
        cells, distance = cells[~far], distance[~far]
        if level < 0:
            cells = _children(cells)
            # The coarsest octants reach beyond the lattice.
            cells = cells[(cells << (-level - 1) < np.array(lattice.shape)).all(axis=1)]
    return _joined(outside), _octants(lattice, 0, cells, distance)


def _wanted(solid: SolidShape, lattice: RootOctants, cells: Integers, refine: Sequence[Region]) -> list[Integers]:
    """For level 0, 1, ...: the keys of those octants that hold some of the solid in a region that asks for more."""
    wanted = []
    for level in range(max((levels for _, levels in refine), default=0)):
        asked = np.zeros(len(cells), bool)
        for where, levels in refine:
            if levels > level:
                asked[~asked] = _holds(solid, lattice, level, cells[~asked], where)
        if not asked.any():
            break
        wanted.append(np.sort(lattice.keys(level, cells[asked])))
        cells = _children(cells[asked])
    return wanted


def _holds(solid: SolidShape, lattice: RootOctants, level: int, cells: Integers, where: Where) -> Mask:
    """Which octants hold some of the solid that is also in a region, by 4³ samples of each."""
    side = lattice.sides(level)
    corner = lattice.lower + cells * side
    # What an octant shares with the body's box and the region's, however small, is sampled; else upper <= lower.
    lower, upper = np.maximum(corner, solid.lower), np.minimum(corner + side, solid.upper)
    if isinstance(where, BoxRegion):
        lower, upper = np.maximum(lower, np.asarray(where.lower)), np.minimum(upper, np.asarray(where.upper))
    steps = (np.stack(np.meshgrid(*[np.arange(4)] * 3, indexing="ij"), axis=-1).reshape(-1, 3) + 0.5) / 4
    extent = upper - lower
    some = (extent > 0).all(axis=1)
    samples = (lower[some, None] + extent[some, None] * steps).reshape(-1, 3)
    near = np.repeat(extent[some].min(axis=1) / 8, 64)
    chosen = np.flatnonzero(in_region(where, samples, solid.name))
    found = np.zeros(len(samples), bool)
    found[chosen] = solid.distance(samples[chosen]) < near[chosen]
    holds = np.zeros(len(cells), bool)
    holds[some] = found.reshape(-1, 64).any(axis=1)
    return holds


def in_region(where: Where, positions: Floats, name: str) -> Mask:
    """Which of (N, 3) positions [m] are in a region, or a `PhyxelError` that names the shape it gave; shape (N,)."""
    inside = np.asarray(where(positions))
    if inside.shape != (len(positions),):
        raise PhyxelError(
            f"{name}: refine: the region function returned shape {inside.shape} for {len(positions)} positions; "
            f"expected ({len(positions)},)"
        )
    return inside.astype(bool)


def _graded(lattice: RootOctants, cells: Integers, wanted: list[Integers]) -> list[Integers]:
    """The keys of the octants to split, level by level, so that neighbours over faces and edges differ by one level.

    If an octant is split, then what surrounds its children must be at most one level coarser than they: the octants
    around it must exist, and so their parents are split.
    """
    splits = list(wanted)
    roots = lattice.keys(0, cells)
    for level in range(len(splits) - 1, 0, -1):
        around = (lattice.cells(level, splits[level])[:, None] + NEIGHBOURS).reshape(-1, 3) >> 1
        # Outside the solid there is nothing to grade.
        exists = np.isin(lattice.keys(0, around >> (level - 1)), roots)
        splits[level - 1] = np.union1d(splits[level - 1], lattice.keys(level - 1, around[exists]))
    return splits


def _children(cells: Integers) -> Integers:
    """The eight of each, side by side."""
    return (2 * cells[:, None] + HALVES).reshape(-1, 3)


def _octants(lattice: RootOctants, level: int, cells: Integers, distance: Floats) -> Octree:
    return Octree(lattice, np.full(len(cells), level, np.int64), cells, distance)


def _joined(trees: list[Octree]) -> Octree:
    return Octree(
        trees[0].lattice,
        np.concatenate([tree.levels for tree in trees]),
        np.concatenate([tree.cells for tree in trees]),
        np.concatenate([tree.distance for tree in trees]),
    )


def checked_refine(refine: Sequence[Region], name: str) -> list[Region]:
    """Regions that ask for something, or a `PhyxelError` that says what is wrong with one."""
    regions = []
    for entry in refine:
        if not isinstance(entry, Sequence) or len(entry) != 2:
            raise PhyxelError(f"{name}: refine = {entry!r}: give pairs of a region and a number of levels")
        where, levels = entry
        if not callable(where):
            raise PhyxelError(f"{name}: refine: {where!r} is no region; give a px.Box or a function of positions")
        if isinstance(levels, bool) or not isinstance(levels, int | np.integer) or not 0 <= levels < MOST_LEVELS:
            raise PhyxelError(
                f"{name}: refine: levels = {levels!r}; give a whole number from 0 to {MOST_LEVELS - 1}: "
                "each level halves the octants"
            )
        if levels > 0:
            regions.append((where, int(levels)))
    return regions


# --- how the octants lie to the solid --------------------------------------------------------------------------------


@dataclass(frozen=True)
class OctantParts:
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
        """OctantParts that the surface may cut, shape (p,)."""
        return np.asarray(np.abs(self.distance) < DOUBT * np.linalg.norm(self.sides, axis=1))

    @property
    def share(self) -> Floats:
        """How much of each lies inside, 0 to 1, if the surface were flat there and square to an axis; shape (p,)."""
        return np.clip(0.5 - self.distance / self.sides.min(axis=1), 0.0, 1.0)

    def __getitem__(self, chosen: Mask | Integers) -> OctantParts:
        return OctantParts(
            self.owner[chosen], self.centres[chosen], self.sides[chosen], self.distance[chosen], self.gradient[chosen]
        )


@dataclass(frozen=True)
class Octants:
    """The terminal octants of a tree, classified."""

    tree: Octree
    kinds: NDArray[np.int8]
    """`Kind` of each, shape (m,)"""
    share: Floats
    """how much of each lies inside the solid, 0 to 1, shape (m,)"""
    parts: OctantParts

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
    """Kinds and shares of a tree's octants (G04 §4.2.2, physics 9.3)."""
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


def _parts(solid: SolidShape, tree: Octree) -> OctantParts:
    doubtful = np.flatnonzero(tree.doubtful)
    halves = _halved(solid, doubtful, tree.centres[doubtful], tree.sides[doubtful])
    again = halves.doubtful
    whole, split = halves[~again], halves[again]
    quarters = _halved(solid, split.owner, split.centres, split.sides)
    pairs = ((getattr(whole, field.name), getattr(quarters, field.name)) for field in fields(OctantParts))
    return OctantParts(*(np.concatenate(pair) for pair in pairs))


def _halved(solid: SolidShape, owner: Integers, centres: Floats, sides: Floats) -> OctantParts:
    """The eight parts of each box."""
    parts = (centres[:, None] + (HALVES - 0.5) * sides[:, None] / 2).reshape(-1, 3)
    distance = solid.distance(parts)
    gradient = (distance.reshape(-1, 8) @ (HALVES - 0.5)) / sides
    return OctantParts(
        np.repeat(owner, 8), parts, np.repeat(sides / 2, 8, axis=0), distance, np.repeat(gradient, 8, axis=0)
    )


def _cut(solid: SolidShape, tree: Octree, parts: OctantParts) -> Mask:
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
