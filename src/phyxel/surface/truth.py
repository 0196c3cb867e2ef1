# mypy: disable-error-code="valid-type,no-untyped-def"
"""What the zombies, the surfels that are never resampled, say of places near them (M04 §5.2.5,
physics 8.8)."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import warp as wp
from numpy.typing import NDArray

from phyxel import device as dev
from phyxel.device import as_vectors
from phyxel.mls.neighbours import grid_for
from phyxel.region import Floats

wp.set_module_options(dev.KERNEL_OPTIONS)

HEARD = 2.5
"""How far around a surfel zombies are heard, over its spacing."""


@wp.struct
class Voices:
    """Zombies as the kernel wants them."""

    grid: wp.uint64
    at: wp.array(dtype=wp.vec3)
    normal: wp.array(dtype=wp.vec3)
    color: wp.array(dtype=wp.vec3)
    change: wp.array(dtype=float)


@wp.kernel
def ask(
    first: int,
    zombies: Voices,
    points: wp.array(dtype=wp.vec3),
    normals: wp.array(dtype=wp.vec3),
    radii: wp.array(dtype=float),
    onto: wp.array(dtype=wp.vec3),
    normal: wp.array(dtype=wp.vec3),
    color: wp.array(dtype=wp.vec3),
    change: wp.array(dtype=float),
):
    """The foot of each surfel on the plane through the weighted mean of the zombies around it that look the same way
    (Levin's surface to first order), that plane's normal, their mean colour, and the change of the nearest; −1 if there
    is none."""
    s = first + wp.tid()
    x = points[s]
    n = normals[s]
    radius = radii[s]
    weight = float(0.0)
    centre = wp.vec3()
    upright = wp.vec3()
    tint = wp.vec3()
    nearest = radius
    nearest_change = float(-1.0)
    for z in wp.hash_grid_query(zombies.grid, x, radius):
        r = wp.length(x - zombies.at[z])
        if r < radius and wp.dot(n, zombies.normal[z]) > 0.0:
            share = 1.0 - r * r / (radius * radius)
            share = share * share * share
            weight += share
            centre += share * (zombies.at[z] - x)
            upright += share * zombies.normal[z]
            tint += share * zombies.color[z]
            if r < nearest:
                nearest = r
                nearest_change = zombies.change[z]
    onto[s] = x
    normal[s] = n
    change[s] = nearest_change
    if weight > 1.0e-6:
        normal[s] = wp.normalize(upright)
        onto[s] = x + wp.dot(centre / weight, normal[s]) * normal[s]
        color[s] = tint / weight


class Heard(NamedTuple):
    """What zombies say of surfels."""

    onto: NDArray[np.float32]
    """place on their surface, shape (m, 3)"""
    normals: NDArray[np.float32]
    """shape (m, 3)"""
    colors: NDArray[np.float32]
    """shape (m, 3)"""
    change: NDArray[np.float32]
    """Γ of the nearest, −1 where there is none, shape (m,)"""


class Truth:
    """Zombies in a hash grid."""

    def __init__(
        self, points: Floats, normals: Floats, colors: Floats, change: Floats, farthest: float, device: wp.Device
    ) -> None:
        self._device, self._farthest = device, farthest
        self._voices = Voices()
        self._voices.at, self._voices.normal, self._voices.color = (
            as_vectors(v, self._device) for v in (points, normals, colors)
        )
        self._voices.change = wp.array(np.asarray(change, np.float32), dtype=float, device=device)
        self._grid = grid_for(len(points), device)
        self._grid.build(self._voices.at, farthest)
        self._voices.grid = self._grid.id

    def ask(self, points: Floats, normals: Floats, colors: Floats, spacing: Floats) -> Heard:
        """Of (m, 3) surfels with normals, colours (kept where no zombie is near) and spacings (m,)."""
        x, n, color = (as_vectors(v, self._device) for v in (points, normals, colors))
        radii = np.minimum(HEARD * spacing, self._farthest).astype(np.float32)
        onto, normal = wp.empty_like(x), wp.empty_like(x)
        change = wp.empty(len(x), dtype=float, device=self._device)
        inputs = [x, n, wp.array(radii, dtype=float, device=self._device), onto, normal, color, change]
        dev.launch(ask, len(x), [self._voices, *inputs], self._device)
        return Heard(onto.numpy(), normal.numpy(), color.numpy(), change.numpy())
