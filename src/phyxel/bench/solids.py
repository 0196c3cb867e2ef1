"""From points to a solid: a scan of the papers, evaluation, and how the time grows with the number of points."""

from __future__ import annotations

import statistics
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from phyxel.bench.registry import BenchSetting, Result, median_seconds
from phyxel.bench.scenes import timed_command
from phyxel.export.clouds import ply_header
from phyxel.points.cloud import PointCloud
from phyxel.points.load import load
from phyxel.solid.solid import Solid

G05_SECONDS = 600.0
"""G05 §4: "less than 10 minutes" of preparation for Igea"""
SIZES = (10_000, 30_000, 100_000, 300_000, 1_000_000)
"""Points."""


def solid(setting: BenchSetting) -> Iterator[Result]:
    """Igea from its points alone: normals, implicit surface, 822 nodes, quadrature, as one command; evaluations."""
    path = setting.model("igea.ply")
    if path is None:
        return
    points = PointCloud(load(path).positions, name="igea points")
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "points.ply"
        header = ply_header([("vertex", len(points), [f"property float {axis}" for axis in "xyz"])])
        file.write_bytes(header + points.positions.astype("<f4").tobytes())
        command = ["sample", str(file), "-n", "822"]
        timed_command(command, setting, {})  # the first run compiles kernels
        runs = [timed_command(command, setting, {}) for _ in range(3)]
    seconds = statistics.median(seconds for seconds, _ in runs)
    yield Result("igea-to-nodes", seconds, "s", paper=G05_SECONDS, details={"points": len(points)})
    yield Result("igea-memory", max(memory for _, memory in runs) / 1e6, "MB")
    made = Solid(points, device=setting.device)
    x = np.random.default_rng(0).uniform(made.lower, made.upper, (1_000_000, 3))
    yield Result("igea-distance", 1e-6 * len(x) / _median_seconds(made, x), "M points/s", smaller_is_better=False)
    skin = made.skin.positions[np.random.default_rng(1).integers(0, len(made.skin), len(x))]
    near = skin + 0.01 * float((made.upper - made.lower).max()) * np.random.default_rng(2).normal(size=x.shape)
    rate = 1e-6 * len(x) / _median_seconds(made, near)
    yield Result("igea-distance-near", rate, "M points/s", smaller_is_better=False)


def growth(setting: BenchSetting) -> Iterator[Result]:
    """Seconds from bare points of a torus to its solid, and the power of n in time = a · n^p · log n."""
    Solid(PointCloud(_torus(SIZES[0])), device=setting.device)
    seconds = []
    for n in SIZES:
        cloud = PointCloud(_torus(n), name="torus")
        start = time.perf_counter()
        Solid(cloud, device=setting.device)
        seconds.append(time.perf_counter() - start)
        yield Result(f"growth-{n}", seconds[-1], "s")
    power = np.polyfit(np.log(SIZES), np.log(seconds / np.log(SIZES)), 1)[0]
    yield Result("growth-power", float(power), "n^p log n", details={"no worse than": 1})


def _median_seconds(made: Solid, x: NDArray[np.float64]) -> float:
    return median_seconds(lambda: made.distance(x), 3)


def _torus(n: int) -> NDArray[np.float64]:
    """Random points, even over the area, on a torus of radii 1 and 0.35 m."""
    rng = np.random.default_rng(n)
    around, across = rng.uniform(0, 2 * np.pi, (2, 2 * n))
    kept = np.flatnonzero(rng.uniform(0, 1.35, 2 * n) < 1 + 0.35 * np.cos(across))[:n]
    u, v = around[kept], across[kept]
    r = 1 + 0.35 * np.cos(v)
    return np.stack([r * np.cos(u), 0.35 * np.sin(v), r * np.sin(u)], axis=1)
