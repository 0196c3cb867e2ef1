"""What fracture is told of a body: stress and strength at places in it."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from phyxel.cracks.grid import Floats


@dataclass(frozen=True)
class Samples:
    """Places in a body and what pulls there, in reference coordinates and body units."""

    points: Floats
    """shape (q, 3)"""
    stress: Floats
    """Cauchy's [Pa], shape (q, 3, 3)"""
    deformation: Floats
    """J, shape (q, 3, 3)"""
    strength: Floats
    """largest principal stress it bears [Pa], inf: any, shape (q,)"""
    speed: Floats
    """of shear waves [spacings/s], shape (q,)"""
    held: Floats = field(default_factory=lambda: np.zeros((0, 3)))
    """places that something has hold of, shape (k, 3)"""

    def load(self) -> Floats:
        """Largest principal stress over strength, shape (q,): above 1 it cracks (Rankine)."""
        return self._load

    @cached_property
    def _load(self) -> Floats:
        return largest_principal(self.stress) / self.strength


def largest_principal(stress: Floats) -> Floats:
    """Largest eigenvalue of symmetric matrices (q, 3, 3), shape (q,), in closed form: LAPACK takes a microsecond each.

    σ₁ = p + 2r cos(θ/3) with p the mean, r² = |σ − pI|²/6 and cos θ = det(σ − pI)/(2r³).
    """
    xx, yy, zz = (stress[:, a, a] for a in range(3))
    yz, xz, xy = stress[:, 1, 2], stress[:, 0, 2], stress[:, 0, 1]
    mean = (xx + yy + zz) / 3
    x, y, z = xx - mean, yy - mean, zz - mean
    r = np.sqrt((x * x + y * y + z * z + 2 * (yz * yz + xz * xz + xy * xy)) / 6)
    determinant = x * (y * z - yz * yz) - xy * (xy * z - yz * xz) + xz * (xy * yz - y * xz)
    cosine = np.clip(determinant / np.maximum(2 * r**3, 1e-300), -1, 1)
    return mean + 2 * r * np.cos(np.arccos(cosine) / 3)


def scattered(strength: Floats, scatter: Floats, draws: Floats) -> Floats:
    """Strengths (q,) of places whose material has the given mean [Pa] (NaN: it never cracks) and relative standard
    deviation, both (q,), for `draws` (q,) of a standard normal distribution: lognormal. Those that never crack bear
    inf."""
    width = np.sqrt(np.log1p(np.asarray(scatter, np.float64) ** 2))
    return np.where(np.isnan(strength), np.inf, strength) * np.exp(width * draws - 0.5 * width**2)
