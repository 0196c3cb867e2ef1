"""Bodies of two flocks meet: the implicit ones are guests of those that leap-frog moves."""

import numpy as np
import pytest

import phyxel as px
from tests.movers.flocks import SOFT, STONE, box, flocks
from tests.worlds import energy, sums, weightless, world_of

STIFF = STONE.but(young=1e7)


@pytest.mark.parametrize("stiff", [SOFT, STONE], ids=["as soft", "stone"])
@pytest.mark.parametrize("shape", ["box", "sphere"])
def test_momenta_are_kept_and_no_energy_comes(shape, stiff):
    """At 2 m/s against each other, spinning, of which one steps implicitly, whether or not it is stiff: momenta to
    rounding of single precision over what they exchange (1e-6), energy to 1e-4."""
    first = box(SOFT, (0, 0, 0), shape, velocity=(1, 0, 0), spin=(0, 0, 2), name="a")
    other = box(stiff, (0.22, 0.05, 0.02), velocity=(-1, 0, 0), spin=(1, 0, 0), integrator="implicit")
    world = weightless(first, other)
    momentum, spin = sums(world, "momentum", "angular_momentum")
    start, before, most = np.array(first.diagnostics()["momentum"]), energy(world), 0.0
    for _ in range(4):
        world.advance(0.015)
        most = max(most, energy(world))
    exchanged = np.linalg.norm(np.array(first.diagnostics()["momentum"]) - start)
    after, turned = sums(world, "momentum", "angular_momentum")
    assert len(flocks(world)) == 2
    assert exchanged > 1  # they did meet
    assert np.abs(after - momentum).max() < 1e-6 * exchanged
    assert np.abs(turned - spin).max() < 1e-6 * exchanged
    assert most < (1 + 1e-4) * before


@pytest.mark.parametrize("light", [False, True])
def test_a_soft_one_comes_to_rest_on_a_stone(light):
    """Dropped by 2 cm, spinning; also if the stone, which lies on the ground, is a twentieth as heavy: the ground does
    not let it give way. Half a spacing, 2 cm, would be too deep."""
    below = STONE.but(young=1e9, density=50.0) if light else STONE
    low, high = box(below, (0, 0.1, 0)), box(SOFT.but(damping=2e-2), (0.01, 0.32, 0), spin=(0, 3, 0))
    world, deepest = world_of(px.Ground(), low, high), 1.0
    before = most = energy(world)
    for _ in range(10):
        world.advance(0.03)
        deepest = min(deepest, high.positions[:, 1].min())
        most = max(most, energy(world))
    assert len(flocks(world)) == 2
    assert deepest > 0.19
    assert most < (1 + 1e-4) * before
    assert high.surface.positions[:, 1].min() == pytest.approx(0.2, abs=0.005)
    assert np.sqrt(2 * high.diagnostics()["kinetic"] / high.masses.sum()) < 0.03
    assert np.abs(low.surface.positions[:, 1].max() - 0.2) < 1e-3


@pytest.mark.slow
def test_a_stone_comes_to_rest_on_a_soft_one():
    """That is pressed together by ρ g h²/2E of its own weight and ρ' g h²/E of the stone's, 12 mm in all, or some more
    as it bulges. What has landed first on one side rocks, once in 1.3 s."""
    low, high = box(SOFT.but(damping=2e-2), (0, 0.1, 0)), box(STONE, (0, 0.301, 0))
    world = world_of(px.Ground(), low, high)
    before = energy(world)
    world.advance(1.3)
    assert len(flocks(world)) == 2
    assert 0.2 - high.surface.positions[:, 1].min() == pytest.approx(0.012, abs=0.004)
    assert np.sqrt(2 * high.diagnostics()["kinetic"] / high.masses.sum()) < 0.03
    assert energy(world) < before


@pytest.mark.parametrize(("below", "above"), [("implicit", "leapfrog"), ("leapfrog", "implicit")])
def test_nothing_gets_through_a_plate_that_has_but_corners(below, above):
    """A ball at 20 m/s against a plate of a mesh of eight vertices, a box three nodes thick: its middle stays a radius
    above that of the plate, but for what both are pressed together by (Hertz: 2 cm), and it is stopped."""
    stuff = px.Material(young=1e8, density=1000.0, poisson=0.3)
    half, signs = np.array([0.4, 0.06, 0.4]), np.array(list(np.ndindex(2, 2, 2))) * 2 - 1
    faces = [[0, 1, 3], [0, 3, 2], [4, 6, 7], [4, 7, 5], [0, 4, 5], [0, 5, 1]]
    faces += [[2, 3, 7], [2, 7, 6], [0, 2, 6], [0, 6, 4], [1, 5, 7], [1, 7, 3]]
    cloud = px.PointCloud((half * signs).astype(np.float32), faces=np.array(faces, np.int32), name="plate")
    plate = px.Body(cloud, nodes=300, material=stuff, integrator=below, place="center")
    ball = box(stuff, (0, 0.17, 0), "sphere", velocity=(0, -20, 0), integrator=above)
    world = weightless(plate, ball)
    before = energy(world)
    for _ in range(4):
        world.advance(0.002)
        apart = [np.average(body.positions[:, 1], weights=body.masses) for body in (ball, plate)]
        assert apart[0] - apart[1] > 0.06 + 0.1 - 0.03
        assert energy(world) < (1 + 1e-4) * before
    assert ball.velocities[:, 1].mean() > -10


def test_what_else_is_in_the_flock_changes_nothing_of_what_guests_give_and_get():
    """A rigid box slides on an implicit one, alone and with another of the flock far away, which flies and is found in
    stages of second order while the first waits. Sums over the flock round otherwise: 2e-6 m. Along the surface, where
    friction is Coulomb's to some 5e-4, a tenth of a millimetre besides. When what the first bore was forgotten while it
    waited, they were 1 cm apart."""

    def slid(*others):
        low = box(STIFF, (0, 0.1, 0), nodes=40, name="low", integrator="implicit")
        on_it = {"at": (0, 0.3, 0), "place": "center", "velocity": (0.3, 0, 0), "name": "high"}
        high = px.Body(px.load("box", points=800), model="rigid", size=0.2, **on_it)
        world = world_of(px.Ground(), low, high, *others)
        world.advance(0.2)
        return low.positions, high.positions

    far = box(STIFF, (2, 3, 0), nodes=40, name="far", spin=(0, 3, 1), integrator="implicit")
    for alone, beside in zip(slid(), slid(far), strict=True):
        assert np.abs(alone - beside)[:, 1].max() < 2e-6
        assert np.abs(alone - beside).max() < 2e-4
