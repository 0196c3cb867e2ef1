# mypy: disable-error-code="valid-type,no-untyped-def,index,attr-defined"
"""How far two parts of surfaces are apart: a point and a triangle, or two edges, at rest and in flight.

Either is a *stencil* of four points with weights c, Σc = 0, that sum up to the shortest way r = Σ c_a x_a between them.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import warp as wp
from numpy.typing import NDArray

from phyxel import device as dev
from phyxel.device import float64s, int32s, vec3ds, vec4ds

wp.set_module_options(dev.KERNEL_OPTIONS)

POINT, EDGE = 0, 1
"""Kinds of stencils: a point and the three corners of a triangle; two ends of an edge and two of another."""
LEFT = wp.constant(wp.float64(0.1))
"""Share of the distance, or of the thickness if that is less, that flights must leave of it at all times."""
AHEAD = wp.constant(wp.float64(0.9))
"""Share of the time in which parts could meet that a flight is followed by at once."""
LOOKS = wp.constant(10000)
"""Most looks at a flight: it is then taken for a hit."""
RECOVERED = wp.constant(wp.float64(0.8))
"""Share of a depth at the start of a step that may be left at its end: what comes out at once would be thrown."""

vec2is, vec3is, vec4is, int64s = (wp.array(dtype=kind) for kind in (wp.vec2i, wp.vec3i, wp.vec4i, wp.int64))


@wp.func
def from_triangle(p: wp.vec3d, a: wp.vec3d, b: wp.vec3d, c: wp.vec3d) -> wp.vec4d:
    """Weights of a point and the nearest place of a triangle (Ericson 2005, 5.1.5)."""
    none = wp.float64(0.0)
    one = wp.float64(1.0)
    ab = b - a
    ac = c - a
    d1 = wp.dot(ab, p - a)
    d2 = wp.dot(ac, p - a)
    if d1 <= none and d2 <= none:
        return wp.vec4d(one, -one, none, none)
    d3 = wp.dot(ab, p - b)
    d4 = wp.dot(ac, p - b)
    if d3 >= none and d4 <= d3:
        return wp.vec4d(one, none, -one, none)
    vc = d1 * d4 - d3 * d2
    if vc <= none and d1 >= none and d3 <= none:
        s = d1 / (d1 - d3)
        return wp.vec4d(one, s - one, -s, none)
    d5 = wp.dot(ab, p - c)
    d6 = wp.dot(ac, p - c)
    if d6 >= none and d5 <= d6:
        return wp.vec4d(one, none, none, -one)
    vb = d5 * d2 - d1 * d6
    if vb <= none and d2 >= none and d6 <= none:
        s = d2 / (d2 - d6)
        return wp.vec4d(one, s - one, none, -s)
    va = d3 * d6 - d5 * d4
    if va <= none and d4 >= d3 and d5 >= d6:
        s = (d4 - d3) / ((d4 - d3) + (d5 - d6))
        return wp.vec4d(one, none, s - one, -s)
    whole = va + vb + vc
    return wp.vec4d(one, -va / whole, -vb / whole, -vc / whole)


@wp.func
def between_edges(a: wp.vec3d, b: wp.vec3d, c: wp.vec3d, d: wp.vec3d) -> wp.vec4d:
    """Weights of the nearest places of the edges ab and cd (Ericson 2005, 5.1.9)."""
    none = wp.float64(0.0)
    one = wp.float64(1.0)
    tiny = wp.float64(1.0e-300)
    u = b - a
    v = d - c
    w = a - c
    uu = wp.max(wp.dot(u, u), tiny)
    vv = wp.max(wp.dot(v, v), tiny)
    uv = wp.dot(u, v)
    uw = wp.dot(u, w)
    vw = wp.dot(v, w)
    across = uu * vv - uv * uv
    s = wp.float64(0.5)
    if across > wp.float64(1.0e-12) * uu * vv:  # else they are parallel
        s = wp.clamp((uv * vw - uw * vv) / across, none, one)
    t = (uv * s + vw) / vv
    if t < none:
        t = none
        s = wp.clamp(-uw / uu, none, one)
    elif t > one:
        t = one
        s = wp.clamp((uv - uw) / uu, none, one)
    return wp.vec4d(one - s, s, t - one, -t)


@wp.func
def weights_of(kind: int, a: wp.vec3d, b: wp.vec3d, c: wp.vec3d, d: wp.vec3d) -> wp.vec4d:
    """c of a stencil."""
    if kind == POINT:
        return from_triangle(a, b, c, d)
    return between_edges(a, b, c, d)


@wp.func
def summed(w: wp.vec4d, a: wp.vec3d, b: wp.vec3d, c: wp.vec3d, d: wp.vec3d) -> wp.vec3d:
    """Σ c_a x_a."""
    return w[0] * a + w[1] * b + w[2] * c + w[3] * d


@wp.func
def far_side(kind: int) -> int:
    """The first place in a stencil of the other side."""
    if kind == POINT:
        return 1
    return 2


@wp.func
def first_hit(
    kind: int,
    a: wp.vec3d, b: wp.vec3d, c: wp.vec3d, d: wp.vec3d,
    va: wp.vec3d, vb: wp.vec3d, vc: wp.vec3d, vd: wp.vec3d,
    least: wp.float64,
) -> wp.float64:  # fmt: skip
    """When, within 0..1, the parts of a stencil that flies by (va, ...) come nearer than `least`; 2 if never.

    By additive conservative advancement (Li, Kaufman and Jiang 2021): the distance shrinks by no more than the parts
    move towards each other, so that no flight is too fast; the time is never too late."""
    mean = (va + vb + vc + vd) * wp.float64(0.25)
    fa = wp.length(va - mean)
    fb = wp.length(vb - mean)
    fc = wp.length(vc - mean)
    fd = wp.length(vd - mean)
    fastest = fa + wp.max(fb, wp.max(fc, fd))
    if kind == EDGE:
        fastest = wp.max(fa, fb) + wp.max(fc, fd)
    none = wp.float64(2.0)
    w = weights_of(kind, a, b, c, d)
    distance = wp.length(summed(w, a, b, c, d))
    if fastest <= distance - least:
        return none
    time = wp.float64(0.0)
    for _ in range(LOOKS):
        time += AHEAD * (distance - least) / fastest
        if time > wp.float64(1.0):
            return none
        pa = a + time * va
        pb = b + time * vb
        pc = c + time * vc
        pd = d + time * vd
        w = weights_of(kind, pa, pb, pc, pd)
        distance = wp.length(summed(w, pa, pb, pc, pd))
        if distance < wp.float64(1.1) * least:
            return time
    return time


@wp.struct
class Passing:
    """How stencils pass each other; each array has shape (k,)."""

    kind: int32s
    index: vec4is
    weight: vec4ds
    """c where they meet: at the first hit, else at the end of the step"""
    normal: vec3ds
    """from the far side to the near one there"""
    gap: float64s
    """distance at the end, along that normal and with these weights, less than it is to be at least [m]: the thickness,
    or less where the step began with less"""
    time: float64s
    """of the first hit, 0..1; 2: there is none"""


@wp.kernel
def find_gaps(first: int, s: Passing, radius: float64s, x0: vec3ds, x1: vec3ds):
    """How the parts of each stencil pass each other on straight ways from x0 to x1 (physics 15.16)."""
    k = first + wp.tid()
    kind = s.kind[k]
    at = s.index[k]
    a, b, c, d = x0[at[0]], x0[at[1]], x0[at[2]], x0[at[3]]
    va, vb, vc, vd = x1[at[0]] - a, x1[at[1]] - b, x1[at[2]] - c, x1[at[3]] - d
    thick = radius[at[0]] + radius[at[far_side(kind)]]
    w = weights_of(kind, a, b, c, d)
    before = wp.length(summed(w, a, b, c, d))
    time = first_hit(kind, a, b, c, d, va, vb, vc, vd, LEFT * wp.min(before, thick))
    seen = wp.min(time, wp.float64(1.0))
    w = weights_of(kind, a + seen * va, b + seen * vb, c + seen * vc, d + seen * vd)
    r = summed(w, a + seen * va, b + seen * vb, c + seen * vc, d + seen * vd)
    n = r / wp.max(wp.length(r), wp.float64(1.0e-300))
    s.time[k] = time
    s.weight[k] = w
    s.normal[k] = n
    goal = thick + wp.min(wp.float64(0.0), RECOVERED * (before - thick))
    s.gap[k] = wp.dot(n, summed(w, a + va, b + vb, c + vc, d + vd)) - goal


def passing_of(kind: NDArray[np.int32], index: NDArray[np.int32], device: wp.Device) -> Any:
    """Room for how stencils of such kinds (k,) and points (k, 4) pass."""
    s: Any = Passing()
    s.kind = wp.array(kind, dtype=wp.int32, device=device)
    s.index = wp.array(index, dtype=wp.vec4i, device=device)
    s.weight = wp.zeros(len(kind), dtype=wp.vec4d, device=device)
    s.normal = wp.zeros(len(kind), dtype=wp.vec3d, device=device)
    s.gap, s.time = (wp.zeros(len(kind), dtype=wp.float64, device=device) for _ in range(2))
    return s
