# mypy: disable-error-code="valid-type,no-untyped-def"
"""Melts: phyxels that flow past each other (M04 §4.2).

Their stored strain fades (`forces.flow`); their reference shape is absorbed and their neighbours are found anew
whenever they have moved some way against each other. Pressure keeps them apart: smoothed particle hydrodynamics on the
number density c_i = Σ_j v_j W_ij of the rest volumes v, with the spiky kernel W = 15/(π h⁶)(h − r)³:

    U = Σ_i ½ K v_i max(c_i/c⁰ − 1, 0)²,   f_i = −v_i Σ_j v_j (p_i + p_j) ∇W_ij,   p_i = K max(c_i/c⁰ − 1, 0)/c⁰

c⁰ is what a phyxel inside the resting body has: a bare sum is 1.13 there, 0.94 at a face, 0.67 at a corner. Only what
is crowded pushes. A force from an energy keeps momentum, angular momentum and energy.

A collider counts as if it were full of melt, or a film would be pressed onto its surface until it is as crowded as the
inside. Of a plane at the distance d the kernel covers B = 3/2 a⁵ − a⁶, a = 1 − d/h, of several 1 − Π(1 − B).
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
import warp as wp
from numpy.typing import NDArray

from phyxel import device as dev
from phyxel.contact.table import distance_to
from phyxel.device import Launch, Program, Shared
from phyxel.mls.moments import weighing
from phyxel.mls.neighbours import MovingLists, PairList, find_pairs
from phyxel.models.phyxel.reference_shape import absorb
from phyxel.models.reductions import CHUNK

if TYPE_CHECKING:
    from phyxel.models.phyxel.model import PhyxelModel

wp.set_module_options(dev.KERNEL_OPTIONS)

FARTHEST = 0.25
"""How far phyxels may move against each other before neighbours are found anew, in spacings."""
THINNEST = 0.05
"""Smallest ratio of a moment matrix' eigenvalues with which a melt has elastic stress: thin films and drops flow."""
CALM = wp.constant(0.1)
"""Share of sound speed × support that is viscosity between neighbours (Monaghan's α)."""
MORE_ROOM = 1.5
"""Length of a list over the longest at first."""


@wp.func
def spiky(r: Any, h: Any):
    """15/(π h⁶)(h − r)³ and minus its slope, 0 beyond h."""
    per = type(r)(1.0) / h
    left = wp.max(type(r)(1.0) - r * per, type(r)(0.0))
    scale = type(r)(4.774648292756860) * left * left * per * per * per
    return scale * left, type(r)(3.0) * scale * per


@wp.func
def crowding_by_walls(colliders: Any, body: int, x: Any, h: Any):
    """Share of the kernel around x that lies in colliders, and its slope."""
    none, one = type(h)(0.0), type(h)(1.0)
    share = none
    slope = x * none
    k = int(0)
    while k < colliders.count:
        row = body * colliders.count + k
        arm = x + colliders.place[row]
        turn, size = colliders.turn[row], colliders.size[row]
        d, n = distance_to(colliders.kind[k], turn, size, colliders.layout[k], colliders.values, arm, arm * none)
        a = wp.clamp(one - d / h, none, one)
        a4 = a * a * a * a
        covered = a4 * a * (type(h)(1.5) - a)
        slope = (one - covered) * slope - ((one - share) * a4 * (type(h)(7.5) - type(h)(6.0) * a) / h) * n
        share += covered - share * covered
        k += 1
    return share, slope


@wp.kernel
def find_crowding(
    first: int,
    nodes: wp.array(dtype=wp.int32),
    start: wp.array(dtype=wp.int32),
    count: wp.array(dtype=wp.int32),
    stride: int,
    index: wp.array(dtype=wp.int32),
    law: wp.array(dtype=wp.int32),
    bulk: wp.array(dtype=Any),
    half: wp.array(dtype=Any),
    volume: wp.array(dtype=Any),
    X: wp.array(dtype=Any),
    u: wp.array(dtype=Any),
    mass: wp.array(dtype=Any),
    body: wp.array(dtype=wp.int32),
    colliders: Any,
    at_rest: wp.array(dtype=Any),
    crowding: wp.array(dtype=Any),
    pressure: wp.array(dtype=Any),
    calm: wp.array(dtype=Any),
    force: wp.array(dtype=Any),
):
    """c_i/c⁰, p_i of those that are fluid with the push of the walls, and half of α√(Kρ). A pair has the mean of two
    supports, twice `half`."""
    i = nodes[first + wp.tid()]
    x = X[i] + u[i]
    half_i = half[i]
    alone, _steep = spiky(volume.dtype(0.0), half_i + half_i)
    total = volume[i] * alone
    entry = start[i]
    end = entry + count[i] * stride
    while entry < end:
        j = index[entry]
        W, _steep = spiky(wp.length(X[j] + u[j] - x), half_i + half[j])
        total += volume[j] * W
        entry += stride
    stiff = bulk[law[i]]
    slope = x * volume.dtype(0.0)
    if stiff > volume.dtype(0.0):
        walls, slope = crowding_by_walls(colliders, body[i], x, half_i + half_i)
        total += walls
    crowding[i] = total / at_rest[i]
    pressure[i] = stiff * wp.max(crowding[i] - volume.dtype(1.0), volume.dtype(0.0)) / at_rest[i]
    force[i] = force[i] - volume[i] * pressure[i] * slope
    calm[i] = volume.dtype(CALM) * volume.dtype(0.5) * wp.sqrt(stiff * mass[i] / volume[i])


