"""Pictures of a scan, all effects on."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import numpy as np
import warp as wp

from phyxel.bench.registry import BenchSetting, Result, median_seconds, resident_bytes
from phyxel.device import pick
from phyxel.material.look import LOOKS
from phyxel.points.load import load
from phyxel.rotation import tangents
from phyxel.surface.discs import disc_radii

PICTURES = 15
"""Of a median."""
EDGE = 100
"""Gauss points along the edge of a cube."""
SIZES = {"720p": (1280, 720, 100.0), "1080p": (1920, 1080, None)}
"""Width, height [pixels] and the most milliseconds a picture should take on two cores."""


def picture(setting: BenchSetting) -> Iterator[Result]:
    """Igea's 134,345 points as gummy splats on a ground, light, shadow and crevices anew for each picture; a bear of as
    many points where there is no Igea."""
    from phyxel.render.camera import Camera
    from phyxel.render.splat import Renderer

    scan = setting.model("igea.ply")
    cloud = load("bear", points=134_345) if scan is None else load(str(scan))
    assert cloud.normals is not None
    a, b = (disc_radii(cloud.positions)[:, None] * axis for axis in tangents(cloud.normals))
    colors = np.tile((0.75, 0.6, 0.45), (len(cloud), 1))
    device = pick(setting.device)
    fields = (np.asarray(field, np.float32) for field in (cloud.positions, a, b, colors))
    x, axes_a, axes_b, shades = (wp.array(field, dtype=wp.vec3, device=device) for field in fields)
    lower, upper = cloud.positions.min(axis=0), cloud.positions.max(axis=0)
    renderer = Renderer(device)
    for name, (width, height, target) in SIZES.items():
        camera = Camera.framing(lower, upper, (0.6, 0.25, 1.0), width, height)
        before = resident_bytes()
        draw = partial(renderer.render, x, axes_a, axes_b, shades, camera, ground=float(lower[1]), look=LOOKS["gummy"])
        milliseconds = 1e3 * median_seconds(draw, PICTURES)
        details = {"model": "bear" if scan is None else "igea", "surfels": len(cloud), "target": target}
        details |= {"megabytes": round((resident_bytes() - before) / 1e6)}
        yield Result(f"picture-134k-{name}", milliseconds, "ms", details=details)


def volume(setting: BenchSetting) -> Iterator[Result]:
    """A cube of a million Gauss points as fog, 1280 × 720: projected, sorted and laid over each other anew for each
    picture, seen through to the far side (half the light is left) and dense."""
    from phyxel.render.camera import Camera, make_view
    from phyxel.render.inside.haze import HazeLayer, Puffs
    from phyxel.render.inside.insight import SPREAD
    from phyxel.render.tiles import make_grid, pixel_count

    device = pick(setting.device)
    h = 1 / EDGE
    along = (np.arange(EDGE) + 0.5) * h
    x = np.stack(np.meshgrid(along, along, along, indexing="ij"), axis=-1).reshape(-1, 3)
    axes = np.broadcast_to(SPREAD * h * np.eye(3), (len(x), 3, 3))
    camera = Camera.framing((0, 0, 0), (1, 1, 1))
    grid = make_grid(camera.width, camera.height, device)
    layer, nothing = HazeLayer(grid, device), wp.zeros(pixel_count(grid), dtype=float, device=device)
    for name, extinction in (("clear", 0.7), ("dense", 20.0)):
        puffs = Puffs(x, axes, np.full(len(x), extinction * h**3), x).on(device)
        draw = partial(layer.draw, puffs, make_view(camera), nothing)
        details = {"puffs": len(x), "target": 1000.0}
        yield Result(f"volume-1M-{name}", 1e3 * median_seconds(draw, PICTURES), "ms", details=details)
