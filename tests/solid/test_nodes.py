"""Octree, nodes and quadrature of solids given by a distance function."""

from collections.abc import Callable
from functools import cache

import numpy as np
import pytest

import phyxel as px
from phyxel.errors import PhyxelError
from phyxel.mls.neighbours import curve_order, nearest
from phyxel.points.moments import SolidMoments
from phyxel.points.shapes import SHAPES, box_distance
from phyxel.solid.nodes import Nodes, fitted_shape, sample_nodes
from phyxel.solid.octree import HALVES, TOUCH, Kind, Octants, RootOctants, classified, grow
from phyxel.solid.quadrature import quadrature
from phyxel.solid.solid import Solid

EXACT_VOLUMES = {
    "bar": 0.0625,
    "box": 0.125,
    "sphere": 4 / 3 * np.pi * 0.25**3,
    "torus": 2 * np.pi**2 * 0.3 * 0.1**2,
}


class Probe:
    """A solid made of a distance function, which counts how often it is asked."""

    def __init__(self, name: str, distance: Callable, lower, upper, volume: float) -> None:
        self.name, self._distance, self.volume = name, distance, volume
        self.lower, self.upper = np.array(lower, float), np.array(upper, float)
        self.asked = 0

    def distance(self, x):
        self.asked += len(x)
        return self._distance(x)

    def project(self, x):
        x = np.array(x)
        step = 1e-5 * float((self.upper - self.lower).max())
        for _ in range(4):
            sides = [(self.distance(x + step * e) - self.distance(x - step * e)) / (2 * step) for e in np.eye(3)]
            slope = np.stack(sides, axis=1)
            x -= (self.distance(x) / np.maximum((slope**2).sum(axis=1), 1e-12))[:, None] * slope
        return x

    def closest(self, x):
        foot = self.project(x)
        step = 1e-5 * float((self.upper - self.lower).max())
        sides = [self.distance(foot + step * e) - self.distance(foot - step * e) for e in np.eye(3)]
        slope = np.stack(sides, axis=1)
        length = np.maximum(np.linalg.norm(slope, axis=1, keepdims=True), 1e-12)
        return foot, slope / length, self.distance(x)


@cache
def fine_points(name: str) -> tuple[np.ndarray, np.ndarray]:
    """A reference quadrature of a built-in shape: 72³ boxes, cut ones by how much of them is inside."""
    shape, n = SHAPES[name], 72
    lower, extent = np.array(shape.lower), np.subtract(shape.upper, shape.lower)
    x = lower + extent * (np.indices((n, n, n)).reshape(3, -1).T + 0.5) / n
    share = np.clip(0.5 - shape.distance(x) / (extent.min() / n), 0, 1)
    return x[share > 0], (share * extent.prod() / n**3)[share > 0]


def solid(name: str) -> Probe:
    shape = SHAPES[name]
    volume = EXACT_VOLUMES.get(name) or float(fine_points(name)[1].sum())
    return Probe(name, shape.distance, shape.lower, shape.upper, volume)


@cache
def sampled(name: str, count: int) -> Nodes:
    """Nodes of a built-in shape, for tests that only look at them."""
    body = solid(name)
    nodes = sample_nodes(body, count)
    assert body.asked < 2_000_000
    return nodes


def block(half, scale: float = 1.0) -> Probe:
    half = scale * np.asarray(half, float)
    return Probe("block", lambda x: box_distance(x, np.zeros(3), half), -half, half, float(8 * half.prod()))


def octants_of(body: Probe, shape, refine=()) -> Octants:
    return classified(body, grow(body, RootOctants.fitted(body.lower, body.upper, shape), refine))


def corners_of(octants: Octants, kind: Kind) -> tuple[np.ndarray, np.ndarray]:
    """Corners (N, 8, 3) and smallest sides (N,) of the octants of a kind."""
    chosen = octants.kinds == kind
    centres, sides = octants.tree.centres[chosen], octants.tree.sides[chosen]
    return centres[:, None] + (HALVES - 0.5) * sides[:, None], sides.min(axis=1)


