"""A body: a cloud, the solid it encloses, the model that moves it and the surface that is seen, under one name."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import cKDTree
from scipy.spatial.transform import Rotation

from phyxel.cracks.crack import Crack
from phyxel.cracks.cracks import Cracks
from phyxel.cracks.fracture import Fracture
from phyxel.cracks.samples import scattered
from phyxel.errors import PhyxelError
from phyxel.handle import Handle, Motion, stays, turn_of, way_of
from phyxel.look import look_named
from phyxel.material import Material, Mixture
from phyxel.mixing import Recipe, Variation
from phyxel.mls.neighbours import nearest
from phyxel.mls.seen import homes, seen_pairs
from phyxel.mls.shape_functions import Basis
from phyxel.models.lone import check_solid
from phyxel.models.phyxel import Part
from phyxel.models.rigid import RigidSpace
from phyxel.models.space import Placing, Space
from phyxel.points.cloud import PointCloud
from phyxel.points.splats import Splats
from phyxel.preparation import prepared
from phyxel.ramp import Ramp
from phyxel.region import Box, Spot, Vector, Where, as_vector, select
from phyxel.solid.fabric import Fabric
from phyxel.solid.guide import Guide
from phyxel.solid.nodes import Nodes
from phyxel.solid.octree import Region
from phyxel.solid.solid import CLOSING, Solid
from phyxel.surface.discs import Rest
from phyxel.surface.parted import Inner, Parted, Piece, Whole, parted
from phyxel.surface.skin import Skin
from phyxel.surface.surfels import Surfels

if TYPE_CHECKING:
    from phyxel.probes import Probe
    from phyxel.skeleton import Skeleton
    from phyxel.world import World

Floats = NDArray[np.float64]

MODES, MOST_MODES = 64, 256
"""Modes of a modal body, unless it is told, and at most."""
LIGHT = 3.0e8
"""[m/s]"""
PAIRED = {"refine": "levels", "parts": "material"}
GREY = (0.72, 0.72, 0.74)
DULL, PALE = 0.7, 0.25
"""How much of its surface's hue the inside of a body has, and how much lighter it is, unless it is told."""
ROUGH = {"stone": 0.1, "clay": 0.05}
"""How far faces of cracks are tilted here and there, by look [rad]."""
MELTING_TIME = 0.05
"""Viscosity of a melt over the pressure of its own height [s], unless it is given."""
MELTED_STIFFNESS = 30.0
"""Largest Young's modulus of a melt over the pressure of its own height: stiffer melts only take smaller steps."""
ASKED = 16
"""Nearest nodes that are asked whether they see a place beside a crack."""
BESIDE = 2.0
"""Distance from its solid within which a piece knows what has parted from it, in spacings."""
AROUND = 3.0
"""How far from the nodes of a piece its surface may be, in spacings."""
PICKED = 1.5
"""How far around a picked surfel nodes are taken hold of, in spacings."""


@dataclass(eq=False)
class Anchor:
    """The length a body computes in and where its numbers are counted from. Bodies that flow together share one."""

    unit: float
    """mean node spacing [m]"""
    centre: Floats
    """middle of the reference shape [m], shape (3,)"""
    origin: Floats
    """where that is now [m], shape (3,); the world moves it along with the body"""


