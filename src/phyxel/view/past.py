"""What was done to a live world, and how things stood before each deed: what undo goes back to."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from phyxel.scene import Scene
from phyxel.view.commands import Command
from phyxel.view.play import Moment

LEVELS, ROOM = 50, 400_000_000
"""Deeds that can be undone, and [bytes] that all their moments may take; the newest is always kept."""
LULL = 1.0
"""Wall time after which what comes in streams is another deed [s]."""
DEEDS = {
    "grab": "pulling", "pin": "pinning", "unpin": "taking out pins", "push": "pushing", "cut": "cutting",
    "drop": "dropping {body}", "restart": "restarting", "reset": "resetting", "ease": "easing the work",
    "material": "changing the material of {body}", "preset": "making {body} of {name}", "gravity": "changing gravity",
    "model": "changing the model of {body}", "melt": "melting {body}", "solidify": "solidifying {body}",
    "open": "opening {name}", "brush": "brushing",
}  # fmt: skip
"""What can be undone, in words, by the names of commands."""
STREAMED = {"material", "gravity", "push", "brush"}
"""Commands of which many are one deed: those of a slider that is moved, or of a stroke."""
ANEW = {"restart", "reset", "ease", "model"}
"""Commands that build another world and leave the one that is there alone."""


def words(command: Command | str) -> str | None:
    """What a command does, if it can be undone."""
    if isinstance(command, str) or command.do not in DEEDS:
        return None
    said = {"body": "all", **{key: value for key, value in command if value is not None}}
    return DEEDS[command.do].format(**said)


@dataclass(frozen=True)
class PastDeed:
    """A deed, and how things stood before it."""

    deed: str
    command: str
    moment: Moment
    scenes: tuple[Scene, Scene]
    """what reset and restart go back to"""


class Past:
    """Levels of undo, the newest last."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._levels: list[PastDeed] = []
        self._stream: tuple[object, float] | None = None
        """what came last of a stream, and when"""

    @property
    def newest(self) -> str | None:
        """The deed that is undone next, in words."""
        return self._levels[-1].deed if self._levels else None

    @contextmanager
    def before(
        self, page: int, command: Command, look: Callable[[], tuple[Moment, tuple[Scene, Scene]]]
    ) -> Iterator[None]:
        """Inside, a deed is done: remember how things stand, unless it is refused."""
        stream = (page, command.do, getattr(command, "body", None)) if command.do in STREAMED else None
        goes_on = self._stream is not None and self._stream[0] == stream and self._clock() < self._stream[1] + LULL
        self._stream = None if stream is None else (stream, self._clock())
        level = None if goes_on else PastDeed(words(command) or command.do, command.do, *look())
        self._levels += [] if level is None else [level]
        try:
            yield
        except Exception:
            self._levels = [one for one in self._levels if one is not level]
            raise
        self._forget_oldest()

    def pop(self) -> PastDeed | None:
        """The newest level, which is forgotten here."""
        self._stream = None
        return self._levels.pop() if self._levels else None

    def _forget_oldest(self) -> None:
        del self._levels[:-LEVELS]
        while len(self._levels) > 1 and sum(level.moment.bytes for level in self._levels) > ROOM:
            del self._levels[0]
