# mypy: disable-error-code="valid-type,no-untyped-def,no-untyped-call"
"""Visibility: surfels become discs on the screen, and every pixel blends the discs nearest to the eye.

A ray d through a pixel meets the plane of a disc with center c and half axes a, b where d ~ c + u a + v b. By Cramer
(u, v, 1) ~ (d·(b×c), d·(c×a), d·(a×b)): three functions linear in the pixel, exact in perspective, cheap to step along
a row. Inside the disc u² + v² < 1, and d·(a×b) / c·(a×b) is one over the depth.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import warp as wp

from phyxel.device import KERNEL_OPTIONS, launch
from phyxel.render.camera import Camera
from phyxel.render.tiles import SPLIT_FROM, Grid, TileLists, block_corner, tile_of

wp.set_module_options(KERNEL_OPTIONS)


@wp.struct
class View:
    """A camera as the kernels want it; `focal` and the center of the picture in pixels."""

    eye: wp.vec3
    right: wp.vec3
    up: wp.vec3
    forward: wp.vec3
    focal: float
    center: wp.vec2


def make_view(camera: Camera) -> Any:
    view = View()
    view.eye = wp.vec3(*np.asarray(camera.eye, float))
    right, up, forward = camera.axes
    view.right, view.up, view.forward = wp.vec3(*right), wp.vec3(*up), wp.vec3(*forward)
    view.focal = camera.focal
    view.center = wp.vec2(camera.width / 2, camera.height / 2)
    return view


@wp.func
def ray_through(view: View, x: int, y: int) -> wp.vec3:
    """Direction through the middle of a pixel; one long along `forward`, so that eye + depth * ray is the point seen."""
    right = (float(x) + 0.5 - view.center[0]) / view.focal
    up = (view.center[1] - float(y) - 0.5) / view.focal
    return view.forward + right * view.right + up * view.up


@wp.func
def linear_from_srgb(c: wp.vec3) -> wp.vec3:
    """Light for a display value, each in 0..1; a cubic within 0.2 % of the standard's curve."""
    square = wp.cw_mul(c, c)
    return 0.012522878 * c + 0.682171111 * square + 0.305306011 * wp.cw_mul(square, c)


@wp.struct
class Disc:
    """A surfel on the screen. With (dx, dy) the way in pixels from its middle: u = ux dx + uy dy, v likewise,
    w = 1 + wx dx + wy dy; inside is u² + v² < w², and one over the depth is nearness * w."""

    x: float
    y: float
    ux: float
    uy: float
    vx: float
    vy: float
    wx: float
    wy: float
    nearness: float
    slack: float
    inner: float
    outer: float
    color: wp.vec3
    normal: wp.vec3


@wp.func
def _span(along: wp.vec3, depth: wp.vec3) -> wp.vec2:
    """Least and greatest along/depth over the disc; both as (component of a, of b, of c)."""
    dd = depth[2] * depth[2] - depth[0] * depth[0] - depth[1] * depth[1]
    ad = along[2] * depth[2] - along[0] * depth[0] - along[1] * depth[1]
    aa = along[2] * along[2] - along[0] * along[0] - along[1] * along[1]
    half = wp.sqrt(wp.max(ad * ad - aa * dd, 0.0))
    return wp.vec2((ad - half) / dd, (ad + half) / dd)


