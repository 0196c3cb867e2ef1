"""A scene that the command line has changed: what is in it, and the file that is saved of it."""

import tomllib

import numpy as np
import pytest

import phyxel as px
from phyxel.scene import Scene, gallery, gallery_names

TEXT = """# my own words
title = "A bear falls"
[[body]]
shape = "bear"
points = 1000
nodes = 40
{more}
[[collider]]
kind = "ground"
"""


def tower(path, wide=2.0, high=9.0, off=(50.0, -3.0, 8.0)):
    """A block on a corner of its own, upright along z."""
    corners = np.array([(x, y, z) for x in (0, wide) for y in (0, wide) for z in (0, high)]) + off
    quads = [(1, 2, 4, 3), (5, 7, 8, 6), (1, 5, 6, 2), (3, 4, 8, 7), (1, 3, 7, 5), (2, 6, 8, 4)]
    lines = ["v {} {} {}".format(*x) for x in corners] + ["f {} {} {} {}".format(*q) for q in quads]
    path.write_text("\n".join(lines) + "\n")
    return path


def again(scene: Scene, folder) -> Scene:
    """Read from the file that is saved, in another folder."""
    folder.mkdir(exist_ok=True)
    (folder / "scene.toml").write_text(scene.toml(), encoding="utf-8")
    return Scene.read(folder / "scene.toml")


@pytest.mark.parametrize(
    "more",
    ["", "at = [1, 0.5, 2]", 'at = [1, 0.5, 2]\nplace = "center"', 'at = [1, 0.5, 2]\nplace = "file"\nsize = 2.0'],
)
def test_a_scan_stands_where_the_shape_stood_as_large(more, tmp_path):
    plain = Scene.parse(TEXT.format(more=more))
    scan = plain.changed(model=tower(tmp_path / "tower.obj"), up="z")
    shape, body = (one.world("cpu").bodies[0].placed_cloud() for one in (plain, scan))
    size = np.ptp(shape, axis=0).max()
    assert np.ptp(body, axis=0) == pytest.approx([size * 2 / 9, size, size * 2 / 9], rel=0.02)
    for axis, spot in enumerate((np.mean, np.min, np.mean)):
        ends = [spot([x[:, axis].min(), x[:, axis].max()]) for x in (shape, body)]
        assert ends[1] == pytest.approx(ends[0], abs=0.02 * size)


def test_what_was_changed_is_in_the_file_and_in_its_title(tmp_path):
    plain = gallery("demo")
    changed = plain.changed(model=tower(tmp_path / "tower.obj"), seconds=0.5, nodes=50, video=False, up="z", units="cm")
    read = again(changed, tmp_path / "out")
    assert read.content == changed.content and read.fingerprint() == changed.fingerprint()
    part = read.content.body[0]
    assert (read.seconds, part.nodes, part.up, part.units) == (0.5, 50, "z", "cm")
    assert part.file == str(tmp_path / "tower.obj") and not read.content.output.video
    assert "tower.obj" in read.content.title and "bear" not in read.content.title.lower()


@pytest.mark.parametrize("name", gallery_names())
def test_every_scene_of_the_gallery_comes_back(name, tmp_path):
    scene = gallery(name)
    assert scene.toml() == scene.source  # as it was written
    changed = scene.changed(seconds=0.25)
    assert again(changed, tmp_path).content == changed.content


def test_the_users_own_text_is_kept_unless_something_was_changed():
    scene = Scene.parse(TEXT.format(more=""))
    assert scene.toml() == scene.source == scene.changed(nodes=40).toml()
    assert "my own words" not in scene.changed(nodes=41).toml()
    assert scene.changed(nodes=41).changed(nodes=40).toml() == scene.source


def test_files_beside_the_scene_are_found_from_elsewhere(tmp_path):
    tower(tmp_path / "tower.obj")
    (tmp_path / "mine.toml").write_text('[[body]]\nfile = "tower.obj"\nnodes = 40\n')
    scene = Scene.read(tmp_path / "mine.toml")
    read = again(scene, tmp_path / "out")
    assert tomllib.loads(scene.toml())["body"][0]["file"] == str(tmp_path / "tower.obj")
    assert np.array_equal(read.world("cpu").bodies[0].birth, scene.world("cpu").bodies[0].birth)
    assert read.fingerprint() == scene.fingerprint()


def test_changes_that_nothing_takes_are_refused(tmp_path):
    bear = Scene.parse(TEXT.format(more=""))
    with pytest.raises(px.PhyxelError, match="no body is made from a file that up"):
        bear.changed(up="z")
    scan = bear.changed(model=tower(tmp_path / "tower.obj"))
    with pytest.raises(px.PhyxelError, match="no body is a built-in shape"):
        scan.changed(model=tmp_path / "tower.obj")
