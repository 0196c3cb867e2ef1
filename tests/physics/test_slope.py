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


def leaning(block: px.Body, *others: px.Body | px.Ground, share: float, wait: float) -> tuple[float, float]:
    """How far a block goes in `wait` [s] along what it lies on, where tan θ is so much of μ [m]; and what it gains
    over g (sin θ − μ cos θ). Gravity is tilted slowly, lest things swing."""
    world = px.World(gravity=(0.0, -GRAVITY, 0.0), device="cpu")
    for thing in (*others, block):
        world.add(thing)
    angle = np.arctan(share * FRICTION)
    for tilt in np.linspace(0.1, 1.0, 10) * angle:
        world.gravity = (GRAVITY * np.sin(tilt), -GRAVITY * np.cos(tilt), 0.0)
        world.advance(1 / 40)
    world.advance(0.3)
    place, speed = (block.masses @ field[:, 0] / block.masses.sum() for field in (block.positions, block.velocities))
    world.advance(wait)
    after, faster = (block.masses @ field[:, 0] / block.masses.sum() for field in (block.positions, block.velocities))
    expected = GRAVITY * (np.sin(angle) - FRICTION * np.cos(angle))
    print(f"{1e6 * (after - place):.2f} µm, {(faster - speed) / wait / expected:.4f}")
    return after - place, (faster - speed) / wait / expected


@pytest.mark.parametrize("share", [0.95, 1.02])
@pytest.mark.parametrize("integrator", ["leapfrog", "implicit"])
def test_friction_has_a_limit(integrator, share):
    """Below it nothing moves: less than half a micrometre in half a second are the 10 µm in 10 s that are asked. (Held
    by nothing but viscous friction it would be 2.4 µm.) Above it, a block gains what is left, to 1 %."""
    material = px.Material(young=1e7, poisson=0.3, density=1000.0, damping=2e-3, drag=10.0 if share < 1 else 0.0)
    block = px.Body(px.load("box", points=500), size=0.2, nodes=64, material=material, integrator=integrator)
    way, gained = leaning(block, px.Ground(friction=FRICTION), share=share, wait=0.5 if share < 1 else 0.2)
    if share < 1:
        assert abs(way) < 5e-7
    else:
        assert gained == pytest.approx(1.0, rel=0.01)


@pytest.mark.parametrize("share", [0.95, 1.05])
def test_friction_between_implicit_bodies_has_a_limit(share):
    """As on the ground. Friction that was found from pass to pass as a stiffness held what slides, at 1.05 of the limit
    to 2 % of what it should gain."""
    stuff = px.Material(young=1e8, poisson=0.3, density=1000.0, damping=2e-3)
    cloud = px.load("box", points=500)
    table = px.Body(cloud, material=stuff, nodes=100, size=0.6, at=(0, -0.3, 0), integrator="implicit", name="table")
    block = px.Body(cloud, material=stuff, nodes=64, size=0.2, at=(-0.1, 0.3, 0), integrator="implicit", name="block")
    table.fix(px.Box((-1, -1, -1), (1, 0.1, 1)))
    way, gained = leaning(block, table, share=share, wait=0.5 if share < 1 else 0.2)
    if share < 1:
        assert abs(way) < 5e-7
    else:
        assert gained == pytest.approx(1.0, rel=0.01)


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
