"""The motion of a modal body in one basis of shapes (G05 eq. 10, physics 11.2): an oscillator for each,

    z̈ + (α + βΛ) ż + Λ z = Ψᵀ Rᵀ Qᵀ f,   x = c + Q (X + R̃(W z) Ψ z − ȳ)

and a frame (c, Q) if nothing clamps it.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from phyxel.models.galerkin.space import Space
from phyxel.models.modal.basis import Basis
from phyxel.models.modal.frame import FloatingFrame, FramePose, ModalMotion
from phyxel.models.modal.modes import ModalMatrices
from phyxel.models.modal.warping import warp_derivative
from phyxel.models.oscillators import OscillatorStep, pace, rigid_pace

Floats = NDArray[np.float64]


class ModalField:
    """Where a body is and how it moves, and the forces on its modes.

    Coefficients of the displacement less `offset` are left on the device, in the array that the basis was made with.
    """

    def __init__(
        self,
        space: Space,
        unit: float,
        matter: ModalMatrices,
        basis: Basis,
        frame: FloatingFrame | None,
        motion: ModalMotion,
        push: Floats,
    ) -> None:
        """Under accelerations `push` (n, 3) [1/s²] of the nodes."""
        self.space, self.basis, self.frame, self.motion = space, basis, frame, motion
        self._unit = unit
        self.offset: Floats = np.zeros(3)
        self._laid: Floats | None = None
        self._mean: Floats = np.zeros(3)
        self._given: Floats | None = None
        self.set_matter(matter)
        self._take_force(push)
        self.lay()
        self.show()

    def set_matter(self, matter: ModalMatrices) -> None:
        """Take matter with the same modes, but maybe others of its scales."""
        self.matter = matter
        self._paces: dict[tuple[float, bool], tuple[OscillatorStep, OscillatorStep]] = {}

    @property
    def squared(self) -> float:
        """ω² [1/s²] of a mode that has 1 in the body's own scales."""
        return self.matter.modulus / (self.matter.density * self._unit**2)

    @property
    def values(self) -> Floats:
        """ω² [1/s²] of the basis, shape (l,)."""
        return self.basis.values * self.squared

    def fields(self) -> Floats:
        """p and w of z and of ż, shape (n, 6, 2)."""
        return self.basis.shapes @ np.stack([self.motion.z, self.motion.rate], axis=1)

    # The field

    def lay(self) -> None:
        """Make the field of z, unless it is there."""
        if self._laid is self.motion.z:
            return
        self._laid = self.motion.z
        self.basis.lay(self.motion.z)
        if self.frame is not None:
            self.frame.take(self.space.nodes + self.basis.u)

    def show(self) -> None:
        """Leave coefficients on the device, and the forces on the modes here."""
        motion = self.motion
        if self.frame is not None:
            slowest = max(float(self.values.min(initial=np.inf)), 1e-30)
            self.basis.load(self._bending + self.frame.whirl(motion, slowest) @ motion.Q.T)
            self.offset = motion.c - motion.Q @ self.frame.middle
        self.forces: Floats = self.basis.show(motion.Q)

    def pose(self, rows: bool = True) -> FramePose:
        """Where the body's frame is now; `rows`: and how it goes with z."""
        if self.frame is not None:
            return self.frame.pose(self.motion, self.basis, rows)
        none = np.zeros((3, len(self.basis)))
        return FramePose(np.zeros(3), np.eye(3), np.zeros(3), 0.0, np.zeros((3, 3)), none, none)

    @property
    def u(self) -> Floats:
        """Coefficients of the displacement, shape (n, 3)."""
        if self.frame is None:
            return self.basis.u.copy()
        X = self.space.nodes
        return self.offset + (X + self.basis.u) @ self.motion.Q.T - X

    @property
    def v(self) -> Floats:
        """Coefficients of the velocity [1/s], shape (n, 3): the exact change of u."""
        rate = np.einsum("nab,nb->na", warp_derivative(self.basis.linear), self.basis.rows @ self.motion.rate)
        if self.frame is not None:
            return self.frame.velocities(self.motion, rate)
        return rate if self.basis.clamp is None else self.basis.clamp.without(rate)

    # Time

    def pace(self, dt: float, calm: bool) -> tuple[OscillatorStep, OscillatorStep]:
        """What a step of dt does to modes, and to what nothing pulls back."""
        if (dt, calm) not in self._paces:
            matter = self.matter
            values = np.maximum(self.basis.values, 0.0) * self.squared
            self._paces = {
                (dt, calm): (pace(values, matter.drag, matter.damping, dt, calm), rigid_pace(matter.drag, dt))
            }
        return self._paces[dt, calm]

    def load(self, push: Floats) -> None:
        """Take over accelerations (n, 3), unless they are the ones that act already."""
        if push is self._given or np.array_equal(push, self.push):
            return
        self._given = push
        self._take_force(np.array(push, np.float64))
        self.show()

    def _take_force(self, push: Floats) -> None:
        """Forces of the accelerations, and what of them bends the body: its frame takes their mean."""
        self.push = push
        self._force: Floats = self.matter.mass @ push
        self._bending = self._force
        if self.frame is not None:
            self._mean = self._force.sum(axis=0) / self.frame.mass
            self._bending = self.matter.mass @ (push - self._mean)
        self.basis.load(self._bending)

    def predict(self, modes: OscillatorStep, rigid: OscillatorStep, dt: float) -> None:
        """Free motion to the end of the step."""
        motion = self.motion
        pull = self.forces - np.maximum(self.basis.values, 0.0) * self.squared * motion.z
        motion.z = motion.z + modes.s * motion.rate + modes.g * pull
        motion.rate = modes.e * motion.rate + modes.s * pull
        if self.frame is not None:
            y, weighed = self.frame.y, self.frame.weighed
            after = rigid.e * motion.L + rigid.s * self.frame.torque(motion, self._force)
            motion.c = motion.c + rigid.s * motion.v + rigid.g * self._mean
            motion.v = rigid.e * motion.v + rigid.s * self._mean
            motion.L = 0.5 * (motion.L + after)
            self.lay()
            motion.Q = self.frame.spun(motion, dt, y, weighed)
            motion.L = after
