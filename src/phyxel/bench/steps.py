"""Steps a second and memory of large bodies."""

from __future__ import annotations

import statistics
import time
from collections.abc import Iterator

from phyxel.bench.registry import BenchSetting, Result, advance_seconds, resident_bytes
from phyxel.body import Body
from phyxel.contact.colliders import Ground
from phyxel.device import pick
from phyxel.material import Material
from phyxel.movers.phyxel_bodies import phyxels_of
from phyxel.points.load import load
from phyxel.world import World


def steps(setting: BenchSetting) -> Iterator[Result]:
    """64k phyxels with the default support."""
    world, memory = _box_of(64_000, 2.0, setting)
    yield Result("steps-64k", 1 / _step(world), "steps/s", smaller_is_better=False, details=_details(world))
    yield Result("memory-64k", memory, "bytes/phyxel")


def contact(setting: BenchSetting) -> Iterator[Result]:
    """Two bears of 800 phyxels that lie on each other: a step of their world, beside one in which they lie apart."""
    together, apart = _bears(0.0, setting), _bears(1.0, setting)
    touching, elastic = _advancing(together), _advancing(apart)
    nodes = int((phyxels_of(together).contact.contacts.target.numpy() >= 0).sum())
    details = {"apart_ms": round(elastic, 3), "contact_share": round(touching / elastic - 1, 3), "touching": nodes}
    yield Result("contact-step", touching, "ms/step", details=_details(together) | details)


def melt(setting: BenchSetting) -> Iterator[Result]:
    """A bear of 2000 phyxels that melts: steps a second, with everything that flowing takes."""
    world = World(device=setting.device)
    bear = Body(load("bear"), material=Material.gelatin(), nodes=2000)
    world.add(bear)
    world.add(Ground())
    world.advance(0.02)
    bear.melt()
    world.advance(0.05)
    absorbed, before = phyxels_of(world).melting.absorptions, world.steps
    milliseconds = _advancing(world)
    between = (world.steps - before) / max(phyxels_of(world).melting.absorptions - absorbed, 1)
    often = {"steps_between_absorptions": round(between, 1)}
    yield Result("melt-2000", 1e3 / milliseconds, "steps/s", smaller_is_better=False, details=_details(world) | often)


def _bears(apart: float, setting: BenchSetting) -> World:
    """Two bears, one on the other or so many metres beside it, at rest."""
    material = Material(young=1e5, poisson=0.3, damping=5e-3, drag=20.0)
    cloud = load("bear", points=5000)
    world = World(device=setting.device)
    world.add(Ground())
    world.add(Body(cloud, material=material, name="lying", rotate=(-90, 0, 0), friction=2.0))
    at = (apart, 0.55755, 0.02545)
    world.add(Body(cloud, material=material, name="other", rotate=(90, 0, 0), at=at, place="center", friction=2.0))
    world.advance(0.5)
    return world


def _advancing(world: World) -> float:
    """Median milliseconds a step of `World.advance`, in sixtieths of a second."""
    seconds = []
    for _ in range(15):
        before = world.steps
        seconds.append(advance_seconds(world, 1 / 60) / (world.steps - before))
    return 1e3 * statistics.median(seconds)


def million(setting: BenchSetting) -> Iterator[Result]:
    """A million phyxels of about 32 neighbours; only where there is CUDA."""
    if not pick(setting.device).is_cuda:
        return
    world, _ = _box_of(1_000_000, 1.8, setting)
    yield Result("million-step", 1e3 * _step(world, 200), "ms/step", details=_details(world))


def _box_of(nodes: int, support: float, setting: BenchSetting) -> tuple[World, float]:
    """A free cube, and the bytes each of its phyxels takes once kernels and libraries are in memory."""
    _cube(100, support, setting)
    before = resident_bytes()
    world = _cube(nodes, support, setting)
    return world, (resident_bytes() - before) / len(phyxels_of(world).model)


def _cube(nodes: int, support: float, setting: BenchSetting) -> World:
    body = Body(load("box", points=1000), material=Material(young=1e5, poisson=0.3), nodes=nodes, support=support)
    world = World(gravity=(0, 0, 0), device=setting.device)
    world.add(body)
    world.advance(1e-6)
    return world


def _step(world: World, count: int = 20) -> float:
    """Median seconds a step."""
    step = phyxels_of(world).model.stable_step()
    seconds = []
    for _ in range(5):
        start = time.perf_counter()
        phyxels_of(world).model.step(step, count)
        world.synchronize()
        seconds.append((time.perf_counter() - start) / count)
    return statistics.median(seconds)


def _details(world: World) -> dict[str, float]:
    near = phyxels_of(world).model.matter.near
    return {"phyxels": len(phyxels_of(world).model), "neighbours": round(float(near.count.numpy().mean()), 1)}
