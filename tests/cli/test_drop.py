"""`phyxel drop`: one command from a scan to a video."""

from pathlib import Path

import numpy as np
import pytest

from phyxel.scene import Scene
from tests.cli.command_line import refused


def egg(path: Path, tall: float, middle=(0.0, 0.0, 0.0)) -> Path:
    """Points and normals on an egg that stands along z, so tall."""
    n = np.random.default_rng(1).normal(size=(800, 3))
    n /= np.linalg.norm(n, axis=1, keepdims=True)
    outward = n / (1, 1, 2)
    outward /= np.linalg.norm(outward, axis=1, keepdims=True)
    np.savetxt(path, np.hstack([middle + 0.25 * tall * n * (1, 1, 2), outward]))
    return path


def test_a_scan_becomes_a_video_and_a_scene_that_can_be_changed(phyxel, tmp_path):
    file = egg(tmp_path / "egg.xyz", 400.0, (900.0, 50.0, -3.0))
    code, _, errors = phyxel("drop", file, "--up", "z", "--units", "mm", "--nodes", "40", "--seconds", "0.05")
    assert code == 0, errors
    out = Path.cwd() / "out" / "egg"
    assert (out / "preview.mp4").stat().st_size > 0
    for words in ("40.0 cm", "12.0 cm", "40 nodes", "0.05 s", "young", "scene.toml"):
        assert words in errors
    assert errors.count("note:") == errors.count("nodes are fewer than") and "--up z" not in errors
    text = (out / "scene.toml").read_text()
    assert "#" in text
    (tmp_path / "mine.toml").write_text(text.replace("nodes = 40", "nodes = 50"))
    code, _, errors = phyxel("run", tmp_path / "mine.toml", "--no-video")
    assert code == 0, errors
    part = Scene.read(Path.cwd() / "out" / "mine" / "scene.toml").content.body[0]
    assert (part.nodes, part.up, part.units, part.file) == (50, "z", "mm", str(file))


def test_odd_sizes_are_only_hinted(phyxel, tmp_path):
    file = egg(tmp_path / "egg.xyz", 400.0)
    code, _, errors = phyxel("drop", file, "--nodes", "40", "--seconds", "0.02")
    assert code == 0, errors
    assert "note: egg: it is 400 m long" in errors and "--units mm" in errors and "y up (assumed)" in errors
    assert Scene.read(Path.cwd() / "out" / "egg" / "scene.toml").content.body[0].size is None


def test_shapes_drop_too_and_what_is_neither_is_refused(phyxel):
    code, _, errors = phyxel("drop", "sphere", "--nodes", "40", "--seconds", "0.02", "--out", "ball")
    assert code == 0, errors
    assert (Path.cwd() / "ball" / "preview.mp4").is_file()
    refused(phyxel("drop", "shpere"), '"shpere"', '"sphere"')
    refused(phyxel("drop", "nowhere.ply"), "nowhere.ply")
    refused(phyxel("drop", "bear", "--up", "z"), "built in")


@pytest.mark.parametrize("command", ["run", "modes"])
def test_units_and_up_are_of_the_file_that_takes_the_shapes_place(command, phyxel, tmp_path):
    file = egg(tmp_path / "egg.xyz", 400.0)
    scene = tmp_path / "own.toml"
    scene.write_text(
        'seconds = 0.02\n[[body]]\nshape = "box"\nnodes = 40\nmodel = "galerkin"\n[output]\nvideo = false\n'
    )
    options = ["--modes", "2"] if command == "modes" else []
    code, _, errors = phyxel(command, scene, "--model", file, "--up", "z", "--units", "mm", *options)
    assert code == 0, errors
    refused(phyxel(command, scene, "--up", "z"), "up", "file")
    refused(phyxel(command, scene, "--model", file, "--up", "upward"), "upward")


def test_what_was_run_is_gone_on_with_without_saying_it_again(phyxel, tmp_path):
    file = egg(tmp_path / "egg.xyz", 1.0)
    scene = tmp_path / "own.toml"
    scene.write_text('seconds = 0.02\n[[body]]\nshape = "box"\nnodes = 40\npoints = 300\n[output]\nvideo = false\n')
    assert phyxel("run", scene, "--model", file, "--nodes", "30")[0] == 0
    code, _, errors = phyxel("run", scene, "--resume", "--seconds", "0.05")
    assert code == 0, errors
    part = Scene.read(Path.cwd() / "out" / "own" / "scene.toml").content.body[0]
    assert (part.file, part.nodes) == (str(file), 30)
    assert len(list((Path.cwd() / "out" / "own" / "frames").iterdir())) == 4


def test_a_body_below_the_ground_is_told_of(phyxel, tmp_path):
    scene = tmp_path / "deep.toml"
    scene.write_text(
        'seconds = 0.02\n[[body]]\nshape = "box"\nnodes = 40\nat = [0, -3, 0]\n[[collider]]\nkind = "ground"\n'
        "[output]\nvideo = false\n"
    )
    code, _, errors = phyxel("run", scene)
    assert code == 0, errors
    assert errors.count("note: box: reaches 3.00 m below the ground") == 1
