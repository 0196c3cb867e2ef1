"""Points of a modal body that are held or touch something: how they move with its coordinates, and the impulses that
put them where they must be.

A body's coordinates are its middle c, its turn Q and the amplitudes z: x = c + Q (X + u(z) − ȳ(z)), ȳ the middle of the
warped shape. Vibration turns the frame back by I⁻¹ ∫ρ y × u̇, so that it has no angular momentum of its own: in terms of
(v, L, ż) kinetic energy has no mixed terms.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_factor, cho_solve

from phyxel.contact.touch import Touch
from phyxel.models.coulomb import SINGULAR, sweep
from phyxel.models.modal.basis import Basis
from phyxel.models.modal.modes import UNFELT
from phyxel.models.modal.warping import warp, warp_derivative
from phyxel.models.protocol import Hold
from phyxel.rotation import axes_about, cross_matrix

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class FramePose:
    """Where the frame of a body is, and how it goes with z. A clamped body's has no inverse mass and does not."""

    c: Floats
    """the body's middle, shape (3,)"""
    Q: Floats
    middle: Floats
    """ȳ, shape (3,)"""
    inverse_mass: float
    inverse_inertia: Floats
    """in the world's axes, 3 × 3"""
    drift: Floats
    """∂ȳ/∂z, shape (3, l)"""
    spin: Floats
    """I⁻¹ ∫ρ y × ∂u/∂z, in the body's axes, shape (3, l)"""


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
        self._predicted = predicted
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
    """what has acted so far, shape (3k,)"""


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
