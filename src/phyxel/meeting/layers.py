"""Where surfaces touch solids, each other and themselves, or may within a step (physics 15.16)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import warp as wp
from numpy.typing import NDArray
from scipy.sparse import bsr_array, csr_array

from phyxel import device as dev
from phyxel.meeting.apart import find_gaps, passing_of
from phyxel.meeting.near import Near, StencilList
from phyxel.meeting.party import SeenBody
from phyxel.meeting.skin import Skins
from phyxel.models.particles.touches import Touches
from phyxel.rotation import axes_about

Floats = NDArray[np.float64]
Indices = NDArray[np.int64]

DEEPEST = 0.5
"""Spacings that a particle may be inside a solid: a deeper one is on its far side."""
SHALLOW = 0.25
"""Spacings that a place of a solid may be through a triangle."""
FACING = 0.2
"""Cosine between the normal of a solid and the way to a triangle above which its place faces it."""
BEFORE = 0.5
"""Cosine between the way to a triangle and its normal above which a place lies before it. Solids meet rims as edges:
what goes around one would be borne from behind."""
TAKEN_BACK = 5
"""Steps in which a depth is taken back."""
ALONG = 0.5
"""Spacings of a solid between places of an edge that meet it: its corners and ridges come between particles."""
ROOM = 0.1
"""Share of the farthest way of a particle by which candidates are sought farther: rounds lead elsewhere."""
FLIGHT = 0.2
"""Of following a stencil's flight: what it takes, in phyxels of a force pass."""
CHORD = 0.5
"""Depth of an edge in a solid below what its ends say, over half the thickness, from which on it is borne by itself."""


@dataclass(frozen=True)
class Places:
    """k places of surfaces, each on up to four particles, and what bears them there."""

    index: Indices
    """particles, shape (k, 4)"""
    weight: Floats
    """shape (k, 4); 0 where there are fewer"""
    normal: Floats
    """out of what bears them, shape (k, 3)"""
    gap: Floats
    """where particles are now, and what bears them at the end of the step, less than 0 for depth [m], shape (k,)"""
    way: Floats
    """of what bears them, in the step [m], shape (k, 3)"""
    friction: Floats
    """shape (k,)"""
    guest: int = -1
    """number of the body that bears them; -1: no other"""
    rows: csr_array | None = None
    """φ of that body there, shape (k, n)"""
    number: Indices | int = 0
    """of each among those on the same particles, shape (k,)"""

    tied: ClassVar[bool] = False
    """whether they pull as well"""

    def __len__(self) -> int:
        return len(self.gap)

    @property
    def axes(self) -> Floats:
        """Normals and two tangents, shape (k, 3, 3)."""
        return axes_about(self.normal)

    def moves(self, axes: Floats) -> Floats:
        """How their particles move them along axes (k, 3, 3), shape (k, 4, 3, 3)."""
        return self.weight[:, :, None, None] * axes[:, None]

    def offset(self, axes: Floats) -> Floats:
        """The gap, and how far they slide where particles stay [m], along axes (k, 3, 3), shape (k, 3)."""
        along = (axes @ self.way[:, :, None])[:, :, 0]
        return np.column_stack([self.gap, -along[:, 1:]])

    def some(self, which: NDArray[np.integer]) -> Places:
        """Only these."""
        names = ("index", "weight", "normal", "gap", "way", "friction")
        rows = None if self.rows is None else csr_array(self.rows[which])
        index, weight, normal, gap, way, friction = (getattr(self, name)[which] for name in names)
        number = np.broadcast_to(self.number, len(self))[which]
        return Places(index, weight, normal, gap, way, friction, self.guest, rows, number)


def on_walls(x: Floats, wall: Floats, spot: Floats, grip: Floats) -> Places:
    """Of particles at x (n, 3) that lie on colliders: directions out of them, where they would stay (n, 3), and
    Coulomb's coefficients (n,)."""
    lies = np.flatnonzero(wall.any(axis=1))
    way = spot[lies] - x[lies]
    gap = -np.einsum("ka,ka->k", wall[lies], way)
    return Places(*_single(lies), wall[lies], gap, way, grip[lies])


def in_solid(
    x: Floats, skins: Skins, other: SeenBody, guest: int, way: Floats, friction: float, margin: float
) -> list[Places]:
    """Particles at x (n, 3), and places along their edges, in or near a solid whose coefficients go by `way` (m, 3) in
    the step."""
    if other.balls is not None:
        return []
    here = _Measured.of(x, skins.radius[: len(x)], other, margin)
    gap = np.full(len(x), np.inf)
    gap[here.who] = here.gap
    index, weight, number = _along_edges(x, skins.edges, other, margin)
    there = _Measured.of(_summed(index, weight, x), (weight * skins.radius[index]).sum(axis=1), other, margin)
    # What the ends of an edge bear need not be borne between them.
    borne = (weight[:, :2] * gap[index[:, :2]]).sum(axis=1) - CHORD * skins.radius[index[:, 0]]
    between = there.some(there.gap < borne[there.who])
    every = np.arange(len(x))
    found = [(here, *_single(every), every), (between, index, weight, number)]
    near = [one for one in found if len(one[0].who)]
    return [one.places(at, share, which, other, guest, way, friction) for one, at, share, which in near]


