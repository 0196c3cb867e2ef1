"""One picture of anything that has a surface, by one call; it shows itself in a notebook."""

from __future__ import annotations

import io
import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from phyxel import device as dev
from phyxel import kernels
from phyxel.body import Body
from phyxel.body.inside import Inside
from phyxel.errors import PhyxelError, brief, knows_its_arguments
from phyxel.material.look import LOOKS, Look
from phyxel.points.cloud import PointCloud
from phyxel.points.completion import completed, with_unit_normals
from phyxel.points.load import load
from phyxel.points.normals import estimate_normals
from phyxel.region import Vector
from phyxel.render.cast import SHEET, marks
from phyxel.render.compose import Background
from phyxel.render.files import save_picture
from phyxel.render.splat import Renderer
from phyxel.render.stage import DIRECTION, FOV, aimed, backdrop_for, framed, stage
from phyxel.solid.solid import Solid
from phyxel.surface.discs import DiscShape, Rest
from phyxel.world import World

THUMBNAIL, SMOOTH = (256, 192), 2
"""Width and height of the picture beside a table [pixels]; it is drawn at so many times the size, then averaged."""
THUMBNAIL_COLORS = 255
"""of such a picture: then it has some 10 kB"""
THUMBNAIL_POINTS = 40_000
"""of a cloud that are drawn in it, at most"""

FEWEST_POINTS_OF_MESH = 20_000
"""Points that faces are drawn with, if they have fewer corners."""


