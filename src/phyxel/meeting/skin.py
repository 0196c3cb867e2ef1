"""Surfaces that meet, as one: points, triangles and edges of all sheets, and behind them points of other bodies."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int32]

THICKEST = 0.4
"""Thickness at most, over the rest distance between points that an edge joins: thicker ones would push neighbours
apart."""


@dataclass(frozen=True)
class Skin:
    """A surface that may be touched from both sides."""

    triangles: Ints
    """shape (m, 3)"""
    edges: Ints
    """shape (e, 2)"""
    radius: Floats
    """half the thickness about each point [m], shape (n,)"""
    folds: bool
    """whether it meets itself"""

    @staticmethod
    def of(rest: Floats, triangles: NDArray[np.integer], thickness: Floats, folds: bool) -> Skin:
        """Of points that are at `rest` (n, 3) [m] when nothing strains them, so thick (n,) [m]."""
        edges = _edges_of(triangles)
        length = np.linalg.norm(rest[edges[:, 0]] - rest[edges[:, 1]], axis=1)
        shortest = np.full(len(rest), np.inf)
        for end in edges.T:
            np.minimum.at(shortest, end, length)
        return Skin(np.asarray(triangles, np.int32), edges, 0.5 * np.minimum(thickness, THICKEST * shortest), folds)


@dataclass(frozen=True)
class Skins:
    """Several skins with their points one behind the other, and then points that meet their triangles only."""

    triangles: Ints
    edges: Ints
    radius: Floats
    own: int
    """points of sheets: those from here on are others'"""
    alone: Ints
    """the number of the sheet that a point is of, if that does not meet itself, else -1, shape (n,)"""

    @staticmethod
    def of(parts: Sequence[Skin], points: Floats) -> Skins:
        """Of sheets, and of others' points that are balls of such radii (k,) [m]."""
        starts = np.cumsum([0, *(len(part.radius) for part in parts)])

        def joined(name: str, width: int) -> Ints:
            numbered = [getattr(part, name) + start for part, start in zip(parts, starts[:-1], strict=True)]
            return np.concatenate([np.zeros((0, width), np.int32), *numbered]).astype(np.int32)

        radius = np.concatenate([*(part.radius for part in parts), points])
        alone = [np.full(len(part.radius), -1 if part.folds else number) for number, part in enumerate(parts)]
        others = np.full(len(points), -1)
        return Skins(
            joined("triangles", 3), joined("edges", 2), radius, int(starts[-1]),
            np.concatenate([*alone, others]).astype(np.int32),
        )  # fmt: skip


def _edges_of(triangles: NDArray[np.integer]) -> Ints:
    """The different edges of triangles (m, 3), lower point first, in order, shape (e, 2)."""
    ends = np.sort(np.concatenate([triangles[:, [0, 1]], triangles[:, [1, 2]], triangles[:, [2, 0]]]), axis=1)
    count = int(triangles.max(initial=0)) + 1
    keys = np.unique(ends[:, 0].astype(np.int64) * count + ends[:, 1])
    return np.stack([keys // count, keys % count], axis=1).astype(np.int32)
