"""Far away, small, large, fast: it costs no digits."""

import numpy as np
import pytest

import phyxel as px
from tests.world.boxes import DAMPED, NOWHERE, G, box, box_cloud
from tests.worlds import left_end, weightless, world_of


@pytest.mark.parametrize("at", [(1e6, 0, 0), (0, -1e6, 0)])
def test_a_place_far_away_costs_no_digits(at):
    fields = []
    for place in (NOWHERE, at):
        body = box(at=place, material=DAMPED)
        world = world_of(body)
        body.fix(left_end)
        world.advance(0.2)
        fields.append((body.displacement_at(body.reference), body.velocities, body.surface.positions - np.array(place)))
    for near, far in zip(fields[0][:2], fields[1][:2], strict=True):
        assert np.abs(near).max() > 0.05
        assert np.abs(near - far).max() < 1e-4 * np.abs(near).max()


def test_the_surface_far_away_keeps_its_digits_too():
    body = box(at=(1e6, 0, 0))
    world = world_of(body)
    world.advance(0.01)
    expected = box_cloud().positions + np.array([1e6, -0.5 * G * 1e-4, 0])
    assert np.abs(np.asarray(body.surface.positions, np.float64) - expected).max() < 1e-4


def test_a_long_fall_costs_no_digits():
    body = box(spin=(0, 0, 1), material=DAMPED)
    world = world_of(body)
    world.advance(5.0)
    assert body.positions[:, 1].mean() == pytest.approx(-0.5 * G * 25, rel=1e-6)
    span = np.ptp(np.linalg.norm(body.positions - body.positions.mean(axis=0), axis=1))
    at_rest = np.ptp(np.linalg.norm(body.reference - body.reference.mean(axis=0), axis=1))
    assert span == pytest.approx(at_rest, rel=1e-3)
    assert body.diagnostics()["volume"] == pytest.approx(0.125, rel=1e-3)


def test_a_grain_and_a_moon_move_alike():
    """With E ~ L and time ~ √L the same dimensionless numbers, so the same motion."""
    shapes = []
    for size in (1.0, 1e-6, 1e6):
        material = px.Material(young=1e5 * size, poisson=0.3, damping=5e-3 * np.sqrt(size))
        body = box(size=size, at=(0, 0.7 * size, 0), material=material, integrator="leapfrog")
        world = world_of(body, px.Ground())
        world.advance(0.6 * np.sqrt(size))
        assert body.diagnostics()["volume"] / size**3 == pytest.approx(1, rel=0.05)
        assert np.isfinite(body.surface.positions).all()
        shapes.append(body.positions / size)
    assert np.abs(shapes[1] - shapes[0]).max() < 1e-3
    assert np.abs(shapes[2] - shapes[0]).max() < 1e-3


@pytest.mark.parametrize("size", [1e-6, 1e-3, 1e6])
@pytest.mark.parametrize("preset", ["rubber", "foam", "steel"])
def test_ordinary_matter_of_any_size_simply_works(preset, size):
    """Some fifty steps of a body that flies and spins: it goes where it should and keeps its shape."""
    material = px.Material.preset(preset).but(damping=0.0)
    time = size * np.sqrt(material.density / material.young)
    body = box(size=size, material=material, velocity=(0.1 * size / time, 0, 0), spin=(0, 0, 1e-3 / time))
    world = weightless(body)
    world.advance(time)
    assert body.positions[:, 0].mean() / size == pytest.approx(0.1, rel=1e-3)
    assert body.diagnostics()["volume"] / size**3 == pytest.approx(1, rel=1e-3)


def test_a_fast_flight_in_one_advance_keeps_the_shape():
    body = box(velocity=(100, 0, 0), spin=(0, 0, 1))
    world = weightless(body)
    world.advance(10)
    assert body.positions[:, 0].mean() == pytest.approx(1000, rel=1e-5)
    radii = [np.linalg.norm(x - x.mean(axis=0), axis=1) for x in (body.positions, body.reference)]
    assert np.abs(radii[0] / radii[1] - 1).max() < 2e-3


@pytest.mark.parametrize("scale", [1e-6, 1e6])
def test_a_mesh_of_any_scale_simply_works(scale, tmp_path):
    corners = [(x, y, z) for x in (0, scale) for y in (0, scale) for z in (0, scale)]
    quads = [(1, 2, 4, 3), (5, 7, 8, 6), (1, 5, 6, 2), (3, 4, 8, 7), (1, 3, 7, 5), (2, 6, 8, 4)]
    lines = ["v {:.9g} {:.9g} {:.9g}".format(*x) for x in corners] + ["f {} {} {} {}".format(*q) for q in quads]
    (tmp_path / "cube.obj").write_text("\n".join(lines) + "\n")
    body = px.Body(px.load(tmp_path / "cube.obj"), nodes=64, material=DAMPED.but(young=1e5 * scale))
    world = world_of(body)
    body.fix(px.Box((-np.inf,) * 3, (0.1 * scale, np.inf, np.inf)))
    world.advance(0.1 * np.sqrt(scale))
    assert body.volumes.sum() / scale**3 == pytest.approx(1, rel=0.01)
    sag = (body.positions - body.reference)[:, 1].min() / scale
    assert -0.5 < sag < -1e-3
    assert np.isfinite(body.surface.positions).all() and np.isfinite(body.surface.normals).all()
