"""Bodies as meshes: the one they came with, deformed; or one of the surface they have. Both open along cracks
(physics 8.11): triangles are cut where a crack goes through them, and cracks have two faces (physics 8.10)."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import cKDTree

from phyxel.body import Body
from phyxel.cracks.crack import Crack
from phyxel.cracks.front import unit
from phyxel.errors import PhyxelError
from phyxel.export.clouds import VERTEX, columns_of, ply_header, vertex_rows
from phyxel.export.follow import Follower, kept_out, parting_of
from phyxel.files import whole_file
from phyxel.mls.neighbours import mean_spacing, nearest
from phyxel.points.completion import double_areas
from phyxel.points.meshfiles import sum_by_index
from phyxel.surface.clipping import Field, Floats
from phyxel.surface.implicit_skin import ImplicitSkin
from phyxel.surface.isosurface import field_normals, isosurface
from phyxel.surface.parted import OFFSET

Integers = NDArray[np.int64]
COARSENESS = 1.5
"""Cells of the mesh of a cloud, over the spacing of its points: not twice as many vertices as points."""
COARSEST = 0.3
"""Cells of a mesh over the spacing of the nodes, at most."""
HEARD = 8
"""Surfels that say how far a place is from the surface."""
SPOKEN_FOR = 0.7
"""How far from the nearest surfel they are asked, in spacings of the nodes: the skin may be that far from them."""


@dataclass(frozen=True)
class Triangles:
    """A mesh in a body's reference coordinates and units."""

    points: Floats
    """shape (n, 3)"""
    normals: Floats
    """outward, shape (n, 3)"""
    colors: Floats
    """shape (n, 3)"""
    faces: Integers
    """shape (m, 3)"""
    uv: Floats | None = None
    """texture coordinates of the corners of faces, shape (m, 3, 2)"""

    @property
    def middles(self) -> Floats:
        """Of the faces, shape (m, 3)."""
        return self.points[self.faces].mean(axis=1)

    def kept(self, chosen: NDArray[np.bool_]) -> Triangles:
        """The faces that are chosen, (m,), and the points that they have."""
        points, faces = np.unique(self.faces[chosen], return_inverse=True)
        uv = None if self.uv is None else self.uv[chosen]
        x, n, color = (field[points] for field in self.fields)
        return Triangles(x, n, color, faces.reshape(-1, 3), uv)

    def joined(self, other: Triangles) -> Triangles:
        """Both; if only one has texture coordinates the other's are 0."""
        x, n, color = (np.concatenate(pair) for pair in zip(self.fields, other.fields, strict=True))
        faces = np.concatenate([self.faces, len(self.points) + other.faces])
        uv = None
        if self.uv is not None or other.uv is not None:
            uv = np.concatenate([np.zeros((len(t.faces), 3, 2)) if t.uv is None else t.uv for t in (self, other)])
        return Triangles(x, n, color, faces, uv)

    @property
    def fields(self) -> tuple[Floats, Floats, Floats]:
        """What points have."""
        return self.points, self.normals, self.colors


def opened(mesh: Triangles, cracks: Sequence[Crack], inside: Field, color: Floats, offset: float) -> Triangles:
    """A mesh cut along cracks, and their faces in a color (3,) where `inside` is positive. What lies on either side of
    a crack is `offset` away from it, so that it is known which side that is."""
    for crack in cracks:
        mesh = cut_by(mesh, crack, offset)
    for crack in cracks:
        face = face_of(crack, inside, color)
        for other in cracks:
            face = face if other is crack else cut_by(face, other, offset)
        way = offset * face.normals
        # The material where ψ1 > 0 looks to where it is negative.
        mesh = mesh.joined(replace(face, points=face.points + way, normals=-face.normals, faces=face.faces[:, ::-1]))
        mesh = mesh.joined(replace(face, points=face.points - way))
    return mesh


