"""Rigid bodies (physics 12.10): what users ask not to bend, and crumbs, pieces of a broken body that are too small to.
They fall, spin, are held, meet colliders and are met by others.

    m v̇ = Σ f,   L̇ = Σ r × f,   L = I ω,   I = ∫ρ (|r|² − r rᵀ)
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import warp as wp
from numpy.typing import NDArray
from scipy.sparse import csr_array

from phyxel.contact.touch import Feel
from phyxel.material import Mixture
from phyxel.mls.shape_values import ShapeValues
from phyxel.models.coulomb import NEAR, RESTING, along_axes, from_axes, solved
from phyxel.models.oscillators import rigid_pace
from phyxel.models.protocol import FieldValues, Goal, Hold
from phyxel.models.rigid.free_motion import FreeRotation
from phyxel.models.rigid.joints import Joint
from phyxel.models.rigid.space import RigidSpace
from phyxel.rotation import axes_about, cross_matrix, cross_of, nearest_rotation, rotation_by, rotation_vector, spun_on
from phyxel.state import State

Floats = NDArray[np.float64]

STIFF = 1e4
"""Springs that stand for a collider a body lies on, over its mass and the square of the step."""
SWINGS = 4
"""Parts of a step in which a joint's torque is looked at anew: the period of a pendulum is off by (ω h)²/24."""
SETTLING, CROSSED = 0.01, 0.5
"""[s] and spacings: a step on the way to rest, at most."""
MOST_STEPS = 4000
"""on the way to rest"""
EYE: Floats = np.eye(3)


