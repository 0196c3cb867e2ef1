"""Impulses between bodies that touch, all at once (physics 15.13): Coulomb's problem as a minimum.

Contact velocities v (k, 3), along a normal and two tangents each, go with the answers a (r,) of the bodies as
v = v₀ + G a, where unit answers cost the same energy, so that W = G Gᵀ is what impulses p do to velocities. Then

    min ½ |a|² + Σ ½ max(−v_n − b, 0)²/R + Σ μ p̄ f₀(|v_t + s|),     p = −∂(sums)/∂v,   a = Gᵀ p

- R = SOFT tr W/3 of a contact: four legs of a table share its weight in one way only;
- b [m/s] is what a contact has room for;
- f₀ is IPC's mollified length (Li et al. 2020): friction grows to its limit over the speed ε and is twice continuous;
- p̄ is the normal impulse of the pass before, and s [m/s] pulls back what has slipped since it stuck.

A tie is a contact that pulls as well and never slips: ½ |v + (b, s)|²/R is all of it (physics 15.15). Of many, each
bears what it stands for: its R is TIES_SOFT of the ties' mean W over its share.

Newton's method ends where it would gain next to nothing, whatever the impulses: a face that lies on another leaves open
which of its points carry it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.linalg.lapack import dpotrf, dpotrs
from scipy.sparse import csc_array, csr_array
from scipy.sparse.linalg import splu

from phyxel.meeting.interior import InteriorPoint, Solve, mollified

Floats = NDArray[np.float64]

SOFT = 1e-5
"""What a contact gives way, over what the bodies do."""
TIES_SOFT = 1e-3
"""What a tie does: stiffer ones would pull each other about where they are more than bodies have ways to bend."""
MOST_NEWTON, MOST_LOOKS = 60, 20
SOON = 8
"""Steps of Newton's method within which impulses like those of the step before are found; others begin within."""
FLAT = 0.1
"""Slope along a step, over that at its start, at which it has led far enough."""
LEFT = 1e-14
"""Share of the energy of the velocities at contacts that may be left to gain."""
ROUNDING = 1e-18
"""Share of the energy of the answers that is not worth another step: where velocities are 0 without impulses, nothing
else says what is little."""
PASSES = 4
"""How often friction is found anew at most, with the pressure of the pass before."""
SETTLED = 0.02
"""Change of the pressure, over the largest, at which that ends."""
SYMMETRIC = {"SymmetricMode": True}
"""How a sparse system is factored."""


