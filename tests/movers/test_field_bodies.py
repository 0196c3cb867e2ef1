"""Galerkin and modal bodies, as a sceptical user takes them: odd holds, odd places, odd moments."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

import phyxel as px
from phyxel.errors import SceneError

MATERIAL = px.Material(young=2e5, poisson=0.3, density=1000.0, damping=1e-3)
LEFT, RIGHT = px.Box((-1, -1, -1), (0.12, 1, 1)), px.Box((0.97, -1, -1), (2, 1, 1))
MODELS = pytest.mark.parametrize("model", ["galerkin", "modal"])
G = np.array([0.0, -9.81, 0.0])


def bar(model: str, gravity: tuple[float, ...] = (0.0, 0.0, 0.0), **options) -> tuple[px.World, px.Body]:
    """A bar, 1 m long and 0.25 m thick, from x = 0 on."""
    world = px.World(gravity=gravity, device="cpu")
    body = px.Body(px.load("bar"), nodes=60, model=model, **{"material": MATERIAL} | options)
    world.add(body)
    return world, body


@MODELS
@pytest.mark.parametrize("end", [LEFT, px.Spot((0.0, 0.0, 0.0))], ids=["clamped", "by a point"])
def test_a_checkpoint_amid_holds_goes_on_with_the_same_bits(model: str, end: px.Box | px.Spot, tmp_path: Path) -> None:
    def made() -> tuple[px.World, px.Body]:
        world, body = bar(model, tuple(G))
        base = body.fix(end)
        assert len(base.points) != 2  # three and more clamp the modes
        held = []
        world.at(0.05, lambda _: held.append(body.drag(RIGHT, [(0.2, (0, 0.1, 0))])))
        world.at(0.15, lambda _: body.release(held[0]))
        world.at(0.2, lambda _: body.release(base))
        return world, body

    world, body = made()
    for name, time in (("held", 0.1), ("free", 0.22)):
        world.advance(time - world.time)
        world.save(tmp_path / f"{name}.npz")
    world.advance(0.25 - world.time)
    for name in ("held", "free"):
        other, again = made()
        other.restore(tmp_path / f"{name}.npz")
        for time in (0.22, 0.25):  # steps of the same length
            other.advance(max(0.0, time - other.time))
        np.testing.assert_array_equal(again.positions, body.positions, err_msg=name)
        np.testing.assert_array_equal(again.surface.positions, body.surface.positions, err_msg=name)


def test_what_a_model_cannot_move_is_refused_and_nothing_changes() -> None:
    world, body = bar("modal")
    body.fix(LEFT)
    for change in (lambda: body.change(yield_strain=0.1, over=1.0), lambda: body.melt()):
        with pytest.raises(px.PhyxelError, match='bar: model = "modal" cannot'):
            change()
    with pytest.raises(px.PhyxelError, match="cannot yield"):
        body.material = MATERIAL.but(yield_strain=0.1)
    assert body.material == MATERIAL
    world.advance(0.02)
    with pytest.raises(px.PhyxelError, match="cannot yield"):
        bar("modal", material=MATERIAL.but(yield_strain=0.1))
    with pytest.raises(px.PhyxelError, match="cannot melt"):
        bar("galerkin", material=MATERIAL.but(viscosity=10.0))


@pytest.mark.parametrize(
    ("model", "event"),
    [
        ("galerkin", "melt = {}"),
        ("galerkin", "material = {viscosity = 10.0}"),
        ("modal", "material = {yield_strain = 0.1}"),
    ],
)
def test_a_scene_is_refused_when_it_is_read_not_when_it_gets_there(tmp_path: Path, model: str, event: str) -> None:
    path = tmp_path / "scene.toml"
    path.write_text(f'[[body]]\nshape = "bar"\nnodes = 60\nmodel = "{model}"\n[[event]]\nat = 9.0\n{event}\n')
    with pytest.raises(SceneError, match=rf'event\[0\].*model = "{model}" cannot'):
        px.Scene.read(path).world("cpu")


@MODELS
def test_pulling_at_the_base_disturbs_nothing_else(model: str) -> None:
    """The base is held twice over, as a face in the mean: the point goes its way, and its coefficient by no more than
    three times that. Sound crosses the bar in 1 m / 14 m/s; the other end knows of nothing in this time."""
    speeds = []
    for pulled in (False, True):
        world, body = bar(model)
        body.fix(LEFT)
        if pulled:
            body.drag([int(np.argmin(body.birth[:, 0]))], (0, 1e-3, 0))
        world.advance(0.03)
        speeds.append(np.abs(body.velocities).max())
    assert speeds[0] == 0
    assert speeds[1] < 3 * 1e-3 / (1 / 60)


@MODELS
def test_a_body_held_everywhere_stays_and_then_falls(model: str) -> None:
    world, body = bar(model, tuple(G))
    handle = body.fix(np.arange(len(body.birth)))
    world.advance(0.05)
    np.testing.assert_allclose(body.positions, body.birth, atol=1e-12)
    body.release(handle)
    world.advance(0.1)
    np.testing.assert_allclose(
        body.displacement_at(body.birth), np.tile(G * 0.1**2 / 2, (len(body.birth), 1)), atol=1e-9
    )


@MODELS
def test_a_spinning_body_falls_along_a_parabola(model: str) -> None:
    """Its middle of mass does, exactly, and what it loses in height it gains in speed; with elastic energy on top of
    that only what damping and the step leave of a stretch by the spin."""
    velocity = np.array([1.0, 2.0, 0.0])
    world, body = bar(model, tuple(G), velocity=velocity, spin=(0.5, 1.0, 3.0))
    first = body.diagnostics()
    np.testing.assert_allclose(first["momentum"], first["mass"] * velocity, atol=1e-9 * first["mass"])
    np.testing.assert_allclose(first["potential"], 0, atol=1e-9 * first["mass"])  # its middle starts at y = 0
    world.advance(0.4)
    last = body.diagnostics()
    np.testing.assert_allclose(last["momentum"], last["mass"] * (velocity + 0.4 * G), atol=1e-9 * last["mass"])
    height = 0.4 * velocity[1] + G[1] * 0.4**2 / 2
    assert last["potential"] == pytest.approx(-G[1] * last["mass"] * height, abs=1e-9 * last["mass"])
    energies = [sum(each[name] for name in ("kinetic", "elastic", "potential")) for each in (first, last)]
    assert energies[1] <= energies[0]
    assert energies[1] == pytest.approx(energies[0], rel=0.01)


@pytest.mark.parametrize(("model", "basis"), [("galerkin", "linear"), ("modal", "linear"), ("galerkin", "quadratic")])
def test_wind_presses_with_its_whole_force(model: str, basis: str) -> None:
    """½ ρ c A w² on the face against it; nothing moves yet, so a short step takes all of it. The surfels' area is that
    of the bar to 2 %."""
    world, body = bar(model, basis=basis)
    wind = px.Wind(velocity=(0.0, 0.0, 10.0))
    world.add(wind)
    force = body.masses @ wind.acceleration(body, body.positions, body.velocities, 0.0)
    world.advance(1e-3)
    np.testing.assert_allclose(body.diagnostics()["momentum"], 1e-3 * force, rtol=1e-9, atol=1e-12)
    assert force[2] == pytest.approx(0.5 * 1.2 * 0.25 * 1.0 * 10.0**2, rel=0.02)


@MODELS
def test_an_even_field_is_gravity(model: str) -> None:
    world, body = bar(model)
    world.add(px.Field(lambda x, v, t: G))
    world.advance(0.1)
    np.testing.assert_allclose(
        body.displacement_at(body.birth), np.tile(G * 0.1**2 / 2, (len(body.birth), 1)), atol=1e-9
    )


@MODELS
def test_masses_of_parts_are_those_that_move(model: str) -> None:
    heavy = [(px.Box((0.4, -1, -1), (2, 1, 1)), MATERIAL.but(density=5000.0))]
    _, body = bar(model, velocity=(1.0, 0.0, 0.0), parts=heavy, rotate=(20.0, 30.0, 40.0))
    assert body.diagnostics()["momentum"][0] == pytest.approx(body.masses.sum(), rel=1e-9)


@MODELS
def test_far_from_a_body_its_motion_goes_on(model: str) -> None:
    world, body = bar(model, tuple(G))
    world.advance(0.2)
    far = np.array([[0.5, 0.0, 0.0], [1.2, 0.1, 0.0], [3.0, -4.0, 5.0], [1e4, 0.0, 0.0]])
    np.testing.assert_allclose(body.displacement_at(far), np.tile(G * 0.2**2 / 2, (4, 1)), atol=1e-5)
    assert np.isfinite(body.stress_at(far)).all()


@MODELS
def test_a_body_settles_onto_the_ground_and_stays(model: str) -> None:
    world, body = bar(model, tuple(G), material=MATERIAL.but(young=1e6))
    world.add(px.Ground(height=-0.2))
    world.settle()
    before = body.positions
    assert before[:, 1].min() == pytest.approx(-0.2, abs=1e-4)
    world.advance(0.1)
    np.testing.assert_allclose(body.positions, before, atol=1e-4)


@pytest.mark.slow
def test_a_modal_body_settles_hanging_by_a_point() -> None:
    world, body = bar("modal", tuple(G), material=MATERIAL.but(young=1e6))
    handle = body.fix(px.Spot((0.0, 0.0, 0.0)))
    world.settle()
    low = body.positions[:, 1].min() - handle.points[0, 1]
    assert low == pytest.approx(-1.0, abs=0.02)  # a little more than its length: it stretches by its weight


@MODELS
def test_motion_does_not_depend_on_placement(model: str) -> None:
    """A turned and moved body does the same, turned. Modes are the same fields up to rounding, stored in single
    precision along other axes: 1e-7 of the displacement."""
    turn = Rotation.from_euler("xyz", (30, 40, 50), degrees=True).as_matrix()
    moved = []
    for place, gravity in (({}, G), ({"rotate": (30, 40, 50), "at": (100.0, -50.0, 7.0)}, turn @ G)):
        world, body = bar(model, tuple(gravity), **place)
        body.fix(np.flatnonzero(body.shape.placement.unplaced(body.birth)[:, 0] < 0.12))
        world.advance(0.1)
        moved.append(body.positions - body.birth)
    np.testing.assert_allclose(moved[1], moved[0] @ turn.T, atol=1e-6 * np.abs(moved[0]).max())


@pytest.mark.parametrize("model", ["galerkin", "modal"])
def test_a_field_that_is_wrong_is_not_called_a_blow_up(model):
    """What a user's own function got wrong is said as it is for phyxel bodies."""
    body = px.Body(px.load("bar", points=500), nodes=60, model=model)
    world = px.World(device="cpu")
    world.add(body)
    world.add(px.Field(lambda x, v, t: np.full((3, 7), 1.0)))
    with pytest.raises(px.PhyxelError, match="returned shape") as raised:
        world.advance(0.01)
    assert "blew up" not in str(raised.value)
