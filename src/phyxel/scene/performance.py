"""A scene being played: the world that was built of it, and what happens to it by the names that the scene uses."""

from __future__ import annotations

from typing import TYPE_CHECKING

from phyxel.body.body import Body, Handle
from phyxel.body.holds import OpenPath
from phyxel.body.skeleton import Skeleton
from phyxel.contact.colliders import Collider, Ground
from phyxel.errors import PhyxelError
from phyxel.fields import ForceField
from phyxel.scene.event_tables import AnyFieldPart, EventPart
from phyxel.scene.rehearsal import Stand
from phyxel.scene.verbs import TO_BODY, TO_WORLD, given, rehearse
from phyxel.world import World

if TYPE_CHECKING:
    from phyxel.scene.scene import Scene


class Performance:
    """A scene being played: events of the scene happen on the world's clock, others when they are told to."""

    def __init__(self, scene: Scene, device: str | None = None) -> None:
        self.scene = scene
        content = scene.content
        with scene.blaming("gravity"):
            self.world = World(content.gravity, device, content.rate)
        self.handles: dict[tuple[str, str], Handle] = {}
        """holds, by the names of body and hold"""
        self.colliders: dict[str, Ground | Collider] = {}
        """by name"""
        self.fields: dict[str, ForceField] = {}
        """by name"""
        self.skeletons: dict[str, Skeleton] = {}
        """by the name of their body"""
        self.names = scene.body_names()
        """of the bodies of the scene"""
        self._add_bodies()
        self._add_surroundings()
        self._rehearse()
        self._begun = False
        for event in content.event:
            self.world.at(event.at, lambda world, event=event: self._apply(event))  # type: ignore[misc]

    def _add_bodies(self) -> None:
        scene = self.scene
        for index, (part, name) in enumerate(zip(scene.content.body, self.names, strict=True)):
            with scene.blaming(f"body[{index}]"):
                body = part.model_copy(update={"name": name}).body(scene.folder)
                self.world.add(body)
                body.force = part.force
                self.skeletons[name] = part.skeleton()
            for number, hold in enumerate(part.hold):
                with scene.blaming(f"body[{index}].hold[{number}]"):
                    self.handles[name, hold.name or f"#{number}"] = hold.take(body, 0.0, self.skeletons[name])

    def _add_surroundings(self) -> None:
        scene = self.scene
        for index, (part, name) in enumerate(zip(scene.content.collider, scene.collider_names(), strict=True)):
            with scene.blaming(f"collider[{index}]"):
                self.colliders[name] = part.collider(scene.folder)
                self.world.add(self.colliders[name])
        for index, field in enumerate(scene.content.field):
            with scene.blaming(f"field[{index}]"):
                self.add_field(field)

    def _rehearse(self) -> None:
        """Go through the events in order without any of them happening: a fault is found before the run begins."""
        events, stand = self.scene.content.event, Stand.of(self)
        for index in sorted(range(len(events)), key=lambda index: events[index].at):
            with self.scene.blaming(f"event[{index}]"):
                rehearse(events[index], stand)

    def happen(self, event: EventPart) -> EventPart:
        """Let an event happen now, whatever its time says; the event with its true time, as a scene would have it.
        One that is wrong is refused, and nothing is changed."""
        event = self._due(event)
        for verb in given(event, TO_BODY):
            verb.check_now(self, self._body(event))
        self._apply(event)
        return event

    def grab(self, event: EventPart) -> tuple[EventPart, OpenPath]:
        """Let a hold happen now that follows a path as it comes to be; the event with its true time, and the path.
        With all keyframes in `hold.path` it goes the same way to the bit."""
        event = self._due(event)
        assert event.hold is not None
        body, path = self._body(event), OpenPath(event.at)
        self.handles[body.name, event.hold.name or ""] = body.drag(event.hold.where, path)
        return event, path

    def _due(self, event: EventPart) -> EventPart:
        """An event with the present for its time, if it can happen. What the scene has for this time happens first."""
        self._begin()
        self.world.advance(0.0)
        event = event.model_copy(update={"at": self.world.time})
        rehearse(event, Stand.of(self))
        return event

    def _begin(self) -> None:
        """Let bodies come to be before anything happens to them: it is the same whether they were looked at before."""
        for body in [] if self._begun else self.world.bodies:
            _ = body.surface
        self._begun = True

    def _apply(self, event: EventPart) -> None:
        self._begin()
        if to_body := given(event, TO_BODY):
            body = self._body(event)
            for verb in to_body:
                verb.act(self, body)
        for world_verb in given(event, TO_WORLD):
            world_verb.act(self)

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

    def named(self, event: EventPart) -> tuple[str, Body | None]:
        """The name of the body that an event happens to, and that body, if it is there already."""
        name = event.body or self.names[0]
        return name, next((body for body in self.world.bodies if body.name == name), None)

    def _body(self, event: EventPart) -> Body:
        name, body = self.named(event)
        if body is None:
            raise PhyxelError(
                f'event at {event.at:g} s: body = "{name}": there is no such piece; nothing broke off yet'
            )
        return body
