# mypy: disable-error-code="valid-type,no-untyped-def"
"""Forces of the links of a particle surface, implicit: P of where the links will be at the end of the step.

    y = y_free + H P(y),    P_i = −Σ_e c_ei k_e (1 − r_e/|e|) e

makes ½|y − y_free|²/H + Σ ½k(|e| − r)² least. −k r|e| is concave in e, so a Jacobi step with the diagonal
D_i = Σ_e k_e |c_ei| Σ_a |c_ea| never makes that more, whatever the links look like; in its terms all curvatures lie in
[1/κ, 1], κ = max(1 + H D), and Chebyshev's iteration needs some √κ steps. Large sheets need far fewer, as their steps
are the mean of Jacobi steps on several levels (`coarse`). Two things keep every time step stable, however few they are:

- Two equal cycles one after the other leave the share p = (T_m(..)/T_m(..))² ≥ 0 of the error of each mode, so that no
  mode is ever pulled further than the exact solution would.
- If p stays large for some modes, a start from the P of the step before would make them pull late, and what pulls late
  rings louder and louder. They then start from what each element would do if it were alone (less than the solution in
  every mode, and right for those as soft as bending); stiff links give a little more than they should. If p is small,
  the start is the last P, and equilibria are exact.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import warp as wp
from numpy.typing import NDArray
from scipy.sparse import csr_array

from phyxel import device as dev
from phyxel.mls.neighbours import curve_order
from phyxel.models.arrival import Arrival, ahead, depth, kept_out
from phyxel.models.balance import Balance
from phyxel.models.coarse import Coarse, Level, moved
from phyxel.models.links import (
    ABREAST,
    Bends,
    Listed,
    Springs,
    bend_pull,
    bends_abreast,
    bent,
    corner_of,
    spring_pull,
    springs_abreast,
    springs_of,
    stretch,
)
from phyxel.models.reductions import CHUNK
from phyxel.models.sheet import Sheet

wp.set_module_options(dev.KERNEL_OPTIONS)

ALONE, FEWEST, MOST = 160, 12, 32
"""Iterations of a step, of both cycles together: of a sheet that is its only level, and of others."""
WORK = 4.0e6
"""Ends of elements that a step may visit if it takes more than the fewest iterations."""
REACH = 1.5
"""What a cycle of m iterations can do: curvatures down to REACH/m² are solved for evenly, those below less and less."""
DIGITS = 21.4
"""−log of the share of the error at which the iterations end, 5e-10; ½ log 2 less for each cycle."""
LATE = 0.5
"""Share of the error from which on nothing is taken over from the step before; below half of that all is."""


@wp.struct
class Solve:
    """What a step of the solver works on: entries are particles along a curve, in full eights."""

    who: wp.array(dtype=wp.int32)
    """which particle it is outside, shape (n,)"""
    X: wp.array(dtype=wp.vec3d)
    free: wp.array(dtype=wp.vec3d)
    """y_free: where the particles would be seen without links"""
    y: wp.array(dtype=wp.vec3d)
    rest: wp.array(dtype=wp.vec4)
    """(y_free − y)/H + P(y): what is still to be balanced"""
    inertia: wp.array(dtype=wp.float64)
    """1/H; infinite if it is held"""
    ease: wp.array(dtype=float)
    """how far a force moves it: 1/(1/H + D), with what it lies on; 0 if it is held"""
    grounded: wp.array(dtype=wp.float64)
    """1/H with what it lies on and links to what is held, where hats end; 0 if it is held itself"""
    held: wp.array(dtype=wp.float64)
    """how far friction holds a particle back: μ times as far as the collider pushes it out"""
    bearing: wp.array(dtype=wp.float64)
    """with the stiffness of the collider that it lies on [N/m]"""
    way: wp.array(dtype=wp.vec4)
    """the last change of y"""
    D: wp.array(dtype=wp.float64)
    crowd: wp.array(dtype=wp.float64)
    """Σ_e |c_ei|"""
    highest: wp.array(dtype=wp.float64)
    """largest H D of each chunk"""
    factors: wp.array2d(dtype=float)
    """what the last change and the new one are multiplied by, shape (iterations of a cycle, 2)"""
    plan: wp.array(dtype=wp.float64)
    """iterations of a cycle that are needed; share of the last P to start from"""


@wp.func
def foothold(arrival: Arrival, i: int, s: Solve) -> wp.float64:
    """How stiff the collider is that a particle lies on [N/m]: as its links together, so that it is as soon found."""
    if arrival.wall.shape[0] == 0:
        return wp.float64(0.0)
    return s.D[i] * wp.length_sq(arrival.wall[s.who[i]])


@wp.kernel
def look_ahead(first: int, arrival: Arrival, s: Solve):
    """y_free, 1/H, and that with what bears it."""
    i = first + wp.tid()
    particle = s.who[i]
    s.free[i] = s.X[i] + ahead(arrival, particle)
    inertia = wp.float64(1.0) / arrival.H[particle]  # infinite if it is held
    bearing = inertia + foothold(arrival, i, s)
    s.inertia[i] = inertia
    s.bearing[i] = bearing
    s.ease[i] = float(wp.float64(1.0) / (bearing + s.D[i]))
    s.rest[i] = wp.vec4()  # and stays so if it is held


@wp.kernel
def find_stiffest(first: int, n: int, s: Solve):
    """Largest H D in each chunk."""
    c = first + wp.tid()
    highest = wp.float64(0.0)
    for i in range(c * CHUNK, wp.min(n, (c + 1) * CHUNK)):
        highest = wp.max(highest, (s.D[i] + s.bearing[i] - s.inertia[i]) / s.inertia[i])
    s.highest[c] = highest


@wp.func
def cosh_times(m: wp.float64, cosh: wp.float64) -> wp.float64:
    """T_m(cosh x) = cosh(m x), bounded."""
    x = wp.log(cosh + wp.sqrt(wp.max(cosh * cosh - wp.float64(1.0), wp.float64(0.0))))
    return wp.cosh(wp.min(m * x, wp.float64(300.0)))


@wp.kernel
def plan_iterations(first: int, chunks: int, levels: wp.float64, s: Solve):
    """Chebyshev's factors for curvatures in [low, 1], how many iterations are enough, and where to start."""
    highest = wp.float64(0.0)
    for c in range(chunks):
        highest = wp.max(highest, s.highest[c])
    most = s.factors.shape[0]
    one = wp.float64(1.0)
    lowest = one / (levels * (one + highest))
    low = wp.clamp(lowest, wp.float64(REACH) / wp.float64(most * most), wp.float64(0.9))
    middle = wp.float64(0.5) * (one + low)
    half = wp.float64(0.5) * (one - low)
    sigma = middle / half
    needed = wp.float64(0.5) * wp.float64(DIGITS) / wp.log(sigma + wp.sqrt(sigma * sigma - one))
    m = wp.min(wp.ceil(needed), wp.float64(most))
    root = cosh_times(m, wp.max((middle - lowest) / half, one)) / cosh_times(m, sigma)
    left = root * root
    s.plan[0] = m
    s.plan[1] = wp.clamp(wp.float64(2.0) - left * wp.float64(2.0) / wp.float64(LATE), wp.float64(0.0), one)
    rho = one / sigma
    s.factors[0, 0] = 0.0
    s.factors[0, 1] = float(one / middle)
    for j in range(1, most):
        after = one / (wp.float64(2.0) * sigma - rho)
        s.factors[j, 0] = float(after * rho)
        s.factors[j, 1] = float(wp.float64(2.0) * after / half)
        rho = after


