"""Scene files: what a user writes, checked before anything is done."""

from __future__ import annotations

import hashlib
import json
import tomllib
from pathlib import Path
from typing import Any

import numpy as np

from phyxel.body import Body
from phyxel.body.placement import Pose
from phyxel.body.resolution import NodeCount
from phyxel.errors import SceneError, brief, did_you_mean, knows_its_arguments
from phyxel.files import gallery_files
from phyxel.points.load import load
from phyxel.scene.body_tables import BodyPart
from phyxel.scene.mistakes import explained_syntax
from phyxel.scene.performance import Performance
from phyxel.scene.scene_file import SceneFile, validated
from phyxel.scene.toml import comment, document
from phyxel.world import World

SHAPE_POINTS = 5_000
"""of a built-in shape, to tell where it stands"""


class Scene:
    """A scene, of a file (`Scene.read("jelly.toml")`), of text (`Scene.parse`) or of the gallery.

    >>> scene = px.gallery("demo").changed(seconds=0.5, nodes=100)
    >>> scene.seconds, scene.body_names()
    (0.5, ['bear'])
    >>> world = scene.world()
    """

    def __init__(
        self,
        content: SceneFile,
        name: str = "scene",
        folder: Path = Path(),
        source: str = "",
        shown: str = "scene.toml",
    ) -> None:
        if not isinstance(content, SceneFile):
            made = "px.Scene.read(file), px.Scene.parse(text) or px.gallery(name)"
            raise SceneError(f"Scene({brief(content)}): scenes are made by {made}")
        self.content, self.name, self.folder, self.source = content, name, folder, source
        self._shown = shown
        content.check_names(shown)

    @staticmethod
    def read(path: str | Path) -> Scene:
        """Read a scene file (TOML)."""
        path = Path(path)
        try:
            source = path.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise SceneError(f"{path}: cannot be read ({getattr(error, 'strerror', None) or error})") from error
        return Scene.parse(source, name=path.stem, folder=path.parent, shown=path.name)

    @staticmethod
    @knows_its_arguments
    def parse(source: str, name: str = "scene", folder: Path = Path(), shown: str | None = None) -> Scene:
        """A scene from TOML text; files it names are looked for in `folder`."""
        shown = shown or f"{name}.toml"
        try:
            content = validated(tomllib.loads(source), shown)
        except tomllib.TOMLDecodeError as error:
            raise SceneError(f"{shown}: {explained_syntax(error, source)}") from error
        content.tell_of_what_comes_too_late(shown)
        return Scene(content, name, folder, source, shown)

    def body_names(self) -> list[str]:
        """A name for each body: its own, or one made of its shape or file that no other has."""
        return self.content.body_names()

    def collider_names(self) -> list[str]:
        """A name for each collider: its own, or one made of its kind that no other has."""
        return self.content.collider_names()

    @property
    def seconds(self) -> float:
        return self.content.seconds

    @property
    def fps(self) -> float:
        return self.content.fps

    @knows_its_arguments
    def changed(
        self,
        seconds: float | None = None,
        nodes: NodeCount | None = None,
        points: int | None = None,
        model: Path | None = None,
        video: bool | None = None,
        units: str | None = None,
        up: str | None = None,
    ) -> Scene:
        """The same scene for another time, with other numbers of nodes and points in every body, with a file in place
        of every built-in shape (as large as the shape, standing where it stood), with or without a video; `units` and
        `up` are of the files of all bodies."""
        bodies = [part.model_copy(update=_given(nodes=nodes, points=points)) for part in self.content.body]
        update = _given(seconds=seconds)
        if model is not None:
            bodies = self._with_file(bodies, model)
            update["title"] = f"{model.name} in the scene {self.name}"
        if read_as := _given(units=units, up=up):
            if not any(part.file for part in bodies):
                raise SceneError(f"{self._shown}: no body is made from a file that {', '.join(read_as)} could be of")
            bodies = [part.model_copy(update=read_as) if part.file else part for part in bodies]
        if video is not None:
            update["output"] = self.content.output.model_copy(update={"video": video})
        changed = self.content.model_copy(update=update | {"body": bodies})
        return self._with(changed.model_dump(exclude_none=True))

    def _with_file(self, bodies: list[BodyPart], file: Path) -> list[BodyPart]:
        """Bodies with a file in place of built-in shapes."""
        if not any(part.shape for part in bodies):
            raise SceneError(
                f"{self._shown}: no body is a built-in shape that {file.name} could take the place of; write its name "
                "into the scene"
            )
        names = self.body_names()
        return [_from_file(part, file, name) if part.shape else part for part, name in zip(bodies, names, strict=True)]

    def _with(self, content: dict[str, Any]) -> Scene:
        return Scene(validated(content, self._shown), self.name, self.folder, self.source, self._shown)

    def toml(self) -> str:
        """A scene file of it that can lie anywhere: its own text, unless something was changed since, or it names files
        beside it."""
        table = self.content.table(self.folder)
        if self.source:
            written = validated(tomllib.loads(self.source), self._shown)
            if written.model_dump(exclude_defaults=True, exclude_none=True) == table:
                return self.source
        return f"{comment(f'{self.name}, as it was run; phyxel run FILE runs it again.')}\n{document(table)}"

    def state(self) -> dict[str, Any]:
        """All of it, for `restored`."""
        content = self.content.model_dump(exclude_none=True)
        return {"name": self.name, "folder": str(self.folder.resolve()), "source": self.source, "content": content}

    @staticmethod
    def restored(state: dict[str, Any]) -> Scene:
        """From what `state` gave."""
        shown = f"{state['name']}.toml"
        return Scene(validated(state["content"], shown), state["name"], Path(state["folder"]), state["source"], shown)

    def with_output(self, **changes: Any) -> Scene:
        """The same scene with other keys of [output]; None takes one away."""
        output = self.content.output.model_dump() | changes
        given = {key: value for key, value in output.items() if value is not None}
        content = self.content.model_dump(exclude_none=True) | {"output": given}
        return self._with(content)

    def fingerprint(self) -> str:
        """What decides how it moves, as a hash: everything but the length and the output, and where its files lie."""
        kept = self.content.model_dump(exclude={"seconds", "output", "camera", "title"})
        for part in (*kept["body"], *kept["collider"]):
            if part.get("file"):
                part["file"] = Path(part["file"]).name
        return hashlib.sha256(json.dumps(kept).encode()).hexdigest()

    def performance(self, device: str | None = None) -> Performance:
        """This scene being played: its world, with its events on the clock, to which more can happen."""
        return Performance(self.content, self.folder, self._shown, device)

    def world(self, device: str | None = None) -> World:
        """Build the world of this scene, with its events on the clock."""
        return self.performance(device).world

    def body(self, name: str | None = None, device: str | None = None) -> Body:
        """One body of this scene, held as it is at the start, in a world with nothing else; the only one needs no
        name."""
        names = self.body_names()
        if name is None and len(names) > 1:
            raise SceneError(f"{self._shown}: has several bodies ({', '.join(names)}); say which one")
        if name is not None and name not in names:
            raise SceneError(f'{self._shown}: no body is named "{name}"{did_you_mean(name, names)}')
        index = 0 if name is None else names.index(name)
        part = self.content.body[index].model_copy(update={"name": names[index]})
        alone = self.content.model_copy(update={"body": [part], "collider": [], "field": [], "event": []})
        return Scene(alone, self.name, self.folder, self.source, self._shown).world(device).bodies[0]


