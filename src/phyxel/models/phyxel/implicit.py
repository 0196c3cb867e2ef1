# mypy: disable-error-code="valid-type,no-untyped-def"
"""Implicit Euler for phyxels (M04 §3.6): stiff bodies at frame-sized steps.

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

from typing import TYPE_CHECKING, Any

import numpy as np
import warp as wp

from phyxel import device as dev
from phyxel.contact.table import deformed, distance_to, reach_along
from phyxel.device import Launch, Program, Shared
from phyxel.models.phyxel.conjugate import (
    INDEFINITE,
    RZ,
    apply_system,
    choose_length,
    choose_turn,
    filtered,
    find_frames,
    go_along,
    keep_first,
    move_rigidly,
    precondition,
    restart,
    turn,
)
from phyxel.models.phyxel.contact.springs import ContactSprings
from phyxel.models.phyxel.leapfrog import push_on
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

LET_GO, CAUGHT_AGAIN = wp.constant(-1), wp.constant(2)
"""Contacts of a phyxel besides 0, none, and 1: let go in this step, and caught again after that."""
CREEP = wp.constant(1.0e-4)
"""Sliding speed below which friction is viscous, in spacings per second: so slowly it may creep where it holds."""


@wp.kernel
def start_step(
    first: int,
    hold: wp.array(dtype=wp.int32),
    hold_velocity: wp.array(dtype=Any),
    v: wp.array(dtype=Any),
    v_old: wp.array(dtype=Any),
    contact: wp.array(dtype=wp.int32),
):
    """v' starts as v, or as the velocity of the hold. With this step's pushes added, what rests on the ground would be
    crushed against it, and the first Newton iteration be lost on that."""
    i = first + wp.tid()
    v_old[i] = v[i]
    contact[i] = wp.clamp(contact[i], 0, 1)
    if hold[i] >= 0:
        v[i] = hold_velocity[hold[i]]


@wp.kernel
def look_ahead(
    first: int,
    dt: wp.array(dtype=Any),
    damping: wp.array(dtype=Any),
    u: wp.array(dtype=Any),
    v: wp.array(dtype=Any),
    ahead: wp.array(dtype=Any),
    y: wp.array(dtype=Any),
):
    """u + Δt v' and the same plus βv', for the damped force there."""
    i = first + wp.tid()
    ahead[i] = u[i] + dt[0] * v[i]
    y[i] = ahead[i] + damping[i] * v[i]


@wp.kernel
def meet_colliders(
    first: int,
    dt: wp.array(dtype=Any),
    X: wp.array(dtype=Any),
    reach: wp.array(dtype=Any),
    past: wp.array(dtype=Any),
    body: wp.array(dtype=wp.int32),
    hold: wp.array(dtype=wp.int32),
    colliders: Any,
    gradient: wp.array(dtype=Any),
    u: wp.array(dtype=Any),
    v_old: wp.array(dtype=Any),
    rest: wp.array(dtype=Any),
    v: wp.array(dtype=Any),
    normal: wp.array(dtype=Any),
    wall: wp.array(dtype=Any),
    rub: wp.array(dtype=Any),
    contact: wp.array(dtype=wp.int32),
    changed: wp.array(dtype=wp.int32),
):
    """Which phyxels a collider holds off, the velocity across its surface that makes, and how they rub on it.

    Colliders are where they will be at the end of the step. Where the surface is curved, each Newton iteration takes it
    for flat about where the last one led. A phyxel that meets several keeps to the one it is deepest in.
    `rest` is the momentum that the last solve left for the collider to take up: its impulse is minus that. Coulomb's
    friction μ·impulse against the sliding is written as −rub·(v − wall)_t and so made implicit; below CREEP it is
    viscous. `wall` is the velocity of the collider where it is touched. What was let go in this step and caught again
    is kept till its end: else the contacts of a stiff body can change for ever.
    """
    i = first + wp.tid()
    if hold[i] >= 0:
        return
    zero = dt.dtype(0.0)
    was = contact[i]
    old = normal[i]
    now = int(0)
    rubs = zero
    rise = zero
    deepest = dt.dtype(1.0e30)
    x = X[i] + u[i] + dt[0] * v[i]
    k = int(0)
    while k < colliders.count:
        row = body[i] * colliders.count + k
        arm = x + colliders.place[row]
        w = colliders.drift[row] + wp.cross(colliders.spin[row], arm)
        way = dt[0] * (v[i] - w)
        turn = colliders.turn[row]
        size = colliders.size[row]
        d, n = distance_to(colliders.kind[k], turn, size, colliders.layout[k], colliders.values, arm, way)
        gap = d - reach_along(n, reach[i], deformed(past[i], gradient[i]))
        held = was > 0 and wp.dot(n, old) > dt.dtype(0.5)
        push = -wp.dot(n, rest[i])
        keeps = held and (push > zero or was == CAUGHT_AGAIN)
        if (keeps or (not held and gap < zero)) and gap < deepest:
            now = int(1)
            deepest = gap
            normal[i] = n
            wall[i] = w
            across = wp.dot(n, v[i] - w)
            rise = across - gap / dt[0]
            bounce = -colliders.restitution[k] * wp.dot(n, v_old[i] - w)
            if bounce > zero:
                rise = wp.max(rise, bounce)
            rubs = zero
            if held:
                rubs = (
                    colliders.friction[k]
                    * wp.max(push, zero)
                    / wp.max(wp.length(v[i] - w - across * n), dt.dtype(CREEP))
                )
        k += 1
    if (now > 0) != (was > 0):
        changed[0] = 1
    if now == 1:
        v[i] = v[i] + (rise - wp.dot(normal[i], v[i] - wall[i])) * normal[i]
        if was == LET_GO or was == CAUGHT_AGAIN:  # noqa: SIM109 (a kernel knows no tuples)
            now = CAUGHT_AGAIN
    elif was != 0:
        now = LET_GO
    rub[i] = rubs
    contact[i] = now


@wp.kernel
def find_residual(
    first: int,
    dt: wp.array(dtype=Any),
    mass: wp.array(dtype=Any),
    body: wp.array(dtype=wp.int32),
    acceleration: wp.array(dtype=Any),
    extra: wp.array(dtype=Any),
    drag: wp.array(dtype=Any),
    hold: wp.array(dtype=wp.int32),
    contact: wp.array(dtype=wp.int32),
    normal: wp.array(dtype=Any),
    wall: wp.array(dtype=Any),
    rub: wp.array(dtype=Any),
    force: wp.array(dtype=Any),
    v_old: wp.array(dtype=Any),
    v: wp.array(dtype=Any),
    rest: wp.array(dtype=Any),
    r: wp.array(dtype=Any),
):
    """The momentum that is missing, whole (`rest`) and where it is free to act (`r`)."""
    i = first + wp.tid()
    b = body[i]
    pushed = force[i] + mass[i] * push_on(i, b, acceleration, extra) - drag[i] * mass[i] * v[i]
    rest[i] = mass[i] * (v_old[i] - v[i]) + dt[0] * pushed
    r[i] = filtered(rest[i] - rub[i] * (v[i] - wall[i]), hold[i], contact[i], normal[i])


@wp.func
def stretch_block(d: Any, stiff: Any, shear: Any):
    """∂²W/∂u² of a sample whose gradient takes u with the vector d, for an isotropic law: (λ+μ) d dᵀ + μ|d|² I."""
    return (stiff - shear) * wp.outer(d, d) + shear * wp.dot(d, d) * wp.identity(n=3, dtype=d.dtype)


@wp.kernel
def make_blocks(
    first: int,
    X: wp.array(dtype=Any),
    volume: wp.array(dtype=Any),
    hourglass: wp.array(dtype=Any),
    inverse: wp.array(dtype=Any),
    lever: wp.array(dtype=Any),
    start: wp.array(dtype=wp.int32),
    count: wp.array(dtype=wp.int32),
    stride: int,
    index: wp.array(dtype=wp.int32),
    weight: wp.array(dtype=Any),
    weight_back: wp.array(dtype=Any),
    law: wp.array(dtype=wp.int32),
    stiffness: wp.array(dtype=Any),
    k_v: wp.array(dtype=Any),
    block: wp.array(dtype=Any),
):
    """Diagonal 3 × 3 blocks of K in the reference shape, for the preconditioner."""
    i = first + wp.tid()
    C = stiffness[law[i]]
    stiff = wp.max(C[0, 0], wp.max(C[1, 1], C[2, 2])) + k_v[law[i]]
    shear = wp.max(C[3, 3], wp.max(C[4, 4], C[5, 5]))
    own = inverse[i] * lever[i]
    K = volume[i] * stretch_block(own, stiff, shear)
    tie = X[i].dtype(0.0)
    entry = start[i]
    end = entry + count[i] * stride
    while entry < end:
        j = index[entry]
        d = inverse[j] * (X[i] - X[j]) * weight_back[entry]
        K += volume[j] * stretch_block(d, stiff, shear)
        tie += hourglass[i] * weight[entry] + hourglass[j] * weight_back[entry]
        entry += stride
    block[i] = K + tie * wp.identity(n=3, dtype=X[i].dtype)


@wp.kernel
def invert_blocks(
    first: int,
    dt: wp.array(dtype=Any),
    mass: wp.array(dtype=Any),
    damping: wp.array(dtype=Any),
    drag: wp.array(dtype=Any),
    rub: wp.array(dtype=Any),
    gradient: wp.array(dtype=Any),
    block: wp.array(dtype=Any),
    stiffer: wp.array(dtype=Any),
    inverse_block: wp.array(dtype=Any),
):
    """(m(1 + αΔt) I + (Δt² + βΔt) R K Rᵀ)⁻¹, K turned with the phyxel's rotation R; `stiffer` by its contacts."""
    i = first + wp.tid()
    J = gradient[i] + wp.identity(n=3, dtype=mass.dtype)
    U, _s, V = wp.svd3(J)
    R = U * wp.transpose(V)
    one = mass.dtype(1.0)
    inertia = (mass[i] * (one + drag[i] * dt[0]) + rub[i]) * wp.identity(n=3, dtype=mass.dtype)
    inverse_block[i] = wp.inverse(
        inertia + stiffer[i] + (dt[0] + damping[i]) * dt[0] * (R * block[i] * wp.transpose(R))
    )