def face_of(crack: Crack, inside: Field, color: Floats) -> Triangles:
    """The triangles of a crack's surface inside the solid, looking along ∇ψ1."""
    corners = crack.sheet().reshape(-1, 3)
    # Neighbours share corners, but for rounding.
    _, first, index = np.unique(np.round(corners, 9), axis=0, return_index=True, return_inverse=True)
    points = corners[first]
    colors = np.broadcast_to(color, points.shape).copy()
    mesh = Triangles(points, crack.normals(points), colors, index.reshape(-1, 3))
    mesh = cut(mesh, inside(points), np.ones(len(mesh.faces), bool))
    return mesh.kept(inside(mesh.middles) > 0)


def cut_by(mesh: Triangles, crack: Crack, offset: float) -> Triangles:
    """A mesh cut where a crack goes through its faces."""
    height = crack.values(mesh.points)[0]
    above = height[mesh.faces] >= 0
    chosen = np.any(above, axis=1) & ~np.all(above, axis=1)
    mixed = np.flatnonzero(chosen)
    h, corners = height[mesh.faces[mixed]], mesh.points[mesh.faces[mixed]]
    next_h, next_corners = np.roll(h, -1, axis=1), np.roll(corners, -1, axis=1)
    crosses = (h >= 0) != (next_h >= 0)
    share = np.where(crosses, h, 0) / np.where(crosses, h - next_h, 1)
    places = corners + share[..., None] * (next_corners - corners)
    behind = crack.values(places.reshape(-1, 3))[1].reshape(-1, 3) < 0
    chosen[mixed] = (behind & crosses).any(axis=1)
    whole, mesh = len(mesh.points), cut(mesh, height, chosen)
    # New points come in two halves: first those where ψ1 > 0.
    points = mesh.points.copy()
    first, second = np.split(np.arange(whole, len(points)), 2)
    way = offset * crack.normals(points[first])
    points[first] += way
    points[second] -= way
    return replace(mesh, points=points)


def cut(mesh: Triangles, values: Floats, chosen: NDArray[np.bool_]) -> Triangles:
    """A mesh with those of the chosen faces, (m,), in three on whose corners `values` (n,) have both signs: cut along a
    straight line where they are zero. Its ends are twice among the new points: first for all faces on the side where
    values are positive, then for all others."""
    above = values >= 0
    count = above[mesh.faces].sum(axis=1)
    cut_faces = np.flatnonzero(chosen & (count > 0) & (count < 3))
    faces = mesh.faces[cut_faces]
    # Turned until the corner that is alone on its side is the first.
    alone = np.argmax(above[faces] == (count[cut_faces] == 1)[:, None], axis=1)
    turn = (alone[:, None] + np.arange(3)) % 3
    faces = np.take_along_axis(faces, turn, axis=1)
    ends = np.sort(faces[:, [[0, 1], [0, 2]]].reshape(-1, 2), axis=1)
    edges, which = np.unique(ends, axis=0, return_inverse=True)
    which = which.reshape(-1, 2)
    share = (values[edges[:, 0]] / (values[edges[:, 0]] - values[edges[:, 1]]))[:, None]
    new = [field[edges[:, 0]] + share * (field[edges[:, 1]] - field[edges[:, 0]]) for field in mesh.fields]
    first = len(mesh.points) + np.where(above[faces[:, :1]], 0, len(edges)) + which
    other = len(mesh.points) + np.where(above[faces[:, :1]], len(edges), 0) + which
    parts = [
        np.column_stack([faces[:, 0], first]),
        np.column_stack([other[:, 0], faces[:, 1:]]),
        np.column_stack([other[:, 0], faces[:, 2], other[:, 1]]),
    ]
    kept = np.ones(len(mesh.faces), bool)
    kept[cut_faces] = False
    uv = mesh.uv
    if uv is not None:
        corners = np.take_along_axis(uv[cut_faces], turn[..., None], axis=1)
        far = (values[faces[:, :1]] / (values[faces[:, :1]] - values[faces[:, 1:]]))[..., None]
        p, q = np.moveaxis(corners[:, :1] + far * (corners[:, 1:] - corners[:, :1]), 1, 0)
        one, two, three = np.moveaxis(corners, 1, 0)
        cut_uv = [np.stack(three_of, axis=1) for three_of in ((one, p, q), (p, two, three), (p, three, q))]
        uv = np.concatenate([uv[kept], *cut_uv])
    x, n, color = (np.concatenate([field, more, more]) for field, more in zip(mesh.fields, new, strict=True))
    return Triangles(x, n, color, np.concatenate([mesh.faces[kept], *parts]), uv)


