"""Fields all through a body, drawn in a real browser, against closed forms of what should be seen."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from phyxel.view.messages import Blob, DrawnThing
from tests.view.page.test_drawing import FOV, HEIGHT, WIDTH, from_middle, message, page, pixels  # noqa: F401

GRID = 32
HALF = 0.1
"""[m] half a side of the volume"""
RAMP = [[240, 20, 20] if k < 32 else [20, 20, 240] for k in range(64)]
LEGEND = {"title": "", "unit": "", "low": 0, "high": 1, "colors": RAMP, "ticks": []}


def ball_field(mode: str, middle: Any = (0, 0, 0)) -> DrawnThing:
    """Values that fall evenly from 1 in the middle to 0 at HALF from it; all of it is inside."""
    ends = (np.arange(GRID) + 0.5) / GRID * 2 - 1
    z, y, x = np.meshgrid(ends, ends, ends, indexing="ij")
    share = np.clip(1 - np.sqrt(x**2 + y**2 + z**2), 0, 1)
    data = np.stack([np.rint(255 * share), np.full_like(share, 255)], axis=-1).astype(np.uint8)
    lower, upper = (np.asarray(middle) + side * HALF for side in (-1, 1))
    about = {"count": GRID**3, "lower": lower.tolist(), "upper": upper.tolist(), "grid": GRID, "mode": mode}
    return DrawnThing("ball", "volume", about | {"collider": False, "pose": None}, {"records": Blob(data.tobytes())})


def seen(page: Any, part: DrawnThing | None, eye: Any, **limits: float) -> np.ndarray:  # noqa: F811
    camera = {"eye": [float(x) for x in eye], "target": [0.0, 0.0, 0.0], "fov": FOV}
    volume = {"at": 0.5, "low": 0.0, "high": 1.0} | limits
    frame = message(*([part] if part else []), legend=LEGEND)
    return pixels(page.evaluate("(given) => draw(...given)", [frame, camera, {"volume": volume}, False]))


def colored(picture: np.ndarray) -> np.ndarray:
    """Where it is neither grey nor nearly so."""
    return np.ptp(picture, axis=2) > 0.25


@pytest.mark.parametrize("threshold", [0.3, 0.55, 0.7])
@pytest.mark.parametrize("eye", [(0, 0, 0.5), (0.3, 0.35, 0.4)])
def test_an_iso_surface_covers_its_disc(page: Any, threshold: float, eye: Any) -> None:  # noqa: F811
    """Where the values are `threshold` is a sphere of radius r = (1 - threshold) HALF, seen from distance d as a disc
    of focal · r/√(d² - r²) pixels. Its area is right within what the grid's cells, 1/16 of HALF, can tell."""
    picture = seen(page, ball_field("iso"), eye, at=threshold)
    radius, distance = (1 - threshold) * HALF, math.dist(eye, (0, 0, 0))
    outline = 0.5 * HEIGHT / math.tan(math.radians(FOV) / 2) * radius / math.sqrt(distance**2 - radius**2)
    there = colored(picture)
    assert there.sum() == pytest.approx(math.pi * outline**2, rel=0.05)
    away = from_middle()
    assert there[away < 0.95 * outline].all() and not there[away > 1.06 * outline + 1].any()
    middle = picture[HEIGHT // 2, WIDTH // 2]
    assert (middle[0] > middle[2]) == (threshold < 0.5), "its colour is that of its value"


def test_fog_shows_what_is_between_its_thresholds(page: Any) -> None:  # noqa: F811
    """All of it, the middle alone, a shell whose middle is thinner than its rim; the empty stage has no fog."""
    views = {
        name: np.ptp(seen(page, ball_field("fog"), (0, 0, 0.5), **limits), axis=2)
        for name, limits in {"all": {}, "core": {"low": 0.6}, "shell": {"low": 0.2, "high": 0.4}}.items()
    }
    away = from_middle()
    focal = 0.5 * HEIGHT / math.tan(math.radians(FOV) / 2) / 0.5
    core = 0.4 * HALF * focal
    assert views["core"][away < 0.5 * core].min() > 0.15
    assert views["core"][(away > 1.4 * core) & (away < 0.9 * HALF * focal)].max() < 0.1
    assert views["all"][away < core].mean() > views["core"][away < core].mean()
    rim = (away > 0.68 * HALF * focal) & (away < 0.74 * HALF * focal)
    assert views["shell"][rim].mean() > views["shell"][away < 0.2 * HALF * focal].mean()
    assert np.ptp(seen(page, None, (0, 0, 0.5)), axis=2).max() < 0.1
