"""`phyxel view` as it is typed."""

import os
import signal
import socket
import sys
import threading
import webbrowser
from contextlib import suppress
from urllib.parse import urlsplit

import pytest
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import connect

import phyxel.view
from phyxel.cli import app as cli
from phyxel.run import Run
from phyxel.scene import Scene
from tests.view.idle import until

SCENE = """
title = "A box falls"
seconds = 0.1
fps = 20
[[body]]
shape = "box"
nodes = 64
points = 300
at = [0, 1, 0]
[output]
video = false
"""


@pytest.fixture
def phyxel_view(monkeypatch, capsys, tmp_path):
    """Runs `phyxel view ...` in this process: exit code and what was said."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "300")

    def call(*arguments):
        monkeypatch.setattr(sys, "argv", ["phyxel", "view", *map(str, arguments)])
        with pytest.raises(SystemExit) as ended:
            cli.main()
            raise SystemExit(0)
        return ended.value.code or 0, "".join(capsys.readouterr())

    return call


def test_help_tells_what_can_be_viewed(phyxel_view):
    code, said = phyxel_view("--help")
    assert code == 0
    for word in ("scene", "scan", "run", "--host", "--port", "--no-open", "--html"):
        assert word in said


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["dmeo"], 'did you mean "demo"'),
        (["missing.ply"], "no such file"),
        (["demo", "--html", "demo.html"], "phyxel run demo"),
        (["demo", "--html", "demo.mp4"], ".html"),
        (["bear", "--model", "x.ply"], "--model"),
        (["demo", "--no-open", "--host", "203.0.113.7"], "not an address of this machine"),
    ],
)
def test_wrong_wishes_are_refused_in_words(phyxel_view, arguments, words):
    code, said = phyxel_view(*arguments)
    assert code == 1 and words in said and "Traceback" not in said


def test_without_the_extra_it_says_what_to_install(phyxel_view, monkeypatch):
    monkeypatch.setattr(phyxel.view, "find_spec", lambda name: None)
    code, said = phyxel_view("demo")
    assert code == 1 and 'pip install "phyxel[view]"' in said


def test_what_cannot_be_built_ends_it_with_the_reason(phyxel_view, tmp_path):
    scan = tmp_path / "noise.xyz"
    scan.write_text("".join(f"{k % 7} {k % 11} {k % 13}\n" for k in range(1001)))
    code, said = phyxel_view(scan, "--no-open", "--device", "cpu")
    assert code == 1 and said.count("noise.xyz") >= 1 and "Traceback" not in said


def test_a_run_is_written_as_one_file(phyxel_view, tmp_path):
    folder = tmp_path / "out"
    Run(Scene.parse(SCENE, name="box"), folder, "cpu").play(False, lambda row: None)
    code, said = phyxel_view(folder, "--html", tmp_path / "box.html", "--device", "cpu")
    assert code == 0 and "box.html" in said
    assert (tmp_path / "box.html").read_text().startswith("<!doctype html>")


@pytest.mark.parametrize("end", [signal.SIGINT, signal.SIGTERM])
def test_it_serves_until_it_is_ended(phyxel_view, monkeypatch, tmp_path, end):
    """Ctrl-C, or being told to end, while a page looks on."""
    path = tmp_path / "box.toml"
    path.write_text(SCENE)
    found = {}

    def visit(address):
        found["address"] = urlsplit(address)
        threading.Thread(target=look).start()

    def look():
        with connect(f"ws://{found['address'].netloc}/live", max_size=None, proxy=None) as live:
            while not isinstance(live.recv(timeout=60), bytes):
                pass
            os.kill(os.getpid(), end)
            with suppress(ConnectionClosed):
                while True:
                    live.recv(timeout=20)
            found["closed"] = live.close_code

    monkeypatch.setenv("BROWSER", "one")
    monkeypatch.setattr(webbrowser, "get", lambda: True)
    monkeypatch.setattr(webbrowser, "open", visit)
    before = signal.getsignal(signal.SIGTERM), set(threading.enumerate())
    code, said = phyxel_view(path, "--device", "cpu")
    assert (
        code == 0 and "A box falls" in said and "building box" in said and "ended" in said and "Traceback" not in said
    )
    assert found["address"].hostname == "127.0.0.1" and found["address"].geturl() in said
    until(lambda: found.get("closed") == 1001)  # pages are told that it goes away
    with pytest.raises(OSError):
        socket.create_connection((found["address"].hostname, found["address"].port), timeout=1)
    until(lambda: (signal.getsignal(signal.SIGTERM), set(threading.enumerate())) == before)
