"""A world that pages lay hands on: what it does at their commands, and how it goes back to before that."""

from __future__ import annotations

import base64
import gc
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from phyxel import device as dev
from phyxel import progress
from phyxel.body import Body
from phyxel.errors import PhyxelError, did_you_mean
from phyxel.material.presets import MEMBRANES, PRESETS
from phyxel.scene import Scene
from phyxel.scene.body_tables import MaterialPart
from phyxel.scene.event_tables import MeltPart, SolidifyPart
from phyxel.view import commands as do
from phyxel.view.brush import brush
from phyxel.view.guests import guest
from phyxel.view.hands import Hands
from phyxel.view.pace import PERIOD, rate_for
from phyxel.view.panels import part_of, with_content, with_material, with_model
from phyxel.view.past import ANEW, PastDeed, words
from phyxel.view.play import Moment, Play
from phyxel.view.running_world import PLAIN, RunningWorld
from phyxel.view.snapshots import Snapshots
from phyxel.view.uploads import Open

BY_HAND: dict[str, Callable[[Hands, int, Any], None]] = {
    "pull": Hands.pull,
    "turn": Hands.turn,
    "let_go": lambda hands, page, asked: hands.let_go(page, asked.pin),
    "pin": lambda hands, page, asked: hands.pin(asked),
    "unpin": lambda hands, page, asked: hands.unpin(),
    "push": Hands.push,
    "stop_push": lambda hands, page, asked: hands.stop_push(page),
    "drop": lambda hands, page, asked: hands.drop(asked.body),
}
"""Commands that only hands hear of."""


