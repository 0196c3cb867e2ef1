# mypy: disable-error-code="valid-type,no-untyped-def"
"""The nearest point of a fitted surface, and with it the signed distance (physics 9.2).

An implicit function says little far from its zero set. Distance is therefore measured: a first guess of the nearest
point is pulled onto the surface by the implicit function, and slides towards the query until the way there stands
upright on the surface. The soup of triangles gives the guess. As its search takes microseconds, distances are also
kept on a coarse grid: far away they are interpolated, and near the surface they lead to the guess where they are
smooth.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import warp as wp

from phyxel import device as dev
from phyxel.device import as_vectors
from phyxel.region import Floats
from phyxel.solid.distance_grid import FAR, FINEST, DistanceGrid, MeasuredSurface, guided, laid_guide
from phyxel.solid.mpu import Tree, build_tree, implicit_value
from phyxel.solid.winding import Soup, winding_number

wp.set_module_options(dev.KERNEL_OPTIONS)

SLIDES = 3
"""How often a foot point slides at most."""
ASKED_AHEAD = 0.05
"""How far towards the query the function is asked, over the reach of the nearest point's triangle."""
UPRIGHT = wp.constant(0.02)
"""Share of the way to the query that may lie along the surface."""
ASKEW = wp.constant(0.3)
"""Cosine between the way and the normal below which the side is asked of the winding number."""
STRAYED = wp.constant(0.3)
"""How much nearer than the nearest triangle a foot point may be, in spacings; close by, in a gap of theirs, 1."""
BEYOND = wp.constant(1.5)
"""Distance from which the winding number always tells the side, in spacings: slower, but no single wrong normal can
mislead it."""
SMOOTH = wp.constant(0.1)
"""How far the grid's slope may be from 1 where it is believed."""


@wp.struct
class TriangleSurface:
    """A surface on the device, in units of its size about its middle."""

    soup: wp.uint64
    tree: Tree
    normal: wp.array(dtype=wp.vec3)
    reach: wp.array(dtype=float)
    """how far around a point its triangle lies"""
    typical_reach: float
    guide: DistanceGrid


@wp.func
def pulled_down(surface: TriangleSurface, y: wp.vec3, n: wp.vec3, reach: float, x: wp.vec3):
    """Newton steps from y to the zero set, and the normal there; where no cell is felt, y and n as they are.

    The function is asked a little towards x: on an edge the face that looks to x then answers, not just any.
    """
    away = reach
    start = y
    steps = int(0)
    # A short step has arrived. A long one may have crossed an edge, beyond which another face is to be met.
    while steps < 4 and wp.abs(away) > 0.1 * reach and wp.length_sq(y - start) <= reach * reach:
        ahead = x - y
        ahead *= wp.min(1.0, wp.static(ASKED_AHEAD) * reach / wp.max(wp.length(ahead), 1.0e-12))
        f, slope, weights = implicit_value(surface.tree, y + ahead)
        steep = wp.length(slope)
        away = float(0.0)
        if weights > 0.0 and steep > 0.1:
            n = slope / steep
            away = wp.clamp(f / steep - wp.dot(n, ahead), -reach, reach)
            y -= away * n
        steps += 1
    return y, n


@wp.func
def slid(surface: TriangleSurface, x: wp.vec3, guess: wp.vec3, n: wp.vec3, reach: float):
    """Nearest point of the surface to x from a guess nearby, and its outward normal (physics 9.2)."""
    y, n = pulled_down(surface, guess, n, reach, x)
    slides = int(0)
    while slides < wp.static(SLIDES):
        way = x - y
        along = way - wp.dot(way, n) * n
        far = wp.length(along)
        slides += 1
        if far <= UPRIGHT * wp.length(way):
            break
        z, m = pulled_down(surface, y + wp.min(1.0, reach / far) * along, n, reach, x)
        if wp.length_sq(x - z) >= wp.length_sq(way):
            break
        y = z
        n = m
    return y, n


@wp.func
def height_over(x: wp.vec3, y: wp.vec3, n: wp.vec3, reach: float):
    """Distance of x from its foot point y with the side that the normal n there says, and whether n can tell it."""
    height = wp.dot(x - y, n)
    distance = wp.length(x - y)
    if distance < 0.1 * reach:
        return height, True
    return wp.sign(height) * distance, wp.abs(height) > ASKEW * distance


