# mypy: disable-error-code="valid-type,no-untyped-def"
"""Looking at a crack (physics 12.6): its level sets at places, and whether straight ways cross it."""

from __future__ import annotations

import numpy as np
import warp as wp
from numpy.typing import NDArray

from phyxel import device as dev
from phyxel.cracks.grid import DeviceGrid, Floats, LevelGrid, at, between, cell_of, on_cpu, value_at, within
from phyxel.device import bools, float64s, int8s, vec3ds

wp.set_module_options(dev.KERNEL_OPTIONS)

Indices = NDArray[np.int64]

CROSSING_HALVINGS = 12
"""How often the place of a crossing is halved: to a 4000th of half a cell."""
UPPER = wp.constant(wp.float64(-1e-9))
"""ψ1 from which on a place is on the upper side. Nodes often lie in a crack's plane: there ψ1 is 0 but for rounding,
which differs from way to way and must not let them see both sides."""


@wp.kernel
def read_levels(
    first: int, X: vec3ds, psi1: float64s, psi2: float64s, lattice: DeviceGrid, out1: float64s, out2: float64s
):
    """ψ1 and ψ2 at places, trilinear."""
    i = first + wp.tid()
    corner, place = cell_of(lattice, X[i])
    out1[i] = between(psi1, lattice, corner, place)
    out2[i] = between(psi2, lattice, corner, place)


@wp.kernel
def read_slopes(first: int, X: vec3ds, psi: float64s, lattice: DeviceGrid, out: vec3ds):
    """∇ψ at places, by central differences over a cell."""
    i = first + wp.tid()
    slope = wp.vec3d()
    for axis in range(3):
        shift = wp.vec3d()
        shift[axis] = wp.float64(0.5) * lattice.spacing
        ahead = value_at(psi, lattice, X[i] + shift)
        behind = value_at(psi, lattice, X[i] - shift)
        slope[axis] = (ahead - behind) / lattice.spacing
    out[i] = slope


@wp.kernel
def mark_cut_cells(
    first: int, psi1: float64s, psi2: float64s, lattice: DeviceGrid, low: wp.vec3i, high: wp.vec3i, cut: int8s
):
    """Which cells from `low` to `high` may hold a part of the crack: ψ1 has both signs at their corners, and ψ2 is
    somewhere below 0. A cell is known by the number of its lowest corner."""
    i, j, k = within(low, high, first + wp.tid())
    above = int(0)
    behind = int(0)
    for c in range(8):
        corner = at(lattice, i + (c >> 2), j + ((c >> 1) & 1), k + (c & 1))
        if psi1[corner] >= UPPER:
            above += 1
        if psi2[corner] < wp.float64(0.0):
            behind += 1
    cut[at(lattice, i, j, k)] = wp.int8(wp.where(above > 0 and above < 8 and behind > 0, 1, 0))


@wp.func
def swapped(a: wp.vec3d, b: wp.vec3d):
    """Whether b comes before a: ways are walked from the same end whichever way round they are given."""
    if a[0] != b[0]:
        return b[0] < a[0]
    if a[1] != b[1]:
        return b[1] < a[1]
    return b[2] < a[2]


@wp.kernel
def see(
    first: int,
    one: vec3ds,
    other: vec3ds,
    psi1: float64s,
    psi2: float64s,
    near: int8s,
    lattice: DeviceGrid,
    lower: wp.vec3d,
    upper: wp.vec3d,
    seen: bools,
):
    """Whether the straight way crosses no ψ1 = 0 where ψ2 < 0 (G04 §4.3.1). Ways that are not seen already stay so.

    Only the piece in the crack's box is walked, in steps of at most half a cell, and ψ is read only in cells `near` the
    crack. A place with ψ1 = 0 is on the upper side.
    """
    i = first + wp.tid()
    if not seen[i]:
        return
    zero = wp.float64(0.0)
    half = wp.float64(0.5)
    backwards = swapped(one[i], other[i])
    a = wp.where(backwards, other[i], one[i])
    way = wp.where(backwards, one[i] - a, other[i] - a)
    start = wp.float64(0.0)
    end = wp.float64(1.0)
    for axis in range(3):
        if way[axis] == zero:
            if a[axis] < lower[axis] or a[axis] > upper[axis]:
                end = -half
        else:
            s = (lower[axis] - a[axis]) / way[axis]
            t = (upper[axis] - a[axis]) / way[axis]
            start = wp.max(start, wp.min(s, t))
            end = wp.min(end, wp.max(s, t))
    if start > end:
        return
    steps = int(wp.ceil((end - start) * wp.length(way) / (half * lattice.spacing))) + 1
    stride = (end - start) / wp.float64(steps)
    side = wp.float64(0.0)
    known = int(0)
    for n in range(steps + 1):
        t = start + wp.float64(n) * stride
        corner, place = cell_of(lattice, a + t * way)
        if near[at(lattice, corner[0], corner[1], corner[2])] == wp.int8(0):
            known = 0
        else:
            height = between(psi1, lattice, corner, place)
            if known == 1 and (height >= UPPER) != (side >= UPPER):
                low = t - stride
                high = t + zero
                for _ in range(wp.static(CROSSING_HALVINGS)):
                    middle = half * (low + high)
                    if (value_at(psi1, lattice, a + middle * way) >= UPPER) == (side >= UPPER):
                        low = middle
                    else:
                        high = middle
                if value_at(psi2, lattice, a + half * (low + high) * way) < zero:
                    seen[i] = False
                    return
            side = height
            known = 1


