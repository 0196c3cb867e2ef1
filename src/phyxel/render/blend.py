# mypy: disable-error-code="valid-type,no-untyped-def,no-untyped-call"
"""Visibility: every pixel blends the discs nearest to the eye, and is lit."""

from __future__ import annotations

from typing import Any

import warp as wp

from phyxel.device import KERNEL_OPTIONS, launch
from phyxel.render.discs import Disc, project_discs
from phyxel.render.shade import Studio, gloss_light
from phyxel.render.shadow import ShadowMap
from phyxel.render.surfels import Surfels
from phyxel.render.tiles import SPLIT_FROM, Grid, TileLists, first_pixel, launch_over, past_pixel, pixel_count, place_of
from phyxel.render.view import View, ray_through

# A row of a tile is just one 512-bit word where the processor has such; the compiler would rather take two halves.
_FLAGS = f"{KERNEL_OPTIONS['cpu_compiler_flags']} -mprefer-vector-width=512"
wp.set_module_options({**KERNEL_OPTIONS, "cpu_compiler_flags": _FLAGS})

SCRATCH = 11 * 256
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
    """Part of a pixel in the disc: half plus the way to the edge in pixels, (1 - r) / |grad r| with r² = (u² + v²) / w²."""
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
def _above_ground(view: View, level: float, ray: wp.vec3, nearness: float) -> float:
    """1 if the eye sees a point before it sees the ground, 0 if after, with a soft step about a pixel wide."""
    drop = view.eye[1] - level
    if ray[1] > 0.0 or drop < 0.0:
        return 1.0
    return wp.clamp(0.5 + (nearness * drop + ray[1]) * view.focal, 0.0, 1.0)


@wp.func
def _shoulder(light: float) -> float:
    """Film-like rolling off of what is too bright: straight up to 0.6, then bending, level at 1."""
    over = wp.clamp(light - 0.6, 0.0, 0.8)
    return wp.min(light, 0.6) + over - 0.625 * over * over


@wp.func
def _store(
    p: int,
    ray: wp.vec3,
    blend: Blend,
    view: View,
    studio: Studio,
    level: float,
    nearness: wp.array(dtype=float),
    coverage: wp.array(dtype=float),
    colors: wp.array(dtype=wp.vec4),
):
    """Light a pixel and write it. The ground at height `level` hides what is below it."""
    share = 1.0 / blend.weight
    gloss = gloss_light(studio, wp.normalize(blend.normal), -wp.normalize(ray), share * blend.openness)
    light = share * blend.light + gloss
    nearness[p] = blend.nearness
    coverage[p] = blend.coverage * _above_ground(view, level, ray, blend.nearness)
    colors[p] = wp.vec4(_shoulder(light[0]), _shoulder(light[1]), _shoulder(light[2]), 1.0)


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
    colors: wp.array(dtype=wp.vec4),
):
    """One pixel a thread: for CUDA."""
    p = first + wp.tid()
    place = place_of(grid, p)
    tile = p >> 8
    blend = _blend_pixel(place[0], place[1], discs, rects, items, starts[tile], starts[tile + 1])
    coverage[p] = 0.0
    if blend.coverage > 0.0:
        _store(p, ray_through(view, place[0], place[1]), blend, view, studio, level, nearness, coverage, colors)


# Rows of a tile as loops of fixed length over neighbouring words, without branches: the compiler turns each into a few
# vector instructions. Warp's own indexing (with a stride known only at run time) leaves them scalar, ten times slower.
# Scratch holds eleven tiles of numbers: nearness, weight, normal (3), light (3), openness, sure coverage, doubt.
@wp.func_native("""
    for (int y = top; y < bottom; ++y) {
        const float dx = (float)left + 0.5f - disc.x, dy = (float)y + 0.5f - disc.y;
        const float u0 = disc.ux * dx + disc.uy * dy, v0 = disc.vx * dx + disc.vy * dy;
        const float w0 = 1.0f + disc.wx * dx + disc.wy * dy;
        const float least = disc.nearness - disc.slack, most = disc.nearness + disc.slack;
        float* near = scratch.data + start + (y & 15) * 16;
        for (int x = 0; x < 16; ++x) {
            const float u = u0 + disc.ux * (float)x, v = v0 + disc.vx * (float)x, w = w0 + disc.wx * (float)x;
            const float inside = w * w - u * u - v * v;
            float here = disc.nearness * w;
            here = here > least ? here : least;
            here = here < most ? here : most;
            here = inside > 0.0f ? here : 0.0f;
            near[x] = near[x] > here ? near[x] : here;
        }
    }
""")
def _raise_rows(disc: Disc, left: int, top: int, bottom: int, start: int, scratch: wp.array(dtype=float)):
    """Nearest depth of the discs, in the rows top..bottom of the tile that begins at column left."""
    ...


