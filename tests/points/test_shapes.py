"""The built-in shapes and the points taken from them, against closed forms."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import numpy as np
import pytest
from scipy import ndimage
from scipy.spatial import cKDTree

from phyxel.errors import PhyxelError
from phyxel.points.cloud import BuiltInShape, Floats, PointCloud
from phyxel.points.sampling import sample_shape
from phyxel.points.shapes import SHAPES

NAMES = ["bear", "bar", "box", "sphere", "torus", "jack", "shell", "bust"]
POINTS = 6000

every_shape = pytest.mark.parametrize("name", NAMES)


@cache
def sampled(name: str) -> PointCloud:
    return sample_shape(SHAPES[name], POINTS)


@cache
def gridded(name: str, cells: int = 100) -> tuple[Floats, float]:
    """Distances at the cell centres of a grid that reaches past the shape, and the edge of a cell [m]."""
    shape = SHAPES[name]
    edge = size_of(shape) / cells
    along = [np.arange(a - 1.75 * edge, b + 1.75 * edge, edge) for a, b in zip(shape.lower, shape.upper, strict=True)]
    grid = np.stack(np.meshgrid(*along, indexing="ij"), axis=-1)
    return shape.distance(grid.reshape(-1, 3)).reshape(grid.shape[:3]), edge


def size_of(shape: BuiltInShape) -> float:
    return float(np.max(np.subtract(shape.upper, shape.lower)))


def nearest_gaps(x: Floats) -> Floats:
    return cKDTree(x).query(x, k=2)[0][:, 1]


def test_the_eight_shapes_are_there_under_their_names() -> None:
    assert sorted(SHAPES) == sorted(NAMES)
    assert all(shape.name == name for name, shape in SHAPES.items())


@every_shape
def test_points_lie_on_the_zero_set(name: str) -> None:
    cloud = sampled(name)
    assert len(cloud) == POINTS
    assert np.abs(SHAPES[name].distance(cloud.positions)).max() < 1e-9 * size_of(SHAPES[name])


@every_shape
def test_distance_is_first_order_exact_beside_the_surface(name: str) -> None:
    """d(x + s n) = s + O(s²), though edges and tight creases may bend a few of the short lines used here."""
    cloud = sampled(name)
    shift = 1e-5 * size_of(SHAPES[name])
    for s in (-shift, shift):
        d = SHAPES[name].distance(cloud.positions + s * cloud.normals.astype(np.float64))
        assert np.quantile(np.abs(d / s - 1), 0.995) < 0.02


@every_shape
def test_normals_are_unit_and_point_outward(name: str) -> None:
    cloud = sampled(name)
    normals = cloud.normals.astype(np.float64)
    assert np.linalg.norm(normals, axis=1) == pytest.approx(1, abs=1e-6)
    step = 1e-4 * size_of(SHAPES[name])
    assert (SHAPES[name].distance(cloud.positions + step * normals) > 0).mean() > 0.999
    assert (SHAPES[name].distance(cloud.positions - step * normals) < 0).mean() > 0.999


def sphere_normal(x: Floats) -> Floats:
    return x / 0.25


def torus_normal(x: Floats) -> Floats:
    around = np.hypot(x[:, 0], x[:, 2])[:, None]
    circle = 0.3 * x * [1, 0, 1] / around
    return (x - circle) / 0.1


def box_normal(x: Floats) -> Floats:
    face = np.abs(x).argmax(axis=1)
    return np.eye(3)[face] * np.sign(x)


@pytest.mark.parametrize(
    ("name", "expected"), [("sphere", sphere_normal), ("torus", torus_normal), ("box", box_normal)]
)
def test_normals_are_the_analytic_ones(name: str, expected: Callable[[Floats], Floats]) -> None:
    cloud = sampled(name)
    off = np.abs(cloud.normals - expected(cloud.positions)).max(axis=1)
    # A point of the box may lie within the difference step of an edge, where the normal is not defined.
    assert np.quantile(off, 0.999) < 1e-6


@every_shape
def test_points_are_evenly_spaced(name: str) -> None:
    gaps = nearest_gaps(sampled(name).positions)
    assert gaps.std() / gaps.mean() < 0.2
    assert gaps.max() < 2.5 * gaps.mean()


@pytest.mark.parametrize("name", ["bear", "bar", "shell"])
def test_points_leave_no_holes(name: str) -> None:
    """Nowhere on the surface is the next point much farther than a spacing away."""
    x = sampled(name).positions
    probes = sample_shape(SHAPES[name], 9000, seed=7).positions
    assert cKDTree(x).query(probes)[0].max() < 1.8 * nearest_gaps(x).mean()


def test_a_box_has_as_many_points_on_each_face() -> None:
    x = sampled("box").positions
    face = np.abs(x).argmax(axis=1) * 2 + (x[np.arange(len(x)), np.abs(x).argmax(axis=1)] > 0)
    assert np.bincount(face, minlength=6) == pytest.approx(POINTS / 6, rel=0.05)


@pytest.mark.parametrize(
    ("name", "volume"),
    [
        ("bar", 1 / 16),
        ("box", 1 / 8),
        ("sphere", 4 / 3 * np.pi * 0.25**3),
        ("torus", 2 * np.pi**2 * 0.3 * 0.1**2),
        ("shell", 2 / 3 * np.pi * (0.5**3 - 0.44**3)),
    ],
)
def test_volume_is_the_closed_form(name: str, volume: float) -> None:
    d, edge = gridded(name)
    filled = np.clip(0.5 - d / edge, 0, 1)
    assert filled.sum() * edge**3 == pytest.approx(volume, rel=5e-3)


@every_shape
def test_each_shape_is_one_piece_without_voids(name: str) -> None:
    d, _ = gridded(name)
    assert ndimage.label(d < 0)[1] == 1
    assert ndimage.label(d >= 0)[1] == 1


@every_shape
def test_bounds_hold_the_shape_and_are_tight(name: str) -> None:
    shape, cloud = SHAPES[name], sampled(name)
    extent = np.subtract(shape.upper, shape.lower)
    assert (cloud.lower >= np.array(shape.lower) - 1e-11).all()
    assert (cloud.upper <= np.array(shape.upper) + 1e-11).all()
    assert (cloud.upper - cloud.lower > 0.99 * extent).all()
    # The grid reaches past the bounds, so that a part outside of them would be seen.
    d, edge = gridded(name)
    inside = np.argwhere(d < 0)
    assert ((inside.max(axis=0) - inside.min(axis=0)) * edge <= extent).all()


@every_shape
def test_colours_are_colours(name: str) -> None:
    cloud = sampled(name)
    raw = SHAPES[name].color(cloud.positions)
    assert raw.shape == (POINTS, 3)
    assert raw.min() >= 0
    assert raw.max() <= 1
    assert cloud.colors == pytest.approx(raw, abs=1e-6)
    assert raw.std(axis=0).max() > 0.005


@pytest.mark.parametrize("name", ["bear", "bust"])
def test_mascot_and_bust_are_mirror_symmetric_and_stand_on_the_ground(name: str) -> None:
    x = sampled(name).positions
    assert np.abs(SHAPES[name].distance(x * [-1, 1, 1])).max() < 1e-9
    standing = x[np.abs(x[:, 1]) < 1e-9]
    assert len(standing) > 50
    center_of_mass = x.mean(axis=0)
    assert (standing.min(axis=0)[[0, 2]] < center_of_mass[[0, 2]]).all()
    assert (standing.max(axis=0)[[0, 2]] > center_of_mass[[0, 2]]).all()


def test_the_same_seed_gives_the_same_points_and_another_seed_others() -> None:
    first, again, other = (sample_shape(SHAPES["bear"], 500, seed=s).positions for s in (3, 3, 4))
    assert np.array_equal(first, again)
    assert not np.array_equal(first, other)


@pytest.mark.parametrize("points", [4, 5, 100, 1237])
def test_count_is_exact(points: int) -> None:
    for name in ("shell", "jack"):
        cloud = sample_shape(SHAPES[name], points)
        assert len(cloud) == points
        assert np.isfinite(cloud.positions).all()
        assert len(np.unique(cloud.positions, axis=0)) == points


def test_cloud_is_what_its_type_promises() -> None:
    cloud = sample_shape(SHAPES["torus"], 200)
    assert cloud.shape is SHAPES["torus"]
    assert cloud.name == "torus"
    assert cloud.faces is None
    assert cloud.positions.dtype == np.float64
    assert cloud.normals.dtype == cloud.colors.dtype == np.float32
    assert cloud.checked() is cloud


def test_too_few_points_are_refused_with_the_reason() -> None:
    with pytest.raises(PhyxelError, match="sphere: 3 points asked for; a surface needs at least 4"):
        sample_shape(SHAPES["sphere"], 3)
