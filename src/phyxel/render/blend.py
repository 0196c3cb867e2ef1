# mypy: disable-error-code="valid-type,no-untyped-def,no-untyped-call,empty-body"
"""Visibility: every pixel blends the discs nearest to the eye, and is lit: by what its surfels scatter, dimmed where
things are close together, and by the studio that they mirror."""

from __future__ import annotations

from typing import Any

import numpy as np
import warp as wp

from phyxel.device import launch
from phyxel.render.camera import View
from phyxel.render.cast import DrawnSurfels
from phyxel.render.discs import ScreenDisc, project_discs
from phyxel.render.rows import ROW_OPTIONS, SCRATCH, blend_edge, blend_rows, clear, in_doubt, raise_rows, take_front
from phyxel.render.shade import Studio
from phyxel.render.shadow import ShadowMap
from phyxel.render.tiles import (
    SPLIT_FROM,
    TileGrid,
    TileLists,
    first_pixel,
    grown,
    launch_over,
    past_pixel,
    pixel_count,
    place_of,
)

wp.set_module_options(ROW_OPTIONS)

AROUND = 20
"""Places looked at around a pixel for what takes its soft light away."""
_SCRATCH = wp.constant(SCRATCH)


def _spiral() -> str:
    """Places in the unit disc along a spiral, closer together toward its middle, as C++."""
    k = np.arange(AROUND)
    radius, turn = (k + 0.5) / AROUND, np.pi * (3 - np.sqrt(5)) * k
    a, b = (", ".join(f"{number:.6f}f" for number in radius * way) for way in (np.cos(turn), np.sin(turn)))
    return f"const float a[] = {{{a}}}, b[] = {{{b}}};"


