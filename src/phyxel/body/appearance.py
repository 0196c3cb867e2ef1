"""What is seen of a body: its surfels where it is now, parted by its cracks."""

from __future__ import annotations

from copy import copy
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from phyxel.colors import color_of
from phyxel.cracks.crack import Cracks
from phyxel.errors import PhyxelError
from phyxel.material.look import LOOKS
from phyxel.mls.shape_values import ShapeValues
from phyxel.points.cloud import PointCloud
from phyxel.points.splats import Splats
from phyxel.region import Vector, Where, select
from phyxel.surface.discs import Rest, disc_radii
from phyxel.surface.hull import PressedSkin
from phyxel.surface.parted import Inner, Parted, Piece, Whole, parted
from phyxel.surface.surfels import Surfels

if TYPE_CHECKING:
    from phyxel.body.body import Body
    from phyxel.body.protocols import BodyWorld

Floats = NDArray[np.float64]

DULL, PALE = 0.7, 0.25
"""How much of its surface's hue the inside of a body has, and how much lighter it is, unless it is told."""
ROUGH = {"stone": 0.1, "clay": 0.05}
"""How far faces of cracks are tilted here and there, by look [rad]."""
AROUND = 3.0
"""How far from the nodes of a piece its surface may be, in spacings."""


class Appearance:
    """The surfels of a body. Those of a piece are some of the whole's, and all pieces share what they know of it."""

    def __init__(self, body: Body, inside: Vector | str | None) -> None:
        self._body = body
        self._inside = None if inside is None else np.array(color_of(f"{body.name}: inside", inside))
        self._surfels: Surfels | None = None
        self._carried_at = -1
        """revision of the world at which they were last carried"""
        self._cracks_shown = 0
        """revision of the cracks that they were last parted by"""
        self._whole: Whole | None = None
        self._own_points: NDArray[np.int64] | None = None
        """of a piece: which points of the whole it has, shape (m,)"""
        self._whole_cloud: PointCloud | None = None
        """of a piece: that of the whole"""

    def of_piece(self, piece: Body, points: NDArray[np.int64]) -> Appearance:
        """That of a piece with some of the points of its surface, ascending, (m,)."""
        new = copy(self)
        new._body, new._whole, new._whole_cloud = piece, self.whole_surface, self.whole_cloud
        new._own_points = points if self._own_points is None else self._own_points[points]
        new.outdate()
        if piece.fracture is not None:
            new.whole_surface.falls_apart(piece.fracture.cracks)
        return new

    def outdate(self) -> None:
        """Make the surfels anew when they are next asked for."""
        self._surfels, self._carried_at = None, -1

    def paint(self, where: Where, color: Vector | str) -> None:
        """See `Body.paint`."""
        body = self._body
        if self._surfels is not None or self._whole is not None:
            raise PhyxelError(f"{body.name}: paint: it has been shown already; paint it before")
        chosen = color_of(f"{body.name}: paint: color", color)
        points = body.placed_cloud()
        colors = np.array(self._colors)
        colors[select(where, points, f"{body.name}: paint")] = chosen
        body.cloud = body.cloud.with_colors(colors)

    def carried(self, world: BodyWorld) -> Surfels:
        """The surfels, where the body is now."""
        surfels = self.last_carried(world)
        if self._carried_at != world.revision:
            surfels.follow(self._body.motion)
            self._carried_at = world.revision
        return surfels

    def last_carried(self, world: BodyWorld) -> Surfels:
        """The surfels, where they were last carried."""
        body = self._body
        if self._surfels is None:
            self._surfels = Surfels(
                self.rest(), self._nodes, world.device, body.shape.sees, self._values, body.once, self._own_points
            )
            self._cracks_shown = 0
        if body.fracture is not None and not body.reshaped:
            self._show_cracks(self._surfels, body.fracture.cracks)
        return self._surfels

    @property
    def _values(self) -> ShapeValues | None:
        """Of the shape functions that carry surfels, if such do."""
        carried_by = self._body.kind.carried_by
        if carried_by == "neighbours":
            return None
        return self._body.ring.values if carried_by == "ring" else self._body.space.at_skin

    @property
    def is_sheet(self) -> bool:
        """Whether both sides of its surface can be seen."""
        return self._body.sheet is not None and self._body.ring.is_open

    @property
    def _nodes(self) -> Floats:
        """Where the nodes that carry surfels are in the reference shape, in units, shape (n, 3)."""
        body = self._body
        return (body.reference - body.centre) / body.unit if body.kind.bends else body.space.nodes

    def _show_cracks(self, surfels: Surfels, cracks: Cracks) -> None:
        """Let surfels be parted by cracks that have come or grown since they were last."""
        if self._cracks_shown == cracks.revision:
            return
        body, found, values = self._body, self._parted_by(cracks), None
        if body.kind.carried_by == "shape functions":
            values = body.space.at_skin.followed_by(body.space.at(found.shape.points[len(body.cloud) :]))
        surfels.part(found, cracks, self._nodes, body.sees, values)
        self._cracks_shown, self._carried_at = cracks.revision, -1

    def _parted_by(self, cracks: Cracks) -> Parted:
        body, piece = self._body, None
        if self._own_points is not None:
            assert body.remnant is not None
            X = body.birth_places
            piece = Piece(self._own_points, X.min(axis=0) - AROUND, X.max(axis=0) + AROUND, body.remnant.side)
        return parted(self.whole_surface, cracks, Inner(self.inner_color, ROUGH.get(body.look, 0.0)), piece)

    @property
    def inner_color(self) -> Floats:
        """Of what cracks lay open, red, green, blue in 0..1, shape (3,)."""
        if self._inside is not None:
            return self._inside
        mean = np.asarray(self.whole_surface.rest.colors, np.float64).mean(axis=0)
        dull = mean.mean() + DULL * (mean - mean.mean())
        return dull + PALE * (1 - dull)

    def rest(self) -> Rest:
        """The surfels in the reference shape, those that the body came with."""
        if self._own_points is not None:
            return self.whole_surface.rest.part(self._own_points)
        body, cloud = self._body, self._body.cloud
        assert cloud.normals is not None
        if body.sheet is not None:
            ring = body.ring
            return Rest(body.sheet.X, ring.normals, self._colors, body.unit, ring.radii, ring.axes)
        positions = (body.placed_cloud() - body.centre) / body.unit
        radii = body.once("radii", lambda: disc_radii(positions))
        return Rest(positions, cloud.normals @ body.shape.rotation.T, self._colors, body.unit, radii)

    @property
    def _colors(self) -> NDArray[np.floating]:
        """Of the points of its cloud, or what its look has for those without, (n, 3)."""
        cloud = self._body.cloud
        return np.broadcast_to(LOOKS[self._body.look].color, (len(cloud), 3)) if cloud.colors is None else cloud.colors

    def placed_splats(self) -> Splats | None:
        """The cloud's Gaussian splats, if it has some, turned and scaled as the body was; not moved."""
        splats, placement = self._body.cloud.splats, self._body.shape.placement
        return None if splats is None else splats.turned(placement.scale, placement.rotation)

    def pressed_skin(self) -> PressedSkin:
        """What wind and the like can press on."""
        body, cloud = self._body, self._body.cloud
        if body.sheet is not None:
            area, itself = body.unit**2 * body.sheet.areas[:, None] * body.ring.normals, np.arange(len(body.birth))
            if not body.ring.is_open:
                return PressedSkin(itself, area)
            return PressedSkin(np.tile(itself, 2), np.concatenate([area, -area]))
        if body.has_melted:
            carried = body.surface.carried
            return PressedSkin.found(carried.positions, carried.normals.astype(np.float64), body.positions)
        assert cloud.normals is not None
        normals = cloud.normals.astype(np.float64) @ body.shape.rotation.T
        return PressedSkin.found(body.placed_cloud(), normals, body.birth)

    @property
    def whole_surface(self) -> Whole:
        """What is seen of all that it is, or was once part of, without cracks."""
        if self._whole is None:
            self._whole = Whole(self.rest(), self._body.shape.depth)
        return self._whole

    @property
    def whole_cloud(self) -> PointCloud:
        """The points of all that it is, or was once part of."""
        return self._body.cloud if self._whole_cloud is None else self._whole_cloud
