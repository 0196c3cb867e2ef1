"""Dataclasses of arrays as the structs that kernels take."""

from __future__ import annotations

from dataclasses import fields
from functools import cache
from typing import Any

import warp as wp

_structs: dict[str, Any] = {}


def struct_type(name: str, fields: dict[str, Any]) -> Any:
    """The struct with this name and these fields: one and the same, or Warp writes what takes it twice."""
    made = wp.struct(type(name, (), {"__annotations__": fields, "__module__": __name__}))
    return _structs.setdefault(made.native_name, made)


@cache
def _struct_of(name: str, fields: tuple[tuple[str, Any], ...]) -> Any:
    return struct_type(name, {key: wp.array(dtype=kind) if is_array else kind for key, (is_array, kind) in fields})


def as_struct(arrays: Any) -> Any:
    """A dataclass of arrays, whole numbers and other such dataclasses as the struct that kernels take; one type for
    each precision. It keeps the arrays of now: when one is replaced, launches are to be made anew. Nobody changes what
    he gets: filling a struct takes as long as a launch, so the last one is given again while its arrays stay."""
    values = {field.name: getattr(arrays, field.name) for field in fields(arrays)}
    values = {key: value if isinstance(value, wp.array | int) else as_struct(value) for key, value in values.items()}
    known = vars(arrays).get("_struct")
    if known is not None and all(value is before for value, before in zip(values.values(), known[0], strict=True)):
        return known[1]

    def kind(value: Any) -> tuple[bool, Any]:
        is_array = isinstance(value, wp.array)
        return is_array, value.dtype if is_array else getattr(value, "_cls", int)

    struct = _struct_of(type(arrays).__name__, tuple((key, kind(value)) for key, value in values.items()))()
    for key, value in values.items():
        setattr(struct, key, value)
    vars(arrays)["_struct"] = tuple(values.values()), struct
    return struct
