# mypy: disable-error-code="valid-type,no-untyped-def"
"""Points on the surface of a collider, for pictures."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import warp as wp
from numpy.typing import NDArray

from phyxel import device as dev
from phyxel.contact.colliders import Collider
from phyxel.contact.distances import signed_distance
from phyxel.contact.mold import Mold
from phyxel.contact.table import ColliderTable

wp.set_module_options(dev.KERNEL_OPTIONS)

Floats = NDArray[np.floating]

ALONG = 100
"""Points along the longest side."""
LAYERS = 4
"""Fewest layers of seeds across a thin side, so that both its faces get points."""


@dataclass(frozen=True)
class Skin:
    """Points on a surface, in the collider's frame."""

    points: Floats
    """[m], shape (n, 3)"""
    normals: Floats
    """outward, shape (n, 3)"""
    spacing: float
    """about how far apart they are [m]"""


@wp.kernel
def project(first: int, colliders: Any, x: wp.array(dtype=Any), normal: wp.array(dtype=Any), d: wp.array(dtype=Any)):
    """Places onto the surface of the first collider; their distance from it before."""
    i = first + wp.tid()
    kind = colliders.kind[0]
    distance, n = signed_distance(kind, x[i], colliders.size[0], colliders.layout[0], colliders.values)
    x[i] = x[i] - distance * n
    normal[i] = n
    d[i] = distance


def skin_of(collider: Collider, device: wp.Device) -> Skin:
    """Seeds on a grid, those next to the surface moved onto it."""
    lower, upper = collider.box
    spacing = float((upper - lower).max()) / ALONG
    seeds = _seeds(lower, upper, spacing)
    table = ColliderTable([1.0], wp.float32, device)
    table.write([collider], np.zeros((1, 3)), (0.0, 0.0), 0.0)
    x = wp.array(seeds, dtype=wp.vec3, device=device)
    normal = wp.zeros(len(seeds), dtype=wp.vec3, device=device)
    distance = wp.zeros(len(seeds), dtype=wp.float32, device=device)
    dev.launch(project, len(seeds), [table.table, x, normal, distance], device)
    points, normals = x.numpy(), normal.numpy()
    near = np.abs(distance.numpy()) < 0.6 * spacing
    if isinstance(collider, Mold):
        near[near] = collider.shows(points[near])
    return Skin(points[near], normals[near], spacing)


def _seeds(lower: Floats, upper: Floats, spacing: float) -> Floats:
    axes = []
    for low, high in zip(lower, upper, strict=True):
        steps = max(LAYERS, int(np.ceil((high - low) / spacing)))
        width = (high - low) / steps
        axes.append(low + width * (np.arange(-1, steps + 1) + 0.5))
    return np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, 3)
