"""What touches of surfaces pressed and rubbed with in the step before (physics 15.16)."""

from __future__ import annotations

import zlib
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from phyxel.meeting.layers import Places
from phyxel.state import State

Floats = NDArray[np.float64]
Keys = NDArray[np.uint64]

MIXED = np.uint64(0x9E3779B97F4A7C15)
"""An odd number without a pattern (2⁶⁴ over the golden ratio): products with it tell keys apart."""


def numbers_of(name: str, count: int) -> Keys:
    """Numbers of the points of a body, whoever else is there, shape (count,)."""
    return (np.uint64(zlib.crc32(name.encode())) << np.uint64(32)) + np.arange(count, dtype=np.uint64)


def keys_of(places: Places, numbers: Keys, guest: str) -> Keys:
    """Of places on particles with such numbers (n,), borne by a guest of that name; (k,)."""
    key = np.full(len(places), zlib.crc32(guest.encode()), np.uint64)
    for slot in range(places.index.shape[1]):
        held = places.weight[:, slot] != 0
        key = _mixed(key + np.where(held, numbers[places.index[:, slot]], np.uint64(slot)))
    return _mixed(key + np.broadcast_to(places.number, len(places)).astype(np.uint64))


def _mixed(key: Keys) -> Keys:
    key = (key ^ (key >> np.uint64(29))) * MIXED
    return np.asarray(key ^ (key >> np.uint64(32)))


class KeptForces:
    """Forces of touches by their keys."""

    def __init__(self) -> None:
        self.keep(np.zeros(0, np.uint64), np.zeros((0, 3)))

    def keep(self, key: Keys, force: Floats) -> None:
        """Touches (k,) bore with such forces [N], (k, 3)."""
        acts = np.flatnonzero(force.any(axis=1))
        order = acts[np.argsort(key[acts], kind="stable")]
        self._key, self._force = key[order], force[order]

    def recalled(self, key: Keys) -> Floats:
        """Forces [N] of touches with these keys (k,), 0 of new ones, shape (k, 3)."""
        found = np.zeros((len(key), 3))
        if len(self._key):
            place = np.minimum(np.searchsorted(self._key, key), len(self._key) - 1)
            same = self._key[place] == key
            found[same] = self._force[place[same]]
        return found

    def state(self) -> State:
        return {"key": self._key, "force": self._force}

    def restore(self, state: State) -> None:
        self._key, self._force = state["key"], state["force"]


def joined(keys: Sequence[Keys]) -> Keys:
    """Of several places one after the other."""
    return np.concatenate([np.zeros(0, np.uint64), *keys])
