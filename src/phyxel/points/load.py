"""Loading: a file or a built-in shape becomes a point cloud in metres, y up, with outward normals where it can."""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from phyxel.errors import LoadError, PhyxelError, did_you_mean
from phyxel.points import FEWEST_POINTS
from phyxel.points.cloud import Floats, Indices, Mesh, PointCloud
from phyxel.points.completion import cell_keys, centred, completed, double_areas
from phyxel.points.meshfiles import read_cloud
from phyxel.points.sampling import sample_shape
from phyxel.points.shapes import SHAPES
from phyxel.points.sheets import SURFACES
from phyxel.points.splats import opaque

UNITS = {"m": 1.0, "dm": 0.1, "cm": 0.01, "mm": 1e-3, "um": 1e-6, "km": 1e3, "in": 0.0254, "ft": 0.3048}
"""metres in one unit of the file"""

UPS = {"y": ((0, 1, 2), (1, 1, 1)), "z": ((0, 2, 1), (1, 1, -1)), "x": ((1, 0, 2), (-1, 1, 1))}
"""rotations that turn the file's upward axis to y: which column becomes x, y, z, and its sign"""

BUILT_IN_POINTS = 20_000
"""of built-in shapes and surfaces, unless another number is asked for"""
OPACITY = 0.5
"""splats less opaque than this are haze and glow around the object rather than its surface"""
LARGEST_COORDINATE = 1e30
"""[m]: beyond this the squares and cubes of a coordinate would leave what a double can hold"""
THINNED_FROM = 3
"""random points on faces for each that is kept, so that these lie evenly"""
SEED = 1
"""of all that is drawn at random: the same file gives the same points"""

Value = TypeVar("Value")


def load(
    path_or_name: str | os.PathLike[str],
    points: int | None = None,
    units: str = "m",
    up: str = "y",
    opacity: float = OPACITY,
) -> PointCloud:
    """A point cloud from a PLY, OBJ, STL or XYZ file, or from a built-in shape or surface.

    `points` asks for another number of points than the file has: fewer are an evenly spread part of them, more are the
    file's own and then random ones on its faces. `units` and `up` say what the file's numbers mean: one of `UNITS`, and
    the axis that points upward. A mesh that is inside out is turned; missing normals are made from the faces. Built-in
    surfaces ("cloth", ...) are meshes of about so many vertices.

    A PLY file of Gaussian splats gives the centres of those whose opacity (0..1) is at least `opacity`, with their
    shortest axes as normals; all the others stay in `splats`.
    """
    scale = _chosen("units", units, UNITS)
    axes, signs = _chosen("up", up, UPS)
    if points is not None and (not isinstance(points, int | np.integer) or points < FEWEST_POINTS):
        raise PhyxelError(
            f"points = {points}: expected a whole number, at least {FEWEST_POINTS}; leave it out for what the file has"
        )
    if not isinstance(opacity, int | float | np.integer | np.floating) or not 0 <= opacity <= 1:
        raise PhyxelError(f"opacity = {opacity}: expected a number in 0..1, what a splat on the surface has at least")
    path = Path(os.path.expanduser(path_or_name))
    if not _is_file(path):
        as_given = scale == 1.0 and up == "y" and opacity == OPACITY
        return _built_in(str(path_or_name), path, points, as_given)
    cloud = _turned(_opaque(read_cloud(path), opacity), scale, axes, signs).checked()
    return _with_points(completed(cloud), points).checked()


def _chosen(field: str, word: str, known: Mapping[str, Value]) -> Value:
    if word not in known:
        # A unit has so few letters that even "meter" and "m" have little in common.
        meant = did_you_mean(str(word).lower(), known, likeness=0.3)
        raise PhyxelError(f'{field} = "{word}": not known{meant} Known: {", ".join(known)}')
    return known[word]


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except (OSError, ValueError):  # a name too long for the file system, or with a zero byte, is no file
        return False


