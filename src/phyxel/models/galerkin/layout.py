"""Nodes and quadrature of a body and the shape functions it has where no crack is near: all of a `Space` that cracks do
not change. The fabric is that of a solid, in the cloud's coordinates [m]: to make it of a scan takes many seconds, but
it depends on the points and some numbers alone, and is remembered on disk. The layout is that of a body in its own
coordinates; a piece of a body has its own part of the body's fabric."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import warp as wp
from numpy.typing import NDArray
from scipy.sparse import csr_array

from phyxel.mls.corrected_gradients import consistent_gradients, mended, vanishing_fields
from phyxel.mls.neighbours import nearest
from phyxel.mls.shape_functions import Basis, ShapeFunctions
from phyxel.mls.shape_values import ShapeValues, places_among
from phyxel.mls.visibility import Sees
from phyxel.models.galerkin.point_functions import PointFunctions, PointLists
from phyxel.solid.nodes import Nodes
from phyxel.solid.quadrature import Quadrature
from phyxel.solid.solid import Solid
from phyxel.state import State, prefixed, unprefixed

Floats = NDArray[np.float64]

PLACES = ("points", "nodes", "skin")
ENOUGH = 4
"""Surfels for each node from which on they tell what vanishes on the surface."""
SHALLOW = 0.5
"""Spacings from the surface within which points of the quadrature are moved onto it to tell that where surfels are few:
a box may have eight."""


@dataclass(frozen=True)
class Fabric:
    """Nodes of a solid and their shape functions."""

    nodes: Nodes
    basis: Basis
    covers: Floats
    """half sides of the nodes' covers [m], shape (n,)"""
    at_points: ShapeValues
    """at the quadrature points, with gradients consistent with the quadrature"""
    at_nodes: ShapeValues
    at_skin: ShapeValues
    tie: float = 0.0
    """τ of terms of second order (`ShapeFunctions`)"""

    @staticmethod
    def woven(solid: Solid, nodes: Nodes, basis: Basis, device: wp.Device) -> Fabric:
        """Of a solid with these nodes."""
        shape, points, weights = solid.shape_functions(nodes, basis), nodes.quadrature.points, nodes.quadrature.weights
        at_skin, at_points = shape.at(solid.skin.positions), shape.at(points)
        outside = at_skin if len(solid.skin) > ENOUGH * len(nodes) else shape.at(_surface_places(solid, nodes))
        plain, vanishing = at_points.dphi.numpy(), vanishing_fields(outside.values)
        gradients = consistent_gradients(plain, at_points.values, points, weights, nodes.positions, vanishing, basis)
        at_points = at_points.with_gradients(gradients)
        assert solid.skin.normals is not None
        at_skin = mended(at_skin, solid.skin.positions, solid.skin.normals, nodes.spacing)
        made = Fabric(nodes, basis, shape.covers, at_points, shape.at(nodes.positions), at_skin, shape.tie)
        return Fabric.restored(made.state(), basis, device)  # the same bits as one that was remembered

    def state(self) -> State:
        """All of it, as arrays."""
        nodes, quadrature = self.nodes, self.nodes.quadrature
        kept: State = {
            "positions": nodes.positions, "volumes": nodes.volumes, "reach": nodes.reach,
            "octants": nodes.octants, "kinds": nodes.kinds, "thickness": nodes.thickness, "covers": self.covers,
            "tie": np.array(self.tie),
            "quadrature": quadrature.points, "weights": quadrature.weights,
        }  # fmt: skip
        for place in PLACES:
            kept |= prefixed(f"{place}.", getattr(self, f"at_{place}").state())
        # By far the largest, and only half axes of surfels need it.
        return kept | {"skin.dphi": kept["skin.dphi"].astype(np.float32)}

    @staticmethod
    def nodes_of(state: State) -> Nodes:
        """The nodes in what `state` gave."""
        kept = {name: state[name] for name in ("positions", "volumes", "reach", "octants", "kinds", "thickness")}
        return Nodes(**kept, quadrature=Quadrature(state["quadrature"], state["weights"]))

    @staticmethod
    def restored(state: State, basis: Basis, device: wp.Device) -> Fabric:
        """From what `state` gave."""
        nodes = Fabric.nodes_of(state)
        values = (ShapeValues.restored(unprefixed(f"{place}.", state), len(nodes), device) for place in PLACES)
        at_points, at_nodes, at_skin = values
        return Fabric(nodes, basis, state["covers"], at_points, at_nodes, at_skin, float(state["tie"]))


def _surface_places(solid: Solid, nodes: Nodes) -> Floats:
    """Places all over the surface of a solid [m], shape (m, 3)."""
    points = nodes.quadrature.points
    shallow = points[solid.distance(points) > -SHALLOW * nodes.spacing]
    return np.concatenate([solid.skin.positions, solid.project(shallow)])


@dataclass(frozen=True)
class Placing:
    """How a cloud's coordinates lie to a body's: X = (x − middle) turnᵀ / length."""

    middle: Floats
    """what the body counts from, in the cloud's coordinates, shape (3,)"""
    length: float
    """the body's unit, in the cloud's"""
    turn: Floats
    """the cloud's axes in the body's, 3 × 3"""

    def cloud(self, X: NDArray[np.floating]) -> Floats:
        """Positions (m, 3) of the body in the cloud's coordinates."""
        return self.middle + self.length * (np.asarray(X, np.float64).reshape(-1, 3) @ self.turn)

    def body(self, x: Floats) -> Floats:
        """Positions (m, 3) of the cloud in the body's coordinates."""
        return (x - self.middle) @ self.turn.T / self.length


