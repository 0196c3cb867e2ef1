"""A world on stage: the camera that sees all of it, and a picture of it as it is now."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from phyxel.body import Body
from phyxel.body.inside import Inside
from phyxel.contact.colliders import Ground
from phyxel.errors import PhyxelError, knows_its_arguments
from phyxel.region import Floats, Vector
from phyxel.render.camera import Camera
from phyxel.render.inside.insight import Insight
from phyxel.render.inside.legend import ROOM, bar_scale
from phyxel.render.shot import Shot, about_vertical
from phyxel.world import World

LARGE = 2.0
"""Reach of a collider over the size of the bodies, above which the camera need not see all of it."""


DIRECTION, FOV = (0.5, 0.3, 1.0), 32.0
"""Where the camera stands from what it sees, and its full vertical angle of view [degrees], unless it is told."""
NEAR_PICTURE = 2.0
"""How far about its middle a body is still near the picture, over the picture's size."""


class Stage:
    """Draws the bodies of a world, always from the same place; `inside` is what is shown of the inside of bodies, the
    rest is what `Shot` takes."""

    def __init__(
        self,
        camera: Camera,
        background: str | tuple[float, float, float] | None,
        device: str | None,
        turntable: float = 0.0,
        inside: Inside | None = None,
    ) -> None:
        self.camera = camera
        self._shot = Shot(camera, background, device, turntable)
        self.insight = None if inside is None else Insight(self._shot, inside)
        """what draws the inside"""

    def draw(self, world: World, supersample: int = 1) -> NDArray[np.uint8]:
        """A picture of the world as it is now, (height, width, 4) bytes."""
        if self.insight is None or self.insight.inside.beside:
            plain = self._shot.plain(world, supersample)
        if self.insight is None:
            return plain
        picture = self.insight.draw(world, supersample)
        return np.concatenate([plain, picture], axis=1) if self.insight.inside.beside else picture


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


def aimed(camera: Camera, eye: Vector | None, target: Vector | None) -> Camera:
    """The same camera at another place and with another target [m], where these are given."""
    return replace(camera, eye=camera.eye if eye is None else eye, target=camera.target if target is None else target)


def backdrop_for(inside: Inside | None) -> str:
    """What glows is drawn before the dark."""
    return "dark" if inside is not None and inside.glows else "studio"


@knows_its_arguments
def stage(
    world: World,
    inside: Inside | None = None,
    *,
    width: int = 1280,
    height: int = 720,
    direction: Sequence[float] = DIRECTION,
    eye: Vector | None = None,
    target: Vector | None = None,
    fov: float = FOV,
    background: str | tuple[float, float, float] | None = None,
) -> Stage:
    """What draws a `world`, or the inside of its bodies: `px.stage(world, px.Inside("stress")).draw(world)` is a
    picture, (height, width, 4) bytes. The camera stands in `direction` of the bodies as they are now, unless `eye`
    or `target` [m] say otherwise, and stays as they move. `inside` is what to show of the inside, `width` and `height`
    are in pixels, `fov` [degrees] is its vertical angle of view, `background` is "studio", "dark" or a colour.

    >>> world = px.World()
    >>> world.add(px.Body(px.load("box", points=500), nodes=64))
    >>> px.stage(world, width=160, height=90).draw(world).shape
    (90, 160, 4)
    """
    world.set_down()
    world.make_ready("video", *([] if inside is None else [inside.mode]))
    camera = aimed(framed(*visible_box(world), direction, (width, height), fov, inside), eye, target)
    return Stage(camera, background or backdrop_for(inside), world.device.alias, inside=inside)


def visible_box(world: World) -> tuple[Floats, Floats]:
    """The box around all bodies, the ground under them and colliders that are not much larger [m]."""
    if not world.bodies:
        raise PhyxelError("stage: there is no body to look at; call world.add(body) first")
    positions = [_seen_of(body) for body in world.bodies]
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


def far_from(camera: Camera, world: World) -> list[Body]:
    """Bodies of which nothing is in the picture, nor near it."""
    return [body for body in world.bodies if not _near_picture(camera, _seen_of(body)).any()]


def _near_picture(camera: Camera, positions: Floats) -> NDArray[np.bool_]:
    right, up, forward = camera.axes @ (positions - np.asarray(camera.eye)).T
    reach = 0.5 * NEAR_PICTURE * forward / camera.focal
    return (forward > 0) & (np.abs(right) <= reach * camera.width) & (np.abs(up) <= reach * camera.height)


def _seen_of(body: Body) -> Floats:
    """Where surfels are [m], shape (m, 3); what another hides may have none, and then where nodes are."""
    return body.surface.positions if len(body.surface) else body.positions
