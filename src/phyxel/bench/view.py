"""The live viewer: updates a second that reach a plain client in another process, and how soon it answers a hand."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from collections.abc import Iterator
from typing import Any

from phyxel.bench.registry import BenchSetting, Result, resident_bytes
from phyxel.scene import Scene

SECONDS = 8.0
"""For which updates are counted."""
SOAK = 600.0
"""Seconds of dragging, melting and resetting."""
BREATH = 0.5
"""Seconds between two looks at the memory."""
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
name = "bear"
shape = "bear"
points = {points}
model = "{model}"
nodes = {nodes}
material = {{ preset = "gelatin", young = 1.2e5, damping = 1.5e-3 }}

[[collider]]
kind = "ground"
friction = 0.7
"""


def view(setting: BenchSetting) -> Iterator[Result]:
    """A scan of 134,345 surfels with 64 modes that is held by its neck, and a bear of 20,000 that stands on the ground,
    by modes and by phyxels."""
    path = setting.model("igea.ply")
    source = 'shape = "bust"' if path is None else f'file = "{path}"'
    yield from _measured("igea", IGEA.format(source=source), 30.0, setting)
    yield from _measured("bear", BEAR.format(points=20_000, nodes=800, model="modal"), 60.0, setting)
    yield from _measured("bear-phyxel", BEAR.format(points=20_000, nodes=800, model="phyxel"), 60.0, setting)


def soak(setting: BenchSetting) -> Iterator[Result]:
    """Ten minutes of hands: how much the memory of the viewer grows after the first of them, in per cent."""
    held: list[int] = []
    ended = threading.Event()

    def watch() -> None:
        while not ended.wait(BREATH):
            held.append(resident_bytes())

    watching = threading.Thread(target=watch)
    watching.start()
    try:
        found = _client("play", BEAR.format(points=8000, nodes=300, model="phyxel"), "soak", SOAK, setting)
    finally:
        ended.set()
        watching.join()
    minute = round(60 / BREATH)
    first, last = max(held[:minute]), max(held[-minute:])
    details = {"MB": round(last / 1e6), "rounds": found["rounds"], "complaints": len(found["complaints"])}
    details |= {"first complaint": found["complaints"][0]} if found["complaints"] else {}
    yield Result("view-soak", 100 * (last / first - 1), "% in 10 min", None, 10.0, "aim", details=details)


def _measured(name: str, source: str, aim: float, setting: BenchSetting) -> Iterator[Result]:
    found = _client("count", source, name, SECONDS, setting)
    numbers = found["numbers"]
    details = {"kB": round(found["bytes"] / 1e3), "pace": round(numbers["pace"], 2)}
    details |= {f"{stage} [ms]": round(ms, 1) for stage, ms in numbers["milliseconds"].items()}
    updates = found["updates"]
    yield Result(f"view-{name}", updates, "1/s", None, aim, "aim", smaller_is_better=False, details=details)
    yield Result(f"view-{name}-answer", 1e3 * found["answer"], "ms", None, 1e3 * ANSWER, "aim")


def _client(what: str, source: str, name: str, seconds: float, setting: BenchSetting) -> dict[str, Any]:
    """What a plain client of a world finds."""
    from phyxel.view.hub import Hub
    from phyxel.view.live import Live
    from phyxel.view.server import Server

    hub = Hub()
    with Server(Live(Scene.parse(source, name), hub, setting.device), hub) as server:
        address = server.address.replace("http", "ws") + "live"
        command = [sys.executable, "-m", "phyxel.bench.client", what, address, str(seconds)]
        found: dict[str, Any] = json.loads(
            subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
        )
        return found
