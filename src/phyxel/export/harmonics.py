"""Spherical harmonics as Gaussian splats have them: how their colour varies with the direction of view."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

SLAB = 2**15
"""Splats that are turned at once."""


def basis(directions: Floats) -> Floats:
    """The real harmonics of degree 1, 2, 3 at unit directions (..., 3), shape (..., 15), in the order and with the
    signs of the splats' reference implementation: degree l from order −l to l, odd orders negative."""
    x, y, z = np.moveaxis(np.asarray(directions, np.float64), -1, 0)
    xx, yy, zz = x * x, y * y, z * z
    c1, c2, c3 = np.sqrt(3 / (4 * np.pi)), np.sqrt(15 / (4 * np.pi)), np.sqrt(35 / (32 * np.pi))
    d3, e3 = np.sqrt(21 / (32 * np.pi)), np.sqrt(7 / (16 * np.pi))
    f3 = np.sqrt(105 / (16 * np.pi))
    values = [
        *(-c1 * y, c1 * z, -c1 * x),
        *(c2 * x * y, -c2 * y * z, c2 / np.sqrt(12) * (2 * zz - xx - yy), -c2 * x * z, c2 / 2 * (xx - yy)),
        *(
            -c3 * y * (3 * xx - yy),
            2 * f3 * x * y * z,
            -d3 * y * (4 * zz - xx - yy),
            e3 * z * (2 * zz - 3 * xx - 3 * yy),
        ),
        *(-d3 * x * (4 * zz - xx - yy), f3 * z * (xx - yy), -c3 * x * (xx - 3 * yy)),
    ]
    return np.stack(values, axis=-1)


def turned(coefficients: Floats, rotations: Floats) -> Floats:
    """Coefficients (m, 3, k) of functions c(d), k = 3, 8 or 15, become those of c(Rᵀ d), R (m, 3, 3).

    The harmonics of one degree at turned directions are a mixture of those at the directions. Directions that are
    spread well give the mixture by least squares, exactly but for rounding."""
    count = coefficients.shape[2]
    result = np.empty_like(coefficients, np.float64)
    spread = _directions(16)
    for low, high in ((0, 3), (3, 8), (8, 15)):
        if low >= count:
            break
        back = np.linalg.pinv(basis(spread)[:, low:high])
        for first in range(0, len(coefficients), SLAB):
            part = slice(first, first + SLAB)
            seen = basis(np.einsum("mba,qb->mqa", rotations[part], spread))[..., low:high]
            colors = np.einsum("mqk,mck->mcq", seen, coefficients[part, :, low:high])
            result[part, :, low:high] = colors @ back.T
    return result


def _directions(count: int) -> Floats:
    """Unit vectors spread evenly along a spiral, (count, 3)."""
    k = np.arange(count)
    z = 1 - (2 * k + 1) / count
    radius, angle = np.sqrt(1 - z * z), k * np.pi * (3 - np.sqrt(5))
    return np.stack([radius * np.cos(angle), radius * np.sin(angle), z], axis=1)
