"""A run: a scene played into a folder, frame by frame, so that it can be stopped at any moment and gone on with.

OUT/scene.toml      what was run, with all that the command line changed
OUT/frames/         0000.ply, 0000.vtp, 0000.usdc, 0000-splats.ply (points), 0000-mesh.obj (meshes), 0000.png (pictures)
OUT/run.jsonl       one line a frame: time, energies, momentum, volume, surfels, milliseconds by stage
OUT/checkpoints/    0030.npz, the last two or, with output.states, all; scene.json: what was run, of what file
OUT/preview.mp4     encoded from the saved pictures
OUT/scene.usdc      joined from frames/0000.usdc, ...; open_in_blender.py opens it
OUT/points.pvd      which names frames/0000.vtp, ... and their times
"""

from __future__ import annotations

import json
import os
import shutil
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from phyxel import device as dev
from phyxel import export, kernels, progress
from phyxel.errors import CheckpointError, PhyxelError, brief, knows_its_arguments
from phyxel.export.meshes import check_has_mesh
from phyxel.export.usd import require_usd
from phyxel.files import check_folder, whole_file
from phyxel.notebook import Fact, Showable
from phyxel.run.video import Video
from phyxel.scene import Scene
from phyxel.world import Frame, World

if TYPE_CHECKING:
    from phyxel.render.stage import Stage

KEPT_CHECKPOINTS = 2
"""The newest, and the one before in case it is damaged."""
SCENE_NOTE = "scene.json"
"""Beside the checkpoints: the scene as it was run, with all that the command line changed."""


@dataclass
class Stopwatch:
    """Milliseconds spent in each stage of the current frame."""

    spent: dict[str, float] = field(default_factory=dict)

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        start = time.perf_counter()
        yield
        self.spent[name] = self.spent.get(name, 0.0) + 1e3 * (time.perf_counter() - start)


class PictureWriter:
    """Writes pictures on a thread of its own: compressing one takes longer than drawing it."""

    MOST_WAITING = 4

    def __init__(self) -> None:
        self._thread = ThreadPoolExecutor(max_workers=1)
        self._waiting: list[Future[None]] = []

    def __enter__(self) -> PictureWriter:
        return self

    def __exit__(self, *_: object) -> None:
        self._thread.shutdown(wait=True)

    def write(self, picture: NDArray[np.uint8], path: Path) -> None:
        """Write a picture soon; wait first if too many are under way."""
        from phyxel.render.files import save_png

        if len(self._waiting) >= self.MOST_WAITING:
            self._waiting.pop(0).result()
        self._waiting.append(self._thread.submit(save_png, np.ascontiguousarray(picture[..., :3]), path))

    def finish(self) -> None:
        """Wait until all pictures are written."""
        while self._waiting:
            self._waiting.pop(0).result()


