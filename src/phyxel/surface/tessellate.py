"""A closed triangle mesh on the points of a built-in shape.

Its faces are those of the Delaunay triangulation of the points on the surface: a mesh much finer than they are is
parted into the cells of what is nearer, along it, to one of them than to any other, and where three cells meet three
points make a face. Points that this leaves without a proper place, where a part is too thin for them, are left out.
Then all are moved to lie more evenly, and edges flipped.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components, dijkstra

from phyxel.errors import PhyxelError
from phyxel.mls.neighbours import mean_spacing, nearest
from phyxel.points.cloud import BuiltInShape, Floats, PointCloud
from phyxel.points.sampling import SAME_FACE, project, settle, unit
from phyxel.surface.hull import summed
from phyxel.surface.isosurface import isosurface

Indices = NDArray[np.int64]

FINENESS = 0.6
"""Cells of the fine mesh over the spacing of the points: nine vertices for each."""
MOST_ROUNDS = 30
SLACK = 1e-9
"""[rad]: squares are flipped neither way"""
CROWDED = 0.4
"""Distance to the nearest point over that of most, below which it is too close."""
SWEEPS = 5
"""How often points are moved to lie more evenly."""
UPRIGHT = 0.3
"""Cosine between a face and its corners' normals below which it may be folded over."""
FEWEST = 0.85
"""Share of the points that must find a place."""


def tessellated(cloud: PointCloud) -> PointCloud:
    """The points of a built-in shape with faces, as a closed mesh, in their order and colours; moved along the surface
    until they lie evenly, and a few may be missing."""
    shape, points = cloud.shape, np.asarray(cloud.positions, np.float64)
    assert shape is not None
    skin, kept = _ShapeSkin(shape, points), _uncrowded(points)
    for _ in range(MOST_ROUNDS):
        faces = skin.cells(points[kept])
        bad = _improper(faces, len(kept))
        if not len(bad) or len(kept) - len(bad) < FEWEST * len(cloud):
            break
        kept = np.delete(kept, bad)
    if len(bad):
        raise PhyxelError(
            f"{cloud.name}: {len(cloud)} points are too few for a closed mesh of it; ask for more, such as points = "
            f"{4 * len(cloud)}"
        )
    x, normals, faces = _evened(shape, points[kept], faces)
    return replace(cloud.part(kept), positions=x, normals=normals.astype(np.float32), faces=faces.astype(np.int32))


def _uncrowded(points: Floats) -> Indices:
    """Points but for the later one of two that are too close, ascending."""
    distance, index = nearest(points, points, 2)
    itself = np.arange(len(points))
    # Of two in one place the nearest may be the point itself.
    other = np.where(index[:, 1] == itself, index[:, 0], index[:, 1])
    return np.flatnonzero((distance[:, 1] > CROWDED * np.median(distance[:, 1])) | (itself < other))


def _evened(shape: BuiltInShape, x: Floats, faces: Indices) -> tuple[Floats, Floats, Indices]:
    """Points (n, 3) of a closed mesh moved toward the middles of the faces around them, but over no edge of the shape;
    their normals, and the faces that are Delaunay's then."""
    normals = project(shape, x)[1]
    faces = _delaunay(x, normals, faces)
    for _ in range(SWEEPS):
        corners = x[faces]
        area = np.linalg.norm(np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0]), axis=1)
        owner, weight = faces.T.reshape(-1), np.tile(area, 3)
        middle = summed(owner, weight[:, None] * np.tile(corners.mean(axis=1), (3, 1)), len(x))
        way = middle / np.bincount(owner, weight, len(x))[:, None] - x
        way -= np.einsum("ni,ni->n", way, normals)[:, None] * normals
        moved, turned = project(shape, x + way)
        same = (np.einsum("ni,ni->n", normals, turned) > SAME_FACE)[:, None]
        x, normals = np.where(same, moved, x), np.where(same, turned, normals)
        faces = _delaunay(x, normals, faces)
    x = settle(shape, x, normals)
    return x, unit(shape.gradient(x)), faces


class _ShapeSkin:
    """A fine mesh of a shape."""

    def __init__(self, shape: BuiltInShape, points: Floats) -> None:
        cell = FINENESS * float(np.median(mean_spacing(points, 6)))
        lower, upper = np.array(shape.lower) - 3 * cell, np.array(shape.upper) + 3 * cell
        self._x, faces = isosurface(shape.distance, lower, upper, cell, near=points)
        self._faces = faces.astype(np.int64)
        edges = np.concatenate([self._faces[:, pair] for pair in ([0, 1], [1, 2], [2, 0])])
        length = np.linalg.norm(self._x[edges[:, 0]] - self._x[edges[:, 1]], axis=1)
        self._ways = coo_array((length, edges.T), (len(self._x),) * 2).tocsr()

    def cells(self, points: Floats) -> Indices:
        """Triangles (m, 3) of points (n, 3) whose cells meet, counter-clockwise from outside."""
        home = nearest(points, self._x, 1)[1][:, 0]
        seeds, owner = np.unique(home, return_index=True)
        _, _, source = dijkstra(self._ways, indices=seeds, min_only=True, return_predecessors=True)
        number = np.full(len(self._x) + 1, -1)
        number[seeds] = owner
        label = number[source]
        meet = label[self._faces]
        differ = (meet != np.roll(meet, 1, axis=1)).all(axis=1) & (meet >= 0).all(axis=1)
        return meet[differ]


