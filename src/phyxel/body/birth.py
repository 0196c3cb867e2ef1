"""What a body has at birth: nodes in the solid that a cloud encloses, or the points of the cloud itself.

For a scan it takes many seconds to find the solid, its nodes and their shape functions: Galerkin and modal bodies
remember theirs on disk. The second start is quick, and never makes the solid unless something new is asked of it.
"""

from __future__ import annotations

from collections.abc import Callable, MutableMapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, partial
from itertools import product
from typing import TYPE_CHECKING, Any
from weakref import WeakValueDictionary

import numpy as np
import warp as wp
from numpy.typing import NDArray
from scipy.spatial import ConvexHull

from phyxel import device as dev
from phyxel.body.mass import balanced, moments_of
from phyxel.body.placement import Placement, Pose
from phyxel.cache import Kept, Once, digest, remembered
from phyxel.errors import PhyxelError, SolidError, tell
from phyxel.mls.shape_functions import Basis
from phyxel.models.galerkin.layout import Fabric, Layout, Placing
from phyxel.models.galerkin.space import Space
from phyxel.models.kind import ModelKind, Scheme
from phyxel.models.particles.sheet import Sheet
from phyxel.models.rigid.space import RigidSpace
from phyxel.points.cloud import PointCloud
from phyxel.points.completion import with_unit_normals
from phyxel.points.moments import SolidMoments
from phyxel.points.normals import areas_of, estimate_normals
from phyxel.points.shapes import SHAPES
from phyxel.region import BoxRegion, Vector
from phyxel.solid.nodes import Nodes
from phyxel.solid.octree import Region
from phyxel.solid.solid import Solid
from phyxel.surface.hull import summed
from phyxel.surface.tessellate import tessellated

if TYPE_CHECKING:
    from phyxel.body.body import Body

Floats = NDArray[np.float64]

ON_SURFACE = 1e-6
"""Distance from the surface, over the size of a solid, below which a place is on it."""
FORMAT = 17
"""Counts changes of how preparations are made: older ones are not used then."""


@dataclass(frozen=True, eq=False)
class Made:
    """What a body has at birth, which never changes: bodies that are born alike share it."""

    cloud: PointCloud
    """the points of its surface, with normals"""
    placement: Placement
    X: Floats
    """[m], shape (n, 3)"""
    volumes: Floats
    """[m³], shape (n,); of a particle surface areas, [m²]"""
    reach: Floats
    """how far nodes are from the surface [m], shape (n,)"""
    thickness: Floats
    """of the solid about nodes, in spacings, shape (n,)"""
    heft: Floats
    """mass of each node over that of its volume, shape (n,)"""
    along: Floats
    """projection onto the directions in which the surface goes on at each node, all of them inside, shape (n, 3, 3)"""
    unit: float
    """mean spacing [m]"""
    middle: Floats
    """of its volume as its model sees it [m], shape (3,): free bodies spin about it"""
    fabric: Callable[[wp.Device], Fabric] | None = None
    """what its fields are made of, if it fills a solid"""
    solid: Callable[[], Solid] | None = None
    """what it fills, if it does; made only if somebody asks"""
    sheet: Sheet | None = None
    """what its particles are linked by, if it is a surface"""
    moments: SolidMoments | None = None
    """of its solid, where its nodes have them"""
    evened: Callable[[], tuple[Floats, Floats]] | None = None
    """where nodes stand and what volumes they have once it flows, (n, 3) [m] and (n,) [m³], if it ever may"""
    once: Once = field(default_factory=Kept)
    """keeps what follows from all this alone"""


_living: WeakValueDictionary[str, Made] = WeakValueDictionary()
"""what bodies that are still there have, by a hash of all it depends on"""


def _shared(key: str | None, make: Callable[[], Made]) -> Made:
    """What a living body was given under this key, or what `make` makes: a world that is built again, as it was built
    before, has most of it at once."""
    made = None if key is None else _living.get(key)
    if made is None:
        made = make()
        for array in [*vars(made).values(), *vars(made.cloud).values()]:
            if isinstance(array, np.ndarray):
                array.setflags(write=False)  # it may be others', too
        if key is not None:
            _living[key] = made
    return made


