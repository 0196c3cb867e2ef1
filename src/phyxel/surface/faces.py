"""The faces of cracks: discs spread evenly over ψ1 = 0 where ψ2 < 0, inside the solid (G04 §4.3, physics 8.10).

Where they lie depends on ψ1 around them alone, so that a crack that grows on keeps the faces it has. Columns of a fixed
hexagonal lattice are let down on the crack along whichever of thirteen directions is nearest to its normal, never more
than 27° away; their round cross-sections, seen along the column on the crack, cover it without a gap.
"""

from __future__ import annotations

import itertools

import numpy as np
from numpy.typing import NDArray

from phyxel.cracks.crack import Crack
from phyxel.rotation import tangents
from phyxel.surface.clipping import Ellipses, Field, within
from phyxel.surface.discs import OVERLAP

Floats = NDArray[np.float64]

WAYS = np.array([way for way in itertools.product((-1, 0, 1), repeat=3) if way > (0, 0, 0)], float)
WAYS /= np.linalg.norm(WAYS, axis=1, keepdims=True)
"""Directions of columns, shape (13, 3)."""
NEARLY = 0.985
"""Columns of other directions that are nearly as near count too: where two lattices meet there is no gap."""
STEEPEST = 0.8
"""Cosine between a triangle and columns that may meet ψ1 = 0 near it."""
SETTLED = 8
"""How often a place is brought closer to ψ1 = 0."""
HIGH = np.sqrt(0.75)
"""Distance of rows of a hexagonal lattice over that of its points."""
SEAM = 1e-9
"""How far beside a triangle a column may come down, over its size: rounding must not leave a gap."""
ON = 1e-3
"""How far from ψ1 = 0 a place on it may be, over the spacing."""


def face_of(crack: Crack, inside: Field, spacing: float) -> tuple[Ellipses, Floats]:
    """Discs about `spacing` apart that cover a crack where `inside` is positive, and unit ∇ψ1 at each, (m, 3)."""
    triangles = np.asarray(crack.sheet(), np.float64).reshape(-1, 3, 3)
    if len(triangles):
        middle = triangles.mean(axis=1)
        size = np.linalg.norm(triangles - middle[:, None], axis=2).max(axis=1)
        triangles = triangles[inside(middle) > -size - OVERLAP * spacing]
    found = [discs_along(crack, triangles, way, spacing) for way in WAYS] if len(triangles) else []
    if not found:
        none = np.zeros((0, 3))
        return Ellipses(none, none, none, np.zeros(0, np.int64)), none
    whole = Ellipses.joined(*found)
    whole = whole._replace(owner=np.arange(len(whole.points)))
    normals = crack.normals(whole.points)
    open_part = within(within(whole, lambda x: -crack.values(x)[1]), inside)
    return open_part, normals[open_part.owner]


def discs_along(crack: Crack, triangles: Floats, way: Floats, spacing: float) -> Ellipses:
    """Discs where columns along a unit vector meet triangles (k, 3, 3) that face it, brought onto ψ1 = 0."""
    e, f = (axis[0] for axis in tangents(way[None]))
    across = np.cross(triangles[:, 1] - triangles[:, 0], triangles[:, 2] - triangles[:, 0])
    facing = np.abs(across @ way) > STEEPEST * np.linalg.norm(across, axis=1)
    X = met(triangles[facing], np.stack([e, f, way]), spacing)
    for _ in range(SETTLED):
        n = crack.normals(X)
        X = X - (crack.values(X)[0] / np.where(np.abs(n @ way) > 0.5, n @ way, np.inf))[:, None] * way
    n = crack.normals(X)
    fits = (np.abs(n @ way) >= NEARLY * np.abs(n @ WAYS.T).max(axis=1)) & (np.abs(crack.values(X)[0]) < ON * spacing)
    X, n = X[fits], n[fits]
    # e and f seen along the column on the plane of n, turned so that a × b looks along n.
    axis_a, axis_b = (OVERLAP * spacing * (axis - np.outer((n @ axis) / (n @ way), way)) for axis in (e, f))
    axis_b *= np.sign(n @ way)[:, None]
    return Ellipses(X, axis_a, axis_b, np.zeros(len(X), np.int64))


def met(triangles: Floats, frame: Floats, spacing: float) -> Floats:
    """Where columns of a hexagonal lattice, along the third of three unit vectors, meet triangles (k, 3, 3), each place
    once, (m, 3)."""
    corners = triangles @ frame.T
    which, row, column = columns_near(corners[..., :2], spacing)
    at = np.stack([spacing * (column + 0.5 * (row % 2)), HIGH * spacing * row], axis=1)
    first, second, third = corners[which].transpose(1, 0, 2)
    one, two = second - first, third - first
    area = cross(one, two)
    area[area == 0] = np.inf
    shares = np.stack([cross(at - first[:, :2], two), cross(one, at - first[:, :2])], axis=1) / area[:, None]
    height = first[:, 2] + shares[:, 0] * one[:, 2] + shares[:, 1] * two[:, 2]
    hit = (shares >= -SEAM).all(axis=1) & (shares.sum(axis=1) <= 1 + SEAM)
    # A column that comes down on the edge of two triangles meets one surface.
    keys = np.stack([row, column, np.rint(height / spacing).astype(np.int64)], axis=1)[hit]
    _, once = np.unique(keys, axis=0, return_index=True)
    return np.column_stack([at, height])[hit][once] @ frame


def cross(one: Floats, other: Floats) -> Floats:
    """The third component of the cross products of vectors (n, 2 or 3), (n,)."""
    return one[:, 0] * other[:, 1] - one[:, 1] * other[:, 0]


def columns_near(corners: Floats, spacing: float) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Triangles (k, 3, 2), and the rows and columns of the lattice in the boxes around them: pairs, each (p,)."""
    lower, upper = corners.min(axis=1) / spacing, corners.max(axis=1) / spacing
    row, end_row = np.ceil(lower[:, 1] / HIGH).astype(np.int64), np.floor(upper[:, 1] / HIGH).astype(np.int64) + 1
    column, end_column = np.floor(lower[:, 0]).astype(np.int64), np.floor(upper[:, 0]).astype(np.int64) + 1
    wide = end_column - column
    count = (end_row - row) * wide
    which = np.repeat(np.arange(len(corners)), count)
    number = np.arange(len(which)) - np.repeat(np.cumsum(count) - count, count)
    return which, row[which] + number // wide[which], column[which] + number % wide[which]
