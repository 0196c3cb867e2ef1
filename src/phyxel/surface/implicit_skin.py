# mypy: disable-error-code="valid-type,no-untyped-def,attr-defined"
"""The implicit skin of phyxels, L_I: where Blinn's field is S (M04 §5.2.1, eq. 28, physics 8.3).

    F(x) = Σ_i f_i(x),   f_i(x) = b e^(−a_i r²),   a_i = −B/R_i²,   b = S e^(−B),   B < 0

so that f_i = S at r = R_i: a phyxel alone has a skin of that radius. Here S = 1. All lengths in node spacings.

Near the wall of a mold S falls to a tenth: the skin reaches half a spacing farther there, and what fills a mold meets
its wall along a line, without a gap. Divided by that S, the field is 1 on the skin everywhere.
"""

from __future__ import annotations

import math
from functools import cache
from typing import Any

import numpy as np
import warp as wp
from numpy.typing import NDArray

from phyxel import device as dev
from phyxel.contact.table import table_type
from phyxel.device import as_vectors
from phyxel.mls.neighbours import grid_for
from phyxel.surface.discs import Discs, Floats
from phyxel.surface.walls import NEARS, Walls, wall_at

wp.set_module_options(dev.KERNEL_OPTIONS)

BLOBBINESS = -0.7
"""B: nearer to zero is smoother. Here the skin over a flat layer of phyxels waves by 3 % of their spacing."""
RADIUS = 0.78
"""R over the radius of a ball with the phyxel's volume, so that F = S on the true surface of a half-space whose
phyxels are the middles of cells: Σ over a plane of e^(−a r²) is π/a, and b π/a Σ_k e^(−a (k + 1/2)²) = S."""
FAINT = 1e-5
"""f_i over S at which a phyxel is no longer felt."""
CLOSE = wp.constant(1.0e-4)
"""|F − S| over S with which a projected point is on the skin."""
LONGEST = wp.constant(0.35)
"""Longest step of a projection, in spacings: F is not straight any farther."""
MOST_STEPS = wp.constant(40)
LOST = wp.constant(-1)
PER_RADIUS = wp.constant(-BLOBBINESS)
FLAT = wp.constant(1.0e-3)
"""|∇F| below which there is no way to go: in the middle of a body, or far from all."""


WET = wp.constant(0.1)
"""S at the wall of a mold; where one no longer is near, it is 1."""
Colliders = table_type(wp.float32)


@wp.struct
class Blobs:
    """Phyxels as the kernels want them."""

    grid: wp.uint64
    reach: float
    at: wp.array(dtype=wp.vec3)
    per_square: wp.array(dtype=float)
    """−B/R_i²"""
    top: float
    """b"""
    owner: wp.array(dtype=wp.int32)
    """body"""
    walls: Colliders
    body: int
    """as which the walls are placed"""


@wp.func
def level_at(blobs: Blobs, x: wp.vec3):
    """S and ∇S at a place (physics 8.3)."""
    depth, inward = wall_at(x, blobs.walls, blobs.body)
    t = wp.clamp(-depth / NEARS, 0.0, 1.0)
    level = WET + (1.0 - WET) * t * t * (3.0 - 2.0 * t)
    return level, (-(1.0 - WET) * 6.0 * t * (1.0 - t) / NEARS) * inward


@wp.func
def field_at(blobs: Blobs, x: wp.vec3):
    """F/S and its gradient at a place."""
    F, slope = blinn_at(blobs, x)
    S, rise = level_at(blobs, x)
    return F / S, slope / S - (F / (S * S)) * rise


@wp.func
def blinn_at(blobs: Blobs, x: wp.vec3):
    """F and ∇F at a place (M04 eq. 28, physics 1.6)."""
    value = float(0.0)
    slope = wp.vec3()
    for i in wp.hash_grid_query(blobs.grid, x, blobs.reach):
        away = x - blobs.at[i]
        rr = wp.length_sq(away)
        if rr < blobs.reach * blobs.reach:
            a = blobs.per_square[i]
            f = blobs.top * wp.exp(-a * rr)
            value += f
            slope -= (2.0 * a * f) * away
    return value, slope


