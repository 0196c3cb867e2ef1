"""Coulomb's friction on a slope, which is level ground under tilted gravity."""

import numpy as np
import pytest

import phyxel as px

GRAVITY, FRICTION = 9.81, 0.5


def on_a_slope(degrees: float, integrator: str) -> tuple[float, float]:
    """How far a block has gone down the slope in half a second [m], and how much faster it got [m/s²]."""
    angle = np.radians(degrees)
    material = px.Material(young=1e6, poisson=0.3, density=1000.0, damping=1e-3)
    block = px.Body(px.load("box", points=100), material=material, nodes=125, integrator=integrator)
    world = px.World(gravity=(GRAVITY * np.sin(angle), -GRAVITY * np.cos(angle), 0.0), device="cpu")
    world.add(block)
    world.add(px.Ground(friction=FRICTION))
    world.advance(0.5)
    place, speed = block.positions[:, 0].mean(), block.velocities[:, 0].mean()
    world.advance(0.5)
    return block.positions[:, 0].mean() - place, (block.velocities[:, 0].mean() - speed) / 0.5


@pytest.mark.parametrize("integrator", ["leapfrog", "implicit"])
def test_friction_holds_below_its_angle(integrator):
    """tan 20° = 0.36 is below μ = 0.5: no creep, but for the rocking of an elastic block, a thousandth of its size."""
    moved, _ = on_a_slope(20.0, integrator)
    assert abs(moved) < 5e-4


@pytest.mark.parametrize("integrator", ["leapfrog", "implicit"])
def test_it_slides_beyond_it(integrator):
    """tan 40° = 0.84 is above μ = 0.5: it gains g (sin 40° − μ cos 40°), to 1 %."""
    _, gained = on_a_slope(40.0, integrator)
    angle = np.radians(40.0)
    assert gained == pytest.approx(GRAVITY * (np.sin(angle) - FRICTION * np.cos(angle)), rel=0.01)


@pytest.mark.parametrize(("share", "other"), [(0.95, "rigid"), (1.05, "rigid"), (1.5, "modal")])
def test_a_table_that_steps_implicitly_holds_another_kind_up_to_the_limit(share, other):
    """A free box on it, tan θ over μ: held, it creeps no farther than 10 µm; else it gains g (sin θ − μ cos θ), to 1 %.
    Gravity is tilted slowly, lest the table swing."""
    material, cloud = px.Material(young=1e8, poisson=0.3, density=1000.0, damping=1e-3), px.load("box", points=1000)
    table = px.Body(cloud, material=material, nodes=64, size=0.6, at=(0, 0, 0), integrator="implicit", name="table")
    box = px.Body(cloud, model=other, nodes=64, size=0.2, at=(-0.1, 0.6, 0), material=material, name="box")
    world = px.World(gravity=(0.0, -GRAVITY, 0.0), device="cpu")
    for thing in (table, box):
        world.add(thing)
    table.fix(px.Box((-1, -1, -1), (1, 0.02, 1)))
    angle = np.arctan(share * FRICTION)
    for tilt in np.linspace(0.2, 1.0, 5) * angle:
        world.gravity = (GRAVITY * np.sin(tilt), -GRAVITY * np.cos(tilt), 0.0)
        world.advance(1 / 60)
    place, speed = (box.masses @ field[:, 0] / box.masses.sum() for field in (box.positions, box.velocities))
    world.advance(0.2)
    after, faster = (box.masses @ field[:, 0] / box.masses.sum() for field in (box.positions, box.velocities))
    way, gained = after - place, (faster - speed) / 0.2
    expected = GRAVITY * (np.sin(angle) - FRICTION * np.cos(angle))
    print(f"{way:.1e} m, {gained / expected:.4f}")
    if share < 1:
        assert abs(way) < 1e-5
    else:
        assert gained == pytest.approx(expected, rel=0.01)
