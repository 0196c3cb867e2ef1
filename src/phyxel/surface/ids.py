"""Numbers by which surfels are known from one moment to the next.

The points a body came with are counted from 0, in their order, and a melt counts on where it adds some. Discs that
cracks make are found anew whenever a crack grows: their numbers are taken from what they are parts of, so that each
piece of a body, and a run that is gone on with, finds the same without a book of them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Numbers = NDArray[np.int64]

MADE_BY_CRACKS = 1 << 30
"""The least number of a disc that a crack made; all are less than twice as large, so that 32 bits hold them."""
MIXERS = np.array([0x9E3779B97F4A7C15, 0xC2B2AE3D27D4EB4F], np.uint64)
"""Odd numbers without a pattern."""


@dataclass(frozen=True)
class Ids:
    """Of m surfels, each number once."""

    numbers: Numbers
    """shape (m,)"""
    given: int
    """how many have been counted out so far"""

    @staticmethod
    def counted(numbers: Numbers) -> Ids:
        """Of what a body came with."""
        return Ids(numbers, int(numbers.max(initial=-1)) + 1)

    def some(self, kept: NDArray[np.bool_]) -> Ids:
        """Of some of them."""
        return Ids(self.numbers[kept], self.given)

    def after(self, row: NDArray[np.integer]) -> Ids:
        """Of surfels each of which was in a row (k,) of these, or in none, −1: that is new."""
        new = row < 0
        numbers = self.given + np.cumsum(new) - 1
        numbers[~new] = self.numbers[row[~new]]
        return Ids(numbers, self.given + int(new.sum()))

    def state(self) -> dict[str, NDArray[Any]]:
        """What a checkpoint keeps."""
        return {"ids": self.numbers, "given": np.array(self.given)}

    @staticmethod
    def restored(state: dict[str, NDArray[Any]]) -> Ids:
        """From what `state` gave."""
        return Ids(state["ids"], int(state["given"]))


def ids_of_parts(owner: Numbers) -> Numbers:
    """Numbers of discs that cracks made, by what each is a part of and how many parts of it come before, shape (k,)."""
    cells = np.stack([owner, _rank(owner)], axis=1).view(np.uint64)
    mixed = (cells * MIXERS).sum(axis=1, dtype=np.uint64)
    mixed = (mixed ^ (mixed >> np.uint64(29))) * MIXERS[1]
    numbers = (mixed >> np.uint64(34)).astype(np.int64)
    # One in a hundred thousand finds its number taken: it has the next.
    while len(taken := np.flatnonzero(_rank(numbers))):
        numbers[taken] = (numbers[taken] + 1) % MADE_BY_CRACKS
    return MADE_BY_CRACKS + numbers


def _rank(values: Numbers) -> Numbers:
    """How many rows before each have the same value, shape (k,)."""
    order = np.argsort(values, kind="stable")
    ordered = values[order]
    rank = np.empty_like(values)
    rank[order] = np.arange(len(values)) - np.searchsorted(ordered, ordered)
    return rank
