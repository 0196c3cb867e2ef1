# mypy: disable-error-code="valid-type,no-untyped-def"
"""The phyxel model (M04): point masses with elastic forces, moved by leap-frog with a computed stable step.

All phyxel bodies share one set of arrays; a body is a range of it. Each body computes in units of its own mean node
spacing, about an origin that its `Body` keeps in double.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import warp as wp
from numpy.typing import NDArray

from phyxel import device as dev
from phyxel.contact.colliders import Ground, rebound
from phyxel.device import Launch, Program, Shared
from phyxel.material import Material, rotated_elasticity
from phyxel.mls.moments import choose_supports
from phyxel.mls.neighbours import PairList
from phyxel.mls.seen import Sees
from phyxel.models.elasticity import split_law
from phyxel.models.forces import HOURGLASS, Forces, Matter, flow
from phyxel.models.implicit import Implicit
from phyxel.models.reductions import CHUNK, find_fastest, sum_products

if TYPE_CHECKING:
    from phyxel.contact.bodies import BodyContact

wp.set_module_options(dev.KERNEL_OPTIONS)

Floats = NDArray[np.floating]

SAFETY = 0.7
"""Share of the stability limit to step with. 0.9 blows up by nonlinear resonance near ωΔt = √3."""
TOUCHING = wp.constant(1.0e-4)
"""Gap to a collider, in spacings, below which a phyxel counts as touching."""
FARTHEST_MOVE = 0.5
"""No phyxel moves farther than this share of the node spacing in one step."""

MANDEL = np.sqrt([1.0, 1.0, 1.0, 2.0, 2.0, 2.0])
"""Turns a 6 × 6 elasticity into one whose eigenvalues are the tensor's."""

KICK, DRIFT, EXTRA_DRAG, PER_OMEGA_SQUARED = range(4)
"""Entries of the clock: what changes from step to step, kept on the device so that captured launches see it."""


@wp.kernel
def move(
    first: int,
    X: wp.array(dtype=Any),
    mass: wp.array(dtype=Any),
    reach: wp.array(dtype=Any),
    body: wp.array(dtype=wp.int32),
    acceleration: wp.array(dtype=Any),
    damping: wp.array(dtype=Any),
    drag: wp.array(dtype=Any),
    clock: wp.array(dtype=Any),
    hold: wp.array(dtype=wp.int32),
    hold_velocity: wp.array(dtype=Any),
    planes: int,
    plane_normal: wp.array(dtype=Any),
    plane_offset: wp.array(dtype=Any),
    friction: wp.array(dtype=Any),
    restitution: wp.array(dtype=Any),
    force: wp.array(dtype=Any),
    gradient: wp.array(dtype=Any),
    u: wp.array(dtype=Any),
    v: wp.array(dtype=Any),
    y: wp.array(dtype=Any),
):
    """Leap-frog: kick, drift, then what the colliders say. Also y = u + βv for the damped force.

    A collider meets the image J·ball(reach) of the ball around a phyxel that just touches the surface.
    """
    i = first + wp.tid()
    b = body[i]
    slot = hold[i]
    if slot >= 0:
        v[i] = hold_velocity[slot]
        u[i] = u[i] + clock[DRIFT] * v[i]
        y[i] = u[i] + damping[b] * v[i]
        return
    kick = clock[KICK]
    one = type(kick)(1.0)
    slowing = type(kick)(0.5) * kick * (drag[b] + clock[EXTRA_DRAG])
    vi = ((one - slowing) * v[i] + kick * (force[i] / mass[i] + acceleration[b])) / (one + slowing)
    ui = u[i] + clock[DRIFT] * vi
    k = int(0)
    while k < planes:
        n = plane_normal[k]
        touch = reach[i] * wp.length(n + wp.transpose(gradient[i]) * n)
        gap = plane_offset[b * planes + k] + wp.dot(n, X[i] + ui) - touch
        # What rests on the plane is met a little before it touches, or the last half kick would leave it falling.
        if gap < type(kick)(TOUCHING):
            change = rebound(vi, n, friction[k], restitution[k]) - vi
            vi += change
            # What friction stopped has not moved along the plane either, or it would creep down every slope.
            ui += clock[DRIFT] * (change - wp.dot(change, n) * n) - wp.min(gap, type(kick)(0.0)) * n
        k += 1
    v[i] = vi
    u[i] = ui
    y[i] = ui + damping[b] * vi


