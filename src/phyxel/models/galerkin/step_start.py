"""What a step of a Galerkin body began from: all that has to be as it was for the step to be taken anew."""

from __future__ import annotations

from dataclasses import dataclass

from phyxel.contact.touch import Feel
from phyxel.models.galerkin.footing import Footing
from phyxel.models.galerkin.forces import PointForces
from phyxel.models.protocol import Floats


@dataclass(frozen=True)
class StepStart:
    """Coefficients (n, 3), the footing's state (c, 3) and (c,), and permanent strain (q, 3, 3) if any can come."""

    u: Floats
    v: Floats
    anchor: Floats
    pressure: Floats
    plastic: Floats | None
    feel: Feel | None
    """what the footing feels in the step"""

    @staticmethod
    def of(u: Floats, v: Floats, footing: Footing, forces: PointForces, feel: Feel | None) -> StepStart:
        plastic = forces.plastic if forces.flows else None
        return StepStart(u, v, footing.anchor.copy(), footing.pressure.copy(), plastic, feel)

    def restore(self, footing: Footing, forces: PointForces) -> None:
        """Let the footing and the permanent strain be as they were."""
        footing.anchor, footing.pressure = self.anchor.copy(), self.pressure.copy()
        if self.plastic is not None:
            forces.plastic = self.plastic
