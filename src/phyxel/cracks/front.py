"""The front of a crack: curves of points on which ψ1 = ψ2 = 0, in order (G04 §4.3.2: "a linked list of point samples").

The level sets follow the front, and the front is moved as points: on a grid a circle would shrink a little with every
step. At each point the tangent t, the way ahead f in the crack's plane and the crack's normal n = t × f are a frame.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from phyxel.cracks.grid import Floats, LevelGrid
from phyxel.rotation import axes_about
from phyxel.state import State

Indices = NDArray[np.int32]

GAP = (0.4, 1.6)
"""Distances of neighbouring points, over the grid's spacing, beyond which a curve is sampled anew at distances of 1."""
OUTSIDE = 2.0
"""Cells beyond the grid at which a front is cut off."""


@dataclass(frozen=True)
class Front:
    """Curves of points one after another; a closed one goes on from its last point to its first."""

    points: Floats
    """shape (k, 3)"""
    forwards: Floats
    """unit, across the curve and in the crack's plane, shape (k, 3)"""
    normals: Floats
    """unit, of the crack, shape (k, 3)"""
    curves: NDArray[np.int64]
    """number of points of each curve, shape (c,)"""
    closed: NDArray[np.bool_]
    """shape (c,)"""
    bound: NDArray[np.bool_]
    """whether its ends go on outside the grid; else they have met another part of the crack, shape (c, 2)"""

    @staticmethod
    def none() -> Front:
        """That of a crack that goes all through."""
        nothing = np.zeros((0, 3))
        return Front(nothing, nothing, nothing, np.zeros(0, np.int64), np.zeros(0, bool), np.zeros((0, 2), bool))

    @staticmethod
    def circle(at: Floats, normal: Floats, radius: float, gap: float) -> Front:
        """Around a disc, with points at distances of at most `gap`."""
        _, first, second = axes_about(normal[None])[0]
        angles = np.linspace(0, 2 * np.pi, max(12, int(np.ceil(2 * np.pi * radius / gap))), endpoint=False)
        outward = np.cos(angles)[:, None] * first + np.sin(angles)[:, None] * second
        # t × f = n: with f outward the curve goes round clockwise.
        outward = outward[::-1].copy()
        return _one(at + radius * outward, outward, np.broadcast_to(normal, outward.shape).copy(), True, False, False)

    @staticmethod
    def line(at: Floats, normal: Floats, ahead: Floats, grid: LevelGrid) -> Front:
        """A straight one across the grid."""
        tangent = np.cross(ahead, normal)
        reach = np.linalg.norm(grid.upper - grid.origin) + np.linalg.norm(at - 0.5 * (grid.origin + grid.upper))
        steps = int(np.ceil(reach / grid.spacing))
        points = at + grid.spacing * np.arange(-steps, steps + 1)[:, None] * tangent
        forwards, normals = (np.broadcast_to(v, points.shape).copy() for v in (ahead, normal))
        return _one(points, forwards, normals, False, True, True).inside(grid)

    def __len__(self) -> int:
        return len(self.points)

    @property
    def neighbours(self) -> tuple[Indices, Indices]:
        """The point before and the point after each one, or -1, each of shape (k,)."""
        k = np.arange(len(self), dtype=np.int32)
        before, after = k - 1, k + 1
        last = np.cumsum(self.curves) - 1
        first = last - self.curves + 1
        before[first] = np.where(self.closed, last, -1)
        after[last] = np.where(self.closed, first, -1)
        return before.astype(np.int32), after.astype(np.int32)

    @property
    def tangents(self) -> Floats:
        """Unit, those of the circles through a point and its neighbours, shape (k, 3)."""
        before, after = self.neighbours
        k = np.arange(len(self))
        back = self.points - self.points[np.where(before < 0, k, before)]
        on = self.points[np.where(after < 0, k, after)] - self.points
        back_length, on_length = (np.linalg.norm(v, axis=1)[:, None] for v in (back, on))
        return unit(back * on_length**2 + on * back_length**2 + (back + on) * ((back_length * on_length) == 0))

    def frames(self) -> tuple[Floats, Floats, Floats]:
        """Tangents, ways ahead and normals made perpendicular to each other, each of shape (k, 3)."""
        t = self.tangents
        f = unit(self.forwards - np.sum(self.forwards * t, axis=1, keepdims=True) * t)
        return t, f, np.cross(t, f)

    def moved(self, points: Floats, forwards: Floats, normals: Floats) -> Front:
        """The same curves elsewhere."""
        return Front(points, forwards, normals, self.curves, self.closed, self.bound)

    def kept(self, keep: NDArray[np.bool_], bound: bool = False) -> Front:
        """Without some points, (k,) says which stay: curves part there, and their new ends are `bound` or not. Single
        points are no curve."""
        if keep.all():
            return self
        pieces = []
        for part, closed, (first, last) in self._parts():
            if keep[part].all():
                pieces.append(self._piece(part, closed, first, last))
                continue
            if closed:
                part = np.roll(part, -int(np.flatnonzero(~keep[part])[0]))
            edges = np.flatnonzero(np.diff(np.concatenate([[False], keep[part], [False]])))
            for a, b in edges.reshape(-1, 2):
                if b - a > 1:
                    ends = first if a == 0 else bound, last if b == len(part) and not closed else bound
                    pieces.append(self._piece(part[a:b], False, *ends))
        return _joined(pieces)

    def inside(self, grid: LevelGrid) -> Front:
        """What of it lies in the grid or just beyond, with bound ends lengthened until they lie beyond."""
        if len(self) == 0:
            return self
        beyond = np.maximum(grid.origin - self.points, self.points - grid.upper).max(axis=1) / grid.spacing
        return self.kept(beyond < OUTSIDE, bound=True)._lengthened(grid)

    def _lengthened(self, grid: LevelGrid) -> Front:
        box = np.array([grid.origin, grid.upper])
        pieces = []
        for part, closed, (first, last) in self._parts():
            piece = self._piece(part, closed, first, last)
            t, f, n = piece.frames()
            head = _way_out(piece.points[0], -t[0], box, grid.spacing) if first else _NOWHERE
            tail = _way_out(piece.points[-1], t[-1], box, grid.spacing) if last else _NOWHERE
            if len(head) + len(tail):
                points = np.concatenate([head[::-1], piece.points, tail])
                ends = np.clip(np.arange(-len(head), len(piece) + len(tail)), 0, len(piece) - 1)
                piece = _one(points, f[ends], n[ends], closed, first, last)
            pieces.append(piece)
        return _joined(pieces)

    def even(self, gap: float) -> Front:
        """The same curves with points at even distances, where those have become too large or too small."""
        _, after = self.neighbours
        k = np.flatnonzero(after >= 0)
        lengths = np.zeros(len(self))
        lengths[k] = np.linalg.norm(self.points[after[k]] - self.points[k], axis=1)
        odd = np.zeros(len(self), bool)
        odd[k] = (lengths[k] < GAP[0] * gap) | (lengths[k] > GAP[1] * gap)
        if not odd.any():
            return self
        pieces = []
        for part, closed, (first, last) in self._parts():
            piece = self._piece(part, closed, first, last)
            pieces.append(_sampled(piece, lengths[part], gap) if odd[part].any() else piece)
        return _joined(pieces)

    def state(self) -> State:
        """All of it as arrays."""
        return dict(vars(self))

    @staticmethod
    def restored(state: State) -> Front:
        """From `state()`."""
        return Front(*(np.array(state[name]) for name in Front.__dataclass_fields__))

    def _parts(self) -> Iterable[tuple[NDArray[np.int64], bool, tuple[bool, bool]]]:
        """The points of each curve, whether it is closed, and whether its ends are bound."""
        last = np.cumsum(self.curves)
        for end, count, closed, (a, b) in zip(last, self.curves, self.closed, self.bound, strict=True):
            yield np.arange(end - count, end), bool(closed), (bool(a), bool(b))

    def _piece(self, part: NDArray[np.int64], closed: bool, *bound: bool) -> Front:
        return _one(self.points[part], self.forwards[part], self.normals[part], closed, *bound)


