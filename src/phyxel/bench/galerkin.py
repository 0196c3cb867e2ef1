"""G05 Table I: modal bodies in real time, physics and surface; their preparation. G04 Table 1: the elastic step of the
Galerkin model, a step in which a crack runs, and the update of level sets."""

from __future__ import annotations

import os
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import numpy as np

from phyxel.bench.registry import BenchSetting, Result, advance_seconds, median_seconds
from phyxel.bench.scenes import timed_command
from phyxel.body import Body
from phyxel.cracks.fracture import Fracture, Samples
from phyxel.material import Material
from phyxel.models.kind import KINDS
from phyxel.points.load import load
from phyxel.world import World

STEP = 0.01
"""[s], the papers' step"""
STEPS, ROUNDS = 100, 3
"""Steps of a median, and medians of which the least counts."""
PREPARED = 60.0
"""Seconds that all preparation of Igea may take; the paper needed up to 11 minutes."""
JELLY = Material(young=1e6, poisson=0.4, density=1000.0, damping=1e-3)


@dataclass(frozen=True)
class TableRow:
    """A body of the papers' tables, or one of its size."""

    name: str
    scan: str | None
    shape: str
    """where the scan is not there"""
    points: int
    nodes: int
    paper: float
    """[s]"""
    modes: int = 64
    aim: float | None = None
    """[s]"""

    def body(self, setting: BenchSetting, model: str, material: Material = JELLY) -> Body:
        path = None if self.scan is None else setting.model(self.scan)
        options = {"modes": self.modes} if "modes" in KINDS[model].options else {}
        cloud = load(self.shape if path is None else str(path), points=self.points)
        return Body(cloud, material=material, nodes=self.nodes, model=model, size=1.0, **options)  # type: ignore[arg-type]


G05 = (
    TableRow("bar", None, "bar", 5_634, 1_008, 0.013, aim=1.5e-3),
    TableRow("igea", "igea.ply", "bust", 134_345, 822, 0.023, aim=10e-3),
    TableRow("balljoint", None, "jack", 137_062, 357, 0.026),
    TableRow("rabbit", "stanford-bunny.obj", "bear", 67_038, 1_251, 0.019),
    TableRow("santa", None, "bear", 75_781, 1_150, 0.028, modes=128, aim=8e-3),
)


def g05(setting: BenchSetting) -> Iterator[Result]:
    """Modal bodies that swing about where they are held: a step and all surfels."""
    for row in G05:
        start = time.perf_counter()
        world = held(row.body(setting, "modal"), setting)
        yield measured(f"g05-{row.name}", world, row, {"start [s]": round(time.perf_counter() - start, 1)})


def modes(setting: BenchSetting) -> Iterator[Result]:
    """From Igea's points to 64 modes and a picture of some, as one command with nothing remembered; and again, with all
    of it remembered."""
    path = setting.model("igea.ply")
    if path is None:
        return
    with tempfile.TemporaryDirectory() as folder:
        scene = Path(folder) / "igea.toml"
        scene.write_text(
            f'[[body]]\nfile = "{path}"\nmodel = "modal"\nnodes = 822\nsize = 1.0\n'
            "hold = [{ upper = [inf, -0.4, inf] }]\n"
        )
        command = ["modes", str(scene), "--modes", "64"]
        for kept in ("warm-up", "first", "second"):
            cache = Path(folder) / ("kept" if kept == "second" else kept)
            out = ["--out", str(Path(folder) / f"out-{kept}")]
            seconds, memory = timed_command(command + out, setting, {"PHYXEL_CACHE": str(cache)})
            if kept == "first":
                os.rename(cache, Path(folder) / "kept")
            if kept != "warm-up":
                aim = PREPARED if kept == "first" else None
                yield Result(
                    f"igea-modes-{kept}", seconds, "s", peer=aim, peer_name="aim", details={"MB": memory // 10**6}
                )


def held(body: Body, setting: BenchSetting) -> World:
    """A body held by its lowest tenth, or a bar by its end, let go."""
    world = World(device=setting.device)
    world.add(body)
    axis = pulled_axis(body)
    lowest, extent = body.birth[:, axis].min(), float(body.birth[:, axis].max() - body.birth[:, axis].min())
    body.fix(lambda X: X[:, axis] < lowest + 0.1 * extent)
    return world


def pulled_axis(body: Body) -> int:
    """The long one."""
    return 0 if body.name.startswith("bar") else 1


def measured(name: str, world: World, row: TableRow, details: dict[str, float]) -> Result:
    """A step with all surfels, and without."""
    step = partial(world.advance, STEP)
    seconds = min(_median(world, step) for _ in range(ROUNDS))  # the quietest of some: neighbours share the cores
    physics = min(_median(world, step, surface=False) for _ in range(ROUNDS))
    body = world.bodies[0]
    sizes = {"nodes": len(body.birth), "surfels": len(body.surface), "physics [ms]": round(1e3 * physics, 3)}
    if row.aim is not None:
        sizes["aim [ms]"] = 1e3 * row.aim
    return Result(name, seconds, "s/step", paper=row.paper, details=sizes | details)


def _median(world: World, step: Callable[[], None], surface: bool = True) -> float:
    def whole() -> None:
        step()
        if surface:
            _ = world.bodies[0].surface
        world.synchronize()

    return median_seconds(whole, STEPS)


G04 = (
    TableRow("bar", None, "bar", 6_144, 64, 0.01579),
    TableRow("max", "max-planck.obj", "bust", 15_002, 251, 0.06787, aim=14e-3),
)
LEVELS = {"bar": (0.12425, 12e-3), "max": (0.25372, 25e-3)}
"""The update of level sets [s]: theirs, and our aim."""
STRENGTH = 1.0e6
"""[Pa]"""
WAVES = 100.0
"""Speed of shear waves [spacings/s]."""
CRACK_STEP = 2.0e-3
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
        paper, aim = LEVELS[row.name]
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
    whole = advance_seconds(world, CRACK_STEP)
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
        fracture.grow(samples, CRACK_STEP)
        seconds = []
        changed = True
        while changed:
            start = time.perf_counter()
            changed = fracture.grow(samples, CRACK_STEP)
            seconds.append(time.perf_counter() - start)
        paper, aim = LEVELS[row.name]
        details = {"steps": len(seconds), "points": len(points), "grid": fracture.grid.size, "aim": aim}
        yield Result(f"levels-{row.name}", statistics.median(seconds[:-1]), "s", paper=paper, details=details)
