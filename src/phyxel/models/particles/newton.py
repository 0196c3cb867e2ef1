"""Links in equilibrium at the end of a step (physics 13.9): Newton's method with tensions as second unknowns.

Of what makes ½|y − y_free|²/H + Σ ½k(|e| − r)² least, t = e/|e|, each round solves

    [1/H + Σ cᵀ (k ttᵀ + λ/|e| (1 − ttᵀ)) c] δ = (y_free − y)/H + P(y),   y ← y + δ,   λ ← k (|e| − r + t·cδ)

by a factor of that matrix (`fronts`). λ is the tension that the round itself foresees: links that turn by δ are longer
to second order, and of stiff ones k (|e| − r) would say much more than they pull with. From the P of the step before on
two rounds do, however stiff the links are. Where links that are pushed would buckle there is no factor, and only those
that pull are counted.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from phyxel.models.particles.elements import Elements
from phyxel.models.particles.fronts import Fronts

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]

MISSING = 1.0e-3
"""Force that may be missing at a particle, over what links pull particles with (root mean square)."""
UNFELT = 1.0e-6
"""The same over what is missing where particles are now, which their momentum is a part of."""
ROUNDED = 32 * float(np.finfo(np.float64).eps)
"""Of k times the size of the sheet: forces below are rounding."""
ROUNDS, SAFE_ROUNDS = 6, 10
"""Most rounds with foreseen tensions, and of those after them that take none and never make the energy more."""
SURELY_LESS, SHORTEST = 1.0e-4, 1.0e-4
"""Share of the gain that a safe round foresees which it must have, and of its way below which it has none."""


@dataclass(frozen=True)
class Drive:
    """What a step asks of the links; of n particles."""

    free: Floats
    """y_free, shape (n, 3)"""
    inertia: Floats
    """1/H; infinite if it is held, shape (n,)"""
    wall: Floats
    """direction out of the collider that it lies on, 0 if on none, shape (n, 3)"""
    spot: Floats
    """where it lies there, shape (n, 3)"""
    grip: Floats
    """Coulomb's coefficient there, shape (n,)"""


@dataclass(frozen=True)
class Borne:
    """How colliders bear what lies on them, each particle as stiffly as its links do (physics 13.3)."""

    move: Floats
    """where they would have it, less y, shape (n, 3)"""
    work: Floats
    """½move² of what is pushed out and what sticks, less for what slides, shape (n,)"""
    held: Floats
    """how far friction holds it back, shape (n,)"""
    slid: Floats
    """from its spot to y along the collider, shape (n, 3)"""
    lies: Bools
    """shape (n,)"""
    sticks: Bools
    """shape (n,)"""

    @staticmethod
    def at(y: Floats, drive: Drive, held: Floats | None, before: Borne | None) -> Borne:
        """Of particles at y; friction as it is there, unless it is known how far it holds. What slid in the round
        before and would now slide back sticks: friction does not drive it."""
        deep = np.maximum(np.einsum("na,na->n", drive.wall, drive.spot - y), 0.0)
        lies = deep > 0
        held = drive.grip * deep if held is None else held
        slid = np.where(lies[:, None], y + deep[:, None] * drive.wall - drive.spot, 0.0)
        far = np.linalg.norm(slid, axis=1)
        sticks = far <= held
        if before is not None:
            sticks |= ~before.sticks & (np.einsum("na,na->n", slid, before.slid) < 0)
        back = np.where(sticks, 1.0, held / np.maximum(far, 1e-300))
        rubbed = np.where(far < held, 0.5 * far**2, held * (far - 0.5 * held))
        move = deep[:, None] * drive.wall - back[:, None] * slid
        return Borne(move, 0.5 * deep**2 + rubbed, held, slid, lies, sticks)

    def stiffness(self, drive: Drive) -> Floats:
        """−∂move/∂y, shape (n, 3, 3)."""
        far = np.maximum(np.linalg.norm(self.slid, axis=1), 1e-300)
        way = self.slid / far[:, None]
        back = np.where(self.sticks, 1.0, self.held / far)
        out = drive.wall[:, :, None] * drive.wall[:, None, :]
        along = np.eye(3) - out - ~self.sticks[:, None, None] * way[:, :, None] * way[:, None, :]
        return np.asarray(self.lies[:, None, None] * (out + back[:, None, None] * along))


