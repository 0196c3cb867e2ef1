"""The network side, over real sockets on this machine: who gets in, what hostile guests can do, what waits for whom."""

import base64
import gzip
import http.client
import json
import random
import re
import socket
import threading
import time
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.sync.client import connect

import phyxel as px
from phyxel.scene import Scene
from phyxel.view import server as serving
from phyxel.view.hub import MOST_UNSEEN, Hub
from phyxel.view.live import Live
from phyxel.view.messages import read
from phyxel.view.page_files import page_files
from phyxel.view.server import MOST_PAGES, Server
from tests.view.boxes import BOX, DEEDS
from tests.view.idle import IdleShow
from tests.view.waiting import wait_for


@contextmanager
def served(surfels=10, **options):
    """A server with a stand-in for the world behind it."""
    hub = Hub()
    show = IdleShow(hub, surfels)
    with Server(show, hub, **options) as server:
        server.hub, server.show = hub, show
        yield server


@pytest.fixture
def server():
    with served() as one:
        yield one


def page(server, **headers):
    """A live connection, as a page has it."""
    address = f"ws://{server.host}:{server.port}/live"
    return connect(address, additional_headers=headers, max_size=None, compression=None, proxy=None, close_timeout=1)


def get(server, path="/", **headers):
    """Status, headers and body of a page, asked for with exactly this path."""
    connection = http.client.HTTPConnection(server.host, server.port, timeout=5)
    connection.putrequest("GET", path, skip_host="Host" in headers)
    for name, value in headers.items():
        connection.putheader(name, value)
    connection.endheaders()
    answer = connection.getresponse()
    found = answer.status, answer.headers, answer.read()
    connection.close()
    return found


def handshake(server):
    """What opens a live connection, byte by byte."""
    return (
        f"GET /live HTTP/1.1\r\nHost: {server.host}:{server.port}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
        "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n"
    ).encode()


def heard(live):
    """The next message to a page, or the picture that it is."""
    message = live.recv(timeout=5)
    return json.loads(message) if isinstance(message, str) else read(message, live.__dict__.setdefault("kept", {}))


def frames(live, count):
    """The next pictures that a page is sent."""
    found = []
    while len(found) < count:
        message = heard(live)
        found += [] if isinstance(message, dict) else [message]
    return found


def told(live, kind):
    """The next message of a kind."""
    end = time.monotonic() + 5
    while time.monotonic() < end:
        message = heard(live)
        if isinstance(message, dict) and message["kind"] == kind:
            return message
    raise AssertionError(f"no {kind} was told")


def goes_on(server):
    """The world is shown to who behaves."""
    with page(server) as live:
        first, second = frames(live, 2)
        assert second.about["frame"] > first.about["frame"]


# Where it listens


def listening(port):
    """Addresses, in the kernel's hexadecimal, at which a TCP port is listened to."""
    rows = [row.split() for table in ("tcp", "tcp6") for row in Path(f"/proc/net/{table}").read_text().splitlines()[1:]]
    return {row[1].split(":")[0] for row in rows if row[3] == "0A" and int(row[1].split(":")[1], 16) == port}


@pytest.mark.skipif(not Path("/proc/net/tcp").exists(), reason="needs Linux's table of sockets")
def test_only_this_machine_can_reach_it(server):
    assert listening(server.port) == {"0100007F"}  # 127.0.0.1, and nothing of IPv6
    assert server.token is None and server.address == f"http://127.0.0.1:{server.port}/"


def test_ports():
    with served() as first, served() as second:
        assert first.port != second.port
        with pytest.raises(px.PhyxelError, match=f"port {first.port}.*--port"):
            Server(IdleShow(Hub()), Hub(), port=first.port)
        taken = second.port
    with served(port=taken) as again:  # it is free again at once
        assert again.port == taken
    for host, words in (("203.0.113.7", "not an address of this machine"), ("no host", "no such address")):
        with pytest.raises(px.PhyxelError, match=words):
            Server(IdleShow(Hub()), Hub(), host=host)


