# mypy: disable-error-code="valid-type,no-untyped-def"
"""Contact of bodies inside an implicit step: one-sided springs on the gap that the step leads to (physics
15.7).

    g_i = gap_i + h n·(v_i − v_patch),   energy ½ κ_i min(g_i, 0)²,   A gains Δt²κ_i n nᵀ where g_i < 0

Springs are STIFFER times as stiff as the node and the patch they push apart, Δt²κ = STIFFER·(m + Δt²K), so that the
system stays well conditioned. A node that begins a step inside the other body is asked for a share of its depth only,
lest it be shot out. Friction against the sliding e = v_t + s/τ is −rub·e where it holds, s being how far the node has
slipped since it touched, but no farther than friction gives way; where it slides it is a load of μ·push, and implicit
across the way it goes only (physics 15.3). Metres, kilograms.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np
import warp as wp
from numpy.typing import NDArray
from scipy.sparse.csgraph import connected_components

from phyxel import device as dev
from phyxel.device import Launch
from phyxel.models.phyxel.conjugate import across, filtered
from phyxel.models.phyxel.contact.candidates import ContactNodes
from phyxel.models.phyxel.contact.impulses import TINY, BodyContact
from phyxel.models.phyxel.contact.patches import NodeContacts, against_patch, pair_weight
from phyxel.models.phyxel.walls import TAKEN_BACK, WallContacts, slowest, way_of

if TYPE_CHECKING:
    from phyxel.models.phyxel.model import PhyxelModel

wp.set_module_options(dev.KERNEL_OPTIONS)

STIFFER = wp.constant(10.0)
"""Stiffness of a contact over that of the node and the patch it pushes apart."""
RETURN = wp.constant(0.2)
"""Share of a depth that a step is asked to take back."""
REACHED = 0.5
"""Gap, in spacings, up to which a node may come to touch within a step."""


@wp.struct
class SpringArrays:
    """What springs do to each node, shape (n,) each."""

    stiff: wp.array(dtype=float)
    """Δt²κ [kg]"""
    rub: wp.array(dtype=float)
    """[kg]"""
    load: wp.array(dtype=wp.vec3)
    """impulse of friction of what slides, against the way it goes [N s]"""
    pressed: wp.array(dtype=wp.int32)
    """whether the spring pushes"""
    was_pressed: wp.array(dtype=wp.int32)
    """whether it did when contacts were last looked at"""
    force: wp.array(dtype=float)
    """that it pushes with, as one stage leaves it to the next [N]"""
    friction: wp.array(dtype=wp.vec3)
    """likewise against its friction [N]"""
    way: wp.array(dtype=wp.vec3)
    """likewise the way it slides, of length 1, or 0 where friction holds"""
    least: wp.array(dtype=float)
    """likewise the speed at which friction gives way [m/s]: what holds is no stiffer than what pushes"""
    turns: wp.array(dtype=wp.int32)
    """how often it has come to slide, or to hold, in this stage"""


@wp.func
def along_spring(i: int, contacts: NodeContacts, springs: SpringArrays, velocity: wp.vec3):
    """What a spring that pushes, and its friction, answer to a relative velocity: Δt²κ n(n·v) + rub v_t [N s], of v_t
    that across the way it slides only."""
    n = contacts.normal[i]
    up = wp.dot(n, velocity)
    rubbed = springs.rub[i] * across(velocity - up * n, springs.way[i])
    return springs.stiff[i] * float(springs.pressed[i]) * up * n + rubbed


@wp.func
def sliding_by(i: int, nodes: ContactNodes, contacts: NodeContacts, springs: SpringArrays, velocity: wp.vec3):
    """What friction acts against: the sliding, and the slip over τ, which is what holds at rest [m/s]."""
    b = contacts.target[i]
    e = velocity
    if contacts.held_on[i] == b:
        slip = contacts.slip[i] / TAKEN_BACK
        e += slip * wp.min(1.0, springs.least[i] / wp.max(wp.length(slip), TINY))
    return e - wp.dot(contacts.normal[i], e) * contacts.normal[i]


@wp.kernel
def tighten(
    first: int,
    nodes: ContactNodes,
    contacts: NodeContacts,
    springs: SpringArrays,
    dt: wp.array(dtype=float),
    mass: wp.array(dtype=float),
    block: wp.array(dtype=wp.mat33),
):
    """Δt²κ = STIFFER·a_i a_p/(a_i + a_p), a = m + Δt² tr K/3 of the node and of its patch [kg] (physics 15.7)."""
    i = first + wp.tid()
    h = dt[nodes.body[i]]
    springs.rub[i] = 0.0
    springs.load[i] = wp.vec3()
    springs.stiff[i] = 0.0
    if h == 0.0:
        return
    springs.pressed[i] = 0
    springs.was_pressed[i] = 0
    springs.turns[i] = 0
    b = contacts.target[i]
    if nodes.count[i] == 0 or b < 0:
        springs.force[i] = 0.0
        springs.friction[i] = wp.vec3()
        springs.way[i] = wp.vec3()
        return
    patch = float(0.0)
    entry = i * nodes.capacity
    end = entry + nodes.count[i]
    while entry < end:
        k = nodes.index[entry]
        if nodes.body[k] == b:
            s = pair_weight(i, k, nodes.unit, nodes.body, nodes.ball, nodes.x) * contacts.per_weight[i]
            patch += s * (mass[k] + h * h * wp.trace(block[k]) / 3.0)
        entry += 1
    patch = patch * nodes.unit[b]
    own = nodes.unit[nodes.body[i]] * (mass[i] + h * h * wp.trace(block[i]) / 3.0)
    springs.stiff[i] = STIFFER * own * patch / (own + patch)


@wp.kernel
def press(
    first: int,
    nodes: ContactNodes,
    contacts: NodeContacts,
    springs: SpringArrays,
    dt: wp.array(dtype=float),
    v: wp.array(dtype=wp.vec3),
):
    """The impulse of each spring at the velocities of now (physics 15.7)."""
    i = first + wp.tid()
    if nodes.count[i] == 0 or contacts.target[i] < 0:
        return
    if springs.stiff[i] == 0.0:
        contacts.impulse[i] = wp.vec3()
        contacts.twist[i] = wp.vec3()
        return
    velocity = against_patch(i, nodes, contacts, v)
    n = contacts.normal[i]
    wanted = wp.max(contacts.gap[i], RETURN * contacts.gap[i]) / dt[nodes.body[i]]
    comes = -(wanted + wp.dot(n, velocity))
    springs.pressed[i] = wp.where(comes > 0.0, 1, 0)
    push = springs.stiff[i] * wp.max(comes, 0.0)
    sliding = sliding_by(i, nodes, contacts, springs, velocity)
    rubbed = springs.rub[i] * across(sliding, springs.way[i]) + springs.load[i]
    springs.force[i] = push / dt[nodes.body[i]]
    springs.friction[i] = rubbed / dt[nodes.body[i]]
    contacts.impulse[i] = push * n - rubbed
    contacts.twist[i] = contacts.per_inertia[i] * wp.cross(nodes.x[i] - contacts.centre[i], contacts.impulse[i])


@wp.kernel
def rub_on(
    first: int,
    nodes: ContactNodes,
    contacts: NodeContacts,
    springs: SpringArrays,
    dt: wp.array(dtype=float),
    v: wp.array(dtype=wp.vec3),
    changed: wp.array(dtype=wp.int32),
):
    """How contacts rub, by the push of now, at first that of the last stage: found anew from no friction in each, what
    should hold would creep. And whether any pushes that did not, or the other way about, or friction is none that there
    can be (physics 15.3, 15.7)."""
    i = first + wp.tid()
    b = contacts.target[i]
    if nodes.count[i] == 0 or b < 0 or springs.stiff[i] == 0.0:
        return
    if springs.pressed[i] != springs.was_pressed[i]:
        changed[0] = 1
    springs.was_pressed[i] = springs.pressed[i]
    h = dt[nodes.body[i]]
    rough = wp.sqrt(nodes.friction[nodes.body[i]] * nodes.friction[b])
    most = rough * h * springs.force[i]
    least = wp.max(nodes.unit[b] * slowest(h), most / springs.stiff[i])
    springs.least[i] = least
    e = sliding_by(i, nodes, contacts, springs, against_patch(i, nodes, contacts, v))
    friction = h * springs.friction[i]
    rubbed = wp.length_sq(friction) > 0.0
    way, speed, turns = way_of(e, least, springs.way[i], rubbed, friction, most, springs.turns[i])
    if turns != springs.turns[i]:
        changed[0] = 1
    springs.turns[i] = turns
    springs.way[i] = way
    springs.load[i] = most * way
    springs.rub[i] = most / speed


@wp.func
def gathered(
    k: int,
    nodes: ContactNodes,
    contacts: NodeContacts,
):
    """What the impulses of all contacts do to node k [N s] (physics 15.5)."""
    pushed = wp.vec3()
    if contacts.target[k] >= 0:
        pushed = contacts.impulse[k]
    entry = k * nodes.capacity
    end = entry + nodes.count[k]
    while entry < end:
        i = nodes.index[entry]
        if contacts.target[i] == nodes.body[k]:
            s = pair_weight(i, k, nodes.unit, nodes.body, nodes.ball, nodes.x) * contacts.per_weight[i]
            pushed -= s * (contacts.impulse[i] + wp.cross(contacts.twist[i], nodes.x[k] - contacts.centre[i]))
        entry += 1
    return pushed


@wp.kernel
def take_presses(
    first: int,
    nodes: ContactNodes,
    contacts: NodeContacts,
    hold: wp.array(dtype=wp.int32),
    dt: wp.array(dtype=float),
    contact: wp.array(dtype=wp.int32),
    normal: wp.array(dtype=wp.vec3),
    rest: wp.array(dtype=wp.vec3),
    r: wp.array(dtype=wp.vec3),
):
    """The impulses of the springs, added to the momentum that is missing (physics 5.4, 15.7)."""
    k = first + wp.tid()
    if nodes.count[k] == 0:
        return
    h = dt[nodes.body[k]]
    if h == 0.0:
        return
    unit = nodes.unit[nodes.body[k]]
    pushed = gathered(k, nodes, contacts) / (unit * unit)
    rest[k] = rest[k] + pushed / h
    r[k] = r[k] + filtered(pushed, hold[k], contact[k], normal[k])


@wp.kernel
def stretch(
    first: int,
    nodes: ContactNodes,
    contacts: NodeContacts,
    springs: SpringArrays,
    p: wp.array(dtype=wp.vec3),
):
    """What each contact answers to the direction p (physics 15.7)."""
    i = first + wp.tid()
    if nodes.count[i] == 0 or contacts.target[i] < 0:
        return
    velocity = against_patch(i, nodes, contacts, p)
    contacts.impulse[i] = along_spring(i, contacts, springs, velocity)
    contacts.twist[i] = contacts.per_inertia[i] * wp.cross(nodes.x[i] - contacts.centre[i], contacts.impulse[i])


@wp.kernel
def couple(
    first: int,
    nodes: ContactNodes,
    contacts: NodeContacts,
    coupling: wp.array(dtype=wp.vec3),
):
    """The part of A p that contacts make (physics 5.5, 15.7)."""
    k = first + wp.tid()
    coupling[k] = wp.vec3()
    if nodes.count[k] > 0:
        unit = nodes.unit[nodes.body[k]]
        coupling[k] = gathered(k, nodes, contacts) / (unit * unit)


@wp.kernel
def block_springs(
    first: int,
    nodes: ContactNodes,
    contacts: NodeContacts,
    springs: SpringArrays,
    stiffer: wp.array(dtype=wp.mat33),
):
    """Diagonal blocks of what contacts add to A, for the preconditioner (physics 5.5); twists are left out."""
    k = first + wp.tid()
    total = wp.mat33()
    own = contacts.target[k] >= 0
    if own and nodes.count[k] > 0:
        total = spring_block(k, contacts, springs)
    entry = k * nodes.capacity
    end = entry + nodes.count[k]
    while entry < end:
        i = nodes.index[entry]
        if contacts.target[i] == nodes.body[k]:
            s = pair_weight(i, k, nodes.unit, nodes.body, nodes.ball, nodes.x) * contacts.per_weight[i]
            total += s * s * spring_block(i, contacts, springs)
        entry += 1
    stiffer[k] = total / nodes.unit[nodes.body[k]]


@wp.func
def spring_block(i: int, contacts: NodeContacts, springs: SpringArrays):
    """Δt²κ n nᵀ + rub (1 − n nᵀ), less what is along the way that it slides (physics 15.7)."""
    n = contacts.normal[i]
    way = springs.way[i]
    free = wp.identity(n=3, dtype=float) - wp.outer(n, n) - wp.outer(way, way)
    return springs.stiff[i] * float(springs.pressed[i]) * wp.outer(n, n) + springs.rub[i] * free


@wp.kernel
def add_energy(
    first: int,
    nodes: ContactNodes,
    contacts: NodeContacts,
    springs: SpringArrays,
    v: wp.array(dtype=wp.vec3),
    energy: wp.array(dtype=float),
):
    """½ push²/(Δt²κ) + ½ rub |e|² + load·e of each contact, in the units of its node, added to the energy of the node
    (physics 5.4, 15.7)."""
    i = first + wp.tid()
    if nodes.count[i] == 0 or contacts.target[i] < 0 or springs.stiff[i] == 0.0:
        return
    n = contacts.normal[i]
    velocity = against_patch(i, nodes, contacts, v)
    push = wp.dot(n, contacts.impulse[i])
    along = sliding_by(i, nodes, contacts, springs, velocity)
    unit = nodes.unit[nodes.body[i]]
    work = 0.5 * (push * push / springs.stiff[i] + springs.rub[i] * wp.length_sq(across(along, springs.way[i])))
    work += wp.dot(springs.load[i], along)
    energy[i] = energy[i] + work / (unit * unit * unit)


@wp.kernel
def keep_slip(
    first: int,
    nodes: ContactNodes,
    contacts: NodeContacts,
    springs: SpringArrays,
    whole: wp.array(dtype=float),
    v: wp.array(dtype=wp.vec3),
):
    """How far each node has slipped after a whole step on what pushes it: as far as friction gives way, at most. What
    waited while others took their last stage pushed in an earlier one (physics 15.7)."""
    i = first + wp.tid()
    b = contacts.target[i]
    held = int(-1)
    slip = wp.vec3()
    if nodes.count[i] > 0 and b >= 0 and springs.pressed[i] == 1:
        if contacts.held_on[i] == b:
            slip = contacts.slip[i]
        held = b
        slip += whole[0] * against_patch(i, nodes, contacts, v)
        slip -= wp.dot(slip, contacts.normal[i]) * contacts.normal[i]
        slip = slip * wp.min(1.0, TAKEN_BACK * springs.least[i] / wp.max(wp.length(slip), TINY))
    contacts.held_on[i] = held
    contacts.slip[i] = slip


class ContactSprings:
    """The launches of an implicit step that see to contact between bodies."""

    def __init__(self, model: PhyxelModel, contact: BodyContact, kept: Mapping[str, wp.array]) -> None:
        """`kept` are the arrays (n,) that one stage leaves to the next: `force`, `friction`, `way`, `least`."""
        self._model, self._contact = model, contact
        device, n = model.device, len(model)
        self._springs = SpringArrays()
        self._springs.stiff, self._springs.rub = (wp.zeros(n, dtype=float, device=device) for _ in range(2))
        self._springs.pressed, self._springs.was_pressed, self._springs.turns = (
            wp.zeros(n, dtype=wp.int32, device=device) for _ in range(3)
        )
        self._springs.load = wp.zeros(n, dtype=wp.vec3, device=device)
        for name, array in kept.items():
            setattr(self._springs, name, array)
        self._no_time = wp.zeros(1, dtype=float, device=device)

    def start(self, dt: wp.array, base: wp.array, block: wp.array) -> list[Launch]:
        """Find what may touch in a stage that goes from `base`; it does nothing to bodies whose dt is 0."""
        return [
            *self._contact.finding(self._no_time, 0, REACHED, base),
            self._contact.over(tighten, self._springs, dt, self._model.matter.mass, block),
        ]

    def rub(self, dt: wp.array, changed: wp.array) -> list[Launch]:
        """Friction by the push of the last `press`."""
        return [self._contact.over(rub_on, self._springs, dt, self._model.v, changed)]

    def press(self, dt: wp.array, met: WallContacts, r: wp.array) -> list[Launch]:
        """Impulses at v, added to the missing momentum."""
        return [
            self._contact.over(press, self._springs, dt, self._model.v),
            self._contact.over(take_presses, self._model.outside.hold, dt, met.contact, met.normal, met.rest, r),
        ]

    def couple(self, p: wp.array, coupling: wp.array) -> list[Launch]:
        """The part of A p that contacts make."""
        return [self._contact.over(stretch, self._springs, p), self._contact.over(couple, coupling)]

    def blocks(self, stiffer: wp.array) -> list[Launch]:
        """Diagonal blocks of what contacts add to A."""
        return [self._contact.over(block_springs, self._springs, stiffer)]

    def energy(self, energy: wp.array) -> list[Launch]:
        """Energy of the springs, added to that of the nodes; after `press`."""
        return [self._contact.over(add_energy, self._springs, self._model.v, energy)]

    def follow(self, whole: wp.array) -> list[Launch]:
        """After a step of `whole` (1,) [s]: how far nodes have slipped."""
        return [self._contact.over(keep_slip, self._springs, whole, self._model.v)]

    @property
    def pressed(self) -> NDArray[np.integer]:
        """1 for each node that another body presses on, else 0, shape (n,)."""
        return np.where(self._contact.contacts.target.numpy() >= 0, self._springs.pressed.numpy(), 0)

    def parties(self) -> list[list[int]]:
        """Which bodies push on each other, as groups."""
        model, contacts = self._model, self._contact.contacts
        bodies = len(model.ranges)
        if bodies == 1:
            return [[0]]
        pressed = np.flatnonzero(self.pressed)
        touch = np.zeros((bodies, bodies), bool)
        touch[model.matter.body.numpy()[pressed], contacts.target.numpy()[pressed]] = True
        _, label = connected_components(touch, directed=False)
        return [np.flatnonzero(label == party).tolist() for party in range(label.max() + 1)]
