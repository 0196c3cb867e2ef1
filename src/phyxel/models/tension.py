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

import numpy as np
import warp as wp
from numpy.typing import NDArray
from scipy.sparse import csr_array

from phyxel import device as dev
from phyxel.models.arrival import Arrival, ahead, depth, kept_out
from phyxel.models.balance import Balance
from phyxel.models.coarse import Coarse, Level, moved
from phyxel.models.elements import BEND
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
class Springs:
    """The springs of each particle, one after the other: a spring is listed at both of its ends."""

    first: wp.array(dtype=wp.int32)
    """where the list of a particle begins, shape (n + 1,)"""
    other: wp.array(dtype=wp.int32)
    rest: wp.array(dtype=wp.float64)
    k: wp.array(dtype=wp.float64)


@wp.struct
class Bends:
    """Elements of three or four particles, and which of them each particle is part of."""

    corner: wp.array(dtype=wp.vec4i)
    weight: wp.array(dtype=wp.vec4d)
    rest: wp.array(dtype=wp.float64)
    k: wp.array(dtype=wp.float64)
    f: wp.array(dtype=wp.vec3d)
    """what it pulls with, k (1 − r/|e|) e"""
    first: wp.array(dtype=wp.int32)
    element: wp.array(dtype=wp.int32)
    share: wp.array(dtype=wp.float64)
    """c of that particle in it"""


@wp.struct
class Solve:
    """What a step of the solver works on."""

    X: wp.array(dtype=wp.vec3d)
    free: wp.array(dtype=wp.vec3d)
    """y_free: where the particles would be seen without links"""
    y: wp.array(dtype=wp.vec3d)
    rest: wp.array(dtype=wp.vec3d)
    """(y_free − y)/H + P(y): what is still to be balanced"""
    inertia: wp.array(dtype=wp.float64)
    """1/H"""
    held: wp.array(dtype=wp.float64)
    """how far friction holds a particle back: μ times as far as the collider pushes it out"""
    bearing: wp.array(dtype=wp.float64)
    """with the stiffness of the collider that it lies on [N/m]"""
    way: wp.array(dtype=wp.vec3d)
    """the last change of y"""
    D: wp.array(dtype=wp.float64)
    crowd: wp.array(dtype=wp.float64)
    """Σ_e |c_ei|"""
    highest: wp.array(dtype=wp.float64)
    """largest H D of each chunk"""
    factors: wp.array2d(dtype=wp.float64)
    """what the last change and the new one are multiplied by, shape (iterations of a cycle, 2)"""
    plan: wp.array(dtype=wp.float64)
    """iterations of a cycle that are needed; share of the last P to start from"""


@wp.func
def pull(k: wp.float64, rest: wp.float64, e: wp.vec3d) -> wp.vec3d:
    """k (1 − r/|e|) e; an element of no length pulls nowhere."""
    length = wp.length(e)
    if length == wp.float64(0.0):
        return wp.vec3d()
    return (k * (wp.float64(1.0) - rest / length)) * e


@wp.func
def stretch(bends: Bends, b: int, y: wp.array(dtype=wp.vec3d)) -> wp.vec3d:
    """e = Σ_a c_a y_a."""
    c = bends.corner[b]
    w = bends.weight[b]
    e = w[0] * y[c[0]] + w[1] * y[c[1]] + w[2] * y[c[2]]
    if c[3] >= 0:
        e += w[3] * y[c[3]]
    return e


@wp.func
def foothold(arrival: Arrival, i: int, s: Solve) -> wp.float64:
    """How stiff the collider is that a particle lies on [N/m]: as its links together, so that it is as soon found."""
    if arrival.wall.shape[0] == 0:
        return wp.float64(0.0)
    return s.D[i] * wp.length_sq(arrival.wall[i])


@wp.kernel
def look_ahead(first: int, arrival: Arrival, s: Solve):
    """y_free, 1/H, and that with what bears it."""
    i = first + wp.tid()
    s.free[i] = s.X[i] + ahead(arrival, i)
    s.inertia[i] = wp.float64(1.0) / arrival.H[i]  # infinite if it is held
    s.bearing[i] = s.inertia[i] + foothold(arrival, i, s)


