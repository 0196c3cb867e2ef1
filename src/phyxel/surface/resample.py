# mypy: disable-error-code="valid-type,no-untyped-def"
"""Surfels as rows of a table on the host: put where there are too few, taken away where there are too many, and spread
evenly (M04 §5.2.4, physics 8.7)."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
import warp as wp
from numpy.typing import NDArray

from phyxel import device as dev
from phyxel.device import as_vectors
from phyxel.mls.neighbours import grid_for
from phyxel.region import Floats
from phyxel.rotation import tangents
from phyxel.surface.discs import OVERLAP, DiscShape

wp.set_module_options(dev.KERNEL_OPTIONS)

Singles = NDArray[np.float32]

DETAIL, SKIN, CONTACT = 0, 1, 2
"""L_D, L_I and L_C: what a surfel lies on."""
LOOSE = 1.25
"""How much farther apart surfels may be than they should: √(13/8), where 8 are around one in place of 13."""
AROUND = 2.0
"""Radius in which a surfel's neighbours are counted, over the spacing it should have."""
FEWEST, EVENLY, MOST = 8, 13, 24
"""min, evenly spread, and max number of neighbours."""
AT_ONCE = 3
"""Most new surfels by one in a round."""
PUSH = 0.25
"""Way that repulsion moves a surfel, over its spacing, if all its neighbours are on one side."""


@dataclass(frozen=True)
class SurfelTable:
    """Surfels that are shown, in node spacings, each array of m rows."""

    points: Singles
    normals: Singles
    axis_a: Singles
    axis_b: Singles
    colors: Singles
    spacing: Singles
    """how far apart they should be, shape (m,)"""
    source: NDArray[np.int32]
    """the zombie it is, −1 for a new one, shape (m,)"""
    layer: NDArray[np.int32]
    """DETAIL, SKIN or CONTACT: where it is kept, shape (m,)"""
    row: NDArray[np.int32]
    """which of those shown until now it is, −1 for none, shape (m,)"""

    def __len__(self) -> int:
        return len(self.points)

    @staticmethod
    def of(shape: DiscShape, spacing: Singles, source: NDArray[np.int32], layer: NDArray[np.int32]) -> SurfelTable:
        """Shape as they are carried."""
        points, axis_a, axis_b, colors = (np.asarray(values, np.float32) for values in shape)
        itself = np.arange(len(points), dtype=np.int32)
        return SurfelTable(
            points, unit_vectors(np.cross(axis_a, axis_b)), axis_a, axis_b, colors, spacing, source, layer, itself
        )

    @property
    def shape(self) -> DiscShape:
        return DiscShape(self.points, self.axis_a, self.axis_b, self.colors)

    def part(self, kept: NDArray[np.integer] | NDArray[np.bool_]) -> SurfelTable:
        """Some of them."""
        return SurfelTable(*(getattr(self, field.name)[kept] for field in fields(self)))

    def but(self, some: NDArray[np.integer], **values: NDArray[Any]) -> SurfelTable:
        """With other values for some of them."""
        changed = {name: getattr(self, name).copy() for name in values}
        for name, array in changed.items():
            array[some] = values[name]
        return replace(self, **changed)

    def joined(self, more: SurfelTable) -> SurfelTable:
        """These, then others."""
        pairs = ((getattr(self, field.name), getattr(more, field.name)) for field in fields(self))
        return SurfelTable(*(np.concatenate(pair) for pair in pairs))


def dressed(sheet: SurfelTable) -> SurfelTable:
    """New surfels with discs that cover their surroundings."""
    new = np.flatnonzero(sheet.source < 0)
    radius = (OVERLAP * LOOSE * sheet.spacing[new])[:, None]
    a, b = tangents(sheet.normals[new])
    axis_a, axis_b = sheet.axis_a.copy(), sheet.axis_b.copy()
    axis_a[new], axis_b[new] = radius * a, radius * b
    return replace(sheet, axis_a=axis_a, axis_b=axis_b)


def laid(sheet: SurfelTable, which: NDArray[np.integer]) -> SurfelTable:
    """Shape of some surfels, (k,), laid flat to their normals."""
    n = sheet.normals[which]
    axes = []
    for axis in (sheet.axis_a, sheet.axis_b):
        turned = axis.copy()
        turned[which] -= np.einsum("ma,ma->m", axis[which], n)[:, None] * n
        axes.append(turned)
    return replace(sheet, axis_a=axes[0], axis_b=axes[1])


def longest_axis(sheet: DiscShape | SurfelTable) -> Singles:
    """Longest half axis of each disc: the larger singular value of [a b], shape (m,)."""
    aa, bb, ab = (
        np.einsum("ma,ma->m", x, y)
        for x, y in ((sheet.axis_a, sheet.axis_a), (sheet.axis_b, sheet.axis_b), (sheet.axis_a, sheet.axis_b))
    )
    return np.sqrt(0.5 * (aa + bb) + np.sqrt(0.25 * (aa - bb) ** 2 + ab * ab)).astype(np.float32)


def unit_vectors(vectors: Floats) -> Singles:
    """Vectors (m, 3) of length one."""
    return (vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-12)).astype(np.float32)


