"""The thread that owns a live world, and the queue by which it hears of pages."""

from __future__ import annotations

import queue
import threading
import time

from phyxel.scene import Scene
from phyxel.view.commands import Asked, Command, coalesced
from phyxel.view.live_world import Audience, LiveWorld
from phyxel.world import World

LISTENS = 0.05
"""Wall time for which a world that stands still waits for commands [s]."""
MOST_WAITING = 5000
"""Commands; of pages that send more than the world can hear, some are lost."""


class Live:
    """The live world of a scene. `start` and `stop` it; `joined`, `ask` and `gone` may be called from any thread."""

    def __init__(self, scene: Scene, hub: Audience, device: str | None = None) -> None:
        self.live_world = LiveWorld(scene, hub, device)
        self._waiting: queue.SimpleQueue[Asked] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._run, name="phyxel-world", daemon=True)
        self._stopping = threading.Event()

    @property
    def world(self) -> World | None:
        """The world that is played now; none while the first is being built. Its thread goes on with it."""
        return self.live_world.world

    @property
    def running(self) -> bool:
        """Whether its thread has begun and not ended."""
        return self._thread.is_alive()

    @property
    def waiting(self) -> int:
        """Commands that are still to be heard."""
        return self._waiting.qsize()

    def start(self) -> None:
        """Build the world and let it run, in a thread of its own."""
        self._thread.start()

    def stop(self) -> None:
        """End it, and wait for that."""
        self._stopping.set()
        if self._thread.is_alive():
            self._thread.join()

    def joined(self, page: int) -> None:
        """A page was opened."""
        self._waiting.put((page, "joined"))

    def ask(self, page: int, command: Command) -> None:
        """A page asks for something."""
        if self.waiting > MOST_WAITING:
            self.live_world.notice("too many commands are waiting; this one is lost", page)
        else:
            self._waiting.put((page, command))

    def gone(self, page: int) -> None:
        """A page was closed."""
        self._waiting.put((page, "gone"))

    def _run(self) -> None:
        live = self.live_world
        live.build(live.opened)
        while not self._stopping.is_set():
            for page, asked in coalesced(self._heard()):
                live.obey(page, asked)
            live.go_on()
            if live.runs:
                time.sleep(live.pace.pause())

    def _heard(self) -> list[Asked]:
        """All that pages have asked for since the last update; a world that stands still waits a little for it."""
        heard = []
        try:
            heard.append(self._waiting.get(not self.live_world.runs, LISTENS))
            while True:
                heard.append(self._waiting.get_nowait())
        except queue.Empty:
            return heard
