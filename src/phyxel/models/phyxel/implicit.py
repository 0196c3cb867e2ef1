# mypy: disable-error-code="valid-type,no-untyped-def"
"""Implicit Euler for phyxels (M04 §3.6, physics 5.4): stiff bodies at frame-sized steps.

    M (v' − v) = Δt (F(u + Δt v') + M a − αM v' − βK v') + contact impulses

is solved for v' by Newton's method; each of its systems,

    (M(1 + αΔt) + (Δt² + βΔt) K) δ = residual,

by conjugate gradients, preconditioned by 3 × 3 blocks and by the rigid motions of each body. K is never built: its
product with a vector is the directional derivative of the two force passes. Where K is indefinite and a search
direction shows it, the solve is done again with a positive part of K; a correction that makes things worse is
shortened. Held phyxels keep the velocity of their hold. A phyxel that meets a collider keeps to it, rubbing with
Coulomb's friction, and leaves it when its impulse would pull. Bodies that touch each other push by springs
(`contact.springs`).

One linearised step brakes rotation badly, so there are two Newton iterations, and the momenta of bodies that nothing
else touches are put right afterwards.
"""

from __future__ import annotations

from dataclasses import fields
from typing import TYPE_CHECKING, Any

import numpy as np
import warp as wp

from phyxel import device as dev
from phyxel.device import Launch, Program, Shared, entries, over
from phyxel.models.phyxel.conjugate import (
    INDEFINITE,
    RZ,
    StepArrays,
    apply_system,
    choose_length,
    choose_turn,
    filtered,
    find_frames,
    go_along,
    invert_blocks,
    keep_first,
    make_blocks,
    move_rigidly,
    precondition,
    restart,
    turn,
)
from phyxel.models.phyxel.contact.springs import ContactSprings
from phyxel.models.phyxel.leapfrog import push_on
from phyxel.models.phyxel.walls import WallContacts, meet_colliders
from phyxel.models.reductions import CHUNK

if TYPE_CHECKING:
    from phyxel.models.phyxel.model import PhyxelModel

wp.set_module_options(dev.KERNEL_OPTIONS)

FEWEST_NEWTON, MOST_NEWTON = 2, 8
"""Newton iterations; more than the fewest only while contacts change or corrections have to be shortened."""
WORSE = 1e-3
"""Share by which a correction may make the merit worse: damping and friction are not in it."""
SHORTEST = 2.0**-10
"""Part of a correction below which it is taken as it is."""
CG_BLOCK, CG_BLOCKS = 8, 40
"""Conjugate gradient iterations between two looks at the residual, and how many looks there are at most."""
CG_TOLERANCE = 2e-4
"""Residual, in the preconditioner's norm, over the largest of the step: what remains of a Newton iteration that began
near the solution need not be solved more exactly than that."""


@wp.kernel
def start_step(first: int, hold: entries, hold_velocity: entries, v_old: entries, v: entries, contact: entries):
    """v' starts as v, or as the velocity of the hold. With this step's pushes added, a body at rest on the ground would
    be crushed against it, and the first Newton iteration be lost on that (physics 5.4)."""
    i = first + wp.tid()
    v_old[i] = v[i]
    contact[i] = wp.clamp(contact[i], 0, 1)
    if hold[i] >= 0:
        v[i] = hold_velocity[hold[i]]


@wp.kernel
def look_ahead(first: int, damping: entries, dt: entries, u: entries, v: entries, ahead: entries, y: entries):
    """u + Δt v' and the same plus βv', for the damped force there (physics 5.4, 5.7)."""
    i = first + wp.tid()
    ahead[i] = u[i] + dt[0] * v[i]
    y[i] = ahead[i] + damping[i] * v[i]


@wp.kernel
def find_residual(
    first: int, body: entries, mass: entries, drag: entries, acceleration: entries, extra: entries, hold: entries,
    dt: entries, v_old: entries, v: entries, force: entries, contact: entries, normal: entries, wall: entries,
    rest: entries, rub: entries, r: entries,
):  # fmt: skip
    """The momentum that is missing, whole (`rest`) and where it is free to act (`r`) (physics 5.4)."""
    i = first + wp.tid()
    b = body[i]
    pushed = force[i] + mass[i] * push_on(i, b, acceleration, extra) - drag[i] * mass[i] * v[i]
    rest[i] = mass[i] * (v_old[i] - v[i]) + dt[0] * pushed
    r[i] = filtered(rest[i] - rub[i] * (v[i] - wall[i]), hold[i], contact[i], normal[i])


