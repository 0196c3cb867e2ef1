"""What would still pass moves evenly for a step (physics 15.16)."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components

from phyxel.meeting.near import StencilList

Floats = NDArray[np.float64]

MOST_ZONES = 30
"""How often what moves evenly may grow."""


def move_evenly(
    hits: Callable[[Floats], StencilList], x: Floats, end: Floats, v: Floats, mass: Floats, dt: float
) -> None:
    """What of surfaces would still pass on its way from x to `end` (n, 3), as `hits` says of ends, moves evenly for a
    step of dt [s], and what that would meet with it (Bridson et al. 2002): nothing passes, and momentum stays. Ends and
    velocities (n, 3) are changed; masses (n,) [kg] are infinite where it is held."""
    n, ends = len(x), np.zeros((0, 2), np.int64)
    for _ in range(MOST_ZONES):
        found = hits(end).index
        found = found[(found < n).all(axis=1)]
        if not len(found):
            return
        ends = np.concatenate([ends, *(found[:, [0, k]] for k in (1, 2, 3))])
        joined = csr_array((np.ones(len(ends)), (ends[:, 0], ends[:, 1])), (n, n))
        _, zone = connected_components(joined, directed=False)
        for one in np.unique(zone[np.unique(ends)]):
            own = np.flatnonzero(zone == one)
            held = np.isinf(mass[own])
            weight = held.astype(float) if held.any() else mass[own]
            v[own] = np.where(held[:, None], v[own], weight @ v[own] / weight.sum())
            end[own] = x[own] + dt * v[own]
