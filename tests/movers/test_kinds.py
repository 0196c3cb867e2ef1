"""The table of models: all that others know of a model stands in its row."""

import json
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import phyxel as px
from phyxel.errors import SceneError
from phyxel.models.kind import KINDS, ModelKind, public_kinds
from phyxel.view import commands
from phyxel.view.panels import about_bodies, with_model
from phyxel.view.snapshots import Snapshots
from tests.movers.drift import drift_known

G = 9.81
SCENE = """
seconds = 0.2
rate = 60
[[body]]
shape = "box"
points = 600
nodes = 80
model = "drift"
at = [0.0, 2.0, 0.0]
place = "center"
[[collider]]
kind = "ground"
[[event]]
at = 0.1
hold = { name = "hand", to = [0.3, 0.0, 0.0], over = 0.05 }
[[event]]
at = 0.2
release = "hand"
"""


@pytest.fixture
def drift() -> Iterator[ModelKind]:
    with drift_known() as kind:
        yield kind


def test_one_row_and_a_scene_moves_it(drift: ModelKind, tmp_path: Path) -> None:
    """Stepping, holds, a checkpoint, a picture, files and the viewer's state of a model that only its row tells of."""
    scene = px.Scene.parse(SCENE)
    world = scene.world(device="cpu")
    body = world.bodies[0]
    world.advance(0.1)
    fallen = body.positions - body.birth
    np.testing.assert_allclose(fallen, np.broadcast_to((0, -0.5 * G * 0.1**2, 0), fallen.shape), atol=1e-12)
    world.save(tmp_path / "then.npz")
    world.advance(0.1)
    led = body.positions - body.birth
    np.testing.assert_allclose(led, fallen + np.array([0.3, 0, 0]), atol=1e-12)

    again = scene.world(device="cpu")
    again.restore(tmp_path / "then.npz")
    again.advance(0.1)
    assert again.bodies[0].positions.tobytes() == body.positions.tobytes()

    np.testing.assert_allclose(body.surface.positions, body.placed_cloud() + led[0], atol=1e-6)
    np.testing.assert_allclose(body.displacement_at(body.birth[:3]), led[:3], atol=1e-9)
    assert body.diagnostics()["mass"] == pytest.approx(body.masses.sum())
    assert world.integrator == "exact" and len(world.pieces()) == 1

    picture = px.stage(world, width=160, height=120).draw(world)
    assert len(np.unique(picture[..., :3].reshape(-1, 3), axis=0)) > 50
    px.export.ply(body, tmp_path / "box.ply")
    assert (tmp_path / "box.ply").stat().st_size > 600 * 12

    told = about_bodies(world)[0]
    assert told["model"] == "drift" and told["cannot"].keys() == {"melt", "yield", "crack"}
    json.dumps(told)
    assert Snapshots(world).snapshot(0).parts


def test_what_its_row_says_is_refused(drift: ModelKind) -> None:
    box = px.load("box", points=300)
    for options, said in (
        ({"integrator": "implicit"}, 'model = "drift" takes exact steps only'),
        ({"basis": "quadratic"}, 'not for model = "drift"; needs model = "galerkin" or "modal"'),
        ({"links": 8}, 'needs model = "particles"'),
        ({"material": px.Material(strength=1e4)}, "cannot crack .material.strength., it never bends; "),
        ({"material": px.Material(yield_strain=0.1)}, 'cannot yield, it never bends; "phyxel" and "galerkin" do'),
        ({"material": px.Membrane.cotton()}, 'a Membrane is for model = "particles"'),
    ):
        with pytest.raises(px.PhyxelError, match=said):
            px.Body(box, nodes=40, model="drift", **options)
    body = px.Body(box, nodes=40, model="drift")
    px.World(device="cpu").add(body)
    with pytest.raises(px.PhyxelError, match=r'cannot melt .material.viscosity., it never bends; "phyxel" does'):
        body.melt()
    with pytest.raises(px.PhyxelError, match="cannot crack, it never bends"):
        body.cut((0, 0, 0), (1, 0, 0))


def test_scenes_and_pages_ask_for_it_by_its_name(drift: ModelKind) -> None:
    """Only while it stands in the table."""
    word = json.dumps({"do": "model", "body": "box", "model": "drift"})
    assert commands.parse(word).model == "drift"
    scene = with_model(px.Scene.parse(SCENE), "box", "phyxel", None)
    assert with_model(scene, "box", "drift", 30).content.body[0].model == "drift"
    del KINDS["drift"]
    with pytest.raises(SceneError, match=r"body.0..model = .drift.: not known; there are phyxel, galerkin"):
        px.Scene.parse(SCENE)
    with pytest.raises(px.PhyxelError):
        commands.parse(word)
    KINDS["drift"] = drift


def test_rows_agree_with_each_other() -> None:
    """Whom one meets meets it, and crumbs are of a model that there is, which never bends."""
    for kind in KINDS.values():
        assert all(kind.name in KINDS[other].meets for other in kind.meets)
        assert not kind.crumbs or not KINDS[kind.crumbs].bends
        assert kind.can("crack") == bool(kind.crumbs) and issubclass(kind.material, px.Material)
        assert isinstance(kind.usual(), kind.material)
    assert [kind.name for kind in public_kinds()] == ["phyxel", "galerkin", "modal", "particles", "rigid"]
