"""A grid of boxes over a solid, and the volume of the solid in each box."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Distance = Callable[[Floats], Floats]

PARTS = 4
"""A box that the surface may cut is split into PARTS³."""


@dataclass(frozen=True)
class Grid:
    """Equal boxes that fill a bounding box exactly, so that flat faces lie on box faces."""

    lower: Floats
    upper: Floats
    shape: tuple[int, int, int]

    @staticmethod
    def fitted(lower: Floats, upper: Floats, *, cells: int | None = None, cell: float | None = None) -> Grid:
        """Boxes as near to cubes as fits: `cells` along the longest side, or of side `cell` [m]."""
        extent = upper - lower
        side = float(extent.max()) / cells if cells else float(cell or 0)
        counts = np.maximum(1, np.round(extent / side)).astype(int)
        return Grid(lower, upper, (int(counts[0]), int(counts[1]), int(counts[2])))

    @property
    def cell(self) -> Floats:
        """Sides of a box [m], shape (3,)."""
        return (self.upper - self.lower) / np.array(self.shape)

    def centres(self) -> Floats:
        """Centres of all boxes [m], shape (boxes, 3)."""
        axes = [
            low + (np.arange(n) + 0.5) * side for low, n, side in zip(self.lower, self.shape, self.cell, strict=True)
        ]
        return np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, 3)

    def quadrature(self, distance: Distance) -> tuple[Floats, Floats]:
        """Points inside the solid and the volume each stands for: (N, 3) [m] and (N,) [m³].

        A box far inside is one point. A box that the surface may cut is split, and a part of it counts by how much of
        it lies inside if the surface were flat there.
        """
        centres = self.centres()
        depth = distance(centres)
        diagonal = float(np.linalg.norm(self.cell))
        # Distance functions of blended shapes may be off by some ten per cent away from the surface.
        cut = np.abs(depth) < 0.7 * diagonal
        whole = (depth < 0) & ~cut
        part = self.cell / PARTS
        offsets = Grid(-self.cell / 2, self.cell / 2, (PARTS,) * 3).centres()
        parts = (centres[cut][:, None, :] + offsets).reshape(-1, 3)
        share = np.clip(0.5 - distance(parts) / np.cbrt(part.prod()), 0.0, 1.0)
        held = share > 0
        points = np.concatenate([centres[whole], parts[held]])
        weights = np.concatenate([np.full(int(whole.sum()), self.cell.prod()), share[held] * part.prod()])
        return points, weights

    def volume(self, distance: Distance) -> float:
        """Volume of the solid [m³]."""
        return float(self.quadrature(distance)[1].sum())