@wp.kernel
def correct(first: int, length: entries, v: entries, delta: entries):
    """v' += length·δ."""
    i = first + wp.tid()
    v[i] = v[i] + length[0] * delta[i]


@wp.kernel
def sum_merit(
    first: int, n: int, body: entries, mass: entries, drag: entries, acceleration: entries, extra: entries, dt: entries,
    v_old: entries, v: entries, normal: entries, wall: entries, rub: entries, energy: entries, worth: entries,
    partial: entries,
):  # fmt: skip
    """Partial sums of U(u + Δt v') + ½m|v' − v − Δt a|² + ½(αΔt m |v'|² + rub |(v' − wall)_t|²): the step without inner
    damping is its minimum (physics 5.4)."""
    c = first + wp.tid()
    total = wp.float64(0.0)
    i = c * CHUNK
    end = wp.min(n, i + CHUNK)
    while i < end:
        beyond = v[i] - v_old[i] - dt[0] * push_on(i, body[i], acceleration, extra)
        sliding = v[i] - wall[i]
        along = sliding - wp.dot(sliding, normal[i]) * normal[i]
        m = mass[i]
        work = m * wp.length_sq(beyond) + drag[i] * dt[0] * m * wp.length_sq(v[i])
        work += rub[i] * wp.length_sq(along)
        total += worth[body[i]] * (wp.float64(energy[i]) + wp.float64(0.5) * wp.float64(work))
        i += 1
    partial[c] = total


