"""What contacts of bodies were like in the step before (physics 15.8, 15.13)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from phyxel.meeting.stiff import StiffOutlines
from phyxel.state import State

Floats = NDArray[np.float64]
Indices = NDArray[np.int64]


class ContactMemory:
    """What contacts were like in the last step, by their keys: forces, and how far they slipped since they stuck."""

    def __init__(self) -> None:
        self.outlines: StiffOutlines | None = None
        """of the rigid bodies that were near each other"""
        self.clear()

    def clear(self) -> None:
        """Bodies have other numbers now."""
        self.impacts: dict[tuple[int, int], tuple[float, float]] = {}
        """how long an impact of two bodies lasts, and how much longer it is followed [s]"""
        self._key = np.zeros((0, 4), np.int64)
        self._force, self._slip, self._before = (np.zeros((0, 3)) for _ in range(3))

    def recalled(self, key: Indices) -> tuple[Floats, Floats]:
        """Force [N] and slip [m] of contacts with these keys (k, 4), 0 of new ones; shape (k, 3) each."""
        force, slip, _ = self._all_of(key)
        return force, slip

    def steady(self, key: Indices) -> Floats:
        """As much of the force [N] of contacts with these keys (k, 4) as was there in the step before, too: that can be
        counted on. Shape (k, 3)."""
        force, _, before = self._all_of(key)
        same = np.einsum("ka,ka->k", force, before) / np.maximum(np.square(force).sum(axis=1), 1e-300)
        return np.asarray(np.clip(same, 0.0, 1.0)[:, None] * force)

    def _all_of(self, key: Indices) -> list[Floats]:
        """Forces, slips, and forces of the step before, of contacts with these keys (k, 4)."""
        found = [np.zeros((len(key), 3)) for _ in range(3)]
        if not len(key) or not len(self._key):
            return found
        each = _numbered(np.concatenate([self._key, key]))
        known, asked = np.split(each, [len(self._key)])
        order = np.argsort(known)
        rows = order[np.minimum(np.searchsorted(known, asked, sorter=order), len(order) - 1)]
        old = known[rows] == asked
        for one, kept in zip(found, (self._force, self._slip, self._before), strict=True):
            one[old] = kept[rows[old]]
        return found

    def keep(self, key: Indices, force: Floats, slip: Floats) -> None:
        """These are the contacts of this step."""
        before = self.recalled(key)[0]
        self._key, self._force, self._slip, self._before = key, force, slip, before

    def forget(self) -> None:
        """Nothing touches anything."""
        self.keep(np.zeros((0, 4), np.int64), np.zeros((0, 3)), np.zeros((0, 3)))

    def pass_time(self, dt: float) -> None:
        """So much time [s] has passed."""
        self.impacts = {pair: (lasts, left - dt) for pair, (lasts, left) in self.impacts.items() if left > dt}

    def state(self) -> State:
        impacts = np.array([(*pair, *times) for pair, times in self.impacts.items()], np.float64).reshape(-1, 4)
        kept = {"key": self._key, "force": self._force, "slip": self._slip, "before": self._before}
        return kept | {"impacts": impacts}

    def restore(self, state: State) -> None:
        self._key, self._force, self._slip, self._before = (state[x] for x in ("key", "force", "slip", "before"))
        self.impacts = {(int(a), int(b)): (lasts, left) for a, b, lasts, left in state["impacts"].tolist()}


def _numbered(key: Indices) -> Indices:
    """One number for each of keys (k, 4), the same for the same, shape (k,)."""
    number = np.zeros(len(key), np.int64)
    for part in key.T:
        number = number * (part.max() - part.min() + 1) + part - part.min()
    return number
