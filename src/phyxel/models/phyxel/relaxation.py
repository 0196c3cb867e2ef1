"""Static equilibrium of phyxels by dynamic relaxation (physics 5.8)."""

from __future__ import annotations

import math
from collections.abc import Callable

from phyxel.errors import PhyxelError
from phyxel.models.phyxel.model import PhyxelModel

STEPS_OF_A_STAGE = 50
"""Steps between two looks at how fast phyxels still move."""
QUIET_STAGES = 3
"""Stages in a row that must end at rest: one alone may end where an oscillation turns round."""


def relax(model: PhyxelModel, tolerance: float, most_steps: int, drive: Callable[[int, float], None]) -> None:
    """Move phyxels until they have less than `tolerance` spacings left to go.

    Leap-frog with the drag α = 2ω₀ that just stops the slowest motion, ω₀² = v·Kv / v·Mv. ω₀ falls at once and rises
    slowly, since quick ripples hide the slow motion under them. `drive(stage, step)` sets fields and holds for the
    steps [s] of each stage.
    """
    contact = model.contact
    model.stop()
    slowest, quiet, stage = math.inf, 0, 0
    while quiet < QUIET_STAGES:
        step = model.stable_step() if contact is None else min(model.stable_step(), contact.longest_step())
        drag = 2 * slowest if math.isfinite(slowest) else 0.0
        drive(stage, step)
        left = STEPS_OF_A_STAGE
        while left > 0:
            now = left
            if contact is not None:
                contact.longest_step()
                now = contact.prepare(step, left)
            model.step(step, now, drag)
            left -= now
        model.synchronise(drag)
        stage += 1
        steps, fastest = stage * STEPS_OF_A_STAGE, model.fastest()
        if not math.isfinite(fastest) or steps > most_steps:
            raise PhyxelError(f"settle: no rest after {steps} steps; is every body held or on the ground?")
        if (frequency := model.vibration.of_motion()) > 0:  # 0: holds on their way hide it
            slowest = min(frequency, 1.02 * slowest)
        known = math.isfinite(slowest)
        quiet = quiet + 1 if fastest == 0 or (known and fastest <= tolerance * slowest) else 0
    model.stop()
