"""The motion of a modal body in one basis of shapes (G05 eq. 10, physics 11.2): an oscillator for each,

    z̈ + (α + βΛ) ż + Λ z = Ψᵀ Rᵀ Qᵀ f,   x = c + Q (X + R̃(W z) Ψ z − ȳ)

and, if nothing clamps it, a frame (physics 11.4): its middle c and its turn Q carry the momentum and the angular
momentum of the whole, so that its modes need not, and a spin of many turns bends nothing.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from phyxel.models.galerkin.space import Space
from phyxel.models.modal.kinetic import WarpedMotion
from phyxel.models.modal.modes import ModalMatrices
from phyxel.models.modal.warping import Basis, warp_derivative
from phyxel.models.oscillators import OscillatorStep, pace, rigid_pace
from phyxel.rotation import cross, cross_matrix, nearest_rotation, rotation_by

Floats = NDArray[np.float64]


@dataclass
class ModalMotion:
    """All that varies with time. A clamped body has neither c nor Q of its own."""

    z: Floats
    rate: Floats
    """ż [1/s]"""
    c: Floats
    v: Floats
    Q: Floats
    L: Floats
    """angular momentum about c, in the world's axes, in the body's own scales"""

    @staticmethod
    def none() -> ModalMotion:
        return ModalMotion(np.zeros(0), np.zeros(0), np.zeros(3), np.zeros(3), np.eye(3), np.zeros(3))


@dataclass(frozen=True)
class FramePose:
    """Where the frame of a body is, and how it goes with z. A clamped body's has no inverse mass and does not."""

    c: Floats
    """the body's middle, shape (3,)"""
    Q: Floats
    middle: Floats
    """ȳ, shape (3,)"""
    inverse_mass: float
    inverse_inertia: Floats
    """in the world's axes, 3 × 3"""
    drift: Floats
    """∂ȳ/∂z, shape (3, l)"""
    spin: Floats
    """I⁻¹ ∫ρ y × ∂u/∂z, in the body's axes, shape (3, l)"""


@dataclass(frozen=True)
class BorneForce:
    """What other bodies press with, all through a step, in the body's own scales."""

    force: Floats
    """shape (3,)"""
    torque: Floats
    """about the middle, in the world's axes, shape (3,)"""
    z: Floats
    """on the modes, shape (l,)"""