def _given(**options: Any) -> dict[str, Any]:
    return {key: value for key, value in options.items() if value is not None}


def _from_file(part: BodyPart, file: Path, name: str) -> BodyPart:
    """A body made from a file in place of its built-in shape, as large as the shape, standing where it stood."""
    cloud = load(str(part.shape), points=SHAPE_POINTS)
    box = cloud.shape or cloud
    placement = Pose(name, part.at, part.place, part.rotate, part.size).of(cloud, box.lower, box.upper)
    size = part.size or float(np.subtract(box.upper, box.lower).max())
    at = tuple(round(float(number), 6) for number in placement.foot(cloud.positions))
    other = {"file": str(file.resolve()), "shape": None, "name": name, "size": size, "at": at, "place": None}
    return part.model_copy(update=other)


def gallery_names() -> list[str]:
    """Names of the scenes that come with Phyxel."""
    return list(gallery_files())


def gallery(name: str) -> Scene:
    """The scene of a `name` that comes with Phyxel; `phyxel gallery` lists them.

    >>> px.gallery("melt").seconds  # [s]
    5.0
    """
    files = gallery_files()
    if name not in files:
        raise SceneError(f'"{name}": no such scene in the gallery{did_you_mean(name, files)}')
    return Scene.parse(files[name].read_text(encoding="utf-8"), name=name)


def find_scene(name_or_path: str) -> Scene:
    """A scene file, or a gallery scene by its name."""
    path = Path(name_or_path)
    if path.suffix == ".toml":
        return Scene.read(path)
    if path.is_file():
        raise SceneError(f'"{path}": no scene file, which ends in .toml; see a scan with phyxel view {path}')
    try:
        return gallery(name_or_path)
    except SceneError as error:
        raise SceneError(f"{error}. A scene file ends in .toml") from error
