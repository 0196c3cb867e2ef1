"""Where bodies touch, or may within a step (physics 15.12): places of one in or near another, or a collider.

A place x of a body is taken back into the reference shape of the other, beside the nearest place of its outline, and
measured by the distance of its solid there. It then goes along its own surface to where that faces the other: a ball
does not hobble over the places it was given.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from phyxel.contact.touch import ColliderQuery
from phyxel.meeting.outline import PLANES
from phyxel.meeting.party import BULGE, Party, SeenBody
from phyxel.rotation import axes_about

Floats = NDArray[np.float64]
Indices = NDArray[np.int64]

AROUND = 6
"""Planes around a place that say whether it is outside."""
DEEPEST = 1.0
"""Spacings that a place may be inside another body: a deeper one is on its far side."""
FACING = -0.25
"""Cosine between normals above which two surfaces lie beside each other, not against each other: else the side of
a body that slides would stumble over places of the one below."""
ROUNDS = 3
"""Steps along a surface to where it faces another."""
MOST_RIGID, MOST = 12, 120
"""Contacts of one body with another, or with a collider: of rigid ones more only say the same again; what bends, and is
held at other places in every step, would shiver."""
TOUCHING, APART = 0.02, 0.1
"""Gap above the least [spacings] below which contacts are chosen first, and how far apart they are at least."""
NEARER = 1e-6
"""Spacings by which a place has to be nearer to be taken for another: on flat faces rounding would decide."""
FLATTEST = 1e3
"""Largest radius of curvature that counts [spacings]."""
COLLIDER = -1


@dataclass(frozen=True)
class BodyContacts:
    """k places where a body may touch another, or a collider. Lengths in metres."""

    one: int
    other: int
    """number of the other body, or COLLIDER"""
    rows: tuple[csr_array, csr_array | None]
    """φ of the two bodies at the same places, shapes (k, n)"""
    place: Floats
    """shape (k, 3)"""
    axes: Floats
    """normal out of the other and two tangents, shape (k, 3, 3)"""
    gap: Floats
    """at the end of the step without impulses, shape (k,)"""
    wall: Floats
    """velocity of a collider, (k, 3) [m/s]; 0 for a body"""
    friction: Floats
    """shape (k,)"""
    restitution: Floats
    """shape (k,)"""
    key: NDArray[np.int64]
    """what tells a contact from others: the bodies' numbers, the collider's, and the place's, shape (k, 4)"""

    def part(self, which: Indices) -> BodyContacts | None:
        """Some of them, if there are any."""
        if len(which) == len(self.gap) or not len(which):
            return self if len(which) else None
        one, other = self.rows
        rows = csr_array(one[which]), None if other is None else csr_array(other[which])
        each = ("place", "axes", "gap", "wall", "friction", "restitution", "key")
        return BodyContacts(self.one, self.other, rows, *(getattr(self, name)[which] for name in each))


def contacts_between(parties: Sequence[SeenBody], a: int, b: int, margin: float) -> list[BodyContacts]:
    """Contacts of two bodies that are nearer than a margin [m]."""
    one, other = parties[a], parties[b]
    if (one.lower - margin > other.upper).any() or (other.lower - margin > one.upper).any():
        return []
    if not (one.balls or other.balls) and not _within_reach(one, other, margin):
        return []
    if one.balls is not None:
        found = [_balls_near(parties, a, b, margin)]
    elif other.balls is not None:
        found = [_balls_near(parties, b, a, margin)]
    else:
        found = [_places_near(parties, a, b, margin), _places_near(parties, b, a, margin)]
    return [contacts for contacts in found if contacts is not None]


def _within_reach(one: SeenBody, other: SeenBody, margin: float) -> bool:
    """Whether the boxes around the surfaces of two bodies are nearer than a margin [m]."""
    (lower, upper), (low, high) = one.box, other.box
    return bool((lower - margin < high).all() and (low - margin < upper).all())


