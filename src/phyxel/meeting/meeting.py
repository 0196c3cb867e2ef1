"""Bodies that have a model each meet each other and colliders (physics 15.8, 15.12): impulses within a step.

Each body has gone its step by itself, under what others did to it in the last one if it foresees that. Impulses at the
places where they touch, equal and opposite, then change what the step made of it, as each body's own step answers them:
a body that lies on another rests. What touches, and what touches that, is solved together (`coulomb`). Depths go
slowly, nothing slides that friction holds, and nothing bounces but by its own elasticity, or by its restitution.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from phyxel.contact.touch import ColliderQuery
from phyxel.meeting.answer_blocks import WAYS
from phyxel.meeting.contacts import COLLIDER, contacts_between, contacts_with_colliders
from phyxel.meeting.coulomb import AnswerBlocks, CoulombProblem
from phyxel.meeting.memory import ContactMemory
from phyxel.meeting.party import Party
from phyxel.meeting.stiff import StiffBodies, StiffOutlines
from phyxel.meeting.stiff_sides import StiffSides
from phyxel.meeting.support import Answers, Support
from phyxel.meeting.table import ContactTable, Share
from phyxel.meeting.ties import TiedPlaces
from phyxel.models.coulomb import RESTING, from_axes

Floats = NDArray[np.float64]
Indices = NDArray[np.int64]

NEAR = 0.1
"""Gap [spacings] below which a place may come to touch something that does not move."""
CLOSER = 0.5
"""Spacings that bodies may come nearer to each other in one step."""
SHORTEST = 1e-4
"""[s]: steps are not made shorter for speed."""
TAKEN_BACK = 5
"""Steps in which a depth is taken back, and what has slipped since it stuck."""
SHALLOW = 0.01
"""Depth [spacings] that is taken back at most so: out of a deeper one bodies come no faster."""
CREEP = 5e-4
"""Speed up to which friction grows to its limit, in sizes of the smaller body a second."""
HERTZ, FOLLOWED = 2.87, 40
"""An impact of elastic balls lasts HERTZ (m²/(R E² v))^(1/5) (physics 15.12), and is followed in so many steps."""
LATE, FEWEST = 0.5, 20
"""Share of the time by which the stress of damped bodies is late that a step need not be shorter than, for they lose
more by that; and the fewest steps in which their impacts are followed."""
MUCH = 1.0
"""[1/s]: rate of gain, over the energy there is, that is too much. A little is lent by the springs of colliders."""
EASED = 6
"""How often bodies may give way less than the impulses would have it, in a step."""


@dataclass(frozen=True)
class Led:
    """How bodies move in a step before they feel each other: coefficients of all, one behind the other, (N, 3)."""

    drift: Floats
    """velocities at its end [m/s]"""
    before: Floats
    """when it began [m/s]"""
    way: Floats
    """how far they go in it [m]"""
    bow: Floats
    """what ties see of velocities besides: what turns goes along a bow [m/s]"""
    speed: Floats
    """of the bodies' middles at its end [m/s], shape (n, 3)"""
    extent: Floats
    """of the bodies [m], shape (n,)"""