@wp.kernel
def find_stiffest(first: int, n: int, arrival: Arrival, s: Solve):
    """Largest H D in each chunk."""
    c = first + wp.tid()
    highest = wp.float64(0.0)
    for i in range(c * CHUNK, wp.min(n, (c + 1) * CHUNK)):
        highest = wp.max(highest, arrival.H[i] * (s.D[i] + foothold(arrival, i, s)))
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
    s.factors[0, 0] = wp.float64(0.0)
    s.factors[0, 1] = one / middle
    for j in range(1, most):
        after = one / (wp.float64(2.0) * sigma - rho)
        s.factors[j, 0] = after * rho
        s.factors[j, 1] = wp.float64(2.0) * after / half
        rho = after


@wp.kernel
def bend_alone(first: int, arrival: Arrival, bends: Bends, s: Solve):
    """What each element would pull with at the end if it were alone: its own give and, at most, that of all others at
    its particles, Σ_a |c_a| H_a Σ_e |c_ea|, make it less stiff."""
    b = first + wp.tid()
    c = bends.corner[b]
    w = bends.weight[b]
    give = wp.float64(0.0)
    for a in range(4):
        if c[a] >= 0:
            give += wp.abs(w[a]) * arrival.H[c[a]] * s.crowd[c[a]]
    k = bends.k[b] / (wp.float64(1.0) + bends.k[b] * give)
    bends.f[b] = pull(k, bends.rest[b], stretch(bends, b, s.free))


@wp.func
def bent(bends: Bends, i: int) -> wp.vec3d:
    """Pull of all elements of more than two particles."""
    P = wp.vec3d()
    for slot in range(bends.first[i], bends.first[i + 1]):
        P -= bends.share[slot] * bends.f[bends.element[slot]]
    return P


@wp.kernel
def start(first: int, arrival: Arrival, springs: Springs, bends: Bends, P: wp.array(dtype=wp.vec3d), s: Solve):
    """y of P as it was and of elements that are alone."""
    i = first + wp.tid()
    kept = s.plan[1]
    H = arrival.H[i]
    begin = kept * P[i]
    if kept < wp.float64(1.0) and wp.float64(0.0) < H:
        alone = bent(bends, i)
        give = H * s.crowd[i]
        for slot in range(springs.first[i], springs.first[i + 1]):
            j = springs.other[slot]
            k = springs.k[slot]
            k = k / (wp.float64(1.0) + k * (give + arrival.H[j] * s.crowd[j]))
            alone -= pull(k, springs.rest[slot], s.free[i] - s.free[j])
        begin += (wp.float64(1.0) - kept) * alone
    s.y[i] = s.free[i] + H * begin


@wp.kernel
def bend(first: int, step: int, bends: Bends, s: Solve):
    """f of all elements of more than two particles."""
    b = first + wp.tid()
    if wp.float64(step) < s.plan[0]:
        bends.f[b] = pull(bends.k[b], bends.rest[b], stretch(bends, b, s.y))


@wp.kernel
def find_grip(first: int, arrival: Arrival, s: Solve):
    """What friction can hold where y is now. It stays so for a cycle: then this too has an energy that gets less."""
    i = first + wp.tid()
    s.held[i] = arrival.grip[i] * wp.max(depth(arrival, i, s.y[i]), wp.float64(0.0))


@wp.kernel
def find_borne(first: int, arrival: Arrival, s: Solve):
    """Forces of what a collider bears need not cancel: as if it were held."""
    i = first + wp.tid()
    s.bearing[i] = s.inertia[i]
    if depth(arrival, i, s.y[i]) > wp.float64(0.0):
        s.bearing[i] = wp.float64(wp.inf)


@wp.kernel
def find_rest(first: int, step: int, arrival: Arrival, springs: Springs, bends: Bends, s: Solve):
    """(y_free − y)/H + P(y), with what a collider bears; nothing for what is held."""
    i = first + wp.tid()
    if wp.float64(step) >= s.plan[0] or wp.isinf(s.inertia[i]):
        return
    y = s.y[i]
    rest = s.inertia[i] * (s.free[i] - y) + bent(bends, i)
    for slot in range(springs.first[i], springs.first[i + 1]):
        rest -= pull(springs.k[slot], springs.rest[slot], y - s.y[springs.other[slot]])
    borne = foothold(arrival, i, s)
    if borne > wp.float64(0.0):
        rest += borne * (kept_out(arrival, i, y, s.held[i]) - y)
    s.rest[i] = rest


@wp.kernel
def iterate(first: int, step: int, levels: wp.float64, coarse: Level, s: Solve):
    """One iteration: y + factors · (last change, mean change of all levels)."""
    i = first + wp.tid()
    if wp.float64(step) >= s.plan[0] or wp.isinf(s.inertia[i]):
        return
    change = (s.rest[i] / (s.bearing[i] + s.D[i]) + moved(coarse, i)) / levels
    way = s.factors[step, 0] * s.way[i] + s.factors[step, 1] * change
    s.way[i] = way
    s.y[i] += way


