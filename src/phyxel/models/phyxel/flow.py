# mypy: disable-error-code="valid-type,no-untyped-def"
"""How stored strain flows: plastic solids beyond their yield, melts always."""

from __future__ import annotations

from typing import Any

import warp as wp

from phyxel import device as dev
from phyxel.device import Launch
from phyxel.models.elasticity import flowed, molten, molten_swell
from phyxel.models.phyxel.forces import Matter

wp.set_module_options(dev.KERNEL_OPTIONS)


@wp.kernel
def flow(
    first: int,
    law: wp.array(dtype=wp.int32),
    yield_strain: wp.array(dtype=Any),
    creep: wp.array(dtype=Any),
    max_strain: wp.array(dtype=Any),
    fluid: wp.array(dtype=Any),
    step: wp.array(dtype=Any),
    slot: int,
    gradient: wp.array(dtype=Any),
    plastic: wp.array(dtype=Any),
    swell: wp.array(dtype=Any),
):
    """Flow of each phyxel's stored strain over a step of `step[slot]` [s] (M04 §4.1, §4.2)."""
    i = first + wp.tid()
    row = law[i]
    J = gradient[i] + wp.identity(n=3, dtype=step.dtype)
    share = step.dtype(1.0) - wp.exp(-creep[row] * step[slot])
    if fluid[row] > step.dtype(0.0):
        plastic[i] = molten(J, plastic[i], share)
        swell[i] = molten_swell(J, swell[i], share)
    else:
        plastic[i] = flowed(J, plastic[i], yield_strain[row], share, max_strain[row])


def flowing(matter: Matter, gradient: wp.array, step: wp.array, slot: int) -> Launch:
    """Flow over `step[slot]` [s] at the gradient of the last force."""
    laws = matter.laws
    rows = [laws.of, laws.yield_strain, laws.creep, laws.max_strain, laws.fluid]
    return Launch(flow, len(matter.X), [*rows, step, slot, gradient, matter.plastic, matter.swell])
