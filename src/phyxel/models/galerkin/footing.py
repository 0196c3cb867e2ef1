"""How a Galerkin body stands on colliders (physics 10.7): stiff springs at points of its surface, in the same solve as
the rest.

At a point the springs hold ½ k d² for the depth d, and, for the way s along the collider since where it stuck, what
Coulomb allows: ½ k s² while k s ≤ μN, then μN(s − μN/2k), N being the pressure as last found. Where the body sticks it
springs back to where it stuck: nothing creeps on a slope.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from phyxel.contact.touch import Feel, Touch
from phyxel.models.coulomb import RESTING

Floats = NDArray[np.float64]

NOTICED = 0.02
"""Change of pressure, over the largest, from which on friction is found anew."""
GRADES = 8
"""Steps of a normal's components that a preconditioner tells apart."""


class Footing:
    """Springs at c points that depend on the nodes by φ in `rows` (c, n), at X (c, 3) on the skin."""

    def __init__(self, rows: csr_array, X: Floats) -> None:
        self.follow(rows)
        self._X = X
        self.stiffness = np.zeros(len(X))
        """k of each point"""
        self.anchor = X.copy()
        """where each point stuck, shape (c, 3)"""
        self.pressure = np.zeros(len(X))
        """N that friction goes by, shape (c,)"""
        self._feel: Feel | None = None

    def follow(self, rows: csr_array) -> None:
        """The points depend on the nodes in another way, φ (c, n)."""
        self._rows, self._back = rows, csr_array(rows.T)

    @property
    def touching(self) -> bool:
        """Whether anything was touched in the last step."""
        return bool(self.pressure.any())

    def stands_as(self, pressure: Floats) -> bool:
        """Whether the same points are touched as with this pressure (c,), and by nothing that moves."""
        pressed = self.pressure > 0
        return np.array_equal(pressed, pressure > 0) and not (pressed.any() and self._touch.velocity[pressed].any())

    def begin(self, feel: Feel | None, u: Floats, v: Floats, dt: float, push: Floats) -> None:
        """A step of dt from u with velocities v, all (n, 3)."""
        self._feel, self._dt = feel, dt
        if feel is None:
            self.pressure[:] = 0
            return
        start = self._X + self._rows @ u
        free = self.pressure == 0
        self.anchor[free] = start[free]
        touch = feel(start)
        speed = _across(touch, self._rows @ v - touch.velocity)
        bounce = -touch.restitution * speed
        struck = bounce > RESTING * touch.restitution * dt * np.linalg.norm(self._rows @ push, axis=1)
        # A bounce has to end above where it started, however near that is to the collider.
        self._rise = np.where(struck, np.maximum(touch.gap, 0) + dt * bounce, 0.0)
        self._met = np.zeros(len(start), bool)

    def at(self, u: Floats) -> tuple[float, Floats]:
        """Energy and force (n, 3) at u."""
        if self._feel is None:
            self._bend = np.zeros((len(self._X), 3, 3))
            return 0.0, np.zeros_like(u)
        self._x = self._X + self._rows @ u
        self._touch = self._feel(self._x)
        return self._weigh()

    def renew(self) -> bool:
        """Allow the friction and the bounces of the pressure where `at` was last; whether that is another by much. Were
        it to change all the time, the energy would have no minimum to go to."""
        if self._feel is None:
            return False
        before = self.pressure
        self._met |= self._touch.gap < 0
        self.pressure = self.stiffness * self._depth()
        return bool(np.abs(self.pressure - before).max() > NOTICED * self.pressure.max())

    def _depth(self) -> Floats:
        return np.maximum(np.where(self._met, self._rise, 0.0) - self._touch.gap, 0.0)

    def _weigh(self) -> tuple[float, Floats]:
        touch, k = self._touch, self.stiffness
        depth = self._depth()
        n = touch.normal
        s = self._slip()
        far = np.linalg.norm(s, axis=1)
        limit = touch.friction * self.pressure
        sticks = k * far <= limit
        rub = np.where(sticks, k, limit / np.maximum(far, 1e-300))
        energy = 0.5 * k * depth**2 + np.where(
            sticks, 0.5 * k * far**2, limit * (far - limit / (2 * np.maximum(k, 1e-300)))
        )
        force = (k * depth)[:, None] * n - rub[:, None] * s
        normal = np.einsum("ca,cb->cab", n, n)
        along = rub[:, None, None] * (np.eye(3) - normal)
        slides = ~sticks & (far > 0)
        d = s[slides] / far[slides, None]
        along[slides] -= rub[slides, None, None] * np.einsum("ca,cb->cab", d, d)
        self._bend = (k * (depth > 0))[:, None, None] * normal + along
        self._sticks = sticks & (limit > 0)
        return float(energy.sum()), self._back @ force

    def _slip(self) -> Floats:
        """How far each point is from where it stuck, along the collider, shape (c, 3)."""
        touch = self._touch
        way = self._x - self.anchor - self._dt * touch.velocity
        return way - _across(touch, way)[:, None] * touch.normal

    def bend(self, p: Floats) -> Floats:
        """Change of minus the force along p (n, 3)."""
        if self._feel is None:
            return np.zeros_like(p)
        return self._back @ (self._bend @ (self._rows @ p)[:, :, None])[:, :, 0]

    def grips(self) -> tuple[csr_array, Floats]:
        """φ of the points that are pressed, (c', n), and a root of the stiffness of each, k n nᵀ or, where it sticks,
        k; (c', 3, 3). With normals in coarse steps: while little turns these are the same numbers."""
        if self._feel is None:
            return self._rows[:0], np.zeros((0, 3, 3))
        pressed = np.flatnonzero(self._depth() > 0)
        n = np.round(GRADES * self._touch.normal[pressed]) / GRADES
        roots = np.where(self._sticks[pressed, None, None], np.eye(3), np.einsum("ca,cb->cab", n, n))
        return self._rows[pressed], np.sqrt(self.stiffness[pressed])[:, None, None] * roots

    def end(self) -> None:
        """The step is done: what slid sticks from where it is now."""
        if self._feel is None:
            return
        s = self._slip()
        far = np.linalg.norm(s, axis=1)
        keeps = np.minimum(1.0, self._touch.friction * self.pressure / np.maximum(self.stiffness * far, 1e-300))
        self.anchor = self._x - keeps[:, None] * s


def _across(touch: Touch, velocity: Floats) -> Floats:
    return np.einsum("ca,ca->c", touch.normal, velocity)
