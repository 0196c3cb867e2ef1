# mypy: disable-error-code="valid-type,no-untyped-def"
"""Colliders, and how a node bounces and slides that runs into them: by impulses, without penalty springs."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, fields
from typing import Any, ClassVar

import numpy as np
import warp as wp
from numpy.typing import NDArray

from phyxel import device as dev
from phyxel import region
from phyxel.contact import paths
from phyxel.contact.distances import BOX, CAPSULE, PLANE, SPHERE, TURNED
from phyxel.errors import PhyxelError, knows_its_arguments
from phyxel.material.look import look_named
from phyxel.rotation import axes_about, euler
from phyxel.units import quantity

wp.set_module_options(dev.KERNEL_OPTIONS)

Floats = NDArray[np.float64]
Triple = paths.Triple


def check_surface(name: str, friction: float, restitution: float) -> None:
    """Refuse a friction or restitution that no surface has."""
    if not (isinstance(friction, int | float | np.number) and 0 <= friction < math.inf):
        raise PhyxelError(f"{name}.friction = {friction}: give 0 or more (ice 0.05, rubber 1)")
    if not (isinstance(restitution, int | float | np.number) and 0 <= restitution <= 1):
        raise PhyxelError(f"{name}.restitution = {restitution}: give a number from 0 to 1")


@knows_its_arguments
@dataclass(frozen=True)
class Ground:
    """A level plane that everything stays above.

    >>> px.World().add(px.Ground(height="-10 cm", friction=0.7))
    """

    height: float = 0.0
    """y of the plane [m]"""
    friction: float = 0.5
    """Coulomb's coefficient, 0 or more"""
    restitution: float = 0.0
    """share of the normal velocity that comes back, 0..1; an elastic body bounces by itself"""

    kind: ClassVar[int] = int(PLANE)
    label: ClassVar[str] = "ground"
    sizes: ClassVar[tuple[float, ...]] = ()
    extent: ClassVar[float] = 0.0
    moves: ClassVar[bool] = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "height", quantity("ground.height", self.height, "m"))
        if not math.isfinite(self.height):
            raise PhyxelError(f"ground.height = {self.height}: give a finite height in metres")
        check_surface("ground", self.friction, self.restitution)

    @property
    def normal(self) -> Triple:
        """Unit vector out of the ground."""
        return (0.0, 1.0, 0.0)

    def signature(self) -> str:
        """What it is, the same in every run."""
        return repr(self)


@dataclass(frozen=True, kw_only=True)
class Collider:
    """What every collider but the ground has: a place, a turn, a path, a surface.

    Its shape is given in a frame of its own. `pose` says where that frame's origin is in the world and how its axes
    stand.
    """

    at: Triple = (0.0, 0.0, 0.0)
    """where it is moved to [m]"""
    rotate: Triple = (0.0, 0.0, 0.0)
    """degrees about x, y, z, in this order"""
    friction: float = 0.5
    """Coulomb's coefficient, 0 or more"""
    restitution: float = 0.0
    """share of the normal velocity that comes back, 0..1"""
    path: paths.Path | None = None
    """how it moves, in place of `at` and `rotate`: keyframes `(time, at)` or `(time, at, rotate)`, gone through evenly
    (turning by less than half a turn from one to the next), at rest before and after; or a function of time [s] -> at
    [m]"""
    look: str = field(default="stone", repr=False)
    """what it is drawn as: "gummy", "wax", "clay", "stone" or "matte\""""

    kind: ClassVar[int]
    see_through: ClassVar[bool] = False
    """whether pictures leave out the half before its middle, to show what is in it"""

    def __post_init__(self) -> None:
        object.__setattr__(self, "at", paths.triple(f"{self.label}.at", self.at))
        object.__setattr__(self, "rotate", paths.triple(f"{self.label}.rotate", self.rotate, "degrees"))
        check_surface(self.label, self.friction, self.restitution)
        look_named(self.label, self.look)
        if callable(self.path):
            paths.triple(f"{self.label}.path(0)", self.path(0.0))
        elif self.path is not None:
            object.__setattr__(self, "path", paths.keyframes(self.label, self.path, self.rotate))

    @property
    def label(self) -> str:
        """What errors call it."""
        return type(self).__name__.lower()

    def _check_length(self, key: str, least: float = 0.0) -> None:
        value = quantity(f"{self.label}.{key}", getattr(self, key), "m")
        object.__setattr__(self, key, value)
        if not (isinstance(value, int | float | np.number) and math.isfinite(value) and value > least):
            raise PhyxelError(f"{self.label}.{key} = {value}: give a length above {least:g} m")

    @property
    def sizes(self) -> tuple[float, ...]:
        """The lengths its distance function takes [m]."""
        raise NotImplementedError

    @property
    def box(self) -> tuple[Floats, Floats]:
        """Lower and upper corner of the box around it, in its own frame [m]."""
        raise NotImplementedError

    @property
    def middle(self) -> Floats:
        """Where the origin of its frame lies when `at` is zero [m]."""
        return np.zeros(3)

    @property
    def extent(self) -> float:
        """How far it reaches from the origin of its frame, at most [m]."""
        return float(np.linalg.norm(np.maximum(*np.abs(self.box))))

    @property
    def moves(self) -> bool:
        return self.path is not None

    def pose(self, time: float) -> tuple[Floats, Floats]:
        """Origin [m] and axes (3 × 3) of its frame at a time [s]."""
        if callable(self.path):
            at, rotation = np.array(paths.triple(f"{self.label}.path({time:g})", self.path(time))), self.rotation
        elif self.path is not None:
            at, rotation = paths.between(self.path, time)
        else:
            at, rotation = np.array(self.at), self.rotation
        return at + self.middle, rotation

    @property
    def rotation(self) -> Floats:
        """How `rotate` turns its axes, 3 × 3."""
        return euler(self.rotate)

    def signature(self) -> str:
        """What it is, the same in every run. A path that is a function is known by where it leads at whole seconds."""
        values = {field.name: getattr(self, field.name) for field in fields(self) if field.repr}
        if callable(self.path):
            values["path"] = [paths.triple("path", self.path(float(second))) for second in range(10)]
        return f"{self.label} {values}"


