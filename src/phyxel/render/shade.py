# mypy: disable-error-code="valid-type,no-untyped-def,no-untyped-call"
"""The light of the studio on the stuff of the object, in linear light."""

from __future__ import annotations

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
def _behind_skin(ground: GroundMap, tops: wp.array(dtype=float), crisp: float, p: wp.vec3) -> wp.vec2:
    """How far p lies behind the skin that faces the light [m], and how open it is to the light, 0..1.

    Means over 4 x 4 texels about its place with smooth weights: single texels would draw stairs into shadows."""
    place = shadow_place(ground, p)
    x = wp.clamp(place[0] - 0.5, 1.0, float(ground.texels - 3))
    z = wp.clamp(place[1] - 0.5, 1.0, float(ground.texels - 3))
    column = int(x)
    row = int(z)
    along = wp.dot(p, ground.to_light) + 2.5 * ground.texel
    total = wp.vec2(0.0, 0.0)
    weights = float(0.0)
    k = int(0)
    while k < 16:
        i = column - 1 + (k & 3)
        j = row - 1 + (k >> 2)
        dx = x - float(i)
        dz = z - float(j)
        weight = wp.max(1.0 - 0.25 * dx * dx, 0.0) * wp.max(1.0 - 0.25 * dz * dz, 0.0)
        depth = wp.max(tops[j * ground.texels + i] - along, 0.0)
        total += weight * wp.vec2(depth, _fade(depth * crisp))
        weights += weight
        k += 1
    return total / weights


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
    ambient = (upward * studio.sky + (1.0 - upward) * studio.bounce) * (1.0 - 0.75 * crowded)
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


@wp.func
def gloss_light(studio: Studio, n: wp.vec3, to_eye: wp.vec3, openness: float) -> wp.vec3:
    """Light mirrored by the surface: the key light's highlight, and the studio with its ceiling light at grazing angles."""
    # (1 - (1 - c) gloss / 8)^8 is nearly Blinn and Phong's c^gloss.
    half = wp.normalize(studio.to_light + to_eye)
    lobe = _power8(wp.max(1.0 - (1.0 - wp.dot(n, half)) * studio.gloss * 0.125, 0.0))
    facing = wp.clamp(wp.dot(n, to_eye), 0.0, 1.0)
    graze = 1.0 - facing
    fresnel = 0.04 + 0.96 * graze * graze * graze * graze * graze
    mirrored = 2.0 * facing * n[1] - to_eye[1]
    softbox = wp.clamp((mirrored - 0.2) * 1.43, 0.0, 1.0)
    softbox = softbox * softbox * (3.0 - 2.0 * softbox)
    seen = (0.5 + 0.5 * mirrored) * studio.sky + softbox * studio.key
    return openness * studio.specular * lobe * studio.key + fresnel * studio.rim * (0.4 + 0.6 * openness) * seen