def _places_near(parties: Sequence[SeenBody], a: int, b: int, margin: float) -> BodyContacts | None:
    """Places of body a in or near body b."""
    one, other = parties[a], parties[b]
    places = one.skin[: one.outline.points]
    lower, upper = other.box
    points = np.flatnonzero(((places > lower - margin) & (places < upper + margin)).all(axis=1))
    if not len(points):
        return None
    places = places[points]
    near = nearest_places(other, places)
    height = np.einsum("ka,ka->k", other.normals[near], places - other.skin[near])
    facing = np.einsum("ka,ka->k", other.normals[near], one.normals[points])
    coarse = 0.5 * (one.unit + other.unit)  # what planes and single places may be off
    close = (height < margin + coarse) & (height > -DEEPEST * other.unit - coarse) & (facing < FACING + 0.5)
    points, places, near = points[close], places[close], near[close]
    if not len(points):
        return None
    found = sunk(one, points, lambda places: other.measured(places, near), margin)
    own, places, gap, normal, beside = found.own, found.places, found.gap, found.normal, found.beside
    facing = np.einsum("ka,ka->k", one.normals[points], normal)
    close = (gap < margin) & (gap > -DEEPEST * min(one.unit, other.unit)) & (facing < FACING)
    if not close.any():
        return None
    kept = np.flatnonzero(close)
    most = MOST_RIGID if one.stiff and other.stiff else MOST
    kept = kept[spread_out(places[kept], gap[kept], min(one.unit, other.unit), most)]
    points, near, own, beside = points[kept], near[kept], own[kept], beside[kept]
    count = len(kept)
    return BodyContacts(
        a, b, (one.outline.rows(points, own), other.outline.rows(near, beside)), places[kept],
        axes_about(normal[kept]), gap[kept], np.zeros((count, 3)),
        np.full(count, math.sqrt(one.friction * other.friction)),
        np.full(count, max(one.restitution, other.restitution)),
        np.stack([np.full(count, a), np.full(count, b), np.full(count, COLLIDER), points], axis=1),
    )  # fmt: skip


def nearest_places(other: SeenBody, places: Floats) -> Indices:
    """The place of an outline that each of (k, 3) places is to be measured from: the nearest. Without a distance of
    its own, that of the planes around which it is farthest out of: a place outside of one face of an edge is outside;
    planes farther around say nothing about it."""
    if other.outline.measure is not None:
        return other.tree.query(places)[1].astype(np.int64)
    count = min(AROUND, len(other.skin))
    away, near = (found.reshape(len(places), count) for found in other.tree.query(places, count))
    height = np.einsum("kca,kca->kc", other.normals[near], places[:, None] - other.skin[near])
    height[away**2 > away[:, :1] ** 2 + (PLANES * other.unit) ** 2] = -np.inf
    return np.take_along_axis(near, np.argmax(height, axis=1)[:, None], axis=1)[:, 0].astype(np.int64)


def _balls_near(parties: Sequence[SeenBody], a: int, b: int, margin: float) -> BodyContacts | None:
    """Balls of body a in or near body b."""
    one, other = parties[a], parties[b]
    assert one.balls is not None
    reach = margin + one.balls
    balls = np.flatnonzero(((one.x > other.lower - reach) & (one.x < other.upper + reach)).all(axis=1))
    if not len(balls):
        return None
    near = other.tree.query(one.x[balls])[1].astype(np.int64)
    gap, normal, beside = other.measured(one.x[balls], near)
    close = np.flatnonzero((gap < reach) & (gap > -DEEPEST * other.unit))
    if not len(close):
        return None
    balls, near, count = balls[close], near[close], len(close)
    rows = csr_array((np.ones(count), balls, np.arange(count + 1)), (count, len(one.x)))
    return BodyContacts(
        a, b, (rows, other.outline.rows(near, beside[close])), one.x[balls], axes_about(normal[close]),
        gap[close] - one.balls, np.zeros((count, 3)), np.full(count, math.sqrt(one.friction * other.friction)),
        np.full(count, max(one.restitution, other.restitution)),
        np.stack([np.full(count, a), np.full(count, b), np.full(count, COLLIDER), balls], axis=1),
    )  # fmt: skip


