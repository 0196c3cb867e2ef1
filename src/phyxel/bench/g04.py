"""G04 Table 1: the elastic step of the Galerkin model, a step in which a crack runs, and the update of level sets."""

from __future__ import annotations

import statistics
import time
from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from phyxel.bench.g05 import JELLY, TableRow, held, measured, pulled_axis
from phyxel.bench.registry import BenchSetting, Result
from phyxel.body import Body
from phyxel.cracks.fracture import Fracture, Samples
from phyxel.world import World

G04 = (
    TableRow("bar", None, "bar", 6_144, 64, 0.01579),
    TableRow("max", "max-planck.obj", "bust", 15_002, 251, 0.06787, aim=14e-3),
)
PAPER = {"bar": (0.12425, 12e-3), "max": (0.25372, 25e-3)}
"""The update of level sets [s]: theirs, and our aim."""
STRENGTH = 1.0e6
"""[Pa]"""
WAVES = 100.0
"""Speed of shear waves [spacings/s]."""
STEP = 2.0e-3
"""[s]: a front goes a tenth of a spacing at most"""
CRACKING = {"bar": (0.27145, 27e-3), "max": (0.84713, 85e-3)}
"""A step in which a crack runs [s]: theirs, and our aim."""
BRITTLE = replace(JELLY, strength=1e5)
PULL = 1.0
"""How fast a body is pulled apart, in its sizes per second."""
LONGEST = 400
"""Steps until which it is through."""


def g04(setting: BenchSetting) -> Iterator[Result]:
    """Galerkin bodies that swing about where they are held; and then such that crack."""
    for row in G04:
        yield measured(f"g04-{row.name}", held(row.body(setting, "galerkin"), setting), row, {})
    yield from _cracking(setting)


def _cracking(setting: BenchSetting) -> Iterator[Result]:
    """A body held by its lowest tenth and pulled by its highest until it is in two: steps in which a crack ran, and
    what the level sets took of them. Medians."""
    for row in G04:
        body = row.body(setting, "galerkin", BRITTLE)
        world = held(body, setting)
        _pull(body)
        nodes = len(body.birth)
        times = [time_of for _ in range(LONGEST) if len(world.bodies) == 1 and (time_of := _cracked(world, body))]
        whole, levels = (statistics.median(part) for part in zip(*times[:-1], strict=True))  # the last one parts it
        paper, aim = CRACKING[row.name]
        sizes = {"nodes": nodes, "points": len(body.space.points), "steps": len(times), "aim": aim}
        yield Result(f"g04-{row.name}-crack", whole, "s/step", paper=paper, details=sizes)
        paper, aim = PAPER[row.name]
        yield Result(f"g04-{row.name}-levels", levels, "s/step", paper=paper, details=sizes | {"aim": aim})


def _pull(body: Body) -> None:
    axis = pulled_axis(body)
    size = np.ptp(body.birth[:, axis])
    top, speed = body.birth[:, axis].max() - 0.1 * size, PULL * size * np.eye(3)[axis]
    body.drag(lambda X: X[:, axis] > top, to=lambda time: time * speed)


def _cracked(world: World, body: Body) -> tuple[float, float] | None:
    """What a step took if a crack ran in it [s], and what the growth of its level sets did."""
    assert body.fracture is not None
    fracture, before = body.fracture, body.fracture.cracks.revision
    grow, levels = fracture.grow, [0.0]

    def timed(samples: Samples, dt: float) -> bool:
        start = time.perf_counter()
        changed = grow(samples, dt)
        levels[0] += time.perf_counter() - start
        return changed

    fracture.grow = timed  # type: ignore[method-assign]
    start = time.perf_counter()
    world.advance(STEP)
    world.synchronize()
    whole = time.perf_counter() - start
    fracture.grow = grow  # type: ignore[method-assign]
    return (whole, levels[0]) if fracture.cracks.revision != before else None


def levels(setting: BenchSetting) -> Iterator[Result]:
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
