# mypy: disable-error-code="valid-type,no-untyped-def,no-untyped-call"
"""Visibility: every pixel blends the discs nearest to the eye, and is lit."""

from __future__ import annotations

from typing import Any

import warp as wp

from phyxel.device import KERNEL_OPTIONS, launch
from phyxel.render.discs import Disc, project_discs
from phyxel.render.shade import Studio
from phyxel.render.shadow import ShadowMap
from phyxel.render.surfels import Surfels
from phyxel.render.tiles import SPLIT_FROM, Grid, TileLists, first_pixel, launch_over, past_pixel, pixel_count, place_of
from phyxel.render.view import View

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


# Pixels in a row, as loops over neighbouring words without branches: the compiler turns each into a few vector
# instructions. Warp's own indexing (with a stride known only at run time) would leave them scalar, ten times slower.
# The scratch of a tile is eleven times 256 numbers: nearness, weight, normal (3), light (3), openness, coverage, doubt.


@wp.func_native("""
    const float drop = view.eye[1] - level;
    const float up = (view.center[1] - (float)y - 0.5f) * view.per_focal;
    for (int k = 0; k < lanes; ++k) {
        const float* __restrict__ from = scratch.data + s + k;
        float* __restrict__ to = colors.data + (p >> 8) * 768 + (p & 255) + k;
        const float right = ((float)(x + k) + 0.5f - view.center[0]) * view.per_focal;
        const float rx = view.forward[0] + right * view.right[0] + up * view.up[0];
        const float ry = view.forward[1] + right * view.right[1] + up * view.up[1];
        const float rz = view.forward[2] + right * view.right[2] + up * view.up[2];
        const float r = -1.0f / wp::sqrt(rx * rx + ry * ry + rz * rz);
        const float ex = r * rx, ey = r * ry, ez = r * rz;

        float nx = from[512], ny = from[768], nz = from[1024];
        const float n = 1.0f / wp::sqrt(nx * nx + ny * ny + nz * nz + 1e-30f);
        nx *= n, ny *= n, nz *= n;
        const float share = 1.0f / (from[256] + 1e-30f);
        const float openness = share * from[2048];

        // The key light's highlight: (1 - (1 - c) gloss / 8)^8 is nearly Blinn and Phong's c^gloss.
        const float hx = studio.to_light[0] + ex, hy = studio.to_light[1] + ey, hz = studio.to_light[2] + ez;
        const float h = 1.0f / wp::sqrt(hx * hx + hy * hy + hz * hz + 1e-30f);
        float lobe = 1.0f - (1.0f - h * (nx * hx + ny * hy + nz * hz)) * studio.gloss * 0.125f;
        lobe = lobe > 0.0f ? lobe : 0.0f;
        lobe *= lobe; lobe *= lobe; lobe *= lobe;
        const float shine = studio.specular * lobe * openness;

        // The studio mirrored, most at grazing angles (Schlick's Fresnel term): sky, and a soft box at the ceiling.
        float facing = nx * ex + ny * ey + nz * ez;
        facing = facing > 0.0f ? facing : 0.0f;
        const float graze = 1.0f - facing, graze2 = graze * graze;
        const float mirrored = 2.0f * facing * ny - ey;
        float box = (mirrored - 0.2f) * 1.43f;
        box = box > 0.0f ? box : 0.0f;
        box = box < 1.0f ? box : 1.0f;
        const float rim = (0.04f + 0.96f * graze2 * graze2 * graze) * studio.rim * (0.4f + 0.6f * openness);
        const float sky = rim * (0.5f + 0.5f * mirrored), key = shine + rim * box * box * (3.0f - 2.0f * box);

        // Film-like rolling off of what is too bright: straight up to 0.6, then bending, level at 1.
        for (int c = 0; c < 3; ++c) {
            const float light = share * from[1280 + 256 * c] + sky * studio.sky[c] + key * studio.key[c];
            float over = light - 0.6f;
            over = over > 0.0f ? over : 0.0f;
            over = over < 0.8f ? over : 0.8f;
            to[256 * c] = (light < 0.6f ? light : 0.6f) + over - 0.625f * over * over;
        }

        // The ground hides what is below it, with a soft step about a pixel wide.
        float above = 0.5f + (from[0] * drop + ry) * view.focal;
        above = above > 0.0f ? above : 0.0f;
        above = above < 1.0f ? above : 1.0f;
        above = ry > 0.0f || drop < 0.0f ? 1.0f : above;
        coverage.data[p + k] = from[2304] * above;
        nearness.data[p + k] = from[0];
    }
""")
def _light_row(
    x: int,
    y: int,
    p: int,
    s: int,
    lanes: int,
    view: View,
    studio: Studio,
    level: float,
    scratch: wp.array(dtype=float),
    nearness: wp.array(dtype=float),
    coverage: wp.array(dtype=float),
    colors: wp.array(dtype=float),
):
    """Light pixels p, p + 1, ... from their slots s, s + 1, ...: the mean light of the surfels' bodies, and what a
    surface with their mean normal mirrors. Only pixels that are covered get a color that means something."""


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
    _light_row(place[0], place[1], p, s, 1, view, studio, level, scratch, nearness, coverage, colors)


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


@wp.func_native("""
    for (int i = first; i < last; ++i) numbers.data[i] = 0.0f;
""")
def _clear(numbers: wp.array(dtype=float), first: int, last: int):
    """Set numbers first..last to zero."""


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
    q = int(p)
    while q < stop:
        s = start + (q & 255)
        if scratch[s + 2560] > 0.0 or (scratch[s] > 0.0 and scratch[s + 2304] < 1.0):
            place = place_of(grid, q)
            _keep(_blend_pixel(place[0], place[1], discs, rects, items, begin, end), s, scratch)
        q += 1
    y = int(corner[1])
    while p < stop:
        _light_row(corner[0], y, p, start + (p & 255), 16, view, studio, level, scratch, nearness, coverage, colors)
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
        self._lists = TileLists(grid.width, grid.height, device)
        self._discs = wp.empty(0, dtype=Disc, device=device)
        self._rects = wp.empty(0, dtype=wp.vec4i, device=device)

    def draw(self, surfels: Surfels, view: Any, studio: Any, place: Any, shadows: ShadowMap, level: float) -> None:
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
        launch_over(blend_pixels if self.grid.span == 1 else blend_tiles, self.grid, inputs, self.device)
