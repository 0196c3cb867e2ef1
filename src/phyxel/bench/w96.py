"""W96: particle surfaces. 60 frames of its head and of its membrane on a jack, and steps a second of a large scan."""

from __future__ import annotations

import time
from collections.abc import Iterator

from phyxel.bench.registry import BenchSetting, Result, median_seconds
from phyxel.body import Body
from phyxel.fields import Filling, Push
from phyxel.material import Membrane
from phyxel.points.load import load
from phyxel.region import Ball
from phyxel.scene import gallery
from phyxel.world import World

FRAMES, ROUNDS = 60, 3
"""Frames, as in the paper, and rounds of which the quickest counts."""
HEAD, HEAD_AIM = 20.0, 0.5
"""Seconds of the paper for 60 frames of its head, and how many ours may take."""
JACK = 25.0
"""Seconds of the paper for 60 frames of the membrane on a jack, at best."""
RATE = 60.0
"""Steps a second that a large surface is to make."""
STEPS = 20
"""Of a median."""
SKIN = Membrane.skin().but(foundation=1400.0, drag=5.0)


def w96(setting: BenchSetting) -> Iterator[Result]:
    """Physics alone, the quietest of three rounds: neighbours share the cores."""
    yield _head(setting)
    yield _jack(setting)
    for links in ("none", "edges"):
        yield _igea(setting, links)


def _head(setting: BenchSetting) -> Result:
    """Max Planck filled with air, pressed in at the crown for half of the time, without links as in the paper."""
    path = setting.model("max-planck.obj")
    cloud = load("bust" if path is None else str(path), points=10_000)
    body = Body(cloud, model="particles", links="none", material=SKIN, size=1.0)
    world = World(gravity=(0, 0, 0), device=setting.device)
    world.add(body)
    world.add(Filling(1e5))
    top = body.birth[body.birth[:, 1].argmax()]
    world.add(Push((0, -5.0, 0), Ball(top, 0.3), fades=True, during=(0.0, 0.5)))
    seconds = min(_frames(world) for _ in range(ROUNDS))
    details = {"particles": len(body.birth), "aim [s]": HEAD_AIM}
    return Result("w96-head", seconds, "s/60 frames", paper=HEAD, details=details)


def _jack(setting: BenchSetting) -> Result:
    """The gallery's membrane, from where it begins to shrink."""
    world = gallery("shrink-wrap").world(setting.device)
    world.advance(0.2)
    seconds = _frames(world)
    details = {"particles": len(world.bodies[0].birth), "steps": world.steps}
    return Result("w96-jack", seconds, "s/60 frames", paper=JACK, details=details)


def _frames(world: World) -> float:
    world.advance(1 / 60)  # compiles
    start = time.perf_counter()
    for _ in range(FRAMES):
        world.advance(1 / 60)
    world.synchronize()
    return time.perf_counter() - start


def _igea(setting: BenchSetting, links: str) -> Result:
    """A large scan that sags under its weight."""
    path = setting.model("igea.ply")
    cloud = load("bust" if path is None else str(path), points=134_345)
    body = Body(cloud, model="particles", links=links, material=SKIN, size=1.0)
    world = World(device=setting.device)
    world.add(body)
    rate = max(_rate(world) for _ in range(ROUNDS))
    details = {"particles": len(body.birth), "links": len(body.sheet.elements) if body.sheet else 0}
    name = "w96-igea" if links == "none" else "w96-igea-linked"
    return Result(name, rate, "steps/s", peer=RATE, peer_name="aim", smaller_is_better=False, details=details)


def _rate(world: World) -> float:
    def step() -> None:
        world.advance(1 / 240)
        world.synchronize()

    return 1 / median_seconds(step, STEPS)
