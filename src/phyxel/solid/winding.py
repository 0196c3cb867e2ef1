# mypy: disable-error-code="valid-type,no-untyped-def,empty-body"
"""Points with normals and areas as a soup of small triangles: what is nearest, and how often a place is enclosed.

Each point becomes an equilateral triangle of the area it stands for, in its tangent plane. On such a soup Warp's
bounding volume tree finds the nearest point, and its tree of dipoles the winding number (Barill et al. 2018): near 1
inside, near 0 outside, in between across a gap, whatever is wrong with the rest of the surface.
"""

from __future__ import annotations

import numpy as np
import warp as wp
from numpy.typing import NDArray

from phyxel import device as dev
from phyxel.device import as_vectors
from phyxel.region import Floats
from phyxel.rotation import tangents

wp.set_module_options(dev.KERNEL_OPTIONS)


@wp.func_native("return mesh_query_winding_number(mesh, x, 2.0f);")
def winding_number(mesh: wp.uint64, x: wp.vec3) -> float:
    """How often the mesh encloses x, by dipoles where it is far (twice the radius of a part; Barill et al. 2018,
    physics 9.2)."""


@wp.kernel
def wind(first: int, mesh: wp.uint64, points: wp.array(dtype=wp.vec3), number: wp.array(dtype=float)):
    """Winding number at each point."""
    i = first + wp.tid()
    number[i] = winding_number(mesh, points[i])


def by_neighbourhood(points: Floats) -> NDArray[np.intp]:
    """An order of points (N, 3), given in units of the surface's size about its middle, in which near ones follow each
    other: what is looked at for one is then at hand for the next. Sorting 15 bits takes little beside a distance."""
    cells = np.clip((np.asarray(points) + 0.5) * 32, 0, 31).astype(np.uint16)
    return np.argsort((cells[:, 0] << 10) | (cells[:, 1] << 5) | cells[:, 2], kind="stable")


def point_triangles(positions: Floats, normals: Floats, areas: Floats) -> Floats:
    """An equilateral triangle of its area in the tangent plane of each point, (N, 3, 3)."""
    a, b = tangents(normals)
    # The corner of an equilateral triangle of area A lies 2 √(A / (3√3)) from its middle.
    arm = 2 * np.sqrt(np.asarray(areas, np.float64) / (3 * np.sqrt(3)))[:, None]
    angles = 2 * np.pi / 3 * np.arange(3)
    return np.stack([positions + arm * (np.cos(angle) * a + np.sin(angle) * b) for angle in angles], axis=1)


class Soup:
    """The triangles of a surface. Lengths are in units of its size about its middle, so that no scale costs digits."""

    def __init__(self, corners: Floats, faces: NDArray[np.integer], device: wp.Device) -> None:
        self._device = device
        indices = wp.array(faces.reshape(-1).astype(np.int32), dtype=wp.int32, device=device)
        self.mesh = wp.Mesh(as_vectors(corners, device), indices, support_winding_number=True)

    @staticmethod
    def of_points(positions: Floats, normals: Floats, areas: Floats, device: wp.Device) -> Soup:
        """One triangle for each point: face i is point i's."""
        corners = point_triangles(positions, normals, areas).reshape(-1, 3)
        return Soup(corners, np.arange(len(corners)), device)

    def winding_number(self, points: Floats) -> NDArray[np.float32]:
        """(N, 3) -> (N,)"""
        number = wp.empty(len(points), dtype=float, device=self._device)
        x = as_vectors(points, self._device)
        dev.launch(wind, len(points), [self.mesh.id, x, number], self._device)
        return number.numpy()