# In loops over the pixels of a row without branches, so that the compiler makes vector instructions of them.
@wp.func_native(
    _spiral()
    + f"const int around = {AROUND};"
    + """
    const float up = (view.center[1] - (float)y - 0.5f) * view.per_focal;
    const float* __restrict__ from = scratch.data + s;
    const float per_reach = 0.25f / (studio.near * studio.near);
    float rx[16], ry[16], rz[16], nx[16], ny[16], nz[16], deep[16], hidden[16];
    for (int k = 0; k < lanes; ++k) {
        const float right = ((float)(x + k) + 0.5f - view.center[0]) * view.per_focal;
        rx[k] = view.forward[0] + right * view.right[0] + up * view.up[0];
        ry[k] = view.forward[1] + right * view.right[1] + up * view.up[1];
        rz[k] = view.forward[2] + right * view.right[2] + up * view.up[2];
        nx[k] = from[k + 512], ny[k] = from[k + 768], nz[k] = from[k + 1024];
        const float n = 1.0f / wp::sqrt(nx[k] * nx[k] + ny[k] * ny[k] + nz[k] * nz[k] + 1e-30f);
        nx[k] *= n, ny[k] *= n, nz[k] *= n;
        deep[k] = 1.0f / (from[k] + 1e-30f);
        hidden[k] = 0.0f;
    }

    // Soft light that things close by take away: the mean over places around of the cosine they are seen at, which
    // fades with distance. A plane hides nothing of itself.
    for (int i = 0; i < around; ++i) {
        for (int k = 0; k < lanes; ++k) {
            float reach = studio.near * view.focal * from[k];
            reach = reach < 64.0f ? reach : 64.0f;
            int column = x + k + (int)(a[i] * reach + 64.5f) - 64, row = y + (int)(b[i] * reach + 64.5f) - 64;
            column = column > 0 ? column : 0;
            column = column < width ? column : width - 1;
            row = row > 0 ? row : 0;
            row = row < height ? row : height - 1;
            const int q = (((row >> 4) * tiles_x + (column >> 4)) << 8) + ((row & 15) << 4) + (column & 15);
            const float near = front.data[q];
            const float depth = 1.0f / (near + 1e-30f), more = near > 0.0f ? depth - deep[k] : 1e15f;
            const float aside = (float)(column - x - k) * view.per_focal * depth;
            const float lift = (float)(y - row) * view.per_focal * depth;
            const float vx = rx[k] * more + aside * view.right[0] + lift * view.up[0];
            const float vy = ry[k] * more + aside * view.right[1] + lift * view.up[1];
            const float vz = rz[k] * more + aside * view.right[2] + lift * view.up[2];
            const float vv = vx * vx + vy * vy + vz * vz + 1e-20f;
            float cosine = (vx * nx[k] + vy * ny[k] + vz * nz[k]) / wp::sqrt(vv) - 0.1f;
            cosine = cosine > 0.0f ? cosine : 0.0f;
            float close = 1.0f - vv * per_reach;
            close = close > 0.0f ? close : 0.0f;
            hidden[k] += cosine * close;
        }
    }

    const float drop = view.eye[1] - level;
    float* __restrict__ to = colors.data + (p >> 8) * 768 + (p & 255);
    for (int k = 0; k < lanes; ++k) {
        const float e = -1.0f / wp::sqrt(rx[k] * rx[k] + ry[k] * ry[k] + rz[k] * rz[k]);
        const float ex = e * rx[k], ey = e * ry[k], ez = e * rz[k];
        const float share = 1.0f / (from[k + 256] + 1e-30f);
        const float openness = share * from[k + 2048], shine = share * from[k + 2304], blur = share * from[k + 2560];
        float free = 1.0f - hidden[k] * (2.4f / around);
        free = free > 0.15f ? free : 0.15f;

        // The studio in the mirror: above and below, and what is lit in it: ceiling, walls, a soft box, a strip light.
        float facing = nx[k] * ex + ny[k] * ey + nz[k] * ez;
        facing = facing > 0.0f ? facing : 0.0f;
        const float mx = 2.0f * facing * nx[k] - ex, my = 2.0f * facing * ny[k] - ey, mz = 2.0f * facing * nz[k] - ez;
        const float soft = 0.06f + blur, per_soft = 1.0f / soft;
        float above = 0.5f + my * 0.5f / (0.2f + blur);
        above = above > 0.0f ? above : 0.0f;
        above = above < 1.0f ? above : 1.0f;
        above *= above * (3.0f - 2.0f * above);
        float ceiling = 0.5f + (my - 0.75f) * per_soft * 0.5f;
        ceiling = ceiling > 0.0f ? ceiling : 0.0f;
        ceiling = ceiling < 1.0f ? ceiling : 1.0f;
        const float toward = mx * studio.to_light[0] + my * studio.to_light[1] + mz * studio.to_light[2];
        const float across = mx * studio.side[0] + my * studio.side[1] + mz * studio.side[2];
        const float along = mx * studio.top[0] + my * studio.top[1] + mz * studio.top[2];
        float in_x = 0.5f + (0.26f - (across < 0.0f ? -across : across)) * per_soft;
        float in_y = 0.5f + (0.34f - (along < 0.0f ? -along : along)) * per_soft;
        in_x = in_x > 0.0f ? in_x : 0.0f, in_x = in_x < 1.0f ? in_x : 1.0f;
        in_y = in_y > 0.0f ? in_y : 0.0f, in_y = in_y < 1.0f ? in_y : 1.0f;
        // What is blurred is spread over more directions, and as much dimmer.
        const float spread = 0.0884f / ((0.26f + 0.5f * blur) * (0.34f + 0.5f * blur));
        float box = in_x * in_x * (3.0f - 2.0f * in_x) * in_y * in_y * (3.0f - 2.0f * in_y) * spread;
        box = toward > 0.0f ? box * openness : 0.0f;
        const float back = mx * studio.behind[0] + my * studio.behind[1] + mz * studio.behind[2];
        float strip = 0.5f + (back - 0.85f) * per_soft * 0.5f;
        strip = strip > 0.0f ? strip : 0.0f;
        strip = strip < 1.0f ? strip : 1.0f;
        float walls = 1.0f - 2.0f * (my < 0.0f ? -my : my);
        walls = walls > 0.0f ? walls : 0.0f;
        const float lamps = 12.0f * box + 1.5f * strip * strip / (1.0f + 2.0f * blur) + 0.8f * ceiling + 0.3f * walls;

        // Schlick's Fresnel term; what a rough skin mirrors at grazing angles its own roughness hides.
        const float graze = 1.0f - facing, graze2 = graze * graze;
        const float mirrored = shine * (0.04f + 0.96f * (1.0f - blur) * graze2 * graze2 * graze);

        // Film-like rolling off of what is too bright: straight up to 0.6, then bending, level at 1.
        for (int c = 0; c < 3; ++c) {
            const float body = share * from[k + 1280 + 256 * c];
            // Light that goes to and fro in a corner takes on its color instead of being lost.
            const float kept = free / (1.0f - (1.0f - free) * (body < 0.9f ? body : 0.9f));
            const float room = studio.bounce[c] + above * (studio.sky[c] - studio.bounce[c]) + lamps * studio.key[c];
            const float light = kept * body * (1.0f - mirrored) + free * free * mirrored * room;
            float over = light - 0.6f;
            over = over > 0.0f ? over : 0.0f;
            over = over < 0.8f ? over : 0.8f;
            to[256 * c + k] = (light < 0.6f ? light : 0.6f) + over - 0.625f * over * over;
        }

        // The ground hides what is below it, with a soft step about a pixel wide.
        float over_ground = 0.5f + (from[k] * drop + ry[k]) * view.focal;
        over_ground = over_ground > 0.0f ? over_ground : 0.0f;
        over_ground = over_ground < 1.0f ? over_ground : 1.0f;
        over_ground = ry[k] > 0.0f || drop < 0.0f ? 1.0f : over_ground;
        coverage.data[p + k] = from[k + 3072] * over_ground;
    }
"""
)
def light_row(
    x: int,
    y: int,
    p: int,
    s: int,
    lanes: int,
    width: int,
    height: int,
    tiles_x: int,
    view: View,
    studio: Studio,
    level: float,
    front: wp.array(dtype=float),
    scratch: wp.array(dtype=float),
    coverage: wp.array(dtype=float),
    colors: wp.array(dtype=float),
):
    """Light pixels p, p + 1, ... from their slots s, s + 1, ...: the mean light of the surfels' bodies, and what a
    surface with their mean normal mirrors. Only pixels that are covered get a color that means something."""


