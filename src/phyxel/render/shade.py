# mypy: disable-error-code="valid-type,no-untyped-def,no-untyped-call"
"""Lighting of the object, pixel by pixel, in linear light."""

from __future__ import annotations

from typing import Any

import numpy as np
import warp as wp

from phyxel.device import KERNEL_OPTIONS, launch
from phyxel.render.discs import DiscLayer, View, ray_through
from phyxel.render.look import Light, Look
from phyxel.render.shadow import GroundMap, ShadowMap, shadow_place
from phyxel.render.tiles import Grid, block_corner

wp.set_module_options(KERNEL_OPTIONS)


@wp.struct
class Studio:
    """Light and look as the kernels want them; lengths in metres."""

    to_light: wp.vec3
    key: wp.vec3
    sky: wp.vec3
    bounce: wp.vec3
    wrap: float
    specular: float
    gloss: float
    rim: float
    translucency: float
    depth: float
    soft: float
    floor: float
    """height the object stands on"""
    cut: float
    """height of the ground that hides what is below it"""


def light_direction(light: Light) -> np.ndarray:
    """Unit vector toward the light, lifted to at least 15 degrees above the ground: shadows must end somewhere."""
    direction = np.asarray(light.direction, float)
    direction = direction / np.linalg.norm(direction)
    direction[1] = max(direction[1], 0.26)
    return direction / np.linalg.norm(direction)


def make_studio(light: Light, look: Look, size: float, floor: float, cut: float) -> Any:
    """For an object `size` [m] across that stands on y = floor [m]; what is below y = cut [m] is hidden."""
    studio = Studio()
    studio.to_light = wp.vec3(*light_direction(light))
    studio.key, studio.sky, studio.bounce = wp.vec3(*light.key), wp.vec3(*light.sky), wp.vec3(*light.bounce)
    studio.wrap, studio.specular, studio.gloss, studio.rim = look.wrap, look.specular, look.gloss, look.rim
    studio.translucency = look.translucency
    studio.depth = look.depth * size
    studio.soft = 0.03 * size
    studio.floor, studio.cut = floor, cut
    return studio


@wp.func
def _fade(x: float) -> float:
    """Nearly exp(-x) for x >= 0, at a tenth of its price."""
    return 1.0 / (1.0 + x * (1.0 + x * (0.5 + 0.2 * x)))


@wp.func
def _buried(ground: GroundMap, tops: wp.array(dtype=float), p: wp.vec3) -> float:
    """How far p lies behind the skin that faces the light [m], from the four texels about it."""
    place = shadow_place(ground, p)
    x = wp.clamp(place[0] - 0.5, 0.0, float(ground.texels - 2))
    z = wp.clamp(place[1] - 0.5, 0.0, float(ground.texels - 2))
    column = int(x)
    row = int(z)
    fx = x - float(column)
    fz = z - float(row)
    t = row * ground.texels + column
    along = wp.dot(p, ground.to_light) + 2.0 * ground.texel
    upper = (1.0 - fx) * wp.max(tops[t] - along, 0.0) + fx * wp.max(tops[t + 1] - along, 0.0)
    t += ground.texels
    lower = (1.0 - fx) * wp.max(tops[t] - along, 0.0) + fx * wp.max(tops[t + 1] - along, 0.0)
    return (1.0 - fz) * upper + fz * lower


@wp.func
def _shoulder(c: wp.vec3) -> wp.vec3:
    """Film-like rolling off of what is too bright: straight up to 0.6, then bending toward 1."""
    over = wp.max(c - wp.vec3(0.6, 0.6, 0.6), wp.vec3(0.0, 0.0, 0.0))
    bent = wp.cw_div(over, wp.vec3(1.0, 1.0, 1.0) + 2.5 * over)
    return wp.min(c, wp.vec3(0.6, 0.6, 0.6)) + bent


