"""Scans that come to a world: where they stand, how large, and that they are part of the saved scene."""

from pathlib import Path

import numpy as np
import pytest

from phyxel.scene import Scene
from phyxel.view.uploads import Open
from tests.view.boxes import BOX
from tests.view.driven import Driven, differs
from tests.view.page.test_stage import cube


def visited(folder: Path, size: float, text: str = BOX) -> Driven:
    """A world into which a cube of this size was dropped."""
    driven = Driven(Scene.parse(text, "visited"))
    driven.ask(do="speed", factor=1.0)
    driven.go_on(3)
    (folder / "cube.ply").write_bytes(cube(size))
    driven.live.obey(1, Open(name="cube.ply", path=folder / "cube.ply"))
    return driven


@pytest.mark.parametrize(("size", "shown"), [(0.1, 0.1), (0.3, 0.3), (0.002, 0.2), (180.0, 0.2)])
def test_a_guest_stands_beside_the_others_as_large_as_it_fits(size, shown, tmp_path):
    driven = visited(tmp_path, size)
    host, guest = driven.world.bodies
    assert guest.name == "cube" and guest.whole == "cube"
    there, own = host.surface.positions, guest.surface.positions
    assert np.ptp(own, axis=0) == pytest.approx(shown, rel=0.02)
    assert own[:, 0].min() > there[:, 0].max(), "they do not touch"
    assert 0 < own[:, 1].min() < 0.1 * shown, "just above the ground"
    assert driven.hub.of("opened")
    driven.go_on(30)
    assert not driven.hub.of("blown") and guest.surface.positions[:, 1].min() < 0.02 * shown


def test_guests_are_in_the_saved_scene_and_undo_takes_them_away(tmp_path):
    driven = visited(tmp_path, 0.2)
    driven.live.obey(1, Open(name="cube.ply", path=tmp_path / "cube.ply"))
    assert [body.name for body in driven.world.bodies] == ["a", "cube", "cube 2"]
    driven.go_on(4)
    driven.ask(do="melt", body="cube")
    driven.go_on(4)
    assert not driven.hub.of("blown") and differs(driven, driven.saved()) == ""
    driven.ask(do="undo")
    assert len(driven.world.bodies) == 3 and not driven.world.bodies[1].has_melted
    driven.ask(do="undo")
    driven.ask(do="undo")
    assert [body.name for body in driven.world.bodies] == ["a"]
    assert [event for event in driven.saved().content.event if event.add] == []


def test_what_cannot_be_read_changes_nothing(tmp_path):
    driven = visited(tmp_path, 0.1)
    (tmp_path / "torn.ply").write_text("ply\nformat ascii 1.0\nelement")
    (tmp_path / "odd.toml").write_text("[[boody]]")
    for name in ("torn.ply", "odd.toml", "gone.ply"):
        world, said = driven.world, len(driven.hub.of("notice"))
        driven.live.obey(1, Open(name=name, path=tmp_path / name))
        assert driven.world is world and len(driven.hub.of("notice")) > said
        assert name in driven.hub.of("notice")[-1]["text"]
    assert len(driven.world.bodies) == 2
