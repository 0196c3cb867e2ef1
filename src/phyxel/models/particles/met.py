"""A step of a surface that touches something (physics 15.16): implicit, with all links and touches in one solve.

    x' = x + t v',   v' = v_free + B P,   links seen at y = x + σ(x' − x)

W96's exact step would lead half as far as the velocity that a touch leaves; v_free and B are its own.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import warp as wp
from numpy.typing import NDArray

from phyxel import device as dev
from phyxel.contact.table import ColliderTable
from phyxel.models.particles.arrival import no_arrival, set_walls
from phyxel.models.particles.flight import arrive, land, land_among, lean_within, touch_down
from phyxel.models.particles.model import ParticleModel
from phyxel.models.particles.yielding import arrive_dented

Floats = NDArray[np.float64]

NEAR = 0.05
"""Spacings from a collider from which particles may come to lie on it, beyond those that they fly in a step."""


@dataclass(frozen=True)
class MetFlight:
    """Where particles of a surface would get without links and touches. Lengths in metres from the body's origin."""

    x: Floats
    """where they are, shape (n, 3)"""
    x_free: Floats
    """where they would get, shape (n, 3)"""
    v_now: Floats
    """[m/s], shape (n, 3)"""
    v: Floats
    """v_free [m/s]; of held ones that of their way, shape (n, 3)"""
    B: Floats
    """[m/(s N)]; 0 if it is held, shape (n,)"""
    pull: Floats
    """P of the step before [N], shape (n, 3)"""
    wall: Floats
    """direction out of the collider that it lies on, 0 if on none, shape (n, 3)"""
    spot: Floats
    """where it would be if it stayed on its spot there, shape (n, 3)"""
    grip: Floats
    """Coulomb's coefficient there, shape (n,)"""


class MetSteps:
    """Steps of one surface that something else solves for."""

    def __init__(self, model: ParticleModel) -> None:
        self._model = model
        self._arrival = no_arrival(len(model.sheet.X), model.device)
        set_walls(self._arrival, len(model.sheet.X), model.device)

    def depart(self, dt: float, goals: Floats, colliders: ColliderTable) -> MetFlight:
        """Begin a step of dt [s], with what is held at `goals` (k, 3) [units] at its end, among colliders."""
        model, arrival, table = self._model, self._arrival, colliders.table
        model.set_pace(dt)
        model.set_goals(goals)
        p, clock, n = model.particles, model.clock.array, len(arrival.x)
        launches = [*model.drawing(table), dev.Launch(arrive_dented if len(p.peak) else arrive, n, [clock, p, arrival])]
        launches += model.pressing(arrival)
        self._clear_walls()
        if table.count:
            # What is above may press onto a collider what does not lie there yet: put there afterwards, it would cross.
            reach = wp.float64(dt * model.top_speed() + NEAR)
            launches.append(dev.Launch(touch_down, n, [clock, p, table, arrival]))
            launches.append(dev.Launch(lean_within, n, [clock, p, table, reach, arrival]))
        self._run(launches)
        unit, X = model.unit, model.sheet.X
        pull = p.pull.numpy() if len(p.pull) else np.zeros((n, 3))
        return MetFlight(
            unit * (X + p.u.numpy()), unit * (X + arrival.x.numpy()),
            unit * p.v.numpy(), unit * arrival.v.numpy(), arrival.B.numpy().copy(), unit * pull,
            arrival.wall.numpy().copy(), unit * arrival.spot.numpy(), arrival.grip.numpy().copy(),
        )  # fmt: skip

    def _clear_walls(self) -> None:
        self._arrival.wall.zero_()

    def land(self, x: Floats, v: Floats, pull: Floats, colliders: ColliderTable) -> None:
        """End the step at x (n, 3) [m] with v (n, 3) [m/s], outside of colliders, links and touches having pulled with
        `pull` (n, 3) [N]."""
        model, arrival, table = self._model, self._arrival, colliders.table
        p, unit, n = model.particles, model.unit, len(x)
        P = pull / unit if len(p.pull) else np.zeros((n, 3))
        if len(p.pull):
            p.pull.assign(P)
        arrival.x.assign(x / unit - model.sheet.X - arrival.A.numpy()[:, None] * P)
        arrival.v.assign(v / unit - arrival.B.numpy()[:, None] * P)
        inputs = [model.clock.array, p, table, arrival] if table.count else [model.clock.array, p, arrival]
        self._run([dev.Launch(land_among if table.count else land, n, inputs)])
        model.forget_tensions()

    def _run(self, launches: list[dev.Launch]) -> None:
        for one in launches:
            dev.run(one, self._model.device)