Measured = tuple[Floats, Floats, Floats]
"""Signed distances (k,) of places from a surface, normals (k, 3), and where on it that is, or how it moves, (k, 3)"""


class Surface(Protocol):
    """Places of outlines, by their numbers (k,): of one body, or of several."""

    @property
    def knows_its_solid(self) -> bool:
        """Whether they can go along the surface: it is that of a solid, and does not bend."""

    def skin_at(self, points: Indices) -> Floats:
        """Where they are [m], shape (k, 3)."""

    def normals_at(self, points: Indices) -> Floats:
        """Normals there, shape (k, 3)."""

    def unit_at(self, points: Indices) -> float | Floats:
        """Spacings of their bodies [m]."""

    def measure_at(self, points: Indices, beside: Floats) -> tuple[Floats, Floats]:
        """How far what lies beside them, (k, 3) in the reference shape, is from the solid, (k,), and which way that
        grows, (k, 3)."""

    def pulled_back(self, places: Floats, points: Indices) -> Floats:
        """How far beside them places (k, 3) [m] are, in the reference shape, shape (k, 3)."""

    def carried(self, points: Indices, beside: Floats) -> Floats:
        """Where those are that lie so far beside them in the reference shape [m], shape (k, 3)."""

    def turned_out(self, points: Indices, normals: Floats) -> tuple[Floats, Floats]:
        """Normals (k, 3) of the reference shape beside them in the present one, (k, 3), and how much longer they
        became, (k,)."""


@dataclass(frozen=True)
class Sunk:
    """Places of a body's surface that are nearest to another, each beside one of its outline."""

    own: Floats
    """how far beside, in the reference shape, shape (k, 3)"""
    places: Floats
    """shape (k, 3)"""
    gap: Floats
    """shape (k,)"""
    normal: Floats
    """out of the other, shape (k, 3)"""
    beside: Floats
    """what the other's `measured` said besides, shape (k, 3)"""


def sunk(one: Surface, points: Indices, measured: Callable[[Floats], Measured], margin: float | Floats) -> Sunk:
    """From places of the outline (k,) along the surface to where it faces what it is near, if that leads nearer to it;
    those of a body that is not within a margin [m] for sure stay where they are.

    There the two normals are opposite. How far that is goes with the radius of curvature: a spacing at first, then what
    the normal has turned by on the way. A flat face, and a corner, stay where they are."""
    own, places, unit = np.zeros((len(points), 3)), one.skin_at(points), one.unit_at(points)
    gap, normal, beside = measured(places)
    if not one.knows_its_solid or (gap > margin + BULGE * unit).all():
        return Sunk(own, places, gap, normal, beside)
    radius, facing = np.broadcast_to(unit, gap.shape), one.normals_at(points)
    for _ in range(ROUNDS):
        askew = _across(facing, normal)
        there = one.pulled_back(places - radius[:, None] * askew, points)
        distance, slope = one.measure_at(points, there)
        there = _within(there - distance[:, None] * slope)
        at = one.carried(points, there)
        new_gap, new_normal, new_beside = measured(at)
        turned = one.turned_out(points, slope)[0]
        left = np.linalg.norm(askew - _across(turned, new_normal), axis=1)
        radius = np.linalg.norm(at - places, axis=1) / np.maximum(left, 1e-12)
        radius = np.minimum(radius, FLATTEST * unit)
        better = new_gap < gap - NEARER * unit
        if not better.any():
            break
        places, normal, own = (
            np.where(better[:, None], new, old) for new, old in ((at, places), (new_normal, normal), (there, own))
        )
        beside, facing = (np.where(better[:, None], new, old) for new, old in ((new_beside, beside), (turned, facing)))
        gap = np.where(better, new_gap, gap)
    return Sunk(own, places, gap, normal, beside)


