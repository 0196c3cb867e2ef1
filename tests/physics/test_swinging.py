"""Implicit steps keep slow motion and damp what is faster than they are (physics 5.4)."""

from __future__ import annotations

import numpy as np
import pytest

import phyxel as px
from phyxel.movers.field_bodies import FieldBodies
from phyxel.movers.phyxel_bodies import phyxels_of

IMPLICIT = {"phyxel": {"model": "phyxel", "integrator": "implicit"}, "galerkin": {"model": "galerkin"}}


def energy(body: px.Body) -> float:
    now = body.diagnostics()
    return float(now["kinetic"] + now["elastic"] + now["potential"])


def swinging(model: str, young: float, nodes: int) -> tuple[px.World, px.Body]:
    """A bar of 1 × 0.25 × 0.25 m, let go level, hinged about a line at mid-height of one end."""
    material = px.Material(young=young, poisson=0.3, density=1000.0)
    bar = px.Body(px.load("bar", points=1500), nodes=nodes, material=material, **IMPLICIT[model])
    X = bar.reference
    end = X[:, 0] < X[:, 0].min() + 0.5 * bar.unit
    height = np.abs(X[:, 1] - 0.5 * (X[:, 1].min() + X[:, 1].max()))
    bar.fix(end & (height < height[end].min() + 1e-3))
    world = px.World(device="cpu")
    world.add(bar)
    return world, bar


def gained(world: px.World, bar: px.Body, seconds: float, step: float = 0.01) -> np.ndarray:
    """What the bar gains, over m g L/2, every tenth of a second."""
    start, whole = energy(bar), bar.masses.sum() * 9.81 * 0.5
    gains = []
    for _ in range(round(10 * seconds)):
        for _ in range(round(0.1 / step)):
            world.advance(step)
        gains.append((energy(bar) - start) / whole)
    return np.array(gains)


@pytest.mark.parametrize("model", IMPLICIT)
@pytest.mark.parametrize(
    ("young", "nodes", "seconds"),
    [
        (1e7, 120, 1.5),
        pytest.param(1e7, 120, 5.0, marks=pytest.mark.slow),
        pytest.param(1e9, 120, 5.0, marks=pytest.mark.slow),
    ],
)
def test_a_stiff_pendulum_keeps_its_energy(model, young, nodes, seconds):
    """Nothing damps it. TR-BDF2 takes (ωΔt)³/40 of a swing of 4/s at steps of 0.01 s, nothing in an hour; Euler took
    two thirds in 5 s. What is left is Newton's tolerance and the vibrations of the first moment: 0.5 %."""
    gains = gained(*swinging(model, young, nodes), seconds)
    print(f"{model}, {young:g} Pa: {gains[-1]:+.3%} after {seconds} s, at most {np.abs(gains).max():.3%}")
    assert np.abs(gains).max() < 5e-3


@pytest.mark.parametrize("model", IMPLICIT)
def test_a_soft_pendulum_keeps_its_energy_at_first(model):
    """E = 1e5 Pa: it bends as it falls, and after a second its energy is still in motion that the step sees: 1 %."""
    gains = gained(*swinging(model, 1e5, 60), 1.0)
    print(f"{model}: {gains[-1]:+.3%} after 1 s")
    assert np.abs(gains).max() < 0.01


def test_what_a_soft_pendulum_loses_was_faster_than_the_step():
    """Later it beats like a whip, and energy goes into motion that the step does not see: half the step, half as much
    or less. So it is as long as both bars move alike, for 2.5 s."""
    coarse, fine = (gained(*swinging("phyxel", 1e5, 120), 2.5, step)[-1] for step in (0.01, 0.005))
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


@pytest.mark.parametrize("model", IMPLICIT)
@pytest.mark.parametrize("young", [1e5, 1e9])
def test_noise_is_damped_and_never_grows(model, young):
    """Random velocities of all nodes, set from outside: the step before knows nothing of them. What the body has of
    them as a rigid one stays; of the rest a stiff body keeps less than 1 %, a soft one what the step sees."""
    material = px.Material(young=young, poisson=0.3, density=1000.0)
    bar = px.Body(px.load("bar", points=600), nodes=100, material=material, **IMPLICIT[model])
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
