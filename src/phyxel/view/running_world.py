"""A world that runs while pages look at it: its updates, and what pages hear of them."""

from __future__ import annotations

import traceback
from collections.abc import Sequence
from typing import Any, Protocol

from phyxel.errors import PhyxelError
from phyxel.scene import Scene
from phyxel.view.busy import Busy
from phyxel.view.messages import Snapshot
from phyxel.view.pace import Pace
from phyxel.view.past import Past
from phyxel.view.play import Play
from phyxel.view.remedies import Remedies
from phyxel.view.told import about_scene, numbers
from phyxel.world import World

NUMBERS_EVERY, NUMBERS_SHARE = 0.1, 0.05
"""Wall time between two messages with numbers [s], and what share of it they may take: volumes are costly to find."""
PLAIN: dict[str, Any] = {"field": None, "mode": "surface", "plane": None, "surface": "auto"}
"""What is shown of bodies at first, in the words of `Snapshots.show`."""
SMOOTHING = 0.1
"""Share of the newest in the milliseconds that are told."""


class Audience(Protocol):
    """What carries words and pictures to the pages; asked from any thread."""

    sending: float
    """[ms] that making and sending a frame takes"""

    @property
    def pages(self) -> Sequence[int]: ...

    def publish(self, snapshot: Snapshot, heard: dict[int, int]) -> None: ...

    def tell(self, message: dict[str, Any], page: int | None = None) -> None: ...


class RunningWorld:
    """What is played now, and how fast it goes by the wall clock."""

    def __init__(self, scene: Scene, hub: Audience, device: str | None = None, pace: Pace | None = None) -> None:
        self.opened = self._scene = scene
        """as it was opened, and with what panels changed since: what reset and restart go back to"""
        self._hub, self._device = hub, device
        self.play: Play | None = None
        self._left: Play | None = None
        """what was played before a deed that is not done yet"""
        self.past, self.busy, self.remedies = Past(), Busy(hub.tell), Remedies()
        self.blown: str | None = None
        """why the world has stopped"""
        self._paused, self._speed = False, 1.0
        self._watched = False
        """whether there was ever a page: nobody should miss the beginning"""
        self._shown = dict(PLAIN)
        self.pace = pace or Pace()
        self.heard: dict[int, int] = {}
        """number of the last command heard, by page"""
        self._frame = 0
        self._changed = True
        """whether there is something new to be seen"""
        self._untold = False
        """whether pages are to be told of the scene when it is: surfaces that are cut take long to make"""
        self._took: dict[str, float] = {"physics": 0.0, "surface": 0.0, "encoding": 0.0}
        """[ms]"""
        self._numbers_due = 0.0
        """when pages are told numbers next"""

    @property
    def world(self) -> World | None:
        """The world that is played now; none while the first is being built."""
        return None if self.play is None else self.play.performance.world

    # An update

    @property
    def runs(self) -> bool:
        return self.play is not None and self._watched and not self._paused and self.blown is None

    def update(self) -> None:
        """Let time go on, if it does, and show what is new."""
        play = self.play
        if play is None:
            return
        if self.runs:
            self._guarded(self._advance, play)
        else:
            self.pace.rest()
        if self._changed and self.blown is None:
            self._guarded(self._show_all, play)
        began = self.pace.clock()
        if began > self._numbers_due and self.blown is None:
            self._guarded(self._tell_numbers, play)
            took = self.pace.clock() - began
            self._numbers_due = began + max(NUMBERS_EVERY, took / NUMBERS_SHARE)

    def _guarded(self, stage: Any, play: Play) -> None:
        """Do a stage of an update. What goes wrong there is the end of this world, but not of its pages."""
        try:
            stage(play)
        except Exception as error:
            if not isinstance(error, PhyxelError):
                traceback.print_exc()
            self.blown = str(error) or type(error).__name__
            self._hub.tell({"kind": "blown", "text": self.blown})

    def _advance(self, play: Play) -> None:
        world, pace = play.performance.world, self.pace
        began, start = pace.clock(), world.time
        for _ in range(pace.ticks(world.rate or 60, self._speed)):
            self.tick(play)
            if not pace.ticked():
                break
        pace.lived(world.time - start)
        self._note("physics", began)

    def tick(self, play: Play) -> None:
        play.hands.follow()
        play.performance.world.tick()
        self._changed = True

    def _show_all(self, play: Play) -> None:
        """Let surfaces follow, and show them to the pages."""
        self._changed = False
        world, began = play.performance.world, self.pace.clock()
        for body in world.bodies:
            _ = body.surface
        world.synchronize()
        if self._untold:
            self._untold = False
            self._tell_scene()
        play.hands.correct()
        self._note("surface", began)
        began = self.pace.clock()
        self._frame += 1
        snapshot = play.sight.snapshot(self._frame, play.hands.pins, play.hands.grabs)
        self._note("encoding", began)
        self._hub.publish(snapshot, dict(self.heard))

    def _note(self, stage: str, began: float) -> None:
        spent = 1e3 * (self.pace.clock() - began)
        self._took[stage] += SMOOTHING * (spent - self._took[stage])

    # What pages hear

    def notice(self, text: str, page: int | None = None, level: str = "error") -> None:
        self._hub.tell({"kind": "notice", "level": level, "text": text}, page)

    def _tell_scene(self, page: int | None = None) -> None:
        if self.play is not None:
            now = {"paused": self._paused, "speed": self._speed}
            self._hub.tell(about_scene(self.play, self._shown) | now, page)

    def _tell_numbers(self, play: Play) -> None:
        self.remedies.update(play, self._scene, self.pace.pace)
        offered = [remedy.told() for remedy in self.remedies.offered]
        told = {
            "remedies": offered,
            "pace": self.pace.pace,
            "updates": self.pace.updates,
            "pages": len(self._hub.pages),
        }
        self._hub.tell(numbers(play) | told | {"milliseconds": {**self._took, "sending": self._hub.sending}})

    @property
    def _playing(self) -> Play:
        """What is played, unless it has come to an end."""
        if self.play is None or self.blown is not None:
            raise PhyxelError("the world has stopped; restart or reset it")
        return self.play
