"""Boxes on the ground: it carries, rubs and throws back as it should."""

import numpy as np
import pytest

import phyxel as px
from tests.world.boxes import DAMPED, MASS, SOFT, G, box
from tests.worlds import energy, world_of


def test_the_ground_stops_a_fall_and_carries_the_weight():
    """It bounces for a second; then its slowest motion goes by a factor of five in half a second."""
    body = box(at=(0, 0.35, 0), material=SOFT.but(damping=1e-2))
    world = world_of(body, px.Ground())
    world.advance(2.0)
    where = body.positions
    world.advance(0.5)
    assert np.abs(body.positions - where).max() < 1e-4, "it rests"
    assert body.surface.positions[:, 1].min() == pytest.approx(0, abs=0.005)
    assert 0.23 < body.positions[:, 1].mean() < 0.25


def test_what_rests_on_the_ground_has_no_velocity():
    body = box(at=(0, 0.25, 0), material=SOFT.but(damping=1e-2))
    world = world_of(body, px.Ground())
    world.advance(1.5)
    sums = body.diagnostics()
    assert np.abs(body.velocities).max() < 0.01
    assert abs(sums["momentum"][1]) < 1e-3 * MASS
    assert sums["kinetic"] < 1e-3


def test_the_ground_can_lie_elsewhere():
    tops = []
    for height in (0.0, -1234.5):
        body = box(at=(0, height + 0.3, 0), material=DAMPED)
        world = world_of(body, px.Ground(height=height))
        world.advance(0.4)
        tops.append(body.positions[:, 1].mean() - height)
    assert tops[0] == pytest.approx(tops[1], abs=1e-4)


@pytest.mark.parametrize("friction", [0.0, 0.2, 0.5])
def test_a_sliding_body_decelerates_by_friction_times_gravity(friction):
    body = box(at=(0, 0.25, 0), velocity=(2, 0, 0), material=px.Material(young=1e6, poisson=0.3, damping=1e-3))
    world = world_of(body, px.Ground(friction=friction))
    world.advance(0.3)
    speed = body.diagnostics()["momentum"][0] / body.diagnostics()["mass"]
    assert speed == pytest.approx(2 - friction * G * 0.3, abs=0.02)


def test_friction_stops_a_body_and_does_not_turn_it_back():
    """v²/(2μg), to 5 % for a block so stiff that it hardly sways. With E = 1e7 it springs back by a tenth of the way,
    0.88 as phyxels, 0.88 as a Galerkin body."""
    body = box(at=(0, 0.25, 0), velocity=(0.5, 0, 0), material=px.Material(young=1e8, poisson=0.3, damping=5e-4))
    world = world_of(body, px.Ground(friction=0.8))
    world.advance(0.5)
    way = body.positions[:, 0].mean() - body.reference[:, 0].mean()
    assert abs(body.diagnostics()["momentum"][0]) < 0.02 * MASS
    assert way == pytest.approx(0.5**2 / (2 * 0.8 * G), rel=0.05)


BLOWS = [("sphere", 1500, 1e5, 0.5), ("box", 1500, 1e6, 0.5), ("bar", 300, 1e7, 3.0), ("box", 300, 1e8, 10.0)]


@pytest.mark.parametrize("shape, nodes, young, speed", BLOWS)
def test_a_blow_against_the_ground_gives_no_energy(shape, nodes, young, speed):
    """In implicit steps: of phyxels as small as their fall in one, whose balls change with what neighbours do, and
    of stiff ones that fall by several of them at once. 2 %: what the solver leaves of a blow."""
    material = px.Material(young=young, poisson=0.3, density=1200, damping=1e-4)
    options = {"size": 0.2, "at": (0, 0.005, 0), "velocity": (0.3 * speed, -speed, 0), "integrator": "implicit"}
    body = px.Body(px.load(shape), material=material, nodes=nodes, **options)
    world = world_of(body, px.Ground(friction=0.4))
    before = energy(world)
    for _ in range(12):
        world.advance(1 / 60)
        assert energy(world) < 1.02 * before


def test_restitution_one_keeps_energy_and_zero_takes_some():
    """In the mean of four drops: how the faces of a box ring on after a bounce is chance. With restitution 1, one drop
    alone has 0.95 to 1.08 of its energy, by a centimetre of height."""
    left = {}
    for restitution in (0.0, 1.0):
        kept = []
        for height in (0.74, 0.75, 0.76, 0.77):
            body = box(at=(0, height, 0), material=px.Material(young=1e6, poisson=0.3))
            world = world_of(body, px.Ground(restitution=restitution, friction=0))
            world.advance(0.6)
            sums = body.diagnostics()
            kept.append((sums["kinetic"] + sums["elastic"] + sums["potential"]) / (MASS * G * height))
            assert sums["momentum"][1] > -0.5 * MASS * np.sqrt(2 * G * 0.5), "it has bounced"
        left[restitution] = np.mean(kept)
    assert 0.85 < left[1.0] < 1.05
    assert left[0.0] < 0.8


@pytest.mark.parametrize("numbers", [{"friction": -0.1}, {"restitution": 1.1}, {"restitution": -1}, {"height": np.nan}])
def test_absurd_ground_is_refused(numbers):
    with pytest.raises(px.PhyxelError, match=next(iter(numbers))):
        px.Ground(**numbers)
