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
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from phyxel import device as dev
from phyxel.contact.colliders import Collider, Ground
from phyxel.contact.table import ColliderTable, carry_colliders
from phyxel.device import Launch, Program, Shared
from phyxel.material import Mixture
from phyxel.mls.moments import choose_supports, prepare_neighbourhood
from phyxel.mls.neighbours import PairList
from phyxel.mls.visibility import Sees
from phyxel.models.law import LawRow, Laws
from phyxel.models.phyxel.forces import HOURGLASS, Forces, Matter
from phyxel.models.phyxel.implicit import Implicit
from phyxel.models.phyxel.leapfrog import DRIFT, iterate_power, move, shift_bodies
from phyxel.models.phyxel.melt import FARTHEST, Melt
from phyxel.models.reductions import CHUNK, find_fastest, sum_products

if TYPE_CHECKING:
    from phyxel.models.phyxel.contact.impulses import BodyContact

wp.set_module_options(dev.KERNEL_OPTIONS)

Floats = NDArray[np.floating]

SAFETY = 0.7
"""Share of the stability limit to step with. 0.9 blows up by nonlinear resonance near ωΔt = √3."""
TOGETHER = 0.75
"""Distance of neighbours that are in one piece, over their support."""
FARTHEST_MOVE = 0.5
"""No phyxel moves farther than this share of the node spacing in one step."""


@dataclass(frozen=True)
class PhyxelPart:
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
    known: tuple[Floats, PairList] | None = None
    """supports and neighbours, if they have been chosen before"""


