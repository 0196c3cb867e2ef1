"""The solid a cloud encloses."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import cached_property, lru_cache
from typing import Protocol

import numpy as np
import warp as wp
from numpy.typing import NDArray

from phyxel import device as dev
from phyxel import kernels
from phyxel.errors import PhyxelError, SolidError, knows_its_arguments
from phyxel.mls.covers import grown
from phyxel.mls.shape_functions import Basis, ShapeFunctions
from phyxel.notebook import Fact, Showable
from phyxel.points.cloud import BuiltInShape, CloudLike, Mesh, PointCloud, as_cloud
from phyxel.points.completion import with_unit_normals
from phyxel.points.load import points_on
from phyxel.points.moments import SolidMoments
from phyxel.points.sampling import unit
from phyxel.solid.closest import FittedSurface
from phyxel.solid.doubts import Doubts
from phyxel.solid.mesh import MeshSurface
from phyxel.solid.mpu import DEEPEST
from phyxel.solid.nodes import Nodes, sample_nodes
from phyxel.solid.octree import Floats, Region
from phyxel.solid.openings import IF_A_SHEET
from phyxel.solid.scan import Findings, Scan, read_scan
from phyxel.solid.shell import read_shell, welded
from phyxel.units import extents_text, volume_text

Numbers = NDArray[np.floating]

TOLERANCE = 3e-4
"""How far points may be missed before an octree cell is split, over the size of the solid."""
DEPTH = 9
"""Levels of the octree."""
CLOSING = 0.3
"""Share of the surface that may be made up to close openings."""
FACE_POINTS = 20_000
"""Points an open mesh is sampled with, if it has fewer vertices."""
BY_POINTS = (
    "its faces do not tell inside from outside, so that points on them were taken instead: look whether the volume is "
    "what you mean, or turn and close the faces in a modelling tool"
)
"""What is doubtful of a mesh that is no shell."""
PLACES_PROBED = 4000
"""Places at which two ways to tell the side of a scan are compared."""
MOST_DOUBTFUL = 0.02
"""Share of places on whose side two ways to tell it may differ."""
SHORTEST_STEP = 1 / 24
"""Of a walk along a segment, over its length; gaps below two steps may be overlooked."""
GRAZING = 0.1
"""How far a segment may pass outside, over its length: along a hollow surface it must."""
STEEP = 0.5
"""Rise of the distance along the segment with which it leaves for good."""
VOLUME_CELLS = 32
"""Cells along the longest side on which the volume is measured."""
CELL_PARTS = 4
"""A cell that the surface may cut is split into CELL_PARTS³."""
CUT_WITHIN = 0.7
"""Distance over a cell's diagonal below which it may be cut: blended shapes are off by some ten per cent."""


class Boundary(Protocol):
    """What bounds a solid; lengths in a unit of its own."""

    blur: float
    """how far beside it what is told of it says nothing: 0, or half the spacing of the points it was made of"""

    def distance(self, points: Numbers) -> Numbers:
        """(N, 3) -> signed distances (N,), negative inside."""

    def direction(self, points: Numbers) -> Numbers:
        """(N, 3) -> unit directions in which the distance grows (N, 3)."""

    def closest(self, points: Numbers) -> tuple[Numbers, Numbers, Numbers]:
        """(N, 3) -> nearest points of the surface (N, 3), directions (N, 3), distances (N,)."""


