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


@wp.kernel
def find_each(
    first: int,
    colliders: Any,
    which: wp.array(dtype=wp.int32),
    x: wp.array(dtype=wp.vec3d),
    gap: wp.array(dtype=wp.float64),
    normal: wp.array(dtype=wp.vec3d),
    velocity: wp.array(dtype=wp.vec3d),
):
    """Signed distance of each place from a collider of its own, and the velocity of that one's surface (physics
    15.1)."""
    i = first + wp.tid()
    k = which[i]
    arm = colliders.place[k] + x[i]
    distance, outward = distance_out_of(colliders, k, arm)
    gap[i] = distance
    normal[i] = outward
    velocity[i] = colliders.drift[k] + wp.cross(colliders.spin[k], arm)


class ColliderQuery:
    """The colliders around one body, in its units about its origin."""

    def __init__(self, unit: float) -> None:
        self._device = dev.pick("cpu")  # few places, asked for by the host
        self._table = ColliderTable([unit], wp.float64, self._device)
        self._colliders: Sequence[Ground | Collider] = ()
        self._asked: Callable[[], object] | None = None
        """writes where they are, which many never ask for"""

    def place(
        self, colliders: Sequence[Ground | Collider], origin: Floats, span: tuple[float, float], at: float
    ) -> None:
        """Where the colliders are at the time `at` [s], and how they move over a span of time, for a body with this
        origin [m]."""
        self._colliders, self._asked = colliders, lambda: self._table.write(colliders, origin[None], span, at)

    @property
    def _now(self) -> Any:
        """The table of the colliders, where they were placed."""
        if self._asked is not None:
            self._asked()
            self._asked = None
        return self._table.table

    def feel(self, places: Floats) -> Touch:
        """What places (k, 3) meet."""
        x, gap, normal, velocity, which = self._room(places)
        inputs = [self._now, x, gap, normal, velocity, which]
        dev.launch(find_nearest, len(places), inputs, self._device, split=False)
        return self._touch(gap, normal, velocity, which.numpy())

    def feel_each(self, places: Floats, which: NDArray[np.integer]) -> Touch:
        """What places (k, 3) meet of one collider each, by its number (k,)."""
        x, gap, normal, velocity, _ = self._room(places)
        numbers = wp.array(which, dtype=wp.int32, device=self._device)
        inputs = [self._now, numbers, x, gap, normal, velocity]
        dev.launch(find_each, len(places), inputs, self._device, split=False)
        return self._touch(gap, normal, velocity, which)

    @property
    def count(self) -> int:
        """How many colliders there are."""
        return len(self._colliders)

    def rubs(self, collider: int) -> tuple[float, float]:
        """Friction and restitution of one of them."""
        one = self._colliders[collider]
        return one.friction, one.restitution

    def _room(self, places: Floats) -> tuple[wp.array, ...]:
        count, device = len(places), self._device
        x = wp.array(places, dtype=wp.vec3d, device=device)
        gap = wp.zeros(count, dtype=wp.float64, device=device)
        normal, velocity = (wp.zeros(count, dtype=wp.vec3d, device=device) for _ in range(2))
        return x, gap, normal, velocity, wp.zeros(count, dtype=wp.int32, device=device)

    def _touch(self, gap: wp.array, normal: wp.array, velocity: wp.array, which: NDArray[np.integer]) -> Touch:
        friction, restitution = (
            np.array([getattr(one, name) for one in self._colliders], np.float64)[which]
            for name in ("friction", "restitution")
        )
        return Touch(gap.numpy(), normal.numpy(), velocity.numpy(), friction, restitution)