class FloatingFrame:
    """A free body's masses, and those of its present shape y, in its own axes."""

    def __init__(self, matter: ModalMatrices, X: Floats) -> None:
        self._matrix = matter.mass
        self.mass = float(matter.mass.sum())
        self.lumps: Floats = matter.mass.sum(axis=1) / self.mass
        """share of each node, shape (n,)"""
        self.rest: Floats = X - self.lumps @ X
        """X about its middle"""
        self._weighed_rest = matter.mass @ self.rest
        self.take(X)

    def take(self, y: Floats) -> None:
        """The body has the shape y (n, 3) now."""
        self.y = y
        self.middle, inertia, self.weighed = self._inertia(y)
        self.inverse = np.asarray(np.linalg.inv(inertia), np.float64)

    def _inertia(self, y: Floats) -> tuple[Floats, Floats, Floats]:
        """Middle of a shape, its inertia about it (3 × 3), and M times the arms (n, 3)."""
        middle = self.lumps @ y
        weighed = self._matrix @ (y - middle)
        return middle, _about(y - middle, weighed), weighed

    def fitted(self, x: Floats, v: Floats, Q: Floats | None) -> tuple[ModalMotion, Floats, Floats, Floats]:
        """The motion of a frame that carries all momentum of positions x and velocities v (n, 3), turned by Q or,
        without one, with the body; and what is left of them in its axes: displacement, velocity, and the spin."""
        middle, inertia, weighed = self._inertia(x)
        motion = ModalMotion.none()
        motion.c, motion.v, motion.L = middle, self.lumps @ v, cross(weighed, v).sum(axis=0)
        if Q is None:
            Q = nearest_rotation(weighed.T @ self.rest)
        motion.Q = Q
        spin = np.linalg.solve(inertia, motion.L)
        rate = (v - motion.v - np.cross(spin, x - middle)) @ Q
        return motion, (x - middle) @ Q - self.rest, rate, Q.T @ spin

    def spun(self, motion: ModalMotion, dt: float, before: Floats, weighed: Floats) -> Floats:
        """Q after a step in which the shape went from `before` to y: L is that of the whole, the shape's own change
        included. By the midpoint rule."""
        arms, mean = 0.5 * (before + self.y), 0.5 * (weighed + self.weighed)
        inverse = np.linalg.inv(_about(arms - self.lumps @ arms, mean))
        own = cross(mean, self.y - before).sum(axis=0) / dt
        spin = inverse @ (motion.Q.T @ motion.L - own)
        for _ in range(6):
            half = motion.Q @ rotation_by(0.5 * dt * spin)
            spin = inverse @ (half.T @ motion.L - own)
        return motion.Q @ rotation_by(dt * spin)

    def whirl(self, motion: ModalMotion, slowest: float) -> Floats:
        """Forces −ω × (ω × M y) − ω̇ × M y on the coefficients, in the frame's axes, shape (n, 3).

        They grow with the shape they stretch, in nature only until that stiffens. As modes do not, y is taken at rest
        the more the body spins for its lowest mode, ω² = `slowest`.
        """
        angular = motion.Q.T @ motion.L
        spin = self.inverse @ angular
        faster = -self.inverse @ np.cross(spin, angular)
        grows = max(0.0, 1 - float(spin @ spin) / slowest)
        arms = self._weighed_rest + grows * (self.weighed - self._weighed_rest)
        whirl = np.outer(spin, spin) - spin @ spin * np.eye(3) + cross_matrix(faster)
        return -arms @ whirl.T

    def velocities(self, motion: ModalMotion, rate: Floats) -> Floats:
        """ẋ of the coefficients, whose shape changes at `rate` (n, 3), shape (n, 3)."""
        arms = self.y - self.middle
        spin = self.inverse @ (motion.Q.T @ motion.L - self._angular(rate))
        return motion.v + (rate - self.lumps @ rate + np.cross(spin, arms)) @ motion.Q.T

    def _angular(self, rate: Floats) -> Floats:
        """Angular momentum of a change of shape (n, 3), shape (3,)."""
        return _axial(self.weighed.T @ rate)

    def kinetic(self, motion: ModalMotion) -> float:
        """½ m|v|² + ½ L·I⁻¹L: of a motion of the frame."""
        angular = motion.Q.T @ motion.L
        return 0.5 * (self.mass * float(motion.v @ motion.v) + float(angular @ self.inverse @ angular))

    def absorbed(self, rate: Floats) -> float:
        """What of the kinetic energy of a change of shape (n, 3) is that of its momenta, which the frame takes back."""
        mean, angular = self.lumps @ rate, self._angular(rate)
        return 0.5 * (self.mass * float(mean @ mean) + float(angular @ self.inverse @ angular))

    def dragged(self, motion: ModalMotion, rigid: OscillatorStep) -> float:
        """What drag takes off a motion of the frame in a step, about."""
        return (1 - float(rigid.e) ** 2) * self.kinetic(motion)

    def torque(self, motion: ModalMotion, force: Floats) -> Floats:
        """Of forces (n, 3) about the middle, shape (3,)."""
        return _axial(((self.y - self.middle) @ motion.Q.T).T @ force)

    def pose(self, motion: ModalMotion, basis: Basis, rows: bool) -> FramePose:
        """Where the frame is; `rows`: and how it goes with z."""
        inverse = motion.Q @ self.inverse @ motion.Q.T
        drift = spin = np.zeros((3, len(basis)))
        if rows:
            moves = warp_derivative(basis.linear)
            both = np.empty((6, len(moves), 6))  # lumps and weighed × of the moves, laid out for one product
            both[:3] = self.lumps[:, None] * moves.transpose(1, 0, 2)
            for a in range(3):
                b, c = (a + 1) % 3, (a + 2) % 3
                both[3 + a] = self.weighed[:, b, None] * moves[:, c] - self.weighed[:, c, None] * moves[:, b]
            sums = both.reshape(6, -1) @ basis.rows.reshape(-1, len(basis))
            drift, spin = sums[:3], self.inverse @ sums[3:]
        return FramePose(motion.c, motion.Q, self.middle, 1 / self.mass, inverse, drift, spin)