@dataclass(frozen=True)
class _Measured:
    """Those of some places that are in or near a solid."""

    who: Indices
    """shape (k,)"""
    near: Indices
    """the places of the solid's outline that they are near, shape (k,)"""
    gap: Floats
    """[m], shape (k,)"""
    normal: Floats
    """out of the solid, shape (k, 3)"""
    beside: Floats
    """how far beside the outline's places they are in the reference shape, shape (k, 3)"""

    @staticmethod
    def of(x: Floats, radius: Floats, other: SeenBody, margin: float) -> _Measured:
        """Of places at x (n, 3) about which a surface is so thick (n,)."""
        who = np.flatnonzero(((x > other.lower - margin) & (x < other.upper + margin)).all(axis=1))
        far, near = other.tree.query(x[who], distance_upper_bound=margin + 2 * other.unit)
        who, near = who[np.isfinite(far)], near[np.isfinite(far)].astype(np.int64)
        gap, normal, beside = other.measured(x[who], near)
        gap = gap - radius[who]
        close = (gap < margin) & (gap > -DEEPEST * other.unit)
        return _Measured(who, near, gap, normal, beside).some(close)

    def some(self, which: NDArray[np.bool_]) -> _Measured:
        """Only these."""
        return _Measured(self.who[which], self.near[which], self.gap[which], self.normal[which], self.beside[which])

    def places(
        self, index: Indices, weight: Floats, number: Indices, other: SeenBody, guest: int, way: Floats, friction: float
    ) -> Places:
        """Them, of all on such particles with such weights, (n, 4) each, and with such numbers (n,)."""
        rows = other.outline.rows(self.near, self.beside)
        along, rub = rows @ way, np.full(len(self.gap), friction)
        # What was in depth when the step began may come out slowly; what the solid's way leads into may not get there.
        before = np.minimum(self.gap + np.einsum("ka,ka->k", self.normal, along), 0.0)
        gap = self.gap - (1 - 1 / TAKEN_BACK) * before
        who = self.who
        return Places(index[who], weight[who], self.normal, gap, along, rub, guest, rows, number[who])


def _along_edges(
    x: Floats, edges: NDArray[np.integer], other: SeenBody, margin: float
) -> tuple[Indices, Floats, Indices]:
    """Places of edges (e, 2) between particles at x (n, 3) near a solid, no farther apart than its outline tells
    corners: particles and weights, (k, 4) each, and which of its edge each is (k,)."""
    a, b = x[edges[:, 0]], x[edges[:, 1]]
    near = ((np.maximum(a, b) > other.lower - margin) & (np.minimum(a, b) < other.upper + margin)).all(axis=1)
    edges, length = edges[near], np.linalg.norm(b - a, axis=1)[near]
    parts = np.ceil(length / (ALONG * other.unit)).astype(np.int64)
    inner = np.maximum(parts - 1, 0)
    whose = np.repeat(np.arange(len(edges)), inner)
    number = np.arange(len(whose)) - np.repeat(np.cumsum(inner) - inner, inner) + 1
    t = number / parts[whose]
    index, weight = np.zeros((len(whose), 4), np.int64), np.zeros((len(whose), 4))
    index[:, :2], weight[:, 0], weight[:, 1] = edges[whose], 1 - t, t
    return index, weight, number


def _summed(index: Indices, weight: Floats, x: Floats) -> Floats:
    """Where places are that lie on particles at x (n, 3) with such weights, (k, 4) each."""
    return np.asarray(np.einsum("kb,kba->ka", weight, x[index]))


def _single(who: Indices) -> tuple[Indices, Floats]:
    index = np.zeros((len(who), 4), np.int64)
    weight = np.zeros((len(who), 4))
    index[:, 0], weight[:, 0] = who, 1.0
    return index, weight


@dataclass(frozen=True)
class OthersPoints:
    """Points of a body that is no surface, which meet triangles."""

    start: Floats
    """[m], shape (k, 3)"""
    end: Floats
    """at the end of the step"""
    normal: Floats | None
    """out of the body, shape (k, 3); none of balls"""
    radius: float
    """of balls [m]; else 0"""
    unit: float
    rows: csr_array
    """φ of the body, shape (k, n)"""
    guest: int
    friction: float


