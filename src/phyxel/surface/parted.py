"""What is seen of a body with cracks: its own discs, cut where they reach across one, and the faces of the cracks
(physics 8.10).

Faces are discs spread evenly over ψ1 = 0 where ψ2 < 0, inside the solid (G04 §4.3). Where they lie depends on ψ1 around
them alone, so that a crack that grows on keeps the faces it has. Columns of a fixed hexagonal lattice are let down on
the crack along whichever of thirteen directions is nearest to its normal, never more than 27° away; their round
cross-sections, seen along the column on the crack, cover it without a gap.
"""

from __future__ import annotations

import itertools
from collections import OrderedDict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from phyxel.cracks.crack import Crack
from phyxel.rotation import tangents
from phyxel.surface.clipping import Ellipses, Field, Floats, reaching_across, shrunk, split, within
from phyxel.surface.discs import OVERLAP, DiscShape, Rest
from phyxel.surface.ids import ids_of_parts

WAYS = np.array([way for way in itertools.product((-1, 0, 1), repeat=3) if way > (0, 0, 0)], float)
WAYS /= np.linalg.norm(WAYS, axis=1, keepdims=True)
"""Directions of columns, shape (13, 3)."""
NEARLY = 0.985
"""Columns of other directions that are nearly as near count too: where two lattices meet there is no gap."""
STEEPEST = 0.8
"""Cosine between a triangle and columns that may meet ψ1 = 0 near it."""
SETTLED = 8
"""How often a place is brought closer to ψ1 = 0."""
HIGH = np.sqrt(0.75)
"""Distance of rows of a hexagonal lattice over that of its points."""
SEAM = 1e-9
"""How far beside a triangle a column may come down, over its size: rounding must not leave a gap."""
STOREY = 4.0
"""Height along a column within which discs are taken for the same one, over the spacing: a crack that grows bends a
little where it was."""
ON = 1e-3
"""How far from ψ1 = 0 a place on it may be, over the spacing."""
OFFSET = 1e-3
"""How far a face lies on its own side of its crack, over the spacing of surfels: enough to say which side that is."""
LEAST = 1e-3
"""Radius of what stays of a disc whose centre is on a crack, over what it was."""
KNOWN = 64
"""Cracks whose faces are remembered."""
SLACK = 1.5
"""Longest half axis of a part over the radius it is judged by when it is stretched: parts may be slim."""
_LONG = np.array([9.0, 12.0, 16.0, 21.0, 28.0, 40.0])[:, None, None]
WAVES = 2 * np.pi * np.random.default_rng(4).normal(size=(len(_LONG), 3, 3)) / _LONG
"""Sets of three wave vectors, times the spacing of surfels: the grain of what has broken."""


def face_of(crack: Crack, inside: Field, spacing: float) -> tuple[Ellipses, Floats]:
    """Discs about `spacing` apart that cover a crack where `inside` is positive, each with the number of its column as
    its owner, and unit ∇ψ1 at each, (m, 3)."""
    triangles = np.asarray(crack.sheet(), np.float64).reshape(-1, 3, 3)
    if len(triangles):
        middle = triangles.mean(axis=1)
        size = np.linalg.norm(triangles - middle[:, None], axis=2).max(axis=1)
        triangles = triangles[inside(middle) > -size - OVERLAP * spacing]
    found = [discs_along(crack, triangles, way, spacing) for way in WAYS] if len(triangles) else []
    if not found:
        none = np.zeros((0, 3))
        return Ellipses(none, none, none, np.zeros(0, np.int64)), none
    whole = Ellipses.joined(*found)
    columns = whole.owner
    whole = whole._replace(owner=np.arange(len(whole.points)))
    normals = crack.normals(whole.points)
    open_part = within(within(whole, lambda x: -crack.values(x)[1]), inside)
    return open_part._replace(owner=columns[open_part.owner]), normals[open_part.owner]


