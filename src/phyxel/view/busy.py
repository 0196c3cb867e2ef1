"""What a live world is busy with: pages are told of it as soon as it takes long, and may end it."""

from __future__ import annotations

import time
from collections.abc import Callable
from threading import Lock
from typing import Any

LONG = 0.12
"""Wall time after which pages are told what goes on [s]: well before people wonder."""
EVERY = 0.05
"""Wall time between two looks at it [s]."""


class Busy:
    """One deed at a time: begun and ended by the world's thread; any other may look at it or cancel it."""

    def __init__(self, tell: Callable[[dict[str, Any]], None], clock: Callable[[], float] = time.monotonic) -> None:
        self._tell, self._clock = tell, clock
        self._lock = Lock()
        self._text: str | None = None
        self._began = 0.0
        self._ends = self._told = False
        """whether it can be cancelled, and whether pages know of it"""
        self._step: tuple[str, int, int] | None = None
        """of it, that pages do not know of yet"""
        self.is_cancelled = False

    def begin(self, text: str, ends: bool = False) -> None:
        """A deed begins, which pages are told of if it takes long; `ends`: it can be cancelled."""
        with self._lock:
            self._text, self._ends, self._began = text, ends, self._clock()

    def say(self, text: str) -> None:
        """It takes long, as is known beforehand: tell pages at once what it is."""
        with self._lock:
            self._text = text
            self._tell_of_it()

    def heard(self, what: str, done: int, most: int) -> None:
        """Something long has come so far (see `phyxel.progress`)."""
        with self._lock:
            self._step = what, done, most

    def look(self) -> None:
        """Tell pages what goes on, if it takes long, and how far it is."""
        with self._lock:
            if self._text is None or self._clock() < self._began + LONG:
                return
            if not self._told:
                self._tell_of_it()
            if self._step is not None:
                what, done, most = self._step
                self._step = None
                self._tell({"kind": "progress", "text": what, "done": done, "most": most})

    def end(self) -> bool:
        """It is done; whether it took long."""
        with self._lock:
            if was_told := self._told:
                self._tell({"kind": "ready"})
            self._text, self._step = None, None
            self._ends = self._told = self.is_cancelled = False
            return was_told

    def cancel(self) -> bool:
        """Let it end, if it can; whether there is anything that can."""
        with self._lock:
            if self._ends and not self.is_cancelled:
                self.is_cancelled = True
                self._tell({"kind": "progress", "text": "stopping ...", "done": 0, "most": 0})
            return self._ends

    def _tell_of_it(self) -> None:
        self._told = True
        self._tell({"kind": "busy", "text": f"{self._text} ...", "ends": self._ends})