@dataclass(frozen=True)
class BodyMesh:
    """A mesh as it is at a moment, in metres, y up."""

    vertices: Floats
    """[m], shape (n, 3)"""
    normals: NDArray[np.floating]
    """unit length, outward, shape (n, 3)"""
    colors: NDArray[np.floating]
    """red, green, blue in 0..1, shape (n, 3)"""
    faces: NDArray[np.integer]
    """triangles, counter-clockwise from outside, shape (m, 3)"""
    uv: NDArray[np.floating] | None = None
    """texture coordinates, shape (t, 2)"""
    uv_faces: NDArray[np.integer] | None = None
    """index into `uv` for each corner of `faces`, shape (m, 3)"""
    quads: NDArray[np.integer] | None = None
    """four-cornered faces, if all that it came with are, shape (m / 2, 4); rows 2k and 2k + 1 of `faces` are halves"""
    is_sheet: bool = False
    """whether both sides can be seen"""

    @property
    def polygons(self) -> tuple[NDArray[np.integer], NDArray[np.integer] | None]:
        """The faces as they came, triangles or quads, and the corners of each in `uv`, if it is there."""
        corners = None if self.uv is None else self.uv_faces
        if self.quads is None or corners is None:
            return self.faces if self.quads is None else self.quads, corners
        # Halves may begin at any of their corners: that of the quad which they have tells.
        halves, known = self.faces.reshape(-1, 6), corners.reshape(-1, 6)
        place = np.argmax(halves[:, None, :] == self.quads[:, :, None], axis=2)
        return self.quads, np.take_along_axis(known, place, axis=1)


@dataclass(frozen=True)
class _BodySkin:
    """A mesh of a body's shape at birth."""

    follower: Follower
    normals: Floats
    colors: NDArray[np.floating]
    faces: NDArray[np.integer]
    parting: tuple[int, int]
    """of the body when it was found"""
    uv: NDArray[np.floating] | None = None
    """of the corners of faces, shape (m, 3, 2)"""


_skins: WeakKeyDictionary[Body, _BodySkin] = WeakKeyDictionary()


def mesh(body: Body, path: str | os.PathLike[str]) -> None:
    """Write a `body` as a mesh [m], as it is now, to `path`: .obj (with texture coordinates, or else colours of
    vertices) or .ply (with colours).

    What came in as a mesh has the vertices and faces it came with, quads as such. Of what came as points a closed mesh
    is made once, and then follows; of what has melted, a closed mesh is made anew each time; a particle surface without
    faces has none. Along cracks faces are cut, and what cracks lay open has faces of its own: there are more of both
    whenever a crack has grown.

    >>> cloth, world = px.Body(px.load("cloth", points=100), model="particles"), px.World()
    >>> world.add(cloth)
    >>> px.export.mesh(cloth, "cloth.obj")
    >>> px.load("cloth.obj").quads.shape
    (81, 4)
    """
    writers = {".obj": _obj, ".ply": _ply}
    suffix = Path(path).suffix.lower()
    if suffix not in writers:
        raise PhyxelError(f"{path}: meshes are written as {' or '.join(writers)}")
    content = writers[suffix](mesh_of(body), body.name)
    with whole_file(path) as file:
        file.write(content)


def mesh_of(body: Body) -> BodyMesh:
    """A body's mesh as it is now."""
    check_has_mesh(body)
    if body.has_melted:
        return _surface_mesh(body)
    return _own_mesh(body) if body.cloud.faces is not None and not body.has_cracked else _skin_mesh(body)


def check_has_mesh(body: Body) -> None:
    """Refuse a surface of points alone: what is between them is not known."""
    if not body.kind.has_inside and body.cloud.faces is None:
        raise PhyxelError(
            f"{body.name}: its points have no faces, of which a mesh could be made; write points, or bring a mesh"
        )


