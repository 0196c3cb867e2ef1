"""The live viewer: updates a second that reach a plain client in another process, and how soon it answers a hand."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator

from phyxel.bench.registry import Result, Setting
from phyxel.scene import Scene

SECONDS = 8.0
ANSWER = 0.1
"""Seconds from a pointer to its picture, at most."""
IGEA = """
[[body]]
{source}
points = 134345
model = "modal"
nodes = 822
size = 1.0
material = {{ young = 1.0e6 }}
hold = [{{ upper = [inf, -0.4, inf] }}]
"""
BEAR = """
[[body]]
shape = "bear"
points = 20000
model = "{model}"
nodes = 800
material = {{ preset = "gelatin", young = 1.2e5, damping = 1.5e-3 }}

[[collider]]
kind = "ground"
friction = 0.7
"""


def view(setting: Setting) -> Iterator[Result]:
    """A scan of 134,345 surfels with 64 modes that is held by its neck, and a bear of 20,000 that stands on the ground,
    by modes and by phyxels."""
    path = setting.model("igea.ply")
    source = 'shape = "bust"' if path is None else f'file = "{path}"'
    yield from _measured("igea", IGEA.format(source=source), 30.0, setting)
    yield from _measured("bear", BEAR.format(model="modal"), 60.0, setting)
    yield from _measured("bear-phyxel", BEAR.format(model="phyxel"), 60.0, setting)


def _measured(name: str, source: str, aim: float, setting: Setting) -> Iterator[Result]:
    from phyxel.view.hub import Hub
    from phyxel.view.live import Live
    from phyxel.view.server import Server

    hub = Hub()
    with Server(Live(Scene.parse(source, name), hub, setting.device), hub) as server:
        address = server.address.replace("http", "ws") + "live"
        command = [sys.executable, "-m", "phyxel.bench.client", address, str(SECONDS)]
        found = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    numbers = found["numbers"]
    details = {"kB": round(found["bytes"] / 1e3), "pace": round(numbers["pace"], 2)}
    details |= {f"{stage} [ms]": round(ms, 1) for stage, ms in numbers["milliseconds"].items()}
    updates = found["updates"]
    yield Result(f"view-{name}", updates, "1/s", None, aim, "aim", smaller_is_better=False, details=details)
    yield Result(f"view-{name}-answer", 1e3 * found["answer"], "ms", None, 1e3 * ANSWER, "aim")
