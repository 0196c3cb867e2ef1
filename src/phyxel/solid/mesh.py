# mypy: disable-error-code="valid-type,no-untyped-def"
"""A closed triangle mesh as the surface of a solid (physics 9.2): nearest point by Warp's tree, side by the winding
number."""

from __future__ import annotations

from typing import Any

import numpy as np
import warp as wp
from numpy.typing import NDArray
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from phyxel import device as dev
from phyxel.points.cloud import Floats, Mesh
from phyxel.solid.distance_grid import FAR, FINEST, DistanceGrid, MeasuredSurface, guided, laid_guide
from phyxel.solid.winding import Soup, winding_number

wp.set_module_options(dev.KERNEL_OPTIONS)

Faces = NDArray[np.integer]

ON_SURFACE = wp.constant(1.0e-6)
"""Distance, over the size of the mesh, below which a place has no side."""
WELL_INSIDE = wp.constant(1.0e-3)
"""Barycentric coordinate from which a point of a face lies off its edges."""
FACES_PROBED = 4000
"""Faces that are asked whether any lies inside the solid."""
PLACES_ON_FACE = np.array([[1, 1, 1], [2.8, 0.1, 0.1], [0.1, 2.8, 0.1], [0.1, 0.1, 2.8]]) / 3
"""Where on a face, in barycentric coordinates."""
QUARTERINGS = 4
"""How often a face that is partly inside is quartered."""


@wp.struct
class MeshOnDevice:
    """A closed mesh on the device, in units of its size about its middle."""

    soup: wp.uint64
    """all its faces"""
    skin: wp.uint64
    """those that do not lie inside the solid"""
    overlaps: bool
    """whether these differ"""
    guide: DistanceGrid


@wp.func
def closest_on_mesh(mesh: MeshOnDevice, x: wp.vec3, known_side: float):
    """Nearest point of the skin, the direction of growing distance, and the signed distance.

    `known_side` is the side of x if it is known, else 0: to find it may take longer than all the rest.
    """
    hit = wp.mesh_query_point_no_sign(mesh.skin, x, 1.0e6)
    y = wp.mesh_eval_position(mesh.skin, hit.face, hit.u, hit.v)
    distance = wp.length(x - y)
    normal = wp.mesh_eval_face_normal(mesh.skin, hit.face)
    side = wp.sign(wp.dot(x - y, normal))
    # In the middle of a face its normal tells the side; over an edge or a corner, only what encloses x.
    middle = wp.min(wp.min(hit.u, hit.v), 1.0 - hit.u - hit.v)
    if known_side != 0.0:
        side = known_side
    elif distance > ON_SURFACE and (mesh.overlaps or middle < WELL_INSIDE):
        side = wp.where(winding_number(mesh.soup, x) > 0.5, -1.0, 1.0)
    direction = normal
    if distance > ON_SURFACE:
        direction = side * (x - y) / distance
    return y, direction, side * distance


@wp.kernel
def find_closest(
    first: int,
    mesh: MeshOnDevice,
    points: wp.array(dtype=wp.vec3),
    foot: wp.array(dtype=wp.vec3),
    direction: wp.array(dtype=wp.vec3),
    distance: wp.array(dtype=float),
):
    """Nearest point, direction of growing distance and signed distance of every point."""
    i = first + wp.tid()
    y, n, d = closest_on_mesh(mesh, points[i], 0.0)
    foot[i] = y
    direction[i] = n
    distance[i] = d


@wp.kernel
def measure(
    first: int,
    mesh: MeshOnDevice,
    points: wp.array(dtype=wp.vec3),
    distance: wp.array(dtype=float),
    direction: wp.array(dtype=wp.vec3),
):
    """Signed distance of every point and the direction in which it grows: by the grid far away, else measured."""
    i = first + wp.tid()
    d, n = guided(mesh.guide, points[i])
    steep = wp.length(n)
    if steep > 0.0 and wp.abs(d) > FAR * mesh.guide.cell:
        n = wp.normalize(n)
    else:
        side = float(0.0)
        if wp.abs(steep - 1.0) < 0.1 and wp.abs(d) > 0.5 * mesh.guide.cell:
            side = wp.sign(d)
        _y, n, d = closest_on_mesh(mesh, points[i], side)
    distance[i] = d
    direction[i] = n


class MeshSurface(MeasuredSurface):
    """The triangles of a closed mesh, in units of its size about its middle."""

    def __init__(self, corners: Floats, faces: Faces, device: wp.Device) -> None:
        mesh: Any = MeshOnDevice()
        super().__init__(mesh, find_closest, measure, device)
        faces = _outward(corners, faces, device)
        self.soup = Soup(corners, faces, device)
        bare_corners, bare_faces = _bare(corners, faces, self.soup)
        mesh.overlaps = bare_faces is not faces
        self._skin = Soup(bare_corners, bare_faces, device) if mesh.overlaps else self.soup
        mesh.soup, mesh.skin = self.soup.mesh.id, self._skin.mesh.id
        mesh.guide = laid_guide(self.closest, corners.min(axis=0), corners.max(axis=0), FINEST, device)


