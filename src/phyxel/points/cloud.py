"""What comes in: points on the surface of an object."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from copy import deepcopy
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from phyxel.errors import LoadError, PhyxelError, brief, knows_its_arguments
from phyxel.notebook import Fact, Showable
from phyxel.points import FEWEST_POINTS
from phyxel.points.moments import SolidMoments
from phyxel.points.reading import Reading, oddities
from phyxel.points.splats import Splats
from phyxel.points.texture import Texture
from phyxel.units import extents_text

Floats = NDArray[np.floating]
Indices = NDArray[np.integer]

NO_EXTENT = 1e-6
"""reach over the largest one, below which points have no extent in a direction"""
MOVED = 1e-4
"""distance of points from what they were taken from, over their size, from which they are no longer on it"""
POINTS_ASKED = 8
"""points of a mesh that are asked whether they were moved"""
FAR_AWAY = 1e6
"""distance from the origin over the size of a cloud, from which single precision has lost its shape"""


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
    moments: SolidMoments | None = None
    """volume, middle and second moments, where there are formulas for them"""

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

    def are_beside(self, places: Floats, off: float) -> bool:
        """Whether each of some places (n, 3) lies within `off` of the plane of a triangle whose box it is in."""
        corners = self.vertices[self.faces]
        lower, upper = corners.min(axis=1) - off, corners.max(axis=1) + off

        def is_beside(x: Floats) -> bool:
            a, b, c = corners[((lower <= x) & (x <= upper)).all(axis=1)].transpose(1, 0, 2)
            normal = np.cross(b - a, c - a)
            away = np.abs(((x - a) * normal).sum(axis=1))
            return bool((away <= off * np.linalg.norm(normal, axis=1)).any())

        return all(map(is_beside, places))


@knows_its_arguments
@dataclass(frozen=True, repr=False)
class PointCloud(Showable):
    """Points on a surface, in metres, y up: `PointCloud(positions)`, from an array (N, 3) or a list of triples.

    Positions are double: a scan may sit far from its origin. If `faces` is there it indexes `positions`.

    >>> corners = [(x, y, z) for x in (0, 1) for y in (0, 1) for z in (0, 1)]
    >>> cloud = px.PointCloud(corners, name="cube")
    >>> len(cloud), cloud.size
    (8, 1.0)
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
    """what messages call it, and a body made of it"""
    shape: BuiltInShape | None = field(default=None, repr=False)
    """the signed distance function the points were taken from, if any"""
    mesh: Mesh | None = field(default=None, repr=False)
    """the file's whole mesh, if it had faces: it stays when the points are thinned and `faces` cannot"""
    splats: Splats | None = field(default=None, repr=False)
    """all Gaussian splats of the file, if it had some: those too that are not among the points"""
    texture: Texture | None = field(default=None, repr=False)
    """what `faces` are painted with, if it is there; `colors` has what of it is at the points"""
    reading: Reading | None = field(default=None, repr=False)
    """what the file's numbers were taken for, and who says so"""
    from_file: bool = False
    """whether it was loaded from a file, whose origin may be anywhere"""

    def __post_init__(self) -> None:
        for what, (width, dtype) in ARRAYS.items():
            given = getattr(self, what)
            if given is not None:
                object.__setattr__(self, what, _as_table(f"{self.name}: {what}", given, width, dtype))
        self._refuse_other_lengths()

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
            lost = np.abs(x).max() > FAR_AWAY * np.ptp(x, axis=0).max()
            raise LoadError(
                f"{self.name}: all {len(x)} points lie on one line or point; a surface spreads in two directions"
                + ("; if they were saved in single precision, move them to the origin before that" if lost else "")
            )
        for corners in (self.faces, self.quads):
            if corners is not None and len(corners) and (corners.min() < 0 or corners.max() >= len(x)):
                wrong = int(corners.min() if corners.min() < 0 else corners.max())
                raise LoadError(f"{self.name}: a face names point {wrong}, but there are {len(x)} points")
        return self._with_halves()

    def _refuse_other_lengths(self) -> None:
        for what in ("normals", "colors"):
            array = getattr(self, what)
            if array is not None and len(array) != len(self):
                raise LoadError(f"{self.name}: {len(array)} {what} for {len(self)} points; give one for each point")

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
            texture=None,
            splats=None if self.splats is None else self.splats.part(kept),
        )

    def copy(self) -> PointCloud:
        """The same with arrays of its own."""
        shared = ("shape", "texture")
        own: dict[str, Any] = {name: deepcopy(part) for name, part in vars(self).items() if name not in shared}
        return replace(self, **own)

    def facts(self) -> Iterator[Fact]:
        yield "points", self._points_text()
        if len(self):
            yield "size", extents_text(self.upper - self.lower)
        there = [what for what in ("normals", "colors", "faces", "texture") if getattr(self, what) is not None]
        yield "with", ", ".join(there) or "positions alone"
        if self.reading is not None:
            yield "read as", str(self.reading)
        yield from (("odd", sentence) for sentence in self.oddities())

    def _points_text(self) -> str:
        if self.splats is not None:
            return f"{len(self):,}, of {len(self.splats):,} splats those that count as surface"
        if self.mesh is not None:
            return f"{len(self):,} on {len(self.mesh.faces):,} triangles"
        return f"{len(self):,}"

    def oddities(self) -> list[str]:
        """What looks odd of its size and of how it stands, as its file's numbers were taken, and what to do then."""
        return list(oddities(self.reading, self.upper - self.lower))

    def with_colors(self, colors: Floats) -> PointCloud:
        """The same points in other colours."""
        return replace(self, colors=np.asarray(colors, np.float32))


