"""Surfels as rows of a table on the host, while they are put in, taken away and moved."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from phyxel.rotation import tangents
from phyxel.surface.discs import OVERLAP, DiscShape

Floats = NDArray[np.float32]

DETAIL, SKIN, CONTACT = 0, 1, 2
"""L_D, L_I and L_C: what a surfel lies on."""
LOOSE = 1.25
"""How much farther apart surfels may be than they should: √(13/8), where 8 are around one in place of 13."""


@dataclass(frozen=True)
class SurfelTable:
    """Surfels that are shown, in node spacings, each array of m rows."""

    points: Floats
    normals: Floats
    axis_a: Floats
    axis_b: Floats
    colors: Floats
    spacing: Floats
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
    def of(shape: DiscShape, spacing: Floats, source: NDArray[np.int32], layer: NDArray[np.int32]) -> SurfelTable:
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


def longest_axis(sheet: DiscShape | SurfelTable) -> Floats:
    """Longest half axis of each disc: the larger singular value of [a b], shape (m,)."""
    aa, bb, ab = (
        np.einsum("ma,ma->m", x, y)
        for x, y in ((sheet.axis_a, sheet.axis_a), (sheet.axis_b, sheet.axis_b), (sheet.axis_a, sheet.axis_b))
    )
    return np.sqrt(0.5 * (aa + bb) + np.sqrt(0.25 * (aa - bb) ** 2 + ab * ab)).astype(np.float32)


def unit_vectors(vectors: NDArray[np.floating]) -> Floats:
    """Vectors (m, 3) of length one."""
    return (vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-12)).astype(np.float32)
