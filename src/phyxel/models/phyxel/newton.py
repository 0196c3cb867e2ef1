"""Newton's method for the end of a stage of an implicit step (physics 5.4).

    M (v' − v̂) = h (F(ū + h v') + M a − αM v' − βK v') + contact impulses

is solved for v' by two iterations or more, since one linearised step brakes rotation badly; each of their systems,

    (M(1 + αh) + (h² + βh) K) δ = residual,

by conjugate gradients, preconditioned by 3 × 3 blocks and by the rigid motions of each body. K is never built: its
product with a vector is the directional derivative of the two force passes. Where K is indefinite and a search
direction shows it, the solve is done again with a positive part of K; a correction that makes things worse is
shortened. Held phyxels keep the velocity of their hold. A phyxel that meets a collider keeps to it, rubbing with
Coulomb's friction, and leaves it when its impulse would pull. Bodies that touch each other push by springs
(`contact.springs`), and so do guests (`contact.guest_springs`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import warp as wp
from numpy.typing import NDArray

from phyxel import device as dev
from phyxel.device import Launch, Program, Shared, over
from phyxel.models.phyxel.conjugate import (
    GAINED,
    INDEFINITE,
    RZ,
    StepArrays,
    apply_system,
    choose_length,
    choose_turn,
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
from phyxel.models.phyxel.contact.guest_springs import GuestSprings, clear
from phyxel.models.phyxel.contact.springs import ContactSprings
from phyxel.models.phyxel.residual import correct, find_residual, look_ahead, sum_merit
from phyxel.models.phyxel.stages import EULER, IDLE, Accelerations, start_stage
from phyxel.models.phyxel.walls import WallContacts, follow, meet_colliders
from phyxel.models.reductions import CHUNK

if TYPE_CHECKING:
    from phyxel.models.phyxel.model import PhyxelModel

WORSE = 1e-3
"""Share by which a correction may make the merit worse: damping and friction are not in it."""
SHORTEST = 2.0**-10
"""Part of a correction below which it is taken as it is."""
CG_BLOCK, CG_BLOCKS = 8, 40
"""Conjugate gradient iterations between two looks at the residual, and how many looks there are at most."""
CG_TOLERANCE = 2e-4
"""Residual, in the preconditioner's norm, over the largest of the step: what remains of a Newton iteration that began
near the solution need not be solved more exactly than that."""
REST_BLOCK, REST_BLOCKS, REST_TOLERANCE = 32, 200, 1e-7
"""The same for a step towards rest: it is solved till a block adds no more than that to the energy of all before. That
sees the softest motion, as a residual does not."""


class Newton:
    """Solves for the end of a stage: its arrays and programs."""

    def __init__(self, model: PhyxelModel) -> None:
        self._model = model
        device, real, n, bodies = model.device, model.real, len(model), len(model.ranges)
        vector, tensor = model.matter.X.dtype, model.matter.past.dtype
        units = np.array(model.units)
        self._chunks = (n + CHUNK - 1) // CHUNK
        self._dt, self._stage = Shared(bodies, real, device), Shared(bodies, wp.int32, device)
        self._whole, self._length = Shared(1, real, device), Shared(1, real, device)
        self._loose, self._changed = Shared(bodies, real, device), Shared(1, wp.int32, device)
        self._solver, self._partials = Shared(5, wp.float64, device), Shared(self._chunks, wp.float64, device)

        def blank(*kinds: Any, count: int = n) -> list[wp.array]:
            return [wp.zeros(count, dtype=kind, device=device) for kind in kinds]

        arrays = [
            self._dt.array,
            self._stage.array,
            self._length.array,
            *blank(*[vector] * 11, tensor, tensor, tensor, real),
            wp.array([low for low, _ in model.ranges] + [n], dtype=wp.int32, device=device),
            wp.array((units / units.max()) ** 3, dtype=wp.float64, device=device),
            self._loose.array,
            *blank(real, vector, tensor, vector, vector, count=bodies),
            self._partials.array,
            self._solver.array,
            self._changed.array,
        ]
        self._step = StepArrays(*arrays)
        self._met = WallContacts(*blank(wp.int32, vector, vector, vector, real, *[vector] * 4, wp.int32))
        self.carried = Accelerations(model)
        self._springs: ContactSprings | None = None
        self._guests: GuestSprings | None = None
        kept = {"force": wp.float32, "friction": wp.vec3f, "way": wp.vec3f, "least": wp.float32}
        self._pressing = {name: wp.zeros(n, dtype=kind, device=device) for name, kind in kept.items()}
        """how bodies push on each phyxel, as one stage leaves it to the next; see `SpringArrays`"""
        self._negligible = self._acceptable = self._largest = 0.0
        self._settled = False
        self._touching = False
        """whether bodies may touch in this step"""
        self._receiving = False
        """whether guests may be met in this step"""
        self._programs: dict[str, Program] = {}

    def _launches(self) -> dict[str, list[Launch]]:
        m, n, a = self._model, len(self._model), self._step
        holders = (m.matter, m.now, m.outside, self._met, a)
        more = {"colliders": m.colliders, "chunks": self._chunks}
        more |= {"inner": self.carried.inner, "whole": self._whole.array}

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
            "start": [each(start_stage)],
            "contacts": [each(meet_colliders)],
            "residual": [each(look_ahead), *m.forces.damped(a.ahead, a.y, m.now.force), each(find_residual)],
            "precondition": [each(invert_blocks), each(find_frames, len(m.ranges))],
            "begin": [rigidly, each_chunk(precondition), each(keep_first, 1), each(restart)],
            "search": [*m.forces.tangent(a.p, a.Ap), *search],
            "positive search": [*m.forces.positive_tangent(a.p, a.Ap), *search],
            "flow": m.forces.flowing(m.materials, self._whole.array, 0),
            "correct": [each(correct)],
            "follow": [each(follow)],
            "energy": m.forces.energy(a.ahead, a.energy),
            "merit": [*m.forces.energy(a.ahead, a.energy), each_chunk(sum_merit)],
        }
        springs, guests = self._springs, self._guests
        kinds: dict[str, list[Any]] = {"touching ": [springs], "receiving ": [guests]}
        kinds["touching receiving "] = [springs, guests]
        met = {
            f"{prefix}{name}": items
            for prefix, some in kinds.items()
            if None not in some
            for name, items in self._meeting_launches(launches, some).items()
        }
        return launches | met

    def _meeting_launches(self, launches: dict[str, list[Launch]], kinds: Sequence[Any]) -> dict[str, list[Launch]]:
        """The same where bodies may touch, or guests may be met: with the springs between them. Those of bodies write
        what those of guests add to."""
        a, merit = self._step, launches["merit"]

        def each(launched: Callable[[Any], list[Launch]]) -> list[Launch]:
            return [item for one in kinds for item in launched(one)]

        def blank(field: wp.array) -> list[Launch]:
            return [] if self._springs in kinds else [Launch(clear, len(self._model), [field])]

        coupled = blank(a.coupling) + each(lambda one: one.couple(a.p, a.coupling))
        return {
            "start": launches["start"] + each(lambda one: one.start(a.dt, a.base, a.block)),
            "contacts": launches["contacts"] + each(lambda one: one.rub(a.dt, a.changed)),
            "residual": launches["residual"] + each(lambda one: one.press(a.dt, self._met, a.r)),
            "precondition": blank(a.stiffer) + each(lambda one: one.blocks(a.stiffer)) + launches["precondition"],
            "search": coupled + launches["search"],
            "positive search": coupled + launches["positive search"],
            "follow": launches["follow"]
            + [item for one in kinds if isinstance(one, ContactSprings) for item in one.follow(self._whole.array)],
            "merit": [*merit[:-1], *each(lambda one: one.energy(a.energy)), merit[-1]],
        }

    def outdate(self) -> None:
        """Arrays have been replaced."""
        self._programs = {}

    def forget_springs(self) -> None:
        """Bodies meet otherwise than before."""
        self._springs = None
        self.outdate()

    def outdate_blocks(self) -> None:
        """Numbers of the laws have changed."""
        if self._programs:
            self._programs["blocks"].run()

    def _run(self, name: str, times: int = 1) -> None:
        if not self._programs:
            if self._model.contact is not None:
                self._springs = ContactSprings(self._model, self._model.contact, self._pressing)
            if self._model.guests is not None:
                self._guests = GuestSprings(self._model, self._model.guests)
            launches = self._launches()
            dev.prepare([item for items in launches.values() for item in items], self._model.device)
            self._programs = {key: Program(items, self._model.device) for key, items in launches.items()}
            self._programs["blocks"].run()
        meeting = "touching " * self._touching + "receiving " * self._receiving + name
        self._programs[meeting if meeting in self._programs else name].run(times)

    def _loosen(self, touched: float) -> None:
        """Let so much of rigid motions of bodies that something touches count, and all of others."""
        body, touches = self._model.matter.body.numpy(), self._touched
        for party in self._parties():
            self._loose.host[np.unique(body[party])] = touched if touches[party].any() else 1.0
        self._loose.push()

    def _iterate(self, solve: Callable[[], None]) -> bool:
        """An iteration of Newton's method; whether all of its correction was taken."""
        if self._guests is not None and self._receiving:
            self._guests.adopt()
        self._run("residual")
        before = self._merit()
        self._run("precondition")
        solve()
        return self._correct(before)

    def _start(self, h: NDArray[np.floating]) -> None:
        """Start a stage of h [s] of each body. Find what may touch: most have nothing that does, and go without
        springs."""
        self._dt.host[:] = h
        self._dt.push()
        contact, acted = self._model.contact, self._touching or self._receiving
        if not acted:
            self._step.coupling.zero_()
            self._step.stiffer.zero_()
        self._touching = contact is not None and contact.possible
        self._receiving = False
        self._run("start")
        if self._touching and contact is not None:
            self._touching = bool((contact.contacts.target.numpy() >= 0).any())
        if self._guests is not None and self._model.guests is not None and self._model.guests.there:
            stage = self._stage.host
            self._receiving = True
            self._guests.begin(np.where(stage == EULER, h, 0.0), stage == IDLE, self._step.block.numpy())
        if acted and not (self._touching or self._receiving):
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
        """Whether any phyxel meets a collider, or a guest, otherwise than before."""
        self._changed.host[:] = 0
        self._changed.push()
        self._run("contacts")
        received = self._guests.look() if self._guests is not None and self._receiving else False
        return bool(self._changed.pull()[0]) or received

    def _solve(self, again: Callable[[], None] | None = None) -> None:
        """δ by conjugate gradients, for the momentum r that is missing; `again` puts it there anew, if that is not what
        the velocities leave to do."""
        for which in ("search", "positive search"):
            if which == "positive search":
                (again or partial(self._run, "residual"))()
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

    def _solve_wholly(self) -> None:
        """δ by conjugate gradients, also what of it is soft."""
        for which in ("search", "positive search"):
            if which == "positive search":
                self._run("residual")
            self._run("begin")
            gained = 0.0
            for _ in range(REST_BLOCKS):
                self._run(which, REST_BLOCK)
                state = self._solver.pull()
                before, gained = gained, float(state[GAINED])
                if state[INDEFINITE] or not gained - before > REST_TOLERANCE * gained:
                    break
            if not state[INDEFINITE]:
                return

    @property
    def _touched(self) -> NDArray[np.bool_]:
        """Which phyxels something from outside holds, shape (n,)."""
        return (self._model.outside.hold.numpy() >= 0) | (self._met.contact.numpy() > 0)

    def _parties(self) -> list[NDArray[np.bool_]]:
        """Which phyxels (n,) bodies have that push on each other."""
        body = self._model.matter.body.numpy()
        parties = [[b] for b in range(len(self._model.ranges))]
        if self._springs is not None and self._touching:
            parties = self._springs.parties()
        return [np.isin(body, party) for party in parties]
