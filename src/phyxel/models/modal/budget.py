"""The energy that a modal body may have (physics 11.7).

Modes that bend along arcs are pushed by ΨᵀRᵀf, which is not the gradient of f·u(z), and the kinetic energy of what is
seen is not ½|ż|²: left alone, an undamped pendulum gains energy without end. The exact gradient is worse: it stretches
the warp. So the force stays, and the energy is bounded by what there was and the work done since:

    E = ½ ẋᵀMẋ + ½ zᵀΛz − f·u ≤ B,   B += work of holds and colliders − Δf·u − what damping takes

Where a step ends above, the modes are slowed down till it does not: next to a frame that carries all momentum their
kinetic energy stands alone, ½ẋᵀMẋ = K₀ + s² K₁ for rates s ż. A body below its budget keeps its bits.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from phyxel.models.modal.field import ModalField, ModalMotion
from phyxel.models.oscillators import OscillatorStep

Floats = NDArray[np.float64]

HALVINGS = 24
"""of the way on which a body at rest runs out of energy"""
ROUNDING = 1e-9
"""Share of the energies that make it up by which E may be above B: sums are no more exact."""


@dataclass(frozen=True)
class ModalEnergy:
    """In the body's own scales: a density of 1, lengths in spacings, time in s."""

    carried: float
    """K₀: of the frame"""
    swing: float
    """K₁: of the modes"""
    elastic: float
    potential: float
    """−f·u"""

    @staticmethod
    def of(field: ModalField) -> ModalEnergy:
        carried, swing = field.velocity_parts()
        return ModalEnergy(
            _kinetic(field, carried) if field.frame is not None else 0.0,
            _kinetic(field, swing),
            field.elastic,
            -float(np.vdot(field.force, field.u)),
        )

    @property
    def total(self) -> float:
        return self.carried + self.swing + self.elastic + self.potential

    @property
    def slack(self) -> float:
        return ROUNDING * (self.carried + self.swing + self.elastic + abs(self.potential))


def _kinetic(field: ModalField, v: Floats) -> float:
    """½ vᵀMv of velocities (n, 3); axis by axis, which takes a third of the time of all at once."""
    return 0.5 * sum(float(along @ (field.matter.mass @ along)) for along in np.ascontiguousarray(v.T))


class EnergyBudget:
    """B of a body, from what it has now."""

    def __init__(self, field: ModalField) -> None:
        self.amount = ModalEnergy.of(field).total

    def load(self, field: ModalField, push: Floats) -> None:
        """Other accelerations (n, 3) [1/s²] act from now on: −f·u is another."""
        before = field.force
        field.load(push)
        if field.force is not before:
            self.amount -= float(np.vdot(field.force - before, field.u))

    def damp(self, field: ModalField, before: ModalMotion, forces: Floats, rigid: OscillatorStep) -> None:
        """A step under even forces (l,) on the modes has been made from `before`: take off what damping took."""
        motion = field.motion
        stiff = np.maximum(field.values, 0.0)
        gained = 0.5 * (motion.rate**2 - before.rate**2 + stiff * (motion.z**2 - before.z**2))
        taken = float(np.sum(forces * (motion.z - before.z) - gained))
        if field.frame is not None:
            taken += field.frame.dragged(before, rigid)
        self.amount -= max(taken, 0.0)

    def spend(self, work: float) -> None:
        """Holds and colliders have done so much work."""
        self.amount += work

    def keep(self, field: ModalField, start: Floats, gripped: bool) -> None:
        """Slow the body down where it has more than its budget: its modes; one that is `gripped`, and keeps no momentum
        anyway, as a whole, so that held points go on as they do. Where one that is not would have more even at rest, it
        goes only as far as it may from the amplitudes at the `start` of the step, (l,)."""
        energy, motion = ModalEnergy.of(field), field.motion
        above = energy.total - self.amount
        if above <= energy.slack:
            return
        moving = energy.swing + (energy.carried if gripped else 0.0)
        share = np.sqrt(max(0.0, 1 - above / moving)) if moving > 0 else 0.0
        motion.rate = share * motion.rate
        if gripped:
            motion.v, motion.L = share * motion.v, share * motion.L
        elif above > moving + energy.slack:
            self._retreat(field, start)

    def _retreat(self, field: ModalField, start: Floats) -> None:
        """Between where the body was and where it is, the last place that it has the energy for, at rest."""
        end, low, high = field.motion.z, 0.0, 1.0
        for _ in range(HALVINGS):
            share = 0.5 * (low + high)
            field.motion.z = start + share * (end - start)
            field.lay()
            low, high = (share, high) if ModalEnergy.of(field).total <= self.amount else (low, share)
        field.motion.z = start + low * (end - start)
        field.lay()
        field.show()
