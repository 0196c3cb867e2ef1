"""A scene being played: the world that was built of it, and what happens to it by the names that the scene uses."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from phyxel.body import Body, Handle
from phyxel.contact.colliders import Collider, Ground
from phyxel.errors import SceneError
from phyxel.fields import ForceField
from phyxel.material import Material
from phyxel.region import select
from phyxel.scene_bodies import EventPart
from phyxel.skeleton import Skeleton
from phyxel.world import World

if TYPE_CHECKING:
    from phyxel.scene import Scene


class Performance:
    """A scene being played: events of the scene happen on the world's clock, others when they are told to."""

    def __init__(self, scene: Scene, device: str | None = None) -> None:
        self.scene = scene
        content = scene.content
        with scene.blaming("gravity"):
            self.world = World(content.gravity, device)
        self.handles: dict[tuple[str, str], Handle] = {}
        """holds, by the names of body and hold"""
        self.colliders: dict[str, Ground | Collider] = {}
        """by name"""
        self.fields: dict[str, ForceField] = {}
        """by name"""
        self.skeletons: dict[str, Skeleton] = {}
        """by the name of their body"""
        self._names = scene.body_names()
        self._add_bodies()
        self._add_surroundings()
        self._rehearse()
        for event in content.event:
            self.world.at(event.at, lambda world, event=event: self._apply(event))  # type: ignore[misc]

    def _add_bodies(self) -> None:
        scene = self.scene
        for index, (part, name) in enumerate(zip(scene.content.body, self._names, strict=True)):
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
        for index, blowing in enumerate(scene.content.field):
            with scene.blaming(f"field[{index}]"):
                field = self.fields[blowing.name or f"#{index}"] = blowing.field(self.colliders)
                self.world.add(field)

    def _rehearse(self) -> None:
        """Go through the events in order without any of them happening: a fault is found before the run begins."""
        events, stand = self.scene.content.event, Stand.of(self)
        for index in sorted(range(len(events)), key=lambda index: events[index].at):
            with self.scene.blaming(f"event[{index}]"):
                stand.go_on(events[index])

    def body(self, event: EventPart) -> Body:
        """Whom an event happens to."""
        name = event.body or self._names[0]
        return next(body for body in self.world.bodies if body.name == name)

    def happen(self, event: EventPart) -> EventPart:
        """Let an event happen now, whatever its time says; the event with its true time, as a scene would have it.
        One that is wrong is refused, and nothing is changed."""
        event = event.model_copy(update={"at": self.world.time})
        Stand.of(self).go_on(event)
        self._apply(event)
        return event

    def _apply(self, event: EventPart) -> None:
        body = self.body(event)
        if event.material is not None:
            body.change(event.material.over(body.material), over=event.over)
        if event.melt is not None:
            body.melt(event.melt.box, event.melt.viscosity)
        if event.solidify is not None:
            other = event.solidify.material
            body.solidify(event.solidify.box, None if other is None else other.over(body.material))
        if event.force is not None:
            body.force = event.force
        if event.hold is not None:
            taken = event.hold.take(body, event.at, self.skeletons[body.name])
            self.handles[body.name, event.hold.name or ""] = taken
        if event.release is not None:
            body.release(self.handles.pop((body.name, event.release)))
        if event.remove is not None:
            self.world.remove((self.fields if event.remove in self.fields else self.colliders).pop(event.remove))


@dataclass
class Stand:
    """How things stand at a time of a performance, as far as it decides what can happen next."""

    performance: Performance
    materials: dict[str, Material]
    """of each body"""
    melted: set[str]
    """bodies that are, or were once, molten"""
    held: set[tuple[str, str]]
    """names of body and hold"""
    removable: set[str]
    """colliders and fields"""

    @staticmethod
    def of(performance: Performance) -> Stand:
        """How they stand now."""
        bodies = performance.world.bodies
        return Stand(
            performance,
            {body.name: body.material for body in bodies},
            {body.name for body in bodies if body.has_melted or body.material.viscosity is not None},
            set(performance.handles),
            {*performance.colliders, *performance.fields},
        )

    def go_on(self, event: EventPart) -> None:
        """Refuse an event that cannot happen; else things stand as after it."""
        body = self.performance.body(event)
        name = body.name
        if event.material is not None:
            self.materials[name] = event.material.over(self.materials[name])
            body.check_material(self.materials[name])
        if event.force is not None and not np.isfinite(event.force).all():
            raise SceneError(f"force = {event.force}: give three finite numbers [N]")
        if event.melt is not None:
            body.check_melts()
            if name not in self.melted:
                select(event.melt.box, body.birth, f"melt of {name}")
            self.melted.add(name)
        if event.solidify is not None and name not in self.melted:
            raise SceneError(f"solidify: nothing of {name} has melted at {event.at:g} s")
        if event.hold is not None:
            if name not in self.melted:  # where its nodes are then, nobody knows yet
                event.hold.rehearse(body, event.at, self.performance.skeletons[name])
            self.held.add((name, event.hold.name or ""))
        if event.release is not None:
            if (name, event.release) not in self.held:
                raise SceneError(f'release = "{event.release}": {name} is not held so at {event.at:g} s')
            self.held.remove((name, event.release))
        if event.remove is not None:
            if event.remove not in self.removable:
                raise SceneError(f'remove = "{event.remove}": it is gone at {event.at:g} s already')
            self.removable.remove(event.remove)