def _about(arms: Floats, weighed: Floats) -> Floats:
    """∫ρ (|y|² − y yᵀ), 3 × 3."""
    second = arms.T @ weighed
    return np.trace(second) * np.eye(3) - second


def _axial(product: Floats) -> Floats:
    """Σ a × b of a product Σ a bᵀ, 3 × 3."""
    return np.array([product[1, 2] - product[2, 1], product[2, 0] - product[0, 2], product[0, 1] - product[1, 0]])


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
        self._warped = WarpedMotion(matter.mass, basis)
        self.offset: Floats = np.zeros(3)
        self._laid: Floats | None = None
        self._mean: Floats = np.zeros(3)
        self._given: Floats | None = None
        self.borne: BorneForce | None = None
        """what others did in the last step: the next one foresees it"""
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
        rate = self._warped.velocities(self.motion.z, self.motion.rate)
        return rate if self.frame is None else self.frame.velocities(self.motion, rate)

    def kinetic(self) -> tuple[float, float]:
        """½ẋᵀMẋ, in the body's own scales: of the frame, which carries all momentum, and of the modes. No part of it is
        of both."""
        carried, absorbed = self._of_frame()
        return carried, self._warped.kinetic - absorbed

    def kinetic_bound(self) -> tuple[float, float]:
        """What these are at most; sooner found."""
        carried, absorbed = self._of_frame()
        return carried, self._warped.bound - absorbed

    def _of_frame(self) -> tuple[float, float]:
        """Kinetic energy of the frame, and that of the modes which it takes back."""
        rate = self._warped.follow(self.motion.z, self.motion.rate)
        if self.frame is None:
            return 0.0, 0.0
        return self.frame.kinetic(self.motion), self.frame.absorbed(rate)

    @property
    def elastic(self) -> float:
        """½ zᵀΛz, in the body's own scales."""
        return 0.5 * float(self.values @ self.motion.z**2)

    @property
    def potential(self) -> float:
        """−f·u, in the body's own scales."""
        return -float(np.vdot(self.force, self.u))

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
        self.force: Floats = self.matter.mass @ push
        self._bending = self.force
        if self.frame is not None:
            self._mean = self.force.sum(axis=0) / self.frame.mass
            self._bending = self.matter.mass @ (push - self._mean)
        self.basis.load(self._bending)

    def predict(self, modes: OscillatorStep, rigid: OscillatorStep, dt: float) -> None:
        """Free motion to the end of the step."""
        motion, borne = self.motion, self.borne or BorneForce(np.zeros(3), np.zeros(3), np.zeros(len(self.basis)))
        pull = self.forces + borne.z - np.maximum(self.basis.values, 0.0) * self.squared * motion.z
        motion.z = motion.z + modes.s * motion.rate + modes.g * pull
        motion.rate = modes.e * motion.rate + modes.s * pull
        if self.frame is not None:
            y, weighed = self.frame.y, self.frame.weighed
            after = rigid.e * motion.L + rigid.s * (self.frame.torque(motion, self.force) + borne.torque)
            pushed = self._mean + borne.force / self.frame.mass
            motion.c = motion.c + rigid.s * motion.v + rigid.g * pushed
            motion.v = rigid.e * motion.v + rigid.s * pushed
            motion.L = 0.5 * (motion.L + after)
            self.lay()
            motion.Q = self.frame.spun(motion, dt, y, weighed)
            motion.L = after
