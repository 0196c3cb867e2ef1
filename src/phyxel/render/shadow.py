# mypy: disable-error-code="valid-type,no-untyped-def,no-untyped-call"
"""Light maps: the scene seen from the light and from below, drawn into one small grid on the ground and blurred.

A point p belongs to the place where the light's ray through it meets the ground. There the map knows how high the
object reaches toward the light (how deep under the skin a point lies), the soft shadow it casts, the color of the light
that comes through it, and how close above the ground it is (the dark seam of contact).
"""

from __future__ import annotations

from typing import Any

import numpy as np
import warp as wp

from phyxel.device import KERNEL_OPTIONS, launch
from phyxel.render.camera import linear_from_srgb
from phyxel.render.cast import DrawnSurfels, LookArrays, has_two_sides, row_of
from phyxel.render.tiles import (
    SPLIT_FROM,
    TileGrid,
    TileLists,
    first_pixel,
    grown,
    launch_over,
    make_grid,
    past_pixel,
    place_of,
    tiles_touched,
)

wp.set_module_options(KERNEL_OPTIONS)

CHUNK = 1024
"""Positions that one thread bounds: few enough for two cores to share, many enough to be worth a thread."""
_CHUNK = wp.constant(CHUNK)
_EMPTY = wp.constant(-1.0e30)
"""Height toward the light over which nothing stands [m]."""

Shade = wp.types.vector(length=8, dtype=float)
"""Of a place on the ground: red, green, blue that the shadowing object lets through, its cover 0..1, its height [m]
(these four times cover), contact 0..1; two more make it one vector register."""


@wp.struct
class GroundMap:
    """Where the map lies: texel (0, 0) begins at `corner` (x, z) [m] on the plane y = level [m]."""

    corner: wp.vec2
    lower: wp.vec2
    """(x, z) [m] where the part begins that shadows can reach"""
    upper: wp.vec2
    texel: float
    per_metre: float
    texels: int
    level: float
    to_light: wp.vec3
    slope: wp.vec2
    reach: float
    """contact is felt up to this height above the ground [m]"""
    penumbra: float
    """a caster this high [m] has the widest penumbra"""


@wp.func
def shadow_place(ground: GroundMap, p: wp.vec3) -> wp.vec2:
    """Where the light's ray through p meets the ground, in texels."""
    height = p[1] - ground.level
    x = (p[0] - ground.slope[0] * height - ground.corner[0]) * ground.per_metre
    z = (p[2] - ground.slope[1] * height - ground.corner[1]) * ground.per_metre
    return wp.vec2(x, z)


@wp.kernel
def bound_chunks(
    first: int, positions: wp.array(dtype=wp.vec3), lows: wp.array(dtype=wp.vec3), highs: wp.array(dtype=wp.vec3)
):
    """Bounding box of each run of 1024 positions; comparisons with NaN fail, which leaves such points out."""
    i = first + wp.tid()
    low = wp.vec3(1.0e18, 1.0e18, 1.0e18)
    high = -low
    k = i * _CHUNK
    stop = wp.min(k + _CHUNK, len(positions))
    while k < stop:
        p = positions[k]
        if wp.length_sq(p) < 1.0e30:
            low = wp.min(low, p)
            high = wp.max(high, p)
        k += 1
    lows[i] = low
    highs[i] = high


@wp.func
def _texel_rect(ground: GroundMap, place: wp.vec2, half_x: float, half_z: float) -> wp.vec4i:
    """Texels whose middles are within half_x, half_z of a place, and the one it is in."""
    left = wp.clamp(int(wp.floor(place[0] - wp.max(half_x - 0.5, 0.0))), 0, ground.texels)
    top = wp.clamp(int(wp.floor(place[1] - wp.max(half_z - 0.5, 0.0))), 0, ground.texels)
    right = wp.clamp(int(wp.floor(place[0] + wp.max(half_x - 0.5, 0.0))) + 1, 0, ground.texels)
    bottom = wp.clamp(int(wp.floor(place[1] + wp.max(half_z - 0.5, 0.0))) + 1, 0, ground.texels)
    return wp.vec4i(left, top, right, bottom)


