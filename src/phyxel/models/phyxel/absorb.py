# mypy: disable-error-code="valid-type,no-untyped-def"
"""The present shape becomes the reference shape (M04 §4.2), without forgetting what is strained.

    X ← X + u,  u ← 0,   εᵖ ← ½(J⁻ᵀ(I + 2εᵖ)J⁻¹ − I),   s ← s|J|,   F ← J F

I + 2εᵖ is the metric in which the phyxel is at rest, so this is exact: it is the same metric in new coordinates. M04's
εᵖ ← εᵖ − ε leaves it in the old ones, and a tumbling body shears itself. F is the way from the shape at birth.
"""

from __future__ import annotations

from typing import Any

import warp as wp

from phyxel import device as dev
from phyxel.models.phyxel.forces import Matter

wp.set_module_options(dev.KERNEL_OPTIONS)

CRUSHED = wp.constant(0.05)
"""|J| below which a phyxel has been crushed or turned inside out, and its strain is forgotten."""


@wp.func
def absorbed_strain(J: Any, plastic: Any):
    """εᵖ in the coordinates of the present shape."""
    one = wp.identity(n=3, dtype=J.dtype)
    inverse = wp.inverse(J)
    metric = wp.transpose(inverse) * (one + plastic * J.dtype(2.0)) * inverse
    return (metric - one) * J.dtype(0.5)


@wp.kernel
def absorb(
    first: int,
    nodes: wp.array(dtype=wp.int32),
    shift: wp.array(dtype=Any),
    rest_volume: wp.array(dtype=Any),
    X: wp.array(dtype=Any),
    volume: wp.array(dtype=Any),
    plastic: wp.array(dtype=Any),
    swell: wp.array(dtype=Any),
    past: wp.array(dtype=Any),
    gradient: wp.array(dtype=Any),
    u: wp.array(dtype=Any),
):
    """The present shape, moved by −shift, becomes the reference shape of some phyxels."""
    i = nodes[first + wp.tid()]
    J = gradient[i] + wp.identity(n=3, dtype=gradient[i].dtype)
    ratio = wp.determinant(J)
    if ratio > J.dtype(CRUSHED):
        plastic[i] = absorbed_strain(J, plastic[i])
        swell[i] = swell[i] * ratio
        past[i] = J * past[i]
    else:
        plastic[i] = J * J.dtype(0.0)
    volume[i] = rest_volume[i] * swell[i]
    X[i] = X[i] + u[i] - shift[0]
    u[i] = u[i] * J.dtype(0.0)
    gradient[i] = J * J.dtype(0.0)


def absorbing(nodes: wp.array, shift: wp.array, matter: Matter, gradient: wp.array, u: wp.array) -> dev.Launch:
    """Absorb the deformation of some phyxels, (m,) int32, at the gradient of the last force."""
    shape = [matter.rest_volume, matter.X, matter.volume, matter.plastic, matter.swell, matter.past]
    return dev.Launch(absorb, len(nodes), [nodes, shift, *shape, gradient, u])
