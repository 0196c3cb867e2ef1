"""Draws the pictures of README and docs from the gallery scenes: `python docs/make_pictures.py [NAME...]`.

`igea` is drawn by name only, where PHYXEL_MODELS is the folder with the scans.
"""

import os
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

import phyxel as px
from phyxel.bench.mold import paper_scene
from phyxel.material.look import LOOKS
from phyxel.points.shapes import SHAPES
from phyxel.points.sheets import SURFACES
from phyxel.render.camera import Camera
from phyxel.render.cutaway import draw
from phyxel.render.modes import ModePictures
from phyxel.render.stage import Stage, visible_box
from phyxel.run.stage import scene_stage
from phyxel.scene import Scene

FOLDER = Path(__file__).parent / "pictures"


@dataclass(frozen=True)
class Strip:
    """Moments of a scene, to be shown side by side."""

    frames: tuple[int, ...]
    camera: dict[str, Any] = field(default_factory=dict)
    """what is changed of the scene's camera"""
    width: int = 480

    def draw(self, scene: Scene) -> np.ndarray:
        world = scene.world()
        camera = scene.content.camera.model_copy(update=self.camera)
        size = {"width": self.width, "height": 480}
        stage = scene_stage(world, camera, scene.content.output.model_copy(update=size))
        pictures = []
        for frame in world.play(max(self.frames) / scene.fps, scene.fps):
            if frame.index in self.frames:
                pictures.append(stage.draw(world, supersample=2))
        return np.concatenate(pictures, axis=1)


STRIPS = {
    "demo": Strip((0, 14, 24, 70)),
    "cantilever": Strip((0, 12, 60, 135)),
    "stretch": Strip((0, 60, 76, 160)),
    "bounce": Strip((32, 52, 72, 88), {"eye": (1.22, 0.77, 1.65), "target": (-0.06, 0.37, 0.05)}),
    "poisson": Strip((0, 120), {"eye": (0.64, 0.92, 2.12), "target": (0.0, 0.175, 0.0)}, width=720),
    "melt": Strip((24, 33, 54, 102)),
    "donut": Strip((0, 36, 240, 320), {"eye": (0.5, 1.14, 1.24), "target": (0.0, 0.15, 0.0)}),
    "mold": Strip((10, 24, 42, 84, 168, 270), {"eye": (0.73, 1.34, 2.45), "target": (0.08, 0.75, 0.0)}, width=320),
    "split-merge": Strip((0, 24, 90, 108, 200), {"eye": (0.62, 0.68, 1.55), "target": (0.06, 0.37, 0.0)}, width=384),
    "crowd": Strip((24, 36, 60, 300)),
    "bowl": Strip((12, 24, 40, 90)),
    "dominoes": Strip((30, 75, 140), width=640),
    "bar": Strip((0, 14, 30, 240), {"eye": (0.6, 0.1, 2.2), "target": (-0.02, -0.3, 0.0)}),
    "face": Strip((0, 80, 190, 285), {"eye": (0.36, 0.55, 1.15), "target": (0.0, 0.34, 0.0)}),
    "twist": Strip((0, 36, 72), {"eye": (0.3, 0.5, 1.3), "target": (0.0, 0.31, 0.0)}),
    "dance": Strip((30, 90, 150, 210, 300), {"eye": (0.36, 0.46, 1.3), "target": (0.0, 0.29, 0.0)}, width=384),
    "stress-bar": Strip((0, 14, 30, 180)),
    "crack-bar": Strip((2, 6, 12, 18, 30), width=384),
    "stress-head": Strip((0, 20, 60), width=640),
    "distance": Strip((1,), width=640),
    "wrinkles": Strip((0, 50, 66, 150)),
    "head": Strip((0, 8, 56, 220), {"eye": (0.62, 0.58, 1.35), "target": (0.0, 0.3, 0.0)}),
    "shrink-wrap": Strip((0, 6, 80, 170), {"eye": (1.1, 0.8, 1.9), "target": (0.0, 0.0, 0.0)}),
    "shell": Strip((0, 50, 130), width=560),
    "drape": Strip((6, 24, 60, 170), {"eye": (0.95, 1.0, 1.75), "target": (0.0, 0.33, 0.0)}),
}
IGEA = Strip((6, 13, 26, 48, 84, 103), {"eye": (0.79, 1.0, 2.15), "target": (0.03, 0.68, 0.0)}, width=320)


