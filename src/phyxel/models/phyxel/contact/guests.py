"""Guests of phyxel bodies: bodies that something else moves, met inside the substeps of leap-frog (physics 15.10).

For an interval of time, contacts are a list. Each is a place of a phyxel body, x = Σ φ_i x_i with Σ φ_i = 1, against a
place of a guest, along a normal out of the guest and two tangents that stay for the interval. Guests go on as foreseen,
and answer impulses p by W:

    r = axes (Σ φ_i v_i − v_guest),   v_guest = foreseen − W (p − p_foreseen),
    r_n ≥ −max(gap, 0)/Δt,   p_n ≥ 0,   |p_t| ≤ μ p_n

Impulses are found in every substep where it has led, for all contacts at once, in double, and booked: what phyxels got,
guests are still to be given. Lengths in metres, masses in kilograms.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

import numpy as np
import warp as wp
from numpy.typing import NDArray
from scipy.sparse import csr_array

from phyxel import device as dev
from phyxel.device import Launch, over
from phyxel.models.phyxel.contact.guest_impulses import (
    book_impulses,
    look_at_guests,
    move_guests,
    push_guests,
    take_from_guests,
)

if TYPE_CHECKING:
    from phyxel.models.phyxel.model import PhyxelModel

Floats = NDArray[np.float64]

FEWEST = 16
"""Contacts for which there is room, at least."""


@dataclass(frozen=True)
class GuestContacts:
    """Contacts of phyxel bodies with guests for an interval: k of them, each on m nodes of one body."""

    nodes: NDArray[np.integer]
    """which they are among all of the model, shape (k, m)"""
    weights: Floats
    """φ, of sum 1, the place being Σ φ_i x_i; shape (k, m)"""
    axes: Floats
    """normal out of the guest and two tangents, in rows, shape (k, 3, 3)"""
    gap: Floats
    """at the start, less than 0 for depth [m], shape (k,); of a tie, how far it is off along the normal"""
    friction: Floats
    """μ, shape (k,); inf of ties, which pull as well and have no gap"""
    restitution: Floats
    """e, shape (k,)"""
    velocity: Floats
    """of guests' places as foreseen, along the axes [m/s], shape (k, 3)"""
    response: Floats
    """W: how impulses at guests' places change the velocities there, all along the axes [1/kg], shape (3k, 3k)"""
    foreseen: Floats
    """what of the forces on the phyxels the foreseen velocity knows of, along the axes [N], shape (k, 3)"""
    slip: Floats
    """along the tangents since friction held, at the start [m], shape (k, 2)"""
    pressing: NDArray[np.bool_]
    """whether it pressed before: what goes on pressing does not bounce, shape (k,)"""
    resting: float
    """speed of approach up to which nothing bounces [m/s]"""

    def __len__(self) -> int:
        return len(self.gap)

    @property
    def tied(self) -> NDArray[np.bool_]:
        """Which are ties, shape (k,)."""
        return np.isinf(self.friction)


@dataclass(frozen=True)
class Booked:
    """What contacts have done since the start of the interval."""

    impulses: Floats
    """on the phyxels, along the axes [N s], shape (k, 3); the guests get the opposite"""
    shifts: Floats
    """that moved phyxels but left no speed, along the axes [kg m], shape (k, 3); the guests get the opposite"""
    moments: Floats
    """angular momentum that phyxels got besides that of the impulses at the places where contacts were at the start,
    which went on since [N m s], shape (k, 3); the guests get the opposite"""
    gap: Floats
    """[m], shape (k,)"""
    slip: Floats
    """along the tangents since friction holds [m], shape (k, 2); 0 where it does not"""
    pressing: NDArray[np.bool_]
    """whether it still presses, shape (k,)"""


