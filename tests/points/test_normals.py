"""Estimated normals against those of shapes, of faces and of spheres, which are known."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from phyxel.points.cloud import Floats, PointCloud
from phyxel.points.load import load
from phyxel.points.normals import areas_of, consistency, estimate_normals, neighbourhoods, orient_normals
from phyxel.points.shapes import SHAPES

POINTS = 5000
SPACING = float(np.sqrt(4 * np.pi / POINTS))
"""of so many points on the unit sphere"""
NEARLY_ALL = 0.999
"""Share of signs that must be right: a solid bears a wrong point or two, but no wrong patch."""


# --- helpers


@cache
def sampled(name: str) -> PointCloud:
    return load(name, points=POINTS)


def exact(name: str) -> Floats:
    """The normals of the shape at its points, (POINTS, 3)."""
    normals = sampled(name).normals
    assert normals is not None
    return normals


def even_sphere(turn: int = 0) -> Floats:
    """Evenly spread points on the unit sphere, which are also the normals there, (POINTS, 3)."""
    x = sampled("sphere").positions
    x = x / np.linalg.norm(x, axis=1, keepdims=True)
    return Rotation.random(rng=np.random.default_rng(turn)).apply(x)


def random_sphere(points: int = POINTS) -> Floats:
    """Random points on the unit sphere, (points, 3)."""
    x = np.random.default_rng(1).normal(size=(points, 3))
    return x / np.linalg.norm(x, axis=1, keepdims=True)


def right_signs(normals: Floats, expected: Floats) -> float:
    return float((np.einsum("ij,ij->i", normals, expected) > 0).mean())


def degrees_off(normals: Floats, expected: Floats) -> Floats:
    """Angles between the lines along the normals, whatever their signs, (N,)."""
    cosine = np.abs(np.einsum("ij,ij->i", normals, expected))
    return np.degrees(np.arccos(np.minimum(cosine, 1)))


def flipped(normals: Floats) -> Floats:
    """Normals with random signs."""
    return normals * np.random.default_rng(5).choice([-1, 1], size=(len(normals), 1))


def normals_of_faces(cloud: PointCloud) -> Floats:
    """Sums of the normals of the faces around each point, zero at points of no face, (N, 3)."""
    assert cloud.faces is not None
    a, b, c = (cloud.positions[corner] for corner in cloud.faces.T)
    face_normals = np.cross(b - a, c - a)
    sums = np.zeros_like(cloud.positions)
    for corner in cloud.faces.T:
        np.add.at(sums, corner, face_normals)
    return sums


def finite_and_unit(normals: Floats) -> bool:
    return bool(np.isfinite(normals).all()) and np.allclose(np.linalg.norm(normals, axis=1), 1, atol=1e-6)


# --- shapes and scans


@pytest.mark.parametrize("name", sorted(SHAPES))
def test_signs_are_those_of_the_shape(name: str) -> None:
    cloud = sampled(name)
    normals = estimate_normals(cloud.positions)
    assert normals.dtype == np.float32
    assert finite_and_unit(normals)
    assert right_signs(normals, SHAPES[name].gradient(cloud.positions)) >= NEARLY_ALL


@pytest.mark.parametrize(("name", "radius"), [("sphere", 0.25), ("torus", 0.1)])
def test_directions_are_those_of_a_smooth_shape(name: str, radius: float) -> None:
    """A plane through points within a reach h of one on a surface of curvature 1/r leans by less than h/r, here h = 2.3
    spacings; evenly spread neighbours cancel most of that, so that a fifth of it holds for 19 points of 20."""
    cloud = sampled(name)
    reach = 2.3 * np.sqrt(areas_of(cloud.positions).mean())
    off = degrees_off(estimate_normals(cloud.positions), exact(name))
    assert np.quantile(off, 0.95) < np.degrees(reach / radius) / 5


def test_directions_are_exact_on_the_faces_of_a_box() -> None:
    """Away from the edges all neighbours lie in one plane; what is left is the rounding to single precision."""
    cloud = sampled("box")
    half = np.abs(cloud.positions).max()
    flat = np.sort(np.abs(cloud.positions), axis=1)[:, 1] < half - 5 * np.sqrt(24 * half**2 / POINTS)
    assert flat.sum() > 1000
    assert degrees_off(estimate_normals(cloud.positions), exact("box"))[flat].max() < 0.1


@pytest.mark.slow
def test_a_scan_of_many_points_is_right_and_fast(models: Path) -> None:
    cloud = load(models / "igea.ply")
    start = time.process_time()  # of this process alone: what else the machine does must not count
    normals = estimate_normals(cloud.positions)
    assert time.process_time() - start < 4
    assert right_signs(normals, normals_of_faces(cloud)) >= NEARLY_ALL


@pytest.mark.slow
def test_a_scan_with_holes_is_right(models: Path) -> None:
    cloud = load(models / "stanford-bunny.obj")
    expected = normals_of_faces(cloud)
    known = expected.any(axis=1)
    assert right_signs(estimate_normals(cloud.positions)[known], expected[known]) >= NEARLY_ALL


# --- several skins


@pytest.mark.parametrize("wall", [1.5 * SPACING, 3 * SPACING, 0.5])
def test_the_inner_skin_of_a_hollow_sphere_looks_into_the_cavity(wall: float) -> None:
    """The thinnest wall lets neighbours reach over to the other skin, the thickest makes two components."""
    outer, inner = even_sphere(), even_sphere(turn=1)
    normals = estimate_normals(np.concatenate([outer, (1 - wall) * inner]))
    assert right_signs(normals, np.concatenate([outer, -inner])) >= NEARLY_ALL


def test_a_ball_in_a_cavity_looks_outward_again() -> None:
    skins = [even_sphere(turn) for turn in range(3)]
    normals = estimate_normals(np.concatenate([skins[0], 0.7 * skins[1], 0.4 * skins[2]]))
    assert right_signs(normals, np.concatenate([skins[0], -skins[1], skins[2]])) >= NEARLY_ALL


@pytest.mark.parametrize("gap", [1.5 * SPACING, 3 * SPACING, 2.0])
def test_two_spheres_both_look_outward(gap: float) -> None:
    left, right = even_sphere(), even_sphere(turn=1)
    normals = estimate_normals(np.concatenate([left, right + np.array([2 + gap, 0, 0])]))
    assert right_signs(normals, np.concatenate([left, right])) >= NEARLY_ALL


def test_a_ball_in_a_bowl_is_not_in_a_cavity() -> None:
    """Its box lies inside the bowl's, but no wall is around it."""
    upside_down = sampled("shell").positions * [1, -1, -1]
    ball = 0.1 * even_sphere()
    middle = (upside_down.min(axis=0) + upside_down.max(axis=0)) / 2
    normals = estimate_normals(np.concatenate([upside_down, ball + middle]))
    assert right_signs(normals, np.concatenate([exact("shell") * [1, -1, -1], ball])) >= NEARLY_ALL


