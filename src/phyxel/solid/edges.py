"""Sharp edges and corners of a surface, found as by dual contouring: where the planes of several faces meet."""

from __future__ import annotations

import numpy as np

from phyxel.mls.neighbours import nearest
from phyxel.solid.octree import Floats, Integers

BESIDE = 24
"""Most points whose planes are looked at for one."""
MEET = 0.1
"""Share of the largest eigenvalue of Σ w n nᵀ from which on a direction is across one more face."""
NEAR = 0.4
"""Octants from an edge within which a point is moved to it: from farther away it would leave a gap in its face."""


def edges_beside(points: Floats, normals: Floats, sides: Floats) -> tuple[Integers, Floats]:
    """How many faces meet beside each of (n, 3) points on the surface with normals (n, 3): 1, at a sharp edge 2, at a
    corner 3, (n,); and where they do, (n, 3) [m]. Sides of octants (n,) [m].

    The planes of the points around one meet in the x that minimises Σ_j w_j (n_j·(x − x_j))²; where only one face is
    near, Σ w n nᵀ has one eigenvalue that counts, at an edge two, at a corner three (Ju et al. 2002)."""
    away, j = nearest(points, points, min(BESIDE, len(points)))
    w = np.maximum(1 - away / sides[:, None], 0)
    n, arm = normals[j], points[j] - points[:, None]
    lam, axes = np.linalg.eigh(np.einsum("nk,nka,nkb->nab", w, n, n))
    counts = lam > MEET * lam[:, 2:]
    towards = np.einsum("nab,nk,nka,nkc,nkc->nb", axes, w, n, n, arm, optimize=True) / np.where(counts, lam, np.inf)
    moves = np.einsum("nab,nb->na", axes, towards)
    faces = np.where(np.linalg.norm(moves, axis=1) < NEAR * sides, counts.sum(axis=1), 1)
    return faces, points + moves * (faces > 1)[:, None]
