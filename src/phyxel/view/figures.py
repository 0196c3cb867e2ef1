"""Bodies and colliders as parts of a snapshot: surfels, meshes, dots."""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np
import warp as wp
from numpy.typing import NDArray

from phyxel.body import Body
from phyxel.contact.colliders import Collider
from phyxel.device import as_vectors
from phyxel.export.follow import keeps_its_shape
from phyxel.export.meshes import mesh_of
from phyxel.render.collider_discs import collider_discs
from phyxel.surface.discs import Discs
from phyxel.view.encode import Encoded, Encoder
from phyxel.view.messages import Blob, DrawnThing
from phyxel.view.slices import BodySlice
from phyxel.view.splats import SplatEncoder

Floats = NDArray[np.floating]
Range = tuple[float, float]

DOT = 0.3
"""Radius of a node's dot, over the spacing of the nodes."""


def kept(data: bytes) -> Blob:
    """A blob that pages keep, named by what is in it: nothing is sent twice, not even after a restart."""
    return Blob(data, hashlib.blake2b(data, digest_size=12).hexdigest())


def kept_faces(faces: NDArray[np.integer]) -> Blob:
    """Triangles (t, 3)."""
    return kept(np.ascontiguousarray(faces, "<u4").tobytes())


def shows(body: Body) -> list[str]:
    """What a body can be seen as, now: first what it came as."""
    kinds = ["surfels", "nodes"]
    if keeps_its_shape(body):
        if body.cloud.faces is not None or body.cloud.mesh is not None:
            kinds.insert(0, "mesh")
        if body.cloud.splats is not None:
            kinds.insert(0, "splats")
    return kinds


