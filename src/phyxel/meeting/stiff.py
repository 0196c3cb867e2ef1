# mypy: disable-error-code="valid-type,no-untyped-def,index"
"""Rigid bodies at a moment, all as one (physics 15.12): where they touch each other and colliders is found at once.

Places of each are taken back into the reference shape of the other, as `contacts` does with two bodies; what is the
same in every step, outlines and boxes around them, turns with the body.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import warp as wp
from numpy.typing import NDArray
from scipy.sparse import csr_array

from phyxel import device as dev
from phyxel.contact.touch import ColliderQuery
from phyxel.device import bools, float64s
from phyxel.meeting.apart import int64s
from phyxel.meeting.contacts import APART, COLLIDER, DEEPEST, FACING, MOST_RIGID, TOUCHING, Measured, Sunk, sunk
from phyxel.meeting.outline import Outline
from phyxel.meeting.party import BULGE, SeenBody
from phyxel.meeting.solid_distance import SolidDistance, SolidDistances, along
from phyxel.meeting.table import ContactTable
from phyxel.rotation import axes_about

Floats = NDArray[np.float64]
Indices = NDArray[np.int64]


wp.set_module_options(dev.KERNEL_OPTIONS)


@wp.kernel
def find_within(
    first: int, starts: int64s, arm: float64s, a: int64s, way: float64s, turn: float64s, lower: float64s,
    upper: float64s, begin: int64s, near: bools,
):  # fmt: skip
    """Which places of a body are in the box around another, in that one's frame (physics 15.12)."""
    pair = first + wp.tid()
    body = a[pair]
    for k in range(int(starts[body + wp.int64(1)] - starts[body])):
        place = int(starts[body]) + k
        within = bool(True)
        for axis in range(3):
            there = way[3 * pair + axis]
            for other in range(3):
                there += arm[3 * place + other] * turn[9 * pair + 3 * other + axis]
            within = within and there > lower[3 * pair + axis] and there < upper[3 * pair + axis]
        near[int(begin[pair]) + k] = within


class StiffOutlines:
    """What of rigid bodies, that are still whole, others can touch, one behind the other."""

    def __init__(self, outlines: Sequence[Outline], nodes: Sequence[Floats]) -> None:
        """`nodes` (4, 3) are the middle of each, and places beside it along three axes, in its reference shape."""
        self.of = list(outlines)
        each = [one.X[: one.points] - middle[0] for one, middle in zip(outlines, nodes, strict=True)]
        self.count = np.array([len(one) for one in each])
        self.first = np.concatenate([[0], np.cumsum(self.count)])
        self.body = np.repeat(np.arange(len(each)), self.count)
        self.arm = np.concatenate(each)
        """places from the middle, in spacings, shape (m, 3)"""
        self.normal = np.concatenate([one.N[: one.points] for one in outlines])
        self.middle = np.array([middle[0] for middle in nodes])
        self.lower, self.upper = (
            np.array([getattr(one.X - middle[0], end)(axis=0) for one, middle in zip(outlines, nodes, strict=True)])
            for end in ("min", "max")
        )
        self.lower, self.upper = self.lower - BULGE, self.upper + BULGE
        """corners of the box around the surface, from the middle, shape (n, 3)"""
        self.radius = np.linalg.norm(np.maximum(-self.lower, self.upper), axis=1)
        self.solids = SolidDistances([one.measure for one in outlines if isinstance(one.measure, SolidDistance)])


