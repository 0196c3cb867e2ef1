# mypy: disable-error-code="valid-type,no-untyped-def"
"""Particle surfaces (W96): every point of a surface is a damped oscillator about its place, followed by its exact
solution, so that no step is too long.

    m ü + c u̇ + K (u − u₀) = F + P
"""

from __future__ import annotations

from typing import Any

import numpy as np
import warp as wp
from numpy.typing import NDArray

from phyxel import device as dev
from phyxel.contact.table import ColliderTable
from phyxel.material import Mixture
from phyxel.models.sheet import Sheet

wp.set_module_options(dev.KERNEL_OPTIONS)

Floats = NDArray[np.float64]


class ParticleModel:
    """Moves one surface. Lengths are in body units about the body's origin, axes are the world's, all in double."""

    def __init__(self, sheet: Sheet, unit: float, velocities: Floats, device: wp.Device) -> None:
        """`unit` is the body unit [m], `velocities` (n, 3) are those at the start [units/s]."""
        self.sheet, self.unit, self.device = sheet, unit, device

    # What it is made of, what holds it and what acts on it

    def set_material(self, mixture: Mixture) -> None:
        """What each particle is made of (membranes); motion goes on from where it is."""
        raise NotImplementedError

    def set_holds(self, nodes: NDArray[np.integer]) -> None:
        """Which particles are held from now on, (k,) in the order of the goals of a step; nothing jumps."""
        raise NotImplementedError

    def set_force(self, force: Floats | None) -> None:
        """F [N] on each particle from now on, gravity included, shape (n, 3)."""
        raise NotImplementedError

    def set_filling(self, bulk: float, amount: float = 1.0) -> None:
        """What is enclosed presses with p = bulk (amount − V/V₀) [Pa] from now on; bulk = 0: nothing is."""
        raise NotImplementedError

    # Stepping

    def step(self, dt: float, goals: Floats | None = None, colliders: ColliderTable | None = None) -> None:
        """Go on by dt [s], with what is held displaced by `goals` (k, 3) [units] at the end, and out of colliders.

        The table, in double for one body of this unit, is to be written for the end of the step, with the motion over
        it: `write(colliders, origin[None], (end - dt, end), end)`."""
        raise NotImplementedError

    def settle(
        self, goals: Floats | None = None, colliders: ColliderTable | None = None, tolerance: float = 1e-6
    ) -> None:
        """Go to static equilibrium, until nothing moves by more than `tolerance` [units] in a step; it is at rest."""
        raise NotImplementedError

    # What it is like

    @property
    def u(self) -> Floats:
        """Displacements [units], shape (n, 3)."""
        raise NotImplementedError

    @property
    def v(self) -> Floats:
        """Velocities [units/s], shape (n, 3)."""
        raise NotImplementedError

    @property
    def rest(self) -> Floats:
        """u₀: displacements of the places they are pulled to, which plasticity moves [units], shape (n, 3)."""
        raise NotImplementedError

    def shown(self) -> tuple[wp.array, Floats]:
        """u about an even displacement, on the device in single precision, (n,) of vec3; and that even one, (3,)."""
        raise NotImplementedError

    def top_speed(self) -> float:
        """Of the fastest particle [units/s]."""
        raise NotImplementedError

    def energies(self) -> tuple[float, float]:
        """Elastic (of foundation and links) and kinetic energy [J]."""
        raise NotImplementedError

    def momenta(self) -> tuple[Floats, Floats]:
        """Σ m v [kg m/s] and Σ m x × v [kg m²/s] about the body's origin, shape (3,) each."""
        raise NotImplementedError

    def middle(self) -> Floats:
        """The middle of mass [units], shape (3,)."""
        raise NotImplementedError

    def volume(self) -> float:
        """What the surface encloses [m³]; of an open one or one without faces that of the membrane, area · thickness."""
        raise NotImplementedError

    def state(self) -> dict[str, NDArray[Any]]:
        """All that a checkpoint must keep."""
        raise NotImplementedError

    def restore(self, state: dict[str, NDArray[Any]]) -> None:
        """Take over what `state` gave."""
        raise NotImplementedError
