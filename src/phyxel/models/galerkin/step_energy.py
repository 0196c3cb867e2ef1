"""The energy whose minimum is the end of an implicit step, or static equilibrium, and the search for it, by Newton's
method with inexact conjugate gradients (physics 10.4)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.sparse import csr_array

from phyxel.models.galerkin.footing import Footing
from phyxel.models.galerkin.forces import PointForces
from phyxel.models.galerkin.preconditioner import RestSystem
from phyxel.models.protocol import Floats

MOST_RUBS = 5
"""Times that friction is found anew in a step."""
MOST_CG = 400
FORCING = 1e-2
"""What conjugate gradients leave of a residual, in the preconditioner's norm: Newton's method does the rest."""
SHORTEST = 2.0**-12
"""Part of a correction below which there is nothing to be gained along it."""
ROUNDING = 1e-13
"""Relative to the energy: what sums over points may be off by."""


@dataclass
class Effort:
    """What a search has taken."""

    newton: int = 0
    cg: int = 0
    left: float = np.inf
    """what of the energy was left to go"""
    done: bool = False

    def __add__(self, other: Effort) -> Effort:
        return Effort(self.newton + other.newton, self.cg + other.cg, other.left, other.done)


@dataclass
class StepEnergy:
    """½ (u' − u)·A(u' − u) − load·(u' − u) + U(u') + contacts, with u the `base`."""

    forces: PointForces
    footing: Footing
    system: RestSystem
    held: Floats
    """V of held points, shape (n, r)"""
    inertia: csr_array
    """A, shape (n, n)"""
    load: Floats
    base: Floats

    def at(self, u: Floats) -> tuple[float, Floats]:
        """The energy, and minus its gradient, at u (n, 3)."""
        way = u - self.base
        resisting = self.inertia @ way
        energy, force = self.forces.at(u)
        standing, held_up = self.footing.at(u)
        energy += 0.5 * np.vdot(way, resisting) - np.vdot(way, self.load) + standing
        return float(energy), self.load - resisting + force + held_up

    def bend(self, p: Floats, positive: bool) -> Floats:
        """Its second derivative along p, or a positive part of that, where `at` was last."""
        return self._free(self.inertia @ p + self.forces.tangent(p, positive) + self.footing.bend(p))

    def _free(self, field: Floats) -> Floats:
        """What of a field nothing holds."""
        return field - self.held @ (self.held.T @ field)

    def _precondition(self, residual: Floats) -> Floats:
        """About what `bend` turns into `residual`."""
        return self._free(self.system.apply(residual))

    def minimum(self, start: Floats, enough: float, most: int, near: float = 0.0) -> tuple[Floats, Effort]:
        """A u (n, 3) of least energy, from `start` on, with the friction of the pressure there: till no more than
        `enough` of the energy is to be gained, or nothing has further to go than `near`. With the friction as it is
        found, each time anew, at most `most` iterations are made."""
        effort = Effort()
        for _ in range(MOST_RUBS):
            start = self._descend(start, enough, effort.newton + most, near, effort)
            if not self.footing.renew():
                break
        return start, effort

    def _descend(self, u: Floats, enough: float, most: int, near: float, effort: Effort) -> Floats:
        value, residual = self.at(u)
        while True:
            self.system.grip(*self.footing.grips())
            residual = self._free(residual)
            z = self._precondition(residual)
            effort.left = float(np.vdot(residual, z))
            effort.done = effort.left <= enough or bool(np.abs(z).max() <= near)
            if effort.done or effort.newton == most:
                return u
            effort.newton += 1
            goal = max(FORCING**2 * effort.left, 0.25 * enough)
            delta, fine = self._conjugate(residual, z, goal, False, effort)
            if not fine:
                delta, _ = self._conjugate(residual, z, goal, True, effort)
            length = 1.0
            slack = enough + ROUNDING * abs(value)
            while True:
                ahead, residual = self.at(u + length * delta)
                if ahead <= value + slack:
                    break
                length *= 0.5
                if length < SHORTEST:
                    self.at(u)
                    return u
            u, value = u + length * delta, ahead

    def _conjugate(
        self, residual: Floats, z: Floats, goal: float, positive: bool, effort: Effort
    ) -> tuple[Floats, bool]:
        """δ with bend(δ) = residual, till the residual is below `goal`; and whether the energy bends up all the way."""
        delta = np.zeros_like(residual)
        p, rz = z, float(np.vdot(residual, z))
        for _ in range(MOST_CG):
            effort.cg += 1
            along = self.bend(p, positive)
            curvature = float(np.vdot(p, along))
            if curvature <= 0:
                return delta, False
            length = rz / curvature
            delta = delta + length * p
            residual = residual - length * along
            z = self._precondition(residual)
            before, rz = rz, float(np.vdot(residual, z))
            if not rz > goal:
                break
            p = z + (rz / before) * p
        return delta, True
