"""What the rooms of the house know of a body: how it was born, where it lies, what its nodes have, its cracks.

`phyxel.body.Body` adds what users do with it.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from numpy.typing import NDArray

from phyxel.body.appearance import Appearance
from phyxel.body.birth import Made
from phyxel.body.fragments import Remnant, Thrown, unbroken
from phyxel.body.holds import Handle
from phyxel.body.placement import Anchor
from phyxel.body.protocols import AtBirth, BodyWorld, Nodal
from phyxel.body.shape import NodeData, Shape
from phyxel.cache import T
from phyxel.cracks.fracture import Fracture, scattered
from phyxel.errors import PhyxelError
from phyxel.material import Mixture
from phyxel.material.substance import Substance
from phyxel.models.kind import KINDS, ModelKind, named, public_kinds
from phyxel.notebook import Fact, Showable
from phyxel.solid.distance_grid import DistanceGrid
from phyxel.solid.solid import Solid
from phyxel.surface.hull import Hull, PressedSkin
from phyxel.surface.motion import Motion
from phyxel.surface.ring import Ring
from phyxel.surface.surfels import Surfels
from phyxel.units import amount_text, extents_text, volume_text

if TYPE_CHECKING:
    from phyxel.body.body import Body

Floats = NDArray[np.float64]


FOR_ROOMS = {
    "birth", "birth_places", "centre", "check_cut", "check_material", "check_melts", "facts", "follow_ramp", "held",
    "in_world", "is_brittle", "kind", "motion", "needs_solid", "no_solid", "nodal", "once", "origin", "outermost",
    "placed_cloud", "places", "ring", "sees", "skin", "skin_deformation", "solid_distance", "space",
    "start_velocities", "surfels", "thumbnail", "unit",
}  # fmt: skip
"""What rooms ask of a body and users need not know."""


class ForUsers(type):
    """Of bodies: help() and completion list what they are for users."""

    def __dir__(cls) -> list[str]:
        return [name for name in super().__dir__() if name not in FOR_ROOMS]


class BodyCore(Showable, metaclass=ForUsers):
    """The inner half of a body."""

    name: str
    appearance: Appearance
    substance: Substance

    def __init__(self, model: str, made: Made, nodes: NodeData) -> None:
        self.model = model
        """what moves it"""
        self.made = made
        """what it has at birth, together with bodies that were born alike"""
        self.nodes = nodes
        """what each node has from birth on"""
        self.cloud, self.sheet = made.cloud, made.sheet
        self.anchor = Anchor(made.unit, made.middle, made.middle.copy())
        self.born = Anchor(made.unit, made.middle, made.middle)
        self.shape = Shape(made, self.born)
        self.reshaped = False
        """whether the reference shape is not that of birth"""
        self.has_melted = False
        self.hull = Hull()
        """what wind presses on"""
        self.fracture: Fracture | None = None
        """its cracks and the rules by which they run; none if it cannot crack"""
        self.handles: list[Handle] = []
        self.world: BodyWorld | None = None
        """that it is in"""
        self._space: Any = None
        self.whole = self.name
        """the name of the body that it was once part of, or its own"""
        self.comes_by_event = False
        """whether an event of a scene adds it to the world"""
        self.remnant: Remnant | None = None
        """of a piece: what it knows of that which has parted from it"""
        self.thrown: Thrown | None = None
        """of a crumb: how it starts"""
        self.guide: DistanceGrid | None = None
        """distances of its solid, for contact; known when first needed"""
        self.parted_at = 0
        """revision of the cracks at which it was last asked whether it has parted"""

    def __dir__(self) -> list[str]:
        return [*dir(type(self)), *vars(self)]

    @property
    def kind(self) -> ModelKind:
        """What its model is and can."""
        return KINDS[self.model]

    # What its nodes have from birth on

    @property
    def birth(self) -> Floats:
        """X in the first reference shape [m], shape (n, 3)"""
        return self.nodes.X

    @property
    def volumes(self) -> Floats:
        """[m³], shape (n,)"""
        return self.nodes.volumes

    @property
    def start_velocities(self) -> Floats:
        """[m/s], shape (n, 3)"""
        return self.nodes.velocities

    @property
    def solid(self) -> Solid:
        """What the cloud encloses."""
        if self.made.solid is None:
            raise self.no_solid("solid")
        return self.made.solid()

    def once(self, name: Hashable, make: Callable[[], T]) -> T:
        """What follows from its birth alone: made once for all bodies that were born alike. Of a piece, and of what has
        another shape, made anew."""
        return make() if self.reshaped or self.remnant is not None else self.made.once(name, make)

    @property
    def unit(self) -> float:
        """Mean node spacing [m]: the length the body computes in."""
        return self.anchor.unit

    @property
    def centre(self) -> Floats:
        """Middle of the reference shape [m], shape (3,)."""
        return self.anchor.centre

    @property
    def origin(self) -> Floats:
        """Where the middle of the reference shape is now [m], shape (3,)."""
        return self.anchor.origin

    @origin.setter
    def origin(self, origin: Floats) -> None:
        self.anchor.origin = origin

    @property
    def reference(self) -> Floats:
        """X [m], shape (n, 3): the shape at birth; of what has melted, that in which strain was last absorbed."""
        return self.centre + self.unit * self.nodal.X if self.reshaped else self.birth

    @property
    def places(self) -> Floats:
        """Where regions look for nodes [m], shape (n, 3): in the shape at birth; of what has melted, where it was when
        its shape was last absorbed."""
        return self.reference if self.has_melted else self.birth

    # Where it lies

    def placed_cloud(self) -> Floats:
        """Where the cloud's points are in the shape at birth [m], shape (m, 3)."""
        return self.shape.placement.placed(self.cloud.positions)

    @property
    def birth_places(self) -> Floats:
        """X at birth in body units, shape (n, 3): what cracks count in."""
        return self.shape.in_units(self.birth)

    def sees(self, one: NDArray[np.floating], other: NDArray[np.floating]) -> NDArray[np.bool_]:
        """Whether positions (n, 3) and (n, 3) at birth, in body units, see each other inside the solid, past cracks."""
        seen = self.shape.sees(one, other)
        return seen if self.fracture is None else seen & self.fracture.cracks.sees(one, other)

    def solid_distance(self, positions: NDArray[np.floating]) -> Floats:
        """Signed distance of (n, 3) positions at birth from the solid's surface, all in body units, shape (n,). What
        has parted from it is outside."""
        distance = -self.shape.depth(positions)
        return distance if self.remnant is None else self.remnant.narrowed(positions, distance)

    @property
    def space(self) -> Any:
        """The displacement fields that it can have: a `Space`, or of what is rigid a `RigidSpace`. A phyxel body is
        asked for its modes in them."""
        if self._space is None:
            make = self.kind.space
            if make is None:
                raise self.no_solid("space")
            self._space = make(self, self.in_world("space").device)
        return self._space

    @space.setter
    def space(self, space: Any) -> None:
        self._space = space

    @cached_property
    def ring(self) -> Ring:
        """How the particles of a surface carry its surfels."""
        assert self.sheet is not None
        faces = self.cloud.faces if self.cloud.quads is None else self.cloud.quads
        device = self.in_world("ring").device
        X, normals = self.sheet.X, self.sheet.normals
        return self.once(("ring", str(device)), lambda: Ring.around(X, normals, faces, device))

    @property
    def outermost(self) -> NDArray[np.int64]:
        """Nodes that may touch something, shape (k,): those on the surface."""
        return np.flatnonzero(self.nodes.reach == 0)

    # What it is made of

    @property
    def mixture(self) -> Mixture:
        """What each node is made of."""
        return self.substance.mixture

    def _consist_of(self, substance: Substance) -> None:
        """Be of this from now on, and ready to crack if that has a strength."""
        self.substance = substance
        """what it is made of"""
        if self.sheet is not None:  # a thin surface is as heavy as it is thick now
            volumes = self.unit**2 * self.sheet.areas * self.mixture.number("thickness")
            self.nodes = replace(self.nodes, volumes=volumes)
        if self.fracture is None and np.isfinite(self.strength).any():
            self.fracture = unbroken(cast("Body", self))

    @property
    def strength(self) -> Floats:
        """Largest principal stress that its nodes bear [Pa], shape (n,); infinite where it never cracks."""
        if not self.kind.bends:
            return np.full(len(self.birth), np.inf)
        return scattered(self.mixture.number("strength"), self.mixture.number("strength_scatter"), self.nodes.luck)

    @property
    def is_brittle(self) -> bool:
        """Whether cracks can start or run in it."""
        return self.fracture is not None and not self.has_melted and bool(np.isfinite(self.strength).any())

    @property
    def has_cracked(self) -> bool:
        """Whether there is a crack in it, or it is a piece of what fell apart."""
        return self.fracture is not None and len(self.fracture.cracks) > 0

    def facts(self) -> Iterator[Fact]:
        yield "model", self.model
        yield "nodes", f"{len(self.birth):,}"
        yield "size", extents_text(np.ptp(self.placed_cloud(), axis=0))
        yield "points", f"{len(self.cloud):,}"
        yield "volume", volume_text(float(self.volumes.sum()))
        yield "mass", amount_text(float(self.masses.sum()), "kg")
        yield "material", str(self.substance.material)
        states = {"has melted": self.has_melted, "has cracked": self.has_cracked, "is held": bool(self.handles)}
        if any(states.values()):
            yield "state", ", ".join(state for state, is_so in states.items() if is_so)

    # What it has now

    @property
    def motion(self) -> Motion:
        """What its surfels follow."""
        me = cast("Body", self)
        return self.in_world("motion").mover_of(me).motion(me)

    @property
    def nodal(self) -> Nodal:
        """What its nodes have now, in its units."""
        me = cast("Body", self)
        return AtBirth(me) if self.world is None else self.world.mover_of(me).nodal(me)

    @property
    def masses(self) -> Floats:
        """[kg], shape (n,)"""
        return self.mixture.number("density") * self.volumes * self.nodes.heft

    @property
    def positions(self) -> Floats:
        """x [m], shape (n, 3)"""
        u = self.nodal.u
        return self.origin + (self.reference - self.centre) + self.unit * u

    @property
    def velocities(self) -> Floats:
        """v [m/s], shape (n, 3)"""
        return self.start_velocities.copy() if self.world is None else self.unit * self.nodal.v

    @property
    def surfels(self) -> Surfels:
        """The surfels, where they were last carried."""
        return self.appearance.last_carried(self.in_world("surface"))

    @property
    def skin(self) -> PressedSkin:
        """What wind and the like can press on: at birth, or of what has melted, some moments ago."""
        return self.hull.skin(self.anchor.surfaced if self.has_melted else -1, self.appearance.pressed_skin)

    @property
    def skin_deformation(self) -> Floats:
        """J of each node against the shape that `skin` is of, shape (n, 3, 3)."""
        if self.has_melted:
            return np.broadcast_to(np.eye(3), (len(self.birth), 3, 3))
        nodal = self.nodal
        return (np.eye(3) + nodal.gradient) @ nodal.past

    def needs_solid(self, what: str) -> None:
        """Refuse what only a solid can do or has."""
        if not self.kind.has_inside:
            raise self.no_solid(what)

    def no_solid(self, what: str) -> PhyxelError:
        """What to say to who asks a thin surface for what only a solid can do or has."""
        solids = named(kind for kind in public_kinds() if kind.has_inside and kind.can("crack"))
        return PhyxelError(
            f'{self.name}: {what}: model = "{self.model}" is a thin surface, which neither cracks nor melts and has no '
            f"inside; {' and '.join(solids)} make it a solid"
        )

    def in_world(self, what: str) -> BodyWorld:
        """The world it is in; `what` is asked for needs one."""
        if self.world is None:
            raise PhyxelError(f"{self.name}: {what} needs a world; call world.add(body) first")
        return self.world
