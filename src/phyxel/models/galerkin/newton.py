"""Minima of an energy over fields, by Newton's method with inexact conjugate gradients (physics 10.4)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

MOST_CG = 400
FORCING = 1e-2
"""What conjugate gradients leave of a residual, in the preconditioner's norm: Newton's method does the rest."""
SHORTEST = 2.0**-12
"""Part of a correction below which there is nothing to be gained along it."""
ROUNDING = 1e-13
"""Relative to the energy: what sums over points may be off by."""


class Potential(Protocol):
    """An energy of fields u (n, 3) of which some parts may be held."""

    def at(self, u: Floats) -> tuple[float, Floats]:
        """The energy, and minus its gradient, at u."""

    def settle_on(self) -> None:
        """The search goes on from where `at` was last: `precondition` may be tuned to it."""

    def bend(self, p: Floats, positive: bool) -> Floats:
        """Its second derivative along p, or a positive part of that, where `at` was last."""

    def precondition(self, residual: Floats) -> Floats:
        """About what `bend` turns into `residual`."""

    def free(self, field: Floats) -> Floats:
        """What of a field nothing holds."""


@dataclass
class Effort:
    """What a search has taken."""

    newton: int = 0
    cg: int = 0
    left: float = np.inf
    """what of the energy was left to go"""
    done: bool = False


def descend(potential: Potential, u: Floats, enough: float, most: int, near: float = 0.0) -> tuple[Floats, Effort]:
    """A u of least energy, from u on: till no more than `enough` of the energy is to be gained, or nothing has further
    to go than `near`. At most `most` iterations are made."""
    effort = Effort()
    value, residual = potential.at(u)
    while True:
        potential.settle_on()
        residual = potential.free(residual)
        z = potential.free(potential.precondition(residual))
        effort.left = float(np.vdot(residual, z))
        effort.done = effort.left <= enough or bool(np.abs(z).max() <= near)
        if effort.done or effort.newton == most:
            return u, effort
        effort.newton += 1
        goal = max(FORCING**2 * effort.left, 0.25 * enough)
        delta, fine = _conjugate(potential, residual, z, goal, False, effort)
        if not fine:
            delta, _ = _conjugate(potential, residual, z, goal, True, effort)
        length = 1.0
        slack = enough + ROUNDING * abs(value)
        while True:
            ahead, residual = potential.at(u + length * delta)
            if ahead <= value + slack:
                break
            length *= 0.5
            if length < SHORTEST:
                potential.at(u)
                return u, effort
        u, value = u + length * delta, ahead


def _conjugate(
    potential: Potential, residual: Floats, z: Floats, goal: float, positive: bool, effort: Effort
) -> tuple[Floats, bool]:
    """δ with bend(δ) = residual, till what is left is below `goal`; and whether the energy bends up all the way."""
    delta = np.zeros_like(residual)
    p, rz = z, float(np.vdot(residual, z))
    for _ in range(MOST_CG):
        effort.cg += 1
        along = potential.free(potential.bend(p, positive))
        curvature = float(np.vdot(p, along))
        if curvature <= 0:
            return delta, False
        length = rz / curvature
        delta = delta + length * p
        residual = residual - length * along
        z = potential.free(potential.precondition(residual))
        before, rz = rz, float(np.vdot(residual, z))
        if not rz > goal:
            break
        p = z + (rz / before) * p
    return delta, True
