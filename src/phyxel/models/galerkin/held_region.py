"""What is held where the nodes of a face are (physics 10.5): not only they, but also the face between them.

Shape functions are not one at their node and zero at the others: of the fields that vanish at the nodes of a face many
do not vanish between, the more the wider the covers are. A body held at its nodes alone bulges there, and its root
gives. So all of a flat face is held, up to its edges, in the mean over the functions of its nodes,

    ∫ φ_I (u − d) = 0,

as many conditions as there are nodes on it, or nodes that count most somewhere on it where it lies askew to the others:
fields that vanish everywhere on a face have no slope there either and would hold it far too well.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from scipy.spatial import cKDTree

from phyxel.mls.neighbours import nearest
from phyxel.mls.shape_values import entries_of, owners_of
from phyxel.models.galerkin.point_functions import strongest
from phyxel.models.galerkin.space import Space
from phyxel.models.protocol import Floats

AROUND = 2.5
"""Spacings within which held nodes tell whether a place is one of theirs, and where it is to go: three of them at
least, and a corner of a face that lies askew to the nodes has none within 1.5, and too few within 2."""
REACH, BESIDE = 2.0, 1.0
"""Spacings to a held node within which a place is held with it, and to one of the same face that is not: not."""
DEEP = 0.5
"""Spacings from a face within which points of the quadrature stand for it."""
SPANNED = 0.5
"""Root of the sum of squares of their distances from a line, in spacings, from which on held nodes span a plane."""
FLAT = 0.05
"""Spacings from a plane within which places lie in it."""
APART = 0.4
"""Spacings between places that stand for a region."""
EVEN = 0.005
"""Spacings that held nodes are off a plane, root of the mean square, above which it is where most of them are."""
ENOUGH = 8
"""Surfels around a place that tell better. Nodes at the round edges of a scan lie inside by up to a fifth of
a spacing, and are most of a small face: a bar would be held that much too far in."""
SOME = 12
"""Held nodes that tell where surfels are few."""
ROUNDS = 10
"""of the fit of a plane that places off it do not tilt"""


@dataclass(frozen=True)
class HeldRegion:
    """Places between held nodes, and where these send them."""

    rows: csr_array
    """φ there, shape (m, n)"""
    spread: Floats
    """goals of the places are those of the held nodes times this, shape (m, k): any affine motion goes on as such"""
    tests: NDArray[np.int64]
    """nodes whose functions it is held against"""

    @staticmethod
    def around(space: Space, held: Floats) -> HeldRegion:
        """That of held nodes (k, 3) of a space: shallow points of its quadrature, moved onto their faces."""
        known, key = space.layout.held_faces, held.tobytes()
        if key not in known:  # cracks change nothing of where they are
            known[key] = HeldRegion._places(space, held)
        shallow, places, spread, own = known[key]
        rows = _moved_rows(space, shallow, places)
        tests = np.union1d(own, strongest(rows)) if len(places) else own
        return HeldRegion(rows, spread, tests)

    @staticmethod
    def _places(space: Space, held: Floats) -> tuple[NDArray[np.int64], Floats, Floats, NDArray[np.int64]]:
        """Which points of the quadrature stand for places on faces of held nodes, these places, `spread`, and which
        nodes are held."""
        nearby, own = cKDTree(held), nearest(space.nodes, held, 1)[0][:, 0] < FLAT
        near, skin = _thinned(space, nearby), cKDTree(space.layout.skin)
        moved = [_on_face(place, nearby, skin, space.nodes[~own]) for place in space.points[near]]
        shallow = near[[place is not None for place in moved]]
        places = np.array([place for place in moved if place is not None]).reshape(-1, 3)
        spread = np.zeros((len(places), len(held)))
        for row, place in zip(spread, places, strict=True):
            some = nearby.query_ball_point(place, AROUND, return_sorted=True)
            row[some] = _affine_weights(held[some] - place)
        return shallow, places, spread, np.flatnonzero(own)


def _thinned(space: Space, nearby: cKDTree) -> NDArray[np.int64]:
    """Some of the points of the quadrature that lie near held nodes, one to a cube of the cloud's own axes: the same
    however the body is placed."""
    near = np.flatnonzero(nearby.query(space.points, distance_upper_bound=REACH + DEEP)[0] < REACH + DEEP)
    placing = space.layout.placing
    cubes = np.floor((placing.cloud(space.points[near]) - placing.middle) / (APART * placing.length) + 0.123)
    return near[np.unique(cubes, axis=0, return_index=True)[1]]


def _on_face(place: Floats, nearby: cKDTree, skin: cKDTree, free: Floats) -> Floats | None:
    """The nearest place of a flat face that the held nodes around span, if that is near, and off nodes of the face that
    are free, (f, 3)."""
    held = nearby.data[nearby.query_ball_point(place, AROUND)]
    _, sizes, axes = np.linalg.svd(held - held.mean(axis=0))
    if len(held) < 3 or sizes[1] < SPANNED:
        return None
    middle, normal, off = held.mean(axis=0), axes[2], sizes[2] / np.sqrt(len(held))
    around = skin.data[skin.query_ball_point(place, AROUND)]
    around = around[np.abs((around - middle) @ normal) < DEEP]
    if off > EVEN:
        scanned, some = len(around) >= ENOUGH, range(1, 1 + min(SOME, nearby.n))
        middle, normal, off = (
            _plane(around, middle, normal) if scanned else _common_plane(nearby.data[nearby.query(place, some)[1]])
        )
    depth = float((place - middle) @ normal)
    there = place - depth * normal
    if off > FLAT or abs(depth) > DEEP or nearby.query(there)[0] > REACH:
        return None
    arms = free - there
    beside = (np.linalg.norm(arms, axis=1) < BESIDE) & (np.abs(arms @ normal) < FLAT)
    return None if beside.any() else there


def _plane(x: Floats, middle: Floats, normal: Floats) -> tuple[Floats, Floats, float]:
    """The plane that most of the places (m, 3) lie in, from a first guess: a place in it, its normal, and how far most
    of them are from it. Σ log(r² + s²) of their distances r is least, with s how far most are from it: those of other
    faces, all of them on its inner side, hardly count."""
    width = FLAT
    for _ in range(ROUNDS):
        weights = 1 / (((x - middle) @ normal) ** 2 + width**2)
        middle = weights @ x / weights.sum()
        normal = np.linalg.eigh((weights[:, None] * (x - middle)).T @ (x - middle))[1][:, 0]
        off = float(np.median(np.abs((x - middle) @ normal)))
        width = float(np.clip(off, EVEN, FLAT))
    return middle, normal, off


def _common_plane(x: Floats) -> tuple[Floats, Floats, float]:
    """The same of a few places, of which those in the plane lie in it exactly: the plane through three of them that has
    most of the others."""
    first, second, third = x[np.array(list(combinations(range(len(x)), 3))).T]
    normals = np.cross(second - first, third - first)
    size = np.linalg.norm(normals, axis=1, keepdims=True)
    normals /= np.maximum(size, np.finfo(float).tiny)
    away = np.abs(np.einsum("tca,ta->tc", x - first[:, None], normals))
    most = np.argmax(np.where(size[:, 0] > SPANNED**2, (away < EVEN).sum(axis=1) - away.mean(axis=1), -1.0))
    return first[most], normals[most], float(np.median(away[most]))


def _moved_rows(space: Space, points: NDArray[np.int64], places: Floats) -> csr_array:
    """φ at places (m, 3) that points (m,) of the quadrature were moved to: of the nodes that these feel."""
    functions = space.functions
    starts, entries = entries_of(functions.lists.start, points)
    felt = functions.phi[entries] != 0
    owner, index = owners_of(starts)[felt], functions.lists.index[entries[felt]]
    return csr_array(space.layout.on(places, owner, index).values)


def _affine_weights(arms: Floats) -> Floats:
    """Smallest a (k,) with Σ a = 1 and Σ a arms = 0 for arms (k, 3), as far as they reach."""
    system = np.concatenate([np.ones((len(arms), 1)), arms], axis=1)
    weights = np.linalg.pinv(system, rcond=2 * FLAT)[0]
    return np.asarray(weights / weights.sum(), np.float64)  # what arms do not reach is left out, but no even motion