@wp.kernel
def correct(first: int, length: wp.array(dtype=Any), delta: wp.array(dtype=Any), v: wp.array(dtype=Any)):
    """v' += length·δ."""
    i = first + wp.tid()
    v[i] = v[i] + length[0] * delta[i]


@wp.kernel
def sum_merit(
    first: int,
    n: int,
    dt: wp.array(dtype=Any),
    mass: wp.array(dtype=Any),
    body: wp.array(dtype=wp.int32),
    acceleration: wp.array(dtype=Any),
    extra: wp.array(dtype=Any),
    drag: wp.array(dtype=Any),
    normal: wp.array(dtype=Any),
    wall: wp.array(dtype=Any),
    rub: wp.array(dtype=Any),
    v_old: wp.array(dtype=Any),
    v: wp.array(dtype=Any),
    energy: wp.array(dtype=Any),
    worth: wp.array(dtype=wp.float64),
    partial: wp.array(dtype=wp.float64),
):
    """Partial sums of U(u + Δt v') + ½m|v' − v − Δt a|² + ½(αΔt m |v'|² + rub |(v' − wall)_t|²): the step without inner
    damping is its minimum."""
    c = first + wp.tid()
    total = wp.float64(0.0)
    i = c * CHUNK
    end = wp.min(n, i + CHUNK)
    while i < end:
        beyond = v[i] - v_old[i] - dt[0] * push_on(i, body[i], acceleration, extra)
        sliding = v[i] - wall[i]
        along = sliding - wp.dot(sliding, normal[i]) * normal[i]
        work = mass[i] * wp.length_sq(beyond) + drag[i] * dt[0] * mass[i] * wp.length_sq(v[i])
        work += rub[i] * wp.length_sq(along)
        total += worth[body[i]] * (wp.float64(energy[i]) + wp.float64(0.5) * wp.float64(work))
        i += 1
    partial[c] = total