def test_when_it_stops_nothing_is_left():
    before = set(threading.enumerate())
    with served() as one, page(one) as live:
        frames(live, 1)
        one.stop()
        with pytest.raises(ConnectionClosed):
            frames(live, 1000)
        assert one.show.left == [1]
        with pytest.raises(OSError):
            socket.create_connection((one.host, one.port), timeout=1)
    wait_for(lambda: set(threading.enumerate()) <= before)


# Pages


def test_pages_and_what_is_said_of_them(server):
    status, headers, body = get(server)
    assert status == 200 and headers["Content-Type"] == "text/html; charset=utf-8"
    assert b"$imports" not in body and b'"phyxel/main.js": "/page/main.js"' in body
    for name, value in (("Cache-Control", "no-store"), ("X-Content-Type-Options", "nosniff")):
        assert headers[name] == value
    policy = headers["Content-Security-Policy"]
    assert "default-src 'none'" in policy and "unsafe" not in policy and "sha256-" in policy
    for name, data in page_files().items():
        status, headers, body = get(server, f"/page/{name}")
        assert (status, body) == (200, data)
        assert headers["Content-Type"].split(";")[0] == {"js": "text/javascript", "css": "text/css"}.get(
            name.split(".")[-1], "text/html"
        )


@pytest.mark.parametrize(
    "path",
    [
        "/page/../server.py",
        "/page/%2e%2e/server.py",
        "/page/..%2fserver.py",
        "/page//etc/passwd",
        "/page/",
        "/page",
        "/../../etc/passwd",
        "/main.js",
        "/page/main.js/",
        "/page/.",
        "/saved/",
        "//",
        "/page/\\..\\server.py",
        "/%00",
    ],
)
def test_nothing_but_the_page_is_given_out(server, path):
    assert get(server, path)[0] == 404


def test_only_the_page_itself_is_let_in(server):
    own = f"127.0.0.1:{server.port}"
    for host in ("evil.example", f"evil.example:{server.port}", "127.0.0.1", "127.0.0.1:1", ""):
        assert get(server, Host=host)[0] == 403, host
    assert get(server, Host=f"localhost:{server.port}")[0] == 200
    assert get(server, Origin=f"http://{own}")[0] == 200
    for origin in (
        "http://evil.example",
        "null",
        f"https://{own}",
        f"http://localhost:{server.port}",
        "http://127.0.0.1",
    ):
        assert get(server, Origin=origin)[0] == 403, origin
        with pytest.raises(InvalidStatus), page(server, Origin=origin):
            pass
    with page(server, Origin=f"http://{own}") as live:
        frames(live, 1)
    assert get(server, "/live")[0] == 426


def test_another_host_takes_a_token():
    with served(host="127.0.0.2") as server:  # another address of this machine, as good as any
        assert server.token in server.address and len(server.token) >= 32
        for query in ("", "?token=", f"?token={server.token[:-1]}", f"?token={server.token}x", "?token=%ff"):
            assert get(server, f"/{query}")[0] == 403
            assert get(server, f"/page/main.js{query}")[0] == 403
            assert get(server, f"/live{query}")[0] == 403
        with pytest.raises(InvalidStatus), page(server):
            pass
        status, headers, _ = get(server, f"/?token={server.token}")
        cookie = headers["Set-Cookie"].split(";")[0]
        assert status == 200 and "HttpOnly" in headers["Set-Cookie"] and "SameSite=Strict" in headers["Set-Cookie"]
        assert get(server, "/page/main.js", Cookie=cookie)[0] == 200
        assert get(server, "/page/main.js", Cookie=f"{cookie.split('=')[0]}=wrong")[0] == 403
        with page(server, Cookie=cookie) as live:
            frames(live, 1)
        with pytest.raises(InvalidStatus), page(server, Cookie=cookie, Origin="http://evil.example"):
            pass
        assert server.listens_at == "127.0.0.2"


# The live connection


