"""Galerkin bodies and crumbs that meet each other (physics 15.8): impulses within a step.

Each body has gone its step without the others. Impulses p at points where two have come into each other, equal and
opposite, then change where the step ended: by W p, W = Σ G H⁻¹ Gᵀ/Δt over the two, with H the system of an implicit
step of each. So they act within the step, through the whole body, as those of its own stresses do: a body that lies on
another rests. Depths grow no further, nothing slides that friction holds (Coulomb), and nothing bounces but by its
own elasticity. A depth that was there before is taken back by a shift of the same form that leaves no speed.

A point of one body meets the plane of the nearest surfel of the other: of pieces, too, whose crack faces have surfels.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, vstack
from scipy.sparse.csgraph import connected_components
from scipy.spatial import cKDTree

from phyxel.mls.shape_values import entries_of
from phyxel.models.coulomb import NEAR, along_axes, from_axes, solved
from phyxel.models.protocol import Tangible
from phyxel.rotation import axes_about

Floats = NDArray[np.float64]
Indices = NDArray[np.int64]

POINTS, PLANES = 1.0, 0.5
"""How far points that meet others are apart, and surfels whose planes they meet [spacings]."""
DEEPEST = 1.0
"""Spacings that a point may be inside another body: a deeper one is on its far side."""
AROUND = 6
"""Surfels around a point that say whether it is outside."""
FACING = -0.25
"""Cosine between normals above which two surfaces lie beside each other, not against each other: else the side of
a body that slides would stumble over points of the one below."""
MOST = 60
"""Points of two bodies that touch each other at a time."""
CLOSER = 0.5
"""Spacings that bodies may come nearer to each other in one step."""
SHORTEST = 1e-4
"""[s]: steps are not made shorter for speed."""
TAKEN_BACK = 0.05
"""[s] in which a depth is taken back."""
MUCH = 1.0
"""[1/s]: rate of gain, over the energy there is, that is too much. A little is lent by the springs of colliders."""
EASED = 6
"""How often bodies may give way less than the impulses would have it, in a step."""
SHALLOW = 1e-6
"""Depth [spacings] that may stay."""


class Outline:
    """What of a body others can touch: surfels, well apart, and how its coefficients carry them."""

    def __init__(self, positions: NDArray[np.floating], normals: NDArray[np.floating]) -> None:
        """Some of the surfels at (m, 3) positions [spacings] with normals (m, 3), in the reference shape."""
        # Both faces of an edge have points there.
        chosen, self.points = scattered(np.concatenate([positions, normals], axis=1).astype(np.float64))
        """`points`: how many of those chosen, the first, are enough to meet others with"""
        self._X, self.normals = (np.asarray(field[chosen], np.float64) for field in (positions, normals))
        self._space: Any = None

    def follow(self, space: Any) -> None:
        """Be carried by the shape functions of a space, unless they are known."""
        if space is self._space:
            return
        self._space, values = space, space.at(self._X)
        # Sums of φ are 1 but for rounding; momenta are kept to their last digits.
        phi, counts = values.values, np.diff(values.values.indptr)
        self.phi = _with_data(phi, phi.data / np.repeat(phi.sum(axis=1), counts))
        self.slopes = [
            _with_data(phi, slope.data - self.phi.data * np.repeat(slope.sum(axis=1), counts))
            for slope in values.gradients
        ]

    def rows(self, surfels: Indices, beside: Floats | None = None) -> csr_array:
        """φ at surfels, or at places that lie beside them by (k, 3), in the reference shape: fields go straight on."""
        start, entries = entries_of(self.phi.indptr, surfels)
        data = self.phi.data[entries]
        if beside is not None:
            for slope, along in zip(self.slopes, beside.T, strict=True):
                data = data + np.repeat(along, np.diff(start)) * slope.data[entries]
        return csr_array((data, self.phi.indices[entries], start), (len(surfels), self.phi.shape[1]))


def _with_data(matrix: csr_array, data: Floats) -> csr_array:
    return csr_array((data, matrix.indices, matrix.indptr), matrix.shape)


def scattered(positions: Floats) -> tuple[Indices, int]:
    """Some of the positions (m, d), `PLANES` apart, the farthest from those before first; and how many of them are
    `POINTS` apart."""
    cells = np.floor(positions / (0.5 * PLANES)).astype(np.int64)
    few = np.sort(np.unique(cells, axis=0, return_index=True)[1])
    x, chosen, points = positions[few], [], 0
    if not len(x):
        return few, 0
    distance = np.full(len(x), np.inf)
    k = int(np.argmax(np.square(x - x.mean(axis=0)).sum(axis=1)))
    while distance[k] > PLANES**2:
        points += bool(distance[k] > POINTS**2)
        chosen.append(k)
        distance = np.minimum(distance, np.square(x - x[k]).sum(axis=1))
        k = int(np.argmax(distance))
    return few[chosen], points


class Party:
    """One body in a step; lengths in metres from here on."""

    def __init__(
        self, model: Tangible, outline: Callable[[], Outline], unit: float, origin: Floats, friction: float
    ) -> None:
        self.model, self._outline_of = model, outline
        self.unit, self.origin, self.friction = unit, origin, friction
        self.before = model.u
        """coefficients of the displacement when the step began, in the body's units, shape (n, 3)"""
        self.energy = 0.0
        """elastic and kinetic, when the step began [J]"""
        self._look(self.before)
        v = unit * model.v
        self.slowest, self.fastest = v.min(axis=0), v.max(axis=0)
        """of each component of its velocity, shape (3,)"""

    def _look(self, u: Floats) -> None:
        self.x = self.origin + self.unit * (self.model.space.nodes + u)
        margin = self.unit * self.model.margin
        self.lower, self.upper = self.x.min(axis=0) - margin, self.x.max(axis=0) + margin

    def go(self, dt: float) -> None:
        """A step was taken: look at where the velocity that it left leads in its time. A free fall goes by the mean of
        velocities, and would be stopped with half its speed."""
        self._look(self.before + dt * self.model.v)
        self.way = dt * self.unit * self.model.v

    @cached_property
    def outline(self) -> Outline:
        return self._outline_of()

    @cached_property
    def skin(self) -> Floats:
        """Where the surfels are, shape (m, 3)."""
        return np.asarray(self.outline.phi @ self.x)

    @cached_property
    def deformation(self) -> Floats:
        """F at the surfels times the unit, shape (m, 3, 3)."""
        return np.stack([slope @ self.x for slope in self.outline.slopes], axis=2)

    @cached_property
    def normals(self) -> Floats:
        """Of the surfels in the present shape, F⁻ᵀ N, shape (m, 3)."""
        F = self.deformation
        turned = sum(
            self.outline.normals[:, [a]] * np.cross(F[:, :, (a + 1) % 3], F[:, :, (a + 2) % 3]) for a in range(3)
        )
        return np.asarray(turned / np.maximum(np.linalg.norm(turned, axis=1), 1e-300)[:, None])  # none where F is 0


