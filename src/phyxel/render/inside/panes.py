# mypy: disable-error-code="valid-type,no-untyped-def,no-untyped-call"
"""Slices: planes through the reference shape of a body that bend with it, drawn as triangles with a value at each
corner. Colours, lines and edges come from what is interpolated in the pixels: they are as sharp as the picture."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import warp as wp
from numpy.typing import NDArray

from phyxel.body import Body
from phyxel.body.inside import Plane
from phyxel.body.quantities import Quantity
from phyxel.device import KERNEL_OPTIONS, launch
from phyxel.render.camera import Camera
from phyxel.render.inside.lattice import Floats, reference_box, signed_distance, uncracked
from phyxel.render.inside.legend import Legend
from phyxel.render.inside.pen import INK, layer_of, over
from phyxel.render.tiles import (
    TileGrid,
    TileLists,
    first_pixel,
    launch_over,
    past_pixel,
    pixel_count,
    place_of,
    tiles_touched,
    untiled,
)
from phyxel.rotation import tangents

wp.set_module_options(KERNEL_OPTIONS)

CELLS = 200
"""Along the longer side of a slice."""
LINE_OPACITY, LINE_WIDTH = 0.45, 0.6
"""Of iso-lines; half their width [pixels]."""
PARALLEL = 0.99
"""Cosine between the normals of panes above which they lie behind each other."""
FLAT = 1e-4
"""Marks of the scale from a pixel to the next below which there is no line, but an even colour."""
EDGE_WIDTH = 1.1
"""Half the width of the line along the surface [pixels]."""


class Pane:
    """One plane through a body's reference shape; it lasts as long as that shape."""

    def __init__(self, body: Body, plane: Plane, cells: int = CELLS) -> None:
        self.normal = np.asarray(plane.normal, float)
        lower, upper = reference_box(body)
        self.place = float(self.normal @ (0.5 * (lower + upper)) if plane.place is None else plane.place)
        """normal · X in it [m]"""
        corners = np.array([[x, y, z] for x in (0, 1) for y in (0, 1) for z in (0, 1)]) * (upper - lower) + lower
        across = np.concatenate(tangents(self.normal[None]))
        spans = corners @ across.T
        step = float(np.ptp(spans, axis=0).max()) / cells
        sides = [np.arange(column.min() - 1.5 * step, column.max() + 2 * step, step) for column in spans.T]
        u, v = np.meshgrid(*sides, indexing="ij")
        X = self.place * self.normal + u[..., None] * across[0] + v[..., None] * across[1]
        distance = signed_distance(body, X.reshape(-1, 3)).reshape(u.shape)
        of_corners = [distance[:-1, :-1], distance[1:, :-1], distance[:-1, 1:], distance[1:, 1:]]
        quads = np.argwhere(np.min(of_corners, axis=0) < 0)
        number = np.full(u.shape, -1)
        used = np.zeros(u.shape, bool)
        for i, j in ((0, 0), (0, 1), (1, 0), (1, 1)):
            used[quads[:, 0] + i, quads[:, 1] + j] = True
        number[used] = np.arange(used.sum())
        a, b, c, d = (number[quads[:, 0] + i, quads[:, 1] + j] for i, j in ((0, 0), (1, 0), (1, 1), (0, 1)))
        triangles = np.concatenate([np.stack([a, b, c], axis=1), np.stack([a, c, d], axis=1)])
        self.triangles = triangles[_whole(body, X[used][triangles], distance[used][triangles])]
        """numbers of corners, (t, 3)"""
        self.distance = distance[used]
        """of the corners from the surface [m], negative inside, shape (m,)"""
        self.X = X[used]
        """of the corners [m], shape (m, 3)"""
        self.probe = body.probe(X[used]) if used.any() else None

    def look(self, quantity: Quantity) -> tuple[Floats, Floats]:
        """Where its corners are now [m], (m, 3), and the values there (m,)."""
        if self.probe is None:
            return np.zeros((0, 3)), np.zeros(0)
        return self.X + self.probe.displacement(), np.asarray(quantity.at(self.probe), float)


def _whole(body: Body, X: Floats, distance: Floats) -> NDArray[np.bool_]:
    """Which triangles (t, 3, 3) no crack goes through, (t,); those that reach out of the body end at its surface."""
    torn = [~uncracked(body, X[:, k], X[:, k - 1]) & (distance[:, k] < 0) & (distance[:, k - 1] < 0) for k in range(3)]
    return ~np.any(torn, axis=0)


