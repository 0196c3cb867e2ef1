"""Signed distance functions: primitives, smooth unions and cuts, each with its exact gradient.

A smooth union shortens the gradient where it fills a crease. Every part therefore carries value and gradient together
(a `Jet`), so that `distance_of` can divide one by the length of the other and give metres again beside the surface.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from phyxel.points.cloud import Floats

Vector = tuple[float, float, float]

TINY = 1e-30
SHORTEST_GRADIENT = 0.2
"""What the length of a gradient is at least taken to be."""
RESCALED_DEPTH = 0.01
"""Distance from the surface [m] over which the division by that length fades out: farther away gradients may vanish."""
CHUNK = 8192
"""Points evaluated at once, so that intermediate arrays stay in the processor's cache."""


class Jet(NamedTuple):
    """A scalar field and its gradient at N points."""

    value: Floats
    """[m], negative inside, shape (N,)"""
    gradient: Floats
    """shape (3, N)"""


Field = Callable[[Floats], Jet]
"""(3, N) positions [m] -> value and gradient there."""


def distance_of(field: Field) -> Callable[[Floats], Floats]:
    """The distance (N, 3) -> (N,) [m] of a blended field: same zero set, gradient of length 1 on it."""

    def distance(positions: Floats) -> Floats:
        x = np.asarray(positions, np.float64)
        out = np.empty(len(x))
        for first in range(0, len(x), CHUNK):
            part = slice(first, first + CHUNK)
            value, gradient = field(np.ascontiguousarray(x[part].T))
            too_short = 1 - np.maximum(length(gradient), SHORTEST_GRADIENT)
            out[part] = value / (1 - too_short * np.exp(-((value / RESCALED_DEPTH) ** 2)))
        return out

    return distance


def length(vectors: Floats) -> Floats:
    """Euclidean length of the columns of a (3, N) array."""
    return np.sqrt(np.einsum("ij,ij->j", vectors, vectors))


def ball(p: Floats, center: Vector, radius: float) -> Jet:
    """A ball; exact."""
    away = p - column(center)
    r = length(away)
    return Jet(r - radius, away / (r + TINY))


def ellipsoid(p: Floats, center: Vector, radii: Vector, turn: Floats | None = None) -> Jet:
    """An ellipsoid, k0 (k0 - 1) / k1 with k0 = |q / r| and k1 = |q / r²|: first order exact at its surface.

    `turn` is a rotation matrix whose columns are the directions of the three axes.
    """
    away = p - column(center)
    if turn is not None:
        away = turn.T @ away
    inverse = 1 / column(radii)
    scaled = away * inverse
    twice = scaled * inverse
    k0 = length(scaled) + TINY
    k1 = length(twice) + TINY
    value = k0 * (k0 - 1) / k1
    gradient = twice * ((2 - 1 / k0) / k1) - twice * inverse**2 * (value / k1**2)
    return Jet(value, gradient if turn is None else turn @ gradient)


def round_cone(p: Floats, start: Vector, end: Vector, start_radius: float, end_radius: float) -> Jet:
    """The hull of two balls, neither inside the other; exact. With equal radii, a capsule."""
    along = np.subtract(end, start)
    reach = float(np.linalg.norm(along))
    axis = along / reach
    away = p - column(start)
    height = axis @ away
    aside = np.sqrt(np.maximum(np.einsum("ij,ij->j", away, away) - height**2, 0))
    # The slanted side touches, at each point, one ball of the row between start and end: measure from that one.
    taper = (start_radius - end_radius) / reach
    touching = np.clip(height - aside * (taper / np.sqrt(1 - taper**2)), 0, reach)
    away -= axis[:, None] * touching
    r = length(away)
    return Jet(r - start_radius + taper * touching, away / (r + TINY))


def half_space(p: Floats, point: Vector, outward: Vector) -> Jet:
    """Everything behind a plane through `point`; exact."""
    normal = np.divide(outward, np.linalg.norm(outward))
    return Jet(normal @ (p - column(point)), np.broadcast_to(normal[:, None], p.shape))


def blend(first: Jet, second: Jet, radius: float) -> Jet:
    """Smooth union: the quadratic polynomial minimum, which fills creases over about `radius` metres."""
    overlap = np.maximum(radius - np.abs(first.value - second.value), 0)
    value = np.minimum(first.value, second.value) - overlap**2 / (4 * radius)
    farther = overlap / (2 * radius)
    of_second = np.where(second.value < first.value, 1 - farther, farther)
    return Jet(value, first.gradient + (second.gradient - first.gradient) * of_second)


def union(parts: list[Jet], radius: float) -> Jet:
    """Smooth union of several parts, one after the other."""
    whole = parts[0]
    for part in parts[1:]:
        whole = blend(whole, part, radius)
    return whole


def carve(body: Jet, tool: Jet, radius: float) -> Jet:
    """What is left of `body` without `tool`, its rim rounded over `radius` metres."""
    return complement(blend(complement(body), tool, radius))


def cut(body: Jet, kept: Jet) -> Jet:
    """What `body` and `kept` have in common, with a sharp edge."""
    value = np.maximum(body.value, kept.value)
    return Jet(value, np.where(kept.value > body.value, kept.gradient, body.gradient))


def combed(body: Jet, p: Floats, wave: Vector, depth: float) -> Jet:
    """`body` with furrows `depth` metres deep, `wave` [1/m] across them; mirrored at x = 0."""

    def furrows(q: Floats) -> Jet:
        phase = np.asarray(wave) @ q
        return Jet(depth * np.sin(phase), depth * np.cos(phase) * column(wave))

    value, gradient = paired(p, furrows, softness=0.01)
    return Jet(body.value + value, body.gradient + gradient)


def complement(body: Jet) -> Jet:
    """The same surface, inside and outside exchanged."""
    return Jet(-body.value, -body.gradient)


def paired(p: Floats, part: Field, softness: float = 0.004) -> Jet:
    """`part`, given for x > 0, and its mirror image; they run smoothly into each other at x = 0.

    Instead of |x| the part sees sqrt(x² + softness²), which has no kink.
    """
    folded = p.copy()
    folded[0] = np.sqrt(p[0] ** 2 + softness**2)
    value, gradient = part(folded)
    gradient[0] *= p[0] / folded[0]
    return Jet(value, gradient)


def enlarged(p: Floats, part: Field, factor: float, fixed: Vector) -> Jet:
    """`part` grown by `factor` about the point `fixed`."""
    value, gradient = part((p - column(fixed)) / factor + column(fixed))
    return Jet(value * factor, gradient)


def column(vector: Vector) -> Floats:
    """A vector as a (3, 1) array, to meet (3, N) positions."""
    return np.array(vector, np.float64)[:, None]
