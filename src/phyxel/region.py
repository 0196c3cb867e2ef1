"""Where on a body: a box, a ball, a spot of its surface, a function of reference positions, or node indices."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from phyxel.errors import PhyxelError, knows_its_arguments
from phyxel.units import quantity

Floats = NDArray[np.floating]
Vector = Sequence[float] | NDArray[np.floating]


def as_vector(label: str, value: Any, unit: str = "") -> NDArray[np.float64]:
    """Three finite numbers as an array, or a message that begins with the label. They are counted in the unit, or texts
    with one of their own."""
    try:
        vector = np.array([] if isinstance(value, str) else [quantity(label, part, unit) for part in value], np.float64)
    except (TypeError, ValueError):
        vector = np.empty(0)
    if vector.shape != (3,) or not np.isfinite(vector).all():
        raise PhyxelError(f"{label} = {value}: give three finite numbers" + (f" [{unit}]" if unit else ""))
    return vector


@dataclass(frozen=True)
class BoxRegion:
    """An axis-aligned box in reference positions [m]."""

    lower: Sequence[float]
    upper: Sequence[float]

    def __post_init__(self) -> None:
        lower, upper = np.asarray(self.lower, float), np.asarray(self.upper, float)
        if lower.shape != (3,) or upper.shape != (3,) or np.isnan(lower).any() or np.isnan(upper).any():
            raise PhyxelError(f"box: lower = {self.lower}, upper = {self.upper}: each needs three numbers")
        if (lower > upper).any():
            raise PhyxelError(f"box: lower = {self.lower} lies above upper = {self.upper}")

    def __call__(self, positions: Floats) -> NDArray[np.bool_]:
        """Which of (n, 3) positions lie in the box, its faces included."""
        inside = (positions >= np.asarray(self.lower)) & (positions <= np.asarray(self.upper))
        return np.asarray(inside.all(axis=1))


@knows_its_arguments
@dataclass(frozen=True)
class Ball:
    """A ball in reference positions: where something is done to a body.

    >>> px.Ball((0, 1, 0), radius=0.2)(np.array([[0, 1.1, 0], [0, 2, 0]]))
    array([ True, False])
    """

    centre: Vector
    """[m]"""
    radius: float
    """[m], above 0"""

    def __post_init__(self) -> None:
        as_vector("ball: centre", self.centre, "m")
        if not self.radius > 0:
            raise PhyxelError(f"ball: radius = {self.radius}: give a length above 0 m")

    def __call__(self, positions: Floats) -> NDArray[np.bool_]:
        """Which of (n, 3) positions lie in the ball, its surface included."""
        return np.asarray(np.linalg.norm(positions - np.asarray(self.centre, float), axis=1) <= self.radius)


@knows_its_arguments
@dataclass(frozen=True)
class Spot:
    """A spot of the surface: a surfel and what is around it, within `radius` [m] (1.5 node spacings if left out).

    >>> ball = px.Body(px.load("sphere", points=500), nodes=64)
    >>> north = ball.fix(px.Spot((0, 0.5, 0), radius=0.2))
    """

    at: int | Vector
    """the surfel's number, or a place [m] in the reference shape near which it lies"""
    radius: float | None = None

    def __post_init__(self) -> None:
        if isinstance(self.at, bool) or not isinstance(self.at, int | np.integer):
            as_vector("spot: at (the number of a surfel, or a place)", self.at, "m")
        if self.radius is not None and not self.radius > 0:
            raise PhyxelError(f"spot: radius = {self.radius}: give a length above 0 m")


Where = BoxRegion | Ball | Spot | Callable[[Floats], NDArray[np.bool_]] | Sequence[int] | NDArray[Any]


def select(where: Where, reference: Floats, name: str) -> NDArray[np.int64]:
    """Indices of the nodes that `where` names, of a body's (n, 3) reference positions [m]."""
    n = len(reference)
    if isinstance(where, Spot):
        raise PhyxelError(f"{name}: {where}: give a box, a ball or a function here; spots are for fix, drag and melt")
    if callable(where):
        chosen = np.asarray(where(reference))
        if chosen.shape != (n,):
            raise PhyxelError(
                f"{name}: the region function returned shape {chosen.shape} for {n} nodes; expected ({n},)"
            )
        indices = np.flatnonzero(chosen)
    else:
        given = np.asarray(where).reshape(-1)
        if given.dtype == bool and len(given) != n:
            raise PhyxelError(f"{name}: a mask of {len(given)} for {n} nodes; give one value for each")
        if given.dtype != bool and len(given) and not np.issubdtype(given.dtype, np.integer):
            raise PhyxelError(
                f"{name}: nodes = {given[:3].tolist()}...: give whole numbers, a mask, a box or a function"
            )
        indices = np.flatnonzero(given) if given.dtype == bool else given.astype(np.int64)
        outside = indices[(indices < -n) | (indices >= n)]
        if len(outside):
            raise PhyxelError(f"{name}: node {int(outside[0])} of {n}; indices run from 0 to {n - 1}")
        indices = indices % n
    if len(indices) == 0:
        lower, upper = reference.min(axis=0), reference.max(axis=0)
        raise PhyxelError(
            f"{name}: the region holds no node. Nodes lie between {_triple(lower)} and {_triple(upper)} m, "
            "in a solid half a spacing inside its surface; make the region larger"
        )
    return indices


def _triple(vector: Floats) -> str:
    return "(" + ", ".join(f"{float(c):.4g}" for c in vector) + ")"
