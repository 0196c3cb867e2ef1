"""Pages hear of what takes long, once, and how far it is; and may end it."""

import math
from typing import Any

import pytest

from phyxel import progress
from phyxel.scene import Scene
from phyxel.view.busy import LONG, Busy
from tests.view.boxes import BOX, CUT
from tests.view.driven import Driven, stand
from tests.view.test_past import same


class Ear:
    def __init__(self) -> None:
        self.told: list[dict[str, Any]] = []
        self.now = 0.0
        self.busy = Busy(self.told.append, lambda: self.now)

    def after(self, seconds: float) -> list[str]:
        """The kinds of all that was told so much later."""
        self.now += seconds
        self.busy.look()
        return [message["kind"] for message in self.told]


def test_what_is_short_is_not_told_and_what_is_long_is_told_once() -> None:
    ear = Ear()
    ear.busy.begin("knocking", ends=True)
    assert ear.after(0.9 * LONG) == [] and not ear.busy.end()
    assert ear.after(10 * LONG) == []
    ear.busy.begin("kneading", ends=True)
    assert ear.after(1.1 * LONG) == ["busy"] == ear.after(5 * LONG)
    assert ear.told[0] == {"kind": "busy", "text": "kneading ...", "ends": True}
    ear.busy.heard("dough", 3, 9)
    ear.busy.heard("dough", 4, 9)
    assert ear.after(0.0) == ["busy", "progress"] and ear.told[1]["done"] == 4
    assert ear.busy.end() and ear.after(0.0)[2:] == ["ready"]


def test_only_what_can_be_ended_is_and_only_once() -> None:
    ear = Ear()
    assert not ear.busy.cancel()
    ear.busy.begin("first")
    assert not ear.busy.cancel() and not ear.busy.is_cancelled
    ear.busy.begin("second", ends=True)
    assert ear.busy.cancel() and ear.busy.is_cancelled
    ear.busy.end()
    assert not ear.busy.is_cancelled


def begun() -> Driven:
    driven = Driven(Scene.parse(BOX))
    driven.ask(do="speed", factor=1.0)
    driven.go_on(5)
    return driven


def breaths_of_a_cut(driven: Driven, monkeypatch: pytest.MonkeyPatch, most: float = math.inf) -> int:
    """Cut, and show what came of it; how often that asks whether to go on, which it is told not to after `most`."""
    count, patience = 0, progress.ended_by

    def asked() -> bool:
        nonlocal count
        count += 1
        if count > most:
            driven.live.busy.cancel()
        return driven.live.busy.is_cancelled

    with monkeypatch.context() as patched:
        patched.setattr(progress, "ended_by", lambda _: patience(asked))
        driven.ask(**CUT)
        if driven.live.past.newest is not None:
            driven.go_on()
    return count


@pytest.mark.parametrize("share", [0.0, 0.2, 0.5, 0.8, 0.99])
def test_a_cut_that_is_ended_anywhere_leaves_the_world_as_it_was(share, monkeypatch):
    """In the deed itself, in the steps after it or in the making of surfaces: wherever it breathes."""
    whole = breaths_of_a_cut(begun(), monkeypatch)
    driven = begun()
    before, old = stand(driven.world), driven.world
    assert breaths_of_a_cut(driven, monkeypatch, most=int(share * whole)) <= whole
    assert driven.world is not old and same(before, stand(driven.world))
    assert driven.live.past.newest is None and driven.saved().content.event == []
    driven.go_on(3)
    assert driven.world.time > before[0] and not driven.hub.of("blown")
