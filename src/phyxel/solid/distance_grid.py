# mypy: disable-error-code="valid-type,no-untyped-def"
"""Signed distances on a coarse grid around a surface (physics 9.2): an answer far from it, and a guess near it.

Finding the nearest of a hundred thousand triangles takes microseconds, interpolating a grid a tenth of one. Between
the corners the distance is cubic (Catmull and Rom), so that it and its slope are continuous.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import warp as wp

from phyxel import device as dev
from phyxel.device import as_vectors
from phyxel.region import Floats
from phyxel.solid.winding import by_neighbourhood

wp.set_module_options(dev.KERNEL_OPTIONS)

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


class MeasuredSurface:
    """A surface that kernels measure; lengths in units of its size about its middle."""

    blur = 0.0

    def __init__(self, surface: Any, find_closest: wp.Kernel, measure: wp.Kernel, device: wp.Device) -> None:
        """`surface` is a struct that both kernels take first, then points. The one writes nearest points, directions
        of growing distance there and signed distances, the other distances and directions."""
        self._surface, self._find_closest, self._measure, self._device = surface, find_closest, measure, device

    def closest(self, points: Floats) -> tuple[Floats, Floats, Floats]:
        """Nearest points (N, 3), outward directions there (N, 3), signed distances (N,)."""
        n, device = len(points), self._device
        foot, direction = (wp.empty(n, dtype=wp.vec3, device=device) for _ in range(2))
        distance = wp.empty(n, dtype=float, device=device)
        inputs = [self._surface, as_vectors(points, device), foot, direction, distance]
        dev.launch(self._find_closest, n, inputs, device)
        return foot.numpy(), direction.numpy(), distance.numpy()

    def distance(self, points: Floats) -> Floats:
        """Signed distances (N,)."""
        return self._measured(points)[0]

    def direction(self, points: Floats) -> Floats:
        """Unit directions in which the distance grows (N, 3)."""
        return self._measured(points)[1]

    def _measured(self, points: Floats) -> tuple[Floats, Floats]:
        n, device = len(points), self._device
        order = by_neighbourhood(points)
        distance = wp.empty(n, dtype=float, device=device)
        direction = wp.empty(n, dtype=wp.vec3, device=device)
        dev.launch(self._measure, n, [self._surface, as_vectors(points[order], device), distance, direction], device)
        d, slope = np.empty(n, np.float32), np.empty((n, 3), np.float32)
        d[order], slope[order] = distance.numpy(), direction.numpy()
        return d, slope
