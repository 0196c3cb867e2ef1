"""Crumbs (physics 12.10): pieces of a broken body that are too small to bend. They fall, spin, meet colliders and are
met by others.

    m v̇ = Σ f,   L̇ = Σ r × f,   L = I ω,   I = ∫ρ (|r|² − r rᵀ)

A crumb of a single point is a ball of its volume.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property

import numpy as np
import warp as wp
from numpy.typing import NDArray
from scipy.sparse import csr_array

from phyxel.contact.touch import Feel
from phyxel.material import Mixture
from phyxel.mls.shape_values import ShapeValues
from phyxel.models.coulomb import NEAR, RESTING, along_axes, from_axes, solved
from phyxel.models.field_contact import scattered
from phyxel.models.oscillators import rigid_pace
from phyxel.models.protocol import FieldValues, Goal, Hold
from phyxel.rotation import axes_about, cross_matrix, rotation_by, spun_on
from phyxel.state import State

Floats = NDArray[np.float64]

STIFF = 1e4
"""Springs that stand for a collider a crumb lies on, over its mass and the square of the step."""


class RigidSpace:
    """Fields a + B X over a crumb, with four coefficients: those of `nodes`, its middle and three places beside it.

    The crumb has points X (n, 3) of the body it was part of, with `volumes` (n,), and surfels `skin` (m, 3).
    """

    def __init__(self, X: Floats, volumes: Floats, skin: Floats, device: wp.Device) -> None:
        self.device = device
        self.points, self.weights, self.owner = X, volumes, np.arange(len(X))
        self._skin = skin
        self._middle = volumes @ X / volumes.sum()
        self.nodes: Floats = self._middle + np.concatenate([np.zeros((1, 3)), np.eye(3)])
        self.radius = float(np.linalg.norm(np.concatenate([X, skin]) - self._middle, axis=1).max())

    def __len__(self) -> int:
        return 4

    def at(self, X: NDArray[np.floating]) -> ShapeValues:
        """φ and ∇φ at (m, 3) positions."""
        away = np.asarray(X, np.float64).reshape(-1, 3) - self._middle
        count = len(away)
        slopes = np.concatenate([-np.ones((1, 3)), np.eye(3)])
        state = {
            "start": 4 * np.arange(count + 1, dtype=np.int32), "index": np.tile(np.arange(4, dtype=np.int32), count),
            "phi": np.concatenate([1 - away.sum(axis=1, keepdims=True), away], axis=1).reshape(-1),
            "dphi": np.tile(slopes, (count, 1)), "condition": np.ones(count),
        }  # fmt: skip
        return ShapeValues.restored(state, 4, self.device)

    @cached_property
    def at_nodes(self) -> ShapeValues:
        """φ and ∇φ at X."""
        return self.at(self.points)

    @cached_property
    def at_skin(self) -> ShapeValues:
        """φ and ∇φ at the surfels."""
        return self.at(self._skin)

    @cached_property
    def felt(self) -> ShapeValues:
        """φ at some places of its surface, well apart; of one without surfels, at X."""
        if not len(self._skin):
            return self.at_nodes
        chosen, count = scattered(self._skin)
        return self.at_skin.rows(chosen[:count])

    def fit(self, density: Floats) -> Callable[[Floats], Floats]:
        """A crumb takes accelerations as they are around its nodes."""
        return lambda a: a


class RigidModel(FieldValues):
    """Moves one crumb (`protocol.FieldModel`, `protocol.Tangible`). `velocities` (n, 3) [1/s] are those of its nodes;
    it has their momentum and angular momentum, or starts as if `thrown` (see `_throw`). Held points take all of it
    along, without a turn."""

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
        self._grip: Floats = np.zeros((6, 6))
        """JᵀJ of points that lie on colliders"""

    def set_material(self, mixture: Mixture, rotation: Floats) -> None:
        """What each node is made of; it goes on as fast as before."""
        first = self._mass == 0
        before, spin = (self._middle, np.zeros(3)) if first else (self._middle, self._spin)
        space = self.space
        self._masses = self._unit**2 * mixture.number("density") * space.weights
        self._mass = float(self._masses.sum())
        self._drag = float(self._masses @ mixture.number("drag")) / self._mass
        self._middle = self._masses @ space.points / self._mass
        arm = space.points - self._middle
        own = 0.4 * self._masses * np.cbrt(0.75 * space.weights / np.pi) ** 2  # a ball's
        second = (self._masses[:, None] * arm).T @ arm
        self._inertia = (np.trace(second) + own.sum()) * np.eye(3) - second
        if first:
            v = self._velocities
            self._c = self._middle.copy()
            self._v = self._masses @ v / self._mass
            self._L = np.cross(arm, self._masses[:, None] * v).sum(axis=0)
            if self._thrown is not None:
                self._throw(*self._thrown)
        else:
            self._c = self._c + self._R @ (self._middle - before)
            self._L = self._R @ self._inertia @ self._R.T @ spin

    def _throw(self, x: Floats, momentum: Floats, spin: Floats) -> None:
        """Start where nodes are at x (n, 3), as nearly as a rigid motion gets them there, with this momentum [kg m/s]
        and angular momentum about where the body counts from [kg m²/s]."""
        self._c = self._masses @ x / self._mass
        arm, there = self.space.points - self._middle, x - self._c
        U, _, Vt = np.linalg.svd((self._masses[:, None] * there).T @ arm)
        self._R = U @ np.diag([1, 1, np.linalg.det(U @ Vt)]) @ Vt if len(x) > 1 else np.eye(3)
        self._v = momentum / self._unit**2 / self._mass
        self._L = spin / self._unit**3 - self._mass * np.cross(self._c, self._v)

    def set_holds(self, holds: Sequence[Hold]) -> None:
        """Points are held so from now on."""
        self._holds = holds

    # Motion

    @property
    def _spin(self) -> Floats:
        """ω [1/s], shape (3,)"""
        return self._spun(self._R)

    def _spun(self, R: Floats) -> Floats:
        return np.asarray(R @ np.linalg.solve(self._inertia, R.T @ self._L))

    def step(self, dt: float, push: Floats, goals: Sequence[Goal], feel: Feel | None) -> None:
        """Go on by dt [s] under accelerations `push` (n, 3) [1/s²] of the nodes, and out of colliders."""
        before, self._grip = self.u, np.zeros((6, 6))
        if self._holds:
            self._follow(goals, dt)
            return
        forces = self._masses[:, None] * push
        a = self._a = forces.sum(axis=0) / self._mass
        torque = np.cross((self.space.points - self._middle) @ self._R.T, forces).sum(axis=0)
        pace = rigid_pace(self._drag, dt)
        old = self.v
        self._c, self._v = self._c + pace.s * self._v + pace.g * a, pace.e * self._v + pace.s * a
        self._L = pace.e * self._L + pace.s * torque
        self._R = self._turned(self._R, dt)
        if feel is not None:
            self._touch(feel, before, old, RESTING * dt * float(np.linalg.norm(a)), dt)

    def _turned(self, R: Floats, dt: float) -> Floats:
        """Where the spin takes it, by the midpoint rule: L stays."""
        half = R
        for _ in range(4):
            half = rotation_by(0.5 * dt * self._spun(half)) @ R
        return spun_on(R, dt * self._spun(half))

    def _follow(self, goals: Sequence[Goal], dt: float) -> None:
        points = np.concatenate([hold.points for hold in self._holds])
        there = points + np.concatenate([goal.displacements for goal in goals])
        way = (there - self.space.at(points).values @ (self.space.nodes + self.u)).mean(axis=0)
        self._c, self._v, self._L = self._c + way, way / dt, np.zeros(3)

    def _touch(self, feel: Feel, before: Floats, old: Floats, slow: float, dt: float) -> None:
        """Impulses of colliders, within the step as those of other bodies (`field_contact`); depths go at once."""
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
        self.push(rows, from_axes(axes, impulses), from_axes(axes, shifts), before, dt)
        pressed = impulses[:, 0] > 0
        sticks = pressed & (np.linalg.norm(impulses[:, 1:], axis=1) < touch.friction[near] * impulses[:, 0])
        kept = np.where(sticks[:, None], True, pressed[:, None] & np.array([True, False, False]))
        J = (axes @ self._rows_of(rows).reshape(-1, 3, 6))[kept]
        self._grip = J.T @ J

    # Contact with other bodies

    def _rows_of(self, rows: csr_array) -> Floats:
        """How points move with (v, ω), shape (3k, 6)."""
        arm = rows @ (self.space.nodes + self.u) - self._c
        return np.concatenate([np.tile(np.eye(3), (len(arm), 1)), -cross_matrix(arm).reshape(-1, 3)], axis=1)

    def _response(self, dt: float) -> Floats:
        """(v, ω) that unit impulses of force and torque make, 6 × 6."""
        if self._holds:
            return np.zeros((6, 6))
        system = np.zeros((6, 6))
        system[:3, :3] = self._mass * np.eye(3)
        system[3:, 3:] = self._R @ self._inertia @ self._R.T
        return np.asarray(np.linalg.inv(system + STIFF * self._mass * self._grip), np.float64)

    @property
    def margin(self) -> float:
        """How far its surface may lie outside the box around its coefficients."""
        return self.space.radius

    def unload(self, dt: float) -> None:
        """Nothing is foreseen."""

    def compliance(self, rows: csr_array, dt: float) -> Floats:
        """How far unit impulses within the last step, of dt [s], at points with φ in `rows` (k, 4), move these points
        until its end, shape (3k, 3k)."""
        J = self._rows_of(rows)
        return np.asarray(dt * (J @ self._response(dt) @ J.T), np.float64)

    def push(self, rows: csr_array, impulses: Floats, shifts: Floats, before: Floats, dt: float) -> None:
        """Let impulses (k, 3) at such points act within that step, which began at u = `before`, so that it leads where
        the velocity after it says; `shifts` move as much as impulses but leave no velocity."""
        if not impulses.any() and not shifts.any():
            return
        J, response = self._rows_of(rows), self._response(dt)
        change, shift = (response @ (J.T @ part.reshape(-1)) for part in (impulses, shifts))
        nodes = self.space.nodes + before
        places = rows @ (nodes + dt * self.v)
        total = self._mass * np.cross(self._c, self._v) + self._L + np.cross(places, impulses).sum(axis=0)
        start, R = self._pose_of(nodes)
        spin = self._spin + change[3:]
        self._v = self._v + change[:3]
        self._c = start + dt * (self._v + shift[:3])
        self._R = spun_on(R, dt * (spin + shift[3:]))
        self._L = self._R @ self._inertia @ self._R.T @ spin
        if not self._grip.any() and not self._holds:
            self._L = total - self._mass * np.cross(self._c, self._v)

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
        return nodes[0] + R @ (self._middle - self.space.nodes[0]), R

    def stop(self) -> None:
        """Be at rest, out of touch with everything."""
        self._v, self._L, self._grip = np.zeros(3), np.zeros(3), np.zeros((6, 6))

    def settle(self, push: Floats, goals: Sequence[Goal], feel: Feel | None, tolerance: float) -> None:
        """Stop: a crumb rests where it is."""
        self._v, self._L = np.zeros(3), np.zeros(3)

    # Quantities

    @property
    def u(self) -> Floats:
        """Coefficients of the displacement, shape (4, 3)."""
        X = self.space.nodes
        return self._c + (X - self._middle) @ self._R.T - X

    @property
    def v(self) -> Floats:
        """Coefficients of the velocity [1/s], shape (4, 3)."""
        return self._v + np.cross(self._spin, (self.space.nodes - self._middle) @ self._R.T)

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
        return P * self._unit**2, (np.cross(self._c, P) + self._L) * self._unit**3

    def middle(self) -> Floats:
        """The middle of mass, shape (3,)."""
        return self._c.copy()

    def volume(self) -> float:
        """[m³]"""
        return float(self.space.weights.sum()) * self._unit**3

    def state(self) -> State:
        """All that a checkpoint must keep."""
        return {"c": self._c, "R": self._R, "v": self._v, "L": self._L}

    def restore(self, state: State) -> None:
        """Take over what `state` gave."""
        self._c, self._R, self._v, self._L = (state[name].copy() for name in ("c", "R", "v", "L"))
