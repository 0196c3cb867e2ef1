"""Impacts of phyxel bodies that step implicitly (physics 15.7): they are followed by leap-frog till they are over.

An impact of an elastic body lasts a few hundred times as long as sound takes from one phyxel to the next, however stiff
it is: less than an implicit step, but not many of leap-frog's, which keeps its energy.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from phyxel.body import Body
from phyxel.meeting.meeting import FEWEST, HERTZ, LATE
from phyxel.models.coulomb import RESTING
from phyxel.models.phyxel.walls import gaps_to_colliders
from phyxel.movers.phyxel_steps import LONGEST_IMPLICIT
from phyxel.state import State

if TYPE_CHECKING:
    from phyxel.movers.phyxel_bodies import PhyxelBodies

Floats = NDArray[np.float64]
Pair = tuple[int, int]

MOST = 10_000
"""Leap-frog steps that an impact may take to be followed: strong damping asks for more."""
BEFORE, LONGEST = 0.1, 2.0
"""Share of its duration that an impact is followed before it begins; and how many times as long it is, at most."""
GROWING = 2.0
"""Times the step before that an implicit step after an impact is, at most."""
PARTED = 0.02
"""Gap [spacings] beyond which bodies have parted, and may hit each other anew."""
FAR = 1e29
"""[spacings]: what is farther from a collider is near none."""
COLLIDER, GUEST = -1, -2
"""Who else is hit, but for other bodies of the flock."""


@dataclass(frozen=True)
class NearPlaces:
    """Places of bodies near something: k of them."""

    one: NDArray[np.integer]
    """the body, shape (k,)"""
    other: NDArray[np.integer]
    """the other body, or COLLIDER or GUEST, shape (k,)"""
    gap: Floats
    """[m], shape (k,)"""
    approach: Floats
    """speed with which bodies, as rigid as they move, come nearer there [m/s], shape (k,)"""
    unit: Floats
    """node spacing of the body [m], shape (k,)"""

    def pairs(self, which: NDArray[np.bool_]) -> set[Pair]:
        """Who is near whom at some of the places (k,)."""
        return set(zip(self.one[which].tolist(), self.other[which].tolist(), strict=True))


def duration(bodies: Sequence[Body], speed: float) -> tuple[float, float]:
    """How long an impact of two bodies at a speed [m/s] lasts by Hertz, or of one against what does not give way, and
    by how much their stress is late, mean by 1/E [s]."""
    bends = [body for body in bodies if body.kind.bends]
    young, damping = (np.array([body.mixture.number(name).mean() for body in bends]) for name in ("young", "damping"))
    mass = 1 / sum(1 / float(body.masses.sum()) for body in bodies)
    radius = 0.25 * min(float(np.ptp(body.positions, axis=0).max()) for body in bends)
    soft = float((1 / young).sum())
    return HERTZ * (mass**2 * soft**2 / (radius * speed)) ** 0.2, float((damping / young).sum() / soft)


class PhyxelImpacts:
    """The impacts of a flock, while its bodies step implicitly."""

    def __init__(self, phyxels: PhyxelBodies) -> None:
        self._phyxels = phyxels
        self._left = self._lasts = self._unseen = 0.0
        """of the impact that is followed: for how long it is at most, how long it lasts, and time till it is looked at
        again [s]"""
        self._short = 0.0
        """implicit steps that follow it [s]; 0 where leap-frog does"""
        self._longest = math.inf
        """implicit step that may be taken [s]: what an impact has left is soon out of reach of Newton's method"""
        self._lying: set[Pair] = set()
        """who has hit whom and not left since"""

    @property
    def followed(self) -> bool:
        """Whether an impact goes on that leap-frog follows."""
        return self._left > 0 and self._short == 0

    def pass_time(self, dt: float) -> None:
        """A step of dt [s] was taken; see whether an impact that is followed is over."""
        if self._left <= 0:
            self._longest *= GROWING
            return
        self._left, self._unseen = self._left - dt, self._unseen - dt
        if self._unseen > 0 and self._left > 0:
            return
        self._unseen = self._lasts / FEWEST
        near = self._near()
        touching = near.pairs(near.gap < PARTED * near.unit)
        coming = near.pairs((near.approach > 0) & (near.gap < BEFORE * self._lasts * near.approach))
        if self._left <= 0 or not touching | (coming - self._lying):
            self._longest = self._short or self._unseen
            self._left = self._lasts = self._unseen = self._short = 0.0
            self._lying = touching
            self._phyxels.model.implicit.forget_contacts()

    def foresee(self, step: float) -> float:
        """How much of an implicit step [s] to take: less if it would lead into an impact. Nothing if that is to be
        followed by leap-frog from now on."""
        step = min(step, self._longest, self._short or math.inf)
        if self._left > 0 or self._phyxels.pushes.load is not None or not self._something_near():
            return step
        near, slow = self._near(), RESTING * LONGEST_IMPLICIT * float(np.linalg.norm(self._phyxels.world.gravity))
        self._lying &= near.pairs(near.gap < PARTED * near.unit)
        hits = (near.approach > slow) & (near.gap < step * near.approach)
        for pair in sorted(near.pairs(hits) - self._lying):
            at = hits & (near.one == pair[0]) & (near.other == pair[1])
            bodies = [self._phyxels.bodies[number] for number in pair if number >= 0]
            lasts, late = duration(bodies, float(near.approach[at].max()))
            if lasts > FEWEST * LONGEST_IMPLICIT:
                continue
            until = float((near.gap[at] / near.approach[at]).min()) - BEFORE * lasts
            if until > 0:
                step = min(step, max(until, lasts / MOST))
            elif self._left <= 0 or lasts < self._lasts:
                self._left, self._lasts = LONGEST * lasts, lasts
                able = lasts < MOST * self._phyxels.model.stable_step()
                self._short = 0.0 if able else max(min(LATE * late, lasts / FEWEST), lasts / MOST)
        self._unseen = self._lasts / FEWEST
        return 0.0 if self.followed else min(step, self._short or math.inf)

    def _something_near(self) -> bool:
        """Whether there is anything to be hit."""
        model = self._phyxels.model
        guests = model.guests is not None and model.guests.there
        return guests or model.colliders.count > 0 or self._phyxels.contact.possible

    def state(self) -> State:
        """What a checkpoint keeps of it."""
        times = [self._left, self._lasts, self._unseen, self._short, self._longest]
        return {"times": np.array(times), "lying": np.array(sorted(self._lying), np.int64).reshape(-1, 2)}

    def restore(self, state: State) -> None:
        """Take over what `state` gave."""
        self._left, self._lasts, self._unseen, self._short, self._longest = state["times"].tolist()
        self._lying = {(one, other) for one, other in state["lying"].tolist()}

    def _near(self) -> NearPlaces:
        """Places where bodies are near colliders, guests and each other."""
        flock, model = self._phyxels, self._phyxels.model
        body, unit = model.matter.body.numpy(), np.array(model.units)
        motions = RigidMotions.of(flock.bodies)
        x = np.concatenate([one.positions for one in flock.bodies])
        v = motions.at(body, x)
        found: list[tuple[NDArray[Any], ...]] = [tuple(np.zeros((4, 0)))]
        if model.colliders.count:
            gap, approach = gaps_to_colliders(model, v / unit[body][:, None])
            which = np.flatnonzero(gap < FAR)
            scale, other = unit[body[which]], np.full(len(which), COLLIDER)
            found.append((body[which], other, scale * gap[which], scale * approach[which]))
        if flock.contact.possible:
            which, touched, gaps, n = flock.contact.gaps()
            against = v[which] - motions.at(touched, x[which])
            found.append((body[which], touched, gaps, -np.einsum("ka,ka->k", n, against)))
        guests = None if model.guests is None else model.guests.contacts
        if guests is not None:
            along = np.einsum("km,kma,ka->k", guests.weights, v[guests.nodes], guests.axes[:, 0])
            which = np.flatnonzero(~guests.tied)
            approach, other = (guests.velocity[:, 0] - along)[which], np.full(len(which), GUEST)
            found.append((body[guests.nodes[which, 0]], other, guests.gap[which], approach))
        one, other, gap, approach = (np.concatenate(parts) for parts in zip(*found, strict=True))
        one, other = one.astype(np.int64), other.astype(np.int64)
        return NearPlaces(one, other, gap, approach, unit[one])


@dataclass(frozen=True)
class RigidMotions:
    """How bodies move but for what bends them, (bodies, 3) each."""

    middle: Floats
    """of mass [m]"""
    velocity: Floats
    """[m/s]"""
    spin: Floats
    """[rad/s]"""

    @classmethod
    def of(cls, bodies: Sequence[Body]) -> RigidMotions:
        """Those that have the momenta of bodies."""
        motions = []
        for body in bodies:
            x, v, m = body.positions, body.velocities, body.masses
            middle, velocity = m @ x / m.sum(), m @ v / m.sum()
            arm = x - middle
            inertia = (m @ (arm**2).sum(axis=1)) * np.eye(3) - np.einsum("n,ni,nj->ij", m, arm, arm)
            spin = np.linalg.lstsq(inertia, np.cross(arm, m[:, None] * (v - velocity)).sum(axis=0), rcond=None)[0]
            motions.append((middle, velocity, spin))
        return cls(*(np.array(parts) for parts in zip(*motions, strict=True)))

    def at(self, body: NDArray[np.integer], x: Floats) -> Floats:
        """Velocities of bodies (k,) at places (k, 3) [m/s], shape (k, 3)."""
        return self.velocity[body] + np.cross(self.spin[body], x - self.middle[body])