@knows_its_arguments
class Run(Showable):
    """A `scene` and the `folder` it is played into, on a `device`: "cpu" or "cuda"; left out, CUDA where there is one.

    >>> scene = px.gallery("demo").changed(seconds=0.05, nodes=100, points=1000)
    >>> run = px.Run(scene, "out/demo")
    >>> run.play()
    0
    >>> run.video()
    <Video out/demo/preview.mp4>
    """

    def __init__(self, scene: Scene, folder: str | os.PathLike[str], device: str | None = None) -> None:
        if not isinstance(scene, Scene):
            raise PhyxelError(
                f"Run: scene = {brief(scene)}: give a Scene, such as px.Scene.read(file) or px.gallery(name)"
            )
        self.scene, self.folder, self._device = scene, Path(folder), device
        self.name = scene.name
        self.frames = round(scene.seconds * scene.fps) + 1
        self._output = scene.content.output

    @staticmethod
    def read(folder: str | os.PathLike[str], device: str | None = None) -> Run:
        """The run that was played into a folder, by Python or by `phyxel run`."""
        return Run(scene_of(Path(folder)), folder, device)

    @property
    def log(self) -> Path:
        return self.folder / "run.jsonl"

    def play(self, resume: bool = False, report: Callable[[dict[str, Any]], None] | None = None) -> int:
        """Play to the end, or `resume` where it was stopped, and return the number of the first frame that was
        computed; `report` gets each line of the log."""
        content = self.scene.content
        kernels.ready(content.words() | content.output.words(), dev.pick(self._device))
        world = self.scene.world(self._device)
        self._check_output(world)
        self._check_folder(resume)
        stage = self._stage(world) if self._output.video else None  # sees the beginning, also when it is gone on with
        first = self._go_on(world) if resume else self._begin()
        if first < self.frames:
            self._note_scene()
        with self.log.open("a", encoding="utf-8") as log, PictureWriter() as pictures:
            for index in range(first, self.frames):
                progress.tell(f"playing {self.name}", index, self.frames)
                row = self._frame(world, stage, pictures, index)
                log.write(json.dumps(row) + "\n")
                log.flush()
                if report is not None:
                    report(row)
                if self._output.states or index % self._output.checkpoint_every == 0 or index == self.frames - 1:
                    pictures.finish()
                    self._save(world, index)
        self._finish()
        progress.tell(f"playing {self.name}", self.frames, self.frames)
        return first

    def video(self) -> Video:
        """The video of it: a notebook plays it, everywhere else its `path` is what it is."""
        path = self.folder / "preview.mp4"
        if not path.is_file():
            remedy = (
                "let it play to its end" if self._output.video else "say video = true in [output], and play it again"
            )
            raise PhyxelError(f"{self.folder}: this run has no video yet; {remedy}")
        return Video(path)

    def facts(self) -> Iterator[Fact]:
        rows = rows_of(self.log) if self.log.is_file() else []
        yield "frames", f"{len(rows)} of {self.frames}, {self.scene.fps:g} a second"
        yield "folder", str(self.folder)
        if rows:
            yield "time", f"{rows[-1]['time']:.2f} s simulated"
            yield from log_facts(rows)

    def thumbnail(self) -> bytes:
        """Of the last frame that was drawn."""
        from phyxel.render.picture import small_copy

        pictures = sorted((self.folder / "frames").glob("*.png"))
        if not pictures:
            raise PhyxelError("no frame of it has been drawn yet")
        return small_copy(pictures[-1])

    def _frame(self, world: World, stage: Stage | None, pictures: PictureWriter, index: int) -> dict[str, Any]:
        watch = Stopwatch()
        with watch.stage("physics"):
            world.advance(max(index / self.scene.fps - world.time, 0.0))
        with watch.stage("surface"):
            surfels = sum(len(body.surface) for body in world.bodies)
        with watch.stage("picture"):
            if stage is not None:
                pictures.write(stage.draw(world), self.folder / "frames" / f"{index:04d}.png")
        with watch.stage("files"):
            self._export(world, index)
        row = {"frame": index, "time": round(world.time, 9), "surfels": surfels} | _sums(world)
        return row | {"milliseconds": {name: round(ms, 3) for name, ms in watch.spent.items()}}

    def _export(self, world: World, index: int) -> None:
        output, frame = self._output, Frame(index, world.time, world.bodies)
        if "ply" in output.points:
            export.ply(frame, self._frame_file(index, ".ply"))
        if "splat" in output.points:
            export.splats(frame, self._frame_file(index, "-splats.ply"))
        if "vtk" in output.points:
            export.vtk(frame, self._frame_file(index, ".vtp"))
        if output.usd:
            which = {"points": "usd" in output.points, "mesh": output.mesh == "usd"}
            export.usd(frame, self._frame_file(index, ".usdc"), fps=self.scene.fps, **which)
        if output.mesh in ("obj", "ply"):
            for body in world.bodies:
                alone = len({one.whole for one in world.bodies}) == 1 and body.name == body.whole
                label = "" if alone else f"-{body.name}"
                export.mesh(body, self._frame_file(index, f"{label}-mesh.{output.mesh}"))

    def _frame_file(self, index: int, ending: str) -> Path:
        return self.folder / "frames" / f"{index:04d}{ending}"

    def _finish(self) -> None:
        """What is made of the saved frames: nothing of it is half-written when a run is stopped."""
        if self._output.video:
            self.encode()
        if self._output.usd:
            export.join_usd(list(self._saved(".usdc").values()), self.folder / "scene.usdc")
            export.blender(self.folder / "scene.usdc", self.folder / "open_in_blender.py", fps=self.scene.fps)
        if "vtk" in self._output.points:
            export.vtk_series(self._saved(".vtp"), self.folder / "points.pvd")

    def _saved(self, ending: str) -> dict[float, Path]:
        """Files of the frames by their time [s], those that are there: a run may be gone on with for other files."""
        files = {k / self.scene.fps: self._frame_file(k, ending) for k in range(self.frames)}
        return {time: file for time, file in files.items() if file.exists()}

    def _stage(self, world: World) -> Stage:
        from phyxel.run.stage import scene_stage

        return scene_stage(world, self.scene.content.camera, self._output)

    # The folder

    def _check_output(self, world: World) -> None:
        """Refuse, before anything is written, what cannot be written later."""
        if self._output.usd:
            require_usd(f'output.{self._output.usd} = "usd"')
        for body in world.bodies:
            _ = body.surface
            if self._output.mesh:
                check_has_mesh(body)
            if self._output.inside:
                body.needs_solid("output.field")

    def _check_folder(self, resume: bool) -> None:
        """Refuse, before anything is written, a folder that cannot be written or holds something else."""
        folder = self.folder
        check_folder(folder)
        if folder.is_dir() and any(folder.iterdir()) and not self.log.exists():
            raise PhyxelError(f"{folder}: holds files that are not a run; give an empty or new folder with --out")
        if resume and not self.log.exists():
            raise PhyxelError(f"{folder}: no run to go on with; leave --resume away to begin one")

    def _begin(self) -> int:
        """An empty folder for a new run; an earlier run's files go."""
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            self.log.write_text("")  # first: it marks the folder as a run
            for old in ("frames", "checkpoints"):
                shutil.rmtree(self.folder / old, ignore_errors=True)
                (self.folder / old).mkdir()
            for old in ("preview.mp4", "scene.usdc", "open_in_blender.py", "points.pvd"):
                (self.folder / old).unlink(missing_ok=True)
            for drawn in self.folder.glob("render-*"):
                shutil.rmtree(drawn) if drawn.is_dir() else drawn.unlink()
        except OSError as error:
            raise PhyxelError(
                f"{self.folder}: cannot be written ({error.strerror}); give another with --out"
            ) from error
        return 0

    def _note_scene(self) -> None:
        with whole_file(self.folder / "scene.toml") as file:
            file.write(self.scene.toml().encode())
        with whole_file(self.folder / "checkpoints" / SCENE_NOTE) as file:
            file.write(json.dumps(self.scene.state()).encode())

    def _save(self, world: World, index: int) -> None:
        folder = self.folder / "checkpoints"
        world.save(folder / f"{index:04d}.npz", note=self.scene.fingerprint())
        for old in [] if self._output.states else sorted(folder.glob("*.npz"))[:-KEPT_CHECKPOINTS]:
            old.unlink()

    def _go_on(self, world: World) -> int:
        """Restore the newest checkpoint; frames after it are made again, with the same bits."""
        checkpoints = sorted((self.folder / "checkpoints").glob("*.npz"))
        if not checkpoints:
            return self._begin()
        newest = checkpoints[-1]
        world.restore(newest, note=self.scene.fingerprint())
        done = int(newest.stem)
        for unfinished in (*self.folder.glob(".*.*"), *self.folder.glob("*/.*.*")):
            unfinished.unlink()
        kept = [row for row in rows_of(self.log) if row["frame"] <= done]
        if len(kept) != done + 1:
            raise CheckpointError(f"{self.log}: {len(kept)} lines up to frame {done}; begin again without --resume")
        with whole_file(self.log) as file:
            file.write("".join(json.dumps(row) + "\n" for row in kept).encode())
        return done + 1

    def encode(self) -> None:
        """The preview, from the pictures that are there."""
        from phyxel.render.files import encode

        encode(sorted((self.folder / "frames").glob("*.png")), self.folder / "preview.mp4", self.scene.fps)