@dataclass(frozen=True)
class FieldContacts:
    """Points of one body in or near another; k of them."""

    one: int
    other: int
    rows: tuple[csr_array, csr_array]
    """φ of the two bodies at the same places, shapes (k, n)"""
    axes: Floats
    """normal out of the other and two tangents, shape (k, 3, 3)"""
    gap: Floats
    """shape (k,)"""
    way: Floats
    """how far the one has gone against the other in the step, along the axes, shape (k, 3)"""
    friction: float


class Meeting:
    """Bodies at the beginning of a step, those that may come to touch each other in it."""

    def __init__(self, parties: Sequence[Party], longest: float) -> None:
        """In a step of `longest` [s] at most."""
        self._parties, self._pairs = parties, []
        self.longest_step = longest
        """[s], in which no two of them come much nearer"""
        if len(parties) < 2:
            return
        speed = _closing_speeds(parties)
        lower, upper, unit = (np.array([getattr(one, name) for one in parties]) for name in ("lower", "upper", "unit"))
        before = (lower[:, None] - upper < longest * speed[:, :, None]).all(axis=2)
        self._pairs = np.argwhere(np.triu(before & before.T, 1)).tolist()
        for a, b in self._pairs:
            step = CLOSER * min(unit[a], unit[b]) / max(speed[a, b], 1e-30)
            self.longest_step = min(self.longest_step, max(step, SHORTEST))
        for a in {a for pair in self._pairs for a in pair}:
            parties[a].energy = sum(parties[a].model.energies())

    def resolve(self, dt: float) -> None:
        """Let bodies that have gone a step of dt [s] each push each other apart."""
        for party in self._parties:
            party.model.unload(dt)
        for a in {a for pair in self._pairs for a in pair}:
            self._parties[a].go(dt)
        found = [one for pair in self._pairs for one in _contacts_of(self._parties, *pair)]
        for contacts in _islands(found, len(self._parties)):
            _resolve(self._parties, contacts, dt)


