"""Which nodes a place names: regions, indices, picked surfels, spots."""

import numpy as np
import pytest

import phyxel as px
from tests.body.tom import SPACING, tom
from tests.world import boxes
from tests.worlds import left_end, weightless, world_of


def test_a_ball_holds_what_is_in_it():
    body = tom()
    ball = px.Ball((-0.25, -0.25, -0.25), 1.8 * SPACING)
    inside = np.linalg.norm(body.reference + 0.25, axis=1) <= 1.8 * SPACING
    assert 0 < inside.sum() < 64
    assert np.array_equal(body.fix(ball).nodes, np.flatnonzero(inside))


@pytest.mark.parametrize(
    "centre, radius", [((0, 0), 1.0), ((0, np.nan, 0), 1.0), ((0, 0, 0), 0.0), ((0, 0, 0), np.nan)]
)
def test_a_ball_that_is_none_is_refused(centre, radius):
    with pytest.raises(px.PhyxelError, match="ball"):
        px.Ball(centre, radius)


@pytest.mark.parametrize("surfel", [0, 77, -1, np.int64(5)])
def test_a_picked_surfel_has_the_nodes_around_it(surfel):
    body = tom(at=(3, 0, 0), rotate=(0, 30, 0))
    weightless(body)
    away = np.linalg.norm(body.reference - body.surface.positions[surfel], axis=1)
    nodes = body.pick(surfel)
    assert away.argmin() in nodes
    assert set(nodes) == set(np.flatnonzero(away <= 1.5 * SPACING))


def test_a_pick_has_the_radius_asked_for_and_one_node_at_least():
    body = tom()
    assert len(body.pick(3, radius=10.0)) == 64
    assert len(body.pick(3, radius=1e-9)) == 1


@pytest.mark.exact(reason="a node stands in the very middle of its octant")
def test_a_place_picks_the_surfel_nearest_to_it():
    body = tom()
    nodes = body.pick((0.3, 0.3, 0.3))
    assert np.abs(body.reference[nodes] - 0.25).max() < 2 * SPACING
    assert np.abs(body.reference[nodes] - 0.25).max(axis=1).min() == pytest.approx(0, abs=1e-9), "the corner's own node"


def test_a_pick_does_not_reach_across_a_gap():
    """The bear's feet (z > 0.105 m, y < 0.08 m) have 5 cm of air between them: who takes one leaves the other."""
    bear = px.Body(px.load("bear", points=3000), nodes=800)
    x, y, z = bear.cloud.positions.T
    feet = (bear.reference[:, 2] > 0.105) & (bear.reference[:, 1] < 0.08)
    foreign = []
    for surfel in np.flatnonzero((z > 0.115) & (y < 0.06) & (np.abs(x) < 0.05))[:10]:
        near = np.linalg.norm(bear.reference - bear.cloud.positions[surfel], axis=1) < 0.09
        other = feet & (np.sign(bear.reference[:, 0]) != np.sign(x[surfel]))
        foreign.append((near & other).sum())
        assert not other[bear.pick(int(surfel), radius=0.09)].any()
    assert sum(foreign) > 0


@pytest.mark.parametrize(
    "at, radius, word", [(2000, None, "2000"), (-2001, None, "2001"), ((0, 1), None, "pick"), (0, 0.0, "radius")]
)
def test_absurd_picks_are_refused(at, radius, word):
    with pytest.raises(px.PhyxelError, match=word) as caught:
        tom().pick(at, radius)
    assert "tom" in str(caught.value)


def test_a_dragged_surfel_goes_where_it_is_dragged():
    """Nodes to rounding; the surfel is carried by more nodes than are held, within a quarter of the way."""
    body = tom()
    world = weightless(body)
    surfel = int(body.surface.positions[:, 1].argmax())
    before = body.surface.positions[surfel]
    handle = body.drag(body.pick(surfel), [(0.2, (0, 0.05, 0))])
    world.advance(0.4)
    moved = (body.positions - body.reference)[handle.nodes]
    assert np.abs(moved - [0, 0.05, 0]).max() < 1e-6
    assert np.abs(body.surface.positions[surfel] - before - [0, 0.05, 0]).max() < 0.25 * 0.05


