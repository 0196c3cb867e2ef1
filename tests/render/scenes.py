"""Surfels with a known picture, for the tests of the renderer."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from phyxel.rotation import tangents
from phyxel.surface.discs import disc_radii

Floats = NDArray[np.float32]


def sphere(
    count: int = 6000,
    radius: float = 1.0,
    center: tuple[float, float, float] = (0, 0, 0),
    color: object = (0.8, 0.8, 0.8),
) -> tuple[Floats, Floats, Floats, Floats]:
    """Positions, half axes a and b, colors of a sphere of evenly spread surfels (a Fibonacci spiral)."""
    k = np.arange(count) + 0.5
    polar = np.arccos(1 - 2 * k / count)
    turn = np.pi * (1 + 5**0.5) * k
    normals = np.stack([np.cos(turn) * np.sin(polar), np.cos(polar), np.sin(turn) * np.sin(polar)], axis=1)
    positions = (radius * normals + np.asarray(center)).astype(np.float32)
    radii = disc_radii(positions)[:, None]
    a, b = ((radii * axis).astype(np.float32) for axis in tangents(normals))
    return positions, a, b, np.tile(np.asarray(color, np.float32), (count, 1))
