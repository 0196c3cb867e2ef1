"""A finished run drawn anew, in another way: from the states it kept, else by playing its scene again."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from phyxel import device as dev
from phyxel import kernels
from phyxel.body.inside import Inside
from phyxel.errors import PhyxelError
from phyxel.progress import Report
from phyxel.run.run import PictureWriter, scene_of
from phyxel.world import World

WATCHED = 12
"""Frames that are looked at, where states are kept, before the first is drawn: the scale of colours fits all."""


class Redrawing:
    """Pictures of some frames of the run in a folder."""

    def __init__(
        self, folder: Path, looks: dict[str, Any], frames: str | None = None, device: str | None = None
    ) -> None:
        """`looks` are the options of `Inside`, None for those left open; `frames` is "a:b" as Python counts, or one
        number; all if left out."""
        self.folder, self._device = folder, device
        Inside(**{key: value for key, value in looks.items() if value is not None})  # says what is wrong with them
        self._scene = scene_of(folder).with_output(**looks)
        self.frames = _chosen(frames, _frame_count(folder))
        """their numbers"""
        self._states = {int(path.stem): path for path in (folder / "checkpoints").glob("*.npz")}

    @property
    def has_states(self) -> bool:
        """Whether the run has kept what it takes to draw the frames."""
        return set(self.frames) <= set(self._states)

    @property
    def name(self) -> str:
        """Of the files: render-FIELD-MODE."""
        output = self._scene.content.output
        return f"render-{output.field}-{output.mode}"

    def draw(self, report: Report) -> Iterator[tuple[int, Any]]:
        """The pictures with the numbers of their frames, one after the other."""
        from phyxel.run.stage import scene_stage

        output, camera = self._scene.content.output, self._scene.content.camera
        kernels.ready(self._scene.content.words() | output.words() | {"video"}, dev.pick(self._device))
        world = self._scene.world(self._device)
        stage = scene_stage(world, camera, output)
        if stage.insight and self.has_states and output.range is None and len(self.frames) > 1:
            watched = self.frames[:: -(-len(self.frames) // WATCHED)]
            for done, _ in enumerate(self._moments(world, watched, report)):
                report("looking for the largest values", done, len(watched))
                stage.insight.watch(world)
            world = self._scene.world(self._device)
        for done, index in enumerate(self._moments(world, self.frames, report)):
            report("drawing", done, len(self.frames))
            yield index, stage.draw(world)

    def _moments(self, world: World, frames: Sequence[int], report: Report) -> Iterator[int]:
        """Bring a world to one frame after the other, ascending: exactly as the run did."""
        note, fps = self._scene.fingerprint(), self._scene.fps
        at = -1
        for index in frames:
            if index in self._states:
                world.restore(self._states[index], note=note)
            else:
                earlier = [known for known in self._states if at < known < index]
                if earlier:
                    at = max(earlier)
                    world.restore(self._states[at], note=note)
                for step in range(at + 1, index + 1):
                    report("playing it again", step, index)
                    world.advance(max(step / fps - world.time, 0.0))
            at = index
            yield index

    def save(self, out: Path | None, report: Report) -> Path:
        """Write pictures into a folder and a video beside it, or of a single frame one picture; where it is."""
        from phyxel.render.files import encode, format_of, save_picture

        if len(self.frames) == 1:
            path = out or self.folder / f"{self.name}-{self.frames[0]:04d}.png"
            format_of(path)
            for _, picture in self.draw(report):
                save_picture(picture[..., :3], path)
            return path
        folder = out or self.folder / self.name
        files = []
        with PictureWriter() as pictures:
            for index, picture in self.draw(report):
                files.append(folder / f"{index:04d}.png")
                pictures.write(picture, files[-1])
            pictures.finish()
        video = folder.with_name(f"{folder.name}.mp4")
        encode(files, video, self._scene.fps)
        return video


def _frame_count(folder: Path) -> int:
    count = 0
    for line in (folder / "run.jsonl").read_text().splitlines():
        with suppress(json.JSONDecodeError):  # the last may have been cut off
            count = json.loads(line)["frame"] + 1
    if count == 0:
        raise PhyxelError(f"{folder}: this run has no frame yet; let it run first")
    return count


def _chosen(frames: str | None, count: int) -> list[int]:
    """The numbers that "a:b", "a:b:step" or "k" mean among so many frames."""
    try:
        parts = [int(part) if part else None for part in (frames or ":").split(":")]
        chosen = [range(count)[parts[0] or 0]] if len(parts) == 1 else list(range(count)[slice(*parts)])
    except IndexError:
        chosen = []
    except (ValueError, TypeError):
        raise PhyxelError(f'frames = "{frames}": give a number, or a range such as 10:40') from None
    if not chosen:
        raise PhyxelError(f"frames = {frames}: the run has frames 0 to {count - 1}")
    return sorted(chosen)
