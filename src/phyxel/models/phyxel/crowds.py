"""How crowded phyxels of a melt are on a lattice and at rest (physics 7.4): on the host, in double precision."""

from __future__ import annotations

import numpy as np
import warp as wp
from numpy.typing import NDArray

from phyxel.mls.neighbours import find_pairs

Floats = NDArray[np.float64]

FARTHEST = 6
"""Sides of a cell up to which a lattice is looked at; with larger supports the sums are those with this one."""


def kernel_of(r: NDArray[np.floating], h: NDArray[np.floating]) -> tuple[Floats, Floats]:
    """−r W′ and W of the spiky kernel W = 15/(π h⁶)(h − r)³ at distances r with supports h, of their shape."""
    left, scale = np.maximum(h - r, 0), 15 / (np.pi * h**6)
    return 3 * scale * r * left**2, scale * left**3


def lattice_density(h: Floats) -> Floats:
    """c⁰ = Σ_j v_j W_ij of phyxels on a lattice of unit cells with supports h, of their shape (n,)."""
    along = np.arange(-FARTHEST, FARTHEST + 1) ** 2
    square, times = np.unique(along[:, None, None] + along[:, None] + along, return_counts=True)
    near = square < FARTHEST**2
    _, W = kernel_of(*np.broadcast_arrays(np.sqrt(square[near]), np.minimum(h, FARTHEST)[:, None]))
    return np.asarray(W @ times[near])


def rest_density(
    X: NDArray[np.floating], h: NDArray[np.floating], volume: NDArray[np.floating], device: wp.Device
) -> Floats:
    """c⁰ of phyxels that rest at X (n, 3), shape (n,): that of a lattice of their volumes, or their own Σ_j v_j W_ij if
    that is more. A body that melts at rest is then nowhere crowded."""
    pairs = find_pairs(X, h, device)
    owner = np.repeat(np.arange(len(X)), pairs.count)
    r = np.linalg.norm(X[owner] - X[pairs.index], axis=1)
    _, W = kernel_of(r, 0.5 * (h[owner] + h[pairs.index]))
    around = np.bincount(owner, volume[pairs.index] * W, minlength=len(X))
    return np.maximum(volume * kernel_of(np.zeros(len(X)), h)[1] + around, lattice_density(h / np.cbrt(volume)))
