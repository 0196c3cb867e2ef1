"""Rigid motion in the fields of a Galerkin body, and the momenta it carries (physics 5.6). Rigid fields are in its
space: their coefficients are their values at the nodes."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from phyxel.rotation import nearest_rotation

Floats = NDArray[np.float64]


def rigid_part(x: Floats, X: Floats, weight: Floats) -> Floats:
    """Where the rigid motion nearest to x (n, 3) takes X (n, 3), with weights (n,), shape (n, 3)."""
    x_mean, X_mean = (weight @ one / weight.sum() for one in (x, X))
    R = nearest_rotation((weight[:, None] * (x - x_mean)).T @ (X - X_mean))
    return x_mean + (X - X_mean) @ R.T


def rigid_fields(x: Floats) -> Floats:
    """Even fields along the three axes, and turns about them, of places x (n, 3), shape (6, n, 3)."""
    even = [np.tile(axis, (len(x), 1)) for axis in np.eye(3)]
    return np.stack(even + [np.cross(axis, x) for axis in np.eye(3)])


def momenta_of(arms: Floats, carried: Floats) -> Floats:
    """Momentum and angular momentum of what places at `arms` (n, 3) carry, (n, 3); shape (6,)."""
    return np.concatenate([carried.sum(axis=0), np.cross(arms, carried).sum(axis=0)])


def with_momenta(v: Floats, momenta: Floats, arm: Floats, mass: csr_array) -> Floats:
    """Velocities (n, 3) with the rigid motion that gives them these momenta (6,) about where arms (n, 3) begin."""
    fields = rigid_fields(arm)
    matrix = np.stack([momenta_of(arm, mass @ field) for field in fields], axis=1)
    amounts = np.asarray(np.linalg.solve(matrix, momenta - momenta_of(arm, mass @ v)), np.float64)
    return np.asarray(v + np.einsum("k,kna->na", amounts, fields))


class PartedMotion:
    """Velocities (n, 3) at x (n, 3) with a mass matrix, parted into rigid motion and the rest."""

    def __init__(self, mass: csr_array, x: Floats, v: Floats) -> None:
        self._mass, self._x = mass, x
        weight = np.asarray(mass.sum(axis=0)).reshape(-1)
        self._total, self._middle = weight.sum(), weight @ x / weight.sum()
        arm = x - self._middle
        self._turning = np.stack([np.cross(axis, arm) for axis in np.eye(3)])
        self._inertia = np.array([self._spin_of(field) for field in self._turning]).T
        self.v = v

    def _spin_of(self, v: Floats) -> Floats:
        return np.asarray(np.cross(self._x - self._middle, self._mass @ v).sum(axis=0))

    @property
    def momenta(self) -> tuple[Floats, Floats]:
        """Momentum, and angular momentum about the middle of mass."""
        return (self._mass @ self.v).sum(axis=0), self._spin_of(self.v)

    @property
    def energy(self) -> float:
        return 0.5 * float(np.vdot(self.v, self._mass @ self.v))

    def with_momenta(self, momentum: Floats, spin: Floats) -> None:
        """Add the rigid motion that makes the momenta these."""
        now, turned = self.momenta
        amounts = np.linalg.solve(self._inertia, spin - turned)
        self.v = self.v + (momentum - now) / self._total + np.einsum("k,kna->na", amounts, self._turning)

    def with_at_most(self, energy: float, held: bool = False) -> None:
        """Take energy above this away: of vibration first, then of all motion about the middle of mass; of all
        motion at once in a body that is held."""
        if self.energy <= energy:
            return
        if held:
            self.v = np.sqrt(max(energy, 0.0) / max(self.energy, 1e-300)) * self.v
            return
        momentum, spin = self.momenta
        drift = momentum / self._total
        turning = np.einsum("k,kna->na", np.linalg.solve(self._inertia, spin), self._turning)
        still = 0.5 * float(momentum @ drift)
        rigid = still + 0.5 * float(spin @ np.linalg.solve(self._inertia, spin))
        vibration = self.v - drift - turning
        if rigid <= energy:
            left = np.sqrt((energy - rigid) / max(self.energy - rigid, 1e-300))
            self.v = drift + turning + min(left, 1.0) * vibration
        else:
            self.v = drift + np.sqrt(max(energy - still, 0.0) / max(rigid - still, 1e-300)) * turning
