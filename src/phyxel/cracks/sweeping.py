# mypy: disable-error-code="valid-type,no-untyped-def"
"""A step of a crack's level sets (physics 12.4): the nearest part of the front by fast sweeping, then both level sets
around it."""

from __future__ import annotations

import numpy as np
import warp as wp
from numpy.typing import NDArray

from phyxel import device as dev
from phyxel.cracks.front import Front
from phyxel.cracks.grid import DeviceGrid, Floats, LevelGrid, at, on_cpu, within
from phyxel.device import float64s, int32s, vec3ds

wp.set_module_options(dev.KERNEL_OPTIONS)

BAND = 6.0
"""Cells around the front in which the level sets are changed."""
CORE = wp.constant(wp.float64(3.0))
"""Cells to both sides of a crack within which ψ2 says where it cuts. Farther off, where the band ends and ψ1 jumps, ψ2
stays above 0, lest a jump be taken for a crack."""


@wp.func
def along_segment(x: wp.vec3d, a: wp.vec3d, b: wp.vec3d):
    """Where on the segment from a to b the place nearest to x is, 0..1, and the way from there to x."""
    way = b - a
    s = wp.dot(x - a, way) / wp.max(wp.length_sq(way), wp.float64(1.0e-30))
    s = wp.clamp(s, wp.float64(0.0), wp.float64(1.0))
    return s, x - a - s * way


@wp.func
def grid_point(lattice: DeviceGrid, i: int, j: int, k: int):
    """Where a grid point is."""
    return lattice.origin + lattice.spacing * wp.vec3d(wp.float64(i), wp.float64(j), wp.float64(k))


@wp.kernel
def sweep_nearest(
    first: int,
    points: vec3ds,
    after: int32s,
    lattice: DeviceGrid,
    low: wp.vec3i,
    high: wp.vec3i,
    band: wp.float64,
    nearest: int32s,
    far: float64s,
):
    """The front's segment nearest to each grid point from `low` to `high` (both included) within a band, and the square
    of its distance (physics 12.4): segments are laid into the cells they pass, then handed on from neighbour to
    neighbour in eight sweeps (Zhao 2005, of closest points instead of distances). One thread: each sweep goes on from
    the last."""
    for i in range(low[0], high[0] + 1):
        for j in range(low[1], high[1] + 1):
            for k in range(low[2], high[2] + 1):
                o = at(lattice, i, j, k)
                nearest[o] = -1
                far[o] = band * band
    for s in range(points.shape[0]):
        if after[s] >= 0:
            a = points[s]
            b = points[after[s]]
            lo = wp.vec3i()
            hi = wp.vec3i()
            for axis in range(3):
                start = (wp.min(a[axis], b[axis]) - lattice.origin[axis]) / lattice.spacing
                end = (wp.max(a[axis], b[axis]) - lattice.origin[axis]) / lattice.spacing
                lo[axis] = wp.max(int(wp.floor(start)) - 1, low[axis])
                hi[axis] = wp.min(int(wp.ceil(end)) + 1, high[axis])
            for i in range(lo[0], hi[0] + 1):
                for j in range(lo[1], hi[1] + 1):
                    for k in range(lo[2], hi[2] + 1):
                        o = at(lattice, i, j, k)
                        _, r = along_segment(grid_point(lattice, i, j, k), a, b)
                        d = wp.length_sq(r)
                        if d < far[o]:
                            far[o] = d
                            nearest[o] = s
    order = int(0)
    while order < 8:  # a loop that Warp does not unroll: eight copies take eight times as long to compile
        x_step = 1 - 2 * (order & 1)
        y_step = 1 - (order & 2)
        z_step = 1 - ((order & 4) >> 1)
        for p in range(high[0] - low[0] + 1):
            i = wp.where(x_step > 0, low[0] + p, high[0] - p)
            for q in range(high[1] - low[1] + 1):
                j = wp.where(y_step > 0, low[1] + q, high[1] - q)
                for m in range(high[2] - low[2] + 1):
                    k = wp.where(z_step > 0, low[2] + m, high[2] - m)
                    o = at(lattice, i, j, k)
                    best = nearest[o]
                    d = far[o]
                    x = grid_point(lattice, i, j, k)
                    for axis in range(3):
                        neighbour = int(-1)
                        if axis == 0 and p > 0:
                            neighbour = at(lattice, i - x_step, j, k)
                        if axis == 1 and q > 0:
                            neighbour = at(lattice, i, j - y_step, k)
                        if axis == 2 and m > 0:
                            neighbour = at(lattice, i, j, k - z_step)
                        if neighbour >= 0:
                            s = nearest[neighbour]
                            if s >= 0 and s != best:
                                _, way = along_segment(x, points[s], points[after[s]])
                                if wp.length_sq(way) < d:
                                    d = wp.length_sq(way)
                                    best = s
                    nearest[o] = best
                    far[o] = d
        order += 1


