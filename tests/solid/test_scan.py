"""Solids from points alone, and from meshes as they come: what a scan must become, or be refused for.

Lengths are shares of the size, the largest extent. Shapes have POINTS points, 2 to 4 % of the size apart.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

import numpy as np
import pytest
import warp as wp
from scipy.spatial import cKDTree

import phyxel as px
from phyxel.errors import SolidError
from phyxel.points.cloud import PointCloud

POINTS = 3000
MANY = 100_000
NAMES = {"sphere": 8000, "torus": 8000, "box": 8000, "bear": 20_000}
"""Points for the strictest tests: the smile of the bear is 1 cm wide."""


# --- what is tested, and the truth about it -----------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Truth:
    """A body whose signed distance is known."""

    distance: Callable
    lower: np.ndarray
    upper: np.ndarray
    volume: float

    @cache  # noqa: B019 (a few truths, and the bear's distance is slow)
    def probes(self, count: int) -> tuple[np.ndarray, np.ndarray]:
        """Random positions in the bounding box and their distances, the same ones each time."""
        x = np.random.default_rng(7).uniform(self.lower, self.upper, (count, 3))
        return x, self.distance(x)

    @property
    def size(self) -> float:
        return float((self.upper - self.lower).max())


@cache
def truth_of(name: str) -> Truth:
    shape = px.load(name, points=8).shape
    return Truth(shape.distance, np.array(shape.lower), np.array(shape.upper), px.Solid(px.load(name, points=8)).volume)


@cache
def points_of(name: str, count: int = POINTS) -> PointCloud:
    """Positions and normals of a built-in shape, and nothing else."""
    cloud = px.load(name, points=count)
    return PointCloud(cloud.positions, normals=cloud.normals, name=name)


def ball(count: int, radius: float = 1.0, center=(0.0, 0.0, 0.0), name: str = "ball") -> PointCloud:
    """Points on a golden spiral: even, without pattern."""
    i = np.arange(count) + 0.5
    y, turn = 1 - 2 * i / count, np.pi * (1 + 5**0.5) * i
    normals = np.stack([np.sqrt(1 - y * y) * np.cos(turn), y, np.sqrt(1 - y * y) * np.sin(turn)], axis=1)
    return PointCloud(radius * normals + np.array(center), normals=normals.astype(np.float32), name=name)


def joined(*clouds: PointCloud, flipped: tuple = ()) -> PointCloud:
    """Several clouds as one; the normals of those in `flipped` are turned."""
    normals = [-c.normals if i in flipped else c.normals for i, c in enumerate(clouds)]
    return PointCloud(np.concatenate([c.positions for c in clouds]), normals=np.concatenate(normals), name="joined")


def bare(cloud: PointCloud) -> PointCloud:
    """Positions alone."""
    return PointCloud(cloud.positions, name=cloud.name)


def balls(*parts) -> Callable:
    """Signed distance (the sign is exact) of the union of (radius, center)."""
    return lambda x: np.min([np.linalg.norm(x - np.array(c), axis=1) - r for r, c in parts], axis=0)


def assert_sides(solid, truth: Truth, share: float, clear: float, count: int = MANY) -> None:
    """In the bounding box `share` of all points lie on the right side, and all that are `clear` (in sizes) of the
    surface do; far outside none is inside."""
    rng = np.random.default_rng(7)
    x, exact = truth.probes(count)
    wrong = solid.inside(x) != (exact < 0)
    assert wrong.mean() <= 1 - share
    assert np.abs(exact[wrong]).max(initial=0) <= clear * truth.size
    away = rng.normal(size=(2000, 3))
    away *= (rng.uniform(1, 30, 2000) * truth.size / np.linalg.norm(away, axis=1))[:, None]
    assert not solid.inside(0.5 * (truth.lower + truth.upper) + away).any()


def assert_volume(solid, truth: Truth, within: float) -> None:
    """By counting: a quarter of the time of `volume`, and as good, since the body is counted with the same points."""
    x, exact = truth.probes(30_000)
    assert solid.inside(x).sum() == pytest.approx((exact < 0).sum(), rel=within)


def assert_bounds(solid, truth: Truth, within: float) -> None:
    """The bounding box is that of the body."""
    assert np.abs(solid.lower - truth.lower).max() < within * truth.size
    assert np.abs(solid.upper - truth.upper).max() < within * truth.size


def near_surface(cloud: PointCloud, truth: Truth, band: float, count: int, seed: int = 3) -> np.ndarray:
    """Random positions up to `band` sizes from the surface."""
    rng = np.random.default_rng(seed)
    picked = rng.integers(0, len(cloud), count)
    offset = rng.uniform(-band, band, (count, 1)) * truth.size
    return cloud.positions[picked] + offset * cloud.normals[picked]


def refused(cloud: PointCloud, *words: str, **options) -> str:
    """Building must fail with a `PhyxelError` that begins with the cloud's name and has one of the words in it."""
    with pytest.raises(px.PhyxelError) as caught:
        px.Solid(cloud, **options)
    text = str(caught.value)
    assert text.startswith(cloud.name), text
    assert re.search("|".join(words), text), text
    return text


