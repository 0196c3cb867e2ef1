"""M04 Fig. 9: Max Planck, 600 phyxels and 53k surfels, melts through a funnel into Igea inside out, sets and drops."""

from __future__ import annotations

import statistics
import time
from collections.abc import Iterator
from pathlib import Path

from phyxel.bench.registry import BenchSetting, Result
from phyxel.errors import PhyxelError
from phyxel.movers.phyxel_bodies import phyxels_of
from phyxel.scene import Scene

SOLID = 2.8
"""When it has set [s]."""
FILES = ("max-planck.obj", "igea.ply")
PAPER = """
title = "Max Planck is cast as Igea"
seconds = 5
fps = 30

[[body]]
name = "max"
file = "max-planck.obj"
size = 0.6
points = 53000
nodes = 600
scheme = "m04"
at = [0.01, 1.12, 0.05]
place = "center"
material = { young = 4.0e4, poisson = 0.4, density = 1000.0, damping = 1.0e-3 }

[[collider]]
kind = "ground"

[[collider]]
name = "funnel"
kind = "funnel"
upper_radius = 0.75
lower_radius = 0.08
height = 0.5
thickness = 0.015
friction = 0.0
at = [0.01, 0.72, 0.04]

[[collider]]
name = "igea"
kind = "mold"
file = "igea.ply"
size = 0.5
inside_out = true
open_above = 0.2
friction = 0.0
at = [0.0, 0.5, 0.0]

[[event]]
at = 0.1
melt = { viscosity = 4.0 }

[[event]]
at = 2.8
solidify = { material = { young = 1.0e6, damping = 5.0e-4, drag = 1.0 } }

[[event]]
at = 3.0
remove = "funnel"

[[event]]
at = 3.0
remove = "igea"
"""


def paper_scene(models: Path) -> Scene:
    """The scene, with the scans of a folder."""
    missing = [name for name in FILES if not (models / name).is_file()]
    if missing:
        raise PhyxelError(f"{models}: no {', no '.join(missing)}; give the folder that has the scans")
    return Scene.parse(PAPER, name="m04-mold", folder=models)


def mold(setting: BenchSetting) -> Iterator[Result]:
    """A frame of a thirtieth of a second while it flows, surface included; where the scans are."""
    if setting.models is None or any(setting.model(name) is None for name in FILES):
        return
    scene = paper_scene(setting.models)
    world = scene.world(setting.device)
    seconds = []
    for _ in range(round(SOLID * scene.fps)):
        start = time.perf_counter()
        world.advance(1 / scene.fps)
        surfels = len(world.bodies[0].surface)
        world.synchronize()
        seconds.append(time.perf_counter() - start)
    details = {"phyxels": len(phyxels_of(world).model), "surfels": surfels}
    yield Result("m04-mold", statistics.median(seconds), "s/frame", paper=8.0, details=details)
