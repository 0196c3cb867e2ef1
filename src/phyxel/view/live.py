"""The thread that owns a live world, and the queue by which it hears of pages."""

from __future__ import annotations

import queue
import threading
import time

from phyxel import progress
from phyxel.scene import Scene
from phyxel.view.busy import EVERY
from phyxel.view.commands import Asked, Command, Plain, Save, coalesced
from phyxel.view.live_world import LiveWorld
from phyxel.view.past import words
from phyxel.view.running_world import Audience
from phyxel.world import World

LISTENS = 0.05
"""Wall time for which a world that stands still waits for commands [s]."""
MOST_WAITING = 5000
"""Commands; of pages that send more than the world can hear, some are lost."""
LONG = 0.3
"""Wall time of a deed that people wait for [s]."""
UNFINISHED = "what the world is still busy with is not in the file: save again when it is done"


class Live:
    """The live world of a scene. `start` and `stop` it; `joined`, `ask` and `gone` may be called from any thread."""

    def __init__(self, scene: Scene, hub: Audience, device: str | None = None) -> None:
        self.live_world = LiveWorld(scene, hub, device)
        self._waiting: queue.SimpleQueue[Asked] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._run, name="phyxel-world", daemon=True)
        self._watch = threading.Thread(target=self._look, name="phyxel-busy", daemon=True)
        self._stopping = threading.Event()
        self._obeying, self._turned = False, 0.0
        """whether it does what pages asked for, and when it last heard of them"""

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
        self._watch.start()

    def stop(self) -> None:
        """End it, and wait for that."""
        self._stopping.set()
        for thread in (self._thread, self._watch):
            if thread.is_alive():
                thread.join()

    def joined(self, page: int) -> None:
        """A page was opened."""
        self._waiting.put((page, "joined"))

    def ask(self, page: int, command: Command) -> None:
        """A page asks for something."""
        if isinstance(command, Save):
            if (self.waiting or self._obeying) and time.monotonic() - self._turned > LONG:
                self.live_world.notice(UNFINISHED, page, "info")
            self.live_world.save(page, command)
        elif command.do == "cancel":
            if not self.live_world.busy.cancel():
                self._forget_deeds()
        elif self.waiting > MOST_WAITING:
            self.live_world.notice("too many commands are waiting; this one is lost", page)
        else:
            self._waiting.put((page, command))

    def _forget_deeds(self) -> None:
        """Of what waits to be heard, nothing is done that could be undone."""
        for page, asked in [self._waiting.get_nowait() for _ in range(self.waiting)]:
            if isinstance(asked, Command) and words(asked) is not None:
                asked = Plain(do="cancel", n=asked.n)
            self._waiting.put((page, asked))

    def gone(self, page: int) -> None:
        """A page was closed."""
        self._waiting.put((page, "gone"))

    def _look(self) -> None:
        """See to it that pages hear what the world is busy with."""
        while not self._stopping.wait(EVERY):
            self.live_world.busy.look()

    def _run(self) -> None:
        with progress.heard_by(self.live_world.busy.heard):
            self._live()

    def _live(self) -> None:
        live = self.live_world
        live.build(live.opened)
        while not self._stopping.is_set():
            heard = self._heard()
            self._obeying, self._turned = bool(heard), time.monotonic()
            for page, asked in coalesced(heard):
                live.obey(page, asked)
            self._obeying = False
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
