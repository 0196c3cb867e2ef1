"""How a cloud lies in the world: its size, its turn and its place; and what numbers of a body are counted from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from phyxel.errors import PhyxelError, did_you_mean
from phyxel.points.cloud import PointCloud
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


Place = Literal["ground", "center", "file"]
PLACES: tuple[Place, ...] = get_args(Place)
"""Which spot of a body is where it is put: the middle of its foot, the middle of its box, or its cloud's own origin."""


@dataclass(frozen=True)
class Pose:
    """How a body is asked to lie in the world.

    Turned and scaled, it has its spot `place` at `at`: "ground" is the middle of its foot (of its box in x and z, its
    lowest point in y), "center" the middle of its own box, "file" the origin of its cloud, so that parts of one file
    stay together. Unless a place is said, it is the foot. Where neither is said, a file stands on the world's origin,
    and all else stays where its points are.
    """

    name: str
    """of the body, for messages"""
    at: Vector | None
    place: str | None
    rotate: Vector | None
    size: float | None

    @property
    def asked(self) -> tuple[object, ...]:
        """What decides where a body lies."""
        return self.at, self.place, self.rotate, self.size

    def of(self, skin: PointCloud, lower: ArrayLike, upper: ArrayLike) -> Placement:
        """The placement of a cloud whose points on the surface are a `skin`, with these corners [m]."""
        low, high = np.asarray(lower, np.float64), np.asarray(upper, np.float64)
        middle, scale = 0.5 * (low + high), self._scale(float((high - low).max()))
        turned = (0.0, 0.0, 0.0) if self.rotate is None else self.rotate
        rotation = euler(as_vector(f"{self.name}: rotate", turned, "degrees"))
        around = Placement(middle, scale, rotation, np.zeros(3))
        at = as_vector(f"{self.name}: at", (0.0, 0.0, 0.0) if self.at is None else self.at, "m")
        return replace(around, at=at - self._spot(around, skin))

    def _scale(self, extent: float) -> float:
        size = self.size
        if size is None:
            return 1.0
        if not (isinstance(size, int | float | np.number) and np.isfinite(size) and size > 0):
            raise PhyxelError(f"{self.name}: size = {size}: give the largest extent in metres, above 0")
        return float(size) / extent

    def _spot(self, around: Placement, skin: PointCloud) -> Floats:
        """What goes to `at`, of a cloud that lies around the origin [m], shape (3,)."""
        if self.place is None and self.at is None and not skin.from_file:
            return -around.middle
        if self.place == "center":
            return np.zeros(3)
        if self.place == "file":
            return around.placed(np.zeros((1, 3)))[0]
        if self.place not in (None, "ground"):
            raise PhyxelError(f'{self.name}: place = "{self.place}": not known{did_you_mean(str(self.place), PLACES)}')
        return around.foot(skin.positions)


@dataclass(frozen=True, eq=False)
class Placement:
    """From the coordinates of a cloud to those of the shape at birth: at + scale · R (x − m)."""

    middle: Floats
    """m, of its bounding box, in its own coordinates, shape (3,)"""
    scale: float
    rotation: Floats
    """R: how the cloud's axes stand in the world, 3 × 3"""
    at: Floats
    """where m goes [m], shape (3,)"""

    def foot(self, positions: NDArray[np.floating]) -> Floats:
        """What stands on the ground, of (m, 3) places of the cloud: the middle of their box, at its lower end [m],
        shape (3,)."""
        placed = self.placed(positions)
        lower, upper = placed.min(axis=0), placed.max(axis=0)
        return np.array([0.5 * (lower[0] + upper[0]), lower[1], 0.5 * (lower[2] + upper[2])])

    def placed(self, positions: NDArray[np.floating]) -> Floats:
        """Where (m, 3) places of the cloud are in the shape at birth [m], shape (m, 3)."""
        turned = (np.asarray(positions, np.float64) - self.middle) @ self.rotation.T
        return self.at + self.scale * turned

    def unplaced(self, positions: Floats) -> Floats:
        """Where (m, 3) positions [m] of the shape at birth are in the cloud, shape (m, 3)."""
        return self.middle + (positions - self.at) @ self.rotation / self.scale

    def region_in_cloud(self, entry: Region) -> Region:
        """A region to refine, given in positions at birth, in those of the cloud."""
        if not (isinstance(entry, Sequence) and len(entry) == 2 and callable(entry[0])):
            return entry  # the solid says what is wrong with it
        where, levels = entry
        if isinstance(where, BoxRegion) and np.array_equal(self.rotation, np.eye(3)):
            lower, upper = (
                self.middle + (np.asarray(corner, float) - self.at) / self.scale
                for corner in (where.lower, where.upper)
            )
            return BoxRegion(lower.tolist(), upper.tolist()), levels
        return lambda positions: where(self.placed(positions)), levels
