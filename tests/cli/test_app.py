"""The command line: `phyxel ...` as it is typed."""

import json
import os
import signal
import socket
import subprocess
import sys
import threading
import webbrowser
from contextlib import suppress
from importlib.metadata import version
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import connect

import phyxel as px
from phyxel.run import Run
from phyxel.scene import Scene
from tests.cli.command_line import refused
from tests.view.waiting import wait_for

PHYXEL = str(Path(sys.executable).with_name("phyxel"))
SCENE = """
title = "A box falls"
seconds = 0.04
fps = 50
[[body]]
shape = "box"
nodes = 64
points = 300
at = [0, 1, 0]
place = "center"
[output]
video = false
"""


@pytest.fixture
def scene(tmp_path) -> Path:
    path = tmp_path / "jelly.toml"
    path.write_text(SCENE)
    return path


# What there is


def test_help_lists_the_commands(phyxel):
    code, output, _ = phyxel("--help")
    assert code == 0
    for command in ("run", "demo", "gallery", "bench", "doctor"):
        assert command in output


@pytest.mark.parametrize("command", ["run", "demo", "gallery", "bench", "doctor"])
def test_every_command_has_help(phyxel, command):
    code, output, _ = phyxel(command, "--help")
    assert code == 0
    assert "Usage" in output
    if command in ("run", "demo"):
        assert "--out" in output
    if command == "run":
        assert "--resume" in output and "--nodes" in output and "--seconds" in output
    if command == "bench":
        assert "--json" in output and "--peers" in output and "--models" in output


def test_the_version_is_the_packages(phyxel):
    code, output, _ = phyxel("--version")
    assert code == 0
    assert output.split() == ["phyxel", px.__version__]
    assert px.__version__ == version("phyxel")


def test_the_installed_script_works():
    shown = subprocess.run([PHYXEL, "--version"], capture_output=True, text=True, timeout=60)
    assert shown.returncode == 0 and px.__version__ in shown.stdout and shown.stderr == ""


def test_the_installed_script_fails_in_one_line(tmp_path):
    command = [PHYXEL, "run", "nowhere.toml", "--out", "out"]
    shown = subprocess.run(command, capture_output=True, text=True, timeout=60, cwd=tmp_path)
    assert shown.returncode == 1
    assert len(shown.stderr.splitlines()) == 1
    assert "nowhere.toml" in shown.stderr and shown.stdout == ""
    assert list(tmp_path.iterdir()) == []


def test_the_gallery_is_listed_with_its_titles(phyxel):
    code, output, _ = phyxel("gallery")
    assert code == 0
    for name in ("demo", "cantilever", "stretch"):
        assert name in output and px.gallery(name).content.title in output


def test_the_doctor_finds_a_healthy_machine(phyxel):
    code, output, errors = phyxel("doctor")
    assert code == 0, output + errors
    for word in ("python", "numpy", "warp", "cpu", "ok", "bar on cpu", "extra view", "extra usd"):
        assert word in output
    assert "look here" not in output


# Running


def test_run_makes_frames_and_a_summary(phyxel, scene, tmp_path):
    code, _, errors = phyxel("run", scene, "--out", tmp_path / "out")
    assert code == 0, errors
    assert sorted(path.name for path in (tmp_path / "out" / "frames").iterdir()) == ["0000.ply", "0001.ply", "0002.ply"]
    assert len((tmp_path / "out" / "run.jsonl").read_text().splitlines()) == 3
    words = "".join(errors.split())  # lines are broken where paths are long
    assert "Aboxfalls" in words and "frames" in words, words
    assert str(tmp_path / "out") in words, words


def test_results_go_to_out_slash_name_unless_told_otherwise(phyxel, scene):
    assert phyxel("run", scene)[0] == 0
    assert (Path.cwd() / "out" / "jelly" / "frames" / "0000.ply").is_file()


