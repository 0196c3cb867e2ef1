"""What comes in: points on the surface of an object."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from phyxel.errors import LoadError
from phyxel.points.splats import Splats

Floats = NDArray[np.floating]
Indices = NDArray[np.integer]


@dataclass(frozen=True)
class Shape:
    """A solid given by its signed distance function."""

    name: str
    distance: Callable[[Floats], Floats]
    """(N, 3) positions [m] -> (N,) distances [m], negative inside; exact zero set, |gradient| near 1 beside it."""
    lower: tuple[float, float, float]
    upper: tuple[float, float, float]
    color: Callable[[Floats], Floats]
    """(N, 3) surface positions [m] -> (N, 3) red, green, blue in 0..1."""

    def gradient(self, positions: Floats) -> Floats:
        """Gradient of the distance by central differences in double, (N, 3); error of order 1e-9."""
        x = np.asarray(positions, np.float64)
        step = 1e-5 * float(np.max(np.subtract(self.upper, self.lower)))
        parts = []
        for axis in range(3):
            shift = np.zeros(3)
            shift[axis] = step
            parts.append((self.distance(x + shift) - self.distance(x - shift)) / (2 * step))
        return np.stack(parts, axis=1)


@dataclass(frozen=True)
class Mesh:
    """The triangles that enclose a solid, in metres, y up."""

    vertices: Floats
    """[m], shape (V, 3), float64"""
    faces: Indices
    """triangles, counter-clockwise from outside, shape (M, 3), int32"""


@dataclass(frozen=True)
class PointCloud:
    """Points on a surface, in metres, y up.

    Positions are double: a scan may sit far from its origin. If `faces` is there it indexes `positions`.
    """

    positions: Floats
    """[m], shape (N, 3), float64"""
    normals: Floats | None = None
    """unit length, outward, shape (N, 3), float32"""
    colors: Floats | None = None
    """red, green, blue in 0..1, shape (N, 3), float32"""
    faces: Indices | None = None
    """triangles, counter-clockwise from outside, shape (M, 3), int32"""
    uv: Floats | None = None
    """texture coordinates, shape (T, 2), float32"""
    uv_faces: Indices | None = None
    """index into `uv` for each corner of `faces`, shape (M, 3), int32"""
    name: str = "cloud"
    shape: Shape | None = field(default=None, repr=False)
    """the signed distance function the points were taken from, if any"""
    mesh: Mesh | None = field(default=None, repr=False)
    """the file's whole mesh, if it had faces: it stays when the points are thinned and `faces` cannot"""
    splats: Splats | None = field(default=None, repr=False)
    """all Gaussian splats of the file, if it had some: those too that are not among the points"""

    def __len__(self) -> int:
        return len(self.positions)

    @property
    def lower(self) -> Floats:
        """Lower corner of the bounding box [m]."""
        return self.positions.min(axis=0)

    @property
    def upper(self) -> Floats:
        """Upper corner of the bounding box [m]."""
        return self.positions.max(axis=0)

    @property
    def size(self) -> float:
        """Largest extent [m]."""
        return float((self.upper - self.lower).max())

    def checked(self) -> PointCloud:
        """This cloud, or a `LoadError` that says why no solid can ever be made of it."""
        self._refuse_wrong_arrays()
        x = self.positions
        if len(x) == 0:
            raise LoadError(f"{self.name}: no points; a solid needs a closed surface")
        bad = ~np.isfinite(x).all(axis=1)
        if bad.any():
            where = int(np.argmax(bad))
            raise LoadError(
                f"{self.name}: point {where} is {tuple(float(c) for c in x[where])}, and {int(bad.sum())} points "
                "in all are not finite; remove them from the file"
            )
        if len(x) < 4:
            raise LoadError(f"{self.name}: {len(x)} points; a solid needs a closed surface of at least 4")
        spread = np.linalg.svd(x - x.mean(axis=0), compute_uv=False)
        if spread[2] <= 1e-6 * spread[0]:
            what = "in one plane" if spread[1] > 1e-6 * spread[0] else "on one line or point"
            raise LoadError(f"{self.name}: all {len(x)} points lie {what}; a solid needs a surface with room inside")
        if self.faces is not None and len(self.faces) and (self.faces.min() < 0 or self.faces.max() >= len(x)):
            raise LoadError(f"{self.name}: a face names point {int(self.faces.max())}, but there are {len(x)} points")
        return self

    def _refuse_wrong_arrays(self) -> None:
        n = len(self.positions)
        for what, array in (("positions", self.positions), ("normals", self.normals), ("faces", self.faces)):
            if array is None:
                continue
            if not np.issubdtype(array.dtype, np.integer if what == "faces" else np.number):
                raise LoadError(f"{self.name}: {what} are {array.dtype}, not numbers")
            rows = len(array) if what == "faces" else n
            if array.shape != (rows, 3):
                raise LoadError(f"{self.name}: {what} have shape {array.shape}; give ({rows}, 3)")

    def part(self, kept: Indices) -> PointCloud:
        """The points with these indices; the faces are left to `mesh`, and `splats` keeps what it has."""
        return replace(
            self,
            positions=self.positions[kept],
            normals=None if self.normals is None else self.normals[kept],
            colors=None if self.colors is None else self.colors[kept],
            faces=None,
            uv=None,
            uv_faces=None,
            splats=None if self.splats is None else self.splats.part(kept),
        )

    def with_colors(self, colors: Floats) -> PointCloud:
        """The same points in other colours."""
        return replace(self, colors=np.asarray(colors, np.float32))
