"""Force fields: what pushes bodies from outside, not the same everywhere.

A field gives every node an acceleration [m/s²], that is a force per mass [N/kg]. It is asked on the host, in double,
once a step or once every 2 ms, whichever is longer (and at least every ten steps). Fillings and wraps are for particle
surfaces alone, which find their forces themselves.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import cKDTree

from phyxel.body import Body
from phyxel.body.holds import PICKED, surfel_at
from phyxel.body.protocols import BodyWorld
from phyxel.contact.colliders import Collider, Ground
from phyxel.errors import PhyxelError, did_you_mean, knows_its_arguments
from phyxel.material.variation import Channel
from phyxel.models.kind import named, public_kinds
from phyxel.region import Ball, Spot, Vector, Where, as_vector, select
from phyxel.surface.hull import summed
from phyxel.units import quantity

Floats = NDArray[np.float64]
Function = Callable[[Floats, Floats, float], NDArray[np.floating]]

FAINTEST = 1e-6
"""Square root of the least weight of a push that fades: where only one node is pushed, it may lie at the very edge."""
ROUNDING = 1e-11
"""Share of a time by which a clock that went there in many steps may be off."""


@dataclass(frozen=True, eq=False, kw_only=True)
class ForceField:
    """What all fields have."""

    bodies: Sequence[Body | str] | None = None
    """those that it acts on, or their names; all if left out"""
    name: str | None = None
    """what messages call it"""
    during: tuple[float, float] | None = None
    """(start, end) [s] of the time in which it acts, always if left out; steps end where it comes and goes"""

    steady: ClassVar[bool] = False
    """whether it gives the same forces wherever nodes are, as long as it acts"""

    def __post_init__(self) -> None:
        if isinstance(self.bodies, str):
            raise PhyxelError(f'{self.label}: bodies = "{self.bodies}": give a list, ["{self.bodies}"]')
        if self.during is not None:
            object.__setattr__(self, "during", self._span_of(self.during))

    def _span_of(self, during: Any) -> tuple[float, float]:
        try:
            start, end = map(float, during)
        except (TypeError, ValueError):
            start = end = math.nan
        if not start < end:
            raise PhyxelError(
                f"{self.label}: during = {during}: give the times [s] when it begins and ends, (1.0, 2.5)"
            )
        return start, end

    def _counted(self, key: str, unit: str) -> float:
        """A number of its own, counted in a unit also if it was given with another; nan if it is none."""
        value = quantity(f"{self.label}: {key}", getattr(self, key), unit)
        object.__setattr__(self, key, value)
        return float(value) if isinstance(value, int | float | np.number) else math.nan

    @property
    def label(self) -> str:
        """What messages call it."""
        kind = type(self).__name__.lower()
        return f'{kind} "{self.name}"' if self.name else kind

    def enter(self, world: BodyWorld) -> None:
        """Come into a world; bodies that are not there are refused: a slip of the pen would make a field that does
        nothing."""
        names = [body.name for body in world.bodies]
        for given in self.bodies or ():
            if given not in world.bodies and given not in names:
                name = given if isinstance(given, str) else given.name
                hint = did_you_mean(name, names)
                raise PhyxelError(f'{self.label}: bodies: "{name}" is not in the world; add it first{hint}')

    def meet(self, body: Body) -> None:
        """A body has come into its world."""

    def is_on(self, time: float) -> bool:
        """Whether it acts from a time [s] on, as it says in `during`."""
        if self.during is None:
            return True
        start, end = self.during
        return not _is_later(start, time) and _is_later(end, time)

    def switches(self, since: float, until: float) -> list[float]:
        """When it comes or goes between two times [s]."""
        return [time for time in self.during or () if _is_later(time, since) and _is_later(until, time)]

    def acts_on(self, body: Body) -> bool:
        """Whether it pushes a body at all."""
        if self.bodies is None:
            return True
        given = {one if isinstance(one, str) else one.name for one in self.bodies}
        return not given.isdisjoint((body.name, body.whole))  # pieces are pushed as the whole was

    def acceleration(self, body: Body, positions: Floats, velocities: Floats, time: float) -> Floats:
        """Acceleration [m/s²] of a body's nodes, shape (n, 3), at positions [m] and velocities [m/s], at a time [s]."""
        raise NotImplementedError