@dataclass
class GuestArrays:
    """Contacts on the device. Room is for more than there are; matrices are as large as these ask for."""

    size: wp.array
    """k, m and how many nodes take part, shape (3,), int32"""
    resting: wp.array
    """[m/s], shape (1,), float64"""
    node: wp.array
    """one contact after another, shape (k·m,), int32"""
    weight: wp.array
    """φ times the unit of the body [m], shape (k·m,), float64"""
    axes: wp.array
    """shape (k,), mat33d"""
    length: wp.array
    """unit of the phyxel body [m], shape (k,), float64"""
    friction: wp.array
    """shape (k,), float64"""
    restitution: wp.array
    """shape (k,), float64"""
    velocity: wp.array
    """of guests' places now, shape (k,), vec3d"""
    relief: wp.array
    """W times the forces that were foreseen: guests' places fall back without them [m/s²], shape (k,), vec3d"""
    offset: wp.array
    """gap and slip [m], shape (k,), vec3d"""
    pressing: wp.array
    """shape (k,), int32"""
    scale: wp.array
    """square root of what each gives way along its normal, with the phyxels [kg^-½], shape (k,), float64"""
    response: wp.array
    """W over scales, shape (9k²,), float64"""
    system: wp.array
    """what impulses change in all, over scales, shape (9k²,), float64"""
    stiff: wp.array
    """impulse that moves it along its axes if all others do as much [kg], shape (k,), vec3d"""
    bias: wp.array
    """speed along the normal with which it may close its gap [m/s], shape (k,), float64"""
    came: wp.array
    """velocities along the axes without the impulses of the substep [m/s], shape (k,), vec3d"""
    bounce: wp.array
    """e if it bounces in the substep, else 0, shape (k,), float64"""
    left: wp.array
    """velocities with them, that of bias added, over scales, shape (3k,), float64"""
    total: wp.array
    """impulses of the substep times scales, shape (3k,), float64"""
    push: wp.array
    """impulses of the substep, along the axes of the world [N s], shape (k,), vec3d"""
    shift: wp.array
    """shifts of the substep times scales, shape (3k,), float64"""
    booked: wp.array
    """impulses of the interval along axes [N s], shape (k,), vec3d"""
    shifted: wp.array
    """shifts of the interval along axes [kg m], shape (k,), vec3d"""
    way: wp.array
    """of the phyxels' place in the interval, along the axes of the world [m], shape (k,), vec3d"""
    moment: wp.array
    """of the interval, about where the place was [N m s], shape (k,), vec3d"""
    taking: wp.array
    """nodes that take part, shape (≤ k·m,), int32"""
    start: wp.array
    """where the contacts of each begin, shape (≤ k·m + 1,), int32"""
    contact: wp.array
    """contacts of nodes, shape (k·m,), int32"""
    part: wp.array
    """φ, shape (k·m,), float64"""
    unit: wp.array
    """of the body of each node that takes part [m], shape (≤ k·m,), float64"""


KINDS = {
    wp.int32: ("size", "node", "pressing", "taking", "start", "contact"),
    wp.vec3d: ("velocity", "relief", "offset", "stiff", "came", "push", "booked", "shifted", "way", "moment"),
    wp.mat33d: ("axes",),
}
"""What arrays hold that do not hold float64."""