@knows_its_arguments
@dataclass(frozen=True)
class Sphere(Collider):
    """A ball about `at`.

    >>> ball = px.Sphere("20 cm", path=[(0, (0, 1, 0)), (2, (1, 1, 0))])  # where it is at 0 s and at 2 s
    >>> ball.pose(1.0)[0]
    array([0.5, 1. , 0. ])
    """

    radius: float
    """[m]"""
    kind: ClassVar[int] = int(SPHERE)

    def __post_init__(self) -> None:
        super().__post_init__()
        self._check_length("radius")

    @property
    def sizes(self) -> tuple[float, ...]:
        return (self.radius,)

    @property
    def box(self) -> tuple[Floats, Floats]:
        return np.full(3, -self.radius), np.full(3, self.radius)


@knows_its_arguments
@dataclass(frozen=True)
class Box(Collider, region.BoxRegion):
    """A box from `lower` to `upper` [m]: a region of a body, or a collider.

    As a collider it is moved by `at` and turned by `rotate` about its middle. A region has neither.

    >>> px.World().add(px.Box((-1, -0.1, -1), (1, 0, 1), rotate=(0, 0, 15)))
    >>> px.Box((0, 0, 0), (1, np.inf, 1))(np.array([[0.5, 9, 0.5], [2, 0, 0]]))
    array([ True, False])
    """

    lower: Sequence[float]
    """corner with the least coordinates [m]; of a region also -inf"""
    upper: Sequence[float]
    """corner with the largest [m]; of a region also inf"""
    kind: ClassVar[int] = int(BOX)

    def __post_init__(self) -> None:
        region.BoxRegion.__post_init__(self)
        Collider.__post_init__(self)
        for key in ("lower", "upper"):
            object.__setattr__(self, key, tuple(float(number) for number in getattr(self, key)))

    def __call__(self, positions: NDArray[np.floating]) -> NDArray[np.bool_]:
        """Which of (n, 3) positions lie in the region, its faces included."""
        if self.moves or any(self.at) or any(self.rotate):
            raise PhyxelError("box: a region cannot be moved or turned; give only lower and upper")
        return region.BoxRegion.__call__(self, positions)

    @property
    def _half(self) -> Floats:
        return 0.5 * np.subtract(self.upper, self.lower)

    @property
    def sizes(self) -> tuple[float, ...]:
        return tuple(self._half.tolist())

    @property
    def box(self) -> tuple[Floats, Floats]:
        return -self._half, self._half

    @property
    def middle(self) -> Floats:
        return np.asarray(0.5 * np.add(self.upper, self.lower))