# --- octree --------------------------------------------------------------------------------------------------------


EAR = px.Box((0.05, 0.5, -0.1), (0.18, 0.6, 0.1))


@pytest.mark.parametrize("refine", [(), [(EAR, 2)], [(lambda x: x[:, 1] < 0.1, 1), (EAR, 3)]])
def test_octants_fill_the_box_once(refine):
    tree = grow(solid("bear"), RootOctants.fitted(np.zeros(3) - 0.3, np.array([0.3, 0.6, 0.3]), (7, 11, 7)), refine)
    size = np.array(tree.lattice.shape) * tree.lattice.side
    lower = tree.centres - tree.sides / 2
    # The coarsest octants may reach beyond the lattice.
    upper = np.minimum(lower + tree.sides, tree.lattice.lower + size)
    assert (upper - lower).prod(axis=1).sum() == pytest.approx(size.prod())
    x = np.random.default_rng(0).uniform(tree.lattice.lower, tree.lattice.lower + size, (300, 3))
    assert (((x[:, None] > lower) & (x[:, None] < upper)).all(axis=2).sum(axis=1) == 1).all()


@pytest.mark.parametrize("refine", [[(EAR, 3)], [(px.Box((0, 0.43, 0.16), (0.001, 0.431, 0.161)), 4)]])
def test_neighbours_over_faces_and_edges_differ_by_one_level(refine):
    octants = octants_of(solid("bear"), (4, 6, 3), refine)
    held = octants.kinds != Kind.EXTERIOR
    levels, cells = octants.tree.levels[held], octants.tree.cells[held]
    assert levels.max() == refine[0][1]
    size = 1 << (levels.max() - levels)
    lower = cells * size[:, None]
    upper = lower + size[:, None]
    overlap = np.minimum(upper[:, None], upper) - np.maximum(lower[:, None], lower)
    beside = (overlap >= 0).all(axis=2) & (overlap > 0).any(axis=2)
    assert np.abs(levels[:, None] - levels)[beside].max() == 1


@pytest.mark.parametrize(
    ("name", "shape", "refine"),
    [
        ("bear", (8, 14, 7), ()),
        ("bear", (6, 9, 5), [(EAR, 2)]),
        ("bust", (8, 11, 6), ()),
        ("torus", (16, 4, 16), ()),
        ("jack", (10, 10, 10), ()),
        ("shell", (15, 8, 15), ()),
    ],
)
def test_uncut_octants_lie_on_one_side(name, shape, refine):
    body = solid(name)
    octants = octants_of(body, shape, refine)
    rng = np.random.default_rng(0)
    for kind, sign in ((Kind.INTERIOR, 1), (Kind.EXTERIOR, -1)):
        corners, side = corners_of(octants, kind)
        assert (sign * body.distance(corners.reshape(-1, 3)).reshape(-1, 8) <= 2 * TOUCH * side[:, None]).all()
        lower, upper = corners[:, 0, None], corners[:, 7, None]
        x = rng.uniform(lower, upper, (len(corners), 25, 3))
        assert (sign * body.distance(x.reshape(-1, 3)).reshape(-1, 25) <= 0.03 * side[:, None]).all()


def test_boundary_octants_are_told_apart_by_their_centres():
    body = solid("bear")
    octants = octants_of(body, (8, 14, 7))
    depth = body.distance(octants.tree.centres)
    assert (depth[octants.kinds == Kind.INTERIOR_BOUNDARY] < 0).all()
    assert (depth[octants.kinds == Kind.EXTERIOR_BOUNDARY] >= 0).all()
    share = octants.share[octants.cut]
    assert share.min() >= 0
    assert share.max() <= 1
    held = octants.share @ octants.tree.sides.prod(axis=1)
    assert held == pytest.approx(body.volume, rel=0.02)


