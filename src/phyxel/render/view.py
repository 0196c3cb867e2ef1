# mypy: disable-error-code="valid-type,no-untyped-def,no-untyped-call"
"""Cameras and colors inside kernels."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
import warp as wp

from phyxel.device import KERNEL_OPTIONS
from phyxel.render.camera import Camera

wp.set_module_options(KERNEL_OPTIONS)


@wp.struct
class View:
    """A camera as the kernels want it; `focal` and the center of the picture in pixels."""

    eye: wp.vec3
    right: wp.vec3
    up: wp.vec3
    forward: wp.vec3
    focal: float
    per_focal: float
    center: wp.vec2


@lru_cache(maxsize=8)
def make_view(camera: Camera) -> Any:
    view = View()
    view.eye = wp.vec3(*np.asarray(camera.eye, float))
    right, up, forward = camera.axes
    view.right, view.up, view.forward = wp.vec3(*right), wp.vec3(*up), wp.vec3(*forward)
    view.focal, view.per_focal = camera.focal, 1.0 / camera.focal
    view.center = wp.vec2(camera.width / 2, camera.height / 2)
    return view


@wp.func
def ray_through(view: View, x: int, y: int) -> wp.vec3:
    """Direction through the middle of a pixel, 1 long along `forward`: eye + depth * ray is the point seen."""
    right = (float(x) + 0.5 - view.center[0]) * view.per_focal
    up = (view.center[1] - float(y) - 0.5) * view.per_focal
    return view.forward + right * view.right + up * view.up


@wp.func
def linear_from_srgb(c: wp.vec3) -> wp.vec3:
    """Light for a display value, each in 0..1; a cubic within 0.2 % of the standard's curve."""
    square = wp.cw_mul(c, c)
    return 0.012522878 * c + 0.682171111 * square + 0.305306011 * wp.cw_mul(square, c)
