"""Modal warping (G05): a body moves by a few of its eigenmodes, each an oscillator of its own, and bends along arcs.

    z̈ + (α + βΛ) ż + Λ z = Ψᵀ Rᵀ Qᵀ f,   x = c + Q (X + R̃(W z) Ψ z − ȳ)

What departs from the paper: each oscillator is followed by its exact solution instead of an implicit Euler step, which
would swallow its swing; a free body has a frame (c, Q) that carries momentum and angular momentum; constraints hold the
warped points, at the end of the step (eq. 13 with η = γ/2 = 1/(2Δt), iterated since the rows turn), not the unwarped ones;
handles bring the shapes that they pull the body into.

A step predicts free motion; then impulses even over the step put held points at their goals and keep points out of
colliders; then impulses at its end give those points the velocities they must have. So a body at rest stays exactly so.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import warp as wp
from numpy.typing import NDArray
from scipy.sparse import csr_array

from phyxel import device as dev
from phyxel.contact.feel import Feel, Touch
from phyxel.errors import PhyxelError
from phyxel.material import Mixture, rotated_elasticity
from phyxel.mls.shape_functions import ShapeValues
from phyxel.models.basis import Basis, Pace, curls, pace, rigid_pace, straight, turning
from phyxel.models.impulses import Cone, Patch, Pose, Response, Rows, solve, spread
from phyxel.models.laws import hooke_stress
from phyxel.models.lone import Goal, Hold
from phyxel.models.modes import (
    Clamp,
    Compliance,
    Matter,
    Modes,
    Progress,
    diagonal,
    eigenmodes,
    orthonormal,
    pins,
    rigid_shapes,
)  # fmt: skip
from phyxel.models.space import Space
from phyxel.models.warping import cross, cross_matrix, turn, turn_by, turned_by, unwarp, warp_derivative

Floats = NDArray[np.float64]

POINTS = 12
"""Most points of a hold that are followed: more only say the same again."""
CONTACTS = 60
"""Most points that touch something at a time."""
NEAR = 0.1
"""Gap [spacings] below which a point may come to touch something in this step."""
ROUNDS = 5
"""of corrections to where held points are"""
EXACT = 1e-7
SHALLOW = 1e-4
"""Errors of held points, and depths of others [spacings], that need not be corrected."""
UNWARPING = 40
"""Rounds that find the linear field of a warped one."""
SETTLING_STEPS = 3000


@dataclass
class Motion:
    """All that varies with time. A clamped body has neither c nor Q of its own."""

    z: Floats
    rate: Floats
    """ż [1/s]"""
    c: Floats
    v: Floats
    Q: Floats
    L: Floats
    """angular momentum about c, in the world's axes, in the body's own scales"""

    def copy(self) -> Motion:
        return Motion(*(getattr(self, name).copy() for name in self.__dataclass_fields__))


@dataclass
class Grip:
    """A hold that is not part of the clamped base."""

    hold: Hold
    chosen: NDArray[np.int64]
    """those of its points that are followed"""
    turned: Floats
    """the body's rotation there when it was taken, 3 × 3"""
    patch: Patch