def test_a_sheet_between_the_samples_is_seen():
    """0.02 octants thick, midway between the centres of the quarters of its octants."""
    side = 0.1
    sheet = Probe(
        "sheet",
        lambda x: box_distance(x, np.array([0, 0.25 * side, 0]), np.array([0.5, 0.001, 0.5])),
        (-0.5, -0.05, -0.5),
        (0.5, 0.05, 0.5),
        0.002,
    )
    octants = octants_of(sheet, (10, 1, 10))
    assert (octants.kinds == Kind.EXTERIOR_BOUNDARY).all()
    nodes = sample_nodes(sheet, 100)
    assert len(nodes) == pytest.approx(100, rel=0.1)
    assert nearest(nodes.quadrature.points, nodes.positions, 1)[0].max() < 1.5 * nodes.octants.max()


# --- nodes ---------------------------------------------------------------------------------------------------------


def check(nodes: Nodes, body: Probe, count: int) -> None:
    """What holds for the nodes of every solid."""
    assert len(nodes) == pytest.approx(count, rel=0.1)
    assert nodes.volumes.sum() == pytest.approx(body.volume, rel=1e-12)
    assert nodes.quadrature.weights.sum() == pytest.approx(body.volume, rel=1e-12)
    assert (nodes.volumes > 0).all()
    assert (nodes.quadrature.weights > 0).all()
    skin = nodes.kinds == Kind.EXTERIOR_BOUNDARY
    depth = -body.distance(nodes.positions)
    assert np.abs(depth[skin]).max(initial=0) < 1e-3 * nodes.octants.max()
    assert (depth[~skin] > 0).all()
    assert np.allclose(nodes.reach[~skin], depth[~skin])
    assert (nodes.reach[skin] == 0).all()
    gaps = nearest(nodes.positions, nodes.positions, 2)[0][:, 1]
    assert (gaps >= 0.5 * nodes.octants * (1 - 1e-9))[skin].all()
    assert (body.distance(nodes.quadrature.points) <= 0.01 * nodes.octants.min()).all()
    assert (curve_order(nodes.positions) == np.arange(len(nodes))).all()


@pytest.mark.parametrize("name", sorted(SHAPES))
@pytest.mark.parametrize("count", [30, 100, 800])
def test_nodes_of_shapes(name, count):
    check(sampled(name, count), solid(name), count)


@pytest.mark.parametrize("name", ["bear", "bust", "sphere", "torus"])
def test_no_node_is_tiny(name):
    nodes = sampled(name, 800)
    shares = nodes.volumes / nodes.octants**3
    assert shares.min() > 0.15
    assert np.median(shares) > 0.9
    assert 10 < len(nodes.quadrature) / len(nodes) < 40


def test_the_octants_of_a_bar_fill_it():
    body = solid("bar")
    nodes = sample_nodes(body, 864)
    exact = (np.indices((24, 6, 6)).reshape(3, -1).T + 0.5) / 24 - [0, 0.125, 0.125]
    assert len(nodes) == 864
    assert nearest(nodes.positions, exact, 1)[0].max() < 1e-12
    assert (nodes.kinds == Kind.INTERIOR).all()
    assert np.allclose(nodes.volumes, 0.0625 / 864, rtol=1e-9)
    assert nodes.spacing == pytest.approx(1 / 24)
    assert nodes.covers() == pytest.approx(np.full(864, 2 / 24))
    assert nodes.covers("quadratic") == pytest.approx(np.full(864, 3 / 24))


def test_many_nodes():
    body = solid("bar")
    check(sample_nodes(body, 30_000), body, 30_000)


def test_an_unknown_basis_is_refused():
    with pytest.raises(PhyxelError, match=r"cubic.*linear"):
        sample_nodes(solid("sphere"), 50).covers("cubic")


