"""Where interior points lead, of contacts of many bodies at random."""

import numpy as np
import pytest
import warp as wp

from phyxel.device import int32s
from phyxel.meeting.answer_blocks import Islands, System, list_rows
from phyxel.meeting.coulomb import AnswerBlocks, CoulombProblem, begin_with_impulses
from phyxel.meeting.interior import GAP, Slacks, go_inside
from phyxel.meeting.newton import SOFT, Found, Touching, passes, see_velocities
from tests.meeting.blocks import matrix_of

GAP, SOFT = float(GAP), float(SOFT)


@wp.kernel
def find_inside(
    first: int,
    islands: Islands,
    contacts: Touching,
    system: System,
    found: Found,
    inside: Slacks,
    taken: int32s,
):
    list_rows(wp.tid(), islands, system)
    taken[wp.tid()] = go_inside(wp.tid(), islands, contacts, system, found, inside)


@wp.kernel
def go_on(
    first: int, islands: Islands, contacts: Touching, system: System, found: Found, inside: Slacks, most: int,
    done: int32s,
):  # fmt: skip
    list_rows(wp.tid(), islands, system)
    go_inside(wp.tid(), islands, contacts, system, found, inside)
    done[wp.tid()] = int(passes(wp.tid(), islands, contacts, system, found, most))
    begin_with_impulses(wp.tid(), islands, found)
    see_velocities(wp.tid(), islands, contacts, found)


def crowd(seed, friction, bodies=40, contacts=300, flying=None):
    """Bodies that fly about, each contact between two of them, with masses from 0.1 to 10. Contacts have velocities
    and room at random, or those of bodies that go as answers `flying` (6n,) say, and room in front of them."""
    rng = np.random.default_rng(seed)
    scale = 10 ** rng.uniform(-0.5, 0.5, bodies)
    block, G = [], []
    for _ in range(contacts):
        one, other = rng.choice(bodies, 2, replace=False)
        for body, sign in ((one, 1.0), (other, -1.0)):
            axes = np.linalg.qr(rng.normal(size=(3, 3)))[0]
            turning = np.cross(rng.uniform(-1, 1, 3), axes)
            block.append(body)
            G.append(sign * scale[body] * np.concatenate([axes, turning], axis=1))
    blocks = AnswerBlocks.of(np.repeat(np.arange(contacts), 2), np.array(block), np.array(G), contacts, bodies)
    free = rng.normal(size=(contacts, 3)) if flying is None else (matrix_of(blocks) @ flying).reshape(-1, 3)
    room = rng.uniform(-1 if flying is None else 0, 0.5, contacts)
    return CoulombProblem(
        blocks, free, np.where(rng.random(contacts) < 0.5, room, 0.0), np.full(contacts, friction),
        np.zeros((contacts, 2)), np.full(contacts, 1e-4), np.zeros(contacts),
    )  # fmt: skip


def launched(kernel, problem, *more):
    """What a kernel finds of a problem that is one island: answers, what it found of contacts by name in the order of
    the problem, and the number that it says."""
    known, said = problem._known, np.zeros(1, np.int32)
    found = known.found(np.zeros((len(problem.free), 3)))
    known.launch(kernel, found, known.inside(), *more, said)
    of_contacts = {}
    for name in ("pressure", "p", "kept"):
        values = getattr(found, name).numpy()
        of_contacts[name] = np.empty_like(values)
        of_contacts[name][known.order] = values
    a = np.empty((problem.G.count, 6))
    a[known.blocks] = found.a.numpy()
    return a.reshape(-1), of_contacts, int(said[0])