# --- 1. sampled shapes with normals -------------------------------------------------------------------------------


@pytest.fixture(scope="module", params=NAMES)
def sampled(request):
    cloud = points_of(request.param, NAMES[request.param])
    return px.Solid(cloud), cloud, truth_of(request.param)


def box_edge_distance(x: np.ndarray) -> np.ndarray:
    """Distance from the nearest edge of the built-in cube."""
    off = np.sort(np.abs(np.abs(x) - 0.25), axis=1)
    return np.hypot(off[:, 0], off[:, 1])


def test_zero_set_of_a_sampled_shape(sampled):
    """Within 0.1 % of the size, 0.5 % at sharp edges: those of the box, within one spacing of the points."""
    solid, cloud, truth = sampled
    y = solid.project(near_surface(cloud, truth, 0.02, 20_000))
    error = np.abs(truth.distance(y)) / truth.size
    spacing = np.sqrt(6 / len(cloud))
    smooth = box_edge_distance(y) > spacing * truth.size if cloud.name == "box" else np.ones(len(y), bool)
    assert error[smooth].max() < 1e-3
    assert error.max() < 5e-3


def test_the_zero_set_reaches_every_point(sampled):
    """The other way round: no sampled point is farther from the zero set than 0.1 % of the size."""
    solid, cloud, truth = sampled
    assert np.linalg.norm(solid.project(cloud.positions) - cloud.positions, axis=1).max() < 1e-3 * truth.size
    assert np.abs(solid.distance(cloud.positions)).max() < 1e-3 * truth.size


def test_volume_of_a_sampled_shape(sampled):
    """Within 0.5 %."""
    solid, _, truth = sampled
    assert solid.volume == pytest.approx(truth.volume, rel=5e-3)


def smooth_places(x: np.ndarray, cloud: PointCloud, around: float) -> np.ndarray:
    """Which positions have one nearest place on the surface: that of places `around` them lies close by."""
    tree = cKDTree(cloud.positions)
    spacing = np.median(tree.query(cloud.positions[:500], k=2)[0][:, 1])
    stencil = around * np.concatenate([np.eye(3), -np.eye(3)])
    nearest = cloud.positions[tree.query(x[:, None] + stencil)[1]]
    spread = np.linalg.norm(nearest - nearest.mean(axis=1, keepdims=True), axis=2).max(axis=1)
    return spread < 1.4 * around + spacing


def test_gradient_of_a_sampled_shape(sampled):
    """Of length 1 within 5 % in a band of 5 % of the size, as it is given and by central differences of the distance.

    The true distance has kinks where two places of the surface are equally near, and beside the box's edges: within 3 %
    of the size of them, and where the distance to the nearest of the points themselves has a kink, the differences are
    left out. Of the rest 0.5 % may fall on a seam between two pieces of the fit."""
    solid, cloud, truth = sampled
    x = near_surface(cloud, truth, 0.05, 10_000)
    given = solid.gradient(x)
    assert np.abs(np.linalg.norm(given, axis=1) - 1).max() < 0.05
    step = 2e-3 * truth.size
    steps = step * np.eye(3)
    slope = np.stack([solid.distance(x + s) - solid.distance(x - s) for s in steps], axis=1) / (2 * step)
    smooth = smooth_places(x, cloud, 0.03 * truth.size)
    if cloud.name == "box":
        inner = np.sort(0.25 - np.abs(x), axis=1)
        smooth &= (inner[:, 1] - inner[:, 0] > 4 * step) & (box_edge_distance(x) > 0.02 * truth.size)
    tree = cKDTree(cloud.positions)
    brute = np.stack([tree.query(x + s)[0] - tree.query(x - s)[0] for s in steps], axis=1) / (2 * step)
    near = np.abs(solid.distance(x)) < 0.01 * truth.size  # there the points' own spacing is seen
    smooth &= near | (np.abs(np.linalg.norm(brute, axis=1) - 1) < 0.05)
    assert smooth.mean() > 0.6
    off = np.abs(np.linalg.norm(slope, axis=1) - 1)[smooth]
    assert (off < 0.05).mean() > 0.995
    aligned = (slope * given).sum(axis=1)[smooth]
    assert (aligned > 0.9).mean() > 0.995


