"""A world on stage: the camera that sees all of it, and a picture of it as it is now."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import warp as wp
from numpy.typing import NDArray

from phyxel.contact.colliders import Collider, Ground
from phyxel.contact.skin import skin_of
from phyxel.look import LOOKS
from phyxel.points.frames import tangents
from phyxel.render.camera import Camera
from phyxel.render.cast import Actor, Cast
from phyxel.render.splat import Renderer
from phyxel.surface.surfels import Surfels
from phyxel.world import World

if TYPE_CHECKING:
    from phyxel.scene_bodies import CameraPart, OutputPart

Floats = NDArray[np.floating]

COLLIDER_COLOR = (0.60, 0.61, 0.63)
LARGE = 2.0
"""Reach of a collider over the size of the bodies, above which the camera need not see all of it."""
ROWS = {name: row for row, name in enumerate(LOOKS)}


class Stage:
    """Draws the bodies of a world, always from the same place.

    `turntable` [degrees/s] turns the world about the vertical through the camera's target, counterclockwise seen from
    above, in light that stays: as a table turns before a camera.
    """

    def __init__(
        self,
        camera: Camera,
        background: str | tuple[float, float, float] | None,
        device: str | None,
        turntable: float = 0.0,
    ) -> None:
        self.camera, self._background, self._turntable = camera, background, turntable
        self._renderer = Renderer(device)
        self._cast = Cast(self._renderer.device)
        self._skins: dict[Collider, tuple[wp.array, ...]] = {}
        # Single precision is enough about what is looked at, not about the world.
        self._base = np.asarray(camera.target, float)
        self._seen_from = replace(camera, eye=np.subtract(camera.eye, self._base), target=np.zeros(3))

    @staticmethod
    def around(world: World, camera: CameraPart, output: OutputPart) -> Stage:
        """A camera as the scene asks for, else one that sees the bodies and the ground under them."""
        framed = framing(*visible_box(world), camera, output)
        chosen = Camera(
            eye=camera.eye or framed.eye,
            target=camera.target or framed.target,
            fov=camera.fov,
            width=output.width,
            height=output.height,
        )
        return Stage(chosen, output.background, world.device.alias, camera.turntable)

    def draw(self, world: World, supersample: int = 1) -> NDArray[np.uint8]:
        """A picture of the world as it is now, (height, width, 4) bytes."""
        turn = about_vertical(self._turntable * world.time)
        actors = [self._body(body.surface, turn, ROWS[body.look]) for body in world.bodies]
        actors += [self._collider(one, turn, world.time) for one in world.colliders if isinstance(one, Collider)]
        heights = [one.height for one in world.colliders if isinstance(one, Ground)]
        ground = max(heights) - self._base[1] if heights else None
        size = float(np.median([np.ptp(body.birth, axis=0).max() for body in world.bodies]))
        return self._drawn(actors, ground, size, supersample)

    def draw_surfels(self, surfels: Surfels, supersample: int = 1) -> NDArray[np.uint8]:
        """A picture of surfels alone, (height, width, 4) bytes."""
        return self._drawn([self._body(surfels, np.eye(3), ROWS["matte"])], None, None, supersample)

    def _drawn(
        self, actors: Sequence[Actor], ground: float | None, size: float | None, supersample: int
    ) -> NDArray[np.uint8]:
        positions, axes_a, axes_b, colors, marks = self._cast.gathered(actors)
        return self._renderer.render(
            positions,
            axes_a,
            axes_b,
            colors,
            self._seen_from,
            ground=ground,
            background=self._background,
            look=tuple(LOOKS.values()),
            marks=marks,
            size=size,
            supersample=supersample,
        )

    def _body(self, surface: Surfels, turn: Floats, row: int) -> Actor:
        place = turn @ (surface.origin - self._base)
        return Actor(surface.position, surface.axis_a, surface.axis_b, surface.color, row, turn, place)

    def _collider(self, collider: Collider, turn: Floats, time: float) -> Actor:
        if collider not in self._skins:
            self._skins[collider] = self._skin(collider)
        origin, axes = collider.pose(time)
        place = turn @ (origin - self._base)
        opened = np.asarray(self._seen_from.eye) - place if collider.see_through else np.zeros(3)
        points, axis_a, axis_b, color = self._skins[collider]
        return Actor(points, axis_a, axis_b, color, ROWS[collider.look], turn @ axes, place, opened)

    def _skin(self, collider: Collider) -> tuple[wp.array, ...]:
        """Positions, two half axes and colours of a collider's surfels in its own frame."""
        skin = skin_of(collider, self._renderer.device)
        a, b = tangents(skin.normals)
        colors = np.broadcast_to(COLLIDER_COLOR, skin.points.shape)
        fields = (skin.points, skin.spacing * a, skin.spacing * b, colors)
        device = self._renderer.device
        return tuple(wp.array(np.asarray(field, np.float32), dtype=wp.vec3, device=device) for field in fields)


def about_vertical(degrees: float) -> Floats:
    """Rotation matrix, counterclockwise seen from above."""
    cos, sin = math.cos(math.radians(degrees)), math.sin(math.radians(degrees))
    return np.array([[cos, 0.0, sin], [0.0, 1.0, 0.0], [-sin, 0.0, cos]])


def framing(lower: Floats, upper: Floats, camera: CameraPart, output: OutputPart) -> Camera:
    """The nearest camera that sees a box [m]; on a turntable, from all sides."""

    def from_direction(direction: Floats) -> Camera:
        return Camera.framing(lower, upper, direction, output.width, output.height, camera.fov)

    direction = np.asarray(camera.direction)
    framed = from_direction(direction)
    if not camera.turntable:
        return framed
    others = [from_direction(about_vertical(degrees) @ direction) for degrees in range(0, 360, 15)]
    distance = max(float(np.linalg.norm(np.subtract(one.eye, one.target))) for one in others)
    return replace(framed, eye=np.asarray(framed.target) - distance * framed.axes[2])


def visible_box(world: World) -> tuple[Floats, Floats]:
    """The box around all bodies, the ground under them and colliders that are not much larger [m]."""
    # What another hides may have no surfels at all.
    positions = [body.surface.positions if len(body.surface) else body.positions for body in world.bodies]
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
