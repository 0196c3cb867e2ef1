"""Holds: which points of a body are held, where they go and how they turn."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from phyxel.errors import PhyxelError
from phyxel.mls.neighbours import nearest
from phyxel.mls.visibility import seen_pairs
from phyxel.models.protocol import Hold
from phyxel.region import Vector, as_vector
from phyxel.rotation import euler, spin_between, spun

if TYPE_CHECKING:
    from phyxel.body.body import Body

Floats = NDArray[np.float64]
Keyframes = Sequence[tuple[float, Vector]]
HoldMotion = Vector | Callable[[float], Vector] | Keyframes

PICKED = 1.5
"""How far around a picked surfel nodes are taken hold of, in spacings."""
FACE = 3
"""Nodes that can span a face: of a support, one between them is held with them."""
DRAG_TIME = 1 / 60
"""Time in which a drag by a fixed displacement or turn gets there [s]."""


class OpenPath:
    """Keyframes that come to be while they are followed: straight from nothing at the start to one after the other,
    and on at the last. A drag along them goes the same way to the bit as one along all of them, known from the start,
    as long as none is behind the clock when it comes."""

    def __init__(self, start: float) -> None:
        self.keys: list[tuple[float, tuple[float, float, float]]] = [(start, (0.0, 0.0, 0.0))]
        """times [s] and how far it has gone then [m], or by how much it has turned [degrees about x, y, z]"""

    def to(self, time: float, place: Vector) -> None:
        """Go on, to be there at a time [s] after the last one."""
        x, y, z = as_vector("drag", place).tolist()
        if not time > self.keys[-1][0]:
            raise PhyxelError(f"drag: to {place} until {time:g} s: give a time after {self.keys[-1][0]:g} s")
        self.keys.append((time, (x, y, z)))

    def at(self, time: float) -> Floats:
        """How far it has gone at a time [s], shape (3,) [m]."""
        times, places = self.around(time)
        return np.array([np.interp(time, times, along) for along in places.T])

    def around(self, time: float) -> tuple[Floats, Floats]:
        """Times [s] of the one or two keyframes around a time, and what they say, shape (k, 3)."""
        after = bisect_left(self.keys, time, key=lambda key: key[0])
        near = self.keys[max(after - 1, 0) : after + 1]
        return np.array([key[0] for key in near]), np.array([key[1] for key in near])


@dataclass(eq=False)
class Handle:
    """A hold on points of a body, as `fix`, `drag` and `attach` give it and `release` takes it. They go by `to` and
    turn about their middle, or the joint of a bone, from where they were taken hold of.

    >>> bar = px.Body(px.load("bar", points=500), nodes=64)
    >>> tip = bar.drag(px.Box((0.8, -1, -1), (1, 1, 1)), to=[(1.0, (0, 0.1, 0))])  # 0.1 m up within 1 s
    >>> tip.pose(0.5)[0]
    array([0.  , 0.05, 0.  ])
    >>> bar.release(tip)
    """

    body: Body
    """that is held"""
    nodes: NDArray[np.int64]
    """those that are held; none where a place of the surface is"""
    points: Floats
    """held points, in reference positions [m], shape (k, 3): of the nodes, if there are any"""
    taken: Floats
    """where that was when it was taken hold of [m], shape (k, 3)"""
    to: Callable[[float], Floats]
    """how far what it turns about goes [m], at a time [s]"""
    turn: Callable[[float], Floats]
    """rotation, 3 × 3, at a time [s]"""
    turns: bool
    """whether it ever does"""
    follows: bool
    """whether its pose is to be looked at in every step"""
    still: bool = False
    """whether it never goes anywhere"""
    about: Floats | None = None
    """what it turns about, where it was then [m], shape (3,); its middle if left out"""
    moved: Floats = field(default_factory=lambda: np.zeros(3))
    """how far the middle has gone [m], shape (3,)"""
    grip: object = field(default_factory=object)
    """what it shares with the holds that came of it when its body fell apart"""

    def dealt_out(self, whose: Sequence[tuple[Body, NDArray[np.int64]]]) -> list[tuple[Body, Handle]]:
        """This hold when its body has fallen into some with these nodes of it: one on each that it has hold of, this
        one on the first. They go where they would have gone together."""
        if not len(self.nodes):
            self.body = whose[0][0]
            return [(self.body, self)]
        about = self.taken.mean(axis=0) if self.about is None else self.about
        held = [(body, np.isin(self.nodes, nodes), nodes) for body, nodes in whose]
        parts = [
            replace(
                self,
                body=body,
                nodes=np.searchsorted(nodes, self.nodes[own]),
                points=self.points[own],
                taken=self.taken[own],
                about=about,
            )
            for body, own, nodes in held
            if own.any()
        ]
        self.__dict__.update(parts[0].__dict__)
        return [(part.body, part) for part in [self, *parts[1:]]]

    def in_units(self, centre: Floats, unit: float) -> Hold:
        """What is held, in lengths of `unit` [m] from a `centre` [m], shape (3,)."""
        turns, fills = self.turns and len(self.points) == 1, self.still and len(self.nodes) >= FACE
        return Hold((self.points - centre) / unit, self.still, turns, fills)

    def pose(self, time: float) -> tuple[Floats, Floats]:
        """How far what it turns about goes [m], and how it turns, 3 × 3, at a time [s]."""
        return self.to(time), self.turn(time)

    def goals(self, time: float) -> Floats:
        """Where the points are to be at a time [s]: m + to + R (x − m) about m, their middle or a joint [m], (k, 3)."""
        if self.still:
            return self.taken
        shift, rotation = self.pose(time)
        middle = self.taken.mean(axis=0) if self.about is None else self.about
        return middle + shift + (self.taken - middle) @ rotation.T


def way_of(label: str, to: HoldMotion | OpenPath, start: float) -> Callable[[float], Floats]:
    """Displacement [m] at a time [s], for a drag from `start` [s] on: straight from here through all keyframes, and on
    at the last."""
    if isinstance(to, OpenPath):
        return to.at
    if callable(to):
        as_vector(label, to(start))
        return lambda time: as_vector(label, to(time))
    times, places = _keys(label, to, start)
    return lambda time: np.array([np.interp(time, times, along) for along in places.T])


def turn_of(label: str, turn: HoldMotion | OpenPath | None, start: float) -> Callable[[float], Floats]:
    """Rotation, 3 × 3, at a time [s], for degrees about x, y, z from `start` [s] on: evenly from one keyframe to the
    next, and on at the last."""
    if turn is None:
        return lambda time: np.eye(3)
    if isinstance(turn, OpenPath):
        return lambda time: _rotation(time, *turn.around(time))
    if callable(turn):
        as_vector(label, turn(start), "degrees")
        return lambda time: euler(as_vector(label, turn(time), "degrees"))
    times, turns = _keys(label, turn, start)
    return lambda time: _rotation(time, times, turns)


def _rotation(time: float, times: Floats, turns: Floats) -> Floats:
    """At a time [s], between keyframes at `times` (k,) that are turned by `turns` (k, 3) [degrees]; 3 × 3."""
    after = int(np.searchsorted(times, time))
    if after == 0 or after == len(times):
        return euler(turns[min(after, len(times) - 1)])
    share = (time - times[after - 1]) / (times[after] - times[after - 1])
    return spun(euler(turns[after - 1]), share * _spin(turns[after - 1], turns[after]))


def stays(to: HoldMotion | OpenPath, turn: HoldMotion | OpenPath | None) -> bool:
    """Whether a drag goes nowhere. One along keyframes is a hand, not a support, even where it rests."""
    if turn is not None or callable(to) or isinstance(to, OpenPath) or _is_keyed(to):
        return False
    return not np.any(to)  # type: ignore[arg-type]


def _is_keyed(motion: Vector | Keyframes) -> bool:
    return isinstance(motion, Sequence) and len(motion) > 0 and all(isinstance(entry, Sequence) for entry in motion)


def _keys(label: str, motion: Vector | Keyframes, start: float) -> tuple[Floats, Floats]:
    """Times [s], shape (k,), and the values given for them, shape (k, 3), from zero at the start on."""
    keyframes: Keyframes = motion if _is_keyed(motion) else [(start + DRAG_TIME, motion)]  # type: ignore
    if any(len(entry) != 2 for entry in keyframes):
        raise PhyxelError(f"{label}: give keyframes as pairs of a time [s] and three numbers")
    times = np.array([start, *(time for time, _ in keyframes)], np.float64)
    values = np.array([np.zeros(3), *(as_vector(label, value) for _, value in keyframes)])
    if times[1] == times[0] and not values[1].any():
        times, values = times[1:], values[1:]
    if not (np.isfinite(times).all() and (np.diff(times) > 0).all()):
        raise PhyxelError(
            f"{label}: keyframes at {times[1:].tolist()} s: give times that grow, all after the start "
            f"at {start:g} s; nothing gets anywhere at once"
        )
    return times, values


def _spin(one: Floats, other: Floats) -> Floats:
    """The rotation vector from one turn [degrees] to another [rad], shape (3,): about one axis as far as is asked for,
    also many times around; else the short way."""
    if np.count_nonzero((one != 0) | (other != 0)) <= 1:
        return np.asarray(np.radians(other - one))
    return spin_between(euler(one), euler(other))


def picked(body: Body, at: int | Vector, radius: float | None) -> NDArray[np.int64]:
    """See `Body.pick`."""
    if radius is not None and not radius > 0:
        raise PhyxelError(f"{body.name}: pick: radius = {radius}: give a length above 0 m")
    place = surfel_at(body, at)
    away = np.linalg.norm((body.positions if body.has_melted else body.birth) - place, axis=1)
    close = np.flatnonzero(away <= (PICKED * body.born.unit if radius is None else radius))
    if not body.has_melted:
        one = np.zeros(len(close), np.int64)
        close = close[seen_pairs(body.shape.in_units(place[None]), body.birth_places, one, close, body.sees)]
    return close if len(close) else np.array([away.argmin()])


def surfel_at(body: Body, at: int | Vector) -> NDArray[np.float64]:
    """Where a surfel that `Body.pick` can be asked for lies [m], shape (3,)."""
    skin = body.surface.carried.positions if body.has_melted else body.placed_cloud()
    if not isinstance(at, int | np.integer):
        at = int(nearest(as_vector(f"{body.name}: pick", at)[None], skin, 1)[1][0, 0])
    if not -len(skin) <= at < len(skin):
        raise PhyxelError(f"{body.name}: surfel {at} of {len(skin)}; they are numbered from 0 to {len(skin) - 1}")
    return skin[at]