@wp.func
def nearest_blob(blobs: Blobs, x: wp.vec3):
    """The middle of the phyxel nearest to a place, and whether there is one in reach."""
    found = int(-1)
    least = blobs.reach * blobs.reach
    for i in wp.hash_grid_query(blobs.grid, x, blobs.reach):
        rr = wp.length_sq(x - blobs.at[i])
        if rr < least:
            least = rr
            found = i
    return blobs.at[wp.max(found, 0)], found >= 0


@wp.func
def onto_skin(blobs: Blobs, x: wp.vec3, farthest: float):
    """The place on the skin that Newton's steps along ∇F lead to from x, its outward normal, and whether there is one
    within `farthest`. As soon as one place inside and one outside are known, steps beyond the farther of them are
    replaced by the middle of both: it never runs off. From outside there always is a place inside, the middle of the
    nearest phyxel."""
    y = x
    inside = x
    outside = x
    has_inside = int(0)
    has_outside = int(0)
    found = int(0)
    normal = wp.vec3()
    step = int(0)
    while step < MOST_STEPS:
        value, slope = field_at(blobs, y)
        steep = wp.length(slope)
        if steep > 0.0:
            normal = -slope / steep
        if wp.abs(value - 1.0) < CLOSE:
            found = 1
            break
        if value > 1.0:
            inside = y
            has_inside = 1
        else:
            outside = y
            has_outside = 1
        if has_inside == 0 and (steep < FLAT or step >= 8):
            middle, near = nearest_blob(blobs, y)
            if near:
                inside = middle
                has_inside = 1
        bracketed = has_inside == 1 and has_outside == 1
        if steep < FLAT and not bracketed:
            break
        way = (value - 1.0) / wp.max(steep, FLAT)
        z = y + wp.clamp(way, -LONGEST, LONGEST) * normal
        if bracketed and wp.length(z - y) >= wp.length(inside - outside):
            z = 0.5 * (inside + outside)
        y = z
        if wp.length(y - x) > farthest:
            break
        step += 1
    return y, normal, found


@wp.kernel
def measure_field(
    first: int,
    blobs: Blobs,
    points: wp.array(dtype=wp.vec3),
    value: wp.array(dtype=float),
    slope: wp.array(dtype=wp.vec3),
):
    """F and ∇F at places."""
    s = first + wp.tid()
    f, g = blinn_at(blobs, points[s])
    value[s] = f
    slope[s] = g


@wp.kernel
def project_points(
    first: int,
    blobs: Blobs,
    farthest: float,
    points: wp.array(dtype=wp.vec3),
    onto: wp.array(dtype=wp.vec3),
    normal: wp.array(dtype=wp.vec3),
    found: wp.array(dtype=wp.int32),
):
    """Bring points onto the skin; those that do not get there keep their place."""
    s = first + wp.tid()
    y, n, there = onto_skin(blobs, points[s], farthest)
    onto[s] = wp.where(there == 1, y, points[s])
    normal[s] = n
    found[s] = there


