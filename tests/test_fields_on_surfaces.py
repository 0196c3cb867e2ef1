"""Fields on particle surfaces: pushes, fillings and wraps against closed forms."""

import hashlib

import numpy as np
import pytest

import phyxel as px
from phyxel.contact.table import measured
from phyxel.surface.hull import summed
from tests.worlds import weightless

RADIUS, POINTS, THICKNESS, DENSITY = 0.5, 642, 2e-3, 500.0
PER_AREA = DENSITY * THICKNESS
"""[kg/m²]"""


def balloon(**numbers) -> px.Body:
    options = {key: numbers.pop(key) for key in ("name", "at", "place", "links") if key in numbers}
    cloud = px.load("balloon", points=numbers.pop("points", POINTS))
    film = px.Membrane(density=DENSITY, thickness=THICKNESS, **({"young": 1e5} | numbers))
    return px.Body(cloud, model="particles", material=film, **({"links": "none"} | options))


def areas(body: px.Body) -> np.ndarray:
    return body.unit**2 * body.sheet.areas


def test_a_push_gives_its_force_times_the_time_it_acts():
    """p = F (t − start) until its end, to rounding: steps end where it comes and goes, and need be no shorter."""
    body, force = balloon(), np.array([3.0, -1, 2])
    world = weightless(body, px.Push(force, px.Ball((0.5, 0, 0), 0.4), during=(0.0137, 0.0531)))
    for time in (0.01, 0.03, 0.1):
        world.advance(time - world.time)
        expected = force * np.clip(time - 0.0137, 0, 0.0531 - 0.0137)
        assert np.abs(body.diagnostics()["momentum"] - expected).max() < 1e-13
    assert world.steps == 5


def test_fields_that_are_even_or_radial_move_particles_by_the_closed_form():
    """Even: x = X + gt²/2. About an axis with the power 1, a = s d/R: d = D cosh ωt, ω² = s/R, and nothing along it.
    The field of a step is that in its middle, (ωΔt)²/24 off with Δt = 1/60 s."""
    body, time = balloon(), 0.3
    weightless(body, px.Field(lambda x, v, t: (0, -9.81, 0))).advance(time)
    assert np.allclose(body.positions, body.birth - [0, 9.81 * time**2 / 2, 0], rtol=0, atol=1e-12)
    body = balloon()
    weightless(body, px.Attraction((0, 0, 0), -20.0, power=1.0, axis=(0, 1, 0))).advance(time)
    omega = np.sqrt(20.0)
    grown = np.cosh(omega * time)
    expected = body.birth * [grown, 1, grown]
    assert np.abs(body.positions - expected).max() < (omega * time) * (omega / 60) ** 2 / 4 * RADIUS * grown


@pytest.mark.parametrize("bulk", [2e4, 2e8])
def test_a_filling_presses_by_the_volume_that_is_missing(bulk):
    """At rest the foundation holds the pressure: K u = p (a·n) n at every particle, n its normal at rest and a its area
    vector now, p = B (amount − V/V₀) to rounding, however stiff. A ball grows by s: K R s = p (1 + s)²; its flat faces
    have 1 % less area."""
    foundation, amount = 1e5, 1.4
    body = balloon(foundation=foundation, drag=100.0)
    world = weightless(body)
    before = body.diagnostics()["volume"]
    world.add(px.Filling(bulk, amount))
    world.advance(1.5)
    x, volume = body.positions, body.diagnostics()["volume"]
    faces, normals = body.sheet.faces, body.sheet.normals / np.linalg.norm(body.sheet.normals, axis=1)[:, None]
    corners = x[faces]
    thirds = np.repeat(np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0]) / 6, 3, axis=0)
    pressed = (summed(faces.reshape(-1), thirds, len(x)) * normals).sum(axis=1)
    outward = ((x - body.birth) * normals).sum(axis=1)
    held = foundation * areas(body) @ outward / pressed.sum()
    pressure = bulk * (amount - volume / before)
    assert held == pytest.approx(pressure, rel=1e-11 * max(1, bulk / held))
    assert np.allclose(foundation * areas(body) * outward, held * pressed, rtol=1e-9)
    assert np.allclose(x, body.birth + outward[:, None] * normals, rtol=0, atol=1e-12)
    s = np.linalg.norm(x, axis=1).mean() / RADIUS - 1
    assert foundation * RADIUS * s == pytest.approx(held * (1 + s) ** 2, rel=0.01)
    assert np.abs(body.diagnostics()["momentum"]).max() < 1e-9


def test_a_filled_balloon_stretches_as_a_membrane():
    """p = 2 E h s/((1 − ν) R (1 + s)), ν being the 1/3 of links along edges; off by s, 1 %, and by an uneven mesh."""
    young, bulk, amount = 1e6, 1e5, 1.03
    body = balloon(young=young, poisson=1 / 3, damping=2e-3, drag=5.0, links=None, points=162)
    world = weightless(body)
    before = body.diagnostics()["volume"]
    world.add(px.Filling(bulk, amount))
    world.advance(0.4)
    pressure = bulk * (amount - body.diagnostics()["volume"] / before)
    s = np.linalg.norm(body.positions, axis=1).mean() / RADIUS - 1
    assert 0.005 < s < 0.01
    assert pressure == pytest.approx(2 * young * THICKNESS * s / ((1 - 1 / 3) * RADIUS * (1 + s)), rel=0.03)
    assert np.abs(body.velocities).max() < 1e-3