@wp.kernel
def take_pull(first: int, arrival: Arrival, s: Solve, P: wp.array(dtype=wp.vec3d)):
    """P = (y − y_free)/H."""
    i = first + wp.tid()
    H = arrival.H[i]
    if wp.float64(0.0) < H:
        P[i] = (s.y[i] - s.free[i]) / H
    else:
        P[i] = wp.vec3d()


@wp.kernel
def sum_energy(
    first: int, n: int, bend_count: int, springs: Springs, bends: Bends, X: wp.array(dtype=wp.vec3d),
    u: wp.array(dtype=wp.vec3d), partial: wp.array(dtype=wp.float64),
):  # fmt: skip
    """Partial sums of ½k(|e| − r)², CHUNK particles and elements of more than two each. Springs count half at both
    ends."""
    c = first + wp.tid()
    total = wp.float64(0.0)
    for i in range(c * CHUNK, wp.min(n, (c + 1) * CHUNK)):
        for slot in range(springs.first[i], springs.first[i + 1]):
            j = springs.other[slot]
            longer = wp.length(X[i] + u[i] - X[j] - u[j]) - springs.rest[slot]
            total += wp.float64(0.25) * springs.k[slot] * longer * longer
    for b in range(c * CHUNK, wp.min(bend_count, (c + 1) * CHUNK)):
        longer = wp.length(stretch(bends, b, X) + stretch(bends, b, u)) - bends.rest[b]
        total += wp.float64(0.5) * bends.k[b] * longer * longer
    partial[c] = total


