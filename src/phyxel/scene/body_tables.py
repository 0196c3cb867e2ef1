"""Tables of the scene file that describe bodies, what happens to them, and how they are shown."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, Self, get_args

import numpy as np
from pydantic import Field, field_validator, model_validator

from phyxel.body import Body
from phyxel.body.checks import MODES, MOST_MODES, WARP
from phyxel.body.holds import Handle, HoldMotion, turn_of, way_of
from phyxel.body.inside import Inside
from phyxel.body.skeleton import Bone, Skeleton
from phyxel.contact.colliders import Box, Collider, Ground
from phyxel.errors import MaterialError, PhyxelError, did_you_mean
from phyxel.fields import Attraction, Filling, ForceField, Push, Wind, Wrap
from phyxel.material.look import NAMES
from phyxel.material.material import Material
from phyxel.material.membrane import Membrane
from phyxel.material.presets import MEMBRANES, PRESETS
from phyxel.material.variation import CHANNELS, VARYING, Channel
from phyxel.models.kind import KINDS as MODELS
from phyxel.points.cloud import PointCloud
from phyxel.region import Spot, Where
from phyxel.scene.tables import COLLIDERS, Rate, SourcePart, Table, Triple


class RegionPart(Table):
    """A box in reference positions [m]; without bounds, everything."""

    lower: Triple = (-np.inf, -np.inf, -np.inf)
    upper: Triple = (np.inf, np.inf, np.inf)

    @property
    def box(self) -> Box:
        return Box(self.lower, self.upper)


class MaterialPart(Table):
    preset: Literal[(*PRESETS, *MEMBRANES)] | None = None  # type: ignore[valid-type]
    young: float | None = None
    poisson: float | None = None
    density: float | None = None
    damping: float | None = None
    drag: float | None = None
    yield_strain: float | None = None
    yield_stress: float | None = None
    creep: float | None = None
    max_strain: float | None = None
    viscosity: float | None = None
    strength: float | None = None
    strength_scatter: float | None = None
    stiffness: list[list[float]] | None = None
    thickness: float | None = None
    foundation: float | None = None
    plasticity: float | None = None
    elastic_limit: float | None = None
    weft: float | None = None
    shear: float | None = None
    bending: float | None = None

    def over(self, base: Material) -> Material:
        """This material, with what it leaves open taken from `base` (or from its own preset)."""
        given = self.model_dump(exclude={"preset"}, exclude_none=True)
        if self.preset is not None:
            base = (Membrane if self.preset in MEMBRANES else Material).preset(self.preset)
        if missing := [name for name in given if not hasattr(base, name)]:
            raise MaterialError(
                f'material.{missing[0]}: only a thin surface has it: model = "particles", of {", ".join(MEMBRANES)}'
            )
        if {"young", "poisson"} & set(given) and base.stiffness is not None:
            given.setdefault("stiffness", None)
        if {"yield_strain", "yield_stress"} & set(given):  # one of them takes the place of the other
            given = {"yield_strain": None, "yield_stress": None} | given
        return base.but(**given)


class KeyPart(Table):
    """Where something is at a time, and how it is turned."""

    at: float
    to: Triple | None = None
    turn: Triple | None = None

    @model_validator(mode="after")
    def _says_something(self) -> KeyPart:
        if self.to is None and self.turn is None:
            raise ValueError("give to, turn, or both")
        return self


def _places(path: list[KeyPart]) -> list[tuple[float, Triple]]:
    return [(key.at, key.to) for key in path if key.to is not None]


def _turns(path: list[KeyPart]) -> list[tuple[float, Triple]]:
    return [(key.at, key.turn) for key in path if key.turn is not None]


class BonePart(Table):
    """A bone of a body's skeleton."""

    name: str
    joint: Triple
    parent: str | None = None
    path: list[KeyPart] = Field(default=[])

    def bone(self) -> Bone:
        return Bone(self.name, self.joint, self.parent, _turns(self.path) or None, _places(self.path) or None)


