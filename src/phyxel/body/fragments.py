"""What cracks do to a body: they are put in, faces come to lie beside nodes, and pieces part from the rest."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import cKDTree

from phyxel.body.holds import Handle
from phyxel.body.placement import Anchor
from phyxel.cracks.crack import Crack, Cracks
from phyxel.cracks.fracture import Fracture
from phyxel.errors import PhyxelError
from phyxel.mls.visibility import homes
from phyxel.region import Vector, as_vector
from phyxel.surface.hull import Hull

if TYPE_CHECKING:
    from phyxel.body.body import Body

Floats = NDArray[np.float64]

ASKED = 16
"""Nearest nodes that are asked whether they see a place beside a crack."""
BESIDE = 2.0
"""Distance from its solid within which a piece knows the pieces that parted from it, in spacings."""


@dataclass(frozen=True, eq=False)
class Remnant:
    """What a piece knows of that which has parted from it. All is at birth and in body units."""

    own: Floats
    """its nodes, shape (n, 3)"""
    lost: Floats
    """nodes of the whole that it no longer has, shape (k, 3)"""
    cracks: Cracks
    """as they were when it last parted"""

    def side(self, places: NDArray[np.floating]) -> NDArray[np.bool_]:
        """Whether places (k, 3) are on its own side of the cracks that parted it, (k,)."""
        return homes(places, np.concatenate([self.own, self.lost]), self.cracks.sees, ASKED) < len(self.own)

    def narrowed(self, places: NDArray[np.floating], distance: Floats) -> Floats:
        """The distance (k,) of places from the surface of what it was once part of, as one from its own."""
        near = np.flatnonzero(distance < BESIDE)
        away = cleft(self.cracks, places[near])
        distance[near] = np.maximum(distance[near], np.where(self.side(places[near]), -away, away))
        return distance

    def roughly(self) -> Callable[[Floats, Floats], Floats]:
        """Takes places (k, 3) and their distance (k,) from the surface of what it was once part of to one that tells
        whether they are in it, by the nearest node: cracks ask often, and need not know better."""
        tree, count = cKDTree(np.concatenate([self.own, self.lost])), len(self.own)
        return lambda places, distance: np.where(tree.query(places)[1] < count, distance, np.maximum(distance, 1.0))


def cleft(cracks: Cracks, places: NDArray[np.floating]) -> Floats:
    """Distance of places (k, 3) from the nearest of some cracks, shape (k,)."""
    levels = [crack.values(places) for crack in cracks]
    return np.min([np.hypot(psi1, np.maximum(psi2, 0)) for psi1, psi2 in levels], axis=0)


def piece_of(body: Body, name: str, nodes: NDArray[np.int64], points: NDArray[np.int64], cracks: Cracks) -> Body:
    """A body of its own, of some nodes (k,) and points of the surface (m,) of one that `cracks` have parted from the
    rest, where they are."""
    piece = copy(body)
    piece.name, piece.handles = name, []
    piece.anchor = Anchor(body.unit, body.centre, body.origin.copy())
    narrow(piece, nodes, points, cracks)
    return piece


def narrow(body: Body, nodes: NDArray[np.int64], points: NDArray[np.int64], cracks: Cracks) -> None:
    """Let a body be only what these nodes (k,) and points (m,) of it are."""
    gone = np.ones(len(body.birth), bool)
    gone[nodes] = False
    lost = np.zeros((0, 3)) if body.remnant is None else body.remnant.lost
    lost = np.concatenate([lost, body.birth_places[gone]])
    space = body.space.part(nodes, points) if body.kind.carried_by == "shape functions" else None
    body.nodes, body.substance = body.nodes.part(nodes), body.substance.part(nodes)
    body.appearance = body.appearance.of_piece(body, points)
    body.cloud, body.space = body.cloud.part(points), space
    if space is not None:
        volumes = body.unit**3 * np.bincount(space.owner, space.weights, len(nodes)).astype(np.float64)
        body.nodes = replace(body.nodes, volumes=volumes)
    body.hull, body.guide = Hull(), None
    body.remnant = Remnant(body.birth_places, lost, cracks)
    if body.fracture is not None:
        body.fracture = body.fracture.of_piece(body.remnant.roughly())


class Thrown(NamedTuple):
    """How a crumb starts."""

    positions: Floats
    """about where its nodes are [m], shape (n, 3)"""
    momentum: Floats
    """[kg m/s], shape (3,)"""
    spin: Floats
    """angular momentum about its origin [kg m²/s], shape (3,)"""


def crumble(body: Body, thrown: Thrown) -> None:
    """Let a piece be a crumb, which cannot bend, from now on."""
    body.model, body.space, body.thrown = body.kind.crumbs, None, thrown


def deal_out_holds(whose: Sequence[tuple[Body, NDArray[np.int64]]]) -> None:
    """Let holds on the first of some bodies go with those that have its nodes from now on."""
    body = whose[0][0]
    taken, body.handles = body.handles, []
    for handle in taken:
        takers = whose if len(handle.nodes) else [min(whose, key=lambda one: _away(body, handle, one[1]))]
        for taker, part in handle.dealt_out(takers):
            taker.handles.append(part)


def _away(body: Body, handle: Handle, nodes: NDArray[np.int64]) -> float:
    """From a place of the surface that is held to the nearest of some nodes, in the reference shape [m]."""
    return float(np.linalg.norm(body.birth[nodes] - handle.points[0], axis=1).min())


def reach_beside_cracks(body: Body) -> Floats:
    """How far nodes are from the nearest face of a body, in units, shape (n,)."""
    return np.minimum(body.nodes.reach / body.unit, crack_beside(body))


def crack_beside(body: Body) -> Floats:
    """How far nodes are from the nearest crack of a body, in units, shape (n,); infinitely, where there is none."""
    if body.fracture is None or not len(body.fracture.cracks):
        return np.full(len(body.birth), np.inf)
    return np.asarray(cleft(body.fracture.cracks, body.birth_places) * body.born.unit / body.unit)


def held_places(body: Body) -> Floats:
    """Held points of a body, at birth and in body units, shape (k, 3)."""
    return body.shape.in_units(np.concatenate([np.zeros((0, 3)), *(handle.points for handle in body.handles)]))


def shear_speeds(body: Body) -> Floats:
    """Of shear waves √(μ/ρ) at the nodes of a body [spacings/s] (physics 12.3), shape (n,)."""
    young, poisson, density = (body.mixture.number(name) for name in ("young", "poisson", "density"))
    return np.sqrt(young / (2 * (1 + poisson) * density)) / body.born.unit


def homes_of_points(body: Body) -> NDArray[np.int64]:
    """The node that each point of a body's cloud goes with, shape (m,)."""
    if body.kind.carried_by == "shape functions":
        return body.space.homes_of_skin()
    return homes(body.shape.in_units(body.placed_cloud()), body.birth_places, body.sees, ASKED)


