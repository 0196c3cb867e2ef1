"""What was shown lately, kept so that it can be saved."""

from __future__ import annotations

import math
from collections import deque
from dataclasses import dataclass
from threading import Lock
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from phyxel.view.messages import Snapshot

SHORTEST = 1 / 30.5
"""[s] between two kept snapshots; a hair less than 1/30, so that every second of 60 a second is kept"""


@dataclass(frozen=True)
class Room:
    """How much is kept [s] and [bytes]."""

    seconds: float
    bytes: int


TOLD = 500
"""[bytes] that a message takes, about"""
ROLLING, RECORDED = Room(10.0, 48_000_000), Room(60.0, 200_000_000)
"""Kept of the last seconds, and of a recording."""

Shown = tuple[float, "Snapshot | dict[str, Any]"]
"""time [s], and what was shown or told then"""


class Recorder:
    """Keeps the last seconds of what is shown; when told to record, all from then on until it is told to stop or its
    room is full. A recording is held until it is taken or another begins."""

    def __init__(self, rolling: Room = ROLLING, recorded: Room = RECORDED) -> None:
        self._rolling, self._recorded = rolling, recorded
        self._lock = Lock()
        self._kept: deque[tuple[float, Snapshot | dict[str, Any], int]] = deque()
        self._bytes = 0
        self._last = -math.inf
        self.on = False
        self._held = False

    def record(self, on: bool) -> None:
        """Begin a recording, or end it."""
        with self._lock:
            if on and not self.on:
                self._clear()
            self._held = self.on and not on
            self.on = on

    def add(self, shown: Snapshot | dict[str, Any], now: float) -> bool:
        """Keep what is shown, or told, at `now` [s], unless a picture was only just before; False if a recording had to
        end."""
        told = isinstance(shown, dict)
        with self._lock:
            if self._held or (not told and now - self._last < SHORTEST):
                return True
            size = TOLD if isinstance(shown, dict) else changing_bytes(shown)
            if self.on and self._kept and not self._fits(self._recorded, now, size):
                self.on, self._held = False, True
                return False
            self._last = self._last if told else now
            self._kept.append((now, shown, size))
            self._bytes += size
            while not self.on and len(self._kept) > 1 and not self._fits(self._rolling, now, 0):
                self._bytes -= self._kept.popleft()[2]
            return True

    def _fits(self, room: Room, now: float, more: int) -> bool:
        return now - self._kept[0][0] <= room.seconds and self._bytes + more <= room.bytes

    def _clear(self) -> None:
        self._kept.clear()
        self._bytes = 0

    def take(self) -> list[Shown]:
        """What is kept, each with the time since the first [s]; a recording that has ended makes room for the next."""
        with self._lock:
            taken = [(now - self._kept[0][0], shown) for now, shown, _ in self._kept]
            if self._held:
                self._held = False
                self._clear()
            return taken


def changing_bytes(snapshot: Snapshot) -> int:
    """How much of a snapshot is its own: blobs with a key are shared by many."""
    return sum(len(blob.data) for part in snapshot.parts for blob in part.blobs.values() if blob.key is None)
