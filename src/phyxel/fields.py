"""Force fields: what pushes bodies from outside, not the same everywhere.

A field gives every node an acceleration [m/s²], that is a force per mass [N/kg]. It is asked on the host, in double,
once a step or once every 2 ms, whichever is longer (and at least every ten steps).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from phyxel.errors import PhyxelError, did_you_mean
from phyxel.region import Vector, as_vector
from phyxel.surface.skin import summed

if TYPE_CHECKING:
    from phyxel.body import Body

Floats = NDArray[np.float64]
Function = Callable[[Floats, Floats, float], NDArray[np.floating]]


@dataclass(frozen=True, eq=False, kw_only=True)
class ForceField:
    """What all fields have: the bodies it acts on (names or bodies; all if left out) and a name of its own."""

    bodies: Sequence[Body | str] | None = None
    name: str | None = None

    def __post_init__(self) -> None:
        if isinstance(self.bodies, str):
            raise PhyxelError(f'{self.label}: bodies = "{self.bodies}": give a list, ["{self.bodies}"]')

    @property
    def label(self) -> str:
        """What messages call it."""
        kind = type(self).__name__.lower()
        return f'{kind} "{self.name}"' if self.name else kind

    def check_bodies(self, known: Sequence[Body]) -> None:
        """Refuse bodies that are not among those known: a slip of the pen would make a field that does nothing."""
        names = [body.name for body in known]
        for given in self.bodies or ():
            if given not in known and given not in names:
                name = given if isinstance(given, str) else given.name
                hint = did_you_mean(name, names)
                raise PhyxelError(f'{self.label}: bodies: "{name}" is not in the world; add it first{hint}')

    def acts_on(self, body: Body) -> bool:
        """Whether it pushes a body at all."""
        if self.bodies is None:
            return True
        given = {one if isinstance(one, str) else one.name for one in self.bodies}
        return not given.isdisjoint((body.name, body.whole))  # pieces are pushed as the whole was

    def acceleration(self, body: Body, positions: Floats, velocities: Floats, time: float) -> Floats:
        """Acceleration [m/s²] of a body's nodes, shape (n, 3), at positions [m] and velocities [m/s], at a time [s]."""
        raise NotImplementedError


@dataclass(frozen=True, eq=False)
class Field(ForceField):
    """Any field: `function(positions, velocities, time)` gives the acceleration of nodes, a force per mass.

    Positions [m] and velocities [m/s] have shape (n, 3), the time is the world's [s]; what is returned [m/s²] has shape
    (n, 3) or can be stretched to it. It is called for one body after the other.
    """

    function: Function

    def __post_init__(self) -> None:
        if not callable(self.function):
            raise PhyxelError(f"field: {self.function!r}: give a function of positions, velocities and the time")

    def acceleration(self, body: Body, positions: Floats, velocities: Floats, time: float) -> Floats:
        given = np.asarray(self.function(positions, velocities, time), np.float64)
        try:
            acceleration = np.broadcast_to(given, positions.shape)
        except ValueError:
            raise PhyxelError(
                f"{self.label}: the function returned shape {given.shape} for the {len(positions)} nodes of "
                f"{body.name}; expected {positions.shape}"
            ) from None
        if not np.isfinite(acceleration).all():
            raise PhyxelError(f"{self.label}: the function returned what is no finite number at t = {time:.4g} s")
        return acceleration


@dataclass(frozen=True, eq=False)
class Attraction(ForceField):
    """Pull towards a centre, as a ball of even mass pulls: a = −s R² d / max(|d|, R)³, d = x − centre.

    Outside the ball it falls with the square of the distance, inside it falls to zero at the centre.
    """

    centre: Vector
    """[m]"""
    strength: float
    """acceleration s at the ball's surface, its largest [m/s²]; below 0 it pushes away"""
    radius: float = 1.0
    """R of the ball [m], above 0"""

    def __post_init__(self) -> None:
        super().__post_init__()
        as_vector(f"{self.label}: centre", self.centre, "m")
        if not np.isfinite(self.strength):
            raise PhyxelError(f"{self.label}: strength = {self.strength}: give a finite acceleration [m/s²]")
        if not (np.isfinite(self.radius) and self.radius > 0):
            raise PhyxelError(f"{self.label}: radius = {self.radius}: give a length above 0 m")

    def acceleration(self, body: Body, positions: Floats, velocities: Floats, time: float) -> Floats:
        away = positions - np.asarray(self.centre, np.float64)
        distance = np.linalg.norm(away, axis=1, keepdims=True)
        return -self.strength * self.radius**2 * away / np.maximum(distance, self.radius) ** 3


@dataclass(frozen=True, eq=False)
class Wind(ForceField):
    """Moving air (or water) that presses on the skin it blows against.

    A piece of skin of area a and outward normal n is a flat plate in air that comes with w = wind − v:

        f = −½ ρ c a (w·n)² n   where w·n < 0, else 0

    So a plate across the wind has the drag coefficient c, and a sphere ∫cos³θ dA / πR² = c/2 of it. One body does not
    shelter another, nor its own lee side.
    """

    velocity: Vector
    """of the air [m/s]"""
    density: float = 1.2
    """ρ of the air [kg/m³]"""
    drag: float = 1.0
    """c of a plate across the wind, 0 or more"""
    _wind: Floats = field(init=False, repr=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "_wind", as_vector(f"{self.label}: velocity", self.velocity, "m/s"))
        for key, value in (("density", self.density), ("drag", self.drag)):
            if not (np.isfinite(value) and value >= 0):
                raise PhyxelError(f"{self.label}: {key} = {value}: give a finite number of 0 or more")

    def acceleration(self, body: Body, positions: Floats, velocities: Floats, time: float) -> Floats:
        nodes, areas = body.skin.node, body.skin.moved(body.skin_deformation)
        size = np.linalg.norm(areas, axis=1)
        normals = areas / np.maximum(size, np.finfo(float).tiny)[:, None]
        against = np.maximum(-((self._wind - velocities[nodes]) * normals).sum(axis=1), 0.0)
        pressed = -(0.5 * self.density * self.drag * size * against**2)[:, None] * normals
        return summed(nodes, pressed, len(positions)) / body.masses[:, None]