# --- points as they come


@pytest.mark.parametrize("sphere", [even_sphere, random_sphere])
def test_noise_of_a_hundredth_of_the_radius(sphere: Callable[[], Floats]) -> None:
    """A fifth of a spacing up and down, over a reach of two spacings and 16 points, leans a plane by a few degrees."""
    x = sphere()
    noise = 0.01 * np.random.default_rng(2).normal(size=x.shape)
    normals = estimate_normals(x + noise)
    assert right_signs(normals, x) >= NEARLY_ALL
    assert np.median(degrees_off(normals, x)) < 5


@pytest.mark.slow
def test_copies_of_points_change_nothing() -> None:
    x = sampled("bear").positions
    once = estimate_normals(x)
    many = estimate_normals(np.concatenate([x, np.repeat(x[::3], 30, axis=0)]))
    assert many[:POINTS] == pytest.approx(once, abs=1e-5)
    assert many[POINTS:] == pytest.approx(np.repeat(once[::3], 30, axis=0), abs=1e-5)


def test_neither_scale_nor_place_nor_order_matters() -> None:
    """At 1e7 m a double is exact to 2e-9 m, a few 1e-7 of the spacing: normals lean by no more than about that."""
    x = sampled("bear").positions
    here = estimate_normals(x)
    assert estimate_normals(1e-6 * x) == pytest.approx(here, abs=1e-5)
    assert estimate_normals(x + 1e7) == pytest.approx(here, abs=1e-4)
    order = np.random.default_rng(3).permutation(POINTS)
    assert estimate_normals(x[order]) == pytest.approx(here[order], abs=1e-5)


def test_lines_of_a_scanner() -> None:
    """Points twelve times closer along 40 lines than across: the nearest 16 all lie on one line."""
    polar, around = np.meshgrid((np.arange(40) + 0.5) / 40 * np.pi, np.arange(500) / 500 * 2 * np.pi)
    x = np.stack([np.sin(polar) * np.cos(around), np.sin(polar) * np.sin(around), np.cos(polar)], axis=-1)
    x = x.reshape(-1, 3)
    normals = estimate_normals(x)
    assert right_signs(normals, x) >= NEARLY_ALL
    assert np.median(degrees_off(normals, x)) < 2


