"""What pages see of a world: its bodies, its colliders and what is inside, as snapshots."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from phyxel.body import Body
from phyxel.body.inside import Plane
from phyxel.body.quantities import QUANTITIES, Quantity, quantity
from phyxel.contact.colliders import Collider, Ground
from phyxel.errors import PhyxelError, did_you_mean
from phyxel.render.camera import Camera
from phyxel.render.inside.lattice import Floats, shape_of
from phyxel.render.inside.legend import Legend, Limits
from phyxel.run.stage import world_camera
from phyxel.scene.event_tables import CameraPart, OutputPart
from phyxel.scene.scene_file import SceneFile
from phyxel.view.figures import ColliderFigure, Figure, shows
from phyxel.view.messages import DrawnThing, Snapshot
from phyxel.view.slices import BodySlice, Gauge, carried_discs, legend_about
from phyxel.view.volumes import BodyVolume
from phyxel.world import World

SURFACES, MODES = ("auto", "surfels", "mesh", "splats", "nodes"), ("surface", "slice", "fog", "iso")
"""What bodies can be drawn as, and how a field is shown."""
MODE_NAMES = {"slice": "a slice", "fog": "fog", "iso": "an iso-surface"}
FORGOTTEN = 0.005
"""Share by which limits of the colours come nearer to the values seen in each update: some seconds after a blow small
values are told apart again."""
ON_SHEETS = ("speed",)
"""Fields that particle surfaces have."""


class Snapshots:
    """Looks at a world, maybe that of a scene with this content, from the simulation's thread.

    `show` says what is seen: `surface` is what bodies are drawn as, "auto" for what they came as: splats, a mesh or
    surfels; `field` a quantity by which they are coloured, in `mode` "surface" on their surface, in "slice" on a plane
    of the reference shape, a normal and a point: what lies where the normal points to is cut away. In "fog" and
    "iso" it is a volume that pages look through.
    """

    def __init__(self, world: World, content: SceneFile | None = None) -> None:
        self.world, self._content = world, content
        self.field: str | None = None
        self.mode, self.surface = "surface", "auto"
        self.plane: Plane | None = None
        """none: through the middle of each body, across z"""
        self._limits: Limits | None = None
        self._figures: dict[Body, Figure] = {}
        self._gauges: dict[Body, Gauge] = {}
        self._slices: dict[Body, tuple[object, BodySlice]] = {}
        self._volumes: dict[Body, tuple[object, BodyVolume]] = {}
        self._colliders: dict[Collider, ColliderFigure] = {}
        self._size: float | None = None

    # What is asked for

    def show(
        self,
        field: str | None = None,
        mode: str = "surface",
        plane: tuple[Sequence[float], Sequence[float]] | None = None,
        surface: str = "auto",
    ) -> None:
        """Show this from now on; a wrong wish changes nothing."""
        field = None if field in (None, "none") else field
        for key, given, known in (("mode", mode, MODES), ("surface", surface, SURFACES)):
            if given not in known:
                raise PhyxelError(f'{key} = "{given}": not known{did_you_mean(given, known)}')
        if field is not None:
            self._check_field(field)
        elif mode != "surface":
            raise PhyxelError(f"{MODE_NAMES[mode]} shows a field: choose one of {', '.join(QUANTITIES)}")
        seen = None if plane is None else Plane.read(plane)
        if field != self.field:
            self._limits = None if field is None else Limits(quantity(field))
        self.field, self.mode, self.plane, self.surface = field, mode, seen, surface

    def _check_field(self, field: str) -> None:
        quantity(field)
        if not any(_has(body, field) for body in self.world.bodies):
            raise PhyxelError(
                f"{field}: particle surfaces have only a {' and a '.join(ON_SHEETS)}; stress, strain and the distance "
                "to the surface are inside solids"
            )

    def fields(self) -> list[dict[str, str]]:
        """Fields that some body has, for pages."""
        there = {name: one for name, one in QUANTITIES.items() if any(_has(body, name) for body in self.world.bodies)}
        return [{"name": name, "title": one.title, "unit": one.unit} for name, one in there.items()]

    def camera(self) -> dict[str, Any]:
        """The first camera: as the scene asks for, else one that sees the bodies and the ground under them."""
        told = self._content
        camera, output = (CameraPart(), OutputPart()) if told is None else (told.camera, told.output)
        return told_camera(world_camera(self.world, camera, output))

    # What is seen

    def snapshot(
        self, frame: int, pins: Sequence[Sequence[float]] = (), grabs: Sequence[dict[str, Any]] = ()
    ) -> Snapshot:
        """The world as it is now."""
        bodies = self.world.bodies
        for kept in (self._figures, self._gauges, self._slices, self._volumes):
            for gone in kept.keys() - set(bodies):
                del kept[gone]
        values = {body: self._values(body) for body in bodies}
        slices = {body: self._slice(body) for body in bodies if self._is_cut(body)}
        volumes = {body: self._volume(body) for body in bodies if self._is_seen_through(body)}
        inside = [cut.values for cut in slices.values()] + [volume.values for volume in volumes.values()]
        legend = self._legend([*values.values(), *inside])
        range = (0.0, 1.0) if legend is None else (legend.low, legend.high)
        solid = [body for body in bodies if body not in volumes]
        parts = [part for body in solid for part in self._parts(body, values[body], slices.get(body), range)]
        parts += [volume.part(body.name, self.mode, range) for body, volume in volumes.items()]
        plane = max(slices.values(), key=lambda one: len(one.values)).outline() if slices else None
        about: dict[str, Any] = {"frame": frame, "time": self.world.time, "ground": self._ground()}
        about |= {"size": self._extent(), "legend": None if legend is None else legend_about(legend), "plane": plane}
        about |= {"pins": [list(pin) for pin in pins], "grabs": list(grabs)}
        return Snapshot(about, (*parts, *self._collider_parts()))

    def _legend(self, values: Sequence[Floats | None]) -> Legend | None:
        """The scale of the field, around its values now and a little while ago."""
        if self._limits is None:
            return None
        seen = [known for known in values if known is not None]
        if self.field == "distance":  # which is 0 all over the surface: the scale reaches as deep as nodes lie
            seen += [-body.nodes.reach for body in self.world.bodies]
        self._limits.see(np.concatenate(seen or [np.zeros(0)]), FORGOTTEN)
        return self._limits.legend()

    def kind(self, body: Body) -> str:
        """What a body is drawn as: as asked for, if it can be."""
        if self._is_cut(body):
            return "surfels"
        able = shows(body)
        wished = able[0] if self.surface == "auto" else self.surface
        # Splats have colours of their own: a field is shown on surfels.
        if wished not in able or (wished == "splats" and self.field is not None):
            return "surfels"
        return wished

    def _is_cut(self, body: Body) -> bool:
        return self.field is not None and self.mode == "slice" and body.kind.has_inside

    def _is_seen_through(self, body: Body) -> bool:
        return self.field is not None and self.mode in ("fog", "iso") and body.kind.has_inside

    def _quantity(self) -> Quantity:
        assert self.field is not None
        return quantity(self.field)

    def _values(self, body: Body) -> Floats | None:
        if self.field is None or not _has(body, self.field) or self._is_cut(body):
            return None
        if self._is_seen_through(body):
            return None
        if body not in self._gauges:
            self._gauges[body] = Gauge(body)
        return self._gauges[body].values(self._quantity(), self.kind(body))

    def _slice(self, body: Body) -> BodySlice:
        plane = self.plane or Plane((0.0, 0.0, 1.0))
        shape = (plane, shape_of(body), carried_discs(body))
        if body not in self._slices or self._slices[body][0] != shape:
            self._slices[body] = shape, BodySlice(body, plane, self.world.device)
        cut = self._slices[body][1]
        cut.look(self._quantity())
        return cut

    def _volume(self, body: Body) -> BodyVolume:
        shape = shape_of(body)
        if body not in self._volumes or self._volumes[body][0] != shape:
            self._volumes[body] = shape, BodyVolume(body)
        volume = self._volumes[body][1]
        volume.look(self._quantity())
        return volume

    def _parts(
        self, body: Body, values: Floats | None, cut: BodySlice | None, range: tuple[float, float]
    ) -> list[DrawnThing]:
        if body not in self._figures:
            self._figures[body] = Figure(body, self.world.device)
        figure = self._figures[body]
        if cut is not None:
            return [figure.of_discs(cut.half(), None, range), figure.pane(cut, range)]
        return [figure.part(self.kind(body), values, range)]

    def _collider_parts(self) -> list[DrawnThing]:
        solid = [one for one in self.world.colliders if isinstance(one, Collider)]
        self._colliders = {one: self._colliders.get(one) or ColliderFigure(one, self.world.device) for one in solid}
        time = self.world.time
        return [figure.part(f"collider {k}", time) for k, figure in enumerate(self._colliders.values())]

    def _ground(self) -> float | None:
        heights = [one.height for one in self.world.colliders if isinstance(one, Ground)]
        return max(heights) if heights else None

    def _extent(self) -> float:
        """Diagonal of the box around all bodies when they were first seen [m]."""
        if self._size is None:
            places = np.concatenate([body.positions for body in self.world.bodies] or [np.zeros((1, 3))])
            self._size = max(float(np.linalg.norm(np.ptp(places, axis=0))), 1e-9)
        return self._size


def _has(body: Body, field: str) -> bool:
    return body.kind.has_inside or field in ON_SHEETS


def told_camera(camera: Camera) -> dict[str, Any]:
    """Eye and target [m] and field of view [degrees], for pages."""
    eye, target = (np.asarray(one, float).tolist() for one in (camera.eye, camera.target))
    return {"eye": eye, "target": target, "fov": camera.fov}
