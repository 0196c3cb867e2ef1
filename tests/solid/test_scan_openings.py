"""Solids from points of several bodies, with cavities and with openings."""

import numpy as np
import pytest

import phyxel as px
from phyxel.points.cloud import PointCloud
from tests.solid.scans import (
    POINTS,
    Truth,
    assert_bounds,
    assert_sides,
    assert_volume,
    ball,
    balls,
    bare,
    joined,
    points_of,
    refused,
    truth_of,
)

# --- several bodies and cavities ----------------------------------------------------------------------------------

INNER, OUTER = 0.5, 1.0


def hollow(x: np.ndarray) -> np.ndarray:
    r = np.linalg.norm(x, axis=1)
    return np.maximum(r - OUTER, INNER - r)


CREASED = pytest.mark.xfail(
    strict=True,
    reason="where two surfaces cross, signs handed on from point to point take the wrong turn: a cavity is seen",
)


@pytest.mark.parametrize("kind", ["inward", "outward", "bare"])
def test_a_shell_within_a_shell(kind):
    """A surface inside another one bounds a cavity if its normals say so. If they say the opposite, or nothing, it may
    be a cavity or a body in a body, but then a whole one: with no other volume, and `buried` tells which."""
    cloud = joined(ball(3000, OUTER), ball(1000, INNER), flipped=(1,) if kind == "inward" else ())
    solid = px.Solid(bare(cloud) if kind == "bare" else cloud)
    full = 4 / 3 * np.pi * OUTER**3
    box = np.array([-OUTER] * 3), np.array([OUTER] * 3)
    if kind == "inward" or solid.findings.buried == 0:
        truth = Truth(hollow, *box, full - 4 / 3 * np.pi * INNER**3)
    else:
        assert solid.findings.buried == 1000
        truth = Truth(balls((OUTER, (0, 0, 0))), *box, full)
    assert_volume(solid, truth, 5e-3)
    assert_sides(solid, truth, 0.999, 0.005, 30_000)


@pytest.mark.parametrize(
    ("apart", "kind"),
    [
        (2.3, "bare"),
        (2.3, "one-flipped"),
        (4.0, "normals"),
        (1.5, "normals"),
        pytest.param(1.5, "bare", marks=CREASED),
        pytest.param(1.5, "one-flipped", marks=CREASED),
    ],
)
def test_two_bodies(apart, kind):
    """Disjoint balls are both there; overlapping ones are their union, and the points within it are `buried`.

    Without normals the crease where two balls cross is blunt by a spacing (3 %): 1 % of volume, 99.7 % of sides."""
    other = (apart, 0.2, 0.0)
    cloud = joined(ball(2500, 1.0), ball(2000, 0.9, other), flipped=(1,) if kind == "one-flipped" else ())
    distance = balls((1.0, (0, 0, 0)), (0.9, other))
    x = np.random.default_rng(0).uniform((-1, -1, -1), (apart + 0.9, 1.1, 1), (400_000, 3))
    volume = (distance(x) < 0).mean() * (apart + 1.9) * 2.1 * 2
    truth = Truth(distance, np.array([-1, -1, -1.0]), np.array([apart + 0.9, 1.1, 1.0]), float(volume))
    solid = px.Solid(bare(cloud) if kind == "bare" else cloud)
    if apart < 1.9:
        covered = int((distance(cloud.positions) < -0.02).sum())
        assert covered <= solid.findings.buried + solid.findings.outliers < covered + 200
    else:
        assert len(solid.skin) == len(cloud)
    assert_volume(solid, truth, 0.01)
    assert_sides(solid, truth, 0.997, 0.02, 30_000)
    assert_bounds(solid, truth, 0.01)


# --- openings -----------------------------------------------------------------------------------------------------


def cut(cloud: PointCloud, kept: np.ndarray) -> PointCloud:
    return PointCloud(cloud.positions[kept], normals=cloud.normals[kept], name="open")


