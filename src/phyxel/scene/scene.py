"""Scene files: what a user writes, checked before anything is done."""

from __future__ import annotations

import hashlib
import tomllib
from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np

from phyxel.body import Body
from phyxel.errors import SceneError, did_you_mean
from phyxel.points.load import load
from phyxel.scene.body_tables import BodyPart
from phyxel.scene.performance import Performance
from phyxel.scene.scene_file import SceneFile, validated
from phyxel.world import World


class Scene:
    """A scene: `Scene.read("jelly.toml").world()`."""

    def __init__(self, content: SceneFile, name: str, folder: Path, source: str, shown: str) -> None:
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
    def parse(source: str, name: str = "scene", folder: Path = Path(), shown: str | None = None) -> Scene:
        """A scene from TOML text; files it names are looked for in `folder`."""
        shown = shown or f"{name}.toml"
        try:
            content = validated(tomllib.loads(source), shown)
        except tomllib.TOMLDecodeError as error:
            raise SceneError(f"{shown}: not valid TOML: {error}") from error
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

    def changed(
        self,
        seconds: float | None = None,
        nodes: int | None = None,
        points: int | None = None,
        model: Path | None = None,
        video: bool | None = None,
    ) -> Scene:
        """The same scene for another time, with other numbers of nodes and points in every body, with a file in place
        of every built-in shape (at the shape's size), with or without a video."""
        given = {key: value for key, value in {"nodes": nodes, "points": points}.items() if value is not None}
        bodies = [part.model_copy(update=dict(given)) for part in self.content.body]
        if model is not None:
            names = self.body_names()
            bodies = [
                _with_file(part, model, name) if part.shape else part for part, name in zip(bodies, names, strict=True)
            ]
        update: dict[str, Any] = {"body": bodies}
        if seconds is not None:
            update["seconds"] = seconds
        if video is not None:
            update["output"] = self.content.output.model_copy(update={"video": video})
        content = validated(self.content.model_copy(update=update).model_dump(exclude_none=True), self._shown)
        return Scene(content, self.name, self.folder, self.source, self._shown)

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
        return Scene(validated(content, self._shown), self.name, self.folder, self.source, self._shown)

    def fingerprint(self) -> str:
        """What decides how it moves, as a hash: everything but the length and the output."""
        kept = self.content.model_dump_json(exclude={"seconds", "output", "camera", "title"})
        return hashlib.sha256(kept.encode()).hexdigest()

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


def _with_file(part: BodyPart, file: Path, name: str) -> BodyPart:
    """A body made from a file in place of its built-in shape, as large as the shape."""
    shape = load(str(part.shape), points=100)
    size = part.size or float(np.max(shape.upper - shape.lower))
    return part.model_copy(update={"file": str(file.resolve()), "shape": None, "name": name, "size": size})


def gallery_names() -> list[str]:
    """Names of the scenes that come with Phyxel."""
    folder = resources.files("phyxel") / "gallery"
    return sorted(Path(item.name).stem for item in folder.iterdir() if item.name.endswith(".toml"))


def gallery(name: str) -> Scene:
    """A scene that comes with Phyxel."""
    if name not in gallery_names():
        raise SceneError(f'"{name}": no such scene in the gallery{did_you_mean(name, gallery_names())}')
    source = (resources.files("phyxel") / "gallery" / f"{name}.toml").read_text(encoding="utf-8")
    return Scene.parse(source, name=name)


def find_scene(name_or_path: str) -> Scene:
    """A scene file, or a gallery scene by its name."""
    if Path(name_or_path).suffix == ".toml" or Path(name_or_path).is_file():
        return Scene.read(name_or_path)
    try:
        return gallery(name_or_path)
    except SceneError as error:
        raise SceneError(f"{error}. A scene file ends in .toml") from error
