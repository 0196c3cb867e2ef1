"""Stiff springs between points and colliders (physics 10.7), and where a body that answers linearly comes to rest on
them.

At a point the springs hold ½ k d² for the depth d, and, for the way s along the collider since where it stuck, what
Coulomb allows: ½ k s² while k s ≤ μN, then μN(s − μN/2k).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import block_diag

from phyxel.models.coulomb import along_axes, from_axes, sweep
from phyxel.rotation import axes_about

Floats = NDArray[np.float64]

MOST_NEWTON = 40
LEFT = 1e-12
"""Share of the energy that is not looked for."""
MOST_TRIES, FLAT = 20, 1e-3
"""Search along a correction: how often, and what may be left of the slope."""


@dataclass(frozen=True)
class SpringPull:
    """What springs do at some place."""

    energy: float
    force: Floats
    """shape (c, 3)"""
    bend: Floats
    """minus its derivative, shape (c, 3, 3)"""


@dataclass(frozen=True)
class FootingSprings:
    """Springs of c points that may go on from where they are, along colliders that are flat there."""

    stiffness: Floats
    """k, shape (c,)"""
    depth: Floats
    """d; negative where nothing is touched, shape (c,)"""
    normal: Floats
    """shape (c, 3)"""
    slip: Floats
    """s, shape (c, 3)"""
    limit: Floats
    """μN, shape (c,)"""

    def of(self, points: NDArray[np.integer]) -> FootingSprings:
        """Those of some points."""
        every = self.stiffness, self.depth, self.normal, self.slip, self.limit
        return FootingSprings(*(each[points] for each in every))

    def allowing(self, limit: Floats) -> FootingSprings:
        """The same with another μN (c,)."""
        return replace(self, limit=limit)

    def moved(self, way: Floats) -> FootingSprings:
        """As they are once the points have gone some way (c, 3)."""
        across = np.einsum("ca,ca->c", self.normal, way)
        slip = self.slip + way - across[:, None] * self.normal
        return replace(self, depth=self.depth - across, slip=slip)

    @property
    def pressure(self) -> Floats:
        """k d where it presses, shape (c,)."""
        return self.stiffness * np.maximum(self.depth, 0.0)

    def pull(self) -> SpringPull:
        """What they do here."""
        k, n, s, limit = self.stiffness, self.normal, self.slip, self.limit
        pressure, far = self.pressure, np.linalg.norm(s, axis=1)
        sticks = k * far <= limit
        rub = np.where(sticks, k, limit / np.maximum(far, 1e-300))
        rubbed = np.where(sticks, 0.5 * k * far**2, limit * (far - limit / (2 * np.maximum(k, 1e-300))))
        energy = 0.5 * pressure * np.maximum(self.depth, 0.0) + rubbed
        force = pressure[:, None] * n - rub[:, None] * s
        along = s / np.maximum(far, 1e-300)[:, None]
        bend = rub[:, None, None] * np.eye(3)
        bend += (k * (self.depth > 0) - rub)[:, None, None] * n[:, :, None] * n[:, None]
        bend -= np.where(sticks, 0.0, rub)[:, None, None] * along[:, :, None] * along[:, None]
        return SpringPull(float(energy.sum()), force, bend)

    def swept(self, free: Floats, compliance: Floats, start: Floats, friction: Floats) -> tuple[Floats, Floats]:
        """About what `met` finds, and N (c,), for friction that goes by the pressure there, with coefficients (c,): by
        sweeps over the points, which find out quickly what sticks (physics 15.9)."""
        axes = axes_about(self.normal)
        W = along_axes(compliance, axes)
        W.flat[:: len(W) + 1] += np.repeat(1 / self.stiffness, 3)
        gap = np.einsum("cab,cb->ca", axes, free + self.slip)
        gap[:, 0] -= self.depth
        g = np.einsum("cab,cb->ca", axes, start).reshape(-1)
        sweep(W, gap.reshape(-1) + W @ g, friction, g, 0.0)
        parts = g.reshape(-1, 3)
        return from_axes(axes, parts), parts[:, 0]

    def met(self, free: Floats, compliance: Floats, start: Floats) -> tuple[Floats, Floats]:
        """Forces g (c, 3) of the springs and ways w (c, 3) of the points, w = free + C g with C the `compliance`
        (3c, 3c), where ½ g·C g + springs(w) is least; `start` (c, 3) is about g."""
        g, free = start.reshape(-1), free.reshape(-1)
        w = free + compliance @ g
        for _ in range(MOST_NEWTON):
            there = self.moved(w.reshape(-1, 3)).pull()
            off = there.force.reshape(-1) - g
            system = block_diag(*there.bend) @ compliance
            system.flat[:: len(system) + 1] += 1.0
            change = np.linalg.solve(system, off)
            led = compliance @ change
            gain = float(off @ led)
            if not gain > LEFT * (float(g @ (w - free)) + there.energy):
                break
            length = self._lowest(g, w, change, led, gain)
            g, w = g + length * change, w + length * led
        return g.reshape(-1, 3), w.reshape(-1, 3)

    def _lowest(self, g: Floats, w: Floats, change: Floats, led: Floats, gain: float) -> float:
        """Part of a correction at which the energy is least along it, which falls by `gain` at first. Halving would not
        do: points stop, one after the other, within a small share of the way."""

        def slope(length: float) -> float:
            force = self.moved((w + length * led).reshape(-1, 3)).pull().force.reshape(-1)
            return float((g + length * change - force) @ led)

        low, high, falling, rising = 0.0, 1.0, -gain, slope(1.0)
        enough, found = FLAT * gain, 1.0
        if rising <= enough:
            return found
        for _ in range(MOST_TRIES):
            found = (low * rising - high * falling) / (rising - falling)
            now = slope(found)
            if abs(now) <= enough:
                break
            # Illinois: the end that stays counts half.
            if now < 0:
                low, falling, rising = found, now, 0.5 * rising
            else:
                high, rising, falling = found, now, 0.5 * falling
        return found