class Guests:
    """The guests of a phyxel model."""

    def __init__(self, model: PhyxelModel) -> None:
        self._model = model
        self.room = (0, 0)
        """for contacts, and for nodes of all contacts"""
        self.contacts: GuestContacts | None = None
        self.rows = csr_array((0, len(model)))
        """φ of contacts, shape (k, n)"""
        self.arrays = self._blank(0, 0)

    def _blank(self, count: int, entries: int) -> GuestArrays:
        """Arrays for so many contacts on so many nodes in all."""
        lengths = dict.fromkeys(("node", "weight", "taking", "contact", "part", "unit"), entries)
        lengths |= {"size": 3, "resting": 1, "start": entries + 1}
        lengths |= {
            "response": 9 * count**2,
            "system": 9 * count**2,
            **dict.fromkeys(("left", "total", "shift"), 3 * count),
        }
        kinds = {name: kind for kind, names in KINDS.items() for name in names}
        return GuestArrays(
            **{
                field.name: wp.zeros(
                    lengths.get(field.name, count),
                    dtype=kinds.get(field.name, wp.float64),
                    device=self._model.device,
                )
                for field in fields(GuestArrays)
            }
        )

    @property
    def there(self) -> bool:
        """Whether anything may be met."""
        return self.contacts is not None

    def meet(self, contacts: GuestContacts | None) -> None:
        """What phyxel bodies may meet from now on; what was booked before is forgotten. Where there is room the arrays
        stay where they are."""
        self.contacts = contacts or None
        if not contacts:
            return
        (k, m), (count, entries) = contacts.nodes.shape, self.room
        if len(contacts) > count or contacts.nodes.size > entries:
            self.room = max(count, _room(len(contacts))), max(entries, _room(contacts.nodes.size))
            self.arrays = self._blank(*self.room)
            self._model.outdate_programs()
        node, weight = contacts.nodes.reshape(-1), contacts.weights.reshape(-1)
        self.rows = csr_array((weight, node, m * np.arange(k + 1)), (k, len(self._model)), copy=True)
        for name, values in {**self._places(contacts), **_guests(contacts)}.items():
            self.write(name, values)
        for name in ("total", "booked", "shifted", "way", "moment"):
            getattr(self.arrays, name).zero_()

    def _places(self, contacts: GuestContacts) -> dict[str, Any]:
        """The phyxels' side of contacts, and what both sides give way together."""
        model, rows, (k, m) = self._model, self.rows, contacts.nodes.shape
        body = model.matter.body.numpy()
        unit = np.array(model.units)[body]
        mass = unit * model.matter.mass.numpy()
        free = model.outside.hold.numpy() < 0
        gives = ((rows * (free / mass)) @ rows.T).toarray()
        axes = contacts.axes.reshape(3 * k, 3)
        W = axes @ axes.T
        W *= np.repeat(np.repeat(gives, 3, axis=0), 3, axis=1)
        W += contacts.response
        together = np.stack([np.abs(W[a::3, a::3]).sum(axis=1) for a in range(3)], axis=1)
        scale = np.sqrt(np.maximum(W.diagonal()[::3], 1e-300))  # a crumb weighs as much as a rock here
        per_scale = np.repeat(1 / scale, 3)
        columns = (rows * free).tocsc()
        columns.eliminate_zeros()
        taking = np.flatnonzero(np.diff(columns.indptr))
        return {
            "size": [k, m, len(taking)],
            "node": contacts.nodes.reshape(-1),
            "weight": (contacts.weights * unit[contacts.nodes]).reshape(-1),
            "length": unit[contacts.nodes[:, 0]],
            "scale": scale,
            "system": (per_scale[:, None] * W * per_scale).reshape(-1),
            "response": (per_scale[:, None] * contacts.response * per_scale).reshape(-1),
            "stiff": 1 / np.maximum(together, 1e-300),
            "taking": taking,
            "start": np.append(columns.indptr[taking], columns.nnz),
            "contact": columns.indices,
            "part": columns.data,
            "unit": unit[taking],
        }

    def booked(self) -> Booked:
        """What contacts have done since they were set."""
        names = ("booked", "shifted", "moment", "offset", "pressing")
        impulses, shifts, moments, offset, pressing = (self.read(name) for name in names)
        return Booked(impulses, shifts, moments, offset[:, 0], offset[:, 1:], pressing > 0)

    def read(self, name: str) -> NDArray[Any]:
        """What one of the arrays (k,) holds now."""
        count = 0 if self.contacts is None else len(self.contacts)
        return np.array(getattr(self.arrays, name).numpy()[:count])

    def write(self, name: str, values: Any) -> None:
        """Let the first entries of one of the arrays be these."""
        dev.write(getattr(self.arrays, name), 0, values)

    def launches(self, clock: wp.array, y: wp.array) -> list[Launch]:
        """Contacts with guests in a leap-frog move of clock[DRIFT] [s] that led to u, and what they do to u, v and
        y = u + βv."""
        model, (count, entries) = self._model, self.room

        def each(kernel: wp.Kernel, times: int) -> Launch:
            return over(kernel, times, model.matter, model.now, guests=self.arrays, clock=clock, y=y)

        return [
            each(look_at_guests, count),
            each(push_guests, 1),
            each(book_impulses, count),
            each(move_guests, count),
            each(take_from_guests, entries),
        ]


def _room(needed: int) -> int:
    """The next power of two, so that room lasts."""
    return max(FEWEST, 1 << (needed - 1).bit_length())


def _guests(contacts: GuestContacts) -> dict[str, Any]:
    """The guests' side of contacts."""
    return {
        "resting": [contacts.resting],
        "axes": contacts.axes,
        "friction": contacts.friction,
        "restitution": contacts.restitution,
        "velocity": contacts.velocity,
        "relief": (contacts.response @ contacts.foreseen.reshape(-1)).reshape(-1, 3),
        "offset": np.column_stack([contacts.gap, contacts.slip]),
        "pressing": contacts.pressing.astype(np.int32),
    }
