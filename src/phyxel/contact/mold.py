"""Molds (physics 15.1): any solid as a collider, from outside or from inside."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from functools import cached_property
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import cKDTree

from phyxel.contact.colliders import Collider
from phyxel.contact.distances import GRID
from phyxel.errors import PhyxelError, knows_its_arguments
from phyxel.points.cloud import CloudLike, as_cloud
from phyxel.points.shapes import box_distance
from phyxel.solid.solid import Solid

Floats = NDArray[np.float64]

GRID_CELLS = 96
"""Cells of the grid along the longest side of the solid."""
MARGIN = 4
"""Cells of the grid around the solid."""
MEASURED_RIM = 16.0
"""Distance from the rim of a mouth that is measured, in cells."""
WALL = 0.1
"""Thickness of the block around a cavity, over the longest side of the cavity."""


@knows_its_arguments
@dataclass(frozen=True, eq=False)
class Mold(Collider):
    """A solid that nothing enters; or, inside out, a block with a cavity of that shape, which bodies in it fill.

    `at`, `rotate` and `size` place the solid as they place a body: `at` moves it, `rotate` turns it about the middle of
    its bounding box, `size` [m] scales its largest extent.

    >>> mold = px.Mold(px.load("sphere"), inside_out=True)
    >>> mold.distance(np.array([[0, 0.1, 0]])).round(2)  # in the cavity, of radius 0.25 m
    array([0.15])
    """

    solid: Solid | CloudLike = field(repr=False)
    """a solid, or what one is made of: a cloud or arrays [m], as of `px.load`"""
    inside_out: bool = False
    """whether it is a block with a cavity"""
    size: float | None = None
    open_above: float | None = None
    """height [m], before `at` and `rotate`, above which it is cut away, so that one can fill a cavity from there"""
    kind: ClassVar[int] = int(GRID)

    def __post_init__(self) -> None:
        super().__post_init__()
        if not isinstance(self.solid, Solid):
            object.__setattr__(self, "solid", Solid(as_cloud(self.solid, "mold")))
        if not isinstance(self.inside_out, bool):
            raise PhyxelError(f"mold.inside_out = {self.inside_out!r}: give True or False")
        if self.size is not None:
            self._check_length("size")
        lower, upper = self.middle - self._half, self.middle + self._half
        if self.open_above is not None and not lower[1] < self.open_above < upper[1] + self._wall:
            raise PhyxelError(
                f"mold.open_above = {self.open_above}: the mold reaches from y = {lower[1]:.4g} to {upper[1]:.4g} m; "
                "give a height between"
            )

    @property
    def see_through(self) -> bool:  # type: ignore[override]
        return self.inside_out

    @property
    def _solid(self) -> Solid:
        assert isinstance(self.solid, Solid)
        return self.solid

    @property
    def middle(self) -> Floats:
        return 0.5 * (self._solid.lower + self._solid.upper)

    @property
    def _scale(self) -> float:
        extent = float((self._solid.upper - self._solid.lower).max())
        return 1.0 if self.size is None else float(self.size) / extent

    @property
    def _half(self) -> Floats:
        """Half the sides of the solid [m]."""
        return 0.5 * self._scale * (self._solid.upper - self._solid.lower)

    @property
    def _wall(self) -> float:
        return 2 * WALL * float(self._half.max()) if self.inside_out else 0.0

    @property
    def _cell(self) -> float:
        return 2 * float(self._half.max()) / GRID_CELLS

    @property
    def sizes(self) -> tuple[float, ...]:
        return (self._cell,)

    @property
    def box(self) -> tuple[Floats, Floats]:
        return -self._half - self._wall, self._half + self._wall

    @cached_property
    def grid(self) -> Floats:
        """Signed distances at the corners of a grid about the middle [cells], shape (nx, ny, nz)."""
        cell = self._cell
        half = np.ceil((self._half + self._wall) / cell) + MARGIN
        axes = [cell * np.arange(-reach, reach + 1) for reach in half]
        corners = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1)
        values = self.distance(corners.reshape(-1, 3)).reshape(corners.shape[:3]) / cell
        if self.open_above is None:
            return values
        return _measured_anew(values, corners[..., 1] > self.open_above - self.middle[1])

    def distance(self, positions: Floats) -> Floats:
        """Signed distances [m] of (N, 3) positions in the mold's frame, shape (N,)."""
        sides: list[NDArray[np.floating]] = [self._scale * self._solid.distance(self.middle + positions / self._scale)]
        if self.inside_out:
            sides = [-sides[0], box_distance(positions, np.zeros(3), self._half + self._wall)]
        if self.open_above is not None:
            sides.append(positions[:, 1] - (self.open_above - self.middle[1]))
        return _common(sides)

    def wall(self, positions: Floats) -> tuple[Floats, Floats, Floats]:
        """Nearest points (N, 3) [m] of the solid's surface to (N, 3) positions in the mold's frame, its outward normals
        there (N, 3), and the signed distances from it (N,), negative in the solid. To the digits of the solid itself,
        where `grid` has only what is needed to keep bodies off."""
        foot, normal, distance = self._solid.closest(self.middle + positions / self._scale)
        return self._scale * (foot - self.middle), normal, self._scale * distance

    def near_wall(self, positions: Floats, reach: float) -> NDArray[np.bool_]:
        """Which of (N, 3) positions in the mold's frame may lie within `reach` [m] of its wall, (N,); above where it is
        open there is none."""
        lower, upper = -self._half - reach, self._half + reach
        if self.open_above is not None:
            upper = np.minimum(upper, [np.inf, self.open_above - self.middle[1], np.inf])
        return np.asarray(((positions > lower) & (positions < upper)).all(axis=1))

    def shows(self, positions: NDArray[np.floating]) -> NDArray[np.bool_]:
        """Which points of its surface, (N, 3) in its frame, are worth showing: of a cavity not the block around it."""
        if not self.inside_out:
            return np.ones(len(positions), bool)
        to_cavity = self._scale * self._solid.distance(self.middle + positions / self._scale)
        return np.asarray(np.abs(to_cavity) < self._cell)

    def signature(self) -> str:
        """What it is, by its points."""
        skin = self._solid.skin
        content = hashlib.sha256(skin.positions.tobytes() + (b"" if skin.normals is None else skin.normals.tobytes()))
        return f"{super().signature()} {content.hexdigest()}"


