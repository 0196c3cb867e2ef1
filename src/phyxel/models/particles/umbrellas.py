"""Triangles of a bare cloud (physics 13.2): those about a point are its Delaunay triangles among its nearest, laid
flat; a triangle is one of the surface if all three of its corners find it."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import cKDTree

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

NEAREST = 14
"""Neighbours among which a point looks for its triangles."""
WIDEST_CIRCLE = 1.5
"""Radius about the corners of a triangle, over the distance of the fourth-nearest neighbour of each: beyond is a gap,
or the sea before a rim. A square mesh has 0.71."""
SHEARED = 0.1
"""Strain with which points are looked at: squares of a mesh whose points are off by up to 5 % of their spacing are then
all parted along the same diagonal, and even triangles stay what they are. If squares were parted by chance, strips of
ten rows would bend by some 4 % more."""
TOGETHER = 4096
"""Points that are looked at in one go."""


def umbrellas(X: Floats) -> Ints:
    """Triangles of a surface that points X (n, 3) are on, shape (m, 3); few or none if they are on no surface."""
    number = min(NEAREST, len(X) - 1)
    if number < 4:
        return np.zeros((0, 3), np.int64)
    far, near = cKDTree(X).query(X, number + 1)
    reach = np.maximum(far[:, 4], np.finfo(float).tiny)
    strained = X + X @ _shear(X, near)
    found = [_about(strained, near, reach, np.arange(k, min(k + TOGETHER, len(X)))) for k in range(0, len(X), TOGETHER)]
    faces, times = np.unique(np.sort(np.concatenate(found), axis=1), axis=0, return_counts=True)
    return faces[times == 3]


def _shear(X: Floats, near: Ints) -> Floats:
    """The strain that shears squares with a side from each point to its nearest most: it makes Σ (a·S b)² the largest
    for a along that side and b across it in the surface. Shape (3, 3)."""
    ways = X[near[:, 1:]] - X[:, None]
    _, _, axes = np.linalg.svd(ways, full_matrices=False)
    a = ways[:, 0]
    b = np.cross(axes[:, 2], a)
    pairs = (a[:, :, None] * b[:, None, :] + b[:, :, None] * a[:, None, :]).reshape(-1, 9)
    _, strains = np.linalg.eigh(pairs.T @ pairs)
    most = strains[:, -1].reshape(3, 3)
    return SHEARED * most / max(np.linalg.norm(most, 2), np.finfo(float).tiny)


def _about(X: Floats, near: Ints, reach: Floats, who: Ints) -> Ints:
    """The triangles about some points, shape (m, 3)."""
    others = near[who, 1:]
    ways = X[others] - X[who][:, None]
    _, _, axes = np.linalg.svd(ways, full_matrices=False)
    x, y = np.moveaxis(np.einsum("nka,nba->nkb", ways, axes[:, :2]), 2, 0)
    square = x**2 + y**2
    one, two = np.triu_indices(others.shape[1], 1)
    double = 2 * (x[:, one] * y[:, two] - x[:, two] * y[:, one])
    with np.errstate(divide="ignore", invalid="ignore"):
        # The middle of the circle through the point and two others, from the point.
        cx = (y[:, two] * square[:, one] - y[:, one] * square[:, two]) / double
        cy = (x[:, one] * square[:, two] - x[:, two] * square[:, one]) / double
        round_ = np.isfinite(cx) & (np.hypot(cx, cy) < WIDEST_CIRCLE * reach[who][:, None])
    point, pair = np.nonzero(round_)
    # Another is in the circle if it is nearer to its middle than the point is: |w|² < 2 c·w.
    inside = square[point] < 2 * (cx[point, pair][:, None] * x[point] + cy[point, pair][:, None] * y[point])
    rows = np.arange(len(point))
    inside[rows, one[pair]] = inside[rows, two[pair]] = False
    empty = ~inside.any(axis=1)
    point, pair = point[empty], pair[empty]
    return np.stack([who[point], others[point, one[pair]], others[point, two[pair]]], axis=1)
