"""Volume, middle and second moments of a body's solid, and nodes that have them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from phyxel.points.moments import SolidMoments, enclosed_by
from phyxel.solid.solid import Solid
from phyxel.surface.isosurface import isosurface

Floats = NDArray[np.float64]

CELLS = (24, 48)
"""Cells of the meshes that are measured, along a cube of the solid's volume. Their errors go with the square of a
cell's size: both together tell of one without."""
AROUND = 0.02
"""How far beyond its box a solid is looked for, over the size of that."""


def moments_of(solid: Solid) -> SolidMoments:
    """Of a closed mesh and of simple shapes exact, of others to some 1e-4."""
    return _measured(solid) if solid.moments is None else solid.moments


def _measured(solid: Solid) -> SolidMoments:
    """By the meshes of its surface."""
    margin, middle = AROUND * (solid.upper - solid.lower).max(), 0.5 * (solid.lower + solid.upper)
    lower, upper = solid.lower - margin, solid.upper + margin
    side = float(np.cbrt(solid.volume))

    def meshed(cells: int) -> SolidMoments:
        corners, faces = isosurface(solid.distance, lower, upper, side / cells, solid.skin.positions)
        return enclosed_by((corners - middle)[faces])

    found = _extrapolated([meshed(cells) for cells in CELLS])
    return SolidMoments(found.volume, middle + found.middle, found.second)


def _extrapolated(meshes: Sequence[SolidMoments]) -> SolidMoments:
    """What meshes of cells of some size, and of half that, would say of cells of none."""
    raw = [
        (one.volume, one.volume * one.middle, one.second + one.volume * np.outer(one.middle, one.middle))
        for one in meshes
    ]
    volume, first, second = ((4 * fine - coarse) / 3 for coarse, fine in zip(*raw, strict=True))
    return SolidMoments.about_origin(float(volume), first, second)


def balanced(X: Floats, volumes: Floats, whole: SolidMoments) -> Floats:
    """Volumes [m³] of nodes at X (n, 3) [m], near these (n,), whose sum and middle are those of the whole."""
    volumes = volumes * (whole.volume / volumes.sum())
    away = X - volumes @ X / whole.volume
    second = (volumes[:, None] * away).T @ away
    tilt = np.linalg.lstsq(second, whole.volume * (whole.middle - volumes @ X / whole.volume), rcond=1e-9)[0]
    return np.asarray(volumes * (1 + away @ tilt))
