"""Points of a modal body that are held or touch something (physics 11.5): how they move with its coordinates, and the
impulses that put them where they must be.

A body's coordinates are its middle c, its turn Q and the amplitudes z: x = c + Q (X + u(z) − ȳ(z)), ȳ the middle of the
warped shape. Vibration turns the frame back by I⁻¹ ∫ρ y × u̇, so that it has no angular momentum of its own: in terms of
(v, L, ż) kinetic energy has no mixed terms.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_factor, cho_solve
from scipy.sparse import csr_array

from phyxel.contact.touch import Feel, Touch
from phyxel.models.coulomb import NEAR, RESTING, SINGULAR, sweep
from phyxel.models.modal.field import FramePose, ModalField
from phyxel.models.modal.modes import UNFELT
from phyxel.models.modal.warping import Basis, warp, warp_derivative
from phyxel.models.oscillators import OscillatorStep
from phyxel.models.protocol import Goal, Hold
from phyxel.rotation import axes_about, cross_matrix, rotation_by, rotation_vector

Floats = NDArray[np.float64]

CONTACTS = 60
"""Most points that touch something at a time."""
ROUNDS = 5
"""of corrections to where held points are"""
EXACT = 1e-7
SHALLOW = 1e-4
"""Errors of held points, and depths of others [spacings], that need not be corrected."""
TURN = 0.5
"""Most that a node is turned in one correction [rad]."""


@dataclass(frozen=True)
class Response:
    """What a unit impulse does to free motion (one number) and to each mode (l,)."""

    rigid: float
    modes: Floats


@dataclass(frozen=True)
class Rows:
    """Derivatives of some numbers by c, by a turn about it, and by z: shapes (r, 3), (r, 3), (r, l)."""

    move: Floats
    turn: Floats
    z: Floats

    @staticmethod
    def joined(parts: list[Rows]) -> Rows:
        return Rows(*(np.concatenate([getattr(part, name) for part in parts]) for name in ("move", "turn", "z")))

    def halfway(self, other: Rows) -> Rows:
        """The mean of these and others."""
        return Rows(*(0.5 * (getattr(self, name) + getattr(other, name)) for name in ("move", "turn", "z")))

    def __getitem__(self, chosen: slice | NDArray[np.integer]) -> Rows:
        return Rows(self.move[chosen], self.turn[chosen], self.z[chosen])

    def along(self, axes: Floats) -> Rows:
        """Rows of points (3k) seen along axes (k, 3, 3) of their own."""

        def seen(part: Floats) -> Floats:
            return (axes @ part.reshape(len(axes), 3, -1)).reshape(part.shape)

        return Rows(seen(self.move), seen(self.turn), seen(self.z))

    def matrix(self, pose: FramePose, response: Response) -> Floats:
        """What unit impulses along the rows do to the rows, shape (r, r)."""
        free = pose.inverse_mass * (self.move @ self.move.T) + self.turn @ pose.inverse_inertia @ self.turn.T
        return response.rigid * free + (self.z * response.modes) @ self.z.T


class PointPatch:
    """Some points X of a body and the few nodes that carry them."""

    def __init__(self, X: Floats, values: Floats, gradients: Floats | None, basis: Basis) -> None:
        """`values` are φ_I at the points X (k, 3), shape (k, n); `gradients` ∇φ_I at the first, (3, n), if the body's
        rotation is asked for there."""
        both = values if gradients is None else np.concatenate([values, gradients])
        if basis.clamp is not None:
            left = basis.clamp.without(both.T).T
            moves = np.linalg.norm(left, axis=1) > UNFELT * np.linalg.norm(both, axis=1)
            both = np.where(moves[:, None], left, 0.0)
        nodes = np.flatnonzero(both.any(axis=0))
        self.X = X
        self._phi, self._dphi = both[: len(X), nodes], both[len(X) :, nodes].T
        self._rows = basis.rows[nodes]

    def see(self, z: Floats) -> None:
        """Take amplitudes z (l,) for what follows."""
        self._linear = self._rows @ z
        self._u = warp(self._linear)
        self._y = self.X + self._phi @ self._u

    def places(self, pose: FramePose) -> Floats:
        """x of the points, shape (k, 3)."""
        return pose.c + (self._y - pose.middle) @ pose.Q.T

    def follow(self) -> None:
        """Get ready to give rows here."""
        self._moves = warp_derivative(self._linear) @ self._rows

    def rows(self, pose: FramePose) -> Rows:
        """∂x of the points, three rows each."""
        count, l = len(self.X), self._rows.shape[2]
        arm = self._y - pose.middle
        moves = (self._phi @ self._moves.reshape(self._phi.shape[1], 3 * l)).reshape(count, 3, l)
        moves += cross_matrix(arm) @ pose.spin - pose.drift
        return Rows(
            np.tile(np.eye(3), (count, 1)),
            -cross_matrix(arm @ pose.Q.T).reshape(-1, 3),
            (pose.Q @ moves).reshape(3 * count, l),
        )

    def rotation(self, pose: FramePose) -> Floats:
        """How the body has turned at the first point: Q times the rotation in J = I + ∇u."""
        return pose.Q @ self._polar()[0]

    def _polar(self) -> tuple[Floats, Floats]:
        """R and S of J = R S at the first point."""
        J = np.eye(3) + np.einsum("na,nb->ab", self._u, self._dphi)
        left, sizes, right = np.linalg.svd(J)
        left[:, 2] *= np.sign(np.linalg.det(left @ right))
        return left @ right, right.T @ np.diag(sizes) @ right

    def rotation_rows(self, pose: FramePose) -> Rows:
        """How that turns: Rᵀ δJ is (tr S − S)⁻¹ times its axial vector's, twice, in turn."""
        R, S = self._polar()
        change = np.einsum("nal,nb->abl", self._moves, self._dphi)
        inner = np.einsum("ca,cbl->abl", R, change)
        axial = np.stack([inner[2, 1] - inner[1, 2], inner[0, 2] - inner[2, 0], inner[1, 0] - inner[0, 1]])
        turned = R @ np.linalg.solve(np.trace(S) * np.eye(3) - S, axial)
        return Rows(np.zeros((3, 3)), np.eye(3), pose.Q @ (turned - pose.spin))