def _key(cloud: PointCloud, refine: Sequence[Region], *asked: object) -> str | None:
    """A hash of what is asked for and of all that a cloud has; none where a function of one's own is part of it."""
    known = identity(cloud, refine)
    if known is None:
        return None
    splats = () if cloud.splats is None else (*cloud.splats.attributes.items(), *list(vars(cloud.splats).values())[1:])
    seen = (cloud.name, cloud.colors, cloud.quads, cloud.uv, cloud.uv_faces, *splats)
    return digest([*known, *seen, cloud.from_file, *asked])


# In a solid


@dataclass(frozen=True, eq=False)
class Interior:
    """What a cloud encloses, and the nodes that were asked for in it: bodies of one cloud share them wherever they are,
    and however they are turned."""

    solid: Solid
    _once: Once = field(default_factory=Kept)

    def nodes(self, count: int, refine: Sequence[Region], to_surface: bool, basis: str) -> Nodes:
        """About so many nodes in it (`Solid.sample`)."""

        def sampled() -> Nodes:
            return self.solid.sample(count, refine, to_surface, basis)

        return sampled() if refine else self._once((count, to_surface, basis), sampled)


interiors: MutableMapping[str, Interior] = WeakValueDictionary()
"""those of bodies that are still there, by a hash of all they depend on"""


def _interior(cloud: PointCloud, closing: float) -> Interior:
    key = _key(cloud, (), closing)
    found = None if key is None else interiors.get(key)
    if found is None:
        found = Interior(Solid(cloud, closing=closing))
        if key is not None:
            interiors[key] = found
    return found


@dataclass(frozen=True)
class Preparation:
    """Of one body, in the cloud's coordinates [m]."""

    skin: PointCloud
    """the points on the surface, with normals"""
    lower: Floats
    upper: Floats
    fabric: dict[str, NDArray[Any]]
    """a `Fabric` as arrays"""

    @property
    def nodes(self) -> Nodes:
        return Fabric.nodes_of(self.fabric)


def prepared(
    cloud: PointCloud,
    make: Callable[[], tuple[Solid, Nodes]],
    basis: Basis,
    key: Sequence[Any],
    refine: Sequence[Region],
) -> Preparation:
    """The preparation for a cloud, of which `make` makes a solid with nodes; these depend on `key` and `refine` too."""

    def compute() -> dict[str, NDArray[Any]]:
        solid, nodes = make()
        # The surface of a scan waves about the box that octants fill; a quadratic basis is as good as moments are.
        if solid.made_from == "points" or basis == "quadratic":
            nodes = nodes.weighed(moments_of(solid))
        assert solid.skin.normals is not None
        kept = np.arange(0) if solid.kept is None else solid.kept
        around = {"lower": solid.lower, "upper": solid.upper, "normals": solid.skin.normals, "kept": kept}
        try:
            return Fabric.woven(solid, nodes, basis, dev.pick()).state() | around
        except SolidError as error:
            raise SolidError(f"{solid.name}: {len(nodes)} nodes: {error}") from None

    known = identity(cloud, refine)
    content = compute() if known is None else remembered("body", [FORMAT, basis, *key, *known], compute)
    part = cloud if len(content["kept"]) == 0 else cloud.part(content["kept"])
    skin = replace(part, normals=content["normals"])
    return Preparation(skin, content["lower"], content["upper"], content)


def identity(cloud: PointCloud, refine: Sequence[Region]) -> list[Any] | None:
    """All that a solid and its nodes depend on; nothing where that includes a function of one's own."""
    if any(not isinstance(where, BoxRegion) for where, _ in refine):
        return None
    if cloud.shape is not None and SHAPES.get(cloud.shape.name) is not cloud.shape:
        return None
    name = "" if cloud.shape is None else cloud.shape.name
    mesh = () if cloud.mesh is None else (cloud.mesh.vertices, cloud.mesh.faces)
    boxes = [(np.asarray(box.lower, float), np.asarray(box.upper, float), levels) for box, levels in refine]  # type: ignore
    return [name, cloud.positions, cloud.normals, cloud.faces, *mesh, *(part for box in boxes for part in box)]


def filled(
    pose: Pose,
    cloud: PointCloud,
    kind: ModelKind,
    scheme: Scheme,
    basis: Basis,
    count: int,
    closing: float,
    refine: Sequence[Region],
) -> Made:
    """About `count` nodes in the solid of a cloud, as a scheme has them; those that carry shape functions are
    remembered on disk."""
    key = _key(cloud, refine, *pose.asked, kind.name, scheme.nodes, basis, count, closing)
    with_fields = kind.carried_by == "shape functions" and kind.bends

    def make() -> Made:
        made = _filled(pose, cloud.copy(), scheme, with_fields, basis, count, closing, refine)
        return made if kind.bends else _weighed(made)

    return _shared(key, make)


