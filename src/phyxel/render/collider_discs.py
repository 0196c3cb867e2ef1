"""Points on the surface of a collider, for pictures."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import warp as wp
from numpy.typing import NDArray

from phyxel.contact.colliders import Collider
from phyxel.contact.mold import Mold
from phyxel.contact.table import measured

Floats = NDArray[np.floating]

ALONG = 100
"""Points along the longest side."""
LAYERS = 4
"""Fewest layers of seeds across a thin side, so that both its faces get points."""


@dataclass(frozen=True)
class ColliderSkin:
    """Points on a surface, in the collider's frame."""

    points: Floats
    """[m], shape (n, 3)"""
    normals: Floats
    """outward, shape (n, 3)"""
    spacing: float
    """about how far apart they are [m]"""


def skin_of(collider: Collider, device: wp.Device) -> ColliderSkin:
    """Seeds on a grid, those next to the surface moved onto it."""
    lower, upper = collider.box
    spacing = float((upper - lower).max()) / ALONG
    seeds = _seeds(lower, upper, spacing)
    distances, normals = measured(collider, seeds, device)
    near = np.abs(distances) < 0.6 * spacing
    points, normals = (seeds - distances[:, None] * normals)[near], normals[near]
    shown = collider.shows(points) if isinstance(collider, Mold) else np.ones(len(points), bool)
    return ColliderSkin(points[shown], normals[shown], spacing)


def _seeds(lower: Floats, upper: Floats, spacing: float) -> Floats:
    axes = []
    for low, high in zip(lower, upper, strict=True):
        steps = max(LAYERS, int(np.ceil((high - low) / spacing)))
        width = (high - low) / steps
        axes.append(low + width * (np.arange(-1, steps + 1) + 0.5))
    return np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, 3)
