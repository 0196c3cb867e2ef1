"""Momenta of phyxels that nothing holds or touches, after an implicit step (physics 5.6)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from phyxel.models.second_order import CARRY

Floats = NDArray[np.float64]


def freely(v: Floats, push: Floats, drag: Floats, dt: float, h: Floats) -> Floats:
    """v' of phyxels that feel nothing but pushes (n, 3) and drag (n, 1), by the last stages of h (n, 1) of a step."""
    first = (v + h * (2 * push - drag * v)) / (1 + h * drag)
    second = (first + CARRY * (first - v) + h * push) / (1 + h * drag)
    return np.where(h == dt, (v + dt * push) / (1 + dt * drag), second)


def with_momenta(x: Floats, ahead: Floats, free: Floats, v: Floats, mass: Floats) -> Floats:
    """v' with the momentum and, about the middle of mass, the angular momentum that velocities `free` (n, 3) would have
    at x, where the step began; it ends `ahead` (physics 1.7, 5.6)."""
    total = mass.sum()
    drift_old, drift = mass @ free / total, mass @ v / total
    arm_old, arm = x - mass @ x / total, ahead - mass @ ahead / total
    target = np.cross(arm_old, mass[:, None] * (free - drift_old)).sum(axis=0)
    missing = target - np.cross(arm, mass[:, None] * (v - drift)).sum(axis=0)
    inertia = (mass @ (arm**2).sum(axis=1)) * np.eye(3) - np.einsum("n,ni,nj->ij", mass, arm, arm)
    return v + drift_old - drift + np.cross(np.linalg.solve(inertia, missing), arm)


def put_to(x: Floats, v: Floats, mass: Floats, momentum: Floats, spin: Floats) -> Floats:
    """v with as much rigid motion added as gives masses at x (n, 3) a momentum and an angular momentum about the
    origin, (3,) each."""
    total = mass.sum()
    v = v + (momentum - mass @ v) / total
    arm = x - mass @ x / total
    missing = spin - np.cross(x, mass[:, None] * v).sum(axis=0)
    inertia = (mass @ (arm**2).sum(axis=1)) * np.eye(3) - np.einsum("n,ni,nj->ij", mass, arm, arm)
    return v + np.cross(np.linalg.solve(inertia, missing), arm)
