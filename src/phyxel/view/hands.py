"""Hands of the pages in the world: they take hold, pull, pin, push, cut and drop.

All they do is events of the scene, so that it can be saved and played again.
They touch the first surfel that the ray of a pointer meets.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from phyxel.body import Body
from phyxel.contact.colliders import Ground
from phyxel.errors import PhyxelError
from phyxel.rotation import Floats, euler_angles, spin_between, spun_on
from phyxel.scene.body_tables import CutPart, HoldPart
from phyxel.scene.event_tables import EventPart, PushPart
from phyxel.scene.performance import Performance
from phyxel.view import commands as do
from phyxel.view.aim import Hit, Ray, aimed_at, through
from phyxel.view.journal import Journal, Trail
from phyxel.world import World

FASTEST_BY_SOUND, FASTEST_BY_SIZE = 0.5, 15.0
"""Speed at which a hand pulls at most, over that of sound in a bar of the body, √(E/ρ), and in sizes a second: nodes
jerked faster are crushed before the rest of the body has heard of it."""
LAG = 0.03
"""Time in which a hand gets 63 % of the way to the pointer [s]."""
CORRECTED = 6.0
"""Rate at which a hand at rest makes up for what its hold is off the surfel that was taken [1/s]."""
FARTHEST_OFF = 0.15
"""How much of that it makes up for at most, in sizes."""
PUSH = 3.0
"""A push over the weight of the body, unless it is told."""
FEWEST_TURNED = 3
"""Held points that can be turned."""
STROKES = 25
"""Rays along the stroke of a cut."""


def size_of(body: Body) -> float:
    """Largest extent at birth [m]."""
    return float(np.ptp(body.birth, axis=0).max())


def top_speed(body: Body) -> float:
    """Of a hand that holds a body [m/s]."""
    sound = float(np.sqrt((body.mixture.number("young") / body.mixture.number("density")).min()))
    return min(FASTEST_BY_SOUND * sound, FASTEST_BY_SIZE * size_of(body))


@dataclass
class HeldSurfel:
    """A surfel in a hand."""

    hit: Hit
    trail: Trail
    across: Floats
    """where the camera looked, of length 1: the hand goes in the plane across"""
    goal: Floats = field(default_factory=lambda: np.zeros(3))
    """how far from where it was taken the pointer is [m]"""
    off: Floats = field(default_factory=lambda: np.zeros(3))
    """by how much the hand goes further than the pointer, for the surfel to be at it [m]"""
    gone: Floats = field(default_factory=lambda: np.zeros(3))
    """how far the hand has gone [m]"""
    turn: Floats = field(default_factory=lambda: np.eye(3))
    """how it is to be turned, 3 × 3"""
    turned: Floats = field(default_factory=lambda: np.eye(3))
    """how it is turned"""

    def step(self, dt: float, fastest: float) -> bool:
        """Go on towards the pointer for a time [s], and turn; whether there was a way to go."""
        size, share = size_of(self.hit.body), 1 - np.exp(-dt / LAG)
        way, spin = self.goal + self.off - self.gone, spin_between(self.turned, self.turn)
        length, angle = float(np.linalg.norm(way)), float(np.linalg.norm(spin))
        if length <= 1e-5 * size and angle <= 1e-4:
            return False
        self.gone = self.gone + way * min(share, fastest * dt / max(length, 1e-30))
        self.turned = spun_on(self.turned, spin * min(share, fastest / size * dt / max(angle, 1e-30)))
        return True

    def taken_anew(self, trail: Trail) -> HeldSurfel:
        """The same in a hold that begins here."""
        hit = replace(self.hit, place=self.hit.place + self.gone)
        return HeldSurfel(hit, trail, self.across, self.goal - self.gone, self.off)


@dataclass(frozen=True)
class Marks:
    """What hands have done to a world and can undo."""

    pins: dict[tuple[str, str], Floats]
    held: list[tuple[str, str]]
    """names of body and hold"""
    pushes: list[str]
    """names of fields"""
    count: int
    """of all names that hands gave"""


class Hands:
    """What the pages hold, pin and push in one world. Wrong commands are refused and change nothing."""

    def __init__(self, performance: Performance, journal: Journal) -> None:
        self._performance, self._journal = performance, journal
        self.in_hand: dict[int, HeldSurfel] = {}
        """by page"""
        self._pins: dict[tuple[str, str], Floats] = {}
        """where pins are [m], by names of body and hold"""
        self._pushes: dict[int, str] = {}
        """names of fields, by page"""
        self._count = 0
        self._corrected = 0.0
        """when hands were last corrected [s]"""

    @property
    def world(self) -> World:
        return self._performance.world

    def happen(self, **what: Any) -> None:
        """Let an event happen now, and remember it."""
        self._journal.record(self._performance.happen(EventPart(at=self.world.time, **what)))

    @property
    def marks(self) -> Marks:
        held = [(grab.trail.body, grab.trail.name) for grab in self.in_hand.values()]
        return Marks(dict(self._pins), held, [*self._pushes.values()], self._count)

    def recall(self, marks: Marks) -> None:
        """Know of pins that other hands left; what those still held or pushed is let go."""
        self._pins, self._count = dict(marks.pins), marks.count
        for body, name in marks.held:
            if (body, name) in self._performance.handles:
                self.happen(body=body, release=name)
        for name in marks.pushes:
            self.happen(remove=name)

    # What is seen of them

    @property
    def pins(self) -> list[list[float]]:
        """[m]"""
        return [place.tolist() for place in self._pins.values()]

    @property
    def grabs(self) -> list[dict[str, list[float]]]:
        """Where hands have hold, and where their pointers are [m]."""
        marks = ((grab.hit.place + grab.gone, grab.hit.place + grab.goal) for grab in self.in_hand.values())
        return [{"at": at.tolist(), "to": to.tolist()} for at, to in marks]

    # Taking hold

    def grab(self, page: int, command: do.Grab) -> dict[str, Any]:
        """Take hold of what is under the pointer; what to tell the page."""
        self.let_go(page)
        hit = self._hit(command)
        trail = self._journal.grab(self._performance, hit.body.name, self._name("hand"), **hit.spot)
        ahead = Ray.of(command.ray, command.ahead).way
        self.in_hand[page] = HeldSurfel(hit, trail, ahead)
        return {"kind": "grabbed", "body": hit.body.name, "at": hit.place.tolist()}

    def pull(self, page: int, command: do.Pull) -> None:
        """The pointer is elsewhere: in the plane through the surfel as it was taken, above the ground."""
        if (grab := self.in_hand.get(page)) is None:
            return
        place = Ray.of(command.ray, command.way).on_plane(grab.hit.place, grab.across)
        if place is not None:
            grab.goal = self._above_ground(place, grab.hit) - grab.hit.place

    def turn(self, page: int, command: do.TurnHeld) -> None:
        """Turn what is held, about its middle. A hand that begins to turn takes hold anew: other holds never turn."""
        if (grab := self.in_hand.get(page)) is None:
            return
        body, name = grab.trail.body, grab.trail.name
        held = self._performance.handles.get((body, name))
        if held is None or len(held.points) < FEWEST_TURNED:
            raise PhyxelError(
                f'{body}: turn: only one spot is held, as "{grab.hit.body.kind.name}" bodies are; take a body of model '
                '"phyxel", or write a hold with a radius and a turn in the scene'
            )
        if not grab.trail.turns:
            self.happen(body=body, release=name)
            spot = grab.hit.spot
            trail = self._journal.grab(self._performance, body, self._name("hand"), **spot, turns=True)
            grab = self.in_hand[page] = grab.taken_anew(trail)
        grab.turn = spun_on(grab.turn, np.asarray(command.spin, np.float64))

    def _above_ground(self, place: Floats, hit: Hit) -> Floats:
        for ground in self.world.colliders:
            if isinstance(ground, Ground):
                lowest = min(ground.height + 0.5 * hit.body.unit, float(hit.place[1]))
                place = np.array([place[0], max(place[1], lowest), place[2]])
        return place

    def follow(self) -> None:
        """Hands go on towards their pointers in the tick that comes."""
        assert self.world.rate is not None
        dt = 1 / self.world.rate
        for grab in self.in_hand.values():
            if grab.step(dt, top_speed(grab.hit.body)):
                degrees = euler_angles(grab.turned, grab.trail.degrees)
                grab.trail.to(self.world.next_tick, grab.gone, degrees)

    def correct(self) -> None:
        """Where the pointer rests, bring the surfel to it: nodes around are held, and the surfel hangs from them."""
        dt, self._corrected = self.world.time - self._corrected, self.world.time
        for grab in self.in_hand.values():
            hit, size = grab.hit, size_of(grab.hit.body)
            carried = hit.body.surface.carried
            if hit.body.has_melted or hit.surfel >= len(carried):
                continue  # surfels of what flows come and go
            place = carried.origin + carried.position.numpy()[hit.surfel]
            miss = hit.place + grab.goal - place
            if np.linalg.norm(grab.goal + grab.off - grab.gone) < 0.05 * size:
                off = grab.off + min(CORRECTED * dt, 1.0) * miss
                grab.off = off * min(1.0, FARTHEST_OFF * size / max(float(np.linalg.norm(off)), 1e-30))

    def let_go(self, page: int, pin: bool = False) -> None:
        """Open the hand; or leave a pin where it is."""
        if (grab := self.in_hand.pop(page, None)) is None:
            return
        key = grab.trail.body, grab.trail.name
        if key not in self._performance.handles:
            return  # it was let go when the body was lifted
        if pin:
            self._pins[key] = grab.hit.place + grab.gone
        else:
            self.happen(body=key[0], release=key[1])

    def gone(self, page: int) -> None:
        """A page was closed."""
        self.let_go(page)
        self.stop_push(page)

    # Pins

    def pin(self, command: do.Pin) -> None:
        """Pin what is under the pointer; a pin that is there goes."""
        ray = Ray.of(command.ray, command.way)
        hit = aimed_at(self.world, ray)
        if (there := self._pin_at(ray, hit)) is not None:
            self._take_out(there)
            return
        hit = self._hit(command)
        name = self._name("pin")
        self.happen(body=hit.body.name, hold=HoldPart(name=name, **hit.spot))
        self._pins[hit.body.name, name] = hit.place

    def _pin_at(self, ray: Ray, hit: Hit | None) -> tuple[str, str] | None:
        """The pin that a ray meets, if it is not far behind the surface that is hit."""
        if not self._pins:
            return None
        along, beside = ray.distances(np.array(list(self._pins.values())))
        behind = np.inf if hit is None else hit.distance + 0.2 * size_of(hit.body)
        angle = np.where((along > 0) & (along < behind), np.arctan2(beside, along), np.inf)
        nearest = int(angle.argmin())
        return list(self._pins)[nearest] if angle[nearest] < 0.015 else None

    def unpin(self) -> None:
        """Take all pins out."""
        for key in list(self._pins):
            self._take_out(key)

    def _take_out(self, key: tuple[str, str]) -> None:
        del self._pins[key]
        if key in self._performance.handles:
            self.happen(body=key[0], release=key[1])

    # Pushing

    def push(self, page: int, command: do.PushAway) -> None:
        """Push what is under the pointer away from the eye, until it is told to stop or to push elsewhere."""
        hit = self._hit(command)
        body, way = hit.body, Ray.of(command.ray, command.way).way
        gravity = float(np.linalg.norm(self.world.gravity)) or 9.81
        force = (command.force or PUSH * float(body.masses.sum()) * gravity) * way
        self.stop_push(page)
        name = self._name("push")
        self.happen(field=PushPart(kind="push", name=name, bodies=[body.name], force=tuple(force.tolist()), **hit.spot))
        self._pushes[page] = name

    def stop_push(self, page: int) -> None:
        if (name := self._pushes.pop(page, None)) is not None:
            self.happen(remove=name)

    # Cutting and dropping

    def cut(self, command: do.Cut) -> None:
        """Cut what lies under a stroke, as deep as it goes: a disc through where rays along the stroke come in and out,
        in the shape at birth. What is touched by most of them is cut."""
        rays = [Ray.of(command.ray, way) for way in np.linspace(command.way, command.to_way, STROKES)]
        first = [hit.body for ray in rays if (hit := aimed_at(self.world, ray)) is not None]
        if not first:
            raise PhyxelError("cut: there is nothing under the stroke; draw it across a body")
        body = max(set(first), key=first.count)
        if body.has_melted:
            raise PhyxelError(f"{body.name}: cut: it has melted; only what has its first shape can be cut")
        ends = [hit for ray in rays for hit in through(body, ray)]
        if not ends:  # aim forgives more than a cut can
            raise PhyxelError(f"cut: the stroke only grazes {body.name}; draw it across")
        X = np.array([hit.reference for hit in ends])
        normal = self._across(command, body, X)
        inside = X - X.mean(axis=0)
        inside -= np.outer(inside @ normal, normal)
        middle = X.mean(axis=0) + 0.5 * (inside.min(axis=0) + inside.max(axis=0))
        radius = float(np.linalg.norm(X - middle, axis=1).max()) + 1.5 * body.unit
        plane = {"at": tuple(middle.tolist()), "normal": tuple(normal.tolist())}
        self.happen(body=body.name, cut=CutPart(radius=radius, **plane))

    def _across(self, command: do.Cut, body: Body, X: Floats) -> Floats:
        """Normal of a stroke's plane, carried back into the shape at birth: n₀ = Jᵀ n, of length 1."""
        normal = np.cross(command.way, command.to_way)
        if np.linalg.norm(normal) < 1e-9 * np.linalg.norm(command.way) * np.linalg.norm(command.to_way):
            raise PhyxelError("cut: the stroke is too short; draw it across a body")
        J = np.eye(3) + body.probe(X).gradient().mean(axis=0)
        back = J.T @ (normal / np.linalg.norm(normal))
        return np.asarray(back / np.linalg.norm(back))

    def drop(self, name: str | None) -> None:
        """Lift a body, or all, to one size above the ground (without one, above where it is) and let it fall."""
        bodies = [body for body in self.world.bodies if name is None or name in (body.name, body.whole)]
        if not bodies:
            raise PhyxelError(f'drop: no body is named "{name}"')
        lowest = min(float(body.surface.positions[:, 1].min()) for body in bodies)
        floor = max((one.height for one in self.world.colliders if isinstance(one, Ground)), default=lowest)
        height = max(size_of(body) for body in bodies)
        lift = (0.0, max(floor + height - lowest, 0.0), 0.0)
        for body in self._lifted_alone(bodies):
            self.happen(body=body.name, lift=lift)
        held = self._performance.handles
        self._pins = {key: place for key, place in self._pins.items() if key in held}
        self.in_hand = {page: grab for page, grab in self.in_hand.items() if (grab.trail.body, grab.trail.name) in held}

    def _lifted_alone(self, bodies: list[Body]) -> Iterator[Body]:
        """One of each of those that are lifted together, having flowed together."""
        anchors: set[int] = set()
        for body in bodies:
            if id(body.anchor) not in anchors:
                anchors.add(id(body.anchor))
                yield body

    # Aiming

    def _hit(self, command: do.Aimed) -> Hit:
        hit = aimed_at(self.world, Ray.of(command.ray, command.way))
        if hit is None:
            raise PhyxelError(f"{command.do}: there is nothing under the pointer")
        return hit

    def _name(self, what: str) -> str:
        """Of a hold or a field, that nothing else in the scene has."""
        taken = {*self._performance.fields, *self._performance.colliders}
        taken |= {name for _, name in self._performance.handles}
        while True:
            self._count += 1
            if (name := f"{what}-{self._count}") not in taken:
                return name
