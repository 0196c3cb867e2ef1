"""Nodes: the points that carry a body's mass, one to an octant (G04 §4.2.2)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import cKDTree

from phyxel.errors import PhyxelError, SolidError
from phyxel.mls.neighbours import curve_order, nearest
from phyxel.points.moments import SolidMoments
from phyxel.solid.edges import along_surface, edges_beside
from phyxel.solid.octree import (
    Floats,
    Integers,
    Kind,
    Mask,
    Octants,
    Region,
    RootOctants,
    SolidShape,
    checked_refine,
    classified,
    grow,
    in_region,
)
from phyxel.solid.quadrature import Quadrature, quadrature, skin_quadrature
from phyxel.solid.thickness import thickness_about

ENOUGH_INSIDE = 0.2
"""Share of an octant that must be inside the solid, and fall to its node, for a node on the surface."""
NODES_APART = 0.5
"""Octants from a node on the surface to any other; nearer ones are merged: explicit steps shrink with the distance."""
LONELY, ALONE = 1.2, 0.9
"""Octants to other nodes, and to others of its own sort, from where even a sliver gets a node: sheets and spikes."""
FINER = {"linear": (3, False), "quadratic": (2, True), "cells": (2, True)}
"""Gauss points along an octant, and whether it is halved first, for nodes at corners. Shape functions of a linear basis
are smooth within octants, those of a quadratic one within their halves. Cells, which have what is nearest to a node,
end at the halves: a point on the border of two would fall to either."""
LEAST_HEFT = 0.4
"""Of a node's mass over that of its volume: lighter ones would make steps shorter."""
EVENED, EVENED_FARTHER = 64, 1.7
"""How often nodes are moved to even them out, and how much farther than to the middle, which is sooner there."""
HEFT_ROUNDS = 4
"""How often hefts are found anew after some would have been less."""
MOST_CORRECTED = 0.25
"""Of a weight of the quadrature, over it, to get moments right: solids of few octants would ask for any weights."""
SNAPPED_WITHIN = 0.5
"""Octants from the surface within which a corner of one is moved onto it."""
ON_SURFACE = 1e-6
"""Octants from the surface within which it is there already."""
COVERS = {"linear": 4.0, "quadratic": 6.0}
"""Sides of a node's cover in octants, by the basis of the shape functions."""


