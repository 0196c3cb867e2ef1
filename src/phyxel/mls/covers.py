"""Covers of nodes that are large enough for shape functions everywhere (physics 1.8)."""

from __future__ import annotations

from contextlib import suppress

import numpy as np
import warp as wp
from numpy.typing import ArrayLike, NDArray

from phyxel.errors import SolidError
from phyxel.mls.shape_functions import TERMS, Basis, ShapeFunctions, positions_of
from phyxel.mls.visibility import Sees

MOST = 1e4
"""cond(A) from which on nodes around a point do not determine a field well."""
GROWTH = 1.15
"""Factor by which a cover grows in one round."""
ROUNDS = 30
"""Rounds before a point is given up: a cover could then be 66 times as large."""
ASKED = 300
"""Most bad points that choose nodes at a time. Their neighbours want the same nodes."""
TIED = 1e-6
"""τ of bodies whose nodes do not span a quadratic basis: a hundredth and less of what tells second derivatives where
nodes do, and enough that small waves of a layer of nodes make no large ones of a field."""
WIDE, FLAT = 2.0, 1e5
"""With covers so many times as wide, and cond(A) above this, nodes lie on a surface of second order, but for a few at
its rim."""


def grown(shapes: ShapeFunctions, points: ArrayLike) -> ShapeFunctions:
    """The same with covers grown until they are well conditioned at points (m, 3) [m]; with terms of second order tied
    if nodes do not span them there, as those on the two faces of a plate, unless there are fewer than terms."""
    where, terms = positions_of(points, "points"), len(TERMS[shapes.basis][0]())
    if shapes.basis == "linear" or len(shapes.nodes) <= terms:
        return shapes.with_covers(_grown(shapes, where, MOST))
    if not _on_a_quadric(where, shapes):
        with suppress(SolidError):
            return shapes.with_covers(_grown(shapes, where, MOST))
    tied = shapes.with_tie(TIED)
    return tied.with_covers(_grown(tied, where, MOST))


def _on_a_quadric(points: NDArray[np.float64], shapes: ShapeFunctions) -> bool:
    """Whether most of the points at which that matters see nodes at which a polynomial of second order is zero, however
    far they look."""
    some = points[:: len(points) // ASKED + 1]
    bad = _ill_conditioned(some, shapes, MOST)
    wider = shapes.with_covers(WIDE * shapes.covers).condition(bad)
    return len(bad) > 0 and bool(np.median(wider) > FLAT)


def grown_covers(
    nodes: ArrayLike,
    covers: ArrayLike,
    points: ArrayLike,
    basis: Basis = "linear",
    most: float = MOST,
    sees: Sees | None = None,
    device: str | wp.Device | None = None,
) -> NDArray[np.float64]:
    """Half covers (n,) [m], the given ones grown where needed, with cond(A) < `most` at every point (m, 3) [m].

    In each round every bad point has the covers of a few nodes grown by 15 %: of the nodes that have little weight
    there as yet the nearest, as many as the basis has terms. Raises `SolidError` where no growth helps.
    """
    return _grown(ShapeFunctions(nodes, covers, basis, sees, device), positions_of(points, "points"), most)


def _grown(shapes: ShapeFunctions, where: NDArray[np.float64], most: float) -> NDArray[np.float64]:
    """See `grown_covers`."""
    given = shapes.covers
    for _ in range(ROUNDS):  # what helps some points may harm others a little: look at all of them again
        bad = _ill_conditioned(where, shapes, most)
        if len(bad) == 0:
            return shapes.covers
        shapes, helped = _grown_for(bad[:: len(bad) // ASKED + 1], shapes, given, most)
        if not helped:
            bad = _ill_conditioned(bad, shapes, most)
            break
    raise SolidError(_hopeless(bad, len(where), shapes.basis, len(shapes.nodes)))


def _ill_conditioned(points: NDArray[np.float64], shapes: ShapeFunctions, most: float) -> NDArray[np.float64]:
    return points[~(shapes.condition(points) < most)]


def _grown_for(
    points: NDArray[np.float64], shapes: ShapeFunctions, given: NDArray[np.float64], most: float
) -> tuple[ShapeFunctions, bool]:
    """The same nodes with covers grown until all these points are well conditioned, and whether that came about."""
    few = len(TERMS[shapes.basis][0]())
    reach = 2.0
    for _ in range(ROUNDS):
        near = shapes.with_covers(reach * shapes.covers).pairs(points)
        chosen, enough = _faint_nodes(shapes, given, points, *near, few)
        covers = shapes.covers.copy()
        covers[chosen] *= GROWTH
        shapes = shapes.with_covers(covers)
        points = _ill_conditioned(points, shapes, most)
        if len(points) == 0:
            return shapes, True
        if not enough:
            reach *= 2
    return shapes, False


def _faint_nodes(
    shapes: ShapeFunctions,
    given: NDArray[np.float64],
    points: NDArray[np.float64],
    owner: NDArray[np.int32],
    index: NDArray[np.int32],
    few: int,
) -> tuple[NDArray[np.int32], bool]:
    """Of the nodes (pairs `owner`, `index`) from which a point lies beyond half their cover the `few` nearest, in units
    of the covers as given: in units of grown ones, the same would be chosen again and again. And whether every point
    found that many."""
    distance = np.abs(points[owner] - shapes.nodes[index]).max(axis=1)
    faint = distance > 0.5 * shapes.covers[index]
    owner, index, distance = owner[faint], index[faint], distance[faint]
    order = np.lexsort((distance / given[index], owner))
    count = np.bincount(owner, minlength=len(points))
    rank = np.arange(len(owner)) - np.repeat(np.cumsum(count) - count, count)
    return np.unique(index[order][rank < few]), bool((count >= few).all())


def _hopeless(bad: NDArray[np.float64], total: int, basis: Basis, count: int) -> str:
    lower, upper = (f"({x:.4g}, {y:.4g}, {z:.4g})" for x, y, z in (bad.min(axis=0), bad.max(axis=0)))
    finer = 2**3 * count  # half as far apart
    simpler = "" if basis == "linear" else ', or basis = "linear"'
    return (
        f"{len(bad)} of {total} points, between {lower} and {upper}, see too few nodes for a {basis} basis however far "
        f"these reach, or nodes in one plane; give more (nodes = {finer}){simpler}"
    )