@dataclass
class Grip:
    """A hold that is not part of the clamped base."""

    hold: Hold
    chosen: NDArray[np.int64]
    """those of its points that are followed"""
    turned: Floats
    """the body's rotation there when it was taken, 3 × 3"""
    patch: PointPatch


class TouchingPoints:
    """Points that touch something in a step of dt [s]."""

    def __init__(self, touch: Touch, patch: PointPatch, before: Floats, predicted: Floats, dt: float) -> None:
        self.touch, self.patch = touch, patch
        self._before, self._predicted = before, predicted
        self._stuck = before + dt * touch.velocity
        self._approach = np.einsum("ka,ka->k", (predicted - before) / dt - touch.velocity, touch.normal)
        self._axes = axes_about(touch.normal)
        """normal and two tangents, shape (k, 3, 3)"""

    def rows(self, z: Floats, pose: FramePose) -> Rows:
        """Of the points, along their axes."""
        self.patch.see(z)
        self.patch.follow()
        return self.patch.rows(pose).along(self._axes)

    def gaps(self, pose: FramePose) -> Floats:
        """Gap of each point, and how far it has slipped in the step, shape (3k,)."""
        places = self.patch.places(pose)
        result = np.einsum("kab,kb->ka", self._axes, places - self._stuck)
        result[:, 0] = self.touch.gap + np.einsum("ka,ka->k", places - self._predicted, self.touch.normal)
        return result.ravel()

    def way(self, pose: FramePose) -> Floats:
        """How far they have gone in the step along their axes, shape (3k,)."""
        return np.einsum("kab,kb->ka", self._axes, self.patch.places(pose) - self._before).ravel()

    def velocities(self, slow: float) -> Floats:
        """What they are to have at the end along their axes, shape (3k,): the collider's, and what bounces back of an
        approach that is not `slow`."""
        wanted = np.einsum("kab,kb->ka", self._axes, self.touch.velocity)
        bounces = self._approach < -slow
        wanted[:, 0] -= np.where(bounces, self.touch.restitution * self._approach, 0.0)
        return wanted.ravel()


