# mypy: disable-error-code="valid-type,no-untyped-def"
"""Colliders as surfels meet them: how far they are, and out of them. Of molds they take the relief, L_C: surfels that
have come to its wall lie on it, and look the way it does (M04 §5.2.3, physics 8.6)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import warp as wp
from numpy.typing import NDArray

from phyxel import device as dev
from phyxel.contact.distances import GRID, signed_distance
from phyxel.contact.mold import Mold
from phyxel.region import Floats

wp.set_module_options(dev.KERNEL_OPTIONS)

DEEPEST = wp.constant(1.0)
"""How deep in a collider a surfel is brought back, in spacings: deeper, its body is in it."""
FAR = wp.constant(1.5)
"""How many times its distance from a point a node must be clear of colliders for the point not to be in one; more than
1 since the distances of molds are kept on grids."""
NEARS = wp.constant(0.9)
"""Distance from a wall, in node spacings, beyond which it is none of a surfel's business."""
NOWHERE = wp.constant(-1.0e6)


@dataclass(frozen=True)
class Walls:
    """The colliders as one body sees them, in its node spacings about its origin."""

    table: Any
    """as kernels take them"""
    device: wp.Device
    body: int = 0
    """which of the bodies that the table is for"""


@wp.func
def from_collider(colliders: Any, body: int, k: int, x: wp.vec3):
    """Signed distance of x [spacings] from collider k, and the direction out of it in the collider's frame."""
    row = body * colliders.count + k
    p = colliders.turn[row] * (x + colliders.place[row])
    d, n = signed_distance(colliders.kind[k], p, colliders.size[row], colliders.layout[k], colliders.values)
    return d, n


@wp.func
def clearance_at(x: wp.vec3, colliders: Any, body: int):
    """Signed distance of x [spacings] from the nearest collider."""
    clearance = float(1.0e30)
    k = int(0)
    while k < colliders.count:
        d, _n = from_collider(colliders, body, k, x)
        clearance = wp.min(clearance, d)
        k += 1
    return clearance


@wp.func
def kept_out(x: wp.vec3, colliders: Any, body: int):
    """Where a surfel at x [spacings] is shown that may have got into a collider: on the collider's surface. Nodes keep
    clear of it by balls, between which the skin can dip in."""
    shown = x
    k = int(0)
    while k < colliders.count:
        d, n = from_collider(colliders, body, k, shown)
        if d < 0.0 and d > -DEEPEST:
            shown -= d * (wp.transpose(colliders.turn[body * colliders.count + k]) * n)
        k += 1
    return shown


@wp.kernel
def keep_out(
    first: int,
    colliders: Any,
    body: int,
    unit: float,
    position: wp.array(dtype=wp.vec3),
    touches: wp.array(dtype=wp.int32),
    mark: int,
):
    """Put surfels that have got into a collider onto its surface, and mark them."""
    s = first + wp.tid()
    x = position[s] / unit
    y = kept_out(x, colliders, body)
    if wp.length_sq(y - x) > 0.0:
        position[s] = unit * y
        touches[s] = mark


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
