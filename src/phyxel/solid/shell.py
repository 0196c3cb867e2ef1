"""A triangle mesh as it comes, read as what bounds a solid: it may be open, overlap itself, and have parts that look
the wrong way or enclose nothing (physics 9.2).

How often a mesh winds round a place is a whole number if it is closed, and nearly one away from its openings if it is
not (Jacobson et al. 2013). The solid is where that number is above ½. Its skin are the faces that have the solid on
their inner side alone and, across openings, films on which the number is ½.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import warp as wp
from numpy.typing import NDArray
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from phyxel.points.cloud import Floats, Mesh
from phyxel.points.completion import HALF_SIZE, double_areas
from phyxel.points.load import spread_on
from phyxel.points.meshfiles import sum_by_index
from phyxel.points.moments import SolidMoments, enclosed_by
from phyxel.points.normals import neighbourhoods
from phyxel.solid.openings import Closing, close_openings
from phyxel.solid.winding import Soup, point_triangles

Faces = NDArray[np.integer]
Mask = NDArray[np.bool_]

FACES_PROBED = 4000
"""Faces that are asked whether any does not bound the solid."""
MORE_PROBED = 50_000
"""Faces of an open mesh that are asked for what they bound."""
MIDDLE = np.full((1, 3), 1 / 3)
PLACES_ON_FACE = np.array([[1, 1, 1], [2.8, 0.1, 0.1], [0.1, 2.8, 0.1], [0.1, 0.1, 2.8]]) / 3
"""Where on a face, in barycentric coordinates."""
QUARTERINGS = 4
"""How often a face that bounds the solid in part is quartered."""
UNCLEAR = 0.25
"""How far from ½ a winding number is unclear."""
SHEET = 0.1
"""The same for what lies behind a sheet, where it is ½."""
FEWEST_BOUNDING = 0.05
"""Share of the area of an open part that must bound the solid; of a sheet beside it or within it nothing does."""
MOST_UNCLEAR = 0.2
"""Share of the area that may lie beside unclear numbers; else the points of the mesh are asked instead."""
SKIN_POINTS = 20_000
"""Points on the skin from whose rims films are laid."""
COVERING = 2.0
"""Area of the triangle at each point of a film, over the area it stands for: they overlap, and leave no gaps."""


class Part(NamedTuple):
    """A connected part of a mesh."""

    faces: int
    open_edges: int
    area: float
    volume: float
    """enclosed, negative if it looks inward; 0 if that depends on how it is closed"""
    middle: Floats
    """of its box, shape (3,)"""
    is_sheet: bool
    """whether it encloses nothing, and is left out"""


@dataclass(frozen=True)
class Shell:
    """Triangles round a solid, in units of its size about its middle."""

    lower: Floats
    upper: Floats
    soup: Soup
    """the faces that count, outward: inside, their winding number is above ½"""
    skin: Floats | None
    """the triangles that bound the solid, films among them, shape (n, 3, 3), if they are not the faces themselves"""
    area: float
    """of the skin without films"""
    moments: SolidMoments | None
    """of the solid, if they are known exactly: the faces themselves bound it, and leave no openings"""
    films: Closing
    parts: list[Part]
    rims: Floats
    """middles of open edges, shape (E, 3)"""
    rim_parts: NDArray[np.integer]
    """which parts these belong to, shape (E,)"""


class _Patchwork(NamedTuple):
    """The faces of a mesh and which connected part each belongs to."""

    corners: Floats
    faces: Faces
    part: NDArray[np.integer]

    @property
    def triangles(self) -> Floats:
        return self.corners[self.faces]

    def chosen(self, kept: Mask) -> _Patchwork:
        return self._replace(faces=self.faces[kept], part=self.part[kept])

    def turned(self, which: Mask) -> _Patchwork:
        return self._replace(faces=np.where(which[:, None], self.faces[:, ::-1], self.faces))

    def soup(self, device: wp.Device) -> Soup:
        return Soup(self.corners, self.faces, device)


def read_shell(corners: Floats, faces: Faces, device: wp.Device) -> Shell | None:
    """What the faces of a welded mesh bound; None if there are too few, or they do not tell inside from outside."""
    if len(faces) < 4:
        return None
    mesh = _outward(_Patchwork(corners, faces, _connected(faces, len(corners))), device)
    rims = open_edges(mesh.faces)
    rim_parts = _part_of_vertices(mesh)[rims[:, 0]]
    soup = mesh.soup(device)
    is_sheet = _sheets(mesh, rim_parts, soup)
    parts = _parts(mesh, rim_parts, is_sheet)
    if is_sheet.any():
        mesh = mesh.chosen(~is_sheet[mesh.part])
        if len(mesh.faces) < 4:
            return None
        soup = mesh.soup(device)
    if len(rims) and _unclear_share(mesh, soup) > MOST_UNCLEAR:
        return None
    triangles = mesh.triangles
    skin = bare = _bare(triangles, soup)
    if len(bare) == 0:
        return None
    films = Closing.none()
    if len(rims):
        films = _films(bare, soup)
        skin = np.concatenate([bare, point_triangles(films.positions, films.normals, COVERING * films.areas)])
    is_whole = skin is triangles
    return Shell(
        lower=np.concatenate([triangles.reshape(-1, 3), films.positions]).min(axis=0),
        upper=np.concatenate([triangles.reshape(-1, 3), films.positions]).max(axis=0),
        soup=soup,
        skin=None if is_whole else skin,
        area=float(_areas(bare).sum()),
        moments=enclosed_by(triangles) if is_whole else None,
        films=films,
        parts=parts,
        rims=corners[rims].mean(axis=1),
        rim_parts=rim_parts,
    )


# --- faces and edges


def welded(mesh: Mesh) -> Mesh:
    """The mesh with coincident vertices made one, its faces wound alike, without unused vertices and flat faces."""
    _, first, merged = np.unique(mesh.vertices, axis=0, return_index=True, return_inverse=True)
    faces = merged.reshape(-1)[mesh.faces]
    a, b, c = faces.T
    faces = faces[(a != b) & (b != c) & (c != a)]
    used, faces = np.unique(faces, return_inverse=True)
    return Mesh(mesh.vertices[first[used]], _wound_alike(faces.reshape(-1, 3).astype(np.int32)))


def open_edges(faces: Faces) -> NDArray[np.int64]:
    """Both vertices of each edge that is not passed as often one way as the other, shape (E, 2): none, if the mesh
    encloses every place a whole number of times."""
    key, upward = _edges(faces)
    edge, index = np.unique(key, return_inverse=True)
    edge = edge[np.bincount(index, np.where(upward, 1, -1), len(edge)) != 0]
    return np.stack([edge >> 32, edge & (2**32 - 1)], axis=1)


def _edges(faces: Faces) -> tuple[NDArray[np.int64], Mask]:
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


def _areas(triangles: Floats) -> Floats:
    a, b, c = triangles.transpose(1, 0, 2)
    return 0.5 * np.linalg.norm(np.cross(b - a, c - a), axis=1)


# --- parts


def _connected(faces: Faces, vertices: int) -> NDArray[np.integer]:
    """Which part each face belongs to: those that share a vertex are one."""
    ends = faces[:, [0, 1]].ravel(), faces[:, [1, 2]].ravel()
    _, label = connected_components(coo_array((np.ones(len(ends[0])), ends), shape=(vertices, vertices)), False)
    return np.unique(label[faces[:, 0]], return_inverse=True)[1]


def _part_of_vertices(mesh: _Patchwork) -> NDArray[np.integer]:
    part = np.zeros(len(mesh.corners), mesh.part.dtype)
    part[mesh.faces] = mesh.part[:, None]
    return part


def _boxes(mesh: _Patchwork) -> tuple[Floats, Floats]:
    """Lower and upper corners of all parts."""
    parts = int(mesh.part.max()) + 1
    lower, upper = np.full((parts, 3), np.inf), np.full((parts, 3), -np.inf)
    np.minimum.at(lower, mesh.part, mesh.triangles.min(axis=1))
    np.maximum.at(upper, mesh.part, mesh.triangles.max(axis=1))
    return lower, upper


def _volumes(mesh: _Patchwork) -> Floats:
    """What each part encloses, negative if it looks inward; 0 if the sign depends on where in its box the volume is
    measured from: only a closed part, or one that goes far enough round an inside, has a sure one."""
    lower, upper = _boxes(mesh)
    middle = 0.5 * (lower + upper)
    areas = double_areas(mesh.corners, mesh.faces)
    six_volumes = ((mesh.corners[mesh.faces[:, 0]] - middle[mesh.part]) * areas).sum(axis=1)
    six_volumes = np.bincount(mesh.part, six_volumes, len(middle))
    openings = np.linalg.norm(sum_by_index(mesh.part, areas, len(middle)), axis=1)
    sure = np.abs(six_volumes) > HALF_SIZE * (upper - lower).max(axis=1) * openings
    return np.where(sure, six_volumes / 6, 0.0)


def _outward(mesh: _Patchwork, device: wp.Device) -> _Patchwork:
    """Every part turned outward that surely looks inward; one inside another keeps to look inward: a cavity."""
    volumes = _volumes(mesh)
    # A skin in many patches, none of which encloses anything, is seen as one.
    total = volumes.sum() or _volumes(mesh._replace(part=0 * mesh.part)).sum()
    if total < 0:
        mesh, volumes = mesh.turned(np.ones(len(mesh.faces), bool)), -volumes
    inward = (volumes < 0)[mesh.part]
    if not inward.any():
        return mesh
    around = mesh.chosen(~inward).soup(device).winding_number(mesh.corners[mesh.faces[inward, 0]]) > 0.5
    # What only reaches into another part is no cavity of it.
    outside = np.bincount(mesh.part[inward], ~around, len(volumes)) > 0
    return mesh.turned(inward & outside[mesh.part])


def _sheets(mesh: _Patchwork, rim_parts: NDArray[np.integer], soup: Soup) -> Mask:
    """Which parts are open and bound nothing: beside the solid it is half inside behind them, within it on both sides
    at least half."""
    parts = int(mesh.part.max()) + 1
    is_open = np.bincount(rim_parts, minlength=parts) > 0
    some = _some(np.flatnonzero(is_open[mesh.part]), MORE_PROBED)
    triangles, part = mesh.triangles[some], mesh.part[some]
    behind, before = (_beside(triangles, soup, MIDDLE, side)[:, 0] for side in (-1, 1))
    bounds = (behind > 0.5 + SHEET) & (before < 0.5 - SHEET)
    areas = _areas(triangles)
    return np.bincount(part, areas * bounds, parts) < FEWEST_BOUNDING * np.bincount(part, areas, parts)


def _parts(mesh: _Patchwork, rim_parts: NDArray[np.integer], is_sheet: Mask) -> list[Part]:
    lower, upper = _boxes(mesh)
    n = len(lower)
    faces, edges = np.bincount(mesh.part, minlength=n), np.bincount(rim_parts, minlength=n)
    areas = np.bincount(mesh.part, _areas(mesh.triangles), n)
    columns = (faces, edges, areas, _volumes(mesh), 0.5 * (lower + upper), is_sheet)
    return [Part(*row) for row in zip(*columns, strict=True)]


# --- what bounds the solid


def _unclear_share(mesh: _Patchwork, soup: Soup) -> float:
    """Share of the area beside which the winding number tells no side."""
    triangles = mesh.triangles[_some(np.arange(len(mesh.faces)), MORE_PROBED)]
    unclear = [np.abs(_beside(triangles, soup, MIDDLE, side)[:, 0] - 0.5) < UNCLEAR for side in (-1, 1)]
    areas = _areas(triangles)
    return float(areas[unclear[0] | unclear[1]].sum() / max(areas.sum(), 1e-300))


def _bare(triangles: Floats, soup: Soup) -> Floats:
    """The triangles without what of them has the solid on both sides or on none, where they overlap each other; those
    that are cut are quartered. The same array if there is no such thing."""
    if not _idle(triangles[_some(np.arange(len(triangles)), FACES_PROBED)], soup).any():
        return triangles
    bare = []
    for _ in range(QUARTERINGS):
        idle = _idle(triangles, soup)
        bare.append(triangles[~idle.any(axis=1)])
        triangles = _quartered(triangles[idle.any(axis=1) & ~idle.all(axis=1)])
    bare.append(triangles[~_idle(triangles, soup).all(axis=1)])
    return np.concatenate(bare)


def _idle(triangles: Floats, soup: Soup) -> Mask:
    """Whether each triangle does not bound the solid near its middle and its corners, (n, 4)."""
    return (_beside(triangles, soup, PLACES_ON_FACE, 1) > 0.5) | (_beside(triangles, soup, MIDDLE, -1) < 0.5)


def _beside(triangles: Floats, soup: Soup, places: Floats, side: int) -> Floats:
    """Winding numbers just before (1) or just behind (−1) places on each triangle, (n, places)."""
    normal = np.cross(triangles[:, 1] - triangles[:, 0], triangles[:, 2] - triangles[:, 0])
    length = np.linalg.norm(normal, axis=1, keepdims=True)
    off = np.maximum(1e-2 * np.sqrt(length), 1e-5) * normal / np.maximum(length, 1e-300)
    on = np.einsum("pk,nkd->npd", places, triangles)
    return soup.winding_number((on + side * off[:, None]).reshape(-1, 3)).reshape(-1, len(places))


def _quartered(triangles: Floats) -> Floats:
    """Each triangle (n, 3, 3) as the four that its edges' middles make of it."""
    a, b, c = triangles.transpose(1, 0, 2)
    ab, bc, ca = (a + b) / 2, (b + c) / 2, (c + a) / 2
    parts = [(a, ab, ca), (ab, b, bc), (ca, bc, c), (ab, bc, ca)]
    return np.concatenate([np.stack(part, axis=1) for part in parts])


def _films(skin: Floats, soup: Soup) -> Closing:
    """What closes the openings that are wider than the points on the skin are apart."""
    faces = np.arange(3 * len(skin), dtype=np.int32).reshape(-1, 3)
    cloud = spread_on(Mesh(skin.reshape(-1, 3), faces), SKIN_POINTS)
    assert cloud.normals is not None
    near = neighbourhoods(cloud.positions)
    areas = np.full(len(near.x), _areas(skin).sum() / len(near.x))
    return close_openings(cloud.positions[near.original], cloud.normals[near.original], areas, near, soup)


def _some(indices: NDArray[np.integer], most: int) -> NDArray[np.integer]:
    return np.random.default_rng(0).permutation(indices)[:most]
