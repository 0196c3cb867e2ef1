"""Rigid bodies as users have them: options, errors, scenes, the viewer, checkpoints, what touches first."""

import json
from pathlib import Path

import numpy as np
import pytest

import phyxel as px
from phyxel.view.panels import about_bodies, with_model
from phyxel.view.snapshots import Snapshots
from tests.worlds import world_of

SCENE = """
seconds = 0.4
rate = 60
[[body]]
shape = "bear"
points = 1000
model = "rigid"
size = 0.3
friction = 0.3
restitution = 0.4
at = [0.0, 0.3, 0.0]
spin = [1.0, 2.0, 3.0]
material = { preset = "steel" }
[[collider]]
kind = "ground"
[[event]]
at = 0.1
hold = { name = "hand", near = [0.0, 0.5, 0.0], to = [0.1, 0.0, 0.0], turn = [0.0, 40.0, 0.0], over = 0.15 }
[[event]]
at = 0.3
release = "hand"
"""


def box(**more) -> px.Body:
    return px.Body(px.load("box", points=600), model="rigid", **more)


def test_a_scene_plays_it_and_a_checkpoint_resumes_to_the_bit(tmp_path: Path) -> None:
    """In the middle of a hold that turns it about a place of its surface."""
    scene = px.Scene.parse(SCENE)
    world, again = scene.world(device="cpu"), scene.world(device="cpu")
    bear = world.bodies[0]
    assert (bear.friction, bear.restitution) == (0.3, 0.4)
    world.advance(0.17)
    world.save(tmp_path / "then.npz")
    world.advance(0.23)
    again.restore(tmp_path / "then.npz")
    again.advance(0.23)
    assert again.bodies[0].positions.tobytes() == bear.positions.tobytes()
    assert again.bodies[0].velocities.tobytes() == bear.velocities.tobytes()
    distances = np.linalg.norm(bear.positions[:, None] - bear.positions, axis=2)
    np.testing.assert_allclose(distances, np.linalg.norm(bear.birth[:, None] - bear.birth, axis=2), atol=1e-12)


def test_pages_pictures_and_probes_see_it(tmp_path: Path) -> None:
    """Surfels go as the nodes do: x = c + R (X − c₀), in single precision."""
    scene = px.Scene.parse(SCENE)
    world = scene.world(device="cpu")
    world.advance(0.1)
    bear = world.bodies[0]
    told = about_bodies(world)[0]
    assert told["model"] == "rigid" and told["cannot"].keys() == {"melt", "yield", "crack"}
    json.dumps(told)
    assert Snapshots(world).snapshot(0).parts
    assert with_model(scene, "bear", "modal", 60).content.body[0].model == "modal"
    skin = bear.placed_cloud()
    np.testing.assert_allclose(bear.surface.positions, skin + bear.displacement_at(skin), atol=1e-6)
    np.testing.assert_allclose(bear.strain_at(bear.birth[:5]), 0, atol=1e-14)
    assert not bear.stress.any()
    px.export.ply(bear, tmp_path / "bear.ply")
    assert (tmp_path / "bear.ply").stat().st_size > 12 * len(skin)


@pytest.mark.parametrize("material", [px.Material.stone(), px.Material.clay()], ids=["stone", "clay"])
def test_it_may_be_of_what_breaks_and_yields_elsewhere(material) -> None:
    """Of a material it has the density alone: no crack, no dent, whatever hits it."""
    body = box(material=material, at=(0, 2, 0))
    world = world_of(body, px.Ground())
    world.advance(1.0)
    assert body.masses.sum() == pytest.approx(material.density * body.volumes.sum())
    assert world.bodies == [body] and not body.is_brittle


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"material": px.Material(viscosity=10.0)}, "cannot melt .material.viscosity., it never bends"),
        ({"basis": "quadratic"}, 'not for model = "rigid"; needs model = "galerkin" or "modal"'),
        ({"integrator": "implicit"}, "takes exact steps only; leave it out"),
        ({"restitution": 1.5}, r"restitution = 1.5: give 0 .it stays. to 1"),
        ({"restitution": "high"}, "restitution = high: give 0"),
    ],
)
def test_what_it_cannot_do_is_said(options, said) -> None:
    with pytest.raises(px.PhyxelError, match=said):
        box(**options)


def test_deeds_that_need_bending_are_refused() -> None:
    body = box()
    world_of(body)
    for deed, said in (
        (body.melt, "cannot melt"),
        (lambda: body.cut((0, 0, 0), (1, 0, 0)), "cannot crack, it never bends"),
        (lambda: px.modes(body), "never bends; ask a body of another model"),
    ):
        with pytest.raises(px.PhyxelError, match=said):
            deed()


def test_few_nodes_are_enough() -> None:
    """However many are asked for: they carry nothing but pushes and hands."""
    assert len(box().birth) <= 110 and len(box(nodes="auto").birth) <= 110 and len(box(nodes=20).birth) < 40


def test_another_density_leaves_it_as_fast_as_it_was() -> None:
    body = box(spin=(1, 2, 3), velocity=(1, 0, 0))
    world_of(body)
    before, mass = body.velocities, body.diagnostics()["mass"]
    body.material = body.material.but(density=2 * body.material.density)
    np.testing.assert_allclose(body.velocities, before, atol=1e-12)
    assert body.diagnostics()["mass"] == pytest.approx(2 * mass, rel=1e-12)


@pytest.mark.parametrize("name", ["bar", "sphere"])
def test_a_linear_field_turns_it_exactly(name: str) -> None:
    """a = (0, k x, 0): L̇_z = ∫ρ k x² dV about the middle, though nodes stand on the surface and not in the middle of
    what they stand for. The second kick is that of a body turned by k t²/2 = 5e-7."""
    body = px.Body(px.load(name, points=600), model="rigid", at=(0, 0, 0), place="center")
    world = px.World(gravity=(0, 0, 0), device="cpu")
    world.add(body)
    world.add(px.Field(lambda x, v, t: np.stack([0 * x[:, 0], x[:, 0], 0 * x[:, 0]], axis=1)))
    world.advance(1e-3)
    expected = 1e-3 * body.material.density * body.made.moments.second[0, 0]
    assert body.diagnostics()["angular_momentum"][2] == pytest.approx(expected, rel=1e-6)
