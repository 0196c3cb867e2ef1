"""What Galerkin models need of a solid, in the cloud's coordinates [m]: nodes on its surface and inside, quadrature
points, and the shape functions at these, at the nodes and at the skin.

To make it of a scan takes many seconds; it depends on the points and some numbers alone, and is remembered on disk.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import warp as wp
from numpy.typing import NDArray

from phyxel.mls.corrected_gradients import consistent_gradients, mended, vanishing_fields
from phyxel.mls.shape_functions import Basis
from phyxel.mls.shape_values import ShapeValues
from phyxel.solid.nodes import Nodes
from phyxel.solid.quadrature import Quadrature
from phyxel.solid.solid import Solid
from phyxel.state import State, unprefixed

Floats = NDArray[np.float64]
PLACES = ("points", "nodes", "skin")


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

    @staticmethod
    def woven(solid: Solid, nodes: Nodes, basis: Basis, device: wp.Device) -> Fabric:
        """Of a solid with these nodes."""
        shape = solid.shape_functions(nodes, basis)
        at_skin, at_points = shape.at(solid.skin.positions), shape.at(nodes.quadrature.points)
        gradients = consistent_gradients(
            at_points.dphi.numpy(),
            at_points.values,
            nodes.quadrature.points,
            nodes.quadrature.weights,
            nodes.positions,
            vanishing_fields(at_skin.values),
            basis,
        )
        at_points = at_points.with_gradients(gradients)
        assert solid.skin.normals is not None
        at_skin = mended(at_skin, solid.skin.positions, solid.skin.normals, nodes.spacing)
        made = Fabric(nodes, basis, shape.covers, at_points, shape.at(nodes.positions), at_skin)
        return Fabric.restored(made.state(), basis, device)  # the same bits as one that was remembered

    def state(self) -> State:
        """All of it, as arrays."""
        nodes, quadrature = self.nodes, self.nodes.quadrature
        kept: State = {
            "positions": nodes.positions, "volumes": nodes.volumes, "reach": nodes.reach,
            "octants": nodes.octants, "kinds": nodes.kinds, "covers": self.covers,
            "quadrature": quadrature.points, "weights": quadrature.weights,
        }  # fmt: skip
        for place in PLACES:
            values: ShapeValues = getattr(self, f"at_{place}")
            kept |= {f"{place}.{name}": array for name, array in values.state().items()}
        # By far the largest, and only half axes of surfels need it.
        return kept | {"skin.dphi": kept["skin.dphi"].astype(np.float32)}

    @staticmethod
    def nodes_of(state: State) -> Nodes:
        """The nodes in what `state` gave."""
        kept = {name: state[name] for name in ("positions", "volumes", "reach", "octants", "kinds")}
        return Nodes(**kept, quadrature=Quadrature(state["quadrature"], state["weights"]))

    @staticmethod
    def restored(state: State, basis: Basis, device: wp.Device) -> Fabric:
        """From what `state` gave."""
        nodes = Fabric.nodes_of(state)
        values = (ShapeValues.restored(unprefixed(f"{place}.", state), len(nodes), device) for place in PLACES)
        return Fabric(nodes, basis, state["covers"], *values)
