"""A finished run, played back: a clock that goes along its frames, which a thread reads ahead of it: from its
point files, or else from its kept states."""

from __future__ import annotations

import math
import queue
import threading
import time
from bisect import bisect_right
from concurrent.futures import Future, ThreadPoolExecutor
from functools import cached_property
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import warp as wp
from numpy.typing import NDArray

from phyxel import device as dev
from phyxel.contact.colliders import Collider, Ground
from phyxel.errors import CheckpointError, LoadError, PhyxelError
from phyxel.points.ply import read_ply
from phyxel.rotation import tangents
from phyxel.run.run import rows_of, scene_of
from phyxel.run.stage import scene_camera
from phyxel.scene import Scene
from phyxel.surface.discs import Discs, Floats, disc_radii
from phyxel.view.commands import Command, Plain, Seek, Speed, Switch
from phyxel.view.encode import Encoder
from phyxel.view.figures import ColliderFigure, kept
from phyxel.view.hub import RECORDED, Hub, Shown, changing_bytes
from phyxel.view.messages import Blob, DrawnThing, Snapshot
from phyxel.view.snapshots import Snapshots, told_camera

TICK = 1 / 60
"""[s] between two looks at the clock"""
AHEAD = 8
"""frames that are read before they are shown"""
PER_SECOND = 30
"""frames of a run that is saved"""
NUMBERS_EVERY = 0.1
"""[s]"""
MOST_SAID = 3
"""broken frames of which a new page is told"""
PLOTTED, STAGES = ("kinetic", "elastic", "potential", "volume"), ("physics", "surface")
"""Sums and stages of a run's log that pages are told."""


class RunFrames(Protocol):
    """Frames of a run."""

    numbers: list[int]
    """of those that are there, ascending"""

    def snapshot(self, number: int, time: float) -> Snapshot:
        """What is seen in a frame; a `PhyxelError` if it cannot be read."""


def frames_of(folder: Path, scene: Scene, device: str | None) -> RunFrames:
    """The point files of a run, or else its states."""
    points = _numbered(folder / "frames", ".ply")
    if points:
        return PointFrames(points, scene, device)
    states = _numbered(folder / "checkpoints", ".npz")
    if states:
        return StateFrames(states, scene, device)
    raise PhyxelError(
        f'{folder}: this run has kept neither points nor states; run it again with points = "ply" or states = true'
    )


def _numbered(folder: Path, ending: str) -> dict[int, Path]:
    files = {int(path.stem): path for path in folder.glob(f"*{ending}") if path.stem.isdecimal()}
    return dict(sorted(files.items()))


class PointFrames:
    """Surfels from PLY files. These hold no sizes: discs are as large as is needed to cover the surface."""

    def __init__(self, files: dict[int, Path], scene: Scene, device: str | None) -> None:
        self._files, self._device = files, dev.pick(device)
        self.numbers = list(files)
        made = [part.collider(scene.folder) for part in scene.content.collider]
        self._ground = max((one.height for one in made if isinstance(one, Ground)), default=None)
        solid = [one for one in made if isinstance(one, Collider)]
        self._colliders = [ColliderFigure(one, self._device) for one in solid]
        self._look = scene.content.body[0].look
        self._encoder = Encoder(self._device)
        self._radii: dict[int, Floats] = {}
        """of as many discs"""
        self._size: float | None = None

    def snapshot(self, number: int, time: float) -> Snapshot:
        positions, normals, colors = read_surfels(self._files[number])
        encoded = self._encoder.encode(self._discs(positions, normals))
        if self._size is None:
            self._size = max(float(np.linalg.norm(np.ptp(positions, axis=0))), 1e-9)
        rgba = np.concatenate([colors, np.full((len(colors), 1), 255, np.uint8)], axis=1)
        blobs = {"records": Blob(encoded.records), "colors": kept(rgba.tobytes())}
        about = {"look": self._look, "sheet": False, "pose": None, "valued": False, "collider": False}
        part = DrawnThing("surfels", "surfels", encoded.about() | about, blobs)
        around = [figure.part(f"collider {k}", time) for k, figure in enumerate(self._colliders)]
        return Snapshot(self._about(number, time), (part, *around))

    def _about(self, number: int, time: float) -> dict[str, Any]:
        """What is said of a frame that nobody's hands are in."""
        about = {"frame": number, "time": time, "ground": self._ground, "size": self._size}
        return about | {"legend": None, "plane": None, "pins": [], "grabs": []}

    def _discs(self, positions: Floats, normals: Floats) -> Discs:
        count = len(positions)
        if count not in self._radii:
            self._radii = {count: disc_radii(positions) if count > 6 else np.full(count, 0.01)}
        origin = 0.5 * (positions.min(axis=0) + positions.max(axis=0))
        radius = self._radii[count][:, None]
        a, b = tangents(normals)
        fields = [positions - origin, radius * a, radius * b, normals]
        x, a, b, n = (wp.array(np.asarray(one, np.float32), dtype=wp.vec3, device=self._device) for one in fields)
        return Discs(x, a, b, n, n, origin)