class Layers:
    """Triangles and edges of surfaces among points of others, in a step."""

    seams: Sequence[tuple[NDArray[np.bool_], NDArray[np.bool_]]] = ()
    """points of two bodies that do not touch each other, for they are sewn there, among all (n,) each"""

    def __init__(
        self, skins: Skins, others: Sequence[OthersPoints], friction: Floats, whose: Indices, device: wp.Device,
        borne: float,
    ) -> None:  # fmt: skip
        """Particles are `whose` surface's (n,), which rub so (surfaces,); what bears them may keep them so far [m] from
        where they would get."""
        self._skins, self._others, self._friction, self._whose = skins, others, friction, whose
        self._near, self._device, self._borne = Near(skins, device), device, borne
        self._listed: tuple[StencilList, Floats, Floats] | None = None
        """candidates, and the corners of the boxes within which particles may end on ways from where they begin, if it
        has them, shape (n, 3) each"""
        self._first = skins.own + np.cumsum([0, *(len(one.start) for one in others)])

    def pairs(self, x: Floats, end: Floats, farther: float) -> StencilList:
        """Stencils whose parts may come to touch where particles go from x to `end`, (n, 3) each; x is always the
        same."""
        found = self._near.closer(
            self._candidates(x, end, farther), self._ways(x, "start"), self._ways(end, "end"), farther
        )
        clear = np.ones(len(found), bool)
        for one, other in self.seams:
            clear &= ~(one[found.index].any(axis=1) & other[found.index].any(axis=1))
        return found if clear.all() else StencilList(found.key[clear], found.index[clear])

    def _candidates(self, x: Floats, end: Floats, farther: float) -> StencilList:
        """What the tree knows, asked anew where particles get farther than they were expected to."""
        if self._listed is not None:
            listed, least, most = self._listed
            if ((end - farther >= least) & (end + farther <= most)).all():
                return listed
        # What all move by together tells nothing apart.
        even = (end - x).mean(axis=0)
        wide = farther + self._borne + ROOM * float(np.abs(end - even - x).max(initial=0.0))
        start, stop = self._ways(x, "start"), self._ways(end, "end", even)
        listed = self._near.candidates(start, stop, wide)
        self._listed = listed, np.minimum(x + even, end) - wide, np.maximum(x + even, end) + wide
        return listed

    @property
    def count(self) -> int:
        """Of all points."""
        return int(self._first[-1])

    def points_of(self, guest: int) -> list[tuple[int, OthersPoints]]:
        """Points of a body, each with the number of the first among all."""
        return [(int(at), one) for at, one in zip(self._first[:-1], self._others, strict=True) if one.guest == guest]

    def _ways(self, x: Floats, name: str, less: Floats | float = 0.0) -> wp.array:
        every = np.concatenate([x, *(getattr(one, name) for one in self._others)]) - less
        return wp.array(every, dtype=wp.vec3d, device=self._device)

    def passing(self, found: StencilList, x: Floats, end: Floats) -> tuple[list[Places], NDArray[np.bool_]]:
        """What they are to each other on that way, and which (k,) would touch before its end."""
        if not len(found):
            return [], np.zeros(0, bool)
        passing = passing_of(found.kind, found.index, self._device)
        x0, x1 = self._ways(x, "start"), self._ways(end, "end")
        radius = wp.array(self._skins.radius, dtype=wp.float64, device=self._device)
        dev.run(dev.Launch(find_gaps, len(found), [passing, radius, x0, x1], FLIGHT), self._device)
        weight, normal, gap, time = (getattr(passing, name).numpy() for name in ("weight", "normal", "gap", "time"))
        at, start, last = found.index.astype(np.int64), x0.numpy(), x1.numpy()
        flat = _lies_before(normal, last[at])
        goal = np.einsum("ka,kb,kba->k", normal, weight, last[at]) - gap
        here = np.where((at < self._skins.own)[:, :, None], start[at], last[at])
        gap = np.einsum("ka,kb,kba->k", normal, weight, here) - goal
        own = (at[:, 0] < self._skins.own) & normal.any(axis=1)  # what starts at the same place has no side
        places = [self._between(at[own], weight[own], normal[own], gap[own])] if own.any() else []
        hit = (time <= 1.0) & (own | flat)
        for one, first, stop in zip(self._others, self._first[:-1], self._first[1:], strict=True):
            mine = np.flatnonzero((at[:, 0] >= first) & (at[:, 0] < stop) & flat)
            if len(mine):
                away = np.einsum("kb,kba->ka", weight[mine], start[at[mine]])
                point = at[mine, 0] - first
                found_places, faces = self._poked(one, at[mine], point, weight[mine], normal[mine], gap[mine], away)
                hit[mine[~faces]] = False
                places.append(found_places)
        return places, hit

    def hits(self, x: Floats, end: Floats) -> StencilList:
        """Stencils whose parts touch before the end of that way."""
        found = self.pairs(x, end, 0.0)
        hit = self.passing(found, x, end)[1]
        return StencilList(found.key[hit], found.index[hit])

    def _between(self, at: Indices, weight: Floats, normal: Floats, gap: Floats) -> Places:
        """Of surfaces among themselves."""
        ends = self._friction[self._whose[at[:, [0, 3]]]]
        return Places(at.astype(np.int64), weight, normal, gap, np.zeros((len(at), 3)), np.sqrt(ends.prod(axis=1)))

    def _poked(
        self, one: OthersPoints, at: Indices, point: Indices, weight: Floats, normal: Floats, gap: Floats, away: Floats
    ) -> tuple[Places, NDArray[np.bool_]]:
        """Of points of a body before triangles, and which face them. Normals are then out of the body."""
        out, depth, way = -normal, gap, (one.end - one.start)[point]
        faces = np.ones(len(at), bool)
        if one.normal is not None:
            facing = np.einsum("ka,ka->k", out, one.normal[point])
            through = (facing < -0.7) & (np.linalg.norm(away, axis=1) < SHALLOW * one.unit)
            out = np.where(through[:, None], -out, out)
            radius = self._skins.radius[at[:, 1]]
            inside = -(np.linalg.norm(away, axis=1) + radius) / TAKEN_BACK - np.einsum("ka,ka->k", out, way)
            depth = np.where(through, inside, gap)
            faces = through | (facing > FACING)
        index, own = at.astype(np.int64).copy(), -weight
        index[:, 0], own[:, 0] = index[:, 1], 0.0
        rows = csr_array(one.rows[point])
        places = Places(index, own, out, depth, way, np.full(len(at), one.friction), one.guest, rows, point)
        return places.some(np.flatnonzero(faces)), faces


