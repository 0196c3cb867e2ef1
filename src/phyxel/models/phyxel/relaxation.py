"""Static equilibrium of phyxels (physics 5.8): implicit steps that forget their speed, longer and longer ones."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from phyxel.errors import PhyxelError
from phyxel.models.phyxel.model import PhyxelModel

FIRST, LONG, LONGEST = 0.01, 1e3, 1e4
"""Steps [s]: the first; one in which inertia no longer holds anything back; and the longest."""
LONGER, SHORTER = 3.0, 8.0
"""How much longer the next step is, and how much shorter after one whose end was not found."""
ROUNDED = 1e-4
"""What single precision may leave of the largest displacement of a slender body."""
QUIET = 2
"""Long steps in a row that must lead nowhere."""
SHORTEST = 1e-6
"""Step [s] below which there is no way on."""


def relax(model: PhyxelModel, tolerance: float, most_steps: int, drive: Callable[[int, float], None]) -> None:
    """Move phyxels until they have less than `tolerance` spacings left to go.

    A step of Δt from rest goes (ωΔt)²/(1 + (ωΔt)²) of the way that is left in a mode of frequency ω: a long one goes
    all of it, and its length is what was left. As long as a body falls, steps are so short that it goes a spacing.
    What can flow does so where a long step has led: on the way there stress is where inertia has it, not the load.
    `drive(number, step)` sets fields and holds for each step [s].
    """
    dt, quiet = FIRST, 0
    for number in range(most_steps):
        step = min(dt, model.implicit.falling_time())
        drive(number, step)
        before = model.now.u.numpy().astype(np.float64)
        spread = max(float(np.ptp(before[low:high], axis=0).max()) for low, high in model.ranges)
        near = max(tolerance, ROUNDED * spread)
        found, steady = _step(model, step, 0.3 * near, flows=step >= LONG)
        moved = _largest(model.now.u.numpy().astype(np.float64) - before)
        quiet = quiet + 1 if found and steady and step >= LONG and moved <= near else 0
        if quiet == QUIET:
            return
        dt = min(LONGER * step, LONGEST) if found else step / SHORTER
        if dt < SHORTEST:
            break
    raise PhyxelError(
        f"settle: no rest after {number + 1} steps; the last one still moved nodes by {moved:.1e} spacings, and "
        f"{near:.1e} is asked for. Is every body held or on the ground? Else ask for less by tolerance=..."
    )


def _step(model: PhyxelModel, step: float, near: float, flows: bool) -> tuple[bool, bool]:
    """One step from rest; whether its end was found, with the right friction. If not, phyxels are where they were, but
    for those that a hold has moved."""
    contact = model.contact
    if contact is not None:
        contact.outdate()  # nobody has a speed that tells how far he will go
        contact.longest_step()
        contact.prepare(step, 1)
    before = model.now.u.numpy().copy()
    found, steady = model.about_to_move().relax(step, near, flows)
    if not found:
        held = model.outside.hold.numpy() >= 0
        before[held] = model.now.u.numpy()[held]
        model.now.u.assign(before)
    return found, steady


def _largest(way: NDArray[np.float64]) -> float:
    largest = float(np.abs(way).max())
    return largest if math.isfinite(largest) else math.inf
