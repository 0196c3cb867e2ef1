"""What is done by hand to a running world is a scene that does the same."""

import tomllib
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from phyxel.errors import PhyxelError
from phyxel.points.load import load
from phyxel.scene import Scene, gallery, gallery_names
from phyxel.scene.event_tables import EventPart
from phyxel.scene.scene_file import SceneFile
from phyxel.view.journal import Journal, document
from phyxel.world import World

SCENE = """
title = "two blocks"
fps = 25  # falls on no ticks
gravity = [0, -3, 0]

[[body]]
name = "left"
shape = "box"
model = "{model}"
nodes = 40
points = 1500
size = 0.2
at = [0, 0.02, 0]
place = "center"
material = {{ young = 3e4, damping = 1e-3 }}

[[body]]
name = "right"
shape = "sphere"
model = "{model}"
nodes = 40
points = 1500
size = 0.2
at = [0.4, 0, 0]
place = "center"
material = {{ preset = "gelatin" }}

[[collider]]
kind = "ground"

[[event]]
at = 0.0
body = "right"
force = [0.1, 0, 0]

[[event]]
at = 0.05
body = "left"
material = {{ young = 4e4 }}
over = 0.1
"""


GOOD = """title = "häh \\"ball\\""
rate = 60

[[body]]
file = "FOLDER/ball.xyz"
nodes = 40
material = { young = 20000.0 }
hold = [{ upper = [9.0, 0.3, 9.0] }]

[[event]]
at = 0.0
body = "ball"
hold = { surfel = 3, name = "hand", path = [
    { at = 0.0, to = [0.0, 0.0, 0.0] },
    { at = 0.03333333333333333, to = [0.0, 0.0, 0.0] },
    { at = 0.05, to = [0.123457, 0.0, 0.0] },
] }

[[event]]
at = 0.05
body = "ball"
melt = {}
release = "hand"

[[event]]
at = 0.05
body = "ball"
material = { creep = inf }

[camera]
fov = 40.0
"""


class Hand:
    """Does things to a performance, tick by tick, and looks at it now and then."""

    def __init__(self, scene: Scene) -> None:
        self.performance, self.journal = scene.performance(), Journal(scene)
        self.seen: dict[float, list[np.ndarray]] = {}
        """how things stood at the times of frames, before the next tick"""

    @property
    def world(self) -> World:
        return self.performance.world

    def do(self, **what: Any) -> None:
        self.journal.record(self.performance.happen(EventPart(at=99.0, **what)))

    def ticks(self, count: int, lead: Callable[[int], None] = lambda k: None) -> None:
        for k in range(count):
            if round(self.world.time * 60) / 60 == self.world.time:
                self.seen[self.world.time] = stand(self.world)
            lead(k)
            self.world.tick()
            if k % 3 == 0:
                _ = [(body.surface, body.diagnostics()) for body in self.world.bodies]

    def wander(self, body: str, **where: Any) -> None:
        """Take hold, go about, rest, go on faster while time runs slower, and let go."""
        luck = np.random.default_rng(3)
        trail = self.journal.grab(self.performance, body, "hand", **where)
        place = np.zeros(3)

        def lead(k: int) -> None:
            nonlocal place
            if k % 7 < 4:
                place = place + 0.004 * luck.standard_normal(3) + (0, 0.001, 0)
                trail.to(self.world.next_tick, place)

        self.ticks(3)  # held, but not led yet
        self.ticks(9, lead)
        self.do(rate=480)
        self.ticks(9, lead)
        self.do(rate=120)
        self.ticks(9, lead)
        assert 0 < len(trail.hold.hold.path) < 25
        self.do(body=body, release="hand")


def stand(world: World) -> list[np.ndarray]:
    return [part for body in world.bodies for part in (body.positions, body.velocities)]


def poke(hand: Hand) -> None:
    """What any model can do."""
    hand.do(rate=120)
    hand.ticks(4)
    hand.do(gravity=(0, -9.81, 0), body="left", material={"young": 2e4})
    hand.wander("left", surfel=700)
    hand.do(body="right", hold={"name": "pin", "near": (0.5, 0.1, 0)})
    hand.do(field={"kind": "push", "name": "wind", "force": (0.3, 0, 0), "near": (0, 0.1, 0), "bodies": ["left"]})
    hand.ticks(5)
    hand.do(remove="wind")
    hand.do(body="right", release="pin", force=(0, 0, 0))
    hand.ticks(3)
    hand.do(body="left", lift=(0, 0.05, 0))
    hand.journal.grab(hand.performance, "left", "never led", near=(0, 0.1, 0))  # another hand, which leaves it held
    hand.ticks(4)


def knead(hand: Hand) -> None:
    """What only phyxels can do."""
    hand.do(body="left", release="never led")
    hand.do(body="left", cut={"at": (0.01, 0.1, 0), "normal": (1, 0.2, 0)})
    hand.do(body="right", melt={"viscosity": 5.0})
    hand.ticks(8)
    assert [body.name for body in hand.world.bodies] == ["left", "right", "left-2"]
    hand.wander("left-2", surfel=20)
    hand.do(body="right", solidify={})
    hand.ticks(2)
    near = tuple(hand.world.bodies[1].positions[5].round(3).tolist())
    hand.do(body="right", hold={"name": "pin", "near": near})


