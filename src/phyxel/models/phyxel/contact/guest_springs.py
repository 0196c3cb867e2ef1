# mypy: disable-error-code="valid-type,no-untyped-def"
"""Guests of phyxel bodies inside an implicit step: springs on where the step leads, with the guests in series (physics
15.11).

    e = r + wanted + W p,   p = p₀ − D e,   so that p = (1 − S W) p₀ − S (r + wanted),   S = (D⁻¹ + W)⁻¹

along the axes of all contacts, r being without this step's impulses. D of a normal is as in `springs` where it pushes,
that of tangents the same where friction holds. Where it slides, p₀ = −μ p_n e_t/|e_t| and D = μ p_n/|e_t| across e_t
only, none along it: Coulomb's law about the last e. (D = μ p_n/|e_t| along it as well, without a p₀, is found as slowly
as the slope is near its limit, and holds till it is.) A and the residual get S as it is: how guests give way is exact,
and so is what is booked.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import warp as wp
from numpy.typing import NDArray
from scipy.linalg import block_diag

from phyxel import device as dev
from phyxel.device import Launch, entries, over
from phyxel.models.coulomb import from_axes
from phyxel.models.phyxel.conjugate import filtered
from phyxel.models.phyxel.contact.guest_impulses import along, keep, like, times, velocity_at
from phyxel.models.phyxel.contact.guests import GuestContacts, Guests
from phyxel.models.phyxel.contact.springs import RETURN, STIFFER
from phyxel.models.phyxel.walls import WallContacts

if TYPE_CHECKING:
    from phyxel.models.phyxel.model import PhyxelModel

wp.set_module_options(dev.KERNEL_OPTIONS)

Floats = NDArray[np.float64]

NOTICED = 5e-4
"""Share of friction by which it may be another than Coulomb's law says."""


@dataclass
class GuestSpringArrays:
    """Springs of contacts with guests on the device."""

    matrix: wp.array
    """S [kg], shape (9k²,), float64"""
    wanted: wp.array
    """[m/s], shape (k,), vec3d"""
    strain: wp.array
    """r + wanted, or what a direction makes of it [m/s], shape (3k,), float64"""
    load: wp.array
    """(1 − S W) p₀ [N s], shape (3k,), float64"""


@wp.kernel
def strain_springs(first: int, guests: Any, springs: Any, v: entries):
    """r + wanted at the velocities of now (physics 15.11)."""
    c = first + wp.tid()
    if c < guests.size[0]:
        keep(springs.strain, c, velocity_at(c, guests, v) + springs.wanted[c])


@wp.kernel
def strain_along(first: int, guests: Any, springs: Any, p: entries):
    """What a direction p makes of r (physics 15.11)."""
    c = first + wp.tid()
    if c < guests.size[0]:
        keep(springs.strain, c, velocity_at(c, guests, p) + guests.velocity[c])


@wp.kernel
def answer_strains(first: int, guests: Any, springs: Any):
    """−S strain, along the axes of the world [N s] (physics 15.11)."""
    c = first + wp.tid()
    count = guests.size[0]
    if c >= count:
        return
    guests.push[c] = -(wp.transpose(guests.axes[c]) * times(springs.matrix, c, count, springs.strain))


@wp.kernel
def push_strains(first: int, guests: Any, springs: Any):
    """(1 − S W) p₀ − S strain, along the axes of the world [N s] (physics 15.11)."""
    c = first + wp.tid()
    count = guests.size[0]
    if c >= count:
        return
    p = along(springs.load, c) - times(springs.matrix, c, count, springs.strain)
    guests.push[c] = wp.transpose(guests.axes[c]) * p


@wp.func
def pushed_by_guests(t: int, guests: Any):
    """Momentum that the t-th node gets of all contacts, in units of its body."""
    pushed = wp.vec3d()
    entry = guests.start[t]
    while entry < guests.start[t + 1]:
        pushed += guests.part[entry] * guests.push[guests.contact[entry]]
        entry += 1
    return pushed / (guests.unit[t] * guests.unit[t])


