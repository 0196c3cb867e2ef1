# mypy: disable-error-code="valid-type,no-untyped-def"
"""Chebyshev's iteration: how many iterations a cycle needs, their factors, and where to start (physics 13.3).

In terms of the diagonal all curvatures lie in [1/κ, 1], κ = max(1 + H D), and some √κ iterations do; the mean of Jacobi
steps on several levels has curvatures down to 1/(κ levels).
"""

from __future__ import annotations

from typing import Any

import warp as wp

from phyxel import device as dev

wp.set_module_options(dev.KERNEL_OPTIONS)

FEWEST_ITERATIONS = 12
"""Of a step, of both cycles together."""
PER_ROOT = 1.15
"""Iterations of a cycle, with hats, over √(H D), at most: enough to take over the last P, so that equilibria are
right."""
SOLVED_FOR = 1.5
"""Curvatures down to this over m² are solved for evenly by m iterations, those below less and less."""
DIGITS = 21.4
"""−log of the share of the error at which the iterations end, 5e-10; ½ log 2 less for each cycle."""
SOFT = 0.5
"""H D of bending below which a sheet of several levels finds it once a cycle: two cycles leave (H D)² of its error."""
SOFT_LINKS = 1.0e5
"""H D up to which iterations follow motion well enough: under its weight such a sheet stretches by a few per cent of
its stretch more than it should, if it is not brought into equilibrium when it is calm."""
LATE = 0.5
"""Share of the error from which on nothing is taken over from the step before; below half of that all is."""

COUNT, KEPT, BENDS_ONCE, HELD = range(4)
"""Entries of a plan: iterations of a cycle; share of the last P to start from; 1 if bending is found once a cycle; 1 if
any particle is held."""


@wp.struct
class Plan:
    """The iterations of a step's cycles."""

    highest: wp.array(dtype=wp.vec3d)
    """of each chunk of particles: largest H D, largest H D of bending, and 1 if any is held"""
    numbers: wp.array(dtype=wp.float64)
    """the entries above, shape (4,)"""
    factors: wp.array2d(dtype=float)
    """what the last change and the new one are multiplied by, shape (iterations of a cycle, 2)"""


def plan_of(chunks: int, iterations: int, device: wp.Device) -> Any:
    """Room for a plan of so many chunks of particles and at most so many iterations a cycle."""
    plan: Any = Plan()
    plan.highest = wp.zeros(chunks, dtype=wp.vec3d, device=device)
    plan.numbers = wp.zeros(4, dtype=wp.float64, device=device)
    plan.factors = wp.zeros((iterations, 2), dtype=float, device=device)
    return plan


@wp.func
def goes_on(plan: Plan, step: int) -> bool:
    """Whether a cycle has an iteration of this number."""
    return wp.float64(step) < plan.numbers[COUNT]


@wp.func
def bends_at(plan: Plan, step: int) -> bool:
    """Whether bending is found anew in this iteration."""
    return step == 0 or plan.numbers[BENDS_ONCE] == wp.float64(0.0)


@wp.func
def cosh_times(m: wp.float64, cosh: wp.float64) -> wp.float64:
    """T_m(cosh x) = cosh(m x), bounded."""
    x = wp.log(cosh + wp.sqrt(wp.max(cosh * cosh - wp.float64(1.0), wp.float64(0.0))))
    return wp.cosh(wp.min(m * x, wp.float64(300.0)))


@wp.kernel
def plan_iterations(first: int, most: int, levels: wp.float64, plan: Plan):
    """Chebyshev's factors for curvatures in [low, 1], how many iterations are enough, and where to start (physics
    13.3)."""
    found = wp.vec3d()
    for c in range(plan.highest.shape[0]):
        found = wp.max(found, plan.highest[c])
    one = wp.float64(1.0)
    lowest = one / (levels * (one + found[0]))
    longest = wp.float64(most)
    if levels > one:
        enough = wp.max(wp.ceil(wp.float64(PER_ROOT) * wp.sqrt(found[0])), wp.float64(FEWEST_ITERATIONS // 2))
        longest = wp.min(longest, enough)
    low = wp.clamp(lowest, wp.float64(SOLVED_FOR) / (longest * longest), wp.float64(0.9))
    middle = wp.float64(0.5) * (one + low)
    half = wp.float64(0.5) * (one - low)
    sigma = middle / half
    needed = wp.float64(0.5) * wp.float64(DIGITS) / wp.log(sigma + wp.sqrt(sigma * sigma - one))
    m = wp.min(wp.ceil(needed), longest)
    root = cosh_times(m, wp.max((middle - lowest) / half, one)) / cosh_times(m, sigma)
    left = root * root
    plan.numbers[COUNT] = m
    plan.numbers[KEPT] = wp.clamp(wp.float64(2.0) - left * wp.float64(2.0) / wp.float64(LATE), wp.float64(0.0), one)
    plan.numbers[BENDS_ONCE] = wp.float64(0.0)
    if levels > one and found[1] < wp.float64(SOFT):
        plan.numbers[BENDS_ONCE] = one
    plan.numbers[HELD] = found[2]
    rho = one / sigma
    plan.factors[0, 0] = 0.0
    plan.factors[0, 1] = float(one / middle)
    for j in range(1, most):
        after = one / (wp.float64(2.0) * sigma - rho)
        plan.factors[j, 0] = float(after * rho)
        plan.factors[j, 1] = float(wp.float64(2.0) * after / half)
        rho = after
