"""What a page may ask of the world: one small model for each command, checked before the world hears of it."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from phyxel.errors import PhyxelError
from phyxel.scene.tables import ModelName

LONGEST = 4096
"""Characters of the longest message a page may send."""
LARGEST_FILE = 200_000_000
"""Bytes of a file that a page may send."""
LARGEST = 1e12
"""No place, force or number on a page is larger than this: squares and sums of such numbers stay finite."""


def _has_direction(way: tuple[float, float, float]) -> tuple[float, float, float]:
    if not 1e-9 < float(np.linalg.norm(way)) < math.inf:
        raise ValueError("a direction needs a length above 0")
    return way


def _half_turn(spin: tuple[float, float, float]) -> tuple[float, float, float]:
    if not float(np.linalg.norm(spin)) <= math.pi:
        raise ValueError("a turn is at most half a turn, π; give several")
    return spin


Number = Annotated[float, Field(ge=-LARGEST, le=LARGEST, allow_inf_nan=False, strict=True)]
Triple = tuple[Number, Number, Number]
Way = Annotated[Triple, AfterValidator(_has_direction)]
Name = Annotated[str, Field(min_length=1, max_length=200)]
Yes = Annotated[bool, Field(strict=True)]
Count = Annotated[int, Field(ge=0, le=2**53, strict=True)]


class Command(BaseModel):
    """What all commands have: the page's own count of them, so that it can tell what the world has heard."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    do: str
    n: Count = 0


class Aimed(Command):
    """What is done along a ray from the eye, `ray` [m], in the direction `way`."""

    ray: Triple
    way: Way


class Grab(Aimed):
    """Take hold of the surfel under the pointer; `ahead` is where the camera looks."""

    do: Literal["grab"]
    ahead: Way


class Pull(Aimed):
    """The pointer with what it holds is here now."""

    do: Literal["pull"]


class TurnHeld(Command):
    """Turn what is held further, by a rotation vector [rad] of at most half a turn."""

    do: Literal["turn"]
    spin: Annotated[Triple, AfterValidator(_half_turn)]


class LetGo(Command):
    do: Literal["let_go"]
    pin: Yes = False


class Pin(Aimed):
    """Pin the surfel under the pointer where it is; on a pin, take that away."""

    do: Literal["pin"]


class PushAway(Aimed):
    """Push on the surfel under the pointer, away from the eye; `force` [N]."""

    do: Literal["push"]
    force: Annotated[float, Field(gt=0, le=LARGEST, allow_inf_nan=False)] | None = None


class Brush(Aimed):
    """Melt or solidify what is within `radius` [m] of the surfel under the pointer, or make it of a preset."""

    do: Literal["brush"]
    radius: Annotated[float, Field(gt=0, le=LARGEST, allow_inf_nan=False)]
    what: Name


class Cut(Aimed):
    """Cut along a stroke of the pointer, from one direction to another."""

    do: Literal["cut"]
    to_way: Way


class Drop(Command):
    """Lift a body (all, if it has no name) and let it fall."""

    do: Literal["drop"]
    body: Name | None = None


class Plain(Command):
    """What needs no words."""

    do: Literal["unpin", "stop_push", "restart", "reset", "step", "undo", "cancel"]


class Sight(BaseModel):
    """Where a page looks from and to [m], and how wide [degrees]."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    eye: Triple
    target: Triple
    fov: Annotated[float, Field(gt=1, lt=120, allow_inf_nan=False)]


class Save(Command):
    """Save the scene, or what was seen as a page of its own; `camera` is that of the page that asks."""

    do: Literal["save", "html"]
    camera: Sight | None = None


class FileAhead(BaseModel):
    """A file that a page will send; `size` in bytes."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: Name
    size: Annotated[int, Field(ge=1, le=LARGEST_FILE, strict=True)]


class Upload(Command):
    """Files come, one after the other, as bytes: a scan, or a scene, with what they name."""

    do: Literal["upload"]
    files: Annotated[list[FileAhead], Field(min_length=1, max_length=16)]


