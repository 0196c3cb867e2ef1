"""Runs that show what is inside, and `phyxel render`."""

import re
import shutil
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

import phyxel as px
from phyxel.errors import SceneError
from phyxel.run import Run
from phyxel.run.redraw import Redrawing
from tests.cli.command_line import refused

SCENE = """
seconds = 0.08
fps = 50
[[body]]
shape = "box"
nodes = 27
points = 300
at = [0, 0.1, 0]
place = "center"
velocity = [0, -1, 0]
material = { young = 3.0e4, poisson = 0.3, density = 1000.0 }
[[collider]]
kind = "ground"
[output]
points = []
width = 160
height = 96
field = "strain"
mode = "volume"
range = [0, 0.1]
states = true
"""


@pytest.fixture(scope="module")
def finished(tmp_path_factory) -> Path:
    """A run of 5 frames whose pictures show strain; not to be changed."""
    out = tmp_path_factory.mktemp("finished") / "out"
    Run(px.Scene.parse(SCENE), out, "cpu").play(False, lambda row: None)
    return out


def content(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_a_run_keeps_every_state_and_is_drawn_from_them_as_it_was(finished, tmp_path):
    """The same picture, byte for byte, from a state and from the run; and the same when the scene is played again."""
    assert len(list((finished / "checkpoints").glob("*.npz"))) == 5
    looks = {"field": "strain", "mode": "volume", "range": (0, 0.1)}
    run = np.asarray(Image.open(finished / "frames" / "0003.png"))
    ((number, kept),) = Redrawing(finished, looks, "3", "cpu").draw(lambda *_: None)
    assert number == 3 and np.array_equal(kept[..., :3], run)
    bare = tmp_path / "bare"
    shutil.copytree(finished, bare)
    for state in (bare / "checkpoints").glob("*.npz"):
        state.unlink()
    redrawing = Redrawing(bare, looks, "3", "cpu")
    assert not redrawing.has_states
    ((_, played),) = redrawing.draw(lambda *_: None)
    assert np.array_equal(played, kept)


def test_render_draws_a_run_anew_and_leaves_it_alone(finished, tmp_path, phyxel):
    run = tmp_path / "run"
    shutil.copytree(finished, run)
    before = content(run)
    code, _, errors = phyxel(
        "render", run, "--field", "distance", "--mode", "slice", "--slice", "x", "--frames", "1:4:2", "--device", "cpu"
    )
    assert code == 0, errors
    assert "played again" not in errors and "render-distance-slice.mp4" in errors
    after = content(run)
    drawn = "render-distance-slice"
    assert set(after) - set(before) == {f"{drawn}/0001.png", f"{drawn}/0003.png", f"{drawn}.mp4"}
    assert before.items() <= after.items()
    single = tmp_path / "one.png"
    code, _, errors = phyxel(
        "render", run, "--mode", "surface", "--frame", "2", "--out", single, "--beside", "--device", "cpu"
    )
    assert code == 0, errors
    assert Image.open(single).size == (160, 96)


def test_render_says_what_is_wrong(finished, tmp_path, phyxel):
    refused(phyxel("render", tmp_path), "no run there")
    refused(phyxel("render", finished, "--field", "stres"), 'did you mean "stress"')
    refused(phyxel("render", finished, "--mode", "slize"), 'did you mean "slice"')
    refused(phyxel("render", finished, "--frame", "7"), "0 to 4")
    refused(phyxel("render", finished, "--frames", "soon"), "10:40")
    refused(phyxel("render", finished, "--frame", "1", "--out", tmp_path / "x.gif"), ".png")


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ('field = "presure"', "output: field"),
        ('mode = "iso"', "mode needs a field"),
        ('field = "stress"\nrange = [2, 1]', "lower value first"),
        ('field = "stress"\nslice = ["x", "up"]', "give an axis"),
    ],
)
def test_scenes_that_cannot_be_shown_are_refused(line, words):
    source = re.sub(r"(?m)^(field|mode|range) .*\n", "", SCENE).replace("[output]", f"[output]\n{line}")
    with pytest.raises(SceneError, match=words):
        px.Scene.parse(source)
