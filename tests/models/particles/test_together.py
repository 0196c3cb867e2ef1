"""Links of surfaces and what touches them, solved for at once (physics 15.16)."""

import numpy as np
import pytest
from scipy.sparse import bsr_array

import phyxel as px
from phyxel.models.particles.conjugate import Gradients, Resisting
from phyxel.models.particles.together import ENOUGH, MetStep, Together
from phyxel.models.particles.touches import Touches

INERTIA, FIRM, DEPTH = 2.0, 500.0, 2e-3


def strip() -> tuple[Together, np.ndarray, np.ndarray]:
    """Links of a cloth of 25 particles, where these are, (n, 3) [m], and which are held at one side."""
    body = px.Body(px.load("cloth", points=25), model="particles", material=px.Membrane.cotton(), size=0.2)
    assert body.sheet is not None
    links = Together([body.sheet], [body.unit])
    links.set_stiffness(body.sheet.elements.stiffness(body.mixture, body.unit))
    x = body.birth - body.birth.mean(axis=0)
    return links, x, x[:, 0] < x[:, 0].min() + 1e-6


def pressed_from_below(x: np.ndarray, held: np.ndarray) -> Touches:
    """Something under the middles of all pairs of a held particle and one that is not, so far above them now."""
    pairs = [(a, b) for a in np.flatnonzero(held) for b in np.flatnonzero(~held) if np.linalg.norm(x[a] - x[b]) < 0.06]
    axes = np.broadcast_to(np.array([[0, 1.0, 0], [1, 0, 0], [0, 0, 1]]), (len(pairs), 3, 3))
    data = np.repeat(0.5 * axes, 2, axis=0)
    J = bsr_array((data, np.ravel(pairs), 2 * np.arange(len(pairs) + 1)), shape=(3 * len(pairs), x.size))
    offset = np.tile([-DEPTH, 0.0, 0.0], (len(pairs), 1)) - (J @ x.reshape(-1)).reshape(-1, 3)
    each = np.full(len(pairs), FIRM)
    return Touches(J, np.zeros((3 * len(pairs), 0)), axes, offset, each, 0.3 + 0 * each, each < 0)


@pytest.mark.parametrize("soft", [True, False])
def test_what_is_held_stays_and_the_others_come_into_balance(soft: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Touches bear particles that are held together with others that are not. Where rounds end, by conjugate gradients
    or with a factor, held ones are where they were, to the bit, and of what touches push with a share of 1e-2 is
    left at the others at most: the last round would lead by less than 1e-3 of the way, against what is stiffer than
    inertia."""
    links, x, held = strip()
    monkeypatch.setattr(Together, "_soft", lambda self, step: soft)
    touches = pressed_from_below(x, held)
    inertia = np.repeat(np.where(held, np.inf, INERTIA), 3)
    step = MetStep(x.reshape(-1), x.reshape(-1), inertia, 1.0)
    q, forces = links.solve(step, touches, x.reshape(-1), np.zeros(len(touches)))
    np.testing.assert_array_equal(q.reshape(-1, 3)[held], x[held])
    _, _, pull = links._links.at(q.reshape(-1, 3))
    free = ~held
    left = INERTIA * (x - q.reshape(-1, 3))[free] + pull[free] + touches.pull(forces).reshape(-1, 3)[free]
    assert forces[:, 0].max() > 0
    assert np.abs(left).max() < 1e-2 * np.abs(touches.pull(forces)).max()


@pytest.mark.parametrize("leans", [False, True])
@pytest.mark.parametrize("force", [0.5, 1.5, 40.0])
def test_a_way_finds_who_touches(force: float, leans: bool) -> None:
    """One particle of inertia m is pressed down by f onto something that is g below it and gives way by k. It goes by
    f/m if that is less than g, else by (f + k g)/(m + k), whether it was thought to touch or not, to the share of the
    force at which iterations end."""
    gap, firm = 0.5, np.array([FIRM])
    axes = np.array([[[0, 1.0, 0], [1, 0, 0], [0, 0, 1]]])
    J = bsr_array((axes, [0], [0, 1]), shape=(3, 3))
    touches = Touches(J, np.zeros((3, 0)), axes, np.array([[gap, 0, 0]]), firm, 0 * firm, firm < 0)
    bend = np.zeros((1, 3, 3))
    bend[0, 0, 0] = FIRM
    none = np.zeros(1, np.int64)
    resisting = Resisting(touches, touches.offset, bend, np.array([leans]), 1.0)
    r = np.array([0.0, -force, 0.0])
    way = Gradients(1, none, none).touched(INERTIA * np.eye(3)[None], r == r, r, resisting, np.zeros(0))
    alone = force / INERTIA
    expected = alone if alone < gap else (force + FIRM * gap) / (INERTIA + FIRM)
    np.testing.assert_allclose(way, [0, -expected, 0], rtol=ENOUGH, atol=1e-12)
