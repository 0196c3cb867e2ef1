"""The skin of a body in compact groups of nodes, so that most pairs of nodes need not be asked whether they touch."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from phyxel.mls.visibility import Sees

GROUPS, SMALLEST_GROUP = 256, 8
"""Into how many groups the skin of a body is divided, about, and how many nodes one may have in any case."""
FOLDED = 1.5
"""Parts of a body that see each other touch when it is folded. This many touching distances apart in the reference
shape, being near is no longer a matter of pressure."""


@dataclass(frozen=True)
class SkinGroups:
    """The skin of one body in compact groups of nodes: those of a far group need not be asked one by one."""

    node: NDArray[np.int64]
    """skin nodes, one group after another"""
    start: NDArray[np.int64]
    """where groups begin in `node`"""
    may_touch: NDArray[np.bool_]
    """which groups can come to touch each other, (groups, groups): those that have nodes, or middles, that do not see
    each other inside the solid, and those so far apart that only folding brings them together"""

    @staticmethod
    def of(
        nodes: NDArray[np.int64], X: NDArray[np.float64], near: float, sees: Sees | None, cut: NDArray[np.int64]
    ) -> SkinGroups:
        """Groups of nodes with reference positions X (n, 3); `near` is how far apart touching nodes may be; `cut` are
        pairs of nodes that do not see each other."""
        size = max(SMALLEST_GROUP, -(-len(nodes) // GROUPS))
        groups = _halved(X, np.arange(len(X)), size)
        start = np.cumsum([0] + [len(group) for group in groups[:-1]])
        order = np.concatenate(groups)
        lower, upper = np.minimum.reduceat(X[order], start), np.maximum.reduceat(X[order], start)
        apart = gaps(lower, upper, lower, upper) > FOLDED * near
        middle = np.array([X[g][np.linalg.norm(X[g] - X[g].mean(axis=0), axis=1).argmin()] for g in groups])
        one, other = np.nonzero(np.triu(~apart, 1))
        hidden = np.zeros(len(one), bool) if sees is None else ~sees(middle[one], middle[other])
        apart[one[hidden], other[hidden]] = True
        owner = np.empty(len(X), np.int64)
        owner[order] = np.repeat(np.arange(len(groups)), [len(group) for group in groups])
        apart[tuple(owner[np.searchsorted(nodes, cut)].T)] = True
        return SkinGroups(nodes[order], start, apart | apart.T)

    def boxes(self, x: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Lower and upper corners of the boxes around the groups, (groups, 3) each."""
        places = x[self.node]
        return np.minimum.reduceat(places, self.start), np.maximum.reduceat(places, self.start)


def _halved(X: NDArray[np.float64], group: NDArray[np.int64], size: int) -> list[NDArray[np.int64]]:
    """A group of points, halved across its longest side until no part has more than `size`."""
    if len(group) <= size:
        return [group]
    across = int(np.ptp(X[group], axis=0).argmax())
    order = group[np.argsort(X[group, across], kind="stable")]
    return _halved(X, order[: len(order) // 2], size) + _halved(X, order[len(order) // 2 :], size)


def gaps(
    lower: NDArray[np.float64], upper: NDArray[np.float64], lower_b: NDArray[np.float64], upper_b: NDArray[np.float64]
) -> NDArray[np.float64]:
    """How far boxes (a, 3) and (b, 3) are from each other at least, (a, b); below zero if they overlap."""
    farthest = np.full((len(lower), len(lower_b)), -np.inf)
    for axis in range(3):
        np.maximum(farthest, lower[:, axis, None] - upper_b[:, axis], out=farthest)
        np.maximum(farthest, lower_b[:, axis] - upper[:, axis, None], out=farthest)
    return farthest
