"""What a camera sees: bodies and colliders of a world as actors, drawn from one place."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import warp as wp
from numpy.typing import NDArray

from phyxel.body import Body
from phyxel.contact.colliders import Collider, Ground
from phyxel.contact.mold import Mold
from phyxel.contact.table import measured
from phyxel.device import as_vectors
from phyxel.material.look import LOOKS
from phyxel.render.camera import Camera
from phyxel.render.cast import SHEET, UNDER, Actor, Cast
from phyxel.render.splat import Renderer, averaged
from phyxel.rotation import tangents
from phyxel.surface.discs import Discs, Floats
from phyxel.surface.surfels import Surfels
from phyxel.world import World

COLLIDER_COLOR = (0.60, 0.61, 0.63)
"""Display color."""
ALONG = 100
"""Discs along the longest side."""
LAYERS = 4
"""Fewest layers of seeds across a thin side, so that both its faces get discs."""
ROWS = {name: row for row, name in enumerate(LOOKS)}
"""Of the table of looks."""


def collider_discs(collider: Collider, device: wp.Device) -> Discs:
    """A collider's surfels in its own frame: seeds on a grid, those next to the surface moved onto it."""
    lower, upper = collider.box
    spacing = float((upper - lower).max()) / ALONG
    seeds = _seeds(lower, upper, spacing)
    distances, normals = measured(collider, seeds, device)
    near = np.abs(distances) < 0.6 * spacing
    points, normals = (seeds - distances[:, None] * normals)[near], normals[near]
    if isinstance(collider, Mold):
        shown = collider.shows(points)
        points, normals = points[shown], normals[shown]
    a, b = tangents(normals)
    fields = (points, spacing * a, spacing * b, normals, np.broadcast_to(COLLIDER_COLOR, points.shape))
    x, axis_a, axis_b, normal, color = (as_vectors(field, device) for field in fields)
    return Discs(x, axis_a, axis_b, normal, color, np.zeros(3))


def _seeds(lower: Floats, upper: Floats, spacing: float) -> Floats:
    axes = []
    for low, high in zip(lower, upper, strict=True):
        steps = max(LAYERS, int(np.ceil((high - low) / spacing)))
        width = (high - low) / steps
        axes.append(low + width * (np.arange(-1, steps + 1) + 0.5))
    return np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, 3)


class Shot:
    """Draws actors among the colliders of a world, always from the same place.

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
        self.renderer = Renderer(device)
        self._cast = Cast(self.renderer.device)
        self._skins: dict[Collider, Discs] = {}
        # Single precision is enough about the camera's target, not about the origin of the world.
        self.base = np.asarray(camera.target, float)
        self.seen_from = replace(camera, eye=np.subtract(camera.eye, self.base), target=np.zeros(3))

    def plain(self, world: World, supersample: int = 1) -> NDArray[np.uint8]:
        """A picture of the world as it is now, (height, width, 4) bytes."""
        return self.drawn(world, [self.actor(body, world) for body in world.bodies], supersample)

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
        under = 0 if all(body.kind.has_inside for body in world.bodies) else UNDER
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
        x, a, b, colors, marks = self._cast.gathered([*actors, *unseen])
        camera, seen = self.seen_from.scaled(supersample), sum(len(actor.position) for actor in actors)
        how: dict[str, Any] = {"background": self._background, "look": tuple(LOOKS.values()), "marks": marks}
        return self.renderer.render(x, a, b, colors, camera, ground=ground, size=size, seen=seen, **how)

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


def about_vertical(degrees: float) -> Floats:
    """Rotation matrix, counterclockwise seen from above."""
    cos, sin = math.cos(math.radians(degrees)), math.sin(math.radians(degrees))
    return np.array([[cos, 0.0, sin], [0.0, 1.0, 0.0], [-sin, 0.0, cos]])
