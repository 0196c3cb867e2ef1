"""What of each body others can touch."""

from __future__ import annotations

import itertools

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import cKDTree

from phyxel.body import Body
from phyxel.meeting.outline import POINTS, Outline
from phyxel.meeting.skin import Skin
from phyxel.meeting.solid_distance import SolidDistance
from phyxel.models.particles.umbrellas import umbrellas
from phyxel.points.sampling import scattered

Floats = NDArray[np.float64]

_ways = np.array([way for way in itertools.product((-1, 0, 1), repeat=3) if any(way)], np.float64)
AROUND: Floats = _ways / np.linalg.norm(_ways, axis=1, keepdims=True)
"""Directions all around, shape (26, 3)."""
FEW = 4
"""Nodes below which a piece is met as a ball: faces of the smallest crumbs are not worth finding."""


def outline_of(body: Body) -> Outline:
    """Places of a body's surface, and how far others are from its solid. A piece is met by the planes of its surfels:
    those of crack faces are no part of the solid it was born with."""
    none = np.zeros((0, 3))
    if len(body.birth) < FEW:
        radius = np.cbrt(0.75 / np.pi * body.space.weights.sum())
        return Outline(body.space.nodes[0] + radius * AROUND, AROUND, None, none)
    shape = body.surfels.carried.shape
    normals = np.cross(shape.axis_a, shape.axis_b)
    normals = normals / np.linalg.norm(normals, axis=1)[:, None]
    whole = body.remnant is None
    corners = getattr(body.space, "corners", none)
    corners = corners[scattered(corners, POINTS, POINTS)[0]]
    if not whole:
        return Outline(shape.points, normals, None, corners)
    measure = _measure(body)
    between = _between(body, shape.points)
    positions, normals = np.concatenate([shape.points, between]), np.concatenate([normals, measure(between)[1]])
    return Outline(positions, normals, measure, corners)


def skin_of(body: Body) -> Skin:
    """What of a particle surface others can touch."""
    sheet = body.sheet
    assert sheet is not None
    faces = umbrellas(sheet.X) if sheet.faces is None else sheet.faces
    return Skin.of(body.unit * sheet.X, faces, body.mixture.number("thickness"), body.meets_itself)


def _between(body: Body, points: NDArray[np.floating]) -> Floats:
    """Nodes on the surface (k, 3) that are farther than a spacing from all its points: a mesh may have none but its
    corners."""
    nodes = body.birth_places[body.outermost]
    return nodes[cKDTree(points).query(nodes)[0] > POINTS]


def _measure(body: Body) -> SolidDistance:
    """How far places are from the solid of a body, in its units."""
    shape = body.shape
    assert shape.made.solid is not None
    solid, placement, born = shape.made.solid(), shape.placement, shape.born
    # One and the same function for all solids of a built-in shape: they are measured together.
    one = None if solid.made_from != "shape" else solid.skin.shape
    return SolidDistance(
        solid.distance if one is None else one.distance, shape.in_cloud, placement.scale / born.unit,
        placement.unplaced(born.centre[None])[0], born.unit / placement.scale * placement.rotation,
    )  # fmt: skip
