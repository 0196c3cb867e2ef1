"""Places on a lattice all over the inside of a body: fog and iso-surfaces are made of them, surfels traced to them."""

from __future__ import annotations

from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from phyxel.body import Body
from phyxel.body.quantities import Quantity
from phyxel.mls.neighbours import nearest

Floats = NDArray[np.floating]

OUTSIDE = 0.5
"""Spacings up to which places outside the surface are kept: part of their cell is inside."""
FINER = np.stack(np.meshgrid(*[(-0.25, 0.25)] * 3, indexing="ij"), axis=-1).reshape(-1, 3)
"""Middles of the eight parts of a cell, in spacings from its own."""
BLOCK = 4
"""Cells along a block that is looked at as one."""
CROWD, REACH = 24, 1.6
"""Nodes of a melt that are counted around a place, by (1 − r²/R²)³ within so many node spacings R."""
SKIN, THINNING = 1.33, 2.3
"""That sum half a spacing beyond the outermost nodes, and how much less it is a spacing farther out."""


def signed_distance(body: Body, X: Floats) -> Floats:
    """Of (m, 3) reference positions [m] from the body's surface [m], negative inside, shape (m,)."""
    if body.reshaped:
        count = min(CROWD, len(body.birth))
        near = nearest(X, body.reference, count)[0] / (REACH * body.unit)
        crowd = (np.maximum(1 - near**2, 0) ** 3).sum(axis=1)
        return body.unit * np.maximum((SKIN - crowd) / THINNING, near[:, 0] * REACH - 1)
    return body.born.unit * body.solid_distance((X - body.born.centre) / body.born.unit)


def reference_box(body: Body) -> tuple[Floats, Floats]:
    """Around a body's reference shape [m]."""
    places = body.reference if body.reshaped else body.placed_cloud()
    margin = body.unit if body.reshaped else 0.0
    return places.min(axis=0) - margin, places.max(axis=0) + margin


def shape_of(body: Body) -> tuple[int, ...]:
    """What is another whenever the reference shape of a body is, or what carries its places."""
    cracks = 0 if body.fracture is None else body.fracture.cracks.revision
    return len(body.birth), cracks, body.anchor.absorbed if body.reshaped else -1


def uncracked(body: Body, one: Floats, other: Floats) -> NDArray[np.bool_]:
    """Whether no crack lies between reference positions (n, 3) and (n, 3) [m], shape (n,)."""
    if body.fracture is None or body.reshaped or not len(body.fracture.cracks):
        return np.ones(len(one), bool)
    born = body.born
    return body.fracture.cracks.sees((one - born.centre) / born.unit, (other - born.centre) / born.unit)


