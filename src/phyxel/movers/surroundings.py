"""Where a body that moves on its own is among the colliders of its world."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import warp as wp
from numpy.typing import NDArray

from phyxel.body import Body
from phyxel.contact.colliders import Collider, Ground
from phyxel.contact.table import ColliderTable, measured
from phyxel.contact.touch import ColliderQuery, Feel, Touch
from phyxel.errors import PhyxelError, tell
from phyxel.movers.mover import MoverWorld
from phyxel.region import Vector
from phyxel.surface.motion import Motion
from phyxel.surface.walls import Walls
from phyxel.units import length_text

Floats = NDArray[np.float64]

DEEP = 0.05
"""Depth in the ground over the size of a body, above which it is told of."""


def refuse_overlap(world: MoverWorld, body: Body, shift: Vector = (0.0, 0.0, 0.0)) -> None:
    """What starts deep in a collider, as it is or after a shift [m], would be shot out of it."""
    for collider in (one for one in world.colliders if isinstance(one, Collider)):
        place, rotation = collider.pose(world.time)
        depth = -float(measured(collider, (body.positions + shift - place) @ rotation, world.device)[0].min())
        if depth > body.unit:
            raise PhyxelError(f"{body.name}: starts {depth:.3g} m inside the {collider.label}; move one of them")


def raised_from_ground(
    world: MoverWorld, body: Body, lowest: Callable[[Floats], float], clearance: float = 0.0
) -> bool:
    """Raise a free body that starts in the ground until it is a clearance [m] above it; `lowest` tells how far down it
    reaches along a direction up [m]. What starts in the ground would be shot out of it. The reference shape stays where
    it was given. Whether it was raised."""
    raised, free = False, not body.handles
    for ground in (one for one in world.colliders if isinstance(one, Ground)):
        up = np.array(ground.normal)
        depth = ground.height + clearance - lowest(up)
        if depth > 0 and depth > DEEP * np.ptp(body.placed_cloud(), axis=0).max():
            done = "; it is set down on it" if free else ""
            tell(f"{body.name}: reaches {length_text(depth)} below the ground{done}. `at` says where its foot is")
        if depth > 0 and free:
            body.origin = body.origin + depth * up
            world.revision += 1
            raised = True
    return raised


class Surroundings:
    """The colliders as one body feels them, and as its surfels see them."""

    def __init__(self, world: MoverWorld, body: Body) -> None:
        self._world, self._body = world, body
        self.around = ColliderQuery(body.unit)
        """what the host asks"""
        self._walls = ColliderTable([body.unit], wp.float32, world.device)
        self.arrived = True
        """whether the body may have come to be in a collider without having moved there"""

    def place(self, start: float, end: float) -> None:
        """Colliders are where they are at `end` [s], and move as they do since `start`."""
        self.around.place(self._world.colliders, self._body.origin, (start, end), end)

    def place_now(self) -> None:
        """Colliders are where they are now, at rest."""
        self.place(self._world.time, self._world.time)

    @property
    def feel(self) -> Feel | None:
        """What tells of the colliders, if there are any."""
        return self._felt if self._world.colliders else None

    def _felt(self, places: Floats) -> Touch:
        touch = self.around.feel(places)
        return replace(touch, restitution=np.maximum(touch.restitution, self._body.restitution))

    def set_down(self, clearance: float = 0.0) -> None:
        """A free body that starts in the ground is raised until its skin is a clearance [m] above it; in another
        collider it is refused."""
        if not self.arrived:
            return
        self.arrived = False
        body = self._body
        if not self._world.colliders:
            return
        skin = body.placed_cloud()

        def lowest(up: Floats) -> float:
            # Not of the surfels: these are shown on the ground where they are in it.
            return float(((skin + body.displacement_at(skin)) @ up).min(initial=np.inf))

        raised_from_ground(self._world, body, lowest, clearance)
        if body.handles:
            return
        self.place_now()
        depth = -float(self.around.feel((body.positions - body.origin) / body.unit).gap.min())
        if depth > 1:
            raise PhyxelError(f"{body.name}: starts {depth * body.unit:.3g} m inside a collider; move one of them")

    def motion(self, u: wp.array, even: Floats) -> Motion:
        """What the body's surfels follow: displacements u about an even one, both in units."""
        body, time = self._body, self._world.time
        origin = body.origin + body.unit * even  # single precision keeps its digits
        self._walls.write(self._world.colliders, origin[None], (time, time), time)
        return Motion(u, body.unit, origin, Walls(self._walls.table, self._world.device))
