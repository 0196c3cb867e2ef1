"""Bodies of one world that meet: what a step takes where they touch, and what looking for others takes where they do
not."""

from __future__ import annotations

import math
import statistics
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from phyxel.bench.registry import BenchSetting, Result, advance_seconds
from phyxel.body import Body
from phyxel.contact.colliders import Box, Ground
from phyxel.contact.mold import Mold
from phyxel.material import Material
from phyxel.points.load import load
from phyxel.world import World

FRAME = 1 / 60
"""[s]"""
FRAMES = 15
"""of a median"""
SOFT = Material(young=1e5, poisson=0.3, damping=5e-3)
CLOTH = 2_500
"""Particles of the cloth: a quarter of the ten thousand that are aimed at, which take minutes to come to lie."""


@dataclass(frozen=True)
class MeetingRow:
    """A row of the table: worlds whose frames are measured, and what is asked of them."""

    name: str
    worlds: Callable[[BenchSetting], list[World]]
    """the first is that of the row, the others are those that it is compared with, taken together"""
    unit: str
    aim: float
    """[s], or the ratio to the others"""
    settles: float = 0.2
    """time that passes before [s]"""
    per_step: bool = False
    """whether a step is asked for, not a frame"""
    frame: float = FRAME
    """that is measured [s]"""
    frames: int = FRAMES


def meeting(setting: BenchSetting) -> Iterator[Result]:
    """All rows."""
    for row in ROWS:
        yield measured(row, row.worlds(setting))


def measured(row: MeetingRow, worlds: list[World]) -> Result:
    """Medians of frames, or of the steps in them; worlds that are compared take turns, as neighbours share the
    cores."""
    for world in worlds:
        world.advance(row.settles)
    taken: list[list[tuple[float, float]]] = [[] for _ in worlds]
    for _ in range(row.frames):
        for world, seconds in zip(worlds, taken, strict=True):
            before, start = world.steps, time.process_time()
            frame = advance_seconds(world, row.frame)
            steps = world.steps - before if row.per_step else 1
            seconds.append((frame / steps, (time.process_time() - start) / steps))
    first, *others = (statistics.median(frame for frame, _ in seconds) for seconds in taken)
    cpu, *alone = (statistics.median(cpu for _, cpu in seconds) for seconds in taken)
    value = first / sum(others) if others else first
    details: dict[str, Any] = {"bodies": len(worlds[0].bodies)} | ({"ms": round(1e3 * first, 2)} if others else {})
    # What processors did: on a machine that others share, the clock tells of them as well.
    details["cpu"] = float(f"{cpu / sum(alone) if alone else cpu:.4g}")
    return Result(f"meeting-{row.name}", value, row.unit, peer=row.aim, peer_name="aim", details=details)


def _world(setting: BenchSetting, *things: Any) -> World:
    world = World(device=setting.device)
    for thing in things:
        world.add(thing)
    return world


def _bear(model: str, at: tuple[float, float, float], **more: Any) -> Body:
    return Body(load("bear", points=5000), model=model, nodes=800, material=SOFT, at=at, **more)


def _rubbing(setting: BenchSetting) -> list[World]:
    """A Galerkin bear that slides over the ground."""
    return [_world(setting, Ground(friction=0.3), _bear("galerkin", (0, 0.01, 0), velocity=(2, 0, 0)))]


def _two_bears(setting: BenchSetting) -> list[World]:
    """A phyxel bear that lies on another."""
    below = _bear("phyxel", (0, 0, 0), rotate=(-90, 0, 0), friction=2.0, name="below")
    above = _bear("phyxel", (0, 0.55755, 0.02545), place="center", rotate=(90, 0, 0), friction=2.0, name="above")
    return [_world(setting, Ground(), below, above)]