class LiveWorld(RunningWorld):
    """The live world of a scene, owned by one thread."""

    def go_on(self) -> None:
        """One update."""
        with self._cancellable():
            self.update()
        self._forget_left()
        if self.busy.end():
            self.pace.rest()  # what took long says nothing of how fast the world goes

    # What pages ask for

    def obey(self, page: int, asked: do.Command | str) -> None:
        """Do what was asked, or tell the page why not."""
        name = asked if isinstance(asked, str) else asked.do
        self._watched = True
        undone = self.past.newest
        with self._cancellable(), self._answering(page, name), self._remembered(page, asked):
            if name in BY_HAND:
                BY_HAND[name](self._playing.hands, page, asked)
            else:
                getattr(self, f"_do_{name}", self._refuse)(page, asked)
        if isinstance(asked, do.Command):
            self.heard[page] = max(asked.n, self.heard.get(page, 0))
        if self.past.newest != undone:
            self._tell_past()
        self._changed = True

    @contextmanager
    def _remembered(self, page: int, asked: do.Command | str) -> Iterator[None]:
        """Inside, a command is obeyed: if it does something that can be undone, that is remembered and told of."""
        deed = words(asked)
        lives = self.play is not None and self.blown is None
        if deed is not None:
            self.busy.begin(deed, ends=lives)
        if isinstance(asked, do.Command) and deed is not None and lives:
            with self.past.before(page, asked, self._stand):
                yield
        else:
            yield

    def _stand(self) -> tuple[Moment, tuple[Scene, Scene]]:
        return self._playing.moment(), (self.opened, self._scene)

    # Going back

    @contextmanager
    def _cancellable(self) -> Iterator[None]:
        """Inside, what takes too long ends when a page says so, and things stand as before it."""
        try:
            with progress.ended_by(lambda: self.busy.is_cancelled):
                yield
        except progress.Ended:
            self.busy.begin("going back")
            level = self.past.pop()
            if level is not None and level.command in ANEW:
                self.play = self._left or self.play
                self.opened, self._scene = level.scenes
                self._tell_scene()
            elif level is not None and self.play is not None:
                self._guarded(lambda _: self._go_back(level), self.play)
            self._tell_past()

    def _do_undo(self, page: int, asked: do.Plain) -> None:
        level = self.past.pop()
        if level is None:
            raise PhyxelError("there is nothing left to undo")
        self.busy.begin(f"undoing {level.deed}")
        self._go_back(level)
        self.notice(f"undone: {level.deed}", level="info")

    def _do_cancel(self, page: int, asked: do.Plain) -> None:
        """What was to be done is given up: it only counts as heard."""

    def _go_back(self, level: PastDeed) -> None:
        """Let things stand as they did before a deed."""
        play = Play.again(level.moment, self._device)
        self._choose_rate(play)
        self._look(play.sight)
        self.opened, self._scene = level.scenes
        self._take_up(play)

    def _tell_past(self, page: int | None = None) -> None:
        self._hub.tell({"kind": "past", "undo": self.past.newest}, page)

    @contextmanager
    def _answering(self, page: int, name: str) -> Iterator[None]:
        """Inside, what goes wrong is told to a page."""
        try:
            yield
        except PhyxelError as error:
            self.notice(str(error), page)
        except Exception as error:
            traceback.print_exc()
            self.notice(f"{name}: {type(error).__name__}: {error}", page)

    def _refuse(self, page: int, asked: do.Command | str) -> None:
        raise PhyxelError(f"{getattr(asked, 'do', asked)}: a live world cannot do this")

    def _do_joined(self, page: int, asked: str) -> None:
        try:
            self._tell_scene(page)
            self._tell_past(page)
            self._remark(page)
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
        self._untold = True

    def _do_brush(self, page: int, asked: do.Brush) -> None:
        if brush(self._playing.hands, asked):
            self._choose_rate(self._playing)
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
        pieces = self._pieces(play, name)
        for body in [piece for piece in pieces if piece.kind.can("melt")] or pieces:  # crumbs stay solid
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

    def _do_ease(self, page: int, asked: do.Ease) -> None:
        remedy = next((one for one in self.remedies.offered if one.name == asked.remedy), None)
        if remedy is None:
            raise PhyxelError("this is not offered any longer: the machine keeps up by now")
        if self.build(remedy.scene, page):
            self._scene = remedy.scene
            self.notice(f"begun again with {remedy.text}; the saved scene has it, too", level="info")

    def _do_open(self, page: int, asked: Open) -> None:
        """Play a scene, or set a scan down in the world that is there."""
        if asked.path.suffix.lower() == ".toml":
            scene = Scene.read(asked.path)
            if self.build(scene, page):
                self.opened = self._scene = scene
        else:
            self._add(asked.path)
            self._hub.tell({"kind": "opened"}, page)

    def _add(self, path: Path) -> None:
        play = self._playing
        self.busy.say(f"reading {path.name}")
        taken = {*play.performance.names, *(body.name for body in play.performance.world.bodies)}
        part, told = guest(path, play.performance.world, taken)
        self.notice(told, level="info")
        play.hands.happen(add=part)
        self._choose_rate(play)
        self._tell_scene()

    def build(self, scene: Scene, page: int | None = None) -> bool:
        """Play a scene from its start; whether that can be. If not, the present world goes on."""
        self.busy.say(f"building {scene.name}")
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
        self._take_up(play)
        self._remark()
        return True

    def _take_up(self, play: Play) -> None:
        """Go on with another world."""
        self._left, self.play, self.blown, self._changed = self.play, play, None, True
        self.pace.rest()
        self._tell_scene()

    def _forget_left(self) -> None:
        if self._left is not None:
            self._left = None
            gc.collect()  # a world and its bodies know each other: without this, old ones would pile up
            dev.trim_memory()

    def _remark(self, page: int | None = None) -> None:
        for text in [] if self.play is None else self.play.remarks:
            self.notice(text, page, "warning")

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

    def save(self, page: int, asked: do.Save) -> None:
        """Give a page the scene with what has happened until now. Of all that pages ask for, this alone may be done on
        any thread: whatever the world is busy with, nobody waits for a file."""
        with self._answering(page, asked.do):
            play = self._playing
            camera = None if asked.camera is None else asked.camera.model_dump()
            text = play.journal.toml(play.performance, camera)
            content = base64.b64encode(text.encode()).decode()
            name = f"{play.scene.name}-live.toml"
            self._hub.tell({"kind": "file", "name": name, "type": "application/toml", "base64": content}, page)
