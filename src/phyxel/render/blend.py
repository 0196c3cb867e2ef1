# mypy: disable-error-code="valid-type,no-untyped-def,no-untyped-call"
"""Visibility: every pixel blends the discs nearest to the eye, and is lit."""

from __future__ import annotations

from typing import Any

import warp as wp

from phyxel.device import launch
from phyxel.render.camera import View
from phyxel.render.cast import DrawnSurfels
from phyxel.render.discs import ScreenDisc, project_discs
from phyxel.render.pixels import light_row
from phyxel.render.rows import (
    ROW_OPTIONS,
    SCRATCH,
    blend_edge,
    blend_rows,
    clear,
    in_doubt,
    raise_rows,
    take_front,
)
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

_SCRATCH = wp.constant(SCRATCH)


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
