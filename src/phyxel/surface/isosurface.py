"""A closed triangle mesh of the surface where a field is zero, by marching tetrahedra on a body-centred lattice
(physics 8.11).

The lattice points are B·i for whole numbers i. Each cell of it is cut into the six tetrahedra of Kuhn, which go from
its first corner to its last along the edges, one axis after the other. With the columns of B half the diagonals of a
cube all of them are alike and nearly regular, and the pieces in neighbouring cells fit. A tetrahedron has no ambiguous
cases as a cube has, so every edge of the mesh has exactly two triangles, whatever the field.

The field is asked only in blocks of lattice points around the surface, and each point once: a field that differs in its
last bit from call to call cannot tear the mesh.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import permutations, product

import numpy as np
from numpy.typing import NDArray

from phyxel.errors import PhyxelError
from phyxel.rotation import Floats

Indices = NDArray[np.int64]
Field = Callable[[Floats], NDArray[np.floating]]

BLOCK = 4
"""Lattice points along a block."""
LATTICE = 2 ** (1 / 3) * np.array([[-0.5, 0.5, 0.5], [0.5, -0.5, 0.5], [0.5, 0.5, -0.5]])
"""B for cells of volume 1, columns; its determinant is positive."""
CORNERS = np.array(list(product((0, 1), repeat=3)))
"""of a cell, or a block and its upper neighbours; number k has the bits of k"""
MOST_BLOCKS = 2**26
"""in the box: more would take gigabytes to number"""
AT_ONCE = 2**18
"""Places at which the field is asked in one call."""
NEAREST = 1e-4
"""Least distance of a vertex from a lattice point, over the edge it lies on: no triangle vanishes."""
JUST_OUTSIDE = 1e-30
"""Value beyond the box: the mesh is closed at the box."""
MARGIN = 1.3
"""How far beyond the box the field is asked, in cells: no edge of the lattice is longer."""


def isosurface(
    field: Field,
    lower: NDArray[np.floating],
    upper: NDArray[np.floating],
    cell: float,
    near: NDArray[np.floating] | None = None,
) -> tuple[Floats, NDArray[np.int32]]:
    """Vertices (n, 3) and triangles (m, 3), counter-clockwise from outside, around where `field` is negative in a box.

    `field` takes positions (k, 3) to values (k,). `cell` is the fineness: the cube root of the volume for each lattice
    point. The surface is looked for every four points and around the places `near` (k, 3), and followed from there:
    parts smaller than four cells need a place near them to be found. Where it meets the box it is closed by the box.
    """
    box = np.array([lower, upper], np.float64)
    if not (np.isfinite(box).all() and (box[1] > box[0]).all() and 0 < cell < np.inf):
        raise PhyxelError(f"isosurface: box {box.tolist()}, cell {cell}: give a box with room and a size above 0")
    blocks = _Blocks(field, box[0], box[1], cell)
    todo = blocks.coarse()
    if near is not None:
        todo = np.union1d(todo, blocks.around(np.asarray(near, np.float64)))
    while len(todo):
        blocks.evaluate(todo)
        todo = blocks.missing(todo)
    vertices, faces = _march(blocks)
    return np.clip(vertices, *box), faces


def field_normals(field: Field, points: Floats, step: float) -> Floats:
    """Unit directions in which a field grows at points (n, 3), by central differences over `step`, shape (n, 3)."""
    shifts = step * np.eye(3)
    gradient = np.stack([field(points + s) - field(points - s) for s in shifts], axis=1, dtype=np.float64)
    return gradient / np.maximum(np.linalg.norm(gradient, axis=1, keepdims=True), 1e-300)


class _Blocks:
    """Values of a field at lattice points, in blocks: those of a block are the BLOCK³ at BLOCK·place and above."""

    def __init__(self, field: Field, lower: Floats, upper: Floats, cell: float) -> None:
        self._field, self._lower, self._upper = field, lower, upper
        self.basis = cell * LATTICE
        self._margin = MARGIN * cell
        self._inverse = np.linalg.inv(self.basis)
        ends = self._inverse @ np.stack([lower, upper])[CORNERS, np.arange(3)].T
        # One block more on every side: all of the surface has neighbours.
        self.first = BLOCK * (np.floor(ends.min(axis=1) / BLOCK).astype(np.int64) - 1)
        self.shape = (np.floor(ends.max(axis=1)).astype(np.int64) - self.first) // BLOCK + 3
        if self.shape.prod() > MOST_BLOCKS:
            raise PhyxelError(f"isosurface: cells of {cell:.3g} are too many in this box; give larger ones")
        self._slot = np.full(int(self.shape.prod()), -1, np.int32)
        self.numbers = np.zeros(0, np.int64)
        """of the blocks that are there, shape (b,)"""
        self._values = np.zeros((0, BLOCK, BLOCK, BLOCK))

    def places(self, numbers: Indices) -> Indices:
        """Where blocks stand, counted in blocks, (b, 3)."""
        return np.stack(np.unravel_index(numbers, self.shape), axis=1)

    def numbers_at(self, places: Indices) -> Indices:
        """Numbers of the blocks at (..., 3); −1 outside."""
        inside = ((places >= 0) & (places < self.shape)).all(axis=-1)
        held = np.clip(places, 0, self.shape - 1)
        return np.where(inside, np.ravel_multi_index(tuple(np.moveaxis(held, -1, 0)), self.shape), -1)

    def positions(self, points: Indices) -> Floats:
        """Where lattice points (..., 3), counted from the first, are."""
        return (points + self.first).astype(np.float64) @ self.basis.T

    def values_at(self, points: Indices) -> Floats:
        """The field at lattice points (n, 3): negative inside, never zero; outside at the end of the box."""
        x = self.positions(points)
        beyond = np.maximum(self._lower - x, x - self._upper).max(axis=1)
        values = np.full(len(x), JUST_OUTSIDE)
        asked = np.flatnonzero(beyond <= self._margin)
        for part in np.split(asked, range(AT_ONCE, len(asked), AT_ONCE)) if len(asked) else []:
            values[part] = self._field(x[part])
        # A surface that crosses the box is closed there; one that only comes near it ends where it would.
        values[(beyond > 0) & (values < 0)] = JUST_OUTSIDE
        if not np.isfinite(values).all():
            where = x[np.flatnonzero(~np.isfinite(values))[0]]
            raise PhyxelError(f"isosurface: the field is not finite at {where.tolist()}")
        values[values == 0] = JUST_OUTSIDE
        return values

    def coarse(self) -> Indices:
        """Blocks in which the signs at the first points of blocks change, ascending."""
        every = len(self._slot)
        slabs = [np.arange(first, min(first + AT_ONCE, every)) for first in range(0, every, AT_ONCE)]
        inside = np.concatenate([self.values_at(BLOCK * self.places(slab)) < 0 for slab in slabs])
        signs = inside.reshape(self.shape)
        windows = [signs[tuple(slice(o, n - 1 + o) for o, n in zip(c, self.shape, strict=True))] for c in CORNERS]
        mixed = np.logical_or.reduce(windows) & ~np.logical_and.reduce(windows)
        return np.unique(self.numbers_at(np.argwhere(mixed)))

    def around(self, points: Floats) -> Indices:
        """Blocks that hold these points, those that lie in the box, ascending."""
        points = points[((points >= self._lower) & (points <= self._upper)).all(axis=1)]
        lattice = np.floor(points @ self._inverse.T).astype(np.int64) - self.first
        return np.unique(self.numbers_at(lattice // BLOCK))

    def evaluate(self, numbers: Indices) -> None:
        """Ask the field in blocks that are not there yet."""
        inner = np.stack(np.meshgrid(*[np.arange(BLOCK)] * 3, indexing="ij"), axis=-1).reshape(-1, 3)
        points = (BLOCK * self.places(numbers)[:, None] + inner).reshape(-1, 3)
        values = self.values_at(points).reshape(-1, BLOCK, BLOCK, BLOCK)
        self._slot[numbers] = np.arange(len(self.numbers), len(self.numbers) + len(numbers))
        self.numbers = np.concatenate([self.numbers, numbers])
        self._values = np.concatenate([self._values, values])

    def with_upper(self, numbers: Indices) -> tuple[Floats, Indices]:
        """Values of blocks and of the first points of those after them, (b, BLOCK + 1, ...), not a number where not
        asked; and the numbers of the eight blocks they are from, (b, 8)."""
        eight = self.numbers_at(self.places(numbers)[:, None] + CORNERS)
        slots = np.where(eight >= 0, self._slot[eight], -1)
        known = np.concatenate([self._values, np.full((1, BLOCK, BLOCK, BLOCK), np.nan)])
        values = np.empty((len(numbers), BLOCK + 1, BLOCK + 1, BLOCK + 1))
        for k, corner in enumerate(CORNERS):
            there = tuple(slice(BLOCK, None) if c else slice(0, BLOCK) for c in corner)
            here = tuple(slice(0, 1) if c else slice(None) for c in corner)
            values[(slice(None), *there)] = known[(slots[:, k], *here)]
        return values, eight

    def missing(self, fresh: Indices) -> Indices:
        """Blocks that hold a corner of a cell with both signs, ascending. `fresh` are those that are new."""
        below = self.numbers_at(self.places(fresh)[:, None] - CORNERS).reshape(-1)
        cells_of = np.unique(below[below >= 0])
        values, eight = self.with_upper(cells_of)
        _, mixed = cell_corners(values)
        wanted = []
        for k, corner in enumerate(CORNERS):
            # Only the last cells along an axis reach into the block after it.
            part = tuple(slice(BLOCK - 1, None) if c else slice(None) for c in corner)
            reached = mixed[(slice(None), *part)].reshape(len(mixed), -1).max(axis=1)
            wanted.append(eight[reached, k])
        found = np.unique(np.concatenate(wanted))
        return found[(found >= 0) & (self._slot[found] < 0)]


def cell_corners(values: Floats) -> tuple[Floats, NDArray[np.bool_]]:
    """The corners of all cells of blocks (b, n + 1, n + 1, n + 1), in the order of CORNERS: (b, n, n, n, 8); and in
    which cells both signs are, (b, n, n, n)."""
    n = values.shape[1] - 1
    corners = np.stack([values[:, i : i + n, j : j + n, k : k + n] for i, j, k in CORNERS], axis=-1)
    mixed: NDArray[np.bool_] = np.any(corners < 0, axis=-1) & np.any(corners > 0, axis=-1)
    return corners, mixed


def _kuhn() -> list[tuple[int, ...]]:
    """The tetrahedra of a cell, right-handed: the ways from corner 0 to corner 7 along the edges."""
    ways = [(0, a, a + b, 7) for a, b, _ in permutations((4, 2, 1))]
    volumes = np.linalg.det([CORNERS[list(way)][1:] for way in ways])
    return [way if volume > 0 else (0, way[2], way[1], 7) for way, volume in zip(ways, volumes, strict=True)]


def _separating(corners: tuple[int, ...], inside: int) -> list[list[tuple[int, int]]]:
    """Triangles between the corners of a right-handed tetrahedron whose bits `inside` has and the others, counter-
    clockwise from outside. Their corners lie on edges of the cell, given by their first and last corner."""
    is_in = [bool(inside >> k & 1) for k in range(4)]
    arranged = {1: [True, False, False, False], 2: [True, True, False, False], 3: [False, True, True, True]}
    count = sum(is_in)
    # An even permutation keeps it right-handed.
    a, b, c, d = next(
        [corners[k] for k in order]
        for order in permutations(range(4))
        if [is_in[k] for k in order] == arranged[count] and np.linalg.det(np.eye(4)[list(order)]) > 0
    )
    rings = {1: [(a, b), (a, c), (a, d)], 2: [(a, c), (a, d), (b, d), (b, c)], 3: [(a, d), (a, c), (a, b)]}
    ring = [(min(edge), max(edge)) for edge in rings[count]]
    return [[ring[0], ring[k], ring[k + 1]] for k in range(1, len(ring) - 1)]


TETRAHEDRA = [(way, [_separating(way, inside) for inside in range(1, 15)]) for way in _kuhn()]
"""corners, and the triangles for each set of corners that are inside"""


def _march(blocks: _Blocks) -> tuple[Floats, NDArray[np.int32]]:
    """The mesh, its vertices in the order of the lattice edges they lie on."""
    numbers = np.sort(blocks.numbers)
    values, _ = blocks.with_upper(numbers)
    corners, mixed = cell_corners(values)
    block, *inner = np.nonzero(mixed)
    cells = BLOCK * blocks.places(numbers)[block] + np.stack(inner, axis=1)
    corners = corners[mixed]
    edges = _crossed_edges(corners)
    cell, first, last = edges.reshape(-1, 3).T
    start = cells[cell] + CORNERS[first]
    span = tuple(BLOCK * blocks.shape + 1)
    keys = np.ravel_multi_index(tuple(start.T), span) * 8 + (last - first)
    _, once, which = np.unique(keys, return_index=True, return_inverse=True)
    f0, f1 = corners[cell[once], first[once]], corners[cell[once], last[once]]
    share = np.clip(f0 / (f0 - f1), NEAREST, 1 - NEAREST)[:, None]
    along = CORNERS[last[once]] - CORNERS[first[once]]
    return blocks.positions(start[once] + share * along), which.reshape(-1, 3).astype(np.int32)


def _crossed_edges(corners: Floats) -> Indices:
    """Triangles in cells with values (n, 8), by the lattice edges of their corners: cell, first and last corner of the
    edge, shape (m, 3, 3)."""
    inside = corners < 0
    found = []
    for way, triangles in TETRAHEDRA:
        case = (inside[:, way] << np.arange(4)).sum(axis=1)
        for mask, separating in enumerate(triangles, start=1):
            cells = np.flatnonzero(case == mask)
            for triangle in separating:
                rows = np.empty((len(cells), 3, 3), np.int64)
                rows[:, :, 0], rows[:, :, 1:] = cells[:, None], triangle
                found.append(rows)
    return np.concatenate(found)