def test_options_take_the_place_of_the_scenes_numbers(phyxel, scene, tmp_path):
    out = tmp_path / "out"
    code, _, errors = phyxel("run", scene, "--out", out, "--seconds", "0.1", "--nodes", "125", "--no-video")
    assert code == 0, errors
    assert len(list((out / "frames").iterdir())) == 6


def test_a_gallery_scene_runs_by_name(phyxel, tmp_path):
    out = tmp_path / "out"
    code, _, errors = phyxel("run", "stretch", "--out", out, "--nodes", "100", "--seconds", "0.05", "--no-video")
    assert code == 0, errors
    assert len(list((out / "frames").glob("*.ply"))) == 4


def test_resume_of_a_complete_run_says_so(phyxel, scene, tmp_path):
    assert phyxel("run", scene, "--out", tmp_path / "out")[0] == 0
    code, _, errors = phyxel("run", scene, "--out", tmp_path / "out", "--resume")
    assert code == 0
    assert "complete" in errors


def test_a_model_takes_the_place_of_the_shapes(phyxel, scene, tmp_path):
    corners = [(x, y, z) for x in (0, 9) for y in (0, 9) for z in (0, 9)]
    quads = [(1, 2, 4, 3), (5, 7, 8, 6), (1, 5, 6, 2), (3, 4, 8, 7), (1, 3, 7, 5), (2, 6, 8, 4)]
    lines = ["v {} {} {}".format(*x) for x in corners] + ["f {} {} {} {}".format(*q) for q in quads]
    (tmp_path / "cube.obj").write_text("\n".join(lines) + "\n")
    code, _, errors = phyxel("run", scene, "--out", tmp_path / "out", "--model", tmp_path / "cube.obj")
    assert code == 0, errors
    assert px.load(tmp_path / "out" / "frames" / "0000.ply").size == pytest.approx(0.5, rel=0.01)


# Errors: one clear line, no traceback, code 1, and nothing is written


def test_a_missing_scene(phyxel):
    refused(phyxel("run", "nowhere.toml"), "nowhere.toml")
    assert list(Path.cwd().iterdir()) == []


def test_an_unknown_gallery_scene_has_a_near_miss(phyxel):
    refused(phyxel("run", "dmeo"), '"dmeo"', '"demo"')
    assert list(Path.cwd().iterdir()) == []


def test_a_fault_in_the_scene(phyxel, scene):
    scene.write_text(SCENE.replace("nodes", "nods"))
    result = phyxel("run", scene)
    refused(result, "jelly.toml", "body[0].nods", '"nodes"')
    assert len(result[2].splitlines()) == 1
    assert list(Path.cwd().iterdir()) == []


