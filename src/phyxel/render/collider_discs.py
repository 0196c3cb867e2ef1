"""The surface of a collider as discs, for pictures."""

from __future__ import annotations

import numpy as np
import warp as wp
from numpy.typing import NDArray

from phyxel.contact.colliders import Collider
from phyxel.contact.mold import Mold
from phyxel.contact.table import measured
from phyxel.device import as_vectors
from phyxel.rotation import tangents
from phyxel.surface.discs import Discs

Floats = NDArray[np.floating]

COLLIDER_COLOR = (0.60, 0.61, 0.63)
"""Display color."""
ALONG = 100
"""Discs along the longest side."""
LAYERS = 4
"""Fewest layers of seeds across a thin side, so that both its faces get discs."""


def collider_discs(collider: Collider, device: wp.Device) -> Discs:
    """A collider's surfels in its own frame: seeds on a grid, those next to the surface moved onto it."""
    lower, upper = collider.box
    spacing = float((upper - lower).max()) / ALONG
    seeds = _seeds(lower, upper, spacing)
    distances, normals = measured(collider, seeds, device)
    near = np.abs(distances) < 0.6 * spacing
    points, normals = (seeds - distances[:, None] * normals)[near], normals[near]
    if isinstance(collider, Mold):
        shown = collider.shows(points)
        points, normals = points[shown], normals[shown]
    a, b = tangents(normals)
    fields = (points, spacing * a, spacing * b, normals, np.broadcast_to(COLLIDER_COLOR, points.shape))
    x, axis_a, axis_b, normal, color = (as_vectors(field, device) for field in fields)
    return Discs(x, axis_a, axis_b, normal, color, np.zeros(3))


def _seeds(lower: Floats, upper: Floats, spacing: float) -> Floats:
    axes = []
    for low, high in zip(lower, upper, strict=True):
        steps = max(LAYERS, int(np.ceil((high - low) / spacing)))
        width = (high - low) / steps
        axes.append(low + width * (np.arange(-1, steps + 1) + 0.5))
    return np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, 3)
