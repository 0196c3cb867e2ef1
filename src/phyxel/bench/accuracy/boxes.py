"""Boxes from the origin on, as meshes and as bare scans, turned or not, and bodies of them."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.transform import Rotation

from phyxel.body import Body
from phyxel.models.kind import KINDS
from phyxel.points.cloud import PointCloud

Floats = NDArray[np.float64]
Sides = tuple[float, float, float]
"""along x, y and z [m]"""

AS_IT_IS = np.eye(3)
TURNED: Floats = Rotation.from_rotvec(np.radians(30) * np.array([1, 1, 0.5]) / 1.5).as_matrix()
"""by 30° about (1, 1, ½), so that no face is along an octant"""
QUADS = np.array([[0, 1, 3, 2], [4, 6, 7, 5], [0, 4, 5, 1], [2, 3, 7, 6], [0, 2, 6, 4], [1, 5, 7, 3]])
SCANNED = 6000
"""points of a scan"""


def box_mesh(sides: Sides, turn: Floats = AS_IT_IS) -> PointCloud:
    """Eight corners and twelve triangles."""
    corners = np.indices((2, 2, 2)).reshape(3, -1).T * np.array(sides)
    faces = np.concatenate([QUADS[:, [0, 1, 2]], QUADS[:, [0, 2, 3]]])
    return PointCloud(corners @ turn.T, faces=faces, name="box")


def box_scan(sides: Sides, turn: Floats = AS_IT_IS, points: int = SCANNED) -> PointCloud:
    """Points alone, at random on the faces, as many on each as its area says: no triangles, no normals."""
    random, size = np.random.default_rng(0), np.array(sides)
    areas = np.prod(size) / size
    axis = random.choice(3, points, p=areas / areas.sum())
    X = random.random((points, 3))
    X[np.arange(points), axis] = random.integers(2, size=points)
    return PointCloud((X * size) @ turn.T, name="box")


def end_nodes(body: Body, turn: Floats = AS_IT_IS) -> NDArray[np.intp]:
    """Nodes of the face x = 0: those on it, or those of the first layer where nodes lie inside."""
    inside = KINDS[body.model].scheme(body.scheme or None).nodes == "inside"
    return np.flatnonzero((body.reference @ turn)[:, 0] < (1.0 if inside else 0.25) * body.unit)