@dataclass(frozen=True)
class Stance:
    """How things stand at some y."""

    y: Floats
    e: Floats
    length: Floats
    pull: Floats
    """P of the links on free particles, shape (free, 3)"""
    rest: Floats
    """the force that is missing, 0 at held particles, shape (n, 3)"""
    energy: float
    footing: Borne | None

    @property
    def held(self) -> Floats | None:
        """How far friction holds each particle back."""
        return None if self.footing is None else self.footing.held


class TensionNewton:
    """Brings the links of a sheet into equilibrium."""

    def __init__(self, X: Floats, elements: Elements, links: csr_array) -> None:
        """`links` are the weights of the elements, e = C y, (E, n)."""
        self._C, self._across = links, csr_array(links.T)
        self._elements = elements
        pattern = abs(links).T @ abs(links)
        self._fronts = Fronts(X, csr_array(pattern))
        self._shares = _shares(links, self._fronts)
        self._own = np.flatnonzero(self._fronts.rows == self._fronts.columns)
        """entries of single particles"""
        self._size = float(np.ptp(X, axis=0).max())
        self.tension = np.zeros(len(elements))
        """λ of the last step [N/unit · unit], shape (E,)"""
        self._buckles = False
        """whether links that are pushed left no factor in this step"""

    def set_stiffness(self, k: Floats, D: Floats) -> None:
        """k [N/m] of each element, (E,), and of all elements of each particle together, (n,)."""
        self._k, self._D = k, D

    def solve(self, now: Floats, P: Floats, drive: Drive) -> tuple[Floats, float]:
        """y (n, 3) at the end of a step, from where particles are, (n, 3), and the pull P of the step before, (n, 3);
        and the force that is missing over what links pull with, 0 if that is as little as may be.

        Friction holds as it would at the start, if that is anywhere near, and then as it would where this leads: while
        it stays what it is, there is an energy that gets less."""
        free = np.isfinite(drive.inertia)
        self._buckles = False
        here = self._stand(np.where(free[:, None], now, drive.free), drive, free)
        end = self._stand(drive.free + P / drive.inertia[:, None], drive, free)
        if end.footing is not None and np.abs(end.rest).max() > _mean(end.pull):
            end = self._stand(end.y, drive, free, np.zeros(len(free)))
        if end.energy > here.energy:
            end, self.tension = here, self._k * (here.length - self._elements.rest)
        allowed = ROUNDED * float(self._k.max()) * self._size + UNFELT * _mean(here.rest)
        for _ in range(1 if end.footing is None else 2):
            here = self._stand(here.y, drive, free, end.held)
            end = self._foreseen(end, drive, free, allowed)
            if not end.energy <= here.energy:
                end = self._safe(here, drive, free, allowed)
            missing = 0.0 if self._balanced(end, allowed) else _mean(end.rest) / max(_mean(end.pull), allowed)
            end = self._stand(end.y, drive, free)
        return end.y, missing

    def _foreseen(self, now: Stance, drive: Drive, free: Bools, allowed: float) -> Stance:
        """Rounds with tensions as unknowns."""
        for _ in range(ROUNDS):
            if self._balanced(now, allowed):
                break
            way = self._way(now, drive, free)
            along = (now.e * (self._C @ way)).sum(axis=1) / now.length
            self.tension = self._k * (now.length - self._elements.rest + along)
            now = self._stand(now.y + way, drive, free, now.held, now.footing)
            if not np.isfinite(now.energy):
                break
        return now

    def _safe(self, now: Stance, drive: Drive, free: Bools, allowed: float) -> Stance:
        """Rounds that take tensions as they are and go only as far as the energy gets less."""
        for _ in range(SAFE_ROUNDS):
            self.tension = self._k * (now.length - self._elements.rest)
            if self._balanced(now, allowed):
                break
            way, share = self._way(now, drive, free), 1.0
            gain = float((way * now.rest).sum())
            then = self._stand(now.y + way, drive, free, now.held)
            while not then.energy <= now.energy - SURELY_LESS * share * gain and share > SHORTEST:
                share *= 0.5
                then = self._stand(now.y + share * way, drive, free, now.held)
            if share <= SHORTEST:
                break
            now = then
        return now

    @staticmethod
    def _balanced(now: Stance, allowed: float) -> bool:
        return bool(np.abs(now.rest).max() <= max(allowed, MISSING * _mean(now.pull)))

    def _stand(
        self, y: Floats, drive: Drive, free: Bools, held: Floats | None = None, before: Borne | None = None
    ) -> Stance:
        """At y, with what friction holds there unless that is known."""
        e = self._C @ y
        length = np.maximum(np.sqrt(np.einsum("ea,ea->e", e, e)), 1e-300)
        longer = length - self._elements.rest
        pull = -(self._across @ ((self._k * longer / length)[:, None] * e))
        lack = np.where(free[:, None], drive.free - y, 0.0)
        inertia = np.where(free, drive.inertia, 0.0)
        energy = 0.5 * float(self._k @ longer**2 + inertia @ np.einsum("na,na->n", lack, lack))
        rest = inertia[:, None] * lack + pull
        footing = Borne.at(y, drive, held, before) if drive.wall.any() else None
        if footing is not None:
            rest += self._D[:, None] * footing.move
            energy += float(self._D @ footing.work)
        rest[~free] = 0.0
        return Stance(y, e, length, pull[free], rest, energy, footing)

    def _way(self, now: Stance, drive: Drive, free: Bools) -> Floats:
        """δ of a round, (n, 3): with all tensions if what they make less stiff stays stable, else with pulling ones."""
        for least in (0.0,) if self._buckles else (-np.inf, 0.0):
            self._fronts.factor(self._stiffness(now, drive, free, np.maximum(self.tension, least)))
            way = self._fronts.solve(now.rest)
            if np.isfinite(way).all():
                break
            self._buckles = True
        return way

    def _stiffness(self, now: Stance, drive: Drive, free: Bools, tension: Floats) -> Floats:
        """Blocks of the matrix of a round, shape (entries, 3, 3)."""
        t = now.e / now.length[:, None]
        across = np.where(self._elements.rest == 0, self._k, tension / now.length)
        each = np.einsum("e,ea,eb->eab", self._k - across, t, t)
        each[:, range(3), range(3)] += across[:, None]
        rows, columns = self._fronts.rows, self._fronts.columns
        blocks = (self._shares @ each.reshape(-1, 9)).reshape(-1, 3, 3)
        blocks[~(free[rows] & free[columns])] = 0.0
        alone = np.where(free, drive.inertia, 1.0)[:, None, None] * np.eye(3)
        if now.footing is not None:
            alone += (free * self._D)[:, None, None] * now.footing.stiffness(drive)
        blocks[self._own] += alone[rows[self._own]]
        return blocks


