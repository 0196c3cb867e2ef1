# mypy: disable-error-code="valid-type,no-untyped-def"
"""Signed distances on a coarse grid around a surface: an answer far from it, and a guess near it.

Finding the nearest of a hundred thousand triangles takes microseconds, interpolating a grid a tenth of one. Between
the corners the distance is cubic (Catmull and Rom), so that it and its slope are continuous.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import warp as wp
from numpy.typing import NDArray

from phyxel import device as dev

wp.set_module_options(dev.KERNEL_OPTIONS)

Floats = NDArray[np.floating]

FAR = wp.constant(3.5)
"""Distance from which the grid alone answers, in its cells: nearer, it would round the ridges of the distance."""
FINEST = 1 / 64
"""Smallest cell, over the size of the surface."""
MARGIN = 3
"""Cells around the surface."""


@wp.struct
class DistanceGrid:
    """Signed distances at the corners of a grid."""

    origin: wp.vec3
    cell: float
    distance: wp.array3d(dtype=float)


@wp.func
def cubic(t: Any):
    """Weights of four neighbouring values between the middle two (Catmull and Rom), and their slopes."""
    one = type(t)(1.0)
    half, three_halves, two = type(t)(0.5), type(t)(1.5), type(t)(2.0)
    s = one - t
    weights = wp.vector(
        -half * t * s * s,
        one + t * t * (three_halves * t - type(t)(2.5)),
        one + s * s * (three_halves * s - type(t)(2.5)),
        -half * s * t * t,
    )
    slopes = wp.vector(
        -half * s * (s - two * t),
        t * (type(t)(4.5) * t - type(t)(5.0)),
        -s * (type(t)(4.5) * s - type(t)(5.0)),
        -half * t * (two * s - t),
    )
    return weights, slopes


@wp.func
def guided(guide: DistanceGrid, x: wp.vec3):
    """Interpolated distance and its slope; a slope of zero where the grid does not reach."""
    p = (x - guide.origin) / guide.cell
    d = guide.distance
    i = int(wp.floor(p[0])) - 1
    j = int(wp.floor(p[1])) - 1
    k = int(wp.floor(p[2])) - 1
    if i < 0 or j < 0 or k < 0 or i + 3 >= d.shape[0] or j + 3 >= d.shape[1] or k + 3 >= d.shape[2]:
        return float(0.0), wp.vec3()
    wx, sx = cubic(p[0] - float(i + 1))
    wy, sy = cubic(p[1] - float(j + 1))
    wz, sz = cubic(p[2] - float(k + 1))
    value = float(0.0)
    slope = wp.vec3()
    for a in range(4):
        for b in range(4):
            row = wp.vec4(d[i + a, j + b, k], d[i + a, j + b, k + 1], d[i + a, j + b, k + 2], d[i + a, j + b, k + 3])
            along = wp.dot(wz, row)
            value += wx[a] * wy[b] * along
            slope += wp.vec3(sx[a] * wy[b] * along, wx[a] * sy[b] * along, wx[a] * wy[b] * wp.dot(sz, row))
    return value, slope / guide.cell


def laid_guide(
    closest: Callable[[Floats], tuple[Floats, Floats, Floats]],
    lower: Floats,
    upper: Floats,
    cell: float,
    device: wp.Device,
) -> DistanceGrid:
    """Distances at the corners of a grid around the box, in the units of the box. `closest` measures them."""
    origin = lower - MARGIN * cell
    shape = np.ceil((upper + MARGIN * cell - origin) / cell).astype(int) + 1
    axes = [start + cell * np.arange(n) for start, n in zip(origin, shape, strict=True)]
    corners = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, 3)
    _, _, distance = closest(corners)
    guide = DistanceGrid()
    guide.origin, guide.cell = wp.vec3(*origin), cell
    guide.distance = wp.array(distance.reshape(shape), dtype=float, device=device)
    return guide