@wp.func
def closest_point(surface: TriangleSurface, x: wp.vec3):
    """Nearest point of the surface to x, its outward normal, and the signed distance."""
    hit = wp.mesh_query_point_no_sign(surface.soup, x, 1.0e6)
    guess = wp.mesh_eval_position(surface.soup, hit.face, hit.u, hit.v)
    reach = surface.reach[hit.face]
    y, n = slid(surface, x, guess, surface.normal[hit.face], reach)
    # The surface is where its points are: a zero much nearer than all of them is a stray sheet of the function.
    far = wp.length(x - guess)
    if wp.length(x - y) < far - wp.where(far > 2.0 * reach, STRAYED, 1.0) * reach:
        y = guess
        n = surface.normal[hit.face]
    distance, told = height_over(x, y, n, reach)
    if not told or wp.abs(distance) > BEYOND * surface.typical_reach:
        distance = wp.where(winding_number(surface.soup, x) > 0.5, -wp.abs(distance), wp.abs(distance))
    return y, n, distance


@wp.func
def signed_distance(surface: TriangleSurface, x: wp.vec3):
    """Signed distance and the outward direction (physics 9.2): by the grid where it will do, else measured."""
    value, slope = guided(surface.guide, x)
    steep = wp.length(slope)
    if steep > 0.0 and wp.abs(value) > FAR * surface.guide.cell:
        return value, slope / steep
    if wp.abs(steep - 1.0) < SMOOTH:
        n = slope / steep
        y, m = slid(surface, x, x - value * n, n, surface.typical_reach)
        d, told = height_over(x, y, m, surface.typical_reach)
        if told and wp.abs(d - value) < 0.3 * surface.guide.cell:
            return d, outward(x, y, m, d)
    y, m, d = closest_point(surface, x)
    return d, outward(x, y, m, d)


@wp.func
def outward(x: wp.vec3, y: wp.vec3, n: wp.vec3, distance: float):
    """Direction of growing distance: away from the nearest point, on the surface its normal."""
    if wp.abs(distance) < 1.0e-5:
        return n
    return (x - y) / distance


@wp.kernel
def find_closest(
    first: int,
    surface: TriangleSurface,
    points: wp.array(dtype=wp.vec3),
    foot: wp.array(dtype=wp.vec3),
    normal: wp.array(dtype=wp.vec3),
    distance: wp.array(dtype=float),
):
    """Nearest point, normal there and signed distance of every point."""
    i = first + wp.tid()
    y, n, d = closest_point(surface, points[i])
    foot[i] = y
    normal[i] = n
    distance[i] = d


@wp.kernel
def measure(
    first: int,
    surface: TriangleSurface,
    points: wp.array(dtype=wp.vec3),
    distance: wp.array(dtype=float),
    direction: wp.array(dtype=wp.vec3),
):
    """Signed distance of every point, and the direction in which it grows."""
    i = first + wp.tid()
    d, n = signed_distance(surface, points[i])
    distance[i] = d
    direction[i] = n


class FittedSurface(MeasuredSurface):
    """Points with outward normals and areas as a smooth surface; lengths in units of its size about its middle."""

    def __init__(
        self, positions: Floats, normals: Floats, areas: Floats, tolerance: float, depth: int, device: wp.Device
    ) -> None:
        surface: Any = TriangleSurface()
        super().__init__(surface, find_closest, measure, device)
        self.soup = Soup.of_points(positions, normals, areas, device)
        surface.soup = self.soup.mesh.id
        surface.tree = build_tree(positions, normals, tolerance, depth, device)
        surface.normal = as_vectors(normals, device)
        surface.reach = wp.array(np.sqrt(areas), dtype=float, device=device)
        surface.typical_reach = float(np.median(np.sqrt(areas)))
        self.blur = 0.5 * surface.typical_reach
        cell = max(FINEST, 1.5 * surface.typical_reach)
        surface.guide = laid_guide(self.closest, positions.min(axis=0), positions.max(axis=0), cell, device)
