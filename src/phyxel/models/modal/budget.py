"""The energy that a modal body may have (physics 11.7).

Modes that bend along arcs are pushed by ΨᵀRᵀf, which is not the gradient of f·u(z), and the kinetic energy of what is
seen is not ½|ż|²: left alone, an undamped pendulum gains energy without end. The exact gradient is worse: it stretches
the warp. So the force stays, and the energy is bounded by what there was and the work done since:

    E = ½ ẋᵀMẋ + ½ zᵀΛz − f·u ≤ B,   B += work of holds and colliders − Δf·u − what damping takes

What damps takes motion alone: B does not fall below the energy of a body at rest where it is, though the work of
forces that are no gradient went the same way.

Where a step ends above, the modes are slowed down till it does not: next to a frame that carries all momentum their
kinetic energy stands alone, ½ẋᵀMẋ = K₀ + s² K₁ for rates s ż. A body below its budget keeps its bits.
"""

from __future__ import annotations

from dataclasses import dataclass, fields

import numpy as np
from numpy.typing import NDArray

from phyxel.models.modal.constraints import StepConstraints
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
        return ModalEnergy(*field.kinetic(), field.elastic, field.potential)

    @staticmethod
    def at_most(field: ModalField) -> ModalEnergy:
        """With a kinetic energy that is no less, and sooner found."""
        return ModalEnergy(*field.kinetic_bound(), field.elastic, field.potential)

    @property
    def rest(self) -> float:
        """what it would have at rest"""
        return self.elastic + self.potential

    @property
    def total(self) -> float:
        return self.carried + self.swing + self.rest

    @property
    def slack(self) -> float:
        return ROUNDING * (self.carried + self.swing + self.elastic + abs(self.potential))


class EnergyBudget:
    """B of a body, from what it has now."""

    def __init__(self, field: ModalField) -> None:
        self.amount = ModalEnergy.of(field).total
        self._lost = 0.0
        """in this step, as far as there was motion to lose"""

    def load(self, field: ModalField, push: Floats) -> None:
        """Other accelerations (n, 3) [1/s²] act from now on: −f·u is another."""
        before, self._lost = field.force, 0.0
        field.load(push)
        if field.force is not before:
            self.amount -= float(np.vdot(field.force - before, field.u))
        self._begun = self.amount

    def damp(self, field: ModalField, before: ModalMotion, forces: Floats, rigid: OscillatorStep) -> None:
        """A step under even forces (l,) on the modes has been made from `before`: take off what damping took."""
        motion = field.motion
        stiff = np.maximum(field.values, 0.0)
        gained = 0.5 * (motion.rate**2 - before.rate**2 + stiff * (motion.z**2 - before.z**2))
        taken = float(np.sum(forces * (motion.z - before.z) - gained))
        if field.frame is not None:
            taken += field.frame.dragged(before, rigid)
        self._lost += max(taken, 0.0)

    def spend(self, work: float) -> None:
        """Holds and colliders have done so much work."""
        self.amount += max(work, 0.0)
        self._lost += max(-work, 0.0)

    def keep(self, field: ModalField, before: ModalMotion, constraints: StepConstraints) -> None:
        """Slow the body down where it has more than its budget after a step from `before`: its modes; one that is
        gripped, and keeps no momentum anyway, as a whole, so that held points go on as they do."""
        energy = ModalEnergy.at_most(field)
        self.amount = max(self.amount - self._lost, min(self.amount, energy.rest))
        if energy.total <= self.amount:
            return
        energy, motion, gripped = ModalEnergy.of(field), field.motion, constraints.grips
        above = energy.total - self.amount
        if above <= energy.slack:
            return
        moving = energy.swing + (energy.carried if gripped else 0.0)
        share = np.sqrt(max(0.0, 1 - above / moving)) if moving > 0 else 0.0
        motion.rate = share * motion.rate
        if gripped:
            motion.v, motion.L = share * motion.v, share * motion.L
        if above > moving + energy.slack:
            self._stop(field, before, energy, constraints)

    def _stop(self, field: ModalField, before: ModalMotion, energy: ModalEnergy, constraints: StepConstraints) -> None:
        """The body would have more than its budget even at rest. One that nothing grips goes only as far as it may. One
        that is gripped would leave its holds there: it goes back the way it came. What a hold that moves makes of it is
        work of the hold."""
        if not constraints.grips:
            self._retreat(field, before.z)
        elif constraints.driven:
            self.amount = energy.rest
        else:
            for part in fields(before):
                setattr(field.motion, part.name, getattr(before, part.name))
            motion, self.amount = field.motion, self._begun
            motion.rate, motion.v, motion.L = -motion.rate, -motion.v, -motion.L
            field.lay()
            field.show()

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