def test_fitted_octants_are_nearly_cubes():
    for octants in (50, 300, 5000):
        extent = np.array([1.0, 0.61, 0.37])
        shape = fitted_shape(extent, octants, set())
        assert shape is not None
        sides = extent / shape
        assert sides.max() / sides.min() < 1.4
        assert np.prod(shape) == pytest.approx(octants, rel=0.1)
    assert fitted_shape(np.array([1.0, 1.0, 0.01]), 100, set()) is None


@pytest.mark.parametrize("count", [100, 800])
def test_legs_and_ears_of_the_bear_have_nodes(count):
    nodes = sampled("bear", count)
    for x, y in ((0.09, 0.05), (-0.09, 0.05), (0.105, 0.56), (-0.105, 0.56)):
        assert np.hypot(nodes.positions[:, 0] - x, nodes.positions[:, 1] - y).min() < 0.06


def test_equal_calls_give_equal_bits():
    first, second = (sample_nodes(solid("bear"), 100, [(EAR, 1)]) for _ in range(2))
    for a, b in ((first.positions, second.positions), (first.volumes, second.volumes)):
        assert a.tobytes() == b.tobytes()
    assert first.quadrature.points.tobytes() == second.quadrature.points.tobytes()


@pytest.mark.parametrize("scale", [1e-6, 1e6])
def test_nodes_do_not_depend_on_the_scale(scale):
    bear = solid("bear")
    large = Probe(
        "bear",
        lambda x: scale * SHAPES["bear"].distance(x / scale),
        scale * bear.lower,
        scale * bear.upper,
        scale**3 * bear.volume,
    )
    here, there = sampled("bear", 100), sample_nodes(large, 100)
    assert len(here) == len(there)
    assert there.volumes.sum() == pytest.approx(large.volume)
    inside = here.kinds != Kind.EXTERIOR_BOUNDARY
    assert np.allclose(here.positions[inside], there.positions[inside] / scale, atol=1e-9)


@pytest.mark.parametrize(("thickness", "count"), [(0.02, 200), (0.02, 3000), (0.001, 400)])
def test_a_thin_plate(thickness, count):
    plate = block((0.5, 0.5, thickness / 2))
    nodes = sample_nodes(plate, count)
    check(nodes, plate, count)
    assert nearest(nodes.quadrature.points, nodes.positions, 1)[0].max() < 1.5 * nodes.octants.max()


@pytest.mark.parametrize("name", ["bar", "bear", "box", "jack", "shell", "sphere", "torus"])
def test_eight_nodes(name):
    body = solid(name)
    nodes = sample_nodes(body, 8)
    assert 6 <= len(nodes) <= 10
    assert nodes.volumes.sum() == pytest.approx(body.volume)
    assert (nodes.volumes > 0).all()


# --- finer regions -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["bar", "bear", "sphere", "shell"])
@pytest.mark.parametrize("levels", [1, 2])
@pytest.mark.parametrize("count", [60, 400])
def test_finer_regions_count_in_the_total(name, levels, count):
    body = solid(name)
    top = body.lower + [0, 0.7, 0] * (body.upper - body.lower)
    nodes = sample_nodes(body, count, [(px.Box(top, body.upper), levels)])
    check(nodes, body, count)


@pytest.mark.parametrize("where", [EAR, lambda x: (x[:, 1] > 0.5) & (x[:, 0] > 0.05)])
def test_a_region_is_finer(where):
    body = solid("bear")
    nodes = sample_nodes(body, 500, [(where, 2)])
    coarse, fine = nodes.octants.max(), nodes.octants.min()
    assert coarse == pytest.approx(4 * fine)
    within = where(nodes.positions)
    assert within.sum() > 20
    assert nodes.octants[within] == pytest.approx(np.full(within.sum(), fine))
    far = nodes.positions[:, 1] < 0.3
    assert nodes.octants[far] == pytest.approx(np.full(far.sum(), coarse))


