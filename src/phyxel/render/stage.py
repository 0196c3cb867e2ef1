"""A world on stage: the camera that sees all of it, and a picture of it as it is now."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import warp as wp
from numpy.typing import NDArray

from phyxel.body import Body
from phyxel.body.inside import Inside
from phyxel.contact.colliders import Collider, Ground
from phyxel.device import as_vectors
from phyxel.errors import PhyxelError
from phyxel.material.look import LOOKS
from phyxel.render.camera import Camera
from phyxel.render.cast import Actor, Cast
from phyxel.render.collider_discs import skin_of
from phyxel.render.inside.insight import Insight
from phyxel.render.inside.legend import ROOM, bar_scale
from phyxel.render.splat import Renderer, averaged
from phyxel.render.stuff import SHEET, UNDER
from phyxel.rotation import tangents
from phyxel.surface.discs import Discs
from phyxel.surface.surfels import Surfels
from phyxel.world import World

Floats = NDArray[np.floating]

COLLIDER_COLOR = (0.60, 0.61, 0.63)
LARGE = 2.0
"""Reach of a collider over the size of the bodies, above which the camera need not see all of it."""
ROWS = {name: row for row, name in enumerate(LOOKS)}


class Stage:
    """Draws the bodies of a world, always from the same place.

    `turntable` [degrees/s] turns the world about the vertical through the camera's target, counterclockwise seen from
    above, in light that stays: as a table turns before a camera. `inside` is what is shown of the inside of bodies.
    """

    def __init__(
        self,
        camera: Camera,
        background: str | tuple[float, float, float] | None,
        device: str | None,
        turntable: float = 0.0,
        inside: Inside | None = None,
    ) -> None:
        self.camera, self._background, self._turntable = camera, background, turntable
        self.renderer = Renderer(device)
        self._cast = Cast(self.renderer.device)
        self.insight = None if inside is None else Insight(self, inside)
        """what draws the inside"""
        self._skins: dict[Collider, Discs] = {}
        # Single precision is enough about what is looked at, not about the world.
        self.base = np.asarray(camera.target, float)
        self.seen_from = replace(camera, eye=np.subtract(camera.eye, self.base), target=np.zeros(3))

    def draw(self, world: World, supersample: int = 1) -> NDArray[np.uint8]:
        """A picture of the world as it is now, (height, width, 4) bytes."""
        if self.insight is None or self.insight.inside.beside:
            plain = self.drawn(world, [self.actor(body, world) for body in world.bodies], supersample)
        if self.insight is None:
            return plain
        picture = self.insight.draw(world, supersample)
        return np.concatenate([plain, picture], axis=1) if self.insight.inside.beside else picture

    def drawn(
        self,
        world: World,
        actors: Sequence[Actor],
        supersample: int = 1,
        unseen: Sequence[Actor] = (),
        average: bool = True,
    ) -> NDArray[np.uint8]:
        """A picture of actors among the colliders of a world; those unseen cast shadows. `average` or not: then it is
        `supersample` times as large."""
        turn = self.turn(world)
        # What lies on a collider as thin as cloth must not be seen through its discs, which are flat.
        under = UNDER if any(body.sheet is not None for body in world.bodies) else 0
        solid = [one for one in world.colliders if isinstance(one, Collider)]
        colliders = [self._collider(one, turn, world.time, under) for one in solid]
        heights = [one.height for one in world.colliders if isinstance(one, Ground)]
        ground = max(heights) - self.base[1] if heights else None
        size = float(np.median([np.ptp(body.birth, axis=0).max() for body in world.bodies]))
        picture = self._drawn([*actors, *colliders], ground, size, supersample, unseen)
        return averaged(picture, supersample) if average and supersample > 1 else picture

    def turn(self, world: World) -> Floats:
        """How the table has turned, 3 × 3."""
        return about_vertical(self._turntable * world.time)

    def actor(self, body: Body, world: World) -> Actor:
        """A body as it is plainly seen."""
        row = ROWS[body.look] + (SHEET if body.appearance.is_sheet else 0)
        return self._body(body.surface, self.turn(world), row)

    def draw_surfels(self, surfels: Surfels, supersample: int = 1) -> NDArray[np.uint8]:
        """A picture of surfels alone, (height, width, 4) bytes."""
        picture = self._drawn([self._body(surfels, np.eye(3), ROWS["matte"])], None, None, supersample)
        return averaged(picture, supersample) if supersample > 1 else picture

    def _drawn(
        self,
        actors: Sequence[Actor],
        ground: float | None,
        size: float | None,
        supersample: int,
        unseen: Sequence[Actor] = (),
    ) -> NDArray[np.uint8]:
        positions, axes_a, axes_b, colors, marks = self._cast.gathered([*actors, *unseen])
        return self.renderer.render(
            positions,
            axes_a,
            axes_b,
            colors,
            self.seen_from.scaled(supersample),
            ground=ground,
            background=self._background,
            look=tuple(LOOKS.values()),
            marks=marks,
            size=size,
            seen=sum(len(actor.position) for actor in actors),
        )

    def _body(self, surface: Surfels, turn: Floats, row: int) -> Actor:
        place = turn @ (surface.origin - self.base)
        return Actor(surface.position, surface.axis_a, surface.axis_b, surface.color, row, turn, place)

    def _collider(self, collider: Collider, turn: Floats, time: float, under: int) -> Actor:
        if collider not in self._skins:
            self._skins[collider] = collider_discs(collider, self.renderer.device)
        origin, axes = collider.pose(time)
        place = turn @ (origin - self.base)
        opened = np.asarray(self.seen_from.eye) - place if collider.see_through else np.zeros(3)
        skin = self._skins[collider]
        row = ROWS[collider.look] + under
        return Actor(skin.position, skin.axis_a, skin.axis_b, skin.color, row, turn @ axes, place, opened)


def collider_discs(collider: Collider, device: wp.Device) -> Discs:
    """A collider's surfels in its own frame."""
    skin = skin_of(collider, device)
    a, b = tangents(skin.normals)
    colors = np.broadcast_to(COLLIDER_COLOR, skin.points.shape)
    fields = (skin.points, skin.spacing * a, skin.spacing * b, skin.normals, colors)
    x, axis_a, axis_b, normal, color = (as_vectors(field, device) for field in fields)
    return Discs(x, axis_a, axis_b, normal, color, np.zeros(3))


