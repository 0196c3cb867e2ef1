"""Contacts of phyxels with their guests in an interval (physics 15.10, 15.14)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, vstack

from phyxel.body import Body
from phyxel.meeting.contacts import BodyContacts
from phyxel.meeting.meeting import Meeting
from phyxel.meeting.party import Party, SeenBody
from phyxel.meeting.ties import TiedPlaces
from phyxel.models.coulomb import from_axes
from phyxel.models.phyxel.contact.guests import Booked, GuestContacts
from phyxel.movers.flock_guests import FlockGuest
from phyxel.movers.sheet_guests import SheetGuest
from phyxel.rotation import axes_about

Floats = NDArray[np.float64]
Indices = NDArray[np.int64]


NOBODY = -1
"""The guest of phyxels that are tied to each other."""


class GuestTouch:
    """Contacts of phyxel bodies with guests, in an interval. Impulses are those on the phyxels."""

    def __init__(
        self,
        guests: Sequence[Party | FlockGuest | SheetGuest],
        meeting: Meeting | None,
        phyxels: Sequence[Body],
        first: dict[int, int],
        found: Sequence[BodyContacts],
        seen: Sequence[SeenBody],
    ) -> None:
        """Among bodies, `seen` so, of which the first are `guests`, those of a meeting before others, and the rest,
        `phyxels`, have their `first` node so far on among those of the phyxel model."""
        self._guests, self._meeting, self.phyxels, self.seen = guests, meeting, phyxels, seen
        self.ties = [one for one in found if isinstance(one, TiedPlaces)]
        sides = [self._sides(one, len(guests), first) for one in found]
        self._guest = np.concatenate([np.full(rows.shape[0], guest) for guest, rows, _, _ in sides])
        self._rows = [rows for _, rows, _, _ in sides]
        width = max(nodes.shape[1] for _, _, nodes, _ in sides)
        self._nodes = np.concatenate([_wider(nodes, width, edge=True) for _, _, nodes, _ in sides])
        self._weights = np.concatenate([_wider(weights, width, edge=False) for _, _, _, weights in sides])
        outward = [one.axes[:, 0] * (1 if one.other == side[0] else -1) for one, side in zip(found, sides, strict=True)]
        self.axes = axes_about(np.concatenate(outward))
        self.place, self.gap, self.friction, self.restitution, self.key = (
            np.concatenate([getattr(one, name) for one in found])
            for name in ("place", "gap", "friction", "restitution", "key")
        )
        self.tied, off = np.isinf(self.friction), np.zeros_like(self.place)
        off[self.tied] = np.concatenate([np.zeros((0, 3)), *(self._off(one) for one in self.ties)])
        self._off_along = (self.axes @ off[:, :, None])[:, :, 0]
        self.gap[self.tied] = self._off_along[self.tied, 0]
        self.place = self.place + 0.5 * off  # from halfway to where phyxels get their impulses

    def is_phyxel(self, number: int) -> bool:
        """Whether a body is one of the phyxels'."""
        return number >= len(self._guests)

    def _off(self, ties: TiedPlaces) -> Floats:
        """How far the phyxels' places are from the guest's [m], shape (k, 3)."""
        return ties.off if self.is_phyxel(ties.one) else -ties.off

    @staticmethod
    def _sides(one: BodyContacts, parties: int, first: dict[int, int]) -> tuple[int, csr_array, Indices, Floats]:
        """The guest of contacts and φ there, and nodes and weights of the phyxels' side. Of phyxels that are tied to
        each other both sides are: what one gets the other loses, and there is no guest."""
        if min(one.one, one.other) >= parties:
            sides = [(first[body], rows) for body, rows in zip((one.one, one.other), one.rows, strict=True)]
            shape = (len(one.gap), -1)
            nodes = [start + rows.indices.reshape(shape).astype(np.int64) for start, rows in sides if rows is not None]
            weights = [rows.data.reshape(shape) for _, rows in sides if rows is not None]
            none = csr_array((len(one.gap), 1))
            return NOBODY, none, np.hstack(nodes), np.hstack([weights[0], -weights[1]])
        mine, guest = (0, one.other) if one.one >= parties else (1, one.one)
        rows = one.rows[mine]
        assert rows is not None
        body = one.one if mine == 0 else one.other
        shape = (len(one.gap), -1)
        other = one.rows[1 - mine]
        assert other is not None
        return guest, other, first[body] + rows.indices.reshape(shape).astype(np.int64), rows.data.reshape(shape)

    def _each_guest(self) -> list[tuple[int, csr_array, Indices]]:
        """Each guest's number, φ at its contacts, and which these are."""
        starts = np.cumsum([0, *(rows.shape[0] for rows in self._rows)])
        result = []
        for guest in np.unique(self._guest[self._guest != NOBODY]).tolist():
            mine = [k for k, start in enumerate(starts[:-1]) if self._guest[start] == guest]
            which = np.concatenate([np.arange(starts[k], starts[k + 1]) for k in mine])
            result.append((guest, csr_array(vstack([self._rows[k] for k in mine])), which))
        return result

    def push(self, impulses: Floats, dt: float) -> None:
        """Give guests impulses (k, 3) [N s] within their step of dt [s]."""
        for guest, rows, which in self._each_guest():
            self._guests[guest].push(rows, self.place[which], impulses[which], dt)

    def guests(self, forces: Floats, slip: Floats, resting: float, dt: float) -> GuestContacts:
        """What phyxels meet in an interval of dt [s], where forces (k, 3) [N] are foreseen and contacts have slipped
        (k, 3) [m] since they stuck; up to `resting` [m/s] nothing bounces."""
        velocity = np.zeros((len(self.gap), 3))
        for guest, rows, which in self._each_guest():
            velocity[which] = self._guests[guest].travelled(rows) / dt
        foreseen, slipped = ((self.axes @ part[:, :, None])[:, :, 0] for part in (forces, slip))
        slipped = np.where(self.tied[:, None], self._off_along, slipped)
        return GuestContacts(
            nodes=self._nodes, weights=self._weights, axes=self.axes, gap=self.gap, friction=self.friction,
            restitution=self.restitution, velocity=(self.axes @ velocity[:, :, None])[:, :, 0],
            response=self._response(dt), foreseen=foreseen, slip=slipped[:, 1:], pressing=foreseen[:, 0] > 0,
            resting=resting,
        )  # fmt: skip

    def _response(self, dt: float) -> Floats:
        """What impulses at all contacts do to the guests' velocities there, along the axes, shape (3k, 3k)."""
        every, k = self._each_guest(), len(self.gap)
        parties = [one for one in every if isinstance(self._guests[one[0]], Party)]
        W = np.zeros((3 * k, 3 * k)) if self._meeting is None else self._meeting.response(parties, self.axes, dt)
        for number, rows, which in every:
            guest, at = self._guests[number], (3 * which[:, None] + np.arange(3)).reshape(-1)
            if not isinstance(guest, Party):
                W[np.ix_(at, at)] = guest.response(rows, self.axes[which])
        return W

    def forces(self, booked: Booked, dt: float) -> Floats:
        """What contacts did, over the interval [N], shape (k, 3)."""
        return from_axes(self.axes, booked.impulses) / dt

    def slips(self, booked: Booked) -> Floats:
        """How far they have slipped since they stuck [m], shape (k, 3)."""
        return from_axes(self.axes, np.column_stack([np.zeros(len(self.gap)), booked.slip]))

    def settle(self, booked: Booked, foreseen: Floats, dt: float) -> None:
        """Give guests what phyxels got less than was foreseen, and the moments of where contacts went on to."""
        impulses = dt * foreseen - from_axes(self.axes, booked.impulses)
        asked: list[tuple[int, csr_array, Floats, Floats]] = []
        for guest, rows, which in self._each_guest():
            one, there = self._guests[guest], self.place[which]
            arm, turn = _couples(-booked.moments[which], one.unit)
            places, pushes = [there, there + arm, there - arm], [impulses[which], turn, -turn]
            taken = csr_array(vstack([rows] * 3)), np.concatenate(places), np.concatenate(pushes)
            if isinstance(one, Party):
                asked.append((guest, *taken))
            else:
                one.push(*taken, dt)
        if self._meeting is not None:
            self._meeting.bear(asked, dt)


def _couples(moments: Floats, size: float) -> tuple[Floats, Floats]:
    """Impulses that turn by moments (k, 3) [N m s]: one at an arm of a size [m] and its opposite at the opposite arm;
    arms and the first impulses, (k, 3) each."""
    arm = np.cross(moments, np.eye(3)[np.argmin(np.abs(moments), axis=1)])
    length = np.linalg.norm(arm, axis=1, keepdims=True)
    arm = np.where(length > 0, size * arm / np.maximum(length, 1e-300), [size, 0.0, 0.0])
    return arm, np.cross(moments, arm) / (2 * size**2)


def _wider(array: NDArray[Any], width: int, edge: bool) -> NDArray[Any]:
    """With more columns: the first again, or zeros."""
    more = ((0, 0), (0, width - array.shape[1]))
    return np.pad(array, more, mode="edge") if edge else np.pad(array, more)