_NOWHERE = np.zeros((0, 3))


def unit(v: Floats) -> Floats:
    """Vectors (k, 3) of length 1."""
    return v / np.maximum(np.linalg.norm(v, axis=-1, keepdims=True), 1e-300)


def _one(points: Floats, forwards: Floats, normals: Floats, closed: bool, *bound: bool) -> Front:
    return Front(points, forwards, normals, np.array([len(points)]), np.array([closed]), np.array([bound]))


def _joined(pieces: list[Front]) -> Front:
    if not pieces:
        return Front.none()
    return Front(*(np.concatenate([getattr(p, name) for p in pieces]) for name in Front.__dataclass_fields__))


def _way_out(at: Floats, along: Floats, box: Floats, gap: float) -> Floats:
    """Points every `gap` from a place in a box until outside, shape (m, 3); none from outside."""
    if (at < box[0]).any() or (at > box[1]).any():
        return _NOWHERE
    walls = np.where(along > 0, box[1], box[0])
    way = np.min((walls - at)[along != 0] / along[along != 0])
    return at + gap * np.arange(1, int(way / gap) + 2)[:, None] * along


def _sampled(curve: Front, lengths: Floats, gap: float) -> Front:
    """One curve with points at even distances of about `gap`, by cubic pieces. `lengths` (k,) lead to the next ones."""
    points, (t, f, n) = curve.points, curve.frames()
    closed = bool(curve.closed[0])
    if closed:
        points, t, f, n = (np.concatenate([v, v[:1]]) for v in (points, t, f, n))
    else:
        lengths = lengths[:-1]
    along = np.concatenate([[0.0], np.cumsum(lengths)])
    count = max(int(np.round(along[-1] / gap)), 6 if closed else 1)
    places = np.linspace(0, along[-1], count + 1)[: count if closed else count + 1]
    k = np.clip(np.searchsorted(along, places, side="right") - 1, 0, len(lengths) - 1)
    s = ((places - along[k]) / np.maximum(lengths[k], 1e-300))[:, None]
    length = lengths[k][:, None]
    start = (1 + 2 * s) * (1 - s) ** 2 * points[k] + s * (1 - s) ** 2 * length * t[k]
    end = s**2 * (3 - 2 * s) * points[k + 1] - s**2 * (1 - s) * length * t[k + 1]
    f, n = ((1 - s) * v[k] + s * v[k + 1] for v in (f, n))
    return _one(start + end, unit(f), unit(n), closed, *curve.bound[0])
