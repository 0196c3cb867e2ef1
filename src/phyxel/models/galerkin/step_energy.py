"""The energy whose minimum is the end of an implicit step, or static equilibrium, and the search for it, by Newton's
method with inexact conjugate gradients (physics 10.4)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.sparse import csr_array

from phyxel.models.galerkin.assembly import times
from phyxel.models.galerkin.footing import Footing
from phyxel.models.galerkin.forces import PointForces
from phyxel.models.galerkin.preconditioner import RestSystem
from phyxel.models.protocol import Floats

MOST_RUBS = 5
"""Times that friction is found anew in a step."""
MOST_CG = 400
FORCING, TOUCHING = 1e-3, 1e-2
"""What conjugate gradients leave of a residual, in the preconditioner's norm: Newton's method does the rest. More in
touch: where points stick, slide or let go by another correction, less would be in vain."""
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
    inertia: csr_array
    """A, shape (n, n)"""
    load: Floats
    base: Floats

    def at(self, u: Floats) -> tuple[float, Floats]:
        """The energy, and minus its gradient, at u (n, 3)."""
        way = u - self.base
        resisting = times(self.inertia, way)
        energy, force = self.forces.at(u)
        energy += 0.5 * float(np.vdot(way, resisting)) - float(np.vdot(way, self.load))
        self._alone = energy, self.system.free(self.load - resisting + force)
        return self._with(self.footing.at(u))

    def _with(self, standing: tuple[float, Floats]) -> tuple[float, Floats]:
        """The body's own energy and minus its gradient where `at` was last, and those of contacts."""
        energy, force = self._alone
        return energy + standing[0], force + self.system.free(standing[1])

    def bend(self, p: Floats) -> Floats:
        """Its second derivative along p, or a positive part of that, as it was taken."""
        return self.system.free(times(self.inertia, p) + self.forces.rough_tangent(p) + self.footing.bend(p))

    def _precondition(self, residual: Floats) -> Floats:
        """About what `bend` turns into `residual`."""
        return self.system.free(self.system.apply(residual))

    def minimum(
        self, start: Floats, enough: float, most: int, near: float = 0.0, pressed: Floats | None = None
    ) -> tuple[Floats, Effort]:
        """A u (n, 3) of least energy, from `start` on, with the friction of the pressure there: till no more than
        `enough` of the energy is to be gained, or nothing has further to go than `near`; or in vain, till other points
        are foreseen to press than those with a pressure in `pressed` (c,). With the friction as it is found, each time
        anew, at most `most` iterations are made."""
        effort, self._pressed = Effort(), pressed
        self.at(start)
        for number in range(MOST_RUBS):
            # Friction is foreseen at first, then it goes by the pressure that was found.
            start = self._descend(start, enough, effort.newton + most, near, effort, MOST_RUBS if number == 0 else 0)
            if self._in_vain or not self.footing.renew():
                break
            self.footing.at(start)
        return start, effort

    def _descend(self, u: Floats, enough: float, most: int, near: float, effort: Effort, rubs: int) -> Floats:
        """From u, where `at` was last, with friction foreseen in the first `rubs` iterations."""
        while True:
            way = self._lean(effort.newton < rubs)
            if self._in_vain:
                return u
            value, residual = self._with(self.footing.again())
            effort.left = float(np.vdot(residual, way))
            effort.done = effort.left <= enough or bool(np.abs(way).max() <= near)
            if effort.done or effort.newton == most:
                return u
            effort.newton += 1
            delta = self._corrected(way, residual, enough, effort)
            length = 1.0
            slack = enough + ROUNDING * abs(value)
            while True:
                ahead, _ = self.at(u + length * delta)
                if ahead <= value + slack:
                    break
                length *= 0.5
                if length < SHORTEST:
                    self.at(u)
                    return u
            u = u + length * delta

    @property
    def _in_vain(self) -> bool:
        """Whether other points are foreseen to press than have to."""
        return self._pressed is not None and not self.footing.stands_as(self._pressed)

    def _lean(self, rub: bool) -> Floats:
        """Where the body would go by the system at rest, and contacts as they will be there, shape (n, 3)."""
        force = self._alone[1]
        self.system.let_go()
        freely = self._precondition(force)
        rows = self.footing.near(freely)
        if rows.shape[0] == 0:
            return freely
        if self.system.foresees:
            self.footing.foresee(freely, self.system.compliance_at(rows), rub)
        self.system.grip(rows, self.footing.bends)
        return self._precondition(force + self.system.free(self.footing.thrust()))

    def _corrected(self, way: Floats, residual: Floats, enough: float, effort: Effort) -> Floats:
        """Where the exact tangent leads, with contacts as they were foreseen, shape (n, 3)."""
        touching = len(self.footing.bends) > 0
        goal = max((TOUCHING if touching else FORCING) ** 2 * effort.left, 0.25 * enough)
        for positive in (False, True):
            self.forces.take_tangent(positive)
            delta, fine = self._conjugate(way, goal, effort)
            if fine:
                break
        return delta if np.vdot(residual, delta) > 0 else way

    def _conjugate(self, way: Floats, goal: float, effort: Effort) -> tuple[Floats, bool]:
        """δ with bend(δ) = force, where the system at rest leads `way`, till the rest of it is below `goal`; and
        whether the energy bends up all the way."""
        residual = self._alone[1] + self.system.free(self.footing.thrust())
        delta, p, rz = np.zeros_like(way), way, float(np.vdot(residual, way))
        for _ in range(MOST_CG):
            if not rz > goal:
                break
            effort.cg += 1
            along = self.bend(p)
            curvature = float(np.vdot(p, along))
            if curvature <= 0:
                return delta, False
            length = rz / curvature
            delta = delta + length * p
            residual = residual - length * along
            z = self._precondition(residual)
            before, rz = rz, float(np.vdot(residual, z))
            p = z + (rz / before) * p
        return delta, True