class FieldLattice:
    """A lattice in the reference shape of a body, `spacing` [m] apart; it lasts as long as that shape."""

    def __init__(self, body: Body, spacing: float) -> None:
        self.body, self.spacing = body, spacing
        lower, upper = reference_box(body)
        first = np.floor(lower / spacing).astype(int)
        counts = np.ceil(upper / spacing).astype(int) - first + 1
        cells = _near_cells(body, first, counts, spacing)
        X = (first + cells + 0.5) * spacing
        distance = signed_distance(body, X)
        kept = distance < max(OUTSIDE * spacing, 1.001 * distance.min())  # of a splinter one place at least
        self.X: Floats = X[kept]
        """[m], shape (m, 3)"""
        self.distance: Floats = distance[kept]
        """from the surface [m], negative inside, shape (m,)"""
        number = np.full(np.prod(counts + BLOCK + 1), -1)
        rows, columns = counts[1:] + BLOCK + 1
        strides = np.array([rows * columns, columns, 1])
        self._next = np.empty((len(self.X), 3), np.int64)
        number[cells[kept] @ strides] = np.arange(len(self.X))
        for axis in range(3):
            after = number[cells[kept] @ strides + strides[axis]]
            parted = ~uncracked(body, self.X, self.X[after])
            self._next[:, axis] = np.where(parted, -1, after)
        self.probe = body.probe(self.X)

    def __len__(self) -> int:
        return len(self.X)

    @property
    def inside(self) -> NDArray[np.bool_]:
        """Which places lie inside, shape (m,)."""
        return self.distance < 0

    def pairs(self, axis: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Neighbours along an axis, as two arrays of numbers (p,)."""
        first = np.flatnonzero(self._next[:, axis] >= 0)
        return first, self._next[first, axis]

    @cached_property
    def parts(self) -> tuple[NDArray[np.int64], Floats, Floats]:
        """Finer parts of the cells: which cell each is of (k,), its way from the cell's place [m], (k, 3), and how much
        of it is inside [m³], (k,)."""
        owner = np.repeat(np.arange(len(self)), len(FINER))
        offset = np.tile(self.spacing * FINER, (len(self), 1))
        distance = self.distance[owner] - 0.5 * self.spacing
        near = np.abs(self.distance)[owner] < self.spacing  # others are wholly inside
        distance[near] = signed_distance(self.body, self.X[owner[near]] + offset[near])
        side = 0.5 * self.spacing
        volume = side**3 * np.clip(0.5 - distance / side, 0, 1)
        kept = volume > 0
        return owner[kept], offset[kept], volume[kept]

    def slopes(self, values: Floats) -> Floats:
        """∇f of values (m,) at the places, by differences with neighbours, shape (m, 3)."""
        slopes = np.zeros((len(self), 3))
        for axis in range(3):
            one, other = self.pairs(axis)
            rise = (values[other] - values[one]) / self.spacing
            total = np.bincount(one, rise, len(self)) + np.bincount(other, rise, len(self))
            count = np.bincount(one, minlength=len(self)) + np.bincount(other, minlength=len(self))
            slopes[:, axis] = total / np.maximum(count, 1)
        return slopes

    def look(self, quantity: Quantity) -> LatticeValues:
        """How things are now."""
        x = self.X + self.probe.displacement()
        values = np.asarray(quantity.at(self.probe), np.float64)
        return LatticeValues(self, x, np.eye(3) + self.probe.gradient(), values, self.slopes(values))


def _near_cells(
    body: Body, first: NDArray[np.integer], counts: NDArray[np.integer], spacing: float
) -> NDArray[np.integer]:
    """Cells of a lattice that may touch a body, (k, 3), counted from the first: whole blocks that are not too far off,
    for to ask a scan for distances takes long."""
    blocks = _grid_of(-(-counts // BLOCK))
    middles = (first + BLOCK * (blocks + 0.5)) * spacing
    distance = signed_distance(body, middles)
    near = distance <= max((0.5 * np.sqrt(3) * BLOCK + OUTSIDE) * spacing, distance.min())
    return (BLOCK * blocks[near][:, None] + _grid_of(np.full(3, BLOCK))).reshape(-1, 3)


def _grid_of(counts: NDArray[np.integer]) -> NDArray[np.int64]:
    return np.stack(np.meshgrid(*(np.arange(n) for n in counts), indexing="ij"), axis=-1).reshape(-1, 3)


class LatticeValues(NamedTuple):
    """What a lattice has at one moment."""

    lattice: FieldLattice
    x: Floats
    """where its places are [m], shape (m, 3)"""
    J: Floats
    """I + ∇u, shape (m, 3, 3)"""
    values: Floats
    """of the quantity, shape (m,)"""
    slopes: Floats
    """their gradient in the reference shape, shape (m, 3)"""

    def traced(self, x: Floats) -> tuple[Floats, Floats]:
        """Where places (n, 3) [m] of the surface are in the reference shape [m], (n, 3), and the values there (n,):
        straight on from the nearest place of the lattice."""
        k = nearest(x, self.x, 1)[1][:, 0]
        back = np.einsum("nab,nb->na", inverses(self.J)[k], x - self.x[k])
        # What has been crushed flat would be traced to anywhere.
        length = np.linalg.norm(back, axis=1, keepdims=True)
        back *= np.minimum(1, 2 * self.lattice.spacing / np.maximum(length, 1e-300))
        return self.lattice.X[k] + back, self.values[k] + np.einsum("na,na->n", self.slopes[k], back)


def inverses(J: Floats) -> Floats:
    """J⁻¹ (m, 3, 3), or I where there is none."""
    det = np.linalg.det(J)
    good = np.abs(det) > 1e-6
    return np.linalg.inv(np.where(good[:, None, None], J, np.eye(3)))