class PaneCut(NamedTuple):
    """How panes part a body: the part before all of them, toward the eye, is taken away. Of panes behind each other
    one would hide the next: then all of the body is taken away but the panes."""

    panes: list[Pane]
    sides: list[float]
    """1 or -1: on which side of each the eye is"""

    @property
    def stacked(self) -> bool:
        """Whether some lie behind each other."""
        normals = np.array([pane.normal for pane in self.panes])
        return bool((np.abs(np.triu(normals @ normals.T, 1)) > PARALLEL).any())

    def left(self, X: Floats) -> NDArray[np.float64]:
        """How far (n, 3) reference positions [m] are behind the foremost pane [m], below 0 where the body is taken
        away, shape (n,)."""
        if self.stacked:
            return np.full(len(X), -np.inf)
        depths = [(pane.place - X @ pane.normal) * side for pane, side in zip(self.panes, self.sides, strict=True)]
        return np.asarray(np.max(depths, axis=0), np.float64)

    def distance(self, pane: Pane) -> Floats:
        """How far a pane's corners are from the edge of its visible part [m], negative within, shape (m,)."""
        beyond = [
            (other.place - pane.X @ other.normal) * side
            for other, side in zip(self.panes, self.sides, strict=True)
            if other is not pane and not self.stacked
        ]
        return np.max([pane.distance, *beyond], axis=0)


class SeenPanes(NamedTuple):
    """What the pixels see of panes."""

    near: wp.array
    """one over the depth [1/m], 0 for nothing, kept tile after tile"""
    value: Floats
    """(height, width)"""
    distance: Floats
    """from the surface [m], negative inside, (height, width)"""
    which: Floats
    """number of the pane, (height, width)"""