def shapes() -> np.ndarray:
    """The built-in shapes in two rows, and the surfaces in one."""
    pictures = []
    for name in [*SHAPES, *SURFACES]:
        world = px.World(gravity=(0, 0, 0))
        body = px.Body(px.load(name, points=40_000), nodes=100, model="particles" if name in SURFACES else "phyxel")
        world.add(body)
        world.add(px.Ground(height=float(body.cloud.lower[1])))
        direction = (0.4, 1.0, 1.0) if name in ("cloth", "scallop") else (0.5, 0.35, 1.0)
        camera = Camera.framing(body.cloud.lower, body.cloud.upper, direction, 320, 320, 32.0)
        pictures.append(Stage(camera, "studio", None).draw(world, supersample=2))
    return np.concatenate([np.concatenate(pictures[first : first + 4], axis=1) for first in (0, 4, 8)])


def looks() -> np.ndarray:
    """The same bust in every look."""
    world = px.World(gravity=(0, 0, 0))
    for column, look in enumerate(LOOKS):
        cloud = px.load("bust", points=60_000)
        cloud = cloud.with_colors(np.broadcast_to((0.80, 0.52, 0.34), (len(cloud), 3)))
        world.add(px.Body(cloud, nodes=100, name=look, look=look, at=(0.95 * (column - 2), 0, 0), size=1.0))
    world.add(px.Ground(height=min(float(body.surface.positions[:, 1].min()) for body in world.bodies)))
    camera = Camera.framing(*visible_box(world), (0.0, 0.15, 1.0), 1280, 360, 18.0, margin=1.03)
    return Stage(camera, "studio", None).draw(world, supersample=2)


def sample() -> np.ndarray:
    """A bear cut open, with its nodes."""
    solid = px.Solid(px.load("bear"))
    return draw(solid, solid.sample(800))


def igea() -> np.ndarray:
    """Max Planck cast as Igea (M04 Fig. 9)."""
    return IGEA.draw(paper_scene(Path(os.environ.get("PHYXEL_MODELS", ""))))


def first_hour() -> np.ndarray:
    """The scene of docs/first-hour.md, with a bust for the scan."""
    page = (FOLDER.parent / "first-hour.md").read_text(encoding="utf-8")
    text = page.split("```toml\n")[1].split("```")[0]
    scene = Scene.parse(text.replace('file = "scan.ply"', 'shape = "bust"'))
    return Strip((0, 8, 26, 44), {"eye": (1.0, 0.75, 2.0), "target": (0.0, 0.5, 0.05)}).draw(scene)


def modes() -> np.ndarray:
    """Modes of a clamped bar."""
    found = px.modes(px.gallery("cantilever").body(), 6)
    return ModePictures(found, (0.5, 0.3, 1.0)).sheet()


def inside() -> np.ndarray:
    """Stress in a bent bar and distance in a bear, on slices and as fog."""
    bar = px.gallery("stress-bar").world()
    bar.advance(0.35)
    bear = px.World()
    bear.add(px.Body(px.load("bear", points=40_000), nodes=400))
    bear.add(px.Ground())
    views = [
        (bar, px.Inside("stress", "volume"), (0.4, 0.25, 1.0)),
        (bar, px.Inside("stress", "slice"), (0.4, 0.25, 1.0)),
        (bear, px.Inside("distance", "volume"), (0.5, 0.3, 1.0)),
        (bear, px.Inside("distance", "slice", slice=["z", "y"]), (0.5, 0.6, 1.0)),
    ]
    size = {"width": 720, "height": 480}
    pictures = [px.stage(world, look, direction=way, **size).draw(world, supersample=2) for world, look, way in views]
    return np.concatenate([np.concatenate(pictures[:2], axis=1), np.concatenate(pictures[2:], axis=1)])


OTHERS: dict[str, Callable[[], np.ndarray]] = {
    "shapes": shapes,
    "looks": looks,
    "sample": sample,
    "first-hour": first_hour,
    "modes": modes,
    "inside": inside,
}


if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    for name in sys.argv[1:] or [*STRIPS, *OTHERS]:
        pixels = STRIPS[name].draw(px.gallery(name)) if name in STRIPS else (OTHERS | {"igea": igea})[name]()
        Image.fromarray(pixels).convert("RGB").save(FOLDER / f"{name}.jpg", quality=88)
