"""Scene files: what a user writes, checked before anything is done."""

from __future__ import annotations

import hashlib
import tomllib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import resources
from pathlib import Path
from typing import Any, Literal

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from phyxel.body import Body, Handle
from phyxel.contact.colliders import Ground
from phyxel.errors import PhyxelError, SceneError, did_you_mean
from phyxel.material import PRESETS, Material
from phyxel.points.cloud import PointCloud
from phyxel.points.load import OPACITY, load
from phyxel.points.shapes import SHAPES
from phyxel.region import Box, select
from phyxel.solid.solid import CLOSING
from phyxel.world import World

Triple = tuple[float, float, float]
SPARSE_MESH = 2_000
"""A mesh with fewer vertices gets points on its faces, or its splats would be a few large discs."""


class Part(BaseModel):
    """A table of the scene file: unknown keys are errors."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class MaterialPart(Part):
    preset: Literal[PRESETS] | None = None  # type: ignore[valid-type]
    young: float | None = None
    poisson: float | None = None
    density: float | None = None
    damping: float | None = None
    drag: float | None = None
    yield_strain: float | None = None
    yield_stress: float | None = None
    creep: float | None = None
    max_strain: float | None = None
    stiffness: list[list[float]] | None = None

    def over(self, base: Material) -> Material:
        """This material, with what it leaves open taken from `base` (or from its own preset)."""
        given = self.model_dump(exclude={"preset"}, exclude_none=True)
        if self.preset is not None:
            base = Material.preset(self.preset)
        if {"young", "poisson"} & set(given) and base.stiffness is not None:
            given.setdefault("stiffness", None)
        return base.but(**given)


class HoldPart(Part):
    """Nodes to hold: those in the box, in reference positions [m]."""

    lower: Triple = (-np.inf, -np.inf, -np.inf)
    upper: Triple = (np.inf, np.inf, np.inf)
    to: Triple = (0.0, 0.0, 0.0)
    over: float = Field(default=0.0, ge=0)
    name: str | None = None

    def take(self, body: Body, time: float) -> Handle:
        """Hold the nodes, or move them by `to` [m] in `over` [s] from `time` on."""
        where, end = Box(self.lower, self.upper), np.array(self.to)
        if self.over == 0:
            return body.drag(where, end)
        return body.drag(where, lambda now: end * min(max((now - time) / self.over, 0.0), 1.0))


class RefinePart(Part):
    """Where nodes stand closer: in the box, in reference positions [m]."""

    lower: Triple = (-np.inf, -np.inf, -np.inf)
    upper: Triple = (np.inf, np.inf, np.inf)
    levels: int = Field(default=1, ge=0, le=7)


class BodyPart(Part):
    name: str | None = None
    shape: str | None = None
    file: str | None = None
    points: int | None = Field(default=None, ge=4)
    units: str = "m"
    up: str = "y"
    opacity: float = Field(default=OPACITY, ge=0, le=1)
    color: Triple | None = None
    nodes: int = Field(default=800, ge=8)
    model: Literal["phyxel"] = "phyxel"
    integrator: Literal["leapfrog", "implicit"] | None = None
    surface: Literal["carried"] = "carried"
    at: Triple = (0.0, 0.0, 0.0)
    rotate: Triple | None = None
    size: float | None = Field(default=None, gt=0)
    velocity: Triple = (0.0, 0.0, 0.0)
    spin: Triple = (0.0, 0.0, 0.0)
    support: float = Field(default=2.0, ge=1.2, le=5)
    closing: float = Field(default=CLOSING, ge=0, le=0.9)
    friction: float = Field(default=0.5, ge=0)
    refine: list[RefinePart] = []
    material: MaterialPart = MaterialPart()
    force: Triple = (0.0, 0.0, 0.0)
    hold: list[HoldPart] = []

    @model_validator(mode="after")
    def _one_source(self) -> BodyPart:
        if (self.shape is None) == (self.file is None):
            raise ValueError('give either shape = "bear" or file = "scan.ply"')
        return self

    def _built_in(self) -> PointCloud:
        if self.shape not in SHAPES:
            raise SceneError(f'shape = "{self.shape}": no built-in shape{did_you_mean(str(self.shape), SHAPES)}')
        return load(self.shape, points=self.points)

    def cloud(self, folder: Path) -> PointCloud:
        """The points this body is made from; files are looked for beside the scene file."""
        if self.file is None:
            cloud = self._built_in()
        else:
            path = folder / Path(self.file).expanduser()
            if not path.exists():
                raise SceneError(f'file = "{self.file}": no such file; looked for {path}')
            cloud = load(path, self.points, self.units, self.up, self.opacity)
            if self.points is None and cloud.faces is not None and len(cloud) < SPARSE_MESH:
                cloud = load(path, 10 * SPARSE_MESH, self.units, self.up)
        if self.color is not None:
            cloud = cloud.with_colors(np.broadcast_to(self.color, (len(cloud), 3)))
        return cloud

    def body(self, folder: Path) -> Body:
        cloud = self.cloud(folder)
        keys = {
            "nodes",
            "model",
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
        }
        options = self.model_dump(include=keys)
        finer = [(Box(part.lower, part.upper), part.levels) for part in self.refine]
        return Body(cloud, material=self.material.over(Material.rubber()), refine=finer, **options)


class GroundPart(Part):
    kind: Literal["ground"]
    height: float = 0.0
    friction: float = 0.5
    restitution: float = 0.0

    def collider(self) -> Ground:
        return Ground(self.height, self.friction, self.restitution)


class EventPart(Part):
    """Something that happens to a body at a time."""

    at: float = Field(ge=0, allow_inf_nan=False)
    body: str | None = None
    material: MaterialPart | None = None
    force: Triple | None = None
    hold: HoldPart | None = None
    release: str | None = None

    @model_validator(mode="after")
    def _does_something(self) -> EventPart:
        if all(part is None for part in (self.material, self.force, self.hold, self.release)):
            raise ValueError("an event needs one of material, force, hold, release")
        return self


class CameraPart(Part):
    eye: Triple | None = None
    target: Triple | None = None
    direction: Triple = (0.5, 0.3, 1.0)
    fov: float = Field(default=32.0, gt=1, lt=120)


class OutputPart(Part):
    points: Literal["ply"] | list[Literal["ply"]] | None = "ply"
    mesh: Literal["obj", "ply"] | None = None
    video: bool = True
    width: int = Field(default=1280, ge=16, le=8192)
    height: int = Field(default=720, ge=16, le=8192)
    background: Literal["studio"] | Triple = "studio"
    checkpoint_every: int = Field(default=30, ge=1)
    """frames between checkpoints"""


class SceneFile(Part):
    title: str = ""
    seconds: float = Field(default=4.0, gt=0, allow_inf_nan=False)
    fps: float = Field(default=60.0, gt=0, le=1000)
    gravity: Triple = (0.0, -9.81, 0.0)
    body: list[BodyPart] = Field(min_length=1)
    collider: list[GroundPart] = []
    event: list[EventPart] = []
    camera: CameraPart = CameraPart()
    output: OutputPart = OutputPart()


class Scene:
    """A scene: `Scene.read("jelly.toml").world()`."""

    def __init__(self, content: SceneFile, name: str, folder: Path, source: str, shown: str) -> None:
        self.content, self.name, self.folder, self.source = content, name, folder, source
        self._shown = shown
        self._check_names()

    @staticmethod
    def read(path: str | Path) -> Scene:
        """Read a scene file (TOML)."""
        path = Path(path)
        try:
            source = path.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise SceneError(f"{path}: cannot be read ({getattr(error, 'strerror', None) or error})") from error
        return Scene.parse(source, name=path.stem, folder=path.parent, shown=path.name)

    @staticmethod
    def parse(source: str, name: str = "scene", folder: Path = Path(), shown: str | None = None) -> Scene:
        """A scene from TOML text; files it names are looked for in `folder`."""
        shown = shown or f"{name}.toml"
        try:
            content = _validated(tomllib.loads(source), shown)
        except tomllib.TOMLDecodeError as error:
            raise SceneError(f"{shown}: not valid TOML: {error}") from error
        return Scene(content, name, folder, source, shown)

    def _check_names(self) -> None:
        shown, bodies = self._shown, self._body_names()
        repeated = {name for name in bodies if bodies.count(name) > 1}
        if repeated:
            raise SceneError(f'{shown}: two bodies are named "{min(repeated)}"; give each a name of its own')
        held = {hold.name for part in self.content.body for hold in part.hold}
        held |= {event.hold.name for event in self.content.event if event.hold}
        for index, event in enumerate(self.content.event):
            if event.body is None and len(bodies) > 1:
                raise SceneError(f"{shown}: event[{index}].body: missing; there are {', '.join(bodies)}")
            if event.body is not None and event.body not in bodies:
                hint = did_you_mean(event.body, bodies)
                raise SceneError(f'{shown}: event[{index}].body = "{event.body}": no such body{hint}')
            if event.release is not None and event.release not in held:
                hint = did_you_mean(event.release, [name for name in held if name])
                raise SceneError(f'{shown}: event[{index}].release = "{event.release}": no hold has this name{hint}')

    def _body_names(self) -> list[str]:
        """A name for each body: its own, or one made of its shape or file that no other has."""
        taken = {part.name for part in self.content.body if part.name}
        names: list[str] = []
        for part in self.content.body:
            base = part.shape or Path(str(part.file)).stem
            free = (name for name in (base, *(f"{base}-{k}" for k in range(2, 10**6))) if name not in taken)
            names.append(part.name or next(free))
            taken.add(names[-1])
        return names

    @property
    def seconds(self) -> float:
        return self.content.seconds

    @property
    def fps(self) -> float:
        return self.content.fps

    def changed(
        self,
        seconds: float | None = None,
        nodes: int | None = None,
        points: int | None = None,
        model: Path | None = None,
        video: bool | None = None,
    ) -> Scene:
        """The same scene for another time, with other numbers of nodes and points in every body, with a file in place
        of every built-in shape (at the shape's size), with or without a video."""
        given = {key: value for key, value in {"nodes": nodes, "points": points}.items() if value is not None}
        bodies = [part.model_copy(update=dict(given)) for part in self.content.body]
        if model is not None:
            names = self._body_names()
            bodies = [
                _with_file(part, model, name) if part.shape else part for part, name in zip(bodies, names, strict=True)
            ]
        update: dict[str, Any] = {"body": bodies}
        if seconds is not None:
            update["seconds"] = seconds
        if video is not None:
            update["output"] = self.content.output.model_copy(update={"video": video})
        content = _validated(self.content.model_copy(update=update).model_dump(exclude_none=True), self._shown)
        return Scene(content, self.name, self.folder, self.source, self._shown)

    def fingerprint(self) -> str:
        """What decides how it moves, as a hash: everything but the length and the output."""
        kept = self.content.model_dump_json(exclude={"seconds", "output", "camera", "title"})
        return hashlib.sha256(kept.encode()).hexdigest()

    def world(self, device: str | None = None) -> World:
        """Build the world of this scene, with its events on the clock."""
        content = self.content
        with self._blaming("gravity"):
            world = World(content.gravity, device)
        handles: dict[tuple[str, str], Handle] = {}
        for index, (part, name) in enumerate(zip(content.body, self._body_names(), strict=True)):
            with self._blaming(f"body[{index}]"):
                body = part.model_copy(update={"name": name}).body(self.folder)
                world.add(body)
                body.force = part.force
            for number, hold in enumerate(part.hold):
                with self._blaming(f"body[{index}].hold[{number}]"):
                    handles[name, hold.name or f"#{number}"] = hold.take(body, 0.0)
        for index, ground in enumerate(content.collider):
            with self._blaming(f"collider[{index}]"):
                world.add(ground.collider())
        self._rehearse(world, set(handles))
        for event in content.event:
            world.at(event.at, self._action(event, handles))
        return world

    @contextmanager
    def _blaming(self, key: str) -> Iterator[None]:
        """What goes wrong inside is said with the file's name and the key."""
        try:
            yield
        except PhyxelError as error:
            raise SceneError(f"{self._shown}: {key}: {error}") from error

    def _rehearse(self, world: World, held: set[tuple[str, str]]) -> None:
        """Go through the events in order without any of them happening: a fault is found before the run begins."""
        bodies = {body.name: body for body in world.bodies}
        materials = {name: body.material for name, body in bodies.items()}
        order = sorted(range(len(self.content.event)), key=lambda index: self.content.event[index].at)
        for index in order:
            event = self.content.event[index]
            name = event.body or self._body_names()[0]
            with self._blaming(f"event[{index}]"):
                if event.material is not None:
                    materials[name] = event.material.over(materials[name])
                if event.force is not None and not np.isfinite(event.force).all():
                    raise SceneError(f"force = {event.force}: give three finite numbers [N]")
                if event.hold is not None:
                    select(Box(event.hold.lower, event.hold.upper), bodies[name].reference, f"hold on {name}")
                    held.add((name, event.hold.name or ""))
                if event.release is not None:
                    if (name, event.release) not in held:
                        raise SceneError(f'release = "{event.release}": {name} is not held so at {event.at:g} s')
                    held.remove((name, event.release))

    def _action(self, event: EventPart, handles: dict[tuple[str, str], Handle]) -> Callable[[World], None]:
        name = event.body or self._body_names()[0]

        def happen(world: World) -> None:
            body = next(body for body in world.bodies if body.name == name)
            if event.material is not None:
                body.material = event.material.over(body.material)
            if event.force is not None:
                body.force = event.force
            if event.hold is not None:
                handles[name, event.hold.name or ""] = event.hold.take(body, event.at)
            if event.release is not None:
                body.release(handles.pop((name, event.release)))

        return happen


def _validated(content: Any, shown: str) -> SceneFile:
    """The content of a scene file, or a `SceneError` with a line for each key that is wrong."""
    try:
        return SceneFile.model_validate(content)
    except ValidationError as error:
        lines: dict[str, str] = {}
        for one in error.errors():
            # Where a key may be one thing or another, the validator names each; users know only the key.
            place = tuple(part for part in one["loc"] if isinstance(part, int) or str(part).isidentifier())
            lines.setdefault(str(place), f"{shown}: {_explained({**one, 'loc': place})}")
        raise SceneError("\n".join(lines.values())) from error


def _with_file(part: BodyPart, file: Path, name: str) -> BodyPart:
    """A body made from a file in place of its built-in shape, as large as the shape."""
    shape = load(str(part.shape), points=100)
    size = part.size or float(np.max(shape.upper - shape.lower))
    return part.model_copy(update={"file": str(file.resolve()), "shape": None, "name": name, "size": size})


def _explained(error: Any) -> str:
    """One pydantic error as a sentence: key, value, what is allowed, and the near miss."""
    key = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in error["loc"]).lstrip(".")
    if error["type"] == "extra_forbidden":
        return f"{key}: not known{did_you_mean(str(error['loc'][-1]), _keys_beside(error['loc']))}"
    if key == "body" and error["type"] in ("missing", "too_short", "list_type"):
        return "body: a scene needs at least one body, written as [[body]] with two pairs of brackets"
    if error["type"] == "missing":
        return f"{key}: missing"
    message = error["msg"].removeprefix("Value error, ")
    if isinstance(error["input"], dict | list) and error["type"] in ("value_error", "too_short"):
        return f"{key}: {message}"
    hint = ""
    if error["type"] == "literal_error" and isinstance(error["input"], str):
        known = error["ctx"]["expected"].replace("'", "").replace(" or ", ", ").split(", ")
        hint = did_you_mean(error["input"], known)
    return f"{key} = {error['input']!r}: {message[0].lower() + message[1:]}{hint}"