class PlacePart(RegionPart):
    """Where on a body: nodes in the box, or around a surfel."""

    surfel: int | None = Field(default=None, ge=0)
    near: Triple | None = None
    radius: float | None = Field(default=None, gt=0)

    @model_validator(mode="after")
    def _one_place(self) -> Self:
        boxed = bool(np.isfinite([self.lower, self.upper]).any())
        if boxed + (self.surfel is not None) + (self.near is not None) > 1:
            raise ValueError("give a box (lower, upper), a surfel, or a place it is near; not two of them")
        if self.radius is not None and self.surfel is None and self.near is None:
            raise ValueError("radius needs a surfel, or a place it is near")
        return self

    @property
    def where(self) -> Where:
        picked = self.surfel if self.near is None else self.near
        return self.box if picked is None else Spot(picked, self.radius)


class HoldPart(PlacePart):
    """Nodes to hold."""

    to: Triple = (0.0, 0.0, 0.0)
    turn: Triple = (0.0, 0.0, 0.0)
    over: float = Field(default=0.0, ge=0)
    path: list[KeyPart] = Field(default=[])
    bone: str | None = None
    name: str | None = None

    @model_validator(mode="after")
    def _one_way(self) -> HoldPart:
        goes = any(self.to) or any(self.turn) or bool(self.over)
        if self.path and goes:
            raise ValueError("give to and turn (and over) or a path, not both")
        if self.bone is not None and (self.path or goes):
            raise ValueError("a bone says where it goes; give no to, turn, over or path beside it")
        return self

    def way(self, time: float) -> HoldMotion:
        """By `to` [m] in `over` [s] from `time` on, or along the path."""
        return _places(self.path) or self._within(self.to, time)

    def turning(self, time: float) -> HoldMotion | None:
        """By `turn` [degrees] in `over` [s] from `time` on, or as the path says."""
        return _turns(self.path) or (self._within(self.turn, time) if any(self.turn) else None)

    def _within(self, goal: Triple, time: float) -> HoldMotion:
        return [(time + self.over, goal)] if self.over else goal

    def take(self, body: Body, time: float, skeleton: Skeleton) -> Handle:
        """Hold the nodes from `time` [s] on, and move them if they are to."""
        if self.bone is not None:
            return body.attach(self.where, skeleton, self.bone)
        return body.drag(self.where, self.way(time), self.turning(time))

    def rehearse(self, body: Body, time: float, skeleton: Skeleton) -> None:
        """Find what `take` would find wrong, without taking hold."""
        body.held(self.where)
        if self.bone is not None:
            skeleton.pose(self.bone, time)
        way_of(f"{body.name}: drag", self.way(time), time)
        turn_of(f"{body.name}: turn", self.turning(time), time)


class RefinePart(RegionPart):
    """Where nodes stand closer."""

    levels: int = Field(default=1, ge=0, le=7)


class PaintPart(RegionPart):
    """Where points have another colour."""

    color: Triple


class CutPart(Table):
    """A crack that is put in: a disc, a slit or all through."""

    at: Triple
    normal: Triple
    radius: float | None = Field(default=None, gt=0, allow_inf_nan=False)
    ahead: Triple | None = None

    @property
    def crack(self) -> tuple[Triple, Triple, float | None, Triple | None]:
        """What `Body.cut` takes."""
        return self.at, self.normal, self.radius, self.ahead


class OtherPart(RegionPart):
    """Where a body is of another material."""

    material: MaterialPart


class VaryPart(Table):
    """A number of the material that follows a colour or an axis."""

    channel: Literal[CHANNELS]  # type: ignore[valid-type]
    low: float
    high: float


class MeltPart(RegionPart):
    """What melts."""

    viscosity: float | None = Field(default=None, gt=0, allow_inf_nan=False)


class SolidifyPart(RegionPart):
    """What is solid again, and of what."""

    material: MaterialPart | None = None


