"""How many octants thick a solid is about its nodes: the balls that fit into it tell (local thickness, as of bones)."""

from __future__ import annotations

import numpy as np

from phyxel.mls.neighbours import nearest
from phyxel.solid.octree import Floats, Octants, SolidShape

AROUND = 1.5
"""Over the radius of a ball inside the solid: what lies so near to its middle, edges of a bar too, is as thick."""
NEAR, NEARLY = 15, 0.75
"""Middles beside one of which it is as deep as the deepest, or nearly, to be moved to where it is deeper yet."""
CLIMBED = (0.25, 0.125)
"""Steps to there, in sides of octants."""
LEVELS = np.arange(0.5, 8.1, 0.25)
"""Octants by which thicknesses are told apart; more than the last nobody needs."""


def thickness_about(solid: SolidShape, octants: Octants, X: Floats) -> Floats:
    """Diameter of the largest ball inside the solid about each of (n, 3) places [m], in sides of its octants, shape
    (n,); at most `LEVELS[-1]`. Balls have their middles where octants, or parts of cut ones, have theirs, or their
    corners: half a spacing from each other, where nodes alone would miss the middle of four layers by as much."""
    corners, at_corner = octants.corners()
    tree, parts = octants.tree, octants.parts
    middles = np.concatenate([tree.centres, parts.centres, corners])
    depths = -np.concatenate([tree.distance, parts.distance, solid.distance(corners)])
    owner = np.concatenate([np.arange(len(tree)), parts.owner, at_corner])
    sides = np.cbrt(tree.sides.prod(axis=1))[owner]
    held = depths > 0
    if not held.any():
        return np.zeros(len(X))
    middles, depths = _climbed(solid, middles[held], depths[held], sides[held])
    across = 2 * depths / sides[held]
    found = np.zeros(len(X))
    for level in LEVELS:
        deep = across >= level
        if not deep.any():
            break
        away, ball = (column[:, 0] for column in nearest(X, middles[deep], 1))
        within = away <= AROUND * depths[deep][ball]
        found[within] = np.maximum(found[within], across[deep][ball[within]])
    return np.minimum(found, LEVELS[-1])


def _climbed(solid: SolidShape, middles: Floats, depths: Floats, sides: Floats) -> tuple[Floats, Floats]:
    """Middles (m, 3) and depths (m,) [m] of balls, those of the largest moved to where they are larger yet."""
    _, beside = nearest(middles, middles, min(NEAR, len(middles)))
    best = np.flatnonzero(depths >= NEARLY * depths[beside].max(axis=1))
    for step in CLIMBED:
        for way in np.concatenate([np.eye(3), -np.eye(3)]):
            there = middles[best] + step * sides[best, None] * way
            deeper = -solid.distance(there)
            better = deeper > depths[best]
            middles[best[better]], depths[best[better]] = there[better], deeper[better]
    return middles, depths
