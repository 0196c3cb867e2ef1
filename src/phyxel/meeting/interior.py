"""About where Coulomb's problem has its minimum (physics 15.13), by interior points: where much meets at once, Newton's
method of `coulomb` would open and close contacts one after the other.

Pressures p > 0 and what they leave room for, s = v_n + b + R p > 0, go to p s = 0 together: each step heads for
p s = τ, with a τ that its own first guess says is in reach (Mehrotra, SIAM J. Optim. 2, 1992). Friction goes along, up
to μ p as it is by then; its direction q is an unknown as well, q |d| = −μ p d (Chan, Golub and Mulet, SIAM J. Sci.
Comput. 20, 1999): what sticks here and slides there is found in a few steps, however small ε is.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

Floats = NDArray[np.float64]
Solve = Callable[[Floats], Floats]

MOST_STEPS = 40
GAP = 1e-9
"""Σ p s, over the energy of the velocities at contacts, at which that ends."""
FOLLOWED = 16
"""Steps in which friction follows the pressure; then it stays as it is, for where what slides would press the harder
the more it is rubbed the two might never agree."""
WHOLE = 0.99
"""Share of the way to where a p or an s would be 0 that is gone."""


class Problem(Protocol):
    """What of `coulomb.CoulombProblem` is asked for."""

    @property
    def G(self) -> Floats | csr_array: ...
    @property
    def free(self) -> Floats: ...
    @property
    def room(self) -> Floats: ...
    @property
    def friction(self) -> Floats: ...
    @property
    def slip(self) -> Floats: ...
    @property
    def creep(self) -> Floats: ...
    @property
    def tied(self) -> Floats: ...

    def factored(self, bend: Floats) -> Solve:
        """(1 + Gᵀ D G)⁻¹, where impulses decrease with velocities by D (k, 3, 3)."""


def mollified(along: Floats, creep: Floats) -> tuple[Floats, Floats, Floats]:
    """Lengths of vectors (k, 2); f₀'/length of them and f₀''; shape (k,) each.

    f₀' = 2x − x² of x = length/ε up to ε, and 1 from there on."""
    length = np.sqrt(along[:, 0] ** 2 + along[:, 1] ** 2)
    x = np.minimum(length / creep, 1.0)
    slope = np.where(length > creep, 1 / np.maximum(length, creep), (2 - x) / creep)
    return length, slope, 2 * (1 - x) / creep


class InteriorPoint:
    """Answers a (r,), and at contacts that are no ties (k,) pressures p and s, and friction q (k, 2)."""

    def __init__(self, problem: Problem, soft: Floats, gives: Floats) -> None:
        """`soft` is R and `gives` tr W/3 of all contacts [kg⁻¹]."""
        self._problem, self._soft, self._gives = problem, soft, gives
        self._open = np.flatnonzero(problem.tied == 0)
        """numbers of the contacts that are no ties"""
        self._springs()

    def _springs(self) -> None:
        """Begin where contacts would be springs as soft as the bodies are."""
        problem, own, count = self._problem, self._open, len(self._soft)
        room, gives = problem.room[own], self._gives[own]
        bend, push = np.zeros((count, 3, 3)), np.zeros((count, 3))
        bend[own, 0, 0] = 1 / gives
        push[own, 0] = np.maximum(-problem.free[own, 0] - room, 0.0) / gives
        self._a = problem.factored(bend)(problem.G.T @ push.reshape(-1))
        self._v = problem.free + (problem.G @ self._a).reshape(-1, 3)
        left = self._v[own, 0] + room
        p = np.maximum(-left, 0.0) / gives
        self._p = p + p.mean()
        self._s = np.maximum(left, 0.0) + (gives * self._p).mean()
        self._q = np.zeros((len(own), 2))
        self._pressure = self._p
        """what friction goes by"""

    def found(self) -> tuple[Floats, Floats]:
        """Answers (r,) and pressures at all contacts (k,)."""
        energy = float((np.square(self._problem.free).sum(axis=1) / self._gives)[self._open].sum())
        for number in range(MOST_STEPS):
            if self._p @ self._s <= GAP * energy:
                break
            if number < FOLLOWED:
                self._pressure = self._p
            self._step()
        pressure = np.zeros(len(self._soft))
        pressure[self._open] = self._p
        return self._a, pressure

    def _step(self) -> None:
        problem, own, p, s = self._problem, self._open, self._p, self._s
        soft, limit = self._soft[own], problem.friction[own] * self._pressure
        along = self._v[own, 1:] + problem.slip[own]
        length, slope, _ = mollified(along, problem.creep[own])
        unit = along / np.maximum(length, np.finfo(float).tiny)[:, None]
        # How 1/slope grows with the length, times the slope: friction turns by that share of itself.
        x = np.minimum(length / problem.creep[own], 1.0)
        turning = slope * np.where(x < 1, 1 / (2 - x) ** 2, 1.0)
        within = limit / np.maximum(np.linalg.norm(self._q, axis=1), 1e-300)
        before = np.minimum(within, 1.0)[:, None] * self._q
        outer = before[:, :, None] * unit[:, None]
        off = self._v[own, 0] + problem.room[own] + soft * p - s
        yields = s + soft * p
        bend = self._bend_of_ties()
        bend[own, 0, 0] = p / yields
        bend[own, 1:, 1:] = (limit * slope)[:, None, None] * np.eye(2)
        bend[own, 1:, 1:] += 0.5 * turning[:, None, None] * (outer + np.swapaxes(outer, 1, 2))
        solve, impulses = problem.factored(bend), self._of_ties()
        impulses[own, 1:] = -(limit * slope)[:, None] * along

        def towards(goal: Floats) -> tuple[Floats, Floats, Floats, Floats]:
            """How far a, v, p and s are from p s = `goal`."""
            impulses[own, 0] = p + (goal - p * (s + off)) / yields
            a = solve(problem.G.T @ impulses.reshape(-1) - self._a)
            v = (problem.G @ a).reshape(-1, 3)
            to_p = impulses[own, 0] - p - p / yields * v[own, 0]
            return a, v, to_p, v[own, 0] + soft * to_p + off

        _, _, to_p, to_s = towards(np.zeros(len(p)))
        gap = float((p + _share(p, to_p) * to_p) @ (s + _share(s, to_s) * to_s))
        left = float(p @ s)
        a, v, to_p, to_s = towards(min(gap / left, 1.0) ** 3 * left / len(p) - to_p * to_s)
        share = min(1.0, WHOLE * min(_share(p, to_p), _share(s, to_s)))
        self._a, self._v = self._a + share * a, self._v + share * v
        self._p, self._s = p + share * to_p, s + share * to_s
        gone = share * v[own, 1:]
        self._q = -(limit * slope)[:, None] * (along + gone)
        self._q -= (turning * np.einsum("ka,ka->k", unit, gone))[:, None] * before

    def _bend_of_ties(self) -> Floats:
        """How impulses of ties decrease with velocities, shape (k, 3, 3); 0 of contacts."""
        return (self._problem.tied > 0)[:, None, None] / self._soft[:, None, None] * np.eye(3)

    def _of_ties(self) -> Floats:
        """Impulses of ties, shape (k, 3); 0 of contacts."""
        problem = self._problem
        off = self._v + np.concatenate([problem.room[:, None], problem.slip], axis=1)
        return np.where(problem.tied > 0, -1 / self._soft, 0.0)[:, None] * off


def _share(x: Floats, step: Floats) -> float:
    """How much of a step takes what is positive to 0, at most all of it."""
    return 1 / max(1.0, float((-step / x).max()))