@wp.kernel
def bend_alone(first: int, bends: Bends, s: Solve):
    """What each element would pull with at the end if it were alone: its own give and, at most, that of all others at
    its particles, Σ_a |c_a| H_a Σ_e |c_ea|, make it less stiff."""
    b = first + wp.tid()
    give = wp.float64(0.0)
    for a in range(4):
        slot = corner_of(bends, b, a)
        i = bends.corner[slot]
        give += wp.float64(wp.abs(bends.weight[slot])) * s.crowd[i] / s.inertia[i]
    k = bends.k[b] / (1.0 + bends.k[b] * float(give))
    bends.f[b] = bend_pull(k, bends.rest[b], stretch(bends, b, s.free))


@wp.kernel
def find_ties(first: int, springs: Springs, bends: Bends, s: Solve):
    """How firmly each particle is tied to what is held [N/m]: ½Σ_e k(Σ_a c_a x_a)² of such links is
    at most ½Σ_i x_i² Σ_e k |c_ei| Σ_a |c_ea| over what they move."""
    i = first + wp.tid()
    s.grounded[i] = wp.float64(0.0)
    if s.ease[i] == 0.0:
        return
    tie = float(0.0)
    block = i // ABREAST
    for row in range(springs.first[block], springs.first[block + 1]):
        slot = row * ABREAST + i % ABREAST
        if s.ease[springs.other[slot]] == 0.0:
            tie += springs.k[slot]
    for slot in range(bends.first[i], bends.first[i + 1]):
        b = bends.element[slot]
        free = float(0.0)
        fixed = bool(False)
        for a in range(4):
            corner = corner_of(bends, b, a)
            if s.ease[bends.corner[corner]] == 0.0:
                fixed = True
            else:
                free += wp.abs(bends.weight[corner])
        if fixed:
            tie += bends.k[b] * wp.abs(bends.share[slot]) * free
    s.grounded[i] = s.bearing[i] + wp.float64(tie)


