"""Volume, middle and second moments of solids: of what triangles enclose, and of simple shapes, all exact."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class SolidMoments:
    """∫dV, ∫x dV/∫dV and ∫(x − middle)(x − middle)ᵀ dV over a solid."""

    volume: float
    """[m³]"""
    middle: Floats
    """[m], shape (3,)"""
    second: Floats
    """about the middle [m⁵], 3 × 3"""

    @staticmethod
    def about_origin(volume: float, first: Floats, second: Floats) -> SolidMoments:
        """From ∫dV, ∫x dV (3,) and ∫x xᵀ dV (3, 3)."""
        return SolidMoments(volume, first / volume, second - np.outer(first, first) / volume)

    def moved(self, scale: float, rotation: Floats, middle: Floats) -> SolidMoments:
        """Those of the solid scaled, turned by a rotation (3, 3), and with its middle there (3,)."""
        return SolidMoments(scale**3 * self.volume, middle, scale**5 * (rotation @ self.second @ rotation.T))


def enclosed_by(triangles: NDArray[np.floating]) -> SolidMoments:
    """Of what triangles (n, 3, 3) enclose, closed and counter-clockwise from outside, by the divergence theorem: sums
    over tetrahedra (0, a, b, c) of the volume V = a·(b × c)/6,

    ∫x dV = V s/4,   ∫x xᵀ dV = V (a aᵀ + b bᵀ + c cᵀ + s sᵀ)/20,   s = a + b + c.
    """
    six_volumes = triangles[:, 0] * np.cross(triangles[:, 1], triangles[:, 2])
    each, s = six_volumes.sum(axis=1) / 6, triangles.sum(axis=1)
    corners = np.einsum("n,nka,nkb->ab", each, triangles, triangles)
    second = (corners + np.einsum("n,na,nb->ab", each, s, s)) / 20
    return SolidMoments.about_origin(float(six_volumes.sum() / 6), each @ s / 4, second)


def of_box(center: Floats, half: Floats) -> SolidMoments:
    """Of a box with half edges (3,) [m]."""
    volume = float(8 * half.prod())
    return SolidMoments(volume, np.array(center, np.float64), volume / 3 * np.diag(half**2))


def of_ball(radius: float) -> SolidMoments:
    """Of a ball about the origin."""
    volume = 4 / 3 * np.pi * radius**3
    return SolidMoments(volume, np.zeros(3), volume / 5 * radius**2 * np.eye(3))


def of_ring(major: float, minor: float) -> SolidMoments:
    """Of a torus about the y axis."""
    volume = 2 * np.pi**2 * major * minor**2
    across, along = major**2 / 2 + 3 / 8 * minor**2, minor**2 / 4
    return SolidMoments(volume, np.zeros(3), volume * np.diag([across, along, across]))


def of_dome(outer: float, inner: float) -> SolidMoments:
    """Of the upper half, y > 0, of a hollow ball about the origin."""
    volume, fifth = 2 / 3 * np.pi * (outer**3 - inner**3), 2 / 15 * np.pi * (outer**5 - inner**5)
    return SolidMoments.about_origin(volume, np.array([0, np.pi / 4 * (outer**4 - inner**4), 0]), fifth * np.eye(3))