@pytest.mark.parametrize(
    "refine",
    [
        [(px.Box((5, 5, 5), (6, 6, 6)), 3)],
        [(px.Box((0.2, 0.2, 0.2), (0.25, 0.25, 0.25)), 2)],
        [(px.Box((-1, -1, -1), (1, 1, 1)), 0)],
        [(lambda x: np.zeros(len(x), bool), 4)],
    ],
)
def test_a_region_without_any_of_the_solid_changes_nothing(refine):
    body = solid("sphere")
    assert sample_nodes(body, 300, refine).positions.tobytes() == sample_nodes(body, 300).positions.tobytes()


def test_everything_finer_by_two_levels_still_meets_the_count():
    body = solid("bear")
    check(sample_nodes(body, 300, [(lambda x: np.ones(len(x), bool), 2)]), body, 300)


@pytest.mark.parametrize("levels", [-1, 1.5, "2", None, True, 99])
def test_levels_must_be_whole_and_few(levels):
    with pytest.raises(PhyxelError, match=r"sphere.*levels = .*whole number"):
        sample_nodes(solid("sphere"), 100, [(EAR, levels)])


def test_regions_must_be_boxes_or_functions():
    body = solid("sphere")
    with pytest.raises(PhyxelError, match=r"sphere.*shape \(.*, 3\) for"):
        sample_nodes(body, 100, [(lambda x: x > 0, 1)])
    with pytest.raises(PhyxelError, match=r"px\.Box or a function"):
        sample_nodes(body, 100, [("ear", 1)])
    with pytest.raises(PhyxelError, match="pairs"):
        sample_nodes(body, 100, [EAR])
    with pytest.raises(PhyxelError, match="nodes = 0"):
        sample_nodes(body, 0)


# --- quadrature ----------------------------------------------------------------------------------------------------


def moments(points, weights, size) -> np.ndarray:
    """∫x and ∫x² over a solid, in units of its size."""
    x = points / size
    return np.concatenate([weights @ x, weights @ x**2])


@pytest.mark.parametrize("count", [100, 800])
def test_integrals_over_a_ball(count):
    """∫x = 0, ∫x² = V R²/5."""
    body, R = solid("sphere"), 0.25
    rule = sampled("sphere", count).quadrature
    assert moments(rule.points, rule.weights, R)[:3] == pytest.approx(np.zeros(3), abs=1e-3 * body.volume)
    assert moments(rule.points, rule.weights, R)[3:] == pytest.approx(np.full(3, body.volume / 5), rel=0.01)


@pytest.mark.parametrize("name", ["bear", "jack", "shell"])
@pytest.mark.parametrize("count", [100, 800])
def test_integrals_over_shapes(name, count):
    rule = sampled(name, count).quadrature
    exact = moments(*fine_points(name), 0.5)
    error = moments(rule.points, rule.weights, 0.5) - exact
    assert np.abs(error[:3]).max() < 0.01 * np.abs(exact).max()
    assert (np.abs(error[3:]) < 0.01 * exact[3:]).all()


def test_gauss_points_integrate_cubics_exactly():
    nodes = sample_nodes(solid("bar"), 300)
    rule = nodes.quadrature
    x, y, _ = rule.points.T
    assert rule.weights @ (x**3 + x * y**2) == pytest.approx(0.0625 * (1 / 4 + 0.5 * 0.125**2 / 3))


@pytest.mark.parametrize("name", ["bear", "torus", "shell", "sphere"])
def test_the_volume_is_right_before_it_is_scaled(name):
    """Interior octants come first, with an eighth of their volume a point; how far it was scaled shows the sum."""
    body = solid(name)
    octants = octants_of(body, (20, 20, 20))
    scaled = quadrature(body, octants).weights[0] / (octants.tree.lattice.side.prod() / 8)
    assert scaled == pytest.approx(1, abs=4e-3)


@pytest.mark.parametrize("error", [-0.15, 0.15])
def test_a_distance_that_is_off_away_from_the_surface(error):
    """By up to 15 % at an octant's distance, as of blended and fitted solids."""
    body = solid("bear")

    def distance(x):
        exact = SHAPES["bear"].distance(x)
        return exact * (1 + error * np.tanh(np.abs(exact) / 0.02))

    wrong = Probe("bear", distance, body.lower, body.upper, body.volume)
    check(sample_nodes(wrong, 300), wrong, 300)
    assert (kinds_by_cell(wrong) == kinds_by_cell(body)).mean() > 0.99