@knows_its_arguments
@dataclass(frozen=True, eq=False)
class Field(ForceField):
    """Any field: `function(positions, velocities, time)` gives the acceleration of nodes, a force per mass.

    Positions [m] and velocities [m/s] have shape (n, 3), the time is the world's [s]; what is returned [m/s²] has shape
    (n, 3) or can be stretched to it. It is called for one body after the other.

    >>> px.World().add(px.Field(lambda x, v, t: -0.5 * v))  # air that slows everything down
    """

    function: Function

    def __post_init__(self) -> None:
        super().__post_init__()
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


@knows_its_arguments
@dataclass(frozen=True, eq=False)
class Attraction(ForceField):
    """Pull towards a centre, or straight to an axis through it: a = −s (|d|/R)ᵖ d/|d|, d leading from there to x
    (physics 16.2).

    With the power p = −2 a ball of even mass pulls so, and with p = −1 a rod along an axis. Within the radius R it
    falls to zero at the centre, a = −s d/R.

    >>> px.World().add(px.Attraction((0, 2, 0), strength=20, radius="50 cm", during=(0, 1.5)))
    """

    centre: Vector
    """[m]"""
    strength: float
    """acceleration s at the distance R [m/s²]; below 0 it pushes away"""
    radius: float = 1.0
    """R [m], above 0"""
    power: float = -2.0
    """p: how it changes with the distance outside the radius; 0: it does not"""
    axis: Vector | None = None
    """direction of the axis; of any length"""
    _axis: Floats | None = field(init=False, repr=False, default=None)
    """of length 1"""

    def __post_init__(self) -> None:
        super().__post_init__()
        as_vector(f"{self.label}: centre", self.centre, "m")
        if not np.isfinite(self._counted("strength", "m/s²")):
            raise PhyxelError(f"{self.label}: strength = {self.strength}: give a finite acceleration [m/s²]")
        if not 0 < self._counted("radius", "m") < np.inf:
            raise PhyxelError(f"{self.label}: radius = {self.radius}: give a length above 0 m")
        if not np.isfinite(self._counted("power", "")):
            raise PhyxelError(f"{self.label}: power = {self.power}: give a finite number, such as -2")
        if self.axis is not None:
            axis = as_vector(f"{self.label}: axis", self.axis)
            if not axis.any():
                raise PhyxelError(f"{self.label}: axis = {self.axis}: give a direction, not zero")
            object.__setattr__(self, "_axis", axis / np.linalg.norm(axis))

    def acceleration(self, body: Body, positions: Floats, velocities: Floats, time: float) -> Floats:
        away = (positions - np.asarray(self.centre, np.float64)) / self.radius
        if self._axis is not None:
            away -= (away @ self._axis)[:, None] * self._axis
        distance = np.linalg.norm(away, axis=1, keepdims=True)
        return -self.strength * away * np.maximum(distance, 1.0) ** (self.power - 1)