@wp.kernel
def find_front(
    first: int,
    grid: TileGrid,
    discs: wp.array(dtype=ScreenDisc),
    rects: wp.array(dtype=wp.vec4i),
    starts: wp.array(dtype=int),
    items: wp.array(dtype=int),
    front: wp.array(dtype=float),
):
    """Nearest depth of discs (physics 14.1) at the middles of a thread's pixels: a tile on the CPU, one on CUDA."""
    i = first + wp.tid()
    p = first_pixel(grid, i)
    stop = past_pixel(grid, i)
    if p >= stop:
        return
    clear(front, p, stop)
    lanes = wp.min(grid.span, 16)
    rows = wp.max(grid.span // 16, 1)
    corner = place_of(grid, p)
    k = int(starts[p >> 8])
    end = starts[(p >> 8) + 1]
    while k < end:
        j = items[k]
        rect = rects[j]
        if corner[0] < rect[2] and corner[0] + lanes > rect[0]:
            top = wp.max(rect[1], corner[1])
            bottom = wp.min(rect[3], corner[1] + rows)
            raise_rows(discs[j], corner[0], top, bottom, (p & -256) + (p & 15), lanes, front)
        k += 1


@wp.kernel
def blend_discs(
    first: int,
    grid: TileGrid,
    view: View,
    studio: Studio,
    level: float,
    discs: wp.array(dtype=ScreenDisc),
    rects: wp.array(dtype=wp.vec4i),
    starts: wp.array(dtype=int),
    items: wp.array(dtype=int),
    front: wp.array(dtype=float),
    scratch: wp.array(dtype=float),
    coverage: wp.array(dtype=float),
    colors: wp.array(dtype=float),
):
    """Blend the discs of the front surface in the pixels of a thread (physics 14.1), then look closer at pixels that
    they may cover in part, and light all."""
    i = first + wp.tid()
    p = int(first_pixel(grid, i))
    stop = past_pixel(grid, i)
    if p >= stop:
        return
    clear(coverage, p, stop)
    begin = starts[p >> 8]
    end = starts[(p >> 8) + 1]
    if begin == end:
        return
    lanes = wp.min(grid.span, 16)
    rows = wp.max(grid.span // 16, 1)
    corner = place_of(grid, p)
    home = i // grid.rounds
    if grid.span == 1:
        home = p >> 8
    begin_slot = home * _SCRATCH + (p & 255)
    begin_row = home * _SCRATCH + (p & 15)
    take_front(front, p, stop, begin_slot, scratch)
    k = int(begin)
    while k < end:
        j = items[k]
        rect = rects[j]
        if corner[0] < rect[2] and corner[0] + lanes > rect[0]:
            top = wp.max(rect[1], corner[1])
            bottom = wp.min(rect[3], corner[1] + rows)
            blend_rows(discs[j], corner[0], top, bottom, begin_row, lanes, scratch)
        k += 1
    s = int(begin_slot)
    y = int(corner[1])
    while p < stop and y < grid.height:
        x = int(corner[0])
        while x < wp.min(corner[0] + lanes, grid.width):
            at = s + x - corner[0]
            doubt = in_doubt(x, y, at, grid.width, grid.height, grid.tiles_x, front, scratch)
            if doubt > 0:
                blend_edge(x, y, at, doubt == 2, begin, end, discs, rects, items, scratch)
            x += 1
        light_row(
            corner[0], y, p, s, lanes, grid.width, grid.height, grid.tiles_x, view, studio, level,
            front, scratch, coverage, colors,
        )  # fmt: skip
        y += 1
        p += lanes
        s += lanes


class DiscLayer:
    """The front layer of a scene: what the discs nearest to the eye show in every pixel, kept tile after tile."""

    def __init__(self, grid: Any, device: wp.Device) -> None:
        self.device, self.grid = device, grid
        pixels = pixel_count(grid)
        self.front = wp.zeros(pixels, dtype=float, device=device)
        """one over the depth [1/m] at the middle of each pixel, 0 where there is nothing"""
        self.coverage = wp.zeros(pixels, dtype=float, device=device)
        """part of the pixel that is covered, 0..1"""
        self.colors = wp.zeros(3 * pixels, dtype=float, device=device)
        """linear light where something is seen: of each tile 256 times red, then green, then blue"""
        scratches = grid.tiles if grid.span == 1 else grid.lanes
        self._scratch = wp.zeros(SCRATCH * scratches, dtype=float, device=device)
        self.lists = TileLists(grid.width, grid.height, device)
        """which discs touch which tile"""
        self._discs = wp.empty(0, dtype=ScreenDisc, device=device)
        self._rects = wp.empty(0, dtype=wp.vec4i, device=device)

    def draw(
        self,
        surfels: DrawnSurfels,
        table: wp.array,
        view: Any,
        studio: Any,
        place: Any,
        shadows: ShadowMap,
        level: float,
    ) -> None:
        """Fill the layer with the surfels seen by `view`, but for those below the ground at y = level [m]; `table` has
        their looks."""
        count = len(surfels.positions)
        self._discs, self._rects = grown(self._discs, count), grown(self._rects, count)
        inputs = [*surfels, table, view, studio, place, shadows.tops, self.grid, self._discs, self._rects]
        inputs.append(self.lists.counts_for(count))
        launch(project_discs, count, inputs, self.device, count > SPLIT_FROM // 2)
        self.lists.fill(self._rects, count)
        discs = [self._discs, self._rects, self.lists.starts, self.lists.items, self.front]
        launch_over(find_front, self.grid, [self.grid, *discs], self.device)
        inputs = [self.grid, view, studio, level, *discs, self._scratch, self.coverage, self.colors]
        launch_over(blend_discs, self.grid, inputs, self.device)