@knows_its_arguments
class Solid(Showable):
    """Inside and outside, distance, volume and nodes of what a `cloud` (or what `px.load` takes) encloses, in the
    cloud's coordinates [m].

    A built-in shape is taken as it is, a mesh by its triangles: what they wind round, also where they overlap or leave
    openings. From points alone, or from a mesh that does not tell its inside, an implicit surface is made: `tolerance`
    is how far it may miss a point, over the solid's size, before it is refined, `depth` the most levels of refinement.
    `closing` is the share of the surface that may be made up to close openings.

    `findings` has what was understood, and in `findings.doubts` what is doubtful. `device` is "cpu" or "cuda".

    >>> ball = px.Solid(px.load("sphere", points=2000))
    >>> print(f"{ball.volume:.3f} m³")  # 4/3 π 0.25³ = 0.0654
    0.065 m³
    >>> ball.distance([[0, 0, 0], [0, 0.75, 0]]).round(3)
    array([-0.25,  0.5 ])
    """

    def __init__(
        self,
        cloud: CloudLike,
        *,
        tolerance: float = TOLERANCE,
        depth: int = DEPTH,
        closing: float = CLOSING,
        device: str | wp.Device | None = None,
    ) -> None:
        cloud = as_cloud(cloud, "Solid")
        self.name = cloud.name
        self._check("tolerance", tolerance, 1e-6, 0.1)
        self._check("depth", depth, 2, DEEPEST)
        self._check("closing", closing, 0.0, 0.9)
        cloud = with_unit_normals(cloud.checked())
        if cloud.is_flat:
            raise SolidError(
                f"{self.name}: all {len(cloud)} points lie in one plane; a solid needs a surface with room inside. "
                + IF_A_SHEET
            )
        self.lower: Floats
        """lower corner of the bounding box [m]"""
        self.upper: Floats
        """upper corner of the bounding box [m]"""
        self.skin = cloud
        """the cloud's points that lie on the surface, with outward normals"""
        self.kept: NDArray[np.int64] | None = None
        """which of the cloud's points these are, ascending, if not all"""
        self.findings = Findings(points=len(cloud))
        """what was understood of the points"""
        self.made_from = "points"
        """"shape", "mesh" (by its triangles) or "points" (of a cloud, or of a mesh that does not tell its inside)"""
        self._middle: Numbers = np.zeros(3)
        self._size = 1.0
        self.moments: SolidMoments | None = None
        """volume, middle and second moments, if they are known exactly: of a mesh that bounds it, of simple shapes"""
        picked = dev.pick(device)
        mesh = cloud.mesh or (None if cloud.faces is None else Mesh(cloud.positions, cloud.faces))
        if cloud.shape is not None:
            self.made_from = "shape"
            self.lower, self.upper = np.array(cloud.shape.lower, float), np.array(cloud.shape.upper, float)
            self._surface: Boundary = ShapeSurface(cloud.shape)
            self.moments = cloud.shape.moments
        elif mesh is not None and self._take_mesh(joined := welded(mesh), closing, picked):
            self.made_from = "mesh"
        else:
            kernels.ready({"from points"}, picked)
            points = cloud if mesh is None else points_on(joined, FACE_POINTS, cloud.name)
            scan = self._take_points(points, tolerance, int(depth), closing, picked)
            if mesh is None:
                order = np.argsort(scan.kept)
                self.kept = kept = scan.kept[order].astype(np.int64)
                self.skin = replace(cloud.part(kept), normals=scan.normals[order].astype(np.float32))
            else:
                self.findings = replace(self.findings, doubts=(BY_POINTS,))
        if self.skin.normals is None:
            self.skin = replace(self.skin, normals=self.gradient(self.skin.positions).astype(np.float32))

    def _check(self, key: str, value: float, least: float, most: float) -> None:
        if not isinstance(value, int | float | np.number) or not least <= value <= most:
            raise PhyxelError(f"{self.name}: {key} = {value}: give a number from {least:g} to {most:g}")

    def _take_mesh(self, mesh: Mesh, closing: float, device: wp.Device) -> bool:
        """Whether its triangles tell inside from outside."""
        if len(mesh.faces) == 0:
            return False
        kernels.ready({"from mesh"}, device)
        vertices = mesh.vertices.astype(np.float64)
        lower, upper = vertices.min(axis=0), vertices.max(axis=0)
        self._middle, self._size = 0.5 * (lower + upper), float((upper - lower).max())
        shell = read_shell(self._scaled(vertices), mesh.faces, device)
        if shell is None:
            return False
        shell.films.check(self.name, shell.area, closing)
        self.lower, self.upper = (self._middle + self._size * corner for corner in (shell.lower, shell.upper))
        if (own := shell.moments) is not None:
            self.moments = own.moved(self._size, np.eye(3), self._middle + self._size * own.middle)
        surface = self._surface = MeshSurface(shell, device)
        doubts = Doubts(shell, lambda x: surface.distance(x) < 0, self._middle, self._size)
        self.findings = replace(
            self.findings,
            holes=shell.films.holes,
            closed_share=shell.films.share(shell.area),
            open_edges=len(shell.rims),
            doubts=tuple(doubts.sentences()),
        )
        return True

    def _take_points(self, cloud: PointCloud, tolerance: float, depth: int, closing: float, device: wp.Device) -> Scan:
        scan = read_scan(cloud, closing, device)
        self.findings, self._middle, self._size = scan.findings, scan.middle, scan.size
        self.lower = scan.middle + scan.size * scan.positions.min(axis=0)
        self.upper = scan.middle + scan.size * scan.positions.max(axis=0)
        surface = FittedSurface(scan.positions, scan.normals, scan.areas, tolerance, depth, device)
        self._surface = surface
        self._refuse_doubtful(surface)
        return scan

    def _refuse_doubtful(self, surface: FittedSurface) -> None:
        """The side by the nearest piece of surface and by the winding number must agree, or the solid is a guess."""
        x = np.random.default_rng(0).uniform(self.lower, self.upper, (PLACES_PROBED, 3))
        wound = surface.soup.winding_number(self._scaled(x))
        clear = np.abs(wound - 0.5) > 0.25
        doubtful = float(((wound > 0.5) != self.inside(x))[clear].sum()) / PLACES_PROBED
        if doubtful > MOST_DOUBTFUL or clear.mean() < 0.5 or not (wound > 0.5).any():
            raise SolidError(
                f"{self.name}: the points do not tell inside from outside (they contradict themselves in "
                f"{100 * doubtful:.0f} % of the space); a solid needs points all around it, closer together than its "
                "walls are thick"
            )

    def _scaled(self, positions: Numbers) -> Floats:
        return np.asarray((np.asarray(positions, np.float64).reshape(-1, 3) - self._middle) / self._size)

    def distance(self, positions: Numbers) -> Floats:
        """Signed distance [m] of (N, 3) positions, negative inside, shape (N,)."""
        return self._size * np.asarray(self._surface.distance(self._scaled(positions)), np.float64)

    def gradient(self, positions: Numbers) -> Floats:
        """Unit direction in which the distance grows at (N, 3) positions; on the surface its outward normal, (N, 3)."""
        return np.asarray(self._surface.direction(self._scaled(positions)), np.float64)

    def inside(self, positions: Numbers) -> NDArray[np.bool_]:
        """Which of (N, 3) positions lie inside, shape (N,)."""
        return self.distance(positions) < 0

    def project(self, positions: Numbers) -> Floats:
        """Nearest points of the surface to (N, 3) positions [m], shape (N, 3)."""
        return self.closest(positions)[0]

    def closest(self, positions: Numbers) -> tuple[Floats, Floats, Floats]:
        """Nearest points of the surface to (N, 3) positions [m], (N, 3); outward normals there (N, 3); signed distances
        of the positions [m], (N,)."""
        foot, normal, distance = self._surface.closest(self._scaled(positions))
        return (
            np.asarray(self._middle + self._size * foot, np.float64),
            np.asarray(normal, np.float64),
            self._size * np.asarray(distance, np.float64),
        )

    def sees(self, one: Numbers, other: Numbers) -> NDArray[np.bool_]:
        """Which of the segments between (N, 3) positions stay inside the solid, shape (N,)."""
        return stays_inside(self.distance, one, other, self._size * self._surface.blur)

    @cached_property
    def volume(self) -> float:
        """[m³]: of a closed mesh that does not overlap itself, what its triangles enclose; else by quadrature on a grid
        that is refined along the surface."""
        if self.made_from == "mesh" and self.moments is not None:
            return self.moments.volume
        if self.skin.shape is not None and self.made_from == "shape":
            return _volume_of_shape(self.skin.shape)
        return volume_of(self.distance, self.lower, self.upper)

    def facts(self) -> Iterator[Fact]:
        yield "made from", self.made_from
        yield "size", extents_text(self.upper - self.lower)
        yield "points", f"{self.findings.points:,}"
        yield "volume", volume_text(self.volume)
        if self.findings.holes:
            share = 100 * self.findings.closed_share
            yield "holes", f"{self.findings.holes} closed, {share:.2g} % of the surface made up"
        yield from (("doubtful", sentence) for sentence in self.findings.doubts)

    def sample(
        self, count: int, refine: Sequence[Region] = (), on_surface: bool = False, basis: str = "linear"
    ) -> Nodes:
        """About `count` nodes (within 10 %) that share the volume among them, with quadrature points; the outermost
        half a spacing inside, or `on_surface`, for shape functions of a basis, or for the "cells" of phyxels.

        `refine` asks for more levels of the octree in some places: pairs of a `px.Box` or a function of (N, 3)
        positions that says which, and the number of levels.
        """
        if not isinstance(count, int | np.integer) or count < 8:
            raise PhyxelError(f"{self.name}: nodes = {count}: a body needs at least 8, a whole number")
        nodes = sample_nodes(self, int(count), refine, on_surface, basis)
        if len(nodes) < 8:
            raise SolidError(
                f"{self.name}: only {len(nodes)} nodes fit inside; ask for more nodes (nodes = {4 * count}), "
                "or check that the surface is closed"
            )
        return nodes

    def shape_functions(self, nodes: Nodes, basis: Basis = "linear", points: Numbers | None = None) -> ShapeFunctions:
        """Moving least squares over the nodes, well conditioned at their quadrature points, at the solid's skin and at
        (m, 3) `points` [m] of one's own: covers are widened where they must be (`covers.grown`)."""
        asked = [nodes.quadrature.points, self.skin.positions] + ([] if points is None else [points])
        everywhere = np.concatenate([np.asarray(x, np.float64).reshape(-1, 3) for x in asked])
        return grown(ShapeFunctions(nodes.positions, nodes.covers(basis), basis, self.sees), everywhere)


