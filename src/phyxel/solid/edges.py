"""Sharp edges and corners of a surface, found as by dual contouring: where the planes of several faces meet."""

from __future__ import annotations

import numpy as np

from phyxel.mls.neighbours import nearest
from phyxel.solid.octree import HALVES, Floats, Integers, Mask, SolidShape

BESIDE = 24
"""Most points whose planes are looked at for one."""
MEET = 0.1
"""Share of the largest eigenvalue of Σ w n nᵀ from which on a direction is across one more face."""
NEAR = 0.5
"""Octants from an edge within which a point is moved to it: of points an octant apart one always is."""
SAME = 0.8
"""Cosine of two normals above which they are of one face."""
PROBED = 0.35
"""Octants from a point to places around it whose normals are looked at: fewer than from one beside an edge to that."""
AROUND = np.concatenate([(2 * HALVES - 1) / np.sqrt(3), np.eye(3), -np.eye(3)])
"""Directions to those places, (14, 3)."""


def along_surface(solid: SolidShape, points: Floats, sides: Floats, on_surface: Mask) -> Floats:
    """Projections (n, 3, 3) onto the directions in which the surface goes on at each of (n, 3) points: two of a face,
    that of a sharp edge, none in a corner; all three inside. Sides of octants (n,) [m].

    Faces are told apart as in `edges_beside`, by what is nearest on the surface to places around. These count by their
    distance from it: the normal of one that is nearly there is the direction of next to nothing."""
    found = np.tile(np.eye(3), (len(points), 1, 1))
    radius = PROBED * sides[on_surface]
    around = points[on_surface][:, None] + AROUND * radius[:, None, None]
    _, normals, distance = (one.reshape(len(radius), len(AROUND), -1) for one in solid.closest(around.reshape(-1, 3)))
    w = np.abs(distance[..., 0]) / radius[:, None]
    lam, axes = np.linalg.eigh(np.einsum("nk,nka,nkb->nab", w, normals, normals))
    found[on_surface] = (axes * (lam <= MEET * lam[:, 2:])[:, None, :]) @ np.swapaxes(axes, 1, 2)
    return found


def edges_beside(points: Floats, normals: Floats, sides: Floats) -> tuple[Integers, Floats]:
    """How many faces meet beside each of (n, 3) points on the surface with normals (n, 3): 1, at a sharp edge 2, at a
    corner 3, (n,); and where they do, (n, 3) [m]. Sides of octants (n,) [m].

    The planes of the points around one meet in the x that minimises Σ_j w_j (n_j·(x − x_j))²; where only one face is
    near, Σ w n nᵀ has one eigenvalue that counts, at an edge two, at a corner three (Ju et al. 2002). Where a corner is
    too far off, the nearer of its edges may not be."""
    away, j = nearest(points, points, min(BESIDE, len(points)))
    w = np.maximum(1 - away / sides[:, None], 0)
    n, arm = normals[j], points[j] - points[:, None]
    faces, moves = _meeting(w, n, arm)
    far = np.flatnonzero((faces == 3) & (np.linalg.norm(moves, axis=1) >= NEAR * sides))
    faces[far], moves[far] = _meeting(_of_two_faces(w[far], normals[far], n[far], arm[far]), n[far], arm[far])
    faces[np.linalg.norm(moves, axis=1) >= NEAR * sides] = 1
    return faces, points + moves * (faces > 1)[:, None]


def _meeting(w: Floats, n: Floats, arm: Floats) -> tuple[Integers, Floats]:
    """How many faces the planes with normals (m, k, 3) through places beside a point (m, k, 3) [m] are of, (m,), and
    where from the point they meet, (m, 3) [m]; weights (m, k)."""
    lam, axes = np.linalg.eigh(np.einsum("nk,nka,nkb->nab", w, n, n))
    counts = lam > MEET * lam[:, 2:]
    towards = np.einsum("nab,nk,nka,nkc,nkc->nb", axes, w, n, n, arm, optimize=True) / np.where(counts, lam, np.inf)
    return counts.sum(axis=1), np.einsum("nab,nb->na", axes, towards)


def _of_two_faces(w: Floats, own: Floats, n: Floats, arm: Floats) -> Floats:
    """Weights (m, k) without those of the farther one of two faces that meet that of points with normals `own`."""
    along = np.einsum("nka,na->nk", n, own)
    across = np.abs(np.einsum("nka,nka->nk", n, arm)) / np.sqrt(np.maximum(1 - along**2, np.finfo(float).tiny))
    nearer = np.where((w > 0) & (along < SAME), across, np.inf).argmin(axis=1)
    same = np.einsum("nka,na->nk", n, n[np.arange(len(n)), nearer]) > SAME
    return w * ((along > SAME) | same)
