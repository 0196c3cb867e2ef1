"""What phyxels fill, measured from their places alone: independent of what the model takes for volumes."""

from __future__ import annotations

import numpy as np
from scipy.spatial import cKDTree

import phyxel as px


def filled(positions: np.ndarray, volumes: np.ndarray, fineness: float = 0.4) -> tuple[np.ndarray, float]:
    """Which cells of a grid are filled: Σ v_j W(x − x_j) > ½ with the spiky kernel, on a flat surface exactly up to it;
    and the side of a cell [m]."""
    unit = float(np.cbrt(volumes.mean()))
    h, cell = 2.3 * unit, fineness * unit
    ends = zip(positions.min(axis=0), positions.max(axis=0), strict=True)
    axes = [np.arange(low - h, high + h, cell) for low, high in ends]
    grid = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1)
    distance, index = cKDTree(positions).query(grid.reshape(-1, 3), 60, distance_upper_bound=h)
    weight = np.where(distance < h, 15 / (np.pi * h**6) * np.maximum(h - np.minimum(distance, h), 0) ** 3, 0.0)
    return ((weight * np.append(volumes, 0.0)[index]).sum(axis=1) > 0.5).reshape(grid.shape[:3]), cell


def filled_volume(world: px.World) -> float:
    """Volume of all bodies [m³]."""
    cells, side = filled(
        np.concatenate([body.positions for body in world.bodies]),
        np.concatenate([body.volumes for body in world.bodies]),
    )
    return float(cells.sum() * side**3)


def euler_number(body: px.Body) -> int:
    """Corners − edges + faces − cells of what the body fills: 1 for a ball, 0 for a ring, 2 for two balls."""
    cells, _ = filled(body.positions, body.volumes, 0.5)
    cells = np.pad(cells, 1)
    total = 0
    for axes in range(8):
        part, dimension = cells, 3
        for axis in range(3):
            if axes >> axis & 1:  # a face of it belongs to it if the cell on either side does
                part = np.logical_or(
                    np.take(part, range(part.shape[axis] - 1), axis), np.take(part, range(1, part.shape[axis]), axis)
                )
                dimension -= 1
        total += (-1) ** dimension * int(part.sum())
    return total