@dataclass(frozen=True, eq=False)
class Own:
    """Which part of a fabric is that of a piece."""

    nodes: NDArray[np.int64]
    """shape (n,)"""
    points: NDArray[np.int64]
    """those of the quadrature, shape (q,)"""
    skin: NDArray[np.int64]
    """surfels, shape (m,)"""

    def same_as(self, other: Own) -> bool:
        return all(np.array_equal(part, getattr(other, name)) for name, part in vars(self).items())


class Layout:
    """Nodes, points and functions of a body or a piece of it, without cracks."""

    def __init__(
        self,
        fabric: Fabric,
        placing: Placing,
        skin: Floats,
        sees: Sees | None,
        device: wp.Device,
        own: Own | None = None,
    ) -> None:
        """`skin` (m, 3) are the positions of all surfels, `sees` is that of the cloud's coordinates; a piece of a body
        has its `own` part of the fabric."""
        self.device, self.placing = device, placing
        self._fabric, self._all_skin, self._sees = fabric, skin, sees
        self.own = own or Own(*(np.arange(len(x)) for x in (fabric.covers, fabric.at_points.condition, skin)))
        nodes, quadrature = fabric.nodes.positions[self.own.nodes], fabric.nodes.quadrature
        points = quadrature.points[self.own.points]
        self.skin: Floats = skin[self.own.skin]
        """of the surfels, shape (m, 3)"""
        self.nodes: Floats = placing.body(nodes)
        """X_I, shape (n, 3)"""
        self.points: Floats = placing.body(points)
        """where integrals look, shape (q, 3)"""
        self.weights: Floats = quadrature.weights[self.own.points] / placing.length**3
        """the volume each stands for, shape (q,)"""
        # In the cloud's coordinates: of two that are as near it is the one whose volume has the point, however it lies.
        self.owner: NDArray[np.int64] = nearest(points, nodes, 1)[1][:, 0]
        """the node nearest to each point, shape (q,)"""
        found = self._part_of(fabric.at_points, self.own.points)
        values = found.values
        lists = PointLists(self.points, self.weights, self.nodes, self.owner, values.indptr, values.indices, device)
        self.functions = PointFunctions.whole(lists, values.data, found.dphi.numpy())
        self.held_faces: dict[bytes, tuple[NDArray[np.int64], Floats, Floats, NDArray[np.int64]]] = {}
        """places between held nodes, by these (`held_region`)"""
        self.at_nodes: ShapeValues = self._part_of(fabric.at_nodes, self.own.nodes)
        """φ and ∇φ at the nodes: a node's coefficient is not its displacement"""

    def __len__(self) -> int:
        return len(self.nodes)

    def part(self, own: Own) -> Layout:
        """Another part of the same fabric."""
        return Layout(self._fabric, self.placing, self._all_skin, self._sees, self.device, own)

    def at_skin(self) -> ShapeValues:
        """φ and ∇φ at the surfels."""
        return self._part_of(self._fabric.at_skin, self.own.skin)

    @cached_property
    def around(self) -> csr_array:
        """The nodes that each node knows, shape (n, n)."""
        return self.at_nodes.values.astype(bool)

    @cached_property
    def _shape(self) -> ShapeFunctions:
        fabric = self._fabric
        about = fabric.nodes.positions, fabric.covers, fabric.basis, self._sees, self.device
        return ShapeFunctions(*about, fabric.tie)

    def at(self, X: Floats) -> ShapeValues:
        """φ and ∇φ at (m, 3) positions."""
        return self._part_of(self._shape.at(self.placing.cloud(X)))

    def on(self, X: Floats, owner: NDArray[np.integer], index: NDArray[np.integer], wider: float = 1.0) -> ShapeValues:
        """φ and ∇φ at (m, 3) positions from given nodes: pairs (p,), (p,) of a position and a node, ascending; with
        covers so many times as wide."""
        shape = self._shape if wider == 1 else self._shape.with_covers(wider * self._fabric.covers)
        found = self._turned(shape.on(self.placing.cloud(X), owner, self.own.nodes[index]))
        return found.with_nodes(index, len(self))

    def reach_to(self, X: Floats, index: NDArray[np.integer]) -> Floats:
        """How far positions (p, 3) lie from nodes (p,), in covers of these, shape (p,)."""
        nodes = self.own.nodes[index]
        away = self.placing.cloud(X) - self._fabric.nodes.positions[nodes]
        return np.asarray(np.abs(away).max(axis=1) / self._fabric.covers[nodes], np.float64)

    def _part_of(self, found: ShapeValues, rows: NDArray[np.integer] | None = None) -> ShapeValues:
        """Some rows of values of the fabric as far as its own nodes go; where others are missing they are not known."""
        found = self._turned(found if rows is None else found.rows(rows))
        if len(self) == len(self._fabric.covers):
            return found
        return found.only(places_among(self.own.nodes, len(self._fabric.covers)), len(self))

    def _turned(self, found: ShapeValues) -> ShapeValues:
        slope = self.placing.length * found.dphi.numpy()
        turn = self.placing.turn
        return found.with_gradients(slope if np.array_equal(turn, np.eye(3)) else slope @ turn.T)
