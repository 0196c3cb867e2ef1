# mypy: disable-error-code="valid-type,no-untyped-def,no-untyped-call"
"""The light of the studio on the stuff of the object, in linear light."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import warp as wp

from phyxel.device import KERNEL_OPTIONS
from phyxel.render.cast import LookArrays
from phyxel.render.shadow import GroundMap, shadow_place

wp.set_module_options(KERNEL_OPTIONS)

Color = tuple[float, float, float]


@dataclass(frozen=True)
class Light:
    """A large soft box from one side, a strip light from the other side behind the object, and soft light from above
    and below. Colors are linear, 1 is white."""

    direction: Color = (-0.55, 1.0, 0.6)
    """toward the soft box; any length, must point upward"""
    key: Color = (1.0, 0.97, 0.92)
    sky: Color = (0.50, 0.53, 0.58)
    bounce: Color = (0.30, 0.28, 0.26)


@wp.struct
class Studio:
    """Light as the kernels want it; lengths in metres."""

    to_light: wp.vec3
    side: wp.vec3
    """along the soft box's horizontal edge, and its other one"""
    top: wp.vec3
    behind: wp.vec3
    """toward the strip light"""
    key: wp.vec3
    sky: wp.vec3
    bounce: wp.vec3
    per_size: float
    """one over the size of the thing that is drawn [1/m]"""
    crisp: float
    """one over the way in which shadows on the object become dark [1/m]"""
    floor: float
    """height the object stands on [m]; far below it if it does not"""
    near: float
    """how far around a place things take its soft light away [m]"""


@lru_cache(maxsize=8)
def light_direction(light: Light) -> np.ndarray:
    """Unit vector toward the light, lifted to at least 15 degrees above the ground: shadows must end somewhere."""
    direction = np.asarray(light.direction, float)
    direction = direction / np.linalg.norm(direction)
    direction[1] = max(direction[1], 0.26)
    return direction / np.linalg.norm(direction)


def make_studio(light: Light, size: float, floor: float) -> Any:
    """For a thing that is `size` [m] across and stands on y = floor [m]."""
    studio = Studio()
    to_light = light_direction(light)
    side = np.cross((0.0, 1.0, 0.0), to_light)
    side = side / np.linalg.norm(side) if np.linalg.norm(side) > 1e-6 else np.array([1.0, 0.0, 0.0])
    behind = np.array([-to_light[0], 0.35, -to_light[2]])
    studio.to_light, studio.side, studio.top = wp.vec3(*to_light), wp.vec3(*side), wp.vec3(*np.cross(to_light, side))
    studio.behind = wp.vec3(*(behind / np.linalg.norm(behind)))
    studio.key, studio.sky, studio.bounce = wp.vec3(*light.key), wp.vec3(*light.sky), wp.vec3(*light.bounce)
    studio.per_size = 1.0 / size
    studio.crisp = 1.0 / (0.03 * size)
    studio.floor = floor
    studio.near = 0.15 * size
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

    Means over 4 x 4 texels, every fourth one about its place, with weights of a cubic spline: a soft shadow's edge,
    where single texels would draw stairs."""
    place = shadow_place(ground, p)
    x = wp.clamp(place[0] - 0.5, 4.0, float(ground.texels - 13)) * 0.25
    z = wp.clamp(place[1] - 0.5, 4.0, float(ground.texels - 13)) * 0.25
    across = _spline_weights(x - wp.floor(x))
    down = _spline_weights(z - wp.floor(z))
    t = int(4 * ((int(z) - 1) * ground.texels + int(x) - 1))
    along = wp.dot(p, ground.to_light) + 8.0 * ground.texel  # slopes must not shade themselves
    mean = wp.vec2(0.0, 0.0)
    for j in range(4):
        for i in range(4):
            depth = wp.max(tops[t + 4 * i] - along, 0.0)
            mean += down[j] * across[i] * wp.vec2(depth, _fade(depth * crisp))
        t += 4 * ground.texels
    return mean


@wp.func
def scattered(stuff: LookArrays, toward: float, facing: float, light_eye: float) -> float:
    """Part of the key light scattered at the skin (physics 14.2): Oren and Nayar's law, with light that creeps past the
    terminator.

    toward, facing: cosines of the normal with the ways to the light and the eye; light_eye: of these with each other.
    """
    wrapped = wp.max(toward * (1.0 - stuff.wrap) + stuff.wrap, 0.0)
    # The sine of one angle times the tangent of the smaller, times the cosine between the ways along the surface.
    beside = wp.max(light_eye - toward * facing, 0.0) / wp.max(wp.max(toward, facing), 1.0e-3)
    return wrapped * (stuff.even + stuff.back * beside)


@wp.func
def body_light(
    studio: Studio,
    stuff: LookArrays,
    ground: GroundMap,
    tops: wp.array(dtype=float),
    albedo: wp.vec3,
    p: wp.vec3,
    n: wp.vec3,
    eye: wp.vec3,
) -> wp.vec4:
    """Light from the body of the stuff at p with normal n (physics 14.2): scattered at its skin and from within. It
    varies slowly, so that once per surfel will do. The fourth component is how open the place is to light, 0..1."""
    to_eye = wp.normalize(eye - p)
    facing = wp.clamp(wp.dot(n, to_eye), 0.0, 1.0)
    toward = wp.dot(n, studio.to_light)
    behind = _behind_skin(ground, tops, studio.crisp, p)
    buried = behind[0]
    openness = behind[1]

    # Of the two halves of an evenly lit surrounding a place sees (1 ± n_y) / 2.
    upward = 0.5 + 0.5 * n[1]
    crowded = _fade(wp.max(p[1] - studio.floor, 0.0) * 0.3 * studio.crisp) * (1.0 - 0.6 * upward)
    ambient = (1.0 - 0.75 * crowded) * (upward * studio.sky + (1.0 - upward) * studio.bounce)
    direct = scattered(stuff, toward, facing, wp.dot(to_eye, studio.to_light)) * openness
    skin = wp.cw_mul(albedo, ambient + direct * studio.key)

    # Light that entered elsewhere: the longer its way, the more of it is absorbed, so thick parts turn deep in hue.
    way = 1.2 * (buried * stuff.shallow * studio.per_size + facing)
    kept = wp.vec3(_fade(way * (1.1 - albedo[0])), _fade(way * (1.1 - albedo[1])), _fade(way * (1.1 - albedo[2])))
    stained = wp.cw_div(albedo, albedo + wp.vec3(0.12, 0.12, 0.12))
    entered = (0.55 + 0.25 * toward + 0.2 * upward) * (ambient + 0.6 * studio.key)
    within = 0.35 * skin + 0.85 * wp.cw_mul(wp.cw_mul(kept, stained), entered)
    body = skin + stuff.translucency * (within - skin)
    return wp.vec4(body[0], body[1], body[2], openness * (1.0 - crowded))