def _built_in(name: str, path: Path, points: int | None, as_given: bool) -> PointCloud:
    if name not in SHAPES and name not in SURFACES:
        raise LoadError(_why_neither_file_nor_shape(name, path, [*SHAPES, *SURFACES]))
    if not as_given:
        raise PhyxelError(
            f'"{name}" is built in, in metres and y up; units, up and opacity are for files: leave them out'
        )
    points = points or BUILT_IN_POINTS
    return SURFACES[name](points) if name in SURFACES else sample_shape(SHAPES[name], points)


def _why_neither_file_nor_shape(name: str, path: Path, shapes: Collection[str]) -> str:
    if os.path.isdir(path):
        return f'"{name}" is a folder; name one of the files in it'
    if os.path.lexists(path):
        return f'"{name}" is not a plain file; name a file that can be read'
    if path.suffix or len(path.parts) > 1:
        return f'"{name}": no such file; check the path, which counts from {os.getcwd()}'
    meant = did_you_mean(name.lower(), shapes)
    return f'"{name}": no such file, and no built-in shape{meant} Built in: {", ".join(sorted(shapes))}'


def _opaque(cloud: PointCloud, opacity: float) -> PointCloud:
    """The points that are at least so opaque, if they are splats."""
    if cloud.splats is not None:
        return cloud.part(opaque(cloud.splats, opacity, cloud.name))
    if opacity != OPACITY:
        raise PhyxelError(
            f"{cloud.name}: opacity = {opacity:g} is for Gaussian splats, and the file has none; leave it out"
        )
    return cloud


def _turned(cloud: PointCloud, scale: float, axes: tuple[int, ...], signs: tuple[int, ...]) -> PointCloud:
    """The cloud in metres, y up."""
    far = np.isfinite(cloud.positions) & (np.abs(cloud.positions) > LARGEST_COORDINATE)
    if far.any():
        found = float(cloud.positions[far][0])
        raise LoadError(f"{cloud.name}: a coordinate is {found:g}, beyond {LARGEST_COORDINATE:g}; the file is damaged")
    turned = replace(cloud, positions=cloud.positions[:, axes] * np.multiply(signs, scale))
    if cloud.splats is not None:
        rotation = np.eye(3)[list(axes)] * np.array(signs)[:, None]
        turned = replace(turned, splats=cloud.splats.turned(scale, rotation))
    if cloud.normals is None:
        return turned
    return replace(turned, normals=cloud.normals[:, axes] * np.array(signs, np.float64))


def points_on(mesh: Mesh, fewest: int, name: str) -> PointCloud:
    """The vertices of a mesh with normals, or random points on its faces if there are fewer than asked for."""
    cloud = completed(PointCloud(mesh.vertices, faces=mesh.faces, name=name))
    if len(cloud) >= fewest or cloud.faces is None:
        return replace(cloud, faces=None, mesh=None)
    # Each face gets corners of its own: its points then look where it looks, up to its sharpest edge.
    apart = np.arange(mesh.faces.size, dtype=np.int32).reshape(-1, 3)
    cloud = completed(PointCloud(mesh.vertices[mesh.faces.ravel()], faces=apart, name=name))
    on_faces = np.arange(len(cloud), len(cloud) + THINNED_FROM * fewest)
    return _thinned(_densified(cloud, len(cloud) + len(on_faces)).part(on_faces), fewest)


def _with_points(cloud: PointCloud, points: int | None) -> PointCloud:
    if points is None or points == len(cloud):
        return cloud
    return _thinned(cloud, points) if points < len(cloud) else _densified(cloud, points)


def _thinned(cloud: PointCloud, points: int) -> PointCloud:
    return cloud.part(spread_subset(cloud.positions, points))