@pytest.mark.parametrize("model", ["phyxel", pytest.param("modal", marks=pytest.mark.slow)])
def test_a_scene_saved_from_the_hand_goes_the_same_way_to_the_bit(model: str) -> None:
    """Read from its text and played in frames, as `phyxel run` does."""
    hand = Hand(Scene.parse(SCENE.format(model=model)))
    poke(hand)
    if model == "phyxel":
        knead(hand)
    hand.ticks(4)
    scene = Scene.parse(hand.journal.toml(hand.performance))
    world, compared = scene.world(), 0
    for frame in range(int(hand.world.time * 60)):
        world.advance(max(frame / scene.fps - world.time, 0.0))
        if world.time in hand.seen:
            there = zip(stand(world), hand.seen[world.time], strict=True)
            assert all(np.array_equal(one, other) for one, other in there), f"frame {frame}"
            compared += 1
    assert compared > 15


def test_it_reads_as_if_written_by_a_person(tmp_path: Path) -> None:
    """Only what is not as usual, short lines, files that are found from anywhere, and what starts it all on top."""
    (tmp_path / "ball.xyz").write_text("\n".join("{} {} {}".format(*x) for x in load("sphere", points=400).positions))
    scene = Scene.parse(
        'title = "häh \\"ball\\""\nfps = 25\n[[body]]\nfile = "ball.xyz"\nnodes = 40\nmaterial = { young = 2e4 }\n'
        "hold = [{ upper = [9, 0.3, 9] }]\n[camera]\nfov = 40\n",
        "ball",
        tmp_path,
    )
    hand = Hand(scene)
    hand.do(rate=60)
    trail = hand.journal.grab(hand.performance, "ball", "hand", surfel=3)
    hand.ticks(2)
    trail.to(hand.world.next_tick, (0.12345678912, 0, 0))
    hand.ticks(1)
    hand.do(body="ball", release="hand", melt={})
    hand.do(body="ball", material={"creep": np.inf})
    text = hand.journal.toml(hand.performance)
    assert text.split("\n\n", 1)[1] == GOOD.replace("FOLDER", str(tmp_path.resolve()))
    read = hand.journal.scene(hand.performance)
    assert read.content.event == hand.journal.events[1:]


def test_a_hand_that_grasps_at_nothing_changes_nothing() -> None:
    scene = Scene.parse(SCENE.format(model="modal"))
    performance, journal = scene.performance(), Journal(scene)
    with pytest.raises(PhyxelError, match="no such body"):
        journal.grab(performance, "middle", "hand", surfel=3)
    with pytest.raises(PhyxelError, match="surfel"):
        journal.grab(performance, "left", "hand", surfel=10**6)
    assert not journal.events and not performance.handles and not performance.world.bodies[0].handles


# What is written as TOML is read as what it was

NOW = SimpleNamespace(world=SimpleNamespace(time=0.1))
"""as much of a performance as the journal looks at when it is written"""
ODD = "say \"ä\\n\" \n\t\r \x00\x1b\x7f\x85\u2028 😀 ''' # [x] = 1"

keys = st.text("abcdefghijklmnopqrstuvwxyz_", min_size=1, max_size=8)
plain = st.text() | st.floats(allow_nan=False) | st.integers(-(2**63), 2**63 - 1) | st.booleans()
values = st.recursive(
    plain, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(keys, inner, max_size=4), max_leaves=12
)


def told(value):
    """With the kinds of numbers: 1 is not 1.0, 0.0 is not -0.0, True is not 1."""
    if isinstance(value, dict):
        return {key: told(one) for key, one in value.items()}
    return [told(one) for one in value] if isinstance(value, list) else repr(value)


@settings(max_examples=60, deadline=None, derandomize=True)
@given(st.dictionaries(keys, values.filter(lambda value: value != []), max_size=6))
def test_any_table_comes_back(table):
    assert told(tomllib.loads(document(table))) == told(table)


@pytest.mark.parametrize("name", gallery_names())
def test_gallery_scenes_come_back(name):
    scene = gallery(name)
    content = scene.content
    text = Journal(scene).toml(NOW)
    again = SceneFile.model_validate(tomllib.loads(text))
    assert again.model_copy(update={"seconds": content.seconds}) == content
    assert again.seconds == pytest.approx(content.seconds, abs=1 / content.fps)


def test_odd_names_come_back_and_stay_out_of_the_comments():
    content = SceneFile.model_validate(
        {
            "title": ODD,
            "body": [{"name": ODD, "shape": "box", "vary": {"young": {"channel": "red", "low": 1e4, "high": 2e4}}}],
            "collider": [{"kind": "ground", "name": ODD + "floor"}],
            "event": [{"at": 0, "body": ODD, "hold": {"name": ODD, "near": [0, 1e-300, -0.0]}}],
        }
    )
    journal = Journal(Scene(content, "two\nlines \x07\udcff", Path(), "", "two"))
    journal.record(EventPart(at=0.05, body=ODD, release=ODD))
    again = SceneFile.model_validate(tomllib.loads(journal.toml(NOW)))
    assert again.model_copy(update={"event": again.event[:1]}) == content
    assert again.event[1] == journal.events[0]
    journal.toml(NOW).encode()
