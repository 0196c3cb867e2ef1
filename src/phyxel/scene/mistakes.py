"""What is said of mistakes in a scene file: the place, what was given, what is taken there, and what to do."""

from __future__ import annotations

import json
import re
import tomllib
import types
import typing
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import Any, Literal

from phyxel.errors import did_you_mean
from phyxel.scene.event_tables import FIELDS, KINDS
from phyxel.scene.tables import COLLIDERS, Table

_QUOTED = r"'([^']*)'"
LIKE_ANOTHER = 0.6
"""How much a key that another table has must be like one of this table, to be taken for a slip."""
LONGEST = 60
"""Characters that are shown of what was given."""
MOST_NAMED = 3
"""Tables that are named as those which have a key."""


@dataclass(frozen=True)
class KeyPlace:
    """Where in a scene file something is wrong."""

    steps: tuple[str | int, ...]
    """keys, and numbers in lists"""
    table: type[Table]
    """that the last key stands in"""
    kind: Any = None
    """the type of what that key takes"""

    def __str__(self) -> str:
        return "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in self.steps).lstrip(".")

    @property
    def path(self) -> str:
        """As it is written between brackets."""
        return ".".join(step for step in self.steps if isinstance(step, str))

    @property
    def key(self) -> KeyPlace:
        """That of the last key, not of a number in its row."""
        return KeyPlace(self.steps[:-1], self.table, self.kind) if isinstance(self.steps[-1], int) else self

    @staticmethod
    def of(location: tuple[Any, ...], root: type[Table], is_key: bool) -> KeyPlace:
        """From the validator's steps, among which are also its own names of what a key may be; `is_key` says whether
        the last is a key that nobody knows."""
        here: type[Table] | None = root
        place = KeyPlace((), root)
        unknown = len(location) - 1 if is_key else None
        for number, step in enumerate(location):
            if isinstance(step, int):
                place = KeyPlace((*place.steps, step), place.table, place.kind)
            elif here is None and step in KINDS:
                here = KINDS[step]
            elif here is not None and step in here.model_fields:
                kind = here.model_fields[step].annotation
                inner = list(_tables_in(kind))
                place, here = KeyPlace((*place.steps, step), here, kind), inner[0] if len(inner) == 1 else None
            elif number == unknown or (typing.get_origin(place.kind) is dict and step != "[key]"):
                place = KeyPlace((*place.steps, step), here or place.table)
        return place


def explained(error: Any, root: type[Table]) -> tuple[KeyPlace, str]:
    """One of the validator's errors: where it is, and a sentence about it."""
    kind, given = error["type"], error["input"]
    place = KeyPlace.of(error["loc"], root, kind == "extra_forbidden")
    in_row = kind in ("tuple_type", "too_long") or (kind == "missing" and isinstance(place.steps[-1], int))
    if in_row and (length := _length(place.kind)):
        whole = place.key
        return whole, f"{whole} = {_written(given)}: give {length} numbers, such as {_example(place.kind)}"
    return place, f"{place}{_said(place, kind, given, error, root)}"


def _said(place: KeyPlace, kind: str, given: Any, error: Any, root: type[Table]) -> str:
    """What is said behind a place."""
    shown = f" = {_written(given)}"
    if kind == "extra_forbidden":
        return f": not known{_where_it_belongs(place, root)}"
    if kind in ("union_tag_not_found", "union_tag_invalid"):
        return _of_no_kind(COLLIDERS if "collider" in place.steps else FIELDS, error.get("ctx", {}).get("tag"))
    if kind == "list_type" or place.steps == ("body",):
        return f"{'' if isinstance(given, dict | list) else shown}: {_brackets(place)}"
    if kind in ("model_type", "model_attributes_type", "dict_type"):
        return _no_table(place, given, shown)
    if kind == "missing":
        return f": missing; write {place.steps[-1]} = {_example(place.kind)}"
    if kind == "literal_error" and isinstance(given, str):
        return f"{shown}: not known{did_you_mean(given, re.findall(_QUOTED, error['ctx']['expected']))}"
    message = error["msg"].removeprefix("Value error, ")
    is_table = isinstance(given, dict) or (isinstance(given, list) and any(isinstance(one, dict) for one in given))
    return f"{'' if is_table else shown}: {message[0].lower() + message[1:]}"


def _of_no_kind(known: Collection[str], tag: Any) -> str:
    if tag is None:
        return f".kind: missing; there are {', '.join(known)}"
    return f".kind = {_written(tag)}: not known{did_you_mean(str(tag), known)}"


