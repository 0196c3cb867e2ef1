"""A world that runs while pages look at it: what they ask for happens, in the world and in what they are told."""

import time

import pytest

from phyxel.scene import Scene
from phyxel.view import commands
from phyxel.view.live import Live

BEAR = """
[[body]]
name = "bear"
shape = "bear"
points = 600
nodes = 150
material = { preset = "gelatin", young = 3e4, damping = 2e-3 }

[[collider]]
kind = "ground"
"""


class Hub:
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

    def of(self, kind):
        return [message for _, message in self.told if message["kind"] == kind]


def wait_for(condition, seconds=30.0):
    end = time.monotonic() + seconds
    while not (found := condition()):
        assert time.monotonic() < end, "it never came"
        time.sleep(0.005)
    return found


@pytest.fixture
def hub():
    return Hub()


@pytest.fixture
def live(hub):
    live = Live(Scene.parse(BEAR), hub, "cpu")
    live.start()
    wait_for(lambda: hub.of("scene"))
    yield live
    live.stop()


count = 0


def ask(live, hub, page=1, **what):
    """Ask, and wait until it was heard."""
    global count
    count += 1
    number = count
    live.ask(page, commands.checked({"n": number, **what}))
    wait_for(lambda: hub.heard.get(page, 0) >= number)


def test_smoke(live, hub):
    time.sleep(1)
    print(hub.of("numbers")[-1], hub.of("scene")[-1], live.world.time)
    ask(live, hub, do="melt", body="bear")
    print(hub.of("notice"), hub.of("blown"))
    ask(live, hub, do="reset")
    assert not hub.of("notice") and not hub.of("blown")