@wp.kernel
def start(first: int, springs: Springs, bends: Bends, P: wp.array(dtype=wp.vec3d), s: Solve):
    """y of P as it was and of elements that are alone."""
    i = first + wp.tid()
    kept = s.plan[1]
    H = wp.float64(1.0) / s.inertia[i]
    begin = kept * P[s.who[i]]
    if kept < wp.float64(1.0) and wp.float64(0.0) < H:
        alone = in_double(bent(bends, i))
        give = H * s.crowd[i]
        block = i // ABREAST
        for row in range(springs.first[block], springs.first[block + 1]):
            slot = row * ABREAST + i % ABREAST
            j = springs.other[slot]
            k = wp.float64(springs.k[slot])
            k = k / (wp.float64(1.0) + k * (give + s.crowd[j] / s.inertia[j]))
            alone -= spring_pull(k, springs.rest[slot], s.free[i] - s.free[j])
        begin += (wp.float64(1.0) - kept) * alone
    s.y[i] = s.free[i] + H * begin


@wp.kernel
def bend(first: int, step: int, bends: Bends, s: Solve):
    """f of all elements of more than two particles."""
    b = first + wp.tid()
    if wp.float64(step) < s.plan[0]:
        bends.f[b] = bend_pull(bends.k[b], bends.rest[b], stretch(bends, b, s.y))


@wp.kernel
def bend_abreast(first: int, step: int, bends: Bends, s: Solve):
    """The same of eight at once, on the CPU."""
    block = first + wp.tid()
    if wp.float64(step) < s.plan[0]:
        bends_abreast(block, bends.corner, bends.weight, bends.rest, bends.k, s.y, bends.f)


@wp.kernel
def find_grip(first: int, arrival: Arrival, s: Solve):
    """What friction can hold where y is now. It stays so for a cycle: then this too has an energy that gets less."""
    i = first + wp.tid()
    particle = s.who[i]
    s.held[i] = arrival.grip[particle] * wp.max(depth(arrival, particle, s.y[i]), wp.float64(0.0))


@wp.kernel
def find_borne(first: int, arrival: Arrival, s: Solve):
    """Forces of what a collider bears need not cancel: as if it were held."""
    i = first + wp.tid()
    s.bearing[i] = s.inertia[i]
    if depth(arrival, s.who[i], s.y[i]) > wp.float64(0.0):
        s.bearing[i] = wp.float64(wp.inf)


@wp.func
def put_rest(arrival: Arrival, bends: Bends, s: Solve, i: int, P: wp.vec3d):
    """(y_free − y)/H + P(y), with what a collider bears; of springs P is known."""
    y = s.y[i]
    rest = s.inertia[i] * (s.free[i] - y) + P
    borne = s.bearing[i] - s.inertia[i]
    if borne > wp.float64(0.0):
        rest += borne * (kept_out(arrival, s.who[i], y, s.held[i]) - y)
    s.rest[i] = bent(bends, i) + wp.vec4(float(rest[0]), float(rest[1]), float(rest[2]), 0.0)