def _filled(
    pose: Pose,
    cloud: PointCloud,
    scheme: Scheme,
    with_fields: bool,
    basis: Basis,
    count: int,
    closing: float,
    refine: Sequence[Region],
) -> Made:
    @cache
    def interior() -> Interior:
        found = _interior(cloud, closing)
        for doubt in found.solid.findings.doubts:
            tell(f"{pose.name}: {doubt}")
        return found

    def solid() -> Solid:
        return interior().solid

    def sampled() -> tuple[Solid, Nodes]:
        regions = [pose.of(solid().skin, solid().lower, solid().upper).region_in_cloud(entry) for entry in refine]
        to_surface = scheme.nodes == "to the surface"
        return solid(), interior().nodes(count, regions, to_surface, basis if with_fields else "cells")

    if not with_fields:
        inside, nodes = sampled()
        if scheme.consistent and inside.made_from == "points":
            nodes = nodes.weighed(moments_of(inside))
        placement, skin = pose.of(inside.skin, inside.lower, inside.upper), inside.skin
        X = placement.placed(nodes.positions)
        heft = nodes.hefts() if scheme.consistent else np.ones(len(X))
        middle = np.average(X, axis=0, weights=nodes.volumes * heft)
        fabric = partial(Fabric.woven, inside, nodes, basis)
    else:
        placing = (cloud.from_file, *pose.asked) if refine else ()
        ready = prepared(cloud, sampled, basis, (count, closing, *placing), refine)
        placement, skin, nodes = pose.of(ready.skin, ready.lower, ready.upper), ready.skin, ready.nodes
        X, within = placement.placed(nodes.positions), nodes.quadrature
        middle, heft = placement.placed(np.average(within.points, axis=0, weights=within.weights)), np.ones(len(X))
        fabric = partial(Fabric.restored, ready.fabric, basis)
    scale, spacing = placement.scale, nodes.spacing * placement.scale
    volumes, reach, thickness = nodes.volumes * scale**3, nodes.reach * scale, nodes.thickness
    along = _anywhere(X) if nodes.along is None else placement.rotation @ nodes.along @ placement.rotation.T

    @cache
    def evened() -> tuple[Floats, Floats]:
        there, shares = nodes.evened()
        return placement.placed(there), shares * scale**3

    weighed = volumes, reach, thickness, heft
    return Made(skin, placement, X, *weighed, along, spacing, middle, fabric, solid, evened=evened)


def _anywhere(X: Floats) -> Floats:
    """Projections onto all directions for each node, (n, 3, 3)."""
    return np.broadcast_to(np.eye(3), (len(X), 3, 3))


def _weighed(made: Made) -> Made:
    """The same with nodes that have the volume and the middle of the solid itself."""
    assert made.solid is not None
    own, placement = moments_of(made.solid()), made.placement
    whole = own.moved(placement.scale, placement.rotation, placement.placed(own.middle))
    return replace(made, volumes=balanced(made.X, made.volumes, whole), middle=whole.middle, moments=whole)


# On a surface


def sheeted(pose: Pose, cloud: PointCloud, links: str | int | None, warp: Vector) -> Made:
    """The points of a cloud as particles, linked by its mesh or with their nearest."""
    return _shared(_key(cloud, (), *pose.asked, links, warp), lambda: _sheeted(pose, cloud.copy(), links, warp))


def _sheeted(pose: Pose, cloud: PointCloud, links: str | int | None, warp: Vector) -> Made:
    cloud = _surface(cloud)
    placement = pose.of(cloud, cloud.lower, cloud.upper)
    X, turn = placement.placed(cloud.positions), placement.rotation
    unit, start = _spacing(X, cloud), X.mean(axis=0)
    normals = np.asarray(cloud.normals, np.float64) @ turn.T
    along = tuple((turn @ np.asarray(warp, np.float64)).tolist())
    try:
        sheet = Sheet.made((X - start) / unit, normals, cloud.faces, cloud.quads, links, along)
    except PhyxelError as error:
        raise PhyxelError(f"{pose.name}: {error}") from None
    middle = start + unit * np.average(sheet.X, axis=0, weights=sheet.areas)
    sheet = replace(sheet, X=(X - middle) / unit)
    none, heft = np.zeros(len(X)), np.ones(len(X))
    return Made(cloud, placement, X, sheet.areas * unit**2, none, none, heft, _anywhere(X), unit, middle, sheet=sheet)


