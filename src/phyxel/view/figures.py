# mypy: disable-error-code="valid-type,no-untyped-def,no-untyped-call"
"""Bodies and colliders as parts of a snapshot: surfels, meshes, dots, and Gaussian splats.

A splat is 28 bytes, little-endian: f32 x, y, z about a corner [m]; f16 xx, xy, xz, yy, yz, zz of the covariance J Σ Jᵀ
over unit²; rgba8.
"""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np
import warp as wp
from numpy.typing import NDArray

from phyxel.body import Body
from phyxel.contact.colliders import Collider
from phyxel.device import KERNEL_OPTIONS, as_vectors, launch
from phyxel.export.clouds import byte_colors
from phyxel.export.follow import Follower, keeps_its_shape
from phyxel.export.meshes import mesh_of
from phyxel.render.shot import collider_discs
from phyxel.render.tiles import SPLIT_FROM
from phyxel.surface.discs import Discs, Floats
from phyxel.view.encode import Encoded, Encoder
from phyxel.view.messages import Blob, DrawnThing
from phyxel.view.slices import BodySlice

wp.set_module_options(KERNEL_OPTIONS)

WORDS = 7
"""32-bit words of a record."""
LARGEST = wp.constant(6.0e4)
"""A covariance that 16 bits can still hold."""
Range = tuple[float, float]

DOT = 0.3
"""Radius of a node's dot, over the spacing of the nodes."""


@wp.struct
class Clump:
    """Splats of a body at birth, in its units about its middle, and the nodes that carry them."""

    point: wp.array(dtype=wp.vec3)
    beyond: wp.array(dtype=wp.vec3)
    """from there to where the splat is, held stiffly"""
    covariance: wp.array(dtype=wp.mat33)
    """over unit²"""
    start: wp.array(dtype=int)
    node: wp.array(dtype=int)
    share: wp.array(dtype=float)
    surfel: wp.array(dtype=int)
    """which it is of those that the body came with, or -1"""
    color: wp.array(dtype=wp.uint32)


@wp.func
def rotation_of(J: wp.mat33) -> wp.mat33:
    """The rotation nearest to J."""
    U = wp.mat33()
    V = wp.mat33()
    sizes = wp.vec3()
    wp.svd3(J, U, sizes, V)
    return U * wp.transpose(V)


@wp.func
def packed(low: float, high: float) -> wp.uint32:
    """Two numbers in 16 bits each."""
    one = wp.uint32(wp.cast(wp.float16(wp.clamp(low, -LARGEST, LARGEST)), wp.uint16))
    other = wp.uint32(wp.cast(wp.float16(wp.clamp(high, -LARGEST, LARGEST)), wp.uint16))
    return one | (other << wp.uint32(16))


@wp.kernel
def encode_splats(
    first: int,
    clump: Clump,
    fixed: wp.array(dtype=wp.vec3),
    deformation: wp.array(dtype=wp.mat33),
    surfels: wp.array(dtype=wp.vec3),
    unit: float,
    records: wp.array2d(dtype=wp.uint32),
):
    """Σ ω_i (x_i − J_i X_i) + J X and J Σ Jᵀ with J = Σ ω_i J_i (physics 8.1); a splat on the surface is where its
    surfel is."""
    i = first + wp.tid()
    J = wp.mat33()
    x = wp.vec3()
    for k in range(clump.start[i], clump.start[i + 1]):
        J += clump.share[k] * deformation[clump.node[k]]
        x += clump.share[k] * fixed[clump.node[k]]
    x += J * clump.point[i]
    if wp.length_sq(clump.beyond[i]) > 0.0:
        x += rotation_of(J) * clump.beyond[i]
    x = unit * x
    if clump.surfel[i] >= 0:
        x = surfels[clump.surfel[i]]
    C = J * clump.covariance[i] * wp.transpose(J)
    records[i, 0] = wp.cast(x[0], wp.uint32)
    records[i, 1] = wp.cast(x[1], wp.uint32)
    records[i, 2] = wp.cast(x[2], wp.uint32)
    records[i, 3] = packed(C[0, 0], C[0, 1])
    records[i, 4] = packed(C[0, 2], C[1, 1])
    records[i, 5] = packed(C[1, 2], C[2, 2])
    records[i, 6] = clump.color[i]