class Ease(Command):
    """Begin again with less to do, as one of the remedies that were told."""

    do: Literal["ease"]
    remedy: Name


class Switch(Command):
    do: Literal["pause", "record", "loop"]
    on: Yes


class Speed(Command):
    """World seconds per second."""

    do: Literal["speed"]
    factor: Annotated[float, Field(ge=0.01, le=1, allow_inf_nan=False)]


class Numbers(Command):
    """Other numbers of a body's material; none: it never yields, never cracks."""

    do: Literal["material"]
    body: Name
    numbers: Annotated[dict[Name, Number | None], Field(min_length=1, max_length=30)]


class PresetChoice(Command):
    do: Literal["preset"]
    body: Name
    name: Name


class Model(Command):
    do: Literal["model"]
    body: Name
    model: ModelName
    nodes: Annotated[int, Field(ge=8, le=200_000, strict=True)] | None = None


class Heat(Command):
    """Melt a body, or let it be solid again."""

    do: Literal["melt", "solidify"]
    body: Name


class Gravity(Command):
    """[m/s²]"""

    do: Literal["gravity"]
    value: Triple


class Show(Command):
    """What is seen of the bodies, in the words of `Snapshots.show`."""

    do: Literal["show"]
    field: Name | None = None
    mode: Name | None = None
    surface: Name | None = None


class Slice(Command):
    """The plane through `place` [m] across `normal` that a field is shown on."""

    do: Literal["slice"]
    normal: Way
    place: Triple


class Seek(Command):
    """Show another time [s] of a finished run."""

    do: Literal["seek"]
    time: Number


class Seen(Command):
    """The page has drawn this frame."""

    do: Literal["seen"]
    frame: Count


AnyCommand = (
    Grab | Pull | TurnHeld | LetGo | Pin | PushAway | Brush | Cut | Drop | Plain | Save | Switch | Speed | Numbers
    | PresetChoice | Model | Heat | Gravity | Show | Slice | Seek | Seen | Upload | Ease
)  # fmt: skip
_KINDS: TypeAdapter[Any] = TypeAdapter(Annotated[AnyCommand, Field(discriminator="do")])


def parse(text: str) -> Command:
    """The command that a page sent, or one `PhyxelError` that says what is wrong with it."""
    if len(text) > LONGEST:
        raise PhyxelError(f"a command of {len(text)} characters: the longest has {LONGEST}")
    return _understood(_KINDS.validate_json, text)


def checked(message: Any) -> Command:
    """The same of a message that has been read as JSON already."""
    return _understood(_KINDS.validate_python, message)


def _understood(validate: Callable[[Any], Command], given: Any) -> Command:
    try:
        return validate(given)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False, include_context=False)[0]
        place = ".".join(str(step) for step in first["loc"])
        raise PhyxelError(f"command{f' {place[:80]}' if place else ''}: {first['msg'][:200]}") from None


Asked = tuple[int, Command | str]


def coalesced(waiting: Iterable[Asked]) -> list[Asked]:
    """The same commands, but one for many of a kind that a page sent in a row, such as where the pointer went."""
    kept: list[Asked] = []
    last: dict[int, int] = {}
    """where the last of each page is"""
    for page, asked in waiting:
        if page in last and (both := _merged(kept[last[page]][1], asked)) is not None:
            kept[last[page]] = page, both
        else:
            last[page] = len(kept)
            kept.append((page, asked))
    return kept


def _merged(one: Command | str, other: Command | str) -> Command | None:
    """One command that does what two in a row do, if there is one."""
    if isinstance(one, Numbers) and isinstance(other, Numbers) and one.body == other.body:
        return other.model_copy(update={"numbers": one.numbers | other.numbers})
    if isinstance(one, Show) and isinstance(other, Show):
        return other.model_copy(update={k: v for k, v in one if getattr(other, k) is None})
    if isinstance(other, Pull | PushAway | Speed | Gravity | Slice) and type(one) is type(other):
        return other
    if isinstance(one, Plain) and isinstance(other, Plain) and one.do == other.do in ("restart", "reset"):
        return other
    return None