def test_a_page_is_told_the_scene_and_shown_what_is_new(server):
    with page(server) as live:
        assert told(live, "scene")["name"] == "stand-in"
        seen = frames(live, 2)
        live.send('{"do": "pause", "on": true, "n": 7}')
        seen += frames(live, 40)
        numbers = [one.about["frame"] for one in seen]
        assert numbers == sorted(set(numbers))
        assert seen[0].about["heard"] == 0 and seen[-1].about["heard"] == 7
        # What is kept by the page is sent once: these could not be read without.
        assert all(one.parts[0].blobs["colors"].key == "grey" for one in seen)
        assert server.show.asked[0][1].on is True
    wait_for(lambda: server.show.left == [1])


def test_who_says_what_it_has_seen_gets_no_more_than_it_can_draw(server):
    with page(server) as live:
        first = frames(live, 1)[0].about["frame"]
        live.send(json.dumps({"do": "seen", "frame": first}))
        wait_for(lambda: server.show.frame > first + 30)
        waiting = []
        with pytest.raises(TimeoutError):
            while True:
                message = live.recv(timeout=0.3)
                waiting += [read(message, live.kept)] if isinstance(message, bytes) else []
        # Only those that were on their way when it first said so; then none, though one comes each hundredth second.
        assert MOST_UNSEEN <= len(waiting) < 30
        newest = server.show.frame
        live.send(json.dumps({"do": "seen", "frame": waiting[-1].about["frame"]}))
        assert frames(live, 1)[0].about["frame"] >= newest - 1  # not the next of those it missed


def test_messages_without_sense_are_answered_and_then_ended(server):
    bad = [
        '{"do": "pause"}',
        "[]",
        "null",
        "{",
        '{"do": 3}',
        '{"do": "fly"}',
        b"\x00\xff",
        "[" * 5000,
        '{"do": "seen"}',
    ]
    bad += ['{"do": "gravity", "value": [0, NaN, 0]}', '{"do": "speed", "factor": 1e999}', "\ud83d\ude00 " * 100]
    with page(server) as live:
        for message in bad:
            live.send(
                message.encode("utf-16", "surrogatepass").decode("utf-16") if isinstance(message, str) else message
            )
            assert told(live, "notice")["level"] == "error"
        with pytest.raises(ConnectionClosed) as ended:
            for _ in range(100):
                live.send("nonsense")
            frames(live, 1000)
        assert ended.value.rcvd.code == 1008
    assert not server.show.asked
    goes_on(server)


def test_random_bytes_and_huge_frames_stop_nothing(server):
    chance = random.Random(1)
    for round in range(40):
        with socket.create_connection((server.host, server.port), timeout=5) as raw:
            raw.sendall(handshake(server) if round % 2 else b"")
            raw.sendall(chance.randbytes(chance.choice([1, 10, 1000, 5000])))
    with page(server) as live, pytest.raises(ConnectionClosed) as ended:
        live.send("x" * 1_000_000)
        frames(live, 1000)
    assert ended.value.rcvd.code == 1009
    with page(server) as live, pytest.raises(ConnectionClosed):
        live.send(iter(["x" * 1000] * 200))  # no frame is large, the message is
        frames(live, 1000)
    wait_for(lambda: not server.hub.pages)
    goes_on(server)


def test_a_flood_waits_in_the_network(server, monkeypatch):
    """Of what comes all at once, a second's worth reaches the show, and then so many a second, however quick this
    machine is; others are served meanwhile."""
    rate, sent = 20.0, 200
    monkeypatch.setattr(serving, "MOST_COMMANDS", rate)
    began = time.monotonic()
    with page(server) as live:
        for _ in range(sent):
            live.send('{"do": "step"}')
        goes_on(server)
        wait_for(lambda: len(server.show.asked) > 2 * rate)
        heard, spent = len(server.show.asked), time.monotonic() - began
        live.socket.close()  # a farewell would wait behind all that
    assert heard <= rate * (1 + spent) + 1