@wp.kernel
def place_footprints(
    first: int,
    positions: wp.array(dtype=wp.vec3),
    axes_a: wp.array(dtype=wp.vec3),
    axes_b: wp.array(dtype=wp.vec3),
    marks: wp.array(dtype=int),
    ground: GroundMap,
    rects: wp.array(dtype=wp.vec4i),
    counts: wp.array(dtype=int),
):
    """Texels each surfel covers along the light (if it faces it, or is a sheet), and after all these, straight down (if
    it is low)."""
    i = first + wp.tid()
    below = len(positions) + i
    rects[i] = wp.vec4i(0, 0, 0, 0)
    rects[below] = wp.vec4i(0, 0, 0, 0)
    counts[i] = 0
    counts[below] = 0
    p = positions[i]
    a = axes_a[i] / ground.texel
    b = axes_b[i] / ground.texel
    if not wp.length_sq(a) + wp.length_sq(b) + wp.length_sq(p) < 1.0e30:
        return
    if has_two_sides(marks[i]) or wp.dot(wp.cross(a, b), ground.to_light) > 0.0:
        ax = a[0] - ground.slope[0] * a[1]
        az = a[2] - ground.slope[1] * a[1]
        bx = b[0] - ground.slope[0] * b[1]
        bz = b[2] - ground.slope[1] * b[1]
        half_x = wp.sqrt(ax * ax + bx * bx)
        half_z = wp.sqrt(az * az + bz * bz)
        rects[i] = _texel_rect(ground, shadow_place(ground, p), half_x, half_z)
        counts[i] = tiles_touched(rects[i])
    if p[1] - ground.level < ground.reach:
        half_x = wp.sqrt(a[0] * a[0] + b[0] * b[0])
        half_z = wp.sqrt(a[2] * a[2] + b[2] * b[2])
        place = wp.vec2((p[0] - ground.corner[0]) / ground.texel, (p[2] - ground.corner[1]) / ground.texel)
        rects[below] = _texel_rect(ground, place, half_x, half_z)
        counts[below] = tiles_touched(rects[below])


