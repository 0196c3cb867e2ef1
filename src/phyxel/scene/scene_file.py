"""What is in a scene file: its tables and its names."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field, ValidationError, field_validator

from phyxel.errors import PhyxelError, SceneError, did_you_mean, tell
from phyxel.scene.body_tables import AttachPart, BodyPart
from phyxel.scene.event_tables import AnyFieldPart, CameraPart, EventPart, OutputPart
from phyxel.scene.mistakes import explained
from phyxel.scene.tables import Acceleration, ColliderPart, PerSecond, Rate, Seconds, Table, Triple
from phyxel.scene.things import whole_of
from phyxel.scene.verbs import TO_BODY, TO_WORLD, given


class SceneFile(Table):
    title: str = ""
    seconds: Seconds = Field(default=4.0, gt=0, allow_inf_nan=False)
    fps: PerSecond = Field(default=60.0, gt=0, le=1000)
    rate: Rate | None = None
    gravity: Acceleration = (0.0, -9.81, 0.0)
    body: list[BodyPart] = Field(min_length=1)
    collider: list[Annotated[ColliderPart, Field(discriminator="kind")]] = Field(default=[])
    field: list[Annotated[AnyFieldPart, Field(discriminator="kind")]] = Field(default=[])
    attach: list[AttachPart] = Field(default=[])
    event: list[EventPart] = Field(default=[])
    camera: CameraPart = CameraPart()
    output: OutputPart = OutputPart()

    @field_validator("gravity")
    @classmethod
    def _finite(cls, gravity: Triple) -> Triple:
        if not all(map(math.isfinite, gravity)):
            raise ValueError("give three finite numbers [m/s²]")
        return gravity

    def table(self, folder: Path) -> dict[str, Any]:
        """What differs from the defaults, with whole paths of files that are looked for in `folder`: a scene file that
        can lie anywhere."""
        table = self.model_dump(exclude_defaults=True, exclude_none=True)
        added = [event["add"] for event in table.get("event", []) if "add" in event]
        for part in (*table["body"], *added, *table.get("collider", [])):
            if "file" in part:
                part["file"] = str((folder / Path(part["file"]).expanduser()).resolve())
        return table

    def body_names(self) -> list[str]:
        """A name for each body: its own, or one made of its shape or file that no other has."""
        bases = [part.shape or Path(str(part.file)).stem for part in self.body]
        return _names([part.name for part in self.body], bases)

    def collider_names(self) -> list[str]:
        """A name for each collider: its own, or one made of its kind that no other has."""
        return _names([part.name for part in self.collider], [part.kind for part in self.collider])

    def tell_of_what_comes_too_late(self, shown: str) -> None:
        """Warn of what would only happen after the end."""
        late = [(f"event[{k}].at = {event.at:g}", event.at) for k, event in enumerate(self.event)]
        late += [(f"field[{k}].during = {list(f.during)}", f.during[0]) for k, f in enumerate(self.field) if f.during]
        for what, time in late:
            if time > self.seconds:
                remedy = f"give an earlier time, or write seconds = {math.ceil(time) + 1} at the top"
                tell(f"{shown}: {what}: after the end of the scene at {self.seconds:g} s; {remedy}")

    @property
    def _added(self) -> list[BodyPart]:
        """Bodies that come by events."""
        return [event.add for event in self.event if event.add is not None]

    def words(self) -> set[str]:
        """What decides which kernels its world launches, as `kernels.ready` has it."""
        bodies = [*self.body, *self._added]
        said = {word for part in bodies for word in (part.model, part.integrator) if word}
        said |= {key for event in self.event for key in TO_BODY | TO_WORLD if getattr(event, key) is not None}
        said |= {part.kind for part in [*self.field, *(event.field for event in self.event if event.field)]}
        materials = [part.material for part in bodies] + [event.material for event in self.event if event.material]
        breaks = any(material.strength is not None for material in materials)
        parts = breaks or "cut" in said or any(part.cut for part in bodies)
        there = {
            "strength": breaks,
            "cut": parts,
            "bodies": len(bodies) > 1 or parts,
            "ground": any(part.kind == "ground" for part in self.collider),
            "collider": any(part.kind != "ground" for part in self.collider),
        }
        return said | {word for word, is_there in there.items() if is_there}

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
        ties = [part.name for part in self.attach if part.name]
        named = [*fields, *set(colliders), *ties]
        shared = {name for name in named if named.count(name) > 1}
        if shared:
            what = "two ties, or a tie and a field or collider," if shared & set(ties) else "a field and a collider"
            raise SceneError(f'{shown}: {what} are named "{min(shared)}"; give each a name of its own')
        holds = [hold for part in self.body for hold in part.hold]
        holds += [event.hold for event in self.event if event.hold]
        coming = [event.field.name for event in self.event if event.field and event.field.name]
        held = [hold.name for hold in holds if hold.name is not None]
        known = {
            "body": [part.name or "" for part in self._added],
            "hold": held,
            "field, collider or tie": [*colliders, *fields, *coming, *ties],
        }
        for index, event in enumerate(self.event):
            self._check_event(f"{shown}: event[{index}]", event, bodies, known)

    @staticmethod
    def _check_event(what: str, event: EventPart, bodies: list[str], known: dict[str, list[str]]) -> None:
        """Refuse names that nothing in the scene has; `known` are those of bodies that come
        later and of all other things, by kind."""
        if event.body is None and given(event, TO_BODY) and len(bodies) > 1:
            raise SceneError(f"{what}.body: missing; there are {', '.join(bodies)}")
        there = [*bodies, *known["body"]]
        if event.body is not None and event.body not in there and whole_of(event.body, there) is None:
            raise SceneError(f'{what}.body = "{event.body}": no such body{did_you_mean(event.body, there)}')
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
        for place, said in (explained(one, SceneFile) for one in error.errors()):
            lines.setdefault(str(place), f"{shown}: {said}")  # where a key may be several things, each has an error
        raise SceneError("\n".join(lines.values())) from error


def _names(given: list[str | None], bases: list[str]) -> list[str]:
    """A name for each: the given one, or one made of its base that no other has."""
    taken = {name for name in given if name}
    names: list[str] = []
    for name, base in zip(given, bases, strict=True):
        numbered = (f"{base}-{k}" for k in itertools.count(2))
        names.append(name or next(free for free in itertools.chain([base], numbered) if free not in taken))
        taken.add(names[-1])
    return names
