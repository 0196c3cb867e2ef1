"""Seams: what ties particle surfaces to solids and to each other (physics 15.15), stitch by stitch.

Each particle of the surface, of the finer one of two, that lies within half a spacing of the other is a stitch, and
stands for its own share of the surface's area: a seam along an edge is half a spacing wide.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import warp as wp
from numpy.typing import NDArray
from scipy.sparse import csr_array
from scipy.spatial import cKDTree

from phyxel import device as dev
from phyxel.body import Body
from phyxel.body.attach import Attach
from phyxel.meeting.apart import POINT, find_gaps, passing_of
from phyxel.meeting.contacts import nearest_places
from phyxel.meeting.party import SeenBody, turned_out
from phyxel.meeting.stitches import BesideTriangles, Stitches, sewn_to_guest, sewn_together
from phyxel.movers.outlines import skin_of
from phyxel.movers.tied_ends import Ends, carried, carried_by, summing_up

Floats = NDArray[np.float64]
Indices = NDArray[np.int64]

AROUND = 12
"""Triangles about a place of which the nearest is looked for."""
EVENED = 3.0
"""Spacings around a stitch over which the pull on it is evened out: what single ones bear goes by how particles lie."""


@dataclass(frozen=True)
class SurfaceNear:
    """How the particles of a surface lie to another body."""

    gap: Floats
    """[m], shape (n,)"""
    Y: Floats
    """the other's places there, at birth in its units, shape (n, 3)"""
    normal: Floats
    """out of the other in its reference shape; 0 of surfaces, which have two sides; shape (n, 3)"""
    stitches: BesideTriangles | None


def sewn_ends(body: Body, other: Body, kept: Indices, near: SurfaceNear) -> tuple[Ends, Ends]:
    """Those of stitches of a surface's particles (k,) to another body."""
    assert body.sheet is not None
    own = Ends(body.sheet.X[kept], [body] * len(kept), BesideTriangles.particles(kept))
    beyond = None if near.stitches is None else near.stitches.some(kept)
    return own, Ends(near.Y[kept], [other] * len(kept), beyond)


def near_solid(body: Body, there: SeenBody) -> SurfaceNear:
    """How particles of a surface lie to a solid."""
    x = body.positions
    at = nearest_places(there, x)
    gap, _, beside = there.measured(x, at)
    outline = there.outline
    Y = outline.X[at] + beside
    normal = outline.N[at] if outline.measure is None else outline.measure(Y)[1]
    return SurfaceNear(gap - skin_of(body).radius, Y, normal, None)


def near_surface(body: Body, other: Body, device: wp.Device) -> SurfaceNear:
    """How particles of a surface lie to another one."""
    assert other.sheet is not None
    x, y, skin = body.positions, other.positions, skin_of(other)
    n, triangles = len(x), skin.triangles
    count = min(AROUND, len(triangles))
    at = cKDTree(y[triangles].mean(axis=1)).query(x, count)[1].reshape(-1)
    index = np.column_stack([np.repeat(np.arange(n), count), n + triangles[at]]).astype(np.int32)
    passing = passing_of(np.full(len(index), POINT, np.int32), index, device)
    every = np.concatenate([x, y])
    there, none = wp.array(every, dtype=wp.vec3d, device=device), wp.zeros(len(every), wp.float64, device=device)
    dev.launch(find_gaps, len(index), [passing, none, there, there], device)
    away = np.linalg.norm(np.einsum("kb,kba->ka", passing.weight.numpy(), every[index]), axis=1).reshape(n, count)
    nearest = away.argmin(axis=1)
    stitches = BesideTriangles.of(x, y, triangles[at.reshape(n, count)[np.arange(n), nearest]])
    Y = np.einsum("kc,kca->ka", stitches.weight, other.sheet.X[stitches.index])
    thick = skin_of(body).radius + skin.radius[stitches.index[:, 0]]
    return SurfaceNear(away.min(axis=1) - thick, Y, np.zeros((n, 3)), stitches)


