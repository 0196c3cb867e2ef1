"""A world that runs while pages look at it and lay hands on it: its updates, and what it does at their commands."""

from __future__ import annotations

import base64
import gc
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from phyxel import device as dev
from phyxel.body import Body
from phyxel.errors import PhyxelError, did_you_mean
from phyxel.material.presets import MEMBRANES, PRESETS
from phyxel.models.kind import public_kinds
from phyxel.scene import Scene
from phyxel.scene.body_tables import MaterialPart
from phyxel.scene.event_tables import MeltPart, SolidifyPart
from phyxel.scene.performance import Performance
from phyxel.view import commands as do
from phyxel.view.hands import Hands
from phyxel.view.journal import Journal
from phyxel.view.messages import Snapshot
from phyxel.view.pace import PERIOD, Pace, rate_for
from phyxel.view.panels import UNITS, about_bodies, part_of, with_content, with_material, with_model
from phyxel.view.snapshots import Snapshots
from phyxel.world import World

NUMBERS_EVERY, NUMBERS_SHARE = 0.1, 0.05
"""Wall time between two messages with numbers [s], and what share of it they may take: volumes are costly to find."""
PLAIN: dict[str, Any] = {"field": None, "mode": "surface", "plane": None, "surface": "auto"}
"""What is shown of bodies at first, in the words of `Snapshots.show`."""
SMOOTHING = 0.1
"""Share of the newest in the milliseconds that are told."""
BY_HAND: dict[str, Callable[[Hands, int, Any], None]] = {
    "pull": Hands.pull,
    "let_go": lambda hands, page, asked: hands.let_go(page, asked.pin),
    "pin": lambda hands, page, asked: hands.pin(asked),
    "unpin": lambda hands, page, asked: hands.unpin(),
    "push": Hands.push,
    "stop_push": lambda hands, page, asked: hands.stop_push(page),
    "drop": lambda hands, page, asked: hands.drop(asked.body),
}
"""Commands that only hands hear of."""


class Audience(Protocol):
    """What carries words and pictures to the pages; asked from any thread."""

    sending: float
    """[ms] that making and sending a frame takes"""

    @property
    def pages(self) -> Sequence[int]: ...

    def publish(self, snapshot: Snapshot, heard: dict[int, int]) -> None: ...

    def tell(self, message: dict[str, Any], page: int | None = None) -> None: ...


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

    @staticmethod
    def of(scene: Scene, device: str | None) -> Play:
        performance = scene.performance(device)
        journal, world = Journal(scene), performance.world
        volume = sum(body.diagnostics()["volume"] for body in world.bodies)
        sight = Snapshots(world, scene.content)
        return Play(scene, performance, journal, Hands(performance, journal), sight, sight.camera(), volume)


