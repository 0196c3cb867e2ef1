"""A live world without a thread, which goes on only when it is told to: it does the same twice."""

import base64
from typing import Any

import numpy as np

from phyxel.scene import Scene
from phyxel.view import commands
from phyxel.view.live_world import LiveWorld
from phyxel.view.pace import PERIOD, Pace
from phyxel.view.play import Play
from phyxel.world import World


class Listener:
    """Keeps what pages would be told."""

    sending = 0.0

    def __init__(self) -> None:
        self.told: list[tuple[int | None, dict[str, Any]]] = []
        self.snapshots = 0

    @property
    def pages(self) -> tuple[int, ...]:
        return (1, 2)

    def publish(self, snapshot: Any, heard: dict[int, int]) -> None:
        snapshot.message(set(), {"heard": heard})
        self.snapshots += 1

    def tell(self, message: dict[str, Any], page: int | None = None) -> None:
        self.told.append((page, message))

    def of(self, kind: str) -> list[dict[str, Any]]:
        """What was told, without hints."""
        return [one for _, one in self.told if one["kind"] == kind and one.get("level") != "warning"]


class Watched(LiveWorld):
    """Writes down how things stand before every tick."""

    def __init__(self, scene: Scene, hub: Listener, pace: Pace) -> None:
        super().__init__(scene, hub, "cpu", pace)
        self.seen: dict[float, list[np.ndarray]] = {}

    def tick(self, play: Play) -> None:
        self.note()
        super().tick(play)

    def note(self) -> None:
        assert self.world is not None
        self.seen[self.world.time] = stand(self.world)


class Driven:
    """The live world of a scene, update by update, by a clock of its own."""

    def __init__(self, scene: Scene) -> None:
        self.now = 0.0
        self.hub = Listener()
        self.live = Watched(scene, self.hub, Pace(lambda: self.now))
        self.live.build(scene)

    @property
    def world(self) -> World:
        assert self.live.world is not None
        return self.live.world

    @property
    def seen(self) -> dict[float, list[np.ndarray]]:
        """How things stood at the ends of ticks, with all that happened then."""
        return self.live.seen

    def ask(self, page: int = 1, **what: Any) -> None:
        """Let the world hear a command at once."""
        before = self.live.play
        self.live.obey(page, commands.checked(what))
        if self.live.play is not before:
            self.seen.clear()

    def go_on(self, updates: int = 1) -> None:
        for _ in range(updates):
            self.now += PERIOD
            self.live.go_on()

    def saved(self) -> Scene:
        """What a page gets that asks for the scene."""
        self.live.note()
        self.live.save(1, commands.Save(do="save"))
        text = base64.b64decode(self.hub.of("file")[-1]["base64"]).decode()
        return Scene.parse(text, "saved")


def stand(world: World) -> list[np.ndarray]:
    parts = [np.array([world.time])]
    for body in world.bodies:
        parts += [body.positions.copy(), body.velocities.copy()]
    return parts


def differs(driven: Driven, scene: Scene) -> str:
    """Play a scene as `phyxel run` does; where it first goes another way than the live world did, in words."""
    world, compared = scene.world("cpu"), 0
    for frame in range(min(round(scene.seconds * scene.fps), int(driven.world.time * scene.fps + 1)) + 1):
        world.advance(max(frame / scene.fps - world.time, 0.0))
        _ = [(len(body.surface), body.diagnostics()) for body in world.bodies]
        if (then := driven.seen.get(world.time)) is not None and world.time > 0:
            now = stand(world)
            if len(now) != len(then) or not all(map(np.array_equal, now, then)):
                return f"frame {frame}, {world.time} s"
            compared += 1
    if not compared or world.time < driven.world.time:
        return f"{compared} frames compared up to {world.time} of {driven.world.time} s"
    return ""