def _own_mesh(body: Body) -> BodyMesh:
    cloud, carried = body.cloud, body.surface.carried
    assert cloud.faces is not None
    # The mesh's own vertices come first; points that were added on its faces are not part of it.
    own = slice(len(cloud) if cloud.mesh is None else len(cloud.mesh.vertices))
    vertices = carried.origin + carried.position.numpy()[own]
    normals, colors, is_sheet = carried.normal.numpy()[own], carried.colors[own], body.appearance.is_sheet
    return BodyMesh(vertices, normals, colors, cloud.faces, cloud.uv, cloud.uv_faces, cloud.quads, is_sheet)


def _skin_mesh(body: Body) -> BodyMesh:
    if body not in _skins or _skins[body].parting != parting_of(body):
        _skins[body] = _found_skin(body)
    skin = _skins[body]
    J = skin.follower.deformation(body)
    vertices = kept_out(body, skin.follower.positions(body, J))
    cofactor = np.stack([np.cross(J[:, k - 2], J[:, k - 1]) for k in range(3)], axis=1)
    normals = unit(np.einsum("mab,mb->ma", cofactor, skin.normals))
    if skin.uv is None:
        return BodyMesh(vertices, normals, skin.colors, skin.faces)
    corners = np.arange(3 * len(skin.faces)).reshape(-1, 3)
    return BodyMesh(vertices, normals, skin.colors, skin.faces, skin.uv.reshape(-1, 2), corners)


def _found_skin(body: Body) -> _BodySkin:
    mesh, whole = _mesh_at_birth(body), body.appearance.whole_surface
    if body.has_cracked:
        assert body.fracture is not None
        mesh = opened(
            mesh, list(body.fracture.cracks), whole.inside, body.appearance.inner_color, OFFSET * whole.spacing
        )
        if body.remnant is not None:
            mesh = mesh.kept(body.remnant.side(mesh.middles))
    places = body.born.centre + body.born.unit * mesh.points
    return _BodySkin(Follower(body, places), mesh.normals, mesh.colors, mesh.faces, parting_of(body), mesh.uv)


def _mesh_at_birth(body: Body) -> Triangles:
    """The file's mesh, of which the body's points are a part; or that of the solid which they enclose. Of a piece, that
    of the whole."""
    cloud, solid = body.appearance.whole_cloud, body.solid
    uv = None if cloud.uv is None or cloud.uv_faces is None else cloud.uv[cloud.uv_faces].astype(np.float64)
    if cloud.faces is not None:
        vertices, faces = np.asarray(cloud.positions, np.float64), cloud.faces
    elif cloud.mesh is not None:
        vertices, faces, uv = np.asarray(cloud.mesh.vertices, np.float64), cloud.mesh.faces, None
    else:
        cell = COARSENESS * float(np.median(mean_spacing(cloud.positions, 6)))
        lower, upper = solid.lower - 2 * cell, solid.upper + 2 * cell
        vertices, faces = isosurface(solid.distance, lower, upper, cell, near=cloud.positions)
    normals = unit(np.asarray(solid.gradient(vertices), np.float64)) @ body.shape.rotation.T
    rest = body.appearance.whole_surface.rest
    points = (body.shape.placement.placed(vertices) - body.born.centre) / body.born.unit
    colors = np.asarray(rest.colors, np.float64)[nearest(points, rest.positions, 1)[1][:, 0]]
    return Triangles(points, normals, colors, np.asarray(faces, np.int64), uv)


