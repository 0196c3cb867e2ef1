# mypy: disable-error-code="valid-type,no-untyped-def,no-untyped-call"
"""Visibility: every pixel blends the discs nearest to the eye, and is lit."""

from __future__ import annotations

from typing import Any

import warp as wp

from phyxel.device import launch
from phyxel.render.discs import Disc, project_discs
from phyxel.render.rows import ROW_OPTIONS, SCRATCH, blend_edges, blend_rows, clear, light_row, raise_rows
from phyxel.render.shade import Studio
from phyxel.render.shadow import ShadowMap
from phyxel.render.surfels import Surfels
from phyxel.render.tiles import SPLIT_FROM, Grid, TileLists, first_pixel, launch_over, past_pixel, pixel_count, place_of
from phyxel.render.view import View

wp.set_module_options(ROW_OPTIONS)

_SCRATCH = wp.constant(SCRATCH)


@wp.struct
class Blend:
    """The discs nearest to the eye in one pixel; normal, light and openness are sums by weight."""

    nearness: float
    coverage: float
    weight: float
    openness: float
    normal: wp.vec3
    light: wp.vec3


@wp.func
def _edge_coverage(disc: Disc, u: float, v: float, w: float) -> float:
    """Part of a pixel in the disc: half plus the way to the edge in pixels, (1 - r) / |∇r| with r² = (u² + v²) / w²."""
    rr = (u * u + v * v) / (w * w)
    r = wp.sqrt(rr)
    gx = (u * disc.ux + v * disc.vx) / (w * w) - rr / w * disc.wx
    gy = (u * disc.uy + v * disc.vy) / (w * w) - rr / w * disc.wy
    return wp.clamp(0.5 + (1.0 - r) * r / (wp.sqrt(gx * gx + gy * gy) + 1.0e-12), 0.0, 1.0)


@wp.func
def _fragment(disc: Disc, x: int, y: int) -> wp.vec3:
    """Of a disc in a pixel: one over its depth, its coverage (0 if none), its weight (1 - r²)²."""
    dx = float(x) + 0.5 - disc.x
    dy = float(y) + 0.5 - disc.y
    u = disc.ux * dx + disc.uy * dy
    v = disc.vx * dx + disc.vy * dy
    w = 1.0 + disc.wx * dx + disc.wy * dy
    inside = w * w - u * u - v * v
    if not inside > disc.outer:
        return wp.vec3(0.0, 0.0, 0.0)
    covered = float(1.0)
    if inside < disc.inner:
        covered = _edge_coverage(disc, u, v, w)
    # Beside a disc seen edge on its plane runs off: hold the depth to what the disc has.
    near = wp.clamp(disc.nearness * w, disc.nearness - disc.slack, disc.nearness + disc.slack)
    weight = wp.max(inside, 0.02)
    return wp.vec3(near, covered, weight * weight * covered)


@wp.func
def _blend_pixel(
    x: int,
    y: int,
    discs: wp.array(dtype=Disc),
    rects: wp.array(dtype=wp.vec4i),
    items: wp.array(dtype=int),
    begin: int,
    end: int,
) -> Blend:
    """Find the nearest disc in a pixel, then blend all discs that are as near as that by about a radius."""
    blend = Blend()
    k = int(begin)
    while k < end:
        j = items[k]
        rect = rects[j]
        if x >= rect[0] and x < rect[2] and y >= rect[1] and y < rect[3]:
            fragment = _fragment(discs[j], x, y)
            if fragment[1] > 0.0:
                blend.nearness = wp.max(blend.nearness, fragment[0])
        k += 1
    k = int(begin)
    while k < end:
        j = items[k]
        rect = rects[j]
        if x >= rect[0] and x < rect[2] and y >= rect[1] and y < rect[3]:
            disc = discs[j]
            fragment = _fragment(disc, x, y)
            if fragment[1] > 0.0 and fragment[0] >= blend.nearness - disc.slack:
                blend.normal += fragment[2] * disc.normal
                blend.light += fragment[2] * disc.light
                blend.openness += fragment[2] * disc.openness
                blend.weight += fragment[2]
                blend.coverage = wp.max(blend.coverage, fragment[1])
        k += 1
    return blend


@wp.func
def _keep(blend: Blend, s: int, scratch: wp.array(dtype=float)):
    """Put a pixel into its slot of the scratch."""
    scratch[s] = blend.nearness
    scratch[s + 256] = blend.weight
    scratch[s + 512] = blend.normal[0]
    scratch[s + 768] = blend.normal[1]
    scratch[s + 1024] = blend.normal[2]
    scratch[s + 1280] = blend.light[0]
    scratch[s + 1536] = blend.light[1]
    scratch[s + 1792] = blend.light[2]
    scratch[s + 2048] = blend.openness
    scratch[s + 2304] = blend.coverage