def touches_of(
    places: Sequence[Places], now: Floats, firm: Sequence[Floats], counts: tuple[int, int], scale: float,
    nodes: dict[int, NDArray[np.integer]], answers: dict[int, tuple[int, Floats]],
) -> Touches:  # fmt: skip
    """Elements of all places: particles, of `now` (n, 3), so `firm` (n,) [N/m] for each of them, and `nodes` of guests,
    by their numbers among `counts` particles and answers in all; or where a guest's answers begin, and how they move
    its places, one after the other, (3k, r)."""
    entries, offsets, stiff, friction, turns, ties = [], [], [], [], [], []
    G = np.zeros((3 * sum(map(len, places)), counts[1]))
    start = 0
    for one, firmness in zip(places, firm, strict=True):
        count, axes = len(one), one.axes
        contact, moves = np.arange(start, start + count), one.moves(axes)
        held = moves.any(axis=(2, 3))
        entries.append((np.repeat(contact, held.sum(axis=1)), one.index[held], moves[held]))
        if one.guest in nodes:
            rows = one.rows
            assert rows is not None
            which = np.repeat(contact, np.diff(rows.indptr))
            data = -rows.data[:, None, None] * axes[which - start]
            entries.append((which, nodes[one.guest][rows.indices], data))
        elif one.guest in answers:
            column, L = answers[one.guest]
            turned = -(axes @ L[: 3 * count].reshape(count, 3, -1)).reshape(3 * count, -1)
            answers[one.guest] = column, L[3 * count :]
            G[3 * start : 3 * (start + count), column : column + L.shape[1]] = turned
        offsets.append(one.offset(axes))
        stiff.append(1 / np.maximum((one.weight**2 / firmness[one.index]).sum(axis=1), 1e-300))
        friction.append(one.friction)
        turns.append(axes)
        ties.append(np.full(count, one.tied))
        start += count
    whose, who, blocks = (np.concatenate(part) for part in zip(*entries, strict=True))
    order = np.lexsort((who, whose))
    starts = np.searchsorted(whose[order], np.arange(start + 1))
    J = bsr_array((blocks[order], who[order], starts), shape=(3 * start, 3 * counts[0]))
    J.sum_duplicates()
    seen = np.zeros(3 * counts[0])
    seen[: now.size] = now.reshape(-1)
    offset = np.concatenate(offsets) - (J @ seen).reshape(-1, 3) / scale
    stiff_all, friction_all, axes_all, tied = (np.concatenate(part) for part in (stiff, friction, turns, ties))
    return Touches(J, G, axes_all, offset, stiff_all, friction_all, tied)


def _lies_before(normal: Floats, x: Floats) -> NDArray[np.bool_]:
    """Whether points lie before triangles along normals (k, 3), not beside their rims, of stencils at x (k, 4, 3)."""
    turned = np.cross(x[:, 2] - x[:, 1], x[:, 3] - x[:, 1])
    size = np.linalg.norm(turned, axis=1)
    return np.abs(np.einsum("ka,ka->k", normal, turned)) > BEFORE * np.maximum(size, 1e-300)
