"""Which nodes a point depends on (physics 9.6): those that are seen from its home, the nearest node that sees the
point.

Pairs of nodes are far fewer than pairs of a point and a node, and inside the solid there is less in the way than along
its skin. A bear's legs, an ear and the head, two lips: near in space, and not for each other.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from phyxel.mls.neighbours import nearest

Sees = Callable[[NDArray[np.floating], NDArray[np.floating]], NDArray[np.bool_]]
"""Whether the straight way between places (n, 3) and (n, 3) stays inside the solid, (n,)."""

HOMES = 4
"""Nearest nodes that are asked whether they see a point."""


def seen_pairs(
    points: NDArray[np.floating],
    nodes: NDArray[np.floating],
    owner: NDArray[np.integer],
    index: NDArray[np.integer],
    sees: Sees,
    asked: int = HOMES,
) -> NDArray[np.bool_]:
    """Which of the pairs of points (m, 3) and nodes (n, 3), given by their indices (p,) and (p,), belong together.
    `asked` is as for `homes`."""
    home = homes(points, nodes, sees, asked)
    pairs, which = np.unique(home[owner] * len(nodes) + index, return_inverse=True)
    first, second = np.divmod(pairs, len(nodes))
    seen = first == second
    apart = ~seen
    seen[apart] = sees(nodes[first[apart]], nodes[second[apart]])
    return seen[which.reshape(-1)]


def homes(
    points: NDArray[np.floating], nodes: NDArray[np.floating], sees: Sees, asked: int = HOMES
) -> NDArray[np.int64]:
    """The nearest node that sees each point, or the nearest at all where none of the first that are `asked` does,
    (m,)."""
    first = min(HOMES, asked, len(nodes))
    _, candidates = nearest(points, nodes, first)
    home = candidates[:, 0].copy()
    lost = np.arange(len(points))
    for candidate in candidates.T:
        found = sees(points[lost], nodes[candidate[lost]])
        home[lost[found]] = candidate[lost[found]]
        lost = lost[~found]
        if len(lost) == 0:
            return home
    if asked > first:
        # Few are left: they ask all others at once.
        _, candidates = nearest(points[lost], nodes, min(asked, len(nodes)))
        many = candidates.shape[1]
        seen = sees(np.repeat(points[lost], many, axis=0), nodes[candidates.reshape(-1)]).reshape(-1, many)
        some = seen.any(axis=1)
        home[lost[some]] = candidates[some, seen[some].argmax(axis=1)]
    return home
