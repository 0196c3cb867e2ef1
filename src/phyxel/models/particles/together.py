"""Links of several surfaces and all that they touch, solved for at once (physics 15.16).

Of q, positions y of particles where their links are seen and answers of guests,

    ½ Σ (q − q_free)²/H + Σ ½k(|e| − r)² + σ Σ energies of touches

is made least by Newton's method with tensions as second unknowns, as in `newton`, and conjugate gradients: touches
change who they join in every step, and answers join all, so that a factor is only of links and what bears each.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import block_diag, bsr_array, csr_array, eye_array
from scipy.sparse.csgraph import connected_components

from phyxel.models.particles.conjugate import FOOTINGS, Gradients, Resisting, bearing
from phyxel.models.particles.linked import LinkedForces
from phyxel.models.particles.sheet import Sheet
from phyxel.models.particles.touched import TouchedFactor
from phyxel.models.particles.touches import Touches

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]

ROUNDS = 20
"""Of Newton's method, at most, for each look at friction."""
NEXT_TO_LAST, LAST = 1e-2, 1e-3
"""How far a round moves particles, over how far the step has (√Σδ²/H), below which it was the last: before the pushes
that friction goes by are known, and after."""
UNFELT = 1e-6
"""The same over how far the step would lead from where things are: links of what falls freely pull with nothing."""
SLID_ON = 0.3
"""Share of a slide that a round changes, below which it slides on: what turns about may stick."""
HALVINGS = 8
LEFT, FARTHEST = 0.5, 10.0
"""Share of the force along a way that is left at its end from which on it is followed farther, and how far at most."""
LEAST_INERTIA = 1e-9
"""Added to moments of inertia, as a share of them: particles in a line have none about it."""
ENOUGH, MOST = 1e-2, 100
"""Share of the force, in the norm of how far it leads, at which conjugate gradients end, and their most iterations."""
ITERATED = 100.0
"""Multiplications of a factor that an iteration costs as much as, for each entry, times iterations over √(H D)."""
MANY = 20
"""Iterations above which it is worth to look for a factor that knows who touches whom."""


@dataclass(frozen=True)
class MetStep:
    """What a step asks of all that takes part, in flat vectors (q,)."""

    now: Floats
    """where particles are; 0 of guests"""
    free: Floats
    """q_free"""
    inertia: Floats
    """1/H; infinite where it is held"""
    scale: float
    """σ: how much farther links look than to the end of the step"""


@dataclass(frozen=True)
class Standing:
    """How things stand at some q."""

    q: Floats
    e: Floats
    length: Floats
    s: Floats
    rest: Floats
    """the force that is missing, 0 where it is held, shape (q,)"""
    energy: float


