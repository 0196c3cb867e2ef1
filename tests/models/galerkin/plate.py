"""A plate of nodes on a grid, graded or not, as a Galerkin space: nothing in it depends on how solids are sampled."""

from __future__ import annotations

import numpy as np

from phyxel import device as dev
from phyxel.mls.shape_functions import ShapeFunctions
from phyxel.models.galerkin.layout import Fabric, Layout, Placing
from phyxel.models.galerkin.space import Space
from phyxel.solid.nodes import Nodes
from phyxel.solid.quadrature import Quadrature


def crossed(*axes: np.ndarray) -> np.ndarray:
    """All combinations of numbers along the axes, (n, len(axes))."""
    return np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, len(axes))


def spans(x: np.ndarray) -> np.ndarray:
    """The larger distance from each of ascending numbers to those beside it."""
    gaps = np.diff(x)
    return np.maximum(np.append(gaps[0], gaps), np.append(gaps, gaps[-1]))


def gauss(edges: np.ndarray, each: int) -> tuple[np.ndarray, np.ndarray]:
    """Gauss points in the cells between ascending edges, and their weights."""
    places, shares = np.polynomial.legendre.leggauss(each)
    middle, half = 0.5 * (edges[1:] + edges[:-1]), 0.5 * np.diff(edges)
    return (middle[:, None] + half[:, None] * places).reshape(-1), (half[:, None] * shares).reshape(-1)


def plate(x: np.ndarray, y: np.ndarray, z: np.ndarray, each: int = 3) -> Space:
    """Nodes at all (x, y, z), covers of twice the local spacing, `each` Gauss points a cell and axis."""
    nodes = crossed(x, y, z)
    cover = 2.0 * crossed(spans(x), spans(y), spans(z)).max(axis=1)
    points, weights = zip(*(gauss(axis, each if axis is not z else 2) for axis in (x, y, z)), strict=True)
    where, worth = crossed(*points), crossed(*weights).prod(axis=1)
    device = dev.pick("cpu")
    shape = ShapeFunctions(nodes, cover, "linear", None, device)
    n = len(nodes)
    sampled = Nodes(
        nodes,
        np.ones(n),
        np.zeros(n),
        np.ones(n),
        np.zeros(n, np.int8),
        np.ones(n),
        quadrature=Quadrature(where, worth),
    )
    at_nodes = shape.at(nodes)
    fabric = Fabric(sampled, "linear", cover, shape.at(where), at_nodes, at_nodes)
    return Space.whole(Layout(fabric, Placing(np.zeros(3), 1.0, np.eye(3)), nodes, None, device))