@pytest.mark.parametrize("seed", range(3))
def test_without_friction_it_is_the_minimum(seed):
    """p ≥ 0, s = v_n + b + R p ≥ 0 and a = Gᵀ p to rounding: all of these are linear, and whole steps meet them. p s
    is what may be left of the energy, so that 1e-9 of that stands between it and the least."""
    problem = crowd(seed, 0.0)
    G = matrix_of(problem.G)
    a, found, _ = launched(find_inside, problem)
    p = found["pressure"]
    left = (problem.free + (G @ a).reshape(-1, 3))[:, 0] + problem.room + SOFT * problem.gives * p
    energy = (np.square(problem.free).sum(axis=1) / problem.gives).sum()
    assert p.min() > 0 and left.min() > -1e-9
    assert np.abs(G[::3].T @ p - a).max() < 1e-9 * np.abs(a).max()
    assert p @ left < 2 * GAP * energy


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("friction", [0.1, 0.3])
def test_newtons_method_ends_soon_from_there(seed, friction):
    """Of 300 contacts that open, close, hold and slide at once: from no impulses on each pass takes dozens of steps.
    With much more friction what slides presses the harder the more it is rubbed, and passes do not agree."""
    _, found, done = launched(go_on, crowd(seed, friction), 8)
    assert done
    assert 0 <= found["kept"][:, 0].min() < found["kept"][:, 0].max()


def test_where_it_starts_is_no_matter():
    """Answers are those of the least energy, from impulses of any step before on: without friction there is one."""
    problem = crowd(5, 0.0)
    rng = np.random.default_rng(1)
    one, other = (problem.solved(start)[0] for start in (np.zeros((300, 3)), rng.normal(size=(300, 3))))
    a, b = (matrix_of(problem.G).T @ p.reshape(-1) for p in (one, other))
    np.testing.assert_allclose(a, b, atol=1e-6 * np.abs(a).max())


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("friction", [0.6, 1.0])
def test_interior_points_stay_within_the_cone_of_much_friction(seed, friction):
    """Bodies that fly at each other. Where interior points end contacts push only, p_n > 0, and only what touches: s =
    v_n + b + R p_n ≥ 0 to rounding, as in `test_without_friction_it_is_the_minimum`, and Σ p s is what may be left of
    the energy, 1e-9. Friction is of μ p_n at most, as the pressure was up to 24 steps before the last: it changes by
    less than 1e-3 of the largest since. Bodies have less kinetic energy than before."""
    flying = np.random.default_rng(seed).normal(size=240)
    problem = crowd(seed, friction, flying=flying)
    a, found, steps = launched(find_inside, problem)
    assert steps < 40
    p, G = found["kept"], matrix_of(problem.G)
    energy = (np.square(problem.free).sum(axis=1) / problem.gives).sum()
    left = (problem.free + (G @ a).reshape(-1, 3))[:, 0] + problem.room + SOFT * problem.gives * p[:, 0]
    assert p[:, 0].min() > 0 and left.min() > -1e-9 * np.abs(problem.free).max()
    assert p[:, 0] @ left < 2 * GAP * energy
    assert (np.linalg.norm(p[:, 1:], axis=1) - friction * p[:, 0]).max() < 1e-3 * p[:, 0].max()
    assert (flying + a) @ (flying + a) < flying @ flying


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("friction", [0.6, 1.0])
def test_much_friction_makes_no_energy(seed, friction):
    """The same after Newton's method, whose steps may not be enough for a pass, and whose passes need not agree: it
    ends with impulses that push, p_n ≥ 0, only where something touches, rub against what slides, and leave less
    energy than there was. It leaves up to 1e-14 of the energy to gain, 1e-7 of velocities, and W is up to ten times
    greater elsewhere."""
    flying = np.random.default_rng(seed).normal(size=240)
    problem = crowd(seed, friction, flying=flying)
    p, v = problem.solved(np.zeros((300, 3)))
    energy = (np.square(problem.free).sum(axis=1) / problem.gives).sum()
    left = v[:, 0] + problem.room + SOFT * problem.gives * p[:, 0]
    assert p[:, 0].min() >= 0 and left.min() > -1e-6 * np.abs(problem.free).max()
    assert np.abs(p[:, 0] * left).sum() < 1e-7 * energy
    assert np.einsum("ka,ka->k", p[:, 1:], v[:, 1:]).max() < 1e-7 * energy
    after = flying + matrix_of(problem.G).T @ p.reshape(-1)
    assert after @ after < flying @ flying
