"""Links in equilibrium at the end of a step (physics 13.9): Newton's method with tensions as second unknowns.

Of what makes ½|y − y_free|²/H + Σ ½k(|e| − r)² least, t = e/|e|, each round solves

    [1/H + Σ cᵀ (k ttᵀ + λ/|e| (1 − ttᵀ)) c] δ = (y_free − y)/H + P(y),   y ← y + δ,   λ ← k (|e| − r + t·cδ)

by a factor of that matrix (`fronts`), or by conjugate gradients where links are soft and lie on nothing (`conjugate`).
λ is the tension that the round itself foresees: links that turn by δ are longer to second order, and of stiff ones
k (|e| − r) would say much more than they pull with. From the P of the step before on two rounds do, however stiff the
links are. Where links that are pushed would buckle there is no factor, and only those that pull are counted.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from phyxel.models.particles.conjugate import Gradients
from phyxel.models.particles.elements import Elements
from phyxel.models.particles.fronts import Fronts
from phyxel.models.particles.linked import LinkedForces

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]

MISSING = 1.0e-3
"""Force that may be missing, over what links pull particles with (root mean squares)."""
LAST = 0.1
"""How far a round moves particles, over how far links do (√Σ|δ|²/H and √Σ H P²), below which it was the last: what is
left is of second order in that."""
UNFELT = 1.0e-6
"""The same over what is missing where particles are now, which their momentum is a part of."""
ROUNDED = 32 * float(np.finfo(np.float64).eps)
"""Of k times the size of the sheet: forces below are rounding."""
FOOTINGS = 3
"""How often a round asks anew who lies on colliders, at most."""
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

    def deep(self, y: Floats) -> Floats:
        """How far particles at y are in the colliders that they lie on, less than 0 if they are out, shape (n,)."""
        return np.einsum("na,na->n", self.wall, self.spot - y)


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
    def at(
        y: Floats, drive: Drive, held: Floats | None, before: Borne | None = None, lies: Bools | None = None
    ) -> Borne:
        """Of particles at y; friction as it is there, unless it is known how far it holds. What slid in the round
        before and would now slide back sticks: friction does not drive it."""
        deep = drive.deep(y)
        lies = deep > 0 if lies is None else lies
        deep = np.where(lies, deep, 0.0)
        held = drive.grip * np.maximum(deep, 0.0) if held is None else held
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
        self._C, self._X, self._elements = links, X, elements
        self._joined = csr_array(abs(links).T @ abs(links))
        self._joined.sort_indices()
        rows, columns = (side.astype(np.int64) for side in self._joined.nonzero())
        self._rows, self._columns = rows[rows >= columns], columns[rows >= columns]
        """the two particles of each entry of the stiffness"""
        self._own = np.flatnonzero(self._rows == self._columns)
        """entries of single particles"""
        self._links = LinkedForces(links, elements.rest, self._rows, self._columns)
        self._gradients = Gradients(len(X), self._rows, self._columns)
        self._size = float(np.ptp(X, axis=0).max())
        self.tension = np.zeros(len(elements))
        """λ of the last step [N/unit · unit], shape (E,)"""
        self.held = np.zeros(len(X))
        """how far friction held particles back at its end, shape (n,)"""
        self._buckles = False
        """whether links that are pushed left no factor in this step"""

    @cached_property
    def _fronts(self) -> Fronts:
        return Fronts(self._X, self._joined)

    @cached_property
    def _placed(self) -> NDArray[np.int64]:
        """Where the entries of fronts are among ours."""
        pair = np.sort(np.stack([self._fronts.rows, self._fronts.columns]), axis=0)
        n = len(self._X)
        return np.searchsorted(self._rows * n + self._columns, pair[1] * n + pair[0])

    def set_stiffness(self, k: Floats, D: Floats, soft: bool) -> None:
        """k [N/m] of each element, (E,), and of all elements of each particle together, (n,); `soft`: conjugate
        gradients are sooner there than a factor."""
        self._k, self._D, self._soft = k, D, soft
        self._links.set_stiffness(k)

    def forget(self) -> None:
        """What the last step knew is of no use to the next."""
        self.tension = np.full(len(self.tension), np.nan)
        self.held = np.zeros(len(self.held))

    def solve(self, now: Floats, P: Floats, drive: Drive) -> tuple[Floats, float]:
        """y (n, 3) at the end of a step, from where particles are, (n, 3), and the pull P of the step before, (n, 3);
        and the force that is missing over what links pull with, 0 if that is as little as may be.

        Friction holds as it did at the end of the step before, and then as it would where this leads: while it stays
        what it is, there is an energy that gets less."""
        free = np.isfinite(drive.inertia)
        self._buckles = False
        here = self._stand(np.where(free[:, None], now, drive.free), drive, free)
        end = self._stand(drive.free + P / drive.inertia[:, None], drive, free, self.held)
        if end.energy > here.energy or np.isnan(self.tension).any():
            end, self.tension = here, self._k * (here.length - self._elements.rest)
        allowed = ROUNDED * float(self._k.max()) * self._size + UNFELT * _mean(here.rest)
        for _ in range(1 if end.footing is None else 2):
            here = self._stand(here.y, drive, free, end.held)
            end, there = self._foreseen(end, drive, free, allowed)
            if not end.energy <= here.energy:
                end, there = self._safe(here, drive, free, allowed)
            missing = 0.0 if there else _mean(end.rest) / max(_mean(end.pull), allowed)
            end = self._stand(end.y, drive, free)
        if end.footing is not None:
            self.held = end.footing.held
        return end.y, missing

    def _foreseen(self, now: Stance, drive: Drive, free: Bools, allowed: float) -> tuple[Stance, bool]:
        """Rounds with tensions as unknowns, and whether they get there."""
        for _ in range(ROUNDS):
            if self._balanced(now, allowed):
                return now, True
            way = self._way(now, drive, free)
            along = (now.e * (self._C @ way)).sum(axis=1) / now.length
            self.tension = self._k * (now.length - self._elements.rest + along)
            now = self._stand(now.y + way, drive, free, now.held, now.footing)
            if not np.isfinite(now.energy):
                break
            by_gradients = self._soft and now.footing is None  # which leave some of the first order
            if not by_gradients and _was_last(way, now, drive, free):
                return now, True
        return now, False

    def _safe(self, now: Stance, drive: Drive, free: Bools, allowed: float) -> tuple[Stance, bool]:
        """Rounds that take tensions as they are and go only as far as the energy gets less, and whether they get
        there."""
        for _ in range(SAFE_ROUNDS):
            self.tension = self._k * (now.length - self._elements.rest)
            if self._balanced(now, allowed):
                return now, True
            way, share = self._way(now, drive, free), 1.0
            gain = float((way * now.rest).sum())
            then = self._stand(now.y + way, drive, free, now.held)
            while not then.energy <= now.energy - SURELY_LESS * share * gain and share > SHORTEST:
                share *= 0.5
                then = self._stand(now.y + share * way, drive, free, now.held)
            if share <= SHORTEST:
                break
            now = then
            if share == 1.0 and _was_last(way, now, drive, free):
                return now, True
        return now, False

    @staticmethod
    def _balanced(now: Stance, allowed: float) -> bool:
        return bool(_mean(now.rest) <= max(allowed, MISSING * _mean(now.pull)))

    def _stand(
        self, y: Floats, drive: Drive, free: Bools, held: Floats | None = None, before: Borne | None = None
    ) -> Stance:
        """At y, with what friction holds there unless that is known."""
        e, length, pull = self._links.at(y)
        longer = length - self._elements.rest
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
        """δ of a round, (n, 3). Who lies on colliders is found with it: those that it leads there, and no others."""
        footing, way = now.footing, self._led(now, now.footing, drive, free)
        for _ in range(FOOTINGS):
            lies = free & (drive.deep(now.y + way) > 0)
            if footing is None or (lies == footing.lies).all():
                break
            footing = Borne.at(now.y, drive, now.held, None, lies)
            way = self._led(now, footing, drive, free)
        return way

    def _led(self, now: Stance, footing: Borne | None, drive: Drive, free: Bools) -> Floats:
        """Where forces lead to first order, (n, 3): with all tensions if what they make less stiff stays stable, else
        with pulling ones."""
        rest = now.rest
        if footing is not None and now.footing is not None:
            rest = rest + (free * self._D)[:, None] * (footing.move - now.footing.move)
        if self._soft and footing is None:
            stiffness = self._stiffness(now, footing, drive, free, np.maximum(self.tension, 0.0))
            return self._gradients.solve(stiffness, rest)
        for least in (0.0,) if self._buckles else (-np.inf, 0.0):
            stiffness = self._stiffness(now, footing, drive, free, np.maximum(self.tension, least))
            self._fronts.factor(stiffness[self._placed])
            way = self._fronts.solve(rest)
            if np.isfinite(way).all():
                break
            self._buckles = True
        return way

    def _stiffness(self, now: Stance, footing: Borne | None, drive: Drive, free: Bools, tension: Floats) -> Floats:
        """Blocks of the matrix of a round, shape (entries, 3, 3)."""
        rows, columns = self._rows, self._columns
        blocks = self._links.stiffness(now.e, now.length, tension)
        blocks[~(free[rows] & free[columns])] = 0.0
        alone = np.where(free, drive.inertia, 1.0)[:, None, None] * np.eye(3)
        if footing is not None:
            alone += (free * self._D)[:, None, None] * footing.stiffness(drive)
        blocks[self._own] += alone[rows[self._own]]
        return blocks


def _was_last(way: Floats, now: Stance, drive: Drive, free: Bools) -> bool:
    """Whether a round has moved particles by so little that none need follow."""
    inertia = drive.inertia[free, None]
    return bool((inertia * way[free] ** 2).sum() <= LAST**2 * (now.pull**2 / inertia).sum())


def _mean(forces: Floats) -> float:
    """Root mean square of the lengths of vectors (n, 3)."""
    return float(np.sqrt((forces**2).sum() / max(len(forces), 1)))
