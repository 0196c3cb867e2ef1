# mypy: disable-error-code="valid-type,no-untyped-def"
"""Forces of the links of a particle surface, implicit: P of where the links will be at the end of the step
(physics 13.3).

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

Bending that is soft (H D of it below 1) is found at the start of each cycle only. Particles are taken along a curve in
space, in eights (`links`); what an iteration corrects is in single precision, where it leads to in double.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import warp as wp
from numpy.typing import NDArray
from scipy.sparse import csr_array

from phyxel import device as dev
from phyxel.models.particles.arrival import Arrival, ahead, depth, halfway, kept_out
from phyxel.models.particles.balance import Balance
from phyxel.models.particles.chebyshev import (
    FEWEST_ITERATIONS,
    HELD,
    KEPT,
    SOFT_LINKS,
    Plan,
    bends_at,
    goes_on,
    plan_iterations,
    plan_of,
)
from phyxel.models.particles.coarse import Coarse, Level, moved
from phyxel.models.particles.links import (
    ABREAST,
    Bends,
    LinkSprings,
    Listed,
    along_a_curve,
    bend_one,
    bends_abreast,
    bent,
    corner_of,
    springs_abreast,
    springs_of,
)
from phyxel.models.particles.sheet import Sheet
from phyxel.models.reductions import CHUNK

wp.set_module_options(dev.KERNEL_OPTIONS)

ITERATIONS_ALONE = 160
"""Of a step, of both cycles together, of a sheet that is its only level."""
IN_AIR, BORNE = (32, 2.0e6), (64, 2.0e7)
"""The most iterations of other sheets, and how many ends of elements they may visit if they are more than the fewest:
of sheets in the air, and of those that colliders may bear, which hats hardly move. Much longer cycles would make what
buckles jump: the energy is a saddle there."""


@wp.struct
class Solve:
    """What a step of the solver works on: entries are particles along a curve, in full eights."""

    who: wp.array(dtype=wp.int32)
    """which particle it is outside, shape (n,)"""
    X: wp.array(dtype=wp.vec3d)
    free: wp.array(dtype=wp.vec3d)
    """y_free: where the particles would be seen without links"""
    y: wp.array(dtype=wp.vec3d)
    arm: wp.array(dtype=wp.vec3d)
    """where forces act to turn the sheet"""
    rest: wp.array(dtype=wp.vec4)
    """(y_free − y)/H + P(y): the force that is still to be balanced"""
    inertia: wp.array(dtype=wp.float64)
    """1/H; infinite if it is held"""
    ease: wp.array(dtype=float)
    """how far a force moves it: 1/(1/H + D), with the collider it lies on; 0 if it is held"""
    grounded: wp.array(dtype=wp.float64)
    """1/H with the collider it lies on and links to held particles, where hats end; 0 if it is held itself"""
    held: wp.array(dtype=wp.float64)
    """how far friction holds a particle back: μ times as far as the collider pushes it out"""
    bearing: wp.array(dtype=wp.float64)
    """with the stiffness of the collider that it lies on [N/m]"""
    way: wp.array(dtype=wp.vec4)
    """the last change of y"""
    D: wp.array(dtype=wp.float64)
    D_bend: wp.array(dtype=float)
    """the part of bending in D"""
    bent: wp.array(dtype=wp.vec4)
    """pull of bending at the start of a cycle"""
    crowd: wp.array(dtype=wp.float64)
    """Σ_e |c_ei|"""
    give: wp.array(dtype=float)
    """H Σ_e |c_ei|: by how much, at most, it gives way to all its elements together; an element alone is as much softer
    as its particles give"""
    plan: Plan


@wp.func
def foothold(arrival: Arrival, i: int, s: Solve) -> wp.float64:
    """How stiff the collider is that a particle lies on [N/m]: as its links together, so that it is as soon found."""
    if arrival.wall.shape[0] == 0:
        return wp.float64(0.0)
    return s.D[i] * wp.length_sq(arrival.wall[s.who[i]])


@wp.kernel
def look_ahead(first: int, arrival: Arrival, s: Solve):
    """y_free, 1/H, and that with the collider that bears it (physics 13.3)."""
    i = first + wp.tid()
    particle = s.who[i]
    s.free[i] = s.X[i] + ahead(arrival, particle)
    s.arm[i] = s.X[i] + halfway(arrival, particle)
    inertia = wp.float64(1.0) / arrival.H[particle]  # infinite if it is held
    bearing = inertia + foothold(arrival, i, s)
    s.inertia[i] = inertia
    s.bearing[i] = bearing
    s.ease[i] = float(wp.float64(1.0) / (bearing + s.D[i]))
    s.give[i] = float(s.crowd[i] / inertia)
    s.rest[i] = wp.vec4()  # and stays so if it is held


@wp.kernel
def find_stiffest(first: int, n: int, s: Solve):
    """Largest H D in each chunk."""
    c = first + wp.tid()
    highest = wp.vec3d()
    for i in range(c * CHUNK, wp.min(n, (c + 1) * CHUNK)):
        H = wp.float64(1.0) / s.inertia[i]
        if wp.float64(0.0) < H:
            stiffness = s.D[i] + s.bearing[i] - s.inertia[i]
            highest = wp.max(highest, wp.vec3d(H * stiffness, H * wp.float64(s.D_bend[i]), wp.float64(0.0)))
        else:
            highest[2] = wp.float64(1.0)
    s.plan.highest[c] = highest


@wp.kernel
def find_ties(first: int, springs: LinkSprings, bends: Bends, s: Solve):
    """How firmly each particle is tied to held ones [N/m] (physics 13.4): ½Σ_e k(Σ_a c_a x_a)² of such links is at most
    ½Σ_i x_i² Σ_e k |c_ei| Σ_a |c_ea| over their free particles."""
    i = first + wp.tid()
    s.grounded[i] = s.bearing[i]
    if s.plan.numbers[HELD] == wp.float64(0.0):
        return
    if s.ease[i] == 0.0:
        s.grounded[i] = wp.float64(0.0)
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
        for a in range(bends.wide):
            corner = corner_of(bends, b, a)
            if s.ease[bends.corner[corner]] == 0.0:
                fixed = True
            else:
                free += wp.abs(bends.weight[corner])
        if fixed:
            tie += bends.k[b] * wp.abs(bends.share[slot]) * free
    s.grounded[i] = s.bearing[i] + wp.float64(tie)


@wp.func
def begin(s: Solve, bends: Bends, i: int, P: wp.vec3d, alone: wp.vec3d):
    """y of P as it was and of elements that are alone (physics 13.3)."""
    kept = s.plan.numbers[KEPT]
    start = kept * P + (wp.float64(1.0) - kept) * (alone + in_double(bent(bends, i)))
    s.y[i] = s.free[i] + start / s.inertia[i]


@wp.kernel
def start(first: int, n: int, springs: LinkSprings, bends: Bends, P: wp.array(dtype=wp.vec3d), s: Solve):
    """Where iterations begin."""
    i = first + wp.tid()
    begin(s, bends, i, P[s.who[i]], springs_of(springs, i, 1, s.give, s.free))


@wp.kernel
def start_abreast(first: int, n: int, springs: LinkSprings, bends: Bends, P: wp.array(dtype=wp.vec3d), s: Solve):
    """The same of eight particles at once, on the CPU."""
    block = first + wp.tid()
    alone = springs_abreast(springs, block, 1, s.give, s.free)
    for lane in range(wp.min(ABREAST, n - block * ABREAST)):
        i = block * ABREAST + lane
        begin(s, bends, i, P[s.who[i]], wp.vec3d(alone[0, lane], alone[1, lane], alone[2, lane]))


@wp.kernel
def bend(first: int, step: int, alone: int, y: wp.array(dtype=wp.vec3d), bends: Bends, s: Solve):
    """f of all elements of more than two particles, as if each were alone at the start."""
    b = first + wp.tid()
    if goes_on(s.plan, step) and bends_at(s.plan, step):
        bend_one(bends, b, alone, s.give, y)


@wp.kernel
def bend_abreast(first: int, step: int, alone: int, y: wp.array(dtype=wp.vec3d), bends: Bends, s: Solve):
    """The same of eight at once, on the CPU."""
    block = first + wp.tid()
    if goes_on(s.plan, step) and bends_at(s.plan, step):
        bends_abreast(bends, block, alone, s.give, y)


@wp.kernel
def find_grip(first: int, arrival: Arrival, s: Solve):
    """What friction can hold where y is now (physics 13.3). It stays so for a cycle: then this too has an energy that
    gets less."""
    i = first + wp.tid()
    particle = s.who[i]
    s.held[i] = arrival.grip[particle] * wp.max(depth(arrival, particle, s.y[i]), wp.float64(0.0))


@wp.kernel
def find_borne(first: int, arrival: Arrival, s: Solve):
    """Forces on particles that a collider bears need not cancel (physics 13.5): as if they were held."""
    i = first + wp.tid()
    s.bearing[i] = s.inertia[i]
    if depth(arrival, s.who[i], s.y[i]) > wp.float64(0.0):
        s.bearing[i] = wp.float64(wp.inf)


@wp.func
def put_rest(step: int, arrival: Arrival, bends: Bends, s: Solve, i: int, P: wp.vec3d):
    """(y_free − y)/H + P(y), with the force of a collider (physics 13.3); of springs P is known."""
    y = s.y[i]
    rest = s.inertia[i] * (s.free[i] - y) + P
    borne = s.bearing[i] - s.inertia[i]
    if borne > wp.float64(0.0):
        rest += borne * (kept_out(arrival, s.who[i], y, s.held[i]) - y)
    if bends_at(s.plan, step):
        s.bent[i] = bent(bends, i)
    s.rest[i] = s.bent[i] + wp.vec4(float(rest[0]), float(rest[1]), float(rest[2]), 0.0)


@wp.kernel
def find_rest(first: int, step: int, arrival: Arrival, springs: LinkSprings, bends: Bends, s: Solve):
    """The force that is still to be balanced; 0 of held particles."""
    i = first + wp.tid()
    if goes_on(s.plan, step) and s.ease[i] > 0.0:
        put_rest(step, arrival, bends, s, i, springs_of(springs, i, 0, s.give, s.y))


@wp.kernel
def find_rest_abreast(first: int, step: int, arrival: Arrival, springs: LinkSprings, bends: Bends, s: Solve):
    """The same of eight particles at once, on the CPU."""
    block = first + wp.tid()
    if not goes_on(s.plan, step):
        return
    P = springs_abreast(springs, block, 0, s.give, s.y)
    for lane in range(ABREAST):
        i = block * ABREAST + lane
        if s.ease[i] > 0.0:
            put_rest(step, arrival, bends, s, i, wp.vec3d(P[0, lane], P[1, lane], P[2, lane]))


@wp.kernel
def iterate(first: int, step: int, abreast: int, levels: float, coarse: Level, s: Solve):
    """One iteration (physics 13.3): y + factors · (last change, mean change of all levels), of `abreast` particles."""
    block = first + wp.tid()
    if not goes_on(s.plan, step):
        return
    last = s.plan.factors[step, 0]
    new = s.plan.factors[step, 1] / levels
    for i in range(block * abreast, (block + 1) * abreast):
        if s.ease[i] > 0.0:
            way = last * s.way[i] + new * (s.ease[i] * s.rest[i] + moved(coarse, i))
            s.way[i] = way
            s.y[i] += in_double(way)


@wp.func
def in_double(a: wp.vec4) -> wp.vec3d:
    """The first three."""
    return wp.vec3d(wp.float64(a[0]), wp.float64(a[1]), wp.float64(a[2]))


@wp.kernel
def take_pull(first: int, s: Solve, P: wp.array(dtype=wp.vec3d)):
    """P = (y − y_free)/H (physics 13.3)."""
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
        self.abreast = 1 if device.is_cuda else int(ABREAST)
        order = along_a_curve(sheet.X, sheet.elements)
        rank = np.empty(n, np.int32)
        rank[order] = np.arange(n)
        elements = sheet.elements
        known = elements.index >= 0
        self.elements = replace(elements, index=np.where(known, rank[elements.index], -1))
        self._listed = Listed(self.elements, n, device)
        self._ends = int(known.sum())
        self._coarse = Coarse(sheet.X[order], device)
        places = (np.nonzero(known)[0], self.elements.index[known])
        self.links = csr_array((elements.weight[known], places), (len(elements), n))
        self._balance = Balance(self.elements.index, n, device)
        self.order = order
        self.solve = self._room(sheet.X[order])
        crowd = np.bincount(self.elements.index[known], np.abs(elements.weight)[known], n)
        self.solve.crowd.assign(np.pad(crowd, (0, len(self.solve.crowd) - n)))

    def _room(self, X: NDArray[np.float64]) -> Any:
        """Room for the numbers of a step. Entries that fill the last eight up are held."""
        n, full = self._n, -(-self._n // int(ABREAST)) * int(ABREAST)
        s: Any = Solve()
        s.who = wp.array(self.order, dtype=wp.int32, device=self._device)
        s.X = wp.array(X, dtype=wp.vec3d, device=self._device)
        for name, dtype in (
            ("free", wp.vec3d), ("y", wp.vec3d), ("arm", wp.vec3d), ("rest", wp.vec4),
            ("way", wp.vec4), ("ease", float), ("give", float),
            ("bearing", wp.float64), ("grounded", wp.float64), ("held", wp.float64), ("crowd", wp.float64),
            ("D", wp.float64), ("D_bend", float), ("bent", wp.vec4),
        ):  # fmt: skip
            setattr(s, name, wp.zeros(full, dtype=dtype, device=self._device))
        s.inertia = wp.full(full, np.inf, dtype=wp.float64, device=self._device)
        self._chunks = -(-n // CHUNK)
        s.plan = plan_of(self._chunks, ITERATIONS_ALONE // 2, self._device)
        return s

    def iterations(self, borne: bool) -> int:
        """Most iterations of a step: even, fewer for large sheets."""
        if not self._coarse.levels:
            return ITERATIONS_ALONE
        most, work = BORNE if borne else IN_AIR
        return 2 * int(np.clip(work / self._ends, FEWEST_ITERATIONS, most) / 2)

    def set_stiffness(self, k: NDArray[np.float64]) -> None:
        """k [N/m] of each element, shape (E,): what `Elements.stiffness` gives. Programs need not be captured anew."""
        self.k = k
        if not len(self.elements):
            return
        index, weight = self.elements.index, np.abs(self.elements.weight)
        known = index >= 0
        stiffness = k[:, None] * weight * weight.sum(axis=1, keepdims=True)
        bends = known & (index[:, 2:3] >= 0)
        for array, which in ((self.solve.D, known), (self.solve.D_bend, bends)):
            array.assign(np.bincount(index[which], stiffness[which], len(array)))
        self._coarse.set_stiffness(self.links, k)
        self._listed.set_stiffness(k)

    def launches(self, arrival: Arrival, P: wp.array) -> list[dev.Launch]:
        """Find the pull P of all links on each particle at the end of a step, (n,) of vec3d [N/unit].

        `P` holds that of the step before (the iterations start there, so it is part of a checkpoint) and then the new
        one; arrival is only read: whoever asks adds x += A P, v += B P. No launches if there are no links."""
        if not len(self.elements):
            return []
        return [*self.planned(arrival), *self.iterated(arrival, P), *self.taken(arrival, P)]

    def iterated(self, arrival: Arrival, P: wp.array) -> list[dev.Launch]:
        """Where iterations as planned lead."""
        n, s, springs, bends = self._n, self.solve, self._listed.springs, self._listed.bends
        coarse, levels = self._coarse, float(len(self._coarse.levels) + 1)
        lain = len(arrival.wall)
        most, abreast = self.iterations(lain > 0) // 2, self.abreast
        launches = [
            self._bend(0, True),
            self._by_particle(start, start_abreast, [n, springs, bends, P, s]),
            dev.Launch(find_ties, n if coarse.levels else 0, [springs, bends, s], 0.2),
            *coarse.prepared(s.grounded),
        ]
        cycle = [dev.Launch(find_grip, lain, [arrival, s], 0.05)]
        for step in range(most):
            inputs = [step, arrival, springs, bends, s]
            cycle += [self._bend(step, False), self._by_particle(find_rest, find_rest_abreast, inputs)]
            cycle += coarse.moves(step, s.plan, s.rest)
            cycle.append(
                dev.Launch(iterate, -(-n // abreast), [step, abreast, levels, coarse.lowest, s], 0.1 * abreast)
            )
        return [*launches, *cycle, *cycle]

    def planned(self, arrival: Arrival) -> list[dev.Launch]:
        """What a step asks of the links, and how many iterations that takes."""
        n, s, levels = self._n, self.solve, float(len(self._coarse.levels) + 1)
        most = self.iterations(len(arrival.wall) > 0) // 2
        return [
            dev.Launch(look_ahead, n, [arrival, s], 0.05),
            dev.Launch(find_stiffest, self._chunks, [n, s], 0.05 * CHUNK),
            dev.Launch(plan_iterations, 1, [most, levels, s.plan]),
        ]

    def gets_there(self) -> bool:
        """Whether iterations as planned last solve for all modes, so that they end in equilibrium."""
        return bool(self.solve.plan.numbers.numpy()[KEPT] == 1.0)

    def is_soft(self) -> bool:
        """Whether links, as iterations were planned for last, give little more than they should in so many."""
        return bool(self.solve.plan.highest.numpy()[:, 0].max() <= SOFT_LINKS)

    def left_over(self, P: wp.array) -> float:
        """Force that iterations have left over, over the pull P they have come to (root mean squares)."""
        if self.gets_there():
            return 0.0
        n = self._n
        free = np.isfinite(self.solve.inertia.numpy()[:n])
        rest, pull = self.solve.rest.numpy()[:n, :3][free], P.numpy()[self.order[free]]
        return float(np.linalg.norm(rest)) / max(float(np.linalg.norm(pull)), 1e-150)

    def taken(self, arrival: Arrival, P: wp.array) -> list[dev.Launch]:
        """P of where the links have led."""
        s, lain = self.solve, len(arrival.wall)
        balanced = self._balance.launches(s.y, s.free, s.arm, s.bearing if lain else s.inertia)
        borne = dev.Launch(find_borne, lain, [arrival, s], 0.05)
        return [borne, *balanced, dev.Launch(take_pull, self._n, [s, P], 0.05)]

    def _bend(self, step: int, alone: bool) -> dev.Launch:
        s, count, abreast = self.solve, self._listed.bend_count, self.abreast
        inputs = [step, int(alone), s.free if alone else s.y, self._listed.bends, s]
        return dev.Launch(bend if abreast == 1 else bend_abreast, -(-count // abreast), inputs, 0.03 * abreast)

    def _by_particle(self, alone: wp.Kernel, abreast: wp.Kernel, inputs: list[Any]) -> dev.Launch:
        """A kernel for each particle, or one that takes several."""
        kernel = alone if self.abreast == 1 else abreast
        return dev.Launch(kernel, -(-self._n // self.abreast), inputs, 0.15 * self.abreast)

    def energy(self, u: wp.array) -> float:
        """Σ ½k(|e| − r)² of displacements u, (n,) of vec3d [N/m units²: times unit² it is J] (physics 13.2)."""
        x = self.solve.X.numpy() + u.numpy()[self.order]
        longer = np.linalg.norm(self.links @ x, axis=1) - self.elements.rest
        return float(0.5 * self.k @ longer**2)
