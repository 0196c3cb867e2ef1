"""Oriented, coloured ellipses: what surfels are."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
import warp as wp
from numpy.typing import NDArray

from phyxel.mls.neighbours import mean_spacing
from phyxel.rotation import tangents

Floats = NDArray[np.floating]

OVERLAP = 1.2
"""Radius of a disc over the mean distance to its six nearest: no gap between discs, also at 20 % stretch."""


def disc_radii(positions: Floats) -> Floats:
    """Radius of a disc around each point so that the discs of neighbours overlap [unit of positions], shape (m,)."""
    spacing = mean_spacing(positions, 6)
    typical = float(np.median(spacing))
    # Held near what is typical, so that a stray point does not become a plate, nor a doubled one vanish.
    return OVERLAP * np.clip(spacing, 0.4 * typical, 2.5 * typical)


@dataclass(frozen=True)
class Rest:
    """Surfels in the reference shape, in units of the node spacing about the body's origin."""

    positions: Floats
    normals: Floats
    colors: Floats
    """red, green, blue in 0..1"""
    unit: float
    """how long the node spacing is [m]"""
    known_radii: Floats | None = None
    """of discs that are there already, shape (m,)"""
    axes: tuple[Floats, Floats] | None = None
    """half axes over the radius of discs that need not be round, each (m, 3)"""

    @cached_property
    def radii(self) -> Floats:
        """Of the discs, in the unit of the positions, shape (m,)."""
        return disc_radii(self.positions) if self.known_radii is None else self.known_radii

    def part(self, chosen: NDArray[np.integer]) -> Rest:
        """Some of them, as large as they are."""
        x, n, color = (array[chosen] for array in (self.positions, self.normals, self.colors))
        axes = None if self.axes is None else (self.axes[0][chosen], self.axes[1][chosen])
        return Rest(x, n, color, self.unit, self.radii[chosen], axes)


class DiscShape(NamedTuple):
    """Discs in the reference shape, in units of the node spacing about the body's origin, each array (m, 3)."""

    points: Floats
    axis_a: Floats
    axis_b: Floats
    colors: Floats
    """red, green, blue in 0..1"""

    @staticmethod
    def at_birth(rest: Rest) -> DiscShape:
        """Round unless they are said to be slim, and so large that they cover the surface."""
        radius = rest.radii[:, None]
        axis_a, axis_b = tangents(rest.normals) if rest.axes is None else rest.axes
        return DiscShape(rest.positions, radius * axis_a, radius * axis_b, rest.colors)


@dataclass(eq=False)
class Discs:
    """Surfels as Warp arrays of vec3 on one device, shape (m,), and as NumPy arrays for whoever reads them."""

    position: wp.array
    """[m] about `origin`"""
    axis_a: wp.array
    """half axis [m]"""
    axis_b: wp.array
    """half axis [m]; a × b points outward"""
    normal: wp.array
    """unit length, outward"""
    color: wp.array
    """red, green, blue in 0..1"""
    origin: NDArray[np.float64]
    """where `position` is counted from [m], in double: far away costs no digits"""

    @staticmethod
    def empty(count: int, device: wp.Device) -> Discs:
        """Room for `count` surfels."""
        x, a, b, n, color = (wp.zeros(count, dtype=wp.vec3, device=device) for _ in range(5))
        return Discs(x, a, b, n, color, np.zeros(3))

    def __len__(self) -> int:
        return len(self.position)

    def arrays(self) -> dict[str, wp.array]:
        """The five arrays by name."""
        return {name: getattr(self, name) for name in ("position", "axis_a", "axis_b", "normal", "color")}

    def beginning(self, count: int, origin: NDArray[np.float64]) -> Discs:
        """The first `count` of them, in the same memory, about another origin."""
        x, a, b, n, color = (array[:count] for array in self.arrays().values())
        return Discs(x, a, b, n, color, origin)

    def part(self, kept: NDArray[np.bool_]) -> Discs:
        """Some of them, copied."""
        x, a, b, n, color = (
            wp.array(array.numpy()[kept], dtype=wp.vec3, device=array.device) for array in self.arrays().values()
        )
        return Discs(x, a, b, n, color, self.origin)

    def take_places(self, others: Discs) -> None:
        """Be where as many others are."""
        for name, array in self.arrays().items():
            array.assign(others.arrays()[name])
        self.origin = others.origin

    def present(self) -> DiscShape:
        """As they are now [m], about `origin`."""
        return DiscShape(self.position.numpy(), self.axis_a.numpy(), self.axis_b.numpy(), self.colors)

    @property
    def positions(self) -> NDArray[np.float64]:
        """[m], shape (m, 3)"""
        return self.origin + self.position.numpy()

    @property
    def normals(self) -> NDArray[np.float32]:
        """unit length, shape (m, 3)"""
        return self.normal.numpy()

    @property
    def colors(self) -> NDArray[np.float32]:
        """red, green, blue in 0..1, shape (m, 3)"""
        return self.color.numpy()
