"""Rotations as vectors w [rad] and matrices R(w) = exp [w]×, and axes across a normal, in double on the host."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.spatial.transform import Rotation

Floats = NDArray[np.float64]

NEARBY = 0.0025
"""θ² [rad²] below which three terms of a series have all digits of a double."""


def cross(a: Floats, b: Floats) -> Floats:
    """a × b of vectors (m, 3): NumPy's takes five times as long for a few hundred."""
    return a[:, [1, 2, 0]] * b[:, [2, 0, 1]] - a[:, [2, 0, 1]] * b[:, [1, 2, 0]]


def cross_of(a: Floats, b: Floats) -> Floats:
    """a × b of two vectors (3,): NumPy's takes ten times as long."""
    (x, y, z), (u, v, w) = a.tolist(), b.tolist()
    return np.array([y * w - z * v, z * u - x * w, x * v - y * u])


def cross_matrix(w: Floats) -> Floats:
    """[w]× of vectors (..., 3), shape (..., 3, 3)."""
    result = np.zeros((*w.shape, 3))
    result[..., 0, 1], result[..., 0, 2], result[..., 1, 2] = -w[..., 2], w[..., 1], -w[..., 0]
    result[..., 1, 0], result[..., 2, 0], result[..., 2, 1] = w[..., 2], -w[..., 1], w[..., 0]
    return result


# Vectors and matrices


def factors(w: Floats) -> tuple[Floats, Floats, Floats, Floats]:
    """a = (1 − cos θ)/θ², b = (θ − sin θ)/θ³ and a′/θ, b′/θ of θ = |w| for vectors (m, 3), each (m, 1)."""
    square = np.einsum("ma,ma->m", w, w)[:, None]
    near = square < NEARBY
    t2 = np.where(near, 1.0, square)
    t = np.sqrt(t2)
    sine, versed = np.sin(t), 2 * np.sin(0.5 * t) ** 2
    a = np.where(near, 1 / 2 - square / 24 + square**2 / 720, versed / t2)
    b = np.where(near, 1 / 6 - square / 120 + square**2 / 5040, (t - sine) / (t2 * t))
    slope_a = np.where(near, -1 / 12 + square / 180 - square**2 / 6720, sine / (t2 * t) - 2 * versed / t2**2)
    slope_b = np.where(near, -1 / 60 + square / 1260 - square**2 / 60480, versed / t2**2 - 3 * (t - sine) / (t2**2 * t))
    return a, b, slope_a, slope_b


def rotations_by(w: Floats) -> Floats:
    """R(w) of vectors (m, 3), shape (m, 3, 3)."""
    a, b, _, _ = factors(w)
    square = np.einsum("ma,ma->m", w, w)[:, None]
    W = cross_matrix(w)
    # sin θ/θ = 1 − b θ²
    return np.eye(3) + (1 - b * square)[:, :, None] * W + a[:, :, None] * (W @ W)


def rotation_by(w: Floats) -> Floats:
    """R(w) of one vector (3,), 3 × 3."""
    x, y, z = w.tolist()
    angle = math.sqrt(x * x + y * y + z * z)
    W = np.array([[0.0, -z, y], [z, 0.0, -x], [-y, x, 0.0]])
    if angle < 1e-6:
        return np.eye(3) + W + 0.5 * (W @ W)
    return np.eye(3) + (math.sin(angle) / angle) * W + (2 * (math.sin(0.5 * angle) / angle) ** 2) * (W @ W)


def rotation_vector(R: Floats) -> Floats:
    """w of one rotation R(w), |w| ≤ π, shape (3,)."""
    axial = 0.5 * np.array([R[2, 1] - R[1, 2], R[0, 2] - R[2, 0], R[1, 0] - R[0, 1]])
    sine, cosine = float(np.linalg.norm(axial)), 0.5 * (float(np.trace(R)) - 1)
    if sine > 1e-6:
        return axial * (np.arctan2(sine, cosine) / sine)
    if cosine > 0:
        return axial
    symmetric = 0.5 * (R + np.eye(3))  # half a turn: a aᵀ
    k = int(np.argmax(symmetric.diagonal()))
    return np.pi * symmetric[k] / np.sqrt(symmetric[k, k])