def _across(facing: Floats, normal: Floats) -> Floats:
    """What a normal is from being opposite to another, along the surface, (k, 3)."""
    return facing - np.einsum("ka,ka->k", facing, normal)[:, None] * normal


def _within(beside: Floats) -> Floats:
    """At most a spacing beside a place: from there on another place of the outline is nearer."""
    return beside / np.maximum(np.linalg.norm(beside, axis=1, keepdims=True), 1.0)


def contacts_with_colliders(
    parties: Sequence[Party], bodies: Sequence[int], around: ColliderQuery, near: float
) -> list[BodyContacts]:
    """Contacts of some bodies with colliders nearer than so many spacings, where they are at the end of the step;
    `around` tells of colliders in metres about the world's origin: all places are asked for at once."""
    bodies = [a for a in bodies if parties[a].around is not None]
    if not around.count or not bodies:
        return []
    places = [parties[a].skin[: parties[a].outline.points] for a in bodies]
    every, which = (part.ravel() for part in np.indices((around.count, sum(map(len, places)))))
    gap = around.feel_each(np.concatenate(places)[which], every).gap.reshape(around.count, -1)
    found, start = [], 0
    for a, own in zip(bodies, places, strict=True):
        # The nearest place may be between those of the outline.
        close = gap[:, start : start + len(own)] < (near + 0.5) * parties[a].unit
        start += len(own)
        for k in np.flatnonzero(close.any(axis=1)).tolist():
            found.append(_places_on(parties[a], a, k, np.flatnonzero(close[k]), near * parties[a].unit))
    return [contacts for contacts in found if contacts is not None]


def _places_on(one: Party, a: int, collider: int, points: Indices, margin: float) -> BodyContacts | None:
    """Places of a body that are near one of its colliders."""
    around, which = one.around, np.full(len(points), collider)
    assert around is not None

    def measured(places: Floats) -> tuple[Floats, Floats, Floats]:
        touch = around.feel_each((places - one.origin) / one.unit, which)
        return one.unit * touch.gap, touch.normal, touch.velocity

    found = sunk(one, points, measured, margin)
    own, places, gap = found.own, found.places, found.gap
    close = np.flatnonzero((gap < margin) & (gap > -DEEPEST * one.unit))
    if not len(close):
        return None
    kept = close[spread_out(places[close], gap[close], one.unit, MOST_RIGID if one.stiff else MOST)]
    count, (friction, restitution) = len(kept), around.rubs(collider)
    return BodyContacts(
        a, COLLIDER, (one.outline.rows(points[kept], own[kept]), None), places[kept], axes_about(found.normal[kept]),
        gap[kept], one.unit * found.beside[kept], np.full(count, friction),
        np.full(count, max(restitution, one.restitution)),
        np.stack([np.full(count, a), np.full(count, COLLIDER), np.full(count, collider), points[kept]], axis=1),
    )  # fmt: skip


def spread_out(places: Floats, gap: Floats, unit: float, most: int) -> Indices:
    """At most so many of the places (k, 3), each the farthest from those before and none on top of another, those that
    touch first; ascending. `unit` is a spacing [m]."""
    chosen: list[int] = []
    distance = np.full(len(places), np.inf)
    touching = gap < gap.min() + TOUCHING * unit
    for group in (np.flatnonzero(touching), np.flatnonzero(~touching)):
        while len(chosen) < most and len(group) and distance[group].max() > (APART * unit) ** 2:
            k = int(group[np.argmax(distance[group])])
            chosen.append(k)
            distance = np.minimum(distance, np.square(places - places[k]).sum(axis=1))
    return np.sort(np.array(chosen))
