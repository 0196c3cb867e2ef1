"""The world: bodies, colliders, fields, gravity and the clock."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from phyxel import device as dev
from phyxel import kernels, progress
from phyxel.body import Body
from phyxel.body.attach import Attach
from phyxel.body.protocols import Change
from phyxel.contact.colliders import Collider, Ground
from phyxel.errors import PhyxelError, brief, knows_its_arguments, tell
from phyxel.fields import ForceField
from phyxel.material import Mixture
from phyxel.movers import kinds as _kinds  # noqa: F401  fills the table of models
from phyxel.movers.attachments import Attachments
from phyxel.movers.encounters import Encounters
from phyxel.movers.mover import Mover, Piece
from phyxel.movers.movers import Movers
from phyxel.notebook import Fact, Showable
from phyxel.region import Vector, as_vector
from phyxel.units import amount_text, quantity
from phyxel.world import checkpoint, settling
from phyxel.world.breaking import Break, break_apart

Floats = NDArray[np.float64]

ON_TICK = 1e-6
"""Share of a tick by which a time may be off and still is that of the tick: clocks are summed up."""
MOST_TICKS = 1_000_000
"""in a second"""
MOST_LISTED = 6
"""Bodies that a table names."""
LONGEST_UNBROKEN = 1 / 60 * (1 + 1e-9)
"""Time after which bodies with cracks are looked at whether they have parted [s]."""


@dataclass(frozen=True)
class Frame:
    """A moment of `World.play`: its bodies are as they are then until the next one is asked for.

    >>> world = px.World()
    >>> world.add(px.Body(px.load("box", points=500), nodes=64))
    >>> [(frame.index, frame.time) for frame in world.play(seconds=0.1, fps=20)]
    [(0, 0.0), (1, 0.05), (2, 0.1)]
    """

    index: int
    """0, 1, ..."""
    time: float
    """[s]"""
    bodies: Sequence[Body]
    """all that are in the world then"""


@knows_its_arguments
class World(Showable):
    """Bodies, what they meet, and the clock. `gravity` [m/s²] pulls, `device` is "cpu" or "cuda" (CUDA where there is
    one, if left out), `rate` the ticks of the clock [1/s], if it shall have any.

    >>> world = px.World()
    >>> ball = px.Body(px.load("sphere", points=500), nodes=64, at=(0, 2, 0))
    >>> world.add(ball)
    >>> world.add(px.Ground())
    >>> world.advance("0.1 s")
    >>> print(f"{ball.velocities[:, 1].mean():.3f} m/s")
    -0.981 m/s
    """

    def __init__(
        self, gravity: Sequence[float] = (0.0, -9.81, 0.0), device: str | None = None, rate: int | None = None
    ) -> None:
        self.device = dev.pick(device)
        self.bodies: list[Body] = []
        self.colliders: list[Ground | Collider] = []
        self.fields: list[ForceField] = []
        self.time = 0.0
        self.rate = rate
        self.revision = 0
        """counts changes of the bodies' shape, so that surfaces know when to follow"""
        self.attachments = Attachments(self)
        """what ties bodies to each other"""
        self.encounters = Encounters(self)
        """how bodies of different movers meet"""
        self.moving = Movers(self, self.encounters.forget)
        """what moves bodies"""
        self._events: list[tuple[float, Callable[[World], None]]] = []
        self.past_events = 0
        """how many events have happened"""
        self.breaks: list[Break] = []
        """how bodies have fallen apart so far"""
        self.gravity = gravity
        self.first_gravity = self.gravity
        """that it was made with [m/s²]"""

    # Building

    @property
    def gravity(self) -> Floats:
        """[m/s²], shape (3,); assign another at any time."""
        return self._gravity

    @gravity.setter
    def gravity(self, gravity: Vector) -> None:
        self._gravity = as_vector("gravity", gravity, "m/s²")
        self._gravity.setflags(write=False)  # movers must hear of a change
        self._surroundings_changed()

    @property
    def rate(self) -> int | None:
        """Ticks of the clock in a second, if it has any; assign another at any time. Steps then end at every multiple
        of 1/rate, so that a world goes the same way to the bit however the time between is cut up at ticks."""
        return self._rate

    @rate.setter
    def rate(self, rate: int | None) -> None:
        if rate is not None and not (isinstance(rate, int) and 1 <= rate <= MOST_TICKS):
            raise PhyxelError(f"rate = {rate}: give a whole number of ticks a second from 1 to {MOST_TICKS}, or None")
        self._rate = rate

    def add(self, thing: Body | Ground | Collider | ForceField | Attach) -> None:
        """Put a body, a collider, a field or what ties two bodies into the world; also while it runs."""
        if isinstance(thing, Ground | Collider):
            if not math.isfinite(thing.extent):
                raise PhyxelError(f"world.add({thing!r}): a collider has an end on every side; only regions are open")
            self.colliders.append(thing)
            self._surroundings_changed(collider_came=True)
        elif isinstance(thing, Body):
            self._add_body(thing)
        elif isinstance(thing, ForceField):
            self._add_field(thing)
        elif isinstance(thing, Attach):
            self.set_down()
            self.attachments.add(thing)
        else:
            wanted = "a Body, made by px.Body(cloud), a collider such as px.Ground() or a field such as px.Wind(...)"
            raise PhyxelError(f"world.add({brief(thing)}): give {wanted}")
        self.make_ready()

    def remove(self, thing: Ground | Collider | ForceField | Attach) -> None:
        """Take a collider, a field or a tie out of the world; also while it runs."""
        every: list[list[Any]] = [self.fields, self.attachments.every, self.colliders]
        kept = next((kept for kept in every if thing in kept), [])
        if thing not in kept:
            raise PhyxelError(
                f"world.remove({brief(thing)}): it is not in this world; give a collider, a field or a tie that is"
            )
        kept.remove(thing)
        self._surroundings_changed()

    def _surroundings_changed(self, collider_came: bool = False) -> None:
        for mover in self.movers:
            mover.surroundings_changed(collider_came)
        self.revision += 1

    def _add_field(self, field: ForceField) -> None:
        if field in self.fields:
            raise PhyxelError(f"{field.label}: this field is in the world already")
        field.enter(self)
        self.fields.append(field)
        self._surroundings_changed()

    def _add_body(self, body: Body) -> None:
        if body.world is not None:
            raise PhyxelError(f"{body.name}: this body is in a world already")
        names = {other.name for other in self.bodies}
        if body.name in names:
            body.name = next(name for k in range(2, 10**6) if (name := f"{body.name}-{k}") not in names)
        body.whole = body.name
        body.world = self
        self.encounters.forget()
        self._tell_of_strangers(body)
        self.bodies.append(body)
        self.moving.newcomers(body.kind).add(body)
        for field in self.fields:
            field.meet(body)

    def _tell_of_strangers(self, body: Body) -> None:
        """Say of a body that comes into the world whom it will pass through."""
        strangers = [other for other in self.bodies if other.model not in body.kind.meets]
        if not strangers:
            return
        thin = body if not body.kind.meets else strangers[0]
        names = _listed(other.name for other in strangers)
        tell(f'{body.name}: passes through {names}: model = "{thin.model}" meets colliders, but no other bodies yet')

    def make_ready(self, *more: str) -> None:
        """Have the kernels compiled that this world launches as it is now; with `more`, also what it will launch:
        "melt", "cut", "video". A world does it by itself as things come to it; this is for who would not wait then."""
        materials = [material for body in self.bodies for material in body.mixture.materials]
        breaks = any(material.strength is not None for material in materials)
        parts = breaks or any(body.has_cracked for body in self.bodies)
        there = {
            "strength": breaks,
            "cut": parts,
            "bodies": len(self.bodies) > 1 or parts,
            "ground": any(isinstance(one, Ground) for one in self.colliders),
            "collider": any(isinstance(one, Collider) for one in self.colliders),
            "melt": any(material.viscosity is not None for material in materials),
            "plasticity": any(getattr(material, "plasticity", 0.0) > 0 for material in materials),
        }
        asked = {word for body in self.bodies for word in (body.model, body.integrator) if word}
        kernels.ready(asked.union(more, (word for word, is_there in there.items() if is_there)), self.device)

    @property
    def acting(self) -> list[ForceField]:
        """The fields that act now; movers go on while they stay the same, and no further."""
        return [field for field in self.fields if field.is_on(self.time)]

    def mover_of(self, body: Body) -> Mover:
        """What moves a body of this world."""
        return self.moving.of(body)

    @property
    def movers(self) -> list[Mover]:
        """All that move bodies of this world, in the order of the table of models."""
        return self.moving.every

    def at(self, time: float, action: Callable[[World], None]) -> None:
        """Call `action(world)` when the clock reaches `time` [s]."""
        time = quantity("world.at: time", time, "s")
        if not (isinstance(time, int | float | np.number) and self.time <= time < math.inf):
            raise PhyxelError(f"world.at({time}): it is {self.time:g} s already; give a later time")
        self._events.append((time, action))
        pending = sorted(self._events[self.past_events :], key=lambda event: event[0])
        self._events[self.past_events :] = pending

    def happened(self) -> None:
        """Count what was done to the world just now among its past events: a checkpoint of it fits a world that is
        built from a scene with the same as an event."""
        self._events.insert(self.past_events, (self.time, lambda world: None))
        self.past_events += 1

    def changed(self, change: Change, body: Body, before: Mixture | None = None) -> None:
        """Something has happened to a body: tell what moves it. `before` is what it was made of until then."""
        self.make_ready()
        self.attachments.changed(change, body)
        self.moving.changed(change, body, before)
        self.revision += change is Change.MATERIAL

    # Stepping

    def advance(self, dt: float) -> None:
        """Go on by `dt` [s], in as many stable steps as it takes; events happen at their time."""
        dt = quantity("world.advance: dt", dt, "s")
        if not (isinstance(dt, int | float | np.number) and 0 <= dt < math.inf):
            raise PhyxelError(f"world.advance({dt}): give a time of 0 s or more")
        end = self._rounded_to_tick(self.time + dt)
        tiny = 1e-9 * max(dt, 1e-6) if self.rate is None else 0.0
        while self.past_events < len(self._events) and self._events[self.past_events][0] <= end + tiny:
            time, action = self._events[self.past_events]
            time = max(self._rounded_to_tick(time), self.time)
            self._advance_to(time)
            self.past_events += 1
            self.set_clock(time)
            self.set_down()
            action(self)
        self._advance_to(end)
        self.set_clock(end)
        self.set_down()

    def set_down(self) -> None:
        """Let free bodies that came to be in the ground stand on it; `advance` does so before anything happens."""
        for mover in self.movers:
            mover.set_down()

    @property
    def next_tick(self) -> float:
        """The next multiple of 1/rate [s]."""
        if self.rate is None:
            raise PhyxelError("world.tick: the clock has no ticks; set world.rate first")
        return (math.floor(self.time * self.rate + ON_TICK) + 1) / self.rate

    def tick(self) -> None:
        """Go on to the next multiple of 1/rate."""
        self.advance(self.next_tick - self.time)

    def _rounded_to_tick(self, time: float) -> float:
        """A time [s], or that of the tick which it is but for rounding."""
        if self.rate is None:
            return time
        count = round(time * self.rate)
        return count / self.rate if abs(time * self.rate - count) < ON_TICK else time

    def _ticks(self, end: float) -> Iterator[float]:
        """All multiples of 1/rate between now and `end` [s], each the double nearest to it."""
        if self.rate is not None:
            first, last = math.floor(self.time * self.rate + ON_TICK) + 1, math.ceil(end * self.rate - ON_TICK)
            yield from (count / self.rate for count in range(first, last))

    def _advance_to(self, end: float) -> None:
        """Let all bodies go on until `end` [s] while nothing happens but that fields come and go; the clock is not set
        yet."""
        switches = {time for field in self.fields for time in field.switches(self.time, end)}
        for stop in sorted(switches.union(self._ticks(end))):
            self._advance_quietly(stop - self.time)
            self.set_clock(stop)
        self._advance_quietly(end - self.time)

    def _advance_quietly(self, dt: float) -> None:
        """Let all bodies go on by a time in which nothing happens; the clock is not set yet."""
        if not (dt > 0 and self.bodies):
            return
        parts = math.ceil(dt / LONGEST_UNBROKEN) if any(body.fracture is not None for body in self.bodies) else 1
        start = self.time
        for part in range(parts):
            if part > 0:
                self.set_clock(start + part * dt / parts)
            self.moving.sort()
            self._advance_together(dt / parts)
            self.revision += 1
            break_apart(self)

    def _advance_together(self, dt: float) -> None:
        """Let all bodies go on by dt [s]: movers each by itself, or by intervals in which some of their bodies meet."""
        start, left = self.time, dt
        while (step := self.encounters.interval(self.movers, left)) is not None:
            self.encounters.advance(step)
            left -= step
            if left <= 1e-12 * dt:
                return
            self.set_clock(start + dt - left)
        for mover in self.movers:
            mover.advance(left)

    def set_clock(self, time: float) -> None:
        """The time to the bit, with what depends on it alone: a resumed run must find the same."""
        self.time = time
        for mover in self.movers:
            mover.set_clock(time)
        for body in self.bodies:
            body.follow_ramp(time)

    def replay(self, events: int) -> None:
        """Let past events happen again, each at its time, until there were so many. They change materials, holds and
        fields; the state is to be overwritten then."""
        self.attachments.known = False
        for then, action in self._events[self.past_events : events]:
            self.set_clock(self._rounded_to_tick(then))
            action(self)
        self.attachments.known = True
        self.past_events = events

    @property
    def integrator(self) -> str:
        """ "leapfrog" or "implicit": what moves the phyxel bodies, or "leapfrog, implicit", some and others; Galerkin
        and modal ones take implicit steps; or "exact", if there are only particle surfaces."""
        return self.moving.integrator

    @property
    def steps(self) -> int:
        """Substeps taken so far."""
        return self.moving.steps

    def settle(self, tolerance: float = 1e-6, most_steps: int = 1000) -> None:
        """Relax to static equilibrium at this time. Ends when nodes have less than `tolerance` spacings left to go."""
        settling.settle(self, tolerance, most_steps)

    @knows_its_arguments
    def play(self, seconds: float, fps: float = 60.0) -> Iterator[Frame]:
        """Frames at 0, 1/fps, ... up to `seconds` [s] from now, both ends included."""
        seconds = quantity("world.play: seconds", seconds, "s")
        if not all(isinstance(given, int | float | np.number) and 0 < given < math.inf for given in (seconds, fps)):
            raise PhyxelError(f"world.play(seconds={seconds}, fps={fps}): give numbers above 0")
        start, last = self.time, round(seconds * fps)
        for index in range(last + 1):
            self.advance(max(start + index / fps - self.time, 0.0))
            progress.tell("playing", index + 1, last + 1)
            yield Frame(index, self.time, tuple(self.bodies))

    # Reading

    def facts(self) -> Iterator[Fact]:
        yield "time", f"{self.time:.3f} s"
        yield "bodies", _listed(f"{body.name} ({body.model}, {len(body.birth):,} nodes)" for body in self.bodies)
        yield "colliders", _listed(type(one).__name__.lower() for one in self.colliders)
        if self.fields:
            yield "fields", _listed(field.label for field in self.fields)
        yield "gravity", f"({', '.join(f'{part:g}' for part in self.gravity)}) m/s²"
        if self.bodies:
            yield "mass", amount_text(float(sum(body.masses.sum() for body in self.bodies)), "kg")
            yield "steps", f"{self.steps:,} ({self.integrator})"
        if self.breaks:
            yield "breaks", f"{len(self.breaks):,}"
        yield "device", self.device.alias

    def field(self, body: Body, name: str) -> Floats:
        """What one body's nodes have, in its units: "u", "v", "gradient" of u, "plastic" strain, "swell"."""
        found: Floats = getattr(self.mover_of(body).nodal(body), name)
        return found

    def pieces(self) -> list[Piece]:
        """What hangs together, the heaviest first: the nodes of each body that a piece has a part of. Bodies that have
        flowed together are one piece, one that has flowed apart is several."""
        found = [piece for mover in self.movers for piece in mover.pieces()]
        return sorted(found, key=lambda piece: -sum(body.masses[nodes].sum() for body, nodes in piece.items()))

    def synchronize(self) -> None:
        """Wait until the device has done all it was told to."""
        dev.synchronize(self.device)

    # Checkpoints

    def save(self, path: str | os.PathLike[str], note: str = "") -> None:
        """Write the state to `path` (.npz); `restore` goes on from it with the same bits. A `note` must match then."""
        checkpoint.save(self, path, note)

    def restore(self, path: str | os.PathLike[str], note: str = "") -> None:
        """Go to the state that `save` wrote, in a world built from the same scene."""
        checkpoint.restore(self, path, note)


def _listed(words: Iterable[str]) -> str:
    """Words in a row; of many, the first and how many more there are."""
    every = list(words)
    more = [f"and {len(every) - MOST_LISTED} more"] if len(every) > MOST_LISTED else []
    return ", ".join([*every[:MOST_LISTED], *more]) or "none"


def settle(world: World, tolerance: float = 1e-6) -> None:
    """Relax a `world` to static equilibrium: its bodies are where they hang, stand or lie at last, at rest, and no time
    has passed. Ends when nodes have less than `tolerance` node spacings left to go. Phyxel bodies may lie on each
    other; others that touch, or are tied, are refused: they come to rest by `world.advance`.

    >>> bar = px.Body(px.load("bar", points=500), model="galerkin", nodes=100, material=px.Material(young=1e6))
    >>> world = px.World(gravity=(9.81, 0, 0))  # along the bar
    >>> world.add(bar)
    >>> root = bar.fix(px.Box((-1, -1, -1), (0.001, 1, 1)))
    >>> px.settle(world)
    >>> print(f"{bar.displacement_at([[1, 0, 0]])[0, 0]:.3f} m")  # ρ g L²/2E = 0.0049
    0.005 m
    """
    world.settle(tolerance)
