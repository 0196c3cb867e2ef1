"""A world on stage: the camera that sees all of it, and a picture of it as it is now."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import warp as wp
from numpy.typing import NDArray

from phyxel.contact.colliders import Collider, Ground
from phyxel.contact.skin import Skin, skin_of
from phyxel.look import LOOKS
from phyxel.points.frames import tangents
from phyxel.render.camera import Camera
from phyxel.render.splat import Renderer
from phyxel.world import World

if TYPE_CHECKING:
    from phyxel.scene_bodies import CameraPart, OutputPart


COLLIDER_COLOR = (0.52, 0.57, 0.64)
LARGE = 2.0
"""Reach of a collider over the size of the bodies, above which the camera need not see all of it."""


class Stage:
    """Draws the bodies of a world, always from the same place."""

    def __init__(self, camera: Camera, background: str | tuple[float, float, float] | None, device: str | None) -> None:
        self.camera, self._background = camera, background
        self._renderer = Renderer(device)
        self._skins: dict[Collider, Skin] = {}

    @staticmethod
    def around(world: World, camera: CameraPart, output: OutputPart) -> Stage:
        """A camera as the scene asks for, else one that sees the bodies and the ground under them."""
        lower, upper = visible_box(world)
        framed = Camera.framing(lower, upper, camera.direction, output.width, output.height, camera.fov)
        chosen = Camera(
            eye=camera.eye or framed.eye,
            target=camera.target or framed.target,
            fov=camera.fov,
            width=output.width,
            height=output.height,
        )
        return Stage(chosen, output.background, world.device.alias)

    def draw(self, world: World, supersample: int = 1) -> NDArray[np.uint8]:
        """A picture of the world as it is now, (height, width, 4) bytes."""
        surfaces = [body.surface for body in world.bodies]
        base = surfaces[0].origin  # single precision is enough about a body, not about the world
        heights = [one.height for one in world.colliders if isinstance(one, Ground)]
        ground = max(heights) - base[1] if heights else None
        drawn: list[tuple[Any, ...]] = [(one.position, one.axis_a, one.axis_b, one.color) for one in surfaces]
        shifts = [surface.origin - base for surface in surfaces]
        for collider in world.colliders:
            if isinstance(collider, Collider):
                drawn.append(self._seen(collider, world.time))
                shifts.append(collider.pose(world.time)[0] - base)
        columns = [list(column) for column in zip(*drawn, strict=True)]
        positions = _joined(columns[0], shifts)
        axes_a, axes_b, colors = (_joined(column) for column in columns[1:])
        return self._renderer.render(
            positions,
            axes_a,
            axes_b,
            colors,
            self._camera_about(base),
            ground=ground,
            background=self._background,
            look=LOOKS["gummy"],
            supersample=supersample,
        )

    def _seen(self, collider: Collider, time: float) -> tuple[NDArray[np.floating], ...]:
        """Positions about its origin, two half axes and colours of a collider's surfels at a time, each (n, 3)."""
        if collider not in self._skins:
            self._skins[collider] = skin_of(collider, self._renderer.device)
        skin = self._skins[collider]
        place, rotation = collider.pose(time)
        points, normals = skin.points @ rotation.T, skin.normals @ rotation.T
        if collider.see_through:
            behind = points @ (np.asarray(self.camera.eye) - place) < 0
            points, normals = points[behind], normals[behind]
        a, b = tangents(normals)
        colors = np.broadcast_to(COLLIDER_COLOR, points.shape)
        return points, skin.spacing * a, skin.spacing * b, colors

    def _camera_about(self, base: NDArray[np.floating]) -> Camera:
        eye, target = np.asarray(self.camera.eye) - base, np.asarray(self.camera.target) - base
        return replace(self.camera, eye=tuple(eye.tolist()), target=tuple(target.tolist()))


def _joined(arrays: list[Any], shifts: Sequence[NDArray[np.floating]] | None = None) -> Any:
    """The arrays of several bodies as one, each shifted; that of a single body stays on the device."""
    if len(arrays) == 1:
        return arrays[0]
    values = [array.numpy() if isinstance(array, wp.array) else array for array in arrays]
    return np.concatenate(values if shifts is None else [v + s for v, s in zip(values, shifts, strict=True)])


def visible_box(world: World) -> tuple[NDArray[np.floating], NDArray[np.floating]]:
    """The box around all bodies, the ground under them and colliders that are not much larger [m]."""
    positions = [body.surface.positions for body in world.bodies]
    lower = np.min([points.min(axis=0) for points in positions], axis=0)
    upper = np.max([points.max(axis=0) for points in positions], axis=0)
    size = float(np.linalg.norm(upper - lower))
    for collider in world.colliders:
        if isinstance(collider, Ground):
            lower[1] = min(lower[1], collider.height)
        elif collider.extent < LARGE * size:
            place, rotation = collider.pose(world.time)
            corners = place + np.array(list(itertools.product(*zip(*collider.box, strict=True)))) @ rotation.T
            lower, upper = np.minimum(lower, corners.min(axis=0)), np.maximum(upper, corners.max(axis=0))
    return lower, upper
