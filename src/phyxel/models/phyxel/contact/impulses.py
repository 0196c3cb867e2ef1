# mypy: disable-error-code="valid-type,no-untyped-def"
"""Contact of bodies with each other and with themselves, by impulses (physics 15.6).

A node may take part in many contacts. Each gets a part of its mass in proportion to its share (Tonge et al. 2012), so
that all can be resolved at once and no energy appears: along a direction e, contact i yields

    w_i(e) = S_i/m_i + Σ_k s_ik S_k/m_k |e + ω(e) × r_k|²,   S_k = Σ over contacts of their shares in k

to a unit impulse, where s, ω and r are those of its patch (see `patches`). Lengths in metres, masses in kilograms.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import warp as wp
from numpy.typing import NDArray
from scipy.sparse.csgraph import connected_components

from phyxel import device as dev
from phyxel.device import Launch, packed
from phyxel.models.phyxel.contact.candidates import WORK, Candidates, ContactNodes, ContactPart
from phyxel.models.phyxel.contact.patches import FAR, NodeContacts, against_patch, find_contacts, pair_weight
from phyxel.models.phyxel.leapfrog import KICK
from phyxel.solid.distance_grid import DistanceGrid

if TYPE_CHECKING:
    from phyxel.models.phyxel.model import PhyxelModel

wp.set_module_options(dev.KERNEL_OPTIONS)

Floats = NDArray[np.floating]

TOUCHING = 1.0e-4
"""Gap, in spacings, below which bodies count as touching."""
TINY = wp.constant(1.0e-30)
"""[N s]"""
PUSHED_OUT = wp.constant(0.005)
"""Share of a depth that is taken back in a step. A shift against the stress of a body does work: it has to be slower
than sound, which crosses most bodies in less than a hundred steps."""
STICKS = wp.constant(1.0 - 1.0e-6)
"""Share of what friction can hold below which it holds."""
ROUNDS = 8
"""How often impulses are found in a step: contacts that share nodes see each other's only afterwards."""
BEYOND = wp.constant(1.4)
"""Times what would end its approach if all others did as much, that a contact gets in a round: what pushes against the
grain of its neighbours needs four times as much."""
MOST = wp.constant(2.0)
"""As many times that, at most, a contact gets at once of what it bore in the last step: up to then no energy appears.
Approach that rounds leave lets nodes sink without storing what that takes: with four rounds from nothing, balls lost
half of their energy."""
FARTHEST_MOVE = 0.5
"""Nothing comes nearer than this share of the smaller spacing in one step."""


@wp.kernel
def sum_shares(
    first: int,
    nodes: ContactNodes,
    contacts: NodeContacts,
    hold: wp.array(dtype=wp.int32),
    mass: wp.array(dtype=float),
):
    """S_k/m_k of each node (physics 15.6)."""
    packed(nodes.count)
    packed(nodes.index)
    packed(nodes.body)
    packed(contacts.target)
    k = first + wp.tid()
    if nodes.count[k] == 0:
        return
    shares = float(0.0)
    if contacts.target[k] >= 0:
        shares = 1.0
    entry = k * nodes.capacity
    end = entry + nodes.count[k]
    while entry < end:
        i = nodes.index[entry]
        if contacts.target[i] == nodes.body[k]:
            shares += pair_weight(i, k, nodes.unit, nodes.body, nodes.ball, nodes.x) * contacts.per_weight[i]
        entry += 1
    contacts.yielding[k] = 0.0
    if hold[k] < 0:
        contacts.yielding[k] = shares / (nodes.unit[nodes.body[k]] * mass[k])