@wp.kernel
def take_answers(first: int, guests: Any, hold: entries, contact: entries, normal: entries, rest: entries, r: entries):
    """The impulses of the springs, added to the momentum that is missing (physics 5.4, 15.11)."""
    t = first + wp.tid()
    if t < guests.size[2]:
        i = guests.taking[t]
        pushed = like(pushed_by_guests(t, guests), r[i])
        rest[i] = rest[i] + pushed
        r[i] = r[i] + filtered(pushed, hold[i], contact[i], normal[i])


@wp.kernel
def clear(first: int, field: entries):
    """Nothing, as yet."""
    i = first + wp.tid()
    field[i] = field[i] - field[i]


@wp.kernel
def couple_guests(first: int, guests: Any, coupling: entries):
    """The part of A p that guests make, added (physics 5.5, 15.11)."""
    t = first + wp.tid()
    if t < guests.size[2]:
        i = guests.taking[t]
        coupling[i] = coupling[i] - like(pushed_by_guests(t, guests), coupling[i])


@wp.kernel
def block_guests(first: int, guests: Any, springs: Any, stiffer: entries):
    """Diagonal blocks of what guests add to A, for the preconditioner; of contacts with themselves (physics 5.5)."""
    t = first + wp.tid()
    if t >= guests.size[2]:
        return
    i = guests.taking[t]
    count = guests.size[0]
    entry = guests.start[t]
    while entry < guests.start[t + 1]:
        c = guests.contact[entry]
        own = guests.part[entry] * guests.part[entry] / guests.unit[t]
        axes = guests.axes[c]
        for k in range(3):
            stiff = own * springs.matrix[(3 * c + k) * (3 * count) + 3 * c + k]
            axis = like(axes[k], stiffer[i][0])
            stiffer[i] = stiffer[i] + stiffer.dtype.dtype(stiff) * wp.outer(axis, axis)
        entry += 1


@wp.kernel
def add_guests_energy(first: int, guests: Any, springs: Any, energy: entries):
    """½ strain·S strain − strain·(1 − S W) p₀ of all contacts, added to the energy of a node of each; one thread
    (physics 5.4, 15.11)."""
    for c in range(guests.size[0]):
        i = guests.node[c * guests.size[1]]
        push = guests.axes[c] * guests.push[c] + along(springs.load, c)
        work = -wp.float64(0.5) * wp.dot(along(springs.strain, c), push)
        energy[i] = energy[i] + energy.dtype(work / wp.pow(guests.length[c], wp.float64(3.0)))


@dataclass(frozen=True)
class SpringLaw:
    """What contacts answer to e along their axes, p = p₀ − D e (physics 15.11)."""

    pressed: NDArray[np.bool_]
    """which push at all, shape (k,)"""
    holds: NDArray[np.bool_]
    """where friction holds, shape (k,)"""
    root: Floats
    """of D [√kg], shape (k, 3, 3)"""
    load: Floats
    """p₀: friction of what slides [N s], shape (k, 3)"""

    @classmethod
    def of(cls, e: Floats, most: Floats, stiff: Floats, pressed: NDArray[np.bool_], loaded: Floats) -> SpringLaw:
        """About e (k, 3) [m/s], where friction of springs (k,) [kg] holds up to `most` [N s], (k,). What the loads
        (k, 3) of a law before have pushed the other way holds."""
        length, way = np.linalg.norm(e[:, 1:], axis=1), e[:, 1:]
        slides = pressed & (stiff * length > most) & ((way * loaded[:, 1:]).sum(axis=1) <= 0)
        root, load = np.sqrt(stiff * pressed)[:, None, None] * np.eye(3), np.zeros((len(e), 3))
        length, way = length[slides, None], way[slides] / length[slides, None]
        load[slides, 1:] = -most[slides, None] * way
        across = np.eye(2) - way[:, :, None] * way[:, None, :]
        root[slides, 1:, 1:] = np.sqrt(most[slides, None] / length)[:, :, None] * across
        return cls(pressed, pressed & ~slides, root, load)