class RigidModel(FieldValues):
    """Moves one body (`protocol.FieldModel`, `protocol.Tangible`). `velocities` (n, 3) [1/s] are those of its nodes;
    it has their momentum and spin, or starts as if `thrown` (see `_throw`)."""

    with_others = True

    def __init__(
        self,
        space: RigidSpace,
        unit: float,
        velocities: Floats,
        device: wp.Device,
        thrown: tuple[Floats, Floats, Floats] | None = None,
    ) -> None:
        self.space, self.device, self._thrown = space, device, thrown
        self._unit, self._velocities = unit, np.asarray(velocities, np.float64)
        self._c, self._R = np.zeros(3), np.eye(3)
        self._v, self._L, self._a = np.zeros(3), np.zeros(3), np.zeros(3)
        self._mass, self._middle = 0.0, np.zeros(3)
        self._holds: Sequence[Hold] = ()
        self._joint: Joint | None = None
        self._taken: Floats = np.zeros((0, 3, 3))
        """R when each of the holds was taken, shape (h, 3, 3)"""
        self._there: Floats = np.zeros((0, 3))
        """where held points are, shape (k, 3)"""
        self._grip, self._grips = np.zeros((6, 6)), False
        """JᵀJ of points that lie on colliders, and whether there are any"""
        self._push: Floats | None = None
        """accelerations of the nodes that it moves under (n, 3)"""

    def set_material(self, mixture: Mixture, rotation: Floats) -> None:
        """What each node is made of; it goes on as fast as before."""
        first, self._push = self._mass == 0, None
        before, spin = (self._middle, np.zeros(3)) if first else (self._middle, self._spin)
        space = self.space
        self._masses = self._unit**2 * mixture.number("density") * space.weights
        self._mass = float(self._masses.sum())
        self._drag = float(self._masses @ mixture.number("drag")) / self._mass
        self._middle = self._masses @ space.points / self._mass
        self._arms = space.nodes - self._middle
        """of the nodes, shape (4, 3)"""
        arm = space.points - self._middle
        of_points = (self._masses[:, None] * arm).T @ arm
        second = of_points + np.einsum("n,nab->ab", self._masses, space.spread)
        self._whole = second @ np.linalg.pinv(of_points, rcond=1e-9, hermitian=True)
        """makes Σ m r aᵀ over the points that over the body, exactly where accelerations a are linear, 3 × 3"""
        self._inertia = np.trace(second) * np.eye(3) - second
        if first:
            v = self._velocities
            self._c = self._middle.copy()
            self._v = self._masses @ v / self._mass
            self._L = self._inertia @ _spin_of(arm, v - self._v, self._masses)
            if self._thrown is not None:
                self._throw(*self._thrown)
        else:
            self._c = self._c + self._R @ (self._middle - before)
            self._L = self._R @ self._inertia @ self._R.T @ spin
        self._free, self._yields = FreeRotation(self._inertia), np.linalg.inv(self._inertia)
        self._set_joint()

    def _throw(self, x: Floats, momentum: Floats, spin: Floats) -> None:
        """Start where nodes are at x (n, 3), as nearly as a rigid motion gets them there, with this momentum [kg m/s]
        and angular momentum about where the body counts from [kg m²/s]."""
        self._c = self._masses @ x / self._mass
        arm, there = self.space.points - self._middle, x - self._c
        self._R = nearest_rotation((self._masses[:, None] * there).T @ arm) if len(x) > 1 else np.eye(3)
        self._v = momentum / self._unit**2 / self._mass
        self._L = spin / self._unit**3 - self._mass * np.cross(self._c, self._v)

    def set_holds(self, holds: Sequence[Hold]) -> None:
        """Points are held so from now on."""
        known = {hold.points.tobytes(): R for hold, R in zip(self._holds, self._taken, strict=True)}
        self._taken = np.array([known.get(hold.points.tobytes(), self._R) for hold in holds]).reshape(-1, 3, 3)
        self._holds = holds
        self._set_joint()

    def _set_joint(self) -> None:
        self._joint = Joint.of(self._holds, self.space.radius)
        if self._joint is not None:
            arm = self._middle - self._joint.pivot
            self._about_pivot = self._inertia + self._mass * (arm @ arm * np.eye(3) - np.outer(arm, arm))
            self._round_pivot = FreeRotation(self._about_pivot)

    # Motion

    @property
    def _spin(self) -> Floats:
        """ω [1/s], shape (3,)"""
        return np.asarray(self._R @ (self._yields @ (self._L @ self._R)))

    def step(self, dt: float, push: Floats, goals: Sequence[Goal], feel: Feel | None) -> None:
        """Go on by dt [s] under accelerations `push` (n, 3) [1/s²] of the nodes, and out of colliders."""
        feels = feel is not None and (self._joint is None or self._joint.axes.size > 0)
        before, old = (self.u, self.v) if feels else (push, push)
        if self._grips:
            self._grip, self._grips = np.zeros((6, 6)), False
        if push is not self._push:
            self._feel_push(push)
        if self._joint is None:
            self._fly(self._lever, dt)
        else:
            self._swing(self._joint, goals, self._lever, dt)
        if feel is not None and feels:
            self._touch(feel, before, old, RESTING * dt * float(np.linalg.norm(self._a)), dt)

    def _feel_push(self, push: Floats) -> None:
        """Under accelerations (n, 3) of the nodes, the same till others are there."""
        self._push = push
        a = self._a = self._masses @ push / self._mass
        # Even accelerations have no torque about the middle, not even by rounding.
        self._lever = self._whole @ ((self._masses[:, None] * (self.space.points - self._middle)).T @ (push - a))

    def _fly(self, lever: Floats, dt: float) -> None:
        """Freely; torques are kicks before and after a turn without any. `lever` is Σ r fᵀ about the middle, unturned,
        3 × 3."""
        pace = rigid_pace(self._drag, dt)
        self._c, self._v = self._c + pace.s * self._v + pace.g * self._a, pace.e * self._v + pace.s * self._a
        calm = np.sqrt(pace.e)
        self._L = calm * self._L + 0.5 * pace.s * _torque(self._R @ lever)
        self._R = self._free.turned(self._R, self._L, dt)
        self._L = calm * self._L + 0.5 * pace.s * _torque(self._R @ lever)

    def _swing(self, joint: Joint, goals: Sequence[Goal], lever: Floats, dt: float) -> None:
        """About held points, which go evenly to their goals."""
        arm = self._middle - joint.pivot
        lever = lever + self._mass * np.outer(arm, self._a)
        self._there = joint.points + np.concatenate([goal.displacements for goal in goals])
        place, reach = self._there.mean(axis=0), self._R @ arm
        drift = (place - (self._c - reach)) / dt
        L = self._L + self._mass * np.cross(reach, self._v - drift)
        led = joint.led(self._R, self._there, self._turned(goals))
        turn, self._R = led @ self._R.T, led
        spin = rotation_vector(turn) / dt
        L = turn @ L - self._inertia_about(joint) @ spin
        pace = rigid_pace(self._drag, dt / SWINGS)
        calm = np.sqrt(pace.e)
        for _ in range(SWINGS if joint.axes.size else 0):
            L = calm * L + 0.5 * pace.s * _torque(self._R @ lever)
            self._R = self._swung(joint, L, dt / SWINGS)
            L = calm * L + 0.5 * pace.s * _torque(self._R @ lever)
        spin, reach = spin + self._yielding(joint) @ L, self._R @ arm
        self._c, self._v = place + reach, drift + np.cross(spin, reach)
        self._L = self._R @ self._inertia @ self._R.T @ spin

    def _turned(self, goals: Sequence[Goal]) -> Floats | None:
        """The rotation that is asked for, if one is."""
        each = zip(self._holds, goals, self._taken, strict=True)
        return next((goal.rotation @ taken for hold, goal, taken in each if hold.turns), None)

    def _swung(self, joint: Joint, L: Floats, dt: float) -> Floats:
        """Where it is turned to in dt [s] by its angular momentum about the joint."""
        if joint.axes.shape[1] == 3:
            return self._round_pivot.turned(self._R, L, dt)
        return rotation_by(dt * self._yielding(joint) @ L) @ self._R

    def _inertia_about(self, joint: Joint) -> Floats:
        return np.asarray(self._R @ self._about_pivot @ self._R.T)

    def _yielding(self, joint: Joint) -> Floats:
        """ω that an angular momentum about the joint makes, 3 × 3."""
        G = self._R @ joint.axes
        return np.asarray(G @ np.linalg.inv(G.T @ self._inertia_about(joint) @ G) @ G.T)

    def _touch(self, feel: Feel, before: Floats, old: Floats, slow: float, dt: float) -> None:
        """Impulses of colliders, within the step as those of other bodies (`meeting`); depths go at once."""
        rows = self.space.felt.values
        x = rows @ (self.space.nodes + before + dt * self.v)
        touch = feel(x)
        near = np.flatnonzero(touch.gap < NEAR)
        if not len(near) or touch.gap.min() > 0:
            return
        rows, axes = csr_array(rows[near]), axes_about(touch.normal[near])
        way = np.einsum("kab,kb->ka", axes, dt * (rows @ self.v - touch.velocity[near]))
        gap = touch.gap[near]
        start = gap - way[:, 0]
        approach = np.einsum("ka,ka->k", touch.normal[near], rows @ old - touch.velocity[near])
        bounces = (gap < 0) & (approach < -slow) & (touch.restitution[near] > 0)
        goal = way.copy()
        # What lay deep before is taken out without speed; a bounce has to end above where it started.
        goal[:, 0] = gap - np.where(bounces, np.maximum(start, 0), np.minimum(start, 0))
        goal[bounces, 0] += dt * (touch.restitution[near] * approach)[bounces]
        W = along_axes(self.compliance(rows, dt), axes)
        impulses = solved(W, goal, touch.friction[near])
        goal = np.zeros_like(goal)
        goal[:, 0] = gap + (W @ impulses.reshape(-1))[::3]
        shifts = solved(W, goal, np.zeros(len(near)))
        self._push_at(
            rows, x[near] - dt * (rows @ self.v), from_axes(axes, impulses), from_axes(axes, shifts), before, dt
        )
        pressed = impulses[:, 0] > 0
        sticks = pressed & (np.linalg.norm(impulses[:, 1:], axis=1) < touch.friction[near] * impulses[:, 0])
        kept = np.where(sticks[:, None], True, pressed[:, None] & np.array([True, False, False]))
        J = (axes @ self._rows_of(rows).reshape(-1, 3, 6))[kept]
        self._grip, self._grips = J.T @ J, bool(kept.any())

    # Contact with other bodies

    def _rows_of(self, rows: csr_array) -> Floats:
        """How points move with (v, ω), shape (3k, 6)."""
        arm = rows @ (self.space.nodes + self.u) - self._c
        return np.concatenate([np.tile(np.eye(3), (len(arm), 1)), -cross_matrix(arm).reshape(-1, 3)], axis=1)

    def _response(self, dt: float) -> Floats:
        """(v, ω) that unit impulses of force and torque make, 6 × 6."""
        system = np.zeros((6, 6))
        system[:3, :3] = self._mass * np.eye(3)
        system[3:, 3:] = self._R @ self._inertia @ self._R.T
        system += STIFF * self._mass * self._grip
        if self._joint is None:
            return np.asarray(np.linalg.inv(system), np.float64)
        G, reach = self._R @ self._joint.axes, self._R @ (self._middle - self._joint.pivot)
        F = np.concatenate([-cross_matrix(reach) @ G, G])
        return np.asarray(F @ np.linalg.inv(F.T @ system @ F) @ F.T, np.float64)

    @property
    def margin(self) -> float:
        """How far its surface may lie outside the box around its coefficients."""
        return self.space.radius

    def unload(self, dt: float) -> None:
        """Nothing is foreseen."""

    def drift(self, before: Floats, dt: float) -> Floats:
        """The velocity that the last step left: impulses lead on from where it began."""
        return self.v

    def lead(self, before: Floats, dt: float) -> Floats:
        """Velocity (4, 3) by which the coefficients get to where `push` leads them from u = `before`."""
        begun = self.space.nodes + before
        start, R = self._pose_of(begun)
        there = start + dt * self._v + self._arms @ spun_on(R, dt * self._spin).T
        return (there - begun) / dt

    def response(self, rows: csr_array, dt: float) -> Floats:
        """A root of what unit impulses at points with φ in `rows` (k, 4) do to their velocities, shape (3k, r)."""
        return np.asarray(self._rows_of(rows) @ self._root(dt))

    def root(self, dt: float) -> Floats:
        root = self._root(dt)
        root[:3] -= cross_matrix(self._R @ self._arms[0]) @ root[3:]
        return root

    def _root(self, dt: float) -> Floats:
        """(v, ω) that r ways to answer make, about the middle of mass, shape (6, r)."""
        if self._is_free:
            root = np.zeros((6, 6))
            root[:3, :3], root[3:, 3:] = np.eye(3) / np.sqrt(self._mass), self._R @ self._free.root
            return root
        values, vectors = np.linalg.eigh(self._response(dt))
        free = values > 1e-12 / self._mass  # what is held all over answers by rounding
        return np.asarray(vectors[:, free] * np.sqrt(values[free]))

    @property
    def _is_free(self) -> bool:
        """Whether nothing holds it."""
        return self._joint is None and not self._grips

    def compliance(self, rows: csr_array, dt: float) -> Floats:
        """How far unit impulses within the last step, of dt [s], at points with φ in `rows` (k, 4), move these points
        until its end, shape (3k, 3k)."""
        J = self._rows_of(rows)
        return np.asarray(dt * (J @ self._response(dt) @ J.T), np.float64)

    def push(self, rows: csr_array, places: Floats, impulses: Floats, before: Floats, dt: float) -> None:
        self._push_at(rows, places, impulses, np.zeros_like(impulses), before, dt)

    def kick(self, push: Floats, turn: Floats, spin: Floats, before: Floats, dt: float) -> None:
        reach, start = self._R @ self._arms[0], self._pose_of(self.space.nodes + before)[0]
        sums = np.concatenate([push, turn + cross_of(reach, push)])
        self._pushed(sums, np.zeros(6), spin + cross_of(self._c + reach - start, push), before, dt)

    def _push_at(
        self, rows: csr_array, places: Floats, impulses: Floats, shifts: Floats, before: Floats, dt: float
    ) -> None:
        """Let impulses (k, 3) at such points act within that step, which began at u = `before`; `shifts` move as much
        as impulses but leave no velocity."""
        if not impulses.any() and not shifts.any():
            return
        J, start = self._rows_of(rows), self._pose_of(self.space.nodes + before)[0]
        sums, shift = (J.T @ part.reshape(-1) for part in (impulses, shifts))
        self._pushed(sums, shift, np.cross(places - start, impulses).sum(axis=0), before, dt)

    def _pushed(self, sums: Floats, shift: Floats, spin: Floats, before: Floats, dt: float) -> None:
        """Let impulses act within that step, so that it leads where the velocity after it says. They and their torques,
        about the middle of mass as it is at the end, are `sums` (6,), torques about it when the step began `spin`
        (3,)."""
        start, R = self._pose_of(self.space.nodes + before)
        angular = self._L + spin
        change, moved = self._answer(sums, dt), self._answer(shift, dt) if shift.any() else shift
        turning = self._spin + change[3:]
        self._v = self._v + change[:3]
        self._c = start + dt * (self._v + moved[:3])
        self._R = spun_on(R, dt * (turning + moved[3:]))
        if self._joint is not None and self._joint.axes.size:
            self._R = self._joint.led(self._R, self._there, None)
            self._c = self._there.mean(axis=0) + self._R @ (self._middle - self._joint.pivot)
        if self._grips or self._holds:
            angular = self._R @ self._inertia @ self._R.T @ turning
        self._L = angular  # with what leads on from where the step began, momenta are kept so

    def _answer(self, sums: Floats, dt: float) -> Floats:
        """(v, ω) that impulses and torques (6,) make, shape (6,)."""
        if self._is_free:
            return np.concatenate([sums[:3] / self._mass, self._R @ (self._yields @ (sums[3:] @ self._R))])
        return np.asarray(self._response(dt) @ sums)

    def work(self, before: Floats) -> float:
        """What the pushes of the last step have done since u was `before` (4, 3) [J]."""
        way = self._c - self._pose_of(self.space.nodes + before)[0]
        return self._mass * float(self._a @ way) * self._unit**3

    def calm(self, energy: float) -> float:
        """It does not vibrate."""
        return 0.0

    def ease(self) -> None:
        """It does not bend."""

    def _pose_of(self, nodes: Floats) -> tuple[Floats, Floats]:
        """Where the middle of mass is, and the turn, when the four nodes are here (4, 3)."""
        R = (nodes[1:] - nodes[0]).T
        return nodes[0] - R @ self._arms[0], R

    def stop(self) -> None:
        """Be at rest, out of touch with everything."""
        self._v, self._L, self._grip, self._grips = np.zeros(3), np.zeros(3), np.zeros((6, 6)), False

    def settle(self, push: Floats, goals: Sequence[Goal], feel: Feel | None, tolerance: float) -> None:
        """Go to where nothing moves it: let it fall, and stop it whenever it gets slower. What finds no rest, or has
        nothing to rest on, is at rest where it was."""
        start, rest, fastest = self.state(), self.u, 0.0
        self.stop()
        for _ in range(MOST_STEPS if feel is not None or self._joint is not None else 0):
            speed = float(np.abs(self.v).max())
            self.step(min(SETTLING, CROSSED / max(speed, 1e-9)), push, goals, feel)
            energy = self.energies()[1]
            if energy > fastest:
                fastest = energy
                continue
            self.stop()
            if np.abs(self.u - rest).max() < tolerance:
                return
            rest, fastest = self.u, 0.0
        self.restore(start)
        self.stop()

    # Quantities

    @property
    def u(self) -> Floats:
        """Coefficients of the displacement, shape (4, 3): none, to the bit, where it has not moved."""
        return self._c - self._middle + self._arms @ (self._R - EYE).T

    @property
    def v(self) -> Floats:
        """Coefficients of the velocity [1/s], shape (4, 3)."""
        x, y, z = self._spin.tolist()
        return self._v + self._arms @ self._R.T @ np.array([[0, z, -y], [-z, 0, x], [y, -x, 0]])

    def gradient(self, at: ShapeValues) -> Floats:
        """∇u at points, shape (m, 3, 3)."""
        return np.tile(self._R - np.eye(3), (len(at.condition), 1, 1))

    def stress(self, at: ShapeValues, material: Mixture, which: NDArray[np.integer]) -> Floats:
        """None: shape (m, 3, 3)."""
        return np.zeros((len(at.condition), 3, 3))

    def energies(self) -> tuple[float, float]:
        """Elastic and kinetic energy [J]."""
        kinetic = 0.5 * (self._mass * float(self._v @ self._v) + float(self._spin @ self._L))
        return 0.0, kinetic * self._unit**3

    def momenta(self) -> tuple[Floats, Floats]:
        """∫ρ v [kg m/s] and ∫ρ x × v [kg m²/s] about where the body counts from, shape (3,) each."""
        P = self._mass * self._v
        return P * self._unit**2, (cross_of(self._c, P) + self._L) * self._unit**3

    def middle(self) -> Floats:
        """The middle of mass, shape (3,)."""
        return self._c.copy()

    def volume(self) -> float:
        """[m³]"""
        return float(self.space.weights.sum()) * self._unit**3

    def state(self) -> State:
        """All that a checkpoint must keep."""
        return {"c": self._c, "R": self._R, "v": self._v, "L": self._L, "taken": self._taken}

    def restore(self, state: State) -> None:
        """Take over what `state` gave."""
        self._c, self._R, self._v, self._L, self._taken = (state[name].copy() for name in ("c", "R", "v", "L", "taken"))


def _torque(lever: Floats) -> Floats:
    """Σ r × f of Σ r fᵀ, shape (3,)."""
    return np.array([lever[1, 2] - lever[2, 1], lever[2, 0] - lever[0, 2], lever[0, 1] - lever[1, 0]])


def _spin_of(arm: Floats, v: Floats, masses: Floats) -> Floats:
    """ω with which points at (n, 3) about their middle have the angular momentum that velocities (n, 3) give them,
    shape (3,)."""
    second = (masses[:, None] * arm).T @ arm
    L = np.cross(arm, masses[:, None] * v).sum(axis=0)
    return np.asarray(np.linalg.lstsq(np.trace(second) * np.eye(3) - second, L, rcond=1e-12)[0])