def read_surfels(path: Path) -> tuple[Floats, Floats, NDArray[np.uint8]]:
    """Positions [m] in double, normals and colours (0..255) of a point file that a run wrote, each (m, 3)."""
    vertex = read_ply(path).get("vertex", {})
    try:
        x, n, color = (
            np.stack([np.asarray(vertex[name]) for name in names], axis=1)
            for names in (("x", "y", "z"), ("nx", "ny", "nz"), ("red", "green", "blue"))
        )
    except KeyError as error:
        raise LoadError(f"{path.name}: has no {error}; it is not a frame of a run") from None
    if not len(x) or not (np.isfinite(x).all() and np.isfinite(n).all()):
        raise LoadError(f"{path.name}: no points, or some that are nowhere")
    return x.astype(np.float64), n, color.astype(np.uint8)


class StateFrames:
    """The world itself, as it was in each frame that has a checkpoint."""

    def __init__(self, files: dict[int, Path], scene: Scene, device: str | None) -> None:
        self._files, self._scene, self._device = files, scene, device
        self.numbers = list(files)

    @cached_property
    def _sight(self) -> Snapshots:
        return Snapshots(self._scene.world(self._device))

    def snapshot(self, number: int, time: float) -> Snapshot:
        try:
            return self._restored(number)
        except CheckpointError:  # a world that is past an event cannot go back before it
            del self._sight
            return self._restored(number)

    def _restored(self, number: int) -> Snapshot:
        self._sight.world.restore(self._files[number], note=self._scene.fingerprint())
        return self._sight.snapshot(number, [], [])


