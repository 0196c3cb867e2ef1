"""A factor of the links of surfaces and of what touches (physics 15.16): who is joined changes with what touches."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import bsr_array, csr_array

from phyxel.models.particles.fronts import Fronts
from phyxel.models.particles.touches import Touches

Floats = NDArray[np.float64]
Indices = NDArray[np.int64]


class TouchedFactor:
    """Cholesky's factor of links, and of touches as far as they bear particles that are joined."""

    def __init__(self, X: Floats, joined: csr_array) -> None:
        """Particles at X (n, 3), joined by links where `joined` (n, n, symmetric) has an entry, its rows in order."""
        self._links, self._n = joined, len(X)
        self._linked = _keys(joined)
        self._take(X, joined)

    def _take(self, X: Floats, joined: csr_array) -> None:
        self._fronts = Fronts(X, joined)
        self._known = _keys(joined)
        self._of_links = np.searchsorted(self._known, self._linked)
        self._placed = np.searchsorted(self._known, self._fronts.rows * self._n + self._fronts.columns)

    def joining(self, touches: Touches, x: Floats) -> TouchedFactor:
        """One that knows all particles that some touches join, with particles at x (n, 3)."""
        slot = self._slots(touches.J)
        there = (slot >= 0)[:, :, None] & (slot >= 0)[:, None, :]
        who = touches.J.indices[slot].astype(np.int64)
        pairs = np.broadcast_to(who[:, :, None], there.shape)[there], np.broadcast_to(who[:, None], there.shape)[there]
        joined = csr_array(self._links + csr_array((np.ones(len(pairs[0])), pairs), (self._n, self._n)))
        joined.sort_indices()
        other = object.__new__(TouchedFactor)
        other._links, other._n, other._linked = self._links, self._n, self._linked
        other._take(x, joined)
        return other

    @property
    def multiplications(self) -> float:
        """About as many as a factor takes."""
        return self._fronts.multiplications

    def factor(self, blocks: Floats, touches: Touches, bend: Floats) -> bool:
        """Of the blocks of links (entries, 3, 3), and of touches that resist so (k, 3, 3); whether it is all of it."""
        J = touches.J
        slot = self._slots(J)
        there = (slot >= 0)[:, :, None] & (slot >= 0)[:, None, :]
        entry, known = self._entries(J.indices[slot][:, :, None], J.indices[slot][:, None, :])
        known &= there
        # Only groups all of which are joined, to each other and to the same others: what is left of a touch else need
        # not be positive, and there would be no factor.
        alike = (known[:, :, None, :] == known[:, None, :, :]).all(axis=3)
        contact, one, other = np.nonzero(known & alike)
        a, b = slot[contact, one], slot[contact, other]
        borne = np.zeros((len(self._known), 3, 3))
        borne[self._of_links] = blocks
        np.add.at(borne, entry[contact, one, other], np.swapaxes(J.data[a], 1, 2) @ bend[contact] @ J.data[b])
        self._fronts.factor(borne[self._placed])
        return bool((known == there).all())

    def solve(self, r: Floats) -> Floats:
        """What r (n, 3) leads to, shape (n, 3)."""
        return self._fronts.solve(r)

    def _slots(self, J: bsr_array) -> Indices:
        """Where in J the blocks of linked particles of each touch are, -1 where it has fewer than others, (k, 4)."""
        whose = np.repeat(np.arange(len(J.indptr) - 1), np.diff(J.indptr))
        mine = np.flatnonzero(J.indices < self._n)
        of = whose[mine]
        place = np.arange(len(mine)) - np.searchsorted(of, of)
        slot = np.full((len(J.indptr) - 1, int(place.max(initial=-1)) + 1), -1)
        slot[of, place] = mine
        return slot

    def _entries(self, i: NDArray[np.integer], j: NDArray[np.integer]) -> tuple[Indices, NDArray[np.bool_]]:
        """Where the entries of particles i and j are among all, and which there are."""
        asked = i.astype(np.int64) * self._n + j
        entry = np.minimum(np.searchsorted(self._known, asked), len(self._known) - 1)
        return entry, (self._known[entry] == asked) & (i < self._n) & (j < self._n)


def _keys(joined: csr_array) -> Indices:
    """A number of each entry, in order."""
    n = joined.shape[0]
    return np.repeat(np.arange(n, dtype=np.int64), np.diff(joined.indptr)) * n + joined.indices
