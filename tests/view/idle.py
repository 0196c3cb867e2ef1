"""A show without a world, for tests of what is between it and the pages."""

import threading
from typing import Any

import numpy as np

from phyxel.view.hub import Hub
from phyxel.view.messages import Blob, DrawnThing, Snapshot

SCENE = {"kind": "scene", "mode": "live", "name": "stand-in", "paused": False, "bodies": []}


def snapshot(frame: int, surfels: int = 10) -> Snapshot:
    """Some bytes that change and some that do not."""
    records = np.random.default_rng(frame).bytes(16 * surfels)
    blobs = {"records": Blob(records), "colors": Blob(bytes(4 * surfels), "grey")}
    about = {"count": surfels, "lower": [0, 0, 0], "upper": [1, 1, 1], "finest": 0.1, "valued": False}
    return Snapshot({"frame": frame, "time": frame / 60}, (DrawnThing("body", "surfels", about, blobs),))


class IdleShow:
    """Shows a new snapshot 100 times a second and writes down what pages do."""

    def __init__(self, hub: Hub, surfels: int = 10) -> None:
        self._hub, self._surfels = hub, surfels
        self._ending = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self.frame = 0
        self.asked: list[tuple[int, Any]] = []
        self.here: list[int] = []
        self.left: list[int] = []

    def start(self) -> None:
        self._thread.start()

    def _run(self) -> None:
        while not self._ending.wait(0.01):
            self.frame += 1
            self._hub.publish(snapshot(self.frame, self._surfels), self._numbers())

    def _numbers(self) -> dict[int, int]:
        return {page: command.n for page, command in self.asked}

    def stop(self) -> None:
        self._ending.set()
        self._thread.join()

    def joined(self, page: int) -> None:
        self.here.append(page)
        self._hub.tell(SCENE, page)

    def ask(self, page: int, command: object) -> None:
        self.asked.append((page, command))

    def gone(self, page: int) -> None:
        self.left.append(page)