class Body:
    """A deformable body. Quantities are in SI units and world axes, y up.

    `at` moves the cloud, `rotate` (degrees about x, y, z, in this order) turns it about the middle of its bounding box,
    `size` [m] scales its largest extent. `velocity` [m/s] and `spin` [rad/s] are what it starts with.
    `support` is the radius within which nodes feel each other, over the mean distance to their ten nearest. `refine`
    asks for finer nodes: pairs of a `px.Box` or a function of (n, 3) reference positions, and a number of octree
    levels, each of which halves their distance. `closing` is the share of the surface that may be made up where the
    points leave it open. `parts` are regions of other materials, pairs of a place and a `Material`, later ones over
    earlier; `vary` lets numbers of the material vary over the body: `{"young": px.Channel("red", 1e5, 1e7)}`, or a
    function of (n, 3) reference positions in place of the channel. Later changes of the material scale with it.
    `friction` is Coulomb's coefficient against itself; two bodies rub with the geometric mean of theirs.
    `look` is what it is drawn as: "gummy", "wax", "clay", "stone" or "matte". `surface` is "carried" (its points go
    with the nodes around them) or "blended" (so they do while it is solid; while it flows they part and join with it,
    and in a mold take its relief), which is also what you get if you say nothing. `inside` is the colour (red, green,
    blue from 0 to 1) of what cracks lay open; if left out, a paler one than that of its surface.

    `model` is what moves it: "phyxel" (does everything: dents, melts, meets other bodies), "galerkin" (accurate: stress
    and strain at every point, with a "linear" or "quadratic" `basis`) or "modal" (in real time: the softest `modes` of
    vibration, bent as far as you like). The latter two are for solids and have their outermost nodes on the surface;
    they meet colliders, and Galerkin bodies each other.

    What has a `strength` cracks where its stress exceeds it (not "modal"); `seed` is what its scatter is drawn with.
    """

    def __init__(
        self,
        cloud: PointCloud,
        *,
        material: Material | None = None,
        nodes: int = 800,
        model: str = "phyxel",
        integrator: str | None = None,
        surface: str | None = None,
        at: Vector = (0.0, 0.0, 0.0),
        rotate: Vector | None = None,
        size: float | None = None,
        velocity: Vector = (0.0, 0.0, 0.0),
        spin: Vector = (0.0, 0.0, 0.0),
        name: str | None = None,
        support: float = 2.0,
        refine: Sequence[Region] = (),
        closing: float = CLOSING,
        parts: Sequence[tuple[Where, Material]] = (),
        vary: Mapping[str, Variation] | None = None,
        friction: float = 0.5,
        look: str = "gummy",
        basis: Basis = "linear",
        modes: int = MODES,
        inside: Vector | None = None,
        seed: int = 0,
    ) -> None:
        if not isinstance(cloud, PointCloud):
            raise PhyxelError(f"Body({cloud!r}): give a point cloud, for example px.load({str(cloud)!r})")
        if material is not None and not isinstance(material, Material):
            raise PhyxelError(f"{cloud.name}: material = {material!r}: give a Material, for example Material.rubber()")
        if name is not None and not isinstance(name, str):
            raise PhyxelError(f"{cloud.name}: name = {name!r}: give a word")
        self.name = name or cloud.name
        for key, value, kind in (
            ("refine", refine, Sequence),
            ("parts", parts, Sequence),
            ("vary", vary or {}, Mapping),
        ):
            if not isinstance(value, kind):
                example = '{"young": px.Channel("x", 1e5, 1e6)}' if key == "vary" else f"[(px.Box(...), {PAIRED[key]})]"
                raise PhyxelError(f"{self.name}: {key} = {value!r}: give {example}")
        self._check_choice("model", model, ("phyxel", "galerkin", "modal"))
        self.model = model
        """what moves it"""
        self._check_choice("integrator", integrator, (None, "leapfrog", "implicit"))
        self.integrator = integrator
        self._check_choice("surface", surface, (None, "carried", "blended"))
        self._check_choice("basis", basis, ("linear", "quadratic"))
        self.basis, self.modes = basis, modes
        self._check_model()
        self.blends = surface != "carried"
        """whether the surface is blended with an implicit skin while the body flows"""
        if not 1.2 <= support <= 5:
            raise PhyxelError(f"{self.name}: support = {support}: give 1.2 to 5 (2 is right for most)")
        self.friction = friction
        self.look = look
        self._given, self._closing = cloud, closing
        self._material = material or Material.rubber()
        self._ramp: Ramp | None = None
        self._force = np.zeros(3)
        sampled = self._sample(nodes, refine, at, rotate, size)
        self.birth: Floats = self.placed(sampled.positions)
        """X in the first reference shape [m], shape (n, 3)"""
        self.volumes: Floats = sampled.volumes * self._scale**3
        """[m³], shape (n,)"""
        self._reach = sampled.reach * self._scale
        centre = self._middle_of(sampled)
        self.anchor = Anchor(sampled.spacing * self._scale, centre, centre.copy())
        self.born = Anchor(self.anchor.unit, centre, centre)
        self.reshaped = False
        """whether the reference shape is not that of birth"""
        self.has_melted = False
        self._skin: Skin | None = None
        self._skin_at = -1
        arm = self.birth - centre
        spun = np.cross(self._vector("spin", spin), arm)
        self.start_velocities: Floats = self._vector("velocity", velocity) + spun
        """[m/s], shape (n, 3)"""
        if np.abs(self.start_velocities).max() > LIGHT:
            raise PhyxelError(f"{self.name}: velocity = {velocity}, spin = {spin}: faster than light; give less")
        self._recipe = Recipe(self, self._material, parts, vary or {})
        self._material = self._recipe.base
        self.check_material(self._material)
        self.mixture = self.first_mixture = self._recipe.mixed(self._material)
        """what each node is made of"""
        self._solid = self.mixture
        """what each node was when it was last solid"""
        self.support = support
        self.fracture: Fracture | None = None
        """its cracks and the rules by which they run; none if it cannot crack"""
        self.seed = self._checked_seed(seed)
        self._luck: Floats = np.random.default_rng(seed).standard_normal(len(self.birth))
        self._may_crack()
        self.handles: list[Handle] = []
        self._world: World | None = None
        self._surfels: Surfels | None = None
        self._surfels_at = -1
        self.whole = self.name
        """the name of the body that it was once part of, or its own"""
        self._lost: Floats = np.zeros((0, 3))
        """where nodes were at birth that have parted from it, in body units, shape (k, 3)"""
        self._parted_by: Cracks | None = None
        """the cracks as they were then"""
        self.guide: Guide | None = None
        """distances of its solid, for contact; known when first needed"""
        self.certificate: bytes = self._signature()
        """what it was at birth, whole, as a hash"""
        self._parted_at = 0
        """revision of the cracks at which it was last asked whether it has parted"""
        self._inside = None if inside is None else self._color("inside", inside)
        self._whole: Whole | None = None
        self._own_points: NDArray[np.int64] | None = None
        """of a piece: which points of the whole it has, shape (m,)"""

    @cached_property
    def solid(self) -> Solid:
        """What the cloud encloses."""
        return Solid(self._given, closing=self._closing)

    def _sample(
        self, count: int, refine: Sequence[Region], at: Vector, rotate: Vector | None, size: float | None
    ) -> Nodes:
        """Nodes in the cloud's coordinates; finds the points of the surface and where all of it is placed."""

        def sampled() -> tuple[Solid, Nodes]:
            self._place(self.solid.lower, self.solid.upper, at, rotate, size)
            regions = [self._in_cloud(entry) for entry in refine]
            return self.solid, self.solid.sample(count, regions, self.model != "phyxel", self.basis)

        if self.model == "phyxel":
            solid, nodes = sampled()
            self.cloud, self._sampled = solid.skin, nodes
            return nodes
        placing = (at, rotate, size) if refine else ()
        made = prepared(self._given, sampled, self.basis, (count, self._closing, *placing), refine)
        self.cloud, self._fabric = made.skin, made.fabric
        self._place(made.lower, made.upper, at, rotate, size)
        return made.nodes

    def _middle_of(self, nodes: Nodes) -> Floats:
        """The middle of the volume as its model sees it [m], shape (3,): free bodies spin about it."""
        if self.model == "phyxel":
            return np.average(self.birth, axis=0, weights=self.volumes)
        within = nodes.quadrature
        return self.placed(np.average(within.points, axis=0, weights=within.weights))

    @property
    def unit(self) -> float:
        """Mean node spacing [m]: the length the body computes in."""
        return self.anchor.unit

    @property
    def centre(self) -> Floats:
        """Middle of the reference shape [m], shape (3,)."""
        return self.anchor.centre

    @property
    def origin(self) -> Floats:
        """Where the middle of the reference shape is now [m], shape (3,)."""
        return self.anchor.origin

    @origin.setter
    def origin(self, origin: Floats) -> None:
        self.anchor.origin = origin

    @property
    def reference(self) -> Floats:
        """X [m], shape (n, 3): the shape at birth; of what has melted, that in which strain was last absorbed."""
        return self.centre + self.unit * self._field("X") if self.reshaped else self.birth

    @property
    def places(self) -> Floats:
        """Where regions look for nodes [m], shape (n, 3): in the shape at birth; of what has melted, where it was when
        its shape was last absorbed."""
        return self.reference if self.has_melted else self.birth

    def be_born_again(self) -> None:
        """Forget every reference shape but the first."""
        born = self.born
        self.anchor, self._surfels = Anchor(born.unit, born.centre, born.origin.copy()), None
        self.reshaped = self.has_melted = False

    def _check_model(self) -> None:
        """Refuse what its model knows nothing of."""
        if self.model != "phyxel" and self.integrator == "leapfrog":
            raise PhyxelError(f'{self.name}: integrator = "leapfrog": model = "{self.model}" takes implicit steps only')
        if self.model == "phyxel" and self.basis != "linear":
            raise PhyxelError(f'{self.name}: basis = "{self.basis}": needs model = "galerkin" or "modal"')
        whole = isinstance(self.modes, int | np.integer) and not isinstance(self.modes, bool)
        if not (whole and 1 <= self.modes <= MOST_MODES):
            raise PhyxelError(f"{self.name}: modes = {self.modes}: give a whole number from 1 to {MOST_MODES}")
        if self.model != "modal" and self.modes != MODES:
            raise PhyxelError(f'{self.name}: modes = {self.modes}: needs model = "modal"')

    def _check_choice(self, key: str, value: Any, known: tuple[Any, ...]) -> None:
        if value not in known:
            names = ", ".join(f'"{k}"' for k in known if k)
            raise PhyxelError(f'{self.name}: {key} = "{value}": not known; there is {names}')

    def _vector(self, key: str, value: Vector) -> Floats:
        return as_vector(f"{self.name}: {key}", value)

    # Placement: cloud coordinates -> world

    def _place(self, lower: Floats, upper: Floats, at: Vector, rotate: Vector | None, size: float | None) -> None:
        if size is not None and not (isinstance(size, int | float | np.number) and np.isfinite(size) and size > 0):
            raise PhyxelError(f"{self.name}: size = {size}: give the largest extent in metres, above 0")
        self._middle = 0.5 * (lower + upper)
        self._scale = 1.0 if size is None else float(size) / float((upper - lower).max())
        angles = self._vector("rotate", (0.0, 0.0, 0.0) if rotate is None else rotate)
        self.rotation: Floats = Rotation.from_euler("xyz", angles, degrees=True).as_matrix()
        """how the cloud's axes stand in the world, 3 × 3"""
        self._at = self._vector("at", at)

    def placed(self, positions: NDArray[np.floating]) -> Floats:
        """Where (m, 3) places of the cloud are in the shape at birth [m], shape (m, 3)."""
        turned = (np.asarray(positions, np.float64) - self._middle) @ self.rotation.T
        return self._at + self._middle + self._scale * turned

    def placed_cloud(self) -> Floats:
        """Where the cloud's points are in the reference shape [m], shape (m, 3)."""
        return self.placed(self.cloud.positions)

    def placed_splats(self) -> Splats | None:
        """The cloud's Gaussian splats, if it has some, turned and scaled as the body was; not moved."""
        return None if self.cloud.splats is None else self.cloud.splats.turned(self._scale, self.rotation)

    def sees(self, one: NDArray[np.floating], other: NDArray[np.floating]) -> NDArray[np.bool_]:
        """Whether positions (n, 3) and (n, 3) at birth, in body units, see each other inside the solid, past cracks."""
        seen = self._sees_in_solid(one, other)
        return seen if self.fracture is None else seen & self.fracture.cracks.sees(one, other)

    def _sees_in_solid(self, one: NDArray[np.floating], other: NDArray[np.floating]) -> NDArray[np.bool_]:
        born = self.born
        there, here = (self._unplaced(born.centre + born.unit * np.asarray(x, np.float64)) for x in (one, other))
        return self.solid.sees(there, here)

    def solid_distance(self, positions: NDArray[np.floating]) -> Floats:
        """Signed distance of (n, 3) positions at birth from the solid's surface, all in body units, shape (n,). What
        has parted from it is outside."""
        there = self._unplaced(self.born.centre + self.born.unit * np.asarray(positions, np.float64))
        distance = self.solid.distance(there) * (self._scale / self.born.unit)
        return self._narrowed(positions, distance)

    def _in_cloud(self, entry: Region) -> Region:
        """A region to refine, given in reference positions, in those of the cloud."""
        if not (isinstance(entry, Sequence) and len(entry) == 2 and callable(entry[0])):
            return entry  # the solid says what is wrong with it
        where, levels = entry
        if isinstance(where, Box) and np.array_equal(self.rotation, np.eye(3)):
            lower, upper = (
                self._middle + (np.asarray(corner, float) - self._at - self._middle) / self._scale
                for corner in (where.lower, where.upper)
            )
            return Box(lower.tolist(), upper.tolist()), levels
        return lambda positions: where(self.placed(positions)), levels

    def _unplaced(self, positions: Floats) -> Floats:
        return self._middle + (positions - self._at - self._middle) @ self.rotation / self._scale

    @cached_property
    def space(self) -> Any:
        """The fields (`Space`) a Galerkin or modal body can have; a phyxel body is asked for its modes in them. A crumb
        has a `RigidSpace`."""
        device = self._in_world("space").device
        skin = (self.placed_cloud() - self.born.centre) / self.born.unit
        if self.model == "rigid":
            return RigidSpace((self.birth - self.centre) / self.unit, self.volumes / self.unit**3, skin, device)
        fabric = (
            Fabric.woven(self.solid, self._sampled, self.basis, device)
            if self.model == "phyxel"
            else Fabric.restored(self._fabric, self.basis, device)
        )
        placing = Placing(self._unplaced(self.born.centre[None])[0], self.born.unit / self._scale, self.rotation)
        return Space(fabric, placing, skin, self._sees_in_cloud, device)

    def _sees_in_cloud(self, one: NDArray[np.floating], other: NDArray[np.floating]) -> NDArray[np.bool_]:
        return self.solid.sees(one, other)

    @property
    def outermost(self) -> NDArray[np.int64]:
        """Nodes that may touch something, shape (k,): those on the surface."""
        return np.flatnonzero(self._reach == 0)

    def part(self) -> Part:
        """What the model takes, in units of the mean node spacing about the origin."""
        return Part(
            positions=(self.birth - self.centre) / self.unit,
            velocities=self.start_velocities / self.unit,
            volumes=self.volumes / self.unit**3,
            reach=self._reach_beside_cracks(),
            unit=self.unit,
            support=self.support,
            sees=self.sees,
        )

    # Falling apart

    def _signature(self) -> bytes:
        digest = hashlib.sha256(f"{self.model} {self.basis} {self.modes}".encode())
        digest.update(np.ascontiguousarray(self.birth).tobytes())
        digest.update(np.ascontiguousarray(self.volumes).tobytes())
        digest.update(self.mixture.signature())
        return digest.digest()

    @property
    def birth_places(self) -> Floats:
        """X at birth in body units, shape (n, 3): what cracks count in."""
        return (self.birth - self.born.centre) / self.born.unit

    @property
    def held_places(self) -> Floats:
        """What is held, at birth and in body units, shape (k, 3)."""
        held = [np.zeros((0, 3)), *(handle.points for handle in self.handles)]
        return (np.concatenate(held) - self.born.centre) / self.born.unit

    @property
    def strength(self) -> Floats:
        """Largest principal stress that its nodes bear [Pa], shape (n,); infinite where it never cracks."""
        return scattered(self.mixture.number("strength"), self.mixture.number("strength_scatter"), self._luck)

    @property
    def is_brittle(self) -> bool:
        """Whether cracks can start or run in it."""
        return self.fracture is not None and not self.has_melted and bool(np.isfinite(self.strength).any())

    @property
    def has_cracked(self) -> bool:
        """Whether there is a crack in it, or it is a piece of what fell apart."""
        return self.fracture is not None and len(self.fracture.cracks) > 0

    def _checked_seed(self, seed: int) -> int:
        if isinstance(seed, bool) or not isinstance(seed, int | np.integer) or seed < 0:
            raise PhyxelError(f"{self.name}: seed = {seed!r}: give a whole number of 0 or more")
        return int(seed)

    def _may_crack(self) -> None:
        """Be ready to crack if it has a strength."""
        if self.fracture is None and np.isfinite(self.strength).any():
            self.fracture = self._sound()

    def _sound(self) -> Fracture:
        """Its rules of fracture, with no crack as yet."""
        if self.model == "modal":
            raise PhyxelError(
                f'{self.name}: model = "modal" cannot crack, its modes are those of a whole body; '
                '"galerkin" and "phyxel" do'
            )
        skin, normals = (self.placed_cloud() - self.born.centre) / self.born.unit, self.cloud.normals
        assert normals is not None
        outward = normals.astype(np.float64) @ self.rotation.T
        tree = cKDTree(skin)

        def depth(X: Floats) -> Floats:
            # By the nearest surfel: the solid itself need not be made for this.
            near = tree.query(X)[1]
            return np.asarray(np.einsum("na,na->n", X - skin[near], outward[near]), np.float64)

        return Fracture(skin.min(axis=0), skin.max(axis=0), depth)

    def cut(self, at: Vector, normal: Vector, radius: float | None = None, ahead: Vector | None = None) -> None:
        """Put in a crack through `at` [m] across `normal`, in the reference shape: a disc of a `radius` [m]; with
        `ahead`, all that lies behind its straight front through `at`, which looks there; else all through."""
        if self.reshaped:
            raise PhyxelError(f"{self.name}: cut: it has melted; only what has its first shape can be cut")
        if radius is not None and ahead is not None:
            raise PhyxelError(f"{self.name}: cut: give radius for a disc, or ahead for a slit, not both")
        if radius is not None and not (isinstance(radius, int | float) and 0 < radius < np.inf):
            raise PhyxelError(f"{self.name}: cut: radius = {radius}: give a length above 0 m")
        place = (self._vector("cut: at", at) - self.born.centre) / self.born.unit
        across = self._direction("cut: normal", normal)
        fracture = self.fracture or self._sound()
        if radius is not None:
            crack = Crack.disc(fracture.grid, place, across, float(radius) / self.born.unit)
        elif ahead is not None:
            crack = Crack.slit(fracture.grid, place, across, self._direction("cut: ahead", ahead))
        else:
            crack = Crack.plane(fracture.grid, place, across)
        fracture.cut(crack)
        self.fracture = fracture
        if self._world is not None:
            self._world.mover_of(self).cut(self)

    def _direction(self, key: str, value: Vector) -> Floats:
        way = self._vector(key, value)
        if not way.any():
            raise PhyxelError(f"{self.name}: {key} = {value}: give a direction, not zero")
        return way

    def may_have_parted(self) -> bool:
        """Whether its cracks have changed since this was last asked."""
        if self.model == "rigid":
            return False
        now = 0 if self.fracture is None else self.fracture.cracks.revision
        before, self._parted_at = self._parted_at, now
        return now != before and not self.reshaped

    def homes_of_points(self) -> NDArray[np.int64]:
        """The node that each point of the cloud goes with, shape (m,)."""
        if self.model != "phyxel":
            return self.space.homes_of_skin()
        points = (self.placed_cloud() - self.born.centre) / self.born.unit
        return homes(points, self.birth_places, self.sees, ASKED)

    def piece(self, name: str, nodes: NDArray[np.int64], points: NDArray[np.int64], cracks: Cracks) -> Body:
        """A body of its own, of some nodes (k,) and points of its surface (m,) that `cracks` have parted from the rest,
        where they are."""
        self._whole = self.whole_surface  # all pieces share it
        piece = copy(self)
        piece.name, piece.handles = name, []
        piece.anchor = Anchor(self.unit, self.centre, self.origin.copy())
        piece._become(nodes, points, cracks)
        return piece

    def keep(
        self,
        nodes: NDArray[np.int64],
        points: NDArray[np.int64],
        cracks: Cracks,
        others: Sequence[tuple[Body, NDArray[np.int64]]],
    ) -> None:
        """Be only what these nodes and points are; holds go with `others`, and with the nodes these have."""
        taken, self.handles = self.handles, []
        for handle in taken:
            whose = [(self, nodes), *others]
            if not len(handle.nodes):
                whose = [whose[self._nearest_part(handle.points[0], [chosen for _, chosen in whose])]]
            for body, part in handle.dealt_out(whose):
                body.handles.append(part)
        self._become(nodes, points, cracks)

    def crumble(self) -> None:
        """Be a crumb, which cannot bend, from now on."""
        self.model = "rigid"
        self.__dict__.pop("space", None)

    def _nearest_part(self, place: Floats, parts: Sequence[NDArray[np.int64]]) -> int:
        """Which part has the node nearest to a place [m] in the reference shape."""
        away = np.linalg.norm(self.birth - place, axis=1)
        return int(np.argmin([away[part].min() for part in parts]))

    def _become(self, nodes: NDArray[np.int64], points: NDArray[np.int64], cracks: Cracks) -> None:
        gone = np.ones(len(self.birth), bool)
        gone[nodes] = False
        self._lost, self._parted_by = np.concatenate([self._lost, self.birth_places[gone]]), cracks
        space = None if self.model == "phyxel" else self.space.part(nodes, points)
        self.birth, self.volumes, self._reach = self.birth[nodes], self.volumes[nodes], self._reach[nodes]
        self.start_velocities, self._luck = self.start_velocities[nodes], self._luck[nodes]
        self.mixture, self.first_mixture, self._solid = (
            mixture.part(nodes) for mixture in (self.mixture, self.first_mixture, self._solid)
        )
        self._recipe = self._recipe.part(nodes)
        self._keep_points(points)
        self.__dict__.pop("space", None)
        if space is not None:
            self.__dict__["space"] = space
            self.volumes = self.unit**3 * np.bincount(space.owner, space.weights, len(nodes)).astype(np.float64)
        self._skin = self.guide = self._surfels = None
        if self.fracture is not None:
            self.fracture = self.fracture.of_piece(self._roughly())

    def _roughly(self) -> Callable[[Floats, Floats], Floats]:
        """Takes places at birth (k, 3) and their distance (k,) from the surface of what it was once part of to one that
        tells whether they are in it, by the nearest node: cracks ask often, and need not know better."""
        tree, count = cKDTree(np.concatenate([self.birth_places, self._lost])), len(self.birth)
        return lambda places, distance: np.where(tree.query(places)[1] < count, distance, np.maximum(distance, 1.0))

    def _narrowed(self, places: NDArray[np.floating], distance: Floats) -> Floats:
        """The distance (k,) of places at birth from the surface of what it was once part of, as one from its own."""
        if self._parted_by is None:
            return distance
        near = np.flatnonzero(distance < BESIDE)
        away = cleft(self._parted_by, places[near])
        distance[near] = np.maximum(distance[near], np.where(self._side(places[near]), -away, away))
        return distance

    def _side(self, places: NDArray[np.floating]) -> NDArray[np.bool_]:
        """Whether places (k, 3) at birth, in body units, are on its own side of the cracks that parted it, (k,)."""
        assert self._parted_by is not None
        both = np.concatenate([self.birth_places, self._lost])
        return homes(places, both, self._parted_by.sees, ASKED) < len(self.birth)

    def _reach_beside_cracks(self) -> Floats:
        """How far nodes are from the nearest face of the body, in units, shape (n,)."""
        reach = self._reach / self.unit
        if self.fracture is None or not len(self.fracture.cracks):
            return reach
        return np.minimum(reach, cleft(self.fracture.cracks, self.birth_places) * self.born.unit / self.unit)

    # What a user changes

    @property
    def friction(self) -> float:
        """Coulomb's coefficient, 0 or more: two bodies rub with the geometric mean of theirs; assign another at any
        time."""
        return self._friction

    @friction.setter
    def friction(self, friction: float) -> None:
        if not (isinstance(friction, int | float) and 0 <= friction < np.inf):
            raise PhyxelError(f"{self.name}: friction = {friction}: give 0 or more (ice 0.05, rubber 1)")
        self._friction = float(friction)

    @property
    def look(self) -> str:
        """What pictures show it as; assign another at any time."""
        return self._look

    @look.setter
    def look(self, look: str) -> None:
        self._look = look_named(self.name, look)

    @property
    def material(self) -> Material:
        """What the body is made of; assign another at any time. With another density velocities stay as they are."""
        return self._material

    @material.setter
    def material(self, material: Material) -> None:
        if not isinstance(material, Material):
            raise PhyxelError(f"{self.name}: material = {material!r}: give a Material, for example Material.rubber()")
        self.check_material(material)
        self._ramp = None
        self._set_material(material)

    def _set_material(self, material: Material, keep_melt: bool = False) -> None:
        self._material = material
        mixture = self._recipe.mixed(material)
        if keep_melt and material.viscosity is None:
            melted = ~np.isnan(self.mixture.number("viscosity"))
            self._solid = self._solid.where(melted, mixture)
            mixture = self.mixture.where(~melted, mixture)
        self._mix(mixture)

    def _mix(self, mixture: Mixture) -> None:
        before, self.mixture = self.mixture, mixture
        self._may_crack()
        self._solid = self._solid.where(np.isnan(mixture.number("viscosity")), mixture)
        if self._world is not None:
            self._world.material_changed(self, before)

    def melt(self, where: Where | None = None, viscosity: float | None = None) -> None:
        """Let the body, or part of it, flow. `viscosity` [Pa s]: honey has 10; without it, one with which a body of
        this size takes some seconds to spread."""
        self._in_world("melt")
        self.check_melts()
        chosen = self._chosen(where)
        self._mix(self.mixture.changed(chosen, lambda solid: self._melted(solid, viscosity)))

    def check_material(self, material: Material) -> None:
        """Refuse a material that its model cannot move."""
        if self.model != "phyxel":
            try:
                check_solid(self.model, self._recipe.mixed(material).materials)
            except PhyxelError as error:
                raise PhyxelError(f"{self.name}: {error}") from None

    def check_melts(self) -> None:
        """Refuse to melt what its model cannot move then."""
        self.check_material(self._melted(self._material, None))

    def _melted(self, solid: Material, viscosity: float | None) -> Material:
        if solid.viscosity is not None:
            return solid if viscosity is None else solid.but(viscosity=viscosity)
        weight = solid.density * 9.81 * float(np.ptp(self.birth, axis=0).max())
        return solid.but(
            viscosity=MELTING_TIME * weight if viscosity is None else viscosity,
            young=min(solid.young, MELTED_STIFFNESS * weight),
            poisson=min(solid.poisson, 0.45),
            damping=0.0,  # β would be a viscosity βμ beside the one that is asked for
            stiffness=None,
            yield_strain=None,
            yield_stress=None,
        )

    def solidify(self, where: Where | None = None, material: Material | None = None) -> None:
        """Let what has melted be solid again, in the shape it has now: as it was, or of another material."""
        self._in_world("solidify")
        molten = self._chosen(where) & ~np.isnan(self.mixture.number("viscosity"))
        if not molten.any():
            raise PhyxelError(f"{self.name}: solidify: nothing here has melted")
        solid = self._solid.changed(molten, lambda was: material or was.but(viscosity=None))
        self._mix(self.mixture.where(molten, solid))
        if self._material.viscosity is not None and np.isnan(self.mixture.number("viscosity")).all():
            self._material = material or self._material.but(viscosity=None)

    def _chosen(self, where: Where | None) -> NDArray[np.bool_]:
        chosen = np.zeros(len(self.birth), bool)
        chosen[slice(None) if where is None else self._nodes(where)] = True
        return chosen

    def paint(self, where: Where, color: Vector) -> None:
        """Give the points of the surface that lie somewhere, in the reference shape, another colour: red, green and
        blue from 0 to 1. Before the body is first shown."""
        if self._surfels is not None or self._whole is not None:
            raise PhyxelError(f"{self.name}: paint: it has been shown already; paint it before")
        chosen = self._color("paint: color", color)
        points = self.placed_cloud()
        colors = np.array(np.broadcast_to(GREY, points.shape) if self.cloud.colors is None else self.cloud.colors)
        colors[select(where, points, f"{self.name}: paint")] = chosen
        self.cloud = self.cloud.with_colors(colors)

    def _color(self, key: str, color: Vector) -> Floats:
        chosen = self._vector(key, color)
        if not ((chosen >= 0) & (chosen <= 1)).all():
            raise PhyxelError(f"{self.name}: {key} = {color}: give red, green and blue from 0 to 1")
        return chosen

    def change(self, material: Material | None = None, *, over: float = 0.0, **numbers: Any) -> None:
        """Become another material, or one with other numbers, smoothly within `over` [s] from now.

        `body.change(young=1e5, over=2.0)`. Stiffness, yield and creep go the same factor in the same time, other
        numbers the same step; what is infinite or left out at one end changes at once. A change replaces one that is
        still going on.
        """
        if not (np.isfinite(over) and over >= 0):
            raise PhyxelError(f"{self.name}: change(over={over}): give a time of 0 s or more")
        end = (material or self._material).but(**numbers)
        self.check_material(end)
        if over == 0:
            self._ramp = None
            self._set_material(end, keep_melt=True)
            return
        self._ramp = Ramp(self._material, end, self._now, float(over))
        self.follow_ramp(self._now)

    def follow_ramp(self, time: float) -> bool:
        """Take the material that `change` asks for at a time [s]; whether it is another."""
        if self._ramp is None or (material := self._ramp.at(time)) == self._material:
            return False
        self._set_material(material, keep_melt=True)
        return True

    @property
    def _now(self) -> float:
        return 0.0 if self._world is None else self._world.time

    @property
    def force(self) -> Floats:
        """A force on the whole body [N], shared out by mass; assign another at any time."""
        return self._force

    @force.setter
    def force(self, force: Vector) -> None:
        self._force = self._vector("force", force)
        if self._world is not None:
            self._world.mover_of(self).force_changed(self)

    def fix(self, where: Where) -> Handle:
        """Hold nodes where they are."""
        return self.drag(where)

    def drag(self, where: Where, to: Motion = (0.0, 0.0, 0.0), turn: Motion | None = None) -> Handle:
        """Move nodes by `to` [m] from where they are now, and turn them about their middle by `turn` (degrees about x,
        y, z, in this order): three numbers, reached in the next 1/60 s; a function of the world's time [s]; or
        keyframes, a list of (time [s], three numbers), straight and evenly between them from now on. About one axis
        they turn as often as is asked for, else the short way. What is let go keeps the velocity it was moved with."""
        path, rotation = way_of(f"{self.name}: drag", to, self._now), turn_of(f"{self.name}: turn", turn, self._now)
        turns = turn is not None
        return self._take(where, path, rotation, turns, turns or callable(to), stays(to, turn))

    def attach(self, where: Where, skeleton: Skeleton, bone: str) -> Handle:
        """Hold nodes so that from where they are now they go exactly where a bone takes them."""
        about, path, rotation = skeleton.motion(bone, self._now)
        moves = skeleton.moves(bone)
        return self._take(where, path, rotation, moves, moves, not moves, about)

    def _take(
        self,
        where: Where,
        to: Callable[[float], Floats],
        turn: Callable[[float], Floats],
        turns: bool,
        follows: bool,
        still: bool,
        about: Floats | None = None,
    ) -> Handle:
        nodes, points = self.held(where)
        taken = self.positions[nodes] if len(nodes) else points + self.displacement_at(points)
        handle = Handle(self, nodes, points, taken, to, turn, turns, follows, still, about)
        self.handles.append(handle)
        self._holds_changed()
        return handle

    def held(self, where: Where) -> tuple[NDArray[np.int64], Floats]:
        """The nodes that `fix` and `drag` would hold, and their reference positions [m], shape (k, 3). Of a spot
        without a radius, on a body whose model has a displacement everywhere: no nodes, but the surfel itself."""
        if self.model != "phyxel" and isinstance(where, Spot) and where.radius is None:
            return np.zeros(0, np.int64), self._surfel_at(where.at)[None]
        nodes = self._nodes(where)
        return nodes, self.reference[nodes]

    def _nodes(self, where: Where) -> NDArray[np.int64]:
        return self.pick(where.at, where.radius) if isinstance(where, Spot) else select(where, self.places, self.name)

    def pick(self, at: int | Vector, radius: float | None = None) -> NDArray[np.int64]:
        """Nodes around a surfel, for `fix` and `drag`: those that lie within `radius` [m] (1.5 node spacings if left
        out) of it in the reference shape and not on the far side of a gap; the nearest at least.

        `at` is the number of the surfel in the cloud, or a place [m] in the reference shape near which it lies. Of
        what has melted: where it is now.
        """
        if radius is not None and not radius > 0:
            raise PhyxelError(f"{self.name}: pick: radius = {radius}: give a length above 0 m")
        place = self._surfel_at(at)
        away = np.linalg.norm((self.positions if self.has_melted else self.birth) - place, axis=1)
        close = np.flatnonzero(away <= (PICKED * self.born.unit if radius is None else radius))
        if not self.has_melted:
            point, nodes = ((x - self.born.centre) / self.born.unit for x in (place[None], self.birth))
            close = close[seen_pairs(point, nodes, np.zeros(len(close), np.int64), close, self.sees)]
        return close if len(close) else np.array([away.argmin()])

    def _surfel_at(self, at: int | Vector) -> Floats:
        """Where a surfel that `pick` can be asked for lies [m], shape (3,)."""
        skin = self.surface.carried.positions if self.has_melted else self.placed_cloud()
        if not isinstance(at, int | np.integer):
            at = int(nearest(self._vector("pick", at)[None], skin, 1)[1][0, 0])
        if not -len(skin) <= at < len(skin):
            raise PhyxelError(f"{self.name}: surfel {at} of {len(skin)}; they are numbered from 0 to {len(skin) - 1}")
        return skin[at]

    def release(self, handle: Handle) -> None:
        """Let go of what `fix` or `drag` held, also where it has parted from this body since."""
        pieces = [self] if self._world is None else [one for one in self._world.bodies if one.whole == self.whole]
        held = [(piece, own) for piece in pieces for own in piece.handles if own.grip is handle.grip]
        if not held:
            raise PhyxelError(f"{self.name}: this handle is not held; it was released before or is another body's")
        for piece, own in held:
            piece.handles.remove(own)
            piece._holds_changed()

    def _holds_changed(self) -> None:
        if self._world is not None:
            self._world.mover_of(self).holds_changed(self)

    # What a user reads

    @property
    def skin(self) -> Skin:
        """What wind and the like can press on: at birth, or of what has melted, some moments ago."""
        moment = self._in_world("skin").phyxels.pool.surfaced if self.has_melted else -1
        if self._skin is None or self._skin_at != moment:
            self._skin, self._skin_at = self._found_skin(), moment
        return self._skin

    def skin_state(self) -> dict[str, NDArray[Any]]:
        """What a checkpoint keeps of a skin that was found some moments ago."""
        if self._skin is None:
            return {}
        return {"node": self._skin.node, "area": self._skin.area, "at": np.array(self._skin_at)}

    def restore_skin(self, state: dict[str, NDArray[Any]]) -> None:
        """Take over what `skin_state` gave."""
        self._skin = Skin(state["node"], state["area"]) if state else None
        self._skin_at = int(state["at"]) if state else -1

    def _found_skin(self) -> Skin:
        if self.has_melted:
            carried = self.surface.carried
            return Skin.found(carried.positions, carried.normals.astype(np.float64), self.positions)
        assert self.cloud.normals is not None
        return Skin.found(self.placed_cloud(), self.cloud.normals.astype(np.float64) @ self.rotation.T, self.birth)

    @property
    def skin_deformation(self) -> Floats:
        """J of each node against the shape that `skin` is of, shape (n, 3, 3)."""
        if self.has_melted:
            return np.broadcast_to(np.eye(3), (len(self.birth), 3, 3))
        return (np.eye(3) + self._field("gradient")) @ self._field("past")

    @property
    def masses(self) -> Floats:
        """[kg], shape (n,)"""
        return self.mixture.number("density") * self.volumes

    @property
    def positions(self) -> Floats:
        """x [m], shape (n, 3)"""
        u = self._field("u")
        return self.origin + (self.reference - self.centre) + self.unit * u

    @property
    def velocities(self) -> Floats:
        """v [m/s], shape (n, 3)"""
        return self.start_velocities.copy() if self._world is None else self.unit * self._field("v")

    @property
    def stress(self) -> Floats:
        """Cauchy stress [Pa], shape (n, 3, 3)"""
        return np.zeros((len(self.birth), 3, 3)) if self._world is None else self._world.mover_of(self).stress_of(self)

    @property
    def plastic_strain(self) -> Floats:
        """Permanent strain, shape (n, 3, 3)"""
        return np.zeros((len(self.birth), 3, 3)) if self._world is None else self._world.field(self, "plastic")

    @property
    def surface(self) -> Surfels:
        """The surfels, where the body is now."""
        world, surfels = self._in_world("surface"), self.surfels
        if self._surfels_at != world.revision:
            world.mover_of(self).carry(self, surfels)
            self._surfels_at = world.revision
        return surfels

    @property
    def surfels(self) -> Surfels:
        """The surfels, where they were last carried."""
        world = self._in_world("surface")
        if self._surfels is None:
            values = None if self.model == "phyxel" else self.space.at_skin
            self._surfels = Surfels(self.rest_surfels(), self._carrying, world.device, self._sees_in_solid, values)
            self._cracks_shown = 0
        if self.fracture is not None and not self.reshaped:
            self._show_cracks(self._surfels, self.fracture.cracks)
        return self._surfels

    @property
    def _carrying(self) -> Floats:
        """Where the nodes that carry surfels are in the reference shape, in units, shape (n, 3)."""
        return self.space.nodes if self.model == "rigid" else (self.reference - self.centre) / self.unit

    def outdate_surface(self) -> None:
        """Its cracks are others than those that were shown, whatever their revision."""
        if not self.reshaped:
            self._surfels, self._surfels_at = None, -1

    def _show_cracks(self, surfels: Surfels, cracks: Cracks) -> None:
        """Let surfels be parted by cracks that have come or grown since they were last."""
        if self._cracks_shown == cracks.revision:
            return
        found, values = self._parted_surfels(cracks), None
        if self.model != "phyxel":
            values = self.space.at_skin.followed_by(self.space.at(found.shape.points[len(self.cloud) :]))
        surfels.part(found, cracks, self._carrying, self.sees, values)
        self._cracks_shown, self._surfels_at = cracks.revision, -1

    def _parted_surfels(self, cracks: Cracks) -> Parted:
        piece = None
        if self._own_points is not None:
            X = self.birth_places
            piece = Piece(self._own_points, X.min(axis=0) - AROUND, X.max(axis=0) + AROUND, self.has_side)
        return parted(self.whole_surface, cracks, Inner(self.inner_color, ROUGH.get(self.look, 0.0)), piece)

    @property
    def inner_color(self) -> Floats:
        """Of what cracks lay open, red, green, blue in 0..1, shape (3,)."""
        if self._inside is not None:
            return self._inside
        mean = np.asarray(self.whole_surface.rest.colors, np.float64).mean(axis=0)
        dull = mean.mean() + DULL * (mean - mean.mean())
        return dull + PALE * (1 - dull)

    def has_side(self, places: NDArray[np.floating]) -> NDArray[np.bool_]:
        """Whether places (k, 3) at birth, in body units, near cracks are on a side of them that is part of it, (k,)."""
        return np.ones(len(places), bool) if self._own_points is None else self._side(places)

    def rest_surfels(self) -> Rest:
        """The surfels in the reference shape."""
        if self._own_points is not None:
            return self.whole_surface.rest.part(self._own_points)
        cloud = self.cloud
        assert cloud.normals is not None
        colors = np.broadcast_to(GREY, (len(cloud), 3)) if cloud.colors is None else cloud.colors
        positions = (self.placed_cloud() - self.centre) / self.unit
        return Rest(positions, cloud.normals @ self.rotation.T, colors, self.unit)

    @property
    def whole_surface(self) -> Whole:
        """What is seen of all that it is, or was once part of, without cracks."""
        if self._whole is None:
            self._whole = Whole(self.rest_surfels(), self._depth)
        return self._whole

    def _depth(self, X: Floats) -> Floats:
        """How deep (n, 3) positions lie in the solid that it is, or was once part of, all in body units, shape (n,)."""
        there = self._unplaced(self.born.centre + self.born.unit * X)
        return -self.solid.distance(there) * (self._scale / self.born.unit)

    @property
    def whole_cloud(self) -> PointCloud:
        """The points of all that it is, or was once part of."""
        return self.cloud if self._own_points is None else self._whole_cloud

    def _keep_points(self, points: NDArray[np.int64]) -> None:
        """Have only some of the points of the surface, ascending, (m,)."""
        if self._own_points is None:
            self._whole, self._whole_cloud, self._own_points = (
                self.whole_surface,
                self.cloud,
                np.arange(len(self.cloud)),
            )
        self._own_points = self._own_points[points]
        if self.fracture is not None:
            self.whole_surface.falls_apart(self.fracture.cracks)
        self.cloud = self.cloud.part(points)

    def displacement_at(self, X: NDArray[np.floating]) -> Floats:
        """Displacement [m] of (m, 3) reference positions [m] in or near the body, shape (m, 3)."""
        places = np.asarray(X, np.float64).reshape(-1, 3)
        if self._world is None:
            return np.zeros(places.shape)
        return self._world.mover_of(self).displacement_at(self, places)

    def strain_at(self, X: NDArray[np.floating]) -> Floats:
        """Green's strain ½(JᵀJ − I), J = I + ∇u, at (m, 3) reference positions [m] in the body, shape (m, 3, 3)."""
        J = np.eye(3) + self.probe(X).gradient()
        return 0.5 * (np.swapaxes(J, 1, 2) @ J - np.eye(3))

    def stress_at(self, X: NDArray[np.floating]) -> Floats:
        """Cauchy stress [Pa] at (m, 3) reference positions [m] in the body, shape (m, 3, 3)."""
        return self.probe(X).stress()

    def probe(self, X: NDArray[np.floating]) -> Probe:
        """(m, 3) reference positions [m] to be asked again and again, which is faster than to name them each time."""
        return self._in_world("probe").mover_of(self).probe(self, np.asarray(X, np.float64).reshape(-1, 3))

    def diagnostics(self) -> dict[str, Any]:
        """Mass [kg], momentum [kg m/s], angular_momentum about the world's origin [kg m²/s], kinetic, elastic and
        potential energy [J], volume [m³]."""
        return self._in_world("diagnostics").mover_of(self).diagnostics(self)

    def _field(self, name: str) -> NDArray[np.float64]:
        if self._world is None:
            shape = (len(self.birth), 3, 3) if name == "gradient" else (len(self.birth), 3)
            return np.zeros(shape)
        return self._world.field(self, name)

    def _in_world(self, what: str) -> World:
        if self._world is None:
            raise PhyxelError(f"{self.name}: {what} needs a world; call world.add(body) first")
        return self._world


def cleft(cracks: Cracks, places: NDArray[np.floating]) -> Floats:
    """Distance of places (k, 3) from the nearest of some cracks, shape (k,)."""
    levels = [crack.values(places) for crack in cracks]
    return np.min([np.hypot(psi1, np.maximum(psi2, 0)) for psi1, psi2 in levels], axis=0)