@wp.kernel
def hold_on_skin(
    first: int,
    blobs: Blobs,
    farthest: float,
    per_unit: float,
    unit: float,
    held: wp.array(dtype=wp.int32),
    limit: wp.array(dtype=float),
    position: wp.array(dtype=wp.vec3),
    axis_a: wp.array(dtype=wp.vec3),
    axis_b: wp.array(dtype=wp.vec3),
    normal: wp.array(dtype=wp.vec3),
):
    """Bring surfels [m] that belong on the skin back onto it, as round as they are: they were carried a little way.
    Some may have got into a neck that is closing, from where no way leads to it. No half axis is longer than its limit
    [spacings]: what a lone phyxel does to the discs around it is wild."""
    s = first + wp.tid()
    longest = unit * limit[s]
    axis_a[s] = wp.min(1.0, longest / wp.length(axis_a[s])) * axis_a[s]
    axis_b[s] = wp.min(1.0, longest / wp.length(axis_b[s])) * axis_b[s]
    if held[s] == 0:
        return
    y, n, found = onto_skin(blobs, position[s] * per_unit, farthest)
    if found == 0:
        held[s] = LOST
        return
    position[s] = unit * y
    normal[s] = n
    size = wp.sqrt(wp.length(wp.cross(axis_a[s], axis_b[s])))
    a = wp.normalize(axis_a[s] - wp.dot(axis_a[s], n) * n)
    axis_a[s] = size * a
    axis_b[s] = size * wp.cross(n, a)


@wp.kernel
def find_owners(first: int, blobs: Blobs, points: wp.array(dtype=wp.vec3), body: int, mine: wp.array(dtype=wp.int32)):
    """Whether a body has the larger part of the field at places."""
    s = first + wp.tid()
    x = points[s]
    balance = float(0.0)
    for i in wp.hash_grid_query(blobs.grid, x, blobs.reach):
        rr = wp.length_sq(x - blobs.at[i])
        if rr < blobs.reach * blobs.reach:
            f = wp.exp(-blobs.per_square[i] * rr)
            balance += wp.where(blobs.owner[i] == body, f, -f)
    mine[s] = wp.where(balance >= 0.0, 1, 0)


