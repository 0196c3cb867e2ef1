"""Normals beside sharp edges, where the nearest points are of several faces: a plane through all of them cuts the edge
off, and so would the surface (physics 9.2)."""

from __future__ import annotations

import numpy as np

from phyxel.points.cloud import Floats
from phyxel.points.normals import SLAB, SUPPORT, Neighbourhoods

BENT = 0.02
"""Share of a neighbourhood's spread that lies across it, above which it may be of several faces: more than a sphere of
a few hundred points has."""
BANDS = (0.2, 0.1, 0.05, 0.05)
"""Distances from a plane at which points hardly count as its own, over that of the last neighbour: one by one."""
OTHER = 0.8
"""Cosine of two normals below which they are of two faces."""
FLAT = 0.3
"""Mean distance of its own points from a plane, over the last band, below which it is a face: where a surface is round
or noisy there are points at all distances."""


def beside_creases(normals: Floats, near: Neighbourhoods) -> Floats:
    """Normals (M, 3) of distinct points, of the face that a point is on where several meet.

    What neighbours say are the planes to choose from. The one that has the most points wins, each counting by
    w e^(−(h/b)²), h its height over the plane, b a band that narrows while the plane is fitted anew; and of those
    across it the next. The one that then has more is the point's own.
    """
    found = np.array(normals, np.float64)
    extents = np.linalg.eigvalsh(near.spread)
    bent = np.flatnonzero(extents[:, 0] > BENT * extents.sum(axis=1))
    for first in range(0, len(bent), SLAB):
        some = bent[first : first + SLAB]
        found[some] = _of_one_face(found[some], normals, near, some)
    return found


def _of_one_face(own: Floats, normals: Floats, near: Neighbourhoods, some: np.ndarray) -> Floats:
    """Normals of some points (m, 3), their own where no face is."""
    index = near.index[some]
    away = (near.x[index] - near.x[some, None]) / near.reach[some, None, None]
    weights = (1 - (away**2).sum(axis=2) / SUPPORT**2) ** 3
    told = normals[index].astype(np.float64)
    support = (weights[:, None] * _within(np.einsum("nca,nka->nck", told, away), BANDS[0])).sum(axis=2)
    first = _chosen(told, support)
    second = _chosen(told, support * (np.einsum("nca,na->nc", told, first) < OTHER))
    (n, share, rough), (other, other_share, other_rough) = (_fitted(way, away, weights) for way in (first, second))
    better = other_share > share
    n, rough = np.where(better[:, None], other, n), np.where(better, other_rough, rough)
    return np.where((rough < FLAT)[:, None], n, own)


def _within(height: Floats, band: float) -> Floats:
    """How much points count as a plane's own by their height over it."""
    return np.exp(-((height / band) ** 2))


def _chosen(told: Floats, support: Floats) -> Floats:
    """That of (m, k, 3) normals which has the most of (m, k)."""
    return np.asarray(told[np.arange(len(told)), support.argmax(axis=1)])


def _fitted(n: Floats, away: Floats, weights: Floats) -> tuple[Floats, Floats, Floats]:
    """Normals (m, 3) of planes through points and their own among neighbours (m, k, 3), from near n; the share of
    weights that these have, and their mean distance from the plane, over the last band, (m,)."""
    counts = weights
    for band in BANDS:
        counts = weights * _within(np.einsum("nka,na->nk", away, n), band)
        fitted = np.linalg.eigh(np.einsum("nk,nka,nkb->nab", counts, away, away))[1][:, :, 0]
        n = fitted * np.where((fitted * n).sum(axis=1) < 0, -1, 1)[:, None]
    height = np.einsum("nka,na->nk", away, n)
    counts = weights * _within(height, BANDS[-1])
    own = counts.sum(axis=1)
    return n, own / weights.sum(axis=1), np.sqrt((counts * height**2).sum(axis=1) / own) / BANDS[-1]