class Together:
    """Some surfaces, one after the other, and after their particles `more` that have no links. Lengths in metres."""

    def __init__(self, sheets: Sequence[Sheet], units: Sequence[float]) -> None:
        self._C = csr_array(block_diag([_weights(sheet) for sheet in sheets]))
        self._linked = self._C.shape[1]
        self._rest = np.concatenate([unit * sheet.elements.rest for sheet, unit in zip(sheets, units, strict=True)])
        size = abs(self._C)
        joined = csr_array(size.T @ size + eye_array(self._linked))
        joined.sort_indices()
        self._columns, self._starts = joined.indices, joined.indptr
        rows = np.repeat(np.arange(self._linked), np.diff(joined.indptr))
        self._own = np.flatnonzero(rows == self._columns)
        self._links = LinkedForces(self._C, self._rest, rows, self._columns.astype(np.int64))
        self._below = np.flatnonzero(self._columns <= rows)
        self._gradients = Gradients(self._linked, rows[self._below], self._columns[self._below], ENOUGH)
        places = [unit * sheet.X for sheet, unit in zip(sheets, units, strict=True)]
        beside = np.cumsum([0.0, *(2 * np.ptp(X[:, 0]) for X in places[:-1])])
        self._X = np.concatenate([X + np.array([far, 0.0, 0.0]) for X, far in zip(places, beside, strict=True)])
        """at rest, one sheet beside the other, shape (n, 3)"""
        self._of_links = self._factor = TouchedFactor(self._X, joined)
        self._pieces = connected_components(joined, directed=False)

    def set_stiffness(self, k: Floats) -> None:
        """k [N/m] of each link."""
        self._k = k
        self._links.set_stiffness(k)
        size = abs(self._C)
        self.D = np.asarray(size.T @ (k * size.sum(axis=1)))
        """of all links of each particle together [N/m], shape (n,)"""

    def energy(self, x: Floats) -> float:
        """Σ ½k(|e| − r)² of particles at x (n, 3) [J]."""
        return 0.5 * float(self._k @ (self._links.at(x)[1] - self._rest) ** 2)

    def unbalanced(self, way: Floats, inertia: Floats, acting: Floats, arm: Floats) -> Floats:
        """How links as a whole are to be moved and turned, piece by piece, so that P = way/H, less what else is
        `acting`, cancels with its torques about arms (physics 13.5); (n, 3) each. Pieces that are held stay."""
        moves = np.zeros_like(way)
        count, piece = self._pieces
        alone = (np.bincount(piece, minlength=count)[piece] == 1) & np.isfinite(inertia)
        moves[alone] = acting[alone] / inertia[alone, None] - way[alone]
        held = np.bincount(piece, ~np.isfinite(inertia), count) > 0
        for k in np.flatnonzero(~held & (np.bincount(piece, minlength=count) > 1)):
            own = np.flatnonzero(piece == k)
            w = inertia[own]
            P = w[:, None] * way[own] - acting[own]
            shift = -P.sum(axis=0) / w.sum()
            z = arm[own] - (w @ arm[own]) / w.sum()
            system = np.eye(3) * (w @ np.square(z).sum(axis=1)) - (z * w[:, None]).T @ z
            eased = np.linalg.inv(system + LEAST_INERTIA * np.trace(system) * np.eye(3))
            torque = np.cross(z, P + w[:, None] * shift).sum(axis=0)
            turn = -eased @ torque
            turn -= eased @ (torque + system @ turn)  # what easing has left
            moves[own] = shift + np.cross(turn, z)
        return moves

    def solve(
        self, step: MetStep, touches: Touches, start: Floats, pressed: Floats, about: bool = False
    ) -> tuple[Floats, Floats]:
        """q at the end, from `start` on or from where things are, and the forces of touches (k, 3) [N], which about
        push so (k,) [N]; or only `about` q."""
        free = np.isfinite(step.inertia)
        now = self._at(np.where(free, start, step.free), step, touches, pressed)
        here = self._at(np.where(free, step.now, step.free), step, touches, pressed)
        if not now.energy <= here.energy:
            now = here
        self._tension = self._k * (now.length - self._rest)
        if len(touches):
            now = self._rounds(now, step, touches, pressed, NEXT_TO_LAST)
            pressed = touches.push(now.s)
        if not about:
            now = self._rounds(self._at(now.q, step, touches, pressed), step, touches, pressed, LAST)
        return now.q, touches.forces(now.s, pressed)

    def _rounds(self, now: Standing, step: MetStep, touches: Touches, pressed: Floats, enough: float) -> Standing:
        """Newton's, while friction stays what it is, until one moves particles by less than `enough`."""
        free = np.isfinite(step.inertia)
        inertia = step.inertia[free]
        felt = UNFELT**2 * float(inertia @ (step.now - step.free)[free] ** 2)
        wary = np.ones(len(touches), bool)  # what is new to friction slides at first, though most of it will hold
        leans = touches.leaning(now.s) | (pressed > 0)
        for _ in range(ROUNDS):
            way = self._way(now, step, touches, pressed, wary, leans)
            then = self._along(now, way, step, touches, pressed)
            if then is None:
                break
            wary, now, leans = ~_slides_on(now.s, then.s), then, touches.leaning(then.s)
            led = float(inertia @ (now.q - step.free)[free] ** 2)
            if inertia @ way[free] ** 2 <= max(enough**2 * led, felt):
                break
        return now

    def _along(self, now: Standing, way: Floats, step: MetStep, touches: Touches, pressed: Floats) -> Standing | None:
        """At the end of a way, or of as much of it as makes the energy less; or farther, to about where forces along it
        end, if they are left: what buckles is less stiff than a round thinks. None if nothing does. Tensions follow."""
        along = (now.e * (self._C @ way[: 3 * self._linked].reshape(-1, 3))).sum(axis=1) / now.length

        def at(share: float) -> Standing:
            return self._at(now.q + share * way, step, touches, pressed)

        for halvings in range(HALVINGS):
            share = 0.5**halvings
            then = at(share)
            if then.energy <= now.energy:
                break
        else:
            return None
        first, left = float(way @ now.rest), float(way @ then.rest)
        if share == 1 and left > LEFT * first > 0:
            beyond = at(farther := min(first / max(first - left, 1e-300), FARTHEST))
            if beyond.energy < then.energy:
                share, then = farther, beyond
        self._tension = self._k * (now.length - self._rest + share * along)
        return then

    def _at(self, q: Floats, step: MetStep, touches: Touches, pressed: Floats) -> Standing:
        n, free = 3 * self._linked, np.isfinite(step.inertia)
        e, length, pull = self._links.at(q[:n].reshape(-1, 3))
        s = touches.seen(q, step.scale)
        lack, inertia = np.where(free, step.free - q, 0.0), np.where(free, step.inertia, 0.0)
        rest = inertia * lack + touches.pull(touches.forces(s, pressed))
        rest[:n] += pull.reshape(-1)
        energy = 0.5 * float(inertia @ lack**2) + 0.5 * float(self._k @ (length - self._rest) ** 2)
        energy += step.scale * touches.energy(s, pressed)
        return Standing(q, e, length, s, np.where(free, rest, 0.0), energy)

    def _way(
        self, now: Standing, step: MetStep, touches: Touches, pressed: Floats, wary: Bools, leans: Bools
    ) -> Floats:
        """Where forces lead to first order, (q,); or, of what one is wary of that slides, less far. Who touches is
        found with it, from those that may lean (k,) on: those that it leads there, and no others."""
        blocks, bend = self._blocks(now.e, now.length, step), touches.bend(now.s, pressed, wary) / step.scale
        free = np.isfinite(step.inertia)
        alone = np.where(free, step.inertia, 1.0)
        if self._soft(step):
            resisting = Resisting(touches, now.s, bend, leans, step.scale)
            return self._gradients.touched(blocks[self._below], free, now.rest, resisting, alone[3 * self._linked :])
        way = np.zeros_like(now.rest)
        for _ in range(FOOTINGS):
            resists = bend.copy()
            resists[~leans & ~touches.ties, 0, 0] = 0.0
            rest = now.rest + np.where(free, touches.pull(touches.expected(now.s, leans)), 0.0)
            way = self._by_factor(blocks, free, alone, now.q, rest, touches, resists, way)
            there = touches.leaning(now.s + touches.moved(way) / step.scale)
            if (there == leans).all():
                break
            leans = there
        return way

    def _by_factor(
        self, blocks: Floats, free: Bools, alone: Floats, q: Floats, rest: Floats, touches: Touches, bend: Floats,
        start: Floats,
    ) -> Floats:  # fmt: skip
        """Where a force leads that touches resist so (k, 3, 3), from about `start` (q,) on."""
        n = 3 * self._linked
        acting = np.flatnonzero(bend.any(axis=(1, 2)))
        active, bend = touches.some(acting), bend[acting]
        links = bsr_array((blocks, self._columns, self._starts), shape=(n, n))

        def times(p: Floats) -> Floats:
            out = alone * p
            out[:n] = links @ p[:n]
            if len(acting):
                out += active.pull((bend @ active.moved(p)[:, :, None])[:, :, 0])
            return np.where(free, out, 0.0)

        # An older factor would cost more in iterations than a new one does: links turn, and touches come and go.
        whole = self._factor.factor(blocks, active, bend)
        way, steps = _conjugate(times, self._eased(free, alone, active, bend), rest, start)
        if steps > MANY and not whole:
            self._factor = self._factor.joining(active, q[:n].reshape(-1, 3))
        return way

    def _soft(self, step: MetStep) -> bool:
        """Whether conjugate gradients by single particles, some √(H D) iterations, cost less than a factor."""
        inertia = step.inertia[: 3 * self._linked : 3]
        steps = ITERATED * math.sqrt(float((self.D / inertia).max()))
        return steps * len(self._below) < self._factor.multiplications

    def _blocks(self, e: Floats, length: Floats, step: MetStep) -> Floats:
        """Of the stiffness of links and inertia, as tensions are now, (entries, 3, 3); 1 where it is held."""
        n, free = 3 * self._linked, np.isfinite(step.inertia)
        blocks = self._links.stiffness(e, length, np.maximum(self._tension, 0.0)).copy()
        if not free.all():
            rows = np.repeat(np.arange(self._linked), np.diff(self._starts))
            blocks[~(free[::3][rows] & free[::3][self._columns])] = 0.0
        blocks[self._own] += np.where(free, step.inertia, 1.0)[:n].reshape(-1, 3)[:, :, None] * np.eye(3)
        return blocks

    def answers(self, q: Floats, step: MetStep, arm: Floats) -> Callable[[Floats], Floats]:
        """Where forces (n, 3) [N] lead beyond what a step has led to, q, by its links and inertia alone, which keep
        momenta: y (n, 3), particles having begun at arms (n, 3)."""
        inertia = step.inertia[: 3 * self._linked : 3]
        e, length, _ = self._links.at(q[: 3 * self._linked].reshape(-1, 3))
        none = Touches.none(len(inertia), 0)
        self._of_links.factor(self._blocks(e, length, step), none, np.zeros((0, 3, 3)))

        def answer(forces: Floats) -> Floats:
            acting = np.where(np.isfinite(inertia)[:, None], forces, 0.0)
            led = self._of_links.solve(acting)
            return led + self.unbalanced(led, inertia, acting, arm)

        return answer

    def begin(self) -> None:
        """A step begins: nothing is known of who touches whom."""
        self._factor = self._of_links

    def _eased(self, free: Bools, alone: Floats, touches: Touches, bend: Floats) -> Callable[[Floats], Floats]:
        """Where a force leads about: particles by the factor, nodes each by itself, answers together. The factor knows
        touches of what is held, too, which stays where it is all the same."""
        linked, n, G = 3 * self._linked, touches.J.shape[1], touches.G
        own = alone[linked:n].reshape(-1, 3)[:, :, None] * np.eye(3)
        nodes = np.linalg.inv(own + bearing(touches, bend)[self._linked :]) if n > linked else own
        system = np.diag(alone[n:]) + G.T @ (bend @ G.reshape(len(bend), 3, G.shape[1])).reshape(G.shape)
        answer = np.linalg.inv(system)

        def eased(r: Floats) -> Floats:
            led = self._factor.solve(r[:linked].reshape(-1, 3)).reshape(-1)
            moved = (nodes @ r[linked:n].reshape(-1, 3, 1)).reshape(-1)
            return np.where(free, np.concatenate([led, moved, answer @ r[n:]]), 0.0)

        return eased


