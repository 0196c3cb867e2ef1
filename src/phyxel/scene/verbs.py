"""What events do: a class for each verb, with what it refuses beforehand and what it does at its time."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, TypeVar

import numpy as np

from phyxel.body import Body
from phyxel.errors import SceneError
from phyxel.movers.surroundings import refuse_overlap
from phyxel.region import as_vector
from phyxel.scene.body_tables import BodyPart, CutPart, HoldPart, MaterialPart
from phyxel.scene.event_tables import AnyFieldPart, EventPart, MeltPart, SolidifyPart
from phyxel.scene.tables import Triple
from phyxel.scene.things import Stand, Subject, Things


@dataclass(frozen=True)
class Verb:
    """What an event does; the value is that of the verb's key in the event's table."""

    value: Any
    event: EventPart
    refers_to: ClassVar[str] = ""
    """what the value is the name of, if it is a name"""


class BodyVerb(Verb):
    """What an event does to a body."""

    def check(self, stand: Stand, to: Subject) -> None:
        """Refuse what cannot happen as things stand; else they stand as after it."""

    def check_now(self, things: Things, body: Body) -> None:
        """Refuse what cannot happen to the body as it is at this moment."""

    def act(self, things: Things, body: Body) -> None:
        """Let it happen."""
        raise NotImplementedError


class MaterialVerb(BodyVerb):
    value: MaterialPart

    def check(self, stand: Stand, to: Subject) -> None:
        material = self.value.over(stand.materials.get(to.name, stand.materials[to.body.name]))
        stand.materials[to.name] = material
        to.body.check_material(material)
        if material.strength is not None:
            stand.brittle.add(to.name)

    def act(self, things: Things, body: Body) -> None:
        body.change(self.value.over(body.material), over=self.event.over)


class MeltVerb(BodyVerb):
    value: MeltPart

    def check(self, stand: Stand, to: Subject) -> None:
        to.body.check_melts()
        if to.known:
            to.body.held(self.value.where)
        stand.melted.add(to.name)

    def act(self, things: Things, body: Body) -> None:
        body.melt(self.value.where, self.value.viscosity)


class SolidifyVerb(BodyVerb):
    value: SolidifyPart

    def check(self, stand: Stand, to: Subject) -> None:
        if to.name not in stand.melted:
            raise SceneError(f"solidify: nothing of {to.name} has melted at {self.event.at:g} s")

    def act(self, things: Things, body: Body) -> None:
        material = None if self.value.material is None else self.value.material.over(body.material)
        body.solidify(self.value.where, material)


class ForceVerb(BodyVerb):
    value: Triple

    def check(self, stand: Stand, to: Subject) -> None:
        if not np.isfinite(self.value).all():
            raise SceneError(f"force = {self.value}: give three finite numbers [N]")

    def act(self, things: Things, body: Body) -> None:
        body.force = self.value


class CutVerb(BodyVerb):
    value: CutPart

    def check(self, stand: Stand, to: Subject) -> None:
        if to.name in stand.melted:
            raise SceneError(f"cut: {to.name} has melted; only what has its first shape can be cut")
        to.body.check_cut(*self.value.crack)
        stand.brittle.add(to.name)

    def act(self, things: Things, body: Body) -> None:
        body.cut(*self.value.crack)


class LiftVerb(BodyVerb):
    value: Triple

    def check(self, stand: Stand, to: Subject) -> None:
        as_vector("lift", self.value)
        if to.name not in stand.brittle:  # else pieces may still be held
            stand.held = {(whose, hold) for whose, hold in stand.held if whose != to.name}

    def check_now(self, things: Things, body: Body) -> None:
        refuse_overlap(things.world, body, self.value)

    def act(self, things: Things, body: Body) -> None:
        body.lift(self.value)
        things.forget_holds()


class HoldVerb(BodyVerb):
    value: HoldPart

    def check(self, stand: Stand, to: Subject) -> None:
        if to.known:
            self.value.rehearse(to.body, self.event.at, stand.things.skeletons[to.body.whole])
        stand.held.add((to.name, self.value.name or ""))

    def act(self, things: Things, body: Body) -> None:
        handle = self.value.take(body, self.event.at, things.skeletons[body.whole])
        things.handles[body.name, self.value.name or ""] = handle


class ReleaseVerb(BodyVerb):
    value: str
    refers_to = "hold"

    def check(self, stand: Stand, to: Subject) -> None:
        held = [(name, self.value) for name in (to.name, to.body.whole) if (name, self.value) in stand.held]
        if not held:
            raise SceneError(f'release = "{self.value}": {to.name} is not held so at {self.event.at:g} s')
        stand.held.remove(held[0])

    def act(self, things: Things, body: Body) -> None:
        own = (body.name, self.value)
        body.release(things.handles.pop(own if own in things.handles else (body.whole, self.value)))


class WorldVerb(Verb):
    """What an event does to the world."""

    def check(self, stand: Stand) -> None:
        """Refuse what cannot happen as things stand; else they stand as after it."""

    def act(self, things: Things) -> None:
        """Let it happen."""
        raise NotImplementedError


class GravityVerb(WorldVerb):
    value: Triple

    def check(self, stand: Stand) -> None:
        as_vector("gravity", self.value, "m/s²")

    def act(self, things: Things) -> None:
        things.world.gravity = self.value


class FieldVerb(WorldVerb):
    value: AnyFieldPart

    def check(self, stand: Stand) -> None:
        if self.value.name in stand.removable:
            raise SceneError(f'field.name = "{self.value.name}": a field or a collider has this name already')
        things = stand.things
        field = self.value.field({name: one for name, one in things.colliders.items() if name in stand.removable})
        there = {body.name for body in things.world.bodies}
        to_come = [name for name in self.value.bodies or () if name not in there and stand.whole(name)]
        if not (to_come or stand.melted):  # else nobody knows where their nodes will be
            field.enter(things.world)
        if self.value.name:
            stand.removable.add(self.value.name)

    def act(self, things: Things) -> None:
        things.add_field(self.value)


class RemoveVerb(WorldVerb):
    value: str
    refers_to = "field, collider or tie"

    def check(self, stand: Stand) -> None:
        if self.value not in stand.removable:
            raise SceneError(f'remove = "{self.value}": it is gone at {self.event.at:g} s already, or is still to come')
        stand.removable.remove(self.value)

    def act(self, things: Things) -> None:
        named: list[dict[str, Any]] = [things.fields, things.ties, things.colliders]
        things.world.remove(next(every for every in named if self.value in every).pop(self.value))


class AddVerb(WorldVerb):
    value: BodyPart

    def check(self, stand: Stand) -> None:
        things, name = stand.things, self.value.name
        if name is None or self.value.hold:
            raise SceneError("add: a body that comes later needs a name, and is held by events of their own (hold)")
        if name in stand.materials:
            raise SceneError(f'add.name = "{name}": a body has this name already')
        body = things.coming[name] = self.value.body(things.folder)
        body.comes_by_event = True
        stand.materials[name] = body.material
        if self.value.cut or body.is_brittle:
            stand.brittle.add(name)

    def act(self, things: Things) -> None:
        assert self.value.name is not None
        things.enter(self.value, things.coming.pop(self.value.name))


class RateVerb(WorldVerb):
    value: int

    def act(self, things: Things) -> None:
        things.world.rate = self.value


TO_BODY: dict[str, type[BodyVerb]] = {
    "material": MaterialVerb, "melt": MeltVerb, "solidify": SolidifyVerb, "force": ForceVerb,
    "cut": CutVerb, "lift": LiftVerb, "hold": HoldVerb, "release": ReleaseVerb,
}  # fmt: skip
TO_WORLD: dict[str, type[WorldVerb]] = {
    "gravity": GravityVerb, "field": FieldVerb, "remove": RemoveVerb, "add": AddVerb, "rate": RateVerb
}  # fmt: skip
"""By the keys of `EventPart`, in the order in which those of one event happen: a body is lifted, then held anew."""

V = TypeVar("V", bound=Verb)


def given(event: EventPart, verbs: Mapping[str, type[V]]) -> list[V]:
    """Those of some verbs that an event has."""
    return [verb(value, event) for key, verb in verbs.items() if (value := getattr(event, key)) is not None]


def rehearse(event: EventPart, stand: Stand) -> None:
    """Refuse an event that cannot happen as things stand; else they stand as after it."""
    if to_body := given(event, TO_BODY):
        subject = stand.subject(event)
        for verb in to_body:
            verb.check(stand, subject)
    for world_verb in given(event, TO_WORLD):
        world_verb.check(stand)