class ModalModel:
    """One body that moves by its modes. Lengths in units of its mean node spacing, as `LoneModel` says."""

    def __init__(
        self,
        space: Space,
        unit: float,
        velocities: Floats,
        contact: NDArray[np.integer],
        reach: Floats,
        device: wp.Device,
        modes: int = 64,
        progress: Progress | None = None,
    ) -> None:
        self.space, self.unit = space, unit
        self.coefficients = wp.zeros(len(space), dtype=wp.vec3, device=device)
        """of the displacement less `offset`, as the last step left them, shape (n,), single precision"""
        self.offset: Floats = np.zeros(3)
        self._velocities = np.array(velocities, np.float64)
        self._contact, self._reach = np.asarray(contact), np.asarray(reach, np.float64)[contact]
        self._count, self._progress = modes, progress
        self._holds: list[Hold] = []
        self._basis: Basis | None = None
        self._felt: csr_array = space.at_nodes.values[self._contact]
        """φ_I at nodes that may touch something"""
        self._paces: dict[tuple[float, bool], tuple[Pace, Pace]] = {}

    # What it is made of, and what holds it

    def set_material(self, mixture: Mixture, rotation: Floats) -> None:
        """What each node is made of, with the material's axes turned by `rotation`; motion goes on from where it is."""
        before = getattr(self, "_matter", None)
        self._matter = Matter.of(self.space, mixture, rotation)
        self._rotation = np.asarray(rotation, np.float64)
        self._paces.clear()
        same = before is not None and all(
            np.array_equal(a, b) for a, b in zip(before.content, self._matter.content, strict=True)
        )
        if self._basis is not None and same:
            self._motion.L *= before.density / self._matter.density if before else 1.0
        elif self._basis is not None:
            self._forget()
            self._renew()

    def set_holds(self, holds: Sequence[Hold]) -> None:
        """What is held from now on; nothing jumps."""
        holds = list(holds)
        if self._basis is None:
            self._holds = holds
            return
        if len(holds) == len(self._holds) and all(map(_same, holds, self._holds)):
            return
        kept = [hold for hold in self._base if any(_same(hold, other) for other in holds)]
        self._holds = holds
        if len(kept) < len(self._base):
            self._change_base(kept)
        else:
            self._renew()

    def _ready(self) -> Basis:
        """The basis, made when first needed."""
        if self._basis is not None:
            return self._basis
        self._set_base([hold for hold in self._holds if hold.still])
        motion = Motion(np.zeros(0), np.zeros(0), np.zeros(3), np.zeros(3), np.eye(3), np.zeros(3))
        v = self._velocities
        if self._clamp is None:
            motion.c, motion.v, motion.L = self._frame_of(self.space.nodes, v)
            v = v - motion.v
            v = v - np.cross(np.linalg.solve(self._inertia(self.space.nodes)[1], motion.L), self.space.nodes - motion.c)
        self._motion = motion
        self._grips: list[Grip] = []
        self._push: Floats = np.zeros((len(self.space), 3))
        self._renew(turning(self.space, np.stack([np.zeros_like(v), v], axis=2)))
        assert self._basis is not None
        return self._basis

    def _set_base(self, holds: list[Hold]) -> None:
        """Clamp the modes where these hold the body, if that keeps it from turning."""
        points = np.concatenate([hold.points for hold in holds]) if holds else np.zeros((0, 3))
        held = pins(points)
        self._base = holds if held else []
        self._clamp = Clamp(self.space, points) if held else None
        self._forget()

    def _forget(self) -> None:
        """What depends on M, K and the clamp is to be made anew."""
        self._factor: Compliance | None = None
        self._modes: Modes | None = None
        self._responses: dict[bytes, Floats] = {}
        matter = self._matter
        self._mass = float(matter.mass.sum())
        self._lumps: Floats = matter.mass.sum(axis=1) / self._mass
        self._weighed_rest: Floats = matter.mass @ self._rest

    def _compliance(self) -> Compliance:
        if self._factor is None:
            self._factor = Compliance(self._matter, self._clamp)
        return self._factor

    @property
    def _proper(self) -> Modes:
        """The body's own modes."""
        if self._modes is None:
            self._modes = eigenmodes(self._matter, self._clamp, self._count, self._compliance, self._progress)
        return self._modes

    def _renew(self, present: Floats | None = None) -> None:
        """A basis of the body's modes, the shapes of what holds it, and those it has now and goes to, `present`
        (n, 6, 2): so nothing jumps.

        A pull at a few points bends the body by its modes; what is left to do is local, and turns nothing. If it did, the
        sharp peak under a single point would roll up.
        """
        if present is None:
            assert self._basis is not None
            present = self._basis.shapes @ np.stack([self._motion.z, self._motion.rate], axis=1)
        followed = [hold for hold in self._holds if not any(_same(hold, base) for base in self._base)]
        points = max(1, min(POINTS, 4 * POINTS // max(1, len(followed))))
        chosen = [spread(hold.points, points, 0) for hold in followed]
        matter = self._matter
        shapes = [turning(self.space, self._proper.shapes)]
        rigid = [straight(rigid_shapes(matter))] if self._clamp is None else []
        for hold, some in zip(followed, chosen, strict=True):
            shapes.append(straight(orthonormal(matter, self._response(hold.points[some]), [*rigid, *shapes])))
        for hold in followed:
            if hold.turns:
                extra = orthonormal(matter, self._twist(hold.points[:1]), [*rigid, *shapes])
                shapes.append(turning(self.space, extra))
        shapes.append(orthonormal(matter, present, shapes))
        modes = diagonal(matter, np.concatenate(shapes, axis=2))
        self._motion.z, self._motion.rate = matter.products(modes.shapes, present).T.copy()
        self._adopt(Basis(self.space, modes, self._clamp, self.coefficients))
        old = self._grips
        self._grips = []
        pose = self._pose(False)
        for hold, some in zip(followed, chosen, strict=True):
            patch = self._patch(hold, some)
            patch.see(self._motion.z)
            before = [grip.turned for grip in old if _same(grip.hold, hold)]
            self._grips.append(Grip(hold, some, before[0] if before else patch.rotation(pose), patch))

    def _patch(self, hold: Hold, some: NDArray[np.int64]) -> Patch:
        X = hold.points[some]
        at = self.space.at(X)
        return Patch(X, at.values.toarray(), np.array([part[[0]].toarray()[0] for part in at.gradients]), self._ready())

    def _response(self, points: Floats) -> Floats:
        """The static shapes that unit forces at points (k, 3) make, shape (n, 3, 3k)."""
        values = self.space.at(points).values.toarray()
        return self._bent(np.einsum("ci,ab->iacb", values, np.eye(3)).reshape(len(self.space), 3, -1))

    def _twist(self, point: Floats) -> Floats:
        """Those that unit torques at a point (1, 3) make, shape (n, 3, 3)."""
        gradients = np.stack([part.toarray()[0] for part in self.space.at(point).gradients], axis=1)
        return self._bent(0.5 * cross_matrix(gradients))

    def _bent(self, forces: Floats) -> Floats:
        key = forces.tobytes()
        if key not in self._responses:
            self._responses[key] = self._compliance().response(forces)
        return self._responses[key]

    def _adopt(self, basis: Basis) -> None:
        self._basis = basis
        self._paces.clear()
        self._take_force()
        self._laid: Floats | None = None
        self._lay()
        self._show()

    @property
    def _rest(self) -> Floats:
        """X about its middle."""
        return self.space.nodes - self._lumps @ self.space.nodes

    def _change_base(self, kept: list[Hold]) -> None:
        """Some of what the modes were clamped by is gone."""
        u, v = self.u, self.v
        self._set_base(kept)
        X, motion = self.space.nodes, self._motion
        y, rate = X + u, v
        motion.c, motion.v, motion.L, motion.Q = np.zeros(3), np.zeros(3), np.zeros(3), np.eye(3)
        if self._clamp is None:
            motion.c, motion.v, motion.L = self._frame_of(y, v)
            motion.Q = _best_turn(self._rest, self._matter.mass @ (y - motion.c))
            spin = np.linalg.solve(self._inertia(y)[1], motion.L)
            rate = (v - motion.v - np.cross(spin, y - motion.c)) @ motion.Q
            y = self._lumps @ X + (y - motion.c) @ motion.Q
        self._basis = None
        self._renew(turning(self.space, np.stack(self._unwarped(y - X, rate), axis=2)))

    def _unwarped(self, u: Floats, rate: Floats) -> tuple[Floats, Floats]:
        """The linear field whose warp is u (n, 3), and its change whose warp changes at `rate`. Each turn of the loop
        sees the rotations better."""
        at = self.space.at_nodes
        p, p_rate = u, rate
        for _ in range(UNWARPING):
            w = curls(at, p[:, :, None])[:, :, 0]
            p = unwarp(u, w)
        moves = warp_derivative(np.concatenate([p, w], axis=1))
        for _ in range(UNWARPING):
            turning = np.einsum("nab,nb->na", moves[:, :, 3:], curls(at, p_rate[:, :, None])[:, :, 0])
            p_rate = unwarp(rate - turning, w)
        return p, p_rate

    # The frame

    def _inertia(self, y: Floats) -> tuple[Floats, Floats, Floats]:
        """Middle of a shape y (n, 3), its inertia about it (3 × 3), and M times the arms (n, 3)."""
        middle = self._lumps @ y
        weighed = self._matter.mass @ (y - middle)
        second = (y - middle).T @ weighed
        return middle, np.trace(second) * np.eye(3) - second, weighed

    def _frame_of(self, x: Floats, v: Floats) -> tuple[Floats, Floats, Floats]:
        """Middle, its velocity, and angular momentum about it."""
        middle, _, weighed = self._inertia(x)
        return middle, self._lumps @ v, cross(weighed, v).sum(axis=0)

    def _lay(self) -> None:
        """Make the field of z, unless it is there, and what a free body's frame needs of it."""
        assert self._basis is not None
        if self._laid is self._motion.z:
            return
        self._laid = self._motion.z
        self._basis.lay(self._motion.z)
        if self._clamp is None:
            self._y = self.space.nodes + self._basis.u
            self._middle, inertia, self._weighed = self._inertia(self._y)
            self._inverse = np.linalg.inv(inertia)

    def _show(self) -> None:
        """Leave coefficients on the device, and the forces on the modes here."""
        assert self._basis is not None
        motion = self._motion
        if self._clamp is None and motion.L.any():
            self._basis.load(self._bending + self._whirl() @ motion.Q.T)
        self._forces = self._basis.show(motion.Q)
        self.offset = np.zeros(3) if self._clamp is not None else motion.c - motion.Q @ self._middle

    def _whirl(self) -> Floats:
        """Forces −ω × (ω × M y) − ω̇ × M y of a turning frame on the coefficients, in its axes, shape (n, 3).

        They grow with the shape they stretch, in nature only until that stiffens; as the modes do not, the more the
        body spins for its lowest mode the more y is taken at rest.
        """
        angular = self._motion.Q.T @ self._motion.L
        spin = self._inverse @ angular
        faster = -self._inverse @ np.cross(spin, angular)
        grows = np.clip(1 - spin @ spin / max(self._values[0], 1e-30), 0.0, 1.0) if len(self._values) else 0.0
        arms = self._weighed_rest + grows * (self._weighed - self._weighed_rest)
        whirl = np.outer(spin, spin) - spin @ spin * np.eye(3) + cross_matrix(faster)
        return -arms @ whirl.T

    def _pose(self, rows: bool = True) -> Pose:
        """The frame now; `rows`: and how it goes with z."""
        assert self._basis is not None
        l, motion = len(self._basis), self._motion
        none = np.zeros((3, l))
        if self._clamp is not None:
            return Pose(np.zeros(3), np.eye(3), np.zeros(3), 0.0, np.zeros((3, 3)), none, none)
        inverse = motion.Q @ self._inverse @ motion.Q.T
        pose = Pose(motion.c, motion.Q, self._middle, 1 / self._mass, inverse, none, none)
        if not rows:
            return pose
        moves = warp_derivative(self._basis.linear)
        both = np.concatenate([self._lumps[:, None, None] * moves, cross_matrix(self._weighed) @ moves], axis=1)
        sums = np.tensordot(both, self._basis.rows, ([0, 2], [0, 1]))
        return replace(pose, drift=sums[:3], spin=self._inverse @ sums[3:])

    def _turn(self, dt: float, y: Floats, weighed: Floats) -> None:
        """Turn the frame from the shape y to the present one, by the midpoint rule: L is what the whole has."""
        motion = self._motion
        middle_weighed = 0.5 * (weighed + self._weighed)
        arms = 0.5 * (y + self._y)
        second = (arms - self._lumps @ arms).T @ middle_weighed
        inverse = np.linalg.inv(np.trace(second) * np.eye(3) - second)
        own = cross(middle_weighed, self._y - y).sum(axis=0) / dt
        spin = inverse @ (motion.Q.T @ motion.L - own)
        for _ in range(6):
            half = motion.Q @ turn_by(0.5 * dt * spin)
            spin = inverse @ (half.T @ motion.L - own)
        motion.Q = motion.Q @ turn_by(dt * spin)

    # Time

    def step(self, dt: float, push: Floats, goals: Sequence[Goal], feel: Feel | None) -> None:
        """Go on by dt [s] under accelerations `push` (n, 3) [1/s²], with every hold at its goal at the end, and out of
        what is felt."""
        self._ready()
        self._advance(dt, push, goals, feel, False)

    def _advance(self, dt: float, push: Floats, goals: Sequence[Goal], feel: Feel | None, calm: bool) -> None:
        motion = self._motion
        self._load(push)
        modes, rigid = self._pace(dt, calm)
        forces = self._forces
        goals = self._goals(goals)
        pose = self._pose(False)
        before = [self._places(goal) for goal in goals]
        here = self._contact_places(pose) if feel is not None else None
        self._predict(modes, rigid, dt)
        if goals or feel is not None:
            self._constrain(dt, modes, rigid, goals, before, feel, here, calm)
        if calm:
            motion.rate[:], motion.v[:], motion.L[:] = 0.0, 0.0, 0.0
        if not np.isfinite(motion.z).all():
            raise PhyxelError("the body flew apart: its handles or colliders ask for more than it can follow")
        self._lay()
        self._show()
        if not calm:  # forces turn with the body: half of the step should have seen these
            motion.rate = motion.rate + 0.5 * modes.s * (self._forces - forces)

    def _pace(self, dt: float, calm: bool) -> tuple[Pace, Pace]:
        if (dt, calm) not in self._paces:
            assert self._basis is not None
            matter = self._matter
            self._paces.clear()
            values = np.maximum(self._basis.values, 0.0) * self._squared
            self._paces[dt, calm] = (
                pace(values, matter.drag, matter.damping, dt, calm),
                rigid_pace(matter.drag, dt),
            )
        return self._paces[dt, calm]

    @property
    def _squared(self) -> float:
        """ω² [1/s²] of a mode that has 1 in the body's own scales."""
        return self._matter.modulus / (self._matter.density * self.unit**2)

    def _load(self, push: Floats) -> None:
        """Take over accelerations (n, 3), unless they are the ones that act already."""
        if np.array_equal(push, self._push):
            return
        assert self._basis is not None
        self._push = np.array(push, np.float64)
        self._take_force()
        self._show()

    def _take_force(self) -> None:
        """Forces of the accelerations, and what of them bends the body: its frame takes their mean."""
        assert self._basis is not None
        self._force: Floats = self._matter.mass @ self._push
        self._mean = self._force.sum(axis=0) / self._mass
        self._bending = self._force
        if self._clamp is None:
            self._bending = self._matter.mass @ (self._push - self._mean)
        self._basis.load(self._bending)

    def _predict(self, modes: Pace, rigid: Pace, dt: float) -> None:
        """Free motion to the end of the step."""
        assert self._basis is not None
        motion = self._motion
        pull = self._forces - np.maximum(self._basis.values, 0.0) * self._squared * motion.z
        motion.z = motion.z + modes.s * motion.rate + modes.g * pull
        motion.rate = modes.e * motion.rate + modes.s * pull
        if self._clamp is None:
            y, weighed = self._y, self._weighed
            moment = ((y - self._middle) @ motion.Q.T).T @ self._force
            torque = np.array([moment[1, 2] - moment[2, 1], moment[2, 0] - moment[0, 2], moment[0, 1] - moment[1, 0]])
            a = self._mean
            motion.c = motion.c + rigid.s * motion.v + rigid.g * a
            motion.v = rigid.e * motion.v + rigid.s * a
            after = rigid.e * motion.L + rigid.s * torque
            motion.L = 0.5 * (motion.L + after)
            self._lay()
            self._turn(dt, y, weighed)
            motion.L = after

    # Holds and contact

    def _goals(self, goals: Sequence[Goal]) -> list[tuple[Grip, Goal]]:
        """The goals of the holds that are not clamped."""
        if len(goals) != len(self._holds):
            raise PhyxelError(f"{len(goals)} goals for {len(self._holds)} holds: give one for each")
        pairs = zip(self._holds, goals, strict=True)
        return [(grip, goal) for hold, goal in pairs for grip in self._grips if grip.hold is hold]

    def _places(self, held: tuple[Grip, Goal]) -> tuple[Floats, Floats]:
        """Where the points of a hold are, and how far the body has turned there."""
        patch, pose = held[0].patch, self._pose(False)
        patch.see(self._motion.z)
        return patch.places(pose), patch.rotation(pose)

    def _contact_places(self, pose: Pose) -> Floats:
        assert self._basis is not None
        return pose.c + (self._felt @ (self.space.nodes + self._basis.u) - pose.middle) @ pose.Q.T

    def _held_rows(self, goals: list[tuple[Grip, Goal]], pose: Pose) -> tuple[list[Rows], Floats]:
        """Rows of what is held, and how far it is from its goals."""
        rows, errors = [], [np.zeros(0)]
        for grip, goal in goals:
            patch = grip.patch
            patch.see(self._motion.z)
            patch.follow()
            rows.append(patch.rows(pose))
            errors.append((patch.places(pose) - patch.X - goal.displacements[grip.chosen]).ravel())
            if grip.hold.turns:
                rows.append(patch.rotation_rows(pose))
                errors.append(turned_by(patch.rotation(pose) @ (goal.rotation @ grip.turned).T))
        return rows, np.concatenate(errors)

    def _constrain(
        self, dt: float, modes: Pace, rigid: Pace, goals: list[tuple[Grip, Goal]], before: list[tuple[Floats, Floats]],
        feel: Feel | None, here: Floats | None, calm: bool,
    ) -> None:  # fmt: skip
        """Held points to their goals, others out of colliders; then their velocities."""
        if self._clamp is not None and feel is not None:
            self._lay()
        contacts = None if feel is None or here is None else self._touching(feel, here, dt)
        if not goals and contacts is None:
            return
        total = np.zeros(0 if contacts is None else 3 * len(contacts.touch.gap))
        friction = np.zeros(0) if contacts is None else contacts.touch.friction
        place, speed = Response(float(rigid.g) / dt, modes.g / dt), Response(float(rigid.s) / dt, modes.s / dt)
        for left in reversed(range(ROUNDS)):
            pose = self._pose()
            rows, error = self._held_rows(goals, pose)
            held = len(error)
            fine = np.abs(error).max(initial=0.0) < EXACT
            if contacts is not None:
                rows.append(contacts.rows(self._motion.z, pose))
                error = np.concatenate([error, contacts.gaps(pose, dt)])
                fine = fine and bool(total.any()) and error[held::3].min() > -SHALLOW
            joined = Rows.joined(rows)
            if fine or not left:
                break
            delta = solve(joined.matrix(pose, place), error, held, Cone(friction, total))
            total = total + delta[held:]
            self._kick(joined, delta, pose, place, speed)
        if not calm:
            wanted = [*self._held_velocities(goals, before, pose, dt)]
            if contacts is not None:
                wanted.append(contacts.velocities(2 * dt * _longest(self._push)))
            self._match_velocities(joined, np.concatenate(wanted), pose, held, Cone(friction, total), dt)

    def _kick(self, rows: Rows, impulses: Floats, pose: Pose, place: Response | None, speed: Response) -> None:
        """What impulses along rows do to where the body is and how it moves."""
        motion = self._motion
        move, torque, force = rows.move.T @ impulses, rows.turn.T @ impulses, rows.z.T @ impulses
        motion.rate = motion.rate + speed.modes * force
        if self._clamp is None:
            motion.v = motion.v + speed.rigid * pose.inverse_mass * move
            motion.L = motion.L + speed.rigid * torque
        if place is None:
            return
        shift = place.modes * force
        motion.z = motion.z + shift
        if self._clamp is None:
            motion.c = motion.c + place.rigid * pose.inverse_mass * move
            turned = turn_by(place.rigid * pose.inverse_inertia @ torque)
            motion.Q = turned @ motion.Q @ turn_by(-pose.spin @ shift)
            self._lay()

    def _held_velocities(
        self, goals: list[tuple[Grip, Goal]], before: list[tuple[Floats, Floats]], pose: Pose, dt: float
    ) -> Iterator[Floats]:
        """How fast what is held went in this step, row by row."""
        for (grip, _), (places, rotation) in zip(goals, before, strict=True):
            yield (grip.patch.places(pose) - places).ravel() / dt
            if grip.hold.turns:
                yield turned_by(grip.patch.rotation(pose) @ rotation.T) / dt

    def _match_velocities(self, rows: Rows, wanted: Floats, pose: Pose, held: int, cone: Cone, dt: float) -> None:
        """Give rows the velocities that are wanted: all that are held, and of points of contact those that press."""
        pressing = np.flatnonzero(cone.total[::3] > 0)
        contacts = (3 * pressing[:, None] + np.arange(3)).ravel()
        chosen = np.concatenate([np.arange(held), held + contacts])
        rows, wanted, motion = rows[chosen], wanted[chosen], self._motion
        now = rows.move @ motion.v + rows.turn @ (pose.inverse_inertia @ motion.L) + rows.z @ motion.rate
        response = Response(1.0, 1 / (1 + np.maximum(self._values, 0.0) * dt**2))
        cone = Cone(cone.friction[pressing], cone.total[contacts])
        self._kick(rows, solve(rows.matrix(pose, response), now - wanted, held, cone), pose, None, response)

    @property
    def _values(self) -> Floats:
        """ω² [1/s²] of the basis."""
        assert self._basis is not None
        return self._basis.values * self._squared

    def _touching(self, feel: Feel, here: Floats, dt: float) -> Contacts | None:
        """The points that touch something at the end of the step, or nearly do; the deepest, well spread."""
        assert self._basis is not None
        places = self._contact_places(self._pose(False))
        touch = feel(places)
        gap = touch.gap - self._reach
        near = np.flatnonzero(gap < NEAR)
        if not len(near) or gap[near].min() > 0:
            return None
        near = near[spread(places[near], CONTACTS, int(np.argmin(gap[near])))]
        some = Touch(gap[near], *(getattr(touch, name)[near] for name in ("normal", "velocity", "friction", "restitution")))
        patch = Patch(self.space.nodes[self._contact[near]], self._felt[near].toarray(), None, self._basis)
        return Contacts(some, patch, here[near], places[near], dt)

    # Rest

    def settle(self, push: Floats, goals: Sequence[Goal], feel: Feel | None, tolerance: float) -> None:
        """Go to static equilibrium, to `tolerance` [spacings]; the body is then at rest.

        Steps long enough for every mode to go nearly all the way, and shorter where that leads to and fro, since forces
        turn with what they bend. A free body falls and turns a little at a time until something holds it.
        """
        self._ready()
        if self._clamp is None and not self._grips and feel is None:
            raise PhyxelError("settle: nothing holds this body; fix it somewhere, or put a collider under it")
        slowest = float(np.sqrt(max(self._values.min(initial=np.inf), 1e-30)))
        dt = 6 / slowest
        if self._clamp is None:
            dt = min(dt, float(np.sqrt(0.2 / max(_longest(np.asarray(push)), 1e-30))))
        shortest, quiet, last, before = 0.1 * dt, 0, np.inf, self.u
        for _ in range(SETTLING_STEPS):
            self._advance(dt, push, goals, feel, True)
            now = self.u
            gone = float(np.abs(now - before).max())
            share = 1 - np.exp(-slowest * dt) * (1 + slowest * dt)  # of what the slowest mode had to go
            quiet = quiet + 1 if gone <= 0.3 * share * tolerance else 0
            if quiet == 3:
                return
            if gone > 0.8 * last:
                dt = max(0.7 * dt, shortest)
            last, before = gone, now
        raise PhyxelError(f"settle: no rest after {SETTLING_STEPS} steps; is the body held or on the ground?")

    # What it shows

    @property
    def u(self) -> Floats:
        """Coefficients of the displacement, shape (n, 3)."""
        if self._basis is None:
            return np.zeros((len(self.space), 3))
        if self._clamp is not None:
            return self._basis.u.copy()
        X = self.space.nodes
        return self.offset + (X + self._basis.u) @ self._motion.Q.T - X

    @property
    def v(self) -> Floats:
        """Coefficients of the velocity [1/s], shape (n, 3): the exact change of u."""
        if self._basis is None:
            return self._velocities.copy()
        motion = self._motion
        rate = np.einsum("nab,nb->na", warp_derivative(self._basis.linear), self._basis.rows @ motion.rate)
        if self._clamp is not None:
            return self._clamp.without(rate)
        own = cross(self._weighed, rate).sum(axis=0)
        spin = self._inverse @ (motion.Q.T @ motion.L - own)
        return motion.v + (np.cross(spin, self._y - self._middle) + rate - self._lumps @ rate) @ motion.Q.T

    @property
    def frequencies(self) -> Floats:
        """Of the body's modes [Hz], ascending, shape (l,)."""
        self._ready()
        return np.sqrt(np.maximum(self._proper.values, 0.0) * self._squared) / (2 * np.pi)

    @property
    def linear(self) -> Floats:
        """Coefficients of the linear field that is bent along arcs, shape (n, 3)."""
        return self._ready().linear[:, :3]

    def mode_shape(self, k: int) -> Floats:
        """Coefficients of mode k, shape (n, 3)."""
        self._ready()
        return self._proper.shapes[:, :, k]

    def shown(self) -> tuple[wp.array, Floats]:
        """Coefficients of the displacement on the device, and the even part that they are without."""
        self._ready()
        return self.coefficients, self.offset

    def plastic(self, at: ShapeValues) -> Floats:
        """None: shape (m, 3, 3)."""
        return np.zeros((len(at.condition), 3, 3))

    def displacement(self, at: ShapeValues) -> Floats:
        """u at points, shape (m, 3)."""
        return at.values @ self.u

    def gradient(self, at: ShapeValues) -> Floats:
        """∇u at points, (∇u)_ab = ∂u_a/∂X_b, shape (m, 3, 3)."""
        u = self.u
        return np.stack([gradient @ u for gradient in at.gradients], axis=2)

    def stress(self, at: ShapeValues, material: Mixture, which: NDArray[np.integer]) -> Floats:
        """Cauchy stress [Pa] at points whose laws are `which` of the mixture's, shape (m, 3, 3): that of the linear
        field's strain, turned with the body, R C ε Rᵀ."""
        basis = self._ready()
        p = basis.linear[:, :3]
        gradient = np.stack([part @ p for part in at.gradients], axis=2)
        strain = 0.5 * (gradient + np.swapaxes(gradient, 1, 2))
        R = self._motion.Q @ turn(curls(at, p[:, :, None])[:, :, 0])
        result = np.empty_like(strain)
        for k, one in enumerate(material.materials):
            C = one.elasticity if one.stiffness is None else rotated_elasticity(one.elasticity, self._rotation)
            result[which == k] = hooke_stress(C, strain[which == k])
        return R @ result @ np.swapaxes(R, 1, 2)

    def energies(self) -> tuple[float, float]:
        """Elastic and kinetic energy [J]."""
        v = self.v
        kinetic = 0.5 * float(np.sum(v * (self._matter.mass @ v))) * self._matter.density * self.unit**5
        if self._basis is None:
            return 0.0, kinetic
        return 0.5 * float(self._basis.values @ self._motion.z**2) * self._matter.modulus * self.unit**3, kinetic

    def momenta(self) -> tuple[Floats, Floats]:
        """∫ρ v [kg m/s] and ∫ρ (X + u) × v [kg m²/s] about where the body counts from, shape (3,) each."""
        weighed = self._matter.mass @ self.v * (self._matter.density * self.unit**4)
        return weighed.sum(axis=0), np.cross(self.space.nodes + self.u, weighed).sum(axis=0) * self.unit

    def volume(self) -> float:
        """∫ |J| [m³]."""
        values, u = self.space.values, self.u
        products = u[values.indices, :, None] * self.space.gradients[:, None, :]
        J = np.eye(3) + np.add.reduceat(products, values.indptr[:-1])
        return float(self.space.weights @ np.linalg.det(J)) * self.unit**3

    # Checkpoints

    def state(self) -> dict[str, NDArray[Any]]:
        """All that a checkpoint must keep."""
        basis = self._ready()
        motion = {name: getattr(self._motion, name).copy() for name in Motion.__dataclass_fields__}
        holds = self._holds
        points = np.concatenate([*(hold.points for hold in holds), np.zeros((0, 3))])
        kinds = [[len(h.points), h.still, h.turns, any(h is base for base in self._base)] for h in holds]
        turned = np.array([grip.turned for grip in self._grips]).reshape(-1, 3, 3)
        return motion | {
            "shapes": basis.shapes.copy(), "values": basis.values.copy(), "push": self._push.copy(),
            "hold_points": points, "holds": np.array(kinds, np.int64).reshape(-1, 4), "turned": turned,
        }  # fmt: skip

    def restore(self, state: dict[str, NDArray[Any]]) -> None:
        """Take over what `state` gave."""
        starts = np.cumsum([0, *state["holds"][:, 0]])
        self._holds = [
            Hold(state["hold_points"][start : start + count], bool(still), bool(turns))
            for start, (count, still, turns, _) in zip(starts, state["holds"], strict=False)
        ]
        self._set_base([hold for hold, kind in zip(self._holds, state["holds"], strict=True) if kind[3]])
        self._motion = Motion(**{name: state[name].copy() for name in Motion.__dataclass_fields__})
        self._push = np.zeros((len(self.space), 3))
        self._adopt(Basis(self.space, Modes(state["shapes"], state["values"]), self._clamp, self.coefficients))
        followed = [hold for hold in self._holds if not any(hold is base for base in self._base)]
        points = max(1, min(POINTS, 4 * POINTS // max(1, len(followed))))
        self._grips = []
        for hold, turned in zip(followed, state["turned"], strict=True):
            some = spread(hold.points, points, 0)
            self._grips.append(Grip(hold, some, turned, self._patch(hold, some)))
        self._load(state["push"])


class Contacts:
    """Points that touch something in a step."""

    def __init__(self, touch: Touch, patch: Patch, before: Floats, predicted: Floats, dt: float) -> None:
        self.touch, self.patch = touch, patch
        self._before, self._predicted = before, predicted
        self._slip = before + dt * touch.velocity
        self.axes = _axes(touch.normal)
        """normal and two tangents, shape (k, 3, 3)"""
        self._approach = np.einsum("ka,ka->k", (predicted - before) / dt - touch.velocity, touch.normal)

    def rows(self, z: Floats, pose: Pose) -> Rows:
        """Of the points, along their axes."""
        self.patch.see(z)
        self.patch.follow()
        return self.patch.rows(pose).along(self.axes)

    def gaps(self, pose: Pose, dt: float) -> Floats:
        """Gap and slip of each point over the step, shape (3k,)."""
        places = self.patch.places(pose)
        result = np.einsum("kab,kb->ka", self.axes, places - self._slip)
        result[:, 0] = self.touch.gap + np.einsum("ka,ka->k", places - self._predicted, self.touch.normal)
        return result.ravel()

    def velocities(self, slow: float) -> Floats:
        """What they are to have at the end along their axes, shape (3k,): the collider's, and what bounces back of an
        approach that is not `slow`."""
        wanted = np.einsum("kab,kb->ka", self.axes, self.touch.velocity)
        bounces = self._approach < -slow
        wanted[:, 0] -= np.where(bounces, self.touch.restitution * self._approach, 0.0)
        return wanted.ravel()


def _axes(normal: Floats) -> Floats:
    """Right-handed axes with the first along unit vectors (k, 3), shape (k, 3, 3)."""
    helper = np.eye(3)[np.argmin(np.abs(normal), axis=1)]
    first = np.cross(normal, helper)
    first /= np.linalg.norm(first, axis=1)[:, None]
    return np.stack([normal, first, np.cross(normal, first)], axis=1)


def _longest(vectors: Floats) -> float:
    return float(np.sqrt((vectors**2).sum(axis=1).max()))


def _same(one: Hold, other: Hold) -> bool:
    return one.still == other.still and one.turns == other.turns and np.array_equal(one.points, other.points)


def _best_turn(rest: Floats, weighed: Floats) -> Floats:
    """The rotation that takes a shape at rest closest to another one, given with its masses."""
    left, _, right = np.linalg.svd(weighed.T @ rest)
    left[:, 2] *= np.sign(np.linalg.det(left @ right))
    return left @ right