def _improper(faces: Indices, count: int) -> Indices:
    """Points of a mesh that are no part of it, or at which it is not closed or meets itself: of neighbours only one."""
    one, two = _half_edges(faces)
    known, times = np.unique(one * count + two, return_counts=True)
    wrong = known[(times > 1) | ~np.isin(known, two * count + one)]
    bad = np.ones(count, bool)
    bad[faces] = False
    bad[wrong // count] = bad[wrong % count] = True
    if not len(wrong):
        bad |= _fans(faces, count) > 1
    first, both = np.full(count, count), bad[one] & bad[two]
    np.minimum.at(first, one[both], two[both])
    return np.flatnonzero(bad & (np.arange(count) < first))


def _half_edges(faces: Indices) -> tuple[Indices, Indices]:
    """Where the edges of faces begin and end, in their direction, (3m,) each: all first ones, then all second ones."""
    return faces.T.reshape(-1), np.roll(faces, -1, axis=1).T.reshape(-1)


def _partners(faces: Indices, count: int) -> Indices:
    """The half edge that runs along each the other way, (3m,), in a closed mesh."""
    one, two = _half_edges(faces)
    order = np.argsort(one * count + two)
    return order[np.searchsorted((one * count + two)[order], two * count + one)]


def _fans(faces: Indices, count: int) -> Indices:
    """How many fans of faces there are around each point of a closed mesh, (count,)."""
    m, partner = len(faces), _partners(faces, count)
    one, _ = _half_edges(faces)
    # Half edge k begins at corner k; its partner ends there, and the one after that begins there.
    after = (partner + m) % (3 * m)
    corners = coo_array((np.ones(3 * m), (np.arange(3 * m), after)), (3 * m, 3 * m))
    _, label = connected_components(corners, directed=False)
    _, first = np.unique(label, return_index=True)
    return np.bincount(one[first], minlength=count)


def _delaunay(points: Floats, normals: Floats, faces: Indices) -> Indices:
    """A closed mesh with edges flipped where the two angles that look at them are more than 180° together, or one of
    the faces that have them is folded over; never so that one folds over."""
    count, m = len(points), len(faces)
    for _ in range(MOST_ROUNDS):
        one, two = _half_edges(faces)
        partner = _partners(faces, count)
        tip = np.roll(faces, 1, axis=1).T.reshape(-1)
        angle = _angles(points[one] - points[tip], points[two] - points[tip])
        lean = _lean(points, normals, (faces[:, 0], faces[:, 1], faces[:, 2]))
        now = np.minimum(lean[np.arange(3 * m) % m], lean[partner % m])
        wide = angle + angle[partner] > np.pi + SLACK
        some = np.flatnonzero((one < two) & (wide | (now < 0)))
        a, b, c, d = one[some], two[some], tip[some], tip[partner[some]]
        new, edge = (np.minimum(p, q) * count + np.maximum(p, q) for p, q in ((c, d), (one, two)))
        then = np.minimum(_lean(points, normals, (c, a, d)), _lean(points, normals, (d, b, c)))
        better = np.where(wide[some], then > np.minimum(now[some], UPRIGHT), then > 0) & ~np.isin(new, edge)
        chosen = _apart(some, partner, m, new, better)
        if not len(chosen):
            break
        a, b, c, d = one[chosen], two[chosen], tip[chosen], tip[partner[chosen]]
        faces = faces.copy()
        faces[chosen % m], faces[partner[chosen] % m] = np.stack([c, a, d], axis=1), np.stack([d, b, c], axis=1)
    return faces


def _lean(points: Floats, normals: Floats, corners: tuple[Indices, Indices, Indices]) -> Floats:
    """Cosine between faces with these corners, (k,) each, and the mean normal there, (k,)."""
    a, b, c = (points[corner] for corner in corners)
    mean = np.sum([normals[corner] for corner in corners], axis=0)
    return np.einsum("ei,ei->e", unit(np.cross(b - a, c - a)), unit(mean))


def _apart(edges: Indices, partner: Indices, m: int, new: Indices, chosen: NDArray[np.bool_]) -> Indices:
    """Some of the chosen half edges (k,), no two of which have a face, or would become the same of the new ones."""
    edges, new, first = edges[chosen], new[chosen], np.full(m, len(partner))
    for half in (edges, partner[edges]):
        np.minimum.at(first, half % m, edges)
    alone = (first[edges % m] == edges) & (first[partner[edges] % m] == edges)
    return edges[alone][np.unique(new[alone], return_index=True)[1]]


def _angles(one: Floats, two: Floats) -> Floats:
    return np.arctan2(np.linalg.norm(np.cross(one, two), axis=1), np.einsum("ei,ei->e", one, two))
