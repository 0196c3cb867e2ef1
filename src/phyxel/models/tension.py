# mypy: disable-error-code="valid-type,no-untyped-def"
"""Forces of the links of a particle surface, implicit: y = y_free + H P(y)."""

from __future__ import annotations

import numpy as np
import warp as wp
from numpy.typing import NDArray

from phyxel import device as dev
from phyxel.models.arrival import Arrival
from phyxel.models.sheet import Sheet

wp.set_module_options(dev.KERNEL_OPTIONS)


class Tension:
    """The links of a sheet at work."""

    def __init__(self, sheet: Sheet, device: wp.Device) -> None:
        raise NotImplementedError

    def set_stiffness(self, k: NDArray[np.float64]) -> None:
        """k [N/m] of each element, shape (E,): what `Elements.stiffness` gives. Programs need not be captured anew."""
        raise NotImplementedError

    def launches(self, arrival: Arrival, P: wp.array) -> list[dev.Launch]:
        """Find the pull P of all links on each particle at the end of a step, (n,) of vec3d [N/unit].

        `P` holds that of the step before (the iterations start there, so it is part of a checkpoint) and then the new
        one; arrival is only read: whoever asks adds x += A P, v += B P. No launches if there are no links."""
        raise NotImplementedError

    def energy(self, u: wp.array) -> float:
        """Σ ½k(|e| − r)² of displacements u, (n,) of vec3d [N/m units²: times unit² it is J]."""
        raise NotImplementedError
