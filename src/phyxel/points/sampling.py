"""Evenly spaced points on the surface of a shape."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from scipy.spatial import cKDTree

from phyxel.errors import PhyxelError
from phyxel.points import FEWEST_POINTS
from phyxel.points.cloud import BuiltInShape, Floats, Indices, PointCloud

COARSE_CELLS = 32
"""Cells along the longest side of the first grid."""
FINEST_CELL = 1 / 96
"""Cells are refined at least this far, in sizes of the shape, so that the band is thinner than the parts of a face."""
OVERSAMPLING = 1.5
THINNING_ROUNDS = 3
SWEEPS = 4
SWEEPS_PER_SEARCH = 2
"""Points move so little in a sweep that their neighbours serve for the next one too."""
NEIGHBOURS = 6
REPULSION_RADIUS = 1.25
"""Within which points repel each other, in mean spacings."""
REPULSION_STEP = 0.3
"""How far a point moves for it, in mean spacings."""
SAME_FACE = 0.9
"""Cosine below which the new normal says that a point went over an edge."""
OPPOSITE_SIDE = -0.3
"""Cosine below which a neighbour lies on the other side of a thin wall and does not push."""
TOLERANCE = 1e-12
"""Distance from the surface, in sizes of the shape, at which a point has arrived."""
MOST_ATTEMPTS = 40
TETRAHEDRON = np.array([[1, 1, 1], [1, -1, -1], [-1, 1, -1], [-1, -1, 1]], np.float64)
HALF_DIAGONAL = np.sqrt(3) / 2
"""Of a cube with edge 1."""
CORNERS = np.array(list(np.ndindex(2, 2, 2)), np.float64) - 0.5


@lru_cache(maxsize=4)  # worlds are built again and again of the same few shapes
def sample_shape(shape: BuiltInShape, points: int, seed: int = 1) -> PointCloud:
    """`points` points on the surface of `shape`, evenly spaced, with exact normals and the colours of the shape.

    Points drawn uniformly from a thin band inside the surface are thinned where they crowd, projected onto the surface
    and pushed apart along it. The same seed gives the same points.
    """
    if points < FEWEST_POINTS:
        raise PhyxelError(f"{shape.name}: {points} points asked for; a surface needs at least {FEWEST_POINTS}")
    rng = np.random.default_rng(seed)
    band = draw_in_band(shape, int(OVERSAMPLING * points) + 8, rng)
    x, normals = project(shape, thin(band, points))
    for _ in range(SWEEPS // SWEEPS_PER_SEARCH):
        neighbours, spacing = search(x)
        for _ in range(SWEEPS_PER_SEARCH):
            x, normals = push_apart(shape, x, normals, neighbours, spacing)
    x = settle(shape, x, normals)
    normals, colors = unit(shape.gradient(x)), np.clip(shape.color(x), 0, 1)
    return PointCloud(x, normals.astype(np.float32), colors.astype(np.float32), name=shape.name, shape=shape)


def draw_in_band(shape: BuiltInShape, count: int, rng: np.random.Generator) -> Floats:
    """`count` points uniform in a band just inside the surface, (count, 3).

    Inside, because from there the points of a box fall onto its faces and none onto its edges.
    """
    cells, edge, width = surface_cells(shape, count)
    found: list[Floats] = []
    found_in: list[Indices] = []
    missing = count
    while missing > 0:
        chosen = rng.integers(len(cells), size=4 * missing + 64)
        x = cells[chosen] + edge * (rng.random((len(chosen), 3)) - 0.5)
        d = shape.distance(x)
        inside = np.flatnonzero((d <= 0) & (d > -width))[:missing]
        found.append(x[inside])
        found_in.append(chosen[inside])
        missing -= len(inside)
    # Neighbours in space become neighbours in memory, which every search after this is faster for.
    return np.concatenate(found)[np.argsort(np.concatenate(found_in), kind="stable")]


def surface_cells(shape: BuiltInShape, count: int) -> tuple[Floats, float, float]:
    """Centres (M, 3) and edge [m] of cubes that cover the surface, and the width [m] of the band to draw from.

    A coarse grid is refined where it meets the surface until its cells are near the spacing of `count` points.
    """
    lower, upper = np.array(shape.lower), np.array(shape.upper)
    size = float((upper - lower).max())
    edge = size / COARSE_CELLS
    along = [np.arange(a + edge / 2, b + edge, edge) for a, b in zip(lower - edge / 2, upper, strict=True)]
    cells = np.stack(np.meshgrid(*along, indexing="ij"), axis=-1).reshape(-1, 3)
    # A generous reach: far from the surface the distance is only a rough one.
    cells = near_surface(shape, cells, 2 * HALF_DIAGONAL * edge)
    while True:
        # Cells lie about three deep across the surface, so that its area is near len(cells) edge² / 3.
        spacing = float(np.sqrt(len(cells) * edge**2 / 3 / count))
        if edge <= 2 * spacing and edge <= FINEST_CELL * size:
            return cells, edge, min(edge, spacing)
        edge /= 2
        cells = (cells[:, None] + edge * CORNERS).reshape(-1, 3)
        cells = near_surface(shape, cells, 1.3 * HALF_DIAGONAL * edge)


def near_surface(shape: BuiltInShape, x: Floats, reach: float) -> Floats:
    """Those of the points x (N, 3) that lie within `reach` metres of the surface."""
    return x[np.abs(shape.distance(x)) < reach]


def thin(x: Floats, count: int) -> Floats:
    """`count` of the points x (N, 3): in a few rounds, of each closest pair one point goes."""
    for rounds_left in range(THINNING_ROUNDS, 0, -1):
        surplus = len(x) - count
        gap, other = (np.asarray(found)[:, 1] for found in cKDTree(x).query(x, k=2, workers=-1))
        index = np.arange(len(x))
        spared = (other[other] == index) & (index < other)
        crowded = np.argsort(np.where(spared, np.inf, gap), kind="stable")
        x = np.delete(x, crowded[: -(-surplus // rounds_left)], axis=0)
    return x


def search(x: Floats) -> tuple[Indices, float]:
    """Nearest neighbours (N, k) of the points x (N, 3), and their mean distance [m]."""
    k = min(NEIGHBOURS, len(x) - 1)
    distances, neighbours = (np.asarray(found)[:, 1:] for found in cKDTree(x).query(x, k=k + 1, workers=-1))
    return neighbours, float(distances.mean())


def push_apart(
    shape: BuiltInShape, x: Floats, normals: Floats, neighbours: Indices, spacing: float
) -> tuple[Floats, Floats]:
    """Move each point away from its neighbours along the surface; points and normals after it, (N, 3) each."""
    push = np.zeros_like(x)
    for other in neighbours.T:
        away = x - x[other]
        distance = np.linalg.norm(away, axis=1)
        strength = np.maximum(1 - distance / (REPULSION_RADIUS * spacing), 0) / (distance + 1e-9 * spacing)
        same_wall = np.einsum("ij,ij->i", normals, normals[other]) > OPPOSITE_SIDE
        push += away * (strength * same_wall)[:, None]
    push -= normals * np.einsum("ij,ij->i", push, normals)[:, None]
    moved, new_normals = project(shape, x + REPULSION_STEP * spacing * push)
    kept = (np.einsum("ij,ij->i", normals, new_normals) > SAME_FACE)[:, None]
    return np.where(kept, moved, x), np.where(kept, new_normals, normals)


def project(shape: BuiltInShape, x: Floats) -> tuple[Floats, Floats]:
    """One Newton step onto the surface, and the unit normals there, (N, 3) each.

    Four evaluations at the corners of a small tetrahedron give value and gradient at once.
    """
    step = 1e-5 * float(np.max(np.subtract(shape.upper, shape.lower)))
    corners = [shape.distance(x + step * corner) for corner in TETRAHEDRON]
    gradient = np.stack(corners, axis=1) @ TETRAHEDRON / (4 * step)
    normals = unit(gradient)
    slope = np.maximum(np.linalg.norm(gradient, axis=1), 0.5)
    return x - normals * (sum(corners) / (4 * slope))[:, None], normals


def settle(shape: BuiltInShape, x: Floats, normals: Floats) -> Floats:
    """Points brought onto the surface to rounding: along their normals, then the few that need it along new ones."""
    x, toward = x.copy(), normals.copy()
    tolerance = TOLERANCE * float(np.max(np.subtract(shape.upper, shape.lower)))
    adrift = np.arange(len(x))
    for attempt in range(MOST_ATTEMPTS):
        d = shape.distance(x[adrift])
        off = np.abs(d) > tolerance
        adrift, d = adrift[off], d[off]
        if len(adrift) == 0:
            break
        if attempt > 2:
            toward[adrift] = project(shape, x[adrift])[1]
        x[adrift] -= toward[adrift] * d[:, None]
    return x


def scattered(positions: Floats, apart: float, closest: float) -> tuple[Indices, int]:
    """Some of the positions (m, d), `closest` apart, the farthest from those before first; and how many of them are
    `apart`."""
    cells = np.floor(positions / (0.5 * closest)).astype(np.int64)
    few = np.sort(np.unique(cells, axis=0, return_index=True)[1])
    x, chosen, points = positions[few], [], 0
    if not len(x):
        return few, 0
    distance = np.full(len(x), np.inf)
    k = int(np.argmax(np.square(x - x.mean(axis=0)).sum(axis=1)))
    while distance[k] > closest**2:
        points += bool(distance[k] > apart**2)
        chosen.append(k)
        distance = np.minimum(distance, np.square(x - x[k]).sum(axis=1))
        k = int(np.argmax(distance))
    return few[chosen], points


def unit(vectors: Floats) -> Floats:
    """Rows of an (N, 3) array at length 1."""
    return vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-12)
