"""A scene being played before pages, and moments of it that can be gone back to."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from phyxel import device as dev
from phyxel import kernels
from phyxel.errors import told_to
from phyxel.scene import Scene
from phyxel.scene.event_tables import EventPart
from phyxel.scene.performance import Performance
from phyxel.state import State
from phyxel.view.hands import Hands, Marks
from phyxel.view.journal import Journal
from phyxel.view.panels import with_content
from phyxel.view.snapshots import Snapshots
from phyxel.world import checkpoint


@dataclass(frozen=True)
class Moment:
    """How things stood: with the same scene and the same events a world can be built that stands so again."""

    scene: Scene
    events: list[EventPart]
    """that had happened by hand"""
    marks: Marks
    state: State

    @property
    def bytes(self) -> int:
        return sum(array.nbytes for array in self.state.values())


@dataclass
class Play:
    """A scene being played, with all that belongs to this playing of it."""

    scene: Scene
    performance: Performance
    journal: Journal
    hands: Hands
    sight: Snapshots
    camera: dict[str, Any]
    """the first"""
    volume: float
    """of all bodies at first [m³]"""
    remarks: list[str]
    """on what looks unmeant in the scene"""

    @staticmethod
    def of(scene: Scene, device: str | None, events: Sequence[EventPart] = ()) -> Play:
        """From the start; `events` have happened by hand, or will."""
        asked = {"view", "melt", "cut", "bodies"}  # all that a page may come to ask for
        kernels.ready(scene.content.words() | asked, dev.pick(device))
        remarks: list[str] = []
        with told_to(remarks.append):
            whole = with_content(scene, event=[*scene.content.event, *events]) if events else scene
            performance = whole.performance(device)
            journal, world = Journal(scene, events), performance.world
            volume = sum(body.diagnostics()["volume"] for body in world.bodies)
            sight = Snapshots(world, scene.content)
            camera = sight.camera()
        return Play(scene, performance, journal, Hands(performance, journal), sight, camera, volume, remarks)

    def moment(self) -> Moment:
        """How things stand now."""
        return Moment(self.scene, self.journal.events, self.hands.marks, checkpoint.taken(self.performance.world))

    @staticmethod
    def again(moment: Moment, device: str | None) -> Play:
        """Go on from a moment, with open hands."""
        play = Play.of(moment.scene, device, moment.events)
        checkpoint.put_back(play.performance.world, moment.state)
        play.hands.recall(moment.marks)
        return play
