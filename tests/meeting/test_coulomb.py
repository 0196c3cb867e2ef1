"""Coulomb's problem on what boxes answer. A box of mass m and side s stands on four corners; T is a step."""

import numpy as np
import pytest
import warp as wp

from phyxel.device import float64s, vec2ds
from phyxel.meeting import newton
from phyxel.meeting.coulomb import CoulombProblem
from phyxel.rotation import cross_matrix
from tests.meeting.blocks import blocks_of, matrix_of

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


def standing(friction, slope):
    """The problem of the box at rest on a slope (tan), after gravity has pulled for a step."""
    down = 9.81 * T / np.hypot(1, slope) * np.array([-1, slope, 0])
    return CoulombProblem(
        blocks_of(answers()),
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
    p, left = problem.solved(np.zeros((4, 3)))
    weight = 9.81 * T * MASS / np.hypot(1, slope)
    assert p.sum(axis=0)[:2] == pytest.approx([weight, -slope * weight], abs=2e-4)
    assert np.linalg.norm(left[:, 1:], axis=1).max() < 1e-4


@pytest.mark.parametrize("slope", [0.55, 1.0, 3.0])
def test_what_slides_is_rubbed_by_coulombs_share(slope):
    """|p_t| = μ p_n exactly once all slides; the pressure of the last pass but one differs by SETTLED at most."""
    p, _ = standing(0.5, slope).solved(np.zeros((4, 3)))
    assert np.linalg.norm(p.sum(axis=0)[1:]) == pytest.approx(0.5 * p.sum(axis=0)[0], rel=2e-2)
    assert p.sum(axis=0)[0] == pytest.approx(9.81 * T * MASS / np.hypot(1, slope), rel=1e-4)


def test_what_is_held_all_over_bears_nothing():
    """A contact of which neither side answers has no impulse, and its velocity is what it was."""
    held = blocks_of(np.zeros((12, 6)))
    problem = CoulombProblem(held, np.full((4, 3), -1.0), *np.zeros((2, 4)), np.zeros((4, 2)), np.ones(4), np.zeros(4))
    p, v = problem.solved(np.ones((4, 3)))
    assert not p.any() and (v == -1.0).all()


def test_nothing_pulls():
    """A box that goes up is let go."""
    problem = standing(0.5, 0.2)
    rising = CoulombProblem(problem.G, -problem.free, *(getattr(problem, name) for name in ("room", "friction")),
                            problem.slip, problem.creep, problem.tied)  # fmt: skip
    assert not rising.solved(np.zeros((4, 3)))[0].any()


def test_velocities_are_what_the_answers_make_of_impulses():
    """v = v₀ + G Gᵀ p, to rounding."""
    problem = standing(0.5, 0.3)
    p, v = problem.solved(np.zeros((4, 3)))
    made = answers() @ (answers().T @ p.reshape(-1))
    np.testing.assert_allclose(v, problem.free + made.reshape(-1, 3), atol=1e-14)


def test_islands_do_not_know_of_each_other():
    """Boxes that touch nothing in common, and a contact that nothing answers, are solved as each by itself: to the
    bit, wherever they are among the others."""
    flat, steep = standing(0.5, 0.3), standing(0.5, 1.0)
    G = np.zeros((27, 12))
    G[:12, 6:], G[15:, :6] = answers(), answers()
    both = CoulombProblem(
        blocks_of(G), np.concatenate([flat.free, np.ones((1, 3)), steep.free]), np.zeros(9), np.full(9, 0.5),
        np.zeros((9, 2)), np.full(9, 1e-4), np.zeros(9),
    )  # fmt: skip
    p, v = both.solved(np.zeros((9, 3)))
    for one, own in ((flat, slice(0, 4)), (steep, slice(5, 9))):
        alone, velocity = one.solved(np.zeros((4, 3)))
        np.testing.assert_array_equal(p[own], alone)
        np.testing.assert_array_equal(v[own], velocity)
    assert not p[4].any() and (v[4] == 1).all()


@pytest.mark.parametrize("seed", range(3))
def test_what_is_left_of_answers(seed):
    """(1 + Gᵀ D G)⁻¹, from a dense factor: what holds is 1/R along normals that press, and along tangents what friction
    gives of the velocity; none slides here, so that f₀'/|v| is (2 − |v|/ε)/ε and all of D is known."""
    rng = np.random.default_rng(seed)
    G = rng.normal(size=(3 * 20, 30)) * (rng.random((60, 30)) < 0.3)
    free = np.concatenate([-np.ones((20, 1)), np.zeros((20, 2))], axis=1)
    problem = CoulombProblem(
        blocks_of(G), free, np.zeros(20), np.zeros(20), np.zeros((20, 2)), np.full(20, 1e-4), np.zeros(20)
    )
    p, v = problem.solved(np.zeros((20, 3)))
    D = np.where(v[:, 0] < 0, 1 / (float(newton.SOFT) * problem.gives), 0.0)
    every, asked = matrix_of(problem.G), rng.normal(size=(30, 4))
    found = problem.left_of(asked, p)
    expected = np.linalg.solve(np.eye(30) + (every[::3].T * D) @ every[::3], asked)
    np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-9)


@wp.kernel
def slide(along: vec2ds, creep: float64s, slope: float64s, steeper: float64s):
    s = newton.mollified(along[wp.tid()], creep[wp.tid()])
    slope[wp.tid()] = s.slope * s.length
    steeper[wp.tid()] = s.steeper


def test_the_mollified_length_is_what_its_derivatives_say():
    """f₀' = 2x − x² of x = |v|/ε below ε, and f₀'' by central differences, below and above; error h²/ε² = 1e-6."""
    creep, step = np.full(5, 1e-3), 1e-6
    along = np.array([[x, 0.0] for x in (1e-4, 5e-4, 9e-4, 2e-3, 1.0)])

    def at(shift):
        moved = wp.array(along + np.array([shift, 0.0]), dtype=wp.vec2d, device="cpu")
        slope, steeper = np.zeros(5), np.zeros(5)
        wp.launch(slide, 5, inputs=[moved, creep, slope, steeper], device="cpu")
        return slope, steeper

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
    impulses, after = tied.solved(np.zeros((4, 3)))
    assert np.abs(impulses.sum(axis=0) + MASS * pull).max() < 2e-3 * MASS * np.abs(pull).max()
    assert np.abs(after).max() < 2e-3 * np.abs(pull).max()


@pytest.mark.parametrize("seed", range(5))
def test_impacts_of_many_make_no_energy(seed):
    """½ |Gᵀp|² + p·v₀ is what impulses change of the energy: not above 0, whatever meets at once."""
    rng = np.random.default_rng(seed)
    G, count = rng.normal(size=(3 * 60, 40)) * (rng.random((180, 40)) < 0.3), 60
    problem = CoulombProblem(
        blocks_of(G), rng.normal(size=(count, 3)), np.zeros(count), np.full(count, 0.5), np.zeros((count, 2)),
        np.full(count, 1e-4), np.zeros(count),
    )  # fmt: skip
    p, _ = problem.solved(np.zeros((count, 3)))
    assert 0.5 * np.square(G.T @ p.reshape(-1)).sum() + np.vdot(p, problem.free) < 0
    assert p[:, 0].min() >= 0
