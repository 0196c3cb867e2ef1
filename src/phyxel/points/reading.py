"""What the numbers of a file mean: what the file says of it, what was assumed, and what looks odd then."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from phyxel.units import length_text

UNITS = {"m": 1.0, "dm": 0.1, "cm": 0.01, "mm": 1e-3, "um": 1e-6, "km": 1e3, "in": 0.0254, "ft": 0.3048}
"""metres in one unit of the file"""
UPS = {"y": ((0, 1, 2), (1, 1, 1)), "z": ((0, 2, 1), (1, 1, -1)), "x": ((1, 0, 2), (-1, 1, 1))}
"""rotations that turn the file's upward axis to y: which column becomes x, y, z, and its sign"""

SPELLINGS = {
    "m": "meter meters metre metres",
    "dm": "decimeter decimeters decimetre decimetres",
    "cm": "centimeter centimeters centimetre centimetres",
    "mm": "millimeter millimeters millimetre millimetres",
    "um": "micrometer micrometers micrometre micrometres micron microns",
    "km": "kilometer kilometers kilometre kilometres",
    "in": "inch inches",
    "ft": "foot feet",
}
"""of units, beside their own"""
UNIT_SAID = re.compile(r"\bunits?\b(?:\s*(?:[:=\"]|\b(?:is|are|in)\b))*\s*([a-z]+)", re.IGNORECASE)
UP_SAID = re.compile(r"\bup[ _-]?(?:axis|direction|vector)?\s*(?:[:=]|is)?\s*\"?\+?([xyz])\b", re.IGNORECASE)
UP_SAID_AFTER = re.compile(r"\b([xyz])[ _-]?(?:axis[ _-])?up\b", re.IGNORECASE)

LARGE, SMALL = 20.0, 0.01
"""Largest extents [m] beyond which the file's numbers were perhaps no metres."""
USUAL = 1.0
"""Extent [m] that a unit is guessed by."""
GUESSED_UNITS = ("mm", "cm", "m", "km")
LYING = 2.0
"""How much longer than high a body is that perhaps lies on its back."""


@dataclass(frozen=True)
class Reading:
    """How the numbers of a file were understood."""

    units: str = "m"
    units_by: str = ""
    """who says so: "you", or words on the file; nobody if empty: then it was assumed"""
    up: str = "y"
    up_by: str = ""
    missing: tuple[str, ...] = field(default=())
    """sentences on what the file names and what could not be read, such as pictures of textures"""

    def asked(self, units: str | None, up: str | None) -> Reading:
        """With what the caller says, who knows better than the file."""
        told = self if units is None else replace(self, units=units, units_by="you")
        return told if up is None else replace(told, up=up, up_by="you")

    def __str__(self) -> str:
        return f"{self.units} ({self.units_by or 'assumed'}), {self.up} up ({self.up_by or 'assumed'})"


def said_in(comments: Iterable[str]) -> Reading:
    """What comments of a file say: "units mm", "z up", "up: z"."""
    found = Reading()
    for comment in comments:
        unit = UNIT_SAID.search(comment)
        up = UP_SAID.search(comment) or UP_SAID_AFTER.search(comment)
        told = f'the file says "{comment.strip()[:60]}"'
        if unit and not found.units_by and (known := _unit_spelled(unit[1])):
            found = replace(found, units=known, units_by=told)
        if up and not found.up_by:
            found = replace(found, up=up[1].lower(), up_by=told)
    return found


def _unit_spelled(word: str) -> str | None:
    word = word.lower()
    return next((unit for unit, others in SPELLINGS.items() if word == unit or word in others.split()), None)


def comments_in(data: bytes) -> list[str]:
    """Comments after # at the start of a text file."""
    return [found.decode("ascii", errors="replace") for found in re.findall(rb"(?m)^[ \t]*#(.*)$", data[:20_000])]


def oddities(reading: Reading | None, extents: NDArray[np.floating]) -> Iterator[str]:
    """What looks odd of a body with these extents [m], shape (3,), read like this, with the remedy; nothing of what the
    file or the caller said."""
    if reading is None:
        return
    size = float(extents.max())
    _, height, depth = extents
    if not reading.units_by and size > 0 and not SMALL <= size <= LARGE:
        unit = min(GUESSED_UNITS, key=lambda name: abs(np.log(size / UNITS[reading.units] * UNITS[name] / USUAL)))
        yield (
            f"it is {length_text(size)} long, with the file's numbers taken as {reading.units}; if they are {unit} "
            f'({length_text(size * UNITS[unit] / UNITS[reading.units])} then), say units="{unit}" (--units {unit})'
        )
    if not reading.up_by and depth > LYING * height and depth == size:
        yield (
            f"it is {length_text(depth)} long and {length_text(height)} high, with y taken as up; if it lies on its "
            'back, say up="z" (--up z)'
        )
