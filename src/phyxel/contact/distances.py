# mypy: disable-error-code="valid-type,no-untyped-def"
"""Signed distances: how far a place is from a collider's surface, negative inside, and the direction that leads out.

Places are in the collider's own frame. All lengths are in one unit, whichever. Generic in precision.
"""

from __future__ import annotations

from typing import Any

import warp as wp

from phyxel import device as dev
from phyxel.solid.distance_grid import cubic

wp.set_module_options(dev.KERNEL_OPTIONS)

PLANE, SPHERE, BOX, CAPSULE, TURNED, GRID = (wp.constant(kind) for kind in range(6))
"""Kinds of colliders."""


@wp.func
def from_point(p: Any, radius: Any):
    """Within `radius` of the origin."""
    length = wp.length(p)
    normal = p * p.dtype(0.0)
    if length > p.dtype(0.0):
        normal = p / length
    else:
        normal[1] = p.dtype(1.0)
    return length - radius, normal


@wp.func
def from_box(p: Any, half: Any):
    """|x| < half[0] and so on."""
    zero = p.dtype(0.0)
    q = wp.abs(p) - half
    worst = int(0)
    if q[1] > q[worst]:
        worst = int(1)
    if q[2] > q[worst]:
        worst = int(2)
    normal = p * zero
    if q[worst] <= zero:
        normal[worst] = wp.where(p[worst] < zero, p.dtype(-1.0), p.dtype(1.0))
        return q[worst], normal
    for axis in range(3):
        beyond = wp.max(q[axis], zero)
        normal[axis] = wp.where(p[axis] < zero, -beyond, beyond)
    distance = wp.length(normal)
    return distance, normal / distance


@wp.func
def from_edge(r: Any, y: Any, r0: Any, y0: Any, r1: Any, y1: Any):
    """Way (r, y) from the nearest point of a segment to (r, y), and how far it lies to the right of its line."""
    zero = type(r)(0.0)
    along_r = r1 - r0
    along_y = y1 - y0
    length_sq = along_r * along_r + along_y * along_y
    share = zero
    side = type(r)(-1.0e30)  # an edge of no length has no side
    if length_sq > zero:
        share = wp.clamp(((r - r0) * along_r + (y - y0) * along_y) / length_sq, zero, type(r)(1.0))
        side = ((r - r0) * along_y - (y - y0) * along_r) / wp.sqrt(length_sq)
    return r - r0 - share * along_r, y - y0 - share * along_y, side


@wp.func
def from_turned(p: Any, in0: Any, in1: Any, out0: Any, out1: Any, height: Any):
    """A solid of revolution about y: between the radii `in0` and `out0` at y = 0, and `in1` and `out1` at `height`.
    Without inner radii it is full."""
    zero = p.dtype(0.0)
    r = wp.sqrt(p[0] * p[0] + p[2] * p[2])
    y = p[1]
    near_r = zero
    near_y = zero
    nearest = p.dtype(1.0e30)
    worst = p.dtype(-1.0e30)
    worst_r = zero
    worst_y = zero
    for edge in range(4):
        # Around the profile, its inside to the left: foot, outer wall, top, inner wall.
        a_r = in0
        a_y = zero
        b_r = out0
        b_y = zero
        if edge == 1:
            a_r = out0
            b_r = out1
            b_y = height
        if edge == 2:
            a_r = out1
            a_y = height
            b_r = in1
            b_y = height
        if edge == 3:
            a_r = in1
            a_y = height
            b_r = in0
        if edge < 3 or in0 + in1 > zero:
            way_r, way_y, side = from_edge(r, y, a_r, a_y, b_r, b_y)
            square = way_r * way_r + way_y * way_y
            if square < nearest:
                nearest = square
                near_r = way_r
                near_y = way_y
            if side > worst:
                worst = side
                steep = wp.sqrt((b_r - a_r) * (b_r - a_r) + (b_y - a_y) * (b_y - a_y))
                worst_r = (b_y - a_y) / steep
                worst_y = (a_r - b_r) / steep
    distance = worst
    if worst > zero and nearest > zero:
        distance = wp.sqrt(nearest)
        worst_r = near_r / distance
        worst_y = near_y / distance
    normal = p * zero
    normal[1] = worst_y
    if r > zero:
        normal[0] = worst_r * p[0] / r
        normal[2] = worst_r * p[2] / r
    else:
        normal[0] = worst_r
    return distance, normal


@wp.func
def from_grid(p: Any, cell: Any, layout: wp.vec4i, values: wp.array(dtype=Any)):
    """Distances, in cells, at the corners of a grid about the origin, cubic in between. Beyond the grid: the distance
    to the point of the surface that is nearest to the grid's nearest place."""
    q = p / cell
    for axis in range(3):
        q[axis] = q[axis] + p.dtype(layout[axis + 1] - 1) * p.dtype(0.5)
    c = q
    for axis in range(3):
        c[axis] = wp.clamp(q[axis], p.dtype(1.0), p.dtype(layout[axis + 1] - 2) - p.dtype(1.0e-3))
    i = int(wp.floor(c[0]))
    j = int(wp.floor(c[1]))
    k = int(wp.floor(c[2]))
    wx, sx = cubic(c[0] - p.dtype(i))
    wy, sy = cubic(c[1] - p.dtype(j))
    wz, sz = cubic(c[2] - p.dtype(k))
    value = p.dtype(0.0)
    slope = p * p.dtype(0.0)
    for a in range(4):
        for b in range(4):
            row = layout[0] + ((i + a - 1) * layout[2] + j + b - 1) * layout[3] + k - 1
            along = p.dtype(0.0)
            turn = p.dtype(0.0)
            for g in range(4):
                along += wz[g] * values[row + g]
                turn += sz[g] * values[row + g]
            value += wx[a] * wy[b] * along
            slope[0] = slope[0] + sx[a] * wy[b] * along
            slope[1] = slope[1] + wx[a] * sy[b] * along
            slope[2] = slope[2] + wx[a] * wy[b] * turn
    normal = slope / wp.max(wp.length(slope), p.dtype(1.0e-6))
    beyond = q - c
    if wp.length_sq(beyond) > p.dtype(0.0):
        way = beyond + value * normal
        value = wp.length(way)
        normal = way / wp.max(value, p.dtype(1.0e-6))
    return cell * value, normal


@wp.func
def signed_distance(kind: int, p: Any, size: Any, layout: wp.vec4i, values: wp.array(dtype=Any)):
    """Of a place in the collider's frame, and the unit vector in which it grows (physics 15.1)."""
    distance = p[1]
    normal = p * p.dtype(0.0)
    if kind == PLANE:
        normal[1] = p.dtype(1.0)
    elif kind == SPHERE:
        distance, normal = from_point(p, size[0])
    elif kind == BOX:
        half = p
        for axis in range(3):
            half[axis] = size[axis]
        distance, normal = from_box(p, half)
    elif kind == CAPSULE:
        q = p
        q[1] = p[1] - wp.clamp(p[1], -size[0], size[0])
        distance, normal = from_point(q, size[1])
    elif kind == TURNED:
        distance, normal = from_turned(p, size[0], size[1], size[2], size[3], size[4])
    else:
        distance, normal = from_grid(p, size[0], layout, values)
    return distance, normal
