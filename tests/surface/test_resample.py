"""Surfels are put where there are too few, taken away where there are too many, and spread evenly."""

import numpy as np
import pytest

from phyxel import device as dev
from phyxel.surface.resample import EVENLY, FEWEST, MOST, Crowd, beside, parents, pushed, too_many


def up(count):
    return np.tile([0.0, 0.0, 1.0], (count, 1))


@pytest.fixture
def crowd():
    return Crowd(dev.pick("cpu"))


def test_neighbours_are_counted_on_the_own_side_only(crowd):
    """A triangular net of spacing 1 has 6 neighbours at 1 and 6 at √3 within 2; as many again on the back of a thin
    sheet are none of them."""
    i, j = (a.ravel().astype(float) for a in np.meshgrid(np.arange(20), np.arange(20)))
    net = np.stack([i + 0.5 * j, np.sqrt(0.75) * j, np.zeros(400)], axis=1)
    points = np.concatenate([net, net - (0, 0, 0.1)])
    normals = np.concatenate([up(400), -up(400)])
    count, push = crowd.around(points, normals, np.full(800, 0.99, np.float32))
    inner = ((i > 2) & (i < 17) & (j > 2) & (j < 17)).nonzero()[0]
    assert (count[inner] == 12).all()
    assert np.abs(push[inner]).max() < 1e-5, "from all sides alike"
    assert (push[0] @ np.array([1, 1, 0])) < 0, "away from the others at a corner"


def test_few_get_others_beside_them_and_of_many_some_are_left():
    count = np.array([0, FEWEST - 1, FEWEST, MOST, MOST + 1, 3 * MOST])
    assert parents(count).tolist() == [0, 0, 0, 1], "at most three at once"
    gone = np.mean([too_many(count, np.random.default_rng(k)) for k in range(2000)], axis=0)
    assert gone[:4].max() == 0
    left = (1 - gone[4:]) * count[4:]
    assert left == pytest.approx(EVENLY, abs=0.1 * EVENLY), "also of a heap; 2000 tries: 2 % of 25, 3 % of 72"


def test_new_ones_lie_in_the_plane_a_spacing_away():
    rng = np.random.default_rng(0)
    normals = rng.normal(size=(500, 3))
    normals /= np.linalg.norm(normals, axis=1, keepdims=True)
    points, spacing = rng.normal(size=(500, 3)), rng.uniform(0.5, 2, 500).astype(np.float32)
    way = beside(points, normals, spacing, rng) - points
    assert np.linalg.norm(way, axis=1) == pytest.approx(spacing, rel=1e-4)
    assert (way * normals).sum(axis=1) == pytest.approx(0, abs=1e-5)


def test_repulsion_spreads_a_random_heap_on_a_sphere(crowd):
    """Random points have nearest neighbours at all distances; twenty rounds leave none nearer than half the mean."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(600, 3))
    x /= np.linalg.norm(x, axis=1, keepdims=True)
    spacing = np.full(600, np.sqrt(4 * np.pi / 600 / np.sqrt(0.75)), np.float32)
    for _ in range(20):
        _, push = crowd.around(x, x, spacing)
        x = pushed(x, push, spacing)
        x /= np.linalg.norm(x, axis=1, keepdims=True)
    away = np.linalg.norm(x[:, None] - x, axis=2) + 9 * np.eye(600)
    nearest = away.min(axis=1)
    assert nearest.min() > 0.5 * nearest.mean()
    assert nearest.mean() > 0.8 * spacing[0]


def test_bare_places_are_those_with_nothing_near(crowd):
    rng = np.random.default_rng(0)
    points, places = rng.uniform(0, 1, (300, 3)), rng.uniform(-0.5, 1.5, (400, 3))
    nearest = np.linalg.norm(places[:, None] - points, axis=2).min(axis=1)
    assert (crowd.bare(places, points, 0.2) == (nearest >= 0.2)).all()
    assert crowd.bare(places, points[:0], 0.2).all()