class Playback:
    """Shows a run to the pages of a hub."""

    def __init__(self, folder: Path, hub: Hub, device: str | None = None) -> None:
        self._hub, self.scene = hub, scene_of(folder)
        self._frames = frames_of(folder, self.scene, device)
        self._log = Log(folder, self.scene, self._frames.numbers)
        self._reader = Reader(self._frames, self._log)
        self._camera: dict[str, Any] = {}
        self._asked: queue.SimpleQueue[tuple[int, Command]] = queue.SimpleQueue()
        self._heard: dict[int, int] = {}
        self._ending = threading.Event()
        self._thread = threading.Thread(target=self._play, name="phyxel-playback", daemon=True)
        self._place, self._speed, self._paused = 0.0, 1.0, False
        self._shown: int | None = None
        self._broken: dict[int, str] = {}
        """frames that could not be read, and why"""

    # What a show does, on the network's thread

    def start(self) -> None:
        self._hub.tell({"kind": "busy", "text": f"reading {self.scene.name} ..."})
        self._camera = camera_for(self.scene, self._reader.first())
        self._hub.tell({"kind": "ready"})
        self._thread.start()

    def stop(self) -> None:
        self._ending.set()
        if self._thread.is_alive():
            self._thread.join()
        self._reader.close()

    def joined(self, page: int) -> None:
        self._hub.tell(self._about(), page)
        self._hub.tell({"kind": "history", **self._log.history()}, page)
        for text in filter(None, [self._log.missing, *list(self._broken.values())[:MOST_SAID]]):
            self._hub.tell({"kind": "notice", "level": "warning", "text": text}, page)

    def ask(self, page: int, command: Command) -> None:
        self._asked.put((page, command))

    def gone(self, page: int) -> None:
        self._heard.pop(page, None)

    # The clock

    def _play(self) -> None:
        last = numbers_at = time.monotonic()
        pace = 1.0
        while not self._ending.wait(TICK):
            self._hear()
            now = time.monotonic()
            watched = not self._paused and self._hub.pages  # it begins when somebody is there
            moved = self._show(self._place + (self._speed * (now - last) if watched else 0.0))
            pace += 0.1 * (float(moved) - pace)
            last = now
            if now - numbers_at >= NUMBERS_EVERY:
                numbers_at = now
                self._hub.tell(self._numbers(pace))

    def _show(self, place: float) -> bool:
        """Go to a time, unless its frame is still being read: then the clock waits for it."""
        end = self._log.duration
        place = min(place, end)
        index = self._log.index(place)
        frame = self._reader.get(index)
        if not frame.done():
            return False
        ended = place >= end > self._place and not self._paused
        self._place = place
        if index != self._shown:
            self._shown = index
            try:
                self._hub.publish(frame.result(), self._heard)
            except PhyxelError as error:
                self._say_once(index, str(error))
        if ended:
            self._paused = True
            self._hub.tell(self._about())
        return True

    def _say_once(self, index: int, text: str) -> None:
        if index not in self._broken:
            self._broken[index] = text
            self._hub.tell({"kind": "notice", "level": "warning", "text": text})

    def _hear(self) -> None:
        while not self._asked.empty():
            page, command = self._asked.get()
            self._heard[page] = max(command.n, self._heard.get(page, 0))
            self._do(page, command)
            self._hub.tell(self._about())

    def _do(self, page: int, command: Command) -> None:
        match command:
            case Switch(do="pause"):
                self._paused = command.on
                if not command.on and self._place >= self._log.duration:
                    self._place = 0.0
            case Plain(do="step"):
                self._paused = True
                self._place = self._log.time(self._log.index(self._place) + 1)
            case Plain(do="restart" | "reset"):
                self._place, self._paused = 0.0, False
            case Speed():
                self._speed = command.factor
            case Seek():
                self._place = float(np.clip(command.time, 0.0, self._log.duration))
            case _:
                text = f"{command.do}: a finished run can be watched, not touched; open its scene for that"
                self._hub.tell({"kind": "notice", "level": "info", "text": text}, page)

    # What is told

    def _about(self) -> dict[str, Any]:
        return about_run(self.scene, self._camera, self._log.duration) | {"paused": self._paused, "speed": self._speed}

    def _numbers(self, pace: float) -> dict[str, Any]:
        """As the run has written them; how long frames take to be shown is as it is now."""
        row = self._log.row(self._shown or 0)
        spent = row.get("milliseconds", {})
        stages = {name: spent[name] for name in STAGES if name in spent}
        stages |= {"encoding": self._reader.spent, "sending": self._hub.sending}
        return {
            "kind": "numbers",
            "time": self._log.time(self._shown or 0),
            "pace": pace,
            "updates": 0.0 if self._paused else min(1 / TICK, self.scene.fps * self._speed) * pace,
            "milliseconds": stages,
            **{name: row.get(name) for name in PLOTTED},
            "surfels": row.get("surfels"),
            "pages": len(self._hub.pages),
        }


class Log:
    """Times and numbers of the frames that are there, from what the run wrote of each."""

    def __init__(self, folder: Path, scene: Scene, numbers: list[int]) -> None:
        self.numbers = numbers
        rows = {row["frame"]: row for row in rows_of(folder / "run.jsonl") if isinstance(row, dict) and "frame" in row}
        self._rows = [dict(rows.get(number, {})) for number in numbers]
        self._times = [
            float(row.get("time", number / scene.fps)) for row, number in zip(self._rows, numbers, strict=True)
        ]
        whole = next((row["volume"] for row in self._rows if row.get("volume")), 1.0)
        for row in self._rows:
            if "volume" in row:
                row["volume"] = row["volume"] / whole
        lost = sorted(set(rows) - set(numbers))
        first = ", ".join(map(str, lost[:5])) + (", ..." if len(lost) > 5 else "")
        self.missing = f"{len(lost)} of {len(rows)} frames are not there: {first}" if lost else ""
        """words about frames that the run had and that have not been kept"""

    @property
    def duration(self) -> float:
        """[s]"""
        return self._times[-1]

    def index(self, time: float) -> int:
        """Which of the frames is seen at a time [s]: the last one up to then."""
        return max(bisect_right(self._times, time + 1e-9) - 1, 0)

    def time(self, index: int) -> float:
        """[s] of a frame, or of the last one."""
        return self._times[min(index, len(self._times) - 1)]

    def row(self, index: int) -> dict[str, Any]:
        return self._rows[index]

    def history(self) -> dict[str, list[Any]]:
        """Numbers of all frames, for plots."""
        return {"time": self._times, **{name: [row.get(name) for row in self._rows] for name in PLOTTED}}


