"""What is in a scene file: its tables, its names, and what is said of mistakes in it."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, Field, ValidationError

from phyxel.errors import PhyxelError, SceneError, did_you_mean
from phyxel.scene.body_tables import BodyPart
from phyxel.scene.event_tables import KINDS, AnyFieldPart, CameraPart, EventPart, OutputPart
from phyxel.scene.tables import ColliderPart, Rate, Table, Triple
from phyxel.scene.things import whole_of
from phyxel.scene.verbs import TO_BODY, TO_WORLD, given


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

    def body_names(self) -> list[str]:
        """A name for each body: its own, or one made of its shape or file that no other has."""
        bases = [part.shape or Path(str(part.file)).stem for part in self.body]
        return _names([part.name for part in self.body], bases)

    def collider_names(self) -> list[str]:
        """A name for each collider: its own, or one made of its kind that no other has."""
        return _names([part.name for part in self.collider], [part.kind for part in self.collider])

    def check_names(self, shown: str) -> None:
        """Refuse names that two things have, or that nothing has; `shown` is what the file is called."""
        bodies, colliders = self.body_names(), self.collider_names()
        for what, names in (("bodies", bodies), ("colliders", colliders)):
            repeated = {name for name in names if names.count(name) > 1}
            if repeated:
                raise SceneError(f'{shown}: two {what} are named "{min(repeated)}"; give each a name of its own')
        fields = [part.name for part in self.field if part.name]
        if len(set(fields)) < len(fields):
            raise SceneError(f"{shown}: two fields have the same name; give each a name of its own")
        shared = set(fields) & set(colliders)
        if shared:
            raise SceneError(f'{shown}: a field and a collider are named "{min(shared)}"; give each a name of its own')
        holds = [hold for part in self.body for hold in part.hold]
        holds += [event.hold for event in self.event if event.hold]
        coming = [event.field.name for event in self.event if event.field and event.field.name]
        held = [hold.name for hold in holds if hold.name is not None]
        known = {"hold": held, "field or collider": [*colliders, *fields, *coming]}
        for index, event in enumerate(self.event):
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


@contextmanager
def blaming(shown: str, key: str) -> Iterator[None]:
    """What goes wrong inside is said with the file's name and the key."""
    try:
        yield
    except PhyxelError as error:
        raise SceneError(f"{shown}: {key}: {error}") from error


def validated(content: Any, shown: str) -> SceneFile:
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
    return next(filter(None, map(_part_in, getattr(annotation, "__args__", ()))), None)


def _names(given: list[str | None], bases: list[str]) -> list[str]:
    """A name for each: the given one, or one made of its base that no other has."""
    taken = {name for name in given if name}
    names: list[str] = []
    for name, base in zip(given, bases, strict=True):
        numbered = (f"{base}-{k}" for k in itertools.count(2))
        names.append(name or next(free for free in itertools.chain([base], numbered) if free not in taken))
        taken.add(names[-1])
    return names