@wp.kernel
def count_around(
    first: int,
    grid: wp.uint64,
    points: wp.array(dtype=wp.vec3),
    normals: wp.array(dtype=wp.vec3),
    radii: wp.array(dtype=float),
    some: wp.array(dtype=wp.int32),
    count: wp.array(dtype=wp.int32),
    push: wp.array(dtype=wp.vec3),
):
    """How many surfels that look the same way are within the radius of some, and where to they push them."""
    t = first + wp.tid()
    s = some[t]
    x = points[s]
    n = normals[s]
    radius = radii[s]
    found = int(0)
    total = wp.vec3()
    for other in wp.hash_grid_query(grid, x, radius):
        away = x - points[other]
        r = wp.length(away)
        if other != s and r < radius and wp.dot(n, normals[other]) > 0.0:
            found += 1
            near = 1.0 - r / radius
            total += (near * near / wp.max(r, 1.0e-3 * radius)) * away
    count[t] = found
    push[t] = total - wp.dot(total, n) * n


@wp.kernel
def look_around(
    first: int,
    grid: wp.uint64,
    places: wp.array(dtype=wp.vec3),
    points: wp.array(dtype=wp.vec3),
    radius: float,
    bare: wp.array(dtype=wp.int32),
):
    """Whether there is no point within a radius of each place."""
    s = first + wp.tid()
    x = places[s]
    bare[s] = 1
    for other in wp.hash_grid_query(grid, x, radius):
        if wp.length_sq(x - points[other]) < radius * radius:
            bare[s] = 0
            break


class Crowd:
    """Counts neighbours on a surface, and pushes them apart."""

    def __init__(self, device: wp.Device) -> None:
        self._device = device
        self._grid: Any = None
        self._room = 0

    def around(
        self, points: Floats, normals: Floats, spacing: Floats, some: NDArray[np.integer] | None = None
    ) -> tuple[NDArray[np.int32], Singles]:
        """Neighbours of each surfel, or of some (k,), and the way (k, 3) along the surface that leads away from them,
        in its spacings; `spacing` (m,) is how far apart they should be."""
        device = self._device
        asked = np.arange(len(points)) if some is None else some
        k = len(asked)
        if k == 0:
            return np.zeros(0, np.int32), np.zeros((0, 3), np.float32)
        x, n = as_vectors(points, self._device), as_vectors(normals, self._device)
        radii = wp.array((AROUND * spacing).astype(np.float32), dtype=float, device=device)
        chosen = wp.array(asked.astype(np.int32), dtype=wp.int32, device=device)
        self._build(x, AROUND * float(spacing.max()))
        count, push = wp.empty(k, dtype=wp.int32, device=device), wp.empty(k, dtype=wp.vec3, device=device)
        dev.launch(count_around, k, [self._grid.id, x, n, radii, chosen, count, push], device)
        return count.numpy(), push.numpy()

    def bare(self, places: Floats, points: Floats, radius: float) -> NDArray[np.bool_]:
        """Which of (k, 3) places have none of (m, 3) points within a radius, (k,)."""
        if len(points) == 0 or len(places) == 0:
            return np.ones(len(places), bool)
        x, there = as_vectors(places, self._device), as_vectors(points, self._device)
        self._build(there, radius)
        bare = wp.empty(len(x), dtype=wp.int32, device=self._device)
        dev.launch(look_around, len(x), [self._grid.id, x, there, radius, bare], self._device)
        return bare.numpy() == 1

    def _build(self, points: wp.array, radius: float) -> None:
        if len(points) > self._room:
            self._room = 2 * len(points)
            self._grid = grid_for(self._room, self._device)
        self._grid.build(points, radius)


def too_many(count: NDArray[np.int32], rng: np.random.Generator) -> NDArray[np.bool_]:
    """Which surfels to take away, (m,): where more than MOST are around, so many that about EVENLY are left. M04 takes
    the share k/(2 MOST); from a heap of 2 MOST, as seeds are at first where surfels are few, nothing would be left."""
    return (count > MOST) & (rng.random(len(count)) < 1 - EVENLY / np.maximum(count, 1))


def parents(count: NDArray[np.int32]) -> NDArray[np.int64]:
    """Which surfels get a new one beside them, once for each: FEWEST − k times where fewer are around."""
    return np.repeat(np.arange(len(count)), np.clip(FEWEST - count, 0, AT_ONCE))


def beside(points: Floats, normals: Floats, spacing: Floats, rng: np.random.Generator) -> Singles:
    """A place in the tangent plane of each of (m, 3) surfels, one spacing away."""
    a, b = tangents(normals)
    angle = rng.uniform(0, 2 * np.pi, len(points))
    way = np.cos(angle)[:, None] * a + np.sin(angle)[:, None] * b
    return (points + spacing[:, None] * way).astype(np.float32)


def pushed(points: Floats, push: Floats, spacing: Floats) -> Singles:
    """Surfels a little farther from those around them."""
    length = np.linalg.norm(push, axis=1, keepdims=True)
    return (points + PUSH * spacing[:, None] * push / np.maximum(length, 1.0)).astype(np.float32)
