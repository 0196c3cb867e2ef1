"""What a scene that is being played has, by the names that the scene uses, and how it stands at a time, as far as that
decides which events can happen then."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from phyxel.body import Body
from phyxel.body.attach import Attach
from phyxel.body.holds import Handle
from phyxel.body.skeleton import Skeleton
from phyxel.contact.colliders import Collider, Ground
from phyxel.errors import PhyxelError, SceneError, did_you_mean
from phyxel.fields import ForceField
from phyxel.material import Material
from phyxel.scene.body_tables import BodyPart
from phyxel.scene.event_tables import AnyFieldPart, EventPart
from phyxel.world import World


class Things:
    """A world, and what is in it by name."""

    def __init__(self, world: World, names: list[str], folder: Path) -> None:
        self.world = world
        self.folder = folder
        """where files are looked for"""
        self.names = names
        """of the bodies of the scene"""
        self.handles: dict[tuple[str, str], Handle] = {}
        """holds, by the names of body and hold"""
        self.colliders: dict[str, Ground | Collider] = {}
        self.fields: dict[str, ForceField] = {}
        self.ties: dict[str, Attach] = {}
        self.skeletons: dict[str, Skeleton] = {}
        """by the name of their body"""
        self.coming: dict[str, Body] = {}
        """bodies that events will add, made already, by their name"""

    def enter(self, part: BodyPart, body: Body) -> None:
        """Put a body into the world, as its table says."""
        self.world.add(body)
        body.force = part.force
        self.skeletons[body.name] = part.skeleton()

    def named(self, event: EventPart) -> tuple[str, Body | None]:
        """The name of the body that an event happens to, and that body, if it is there already."""
        name = event.body or self.names[0]
        return name, next((body for body in self.world.bodies if body.name == name), None)

    def body(self, event: EventPart) -> Body:
        """The body that an event happens to."""
        name, body = self.named(event)
        if body is None:
            raise PhyxelError(
                f'event at {event.at:g} s: body = "{name}": there is no such piece; nothing broke off yet'
            )
        return body

    def add_field(self, part: AnyFieldPart) -> None:
        """Put a field into the world, under its name if it has one."""
        field = part.field(self.colliders)
        self.world.add(field)
        if part.name:
            self.fields[part.name] = field

    def forget_holds(self) -> None:
        """Forget the handles of holds that have let go."""
        held = {handle.grip for body in self.world.bodies for handle in body.handles}
        self.handles = {key: handle for key, handle in self.handles.items() if handle.grip in held}


class Subject(NamedTuple):
    """The body that an event is to happen to."""

    name: str
    body: Body
    """or, of a piece that is still to break off, the whole"""
    known: bool
    """whether its nodes will be there, and where they are now"""


@dataclass
class Stand:
    """How things stand at a time of a things. The verbs of events change it as they would change the world."""

    things: Things
    materials: dict[str, Material]
    """of each body"""
    melted: set[str]
    """bodies that are, or were once, molten"""
    brittle: set[str]
    """bodies that can fall apart"""
    held: set[tuple[str, str]]
    """names of body and hold"""
    removable: set[str]
    """colliders, fields and ties"""

    @staticmethod
    def of(things: Things) -> Stand:
        """How they stand now."""
        bodies = things.world.bodies
        return Stand(
            things,
            {body.name: body.material for body in bodies},
            {body.name for body in bodies if body.has_melted or body.material.viscosity is not None},
            {body.name for body in bodies if body.fracture is not None},
            set(things.handles),
            {*things.colliders, *things.fields, *things.ties},
        )

    def subject(self, event: EventPart) -> Subject:
        """The body that an event is to happen to, or a `SceneError`."""
        name, body = self.things.named(event)
        return Subject(name, body or self.whole(name), body is not None and name not in self.melted)

    def whole(self, name: str) -> Body:
        """The body that a piece of this name would come of."""
        bodies = {body.name: body for body in self.things.world.bodies} | self.things.coming
        if name in self.things.coming:
            return bodies[name]
        whole = whole_of(name, bodies)
        if whole is None:
            raise SceneError(f'body = "{name}": no such body{did_you_mean(name, bodies)}')
        if whole not in self.brittle:
            raise SceneError(f'body = "{name}": {whole} never falls apart: it has no strength and is not cut before')
        return bodies[whole]


def whole_of(name: str, bodies: Iterable[str]) -> str | None:
    """The one of some bodies of which a piece may have this name: bear-2, bear-3, ... come of bear."""
    whole, dash, number = name.rpartition("-")
    numbered = dash and number.isdecimal() and number == str(int(number)) and int(number) > 1
    return whole if numbered and whole in bodies else None