class Implicit:
    """Implicit Euler steps of a phyxel model: its arrays and programs."""

    def __init__(self, model: PhyxelModel) -> None:
        self._model = model
        device, real, n, bodies = model.device, model.real, len(model), len(model.ranges)
        vector, tensor = model.matter.X.dtype, model.matter.past.dtype
        units = np.array(model.units)
        self._chunks = (n + CHUNK - 1) // CHUNK
        self._dt, self._length = Shared(1, real, device), Shared(1, real, device)
        self._changed = Shared(1, wp.int32, device)
        self._solver, self._partials = Shared(4, wp.float64, device), Shared(self._chunks, wp.float64, device)

        def blank(*kinds: Any, count: int = n) -> list[wp.array]:
            return [wp.zeros(count, dtype=kind, device=device) for kind in kinds]

        arrays = [
            self._dt.array,
            self._length.array,
            *blank(*[vector] * 9, tensor, tensor, tensor, real),
            wp.array([low for low, _ in model.ranges] + [n], dtype=wp.int32, device=device),
            wp.array((units / units.max()) ** 3, dtype=wp.float64, device=device),
            *blank(real, vector, tensor, vector, vector, count=bodies),
            self._partials.array,
            self._solver.array,
            self._changed.array,
        ]
        self._step = StepArrays(*arrays)
        self._met = WallContacts(*blank(wp.int32, vector, vector, vector, real))
        self._springs: ContactSprings | None = None
        self._negligible = self._acceptable = self._largest = 0.0
        self._settled = False
        self._touching = False
        """whether bodies may touch in this step"""
        self._programs: dict[str, Program] = {}

    def _launches(self) -> dict[str, list[Launch]]:
        m, n, a = self._model, len(self._model), self._step
        holders, more = (m.matter, m.now, m.outside, self._met, a), {"colliders": m.colliders, "chunks": self._chunks}

        def each(kernel: wp.Kernel, count: int = n, work: float = 1) -> Launch:
            return over(kernel, count, *holders, work=work, n=n, **more)

        def each_chunk(kernel: wp.Kernel) -> Launch:
            return each(kernel, self._chunks, CHUNK // 4)

        rigidly = each(move_rigidly, len(m.ranges))
        search = [
            each_chunk(apply_system),
            each(choose_length, 1),
            each(go_along),
            rigidly,
            each_chunk(precondition),
            each(choose_turn, 1),
            each(turn),
        ]
        launches = {
            "blocks": [each(make_blocks)],
            "start": [each(start_step)],
            "contacts": [each(meet_colliders)],
            "residual": [each(look_ahead), *m.forces.damped(a.ahead, a.y, m.now.force), each(find_residual)],
            "precondition": [each(invert_blocks), each(find_frames, len(m.ranges))],
            "begin": [rigidly, each_chunk(precondition), each(keep_first, 1), each(restart)],
            "search": [*m.forces.tangent(a.p, a.Ap), *search],
            "positive search": [*m.forces.positive_tangent(a.p, a.Ap), *search],
            "flow": m.flow_launches(a.dt, 0),
            "correct": [each(correct)],
            "merit": [m.forces.energy(a.ahead, a.energy), each_chunk(sum_merit)],
        }
        return launches | self._touching_launches(launches)

    def _touching_launches(self, launches: dict[str, list[Launch]]) -> dict[str, list[Launch]]:
        """The same where bodies may touch: with the springs between them."""
        if self._springs is None:
            return {}
        springs, merit, a = self._springs, launches["merit"], self._step
        coupled = springs.couple(a.p, a.coupling)
        extended = {
            "start": springs.start(a.dt, a.block) + launches["start"],
            "contacts": launches["contacts"] + springs.rub(a.changed),
            "residual": launches["residual"] + springs.press(a.dt, self._met, a.r),
            "precondition": springs.blocks(a.stiffer) + launches["precondition"],
            "search": coupled + launches["search"],
            "positive search": coupled + launches["positive search"],
            "merit": [merit[0], *springs.energy(a.energy), *merit[1:]],
        }
        return {f"touching {name}": items for name, items in extended.items()}

    @property
    def state(self) -> dict[str, wp.array]:
        """What one step leaves to the next: how phyxels met the colliders."""
        return {field.name: getattr(self._met, field.name) for field in fields(self._met)}

    def outdate(self) -> None:
        """Arrays have been replaced."""
        self._programs = {}

    def forget_springs(self) -> None:
        """Bodies meet otherwise than before."""
        self._springs = None
        self.outdate()

    def forget_contacts(self) -> None:
        """A collider is gone."""
        self._met.contact.zero_()

    def outdate_blocks(self) -> None:
        """Numbers of the laws have changed."""
        if self._programs:
            self._programs["blocks"].run()

    def _run(self, name: str, times: int = 1) -> None:
        if not self._programs:
            if self._model.contact is not None:
                self._springs = ContactSprings(self._model, self._model.contact)
            launches = self._launches()
            dev.prepare([item for items in launches.values() for item in items], self._model.device)
            self._programs = {key: Program(items, self._model.device) for key, items in launches.items()}
            self._programs["blocks"].run()
        touching = f"touching {name}"
        self._programs[touching if self._touching and touching in self._programs else name].run(times)

    def step(self, dt: float) -> None:
        """One step of dt [s]."""
        self._dt.host[:] = dt
        self._dt.push()
        self._negligible, self._acceptable = self._small_energies(dt)
        self._largest = 0.0
        if not self._touching:
            self._step.coupling.zero_()
            self._step.stiffer.zero_()
        self._start()
        whole = True
        for iteration in range(MOST_NEWTON):
            changed = self._update_contacts()
            if iteration >= FEWEST_NEWTON and whole and not changed and self._settled:
                break
            self._run("residual")
            before = self._merit()
            self._run("precondition")
            self._solve()
            whole = self._correct(before)
        self._finish()

    def _start(self) -> None:
        """Find what may touch in this step. Most have nothing that does, and go without springs."""
        contact, acted = self._model.contact, self._touching
        self._touching = contact is not None and contact.possible
        self._run("start")
        if self._touching and contact is not None:
            self._touching = bool((contact.contacts.target.numpy() >= 0).any())
        if acted and not self._touching:
            self._step.coupling.zero_()
            self._step.stiffer.zero_()

    def _merit(self) -> float:
        self._run("merit")
        return float(self._partials.pull().sum())

    def _correct(self, before: float) -> bool:
        """v' += δ, or as much of it as does not make things worse; whether it was all of it."""
        length, whole = 1.0, True
        self._go(length)
        while not self._merit() <= before + WORSE * abs(before) and length > SHORTEST:
            self._go(-0.5 * length)
            length, whole = 0.5 * length, False
        return whole

    def _go(self, length: float) -> None:
        self._length.host[:] = length
        self._length.push()
        self._run("correct")
        self._run("residual")

    def _small_energies(self, dt: float) -> tuple[float, float]:
        """r·z of a residual that no longer matters, 1e-4 of what the pushes of a step do and 1e-6 of the motion; and of
        one that a step may end with, 10 % of both."""
        m = self._model
        mass, v = m.matter.mass.numpy().astype(np.float64), m.v.numpy()
        push = dt * m.outside.pushes(m.matter.body.numpy())
        pushed, moving = float(mass @ (push * push).sum(axis=1)), float(mass @ (v * v).sum(axis=1))
        return 1e-8 * pushed + 1e-12 * moving, 1e-2 * (pushed + moving)

    def _update_contacts(self) -> bool:
        """Whether any phyxel meets a collider otherwise than before."""
        self._changed.host[:] = 0
        self._changed.push()
        self._run("contacts")
        return bool(self._changed.pull()[0])

    def _solve(self) -> None:
        """δ by conjugate gradients."""
        for which in ("search", "positive search"):
            if which == "positive search":
                self._run("residual")
            self._run("begin")
            start = float(self._solver.pull()[RZ])
            self._largest = max(self._largest, start)
            # Where a stiff body has just hit something the largest is no measure of what matters.
            good = max(min(CG_TOLERANCE**2 * self._largest, self._acceptable), CG_TOLERANCE**2 * start)
            enough = max(good, self._negligible)
            self._settled = good <= max(self._acceptable, self._negligible)
            for _ in range(CG_BLOCKS):
                self._run(which, CG_BLOCK)
                state = self._solver.pull()
                if state[INDEFINITE] or not state[RZ] > enough:
                    break
            if not self._solver.pull()[INDEFINITE]:
                return

    def _finish(self) -> None:
        """Go where v' leads, and put the momenta of bodies that nothing else touches right."""
        m = self._model
        self._run("residual")
        body = m.matter.body.numpy()
        unit = np.array(m.units)[body][:, None]
        v_old, v = unit * self._step.v_old.numpy(), unit * m.v.numpy()
        origins = np.zeros((len(m.ranges), 3)) if m.contact is None else m.contact.offsets
        x = origins[body] + unit * (m.matter.X.numpy().astype(np.float64) + m.u.numpy())
        mass, dt = m.matter.mass.numpy() * unit[:, 0], float(self._dt.host[0])
        touched = (m.outside.hold.numpy() >= 0) | (self._met.contact.numpy() > 0)
        push = unit * m.outside.pushes(body)
        slowing = 1 / (1 + m.matter.drag.numpy().astype(np.float64) * dt)
        parties = [[b] for b in range(len(m.ranges))]
        if self._springs is not None and self._touching:
            parties = self._springs.parties()
        for party in parties:
            part = np.isin(body, party)
            if not touched[part].any():
                v[part] = _with_momenta(x[part], v_old[part], v[part], mass[part], dt, push[part], slowing[part, None])
        m.v.assign((v / unit).astype(m.v.numpy().dtype))
        m.u.assign(self._step.ahead)
        self._run("flow")


def _with_momenta(x: Any, v_old: Any, v: Any, mass: Any, dt: float, push: Any, slowing: Any) -> Any:
    """v' with the momentum and, about the middle of mass, the angular momentum that v and a push (n, 3) leave
    (physics 1.7, 5.6)."""
    total = mass.sum()
    free = slowing * (v_old + dt * push)
    drift_old, drift = mass @ free / total, mass @ v / total
    arm_old = x - mass @ x / total
    arm = arm_old + dt * (v - drift)
    target = np.cross(arm_old, mass[:, None] * (free - drift_old)).sum(axis=0)
    missing = target - np.cross(arm, mass[:, None] * (v - drift)).sum(axis=0)
    inertia = (mass @ (arm**2).sum(axis=1)) * np.eye(3) - np.einsum("n,ni,nj->ij", mass, arm, arm)
    return v + drift_old - drift + np.cross(np.linalg.solve(inertia, missing), arm)
