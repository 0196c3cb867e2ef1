"""Normals for points that come without (physics 9.2): planes through neighbours, signs along a spanning tree, outward
at the end."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array, csr_array
from scipy.sparse.csgraph import breadth_first_order, connected_components, minimum_spanning_tree
from scipy.spatial import cKDTree

from phyxel.points.cloud import Floats, Indices

NEIGHBOURS = 16
WIDER = (64, 256)
"""How far to look, in points, where all neighbours so far lie along one line of a scan."""
SUPPORT = 1.4
"""Distance at which a neighbour would weigh nothing, in distances to the last one."""
SLAB = 4096
"""Points worked on at a time, so that they and their neighbours stay in the cache."""
LINE_LIKE = 0.05
"""Ratio of the second largest to the largest extent squared below which neighbours lie along a line."""
COUNT_ITSELF = 0.25
"""Share of a point that counts in the disc around it: 0 is right for random points, 1/2 for evenly spread ones."""
STEEPNESS_COST = 0.4
"""What a pair whose segment runs along its normals costs, where one whose signs cannot be told costs 1."""
LEAST_COST = 1e-6
"""An edge that costs nothing at all would be no edge of a sparse graph."""
LARGEST_AREA = 4.0
"""The most that the area of one point counts when a component is turned outward, in medians of all."""
FEWEST_AROUND = 100
"""A component of fewer points is not asked whether it encloses others."""
VOTERS = 32
"""Points of a component that vote on whether it lies inside another."""


@dataclass(frozen=True)
class Neighbourhoods:
    """The M distinct ones of N given points, and the nearest k around each: one search for everything below."""

    x: Floats
    """positions about their mean, in units of `size`, shape (M, 3), float64"""
    size: float
    """[unit of the given positions]"""
    copy_of: Indices
    """which distinct point each given one is, shape (N,)"""
    original: Indices
    """the first given point at each distinct one, shape (M,)"""
    index: Indices
    """neighbours of each distinct point, nearest first, itself not among them, shape (M, k)"""
    reach: Floats
    """distance to the last neighbour [size], shape (M,)"""
    within: Indices
    """number of points that near, itself not among them: k, or more where some were passed over, shape (M,)"""
    spread: Floats
    """weighted covariance of a point and its neighbours [reach²], shape (M, 3, 3)"""


# --- the search


def neighbourhoods(positions: Floats) -> Neighbourhoods:
    """The nearest points around each of the positions (N, 3), of any unit and place; coincident ones count once."""
    x, size = _in_own_units(np.asarray(positions, np.float64))
    original, copy_of = _distinct(x)
    tree = cKDTree(x[original])
    distances, index = _nearest(tree, tree.data, min(NEIGHBOURS, len(original) - 1))
    reach = distances.max(axis=1, initial=0.0)
    within = np.full(len(original), index.shape[1])
    spread = _spread(tree.data, np.arange(len(original)), index, reach)
    near = Neighbourhoods(tree.data, size, copy_of, original, index, reach, within, spread)
    for count in WIDER:
        near = _widened(near, tree, count)
    return near


def _in_own_units(positions: Floats) -> tuple[Floats, float]:
    """Positions about their mean, divided by their size, and the size: no scale, and no place, then costs digits."""
    x = positions - positions.mean(axis=0)
    size = float(np.abs(x).max()) or 1.0
    return x / size, size


def _distinct(x: Floats) -> tuple[Indices, Indices]:
    """The first point (M,) at each place of x (N, 3), and at which of these places each point is, (N,).

    Neighbours in space become neighbours in memory, which makes everything after this faster.
    """
    # Coincident points have the same sum; others hardly ever, and at worst that leaves a copy in.
    order = np.argsort(x[:, 0] + np.sqrt(2) * x[:, 1] + np.sqrt(3) * x[:, 2], kind="stable")
    is_new = np.ones(len(x), bool)
    is_new[1:] = (x[order[1:]] != x[order[:-1]]).any(axis=1)
    original = order[is_new]
    along_tree = cKDTree(x[original]).indices
    rank = np.empty(len(original), np.intp)
    rank[along_tree] = np.arange(len(original))
    copy_of = np.empty(len(x), np.intp)
    copy_of[order] = rank[np.cumsum(is_new) - 1]
    return original[along_tree], copy_of


def _nearest(tree: cKDTree, x: Floats, count: int) -> tuple[Floats, Indices]:
    """Distances to and indices of the nearest `count` points of the tree, (N, count), without x itself."""
    if count < 1:
        return np.empty((len(x), 0)), np.empty((len(x), 0), np.int32)
    distances, index = tree.query(x, k=count + 1, workers=-1)
    return distances[:, 1:], index[:, 1:].astype(np.int32)


def _spread(x: Floats, points: Indices, index: Indices, reach: Floats) -> Floats:
    """Covariance of each of the `points` and its neighbours `index` in units of its reach, (len(points), 3, 3).

    The weight (1 − r²/h²)³ favours the near ones: the far ones may lie past an edge or on the other side of a wall.
    """
    spread = np.empty((len(points), 3, 3))
    scale = 1 / np.where(reach > 0, reach, 1)
    for rows in _slabs(len(points)):
        away = (x[index[rows]] - x[points[rows], None]) * scale[rows, None, None]
        weights = (1 - _dots(away, away) / SUPPORT**2) ** 3
        weighted = away * weights[:, :, None]
        total = weights.sum(axis=1) + 1  # the point itself
        mean = weighted.sum(axis=1) / total[:, None]
        squares = weighted.transpose(0, 2, 1) @ away
        spread[rows] = squares / total[:, None, None] - mean[:, :, None] * mean[:, None, :]
    return spread


def _slabs(count: int) -> Iterator[slice]:
    """All rows, `SLAB` at a time."""
    return (slice(first, first + SLAB) for first in range(0, count, SLAB))


def _widened(near: Neighbourhoods, tree: cKDTree, count: int) -> Neighbourhoods:
    """The same, but where neighbours lie along a line, others chosen from the nearest `count`.

    A scanner may set points so densely along its lines that the nearest say nothing of the surface across.
    """
    lined = np.flatnonzero(_line_like(near.spread))
    if len(lined) == 0 or len(near.x) <= count:
        return near
    distances, candidates = _nearest(tree, near.x[lined], count)
    # Many near ones keep the graph fine; the few far ones rule the covariance.
    step = np.arange(NEIGHBOURS)
    ranks = step + (count - NEIGHBOURS) * step**2 // (NEIGHBOURS - 1) ** 2
    index, reach, within, spread = near.index.copy(), near.reach.copy(), near.within.copy(), near.spread.copy()
    index[lined], reach[lined], within[lined] = candidates[:, ranks], distances[:, -1], count
    spread[lined] = _spread(near.x, lined, index[lined], reach[lined])
    return replace(near, index=index, reach=reach, within=within, spread=spread)


def _line_like(spread: Floats) -> NDArray[np.bool_]:
    """Where the middle eigenvalue of the covariances (M, 3, 3) is next to nothing beside the largest, (M,).

    The sum of the products of pairs of eigenvalues over the square of their sum says so without solving for them.
    """
    trace = np.trace(spread, axis1=1, axis2=2)
    products = (trace**2 - (spread**2).sum(axis=(1, 2))) / 2
    return products < LINE_LIKE * trace**2


# --- what is asked for


def estimate_normals(positions: Floats, near: Neighbourhoods | None = None) -> NDArray[np.float32]:
    """Outward unit normals (N, 3) of the surface that the positions (N, 3) lie on, in any unit and place.

    The direction is that in which a point and its nearest neighbours spread least; `orient_normals` gives the sign.
    """
    near = near or neighbourhoods(positions)
    _, axes = np.linalg.eigh(near.spread)
    return orient_normals(positions, axes[near.copy_of, :, 0], near)


def orient_normals(positions: Floats, normals: Floats, near: Neighbourhoods | None = None) -> NDArray[np.float32]:
    """The unit normals (N, 3) along the same lines, turned to the outside of the solid that the positions enclose.

    Signs are handed on along a minimum spanning tree of the neighbour graph (Hoppe et al. 1992) by mirroring
    (Xie et al. 2003), which also gets around sharp edges and over to the other side of a thin wall or gap. Each
    connected component then encloses a positive volume, or a negative one if it is the wall of a cavity.
    """
    near = near or neighbourhoods(positions)
    given = np.asarray(normals, np.float64)
    own = given[near.original]
    parent = _spanning_tree(near, _edge_costs(near, own))
    agreement, _ = _compare(near.x - near.x[parent], own, own[parent])
    sign, root = _signs_to_root(parent, np.where(agreement < 0, -1.0, 1.0))
    own = own * sign[:, None]
    component = (np.cumsum(parent == np.arange(len(parent))) - 1)[root]
    own = own * _outward(near, own, component)[component, None]
    own = own * _cavity_walls(near.x, own, component)[component, None]
    return _like_their_originals(near, given, own).astype(np.float32)


def areas_of(positions: Floats, near: Neighbourhoods | None = None) -> Floats:
    """The surface area that each of the positions (N, 3) stands for [unit²], (N,): its part of the disc it reaches.

    Coincident points share one area. The sum is that of the surface within a few per cent, less exact where the
    sampling density jumps, and too large along the rim of an open surface.
    """
    near = near or neighbourhoods(positions)
    copies = np.bincount(near.copy_of, minlength=len(near.x))
    return (_areas(near) / copies)[near.copy_of] * near.size**2


def consistency(positions: Floats, normals: Floats, near: Neighbourhoods | None = None) -> float:
    """Share of the neighbouring pairs whose normals (N, 3) agree in sign: 1 for oriented ones, 1/2 for random signs."""
    near = near or neighbourhoods(positions)
    own = np.asarray(normals, np.float64)[near.original]
    agreeing = sum(int((agreement >= 0).sum()) for _, agreement, _ in _compared_with_neighbours(near, own))
    return agreeing / near.index.size if near.index.size else 1.0


# --- signs


def _compare(segments: Floats, a: Floats, b: Floats) -> tuple[Floats, Floats]:
    """How far normals a and b at the ends of segments agree in sign, -1..1, and how steep the segments are, 0..1.

    Agreement is the cosine between one normal and the mirror image of the other in the plane halfway between the two
    points: 1 on a sphere, over an edge if both are as far from it, and on the two sides of a wall if both look outward.
    Steepness is the mean squared cosine between the segment and the normals. Shapes (..., 3) give (...).
    """
    squared_length = _dots(segments, segments)
    a_along, b_along = _dots(a, segments), _dots(b, segments)
    shrink = 1 / np.where(squared_length > 0, squared_length, 1)
    return _dots(a, b) - 2 * a_along * b_along * shrink, (a_along**2 + b_along**2) * shrink / 2


def _dots(a: Floats, b: Floats) -> Floats:
    """Dot products along the last axis."""
    return np.einsum("...i,...i->...", a, b)


def _compared_with_neighbours(near: Neighbourhoods, normals: Floats) -> Iterator[tuple[slice, Floats, Floats]]:
    """Rows, and how far the normals there agree with those of the neighbours and how steep it is to them, (rows, k)."""
    for rows in _slabs(len(near.x)):
        others = near.index[rows]
        yield rows, *_compare(near.x[others] - near.x[rows, None], normals[rows, None], normals[others])


def _edge_costs(near: Neighbourhoods, normals: Floats) -> Floats:
    """What it costs to hand a sign from each point to each of its neighbours, (M, k).

    Cheap where the sign is clear. A steep pair costs too: it may be two noisy points of one sheet, not two sheets.
    """
    costs = np.empty(near.index.shape)
    for rows, agreement, steepness in _compared_with_neighbours(near, normals):
        costs[rows] = np.maximum(1 - agreement**2 + STEEPNESS_COST * steepness, LEAST_COST)
    return costs


def _spanning_tree(near: Neighbourhoods, costs: Floats) -> Indices:
    """The parent of each point in a cheapest tree over its connected component, (M,); a root is its own parent."""
    points, k = near.index.shape
    starts = np.arange(0, points * k + 1, k) if k else np.zeros(points + 1, int)
    graph = csr_array((costs.ravel(), near.index.ravel(), starts), shape=(points, points))
    branches = minimum_spanning_tree(graph).tocoo()
    _, component = connected_components(branches, directed=False)
    _, roots = np.unique(component, return_index=True)
    # One more node joins the roots, so that a single walk reaches every component.
    top = np.full(len(roots), points)
    ends = np.concatenate([branches.row, top]), np.concatenate([branches.col, roots])
    joined = coo_array((np.ones(len(ends[0])), ends), shape=(points + 1, points + 1))
    _, parent = breadth_first_order(joined.tocsr(), points, directed=False)
    parent = parent[:points].astype(np.intp)
    parent[roots] = roots
    return parent


def _signs_to_root(parent: Indices, sign: Floats) -> tuple[Floats, Indices]:
    """The product of the signs (M,) from each point up to its root, and that root, (M,).

    Each round doubles the part of the way that is done.
    """
    while True:
        grandparent = parent[parent]
        if np.array_equal(grandparent, parent):
            return sign, parent
        sign = sign * sign[parent]
        parent = grandparent


def _areas(near: Neighbourhoods) -> Floats:
    """Area that each distinct point stands for [size²], (M,)."""
    return np.pi * near.reach**2 / (near.within + COUNT_ITSELF)


def _outward(near: Neighbourhoods, normals: Floats, component: Indices) -> Floats:
    """-1 for each component with normals that enclose a negative volume, else 1, (C,)."""
    areas = _areas(near)
    # A stray point reaches far, but is not much of a surface.
    weights = np.minimum(areas, LARGEST_AREA * np.median(areas))
    total = np.bincount(component, weights)
    moments = np.stack([np.bincount(component, weights * column) for column in near.x.T], axis=1)
    center = moments / np.where(total > 0, total, 1)[:, None]
    volume = np.bincount(component, weights * _dots(normals, near.x - center[component]))
    return np.where(volume < 0, -1.0, 1.0)


def _cavity_walls(x: Floats, normals: Floats, component: Indices) -> Floats:
    """-1 for each component inside an odd number of others, else 1, (C,); all normals outward."""
    if component.max() == 0:
        return np.ones(1)
    members = np.split(np.argsort(component, kind="stable"), np.cumsum(np.bincount(component))[:-1])
    lower = np.array([x[m].min(axis=0) for m in members])
    upper = np.array([x[m].max(axis=0) for m in members])
    sign = np.ones(len(members))
    for a, outer in enumerate(members):
        if len(outer) < FEWEST_AROUND:
            continue
        boxed = np.flatnonzero((lower > lower[a]).all(axis=1) & (upper < upper[a]).all(axis=1))
        if len(boxed) == 0:
            continue
        tree = cKDTree(x[outer])
        for b in boxed:
            if _is_inside(x[members[b]], tree, normals[outer]):
                sign[b] = -sign[b]
    return sign


def _is_inside(x: Floats, tree: cKDTree, normals: Floats) -> bool:
    """Whether most of the points x (N, 3) lie behind the points of the tree nearest to them, given normals there."""
    probes = x[:: -(-len(x) // VOTERS)]
    _, nearest = tree.query(probes)
    behind = _dots(probes - np.asarray(tree.data)[nearest], normals[nearest]) < 0
    return bool(behind.mean() > 0.5)


def _like_their_originals(near: Neighbourhoods, given: Floats, own: Floats) -> Floats:
    """All given normals (N, 3), signed like the oriented ones (M, 3) of the distinct points they belong to.

    The corners of a mesh with hard edges coincide but have normals of their own, maybe at right angles: the point's
    neighbours, with as much weight together as the first of its normals, then decide.
    """
    oriented = np.empty_like(given)
    oriented[near.original] = own
    is_copy = np.ones(len(given), bool)
    is_copy[near.original] = False
    copies = np.flatnonzero(is_copy)
    at = near.copy_of[copies]
    others = near.index[at]
    votes, _ = _compare(near.x[others] - near.x[at, None], given[copies, None], own[others])
    favour = votes.sum(axis=1) + near.index.shape[1] * _dots(given[copies], own[at])
    oriented[copies] = given[copies] * np.where(favour < 0, -1.0, 1.0)[:, None]
    return oriented