def test_sides_of_a_sampled_shape(sampled):
    """99.9 % of the bounding box right, nothing wrong farther than 0.5 % from the surface, nothing inside far away."""
    solid, _, truth = sampled
    assert_sides(solid, truth, 0.999, 0.005)
    assert_bounds(solid, truth, 0.01)


def test_distance_far_outside_is_that_to_the_surface(sampled):
    """Within 0.1 % of the size up to 30 sizes away; 1.5 % at the corners of the box, half a spacing.

    The bear's own function is no distance so far out: there the nearest of its points is, within 0.5 %, as its ears are
    round between them."""
    solid, cloud, truth = sampled
    rng = np.random.default_rng(5)
    away = rng.normal(size=(300, 3))
    away *= (rng.uniform(1, 30, 300) * truth.size / np.linalg.norm(away, axis=1))[:, None]
    exact = cKDTree(cloud.positions).query(away)[0] if cloud.name == "bear" else truth.distance(away)
    allowed = {"box": 0.015, "bear": 5e-3}.get(cloud.name, 1e-3)
    assert np.abs(solid.distance(away) - exact).max() < allowed * truth.size


# --- 5. laws of the distance --------------------------------------------------------------------------------------


def test_projection_lands_on_the_surface_and_stays(sampled):
    """On the zero set within 1e-4 of the size (single precision and the fit's own convergence), and so again. The way
    there is the distance within 0.2 % for 98 %: the others are near kinks, where the grid of distances is round."""
    solid, cloud, truth = sampled
    x = near_surface(cloud, truth, 0.1, 5000)
    y = solid.project(x)
    again = solid.project(y)
    assert np.abs(solid.distance(y)).max() < 1e-4 * truth.size
    assert np.linalg.norm(again - y, axis=1).max() < 1e-4 * truth.size
    assert np.quantile(np.abs(np.linalg.norm(y - x, axis=1) - np.abs(solid.distance(x))), 0.98) < 2e-3 * truth.size


def test_distance_is_lipschitz(sampled):
    """|d(a) − d(b)| ≤ 1.05 |a − b|, and what the grid that far distances are kept on rounds off a ridge: at a right
    angle a quarter of a cell of 1/64 of the size."""
    solid, _, truth = sampled
    rng = np.random.default_rng(11)
    a = rng.uniform(truth.lower - 0.2 * truth.size, truth.upper + 0.2 * truth.size, (20_000, 3))
    b = a + rng.normal(size=a.shape) * truth.size * 10.0 ** rng.uniform(-3, -0.5, (len(a), 1))
    change = np.abs(solid.distance(a) - solid.distance(b))
    assert (change <= 1.05 * np.linalg.norm(a - b, axis=1) + truth.size / 256).all()


def test_distance_and_inside_agree(sampled):
    """`inside` is the sign of `distance`, one by one or all at once, and in any order."""
    solid, _, truth = sampled
    x = np.random.default_rng(13).uniform(truth.lower, truth.upper, (2000, 3))
    d = solid.distance(x)
    assert ((d < 0) == solid.inside(x)).all()
    assert (solid.distance(x[::-1])[::-1] == d).all()
    assert (np.concatenate([solid.distance(p[None]) for p in x[:20]]) == d[:20]).all()


def test_skin_has_outward_normals(sampled):
    """The skin is the cloud, with normals within 5° of the truth away from edges."""
    solid, cloud, truth = sampled
    assert len(solid.skin) == len(cloud)
    step = 1e-5 * truth.size
    exact = np.stack(
        [truth.distance(solid.skin.positions + s) - truth.distance(solid.skin.positions - s) for s in step * np.eye(3)],
        axis=1,
    )
    exact /= np.linalg.norm(exact, axis=1, keepdims=True)
    smooth = box_edge_distance(solid.skin.positions) > 0.03 if cloud.name == "box" else np.ones(len(cloud), bool)
    assert ((solid.skin.normals * exact).sum(axis=1)[smooth] > np.cos(np.radians(5))).mean() > 0.995