@dataclass(frozen=True)
class Nodes:
    """Reference points of a body, sorted along a space-filling curve."""

    positions: Floats
    """X [m], shape (n, 3)"""
    volumes: Floats
    """the part of the solid nearest to each node [m³], shape (n,); their sum is the solid's volume"""
    reach: Floats
    """distance from the node to the surface [m], shape (n,): the ball a node holds against colliders"""
    octants: Floats
    """side of the cube with the volume of the node's octant [m], shape (n,)"""
    kinds: NDArray[np.int8]
    """`Kind` of the node's octant, shape (n,); a node of an exterior-boundary octant lies on the surface"""
    thickness: Floats
    """of the solid about the node, in sides of octants, shape (n,); not told apart beyond 8"""
    quadrature: Quadrature
    along: Floats | None = None
    """projections onto the directions in which the surface goes on at nodes of cells, all of them inside, (n, 3, 3)"""

    def __len__(self) -> int:
        return len(self.positions)

    @property
    def spacing(self) -> float:
        """Mean distance between nodes [m]: the side of a cube with a node's mean volume."""
        return float(np.cbrt(self.volumes.mean()))

    def hefts(self) -> Floats:
        """Mass of each node over that of its volume, 1 + q(X) with one quadratic polynomial q, shape (n,): so mass,
        middle and inertia are those of the solid (physics 9.7). Nodes on the surface stand farther out than what is
        theirs, and a bar of four layers would resist turning by a fifth too much."""
        middle, points = self.positions.mean(axis=0), self.quadrature
        at, within = (_quadratics((X - middle) / self.spacing) for X in (self.positions, points.points))
        wanted = within.T @ points.weights
        heft, light = np.ones(len(self)), np.zeros(len(self), bool)
        for _ in range(HEFT_ROUNDS):
            lacks = wanted - at.T @ (self.volumes * np.where(light, LEAST_HEFT, 1.0))
            free = at[~light]
            q = np.linalg.lstsq(free.T @ (self.volumes[~light, None] * free), lacks, rcond=1e-10)[0]
            heft = np.where(light, LEAST_HEFT, 1 + at @ q)
            if not (heft < LEAST_HEFT - 1e-9).any():
                break
            light |= heft < LEAST_HEFT
        heft = np.maximum(heft, LEAST_HEFT)
        return np.asarray(heft * (self.volumes.sum() / (heft @ self.volumes)))

    def weighed(self, whole: SolidMoments) -> Nodes:
        """The same with weights w (1 + q(x)) of the quadrature, q one quadratic polynomial, that have volume, middle
        and second moments of the whole solid (physics 9.4). Points of cut octants are good to a few per cent of one: a
        bar of two octants would bend by as many too easily. Where that asks for more than a correction, they stay."""
        points, weights = self.quadrature.points, self.quadrature.weights
        at = _quadratics((points - whole.middle) / self.spacing)
        xx, xy, zx, yy, yz, zz = whole.second[np.triu_indices(3)] / self.spacing**2
        lacks = np.array([whole.volume, 0, 0, 0, xx, yy, zz, yz, zx, xy]) - at.T @ weights
        factor = 1 + at @ np.linalg.lstsq(at.T @ (weights[:, None] * at), lacks, rcond=1e-10)[0]
        if np.abs(factor - 1).max() > MOST_CORRECTED:
            return self
        corrected = Quadrature(points, weights * factor)
        return replace(self, volumes=_nearest_volumes(corrected, self.positions), quadrature=corrected)

    def evened(self) -> tuple[Floats, Floats]:
        """Where the nodes would stand and what each would have of the volume, (n, 3) [m] and (n,) [m³], if all were
        inside and had as much, of its octant's size: each goes to the middle of its cell, again and again (Lloyd).

        Cells have the points nearest by |x − x_i|² − s_i, and a cell that is too small has its s_i grow: neighbours of
        six faces take it back by 3 sides. Such cells, unlike those of what is just nearest, become as large as they are
        to be (a power diagram)."""
        x, weights, places = self.quadrature.points, self.quadrature.weights, self.positions.copy()
        volumes = self.octants**3 * (weights.sum() / (self.octants**3).sum())
        there, s = np.pad(x, ((0, 0), (0, 1))), np.zeros(len(self))
        for farther in [EVENED_FARTHER] * EVENED + [1.0]:
            # Nearest in four dimensions, where a node is √(max s − s_i) away from ours.
            owner = nearest(there, np.column_stack([places, np.sqrt(s.max() - s)]), 1)[1][:, 0]
            cells = np.bincount(owner, weights, minlength=len(self))
            middles = np.stack([np.bincount(owner, weights * along, minlength=len(self)) for along in x.T], axis=1)
            held = cells > 0
            places[held] += farther * (middles[held] / cells[held, None] - places[held])
            s += (volumes - cells) / (3 * np.cbrt(volumes))
        return places, volumes

    def covers(self, basis: str = "linear") -> Floats:
        """d_m: half the side of each node's cube cover [m], for a "linear" or "quadratic" basis; shape (n,)."""
        if basis not in COVERS:
            raise PhyxelError(f'basis = {basis!r}; there are "linear" and "quadratic"')
        return COVERS[basis] * self.octants / 2


def _quadratics(X: Floats) -> Floats:
    """1, x, y, z and their products at places (m, 3), shape (m, 10)."""
    x, y, z = X.T
    return np.stack([np.ones(len(X)), x, y, z, x * x, y * y, z * z, y * z, z * x, x * y], axis=1)


def sample_nodes(
    solid: SolidShape, count: int, refine: Sequence[Region] = (), on_surface: bool = False, basis: str = "linear"
) -> Nodes:
    """About `count` nodes in all, a tenth more or fewer (physics 9.3); each region of `refine` asks for so many levels
    more there. They stand in the middle of octants, or at their corners, the outermost `on_surface`, with quadrature
    points for shape functions of this basis, or for "cells".

    The size of the octants is the free variable that meets the count.
    """
    if count < 1:
        raise PhyxelError(f"{solid.name}: nodes = {count}: give at least 1")
    if not solid.volume > 0:
        raise SolidError(f"{solid.name}: volume = {solid.volume} m³: nothing lies inside; is the surface closed?")
    placing: Placing = partial(place_corners, on_edges=basis == "cells") if on_surface else place
    placed = _Search(solid, count, checked_refine(refine, solid.name), placing).best()
    points = quadrature(solid, placed.octants, *(FINER[basis] if on_surface else ()))
    if not (on_surface and basis == "cells"):
        return _finished(solid, placed, points)
    nodes = _finished(solid, placed, points)
    there = nodes.kinds == Kind.EXTERIOR_BOUNDARY
    return replace(nodes, along=along_surface(solid, nodes.positions, nodes.octants, there))


