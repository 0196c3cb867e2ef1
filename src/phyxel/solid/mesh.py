# mypy: disable-error-code="valid-type,no-untyped-def"
"""Signed distance to a triangle mesh: Warp's bounding volume tree, sign by the generalised winding number."""

from __future__ import annotations

import numpy as np
import warp as wp
from numpy.typing import NDArray

from phyxel import device as dev
from phyxel.errors import SolidError

wp.set_module_options(dev.KERNEL_OPTIONS)


@wp.kernel
def measure_distance(first: int, mesh: wp.uint64, points: wp.array(dtype=wp.vec3), distance: wp.array(dtype=float)):
    """Signed distance, negative inside; in the mesh's own unit of length."""
    i = first + wp.tid()
    hit = wp.mesh_query_point_sign_winding_number(mesh, points[i], 1.0e6)
    nearest = wp.mesh_eval_position(mesh, hit.face, hit.u, hit.v)
    distance[i] = hit.sign * wp.length(points[i] - nearest)


def open_edges(faces: NDArray[np.integer]) -> int:
    """How many edges do not lie between exactly two triangles."""
    edges = np.sort(np.concatenate([faces[:, [0, 1]], faces[:, [1, 2]], faces[:, [2, 0]]]), axis=1).astype(np.int64)
    _, uses = np.unique(edges[:, 0] << 32 | edges[:, 1], return_counts=True)
    return int((uses != 2).sum())


class MeshDistance:
    """Distance function of a closed mesh; small holes are bridged by the winding number."""

    MOST_OPEN = 0.02
    """share of edges that may be open before the mesh is no longer taken for a solid"""

    def __init__(
        self, vertices: NDArray[np.floating], faces: NDArray[np.integer], name: str, device: wp.Device
    ) -> None:
        corners, merged = np.unique(vertices, axis=0, return_inverse=True)
        triangles = merged.reshape(-1)[faces]
        solid_faces = triangles[
            (triangles[:, 0] != triangles[:, 1])
            & (triangles[:, 1] != triangles[:, 2])
            & (triangles[:, 2] != triangles[:, 0])
        ]
        loose = open_edges(solid_faces)
        if len(solid_faces) < 4 or loose > self.MOST_OPEN * 1.5 * len(solid_faces):
            raise SolidError(
                f"{name}: {loose} of about {3 * len(solid_faces) // 2} edges do not lie between two triangles; "
                "the surface is open, so nothing is inside. Close the mesh and load it again"
            )
        self._device = device
        self._centre = 0.5 * (corners.min(axis=0) + corners.max(axis=0))
        # In a box of about unit size a mesh of any scale keeps all digits of single precision.
        self._size = float((corners.max(axis=0) - corners.min(axis=0)).max())
        self._mesh = wp.Mesh(
            points=wp.array(self._scaled(corners), dtype=wp.vec3, device=device),
            indices=wp.array(solid_faces.reshape(-1).astype(np.int32), dtype=wp.int32, device=device),
            support_winding_number=True,
        )

    def _scaled(self, positions: NDArray[np.floating]) -> NDArray[np.float32]:
        return ((positions - self._centre) / self._size).astype(np.float32)

    def __call__(self, positions: NDArray[np.floating]) -> NDArray[np.float64]:
        """(N, 3) [m] -> (N,) [m], negative inside."""
        points = wp.array(self._scaled(np.asarray(positions)), dtype=wp.vec3, device=self._device)
        distance = wp.empty(len(points), dtype=float, device=self._device)
        dev.launch(measure_distance, len(points), [self._mesh.id, points, distance], self._device)
        return distance.numpy().astype(np.float64) * self._size
