"""A world that runs while pages look at it: what they ask for happens, in the world and in what they are told."""

import base64
import itertools
import random
import threading
import time

import numpy as np
import pytest

from phyxel.movers.phyxel_bodies import phyxels_of
from phyxel.scene import Scene
from phyxel.view import commands
from phyxel.view.hub import Hub
from phyxel.view.live import Live
from tests.view.boxes import BOX, DEEDS
from tests.view.waiting import wait_for

BEAR = """
seconds = 0.1

[[body]]
name = "bear"
shape = "bear"
points = 600
nodes = 150
material = { preset = "gelatin", young = 3e4, damping = 4e-3 }

[[collider]]
kind = "ground"
"""
AIM = {"ray": [0.0, 0.4, 5.0], "way": [0.0, 0.0, -1.0]}


class Listening:
    """Keeps what pages would get."""

    pages = (1, 2)
    sending = 0.0

    def __init__(self):
        self.told, self.snapshots, self.heard = [], [], {}

    def publish(self, snapshot, heard):
        self.snapshots.append(snapshot)
        self.heard = heard

    def tell(self, message, page=None):
        self.told.append((page, message))

    def of(self, kind, page=None):
        """What was told, without hints."""
        told = [(to, message) for to, message in list(self.told) if message.get("level") != "warning"]
        return [message for to, message in told if message["kind"] == kind and page in (None, to)]


class Pages:
    """A live world and the pages that ask things of it."""

    def __init__(self, text=BEAR):
        self.hub = Listening()
        self.live = Live(Scene.parse(text, "jelly"), self.hub, "cpu")
        self.count = itertools.count(1)
        self.live.start()
        wait_for(lambda: self.hub.of("scene"))
        wait_for(lambda: self.hub.of("numbers"))
        assert self.live.world.time == 0  # nobody is there to see it begin
        self.live.joined(1)

    def ask(self, page=1, wait=True, **what):
        """Ask, and wait until it was done and shown."""
        number = next(self.count)
        self.live.ask(page, commands.checked({"n": number, **what}))
        if wait:
            wait_for(lambda: self.hub.heard.get(page, 0) >= number or self.hub.of("blown"))

    @property
    def bear(self):
        return self.live.world.bodies[0]

    def live_on(self, seconds):
        """Let so much world time pass."""
        world = self.live.world
        end = world.time + seconds
        wait_for(lambda: self.live.world is not world or world.time >= end)


@pytest.fixture
def pages():
    pages = Pages()
    yield pages
    pages.live.stop()


def height(body):
    return float(np.ptp(body.positions[:, 1]))


def test_softer_sags_more_restart_keeps_the_material_and_reset_restores(pages):
    ask, hub = pages.ask, pages.hub
    first, stiff = pages.bear.positions, []
    for young in (3e4, 6e3):  # so damped that it does not matter when it is looked at
        ask(do="material", body="bear", numbers={"young": young, "damping": 0.1})
        pages.live_on(1.0)
        ask(do="pause", on=True)
        stiff.append(height(pages.bear))
        ask(do="pause", on=False)
    assert stiff[1] < 0.95 * stiff[0]
    ask(do="gravity", value=[0, -1.6, 0])
    ask(do="pause", on=True)
    ask(do="restart")
    assert pages.bear.material.young == 6e3 and pages.live.world.gravity[1] == -1.6
    assert pages.live.world.time == 0 and (pages.bear.positions == first).all()
    ask(do="reset")
    assert pages.bear.material.young == 3e4 and pages.live.world.gravity[1] == -9.81
    assert pages.live.world.time == 0 and (pages.bear.positions == first).all()
    wait_for(lambda: len(hub.of("ready")) == len(hub.of("busy")))
    assert [message["text"] for message in hub.of("busy") if "building" in message["text"]] == [
        "building jelly ..."
    ] * 3
    scene = hub.of("scene")[-1]
    assert scene["bodies"][0]["material"]["young"] == 3e4 and scene["paused"] and not hub.of("notice")


@pytest.mark.slow
def test_what_melts_spreads_and_what_was_done_is_saved_as_a_scene_that_does_the_same(pages):
    ask, hub = pages.ask, pages.hub
    pages.live_on(0.1)
    ask(do="material", body="bear", numbers={"young": 2e4, "yield_strain": 0.05, "creep": None})
    standing = height(pages.bear)
    ask(do="melt", body="bear")
    assert hub.of("scene")[-1]["bodies"][0]["molten"]
    pages.live_on(1.0)
    assert height(pages.bear) < 0.8 * standing
    ask(do="solidify", body="bear")
    assert not hub.of("scene")[-1]["bodies"][0]["molten"]
    pages.live_on(0.1)
    ask(do="pause", on=True)
    ask(do="save", page=2, wait=False)
    (file,) = hub.of("file", page=2)
    again = Scene.parse(base64.b64decode(file["base64"]).decode(), "again").world("cpu")
    again.advance(pages.live.world.time)
    assert again.time == pages.live.world.time
    assert (again.bodies[0].positions == pages.bear.positions).all()
    assert file["name"] == "jelly-live.toml" and not hub.of("notice")