@wp.kernel
def project_discs(
    first: int,
    positions: wp.array(dtype=wp.vec3),
    axes_a: wp.array(dtype=wp.vec3),
    axes_b: wp.array(dtype=wp.vec3),
    colors: wp.array(dtype=wp.vec3),
    view: View,
    grid: Grid,
    discs: wp.array(dtype=Disc),
    rects: wp.array(dtype=wp.vec4i),
):
    """Put each surfel on the screen. One that shows its back, is too close to the eye or is not finite gets an
    empty rectangle: all tests are written so that NaN fails them."""
    i = first + wp.tid()
    rects[i] = wp.vec4i(0, 0, 0, 0)
    offset = positions[i] - view.eye
    a_world = axes_a[i]
    b_world = axes_b[i]
    normal = wp.cross(a_world, b_world)
    area = wp.length(normal)
    facing = -wp.dot(normal, offset)
    if not facing > 1.0e-4 * area * wp.length(offset):
        return
    c = wp.vec3(wp.dot(offset, view.right), wp.dot(offset, view.up), wp.dot(offset, view.forward))
    # Closer than four radii a disc would fill the picture and its plane says little about the surface.
    radius = wp.max(wp.length(a_world), wp.length(b_world))
    if not (c[2] > 4.0 * radius and c[2] < 1.0e18):
        return
    # A disc below a pixel would fall between the pixels' middles.
    grow = wp.max(1.0, 0.9 * c[2] / (view.focal * wp.sqrt(area)))
    a = grow * wp.vec3(wp.dot(a_world, view.right), wp.dot(a_world, view.up), wp.dot(a_world, view.forward))
    b = grow * wp.vec3(wp.dot(b_world, view.right), wp.dot(b_world, view.up), wp.dot(b_world, view.forward))

    horizontal = _span(wp.vec3(a[0], b[0], c[0]), wp.vec3(a[2], b[2], c[2])) * view.focal
    vertical = _span(wp.vec3(a[1], b[1], c[1]), wp.vec3(a[2], b[2], c[2])) * view.focal
    # Half a pixel more each way for the soft edge; then pixels whose middles lie within.
    left = wp.max(int(wp.ceil(wp.clamp(view.center[0] + horizontal[0] - 1.0, -1.0, 1.0e6))), 0)
    right = wp.min(int(wp.floor(wp.clamp(view.center[0] + horizontal[1], -1.0, 1.0e6))) + 1, grid.width)
    top = wp.max(int(wp.ceil(wp.clamp(view.center[1] - vertical[1] - 1.0, -1.0, 1.0e6))), 0)
    bottom = wp.min(int(wp.floor(wp.clamp(view.center[1] - vertical[0], -1.0, 1.0e6))) + 1, grid.height)
    if not (left < right and top < bottom):
        return

    scale = c[2] / (wp.dot(c, wp.cross(a, b)) * view.focal)
    to_u = scale * wp.cross(b, c)
    to_v = scale * wp.cross(c, a)
    to_w = scale * wp.cross(a, b)
    disc = Disc()
    disc.x = view.center[0] + view.focal * c[0] / c[2]
    disc.y = view.center[1] - view.focal * c[1] / c[2]
    disc.ux = to_u[0]
    disc.uy = -to_u[1]
    disc.vx = to_v[0]
    disc.vy = -to_v[1]
    disc.wx = to_w[0]
    disc.wy = -to_w[1]
    disc.nearness = 1.0 / c[2]
    disc.slack = radius * grow / (c[2] * c[2])
    steep = wp.sqrt(disc.ux * disc.ux + disc.uy * disc.uy + disc.vx * disc.vx + disc.vy * disc.vy)
    sure = wp.max(1.0 - 0.5 * steep, 0.0)
    disc.inner = 1.0 - sure * sure
    disc.outer = -steep * (1.0 + 0.25 * steep) - 0.05
    disc.color = linear_from_srgb(colors[i])
    disc.normal = normal / area
    if disc.color[0] + disc.color[1] + disc.color[2] < 1.0e6:
        discs[i] = disc
        rects[i] = wp.vec4i(left, top, right, bottom)


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
    grid: Grid,
    discs: wp.array(dtype=Disc),
    rects: wp.array(dtype=wp.vec4i),
    items: wp.array(dtype=int),
    begin: int,
    end: int,
    nearness: wp.array(dtype=float),
    coverage: wp.array(dtype=float),
    sums: wp.array(dtype=float),
):
    """Find the nearest disc in a pixel, then blend all discs that are as near as that by about a radius."""
    nearest = float(0.0)
    k = int(begin)
    while k < end:
        j = items[k]
        rect = rects[j]
        if x >= rect[0] and x < rect[2] and y >= rect[1] and y < rect[3]:
            fragment = _fragment(discs[j], x, y)
            if fragment[1] > 0.0:
                nearest = wp.max(nearest, fragment[0])
        k += 1
    normal = wp.vec3(0.0, 0.0, 0.0)
    color = wp.vec3(0.0, 0.0, 0.0)
    weight = float(0.0)
    covered = float(0.0)
    if nearest > 0.0:
        k = int(begin)
        while k < end:
            j = items[k]
            rect = rects[j]
            if x >= rect[0] and x < rect[2] and y >= rect[1] and y < rect[3]:
                disc = discs[j]
                fragment = _fragment(disc, x, y)
                if fragment[1] > 0.0 and fragment[0] >= nearest - disc.slack:
                    normal += fragment[2] * disc.normal
                    color += fragment[2] * disc.color
                    weight += fragment[2]
                    covered = wp.max(covered, fragment[1])
            k += 1
    p = y * grid.pitch + x
    plane = grid.pitch * grid.height
    nearness[p] = nearest
    coverage[p] = covered
    sums[p] = weight
    sums[plane + p] = normal[0]
    sums[2 * plane + p] = normal[1]
    sums[3 * plane + p] = normal[2]
    sums[4 * plane + p] = color[0]
    sums[5 * plane + p] = color[1]
    sums[6 * plane + p] = color[2]


