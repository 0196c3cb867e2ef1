"""The sides of rigid bodies in all contacts of a step, as one (physics 15.12): how bodies answer, and are pushed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from phyxel.meeting.answer_blocks import WAYS
from phyxel.meeting.party import Party
from phyxel.meeting.table import ContactTable
from phyxel.models.protocol import TurnsAsOne
from phyxel.rotation import cross

Floats = NDArray[np.float64]
Indices = NDArray[np.int64]


class StiffSides:
    """m sides of contacts that are rigid bodies', n bodies."""

    def __init__(self, contacts: ContactTable, parties: Sequence[Party], stiff: NDArray[np.bool_], dt: float) -> None:
        """Of those of the parties that are stiff, after a step of dt [s]."""
        which = [np.flatnonzero((ends >= 0) & stiff[ends]) for ends in (contacts.one, contacts.other)]
        body = np.concatenate([contacts.one[which[0]], contacts.other[which[1]]])
        self.contact = np.concatenate(which)
        """whose side each is, shape (m,)"""
        self.sign = np.repeat([1.0, -1.0], [len(own) for own in which])
        """+1 where it is the one, −1 where it is the other, shape (m,)"""
        self.numbers, self.body = np.unique(body, return_inverse=True)
        """of the bodies among all, shape (n,), and of each side among these, shape (m,)"""
        self._parties = [parties[number] for number in self.numbers.tolist()]
        x = np.array([one.x for one in self._parties]).reshape(-1, 4, 3)
        self._phi = phi = np.concatenate([_of_rows(rows, own) for rows, own in zip(contacts.rows, which, strict=True)])
        self._middle, self._unit = x[:, 0], np.array([one.unit for one in self._parties])
        beside = x[:, 1:] - x[:, :1]
        self._arm = np.asarray((phi[:, None, 1:] @ beside[self.body])[:, 0])
        """of each place about the first coefficient of its body, where that is at the end of the step, shape (m, 3)"""
        roots = [_model(one).root(dt) for one in self._parties]
        self.ways = [root.shape[1] for root in roots]
        """how many each body has to answer"""
        self._roots = np.zeros((len(roots), 6, WAYS))
        for own, root in zip(self._roots, roots, strict=True):
            own[:, : root.shape[1]] = root

    def answers(self, axes: Floats) -> Floats:
        """How answers of their bodies move contacts along their axes (k, 3, 3), shape (m, 3, 6)."""
        roots = self._roots.reshape(-1, 2, 3, WAYS) / np.sqrt(self._unit)[:, None, None, None]
        roots[:, 1] /= self._unit[:, None, None]
        own, a = roots[self.body], self._arm[:, :, None]
        x, y, z = (own[:, 1, k] for k in range(3))
        turning = np.stack([y * a[:, 2] - z * a[:, 1], z * a[:, 0] - x * a[:, 2], x * a[:, 1] - y * a[:, 0]], axis=1)
        return np.asarray((self.sign[:, None, None] * axes[self.contact]) @ (own[:, 0] + turning))

    def push(self, places: Floats, impulses: Floats, dt: float) -> None:
        """Let impulses (k, 3) [N s] at contacts that were at `places` (k, 3) when the step of dt [s] began act within
        it."""
        p = self.sign[:, None] * impulses[self.contact]
        about = places[self.contact] - self._middle[self.body]
        sums = _sums(self.body, np.concatenate([p, cross(self._arm, p), cross(about, p)], axis=1), len(self._parties))
        for one, unit, total in zip(self._parties, self._unit, sums, strict=True):
            if total.any():
                push, turn, spin = total.reshape(3, 3)
                _model(one).kick(push / unit**2, turn / unit**3, spin / unit**3, one.before, dt)

    def apart(self, contacts: int) -> Floats:
        """How far their bodies have moved the places of so many contacts apart in the step [m], shape (k, 3)."""
        way = np.array([one.unit * (one.model.u - one.before) for one in self._parties]).reshape(-1, 4, 3)
        gone = self.sign[:, None] * (self._phi[:, None] @ way[self.body])[:, 0]
        return _sums(self.contact, gone, contacts)


def _model(party: Party) -> TurnsAsOne:
    return cast(TurnsAsOne, party.model)


def _of_rows(rows: csr_array, which: Indices) -> Floats:
    """φ of the four coefficients of rigid bodies in some rows, (m, 4)."""
    return np.asarray(rows.data[rows.indptr[which][:, None] + np.arange(4)])


def _sums(group: Indices, values: Floats, count: int) -> Floats:
    """Of values (m, w) in each of so many groups, shape (count, w)."""
    width = values.shape[1]
    places = group[:, None] * width + np.arange(width)
    return np.asarray(np.bincount(places.ravel(), values.ravel(), count * width), np.float64).reshape(count, width)