def test_what_waits_to_be_heard_can_be_given_up(pages, monkeypatch):
    """Also while the world is busy with something that cannot be ended: it counts as heard, and nothing comes of it."""
    busy, done = threading.Event(), threading.Event()
    monkeypatch.setattr(pages.live.live_world, "_do_slice", lambda page, asked: busy.set() or done.wait(30))
    pages.ask(do="slice", normal=[0, 0, 1], place=[0, 0, 0], wait=False)
    assert busy.wait(10)
    pages.ask(do="melt", body="bear", wait=False)
    pages.ask(do="pause", on=True, wait=False)
    pages.ask(do="cancel", wait=False)
    done.set()
    pages.ask(do="pause", on=True)
    assert not pages.bear.has_melted


def test_the_scene_is_saved_at_once_though_the_world_is_busy(pages, monkeypatch):
    """With what has happened until then, and with the camera of the page."""
    ask, hub = pages.ask, pages.hub
    ask(do="gravity", value=[0, -2.5, 0])
    busy, done = threading.Event(), threading.Event()
    monkeypatch.setattr(pages.live.live_world.play.hands, "cut", lambda asked: busy.set() or done.wait(30))
    ask(do="cut", **AIM, to_way=[0.1, 0, -1], wait=False)
    assert busy.wait(10)
    time.sleep(0.4)
    began = time.monotonic()
    camera = {"eye": [1.5, 0.4, 2.0], "target": [0.1, 0.2, -0.3], "fov": 40.0}
    ask(do="save", camera=camera, page=2, wait=False)
    assert time.monotonic() - began < 1.0 and not done.is_set()
    (file,), (notice,) = hub.of("file", page=2), hub.of("notice", page=2)
    done.set()
    scene = Scene.parse(base64.b64decode(file["base64"]).decode(), "saved").content
    assert scene.camera.eye == (1.5, 0.4, 2.0) and scene.camera.target == (0.1, 0.2, -0.3) and scene.camera.fov == 40
    assert [event.gravity for event in scene.event if event.gravity] == [(0.0, -2.5, 0.0)]
    assert "save again" in notice["text"]
    ask(do="pause", on=True)
    ask(do="save", page=2, wait=False)
    again = Scene.parse(base64.b64decode(hub.of("file", page=2)[1]["base64"]).decode(), "saved").content
    assert again.camera.eye is None and len(hub.of("notice", page=2)) == 1


def test_time_stands_still_steps_and_slows_down(pages):
    ask, hub, world = pages.ask, pages.hub, pages.live.world
    ask(do="step")
    before, shown = world.time, len(hub.snapshots)
    assert hub.of("scene")[-1]["paused"]
    time.sleep(0.1)
    assert world.time == before and len(hub.snapshots) == shown  # nothing new, nothing sent
    ask(do="step")
    assert world.time - before == pytest.approx(1 / 60, abs=1e-12)
    ask(do="speed", factor=0.1)
    assert world.rate == 600
    ask(do="step")  # onto the finer clock: the page may have stopped at any tick of the coarser one
    before = world.time
    ask(do="step")
    assert world.time - before == pytest.approx(1 / 600, abs=1e-12)
    ask(do="pause", on=False)
    before, start = world.time, time.monotonic()
    time.sleep(0.3)
    ask(do="pause", on=True)
    assert 0 < world.time - before <= 0.1 * (time.monotonic() - start) + 0.01
    numbers = wait_for(lambda: hub.of("numbers"))[-1]
    assert set(numbers) == {
        "kind", "time", "pace", "updates", "milliseconds", "kinetic", "elastic", "potential", "volume", "surfels",
        "pages", "remedies",
    }  # fmt: skip
    assert numbers["surfels"] == 600 and numbers["volume"] == pytest.approx(1, abs=0.1)


def test_what_is_refused_is_told_to_who_asked_and_the_world_goes_on(pages):
    ask, hub = pages.ask, pages.hub
    wrong = [
        {"do": "material", "body": "bear", "numbers": {"young": -1}},
        {"do": "material", "body": "bear", "numbers": {"yuong": 1e4}},
        {"do": "material", "body": "bear", "numbers": {"density": None}},
        {"do": "preset", "body": "bear", "name": "cotton"},
        {"do": "preset", "body": "bear", "name": "jam"},
        {"do": "melt", "body": "baer"},
        {"do": "solidify", "body": "bear"},
        {"do": "grab", "ray": [0, 0, 5], "way": [0, 1, 0], "ahead": [0, 0, -1]},
        {"do": "push", "ray": [0, 0, 5], "way": [0, 1, 0]},
        {"do": "cut", "ray": [0, 0, 5], "way": [0, 1, 0], "to_way": [0, 1, 0.1]},
        {"do": "show", "field": "colour"},
        {"do": "seek", "time": 1.0},
    ]
    world = pages.live.world
    for n, command in enumerate(wrong, 1):
        ask(page=2, **command)
        assert len(hub.of("notice", page=2)) == n, command
    assert not hub.of("notice", page=1) and not hub.of("blown")
    before = world.time
    pages.live_on(0.05)
    assert pages.live.world is world and world.time > before
    assert all(len(notice["text"]) > 20 for notice in hub.of("notice"))