@pytest.mark.parametrize("prepare", [lambda c: c, bare], ids=["normals", "bare"])
def test_two_builds_give_the_same_bits(prepare):
    cloud = prepare(points_of("bear", 800))
    one, other = px.Solid(cloud), px.Solid(cloud)
    x = np.random.default_rng(0).uniform(one.lower, one.upper, (2000, 3))
    assert (one.distance(x) == other.distance(x)).all()
    assert (one.project(x) == other.project(x)).all()
    assert one.volume == other.volume
    assert (one.skin.normals == other.skin.normals).all()


def test_legs_of_the_bear_do_not_see_each_other():
    """Segments from one leg to the other cross the gap between them, and both directions say so. Where the gap is less
    than 8 mm to either side of a segment some 200 mm long it may be overlooked: it is shorter than two steps."""
    truth, solid = truth_of("bear"), px.Solid(points_of("bear"))
    rng = np.random.default_rng(0)
    one = rng.uniform((0.05, 0.02, 0.04), (0.12, 0.06, 0.12), (2000, 3))
    other = one * (-1, 1, 1) + rng.normal(size=one.shape) * 0.01
    along = np.linspace(0, 1, 41)[:, None, None]
    highest = truth.distance(((1 - along) * one + along * other).reshape(-1, 3)).reshape(41, -1).max(axis=0)
    ends = np.maximum(truth.distance(one), truth.distance(other)) < -0.01
    crossing = ends & (highest > 0.008)
    assert crossing.sum() > 200
    assert not solid.sees(one, other)[crossing].any()
    assert (solid.sees(one, other) == solid.sees(other, one)).all()
    up = one + np.array([0, 0.03, 0])
    within = (truth.distance(one) < -0.02) & (truth.distance(up) < -0.02) & (truth.distance(0.5 * (one + up)) < -0.02)
    assert within.sum() > 100
    assert solid.sees(one, up)[within].all()


