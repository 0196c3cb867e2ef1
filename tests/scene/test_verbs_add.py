"""Bodies that come by an event."""

from pathlib import Path

import numpy as np
import pytest

from phyxel.errors import SceneError
from phyxel.scene import Scene

BALL = 'shape = "sphere"\nnodes = 40\npoints = 200\nsize = 0.2\nmaterial = { young = 2e4 }'
FIRST = f'rate = 60\n[[body]]\nname = "first"\n{BALL}\n[[collider]]\nkind = "ground"\n'
COMES = (
    '[[event]]\nat = 0.1\nadd = { name = "second", shape = "box", model = "%s", size = 0.1, nodes = 40, points = 200, '
    'at = [0.4, 0.3, 0], place = "center", velocity = [1, 0, 0], material = { young = 2e4 } }\n'
)
LATER = """
[[event]]
at = 0.15
body = "second"
hold = { name = "hand" }

[[event]]
at = 0.2
body = "second"
release = "hand"
"""


@pytest.mark.parametrize("model", ["phyxel", "modal"])
def test_a_body_that_comes_flies_from_then_on_and_later_events_find_it(model: str) -> None:
    """Until it is held its middle goes by v t − ½ g t²."""
    scene = Scene.parse(FIRST + COMES % model + LATER)
    world = scene.world("cpu")
    world.advance(0.09)
    assert [body.name for body in world.bodies] == ["first"]
    world.advance(0.05)
    second = world.bodies[1]
    t = world.time - 0.1
    middle = second.masses @ second.positions / second.masses.sum()
    np.testing.assert_allclose(middle, [0.4 + t, 0.3 - 0.5 * 9.81 * t * t, 0], rtol=0, atol=2e-3)
    world.advance(0.04)
    assert second.handles
    world.advance(0.1)
    assert not second.handles and second.velocities[:, 1].mean() < -0.3


@pytest.mark.parametrize("time", [0.05, 0.13, 0.3])
def test_a_run_is_resumed_before_and_after_it_has_come(time: float, tmp_path: Path) -> None:
    scene = Scene.parse(FIRST + COMES % "phyxel" + LATER)
    whole, resumed = scene.world("cpu"), scene.world("cpu")
    whole.advance(time)
    whole.save(tmp_path / "state.npz")
    resumed.restore(tmp_path / "state.npz")
    for world in (whole, resumed):
        world.advance(0.1)
    assert len(whole.bodies) == len(resumed.bodies)
    for one, other in zip(whole.bodies, resumed.bodies, strict=True):
        assert np.array_equal(one.positions, other.positions)


def test_files_of_bodies_that_come_are_found_wherever_the_scene_lies(tmp_path: Path) -> None:
    added = COMES.replace('shape = "box"', 'file = "box.ply"') % "phyxel"
    table = Scene.parse(FIRST + added, folder=tmp_path).content.table(tmp_path)
    assert table["event"][0]["add"]["file"] == str(tmp_path / "box.ply")


@pytest.mark.parametrize(
    ("event", "said"),
    [
        ('add = { shape = "box" }', "needs a name"),
        ('add = { shape = "box", name = "first" }', "has this name already"),
        ('add = { shape = "bix", name = "x" }', "box"),
        ('add = { shape = "box", name = "x", hold = [{ name = "h" }] }', "hold"),
        ('body = "second"\nlift = [0, 1, 0]', "no such body"),
    ],
)
def test_what_cannot_come_is_refused_before_the_run(event: str, said: str) -> None:
    with pytest.raises(SceneError, match=said):
        Scene.parse(f"{FIRST}[[event]]\nat = 0.1\n{event}\n").world("cpu")
