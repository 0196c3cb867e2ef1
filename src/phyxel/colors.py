"""Colours as people write them: red, green and blue from 0 to 1, a name, or "#rrggbb"."""

from __future__ import annotations

import math
import re
from collections.abc import Collection
from typing import Any

from phyxel.errors import PhyxelError, did_you_mean

Color = tuple[float, float, float]

NAMES = {
    "black": "#000000", "white": "#ffffff", "grey": "#808080", "gray": "#808080", "silver": "#c0c0c0",
    "red": "#ff0000", "crimson": "#dc143c", "maroon": "#800000", "salmon": "#fa8072", "coral": "#ff7f50",
    "orange": "#ffa500", "gold": "#ffd700", "yellow": "#ffff00", "beige": "#f5f5dc", "ivory": "#fffff0",
    "brown": "#a52a2a", "chocolate": "#d2691e", "tan": "#d2b48c", "olive": "#808000", "lime": "#00ff00",
    "green": "#008000", "teal": "#008080", "turquoise": "#40e0d0", "cyan": "#00ffff", "skyblue": "#87ceeb",
    "blue": "#0000ff", "navy": "#000080", "indigo": "#4b0082", "violet": "#ee82ee", "purple": "#800080",
    "magenta": "#ff00ff", "pink": "#ffc0cb",
}  # fmt: skip
"""The commonest names of CSS, with its values."""


def color_of(label: str, color: Any, others: Collection[str] = ()) -> Color:
    """The same as `rgb`; a message about a wrong one is a `PhyxelError` and begins with the label."""
    try:
        return rgb(color, others)
    except ValueError as error:
        raise PhyxelError(f"{label} = {color!r}: {error}") from None


def rgb(color: Any, others: Collection[str] = ()) -> Color:
    """Red, green and blue in 0..1, or a `ValueError` that says what would do; `others` are more words that would."""
    if isinstance(color, str):
        return _named(color, others)
    try:
        red, green, blue = (float(part) for part in color)
    except (TypeError, ValueError):
        red = green = blue = math.nan
    if all(0 <= part <= 1 for part in (red, green, blue)):
        return red, green, blue
    if all(0 <= part <= 255 for part in (red, green, blue)):
        shares = ", ".join(f"{part / 255:.3g}" for part in (red, green, blue))
        raise ValueError(f"give red, green and blue from 0 to 1; if these are out of 255, [{shares}]")
    raise ValueError('give red, green and blue from 0 to 1, a name such as "orange", or "#rrggbb"')


def _named(word: str, others: Collection[str]) -> Color:
    code = NAMES.get(word.lower().replace(" ", ""), word)
    if re.fullmatch("#[0-9a-fA-F]{6}", code) is None:
        meant = did_you_mean(word.lower(), [*others, *NAMES])
        raise ValueError(f'not known{meant} (or give "#rrggbb", or red, green and blue from 0 to 1)')
    red, green, blue = (int(code[start : start + 2], 16) / 255 for start in (1, 3, 5))
    return red, green, blue