def test_many_connections_and_half_open_ones(server):
    idle = [socket.create_connection((server.host, server.port)) for _ in range(100)]
    for one in idle[::2]:
        one.sendall(b"GET /live HTTP/1.1\r\nHost:")
    lives = [page(server).__enter__() for _ in range(MOST_PAGES)]
    wait_for(lambda: len(server.hub.pages) == MOST_PAGES)
    with page(server) as more, pytest.raises(ConnectionClosed) as ended:
        more.recv(timeout=5)
    assert ended.value.rcvd.code == 1013 and "pages" in ended.value.rcvd.reason
    for live in lives:
        frames(live, 1)
        live.socket.close()  # gone without a word
    wait_for(lambda: not server.hub.pages)
    assert sorted(server.show.left) == sorted(server.show.here)
    goes_on(server)
    began = time.monotonic()
    server.stop()  # does not wait for who never said what they want
    assert time.monotonic() - began < 5
    for one in idle:
        one.close()


def test_who_does_not_read_is_left_and_holds_no_memory(monkeypatch):
    monkeypatch.setattr(serving, "PATIENCE", 0.5)
    with served(surfels=200_000) as server, socket.create_connection((server.host, server.port)) as raw:
        raw.sendall(handshake(server))
        wait_for(lambda: server.hub.pages)
        wait_for(lambda: not server.hub.pages, 10)  # 3.2 MB each: more than sockets hold
        goes_on(server)


# Saving


def test_what_was_shown_can_be_saved_from_the_page(server):
    with page(server) as live:
        frames(live, 5)
        live.send('{"do": "record", "on": true}')
        assert told(live, "scene")["recording"] is True
        frames(live, 10)
        camera = {"eye": [1.0, 2.0, 3.0], "target": [0.0, 0.5, 0.0], "fov": 40.0}
        live.send(json.dumps({"do": "html", "camera": camera}))
        file = told(live, "file")
        status, headers, body = get(server, file["url"])
        assert status == 200 and headers["Content-Disposition"] == 'attachment; filename="stand-in.html"'
        assert body.startswith(b"<!doctype html>")
        recording = re.search(rb'id="recording">(.*?)</script>', body, re.DOTALL)[1]
        scene = gzip.decompress(base64.b64decode(recording))
        assert json.loads(scene[4 : 4 + int.from_bytes(scene[:4], "little")])["camera"] == camera
        assert get(server, "/saved/other.html")[0] == 404
    assert not server.show.asked


@contextmanager
def a_real_world():
    hub = Hub()
    live = Live(Scene.parse(BOX), hub, "cpu")
    with Server(live, hub) as server:
        wait_for(lambda: live.world is not None, 60)
        yield server, live


def lives_on(live):
    """The clock of whatever world is played advances."""
    world, before = live.world, live.world.time
    wait_for(lambda: live.world is not world or world.time > before, 30)


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
    with a_real_world() as (server, live):
        rows = [info[4][0] for info in socket.getaddrinfo(server.host, server.port, type=socket.SOCK_STREAM)]
        assert rows == ["127.0.0.1"] == [server.listens_at]
        address = f"ws://127.0.0.1:{server.port}/live"
        slow = [socket.create_connection(("127.0.0.1", server.port)) for _ in range(20)]
        for one in slow:
            one.sendall(b"GET /live HTTP/1.1\r\nHost: 127.0")  # and never more
        luck = random.Random(5)
        with connect(address, max_size=None, compression=None, proxy=None) as page:
            for message in HOSTILE:
                page.send(message)
            page.send(luck.randbytes(2000))
            lives_on(live)
        with connect(address, max_size=None, compression=None, proxy=None) as page, pytest.raises(ConnectionClosed):
            page.send("x" * 2_000_000)
            while True:
                page.recv(timeout=10)
        lives_on(live)
        with connect(address, max_size=None, compression=None, proxy=None) as page:
            threading.Thread(target=read_all, args=(page,), daemon=True).start()
            for n in range(200):  # as many as are heard at once, far more than there is time for
                page.send(json.dumps({**luck.choice([*DEEDS, {"do": "reset"}, {"do": "drop"}]), "n": n}))
            lives_on(live)
            page.socket.close()
        lives_on(live)
        wait_for(lambda: live.waiting == 0, 60)
        wait_for(lambda: not live.world.bodies[0].handles and not live.world.fields, 30)  # gone, so let go
        lives_on(live)
        for one in slow:
            one.close()
    assert not live.running
    assert "Traceback" not in capfd.readouterr().err
