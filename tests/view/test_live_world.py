"""A live world without its thread: faults, worlds that come and go, and scenes that do again what pages did."""

import gc
import random
import threading
import tracemalloc
from typing import Any

import numpy as np
import pytest

from phyxel.movers.phyxel_bodies import phyxels_of
from phyxel.scene import Scene
from phyxel.surface.surfels import Surfels
from phyxel.view import commands, past
from phyxel.view.live_world import LiveWorld
from tests.view.boxes import BOX, CUT, DEEDS, GRAB
from tests.view.driven import Driven, differs

BODY = """
[[body]]
name = "{name}"
shape = "{shape}"
model = "{model}"
nodes = 40
points = 200
size = 0.2
at = [{x}, 0.11, 0]
place = "center"
material = {{ {material} }}
"""
GROUND = '[[collider]]\nkind = "ground"\nname = "floor"\n'
HELD = """hold = [
    { name = "foot", upper = [9, 0.08, 9], path = [{ at = 0.02, to = [0, 0, 0] }, { at = 0.1, to = [0.01, 0, 0] }] },
    { bone = "head", lower = [-9, 0.15, -9] },
]
bone = [{ name = "head", joint = [0, 0.1, 0], path = [{ at = 0, turn = [0, 0, 0] }, { at = 0.2, turn = [0, 9, 0] }] }]
"""
BUSY = """
[[field]]
kind = "wind"
name = "breeze"
velocity = [2, 0, 0]
during = [0.013, 0.0777]

[[event]]
at = 0
rate = 90

[[event]]
at = 0.0333333333  # a tick, but for rounding
body = "a"
material = { density = 900 }
over = 0.07

[[event]]
at = 0.0666666666666667
gravity = [0, -5, 0]

[[event]]
at = 0.1
rate = 100  # of whose ticks no sixtieth is one
"""


def body(name: str, model: str, material: str = "young = 2e4", shape: str = "sphere", x: float = 0.0) -> str:
    return BODY.format(name=name, model=model, material=material, shape=shape, x=x)


GELATIN = body("a", "modal", 'preset = "gelatin"', "box")
BRITTLE = body("a", "phyxel", "young = 5e4, strength = 300", "box")
SCENES = {
    "brittle": (
        f"fps = 24\nseconds = 0.1\n{BRITTLE}{body('b', 'phyxel', 'young = 1e4, yield_strain = 0.02', x=0.22)}{GROUND}",
        0,
    ),
    "held": (f"fps = 100\nrate = 100\n{body('a', 'phyxel')}{HELD}{GROUND}{BUSY}", 1),
    "mixed": (f"fps = 25\nseconds = 0.1\n{body('a', 'galerkin')}{body('b', 'particles', x=0.23)}{GROUND}", 2),
    "modal": (f"fps = 30\nseconds = 0.11\n{GELATIN}{GROUND}{BUSY}", 3),
}
MATERIALS: list[dict[str, Any]] = [
    {"young": 1.3e4}, {"density": 1500.0}, {"strength": 200.0}, {"strength": None}, {"yield_strain": 0.01},
    {"yield_stress": 500.0}, {"damping": 3e-3}, {"poisson": 0.45}, {"plasticity": 0.3},
]  # fmt: skip
LOTS = [
    "grab", "pull", "pull", "grab", "pull", "let_go", "pin", "push", "stop_push", "cut", "drop", "material", "melt",
    "solidify", "speed", "gravity", "preset", "unpin", "step",
]  # fmt: skip


