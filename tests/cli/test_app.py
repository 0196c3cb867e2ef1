"""The command line: `phyxel ...` as it is typed."""

import json
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import pytest

import phyxel as px
from phyxel.cli import app as cli

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
[output]
video = false
"""


@pytest.fixture
def phyxel(monkeypatch, capsys, tmp_path):
    """Runs `phyxel ...` in this process, in an empty folder: exit code, stdout, stderr."""
    here = tmp_path / "here"
    here.mkdir()
    monkeypatch.chdir(here)
    monkeypatch.setenv("COLUMNS", "200")

    def call(*arguments: str | Path) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["phyxel", *map(str, arguments)])
        with pytest.raises(SystemExit) as ended:
            cli.main()
            raise SystemExit(0)
        code = ended.value.code
        return 0 if code is None else code, *capsys.readouterr()

    return call


@pytest.fixture
def scene(tmp_path) -> Path:
    path = tmp_path / "jelly.toml"
    path.write_text(SCENE)
    return path


def refused(result: tuple[int, str, str], *words: str) -> None:
    """It ended with code 1 and said why, for people."""
    code, output, errors = result
    assert code == 1, errors
    assert "Traceback" not in errors and output == ""
    for word in words:
        assert word in errors


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
    for word in ("python", "numpy", "warp", "cpu", "ok", "bar on cpu"):
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