def _keys_beside(location: tuple[Any, ...]) -> list[str]:
    """The keys allowed where an unknown key was found."""
    part: Any = SceneFile
    for step in location[:-1]:
        if isinstance(step, str) and step in part.model_fields:
            part = _part_in(part.model_fields[step].annotation)
    return list(part.model_fields)


def _part_in(annotation: Any) -> Any:
    """The table type inside list[...] or ... | None."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    return (
        next(found for inner in annotation.__args__ if (found := _part_in(inner)) is not None)
        if hasattr(annotation, "__args__")
        else None
    )


def gallery_names() -> list[str]:
    """Names of the scenes that come with Phyxel."""
    folder = resources.files("phyxel") / "gallery"
    return sorted(Path(item.name).stem for item in folder.iterdir() if item.name.endswith(".toml"))


def gallery(name: str) -> Scene:
    """A scene that comes with Phyxel."""
    if name not in gallery_names():
        raise SceneError(f'"{name}": no such scene in the gallery{did_you_mean(name, gallery_names())}')
    source = (resources.files("phyxel") / "gallery" / f"{name}.toml").read_text(encoding="utf-8")
    return Scene.parse(source, name=name)


def find_scene(name_or_path: str) -> Scene:
    """A scene file, or a gallery scene by its name."""
    if Path(name_or_path).suffix == ".toml" or Path(name_or_path).is_file():
        return Scene.read(name_or_path)
    try:
        return gallery(name_or_path)
    except SceneError as error:
        raise SceneError(f"{error}. A scene file ends in .toml") from error