@wp.kernel
def find_impulses(
    first: int,
    nodes: ContactNodes,
    contacts: NodeContacts,
    clock: wp.array(dtype=float),
    drift: int,
    v: wp.array(dtype=wp.vec3),
    shifting: int,
):
    """What a round adds to the impulse that ends the approach of each node, with Coulomb's friction, and the shift that
    takes a share of the depth and of the slip back, if there is to be one. A node that is apart may still close its gap
    in this step (physics 15.6)."""
    packed(nodes.count)
    packed(contacts.target)
    i = first + wp.tid()
    b = contacts.target[i]
    if nodes.count[i] == 0 or b < 0:
        return
    velocity = against_patch(i, nodes, contacts, v)
    centre = contacts.centre[i]
    arm = nodes.x[i] - centre
    per_inertia = contacts.per_inertia[i]
    n = contacts.normal[i]
    approach = -wp.dot(velocity, n)
    along = velocity + approach * n
    sliding = wp.length(along)
    t = wp.vec3()
    if sliding > 0.0:
        t = along / sliding
    turn_n = per_inertia * wp.cross(arm, n)
    turn_t = per_inertia * wp.cross(arm, t)
    gives_t = float(0.0)
    gives_n = float(0.0)
    entry = i * nodes.capacity
    end = entry + nodes.count[i]
    while entry < end:
        k = nodes.index[entry]
        if nodes.body[k] == b:
            w = pair_weight(i, k, nodes.unit, nodes.body, nodes.ball, nodes.x) * contacts.yielding[k]
            r = nodes.x[k] - centre
            gives_n += w * wp.length_sq(n + wp.cross(turn_n, r))
            gives_t += w * wp.length_sq(t + wp.cross(turn_t, r))
        entry += 1
    gives_n = contacts.yielding[i] + contacts.per_weight[i] * gives_n
    gives_t = contacts.yielding[i] + contacts.per_weight[i] * gives_t
    before = wp.vec3()
    if shifting == 0:
        before = contacts.total[i]
    after = wp.vec3()
    shift = wp.vec3()
    if gives_n > 0.0:
        apart = float(0.0)
        if clock[drift] > 0.0:
            apart = wp.max(contacts.gap[i], 0.0) / clock[drift]
        closing = (approach - apart) / gives_n
        stopping = sliding / gives_t
        if shifting == 1:
            foreseen = wp.vec3()
            if contacts.pressed_on[i] == b:
                foreseen = clock[KICK] * contacts.force[i]
            closing = wp.clamp(wp.dot(n, foreseen), closing, MOST * closing)
            stopping = wp.clamp(-wp.dot(t, foreseen), stopping, MOST * stopping)
        else:
            closing = BEYOND * closing
            stopping = BEYOND * stopping
        push = wp.max(wp.dot(n, before) + closing, 0.0)
        rub = before - wp.dot(n, before) * n - stopping * t
        most = wp.sqrt(nodes.friction[nodes.body[i]] * nodes.friction[b]) * push
        after = push * n + wp.min(1.0, most / wp.max(wp.length(rub), TINY)) * rub
        # Faces that have just parted fit into each other: coarse nodes see a depth where there is none.
        family = nodes.family[nodes.body[i]]
        if shifting == 1 and (family < 0 or family != nodes.family[b]):
            back = wp.max(-contacts.gap[i], 0.0) * n
            if contacts.held_on[i] == b:
                slip = contacts.slip[i]
                back -= slip - wp.dot(slip, n) * n
            shift = PUSHED_OUT * back / gives_n
    contacts.total[i] = after
    contacts.impulse[i] = after - before
    contacts.twist[i] = per_inertia * wp.cross(arm, after - before)
    contacts.shift[i] = shift
    contacts.shift_twist[i] = per_inertia * wp.cross(arm, shift)


