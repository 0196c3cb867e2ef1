"""M04 Fig. 9: Max Planck (600 phyxels, 53k surfels) melts through a funnel into Igea inside out, sets, drops, bounces."""

from __future__ import annotations

from pathlib import Path

from phyxel.errors import PhyxelError
from phyxel.scene import Scene

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
at = [0.01, 1.12, 0.05]
material = { young = 4.0e4, poisson = 0.4, density = 1000.0, damping = 1.0e-3 }

[[collider]]
kind = "ground"

[[collider]]
name = "funnel"
kind = "funnel"
upper_radius = 0.45
lower_radius = 0.08
height = 0.35
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
