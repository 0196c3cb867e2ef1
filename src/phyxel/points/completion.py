"""What a file leaves out of a cloud: outward faces, unit normals, the mesh they belong to."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from phyxel.points.cloud import Floats, Indices, Mesh, PointCloud
from phyxel.points.meshfiles import sum_by_index
from phyxel.points.normals import orient_normals

HALF_SIZE = 0.5
"""how far from the middle of a cloud its inside may reach, in units of its size"""
UNIT_CANCELLED = 1e-3
"""a sum of unit normals shorter than this says nothing of a direction"""


def completed(cloud: PointCloud) -> PointCloud:
    """The cloud with its faces and the normals of splats outward, with unit normals where it can, and with its mesh."""
    normals = _unit_normals(cloud.normals, cloud.positions)
    if cloud.splats is not None and normals is not None:
        normals = orient_normals(cloud.positions, normals)
    if cloud.faces is None:
        return replace(cloud, normals=normals)
    faces, quads, uv_faces = cloud.faces, cloud.quads, cloud.uv_faces
    x = centred(cloud)
    areas = double_areas(x, faces)
    if _looks_inward(x, faces, areas):
        areas = -areas
        faces = _turned_round(faces)
        quads = None if quads is None else _turned_round(quads)
        uv_faces = None if uv_faces is None else _turned_round(uv_faces)
    from_faces = sum_by_index(faces.ravel(), np.repeat(areas, 3, axis=0), len(x))
    if normals is None:
        normals = _unit_normals(from_faces, cloud.positions)
    elif (normals * from_faces).sum() < 0:
        normals = -normals
    mesh = Mesh(cloud.positions, faces)
    return replace(cloud, normals=normals, faces=faces, quads=quads, uv_faces=uv_faces, mesh=mesh)


def _looks_inward(x: Floats, faces: Indices, areas: Floats) -> bool:
    """Whether the volume inside is negative from wherever in the cloud it is measured. Of a closed surface that is all
    one; of an open one only where it goes far enough round an inside: a sheet keeps the sides it has."""
    six_volumes = (x[faces[:, 0]] * areas).sum()
    return bool(six_volumes < -HALF_SIZE * np.linalg.norm(areas.sum(axis=0)))


def _turned_round(corners: Indices) -> Indices:
    return np.ascontiguousarray(corners[:, ::-1])


def centred(cloud: PointCloud) -> Floats:
    """Positions about their mean, in units of the cloud's size: no scale, and no place, then costs digits."""
    return (cloud.positions - cloud.positions.mean(axis=0)) / cloud.size


def double_areas(x: Floats, faces: Indices) -> Floats:
    """Normals of the triangles, as long as twice their areas, (M, 3)."""
    a, b, c = x[faces[:, 0]], x[faces[:, 1]], x[faces[:, 2]]
    return np.cross(b - a, c - a)


def with_unit_normals(cloud: PointCloud) -> PointCloud:
    """The cloud, with normals of unit length if it has any; those that are no directions count as missing."""
    if cloud.normals is None or np.allclose(np.linalg.norm(cloud.normals, axis=1), 1, atol=1e-3):
        return cloud
    return replace(cloud, normals=_unit_normals(cloud.normals, cloud.positions))


def _unit_normals(normals: Floats | None, positions: Floats) -> Floats | None:
    """Normals of unit length, float32; a point without one takes that of its surroundings; None if no point has one."""
    if normals is None:
        return None
    longest = np.abs(normals).max(axis=1, keepdims=True)
    good = np.isfinite(longest[:, 0]) & (longest[:, 0] > 0)
    if not good.any():
        return None
    directions = normals[good] / longest[good]
    unit = np.empty(normals.shape, np.float32)
    unit[good] = directions / np.linalg.norm(directions, axis=1, keepdims=True)
    if not good.all():
        unit[~good] = _normals_around(positions, unit, good)[~good]
    return unit


def _normals_around(positions: Floats, normals: Floats, good: NDArray[np.bool_]) -> Floats:
    """Normals for all points, where only some are `good`: the mean in the smallest grid cell that has a good one."""
    fraction = (positions - positions.min(axis=0)) / np.ptp(positions, axis=0).max()
    found = np.tile(normals[good][0], (len(normals), 1))
    missing = ~good
    for level in range(10, -1, -1):
        _, cell = np.unique(cell_keys(fraction * 2**level), return_inverse=True)
        mean = sum_by_index(cell[good], normals[good], int(cell.max()) + 1)[cell]
        length = np.linalg.norm(mean, axis=1)
        filled = missing & (length > UNIT_CANCELLED)
        found[filled] = mean[filled] / length[filled, None]
        missing &= ~filled
    return found


def cell_keys(x: Floats) -> NDArray[np.int64]:
    """A number for the unit cell of each point, for coordinates in 0..2^21."""
    return np.floor(x).astype(np.int64) @ np.array([1, 2**21, 2**42])