def _on_a_block(setting: BenchSetting) -> list[World]:
    """A phyxel bear on a Galerkin block; the bear on a collider of its shape; the block alone."""

    def block() -> Body:
        return Body(load("box", points=3000), model="galerkin", nodes=200, material=SOFT, at=(0, 0, 0), name="block")

    slab = Box((-0.5, 0, -0.5), (0.5, 1, 0.5))
    return [
        _world(setting, Ground(), block(), _bear("phyxel", (0, 1.01, 0))),
        _world(setting, slab, _bear("phyxel", (0, 1.01, 0))),
        _world(setting, Ground(), block()),
    ]


def _heap(setting: BenchSetting) -> list[World]:
    """A hundred rigid bodies that have fallen on each other."""
    rng = np.random.default_rng(0)
    shapes = [load(name, points=600) for name in ("box", "sphere", "bar", "torus")]
    places = 0.28 * np.stack(np.unravel_index(np.arange(100), (4, 7, 4)), axis=1) + (0, 0.15, 0)
    bodies = [
        Body(shapes[k % 4], model="rigid", size=0.2, at=tuple(at), place="center", rotate=tuple(rng.uniform(0, 90, 3)))
        for k, at in enumerate(places + rng.uniform(-0.02, 0.02, places.shape))
    ]
    return [_world(setting, Ground(), *bodies)]


def _draped(setting: BenchSetting) -> list[World]:
    """A cloth that lies on a rigid bear, and in folds on itself: it falls for a third of a second."""
    bear = Body(load("bear", points=5000), model="rigid", at=(0, 0, 0))
    sheet = load("cloth", points=CLOTH)
    cloth = Body(sheet, model="particles", at=(0, 1.05, 0), place="center", meets_itself=True, name="cloth")
    return [_world(setting, Ground(), bear, cloth)]


def _bowl(setting: BenchSetting) -> list[World]:
    """Fifty bodies of all kinds that fall into a bowl."""
    rng = np.random.default_rng(0)
    bowl = Mold(load("sphere", points=5000), inside_out=True, size=2.0, open_above=0.0, at=(0, 1, 0), friction=0.4)
    fine: dict[str, Any] = {"nodes": 64}
    stone: dict[str, Any] = {"model": "rigid"}
    kinds = [stone, fine | {"model": "modal"}, fine, stone, fine | {"model": "galerkin"}]
    shapes = [load(name, points=600) for name in ("box", "sphere", "bar", "torus")]
    bodies = []
    for k in range(50):
        more = kinds[k % len(kinds)]
        ring, turn = divmod(k, 10)
        at = 0.5 * math.cos(0.2 * math.pi * turn), 0.9 + 0.3 * ring, 0.5 * math.sin(0.2 * math.pi * turn)
        rotate = tuple(rng.uniform(0, 90, 3).tolist())
        bodies.append(Body(shapes[k % 4], material=SOFT, size=0.2, at=at, place="center", rotate=rotate, **more))
    return [_world(setting, bowl, *bodies)]


def _far_apart(setting: BenchSetting) -> list[World]:
    """A phyxel bear and a modal one that never meet; each alone."""

    def bears(*models: str) -> World:
        return _world(setting, Ground(), *(_bear(model, (3.0 * len(model), 0.01, 0)) for model in models))

    return [bears("phyxel", "modal"), bears("phyxel"), bears("modal")]


ROWS = (
    MeetingRow("rubbing", _rubbing, "s/step", 0.15, per_step=True),
    MeetingRow("bears", _two_bears, "s/step", 1.3e-3, per_step=True),
    MeetingRow("on-a-block", _on_a_block, "times both alone", 1.3),
    MeetingRow("heap", _heap, "s/frame", 16e-3, settles=0.6),
    MeetingRow("draped", _draped, "s/interval", 80e-3 * CLOTH / 10_000, settles=1.0, frame=1 / 240),
    MeetingRow("bowl", _bowl, "s/second", 20.0, settles=0.0, frame=1.0, frames=1),
    MeetingRow("far-apart", _far_apart, "times each alone", 1.03),
)
"""The table; a row more is a line more."""