@wp.kernel
def blend_pixels(
    first: int,
    grid: Grid,
    discs: wp.array(dtype=Disc),
    rects: wp.array(dtype=wp.vec4i),
    starts: wp.array(dtype=int),
    items: wp.array(dtype=int),
    nearness: wp.array(dtype=float),
    coverage: wp.array(dtype=float),
    sums: wp.array(dtype=float),
    doubts: wp.array(dtype=float),
):
    """One pixel a thread: for CUDA."""
    i = first + wp.tid()
    x = i % grid.width
    y = i // grid.width
    tile = tile_of(grid, wp.vec2i(x, y))
    _blend_pixel(x, y, grid, discs, rects, items, starts[tile], starts[tile + 1], nearness, coverage, sums)


# Rows of a tile as loops of fixed length over neighbouring words, without branches: the compiler turns each into a few
# vector instructions. Warp's own indexing (with a stride known only at run time) leaves them scalar, ten times slower.
@wp.func_native("""
    for (int y = top; y < bottom; ++y) {
        const float dx = (float)left + 0.5f - disc.x, dy = (float)y + 0.5f - disc.y;
        const float u0 = disc.ux * dx + disc.uy * dy, v0 = disc.vx * dx + disc.vy * dy;
        const float w0 = 1.0f + disc.wx * dx + disc.wy * dy;
        const float least = disc.nearness - disc.slack, most = disc.nearness + disc.slack;
        float* near = nearness.data + y * pitch + left;
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
def _raise_rows(disc: Disc, nearness: wp.array(dtype=float), pitch: int, left: int, top: int, bottom: int):
    """Nearest depth of the discs, in the rows top..bottom of the tile that begins at column left."""
    ...


@wp.func_native("""
    for (int y = top; y < bottom; ++y) {
        const float dx = (float)left + 0.5f - disc.x, dy = (float)y + 0.5f - disc.y;
        const float u0 = disc.ux * dx + disc.uy * dy, v0 = disc.vx * dx + disc.vy * dy;
        const float w0 = 1.0f + disc.wx * dx + disc.wy * dy;
        const float least = disc.nearness - disc.slack, most = disc.nearness + disc.slack;
        const int p = y * pitch + left;
        const float* near = nearness.data + p;
        float* covered = coverage.data + p;
        float* doubt = doubts.data + p;
        float* weights = sums.data + p;
        float* nx = weights + plane; float* ny = nx + plane; float* nz = ny + plane;
        float* red = nz + plane; float* green = red + plane; float* blue = green + plane;
        float fragment[16];
        for (int x = 0; x < 16; ++x) {
            const float u = u0 + disc.ux * (float)x, v = v0 + disc.vx * (float)x, w = w0 + disc.wx * (float)x;
            const float inside = w * w - u * u - v * v;
            float here = disc.nearness * w;
            here = here > least ? here : least;
            here = here < most ? here : most;
            const float before = here - near[x];
            const float front = before >= -disc.slack ? inside : 0.0f;
            const float weight = front > 0.0f ? front : 0.0f;
            fragment[x] = weight * weight;
            covered[x] = weight > disc.inner ? 1.0f : covered[x];
            const float fringe = inside > disc.outer ? before - disc.slack : 0.0f;
            doubt[x] = doubt[x] > fringe ? doubt[x] : fringe;
        }
        for (int x = 0; x < 16; ++x) weights[x] += fragment[x];
        for (int x = 0; x < 16; ++x) nx[x] += fragment[x] * disc.normal[0];
        for (int x = 0; x < 16; ++x) ny[x] += fragment[x] * disc.normal[1];
        for (int x = 0; x < 16; ++x) nz[x] += fragment[x] * disc.normal[2];
        for (int x = 0; x < 16; ++x) red[x] += fragment[x] * disc.color[0];
        for (int x = 0; x < 16; ++x) green[x] += fragment[x] * disc.color[1];
        for (int x = 0; x < 16; ++x) blue[x] += fragment[x] * disc.color[2];
    }
""")
def _blend_rows(
    disc: Disc,
    nearness: wp.array(dtype=float),
    coverage: wp.array(dtype=float),
    sums: wp.array(dtype=float),
    doubts: wp.array(dtype=float),
    plane: int,
    pitch: int,
    left: int,
    top: int,
    bottom: int,
):
    """Add the disc to the sums where it is in front; note which pixels it surely covers, and which have its fringe
    before all else and so are in doubt."""
    ...


@wp.kernel
def blend_tiles(
    first: int,
    grid: Grid,
    discs: wp.array(dtype=Disc),
    rects: wp.array(dtype=wp.vec4i),
    starts: wp.array(dtype=int),
    items: wp.array(dtype=int),
    nearness: wp.array(dtype=float),
    coverage: wp.array(dtype=float),
    sums: wp.array(dtype=float),
    doubts: wp.array(dtype=float),
):
    """One tile a thread: for the CPU. Whole rows at once, without the soft edges; then pixels at edges one by one."""
    i = first + wp.tid()
    corner = block_corner(grid, i)
    end_y = wp.min(corner[1] + grid.block, grid.height)
    plane = grid.pitch * grid.height
    tile = tile_of(grid, corner)
    begin = starts[tile]
    end = starts[tile + 1]
    y = int(corner[1])
    while y < end_y:
        p = y * grid.pitch + corner[0]
        stop = p + grid.block
        while p < stop:
            coverage[p] = 0.0
            if begin < end:
                nearness[p] = 0.0
                doubts[p] = 0.0
                k = int(0)
                while k < 7:
                    sums[k * plane + p] = 0.0
                    k += 1
            p += 1
        y += 1

    k = int(begin)
    while k < end:
        j = items[k]
        rect = rects[j]
        _raise_rows(discs[j], nearness, grid.pitch, corner[0], wp.max(rect[1], corner[1]), wp.min(rect[3], end_y))
        k += 1
    k = int(begin)
    while k < end:
        j = items[k]
        rect = rects[j]
        top = wp.max(rect[1], corner[1])
        bottom = wp.min(rect[3], end_y)
        _blend_rows(discs[j], nearness, coverage, sums, doubts, plane, grid.pitch, corner[0], top, bottom)
        k += 1
    if begin == end:
        return
    y = int(corner[1])
    while y < end_y:
        x = int(corner[0])
        while x < wp.min(corner[0] + grid.block, grid.width):
            p = y * grid.pitch + x
            if doubts[p] > 0.0 or (nearness[p] > 0.0 and coverage[p] < 1.0):
                _blend_pixel(x, y, grid, discs, rects, items, begin, end, nearness, coverage, sums)
            x += 1
        y += 1


class DiscLayer:
    """The front layer of a scene: what the discs nearest to the eye show in every pixel, before it is lit."""

    def __init__(self, grid: Any, device: wp.Device) -> None:
        self.device, self.grid = device, grid
        pixels = grid.pitch * grid.height
        self.nearness = wp.zeros(pixels, dtype=float, device=device)
        """one over the depth [1/m] where something is seen"""
        self.coverage = wp.zeros(pixels, dtype=float, device=device)
        """part of the pixel that is covered, 0..1"""
        self.sums = wp.zeros(7 * pixels, dtype=float, device=device)
        """weight, normal (3) and linear color (3) times weight, one picture after the other"""
        self._doubts = wp.zeros(pixels, dtype=float, device=device)
        self._lists = TileLists(grid.width, grid.height, device)
        self._discs = wp.empty(0, dtype=Disc, device=device)
        self._rects = wp.empty(0, dtype=wp.vec4i, device=device)

    def draw(self, positions: wp.array, axes_a: wp.array, axes_b: wp.array, colors: wp.array, view: Any) -> None:
        """Fill `nearness`, `coverage` and `sums` with the surfels seen by `view`."""
        count = len(positions)
        if self._rects.size < count:
            self._discs = wp.empty(count, dtype=Disc, device=self.device)
            self._rects = wp.empty(count, dtype=wp.vec4i, device=self.device)
        surfels = [positions, axes_a, axes_b, colors, view, self.grid]
        launch(project_discs, count, [*surfels, self._discs, self._rects], self.device, count > SPLIT_FROM // 4)
        self._lists.fill(self._rects, count)
        discs = [self.grid, self._discs, self._rects, self._lists.starts, self._lists.items]
        pixels = [self.nearness, self.coverage, self.sums, self._doubts]
        if self.device.is_cuda:
            launch(blend_pixels, self.grid.width * self.grid.height, [*discs, *pixels], self.device)
        else:
            launch(blend_tiles, self.grid.blocks, [*discs, *pixels], self.device)