@pytest.mark.parametrize(
    "where",
    [
        left_end,
        px.Box((-1, -1, -1), (-0.15, 1, 1)),
        lambda X: np.asarray(X[:, 0] < -0.15),
        "indices",
        "list",
        "mask",
    ],
    ids=["function", "box", "lambda", "indices", "list", "mask"],
)
def test_every_way_to_name_nodes(where):
    body = boxes.box()
    mask = body.reference[:, 0] < -0.15
    given = {"indices": np.flatnonzero(mask), "list": np.flatnonzero(mask).tolist(), "mask": mask}
    body.fix(given[where] if isinstance(where, str) else where)
    world = world_of(body)
    world.advance(0.1)
    moved = np.abs(world.field(body, "u")).max(axis=1)
    assert mask.sum() == 16
    assert (moved[mask] == 0).all()
    assert (moved[~mask] > 1e-4).all()


def test_a_negative_index_counts_from_the_end_of_its_own_body():
    first, second = boxes.box(), boxes.box(at=(2, 0, 0))
    world = world_of(first, second)
    second.fix([-1])
    world.advance(0.05)
    assert not world.field(second, "u")[-1].any()
    assert np.abs((first.positions - first.reference)[-1]).max() > 1e-3


@pytest.mark.parametrize(
    "where, word",
    [
        (px.Box((5, 5, 5), (6, 6, 6)), "no node"),
        (lambda X: X[:, 0] > 99, "no node"),
        ([], "no node"),
        (np.zeros(64, bool), "no node"),
        ([64], "64"),
        ([-65], "65"),
        (np.ones(7, bool), "7"),
        ([0.5, 1.7], "0.5"),
        (lambda X: np.ones(5, bool), "64"),
    ],
    ids=["box", "function", "none", "mask", "beyond", "before", "short mask", "fractions", "short function"],
)
def test_a_region_that_holds_no_node_is_refused(where, word):
    body = boxes.box(name="tom")
    with pytest.raises(px.PhyxelError, match=word) as caught:
        body.fix(where)
    assert "tom" in str(caught.value)
    assert body.handles == []


@pytest.mark.parametrize("lower, upper", [((0, 0), (1, 1, 1)), ((0, np.nan, 0), (1, 1, 1)), ((2, 0, 0), (1, 1, 1))])
def test_a_box_that_is_none_is_refused(lower, upper):
    with pytest.raises(px.PhyxelError, match="box"):
        px.Box(lower, upper)


# Spots


@pytest.mark.parametrize("at, radius", [(7, None), ((0.3, 0.3, 0.3), None), (np.int64(7), 0.2), ([0.3, 0.3, 0.3], 0.2)])
def test_a_spot_is_the_nodes_around_a_surfel(at, radius):
    body = tom(at=(1, 0, 0))
    handle = body.fix(px.Spot(at, radius))
    assert np.array_equal(handle.nodes, body.pick(at, radius))
    assert np.array_equal(handle.points, body.reference[handle.nodes])


def test_a_body_with_a_displacement_everywhere_is_held_at_the_surfel_itself():
    body = tom(at=(1, 0, 0))
    body.model = "modal"
    surfel = body.placed_cloud()[7]
    handle = body.drag(px.Spot(7), to=(0, 0.1, 0))
    assert len(handle.nodes) == 0
    assert np.array_equal(handle.points, [surfel]) and np.array_equal(handle.taken, [surfel])
    assert np.array_equal(body.fix(px.Spot(surfel + 1e-6)).points, [surfel])
    assert np.array_equal(body.fix(px.Spot(7, 0.2)).nodes, body.pick(7, 0.2))


def test_a_spot_melts():
    body = tom()
    weightless(body)
    body.melt(px.Spot(7, 0.2))
    assert set(np.flatnonzero(~np.isnan(body.mixture.number("viscosity")))) == set(tom().pick(7, 0.2))


@pytest.mark.parametrize(
    "at, radius", [((0, 1), None), ((0, np.inf, 0), None), (1.5, None), (True, None), ("nose", None), (3, 0.0), (3, -1)]
)
def test_absurd_spots_are_refused(at, radius):
    with pytest.raises(px.PhyxelError, match="spot"):
        px.Spot(at, radius)


def test_a_spot_where_a_region_is_needed_is_refused():
    with pytest.raises(px.PhyxelError, match="Spot"):
        tom().paint(px.Spot(7), (1, 0, 0))
    with pytest.raises(px.PhyxelError, match="surfel 2000 of 2000"):
        tom().fix(px.Spot(2000))
