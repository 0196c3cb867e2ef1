"""Noise: points that scatter about their surface are laid onto what their neighbours agree on."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import cKDTree

from phyxel.rotation import tangents

Floats = NDArray[np.floating]

THICK = 0.03
"""Share of a neighbourhood's spread that lies across it, above which it is no sheet. Curvature alone stays below."""
SIZES = (32, 64, 128, 256)
"""Neighbours to look at, until they make a sheet."""
PASSES = 2
AT_ONCE = 2**22
"""Numbers in one working array, so that memory stays small."""


def without_noise(x: Floats, spread: Floats) -> Floats:
    """The points (N, 3), moved onto the surface they scatter about, if they do.

    `spread` (N, 3, 3) is the covariance of each point's nearest neighbours. Where these are as thick as they are wide,
    more are taken, until they are flat; a quadratic height field through them is where the point belongs.
    """
    thinnest, count = _thickness(spread), 0
    for size in SIZES:
        thickness = _thickness(_spreads(x, min(size, len(x) - 1))) if thinnest >= THICK else thinnest
        # More neighbours are thinner, over their width, if noise makes them thick, and thicker if curvature does.
        if thickness >= thinnest:
            break
        thinnest, count = thickness, min(size, len(x) - 1)
    if count == 0:
        return x
    for _ in range(PASSES):
        x = _smoothed(x, count)
    return x


def _thickness(spread: Floats) -> float:
    """Median of the smallest eigenvalue over the trace."""
    values = np.linalg.eigvalsh(spread)
    return float(np.median(values[:, 0] / np.maximum(values.sum(axis=1), 1e-300)))


def _spreads(x: Floats, count: int) -> Floats:
    """Covariances of some thousand neighbourhoods of so many points."""
    some = np.random.default_rng(0).permutation(len(x))[:2000]
    _, index = cKDTree(x).query(x[some], count, workers=-1)
    away = x[index] - x[index].mean(axis=1, keepdims=True)
    return np.einsum("nki,nkj->nij", away, away) / count


def _smoothed(x: Floats, count: int) -> Floats:
    """Each point on the quadratic height field w = g(u, v) through its neighbours."""
    tree = cKDTree(x)
    moved = np.empty_like(x)
    step = max(AT_ONCE // (6 * count), 1)
    for start in range(0, len(x), step):
        own = x[start : start + step]
        distance, index = tree.query(own, count, workers=-1)
        reach = distance[:, -1:]
        weight = (1 - (distance / (1.1 * reach)) ** 2) ** 2
        moved[start : start + step] = _on_height_field(own, x[index], weight, reach[:, 0])
    return moved


def _on_height_field(own: Floats, around: Floats, weight: Floats, reach: Floats) -> Floats:
    """(n, 3) points moved along the normal of (n, k, 3) neighbours onto their weighted quadratic fit."""
    middle = np.einsum("nk,nkd->nd", weight, around) / weight.sum(axis=1, keepdims=True)
    away = (around - middle[:, None]) / reach[:, None, None]
    _, axes = np.linalg.eigh(np.einsum("nk,nki,nkj->nij", weight, away, away))
    normal = axes[:, :, 0]
    a, b = tangents(normal)
    u, v, w = (np.einsum("nkd,nd->nk", away, axis) for axis in (a, b, normal))
    basis = np.stack([np.ones_like(u), u, v, u * u, u * v, v * v], axis=2)
    weighted = basis * weight[:, :, None]
    A = np.einsum("nki,nkj->nij", weighted, basis) + 1e-9 * np.eye(6)
    height = np.linalg.solve(A, np.einsum("nki,nk->ni", weighted, w)[:, :, None])[:, :, 0]
    off = (own - middle) / reach[:, None]
    u, v, w = (np.einsum("nd,nd->n", off, axis) for axis in (a, b, normal))
    wanted = np.einsum("ni,ni->n", height, np.stack([np.ones_like(u), u, v, u * u, u * v, v * v], axis=1))
    return own + ((wanted - w) * reach)[:, None] * normal
