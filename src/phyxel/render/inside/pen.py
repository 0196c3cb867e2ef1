"""Words and marks on pictures."""

from __future__ import annotations

import unicodedata

import numpy as np
from PIL import Image, ImageDraw, ImageFont

from phyxel.region import Floats
from phyxel.render.shade import Color

INK: Color = (0.13, 0.15, 0.19)
"""Display color of words and lines."""
PLASTER: Color = (0.80, 0.79, 0.77)
"""Display color of the surface of a body that is cut open."""
DETAIL = 2
"""Words are drawn at so many times the size, then averaged."""


def layer_of(color: Floats | Color, opacity: Floats) -> Floats:
    """Display colors and opacity in one array, (..., 4)."""
    return np.concatenate([np.broadcast_to(color, (*opacity.shape, 3)), opacity[..., None]], axis=-1)


def over(below: Floats, above: Floats) -> Floats:
    """A picture laid over another, both display colors and opacity 0..1, (height, width, 4)."""
    a, b = above[..., 3:], (1 - above[..., 3:]) * below[..., 3:]
    color = (a * above[..., :3] + b * below[..., :3]) / np.maximum(a + b, 1e-9)
    return np.concatenate([color, a + b], axis=-1)


class Pen:
    """Writes and draws on a clear sheet; places and sizes in pixels of the picture."""

    def __init__(self, width: int, height: int, ink: Color = INK) -> None:
        self._ink = _code(ink)
        self._sheet = Image.new("RGBA", (DETAIL * width, DETAIL * height), (*self._ink, 0))
        self._draw = ImageDraw.Draw(self._sheet)

    def text(self, x: float, y: float, text: str, size: int, anchor: str, soft: bool = False) -> float:
        """Write a line and return its width. Anchors are Pillow's: "lm" starts at x, "mm" has its middle there."""
        font = ImageFont.load_default(DETAIL * size)
        self._draw.text(
            (DETAIL * x, DETAIL * y), plain(text), font=font, fill=(*self._ink, 170 if soft else 255), anchor=anchor
        )
        return float(font.getlength(plain(text))) / DETAIL

    def ball(self, x: float, y: float, radius: float, color: Color) -> None:
        """A disc with a rim and a highlight."""
        self._disc(x, y, radius, tuple(0.6 * channel for channel in color))
        self._disc(x, y, radius - 1.2, color)
        self._disc(
            x - 0.3 * radius, y - 0.35 * radius, 0.24 * radius, tuple(0.35 + 0.65 * channel for channel in color)
        )

    def _disc(self, x: float, y: float, radius: float, color: Floats | tuple[float, ...]) -> None:
        self._draw.ellipse([DETAIL * edge for edge in (x - radius, y - radius, x + radius, y + radius)], _code(color))

    def box(self, left: float, top: float, right: float, bottom: float, color: Floats) -> None:
        """Filled."""
        self._draw.rectangle([DETAIL * edge for edge in (left, top, right, bottom)], _code(color))

    def line(self, x: float, y: float, to_x: float, to_y: float, width: float) -> None:
        """A straight line of ink."""
        ends = [DETAIL * edge for edge in (x, y, to_x, to_y)]
        self._draw.line(ends, (*self._ink, 255), round(DETAIL * width))

    def layer(self) -> Floats:
        """Display colors and opacity 0..1, (height, width, 4)."""
        return np.asarray(self._sheet.reduce(DETAIL)) / 255.0


def _code(color: Floats | tuple[float, ...]) -> tuple[int, ...]:
    return tuple(round(255 * float(channel)) for channel in color)


def plain(text: str) -> str:
    """Text in the letters that Pillow's own font has."""
    return unicodedata.normalize("NFKD", text.replace("µ", "u")).encode("ascii", "ignore").decode()
