"""A body: a cloud, the solid it encloses, the model that moves it and the surface that is seen, under one name."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from phyxel import device as dev
from phyxel import kernels
from phyxel.body import checks
from phyxel.body.appearance import Appearance
from phyxel.body.birth import filled, sheeted
from phyxel.body.core import BodyCore
from phyxel.body.fragments import crack_for
from phyxel.body.holds import Handle, HoldMotion, OpenPath, picked, stays, surfel_at, turn_of, way_of
from phyxel.body.placement import Place, Pose
from phyxel.body.protocols import Change
from phyxel.body.resolution import (
    USUAL_NODES,
    NodeCount,
    filled_with,
    nodes_for,
    nodes_to_bend,
    tell_if_coarse,
)
from phyxel.body.shape import NodeData, certificate_of
from phyxel.cracks.crack import Crack
from phyxel.cracks.fracture import Fracture
from phyxel.errors import PhyxelError, knows_its_arguments
from phyxel.material import Material
from phyxel.material.look import look_named
from phyxel.material.ramp import Ramp
from phyxel.material.substance import Substance, melt_of
from phyxel.material.variation import Recipe, Variation
from phyxel.mls.shape_functions import Basis
from phyxel.points.cloud import CloudLike, as_cloud
from phyxel.region import Spot, Vector, Where, as_vector, select
from phyxel.solid.octree import Region
from phyxel.solid.solid import CLOSING
from phyxel.surface.surfels import Surfels
from phyxel.units import quantity

if TYPE_CHECKING:
    from phyxel.body.probes import Probe
    from phyxel.body.skeleton import Skeleton

Floats = NDArray[np.float64]


@knows_its_arguments
class Body(BodyCore):
    """A deformable body of a `cloud`, or of what `px.load` takes, filled with about so many `nodes` of a `material`;
    `nodes="auto"`: the usual number, or as many as its thin parts need to bend as they should. Quantities are in SI
    units and world axes, y up. `name` is what events and messages call it.

    `at` [m] is where it stands: the middle of its foot, or with `place` the middle of its box ("center") or the origin
    of its cloud ("file"). Left out, a file stands on the world's origin, and all else stays where its points are.
    Before that `rotate` (degrees about x, y, z, in this order) turns it, and `size` [m] scales its largest extent.
    `velocity` [m/s] and `spin` [rad/s] are what it starts with.
    `scheme` is how phyxels lie and feel each other: "consistent" (to the surface: thin, turned and twisted bodies are
    as stiff as they should be), which is also what you get if you say nothing, or "m04" (half a spacing inside, as the
    paper has them). `support` is the radius within which they do, over the mean distance to their ten nearest; left
    out, that of the scheme. `refine` asks for finer nodes: pairs of a `px.Box` or a function of (n, 3) reference
    positions, and a number of octree levels, each of which halves their distance. `closing` is the share of the
    surface that may be made up where the points leave it open. `parts` are regions of other materials, pairs of a
    place and a `Material`, later ones over earlier; `vary` lets numbers of the material vary over the body:
    `{"young": px.Channel("red", 1e5, 1e7)}`, or a function of (n, 3) reference positions in place of the channel. Later
    changes of the material scale with it.
    `friction` is Coulomb's coefficient against itself; two bodies rub with the geometric mean of theirs. `restitution`
    is the share of the speed that comes back where bodies hit each other or a collider: the larger one counts.
    `look` is what it is drawn as: "gummy", "wax", "clay", "stone" or "matte". `surface` is "carried" (its points go
    with the nodes around them) or "blended" (so they do while it is solid; while it flows they part and join with it,
    and in a mold take its relief), which is also what you get if you say nothing. `inside` is the colour (red, green,
    blue from 0 to 1, a name or "#rrggbb") of what cracks lay open; if left out, a paler one than that of its surface.

    `model` is what moves it: "phyxel" (does everything: dents, melts, cracks), "galerkin" (accurate: stress and strain
    at every point, with a "linear" or "quadratic" `basis`), "modal" (in real time: the softest `modes` of vibration,
    bent as far as you like) or "rigid" (never bends or breaks: the mass, middle and inertia of the solid itself, and
    few nodes; one held point is a ball joint, two are a hinge). "particles" is for thin surfaces, open or closed, of a
    `Membrane`: the points of the cloud are its nodes, whatever `nodes` says. Bodies of all kinds meet each other.
    `links` between particles are "edges" of its mesh, the "weave" of quads with the `warp` along a direction of the
    cloud, so many nearest points, or "none"; left out, what the cloud has of these. One that `meets_itself` lies in
    folds that do not pass through each other; that costs much, so it is asked for.

    `integrator`, "leapfrog" (keeps energy) or "implicit" (for what is stiff), is by stiffness if left out.

    What has a `strength` cracks where its stress exceeds it (not "modal"); `seed` is what its scatter is drawn with.

    >>> ball = px.Body(px.load("sphere", points=1000), nodes=200, size="20 cm", at=(0, 1, 0))
    >>> print(f"{ball.volumes.sum():.5f} m³, its middle at {ball.positions[:, 1].mean():.2f} m")
    0.00419 m³, its middle at 1.10 m
    """

    def __init__(
        self,
        cloud: CloudLike,
        *,
        material: Material | None = None,
        nodes: NodeCount = USUAL_NODES,
        model: str = "phyxel",
        integrator: str | None = None,
        surface: str | None = None,
        at: Vector | None = None,
        place: Place | None = None,
        rotate: Vector | None = None,
        size: float | str | None = None,
        velocity: Vector = (0.0, 0.0, 0.0),
        spin: Vector = (0.0, 0.0, 0.0),
        name: str | None = None,
        scheme: str | None = None,
        support: float | None = None,
        refine: Sequence[Region] = (),
        closing: float = CLOSING,
        parts: Sequence[tuple[Where, Material]] = (),
        vary: Mapping[str, Variation] | None = None,
        friction: float = 0.5,
        restitution: float = 0.0,
        look: str = "gummy",
        basis: Basis = "linear",
        modes: int = checks.MODES,
        inside: Vector | str | None = None,
        seed: int = 0,
        links: str | int | None = None,
        warp: Vector = checks.WARP,
        meets_itself: bool = False,
    ) -> None:
        cloud = as_cloud(cloud, "Body")
        self.name = checks.name_for(cloud, material, name)
        checks.check_kinds(self.name, refine=refine, parts=parts, vary=vary or {})
        kind = checks.kind_named(self.name, model)
        given: dict[str, Any] = {"surface": surface, "scheme": scheme, "refine": refine, "basis": basis, "modes": modes}
        given |= {"links": links, "warp": warp, "meets_itself": meets_itself}
        checks.check_options(self.name, kind, integrator, given)
        checks.check_count(self.name, nodes)
        self.scheme, laid = checks.checked_scheme(self.name, kind, scheme)
        """how its nodes lie and feel each other"""
        self.support = checks.checked_support(self.name, laid.support if support is None else support)
        self.integrator, self.basis, self.modes, self.meets_itself = integrator, basis, modes, meets_itself
        self.blends = surface != "carried"
        """whether the surface is blended with an implicit skin while the body flows"""
        self.friction, self.restitution, self.look = friction, restitution, look
        self._force = np.zeros(3)
        if not (device := dev.pick()).is_cuda:  # then every world is here: all is compiled, and told of, at once
            kernels.ready({kind.name, integrator or ""}, device)
        checks.tell_of_file(self.name, cloud, looked_at=size is not None or rotate is not None)
        pose = Pose(self.name, at, place, rotate, quantity(f"{self.name}: size", size, "m"))
        if kind.has_inside:
            made = filled_with(
                nodes_for(kind, nodes),
                lambda count: filled(pose, cloud, kind, laid, basis, count, closing, refine),
                lambda made: nodes_to_bend(laid, made.thickness, made.volumes),
            )
        else:
            made = sheeted(pose, cloud, links, warp)
        tell_if_coarse(self.name, kind, laid, made.thickness, made.volumes)
        velocities = checks.start_velocities(self.name, made.X - made.middle, velocity, spin)
        self.seed = checks.checked_seed(self.name, seed)
        luck = np.random.default_rng(seed).standard_normal(len(made.X))
        kept = made.X, made.volumes, made.reach, made.heft, made.along
        super().__init__(model, made, NodeData(*kept, velocities, luck, np.arange(len(luck))))
        recipe = Recipe(self, material or kind.usual(), parts, vary or {})
        checks.check_moves(self.name, kind, recipe, recipe.base)
        self._consist_of(Substance.at_birth(recipe))
        self.certificate = certificate_of(self)
        """what it was at birth, whole, as a hash"""
        self.appearance = Appearance(self, inside)
        """what is seen of it"""

    @knows_its_arguments
    def cut(self, at: Vector, normal: Vector, radius: float | None = None, ahead: Vector | None = None) -> None:
        """Put in a crack through `at` [m] across `normal`, in the reference shape: a disc of a `radius` [m]; with
        `ahead`, all that lies behind its straight front through `at`, which looks there; else all through."""
        fracture, crack = self.check_cut(at, normal, radius, ahead)
        fracture.cut(crack)
        self.fracture = fracture
        if self.world is not None:
            self.world.changed(Change.CRACK, self)

    def check_cut(
        self, at: Vector, normal: Vector, radius: float | None = None, ahead: Vector | None = None
    ) -> tuple[Fracture, Crack]:
        """What `cut` would put in, and into what; refuse what it would refuse."""
        self.needs_solid("cut")
        return crack_for(self, at, normal, radius, ahead)

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
    def restitution(self) -> float:
        """Share of the speed with which it hits something that comes back, 0 to 1: of two that meet the larger counts;
        assign another at any time."""
        return self._restitution

    @restitution.setter
    def restitution(self, restitution: float) -> None:
        if not (isinstance(restitution, int | float) and 0 <= restitution <= 1):
            raise PhyxelError(f"{self.name}: restitution = {restitution}: give 0 (it stays) to 1 (it bounces back)")
        self._restitution = float(restitution)

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
        return self.substance.material

    @material.setter
    def material(self, material: Material) -> None:
        checks.check_material(self.name, material)
        self.check_material(material)
        self._become_of(replace(self.substance.made_of(material), ramp=None))

    def _become_of(self, substance: Substance) -> None:
        before = self.mixture
        self._consist_of(substance)
        if self.world is not None:
            self.world.changed(Change.MATERIAL, self, before)

    @knows_its_arguments
    def melt(self, where: Where | None = None, viscosity: float | str | None = None) -> None:
        """Let the body, or part of it, flow. `viscosity` [Pa s]: honey has 10; without it, one with which a body of
        this size takes some seconds to spread."""
        self.in_world("melt")
        self.check_melts()
        chosen = self._chosen(where)
        stated = quantity(f"{self.name}: melt: viscosity", viscosity, "Pa s")
        self._become_of(self.substance.melted(chosen, stated, self._height))

    def check_material(self, material: Material) -> None:
        """Refuse a material that its model cannot move."""
        checks.check_moves(self.name, self.kind, self.substance.recipe, material)

    def check_melts(self) -> None:
        """Refuse to melt what its model cannot move then."""
        self.needs_solid("melt")
        self.check_material(melt_of(self.material, None, self._height))

    @property
    def _height(self) -> float:
        """Its largest extent at birth [m]."""
        return float(np.ptp(self.birth, axis=0).max())

    def solidify(self, where: Where | None = None, material: Material | None = None) -> None:
        """Let molten nodes be solid again, in the shape they have now: as it was, or of another material."""
        self.in_world("solidify")
        molten = self._chosen(where) & self.substance.is_molten
        if not molten.any():
            raise PhyxelError(f"{self.name}: solidify: nothing here has melted")
        self._become_of(self.substance.solidified(molten, material))

    def _chosen(self, where: Where | None) -> NDArray[np.bool_]:
        chosen = np.zeros(len(self.birth), bool)
        chosen[slice(None) if where is None else self._nodes(where)] = True
        return chosen

    def paint(self, where: Where, color: Vector | str) -> None:
        """Give the points of the surface that lie somewhere, in the reference shape, another colour: red, green and
        blue from 0 to 1, a name or "#rrggbb". Before the body is first shown."""
        self.appearance.paint(where, color)

    def change(self, material: Material | None = None, *, over: float | str = 0.0, **numbers: Any) -> None:
        """Become another material, or one with other numbers, smoothly within `over` [s] from now.

        `body.change(young=1e5, over=2.0)`. Stiffness, yield and creep go the same factor in the same time, other
        numbers the same step; numbers infinite or left out at one end change at once. A change replaces one that is
        still going on.
        """
        over = quantity(f"{self.name}: change: over", over, "s")
        if not (isinstance(over, int | float | np.number) and 0 <= over < np.inf):
            raise PhyxelError(f"{self.name}: change(over={over}): give a time of 0 s or more")
        end = (material or self.material).but(**numbers)
        self.check_material(end)
        if over == 0:
            self._become_of(replace(self.substance.made_of(end, keep_melt=True), ramp=None))
            return
        self.substance = replace(self.substance, ramp=Ramp(self.material, end, self._now, float(over)))
        self.follow_ramp(self._now)

    def follow_ramp(self, time: float) -> bool:
        """Take the material that `change` asks for at a time [s]; whether it is another."""
        if (substance := self.substance.at(time)) is None:
            return False
        self._become_of(substance)
        return True

    @property
    def _now(self) -> float:
        return 0.0 if self.world is None else self.world.time

    @property
    def force(self) -> Floats:
        """A force on the whole body [N], shared out by mass; assign another at any time."""
        return self._force

    @force.setter
    def force(self, force: Vector) -> None:
        self._force = as_vector(f"{self.name}: force", force, "N")
        if self.world is not None:
            self.world.changed(Change.FORCE, self)

    def fix(self, where: Where) -> Handle:
        """Hold nodes where they are."""
        return self.drag(where)

    @knows_its_arguments
    def drag(
        self, where: Where, to: HoldMotion | OpenPath = (0.0, 0.0, 0.0), turn: HoldMotion | OpenPath | None = None
    ) -> Handle:
        """Move nodes by `to` [m] from where they are now, and turn them about their middle by `turn` (degrees about x,
        y, z, in this order): three numbers, reached in the next 1/60 s; a function of the world's time [s]; or
        keyframes, a list of (time [s], three numbers), straight and evenly between them from now on, or an `OpenPath`,
        whose keyframes come to be while it is followed. About one axis they turn as often as is asked for, else the
        short way. Released nodes keep the velocity they were moved with."""
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
        if self.kind.carried_by == "shape functions" and isinstance(where, Spot) and where.radius is None:
            return np.zeros(0, np.int64), surfel_at(self, where.at)[None]
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
        return picked(self, at, radius)

    def release(self, handle: Handle) -> None:
        """Let go of what `fix` or `drag` held, also where it has parted from this body since."""
        pieces = [self] if self.world is None else [one for one in self.world.bodies if one.whole == self.whole]
        held = [(piece, own) for piece in pieces for own in piece.handles if own.grip is handle.grip]
        if not held:
            raise PhyxelError(f"{self.name}: this handle is not held; it was released before or is another body's")
        for piece, own in held:
            piece.handles.remove(own)
            piece._holds_changed()

    def lift(self, by: Vector) -> None:
        """Put the body elsewhere, by so much [m], as it is: its shape stays, it is at rest, and what held it lets go.
        Bodies that have melted are counted from one place, and go together."""
        way, world = as_vector(f"{self.name}: lift", by, "m"), self.in_world("lift")
        together = [one for one in world.bodies if one.anchor is self.anchor]
        for body in together:
            body.handles.clear()
            body._holds_changed()
        self.origin = self.origin + way
        for body in together:
            world.changed(Change.PLACE, body)
        world.revision += 1

    def _holds_changed(self) -> None:
        if self.world is not None:
            self.world.changed(Change.HOLDS, self)

    # What a user reads

    @property
    def stress(self) -> Floats:
        """Cauchy stress [Pa], shape (n, 3, 3)"""
        return self.nodal.stress

    @property
    def plastic_strain(self) -> Floats:
        """Permanent strain, shape (n, 3, 3)"""
        return self.nodal.plastic

    @property
    def surface(self) -> Surfels:
        """The surfels, where the body is now."""
        return self.appearance.carried(self.in_world("surface"))

    def displacement_at(self, X: NDArray[np.floating]) -> Floats:
        """Displacement [m] of (m, 3) reference positions [m] in or near the body, shape (m, 3)."""
        if self.nodal.unmoved:
            return np.broadcast_to(self.origin - self.centre, np.asarray(X).reshape(-1, 3).shape)
        return self.probe(X).displacement()

    def strain_at(self, X: NDArray[np.floating]) -> Floats:
        """Green's strain ½(JᵀJ − I), J = I + ∇u, at (m, 3) reference positions [m] in the body, shape (m, 3, 3)."""
        J = np.eye(3) + self.probe(X).gradient()
        return 0.5 * (np.swapaxes(J, 1, 2) @ J - np.eye(3))

    def stress_at(self, X: NDArray[np.floating]) -> Floats:
        """Cauchy stress [Pa] at (m, 3) reference positions [m] in the body, shape (m, 3, 3)."""
        return self.probe(X).stress()

    def probe(self, X: NDArray[np.floating]) -> Probe:
        """(m, 3) reference positions [m] to be asked again and again, which is faster than to name them each time."""
        return self.in_world("probe").mover_of(self).probe(self, np.asarray(X, np.float64).reshape(-1, 3))

    def diagnostics(self) -> dict[str, Any]:
        """Mass [kg], momentum [kg m/s], angular_momentum about the world's origin [kg m²/s], kinetic, elastic and
        potential energy [J], volume [m³]."""
        return self.in_world("diagnostics").mover_of(self).diagnostics([self])[0]
