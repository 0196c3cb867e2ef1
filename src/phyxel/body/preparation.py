"""What a Galerkin or modal body has to know of its cloud before it can move: the solid, its nodes, the shape functions.

For a scan that takes many seconds, and is remembered on disk: the second start is quick, and never makes the solid
unless something new is asked of it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from phyxel import device as dev
from phyxel.cache import remembered
from phyxel.mls.shape_functions import Basis
from phyxel.models.galerkin.fabric import Fabric
from phyxel.points.cloud import PointCloud
from phyxel.points.shapes import SHAPES
from phyxel.region import BoxRegion
from phyxel.solid.nodes import Nodes
from phyxel.solid.octree import Region
from phyxel.solid.solid import Solid

Floats = NDArray[np.float64]

FORMAT = 7
"""Counts changes of how preparations are made: older ones are not used then."""


@dataclass(frozen=True)
class Preparation:
    """Of one body, in the cloud's coordinates [m]."""

    skin: PointCloud
    """the points on the surface, with normals"""
    lower: Floats
    upper: Floats
    fabric: dict[str, NDArray[Any]]
    """a `Fabric` as arrays"""

    @property
    def nodes(self) -> Nodes:
        return Fabric.nodes_of(self.fabric)


def prepared(
    cloud: PointCloud,
    make: Callable[[], tuple[Solid, Nodes]],
    basis: Basis,
    key: Sequence[Any],
    refine: Sequence[Region],
) -> Preparation:
    """The preparation for a cloud, of which `make` makes a solid with nodes; these depend on `key` and `refine` too."""

    def compute() -> dict[str, NDArray[Any]]:
        solid, nodes = make()
        assert solid.skin.normals is not None
        kept = np.arange(0) if solid.kept is None else solid.kept
        around = {"lower": solid.lower, "upper": solid.upper, "normals": solid.skin.normals, "kept": kept}
        return Fabric.woven(solid, nodes, basis, dev.pick()).state() | around

    known = identity(cloud, refine)
    content = compute() if known is None else remembered("body", [FORMAT, basis, *key, *known], compute)
    part = cloud if len(content["kept"]) == 0 else cloud.part(content["kept"])
    skin = replace(part, normals=content["normals"])
    return Preparation(skin, content["lower"], content["upper"], content)


def identity(cloud: PointCloud, refine: Sequence[Region]) -> list[Any] | None:
    """All that a solid and its nodes depend on; nothing where that includes a function of one's own."""
    if any(not isinstance(where, BoxRegion) for where, _ in refine):
        return None
    if cloud.shape is not None and SHAPES.get(cloud.shape.name) is not cloud.shape:
        return None
    name = "" if cloud.shape is None else cloud.shape.name
    mesh = () if cloud.mesh is None else (cloud.mesh.vertices, cloud.mesh.faces)
    boxes = [(np.asarray(box.lower, float), np.asarray(box.upper, float), levels) for box, levels in refine]  # type: ignore
    return [name, cloud.positions, cloud.normals, cloud.faces, *mesh, *(part for box in boxes for part in box)]
