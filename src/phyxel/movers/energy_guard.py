"""Energy from nowhere: how a motion that blows up is told from one that is only lively."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from phyxel.body import Body
from phyxel.movers.mover import MoverWorld

STEPS_BETWEEN_CHECKS = 100
"""Substeps after which the energy is looked at."""
LIFTED = 0.05
"""Spacings that a gain has to lift bodies by: of a stiff pendulum that is always looked at where it turns, steps may
leave some thousandths."""


class EnergyGuard:
    """What bodies had when they were last looked at, as far as nothing from outside has done work on them since."""

    def __init__(self, bodies: list[Body]) -> None:
        self._bodies = bodies
        self.steps = 0
        """taken since"""
        self._ceilings: dict[Body, float] = {}
        """[J]"""
        self._liveliest: dict[Body, float] = {}
        """most that was in motion and in strain since [J]: what swings has next to nothing in either where it turns"""
        self._parties: set[frozenset[Body]] = set()
        """bodies that could touch until then"""

    def forget(self, body: Body | None = None) -> None:
        """Something from outside may have done work on a body, or on all."""
        for known in (self._ceilings, self._liveliest):
            if body is None:
                known.clear()
            else:
                known.pop(body, None)

    def gained(
        self,
        parties: Callable[[], Iterable[Iterable[int]]],
        measure: Callable[[Sequence[Body]], list[dict[str, Any]]],
        world: MoverWorld,
    ) -> tuple[Body, float] | None:
        """A body that has more energy than can be, and how much [J], if it is time to look. `parties` gives the numbers
        of bodies that could touch since, `measure` the diagnostics of bodies."""
        if self.steps < STEPS_BETWEEN_CHECKS:
            return None
        self.steps = 0
        before, self._parties = self._parties, {frozenset(self._bodies[b] for b in party) for party in parties()}
        now = dict(zip(self._bodies, measure(self._bodies), strict=True))
        found = [
            self._gained_by({body: now[body] for body in party}, party in before, world) for party in self._parties
        ]
        return next((one for one in found if one is not None), None)

    def _gained_by(
        self, now: dict[Body, dict[str, Any]], met_before: bool, world: MoverWorld
    ) -> tuple[Body, float] | None:
        """Without work from outside, kinetic + elastic + potential energy of bodies that touch can only fall
        (physics 5.9)."""
        if any(body.force.any() or any(field.acts_on(body) for field in world.acting) for body in now):
            return None
        for body, one in now.items():
            self._liveliest[body] = max(self._liveliest.get(body, 0.0), one["kinetic"] + one["elastic"])
        totals = {body: one["kinetic"] + one["elastic"] + one["potential"] for body, one in now.items()}
        known = all(body in self._ceilings for body in now) and (met_before or len(now) == 1)
        if not known:
            self._ceilings.update(totals)
            return None
        weight = sum(one["mass"] for one in now.values()) * float(np.linalg.norm(world.gravity))
        gains = {body: total - self._ceilings[body] for body, total in totals.items()}
        gained, most = sum(gains.values()), max(gains, key=lambda body: gains[body])
        if gained > 0.5 * sum(self._liveliest[body] for body in now) and gained > LIFTED * weight * most.unit:
            return most, gained
        return None

    def state(self) -> dict[str, NDArray[Any]]:
        """What a checkpoint keeps of it."""
        known = {"ceilings": self._ceilings, "liveliest": self._liveliest}
        kept = {name: np.array([of.get(body, math.nan) for body in self._bodies]) for name, of in known.items()}
        return {"steps": np.array(self.steps), **kept}

    def restore(self, state: dict[str, NDArray[Any]]) -> None:
        """Take over what `state` gave."""
        self.steps = int(state["steps"])
        self._ceilings, self._liveliest = (
            {body: one for body, one in zip(self._bodies, state[name].tolist(), strict=True) if not math.isnan(one)}
            for name in ("ceilings", "liveliest")
        )