# --- placing nodes -------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Placed:
    """Where nodes stand."""

    octants: Octants
    positions: Floats
    """[m], shape (n, 3)"""
    owner: Integers
    """the octant of each node, shape (n,)"""
    on_surface: Mask
    """shape (n,)"""

    def __len__(self) -> int:
        return len(self.positions)

    @property
    def sides(self) -> Floats:
        """[m], shape (n,)."""
        return np.cbrt(self.octants.tree.sides[self.owner].prod(axis=1))

    def __getitem__(self, chosen: Mask | Integers) -> Placed:
        return Placed(self.octants, self.positions[chosen], self.owner[chosen], self.on_surface[chosen])


def place(solid: SolidShape, octants: Octants) -> Placed:
    """Nodes at the centres of octants, or on the surface where a centre is outside and the octant holds enough."""
    centred = np.flatnonzero(octants.kinds <= Kind.INTERIOR_BOUNDARY)
    placed = Placed(octants, octants.tree.centres[centred], centred, np.zeros(len(centred), bool))
    outside = np.flatnonzero(octants.kinds == Kind.EXTERIOR_BOUNDARY)
    if len(outside) == 0:
        return placed
    # Of nodes to be merged that of the fuller octant stays.
    outside = outside[np.argsort(-octants.share[outside], kind="stable")]
    skin = Placed(octants, solid.project(octants.tree.centres[outside]), outside, np.ones(len(outside), bool))
    full = octants.share[outside] >= ENOUGH_INSIDE
    placed = _without_small(_with_clear(placed, skin[full], NODES_APART, NODES_APART))
    return _with_clear(placed, skin[~full], LONELY, ALONE)


def place_corners(solid: SolidShape, octants: Octants, on_edges: bool = False) -> Placed:
    """Nodes at the corners of octants; those near the surface are moved onto it. So a body can be held, and touched,
    where it ends: nodes in the middle of octants lie half of one inside, which makes a clamped bar that much shorter.
    Those beside sharp edges are moved `on_edges`, if so: no part of a held face is then left to nodes beside it.
    """
    positions, owner = octants.corners()
    side = np.cbrt(octants.tree.sides[owner].prod(axis=1))
    distance = solid.distance(positions)
    inside = distance < -SNAPPED_WITHIN * side
    placed = Placed(octants, positions[inside], owner[inside], np.zeros(int(inside.sum()), bool))
    outer = np.flatnonzero(~inside)
    there, normals, _ = solid.closest(positions[outer])
    at_rest = np.abs(distance[outer]) <= ON_SURFACE * side[outer]
    there[at_rest] = positions[outer[at_rest]]
    faces = np.ones(len(outer), int)
    if on_edges:
        faces, meeting = edges_beside(there, normals, side[outer])
        there[faces > 1] = solid.project(meeting[faces > 1])
    # Of nodes to be merged those in corners stay, then those on edges, then the one that was moved least.
    order = np.lexsort([np.abs(distance[outer]) / side[outer], -faces])
    outer, there = outer[order], there[order]
    skin = Placed(octants, there, owner[outer], np.ones(len(outer), bool))
    near = distance[outer] <= SNAPPED_WITHIN * side[outer]
    placed = _with_clear(placed, skin[near], NODES_APART, NODES_APART)
    return _with_clear(placed, skin[~near], LONELY, ALONE)


def _with_clear(placed: Placed, more: Placed, gap: float, own_gap: float) -> Placed:
    """With those of `more` that keep a gap to placed nodes, and one among themselves, in sides of their octants."""
    if len(placed) and len(more):
        more = more[nearest(more.positions, placed.positions, 1)[0][:, 0] >= gap * more.sides]
    if len(more):
        more = more[_thinned(more.positions, own_gap * more.sides)]
    pairs: Any = ((placed.positions, more.positions), (placed.owner, more.owner), (placed.on_surface, more.on_surface))
    return Placed(placed.octants, *(np.concatenate(pair) for pair in pairs))


