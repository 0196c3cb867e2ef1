"""A check-up: what is installed, what it runs on, and whether it computes right."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import platform
from collections.abc import Iterator

import numpy as np
import warp as wp

from phyxel import device as dev
from phyxel.body import Body
from phyxel.errors import PhyxelError
from phyxel.material import Material
from phyxel.points.load import load
from phyxel.region import BoxRegion
from phyxel.world import World

EXTRAS = {"view": ("websockets",), "usd": ("pxr",), "bench": ("mujoco", "taichi", "pypbd")}


def examine() -> Iterator[tuple[str, str, bool]]:
    """What was looked at, what was found, and whether it is fine."""
    yield "python", platform.python_version(), True
    for package in ("phyxel", "warp-lang", "numpy", "scipy"):
        yield package, importlib.metadata.version(package), True
    dev.initialise()
    for device in wp.get_devices():
        yield "device", f"{device.alias}: {device.name}", True
    yield "used by default", str(dev.pick()), True
    yield "CPU threads", str(dev.thread_count()), True
    yield "kernel cache", str(wp.config.kernel_cache_dir), True
    for extra, modules in EXTRAS.items():
        there = [name for name in modules if importlib.util.find_spec(name)]
        yield f"extra {extra}", ", ".join(there) or f'not installed (pip install "phyxel[{extra}]")', True
    for device in wp.get_devices():
        yield from _check_bar(device.alias)


def _check_bar(device: str) -> Iterator[tuple[str, str, bool]]:
    """The tip of a clamped bar under its weight: beam theory says -0.0251 m."""
    try:
        bar = Body(load("bar", points=100), material=Material(young=1e7, poisson=0.3, density=1000.0), nodes=864)
        world = World(device=device)
        world.add(bar)
        bar.fix(BoxRegion((-1, -1, -1), (bar.unit, 1, 1)))
        world.settle(1e-5)
        tip = float(bar.displacement_at(np.array([[1.0, 0.0, 0.0]]))[0, 1])
    except PhyxelError as error:
        yield f"bar on {device}", str(error), False
        return
    yield f"bar on {device}", f"tip {tip:.4f} m (beam theory -0.0251 m)", abs(tip + 0.0251) < 0.04 * 0.0251
