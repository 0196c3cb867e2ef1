"""Which nodes a point depends on: those that are seen from its home, the nearest node that sees the point.

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
    home, lost = candidates[:, 0].copy(), np.arange(len(points))
    lost = _ask(candidates, points, nodes, sees, home, lost)
    if len(lost) and asked > first:
        _, candidates = nearest(points[lost], nodes, min(asked, len(nodes)))
        _ask(candidates[:, first:], points, nodes, sees, home, lost)
    return home


def _ask(
    candidates: NDArray[np.integer],
    points: NDArray[np.floating],
    nodes: NDArray[np.floating],
    sees: Sees,
    home: NDArray[np.int64],
    lost: NDArray[np.int64],
) -> NDArray[np.int64]:
    """Ask candidates (k, c) of points that are `lost`, (k,), one after the other, and write down the first that sees
    each; who is lost then."""
    for k in range(candidates.shape[1]):
        if len(lost) == 0:
            break
        found = sees(points[lost], nodes[candidates[:, k]])
        home[lost[found]] = candidates[found, k]
        lost, candidates = lost[~found], candidates[~found]
    return lost