def _mean(forces: Floats) -> float:
    """Root mean square of the lengths of vectors (n, 3)."""
    return float(np.sqrt((forces**2).sum() / max(len(forces), 1)))


def _shares(links: csr_array, fronts: Fronts) -> csr_array:
    """c_i c_j of each element in each entry (i, j) of the stiffness, (entries, E)."""
    n = links.shape[1]
    width = int(np.diff(links.indptr).max(initial=1))
    index = np.full((links.shape[0], width), -1)
    weight = np.zeros((links.shape[0], width))
    row = np.repeat(np.arange(links.shape[0]), np.diff(links.indptr))
    slot = np.arange(len(row)) - links.indptr[row]
    index[row, slot], weight[row, slot] = links.indices, links.data
    keys = fronts.rows * n + fronts.columns
    order = np.argsort(keys)
    found, elements, products = [], [], []
    for a in range(width):
        for b in range(width):
            both = np.flatnonzero((index[:, a] >= 0) & (index[:, b] >= 0))
            key = index[both, a] * n + index[both, b]
            place = np.minimum(np.searchsorted(keys[order], key), len(keys) - 1)
            hit = keys[order][place] == key
            found.append(order[place[hit]])
            elements.append(both[hit])
            products.append((weight[both, a] * weight[both, b])[hit])
    places = (np.concatenate(found), np.concatenate(elements))
    return csr_array((np.concatenate(products), places), (len(keys), links.shape[0]))
