# mypy: disable-error-code="valid-type,no-untyped-def"
"""What places of a body meet: the nearest collider, how far it is, and how its surface moves there.

Bodies that move on their own ask this some times a step for a few hundred places, and need the answer on the host.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import warp as wp
from numpy.typing import NDArray

from phyxel import device as dev
from phyxel.contact.colliders import Collider, Ground
from phyxel.contact.table import ColliderTable, distance_out_of

wp.set_module_options(dev.KERNEL_OPTIONS)

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Touch:
    """The nearest collider of each of some places; lengths in the unit of these."""

    gap: Floats
    """signed distance, negative inside it, shape (k,)"""
    normal: Floats
    """out of it, shape (k, 3)"""
    velocity: Floats
    """of its surface there [1/s], shape (k, 3)"""
    friction: Floats
    """Coulomb's coefficient, shape (k,)"""
    restitution: Floats
    """share of the speed kept in a bounce, shape (k,)"""


Feel = Callable[[Floats], Touch]
"""What places (k, 3), X + u, meet."""


@wp.kernel
def find_nearest(
    first: int,
    colliders: Any,
    x: wp.array(dtype=wp.vec3d),
    gap: wp.array(dtype=wp.float64),
    normal: wp.array(dtype=wp.vec3d),
    velocity: wp.array(dtype=wp.vec3d),
    which: wp.array(dtype=wp.int32),
):
    """Of the colliders that of the smallest signed distance, and the velocity of its surface, v + ω × r (physics
    15.1)."""
    i = first + wp.tid()
    gap[i] = wp.float64(wp.inf)
    for k in range(colliders.count):
        arm = colliders.place[k] + x[i]
        distance, outward = distance_out_of(colliders, k, arm)
        if distance < gap[i]:
            gap[i] = distance
            normal[i] = outward
            velocity[i] = colliders.drift[k] + wp.cross(colliders.spin[k], arm)
            which[i] = k


class ColliderQuery:
    """The colliders around one body, in its units about its origin."""

    def __init__(self, unit: float) -> None:
        self._device = dev.pick("cpu")  # few places, asked for by the host
        self._table = ColliderTable([unit], wp.float64, self._device)
        self._colliders: Sequence[Ground | Collider] = ()

    def place(
        self, colliders: Sequence[Ground | Collider], origin: Floats, span: tuple[float, float], at: float
    ) -> None:
        """Where the colliders are at the time `at` [s], and how they move over a span of time, for a body with this
        origin [m]."""
        self._colliders = colliders
        self._table.write(colliders, origin[None], span, at)

    def feel(self, places: Floats) -> Touch:
        """What places (k, 3) meet."""
        count = len(places)
        x = wp.array(places, dtype=wp.vec3d, device=self._device)
        gap = wp.zeros(count, dtype=wp.float64, device=self._device)
        normal, velocity = (wp.zeros(count, dtype=wp.vec3d, device=self._device) for _ in range(2))
        which = wp.zeros(count, dtype=wp.int32, device=self._device)
        inputs = [self._table.table, x, gap, normal, velocity, which]
        dev.launch(find_nearest, count, inputs, self._device, split=False)
        friction, restitution = (
            np.array([getattr(one, name) for one in self._colliders], np.float64)[which.numpy()]
            for name in ("friction", "restitution")
        )
        return Touch(gap.numpy(), normal.numpy(), velocity.numpy(), friction, restitution)