def test_fillings_add_up_and_leave():
    """Two press as one of B₁ + B₂ would, and when they end the surface is as it was, within e^(−ct/2m)."""
    volumes = []
    for fillings in ([px.Filling(3e4, 1.2)], [px.Filling(1e4, 1.0), px.Filling(2e4, 1.3)]):
        body = balloon(foundation=1e5, drag=100.0)
        world = weightless(body, *fillings)
        world.advance(0.5)
        volumes.append(body.diagnostics()["volume"])
    assert volumes[0] == pytest.approx(volumes[1], rel=1e-9)
    for filling in fillings:
        world.remove(filling)
    world.advance(0.5)
    assert np.abs(body.positions - body.birth).max() < np.exp(-50 * 0.5) * RADIUS


def test_a_wrap_pulls_with_pressure_times_area_straight_to_the_collider():
    """v = p t/(ρ h) towards a sphere's centre, whatever the particle's area, and none within the collider."""
    body, core = balloon(at=(0.1, 0, 0), place="file"), px.Sphere(0.2, at=(0.1, 0.05, 0))
    world = weightless(body, core, px.Wrap(core, 30.0, during=(0.0, 0.001)))
    inward = (0.1, 0.05, 0) - body.positions
    inward /= np.linalg.norm(inward, axis=1)[:, None]
    world.advance(0.01)
    assert np.allclose(body.velocities, 30.0 * 0.001 / PER_AREA * inward, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("settled", [False, True])
def test_a_wrap_without_links_ends_on_the_collider(settled):
    """All particles lie half the thickness above a turned box, to rounding, and stay; when the box goes, so does the
    pull."""
    body, core = balloon(drag=3.0), px.Box((-0.3, -0.1, -0.2), (0.3, 0.2, 0.2), rotate=(20, 30, 0))
    world = weightless(body, core, px.Wrap(core, 40.0))
    world.settle() if settled else world.advance(1.0)
    place, rotation = core.pose(0.0)
    distance, _ = measured(core, (body.positions - place) @ rotation, world.device)
    assert np.abs(distance - THICKNESS / 2).max() < 1e-6 * RADIUS
    assert np.abs(body.velocities).max() < 1e-9
    there = body.positions
    world.remove(core)
    world.advance(0.1)
    assert np.abs(body.positions - there).max() < 1e-9


def held_balloon() -> px.World:
    """Held, filled for a time, drawn to a ball that moves, and pushed for a time."""
    body, core = (
        balloon(points=162, foundation=2e3, links=None),
        px.Sphere(0.2, path=[(0.0, (0, 0, 0)), (0.2, (0.1, 0, 0))]),
    )
    world = weightless(body, core, px.Wrap(core, 50.0), px.Filling(1e3, 0.8, during=(0.021, 0.09)))
    world.add(px.Push((0, 3, 0), px.Channel("z", 0, 1), during=(0.05, 0.11)))
    body.fix(px.Box((-1, 0.4, -1), (1, 1, 1)))
    return world


@pytest.mark.parametrize("when", [0.021, 0.1])
def test_a_resumed_surface_goes_on_with_the_same_bits(when, tmp_path):
    straight = held_balloon()
    straight.advance(when)
    straight.save(tmp_path / "state.npz")
    resumed = held_balloon()
    resumed.restore(tmp_path / "state.npz")
    for world in (straight, resumed):
        for _ in range(2):
            world.advance(0.03)
    ends = [hashlib.sha256(world.bodies[0].positions.tobytes()).hexdigest() for world in (straight, resumed)]
    assert ends[0] == ends[1]


def test_fields_for_surfaces_refuse_what_they_cannot_act_on():
    cloth, ball = px.Body(px.load("cloth", points=200), model="particles", links="none"), balloon(name="ball")
    world = weightless(cloth)
    with pytest.raises(px.PhyxelError, match="cloth is open"):
        world.add(px.Filling(1e4))
    with pytest.raises(px.PhyxelError, match="sphere is not in the world"):
        world.add(px.Wrap(px.Sphere(0.2), 10.0))
    world.add(ball)
    with pytest.raises(px.PhyxelError, match="cloth is open"):
        world.add(px.Filling(1e4, bodies=["cloth"]))
    world.add(px.Filling(1e4))  # fills what it can
    assert [world.fields[0].acts_on(body) for body in (cloth, ball)] == [False, True]


SCENE = """
gravity = [0, 0, 0]
[[body]]
shape = "balloon"
points = 200
model = "particles"
links = "none"
[[collider]]
kind = "sphere"
name = "core"
radius = 0.2
[[field]]
kind = "wrap"
collider = "core"
pressure = 20.0
[[field]]
kind = "filling"
bulk = 1000.0
amount = 0.5
during = [0.0, 0.1]
"""


def test_a_scene_fills_and_wraps():
    world = px.Scene.parse(SCENE).world()
    world.advance(1.0)
    thickness = world.bodies[0].material.thickness
    assert np.allclose(np.linalg.norm(world.bodies[0].positions, axis=1), 0.2 + thickness / 2, rtol=0, atol=1e-6)