class StiffBodies:
    """Rigid bodies at a moment. Lengths in metres about the world's origin, but in spacings from the middle."""

    knows_its_solid = True

    def __init__(
        self, outlines: StiffOutlines, parties: Sequence[SeenBody], numbers: Sequence[int], first: Indices
    ) -> None:
        """`numbers` are theirs among all, whose coefficients are one behind the other from `first` (n + 1,) on."""
        self.outlines, self.numbers, self._first = outlines, np.array(numbers), first
        x = np.array([one.x for one in parties])
        self.unit, self.friction, self.restitution = (
            np.array([getattr(one, name) for one in parties]) for name in ("unit", "friction", "restitution")
        )
        self.middle = x[:, 0]
        self._turn = (x[:, 1:] - x[:, :1]) / self.unit[:, None, None]
        """R, transposed, shape (n, 3, 3)"""
        self._back = np.swapaxes(self._turn, 1, 2)
        self.skin = self.middle[outlines.body] + self.unit[outlines.body, None] * along(
            outlines.arm, self._turn[outlines.body]
        )
        """shape (m, 3)"""

    # What `sunk` asks, of places by their numbers

    def skin_at(self, points: Indices) -> Floats:
        return self.skin[points]

    def normals_at(self, points: Indices) -> Floats:
        return self._turned(self.outlines.body[points], self.outlines.normal[points])

    def unit_at(self, points: Indices) -> Floats:
        return self.unit[self.outlines.body[points]]

    def measure_at(self, points: Indices, beside: Floats) -> tuple[Floats, Floats]:
        body = self.outlines.body[points]
        return self.outlines.solids(body, self.outlines.middle[body] + self.outlines.arm[points] + beside)

    def pulled_back(self, places: Floats, points: Indices) -> Floats:
        body = self.outlines.body[points]
        return along(places - self.skin[points], self._back[body]) / self.unit[body, None]

    def carried(self, points: Indices, beside: Floats) -> Floats:
        body = self.outlines.body[points]
        return self.skin[points] + self.unit[body, None] * along(beside, self._turn[body])

    def turned_out(self, points: Indices, normals: Floats) -> tuple[Floats, Floats]:
        body = self.outlines.body[points]
        return self._turned(body, normals), 1 / self.unit[body]

    # Places near bodies, by numbers of these

    def _turned(self, body: Indices, vectors: Floats) -> Floats:
        return along(vectors, self._turn[body])

    def arms(self, body: Indices, places: Floats) -> Floats:
        """Where places (k, 3) are from the middles of bodies (k,), in their reference shapes, (k, 3)."""
        return along(places - self.middle[body], self._back[body]) / self.unit[body, None]

    def gaps(self, body: Indices, places: Floats) -> Floats:
        """How far places (k, 3) are from the surfaces of bodies (k,), (k,)."""
        out = self.outlines
        return self.unit[body] * out.solids.distance(body, out.middle[body] + self.arms(body, places))

    def measured(self, body: Indices, places: Floats) -> Measured:
        """The same, with normals there (k, 3), and where that is from the middle (k, 3)."""
        out, arm = self.outlines, self.arms(body, places)
        distance, slope = out.solids(body, out.middle[body] + arm)
        return self.unit[body] * distance, self._turned(body, slope), arm

    # Contacts

    def contacts(self, pairs: Indices, margin: Floats) -> ContactTable | None:
        """Of pairs (p, 2) of them that are nearer than a margin (p,) [m]."""
        if not len(pairs):
            return None
        out = self.outlines
        a, b = np.concatenate([pairs, pairs[:, ::-1]]).T
        margin = np.tile(margin, 2)
        way = self.arms(b, self.middle[a])
        beyond = np.linalg.norm(np.maximum(np.maximum(out.lower[b] - way, way - out.upper[b]), 0.0), axis=1)
        near = self.unit[b] * beyond < self.unit[a] * out.radius[a] + margin
        both = np.flatnonzero(np.tile(near[: len(pairs)] & near[len(pairs) :], 2))
        a, b, margin = a[both], b[both], margin[both]
        side, points = self._within_boxes(a, b, margin)
        one, other = self.unit[a], self.unit[b]
        gap = self.gaps(b[side], self.skin[points])
        # The nearest place may be between those of the outline.
        close = (gap < (margin + BULGE * one)[side]) & (gap > (-DEEPEST * np.minimum(one, other) - BULGE * one)[side])
        side, points = side[close], points[close]
        if not len(side):
            return None
        found = sunk(self, points, lambda places: self.measured(b[side], places), margin[side])
        facing = np.einsum("ka,ka->k", self.normals_at(points), found.normal)
        shallow = (found.gap < margin[side]) & (found.gap > (-DEEPEST * np.minimum(one, other))[side])
        kept = np.flatnonzero(shallow & (facing < FACING))
        unit = np.minimum(one, other)[side]
        kept = kept[spread_out_each(side[kept], found.places[kept], found.gap[kept], unit[kept])]
        if not len(kept):
            return None
        side, points, arms = side[kept], points[kept], out.arm[points[kept]] + found.own[kept]
        a, b = a[side], b[side]
        none = np.full(len(a), COLLIDER)
        key = np.stack([self.numbers[a], self.numbers[b], none, points - out.first[a]], axis=1)
        return self._table(
            found, kept, (a, b), (arms, found.beside[kept]), np.zeros((len(a), 3)),
            np.sqrt(self.friction[a] * self.friction[b]), np.maximum(self.restitution[a], self.restitution[b]), key,
        )  # fmt: skip

    def _within_boxes(self, a: Indices, b: Indices, margin: Floats) -> tuple[Indices, Indices]:
        """Which places of bodies a (p,) are nearer than a margin (p,) [m] to the box around the surface of b: the
        numbers of these pairs, ascending, and of the places."""
        out, reach = self.outlines, (margin / self.unit[b])[:, None]
        turn = (self.unit[a] / self.unit[b])[:, None, None] * (self._turn[a] @ self._back[b])
        first = np.cumsum(out.count[a]) - out.count[a]
        near = np.zeros(int(out.count[a].sum()), bool)
        boxes = (self.arms(b, self.middle[a]), turn, out.lower[b] - reach, out.upper[b] + reach)
        # NumPy's arrays as they are: to make Warp's of them takes longer than to look.
        inputs = [out.first, out.arm, a, *(np.ascontiguousarray(one) for one in boxes), first, near]
        wp.launch(find_within, len(a), inputs=[0, *(one.reshape(-1) for one in inputs)], device="cpu")
        places = np.flatnonzero(near)
        side = np.searchsorted(first, places, side="right") - 1
        return side, out.first[a][side] + places - first[side]

    def contacts_with_colliders(self, around: ColliderQuery, near: float) -> ContactTable | None:
        """Contacts with colliders nearer than so many spacings; `around` tells of them in metres about the world's
        origin."""
        if not around.count:
            return None
        out = self.outlines
        collider, points = (part.ravel() for part in np.indices((around.count, len(self.skin))))
        margin = near * self.unit_at(points)
        # The nearest place may be between those of the outline.
        close = around.feel_each(self.skin[points], collider).gap < margin + 0.5 * self.unit_at(points)
        collider, points, margin = collider[close], points[close], margin[close]
        if not len(points):
            return None

        def measured(places: Floats) -> Measured:
            touch = around.feel_each(places, collider)
            return touch.gap, touch.normal, touch.velocity

        found, body = sunk(self, points, measured, margin), out.body[points]
        unit = self.unit[body]
        kept = np.flatnonzero((found.gap < margin) & (found.gap > -DEEPEST * unit))
        if not len(kept):
            return None
        side = body * around.count + collider
        order = kept[np.argsort(side[kept], kind="stable")]
        kept = order[spread_out_each(side[order], found.places[order], found.gap[order], unit[order])]
        body, collider, points = body[kept], collider[kept], points[kept]
        friction, restitution = np.array([around.rubs(k) for k in range(around.count)])[collider].T
        other = np.full(len(body), COLLIDER)
        key = np.stack([self.numbers[body], other, collider, points - out.first[body]], axis=1)
        return self._table(
            found, kept, (body, other), (out.arm[points] + found.own[kept], None), found.beside[kept], friction,
            np.maximum(restitution, self.restitution[body]), key,
        )  # fmt: skip

    def _table(
        self, found: Sunk, kept: Indices, bodies: tuple[Indices, Indices], arms: tuple[Floats, Floats | None],
        wall: Floats, friction: Floats, restitution: Floats, key: Indices,
    ) -> ContactTable:  # fmt: skip
        """Of some places that were found: of bodies (k,) each, `arms` (k, 3) from their middles."""
        one, other = bodies
        rows = self._rows(one, arms[0]), self._rows(other, arms[1])
        numbers = self.numbers[one], other if arms[1] is None else self.numbers[other]
        return ContactTable(
            *numbers, rows, found.places[kept], axes_about(found.normal[kept]), found.gap[kept], wall, friction,
            restitution, key, np.zeros((len(one), 3)), np.zeros(len(one)),
        )  # fmt: skip

    def _rows(self, body: Indices, arm: Floats | None) -> csr_array:
        """φ of bodies' four coefficients at places so far from their middles, among those of all, (k, N)."""
        count = len(body)
        if arm is None:
            return csr_array((count, int(self._first[-1])))
        phi = np.concatenate([1 - arm.sum(axis=1, keepdims=True), arm], axis=1)
        index = self._first[self.numbers[body]][:, None] + np.arange(4)
        start = 4 * np.arange(count + 1)
        return csr_array((phi.reshape(-1), index.reshape(-1), start), (count, int(self._first[-1])))


