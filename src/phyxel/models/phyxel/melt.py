# mypy: disable-error-code="valid-type,no-untyped-def"
"""Melts: phyxels that flow past each other (M04 §4.2, physics 7).

Their stored strain fades (`forces.flow`); their reference shape is absorbed and their neighbours are found anew
whenever they have moved some way against each other. Pressure keeps them apart: smoothed particle hydrodynamics on the
number density c_i = Σ_j v_j W_ij of the rest volumes v, with the spiky kernel W = 15/(π h⁶)(h − r)³:

    U = Σ_i ½ K v_i max(c_i/c⁰ − 1, 0)²,   f_i = −v_i Σ_j v_j (p_i + p_j) ∇W_ij,   p_i = K max(c_i/c⁰ − 1, 0)/c⁰

c⁰ is what a phyxel inside a lattice has: a bare sum is 1.13 there, 0.94 at a face, 0.67 at a corner. What was more
crowded when it melted is at rest as it is until it finds more room. Only what is crowded pushes. A force from an energy
keeps momentum, angular momentum and energy.

A collider counts as if it were full of melt, or a film would be pressed onto its surface until it is as crowded as the
inside. Of a plane at the distance d the kernel covers B = 3/2 a⁵ − a⁶, a = 1 − d/h, of several 1 − Π(1 − B).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import warp as wp
from numpy.typing import NDArray

from phyxel import device as dev
from phyxel.contact.table import distance_to
from phyxel.device import Launch, Program, Shared, packed
from phyxel.mls.moments import weighing
from phyxel.mls.neighbours import MovingLists, PairList, find_pairs
from phyxel.models.phyxel.crowds import kernel_of, lattice_density
from phyxel.models.phyxel.reference_shape import absorb
from phyxel.models.reductions import CHUNK
from phyxel.structs import as_struct

if TYPE_CHECKING:
    from phyxel.models.phyxel.model import PhyxelModel

wp.set_module_options(dev.KERNEL_OPTIONS)

Floats = NDArray[np.float64]

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
    """15/(π h⁶)(h − r)³ and minus its slope, 0 beyond h (physics 7.4)."""
    per = type(r)(1.0) / h
    left = wp.max(type(r)(1.0) - r * per, type(r)(0.0))
    scale = type(r)(4.774648292756860) * left * left * per * per * per
    return scale * left, type(r)(3.0) * scale * per


@wp.func
def crowding_by_walls(colliders: Any, body: int, x: Any, h: Any):
    """Share of the kernel around x that lies in colliders, and its slope (physics 7.5)."""
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
def find_crowding(first: int, nodes: wp.array(dtype=wp.int32), matter: Any, now: Any, melt: Any, colliders: Any):
    """c_i/c⁰, p_i of those that are fluid with the push of the walls, and half of α√(Kρ). A pair has the mean of two
    supports, twice `half` (physics 7.4)."""
    packed(matter.near.index)
    packed(matter.X)
    packed(now.u)
    packed(now.rest_volume)
    packed(melt.half)
    i = nodes[first + wp.tid()]
    x = matter.X[i] + now.u[i]
    half_i = melt.half[i]
    volume_i = now.rest_volume[i]
    none = half_i * type(half_i)(0.0)
    alone, _steep = spiky(none, half_i + half_i)
    total = volume_i * alone
    entry = matter.near.start[i]
    end = entry + matter.near.count[i] * matter.near.stride
    while entry < end:
        j = matter.near.index[entry]
        W, _steep = spiky(wp.length(matter.X[j] + now.u[j] - x), half_i + melt.half[j])
        total += now.rest_volume[j] * W
        entry += matter.near.stride
    stiff = matter.laws.bulk[matter.laws.of[i]]
    slope = x * none
    if stiff > none:
        walls, slope = crowding_by_walls(colliders, matter.body[i], x, half_i + half_i)
        total += walls
    at_rest = type(half_i)(matter.rest_density[i])
    crowded = total / at_rest
    melt.crowding[i] = crowded
    melt.pressure[i] = stiff * wp.max(crowded - type(half_i)(1.0), none) / at_rest
    now.force[i] = now.force[i] - volume_i * melt.pressure[i] * slope
    melt.calm[i] = type(half_i)(CALM) * type(half_i)(0.5) * wp.sqrt(stiff * matter.mass[i] / volume_i)


@wp.kernel
def push_apart(first: int, nodes: wp.array(dtype=wp.int32), matter: Any, now: Any, melt: Any):
    """Add the forces of the pressure, and of a viscosity along the line between neighbours (physics 7.4, 7.6)."""
    packed(matter.near.index)
    packed(matter.X)
    packed(now.u)
    packed(now.v)
    packed(now.rest_volume)
    packed(melt.half)
    packed(melt.pressure)
    packed(melt.calm)
    i = nodes[first + wp.tid()]
    x = matter.X[i] + now.u[i]
    half_i = melt.half[i]
    v_i = now.v[i]
    p_i = melt.pressure[i]
    calm_i = melt.calm[i]
    total = x * type(half_i)(0.0)
    entry = matter.near.start[i]
    end = entry + matter.near.count[i] * matter.near.stride
    while entry < end:
        j = matter.near.index[entry]
        away = x - matter.X[j] - now.u[j]
        h = half_i + melt.half[j]
        r = wp.max(wp.length(away), type(half_i)(0.01) * h)
        per = type(half_i)(1.0) / r
        _W, slope = spiky(r, h)
        braking = (calm_i + melt.calm[j]) * h * wp.dot(v_i - now.v[j], away) * per * per
        total += (now.rest_volume[j] * slope * (p_i + melt.pressure[j] - braking) * per) * away
        entry += matter.near.stride
    now.force[i] = now.force[i] + now.rest_volume[i] * total


@wp.kernel
def give_room(first: int, nodes: wp.array(dtype=wp.int32), matter: Any, melt: Any):
    """c⁰ of a phyxel that was crowded as it melted falls with its c to that of a lattice (physics 7.4)."""
    i = nodes[first + wp.tid()]
    now = matter.rest_density[i] * wp.min(wp.float64(melt.crowding[i]), wp.float64(1.0))
    matter.rest_density[i] = wp.max(now, melt.even[i])


@wp.kernel
def tie(first: int, nodes: wp.array(dtype=wp.int32), matter: Any):
    """c_i = β E v_i / tr A_i of hourglass control (physics 4.1)."""
    i = nodes[first + wp.tid()]
    trace = matter.moments.trace[i]
    none = type(trace)(0.0)
    matter.hourglass[i] = wp.where(trace > none, matter.grip[i] * matter.volume[i] / trace, none)


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


@dataclass
class MeltArrays:
    """What the pressure of a melt works with, shape (n,) each."""

    half: wp.array
    """half the support"""
    even: wp.array
    """c⁰ of a lattice"""
    crowding: wp.array
    """c_i/c⁰"""
    pressure: wp.array
    """p_i [Pa]"""
    calm: wp.array
    """half of α√(Kρ): viscosity"""


class Melt:
    """The phyxels of all bodies that have melted parts, solid parts of theirs included."""

    def __init__(self, model: PhyxelModel, bodies: list[int]) -> None:
        self._model, self.bodies = model, bodies
        device, real = model.device, model.real
        self._nodes = np.concatenate([np.arange(*model.ranges[b]) for b in sorted(bodies)])
        n, m = len(model), len(self._nodes)
        kinds = (real, wp.float64, real, real, real)
        self._arrays = MeltArrays(*(wp.zeros(n, dtype=kind, device=device) for kind in kinds))
        self._farthest = Shared((m + CHUNK - 1) // CHUNK, wp.float64, device)
        self._programs: dict[str, Program] = {}
        self._first_omega, self._first_spread = 0.0, 1.0
        self._lists = self._with_room(0)
        self._calibrate()

    @property
    def crowding(self) -> wp.array:
        """c_i/c⁰, shape (n,)"""
        return self._arrays.crowding

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
        h, volume = model.matter.support.numpy(), model.now.rest_volume.numpy()
        self._arrays.half.assign(0.5 * h)
        self._arrays.even.assign(lattice_density(h / np.cbrt(volume)))
        self._run("weigh")

    def _spread(self) -> float:
        """Largest tr A⁻¹: stiffness grows with it, as neighbourhoods get thin."""
        return float(np.trace(self._model.matter.moments.inverse.numpy()[self._nodes], axis1=1, axis2=2).max())

    @property
    def rest_omega(self) -> float:
        """Bound of the largest frequency [1/s] of elastic stress and pressure. The pressure is twice as stiff at most,
        and grows with the square of the crowding as kernels get steeper."""
        if self._first_omega == 0.0:
            self._first_omega, self._first_spread = self._model.vibration.at_rest(), self._spread()
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

    def hydrostatic(self) -> NDArray[np.float64]:
        """P [Pa] of the forces last found, shape (n,), 0 in what is solid (physics 7.4): −∇P pushes as they do.

        Phyxels as crowded as ĉ = c/c⁰ push as if P = κ K (ĉ − 1) ĉ c/c_lattice did. κ is what they feel of c: walls and
        neighbours, but not themselves. Where they lie at random each has its own ĉ, some tenths of P apart, and forces
        see only means over the kernel: so does this.
        """
        now, matter, arrays = self._model.now, self._model.matter, self._arrays
        x, volume, half, crowding, at_rest, even = (
            array.numpy().astype(np.float64)
            for array in (matter.X, now.rest_volume, arrays.half, arrays.crowding, matter.rest_density, arrays.even)
        )
        x += now.u.numpy()
        bulk = matter.laws.bulk.numpy().astype(np.float64)[matter.laws.of.numpy()]
        fluid = np.isin(np.arange(len(x)), self._nodes) & (bulk > 0)
        pairs = matter.near.pairs()
        i, j = np.repeat(np.arange(len(x)), pairs.count), pairs.index
        i, j = i[fluid[i]], j[fluid[i]]
        push, W = kernel_of(np.linalg.norm(x[i] - x[j], axis=1), half[i] + half[j])
        alone = np.where(fluid, volume * kernel_of(np.zeros(len(x)), 2 * half)[1], 0)
        total = alone + np.bincount(i, volume[j] * W, minlength=len(x))
        c = np.where(fluid, crowding * at_rest, 1)
        felt = np.bincount(i, volume[j] * push / 3, minlength=len(x)) + c - total
        P = np.where(fluid, felt * bulk * np.maximum(crowding - 1, 0) * crowding / even, 0)
        around = alone * P + np.bincount(i, volume[j] * W * P[j], minlength=len(x))
        total = alone + np.bincount(i, volume[j] * W * fluid[j], minlength=len(x))
        return np.divide(around, total, out=np.zeros(len(x)), where=fluid)

    def launches(self) -> list[Launch]:
        """Add the forces of the pressure to those there are."""
        model, nodes = self._model, self._lists.nodes
        what = [nodes, as_struct(model.matter), as_struct(model.now), as_struct(self._arrays)]
        return [Launch(find_crowding, len(nodes), [*what, model.colliders]), Launch(push_apart, len(nodes), what)]

    def _run(self, name: str) -> None:
        if not self._programs:
            model, matter, nodes = self._model, self._model.matter, self._lists.nodes
            weigh = weighing(nodes, matter.X, matter.support, matter.near, matter.moments, THINNEST)
            moved = [nodes, len(nodes), model.u, self._farthest.array]
            launches = {
                "weigh": [*weigh, Launch(tie, len(nodes), [nodes, as_struct(matter)])],
                "room": [Launch(give_room, len(nodes), [nodes, as_struct(matter), as_struct(self._arrays)])],
                "moved": [Launch(find_farthest, len(self._farthest.host), moved, work=CHUNK // 8)],
            }
            dev.prepare([item for items in launches.values() for item in items], model.device)
            self._programs = {key: Program(items, model.device) for key, items in launches.items()}
        self._programs[name].run()

    def moved(self) -> bool:
        """Whether phyxels have moved so far against each other that neighbours are to be found anew."""
        self._run("moved")
        return not float(self._farthest.pull().max()) <= FARTHEST

    def steps_until_flowed(self, step: float) -> int:
        """Steps of so long [s] in which no phyxel can pass another: then neighbours are looked at."""
        fastest = self._model.fastest()
        return 1 if not fastest > 0 else max(1, int(min(FARTHEST / (fastest * step), 1e6)))

    def absorb(self) -> NDArray[np.float64]:
        """Absorb the deformation and find neighbours anew; by how much the origin has moved, in spacings, (3,)."""
        model = self._model
        shift = absorb(model, self._lists.nodes)
        self._run("room")
        longest = self._lists.find(model.matter.X, model.matter.near)
        if longest > self._lists.room:
            self._lists = self._with_room(int(MORE_ROOM * longest))
        self._run("weigh")
        return shift
