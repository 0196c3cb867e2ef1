"""All places where bodies touch in a step, one behind the other (physics 15.12)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, vstack
from scipy.sparse.csgraph import connected_components

from phyxel.meeting.contacts import COLLIDER, BodyContacts
from phyxel.meeting.ties import TiedPlaces
from phyxel.mls.shape_values import entries_of

Floats = NDArray[np.float64]
Indices = NDArray[np.int64]


@dataclass(frozen=True)
class Share:
    """The contacts that a body has a share in."""

    body: int
    sign: Floats
    """+1 where it is the one, −1 where it is the other, shape (k,)"""
    rows: csr_array
    """φ of the body there, shape (k, n)"""
    which: Indices
    """their numbers, shape (k,)"""


@dataclass(frozen=True)
class ContactTable:
    """k places where bodies touch each other or a collider, as `BodyContacts` has them of two bodies."""

    one: Indices
    """number of the one body, shape (k,)"""
    other: Indices
    """of the other, or COLLIDER, shape (k,)"""
    rows: tuple[csr_array, csr_array]
    """φ of the two among the coefficients of all bodies, (k, N) each; nothing of a collider"""
    place: Floats
    axes: Floats
    gap: Floats
    wall: Floats
    friction: Floats
    restitution: Floats
    key: Indices
    off: Floats
    """how far ties are apart when the step begins [m]; 0 of contacts, shape (k, 3)"""
    share: Floats
    """what a tie stands for, over their mean; 0 of contacts, shape (k,)"""

    def __len__(self) -> int:
        return len(self.gap)

    @staticmethod
    def of(contacts: Sequence[BodyContacts], first: Indices) -> ContactTable:
        """Of contacts of two bodies each; the coefficients of body b are those from first[b] on."""

        def joined(name: str, *width: int) -> Floats:
            return np.concatenate([np.zeros((0, *width)), *(getattr(one, name) for one in contacts)])

        count = [len(one.gap) for one in contacts]
        ends = np.array([(one.one, one.other) for one in contacts], np.int64).reshape(-1, 2)
        ties = [
            (one.off, one.share) if isinstance(one, TiedPlaces) else (np.zeros((k, 3)), np.zeros(k))
            for one, k in zip(contacts, count, strict=True)
        ]
        one, other = np.repeat(ends, count, axis=0).T
        return ContactTable(
            one, other, (_among_all(contacts, 0, first), _among_all(contacts, 1, first)),
            joined("place", 3), joined("axes", 3, 3), joined("gap"), joined("wall", 3), joined("friction"),
            joined("restitution"), joined("key", 4).astype(np.int64),
            np.concatenate([np.zeros((0, 3)), *(off for off, _ in ties)]),
            np.concatenate([np.zeros(0), *(share for _, share in ties)]),
        )  # fmt: skip

    @staticmethod
    def joined(tables: Sequence[ContactTable]) -> ContactTable:
        """Several, one behind the other."""
        if len(tables) == 1:
            return tables[0]
        rows = [csr_array(vstack([one.rows[side] for one in tables], format="csr")) for side in (0, 1)]
        parts = {name: np.concatenate([getattr(one, name) for one in tables]) for name in _NAMES}
        return ContactTable(rows=(rows[0], rows[1]), **parts)

    def part(self, which: Indices) -> ContactTable:
        """Some of them."""
        if len(which) == len(self):
            return self
        rows = csr_array(self.rows[0][which]), csr_array(self.rows[1][which])
        return ContactTable(rows=rows, **{name: getattr(self, name)[which] for name in _NAMES})

    @property
    def tied(self) -> NDArray[np.bool_]:
        return self.share > 0

    def of_bodies(self, values: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
        """What of some values of n bodies the two have, shape (k,) each; of a collider that of the body again."""
        return values[self.one], values[np.where(self.other == COLLIDER, self.one, self.other)]

    def least(self, sizes: Floats) -> Floats:
        """The smaller of the sizes of two bodies, of n, shape (k,)."""
        return np.minimum(*self.of_bodies(sizes))

    def apart(self, field: Floats, wall: Floats) -> Floats:
        """How a field of coefficients of all bodies (N, 3) moves the places of the one off those of the other, or off
        colliders, whose go as `wall` (k, 3); shape (k, 3)."""
        return np.asarray((self.rows[0] @ field - wall) - self.rows[1] @ field)

    @property
    def bodies(self) -> list[int]:
        """Numbers of those that have a share in them."""
        return [body for body in np.unique([self.one, self.other]).tolist() if body != COLLIDER]

    def islands(self, count: int) -> Iterator[Indices]:
        """The numbers of contacts that can have to do with each other, of so many bodies."""
        if not len(self):
            return
        ends = self.of_bodies(np.arange(count))
        _, label = connected_components(csr_array((np.ones(len(self)), ends), (count, count)), directed=False)
        own = label[self.one]
        for island in np.unique(own):
            yield np.flatnonzero(own == island)

    def shares(self, first: Indices, asked: NDArray[np.bool_]) -> Iterator[Share]:
        """Those of each body that is asked for, (n,), by its number."""
        which = np.concatenate([np.arange(len(self))] * 2)
        body = np.concatenate([self.one, self.other])
        order = np.lexsort((which, body))
        order = order[(body[order] != COLLIDER) & asked[body[order]]]
        starts = np.flatnonzero(np.diff(body[order], prepend=-1))
        for ends in np.split(order, starts[1:]) if len(order) else ():
            number, at = int(body[ends[0]]), which[ends]
            second = ends >= len(self)
            sides = [_rows_of(self.rows[k], at[second == k], first[number : number + 2]) for k in (0, 1)]
            rows = sides[0] if not second.any() else sides[1] if second.all() else _merged(sides, second)
            yield Share(number, np.where(second, -1.0, 1.0), rows, at)


_NAMES = [one.name for one in fields(ContactTable) if one.name != "rows"]


def _among_all(contacts: Sequence[BodyContacts], side: int, first: Indices) -> csr_array:
    """φ of one side of contacts among the coefficients of all bodies, (k, N)."""
    data, index, counts = [np.zeros(0)], [np.zeros(0, np.int64)], [np.zeros(0, np.int64)]
    for contact in contacts:
        rows = contact.rows[side]
        if rows is None:
            counts.append(np.zeros(len(contact.gap), np.int64))
            continue
        data.append(rows.data)
        index.append(rows.indices + first[contact.one if side == 0 else contact.other])
        counts.append(np.diff(rows.indptr))
    start = np.concatenate([[0], np.cumsum(np.concatenate(counts))])
    return csr_array((np.concatenate(data), np.concatenate(index), start), (len(start) - 1, int(first[-1])))


def _rows_of(rows: csr_array, which: Indices, span: Indices) -> csr_array:
    """Some rows, of one body, among its own coefficients only, which are those in a span of all."""
    start, entries = entries_of(rows.indptr, which)
    return csr_array((rows.data[entries], rows.indices[entries] - span[0], start), (len(which), int(span[1] - span[0])))


def _merged(sides: Sequence[csr_array], second: NDArray[np.bool_]) -> csr_array:
    """Rows of two matrices by turns, as `second` says where those of the second one go."""
    first = int((~second).sum())
    row = np.where(second, first + np.cumsum(second), np.cumsum(~second)) - 1
    return csr_array(csr_array(vstack(sides, format="csr"))[row])
