"""Coulomb's problem on what boxes answer. A box of mass m and side s stands on four corners; T is a step."""

import numpy as np
import pytest
from scipy.sparse import csr_array

from phyxel.meeting.coulomb import CoulombProblem, mollified
from phyxel.rotation import cross_matrix

T, SIDE, MASS = 1 / 240, 0.1, 2.0
CORNERS = 0.5 * SIDE * np.array([(x, -1, z) for x in (-1, 1) for z in (-1, 1)])
AXES = np.array([[0, 1, 0], [1, 0, 0], [0, 0, 1.0]])
"""normal up, then two tangents"""


def answers():
    """G of the box: how (v, ω), scaled to unit energy, moves its corners along the axes, shape (12, 6)."""
    inertia = MASS * SIDE**2 / 6
    per_answer = 1 / np.sqrt([MASS] * 3 + [inertia] * 3)
    rows = np.concatenate([np.tile(np.eye(3), (4, 1, 1)), -cross_matrix(CORNERS)], axis=2)
    return (AXES @ rows).reshape(12, 6) * per_answer


def standing(friction, slope, G=None):
    """The problem of the box at rest on a slope (tan), after gravity has pulled for a step."""
    down = 9.81 * T / np.hypot(1, slope) * np.array([-1, slope, 0])
    return CoulombProblem(
        answers() if G is None else G,
        np.tile(down, (4, 1)),
        np.zeros(4),
        np.full(4, friction),
        np.zeros((4, 2)),
        np.full(4, 1e-4),
        np.zeros(4),
    )


@pytest.mark.parametrize("slope", [0.1, 0.3, 0.475])
def test_friction_holds_below_its_angle(slope):
    """Impulses are the box's weight times T, but for what is left to creep, below ε (f₀' < 1): m ε = 2e-4."""
    problem = standing(0.5, slope)
    p = problem.solved(np.zeros((4, 3)))
    weight = 9.81 * T * MASS / np.hypot(1, slope)
    assert p.sum(axis=0)[:2] == pytest.approx([weight, -slope * weight], abs=2e-4)
    left = problem.free + (problem.G @ (problem.G.T @ p.reshape(-1))).reshape(-1, 3)
    assert np.linalg.norm(left[:, 1:], axis=1).max() < 1e-4


@pytest.mark.parametrize("slope", [0.55, 1.0, 3.0])
def test_what_slides_is_rubbed_by_coulombs_share(slope):
    """|p_t| = μ p_n exactly once all slides; the pressure of the last pass but one differs by SETTLED at most."""
    p = standing(0.5, slope).solved(np.zeros((4, 3)))
    assert np.linalg.norm(p.sum(axis=0)[1:]) == pytest.approx(0.5 * p.sum(axis=0)[0], rel=2e-2)
    assert p.sum(axis=0)[0] == pytest.approx(9.81 * T * MASS / np.hypot(1, slope), rel=1e-4)


def test_nothing_pulls():
    """A box that goes up is let go."""
    problem = standing(0.5, 0.2)
    rising = CoulombProblem(problem.G, -problem.free, *(getattr(problem, name) for name in ("room", "friction")),
                            problem.slip, problem.creep, problem.tied)  # fmt: skip
    assert not rising.solved(np.zeros((4, 3))).any()


def test_many_bodies_are_solved_as_few():
    """Sparse and full systems differ by rounding."""
    few, many = (standing(0.5, 0.3, G).solved(np.zeros((4, 3))) for G in (answers(), csr_array(answers())))
    np.testing.assert_allclose(many, few, rtol=1e-6, atol=1e-9)


def test_the_mollified_length_is_what_its_derivatives_say():
    """f₀' = 2x − x² of x = |v|/ε below ε, and f₀'' by central differences, below and above; error h²/ε² = 1e-6."""
    creep, step = np.full(5, 1e-3), 1e-6
    along = np.array([[x, 0.0] for x in (1e-4, 5e-4, 9e-4, 2e-3, 1.0)])

    def at(shift):
        length, slope, steeper = mollified(along + np.array([shift, 0.0]), creep)
        return slope * length, steeper

    (slope, steeper), (up, _), (down, _) = (at(shift) for shift in (0.0, step, -step))
    x = np.minimum(along[:, 0] / creep, 1.0)
    np.testing.assert_allclose(slope, 2 * x - x**2, rtol=1e-12)
    np.testing.assert_allclose((up - down) / (2 * step), steeper * (along[:, 0] < creep), rtol=1e-5, atol=1e-6)


def test_ties_pull_and_hold_and_share_their_load():
    """Ties of a box that is pulled away from where it stands, and along: they bear all of it, −m g T, each what it
    stands for; nothing is left of the motion but what they give way, 1e-3 of it."""
    pull, share = np.array([9.81, 3.0, 0.0]) * T, np.array([1.2, 0.8, 1.2, 0.8])
    problem = standing(0.0, 0.0)
    tied = CoulombProblem(
        problem.G, np.tile(pull, (4, 1)), problem.room, np.full(4, np.inf), problem.slip, problem.creep, share
    )
    impulses = tied.solved(np.zeros((4, 3)))
    assert np.abs(impulses.sum(axis=0) + MASS * pull).max() < 2e-3 * MASS * np.abs(pull).max()
    after = tied.free + (tied.G @ (tied.G.T @ impulses.reshape(-1))).reshape(-1, 3)
    assert np.abs(after).max() < 2e-3 * np.abs(pull).max()


@pytest.mark.parametrize("seed", range(5))
def test_impacts_of_many_make_no_energy(seed):
    """½ |Gᵀp|² + p·v₀ is what impulses change of the energy: not above 0, whatever meets at once."""
    rng = np.random.default_rng(seed)
    G, count = rng.normal(size=(3 * 60, 40)) * (rng.random((180, 40)) < 0.3), 60
    problem = CoulombProblem(
        G, rng.normal(size=(count, 3)), np.zeros(count), np.full(count, 0.5), np.zeros((count, 2)),
        np.full(count, 1e-4), np.zeros(count),
    )  # fmt: skip
    p = problem.solved(np.zeros((count, 3)))
    assert 0.5 * np.square(G.T @ p.reshape(-1)).sum() + np.vdot(p, problem.free) < 0
    assert p[:, 0].min() >= 0
