"""Materials that vary over a body (physics 6.4): other ones in some regions, numbers that are functions or colours."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from phyxel.errors import MaterialError, did_you_mean, knows_its_arguments
from phyxel.material.material import Material, Mixture
from phyxel.mls.neighbours import nearest
from phyxel.points.cloud import PointCloud
from phyxel.region import Where, select

Floats = NDArray[np.float64]

CHANNELS = ("red", "green", "blue", "brightness", "x", "y", "z")
VARYING = (
    "young", "poisson", "density", "damping", "drag", "yield_strain", "yield_stress", "creep", "viscosity",
    "thickness", "foundation", "plasticity", "elastic_limit", "weft", "shear", "bending",
)  # fmt: skip
POINTS_AROUND = 8
"""Nearest points of the cloud whose mean colour a node has: about those of its own part of the surface."""


class PaintedNodes(Protocol):
    """What variations follow: the nodes of a body at birth, and the colours of the points around them."""

    @property
    def name(self) -> str: ...
    @property
    def birth(self) -> Floats:
        """Nodes [m], shape (n, 3)."""

    @property
    def cloud(self) -> PointCloud: ...
    @property
    def sheet(self) -> object | None:
        """None unless the points are the nodes."""

    def placed_cloud(self) -> Floats:
        """Points [m], shape (m, 3)."""


@knows_its_arguments
@dataclass(frozen=True)
class Channel:
    """A number of a material that follows a colour of the cloud, or a direction across the body: `low` where that is 0,
    `high` where it is 1. "x", "y", "z" go from 0 to 1 over the body's extent.

    >>> bar = px.Body(px.load("bar", points=500), nodes=64, vary={"young": px.Channel("x", 1e5, 1e6)})
    >>> print(bar.mixture.number("young").max())
    1000000.0
    """

    name: Literal["red", "green", "blue", "brightness", "x", "y", "z"]
    """a colour of the points around a node, the mean of the three, or a direction"""
    low: float = 0.0
    """in the unit of the number"""
    high: float = 1.0
    """in the unit of the number"""

    def __post_init__(self) -> None:
        if self.name not in CHANNELS:
            raise MaterialError(f'channel "{self.name}": not known{did_you_mean(self.name, CHANNELS)}')
        if not all(isinstance(end, int | float | np.number) and np.isfinite(end) for end in (self.low, self.high)):
            raise MaterialError(f'channel "{self.name}": low = {self.low}, high = {self.high}: give two finite numbers')

    def over(self, body: PaintedNodes) -> Floats:
        """Its value at each node of a body, shape (n,)."""
        return self.low + (self.high - self.low) * self._level(body)

    def _level(self, body: PaintedNodes) -> Floats:
        if self.name in ("x", "y", "z"):
            along = body.birth[:, "xyz".index(self.name)]
            return (along - along.min()) / max(float(np.ptp(along)), 1e-30)
        colors = body.cloud.colors
        if colors is None:
            raise MaterialError(f'{body.name}: channel "{self.name}": its points have no colours')
        level = colors.mean(axis=1) if self.name == "brightness" else colors[:, CHANNELS.index(self.name)]
        if body.sheet is not None:
            return np.asarray(level, np.float64)
        _, index = nearest(body.birth, body.placed_cloud(), POINTS_AROUND)
        return np.asarray(level, np.float64)[index].mean(axis=1)


Variation = Channel | Callable[[Floats], NDArray[Any]]
"""A channel, or a function of (n, 3) reference positions [m] that gives (n,) values."""


class Recipe:
    """How a body's materials are mixed of a basic one."""

    def __init__(
        self,
        body: PaintedNodes,
        base: Material,
        parts: Sequence[tuple[Where, Material]],
        vary: Mapping[str, Variation],
    ) -> None:
        self._nodes = len(body.birth)
        for entry in parts:
            if not (isinstance(entry, tuple | list) and len(entry) == 2 and isinstance(entry[1], Material)):
                raise MaterialError(f"{body.name}: part {entry!r}: give a place and a Material")
        self._parts = [(select(where, body.birth, f"{body.name}: part"), material) for where, material in parts]
        values = {name: _values(body, base, name, variation) for name, variation in vary.items()}
        means = {name: float(np.mean(some)) for name, some in values.items() if not getattr(base, name)}
        self.base = base.but(**means) if means else base
        """the basic material; a number it did not have, or that was 0, is the mean of its variation"""
        self._factors = {name: some / (getattr(self.base, name) or 1.0) for name, some in values.items()}

    def part(self, nodes: NDArray[np.integer]) -> Recipe:
        """That of some nodes, (k,) ascending."""
        part = copy(self)
        part._nodes = len(nodes)
        part._parts = [(np.flatnonzero(np.isin(nodes, chosen)), material) for chosen, material in self._parts]
        part._factors = {name: factors[nodes] for name, factors in self._factors.items()}
        return part

    def mixed(self, base: Material) -> Mixture:
        """What each node is made of, if `base` is the basic material: its numbers times the factors of the
        variations."""
        mixture = Mixture.even(base, self._nodes)
        if self._factors:
            names = list(self._factors)
            rows, which = np.unique(np.stack([self._factors[n] for n in names], axis=1), axis=0, return_inverse=True)
            numbers = [{n: getattr(base, n) for n in names} for _ in rows]
            varied = [
                base.but(**{n: float(c * f) for (n, c), f in zip(some.items(), row, strict=True) if c is not None})
                for some, row in zip(numbers, rows, strict=True)
            ]
            mixture = Mixture(tuple(varied), which.reshape(-1))
        for nodes, material in self._parts:
            inside = np.zeros(self._nodes, bool)
            inside[nodes] = True
            mixture = mixture.changed(inside, partial(_instead, material))
        return mixture


def _instead(new: Material, old: Material) -> Material:
    return new


def _values(body: PaintedNodes, base: Material, name: str, variation: Variation) -> Floats:
    if name not in VARYING:
        raise MaterialError(f'{body.name}: vary "{name}": cannot vary{did_you_mean(name, VARYING)}')
    if not hasattr(base, name):
        raise MaterialError(f'{body.name}: vary "{name}": only a Membrane has it, of a body with model = "particles"')
    found = variation.over(body) if isinstance(variation, Channel) else np.asarray(variation(body.birth), np.float64)
    if found.shape != (len(body.birth),) or not np.isfinite(found).all():
        raise MaterialError(
            f'{body.name}: vary "{name}": shape {found.shape} for {len(body.birth)} nodes; '
            "give a finite number for each"
        )
    return found
