# mypy: disable-error-code="valid-type,no-untyped-def"
"""A triangle mesh as the surface of a solid (physics 9.2): nearest point by Warp's tree, side by the winding number."""

from __future__ import annotations

from typing import Any

import numpy as np
import warp as wp

from phyxel import device as dev
from phyxel.solid.distance_grid import FAR, FINEST, DistanceGrid, MeasuredSurface, guided, laid_guide
from phyxel.solid.shell import Shell
from phyxel.solid.winding import Soup, winding_number

wp.set_module_options(dev.KERNEL_OPTIONS)

ON_SURFACE = wp.constant(1.0e-6)
"""Distance, over the size of the mesh, below which a place has no side."""
WELL_INSIDE = wp.constant(1.0e-3)
"""Barycentric coordinate from which a point of a face lies off its edges."""


@wp.struct
class MeshOnDevice:
    """A mesh on the device, in units of its size about its middle."""

    soup: wp.uint64
    """all its faces"""
    skin: wp.uint64
    """those that bound the solid, and what closes its openings"""
    differ: bool
    """whether these are not the same"""
    guide: DistanceGrid


@wp.func
def closest_on_mesh(mesh: MeshOnDevice, x: wp.vec3, known_side: float):
    """Nearest point of the skin, the direction of growing distance, and the signed distance.

    `known_side` is the side of x if it is known, else 0: to find it may take longer than all the rest.
    """
    hit = wp.mesh_query_point_no_sign(mesh.skin, x, 1.0e6)
    y = wp.mesh_eval_position(mesh.skin, hit.face, hit.u, hit.v)
    distance = wp.length(x - y)
    normal = wp.mesh_eval_face_normal(mesh.skin, hit.face)
    side = wp.sign(wp.dot(x - y, normal))
    # In the middle of a face its normal tells the side; over an edge or a corner, only what encloses x.
    middle = wp.min(wp.min(hit.u, hit.v), 1.0 - hit.u - hit.v)
    if known_side != 0.0:
        side = known_side
    elif distance > ON_SURFACE and (mesh.differ or middle < WELL_INSIDE):
        side = wp.where(winding_number(mesh.soup, x) > 0.5, -1.0, 1.0)
    direction = normal
    if distance > ON_SURFACE:
        direction = side * (x - y) / distance
    return y, direction, side * distance


@wp.kernel
def find_closest(
    first: int,
    mesh: MeshOnDevice,
    points: wp.array(dtype=wp.vec3),
    foot: wp.array(dtype=wp.vec3),
    direction: wp.array(dtype=wp.vec3),
    distance: wp.array(dtype=float),
):
    """Nearest point, direction of growing distance and signed distance of every point."""
    i = first + wp.tid()
    y, n, d = closest_on_mesh(mesh, points[i], 0.0)
    foot[i] = y
    direction[i] = n
    distance[i] = d


@wp.kernel
def measure(
    first: int,
    mesh: MeshOnDevice,
    points: wp.array(dtype=wp.vec3),
    distance: wp.array(dtype=float),
    direction: wp.array(dtype=wp.vec3),
):
    """Signed distance of every point and the direction in which it grows: by the grid far away, else measured."""
    i = first + wp.tid()
    d, n = guided(mesh.guide, points[i])
    steep = wp.length(n)
    if steep > 0.0 and wp.abs(d) > FAR * mesh.guide.cell:
        n = wp.normalize(n)
    else:
        side = float(0.0)
        if wp.abs(steep - 1.0) < 0.1 and wp.abs(d) > 0.5 * mesh.guide.cell:
            side = wp.sign(d)
        _y, n, d = closest_on_mesh(mesh, points[i], side)
    distance[i] = d
    direction[i] = n


class MeshSurface(MeasuredSurface):
    """The triangles that bound a solid, in units of its size about its middle."""

    def __init__(self, shell: Shell, device: wp.Device) -> None:
        mesh: Any = MeshOnDevice()
        super().__init__(mesh, find_closest, measure, device)
        self._soup, self._skin, mesh.differ = shell.soup, shell.soup, shell.skin is not None
        if shell.skin is not None:
            self._skin = Soup(shell.skin.reshape(-1, 3), np.arange(shell.skin.size // 3), device)
        mesh.soup, mesh.skin = self._soup.mesh.id, self._skin.mesh.id
        mesh.guide = laid_guide(self.closest, shell.lower, shell.upper, FINEST, device)