@dataclass(frozen=True)
class CoulombProblem:
    """k contacts of bodies that answer in r ways."""

    G: Floats | csr_array
    """shape (3k, r); sparse where many bodies have little to do with each other"""
    free: Floats
    """v₀ [m/s], shape (k, 3)"""
    room: Floats
    """b [m/s], shape (k,)"""
    friction: Floats
    """μ, shape (k,)"""
    slip: Floats
    """s [m/s], shape (k, 2)"""
    creep: Floats
    """ε [m/s], shape (k,)"""
    tied: Floats
    """what ties stand for, over their mean; 0 of contacts, whose friction ends somewhere; shape (k,)"""

    def solved(self, start: Floats) -> Floats:
        """Impulses p [N s] along the axes of the contacts, shape (k, 3); `start` (k, 3) is about what they are."""
        if isinstance(self.G, np.ndarray) and self.G.shape[0] < self.G.shape[1]:
            # Bodies have more ways to answer than contacts ask for: a = Gᵀ p is among so many as there are rows.
            return replace(self, G=np.asarray(np.linalg.qr(self.G.T, mode="r")).T).solved(start)
        found, done = self.passes(self.G.T @ start.reshape(-1), np.maximum(start[:, 0], 0.0), SOON)
        if not done:
            found, _ = self.passes(*InteriorPoint(self, self._soft, self.gives).found(), MOST_NEWTON)
        return found

    def passes(self, a: Floats, pressure: Floats, most: int) -> tuple[Floats, bool]:
        """Impulses (k, 3) from answers (r,) and pressures (k,) on, and whether so many steps a pass were enough."""
        enough = LEFT * float((np.square(self.free).sum(axis=1) * SOFT / self._soft).sum())
        for _ in range(PASSES):
            a, p, done = self._minimum(a, self._limit(pressure), self._soft, enough, most)
            change = np.abs(p[:, 0] - pressure)[~self._ties].max(initial=0.0)
            pressure = p[:, 0]
            if not done and most < MOST_NEWTON:
                break
            if change <= SETTLED * pressure[~self._ties].max(initial=0.0) or not self.friction.any():
                break
        return p, done

    @cached_property
    def _ties(self) -> NDArray[np.bool_]:
        return self.tied > 0

    def _limit(self, pressure: Floats) -> Floats:
        """What friction can hold [N s], shape (k,)."""
        return np.where(self._ties, 0.0, self.friction) * pressure

    @cached_property
    def gives(self) -> Floats:
        """tr W/3 of contacts, and of ties what they are to be as soft as, over SOFT [kg⁻¹], shape (k,)."""
        W = np.asarray((self.G**2).sum(axis=1) if isinstance(self.G, np.ndarray) else self.G.power(2).sum(axis=1))
        gives, ties = np.maximum(W.reshape(-1, 3).sum(axis=1) / 3, np.finfo(float).tiny), self._ties
        if ties.any():
            gives[ties] = TIES_SOFT / SOFT * gives[ties].mean() / self.tied[ties]
        return gives

    @property
    def _soft(self) -> Floats:
        """R [kg⁻¹], shape (k,)."""
        return SOFT * self.gives

    def supported(self, impulses: Floats) -> Callable[[Floats], Floats]:
        """What answers (r, m) are left of those that others ask for, where contacts with these impulses (k, 3) hold
        against them: (1 + Gᵀ D G)⁻¹."""
        v = self._velocities(self.G.T @ impulses.reshape(-1))
        bend = self._bend(v, self._limit(impulses[:, 0]), self._soft)
        return self.factored(bend)

    def _minimum(self, a: Floats, limit: Floats, soft: Floats, enough: float, most: int) -> tuple[Floats, Floats, bool]:
        """The same, and whether so many steps were enough for it."""
        v = self._velocities(a)
        p = self._impulses(v, limit, soft)
        for _ in range(most):
            downhill = self.G.T @ p.reshape(-1) - a
            step = self.factored(self._bend(v, limit, soft))(downhill)
            gain = float(downhill @ step)
            way = (self.G @ step).reshape(-1, 3)
            share = self._share_of(a, step, v, way, gain, limit, soft)
            a, v = a + share * step, v + share * way
            p = self._impulses(v, limit, soft)
            if gain <= max(enough, ROUNDING * float(a @ a)):
                return a, p, True
        return a, p, False

    def _share_of(
        self, a: Floats, step: Floats, v: Floats, way: Floats, gain: float, limit: Floats, soft: Floats
    ) -> float:
        """How much of a step to take: all, or to about where the energy is the least along it. That is convex, with
        bends where contacts open, close, stick and slide: halving would stop far short of it or beyond."""

        def slope(share: float) -> float:
            return float((a + share * step) @ step - np.vdot(self._impulses(v + share * way, limit, soft), way))

        low, high, at_low, at_high = 0.0, 1.0, -gain, slope(1.0)
        share = 1.0
        for _ in range(MOST_LOOKS):
            if at_high <= FLAT * gain:
                return high
            share = low - at_low * (high - low) / (at_high - at_low)
            found = slope(share)
            if abs(found) <= FLAT * gain:
                return share
            if found < 0:
                low, at_low, at_high = share, found, 0.5 * at_high
            else:
                high, at_high, at_low = share, found, 0.5 * at_low
        return share

    def _velocities(self, a: Floats) -> Floats:
        """v at answers a, shape (k, 3)."""
        return np.asarray(self.free + (self.G @ a).reshape(-1, 3))

    def _impulses(self, v: Floats, limit: Floats, soft: Floats) -> Floats:
        """p at velocities (k, 3), shape (k, 3)."""
        push = -v[:, 0] - self.room
        push = np.where(self._ties, push, np.maximum(push, 0.0)) / soft
        along = v[:, 1:] + self.slip
        _, slope, _ = mollified(along, self.creep)
        return np.concatenate([push[:, None], -(limit * slope + self._ties / soft)[:, None] * along], axis=1)

    def _bend(self, v: Floats, limit: Floats, soft: Floats) -> Floats:
        """How impulses decrease with velocities, shape (k, 3, 3)."""
        along = v[:, 1:] + self.slip
        length, slope, steeper = mollified(along, self.creep)
        bend = (self._ties / soft)[:, None, None] * np.eye(3)
        bend[:, 0, 0] = ((-v[:, 0] > self.room) | self._ties) / soft
        d = along / np.maximum(length, np.finfo(float).tiny)[:, None]
        radial = d[:, :, None] * d[:, None]
        across = slope[:, None, None] * (np.eye(2) - radial)
        bend[:, 1:, 1:] += limit[:, None, None] * (across + steeper[:, None, None] * radial)
        return bend

    def factored(self, bend: Floats) -> Solve:
        """(1 + Gᵀ D G)⁻¹ of (r,) or (r, m), where impulses decrease with velocities by D (k, 3, 3)."""
        if self._sparse is not None:
            return self._sparse.factored(bend)
        active = np.flatnonzero(bend.any(axis=(1, 2)))
        size = self.G.shape[1]
        G = np.asarray(self.G).reshape(len(bend), 3, size)[active]
        system = G.reshape(-1, size).T @ (bend[active] @ G).reshape(-1, size)
        system.flat[:: len(system) + 1] += 1.0
        factor, failed = dpotrf(system.T, lower=1, overwrite_a=1)
        if failed:
            raise np.linalg.LinAlgError("contacts: what bodies answer is not finite")
        return lambda asked: np.asarray(dpotrs(factor, asked, lower=1)[0])

    @cached_property
    def _sparse(self) -> SparseSystem | None:
        return None if isinstance(self.G, np.ndarray) else SparseSystem(self.G)