@wp.func_native("""
    for (int y = top; y < bottom; ++y) {
        const float dx = (float)left + 0.5f - disc.x, dy = (float)y + 0.5f - disc.y;
        const float u0 = disc.ux * dx + disc.uy * dy, v0 = disc.vx * dx + disc.vy * dy;
        const float w0 = 1.0f + disc.wx * dx + disc.wy * dy;
        const float least = disc.nearness - disc.slack, most = disc.nearness + disc.slack;
        const float* __restrict__ near = scratch.data + start + (y & 15) * 16;
        float* __restrict__ sum = scratch.data + start + 256 + (y & 15) * 16;
        for (int x = 0; x < 16; ++x) {
            const float u = u0 + disc.ux * (float)x, v = v0 + disc.vx * (float)x, w = w0 + disc.wx * (float)x;
            const float inside = w * w - u * u - v * v;
            float here = disc.nearness * w;
            here = here > least ? here : least;
            here = here < most ? here : most;
            const float before = here - near[x];
            const float front = before >= -disc.slack ? inside : 0.0f;
            const float positive = front > 0.0f ? front : 0.0f;
            const float fringe = inside > disc.outer ? before - disc.slack : 0.0f;
            const float weight = positive * positive;
            sum[x] += weight;
            sum[x + 256] += weight * disc.normal[0];
            sum[x + 512] += weight * disc.normal[1];
            sum[x + 768] += weight * disc.normal[2];
            sum[x + 1024] += weight * disc.light[0];
            sum[x + 1280] += weight * disc.light[1];
            sum[x + 1536] += weight * disc.light[2];
            sum[x + 1792] += weight * disc.openness;
            sum[x + 2048] = positive > disc.inner ? 1.0f : sum[x + 2048];
            sum[x + 2304] = sum[x + 2304] > fringe ? sum[x + 2304] : fringe;
        }
    }
""")
def _blend_rows(disc: Disc, left: int, top: int, bottom: int, start: int, scratch: wp.array(dtype=float)):
    """Add the disc where it is in front; note which pixels it surely covers, and which have its fringe before all else
    and so are in doubt."""
    ...


@wp.func_native("""
    for (int i = first; i < last; ++i) numbers.data[i] = 0.0f;
""")
def _clear(numbers: wp.array(dtype=float), first: int, last: int):
    """Set numbers first..last to zero."""
    ...


@wp.func
def _blend_of_rows(s: int, scratch: wp.array(dtype=float)) -> Blend:
    """What the rows gathered for the pixel at s."""
    blend = Blend()
    blend.nearness = scratch[s]
    blend.weight = scratch[s + 256]
    blend.normal = wp.vec3(scratch[s + 512], scratch[s + 768], scratch[s + 1024])
    blend.light = wp.vec3(scratch[s + 1280], scratch[s + 1536], scratch[s + 1792])
    blend.openness = scratch[s + 2048]
    blend.coverage = scratch[s + 2304]
    return blend


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
    colors: wp.array(dtype=wp.vec4),
):
    """One tile a thread: for the CPU. Whole rows at once, without the soft edges; then pixels at edges one by one."""
    i = first + wp.tid()
    p = int(first_pixel(grid, i))
    stop = past_pixel(grid, i)
    if p >= stop:
        return
    _clear(coverage, p, stop)
    begin = starts[p >> 8]
    end = starts[(p >> 8) + 1]
    if begin == end:
        return
    start = (i // grid.rounds) * _SCRATCH
    _clear(scratch, start, start + _SCRATCH)
    corner = place_of(grid, p)
    k = int(begin)
    while k < end:
        j = items[k]
        rect = rects[j]
        _raise_rows(discs[j], corner[0], wp.max(rect[1], corner[1]), wp.min(rect[3], corner[1] + 16), start, scratch)
        k += 1
    k = int(begin)
    while k < end:
        j = items[k]
        rect = rects[j]
        _blend_rows(discs[j], corner[0], wp.max(rect[1], corner[1]), wp.min(rect[3], corner[1] + 16), start, scratch)
        k += 1
    while p < stop:
        s = start + (p & 255)
        if scratch[s] > 0.0 or scratch[s + 2560] > 0.0:
            x = corner[0] + (p & 15)
            y = corner[1] + ((p >> 4) & 15)
            blend = _blend_of_rows(s, scratch)
            if scratch[s + 2560] > 0.0 or blend.coverage < 1.0:
                blend = _blend_pixel(x, y, discs, rects, items, begin, end)
            if blend.coverage > 0.0:
                _store(p, ray_through(view, x, y), blend, view, studio, level, nearness, coverage, colors)
        p += 1


class DiscLayer:
    """The front layer of a scene: what the discs nearest to the eye show in every pixel, kept tile after tile."""

    def __init__(self, grid: Any, device: wp.Device) -> None:
        self.device, self.grid = device, grid
        pixels = pixel_count(grid)
        self.nearness = wp.zeros(pixels, dtype=float, device=device)
        """one over the depth [1/m] where something is seen"""
        self.coverage = wp.zeros(pixels, dtype=float, device=device)
        """part of the pixel that is covered, 0..1"""
        self.colors = wp.zeros(pixels, dtype=wp.vec4, device=device)
        """linear light where something is seen; the fourth component is 1"""
        self._scratch = wp.zeros(SCRATCH * grid.lanes, dtype=float, device=device)
        self._lists = TileLists(grid.width, grid.height, device)
        self._discs = wp.empty(0, dtype=Disc, device=device)
        self._rects = wp.empty(0, dtype=wp.vec4i, device=device)

    def draw(
        self, surfels: Surfels, view: Any, studio: Any, place: Any, shadows: ShadowMap, level: float
    ) -> None:
        """Fill the layer with the surfels seen by `view`, but for those below the ground at y = level [m]."""
        count = len(surfels.positions)
        if self._rects.size < count:
            self._discs = wp.empty(count, dtype=Disc, device=self.device)
            self._rects = wp.empty(count, dtype=wp.vec4i, device=self.device)
        inputs = [*surfels, view, studio, place, shadows.tops, self.grid, self._discs, self._rects]
        launch(project_discs, count, inputs, self.device, count > SPLIT_FROM // 4)
        self._lists.fill(self._rects, count)
        discs = [self._discs, self._rects, self._lists.starts, self._lists.items, self._scratch]
        inputs = [self.grid, view, studio, level, *discs, self.nearness, self.coverage, self.colors]
        launch_over(blend_pixels if self.device.is_cuda else blend_tiles, self.grid, inputs, self.device)
