"""A plain client of the viewer, in a process of its own: `python -m phyxel.bench.client count|play ADDRESS SECONDS`.

`count` counts the updates that reach it, then pulls the first body, to and fro, and takes the time
from each command to the update that has heard it. `play` pulls, softens, melts, sets, drops and resets all the time.
Prints one JSON object.
"""

from __future__ import annotations

import json
import statistics
import sys
import time
from typing import Any

import numpy as np
from websockets.sync.client import ClientConnection, connect

from phyxel.view.messages import read

WARM = 3.0
"""Seconds before it counts: kernels are loaded, the machine is awake."""
PULLS = 40
"""Of a median."""
AMPLITUDE = 0.1
"""How far a pull goes, over the distance of the eye."""


class Client:
    """Reads what a viewer sends."""

    def __init__(self, socket: ClientConnection) -> None:
        self._socket = socket
        self._kept: dict[str, bytes] = {}
        self._number = 0
        self._acknowledges = False
        """whether it says what it has seen, as pages do: then no old updates wait on their way"""
        self.camera: dict[str, Any] = {}
        self.middle = np.zeros(3)
        """of the first body [m]"""
        self.numbers: dict[str, Any] = {}
        self.complaints: list[str] = []
        """what the viewer refused, and why its world stopped"""

    def update(self) -> tuple[dict[str, Any], int]:
        """What the next update says of itself, and its size [bytes]."""
        while True:
            message = self._socket.recv(timeout=120)
            if isinstance(message, bytes):
                shown = read(message, self._kept)
                box = shown.parts[0].about
                self.middle = 0.5 * (np.array(box["lower"]) + np.array(box["upper"]))
                if self._acknowledges:
                    self._socket.send(json.dumps({"do": "seen", "frame": shown.about["frame"]}))
                return shown.about, len(message)
            told = json.loads(message)
            if told["kind"] == "scene":
                self.camera = told["camera"]
            elif told["kind"] == "numbers":
                self.numbers = told
            elif told["kind"] in ("notice", "blown"):
                self.complaints.append(told["text"])

    def ask(self, do: str, **given: Any) -> int:
        """Send a command; its number."""
        self._number += 1
        self._socket.send(json.dumps({"do": do, "n": self._number, **given}))
        return self._number

    def counted(self, seconds: float) -> dict[str, float]:
        """Updates a second and their size."""
        self.watch(WARM)
        start, sizes = time.perf_counter(), []
        while time.perf_counter() < start + seconds:
            sizes.append(self.update()[1])
        return {"updates": len(sizes) / (time.perf_counter() - start), "bytes": statistics.median(sizes)}

    def pulled(self) -> list[float]:
        """Pull the body, and let go; the time until each pull was heard [s]."""
        self._acknowledges = True
        eye, target = np.array(self.camera["eye"]), self.middle
        ahead, waits = (target - eye).tolist(), []
        self.ask("grab", ray=eye.tolist(), way=ahead, ahead=ahead)
        for k in range(PULLS):
            way = target + AMPLITUDE * np.linalg.norm(target - eye) * np.array([0, np.sin(0.3 * k), 0]) - eye
            start = time.perf_counter()
            self.heard("pull", ray=eye.tolist(), way=way.tolist())
            waits.append(time.perf_counter() - start)
        self.ask("let_go")
        return waits

    def heard(self, do: str, **given: Any) -> None:
        """Send a command, and read until it was heard."""
        number = self.ask(do, **given)
        while self.update()[0]["heard"] < number:
            pass

    def watch(self, seconds: float) -> None:
        """Read for a while."""
        end = time.perf_counter() + seconds
        while time.perf_counter() < end:
            self.update()

    def played(self, seconds: float) -> dict[str, Any]:
        """All that hands can do to a body named "bear", again and again; how often, and what went wrong."""
        end, rounds = time.perf_counter() + seconds, 0
        while time.perf_counter() < end:
            self.pulled()
            self.heard("material", body="bear", numbers={"young": 3e4 if rounds % 2 else 1e5})
            self.heard("drop")
            self.watch(1.0)
            self.heard("melt", body="bear")
            self.watch(2.0)
            self.pulled()
            self.heard("solidify", body="bear")
            self.watch(0.5)
            self.heard("restart" if rounds % 3 else "reset")
            self.watch(0.5)
            rounds += 1
        return {"rounds": rounds, "complaints": self.complaints}


def main(what: str, address: str, seconds: float) -> None:
    with connect(address, max_size=None, compression=None) as socket:
        client = Client(socket)
        while not client.camera:
            client.update()
        if what == "play":
            found = client.played(seconds)
        else:
            found = client.counted(seconds) | {"answer": statistics.median(client.pulled()), "numbers": client.numbers}
        print(json.dumps(found))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], float(sys.argv[3]))
