# mypy: disable-error-code="valid-type,no-untyped-def,no-untyped-call"
"""Where a picture is taken from, on the host and in kernels."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
import warp as wp
from numpy.typing import NDArray

from phyxel.device import KERNEL_OPTIONS
from phyxel.errors import PhyxelError

wp.set_module_options(KERNEL_OPTIONS)

Vector = Sequence[float] | NDArray[np.floating]


@dataclass(frozen=True)
class Camera:
    """A pinhole camera at `eye` [m] that looks at `target` [m]."""

    eye: Vector
    target: Vector
    up: Vector = (0.0, 1.0, 0.0)
    fov: float = 35.0
    """full vertical angle of view [degrees]"""
    width: int = 1280
    """[pixels]"""
    height: int = 720
    """[pixels]"""

    def __post_init__(self) -> None:
        if not 0.1 <= self.fov <= 170.0:
            raise PhyxelError(f"camera: fov={self.fov}; give an angle between 0.1 and 170 degrees")
        if self.width < 1 or self.height < 1:
            raise PhyxelError(f"camera: a picture of {self.width} x {self.height} pixels has no pixels")
        for name in ("eye", "target", "up"):
            vector = np.asarray(getattr(self, name), float)
            if vector.shape != (3,) or not np.isfinite(vector).all():
                raise PhyxelError(f"camera: {name}={getattr(self, name)}; give three finite numbers")
            object.__setattr__(self, name, tuple(vector.tolist()))  # so that cameras can be compared
        if self.eye == self.target:
            raise PhyxelError(f"camera: eye and target are the same point {self.eye}; move one of them")

    @property
    def focal(self) -> float:
        """Distance of the picture plane from the eye, in pixels."""
        return 0.5 * self.height / math.tan(math.radians(self.fov) / 2)

    @cached_property
    def axes(self) -> NDArray[np.float64]:
        """Unit vectors right, up and forward of the picture as rows, (3, 3)."""
        forward = np.asarray(self.target, float) - np.asarray(self.eye, float)
        forward /= np.linalg.norm(forward)
        right = np.cross(forward, np.asarray(self.up, float))
        if np.linalg.norm(right) < 1e-9:  # looking along `up`: any other direction will do
            right = np.cross(forward, np.roll(np.asarray(self.up, float), 1))
        right /= np.linalg.norm(right)
        return np.stack([right, np.cross(right, forward), forward])

    @classmethod
    def framing(
        cls,
        lower: Vector,
        upper: Vector,
        direction: Vector = (0.6, 0.35, 1.0),
        width: int = 1280,
        height: int = 720,
        fov: float = 35.0,
        margin: float = 1.15,
    ) -> Camera:
        """The nearest camera in `direction` from the box `lower`..`upper` [m] that sees all of it.

        `margin` is the free space about the box: 1.15 leaves 15 %.
        """
        low, high = np.asarray(lower, float), np.asarray(upper, float)
        center = 0.5 * (low + high)
        view = cls(center + np.asarray(direction, float), center, fov=fov, width=width, height=height)
        corners = np.array([[x, y, z] for x in (0, 1) for y in (0, 1) for z in (0, 1)]) * (high - low) + low
        right, up, forward = ((corners - center) @ view.axes.T).T
        reach = np.maximum(np.abs(right) / (0.5 * width), np.abs(up) / (0.5 * height)) * view.focal * margin
        distance = max(float(np.max(reach - forward)), 1e-6)
        return cls(center - distance * view.axes[2], center, fov=fov, width=width, height=height)

    def scaled(self, factor: int) -> Camera:
        """The same view with `factor` times as many pixels each way."""
        if factor == 1:
            return self
        return replace(self, width=self.width * factor, height=self.height * factor)


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