class Reader:
    """Reads frames on a thread of its own, those first that will be shown next."""

    def __init__(self, frames: RunFrames, log: Log) -> None:
        self._frames, self._log = frames, log
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="phyxel-frames")
        self._read: dict[int, Future[Snapshot]] = {}
        self.spent = 0.0
        """[ms] that reading a frame took lately"""

    def get(self, index: int) -> Future[Snapshot]:
        """A frame, maybe not read yet; those after it are read next, and others forgotten."""
        window = range(index, min(index + AHEAD, len(self._log.numbers)))
        for old in set(self._read) - set(window):
            self._read.pop(old).cancel()
        for wanted in window:
            if wanted not in self._read:
                self._read[wanted] = self._thread.submit(self._take, wanted)
        return self._read[index]

    def _take(self, index: int) -> Snapshot:
        began = time.perf_counter()
        snapshot = self._frames.snapshot(self._log.numbers[index], self._log.time(index))
        self.spent += 0.1 * (1e3 * (time.perf_counter() - began) - self.spent)
        return snapshot

    def first(self) -> Snapshot:
        """The first frame that can be read; what is wrong with the first of all if none can."""
        refused: PhyxelError | None = None
        for index in range(len(self._log.numbers)):
            try:
                return self.get(index).result()
            except PhyxelError as error:
                refused = refused or error
        raise PhyxelError(f"none of the frames can be read: {refused}")

    def close(self) -> None:
        self._thread.shutdown(wait=True, cancel_futures=True)


def camera_for(scene: Scene, snapshot: Snapshot) -> dict[str, Any]:
    """Eye and target [m] and field of view [degrees]: as the scene has them, else such that all is seen."""
    seen = [part.about for part in snapshot.parts if not part.about["collider"]]
    lower = np.min([about["lower"] for about in seen], axis=0)
    upper = np.max([about["upper"] for about in seen], axis=0)
    if snapshot.about["ground"] is not None:
        lower[1] = min(lower[1], snapshot.about["ground"])
    return told_camera(scene_camera(lower, upper, scene.content.camera, scene.content.output))


def about_run(scene: Scene, camera: dict[str, Any], duration: float) -> dict[str, Any]:
    """What pages are told of a run."""
    shown = {"field": "none", "mode": "surface", "plane": None, "surface": None}
    told: dict[str, Any] = {"kind": "scene", "mode": "run", "name": scene.name, "title": scene.content.title}
    told |= {"camera": camera, "bodies": [], "models": [], "fields": [], "gravity": list(scene.content.gravity)}
    told |= {"units": {}, "shown": shown, "paused": False, "speed": 1.0}
    return told | {"duration": duration, "fps": scene.fps}


def recording_of(folder: Path, device: str | None = None) -> tuple[dict[str, Any], list[Shown]]:
    """A run as it is saved: what is told of it, and its frames, at most `PER_SECOND` of them and no more in all than
    a recording may have."""
    scene = scene_of(folder)
    frames = frames_of(folder, scene, device)
    log = Log(folder, scene, frames.numbers)
    shown: list[Shown] = [(0.0, {"kind": "history", **log.history()})]
    every, last = 1 / PER_SECOND, -math.inf
    camera: dict[str, Any] = {}
    for index, number in enumerate(frames.numbers):
        at = log.time(index)
        if at - last < 0.99 * every:
            continue
        try:
            snapshot = frames.snapshot(number, at)
        except PhyxelError:
            continue
        if not camera:
            camera = camera_for(scene, snapshot)
            every = max(every, log.duration * changing_bytes(snapshot) / RECORDED.bytes)
        shown.append((at, snapshot))
        last = at
    return about_run(scene, camera, log.duration), shown