@wp.kernel
def find_seeds(
    first: int,
    blobs: Blobs,
    nodes: wp.array(dtype=wp.int32),
    ways: wp.array(dtype=wp.vec3),
    onto: wp.array(dtype=wp.vec3),
    normal: wp.array(dtype=wp.vec3),
    found: wp.array(dtype=wp.int32),
):
    """Where straight ways from some phyxels first come out of the skin, if within twice their radius."""
    t = first + wp.tid()
    i = nodes[t // ways.shape[0]]
    way = ways[t % ways.shape[0]]
    found[t] = 0
    radius = wp.sqrt(PER_RADIUS / blobs.per_square[i])
    near = float(0.0)
    far = radius
    value, _slope = field_at(blobs, blobs.at[i] + far * way)
    while value > 1.0 and far < 2.0 * radius:
        near = far
        far += 0.25 * radius
        value, _slope = field_at(blobs, blobs.at[i] + far * way)
    if value > 1.0:
        return
    y, n, there = onto_skin(blobs, blobs.at[i] + 0.5 * (near + far) * way, radius)
    onto[t] = y
    normal[t] = n
    found[t] = there


class ImplicitSkin:
    """The skin of phyxels with rest volumes (n,), in cubed spacings; `owner` (n,) says of which body each is."""

    def __init__(self, volumes: Floats, owner: NDArray[np.integer], device: wp.Device) -> None:
        self._device = device
        self.owner = np.asarray(owner)
        self.radii = RADIUS * np.cbrt(3 * np.asarray(volumes, np.float64) / (4 * np.pi))
        """R_i, shape (n,)"""
        self._grid = grid_for(len(volumes), device)
        blobs = Blobs()
        blobs.reach = float(self.radii.max()) * math.sqrt(1 + math.log(1 / FAINT) / -BLOBBINESS)
        blobs.top = math.exp(-BLOBBINESS)
        blobs.per_square = wp.array((-BLOBBINESS / self.radii**2).astype(np.float32), dtype=float, device=device)
        blobs.owner = wp.array(np.asarray(owner, np.int32), dtype=wp.int32, device=device)
        blobs.at = wp.zeros(len(volumes), dtype=wp.vec3, device=device)
        blobs.grid = self._grid.id
        blobs.walls = Colliders()
        self.blobs: Any = blobs

    @property
    def farthest(self) -> float:
        """How far a point is looked for a place on the skin: twice the largest radius."""
        return 2 * float(self.radii.max())

    def place(self, positions: Floats, walls: Walls | None = None) -> None:
        """Put the phyxels at (n, 3) places, between the colliders as a body of theirs sees them."""
        self.blobs.walls, self.blobs.body = (Colliders(), 0) if walls is None else (walls.table, walls.body)
        self.blobs.at.assign(np.asarray(positions, np.float32))
        self._grid.build(self.blobs.at, self.blobs.reach)
        self.blobs.grid = self._grid.id

    def measure(self, points: Floats) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """F (m,) and ∇F (m, 3) at (m, 3) places."""
        x = as_vectors(points, self._device)
        value, slope = wp.empty(len(x), dtype=float, device=self._device), wp.empty_like(x)
        dev.launch(measure_field, len(x), [self.blobs, x, value, slope], self._device)
        return value.numpy(), slope.numpy()

    def project(self, points: Floats) -> tuple[NDArray[np.float32], NDArray[np.float32], NDArray[np.bool_]]:
        """Places on the skin (m, 3) that (m, 3) points are led to, outward normals (m, 3), and which got there (m,)."""
        x = as_vectors(points, self._device)
        onto, normal = wp.empty_like(x), wp.empty_like(x)
        found = wp.empty(len(x), dtype=wp.int32, device=self._device)
        dev.launch(project_points, len(x), [self.blobs, self.farthest, x, onto, normal, found], self._device)
        return onto.numpy(), normal.numpy(), found.numpy() == 1

    def hold(self, surfels: Discs, held: wp.array, limit: wp.array, unit: float) -> None:
        """Bring those of carried surfels that are `held` (m,) back onto the skin, or mark them LOST there; `unit` [m]
        is the node spacing."""
        arrays = [held, limit, surfels.position, surfels.axis_a, surfels.axis_b, surfels.normal]
        inputs = [self.blobs, self.farthest, 1 / unit, unit, *arrays]
        dev.launch(hold_on_skin, len(surfels), inputs, self._device)

    def owners(self, points: Floats, body: int) -> NDArray[np.bool_]:
        """Whether a body has the larger part of the field at (m, 3) places, (m,)."""
        if (self.owner == body).all():
            return np.ones(len(points), bool)
        x = as_vectors(points, self._device)
        mine = wp.empty(len(x), dtype=wp.int32, device=self._device)
        dev.launch(find_owners, len(x), [self.blobs, x, body, mine], self._device)
        return mine.numpy() == 1

    def seeds(
        self, nodes: NDArray[np.integer], ways: int
    ) -> tuple[NDArray[np.float32], NDArray[np.float32], NDArray[np.int64]]:
        """Where so many ways from some phyxels come out of the skin, (m, 3), outward normals, and from which each."""
        m = len(nodes) * ways
        onto, normal = (wp.empty(m, dtype=wp.vec3, device=self._device) for _ in range(2))
        found = wp.empty(m, dtype=wp.int32, device=self._device)
        chosen = wp.array(nodes.astype(np.int32), dtype=wp.int32, device=self._device)
        inputs = [self.blobs, chosen, as_vectors(even_directions(ways), self._device), onto, normal, found]
        dev.launch(find_seeds, m, inputs, self._device)
        there = found.numpy() == 1
        return onto.numpy()[there], normal.numpy()[there], np.repeat(nodes, ways)[there]


@cache
def even_directions(count: int) -> NDArray[np.float64]:
    """Unit vectors spread evenly over the sphere, along a spiral whose turns keep the golden ratio, (count, 3)."""
    y = 1 - (2 * np.arange(count) + 1) / count
    angle = np.pi * (3 - math.sqrt(5)) * np.arange(count)
    radius = np.sqrt(1 - y * y)
    return np.stack([radius * np.cos(angle), y, radius * np.sin(angle)], axis=1)
