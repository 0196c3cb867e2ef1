"""Meshes that open along cracks (physics 8.11): triangles are cut where a crack goes through them, and cracks have two
faces (physics 8.10)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from phyxel.cracks.crack import Crack
from phyxel.surface.clipping import Field

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


@dataclass(frozen=True)
class Triangles:
    """A mesh in a body's reference coordinates and units."""

    points: Floats
    """shape (n, 3)"""
    normals: Floats
    """outward, shape (n, 3)"""
    colors: Floats
    """shape (n, 3)"""
    faces: Integers
    """shape (m, 3)"""
    uv: Floats | None = None
    """texture coordinates of the corners of faces, shape (m, 3, 2)"""

    @property
    def middles(self) -> Floats:
        """Of the faces, shape (m, 3)."""
        return self.points[self.faces].mean(axis=1)

    def kept(self, chosen: NDArray[np.bool_]) -> Triangles:
        """The faces that are chosen, (m,), and the points that they have."""
        points, faces = np.unique(self.faces[chosen], return_inverse=True)
        uv = None if self.uv is None else self.uv[chosen]
        x, n, color = (field[points] for field in self.fields)
        return Triangles(x, n, color, faces.reshape(-1, 3), uv)

    def joined(self, other: Triangles) -> Triangles:
        """Both; if only one has texture coordinates the other's are 0."""
        x, n, color = (np.concatenate(pair) for pair in zip(self.fields, other.fields, strict=True))
        faces = np.concatenate([self.faces, len(self.points) + other.faces])
        uv = None
        if self.uv is not None or other.uv is not None:
            uv = np.concatenate([np.zeros((len(t.faces), 3, 2)) if t.uv is None else t.uv for t in (self, other)])
        return Triangles(x, n, color, faces, uv)

    @property
    def fields(self) -> tuple[Floats, Floats, Floats]:
        """What points have."""
        return self.points, self.normals, self.colors


def opened(mesh: Triangles, cracks: Sequence[Crack], inside: Field, color: Floats, offset: float) -> Triangles:
    """A mesh cut along cracks, and their faces in a color (3,) where `inside` is positive. What lies on either side of
    a crack is `offset` away from it, so that it is known which side that is."""
    for crack in cracks:
        mesh = cut_by(mesh, crack, offset)
    for crack in cracks:
        face = face_of(crack, inside, color)
        for other in cracks:
            face = face if other is crack else cut_by(face, other, offset)
        way = offset * face.normals
        # The material where ψ1 > 0 looks to where it is negative.
        mesh = mesh.joined(replace(face, points=face.points + way, normals=-face.normals, faces=face.faces[:, ::-1]))
        mesh = mesh.joined(replace(face, points=face.points - way))
    return mesh


def face_of(crack: Crack, inside: Field, color: Floats) -> Triangles:
    """The triangles of a crack's surface inside the solid, looking along ∇ψ1."""
    corners = crack.sheet().reshape(-1, 3)
    # Neighbours share corners, but for rounding.
    _, first, index = np.unique(np.round(corners, 9), axis=0, return_index=True, return_inverse=True)
    points = corners[first]
    colors = np.broadcast_to(color, points.shape).copy()
    mesh = Triangles(points, crack.normals(points), colors, index.reshape(-1, 3))
    mesh = cut(mesh, inside(points), np.ones(len(mesh.faces), bool))
    return mesh.kept(inside(mesh.middles) > 0)


def cut_by(mesh: Triangles, crack: Crack, offset: float) -> Triangles:
    """A mesh cut where a crack goes through its faces."""
    height = crack.values(mesh.points)[0]
    above = height[mesh.faces] >= 0
    chosen = np.any(above, axis=1) & ~np.all(above, axis=1)
    mixed = np.flatnonzero(chosen)
    h, corners = height[mesh.faces[mixed]], mesh.points[mesh.faces[mixed]]
    next_h, next_corners = np.roll(h, -1, axis=1), np.roll(corners, -1, axis=1)
    crosses = (h >= 0) != (next_h >= 0)
    share = np.where(crosses, h, 0) / np.where(crosses, h - next_h, 1)
    places = corners + share[..., None] * (next_corners - corners)
    behind = crack.values(places.reshape(-1, 3))[1].reshape(-1, 3) < 0
    chosen[mixed] = (behind & crosses).any(axis=1)
    whole, mesh = len(mesh.points), cut(mesh, height, chosen)
    # New points come in two halves: first those where ψ1 > 0.
    points = mesh.points.copy()
    first, second = np.split(np.arange(whole, len(points)), 2)
    way = offset * crack.normals(points[first])
    points[first] += way
    points[second] -= way
    return replace(mesh, points=points)


def cut(mesh: Triangles, values: Floats, chosen: NDArray[np.bool_]) -> Triangles:
    """A mesh with those of the chosen faces, (m,), in three on whose corners `values` (n,) have both signs: cut along a
    straight line where they are zero. Its ends are twice among the new points: first for all faces on the side where
    values are positive, then for all others."""
    above = values >= 0
    count = above[mesh.faces].sum(axis=1)
    cut_faces = np.flatnonzero(chosen & (count > 0) & (count < 3))
    faces = mesh.faces[cut_faces]
    # Turned until the corner that is alone on its side is the first.
    alone = np.argmax(above[faces] == (count[cut_faces] == 1)[:, None], axis=1)
    turn = (alone[:, None] + np.arange(3)) % 3
    faces = np.take_along_axis(faces, turn, axis=1)
    ends = np.sort(faces[:, [[0, 1], [0, 2]]].reshape(-1, 2), axis=1)
    edges, which = np.unique(ends, axis=0, return_inverse=True)
    which = which.reshape(-1, 2)
    share = (values[edges[:, 0]] / (values[edges[:, 0]] - values[edges[:, 1]]))[:, None]
    new = [field[edges[:, 0]] + share * (field[edges[:, 1]] - field[edges[:, 0]]) for field in mesh.fields]
    first = len(mesh.points) + np.where(above[faces[:, :1]], 0, len(edges)) + which
    other = len(mesh.points) + np.where(above[faces[:, :1]], len(edges), 0) + which
    parts = [
        np.column_stack([faces[:, 0], first]),
        np.column_stack([other[:, 0], faces[:, 1:]]),
        np.column_stack([other[:, 0], faces[:, 2], other[:, 1]]),
    ]
    kept = np.ones(len(mesh.faces), bool)
    kept[cut_faces] = False
    uv = mesh.uv
    if uv is not None:
        corners = np.take_along_axis(uv[cut_faces], turn[..., None], axis=1)
        far = (values[faces[:, :1]] / (values[faces[:, :1]] - values[faces[:, 1:]]))[..., None]
        p, q = np.moveaxis(corners[:, :1] + far * (corners[:, 1:] - corners[:, :1]), 1, 0)
        one, two, three = np.moveaxis(corners, 1, 0)
        cut_uv = [np.stack(three_of, axis=1) for three_of in ((one, p, q), (p, two, three), (p, three, q))]
        uv = np.concatenate([uv[kept], *cut_uv])
    x, n, color = (np.concatenate([field, more, more]) for field, more in zip(mesh.fields, new, strict=True))
    return Triangles(x, n, color, np.concatenate([mesh.faces[kept], *parts]), uv)
