"""What a scene that is being played has, by the names that the scene uses."""

from __future__ import annotations

from phyxel.body import Body
from phyxel.body.holds import Handle
from phyxel.body.skeleton import Skeleton
from phyxel.contact.colliders import Collider, Ground
from phyxel.errors import PhyxelError
from phyxel.fields import ForceField
from phyxel.scene.event_tables import AnyFieldPart, EventPart
from phyxel.world import World


class Things:
    """A world, and what is in it by name."""

    def __init__(self, world: World, names: list[str]) -> None:
        self.world = world
        self.names = names
        """of the bodies of the scene"""
        self.handles: dict[tuple[str, str], Handle] = {}
        """holds, by the names of body and hold"""
        self.colliders: dict[str, Ground | Collider] = {}
        self.fields: dict[str, ForceField] = {}
        self.skeletons: dict[str, Skeleton] = {}
        """by the name of their body"""

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
