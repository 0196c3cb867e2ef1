"""Steps a second and memory of large bodies."""

from __future__ import annotations

import statistics
import time
from collections.abc import Iterator

from phyxel.bench.registry import Result, Setting, resident_bytes
from phyxel.body import Body
from phyxel.device import pick
from phyxel.material import Material
from phyxel.points.load import load
from phyxel.world import World


def steps(setting: Setting) -> Iterator[Result]:
    """64k phyxels with the default support."""
    world, memory = _box_of(64_000, 2.0, setting)
    yield Result("steps-64k", 1 / _step(world), "steps/s", smaller_is_better=False, details=_details(world))
    yield Result("memory-64k", memory, "bytes/phyxel")


def million(setting: Setting) -> Iterator[Result]:
    """A million phyxels of about 32 neighbours; only where there is CUDA."""
    if not pick(setting.device).is_cuda:
        return
    world, _ = _box_of(1_000_000, 1.8, setting)
    yield Result("million-step", 1e3 * _step(world, 200), "ms/step", details=_details(world))


def _box_of(nodes: int, support: float, setting: Setting) -> tuple[World, float]:
    """A free cube, and the bytes each of its phyxels takes once kernels and libraries are in memory."""
    _cube(100, support, setting)
    before = resident_bytes()
    world = _cube(nodes, support, setting)
    return world, (resident_bytes() - before) / len(world.model)


def _cube(nodes: int, support: float, setting: Setting) -> World:
    body = Body(load("box", points=1000), material=Material(young=1e5, poisson=0.3), nodes=nodes, support=support)
    world = World(gravity=(0, 0, 0), device=setting.device)
    world.add(body)
    world.advance(1e-6)
    return world


def _step(world: World, count: int = 20) -> float:
    """Median seconds a step."""
    step = world.model.stable_step()
    seconds = []
    for _ in range(5):
        start = time.perf_counter()
        world.model.step(step, count)
        world.synchronize()
        seconds.append((time.perf_counter() - start) / count)
    return statistics.median(seconds)


def _details(world: World) -> dict[str, float]:
    near = world.model.matter.near
    return {"phyxels": len(world.model), "neighbours": round(float(near.count.numpy().mean()), 1)}
