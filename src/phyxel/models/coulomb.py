# mypy: disable-error-code="valid-type,no-untyped-def"
"""Impulses at points of contact (physics 15.9): normal ones p_n ≥ 0 that only push, tangential ones within Coulomb's
cone, |p_t| ≤ μ p_n. Without an end to friction, μ = ∞, a point is tied: it pulls, too.

A point has three numbers, along its normal and two tangents; W (3k, 3k) says how far unit impulses move the points.
"""

from __future__ import annotations

import numpy as np
import warp as wp
from numpy.typing import NDArray

from phyxel import device as dev
from phyxel.device import float64s

wp.set_module_options(dev.KERNEL_OPTIONS)

Floats = NDArray[np.float64]

NEAR = 0.1
"""Gap [spacings] below which a point may come to touch something in this step."""
RESTING = 2.0
"""Speeds of approach below this many times what the pushes of a step make are no impact."""
SINGULAR = 1e-6
"""Share of what the most movable row gives way that a row must give way to be moved at all."""
SWEEPS = wp.constant(200)
"""of Gauss and Seidel's method over the points of contact, at most"""
STILL = wp.constant(wp.float64(1e-5))
"""Change of impulses, as a share of the largest, at which it ends."""


def along_axes(W: Floats, axes: Floats) -> Floats:
    """A matrix (3k, 3k) between points, seen along axes (k, 3, 3) of each."""
    blocks = W.reshape(len(axes), 3, len(axes), 3)
    return np.einsum("iab,ibjc,jdc->iajd", axes, blocks, axes, optimize=True).reshape(W.shape)


def from_axes(axes: Floats, parts: Floats) -> Floats:
    """Vectors (k, 3) whose parts along axes (k, 3, 3) of their own are these (k, 3)."""
    return np.asarray((np.swapaxes(axes, 1, 2) @ parts[:, :, None])[:, :, 0])


def solved(W: Floats, goal: Floats, friction: Floats) -> Floats:
    """Impulses p (k, 3) with W p + goal ≥ 0 along normals that only push, = 0 along tangents within Coulomb's cone."""
    size = np.sqrt(np.maximum(W.diagonal()[::3], 1e-300))  # a crumb weighs as much as a rock here
    scale = np.repeat(size, 3)
    total = np.zeros(len(scale))
    sweep(W / np.outer(scale, scale), goal.reshape(-1) / scale, friction, total, SINGULAR)
    return (total / scale).reshape(-1, 3)


def sweep(W: Floats, gap: Floats, friction: Floats, total: Floats, least: float) -> None:
    """Change the impulses `total` (3k,) till `gap` (3k,), which is W total + b, is as the cones of friction (k,) ask;
    both in place."""
    # NumPy's arrays as they are: to make Warp's of them takes longer than the sweeps.
    inputs = [np.ascontiguousarray(W).reshape(-1), gap, np.asarray(friction, np.float64), total]
    wp.launch(sweep_contacts, 1, inputs=[0, len(friction), least, *inputs], device="cpu")


@wp.func_native("""
    const double* row = W.data + (size_t)i * size;
    for (int j = 0; j < size; ++j) gap.data[j] += change * row[j];
""")
def add_row(W: float64s, i: int, size: int, change: wp.float64, gap: float64s):
    """gap += W e_i change; a loop that the compiler makes vectors of."""


@wp.func
def settle(
    count: int, least: wp.float64, still: wp.float64, W: float64s, gap: float64s, friction: float64s, total: float64s
):
    """Gauss and Seidel's method with projection on the cones of friction, point by point, until nothing changes by more
    than `still` of the largest (physics 15.9).

    `gap` = W total + b is kept up to date: points that do not touch cost nothing. Points that can hardly move, by less
    than `least`, are left alone.
    """
    none = wp.float64(0.0)
    size = 3 * count
    for _ in range(SWEEPS):
        moved = none
        largest = none
        for i in range(count):
            n = 3 * i
            weight = W[n * size + n]
            if weight > least:
                before = total[n]
                tied = wp.isinf(friction[i])
                total[n] = before - gap[n] / weight
                if not tied:
                    total[n] = wp.max(none, total[n])
                if total[n] != before:
                    moved = wp.max(moved, wp.abs(total[n] - before))
                    add_row(W, n, size, total[n] - before, gap)
                largest = wp.max(largest, wp.abs(total[n]))
                most = friction[i] * total[n]
                if tied or most > none or total[n + 1] != none or total[n + 2] != none:
                    slack = wp.max(W[(n + 1) * size + n + 1], W[(n + 2) * size + n + 2])
                    slack = wp.max(slack, least)
                    t1 = total[n + 1] - gap[n + 1] / slack
                    t2 = total[n + 2] - gap[n + 2] / slack
                    length = wp.sqrt(t1 * t1 + t2 * t2)
                    if not tied and length > most:
                        t1 *= most / length
                        t2 *= most / length
                    if tied:
                        largest = wp.max(largest, length)
                    moved = wp.max(moved, wp.max(wp.abs(t1 - total[n + 1]), wp.abs(t2 - total[n + 2])))
                    d1 = t1 - total[n + 1]
                    d2 = t2 - total[n + 2]
                    total[n + 1] = t1
                    total[n + 2] = t2
                    add_row(W, n + 1, size, d1, gap)
                    add_row(W, n + 2, size, d2, gap)
        if moved <= still * largest:
            break


@wp.kernel
def sweep_contacts(
    first: int, count: int, least: wp.float64, W: float64s, gap: float64s, friction: float64s, total: float64s
):
    """The impulses of `count` points, by one thread (physics 15.9)."""
    settle(count, least, STILL, W, gap, friction, total)