class ShapeSurface:
    """A built-in shape's own distance function, in metres."""

    blur = 0.0

    def __init__(self, shape: BuiltInShape) -> None:
        self._shape = shape

    def distance(self, points: Numbers) -> Numbers:
        """Signed distances (N,)."""
        return self._shape.distance(points)

    def direction(self, points: Numbers) -> Numbers:
        """Unit directions in which the distance grows (N, 3)."""
        return unit(self._shape.gradient(points))

    def closest(self, points: Numbers) -> tuple[Numbers, Numbers, Numbers]:
        """Nearest points (N, 3), directions there (N, 3), signed distances of the given points (N,)."""
        y = np.array(points, np.float64)
        for _ in range(6):
            slope = self._shape.gradient(y)
            steep = np.maximum((slope * slope).sum(axis=1), 0.25)
            y -= (self._shape.distance(y) / steep)[:, None] * slope
        return y, unit(self._shape.gradient(y)), self._shape.distance(points)


@lru_cache(maxsize=32)
def _volume_of_shape(shape: BuiltInShape) -> float:
    """[m³]; bodies of the same few shapes are made again and again."""
    lower, upper = (np.array(corner, float) for corner in (shape.lower, shape.upper))
    return volume_of(lambda x: np.asarray(shape.distance(x), float), lower, upper)


