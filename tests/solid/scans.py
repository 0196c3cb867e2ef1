"""Points and meshes as scanners give them, the truth about them, and what is asked of their solids.

Lengths are shares of the size, the largest extent. Shapes have POINTS points, 2 to 4 % of the size apart.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import pytest

import phyxel as px
from phyxel.points.cloud import PointCloud
from phyxel.region import Vector

POINTS = 3000
MANY = 100_000
NAMES = {"sphere": 8000, "torus": 8000, "box": 8000, "bear": 20_000}
"""Points for the strictest tests: the smile of the bear is 1 cm wide."""


@dataclass(frozen=True, eq=False)
class Truth:
    """A body whose signed distance is known."""

    distance: Callable
    lower: np.ndarray
    upper: np.ndarray
    volume: float

    @cache  # noqa: B019 (a few truths, and the bear's distance is slow)
    def probes(self, count: int) -> tuple[np.ndarray, np.ndarray]:
        """Random positions in the bounding box and their distances, the same ones each time."""
        x = np.random.default_rng(7).uniform(self.lower, self.upper, (count, 3))
        return x, self.distance(x)

    @property
    def size(self) -> float:
        return float((self.upper - self.lower).max())


@cache
def truth_of(name: str) -> Truth:
    shape = px.load(name, points=8).shape
    assert shape is not None
    return Truth(shape.distance, np.array(shape.lower), np.array(shape.upper), px.Solid(px.load(name, points=8)).volume)


@cache
def points_of(name: str, count: int = POINTS) -> PointCloud:
    """Positions and normals of a built-in shape, and nothing else."""
    cloud = px.load(name, points=count)
    return PointCloud(cloud.positions, normals=cloud.normals, name=name)


def ball(count: int, radius: float = 1.0, center: Vector = (0.0, 0.0, 0.0), name: str = "ball") -> PointCloud:
    """Points on a golden spiral: even, without pattern."""
    i = np.arange(count) + 0.5
    y, turn = 1 - 2 * i / count, np.pi * (1 + 5**0.5) * i
    normals = np.stack([np.sqrt(1 - y * y) * np.cos(turn), y, np.sqrt(1 - y * y) * np.sin(turn)], axis=1)
    return PointCloud(radius * normals + np.array(center), normals=normals.astype(np.float32), name=name)


def joined(*clouds: PointCloud, flipped: tuple[int, ...] = ()) -> PointCloud:
    """Several clouds as one; the normals of those in `flipped` are turned."""
    normals = [np.asarray(c.normals) * (-1 if i in flipped else 1) for i, c in enumerate(clouds)]
    return PointCloud(np.concatenate([c.positions for c in clouds]), normals=np.concatenate(normals), name="joined")


def bare(cloud: PointCloud) -> PointCloud:
    """Positions alone."""
    return PointCloud(cloud.positions, name=cloud.name)


def balls(*parts: tuple[float, Vector]) -> Callable:
    """Signed distance (the sign is exact) of the union of (radius, center)."""
    return lambda x: np.min([np.linalg.norm(x - np.array(c), axis=1) - r for r, c in parts], axis=0)


def assert_sides(solid: px.Solid, truth: Truth, share: float, clear: float, count: int = MANY) -> None:
    """In the bounding box `share` of all points lie on the right side, and all that are `clear` (in sizes) of the
    surface do; far outside none is inside."""
    rng = np.random.default_rng(7)
    x, exact = truth.probes(count)
    wrong = solid.inside(x) != (exact < 0)
    assert wrong.mean() <= 1 - share
    assert np.abs(exact[wrong]).max(initial=0) <= clear * truth.size
    away = rng.normal(size=(2000, 3))
    away *= (rng.uniform(1, 30, 2000) * truth.size / np.linalg.norm(away, axis=1))[:, None]
    assert not solid.inside(0.5 * (truth.lower + truth.upper) + away).any()


def assert_volume(solid: px.Solid, truth: Truth, within: float) -> None:
    """By counting: a quarter of the time of `volume`, and as good, since the body is counted with the same points."""
    x, exact = truth.probes(30_000)
    assert solid.inside(x).sum() == pytest.approx((exact < 0).sum(), rel=within)


def assert_bounds(solid: px.Solid, truth: Truth, within: float) -> None:
    """The bounding box is that of the body."""
    assert np.abs(solid.lower - truth.lower).max() < within * truth.size
    assert np.abs(solid.upper - truth.upper).max() < within * truth.size


def near_surface(cloud: PointCloud, truth: Truth, band: float, count: int, seed: int = 3) -> np.ndarray:
    """Random positions up to `band` sizes from the surface."""
    rng = np.random.default_rng(seed)
    picked = rng.integers(0, len(cloud), count)
    offset = rng.uniform(-band, band, (count, 1)) * truth.size
    return cloud.positions[picked] + offset * np.asarray(cloud.normals)[picked]


def refused(cloud: PointCloud, *words: str, **options: Any) -> str:
    """Building must fail with a `PhyxelError` that begins with the cloud's name and has one of the words in it."""
    with pytest.raises(px.PhyxelError) as caught:
        px.Solid(cloud, **options)
    text = str(caught.value)
    assert text.startswith(cloud.name), text
    assert re.search("|".join(words), text), text
    return text
