"""What `phyxel view` makes of what it is given."""

from pathlib import Path

import numpy as np
import pytest

import phyxel as px
from phyxel.scene import Scene
from phyxel.scene.around import GAP
from phyxel.view.opened import opened


def ball(count=2000, radius=0.3, seed=0):
    """Points and normals on a sphere."""
    n = np.random.default_rng(seed).normal(size=(count, 3))
    n /= np.linalg.norm(n, axis=1, keepdims=True)
    return radius * n, n


def written(path: Path, x, n=None) -> Path:
    np.savetxt(path, x if n is None else np.hstack([x, n]))
    return path


def test_scenes_and_gallery_names_are_scenes(tmp_path):
    scene = opened("demo", nodes=77)
    assert isinstance(scene, Scene) and scene.content.body[0].nodes == 77
    path = tmp_path / "mine.toml"
    path.write_text('[[body]]\nshape = "box"\n')
    assert opened(str(path)).name == "mine"


def test_a_bare_scan_stands_soft_just_above_the_ground(tmp_path):
    """E = 60 ρ g h: a pillar of it sags by Δh/h = ρ g h / 2E = 1/120, a ball on its small footing by more."""
    x, n = ball()
    scene = opened(str(written(tmp_path / "ball.xyz", np.add(x, (50.0, 7.0, -3.0)), n)))
    part = scene.content.body[0]
    assert part.model == "phyxel" and part.nodes == 800 and part.size is None
    assert part.material.young == pytest.approx(60 * 1000 * 9.81 * 0.6, rel=0.01)
    world = scene.world("cpu")
    surface = world.bodies[0].surface.positions
    assert surface[:, 1].min() == pytest.approx(GAP * 0.6, abs=0.003)
    assert np.abs(surface.mean(axis=0)[[0, 2]]).max() < 0.02
    # It may fall by the gap and sag by a few per cent of its height, and stays whole.
    world.advance(0.4)
    after = world.bodies[0].surface.positions
    assert -0.01 < after[:, 1].min() < GAP * 0.6
    assert 0.9 < np.ptp(after[:, 1]) / np.ptp(surface[:, 1]) < 1.02


def test_sizes_that_cannot_be_metres_are_changed_and_it_is_said(tmp_path):
    x, n = ball(radius=90.0)
    scene = opened(str(written(tmp_path / "millimetres.xyz", x, n)))
    assert scene.content.body[0].size == 1.0
    assert "180 m large" in scene.content.title and "shown 1.00 m large" in scene.content.title
    x, n = ball(radius=0.05)
    assert opened(str(written(tmp_path / "small.xyz", x, n))).content.body[0].size is None


def test_open_and_flat_surfaces_become_particles(tmp_path):
    x, n = ball()
    cap = x[:, 1] > 0.1
    face = written(tmp_path / "face.xyz", x[cap], n[cap])
    plane = written(tmp_path / "plane.xyz", x * (1, 0, 1))
    for what in (str(face), str(plane), "cloth"):
        assert opened(what).content.body[0].model == "particles", what
    assert opened("bear").content.body[0].model == "phyxel"


def test_a_run_is_its_folder(tmp_path):
    run = tmp_path / "out"
    (run / "frames").mkdir(parents=True)
    (run / "run.jsonl").write_text("")
    assert opened(str(run)) == run and opened(str(run / "run.jsonl")) == run
    with pytest.raises(px.PhyxelError, match="did you mean"):
        opened(str(run / "frames"))
    with pytest.raises(px.PhyxelError, match="as it was"):
        opened(str(run), nodes=100)


@pytest.mark.parametrize(
    ("what", "words"),
    [
        ("dmeo", 'did you mean "demo"'),
        ("baer", 'did you mean "bear"'),
        ("nothing-like-it", "phyxel gallery"),
        ("missing.ply", "no such file"),
        ("folder/missing", "no such file"),
    ],
)
def test_what_is_unknown_is_refused_with_what_was_meant(what, words):
    with pytest.raises(px.PhyxelError, match=words):
        opened(what)


def test_files_that_are_no_clouds_are_refused(tmp_path):
    text = tmp_path / "notes.txt"
    text.write_text("no points here")
    with pytest.raises(px.PhyxelError, match=r"notes\.txt"):
        opened(str(text))
    (tmp_path / "scan.ply").write_text("ply\n")
    with pytest.raises(px.PhyxelError, match=r'did you mean "scan\.ply"'):
        opened(str(tmp_path / "scna.ply"))
    with pytest.raises(px.PhyxelError, match="--model"):
        opened("bear", model=text)
