"""Tables of the scene file that describe events, force fields, the camera and the output."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal, Self, get_args

from pydantic import BeforeValidator, Field, field_validator, model_validator

from phyxel.body.inside import Inside
from phyxel.colors import rgb
from phyxel.contact.colliders import Collider, Ground
from phyxel.errors import PhyxelError, did_you_mean
from phyxel.fields import Attraction, Filling, ForceField, Push, Wind, Wrap
from phyxel.material.variation import CHANNELS, Channel
from phyxel.scene.body_tables import BodyPart, CutPart, HoldPart, MaterialPart, PlacePart, RegionPart
from phyxel.scene.tables import (
    COLLIDERS,
    Acceleration,
    Degrees,
    DegreesPerSecond,
    Density,
    Force,
    Gain,
    Length,
    Position,
    Pressure,
    Rate,
    Seconds,
    Table,
    Triple,
    Velocity,
    Viscosity,
)


class MeltPart(PlacePart):
    """What melts."""

    viscosity: Viscosity | None = Field(default=None, gt=0, allow_inf_nan=False)


class SolidifyPart(PlacePart):
    """Molten nodes that become solid again, and their material."""

    material: MaterialPart | None = None


class FieldPart(Table):
    """What all fields have."""

    bodies: list[str] | None = None
    name: str | None = None
    during: tuple[Seconds, Seconds] | None = None

    makes: ClassVar[type[ForceField]]

    def field(self, colliders: Mapping[str, Ground | Collider]) -> ForceField:
        """The field, in a world with these colliders."""
        return self.makes(**self.model_dump(exclude={"kind"}))


class WindPart(FieldPart):
    makes = Wind
    kind: Literal["wind"]
    velocity: Velocity
    density: Density = Wind.density
    drag: float = Wind.drag


class AttractionPart(FieldPart):
    makes = Attraction
    kind: Literal["attraction"]
    centre: Position
    strength: Gain
    radius: Length = Attraction.radius
    power: float = Attraction.power
    axis: Triple | None = None


class PushPart(FieldPart, PlacePart):
    kind: Literal["push"]
    force: Force
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
    makes = Filling
    kind: Literal["filling"]
    bulk: Pressure
    amount: float = Filling.amount


class WrapPart(FieldPart):
    kind: Literal["wrap"]
    collider: str
    pressure: Pressure

    def field(self, colliders: Mapping[str, Ground | Collider]) -> ForceField:
        if self.collider not in colliders:
            hint = did_you_mean(self.collider, colliders)
            raise PhyxelError(f'collider = "{self.collider}": no collider has this name{hint}')
        return Wrap(colliders[self.collider], **self.model_dump(exclude={"kind", "collider"}))


AnyFieldPart = WindPart | AttractionPart | PushPart | FillingPart | WrapPart
FIELDS: dict[str, type[Table]] = {
    get_args(part.model_fields["kind"].annotation)[0]: part for part in get_args(AnyFieldPart)
}
KINDS = FIELDS | COLLIDERS
"""Tables of which there are several kinds: the validator names the kind like a key."""


class EventPart(Table):
    """Something that happens at a time, to a body or to the world: one or more of the verbs in verbs.py."""

    at: Seconds = Field(ge=0, allow_inf_nan=False)
    body: str | None = None
    material: MaterialPart | None = None
    over: Seconds = Field(default=0.0, ge=0, allow_inf_nan=False)
    melt: MeltPart | None = None
    solidify: SolidifyPart | None = None
    force: Force | None = None
    hold: HoldPart | None = None
    release: str | None = None
    cut: CutPart | None = None
    lift: Position | None = None
    gravity: Acceleration | None = None
    field: Annotated[AnyFieldPart, Field(discriminator="kind")] | None = None
    remove: str | None = None
    add: BodyPart | None = None
    rate: Rate | None = None

    @model_validator(mode="after")
    def _does_something(self) -> EventPart:
        verbs = [key for key in type(self).model_fields if key not in ("at", "body", "over")]
        if all(getattr(self, verb) is None for verb in verbs):
            raise ValueError(f"an event needs one of {', '.join(verbs)}")
        if self.over and self.material is None:
            raise ValueError("over needs a material that changes so slowly")
        return self


class CameraPart(Table):
    eye: Position | None = None
    target: Position | None = None
    direction: Triple = (0.5, 0.3, 1.0)
    fov: Degrees = Field(default=32.0, gt=1, lt=120)
    turntable: DegreesPerSecond = Field(default=0.0, allow_inf_nan=False)
    """[degrees/s]"""


def _backdrop(given: Any) -> Any:
    return given if given in BACKDROPS else rgb(given, BACKDROPS)


BACKDROPS = ("studio", "dark")
Background = Annotated[Literal[BACKDROPS] | Triple, BeforeValidator(_backdrop)]  # type: ignore[valid-type]
INSIDE = ("mode", "range", "slice", "opacity", "brightness", "beside")
"""Keys of [output] that say how a field is shown."""


class OutputPart(Table):
    points: list[Literal["ply", "usd", "vtk", "splat"]] = Field(default=["ply"])
    mesh: Literal["obj", "ply", "usd"] | None = None
    video: bool = True
    width: int = Field(default=1280, ge=16, le=8192)
    height: int = Field(default=720, ge=16, le=8192)
    background: Background | None = None
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

    def words(self) -> set[str]:
        """What decides which kernels it launches, as `kernels.ready` has it."""
        shown = {"video", self.inside.mode} if self.inside else {"video"}
        written = {"splat"}.intersection(self.points) | ({"mesh"} if self.mesh else set())
        return written | shown if self.video else written

    @property
    def usd(self) -> str | None:
        """Which key asks for a file of USD, if one does."""
        return "points" if "usd" in self.points else "mesh" if self.mesh == "usd" else None
