# mypy: disable-error-code="valid-type,no-untyped-def,no-untyped-call"
"""The light of the studio on the stuff of the object, in linear light."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
import warp as wp

from phyxel.device import KERNEL_OPTIONS
from phyxel.render.look import Light, Look
from phyxel.render.shadow import GroundMap, shadow_place

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
    dense: float
    """one over how deep light gets into the stuff [1/m]"""
    crisp: float
    """one over the way in which shadows on the object become dark [1/m]"""
    floor: float
    """height the object stands on [m]"""


@lru_cache(maxsize=8)
def light_direction(light: Light) -> np.ndarray:
    """Unit vector toward the light, lifted to at least 15 degrees above the ground: shadows must end somewhere."""
    direction = np.asarray(light.direction, float)
    direction = direction / np.linalg.norm(direction)
    direction[1] = max(direction[1], 0.26)
    return direction / np.linalg.norm(direction)


def make_studio(light: Light, look: Look, size: float, floor: float) -> Any:
    """For an object `size` [m] across that stands on y = floor [m]."""
    studio = Studio()
    studio.to_light = wp.vec3(*light_direction(light))
    studio.key, studio.sky, studio.bounce = wp.vec3(*light.key), wp.vec3(*light.sky), wp.vec3(*light.bounce)
    studio.wrap, studio.specular, studio.gloss, studio.rim = look.wrap, look.specular, look.gloss, look.rim
    studio.translucency = look.translucency
    studio.dense = 1.0 / (look.depth * size)
    studio.crisp = 1.0 / (0.03 * size)
    studio.floor = floor
    return studio


@wp.func
def _power8(x: float) -> float:
    xx = x * x
    xxxx = xx * xx
    return xxxx * xxxx


@wp.func
def _fade(x: float) -> float:
    """Nearly exp(-x) for x >= 0, at a tenth of its price."""
    return _power8(wp.max(1.0 - 0.125 * x, 0.0))


@wp.func
def _spline_weights(f: float) -> wp.vec4:
    """Weights of the cubic B-spline for four neighbours; f is the way from the second to the third, 0..1."""
    g = 1.0 - f
    second = 4.0 + 3.0 * f * f * (f - 2.0)
    third = 4.0 + 3.0 * g * g * (g - 2.0)
    return wp.vec4(g * g * g, second, third, f * f * f) / 6.0


@wp.func
def _behind_skin(ground: GroundMap, tops: wp.array(dtype=float), crisp: float, p: wp.vec3) -> wp.vec2:
    """How far p lies behind the skin that faces the light [m], and how open it is to the light, 0..1.

    Means over 4 x 4 texels, every other one about its place, with weights of a cubic spline: a soft shadow's edge,
    where single texels would draw stairs."""
    place = shadow_place(ground, p)
    x = wp.clamp(place[0] - 0.5, 2.0, float(ground.texels - 6))
    z = wp.clamp(place[1] - 0.5, 2.0, float(ground.texels - 6))
    across = _spline_weights(0.5 * x - wp.floor(0.5 * x))
    down = _spline_weights(0.5 * z - wp.floor(0.5 * z))
    t = int(2 * ((int(0.5 * z) - 1) * ground.texels + int(0.5 * x) - 1))
    along = wp.dot(p, ground.to_light) + 4.0 * ground.texel
    mean = wp.vec2(0.0, 0.0)
    for j in range(4):
        for i in range(4):
            depth = wp.max(tops[t + 2 * i] - along, 0.0)
            mean += down[j] * across[i] * wp.vec2(depth, _fade(depth * crisp))
        t += 2 * ground.texels
    return mean


@wp.func
def body_light(
    studio: Studio,
    ground: GroundMap,
    tops: wp.array(dtype=float),
    albedo: wp.vec3,
    p: wp.vec3,
    n: wp.vec3,
    eye: wp.vec3,
) -> wp.vec4:
    """Light from the body of the stuff at p with normal n: scattered at its skin and from within. It varies slowly,
    so that once per surfel will do. The fourth component is how far the place is open to the light, 0..1."""
    facing = wp.clamp(wp.dot(n, wp.normalize(eye - p)), 0.0, 1.0)
    toward = wp.dot(n, studio.to_light)
    behind = _behind_skin(ground, tops, studio.crisp, p)
    buried = behind[0]
    openness = behind[1]

    upward = 0.5 + 0.5 * n[1]
    crowded = _fade(wp.max(p[1] - studio.floor, 0.0) * 0.3 * studio.crisp) * (1.0 - 0.6 * upward)
    # Soft light falls off toward the outline, as if some came from beside the camera: it gives dark sides form.
    soft = (0.75 + 0.35 * facing) * (1.0 - 0.75 * crowded)
    ambient = soft * (upward * studio.sky + (1.0 - upward) * studio.bounce)
    direct = wp.max(toward * (1.0 - studio.wrap) + studio.wrap, 0.0) * openness
    skin = wp.cw_mul(albedo, ambient + direct * studio.key)

    # Light that entered elsewhere: what is absorbed grows with the way it went, so thick parts turn deep in hue.
    way = 1.2 * (buried * studio.dense + facing)
    kept = wp.vec3(_fade(way * (1.1 - albedo[0])), _fade(way * (1.1 - albedo[1])), _fade(way * (1.1 - albedo[2])))
    stained = wp.cw_div(albedo, albedo + wp.vec3(0.12, 0.12, 0.12))
    entered = (0.55 + 0.25 * toward + 0.2 * upward) * (ambient + 0.6 * studio.key)
    within = 0.35 * skin + 0.85 * wp.cw_mul(wp.cw_mul(kept, stained), entered)
    body = skin + studio.translucency * (within - skin)
    return wp.vec4(body[0], body[1], body[2], openness * (1.0 - crowded))
