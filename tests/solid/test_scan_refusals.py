"""What is no solid is refused; what is only strange is not."""

import re
from collections.abc import Callable

import numpy as np
import pytest

import phyxel as px
from phyxel.errors import SolidError
from phyxel.points.cloud import PointCloud
from tests.solid.scans import Truth, assert_sides, assert_volume, ball, balls, bare, points_of, refused, truth_of


def sheet(count: int, height: Callable) -> np.ndarray:
    u = np.random.default_rng(1).uniform(-1, 1, (count, 2))
    return np.stack([u[:, 0], height(u[:, 0], u[:, 1]), u[:, 1]], axis=1)


def mobius(count: int) -> np.ndarray:
    rng = np.random.default_rng(2)
    t, s = rng.uniform(0, 2 * np.pi, count), rng.uniform(-0.4, 0.4, count)
    r = 1 + s * np.cos(t / 2)
    return np.stack([r * np.cos(t), s * np.sin(t / 2), r * np.sin(t)], axis=1)


def helix(count: int) -> np.ndarray:
    t = np.linspace(0, 12 * np.pi, count)
    return np.stack([np.cos(t), t / 20, np.sin(t)], axis=1)


RNG = np.random.default_rng(12)
CUBE = np.array(list(np.ndindex(2, 2, 2)), float)
NO_SOLID = {
    "flat-sheet": sheet(2000, lambda u, v: 0 * u),
    "rough-sheet": sheet(2000, lambda u, v: 0.002 * RNG.normal(size=len(u))),
    "wavy-sheet": sheet(2000, lambda u, v: 0.2 * np.sin(4 * u) * np.cos(3 * v)),
    "shallow-bowl": sheet(2000, lambda u, v: 0.3 * (u * u + v * v)),
    "line": np.linspace(0, 1, 500)[:, None] * np.array([1.0, 2.0, 3.0]),
    "noisy-line": np.linspace(0, 1, 500)[:, None] * np.array([1.0, 2, 3]) + 0.01 * RNG.normal(size=(500, 3)),
    "one-point": np.ones((500, 3)),
    "nearly-one-point": 5 + 1e-15 * RNG.normal(size=(500, 3)),
    "dust-500": RNG.uniform(0, 1, (500, 3)),
    "dust-5000": RNG.uniform(0, 1, (5000, 3)),
    "gaussian-dust": RNG.normal(size=(2000, 3)),
    "helix": helix(1000),
    "two-sheets": np.concatenate([sheet(1500, lambda u, v: 0 * u), sheet(1500, lambda u, v: 0 * u + 0.5)]),
    "mobius": mobius(3000),
    "corners": np.repeat(CUBE, 100, axis=0),
    "ten": RNG.normal(size=(10, 3)),
    "four": np.concatenate([np.zeros((1, 3)), np.eye(3)]),
}


@pytest.mark.parametrize("name", NO_SOLID)
def test_what_encloses_nothing_is_refused(name):
    """With the name of the cloud and the reason, in words that tell what to do."""
    text = refused(PointCloud(NO_SOLID[name], name=name), "point", "closing", "surface")
    assert len(text) > len(name) + 30


@pytest.mark.parametrize("name", ["wavy-sheet", "two-sheets", "mobius", "dust-500", "shallow-bowl"])
def test_normals_do_not_make_a_solid_of_it(name):
    """Nor with some normals, here all upward: a sheet seen from above."""
    x = NO_SOLID[name]
    refused(
        PointCloud(x, normals=np.tile(np.float32([0, 1, 0]), (len(x), 1)), name=name), "point", "closing", "surface"
    )


def test_few_points():
    """Sixty points on a sphere, 25° apart, are a sphere within 5 % or too few; a hundred are a sphere within 2 %."""
    truth = Truth(balls((1.0, (0, 0, 0))), -np.ones(3), np.ones(3), 4 / 3 * np.pi)
    for cloud in (ball(60), bare(ball(60)), ball(100), bare(ball(100))):
        try:
            solid = px.Solid(cloud)
        except SolidError as error:
            assert len(cloud) < 100 and "points" in str(error)
            continue
        assert_volume(solid, truth, 0.05 if len(cloud) < 100 else 0.02)
        assert_sides(solid, truth, 0.97, 0.05, 10_000)


@pytest.mark.slow
@pytest.mark.parametrize("scale", [1e-6, 1e6])
def test_any_scale(scale):
    """Metres mean nothing to the method: the same solid at each scale, within single precision."""
    cloud, truth = points_of("bear", 1000), truth_of("bear")
    solid = px.Solid(PointCloud(scale * cloud.positions, name="scaled"))
    unit = px.Solid(bare(cloud))
    assert solid.volume == pytest.approx(scale**3 * unit.volume, rel=1e-4)
    x = np.random.default_rng(0).uniform(truth.lower, truth.upper, (5000, 3))
    assert np.abs(solid.distance(scale * x) / scale - unit.distance(x)).max() < 1e-3 * truth.size


