"""Free rotation: what it keeps, and how exact it is."""

import numpy as np
import pytest

from phyxel.models.rigid import free_motion
from phyxel.models.rigid.free_motion import FreeRotation
from phyxel.rotation import euler, rotation_by

AXES = euler((30, 60, -20))
INERTIA = AXES @ np.diag([1.0, 2.0, 2.6]) @ AXES.T


def energy(R: np.ndarray, L: np.ndarray) -> float:
    return float(0.5 * (R.T @ L) @ np.linalg.solve(INERTIA, R.T @ L))


@pytest.mark.parametrize("steps", [3000, pytest.param(100_000, marks=pytest.mark.slow)])
def test_energy_stays_about_the_unstable_axis(steps: int) -> None:
    """½ L·I⁻¹L stays to rounding, which wanders as √steps; L is given and never changes. The spin starts along the
    intermediate axis and turns over, again and again: that is seen, too."""
    body, R = FreeRotation(INERTIA), euler((10, 20, 30))
    L = R @ INERTIA @ (AXES @ np.array([0.05, 5.0, 0.05]))
    start, along = energy(R, L), []
    for k in range(steps):
        R = body.turned(R, L, 0.01)
        if k % 10 == 0:
            along.append((AXES.T @ R.T @ L)[1] / np.linalg.norm(L))
            assert abs(energy(R, L) / start - 1) < 1e-12
    np.testing.assert_allclose(R @ R.T, np.eye(3), atol=1e-15)
    assert min(along) < -0.99 and max(along) > 0.99


def test_it_is_of_sixth_order(monkeypatch: pytest.MonkeyPatch) -> None:
    """Halving the step divides the error by 2⁶ = 64; to a tenth of that exponent."""
    monkeypatch.setattr(free_motion, "FARTHEST", np.inf)
    body, start = FreeRotation(INERTIA), np.eye(3)
    L = INERTIA @ np.array([3.0, 2.0, 4.0])

    def end(steps: int) -> np.ndarray:
        R = start
        for _ in range(steps):
            R = body.turned(R, L, 1 / steps)
        return R

    truth = end(320)
    errors = [np.abs(end(steps) - truth).max() for steps in (20, 40)]
    assert np.log2(errors[0] / errors[1]) == pytest.approx(6, abs=0.6)


@pytest.mark.parametrize(("across", "along"), [(2.0, 2.0), (1.0, 2.0), (3.0, 0.001)])
def test_balls_and_tops_turn_evenly(across: float, along: float) -> None:
    """With an axis of symmetry z, ω = L/I₁ + (1/I₃ − 1/I₁) L_z z: a top turns about L by L/I₁ while it turns about its
    own axis by the rest. A step of 0.03 rad is off by 1e-4 of its seventh power."""
    inertia, axis = np.diag([across, across, along]), np.array([0.0, 0.0, 1.0])
    L = inertia @ np.array([0.5, 1.0, 0.7])
    body, R, dt = FreeRotation(inertia), np.eye(3), 0.02
    for _ in range(50):
        R = body.turned(R, L, dt)
    exact = rotation_by(50 * dt * L / across) @ rotation_by(50 * dt * (1 / along - 1 / across) * (axis @ L) * axis)
    np.testing.assert_allclose(R, exact, atol=1e-11)


def test_a_fast_spin_is_cut_into_parts() -> None:
    """100 rad in one step about a principal axis: exp(t [ω]×)."""
    R = FreeRotation(np.diag([1.0, 2.0, 3.0])).turned(np.eye(3), np.array([0, 0, 300.0]), 1.0)
    np.testing.assert_allclose(R, rotation_by(np.array([0, 0, 100.0])), atol=1e-6)