def _thinned(positions: Floats, gap: Floats) -> Mask:
    """Which points stay if, from the first to the last, one goes that has a staying one nearer than its gap [m]."""
    first, second = np.sort(cKDTree(positions).query_pairs(float(gap.max()), output_type="ndarray"), axis=1).T
    close = np.linalg.norm(positions[first] - positions[second], axis=1) < gap[second]
    first, second = first[close], second[close]
    stays = np.ones(len(positions), bool)
    # In each round those stay that have no open one before them, and their near neighbours go.
    while len(first):
        waiting = np.zeros(len(positions), bool)
        waiting[second] = True
        stays[second[~waiting[first]]] = False
        open_pairs = stays[first] & stays[second]
        first, second = first[open_pairs], second[open_pairs]
    return stays


def _without_small(placed: Placed) -> Placed:
    """Without those nodes on the surface to which little of the solid falls, unless no other is near."""
    skin = np.flatnonzero(placed.on_surface)
    if len(skin) == 0:
        return placed
    volumes = _nearest_volumes(skin_quadrature(placed.octants), placed.positions)[skin]
    sides = placed.sides[skin]
    gap = nearest(placed.positions[skin], placed.positions, min(2, len(placed)))[0][:, -1]
    keep = np.ones(len(placed), bool)
    keep[skin[(volumes < ENOUGH_INSIDE * sides**3) & (gap < ALONE * sides)]] = False
    return placed[keep]


def _nearest_volumes(points: Quadrature, positions: Floats) -> Floats:
    """The volume of the quadrature points nearest to each node [m³], shape (n,)."""
    _, owner = nearest(points.points, positions, 1)
    return np.bincount(owner[:, 0], points.weights, minlength=len(positions)).astype(np.float64)


def _finished(solid: SolidShape, placed: Placed, points: Quadrature) -> Nodes:
    """Nodes in order, with their volumes."""
    volumes = np.zeros(len(placed))
    while len(placed):
        placed = placed[curve_order(placed.positions)]
        volumes = _nearest_volumes(points, placed.positions)
        if (volumes > 0).all():
            break
        placed = placed[volumes > 0]
    inside = np.minimum(placed.octants.kinds[placed.owner], Kind.INTERIOR_BOUNDARY)
    kinds = np.where(placed.on_surface, Kind.EXTERIOR_BOUNDARY, inside).astype(np.int8)
    reach = np.where(placed.on_surface, 0.0, np.maximum(-solid.distance(placed.positions), 0.0))
    thickness = thickness_about(solid, placed.octants, placed.positions)
    return Nodes(placed.positions, volumes, reach, placed.sides, kinds, thickness, points)


Placing = Callable[[SolidShape, Octants], Placed]


# --- meeting a count -----------------------------------------------------------------------------------------------

TOLERANCE = 0.1
"""Relative error of the count that is good enough."""
CLOSE = 0.03
"""Relative error of the count at which the search ends early."""
MOST_STRETCHED = 0.18
"""How far the side of a fitted octant may be from that of a cube."""
STRETCH_COST = 0.25
"""What a stretched octant costs beside a missed count."""
ROUNDS = 20
"""in which the side of octants is found that would hold so many places"""
FITTED_TRIALS = 6
CUBE_TRIALS = 8
LEAST_OF_GUESS = 0.03
"""Octants are not made smaller than if they held so many of the nodes that were expected: there may be no inside."""
GUESS_SAMPLES = 24
"""Along each axis of the bounding box, to see how much of the solid lies in regions that ask for finer octants."""
PHASES = ((0.5, 0.5, 0.5), (0.0, 0.0, 0.0), (0.5, 0.0, 0.5), (0.1, 0.25, 0.4), (0.35, 0.05, 0.2))
"""Where lattices of cubes start; the last two break the symmetry of bodies whose counts jump."""