def _where_it_belongs(place: KeyPlace, root: type[Table]) -> str:
    """What was probably meant by a key that nobody knows here, or in which tables it is known."""
    word = str(place.steps[-1])
    above = place.path.rpartition(".")[0]
    homes = [header for header, table in _all_tables(root) if word in table.model_fields]
    meant = did_you_mean(word, place.table.model_fields, LIKE_ANOTHER if homes else 0.5)
    if not homes or "did you mean" in meant:
        return meant
    if "" in homes:
        return " here; it stands at the top of the file, above the first table"
    nearest = sorted(homes, key=lambda header: not header.strip("[").startswith(above))
    return f" here; it is a key of {' or '.join(dict.fromkeys(nearest[:MOST_NAMED]))}"


def _all_tables(table: type[Table], path: str = "") -> Iterator[tuple[str, type[Table]]]:
    """All tables of a scene file, and how each is written above its keys."""
    yield path, table
    bare = path.strip("[]").partition("]")[0]
    for name, field in table.model_fields.items():
        inner = list(_tables_in(field.annotation))
        header = f"{bare}.{name}".lstrip(".")
        written = f"[[{header}]]" if _takes_list(field.annotation) else f"[{header}]"
        for one in inner:
            of_kind = f" of kind {_example(one.model_fields['kind'].annotation)}" if len(inner) > 1 else ""
            yield from _all_tables(one, written + of_kind)


def _brackets(place: KeyPlace) -> str:
    needed = "a scene needs at least one body, written as" if place.path == "body" else "write"
    return f"{needed} [[{place.path}]], with two pairs of brackets, above the keys of each"


def _no_table(place: KeyPlace, given: Any, shown: str) -> str:
    if isinstance(given, list) and all(isinstance(one, dict) for one in given):
        return f": write [{place.path}], with one pair of brackets: there is only one"
    table = next(_tables_in(place.kind))
    # The keys that a table has of its own come first: they say what it is for.
    keys = [*vars(table).get("__annotations__", {}), *table.model_fields]
    first = next(key for key in keys if key in table.model_fields)
    kind = table.model_fields[first].annotation
    fits = isinstance(given, str) and any(typing.get_origin(part) is Literal for part in _parts(kind))
    fits |= isinstance(given, int | float) and not isinstance(given, bool) and float in _parts(kind)
    value = _written(given) if fits else _example(kind)
    return f"{shown}: give a table, such as {{ {first} = {value} }}"


def _written(given: Any) -> str:
    """As it stands in the file, if it is not long."""
    if isinstance(given, str):
        text = json.dumps(given, ensure_ascii=False)
    elif isinstance(given, list | tuple):
        text = f"[{', '.join(map(_written, given))}]"
    elif isinstance(given, dict):
        text = f"{{ {', '.join(f'{key} = {_written(value)}' for key, value in given.items())} }}"
    else:
        text = str(given).lower() if isinstance(given, bool) else str(given)
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 3]}..."


def _example(kind: Any) -> str:
    """What could be written for a type."""
    for part in _parts(kind):
        if typing.get_origin(part) is Literal:
            return _written(typing.get_args(part)[0])
        if _length(part):
            return f"[{', '.join(['0'] * _length(part))}]"
        if part in (int, float, str):
            return {int: "1", float: "1.0", str: '"a name"'}[part]
    return "{}"


def _parts(kind: Any) -> list[Any]:
    """The types of which a value may be one."""
    origin = typing.get_origin(kind)
    if origin is typing.Annotated:
        return _parts(typing.get_args(kind)[0])
    if origin in (typing.Union, types.UnionType):
        return [part for one in typing.get_args(kind) for part in _parts(one)]
    return [kind]


def _length(kind: Any) -> int:
    """How many numbers a type has, if it is a row of them; else 0."""
    rows = [part for part in _parts(kind) if typing.get_origin(part) is tuple]
    return len(typing.get_args(rows[0])) if rows else 0


def _takes_list(kind: Any) -> bool:
    return any(typing.get_origin(part) is list for part in _parts(kind))


def _tables_in(kind: Any) -> Iterator[type[Table]]:
    """The tables that a type is made of."""
    if isinstance(kind, type) and issubclass(kind, Table):
        yield kind
    for part in typing.get_args(kind):
        yield from _tables_in(part)


def explained_syntax(error: tomllib.TOMLDecodeError, source: str) -> str:
    """What is wrong with a text that is no TOML, with the line where it ends to be."""
    found = re.search(r"line (\d+)", str(error))
    line = source.splitlines()[int(found[1]) - 1].strip() if found and int(found[1]) <= source.count("\n") + 1 else ""
    remedy = 'words and numbers with a unit stand in quotation marks ("blue", "2 GPa"), rows in brackets ([0, 1, 0])'
    return f"not valid TOML: {error}" + (f": {line}" if line else "") + f"; {remedy}"