@wp.kernel
def push_apart(
    first: int,
    nodes: wp.array(dtype=wp.int32),
    start: wp.array(dtype=wp.int32),
    count: wp.array(dtype=wp.int32),
    stride: int,
    index: wp.array(dtype=wp.int32),
    half: wp.array(dtype=Any),
    volume: wp.array(dtype=Any),
    X: wp.array(dtype=Any),
    u: wp.array(dtype=Any),
    v: wp.array(dtype=Any),
    pressure: wp.array(dtype=Any),
    calm: wp.array(dtype=Any),
    force: wp.array(dtype=Any),
):
    """Add the forces of the pressure, and of a viscosity along the line between neighbours."""
    i = nodes[first + wp.tid()]
    x = X[i] + u[i]
    half_i = half[i]
    v_i = v[i]
    p_i = pressure[i]
    calm_i = calm[i]
    total = x * volume.dtype(0.0)
    entry = start[i]
    end = entry + count[i] * stride
    while entry < end:
        j = index[entry]
        away = x - X[j] - u[j]
        h = half_i + half[j]
        r = wp.max(wp.length(away), volume.dtype(0.01) * h)
        per = volume.dtype(1.0) / r
        _W, slope = spiky(r, h)
        braking = (calm_i + calm[j]) * h * wp.dot(v_i - v[j], away) * per * per
        total += (volume[j] * slope * (p_i + pressure[j] - braking) * per) * away
        entry += stride
    force[i] = force[i] + volume[i] * total


@wp.kernel
def tie(
    first: int,
    nodes: wp.array(dtype=wp.int32),
    grip: wp.array(dtype=Any),
    volume: wp.array(dtype=Any),
    trace: wp.array(dtype=Any),
    hourglass: wp.array(dtype=Any),
):
    """c_i = β E v_i / tr A_i of hourglass control."""
    i = nodes[first + wp.tid()]
    hourglass[i] = wp.where(trace[i] > trace.dtype(0.0), grip[i] * volume[i] / trace[i], trace.dtype(0.0))


@wp.kernel
def find_farthest(
    first: int, nodes: wp.array(dtype=wp.int32), m: int, u: wp.array(dtype=Any), farthest: wp.array(dtype=wp.float64)
):
    """How far phyxels of each chunk have moved against the first of all."""
    c = first + wp.tid()
    along = u[nodes[0]]
    found = wp.float64(0.0)
    q = c * CHUNK
    end = wp.min(m, q + CHUNK)
    while q < end:
        found = wp.max(found, wp.float64(wp.length(u[nodes[q]] - along)))
        q += 1
    farthest[c] = found


