"""What is seen of a body with cracks: its own discs, cut where they reach across one, and the faces of the cracks."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from phyxel.cracks.crack import Crack
from phyxel.surface.cutting import Ellipses, Field, reaching_across, split
from phyxel.surface.discs import OVERLAP, Rest, Shape
from phyxel.surface.faces import face_of

Floats = NDArray[np.float64]

OFFSET = 1e-3
"""How far a face lies on its own side of its crack, over the spacing of surfels: enough to say which side that is."""
LEAST = 1e-3
"""Radius of what stays of a disc whose centre is on a crack, over what it was."""
SLACK = 1.5
"""Longest half axis of a part over the radius it is judged by when it is stretched: parts may be slim."""
WAVES = 2 * np.pi * np.array([m / w for w, m in zip((5, 7, 11), np.random.default_rng(4).normal(size=(3, 3, 3)), strict=True)])
"""Three sets of three wave vectors, times the spacing of surfels: the grain of what has broken."""


@dataclass(frozen=True)
class Parted:
    """Discs of a cracked body at rest. The first m are the surfels it came with, at their places: those that were cut
    have shrunk to what fits on their own side, and others behind them cover what they covered."""

    shape: Shape
    radii: Floats
    """what stretch is judged by, in the unit of the positions, shape (m + k,)"""
    was_cut: NDArray[np.bool_]
    """which of those it came with, shape (m,)"""
    source: NDArray[np.int64]
    """the surfel it came with that each was, −1 for the face of a crack, shape (m + k,)"""


@dataclass(frozen=True)
class Piece:
    """What has become of a body that fell apart."""

    points: NDArray[np.int64]
    """the surfels that the whole came with and that went with it, shape (m,)"""
    has: Callable[[Floats], NDArray[np.bool_]]
    """whether places (k, 3) near a crack are on its own side, (k,)"""


@dataclass(frozen=True)
class Inner:
    """What cracks lay open."""

    inside: Field
    """positive in the solid, falls by one per unit of length outward"""
    color: Floats
    """red, green, blue in 0..1, shape (3,)"""
    rough: float = 0.0
    """how far it is tilted here and there [rad]"""


def parted(whole: Rest, cracks: Iterable[Crack], inner: Inner, piece: Piece | None = None) -> Parted:
    """Of surfels as they were at birth: as `cracks` part them."""
    cracks, birth = list(cracks), Shape.at_birth(whole)
    discs = Ellipses(*(np.asarray(field, np.float64) for field in birth[:3]), np.arange(len(birth.points)))
    own, was_cut, parts = cut(discs, cracks)
    spacing = float(np.median(whole.radii)) / OVERLAP
    new = parts.joined(*(faces_of(crack, cracks, inner, spacing) for crack in cracks))
    radii = np.where(was_cut, own.longest / SLACK, whole.radii)
    if piece is not None:
        own, was_cut, radii = own.some(piece.points), was_cut[piece.points], radii[piece.points]
        new = new.some(piece.has(new.points))
    found = own.joined(new)
    colors = np.where(found.owner[:, None] < 0, inner.color, np.asarray(birth.colors, np.float64)[found.owner])
    shape = Shape(found.points, found.axis_a, found.axis_b, colors)
    return Parted(shape, np.concatenate([radii, new.longest / SLACK]), was_cut, found.owner)


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
    return discs, was_cut, parts


def split_along(discs: Ellipses, crack: Crack) -> Ellipses:
    """Discs with parts in place of those that reach across a crack."""
    across = np.zeros(len(discs.points), bool)
    across[reaching_across(discs, crack)] = True
    return discs.some(~across).joined(split(discs.some(across), lambda x: crack.values(x)[0]))


def faces_of(crack: Crack, cracks: Sequence[Crack], inner: Inner, spacing: float) -> Ellipses:
    """Discs of both faces of a crack, cut by the others; none has an owner. First that of the material where ψ1 > 0,
    which looks to where ψ1 < 0."""
    discs, normals = face_of(crack, inner.inside, spacing)
    discs = discs._replace(owner=np.arange(len(normals)))
    for other in cracks:
        if other is not crack:
            discs = split_along(discs, other)
    n = normals[discs.owner]
    discs = tilted(discs._replace(owner=np.full(len(n), -1)), n, inner.rough, spacing)
    above, below = (discs._replace(points=discs.points + side * OFFSET * spacing * n) for side in (1, -1))
    return above._replace(axis_a=above.axis_b, axis_b=above.axis_a).joined(below)


def tilted(discs: Ellipses, normals: Floats, rough: float, spacing: float) -> Ellipses:
    """Discs that look as if there were waves on the plane of their normals (m, 3), by about `rough` [rad] at most."""
    if rough == 0:
        return discs
    waves = sum(np.sin(discs.points @ (wave / spacing) + phase) for phase, wave in enumerate(WAVES))
    return discs._replace(
        axis_a=discs.axis_a + rough * _rise(waves, discs.axis_a) * normals,
        axis_b=discs.axis_b + rough * _rise(waves, discs.axis_b) * normals,
    )


def _rise(waves: Floats, axis: Floats) -> Floats:
    return np.einsum("ma,ma->m", waves, axis)[:, None]