@dataclass(frozen=True)
class Cone:
    """What impulses of contact may be: three numbers a point, along the normal and two tangents."""

    friction: Floats
    """Coulomb's coefficient, shape (k,)"""
    total: Floats
    """impulses that have acted so far, shape (3k,)"""


def solve(W: Floats, b: Floats, held: int, cone: Cone) -> Floats:
    """Impulses δ (r,) with W δ + b = 0 for the first `held` rows and, for the points of contact after them, normals
    that only push, W δ + b ≥ 0 where they do not, and friction within Coulomb's cone; all of total + δ."""
    rest = slice(held, len(b))
    back = np.zeros((held, len(b) - held))
    first = np.zeros(held)
    if held:
        factor = _factor(W[:held, :held])
        first = factor(b[:held])
        back = factor(W[:held, rest])
    delta = np.empty(len(b))
    if len(b) > held:
        reduced = W[rest, rest] - W[rest, :held] @ back
        gap = b[rest] - W[rest, :held] @ first
        total = cone.total.copy()
        sweep(reduced, gap, cone.friction, total, SINGULAR * reduced.diagonal().max())
        delta[rest] = total - cone.total
    delta[:held] = -first - back @ delta[rest]
    return delta


def _factor(W: Floats) -> Callable[[Floats], Floats]:
    """W⁻¹ of a matrix that may be singular: rows that say the same twice share what they need, and those that nothing
    can move, as points near the clamp, get nothing."""
    stiffer = W.copy()
    stiffer[np.diag_indices_from(W)] += SINGULAR * W.diagonal().max() + 1e-300
    factor = cho_factor(stiffer, lower=True, check_finite=False)
    return lambda b: cho_solve(factor, b, check_finite=False)


@dataclass(frozen=True)
class Touchable:
    """Points of a body that may touch something."""

    X: Floats
    """shape (c, 3)"""
    values: csr_array
    """φ_I there, shape (c, n)"""

    def places(self, field: ModalField, pose: FramePose) -> Floats:
        """x of the points, shape (c, 3)."""
        return np.asarray(pose.c + (self.values @ (field.space.nodes + field.basis.u) - pose.middle) @ pose.Q.T)


