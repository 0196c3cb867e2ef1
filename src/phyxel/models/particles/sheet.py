"""A particle surface at rest: where its points belong, the area of each, and their links."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components
from scipy.spatial import cKDTree

from phyxel.errors import PhyxelError
from phyxel.models.particles.elements import BEND, BEND_WARP, BEND_WEFT, DIAGONAL, SPRING, WARP, WEFT, Elements
from phyxel.models.particles.umbrellas import umbrellas
from phyxel.solid.shell import open_edges

Floats = NDArray[np.float64]
Ints = NDArray[np.integer]

LARGEST = 3000
"""Particles up to which stiff links are solved for exactly: the factor of their stiffness takes some n^1.5. Beyond,
iterations that may end before equilibrium are all that there is time for, and whoever moves such a sheet is told."""
LINKED_NEIGHBOURS = 8
"""Neighbours that each point of a bare cloud is linked to."""
AREA_RINGS = range(5, 13)
"""Numbers of nearest neighbours that the area of a bare point is measured by."""
RIM = 2.5
"""Angle [rad] in which a point of a bare cloud has none of its nearest if the surface ends there: less than the π of a
straight rim, more than the gaps within."""
LEAST_EDGE = 1e-6
"""Length [units] below which two points of a mesh have no edge between them; its square is the least area of a face
[units²]."""


LEAST_KNOWN = 0.1
"""Of the curvature that six points know best: points near a conic know less of some, and of that there is less."""


@dataclass(frozen=True)
class Sheet:
    """Particles of a surface. Lengths are in body units about the body's origin."""

    X: Floats
    """reference positions, shape (n, 3)"""
    normals: Floats
    """shape (n, 3)"""
    areas: Floats
    """of each particle [units²], shape (n,)"""
    faces: NDArray[np.int32] | None
    """triangles, shape (m, 3)"""
    elements: Elements

    @cached_property
    def closed(self) -> bool:
        """Whether it has faces, and these enclose something."""
        return self.faces is not None and len(open_edges(self.faces)) == 0

    @staticmethod
    def made(
        positions: Floats,
        normals: Floats,
        faces: Ints | None = None,
        quads: Ints | None = None,
        links: str | int | None = None,
        warp: tuple[float, float, float] = (1.0, 0.0, 0.0),
    ) -> Sheet:
        """From points (n, 3) and their normals, with triangles (m, 3) and quads (q, 4) if there are any.

        `links`: "edges" of triangles, "weave" (warp, weft, diagonals and bending of quads), "none", or a number of
        nearest neighbours; None is weave where there are quads, edges where there are faces, else 8. `warp` is the
        direction that warp threads run along."""
        X = np.asarray(positions, np.float64)
        if faces is None and quads is not None:
            faces = np.concatenate([quads[:, [0, 1, 2]], quads[:, [0, 2, 3]]])
        areas = _scattered_areas(X) if faces is None else _areas(X, faces, quads)
        if links is None:
            links = "weave" if quads is not None else "edges" if faces is not None else LINKED_NEIGHBOURS
        if links == "none":
            elements = Elements.none()
        elif links == "weave":
            if quads is None:
                raise PhyxelError('links = "weave" needs a mesh of quads; "edges" and a number of neighbours do not')
            elements = _woven(X, areas, np.asarray(quads), np.asarray(warp, np.float64))
        elif links == "edges":
            if faces is None:
                raise PhyxelError(
                    'links = "edges" needs a mesh; for a bare cloud give a number of neighbours: links = 8'
                )
            elements = _edged(X, np.asarray(faces))
        elif isinstance(links, int) and not isinstance(links, bool) and links > 0:
            near = umbrellas(X) if faces is None else np.asarray(faces)
            areas = _areas_of(X, near, areas)
            elements = Elements.joined([_nearest(X, areas, links), _bending(X, near)])
        else:
            raise PhyxelError(f'links = {links!r}: give "edges", "weave", "none" or a number of neighbours')
        kept = None if faces is None else np.asarray(faces, np.int32)
        return Sheet(X, np.asarray(normals, np.float64), areas, kept, elements)