class Figure:
    """What pages are sent of one body."""

    def __init__(self, body: Body, device: wp.Device) -> None:
        self.body, self._device = body, device
        self._encoder, self._pane_encoder = Encoder(device), Encoder(device)
        self._colors: tuple[wp.array, Blob] | None = None
        self._faces: tuple[Any, Blob] | None = None
        self._splats: SplatEncoder | None = None

    def part(self, kind: str, values: Floats | None, range: Range) -> DrawnThing:
        """The body as `kind`, with `values` of its surfels, vertices or nodes (m,) on the legend of a `range`."""
        makers = {"surfels": self._as_surfels, "mesh": self._as_mesh, "nodes": self._as_dots}
        return self._as_splats() if kind == "splats" else makers[kind](values, range)

    def _as_surfels(self, values: Floats | None, range: Range) -> DrawnThing:
        return self.of_discs(self.body.surface.shown, values, range)

    def of_discs(self, discs: Discs, values: Floats | None, range: Range) -> DrawnThing:
        """Some discs in the place of its surfels."""
        encoded = self._encoder.encode(discs, self._moved(values), range)
        blobs = {"records": Blob(encoded.records), "colors": self._color_blob(discs.color)}
        return DrawnThing(self.body.name, "surfels", self._about(encoded, values is not None), blobs)

    def pane(self, cut: BodySlice, range: Range) -> DrawnThing:
        """The cut through it."""
        grey = np.full((len(cut.vertices), 3), 0.5)
        discs = vertices_as_discs(cut.vertices, cut.normals, grey, self._device)
        encoded = self._pane_encoder.encode(discs, self._moved(cut.values), range)
        blobs = {"records": Blob(encoded.records), "faces": kept_faces(cut.faces)}
        about = self._about(encoded, True) | {"look": "painted", "sheet": True}
        return DrawnThing(f"{self.body.name} slice", "mesh", about, blobs)

    def _moved(self, values: Floats | None) -> wp.array | None:
        return None if values is None else wp.array(values.astype(np.float32), dtype=float, device=self._device)

    def _as_mesh(self, values: Floats | None, range: Range) -> DrawnThing:
        discs, faces = self._vertices()
        encoded = self._encoder.encode(discs, self._moved(values if values is None else values[: len(discs)]), range)
        blobs = {"records": Blob(encoded.records), "faces": self._face_blob(faces)}
        blobs["colors"] = self._color_blob(discs.color)
        return DrawnThing(self.body.name, "mesh", self._about(encoded, values is not None), blobs)

    def _vertices(self) -> tuple[Discs, NDArray[np.integer]]:
        """Those of the mesh it came with, and its faces."""
        cloud = self.body.cloud
        if cloud.faces is None:
            mesh = mesh_of(self.body)
            return vertices_as_discs(mesh.vertices, mesh.normals, mesh.colors, self._device), mesh.faces
        carried, own = self.body.surface.carried, len(cloud) if cloud.mesh is None else len(cloud.mesh.vertices)
        # Points that were added on faces are no vertices.
        return carried if own == len(carried) else carried.beginning(own, carried.origin), cloud.faces

    def _as_dots(self, values: Floats | None, range: Range) -> DrawnThing:
        x = self.body.positions
        lower, upper = x.min(axis=0), x.max(axis=0)
        records = np.zeros((len(x), 4), "<u2")
        records[:, :3] = np.rint((x - lower) * (65535 / np.maximum(upper - lower, 1e-300)))
        if values is not None:
            share = (values - range[0]) / (range[1] - range[0])
            records[:, 3] = np.rint(65535 * np.clip(share, 0, 1))
        numbers = {"count": len(x), "lower": lower.tolist(), "upper": upper.tolist(), "finest": DOT * self.body.unit}
        return DrawnThing(
            self.body.name, "dots", self._plain(values is not None) | numbers, {"records": Blob(records.tobytes())}
        )

    def _as_splats(self) -> DrawnThing:
        if self._splats is None:
            self._splats = SplatEncoder(self.body, self._device)
        records, numbers = self._splats.encode()
        return DrawnThing(self.body.name, "splats", self._plain(False) | numbers, {"records": Blob(records)})

    def _about(self, encoded: Encoded, valued: bool) -> dict[str, Any]:
        return self._plain(valued) | encoded.about()

    def _plain(self, valued: bool) -> dict[str, Any]:
        sheet = self.body.appearance.is_sheet
        return {"look": self.body.look, "sheet": sheet, "pose": None, "valued": valued, "collider": False}

    def _color_blob(self, color: wp.array) -> Blob:
        # Those of surfels that are carried never change; those of their pieces, and of what flows, may, in one place.
        if self._colors is None or self._colors[0] is not color or self.body.surface.blend is not None:
            self._colors = color, kept(self._encoder.colors(color))
        return self._colors[1]

    def _face_blob(self, faces: NDArray[np.integer]) -> Blob:
        if self._faces is None or self._faces[0] is not faces:
            self._faces = faces, kept_faces(faces)
        return self._faces[1]


def vertices_as_discs(x: Floats, normals: Floats, colors: Floats, device: wp.Device) -> Discs:
    """Vertices (m, 3) [m] of a mesh as discs of no extent."""
    origin = x.mean(axis=0) if len(x) else np.zeros(3)
    nothing = np.zeros((len(x), 3))
    near, axis, normal, color = (as_vectors(field, device) for field in (x - origin, nothing, normals, colors))
    return Discs(near, axis, axis, normal, color, origin)


class ColliderFigure:
    """What pages are sent of one collider: surfels once, and where they are."""

    def __init__(self, collider: Collider, device: wp.Device) -> None:
        self._collider = collider
        skin = collider_discs(collider, device)
        encoder = Encoder(device)
        encoded = encoder.encode(skin)
        self._blobs = {"records": kept(encoded.records), "colors": kept(encoder.colors(skin.color))}
        self._about = encoded.about() | {
            "look": collider.look,
            "sheet": False,
            "valued": False,
            "collider": True,
            "opened": collider.see_through,
        }

    def part(self, name: str, time: float) -> DrawnThing:
        """Where it is at a time [s]."""
        place, axes = self._collider.pose(time)
        pose = np.eye(4)
        pose[:3, :3], pose[:3, 3] = axes, place
        return DrawnThing(name, "surfels", self._about | {"pose": pose.T.ravel().tolist()}, self._blobs)
