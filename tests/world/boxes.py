"""A world of boxes: small bodies of one shape."""

from __future__ import annotations

import hashlib
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

import phyxel as px

SOFT = px.Material(young=1e5, poisson=0.3, density=1000.0)
DAMPED = SOFT.but(damping=2e-3)
G = 9.81
MASS = 125.0
"""of the box: 0.5 m sides, water's density [kg]"""
NOWHERE = (0.0, 0.0, 0.0)


@cache
def box_cloud() -> px.PointCloud:
    return px.load("box", points=300)


def box(**options: Any) -> px.Body:
    known: dict[str, Any] = {"nodes": 64, "material": SOFT, "place": "center"} | options
    return px.Body(box_cloud(), **known)


def world_of(*things: Any, gravity: tuple[float, float, float] = (0.0, -G, 0.0)) -> px.World:
    world = px.World(gravity=gravity)
    for thing in things:
        world.add(thing)
    return world


def bits(world: px.World) -> list[str]:
    """Of all displacements and velocities, as hashes."""
    fields = [world.field(body, name) for body in world.bodies for name in ("u", "v")]
    return [hashlib.sha256(field.tobytes()).hexdigest()[:16] for field in fields]


def left_end(positions: NDArray[np.float64]) -> NDArray[np.bool_]:
    return np.asarray(positions[:, 0] < positions[:, 0].min() + 0.05)