class Implicit:
    """Implicit Euler steps of a phyxel model: its arrays and programs."""

    def __init__(self, model: PhyxelModel) -> None:
        self._model = model
        matter, device, real = model.matter, model.device, model.real
        n, vector, tensor = len(model), matter.X.dtype, matter.moments.inverse.dtype
        self._ahead, self._y, self._v_old, self._normal, self._rest, self._wall = (
            wp.zeros(n, dtype=vector, device=device) for _ in range(6)
        )
        self._r, self._delta, self._z, self._p, self._Ap = (wp.zeros(n, dtype=vector, device=device) for _ in range(5))
        self._contact = wp.zeros(n, dtype=wp.int32, device=device)
        self._block, self._inverse_block, self._stiffer = (wp.zeros(n, dtype=tensor, device=device) for _ in range(3))
        self._coupling = wp.zeros(n, dtype=vector, device=device)
        self._energy, self._rub = (wp.zeros(n, dtype=real, device=device) for _ in range(2))
        bodies = len(model.ranges)
        units = np.array(model.units)
        self._worth = wp.array((units / units.max()) ** 3, dtype=wp.float64, device=device)
        self._springs: ContactSprings | None = None
        self._begin = wp.array([low for low, _ in model.ranges] + [n], dtype=wp.int32, device=device)
        self._total = wp.zeros(bodies, dtype=real, device=device)
        self._middle, self._drift, self._spin = (wp.zeros(bodies, dtype=vector, device=device) for _ in range(3))
        self._inverse_inertia = wp.zeros(bodies, dtype=tensor, device=device)
        self._dt, self._length = Shared(1, real, device), Shared(1, real, device)
        self._changed = Shared(1, wp.int32, device)
        self._solver = Shared(4, wp.float64, device)
        self._chunks = (n + CHUNK - 1) // CHUNK
        self._partials = Shared(self._chunks, wp.float64, device)
        self._negligible = self._acceptable = self._largest = 0.0
        self._settled = False
        self._touching = False
        """whether bodies may touch in this step"""
        self._programs: dict[str, Program] = {}

    def _launches(self) -> dict[str, list[Launch]]:
        m, matter, n, bodies = self._model, self._model.matter, len(self._model), len(self._model.ranges)
        dt, body, X, rub, laws = self._dt.array, matter.body, matter.X, self._rub, matter.laws
        held = [m.hold, self._contact, self._normal]
        inner = [m.damping, m.drag, rub]
        frames = [self._total, self._middle, self._inverse_inertia]
        rigid = [self._middle, self._drift, self._spin]
        shape = [X, matter.volume, matter.hourglass, matter.moments.inverse, matter.moments.lever]
        weights = [matter.near.weight, matter.near.weight_back]
        partial, solver = self._partials.array, self._solver.array

        def over(kernel: wp.Kernel, *inputs: Any) -> Launch:
            return Launch(kernel, n, list(inputs))

        def over_chunks(kernel: wp.Kernel, *inputs: Any) -> Launch:
            return Launch(kernel, self._chunks, [n, *inputs, partial], work=CHUNK // 4)

        def over_bodies(kernel: wp.Kernel, *inputs: Any) -> Launch:
            return Launch(kernel, bodies, [self._begin, X, self._ahead, *inputs])

        def once(kernel: wp.Kernel) -> Launch:
            return Launch(kernel, 1, [self._chunks, partial, solver])

        system = [dt, m.mass, body, *inner, *held, self._p, self._Ap, self._coupling, self._worth]
        whole = [self._inverse_block, body, X, self._ahead, *rigid, self._r, *held]
        meeting = [m.forces.gradient, m.u, self._v_old, self._rest, m.v, self._normal, self._wall, rub]
        outcome = [self._contact, self._changed.array]
        pushing = [m.acceleration, m.extra, m.drag]
        missing = [*pushing, *held, self._wall, rub, m.force, self._v_old, m.v, self._rest, self._r]
        merit = [*pushing, self._normal, self._wall, rub, self._v_old, m.v, self._energy, self._worth]
        rigidly = over_bodies(move_rigidly, *frames, self._r, self._drift, self._spin)
        search = [
            over_chunks(apply_system, *system),
            once(choose_length),
            over(go_along, solver, self._p, self._Ap, self._delta, self._r),
            rigidly,
            over_chunks(precondition, *whole, self._z, self._worth),
            once(choose_turn),
            over(turn, solver, self._z, self._p),
        ]
        launches = {
            "blocks": [
                over(make_blocks, *shape, *matter.lists, *weights, laws.of, laws.stiffness, laws.k_v, self._block)
            ],
            "start": [over(start_step, m.hold, m.hold_velocity, m.v, self._v_old, self._contact)],
            "contacts": [
                over(meet_colliders, dt, X, m.reach, matter.past, body, m.hold, m.colliders, *meeting, *outcome),
            ],
            "residual": [
                over(look_ahead, dt, m.damping, m.u, m.v, self._ahead, self._y),
                *m.forces.damped(self._ahead, self._y, m.force),
                over(find_residual, dt, m.mass, body, *missing),
            ],
            "precondition": [
                over(
                    invert_blocks,
                    dt,
                    m.mass,
                    *inner,
                    m.forces.gradient,
                    self._block,
                    self._stiffer,
                    self._inverse_block,
                ),
                over_bodies(find_frames, m.mass, *frames),
            ],
            "begin": [
                rigidly,
                over_chunks(precondition, *whole, self._z, self._worth),
                once(keep_first),
                over(restart, self._z, self._delta, self._p),
            ],
            "search": [*m.forces.tangent(self._p, self._Ap), *search],
            "positive search": [*m.forces.positive_tangent(self._p, self._Ap), *search],
            "flow": m.flow_launches(dt, 0),
            "correct": [over(correct, self._length.array, self._delta, m.v)],
            "merit": [m.forces.energy(self._ahead, self._energy), over_chunks(sum_merit, dt, m.mass, body, *merit)],
        }
        return launches | self._touching_launches(launches, held)

    def _touching_launches(self, launches: dict[str, list[Launch]], held: list[wp.array]) -> dict[str, list[Launch]]:
        """The same where bodies may touch: with the springs between them."""
        if self._springs is None:
            return {}
        springs, merit = self._springs, launches["merit"]
        coupled = springs.couple(self._p, self._coupling)
        extended = {
            "start": springs.start(self._dt.array, self._block) + launches["start"],
            "contacts": launches["contacts"] + springs.rub(self._changed),
            "residual": launches["residual"] + springs.press(self._dt.array, held, self._rest, self._r),
            "precondition": springs.blocks(self._stiffer) + launches["precondition"],
            "search": coupled + launches["search"],
            "positive search": coupled + launches["positive search"],
            "merit": [merit[0], *springs.energy(self._energy), *merit[1:]],
        }
        return {f"touching {name}": items for name, items in extended.items()}

    @property
    def state(self) -> dict[str, wp.array]:
        """What one step leaves to the next: how phyxels met the colliders."""
        kept = {"contact": self._contact, "normal": self._normal, "wall": self._wall}
        return kept | {"rest": self._rest, "rub": self._rub}

    def outdate(self) -> None:
        """Arrays have been replaced."""
        self._programs = {}

    def forget_springs(self) -> None:
        """Bodies meet otherwise than before."""
        self._springs = None
        self.outdate()

    def forget_contacts(self) -> None:
        """A collider is gone."""
        self._contact.zero_()

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
            self._coupling.zero_()
            self._stiffer.zero_()
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
            self._coupling.zero_()
            self._stiffer.zero_()

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
        mass, v = m.mass.numpy().astype(np.float64), m.v.numpy()
        push = dt * m.pushes()
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
        v_old, v = unit * self._v_old.numpy(), unit * m.v.numpy()
        x = m.place_of_nodes()
        mass, dt = m.mass.numpy() * unit[:, 0], float(self._dt.host[0])
        touched = (m.hold.numpy() >= 0) | (self._contact.numpy() > 0)
        push = unit * m.pushes()
        slowing = 1 / (1 + m.drag.numpy().astype(np.float64) * dt)
        parties = [[b] for b in range(len(m.ranges))]
        if self._springs is not None and self._touching:
            parties = self._springs.parties()
        for party in parties:
            part = np.isin(body, party)
            if not touched[part].any():
                v[part] = _with_momenta(x[part], v_old[part], v[part], mass[part], dt, push[part], slowing[part, None])
        m.v.assign((v / unit).astype(m.v.numpy().dtype))
        m.u.assign(self._ahead)
        self._run("flow")


def _with_momenta(x: Any, v_old: Any, v: Any, mass: Any, dt: float, push: Any, slowing: Any) -> Any:
    """v' with the momentum and, about the middle of mass, the angular momentum that v and a push (n, 3) leave."""
    total = mass.sum()
    free = slowing * (v_old + dt * push)
    drift_old, drift = mass @ free / total, mass @ v / total
    arm_old = x - mass @ x / total
    arm = arm_old + dt * (v - drift)
    target = np.cross(arm_old, mass[:, None] * (free - drift_old)).sum(axis=0)
    missing = target - np.cross(arm, mass[:, None] * (v - drift)).sum(axis=0)
    inertia = (mass @ (arm**2).sum(axis=1)) * np.eye(3) - np.einsum("n,ni,nj->ij", mass, arm, arm)
    return v + drift_old - drift + np.cross(np.linalg.solve(inertia, missing), arm)
