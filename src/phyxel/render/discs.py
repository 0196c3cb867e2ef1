# mypy: disable-error-code="valid-type,no-untyped-def,no-untyped-call"
"""Surfels as discs on the screen.

A ray d through a pixel meets the plane of a disc with center c and half axes a, b where d ~ c + u a + v b. By Cramer
(u, v, 1) ~ (d·(b×c), d·(c×a), d·(a×b)): three functions linear in the pixel, exact in perspective, cheap to step along
a row. Inside the disc u² + v² < 1, and d·(a×b) / c·(a×b) is one over the depth.

What a disc covers is that ellipse, exactly. How much it counts among its neighbours is another question: an ellipse
narrower than a pixel would be missed by most pixels and flash up in few. Its weight therefore belongs to the ellipse
widened by a pixel (EWA: covariance V + 1 for V = J Jᵀ, J the half axes on the screen [pixels]), never narrower than
that. Scaled by √1.5 the wider ellipse contains all pixels that the disc can touch: s + √½ <= √1.5 √(s² + 1) for the
half width s in any direction.
"""

from __future__ import annotations

import warp as wp

from phyxel.device import KERNEL_OPTIONS
from phyxel.render.camera import View, linear_from_srgb
from phyxel.render.cast import LookArrays, has_two_sides, lies_under, row_of, speck
from phyxel.render.shade import Studio, body_light
from phyxel.render.shadow import GroundMap
from phyxel.render.tiles import TileGrid, pixel_rect, tiles_touched

wp.set_module_options(KERNEL_OPTIONS)


@wp.struct
class ScreenDisc:
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
    fx: float
    """the wider ellipse: a disc's weight is (w² - (fx dx + fy dy)² - (gy dy)²)² where that is positive, with w held to
    its range in the disc: beside a disc seen edge on its plane runs off"""
    fy: float
    gy: float
    nearness: float
    slack: float
    """discs so much farther [1/m] still belong to the same surface"""
    light: wp.vec3
    normal: wp.vec3
    openness: float
    shine: float
    blur: float


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
    marks: wp.array(dtype=int),
    table: wp.array(dtype=LookArrays),
    view: View,
    studio: Studio,
    ground: GroundMap,
    tops: wp.array(dtype=float),
    grid: TileGrid,
    discs: wp.array(dtype=ScreenDisc),
    rects: wp.array(dtype=wp.vec4i),
    counts: wp.array(dtype=int),
):
    """Put each surfel on the screen (physics 14.1) and light its body (physics 14.2). One that shows its back, is too
    close to the eye or is not finite gets an empty rectangle: all tests are written so that NaN fails them. Of a sheet
    the back is turned to the front, and lit as such."""
    i = first + wp.tid()
    rects[i] = wp.vec4i(0, 0, 0, 0)
    counts[i] = 0
    offset = positions[i] - view.eye
    a_world = axes_a[i]
    b_world = axes_b[i]
    normal = wp.cross(a_world, b_world)
    area = wp.length(normal)
    facing = -wp.dot(normal, offset)
    if has_two_sides(marks[i]) and facing < 0.0:
        b_world = -b_world
        normal = -normal
        facing = -facing
    if not facing > 1.0e-4 * area * wp.length(offset):
        return
    c = wp.vec3(wp.dot(offset, view.right), wp.dot(offset, view.up), wp.dot(offset, view.forward))
    # Closer than four radii a disc would fill the picture and its plane says little about the surface.
    radius = wp.max(wp.length(a_world), wp.length(b_world))
    if not (c[2] > 4.0 * radius and c[2] < 1.0e18):
        return
    # Dust far away: no disc is smaller than a few of the places at which a pixel looks for it.
    grow = wp.max(1.0, 0.25 * c[2] * view.per_focal / radius)
    radius = grow * radius
    a = grow * wp.vec3(wp.dot(a_world, view.right), wp.dot(a_world, view.up), wp.dot(a_world, view.forward))
    b = grow * wp.vec3(wp.dot(b_world, view.right), wp.dot(b_world, view.up), wp.dot(b_world, view.forward))

    # Half axes on the screen [pixels], y down, and the covariance of the wider ellipse.
    per_depth = view.focal / c[2]
    ax = per_depth * (a[0] - a[2] * c[0] / c[2])
    ay = -per_depth * (a[1] - a[2] * c[1] / c[2])
    bx = per_depth * (b[0] - b[2] * c[0] / c[2])
    by = -per_depth * (b[1] - b[2] * c[1] / c[2])
    vxx = ax * ax + bx * bx
    vyy = ay * ay + by * by
    vxy = ax * ay + bx * by
    flat = ax * by - ay * bx
    det = flat * flat + vxx + vyy + 1.0

    horizontal = _span(wp.vec3(a[0], b[0], c[0]), wp.vec3(a[2], b[2], c[2])) * view.focal
    vertical = _span(wp.vec3(a[1], b[1], c[1]), wp.vec3(a[2], b[2], c[2])) * view.focal
    # Pixels the disc touches or has a weight in: middles within half a pixel, or within the wider ellipse.
    across = 0.5 + wp.max(0.5, wp.sqrt(vxx + 1.0) - wp.sqrt(vxx))
    down = 0.5 + wp.max(0.5, wp.sqrt(vyy + 1.0) - wp.sqrt(vyy))
    left = view.center[0] + horizontal[0] - across
    right = view.center[0] + horizontal[1] + across - 1.0
    top = view.center[1] - vertical[1] - down
    bottom = view.center[1] - vertical[0] + down - 1.0
    rect = pixel_rect(grid, left, top, right, bottom)
    if not (rect[0] < rect[2] and rect[1] < rect[3]):
        return

    scale = c[2] / (wp.dot(c, wp.cross(a, b)) * view.focal)
    to_u = scale * wp.cross(b, c)
    to_v = scale * wp.cross(c, a)
    to_w = scale * wp.cross(a, b)
    disc = ScreenDisc()
    disc.x = view.center[0] + view.focal * c[0] / c[2]
    disc.y = view.center[1] - view.focal * c[1] / c[2]
    disc.ux = to_u[0]
    disc.uy = -to_u[1]
    disc.vx = to_v[0]
    disc.vy = -to_v[1]
    disc.wx = to_w[0]
    disc.wy = -to_w[1]
    disc.fx = wp.sqrt((vyy + 1.0) / det)
    disc.fy = -vxy / (det * disc.fx)
    disc.gy = 1.0 / wp.sqrt(vyy + 1.0)
    disc.nearness = 1.0 / c[2]
    # Neighbours differ in depth by no more than a disc does, or is narrow, or a pixel is wide.
    narrow = grow * grow * area / radius
    deep = wp.max(wp.sqrt(a[2] * a[2] + b[2] * b[2]), narrow)
    thick = wp.max(deep, c[2] * view.per_focal)
    disc.slack = thick / (c[2] * c[2])
    if lies_under(marks[i]):
        disc.nearness = 1.0 / (c[2] + 2.0 * thick)
    disc.normal = normal / area
    stuff = table[row_of(marks[i])]
    albedo = (1.0 + stuff.grain * speck(marks[i])) * linear_from_srgb(colors[i])
    body = body_light(studio, stuff, ground, tops, albedo, positions[i], disc.normal, view.eye)
    disc.light = wp.vec3(body[0], body[1], body[2])
    disc.openness = body[3]
    disc.shine = stuff.shine
    disc.blur = stuff.blur
    if wp.length_sq(body) < 1.0e6:
        discs[i] = disc
        rects[i] = rect
        counts[i] = tiles_touched(rect)
