"""The scale of a quantity: its colours, its limits, and the bar that says what they mean."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache

import numpy as np

from phyxel.body.quantities import Quantity
from phyxel.region import Floats
from phyxel.render.inside.pen import INK, Pen
from phyxel.render.shade import Color
from phyxel.units import decimals, unit_for

PATH = np.array(
    [
        (0.28, 0.11, 300.0),
        (0.40, 0.13, 278.0),
        (0.52, 0.11, 240.0),
        (0.64, 0.12, 185.0),
        (0.76, 0.16, 142.0),
        (0.87, 0.17, 110.0),
        (0.95, 0.14, 102.0),
    ]
)
"""Control points of the colours: lightness, chroma and hue [degrees] in Oklab, dark violet to yellow."""
SHADES = 512
"""Colours of a scale: finer than display bytes."""
TYPICAL = (0.5, 99.5)
"""Percentiles of the values between which a scale reaches of itself: a singular corner does not darken all else."""
ROOM = 120
"""Kept free for the bar at the right of a picture of 1280 × 720 [pixels]."""
PALE: Color = (0.90, 0.91, 0.93)
"""Display colour of words before the dark."""


@cache
def shades() -> Floats:
    """Display colours along the path, as far apart from each other to the eye all the way, (512, 3)."""
    fine = np.linspace(0, 1, 20 * SHADES)
    lightness, chroma, hue = (np.interp(fine, np.linspace(0, 1, len(PATH)), column) for column in PATH.T)
    lab = np.stack([lightness, chroma * np.cos(np.radians(hue)), chroma * np.sin(np.radians(hue))], axis=1)
    way = np.concatenate([[0], np.cumsum(np.linalg.norm(np.diff(lab, axis=0), axis=1))])
    even = np.linspace(0, way[-1], SHADES)
    return _display(np.stack([np.interp(even, way, column) for column in lab.T], axis=1))


def _display(lab: Floats) -> Floats:
    """Display colours 0..1 of Oklab's (n, 3) (Ottosson 2020)."""
    cone = (
        lab
        @ np.array(
            [[1, 1, 1], [0.3963377774, -0.1055613458, -0.0894841775], [0.2158037573, -0.0638541728, -1.2914855480]]
        )
    ) ** 3
    light = cone @ np.array(
        [
            [4.0767416621, -1.2684380046, -0.0041960863],
            [-3.3077115913, 2.6097574011, -0.7034186147],
            [0.2309699292, -0.3413193965, 1.7076147010],
        ]
    )
    light = np.clip(light, 0, 1)
    return np.where(light <= 0.0031308, 12.92 * light, 1.055 * light ** (1 / 2.4) - 0.055)


@dataclass(frozen=True)
class Legend:
    """Which colour stands for which value of a quantity."""

    quantity: Quantity
    low: float
    high: float

    def share(self, values: Floats) -> Floats:
        """How far along the colours values (...) are, 0..1."""
        share = np.clip((np.asarray(values) - self.low) / (self.high - self.low), 0, 1)
        return 1 - share if self.quantity.inward else share

    def colors(self, values: Floats) -> Floats:
        """Display colours (..., 3) of values (...)."""
        return shades()[np.rint(self.share(values) * (SHADES - 1)).astype(int)]

    def light(self, values: Floats) -> Floats:
        """Linear light (..., 3) of these colours."""
        return self.colors(values) ** 2.2

    @property
    def step(self) -> float:
        """From one mark of the bar to the next."""
        return round_step((self.high - self.low) / 5)

    @property
    def ticks(self) -> Floats:
        """Values that are marked."""
        first = math.ceil(self.low / self.step - 1e-6)
        last = math.floor(self.high / self.step + 1e-6)
        return self.step * np.arange(first, last + 1)

    @property
    def unit(self) -> tuple[str, float]:
        """The unit that the marks are written in, and how many SI units it has."""
        return unit_for(max(abs(self.low), abs(self.high)), self.quantity.unit)

    @property
    def labels(self) -> tuple[str, list[str]]:
        """The title with its unit, and the text at each mark."""
        unit, worth = self.unit
        places = decimals(self.step / worth, 1)
        texts = [f"{tick / worth:z.{places}f}" for tick in self.ticks]
        return f"{self.quantity.title} [{unit}]" if unit else self.quantity.title, texts

    def bar(self, width: int, height: int, dark: bool) -> Floats:
        """The colour bar on a clear sheet, display colours and opacity 0..1, (height, width, 4)."""
        pen, scale = Pen(width, height, PALE if dark else INK), bar_scale(width, height)
        top, bottom = 0.5 * height - 190 * scale, 0.5 * height + 190 * scale
        left, right = width - 92 * scale, width - 70 * scale
        edges = np.linspace(bottom, top, 129)
        for k, color in enumerate(self.colors(self.low + (np.arange(128) + 0.5) / 128 * (self.high - self.low))):
            pen.box(left, edges[k + 1], right, edges[k], np.append(color, 1.0))
        title, texts = self.labels
        for tick, text in zip(self.ticks, texts, strict=True):
            y = bottom + (tick - self.low) / (self.high - self.low) * (top - bottom)
            pen.line(right, y, right + 5 * scale, y, scale)
            pen.text(right + 9 * scale, y, text, round(15 * scale), "lm")
        pen.text(width - 24 * scale, top - 26 * scale, title, round(15 * scale), "rm")
        return pen.layer()


def bar_scale(width: int, height: int) -> float:
    """How large words are, over their size in a picture of 1280 × 720."""
    return max(min(width / 900, height / 720), 0.2)


def round_step(value: float) -> float:
    """The number 1, 2 or 5 times a power of ten that is nearest to a value above 0."""
    ten = 10.0 ** math.floor(math.log10(value))
    return ten * min((1, 2, 5, 10), key=lambda n: abs(math.log(n * ten / value)))


class Limits:
    """Round limits around the values seen so far. Unless they may forget, they only widen: colours jump as little as
    they can."""

    def __init__(self, quantity: Quantity, given: tuple[float, float] | None = None) -> None:
        self._quantity, self._given = quantity, given
        self._low, self._high = math.inf, -math.inf

    def see(self, values: Floats, forget: float = 0.0) -> None:
        """Widen them around (m,) values, but for a few extreme ones; where they are wider, let them come nearer by the
        share `forget` of the way."""
        values = values[np.isfinite(values)]
        if len(values):
            low, high = (float(end) for end in np.percentile(values, TYPICAL))
            low = 0.0 if self._quantity.from_zero else low
            if forget and math.isfinite(self._low):
                self._low += forget * (low - self._low)
                self._high += forget * (high - self._high)
            self._low, self._high = min(self._low, low), max(self._high, high)

    def legend(self) -> Legend:
        """The scale as it is now."""
        if self._given is not None:
            return Legend(self._quantity, *self._given)
        extent = self._high - self._low
        if not extent > 1e-12 * max(abs(self._low), abs(self._high), 1e-30):  # one value everywhere
            start = self._low if math.isfinite(self._low) else 0.0
            return Legend(self._quantity, start, start + 1.0)
        step = round_step(extent / 8)
        return Legend(self._quantity, step * math.floor(self._low / step), step * math.ceil(self._high / step))