def _length(vectors: Floats) -> Floats:
    return np.linalg.norm(vectors, axis=-1)


def _face_areas(X: Floats, faces: Ints) -> Floats:
    a, b, c = (X[faces[:, k]] for k in range(3))
    return 0.5 * _length(np.cross(b - a, c - a))


def _areas_of(X: Floats, faces: Ints, areas: Floats) -> Floats:
    """A third of the triangles about each point that has some, else what it had, shape (n,)."""
    third = np.bincount(faces.ravel(), np.repeat(_face_areas(X, faces) / 3, 3), len(X))
    return np.where(third > LEAST_EDGE**2, third, areas)


def _areas(X: Floats, faces: Ints, quads: Ints | None) -> Floats:
    """A third of the triangles about each point, or a quarter of the quads, shape (n,)."""
    corners, size = faces, _face_areas(X, faces)
    if quads is not None:
        corners, size = quads, _face_areas(X, quads[:, [0, 1, 2]]) + _face_areas(X, quads[:, [0, 2, 3]])
    shared = np.repeat(size / corners.shape[1], corners.shape[1])
    areas: Floats = np.bincount(corners.ravel(), shared, len(X)).astype(np.float64)
    alone = int((areas < LEAST_EDGE**2).sum())
    if alone:
        raise PhyxelError(f"{alone} of {len(X)} points belong to no face (or to faces without area); remove them")
    return areas


def _scattered_areas(X: Floats) -> Floats:
    """Area of each point of a bare cloud: a disc that reaches halfway between the k-th and the next neighbour holds
    k + 1 points; the mean over some k. At a rim only a share of the disc has points, and the point has as much of its
    own part. Shape (n,)."""
    most = min(AREA_RINGS[-1] + 2, len(X))
    if most < 4:
        raise PhyxelError(f"{len(X)} points: a surface needs at least 4")
    far, near = cKDTree(X).query(X, most)
    rings = [k for k in AREA_RINGS if k + 1 < most] or [most - 2]
    full = np.mean([np.pi * (0.5 * (far[:, k] + far[:, k + 1])) ** 2 / (k + 1) for k in rings], axis=0)
    return full * _surrounded(X[near[:, 1:]] - X[:, None]) ** 2


def _surrounded(ways: Floats) -> Floats:
    """Share of the directions in the surface in which a point has others, from the ways (n, k, 3) to the nearest: a
    half at a rim, a quarter at a corner, (n,)."""
    _, _, axes = np.linalg.svd(ways, full_matrices=False)
    across, along = np.moveaxis(np.einsum("nka,nba->nkb", ways, axes[:, :2]), 2, 0)
    angle = np.sort(np.arctan2(across, along), axis=1)
    gap = np.maximum(np.diff(angle, axis=1).max(axis=1), 2 * np.pi - np.ptp(angle, axis=1))
    return np.where(gap > RIM, 1 - gap / (2 * np.pi), 1.0)