class Meeting:
    """Bodies at the beginning of a step, those that may come to touch something in it."""

    def __init__(self, parties: Sequence[Party], longest: float, gravity: float, memory: ContactMemory) -> None:
        """In a step of `longest` [s] at most; `gravity` [m/s²] pulls at all."""
        self.parties, self._gravity, self._memory = parties, gravity, memory
        self._pairs = np.zeros((0, 2), np.int64)
        self._support: Support | None = None
        self.ties: Sequence[TiedPlaces] = ()
        """places where some of them are tied to others"""
        self.bodies: list[Any] = []
        """whose parties they are"""
        self.longest_step = longest
        """[s], in which no two of them come much nearer"""
        self._first = np.cumsum([0, *(len(one.before) for one in parties)])
        """the first coefficient of each body among all"""
        self._unit, self._mass, self._stiff = (
            np.array([getattr(one, name) for one in parties]) for name in ("unit", "mass", "stiff")
        )
        if len(parties) > 1:
            self._find_pairs(longest)
        families = {name: k for k, name in enumerate(dict.fromkeys(["", *(one.family for one in parties)]))}
        self._family = np.array([families[one.family] for one in parties])
        self.together = set(np.unique(self._pairs).tolist())
        """numbers of those that are near others"""
        for a in self.together if not self._stiff.all() else ():
            parties[a].energy = sum(parties[a].model.energies())

    def tie(self, ties: Sequence[TiedPlaces]) -> None:
        """Bodies are tied so in this step."""
        self.ties = ties
        for a in {end for one in ties for end in (one.one, one.other)} - self.together:
            self.together.add(a)
            self.parties[a].energy = sum(self.parties[a].model.energies())

    def _find_pairs(self, longest: float) -> None:
        parties = self.parties
        self._speed = _closing_speeds(*self._ends([one.unit * one.speed for one in parties]))
        lower, upper = self._boxes()
        before = (lower[:, None] - upper < longest * self._speed[:, :, None]).all(axis=2)
        self._pairs = np.argwhere(np.triu(before & before.T, 1))
        if not len(self._pairs):
            return
        a, b = self._pairs.T
        steps = CLOSER * np.minimum(self._unit[a], self._unit[b]) / np.maximum(self._speed[a, b], 1e-30)
        closer = np.minimum.accumulate(np.maximum(steps, SHORTEST))
        for k in np.flatnonzero(~(self._stiff[a] & self._stiff[b])).tolist():
            self.longest_step = min(self.longest_step, float(closer[k]))
            impact = self._impact(int(a[k]), int(b[k]))
            self.longest_step = min(self.longest_step, max(impact, SHORTEST))
        self.longest_step = min(self.longest_step, float(closer[-1]))

    def _ends(self, fields: Sequence[Floats]) -> tuple[Floats, Floats]:
        """The least and the greatest of each component of fields of all bodies, (n, 3) each."""
        every, starts = np.concatenate(fields), self._first[:-1]
        return np.minimum.reduceat(every, starts), np.maximum.reduceat(every, starts)

    def _boxes(self) -> tuple[Floats, Floats]:
        """Corners of the boxes around the bodies, where they are now, (n, 3) each."""
        lower, upper = self._ends([one.x for one in self.parties])
        margin = np.array([one.margin for one in self.parties])[:, None]
        return lower - margin, upper + margin

    def _impact(self, a: int, b: int) -> float:
        """The longest step [s] in which an impact of two bodies that is to come, or goes on, is followed."""
        one, other = self.parties[a], self.parties[b]
        soft = 1 / one.young + 1 / other.young
        slow = RESTING * self.longest_step * self._gravity
        known = (a, b) in self._memory.impacts
        if soft == 0 or not (known or self._speed[a, b] > slow):
            return math.inf
        if not known and (approach := self._approach(a, b)) > slow:
            mass = one.mass * other.mass / (one.mass + other.mass)
            radius = 0.25 * min(_extent(one), _extent(other))
            lasts = HERTZ * (mass**2 * soft**2 / (radius * approach)) ** 0.2
            self._memory.impacts[a, b] = lasts, 2 * lasts
        lasts, _ = self._memory.impacts.get((a, b), (math.inf, 0.0))
        late = (one.damping / one.young + other.damping / other.young) / soft
        return min(max(lasts / FOLLOWED, LATE * late), lasts / FEWEST)

    def _approach(self, a: int, b: int) -> float:
        """How fast two bodies come to touch each other within the longest step, if they do [m/s]."""
        fastest = 0.0
        margin = float(self._margins(np.array([[a, b]]), self.longest_step)[0])
        for one in contacts_between(self.parties, a, b, margin):
            ends = self.parties[one.one], self.parties[one.other]
            v = sum(
                sign * end.unit * (rows @ end.speed)
                for sign, end, rows in zip((1, -1), ends, one.rows, strict=True)
                if rows is not None
            )
            across = np.einsum("ka,ka->k", one.axes[:, 0], v)
            meet = one.gap + self.longest_step * across < 0
            fastest = max(fastest, float(-across[meet].min(initial=0.0)))
        return fastest

    def resolve(self, dt: float, around: ColliderQuery, load: Callable[[], None] | None = None) -> None:
        """Let bodies that have gone a step of dt [s] each push each other apart, and off colliders, which are `around`
        in metres; under a `load` that others put on them, if there is any."""
        meeting = [a for a, one in enumerate(self.parties) if a in self.together or one.around is not None]
        for a in meeting:
            self.parties[a].go()
        contacts = self._contacts(meeting, dt, around) if meeting else None
        for one in self.parties:
            one.model.unload(dt)
        if load is not None:
            load()
        self._memory.pass_time(dt)
        if contacts is None:
            self._memory.forget()
            return
        force, slip = self._memory.recalled(contacts.key)
        if len(contacts):
            force, slip = self._resolve(contacts, force, slip, self._led(contacts, dt), dt)
        self._memory.keep(contacts.key, force, slip)

    def _contacts(self, meeting: Sequence[int], dt: float, around: ColliderQuery) -> ContactTable:
        """Where bodies touch, or are tied."""
        parties, stiff = self.parties, self._stiff_bodies(meeting)
        place, margin = np.full(len(parties), -1), self._margins(self._pairs, dt)
        if stiff is not None:
            place[stiff.numbers] = np.arange(len(stiff.numbers))
        alike = (place[self._pairs] >= 0).all(axis=1)
        pairs = zip(self._pairs[~alike].tolist(), margin[~alike].tolist(), strict=True)
        found = [one for (a, b), gap in pairs for one in contacts_between(parties, a, b, gap)]
        for ties in [one.led(parties) for one in self.ties]:
            found = [left for one in found if (left := ties.clear_of(one, parties)) is not None] + [ties]
        found += contacts_with_colliders(parties, [a for a in meeting if place[a] < 0], around, NEAR)
        table = ContactTable.of(found, self._first)
        if stiff is None:
            return table
        more = stiff.contacts(place[self._pairs[alike]], margin[alike]), stiff.contacts_with_colliders(around, NEAR)
        return ContactTable.joined([table, *(one for one in more if one is not None)])

    def _stiff_bodies(self, meeting: Sequence[int]) -> StiffBodies | None:
        """The rigid bodies among those that may touch something, if there are any, all as one."""
        tied = {end for one in self.ties for end in (one.one, one.other)}
        parties, memory = self.parties, self._memory
        able = [a for a in meeting if a not in tied and parties[a].stiff and parties[a].knows_its_solid]
        if not able:
            return None
        outlines = [parties[a].outline for a in able]
        if memory.outlines is None or memory.outlines.of != outlines:
            memory.outlines = StiffOutlines(outlines, [parties[a].model.space.nodes for a in able])
        return StiffBodies(memory.outlines, [parties[a] for a in able], able, self._first)

    def _led(self, contacts: ContactTable, dt: float) -> Led:
        """How bodies that touch something move before they feel it."""
        drift, before, way, bow = (np.zeros((int(self._first[-1]), 3)) for _ in range(4))
        speed = np.zeros((len(self.parties), 3))
        tied = set(np.concatenate([end[contacts.tied] for end in (contacts.one, contacts.other)]).tolist())
        for body in contacts.bodies:
            party, own = self.parties[body], slice(*self._first[body : body + 2])
            drift[own], before[own] = party.unit * party.model.drift(party.before, dt), party.unit * party.speed
            way[own] = party.way
            if body in tied:
                bow[own] = party.unit * party.model.lead(party.before, dt) - drift[own]
            speed[body] = party.model.momenta()[0] / party.mass
        lower, upper = self._boxes()
        return Led(drift, before, way, bow, speed, (upper - lower).max(axis=1))

    def _margins(self, pairs: Indices, dt: float) -> Floats:
        """Gaps [m] below which pairs of bodies (p, 2) may come to touch in a step: others may push them on."""
        if not len(pairs):
            return np.zeros(0)
        (a, b), unit = pairs.T, self._unit[pairs].min(axis=1)
        return np.minimum(NEAR * unit + dt * self._speed[a, b], CLOSER * unit)

    def _resolve(
        self, contacts: ContactTable, force: Floats, slip: Floats, led: Led, dt: float
    ) -> tuple[Floats, Floats]:
        """Find the impulses, from forces (k, 3) of the step before and slips (k, 3) on, and let bodies take them.
        Returns forces and slips."""
        parties, axes, gap = self.parties, contacts.axes, contacts.gap
        shares, stiff = list(contacts.shares(self._first, ~self._stiff)), StiffSides(contacts, parties, self._stiff, dt)
        tied, wall, unit = contacts.tied, contacts.wall, contacts.least(self._unit)
        free, before, way = (
            np.asarray(contacts.apart(field, moved))
            for field, moved in ((led.drift, wall), (led.before, wall), (led.way, dt * wall))
        )
        if tied.any():
            free += np.where(tied[:, None], contacts.apart(led.bow, np.zeros_like(wall)), 0.0)
        free, before, way, off = ((axes @ part[:, :, None])[:, :, 0] for part in (free, before, way, contacts.off))
        start = gap - way[:, 0]
        # Faces that have just parted fit into each other: coarse nodes see a depth where there is none.
        back = np.where(self._parted(contacts), 0.0, np.maximum(start, -SHALLOW * unit) / TAKEN_BACK)
        room = np.where(start > 0, start, back) / dt
        bounce = contacts.restitution
        struck = (before[:, 0] < -RESTING * dt * self._gravity) & (start + dt * before[:, 0] < 0) & (bounce > 0)
        room = np.where(struck, bounce * before[:, 0], room)
        force, slip = ((axes @ part[:, :, None])[:, :, 0] for part in (force, slip))
        creep = CREEP * contacts.least(led.extent)
        answers = self._answers(shares, stiff, axes, dt)
        back = np.where(tied[:, None], off[:, 1:], slip[:, 1:] / TAKEN_BACK) / dt
        room = np.where(tied, off[:, 0] / dt, room)
        problem = CoulombProblem(answers.G, free, room, contacts.friction, back, creep, contacts.share)
        impulses, after = problem.solved(dt * force)
        place = contacts.place - dt * self._taken_along(contacts, led.speed)

        def push(impulses: Floats) -> None:
            pushes = from_axes(axes, impulses)
            stiff.push(place, pushes, dt)
            for one in shares:
                parties[one.body].push(one.rows, place[one.which], one.sign[:, None] * pushes[one.which], dt)

        push(impulses)
        self._support = Support(answers, problem, impulses, push)
        gone = dt * after
        if shares:
            self._calm(contacts, impulses[:, 0] * np.maximum(-room, 0.0), dt)
            bends = ~np.logical_and(*contacts.of_bodies(self._stiff))
            truly = (axes @ self._gone(shares, stiff, dt * wall)[:, :, None])[:, :, 0]
            # What bends does what impulses make of it, to rounding.
            gone = np.where(bends[:, None], truly, gone)
        slip = _slipped(slip, gone, dt * after, dt * creep)
        slip[(impulses[:, 0] <= 0) | tied] = 0.0
        return from_axes(axes, impulses) / dt, from_axes(axes, slip)

    def _calm(self, contacts: ContactTable, lifted: Floats, dt: float) -> None:
        """Take from bodies that touch what they got more than there was, and than `lifted` (k,) [J] says that contacts
        lift them out of each other."""
        for island in contacts.islands(len(self.parties)):
            bodies = [a for a in contacts.part(island).bodies if a in self.together]
            if not self._stiff[bodies].all():
                _calm([self.parties[a] for a in bodies], float(lifted[island].sum()), dt)

    def _gone(self, shares: Sequence[Share], stiff: StiffSides, walls: Floats) -> Floats:
        """How far contacts have truly slid in the step [m], where colliders went so far, (k, 3) each."""
        gone = stiff.apart(len(walls)) - walls
        for one in shares:
            gone[one.which] = gone[one.which] + one.sign[:, None] * self.parties[one.body].travelled(one.rows)
        return gone

    def _taken_along(self, contacts: ContactTable, speed: Floats) -> Floats:
        """How fast bodies take places of contact along, shape (k, 3). Impulses lead on from where a step began: the
        arms that they act with are those at its end. Of two bodies the heavier one's are as much shorter or longer as
        the lighter one's would be: that changes its spin least."""
        (m, other_m), (v, other_v) = contacts.of_bodies(self._mass), contacts.of_bodies(speed)
        both = (other_m[:, None] * v + m[:, None] * other_v) / (m + other_m)[:, None]
        return np.where((contacts.other == COLLIDER)[:, None], v, both)

    def _parted(self, contacts: ContactTable) -> NDArray[np.bool_]:
        """Which are of two pieces of one body, (k,)."""
        one, other = contacts.of_bodies(self._family)
        return (one == other) & (one > 0) & (contacts.other != COLLIDER)

    def response(self, shares: Sequence[tuple[int, csr_array, Indices]], axes: Floats, dt: float) -> Floats:
        """What impulses of others at k places of some bodies, with φ in rows, do to the velocities of these places
        along their axes (k, 3, 3), after a step of dt [s]: as what the bodies lie on lets them. Shape (3k, 3k)."""
        W, three = np.zeros((len(axes), 3, len(axes), 3)), np.arange(3)
        roots = {
            body: (which, axes[which] @ self.parties[body].response(rows, dt).reshape(len(which), 3, -1))
            for body, rows, which in shares
        }
        for body, (which, root) in roots.items():
            support = self._support
            whole = root.reshape(3 * len(which), -1)
            left = {body: whole.T}
            if support is not None and body in support.answers.columns and self._answers_alike(body):
                left = support.left(body, whole)
            for other, (there, its) in roots.items():
                if other in left and (other == body or self._answers_alike(other)):
                    block = its.reshape(3 * len(there), -1) @ left[other]
                    W[np.ix_(there, three, which, three)] = block.reshape(len(there), 3, len(which), 3)
        whole_W = W.reshape(3 * len(axes), 3 * len(axes))
        return 0.5 * (whole_W + whole_W.T)

    def bear(self, asked: Sequence[tuple[int, csr_array, Floats, Floats]], dt: float) -> None:
        """Let bodies (by number) take impulses (k, 3) [N s] at places (k, 3) [m] with φ in rows within a step of dt
        [s], and what they lie on bear them, as `response` has it: a step later it would be a blow."""
        support = self._support
        if support is not None:
            answers, every = support.answers, np.zeros(WAYS * support.answers.G.count)
            for body, rows, _, impulses in asked:
                if body in answers.columns and self._answers_alike(body):
                    root = self.parties[body].response(rows, dt).reshape(3 * len(impulses), -1)
                    every[answers.columns[body]] += answers.ways[body].T @ (root.T @ impulses.reshape(-1))
            if every.any():
                support.bear(every)
        for body, rows, place, impulses in asked:
            self.parties[body].push(rows, place, impulses, dt)

    def _answers_alike(self, body: int) -> bool:
        """Whether a body answers in the same ways wherever it is touched: those that see to colliders by themselves
        have ways that go by the places, and know what they lie on."""
        return self.parties[body].model.with_others is not False

    def _answers(self, shares: Sequence[Share], stiff: StiffSides, axes: Floats, dt: float) -> Answers:
        """How the bodies answer at contacts: rigid ones by a block each, others by as many as it takes."""
        count, contact, block, blocks = len(stiff.numbers), [stiff.contact], [stiff.body], [stiff.answers(axes)]
        columns = {body: slice(WAYS * k, WAYS * (k + 1)) for k, body in enumerate(stiff.numbers.tolist())}
        ways = {body: np.eye(count, WAYS) for body, count in zip(columns, stiff.ways, strict=True)}
        for one in shares:
            answer = self.parties[one.body].response(one.rows, dt).reshape(len(one.which), 3, -1)
            own, turned = _asked_for((one.sign[:, None, None] * axes[one.which]) @ answer)
            more = -(-own.shape[1] // WAYS)
            missing = WAYS * more - own.shape[1]
            turned = np.pad(turned, [(0, 0), (0, 0), (0, missing)]).reshape(len(one.which), 3, more, WAYS)
            blocks.append(np.swapaxes(turned, 1, 2).reshape(-1, 3, WAYS))
            contact.append(np.repeat(one.which, more))
            block.append(np.tile(count + np.arange(more), len(one.which)))
            columns[one.body] = slice(WAYS * count, WAYS * (count + more))
            ways[one.body] = np.pad(own, [(0, 0), (0, missing)])
            count += more
        which, whose = np.concatenate(contact), np.concatenate(block)
        return Answers(AnswerBlocks.of(which, whose, np.concatenate(blocks), len(axes), count), columns, ways)


def _asked_for(answer: Floats) -> tuple[Floats, Floats]:
    """Of how a body's answers move its k contacts, (k, 3, r), those in which it answers impulses there at all, (r, r')
    with r' ≤ 3k, and how these move the contacts, (k, 3, r')."""
    k, _, r = answer.shape
    if r <= 3 * k:
        return np.eye(r), answer
    ways, moves = np.linalg.qr(answer.reshape(3 * k, r).T)
    return ways, moves.T.reshape(k, 3, 3 * k)


def _slipped(slip: Floats, gone: Floats, led: Floats, creep: Floats) -> Floats:
    """How far contacts are from where they stuck, (k, 3), who were so far, have `gone` since, and were to be `led`;
    `creep` is how far friction that slides goes at least, (k,).

    What bends goes otherwise than the impulses make it go for small changes, a little, step for step: friction that
    held by these would creep. Where friction has no more to give, it slides: the slip is then what friction holds."""
    pulled = led + slip / TAKEN_BACK
    pulled[:, 0] = 0.0
    far = np.linalg.norm(pulled, axis=1)
    most = TAKEN_BACK * ((creep / np.maximum(far, 1e-300))[:, None] * pulled + gone - led)
    found = np.where((far < creep)[:, None], slip + gone, most)
    found[:, 0] = 0.0
    return found


def _extent(party: Party) -> float:
    return float((party.upper - party.lower).max())


def _closing_speeds(slowest: Floats, fastest: Floats) -> Floats:
    """The largest speed [m/s] that two of n bodies can have against each other, whose velocities have components
    between these (n, 3) each, shape (n, n)."""
    most = fastest[:, None] - slowest
    return np.asarray(np.linalg.norm(np.maximum(most, np.swapaxes(most, 0, 1)), axis=2))


def _calm(parties: Sequence[Party], lifted: float, dt: float) -> None:
    """Bodies that are bent far are stiffer than at rest, as which the impulses took them: what they got more than there
    was, and than lifts them out of each other [J], is taken from their vibration; if that is not enough, they do not
    give way as far."""
    for _ in range(EASED):
        gained = [sum(one.model.energies()) - one.energy - one.model.work(one.before) for one in parties]
        above = sum(gained) - lifted
        for k in np.argsort(gained)[::-1]:
            if above <= 0:
                return
            above -= parties[k].model.calm(above)
        if not parties or above <= MUCH * dt * sum(one.energy for one in parties):
            return
        parties[int(np.argmax(gained))].model.ease()