@wp.kernel
def take_impulses(
    first: int,
    nodes: ContactNodes,
    contacts: NodeContacts,
    hold: wp.array(dtype=wp.int32),
    mass: wp.array(dtype=float),
    damping: wp.array(dtype=float),
    clock: wp.array(dtype=float),
    drift: int,
    u: wp.array(dtype=wp.vec3),
    v: wp.array(dtype=wp.vec3),
    y: wp.array(dtype=wp.vec3),
    shifting: int,
):
    """What the contacts of each node do to it. The step is taken with the velocity they leave; a shift moves only
    (physics 15.5, 15.6)."""
    packed(nodes.count)
    packed(nodes.index)
    packed(nodes.body)
    packed(contacts.target)
    k = first + wp.tid()
    if nodes.count[k] == 0:
        return
    if hold[k] >= 0:
        contacts.moved[k] = wp.vec3()
        return
    pushed = wp.vec3()
    moved = wp.vec3()
    touched = contacts.target[k] >= 0
    if touched:
        pushed = contacts.impulse[k]
        moved = contacts.shift[k]
    entry = k * nodes.capacity
    end = entry + nodes.count[k]
    while entry < end:
        i = nodes.index[entry]
        if contacts.target[i] == nodes.body[k]:
            s = pair_weight(i, k, nodes.unit, nodes.body, nodes.ball, nodes.x) * contacts.per_weight[i]
            r = nodes.x[k] - contacts.centre[i]
            pushed -= s * (contacts.impulse[i] + wp.cross(contacts.twist[i], r))
            moved -= s * (contacts.shift[i] + wp.cross(contacts.shift_twist[i], r))
            touched = True
        entry += 1
    if touched:
        b = nodes.body[k]
        per_momentum = 1.0 / (nodes.unit[b] * nodes.unit[b] * mass[k])
        change = per_momentum * pushed
        v[k] = v[k] + change
        u[k] = u[k] + clock[drift] * change + per_momentum * moved
        y[k] = u[k] + damping[k] * v[k]
    if shifting == 1:
        contacts.moved[k] = moved / (nodes.unit[nodes.body[k]] * nodes.unit[nodes.body[k]] * mass[k])


@wp.kernel
def keep_slips(
    first: int,
    nodes: ContactNodes,
    contacts: NodeContacts,
    clock: wp.array(dtype=float),
    drift: int,
    v: wp.array(dtype=wp.vec3),
):
    """How far each node has slipped after a step since friction held it, shifts included; nothing where it slides
    (physics 15.6)."""
    i = first + wp.tid()
    b = contacts.target[i]
    if clock[drift] <= 0.0:
        return
    held = int(-1)
    slip = wp.vec3()
    contacts.pressed_on[i] = b
    contacts.force[i] = contacts.total[i] / clock[KICK]
    if nodes.count[i] > 0 and b >= 0:
        push = wp.dot(contacts.normal[i], contacts.total[i])
        rub = wp.length(contacts.total[i] - push * contacts.normal[i])
        if rub < STICKS * wp.sqrt(nodes.friction[nodes.body[i]] * nodes.friction[b]) * push:
            held = b
            if contacts.held_on[i] == b:
                slip = contacts.slip[i]
            slip += clock[drift] * against_patch(i, nodes, contacts, v)
            slip += against_patch(i, nodes, contacts, contacts.moved)
            slip -= wp.dot(slip, contacts.normal[i]) * contacts.normal[i]
    contacts.held_on[i] = held
    contacts.slip[i] = slip


