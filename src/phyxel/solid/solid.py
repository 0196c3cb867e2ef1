"""The solid a cloud encloses."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any

import numpy as np
import warp as wp
from numpy.typing import NDArray

from phyxel import device as dev
from phyxel.errors import PhyxelError, SolidError
from phyxel.points.cloud import PointCloud
from phyxel.solid.grid import Grid
from phyxel.solid.mesh import MeshDistance
from phyxel.solid.nodes import Nodes, sample_nodes

Floats = NDArray[np.float64]


class Solid:
    """Inside and outside, distance, volume and nodes of what a cloud encloses, in the cloud's coordinates [m]."""

    def __init__(self, cloud: PointCloud, device: str | wp.Device | None = None) -> None:
        self.name = cloud.name
        self._distance = _distance_function(cloud, dev.pick(device))
        source: Any = cloud.shape or cloud
        self.lower = np.asarray(source.lower, np.float64)
        self.upper = np.asarray(source.upper, np.float64)

    def distance(self, positions: Floats) -> Floats:
        """Signed distance [m] of (N, 3) positions, negative inside, shape (N,)."""
        return self._distance(np.asarray(positions, np.float64).reshape(-1, 3))

    def inside(self, positions: Floats) -> NDArray[np.bool_]:
        """Which of (N, 3) positions lie inside, shape (N,)."""
        return self.distance(positions) < 0

    @cached_property
    def volume(self) -> float:
        """[m³], by quadrature on a grid that is refined along the surface."""
        return Grid.fitted(self.lower, self.upper, cells=40).volume(self.distance)

    def sample(self, count: int) -> Nodes:
        """About `count` nodes that share the volume among them."""
        if count < 8:
            raise PhyxelError(f"{self.name}: nodes = {count}: a body needs at least 8")
        nodes = sample_nodes(self.distance, self.lower, self.upper, self.volume, count)
        if len(nodes) < 8:
            raise SolidError(
                f"{self.name}: only {len(nodes)} nodes fit inside; ask for more nodes (nodes = {4 * count}), "
                "or check that the surface is closed"
            )
        return nodes


def _distance_function(cloud: PointCloud, device: wp.Device) -> Callable[[Any], Any]:
    if cloud.shape is not None:
        return cloud.shape.distance
    if cloud.mesh is not None:
        return MeshDistance(cloud.mesh.vertices, cloud.mesh.faces, cloud.name, device)
    raise SolidError(
        f"{cloud.name}: {len(cloud)} points without faces; a solid is made from a closed mesh or a built-in shape. "
        "Save the scan with its triangles (PLY, OBJ, STL) and load it again"
    )