@dataclass(frozen=True)
class SewnRows:
    """How stitches are carried by a solid."""

    rows: csr_array
    """φ of it there, shape (k, n)"""
    slopes: Sequence[csr_array]
    by: object
    """what carries them"""

    @staticmethod
    def of(body: Body, X: Floats) -> SewnRows:
        """At places X (k, 3) of a body at birth, in its units."""
        phi, slopes = carried(body, X)
        return SewnRows(summing_up(phi), slopes, carried_by(body))

    def reaching(self, places: Floats, x: Floats) -> csr_array:
        """φ where places (k, 3) are, beside the stitches by little, coefficients being at x (n, 3): both sides are to
        be pulled at the same place."""
        off, data, counts = places - self.rows @ x, self.rows.data, np.diff(self.rows.indptr)
        beside = np.linalg.solve(self.deformation(x), off[:, :, None])[:, :, 0]
        for slope, along in zip(self.slopes, beside.T, strict=True):
            data = data + np.repeat(along, counts) * slope.data
        return summing_up(csr_array((data, self.rows.indices, self.rows.indptr), self.rows.shape))

    def deformation(self, x: Floats) -> Floats:
        """F times the unit, coefficients being at x (n, 3); shape (k, 3, 3)."""
        return np.stack([slope @ x for slope in self.slopes], axis=2)


@dataclass(frozen=True)
class Seam:
    """Stitches of an attachment between two bodies, in a step."""

    attach: Attach
    which: Indices
    """of its ties"""
    body: Body
    other: Body
    X: Floats
    """of the surface's particles at rest [spacings], shape (k, 3)"""
    stitches: Stitches
    places: Floats
    """where they are when the step begins [m], shape (k, 3)"""
    normals: Floats
    """out of the solid that they are sewn to; 0 if that is a surface, shape (k, 3)"""


@dataclass(frozen=True)
class Side:
    """One of the two bodies of a seam, in a step: its ends of the stitches, and where it is among what moves."""

    ends: Ends
    first: int
    """of a surface's particles among all"""
    guest: int = -1
    end: Floats | None = None
    """where the coefficients of a guest go [m], shape (n, 3)"""
    way: Floats | None = None
    """how far they go in the step [m], shape (n, 3)"""


def seam(attach: Attach, which: Indices, one: Side, other: Side, x: Floats, rows: SewnRows | None) -> Seam:
    """Of some ties of an attachment, particles being at x (n, 3) when the step begins; with `rows` of the other if it
    is a guest."""
    assert one.ends.stitches is not None
    who = one.first + one.ends.stitches.index[which, 0]
    normals = np.zeros((len(which), 3))
    if rows is None:
        assert other.ends.stitches is not None
        beyond = other.ends.stitches.some(which)
        stitches = sewn_together(x, who, replace(beyond, index=beyond.index + other.first))
    else:
        assert other.end is not None and other.way is not None
        start = other.end - other.way
        normals = turned_out(rows.deformation(start), attach.normals[which])[0]
        stitches = sewn_to_guest(
            who, x[who] - rows.rows @ other.end, rows.reaching(x[who], start), other.way, other.guest
        )
    bodies = one.ends.body[which[0]], other.ends.body[which[0]]
    return Seam(attach, which, *bodies, one.ends.X[which], stitches, x[who], normals)


def overloaded(pull: Floats, normal: Floats, strength: float) -> NDArray[np.bool_]:
    """Which ties that are pulled at so (k, 3) [Pa], with normals (k, 3) out of what pulls, bear more than a strength
    [Pa]; what presses does not tear."""
    pressing = np.maximum(np.einsum("ka,ka->k", pull, normal), 0.0)
    return np.asarray(np.linalg.norm(pull - pressing[:, None] * normal, axis=1) > strength)


def evened_around(force: Floats, area: Floats, X: Floats) -> Floats:
    """Forces (k, 3) [N] on areas (k,) [m²] at places X (k, 3) [spacings] as pulls [Pa], (k, 3):

        t_i = Σ w_ij f_j / Σ w_ij A_j,   w = 1 − |X_i − X_j|/EVENED

    over those around each: a surface gives way, so that only near stitches share what pulls."""
    near = cKDTree(X).sparse_distance_matrix(cKDTree(X), EVENED, output_type="coo_matrix")
    share = csr_array((1 - near.data / EVENED, (near.row, near.col)), near.shape)
    return np.asarray((share @ force) / (share @ area)[:, None])
