"""A scene being played: the world that was built of it, and what happens to it by the names that the scene uses."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from phyxel.body.body import Body, Handle
from phyxel.body.holds import OpenPath
from phyxel.body.skeleton import Skeleton
from phyxel.contact.colliders import Collider, Ground
from phyxel.errors import PhyxelError, SceneError, did_you_mean
from phyxel.fields import ForceField
from phyxel.material import Material
from phyxel.movers.surroundings import refuse_overlap
from phyxel.region import as_vector, select
from phyxel.scene.body_tables import AnyFieldPart, EventPart
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
        for index, blowing in enumerate(scene.content.field):
            with scene.blaming(f"field[{index}]"):
                field = blowing.field(self.colliders)
                self.world.add(field)
            if blowing.name:
                self.fields[blowing.name] = field

    def _rehearse(self) -> None:
        """Go through the events in order without any of them happening: a fault is found before the run begins."""
        events, stand = self.scene.content.event, Stand.of(self)
        for index in sorted(range(len(events)), key=lambda index: events[index].at):
            with self.scene.blaming(f"event[{index}]"):
                stand.go_on(events[index])

    def happen(self, event: EventPart) -> EventPart:
        """Let an event happen now, whatever its time says; the event with its true time, as a scene would have it.
        One that is wrong is refused, and nothing is changed."""
        event = self._due(event)
        if event.lift is not None:
            refuse_overlap(self.world, self._body(event), event.lift)
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
        Stand.of(self).go_on(event)
        return event

    def _begin(self) -> None:
        """Let bodies come to be before anything happens to them: it is the same whether they were looked at before."""
        for body in [] if self._begun else self.world.bodies:
            _ = body.surface
        self._begun = True

    def _apply(self, event: EventPart) -> None:
        self._begin()
        if event.needs_body:
            self._apply_to_body(event, self._body(event))
        if event.gravity is not None:
            self.world.gravity = event.gravity
        if event.field is not None:
            field = event.field.field(self.colliders)
            self.world.add(field)
            if event.field.name:
                self.fields[event.field.name] = field
        if event.remove is not None:
            self.world.remove((self.fields if event.remove in self.fields else self.colliders).pop(event.remove))
        if event.rate is not None:
            self.world.rate = event.rate

    def _apply_to_body(self, event: EventPart, body: Body) -> None:
        if event.material is not None:
            body.change(event.material.over(body.material), over=event.over)
        if event.melt is not None:
            body.melt(event.melt.box, event.melt.viscosity)
        if event.solidify is not None:
            other = event.solidify.material
            body.solidify(event.solidify.box, None if other is None else other.over(body.material))
        if event.force is not None:
            body.force = event.force
        if event.cut is not None:
            body.cut(*event.cut.crack)
        if event.lift is not None:
            body.lift(event.lift)
            self._forget_holds()
        if event.hold is not None:
            taken = event.hold.take(body, event.at, self.skeletons[body.whole])
            self.handles[body.name, event.hold.name or ""] = taken
        if event.release is not None:
            mine = (body.name, event.release)
            body.release(self.handles.pop(mine if mine in self.handles else (body.whole, event.release)))

    def _forget_holds(self) -> None:
        """Some have let go."""
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


@dataclass
class Stand:
    """How things stand at a time of a performance, as far as it decides what can happen next."""

    performance: Performance
    materials: dict[str, Material]
    """of each body"""
    melted: set[str]
    """bodies that are, or were once, molten"""
    brittle: set[str]
    """bodies that can fall apart"""
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
            {body.name for body in bodies if body.fracture is not None},
            set(performance.handles),
            {*performance.colliders, *performance.fields},
        )

    def go_on(self, event: EventPart) -> None:
        """Refuse an event that cannot happen; else things stand as after it."""
        if event.needs_body:
            name, body = self.performance.named(event)
            self._go_on_with_body(event, name, body)
        if event.gravity is not None:
            as_vector("gravity", event.gravity, "m/s²")
        if event.field is not None:
            self._go_on_with_field(event.field)
        if event.remove is not None:
            if event.remove not in self.removable:
                raise SceneError(
                    f'remove = "{event.remove}": it is gone at {event.at:g} s already, or is still to come'
                )
            self.removable.remove(event.remove)

    def _go_on_with_body(self, event: EventPart, name: str, body: Body | None) -> None:
        known = body is not None and name not in self.melted  # of others nobody knows where their nodes are then
        body = body or self._whole(name)
        if event.material is not None:
            self.materials[name] = event.material.over(self.materials.get(name, self.materials[body.name]))
            body.check_material(self.materials[name])
            if self.materials[name].strength is not None:
                self.brittle.add(name)
        if event.force is not None and not np.isfinite(event.force).all():
            raise SceneError(f"force = {event.force}: give three finite numbers [N]")
        if event.melt is not None:
            body.check_melts()
            if known:
                select(event.melt.box, body.birth, f"melt of {name}")
            self.melted.add(name)
        if event.solidify is not None and name not in self.melted:
            raise SceneError(f"solidify: nothing of {name} has melted at {event.at:g} s")
        if event.cut is not None:
            if name in self.melted:
                raise SceneError(f"cut: {name} has melted; only what has its first shape can be cut")
            body.check_cut(*event.cut.crack)
            self.brittle.add(name)
        if event.lift is not None:
            as_vector("lift", event.lift)
            if name not in self.brittle:  # else pieces may still be held
                self.held = {(whose, hold) for whose, hold in self.held if whose != name}
        if event.hold is not None:
            if known:
                event.hold.rehearse(body, event.at, self.performance.skeletons[body.whole])
            self.held.add((name, event.hold.name or ""))
        if event.release is not None:
            mine = [(one, event.release) for one in (name, body.whole) if (one, event.release) in self.held]
            if not mine:
                raise SceneError(f'release = "{event.release}": {name} is not held so at {event.at:g} s')
            self.held.remove(mine[0])

    def _whole(self, name: str) -> Body:
        """The body that a piece of this name would come of."""
        bodies = {body.name: body for body in self.performance.world.bodies}
        whole = whole_of(name, bodies)
        if whole is None:
            raise SceneError(f'body = "{name}": no such body{did_you_mean(name, bodies)}')
        if whole not in self.brittle:
            raise SceneError(f'body = "{name}": {whole} never falls apart: it has no strength and is not cut before')
        return bodies[whole]

    def _go_on_with_field(self, part: AnyFieldPart) -> None:
        if part.name in self.removable:
            raise SceneError(f'field.name = "{part.name}": a field or a collider has this name already')
        performance = self.performance
        there = {name: one for name, one in performance.colliders.items() if name in self.removable}
        field = part.field(there)
        there_now = {body.name for body in performance.world.bodies}
        to_come = [name for name in part.bodies or () if name not in there_now and self._whole(name)]
        if not (to_come or self.melted):  # where nodes are then, nobody knows
            field.enter(performance.world)
        if part.name:
            self.removable.add(part.name)


def whole_of(name: str, bodies: Iterable[str]) -> str | None:
    """The one of some bodies of which a piece may have this name: bear-2, bear-3, ... come of bear."""
    whole, dash, number = name.rpartition("-")
    numbered = dash and number.isdecimal() and number == str(int(number)) and int(number) > 1
    return whole if numbered and whole in bodies else None
