"""A run in Python and in a notebook: played, read again, its card and its video."""

import base64
import os
from xml.etree import ElementTree

import pytest

import phyxel as px
from phyxel import progress
from phyxel.run import video
from phyxel.run.video import Video

SCENE = """
seconds = 0.08
fps = 25
[[body]]
shape = "sphere"
nodes = 64
points = 500
[output]
points = []
width = 64
height = 48
"""


@pytest.fixture(scope="module")
def run(tmp_path_factory) -> px.Run:
    run = px.Run(px.Scene.parse(SCENE, name="ball & <b>"), tmp_path_factory.mktemp("runs") / "ball")
    told: list[tuple[str, int, int]] = []
    with progress.heard_by(lambda *one: told.append(one)):
        assert run.play() == 0
    assert [one for one in told if one[0].startswith("playing")] == [("playing ball & <b>", k, 3) for k in range(4)]
    return run


def table(run: px.Run) -> dict[str, str]:
    root = ElementTree.fromstring(run._repr_html_())
    return {row[0].text or "": row[1].text or "" for row in root.iter("tr")}


def test_the_card_of_a_run_has_its_last_picture_and_what_it_took(run):
    rows = table(run)
    assert rows["frames"] == "3 of 3, 25 a second"
    assert rows["time"] == "0.08 s simulated"
    assert rows["folder"] == str(run.folder)
    assert "physics" in rows["a frame"]
    assert 'src="data:image/png;base64,' in run._repr_html_()
    assert repr(run).startswith("<Run ball & <b>: frames 3 of 3")


def test_a_run_that_was_not_played_has_a_table_and_says_so(tmp_path):
    rows = table(px.Run(px.Scene.parse(SCENE), tmp_path / "new"))
    assert rows["frames"] == "0 of 3, 25 a second"
    assert "no frame" in rows["no picture"]


def test_a_finished_run_is_read_from_its_folder(run):
    again = px.Run.read(str(run.folder))
    assert table(again) == table(run)
    assert again.video().path == run.video().path
    assert again.play(resume=True) == 3


def test_a_cell_plays_the_video_and_others_take_its_path(run):
    film = run.video()
    (element,) = ElementTree.fromstring(f"<p>{film._repr_html_()}</p>")
    assert element.tag == "video"
    data = base64.b64decode(element.get("src", "").removeprefix("data:video/mp4;base64,"))
    assert data == film.path.read_bytes()
    assert data[4:8] == b"ftyp"
    assert os.fspath(film) == str(run.folder / "preview.mp4")
    assert os.fspath(film) in repr(film)


def test_a_video_too_large_for_a_cell_says_what_to_do(run, monkeypatch):
    monkeypatch.setattr(video, "MOST_INLINE", run.video().path.stat().st_size - 1)
    html = run.video()._repr_html_()
    assert "<video" not in html
    assert "smaller width and height" in html


def test_a_video_that_is_gone_is_told_of(tmp_path):
    assert "is gone; play the run again" in Video(tmp_path / "a & b.mp4")._repr_html_()


def test_a_run_without_video_says_what_to_write(tmp_path):
    scene = px.Scene.parse(SCENE).changed(video=False)
    with pytest.raises(px.PhyxelError, match=r"no video yet; say video = true in \[output\]"):
        px.Run(scene, tmp_path).video()