@wp.kernel
def find_rest(first: int, step: int, arrival: Arrival, springs: Springs, bends: Bends, s: Solve):
    """What is still to be balanced; nothing for what is held."""
    i = first + wp.tid()
    if wp.float64(step) < s.plan[0] and s.ease[i] > 0.0:
        put_rest(arrival, bends, s, i, springs_of(springs, i, s.y))


@wp.kernel
def find_rest_abreast(first: int, step: int, arrival: Arrival, springs: Springs, bends: Bends, s: Solve):
    """The same of eight particles at once, on the CPU."""
    block = first + wp.tid()
    if wp.float64(step) >= s.plan[0]:
        return
    P = springs_abreast(block, springs.first, springs.other, springs.rest, springs.k, s.y)
    for lane in range(ABREAST):
        i = block * ABREAST + lane
        if s.ease[i] > 0.0:
            put_rest(arrival, bends, s, i, wp.vec3d(P[0, lane], P[1, lane], P[2, lane]))


@wp.kernel
def iterate(first: int, step: int, levels: float, coarse: Level, s: Solve):
    """One iteration: y + factors · (last change, mean change of all levels)."""
    i = first + wp.tid()
    if wp.float64(step) >= s.plan[0] or s.ease[i] == 0.0:
        return
    change = (s.ease[i] * s.rest[i] + moved(coarse, i)) / levels
    way = s.factors[step, 0] * s.way[i] + s.factors[step, 1] * change
    s.way[i] = way
    s.y[i] += in_double(way)


@wp.func
def in_double(a: wp.vec4) -> wp.vec3d:
    """The first three."""
    return wp.vec3d(wp.float64(a[0]), wp.float64(a[1]), wp.float64(a[2]))


@wp.kernel
def take_pull(first: int, s: Solve, P: wp.array(dtype=wp.vec3d)):
    """P = (y − y_free)/H."""
    i = first + wp.tid()
    if wp.isinf(s.inertia[i]):
        P[s.who[i]] = wp.vec3d()
    else:
        P[s.who[i]] = s.inertia[i] * (s.y[i] - s.free[i])