def _edges(corners: Ints) -> tuple[Ints, Ints]:
    """Different edges of faces (m, s), lower index first, (E, 2); and which edge each side of each face is, (m, s)."""
    sides = np.stack([corners, np.roll(corners, -1, axis=1)], axis=2)
    low, high = np.sort(sides.reshape(-1, 2), axis=1).astype(np.int64).T
    count = int(corners.max(initial=0)) + 1
    edges, which = np.unique(low * count + high, return_inverse=True)  # one number each: rows compare slowly
    return np.stack([edges // count, edges % count], axis=1), which.reshape(corners.shape)


def _springs(kind: int, X: Floats, pairs: Ints, shape: Floats, aspect: Floats | None = None) -> Elements:
    """Springs between two particles each, without those that have no length."""
    long = _length(X[pairs[:, 0]] - X[pairs[:, 1]]) > LEAST_EDGE
    aspect = None if aspect is None else aspect[long]
    return Elements.of(kind, X, pairs[long], np.array([1.0, -1.0]), shape[long], aspect)


# --- triangles -----------------------------------------------------------------------------------------------------


def _edged(X: Floats, faces: Ints) -> Elements:
    """Springs along the edges of triangles, k = Eh Σ_T area(T)/length² (Van Gelder 1998), and bending across them
    (physics 13.2)."""
    edges, which = _edges(faces)
    beside = np.bincount(which.ravel(), np.repeat(_face_areas(X, faces), 3), len(edges))
    square = ((X[edges[:, 0]] - X[edges[:, 1]]) ** 2).sum(axis=1)
    springs = _springs(SPRING, X, edges, beside / np.maximum(square, LEAST_EDGE**2))
    return Elements.joined([springs, _bending(X, faces)])


def _bending(X: Floats, faces: Ints) -> Elements:
    """What resists bending of triangles: their curvature, or hinges where there are so many that no factor of their
    stiffness would pay."""
    return (_hinges if len(X) > LARGEST else _curvatures)(X, faces)


def _hinges(X: Floats, faces: Ints) -> Elements:
    """Bending across the edges between two triangles (physics 13.2), a third of the work of `_curvatures`:
    |e| = length · angle for c of the cotangents beside the edge (Bergou et al. 2006), which is zero for whatever is
    flat, and k = D/(A₁ + A₂). Equilateral triangles then bend as a plate of rigidity D and of Poisson's ratio 1/3
    (Seung and Nelson 1988); right-angled ones couple bending and twist, and bend a fifth too far."""
    edges, which = _edges(faces)
    order = np.argsort(which.ravel(), kind="stable")
    sides = np.bincount(which.ravel(), minlength=len(edges))
    starts = np.concatenate([[0], np.cumsum(sides)[:-1]])[sides == 2]
    first, second = order[starts], order[starts + 1]
    a, b, c = (faces[first // 3, (first + k) % 3] for k in range(3))
    d = faces[second // 3, (second + 2) % 3]
    area = _face_areas(X, np.stack([a, b, c], axis=1)), _face_areas(X, np.stack([a, b, d], axis=1))
    sound = (area[0] > LEAST_EDGE**2) & (area[1] > LEAST_EDGE**2) & (c != d)
    a, b, c, d = (corner[sound] for corner in (a, b, c, d))
    left, right = area[0][sound], area[1][sound]

    def cotangent(at: Ints, tip: Ints, other: Ints, size: Floats) -> Floats:
        """Of the angle at `at` between the edge and the way to the tip of a triangle."""
        return ((X[other] - X[at]) * (X[tip] - X[at])).sum(axis=1) / (2 * size)

    ac, ad = cotangent(a, c, b, left), cotangent(a, d, b, right)
    bc, bd = cotangent(b, c, a, left), cotangent(b, d, a, right)
    weight = np.stack([bc + bd, ac + ad, -(ac + bc), -(ad + bd)], axis=1)
    return Elements.of(BEND, X, np.stack([a, b, c, d], axis=1), weight, 1 / (left + right))


def _curvatures(X: Floats, faces: Ints) -> Elements:
    """Bending of each triangle (physics 13.2): its curvature Λ has the energy ½D A Λ:Λ, an element for Λ₁₁, Λ₂₂ and
    √2 Λ₁₂ each, of k = D A. What is zero for all that is flat is spanned by how far its sides turn, E_j = Σ c_a x_a
    with c of the cotangents beside each (Bergou et al. 2006). Two curvatures follow from that:

        Λ = Σ_j E_j m_j m_jᵀ/2A,  half of each turn, across its side along m (Grinspun et al. 2006), and
        Λ = Q⁻¹ E, that of the quadratic through the six corners laid flat, Q being E of the three quadratics.

    The first bears even moments without forces inside, and is too stiff on uneven triangles; the second knows even
    curvatures, and is too soft. On even triangles they are the same; what bends here is their mean. Nothing bends
    across a free rim, m·Λm = 0."""
    size = _face_areas(X, faces)
    beyond = _beyond(faces, size)
    whole = (size > LEAST_EDGE**2) & (beyond >= 0).any(axis=1)
    faces, beyond, size = faces[whole], beyond[whole], size[whole]
    place = _laid_flat(X, faces, beyond) / np.sqrt(size)[:, None, None]  # now A = 1
    turn, across, rim = _turns(place), _across(place), beyond < 0
    x, y = place[:, :, 0], place[:, :, 1]
    Q = turn @ np.stack([0.5 * x**2, 0.5 * y**2, np.sqrt(0.5) * x * y], axis=2)
    left, known, right = np.linalg.svd(np.where(rim[:, :, None], 2 * across, Q))
    sure = np.maximum(known, LEAST_KNOWN * known[:, :1])
    fitted = np.einsum("mkc,mk,mjk->mcj", right, known / sure**2, left)
    across = np.swapaxes(across, 1, 2)
    free = across * rim[:, None, :]
    share = 0.5 * (fitted - 0.5 * across) * ~rim[:, None, :]
    share = share - free @ (np.linalg.pinv(free) @ share)
    index = np.repeat(np.concatenate([faces, beyond], axis=1), 3, axis=0)
    return Elements.of(BEND, X, index, (share @ turn).reshape(-1, 6), np.repeat(1 / size, 3))


def _beyond(faces: Ints, size: Floats) -> Ints:
    """The corner of the triangle beyond each side; -1 at a rim, and where more than two meet, shape (m, 3)."""
    edges, which = _edges(faces)
    order = np.argsort(which.ravel(), kind="stable")
    sides = np.bincount(which.ravel(), minlength=len(edges))
    starts = (np.cumsum(sides) - sides)[sides == 2]
    pairs = np.stack([order[starts], order[starts + 1]])
    tips = faces[pairs // 3, (pairs + 2) % 3]
    sound = (size[pairs // 3] > LEAST_EDGE**2).all(axis=0) & (tips[0] != tips[1])
    beyond = np.full(faces.size, -1)
    beyond[pairs[:, sound]] = tips[::-1, sound]
    return beyond.reshape(-1, 3)


def _laid_flat(X: Floats, faces: Ints, beyond: Ints) -> Floats:
    """Corners of triangles and those beyond their sides, all in the plane of the triangle: turned there about the
    sides, or, at a rim, its own corner mirrored. Shape (m, 6, 2)."""
    flat = np.zeros((len(faces), 6, 2))
    corners = X[faces]
    first = corners[:, 1] - corners[:, 0]
    along = first / _length(first)[:, None]
    normal = np.cross(first, corners[:, 2] - corners[:, 0])
    up = np.cross(normal / _length(normal)[:, None], along)
    flat[:, 1, 0] = _length(first)
    flat[:, 2] = np.stack([((corners[:, 2] - corners[:, 0]) * axis).sum(axis=1) for axis in (along, up)], axis=1)
    for side in range(3):
        a, b, c = (faces[:, (side + k) % 3] for k in range(3))
        d = np.where(beyond[:, side] >= 0, beyond[:, side], c)
        edge = X[b] - X[a]
        length = np.maximum(_length(edge), LEAST_EDGE)
        on = ((X[d] - X[a]) * edge).sum(axis=1) / length
        off = _length(np.cross(edge, X[d] - X[a])) / length
        way = (flat[:, (side + 1) % 3] - flat[:, side]) / length[:, None]
        out = np.stack([way[:, 1], -way[:, 0]], axis=1)
        flat[:, 3 + side] = flat[:, side] + on[:, None] * way + off[:, None] * out
    return flat


def _turns(place: Floats) -> Floats:
    """c of how far each side turns a triangle laid flat, over its six corners, (m, 6, 2): |E| = length · angle.
    Shape (m, 3, 6)."""
    weight = np.zeros((len(place), 3, 6))
    for side in range(3):
        a, b, c, d = (place[:, k] for k in (side, (side + 1) % 3, (side + 2) % 3, 3 + side))

        def cotangents(tip: Floats, a: Floats = a, b: Floats = b) -> tuple[Floats, Floats]:
            """Of the angles at both ends between the side and the way to the tip of a triangle."""
            edge, way = b - a, tip - a
            double = np.maximum(np.abs(edge[:, 0] * way[:, 1] - edge[:, 1] * way[:, 0]), LEAST_EDGE**2)
            return (edge * way).sum(axis=1) / double, (edge * (edge - way)).sum(axis=1) / double

        (ac, bc), (ad, bd) = cotangents(c), cotangents(d)
        weight[:, side, side] = bc + bd
        weight[:, side, (side + 1) % 3] = ac + ad
        weight[:, side, (side + 2) % 3] = -(ac + bc)
        weight[:, side, 3 + side] = -(ad + bd)
    return weight


def _across(place: Floats) -> Floats:
    """m mᵀ of each side of triangles laid flat, (m, 6, 2), m being across it: (11, 22, √2 12) by sides, shape
    (m, 3, 3)."""
    way = place[:, [1, 2, 0]] - place[:, :3]
    x, y = np.moveaxis(way / np.maximum(_length(way), LEAST_EDGE)[:, :, None], 2, 0)
    return np.stack([y**2, x**2, -np.sqrt(2) * x * y], axis=2)


# --- quads ---------------------------------------------------------------------------------------------------------


def _woven(X: Floats, areas: Floats, quads: Ints, warp: Floats) -> Elements:
    """Threads along the edges of quads, diagonals for the shear, and bending along the threads (physics 13.2).

    A thread's spring has the stiffness of half of each quad beside it, k = Eh Σ ½area/length²; the two diagonals of a
    quad k = Gh length²/2area, which resists shear as the quad would."""
    edges, which = _edges(quads)
    family = _families(X, edges, which, warp)
    size = _face_areas(X, quads[:, [0, 1, 2]]) + _face_areas(X, quads[:, [0, 2, 3]])
    beside = np.bincount(which.ravel(), np.repeat(0.5 * size, 4), len(edges))
    number = np.bincount(which.ravel(), minlength=len(edges))
    square = np.maximum(((X[edges[:, 0]] - X[edges[:, 1]]) ** 2).sum(axis=1), LEAST_EDGE**2)
    aspect = (square * number / (2 * np.maximum(beside, LEAST_EDGE**2))) ** 2
    diagonals = np.concatenate([quads[:, [0, 2]], quads[:, [1, 3]]])
    across = ((X[diagonals[:, 0]] - X[diagonals[:, 1]]) ** 2).sum(axis=1)
    parts = [
        _springs(WARP, X, edges[family == WARP], (beside / square)[family == WARP], aspect[family == WARP]),
        _springs(WEFT, X, edges[family == WEFT], (beside / square)[family == WEFT], aspect[family == WEFT]),
        _springs(DIAGONAL, X, diagonals, across / (2 * np.maximum(np.tile(size, 2), LEAST_EDGE**2))),
    ]
    rows, thread = _rows(edges, which, family)
    for kind, of in ((BEND_WARP, WARP), (BEND_WEFT, WEFT)):
        parts.append(_bends(kind, X, areas, rows[thread == of]))
    return Elements.joined(parts)


def _families(X: Floats, edges: Ints, which: Ints, warp: Floats) -> Ints:
    """Whether each edge is WARP or WEFT, (E,): opposite sides of a quad are the same, adjacent ones are not, and in
    each piece those are warp that lie along `warp`. Where quads contradict each other, each edge goes by itself."""
    count = len(edges)
    ab, bc, cd, da = which.T
    same = np.concatenate([np.stack([ab, cd]), np.stack([bc, da])], axis=1)
    pairs = np.concatenate([same, same + count, [ab, bc + count], [ab + count, bc]], axis=1)
    links = coo_array((np.ones(pairs.shape[1]), tuple(pairs)), (2 * count, 2 * count))
    _, piece = connected_components(links, directed=False)
    one, other = piece[:count], piece[count:]
    way = X[edges[:, 1]] - X[edges[:, 0]]
    along = (way @ warp) ** 2
    across = (warp @ warp) * (way**2).sum(axis=1) - along
    score = np.bincount(one, along - across, piece.max() + 1)
    chosen = np.where(one == other, along >= across, score[one] > score[other])
    # A piece that lies as much along as across: the lower number, so that each of its two colourings stays one family.
    tie = (one != other) & (score[one] == score[other])
    return np.where(np.where(tie, one < other, chosen), WARP, WEFT)


def _rows(edges: Ints, which: Ints, family: Ints) -> tuple[Ints, Ints]:
    """Three particles in a row along a thread: two edges of the same family that meet, with no quad between them and
    no third edge that could go on as well. (R, 3), the middle one second; and the family of each, (R,)."""
    count = len(edges)
    ends = edges.ravel()
    # Half an edge is (edge, which end): those of one family at a particle, sorted to lie side by side.
    order = np.lexsort((np.arange(2 * count), np.repeat(family, 2), ends))
    at, kin = ends[order], np.repeat(family, 2)[order]
    new = np.flatnonzero(np.concatenate([[True], (at[1:] != at[:-1]) | (kin[1:] != kin[:-1])]))
    length = np.diff(np.append(new, 2 * count))
    pair = new[length == 2]
    first, second = order[pair], order[pair + 1]
    # Both edges in one quad: a corner where the families run into each other, no row.
    sides = np.stack([which, np.roll(which, -1, axis=1)], axis=2).reshape(-1, 2)
    corner = np.sort(sides, axis=1) @ np.array([count, 1])
    together = np.sort(np.stack([first // 2, second // 2]), axis=0)
    straight = ~np.isin(together[0] * count + together[1], corner)
    first, second = first[straight], second[straight]
    rows = np.stack([ends[first ^ 1], ends[first], ends[second ^ 1]], axis=1)
    return rows, family[first // 2]


def _bends(kind: int, X: Floats, areas: Floats, rows: Ints) -> Elements:
    """What resists bending of rows of three (physics 13.2): e = l₁l₂ times the curvature of a curve through them, so
    that ½k|e|² = ½D κ² area with k = D area/(l₁l₂)²."""
    before, after = _length(X[rows[:, 1]] - X[rows[:, 0]]), _length(X[rows[:, 2]] - X[rows[:, 1]])
    sound = np.minimum(before, after) > LEAST_EDGE
    rows, before, after = rows[sound], before[sound], after[sound]
    both = before + after
    weight = np.stack([2 * after / both, np.full(len(rows), -2.0), 2 * before / both], axis=1)
    return Elements.of(kind, X, rows, weight, areas[rows[:, 1]] / (before * after) ** 2)


# --- bare points ---------------------------------------------------------------------------------------------------


def _nearest(X: Floats, areas: Floats, number: int) -> Elements:
    """Springs between each point and its nearest (physics 13.2): Σ k length² = 3Eh area makes an even network of
    springs as stiff as the sheet (E = Σ k length²/3 per area, Poisson's ratio 1/3). Each point shares its area out
    among its springs."""
    _, found = cKDTree(X).query(X, min(number + 1, len(X)))
    own = np.broadcast_to(np.arange(len(X))[:, None], found.shape)
    apart = found != own
    pairs = np.unique(np.sort(np.stack([own[apart], found[apart]], axis=1), axis=1), axis=0)
    share = areas / np.maximum(np.bincount(pairs.ravel(), minlength=len(X)), 1)
    square = np.maximum(((X[pairs[:, 0]] - X[pairs[:, 1]]) ** 2).sum(axis=1), LEAST_EDGE**2)
    return _springs(SPRING, X, pairs, 3 * share[pairs].sum(axis=1) / square)