def _surface_mesh(body: Body) -> BodyMesh:
    """A closed mesh of the surface a body has now (physics 8.11)."""
    field, cell = surface_field(body)
    seen = body.surface if len(body.surface) else body.surface.carried
    surface, nodes = seen.positions, body.positions
    around = np.concatenate([surface, nodes])
    room = 2 * body.born.unit
    vertices, faces = isosurface(field, around.min(axis=0) - room, around.max(axis=0) + room, cell, near=around)
    _, index = nearest(vertices, surface, 1)
    normals = field_normals(field, vertices, 0.1 * cell)
    # Beside the rim of what lies on a collider the field knows nothing of it.
    lain = kept_out(body, vertices)
    around_it = sum_by_index(faces.ravel(), np.repeat(double_areas(lain, faces), 3, axis=0), len(lain))
    moved = (lain != vertices).any(axis=1) & (around_it != 0).any(axis=1)
    normals[moved] = unit(around_it[moved])
    return BodyMesh(lain, normals, seen.colors[index[:, 0]], faces)


def surface_field(body: Body) -> tuple[Field, float]:
    """A field that is negative inside a body as it is now, and the cells it takes to see its detail [m].

    Near its surfels it is the distance from the plane that those around a place have in the mean, so that the mesh has
    their detail and relief. Farther off the implicit skin of its phyxels tells inside from outside.
    """
    surface, unit = body.surface, body.born.unit
    points, normals = surface.positions, surface.normals
    skin = ImplicitSkin(body.volumes / unit**3, np.zeros(len(body.birth), np.int32), surface.position.device)
    skin.place((body.positions - surface.origin) / unit)

    def blobs(x: Floats) -> Floats:
        return unit * (1 - skin.measure((x - surface.origin) / unit)[0].astype(np.float64))

    if len(points) < HEARD:
        return blobs, COARSEST * unit
    tree, spacing = cKDTree(points), float(np.median(mean_spacing(points, 6)))

    def field(x: Floats) -> Floats:
        distance, index = tree.query(x, HEARD, workers=-1)
        weight = np.maximum(1 - (distance / np.maximum(1.01 * distance[:, -1:], spacing)) ** 2, 0) ** 2
        weight *= np.einsum("mka,ma->mk", normals[index], normals[index[:, 0]]) > 0
        height = np.einsum("mka,mka->mk", x[:, None] - points[index], normals[index])
        value = (weight * height).sum(axis=1) / weight.sum(axis=1)
        far = distance[:, 0] > SPOKEN_FOR * unit
        value[far] = blobs(x[far])
        return value

    return field, min(COARSENESS * spacing, COARSEST * unit)


def _obj(mesh: BodyMesh, name: str) -> bytes:
    faces, uv_faces = mesh.polygons
    lines = [f"# {name}, written by phyxel, metres, y up"]
    # A texture has the colours, where there is one: programs would multiply both.
    vertices = mesh.vertices if mesh.uv is not None else np.hstack([mesh.vertices, np.clip(mesh.colors, 0, 1)])
    lines += [("v" + len(x) * " {:.7g}").format(*x) for x in vertices.tolist()]
    lines += ["vn {:.5g} {:.5g} {:.5g}".format(*n) for n in mesh.normals.tolist()]
    if mesh.uv is None or uv_faces is None:
        face = "f" + "".join(f" {{{k}}}//{{{k}}}" for k in range(faces.shape[1]))
        lines += [face.format(*corners) for corners in (faces + 1).tolist()]
    else:
        lines += ["vt {:.7g} {:.7g}".format(*t) for t in mesh.uv.tolist()]
        face = "f" + "".join(f" {{{2 * k}}}/{{{2 * k + 1}}}/{{{2 * k}}}" for k in range(faces.shape[1]))
        both = np.stack([faces, uv_faces], axis=2).reshape(len(faces), -1) + 1
        lines += [face.format(*corners) for corners in both.tolist()]
    return ("\n".join(lines) + "\n").encode()


def _ply(mesh: BodyMesh, _name: str) -> bytes:
    vertices = vertex_rows(mesh.vertices, mesh.normals, mesh.colors)
    corners, _ = mesh.polygons
    faces = np.empty(len(corners), [("count", "u1"), ("corners", "<i4", corners.shape[1])])
    faces["count"], faces["corners"] = corners.shape[1], corners
    lists = ("face", len(faces), ["property list uchar int vertex_indices"])
    header = ply_header([("vertex", len(vertices), columns_of(VERTEX)), lists])
    return header + vertices.tobytes() + faces.tobytes()
