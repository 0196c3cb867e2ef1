"""Worlds with flocks of phyxel bodies. Boxes have sides of 0.2 m."""

from typing import Any

import phyxel as px
from phyxel.movers.phyxel_bodies import PhyxelBodies

SOFT, STONE = px.Material(young=1e5, density=1000.0), px.Material(young=1e10, density=2500.0)
WAX = px.Material(young=2e4, density=1000.0)


def box(material: px.Material, at: Any, shape: str = "box", nodes: int = 100, **more: Any) -> px.Body:
    cloud = px.load(shape, points=800)
    return px.Body(cloud, nodes=nodes, material=material, size=0.2, at=at, place="center", **more)


def bits(*bodies: px.Body) -> list[bytes]:
    return [array.tobytes() for body in bodies for array in (body.positions, body.velocities)]


def flocks(world: px.World) -> dict[str, PhyxelBodies]:
    """By their integrator."""
    return {mover.integrator: mover for mover in world.movers if isinstance(mover, PhyxelBodies)}
