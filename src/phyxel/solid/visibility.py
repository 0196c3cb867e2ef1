"""Visibility: whether the straight way between two places of a solid stays inside it.

Nodes of two legs may be near each other through the air; they must not feel each other (physics of G04 §4.2.2).
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

SHORTEST_STEP = 1 / 24
"""of the segment; gaps below two steps may be overlooked"""
GRAZING = 0.1
"""How far a segment may pass outside, over its length: along a hollow surface it must."""
STEEP = 0.5
"""Rise of the distance along the segment with which it leaves for good."""


def stays_inside(
    distance: Callable[[Floats], Floats], one: NDArray[np.floating], other: NDArray[np.floating]
) -> NDArray[np.bool_]:
    """Which of the segments between (N, 3) and (N, 3) stay in the solid with this signed distance, shape (N,).

    Both ends look as far as the surface is away from them; what lies between is walked in steps of that distance,
    which cannot jump over a gap.
    """
    one, other = _ordered(np.asarray(one, np.float64).reshape(-1, 3), np.asarray(other, np.float64).reshape(-1, 3))
    way = other - one
    length = np.maximum(np.linalg.norm(way, axis=1), 1e-300)
    depth, end = distance(one), distance(other)
    seen = np.ones(len(one), bool)
    step = SHORTEST_STEP * length
    at = np.maximum(-depth, step)
    last = length - np.maximum(-end, step)
    walking = np.flatnonzero(at < last)
    while len(walking):
        i = walking
        d = distance(one[i] + (at[i] / length[i])[:, None] * way[i])
        rise = (d - depth[i]) / np.maximum(-depth[i], step[i])
        seen[i] = (d <= GRAZING * length[i]) & ~((d > 0.2 * step[i]) & (rise > STEEP))
        depth[i] = d
        at[i] += np.maximum(np.abs(d), step[i])
        walking = i[seen[i] & (at[i] < last[i])]
    return seen


def _ordered(one: Floats, other: Floats) -> tuple[Floats, Floats]:
    """The ends of each segment in an order of their own, so that both ways give the same answer."""
    difference = one - other
    first = np.argmax(difference != 0, axis=1)
    swap = np.take_along_axis(difference, first[:, None], axis=1) > 0
    return np.where(swap, other, one), np.where(swap, one, other)