@wp.kernel
def run_levels(
    first: int,
    points: vec3ds,
    before: int32s,
    after: int32s,
    directions: vec3ds,
    normals: vec3ds,
    ways: float64s,
    nearest: int32s,
    lattice: DeviceGrid,
    low: wp.vec3i,
    high: wp.vec3i,
    psi1: float64s,
    psi2: float64s,
):
    """ψ1 = r·n and ψ2 = r·v̂ − Δt|v| ahead of the front, r the way from it (G04 §4.3.2).

    n = t × v̂: r·n is ±|r × v̂| with its side kept, and 0 in the plane of a curved front's points, too, where r is not
    quite across the front. A cut stays cut: there ψ2 only falls, and ψ1 keeps its side. Behind the front ψ2 falls
    to the same r·v̂ − Δt|v|, so that it stays a distance.
    """
    i, j, k = within(low, high, first + wp.tid())
    o = at(lattice, i, j, k)
    s = nearest[o]
    if s < 0:
        return
    zero = wp.float64(0.0)
    one = wp.float64(1.0)
    x = grid_point(lattice, i, j, k)
    along, r = along_segment(x, points[s], points[after[s]])
    for side in range(2):  # the sweeps may have stopped at a neighbour of the nearest segment
        other = wp.where(side == 0, before[s], after[s])
        if other >= 0 and after[other] >= 0:
            there, way = along_segment(x, points[other], points[after[other]])
            if wp.length_sq(way) < wp.length_sq(r):
                s = other
                along = there
                r = way
    e = after[s]
    run = (one - along) * ways[s] + along * ways[e]
    if run <= zero:
        return
    ahead = wp.dot(r, wp.normalize((one - along) * directions[s] + along * directions[e]))
    height = wp.dot(r, wp.normalize((one - along) * normals[s] + along * normals[e]))
    is_cut = psi2[o] < zero
    if ahead > zero and (not is_cut or (height >= zero) == (psi1[o] >= zero)):
        psi1[o] = height
    front = ahead - run
    if is_cut:
        front = wp.min(psi2[o], front)
    elif wp.abs(height) > CORE * lattice.spacing:
        front = wp.max(front, wp.abs(height) - CORE * lattice.spacing)
    psi2[o] = front


def run_crack(
    grid: LevelGrid, psi1: Floats, psi2: Floats, front: Front, directions: Floats, normals: Floats, ways: Floats
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Let ψ1 and ψ2 follow a front whose points go `ways` (k,) along `directions` (k, 3); `normals` (k, 3) are those of
    the surface it then leaves behind. They change between two grid points, both (3,), that it returns."""
    places = (front.points - grid.origin) / grid.spacing
    last = np.array(grid.shape) - 1
    low = np.clip(np.floor(places.min(axis=0) - BAND), 0, last).astype(int)
    high = np.clip(np.ceil(places.max(axis=0) + BAND), 0, last).astype(int)
    device, lattice, box = dev.pick("cpu"), grid.lattice(), [wp.vec3i(*low), wp.vec3i(*high)]
    before, after = (on_cpu(v, wp.int32) for v in front.neighbours)
    points = on_cpu(front.points, wp.vec3d)
    nearest = wp.empty(grid.size, dtype=wp.int32, device=device)
    far = wp.empty(grid.size, dtype=wp.float64, device=device)
    band = wp.float64(BAND * grid.spacing)
    dev.launch(sweep_nearest, 1, [points, after, lattice, *box, band, nearest, far], device, split=False)
    curve = [points, before, after, *(on_cpu(v, wp.vec3d) for v in (directions, normals)), on_cpu(ways, wp.float64)]
    levels = [on_cpu(v.reshape(-1), wp.float64) for v in (psi1, psi2)]
    count = int(np.prod(high - low + 1))
    dev.launch(run_levels, count, [*curve, nearest, lattice, *box, *levels], device, split=count > 50000)
    return low, high