@wp.kernel
def paint_triangles(
    first: int,
    grid: TileGrid,
    corners: wp.array2d(dtype=wp.vec3),
    numbers: wp.array2d(dtype=wp.vec3),
    rects: wp.array(dtype=wp.vec4i),
    starts: wp.array(dtype=int),
    items: wp.array(dtype=int),
    farthest: float,
    near: wp.array(dtype=float),
    values: wp.array(dtype=wp.vec3),
):
    """The nearest triangle in the middle of each pixel of a thread. Corners are (column, row, one over the depth), and
    what is linear in space is so on the screen when divided by the depth. Where the second number is not below
    `farthest` there is nothing."""
    i = first + wp.tid()
    begin = first_pixel(grid, i)
    stop = past_pixel(grid, i)
    p = int(begin)
    while p < stop:
        near[p] = 0.0
        p += 1
    if begin >= stop:
        return
    corner = place_of(grid, begin)
    wide = wp.min(grid.span, 16)
    tall = wp.max(grid.span // 16, 1)
    k = int(starts[begin >> 8])
    while k < starts[(begin >> 8) + 1]:
        t = items[k]
        rect = rects[t]
        a = corners[t, 0]
        b = corners[t, 1]
        c = corners[t, 2]
        area = (b[0] - a[0]) * (c[1] - a[1]) - (b[1] - a[1]) * (c[0] - a[0])
        y = wp.max(rect[1], corner[1])
        while y < wp.min(rect[3], corner[1] + tall) and area != 0.0:
            x = wp.max(rect[0], corner[0])
            while x < wp.min(rect[2], corner[0] + wide):
                px = float(x) + 0.5
                py = float(y) + 0.5
                at_b = ((px - a[0]) * (c[1] - a[1]) - (py - a[1]) * (c[0] - a[0])) / area
                at_c = ((b[0] - a[0]) * (py - a[1]) - (b[1] - a[1]) * (px - a[0])) / area
                at_a = 1.0 - at_b - at_c
                here = at_a * a[2] + at_b * b[2] + at_c * c[2]
                q = begin + (y - corner[1]) * 16 + x - corner[0]
                # A hair beyond its sides: no pixel falls between two triangles.
                if wp.min(at_a, wp.min(at_b, at_c)) >= -1.0e-4 and here > near[q]:
                    mixed = at_a * a[2] * numbers[t, 0] + at_b * b[2] * numbers[t, 1] + at_c * c[2] * numbers[t, 2]
                    if mixed[1] < farthest * here:
                        near[q] = here
                        values[q] = mixed / here
                x += 1
            y += 1
        k += 1


@wp.kernel
def bound_triangles(
    first: int,
    corners: wp.array2d(dtype=wp.vec3),
    grid: TileGrid,
    rects: wp.array(dtype=wp.vec4i),
    counts: wp.array(dtype=int),
):
    """Pixels that a triangle may cover; none if a corner is behind the eye or nowhere."""
    t = first + wp.tid()
    a = corners[t, 0]
    b = corners[t, 1]
    c = corners[t, 2]
    rects[t] = wp.vec4i(0, 0, 0, 0)
    if wp.min(a[2], wp.min(b[2], c[2])) > 0.0:
        low = wp.min(a, wp.min(b, c))
        high = wp.max(a, wp.max(b, c))
        left = int(wp.clamp(low[0] - 0.5, 0.0, 1.0e6))
        top = int(wp.clamp(low[1] - 0.5, 0.0, 1.0e6))
        right = wp.min(int(wp.clamp(high[0] + 1.5, 0.0, 1.0e6)), grid.width)
        bottom = wp.min(int(wp.clamp(high[1] + 1.5, 0.0, 1.0e6)), grid.height)
        rects[t] = wp.vec4i(left, top, right, bottom)
    counts[t] = tiles_touched(rects[t])


class Panes:
    """Triangles (t, 3) between corners (m, 3) [m] as a camera sees them. Each corner has a value, a distance from the
    surface and the number of its pane, (m, 3)."""

    def __init__(
        self, x: Floats, triangles: NDArray[np.integer], numbers: Floats, camera: Camera, grid: Any, device: wp.Device
    ) -> None:
        right, up, depth = camera.axes @ (x - np.asarray(camera.eye)).T
        near = np.where(depth > 1e-9, 1 / np.maximum(depth, 1e-9), -1.0)
        column, row = camera.width / 2 + camera.focal * right * near, camera.height / 2 - camera.focal * up * near
        corners = np.stack([column, row, near], axis=1).astype(np.float32)[triangles]
        self._corners = wp.array(corners, dtype=wp.vec3, device=device)
        self._numbers = wp.array(np.asarray(numbers, np.float32)[triangles], dtype=wp.vec3, device=device)
        self._rects = wp.empty(len(triangles), dtype=wp.vec4i, device=device)
        self._lists, self._grid, self._device = TileLists(grid.width, grid.height, device), grid, device
        inputs = [self._corners, grid, self._rects, self._lists.counts_for(len(triangles))]
        launch(bound_triangles, len(triangles), inputs, device)
        self._lists.fill(self._rects, len(triangles))

    def seen(self, farthest: float) -> SeenPanes:
        """The nearest of them in each pixel, where it is not `farthest` [m] or more outside the surface."""
        count = pixel_count(self._grid)
        near = wp.zeros(count, dtype=float, device=self._device)
        found = wp.zeros(count, dtype=wp.vec3, device=self._device)
        lists = [self._corners, self._numbers, self._rects, self._lists.starts, self._lists.items]
        launch_over(paint_triangles, self._grid, [self._grid, *lists, farthest, near, found], self._device)
        value, distance, which = np.moveaxis(untiled(self._grid, found.numpy()), -1, 0)
        return SeenPanes(near, value, distance, np.rint(which))

    def painted_on(self, picture: NDArray[np.uint8], front: wp.array, legend: Legend, overlap: float) -> wp.array:
        """Paint the panes on a picture whose pixels are one over `front` [m] away, but for parts more than `overlap`
        [m] behind that. Returns `front` with all before panes left out: their colours are to be read."""
        solid = front.numpy()
        before = solid.copy()
        # First the parts inside the solid, wholly; then all with soft edges over them: another pane may be behind.
        for farthest in (0.0, np.inf):
            seen = self.seen(farthest)
            near = seen.near.numpy()
            shown = (near > 0) & (near >= solid / (1 + overlap * solid))
            if farthest == 0:
                before[shown] = np.inf
            visible = untiled(self._grid, shown)
            if visible.any():
                rows, columns = (np.flatnonzero(visible.any(axis=axis)) for axis in (1, 0))
                part = np.s_[rows[0] : rows[-1] + 1, columns[0] : columns[-1] + 1]
                pane = np.where(visible, seen.which, -1)[part]
                layer = painted(seen.value[part], seen.distance[part], pane, legend, farthest > 0)
                picture[part] = np.rint(255 * over(picture[part] / 255.0, layer))
        return wp.array(before, dtype=float, device=self._device)


def painted(value: Floats, distance: Floats, pane: Floats, legend: Legend, soft: bool) -> Floats:
    """Colours, thin lines at the marks of the scale and a strong one along the surface, with a soft or a hard edge,
    (height, width, 4). Where `pane` is below 0 there is nothing."""
    inside = -distance / _slope(distance, pane)
    level = value / legend.step
    steep = _slope(level, pane)
    beside = np.where(steep > FLAT, np.abs(level - np.round(level)) / steep, np.inf)
    picture = layer_of(legend.colors(value), np.ones(level.shape))
    picture = over(picture, layer_of(INK, LINE_OPACITY * np.clip(LINE_WIDTH + 0.5 - beside, 0, 1)))
    picture = over(picture, layer_of(INK, 0.8 * np.clip(EDGE_WIDTH + 0.5 - inside, 0, 1)))
    picture[..., 3] *= (pane >= 0) * (np.clip(inside + 0.5, 0, 1) if soft else 1.0)
    return picture


def _slope(field: Floats, pane: Floats) -> Floats:
    """Change from a pixel to the next of the same pane, never quite 0; to the nearer of the two beside it, for between
    others it jumps."""
    total = np.zeros(field.shape)
    for axis in (0, 1):
        rise, same = np.diff(field, axis=axis) ** 2, np.diff(pane, axis=axis) == 0
        pad = [(int(side == axis), int(side == axis)) for side in (0, 1)]
        steps = np.pad(np.where(same, rise, np.inf), pad, constant_values=np.inf)
        before, after = np.delete(steps, -1, axis), np.delete(steps, 0, axis)
        least = np.minimum(before, after)
        total += np.where(np.isfinite(least), least, 0.0)
    return np.sqrt(np.maximum(total, 1e-18))
