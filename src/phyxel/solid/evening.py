"""Nodes at corners of octants, evened out: where the surface cuts a lattice at an angle they lie uneven beneath it."""

from __future__ import annotations

from typing import Protocol

import numpy as np

from phyxel.mls.neighbours import nearest
from phyxel.solid.edges import along_surface, on_bare_edges
from phyxel.solid.octree import Floats, Mask, SolidShape
from phyxel.solid.quadrature import Quadrature

ROUNDS, FARTHER = 6, 1.5
"""How often nodes are moved, and how much farther than to the middle of their cells, which is sooner there."""
MOST = 0.25
"""Octants that a node is moved at once at most."""
STILL = 1e-6
"""Octants below which it is not: nodes of a lattice that fits the solid stay where they are, to the bit."""
SUNK = 0.4
"""Octants that a node inside keeps from the surface, or it stays where it was placed."""


class PlacedNodes(Protocol):
    """Where nodes were placed."""

    @property
    def positions(self) -> Floats: ...
    @property
    def on_surface(self) -> Mask: ...
    @property
    def sides(self) -> Floats: ...


def slid(solid: SolidShape, placed: PlacedNodes, points: Quadrature) -> Floats:
    """Nodes moved towards the middles of their cells, the part of the solid nearest to each (Lloyd); those on the
    surface slide on it, those on its edges along them, those in corners stay (physics 9.3). Positions [m], (n, 3)."""
    X, sides, outer = placed.positions.copy(), placed.sides, placed.on_surface
    X[outer] = on_bare_edges(solid, X[outer], sides[outer])
    along = along_surface(solid, X, sides, outer)
    for farther in [FARTHER] * (ROUNDS - 1) + [1.0]:
        way = np.einsum("nab,nb->na", along, farther * (_middles(points, X) - X))
        far = np.linalg.norm(way, axis=1) / sides
        way *= np.minimum(1, MOST / np.maximum(far, MOST))[:, None]
        moved = far > STILL
        X[moved] += way[moved]
        X[moved & outer] = solid.project(X[moved & outer])
    risen = ~outer & (solid.distance(X) > -SUNK * sides)
    X[risen] = placed.positions[risen]
    return X


def _middles(points: Quadrature, X: Floats) -> Floats:
    """Of the cell of each node [m], (n, 3); of one that has none, the node."""
    owner = nearest(points.points, X, 1)[1][:, 0]
    volumes = np.bincount(owner, points.weights, minlength=len(X))
    sums = [np.bincount(owner, points.weights * along, minlength=len(X)) for along in points.points.T]
    return np.where(volumes[:, None] > 0, np.stack(sums, axis=1) / np.maximum(volumes, 1e-300)[:, None], X)
