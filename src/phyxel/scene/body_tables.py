"""Tables of the scene file that describe bodies: what they are made of, and how they are held."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from inspect import signature
from pathlib import Path
from typing import Annotated, Any, Literal, Self

import numpy as np
from pydantic import Field, create_model, field_validator, model_validator

from phyxel.body import Body
from phyxel.body.attach import Attach
from phyxel.body.checks import MOST_MODES
from phyxel.body.holds import Handle, HoldMotion, turn_of, way_of
from phyxel.body.placement import Place
from phyxel.body.skeleton import Bone, Skeleton
from phyxel.contact.colliders import Box
from phyxel.errors import MaterialError, PhyxelError, did_you_mean
from phyxel.material.look import NAMES
from phyxel.material.material import Material
from phyxel.material.membrane import Membrane
from phyxel.material.number import units_of
from phyxel.material.presets import MEMBRANES, PRESETS
from phyxel.material.variation import CHANNELS, VARYING, Channel
from phyxel.models.kind import KINDS
from phyxel.points.cloud import PointCloud
from phyxel.region import Spot, Where
from phyxel.scene.tables import (
    Color,
    Force,
    Length,
    ModelName,
    Position,
    Pressure,
    Seconds,
    SourcePart,
    Spin,
    Table,
    Triple,
    Turn,
    Velocity,
    counted_in,
)
from phyxel.units import in_unit


class RegionPart(Table):
    """A box in reference positions [m]; without bounds, everything."""

    lower: Position = (-np.inf, -np.inf, -np.inf)
    upper: Position = (np.inf, np.inf, np.inf)

    @property
    def box(self) -> Box:
        return Box(self.lower, self.upper)


class PresetPart(Table):
    preset: Literal[(*PRESETS, *MEMBRANES)] | None = None  # type: ignore[valid-type]


NUMBERS: dict[str, Any] = {entry.name: (list[list[float]] | None, None) for entry in fields(Membrane)} | {
    name: (Annotated[float, counted_in(unit)] | None, None) for name, unit in units_of(Membrane).items()
}
"""Keys of a material's table: all that a solid or a thin surface has."""
NumbersPart: Any = create_model("NumbersPart", __base__=PresetPart, **NUMBERS)


class MaterialPart(NumbersPart):
    """A preset, and numbers in place of its own."""

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

    at: Seconds
    to: Position | None = None
    turn: Turn | None = None

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
    joint: Position
    parent: str | None = None
    path: list[KeyPart] = Field(default=[])

    def bone(self) -> Bone:
        return Bone(self.name, self.joint, self.parent, _turns(self.path) or None, _places(self.path) or None)


class PlacePart(RegionPart):
    """Where on a body: nodes in the box, or around a surfel."""

    surfel: int | None = Field(default=None, ge=0)
    near: Position | None = None
    radius: Length | None = Field(default=None, gt=0)

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

    to: Position = (0.0, 0.0, 0.0)
    turn: Turn = (0.0, 0.0, 0.0)
    over: Seconds = Field(default=0.0, ge=0)
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


class AttachPart(PlacePart):
    """Two bodies to tie to each other."""

    body: str
    to: str
    strength: Pressure | None = Field(default=None, gt=0, allow_inf_nan=False)
    name: str | None = None

    def attach(self, bodies: Mapping[str, Body]) -> Attach:
        """The tie, in a world with these bodies."""
        for key in ("body", "to"):
            if (name := getattr(self, key)) not in bodies:
                raise PhyxelError(f'{key} = "{name}": no such body{did_you_mean(name, bodies)}')
        where = None if self.where == RegionPart().box else self.where
        return Attach(bodies[self.body], bodies[self.to], where, self.strength, self.name)


class RefinePart(RegionPart):
    """Where nodes stand closer."""

    levels: int = Field(default=1, ge=0, le=7)


class PaintPart(RegionPart):
    """Where points have another colour."""

    color: Color


class CutPart(Table):
    """A crack that is put in: a disc, a slit or all through."""

    at: Position
    normal: Triple
    radius: Length | None = Field(default=None, gt=0, allow_inf_nan=False)
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


BODY = signature(Body).parameters
OPTIONS = set(BODY) - {"cloud", "material", "refine", "parts", "vary"}
"""Options of a body that its table has under the same name and in the same words."""


def _usual(option: str, **limits: Any) -> Any:
    """A key with the default that `Body` has for this option."""
    return Field(default=BODY[option].default, **limits)


class BodyPart(SourcePart):
    color: Color | None = None
    paint: list[PaintPart] = Field(default=[])
    cut: list[CutPart] = Field(default=[])
    seed: int = _usual("seed", ge=0)
    nodes: Annotated[int, Field(ge=8)] | Literal["auto"] = _usual("nodes")
    model: ModelName = _usual("model")
    links: Literal["edges", "weave", "none"] | Annotated[int, Field(strict=True)] | None = _usual("links")
    warp: Triple = _usual("warp")
    meets_itself: bool = _usual("meets_itself")
    basis: Literal["linear", "quadratic"] = _usual("basis")
    modes: int = _usual("modes", ge=1, le=MOST_MODES)
    integrator: Literal["leapfrog", "implicit"] | None = _usual("integrator")
    surface: Literal["carried", "blended"] | None = _usual("surface")
    at: Position | None = _usual("at")
    place: Place | None = _usual("place")
    rotate: Turn | None = _usual("rotate")
    size: Length | None = _usual("size", gt=0)
    velocity: Velocity = _usual("velocity")
    spin: Spin = _usual("spin")
    scheme: Literal["consistent", "m04"] | None = _usual("scheme")
    support: float | None = _usual("support", ge=1.2, le=5)
    friction: float = _usual("friction", ge=0)
    restitution: float = _usual("restitution", ge=0, le=1)
    look: Literal[NAMES] = _usual("look")  # type: ignore[valid-type]
    inside: Color | None = _usual("inside")
    refine: list[RefinePart] = Field(default=[])
    material: MaterialPart = MaterialPart()
    part: list[OtherPart] = Field(default=[])
    vary: dict[Literal[VARYING], VaryPart] = Field(default={})  # type: ignore[valid-type]
    force: Force = (0.0, 0.0, 0.0)
    bone: list[BonePart] = Field(default=[])
    hold: list[HoldPart] = Field(default=[])

    @field_validator("nodes", mode="before")
    @classmethod
    def _a_number_or_auto(cls, given: Any) -> Any:
        if isinstance(given, str) and given != "auto":
            raise ValueError('give a whole number of at least 8, or "auto"')
        return given

    @field_validator("vary", mode="before")
    @classmethod
    def _in_units_of_the_number(cls, given: Any) -> Any:
        """Ends of a variation have the unit of what varies."""
        if not isinstance(given, dict):
            return given
        units = units_of(Membrane)
        return {
            name: {key: in_unit(end, units[name]) if key in ("low", "high") else end for key, end in table.items()}
            if name in units and isinstance(table, dict)
            else table
            for name, table in given.items()
        }

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
        material = self.material.over(KINDS[self.model].usual())
        body = Body(
            self.cloud(folder),
            material=material,
            refine=[(part.box, part.levels) for part in self.refine],
            parts=[(part.box, part.material.over(material)) for part in self.part],
            vary={name: Channel(part.channel, part.low, part.high) for name, part in self.vary.items()},
            **self.model_dump(include=OPTIONS),
        )
        for part in self.paint:
            body.paint(part.box, part.color)
        for crack in self.cut:
            body.cut(*crack.crack)
        return body