def _surface(cloud: PointCloud) -> PointCloud:
    """A cloud whose points are all part of a surface, with normals. A built-in shape gets a mesh."""
    if cloud.faces is None and cloud.shape is not None:
        cloud = tessellated(cloud)
    cloud = with_unit_normals(cloud.checked())
    if cloud.faces is not None:
        cloud = _without_strays(cloud)
    if cloud.normals is not None:
        return cloud
    if cloud.faces is None:
        return replace(cloud, normals=estimate_normals(cloud.positions))
    a, b, c = np.swapaxes(cloud.positions[cloud.faces], 0, 1)
    around = summed(cloud.faces.ravel(), np.repeat(np.cross(b - a, c - a), 3, axis=0), len(cloud))
    return with_unit_normals(replace(cloud, normals=around))


def _without_strays(cloud: PointCloud) -> PointCloud:
    """A mesh without points that no face has: such as were put on its faces to be seen."""
    assert cloud.faces is not None
    used, faces = np.unique(cloud.faces, return_inverse=True)
    if len(used) == len(cloud):
        return cloud
    quads = None if cloud.quads is None else np.searchsorted(used, cloud.quads).astype(np.int32)
    faces = faces.reshape(-1, 3).astype(np.int32)
    return replace(cloud.part(used), faces=faces, quads=quads, uv=cloud.uv, uv_faces=cloud.uv_faces)


def _spacing(X: Floats, cloud: PointCloud) -> float:
    """Mean length of the edges, or of points alone, side of a square of their mean area [m]."""
    corners = cloud.faces if cloud.quads is None else cloud.quads
    if corners is None:
        return float(np.sqrt(areas_of(X).mean()))
    return float(np.linalg.norm(X[corners] - X[np.roll(corners, 1, axis=1)], axis=2).mean())


# The displacement fields that a body can have


def field_space(body: Body, device: wp.Device) -> Space:
    """Fields of shape functions over a body's nodes."""
    return body.once(("space", str(device)), lambda: _whole_space(body, device))


def rigid_space(body: Body, device: wp.Device) -> RigidSpace:
    """Rigid motions of a body; of a crumb, which knows no more of its solid than its nodes, as well."""
    X, volumes = (body.birth - body.centre) / body.unit, body.volumes * body.nodes.heft / body.unit**3
    skin, whole = body.shape.in_units(body.placed_cloud()), body.made.moments
    if whole is None:
        return RigidSpace(X, volumes, skin, device)
    left_out = whole.second / body.unit**5 - (volumes[:, None] * X).T @ X
    spread = np.broadcast_to(left_out / volumes.sum(), (len(X), 3, 3))
    return RigidSpace(X, volumes, skin, device, spread, body.once("corners", lambda: _corners(body)))


def _corners(body: Body) -> Floats:
    """Those of the convex hull of a body, in units, shape (k, 3): of its mesh, if it has one, else of its points. Where
    its solid fills a corner of its box, that is one: points are put on faces, not on edges."""
    cloud, solid = body.cloud, body.solid
    ends = np.array(list(product(*np.stack([solid.lower, solid.upper], axis=1))))
    filled_ends = ends[np.abs(solid.distance(ends)) < ON_SURFACE * (solid.upper - solid.lower).max()]
    places = np.concatenate([filled_ends, cloud.positions if cloud.mesh is None else cloud.mesh.vertices])
    return body.shape.in_units(body.shape.placement.placed(places[np.sort(ConvexHull(places).vertices)]))


def _whole_space(body: Body, device: wp.Device) -> Space:
    shape, born = body.shape, body.born
    middle = shape.placement.unplaced(born.centre[None])[0]
    placing = Placing(middle, born.unit / shape.placement.scale, shape.rotation)
    fabric, solid = body.made.fabric, body.made.solid
    assert fabric is not None and solid is not None

    def sees(one: NDArray[np.floating], other: NDArray[np.floating]) -> NDArray[np.bool_]:
        return solid().sees(one, other)  # the solid is made only if somebody looks

    return Space.whole(Layout(fabric(device), placing, shape.in_units(body.placed_cloud()), sees, device)).prepare()
