"""Between the thread that moves the world and the thread that serves its pages: what is to be sent to whom.

Of pictures only the newest waits, so that a slow page skips some and never holds memory; messages wait in order.
What was shown lately is kept, so that it can be saved.
"""

from __future__ import annotations

import json
import math
import time
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from threading import Lock
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from phyxel.view.messages import Snapshot


SHORTEST = 1 / 30.5
"""[s] between two kept snapshots; a hair less than 1/30, so that every second of 60 a second is kept"""
MOST_UNSEEN = 2
"""frames on their way to a page that says which it has drawn"""
MOST_MESSAGES = 256
"""waiting for one page: it does not read if there are more"""
REPLACED = ("numbers", "scene", "progress")
"""messages that say all anew: the newest is enough"""


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
        self.last_kept = -math.inf
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
            if self._held or (not told and now - self.last_kept < SHORTEST):
                return True
            size = TOLD if isinstance(shown, dict) else changing_bytes(shown)
            if self.on and self._kept and not self._fits(self._recorded, now, size):
                self.on, self._held = False, True
                return False
            self.last_kept = self.last_kept if told else now
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


class Page:
    """What waits for one page, and what it has. Used by the thread that serves pages; the hub's lock guards it."""

    def __init__(self, number: int, wake: Callable[[], object]) -> None:
        self.number, self.wake = number, wake
        self.messages: deque[tuple[str, str]] = deque()
        """kind and text"""
        self.known: set[str] = set()
        """keys of the blobs it keeps"""
        self.has_newest = True
        self._unseen: deque[int] = deque()
        self._acknowledges = False

    @property
    def ready(self) -> bool:
        """Whether it can take another frame: it has drawn most of those that were sent, or never says."""
        return not self._acknowledges or len(self._unseen) < MOST_UNSEEN

    def sent(self, frame: int) -> None:
        self._unseen.append(frame)
        while len(self._unseen) > MOST_UNSEEN:
            self._unseen.popleft()

    def saw(self, frame: int) -> None:
        """It has drawn this frame, so it has got all those before."""
        self._acknowledges = True
        while self._unseen and self._unseen.popleft() != frame:
            pass

    def put(self, kind: str, text: str) -> None:
        if kind in REPLACED:
            for old in [one for one in self.messages if one[0] == kind]:
                self.messages.remove(old)
        self.messages.append((kind, text))

    @property
    def overdue(self) -> bool:
        """Whether it has stopped reading."""
        return len(self.messages) > MOST_MESSAGES


class Hub:
    """What the world tells its pages; all of it may be called from any thread."""

    def __init__(self, overhear: Callable[[dict[str, Any]], None] = lambda message: None) -> None:
        """`overhear` is called with what all pages are told."""
        self._overhear = overhear
        self._lock = Lock()
        self._pages: dict[int, Page] = {}
        self._count = 0
        self._newest: tuple[Snapshot, Mapping[int, int]] | None = None
        self._scene: dict[str, Any] | None = None
        self._busy: dict[str, Any] | None = None
        self.recorder = Recorder()
        self.sending = 0.0
        """[ms] that making and sending a frame took lately"""

    @property
    def pages(self) -> tuple[int, ...]:
        """Numbers of the pages that are there."""
        with self._lock:
            return tuple(self._pages)

    @property
    def scene(self) -> dict[str, Any] | None:
        """The newest message about the scene."""
        return self._scene

    def publish(self, snapshot: Snapshot, heard: Mapping[int, int]) -> None:
        """Show a snapshot to all pages; `heard` is the number of the last command that the world heard of each."""
        self._keep(snapshot)
        with self._lock:
            self._newest = snapshot, dict(heard)
            for page in self._pages.values():
                page.has_newest = False
                page.wake()

    def tell(self, message: dict[str, Any], page: int | None = None) -> None:
        """Send a message to one page, or to all."""
        if message["kind"] == "scene":
            message = {**message, "recording": self.recorder.on}
            self._scene = message
        if message["kind"] == "numbers":
            self._keep(message)
        if page is None:
            self._overhear(message)
        text = json_text(message)
        with self._lock:
            if message["kind"] in ("busy", "ready"):
                self._busy = message if message["kind"] == "busy" else None
            told = self._pages.values() if page is None else filter(None, [self._pages.get(page)])
            for one in told:
                one.put(message["kind"], text)
                one.wake()

    def _keep(self, shown: Snapshot | dict[str, Any]) -> None:
        if not self.recorder.add(shown, time.monotonic()):
            self.record(False)
            self.tell({"kind": "notice", "level": "info", "text": "the recording is full and has ended: save it now"})

    def record(self, on: bool) -> None:
        """Keep all that is shown from now on, or only the last seconds; pages are told."""
        self.recorder.record(on)
        if self._scene is not None:
            self.tell(self._scene)

    # For the server

    def join(self, wake: Callable[[], object]) -> Page:
        """A new page, which is shown the newest snapshot at once, or told what it has to wait for; `wake` says that
        something waits for it."""
        with self._lock:
            self._count += 1
            page = self._pages[self._count] = Page(self._count, wake)
            page.has_newest = self._newest is None
            if self._busy is not None:
                page.put("busy", json_text(self._busy))
            wake()
            return page

    def leave(self, page: Page) -> None:
        with self._lock:
            self._pages.pop(page.number, None)

    def saw(self, page: Page, frame: int) -> None:
        with self._lock:
            page.saw(frame)
            page.wake()

    def next(self, page: Page) -> str | bytes | None:
        """What is to be sent to a page now: a message, else a frame that it has not got, else nothing."""
        with self._lock:
            if page.messages:
                return page.messages.popleft()[1]
            if page.has_newest or not page.ready or self._newest is None:
                return None
            page.has_newest = True
            snapshot, heard = self._newest
            page.sent(snapshot.about["frame"])
        return snapshot.message(page.known, {"heard": heard.get(page.number, 0)})

    def spent(self, seconds: float) -> None:
        """Making and sending a frame took so long."""
        self.sending += 0.1 * (1e3 * seconds - self.sending)


def json_text(message: Any) -> str:
    """As JSON, with null for numbers that JSON does not have."""
    try:
        return json.dumps(message, allow_nan=False)
    except ValueError:
        return json.dumps(_finite(message))


def _finite(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _finite(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(one) for one in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
