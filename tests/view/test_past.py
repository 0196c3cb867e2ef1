"""Undo: things stand as before a deed, to the bit, and what was undone is in no file."""

import numpy as np
import pytest

from phyxel.scene import Scene
from tests.view.boxes import AIM, BOX, CUT, GRAB
from tests.view.driven import Driven, differs, stand

SOFT = """
[[body]]
name = "a"
shape = "{shape}"
model = "{model}"
nodes = 40
points = 200
size = 0.2
at = [0, 0.11, 0]
place = "center"
material = {{ young = 2e4 }}

[[event]]
at = 0.05
gravity = [0, -5, 0]

[[event]]
at = 0.3
gravity = [0, -7, 0]

[[collider]]
kind = "ground"
"""


def begun(text: str = BOX, updates: int = 4) -> Driven:
    driven = Driven(Scene.parse(text, "begun"))
    driven.go_on()  # nobody has seen it yet: it waits
    driven.ask(do="speed", factor=1.0)
    driven.go_on(updates)
    return driven


def same(one: list[np.ndarray], other: list[np.ndarray]) -> bool:
    return len(one) == len(other) and all(map(np.array_equal, one, other))


def undo_words(driven: Driven) -> str | None:
    """What pages are told would be undone."""
    words: str | None = driven.hub.of("past")[-1]["undo"] if driven.hub.of("past") else None
    return words


@pytest.mark.parametrize(
    ("deed", "words"),
    [
        (GRAB, "pulling"),
        ({"do": "pin", **AIM}, "pinning"),
        ({"do": "push", **AIM}, "pushing"),
        (CUT, "cutting"),
        ({"do": "drop"}, "dropping all"),
        ({"do": "melt", "body": "a"}, "melting a"),
        ({"do": "material", "body": "a", "numbers": {"young": 1e4}}, "changing the material of a"),
        ({"do": "preset", "body": "a", "name": "gelatin"}, "making a of gelatin"),
        ({"do": "gravity", "value": [1, -3, 0]}, "changing gravity"),
        ({"do": "model", "body": "a", "model": "galerkin"}, "changing the model of a"),
        ({"do": "restart"}, "restarting"),
        ({"do": "reset"}, "resetting"),
    ],
    ids=lambda given: given.get("do") if isinstance(given, dict) else "",
)
def test_undo_goes_back_to_the_bit_and_no_file_has_what_was_undone(deed, words):
    driven = begun(SOFT.format(shape="box", model="phyxel"))
    driven.ask(2, do="material", body="a", numbers={"young": 3e4})
    driven.go_on(3)
    before, saved = stand(driven.world), driven.saved().content.event
    driven.ask(**deed)
    assert undo_words(driven) == words
    driven.go_on(4)
    assert not same(before, stand(driven.world))
    driven.ask(do="undo")
    assert undo_words(driven) == "changing the material of a"
    assert same(before, stand(driven.world))
    assert driven.saved().content.event == saved
    driven.go_on(8)
    assert not driven.hub.of("blown") and driven.world.time > 0.2
    assert differs(driven, driven.saved()) == "", "and what comes then is played again to the bit"


def test_many_levels_through_pieces_and_melts():
    driven = begun(SOFT.format(shape="sphere", model="phyxel"))
    stands = []
    for deed in ({"do": "pin", **AIM}, CUT, {"do": "drop"}, {"do": "melt", "body": "a"}, {"do": "drop", "body": "a"}):
        stands.append(stand(driven.world))
        driven.ask(**deed)
        driven.go_on(3)
    assert len(driven.world.bodies) == 2 and not driven.hub.of("notice")
    for then in reversed(stands):
        driven.ask(do="undo")
        assert same(then, stand(driven.world))
    assert len(driven.world.bodies) == 1 and undo_words(driven) is None
    driven.ask(do="undo")
    assert "nothing left" in driven.hub.of("notice")[-1]["text"]


def test_a_hand_that_holds_while_another_page_undoes_is_opened():
    driven = begun()
    driven.ask(1, **GRAB)
    driven.ask(1, do="pull", ray=[0.05, 0.2, 2.0], way=[0, 0, -1])
    driven.go_on(2)
    driven.ask(2, do="melt", body="a")
    driven.go_on(2)
    driven.ask(2, do="undo")
    assert driven.world.bodies[0].handles == []
    driven.ask(1, do="pull", ray=[0.0, 0.2, 2.0], way=[0, 0, -1])  # its pointer goes on
    driven.ask(1, do="let_go")
    driven.go_on(3)
    assert differs(driven, driven.saved()) == ""


def test_what_a_slider_asks_for_in_a_row_is_one_deed_and_refusals_are_none():
    driven = begun()
    before = stand(driven.world)
    for young in (1e4, 1.1e4, 1.2e4):
        driven.ask(do="material", body="a", numbers={"young": young})
        driven.go_on()
    driven.ask(do="melt", body="nobody")
    assert "nobody" in driven.hub.of("notice")[-1]["text"]
    driven.ask(do="undo")
    assert same(before, stand(driven.world)) and driven.world.bodies[0].material.young == 2e4
    driven.ask(do="restart")
    assert driven.world.bodies[0].material.young == 2e4, "also for panels"


def test_a_world_that_blew_up_comes_back(monkeypatch):
    driven = begun()
    before = stand(driven.world)
    driven.ask(do="drop")
    monkeypatch.setattr(driven.world, "tick", lambda: 1 / 0)
    driven.go_on()
    assert driven.hub.of("blown")
    driven.ask(do="undo")
    assert same(before, stand(driven.world))
    driven.go_on()
    assert len(driven.hub.of("blown")) == 1


def test_pins_on_what_has_melted_stay_where_they_were_set():
    """Where molten nodes were when it was pinned is known to nobody who builds the world anew."""
    driven = begun(SOFT.format(shape="sphere", model="phyxel"))
    driven.ask(do="melt", body="a")
    driven.go_on(12)
    surface = driven.world.bodies[0].surface.positions
    top = surface[surface[:, 1].argmax()]
    driven.ask(do="pin", ray=(top + np.array([0, 0, 2])).tolist(), way=[0, 0, -1])
    driven.go_on(2)
    (held,) = driven.world.bodies[0].handles
    before = stand(driven.world)
    driven.ask(do="drop")
    driven.go_on(2)
    driven.ask(do="undo")
    assert same(before, stand(driven.world)) and not driven.hub.of("notice")[1:]
    (again,) = driven.world.bodies[0].handles
    assert np.array_equal(again.nodes, held.nodes)
