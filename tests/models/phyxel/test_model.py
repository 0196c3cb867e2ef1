"""The phyxel model's own promises: a step allocates nothing, the step is stable, bodies share one set of arrays."""

import tracemalloc

import numpy as np
import pytest
import warp as wp

import phyxel as px
from phyxel.movers.phyxel_bodies import phyxels_of
from tests.physics.matter import displace


def bouncing(nodes: int = 200, **options) -> tuple[px.World, px.Body]:
    body = px.Body(px.load("sphere", points=300), nodes=nodes, at=(0, 0.3, 0), place="center", **options)
    world = px.World(device="cpu")
    world.add(body)
    world.add(px.Ground())
    return world, body


def test_a_step_allocates_nothing(monkeypatch):
    world, _ = bouncing(material=px.Material(young=1e5, damping=1e-3))
    world.advance(0.05)
    model, step = phyxels_of(world).model, phyxels_of(world).model.stable_step()
    for _ in range(3):  # programs are recorded once they have run often
        model.step(step, 37)

    def refuse(*args, **kwargs):
        raise AssertionError("a step made a device array")

    for name in ("zeros", "empty", "full", "array"):
        monkeypatch.setattr(wp, name, refuse)
    tracemalloc.start()
    before = tracemalloc.get_traced_memory()[0]
    for _ in range(20):
        model.step(step, 37)
    grown = tracemalloc.get_traced_memory()[0] - before
    tracemalloc.stop()
    assert grown < 10_000, "Python's own small objects only, not arrays of 200 phyxels"


@pytest.mark.parametrize("damping", [0.0, 1e-3, 1e-1])
@pytest.mark.parametrize("drag", [0.0, 50.0])
def test_the_computed_step_is_stable_and_twice_its_limit_is_not(damping, drag):
    """Energy of a shaken body never grows with the step that is computed, and blows up with 3 times as much."""
    material = px.Material(young=1e5, poisson=0.3, damping=damping, drag=drag)
    for factor, stable in ((1.0, True), (3.0, False)):
        world, body = bouncing(material=material)
        world.colliders.clear()
        world.gravity = np.zeros(3)
        model = phyxels_of(world).model
        shake = 0.01 * np.random.default_rng(0).normal(size=(len(model), 3))
        displace(model, shake)
        start = body.diagnostics()["elastic"]
        step = factor * model.stable_step()
        for _ in range(20):
            model.step(step, 20)
            model.synchronise()
        now = body.diagnostics()
        lively = now["kinetic"] + now["elastic"]
        assert (lively < 1.1 * start) == stable


def test_bodies_share_arrays_and_do_not_feel_each_other():
    """Two bodies together move exactly as each alone."""
    alone = []
    for name in ("sphere", "box"):
        body = px.Body(px.load(name, points=200), nodes=100, at=(0, 0.4, 0), place="center", spin=(1, 2, 0))
        world = px.World(device="cpu")
        world.add(body)
        alone.append((world, body))
    together = [
        px.Body(px.load(n, points=200), nodes=100, at=(0, 0.4, 0), place="center", spin=(1, 2, 0))
        for n in ("sphere", "box")
    ]
    world = px.World(device="cpu")
    for body in together:
        world.add(body)
    assert len(phyxels_of(world).model) == sum(len(body.reference) for body in together)
    step = phyxels_of(world).model.stable_step()
    for single, _ in alone:
        phyxels_of(single).write_surroundings()
        phyxels_of(single).model.step(step, 50)
    phyxels_of(world).write_surroundings()
    phyxels_of(world).model.step(step, 50)
    for (_, expected), body in zip(alone, together, strict=True):
        assert np.array_equal(expected.positions, body.positions)


def test_the_grain_turns_with_the_body():
    """A wooden bar turned by R and deformed by R u R⁻¹ has the forces R f: C is turned along (Bond's matrix)."""
    forces = []
    for angles in ((0, 0, 0), (20, 50, 90)):
        body = px.Body(px.load("bar", points=200), material=px.Material.wood(), nodes=200, rotate=angles)
        world = px.World(gravity=(0, 0, 0), device="cpu")
        world.add(body)
        u = 0.01 * np.random.default_rng(0).normal(size=(len(phyxels_of(world).model), 3)) @ body.shape.rotation.T
        displace(phyxels_of(world).model, u)
        phyxels_of(world).model.ensure_forces()
        forces.append(phyxels_of(world).model.now.force.numpy() @ body.shape.rotation)
    assert np.abs(forces[1] - forces[0]).max() < 1e-4 * np.abs(forces[0]).max()


def test_wood_is_stiffer_along_its_grain():
    """Small stretch with free sides: σ = E ε along each axis, so the energies are as 10.8 : 0.84 : 0.46."""
    body = px.Body(px.load("box", points=200), material=px.Material.wood(), nodes=216)
    world = px.World(gravity=(0, 0, 0), device="cpu")
    world.add(body)
    compliance = np.linalg.inv(body.material.elasticity)
    arms, energies = (body.birth - body.centre) / body.unit, []
    for axis in range(3):
        strain = 1e-3 * compliance[:3, axis] / compliance[axis, axis]
        displace(phyxels_of(world).model, arms * strain)
        energies.append(2 * body.diagnostics()["elastic"] / 1e-6 / 0.125)
    assert energies == pytest.approx([1.08e10, 8.4e8, 4.6e8], rel=0.01)


def test_the_step_does_not_depend_on_how_often_it_is_asked_for():
    """Materials that change twice between two steps have one step, to the bit, whoever asks for it in between."""
    world, body = bouncing(material=px.Material(young=1e5))
    world.advance(0.02)
    model = phyxels_of(world).model
    steps = []
    for ask in (False, True):
        state = model.state()
        for young in (2e5, 3e5):
            body.material = px.Material(young=young)
            if ask:
                model.stable_step()
        steps.append(model.stable_step())
        body.material = px.Material(young=1e5)
        model.restore(state)
    assert steps[0] == steps[1]


def test_settle_gives_up_on_what_falls_for_ever():
    body = px.Body(px.load("sphere", points=200), nodes=60)
    world = px.World(device="cpu")
    world.add(body)
    with pytest.raises(px.PhyxelError, match="settle"):
        world.settle(most_steps=100)


@pytest.mark.parametrize("poisson", [0.0, 0.01, 0.2, 0.45])
def test_the_rest_frequency_is_the_largest_eigenvalue(poisson):
    """Of M^-1/2 K M^-1/2 from 192 tangent products, within the 0.5 % to which the power iteration goes. For ν = 0 its
    first step happens to land on the speed of sound it starts from, and must not stop there."""
    body = px.Body(px.load("box", points=300), material=px.Material(young=1e6, poisson=poisson), nodes=64)
    world = px.World(gravity=(0, 0, 0), device="cpu")
    world.add(body)
    model = phyxels_of(world).model
    found = model.vibration.at_rest()
    columns = []
    for k in range(3 * len(model)):
        one = np.zeros(3 * len(model), np.float32)
        one[k] = 1
        columns.append(-model.vibration.tangent(one.reshape(-1, 3)).reshape(-1).astype(np.float64))
    mass = np.repeat(model.matter.mass.numpy(), 3)
    largest = np.linalg.eigvalsh(np.array(columns) / np.sqrt(np.outer(mass, mass)))[-1]
    assert found == pytest.approx(np.sqrt(largest), rel=0.005)