@wp.func
def lit_color(studio: Studio, albedo: wp.vec3, n: wp.vec3, to_eye: wp.vec3, height: float, buried: float) -> wp.vec3:
    """Light sent to the eye by a surface with normal n, `height` [m] above the floor, `buried` [m] behind lit skin."""
    facing = wp.clamp(wp.dot(n, to_eye), 0.0, 1.0)
    toward = wp.dot(n, studio.to_light)
    open_sky = _fade(buried / studio.soft)

    upward = 0.5 + 0.5 * n[1]
    crowded = _fade(wp.max(height, 0.0) / (3.0 * studio.soft)) * (1.0 - 0.6 * upward)
    ambient = (upward * studio.sky + (1.0 - upward) * studio.bounce) * (1.0 - 0.75 * crowded)
    direct = wp.max((toward + studio.wrap) / (1.0 + studio.wrap), 0.0) * open_sky
    skin = wp.cw_mul(albedo, ambient + direct * studio.key)

    # Light that entered elsewhere: what is absorbed grows with the way it went, so thick parts turn deep in hue.
    way = 1.3 * (buried / studio.depth + 0.9 * facing)
    kept = wp.vec3(_fade(way * (1.15 - albedo[0])), _fade(way * (1.15 - albedo[1])), _fade(way * (1.15 - albedo[2])))
    entered = (0.55 + 0.25 * toward + 0.2 * upward) * (ambient + 0.5 * studio.key)
    inner = 0.45 * skin + 0.62 * wp.cw_mul(kept, entered)
    body = skin + studio.translucency * (inner - skin)

    # (1 - (1 - c) gloss / 8)^8 is nearly Blinn and Phong's c^gloss.
    half = wp.normalize(studio.to_light + to_eye)
    lobe = wp.max(1.0 - (1.0 - wp.dot(n, half)) * studio.gloss * 0.125, 0.0)
    lobe = lobe * lobe
    lobe = lobe * lobe
    shine = studio.specular * lobe * lobe * open_sky
    graze = 1.0 - facing
    fresnel = 0.04 + 0.96 * graze * graze * graze * graze * graze
    mirrored = 2.0 * facing * n[1] - to_eye[1]
    softbox = wp.smoothstep(0.2, 0.9, mirrored)
    seen = (0.5 + 0.5 * mirrored) * studio.sky + softbox * studio.key
    return _shoulder(body + shine * studio.key + fresnel * studio.rim * (1.0 - crowded) * seen)


@wp.func
def _above_ground(view: View, cut: float, ray: wp.vec3, nearness: float) -> float:
    """1 if the eye sees a point before it sees the ground, 0 if after, with a soft step about a pixel wide."""
    drop = view.eye[1] - cut
    if ray[1] > 0.0 or drop < 0.0:
        return 1.0
    return wp.clamp(0.5 + (nearness * drop + ray[1]) * view.focal, 0.0, 1.0)


@wp.kernel
def shade_pixels(
    first: int,
    grid: Grid,
    view: View,
    studio: Studio,
    ground: GroundMap,
    tops: wp.array(dtype=float),
    nearness: wp.array(dtype=float),
    coverage: wp.array(dtype=float),
    sums: wp.array(dtype=float),
    colors: wp.array(dtype=wp.vec4),
):
    """Light sent to the eye by what is seen in the pixels of one block."""
    i = first + wp.tid()
    corner = block_corner(grid, i)
    end_x = wp.min(corner[0] + grid.block, grid.width)
    end_y = wp.min(corner[1] + grid.block, grid.height)
    plane = grid.pitch * grid.height
    y = int(corner[1])
    while y < end_y:
        x = int(corner[0])
        while x < end_x:
            p = y * grid.pitch + x
            if coverage[p] > 0.0:
                ray = ray_through(view, x, y)
                coverage[p] = coverage[p] * _above_ground(view, studio.cut, ray, nearness[p])
                point = view.eye + ray / nearness[p]
                normal = wp.vec3(sums[plane + p], sums[2 * plane + p], sums[3 * plane + p])
                albedo = wp.vec3(sums[4 * plane + p], sums[5 * plane + p], sums[6 * plane + p]) / sums[p]
                buried = _buried(ground, tops, point)
                height = point[1] - studio.floor
                light = lit_color(studio, albedo, wp.normalize(normal), -wp.normalize(ray), height, buried)
                colors[p] = wp.vec4(light[0], light[1], light[2], 1.0)
            x += 1
        y += 1


def shade_layer(
    layer: DiscLayer, view: Any, studio: Any, ground: Any, shadows: ShadowMap, colors: wp.array
) -> None:
    """Write the linear light of all covered pixels of a layer to `colors` (the fourth component is 1)."""
    inputs = [layer.grid, view, studio, ground, shadows.tops]
    pixels = [layer.nearness, layer.coverage, layer.sums, colors]
    launch(shade_pixels, layer.grid.blocks, [*inputs, *pixels], layer.device)
