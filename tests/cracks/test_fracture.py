"""Where cracks start, where they run to, and where they end."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.spatial import cKDTree

import phyxel as px
from phyxel.cracks.crack import Crack
from phyxel.cracks.fracture import (
    BIRTH_RADIUS,
    BRANCHING,
    BRANCHING_WITHIN,
    LONGEST_WAY,
    OFF_SKIN,
    RUNNING_LOAD,
    SECONDARY,
    SPEED_GAIN,
    TOP_SPEED,
    Fracture,
    Samples,
    largest_principal,
    scattered,
)
from phyxel.errors import MaterialError

LOWER, UPPER = np.array([-4.0, -2.0, -1.0]), np.array([4.0, 2.0, 1.0])
WAVES = 10.0
SHEAR = 5.0e5 * np.array([[0.0, 1, 0], [1, 0, 0], [0, 0, 0]])


def drawn_strengths(strength: np.ndarray, scatter: np.ndarray, seed: int) -> np.ndarray:
    return scattered(strength, scatter, np.random.default_rng(seed).standard_normal(len(strength)))


def pulled(stress, strength=1.0e6, deformation=((1, 0, 0), (0, 1, 0), (0, 0, 1))) -> Samples:
    """Samples every half spacing of a block, under a stress (3, 3) or a function of places."""
    axes = [np.arange(a + 0.25, b, 0.5) for a, b in zip(LOWER, UPPER, strict=True)]
    X = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, 3)
    count = len(X)
    stress = stress(X) if callable(stress) else np.broadcast_to(stress, (count, 3, 3))
    J = np.broadcast_to(np.array(deformation, float), (count, 3, 3))
    return Samples(X, np.array(stress), J, np.full(count, strength), np.full(count, WAVES))


def along(axis, size):
    axis = np.asarray(axis, float) / np.linalg.norm(axis)
    return size * np.outer(axis, axis)


def run(fracture, samples, most=80):
    """Grow until nothing changes; how many steps it took."""
    for step in range(most):
        if not fracture.grow(samples, min(fracture.longest_step(samples), 1.0)):
            return step
    raise AssertionError("it never ends")


def test_largest_principal_stress():
    """Against LAPACK, also where two or all three are the same; a triple one is good to √ε of its size."""
    rng = np.random.default_rng(0)
    turns = np.linalg.qr(rng.normal(size=(300, 3, 3)))[0]
    sizes = rng.normal(size=(300, 3))
    sizes[100:200, 1] = sizes[100:200, 0]
    sizes[200:, 1:] = sizes[200:, :1]
    stress = np.einsum("qab,qb,qcb->qac", turns, sizes, turns)
    assert largest_principal(stress) == pytest.approx(np.linalg.eigvalsh(stress)[:, 2], abs=1e-7)


def test_strength_scatters():
    """Mean 1 to its standard error and the standard deviation asked for, all above 0; the same by the same seed."""
    count = 40000
    drawn = drawn_strengths(np.full(count, 2e6), np.full(count, 0.3), seed=5)
    assert drawn.mean() == pytest.approx(2e6, rel=4 * 0.3 / np.sqrt(count))
    assert drawn.std() == pytest.approx(0.6e6, rel=0.03)
    assert drawn.min() > 0
    assert np.array_equal(drawn, drawn_strengths(np.full(count, 2e6), np.full(count, 0.3), seed=5))
    assert not np.array_equal(drawn, drawn_strengths(np.full(count, 2e6), np.full(count, 0.3), seed=6))
    never = drawn_strengths(np.array([np.nan, 3e6]), np.array([0.5, 0.0]), seed=0)
    assert never[0] == np.inf and never[1] == 3e6


def test_it_starts_where_it_is_pulled_most():
    """At the most loaded place, not the most stressed: a disc across N ∝ Jᵀn; below the strength nothing happens."""
    J = np.array([[1.0, 0.3, 0.0], [0.0, 1.1, 0.0], [0.0, 0.0, 0.9]])
    samples = pulled(lambda X: along((1, 0, 0), 1.0) * (0.9e6 - 1e4 * np.abs(X[:, :1, None] - 1.25)), deformation=J)
    fracture = Fracture(LOWER, UPPER)
    assert not fracture.grow(samples, 0.1) and fracture.longest_step(samples) == np.inf
    weak = np.argmin(np.linalg.norm(samples.points - [-2.75, 0.25, 0.25], axis=1))
    strength = samples.strength.copy()
    strength[weak] = 0.5e6
    assert fracture.grow(replace(samples, strength=strength), 0.1) and len(fracture.cracks) == 1
    front = fracture.cracks[0].front
    normal = J.T @ [1, 0, 0] / np.linalg.norm(J.T @ [1, 0, 0])
    assert front.normals @ normal == pytest.approx(1.0)
    assert np.linalg.norm(front.points - samples.points[weak], axis=1) == pytest.approx(BIRTH_RADIUS)


def test_no_skin_is_peeled_off():
    """A crack along a surface that is held starts OFF_SKIN below it, once; one across it starts there."""
    for pull, depth in (((1, 0, 0), OFF_SKIN), ((0, 1, 0), 0.25)):
        samples = pulled(np.zeros((3, 3)))
        at = np.argmin(np.linalg.norm(samples.points - [UPPER[0], 0.25, 0.25], axis=1))
        samples.stress[np.linalg.norm(samples.points - samples.points[at], axis=1) < 1.6] = along(pull, 4.0e6)
        samples.stress[at] *= 1.1
        fracture = Fracture(LOWER, UPPER)
        fracture.grow(samples, 0.1)
        assert len(fracture.cracks) == 1
        assert fracture.cracks[0].front.points.mean(axis=0) == pytest.approx([UPPER[0] - depth, 0.25, 0.25])


def test_further_cracks_need_more():
    """A second crack starts from SECONDARY times the strength, near the first from BRANCHING times."""
    for near, threshold in ((False, SECONDARY), (True, BRANCHING)):
        for share, more in ((0.99, False), (1.01, True)):
            fracture = Fracture(LOWER, UPPER)
            fracture.cut(Crack.plane(fracture.grid, (-2.5, 0, 0), (1, 0, 0)))
            samples = pulled(np.zeros((3, 3)))
            away = np.abs(samples.points[:, 0] + 2.5)
            samples.stress[away < BRANCHING_WITHIN if near else away > BRANCHING_WITHIN] = along(
                (0, 1, 0), share * threshold * 1e6
            )
            samples.stress[:] *= (
                1 - 1e-3 * np.abs(samples.points - [-1 if near else 2, 0, 0]).sum(axis=1)[:, None, None]
            )
            fracture.grow(samples, 0.01)
            assert (len(fracture.cracks) > 1) == more
    # A single sample that is off, as beside a crack, starts none.
    samples.stress[:] = 0
    samples.stress[len(away) // 2] = along((0, 1, 0), 9e6)
    fracture = Fracture(LOWER, UPPER)
    fracture.cut(Crack.plane(fracture.grid, (-2.5, 0, 0), (1, 0, 0)))
    assert not fracture.grow(replace(samples), 0.01)


def test_the_front_runs_as_its_law_says():
    """A slit across an even pull σ runs at TOP_SPEED·SPEED_GAIN·(σ/(RUNNING_LOAD·S) − 1) of the speed of shear waves,
    if above 0."""
    for load in (0.9 * RUNNING_LOAD, 1.2 * RUNNING_LOAD, 3.0):
        fracture = Fracture(LOWER, UPPER)
        fracture.cut(Crack.slit(fracture.grid, (0, 1.0, 0), (1, 0, 0), (0, -1, 0)))
        samples = pulled(along((1, 0, 0), load * 1e6))
        fracture.grow(samples, 0.02)
        speed = TOP_SPEED * WAVES * np.clip(SPEED_GAIN * (load / RUNNING_LOAD - 1), 0, 1)
        assert fracture.cracks[0].front.points[:, 1] == pytest.approx(1.0 - 0.02 * speed, abs=1e-9)
    assert fracture.longest_step(samples) == pytest.approx(LONGEST_WAY / (TOP_SPEED * WAVES))


def test_a_slanted_crack_turns_across_the_pull():
    """A slit at 45° under tension along x runs on across x to 5°, and cuts the block in two."""
    fracture = Fracture(LOWER, UPPER)
    fracture.cut(Crack.slit(fracture.grid, (-1.5, 1.0, 0), (1, 1, 0), (1, -1, 0)))
    run(fracture, pulled(along((1, 0, 0), 1.3e6)))
    sheet = fracture.cracks[0].sheet()
    middle = sheet.mean(axis=1)
    new = (middle[:, 1] < 0.5) & (middle > LOWER).all(axis=1) & (middle < UPPER).all(axis=1)
    area = 0.5 * np.cross(sheet[new, 1] - sheet[new, 0], sheet[new, 2] - sheet[new, 0]).sum(axis=0)
    assert abs(area[0]) / np.linalg.norm(area) > np.cos(np.radians(5))
    one = np.stack([np.full(200, -4.0), *np.random.default_rng(0).uniform(LOWER[1:], UPPER[1:], (200, 2)).T], axis=1)
    assert not fracture.cracks.sees(one, one * [-1, 1, 1]).any()


def test_a_crack_ends_where_it_meets_another():
    """It runs through a cut by less than a step and stands there; what is beyond stays whole, what is before is cut."""
    fracture = Fracture(LOWER, UPPER)
    fracture.cut(Crack.plane(fracture.grid, (1, 0, 0), (1, 0, 0)))
    fracture.cut(Crack.slit(fracture.grid, (-3.0, 0.2, 0), (0, 1, 0), (1, 0, 0)))
    run(fracture, pulled(along((0, 1, 0), 1.4e6)))
    ends = fracture.cracks[1].front.points[:, 0]
    assert ends.min() > 1.0 and ends.max() < 1.0 + LONGEST_WAY + 0.5 * fracture.grid.spacing + 1e-9
    z = np.linspace(-0.95, 0.95, 50)
    for x, seen in ((0.9, False), (2.0, True)):
        above = np.stack([0 * z + x, 0 * z + 0.6, z], axis=1)
        assert (fracture.cracks.sees(above, above - [0, 0.8, 0]) == seen).all()


def test_the_same_cracks_from_a_checkpoint():
    samples = pulled(lambda X: along((1, 0.2, 0), 1.0) * (1.3e6 + 1e4 * X[:, :1, None]))
    fracture, again = Fracture(LOWER, UPPER), Fracture(LOWER, UPPER)
    for _ in range(4):
        fracture.grow(samples, 0.05)
    again.restore(fracture.state())
    for one in (fracture, again):
        for _ in range(3):
            one.grow(samples, 0.05)
    assert all(np.array_equal(value, again.state()[name]) for name, value in fracture.state().items())


@pytest.mark.parametrize(
    "wrong", [{"strength": 0}, {"strength": "much"}, {"strength": np.nan}, {"strength_scatter": -0.1}]
)
def test_wrong_strengths_are_refused(wrong):
    with pytest.raises(MaterialError, match=f"material.{next(iter(wrong))}"):
        px.Material(**wrong)


def test_an_infinite_strength_is_none():
    """Panels that take a strength away say so in a number."""
    body = px.Body(px.load("box", points=400), nodes=60, material=px.Material.rubber().but(strength=np.inf))
    assert np.isinf(body.strength).all() and not body.is_brittle and body.fracture is None


def test_finer_level_sets_move_a_crack_little():
    """Halving the grid's spacing moves the surface by less than one old spacing, all through a shear that turns it."""
    samples = pulled(lambda X: along((1, 0, 0), 1.4e6) + np.sin(X[:, 1])[:, None, None] * SHEAR)
    sheets = []
    for spacing in (1 / 3, 1 / 6):
        fracture = Fracture(LOWER, UPPER, level_spacing=spacing)
        fracture.cut(Crack.slit(fracture.grid, (0.2, 1.5, 0), (1, 0, 0), (0, -1, 0)))
        run(fracture, samples)
        middle = fracture.cracks[0].sheet().mean(axis=1)
        sheets.append(middle[((middle > LOWER) & (middle < UPPER)).all(axis=1)])
    assert np.ptp(sheets[0][:, 0]) > 0.3
    assert cKDTree(sheets[1]).query(sheets[0])[0].max() < 1 / 3
    assert cKDTree(sheets[0]).query(sheets[1])[0].max() < 1 / 3