def _closing_speeds(parties: Sequence[Party]) -> Floats:
    """The largest speed [m/s] that two of n bodies can have against each other, shape (n, n)."""
    slowest, fastest = (np.array([getattr(one, name) for one in parties]) for name in ("slowest", "fastest"))
    most = fastest[:, None] - slowest
    return np.asarray(np.linalg.norm(np.maximum(most, np.swapaxes(most, 0, 1)), axis=2))


# Points that touch


def _contacts_of(parties: Sequence[Party], a: int, b: int) -> list[FieldContacts]:
    one, other = parties[a], parties[b]
    if (one.lower > other.upper).any() or (other.lower > one.upper).any():
        return []
    both = [_points_in(parties, a, b), _points_in(parties, b, a)]
    found = [one for one in both if one is not None]
    count = sum(len(one.gap) for one in found)
    return found if count <= MOST else [_fewer(one, MOST * len(one.gap) // count) for one in found]


def _points_in(parties: Sequence[Party], a: int, b: int) -> FieldContacts | None:
    """Points of body a in or near body b."""
    one, other = parties[a], parties[b]
    unit = min(one.unit, other.unit)
    place = one.skin[: one.outline.points]
    points = np.flatnonzero(((place > other.lower) & (place < other.upper)).all(axis=1))
    planes = np.flatnonzero(((other.skin > one.lower - unit) & (other.skin < one.upper + unit)).all(axis=1))
    if not len(points) or not len(planes):
        return None
    place = place[points]
    count = min(AROUND, len(planes))
    away, index = cKDTree(other.skin[planes]).query(place, count)
    away, near = away.reshape(-1, count), planes[index.reshape(-1, count)]
    close = away[:, 0] < (DEEPEST + PLANES) * unit
    points, place, away, near = points[close], place[close], away[close], near[close]
    if not len(points):
        return None
    normals = other.normals[near]
    height = np.einsum("kca,kca->kc", normals, place[:, None] - other.skin[near])
    # A place outside of one face of an edge is outside; surfels farther around say nothing about it.
    height[away**2 > (away[:, :1] ** 2 + (PLANES * other.unit) ** 2)] = -np.inf
    best = np.argmax(height, axis=1)
    every = np.arange(len(points))
    gap, normal, surfel = height[every, best], normals[every, best], near[every, best]
    facing = np.einsum("ka,ka->k", one.normals[points], normal)
    touching = (gap > -DEEPEST * unit) & (gap < NEAR * unit) & (facing < FACING)
    if not touching.any():
        return None
    return _contacts(parties, a, b, *(array[touching] for array in (points, surfel, normal, gap)))


def _contacts(
    parties: Sequence[Party], a: int, b: int, points: Indices, surfels: Indices, normal: Floats, gap: Floats
) -> FieldContacts:
    one, other = parties[a], parties[b]
    place = one.skin[points]
    away = (place - other.skin[surfels])[:, :, None]
    beside = np.asarray(np.linalg.solve(other.deformation[surfels], away)[:, :, 0], np.float64)
    rows = one.outline.rows(points), other.outline.rows(surfels, beside)
    axes = axes_about(normal)
    moved = rows[0] @ one.way - rows[1] @ other.way
    way = np.einsum("kab,kb->ka", axes, moved)
    return FieldContacts(a, b, rows, axes, gap, way, math.sqrt(one.friction * other.friction))


def _fewer(contacts: FieldContacts, count: int) -> FieldContacts:
    """The deepest."""
    kept = np.sort(np.argsort(contacts.gap, kind="stable")[: max(count, 1)])
    rows = csr_array(contacts.rows[0][kept]), csr_array(contacts.rows[1][kept])
    return FieldContacts(
        contacts.one, contacts.other, rows, contacts.axes[kept], contacts.gap[kept], contacts.way[kept],
        contacts.friction,
    )  # fmt: skip


# Impulses


def _islands(found: list[FieldContacts], count: int) -> Iterator[list[FieldContacts]]:
    """Contacts that can have to do with each other."""
    if not found:
        return
    ends = np.array([[one.one, one.other] for one in found])
    _, label = connected_components(csr_array((np.ones(len(ends)), ends.T), (count, count)), directed=False)
    for island in np.unique(label[ends[:, 0]]):
        yield [one for one, end in zip(found, ends, strict=True) if label[end[0]] == island]


def _resolve(parties: Sequence[Party], contacts: list[FieldContacts], dt: float) -> None:
    axes = np.concatenate([one.axes for one in contacts])
    gap, way = np.concatenate([one.gap for one in contacts]), np.concatenate([one.way for one in contacts])
    friction = np.concatenate([np.full(len(one.gap), one.friction) for one in contacts])
    shares = list(_shares(contacts))
    W = np.zeros((3 * len(gap), 3 * len(gap)))
    for body, sign, rows, which in shares:
        own = parties[body].model.compliance(rows, dt) / parties[body].unit
        entries = (3 * which[:, None] + np.arange(3)).reshape(-1)
        W[np.ix_(entries, entries)] += along_axes(own, sign[:, None, None] * axes[which])
    # A depth from before may stay for now, but not grow: to be thrown out would be a gain of energy.
    goal = way.copy()
    goal[:, 0] = gap - np.minimum(gap - way[:, 0], 0.0)
    impulses = solved(W, goal, friction)
    shifts = np.zeros_like(impulses)
    gap = gap + (W @ impulses.reshape(-1))[::3]
    deep = gap < -SHALLOW * np.concatenate([np.full(len(one.gap), parties[one.other].unit) for one in contacts])
    if deep.any():
        goal = np.zeros_like(way)
        goal[:, 0] = np.where(deep, -math.expm1(-dt / TAKEN_BACK) * gap, np.maximum(gap, 0.0))
        shifts = solved(W, goal, np.zeros(len(gap)))
    pushes, moves = from_axes(axes, impulses), from_axes(axes, shifts)
    for body, sign, rows, which in shares:
        per_unit = sign[:, None] / parties[body].unit ** 2
        party = parties[body]
        party.model.push(rows, per_unit * pushes[which], per_unit * moves[which], party.before, dt)
    _calm([parties[body] for body, _, _, _ in shares], dt)


def _calm(parties: Sequence[Party], dt: float) -> None:
    """Bodies that are bent far are stiffer than at rest, as which the impulses took them: what they got more than there
    was is taken from their vibration; if that is not enough, they do not give way as far."""
    for _ in range(EASED):
        gained = [sum(one.model.energies()) - one.energy - one.model.work(one.before) for one in parties]
        above = sum(gained)
        for k in np.argsort(gained)[::-1]:
            if above <= 0:
                return
            above -= parties[k].model.calm(above)
        if above <= MUCH * dt * sum(one.energy for one in parties):
            return
        parties[int(np.argmax(gained))].model.ease()


def _shares(contacts: list[FieldContacts]) -> Iterator[tuple[int, Floats, csr_array, Indices]]:
    """Each body: which of the contacts it has a share in, φ there, and with which sign."""
    starts = np.cumsum([0, *(len(one.gap) for one in contacts)])
    for body in sorted({body for one in contacts for body in (one.one, one.other)}):
        signs, rows, which = [], [], []
        for one, start in zip(contacts, starts, strict=False):
            for side, (end, sign) in enumerate(((one.one, 1.0), (one.other, -1.0))):
                if end == body:
                    signs.append(np.full(len(one.gap), sign))
                    rows.append(one.rows[side])
                    which.append(start + np.arange(len(one.gap)))
        yield body, np.concatenate(signs), csr_array(vstack(rows)), np.concatenate(which)