@pytest.mark.parametrize("change", [lambda c: c, bare], ids=["normals", "bare"])
def test_small_holes_are_closed_and_counted(change):
    """A cap of 5 % of a sphere's area is 0.7 % of its volume: closed flat or round, the volume keeps to 1 %. Two holes
    are two, and the share made up is theirs within a third."""
    whole = ball(POINTS)
    y = whole.positions[:, 1]
    truth = Truth(balls((1.0, (0, 0, 0))), -np.ones(3), np.ones(3), 4 / 3 * np.pi)
    for kept, holes in ((y < 0.9, 1), (np.abs(y) < 0.95, 2)):
        solid = px.Solid(change(cut(whole, kept)))
        assert solid.findings.holes == holes
        assert solid.findings.closed_share == pytest.approx(0.05, rel=0.35)
        assert_volume(solid, truth, 0.01)
        assert_sides(solid, truth, 0.99, 0.06, 30_000)


@pytest.mark.parametrize("change", [lambda c: c, bare], ids=["normals", "bare"])
def test_a_patch_missing_from_the_bear(change):
    """The back of the bear, 5 % of its area: closed, one hole, volume within 1 %. A film across is flatter than a back:
    up to 4 % of the size."""
    cloud, truth = points_of("bear"), truth_of("bear")
    from_back = np.linalg.norm(cloud.positions - np.array([0, 0.25, -0.12]), axis=1)
    solid = px.Solid(change(cut(cloud, from_back > np.quantile(from_back, 0.05))))
    assert solid.findings.holes == 1
    assert 0.03 < solid.findings.closed_share < 0.08
    assert_volume(solid, truth, 0.01)
    assert_sides(solid, truth, 0.99, 0.04, 30_000)


@pytest.mark.parametrize(
    ("name", "change"),
    [("box", lambda c: c), ("box", bare), ("bust", bare)],
    ids=["box", "box-bare", "bust-bare"],
)
def test_an_object_without_its_base_is_closed_flat(name, change):
    """What stood on the table has no points below: a flat base is the body as it is. 3 % of the volume, as the rim is
    known to one spacing and the film across it bulges; 98 % of the sides."""
    cloud, truth = points_of(name), truth_of(name)
    kept = cloud.positions[:, 1] > truth.lower[1] + 1e-3 * truth.size
    solid = px.Solid(change(cut(cloud, kept)))
    assert solid.findings.holes == 1
    assert 0.05 < solid.findings.closed_share < 0.25
    assert_volume(solid, truth, 0.03)
    assert_sides(solid, truth, 0.98, 0.05, 30_000)


@pytest.mark.parametrize("change", [lambda c: c, bare], ids=["normals", "bare"])
def test_a_large_opening_is_refused_by_its_size(change):
    """A hemisphere lacks a third of its closed surface: refused with the word `closing` where less is allowed; else it
    is half a ball within 5 %, as the film across its equator bulges."""
    whole = ball(2 * POINTS)
    half = change(cut(whole, whole.positions[:, 1] > 0))
    refused(half, "closing", closing=0.25)
    solid = px.Solid(half, closing=0.5)
    truth = Truth(
        lambda x: np.maximum(np.linalg.norm(x, axis=1) - 1, -x[:, 1]),
        np.array([-1.0, 0, -1]),
        np.ones(3),
        2 / 3 * np.pi,
    )
    assert_volume(solid, truth, 0.05)
    assert_sides(solid, truth, 0.97, 0.06, 30_000)


def test_closing_is_obeyed():
    """A box without its base lacks a sixth: 0.1 refuses, 0.2 does not."""
    cloud = points_of("box")
    kept = cloud.positions[:, 1] > -0.2495
    refused(cut(cloud, kept), "closing", closing=0.1)
    assert px.Solid(cut(cloud, kept), closing=0.2).findings.holes == 1