@pytest.mark.parametrize("fault", [RuntimeError("the mover is broken"), FloatingPointError()])
def test_a_blow_up_is_told_and_reset_goes_on(pages, monkeypatch, fault):
    def explode(dt):
        raise fault

    broken, hub = pages.live.world, pages.hub
    monkeypatch.setattr(phyxels_of(broken), "advance", explode)
    assert (str(fault) or "FloatingPointError") in wait_for(lambda: hub.of("blown"))[0]["text"]
    pages.ask(do="melt", body="bear", wait=False)
    assert "reset" in wait_for(lambda: hub.of("notice"))[0]["text"]
    pages.live.joined(3)
    wait_for(lambda: hub.of("blown", page=3))
    pages.ask(do="reset", wait=False)
    wait_for(lambda: pages.live.world is not broken)
    pages.live_on(0.05)
    assert len(hub.of("blown", page=None)) == 2 and hub.of("scene")


@pytest.mark.slow
def test_another_model_is_another_world_and_one_that_cannot_be_changes_nothing(pages):
    ask, hub = pages.ask, pages.hub
    ask(do="material", body="bear", numbers={"young": 2e4, "strength": 1e5})
    ask(do="model", body="bear", model="modal")
    assert len(hub.of("notice", page=1)) == 1 and pages.bear.model == "phyxel"  # it cannot crack
    ask(do="material", body="bear", numbers={"strength": None})
    ask(do="model", body="bear", model="particles")
    assert pages.bear.model == "particles" and hub.of("scene")[-1]["bodies"][0]["membrane"]
    pages.live_on(0.05)
    ask(do="reset")
    assert pages.bear.model == "phyxel" and pages.bear.material.young == 3e4


def test_a_page_that_goes_lets_go(pages):
    ask, world = pages.ask, pages.live.world
    pages.live_on(0.02)
    for page in (1, 2):
        ask(page=page, do="grab", ahead=[0, 0, -1], **AIM)
        assert pages.hub.of("grabbed", page=page)
    assert len(world.bodies[0].handles) == 2 and len(pages.hub.snapshots[-1].about["grabs"]) == 2
    pages.live.gone(1)
    wait_for(lambda: len(world.bodies[0].handles) == 1)
    ask(page=2, do="let_go", pin=True)
    ask(page=2, do="pause", on=True)
    about = pages.hub.snapshots[-1].about
    assert len(world.bodies[0].handles) == 1 and len(about["pins"]) == 1 and not about["grabs"]
    ask(page=2, do="unpin")
    assert not world.bodies[0].handles


def ask(live, page, **what):
    live.ask(page, commands.checked(what))


@pytest.mark.slow
def test_pages_come_grab_and_go_while_worlds_come_and_go(capfd):
    """Sixteen pages at once, from many threads, also while a world is built."""
    hub = Hub()
    live = Live(Scene.parse(BOX), hub, "cpu")
    live.start()

    def page(number):
        luck = random.Random(number)
        for turn in range(2):
            live.joined(number)
            for deed in luck.choices(DEEDS, k=6):
                ask(live, number, **deed)
            if number % 4 == 0:
                ask(live, number, do=luck.choice(["restart", "reset"]))
            ask(live, number, do="melt", body=luck.choice(["a", "a-2", "nobody"]) if turn == 1 else "nobody")
            live.gone(number)

    pages = [threading.Thread(target=page, args=(number,)) for number in range(16)]
    for one in pages:
        one.start()
    for one in pages:
        one.join()
    ask(live, 99, do="reset")
    wait_for(lambda: 99 in live.live_world.heard and live.world is not None and live.world.time > 0.02, 60)
    live.stop()
    assert not live.running and live.live_world.blown is None
    assert not live.live_world.heard.keys() - {99} and not live.world.bodies[0].handles and not live.world.fields
    assert capfd.readouterr().err == ""


def test_it_can_be_stopped_before_and_while_it_is_built():
    live = Live(Scene.parse(BOX), Hub(), "cpu")
    live.stop()
    live = Live(Scene.parse(BOX), Hub(), "cpu")
    live.start()
    live.stop()
    assert not live.running
