# mypy: disable-error-code="valid-type,no-untyped-def"
"""Leap-frog: what moves phyxels from step to step (M04 §3.6, physics 5.1)."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import warp as wp
from numpy.typing import NDArray

from phyxel import device as dev
from phyxel.contact.colliders import rebound
from phyxel.contact.distances import PLANE
from phyxel.contact.table import deformed, distance_to, reach_along
from phyxel.device import entries

wp.set_module_options(dev.KERNEL_OPTIONS)

SAFETY = 0.7
"""Share of the stability limit to step with. 0.9 blows up by nonlinear resonance near ωΔt = √3."""
TOUCHING = wp.constant(1.0e-4)
"""Gap to a collider, in spacings, below which a phyxel counts as touching."""
FOLLOWING = wp.constant(0.01)
"""Share of its deformation that a touching ball follows in a step: slowly against any vibration of the body."""
KICK, DRIFT, EXTRA_DRAG, PER_OMEGA_SQUARED = range(4)
"""Entries of the clock: what changes from step to step, kept on the device so that captured launches see it."""


def longest_step(omega: float, drag: float, damping: float) -> float:
    """Δt = 0.7·(2/ω)(√(1 + ξ²) − ξ), ξ = ½(α/ω + βω) [s], of what vibrates with ω [1/s] at most (physics 5.2)."""
    xi = 0.5 * (drag / omega + damping * omega)
    return SAFETY * (2 / omega) / (math.sqrt(1 + xi * xi) + xi)  # the same without cancellation


class Halfway:
    """Velocities around the half kick with which steps end: `with` it, that is done.

    What leap-frog keeps is ½ m v₋·v₊ + U, with the velocities half a step before and after. ½ m v² + U at whole steps
    is that only up to a part of (ωΔt)²: of the fastest vibrations, which every blow wakes, it is up to twice as much.
    """

    def __init__(self, v: wp.array) -> None:
        self._v, self._before, self._after = v, wp.clone(v), wp.clone(v)

    @property
    def arrays(self) -> dict[str, wp.array]:
        """What a checkpoint keeps."""
        return {"before_kick": self._before, "after_kick": self._after}

    def __enter__(self) -> None:
        wp.copy(self._before, self._v)

    def __exit__(self, *_: object) -> None:
        wp.copy(self._after, self._v)

    def gained(self) -> NDArray[np.float64]:
        """v − v₋ of each phyxel, 0 where its velocity is another since [1/s], shape (n, 3)."""
        v, before, after = (array.numpy().astype(np.float64) for array in (self._v, self._before, self._after))
        return np.where((v == after).all(axis=1, keepdims=True), v - before, 0.0)


@wp.func
def push_on(i: int, b: int, acceleration: wp.array(dtype=Any), extra: wp.array(dtype=Any)):
    """Acceleration of phyxel i of body b: what pushes the whole body, and what fields add."""
    if extra.shape[0] > 0:
        return acceleration[b] + extra[i]
    return acceleration[b]


@wp.kernel
def move(
    first: int, X: entries, past: entries, reach: entries, body: entries, mass: entries, damping: entries,
    drag: entries, acceleration: entries, extra: entries, hold: entries, hold_velocity: entries, colliders: Any,
    clock: entries, gradient: entries, ball: entries, u: entries, v: entries, force: entries, y: entries,
):  # fmt: skip
    """Leap-frog: kick, drift, then what the colliders say. Also y = u + βv for the damped force (physics 5.1,
    15.1, 15.2).

    A collider meets the image of the ball around a phyxel that at birth just touches the surface. It is deformed as the
    phyxel is, J F; but while it touches, it follows that slowly: the collider pushes the phyxel alone, though J depends
    on its neighbours too, and in step with their vibration it would feed it.
    """
    i = first + wp.tid()
    b = body[i]
    slot = hold[i]
    if slot >= 0:
        v[i] = hold_velocity[slot]
        u[i] = u[i] + clock[DRIFT] * v[i]
        y[i] = u[i] + damping[i] * v[i]
        return
    kick = clock[KICK]
    one = type(kick)(1.0)
    slowing = type(kick)(0.5) * kick * (drag[i] + clock[EXTRA_DRAG])
    pushed = force[i] / mass[i] + push_on(i, b, acceleration, extra)
    vi = ((one - slowing) * v[i] + kick * pushed) / (one + slowing)
    ui = u[i] + clock[DRIFT] * vi
    follow = one
    k = int(0)
    while k < colliders.count:
        row = b * colliders.count + k
        arm = X[i] + ui + colliders.place[row]
        turn = colliders.turn[row]
        n = turn[1]
        d = wp.dot(n, arm)
        sliding = vi
        if colliders.kind[k] != PLANE:  # most worlds have but a ground: no call for that
            sliding = vi - colliders.drift[row] - wp.cross(colliders.spin[row], arm)
            size = colliders.size[row]
            way = clock[DRIFT] * sliding
            d, n = distance_to(colliders.kind[k], turn, size, colliders.layout[k], colliders.values, arm, way)
        shape = ball[i]
        if colliders.restitution[k] > type(kick)(0.0):  # a phyxel that bounces does not rest
            shape = deformed(past[i], gradient[i])
        gap = d - reach_along(n, reach[i], shape)
        # A resting phyxel is met a little before it touches, or the last half kick would leave it falling.
        if gap < type(kick)(TOUCHING):
            follow = type(kick)(FOLLOWING)
            change = rebound(sliding, n, colliders.friction[k], colliders.restitution[k]) - sliding
            vi += change
            # A phyxel that friction stopped has not moved along the surface either, or it would creep down every slope.
            ui += clock[DRIFT] * (change - wp.dot(change, n) * n) - wp.min(gap, type(kick)(0.0)) * n
        k += 1
    if colliders.count > 0:
        ball[i] = ball[i] + follow * (deformed(past[i], gradient[i]) - ball[i])
    v[i] = vi
    u[i] = ui
    y[i] = ui + damping[i] * vi


@wp.kernel
def shift_bodies(first: int, body: wp.array(dtype=wp.int32), amount: wp.array(dtype=Any), u: wp.array(dtype=Any)):
    """u ← u − amount of its body."""
    i = first + wp.tid()
    u[i] = u[i] - amount[body[i]]