class StepConstraints:
    """Held points and points that may touch something, in a step of a body (G05 eq. 13, physics 11.5)."""

    def __init__(
        self, field: ModalField, goals: list[tuple[Grip, Goal]], touchable: Touchable, feel: Feel | None, dt: float
    ) -> None:
        """As a step of dt [s] begins: every grip is to be at its goal at the end, and points out of colliders."""
        self._field, self._goals, self._touchable, self._feel, self._dt = field, goals, touchable, feel, dt
        pose = field.pose(False)
        self._before = [self._places(grip, pose) for grip, _ in goals]
        self._rows_before = self._held_rows(field.pose())[0] if goals else []
        self._here = None if feel is None else touchable.places(field, pose)

    @property
    def grips(self) -> bool:
        """Whether anything holds the body by other than its clamp."""
        return bool(self._goals)

    @property
    def driven(self) -> bool:
        """Whether what holds or touches the body moves."""
        pose = self._field.pose(False)
        hands = [
            grip.patch.places(pose) - places
            for (grip, _), (places, _) in zip(self._goals, self._before, strict=True)
            if not grip.hold.still
        ]
        walls = [] if self._contacts is None else [self._dt * self._contacts.touch.velocity]
        return any(longest(way) > EXACT for way in hands + walls)

    def _places(self, grip: Grip, pose: FramePose) -> tuple[Floats, Floats]:
        """Where the points of a hold are, and how far the body has turned there."""
        grip.patch.see(self._field.motion.z)
        return grip.patch.places(pose), grip.patch.rotation(pose)

    def place(self, modes: OscillatorStep, rigid: OscillatorStep) -> float:
        """Held points to their goals, others out of colliders, by forces even over the step. Returns their work.

        Forces of holds act as they lie half-way: as they lie at the end, what swings would lose ω² Δt of its kinetic
        energy in a second, as they lie at the start it would gain as much.
        """
        field, dt = self._field, self._dt
        self.forces: Floats = np.zeros(len(field.basis))
        """what these are on the modes, shape (l,)"""
        contacts = self._contacts = self._touching()
        if not self._goals and contacts is None:
            return 0.0
        total = np.zeros(0 if contacts is None else 3 * len(contacts.touch.gap))
        friction = np.zeros(0) if contacts is None else contacts.touch.friction
        impulses: Floats | float = 0.0
        place, speed = Response(float(rigid.g) / dt, modes.g / dt), Response(float(rigid.s) / dt, modes.s / dt)
        for left in reversed(range(ROUNDS)):
            pose = field.pose()
            rows, error = self._held_rows(pose)
            acting = [now.halfway(before) for now, before in zip(rows, self._rows_before, strict=True)]
            held = len(error)
            fine = np.abs(error).max(initial=0.0) < EXACT
            if contacts is not None:
                touching = contacts.rows(field.motion.z, pose)
                rows, acting = [*rows, touching], [*acting, touching]
                error = np.concatenate([error, contacts.gaps(pose)])
                fine = fine and bool(total.any()) and error[held::3].min() > -SHALLOW
            joined = Rows.joined(rows)
            if fine or not left:
                break
            act = Rows.joined(acting)
            delta = solve(act.matrix(pose, place), error, held, Cone(friction, total))
            delta *= self._share(place.modes * (act.z.T @ delta))
            total = total + delta[held:]
            impulses = impulses + delta
            self._kick(act, delta, pose, place, speed)
            self.forces += act.z.T @ delta / dt
        self._last = joined, pose, held, Cone(friction, total)
        ways = [*self._held_velocities(pose), *([] if contacts is None else [contacts.way(pose) / dt])]
        return float(np.sum(impulses * np.concatenate(ways)))

    def match(self) -> float:
        """Give points that were placed the velocities they must have at the end. Returns the work of that."""
        if not self._goals and self._contacts is None:
            return 0.0
        rows, pose, held, cone = self._last
        wanted = [*self._held_velocities(pose)]
        if self._contacts is not None:
            wanted.append(self._contacts.velocities(RESTING * self._dt * longest(self._field.push)))
        return self._match_velocities(rows, np.concatenate(wanted), pose, held, cone)

    def _held_rows(self, pose: FramePose) -> tuple[list[Rows], Floats]:
        """Rows of held points, and how far these are from their goals."""
        rows, errors = [], [np.zeros(0)]
        for grip, goal in self._goals:
            patch = grip.patch
            patch.see(self._field.motion.z)
            patch.follow()
            rows.append(patch.rows(pose))
            errors.append((patch.places(pose) - patch.X - goal.displacements[grip.chosen]).ravel())
            if grip.hold.turns:
                rows.append(patch.rotation_rows(pose))
                errors.append(rotation_vector(patch.rotation(pose) @ (goal.rotation @ grip.turned).T))
        return rows, np.concatenate(errors)

    def _share(self, shift: Floats) -> float:
        """How much of a change of z to make at once: rows are those of the present rotations, and hold near them."""
        return min(1.0, TURN / max(longest(self._field.basis.rows[:, 3:] @ shift), 1e-30))

    def _kick(self, rows: Rows, impulses: Floats, pose: FramePose, place: Response | None, speed: Response) -> None:
        """What impulses along rows do to where the body is and how it moves."""
        motion, free = self._field.motion, self._field.frame is not None
        move, torque, force = rows.move.T @ impulses, rows.turn.T @ impulses, rows.z.T @ impulses
        motion.rate = motion.rate + speed.modes * force
        if free:
            motion.v = motion.v + speed.rigid * pose.inverse_mass * move
            motion.L = motion.L + speed.rigid * torque
        if place is None:
            return
        shift = place.modes * force
        motion.z = motion.z + shift
        if free:
            motion.c = motion.c + place.rigid * pose.inverse_mass * move
            turned = rotation_by(place.rigid * pose.inverse_inertia @ torque)
            motion.Q = turned @ motion.Q @ rotation_by(-pose.spin @ shift)
            self._field.lay()

    def _held_velocities(self, pose: FramePose) -> Iterator[Floats]:
        """How fast held points went in this step, row by row."""
        for (grip, _), (places, rotation) in zip(self._goals, self._before, strict=True):
            yield (grip.patch.places(pose) - places).ravel() / self._dt
            if grip.hold.turns:
                yield rotation_vector(grip.patch.rotation(pose) @ rotation.T) / self._dt

    def _match_velocities(self, rows: Rows, wanted: Floats, pose: FramePose, held: int, cone: Cone) -> float:
        """Give rows the velocities that are wanted: all that are held, and of points of contact those that press.
        Returns what kinetic energy they get by that."""
        pressing = np.flatnonzero(cone.total[::3] > 0)
        contacts = (3 * pressing[:, None] + np.arange(3)).ravel()
        chosen = np.concatenate([np.arange(held), held + contacts])
        rows, wanted, motion = rows[chosen], wanted[chosen], self._field.motion
        now = rows.move @ motion.v + rows.turn @ (pose.inverse_inertia @ motion.L) + rows.z @ motion.rate
        before = self._kinetic(pose)
        response = Response(1.0, 1 / (1 + np.maximum(self._field.values, 0.0) * self._dt**2))
        cone = Cone(cone.friction[pressing], cone.total[contacts])
        self._kick(rows, solve(rows.matrix(pose, response), now - wanted, held, cone), pose, None, response)
        return self._kinetic(pose) - before

    def _kinetic(self, pose: FramePose) -> float:
        """Of the modes and of the frame, in the body's own scales."""
        motion = self._field.motion
        kinetic = 0.5 * float(motion.rate @ motion.rate)
        if self._field.frame is not None:
            kinetic += 0.5 * float(motion.v @ motion.v) / pose.inverse_mass
            kinetic += 0.5 * float(motion.L @ pose.inverse_inertia @ motion.L)
        return kinetic

    def _touching(self) -> TouchingPoints | None:
        """The points that touch something at the end of the step, or nearly do; the deepest, well spread."""
        if self._feel is None or self._here is None:
            return None
        self._field.lay()
        places = self._touchable.places(self._field, self._field.pose(False))
        touch = self._feel(places)
        gap = touch.gap
        near = np.flatnonzero(gap < NEAR)
        if not len(near) or gap[near].min() > 0:
            return None
        near = near[spread(places[near], CONTACTS, int(np.argmin(gap[near])))]
        some = Touch(**{name: part[near] for name, part in vars(touch).items()})
        patch = PointPatch(self._touchable.X[near], self._touchable.values[near].toarray(), None, self._field.basis)
        return TouchingPoints(some, patch, self._here[near], places[near], self._dt)


def spread(points: Floats, count: int, first: int) -> NDArray[np.int64]:
    """`count` of the points (m, 3), the farthest from all chosen before, beginning with `first`; ascending."""
    if len(points) <= count:
        return np.arange(len(points))
    chosen = [first]
    distance = np.full(len(points), np.inf)
    while len(chosen) < count:
        distance = np.minimum(distance, ((points - points[chosen[-1]]) ** 2).sum(axis=1))
        chosen.append(int(np.argmax(distance)))
    return np.sort(np.array(chosen))


def longest(vectors: Floats) -> float:
    """The length of the longest of vectors (m, 3)."""
    return float(np.sqrt((vectors**2).sum(axis=1).max()))
