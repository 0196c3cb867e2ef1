"""Places where surfaces are sewn to solids or to each other (physics 15.15): touches that pull as well."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from scipy.spatial import cKDTree

from phyxel.meeting.layers import Places
from phyxel.meeting.ties import BESIDE
from phyxel.rotation import cross, cross_matrix

Floats = NDArray[np.float64]
Indices = NDArray[np.int64]


@dataclass(frozen=True)
class BesideTriangles:
    """k places of a surface that lie beside its triangles: x = Σ b_c x_c + h n, n being the triangle's normal.

    A particle itself has b = (1, 0, 0) and h = 0."""

    index: Indices
    """corners, shape (k, 3)"""
    weight: Floats
    """b, with sums of 1; below 0 beyond an edge; shape (k, 3)"""
    height: Floats
    """h [m], shape (k,)"""

    @staticmethod
    def particles(who: Indices) -> BesideTriangles:
        """Particles themselves, by their numbers (k,)."""
        weight = np.zeros((len(who), 3))
        weight[:, 0] = 1.0
        return BesideTriangles(np.repeat(who[:, None], 3, axis=1), weight, np.zeros(len(who)))

    @staticmethod
    def of(places: Floats, x: Floats, triangles: NDArray[np.integer]) -> BesideTriangles:
        """Places (k, 3) that lie beside these triangles (k, 3) of particles at x (n, 3)."""
        a, b, c = (x[triangles[:, k]] for k in range(3))
        ab, ac, normal = b - a, c - a, cross(b - a, c - a)
        double = np.linalg.norm(normal, axis=1)
        normal = normal / double[:, None]
        away = places - a
        second = np.einsum("ka,ka->k", cross(away, ac), normal) / double
        third = np.einsum("ka,ka->k", cross(ab, away), normal) / double
        weight = np.stack([1 - second - third, second, third], axis=1)
        return BesideTriangles(triangles.astype(np.int64), weight, np.einsum("ka,ka->k", away, normal))

    def some(self, which: NDArray[np.integer]) -> BesideTriangles:
        """Only these."""
        return BesideTriangles(self.index[which], self.weight[which], self.height[which])

    def carried(self, which: NDArray[np.integer], count: int) -> tuple[csr_array, tuple[csr_array, ...]]:
        """Of some that are particles themselves, among `count`: φ (k, n); it has no slopes."""
        k = len(which)
        return csr_array((np.ones(k), self.index[which, 0], np.arange(k + 1)), (k, count)), ()

    def at(self, x: Floats) -> Floats:
        """Where they are when particles are at x (n, 3); shape (k, 3)."""
        return np.einsum("kc,kca->ka", self.weight, x[self.index]) + self.height[:, None] * self._normals(x)[0]

    def moved_by(self, x: Floats) -> Floats:
        """How corners move them, ∂x/∂x_c = b_c 1 + h (1 − n nᵀ)[o_c]×/|N|, o_c being the edge across; (k, 3, 3, 3)."""
        corners = x[self.index]
        across = np.stack([corners[:, (c + 2) % 3] - corners[:, (c + 1) % 3] for c in range(3)], axis=1)
        normal, double = self._normals(x)
        flat = np.eye(3) - normal[:, :, None] * normal[:, None, :]
        turns = flat[:, None] @ cross_matrix(across.reshape(-1, 3)).reshape(-1, 3, 3, 3)
        share = (self.height / double)[:, None, None, None]
        return np.asarray(self.weight[:, :, None, None] * np.eye(3) + share * turns)

    def _normals(self, x: Floats) -> tuple[Floats, Floats]:
        """Of the triangles (k, 3), and twice their areas (k,); of single particles there are none."""
        a, b, c = (x[self.index[:, k]] for k in range(3))
        normal = cross(b - a, c - a)
        double = np.maximum(np.linalg.norm(normal, axis=1), 1e-300)
        return normal / double[:, None], double


@dataclass(frozen=True)
class Stitches(Places):
    """k places of a surface that are tied to a guest, or to another surface."""

    blocks: Floats = field(kw_only=True)
    """how particles move them, shape (k, 4, 3, 3)"""
    off: Floats = field(kw_only=True)
    """how far the two would be off each other if particles stayed, and guests went their way [m], shape (k, 3)"""

    tied: ClassVar[bool] = True

    @property
    def axes(self) -> Floats:
        return np.tile(np.eye(3), (len(self), 1, 1))

    def moves(self, axes: Floats) -> Floats:
        return self.blocks

    def offset(self, axes: Floats) -> Floats:
        return self.off


def sewn_to_guest(who: Indices, off: Floats, rows: csr_array, way: Floats, guest: int) -> Stitches:
    """Particles `who` (k,) tied to a guest whose coefficients go by `way` (m, 3) in the step, off by `off` (k, 3) then;
    it is pulled at places with φ in `rows` (k, m)."""
    index, weight, blocks = _single(who)
    return _stitches(index, weight, blocks, off, rows @ way, guest, rows)


def sewn_together(x: Floats, who: Indices, other: BesideTriangles) -> Stitches:
    """Particles `who` (k,) of those at x (n, 3), tied to places of another surface, which is pulled where they are."""
    index, weight, blocks = _single(who)
    there = BesideTriangles.of(x[who], x, other.index)
    index[:, 1:], weight[:, 1:], blocks[:, 1:] = there.index, -there.weight, -there.moved_by(x)
    return _stitches(index, weight, blocks, x[who] - other.at(x), np.zeros((len(who), 3)), -1, None)


def _single(who: Indices) -> tuple[Indices, Floats, Floats]:
    weight, blocks = np.zeros((len(who), 4)), np.zeros((len(who), 4, 3, 3))
    weight[:, 0], blocks[:, 0] = 1.0, np.eye(3)
    return np.repeat(who[:, None], 4, axis=1), weight, blocks


def _stitches(
    index: Indices, weight: Floats, blocks: Floats, off: Floats, way: Floats, guest: int, rows: csr_array | None
) -> Stitches:
    none = np.zeros(len(index))
    return Stitches(index, weight, np.zeros((len(index), 3)), none, way, none, guest, rows, blocks=blocks, off=off)


def beside(stitches: Floats, x: Floats, unit: float) -> NDArray[np.bool_]:
    """Which of places (n, 3) are so near some stitches (k, 3) that they do not touch what these are tied to, of
    spacings of `unit` [m] at most."""
    return np.asarray(np.isfinite(cKDTree(stitches).query(x, distance_upper_bound=BESIDE * unit)[0]))