def spread_out_each(group: Indices, places: Floats, gap: Floats, unit: Floats) -> Indices:
    """Of places (k, 3) in groups (k,), ascending, those that `contacts.spread_out` would choose of each; ascending."""
    first = np.flatnonzero(np.diff(group, prepend=-1))
    size = np.diff(first, append=len(group))
    number = np.repeat(np.arange(len(first)), size)
    touching = gap < (np.minimum.reduceat(gap, first) + TOUCHING * unit[first])[number]
    chosen, distance = np.zeros(len(group), bool), np.full(len(group), np.inf)
    far_enough, later = (APART * unit[first]) ** 2, np.zeros(len(first), bool)
    """groups of which all that touch are chosen, or near others that are"""
    left = np.full(len(first), MOST_RIGID)
    while left.any():
        able = np.where(touching != later[number], distance, -1.0)
        farthest = np.maximum.reduceat(able, first)
        done = farthest <= far_enough
        left[done & later] = 0
        later |= done
        picking = ~done & (left > 0)
        if not picking.any():
            continue
        # The first of the farthest of each group.
        best = np.flatnonzero(picking[number] & (able == farthest[number]))
        best = best[np.unique(number[best], return_index=True)[1]]
        chosen[best] = True
        left[number[best]] -= 1
        by = np.full(len(first), -1)
        by[number[best]] = best
        near = np.flatnonzero(by[number] >= 0)
        away = np.square(places[near] - places[by[number[near]]]).sum(axis=1)
        distance[near] = np.minimum(distance[near], away)
    return np.flatnonzero(chosen)
