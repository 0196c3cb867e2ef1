"""How phyxel bodies step: by leap-frog or implicitly, and how long a step is."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from phyxel.errors import BlowUpError
from phyxel.state import State

if TYPE_CHECKING:
    from phyxel.movers.phyxel_bodies import PhyxelBodies

LONGEST_IMPLICIT = 0.01
"""Longest implicit step [s]."""
MOST_EXPLICIT = 500
"""Leap-frog steps in a sixtieth of a second, at rest, above which a world is moved implicitly unless told otherwise."""
SMALLEST_STEP, LARGEST_STEP = 0.7, 1.05
"""Size of a step over the stability limit between which it is kept."""
ROOM_TO_SHRINK = 0.9
"""Size over the limit that is chosen when the old one no longer fits."""
HOPELESS = 1e-4
"""Step over the period of the fastest vibration below which something is going wrong."""


class PhyxelSteps:
    """Chooses the steps of all phyxel bodies of a world."""

    def __init__(self, phyxels: PhyxelBodies) -> None:
        self._phyxels = phyxels
        self._integrator: str | None = None
        self.size = 0.0
        """of a step as last chosen [s]; 0: none yet"""

    def choose_anew(self) -> None:
        """Bodies or materials are others now: choose the integrator anew."""
        self._integrator = None

    @property
    def integrator(self) -> str:
        """ "leapfrog" or "implicit", for all bodies: what a body asks for; else implicit if leap-frog would need more
        than some hundred steps for a sixtieth of a second."""
        if self._integrator is None:
            asked = {body.integrator for body in self._phyxels.bodies} - {None}
            if self._phyxels.melting.flows:
                asked = {"leapfrog"}  # neighbours change, and pressure is stiff
            if not asked:
                steps = 1 / 60 / self._phyxels.model.stable_step()
                asked = {"implicit" if steps > MOST_EXPLICIT else "leapfrog"}
            self._integrator = "implicit" if "implicit" in asked else "leapfrog"
            self._phyxels.world.make_ready(self._integrator)
        return self._integrator

    def stable(self, dt: float, longest: float) -> int:
        """How many stable steps make up dt (physics 5.2).

        The size of a step is kept while it is about right: leap-frog keeps the energy only while its step stays the
        same, and a size that follows every breath of the stability limit pumps energy into the motion.
        """
        # What is many times faster than sound, which crosses a spacing in 1/ω, is blowing up: steps need not follow it.
        longest = max(longest, 1 / (16 * self._phyxels.model.vibration.at_rest()))
        limit = min(self._phyxels.model.stable_step(), longest)
        if not (math.isfinite(limit) and limit > 0):
            self._phyxels.blow_up_where_not_finite()
        self._refuse_hopeless(limit)
        steps = max(1, round(dt / self.size)) if self.size else 0
        if steps == 0 or not SMALLEST_STEP * limit <= dt / steps <= LARGEST_STEP * limit:
            room = 1.0 if self.size == 0 else ROOM_TO_SHRINK
            steps = max(1, math.ceil(dt / (room * limit) * (1 - 1e-12)))
            self.size = dt / steps
        return steps

    def implicit(self, dt: float, longest: float, crossing: float) -> int:
        """How many implicit steps make up dt. Within `crossing` [s] none gets through a collider."""
        step = min(LONGEST_IMPLICIT, longest, crossing)
        self._refuse_hopeless(step)
        return math.ceil(dt / step * (1 - 1e-9))

    def _refuse_hopeless(self, step: float) -> None:
        """Stop where steps have become so short [s] that the end would never be reached."""
        if step * self._phyxels.model.vibration.at_rest() < HOPELESS:
            fastest = max(self._phyxels.bodies, key=lambda body: np.abs(body.velocities).max())
            raise BlowUpError(self._phyxels.blow_up_text(fastest.name, "it is crushed or flung apart"))

    def state(self) -> State:
        """What a checkpoint keeps of it."""
        return {"size": np.array(self.size), "integrator": np.array(self._integrator or "")}

    def restore(self, state: State) -> None:
        """Take over what `state` gave."""
        self.size, self._integrator = float(state["size"]), str(state["integrator"]) or None
