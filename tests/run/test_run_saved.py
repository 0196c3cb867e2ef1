"""What was run is what is saved: the same body comes back."""

from pathlib import Path

import numpy as np

import phyxel as px
from phyxel.run import Run
from phyxel.run.run import as_run, scene_of
from phyxel.scene import Scene

SCENE = """# falls
seconds = 0.06
fps = 50
[[body]]
shape = "sphere"
nodes = 40
points = 300
at = [0, 0.1, 0]
[[collider]]
kind = "ground"
[output]
video = false
"""


def block(path: Path) -> Path:
    corners = [(x, y, z) for x in (5, 6) for y in (0, 1) for z in (0, 3)]
    quads = [(1, 2, 4, 3), (5, 7, 8, 6), (1, 5, 6, 2), (3, 4, 8, 7), (1, 3, 7, 5), (2, 6, 8, 4)]
    lines = ["v {} {} {}".format(*x) for x in corners] + ["f {} {} {} {}".format(*q) for q in quads]
    path.write_text("\n".join(lines) + "\n")
    return path


def play(scene: Scene, out: Path, resume: bool = False) -> list[dict]:
    rows: list[dict] = []
    Run(scene, out).play(resume, rows.append)
    return rows


def test_a_scan_in_place_of_the_shape_comes_back_from_the_saved_scene(tmp_path):
    plain = Scene.parse(SCENE, "falls")
    run = plain.changed(model=block(tmp_path / "block.obj"), up="z", seconds=0.04, nodes=30)
    out = tmp_path / "out"
    assert len(play(run, out)) == 3
    for saved in (Scene.read(out / "scene.toml"), scene_of(out), as_run(plain, out)):
        assert saved.content == run.content and saved.fingerprint() == run.fingerprint()
        assert np.array_equal(saved.world("cpu").bodies[0].birth, run.world("cpu").bodies[0].birth)
    # It goes on as it was, for longer, and that is saved then; also from its own file.
    for resumed, seconds, frames in ((as_run(plain, out), 0.08, [3, 4]), (Scene.read(out / "scene.toml"), 0.1, [5])):
        assert [row["frame"] for row in play(resumed.changed(seconds=seconds), out, resume=True)] == frames
        assert Scene.read(out / "scene.toml").seconds == scene_of(out).seconds == seconds


def test_own_words_are_saved_and_another_scene_is_another(tmp_path):
    plain, out = Scene.parse(SCENE, "falls"), tmp_path / "out"
    assert as_run(plain, out) is plain
    play(plain, out)
    assert (out / "scene.toml").read_text() == SCENE
    other = Scene.parse(SCENE.replace("0.1", "0.2"), "falls")
    assert as_run(other, out) is other


def test_a_video_that_is_gone_on_with_keeps_its_camera(tmp_path):
    """A ball falls by 0.7 m, a good part of the picture: a camera that framed it anew would see it elsewhere."""
    text = SCENE.replace("0.1, 0]", "0.75, 0]").replace("seconds = 0.06", "seconds = 0.4").replace("video = false", "")
    text += "width = 96\nheight = 64\ncheckpoint_every = 10\n"
    whole, parted = tmp_path / "whole", tmp_path / "parted"
    play(Scene.parse(text), whole)
    play(Scene.parse(text).changed(seconds=0.2), parted)
    play(Scene.parse(text), parted, resume=True)
    last = [px.load(out / "frames" / "0020.ply").positions for out in (whole, parted)]
    assert np.array_equal(*last)
    assert (whole / "frames" / "0020.png").read_bytes() == (parted / "frames" / "0020.png").read_bytes()
