"""Scene files: what a user writes, checked before anything is done."""

from __future__ import annotations

import hashlib
import itertools
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import resources
from pathlib import Path
from typing import Annotated, Any

import numpy as np
from pydantic import BaseModel, Field, ValidationError

from phyxel.body import Body
from phyxel.errors import PhyxelError, SceneError, did_you_mean
from phyxel.points.load import load
from phyxel.scene.body_tables import BodyPart
from phyxel.scene.event_tables import KINDS, AnyFieldPart, CameraPart, EventPart, OutputPart
from phyxel.scene.performance import Performance
from phyxel.scene.rehearsal import whole_of
from phyxel.scene.tables import ColliderPart, Rate, Table, Triple
from phyxel.scene.verbs import TO_BODY, TO_WORLD, given
from phyxel.world import World


class SceneFile(Table):
    title: str = ""
    seconds: float = Field(default=4.0, gt=0, allow_inf_nan=False)
    fps: float = Field(default=60.0, gt=0, le=1000)
    rate: Rate | None = None
    gravity: Triple = (0.0, -9.81, 0.0)
    body: list[BodyPart] = Field(min_length=1)
    collider: list[Annotated[ColliderPart, Field(discriminator="kind")]] = Field(default=[])
    field: list[Annotated[AnyFieldPart, Field(discriminator="kind")]] = Field(default=[])
    event: list[EventPart] = Field(default=[])
    camera: CameraPart = CameraPart()
    output: OutputPart = OutputPart()


class Scene:
    """A scene: `Scene.read("jelly.toml").world()`."""

    def __init__(self, content: SceneFile, name: str, folder: Path, source: str, shown: str) -> None:
        self.content, self.name, self.folder, self.source = content, name, folder, source
        self._shown = shown
        self._check_names()

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
            content = _validated(tomllib.loads(source), shown)
        except tomllib.TOMLDecodeError as error:
            raise SceneError(f"{shown}: not valid TOML: {error}") from error
        return Scene(content, name, folder, source, shown)

    def _check_names(self) -> None:
        shown, bodies, colliders = self._shown, self.body_names(), self.collider_names()
        for what, names in (("bodies", bodies), ("colliders", colliders)):
            repeated = {name for name in names if names.count(name) > 1}
            if repeated:
                raise SceneError(f'{shown}: two {what} are named "{min(repeated)}"; give each a name of its own')
        fields = [part.name for part in self.content.field if part.name]
        if len(set(fields)) < len(fields):
            raise SceneError(f"{shown}: two fields have the same name; give each a name of its own")
        shared = set(fields) & set(colliders)
        if shared:
            raise SceneError(f'{shown}: a field and a collider are named "{min(shared)}"; give each a name of its own')
        holds = [hold for part in self.content.body for hold in part.hold]
        holds += [event.hold for event in self.content.event if event.hold]
        coming = [event.field.name for event in self.content.event if event.field and event.field.name]
        held = [hold.name for hold in holds if hold.name is not None]
        known = {"hold": held, "field or collider": [*colliders, *fields, *coming]}
        for index, event in enumerate(self.content.event):
            self._check_event(f"{shown}: event[{index}]", event, bodies, known)

    @staticmethod
    def _check_event(what: str, event: EventPart, bodies: list[str], known: dict[str, list[str]]) -> None:
        """Refuse names that nothing in the scene has; `known` are those of other things than bodies, by kind."""
        if event.body is None and given(event, TO_BODY) and len(bodies) > 1:
            raise SceneError(f"{what}.body: missing; there are {', '.join(bodies)}")
        if event.body is not None and event.body not in bodies and whole_of(event.body, bodies) is None:
            raise SceneError(f'{what}.body = "{event.body}": no such body{did_you_mean(event.body, bodies)}')
        for key, verb in (TO_BODY | TO_WORLD).items():
            name, names = getattr(event, key), known.get(verb.refers_to, [])
            if verb.refers_to and name is not None and name not in names:
                hint = did_you_mean(name, names)
                raise SceneError(f'{what}.{key} = "{name}": no {verb.refers_to} has this name{hint}')

    def body_names(self) -> list[str]:
        """A name for each body: its own, or one made of its shape or file that no other has."""
        bases = [part.shape or Path(str(part.file)).stem for part in self.content.body]
        return _names([part.name for part in self.content.body], bases)

    def collider_names(self) -> list[str]:
        """A name for each collider: its own, or one made of its kind that no other has."""
        return _names([part.name for part in self.content.collider], [part.kind for part in self.content.collider])

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
        content = _validated(self.content.model_copy(update=update).model_dump(exclude_none=True), self._shown)
        return Scene(content, self.name, self.folder, self.source, self._shown)

    def state(self) -> dict[str, Any]:
        """All of it, for `restored`."""
        content = self.content.model_dump(exclude_none=True)
        return {"name": self.name, "folder": str(self.folder.resolve()), "source": self.source, "content": content}

    @staticmethod
    def restored(state: dict[str, Any]) -> Scene:
        """From what `state` gave."""
        shown = f"{state['name']}.toml"
        return Scene(_validated(state["content"], shown), state["name"], Path(state["folder"]), state["source"], shown)

    def with_output(self, **changes: Any) -> Scene:
        """The same scene with other keys of [output]; None takes one away."""
        output = {**self.content.output.model_dump(), **changes}
        content = {**self.content.model_dump(exclude_none=True), "output": _without_none(output)}
        return Scene(_validated(content, self._shown), self.name, self.folder, self.source, self._shown)

    def fingerprint(self) -> str:
        """What decides how it moves, as a hash: everything but the length and the output."""
        kept = self.content.model_dump_json(exclude={"seconds", "output", "camera", "title"})
        return hashlib.sha256(kept.encode()).hexdigest()

    def performance(self, device: str | None = None) -> Performance:
        """This scene being played: its world, with its events on the clock, to which more can happen."""
        return Performance(self, device)

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

    @contextmanager
    def blaming(self, key: str) -> Iterator[None]:
        """What goes wrong inside is said with the file's name and the key."""
        try:
            yield
        except PhyxelError as error:
            raise SceneError(f"{self._shown}: {key}: {error}") from error