class BodyContact:
    """Contact between the bodies of a phyxel model, and of each with itself."""

    def __init__(self, model: PhyxelModel, parts: Sequence[ContactPart]) -> None:
        self._model, self._parts = model, parts
        self.candidates = Candidates(model, parts)
        self.contacts = NodeContacts()
        self._make_room(1)  # until something is near
        bodies = len(parts)
        self.offsets = np.zeros((bodies, 3))
        """origins of the bodies about a common one [m], shape (bodies, 3)"""
        self._guides: dict[int, DistanceGrid] = {}
        self._guide_array = wp.array([DistanceGrid() for _ in parts], dtype=DistanceGrid, device=model.device)
        self._closing = np.zeros((bodies, bodies))
        self._fresh = False
        self.met = np.zeros((bodies, bodies), bool)
        """which bodies were near each other since `parties` was last asked"""

    @property
    def possible(self) -> bool:
        """Whether any node may touch another."""
        return bool(self.candidates.found.any())

    # What the world asks for

    def place(self, origins: Floats, friction: Sequence[float]) -> None:
        """Say where bodies are [m], (bodies, 3), after their origins have moved, and how they rub."""
        found = self.candidates
        self.offsets = origins - origins.mean(axis=0)
        found.offset.host[:] = self.offsets
        found.friction.host[:] = friction
        found.offset.push()
        found.friction.push()

    @property
    def keeps_off(self) -> bool:
        """Whether some nodes do not touch what they are tied to."""
        return bool((self.candidates.nodes.tied.numpy() >= 0).any())

    def keep_off(self, tied: NDArray[np.int32]) -> None:
        """Let nodes not touch the bodies (n,) that they are tied to, -1 for none."""
        known = self.candidates.nodes.tied
        if not np.array_equal(known.numpy(), tied):
            known.assign(tied)
            self.outdate()

    def outdate(self) -> None:
        """Something happened to the bodies from outside: candidates are to be found anew."""
        self._fresh = False

    def moved(self, way: float) -> None:
        """Nodes have been moved so far [m], at most, besides what their speeds made of it."""
        self.candidates.slack -= 2 * way

    @property
    def slack(self) -> NDArray[np.float64]:
        """What bodies may move before candidates are found anew [m], and which are near each other,
        shape (2, bodies, bodies)."""
        return np.stack([self.candidates.slack * self._fresh, self.candidates.near])

    @property
    def kept(self) -> NDArray[np.float64]:
        """What friction holds each node on, as a number, and how far it has slipped since [m]; what presses on it, and
        its force [N]; shape (n, 8)."""
        found, known = np.zeros((len(self._model), 8)), self.contacts
        if len(known.slip) == len(found):
            parts = (known.held_on.numpy()[:, None], known.slip.numpy(), known.pressed_on.numpy()[:, None])
            found[:] = np.concatenate([*parts, known.force.numpy()], axis=1)
        return found

    def resume(self, slack: NDArray[np.float64], kept: NDArray[np.float64]) -> None:
        """Go on as where `slack` and `kept` were asked for: find candidates, but for no longer than they would have
        served."""
        self._renew(np.inf)
        if len(self.contacts.slip) == len(kept):
            self.contacts.held_on.assign(kept[:, 0].astype(np.int32))
            self.contacts.slip.assign(kept[:, 1:4].astype(np.float32))
            self.contacts.pressed_on.assign(kept[:, 4].astype(np.int32))
            self.contacts.force.assign(kept[:, 5:].astype(np.float32))
        self.candidates.slack, self.candidates.near = slack[0].copy(), slack[1].astype(bool)

    def longest_step(self) -> float:
        """Step [s] in which nothing that is near something else comes nearer by half a spacing."""
        self._closing = self.candidates.closing_speeds()
        if not np.isfinite(self._closing).all():
            return np.inf  # the world says what is wrong
        units = self.candidates.units
        way = FARTHEST_MOVE * np.minimum.outer(units, units)
        near = self.candidates.near & (self._closing > 0)
        return float((way[near] / self._closing[near]).min(initial=np.inf))

    def prepare(self, step: float, most: int) -> int:
        """Have candidates for steps of `step` [s] from now on; for how many of `most` steps they serve, at least one.
        `longest_step` has looked at the speeds."""
        if not np.isfinite(self._closing).all():
            return most
        if not self._fresh or self.candidates.serve(step, most, self._closing) < most:
            self._renew(step * float(self._closing.max()))
        serves = max(1, self.candidates.serve(step, most, self._closing))
        self.candidates.spend(serves * step, self._closing)
        return serves

    def _renew(self, way: float) -> None:
        moved = self.candidates.renew(way)
        self._fresh = True
        self.met |= self.candidates.near
        if self.possible and len(self.contacts.target) < len(self._model):
            self._make_room(len(self._model))
            moved = True
        if not self.possible:
            self.contacts.slip.zero_()
            self.contacts.force.zero_()
        missing = [b for b in np.flatnonzero(self.candidates.found).tolist() if b not in self._guides]
        for b in missing:
            self._guides[b] = self._parts[b].guide()
        if missing:
            guides = [self._guides.get(b, DistanceGrid()) for b in range(len(self._parts))]
            self._guide_array = wp.array(guides, dtype=DistanceGrid, device=self._model.device)
        if moved or missing:
            self._model.outdate_programs()

    def _make_room(self, nodes: int) -> None:
        for name, variable in NodeContacts.vars.items():  # type: ignore[attr-defined]
            setattr(self.contacts, name, wp.zeros(nodes, dtype=variable.type.dtype, device=self._model.device))

    def parties(self) -> list[set[int]]:
        """Bodies that were near each other, or near some that were, since this was last asked."""
        met = self.met | self.candidates.near
        self.met = self.candidates.near.copy()
        _, label = connected_components(met, directed=False)
        return [set(np.flatnonzero(label == party).tolist()) for party in range(label.max() + 1)]

    def near_parties(self) -> NDArray[np.integer]:
        """The number of each body's group of bodies that are near each other now, shape (bodies,)."""
        return np.asarray(connected_components(self.candidates.near, directed=False)[1])

    # What a step does

    def over(self, kernel: wp.Kernel, *inputs: Any) -> Launch:
        """A kernel of contact over all nodes."""
        return Launch(kernel, len(self._model), [self.candidates.nodes, self.contacts, *inputs], work=WORK)

    def finding(self, clock: wp.array, drift: int, nearest: float, u: wp.array) -> list[Launch]:
        """Contacts where nodes were before they moved to `u` with v for clock[drift] [s], of those that then are nearer
        than `nearest` spacings."""
        model, found = self._model, self.candidates
        matter = model.matter
        shape = [self._guide_array, matter.birth, found.support, matter.past, model.now.gradient]
        return [
            found.place(clock, drift, u),
            self.over(find_contacts, *shape, clock, drift, model.v, nearest),
        ]

    def gaps(self) -> tuple[NDArray[np.int64], NDArray[np.integer], Floats, Floats]:
        """Which nodes are within reach of another body (k,), which that is (k,), gaps [m] (k,) and normals (k, 3)."""
        model, none = self._model, wp.zeros(1, dtype=float, device=self._model.device)
        for item in self.finding(none, 0, float(FAR), model.u):
            dev.launch(item.kernel, item.count, item.inputs, model.device)
        target = self.contacts.target.numpy()
        which = np.flatnonzero((target >= 0) & (target != model.matter.body.numpy()))
        gap, normal = (array.numpy()[which].astype(np.float64) for array in (self.contacts.gap, self.contacts.normal))
        return which, target[which], gap, normal

    def launches(self, clock: wp.array, drift: int, y: wp.array) -> list[Launch]:
        """Contacts in a leap-frog move of clock[drift] [s] that led to u, and what they do to u, v and y = u + βv.

        They are found where the move began: angular momentum is kept when impulses act there, and J is known there."""
        model = self._model
        who = [model.outside.hold, model.matter.mass]

        def impulses(shifting: int) -> list[Launch]:
            return [
                self.over(find_impulses, clock, drift, model.v, shifting),
                self.over(take_impulses, *who, model.matter.damping, clock, drift, model.u, model.v, y, shifting),
            ]

        return [
            *self.finding(clock, drift, TOUCHING, model.u),
            self.over(sum_shares, *who),
            *impulses(1),
            *(item for _ in range(ROUNDS - 1) for item in impulses(0)),
            self.over(keep_slips, clock, drift, model.v),
        ]
