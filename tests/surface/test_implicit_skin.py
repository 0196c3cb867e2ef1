"""The implicit skin: Blinn's field, and the way onto it."""

import numpy as np
import pytest

from phyxel import device as dev
from phyxel.surface.implicit_skin import BLOBBINESS, ImplicitSkin

CPU = dev.pick("cpu")


def skin_of(places, volumes=None):
    volumes = np.ones(len(places)) if volumes is None else volumes
    skin = ImplicitSkin(volumes, np.zeros(len(places)), CPU)
    skin.place(places)
    return skin


def blinn(points, places, radii):
    """M04 eq. 28 with the constants of physics.md §1.6 for S = 1, in double and without a cut."""
    rr = ((points[:, None] - places) ** 2).sum(axis=2)
    return np.exp(-BLOBBINESS + BLOBBINESS * rr / radii**2).sum(axis=1)


def lattice(count):
    return np.stack(np.meshgrid(*[np.arange(count) + 0.5] * 3, indexing="ij"), axis=-1).reshape(-1, 3)


@pytest.fixture(scope="module")
def splash():
    """A crowd of unequal phyxels without order, and points all around."""
    rng = np.random.default_rng(0)
    places = rng.uniform(0, 5, (125, 3))
    skin = skin_of(places, rng.uniform(0.3, 2.0, len(places)))
    return skin, places, rng.uniform(-1.5, 6.5, (4000, 3))


def test_a_phyxel_alone_has_a_ball_of_its_radius():
    skin = skin_of(np.zeros((1, 3)))
    onto, normals, found = skin.project(np.array([[0.1, 0, 0], [0, 0.7, 0.2], [0.3, -0.3, 0.9]]))
    assert found.all()
    assert np.linalg.norm(onto, axis=1) == pytest.approx(skin.radii[0], rel=1e-4)
    assert (normals * onto).sum(axis=1) == pytest.approx(skin.radii[0], rel=1e-4)


def test_from_its_middle_and_from_afar_no_way_leads_to_the_skin():
    skin = skin_of(np.zeros((1, 3)))
    away = np.array([[0.0, 0, 0], [5.0, 0, 0], [0, 0, 1e6]])
    onto, _, found = skin.project(away)
    assert not found.any()
    assert (onto == away.astype(np.float32)).all()


def test_the_skin_of_a_half_space_lies_on_its_surface():
    """b π/a Σ_k e^(−a (k + 1/2)²) = 1 sets the constants, which leaves out waves of 2 e^(−π²/a) = 7 % of F along the
    plane, or 0.07/(2 a · 1/2) = 0.025 spacings."""
    skin = skin_of(lattice(12))
    start = np.random.default_rng(0).uniform(3, 9, (1000, 3))
    start[:, 2] = 12 + np.random.default_rng(1).uniform(-0.4, 0.4, 1000)
    onto, normals, found = skin.project(start)
    assert found.all()
    assert abs(onto[:, 2].mean() - 12) < 0.01
    assert onto[:, 2].std() == pytest.approx(0.025, rel=0.2)
    assert normals[:, 2].min() > 0.9


def test_field_and_slope_are_those_of_the_equation(splash):
    skin, places, points = splash
    value, slope = skin.measure(points)
    assert value == pytest.approx(blinn(points, places, skin.radii), abs=2e-4), "a hundred tails of 1e-5 are cut"
    step = 1e-4
    for axis in range(3):
        shift = step * np.eye(3)[axis]
        by_difference = (blinn(points + shift, places, skin.radii) - blinn(points - shift, places, skin.radii)) / 2e-4
        assert slope[:, axis] == pytest.approx(by_difference, abs=5e-3)


def test_all_that_arrive_are_on_the_skin_and_none_runs_off(splash):
    skin, places, points = splash
    onto, normals, found = skin.project(points)
    assert found.mean() > 0.6, "the others are far away or deep inside"
    assert np.abs(blinn(onto[found].astype(float), places, skin.radii) - 1).max() < 1e-3
    assert np.linalg.norm(onto - points, axis=1)[found].max() <= skin.farthest + 0.35
    away = np.linalg.norm(onto[found][:, None] - places, axis=2)
    assert (away / skin.radii).min(axis=1).max() < 2
    _, slope = skin.measure(onto[found])
    assert ((normals[found] * slope).sum(axis=1) < 0).all(), "normals look outward"


def test_points_just_beside_the_skin_all_get_there(splash):
    skin, _, points = splash
    onto, normals, found = skin.project(points)
    beside = onto[found] + np.random.default_rng(2).uniform(-0.1, 0.1, (found.sum(), 1)) * normals[found]
    again, _, there = skin.project(beside)
    assert there.mean() > 0.999
    assert np.median(np.linalg.norm(again - onto[found], axis=1)[there]) < 0.01


def test_each_place_belongs_to_the_body_whose_phyxels_are_there():
    places = lattice(4)
    skin = ImplicitSkin(np.ones(len(places)), places[:, 0] > 2, CPU)
    skin.place(places)
    x = np.array([[0.5, 2, 2], [1.9, 2, 2], [2.1, 2, 2], [3.5, 2, 2]])
    assert skin.owners(x, 0).tolist() == [True, True, False, False]
    assert skin.owners(x, 1).tolist() == [False, False, True, True]


def test_seeds_lie_all_over_the_skin():
    """Along 26 ways from each phyxel of a cube of 4³ come places no farther apart than half a spacing."""
    places = lattice(4)
    skin = skin_of(places)
    onto, _, of = skin.seeds(np.arange(len(places)), 26)
    value, _ = skin.measure(onto)
    assert np.abs(value - 1).max() < 1e-3
    assert np.linalg.norm(onto - places[of], axis=1).max() < 3 * skin.radii[0]
    start = np.random.default_rng(0).uniform(0, 4, (3000, 3))
    start[np.arange(3000), np.arange(3000) % 3] = np.where(np.arange(3000) % 2, 0.0, 4.0)
    surface, _, found = skin.project(start)
    nearest = np.linalg.norm(surface[found][:, None] - onto[None], axis=2).min(axis=1)
    assert nearest.max() < 0.5
