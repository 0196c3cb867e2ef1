"""G04 Table 1, its last column: the update of a crack's level sets."""

from __future__ import annotations

import statistics
import time
from collections.abc import Iterator

import numpy as np

from phyxel.bench.g05 import G04
from phyxel.bench.registry import Result, Setting
from phyxel.cracks.fracture import Fracture
from phyxel.cracks.samples import Samples
from phyxel.world import World

PAPER = {"bar": (0.12425, 12e-3), "max": (0.25372, 25e-3)}
"""[s]: theirs, and our aim"""
STRENGTH = 1.0e6
WAVES = 100.0
"""Speed of shear waves [spacings/s]."""
STEP = 2.0e-3
"""[s]: a front goes a tenth of a spacing at most"""


def levels(setting: Setting) -> Iterator[Result]:
    """A crack that runs across a body under a given pull, until it is through: means of the stress at its front, both
    level sets, the front, and what it hides. Median of its steps."""
    for row in G04:
        body = row.body(setting, "galerkin")
        World(device=setting.device).add(body)
        points = body.space.points
        pull = 1.3 + 0.2 * np.exp(-np.sum((points - points.mean(axis=0)) ** 2, axis=1))
        stress = STRENGTH * pull[:, None, None] * np.diag([1.0, 0.0, 0.0])
        ones = np.ones(len(points))
        J = np.broadcast_to(np.eye(3), stress.shape)
        samples = Samples(points, stress, J, STRENGTH * ones, WAVES * ones)
        fracture = Fracture(points.min(axis=0), points.max(axis=0), body.solid_distance)
        fracture.grow(samples, STEP)
        seconds = []
        changed = True
        while changed:
            start = time.perf_counter()
            changed = fracture.grow(samples, STEP)
            seconds.append(time.perf_counter() - start)
        paper, aim = PAPER[row.name]
        details = {"steps": len(seconds), "points": len(points), "grid": fracture.grid.size, "aim": aim}
        yield Result(f"levels-{row.name}", statistics.median(seconds[:-1]), "s", paper=paper, details=details)