def spread_subset(positions: Floats, count: int) -> NDArray[np.int64]:
    """Ascending indices of `count` of the points, spread evenly: one in each cell of a grid that has just enough cells.

    The few cells too many are left out at random. Where points coincide, cells run out, and others fill the number.
    """
    rng = np.random.default_rng(SEED)
    lower = positions.min(axis=0)
    fraction = (positions - lower) / (positions.max(axis=0) - lower).max()
    shift = rng.random(3)  # keeps flat sides, which often lie along the axes, off the borders of cells
    coarse, fine = 1, 2**20
    chosen = _one_per_cell(fraction * fine + shift)
    while fine - coarse > 1 and len(chosen) > 1.02 * count:
        middle = round((coarse * fine) ** 0.5)
        middle = min(max(middle, coarse + 1), fine - 1)
        candidates = _one_per_cell(fraction * middle + shift)
        if len(candidates) >= count:
            fine, chosen = middle, candidates
        else:
            coarse = middle
    if len(chosen) >= count:
        return np.sort(rng.choice(chosen, count, replace=False))
    rest = np.setdiff1d(np.arange(len(positions)), chosen)
    return np.sort(np.concatenate([chosen, rng.choice(rest, count - len(chosen), replace=False)]))


def _one_per_cell(x: Floats) -> NDArray[np.int64]:
    """Of the points in each unit cell, the index of the one nearest to its centre."""
    cell = np.floor(x)
    off_centre = ((x - cell - 0.5) ** 2).sum(axis=1)
    key = cell_keys(x)
    order = np.lexsort((off_centre, key))
    sorted_key = key[order]
    first = np.concatenate([[True], sorted_key[1:] != sorted_key[:-1]])
    return order[first]


def _densified(cloud: PointCloud, points: int) -> PointCloud:
    """The same points, then random ones on the faces, as many on each as its area asks for."""
    added = points - len(cloud)
    if cloud.faces is None:
        raise PhyxelError(
            f"{cloud.name}: points = {points}, but the file has {len(cloud)} points and no faces to put more on; "
            f"ask for at most {len(cloud)}, or load a mesh"
        )
    rng = np.random.default_rng(SEED)
    areas = np.linalg.norm(double_areas(centred(cloud), cloud.faces), axis=1)
    if not areas.any():
        raise PhyxelError(f"{cloud.name}: its faces have no area to put more points on; ask for {len(cloud)} points")
    corners = cloud.faces[_drawn(areas, added, rng)]
    weights = _corner_weights(added, rng)
    normals = colors = None
    if cloud.normals is not None:
        between = _interpolated(cloud.normals, corners, weights)
        # Opposite normals may cancel: such a point takes that of a corner.
        cancelled = (between == 0).all(axis=1)
        between[cancelled] = cloud.normals[corners[cancelled, 0]]
        between /= np.linalg.norm(between, axis=1, keepdims=True)
        normals = np.concatenate([cloud.normals, between.astype(np.float32)])
    if cloud.colors is not None:
        between = np.clip(_interpolated(cloud.colors, corners, weights), 0, 1)
        colors = np.concatenate([cloud.colors, between.astype(np.float32)])
    positions = np.concatenate([cloud.positions, _interpolated(cloud.positions, corners, weights)])
    return replace(cloud, positions=positions, normals=normals, colors=colors)


def _drawn(weights: Floats, count: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """Indices drawn in proportion to their weights, (count,)."""
    reach = np.cumsum(weights)
    # One draw in each of `count` equal parts spreads better than draws from the whole.
    draws = (np.arange(count) + rng.random(count)) / count * reach[-1]
    return np.minimum(np.searchsorted(reach, draws, side="right"), len(reach) - 1)


def _corner_weights(count: int, rng: np.random.Generator) -> Floats:
    """Barycentric coordinates spread evenly over triangles, (count, 3)."""
    u, v = rng.random((2, count))
    root = np.sqrt(u)
    return np.stack([1 - root, root * (1 - v), root * v], axis=1)


def _interpolated(values: Floats, corners: Indices, weights: Floats) -> Floats:
    """Values at the corners (N, 3) taken to points inside the triangles, (count, 3), float64."""
    return np.einsum("kc,kcd->kd", weights, values[corners].astype(np.float64))
