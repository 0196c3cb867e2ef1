"""What pages are sent: a moment of the world as parts, in one binary message.

A message is the length of its JSON as four bytes, little-endian; the JSON, padded with spaces; and blobs, each of which
begins at a multiple of 16 from the start of the message:

    {"about": {...}, "parts": [{"name", "kind", "about": {...}, "blobs": {"records": [offset, length] | "key"}}],
     "kept": {"key": [offset, length]}}

What has a key is sent once and kept by the page as long as a part of the newest message names it.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from phyxel.errors import PhyxelError

ALIGNED = 16
"""Bytes to which blobs are padded: any number type can be read in place."""
DIGITS = 10
"""Of the largest offset."""
LENGTH = struct.Struct("<I")
"""Of the head of a message [bytes]."""


@dataclass(frozen=True)
class Blob:
    """Bytes of a part; with a key they never change and are kept by pages."""

    data: bytes
    key: str | None = None


@dataclass(frozen=True)
class DrawnThing:
    """A body or a collider as one of the kinds of things that pages draw."""

    name: str
    kind: str
    """"surfels", "mesh", "splats" or "dots" """
    about: dict[str, Any]
    blobs: dict[str, Blob]


@dataclass(frozen=True)
class Snapshot:
    """All that is seen at a moment."""

    about: dict[str, Any]
    parts: tuple[DrawnThing, ...] = ()

    def message(self, known: set[str], extra: Mapping[str, Any]) -> bytes:
        """The bytes for a page that keeps the blobs `known`, which are then those of this message; `extra` is what is
        said to this page alone."""
        writer = _Writer(known)
        parts = [
            {"name": part.name, "kind": part.kind, "about": part.about, "blobs": writer.placed(part.blobs)}
            for part in self.parts
        ]
        known.clear()
        known.update(writer.named)
        return writer.message({"about": {**self.about, **extra}, "parts": parts, "kept": writer.kept})


@dataclass
class _Writer:
    """Puts blobs one after the other."""

    known: set[str]
    named: set[str] = field(default_factory=set)
    kept: dict[str, list[int]] = field(default_factory=dict)
    _places: list[list[int]] = field(default_factory=list)
    """offset and length of each that is sent"""
    _pieces: list[bytes] = field(default_factory=list)
    _end: int = 0

    def placed(self, blobs: Mapping[str, Blob]) -> dict[str, Any]:
        return {name: self._place(blob) for name, blob in blobs.items()}

    def _place(self, blob: Blob) -> list[int] | str:
        if blob.key is None:
            return self._put(blob.data)
        if blob.key not in self.named and blob.key not in self.known:
            self.kept[blob.key] = self._put(blob.data)
        self.named.add(blob.key)
        return blob.key

    def _put(self, data: bytes) -> list[int]:
        place = [self._end, len(data)]
        rest = -len(data) % ALIGNED
        self._places.append(place)
        self._pieces += [data, bytes(rest)]
        self._end += len(data) + rest
        return place

    def message(self, head: dict[str, Any]) -> bytes:
        # How long the JSON is depends on the offsets in it: there is room for the longest.
        room = len(_json(head)) + DIGITS * len(self._places)
        start = -(-(LENGTH.size + room) // ALIGNED) * ALIGNED
        for place in self._places:
            place[0] += start
        text = _json(head).ljust(start - LENGTH.size)
        return b"".join([LENGTH.pack(len(text)), text, *self._pieces])


def _json(head: dict[str, Any]) -> bytes:
    return json.dumps(head, separators=(",", ":"), allow_nan=False).encode()


def read(message: bytes, kept: dict[str, bytes]) -> Snapshot:
    """What a message says to who keeps the blobs `kept`, which are then those of this message."""
    try:
        (length,) = LENGTH.unpack_from(message)
        head = json.loads(message[LENGTH.size : LENGTH.size + length])
        kept |= {key: _cut(message, place) for key, place in head["kept"].items()}
        parts = tuple(_part(part, message, kept) for part in head["parts"])
    except (struct.error, ValueError, KeyError, TypeError) as error:
        raise PhyxelError(f"a message of {len(message)} bytes that is no snapshot: {error}") from error
    named = {blob.key for part in parts for blob in part.blobs.values()}
    for key in kept.keys() - named:
        del kept[key]
    return Snapshot(head["about"], parts)


def _part(part: dict[str, Any], message: bytes, kept: dict[str, bytes]) -> DrawnThing:
    blobs = {
        name: Blob(kept[place], place) if isinstance(place, str) else Blob(_cut(message, place))
        for name, place in part["blobs"].items()
    }
    return DrawnThing(part["name"], part["kind"], part["about"], blobs)


def _cut(message: bytes, place: tuple[int, int]) -> bytes:
    offset, length = place
    if not (offset >= 0 and length >= 0 and offset + length <= len(message)):
        raise ValueError(f"a blob reaches from {offset} to {offset + length}")
    return message[offset : offset + length]