class SplatEncoder:
    """Encodes the splats of a body that keeps its shape again and again."""

    def __init__(self, body: Body, device: wp.Device) -> None:
        given = body.appearance.placed_splats()
        assert given is not None and body.cloud.splats is not None
        self._body, self._device, self._count = body, device, len(given)
        follower = Follower(body, body.shape.placement.placed(body.cloud.splats.positions))
        axes = given.rotations * given.scales[:, None, :]
        self._unit = float(np.median(given.scales.max(axis=1)))
        """what covariances are counted in [m]"""
        self._reach = float(3 * given.scales.max())
        colors = np.concatenate([byte_colors(given.colors), byte_colors(given.opacities[:, None])], axis=1)
        surfel = np.full(len(given), -1, np.int32)
        surfel[given.surface] = np.arange(len(given.surface))
        covariance = axes @ np.swapaxes(axes, 1, 2) / self._unit**2
        shares = follower.shares

        def moved(array: Any, dtype: Any) -> wp.array:
            return wp.array(np.ascontiguousarray(array), dtype=dtype, device=device)

        self._clump = Clump()
        self._clump.point = moved(follower.points.astype(np.float32), wp.vec3)
        self._clump.beyond = moved(follower.beyond.astype(np.float32), wp.vec3)
        self._clump.covariance = moved(covariance.astype(np.float32), wp.mat33)
        self._clump.start, self._clump.node = moved(shares.indptr, int), moved(shares.indices, int)
        self._clump.share = moved(shares.data.astype(np.float32), float)
        self._clump.surfel, self._clump.color = moved(surfel, int), moved(colors.view("<u4")[:, 0], wp.uint32)
        self._fixed = wp.empty(len(body.birth), dtype=wp.vec3, device=device)
        self._deformation = wp.empty(len(body.birth), dtype=wp.mat33, device=device)
        self._records = wp.empty((len(given), WORDS), dtype=wp.uint32, device=device)

    def encode(self) -> tuple[bytes, dict[str, Any]]:
        """Their records as they are now, and what pages are told about them."""
        body, carried = self._body, self._body.surface.carried
        J = body.skin_deformation
        nodes = (body.positions - body.origin) / body.unit
        fixed = nodes - np.einsum("nab,nb->na", J, (body.birth - body.born.centre) / body.born.unit)
        self._fixed.assign(fixed.astype(np.float32))
        self._deformation.assign(J.astype(np.float32))
        inputs = [self._clump, self._fixed, self._deformation, carried.position, body.unit, self._records]
        launch(encode_splats, self._count, inputs, self._device, self._count > SPLIT_FROM // 16)
        words = self._records.numpy()
        x = words[:, :3].view("<f4")
        lower = x.min(axis=0)
        x -= lower
        lower = body.origin + lower
        about = {"count": self._count, "lower": lower.tolist(), "upper": (lower + x.max(axis=0)).tolist()}
        return words.tobytes(), about | {"unit": self._unit, "finest": self._reach}


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
        plain = {"look": collider.look, "sheet": False, "valued": False, "collider": True}
        self._about = encoded.about() | plain | {"opened": collider.see_through}

    def part(self, name: str, time: float) -> DrawnThing:
        """Where it is at a time [s]."""
        place, axes = self._collider.pose(time)
        pose = np.eye(4)
        pose[:3, :3], pose[:3, 3] = axes, place
        return DrawnThing(name, "surfels", self._about | {"pose": pose.T.ravel().tolist()}, self._blobs)