def discs_along(crack: Crack, triangles: Floats, way: Floats, spacing: float) -> Ellipses:
    """Discs where columns along one of WAYS meet triangles (k, 3, 3) that face it, brought onto ψ1 = 0, each with the
    number of its column as its owner."""
    e, f = (axis[0] for axis in tangents(way[None]))
    across = np.cross(triangles[:, 1] - triangles[:, 0], triangles[:, 2] - triangles[:, 0])
    facing = np.abs(across @ way) > STEEPEST * np.linalg.norm(across, axis=1)
    X = met(triangles[facing], np.stack([e, f, way]), spacing)
    for _ in range(SETTLED):
        n = crack.normals(X)
        X = X - (crack.values(X)[0] / np.where(np.abs(n @ way) > 0.5, n @ way, np.inf))[:, None] * way
    n = crack.normals(X)
    fits = (np.abs(n @ way) >= NEARLY * np.abs(n @ WAYS.T).max(axis=1)) & (np.abs(crack.values(X)[0]) < ON * spacing)
    X, n = X[fits], n[fits]
    # e and f seen along the column on the plane of n, turned so that a × b looks along n.
    axis_a, axis_b = (OVERLAP * spacing * (axis - np.outer((n @ axis) / (n @ way), way)) for axis in (e, f))
    axis_b *= np.sign(n @ way)[:, None]
    along = np.stack([e / 2, HIGH * f, STOREY * way]) * spacing
    places = np.rint(X @ (along / (along**2).sum(axis=1)[:, None]).T).astype(np.int64) % 2**16
    number = int(np.flatnonzero((way == WAYS).all(axis=1))[0])
    return Ellipses(X, axis_a, axis_b, ((number << 16 | places[:, 0]) << 16 | places[:, 1]) << 16 | places[:, 2])


def met(triangles: Floats, frame: Floats, spacing: float) -> Floats:
    """Where columns of a hexagonal lattice, along the third of three unit vectors, meet triangles (k, 3, 3), each place
    once, (m, 3)."""
    corners = triangles @ frame.T
    which, row, column = columns_near(corners[..., :2], spacing)
    at = np.stack([spacing * (column + 0.5 * (row % 2)), HIGH * spacing * row], axis=1)
    first, second, third = corners[which].transpose(1, 0, 2)
    one, two = second - first, third - first
    area = cross(one, two)
    area[area == 0] = np.inf
    shares = np.stack([cross(at - first[:, :2], two), cross(one, at - first[:, :2])], axis=1) / area[:, None]
    height = first[:, 2] + shares[:, 0] * one[:, 2] + shares[:, 1] * two[:, 2]
    hit = (shares >= -SEAM).all(axis=1) & (shares.sum(axis=1) <= 1 + SEAM)
    # A column that comes down on the edge of two triangles meets one surface.
    keys = np.stack([row, column, np.rint(height / spacing).astype(np.int64)], axis=1)[hit]
    _, once = np.unique(keys, axis=0, return_index=True)
    return np.column_stack([at, height])[hit][once] @ frame


def cross(one: Floats, other: Floats) -> Floats:
    """The third component of the cross products of vectors (n, 2 or 3), (n,)."""
    return one[:, 0] * other[:, 1] - one[:, 1] * other[:, 0]


def columns_near(corners: Floats, spacing: float) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Triangles (k, 3, 2), and the rows and columns of the lattice in the boxes around them: pairs, each (p,)."""
    lower, upper = corners.min(axis=1) / spacing, corners.max(axis=1) / spacing
    row, end_row = np.ceil(lower[:, 1] / HIGH).astype(np.int64), np.floor(upper[:, 1] / HIGH).astype(np.int64) + 1
    column, end_column = np.floor(lower[:, 0]).astype(np.int64), np.floor(upper[:, 0]).astype(np.int64) + 1
    wide = end_column - column
    count = (end_row - row) * wide
    which = np.repeat(np.arange(len(corners)), count)
    number = np.arange(len(which)) - np.repeat(np.cumsum(count) - count, count)
    return which, row[which] + number // wide[which], column[which] + number % wide[which]


@dataclass(frozen=True)
class Parted:
    """Discs of a cracked body at rest. The first m are the surfels it came with, at their places: those that were cut
    have shrunk to what fits on their own side, and others behind them cover what they covered."""

    shape: DiscShape
    radii: Floats
    """what stretch is judged by, in the unit of the positions, shape (m + k,)"""
    was_cut: NDArray[np.bool_]
    """which of those it came with, shape (m,)"""
    source: NDArray[np.int64]
    """the surfel it came with that each was, negative for the face of a crack, shape (m + k,)"""
    ids: NDArray[np.int64]
    """numbers by which they are known, shape (m + k,): of those it came with, which of the whole's they are"""