@wp.kernel
def iterate_power(
    first: int,
    mass: wp.array(dtype=Any),
    clock: wp.array(dtype=Any),
    change: wp.array(dtype=Any),
    ripple: wp.array(dtype=Any),
    last_ripple: wp.array(dtype=Any),
):
    """One power iteration p ← M⁻¹K p / ω²; `change` is −K p."""
    i = first + wp.tid()
    last_ripple[i] = ripple[i]
    ripple[i] = -clock[PER_OMEGA_SQUARED] / mass[i] * change[i]


@wp.kernel
def shift_bodies(first: int, body: wp.array(dtype=wp.int32), amount: wp.array(dtype=Any), u: wp.array(dtype=Any)):
    """u ← u − amount of its body."""
    i = first + wp.tid()
    u[i] = u[i] - amount[body[i]]


@dataclass(frozen=True)
class Part:
    """What the model needs to know of one body; lengths in units of its mean node spacing."""

    positions: Floats
    """about the body's origin, shape (n, 3)"""
    velocities: Floats
    """[1/s], shape (n, 3)"""
    volumes: Floats
    """shape (n,)"""
    reach: Floats
    """shape (n,)"""
    unit: float
    """the mean node spacing [m]"""
    support: float
    """support radius over the mean distance r̄ to the ten nearest"""
    sees: Sees | None = None
    """whether positions see each other inside the body"""