def _slides_on(before: Floats, now: Floats) -> Bools:
    """Which of touches that were at s before slide the same way and about as far now, (k, 3) each."""
    changed, far = (np.linalg.norm(way, axis=1) for way in (now[:, 1:] - before[:, 1:], now[:, 1:]))
    return np.asarray(changed < SLID_ON * far)


def _weights(sheet: Sheet) -> csr_array:
    """c of the elements, e = C y, (E, n)."""
    index = sheet.elements.index
    known = index >= 0
    return csr_array((sheet.elements.weight[known], (np.nonzero(known)[0], index[known])), (len(index), len(sheet.X)))


def _conjugate(
    times: Callable[[Floats], Floats], eased: Callable[[Floats], Floats], rest: Floats, start: Floats
) -> tuple[Floats, int]:
    """About what a force (q,) leads to, from about there on, and how many iterations that took."""
    enough = ENOUGH**2 * float(rest @ eased(rest))
    x, r = start, rest - times(start)
    z = eased(r)
    p, left = z, float(r @ z)
    steps = 0
    while steps < MOST:
        if left <= enough:
            break
        bent = times(p)
        work = float(p @ bent)
        if not work > 0:  # forces so small that their squares are nothing
            break
        far, steps = left / work, steps + 1
        x, r = x + far * p, r - far * bent
        z = eased(r)
        new = float(r @ z)
        p, left = z + (new / left) * p, new
    return x, steps
