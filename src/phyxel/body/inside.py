"""What a picture shows of the inside of bodies, and how."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from phyxel.body.quantities import quantity
from phyxel.errors import PhyxelError, did_you_mean, knows_its_arguments

MODES = ("surface", "slice", "iso", "volume")
Triple = tuple[float, float, float]


@dataclass(frozen=True)
class Plane:
    """Through a body's reference shape: where `normal · X = place` [m], or through the middle of each body."""

    normal: Triple
    place: float | None = None

    @staticmethod
    def read(given: Any) -> Plane:
        """From "x", "z = 0.1", or ((nx, ny, nz), (px, py, pz)): a normal and a point [m]."""
        if isinstance(given, Plane):
            return given
        if isinstance(given, str):
            found = re.fullmatch(r"\s*([xyz])\s*(?:=\s*(\S+)\s*)?", given)
            place = _number(found[2]) if found and found[2] else None
            if found and (not found[2] or place is not None):
                axis = "xyz".index(found[1])
                return Plane((float(axis == 0), float(axis == 1), float(axis == 2)), place)
        elif (pair := _normal_and_point(given)) is not None and np.any(pair[0]):
            normal = pair[0] / np.linalg.norm(pair[0])
            return Plane((float(normal[0]), float(normal[1]), float(normal[2])), float(normal @ pair[1]))
        raise PhyxelError(
            f'slice = {given!r}: give an axis "x", an axis and a place "z = 0.1" [m], or a normal and a point '
            "[[1, 1, 0], [0, 0.5, 0]]"
        )


def _number(text: str) -> float | None:
    try:
        value = float(text)
    except ValueError:
        return None
    return value if math.isfinite(value) else None


def _normal_and_point(given: Any) -> NDArray[np.float64] | None:
    """Two rows of three finite numbers, if it is that."""
    try:
        pair = np.array(given, float)
    except (ValueError, TypeError):
        return None
    return pair if pair.shape == (2, 3) and np.isfinite(pair).all() else None


def read_planes(given: Any) -> tuple[Plane, ...]:
    """One plane or a list of them."""
    several = isinstance(given, list | tuple) and _normal_and_point(given) is None and len(given) > 0
    return tuple(Plane.read(each) for each in (given if several else [given]))


@knows_its_arguments
@dataclass(frozen=True)
class Inside:
    """What is shown of the inside of bodies.

    `field` is "stress" (von Mises), "principal" (largest principal stress), "strain" (equivalent), "plastic" (norm of
    the permanent strain), "speed", "distance" (to the surface, in the reference shape), or a function f(X) or
    f(body, X) of (m, 3) reference positions [m] that gives (m,) numbers.

    `mode` is "surface" (its colours on the surface), "slice" (on planes through the body; what lies before them is cut
    away), "iso" (translucent surfaces on which it has the values marked on the scale) or "volume" (a glowing fog).

    `range` are the values at the ends of the colour scale; without it they follow the bodies. `slice`: "x", "z = 0.1",
    a normal and a point [m], or a list of such; they are planes of the reference shape and bend with it. `opacity`:
    the values between which the fog goes from clear to dense, without it the lower and the upper part of the range.
    `brightness` is how much light the fog gives and takes. `beside`: draw the plain surface at its left.

    >>> stress = px.Inside("stress", "slice", range=(0, 2e5), slice=["z", "x = 0.1"])
    >>> stretch = px.Inside(lambda body, X: body.strain_at(X)[:, 0, 0], "surface")
    """

    field: str | Callable[..., NDArray[np.floating]] = "stress"
    mode: str = "volume"
    range: tuple[float, float] | None = None
    slice: Any = "z"
    opacity: tuple[float, float] | None = None
    brightness: float = 1.0
    beside: bool = False

    def __post_init__(self) -> None:
        quantity(self.field)
        if self.mode not in MODES:
            raise PhyxelError(f'mode = "{self.mode}": not known{did_you_mean(str(self.mode), MODES)}')
        for key in ("range", "opacity"):
            given = getattr(self, key)
            if given is not None:
                object.__setattr__(self, key, _two(key, given))
        if self.range is not None and self.range[0] > self.range[1]:
            raise PhyxelError(f"range = {list(self.range)}: give the lower value first")
        object.__setattr__(self, "slice", read_planes(self.slice))
        if not (isinstance(self.brightness, int | float) and 0 < self.brightness < math.inf):
            raise PhyxelError(f"brightness = {self.brightness}: give a number above 0 (1 is plain)")

    @property
    def glows(self) -> bool:
        """Whether it is light before the dark."""
        return self.mode in ("iso", "volume")


def _two(key: str, given: Sequence[float]) -> tuple[float, float]:
    try:
        values = np.asarray(given, float)
    except (TypeError, ValueError):
        values = np.full(2, np.nan)
    if values.shape != (2,) or not np.isfinite(values).all() or values[0] == values[1]:
        raise PhyxelError(f"{key} = {given}: give two different numbers, in the unit of the field")
    return float(values[0]), float(values[1])
