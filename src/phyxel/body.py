"""A body: a cloud, the solid it encloses, the model that moves it and the surface that is seen, under one name."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.transform import Rotation

from phyxel.errors import PhyxelError
from phyxel.material import Material
from phyxel.mls.carry import Carriers
from phyxel.models.phyxel import Part
from phyxel.points.cloud import PointCloud
from phyxel.region import Box, Where, select
from phyxel.solid.octree import Region
from phyxel.solid.solid import CLOSING, Solid
from phyxel.surface.surfels import Rest, Surfels

if TYPE_CHECKING:
    from phyxel.world import World

Floats = NDArray[np.float64]
Vector = Sequence[float] | NDArray[np.floating]
Motion = Vector | Callable[[float], Vector]

GREY = (0.72, 0.72, 0.74)
DRAG_TIME = 1 / 60
"""Time in which a drag by a fixed displacement gets there [s]."""


@dataclass(eq=False)
class Handle:
    """A hold on some nodes of a body. `to` is where they go from where they were taken, at a time [s] -> [m]."""

    body: Body
    nodes: NDArray[np.int64]
    to: Callable[[float], Floats]
    moved: Floats
    """how far they have gone [m], shape (3,)"""
    follows: bool
    """whether `to` is to be looked at in every step"""


class Body:
    """A deformable body. Quantities are in SI units and world axes, y up.

    `at` moves the cloud, `rotate` (degrees about x, y, z, in this order) turns it about the middle of its bounding box,
    `size` [m] scales its largest extent. `velocity` [m/s] and `spin` [rad/s] are what it starts with.
    `support` is the radius within which nodes feel each other, over the mean distance to their ten nearest. `refine`
    asks for finer nodes: pairs of a `px.Box` or a function of (n, 3) reference positions, and a number of octree
    levels, each of which halves their distance. `closing` is the share of the surface that may be made up where the
    points leave it open. `friction` is Coulomb's coefficient against itself; two bodies rub with the geometric mean of
    theirs.
    """

    def __init__(
        self,
        cloud: PointCloud,
        *,
        material: Material | None = None,
        nodes: int = 800,
        model: str = "phyxel",
        integrator: str | None = None,
        surface: str = "carried",
        at: Vector = (0.0, 0.0, 0.0),
        rotate: Vector | None = None,
        size: float | None = None,
        velocity: Vector = (0.0, 0.0, 0.0),
        spin: Vector = (0.0, 0.0, 0.0),
        name: str | None = None,
        support: float = 2.0,
        refine: Sequence[Region] = (),
        closing: float = CLOSING,
        friction: float = 0.5,
    ) -> None:
        if not isinstance(cloud, PointCloud):
            raise PhyxelError(f"Body({cloud!r}): give a point cloud, for example px.load({str(cloud)!r})")
        if material is not None and not isinstance(material, Material):
            raise PhyxelError(f"{cloud.name}: material = {material!r}: give a Material, for example Material.rubber()")
        self.name = name or cloud.name
        self._check_choice("model", model, ("phyxel",))
        self._check_choice("integrator", integrator, (None, "leapfrog", "implicit"))
        self.integrator = integrator
        self._check_choice("surface", surface, ("carried",))
        if not 1.2 <= support <= 5:
            raise PhyxelError(f"{self.name}: support = {support}: give 1.2 to 5 (2 is right for most)")
        self.friction = friction
        self.solid = Solid(cloud, closing=closing)
        self.cloud = self.solid.skin
        self._material = self.first_material = material or Material.rubber()
        self._force = np.zeros(3)
        self._place(at, rotate, size)
        sampled = self.solid.sample(nodes, [self._in_cloud(entry) for entry in refine])
        self.reference: Floats = self._placed(sampled.positions)
        """X [m], shape (n, 3)"""
        self.volumes: Floats = sampled.volumes * self._scale**3
        """[m³], shape (n,)"""
        self._reach = sampled.reach * self._scale
        self.unit = sampled.spacing * self._scale
        """mean node spacing [m]: the length the body computes in"""
        self.centre: Floats = np.average(self.reference, axis=0, weights=self.volumes)
        """middle of mass of the reference shape [m]"""
        self.origin: Floats = self.centre.copy()
        """where the middle of the reference shape is counted from now [m]; the world moves it along with the body"""
        arm = self.reference - self.centre
        spun = np.cross(self._vector("spin", spin), arm)
        self._start_velocities = self._vector("velocity", velocity) + spun
        self.support = support
        self.handles: list[Handle] = []
        self._world: World | None = None
        self._surfels: Surfels | None = None
        self._surfels_at = -1

    def _check_choice(self, key: str, value: Any, known: tuple[Any, ...]) -> None:
        if value not in known:
            names = ", ".join(f'"{k}"' for k in known if k)
            raise PhyxelError(f'{self.name}: {key} = "{value}": not known; there is {names}')

    def _vector(self, key: str, value: Vector) -> Floats:
        try:
            vector = np.asarray(value, np.float64)
        except (TypeError, ValueError):
            vector = np.empty(0)
        if vector.shape != (3,) or not np.isfinite(vector).all():
            raise PhyxelError(f"{self.name}: {key} = {value}: give three finite numbers")
        return vector

    # Placement: cloud coordinates -> world

    def _place(self, at: Vector, rotate: Vector | None, size: float | None) -> None:
        lower, upper = self.solid.lower, self.solid.upper
        if size is not None and not (np.isfinite(size) and size > 0):
            raise PhyxelError(f"{self.name}: size = {size}: give the largest extent in metres, above 0")
        self._middle = 0.5 * (lower + upper)
        self._scale = 1.0 if size is None else float(size) / float((upper - lower).max())
        angles = self._vector("rotate", (0.0, 0.0, 0.0) if rotate is None else rotate)
        self.rotation: Floats = Rotation.from_euler("xyz", angles, degrees=True).as_matrix()
        """how the cloud's axes stand in the world, 3 × 3"""
        self._at = self._vector("at", at)

    def _placed(self, positions: NDArray[np.floating]) -> Floats:
        turned = (np.asarray(positions, np.float64) - self._middle) @ self.rotation.T
        return self._at + self._middle + self._scale * turned

    def placed_cloud(self) -> Floats:
        """Where the cloud's points are in the reference shape [m], shape (m, 3)."""
        return self._placed(self.cloud.positions)

    def sees(self, one: NDArray[np.floating], other: NDArray[np.floating]) -> NDArray[np.bool_]:
        """Whether reference positions (n, 3) and (n, 3), in body units, see each other inside the solid."""
        there, here = (self._unplaced(self.centre + self.unit * np.asarray(x, np.float64)) for x in (one, other))
        return self.solid.sees(there, here)

    def solid_distance(self, positions: NDArray[np.floating]) -> Floats:
        """Signed distance of (n, 3) reference positions from the solid's surface, all in body units, shape (n,)."""
        there = self._unplaced(self.centre + self.unit * np.asarray(positions, np.float64))
        return self.solid.distance(there) * (self._scale / self.unit)

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
        return lambda positions: where(self._placed(positions)), levels

    def _unplaced(self, positions: Floats) -> Floats:
        return self._middle + (positions - self._at - self._middle) @ self.rotation / self._scale

    def part(self) -> Part:
        """What the model takes, in units of the mean node spacing about the origin."""
        return Part(
            positions=(self.reference - self.centre) / self.unit,
            velocities=self._start_velocities / self.unit,
            volumes=self.volumes / self.unit**3,
            reach=self._reach / self.unit,
            unit=self.unit,
            support=self.support,
            sees=self.sees,
        )

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
    def material(self) -> Material:
        """What the body is made of; assign another at any time."""
        return self._material

    @material.setter
    def material(self, material: Material) -> None:
        self._material = material
        if self._world is not None:
            self._world.material_changed(self)

    @property
    def force(self) -> Floats:
        """A force on the whole body [N], shared out by mass; assign another at any time."""
        return self._force

    @force.setter
    def force(self, force: Vector) -> None:
        self._force = self._vector("force", force)
        if self._world is not None:
            self._world.energy_changed(self)

    def fix(self, where: Where) -> Handle:
        """Hold nodes where they are."""
        return self.drag(where, (0.0, 0.0, 0.0))

    def drag(self, where: Where, to: Motion) -> Handle:
        """Move nodes by `to` [m] from where they are now: a displacement, reached in the next 1/60 s, or a function of
        the world's time [s]."""
        start = 0.0 if self._world is None else self._world.time
        follows = callable(to)
        if callable(to):
            path = to
            self._vector("drag", path(start))
        else:
            end = self._vector("drag", to)

            def path(time: float) -> Vector:
                return end * min((time - start) / DRAG_TIME, 1.0)

        nodes = select(where, self.reference, self.name)
        handle = Handle(self, nodes, lambda time: self._vector("drag", path(time)), np.zeros(3), follows)
        self.handles.append(handle)
        self._holds_changed()
        return handle

    def release(self, handle: Handle) -> None:
        """Let go of what `fix` or `drag` held."""
        if handle not in self.handles:
            raise PhyxelError(f"{self.name}: this handle is not held; it was released before or is another body's")
        self.handles.remove(handle)
        self._holds_changed()

    def _holds_changed(self) -> None:
        if self._world is not None:
            self._world.holds_changed(self)

    # What a user reads

    @property
    def masses(self) -> Floats:
        """[kg], shape (n,)"""
        return self._material.density * self.volumes

    @property
    def positions(self) -> Floats:
        """x [m], shape (n, 3)"""
        u = self._field("u")
        return self.origin + (self.reference - self.centre) + self.unit * u

    @property
    def velocities(self) -> Floats:
        """v [m/s], shape (n, 3)"""
        return self._start_velocities.copy() if self._world is None else self.unit * self._field("v")

    @property
    def stress(self) -> Floats:
        """Cauchy stress [Pa], shape (n, 3, 3)"""
        return np.zeros((len(self.reference), 3, 3)) if self._world is None else self._world.stress_of(self)

    @property
    def plastic_strain(self) -> Floats:
        """Permanent strain, shape (n, 3, 3)"""
        return np.zeros((len(self.reference), 3, 3)) if self._world is None else self._world.field(self, "plastic")

    @property
    def surface(self) -> Surfels:
        """The surfels, where the body is now."""
        world = self._in_world("surface")
        if self._surfels is None:
            self._surfels = Surfels(self._rest(), (self.reference - self.centre) / self.unit, world.device, self.sees)
        if self._surfels_at != world.revision:
            world.carry(self, self._surfels)
            self._surfels_at = world.revision
        return self._surfels

    def _rest(self) -> Rest:
        cloud = self.cloud
        assert cloud.normals is not None
        colors = np.broadcast_to(GREY, (len(cloud), 3)) if cloud.colors is None else cloud.colors
        positions = (self.placed_cloud() - self.centre) / self.unit
        return Rest(positions, cloud.normals @ self.rotation.T, colors)

    def displacement_at(self, X: NDArray[np.floating]) -> Floats:
        """Displacement [m] of (m, 3) reference positions [m] in or near the body, shape (m, 3)."""
        points = (np.asarray(X, np.float64).reshape(-1, 3) - self.centre) / self.unit
        nodes = (self.reference - self.centre) / self.unit
        carried = Carriers.found(points, nodes, self.sees).carry(
            points, nodes, self._field("u"), self._field("gradient")
        )
        return self.origin - self.centre + self.unit * carried

    def diagnostics(self) -> dict[str, Any]:
        """Mass [kg], momentum [kg m/s], angular_momentum about the world's origin [kg m²/s], kinetic, elastic and
        potential energy [J], volume [m³]."""
        world = self._in_world("diagnostics")
        x, v, m = self.positions, self.velocities, self.masses
        energy, volume_ratio = world.measure(self)
        return {
            "mass": float(m.sum()),
            "momentum": m @ v,
            "angular_momentum": np.cross(x, m[:, None] * v).sum(axis=0),
            "kinetic": float(0.5 * m @ (v * v).sum(axis=1)),
            "elastic": float(energy.sum() * self.unit**3),
            "potential": float(-(m @ x) @ world.gravity),
            "volume": float(self.volumes @ volume_ratio),
        }

    def _field(self, name: str) -> NDArray[np.float64]:
        if self._world is None:
            shape = (len(self.reference), 3, 3) if name == "gradient" else (len(self.reference), 3)
            return np.zeros(shape)
        return self._world.field(self, name)

    def _in_world(self, what: str) -> World:
        if self._world is None:
            raise PhyxelError(f"{self.name}: {what} needs a world; call world.add(body) first")
        return self._world
