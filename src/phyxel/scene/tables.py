"""Tables of the scene file that describe points and colliders."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, Self, get_args

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, model_validator

from phyxel.colors import rgb
from phyxel.contact.colliders import Box, Capsule, Collider, Funnel, Ground, Sphere, Spike
from phyxel.contact.mold import Mold
from phyxel.errors import SceneError, did_you_mean
from phyxel.material.look import NAMES
from phyxel.models.kind import checked_name
from phyxel.points.cloud import PointCloud
from phyxel.points.load import OPACITY, load
from phyxel.points.shapes import SHAPES
from phyxel.points.sheets import SURFACES
from phyxel.solid.solid import CLOSING, Solid
from phyxel.units import in_unit
from phyxel.world.world import MOST_TICKS

Triple = tuple[float, float, float]


def counted_in(unit: str) -> BeforeValidator:
    """A number that may also be a text with a unit of its own: "2 GPa"."""
    return BeforeValidator(lambda given: in_unit(given, unit))


Share = Annotated[float, counted_in("")]
Length = Annotated[float, counted_in("m")]
Seconds = Annotated[float, counted_in("s")]
PerSecond = Annotated[float, counted_in("1/s")]
Pressure = Annotated[float, counted_in("Pa")]
Viscosity = Annotated[float, counted_in("Pa s")]
Density = Annotated[float, counted_in("kg/m³")]
Degrees = Annotated[float, counted_in("degrees")]
DegreesPerSecond = Annotated[float, counted_in("degrees/s")]
RadiansPerSecond = Annotated[float, counted_in("rad/s")]
MetresPerSecond = Annotated[float, counted_in("m/s")]
Gain = Annotated[float, counted_in("m/s²")]
"""of speed: an acceleration"""
Newtons = Annotated[float, counted_in("N")]
Position = tuple[Length, Length, Length]
Turn = tuple[Degrees, Degrees, Degrees]
Velocity = tuple[MetresPerSecond, MetresPerSecond, MetresPerSecond]
Spin = tuple[RadiansPerSecond, RadiansPerSecond, RadiansPerSecond]
Acceleration = tuple[Gain, Gain, Gain]
Force = tuple[Newtons, Newtons, Newtons]
Color = Annotated[Triple, BeforeValidator(rgb)]
ModelName = Annotated[str, AfterValidator(checked_name)]
"""A model that users can ask for."""
Rate = Annotated[int, Field(ge=1, le=MOST_TICKS), counted_in("1/s")]
SPARSE_MESH = 2_000
"""A mesh with fewer vertices gets points on its faces, or its splats would be a few large discs."""


class Table(BaseModel):
    """A table of the scene file: unknown keys are errors."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class SourcePart(Table):
    """Where points come from: a built-in shape, or a file beside the scene."""

    name: str | None = None
    shape: str | None = None
    file: str | None = None
    points: int | None = Field(default=None, ge=4)
    units: str | None = None
    up: str | None = None
    opacity: Share = Field(default=OPACITY, ge=0, le=1)
    closing: Share = Field(default=CLOSING, ge=0, le=0.9)

    @model_validator(mode="after")
    def _one_source(self) -> Self:
        if (self.shape is None) == (self.file is None):
            raise ValueError('give either shape = "bear" or file = "scan.ply"')
        return self

    def cloud(self, folder: Path) -> PointCloud:
        """The points; files are looked for beside the scene file."""
        if self.file is None:
            shape, known = str(self.shape), [*SHAPES, *SURFACES]
            if shape not in known:
                raise SceneError(f'shape = "{shape}": no built-in shape{did_you_mean(shape, known)}')
            return load(shape, points=self.points)
        path = folder / Path(self.file).expanduser()
        if not path.exists():
            raise SceneError(f'file = "{self.file}": no such file; looked for {path}')
        cloud = load(path, self.points, self.units, self.up, self.opacity)
        if self.points is None and cloud.faces is not None and len(cloud) < SPARSE_MESH:
            cloud = load(path, 10 * SPARSE_MESH, self.units, self.up)
        return cloud


class GroundPart(Table):
    kind: Literal["ground"]
    name: str | None = None
    height: Length = 0.0
    friction: float = 0.5
    restitution: float = 0.0

    def collider(self, folder: Path) -> Ground:
        return Ground(**self.model_dump(exclude={"kind", "name"}))


class KeyframePart(Table):
    """Where a collider is at a time."""

    at: Seconds
    to: Position
    rotate: Turn | None = None


class PlacedPart(Table):
    """What every collider but the ground has."""

    name: str | None = None
    at: Position = (0.0, 0.0, 0.0)
    rotate: Turn = (0.0, 0.0, 0.0)
    friction: float = 0.5
    restitution: float = 0.0
    path: list[KeyframePart] | None = None
    look: Literal[NAMES] = "stone"  # type: ignore[valid-type]

    makes: ClassVar[type[Collider]]

    def collider(self, folder: Path) -> Collider:
        """The collider; files are looked for in `folder`."""
        return self.makes(**self.model_dump(exclude={"kind", "name", "path"}), path=self._keyframes)

    @property
    def _keyframes(self) -> list[Any] | None:
        if self.path is None:
            return None
        return [(key.at, key.to) if key.rotate is None else (key.at, key.to, key.rotate) for key in self.path]


class SpherePart(PlacedPart):
    makes = Sphere
    kind: Literal["sphere"]
    radius: Length


class BoxPart(PlacedPart):
    makes = Box
    kind: Literal["box"]
    lower: Position
    upper: Position


class CapsulePart(PlacedPart):
    makes = Capsule
    kind: Literal["capsule"]
    start: Position
    end: Position
    radius: Length


class SpikePart(PlacedPart):
    makes = Spike
    kind: Literal["spike"]
    height: Length
    radius: Length


class FunnelPart(PlacedPart):
    makes = Funnel
    kind: Literal["funnel"]
    upper_radius: Length
    lower_radius: Length
    height: Length
    thickness: Length


class MoldPart(PlacedPart, SourcePart):
    kind: Literal["mold"]
    size: Length | None = Field(default=None, gt=0)
    inside_out: bool = False
    open_above: Length | None = None

    def collider(self, folder: Path) -> Mold:
        solid = Solid(self.cloud(folder), closing=self.closing)
        given = {"inside_out", "size", "open_above", "at", "rotate", "friction", "restitution", "look"}
        return Mold(solid, **self.model_dump(include=given), path=self._keyframes)


ColliderPart = GroundPart | SpherePart | BoxPart | CapsulePart | SpikePart | FunnelPart | MoldPart
COLLIDERS: dict[str, type[Table]] = {
    get_args(part.model_fields["kind"].annotation)[0]: part for part in get_args(ColliderPart)
}