@pytest.mark.parametrize(
    "options, word",
    [
        (["--nodes", "3"], "nodes"),
        (["--nodes", "-5"], "nodes"),
        (["--seconds", "-1"], "seconds"),
        (["--seconds", "nan"], "seconds"),
        (["--seconds", "inf"], "seconds"),
        (["--device", "cuda:99"], "cuda:99"),
        (["--device", "abacus"], "abacus"),
        (["--model", "nowhere.ply"], "nowhere.ply"),
        (["--resume"], "--resume"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_an_absurd_option(phyxel, scene, options, word):
    refused(phyxel("run", scene, *options), word)
    assert list(Path.cwd().iterdir()) == []


def test_brackets_in_a_message_are_no_markup(phyxel, tmp_path):
    path = tmp_path / "[old]" / "x[red].toml"
    refused(phyxel("run", path), str(path))


def test_brackets_in_a_title_are_no_markup(phyxel, scene):
    scene.write_text(SCENE.replace("A box falls", "A box [cube] falls [/x]"))
    code, _, errors = phyxel("run", scene)
    assert code == 0, errors
    assert "A box [cube] falls [/x]" in errors


def test_a_folder_with_something_else(phyxel, scene, tmp_path):
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "thesis.txt").write_text("five years")
    refused(phyxel("run", scene, "--out", tmp_path / "out"), "--out")
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["thesis.txt"]


def test_a_checkpoint_of_another_scene(phyxel, scene, tmp_path):
    assert phyxel("run", scene, "--out", tmp_path / "out")[0] == 0
    refused(phyxel("run", scene, "--out", tmp_path / "out", "--resume", "--nodes", "125"), "another scene")


def test_an_unknown_option_or_command_is_a_usage_error(phyxel):
    for arguments in (["run"], ["run", "demo", "--nods", "3"], ["rnu", "demo"]):
        code, _, errors = phyxel(*arguments)
        assert code == 2
        assert "Traceback" not in errors and errors


# Benchmarks


def test_an_unknown_benchmark_is_refused(phyxel):
    code, _, errors = phyxel("bench", "no-such-benchmark", "--json")
    assert code == 1
    assert "no-such-benchmark" in errors and "Traceback" not in errors


def test_bench_json_is_one_object_a_line(phyxel, monkeypatch):
    """The rows of M04, at reduced size."""
    from phyxel.bench import m04

    monkeypatch.setattr(m04, "FRAMES", 2)
    monkeypatch.setattr(m04, "ROWS", ((60, 500, 0.015, 0.022, 0.022),))
    monkeypatch.delenv("PHYXEL_MODELS", raising=False)
    code, output, errors = phyxel("bench", "m04", "--json")
    assert code == 0, errors
    rows = [json.loads(line) for line in output.splitlines()]
    assert rows
    for row in rows:
        assert {"name", "value", "unit", "paper", "ratio"} <= set(row)
        assert row["value"] > 0
        assert row["ratio"] == pytest.approx(row["paper"] / row["value"], rel=0.01, abs=0.001)


# The viewer

VIEWED = """
title = "A box falls"
seconds = 0.1
fps = 20
[[body]]
shape = "box"
nodes = 64
points = 300
at = [0, 1, 0]
place = "center"
[output]
video = false
"""


@pytest.fixture
def phyxel_view(phyxel):
    """Runs `phyxel view ...`: exit code and all that was said."""

    def call(*arguments):
        code, output, errors = phyxel("view", *arguments)
        return code, output + errors

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
    monkeypatch.setattr("phyxel.view.find_spec", lambda name: None)
    code, said = phyxel_view("demo")
    assert code == 1 and 'pip install "phyxel[view]"' in said


def test_what_cannot_be_built_ends_it_with_the_reason(phyxel_view, tmp_path):
    scan = tmp_path / "noise.xyz"
    scan.write_text("".join(f"{k % 7} {k % 11} {k % 13}\n" for k in range(1001)))
    code, said = phyxel_view(scan, "--no-open", "--device", "cpu")
    assert code == 1 and said.count("noise.xyz") >= 1 and "Traceback" not in said


def test_a_run_is_written_as_one_file(phyxel_view, tmp_path):
    folder = tmp_path / "out"
    Run(Scene.parse(VIEWED, name="box"), folder, "cpu").play(False, lambda row: None)
    code, said = phyxel_view(folder, "--html", tmp_path / "box.html", "--device", "cpu")
    assert code == 0 and "box.html" in said
    assert (tmp_path / "box.html").read_text().startswith("<!doctype html>")


@pytest.mark.parametrize("end", [signal.SIGINT, signal.SIGTERM])
def test_it_serves_until_it_is_ended(phyxel_view, monkeypatch, tmp_path, end):
    """Ctrl-C, or being told to end, while a page looks on."""
    path = tmp_path / "box.toml"
    path.write_text(VIEWED)
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
    wait_for(lambda: found.get("closed") == 1001)  # pages are told that it goes away
    with pytest.raises(OSError):
        socket.create_connection((found["address"].hostname, found["address"].port), timeout=1)
    wait_for(lambda: (signal.getsignal(signal.SIGTERM), set(threading.enumerate())) == before)
