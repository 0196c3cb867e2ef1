# mypy: disable-error-code="valid-type,no-untyped-def"
"""The damped law of one step at each quadrature point (physics 10.3): stresses, and how they change, from deformations;
with the means over cells that part of the volume term goes by."""

from __future__ import annotations

from typing import Any

import warp as wp

from phyxel import device as dev
from phyxel.device import float32s, float64s, int32s, mat33ds
from phyxel.models.galerkin.bunches import BENDS
from phyxel.models.law import (
    WALL,
    cofactor,
    cofactor_change,
    energy_density,
    first_stress,
    first_stress_change,
    green_strain,
    hooke,
    positive_part,
)

wp.set_module_options(dev.KERNEL_OPTIONS)

mat66d = wp.types.matrix((6, 6), wp.float64)

LEAST_VOLUME = wp.constant(0.1)
"""|J⁰| below which damping takes a crushed point for one of this volume."""


@wp.struct
class Cells:
    """The points around each node, and those that stand alone at cracks (`PointFunctions.cell`)."""

    of: int32s
    """cell of each point, shape (q,)"""
    share: float64s
    """what of its volume each point is, shape (q,)"""
    start: int32s
    """of each cell's list, shape (n + q + 1,)"""
    point: int32s
    """that list, shape (q,)"""


@wp.kernel
def find_volumes(first: int, cells: Cells, J: mat33ds, volume: float64s):
    """The mean of |J| over each cell (physics 10.3)."""
    c = first + wp.tid()
    total = wp.float64(0.0)
    for entry in range(cells.start[c], cells.start[c + 1]):
        q = cells.point[entry]
        total += cells.share[q] * wp.determinant(J[q])
    volume[c] = total


@wp.kernel
def find_volume_changes(first: int, cells: Cells, J: mat33ds, change: mat33ds, swelling: float64s):
    """What it changes by along δJ: the mean of cof J : δJ (physics 10.3)."""
    c = first + wp.tid()
    total = wp.float64(0.0)
    for entry in range(cells.start[c], cells.start[c + 1]):
        q = cells.point[entry]
        total += cells.share[q] * wp.ddot(cofactor(J[q]), change[q])
    swelling[c] = total


@wp.struct
class StepLaw:
    """The damped law at each point, of one step."""

    C: wp.array(dtype=mat66d)
    """C' of each law [Pa]"""
    law: int32s
    scale: float64s
    """w (1 + b)"""
    k_v: float64s
    k_b: float64s
    plastic: mat33ds
    swell: float64s
    cell: int32s
    k_cell: float64s
    """of the volume term of the cell [Pa]"""
    swell_cell: float64s


@wp.kernel
def find_step_law(
    first: int,
    laws: Any,
    lag: float64s,
    weight: float64s,
    J: mat33ds,
    volumes: float64s,
    locking: float64s,
    plastic: mat33ds,
    step: StepLaw,
):
    """The law of a step that starts at J, with its damping (physics 10.3); b = `lag`."""
    q = first + wp.tid()
    row = step.law[q]
    b = lag[row]
    more = wp.float64(1.0) + b
    volume = (wp.float64(1.0) + b * wp.max(wp.determinant(J[q]), wp.float64(LEAST_VOLUME))) / more
    of_cell = (wp.float64(1.0) + b * wp.max(volumes[step.cell[q]], wp.float64(LEAST_VOLUME))) / more
    step.plastic[q] = (plastic[q] + b * green_strain(J[q])) / more
    step.swell[q] = wp.float64(1.0) / volume
    step.scale[q] = weight[q] * more
    step.k_v[q] = (laws.k_v[row] - locking[row]) * volume * volume
    step.k_cell[q] = locking[row] * of_cell * of_cell
    step.swell_cell[q] = wp.float64(1.0) / of_cell
    step.k_b[q] = laws.k_b[row] / more