def stays_inside(
    distance: Callable[[Floats], Floats], one: NDArray[np.floating], other: NDArray[np.floating], blur: float = 0.0
) -> NDArray[np.bool_]:
    """Which of the segments between (N, 3) and (N, 3) stay in the solid with this signed distance, shape (N,): nodes of
    two legs may be near each other through the air, and must not feel each other (G04 §4.2.2, physics 9).

    Both ends look as far as the surface is away from them; the way between is walked in steps of that distance,
    which cannot jump over a gap.

    What passes outside by no more than `blur` [m] has not left. Points tell of no gap narrower than they are apart, in
    the middle of which half of that is to either side; but they lay a sharp edge in waves, and nodes along it that did
    not see each other for these made a bar bend more easily.
    """
    one, other = _ordered(np.asarray(one, np.float64).reshape(-1, 3), np.asarray(other, np.float64).reshape(-1, 3))
    way = other - one
    length = np.maximum(np.linalg.norm(way, axis=1), 1e-300)
    depth, end = distance(one), distance(other)
    seen, left = np.ones(len(one), bool), np.zeros(len(one), bool)
    step = SHORTEST_STEP * length
    at = np.maximum(-depth, step)
    last = length - np.maximum(-end, step)
    walking = np.flatnonzero(at < last)
    while len(walking):
        i = walking
        d = distance(one[i] + (at[i] / length[i])[:, None] * way[i])
        rise = (d - depth[i]) / np.maximum(-depth[i], step[i])
        left[i] = (d > GRAZING * length[i]) | ((d > 0.2 * step[i]) & (rise > STEEP)) | (left[i] & (d > 0))
        seen[i] = ~left[i] | (d <= blur)
        depth[i] = d
        # What may have left is followed closely, so that no place farther out is passed by.
        at[i] += np.where(left[i], np.maximum(blur - d, 0.1 * blur), np.maximum(np.abs(d), step[i]))
        walking = i[seen[i] & (at[i] < last[i])]
    return seen