class LiveWorld:
    """The live world of a scene, owned by one thread."""

    def __init__(self, scene: Scene, hub: Audience, device: str | None = None, pace: Pace | None = None) -> None:
        self.opened = self._scene = scene
        """as it was opened, and with what panels changed since: what reset and restart go back to"""
        self._hub, self._device = hub, device
        self.play: Play | None = None
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

    def go_on(self) -> None:
        """One update."""
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
        play = self.play
        if play is None:
            return
        scene, plane = play.scene, self._shown["plane"]
        message = {
            "kind": "scene",
            "mode": "live",
            "name": scene.name,
            "title": scene.content.title,
            "bodies": about_bodies(play.performance.world),
            "gravity": play.performance.world.gravity.tolist(),
            "paused": self._paused,
            "speed": self._speed,
            "shown": {**self._shown, "plane": plane and {"normal": plane[0], "place": plane[1]}},
            "recording": False,
            "camera": play.camera,
            "models": [kind.name for kind in public_kinds()],
            "fields": play.sight.fields(),
            "units": {name: list(entry) for name, entry in UNITS.items()},
        }
        self._hub.tell(message, page)

    def _tell_numbers(self, play: Play) -> None:
        world = play.performance.world
        parts = [body.diagnostics() for body in world.bodies]
        sums = {name: sum(part[name] for part in parts) for name in ("kinetic", "elastic", "potential", "volume")}
        sums["volume"] = sums["volume"] / play.volume if play.volume else 1.0
        told = {"kind": "numbers", "time": world.time, "pace": self.pace.pace, "updates": self.pace.updates}
        told |= {"milliseconds": {**self._took, "sending": self._hub.sending}}
        told |= {"surfels": sum(len(body.surfels) for body in world.bodies), "pages": len(self._hub.pages)}
        self._hub.tell(told | sums)

    # What pages ask for

    def obey(self, page: int, asked: do.Command | str) -> None:
        """Do what was asked, or tell the page why not."""
        name = asked if isinstance(asked, str) else asked.do
        self._watched = True
        try:
            if name in BY_HAND:
                BY_HAND[name](self._playing.hands, page, asked)
            else:
                getattr(self, f"_do_{name}", self._refuse)(page, asked)
        except PhyxelError as error:
            self.notice(str(error), page)
        except Exception as error:
            traceback.print_exc()
            self.notice(f"{name}: {type(error).__name__}: {error}", page)
        if isinstance(asked, do.Command):
            self.heard[page] = max(asked.n, self.heard.get(page, 0))
        self._changed = True

    def _refuse(self, page: int, asked: do.Command | str) -> None:
        raise PhyxelError(f"{getattr(asked, 'do', asked)}: a live world cannot do this")

    @property
    def _playing(self) -> Play:
        """What is played, unless it has come to an end."""
        if self.play is None or self.blown is not None:
            raise PhyxelError("the world has stopped; restart or reset it")
        return self.play

    def _do_joined(self, page: int, asked: str) -> None:
        try:
            self._tell_scene(page)
        finally:  # a broken world may be beyond description
            if self.blown is not None:
                self._hub.tell({"kind": "blown", "text": self.blown}, page)

    def _do_gone(self, page: int, asked: str) -> None:
        self.heard.pop(page, None)
        if self.play is not None and self.blown is None:
            self.play.hands.gone(page)

    # Hands

    def _do_grab(self, page: int, asked: do.Grab) -> None:
        self._hub.tell(self._playing.hands.grab(page, asked), page)

    def _do_cut(self, page: int, asked: do.Cut) -> None:
        self._playing.hands.cut(asked)
        self._tell_scene()

    # Time

    def _do_pause(self, page: int, asked: do.Switch) -> None:
        self._paused = asked.on
        self._tell_scene()

    def _do_step(self, page: int, asked: do.Plain) -> None:
        """As much as one update would bring, and stand still."""
        play = self._playing
        if not self._paused:
            self._paused = True
            self._tell_scene()
        for _ in range(max(round((play.performance.world.rate or 60) * self._speed * PERIOD), 1)):
            if self.blown is None:
                self._guarded(self.tick, play)

    def _do_speed(self, page: int, asked: do.Speed) -> None:
        self._speed = asked.factor
        self._choose_rate(self._playing)
        self._tell_scene()

    def _choose_rate(self, play: Play) -> None:
        world = play.performance.world
        if (rate := rate_for(world, self._speed)) != world.rate:
            play.hands.happen(rate=rate)

    # What bodies are made of

    def _do_material(self, page: int, asked: do.Numbers) -> None:
        self._remake(asked.body, part_of(asked.numbers))

    def _do_preset(self, page: int, asked: do.PresetChoice) -> None:
        if asked.name not in (*PRESETS, *MEMBRANES):
            raise PhyxelError(f'preset "{asked.name}": not known{did_you_mean(asked.name, (*PRESETS, *MEMBRANES))}')
        self._remake(asked.body, MaterialPart(preset=asked.name))

    def _remake(self, name: str, material: MaterialPart) -> None:
        """Let a body, all pieces of it, be of another material, also after a restart."""
        play = self._playing
        for body in self._pieces(play, name):
            play.hands.happen(body=body.name, material=material)
        self._scene = with_material(self._scene, name, material)
        self._choose_rate(play)
        self._tell_scene()

    def _do_melt(self, page: int, asked: do.Heat) -> None:
        self._heat(asked.body, melt=MeltPart())

    def _do_solidify(self, page: int, asked: do.Heat) -> None:
        self._heat(asked.body, solidify=SolidifyPart())

    def _heat(self, name: str, **what: Any) -> None:
        play = self._playing
        for body in self._pieces(play, name):
            play.hands.happen(body=body.name, **what)
        self._choose_rate(play)
        self._tell_scene()

    def _pieces(self, play: Play, name: str) -> list[Body]:
        pieces = [body for body in play.performance.world.bodies if name in (body.whole, body.name)]
        if not pieces:
            raise PhyxelError(f'no body is named "{name}"{did_you_mean(name, play.performance.names)}')
        return pieces

    def _do_gravity(self, page: int, asked: do.Gravity) -> None:
        self._playing.hands.happen(gravity=asked.value)
        self._scene = with_content(self._scene, gravity=asked.value)
        self._tell_scene()

    # Other worlds

    def _do_restart(self, page: int, asked: do.Plain) -> None:
        self.build(self._scene, page)

    def _do_reset(self, page: int, asked: do.Plain) -> None:
        if self.build(self.opened, page):
            self._scene = self.opened

    def _do_model(self, page: int, asked: do.Model) -> None:
        other = with_model(self._scene, asked.body, asked.model, asked.nodes)
        if self.build(other, page):
            self._scene = other

    def build(self, scene: Scene, page: int | None = None) -> bool:
        """Play a scene from its start; whether that can be. If not, the present world goes on."""
        self._hub.tell({"kind": "busy", "text": f"building {scene.name} ..."})
        try:
            play = Play.of(scene, self._device)
            self._choose_rate(play)
            self._look(play.sight)
        except Exception as error:
            if not isinstance(error, PhyxelError):
                traceback.print_exc()
            if self.play is None:
                self.blown = str(error)
                self._hub.tell({"kind": "blown", "text": self.blown})
            else:
                self.notice(str(error) or type(error).__name__, page)
            return False
        finally:
            self._hub.tell({"kind": "ready"})
        self.play, self.blown, self._changed = play, None, True
        gc.collect()  # a world and its bodies know each other: without this, old ones would pile up
        dev.trim_memory()
        self.pace.rest()
        self._tell_scene()
        return True

    # What is seen

    def _do_show(self, page: int, asked: do.Show) -> None:
        self._show(asked.model_dump(include={"field", "mode", "surface"}, exclude_none=True))

    def _do_slice(self, page: int, asked: do.Slice) -> None:
        self._show({"plane": (asked.normal, asked.place)})

    def _show(self, other: dict[str, Any]) -> None:
        shown = self._shown | other
        self._playing.sight.show(**shown)
        self._shown = shown
        self._tell_scene()

    def _look(self, sight: Snapshots) -> None:
        """See the same of another world, as far as there is that to be seen."""
        try:
            sight.show(**self._shown)
        except PhyxelError:
            self._shown = dict(PLAIN)

    def _do_save(self, page: int, asked: do.Plain) -> None:
        play = self._playing
        text = play.journal.toml(play.performance)
        content = base64.b64encode(text.encode()).decode()
        name = f"{play.scene.name}-live.toml"
        self._hub.tell({"kind": "file", "name": name, "type": "application/toml", "base64": content}, page)
