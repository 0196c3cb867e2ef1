# mypy: disable-error-code="valid-type,no-untyped-def"
"""Colliders as surfels meet them: how far they are, and out of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import warp as wp

from phyxel import device as dev
from phyxel.contact.distances import signed_distance

wp.set_module_options(dev.KERNEL_OPTIONS)

DEEPEST = wp.constant(1.0)
"""How deep in a collider a surfel is brought back, in spacings: deeper, its body is in it."""
FAR = wp.constant(1.5)
"""How many times its distance from a point a node must be clear of colliders for the point not to be in one; more than
1 since the distances of molds are kept on grids."""


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
