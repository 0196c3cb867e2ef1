"""Implicit steps of second order (physics 5.4): TR-BDF2, both stages of which are Euler steps of h from another start.

    first:   ū = u + h v,         v̂ = v + h a         → u₁, v₁ at t + γΔt
    second:  ū = u₁ + c(u₁ − u),  v̂ = v₁ + c(v₁ − v)  → u', v' at t + Δt,   a' = (v' − v̂)/h

with γ = 2 − √2, h = γΔt/2, c = (1 − γ)²/(γ(2 − γ)), and a the acceleration at the start, as the step before leaves it.
It keeps slow motion, where implicit Euler brakes it, and damps what is faster than the step as Euler does. Where a is
not known, for something else has set velocities or changed what acts, and where touch changes within the step, the step
is Euler's: ū = u, v̂ = v, h = Δt.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

GAMMA = 2 - math.sqrt(2)
"""γ"""
SHARE = 0.5 * GAMMA
"""h/Δt of both stages"""
CARRY = (1 - GAMMA) ** 2 / (GAMMA * (2 - GAMMA))
"""c"""


@dataclass(frozen=True)
class EulerStage:
    """An Euler step of h [s] from `base` (n, 3) with velocities `speed` (n, 3)."""

    base: Floats
    """ū"""
    speed: Floats
    """v̂"""
    h: float
    guess: Floats
    """of where it ends"""

    @staticmethod
    def euler(u: Floats, v: Floats, dt: float) -> EulerStage:
        return EulerStage(u, v, dt, u + dt * v)

    @staticmethod
    def first(u: Floats, v: Floats, a: Floats, dt: float) -> EulerStage:
        h = SHARE * dt
        base = u + h * v
        return EulerStage(base, v + h * a, h, base + h * (v + 2 * h * a))

    @staticmethod
    def second(u: Floats, v: Floats, u1: Floats, v1: Floats, dt: float) -> EulerStage:
        h = SHARE * dt
        base = u1 + CARRY * (u1 - u)
        return EulerStage(base, v1 + CARRY * (v1 - v), h, base + h * (v + (v1 - v) / GAMMA))

    def velocity(self, end: Floats) -> Floats:
        """v' of a stage that ends so."""
        return (end - self.base) / self.h

    def acceleration(self, end: Floats) -> Floats:
        """a' of a stage that ends so."""
        return (self.velocity(end) - self.speed) / self.h
