"""How a Galerkin body stands on colliders (physics 10.7): stiff springs at points of its surface, in the same solve as
the rest.

Friction goes by the pressure N as last found. Where the body sticks it springs back to where it stuck: nothing creeps
on a slope.

Which points press, stick and slide changes at every turn of a search that only knows the springs where it is. So each
turn foresees it: by the system at rest, whose answer C = G P Gᵀ to forces at the points is a small matrix. The springs
are taken as they are there.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from phyxel.contact.touch import Feel, Touch
from phyxel.models.coulomb import RESTING
from phyxel.models.galerkin.footing_springs import FootingSprings

Floats = NDArray[np.float64]

NOTICED = 0.02
"""Change of pressure, over the largest, from which on friction is found anew."""
PASSES = 4
"""Times that friction is found anew where a step is foreseen."""


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
        self._near = self.pressure > 0

    def at(self, u: Floats) -> tuple[float, Floats]:
        """Energy and force (n, 3) at u."""
        if self._feel is None:
            return 0.0, np.zeros_like(u)
        self._x = self._X + self._rows @ u
        self._touch = touch = self._feel(self._x)
        limit = touch.friction * self.pressure
        self._springs = FootingSprings(self.stiffness, self._depth(), touch.normal, self._slip(), limit)
        self._near |= self._springs.depth > 0
        return self.again()

    def again(self) -> tuple[float, Floats]:
        """The same, where `at` was last, by the friction of now."""
        if self._feel is None:
            return 0.0, np.zeros((self._back.shape[0], 3))
        pull = self._springs.pull()
        return pull.energy, self._back @ pull.force

    def renew(self) -> bool:
        """Allow the friction and the bounces of the pressure where `at` was last; whether that is another by much. Were
        it to change all the time, the energy would have no minimum to go to."""
        if self._feel is None:
            return False
        before = self.pressure
        self._met |= self._touch.gap < 0
        self.pressure = self.stiffness * np.maximum(self._depth(), 0.0)
        return _another(self.pressure, before)

    def _depth(self) -> Floats:
        """How deep each point is in a collider, or below where it has to bounce to; negative above, shape (c,)."""
        return np.where(self._met, self._rise, 0.0) - self._touch.gap

    def _slip(self) -> Floats:
        """How far each point is from where it stuck, along the collider, shape (c, 3)."""
        touch = self._touch
        way = self._x - self.anchor - self._dt * touch.velocity
        return way - _across(touch, way)[:, None] * touch.normal

    def near(self, way: Floats) -> csr_array:
        """φ of the points that touch or have touched something in this step, or would if the body went a `way` (n, 3)
        that nothing hinders; shape (c', n). Their springs are taken as they are, unless they are foreseen."""
        if self._feel is None:
            self._some, self._bend, self._thrust = self._rows[:0], np.zeros((0, 3, 3)), np.zeros((0, 3))
        else:
            self._near |= self._springs.moved(self._rows @ way).depth > 0
            self._points = np.flatnonzero(self._near)
            self._some = self._rows[self._points]
            self._take(self._springs.of(self._points), np.zeros((len(self._points), 3)))
        return self._some

    def foresee(self, way: Floats, compliance: Floats, rub: bool) -> None:
        """Take the springs of `near` points as they will be, in a body that would go a `way` (n, 3) without them and
        answers to their forces by C, the `compliance` (3c', 3c'); if it is to `rub`, with the friction of then."""
        springs, friction = self._springs.of(self._points), self._touch.friction[self._points]
        free, force, pressure = self._some @ way, springs.pull().force, self.pressure[self._points]
        if rub:
            force, found = springs.swept(free, compliance, force, friction)
            pressure = found if _another(found, pressure) else pressure
        for _ in range(PASSES):
            springs = springs.allowing(friction * pressure)
            force, moved = springs.met(free, compliance, force)
            allowed, pressure = pressure, springs.moved(moved).pressure
            if not rub or not _another(pressure, allowed):
                break
        self._take(springs, moved)
        self.pressure = np.zeros(len(self._X))
        self.pressure[self._points] = allowed
        self._springs = self._springs.allowing(self._touch.friction * self.pressure)

    def _take(self, springs: FootingSprings, moved: Floats) -> None:
        """Go by springs as they are once their points have moved, (c', 3)."""
        pull = springs.moved(moved).pull()
        self._bend, self._thrust = pull.bend, pull.force + (pull.bend @ moved[:, :, None])[:, :, 0]

    def thrust(self) -> Floats:
        """Force of the springs as they are taken, less what their bend does, shape (n, 3)."""
        return np.asarray(self._some.T @ self._thrust)

    def bend(self, p: Floats) -> Floats:
        """Change of minus that force along p (n, 3)."""
        return np.asarray(self._some.T @ (self._bend @ (self._some @ p)[:, :, None])[:, :, 0])

    @property
    def bends(self) -> Floats:
        """Of the `near` points, shape (c', 3, 3)."""
        return self._bend

    def end(self) -> None:
        """The step is done: what slid sticks from where it is now."""
        if self._feel is None:
            return
        s = self._slip()
        far = np.linalg.norm(s, axis=1)
        keeps = np.minimum(1.0, self._touch.friction * self.pressure / np.maximum(self.stiffness * far, 1e-300))
        self.anchor = self._x - keeps[:, None] * s


def _another(pressure: Floats, before: Floats) -> bool:
    """Whether a pressure (c,) is another by much than before."""
    return bool(np.abs(pressure - before).max() > NOTICED * pressure.max())


def _across(touch: Touch, velocity: Floats) -> Floats:
    return np.einsum("ca,ca->c", touch.normal, velocity)
