# mypy: disable-error-code="valid-type,no-untyped-def"
"""Spherical harmonics as Gaussian splats have them: how their colour varies with the direction of view."""

from __future__ import annotations

import numpy as np
import warp as wp
from numpy.typing import NDArray

from phyxel import device as dev

wp.set_module_options(dev.KERNEL_OPTIONS)

Floats = NDArray[np.float64]

HARMONICS = 15
"""of degree 1, 2 and 3"""
DIRECTIONS = 24
"""At which functions are compared; spread well, the least-squares problem is nearly orthogonal."""
Harmonics = wp.types.vector(length=HARMONICS, dtype=wp.float64)


@wp.func
def harmonics_at(d: wp.vec3d):
    """The real harmonics of degree 1, 2, 3 in a unit direction, in the order and with the signs that splats have:
    degree l from order −l to l, odd orders negative."""
    x, y, z = d[0], d[1], d[2]
    xx, yy, zz = x * x, y * y, z * z
    two, three, four = wp.float64(2.0), wp.float64(3.0), wp.float64(4.0)
    c1 = wp.float64(0.48860251190291992)  # √(3/4π)
    c2 = wp.float64(1.09254843059207907)  # √(15/4π)
    c3 = wp.float64(0.59004358992664351)  # √(35/32π)
    d3 = wp.float64(0.45704579946446574)  # √(21/32π)
    e3 = wp.float64(0.37317633259011540)  # √(7/16π)
    f3 = wp.float64(1.44530572132027702)  # √(105/16π)
    c20 = wp.float64(0.31539156525252001)  # √(5/16π)
    return Harmonics(
        -c1 * y,
        c1 * z,
        -c1 * x,
        c2 * x * y,
        -c2 * y * z,
        c20 * (two * zz - xx - yy),
        -c2 * x * z,
        c2 / two * (xx - yy),
        -c3 * y * (three * xx - yy),
        two * f3 * x * y * z,
        -d3 * y * (four * zz - xx - yy),
        e3 * z * (two * zz - three * xx - three * yy),
        -d3 * x * (four * zz - xx - yy),
        f3 * z * (xx - yy),
        -c3 * x * (xx - three * yy),
    )


@wp.kernel
def evaluate(first: int, directions: wp.array(dtype=wp.vec3d), values: wp.array(dtype=Harmonics)):
    """The harmonics in each direction."""
    i = first + wp.tid()
    values[i] = harmonics_at(directions[i])


@wp.kernel
def turn(
    first: int,
    directions: wp.array(dtype=wp.vec3d),
    back: wp.array(dtype=Harmonics),
    rotations: wp.array(dtype=wp.mat33d),
    coefficients: wp.array2d(dtype=Harmonics),
    result: wp.array2d(dtype=Harmonics),
):
    """Coefficients of c(Rᵀ d) for those of c(d), one row for each splat, red, green, blue.

    c(Rᵀ d) is read off in directions d_q, and `back` takes these values to coefficients, column by column."""
    i = first + wp.tid()
    inverse = wp.transpose(rotations[i])
    red, green, blue = coefficients[i, 0], coefficients[i, 1], coefficients[i, 2]
    r, g, b = Harmonics(), Harmonics(), Harmonics()
    for q in range(directions.shape[0]):
        seen = harmonics_at(inverse * directions[q])
        column = back[q]
        r += wp.dot(seen, red) * column
        g += wp.dot(seen, green) * column
        b += wp.dot(seen, blue) * column
    result[i, 0] = r
    result[i, 1] = g
    result[i, 2] = b


def basis(directions: Floats) -> Floats:
    """`harmonics_at` unit directions (m, 3), shape (m, 15)."""
    device = dev.pick("cpu")
    values = wp.zeros(len(directions), dtype=Harmonics, device=device)
    places = wp.array(np.ascontiguousarray(directions, np.float64), dtype=wp.vec3d, device=device)
    dev.launch(evaluate, len(directions), [places, values], device)
    return values.numpy()


def turned(coefficients: Floats, rotations: Floats) -> Floats:
    """Coefficients (m, 3, k) of functions c(d), k = 3, 8 or 15, become those of c(Rᵀ d), R (m, 3, 3)."""
    device = dev.pick("cpu")
    m, _, k = coefficients.shape
    spread = _directions(DIRECTIONS)
    back = np.linalg.pinv(basis(spread)).T
    whole = np.zeros((m, 3, HARMONICS))
    whole[:, :, :k] = coefficients
    result = wp.zeros((m, 3), dtype=Harmonics, device=device)
    inputs = [
        wp.array(spread, dtype=wp.vec3d, device=device),
        wp.array(back, dtype=Harmonics, device=device),
        wp.array(np.ascontiguousarray(rotations, np.float64), dtype=wp.mat33d, device=device),
        wp.array(whole, dtype=Harmonics, device=device),
    ]
    dev.launch(turn, m, [*inputs, result], device)
    return result.numpy()[:, :, :k]


def _directions(count: int) -> Floats:
    """Unit vectors spread evenly along a spiral, (count, 3)."""
    k = np.arange(count)
    z = 1 - (2 * k + 1) / count
    radius, angle = np.sqrt(1 - z * z), k * np.pi * (3 - np.sqrt(5))
    return np.stack([radius * np.cos(angle), radius * np.sin(angle), z], axis=1)
