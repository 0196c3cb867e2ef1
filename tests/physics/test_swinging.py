"""Implicit steps keep slow motion and damp what is faster than they are (physics 5.4)."""

from __future__ import annotations

import numpy as np
import pytest

import phyxel as px
from phyxel.bench.accuracy.motion import energy, gained, pendulum
from phyxel.movers.field_bodies import FieldBodies
from phyxel.movers.phyxel_bodies import phyxels_of

MODELS = ("phyxel", "galerkin")


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize(
    ("young", "nodes", "seconds"),
    [
        (1e7, 120, 1.5),
        pytest.param(1e7, 60, 5.0, marks=pytest.mark.slow),
        pytest.param(1e9, 60, 5.0, marks=pytest.mark.slow),
    ],
)
def test_a_stiff_pendulum_keeps_its_energy(model, young, nodes, seconds):
    """Nothing damps it. TR-BDF2 takes (ωΔt)³/40 of a swing of 4/s at steps of 0.01 s, nothing in an hour; Euler took
    two thirds in 5 s. What is left is Newton's tolerance and the vibrations of the first moment: 0.5 %."""
    gains = gained(*pendulum(young, nodes, model=model), seconds)
    print(f"{model}, {young:g} Pa: {gains[-1]:+.3%} after {seconds} s, at most {np.abs(gains).max():.3%}")
    assert np.abs(gains).max() < 5e-3


@pytest.mark.parametrize("model", MODELS)
def test_what_is_let_go_falls_from_its_first_step_on(model):
    """A body at rest as it was born: after one step v = gΔt and it is ½gΔt² lower, to the rounding of single precision.
    Euler's would be gΔt² lower, and ½m(gΔt)² of energy gone: a third of a per cent of a pendulum of 0.3 m."""
    material = px.Material(young=1e8, poisson=0.3, density=1000.0)
    bar = px.Body(px.load("bar", points=600), nodes=60, material=material, model=model, integrator="implicit")
    world, step = px.World(device="cpu"), 0.01
    world.add(bar)
    before = energy(bar)
    world.advance(step)
    fallen = (bar.reference - bar.positions)[:, 1]
    np.testing.assert_allclose(fallen, 0.5 * 9.81 * step**2, rtol=1e-3)
    assert abs(energy(bar) - before) < 1e-3 * bar.masses.sum() * 0.5 * (9.81 * step) ** 2


@pytest.mark.parametrize("model", MODELS)
def test_a_soft_pendulum_keeps_its_energy_at_first(model):
    """E = 1e5 Pa: it bends as it falls, and after a second its energy is still in motion that the step sees: 1 %."""
    gains = gained(*pendulum(1e5, 60, model=model), 1.0)
    print(f"{model}: {gains[-1]:+.3%} after 1 s")
    assert np.abs(gains).max() < 0.01


def test_what_a_soft_pendulum_loses_was_faster_than_the_step():
    """Later it beats like a whip, and energy goes into motion that the step does not see: half the step, half as much
    or less. So it is as long as both bars move alike, for 2.5 s."""
    coarse, fine = (gained(*pendulum(1e5, 120), 2.5, step)[-1] for step in (0.01, 0.005))
    print(f"{coarse:+.3%} at 10 ms, {fine:+.3%} at 5 ms")
    assert coarse < fine <= 0
    assert fine > 0.5 * coarse


def rigid_energy(body: px.Body) -> float:
    """Kinetic energy that momenta about the middle of mass leave to any motion [J]."""
    now, mass = body.diagnostics(), body.masses
    x = body.positions - mass @ body.positions / mass.sum()
    momentum = np.array(now["momentum"])
    spin = np.cross(x, mass[:, None] * body.velocities).sum(axis=0)
    inertia = (mass @ (x * x).sum(axis=1)) * np.eye(3) - np.einsum("n,na,nb->ab", mass, x, x)
    return float(0.5 * momentum @ momentum / mass.sum() + 0.5 * spin @ np.linalg.solve(inertia, spin))


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("young", [1e5, 1e9])
def test_noise_is_damped_and_never_grows(model, young):
    """Random velocities of all nodes, set from outside: the step before knows nothing of them. What the body has of
    them as a rigid one stays; of the rest a stiff body keeps less than 1 %, a soft one what the step sees."""
    material = px.Material(young=young, poisson=0.3, density=1000.0)
    bar = px.Body(px.load("bar", points=600), nodes=100, material=material, model=model, integrator="implicit")
    world = px.World(gravity=(0, 0, 0), device="cpu")
    world.add(bar)
    world.advance(0.05)
    noise = np.random.default_rng(0).standard_normal((len(bar.birth), 3))
    if model == "phyxel":
        phyxels_of(world).model.v.assign(noise.astype(np.float32))
    else:
        mover = world.mover_of(bar)
        assert isinstance(mover, FieldBodies)
        mover.model_of(bar).v = noise
    energies, rigid = [energy(bar)], rigid_energy(bar)
    for _ in range(10):
        world.advance(0.01)
        energies.append(energy(bar))
    left = (energies[-1] - rigid) / (energies[0] - rigid)
    print(f"{model}, {young:g} Pa: {left:.3%} left")
    assert (np.diff(energies) <= 1e-5 * energies[0]).all()
    assert left < (0.7 if young < 1e6 else 0.01)
