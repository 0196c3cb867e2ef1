"""The energy whose minimum is the end of an implicit step, or static equilibrium (physics 10.4)."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from scipy.sparse import csr_array

from phyxel.models.galerkin.footing import Footing
from phyxel.models.galerkin.forces import PointForces
from phyxel.models.galerkin.newton import Effort, descend
from phyxel.models.galerkin.preconditioner import RestSystem
from phyxel.models.protocol import Floats

MOST_RUBS = 5
"""Times that friction is found anew in a step."""


@dataclass
class StepEnergy:
    """½ (u' − u)·A(u' − u) − load·(u' − u) + U(u') + contacts, with u the `base` (`newton.Potential`)."""

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
        way = u - self.base
        resisting = self.inertia @ way
        energy, force = self.forces.at(u)
        standing, held_up = self.footing.at(u)
        energy += 0.5 * np.vdot(way, resisting) - np.vdot(way, self.load) + standing
        return float(energy), self.load - resisting + force + held_up

    def settle_on(self) -> None:
        self.system.grip(*self.footing.grips())

    def bend(self, p: Floats, positive: bool) -> Floats:
        return self.inertia @ p + self.forces.tangent(p, positive) + self.footing.bend(p)

    def precondition(self, residual: Floats) -> Floats:
        return self.system.apply(residual)

    def free(self, field: Floats) -> Floats:
        return field - self.held @ (self.held.T @ field)

    def minimum(self, start: Floats, enough: float, most: int, near: float = 0.0) -> tuple[Floats, Effort]:
        """Where it is least, from `start` (n, 3) on, with the friction of the pressure there; as `newton.descend`."""
        total = Effort()
        for _ in range(MOST_RUBS):
            start, effort = descend(self, start, enough, most, near)
            total = replace(effort, newton=total.newton + effort.newton, cg=total.cg + effort.cg)
            if not self.footing.renew():
                break
        return start, total
