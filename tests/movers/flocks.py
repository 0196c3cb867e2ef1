"""Worlds with flocks of phyxel bodies. Boxes have sides of 0.2 m."""

from typing import Any

import numpy as np

import phyxel as px
from phyxel.movers.phyxel_bodies import PhyxelBodies

SOFT, STONE = px.Material(young=1e5, density=1000.0), px.Material(young=1e10, density=2500.0)
WAX = px.Material(young=2e4, density=1000.0)


def box(material: px.Material, at: Any, shape: str = "box", nodes: int = 100, **more: Any) -> px.Body:
    cloud = px.load(shape, points=800)
    return px.Body(cloud, nodes=nodes, material=material, size=0.2, at=at, place="center", **more)


def world_of(*things: Any, gravity: Any = (0.0, -9.81, 0.0)) -> px.World:
    world = px.World(gravity=gravity)
    for thing in things:
        world.add(thing)
    return world


def sums(world: px.World, *names: str) -> list[Any]:
    return [np.sum([np.asarray(body.diagnostics()[name]) for body in world.bodies], axis=0) for name in names]


def energy(world: px.World) -> float:
    return sum(sums(world, "kinetic", "elastic", "potential"))


def bits(*bodies: px.Body) -> list[bytes]:
    return [array.tobytes() for body in bodies for array in (body.positions, body.velocities)]


def flocks(world: px.World) -> dict[str, PhyxelBodies]:
    """By their integrator."""
    return {mover.integrator: mover for mover in world.movers if isinstance(mover, PhyxelBodies)}
