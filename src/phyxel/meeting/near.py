# mypy: disable-error-code="valid-type,no-untyped-def,index,attr-defined"
"""Which parts of surfaces may meet within a step: boxes around their ways in a tree, then distances."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import warp as wp
from numpy.typing import NDArray

from phyxel import device as dev
from phyxel.device import float64s, int32s, vec3ds, vec3s
from phyxel.meeting.apart import EDGE, POINT, far_side, int64s, summed, vec2is, vec3is, vec4is, weights_of
from phyxel.meeting.skin import Skins

wp.set_module_options(dev.KERNEL_OPTIONS)

Floats = NDArray[np.float64]

BOX, DISTANCE, LISTED = 0.02, 0.1, 0.5
"""Of a box, the distance of two parts, and what a box overlaps: what it takes, in phyxels of a force pass."""
WIDER = 1.0e-6
"""Of the size of everything that moves: rounding of boxes in single precision."""


@wp.struct
class Ways:
    """Where points go within a step, from the same place in single precision as boxes are."""

    x0: vec3ds
    x1: vec3ds
    radius: float64s
    """half the thickness, and how much farther they may get"""
    own: int
    """points from here on are of obstacles"""
    wide: wp.float64


@wp.func
def with_point(w: Ways, i: int, lower: wp.vec3, upper: wp.vec3):
    """A box that has the way of a point, too."""
    r = w.radius[i] + w.wide
    margin = wp.vec3d(r, r, r)
    least = wp.min(w.x0[i], w.x1[i]) - margin
    most = wp.max(w.x0[i], w.x1[i]) + margin
    return wp.min(lower, wp.vec3(least)), wp.max(upper, wp.vec3(most))


@wp.kernel
def box_triangles(first: int, w: Ways, triangles: vec3is, lower: vec3s, upper: vec3s):
    """Around the ways of triangles (physics 15.16)."""
    k = first + wp.tid()
    at = triangles[k]
    low = wp.vec3(wp.inf, wp.inf, wp.inf)
    high = -low
    for corner in range(3):
        low, high = with_point(w, at[corner], low, high)
    lower[k] = low
    upper[k] = high


@wp.kernel
def box_edges(first: int, w: Ways, edges: vec2is, lower: vec3s, upper: vec3s):
    """Around the ways of edges (physics 15.16)."""
    k = first + wp.tid()
    at = edges[k]
    low = wp.vec3(wp.inf, wp.inf, wp.inf)
    high = -low
    for end in range(2):
        low, high = with_point(w, at[end], low, high)
    lower[k] = low
    upper[k] = high


@wp.kernel
def list_points(
    first: int, tree: wp.uint64, w: Ways, triangles: vec3is,
    fill: int, start: int32s, count: int32s, index: vec4is, key: int64s,
):  # fmt: skip
    """Triangles whose boxes the way of each point comes into: how many, or, with `fill`, which."""
    i = first + wp.tid()
    low, high = with_point(w, i, wp.vec3(wp.inf, wp.inf, wp.inf), -wp.vec3(wp.inf, wp.inf, wp.inf))
    query = wp.bvh_query_aabb(tree, low, high)
    other = int(0)
    found = int(0)
    while wp.bvh_query_next(query, other):
        at = triangles[other]
        if (i < w.own or at[0] < w.own) and i != at[0] and i != at[1] and i != at[2]:
            if fill == 1:
                index[start[i] + found] = wp.vec4i(i, at[0], at[1], at[2])
                key[start[i] + found] = wp.int64(i) * wp.int64(triangles.shape[0]) + wp.int64(other)
            found += 1
    count[i] = found


@wp.kernel
def list_edges(
    first: int, tree: wp.uint64, w: Ways, edges: vec2is, lower: vec3s, upper: vec3s,
    fill: int, start: int32s, count: int32s, index: vec4is, key: int64s,
):  # fmt: skip
    """Later edges whose boxes that of each edge overlaps: how many, or, with `fill`, which."""
    k = first + wp.tid()
    a = edges[k]
    query = wp.bvh_query_aabb(tree, lower[k], upper[k])
    other = int(0)
    found = int(0)
    while wp.bvh_query_next(query, other):
        b = edges[other]
        apart = a[0] != b[0] and a[0] != b[1] and a[1] != b[0] and a[1] != b[1]
        if other > k and apart and (a[0] < w.own or b[0] < w.own):
            if fill == 1:
                index[start[k] + found] = wp.vec4i(a[0], a[1], b[0], b[1])
                key[start[k] + found] = -wp.int64(1) - wp.int64(k) * wp.int64(edges.shape[0]) - wp.int64(other)
            found += 1
    count[k] = found


@wp.func
def between_boxes(kind: int, a: wp.vec3d, b: wp.vec3d, c: wp.vec3d, d: wp.vec3d):
    """Distance of the boxes around the two sides of a stencil: the sides are no nearer."""
    low, high = wp.min(c, d), wp.max(c, d)
    first, last = a, a
    if kind == POINT:
        low, high = wp.min(low, b), wp.max(high, b)
    else:
        first, last = wp.min(a, b), wp.max(a, b)
    return wp.length(wp.max(wp.max(low - last, first - high), wp.vec3d()))


@wp.kernel
def find_near(first: int, key: int64s, index: vec4is, w: Ways, near: int32s):
    """Whether the parts of a stencil may come to touch: no nearer at x0 than they move towards each other."""
    k = first + wp.tid()
    at = index[k]
    kind = int(EDGE)
    if key[k] >= wp.int64(0):
        kind = POINT
    a, b, c, d = w.x0[at[0]], w.x0[at[1]], w.x0[at[2]], w.x0[at[3]]
    va, vb, vc, vd = w.x1[at[0]] - a, w.x1[at[1]] - b, w.x1[at[2]] - c, w.x1[at[3]] - d
    mean = (va + vb + vc + vd) * wp.float64(0.25)
    one = wp.length(va - mean)
    two = wp.max(wp.length(vc - mean), wp.length(vd - mean))
    if kind == POINT:
        two = wp.max(two, wp.length(vb - mean))
    else:
        one = wp.max(one, wp.length(vb - mean))
    reach = w.radius[at[0]] + w.radius[at[far_side(kind)]] + one + two
    near[k] = 0
    if between_boxes(kind, a, b, c, d) > reach:
        return
    if wp.length(summed(weights_of(kind, a, b, c, d), a, b, c, d)) <= reach:
        near[k] = 1


@dataclass(frozen=True)
class StencilList:
    """Stencils; in the order of their keys but for mere candidates."""

    key: NDArray[np.int64]
    """0 and up of points and triangles, below of two edges; the same in every step, shape (k,)"""
    index: NDArray[np.int32]
    """shape (k, 4)"""

    def __len__(self) -> int:
        return len(self.key)

    @property
    def kind(self) -> NDArray[np.int32]:
        """shape (k,)"""
        return np.where(self.key >= 0, POINT, EDGE).astype(np.int32)

    @staticmethod
    def none() -> StencilList:
        return StencilList(np.zeros(0, np.int64), np.zeros((0, 4), np.int32))


class Near:
    """Finds stencils whose parts may meet."""

    def __init__(self, skins: Skins, device: wp.Device) -> None:
        self._skins, self._device = skins, device
        self._triangles = wp.array(skins.triangles, dtype=wp.vec3i, device=device)
        self._edges = wp.array(skins.edges, dtype=wp.vec2i, device=device)

    def pairs(self, x0: wp.array, x1: wp.array, farther: float) -> StencilList:
        """All that may come to touch on ways from x0 to x1, (n,) each, or up to `farther` [m] beyond; in order, however
        the tree was made."""
        return self.closer(self.candidates(x0, x1, farther), x0, x1, farther)

    def candidates(self, x0: wp.array, x1: wp.array, farther: float) -> StencilList:
        """Those and more, in no order: all with boxes that overlap."""
        ways, skins = self._ways(x0, x1, farther), self._skins
        found = [self._between(ways), self._points(ways)]
        key, index = (np.concatenate([getattr(one, name) for one in found]) for name in ("key", "index"))
        one, other = skins.alone[index[:, 0]], skins.alone[index[:, 3]]
        meet = (one != other) | (one < 0)
        return StencilList(key[meet], index[meet])

    def closer(self, listed: StencilList, x0: wp.array, x1: wp.array, farther: float) -> StencilList:
        """What `pairs` would find, among candidates that have it."""
        near = wp.zeros(len(listed), dtype=wp.int32, device=self._device)
        key = wp.array(listed.key, dtype=wp.int64, device=self._device)
        index = wp.array(listed.index, dtype=wp.vec4i, device=self._device)
        found = dev.Launch(find_near, len(listed), [key, index, self._ways(x0, x1, farther), near], DISTANCE)
        dev.run(found, self._device)
        kept = np.flatnonzero(near.numpy())
        kept = kept[np.argsort(listed.key[kept])]
        return StencilList(listed.key[kept], listed.index[kept])

    def _ways(self, x0: wp.array, x1: wp.array, farther: float) -> Any:
        ways: Any = Ways()
        ways.x0, ways.x1, ways.own = x0, x1, self._skins.own
        ways.radius = wp.array(self._skins.radius + farther, dtype=wp.float64, device=self._device)
        ways.wide = WIDER * max(float(np.abs(one.numpy()).max(initial=0.0)) for one in (x0, x1))
        return ways

    def _boxes(self, kernel: wp.Kernel, ways: Any, parts: wp.array) -> tuple[wp.array, wp.array]:
        lower, upper = (wp.zeros(len(parts), dtype=wp.vec3, device=self._device) for _ in range(2))
        dev.run(dev.Launch(kernel, len(parts), [ways, parts, lower, upper], BOX), self._device)
        return lower, upper

    def _points(self, ways: Any) -> StencilList:
        lower, upper = self._boxes(box_triangles, ways, self._triangles)
        if not len(lower):
            return StencilList.none()
        tree = wp.Bvh(lower, upper)
        return self._listed(list_points, len(ways.x0), [tree.id, ways, self._triangles])

    def _between(self, ways: Any) -> StencilList:
        lower, upper = self._boxes(box_edges, ways, self._edges)
        if not len(lower):
            return StencilList.none()
        tree = wp.Bvh(lower, upper)
        return self._listed(list_edges, len(self._edges), [tree.id, ways, self._edges, lower, upper])

    def _listed(self, kernel: wp.Kernel, count: int, inputs: list[Any]) -> StencilList:
        """Candidates of one kind."""
        numbers = wp.zeros(count, dtype=wp.int32, device=self._device)

        def room(size: int) -> tuple[wp.array, wp.array]:
            return tuple(wp.zeros(size, dtype=dtype, device=self._device) for dtype in (wp.vec4i, wp.int64))

        dev.run(dev.Launch(kernel, count, [*inputs, 0, numbers, numbers, *room(0)], LISTED), self._device)
        many = numbers.numpy()
        starts = wp.array((np.cumsum(many) - many).astype(np.int32), dtype=wp.int32, device=self._device)
        index, key = room(int(many.sum()))
        dev.run(dev.Launch(kernel, count, [*inputs, 1, starts, numbers, index, key], LISTED), self._device)
        return StencilList(key.numpy(), index.numpy())