@dataclass(frozen=True, eq=False)
class Picture:
    """A picture. A notebook shows it; `np.asarray(picture)` are its pixels, and `picture.save("bear.png")` writes it.

    >>> picture = px.render(px.load("bear"), width=320, height=240)
    >>> picture.save("bear.png")
    """

    pixels: NDArray[np.uint8]
    """red, green, blue in 0..255, shape (height, width, 3)"""

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write it as PNG or JPEG, by the ending of the name."""
        save_picture(self.pixels, path)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        return np.array(self.pixels, dtype) if copy else np.asarray(self.pixels, dtype)

    def __repr__(self) -> str:
        height, width = self.pixels.shape[:2]
        return f"<Picture: {width} × {height} pixels>"

    def _repr_png_(self) -> bytes:
        return _png(Image.fromarray(self.pixels))


@knows_its_arguments
def render(
    thing: World | Body | PointCloud | Solid,
    inside: Inside | None = None,
    *,
    width: int = 1280,
    height: int = 720,
    direction: Sequence[float] = DIRECTION,
    eye: Vector | None = None,
    target: Vector | None = None,
    fov: float = FOV,
    background: Background | None = None,
) -> Picture:
    """A picture of a `thing`, `width` × `height` pixels: a world as it is now, or a body, a cloud or a solid alone.

    It is the picture that the video of a scene has: the camera stands in `direction`, as near as it sees all bodies and
    the ground under them, unless `eye` or `target` [m] say otherwise; `fov` [degrees] is its vertical angle of view.
    With `inside` it is one of what is inside the bodies of a world. `background` is "studio", "dark", a colour (red,
    green, blue in 0..1), or left to what is shown. The camera is placed anew for each picture; `px.stage` keeps it.

    >>> world = px.World()
    >>> world.add(px.Body(px.load("box", points=500), nodes=64))
    >>> picture = px.render(world, width=160, height=90)
    >>> picture.save("box.png")
    >>> picture.pixels.shape
    (90, 160, 3)
    """
    view: dict[str, Any] = {"width": width, "height": height, "direction": direction, "fov": fov}
    view |= {"eye": eye, "target": target, "background": background}
    if isinstance(thing, World):
        return Picture(np.ascontiguousarray(stage(thing, inside, **view).draw(thing)[..., :3]))
    if inside is not None:
        raise PhyxelError(f"render: inside = {brief(inside)} is for worlds; give the world that it is in")
    if not isinstance(thing, Body | PointCloud | Solid):
        wanted = "a World, or a Body, a PointCloud or a Solid that shall be drawn alone"
        raise PhyxelError(f"render({brief(thing)}): give {wanted}")
    return Picture(_alone(thing, **view))


def thumbnail(thing: Any) -> bytes:
    """A small picture (PNG) of what `render` takes."""
    if isinstance(thing, PointCloud) and len(thing) > THUMBNAIL_POINTS:
        thing = _thinned(thing, THUMBNAIL_POINTS)
    width, height = (SMOOTH * side for side in THUMBNAIL)
    return _small_png(Image.fromarray(render(thing, width=width, height=height).pixels))


def small_copy(file: Path) -> bytes:
    """A picture in a file, as small as one beside a table (PNG)."""
    with Image.open(file) as image:
        return _small_png(image.convert("RGB"))


def _small_png(image: Image.Image) -> bytes:
    image.thumbnail(THUMBNAIL, Image.Resampling.BOX)
    return _png(image.quantize(THUMBNAIL_COLORS))


def _png(image: Image.Image) -> bytes:
    file = io.BytesIO()
    image.save(file, format="PNG", optimize=True)
    return file.getvalue()


def _alone(
    thing: Body | PointCloud | Solid,
    width: int,
    height: int,
    direction: Sequence[float],
    fov: float,
    eye: Vector | None,
    target: Vector | None,
    background: Background | None,
) -> NDArray[np.uint8]:
    """On a floor of its own, in units of its size about its middle: a grain and a planet look alike."""
    device = dev.pick() if not isinstance(thing, Body) or thing.world is None else thing.world.device
    kernels.ready({"picture"}, device)
    discs, look = _seen(thing)
    if len(discs.points) == 0:
        raise PhyxelError(f"render: nothing is seen of {thing.name}; others may hide it")
    lower, upper = discs.points.min(axis=0), discs.points.max(axis=0)
    middle, size = 0.5 * (lower + upper), float((upper - lower).max())
    half = 0.5 * (upper - lower) / size
    places = (None if place is None else (np.asarray(place, float) - middle) / size for place in (eye, target))
    camera = aimed(framed(-half, half, direction, (width, height), fov, None), *places)
    x, a, b = (discs.points - middle) / size, discs.axis_a / size, discs.axis_b / size
    how: dict[str, Any] = {"look": (look,), "marks": marks(SHEET, len(x)), "size": 1.0, "ground": -half[1]}
    how["background"] = background or backdrop_for(None)
    return Renderer(device.alias).render(x, a, b, discs.colors, camera, **how)[..., :3].copy()


def _seen(thing: Body | PointCloud | Solid) -> tuple[DiscShape, Look]:
    """Discs [m] that cover something, and what it seems to be made of."""
    if isinstance(thing, Body) and thing.world is not None:
        return thing.surface.shown.present(), LOOKS[thing.look]
    if isinstance(thing, Body):
        cloud, turn = thing.cloud, thing.shape.rotation
        normals = None if cloud.normals is None else cloud.normals @ turn.T
        return _covered(replace(cloud, positions=thing.placed_cloud(), normals=normals), LOOKS[thing.look])
    cloud = thing.skin if isinstance(thing, Solid) else thing
    return _covered(cloud, LOOKS["matte"])


def _covered(cloud: PointCloud, look: Look) -> tuple[DiscShape, Look]:
    cloud = completed(with_unit_normals(cloud.checked()))
    if cloud.faces is not None and len(cloud) < FEWEST_POINTS_OF_MESH:
        cloud = load(replace(cloud, reading=None), points=FEWEST_POINTS_OF_MESH)
    normals = estimate_normals(cloud.positions) if cloud.normals is None else cloud.normals
    colors = np.broadcast_to(look.color, cloud.positions.shape) if cloud.colors is None else cloud.colors
    return DiscShape.at_birth(Rest(cloud.positions, normals, colors, 1.0)), look


def _thinned(cloud: PointCloud, most: int) -> PointCloud:
    """So many of its points at most, spread evenly over their order; random points of scans are in any."""
    return cloud.part(np.linspace(0, len(cloud) - 1, most).astype(np.int64))
