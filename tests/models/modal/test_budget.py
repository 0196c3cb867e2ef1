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
    field = model.ready()
    weight = float(model.matter.mass.sum()) * 9.81 / UNIT
    return (ModalEnergy.of(field).total - model.budget.amount) / (0.5 * weight / UNIT)


@pytest.mark.parametrize("how", ["clamped", "hinged", "free"])
def test_energy_stays_within_its_budget(how: str) -> None:
    """A soft pendulum, and a bar that spins, 10 s: E ≤ B to 1e-6 of m g L/2."""
    hinge = face(SPACE, 0, -1)
    line = Hold(hinge[np.abs(hinge[:, 1] - hinge[:, 1].min()) < 1e-6], still=True)
    holds = {"clamped": [base(SPACE)], "hinged": [line], "free": []}[how]
    spin = np.cross([0, 0, 4.0], SPACE.nodes) if how == "free" else None
    model = modal(SPACE, UNIT, holds, spin, young=1e5 if how == "hinged" else 2e4)
    push = 0 * DOWN if how == "free" else DOWN
    worst = -np.inf
    for _ in range(1000 if how == "clamped" else 300):
        model.step(STEP, push, [unmoved(hold) for hold in holds], None)
        worst = max(worst, excess(model))
    print(f"{how}: {worst:.1e}")
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