@wp.kernel
def blend_pixels(
    first: int,
    grid: Grid,
    view: View,
    studio: Studio,
    level: float,
    discs: wp.array(dtype=Disc),
    rects: wp.array(dtype=wp.vec4i),
    starts: wp.array(dtype=int),
    items: wp.array(dtype=int),
    scratch: wp.array(dtype=float),
    nearness: wp.array(dtype=float),
    coverage: wp.array(dtype=float),
    colors: wp.array(dtype=float),
):
    """One pixel a thread: for CUDA."""
    p = first + wp.tid()
    place = place_of(grid, p)
    tile = p >> 8
    s = tile * _SCRATCH + (p & 255)
    _keep(_blend_pixel(place[0], place[1], discs, rects, items, starts[tile], starts[tile + 1]), s, scratch)
    light_row(place[0], place[1], p, s, 1, view, studio, level, scratch, nearness, coverage, colors)


@wp.kernel
def blend_tiles(
    first: int,
    grid: Grid,
    view: View,
    studio: Studio,
    level: float,
    discs: wp.array(dtype=Disc),
    rects: wp.array(dtype=wp.vec4i),
    starts: wp.array(dtype=int),
    items: wp.array(dtype=int),
    scratch: wp.array(dtype=float),
    nearness: wp.array(dtype=float),
    coverage: wp.array(dtype=float),
    colors: wp.array(dtype=float),
):
    """One tile a thread: for the CPU. Whole rows at once, without the soft edges; then the pixels at edges."""
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
    start = (i // grid.rounds) * _SCRATCH
    clear(scratch, start, start + _SCRATCH)
    corner = place_of(grid, p)
    k = int(begin)
    while k < end:
        j = items[k]
        rect = rects[j]
        raise_rows(discs[j], corner[0], wp.max(rect[1], corner[1]), wp.min(rect[3], corner[1] + 16), start, scratch)
        k += 1
    k = int(begin)
    while k < end:
        j = items[k]
        rect = rects[j]
        blend_rows(discs[j], corner[0], wp.max(rect[1], corner[1]), wp.min(rect[3], corner[1] + 16), start, scratch)
        k += 1
    blend_edges(corner[0], corner[1], begin, end, discs, rects, items, start, scratch)
    y = int(corner[1])
    while p < stop:
        light_row(corner[0], y, p, start + (p & 255), 16, view, studio, level, scratch, nearness, coverage, colors)
        y += 1
        p += 16


class DiscLayer:
    """The front layer of a scene: what the discs nearest to the eye show in every pixel, kept tile after tile."""

    def __init__(self, grid: Any, device: wp.Device) -> None:
        self.device, self.grid = device, grid
        pixels = pixel_count(grid)
        self.nearness = wp.zeros(pixels, dtype=float, device=device)
        """one over the depth [1/m] where something is seen"""
        self.coverage = wp.zeros(pixels, dtype=float, device=device)
        """part of the pixel that is covered, 0..1"""
        self.colors = wp.zeros(3 * pixels, dtype=float, device=device)
        """linear light where something is seen: of each tile 256 times red, then green, then blue"""
        scratches = grid.tiles if grid.span == 1 else grid.lanes
        self._scratch = wp.zeros(SCRATCH * scratches, dtype=float, device=device)
        self.lists = TileLists(grid.width, grid.height, device)
        """which discs touch which tile"""
        self._discs = wp.empty(0, dtype=Disc, device=device)
        self._rects = wp.empty(0, dtype=wp.vec4i, device=device)

    def draw(self, surfels: Surfels, view: Any, studio: Any, place: Any, shadows: ShadowMap, level: float) -> None:
        """Fill the layer with the surfels seen by `view`, but for those below the ground at y = level [m]."""
        count = len(surfels.positions)
        if self._rects.size < count:
            self._discs = wp.empty(count, dtype=Disc, device=self.device)
            self._rects = wp.empty(count, dtype=wp.vec4i, device=self.device)
        inputs = [*surfels, view, studio, place, shadows.tops, self.grid, self._discs, self._rects]
        inputs.append(self.lists.counts_for(count))
        launch(project_discs, count, inputs, self.device, count > SPLIT_FROM // 2)
        self.lists.fill(self._rects, count)
        discs = [self._discs, self._rects, self.lists.starts, self.lists.items, self._scratch]
        inputs = [self.grid, view, studio, level, *discs, self.nearness, self.coverage, self.colors]
        launch_over(blend_pixels if self.grid.span == 1 else blend_tiles, self.grid, inputs, self.device)