@wp.kernel
def gather_footprints(
    first: int,
    grid: TileGrid,
    positions: wp.array(dtype=wp.vec3),
    colors: wp.array(dtype=wp.vec3),
    marks: wp.array(dtype=int),
    table: wp.array(dtype=LookArrays),
    ground: GroundMap,
    rects: wp.array(dtype=wp.vec4i),
    starts: wp.array(dtype=int),
    items: wp.array(dtype=int),
    tops: wp.array(dtype=float),
    shades: wp.array(dtype=Shade),
):
    """One block of texels of the light map (physics 14.2): the surfel that reaches farthest toward the light over each,
    and the one that comes closest to the ground."""
    i = first + wp.tid()
    p = first_pixel(grid, i)
    stop = past_pixel(grid, i)
    if p >= stop:
        return
    corner = place_of(grid, p)
    end_x = wp.min(corner[0] + wp.min(grid.span, 16), ground.texels)
    end_y = wp.min(corner[1] + wp.max(grid.span // 16, 1), ground.texels)
    tile = p >> 8
    y = int(corner[1])
    while y < end_y:
        x = int(corner[0])
        while x < end_x:
            tops[y * ground.texels + x] = _EMPTY
            shades[y * ground.texels + x] = Shade()
            x += 1
        y += 1
    k = int(starts[tile])
    end = starts[tile + 1]
    while k < end:
        j = items[k]
        k += 1
        rect = rects[j]
        straight_down = j >= len(positions)
        if straight_down:
            j -= len(positions)
        position = positions[j]
        height = wp.max(position[1] - ground.level, 0.0)
        closeness = wp.max(1.0 - height / ground.reach, 0.0)
        top = wp.dot(position, ground.to_light)
        color = table[row_of(marks[j])].translucency * linear_from_srgb(colors[j])
        y = wp.max(rect[1], corner[1])
        while y < wp.min(rect[3], end_y):
            x = wp.max(rect[0], corner[0])
            while x < wp.min(rect[2], end_x):
                t = y * ground.texels + x
                if straight_down:
                    shade = shades[t]
                    shade[5] = wp.max(shade[5], closeness * closeness)
                    shades[t] = shade
                elif top > tops[t]:
                    tops[t] = top
                    shades[t] = Shade(color[0], color[1], color[2], 1.0, height, shades[t][5], 0.0, 0.0)
                x += 1
            y += 1


@wp.func_native("""
    const float* from = (const float*)source.data + 8 * begin;
    float* to = (float*)target.data + 8 * begin;
    const float weight = 1.0f / (float)(2 * radius + 1);
    float total[8] = {};
    for (int x = -radius; x < texels; ++x) {
        if (x + radius < texels)
            for (int c = 0; c < 8; ++c) total[c] += from[8 * step * (x + radius) + c];
        if (x > radius)
            for (int c = 0; c < 8; ++c) total[c] -= from[8 * step * (x - radius - 1) + c];
        if (x >= 0)
            for (int c = 0; c < 8; ++c) to[8 * step * x + c] = weight * total[c];
    }
""")
def _blur_line(
    begin: int, step: int, texels: int, radius: int, source: wp.array(dtype=Shade), target: wp.array(dtype=Shade)
):
    """Running mean over 2 radius + 1 of the texels begin, begin + step, ..., beyond which there is nothing."""


@wp.kernel
def blur_lines(
    first: int, texels: int, step: int, radius: int, source: wp.array(dtype=Shade), target: wp.array(dtype=Shade)
):
    """Blur one row (step 1) or one column (step `texels`) of the map along itself."""
    i = first + wp.tid()
    _blur_line(i * (texels // step), step, texels, radius, source, target)


@wp.kernel
def light_ground(
    first: int,
    ground: GroundMap,
    near: wp.array(dtype=Shade),
    far: wp.array(dtype=Shade),
    light: wp.array(dtype=wp.vec3),
    darkness: wp.array(dtype=float),
):
    """Part of the light that reaches each texel, by color (physics 14.2). The higher the caster of a shadow, the softer
    its edge."""
    i = first + wp.tid()
    sharp = near[i]
    wide = far[i]
    blur = wp.clamp(wide[4] / ((wide[3] + 1.0e-4) * ground.penumbra), 0.0, 1.0)
    cast = sharp + blur * (wide - sharp)
    contact = wp.max(sharp[5], 0.6 * wide[5])
    shaded = 1.0 - 0.55 * cast[3]
    through = 0.45 * wp.vec3(cast[0], cast[1], cast[2])
    reaching = (1.0 - 0.75 * contact) * (wp.vec3(shaded, shaded, shaded) + through)
    light[i] = reaching
    darkness[i] = 1.0 - wp.min(reaching)


class ShadowMap:
    """The light maps of one renderer."""

    def __init__(self, texels: int, device: wp.Device) -> None:
        self.device = device
        self._grid = make_grid(texels, texels, device)
        self.texels = texels
        self.tops = wp.empty(texels * texels, dtype=float, device=device)
        """how far the object reaches toward the light [m], -1e30 where it is not"""
        self.light = wp.empty(texels * texels, dtype=wp.vec3, device=device)
        """part of the light that reaches the ground, by color"""
        self.darkness = wp.empty(texels * texels, dtype=float, device=device)
        """part of the light that does not, in the darkest color"""
        self._near = wp.empty(texels * texels, dtype=Shade, device=device)
        self._far = wp.empty(texels * texels, dtype=Shade, device=device)
        self._scratch = wp.empty(texels * texels, dtype=Shade, device=device)
        self._lists = TileLists(texels, texels, device)
        self._rects = wp.empty(0, dtype=wp.vec4i, device=device)

    def draw(self, surfels: DrawnSurfels, table: wp.array, place: Any) -> None:
        """Draw the surfels, of looks in `table`, into a map that lies at `place`: fill `tops`."""
        positions, axes_a, axes_b, colors, marks = surfels
        count = len(positions)
        self._rects = grown(self._rects, 2 * count)
        inputs = [positions, axes_a, axes_b, marks, place, self._rects, self._lists.counts_for(2 * count)]
        launch(place_footprints, count, inputs, self.device, count > SPLIT_FROM)
        self._lists.fill(self._rects, 2 * count)
        lists = [self._rects, self._lists.starts, self._lists.items]
        inputs = [self._grid, positions, colors, marks, table, place, *lists, self.tops, self._near]
        launch_over(gather_footprints, self._grid, inputs, self.device, count > SPLIT_FROM // 2)

    def light_up(self, place: Any) -> None:
        """Fill `light` from the map as it was drawn."""
        narrow = max(1, self.texels // 100)
        self._blur(self._near, self._near, narrow)
        self._blur(self._near, self._far, 4 * narrow)
        self._blur(self._far, self._far, 3 * narrow)
        inputs = [place, self._near, self._far, self.light, self.darkness]
        launch(light_ground, self.texels * self.texels, inputs, self.device, split=False)

    def _blur(self, source: wp.array, target: wp.array, radius: int) -> None:
        """Mean over squares of 2 radius + 1 texels. Too little work to wake a second CPU thread for."""
        rows, columns = [self.texels, 1, radius], [self.texels, self.texels, radius]
        launch(blur_lines, self.texels, [*rows, source, self._scratch], self.device, split=False)
        launch(blur_lines, self.texels, [*columns, self._scratch, target], self.device, split=False)


def bounds_of(positions: wp.array, device: wp.Device) -> tuple[np.ndarray, np.ndarray]:
    """Lower and upper corner of the finite positions [m]; both zero if there are none."""
    chunks = -(-len(positions) // CHUNK)
    if chunks:
        lows = wp.empty(chunks, dtype=wp.vec3, device=device)
        highs = wp.empty(chunks, dtype=wp.vec3, device=device)
        launch(bound_chunks, chunks, [positions, lows, highs], device, chunks > 32)
        low, high = lows.numpy().min(axis=0), highs.numpy().max(axis=0)
        if (low <= high).all():
            return low, high
    return np.zeros(3), np.zeros(3)


def place_map(low: np.ndarray, high: np.ndarray, level: float, to_light: np.ndarray, texels: int, size: float) -> Any:
    """A map that holds the shadow of the box `low`..`high` on the plane y = level, with room for the blur; a
    thing in it is about `size` [m] large.

    Its texel takes sizes in steps and its corner lies on whole texels, so that shadows do not shimmer as things move.
    """
    slope = to_light[[0, 2]] / to_light[1]
    heights = np.array([[low[1] - level], [high[1] - level], [0.0]])
    shifts = -np.maximum(heights, 0.0) * slope
    corners = np.concatenate([low[[0, 2]] + shifts, high[[0, 2]] + shifts])
    room = 0.15 * float(np.max(high - low)) + 1e-9
    start, end = corners.min(axis=0) - room, corners.max(axis=0) + room
    place = GroundMap()
    step = 2.0**0.25
    place.texel = float(step ** np.ceil(np.log(np.max(end - start) / (texels - 1)) / np.log(step)))
    middle = 0.5 * (start + end) - 0.5 * texels * place.texel
    place.corner = wp.vec2(*(np.floor(middle / place.texel) * place.texel))
    place.lower, place.upper = wp.vec2(*start), wp.vec2(*end)
    place.per_metre = 1.0 / place.texel
    place.texels = texels
    place.level = level
    place.to_light = wp.vec3(*to_light)
    place.slope = wp.vec2(*slope)
    place.reach = 0.25 * size
    place.penumbra = 0.6 * size
    return place
