"""Bodies of different movers meet (physics 15.14): an interval of time at a time, in which they exchange impulses.

Bodies that have a model each take one step, under what they are foreseen to bear. Then surfaces go on among them and
where phyxels fly to. Phyxels take their own substeps meanwhile, with the others as guests that go the foreseen way and
answer impulses. What differs from what was foreseen is given to them afterwards. Where no two bodies of different
movers are near each other, each mover goes on by itself.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from phyxel import device as dev
from phyxel.body import Body
from phyxel.meeting.contacts import contacts_between
from phyxel.meeting.meeting import CLOSER, FEWEST, FOLLOWED, LATE, NEAR, SHORTEST, Meeting
from phyxel.meeting.memory import ContactMemory
from phyxel.meeting.outline import Outline
from phyxel.meeting.party import SeenBody
from phyxel.mls.carry import Carriers
from phyxel.models.coulomb import RESTING
from phyxel.models.phyxel.contact.guests import Booked
from phyxel.movers.field_bodies import FieldBodies
from phyxel.movers.flock_guests import FlockGuest, FlockGuests
from phyxel.movers.guest_touch import GuestTouch
from phyxel.movers.met_solid import MetSolid
from phyxel.movers.mover import Mover, MoverWorld
from phyxel.movers.outlines import outline_of
from phyxel.movers.phyxel_bodies import PhyxelBodies
from phyxel.movers.phyxel_impacts import duration
from phyxel.movers.sheet_bodies import SheetBodies
from phyxel.movers.sheet_encounters import SheetEncounters
from phyxel.movers.sheet_guests import SheetGuest, guests_of
from phyxel.movers.sheet_neighbours import MARGIN, Boxes, Company
from phyxel.state import State, prefixed, unprefixed

Floats = NDArray[np.float64]

LONGEST = 1 / 240
"""Interval of bodies that are near each other, at most [s]."""
PASSED = 1 / 16
"""Share of the time in which two surfaces move by half a spacing past each other that an interval takes at most: where
rows of particles were passed by more, what bears them would lean ahead, and push along what slides."""
UNASKED = 1 / 60
"""Time for which surfaces are not asked again whether they come near something [s]."""
BALL = 0.5
"""Radius of the balls that a melt is met as [spacings]."""


@dataclass(frozen=True)
class NearPair:
    """Phyxels near a body that may be their guest: one that has a model of its own, or takes longer steps."""

    guest: Body
    phyxel: Body


class Encounters:
    """How the movers of a world meet."""

    def __init__(self, world: MoverWorld) -> None:
        self._world = world
        self._memories = {word: ContactMemory() for word in ("implicit", "leapfrog")}
        """of the flocks, those that take longer steps first"""
        self._outlines: dict[Body, Outline] = {}
        self._impacts: dict[tuple[str, str], tuple[float, float]] = {}
        """how long intervals of an impact of two bodies are, and for how much longer it is followed [s]; less than 0
        for those that are still near each other"""
        self._surfaces = SheetEncounters(world.attachments)

    def interval(self, movers: Sequence[Mover], left: float) -> float | None:
        """How long [s] the next interval is in which some meet, of the time that is left; None if none do in it."""
        self._movers = movers
        self._fields = next((one for one in movers if isinstance(one, FieldBodies)), None)
        self._sheets = next((one for one in movers if isinstance(one, SheetBodies)), None)
        flocks = {one.integrator: one for one in movers if isinstance(one, PhyxelBodies)}
        self._flocks = {word: flocks[word] for word in self._memories if word in flocks}
        self._speeds: dict[Body, tuple[Floats, Floats]] = {}
        """least and largest velocities among the nodes of bodies [m/s], (3,) each"""
        self._pairs = self._near(left)
        self._company = self._near_sheets(min(left, UNASKED))
        self._glued = self._world.attachments.glued_phyxels
        self._keep_off_glue()
        self._quiet = not self._pairs and self._company is None and not self._glued
        if self._quiet:
            for memory in self._memories.values():
                memory.forget()
            self._impacts.clear()
            # Surfaces fold and swing: who is near, but not so near, is asked again soon.
            return UNASKED if left > UNASKED and self._sheets is not None and self._near_boxes(left) else None
        if left > LONGEST:  # who may come to touch later is asked for then
            self._pairs = self._near(LONGEST)
        for mover in movers:
            mover.set_down()
        longest = min(left, LONGEST, *(self._closing(pair.guest, pair.phyxel) for pair in self._pairs))
        longest = min([longest, *(self._impact(pair) for pair in self._pairs)])
        if self._company is not None:
            passing = (PASSED * self._closing(*pair) for pair in self._company.layers)
            longest = min(longest, self._company.sunk_within(), *passing)
        self._invite()
        if self._meeting is not None:
            longest = min(longest, self._meeting.longest_step)
        return left / max(1, math.ceil(left / max(longest, SHORTEST) * (1 - 1e-9)))

    def _impact(self, pair: NearPair) -> float:
        """The longest interval [s] in which an impact of two bodies that is to come, or goes on, is followed: it makes
        new places touch, and is over in a few of the others."""
        name, one, other = (pair.guest.name, pair.phyxel.name), pair.guest, pair.phyxel
        speed = float(np.linalg.norm(one.velocities.mean(axis=0) - other.velocities.mean(axis=0)))
        slow = RESTING * LONGEST * float(np.linalg.norm(self._world.gravity))
        if name not in self._impacts and speed > slow and not other.has_melted:
            lasts, late = duration((one, other), speed)
            self._impacts[name] = min(max(lasts / FOLLOWED, LATE * late), lasts / FEWEST), 2 * lasts
        step, left = self._impacts.get(name, (math.inf, 0.0))
        return step if left > 0 else math.inf

    def _keep_off_glue(self) -> None:
        """Phyxel bodies of one flock do not touch where they are tied to each other."""
        for flock in self._flocks.values():
            if self._glued or flock.contact.keeps_off:
                tied = self._world.attachments.beside_glue(flock.bodies, flock.model.ranges)
                flock.contact.keep_off(tied)

    def _invite(self) -> None:
        """Who are guests in an interval: those with a model each, in a meeting, and phyxels that take long steps."""
        guests = dict.fromkeys(pair.guest for pair in self._pairs)
        slow = [body for body in guests if body.kind.make is None]
        self._slow = FlockGuests(self._flocks["implicit"], slow) if slow else None
        self._sewn = [pair for pair in self._world.attachments.sewn if pair[1].kind.mover is PhyxelBodies]
        self._sewn.sort(key=lambda pair: [self._world.bodies.index(body) for body in pair])
        self._sheet_guests = guests_of(self._sewn)
        met = {} if self._company is None else dict.fromkeys(self._company.solids)
        company = frozenset(body for body in guests | met if body.kind.make is not None)
        self._meeting: Meeting | None = None
        if self._fields is not None and company:
            self._meeting = self._fields.meeting(company)

    def _near_sheets(self, span: float) -> Company | None:
        """Surfaces that may come to touch something within a span of time [s], and what they may touch."""
        if self._sheets is None:
            return None
        return self._surfaces.near(self._sheets.bodies, self._solids, span, self._world.gravity)

    def _near_boxes(self, span: float) -> bool:
        """Whether surfaces might come to touch anything within a span of time [s], by boxes around them."""
        sheets = [] if self._sheets is None else self._sheets.bodies
        return self._surfaces.near_boxes(sheets, self._solids, span, self._world.gravity)

    @property
    def _solids(self) -> list[Body]:
        movers = [one for one in (self._fields, *self._flocks.values()) if one is not None]
        return [body for mover in movers for body in mover.bodies]

    def _near(self, span: float) -> list[NearPair]:
        """Pairs of bodies that may come to touch within a span of time [s]."""
        able = [] if self._fields is None else [body for body in self._fields.bodies if body.kind.meets]
        phyxels = [body for flock in self._flocks.values() for body in flock.bodies]
        if not phyxels or not (able or len(self._flocks) == 2):
            return []
        boxes = Boxes(span, self._world.gravity)
        guests, pairs, tied = able, [], self._world.attachments.glued_phyxels
        for flock in self._flocks.values():
            pairs += [
                NearPair(one, other)
                for one, other in itertools.product(guests, flock.bodies)
                if (one.whole != other.whole or one.kind is other.kind)  # crumbs lie among pieces they broke off from
                and (boxes.overlap(one, other) or (one, other) in tied or (other, one) in tied)
            ]
            guests = [*able, *flock.bodies]
        return pairs

    def _closing(self, one: Body, other: Body) -> float:
        """Time in which two bodies come half a spacing nearer to each other, at most [s]."""
        (least, largest), (low, high) = self._speed_of(one), self._speed_of(other)
        most = np.maximum(largest - low, high - least)
        return CLOSER * min(one.unit, other.unit) / max(float(np.linalg.norm(most)), 1e-30)

    def _speed_of(self, body: Body) -> tuple[Floats, Floats]:
        if body not in self._speeds:
            v = body.velocities
            self._speeds[body] = v.min(axis=0), v.max(axis=0)
        return self._speeds[body]

    def advance(self, dt: float) -> None:
        """Let all bodies go on by an interval of dt [s] and meet each other."""
        if self._quiet:
            for mover in self._movers:
                mover.advance(dt)
            return
        end = self._world.time + dt
        touches = {word: self._touch(flock, dt) for word, flock in self._flocks.items()}
        known = {word: self._foreseen(word, touch) for word, touch in touches.items() if touch is not None}

        def load() -> None:
            for word, (foreseen, _) in known.items():
                touch = touches[word]
                assert touch is not None
                touch.push(-dt * foreseen, dt)
            self._surfaces.load(self._dense(), dt)

        self._step_fields(dt, end, load)
        kicks = self._meet_sheets(dt, end)
        done = {word: self._advance_flock(word, touch, known.get(word), kicks, dt) for word, touch in touches.items()}
        for word, touch in touches.items():
            memory, booked = self._memories[word], done[word]
            if touch is None or booked is None:
                memory.forget()
                continue
            with dev.one_blas_thread():
                touch.settle(booked, known[word][0], dt)
            memory.keep(touch.key, touch.forces(booked, dt), touch.slips(booked))
            self._bear(word, touch, end)
        self._pass_time(dt)
        if self._slow is not None and touches["leapfrog"] is not None:
            self._slow.settle(dt)
        with dev.one_blas_thread():
            self._surfaces.land(end)
        if self._fields is not None and self._meeting is not None:
            self._fields.finish(dt, end)

    def _pass_time(self, dt: float) -> None:
        """Impacts have gone on for dt [s] if there was anything to touch; those of bodies that have parted are over."""
        near = {(pair.guest.name, pair.phyxel.name) for pair in self._pairs}
        known = {name: times for name, times in self._impacts.items() if name in near}
        self._impacts = {name: (step, left - dt) for name, (step, left) in known.items()}

    def _foreseen(self, word: str, touch: GuestTouch) -> tuple[Floats, Floats]:
        """What the contacts of a flock are foreseen to do [N], and how far they have slipped [m], shape (k, 3) each. Of
        ties only what is steady: where they pull and push by turns, what was foreseen would drive that."""
        memory = self._memories[word]
        force, slip = memory.recalled(touch.key)
        return np.where(touch.tied[:, None], memory.steady(touch.key), force), slip

    def _step_fields(self, dt: float, end: float, load: Callable[[], None]) -> None:
        """Let bodies with a model each go on by dt [s]; those of the meeting, and phyxels that are guests, are to bear
        what `load` gives them."""
        if self._meeting is None:
            load()
            if self._fields is not None:
                self._fields.advance(dt)
        elif self._fields is not None:
            self._fields.step(self._meeting, dt, end, load)

    def _advance_flock(
        self,
        word: str,
        touch: GuestTouch | None,
        known: tuple[Floats, Floats] | None,
        kicks: dict[Body, Floats],
        dt: float,
    ) -> Booked | None:
        """Let a flock go on by dt [s], with what surfaces gave it [N s], and meet its guests; what it did to them."""
        flock, slow = self._flocks[word], self._slow
        go_on = slow.advance if slow is not None and flock is slow.flock else flock.advance
        if touch is None or known is None:
            self._kick(flock, kicks)
            go_on(dt)
            return None
        with dev.one_blas_thread():
            contacts = touch.guests(*known, RESTING * dt * float(np.linalg.norm(self._world.gravity)), dt)
        self._kick(flock, kicks)
        guests = flock.model.set_guests(contacts)
        go_on(dt)
        booked = guests.booked()
        flock.model.set_guests(None)
        for body in touch.phyxels:
            flock.energies.forget(body)
        return booked

    def _dense(self) -> list[MetSolid]:
        """Bodies with a model each that surfaces may meet, after their step."""
        if self._company is None or self._meeting is None:
            return []
        parties = dict(zip(self._meeting.bodies, self._meeting.parties, strict=True))
        return [MetSolid(body, parties[body], None) for body in self._company.solids if body in parties]

    def _meet_sheets(self, dt: float, end: float) -> dict[Body, Floats]:
        """Let surfaces go on by dt [s], those in company among what they may touch. What nodes of phyxel bodies get
        [N s], (n, 3) each."""
        if self._sheets is None:
            return {}
        busy = [] if self._company is None else self._company.sheets
        self._sheets.advance(dt, [body for body in self._sheets.bodies if body not in busy])
        if self._company is None:
            return {}
        solids = self._dense()
        with dev.one_blas_thread():
            for one in solids:
                one.look()
            solids += [self._flying(body, dt) for body in self._company.solids if body.kind.mover is PhyxelBodies]
            return self._surfaces.meet(self._sheets, busy, solids, self._sheet_guests, dt, end)

    def _flying(self, body: Body, dt: float) -> MetSolid:
        """A phyxel body where it will be if surfaces press it as they did."""
        seen, way = self._seen(body), dt * (body.velocities + dt * self._surfaces.held_against(body))
        seen.see(body.positions + way, MARGIN * body.unit)
        held = np.concatenate([np.zeros(0, np.int64), *(handle.nodes for handle in body.handles)])
        mass = body.masses.copy()
        mass[held] = np.inf
        return MetSolid(body, seen, mass, way)

    @staticmethod
    def _kick(flock: PhyxelBodies, kicks: dict[Body, Floats]) -> None:
        """Give nodes of a flock's bodies impulses [N s], (n, 3) each."""
        mine = {body: one for body, one in kicks.items() if body in flock.bodies and one.any()}
        if not mine:
            return
        v = flock.model.now.v.numpy()
        for body, impulses in mine.items():
            v[flock.nodes_of(body)] += impulses / (body.unit * body.masses[:, None])
            flock.energies.forget(body)
        flock.model.now.v.assign(v)

    def _touch(self, flock: PhyxelBodies, dt: float) -> GuestTouch | None:
        """Where the pairs of a flock touch, or may in an interval of dt [s]."""
        pairs = [pair for pair in self._pairs if pair.phyxel in flock.bodies]
        sewn = [body for _, body in self._sewn if body in flock.bodies]
        glued = [body for pair in self._glued if all(one in flock.bodies for one in pair) for body in pair]
        bodies = list(dict.fromkeys([*(pair.phyxel for pair in pairs), *sewn, *glued]))
        parties = [] if self._meeting is None else list(self._meeting.parties)
        number = {} if self._meeting is None else {body: k for k, body in enumerate(self._meeting.bodies)}
        slow: list[FlockGuest | SheetGuest] = [*(self._sheet_guests if sewn else [])]
        slow += [] if self._slow is None or flock is self._slow.flock else self._slow.each
        number |= {one.body: len(parties) + k for k, one in enumerate(slow)}
        count = len(parties) + len(slow)
        seen: list[SeenBody] = [*parties, *(self._seen(body) for body in (*(one.body for one in slow), *bodies))]
        number |= {body: count + k for k, body in enumerate(bodies)}
        found = []
        for pair in pairs:
            unit = min(pair.guest.unit, pair.phyxel.unit)
            margin = NEAR * unit + CLOSER * unit * min(1.0, dt / self._closing(pair.guest, pair.phyxel))
            found += contacts_between(seen, number[pair.guest], number[pair.phyxel], margin)
        for ties in self._world.attachments.among(number, seen):
            if max(ties.one, ties.other) >= count:  # others are the meeting's own
                found = [left for one in found if (left := ties.clear_of(one, seen)) is not None] + [ties]
        if not found:
            return None
        first = {count + k: flock.nodes_of(body).start for k, body in enumerate(bodies)}
        return GuestTouch([*parties, *slow], self._meeting, bodies, first, found, seen)

    def _bear(self, word: str, touch: GuestTouch, time: float) -> None:
        """Let what ties phyxels to guests tear, where they pulled too much until a time [s]."""
        for ties in touch.ties:
            force, _ = self._memories[word].recalled(ties.key)
            on_first = force if touch.is_phyxel(ties.one) else -force
            self._world.attachments.bear(ties, touch.seen, on_first, time)

    def _seen(self, body: Body) -> SeenBody:
        one = SeenBody(
            lambda: self._outline(body), body.unit, body.origin, float(body.masses.sum()), body.friction,
            body.restitution,
        )  # fmt: skip
        one.see(body.positions, MARGIN * body.unit)
        if body.has_melted:
            one.balls = BALL * body.unit
        return one

    def _outline(self, body: Body) -> Outline:
        if body not in self._outlines:
            outline = self._outlines[body] = outline_of(body)
            carriers = Carriers.found(outline.X, body.birth_places, body.sees)
            outline.carry(*carriers.fit(outline.X, body.birth_places))
        return self._outlines[body]

    def forget(self) -> None:
        """Bodies have fallen apart, or come: numbers are others now."""
        for memory in self._memories.values():
            memory.clear()
        self._outlines.clear()
        self._surfaces.forget()

    def state(self) -> State:
        """What a checkpoint keeps of it."""
        states = [prefixed(f"{word}.", memory.state()) for word, memory in self._memories.items()]
        states.append(prefixed("surfaces.", self._surfaces.state()))
        names, times = np.array(list(self._impacts), str), np.array(list(self._impacts.values()))
        states.append({"impacts.names": names.reshape(-1, 2), "impacts.times": times.reshape(-1, 2)})
        return {name: array for state in states for name, array in state.items()}

    def restore(self, state: State) -> None:
        """Take over what `state` gave."""
        for word, memory in self._memories.items():
            memory.restore(unprefixed(f"{word}.", state))
        self._surfaces.restore(unprefixed("surfaces.", state), self._world.bodies)
        names, times = state["impacts.names"].tolist(), state["impacts.times"].tolist()
        self._impacts = {(one, other): (step, left) for (one, other), (step, left) in zip(names, times, strict=True)}