@pytest.mark.slow
def test_far_from_the_origin():
    """At 1e7 m with millimetres a double has 2e-9 m left: the same solid. The same numbers in single precision are on
    a grid of 1 m and can only be refused, for that reason."""
    cloud, truth = points_of("bear", 1000), truth_of("bear")
    shift = np.array([1e7, -1e7, 2e7])
    solid = px.Solid(PointCloud(cloud.positions + shift, normals=cloud.normals, name="far"))
    assert solid.volume == pytest.approx(truth.volume, rel=1e-2)
    x = np.random.default_rng(0).uniform(truth.lower, truth.upper, (20_000, 3))
    at_home = px.Solid(cloud)
    assert (solid.inside(x + shift) == at_home.inside(x)).mean() > 0.9995
    assert np.abs(solid.project(x + shift) - shift - at_home.project(x)).max(axis=1).mean() < 1e-5 * truth.size
    single = (cloud.positions + shift).astype(np.float32)
    refused(PointCloud(single, name="single"), "precision", "digits", "float", "origin", "plane")
    assert px.Solid(PointCloud(cloud.positions.astype(np.float32), name="near")).volume == pytest.approx(
        truth.volume, rel=5e-3
    )


def test_coarse_numbers_far_from_the_origin():
    """A 10 m ball at 1e6 m in single precision lies on a grid of 6 cm, 0.3 % of it: refused, or right within 2 %."""
    cloud = ball(3000, 10.0)
    single = (cloud.positions + 1e6).astype(np.float32)
    try:
        solid = px.Solid(PointCloud(single, name="coarse"))
    except px.PhyxelError as error:
        assert re.search("precision|digits|float|origin", str(error)), str(error)
        return
    assert solid.volume == pytest.approx(4 / 3 * np.pi * 1000, rel=0.02)


@pytest.mark.parametrize(("bad", "share"), [(0.0, 0.05), (np.nan, 0.05), (np.inf, 0.05), (0.0, 1.0), (np.nan, 1.0)])
def test_normals_that_are_no_directions(bad, share):
    """They count as missing: the solid is right."""
    cloud, truth = points_of("sphere", 1000), truth_of("sphere")
    normals = cloud.normals.copy()
    normals[np.random.default_rng(0).random(len(cloud)) < share] = bad
    solid = px.Solid(PointCloud(cloud.positions, normals=normals, name="partly"))
    assert_volume(solid, truth, 5e-3)
    assert_sides(solid, truth, 0.999, 0.005, 30_000)
    assert np.abs(np.linalg.norm(solid.skin.normals, axis=1) - 1).max() < 1e-3


def test_normals_of_any_length():
    """Only their direction counts."""
    cloud, truth = points_of("sphere", 1000), truth_of("sphere")
    lengths = 10 ** np.random.default_rng(0).uniform(-6, 6, (len(cloud), 1))
    solid = px.Solid(PointCloud(cloud.positions, normals=(lengths * cloud.normals).astype(np.float32), name="long"))
    assert_volume(solid, truth, 5e-3)
    assert_sides(solid, truth, 0.999, 0.005, 30_000)


GOOD = ball(500).positions
BROKEN = {
    "nan-position": {"positions": np.where(np.arange(500)[:, None] == 7, np.nan, GOOD)},
    "inf-position": {"positions": np.where(np.arange(500)[:, None] == 7, np.inf, GOOD)},
    "two-columns": {"positions": GOOD[:, :2]},
    "four-columns": {"positions": np.concatenate([GOOD, GOOD[:, :1]], axis=1)},
    "flat-array": {"positions": GOOD.ravel()},
    "no-points": {"positions": np.zeros((0, 3))},
    "three-points": {"positions": GOOD[:3]},
    "few-normals": {"positions": GOOD, "normals": np.zeros((499, 3), np.float32)},
    "flat-normals": {"positions": GOOD, "normals": np.zeros((500, 2), np.float32)},
    "face-of-no-point": {"positions": GOOD, "faces": np.array([[0, 1, 500]], np.int32)},
    "negative-face": {"positions": GOOD, "faces": np.array([[0, 1, -1]], np.int32)},
    "quads": {"positions": GOOD, "faces": np.zeros((10, 4), np.int32)},
    "words": {"positions": np.array([["a", "b", "c"]] * 10)},
}


@pytest.mark.parametrize("name", BROKEN)
def test_broken_arrays_are_refused(name):
    """With the name of the cloud, never with an error from within NumPy."""
    with pytest.raises(px.PhyxelError, match=name):
        px.Solid(PointCloud(**BROKEN[name], name=name))


def test_integers_and_lists_are_numbers_too():
    """Positions as integers (millimetres, say) are what they are."""
    whole = np.round(1000 * ball(2000).positions).astype(np.int64)
    assert px.Solid(PointCloud(whole, name="whole")).volume == pytest.approx(4 / 3 * np.pi * 1e9, rel=5e-3)


@pytest.mark.parametrize("option", [{"tolerance": 0}, {"depth": 0}, {"depth": 99}, {"closing": -1}, {"closing": "a"}])
def test_options_out_of_range(option):
    refused(ball(200), next(iter(option)), **option)


def test_files_name_themselves(tmp_path):
    """A file that encloses nothing is refused by its name."""
    path = tmp_path / "sheet.xyz"
    np.savetxt(path, NO_SOLID["wavy-sheet"])
    with pytest.raises(px.PhyxelError, match="sheet"):
        px.Solid(px.load(path))


def test_nodes_of_a_scan():
    """A solid from points serves what comes after it: nodes inside or on the surface that share the volume."""
    solid = px.Solid(points_of("bear", 2000))
    nodes = solid.sample(300)
    assert solid.distance(nodes.positions).max() < 1e-4 * 0.6
    assert nodes.volumes.sum() == pytest.approx(solid.volume, rel=1e-9)