def welded(mesh: Mesh) -> Mesh:
    """The mesh with coincident vertices made one, its faces wound alike, without unused vertices and flat faces."""
    _, first, merged = np.unique(mesh.vertices, axis=0, return_index=True, return_inverse=True)
    faces = merged.reshape(-1)[mesh.faces]
    a, b, c = faces.T
    faces = faces[(a != b) & (b != c) & (c != a)]
    used, faces = np.unique(faces, return_inverse=True)
    return Mesh(mesh.vertices[first[used]], _wound_alike(faces.reshape(-1, 3).astype(np.int32)))


def open_edges(faces: Faces) -> int:
    """How many edges are not passed as often one way as the other: none, if the mesh encloses every place a whole
    number of times."""
    key, upward = _edges(faces)
    _, edge = np.unique(key, return_inverse=True)
    return int((np.bincount(edge, np.where(upward, 1, -1)) != 0).sum())


def _edges(faces: Faces) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """A number for each of the three edges of each face, and whether the face passes it from the lesser vertex."""
    start, end = faces[:, [0, 1, 2]].ravel().astype(np.int64), faces[:, [1, 2, 0]].ravel().astype(np.int64)
    return np.minimum(start, end) << 32 | np.maximum(start, end), start < end


def _wound_alike(faces: Faces) -> Faces:
    """Faces turned so that two which share an edge with no third pass it in opposite directions."""
    key, upward = _edges(faces)
    order = np.argsort(key, kind="stable")
    _, first, count = np.unique(key[order], return_index=True, return_counts=True)
    one, other = order[first[count == 2]], order[first[count == 2] + 1]
    differ = upward[one] == upward[other]
    if not differ.any():
        return faces
    # Each face is there as it is and turned: what goes together falls into one of two mirrored parts.
    n = len(faces)
    one, other = one // 3, other // 3
    ends = np.concatenate([one, one + n]), np.concatenate([other + n * differ, other + n * ~differ])
    _, label = connected_components(coo_array((np.ones(len(ends[0])), ends), shape=(2 * n, 2 * n)), directed=False)
    return np.where((label[:n] > label[n:])[:, None], faces[:, ::-1], faces)


def _outward(corners: Floats, faces: Faces, device: wp.Device) -> Faces:
    """Faces of every connected part turned outward; a part inside another keeps to look inward: a cavity."""
    n = len(corners)
    links = coo_array((np.ones(2 * len(faces)), (faces[:, [0, 1]].ravel(), faces[:, [1, 2]].ravel())), shape=(n, n))
    parts, label = connected_components(links, directed=False)
    part = label[faces[:, 0]]
    volume = np.bincount(part, np.linalg.det(corners[faces]), parts)
    if volume.sum() < 0:
        faces, volume = faces[:, ::-1], -volume
    inverted = (volume < 0)[part]
    if inverted.any():
        around = Soup(corners, faces[~inverted], device).winding_number(corners[faces[inverted, 0]]) > 0.5
        # What only reaches into another part is no cavity of it.
        loose = inverted & (np.bincount(part[inverted], ~around, parts) > 0)[part]
        faces = np.where(loose[:, None], faces[:, ::-1], faces)
    return faces


def _bare(corners: Floats, faces: Faces, soup: Soup) -> tuple[Floats, Faces]:
    """The mesh without what of it has the solid on both sides, where it overlaps itself; cut faces are quartered."""
    some = np.random.default_rng(0).permutation(len(faces))[:FACES_PROBED]
    if not _buried(corners[faces[some]], soup).any():
        return corners, faces
    bare, triangles = [], corners[faces]
    for _ in range(QUARTERINGS):
        buried = _buried(triangles, soup)
        bare.append(triangles[~buried.any(axis=1)])
        triangles = _quartered(triangles[buried.any(axis=1) & ~buried.all(axis=1)])
    bare.append(triangles[~_buried(triangles, soup).all(axis=1)])
    skin = np.concatenate(bare)
    return skin.reshape(-1, 3), np.arange(3 * len(skin)).reshape(-1, 3)


def _buried(triangles: Floats, soup: Soup) -> NDArray[np.bool_]:
    """Whether the outer side of each triangle is inside the solid near its middle and its corners, (n, 4)."""
    normal = np.cross(triangles[:, 1] - triangles[:, 0], triangles[:, 2] - triangles[:, 0])
    length = np.linalg.norm(normal, axis=1, keepdims=True)
    off = np.maximum(1e-2 * np.sqrt(length), 1e-5) * normal / np.maximum(length, 1e-300)
    places = np.einsum("pk,nkd->npd", PLACES_ON_FACE, triangles) + off[:, None]
    return (soup.winding_number(places.reshape(-1, 3)) > 0.75).reshape(-1, len(PLACES_ON_FACE))


def _quartered(triangles: Floats) -> Floats:
    """Each triangle (n, 3, 3) as the four that its edges' middles make of it."""
    a, b, c = triangles.transpose(1, 0, 2)
    ab, bc, ca = (a + b) / 2, (b + c) / 2, (c + a) / 2
    parts = [(a, ab, ca), (ab, b, bc), (ca, bc, c), (ab, bc, ca)]
    return np.concatenate([np.stack(part, axis=1) for part in parts])
