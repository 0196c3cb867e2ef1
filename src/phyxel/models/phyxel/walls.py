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
TAKEN_BACK = wp.constant(5.0e-2)
"""τ [s]: time in which a slip would be taken back if nothing but friction acted; several implicit steps."""
NOTICED = wp.constant(1.0e-3)
"""Share of friction by which what holds may hold more than Coulomb's law lets it."""
MOST_TURNS = wp.constant(2)
"""How often what holds may come to slide, or the other way about, in a stage."""
OUT_WITHIN = wp.constant(1.0e-2)
"""Time [s] that a phyxel takes at least to come out of a depth that was there before the step: in a shorter step it
would be shot out."""
FOLLOWING = wp.constant(0.1)
"""Share of a step by which the ball of a phyxel that touches follows its deformation: at once, each moves the other."""


@wp.func
def slowest(dt: Any):
    """The sliding speed, in spacings per second, below which friction holds in a step of dt (physics 15.3)."""
    return wp.min(type(dt)(CREEP), type(dt)(CREEP_WAY) / dt)


@wp.func
def way_of(e: Any, least: Any, before: Any, rubbed: bool, friction: Any, most: Any, turns: int):
    """How something rubs that the last solve has led to slide with e: the way it slides, of length 1, or 0 where
    friction holds; the speed which friction is `rub` over; and how often it has changed between the two in this stage
    (physics 15.3).

    What went the way `before` goes on while e is that way, and faster than `least`. What held does until the impulse
    of its `friction` in the last solve is above `most`. What has not `rubbed` goes by e. What changes a second time is
    found as a stiffness that comes nearer from pass to pass, most/|e|, lest it change for ever."""
    zero = type(least)(0.0)
    length = wp.length(e)
    slides = zero * e
    speed = least
    if turns < MOST_TURNS:
        if not rubbed or most <= zero:
            if length > least:
                slides = e / length
        elif wp.length_sq(before) > zero:
            if length > least and wp.dot(e, before) > zero:
                slides = e / length
            else:
                turns += 1
        elif wp.length(friction) > (type(least)(1.0) + type(least)(NOTICED)) * most:
            slides = friction / wp.length(friction)
            turns += 1
    if turns >= MOST_TURNS:
        slides = zero * e
    if turns >= MOST_TURNS or wp.length_sq(slides) > zero:
        speed = wp.max(length, least)
    return slides, speed, turns


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
    """friction over sliding speed, where it slides across the way it goes only"""
    way: wp.array
    """the way it slides, vectors of length 1, or 0 where friction holds"""
    load: wp.array
    """impulse of friction of what slides, against the way it goes, vectors"""
    slip: wp.array
    """how far it has slipped since it touched, but no farther than friction gives way, in spacings, vectors"""
    pull: wp.array
    """slip over τ: the sliding that friction takes the slip for [1/s], vectors"""
    turns: wp.array
    """how often it has come to slide, or to hold, in this stage; int32"""


@wp.kernel
def meet_colliders(
    first: int, X: entries, reach: entries, body: entries, hold: entries, colliders: Any, dt: entries, base: entries,
    v_old: entries, ball: entries, slip: entries, v: entries, contact: entries, normal: entries, wall: entries,
    rest: entries, rub: entries, way: entries, load: entries, pull: entries, turns: entries, changed: entries,
):  # fmt: skip
    """Which phyxels a collider holds off, the velocity across its surface that makes, and how they rub on it
    (physics 15.3).

    Colliders are where they will be at the end of the step. Where the surface is curved, each Newton iteration takes it
    for flat about where the last one led. A phyxel that meets several keeps to the one it is deepest in.
    `rest` is the force that the last solve left for the collider to take up: its impulse is minus h times that.
    Coulomb's friction against the sliding e = (v − wall + pull)_t is a load of μ·impulse where it slides, and implicit
    across its way, −μ·impulse/|e|; where |e| is below CREEP, or friction has turned it back, it holds by −rub·e, rub
    being μ·impulse/CREEP. What holds at rest is the slip. `wall` is the velocity of the collider where it is touched.
    A phyxel that was let go in this step and caught again is kept till its end: else the contacts of a stiff body can
    change for ever.
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
    grip = zero
    rise = zero
    touched = bool(False)
    deepest = type(zero)(1.0e30)
    x = X[i] + base[i] + h * v[i]
    k = int(0)
    while k < colliders.count:
        row = body[i] * colliders.count + k
        arm = x + colliders.place[row]
        w = colliders.drift[row] + wp.cross(colliders.spin[row], arm)
        way_on = h * (v[i] - w)
        turn = colliders.turn[row]
        size = colliders.size[row]
        d, n = distance_to(colliders.kind[k], turn, size, colliders.layout[k], colliders.values, arm, way_on)
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
            grip = colliders.friction[k]
            touched = held
        k += 1
    if (state > 0) != (was > 0):
        changed[0] = 1
    if state == 1:
        v[i] = v[i] + (rise - wp.dot(normal[i], v[i] - wall[i])) * normal[i]
        if was == LET_GO or was == CAUGHT_AGAIN:  # noqa: SIM109 (a kernel knows no tuples)
            state = CAUGHT_AGAIN
    elif was != 0:
        state = LET_GO
    contact[i] = state
    rubbed = rub[i] > zero
    rub[i] = zero
    load[i] = zero * load[i]
    if state <= 0:
        return
    n = normal[i]
    least = slowest(h)
    back = slip[i] / wp.max(h, type(h)(TAKEN_BACK))
    pull[i] = back - wp.dot(back, n) * n
    e = v[i] - wall[i] + pull[i]
    e = e - wp.dot(e, n) * n
    most = zero
    if touched:
        most = grip * wp.max(-h * wp.dot(n, rest[i]), zero)
    friction = h * (rest[i] - wp.dot(rest[i], n) * n)
    goes, speed, changes = way_of(e, least, way[i], rubbed, friction, most, turns[i])
    if changes != turns[i]:
        changed[0] = 1
    turns[i] = changes
    way[i] = goes
    load[i] = most * goes
    rub[i] = most / speed


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
def follow(
    first: int, whole: entries, past: entries, gradient: entries, u: entries, ahead: entries, contact: entries,
    normal: entries, wall: entries, slip: entries, ball: entries,
):  # fmt: skip
    """After a step of `whole` (1,) [s]: how far phyxels have slipped on what they touch, and the ball that each touches
    with follows its deformation, slowly while it does (physics 15.1, 15.3)."""
    i = first + wp.tid()
    slipped = slip[i] + ahead[i] - u[i] - whole[0] * wall[i]
    slipped = slipped - wp.dot(slipped, normal[i]) * normal[i]
    most = type(whole[0])(TAKEN_BACK * CREEP)
    slipped = slipped * wp.min(type(most)(1.0), most / wp.max(wp.length(slipped), most * type(most)(1.0e-3)))
    slip[i] = wp.where(contact[i] > 0, slipped, type(most)(0.0) * slipped)
    share = wp.where(contact[i] > 0, type(ball[i][0, 0])(FOLLOWING), type(ball[i][0, 0])(1.0))
    ball[i] = ball[i] + share * (deformed(past[i], gradient[i]) - ball[i])
