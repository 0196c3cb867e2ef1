"""What hands and panels did to a running world, as events of a scene that does the same to the bit.

Whatever happens to a performance is written down here with its time. The scene as it was started, with all this as its
events, is a scene file: `phyxel run` makes the same steps from tick to tick of the clock, since frames fall on ticks.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from phyxel.body.holds import OpenPath
from phyxel.region import Vector
from phyxel.scene import Scene
from phyxel.scene.body_tables import HoldPart, KeyPart
from phyxel.scene.event_tables import EventPart
from phyxel.scene.performance import Performance
from phyxel.scene.tables import Triple
from phyxel.world import World

FINE = 1e-5
"""Share of a node spacing that hands are led to: digits beyond it would only be long."""
FPS = 60
"""Frames a second, at most, where those of the scene do not fall on ticks."""
WIDE = 110
"""Columns beyond which a list has its entries on lines of their own."""


@dataclass
class Trail:
    """A hold that is led about, and how."""

    body: str
    name: str
    event: EventPart
    _path: OpenPath
    _world: World
    _digits: int

    def to(self, time: float, place: Vector) -> None:
        """Be displaced by `place` [m] from where it was taken at a time [s] to come, straight from where it is now."""
        last, where = self._path.keys[-1]
        if last < self._world.time:
            self._path.to(self._world.time, where)
        self._path.to(time, np.round(place, self._digits))

    @property
    def hold(self) -> EventPart:
        """The event, with all of the way."""
        path = [KeyPart(at=at, to=to) for at, to in _turns(self._path.keys)]
        assert self.event.hold is not None
        return self.event.model_copy(update={"hold": self.event.hold.model_copy(update={"path": path})})


def _turns(keys: list[tuple[float, Triple]]) -> Iterable[tuple[float, Triple]]:
    """Keyframes without those at which it rests before and after."""
    for index, (at, to) in enumerate(keys):
        if index in (0, len(keys) - 1) or not keys[index - 1][1] == to == keys[index + 1][1]:
            yield at, to


class Journal:
    """What has happened to a performance of a scene by hand."""

    def __init__(self, scene: Scene) -> None:
        self._scene = scene
        self._entries: list[EventPart | Trail] = []

    def record(self, event: EventPart) -> None:
        """Write down what `Performance.happen` let happen."""
        self._entries.append(event)

    def grab(
        self, performance: Performance, body: str, name: str, surfel: int | None = None, near: Triple | None = None
    ) -> Trail:
        """Take hold of a body now, at a surfel of it or near a place, to lead it about: a hold of this name."""
        told = EventPart(at=0.0, body=body, hold=HoldPart(name=name, surfel=surfel, near=near))
        event, path = performance.grab(told)
        unit = next(one.unit for one in performance.world.bodies if one.name == body)
        trail = Trail(body, name, event, path, performance.world, math.ceil(-math.log10(FINE * unit)))
        self._entries.append(trail)
        return trail

    @property
    def events(self) -> list[EventPart]:
        """All that has happened, in order."""
        return [entry.hold if isinstance(entry, Trail) else entry for entry in self._entries]

    def scene(self, performance: Performance) -> Scene:
        """A scene in which the same happens."""
        return Scene.parse(self.toml(performance), self._scene.name, Path("/"))

    def toml(self, performance: Performance) -> str:
        """That scene as a file, until now at least."""
        content, events = self._scene.content, self.events
        rates = [] if content.rate is None else [content.rate]
        rated = any(event.at == 0 and event.rate is not None for event in content.event)
        if not rated and (rate := _only_rate(events)) is not None:
            rates, events = [rate], events[1:]  # what a world starts with is nothing that happens to it
        happening = [*content.event, *events]
        fps = _frames_on_ticks(content.fps, [*rates, *(event.rate for event in happening if event.rate is not None)])
        seconds = math.ceil(max(content.seconds, performance.world.time) * fps - 1e-6) / fps
        changes = {"seconds": seconds, "fps": fps, "event": happening}
        whole = content.model_copy(update=changes | ({"rate": rates[0]} if rates else {}))
        table = whole.model_dump(exclude_defaults=True, exclude_none=True)
        for part in (*table["body"], *table.get("collider", [])):
            if "file" in part:
                part["file"] = str((self._scene.folder / Path(part["file"]).expanduser()).resolve())
        return f"{_heading(self._scene.name, len(events))}\n{document(table)}"


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
    shown = "".join(letter if letter.isprintable() else " " for letter in name)
    return (
        f"# {shown}, saved from the live view: the scene, and {done}.\n"
        "# phyxel run FILE plays it again, to the bit; phyxel view FILE goes on from its beginning.\n"
    )


# TOML as a person would write it: short tables and lists on one line


def document(table: Mapping[str, Any]) -> str:
    """A TOML document of a table whose own tables and lists of tables stand under headings."""
    lines, below = [], []
    for key, value in table.items():
        if isinstance(value, Mapping):
            below += ["", f"[{key}]", *_lines(value)]
        elif _is_tables(value):
            below += [line for one in value for line in ("", f"[[{key}]]", *_lines(one))]
        else:
            lines.append(f"{key} = {_written(value)}")
    return "\n".join([*lines, *below, ""])


def _is_tables(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(one, Mapping) for one in value)


def _lines(table: Mapping[str, Any]) -> list[str]:
    """Its keys, lists of tables last: they are long."""
    return [f"{key} = {_written(value)}" for key, value in sorted(table.items(), key=lambda item: _is_tables(item[1]))]


def _written(value: Any) -> str:
    if isinstance(value, Mapping):
        return f"{{ {', '.join(_lines(value))} }}" if value else "{}"
    if isinstance(value, list | tuple):
        entries = [_written(one) for one in value]
        line = f"[{', '.join(entries)}]"
        return line if len(line) <= WIDE else "\n".join(["[", *(f"    {entry}," for entry in entries), "]"])
    if isinstance(value, float):
        return repr(float(value))
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")  # JSON allows it, TOML does not
