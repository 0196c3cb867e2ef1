"""What comes in: points on the surface of an object."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from phyxel.errors import LoadError
from phyxel.points import FEWEST_POINTS
from phyxel.points.splats import Splats

Floats = NDArray[np.floating]
Indices = NDArray[np.integer]

NO_EXTENT = 1e-6
"""reach over the largest one, below which points have no extent in a direction"""


@dataclass(frozen=True)
class BuiltInShape:
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
        rises = [self.distance(x + shift) - self.distance(x - shift) for shift in step * np.eye(3)]
        return np.stack(rises, axis=1) / (2 * step)


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
    quads: Indices | None = None
    """the four-cornered faces, if all are, shape (Q, 4), int32; rows 2k and 2k + 1 of `faces` are the halves of k"""
    uv: Floats | None = None
    """texture coordinates, shape (T, 2), float32"""
    uv_faces: Indices | None = None
    """index into `uv` for each corner of `faces`, shape (M, 3), int32"""
    name: str = "cloud"
    shape: BuiltInShape | None = field(default=None, repr=False)
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

    @property
    def is_flat(self) -> bool:
        """Whether all points lie in one plane: a sheet, but never the skin of a solid."""
        spread = self._spread()
        return bool(spread[2] <= NO_EXTENT * spread[0])

    def _spread(self) -> Floats:
        """How far the points reach along their three principal axes, over any unit, longest first."""
        return np.linalg.svd(self.positions - self.positions.mean(axis=0), compute_uv=False)

    def checked(self) -> PointCloud:
        """This cloud, with triangles if it has quads, or a `LoadError` that says why no surface can be made of it."""
        self._refuse_wrong_arrays()
        x = self.positions
        if len(x) == 0:
            raise LoadError(f"{self.name}: no points; a surface needs at least {FEWEST_POINTS}")
        bad = ~np.isfinite(x).all(axis=1)
        if bad.any():
            where = int(np.argmax(bad))
            raise LoadError(
                f"{self.name}: point {where} is {tuple(float(c) for c in x[where])}, and {int(bad.sum())} points "
                "in all are not finite; remove them from the file"
            )
        if len(x) < FEWEST_POINTS:
            raise LoadError(f"{self.name}: {len(x)} points; a surface needs at least {FEWEST_POINTS}")
        spread = self._spread()
        if spread[1] <= NO_EXTENT * spread[0]:
            raise LoadError(
                f"{self.name}: all {len(x)} points lie on one line or point; a surface spreads in two directions"
            )
        for corners in (self.faces, self.quads):
            if corners is not None and len(corners) and (corners.min() < 0 or corners.max() >= len(x)):
                wrong = int(corners.min() if corners.min() < 0 else corners.max())
                raise LoadError(f"{self.name}: a face names point {wrong}, but there are {len(x)} points")
        return self._with_halves()

    def _refuse_wrong_arrays(self) -> None:
        n = len(self.positions)
        for what, width in (("positions", 3), ("normals", 3), ("faces", 3), ("quads", 4)):
            if (array := getattr(self, what)) is None:
                continue
            is_index = what in ("faces", "quads")
            if not np.issubdtype(array.dtype, np.integer if is_index else np.number):
                raise LoadError(f"{self.name}: {what} are {array.dtype}, not numbers")
            rows = len(array) if is_index else n
            if array.shape != (rows, width):
                raise LoadError(f"{self.name}: {what} have shape {array.shape}; give ({rows}, {width})")

    def _with_halves(self) -> PointCloud:
        """This cloud, its quads cut into triangles if that is not done yet."""
        if self.quads is None:
            return self
        if self.faces is None:
            return replace(self, faces=halves(self.quads))
        if len(self.faces) != 2 * len(self.quads):
            raise LoadError(
                f"{self.name}: {len(self.faces)} faces and {len(self.quads)} quads; give the quads alone, or the two "
                "halves of each as faces"
            )
        return self

    def part(self, kept: Indices) -> PointCloud:
        """The points with these indices; the faces are left to `mesh`, and `splats` keeps what it has."""
        return replace(
            self,
            positions=self.positions[kept],
            normals=None if self.normals is None else self.normals[kept],
            colors=None if self.colors is None else self.colors[kept],
            faces=None,
            quads=None,
            uv=None,
            uv_faces=None,
            splats=None if self.splats is None else self.splats.part(kept),
        )

    def copy(self) -> PointCloud:
        """The same with arrays of its own."""
        own: dict[str, Any] = {name: deepcopy(part) for name, part in vars(self).items() if name != "shape"}
        return replace(self, **own)

    def with_colors(self, colors: Floats) -> PointCloud:
        """The same points in other colours."""
        return replace(self, colors=np.asarray(colors, np.float32))


def halves(quads: Indices) -> Indices:
    """Quads (Q, 4) cut into triangles between their first and third corner, (2 Q, 3)."""
    return quads[:, [0, 1, 2, 0, 2, 3]].reshape(-1, 3)