class BodyPart(SourcePart):
    color: Triple | None = None
    paint: list[PaintPart] = Field(default=[])
    cut: list[CutPart] = Field(default=[])
    seed: int = Field(default=0, ge=0)
    nodes: int = Field(default=800, ge=8)
    model: Literal["phyxel", "galerkin", "modal", "particles"] = "phyxel"
    links: Literal["edges", "weave", "none"] | Annotated[int, Field(strict=True)] | None = None
    warp: Triple = WARP
    basis: Literal["linear", "quadratic"] = "linear"
    modes: int = Field(default=MODES, ge=1, le=MOST_MODES)
    integrator: Literal["leapfrog", "implicit"] | None = None
    surface: Literal["carried", "blended"] | None = None
    at: Triple = (0.0, 0.0, 0.0)
    rotate: Triple | None = None
    size: float | None = Field(default=None, gt=0)
    velocity: Triple = (0.0, 0.0, 0.0)
    spin: Triple = (0.0, 0.0, 0.0)
    support: float = Field(default=2.0, ge=1.2, le=5)
    friction: float = Field(default=0.5, ge=0)
    look: Literal[NAMES] = "gummy"  # type: ignore[valid-type]
    inside: Triple | None = None
    refine: list[RefinePart] = Field(default=[])
    material: MaterialPart = MaterialPart()
    part: list[OtherPart] = Field(default=[])
    vary: dict[Literal[VARYING], VaryPart] = Field(default={})  # type: ignore[valid-type]
    force: Triple = (0.0, 0.0, 0.0)
    bone: list[BonePart] = Field(default=[])
    hold: list[HoldPart] = Field(default=[])

    def skeleton(self) -> Skeleton:
        """What holds can be attached to."""
        return Skeleton([part.bone() for part in self.bone])

    def cloud(self, folder: Path) -> PointCloud:
        """The points this body is made from, in its colour."""
        cloud = super().cloud(folder)
        if self.color is not None:
            cloud = cloud.with_colors(np.broadcast_to(self.color, (len(cloud), 3)))
        return cloud

    def body(self, folder: Path) -> Body:
        cloud = self.cloud(folder)
        keys = {
            "nodes",
            "model",
            "basis",
            "modes",
            "integrator",
            "surface",
            "at",
            "rotate",
            "size",
            "velocity",
            "spin",
            "name",
            "support",
            "closing",
            "friction",
            "look",
            "seed",
            "inside",
            "links",
            "warp",
        }
        options = self.model_dump(include=keys)
        material = self.material.over(MODELS[self.model].usual())
        body = Body(
            cloud,
            material=material,
            refine=[(part.box, part.levels) for part in self.refine],
            parts=[(part.box, part.material.over(material)) for part in self.part],
            vary={name: Channel(part.channel, part.low, part.high) for name, part in self.vary.items()},
            **options,
        )
        for part in self.paint:
            body.paint(part.box, part.color)
        for crack in self.cut:
            body.cut(*crack.crack)
        return body


class FieldPart(Table):
    """What all fields have."""

    bodies: list[str] | None = None
    name: str | None = None
    during: tuple[float, float] | None = None

    def field(self, colliders: Mapping[str, Ground | Collider]) -> ForceField:
        """The field, in a world with these colliders."""
        raise NotImplementedError

    def _given(self, *without: str) -> dict[str, Any]:
        return self.model_dump(exclude={"kind", *without})


class WindPart(FieldPart):
    kind: Literal["wind"]
    velocity: Triple
    density: float = Wind.density
    drag: float = Wind.drag

    def field(self, colliders: Mapping[str, Ground | Collider]) -> ForceField:
        return Wind(**self._given())


class AttractionPart(FieldPart):
    kind: Literal["attraction"]
    centre: Triple
    strength: float
    radius: float = Attraction.radius
    power: float = Attraction.power
    axis: Triple | None = None

    def field(self, colliders: Mapping[str, Ground | Collider]) -> ForceField:
        return Attraction(**self._given())


class PushPart(FieldPart, PlacePart):
    kind: Literal["push"]
    force: Triple
    channel: Literal[CHANNELS] | None = None  # type: ignore[valid-type]
    fades: bool = False

    @model_validator(mode="after")
    def _channel_or_place(self) -> PushPart:
        if self.channel is not None and self.where != RegionPart().box:
            raise ValueError("give a channel or a place (lower, upper, surfel, near), not both")
        return self

    def field(self, colliders: Mapping[str, Ground | Collider]) -> ForceField:
        where = self.where if self.channel is None else Channel(self.channel, 0.0, 1.0)
        return Push(self.force, where, self.fades, bodies=self.bodies, name=self.name, during=self.during)


class FillingPart(FieldPart):
    kind: Literal["filling"]
    bulk: float
    amount: float = Filling.amount

    def field(self, colliders: Mapping[str, Ground | Collider]) -> ForceField:
        return Filling(**self._given())