class SparseSystem:
    """1 + Gᵀ D G where each contact has to do with few columns of G (3k, r): where entries are is found once."""

    def __init__(self, G: csr_array) -> None:
        self._size, self._groups, columns = G.shape[1], [], []
        row = np.repeat(np.arange(G.shape[0]), np.diff(G.indptr))
        place, number = np.unique(row // 3 * self._size + G.indices, return_inverse=True)
        contact, column = np.divmod(place, self._size)
        count = np.bincount(contact, minlength=G.shape[0] // 3)
        nth = np.arange(len(place)) - np.repeat(np.cumsum(count) - count, count)
        for width in np.unique(count[count > 0]).tolist():
            which, own = np.flatnonzero(count == width), count[row // 3] == width
            blocks = np.zeros((len(which), 3, width))
            blocks[np.searchsorted(which, row[own] // 3), row[own] % 3, nth[number[own]]] = G.data[own]
            self._groups.append((which, blocks))
            columns.append(column[count[contact] == width].reshape(-1, width))
        entries = [self._size * one[:, None, :] + one[:, :, None] for one in columns]
        diagonal = (self._size + 1) * np.arange(self._size)
        # By columns, as they are asked for.
        place, number = np.unique(np.concatenate([diagonal, *(one.ravel() for one in entries)]), return_inverse=True)
        self._diagonal, *each = np.split(number, np.cumsum([len(diagonal), *(one.size for one in entries)])[:-1])
        self._entries = [one.reshape(len(every), -1) for one, every in zip(each, entries, strict=True)]
        self._rows = (place % self._size).astype(np.int32)
        self._starts = np.searchsorted(place, self._size * np.arange(self._size + 1)).astype(np.int32)

    def factored(self, bend: Floats) -> Solve:
        """See `CoulombProblem.factored`."""
        number, value = [self._diagonal], [np.ones(self._size)]
        for (which, G), entry in zip(self._groups, self._entries, strict=True):
            D = bend[which]
            active = np.flatnonzero(D.any(axis=(1, 2)))
            if len(active) < len(which):
                D, G, entry = D[active], G[active], entry[active]
            number.append(entry.ravel())
            value.append((np.swapaxes(G, 1, 2) @ (D @ G)).ravel())
        data = np.bincount(np.concatenate(number), np.concatenate(value), len(self._rows))
        system = csc_array((data, self._rows, self._starts), (self._size, self._size))
        return splu(system, "MMD_AT_PLUS_A", 0.0, options=SYMMETRIC).solve
