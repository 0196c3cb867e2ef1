"""Loading: a file or a built-in shape becomes a point cloud in metres, y up, with outward normals where it can."""

from __future__ import annotations

import os
from collections.abc import Collection
from dataclasses import replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from phyxel.errors import LoadError, PhyxelError, did_you_mean, knows_its_arguments
from phyxel.points import FEWEST_POINTS
from phyxel.points.cloud import CLOUD_LIKE, CloudLike, Floats, Indices, Mesh, PointCloud, as_cloud
from phyxel.points.completion import cell_keys, centred, completed, double_areas
from phyxel.points.readers import read_cloud
from phyxel.points.reading import UNITS, UPS, Reading
from phyxel.points.sampling import sample_shape
from phyxel.points.shapes import SHAPES
from phyxel.points.sheets import SURFACES
from phyxel.points.splats import opaque
from phyxel.points.texture import at_vertices

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


@knows_its_arguments
def load(
    path_or_name: str | os.PathLike[str] | CloudLike,
    points: int | None = None,
    units: str | None = None,
    up: str | None = None,
    opacity: float = OPACITY,
) -> PointCloud:
    """A point cloud from a PLY, OBJ, STL, XYZ, glTF or USD file, from a built-in shape or surface, or from an array
    (N, 3), a list of triples or a pair of vertices (V, 3) and faces (F, 3): `path_or_name`.

    `points` asks for another number of points than the file has: fewer are an evenly spread part of them, more are the
    file's own and then random ones on its faces, in the colours that its texture has there. `units` ("mm", "cm", ...)
    and `up` ("x", "y" or "z") say what the numbers mean; left out, what the file says, else metres and y up: the
    cloud's `reading` has which, and its `oddities()` what looks odd then. A mesh that is inside out is turned; missing
    normals are made from the faces. Built-in surfaces ("cloth", ...) are meshes of about so many vertices.

    A PLY file of Gaussian splats gives the centres of those whose opacity (0..1) is at least `opacity`, with their
    shortest axes as normals; all the others stay in `splats`.

    >>> bear = px.load("bear", points=2000)
    >>> round(px.load(1000 * bear.positions, units="mm").size / bear.size, 9)
    1.0
    """
    for field, word, known in (("units", units, UNITS), ("up", up, UPS)):
        _refuse_unknown(field, word, known)
    if points is not None and (not isinstance(points, int | np.integer) or points < FEWEST_POINTS):
        raise PhyxelError(
            f"points = {points}: expected a whole number, at least {FEWEST_POINTS}; leave it out for what the file has"
        )
    if not isinstance(opacity, int | float | np.integer | np.floating) or not 0 <= opacity <= 1:
        raise PhyxelError(f"opacity = {opacity}: expected a number in 0..1, what a splat on the surface has at least")
    if isinstance(path_or_name, str | os.PathLike):
        path = Path(os.path.expanduser(path_or_name))
        if not _is_file(path):
            as_given = units in (None, "m") and up in (None, "y") and opacity == OPACITY
            return _built_in(str(path_or_name), path, points, as_given)
        cloud = replace(read_cloud(path), from_file=True)
    else:
        cloud = as_cloud(path_or_name, "load", f"a file, the name of a built-in shape, {CLOUD_LIKE}")
    reading = (cloud.reading or Reading()).asked(units, up)
    cloud = replace(_turned(_opaque(cloud, opacity), UNITS[reading.units], *UPS[reading.up]), reading=reading)
    return _with_points(_painted(completed(cloud.checked())), points).checked()


def _refuse_unknown(field: str, word: str | None, known: Collection[str]) -> None:
    if word is not None and word not in known:
        # A unit has so few letters that even "meter" and "m" have little in common.
        meant = did_you_mean(str(word).lower(), known, likeness=0.3)
        raise PhyxelError(f'{field} = "{word}": not known{meant}')


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
    meant = did_you_mean(name.lower(), sorted(shapes))
    return f'"{name}": no such file, and no built-in shape{meant}'


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


def _painted(cloud: PointCloud) -> PointCloud:
    """The cloud in the colours that its texture has at its points."""
    if cloud.texture is None or cloud.faces is None:
        return cloud
    return cloud.with_colors(at_vertices(cloud.texture, cloud.colors, cloud.faces, _corner_uv(cloud), len(cloud)))


def _corner_uv(cloud: PointCloud) -> Floats | None:
    """Texture coordinates at the corners of the faces, (3 M, 2)."""
    return None if cloud.uv is None or cloud.uv_faces is None else cloud.uv[cloud.uv_faces.ravel()]


def points_on(mesh: Mesh, fewest: int, name: str) -> PointCloud:
    """The vertices of a mesh with normals, or random points on its faces if there are fewer than asked for."""
    cloud = completed(PointCloud(mesh.vertices, faces=mesh.faces, name=name))
    return replace(cloud, faces=None, mesh=None) if len(cloud) >= fewest else spread_on(mesh, fewest, name)


def spread_on(mesh: Mesh, points: int, name: str = "mesh") -> PointCloud:
    """Random points on the faces of a mesh, about evenly spread, that look where their face looks."""
    # Each face gets corners of its own: its points then look where it looks, up to its sharpest edge.
    apart = np.arange(mesh.faces.size, dtype=np.int32).reshape(-1, 3)
    cloud = completed(PointCloud(mesh.vertices[mesh.faces.ravel()], faces=apart, name=name))
    on_faces = np.arange(len(cloud), len(cloud) + THINNED_FROM * points)
    return _thinned(_densified(cloud, len(cloud) + len(on_faces)).part(on_faces), points)


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
    chosen = _drawn(areas, added, rng)
    corners = cloud.faces[chosen]
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
        if cloud.texture is not None:
            uv = _corner_uv(cloud)
            if uv is not None:
                uv = np.einsum("kc,kcd->kd", weights, uv.reshape(-1, 3, 2)[chosen])
            cloud.texture.paint(between, chosen, uv)
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
