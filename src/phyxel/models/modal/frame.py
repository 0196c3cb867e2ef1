"""The frame of a free modal body (physics 11.4): its middle c and its turn Q carry the momentum and the angular
momentum of the whole, so that its modes need not, and a spin of many turns bends nothing."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from phyxel.models.modal.basis import Basis
from phyxel.models.modal.modes import ModalMatrices
from phyxel.models.modal.warping import warp_derivative
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
        """ẋ of the coefficients, whose shape changes at `rate` (n, 3)."""
        own = cross(self.weighed, rate).sum(axis=0)
        spin = self.inverse @ (motion.Q.T @ motion.L - own)
        return motion.v + (np.cross(spin, self.y - self.middle) + rate - self.lumps @ rate) @ motion.Q.T

    def torque(self, motion: ModalMotion, force: Floats) -> Floats:
        """Of forces (n, 3) about the middle, shape (3,)."""
        moment = ((self.y - self.middle) @ motion.Q.T).T @ force
        return np.array([moment[1, 2] - moment[2, 1], moment[2, 0] - moment[0, 2], moment[0, 1] - moment[1, 0]])

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
