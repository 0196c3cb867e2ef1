"""Worlds of a few things, and what all of their bodies have together."""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np
from numpy.typing import NDArray

import phyxel as px


def world_of(*things: Any, **options: Any) -> px.World:
    """A world with these bodies, colliders and fields, added in this order."""
    world = px.World(**options)
    for thing in things:
        world.add(thing)
    return world


def weightless(*things: Any, **options: Any) -> px.World:
    return world_of(*things, gravity=(0.0, 0.0, 0.0), **options)


def sums(world: px.World, *names: str) -> list[Any]:
    """Of these diagnostics over all bodies."""
    each = [body.diagnostics() for body in world.bodies]
    return [np.sum([one[name] for one in each], axis=0) for name in names]


def total(world: px.World, name: str) -> Any:
    """Of one of them."""
    return sums(world, name)[0]


def energy(world: px.World) -> float:
    """Of motion, of deformation and of height [J]."""
    return float(sum(sums(world, "kinetic", "elastic", "potential")))


def bits(world: px.World, *names: str) -> list[str]:
    """Of these fields of all bodies, as hashes: displacements and velocities if none is named."""
    fields = [world.field(body, name) for body in world.bodies for name in names or ("u", "v")]
    return [hashlib.sha256(field.tobytes()).hexdigest()[:16] for field in fields]


def middle(body: px.Body) -> NDArray[np.float64]:
    """Centre of mass [m]."""
    return np.average(body.positions, axis=0, weights=body.masses)


def left_end(positions: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Whether points are within 0.05 m of where they begin along x."""
    return np.asarray(positions[:, 0] < positions[:, 0].min() + 0.05)
