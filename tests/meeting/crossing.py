"""Whether surfaces cross themselves or each other, by looking at every edge and every triangle: it shares no code with
what keeps them apart. And obstacles to meet."""

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import cKDTree

Floats = NDArray[np.float64]
Ints = NDArray[np.integer]

CHUNK = 200
FLAT = 1e-9
"""Sine of the angle between an edge and a triangle below which they are in one plane."""


def crossings(x: Floats, triangles: Ints) -> int:
    """Pairs (edge, triangle) without a common point of which the edge goes through the triangle (Möller and Trumbore
    1997), of points x (n, 3)."""
    edges = np.unique(
        np.sort(np.concatenate([triangles[:, [0, 1]], triangles[:, [1, 2]], triangles[:, [2, 0]]])), axis=0
    )
    a, b, c = (x[triangles[:, k]] for k in range(3))
    found = 0
    for k in range(0, len(edges), CHUNK):
        ends = edges[k : k + CHUNK]
        start, way = x[ends[:, 0]][:, None], (x[ends[:, 1]] - x[ends[:, 0]])[:, None]
        h = np.cross(way, c - a)
        det = ((b - a) * h).sum(axis=2)
        with np.errstate(divide="ignore", invalid="ignore"):
            u = ((start - a) * h).sum(axis=2) / det
            q = np.cross(start - a, b - a)
            v, t = (way * q).sum(axis=2) / det, ((c - a) * q).sum(axis=2) / det
            through = (u >= 0) & (v >= 0) & (u + v <= 1) & (t >= 0) & (t <= 1)
            # In one plane but for rounding they touch in no way that matters.
            through &= np.abs(det) > FLAT * np.linalg.norm(way, axis=2) * np.linalg.norm(np.cross(b - a, c - a), axis=1)
        shared = (ends[:, None, :, None] == triangles[None, :, None, :]).any(axis=(2, 3))
        found += int((through & ~shared).sum())
    return found


def together(*surfaces: tuple[Floats, Ints]) -> tuple[Floats, Ints]:
    """Points and triangles of several surfaces (x, triangles) as one."""
    starts = np.cumsum([0, *(len(x) for x, _ in surfaces)])
    return (
        np.concatenate([x for x, _ in surfaces]),
        np.concatenate([triangles + start for (_, triangles), start in zip(surfaces, starts, strict=False)]),
    )


def ball(radius: float, halvings: int = 1) -> tuple[Floats, Ints]:
    """An octahedron, its faces cut in four so many times, its corners on a sphere: (points, triangles)."""
    x = np.array([[1, 0, 0], [-1, 0, 0], [0, 1, 0], [0, -1, 0], [0, 0, 1], [0, 0, -1.0]])
    triangles = np.array([[0, 2, 4], [2, 1, 4], [1, 3, 4], [3, 0, 4], [2, 0, 5], [1, 2, 5], [3, 1, 5], [0, 3, 5]])
    for _ in range(halvings):
        sides = np.sort(np.stack([triangles, np.roll(triangles, -1, axis=1)], axis=2), axis=2).reshape(-1, 2)
        edges, which = np.unique(sides, axis=0, return_inverse=True)
        middle = len(x) + which.reshape(-1, 3)
        x = np.concatenate([x, x[edges].mean(axis=1)])
        x /= np.linalg.norm(x, axis=1)[:, None]
        a, b, c = triangles.T
        ab, bc, ca = middle.T
        triangles = np.concatenate([np.stack(t, 1) for t in ((a, ab, ca), (b, bc, ab), (c, ca, bc), (ab, bc, ca))])
    return radius * x, triangles.astype(np.int32)


def crossings_between(x: Floats, triangles: Ints, y: Floats, others: Ints) -> int:
    """Pairs of an edge of one surface, of points x (n, 3), and a triangle of the other, of points y (m, 3), of which
    the edge goes through the triangle."""
    return _through(x, triangles, y, others) + _through(y, others, x, triangles)


def _through(x: Floats, triangles: Ints, y: Floats, others: Ints) -> int:
    sides = np.concatenate([triangles[:, [0, 1]], triangles[:, [1, 2]], triangles[:, [2, 0]]])
    start, end = (x[side] for side in np.unique(np.sort(sides), axis=0).T)
    middle = y[others].mean(axis=1)
    around = np.linalg.norm(y[others] - middle[:, None], axis=2).max() + 0.5 * np.linalg.norm(end - start, axis=1).max()
    near = cKDTree(middle).query_ball_point(0.5 * (start + end), around)
    edge = np.repeat(np.arange(len(start)), [len(found) for found in near])
    triangle = np.concatenate([np.zeros(0), *near]).astype(int)
    a, b, c = (y[others[triangle, k]] for k in range(3))
    start, way = start[edge], (end - start)[edge]
    h = np.cross(way, c - a)
    with np.errstate(divide="ignore", invalid="ignore"):
        det = ((b - a) * h).sum(axis=1)
        u = ((start - a) * h).sum(axis=1) / det
        q = np.cross(start - a, b - a)
        v, t = (way * q).sum(axis=1) / det, ((c - a) * q).sum(axis=1) / det
    return int(((u >= 0) & (v >= 0) & (u + v <= 1) & (t >= 0) & (t <= 1)).sum())