@dataclass(frozen=True)
class GuestBearing:
    """What k contacts bear in a step."""

    impulse: Floats
    """[N s], shape (k, 3)"""
    presses: NDArray[np.bool_]
    holds: NDArray[np.bool_]
    """whether friction does"""
    stiff: Floats
    """of their springs [N s/m]"""

    @classmethod
    def nothing(cls, k: int) -> GuestBearing:
        return cls(np.zeros((k, 3)), np.zeros(k, bool), np.zeros(k, bool), np.zeros(k))

    def but(self, other: GuestBearing, which: NDArray[np.bool_]) -> GuestBearing:
        """The same, but for some contacts (k,), which bear what another says."""
        impulse = np.where(which[:, None], other.impulse, self.impulse)
        rest = [(self.presses, other.presses), (self.holds, other.holds), (self.stiff, other.stiff)]
        return GuestBearing(impulse, *(np.where(which, theirs, own) for own, theirs in rest))


class GuestSprings:
    """The launches of an implicit step that see to guests, and what the host does for them between."""

    def __init__(self, model: PhyxelModel, guests: Guests) -> None:
        self._model, self._guests = model, guests
        count, _ = guests.room
        numbers = {"matrix": (9 * count**2, wp.float64), "wanted": (count, wp.vec3d)}
        numbers |= dict.fromkeys(("strain", "load"), (3 * count, wp.float64))
        self._springs = GuestSpringArrays(
            **{name: wp.zeros(size, dtype=kind, device=model.device) for name, (size, kind) in numbers.items()}
        )
        self._known: GuestContacts | None = None
        self._last: Floats | None = None
        """forces of the step before, among the same contacts [N], shape (k, 3)"""

    @property
    def _contacts(self) -> GuestContacts:
        assert self._guests.contacts is not None
        return self._guests.contacts

    # What the host does

    def begin(self, h: Floats, idle: NDArray[np.bool_], block: Floats) -> None:
        """Begin a stage of h [s] of each body, (bodies,), 0 for bodies that meet no guest in it; those that are `idle`
        have done so in an earlier one of this step. `block` (n, 3, 3) are those of K. What pressed before is thought to
        press still, what comes to press faster than rest would make it is to leave with −e r_n."""
        contacts, model = self._contacts, self._model
        body = model.matter.body.numpy()
        unit = np.array(model.units)[body]
        own = body[contacts.nodes[:, 0]]
        if contacts is not self._known:
            self._known, self._last = contacts, None
        self._done = self._borne() if idle[own].any() else GuestBearing.nothing(len(own))
        self._idle = idle[own]
        """which contacts were seen to in an earlier stage, shape (k,)"""
        self._h = h[own]
        """of each contact [s], shape (k,)"""
        acts = self._h > 0
        inertia = unit * (model.matter.mass.numpy() + h[body] ** 2 * np.trace(block, axis1=1, axis2=2) / 3)
        stiff = float(STIFFER) / (self._guests.rows.power(2) @ (1 / inertia))
        self._stiff = np.where(acts, stiff, 0.0)
        offset = self._guests.read("offset")
        room = np.where(contacts.tied[:, None], float(RETURN), [1.0, float(RETURN), float(RETURN)])
        back = np.where(offset > 0, offset * room, float(RETURN) * offset)
        self._wanted = np.divide(back, self._h[:, None], out=np.zeros_like(back), where=acts[:, None])
        # Ties bear what they are foreseen to without being drawn out.
        tied = contacts.tied & acts
        self._wanted[tied] -= (self._h[tied] / self._stiff[tied])[:, None] * contacts.foreseen[tied]
        self._seen = self._guests.read("velocity") + self._h[:, None] * self._guests.read("relief")
        done = np.where(self._idle[:, None], self._done.impulse, 0.0)
        self._seen -= (contacts.response @ done.reshape(-1)).reshape(-1, 3)
        comes = self._speeds()[:, 0]
        bounces = (self._guests.read("pressing") == 0) & (-comes > np.maximum(self._wanted[:, 0], contacts.resting))
        bounces &= (contacts.restitution > 0) & ~contacts.tied
        self._wanted[bounces, 0] = (contacts.restitution * comes)[bounces]
        dev.write(self._springs.wanted, 0, self._wanted + self._guests.read("velocity") - self._seen)
        presses = (self._guests.read("pressing") > 0) | contacts.tied
        self._chosen = self._as_before(presses & acts)
        self.adopt()

    def _as_before(self, presses: NDArray[np.bool_]) -> SpringLaw:
        """What is likely to count: where something pressed it does, with the friction it had."""
        contacts = self._contacts
        p = self._h[:, None] * (contacts.foreseen if self._last is None else self._last)
        e = self._speeds() + self._wanted + (contacts.response @ p.reshape(-1)).reshape(-1, 3)
        return SpringLaw.of(e, self._most(p), self._stiff, presses, np.zeros_like(p))

    def _most(self, p: Floats) -> Floats:
        """What friction holds at most with impulses p (k, 3) [N s], shape (k,); there is no end to it of ties."""
        friction, pressed = self._contacts.friction, np.maximum(p[:, 0], 0)
        return np.multiply(friction, pressed, out=np.full(len(p), np.inf), where=~self._contacts.tied)

    def adopt(self) -> None:
        """Let what was chosen last count from now on: S of all contacts, and (1 − S W) p₀."""
        law, W = self._chosen, self._contacts.response
        self._law, self._load = law, law.load.reshape(-1).copy()
        self._S = np.zeros_like(W)
        if law.pressed.any():
            acts = np.ix_(*[np.flatnonzero(np.repeat(law.pressed, 3))] * 2)
            root = block_diag(*law.root[law.pressed])
            self._S[acts] = root @ np.linalg.solve(np.eye(len(root)) + root @ W[acts] @ root, root)
            self._load -= self._S @ (W @ self._load)
        dev.write(self._springs.matrix, 0, self._S.reshape(-1))
        dev.write(self._springs.load, 0, self._load)

    def _speeds(self) -> Floats:
        """r at the velocities of now [m/s], shape (k, 3)."""
        contacts, model = self._contacts, self._model
        unit = np.array(model.units)[model.matter.body.numpy()][:, None]
        return np.einsum("kab,kb->ka", contacts.axes, self._guests.rows @ (unit * model.v.numpy())) - self._seen

    def _impulses(self) -> tuple[Floats, Floats]:
        """p and e at the velocities of now, shape (k, 3) each."""
        strain = self._speeds() + self._wanted
        p = self._load - self._S @ strain.reshape(-1)
        return p.reshape(-1, 3), strain + (self._contacts.response @ p).reshape(-1, 3)

    def look(self) -> bool:
        """Choose what is to push and to hold by the velocities of now; whether any is to that did not, or the other way
        about, or friction is not what Coulomb's law says."""
        p, e = self._impulses()
        law, most = self._law, self._most(p)
        pressed = ((e[:, 0] < 0) | self._contacts.tied) & (self._stiff > 0)
        self._chosen = SpringLaw.of(e, most, self._stiff, pressed, law.load)
        ends = np.isfinite(most)
        excess = np.linalg.norm(p[ends, 1:], axis=1) - most[ends]
        wrong = np.where(law.holds[ends], np.maximum(excess, 0), np.abs(excess)).sum() > NOTICED * most[ends].sum()
        return bool(wrong or (pressed != law.pressed).any())

    def closing(self, dt: float) -> NDArray[np.bool_]:
        """Nodes (n,) of contacts that press, or would in a step of dt [s] at the velocities of now."""
        offset = self._guests.read("offset")[:, 0] + dt * self._speeds()[:, 0]
        return self._nodes_of((offset < 0) | (self._guests.read("pressing") > 0) | self._borne().presses)

    def _borne(self) -> GuestBearing:
        """What contacts bear in the step as far as it is known."""
        p, _ = self._impulses()
        now = GuestBearing(p, self._law.pressed, self._law.holds, self._stiff)
        return now.but(self._done, self._idle)

    def _nodes_of(self, chosen: NDArray[np.bool_]) -> NDArray[np.bool_]:
        nodes = np.zeros(len(self._model), bool)
        nodes[self._contacts.nodes[chosen]] = True
        return nodes

    @property
    def pressed(self) -> NDArray[np.bool_]:
        """Nodes (n,) of contacts that press; that did in the last step, where none with these contacts has begun."""
        begun = self._contacts is self._known
        return self._nodes_of(self._borne().presses if begun else self._guests.read("pressing") > 0)

    def book(self, dt: float, way: Floats) -> Floats:
        """Book a step of dt [s] in which nodes have gone so far [m], (n, 3); impulses of the nodes [N s], (n, 3)."""
        guests, contacts, borne = self._guests, self._contacts, self._borne()
        p = borne.impulse
        self._last = p / dt
        push = from_axes(contacts.axes, p)
        velocity = guests.read("velocity") + dt * guests.read("relief")
        velocity -= (contacts.response @ p.reshape(-1)).reshape(-1, 3)
        gone = guests.rows @ way
        offset = guests.read("offset") + np.einsum("kab,kb->ka", contacts.axes, gone) - dt * velocity
        # Where it slides, the spring is as long as friction can hold it: it holds at once when sliding ends.
        most = np.divide(dt, float(RETURN) * borne.stiff, out=np.zeros_like(borne.stiff), where=borne.stiff > 0)
        offset[~borne.holds, 1:] = (-most[:, None] * p[:, 1:])[~borne.holds]
        guests.write("moment", guests.read("moment") + np.cross(guests.read("way"), push))
        guests.write("way", guests.read("way") + gone)
        guests.write("booked", guests.read("booked") + p)
        guests.write("velocity", velocity)
        guests.write("offset", offset)
        guests.write("pressing", borne.presses.astype(np.int32))
        return np.asarray(guests.rows.T @ push)

    # What the device does

    def _each(self, kernel: wp.Kernel, count: int, *holders: Any, **named: Any) -> Launch:
        return over(kernel, count, *holders, guests=self._guests.arrays, springs=self._springs, **named)

    def start(self, dt: wp.array, base: wp.array, block: wp.array) -> list[Launch]:
        """Nothing: `begin` does it."""
        return []

    def rub(self, dt: wp.array, changed: wp.array) -> list[Launch]:
        """Nothing: `look` does it."""
        return []

    def press(self, dt: wp.array, met: WallContacts, r: wp.array) -> list[Launch]:
        """Impulses at v, added to the missing momentum."""
        count, entries = self._guests.room
        return [
            self._each(strain_springs, count, v=self._model.v),
            self._each(push_strains, count),
            self._each(take_answers, entries, met, self._model.outside, r=r),
        ]

    def couple(self, p: wp.array, coupling: wp.array) -> list[Launch]:
        """The part of A p that guests make, added."""
        count, entries = self._guests.room
        return [
            self._each(strain_along, count, p=p),
            self._each(answer_strains, count),
            self._each(couple_guests, entries, coupling=coupling),
        ]

    def blocks(self, stiffer: wp.array) -> list[Launch]:
        """Diagonal blocks of what guests add to A, added."""
        return [self._each(block_guests, self._guests.room[1], stiffer=stiffer)]

    def energy(self, energy: wp.array) -> list[Launch]:
        """Energy of the springs, added to that of the nodes; after `press`."""
        return [self._each(add_guests_energy, 1, energy=energy)]
