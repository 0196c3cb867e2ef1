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