def _ordered(one: Floats, other: Floats) -> tuple[Floats, Floats]:
    """The ends of each segment in an order of their own, so that both ways give the same answer."""
    difference = one - other
    first = np.argmax(difference != 0, axis=1)
    swap = np.take_along_axis(difference, first[:, None], axis=1) > 0
    return np.where(swap, other, one), np.where(swap, one, other)


def volume_of(distance: Callable[[Floats], Floats], lower: Floats, upper: Floats) -> float:
    """[m³], by the distance on a grid that is refined along the surface (physics 9.4). A part of a cut cell counts by
    how much of it lies inside if the surface is flat there."""
    extent = upper - lower
    counts = np.maximum(4, np.ceil(VOLUME_CELLS * extent / extent.max())).astype(int)
    cell = extent / counts
    centres = lower + cell * (np.indices(counts).reshape(3, -1).T + 0.5)
    depth = distance(centres)
    cut = np.abs(depth) < CUT_WITHIN * float(np.linalg.norm(cell))
    offsets = cell * ((np.indices((CELL_PARTS,) * 3).reshape(3, -1).T + 0.5) / CELL_PARTS - 0.5)
    parts = (centres[cut][:, None] + offsets).reshape(-1, 3)
    d = distance(parts).reshape(-1, *(CELL_PARTS,) * 3)
    share = np.clip(0.5 - d / _thickness(d, cell / CELL_PARTS), 0.0, 1.0)
    return float(cell.prod() * (((depth < 0) & ~cut).sum() + share.sum() / CELL_PARTS**3))


def _thickness(d: Floats, part: Floats) -> Floats:
    """How thick parts of cells are across the surface [m], by the distances in all parts of some cells, shape
    (m, k, k, k): that of a part (3,) along each axis, by the share that the surface's normal has of it. In flat bodies
    cells are flat, too."""
    square = np.stack([slope**2 for slope in np.gradient(d, *part, axis=(1, 2, 3))], axis=-1)
    whole = square.sum(axis=-1)
    return np.where(whole > 0, (square @ part) / np.where(whole > 0, whole, 1.0), part.max())
