"""G05 Table I: modal bodies in real time, physics and surface; their preparation."""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from phyxel.bench.registry import BenchSetting, Result, median_seconds
from phyxel.bench.scenes import timed_command
from phyxel.body import Body
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