class PhyxelModel:
    """The phyxels of all bodies. `real` is the precision of a step; tests also run it in double."""

    def __init__(self, parts: Sequence[PhyxelPart], device: wp.Device, real: Any = wp.float32) -> None:
        self.device, self.real = device, real
        self.ranges = _ranges([len(part.positions) for part in parts])
        self.units = [part.unit for part in parts]
        self._born = np.concatenate([part.volumes * part.unit**3 for part in parts])
        found = [part.known or choose_supports(part.positions, part.support, device, part.sees) for part in parts]
        matter = Matter.made(
            positions=np.concatenate([part.positions for part in parts]),
            support=np.concatenate([support for support, _ in found]),
            volume=np.concatenate([part.volumes for part in parts]),
            body=np.repeat(np.arange(len(parts)), [len(part.positions) for part in parts]),
            pairs=PairList.joined([pairs for _, pairs in found]),
            real=real,
            device=device,
        )
        self.matter = matter
        self.forces = Forces.over(matter)
        vector, n, bodies = matter.X.dtype, len(matter.X), len(parts)
        self.mass = wp.ones(n, dtype=real, device=device)
        self.grip = wp.zeros(n, dtype=real, device=device)
        """β E of hourglass control [Pa]"""
        self._loose = np.ones(n)
        """share of it that is left to phyxels beside cracks, shape (n,)"""
        self._reach = wp.array(np.concatenate([part.reach for part in parts]), dtype=real, device=device)
        self._acceleration = Shared(bodies, vector, device)
        self._extra = Shared(0, vector, device)
        self._damping = wp.zeros(n, dtype=real, device=device)
        self._drag = wp.zeros(n, dtype=real, device=device)
        self._clock = Shared(4, real, device)
        self.shift = Shared(1, vector, device)
        self._ball = wp.clone(matter.past)
        self._rows: list[list[LawRow]] = [[] for _ in parts]
        self._row_of = [np.zeros(len(part.positions), np.int64) for part in parts]
        self._hold = wp.full(n, value=-1, dtype=wp.int32, device=device)
        self._hold_velocity = Shared(1, vector, device)
        self._programs: dict[str, Program] = {}
        self._implicit: Implicit | None = None
        self.contact: BodyContact | None = None
        """between bodies, and of a body with itself"""
        self.melt: Melt | None = None
        self.rest_density = np.full(n, math.nan)
        """c⁰ of what has ever melted, shape (n,)"""
        self.reshaped = False
        """whether any reference shape is not that of birth"""
        self.relaid = False
        """whether neighbours are not those of the reference shape: cracks have parted some"""
        self._colliders = ColliderTable(self.units, real, device)
        self._collider_speed = 0.0

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
        self._flows = False
        self._rest_omega = 0.0
        self._ripple_known = False
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
    def extra(self) -> wp.array:
        return self._extra.array

    def pushes(self) -> NDArray[np.float64]:
        """Acceleration of every phyxel from outside, in its body's units [1/s²], shape (n, 3)."""
        even = self._acceleration.host.astype(np.float64)[self.matter.body.numpy()]
        return even + self._extra.host if len(self._extra.host) else even

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
    def colliders(self) -> Any:
        return self._colliders.table

    # What the world sets

    def set_material(self, body: int, mixture: Mixture, rotation: NDArray[np.float64]) -> None:
        """Give the phyxels of one body their laws and masses. In the body's units a mass is one over its unit."""
        low, high = self.ranges[body]
        self._rows[body] = [LawRow.of(material, rotation) for material in mixture.materials]
        self._row_of[body] = mixture.which
        self._write_laws()
        dev.write(self._damping, low, mixture.number("damping"))
        dev.write(self._drag, low, mixture.number("drag"))
        sounds = [math.sqrt(row.stiffness.max() + row.k_v) for row in self._rows[body]]
        self._sounds[body] = max(sounds) / math.sqrt(mixture.number("density").min()) / self.units[body]
        # In metres the volume of birth stays what it is, whatever the unit and the strain.
        dev.write(self.mass, low, mixture.number("density") * self._born[low:high] / self.units[body])
        dev.write(self.grip, low, HOURGLASS * mixture.number("young"))
        self._tie()
        self._outdate()

    def _tie(self) -> None:
        """c_i of hourglass control. A degenerate phyxel has no stress, but this still ties it to its neighbours."""
        trace, volume = self.matter.moments.trace.numpy(), self.matter.volume.numpy()
        grip = self._loose.astype(trace.dtype) * self.grip.numpy()
        c = np.divide(grip * volume, trace, out=np.zeros(len(self), trace.dtype), where=trace > 0)
        self.matter.hourglass.assign(c)

    def _write_laws(self) -> None:
        rows = [row for some in self._rows for row in some]
        firsts = np.cumsum([0] + [len(some) for some in self._rows])
        which = np.concatenate([first + of for first, of in zip(firsts[:-1], self._row_of, strict=True)])
        flows = any(row.flows for row in rows)
        if len(rows) != len(self.matter.laws) or flows != self._flows:
            self.matter.laws = Laws.blank(len(self), len(rows), self.real, self.device)
            self._flows = flows
            self._clear_programs()
        self.matter.laws.write(rows, which)

    def set_acceleration(self, body: int, acceleration: Floats) -> None:
        """Gravity and pushes on a body, in its units [1/s²]."""
        self._acceleration.host[body] = acceleration
        self._acceleration.push()

    def set_extra(self, extra: Floats) -> None:
        """What fields add to the acceleration of every phyxel, in its body's units [1/s²], shape (n, 3); or nothing,
        shape (0, 3)."""
        if len(extra) != len(self._extra.host):
            self._extra = Shared(len(extra), self.matter.X.dtype, self.device)
            self._clear_programs()
        if len(extra):
            self._extra.host[:] = extra
            self._extra.push()

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

    def meet(
        self,
        colliders: Sequence[Ground | Collider],
        origins: NDArray[np.float64],
        span: tuple[float, float] = (0.0, 0.0),
        at: float = 0.0,
        speed: float = 0.0,
    ) -> None:
        """Colliders as they are at the time `at` [s] and move over a span of time, for bodies with these origins [m],
        shape (bodies, 3). `speed` [m/s] is the fastest they get in the steps to come."""
        self._collider_speed = speed / min(self.units)
        gone = any(all(one is not other for other in colliders) for one in self._colliders.met)
        if self._colliders.write(colliders, origins, span, at):
            self._clear_programs()
        if gone and self._implicit is not None:
            self._implicit.forget_contacts()

    def _outdate(self) -> None:
        """The law has changed: forces, frequency and the choice of kernels are to be found anew."""
        self._forces_known = False
        self._fastest = None
        self._rest_omega = 0.0
        if self.melt is not None:
            self.melt.outdate()
        damped = self._most_damping > 0
        self._most_damping, self._most_drag = float(self._damping.numpy().max()), float(self._drag.numpy().max())
        if damped != (self._most_damping > 0):
            self._clear_programs()
        elif self._implicit is not None:
            self._implicit.outdate_blocks()

    def set_contact(self, contact: BodyContact) -> None:
        """How bodies meet each other from now on."""
        self.contact = contact
        if self._implicit is not None:
            self._implicit.forget_springs()
        self._clear_programs()

    def contacts_moved(self) -> None:
        """What contact works with is elsewhere in memory."""
        self._clear_programs()

    def _clear_programs(self) -> None:
        self._programs.clear()
        if self._implicit is not None:
            self._implicit.outdate()

    # Changing shape for good

    def lay_out(self, pairs: PairList, nodes: NDArray[np.integer], room: int) -> None:
        """Other neighbours: those of `nodes` may come to have `room` of them."""
        rooms = np.zeros(len(self), np.int64)
        rooms[nodes] = room
        matter = self.matter
        matter.near, matter.moments = prepare_neighbourhood(matter.X, matter.support.numpy(), pairs, self.device, rooms)
        self._tie()
        self._clear_programs()
        self._outdate()

    def relay(self, pairs: PairList) -> None:
        """Other neighbours than the reference shape makes."""
        self.relaid = True
        if self.melt is None:
            self.lay_out(pairs, np.arange(0), 0)
        else:
            self.melt.restore(pairs, self.melt.numbers)

    def loosen(self, nodes: NDArray[np.integer], shares: Floats) -> None:
        """Leave so much (m,) of their hourglass stiffness to some phyxels, never more than they have."""
        self._loose[nodes] *= np.minimum(shares, 1.0)
        self._tie()
        self.shape_changed()

    def shape_changed(self) -> None:
        """The reference shape has changed, and with it the forces."""
        self._forces_known = False
        self._fastest = None

    def take_over(self, old: PhyxelModel, order: NDArray[np.integer]) -> None:
        """Go on where another model is: the first phyxels are those of it with the numbers `order`, (m,)."""
        n = len(order)
        self.rest_density[:n], self._loose[:n] = old.rest_density[order], old._loose[order]
        self.relaid, self.reshaped = old.relaid, old.reshaped
        if old.reshaped:
            pairs = self.matter.near.pairs().replaced(np.arange(n), old.matter.near.pairs().taken(order))
            self._copy_first(old, order)
            self.lay_out(pairs, np.arange(0), 0)
        self._copy_first(old, order)
        self.shape_changed()

    def _copy_first(self, old: PhyxelModel, order: NDArray[np.integer]) -> None:
        kept = old._state_arrays()
        for name, array in self._state_arrays().items():
            if name in kept:
                dev.write(array, 0, kept[name].numpy()[order])

    def set_melt(self, bodies: list[int]) -> None:
        """Bodies with melted parts, and what they have flowed together with."""
        self.melt = Melt(self, bodies) if bodies else None
        self._clear_programs()

    # Stepping

    def _force_launches(self) -> list[Launch]:
        elastic = (
            self.forces.damped(self.u, self._y, self.force)
            if self._most_damping > 0
            else self.forces.elastic(self.u, self.force)
        )
        return elastic + self._pressure_launches()

    def _pressure_launches(self) -> list[Launch]:
        return [] if self.melt is None else self.melt.launches()

    def flow_launches(self, step: wp.array, slot: int) -> list[Launch]:
        """Flow over a step of `step[slot]` [s] at the gradient of the last force, if anything can flow."""
        return [self.forces.flow(step, slot)] if self._flows else []

    def _launches(self) -> dict[str, list[Launch]]:
        n, matter, chunks = len(self), self.matter, len(self._partial.host)
        move_inputs = [
            matter.X, self.mass, self._reach, matter.past, matter.body, self._acceleration.array, self._extra.array,
            self._damping, self._drag, self._clock.array, self._hold, self._hold_velocity.array, self.colliders,
            self.force, self.forces.gradient, self._ball, self.u, self.v, self._y,
        ]  # fmt: skip
        moving = [Launch(move, n, move_inputs)]
        carried = Launch(carry_colliders, self._colliders.rows, [self.colliders, self._clock.array, DRIFT])
        carrying = [carried] if self._colliders.moves else []
        touching = self.contact.launches(self._clock.array, DRIFT, self._y) if self.contact is not None else []
        inner = self._force_launches() + self.flow_launches(self._clock.array, DRIFT)
        power = [self.mass, self._clock.array, self._change, self._ripple, self._last_ripple]
        norm, last_norm = (
            [Launch(sum_products, chunks, [n, self.mass, ripple, ripple, self._partial.array], work=CHUNK // 8)]
            for ripple in (self._ripple, self._last_ripple)
        )
        return {
            "force": self.forces.elastic(self.u, self.force) + self._pressure_launches(),
            "move": moving,
            "substep": carrying + moving + inner,
            "touching move": moving + touching,
            "touching substep": carrying + moving + touching + inner,
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
                self.forces.flow(self._clock.array, DRIFT),
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
        at_rest = self.rest_frequency() if self.melt is None else self.melt.rest_omega
        self.fastest()
        omega = at_rest * float(np.sqrt(max(self._stiffening.pull().max(), 1.0)))
        xi = 0.5 * (self._most_drag / omega + self._most_damping * omega)
        step = SAFETY * (2 / omega) / (np.sqrt(1 + xi * xi) + xi)  # the same without cancellation
        return float(min(step, self.crossing_time()))

    def crossing_time(self) -> float:
        """Longest step in which no phyxel comes half a spacing nearer to a collider, both moving [s]."""
        speed = self.fastest() + self._collider_speed
        return FARTHEST_MOVE / speed if speed > 0 else math.inf

    def steps_until_flowed(self, step: float) -> int:
        """Steps of so long [s] in which no phyxel of a melt can pass another: then neighbours are looked at."""
        fastest = self.fastest()
        return 1 if not fastest > 0 else max(1, int(min(FARTHEST / (fastest * step), 1e6)))

    def fastest(self) -> float:
        """Largest speed of a phyxel, in spacings per second; NaN if any is none."""
        if self._fastest is None:
            self._program("survey").run()
            self._fastest = float(self._partial.pull().max())
        return self._fastest

    def rest_frequency(self) -> float:
        """Largest frequency of M⁻¹K in the reference shape [1/s], nothing held, by power iteration to 0.5 %. Phyxels
        that have flowed apart feel little of each other until they meet: no less than sound across a spacing."""
        if self._rest_omega == 0.0:
            gradient = self.forces.gradient.numpy().copy()
            self.forces.gradient.zero_()
            self._rest_omega = self._iterate_power()
            self.forces.gradient.assign(gradient)
        return self._rest_omega

    def _iterate_power(self) -> float:
        ripple = np.random.default_rng(1).standard_normal((len(self), 3))
        if self._ripple_known:
            # The ripple of the laws before, over noise: it may be where nothing is stiff any more.
            ripple += self._ripple.numpy() / self._ripple.numpy().std()
        self._ripple.assign(ripple.astype(self.v.numpy().dtype))
        self._ripple_known = True
        # Sound crosses a spacing in 1/ω, about: from there ten unnormalised iterations neither over- nor underflow.
        omega = sound = float(self._sounds.max())
        for iterations in (1, 4, *[10] * 20):
            before = omega
            self._set_clock(per_omega_squared=1.0 / omega**2)
            self._program("power").run(iterations)
            norm = self._norm("norm")
            if norm == 0:
                return sound
            omega *= np.sqrt(norm / self._norm("last norm"))
            # The first guesses may agree by chance.
            if iterations == 10 and abs(omega - before) < 0.005 * omega:
                break
        return max(float(omega), sound)

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
        self._ripple_known = False
        self._program("tangent").run()
        change = self._change.numpy().astype(np.float64)
        free = (self._hold.numpy() < 0)[:, None]
        quotient = -float((free * v / size * change).sum()) / float((mass[:, None] * v * v).sum() / size**2)
        return float(np.sqrt(max(quotient, 0.0)))

    def stop(self, bodies: list[int] | None = None) -> None:
        """Set all velocities to zero, or those of some bodies."""
        for low, high in self.ranges if bodies is None else [self.ranges[body] for body in bodies]:
            dev.write(self.v, low, np.zeros((high - low, 3)))
        self._fastest = None

    def forget_contacts(self) -> None:
        """What was touched until now is elsewhere; forces are those of bodies as they are, not as they moved."""
        self._forces_known = False
        if self._implicit is not None:
            self._implicit.forget_contacts()

    def recentre(self, bodies: list[int], amount: Floats) -> None:
        """u ← u − amount for bodies whose origin moves by as much."""
        amounts = np.zeros((len(self.ranges), 3))
        amounts[bodies] = amount
        shift = wp.array(amounts, dtype=self.matter.X.dtype, device=self.device)
        dev.launch(shift_bodies, len(self), [self.matter.body, shift, self.u], self.device, split=False)

    # Reading

    def pieces(self) -> NDArray[np.int32]:
        """Number of the piece each phyxel belongs to, shape (n,): neighbours that are near are in one piece."""
        pairs = self.matter.near.pairs()
        owner = np.repeat(np.arange(len(self)), pairs.count)
        X, h = self.matter.X.numpy(), self.matter.support.numpy()
        apart = np.linalg.norm(X[owner] - X[pairs.index], axis=1)
        near = apart < TOGETHER * np.maximum(h[owner], h[pairs.index])
        graph = coo_array((np.ones(near.sum()), (owner[near], pairs.index[near])), shape=(len(self), len(self)))
        return connected_components(graph, directed=False)[1]

    def measure(self) -> tuple[Floats, Floats]:
        """Elastic energy [Pa·spacing³] and volume over that at rest of every phyxel, each of shape (n,)."""
        self.ensure_forces()
        energy = wp.zeros(len(self), dtype=self.real, device=self.device)
        item = self.forces.energy(self.u, energy)
        dev.launch(item.kernel, item.count, item.inputs, self.device)
        J = self.forces.gradient.numpy().astype(np.float64) + np.eye(3)
        stored, ratio = energy.numpy().astype(np.float64), self.matter.swell.numpy() * np.linalg.det(J)
        if self.melt is not None:
            crowding = np.maximum(self.melt.crowding.numpy(), 1.0)
            stored += 0.5 * self._bulk() * self.matter.rest_volume.numpy() * (crowding - 1) ** 2
            ratio /= crowding
        return stored, ratio

    def _bulk(self) -> Floats:
        """Stiffness of each phyxel's pressure [Pa], shape (n,)."""
        laws = self.matter.laws
        return laws.bulk.numpy().astype(np.float64)[laws.of.numpy()]

    def stress(self) -> Floats:
        """Cauchy stress [Pa], shape (n, 3, 3)."""
        self.ensure_forces()
        stress = wp.zeros(len(self), dtype=self.forces.gradient.dtype, device=self.device)
        item = self.forces.stress(stress)
        dev.launch(item.kernel, item.count, item.inputs, self.device)
        return stress.numpy() * (self.matter.volume.numpy() > 0)[:, None, None]

    def state(self) -> dict[str, NDArray[Any]]:
        """Everything that varies, so that a restored run goes on with the same bits."""
        state = {name: array.numpy().copy() for name, array in self._state_arrays().items()}
        state["forces_known"] = np.array(self._forces_known)
        state["rest_density"] = self.rest_density.copy()
        state["loose"] = self._loose.copy()
        state["rest_omega"] = np.array([self._rest_omega, self._ripple_known])
        state["changed"] = np.array([self.reshaped, self.relaid])
        if self.reshaped or self.relaid:
            pairs = self.matter.near.pairs()
            state |= {"pairs.count": pairs.count, "pairs.index": pairs.index}
        if self.melt is not None:
            state["melt"] = self.melt.numbers
        return state

    def restore(self, state: dict[str, NDArray[Any]]) -> None:
        """Take over what `state` gave."""
        if "contact" in state:
            self._implicit = self.implicit
        self.reshaped, self.relaid = state["changed"].tolist()
        self.rest_density, self._loose = state["rest_density"].copy(), state["loose"].copy()
        self._assign(state)
        if self.reshaped or self.relaid:
            pairs = PairList(state["pairs.count"], state["pairs.index"])
            if self.melt is None:
                self.lay_out(pairs, np.arange(0), 0)
            else:
                self.melt.restore(pairs, state["melt"])
            self._assign(state)  # what was made anew for these neighbours
        self._rest_omega, self._ripple_known = float(state["rest_omega"][0]), bool(state["rest_omega"][1])
        self._forces_known = bool(state["forces_known"])
        self._fastest = None

    def _assign(self, state: dict[str, NDArray[Any]]) -> None:
        for name, array in self._state_arrays().items():
            array.assign(state[name])

    def _state_arrays(self) -> dict[str, wp.array]:
        return {
            "u": self.u,
            "v": self.v,
            "force": self.force,
            "gradient": self.forces.gradient,
            "plastic": self.matter.plastic,
            "swell": self.matter.swell,
            "rest_volume": self.matter.rest_volume,
            "ripple": self._ripple,
            "ball": self._ball,
            **({} if self._implicit is None else self._implicit.state),
            **({} if self.melt is None else {"crowding": self.melt.crowding}),
            **(self._shape_arrays() if self.reshaped or self.relaid else {}),
        }

    def _shape_arrays(self) -> dict[str, wp.array]:
        """What else varies when reference shapes do."""
        matter = self.matter
        return {
            "X": matter.X,
            "volume": matter.volume,
            "support": matter.support,
            "past": matter.past,
            "reach": self._reach,
            "inverse": matter.moments.inverse,
            "hourglass": matter.hourglass,
            "birth": matter.birth,
        }


def _ranges(counts: Sequence[int]) -> list[tuple[int, int]]:
    ends = np.cumsum([0, *counts]).tolist()
    return list(itertools.pairwise(ends))
