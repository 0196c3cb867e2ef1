"""Places where bodies are tied to each other (physics 15.15): contacts that pull as well and never slip."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from scipy.spatial import cKDTree

from phyxel.meeting.contacts import BodyContacts, Indices
from phyxel.meeting.party import SeenBody

Floats = NDArray[np.float64]

BESIDE = 1.5
"""Spacings around a tie within which its bodies do not touch each other."""


@dataclass(frozen=True)
class TiedPlaces(BodyContacts):
    """k places where two bodies are tied; their friction has no limit."""

    off: Floats
    """how far one of the two is from the other when the step begins [m], shape (k, 3)"""
    share: Floats
    """what each of them stands for, over their mean, shape (k,)"""

    def led(self, parties: Sequence[SeenBody]) -> TiedPlaces:
        """The same where a step has led: places are halfway between the two."""
        (one, other), (a, b) = self._ends(parties), self.rows
        assert b is not None
        return replace(self, place=0.5 * (a @ one.x + b @ other.x))

    def _ends(self, parties: Sequence[SeenBody]) -> tuple[SeenBody, SeenBody]:
        return parties[self.one], parties[self.other]

    def clear_of(self, found: BodyContacts, parties: Sequence[SeenBody]) -> BodyContacts | None:
        """What is left of contacts of the same two bodies: they do not touch where they are tied."""
        if {found.one, found.other} != {self.one, self.other} or not len(self.gap):
            return found
        reach = BESIDE * max(end.unit for end in self._ends(parties))
        return found.part(np.flatnonzero(cKDTree(self.place).query(found.place)[0] > reach))


def tied(
    parties: Sequence[SeenBody], a: int, b: int, rows: tuple[csr_array, csr_array], area: Floats, key: Indices
) -> TiedPlaces:
    """Ties of two bodies by their numbers, with φ of both there (k, n), areas that they stand for (k,), and what tells
    them from others (k, 2)."""
    one, other = parties[a], parties[b]
    x, y = rows[0] @ one.x, rows[1] @ other.x
    none, count = np.zeros(len(area)), len(area)
    return TiedPlaces(
        a, b, rows, 0.5 * (x + y), np.tile(np.eye(3), (count, 1, 1)), x[:, 0] - y[:, 0], np.zeros((count, 3)),
        np.full(count, np.inf), none, np.column_stack([np.zeros((count, 2), np.int64), key]), x - y,
        area / area.mean(),
    )  # fmt: skip
