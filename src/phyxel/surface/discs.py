"""Oriented, coloured ellipses: what surfels are."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import warp as wp
from numpy.typing import NDArray

from phyxel.mls.neighbours import mean_spacing

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

    @cached_property
    def radii(self) -> Floats:
        """Of the discs, in the unit of the positions, shape (m,)."""
        return disc_radii(self.positions)


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
        position, axis_a, axis_b, normal, color = (wp.zeros(count, dtype=wp.vec3, device=device) for _ in range(5))
        return Discs(position, axis_a, axis_b, normal, color, np.zeros(3))

    def __len__(self) -> int:
        return len(self.position)

    def arrays(self) -> dict[str, wp.array]:
        """The five arrays by name."""
        return {name: getattr(self, name) for name in ("position", "axis_a", "axis_b", "normal", "color")}

    def beginning(self, count: int, origin: NDArray[np.float64]) -> Discs:
        """The first `count` of them, in the same memory, about another origin."""
        position, axis_a, axis_b, normal, color = (array[:count] for array in self.arrays().values())
        return Discs(position, axis_a, axis_b, normal, color, origin)

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