def about_vertical(degrees: float) -> Floats:
    """Rotation matrix, counterclockwise seen from above."""
    cos, sin = math.cos(math.radians(degrees)), math.sin(math.radians(degrees))
    return np.array([[cos, 0.0, sin], [0.0, 1.0, 0.0], [-sin, 0.0, cos]])


def framed(
    lower: Floats,
    upper: Floats,
    direction: Sequence[float],
    size: tuple[int, int],
    fov: float,
    inside: Inside | None,
    turns: Sequence[float] = (0,),
) -> Camera:
    """The nearest camera that sees a box [m] turned by so many degrees about the vertical, in a picture of this size
    [pixels], or in half of it if it shows the inside beside the outside; with room for words."""
    width, height = size[0] // 2 if inside and inside.beside else size[0], size[1]
    room = round(ROOM * bar_scale(width, height)) if inside else 0
    views = [
        Camera.framing(lower, upper, about_vertical(turn) @ np.asarray(direction), width - room, height, fov)
        for turn in turns
    ]
    first = views[0]
    distance = max(float(np.linalg.norm(np.subtract(view.eye, view.target))) for view in views)
    aside = 0.5 * room * distance / first.focal * first.axes[0]
    target = np.asarray(first.target) + aside
    return replace(first, eye=target - distance * first.axes[2], target=target, width=width)


def backdrop_for(inside: Inside | None) -> str:
    """What glows is drawn before the dark."""
    return "dark" if inside is not None and inside.glows else "studio"


def stage(
    world: World,
    inside: Inside | None = None,
    *,
    width: int = 1280,
    height: int = 720,
    direction: Sequence[float] = (0.5, 0.3, 1.0),
    fov: float = 32.0,
    background: str | tuple[float, float, float] | None = None,
) -> Stage:
    """What draws a world, or the inside of its bodies: `px.stage(world, px.Inside("stress")).draw(world)` is a picture,
    (height, width, 4) bytes. The camera stands in `direction` of what there is now, and stays while that moves."""
    camera = framed(*visible_box(world), direction, (width, height), fov, inside)
    return Stage(camera, background or backdrop_for(inside), world.device.alias, inside=inside)


def visible_box(world: World) -> tuple[Floats, Floats]:
    """The box around all bodies, the ground under them and colliders that are not much larger [m]."""
    if not world.bodies:
        raise PhyxelError("stage: there is no body to look at; call world.add(body) first")
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
