"""A live world among pages that come and go as they like, faults of its own and guests that mean no good."""

import gc
import json
import random
import socket
import threading
import tracemalloc
from contextlib import contextmanager, suppress

import pytest
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import connect

from phyxel.movers.phyxel_bodies import phyxels_of
from phyxel.scene import Scene
from phyxel.view import commands
from phyxel.view.hub import Hub
from phyxel.view.live import Live
from phyxel.view.live_world import LiveWorld
from phyxel.view.server import Server
from tests.view.driven import Driven
from tests.view.idle import until

SCENE = """
[[body]]
name = "a"
shape = "box"
nodes = 30
points = 100
size = 0.2
at = [0, 0.11, 0]
material = { young = 2e4 }

[[collider]]
kind = "ground"
"""
AIM = {"ray": [0.0, 0.12, 2.0], "way": [0.0, 0.0, -1.0]}
GRAB = {"do": "grab", "ahead": [0, 0, -1], **AIM}
DEEDS = [GRAB, {"do": "pull", "ray": [0.05, 0.2, 2.0], "way": [0, 0, -1]}, {"do": "push", **AIM}, {"do": "let_go"}]


def ask(live, page, **what):
    live.ask(page, commands.checked(what))


@pytest.mark.slow
def test_pages_come_grab_and_go_while_worlds_come_and_go(capfd):
    """Sixteen pages at once, from many threads, also while a world is built."""
    hub = Hub()
    live = Live(Scene.parse(SCENE), hub, "cpu")
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
    until(lambda: 99 in live.live_world.heard and live.world is not None and live.world.time > 0.02, 60)
    live.stop()
    assert not live.running and live.live_world.blown is None
    assert not live.live_world.heard.keys() - {99} and not live.world.bodies[0].handles and not live.world.fields
    assert capfd.readouterr().err == ""


def test_it_can_be_stopped_before_and_while_it_is_built():
    live = Live(Scene.parse(SCENE), Hub(), "cpu")
    live.stop()
    live = Live(Scene.parse(SCENE), Hub(), "cpu")
    live.start()
    live.stop()
    assert not live.running


@pytest.mark.parametrize("stage", ["advance", "surface", "snapshot", "diagnostics"])
def test_a_fault_anywhere_ends_the_world_but_not_its_pages(stage, monkeypatch):
    driven = Driven(Scene.parse(SCENE))
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
        for deed in (*DEEDS, {"do": "step"}, {"do": "save"}, {"do": "show", "field": "stress"}):
            driven.ask(**deed)
        assert len(driven.hub.of("notice")) == 7
        driven.live.obey(1, "gone")
        driven.live.obey(2, "joined")
    driven.ask(do="reset")
    driven.go_on(3)
    assert driven.world.time > 0 and len(driven.hub.of("blown")) == 2  # the second to who joined


def test_a_scene_that_cannot_be_built_says_why_and_keeps_listening():
    live = LiveWorld(Scene.parse(SCENE.replace('"box"', '"bxo"')), hub := Driven(Scene.parse(SCENE)).hub, "cpu")
    live.build(live.opened)
    assert "box" in hub.of("blown")[0]["text"]
    for deed in (*DEEDS, {"do": "restart"}, {"do": "model", "body": "a", "model": "modal"}):
        live.obey(1, commands.checked(deed))
    live.obey(1, "joined")
    live.obey(1, "gone")
    assert live.world is None and hub.told[-1][1]["kind"] == "blown"


@pytest.mark.slow
def test_old_worlds_leave_nothing_behind():
    driven = Driven(Scene.parse(SCENE))

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


@contextmanager
def served():
    hub = Hub()
    live = Live(Scene.parse(SCENE), hub, "cpu")
    with Server(live, hub) as server:
        until(lambda: live.world is not None, 60)
        yield server, live


def goes_on(live):
    """The clock of whatever world is played advances."""
    world, before = live.world, live.world.time
    until(lambda: live.world is not world or world.time > before, 30)


def read_all(page):
    with suppress(ConnectionClosed):
        for _ in page:
            pass


HOSTILE = [
    "", "{", "[" * 4000, '{"do":' * 600, "null", "1e999", '{"do": "gravity", "value": [0, NaN, 0]}',
    '{"do": "gravity", "value": [0, Infinity, 0]}', '{"do": "gravity", "value": [0, 1e400, 0]}',
    '{"do": "model", "body": "a", "model": "phyxel", "nodes": 999999999999999999999999}',
    '{"do": "pause", "on": "yes"}', '{"do": "melt", "body": "\\ud800"}', '{"do": "melt", "body": "' + "ä" * 150 + '"}',
    '{"do": "material", "body": "a", "numbers": {"young": -1e12}}',
    '{"do": "material", "body": "a", "numbers": {"young": 1e11, "density": 1e-9}}',
    '{"do": "material", "body": "a", "numbers": {"young": 1e-12, "density": 1e12}}',
    '{"do": "_hear"}', '{"do": "joined"}', '{"do": "speed", "factor": 0}',
    '{"do": "seek", "time": 3}', '{"do": "loop", "on": true}', '{"do": "n\\u0000"}',
    '{"do": "cut", "ray": [0, 0.1, 2], "way": [0, 0, -1], "to_way": [0, 0, -1]}',
    '{"do": "grab", "ray": [1e12, 1e12, 1e12], "way": [1e-8, 0, 0], "ahead": [0, 1e12, 0]}',
    b"\x00\xff\xfe", b"",
]  # fmt: skip


@pytest.mark.slow
def test_hostile_guests_do_not_stop_a_real_world(capfd):
    with served() as (server, live):
        rows = [info[4][0] for info in socket.getaddrinfo(server.host, server.port, type=socket.SOCK_STREAM)]
        assert rows == ["127.0.0.1"] == [server._socket.getsockname()[0]]
        address = f"ws://127.0.0.1:{server.port}/live"
        slow = [socket.create_connection(("127.0.0.1", server.port)) for _ in range(20)]
        for one in slow:
            one.sendall(b"GET /live HTTP/1.1\r\nHost: 127.0")  # and never more
        luck = random.Random(5)
        with connect(address, max_size=None, compression=None, proxy=None) as page:
            for message in HOSTILE:
                page.send(message)
            page.send(luck.randbytes(2000))
            goes_on(live)
        with connect(address, max_size=None, compression=None, proxy=None) as page, pytest.raises(ConnectionClosed):
            page.send("x" * 2_000_000)
            while True:
                page.recv(timeout=10)
        goes_on(live)
        with connect(address, max_size=None, compression=None, proxy=None) as page:
            threading.Thread(target=read_all, args=(page,), daemon=True).start()
            for n in range(200):  # as many as are heard at once, far more than there is time for
                page.send(json.dumps({**luck.choice([*DEEDS, {"do": "reset"}, {"do": "drop"}]), "n": n}))
            goes_on(live)
            page.socket.close()
        goes_on(live)
        until(lambda: live.waiting == 0, 60)
        until(lambda: not live.world.bodies[0].handles and not live.world.fields, 30)  # gone, so let go
        goes_on(live)
        for one in slow:
            one.close()
    assert not live.running
    assert "Traceback" not in capfd.readouterr().err