@knows_its_arguments
@dataclass(frozen=True)
class Capsule(Collider):
    """A rod with round ends: all that is within `radius` of the line from `start` to `end` [m]. `at` moves it, `rotate`
    turns it about its middle.

    >>> px.World().add(px.Capsule((0, 1, -1), (0, 1, 1), radius="5 cm"))
    """

    start: Triple
    end: Triple
    radius: float
    """[m]"""
    kind: ClassVar[int] = int(CAPSULE)

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "start", paths.triple("capsule.start", self.start))
        object.__setattr__(self, "end", paths.triple("capsule.end", self.end))
        self._check_length("radius")

    @property
    def sizes(self) -> tuple[float, ...]:
        return (0.5 * math.dist(self.start, self.end), self.radius)

    @property
    def box(self) -> tuple[Floats, Floats]:
        half, radius = self.sizes
        upper = np.array([radius, half + radius, radius])
        return -upper, upper

    @property
    def middle(self) -> Floats:
        return np.asarray(0.5 * np.add(self.start, self.end))

    def pose(self, time: float) -> tuple[Floats, Floats]:
        place, rotation = super().pose(time)
        return place, rotation @ _onto_y(np.subtract(self.end, self.start))


def _onto_y(direction: Floats) -> Floats:
    """Axes whose y points along a direction, 3 × 3."""
    length = float(np.linalg.norm(direction))
    y = direction / length if length > 0 else np.array([0.0, 1.0, 0.0])
    _, x, back = axes_about(y[None])[0]
    return np.stack([x, y, -back], axis=1)


@knows_its_arguments
@dataclass(frozen=True)
class Spike(Collider):
    """A solid cone that points up, or where `rotate` turns it; `at` is the middle of its foot, about which it turns.

    >>> px.World().add(px.Spike(height=0.3, radius=0.1, at=(0, 0, 0.5)))
    """

    height: float
    """[m]"""
    radius: float
    """of its foot [m]"""
    kind: ClassVar[int] = int(TURNED)

    def __post_init__(self) -> None:
        super().__post_init__()
        self._check_length("height")
        self._check_length("radius")

    @property
    def sizes(self) -> tuple[float, ...]:
        return (0.0, 0.0, self.radius, 0.0, self.height)

    @property
    def box(self) -> tuple[Floats, Floats]:
        r = self.radius
        return np.array([-r, 0.0, -r]), np.array([r, self.height, r])


@knows_its_arguments
@dataclass(frozen=True)
class Funnel(Collider):
    """An open cone wall, wide above and narrow below; `at` is the middle of the lower opening, about which it turns.

    >>> px.World().add(px.Funnel(0.5, 0.15, height=0.4, thickness=0.03, at=(0, 1, 0)))
    """

    upper_radius: float
    """inner radius of the upper opening [m]"""
    lower_radius: float
    """inner radius of the lower opening [m]"""
    height: float
    """[m]"""
    thickness: float
    """of the wall [m]"""
    kind: ClassVar[int] = int(TURNED)
    see_through: ClassVar[bool] = True

    def __post_init__(self) -> None:
        super().__post_init__()
        for key in ("upper_radius", "lower_radius", "height", "thickness"):
            self._check_length(key)

    @property
    def sizes(self) -> tuple[float, ...]:
        # The rims are level: measured along them, a slanting wall is thicker than it is.
        rim = self.thickness * math.hypot(1.0, (self.upper_radius - self.lower_radius) / self.height)
        return (self.lower_radius, self.upper_radius, self.lower_radius + rim, self.upper_radius + rim, self.height)

    @property
    def box(self) -> tuple[Floats, Floats]:
        r = max(self.sizes[2:4])
        return np.array([-r, 0.0, -r]), np.array([r, self.height, r])


@wp.func
def rebound(v: Any, normal: Any, friction: Any, restitution: Any):
    """Velocity after an impact (physics 15.2): v_n' = −e v_n, and Coulomb friction v_t' = v_t max(0, 1 −
    μ(1+e)|v_n|/|v_t|)."""
    v_n = wp.dot(v, normal)
    if v_n >= type(v_n)(0.0):
        return v
    v_t = v - v_n * normal
    sliding = wp.length(v_t)
    grip = friction * (restitution + type(restitution)(1.0)) * -v_n
    keep = type(restitution)(0.0)
    if sliding > grip:
        keep = type(restitution)(1.0) - grip / sliding
    return keep * v_t - restitution * v_n * normal
