# mypy: disable-error-code="valid-type,no-untyped-def"
"""The relief of a mold, L_C: surfels that have come to its wall lie on it, and look the way it does (M04 §5.2.3,
physics 8.6)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import warp as wp
from numpy.typing import NDArray

from phyxel import device as dev
from phyxel.contact.distances import GRID
from phyxel.contact.mold import Mold
from phyxel.region import Floats
from phyxel.surface.walls import Walls, from_collider

wp.set_module_options(dev.KERNEL_OPTIONS)


NEARS = wp.constant(0.9)
"""Distance from a wall, in node spacings, beyond which it is none of a surfel's business."""
NOWHERE = wp.constant(-1.0e6)


@wp.func
def wall_at(x: wp.vec3, colliders: Any, body: int):
    """How deep a place is in the nearest mold, negative on its free side, and the way into it."""
    depth = NOWHERE
    inward = wp.vec3()
    k = int(0)
    while k < colliders.count:
        if colliders.kind[k] == GRID:
            d, n = from_collider(colliders, body, k, x)
            if -d > depth:
                depth = -d
                inward = -wp.transpose(colliders.turn[body * colliders.count + k]) * n
        k += 1
    return depth, inward


@wp.kernel
def find_walls(
    first: int,
    colliders: Any,
    body: int,
    points: wp.array(dtype=wp.vec3),
    foot: wp.array(dtype=wp.vec3),
    normal: wp.array(dtype=wp.vec3),
    depth: wp.array(dtype=float),
):
    """The nearest place on a wall, the way into it there, and how deep each point is in it."""
    s = first + wp.tid()
    x = points[s]
    deep, inward = wall_at(x, colliders, body)
    foot[s] = x
    normal[s] = inward
    depth[s] = NOWHERE
    if wp.abs(deep) < NEARS:
        y = x - deep * inward
        left, upright = wall_at(y, colliders, body)  # where it is curved, the first step misses a little
        foot[s] = y - left * upright
        normal[s] = upright
        depth[s] = deep


def closest_wall(walls: Walls, points: Floats) -> tuple[NDArray[np.float32], NDArray[np.float32], NDArray[np.float32]]:
    """Of (m, 3) points the nearest on the wall of a mold (m, 3), the way into it there (m, 3), and how deep the point
    is in it (m,), negative on the free side; very much so where no wall is within NEARS. As exact as the grids are
    that keep bodies off: a hundredth of the mold's size is resolved."""
    device = walls.device
    x = dev.as_vectors(points, device)
    foot, normal, depth = wp.empty_like(x), wp.empty_like(x), wp.empty(len(x), dtype=float, device=device)
    dev.launch(find_walls, len(x), [walls.table, walls.body, x, foot, normal, depth], device)
    return foot.numpy(), normal.numpy(), depth.numpy()


def cast(
    positions: Floats, normals: Floats, molds: Sequence[Mold], time: float, reach: float
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Positions (m, 3) [m] and normals (m, 3) of surfels that lie on walls within `reach` [m], to the digits of the
    solids that the molds were made of: all their relief."""
    x, n = np.array(positions, np.float64), np.array(normals, np.float64)
    for mold in molds:
        place, rotation = mold.pose(time)
        own = (x - place) @ rotation
        some = np.flatnonzero(mold.near_wall(own, reach))
        foot, upright, distance = mold.wall(own[some])
        near = np.abs(distance) < reach
        x[some[near]] = place + foot[near] @ rotation.T
        n[some[near]] = (1 if mold.inside_out else -1) * upright[near] @ rotation.T
    return x, n
