"""A finished run played back: its frames and numbers, its clock, and frames that are lost or broken."""

import json
import shutil

import numpy as np
import pytest

import phyxel as px
from phyxel.run.run import Run, rows_of
from phyxel.scene import Scene
from phyxel.view.commands import parse
from phyxel.view.hub import Hub
from phyxel.view.messages import read
from phyxel.view.playback import Log, Playback, frames_of, recording_of
from tests.view.records import decoded
from tests.view.waiting import wait_for

SCENE = """
title = "A ball falls beside a stone"
seconds = 0.5
fps = 20
[[body]]
shape = "sphere"
nodes = 60
points = 400
at = [0, 1, 0]
place = "center"
[[collider]]
kind = "ground"
height = -0.3
[[collider]]
kind = "sphere"
radius = 0.2
at = [3, 0, 0]
[[event]]
at = 0.3
material = { young = 2.0e6 }
[output]
video = false
states = true
"""


@pytest.fixture(scope="module")
def played(tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs") / "ball"
    Run(Scene.parse(SCENE, name="ball"), folder, "cpu").play(False, lambda row: None)
    return folder


@pytest.fixture
def run(played, tmp_path):
    """A run of its own for each test."""
    return shutil.copytree(played, tmp_path / "run")


class Watcher:
    """A page without a browser: plays a run and keeps what it is shown and told."""

    def __init__(self, folder):
        self.hub = Hub()
        self.playback = Playback(folder, self.hub, "cpu")
        self.kept, self.times, self.told = {}, [], []

    def __enter__(self):
        self.playback.start()
        self.page = self.hub.join(lambda: None)
        self.playback.joined(self.page.number)
        return self

    def __exit__(self, *_):
        self.playback.stop()

    def ask(self, **command):
        self.playback.ask(self.page.number, parse(json.dumps(command)))

    def look(self):
        while (message := self.hub.next(self.page)) is not None:
            if isinstance(message, bytes):
                self.times.append(read(message, self.kept).about["time"])
            else:
                self.told.append(json.loads(message))
        return self

    def last(self, kind):
        return next((one for one in reversed(self.look().told) if one["kind"] == kind), {})

    def until_time(self, time):
        wait_for(lambda: self.look().times and self.times[-1] == pytest.approx(time))


@pytest.mark.parametrize("kept", ["points", "states"])
def test_frames_show_where_the_body_was(run, kept):
    """y = 1 - g t²/2 in free fall, from the points as from the states, forward and back over an event."""
    if kept == "states":
        shutil.rmtree(run / "frames")
    frames = frames_of(run, Scene.parse(SCENE), "cpu")
    assert frames.numbers == list(range(11))
    for number in (0, 4, 8, 2):
        time = number / 20
        seen = frames.snapshot(number, time)
        assert seen.about["frame"] == number and seen.about["ground"] == -0.3
        assert seen.about["time"] == pytest.approx(time)
        body, stone = seen.parts
        height = decoded(body.blobs["records"].data, body.about).positions[:, 1].mean()
        assert height == pytest.approx(1 - 9.81 * time**2 / 2, abs=0.02 * body.about["upper"][1])
        assert stone.about["collider"] and stone.about["pose"][12] == 3


def test_discs_of_points_cover_the_surface(run):
    """Surfels of the run itself have the same sizes: both are made by the same rule at the start."""
    points = frames_of(run, Scene.parse(SCENE), "cpu").snapshot(0, 0.0)
    shutil.rmtree(run / "frames")
    states = frames_of(run, Scene.parse(SCENE), "cpu").snapshot(0, 0.0)
    assert points.parts[0].about["finest"] == pytest.approx(states.parts[0].about["finest"], rel=1e-3)


def test_it_plays_to_the_end_and_can_be_sought(run):
    rows = rows_of(run / "run.jsonl")
    with Watcher(run) as watcher:
        scene, history = watcher.last("scene"), watcher.last("history")
        assert scene["mode"] == "run" and scene["duration"] == 0.5 and scene["title"].startswith("A ball")
        assert history["kinetic"] == [row["kinetic"] for row in rows]
        assert history["volume"][0] == 1.0
        wait_for(lambda: watcher.last("scene")["paused"])
        watcher.until_time(0.5)
        assert watcher.times == sorted(watcher.times) and len(watcher.times) >= 5
        watcher.ask(do="seek", time=0.26, n=3)
        watcher.until_time(0.25)  # the last frame up to then
        wait_for(lambda: watcher.last("numbers")["kinetic"] == rows[5]["kinetic"])
        watcher.ask(do="step")
        watcher.until_time(0.3)
        watcher.ask(do="seek", time=-5)
        watcher.until_time(0.0)
        watcher.ask(do="melt", body="ball")
        wait_for(lambda: "not touched" in watcher.last("notice").get("text", ""))
        watcher.ask(do="speed", factor=0.05)
        watcher.ask(do="pause", on=False)
        wait_for(lambda: watcher.last("scene")["speed"] == 0.05 and not watcher.last("scene")["paused"])
        watcher.ask(do="restart")
        watcher.until_time(0.0)


def test_lost_and_broken_frames_are_said_and_passed_over(run):
    (run / "frames" / "0003.ply").unlink()
    (run / "frames" / "0005.ply").write_bytes((run / "frames" / "0005.ply").read_bytes()[:900])
    (run / "frames" / "0000.ply").write_text("no points")
    with (run / "run.jsonl").open("a") as log:
        log.write('{"frame": 11, "ti')
    with Watcher(run) as watcher:
        wait_for(lambda: watcher.last("scene")["paused"])
        watcher.until_time(0.5)
        assert not {0.0, 0.15, 0.25} & set(watcher.times)
        said = " ".join(one["text"] for one in watcher.told if one["kind"] == "notice")
        assert "1 of 11 frames are not there: 3" in said and "0005.ply" in said and "0000.ply" in said


def test_runs_that_cannot_be_played_are_refused_in_words(run):
    for path in (run / "frames").iterdir():
        path.write_text("nothing")
    playback = Playback(run, Hub(), "cpu")
    with pytest.raises(px.PhyxelError, match="none of the frames"):
        playback.start()
    playback.stop()
    shutil.rmtree(run / "frames")
    for path in (run / "checkpoints").glob("*.npz"):
        path.unlink()
    with pytest.raises(px.PhyxelError, match="neither points nor states"):
        Playback(run, Hub())
    with pytest.raises(px.PhyxelError, match="no run there"):
        Playback(run / "nowhere", Hub())


def test_what_is_saved_of_a_run(run):
    scene, shown = recording_of(run, "cpu")
    assert shown[0][1]["kind"] == "history" and scene["duration"] == 0.5
    assert np.allclose([at for at, _ in shown[1:]], np.arange(11) / 20)
    log = Log(run, Scene.parse(SCENE), list(range(11)))
    assert [log.index(time) for time in (-1.0, 0.0, 0.049, 0.05, 9.0)] == [0, 0, 0, 1, 10]
