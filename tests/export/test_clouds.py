"""Points for others: what is written comes back through `px.load` as it was."""

import numpy as np
import pytest

import phyxel as px
from tests.export.bodies import SOFT


def test_points_come_back_as_they_were(bear, tmp_path):
    px.export.ply(bear, tmp_path / "bear.ply")
    back = px.load(tmp_path / "bear.ply")
    assert len(back) == 700
    assert np.array_equal(back.positions.astype(np.float32), np.asarray(bear.surface.positions, np.float32))
    assert np.abs(back.normals - bear.surface.normals).max() < 1e-5
    assert np.abs(np.linalg.norm(back.normals, axis=1) - 1).max() < 1e-5
    assert np.abs(back.colors - bear.surface.colors).max() <= 0.5001 / 255
    assert np.ptp(back.colors, axis=0).max() > 0.1, "the bear has colours"
    assert np.abs(back.positions - bear.cloud.positions).max() > 0.05, "it has moved"


def test_the_file_is_binary_ply_with_the_usual_names(bear, tmp_path):
    px.export.ply(bear, tmp_path / "bear.ply")
    header = (tmp_path / "bear.ply").read_bytes().split(b"end_header\n")[0].decode().splitlines()
    assert header[:2] == ["ply", "format binary_little_endian 1.0"]
    names = [line.split()[-1] for line in header if line.startswith("property")]
    assert names == ["x", "y", "z", "nx", "ny", "nz", "red", "green", "blue"]


def test_a_frame_holds_all_bodies(tmp_path):
    world = px.World()
    world.add(px.Body(px.load("sphere", points=300), nodes=60, material=SOFT, at=(-2, 0, 0)))
    world.add(px.Body(px.load("box", points=400), nodes=64, material=SOFT, at=(2, 0, 0)))
    for frame in world.play(seconds=0.04, fps=50):
        px.export.ply(frame, tmp_path / "new" / "folder" / f"{frame.index:04d}.ply")
    written = sorted((tmp_path / "new" / "folder").iterdir())
    assert [path.name for path in written] == ["0000.ply", "0001.ply", "0002.ply"]
    first, *_, last = (px.load(path) for path in written)
    assert len(first) == len(last) == 700
    assert (first.positions[:300, 0] < 0).all() and (first.positions[300:, 0] > 0).all()
    assert np.abs(last.positions - first.positions - [0, -0.5 * 9.81 * 0.04**2, 0]).max() < 1e-5


def test_normals_turn_with_the_body(tmp_path):
    body = px.Body(
        px.load("box", points=400), nodes=64, rotate=(0, 0, 30), spin=(0, 0, 1), material=SOFT.but(young=1e7)
    )
    world = px.World(gravity=(0, 0, 0))
    world.add(body)
    world.advance(0.5)
    px.export.ply(body, tmp_path / "box.ply")
    angle = np.deg2rad(30) + 0.5
    turn = np.array([[np.cos(angle), -np.sin(angle), 0], [np.sin(angle), np.cos(angle), 0], [0, 0, 1]])
    expected = px.load("box", points=400).normals @ turn.T
    assert np.abs(px.load(tmp_path / "box.ply").normals - expected).max() < 0.02


def test_a_ball_that_falls_keeps_its_outward_normals(tmp_path):
    body = px.Body(px.load("sphere", points=400), nodes=60, material=SOFT)
    world = px.World()
    world.add(body)
    world.advance(0.2)
    px.export.ply(body, tmp_path / "ball.ply")
    back = px.load(tmp_path / "ball.ply")
    outward = back.positions - back.positions.mean(axis=0)
    outward /= np.linalg.norm(outward, axis=1, keepdims=True)
    assert (outward * back.normals).sum(axis=1).min() > 0.99


def test_a_body_without_a_world_has_no_surface_to_write(tmp_path):
    body = px.Body(px.load("box", points=300), nodes=64)
    with pytest.raises(px.PhyxelError, match="world"):
        px.export.ply(body, tmp_path / "box.ply")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("write", [px.export.ply, px.export.mesh])
def test_what_cannot_be_written_says_so(write, cube, tmp_path):
    (tmp_path / "file").write_text("mine")
    with pytest.raises(px.PhyxelError, match="cannot be written"):
        write(cube, tmp_path / "file" / "out.ply")
    (tmp_path / "folder.ply").mkdir()
    with pytest.raises(px.PhyxelError, match="cannot be written"):
        write(cube, tmp_path / "folder.ply")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["file", "folder.ply"]
    assert (tmp_path / "file").read_text() == "mine"


def test_a_failed_write_leaves_the_old_file(bear, tmp_path, monkeypatch):
    path = tmp_path / "bear.ply"
    px.export.ply(bear, path)
    before = path.read_bytes()

    def full(*_args):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.replace", full)
    with pytest.raises(px.PhyxelError, match="space"):
        px.export.ply(bear, path)
    assert path.read_bytes() == before
    assert [one.name for one in tmp_path.iterdir()] == ["bear.ply"]
