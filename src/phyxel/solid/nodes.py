"""Nodes: the points that carry a body's mass."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from phyxel.mls.neighbours import curve_order, nearest
from phyxel.solid.grid import Distance, Floats, Grid


@dataclass(frozen=True)
class Nodes:
    """Reference points of a body, sorted along a space-filling curve."""

    positions: Floats
    """X [m], shape (n, 3)"""
    volumes: Floats
    """the part of the solid nearest to each node [m³], shape (n,); their sum is the solid's volume"""
    reach: Floats
    """distance from the node to the surface [m], shape (n,): the ball a node holds against colliders"""

    def __len__(self) -> int:
        return len(self.positions)

    @property
    def spacing(self) -> float:
        """Mean distance between nodes [m]: the side of a cube with a node's mean volume."""
        return float(np.cbrt(self.volumes.mean()))


def sample_nodes(distance: Distance, lower: Floats, upper: Floats, volume: float, count: int) -> Nodes:
    """Nodes at the centres of those boxes of a grid that lie inside; the box size is tuned to meet `count`."""
    grid, inside = _tuned_grid(distance, lower, upper, volume, count)
    positions = grid.centres()[inside]
    if len(positions) == 0:
        return Nodes(positions, np.zeros(0), np.zeros(0))
    positions = positions[curve_order(positions)]
    volumes = _nearest_volumes(grid, distance, positions)
    return Nodes(positions, volumes * (volume / volumes.sum()), np.maximum(-distance(positions), 0.0))


def _tuned_grid(
    distance: Distance, lower: Floats, upper: Floats, volume: float, count: int
) -> tuple[Grid, NDArray[np.bool_]]:
    """The grid whose boxes inside come nearest to `count`, and which boxes these are."""
    best: tuple[int, Grid, NDArray[np.bool_]] | None = None
    side = np.cbrt(max(volume, 1e-12 * float(np.prod(upper - lower))) / count)
    for _ in range(10):
        grid = Grid.fitted(lower, upper, cell=float(side))
        inside = distance(grid.centres()) < 0
        found = int(inside.sum())
        if best is None or abs(found - count) < best[0]:
            best = abs(found - count), grid, inside
        if abs(found - count) <= 0.02 * count:
            break
        # Damped: the count jumps when a whole layer of boxes comes in, and a full step would swing about the goal.
        side *= (max(found, 1) / count) ** 0.2
    assert best is not None
    return best[1], best[2]


def _nearest_volumes(grid: Grid, distance: Distance, positions: Floats) -> Floats:
    """The volume of the quadrature points nearest to each node [m³], shape (n,)."""
    points, weights = grid.quadrature(distance)
    _, owner = nearest(points, positions, 1)
    return np.bincount(owner[:, 0], weights, minlength=len(positions)).astype(np.float64)
