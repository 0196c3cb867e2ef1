"""The order in which a sheet's particles are eliminated: halves first, then the seam between them (nested dissection,
George 1973). What fills in stays within halves and seams, so that a factor of n particles takes some n^1.5 steps."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

LEAF = 24
"""Particles of a part that is not halved again, at most: a dense matrix of them is quickly factored."""
LEAST_EXTENT = 0.3
"""Of the longest: directions in which a part is shorter are not tried for its cut."""


@dataclass(frozen=True)
class SheetFront:
    """The dense matrix of the particles that are eliminated together and of those that this couples."""

    own: Ints
    """eliminated here, shape (p,)"""
    border: Ints
    """eliminated later, in that order, shape (b,)"""
    below: tuple[int, ...]
    """fronts whose borders end here: numbers in the level below"""


def dissected(X: Floats, joined: csr_array) -> list[list[SheetFront]]:
    """Fronts level by level, those of leaves first, of particles at X (n, 3) that are coupled where `joined` (n, n,
    symmetric) has an entry. Each level has half as many fronts as the one below."""
    depth = max(0, int(np.ceil(np.log2(max(len(X), 1) / LEAF))))
    parts, seams = [np.arange(len(X))], []
    for _ in range(depth):
        cuts = [_cut(X, joined, part) for part in parts]
        seams.append([seam for seam, _ in cuts])
        parts = [half for _, halves in cuts for half in halves]
    owned = [parts, *reversed(seams)]
    rank = np.empty(len(X), np.int64)
    rank[np.concatenate([own for level in owned for own in level])] = np.arange(len(X))
    levels: list[list[SheetFront]] = []
    for level in owned:
        fronts = []
        for number, own in enumerate(level):
            below = (2 * number, 2 * number + 1) if levels else ()
            met = [joined[own].indices, *(levels[-1][child].border for child in below)]
            border = np.setdiff1d(np.concatenate(met).astype(np.int64), own)
            border = border[rank[border] > rank[own].max()] if len(own) else border
            fronts.append(SheetFront(own, border[np.argsort(rank[border])], below))
        levels.append(fronts)
    return levels


def _cut(X: Floats, joined: csr_array, part: Ints) -> tuple[Ints, tuple[Ints, Ints]]:
    """The seam of a part, and the halves that it leaves, which are not coupled: of cuts across its longest axis and
    those of space the one with the shortest seam."""
    from_middle = X[part] - X[part].mean(axis=0) if len(part) else X[part]
    _, axes = np.linalg.eigh(from_middle.T @ from_middle)
    directions = np.concatenate([axes[:, 2:].T, np.eye(3)])
    extents = np.ptp(from_middle @ directions.T, axis=0) if len(part) else np.zeros(4)
    near = joined[part]
    best: tuple[Ints, tuple[Ints, Ints]] | None = None
    for direction in directions[extents >= LEAST_EXTENT * extents[0]]:
        order = np.argsort(np.round(from_middle @ direction, 6), kind="stable")  # rows of a mesh stay whole
        far = np.zeros(len(part), bool)
        far[order[len(part) // 2 :]] = True
        beyond = np.zeros(joined.shape[0])
        beyond[part[far]] = 1.0
        seam = ~far & (near @ beyond > 0)
        if best is None or seam.sum() < len(best[0]):
            best = part[seam], (part[~far & ~seam], part[far])
    assert best is not None
    return best