ARRAYS: dict[str, tuple[int, type[np.generic]]] = {
    "positions": (3, np.float64),
    "normals": (3, np.floating),
    "colors": (3, np.floating),
    "faces": (3, np.integer),
    "quads": (4, np.integer),
}
"""Columns and kind of numbers of what a cloud has."""


def _as_table(label: str, given: object, width: int, kind: type[np.generic]) -> NDArray:
    """An array or a list of rows as an array (rows, width) of a kind of numbers, or a `LoadError`."""
    numbers = "whole numbers" if kind is np.integer else "numbers"
    wanted = f"give an array or a list of rows of {width} {numbers}"
    try:
        table = np.asarray(given)
    except (ValueError, TypeError):
        raise LoadError(f"{label}: {brief(given)} with rows of different lengths; {wanted}") from None
    is_number = table.dtype.kind in ("iu" if kind is np.integer else "iuf") or table.size == 0
    if not is_number or table.ndim != 2 or table.shape[1] != width:
        raise LoadError(f"{label}: {brief(given)}; {wanted}, shape (N, {width})")
    if np.issubdtype(table.dtype, kind):
        return table
    return table.astype(np.int32 if kind is np.integer else np.float64)


CLOUD_LIKE = "an array (N, 3) or a list of triples [m], a pair (vertices, faces), or a PointCloud"
CloudLike: TypeAlias = PointCloud | Floats | Sequence[Any]
"""What a cloud is made of where one is asked for: `CLOUD_LIKE`."""


def as_cloud(thing: CloudLike, place: str, taken: str = CLOUD_LIKE) -> PointCloud:
    """A cloud of whatever is like one; `place` and `taken` say in messages where it was given, and what is taken."""
    if isinstance(thing, PointCloud):
        _refuse_moved(thing)
        return thing
    if isinstance(thing, str | bytes | dict | set) or not (hasattr(thing, "__len__") or hasattr(thing, "__array__")):
        example = f", for example px.load({brief(thing)})" if isinstance(thing, str) else ""
        raise PhyxelError(f"{place}: {brief(thing)}: give {taken}{example}")
    if isinstance(thing, list | tuple) and len(thing) == 2 and all(_is_table(part) for part in thing):
        vertices, corners = thing
        return PointCloud(vertices, **{"quads" if np.shape(corners)[1] == 4 else "faces": corners})
    return PointCloud(np.asarray(thing) if hasattr(thing, "__array__") else thing)  # type: ignore[arg-type]


def _refuse_moved(cloud: PointCloud) -> None:
    """Points that were replaced, though the shape or mesh they were taken from was not: a solid is made of that,
    and would be where they no longer are."""
    if cloud.shape is not None:
        taken_from = f"built-in {cloud.shape.name}"
        moved = bool((np.abs(cloud.shape.distance(cloud.positions)) > MOVED * cloud.size).any())
    elif cloud.mesh is not None:
        taken_from = "mesh"
        some = cloud.positions[:: max(1, len(cloud) // POINTS_ASKED)]
        moved = not cloud.mesh.are_beside(some, MOVED * cloud.size)
    else:
        return
    if moved:
        raise LoadError(
            f"{cloud.name}: its points were moved off the {taken_from} they were taken from, of which its solid "
            "would be made; give px.PointCloud(positions) for a solid of the points, or move and scale the body "
            "(at, rotate, size)"
        )


def _is_table(part: object) -> bool:
    """Whether it has rows, as an array or a list."""
    try:
        return np.ndim(part) == 2  # type: ignore[arg-type]
    except ValueError:  # rows of different lengths
        return False


def halves(quads: Indices) -> Indices:
    """Quads (Q, 4) cut into triangles between their first and third corner, (2 Q, 3)."""
    return quads[:, [0, 1, 2, 0, 2, 3]].reshape(-1, 3)
