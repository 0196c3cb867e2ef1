"""How the particles of a sheet carry what is seen of it: each one by itself, turned and stretched by those around it
(physics 8.9).

A particle's own surfel goes where it goes, φ_i = 1. Its disc goes with the displacement of its ring, the corners of the
faces that it belongs to, or its nearest if it has no faces. With t the way to one of them as seen along the normal n,
and h that along n, weights w = 1/|t + h n|² and T = Σ w t tᵀ, ∇φ_j = T⁻¹ w_j t_j is the tangential gradient by least
squares. Then Σ (a·∇φ_j)(t_j + h_j n) = a + (k·a) n with k = T⁻¹ Σ w h t: an axis in the plane h = k·t goes exactly
with any affine motion of the ring, however it is curved. Discs therefore lie in that plane. In the middle of an even
sheet k = 0; at the edge of a curved one they are tilted by half the angle from ring to ring.

Discs of a mesh reach as far as the particles around them, and no farther: where a sheet is folded they stick out by the
square of their size. As they are stretched with it they cover it as well whatever it does. A round
disc at the rim of a sheet would stick out of it, so there they are slim across the rim, and at corners small.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import permutations

import numpy as np
import warp as wp
from numpy.typing import NDArray
from scipy.sparse import csr_array

from phyxel.mls.neighbours import nearest
from phyxel.mls.shape_values import ShapeValues
from phyxel.rotation import tangents
from phyxel.surface.discs import Floats, disc_radii

Indices = NDArray[np.integer]

AROUND = 8
"""Nearest particles that are a ring where no face makes one."""
FLATTEST = 1e-3
"""Least over largest eigenvalue of T, below which a ring is a line and says little about the way across."""
REACH, WIDE = 1.3, 1.05
"""Radius of a disc over the way from the middle of a face around it to the farthest corner, so that it is covered; and
over the mean length of its edges, so that it looks smooth, at least."""
SLIM, SMALL = 0.4, 0.5
"""Half axis across the rim of a disc there, and any of one in a corner, over its radius elsewhere."""
BENT = 0.8
"""Length of the sum of the two directions along the rim above which there is a corner, or a notch: it turns by 47°."""


@dataclass(frozen=True)
class Ring:
    """What the rings of n particles say, in the coordinates and units of their reference shape."""

    values: ShapeValues
    """φ and tangential ∇φ at the particles"""
    normals: Floats
    """of their discs, shape (n, 3)"""
    axes: tuple[Floats, Floats]
    """half axes of their discs over the radius, each (n, 3)"""
    radii: Floats
    """of their discs, shape (n,)"""
    is_open: bool
    """whether there is a rim, and both sides can be seen; it is not known of points without faces, but may be"""

    @staticmethod
    def around(positions: Floats, normals: Floats, faces: Indices | None, device: wp.Device) -> Ring:
        """Of particles (n, 3) with unit normals (n, 3), at the corners of faces (m, 3 or 4), if there are any."""
        none = np.empty((0, 2), np.int64)
        owner, other = _apart(positions, *_pairs(none if faces is None else faces, len(positions)))
        weak = np.flatnonzero(~_determined(positions, normals, owner, other))
        near = nearest(positions[weak], positions, min(AROUND + 1, len(positions)))[1]
        kept = np.isin(owner, weak, invert=True)
        owner = np.append(owner[kept], np.repeat(weak, near.shape[1]))
        other = np.append(other[kept], near.reshape(-1))
        owner, other = _apart(positions, owner, other)
        values, upright = _solved(positions, normals, owner, other, device)
        if faces is None:
            return Ring(values, upright, tangents(upright), disc_radii(positions), True)
        rim = _rim_edges(faces)
        axes = _slim_at(rim, upright, positions, owner, other)
        return Ring(values, upright, axes, _radii(positions, faces), len(rim) > 0)

    def gradient(self, u: Floats) -> NDArray[np.float64]:
        """∇u, (n, 3, 3), of displacements u (n, 3): along the sheet that of the ring; across it such that the normal
        stays one, unit length and upright."""
        along = np.stack([slope @ u for slope in self.values.gradients], axis=2, dtype=np.float64)
        a, b = (axis + np.einsum("nij,nj->ni", along, axis) for axis in tangents(self.normals))
        return along + (_unit(np.cross(a, b)) - self.normals)[:, :, None] * self.normals[:, None, :]


def _pairs(faces: Indices, count: int) -> tuple[Indices, Indices]:
    """Each corner of a face with each other one, once, (pairs,) each, by owner."""
    ends = np.concatenate([faces[:, pair] for pair in permutations(range(faces.shape[1]), 2)])
    lists = csr_array((np.ones(len(ends)), ends.T), (count, count))
    return np.repeat(np.arange(count), np.diff(lists.indptr)), lists.indices


def _apart(positions: Floats, owner: Indices, other: Indices) -> tuple[Indices, Indices]:
    """The pairs that do not lie in one place."""
    apart = (positions[owner] != positions[other]).any(axis=1)
    return owner[apart], other[apart]


def _arms(
    positions: Floats, normals: Floats, owner: Indices, other: Indices
) -> tuple[Floats, Floats, Floats, Floats, Floats]:
    """Of pairs: t in the two tangents of the owner, (p, 2), h and w, (p,); of particles T and Σ w h t."""
    way, count = positions[other] - positions[owner], len(positions)
    frame = np.stack(tangents(normals), axis=1)
    t, h = np.einsum("pij,pj->pi", frame[owner], way), np.einsum("pi,pi->p", normals[owner], way)
    w = 1 / np.einsum("pi,pi->p", way, way)
    T = _summed(owner, w[:, None, None] * t[:, :, None] * t[:, None, :], count)
    return t, h, w, T, _summed(owner, (w * h)[:, None] * t, count)


def _determined(positions: Floats, normals: Floats, owner: Indices, other: Indices) -> NDArray[np.bool_]:
    """Whether a ring says how its particle is turned and stretched, (n,)."""
    T = _arms(positions, normals, owner, other)[3]
    least, largest = np.linalg.eigvalsh(T).T
    return least > FLATTEST * np.maximum(largest, np.finfo(float).tiny)


def _solved(
    positions: Floats, normals: Floats, owner: Indices, other: Indices, device: wp.Device
) -> tuple[ShapeValues, Floats]:
    """φ and ∇φ, and the normals of the planes of the rings."""
    count = len(positions)
    t, _, w, T, q = _arms(positions, normals, owner, other)
    # What a line of particles leaves open stays as it was.
    inverse = np.linalg.pinv(T, rcond=FLATTEST, hermitian=True)
    frame = np.stack(tangents(normals), axis=1)
    k = np.einsum("nij,ni->nj", frame, np.einsum("nij,nj->ni", inverse, q))
    upright = _unit(normals - k)
    slope = np.einsum("pij,pi->pj", frame[owner], np.einsum("pij,pj->pi", inverse[owner], w[:, None] * t))
    slope -= np.einsum("pi,pi->p", slope, upright[owner])[:, None] * upright[owner]
    itself = np.arange(count)
    rows, columns = np.append(itself, owner), np.append(itself, other)
    order = np.lexsort((columns, rows))
    phi = np.append(np.ones(count), np.zeros(len(owner)))
    dphi = np.concatenate([-_summed(owner, slope, count), slope])
    start = np.concatenate([[0], np.cumsum(np.bincount(rows, minlength=count))])
    state = {"start": start, "index": columns[order], "phi": phi[order], "dphi": dphi[order]}
    return ShapeValues.restored(state | {"condition": np.ones(count)}, count, device), upright


def _radii(positions: Floats, faces: Indices) -> Floats:
    """Of discs that cover the faces, (n,); one that no face has is as large as most."""
    corners = positions[faces]
    reach = REACH * np.linalg.norm(corners - corners.mean(axis=1, keepdims=True), axis=2).max(axis=1)
    edge = WIDE * np.linalg.norm(corners - np.roll(corners, 1, axis=1), axis=2).mean(axis=1)
    radii = np.zeros(len(positions))
    np.maximum.at(radii, faces, np.maximum(reach, edge)[:, None])
    return np.where(radii > 0, radii, np.median(radii[radii > 0]))


def _rim_edges(faces: Indices) -> Indices:
    """Edges that only one face has, both ways, (e, 2)."""
    edges = np.stack([faces, np.roll(faces, -1, axis=1)], axis=2).reshape(-1, 2)
    edges, times = np.unique(np.sort(edges, axis=1), axis=0, return_counts=True)
    once = edges[times == 1]
    return np.concatenate([once, once[:, ::-1]])


def _slim_at(rim: Indices, normals: Floats, positions: Floats, owner: Indices, other: Indices) -> tuple[Floats, Floats]:
    """Half axes of discs over the radius: one, but at the rim less across it, and at corners in every direction."""

    def ways(owner: Indices, other: Indices) -> Floats:
        way = positions[other] - positions[owner]
        return _unit(way - np.einsum("pi,pi->p", way, normals[owner])[:, None] * normals[owner])

    count = len(positions)
    bend, inward = (_summed(one, ways(one, two), count) for one, two in (rim.T, (owner, other)))
    along = ways(*rim.T)
    # The last eigenvector: either way along the rim.
    axis = np.linalg.eigh(_summed(rim[:, 0], along[:, :, None] * along[:, None, :], count))[1][:, :, 2]
    at_rim = np.zeros(count, bool)
    at_rim[rim] = True
    turns = np.linalg.norm(bend, axis=1) > BENT
    straight, corner = at_rim & ~turns, at_rim & turns & (np.einsum("ni,ni->n", bend, inward) > 0)
    axis_a, axis_b = tangents(normals)
    axis_a[straight], axis_b[straight] = axis[straight], SLIM * np.cross(normals, axis)[straight]
    axis_a[corner] *= SMALL
    axis_b[corner] *= SMALL
    return axis_a, axis_b


def _summed(owner: Indices, values: Floats, count: int) -> Floats:
    """Sums of values (p, ...) by their owner (p,), shape (count, ...)."""
    columns = values.reshape(len(values), int(np.prod(values.shape[1:])))
    sums = np.stack([np.bincount(owner, part, count) for part in columns.T], axis=1, dtype=np.float64)
    return sums.reshape(count, *values.shape[1:])


def _unit(vectors: Floats) -> Floats:
    return vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), np.finfo(float).tiny)
