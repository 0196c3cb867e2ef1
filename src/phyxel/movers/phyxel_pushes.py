"""What pushes single nodes of phyxel bodies: fields, and what bodies of another flock press with (physics 16.2,
15.14)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from phyxel.movers.phyxel_bodies import PhyxelBodies

Floats = NDArray[np.float64]


@dataclass
class Load:
    """Forces on nodes over an interval, and what they have done so far."""

    forces: Floats
    """of all nodes of the flock [N], shape (n, 3)"""
    moments: Floats
    """angular momentum about the world's origin that each body got of them [N m s], shape (bodies, 3)"""


class PhyxelPushes:
    """What pushes single nodes of a flock."""

    def __init__(self, phyxels: PhyxelBodies) -> None:
        self._phyxels = phyxels
        self.load: Load | None = None
        """that of another flock, in an interval in which they meet"""

    def write(self, ahead: float, step: float) -> None:
        """Tell the model, for a step [s], of accelerations by the fields as they will be a little ahead [s]: in the
        middle of the kicks or the step they are for, or they would lag and drive what circles a centre outward; and of
        the load."""
        phyxels, model, acting = self._phyxels, self._phyxels.model, self._phyxels.world.acting
        extra = np.zeros((len(model) if acting or self.load is not None else 0, 3))
        for body, (low, high) in zip(phyxels.bodies, model.ranges, strict=True):
            fields = [field for field in acting if field.acts_on(body)]
            if fields:
                phyxels.energies.forget(body)
                velocities = body.velocities
                positions, time = body.positions + ahead * velocities, phyxels.time + ahead
                accelerations = [field.acceleration(body, positions, velocities, time) for field in fields]
                extra[low:high] = np.sum(accelerations, axis=0) / body.unit
        if self.load is not None:
            self._add(self.load, extra, step)
        model.set_extra(extra)

    def _add(self, load: Load, extra: Floats, step: float) -> None:
        """Euler's steps give moments of forces at where they begin; those of second order would not quite."""
        model = self._phyxels.model
        for b, (body, (low, high)) in enumerate(zip(self._phyxels.bodies, model.ranges, strict=True)):
            forces = load.forces[low:high]
            if forces.any():
                extra[low:high] += forces / (body.masses * body.unit)[:, None]
                load.moments[b] += step * np.cross(body.positions, forces).sum(axis=0)
                model.implicit.carried.forget(np.array([b]))