def _validated(content: Any, shown: str) -> SceneFile:
    """The content of a scene file, or a `SceneError` with a line for each key that is wrong."""
    try:
        return SceneFile.model_validate(content)
    except ValidationError as error:
        lines: dict[str, str] = {}
        for one in error.errors():
            # Where a key may be one thing or another, the validator names each; users know only the key.
            place = tuple(part for part in one["loc"] if isinstance(part, int) or str(part).isidentifier())
            lines.setdefault(str(place), f"{shown}: {_explained({**one, 'loc': place})}")
        raise SceneError("\n".join(lines.values())) from error


def _without_none(table: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in table.items() if value is not None}


def _with_file(part: BodyPart, file: Path, name: str) -> BodyPart:
    """A body made from a file in place of its built-in shape, as large as the shape."""
    shape = load(str(part.shape), points=100)
    size = part.size or float(np.max(shape.upper - shape.lower))
    return part.model_copy(update={"file": str(file.resolve()), "shape": None, "name": name, "size": size})


def _explained(error: Any) -> str:
    """One pydantic error as a sentence: key, value, what is allowed, and the near miss."""
    said = [part for part in error["loc"] if part not in KINDS]
    key = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in said).lstrip(".")
    if error["type"] == "union_tag_not_found":
        return f"{key}.kind: missing"
    if error["type"] == "union_tag_invalid":
        tag, known = error["ctx"]["tag"], error["ctx"]["expected_tags"].replace("'", "").split(", ")
        return f"{key}.kind = {tag!r}: not known{did_you_mean(tag, known)}"
    if error["type"] == "extra_forbidden":
        return f"{key}: not known{did_you_mean(str(error['loc'][-1]), _keys_beside(error['loc']))}"
    if key == "body" and error["type"] in ("missing", "too_short", "list_type"):
        return "body: a scene needs at least one body, written as [[body]] with two pairs of brackets"
    if error["type"] == "missing":
        return f"{key}: missing"
    message = error["msg"].removeprefix("Value error, ")
    if isinstance(error["input"], dict | list) and error["type"] in ("value_error", "too_short"):
        return f"{key}: {message}"
    hint = ""
    if error["type"] == "literal_error" and isinstance(error["input"], str):
        known = error["ctx"]["expected"].replace("'", "").replace(" or ", ", ").split(", ")
        hint = did_you_mean(error["input"], known)
    return f"{key} = {error['input']!r}: {message[0].lower() + message[1:]}{hint}"


def _keys_beside(location: tuple[Any, ...]) -> list[str]:
    """The keys allowed where an unknown key was found."""
    part: Any = SceneFile
    for step in location[:-1]:
        if step in KINDS:
            part = KINDS[step]
        elif isinstance(step, str) and step in part.model_fields:
            part = _part_in(part.model_fields[step].annotation)
    return list(part.model_fields)


def _part_in(annotation: Any) -> Any:
    """The table type inside list[...] or ... | None."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    return (
        next(found for inner in annotation.__args__ if (found := _part_in(inner)) is not None)
        if hasattr(annotation, "__args__")
        else None
    )


def _names(given: list[str | None], bases: list[str]) -> list[str]:
    """A name for each: the given one, or one made of its base that no other has."""
    taken = {name for name in given if name}
    names: list[str] = []
    for name, base in zip(given, bases, strict=True):
        numbered = (f"{base}-{k}" for k in itertools.count(2))
        names.append(name or next(free for free in itertools.chain([base], numbered) if free not in taken))
        taken.add(names[-1])
    return names


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
