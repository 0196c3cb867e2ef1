"""A world on stage: the camera that sees all of it, and a picture of it as it is now."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import warp as wp
from numpy.typing import NDArray

from phyxel.render.camera import Camera
from phyxel.render.look import Look
from phyxel.render.splat import Renderer
from phyxel.world import World

if TYPE_CHECKING:
    from phyxel.scene import CameraPart, OutputPart


class Stage:
    """Draws the bodies of a world, always from the same place."""

    def __init__(self, camera: Camera, background: str | tuple[float, float, float] | None, device: str | None) -> None:
        self.camera, self._background = camera, background
        self._renderer = Renderer(device)

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
        ground = max((ground.height - base[1] for ground in world.colliders), default=None)
        shifts = [surface.origin - base for surface in surfaces]
        positions = _joined([surface.position for surface in surfaces], shifts)
        axes_a, axes_b, colors = (
            _joined([getattr(surface, name) for surface in surfaces]) for name in ("axis_a", "axis_b", "color")
        )
        return self._renderer.render(
            positions,
            axes_a,
            axes_b,
            colors,
            self._camera_about(base),
            ground=ground,
            background=self._background,
            look=Look.gummy(),
            supersample=supersample,
        )

    def _camera_about(self, base: NDArray[np.floating]) -> Camera:
        eye, target = np.asarray(self.camera.eye) - base, np.asarray(self.camera.target) - base
        return replace(self.camera, eye=tuple(eye.tolist()), target=tuple(target.tolist()))


def _joined(arrays: list[wp.array], shifts: Sequence[NDArray[np.floating]] | None = None) -> Any:
    """The arrays of several bodies as one, each shifted; that of a single body stays on the device."""
    if len(arrays) == 1:
        return arrays[0]
    values = [array.numpy() for array in arrays]
    return np.concatenate(values if shifts is None else [v + s for v, s in zip(values, shifts, strict=True)])


def visible_box(world: World) -> tuple[NDArray[np.floating], NDArray[np.floating]]:
    """The box around all bodies and the ground under them [m]."""
    positions = [body.surface.positions for body in world.bodies]
    lower = np.min([points.min(axis=0) for points in positions], axis=0)
    upper = np.max([points.max(axis=0) for points in positions], axis=0)
    for ground in world.colliders:
        lower[1] = min(lower[1], ground.height)
    return lower, upper