def test_inside_a_convex_body_everything_sees_everything():
    """Ends a thousandth of the size inside."""
    for name in ("sphere", "box"):
        truth, solid = truth_of(name), px.Solid(points_of(name, 2000))
        x = np.random.default_rng(1).uniform(truth.lower, truth.upper, (6000, 3))
        x = x[truth.distance(x) < -2e-3 * truth.size]
        one, other = x[: len(x) // 2], x[len(x) // 2 : 2 * (len(x) // 2)]
        assert solid.sees(one, other).all()
        assert solid.sees(one, one).all()


# --- 2. what real scans do to points ------------------------------------------------------------------------------


def random_signs(cloud: PointCloud) -> PointCloud:
    signs = np.where(np.random.default_rng(2).random((len(cloud), 1)) < 0.5, -1, 1).astype(np.float32)
    return PointCloud(cloud.positions, normals=signs * cloud.normals, name=cloud.name)


def inside_out(cloud: PointCloud) -> PointCloud:
    return PointCloud(cloud.positions, normals=-cloud.normals, name=cloud.name)


@pytest.mark.parametrize("name", ["box", "bear"])
@pytest.mark.parametrize("change", [bare, inside_out, random_signs], ids=["bare", "inside-out", "random-signs"])
def test_normals_that_are_missing_or_wrong(name, change):
    """As with normals, but what is finer than the spacing of the points (2 to 4 % of the size: edges of the box, the
    face of the bear) is only known to half of that without normals: 1.5 %, and 0.4 % of the sides."""
    cloud, truth = points_of(name), truth_of(name)
    solid = px.Solid(change(cloud))
    assert solid.findings.normals_made == (change is bare)
    exact_normals = change is inside_out
    assert_volume(solid, truth, 5e-3)
    assert_sides(solid, truth, 0.998 if exact_normals else 0.996, 0.015, 30_000)
    y = solid.project(near_surface(cloud, truth, 0.02, 5000))
    error = np.abs(truth.distance(y)) / truth.size
    smooth = box_edge_distance(y) > 0.12 * truth.size if name == "box" else np.ones(len(y), bool)
    assert np.quantile(error[smooth], 0.95) < (1e-3 if name == "box" else 2e-3)
    assert error.max() < 0.015
    outward = (solid.skin.normals * cloud.normals).sum(axis=1)
    assert (outward > 0).mean() > 0.999


@pytest.mark.parametrize("change", [lambda c: c, bare], ids=["normals", "bare"])
def test_points_given_twice_or_twenty_times(change):
    """Each place counts once: the solid is as right as without the copies."""
    cloud, truth = points_of("bear"), truth_of("bear")
    twenty = np.concatenate([np.arange(len(cloud)), np.repeat(np.arange(0, len(cloud), 25), 19)])
    order = twenty if change is bare else np.tile(np.arange(len(cloud)), 2)
    solid = px.Solid(change(cloud.part(order)))
    assert solid.findings.duplicates == len(order) - len(cloud)
    assert_volume(solid, truth, 5e-3)
    assert_sides(solid, truth, 0.996, 0.015, 30_000)


def test_nearly_equal_points():
    """The same, when a copy is off by a millionth of the size and its normal by a degree."""
    cloud, truth = points_of("bear"), truth_of("bear")
    rng = np.random.default_rng(4)
    copy = cloud.positions + 1e-6 * truth.size * rng.normal(size=cloud.positions.shape)
    solid = px.Solid(PointCloud(np.concatenate([cloud.positions, copy]), name="twice"))
    assert_volume(solid, truth, 5e-3)
    assert_sides(solid, truth, 0.997, 0.015, 30_000)


def stray(truth: Truth, count: int, reach: float, seed: int = 6) -> np.ndarray:
    """Points in a box `reach` times the size, none nearer to the surface than 10 % of it."""
    rng = np.random.default_rng(seed)
    middle = 0.5 * (truth.lower + truth.upper)
    x = middle + rng.uniform(-0.5, 0.5, (20 * count, 3)) * reach * truth.size
    return x[np.abs(truth.distance(x)) > 0.1 * truth.size][:count]


def cluster(truth: Truth, count: int) -> np.ndarray:
    """A speck of dust three sizes away, 2 % large."""
    return truth.upper + 3 * truth.size + 0.01 * truth.size * np.random.default_rng(8).normal(size=(count, 3))


@pytest.mark.parametrize("change", [lambda c: c, bare], ids=["normals", "bare"])
@pytest.mark.parametrize(
    "outliers",
    [
        lambda t: stray(t, POINTS // 1000, 3),
        lambda t: stray(t, POINTS // 100, 3),
        lambda t: stray(t, POINTS // 100, 1),
        lambda t: cluster(t, 25),
    ],
    ids=["0.1%", "1%", "1%-near", "cluster"],
)
def test_outliers_are_left_out_and_reported(change, outliers):
    """Points at least 10 % of the size off the surface (four spacings) belong to nothing: 95 % of them are found, at
    most 0.2 % of the good ones with them, none is in the skin or stretches the bounding box, and the solid is right."""
    cloud, truth = points_of("bear"), truth_of("bear")
    off = outliers(truth)
    normals = np.random.default_rng(9).normal(size=off.shape)
    normals /= np.linalg.norm(normals, axis=1, keepdims=True)
    dirty = PointCloud(
        np.concatenate([cloud.positions, off]),
        normals=np.concatenate([cloud.normals, normals.astype(np.float32)]),
        name="dirty",
    )
    solid = px.Solid(change(dirty))
    assert 0.95 * len(off) <= solid.findings.outliers + solid.findings.buried <= len(off) + 0.002 * len(cloud)
    assert len(solid.skin) == len(dirty) - solid.findings.outliers - solid.findings.buried
    assert np.abs(truth.distance(solid.skin.positions)).max() < 1e-3 * truth.size
    assert_bounds(solid, truth, 0.01)
    assert_volume(solid, truth, 5e-3)
    assert_sides(solid, truth, 0.997, 0.015, 30_000)


@pytest.mark.parametrize("change", [lambda c: c, bare], ids=["normals", "bare"])
@pytest.mark.parametrize("name", ["torus", "bear"])
def test_uneven_density(name, change):
    """Ten times fewer points on one half. There the spacing is 6 % of the size, with random gaps twice as wide: some
    count as openings and are closed flat, but the volume keeps to 2 %, and 98 % of the sides are right."""
    cloud, truth = points_of(name, 2 * POINTS), truth_of(name)
    kept = (cloud.positions[:, 0] > 0) | (np.random.default_rng(1).random(len(cloud)) < 0.1)
    solid = px.Solid(change(cloud.part(np.flatnonzero(kept))))
    assert solid.findings.closed_share < 0.1
    assert_volume(solid, truth, 0.02)
    assert_sides(solid, truth, 0.98, 0.05, 30_000)


@pytest.mark.parametrize(
    ("name", "share", "change"),
    [("sphere", 0.99, bare), ("torus", 0.98, bare), ("bear", 0.975, bare), ("bear", 0.975, lambda c: c)],
    ids=["sphere", "torus", "bear", "bear-normals"],
)
def test_noise(name, share, change):
    """Gaussian, 1 % of the size in each coordinate: volume within 2 %, nothing wrong deeper than 3 %, the noise found.

    99 % of the sides are asked for with enough points. Here these are twice as far apart as the noise is wide: a
    quadratic through some 30 of them is known to 0.4 of the noise, which is 2 % of a box around so thin a body."""
    cloud, truth = points_of(name), truth_of(name)
    noise = np.random.default_rng(3).normal(size=cloud.positions.shape) * 0.01 * truth.size
    solid = px.Solid(change(PointCloud(cloud.positions + noise, normals=cloud.normals, name="noisy")))
    assert_volume(solid, truth, 0.02)
    assert_sides(solid, truth, share, 0.03, 30_000)
    assert 0.005 < solid.findings.noise < 0.02


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


# --- meshes -------------------------------------------------------------------------------------------------------


def box_mesh(center=(0.0, 0.0, 0.0), half=(1.0, 1.0, 1.0), cells: int = 1) -> tuple[np.ndarray, np.ndarray]:
    """Vertices and faces of a closed box, outward, `cells` to an edge."""
    vertices, faces = [], []
    ticks = np.linspace(-1, 1, cells + 1)
    for axis in range(3):
        for side in (-1, 1):
            first = sum(len(v) for v in vertices)
            u, v = (g.ravel() for g in np.meshgrid(ticks, ticks, indexing="ij"))
            corner = np.empty((len(u), 3))
            corner[:, axis], corner[:, (axis + 1) % 3], corner[:, (axis + 2) % 3] = side, u, v
            vertices.append(corner)
            i, j = (g.ravel() for g in np.meshgrid(np.arange(cells), np.arange(cells), indexing="ij"))
            a = first + i * (cells + 1) + j
            b, c, d = a + cells + 1, a + cells + 2, a + 1
            quads = np.concatenate([np.stack([a, b, c], axis=1), np.stack([a, c, d], axis=1)])
            faces.append(quads if side > 0 else quads[:, ::-1])
    x = np.concatenate(vertices)
    unique, index = np.unique(x.round(12), axis=0, return_inverse=True)
    return unique * np.array(half) + np.array(center), index.ravel()[np.concatenate(faces)].astype(np.int32)


def together(*meshes) -> tuple[np.ndarray, np.ndarray]:
    firsts = np.cumsum([0] + [len(v) for v, _ in meshes])
    return (
        np.concatenate([v for v, _ in meshes]),
        np.concatenate([f + first for (_, f), first in zip(meshes, firsts, strict=False)]).astype(np.int32),
    )


def turned(mesh) -> tuple[np.ndarray, np.ndarray]:
    return mesh[0], np.ascontiguousarray(mesh[1][:, ::-1])


def soup(mesh) -> tuple[np.ndarray, np.ndarray]:
    """No two faces share a vertex."""
    return mesh[0][mesh[1]].reshape(-1, 3), np.arange(mesh[1].size, dtype=np.int32).reshape(-1, 3)


def any_way(mesh) -> tuple[np.ndarray, np.ndarray]:
    """Each face wound at random."""
    flip = np.random.default_rng(1).random(len(mesh[1])) < 0.5
    return mesh[0], np.where(flip[:, None], mesh[1][:, ::-1], mesh[1])


def boxes(*parts) -> Callable:
    """Signed distance (the sign is exact) of the union of (center, half)."""

    def distance(x):
        beyond = [np.abs(x - np.array(c)) - np.array(h) for c, h in parts]
        return np.min([np.linalg.norm(np.maximum(b, 0), axis=1) + np.minimum(b.max(axis=1), 0) for b in beyond], axis=0)

    return distance


ONE = ((0.0, 0.0, 0.0), (1.0, 1.0, 1.0))
NEAR = ((1.0, 0.5, 0.25), (1.0, 1.0, 1.0))
APART = ((3.0, 0.0, 0.0), (1.0, 1.0, 1.0))
WITHIN = ((0.1, 0.0, 0.0), (0.4, 0.4, 0.4))
FINE = 6
MESHES = {
    "closed": (box_mesh(*ONE), (ONE,), 8),
    "inside-out": (turned(box_mesh(*ONE)), (ONE,), 8),
    "soup": (soup(box_mesh(*ONE)), (ONE,), 8),
    "soup-inside-out": (turned(soup(box_mesh(*ONE))), (ONE,), 8),
    "any-way": (any_way(box_mesh(*ONE)), (ONE,), 8),
    "any-way-soup": (soup(any_way(box_mesh(*ONE, cells=2))), (ONE,), 8),
    "overlapping": (together(box_mesh(*ONE), box_mesh(*NEAR)), (ONE, NEAR), 16 - 1 * 1.5 * 1.75),
    "overlapping-one-turned": (together(box_mesh(*ONE), turned(box_mesh(*NEAR))), (ONE, NEAR), 16 - 1 * 1.5 * 1.75),
    "apart": (together(box_mesh(*ONE), box_mesh(*APART)), (ONE, APART), 16),
    "apart-one-turned": (together(box_mesh(*ONE), turned(box_mesh(*APART))), (ONE, APART), 16),
    "apart-any-way": (any_way(together(box_mesh(*ONE), box_mesh(*APART))), (ONE, APART), 16),
}


@pytest.mark.parametrize("kind", MESHES)
def test_meshes_as_they_come(kind):
    """A closed mesh is exact, whichever way its faces are wound: volume within 0.2 % (quadrature), every side right,
    projections on it. Distances far away are kept on a grid: 0.5 % of the size where they have kinks."""
    (vertices, faces), parts, volume = MESHES[kind]
    distance = boxes(*parts)
    truth = Truth(distance, vertices.min(axis=0), vertices.max(axis=0), volume)
    solid = px.Solid(PointCloud(vertices, faces=faces, name=kind))
    assert solid.volume == pytest.approx(volume, rel=2e-3)
    assert_sides(solid, truth, 1, 1e-6, 30_000)
    x = np.random.default_rng(2).uniform(truth.lower - 0.3, truth.upper + 0.3, (5000, 3))
    outside = distance(x) > 0
    assert np.abs(solid.distance(x) - distance(x))[outside].max() < 5e-3 * truth.size
    y = solid.project(x)
    assert np.abs(distance(y)).max() < 1e-5
    bare = distance(solid.skin.positions) > -1e-6
    looks = (solid.skin.positions + 1e-3 * truth.size * solid.skin.normals)[bare]
    assert not solid.inside(looks).any()


@pytest.mark.parametrize("turn", [(False, True), (True, False), (False, False)])
def test_a_mesh_with_a_cavity(turn):
    """Two nested boxes: a cavity where the inner one looks the other way, else that or a whole box, nothing else."""
    outer, inner = box_mesh(*ONE), box_mesh(*WITHIN)
    mesh = together(turned(outer) if turn[0] else outer, turned(inner) if turn[1] else inner)
    solid = px.Solid(PointCloud(mesh[0], faces=mesh[1], name="nested"))
    whole, cavity = boxes(ONE), boxes(WITHIN)
    full = solid.volume == pytest.approx(8, rel=2e-3)
    assert full or solid.volume == pytest.approx(8 - 0.8**3, rel=2e-3)
    assert not full or turn[0] == turn[1]
    distance = whole if full else lambda x: np.maximum(whole(x), -cavity(x))
    assert_sides(solid, Truth(distance, -np.ones(3), np.ones(3), 8), 1, 1e-6, 30_000)


@pytest.mark.parametrize("wound", [turned, any_way], ids=["inside-out", "any-way"])
def test_a_mesh_with_holes(wound):
    """Three of 432 faces gone, in different places: closed, volume within 1 %, 99.5 % of the sides right."""
    vertices, faces = wound(box_mesh(*ONE, cells=FINE))
    keep = np.ones(len(faces), bool)
    keep[[30, 200, 330]] = False
    solid = px.Solid(PointCloud(vertices, faces=faces[keep], name="holed"))
    assert solid.volume == pytest.approx(8, rel=0.01)
    assert_sides(solid, Truth(boxes(ONE), -np.ones(3), np.ones(3), 8), 0.995, 0.02, 30_000)


@pytest.mark.slow
def test_a_mesh_of_a_box_without_a_side():
    """Twelve large triangles less two: the points between the vertices are those of the faces. Volume within 2 %."""
    vertices, faces = box_mesh(*ONE)
    solid = px.Solid(PointCloud(vertices, faces=faces[2:], name="open"))
    assert solid.findings.holes == 1
    assert solid.volume == pytest.approx(8, rel=0.02)
    refused(PointCloud(vertices, faces=faces[2:], name="open"), "closing", closing=0.05)


def test_a_mesh_that_is_mostly_missing_is_refused():
    vertices, faces = box_mesh(*ONE, cells=4)
    kept = (vertices[faces][:, :, 1] < -0.99).all(axis=1) | (vertices[faces][:, :, 0] > 0.99).all(axis=1)
    refused(PointCloud(vertices, faces=faces[kept], name="corner"), "closing", "open", "enclose")


def test_faces_without_area_do_no_harm():
    """A closed mesh with needles (two equal vertices) and points no face names is the same solid."""
    vertices, faces = box_mesh(*ONE)
    needles = np.stack([faces[:4, 0], faces[:4, 0], faces[:4, 1]], axis=1)
    stray_vertex = np.concatenate([vertices, [[5.0, 5.0, 5.0]]])
    solid = px.Solid(PointCloud(stray_vertex, faces=np.concatenate([faces, needles]).astype(np.int32), name="needles"))
    assert solid.volume == pytest.approx(8, rel=2e-3)
    assert np.abs(solid.upper - 1).max() < 1e-6


# --- 3. scans -----------------------------------------------------------------------------------------------------


@wp.kernel
def wind(
    mesh: wp.uint64,
    points: wp.array(dtype=wp.vec3),
    distance: wp.array(dtype=float),
):
    """Signed distance by the winding number of a mesh."""
    i = wp.tid()
    query = wp.mesh_query_point_sign_winding_number(mesh, points[i], 1.0e6)
    on = wp.mesh_eval_position(mesh, query.face, query.u, query.v)
    distance[i] = query.sign * wp.length(points[i] - on)


def winding_distance(vertices: np.ndarray, faces: np.ndarray, x: np.ndarray) -> np.ndarray:
    mesh = wp.Mesh(
        wp.array(vertices, dtype=wp.vec3, device="cpu"),
        wp.array(faces.ravel(), dtype=wp.int32, device="cpu"),
        support_winding_number=True,
    )
    points = wp.array(x, dtype=wp.vec3, device="cpu")
    distance = wp.zeros(len(x), dtype=float, device="cpu")
    wp.launch(wind, dim=len(x), inputs=[mesh.id, points, distance], device="cpu")
    return distance.numpy()


@pytest.mark.slow
@pytest.mark.parametrize("file", ["igea.ply", "stanford-bunny.obj"])
def test_scans_from_positions_alone(models, file):
    """Against the file's own mesh, which the points know nothing of: volume (divergence theorem from a point in the
    base, where the bunny has its holes) within 1 %, 99.8 % of the sides by winding number, none wrong deeper than 3 %,
    except beside the base: the mesh is open there, and nothing says how deep a place is."""
    mesh = px.load(models / file).mesh
    solid = px.Solid(PointCloud(mesh.vertices, name=file))
    lower, upper = mesh.vertices.min(axis=0), mesh.vertices.max(axis=0)
    size = (upper - lower).max()
    base = mesh.vertices.mean(axis=0) * [1, 0, 1] + [0, lower[1], 0]
    exact = np.linalg.det(mesh.vertices[mesh.faces] - base).sum() / 6
    assert solid.volume == pytest.approx(exact, rel=0.01)
    x = np.random.default_rng(0).uniform(lower, upper, (MANY, 3))
    middle = 0.5 * (lower + upper)
    by_mesh = size * winding_distance((mesh.vertices - middle) / size, mesh.faces, (x - middle) / size)
    wrong = solid.inside(x) != (by_mesh < 0)
    assert wrong.mean() < 2e-3
    assert np.abs(by_mesh[wrong & (x[:, 1] > lower[1] + 0.03 * size)]).max(initial=0) < 0.03 * size
    assert np.quantile(np.abs(solid.distance(x) - by_mesh), 0.99) < 5e-3 * size


# --- 4. what is no solid ------------------------------------------------------------------------------------------


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