def scene_of(folder: Path) -> Scene:
    """The scene that was run into a folder, with all that the command line changed."""
    if not (folder / "run.jsonl").is_file():
        raise PhyxelError(f"{folder}: no run there; give the folder that `phyxel run` wrote, for example out/demo")
    note = folder / "checkpoints" / SCENE_NOTE
    return Scene.restored(json.loads(note.read_text())) if note.is_file() else Scene.read(folder / "scene.toml")


def as_run(scene: Scene, folder: Path) -> Scene:
    """A scene as it was run into a folder, with what was changed then, if it was that scene."""
    if not (folder / "run.jsonl").is_file():
        return scene
    saved = scene_of(folder)
    return saved if saved.source == scene.source else scene


def _sums(world: World) -> dict[str, Any]:
    """Energies, momentum and volume of all bodies together."""
    parts = [body.diagnostics() for body in world.bodies]
    total = {name: np.sum([part[name] for part in parts], axis=0) for name in parts[0]}
    return {name: np.asarray(value).tolist() for name, value in total.items()}


def log_facts(rows: Sequence[dict[str, Any]]) -> Iterator[Fact]:
    """What the lines of a log say in all."""
    stages = {name: sum(row["milliseconds"][name] for row in rows) / len(rows) for name in rows[0]["milliseconds"]}
    yield "a frame", ", ".join(f"{name} {spent:.1f} ms" for name, spent in stages.items())
    yield "volume", f"{100 * (rows[-1]['volume'] / rows[0]['volume'] - 1):+.2f} %"


def rows_of(log: Path) -> list[dict[str, Any]]:
    """The whole lines of a log; one that was cut off by the end of its process is left out."""
    rows = []
    for line in log.read_text().splitlines():
        with suppress(json.JSONDecodeError):
            rows.append(json.loads(line))
    return rows