class Tension:
    """The links of a sheet at work."""

    def __init__(self, sheet: Sheet, device: wp.Device) -> None:
        n = len(sheet.X)
        self._n, self._device = n, device
        order = curve_order(sheet.X)
        rank = np.empty(n, np.int32)
        rank[order] = np.arange(n)
        elements = sheet.elements
        known = elements.index >= 0
        self._elements = replace(elements, index=np.where(known, rank[elements.index], -1))
        self._listed = Listed(self._elements, n, device)
        self._ends = int(known.sum())
        self._coarse = Coarse(sheet.X[order], device)
        places = (np.nonzero(known)[0], self._elements.index[known])
        self._links = csr_array((elements.weight[known], places), (len(elements), n))
        self._balance = Balance(self._links, device)
        self._order = order
        self._solve = self._room(sheet.X[order])
        crowd = np.bincount(self._elements.index[known], np.abs(elements.weight)[known], n)
        self._solve.crowd.assign(np.pad(crowd, (0, len(self._solve.crowd) - n)))

    def _room(self, X: NDArray[np.float64]) -> Any:
        """For what a step works on. What fills the last eight up is held."""
        n, full = self._n, -(-self._n // int(ABREAST)) * int(ABREAST)
        s: Any = Solve()
        s.who = wp.array(self._order, dtype=wp.int32, device=self._device)
        s.X = wp.array(X, dtype=wp.vec3d, device=self._device)
        for name, dtype in (
            ("free", wp.vec3d), ("y", wp.vec3d), ("rest", wp.vec4), ("way", wp.vec4), ("ease", float),
            ("bearing", wp.float64), ("grounded", wp.float64), ("held", wp.float64), ("D", wp.float64), ("crowd", wp.float64),
        ):  # fmt: skip
            setattr(s, name, wp.zeros(full, dtype=dtype, device=self._device))
        s.inertia = wp.full(full, np.inf, dtype=wp.float64, device=self._device)
        self._chunks = -(-n // CHUNK)
        s.highest = wp.zeros(self._chunks, dtype=wp.float64, device=self._device)
        s.factors = wp.zeros((self.iterations // 2, 2), dtype=float, device=self._device)
        s.plan = wp.zeros(2, dtype=wp.float64, device=self._device)
        return s

    @property
    def iterations(self) -> int:
        """Most iterations of a step: even, fewer for large sheets."""
        if not self._coarse.levels:
            return ALONE
        return 2 * int(np.clip(WORK / self._ends, FEWEST, MOST) / 2)

    def set_stiffness(self, k: NDArray[np.float64]) -> None:
        """k [N/m] of each element, shape (E,): what `Elements.stiffness` gives. Programs need not be captured anew."""
        self._k = k
        if not len(self._elements):
            return
        index, weight = self._elements.index, np.abs(self._elements.weight)
        known = index >= 0
        D = np.bincount(index[known], (k[:, None] * weight * weight.sum(axis=1, keepdims=True))[known], self._n)
        self._solve.D.assign(np.pad(D, (0, len(self._solve.D) - self._n)))
        self._coarse.set_stiffness(self._links, k)
        self._listed.set_stiffness(k)

    def launches(self, arrival: Arrival, P: wp.array) -> list[dev.Launch]:
        """Find the pull P of all links on each particle at the end of a step, (n,) of vec3d [N/unit].

        `P` holds that of the step before (the iterations start there, so it is part of a checkpoint) and then the new
        one; arrival is only read: whoever asks adds x += A P, v += B P. No launches if there are no links."""
        if not len(self._elements):
            return []
        n, s, springs, bends = self._n, self._solve, self._listed.springs, self._listed.bends
        coarse, levels = self._coarse, float(len(self._coarse.levels) + 1)
        launches = [
            dev.Launch(look_ahead, n, [arrival, s], 0.05),
            dev.Launch(find_stiffest, self._chunks, [n, s], 0.05 * CHUNK),
            dev.Launch(plan_iterations, 1, [self._chunks, levels, s]),
            dev.Launch(bend_alone, self._listed.bend_count, [bends, s], 0.2),
            dev.Launch(start, n, [springs, bends, P, s], 0.3),
            dev.Launch(find_ties, n if coarse.levels else 0, [springs, bends, s], 0.2),
            *coarse.prepared(s.grounded),
        ]
        lain = len(arrival.wall)
        cycle = [dev.Launch(find_grip, lain, [arrival, s], 0.05)]
        for step in range(self.iterations // 2):
            cycle += self._pulls(step, arrival)
            cycle += coarse.moves(step, s.plan, s.rest)
            cycle.append(dev.Launch(iterate, n, [step, levels, coarse.lowest, s], 0.1))
        launches += [*cycle, *cycle, dev.Launch(find_borne, lain, [arrival, s], 0.05)]
        launches += self._balance.launches(s.y, s.free, s.bearing if lain else s.inertia)
        return [*launches, dev.Launch(take_pull, n, [s, P], 0.05)]

    def _pulls(self, step: int, arrival: Arrival) -> list[dev.Launch]:
        """What is to be balanced where y is."""
        s, springs, bends = self._solve, self._listed.springs, self._listed.bends
        abreast = 1 if self._device.is_cuda else int(ABREAST)
        bend_kernel, rest_kernel = (bend, find_rest) if abreast == 1 else (bend_abreast, find_rest_abreast)
        rest = [step, arrival, springs, bends, s]
        return [
            dev.Launch(bend_kernel, -(-self._listed.bend_count // abreast), [step, bends, s], 0.03 * abreast),
            dev.Launch(rest_kernel, -(-self._n // abreast), rest, 0.15 * abreast),
        ]

    def energy(self, u: wp.array) -> float:
        """Σ ½k(|e| − r)² of displacements u, (n,) of vec3d [N/m units²: times unit² it is J]."""
        x = self._solve.X.numpy() + u.numpy()[self._order]
        longer = np.linalg.norm(self._links @ x, axis=1) - self._elements.rest
        return float(0.5 * self._k @ longer**2)