class _Search:
    """Tries lattices until the nodes placed in them are as many as asked for."""

    def __init__(self, solid: SolidShape, count: int, refine: list[Region], placing: Placing) -> None:
        self._solid, self._count, self._refine, self._place = solid, count, refine, placing
        self._lower, self._upper = np.asarray(solid.lower, np.float64), np.asarray(solid.upper, np.float64)
        self._guess = self._first_guess()
        self._more = 0 if placing is place else 1
        """places for nodes along an axis, beyond the number of octants"""
        self._nearest: Placed | None = None

    def best(self) -> Placed:
        """Of fitted lattices if they meet the count, else of cubes; the nearest to the count of all tried."""
        per_octant = self._try_fitted()
        for phase in PHASES:
            if self._miss() <= TOLERANCE:
                break
            self._try_cubes(phase, per_octant)
        assert self._nearest is not None
        return self._nearest

    def _miss(self) -> float:
        return np.inf if self._nearest is None else abs(len(self._nearest) / self._count - 1)

    def _try(self, lattice: RootOctants) -> int:
        """How many nodes the octants of a lattice get."""
        placed = self._place(self._solid, classified(self._solid, grow(self._solid, lattice, self._refine)))
        if abs(len(placed) / self._count - 1) < self._miss():
            self._nearest = placed
        return len(placed)

    def _try_fitted(self) -> float:
        """Lattices that fill the bounding box; returns about how many nodes an octant of the lattice gets."""
        per_octant = per_place = self._guess
        tried: set[tuple[int, ...]] = set()
        for _ in range(FITTED_TRIALS):
            shape = fitted_shape(self._upper - self._lower, self._count / per_place, tried, self._more)
            if shape is None:
                break
            tried.add(shape)
            lattice = RootOctants.fitted(self._lower, self._upper, shape)
            # Where nothing is found inside, finer lattices are of little use.
            found, least = self._try(lattice), LEAST_OF_GUESS * self._guess
            per_octant = max(found / lattice.octants, least)
            per_place = max(found / float(np.prod(np.array(shape) + self._more)), least)
            if self._miss() <= CLOSE:
                break
        return per_octant

    def _first_guess(self) -> float:
        """About how many nodes an octant of the lattice gets: the share of the box inside, times 8 a level."""
        extent = self._upper - self._lower
        share = float(np.clip(self._solid.volume / extent.prod(), 1e-6, 1.0))
        if not self._refine:
            return share
        samples = self._lower + extent * (np.indices((GUESS_SAMPLES,) * 3).reshape(3, -1).T + 0.5) / GUESS_SAMPLES
        held = samples[self._solid.distance(samples) < 0]
        levels = np.zeros(len(held))
        for where, more in self._refine:
            levels = np.maximum(levels, more * in_region(where, held, self._solid.name))
        return share * float(np.mean(8.0**levels)) if len(held) else share

    def _try_cubes(self, phase: tuple[float, float, float], per_octant: float) -> None:
        """Lattices of cubes of any size: a secant step on the count, halved steps where that leaves the bracket."""
        box = float(np.prod(self._upper - self._lower))
        smallest = float(np.cbrt(box * LEAST_OF_GUESS * self._guess / self._count))
        side = float(np.cbrt(box * per_octant / self._count))
        too_fine, too_coarse = smallest, np.inf
        for _ in range(CUBE_TRIALS):
            found = self._try(RootOctants.cubes(self._lower, self._upper, side, phase))
            if self._miss() <= CLOSE:
                break
            if found > self._count:
                too_fine = max(too_fine, side)
            else:
                too_coarse = min(too_coarse, side)
            side *= float(np.clip(np.cbrt(max(found, 0.5) / self._count), 0.3, 3.0))
            if not too_fine < side < too_coarse:
                side = float(np.sqrt(too_fine * too_coarse))


def fitted_shape(extent: Floats, places: float, tried: set[tuple[int, ...]], more: int = 0) -> tuple[int, ...] | None:
    """How many octants along each axis fill a box of this extent [m] with about so many places for nodes, `more` along
    an axis than octants, as near to cubes as fits. Bars are the thinner the more corners than octants they have.

    None where all that have not been tried are stretched too much or miss the number by more than the tolerance.
    """
    side = float(np.cbrt(extent.prod() / places))
    for _ in range(ROUNDS):
        side *= float(np.cbrt((extent / side + more).prod() / places))
    ideal = extent / side
    ranges = [np.arange(max(1, int(n / 1.25)), int(n * 1.25) + 2) for n in ideal]
    shapes = np.stack(np.meshgrid(*ranges, indexing="ij"), axis=-1).reshape(-1, 3)
    sides = extent / shapes
    stretch = np.abs(sides / np.cbrt(sides.prod(axis=1, keepdims=True)) - 1).max(axis=1)
    miss = np.abs((shapes + more).prod(axis=1) / places - 1)
    cost = miss + STRETCH_COST * stretch
    cost[(stretch > MOST_STRETCHED) | (miss > TOLERANCE)] = np.inf
    for index in np.argsort(cost, kind="stable")[: len(tried) + 1]:
        shape = tuple(int(n) for n in shapes[index])
        if cost[index] < np.inf and shape not in tried:
            return shape
    return None
