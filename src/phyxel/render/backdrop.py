# mypy: disable-error-code="valid-type,no-untyped-def,no-untyped-call"
"""What is behind the object: a background, and a ground that takes shadows."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import warp as wp

from phyxel.device import KERNEL_OPTIONS
from phyxel.errors import PhyxelError
from phyxel.render.camera import Camera, View
from phyxel.render.shade import Color
from phyxel.render.shadow import GroundMap

wp.set_module_options(KERNEL_OPTIONS)

Background = str | Color | None
NO_GROUND = -1.0e30
"""Height of the ground where there is none [m]: far below anything that is drawn."""
ROOMS: dict[str, tuple[Color, Color, Color]] = {
    "studio": ((0.74, 0.78, 0.83), (0.96, 0.96, 0.955), (0.955, 0.95, 0.945)),
    "dark": ((0.155, 0.165, 0.19), (0.075, 0.08, 0.095), (0.115, 0.12, 0.135)),
}
"""Display colors of the background at the top and at the bottom, and of the floor."""


@wp.struct
class Backdrop:
    """What is behind the object, colors linear. `opacity` 0 leaves only the shadow, as black of some alpha."""

    top: wp.vec3
    gradient: wp.vec3
    """change of color from one row to the next below"""
    floor: wp.vec3
    opacity: float
    dither: int
    """1: hide the steps of gradients"""
    level: float
    """height of the ground [m]; far below everything if there is none"""
    center: wp.vec3
    spread: float
    """the ground fades into the background over some times this [m]"""


def linear(color: Color) -> wp.vec3:
    """Light for a display color in 0..1 (IEC 61966-2-1)."""
    c = np.clip(np.asarray(color, float).reshape(3), 0, 1)
    return wp.vec3(*np.where(c <= 0.04045, c / 12.92, ((c + 0.055) / 1.055) ** 2.4))


def make_backdrop(background: Background, ground: float | None, camera: Camera) -> Any:
    """Depends on the camera alone, not on what moves before it: a still backdrop stays still."""
    if isinstance(background, str) and background not in ROOMS:
        raise PhyxelError(f'background "{background}": give "studio", "dark", a color (r, g, b) in 0..1, or None')
    backdrop = Backdrop()
    backdrop.dither = int(isinstance(background, str))
    backdrop.opacity = 0.0 if background is None else 1.0
    top, bottom, floor = ROOMS[background] if isinstance(background, str) else [background or (0.0, 0.0, 0.0)] * 3
    backdrop.top, backdrop.floor = linear(top), linear(floor)
    backdrop.gradient = (linear(bottom) - backdrop.top) / float(camera.height)
    backdrop.level = NO_GROUND if ground is None else float(ground)
    backdrop.center = wp.vec3(*np.asarray(camera.target, float))
    backdrop.spread = 1.2 * float(np.linalg.norm(np.subtract(camera.target, camera.eye)))
    return backdrop


def shadow_on_screen(camera: Camera, place: Any) -> wp.vec4i:
    """Pixels (left, top, right, bottom) where the shadows of a map can be seen: all if they come close to the eye."""
    corners = [(x, place.level, z) for x in (place.lower[0], place.upper[0]) for z in (place.lower[1], place.upper[1])]
    right, up, forward = camera.axes @ (np.array(corners) - np.asarray(camera.eye, float)).T
    if forward.min() < 1e-3 * abs(forward).max():
        return wp.vec4i(0, 0, camera.width, camera.height)
    x = camera.width / 2 + camera.focal * right / forward
    y = camera.height / 2 - camera.focal * up / forward
    left, end_x = (min(max(float(edge), 0.0), camera.width) for edge in (x.min(), x.max()))
    top, end_y = (min(max(float(edge), 0.0), camera.height) for edge in (y.min(), y.max()))
    return wp.vec4i(int(left), int(top), math.ceil(end_x), math.ceil(end_y))


@wp.func
def ground_hit(view: View, backdrop: Backdrop, ray: wp.vec3) -> wp.vec3:
    """Where a ray meets the ground: x, z [m], and 1, or 0 if it does not."""
    drop = view.eye[1] - backdrop.level
    if not (ray[1] < 0.0 and drop > 0.0 and drop < 1.0e20):
        return wp.vec3(0.0, 0.0, 0.0)
    depth = -drop / ray[1]
    return wp.vec3(view.eye[0] + depth * ray[0], view.eye[2] + depth * ray[2], 1.0)


@wp.func
def ground_light(ground: GroundMap, light: wp.array(dtype=wp.vec3), hit: wp.vec3) -> wp.vec3:
    """Part of the light that reaches a place on the ground, by color: bilinear in the map, all of it outside."""
    x = (hit[0] - ground.corner[0]) * ground.per_metre - 0.5
    z = (hit[1] - ground.corner[1]) * ground.per_metre - 0.5
    limit = float(ground.texels - 1)
    if not (hit[2] > 0.0 and x > 0.0 and z > 0.0 and x < limit and z < limit):
        return wp.vec3(1.0, 1.0, 1.0)
    column = int(x)
    row = int(z)
    t = row * ground.texels + column
    fx = x - float(column)
    upper = light[t] + fx * (light[t + 1] - light[t])
    t += ground.texels
    lower = light[t] + fx * (light[t + 1] - light[t])
    return upper + (z - float(row)) * (lower - upper)


@wp.func
def backdrop_color(backdrop: Backdrop, y: int, hit: wp.vec3, light: wp.vec3) -> wp.vec4:
    """Linear color of a pixel of row y without the object, and its opacity. The ground fades with distance."""
    color = backdrop.top + float(y) * backdrop.gradient
    dx = hit[0] - backdrop.center[0]
    dz = hit[1] - backdrop.center[2]
    ss = backdrop.spread * backdrop.spread
    presence = hit[2] * ss / (ss + dx * dx + dz * dz)
    color = color + presence * (wp.cw_mul(backdrop.floor, light) - color)
    alpha = wp.max(backdrop.opacity, presence * (1.0 - wp.max(light)))
    return wp.vec4(color[0], color[1], color[2], alpha)
