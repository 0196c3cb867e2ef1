"""Places where particles of surfaces are borne by each other, or by other bodies: one-sided elements beside the links
(physics 15.16).

Each has three numbers, s = (J y + G a)/σ + offset: its gap at the end of the step, and how far it has slid along two
tangents [m]. Unknowns are positions y of particles, and answers a of guests. Its force [N] along its axes is

    p_n = k max(−s_n, 0),   p_t = −s_t min(k, μ p̄/|s_t|)

with p̄ the push of the round before, so that within a round it follows from an energy. A *tie* pulls as well as it
pushes, along all three: −k s.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import bsr_array

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Touches:
    """k of them."""

    J: bsr_array
    """how particles move it along a normal and two tangents, in blocks, shape (3k, 3n)"""
    G: Floats
    """how answers of guests do, shape (3k, r)"""
    axes: Floats
    """normal and two tangents, shape (k, 3, 3)"""
    offset: Floats
    """[m], shape (k, 3)"""
    stiff: Floats
    """k [N/m], shape (k,)"""
    friction: Floats
    """μ, shape (k,)"""
    ties: NDArray[np.bool_]
    """which hold both ways, shape (k,)"""

    def __len__(self) -> int:
        return len(self.stiff)

    @staticmethod
    def none(particles: int, answers: int) -> Touches:
        """Nothing touches anything, among so many."""
        J, G = bsr_array((0, 3 * particles), blocksize=(3, 3)), np.zeros((0, answers))
        return Touches(J, G, np.zeros((0, 3, 3)), np.zeros((0, 3)), np.zeros(0), np.zeros(0), np.zeros(0, bool))

    def some(self, which: NDArray[np.integer]) -> Touches:
        """Only these."""
        count, three = len(which), np.arange(3)
        first, many = self.J.indptr[which], np.diff(self.J.indptr)[which]
        starts = np.cumsum([0, *many])
        slots = np.repeat(first - starts[:-1], many) + np.arange(starts[-1])
        J = bsr_array((self.J.data[slots], self.J.indices[slots], starts), shape=(3 * count, self.J.shape[1]))
        G = self.G[(3 * which[:, None] + three).reshape(-1)]
        return Touches(
            J, G, self.axes[which], self.offset[which], self.stiff[which], self.friction[which], self.ties[which]
        )

    def known(self, pushes: Floats) -> Touches:
        """With what they are known to push with about (k,) [N], so that p_n = max(p − k s_n, 0): where it is right,
        nothing sinks in, however soft they are (Hestenes 1969)."""
        ahead = np.zeros_like(self.offset)
        ahead[:, 0] = pushes / self.stiff
        return replace(self, offset=self.offset - ahead)

    def rubbed(self, forces: Floats) -> Touches:
        """With what they held particles back with before, (k, 3) [N]: what sticks goes on from there, and does not
        creep."""
        ahead = forces / self.stiff[:, None]
        ahead[:, 0] = 0.0
        return replace(self, offset=self.offset - np.where(self.ties[:, None], 0.0, ahead))

    def seen(self, q: Floats, scale: float) -> Floats:
        """s [m] where q are y and a one after the other, shape (k, 3)."""
        return self.moved(q) / scale + self.offset

    def moved(self, q: Floats) -> Floats:
        """How far unknowns that change by q move them, shape (k, 3)."""
        n = self.J.shape[1]
        return np.asarray(self.J @ q[:n] + self.G @ q[n:]).reshape(-1, 3)

    def pull(self, forces: Floats) -> Floats:
        """What forces (k, 3) along the axes do to the unknowns, shape (q,)."""
        flat = forces.reshape(-1)
        return np.concatenate([self._across @ flat, self.G.T @ flat])

    @cached_property
    def _across(self) -> bsr_array:
        return bsr_array(self.J.T)

    def push(self, s: Floats) -> Floats:
        """p_n [N], shape (k,)."""
        return self.stiff * np.maximum(-s[:, 0], 0.0)

    def forces(self, s: Floats, pressed: Floats) -> Floats:
        """Along the axes [N], where p̄ is `pressed` (k,); shape (k, 3)."""
        held = self._held(s, pressed)
        free = np.concatenate([self.push(s)[:, None], -held[:, None] * s[:, 1:]], axis=1)
        return np.where(self.ties[:, None], -self.stiff[:, None] * s, free)

    def energy(self, s: Floats, pressed: Floats) -> float:
        """What the forces follow from [J]."""
        far, limit = np.linalg.norm(s[:, 1:], axis=1), self.friction * pressed
        sticks = self.stiff * far <= limit
        rubbed = np.where(sticks, 0.5 * self.stiff * far**2, limit * far - 0.5 * limit**2 / self.stiff)
        free = 0.5 * self.stiff * np.minimum(s[:, 0], 0.0) ** 2 + rubbed
        return float(np.where(self.ties, 0.5 * self.stiff * np.square(s).sum(axis=1), free).sum())

    def leaning(self, s: Floats) -> NDArray[np.bool_]:
        """Which push at s, (k,)."""
        return np.asarray((s[:, 0] < 0) & ~self.ties)

    def expected(self, s: Floats, leans: NDArray[np.bool_]) -> Floats:
        """How much more those push that lean (k,), and the others less, if p_n = −k s_n of them alone; along the axes
        [N], shape (k, 3)."""
        more = np.zeros_like(s)
        more[:, 0] = np.where(self.ties, 0.0, self.stiff * (np.minimum(s[:, 0], 0.0) - np.where(leans, s[:, 0], 0.0)))
        return more

    def bend(self, s: Floats, pressed: Floats, wary: NDArray[np.bool_]) -> Floats:
        """−∂p/∂s [N/m] of all if they lean, shape (k, 3, 3). What slides does not resist more of it; for those that one
        is `wary` of (k,) it is −p/s instead, and where that leads the energy is less for certain: it is nowhere above
        ½ s·(−p/s) s and the like."""
        held, far = self._held(s, pressed), np.maximum(np.linalg.norm(s[:, 1:], axis=1), 1e-300)
        way = s[:, 1:] / far[:, None]
        slides = (held < self.stiff) & ~wary
        along = np.eye(2) - slides[:, None, None] * way[:, :, None] * way[:, None, :]
        bend = np.zeros((len(s), 3, 3))
        bend[:, 0, 0] = self.stiff
        bend[:, 1:, 1:] = held[:, None, None] * along
        bend[self.ties] = self.stiff[self.ties, None, None] * np.eye(3)
        return bend

    def _held(self, s: Floats, pressed: Floats) -> Floats:
        """How stiffly friction holds, (k,) [N/m]."""
        far = np.linalg.norm(s[:, 1:], axis=1)
        return np.minimum(self.stiff, self.friction * pressed / np.maximum(far, 1e-300))