@knows_its_arguments
@dataclass(frozen=True, eq=False)
class Wind(ForceField):
    """Moving air (or water) that presses on the skin it blows against (physics 16.3).

    A piece of skin of area a and outward normal n is a flat plate in air that comes with w = wind − v:

        f = −½ ρ c a (w·n)² n   where w·n < 0, else 0

    So a plate across the wind has the drag coefficient c, and a sphere ∫cos³θ dA / πR² = c/2 of it. One body does not
    shelter another, nor its own lee side.

    >>> px.World().add(px.Wind(("30 km/h", 0, 0)))
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
        for key, unit in (("density", "kg/m³"), ("drag", "")):
            if not 0 <= self._counted(key, unit) < np.inf:
                raise PhyxelError(f"{self.label}: {key} = {getattr(self, key)}: give a finite number of 0 or more")

    @property
    def pressure(self) -> float:
        """On a plate at rest across the wind [Pa]."""
        return float(0.5 * self.density * self.drag * self._wind @ self._wind)

    def acceleration(self, body: Body, positions: Floats, velocities: Floats, time: float) -> Floats:
        nodes, areas = body.skin.node, body.skin.moved(body.skin_deformation)
        size = np.linalg.norm(areas, axis=1)
        normals = areas / np.maximum(size, np.finfo(float).tiny)[:, None]
        against = np.maximum(-((self._wind - velocities[nodes]) * normals).sum(axis=1), 0.0)
        pressed = -(0.5 * self.density * self.drag * size * against**2)[:, None] * normals
        return summed(nodes, pressed, len(positions)) / body.masses[:, None]


@knows_its_arguments
@dataclass(frozen=True, eq=False)
class Push(ForceField):
    """A force on some place of a body, shared out by mass: a = F w / Σ w m, with w = 1 there and 0 elsewhere.

    `where` is looked for once, in the shape at birth: those nodes are pushed wherever they go. A function or a channel
    may also give w itself, 0 or more: `px.Channel("red", 0, 1)` pushes where the points are painted red. Left out, it
    is all of the body. Each body gets all of the force, and what falls apart shares it.

    >>> world, box = px.World(gravity=(0, 0, 0)), px.Body(px.load("box", points=500), nodes=64)
    >>> world.add(box)
    >>> world.add(px.Push((10, 0, 0), during=(0, 0.2)))  # 10 N for 0.2 s
    >>> world.advance(0.5)
    >>> print(f"{(box.masses @ box.velocities)[0]:.3f} N s")
    2.000 N s
    """

    force: Vector
    """F on a body, in all [N]"""
    where: Where | Channel | None = None
    fades: bool = False
    """whether it is strongest in the middle of a ball, or a spot with a radius, and fades to its edge:
    w = (1 − r²/R²)²"""
    _force: Floats = field(init=False, repr=False)
    _paint: dict[tuple[str, bytes], _Paint] = field(init=False, repr=False, default_factory=dict)

    steady: ClassVar[bool] = True

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "_force", as_vector(f"{self.label}: force", self.force, "N"))
        if self.fades and not isinstance(self.where, Ball | Spot):
            raise PhyxelError(f"{self.label}: fades: needs a place with a middle, px.Ball(...) or px.Spot(...)")

    def enter(self, world: BodyWorld) -> None:
        super().enter(world)
        errors = {_key(body): error for body in world.bodies if (error := self._miss(body))}
        missed = [error for key, error in errors.items() if not self._paint[key].any()]
        if missed and (self.bodies is not None or len(missed) == len({_key(body) for body in world.bodies})):
            raise missed[0]

    def meet(self, body: Body) -> None:
        self._miss(body)

    def _miss(self, body: Body) -> PhyxelError | None:
        """Find the place on a body that it acts on, or say why there is none."""
        if not super().acts_on(body):
            return None
        paint, missed = self._paint.setdefault(_key(body), _Paint()), None
        try:
            weights = self._weights(body) * self._fading(body)
        except PhyxelError as error:
            weights, missed = np.zeros(len(body.birth)), error
        paint.add(body, weights)
        return missed

    def acts_on(self, body: Body) -> bool:
        return super().acts_on(body) and _key(body) in self._paint and self._paint[_key(body)].any()

    def _weights(self, body: Body) -> Floats:
        where, label, count = self.where, f"{self.label}: {body.name}", len(body.birth)
        if isinstance(where, Channel) or callable(where):
            given = where.over(body) if isinstance(where, Channel) else np.asarray(where(body.birth))
            if given.shape != (count,) or not (np.isfinite(given).all() and (given >= 0).all()):
                raise PhyxelError(f"{label}: give each of its {count} nodes a finite weight of 0 or more, or a mask")
            if given.any():
                return given.astype(np.float64)
        if where is None:
            return np.ones(count)
        if isinstance(where, Channel):
            raise PhyxelError(f'{label}: channel "{where.name}" is 0 everywhere')
        if isinstance(where, Spot) and body.has_melted:
            raise PhyxelError(f"{label}: it has melted, and spots are of its first shape; give a box or a ball")
        chosen = body.pick(where.at, where.radius) if isinstance(where, Spot) else select(where, body.birth, label)
        weights = np.zeros(count)
        weights[chosen] = 1.0
        return weights

    def _fading(self, body: Body) -> Floats | float:
        """How much of the weight of its nodes is left, shape (n,)."""
        if not self.fades:
            return 1.0
        assert isinstance(self.where, Ball | Spot)
        middle = self.where.centre if isinstance(self.where, Ball) else surfel_at(body, self.where.at)
        radius = PICKED * body.unit if self.where.radius is None else self.where.radius
        away = np.linalg.norm(body.birth - np.asarray(middle), axis=1) / radius
        return np.maximum(1 - away**2, FAINTEST) ** 2

    def acceleration(self, body: Body, positions: Floats, velocities: Floats, time: float) -> Floats:
        paint = self._paint[_key(body)]
        bodies = body.in_world(self.label).bodies
        pieces = [one for one in bodies if _key(one) == _key(body) and self.acts_on(one)]
        total = sum(float(paint.on(piece) @ piece.masses) for piece in pieces)
        return np.outer(paint.on(body) / total, self._force)


class _Paint:
    """Weights of the nodes of a body, which they keep when it falls apart."""

    def __init__(self) -> None:
        self._birth, self._weights = np.zeros((0, 3)), np.zeros(0)
        self._known: dict[Body, tuple[Floats, Floats]] = {}

    def add(self, body: Body, weights: Floats) -> None:
        """Those of the body, or of a piece that it has fallen into already."""
        self._birth = np.concatenate([self._birth, body.birth])
        self._weights = np.concatenate([self._weights, weights])
        self._known[body] = body.birth, weights

    def any(self) -> bool:
        """Whether there are any but 0."""
        return bool(self._weights.any())

    def on(self, piece: Body) -> Floats:
        """Those of the body or of a piece of it, shape (n,)."""
        birth, weights = self._known.get(piece, (None, self._weights))
        if birth is not piece.birth:
            weights = self._weights[cKDTree(self._birth).query(piece.birth)[1]]
            self._known[piece] = piece.birth, weights
        return weights


def _key(body: Body) -> tuple[str, bytes]:
    """What a body and all its pieces are known by."""
    return body.whole, body.certificate


@dataclass(frozen=True, eq=False)
class SurfaceField(ForceField):
    """What acts on particle surfaces alone; their model finds its forces. Without `bodies`, on all that it can."""

    def enter(self, world: BodyWorld) -> None:
        super().enter(world)
        given = [body for body in world.bodies if ForceField.acts_on(self, body)]
        unfit = [reason for body in given if (reason := self._unfit(body))]
        if unfit and (self.bodies is not None or len(unfit) == len(given)):
            raise PhyxelError(f"{self.label}: {unfit[0]}")

    def acts_on(self, body: Body) -> bool:
        return super().acts_on(body) and self._unfit(body) is None

    def _unfit(self, body: Body) -> str | None:
        """Why it cannot act on a body, if so."""
        if body.sheet is None:
            thin = " or ".join(named(kind for kind in public_kinds() if not kind.has_inside))
            return f'{body.name} has model = "{body.model}"; it acts on thin surfaces only, model = {thin}'
        return None

    def _check_pressure(self, key: str) -> None:
        if not 0 < self._counted(key, "Pa") < np.inf:
            raise PhyxelError(f"{self.label}: {key} = {getattr(self, key)}: give a pressure above 0 Pa")


@knows_its_arguments
@dataclass(frozen=True, eq=False)
class Filling(SurfaceField):
    """What closed particle surfaces are filled with: it presses with p = B (amount − V/V₀), V being the volume within
    and V₀ that at rest.

    >>> px.Filling(bulk="1 kPa", amount=1.2).bulk  # a fifth more than the balloon holds at rest
    1000.0
    """

    bulk: float
    """B: pressure for every part of the volume at rest that is missing [Pa]"""
    amount: float = 1.0
    """volume of it without pressure, over V₀: more blows the surface up, less lets it sag"""

    def __post_init__(self) -> None:
        super().__post_init__()
        self._check_pressure("bulk")
        if not 0 <= self._counted("amount", "") < np.inf:
            raise PhyxelError(f"{self.label}: amount = {self.amount}: give 0 or more; 1 just fills it at rest")

    def _unfit(self, body: Body) -> str | None:
        if body.sheet is not None and not body.sheet.closed:
            return f"{body.name} is open or has no faces; only a closed surface can be filled"
        return super()._unfit(body)


@knows_its_arguments
@dataclass(frozen=True, eq=False)
class Wrap(SurfaceField):
    """Draws particle surfaces onto a collider: pressure × area at rest, straight to the nearest point of its solid. In
    the collider there is no pull: contact stops the surface on it. If it is taken away, so is the pull.

    >>> px.Wrap(px.Sphere(0.3), pressure="0.5 kPa").pressure
    500.0
    """

    collider: Ground | Collider
    """in the same world"""
    pressure: float
    """[Pa]"""

    def __post_init__(self) -> None:
        super().__post_init__()
        if not isinstance(self.collider, Ground | Collider):
            raise PhyxelError(f"{self.label}: {self.collider!r}: give a collider, for example px.Sphere(0.5)")
        self._check_pressure("pressure")

    def enter(self, world: BodyWorld) -> None:
        super().enter(world)
        if not any(one is self.collider for one in world.colliders):
            raise PhyxelError(f"{self.label}: the {self.collider.label} is not in the world; add it first")


def _is_later(time: float, than: float) -> bool:
    return time > than and not math.isclose(time, than, rel_tol=ROUNDING)
