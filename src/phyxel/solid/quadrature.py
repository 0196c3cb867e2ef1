"""Integrals over a solid (physics 9.4): points inside it, and the volume each stands for."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from phyxel.mls.neighbours import nearest
from phyxel.solid.octree import HALVES, Floats, Kind, Mask, OctantParts, Octants, SolidShape

GOOD_VOLUME = 3e-3
"""Relative error of the volume below which parts of cut octants are not looked at more closely."""
STEADY_VOLUME = 1e-3
"""Relative change of the volume below which a closer look at them has ended."""
MOST_SAMPLES = 2_000_000
"""A closer look that costs more evaluations of the distance is not taken; so many octants do not need it."""


@dataclass(frozen=True)
class Quadrature:
    """∫ f ≈ Σ weights · f(points)."""

    points: Floats
    """inside the solid [m], shape (q, 3)"""
    weights: Floats
    """[m³], shape (q,); their sum is the solid's volume"""

    def __len__(self) -> int:
        return len(self.weights)


def quadrature(solid: SolidShape, octants: Octants, order: int = 2, halved: bool = False) -> Quadrature:
    """order³ Gauss points in uncut octants, or in each of their eight parts if they are `halved`; in cut ones a point
    in each part, which counts by how much of it lies inside."""
    whole = _gauss(octants, order, halved)
    parts = octants.parts[octants.cut[octants.parts.owner]]
    share = _true_share(solid, parts, float(whole.weights.sum()))
    held = share > 0
    points = _moved_inside(solid, parts[held], share[held])
    weights = (share * parts.sides.prod(axis=1))[held]
    points, weights = np.concatenate([whole.points, points]), np.concatenate([whole.weights, weights])
    return Quadrature(points, weights * (solid.volume / max(weights.sum(), np.finfo(float).tiny)))


def skin_quadrature(octants: Octants) -> Quadrature:
    """The layer within about an octant of the surface, without another look at the solid: good to a few per cent."""
    whole = _gauss(octants, 2, False, octants.tree.distance > -1.5 * octants.tree.sides.max(axis=1))
    parts = octants.parts[octants.cut[octants.parts.owner]]
    share = parts.share
    held = share > 0
    return Quadrature(
        np.concatenate([whole.points, parts.centres[held]]),
        np.concatenate([whole.weights, (share * parts.sides.prod(axis=1))[held]]),
    )


def _gauss(octants: Octants, order: int, halved: bool, chosen: Mask | bool = True) -> Quadrature:
    """Of the interior octants among the chosen. One with finer neighbours is halved first: their nodes are so near
    that whole eighths of it would fall to them."""
    tree = octants.tree
    whole = (octants.kinds == Kind.INTERIOR) & chosen
    stepped = np.ones_like(whole) if halved else _beside_finer(octants)
    centres, sides = tree.centres[whole & ~stepped], tree.sides[whole & ~stepped]
    parents, wide = tree.centres[whole & stepped], tree.sides[whole & stepped]
    halves = (parents[:, None] + (HALVES - 0.5) * wide[:, None] / 2).reshape(-1, 3)
    centres, sides = np.concatenate([centres, halves]), np.concatenate([sides, np.repeat(wide / 2, 8, axis=0)])
    offsets, shares = _gauss_points(order)
    points = (centres[:, None] + offsets * sides[:, None]).reshape(-1, 3)
    return Quadrature(points, (sides.prod(axis=1)[:, None] * shares).reshape(-1))


def _gauss_points(order: int) -> tuple[Floats, Floats]:
    """The order³ Gauss points of a unit cube about the origin, exact for polynomials of degree 2 order − 1, (p, 3), and
    the share of its volume that each stands for, (p,)."""
    places, shares = np.polynomial.legendre.leggauss(order)
    offsets = np.stack(np.meshgrid(places, places, places, indexing="ij"), axis=-1).reshape(-1, 3) / 2
    return offsets, np.einsum("a,b,c->abc", shares, shares, shares).reshape(-1) / 8


def _beside_finer(octants: Octants) -> Mask:
    """Which octants share a face with one of the next level that holds some of the solid, shape (m,)."""
    tree = octants.tree
    beside = np.zeros(len(tree), bool)
    held = octants.kinds != Kind.EXTERIOR
    for level in range(int(tree.levels[held].max(initial=0))):
        coarse, fine = np.flatnonzero(held & (tree.levels == level)), held & (tree.levels == level + 1)
        if len(coarse) and fine.any():
            # In sides of the octant a finer centre is 0.83 away over a face, 1.09 over an edge.
            side = tree.lattice.sides(level)
            beside[coarse] = nearest(tree.centres[coarse] / side, tree.centres[fine] / side, 1)[0][:, 0] < 0.95
    return beside


def _true_share(solid: SolidShape, parts: OctantParts, whole: float) -> Floats:
    """How much of each part lies inside, looked at so closely that with the `whole` [m³] the volume is right.

    A part that the surface may cut is split into 2³, then 4³, until the volume is near to the solid's own or no longer
    changes: the solid's own volume may be off too.
    """
    volumes = parts.sides.prod(axis=1)
    share = parts.share
    doubtful = np.flatnonzero(parts.doubtful)
    before = whole + float(share @ volumes)
    for splits in (2, 4):
        if abs(before - solid.volume) <= GOOD_VOLUME * solid.volume or len(doubtful) * splits**3 > MOST_SAMPLES:
            break
        share[doubtful] = _sampled_share(solid, parts[doubtful], splits)
        now = whole + float(share @ volumes)
        if abs(now - before) <= STEADY_VOLUME * solid.volume:
            break
        before = now
    return share


def _sampled_share(solid: SolidShape, parts: OctantParts, splits: int) -> Floats:
    """How much of each part lies inside, by splits³ samples of it, shape (p,)."""
    steps = (np.arange(splits) + 0.5) / splits - 0.5
    offsets = np.stack(np.meshgrid(steps, steps, steps, indexing="ij"), axis=-1).reshape(-1, 3)
    samples = (parts.centres[:, None] + offsets * parts.sides[:, None]).reshape(-1, 3)
    distance = solid.distance(samples).reshape(-1, splits**3)
    width = parts.sides.min(axis=1, keepdims=True) / splits
    return np.asarray(np.clip(0.5 - distance / width, 0.0, 1.0).mean(axis=1))


def _moved_inside(solid: SolidShape, parts: OctantParts, share: Floats) -> Floats:
    """A point for each part: the middle of what of it lies inside [m], shape (p, 3)."""
    points = parts.centres.copy()
    cut = np.flatnonzero(parts.doubtful & ((share < 1) | (parts.distance > 0)))
    slope = np.linalg.norm(parts.gradient[cut], axis=1, keepdims=True)
    outward = parts.gradient[cut] / np.maximum(slope, np.finfo(float).tiny)
    # A layer of this thickness lies inside; its middle is half as deep.
    layer = share[cut] * parts.sides[cut].min(axis=1)
    points[cut] -= outward * (parts.distance[cut] + 0.5 * layer)[:, None]
    missed = cut[solid.distance(points[cut]) > 0]
    points[missed] = solid.project(parts.centres[missed])
    return points