class WrapPart(FieldPart):
    kind: Literal["wrap"]
    collider: str
    pressure: float

    def field(self, colliders: Mapping[str, Ground | Collider]) -> ForceField:
        if self.collider not in colliders:
            hint = did_you_mean(self.collider, colliders)
            raise PhyxelError(f'collider = "{self.collider}": no collider has this name{hint}')
        return Wrap(colliders[self.collider], **self._given("collider"))


AnyFieldPart = WindPart | AttractionPart | PushPart | FillingPart | WrapPart
KINDS: dict[str, type[Table]] = {
    get_args(part.model_fields["kind"].annotation)[0]: part for part in get_args(AnyFieldPart)
} | COLLIDERS
"""Tables of which there are several kinds: the validator names the kind like a key."""


TO_BODY = ("material", "melt", "solidify", "force", "hold", "release", "cut", "lift")
TO_WORLD = ("gravity", "field", "remove", "rate")
"""What events do, to a body and to the world."""


class EventPart(Table):
    """Something that happens at a time, to a body or to the world."""

    at: float = Field(ge=0, allow_inf_nan=False)
    body: str | None = None
    material: MaterialPart | None = None
    over: float = Field(default=0.0, ge=0, allow_inf_nan=False)
    melt: MeltPart | None = None
    solidify: SolidifyPart | None = None
    force: Triple | None = None
    hold: HoldPart | None = None
    release: str | None = None
    cut: CutPart | None = None
    lift: Triple | None = None
    gravity: Triple | None = None
    field: Annotated[AnyFieldPart, Field(discriminator="kind")] | None = None
    remove: str | None = None
    rate: Rate | None = None

    @property
    def needs_body(self) -> bool:
        return self._has(TO_BODY)

    def _has(self, keys: tuple[str, ...]) -> bool:
        return any(getattr(self, key) is not None for key in keys)

    @model_validator(mode="after")
    def _does_something(self) -> EventPart:
        if not self._has((*TO_BODY, *TO_WORLD)):
            raise ValueError(f"an event needs one of {', '.join((*TO_BODY, *TO_WORLD))}")
        if self.over and self.material is None:
            raise ValueError("over needs a material that changes so slowly")
        return self


class CameraPart(Table):
    eye: Triple | None = None
    target: Triple | None = None
    direction: Triple = (0.5, 0.3, 1.0)
    fov: float = Field(default=32.0, gt=1, lt=120)
    turntable: float = Field(default=0.0, allow_inf_nan=False)
    """[degrees/s]"""


INSIDE = ("mode", "range", "slice", "opacity", "brightness", "beside")
"""Keys of [output] that say how a field is shown."""


class OutputPart(Table):
    points: list[Literal["ply", "usd", "vtk", "splat"]] = Field(default=["ply"])
    mesh: Literal["obj", "ply", "usd"] | None = None
    video: bool = True
    width: int = Field(default=1280, ge=16, le=8192)
    height: int = Field(default=720, ge=16, le=8192)
    background: Literal["studio", "dark"] | Triple | None = None
    checkpoint_every: int = Field(default=30, ge=1)
    """frames between checkpoints"""
    states: bool = False
    """whether a checkpoint of every frame is kept"""
    field: str | None = None
    mode: str | None = None
    range: tuple[float, float] | None = None
    slice: Any = None
    opacity: tuple[float, float] | None = None
    brightness: float | None = None
    beside: bool | None = None

    @field_validator("points", mode="before")
    @classmethod
    def _one_is_a_list(cls, given: Any) -> Any:
        return [given] if isinstance(given, str) else given

    @model_validator(mode="after")
    def _check_inside(self) -> Self:
        given = [key for key in INSIDE if getattr(self, key) is not None]
        if given and self.field is None:
            raise ValueError(f'{given[0]} needs a field, for example field = "stress"')
        try:
            _ = self.inside
        except PhyxelError as error:
            raise ValueError(str(error)) from error
        return self

    @property
    def inside(self) -> Inside | None:
        """What is shown of the inside of bodies, if anything is."""
        if self.field is None:
            return None
        return Inside(**{key: getattr(self, key) for key in ("field", *INSIDE) if getattr(self, key) is not None})

    @property
    def usd(self) -> str | None:
        """Which key asks for a file of USD, if one does."""
        return "points" if "usd" in self.points else "mesh" if self.mesh == "usd" else None