def kinds_by_cell(body: Probe) -> np.ndarray:
    """Kinds of all octants of a uniform tree over the bear, shape (784,)."""
    octants = octants_of(body, (8, 14, 7))
    kinds = np.full(8 * 14 * 7, Kind.EXTERIOR)
    uniform = octants.tree.levels == 0
    kinds[octants.tree.lattice.keys(0, octants.tree.cells[uniform])] = octants.kinds[uniform]
    return kinds


@pytest.mark.parametrize("clearance", [0.05, 1.0])
def test_a_solid_with_nothing_inside(clearance):
    body = Probe("void", lambda x: np.full(len(x), clearance), (0, 0, 0), (1, 1, 1), 0.5)
    assert len(sample_nodes(body, 100)) == 0
    body.volume = 0.0
    with pytest.raises(PhyxelError, match=r"void.*nothing lies inside"):
        sample_nodes(body, 100)


@pytest.mark.parametrize(("name", "count"), [("box", 300), ("bear", 300), ("torus", 200), ("jack", 400)])
def test_nodes_on_the_surface(name, count):
    """Corners of octants: as many as asked for, none outside, the outermost on the surface, the volume shared out."""
    solid = Solid(px.load(name, points=4000))
    nodes = solid.sample(count, on_surface=True)
    depth = -solid.distance(nodes.positions) / nodes.spacing
    skin = nodes.kinds == Kind.EXTERIOR_BOUNDARY
    assert abs(len(nodes) / count - 1) <= 0.1
    assert np.abs(depth[skin]).max() < 1e-2
    assert depth[~skin].min() > 0.4
    assert skin.mean() > 0.3
    assert (nodes.volumes > 0).all()
    assert nodes.volumes.sum() == pytest.approx(solid.volume, rel=1e-9)


def test_a_box_has_nodes_on_its_edges_and_corners():
    solid = Solid(px.load("box", points=1000))
    positions = solid.sample(216, on_surface=True).positions
    ends = ((np.abs(positions - solid.lower) < 1e-9) | (np.abs(positions - solid.upper) < 1e-9)).sum(axis=1)
    assert np.bincount(ends).tolist() == [64, 96, 48, 8]  # 6 × 6 × 6: inside, on faces, edges, corners


def test_weights_with_the_moments_of_the_solid():
    """Σ w = V, Σ w x = V X and Σ w (x − X)(x − X)ᵀ as given, here of a ball that is taken for an ellipsoid, 2 % longer
    and off by as much of its radius: to round-off, by weights that stay near their own. None get those of a rod."""
    nodes = Solid(px.load("sphere", points=500)).sample(200, on_surface=True)
    volume, radius = EXACT_VOLUMES["sphere"], 0.25
    second = volume * radius**2 / 5 * np.diag([1.04, 1.0, 1.0])
    whole = SolidMoments(1.02 * volume, np.array([0.0, 0.02 * radius, 0.0]), second)
    found = nodes.weighed(whole)
    points, weights = found.quadrature.points - whole.middle, found.quadrature.weights
    assert weights.sum() == pytest.approx(whole.volume, rel=1e-12)
    assert weights @ points == pytest.approx(np.zeros(3), abs=1e-12 * volume)
    assert (weights[:, None] * points).T @ points == pytest.approx(second, abs=1e-12 * volume)
    assert found.volumes.sum() == pytest.approx(whole.volume, rel=1e-12)
    assert np.abs(weights / nodes.quadrature.weights - 1).max() < 0.25
    rod = SolidMoments(volume, np.zeros(3), second * np.diag([9.0, 0.1, 0.1]))
    assert nodes.weighed(rod) is nodes