def rotation_vectors(R: Floats) -> Floats:
    """w of rotations R(w) (m, 3, 3), |w| ≤ π, shape (m, 3)."""
    return np.asarray(Rotation.from_matrix(R).as_rotvec())


def spin_between(start: Floats, end: Floats) -> Floats:
    """The rotation vector that takes one rotation to the other, at most half a turn, shape (3,)."""
    return np.asarray(Rotation.from_matrix(end @ start.T).as_rotvec())


def spun(start: Floats, w: Floats) -> Floats:
    """R(w) `start`, 3 × 3, for w (3,)."""
    return np.asarray(Rotation.from_rotvec(w).as_matrix() @ start)


def spun_on(R: Floats, w: Floats) -> Floats:
    """R(w) R, 3 × 3, for w (3,); orthonormal to rounding however often it is done."""
    there = rotation_by(w) @ R
    return np.asarray(1.5 * there - 0.5 * there @ (there.T @ there))


def nearest_rotation(F: Floats) -> Floats:
    """R of F = R S, 3 × 3; where F reflects, with its least direction the other way round."""
    left, _, right = np.linalg.svd(F)
    left[:, 2] *= np.sign(np.linalg.det(left @ right))
    return np.asarray(left @ right)


# Angles


def euler(degrees: ArrayLike) -> Floats:
    """Rotation by degrees (3,) about x, y, z, in this order, 3 × 3."""
    return np.asarray(Rotation.from_euler("xyz", degrees, degrees=True).as_matrix())


def euler_angles(R: Floats, near: ArrayLike = (0.0, 0.0, 0.0)) -> Floats:
    """Degrees (3,) about x, y, z, in this order, of a rotation 3 × 3: each within half a turn of those of `near`."""
    angles = Rotation.from_matrix(R).as_euler("xyz", degrees=True, suppress_warnings=True)
    return np.asarray(angles - 360 * np.round((angles - np.asarray(near)) / 360))


def about_axis(axis: ArrayLike, degrees: float) -> Floats:
    """Rotation about an axis through the origin, right-handed, 3 × 3 (Rodrigues)."""
    x, y, z = np.divide(axis, np.linalg.norm(axis))
    turn = cross_matrix(np.array([x, y, z]))
    angle = np.radians(degrees)
    return np.asarray(np.eye(3) + np.sin(angle) * turn + (1 - np.cos(angle)) * turn @ turn)


# Axes across a normal. Bodies' surfels go by the first, contact and cracks by the second.


def tangents(normals: NDArray[np.floating]) -> tuple[Floats, Floats]:
    """Two unit vectors in the plane of each unit normal (m, 3), right-handed with it, each (m, 3).

    The basis of Duff et al. (JCGT 2017), which has no direction where it divides by nearly nothing.
    """
    x, y, z = np.asarray(normals, np.float64).T
    sign = np.copysign(1.0, z)
    p = -1.0 / (sign + z)
    q = x * y * p
    a = np.stack([1.0 + sign * x * x * p, sign * q, -sign * x], axis=1)
    b = np.stack([q, sign + y * y * p, -y], axis=1)
    return a, b


def axes_about(normals: Floats) -> Floats:
    """Unit normals (m, 3) and two unit vectors across each, right-handed with it; shape (m, 3, 3), axis by axis.

    The first is square to the coordinate axis that the normal has least of: along coordinate axes there is no rounding.
    """
    first = np.cross(normals, np.eye(3)[np.argmin(np.abs(normals), axis=1)])
    first /= np.linalg.norm(first, axis=1)[:, None]
    return np.stack([normals, first, np.cross(normals, first)], axis=1)
