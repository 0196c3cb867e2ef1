"""How a rigid body turns that no torque acts on (physics 12.11): by the discrete Moser–Veselov algorithm with
preprocessed moments of inertia (Hairer and Vilmart, J. Phys. A 39, 2006). Along the principal axes, y = Rᵀ L goes by a
rotation by the unit quaternion (√(1 − e²), e) with

    2 (√(1 − e²) Ĩe + e × Ĩe) = h y,   2 (√(1 − e²) Ĩe − e × Ĩe) = h y′,   1/Ĩ = a/I + b.

y and y′ have the same length and the same energy whatever a and b are; these only say how soon it gets there. As series
in h² they make the step exact, a = 1 + h² s₃ + h⁴ s₅ + …, b = h² d₃ + h⁴ d₅ + …: with the terms here it is of sixth
order.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

FARTHEST = 0.125
"""Angle [rad] that is turned in one go: the error of the angle is some 1e-4 of its seventh power."""
ROUNDS = 40
"""of the fixed point iteration at most; each gains a digit or more"""


class FreeRotation:
    """Turns a body of some inertia (3, 3), about its middle or a point that stays where it is."""

    def __init__(self, inertia: Floats) -> None:
        moments, self._axes = np.linalg.eigh(inertia)
        self._axes[:, 2] *= np.sign(np.linalg.det(self._axes))
        self._inverse: list[float] = (1 / moments).tolist()
        self.root: Floats = self._axes / np.sqrt(moments)
        """ω that unit answers make, unturned, 3 × 3: a root of the inverse"""
        p, q, r = self._inverse
        self._symmetric = p + q + r, p * q + q * r + r * p, p * q * r

    def turned(self, R: Floats, L: Floats, dt: float) -> Floats:
        """The rotation (3, 3) to which angular momentum L (3,) takes the rotation R in dt [s]."""
        turn = R @ self._axes
        fastest = float(np.linalg.norm((turn.T @ L) * self._inverse))
        parts = max(1, math.ceil(fastest * abs(dt) / FARTHEST))
        for _ in range(parts):
            turn = turn @ self._step((turn.T @ L).tolist(), dt / parts)
        there = turn @ self._axes.T
        return np.asarray(1.5 * there - 0.5 * there @ (there.T @ there))  # orthonormal to rounding, however often

    def _step(self, y: list[float], h: float) -> Floats:
        """The turn of one step, seen along the principal axes at its start, 3 × 3."""
        a, b = self._preprocessed(y, h)
        u, v, w = (a * inverse + b for inverse in self._inverse)  # 1/Ĩ
        start = 0.5 * h * y[0] * u, 0.5 * h * y[1] * v, 0.5 * h * y[2] * w
        along = u * (1 / w - 1 / v), v * (1 / u - 1 / w), w * (1 / v - 1 / u)
        e, cosine = start, 1.0
        for _ in range(ROUNDS):
            before, (p, q, r) = e, e
            cosine = math.sqrt(1 - (p * p + q * q + r * r))
            e = (
                (start[0] - along[0] * q * r) / cosine,
                (start[1] - along[1] * r * p) / cosine,
                (start[2] - along[2] * p * q) / cosine,
            )
            if e == before:
                break
        p, q, r = e
        E = np.array([[0.0, -r, q], [r, 0.0, -p], [-q, p, 0.0]])
        return np.eye(3) + 2 * cosine * E + 2 * (E @ E)

    def _preprocessed(self, y: list[float], h: float) -> tuple[float, float]:
        """a and b: of H = ½ y·y/I, C = ½ y·y and the elementary symmetric functions of 1/I."""
        e1, e2, e3 = self._symmetric
        H = 0.5 * h * h * sum(part * part * inverse for part, inverse in zip(y, self._inverse, strict=True))
        C = 0.5 * h * h * sum(part * part for part in y)
        s3, d3 = -e1 * H / 3 + e2 * C / 6, e2 * H / 6 - e3 * C / 3
        s5 = (2 * e1**2 - e2) * H**2 + (8 * e3 - 2 * e1 * e2) * H * C + (2 * e2**2 - 6 * e1 * e3) * C**2
        d5 = -(e1 * e2 + 6 * e3) * H**2 + (8 * e1 * e3 - e2**2) * H * C - e2 * e3 * C**2
        return 1 + s3 + s5 / 60, d3 + d5 / 60
