"""The energy of modal bodies and its budget (physics 11.7), on a bar 1 × 0.2 × 0.2 m that nothing damps."""

from __future__ import annotations

import numpy as np
import pytest

from phyxel.models.modal.budget import ModalEnergy
from phyxel.models.modal.model import ModalModel
from phyxel.models.protocol import Goal, Hold
from tests.models.modal.blocks import base, block, face, gravity, modal, unmoved

STEP = 0.01
SPACE, UNIT = block((8, 2, 2), (1.0, 0.2, 0.2))
DOWN = gravity(SPACE, UNIT, 0, -1, 0)


def excess(model: ModalModel) -> float:
    """Energy above the budget, over m g L/2."""
    return (ModalEnergy.of(model.ready()).total - model.budget.amount) / weight(model)


def weight(model: ModalModel) -> float:
    """m g L/2, in the body's own scales."""
    return 0.5 * float(model.matter.mass.sum()) * 9.81 / UNIT**2


@pytest.mark.parametrize(
    ("how", "young", "steps"),
    [("clamped", 2e4, 1000), ("hinged", 2e4, 150), ("hinged", 5e4, 200), ("hinged", 1e5, 200), ("free", 2e4, 300)],
)
def test_energy_stays_within_its_budget(how: str, young: float, steps: int) -> None:
    """A soft pendulum, and a bar that spins: E ≤ B to 1e-6 of m g L/2; and B stays at most what it was, but for
    the 1 % to which work of holds is found, as none of them moves.
    Hinged at an edge, 2e4 and 5e4 Pa fold within a second, where forces on the modes lead uphill."""
    hinge = face(SPACE, 0, -1)
    line = Hold(hinge[np.abs(hinge[:, 1] - hinge[:, 1].min()) < 1e-6], still=True)
    holds = {"clamped": [base(SPACE)], "hinged": [line], "free": []}[how]
    spin = np.cross([0, 0, 4.0], SPACE.nodes) if how == "free" else None
    model = modal(SPACE, UNIT, holds, spin, young=young)
    push = 0 * DOWN if how == "free" else DOWN
    model.ready()
    start = model.budget.amount
    worst = most = -np.inf
    for _ in range(steps):
        model.step(STEP, push, [unmoved(hold) for hold in holds], None)
        worst, most = max(worst, excess(model)), max(most, model.budget.amount)
    print(f"{how}: {worst:.1e}")
    assert worst < 1e-6
    assert most <= start + 0.01 * weight(model)


def test_a_dragged_tip_stays_within_its_budget() -> None:
    """A hand that swings the end of a soft hinged bar about for 2 s."""
    far = face(SPACE, 0, 1)
    hand, edge = Hold(far[:2], still=False), Hold(face(SPACE, 0, -1)[:2], still=True)
    model = modal(SPACE, UNIT, [edge, hand], young=5e4)
    worst = -np.inf
    for k in range(1, 201):
        way = np.array([0.1 * np.sin(0.021 * k), 0.15 * (1 - np.cos(0.03 * k)), 0.0]) / UNIT
        model.step(STEP, DOWN, [unmoved(edge), Goal(np.tile(way, (2, 1)), np.eye(3))], None)
        worst = max(worst, excess(model))
    assert worst < 1e-6


def test_a_hand_puts_in_its_work() -> None:
    """A tip lifted slowly by a tenth of the length: the budget grows by the work of the hand, and all of it is in the
    body, ½ zᵀΛz, to 1 %."""
    hand = Hold(face(SPACE, 0, 1), still=False)
    model = modal(SPACE, UNIT, [base(SPACE), hand], young=1e6)
    push, steps = 0 * DOWN, 200
    for k in range(1, steps + 1):
        share = 0.5 * (1 - np.cos(np.pi * k / steps))
        goal = Goal(np.tile([0, 0.1 / UNIT * share, 0], (len(hand.points), 1)), np.eye(3))
        model.step(STEP, push, [unmoved(base(SPACE)), goal], None)
    energy = ModalEnergy.of(model.ready())
    print(f"work {model.budget.amount:.4g}, elastic {energy.elastic:.4g}, kinetic {energy.swing:.2g}")
    assert energy.total == pytest.approx(model.budget.amount, rel=0.01)
    assert energy.elastic == pytest.approx(model.budget.amount, rel=0.01)


def test_the_budget_goes_into_checkpoints() -> None:
    one, other = (modal(SPACE, UNIT, [base(SPACE)], young=2e4) for _ in range(2))
    goals = [unmoved(base(SPACE))]
    for _ in range(100):
        one.step(STEP, DOWN, goals, None)
    other.restore(one.state())
    assert other.budget.amount == one.budget.amount
    for model in (one, other):
        for _ in range(20):
            model.step(STEP, DOWN, goals, None)
    np.testing.assert_array_equal(one.u, other.u)
