# mypy: disable-error-code="valid-type,no-untyped-def"
"""The regular grid on which the level sets of a body's cracks live, and values between its points (physics 12.1).

In a body's reference coordinates and units (mean node spacings), double, always on the CPU: a level set is small and
its updates are sequential, whatever device moves the body.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import warp as wp
from numpy.typing import ArrayLike, NDArray

from phyxel import device as dev
from phyxel.device import float64s
from phyxel.errors import PhyxelError

wp.set_module_options(dev.KERNEL_OPTIONS)

Floats = NDArray[np.float64]

LEVEL_SPACING = 1 / 3
"""Distance of grid points over that of nodes."""
MARGIN = 4
"""Cells of the grid on each side of the body: cracks run past its surface."""


@wp.struct
class DeviceGrid:
    """A grid on the device."""

    origin: wp.vec3d
    spacing: wp.float64
    count: wp.vec3i
    """grid points along each axis"""


@dataclass(frozen=True)
class LevelGrid:
    """Points `origin + spacing·(i, j, k)`, `shape` of them along the axes."""

    origin: Floats
    spacing: float
    shape: tuple[int, int, int]

    @staticmethod
    def around(lower: ArrayLike, upper: ArrayLike, spacing: float = LEVEL_SPACING) -> LevelGrid:
        """The grid that covers a body's box with a margin of `MARGIN` cells."""
        lower, upper = np.asarray(lower, np.float64), np.asarray(upper, np.float64)
        if not (np.isfinite([lower, upper]).all() and (upper >= lower).all() and 0 < spacing < np.inf):
            raise PhyxelError(f"cracks: a grid of spacing {spacing} over {lower} .. {upper}: give a box and a spacing")
        cells = np.ceil((upper - lower) / spacing - 1e-9).astype(int) + 2 * MARGIN
        origin = 0.5 * (lower + upper) - 0.5 * spacing * cells
        return LevelGrid(origin, float(spacing), (int(cells[0]) + 1, int(cells[1]) + 1, int(cells[2]) + 1))

    @property
    def size(self) -> int:
        """How many grid points there are."""
        return int(np.prod(self.shape))

    @property
    def upper(self) -> Floats:
        """The last grid point, shape (3,)."""
        return self.origin + self.spacing * (np.array(self.shape) - 1)

    def points(self) -> Floats:
        """All grid points, shape (nx, ny, nz, 3)."""
        axes = [self.origin[a] + self.spacing * np.arange(self.shape[a]) for a in range(3)]
        return np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1)

    def lattice(self) -> DeviceGrid:
        """The same for kernels."""
        lattice = DeviceGrid()
        lattice.origin = wp.vec3d(*self.origin)
        lattice.spacing = wp.float64(self.spacing)
        lattice.count = wp.vec3i(*self.shape)
        return lattice


def on_cpu(values: NDArray[np.generic], dtype: type) -> wp.array:
    """A Warp array over the memory of a contiguous NumPy array."""
    return wp.array(values, dtype=dtype, device=dev.pick("cpu"), copy=False)


def vectors(X: ArrayLike) -> Floats:
    """Places as (n, 3), double and contiguous."""
    return np.ascontiguousarray(np.asarray(X, np.float64).reshape(-1, 3))


@wp.func
def at(lattice: DeviceGrid, i: int, j: int, k: int):
    """Number of a grid point."""
    return (i * lattice.count[1] + j) * lattice.count[2] + k


@wp.func
def within(low: wp.vec3i, high: wp.vec3i, n: int):
    """The n-th grid point of those from `low` to `high`, both included."""
    rows = high[1] - low[1] + 1
    columns = high[2] - low[2] + 1
    return low[0] + n // (rows * columns), low[1] + (n // columns) % rows, low[2] + n % columns


@wp.func
def cell_of(lattice: DeviceGrid, X: wp.vec3d):
    """The cell that holds X, by its lowest corner, and where in it X lies, each 0..1. Outside: the nearest place."""
    place = wp.vec3d()
    corner = wp.vec3i()
    for axis in range(3):
        along = (X[axis] - lattice.origin[axis]) / lattice.spacing
        along = wp.clamp(along, wp.float64(0.0), wp.float64(lattice.count[axis] - 1))
        corner[axis] = wp.min(int(along), lattice.count[axis] - 2)
        place[axis] = along - wp.float64(corner[axis])
    return corner, place


@wp.func
def between(values: float64s, lattice: DeviceGrid, corner: wp.vec3i, place: wp.vec3d):
    """Trilinear value in a cell."""
    one = wp.float64(1.0)
    row = lattice.count[2]
    slab = lattice.count[1] * row
    o = at(lattice, corner[0], corner[1], corner[2])
    z = place[2]
    a = (one - z) * values[o] + z * values[o + 1]
    b = (one - z) * values[o + row] + z * values[o + row + 1]
    c = (one - z) * values[o + slab] + z * values[o + slab + 1]
    d = (one - z) * values[o + slab + row] + z * values[o + slab + row + 1]
    low = (one - place[1]) * a + place[1] * b
    high = (one - place[1]) * c + place[1] * d
    return (one - place[0]) * low + place[0] * high


@wp.func
def value_at(values: float64s, lattice: DeviceGrid, X: wp.vec3d):
    """Trilinear value at a place."""
    corner, place = cell_of(lattice, X)
    return between(values, lattice, corner, place)