@dataclass(frozen=True)
class Piece:
    """What of a body that fell apart hangs together."""

    points: NDArray[np.int64]
    """the surfels that the whole came with and that went with it, ascending, shape (m,)"""
    lower: Floats
    upper: Floats
    """a box that holds all of it, each of shape (3,)"""
    has: Callable[[Floats], NDArray[np.bool_]]
    """whether places (k, 3) near a crack are on its own side, (k,)"""

    def near(self, discs: Ellipses) -> NDArray[np.bool_]:
        """Discs that may have to do with it, (m,)."""
        return np.all((discs.points > self.lower) & (discs.points < self.upper), axis=1)


@dataclass(frozen=True)
class Inner:
    """What cracks lay open."""

    color: Floats
    """red, green, blue in 0..1, shape (3,)"""
    rough: float = 0.0
    """how far it is tilted here and there [rad]"""


class Whole:
    """A body before there were cracks. It knows what they laid open for as long as they stay as they are, and all
    pieces of the body share it: a crack is looked at once."""

    def __init__(self, rest: Rest, inside: Field) -> None:
        """`inside` is positive in the solid and falls by one per unit of length outward."""
        self.rest, self.inside = rest, inside
        self.spacing = float(np.median(rest.radii)) / OVERLAP
        """how far apart its surfels are"""
        self.birth = DiscShape.at_birth(rest)
        self._faces: OrderedDict[bytes, tuple[Ellipses, Floats]] = OrderedDict()
        self._dealt: tuple[bytes, Dealt | None] = b"", None
        """the cracks by which it fell apart last, and what they made of it"""

    def falls_apart(self, cracks: Iterable[Crack]) -> None:
        """Several pieces will ask what these cracks made of it."""
        if self._dealt[0] != (known := _digest(cracks)):
            self._dealt = known, None

    def dealt(self, cracks: Sequence[Crack], rough: float, piece: Piece | None) -> Dealt:
        """What cracks make of it, or of what is near a piece of it."""
        if piece is not None and self._dealt[0] == _digest(cracks):
            found = self._dealt[1] or dealt_out(self, cracks, rough, None)
            self._dealt = self._dealt[0], found
            return found
        return dealt_out(self, cracks, rough, piece)

    def face_of(self, crack: Crack) -> tuple[Ellipses, Floats]:
        """What `face_of` finds of it, remembered."""
        known = _digest([crack])
        found = self._faces.pop(known, None) or face_of(crack, self.inside, self.spacing)
        self._faces[known] = found
        if len(self._faces) > KNOWN:
            self._faces.popitem(last=False)
        return found


class Dealt(NamedTuple):
    """Discs as cracks part them."""

    own: Ellipses
    """surfels that it came with, each its own owner, ascending"""
    was_cut: NDArray[np.bool_]
    """of each of these"""
    new: Ellipses
    """parts of them, and faces, whose owners are negative: one for each side of each column"""
    ids: NDArray[np.int64]
    """numbers by which new ones are known"""


def _digest(cracks: Iterable[Crack]) -> bytes:
    """The same for the same cracks."""
    return blake2b(b"".join(crack.psi1.tobytes() + crack.psi2.tobytes() for crack in cracks)).digest()


def parted(whole: Whole, cracks: Iterable[Crack], inner: Inner, piece: Piece | None = None) -> Parted:
    """The surfels of a body, or of a piece of it, as cracks part them."""
    own, was_cut, new, ids = whole.dealt(list(cracks), inner.rough, piece)
    if piece is not None:
        rows = np.searchsorted(own.owner, piece.points)
        own, was_cut = own.some(rows), was_cut[rows]
        near = np.flatnonzero(piece.near(new))
        near = near[piece.has(new.points[near])]
        new, ids = new.some(near), ids[near]
    found, m = own.joined(new), len(own.points)
    outside = np.asarray(whole.birth.colors, np.float64)[np.maximum(found.owner, 0)]
    colors = np.where(found.owner[:, None] < 0, inner.color, outside)
    radii = found.longest / SLACK
    radii[:m] = np.where(was_cut, radii[:m], whole.rest.radii[own.owner])
    ids = np.concatenate([own.owner, ids])
    return Parted(DiscShape(found.points, found.axis_a, found.axis_b, colors), radii, was_cut, found.owner, ids)


