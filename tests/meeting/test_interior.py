"""Where interior points lead, of contacts of many bodies at random."""

import numpy as np
import pytest
from scipy.sparse import csr_array

from phyxel.meeting.coulomb import SOFT, CoulombProblem
from phyxel.meeting.interior import GAP, InteriorPoint


def crowd(seed, friction, bodies=40, contacts=300):
    """Bodies that fly about, each contact between two of them, with masses from 0.1 to 10."""
    rng = np.random.default_rng(seed)
    G = np.zeros((contacts, 3, 6 * bodies))
    scale = 10 ** rng.uniform(-0.5, 0.5, bodies)
    for k in range(contacts):
        one, other = rng.choice(bodies, 2, replace=False)
        for body, sign in ((one, 1.0), (other, -1.0)):
            axes = np.linalg.qr(rng.normal(size=(3, 3)))[0]
            turning = np.cross(rng.uniform(-1, 1, 3), axes)
            G[k, :, 6 * body : 6 * body + 6] = sign * scale[body] * np.concatenate([axes, turning], axis=1)
    return CoulombProblem(
        csr_array(G.reshape(3 * contacts, -1)), rng.normal(size=(contacts, 3)),
        np.where(rng.random(contacts) < 0.5, rng.uniform(-1, 0.5, contacts), 0.0), np.full(contacts, friction),
        np.zeros((contacts, 2)), np.full(contacts, 1e-4), np.zeros(contacts),
    )  # fmt: skip


def inside(problem):
    return InteriorPoint(problem, SOFT * problem.gives, problem.gives)


@pytest.mark.parametrize("seed", range(3))
def test_without_friction_it_is_the_minimum(seed):
    """p ≥ 0, s = v_n + b + R p ≥ 0 and a = Gᵀ p to rounding: all of these are linear, and whole steps meet them. p s
    is what may be left of the energy, so that 1e-9 of that stands between it and the least."""
    problem = crowd(seed, 0.0)
    a, p = inside(problem).found()
    left = (problem.free + (problem.G @ a).reshape(-1, 3))[:, 0] + problem.room + SOFT * problem.gives * p
    energy = (np.square(problem.free).sum(axis=1) / problem.gives).sum()
    assert p.min() > 0 and left.min() > -1e-9
    assert np.abs(problem.G[::3].T @ p - a).max() < 1e-9 * np.abs(a).max()
    assert p @ left < 2 * GAP * energy


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("friction", [0.1, 0.3])
def test_newtons_method_ends_soon_from_there(seed, friction, monkeypatch):
    """Of 300 contacts that open, close, hold and slide at once: from no impulses on each pass takes dozens of steps.
    With much more friction what slides presses the harder the more it is rubbed, and passes do not agree."""
    problem, count = crowd(seed, friction), []
    start = inside(problem).found()
    found = type(problem).factored

    def factored(self, bend):
        count.append(1)
        return found(self, bend)

    monkeypatch.setattr(type(problem), "factored", factored)
    p, done = problem.passes(*start, 60)
    assert done and len(count) < 30
    assert 0 <= p[:, 0].min() < p[:, 0].max()


def test_where_it_starts_is_no_matter():
    """Answers are those of the least energy, from impulses of any step before on: without friction there is one."""
    problem = crowd(5, 0.0)
    rng = np.random.default_rng(1)
    one, other = (problem.solved(start) for start in (np.zeros((300, 3)), rng.normal(size=(300, 3))))
    a, b = (problem.G.T @ p.reshape(-1) for p in (one, other))
    np.testing.assert_allclose(a, b, atol=1e-6 * np.abs(a).max())