class PhyxelModel:
    """The phyxels of all bodies. `real` is the precision of a step; tests also run it in double."""

    def __init__(self, parts: Sequence[Part], device: wp.Device, real: Any = wp.float32) -> None:
        self.device, self.real = device, real
        self.ranges = _ranges([len(part.positions) for part in parts])
        self.units = [part.unit for part in parts]
        found = [choose_supports(part.positions, part.support, device, part.sees) for part in parts]
        self.support = np.concatenate([support for support, _ in found])
        self._volume = np.concatenate([part.volumes for part in parts])
        matter = Matter.made(
            positions=np.concatenate([part.positions for part in parts]),
            support=self.support,
            volume=self._volume,
            body=np.repeat(np.arange(len(parts)), [len(part.positions) for part in parts]),
            pairs=PairList.joined([pairs for _, pairs in found]),
            real=real,
            device=device,
        )
        self.matter = matter
        self.forces = Forces.over(matter)
        vector, n, bodies = matter.X.dtype, len(matter.X), len(parts)
        self.mass = wp.ones(n, dtype=real, device=device)
        self._reach = wp.array(np.concatenate([part.reach for part in parts]), dtype=real, device=device)
        self._acceleration = Shared(bodies, vector, device)
        self._damping = wp.zeros(bodies, dtype=real, device=device)
        self._drag = wp.zeros(bodies, dtype=real, device=device)
        self._clock = Shared(4, real, device)
        self._yield_strain, self._creep, self._max_strain = (
            wp.zeros(bodies, dtype=real, device=device) for _ in range(3)
        )
        self._plastic = np.zeros(bodies, bool)
        self._hold = wp.full(n, value=-1, dtype=wp.int32, device=device)
        self._hold_velocity = Shared(1, vector, device)
        self._planes: list[Shared] = []
        self._programs: dict[str, Program] = {}
        self._implicit: Implicit | None = None
        self.contact: BodyContact | None = None
        """between bodies, and of a body with itself"""
        self.meet([], np.zeros((bodies, 0)))

        self.u = wp.zeros(n, dtype=vector, device=device)
        self.v = wp.array(np.concatenate([part.velocities for part in parts]), dtype=vector, device=device)
        self.force = wp.zeros(n, dtype=vector, device=device)
        self._y = wp.zeros(n, dtype=vector, device=device)
        self._ripple = wp.zeros(n, dtype=vector, device=device)
        self._last_ripple = wp.zeros(n, dtype=vector, device=device)
        self._change = wp.zeros(n, dtype=vector, device=device)
        chunks = (n + CHUNK - 1) // CHUNK
        self._partial = Shared(chunks, wp.float64, device)
        self._stiffening = Shared(chunks, wp.float64, device)
        self._owed = 0.0
        self._rest_omega = 0.0
        self._sounds = np.zeros(bodies)
        self._most_damping = self._most_drag = 0.0
        self._forces_known = False
        self._fastest: float | None = None
        """as last surveyed, until something moves"""

    def __len__(self) -> int:
        return len(self.matter.X)

    def place_of_nodes(self) -> Floats:
        """x of all phyxels about a common origin [m], shape (n, 3)."""
        per_node = np.repeat(np.arange(len(self.ranges)), [high - low for low, high in self.ranges])
        origins = np.zeros((len(self.ranges), 3)) if self.contact is None else self.contact.offsets
        x = self.matter.X.numpy().astype(np.float64) + self.u.numpy()
        return origins[per_node] + np.array(self.units)[per_node, None] * x

    # What an integrator sees

    @property
    def hold(self) -> wp.array:
        return self._hold

    @property
    def hold_velocity(self) -> wp.array:
        return self._hold_velocity.array

    @property
    def acceleration(self) -> wp.array:
        return self._acceleration.array

    @property
    def damping(self) -> wp.array:
        return self._damping

    @property
    def drag(self) -> wp.array:
        return self._drag

    @property
    def reach(self) -> wp.array:
        return self._reach

    @property
    def planes(self) -> list[Shared]:
        return self._planes

    # What the world sets

    def set_material(self, body: int, material: Material, rotation: NDArray[np.float64]) -> None:
        """Give one body its law and masses. In the body's units a density is ρ·unit²."""
        low, high = self.ranges[body]
        # Split before turning: the parts of a turned law would be others at large strain.
        reduced, k_v, k_b = split_law(material.elasticity)
        C = rotated_elasticity(reduced, rotation)
        _write(self.matter.stiffness, body, C[None])
        _write(self.matter.k_v, body, [k_v])
        _write(self.matter.k_b, body, [k_b])
        # Engineering shear counts the three shear terms double.
        _write(self.matter.shear_norm, body, [np.linalg.eigvalsh(C * np.outer(MANDEL, MANDEL)).max()])
        _write(self._damping, body, [material.damping])
        _write(self._drag, body, [material.drag])
        # Single precision has no use for an infinite yield.
        _write(self._yield_strain, body, [min(material.flow_strain, 1e6)])
        _write(self._creep, body, [min(material.creep, 1e6)])
        _write(self._max_strain, body, [material.max_strain])
        self._plastic[body] = math.isfinite(material.flow_strain)
        self._sounds[body] = np.sqrt(material.elasticity.diagonal().max() / material.density) / self.units[body]
        volume = self._volume[low:high]
        _write(self.mass, low, material.density * self.units[body] ** 2 * volume)
        # A degenerate phyxel has no stress, but the hourglass term still ties it to its neighbours.
        trace = self.matter.moments.trace.numpy()[low:high]
        c = np.divide(HOURGLASS * material.young * volume, trace, out=np.zeros(high - low), where=trace > 0)
        _write(self.matter.hourglass, low, c)
        self._outdate()

    def set_acceleration(self, body: int, acceleration: Floats) -> None:
        """Gravity and pushes on a body, in its units [1/s²]."""
        self._acceleration.host[body] = acceleration
        self._acceleration.push()

    def set_holds(self, hold: NDArray[np.integer], slots: int) -> None:
        """Which hold each phyxel follows (-1: none), shape (n,)."""
        self._hold.assign(hold.astype(np.int32))
        if slots > len(self._hold_velocity.host):
            self._hold_velocity = Shared(2 * slots, self.matter.X.dtype, self.device)
            self._clear_programs()

    def set_hold_velocities(self, velocities: Floats) -> None:
        """How fast each hold moves, in units of the held body [1/s], shape (slots, 3)."""
        self._hold_velocity.host[: len(velocities)] = velocities
        self._hold_velocity.push()

    def meet(self, grounds: Sequence[Ground], offsets: Floats) -> None:
        """Planes to stay above: `offsets[body, plane]` is the height of the body's origin over it, in its units."""
        vector, real = self.matter.X.dtype, self.real
        columns: list[tuple[Any, Any]] = [
            (np.array([ground.normal for ground in grounds]).reshape(-1, 3), vector),
            (offsets.reshape(-1), real),
            (np.array([ground.friction for ground in grounds]), real),
            (np.array([ground.restitution for ground in grounds]), real),
        ]
        if [len(column) for column, _ in columns] != [len(shared.host) for shared in self._planes]:
            self._planes = [Shared(len(column), kind, self.device) for column, kind in columns]
            self._clear_programs()
        for shared, (column, _) in zip(self._planes, columns, strict=True):
            shared.host[:] = column
            shared.push()

    def _outdate(self) -> None:
        """The law has changed: forces, frequency and the choice of kernels are to be found anew."""
        self._forces_known = False
        self._fastest = None
        self._rest_omega = 0.0
        self._most_damping, self._most_drag = float(self._damping.numpy().max()), float(self._drag.numpy().max())
        self._clear_programs()

    def contacts_moved(self) -> None:
        """What contact works with is elsewhere in memory."""
        self._clear_programs()

    def _clear_programs(self) -> None:
        self._programs.clear()
        if self._implicit is not None:
            self._implicit.outdate()

    # Stepping

    def _force_launches(self) -> list[Launch]:
        if self._most_damping > 0:
            return self.forces.damped(self.u, self._y, self.force)
        return self.forces.elastic(self.u, self.force)

    def flow_launches(self, step: wp.array, slot: int) -> list[Launch]:
        """Plastic flow over a step of `step[slot]` [s] at the gradient of the last force, if any body can flow."""
        laws = [self.matter.body, self._yield_strain, self._creep, self._max_strain]
        inputs = [*laws, step, slot, self.forces.gradient, self.matter.plastic]
        return [Launch(flow, len(self), inputs)] if self._plastic.any() else []

    def _launches(self) -> dict[str, list[Launch]]:
        n, matter, chunks = len(self), self.matter, len(self._partial.host)
        planes = [shared.array for shared in self._planes]
        move_inputs = [
            matter.X, self.mass, self._reach, matter.body, self._acceleration.array, self._damping, self._drag,
            self._clock.array, self._hold, self._hold_velocity.array, len(planes[0]), *planes,
            self.force, self.forces.gradient, self.u, self.v, self._y,
        ]  # fmt: skip
        moving = [Launch(move, n, move_inputs)]
        touching = self.contact.launches(self._clock.array, DRIFT, self._y) if self.contact is not None else []
        inner = self._force_launches() + self.flow_launches(self._clock.array, DRIFT)
        power = [self.mass, self._clock.array, self._change, self._ripple, self._last_ripple]
        norm, last_norm = (
            [Launch(sum_products, chunks, [n, self.mass, ripple, ripple, self._partial.array], work=CHUNK // 8)]
            for ripple in (self._ripple, self._last_ripple)
        )
        return {
            "force": self.forces.elastic(self.u, self.force),
            "move": moving,
            "substep": moving + inner,
            "touching move": moving + touching,
            "touching substep": moving + touching + inner,
            "survey": [
                Launch(find_fastest, chunks, [n, self.v, self._partial.array], work=CHUNK // 8),
                self.forces.stiffening(self._stiffening.array),
            ],
            "tangent": self.forces.tangent(self._ripple, self._change),
            "power": [*self.forces.tangent(self._ripple, self._change), Launch(iterate_power, n, power)],
            "norm": norm,
            "last norm": last_norm,
        }

    def _program(self, name: str) -> Program:
        if not self._programs:
            launches = self._launches()
            # Also what runs only now and then: a kernel that comes later would have its module compiled again.
            rare = [
                self.forces.energy(self.u, self.mass),
                self.forces.stress(self.forces.gradient),
                Launch(shift_bodies, len(self), [self.matter.body, self.u, self.u]),
                *self.flow_launches(self._clock.array, DRIFT),
            ]
            dev.prepare([*rare, *(item for items in launches.values() for item in items)], self.device)
            self._programs = {key: Program(items, self.device) for key, items in launches.items()}
        return self._programs[name]

    def _set_clock(
        self, kick: float = 0.0, drift: float = 0.0, drag: float = 0.0, per_omega_squared: float = 0.0
    ) -> None:
        self._clock.host[:] = (kick, drift, drag, per_omega_squared)
        self._clock.push()

    def stable_step(self) -> float:
        """Δt = 0.7·(2/ω)(√(1 + ξ²) − ξ), ξ = ½(α/ω + βω) [s]; less where a phyxel would move half a spacing.

        ω comes from above: that at rest times the root of the largest stiffening. A power iteration at every frame
        would cost more and come from below: warm from the frame before, it stays in the corner that was stiffest then
        and does not see another one being crushed.
        """
        self.ensure_forces()
        at_rest = self.rest_frequency()
        fastest = self.fastest()
        omega = at_rest * float(np.sqrt(max(self._stiffening.pull().max(), 1.0)))
        xi = 0.5 * (self._most_drag / omega + self._most_damping * omega)
        step = SAFETY * (2 / omega) / (np.sqrt(1 + xi * xi) + xi)  # the same without cancellation
        return float(min(step, FARTHEST_MOVE / fastest) if fastest > 0 else step)

    def fastest(self) -> float:
        """Largest speed of a phyxel, in spacings per second; NaN if any is none."""
        if self._fastest is None:
            self._program("survey").run()
            self._fastest = float(self._partial.pull().max())
        return self._fastest

    def rest_frequency(self) -> float:
        """Largest frequency of M⁻¹K in the reference shape [1/s], nothing held, by power iteration to 0.5 %."""
        if self._rest_omega == 0.0:
            gradient = self.forces.gradient.numpy().copy()
            self.forces.gradient.zero_()
            self._rest_omega = self._iterate_power()
            self.forces.gradient.assign(gradient)
        return self._rest_omega

    def _iterate_power(self) -> float:
        ripple = np.random.default_rng(1).standard_normal((len(self), 3))
        self._ripple.assign(ripple.astype(self.v.numpy().dtype))
        # Sound crosses a spacing in 1/ω, about: from there ten unnormalised iterations neither over- nor underflow.
        omega = float(self._sounds.max())
        for iterations in (1, 4, *[10] * 20):
            before = omega
            self._set_clock(per_omega_squared=1.0 / omega**2)
            self._program("power").run(iterations)
            omega *= np.sqrt(self._norm("norm") / self._norm("last norm"))
            if abs(omega - before) < 0.005 * omega:
                break
        return float(omega)

    def _norm(self, which: str) -> float:
        self._program(which).run()
        return float(np.sqrt(self._partial.pull().sum()))

    def ensure_forces(self) -> None:
        """Forces and gradients belong to the displacements."""
        if not self._forces_known:
            self._program("force").run()
            self._forces_known = True
            self._fastest = None

    @property
    def _touching(self) -> str:
        """How programs are called that see to contact."""
        return "touching " if self.contact is not None and self.contact.possible else ""

    def step(self, dt: float, substeps: int, extra_drag: float = 0.0) -> None:
        """Take substeps of dt. Velocities are half a step behind then, until `synchronise`; other steps may follow."""
        self.ensure_forces()
        self._fastest = None
        first_kick = self._owed + 0.5 * dt
        if first_kick != dt:
            self._set_clock(first_kick, dt, extra_drag)
            self._program(self._touching + "substep").run()
            substeps -= 1
        if substeps:
            self._set_clock(dt, dt, extra_drag)
            self._program(self._touching + "substep").run(substeps)
        self._owed = 0.5 * dt

    def step_implicitly(self, dt: float, substeps: int) -> None:
        """Take implicit Euler steps of dt; velocities are those of the positions."""
        self.synchronise()
        for _ in range(substeps):
            self.implicit.step(dt)
        self._forces_known = False
        self._fastest = None

    @property
    def implicit(self) -> Implicit:
        """The implicit integrator, made when first needed."""
        if self._implicit is None:
            self._implicit = Implicit(self)
        return self._implicit

    def synchronise(self, extra_drag: float = 0.0) -> None:
        """Bring velocities to the time of the positions: the half kick that `step` still owes."""
        if self._owed:
            self._fastest = None
            self._set_clock(self._owed, 0.0, extra_drag)
            self._program(self._touching + "move").run()
            self._owed = 0.0

    def relaxation_frequency(self) -> float:
        """Rayleigh quotient √(v·Kv / v·Mv) of the motion [1/s]: the slowest mode, once it alone is left."""
        v, mass = self.v.numpy().astype(np.float64), self.mass.numpy().astype(np.float64)
        size = float(np.abs(v).max())
        if size == 0.0:
            return 0.0
        self._ripple.assign(self.v.numpy() / size)
        self._program("tangent").run()
        change = self._change.numpy().astype(np.float64)
        free = (self._hold.numpy() < 0)[:, None]
        quotient = -float((free * v / size * change).sum()) / float((mass[:, None] * v * v).sum() / size**2)
        return float(np.sqrt(max(quotient, 0.0)))

    def stop(self) -> None:
        """Set all velocities to zero."""
        self.v.zero_()
        self._fastest = None

    def recentre(self, body: int, amount: Floats) -> None:
        """u ← u − amount for one body, whose origin moves by as much."""
        amounts = np.zeros((len(self.ranges), 3))
        amounts[body] = amount
        shift = wp.array(amounts, dtype=self.matter.X.dtype, device=self.device)
        dev.launch(shift_bodies, len(self), [self.matter.body, shift, self.u], self.device, split=False)

    # Reading

    def measure(self) -> tuple[Floats, Floats]:
        """Elastic energy [Pa·spacing³] and volume ratio |J| of every phyxel, each of shape (n,)."""
        self.ensure_forces()
        energy = wp.zeros(len(self), dtype=self.real, device=self.device)
        item = self.forces.energy(self.u, energy)
        dev.launch(item.kernel, item.count, item.inputs, self.device)
        J = self.forces.gradient.numpy().astype(np.float64) + np.eye(3)
        return energy.numpy().astype(np.float64), np.linalg.det(J)

    def stress(self) -> Floats:
        """Cauchy stress [Pa], shape (n, 3, 3)."""
        self.ensure_forces()
        stress = wp.zeros(len(self), dtype=self.forces.gradient.dtype, device=self.device)
        item = self.forces.stress(stress)
        dev.launch(item.kernel, item.count, item.inputs, self.device)
        return stress.numpy()

    def state(self) -> dict[str, NDArray[Any]]:
        """Everything that varies, so that a restored run goes on with the same bits."""
        arrays = self._state_arrays()
        known = {"forces_known": np.array(self._forces_known)}
        return {name: array.numpy().copy() for name, array in arrays.items()} | known

    def restore(self, state: dict[str, NDArray[Any]]) -> None:
        """Take over what `state` gave."""
        if "contact" in state:
            self._implicit = self.implicit
        for name, array in self._state_arrays().items():
            array.assign(state[name])
        self._forces_known = bool(state["forces_known"])
        self._fastest = None

    def _state_arrays(self) -> dict[str, wp.array]:
        return {
            "u": self.u,
            "v": self.v,
            "force": self.force,
            "gradient": self.forces.gradient,
            "plastic": self.matter.plastic,
        } | ({} if self._implicit is None else self._implicit.state)


def _ranges(counts: Sequence[int]) -> list[tuple[int, int]]:
    ends = np.cumsum([0, *counts]).tolist()
    return list(itertools.pairwise(ends))


def _write(array: wp.array, first: int, values: Any) -> None:
    """array[first : first + len(values)] = values, from the host."""
    values = np.asarray(values)
    array[first : first + len(values)].assign(values)
