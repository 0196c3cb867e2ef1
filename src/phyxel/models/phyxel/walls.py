# mypy: disable-error-code="valid-type,no-untyped-def"
"""How phyxels meet colliders inside an implicit step (physics 15.3)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import warp as wp
from numpy.typing import NDArray

from phyxel import device as dev
from phyxel.contact.table import deformed, distance_to, reach_along
from phyxel.device import entries

if TYPE_CHECKING:
    from phyxel.models.phyxel.model import PhyxelModel

wp.set_module_options(dev.KERNEL_OPTIONS)

LET_GO, CAUGHT_AGAIN = wp.constant(-1), wp.constant(2)
"""Contacts of a phyxel besides 0, none, and 1: let go in this step, and caught again after that."""
CREEP, CREEP_WAY = wp.constant(1.0e-4), wp.constant(1.0e-5)
"""Sliding speed below which friction is viscous, in spacings per second, and way in a step, in spacings: so slowly it
may creep where it holds."""
OUT_WITHIN = wp.constant(1.0e-2)
"""Time [s] that a phyxel takes at least to come out of a depth that was there before the step: in a shorter step it
would be shot out."""
FOLLOWING = wp.constant(0.1)
"""Share of a step by which the ball of a phyxel that touches follows its deformation: at once, each moves the other."""


@wp.func
def rubbing_speed(sliding: Any, dt: Any):
    """A sliding speed, or that below which friction is viscous in a step of dt (physics 15.3)."""
    return wp.max(sliding, wp.min(type(dt)(CREEP), type(dt)(CREEP_WAY) / dt))


@dataclass
class WallContacts:
    """How each phyxel meets colliders, as one implicit step leaves it to the next; shape (n,) each."""

    contact: wp.array
    """1 where it does, see LET_GO and CAUGHT_AGAIN; int32"""
    normal: wp.array
    """out of the collider, vectors"""
    wall: wp.array
    """velocity of the collider where it is touched [1/s], vectors"""
    rest: wp.array
    """force that the last solve left for the collider to take up, vectors: the next stage may be of another length"""
    rub: wp.array
    """friction over sliding speed"""


@wp.kernel
def meet_colliders(
    first: int, X: entries, reach: entries, body: entries, hold: entries, colliders: Any, dt: entries, base: entries,
    v_old: entries, ball: entries, v: entries, contact: entries, normal: entries, wall: entries, rest: entries,
    rub: entries, changed: entries,
):  # fmt: skip
    """Which phyxels a collider holds off, the velocity across its surface that makes, and how they rub on it
    (physics 15.3).

    Colliders are where they will be at the end of the step. Where the surface is curved, each Newton iteration takes it
    for flat about where the last one led. A phyxel that meets several keeps to the one it is deepest in.
    `rest` is the force that the last solve left for the collider to take up: its impulse is minus h times that.
    Coulomb's friction μ·impulse against the sliding is written as −rub·(v − wall)_t and so made implicit; below CREEP
    it is viscous. `wall` is the velocity of the collider where it is touched. A phyxel that was let go in this step and
    caught again is kept till its end: else the contacts of a stiff body can change for ever.
    The ball it touches with is as the last step left it (`follow`).
    """
    i = first + wp.tid()
    h = dt[body[i]]
    zero = type(h)(0.0)
    if hold[i] >= 0 or h == zero:
        return
    was = contact[i]
    old = normal[i]
    state = int(0)
    rubs = zero
    rise = zero
    deepest = type(zero)(1.0e30)
    x = X[i] + base[i] + h * v[i]
    k = int(0)
    while k < colliders.count:
        row = body[i] * colliders.count + k
        arm = x + colliders.place[row]
        w = colliders.drift[row] + wp.cross(colliders.spin[row], arm)
        way = h * (v[i] - w)
        turn = colliders.turn[row]
        size = colliders.size[row]
        d, n = distance_to(colliders.kind[k], turn, size, colliders.layout[k], colliders.values, arm, way)
        gap = d - reach_along(n, reach[i], ball[i])
        held = was > 0 and wp.dot(n, old) > type(zero)(0.5)
        push = -h * wp.dot(n, rest[i])
        keeps = held and (push > zero or was == CAUGHT_AGAIN)
        if (keeps or (not held and gap < zero)) and gap < deepest:
            state = int(1)
            deepest = gap
            normal[i] = n
            wall[i] = w
            across = wp.dot(n, v[i] - w)
            room = gap - h * across  # when the step began
            rise = -room / h
            if room < zero:
                rise = -room / wp.max(h, type(h)(OUT_WITHIN))
            bounce = -colliders.restitution[k] * wp.dot(n, v_old[i] - w)
            if bounce > zero:
                rise = wp.max(rise, bounce)
            rubs = zero
            if held:
                sliding = wp.length(v[i] - w - across * n)
                rubs = colliders.friction[k] * wp.max(push, zero) / rubbing_speed(sliding, h)
        k += 1
    if (state > 0) != (was > 0):
        changed[0] = 1
    if state == 1:
        v[i] = v[i] + (rise - wp.dot(normal[i], v[i] - wall[i])) * normal[i]
        if was == LET_GO or was == CAUGHT_AGAIN:  # noqa: SIM109 (a kernel knows no tuples)
            state = CAUGHT_AGAIN
    elif was != 0:
        state = LET_GO
    rub[i] = rubs
    contact[i] = state


@wp.kernel
def measure_gaps(
    first: int, X: entries, reach: entries, body: entries, u: entries, ball: entries, v: entries, colliders: Any,
    gaps: entries, approaches: entries,
):  # fmt: skip
    """Of the collider that each phyxel would touch first if it went on with v: the gap to it, and how fast that closes;
    of the nearest where it comes near none (physics 15.1)."""
    i = first + wp.tid()
    zero = type(reach[i])(0.0)
    best = type(zero)(1.0e30)
    soonest = type(zero)(1.0e30)
    x = X[i] + u[i]
    gaps[i] = best
    approaches[i] = zero
    k = int(0)
    while k < colliders.count:
        row = body[i] * colliders.count + k
        arm = x + colliders.place[row]
        w = v[i] - colliders.drift[row] - wp.cross(colliders.spin[row], arm)
        d, n = distance_to(
            colliders.kind[k], colliders.turn[row], colliders.size[row], colliders.layout[k], colliders.values, arm,
            zero * w,
        )  # fmt: skip
        gap = d - reach_along(n, reach[i], ball[i])
        approach = -wp.dot(n, w)
        until = type(zero)(1.0e29)
        if approach > zero:
            until = wp.min(gap / approach, until)
        if until < soonest or (until == soonest and gap < best):
            soonest = until
            best = gap
            gaps[i] = gap
            approaches[i] = approach
        k += 1


def gaps_to_colliders(model: PhyxelModel, v: NDArray[np.floating]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Gaps of phyxels to the colliders that they would touch first if they went on with v (n, 3) [1/s], and how fast
    those close [1/s], (n,) each, in spacings."""
    vectors = wp.array(v, dtype=model.matter.X.dtype, device=model.device)
    gaps, approaches = (wp.zeros(len(model), dtype=model.real, device=model.device) for _ in range(2))
    known = {"v": vectors, "colliders": model.colliders, "gaps": gaps, "approaches": approaches}
    item = dev.over(measure_gaps, len(model), model.matter, model.now, **known)
    dev.launch(item.kernel, item.count, item.inputs, model.device)
    found, closing = (array.numpy().astype(np.float64) for array in (gaps, approaches))
    return found, closing


@wp.kernel
def follow(first: int, past: entries, gradient: entries, contact: entries, ball: entries):
    """The ball that a phyxel touches with follows its deformation, slowly while it does (physics 15.1)."""
    i = first + wp.tid()
    share = wp.where(contact[i] > 0, type(ball[i][0, 0])(FOLLOWING), type(ball[i][0, 0])(1.0))
    ball[i] = ball[i] + share * (deformed(past[i], gradient[i]) - ball[i])