class Melt:
    """The phyxels of all bodies that have melted parts, solid parts of theirs included."""

    def __init__(self, model: PhyxelModel, bodies: list[int]) -> None:
        self._model, self.bodies = model, bodies
        device, real = model.device, model.real
        self._nodes = np.concatenate([np.arange(*model.ranges[b]) for b in sorted(bodies)])
        n, m = len(model), len(self._nodes)
        self.crowding, self._pressure, self._calm, self._at_rest, self._half = (
            wp.zeros(n, dtype=real, device=device) for _ in range(5)
        )
        self._farthest = Shared((m + CHUNK - 1) // CHUNK, wp.float64, device)
        self._programs: dict[str, Program] = {}
        self._first_omega, self._first_spread = 0.0, 1.0
        self._lists = self._with_room(0)
        self._calibrate()

    @property
    def nodes(self) -> NDArray[np.int64]:
        """ascending, shape (m,)"""
        return self._nodes

    def _with_room(self, room: int) -> MovingLists:
        """Lists with more room, laid out anew."""
        model, nodes = self._model, self._nodes
        matter = model.matter
        pairs = find_pairs(matter.X.numpy()[nodes], matter.support.numpy()[nodes], model.device)
        room = max(room, int(MORE_ROOM * pairs.count.max()))
        model.lay_out(matter.near.pairs().replaced(nodes, pairs), nodes, room)
        self._programs = {}
        return MovingLists(nodes, matter.support, room, model.device)

    def _calibrate(self) -> None:
        """Supports and c⁰."""
        model = self._model
        self._half.assign(0.5 * model.matter.support.numpy())
        self._at_rest.assign(np.nan_to_num(model.rest_density, nan=1.0))
        self._run("weigh")

    def _spread(self) -> float:
        """Largest tr A⁻¹: stiffness grows with it, as neighbourhoods get thin."""
        return float(np.trace(self._model.matter.moments.inverse.numpy()[self._nodes], axis1=1, axis2=2).max())

    @property
    def rest_omega(self) -> float:
        """Bound of the largest frequency [1/s] of elastic stress and pressure. The pressure is twice as stiff at most,
        and grows with the square of the crowding as kernels get steeper."""
        if self._first_omega == 0.0:
            self._first_omega, self._first_spread = self._model.rest_frequency(), self._spread()
        crowded = max(1.0, float(self.crowding.numpy()[self._nodes].max()))
        thinner = self._spread() / self._first_spread if self._first_spread > 0 else 1.0  # 0: drops without stress
        return self._first_omega * math.sqrt((1 + 2 * crowded**2) * max(1.0, thinner))

    @property
    def numbers(self) -> NDArray[np.float64]:
        """What a checkpoint keeps of it."""
        return np.array([self._lists.room, self._first_omega, self._first_spread])

    def restore(self, pairs: PairList, numbers: NDArray[np.float64]) -> None:
        """Take over lists, and what `numbers` gave."""
        model, room = self._model, int(numbers[0])
        model.lay_out(pairs, self._nodes, room)
        self._lists = MovingLists(self._nodes, model.matter.support, room, model.device)
        self._first_omega, self._first_spread = numbers[1:].tolist()
        self._programs = {}
        self._calibrate()

    def outdate(self) -> None:
        """Laws have changed."""
        self._first_omega = 0.0

    def launches(self) -> list[Launch]:
        """Add the forces of the pressure to those there are."""
        model, matter, nodes = self._model, self._model.matter, self._lists.nodes
        m, laws = len(nodes), matter.laws
        lists, places = [nodes, *matter.lists], [self._half, matter.rest_volume, matter.X, model.u]
        walls = [matter.body, model.colliders]
        found = [self._at_rest, self.crowding, self._pressure, self._calm, model.force]
        return [
            Launch(find_crowding, m, [*lists, laws.of, laws.bulk, *places, model.mass, *walls, *found]),
            Launch(push_apart, m, [*lists, *places, model.v, self._pressure, self._calm, model.force]),
        ]

    def _run(self, name: str) -> None:
        if not self._programs:
            model, matter, nodes = self._model, self._model.matter, self._lists.nodes
            tying = [nodes, model.grip, matter.volume, matter.moments.trace, matter.hourglass]
            weigh = weighing(nodes, matter.X, matter.support, matter.near, matter.moments, THINNEST)
            moved = [nodes, len(nodes), model.u, self._farthest.array]
            launches = {
                "weigh": [*weigh, Launch(tie, len(nodes), tying)],
                "moved": [Launch(find_farthest, len(self._farthest.host), moved, work=CHUNK // 8)],
            }
            dev.prepare([item for items in launches.values() for item in items], model.device)
            self._programs = {key: Program(items, model.device) for key, items in launches.items()}
        self._programs[name].run()

    def moved(self) -> bool:
        """Whether phyxels have moved so far against each other that neighbours are to be found anew."""
        self._run("moved")
        return not float(self._farthest.pull().max()) <= FARTHEST

    def absorb(self) -> NDArray[np.float64]:
        """Absorb the deformation and find neighbours anew; by how much the origin has moved, in spacings, (3,)."""
        model = self._model
        shift = absorb(model, self._lists.nodes)
        longest = self._lists.find(model.matter.X, model.matter.near)
        if longest > self._lists.room:
            self._lists = self._with_room(int(MORE_ROOM * longest))
        self._run("weigh")
        return shift