def test_stray_points_do_not_turn_the_body() -> None:
    x = even_sphere()
    stray = np.random.default_rng(4).uniform(-3, 3, size=(200, 3))
    far_group = 50 + np.random.default_rng(4).normal(size=(20, 3))
    normals = estimate_normals(np.concatenate([x, stray, far_group]))
    assert finite_and_unit(normals)
    assert right_signs(normals[:POINTS], x) >= NEARLY_ALL


@pytest.mark.parametrize(
    "x",
    [
        np.array([[0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1]], float),
        np.ones((50, 3)),
        np.full((1, 3), 7.0),
        np.array([[0, 0, 0]] * 3 + [[1, 2, 3]] * 4, float),
        np.arange(300)[:, None] * np.array([[1.0, 2.0, 3.0]]),
    ],
    ids=["four", "coincident", "one", "two places", "a line"],
)
def test_points_that_are_no_surface_still_get_unit_normals(x: Floats) -> None:
    assert finite_and_unit(estimate_normals(x))
    assert np.isfinite(areas_of(x)).all()
    assert 0 <= consistency(x, estimate_normals(x)) <= 1


# --- given normals


@pytest.mark.parametrize("name", sorted(SHAPES))
def test_exact_normals_with_random_signs_are_turned_outward(name: str) -> None:
    normals = exact(name)
    turned = orient_normals(sampled(name).positions, flipped(normals))
    assert right_signs(turned, normals) >= NEARLY_ALL
    assert np.array_equal(np.abs(turned), np.abs(normals)), "directions are kept"


def test_coincident_corners_keep_the_normals_of_their_faces() -> None:
    """On the edges of a box that a modeller made, two or three normals at right angles belong to one place."""
    grid = np.linspace(-1, 1, 12)
    u, v = (side.ravel() for side in np.meshgrid(grid, grid))
    sides = [(axis, sign) for axis in range(3) for sign in (-1.0, 1.0)]
    x = np.concatenate([np.insert(np.stack([u, v], axis=1), axis, sign, axis=1) for axis, sign in sides])
    normals = np.concatenate([np.tile(sign * np.eye(3)[axis], (len(u), 1)) for axis, sign in sides])
    assert len(np.unique(x, axis=0)) < len(x)
    assert right_signs(orient_normals(x, flipped(normals)), normals) == 1


def test_consistency_tells_oriented_normals_from_others() -> None:
    """Half of the pairs agree by chance; of 80,000 pairs that is exact to well under 2 %, though pairs share points."""
    x, normals = sampled("bear").positions, exact("bear")
    assert consistency(x, normals) > NEARLY_ALL
    assert consistency(x, -normals) > NEARLY_ALL
    assert consistency(x, flipped(normals)) == pytest.approx(0.5, abs=0.02)


# --- areas


def uneven_sphere() -> Floats:
    """Points on the unit sphere whose density grows by e⁴ from pole to pole."""
    x = random_sphere(60_000)
    return x[np.random.default_rng(6).random(len(x)) < np.exp(2 * x[:, 2] - 3)]


def half_dense_sphere() -> Floats:
    """Points on the unit sphere, twenty times denser on its upper half."""
    x = random_sphere(20_000)
    return x[(x[:, 2] > 0) | (np.random.default_rng(6).random(len(x)) < 0.05)]


@pytest.mark.parametrize(
    ("sphere", "tolerance"),
    [(even_sphere, 0.05), (random_sphere, 0.05), (uneven_sphere, 0.1), (half_dense_sphere, 0.1)],
)
def test_areas_add_up_to_that_of_the_sphere(sphere: Callable[[], Floats], tolerance: float) -> None:
    """A disc through the 16th neighbour holds 16 to 16.5 points, by how evenly they lie: 2 % either way; a point in a
    sparse region reaches into a dense one sooner than the other way round, which costs some per cent more."""
    assert areas_of(sphere()).sum() == pytest.approx(4 * np.pi, rel=tolerance)


def test_areas_follow_the_unit_and_are_shared_by_copies() -> None:
    x = even_sphere()
    areas = areas_of(x)
    assert areas_of(1e-3 * x + 7) == pytest.approx(1e-6 * areas, rel=1e-6)
    shared = areas_of(np.concatenate([x, x[:100]]))
    assert shared[:100] == pytest.approx(areas[:100] / 2)
    assert shared.sum() == pytest.approx(areas.sum())


def test_one_search_serves_all() -> None:
    x, normals = sampled("jack").positions, exact("jack")
    near = neighbourhoods(x)
    assert np.array_equal(estimate_normals(x, near), estimate_normals(x))
    assert np.array_equal(areas_of(x, near), areas_of(x))
    assert consistency(x, normals, near) == consistency(x, normals)