def _measured_anew(values: Floats, over: NDArray[np.bool_]) -> Floats:
    """Signed distances [cells] on a grid that are right `over` the mouth of an opened cavity, too: there the nearest
    wall is its rim, however near the planes are that bound it. Farther than MEASURED_RIM cells nothing touches."""
    surface = np.concatenate([_crossings(values, axis) for axis in range(3)])
    far = np.argwhere(over & (values > 1) & (values < MEASURED_RIM))
    measured = values.copy()
    nearest, _ = cKDTree(surface).query(far, distance_upper_bound=MEASURED_RIM, workers=-1)
    measured[tuple(far.T)] = np.maximum(values[tuple(far.T)], np.minimum(nearest, MEASURED_RIM))
    return measured


def _crossings(values: Floats, axis: int) -> Floats:
    """Where the values change sign along one axis of the grid, (m, 3) in cells."""
    low, high = (np.moveaxis(values, axis, 0)[part] for part in (slice(None, -1), slice(1, None)))
    low, high = np.moveaxis(low, 0, axis), np.moveaxis(high, 0, axis)
    at = np.argwhere((low < 0) != (high < 0))
    one, other = low[tuple(at.T)], high[tuple(at.T)]
    places = at.astype(np.float64)
    places[:, axis] += one / (one - other)
    return places


def _common(sides: list[NDArray[np.floating]]) -> Floats:
    """Signed distance of what several solids have in common: exact where their surfaces meet at right angles."""
    values = np.stack(sides)
    outside = np.sqrt((np.maximum(values, 0) ** 2).sum(axis=0))
    return np.asarray(outside + np.minimum(values.max(axis=0), 0))
