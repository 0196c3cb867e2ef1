"""Modal warping (G05): a body moves by a few of its eigenmodes, each an oscillator of its own, and bends along arcs.

    z̈ + (α + βΛ) ż + Λ z = Ψᵀ Rᵀ Qᵀ f,   x = c + Q (X + R̃(W z) Ψ z − ȳ)

What departs from the paper: each oscillator is followed by its exact solution instead of an implicit Euler step, which
would swallow its swing; a free body has a frame (c, Q) that carries momentum and angular momentum; constraints hold the
warped points, at the end of the step (eq. 13 with 2η = γ = 1/Δt, iterated since the rows turn), not the unwarped ones;
handles bring the shapes that they pull the body into.

A step predicts free motion; then impulses even over the step put held points at their goals and keep points out of
colliders; then impulses at its end give those points the velocities they must have. So a body at rest stays exactly so.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import warp as wp
from numpy.typing import NDArray
from scipy.sparse import csr_array

from phyxel.contact.touch import Feel, Touch
from phyxel.errors import PhyxelError
from phyxel.material.material import Mixture, rotated_elasticity
from phyxel.mls.shape_functions import ShapeValues
from phyxel.models.coulomb import NEAR, RESTING
from phyxel.models.galerkin.space import Space
from phyxel.models.law import hooke_stress
from phyxel.models.modal.basis import Basis, OscillatorStep, curls, pace, rigid_pace, straight, turning
from phyxel.models.modal.constraints import (
    Cone,
    FramePose,
    Grip,
    PointPatch,
    Response,
    Rows,
    TouchingPoints,
    solve,
    spread,
)
from phyxel.models.modal.frame import FloatingFrame, ModalMotion
from phyxel.models.modal.modes import (
    Clamp,
    Compliance,
    ModalMatrices,
    Modes,
    Progress,
    diagonal,
    eigenmodes,
    orthonormal,
    pins,
    rigid_shapes,
)
from phyxel.models.modal.warping import unwarp, warp_derivative
from phyxel.models.protocol import Goal, Hold
from phyxel.rotation import cross_matrix, rotation_by, rotation_vector, rotation_vectors, rotations_by

Floats = NDArray[np.float64]

POINTS = 12
"""Most points of a hold that are followed: more only say the same again."""
CONTACTS = 60
"""Most points that touch something at a time."""
ROUNDS = 5
"""of corrections to where held points are"""
EXACT = 1e-7
SHALLOW = 1e-4
"""Errors of held points, and depths of others [spacings], that need not be corrected."""
TURN = 0.5
"""Most that a node is turned in one correction [rad]."""
SETTLING_STEPS = 3000


class ModalModel:
    """One body that moves by its modes. Lengths in units of its mean node spacing, as `LoneModel` says."""

    _matter: ModalMatrices
    _bending: Floats

    def __init__(
        self,
        space: Space,
        unit: float,
        velocities: Floats,
        contact: NDArray[np.integer],
        device: wp.Device,
        modes: int = 64,
        progress: Progress | None = None,
    ) -> None:
        self.space, self.unit = space, unit
        self.coefficients = wp.zeros(len(space), dtype=wp.vec3, device=device)
        """of the displacement less `offset`, as the last step left them, shape (n,), single precision"""
        self.offset: Floats = np.zeros(3)
        self._velocities = np.array(velocities, np.float64)
        self._contact = np.asarray(contact)
        self._count, self._progress = modes, progress
        self._given: Floats | None = None
        self._holds: list[Hold] = []
        self._base: list[Hold] = []
        self._grips: list[Grip] = []
        self._frame: FloatingFrame | None = None
        self._basis: Basis | None = None
        self._felt: csr_array = space.at_nodes.values[self._contact]
        """φ_I at nodes that may touch something"""
        self._paces: dict[tuple[float, bool], tuple[OscillatorStep, OscillatorStep]] = {}

    # What it is made of, and what holds it

    def set_material(self, mixture: Mixture, rotation: Floats) -> None:
        """What each node is made of, with the material's axes turned by `rotation`; motion goes on from where it is."""
        matter = ModalMatrices.of(self.space, mixture, rotation)
        self._rotation = np.asarray(rotation, np.float64)
        self._paces.clear()
        if self._basis is None or all(map(np.array_equal, matter.content, self._matter.content)):
            self._matter = matter
            return
        u, v = self.u, self.v
        self._matter = matter
        self._restart(self._base, u, v)

    def set_holds(self, holds: Sequence[Hold]) -> None:
        """What is held from now on; nothing jumps."""
        holds = list(holds)
        if self._basis is None:
            self._holds = holds
            return
        if len(holds) == len(self._holds) and all(map(_same, holds, self._holds)):
            return
        kept = [hold for hold in holds if any(_same(hold, base) for base in self._base)]
        self._holds = holds
        if len(kept) < len(self._base):
            self._restart(kept, self.u, self.v)
        else:
            self._base = kept
            self._renew()

    def _ready(self) -> Basis:
        """The basis, made when first needed."""
        if self._basis is not None:
            return self._basis
        self._push: Floats = np.zeros((len(self.space), 3))
        self._given = None
        self._set_base([hold for hold in self._holds if hold.still])
        self._motion, rate = ModalMotion.none(), self._velocities
        if self._frame is not None:
            self._motion, _, rate, _ = self._frame.fitted(self.space.nodes, rate, np.eye(3))
        self._renew(turning(self.space, np.stack([np.zeros_like(rate), rate], axis=2)))
        assert self._basis is not None
        return self._basis

    def _restart(self, base: list[Hold], u: Floats, v: Floats) -> None:
        """Other modes, clamped by `base` only, from the same displacements and velocities (n, 3).

        Where the clamp was, the warped field had a part taken off: what is left is the warp of another linear field
        with the same rotations.
        """
        assert self._basis is not None
        motion, was_free = self._motion, self._frame is not None
        present = self._basis.shapes @ np.stack([motion.z, motion.rate], axis=1)
        w, w_rate = present[:, 3:, 0], present[:, 3:, 1]
        self._set_base(base)
        if self._frame is not None:
            Q = motion.Q if was_free else None
            self._motion, u, v, spin = self._frame.fitted(self.space.nodes + u, v, Q)
            if not was_free:
                w = rotation_vectors(self._motion.Q.T @ rotations_by(w))
                w_rate = w_rate @ self._motion.Q - spin
        p = unwarp(u, w)
        turned = np.einsum("nab,nb->na", warp_derivative(np.concatenate([p, w], axis=1))[:, :, 3:], w_rate)
        fields = [np.concatenate([p, w], axis=1), np.concatenate([unwarp(v - turned, w), w_rate], axis=1)]
        self._renew(np.stack(fields, axis=2))

    def _set_base(self, holds: list[Hold]) -> None:
        """Clamp the modes where these hold the body, if that keeps it from turning."""
        points = np.concatenate([hold.points for hold in holds]) if holds else np.zeros((0, 3))
        held = pins(points)
        self._base = holds if held else []
        self._clamp = Clamp(self.space, points) if held else None
        self._frame = None if held else FloatingFrame(self._matter, self.space.nodes)
        self._factor: Compliance | None = None
        self._modes: Modes | None = None
        self._responses: dict[bytes, Floats] = {}

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

        A pull at a few points bends the body by its modes; what is left to do is local, and turns nothing. If it did,
        the sharp peak under a single point would roll up.
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
            pulled = self._response(hold.points[some], hold.turns)
            shapes.append(straight(orthonormal(matter, pulled, [*rigid, *shapes])))
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

    def _patch(self, hold: Hold, some: NDArray[np.int64]) -> PointPatch:
        X = hold.points[some]
        at = self.space.at(X)
        return PointPatch(
            X, at.values.toarray(), np.array([part[[0]].toarray()[0] for part in at.gradients]), self._ready()
        )

    def _response(self, points: Floats, turns: bool) -> Floats:
        """The static shapes that unit forces at points (k, 3) make, and unit torques at the first if that is to turn,
        shape (n, 3, m)."""
        at = self.space.at(points)
        forces = np.einsum("ci,ab->iacb", at.values.toarray(), np.eye(3)).reshape(len(self.space), 3, -1)
        if turns:
            gradients = np.stack([part[[0]].toarray()[0] for part in at.gradients], axis=1)
            forces = np.concatenate([forces, 0.5 * cross_matrix(gradients)], axis=2)
        if self._clamp is None:  # a free body's frame takes the rest, next to which its bending would be lost
            rigid = rigid_shapes(self._matter)
            amounts = np.tensordot(rigid, forces, ([0, 1], [0, 1]))
            forces = forces - self._matter.weighed(rigid) @ amounts
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

    # The field

    def _lay(self) -> None:
        """Make the field of z, unless it is there."""
        assert self._basis is not None
        if self._laid is self._motion.z:
            return
        self._laid = self._motion.z
        self._basis.lay(self._motion.z)
        if self._frame is not None:
            self._frame.take(self.space.nodes + self._basis.u)

    def _show(self) -> None:
        """Leave coefficients on the device, and the forces on the modes here."""
        assert self._basis is not None
        motion = self._motion
        if self._frame is not None:
            slowest = max(float(self._values.min(initial=np.inf)), 1e-30)
            self._basis.load(self._bending + self._frame.whirl(motion, slowest) @ motion.Q.T)
            self.offset = motion.c - motion.Q @ self._frame.middle
        self._forces = self._basis.show(motion.Q)

    def _pose(self, rows: bool = True) -> FramePose:
        """Where the body's frame is now; `rows`: and how it goes with z."""
        assert self._basis is not None
        if self._frame is not None:
            return self._frame.pose(self._motion, self._basis, rows)
        none = np.zeros((3, len(self._basis)))
        return FramePose(np.zeros(3), np.eye(3), np.zeros(3), 0.0, np.zeros((3, 3)), none, none)

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
        held = self._goals(goals)
        pose = self._pose(False)
        before = [self._places(grip, pose) for grip, _ in held]
        here = self._contact_places(pose) if feel is not None else None
        self._predict(modes, rigid, dt)
        if held or feel is not None:
            self._constrain(dt, modes, rigid, held, before, feel, here, calm)
        if calm:
            motion.rate[:], motion.v[:], motion.L[:] = 0.0, 0.0, 0.0
        if not np.isfinite(motion.z).all():
            raise PhyxelError("the body flew apart: its handles or colliders ask for more than it can follow")
        self._lay()
        self._show()
        if not calm:  # forces turn with the body: half of the step should have seen these
            motion.rate = motion.rate + 0.5 * modes.s * (self._forces - forces)

    def _pace(self, dt: float, calm: bool) -> tuple[OscillatorStep, OscillatorStep]:
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
        if push is self._given or np.array_equal(push, self._push):
            return
        self._given = push
        assert self._basis is not None
        self._push = np.array(push, np.float64)
        self._take_force()
        self._show()

    def _take_force(self) -> None:
        """Forces of the accelerations, and what of them bends the body: its frame takes their mean."""
        assert self._basis is not None
        self._force: Floats = self._matter.mass @ self._push
        self._bending = self._force
        if self._frame is not None:
            self._mean = self._force.sum(axis=0) / self._frame.mass
            self._bending = self._matter.mass @ (self._push - self._mean)
        self._basis.load(self._bending)

    def _predict(self, modes: OscillatorStep, rigid: OscillatorStep, dt: float) -> None:
        """Free motion to the end of the step."""
        assert self._basis is not None
        motion = self._motion
        pull = self._forces - np.maximum(self._basis.values, 0.0) * self._squared * motion.z
        motion.z = motion.z + modes.s * motion.rate + modes.g * pull
        motion.rate = modes.e * motion.rate + modes.s * pull
        if self._frame is not None:
            y, weighed = self._frame.y, self._frame.weighed
            after = rigid.e * motion.L + rigid.s * self._frame.torque(motion, self._force)
            motion.c = motion.c + rigid.s * motion.v + rigid.g * self._mean
            motion.v = rigid.e * motion.v + rigid.s * self._mean
            motion.L = 0.5 * (motion.L + after)
            self._lay()
            motion.Q = self._frame.spun(motion, dt, y, weighed)
            motion.L = after

    # Holds and contact

    def _goals(self, goals: Sequence[Goal]) -> list[tuple[Grip, Goal]]:
        """The goals of the holds that are not clamped."""
        if len(goals) != len(self._holds):
            raise PhyxelError(f"{len(goals)} goals for {len(self._holds)} holds: give one for each")
        pairs = zip(self._holds, goals, strict=True)
        return [(grip, goal) for hold, goal in pairs for grip in self._grips if grip.hold is hold]

    def _places(self, grip: Grip, pose: FramePose) -> tuple[Floats, Floats]:
        """Where the points of a hold are, and how far the body has turned there."""
        grip.patch.see(self._motion.z)
        return grip.patch.places(pose), grip.patch.rotation(pose)

    def _contact_places(self, pose: FramePose) -> Floats:
        assert self._basis is not None
        return pose.c + (self._felt @ (self.space.nodes + self._basis.u) - pose.middle) @ pose.Q.T

    def _held_rows(self, goals: list[tuple[Grip, Goal]], pose: FramePose) -> tuple[list[Rows], Floats]:
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
                errors.append(rotation_vector(patch.rotation(pose) @ (goal.rotation @ grip.turned).T))
        return rows, np.concatenate(errors)

    def _constrain(
        self,
        dt: float,
        modes: OscillatorStep,
        rigid: OscillatorStep,
        goals: list[tuple[Grip, Goal]],
        before: list[tuple[Floats, Floats]],
        feel: Feel | None,
        here: Floats | None,
        calm: bool,
    ) -> None:
        """Held points to their goals, others out of colliders; then their velocities."""
        if feel is not None:
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
                error = np.concatenate([error, contacts.gaps(pose)])
                fine = fine and bool(total.any()) and error[held::3].min() > -SHALLOW
            joined = Rows.joined(rows)
            if fine or not left:
                break
            delta = solve(joined.matrix(pose, place), error, held, Cone(friction, total))
            delta *= self._share(place.modes * (joined.z.T @ delta))
            total = total + delta[held:]
            self._kick(joined, delta, pose, place, speed)
        if not calm:
            wanted = [*self._held_velocities(goals, before, pose, dt)]
            if contacts is not None:
                wanted.append(contacts.velocities(RESTING * dt * _longest(self._push)))
            self._match_velocities(joined, np.concatenate(wanted), pose, held, Cone(friction, total), dt)

    def _share(self, shift: Floats) -> float:
        """How much of a change of z to make at once: rows are those of the present rotations, and hold near them."""
        assert self._basis is not None
        return min(1.0, TURN / max(_longest(self._basis.rows[:, 3:] @ shift), 1e-30))

    def _kick(self, rows: Rows, impulses: Floats, pose: FramePose, place: Response | None, speed: Response) -> None:
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
            turned = rotation_by(place.rigid * pose.inverse_inertia @ torque)
            motion.Q = turned @ motion.Q @ rotation_by(-pose.spin @ shift)
            self._lay()

    def _held_velocities(
        self, goals: list[tuple[Grip, Goal]], before: list[tuple[Floats, Floats]], pose: FramePose, dt: float
    ) -> Iterator[Floats]:
        """How fast what is held went in this step, row by row."""
        for (grip, _), (places, rotation) in zip(goals, before, strict=True):
            yield (grip.patch.places(pose) - places).ravel() / dt
            if grip.hold.turns:
                yield rotation_vector(grip.patch.rotation(pose) @ rotation.T) / dt

    def _match_velocities(self, rows: Rows, wanted: Floats, pose: FramePose, held: int, cone: Cone, dt: float) -> None:
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

    def _touching(self, feel: Feel, here: Floats, dt: float) -> TouchingPoints | None:
        """The points that touch something at the end of the step, or nearly do; the deepest, well spread."""
        assert self._basis is not None
        places = self._contact_places(self._pose(False))
        touch = feel(places)
        gap = touch.gap
        near = np.flatnonzero(gap < NEAR)
        if not len(near) or gap[near].min() > 0:
            return None
        near = near[spread(places[near], CONTACTS, int(np.argmin(gap[near])))]
        some = Touch(
            gap[near], *(getattr(touch, name)[near] for name in ("normal", "velocity", "friction", "restitution"))
        )
        patch = PointPatch(self.space.nodes[self._contact[near]], self._felt[near].toarray(), None, self._basis)
        return TouchingPoints(some, patch, here[near], places[near], dt)

    # Rest

    def stop(self) -> None:
        """Be at rest in the present shape, out of touch with everything."""
        self._ready()
        motion = self._motion
        motion.rate, motion.v, motion.L = np.zeros_like(motion.rate), np.zeros(3), np.zeros(3)
        self._show()

    def settle(self, push: Floats, goals: Sequence[Goal], feel: Feel | None, tolerance: float) -> None:
        """Go to static equilibrium, to `tolerance` [spacings]; the body is then at rest.

        Steps long enough for every mode to go nearly all the way, and shorter where that leads to and fro, since forces
        turn with what they bend. A free body falls and turns a little at a time until something holds it; what it
        touches it then rests on no more exactly than contact is kept.
        """
        self._ready()
        if self._clamp is None and not self._grips and feel is None and np.any(push):
            raise PhyxelError("settle: nothing holds this body; fix it somewhere, or put a collider under it")
        slowest = float(np.sqrt(max(self._values.min(initial=np.inf), 1e-30)))
        dt = 6 / slowest
        if self._clamp is None:
            dt = min(dt, float(np.sqrt(0.2 / max(_longest(np.asarray(push)), 1e-30))))
        if feel is not None:
            tolerance = max(tolerance, SHALLOW)
        shortest, quiet, before = 0.1 * dt, 0, self.u
        last = np.zeros_like(before)
        for _ in range(SETTLING_STEPS):
            self._advance(dt, push, goals, feel, True)
            now = self.u
            way = now - before
            gone = float(np.abs(way).max())
            share = 1 - np.exp(-slowest * dt) * (1 + slowest * dt)  # of what the slowest mode had to go
            quiet = quiet + 1 if gone <= 0.3 * share * tolerance else 0
            if quiet == 3:
                return
            if gone > 0.8 * np.abs(last).max() and _turns_back(way, last):
                dt = max(0.7 * dt, shortest)
            last, before = way, now
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
        assert self._frame is not None
        return self._frame.velocities(motion, rate)

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
        R = self._motion.Q @ rotations_by(curls(at, p[:, :, None])[:, :, 0])
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

    def middle(self) -> Floats:
        """The middle of mass, shape (3,)."""
        weight = np.asarray(self._matter.mass.sum(axis=0)).reshape(-1)
        return weight @ (self.space.nodes + self.u) / weight.sum()

    def volume(self) -> float:
        """∫ |J| [m³]."""
        return self.space.volume(self.u) * self.unit**3

    # Checkpoints

    def state(self) -> dict[str, NDArray[Any]]:
        """All that a checkpoint must keep."""
        basis = self._ready()
        motion = {name: getattr(self._motion, name).copy() for name in ModalMotion.__dataclass_fields__}
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
        self._motion = ModalMotion(**{name: state[name].copy() for name in ModalMotion.__dataclass_fields__})
        self._push, self._given = np.zeros((len(self.space), 3)), None
        self._adopt(Basis(self.space, Modes(state["shapes"], state["values"]), self._clamp, self.coefficients))
        followed = [hold for hold in self._holds if not any(hold is base for base in self._base)]
        points = max(1, min(POINTS, 4 * POINTS // max(1, len(followed))))
        self._grips = []
        for hold, turned in zip(followed, state["turned"], strict=True):
            some = spread(hold.points, points, 0)
            self._grips.append(Grip(hold, some, turned, self._patch(hold, some)))
        self._load(state["push"])


def _turns_back(way: Floats, last: Floats) -> bool:
    """Whether a step (n, 3) does not go on where the last one went, as falling does."""
    return float(np.vdot(way, last)) < 0.5 * float(np.linalg.norm(way) * np.linalg.norm(last))


def _longest(vectors: Floats) -> float:
    return float(np.sqrt((vectors**2).sum(axis=1).max()))


def _same(one: Hold, other: Hold) -> bool:
    return one.still == other.still and one.turns == other.turns and np.array_equal(one.points, other.points)
