"""How phyxel bodies step: by leap-frog or implicitly, and how long a step is."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from phyxel.body import Body
from phyxel.errors import BlowUpError
from phyxel.models.phyxel.leapfrog import longest_step
from phyxel.state import State

if TYPE_CHECKING:
    from phyxel.movers.phyxel_bodies import PhyxelBodies

LONGEST_IMPLICIT = 0.01
"""Longest implicit step [s]."""
MOST_EXPLICIT = 500
"""Leap-frog steps in a sixtieth of a second, at rest, above which a body is moved implicitly unless told otherwise."""
SMALLEST_STEP, LARGEST_STEP = 0.7, 1.05
"""Size of a step over the stability limit between which it is kept."""
ROOM_TO_SHRINK = 0.9
"""Size over the limit that is chosen when the old one no longer fits."""
HOPELESS = 5e-3
"""Step times the frequency of the fastest vibration at rest, some 1.4 for what is stable there, below which something
is going wrong: it would have become 1e5 times as stiff."""


class PhyxelSteps:
    """Chooses the steps of a flock of phyxel bodies, and which flock each of them belongs to."""

    def __init__(self, phyxels: PhyxelBodies) -> None:
        self._phyxels = phyxels
        self._choices: dict[Body, str] | None = None
        self.size = 0.0
        """of a step as last chosen [s]; 0: none yet"""

    @property
    def known(self) -> bool:
        """Whether integrators have been chosen."""
        return self._choices is not None

    def choose_anew(self) -> None:
        """Bodies or materials are others now: choose integrators anew."""
        self._choices = None

    def adopt(self, choices: dict[Body, str] | None) -> None:
        """These have been chosen for the bodies that are there now, if any have."""
        self._choices = choices

    def take_after(self, pieces: Sequence[Body], whole: Body) -> None:
        """Pieces have come of a body, which may be one of them, or a crumb now that others move."""
        if self._choices is not None:
            kept = {body: word for body, word in self._choices.items() if body is not whole}
            self._choices = kept | dict.fromkeys(pieces, self._choices[whole])

    @property
    def choices(self) -> dict[Body, str]:
        """ "leapfrog" or "implicit" for each body: what it asks for; else implicit if leap-frog would need more than
        some hundred steps for a sixtieth of a second. All that has ever melted goes one way: by leap-frog while any of
        it flows, for neighbours change then, and pressure is stiff."""
        if self._choices is None:
            bodies, melting = self._phyxels.bodies, self._phyxels.melting
            stiff = self._stiff([body for body in bodies if body.integrator is None])
            chosen = {body: body.integrator or ("implicit" if body in stiff else "leapfrog") for body in bodies}
            implicit = not melting.flows and "implicit" in {chosen[body] for body in melting.bodies}
            self._choices = chosen | dict.fromkeys(melting.bodies, "implicit" if implicit else "leapfrog")
            self._phyxels.world.make_ready(*set(self._choices.values()))
        return self._choices

    @property
    def integrator(self) -> str:
        """ "leapfrog" or "implicit", for all bodies of the flock, which go one way unless it is still to be sorted."""
        return "implicit" if "implicit" in self.choices.values() and not self._phyxels.melting.flows else "leapfrog"

    def _stiff(self, bodies: list[Body]) -> list[Body]:
        """Those without which leap-frog would take the others in few enough steps, the stiffest first. How fast the
        fastest of all vibrates is known; that of others goes with their sound, in spacings."""
        model, every = self._phyxels.model, self._phyxels.bodies
        if not bodies:
            return []
        model.ensure_forces()
        most = model.vibration.at_rest() * model.stiffened() / model.materials.sound
        omega = {body: most * float(model.materials.sounds[every.index(body)]) for body in bodies}
        left = sorted(bodies, key=lambda body: omega[body])
        while left:
            drag, damping = (max(body.mixture.number(name).max() for body in left) for name in ("drag", "damping"))
            step = min(longest_step(omega[left[-1]], float(drag), float(damping)), model.crossing_time())
            if 1 / 60 / step <= MOST_EXPLICIT:
                break
            left.pop()
        return [body for body in bodies if body not in left]

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

    def implicit(self, dt: float, longest: float) -> int:
        """How many implicit steps make up dt. None gets through a collider."""
        # Only the ground has no far side that one could come out of.
        crossing = self._phyxels.model.crossing_time() if self._phyxels.solid_colliders() else math.inf
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
        chosen = self._choices or {}
        words = [chosen[body] for body in self._phyxels.bodies if body in chosen]
        return {"size": np.array(self.size), "integrators": np.array(words, str)}

    def restore(self, state: State) -> None:
        """Take over what `state` gave."""
        self.size, words = float(state["size"]), state["integrators"].tolist()
        self._choices = dict(zip(self._phyxels.bodies, words, strict=True)) if words else None