@wp.kernel
def find_stresses(first: int, step: StepLaw, J: mat33ds, volumes: float64s, stress: mat33ds, energy: float64s):
    """w P(J) and w W(J) (physics 3.2, 3.3, 10.3)"""
    q = first + wp.tid()
    C = step.C[step.law[q]]
    swell = step.swell_cell[q]
    excess = swell * volumes[step.cell[q]] - wp.float64(1.0)
    own = first_stress(J[q], step.plastic[q], step.swell[q], C, step.k_v[q], step.k_b[q])
    stress[q] = step.scale[q] * (own + cofactor(J[q]) * (swell * step.k_cell[q] * excess))
    density = energy_density(J[q], step.plastic[q], step.swell[q], C, step.k_v[q], step.k_b[q])
    energy[q] = step.scale[q] * (density + wp.float64(0.5) * step.k_cell[q] * excess * excess)


@wp.kernel
def find_stress_changes(first: int, step: StepLaw, J: mat33ds, volumes: float64s, swellings: float64s, change: mat33ds):
    """w δP for the change δJ that stands in `change` (physics 3.4, 10.3)."""
    q = first + wp.tid()
    C = step.C[step.law[q]]
    s = step.swell_cell[q]
    dJ = change[q]
    pressure = step.k_cell[q] * s * (s * volumes[step.cell[q]] - wp.float64(1.0))
    more = step.k_cell[q] * s * s * swellings[step.cell[q]]
    own = first_stress_change(J[q], step.plastic[q], step.swell[q], dJ, C, step.k_v[q], step.k_b[q])
    change[q] = step.scale[q] * (own + cofactor(J[q]) * more + cofactor_change(J[q], dJ) * pressure)


@wp.kernel
def find_bends(first: int, positive: bool, step: StepLaw, J: mat33ds, volumes: float64s, bends: float32s):
    """How the stress of each point changes, w δP = J δS + δJ S + cof J (f cof J : δJ) + p δcof J (physics 3.4, 10.3),
    without what needs the means of cells: J, S, the scale of δS, f and p. Only the positive part of it, if asked for:
    without what can make it indefinite, compressive stress, and the pressure's turning cofactor."""
    q = first + wp.tid()
    one, none = wp.float64(1.0), wp.float64(0.0)
    scale, swell, k_b = step.scale[q], step.swell[q], step.k_b[q]
    volume = swell * wp.determinant(J[q])
    below = wp.min(volume - wp.float64(WALL), none)
    f = step.k_v[q] + wp.where(below < none, k_b, none)
    s = step.swell_cell[q]
    p = swell * (step.k_v[q] * (volume - one) + k_b * below)
    p += step.k_cell[q] * s * (s * volumes[step.cell[q]] - one)
    S = hooke(step.C[step.law[q]], green_strain(J[q]) - step.plastic[q])
    if positive:
        S = positive_part(S)
        p = none
    at = (q / 8) * 8 * BENDS + q % 8
    for i in range(9):
        bends[at + 8 * i] = wp.float32(J[q][i / 3, i % 3])
    bends[at + 72] = wp.float32(scale * S[0, 0])
    bends[at + 80] = wp.float32(scale * S[1, 1])
    bends[at + 88] = wp.float32(scale * S[2, 2])
    bends[at + 96] = wp.float32(scale * S[1, 2])
    bends[at + 104] = wp.float32(scale * S[0, 2])
    bends[at + 112] = wp.float32(scale * S[0, 1])
    bends[at + 120] = wp.float32(scale)
    bends[at + 128] = wp.float32(scale * swell * swell * f)
    bends[at + 136] = wp.float32(scale * p)


@wp.kernel
def find_means(first: int, cells: Cells, value: float64s, mean: float64s):
    """The mean of a value over each cell."""
    c = first + wp.tid()
    total = wp.float64(0.0)
    for entry in range(cells.start[c], cells.start[c + 1]):
        total += cells.share[cells.point[entry]] * value[cells.point[entry]]
    mean[c] = total


@wp.kernel
def find_cell_stress_changes(first: int, step: StepLaw, J: mat33ds, swellings: float64s, change: mat33ds):
    """What the means of cells add to w δP (physics 10.3)."""
    q = first + wp.tid()
    s = step.swell_cell[q]
    change[q] = cofactor(J[q]) * (step.scale[q] * step.k_cell[q] * s * s * swellings[step.cell[q]])