def dealt_out(whole: Whole, cracks: Sequence[Crack], rough: float, piece: Piece | None) -> Dealt:
    """What cracks make of a body, or at least of all that is near a piece of it."""
    points, axis_a, axis_b = (np.asarray(field, np.float64) for field in whole.birth[:3])
    discs = Ellipses(points, axis_a, axis_b, np.arange(len(points)))
    if piece is not None:
        near = piece.near(discs)
        near[piece.points] = True
        discs = discs.some(near)
    own, was_cut, parts = cut(discs, cracks)
    faces = (faces_of(crack, cracks, whole, rough, piece) for crack in cracks)
    new = parts.joined(*faces)
    return Dealt(own, was_cut, new, ids_of_parts(new.owner))


def cut(discs: Ellipses, cracks: Sequence[Crack]) -> tuple[Ellipses, NDArray[np.bool_], Ellipses]:
    """Discs shrunk to what fits on their own side of all cracks, which of them were cut, and the parts that cover what
    those covered."""
    was_cut = np.zeros(len(discs.points), bool)
    parts = discs.some(was_cut)
    for crack in cracks:
        across = reaching_across(discs, crack)
        fresh = discs.some(across[~was_cut[across]])
        parts = split_along(parts.joined(fresh), crack)
        was_cut[across] = True
        room = np.abs(crack.values(discs.points[across])[0]) / discs.longest[across]
        factor = np.ones(len(was_cut))
        factor[across] = np.clip(room, LEAST, 1)
        discs = discs.scaled(factor)
    return discs, was_cut, kept_apart(parts, cracks)


def split_along(discs: Ellipses, crack: Crack) -> Ellipses:
    """Discs with parts in place of those that reach across a crack."""
    across = np.zeros(len(discs.points), bool)
    across[reaching_across(discs, crack)] = True
    return discs.some(~across).joined(split(discs.some(across), height_over(crack)))


def height_over(crack: Crack, side: int = 1) -> Field:
    """ψ1, or −ψ1, as a field."""
    return lambda x: side * crack.values(x)[0]


def kept_apart(discs: Ellipses, cracks: Sequence[Crack]) -> Ellipses:
    """Discs on their own side of all cracks: parts made by one may reach a little across another that was cut along
    before."""
    for crack in cracks:
        across = np.zeros(len(discs.points), bool)
        across[reaching_across(discs, crack)] = True
        parts = discs.some(across)
        above = crack.values(parts.points)[0] > 0
        own_side = (shrunk(parts.some(above == up), height_over(crack, 1 if up else -1)) for up in (True, False))
        discs = discs.some(~across).joined(*own_side)
    return discs


def faces_of(crack: Crack, cracks: Sequence[Crack], whole: Whole, rough: float, piece: Piece | None) -> Ellipses:
    """Discs of both faces of a crack, cut by the others, with negative owners. First that of the material where ψ1 > 0,
    which looks to where ψ1 < 0."""
    (discs, normals), spacing = whole.face_of(crack), whole.spacing
    columns = discs.owner
    discs = discs._replace(owner=np.arange(len(normals)))
    if piece is not None:
        discs = discs.some(piece.near(discs))
    _, was_cut, parts = cut(discs, [other for other in cracks if other is not crack])
    discs = discs.some(~was_cut).joined(shrunk(parts, whole.inside))
    n, column = normals[discs.owner], columns[discs.owner]
    discs = tilted(discs, n, rough, spacing)
    above, below = (
        discs._replace(points=discs.points + side * OFFSET * spacing * n, owner=-2 * column - (side > 0) - 1)
        for side in (1, -1)
    )
    return above._replace(axis_a=above.axis_b, axis_b=above.axis_a).joined(below)


def tilted(discs: Ellipses, normals: Floats, rough: float, spacing: float) -> Ellipses:
    """Discs that look as if there were waves on the plane of their normals (m, 3), by about `rough` [rad] in the
    mean."""
    if rough == 0:
        return discs
    waves = np.sqrt(2 / len(WAVES)) * sum(
        np.sin(discs.points @ (wave / spacing) + phase) for phase, wave in enumerate(WAVES)
    )
    return discs._replace(
        axis_a=discs.axis_a + rough * _rise(waves, discs.axis_a) * normals,
        axis_b=discs.axis_b + rough * _rise(waves, discs.axis_b) * normals,
    )


def _rise(waves: Floats, axis: Floats) -> Floats:
    return np.einsum("ma,ma->m", waves, axis)[:, None]
