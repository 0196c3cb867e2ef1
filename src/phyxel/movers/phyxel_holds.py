"""Holds on phyxel bodies: which nodes are held, and how fast they go to be where they should."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from phyxel.body.holds import Handle

if TYPE_CHECKING:
    from phyxel.movers.phyxel_bodies import PhyxelBodies

Floats = NDArray[np.float64]


class PhyxelHolds:
    """The holds on a flock of phyxel bodies."""

    def __init__(self, phyxels: PhyxelBodies) -> None:
        self._phyxels = phyxels

    def handles(self) -> list[Handle]:
        """All holds on bodies of the mover."""
        return [handle for body in self._phyxels.bodies for handle in body.handles]

    def write(self) -> None:
        """Tell the model which of its nodes are held."""
        model = self._phyxels.model
        hold, slots = np.full(len(model), -1), 0
        for handle in self.handles():
            # What turns has a velocity for each node.
            own = np.arange(len(handle.nodes)) if handle.turns else np.zeros(1, int)
            hold[self._phyxels.nodes_of(handle.body)][handle.nodes] = slots + own
            slots += len(own)
        model.set_holds(hold, slots)

    def move(self, time: float, step: float, steps: int) -> None:
        """Set hold velocities so that every hold is where it should be at `time`, so many steps from now."""
        velocities = [np.zeros((0, 3))]
        for handle in self.handles():
            way = self._way_around(handle, time, steps) if handle.turns else self._way(handle, time)
            velocities.append(way / (steps * step) / handle.body.unit)
            if way.any():
                self._phyxels.energies.forget(handle.body)
        self._phyxels.model.set_hold_velocities(np.concatenate(velocities))

    def _way(self, handle: Handle, time: float) -> Floats:
        """How far all nodes of a handle have to go until `time` [m], shape (1, 3)."""
        goal = handle.to(time)
        way, handle.moved = goal - handle.moved, goal
        return way[None]

    def _way_around(self, handle: Handle, time: float, steps: int) -> Floats:
        """How far each node of a turning handle has to go [m], shape (k, 3): from where it is in single precision, so
        that rounding does not add up around the circle."""
        body, nodes = handle.body, handle.nodes
        u = self._phyxels.model.u.numpy()[self._phyxels.nodes_of(body)][nodes]
        home = body.origin + (body.reference[nodes] - body.centre)
        way = ((handle.goals(time) - home) / body.unit).astype(u.dtype) - u
        way[u + way / u.dtype.type(steps) == u] = 0  # so little is lost in rounding: it would be a speed without motion
        return body.unit * way.astype(np.float64)