class Script:
    """Commands of two pages, drawn by lot but always the same; some are refused, as pages' are."""

    def __init__(self, driven: Driven, seed: int) -> None:
        self.driven, self.luck = driven, random.Random(seed)

    def play(self, count: int) -> None:
        deeds = [deed for _ in range(count // len(LOTS) + 1) for deed in self.luck.sample(LOTS, len(LOTS))]
        for deed in deeds[:count]:
            self.driven.ask(self.luck.choice([1, 2]), do=deed, **self._words(deed))
            if deed == "step":
                self.driven.ask(do="pause", on=False)
            self.driven.go_on(self.luck.choice([0, 1, 1, 3]))

    def _words(self, deed: str) -> dict[str, Any]:
        luck, world = self.luck, self.driven.world
        if deed in ("grab", "pull", "pin", "push", "cut"):
            return self._aimed(deed)
        named = {"body": luck.choice(world.bodies).name}
        return {
            "let_go": {"pin": luck.random() < 0.4},
            "drop": named,
            "melt": named,
            "solidify": named,
            "material": {**named, "numbers": luck.choice(MATERIALS)},
            "preset": {**named, "name": luck.choice(["gelatin", "cotton"])},
            "speed": {"factor": luck.choice([1.0, 0.5, 0.3, 0.07])},
            "gravity": {"value": luck.choice([[0, -9.81, 0], [1, -4, 0], [0, 2, 0]])},
        }.get(deed, {})

    def _aimed(self, deed: str) -> dict[str, Any]:
        surface = self.luck.choice(self.driven.world.bodies).surface.positions
        eye = np.array([self.luck.uniform(-1, 1), self.luck.uniform(0.1, 1), 1.5])
        way = surface[self.luck.randrange(len(surface))] - eye
        aimed = {"ray": eye.tolist(), "way": way.tolist()}
        if deed == "grab":
            aimed["ahead"] = aimed["way"]
        if deed == "cut":
            aimed["to_way"] = (way + np.array([0.02, 0.3, 0])).tolist()
        return aimed


@pytest.mark.slow
@pytest.mark.parametrize("name", SCENES)
def test_what_pages_did_by_lot_is_done_again_to_the_bit(name: str) -> None:
    text, seed = SCENES[name]
    driven = Driven(Scene.parse(text, name))
    script = Script(driven, seed)
    script.play(7)
    driven.ask(do="restart")  # with what panels have changed until here
    script.play(14)
    driven.ask(do="speed", factor=1.0)
    driven.go_on(8)
    assert not driven.hub.of("blown") and len(driven.seen) > 12
    assert differs(driven, driven.saved()) == ""


@pytest.mark.parametrize("stage", ["advance", "surface", "snapshot", "diagnostics"])
def test_a_fault_anywhere_ends_the_world_but_not_its_pages(stage, monkeypatch):
    driven = Driven(Scene.parse(BOX))
    driven.go_on(2)
    driven.ask(**GRAB)
    with monkeypatch.context() as broken:

        def fail(*_):
            raise FloatingPointError(stage)

        body, play = driven.world.bodies[0], driven.live.play
        owner, name = {
            "advance": (phyxels_of(driven.world), "advance"),
            "surface": (type(body), "surface"),
            "snapshot": (play.sight, "snapshot"),
            "diagnostics": (type(body), "diagnostics"),
        }[stage]
        broken.setattr(owner, name, property(fail) if stage == "surface" else fail)
        driven.go_on(12)
        assert [told["text"] for told in driven.hub.of("blown")] == [stage]
        for deed in (*DEEDS, {"do": "step"}, {"do": "show", "field": "stress"}):
            driven.ask(**deed)
        driven.live.save(1, commands.Save(do="save"))
        assert len(driven.hub.of("notice")) == 7
        driven.live.obey(1, "gone")
        driven.live.obey(2, "joined")
    driven.ask(do="reset")
    driven.go_on(3)
    assert driven.world.time > 0 and len(driven.hub.of("blown")) == 2  # the second to who joined


def test_a_scene_that_cannot_be_built_says_why_and_keeps_listening():
    live = LiveWorld(Scene.parse(BOX.replace('"box"', '"bxo"')), hub := Driven(Scene.parse(BOX)).hub, "cpu")
    live.build(live.opened)
    assert "box" in hub.of("blown")[0]["text"]
    for deed in (*DEEDS, {"do": "restart"}, {"do": "model", "body": "a", "model": "modal"}):
        live.obey(1, commands.checked(deed))
    live.obey(1, "joined")
    live.obey(1, "gone")
    assert live.world is None and hub.told[-1][1]["kind"] == "blown"


@pytest.mark.slow
def test_old_worlds_leave_nothing_behind(monkeypatch):
    """But for the moments that undo goes back to, of which there are so many at most."""
    monkeypatch.setattr(past, "LEVELS", 2)
    driven = Driven(Scene.parse(BOX))

    def resets(count):
        for _ in range(count):
            driven.ask(**GRAB)
            driven.go_on()
            driven.ask(do="reset")
            driven.hub.told.clear()
        gc.collect()
        return tracemalloc.get_traced_memory()[0]

    resets(2)
    threads = threading.active_count()
    tracemalloc.start()
    try:
        first = resets(4)
        assert resets(8) < first + 0.1e6
    finally:
        tracemalloc.stop()
    assert threading.active_count() == threads


def test_what_looks_unmeant_is_said_at_once_and_to_every_page_that_comes():
    driven = Driven(Scene.parse(body("a", "phyxel").replace("0.11", "-0.5") + GROUND))
    said = [(page, message["text"]) for page, message in driven.hub.told if message.get("level") == "warning"]
    assert all(page is None for page, _ in said) and "a: reaches 60.0 cm below the ground" in said[-1][1]
    assert driven.world.bodies[0].surface.positions[:, 1].min() > -1e-3
    driven.live.obey(2, "joined")
    assert driven.hub.told[-1] == (2, {"kind": "notice", "level": "warning", "text": said[-1][1]})


def test_a_cut_makes_surfaces_of_the_pieces_alone(monkeypatch):
    """Of the body that is cut but has not parted yet it would be for nothing: it takes as long again."""
    driven = Driven(Scene.parse(BOX))
    driven.ask(do="speed", factor=1.0)
    driven.go_on(3)
    made: list[Surfels] = []
    part = Surfels.part

    def noted(self: Surfels, *given: Any) -> None:
        made.append(self)
        part(self, *given)

    monkeypatch.setattr(Surfels, "part", noted)
    driven.ask(**CUT)
    assert made == []
    driven.go_on()
    assert len(driven.world.bodies) == len(made) == 2
    assert len(driven.hub.of("scene")[-1]["bodies"]) == 1


def test_what_of_a_cut_body_can_melt_melts():
    """A crumb, too small to bend, stays solid."""
    driven = Driven(Scene.parse(body("a", "phyxel") + GROUND))
    driven.ask(do="speed", factor=1.0)
    driven.ask(**{**CUT, "way": [-0.1, 0.065, -2.0], "to_way": [0.1, 0.065, -2.0]})
    driven.go_on(3)
    big, crumb = driven.world.bodies
    assert big.kind.can("melt") and not crumb.kind.can("melt")
    driven.ask(do="melt", body="a")
    assert big.has_melted and not driven.hub.of("notice")