def unbroken(body: Body) -> Fracture:
    """The rules of fracture of a body, with no crack as yet."""
    try:
        body.kind.refuse("crack")
    except PhyxelError as error:
        raise PhyxelError(f"{body.name}: {error}") from None
    skin, normals = body.shape.in_units(body.placed_cloud()), body.cloud.normals
    assert normals is not None
    outward = normals.astype(np.float64) @ body.shape.rotation.T
    tree = cKDTree(skin)

    def distance(X: Floats) -> Floats:
        # By the nearest surfel: the solid itself need not be made for this.
        near = tree.query(X)[1]
        return np.asarray(np.einsum("na,na->n", X - skin[near], outward[near]), np.float64)

    return Fracture(skin.min(axis=0), skin.max(axis=0), distance)


def crack_for(
    body: Body, at: Vector, normal: Vector, radius: float | None, ahead: Vector | None
) -> tuple[Fracture, Crack]:
    """The rules of fracture of a body, and a crack that can be put in, see `Body.cut`."""
    if body.thrown is not None:
        raise PhyxelError(f"{body.name}: cut: it is a crumb, too small to be cut")
    if body.reshaped:
        raise PhyxelError(f"{body.name}: cut: it has melted; only what has its first shape can be cut")
    if radius is not None and ahead is not None:
        raise PhyxelError(f"{body.name}: cut: give radius for a disc, or ahead for a slit, not both")
    if radius is not None and not (isinstance(radius, int | float) and 0 < radius < np.inf):
        raise PhyxelError(f"{body.name}: cut: radius = {radius}: give a length above 0 m")
    place = body.shape.in_units(as_vector(f"{body.name}: cut: at", at))
    across = _direction(f"{body.name}: cut: normal", normal)
    fracture = body.fracture or unbroken(body)
    if radius is not None:
        crack = Crack.disc(fracture.grid, place, across, float(radius) / body.born.unit)
    elif ahead is not None:
        crack = Crack.slit(fracture.grid, place, across, _direction(f"{body.name}: cut: ahead", ahead))
    else:
        crack = Crack.plane(fracture.grid, place, across)
    return fracture, crack


def _direction(label: str, value: Vector) -> Floats:
    way = as_vector(label, value)
    if not way.any():
        raise PhyxelError(f"{label} = {value}: give a direction, not zero")
    return way