class Tension:
    """The links of a sheet at work."""

    def __init__(self, sheet: Sheet, device: wp.Device) -> None:
        elements, n = sheet.elements, len(sheet.X)
        self._n, self._device, self._elements = n, device, elements
        known = elements.index >= 0
        self._spring = np.flatnonzero(elements.kind < BEND)
        self._bend = np.flatnonzero(elements.kind >= BEND)
        pairs = elements.index[self._spring, :2]
        self._springs, self._twice = self._listed_springs(pairs)
        self._bends = self._listed_bends()
        self._ends = 2 * len(pairs) + int(known[self._bend].sum())
        self._coarse = Coarse(sheet.X, device)
        places = (np.nonzero(known)[0], elements.index[known])
        self._links = csr_array((elements.weight[known], places), (len(elements), n))
        self._balance = Balance(self._links, device)
        crowd = np.bincount(elements.index[known], np.abs(elements.weight)[known], n)
        s = Solve()
        s.X = wp.array(sheet.X, dtype=wp.vec3d, device=device)
        s.free = wp.zeros(n, dtype=wp.vec3d, device=device)
        s.y = wp.zeros(n, dtype=wp.vec3d, device=device)
        s.rest = wp.zeros(n, dtype=wp.vec3d, device=device)
        s.inertia, s.bearing, s.held = (wp.zeros(n, dtype=wp.float64, device=device) for _ in range(3))
        s.way = wp.zeros(n, dtype=wp.vec3d, device=device)
        s.D = wp.zeros(n, dtype=wp.float64, device=device)
        s.crowd = wp.array(crowd, dtype=wp.float64, device=device)
        self._chunks = -(-max(n, len(self._bend)) // CHUNK)
        s.highest = wp.zeros(self._chunks, dtype=wp.float64, device=device)
        s.factors = wp.zeros((self.iterations // 2, 2), dtype=wp.float64, device=device)
        s.plan = wp.zeros(2, dtype=wp.float64, device=device)
        self._solve = s

    @property
    def iterations(self) -> int:
        """Most iterations of a step: even, fewer for large sheets."""
        if not self._coarse.levels:
            return ALONE
        return 2 * int(np.clip(WORK / self._ends, FEWEST, MOST) / 2)

    def _listed_springs(self, pairs: NDArray[np.int32]) -> tuple[Springs, NDArray[np.intp]]:
        """The springs by particle, and the number of the spring at each place of the list."""
        ends, others = np.concatenate([pairs[:, 0], pairs[:, 1]]), np.concatenate([pairs[:, 1], pairs[:, 0]])
        order = np.lexsort((others, ends))
        springs = Springs()
        springs.first = self._starts(ends)
        springs.other = wp.array(others[order], dtype=wp.int32, device=self._device)
        number = order % max(len(pairs), 1)
        rest = self._elements.rest[self._spring][number]
        springs.rest = wp.array(rest, dtype=wp.float64, device=self._device)
        springs.k = wp.zeros(len(rest), dtype=wp.float64, device=self._device)
        return springs, number

    def _listed_bends(self) -> Bends:
        """Elements of more than two particles, and the list of them by particle."""
        index, weight = self._elements.index[self._bend], self._elements.weight[self._bend]
        known = index >= 0
        element, _ = np.nonzero(known)
        order = np.argsort(index[known], kind="stable")
        bends = Bends()
        bends.corner = wp.array(index, dtype=wp.vec4i, device=self._device)
        bends.weight = wp.array(weight, dtype=wp.vec4d, device=self._device)
        bends.rest = wp.array(self._elements.rest[self._bend], dtype=wp.float64, device=self._device)
        bends.k = wp.zeros(len(index), dtype=wp.float64, device=self._device)
        bends.f = wp.zeros(len(index), dtype=wp.vec3d, device=self._device)
        bends.first = self._starts(index[known])
        bends.element = wp.array(element[order], dtype=wp.int32, device=self._device)
        bends.share = wp.array(weight[known][order], dtype=wp.float64, device=self._device)
        return bends

    def _starts(self, particles: NDArray[np.int32]) -> wp.array:
        """Where the list of each particle begins, (n + 1,)."""
        counts = np.bincount(particles, minlength=self._n)
        return wp.array(np.concatenate([[0], np.cumsum(counts)]), dtype=wp.int32, device=self._device)

    def set_stiffness(self, k: NDArray[np.float64]) -> None:
        """k [N/m] of each element, shape (E,): what `Elements.stiffness` gives. Programs need not be captured anew."""
        if not len(self._elements):
            return
        index, weight = self._elements.index, np.abs(self._elements.weight)
        known = index >= 0
        D = np.bincount(index[known], (k[:, None] * weight * weight.sum(axis=1, keepdims=True))[known], self._n)
        self._solve.D.assign(D)
        self._coarse.set_stiffness(self._links, k)
        self._springs.k.assign(k[self._spring][self._twice])
        self._bends.k.assign(k[self._bend])

    def launches(self, arrival: Arrival, P: wp.array) -> list[dev.Launch]:
        """Find the pull P of all links on each particle at the end of a step, (n,) of vec3d [N/unit].

        `P` holds that of the step before (the iterations start there, so it is part of a checkpoint) and then the new
        one; arrival is only read: whoever asks adds x += A P, v += B P. No launches if there are no links."""
        if not len(self._elements):
            return []
        n, bend_count, s, springs, bends = self._n, len(self._bend), self._solve, self._springs, self._bends
        coarse, levels = self._coarse, float(len(self._coarse.levels) + 1)
        launches = [
            dev.Launch(look_ahead, n, [arrival, s], 0.05),
            dev.Launch(find_stiffest, self._chunks, [n, arrival, s], 0.05 * CHUNK),
            dev.Launch(plan_iterations, 1, [self._chunks, levels, s]),
            dev.Launch(bend_alone, bend_count, [arrival, bends, s], 0.2),
            dev.Launch(start, n, [arrival, springs, bends, P, s], 0.3),
            *coarse.prepared(s.bearing),
        ]
        cycle = [dev.Launch(find_grip, len(arrival.wall), [arrival, s], 0.05)]
        for step in range(self.iterations // 2):
            cycle.append(dev.Launch(bend, bend_count, [step, bends, s], 0.2))
            cycle.append(dev.Launch(find_rest, n, [step, arrival, springs, bends, s], 1.0))
            cycle += coarse.moves(step, s.plan, s.rest)
            cycle.append(dev.Launch(iterate, n, [step, levels, coarse.lowest, s], 0.1))
        lain = len(arrival.wall)
        launches += [*cycle, *cycle, dev.Launch(find_borne, lain, [arrival, s], 0.05)]
        launches += self._balance.launches(s.y, s.free, s.bearing if lain else s.inertia)
        return [*launches, dev.Launch(take_pull, n, [arrival, s, P], 0.05)]

    def energy(self, u: wp.array) -> float:
        """Σ ½k(|e| − r)² of displacements u, (n,) of vec3d [N/m units²: times unit² it is J]."""
        partial = wp.zeros(self._chunks, dtype=wp.float64, device=self._device)
        inputs = [self._n, len(self._bend), self._springs, self._bends, self._solve.X, u, partial]
        dev.launch(sum_energy, self._chunks, inputs, self._device)
        return float(partial.numpy().sum())
