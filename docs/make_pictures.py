"""Draws the pictures of README and docs from the gallery scenes: `python docs/make_pictures.py`."""

from pathlib import Path

import numpy as np
from PIL import Image

import phyxel as px
from phyxel.points.shapes import SHAPES
from phyxel.render.camera import Camera
from phyxel.render.cutaway import draw
from phyxel.render.stage import Stage

FOLDER = Path(__file__).parent / "pictures"
STRIPS = {
    "demo": (0, 14, 24, 70),
    "cantilever": (0, 12, 60, 135),
    "stretch": (0, 60, 76, 160),
}
"""frames of each scene to show side by side"""


def strip(name: str, frames: tuple[int, ...]) -> None:
    """Moments of a scene side by side."""
    scene = px.gallery(name)
    world = scene.world()
    size = {"width": 480, "height": 480}
    stage = Stage.around(world, scene.content.camera, scene.content.output.model_copy(update=size))
    pictures = []
    for frame in world.play(max(frames) / scene.fps, scene.fps):
        if frame.index in frames:
            pictures.append(stage.draw(world, supersample=2))
    save(np.concatenate(pictures, axis=1), name)


def shapes() -> None:
    """The built-in shapes in one row."""
    pictures = []
    for name in SHAPES:
        world = px.World(gravity=(0, 0, 0))
        body = px.Body(px.load(name, points=40_000), nodes=100)
        world.add(body)
        world.add(px.Ground(height=float(body.cloud.lower[1])))
        camera = Camera.framing(body.cloud.lower, body.cloud.upper, (0.5, 0.35, 1.0), 320, 320, 32.0)
        pictures.append(Stage(camera, "studio", None).draw(world, supersample=2))
    rows = [np.concatenate(pictures[first : first + 4], axis=1) for first in (0, 4)]
    save(np.concatenate(rows), "shapes")


def sample() -> None:
    """A bear cut open, with its nodes."""
    solid = px.Solid(px.load("bear"))
    save(draw(solid, solid.sample(800)), "sample")


def save(pixels: np.ndarray, name: str) -> None:
    Image.fromarray(pixels).convert("RGB").save(FOLDER / f"{name}.jpg", quality=88)


if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    for name, frames in STRIPS.items():
        strip(name, frames)
    shapes()
    sample()
