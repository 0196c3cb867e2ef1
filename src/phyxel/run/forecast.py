"""How long a run will still take, and what would make it quicker."""

from __future__ import annotations

import math
from collections.abc import Iterator
from statistics import median
from typing import Any

from phyxel.body.resolution import USUAL_NODES
from phyxel.models.kind import KINDS
from phyxel.scene.scene_file import SceneFile

WARMING_UP = 2
"""Frames at the start of a run that tell nothing: the first is not moved, the second compiles."""
FEWEST, RECENT = 3, 10
"""Frames that are enough to tell, and the newest ones, which are told by: what melts or breaks gets slower."""
WORTH_SAYING = 30.0
"""[s] left"""
GROWN = 2.0
"""times what was said last, from which on it is said anew"""
ALMOST_ALL = 0.8
"""share of the time in one stage"""


class Forecast:
    """Of a run of a scene with so many frames, by the lines of its log."""

    def __init__(self, content: SceneFile, frames: int) -> None:
        self._content, self._frames = content, frames
        self._recent: list[dict[str, float]] = []
        """milliseconds by stage"""
        self._heard = 0
        self._last = -1
        self._said = WORTH_SAYING / GROWN
        self._hinted = False

    def hear(self, row: dict[str, Any]) -> list[str]:
        """Take a line of the log; what there is to say now."""
        self._heard, self._last = self._heard + 1, row["frame"]
        if self._heard > WARMING_UP:
            self._recent = [*self._recent, row["milliseconds"]][-RECENT:]
        left = self.left
        if left is None or left < GROWN * self._said:
            return []
        self._said = left
        lines = [f"about {time_text(left)} left: a frame takes {', '.join(self._spent())}"]
        if not self._hinted and (stage := self._dominant()):
            self._hinted = True
            lines.append(f"almost all of it is {stage}; {self._remedy(stage)}")
        return lines

    @property
    def left(self) -> float | None:
        """Seconds until the last frame is there, as soon as that can be told."""
        if len(self._recent) < FEWEST:
            return None
        return 1e-3 * sum(self._stages().values()) * (self._frames - 1 - self._last)

    def _stages(self) -> dict[str, float]:
        """Milliseconds of a frame by stage, as they are now: one slow frame among several does not count."""
        return {stage: median(row[stage] for row in self._recent) for stage in self._recent[0]}

    def _spent(self) -> Iterator[str]:
        stages = self._stages()
        for stage, spent in sorted(stages.items(), key=lambda item: -item[1]):
            if spent > 0.01 * sum(stages.values()):
                yield f"{stage} {time_text(1e-3 * spent)}"

    def _dominant(self) -> str:
        """The stage that takes almost all of the time, if one does."""
        stages = self._stages()
        slowest = max(stages, key=lambda stage: stages[stage])
        return slowest if stages[slowest] > ALMOST_ALL * sum(stages.values()) else ""

    def _remedy(self, stage: str) -> str:
        bodies = self._content.body
        if stage == "physics":
            nodes = max(USUAL_NODES if part.nodes == "auto" else part.nodes for part in bodies)
            able = any(KINDS[part.model].can("melt") for part in bodies)
            other = ', or model = "modal" for bodies that neither melt nor break' if able else ""
            return f"fewer nodes help (--nodes {max(nodes // 2, 8)}){other}"
        if stage == "surface":
            return 'fewer points on the bodies (points = ...) or surface = "carried" help'
        if stage == "picture":
            return "--no-video, a smaller width and height in [output] or fewer points on the bodies help"
        return "fewer points on the bodies or fewer formats in [output] help"


def time_text(seconds: float) -> str:
    """A time as people say it."""
    if seconds < 1:
        return f"{1e3 * seconds:.0f} ms"
    if seconds < 90:
        return f"{seconds:.0f} s" if seconds >= 10 else f"{seconds:.1f} s"
    if seconds < 5400:
        return f"{math.ceil(seconds / 60)} min"
    return f"{seconds / 3600:.1f} h"
