"""What hands and panels did to a running world, as events of a scene that does the same to the bit.

Whatever happens to a performance is written down here with its time. The scene as it was started, with all this as its
events, is a scene file: `phyxel run` makes the same steps from tick to tick of the clock, since frames fall on ticks.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from threading import RLock
from typing import Any

import numpy as np

from phyxel.body.holds import OpenPath
from phyxel.region import Vector
from phyxel.scene import Scene
from phyxel.scene.body_tables import HoldPart, KeyPart
from phyxel.scene.event_tables import EventPart
from phyxel.scene.performance import Performance
from phyxel.scene.tables import Triple
from phyxel.scene.toml import comment, document
from phyxel.world import World

FINE = 1e-5
"""Share of a node spacing that hands are led to: digits beyond it would only be long."""
TURN_DIGITS = 4
"""Decimals of the degrees by which hands are turned."""
FPS = 60
"""Frames a second, at most, where those of the scene do not fall on ticks."""


@dataclass
class Trail:
    """A hold that is led about, and how."""

    body: str
    name: str
    event: EventPart
    _path: OpenPath
    _turn: OpenPath | None
    """[degrees]; none where it never turns"""
    _world: World
    _digits: int
    _lock: RLock
    """that of the journal"""

    @property
    def turns(self) -> bool:
        return self._turn is not None

    @property
    def degrees(self) -> Triple:
        """How it is turned at last, about x, y, z."""
        return (0.0, 0.0, 0.0) if self._turn is None else self._turn.keys[-1][1]

    def to(self, time: float, place: Vector, turn: Vector | None = None) -> None:
        """Be displaced by `place` [m] from where it was taken, and turned by `turn` [degrees], at a time [s] to come,
        straight and evenly from what it is now."""
        with self._lock:
            self._go_on(self._path, time, np.round(place, self._digits))
            if self._turn is not None and turn is not None:
                self._go_on(self._turn, time, np.round(turn, TURN_DIGITS))

    def _go_on(self, path: OpenPath, time: float, value: Vector) -> None:
        last, where = path.keys[-1]
        if last < self._world.time:
            path.to(self._world.time, where)
        path.to(time, value)

    @property
    def hold(self) -> EventPart:
        """The event, with all of the way."""
        keys: dict[float, dict[str, Triple]] = {}
        for word, way in (("to", self._path), ("turn", self._turn)):
            for at, value in [] if way is None else _turns(way.keys):
                keys.setdefault(at, {})[word] = value
        path = [KeyPart(at=at, to=key.get("to"), turn=key.get("turn")) for at, key in sorted(keys.items())]
        assert self.event.hold is not None
        return self.event.model_copy(update={"hold": self.event.hold.model_copy(update={"path": path})})


def _turns(keys: list[tuple[float, Triple]]) -> Iterable[tuple[float, Triple]]:
    """Keyframes without those at which it rests before and after."""
    for index, (at, to) in enumerate(keys):
        if index in (0, len(keys) - 1) or not keys[index - 1][1] == to == keys[index + 1][1]:
            yield at, to


class Journal:
    """What has happened to a performance of a scene by hand. Written by one thread, and read by any at any time."""

    def __init__(self, scene: Scene, events: Iterable[EventPart] = ()) -> None:
        """`events` have happened already."""
        self._scene = scene
        self._lock = RLock()
        self._entries: list[EventPart | Trail] = [*events]

    def record(self, event: EventPart) -> None:
        """Write down what `Performance.happen` let happen."""
        with self._lock:
            self._entries.append(event)

    def grab(
        self,
        performance: Performance,
        body: str,
        name: str,
        surfel: int | None = None,
        near: Triple | None = None,
        turns: bool = False,
    ) -> Trail:
        """Take hold of a body now, at a surfel of it or near a place, to lead it about: a hold of this name."""
        told = EventPart(at=0.0, body=body, hold=HoldPart(name=name, surfel=surfel, near=near))
        turn = OpenPath(performance.world.time) if turns else None
        event, path = performance.grab(told, turn)
        unit = next(one.unit for one in performance.world.bodies if one.name == body)
        digits = math.ceil(-math.log10(FINE * unit))
        trail = Trail(body, name, event, path, turn, performance.world, digits, self._lock)
        with self._lock:
            self._entries.append(trail)
        return trail

    @property
    def events(self) -> list[EventPart]:
        """All that has happened, in order."""
        with self._lock:
            return [entry.hold if isinstance(entry, Trail) else entry for entry in self._entries]

    def scene(self, performance: Performance) -> Scene:
        """A scene in which the same happens."""
        return Scene.parse(self.toml(performance), self._scene.name, Path("/"))

    def toml(self, performance: Performance, camera: Mapping[str, Any] | None = None) -> str:
        """That scene as a file, until now at least, maybe seen by another camera."""
        content, events = self._scene.content, self.events
        rates = [] if content.rate is None else [content.rate]
        rated = any(event.at == 0 and event.rate is not None for event in content.event)
        if not rated and (rate := _only_rate(events)) is not None:
            rates, events = [rate], events[1:]  # what a world starts with is nothing that happens to it
        happening = [*content.event, *events]
        fps = _frames_on_ticks(content.fps, [*rates, *(event.rate for event in happening if event.rate is not None)])
        seconds = math.ceil(max(content.seconds, performance.world.time) * fps - 1e-6) / fps
        seen = content.camera.model_copy(update=dict(camera or {}))
        changes = {"seconds": seconds, "fps": fps, "event": happening, "camera": seen}
        whole = content.model_copy(update=changes | ({"rate": rates[0]} if rates else {}))
        return f"{_heading(self._scene.name, len(events))}\n{document(whole.table(self._scene.folder))}"


def _only_rate(events: list[EventPart]) -> int | None:
    """The rate that the first of some events sets at the very beginning, if it does nothing else."""
    first = events[0] if events else None
    if first is None or first.rate is None or first != EventPart(at=0.0, rate=first.rate):
        return None
    return first.rate


def _frames_on_ticks(fps: float, rates: list[int]) -> float:
    """Frames a second, those asked for if they fall on ticks of all these rates; else as many as do, up to FPS."""
    common = math.gcd(*rates)
    return fps if not rates or common % fps == 0 else max(k for k in range(1, FPS + 1) if common % k == 0)


def _heading(name: str, count: int) -> str:
    done = f"{count} thing{'' if count == 1 else 's'} that happened to it by hand" if count else "as it was started"
    return comment(f"{name}, saved from the live view: the scene, and {done}.") + comment(
        "phyxel run FILE plays it again, to the bit; phyxel view FILE goes on from its beginning."
    )
