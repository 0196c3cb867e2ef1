# mypy: disable-error-code="valid-type,no-untyped-def"
"""Wraps: a surface is drawn onto colliders, straight to the nearest point of their solid (physics 13.8)."""

from __future__ import annotations

from typing import Any

import warp as wp

from phyxel import device as dev
from phyxel.contact.table import distance_out_of

wp.set_module_options(dev.KERNEL_OPTIONS)


@wp.kernel
def draw_to_colliders(
    first: int,
    colliders: Any,
    pressure: wp.array(dtype=wp.float64),
    X: wp.array(dtype=wp.vec3d),
    u: wp.array(dtype=wp.vec3d),
    area: wp.array(dtype=wp.float64),
    given: wp.array(dtype=wp.vec3d),
    force: wp.array(dtype=wp.vec3d),
):
    """F_i = given_i − Σ_k p_k area_i n_k over the colliders k outside of which X + u lies (physics 13.8); n is their
    outward normal there. On the surface it still draws, or particles there would let go and be caught again and again;
    inside it does not. `pressure` is that of each collider, (k), in the unit of force over that of area."""
    i = first + wp.tid()
    x = X[i] + u[i]
    total = given[i]
    for k in range(colliders.count):
        if pressure[k] > wp.float64(0.0):
            distance, outward = distance_out_of(colliders, k, colliders.place[k] + x)
            if distance > wp.float64(0.0):
                total -= (pressure[k] * area[i]) * outward
    force[i] = total


def drawing_to(table: Any, pressures: wp.array | None, areas: Any, p: Any, given: wp.array) -> list[dev.Launch]:
    """What adds to the forces `given` on particles p, of such areas, with these pressures, if any draw."""
    if pressures is None:
        return []
    there = wp.array(areas, dtype=wp.float64, device=p.X.device)
    inputs = [table, pressures, p.X, p.u, there, given, p.force]
    return [dev.Launch(draw_to_colliders, len(areas), inputs, 0.1 + 0.5 * table.count)]
