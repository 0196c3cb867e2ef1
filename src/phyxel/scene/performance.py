"""A scene being played: the world that was built of it, and what happens to it by the names that the scene uses."""

from __future__ import annotations

from pathlib import Path

from phyxel import kernels
from phyxel.body.holds import OpenPath
from phyxel.scene.event_tables import EventPart
from phyxel.scene.scene_file import SceneFile, blaming
from phyxel.scene.things import Stand, Things
from phyxel.scene.verbs import TO_BODY, TO_WORLD, given, rehearse
from phyxel.world import World


class Performance(Things):
    """A scene being played: events of the scene happen on the world's clock, others when they are told to."""

    def __init__(self, content: SceneFile, folder: Path, shown: str, device: str | None = None) -> None:
        """Files are looked for in `folder`; `shown` is what the scene file is called."""
        super().__init__(World(content.gravity, device, content.rate), content.body_names(), folder)
        self._content, self._shown = content, shown
        kernels.ready(content.words(), self.world.device)
        self._add_bodies()
        self._add_surroundings()
        self._add_ties()
        self._rehearse()
        self._begun = False
        for event in content.event:
            self.world.at(event.at, lambda world, event=event: self._apply(event))  # type: ignore[misc]

    def _add_bodies(self) -> None:
        for index, (part, name) in enumerate(zip(self._content.body, self.names, strict=True)):
            with blaming(self._shown, f"body[{index}]"):
                body = part.model_copy(update={"name": name}).body(self.folder)
                self.enter(part, body)
            for number, hold in enumerate(part.hold):
                with blaming(self._shown, f"body[{index}].hold[{number}]"):
                    self.handles[name, hold.name or f"#{number}"] = hold.take(body, 0.0, self.skeletons[name])

    def _add_surroundings(self) -> None:
        for index, (part, name) in enumerate(zip(self._content.collider, self._content.collider_names(), strict=True)):
            with blaming(self._shown, f"collider[{index}]"):
                self.colliders[name] = part.collider(self.folder)
                self.world.add(self.colliders[name])
        for index, field in enumerate(self._content.field):
            with blaming(self._shown, f"field[{index}]"):
                self.add_field(field)

    def _add_ties(self) -> None:
        bodies = {body.name: body for body in self.world.bodies}
        for index, part in enumerate(self._content.attach):
            with blaming(self._shown, f"attach[{index}]"):
                tie = part.attach(bodies)
                self.world.add(tie)
            if part.name:
                self.ties[part.name] = tie

    def _rehearse(self) -> None:
        """Go through the events in order without any of them happening: a fault is found before the run begins."""
        events, stand = self._content.event, Stand.of(self)
        for index in sorted(range(len(events)), key=lambda index: events[index].at):
            with blaming(self._shown, f"event[{index}]"):
                rehearse(events[index], stand)

    def happen(self, event: EventPart) -> EventPart:
        """Let an event happen now, whatever its time says; the event with its true time, as a scene would have it.
        One that is wrong is refused, and nothing is changed."""
        event = self._due(event)
        for verb in given(event, TO_BODY):
            verb.check_now(self, self.body(event))
        self._apply(event)
        self.world.happened()
        return event

    def grab(self, event: EventPart, turn: OpenPath | None = None) -> tuple[EventPart, OpenPath]:
        """Let a hold happen now that follows a path as it comes to be, and maybe turns as another says; the event with
        its true time, and the path. With all keyframes in `hold.path` it goes the same way to the bit."""
        event = self._due(event)
        assert event.hold is not None
        body, path = self.body(event), OpenPath(event.at)
        self.handles[body.name, event.hold.name or ""] = body.drag(event.hold.where, path, turn)
        self.world.happened()
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
            body = self.body(event)
            for verb in to_body:
                verb.act(self, body)
        for world_verb in given(event, TO_WORLD):
            world_verb.act(self)
