"""The surface of a crack as triangles (physics 8.10): ψ1 = 0 by marching tetrahedra, clipped to ψ2 < 0."""

from __future__ import annotations

from itertools import permutations

import numpy as np
from numpy.typing import NDArray

from phyxel.cracks.grid import Floats, LevelGrid

CORNERS = np.array([[(c >> 2) & 1, (c >> 1) & 1, c & 1] for c in range(8)])
"""of a cell, shape (8, 3)"""


TETRAHEDRA = np.array([np.cumsum([0, *order]) for order in permutations((4, 2, 1))])
"""Corners of the six tetrahedra of Kuhn in a cell, shape (6, 4): from its first corner to its last, one axis after the
other."""


def sheet(grid: LevelGrid, psi1: Floats, psi2: Floats, cut: NDArray[np.int8]) -> Floats:
    """Triangles (k, 3, 3) in the cells that are `cut`; their normals look to where ψ1 > 0."""
    cells = np.argwhere(cut)
    corners = cells[:, None] + CORNERS
    i, j, k = np.moveaxis(corners, -1, 0)
    places = (grid.origin + grid.spacing * corners)[:, TETRAHEDRA].reshape(-1, 4, 3)
    # Places carry ψ2 as a fourth coordinate: it is linear in a tetrahedron, as they are.
    behind = psi2[i, j, k][:, TETRAHEDRA].reshape(-1, 4, 1)
    triangles = _zero_of(np.concatenate([places, behind], axis=2), psi1[i, j, k][:, TETRAHEDRA].reshape(-1, 4))
    return _clipped(triangles)[..., :3]


def _zero_of(places: Floats, values: Floats) -> Floats:
    """Triangles (k, 3, d) in tetrahedra (m, 4, d) where values (m, 4) are zero; their normals look to larger values."""
    above = values >= 0
    count = above.sum(axis=1)
    order = np.argsort(~above, axis=1, kind="stable")  # those above first: then three cases are left
    places = np.take_along_axis(places, order[..., None], axis=1)
    values = np.take_along_axis(values, order, axis=1)
    upward = places[:, 0, :3] - places[:, 3, :3]

    def crossing(rows: NDArray[np.bool_], one: int, other: int) -> Floats:
        p, q = values[rows, one][:, None], values[rows, other][:, None]
        return (p * places[rows, other] - q * places[rows, one]) / (p - q)

    tip, pair, three = count == 1, count == 2, count == 3
    first = np.stack([crossing(tip, 0, 1), crossing(tip, 0, 2), crossing(tip, 0, 3)], axis=1)
    quad = [crossing(pair, 0, 2), crossing(pair, 1, 2), crossing(pair, 1, 3), crossing(pair, 0, 3)]
    halves = [np.stack([quad[0], quad[m], quad[m + 1]], axis=1) for m in (1, 2)]
    last = np.stack([crossing(three, 0, 3), crossing(three, 1, 3), crossing(three, 2, 3)], axis=1)
    triangles = np.concatenate([first, *halves, last])
    upward = np.concatenate([upward[tip], upward[pair], upward[pair], upward[three]])
    edges = triangles[:, 1:, :3] - triangles[:, :1, :3]
    downward = np.sum(np.cross(edges[:, 0], edges[:, 1]) * upward, axis=1) < 0
    triangles[downward] = triangles[downward][:, ::-1]
    return triangles


def _clipped(triangles: Floats) -> Floats:
    """The parts of triangles (k, 3, 4) whose last coordinate is below 0, turned as they are."""
    inside = triangles[..., 3] < 0
    count = inside.sum(axis=1)
    # Turn each one until its odd corner is the first.
    odd = np.where(count == 1, np.argmax(inside, axis=1), np.argmin(inside, axis=1))
    turned = np.take_along_axis(triangles, ((odd[:, None] + np.arange(3)) % 3)[..., None], axis=1)

    def crossing(rows: NDArray[np.bool_], one: int, other: int) -> Floats:
        p, q = turned[rows, one], turned[rows, other]
        return (p[:, 3:] * q - q[:, 3:] * p) / (p[:, 3:] - q[:, 3:])

    one, two = count == 1, count == 2
    small = np.stack([turned[one, 0], crossing(one, 0, 1), crossing(one, 0, 2)], axis=1)
    start, end = crossing(two, 0, 1), crossing(two, 0, 2)
    first = np.stack([start, turned[two, 1], turned[two, 2]], axis=1)
    second = np.stack([start, turned[two, 2], end], axis=1)
    return np.concatenate([triangles[count == 3], small, first, second])