class CrackSight:
    """Where a crack is: the cells near it and their box."""

    def __init__(self, grid: LevelGrid, psi1: Floats, psi2: Floats) -> None:
        self._grid, self._lattice = grid, grid.lattice()
        self._psi1, self._psi2 = on_cpu(psi1.reshape(-1), wp.float64), on_cpu(psi2.reshape(-1), wp.float64)
        self.cut = np.zeros(grid.shape, np.int8)
        """which cells may hold a part of the crack, by their lowest corners, shape (nx, ny, nz)"""
        self._near = np.zeros(grid.shape, np.int8)
        self._marked, self._walked = (on_cpu(cells.reshape(-1), wp.int8) for cells in (self.cut, self._near))
        self.refresh(np.zeros(3, int), np.array(grid.shape) - 1)

    def refresh(self, low: Indices, high: Indices) -> None:
        """Look again at level sets that have changed at grid points from `low` to `high`, both (3,)."""
        last = np.array(self._grid.shape) - 2
        low, high = np.maximum(low - 1, 0), np.minimum(high, last)
        box = [wp.vec3i(*low), wp.vec3i(*high)]
        count = int(np.prod(high - low + 1))
        levels = [self._psi1, self._psi2, self._lattice]
        dev.launch(mark_cut_cells, count, [*levels, *box, self._marked], dev.pick("cpu"), split=False)
        # Nearness of a cell depends on the cells beside it, and these on the next ones.
        first, start = np.maximum(low - 1, 0), np.maximum(low - 2, 0)
        end, stop = np.minimum(high + 1, last + 1), np.minimum(high + 2, last + 1)
        self._near[_block(first, end)] = _grown(self.cut[_block(start, stop)])[_block(first - start, end - start)]
        spans = [np.flatnonzero(self.cut.any(axis=tuple({0, 1, 2} - {axis}))) for axis in range(3)]
        self.empty = len(spans[0]) == 0
        """whether nothing is cut"""
        if not self.empty:
            self.lower = self._grid.origin + self._grid.spacing * np.array([span[0] - 1 for span in spans])
            self.upper = self._grid.origin + self._grid.spacing * np.array([span[-1] + 2 for span in spans])

    def look(
        self, one: Floats, other: Floats, seen: NDArray[np.bool_], within: tuple[Floats, Floats] | None = None
    ) -> None:
        """Set `seen` (n,) to False for ways between `one` and `other` (n, 3) that cross the crack, in a box if one is
        given."""
        if self.empty or len(one) == 0:
            return
        lower, upper = (self.lower, self.upper) if within is None else _common((self.lower, self.upper), within)
        if (lower > upper).any():
            return
        ways = [on_cpu(one, wp.vec3d), on_cpu(other, wp.vec3d)]
        levels = [self._psi1, self._psi2, self._walked, self._lattice, wp.vec3d(*lower), wp.vec3d(*upper)]
        dev.launch(see, len(one), [*ways, *levels, on_cpu(seen, wp.bool)], dev.pick("cpu"), split=len(one) > 30000)

    def levels(self, X: Floats) -> tuple[Floats, Floats]:
        """ψ1 and ψ2 at places (n, 3), each of shape (n,)."""
        out1, out2 = np.empty(len(X)), np.empty(len(X))
        read = [on_cpu(X, wp.vec3d), self._psi1, self._psi2, self._lattice]
        written = [on_cpu(out1, wp.float64), on_cpu(out2, wp.float64)]
        dev.launch(read_levels, len(X), [*read, *written], dev.pick("cpu"), split=len(X) > 20000)
        return out1, out2

    def slopes(self, X: Floats, which: int) -> Floats:
        """∇ψ1 or ∇ψ2 at places (n, 3), shape (n, 3)."""
        out = np.empty((len(X), 3))
        psi = self._psi1 if which == 1 else self._psi2
        read = [on_cpu(X, wp.vec3d), psi, self._lattice, on_cpu(out, wp.vec3d)]
        dev.launch(read_slopes, len(X), read, dev.pick("cpu"), split=len(X) > 10000)
        return out


def _common(one: tuple[Floats, Floats], other: tuple[Floats, Floats]) -> tuple[Floats, Floats]:
    """What two boxes have in common."""
    return np.maximum(one[0], other[0]), np.minimum(one[1], other[1])


def _block(low: Indices, high: Indices) -> tuple[slice, slice, slice]:
    """Cells from `low` to `high`, both included."""
    return slice(low[0], high[0] + 1), slice(low[1], high[1] + 1), slice(low[2], high[2] + 1)


def _grown(cells: NDArray[np.int8]) -> NDArray[np.int8]:
    """The cells and all that touch them: steps of half a cell then have both ends here where they cross the crack."""
    grown = cells.copy()
    for axis in range(3):
        upper, lower = np.moveaxis(grown, axis, 0), np.moveaxis(grown.copy(), axis, 0)
        upper[1:] |= lower[:-1]
        upper[:-1] |= lower[1:]
    return grown
