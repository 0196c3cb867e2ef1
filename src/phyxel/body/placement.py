"""How a cloud lies in the world: its size, its turn and its place; and what numbers of a body are counted from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from phyxel.errors import PhyxelError
from phyxel.region import BoxRegion, Vector, as_vector
from phyxel.rotation import euler
from phyxel.solid.octree import Region

Floats = NDArray[np.float64]


@dataclass(eq=False)
class Anchor:
    """The length a body computes in and where its numbers are counted from. Bodies that flow together share one."""

    unit: float
    """mean node spacing [m]"""
    centre: Floats
    """middle of the reference shape [m], shape (3,)"""
    origin: Floats
    """where that is now [m], shape (3,); the world moves it along with the body"""
    absorbed: int = 0
    """how often the present shape has become the reference shape"""
    surfaced: int = 0
    """how often surfaces were made anew while they flowed"""


@dataclass(frozen=True, eq=False)
class Placement:
    """From the coordinates of a cloud to those of the shape at birth: at + m + scale · R (x − m)."""

    middle: Floats
    """m, of its bounding box, in its own coordinates, shape (3,)"""
    scale: float
    rotation: Floats
    """R: how the cloud's axes stand in the world, 3 × 3"""
    at: Floats
    """[m], shape (3,)"""

    @staticmethod
    def asked(
        name: str, lower: Floats, upper: Floats, at: Vector, rotate: Vector | None, size: float | None
    ) -> Placement:
        """Of a cloud with these corners, as the body of this name is asked to be."""
        if size is not None and not (isinstance(size, int | float | np.number) and np.isfinite(size) and size > 0):
            raise PhyxelError(f"{name}: size = {size}: give the largest extent in metres, above 0")
        scale = 1.0 if size is None else float(size) / float((upper - lower).max())
        angles = as_vector(f"{name}: rotate", (0.0, 0.0, 0.0) if rotate is None else rotate)
        rotation = euler(angles)
        return Placement(0.5 * (lower + upper), scale, rotation, as_vector(f"{name}: at", at))

    def placed(self, positions: NDArray[np.floating]) -> Floats:
        """Where (m, 3) places of the cloud are in the shape at birth [m], shape (m, 3)."""
        turned = (np.asarray(positions, np.float64) - self.middle) @ self.rotation.T
        return self.at + self.middle + self.scale * turned

    def unplaced(self, positions: Floats) -> Floats:
        """Where (m, 3) positions [m] of the shape at birth are in the cloud, shape (m, 3)."""
        return self.middle + (positions - self.at - self.middle) @ self.rotation / self.scale

    def region_in_cloud(self, entry: Region) -> Region:
        """A region to refine, given in positions at birth, in those of the cloud."""
        if not (isinstance(entry, Sequence) and len(entry) == 2 and callable(entry[0])):
            return entry  # the solid says what is wrong with it
        where, levels = entry
        if isinstance(where, BoxRegion) and np.array_equal(self.rotation, np.eye(3)):
            lower, upper = (
                self.middle + (np.asarray(corner, float) - self.at - self.middle) / self.scale
                for corner in (where.lower, where.upper)
            )
            return BoxRegion(lower.tolist(), upper.tolist()), levels
        return lambda positions: where(self.placed(positions)), levels
