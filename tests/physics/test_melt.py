"""Melting, flowing together, and being solid again (M04 §4.2)."""

from __future__ import annotations

import numpy as np
import pytest

import phyxel as px
from phyxel.bench.accuracy.weights import melt_in_a_tank, weight_above
from phyxel.material import Mixture
from phyxel.models.phyxel.model import PhyxelModel
from phyxel.models.phyxel.reference_shape import let_go_of_birth
from phyxel.movers.phyxel_bodies import phyxels_of
from tests.physics.fluid import filled_volume
from tests.physics.matter import energy_at, forces_at, model_of, shaken_block

SYRUP = px.Material(young=2e4, poisson=0.4, viscosity=50.0)


def molten_block() -> PhyxelModel:
    """Phyxels at random in double precision, all molten."""
    model = model_of(0.9 * shaken_block(5), SYRUP)
    let_go_of_birth(model, 0)
    model.set_melt([0])
    return model


def test_pressure_is_the_slope_of_its_energy():
    """f = −∂U/∂x by central differences of 1e-6 spacings: the error is their third derivative times 1e-12."""
    model = molten_block()
    random = np.random.default_rng(5)
    u, way = 0.02 * random.standard_normal((2, len(model), 3))
    u -= 0.05 * model.matter.X.numpy()
    slope = (energy_at(model, u + 1e-5 * way) - energy_at(model, u - 1e-5 * way)) / 2e-5
    forces = forces_at(model, u)
    assert model.melt.crowding.numpy().max() > 1.05
    assert slope == pytest.approx(-float((forces * way).sum()), rel=1e-6)


def test_the_push_of_walls_is_the_slope_of_its_energy():
    """The same beside a ground, a ball and a box at an angle, some of which share a phyxel."""
    model = molten_block()
    unit = model.units[0]
    low, high = unit * model.matter.X.numpy().min(axis=0), unit * model.matter.X.numpy().max(axis=0)
    ball = px.Sphere(2 * unit, at=(high[0] + 2.3 * unit, 0, 0))
    box = px.Box((-unit, high[1] + 0.5 * unit, -unit), (unit, high[1] + 2 * unit, unit), rotate=(20, 0, 30))
    random = np.random.default_rng(7)
    u, way = 0.02 * random.standard_normal((2, len(model), 3))
    u -= 0.05 * model.matter.X.numpy()
    alone = forces_at(model, u)
    model.meet([px.Ground(height=low[1] - 0.4 * unit), ball, box], np.zeros((1, 3)))
    slope = (energy_at(model, u + 1e-5 * way) - energy_at(model, u - 1e-5 * way)) / 2e-5
    forces = forces_at(model, u)
    assert np.abs(forces - alone).max() > 0.05 * np.abs(alone).max()
    assert slope == pytest.approx(-float((forces * way).sum()), rel=1e-6)


@pytest.mark.slow
def test_a_melt_in_a_tank_keeps_its_volume():
    """Twice the mean height of what fills a tank of 0.25 m² evenly is V/0.25 m². Pressed by ½ρgh = 900 Pa against a
    bulk modulus of 1.7e5 Pa it is 0.5 % less; the free surface, which lies half a spacing above its phyxels and is not
    crowded, takes some more. If walls were empty room, it would be 15 % and more."""
    tank = px.Mold(px.load("box", points=4000), inside_out=True, open_above=0.2, friction=0.0)
    block = px.Body(
        px.load("box", points=800),
        size=0.36,
        at=(0, -0.06, 0),
        place="center",
        nodes=700,
        material=px.Material(young=1e5),
    )
    world = px.World(device="cpu")
    world.add(block)
    world.add(tank)
    block.melt(viscosity=10.0)
    world.advance(1.0)
    assert np.abs(block.velocities).mean() < 1e-3
    level = 2 * (block.positions[:, 1].mean() + 0.25)
    assert level == pytest.approx(block.volumes.sum() / 0.25, rel=0.03)


@pytest.mark.parametrize("nodes", [700, pytest.param(1500, marks=pytest.mark.slow)])
def test_the_stress_of_a_melt_at_rest_is_hydrostatic(nodes: int):
    """−σ = P I with P the weight of all that lies above over the area of the tank, 0.25 m²: 5 % in the mean of all
    phyxels, 8 % in that of the lower half: a mean over the kernel is a little less at the bottom, and a little more on
    top."""
    block = melt_in_a_tank(nodes)
    above = weight_above(block)
    weight = above.mean()
    assert -block.stress.mean(axis=0) == pytest.approx(weight * np.eye(3), abs=0.05 * weight)
    low = above > weight
    assert -block.stress[low].mean(axis=0) == pytest.approx(above[low].mean() * np.eye(3), abs=0.08 * weight)


def test_a_melt_is_as_viscous_as_it_is_told():
    """Rayleigh's β of a solid is a viscosity βμ, here 360 Pa s beside 20: the melt has none of it."""
    for damping in (0.0, 1e-2):
        body = px.Body(px.load("box", points=200), nodes=60, material=px.Material(young=1e5, damping=damping))
        world = px.World(device="cpu")
        world.add(body)
        body.melt(viscosity=20.0)
        assert {material.damping for material in body.mixture.materials} == {0.0}
        body.solidify()
        assert {material.damping for material in body.mixture.materials} == {damping}


def test_pressure_and_viscosity_keep_both_momenta():
    """Forces along the line between two phyxels, equal and opposite: Σf = 0, Σ x × f = 0 to rounding."""
    model = molten_block()
    random = np.random.default_rng(6)
    u = 0.02 * random.standard_normal((len(model), 3)) - 0.05 * model.matter.X.numpy()
    model.v.assign(random.standard_normal((len(model), 3)))
    forces = forces_at(model, u)
    x = model.matter.X.numpy() + u
    scale = np.abs(forces).sum()
    assert np.abs(forces.sum(axis=0)).max() < 1e-12 * scale
    assert np.abs(np.cross(x, forces).sum(axis=0)).max() < 1e-11 * scale


def test_a_spinning_drop_keeps_momentum_and_angular_momentum():
    """Nothing touches it: momentum to single rounding; angular momentum within 1 % while it is absorbed again and again
    (strain is stored exactly, but neighbourhoods change)."""
    drop = px.Body(px.load("sphere", points=500), material=SYRUP, nodes=300, spin=(0, 0, 3), velocity=(0.5, 0, 0))
    world = px.World(gravity=(0, 0, 0), device="cpu")
    world.add(drop)
    drop.melt()
    before = drop.diagnostics()
    world.advance(1.0)
    after = drop.diagnostics()
    assert phyxels_of(world).melting.absorptions > 10
    assert np.allclose(after["momentum"], before["momentum"], atol=1e-5 * np.linalg.norm(before["momentum"]))
    turn = np.cross(drop.positions.mean(axis=0), after["momentum"])
    left = after["angular_momentum"] - turn
    first = before["angular_momentum"]
    assert np.linalg.norm(left - first) < 0.01 * np.linalg.norm(first)


@pytest.mark.slow
def test_a_bear_melts_into_a_puddle_of_the_same_volume():
    """5 s: height below 40 %, volume within 5 %, nothing under the ground, momentum only by contact: what the fall and
    the ground did not do. What phyxels fill is compared from when they have melted on: those on the surface of what was
    solid were others, and fill less of its ears."""
    bear = px.Body(px.load("bear", points=2000), material=px.Material.gelatin(), nodes=400)
    world = px.World(device="cpu")
    world.add(bear)
    world.add(px.Ground())
    world.advance(0.02)
    height = np.ptp(bear.positions[:, 1])
    bear.melt(viscosity=150.0)
    full = filled_volume(world)
    for _ in range(20):
        world.advance(0.25)
        assert bear.positions[:, 1].min() > 0
        assert bear.surface.positions[:, 1].min() > -1e-6
    assert np.ptp(bear.positions[:, 1]) < 0.4 * height
    assert filled_volume(world) == pytest.approx(full, rel=0.05)
    assert bear.diagnostics()["volume"] == pytest.approx(bear.volumes.sum(), rel=0.02)


@pytest.fixture(scope="module")
def two_drops() -> tuple[px.World, px.Body, px.Body]:
    """Two balls of different spacing side by side that have melted on the ground until they are one."""
    left = px.Body(
        px.load("sphere", points=800), material=SYRUP, nodes=250, at=(-0.29, 0.25, 0), place="center", name="left"
    )
    right = px.Body(
        px.load("sphere", points=800), material=SYRUP, nodes=350, at=(0.29, 0.25, 0), place="center", name="right"
    )
    world = px.World(device="cpu")
    for thing in (left, right, px.Ground()):
        world.add(thing)
    assert len(world.pieces()) == 2
    left.melt(viscosity=300.0)
    right.melt(viscosity=300.0)
    world.advance(1.5)
    return world, left, right


def test_two_melted_balls_join_and_ring_as_one(two_drops):
    """Solid again, they are one piece: a knock on the far left is felt on the far right, and without gravity the whole
    keeps its momentum and hangs together."""
    world, left, right = two_drops
    assert len(world.pieces()) == 1
    assert left.unit == right.unit
    for body in (left, right):
        body.solidify(material=px.Material(young=1e6, damping=1e-3))
    assert phyxels_of(world).model.melt is None
    world.gravity = np.zeros(3)
    world.colliders.clear()
    model = phyxels_of(world).model
    model.stop()
    knock = model.v.numpy()
    knock[slice(*model.ranges[0])] = (0, 0, 1.0 / left.unit)
    model.v.assign(knock)
    pushed = left.diagnostics()["momentum"] + right.diagnostics()["momentum"]
    shape = np.concatenate([left.positions, right.positions])
    world.advance(0.5)
    now = np.concatenate([left.positions, right.positions])
    total = left.diagnostics()["momentum"] + right.diagnostics()["momentum"]
    assert np.allclose(total, pushed, atol=1e-4 * np.linalg.norm(pushed))
    assert right.diagnostics()["momentum"][2] > 0.2 * pushed[2]
    assert len(world.pieces()) == 1
    assert np.abs(np.ptp(now, axis=0)[[0, 1]] - np.ptp(shape, axis=0)[[0, 1]]).max() < 0.25


def test_what_flows_apart_is_apart():
    """A molten column held at the top tears under its weight: one piece becomes two."""
    column = px.Body(
        px.load("bar", points=800), material=SYRUP, nodes=300, rotate=(0, 0, 90), at=(0.5, 1.5, 0), place="center"
    )
    world = px.World(device="cpu")
    world.add(column)
    column.fix(lambda X: X[:, 1] > X[:, 1].max() - 0.15)
    column.melt(viscosity=60.0)
    for _ in range(20):
        world.advance(0.1)
        if len([piece for piece in world.pieces() if len(piece[column]) > 20]) > 1:
            break
    assert len([piece for piece in world.pieces() if len(piece[column]) > 20]) > 1


def test_a_melted_end_flows_and_the_solid_end_stays():
    """Only a region melts: the held, solid half of a bar keeps its shape; the molten half hangs down."""
    bar = px.Body(
        px.load("bar", points=800), material=px.Material(young=1e6, damping=1e-3), nodes=400, at=(0, 1, 0), place="file"
    )
    world = px.World(device="cpu")
    world.add(bar)
    bar.fix(lambda X: X[:, 0] < 0.05)
    start = bar.positions
    middle = 0.5 * (start[:, 0].min() + start[:, 0].max())
    bar.melt(lambda X: X[:, 0] > middle, viscosity=300.0)
    world.advance(0.4)
    moved = np.linalg.norm(bar.positions - start, axis=1)
    assert moved[start[:, 0] < middle - 0.1].max() < 0.1
    assert moved[start[:, 0] > 0.9].mean() > 0.15


def test_stiffening_does_not_multiply_the_stress():
    """A squeezed block made a hundred times stiffer has the stress it had, to the strain's second order, and does not
    jump: without the rule it would fly apart with a hundred times the energy."""
    block = px.Body(px.load("bar", points=600), material=px.Material(young=1e5, poisson=0.3), nodes=200)
    world = px.World(gravity=(0, 0, 0), device="cpu")
    world.add(block)
    left, right = block.fix(lambda X: X[:, 0] < 0.1), block.drag(lambda X: X[:, 0] > 0.9, (-0.1, 0, 0))
    px.settle(world, 1e-3)
    before = block.stress
    block.material = block.material.but(young=1e7)
    after = block.stress
    assert np.abs(after - before).max() < 0.1 * np.abs(before).max()
    length = np.ptp(block.positions[:, 0])
    block.release(left)
    block.release(right)
    world.advance(0.3)
    assert np.ptp(block.positions[:, 0]) == pytest.approx(length, rel=0.01)


def test_softening_leaves_the_stored_strain():
    bar = px.Body(px.load("bar", points=600), material=px.Material(young=1e6, yield_strain=0.01), nodes=150)
    world = px.World(gravity=(0, 0, 0), device="cpu")
    world.add(bar)
    bar.fix(lambda X: X[:, 0] < 0.1)
    bar.drag(lambda X: X[:, 0] > 0.9, lambda time: (0.5 * time, 0, 0))
    world.advance(0.2)
    before = bar.plastic_strain
    assert np.abs(before).max() > 0.01
    bar.material = bar.material.but(young=1e5)
    assert np.array_equal(bar.plastic_strain, before)


def test_a_resumed_melt_goes_on_with_the_same_bits(tmp_path):
    def made() -> tuple[px.World, px.Body]:
        ball = px.Body(
            px.load("sphere", points=500), material=SYRUP, nodes=150, at=(0, 0.25, 0), place="center", name="ball"
        )
        other = px.Body(
            px.load("sphere", points=500), material=SYRUP, nodes=200, at=(0, 0.8, 0), place="center", name="other"
        )
        world = px.World(device="cpu")
        for thing in (ball, other, px.Ground()):
            world.add(thing)
        world.at(0.1, lambda now: now.bodies[0].melt(viscosity=100.0))
        world.at(0.2, lambda now: now.bodies[1].melt(viscosity=100.0))
        world.at(0.6, lambda now: now.bodies[0].solidify())
        return world, other

    world, other = made()
    world.advance(0.5)
    world.save(tmp_path / "half.npz")
    world.advance(0.3)
    again, again_other = made()
    again.restore(tmp_path / "half.npz")
    again.advance(0.3)
    assert np.array_equal(other.positions, again_other.positions)
    assert np.array_equal(other.surface.positions, again_other.surface.positions)


def test_melting_says_what_is_wrong():
    body = px.Body(px.load("sphere", points=500), nodes=50)
    with pytest.raises(px.PhyxelError, match="world"):
        body.melt()
    world = px.World(device="cpu")
    world.add(body)
    with pytest.raises(px.PhyxelError, match="nothing here has melted"):
        body.solidify()
    with pytest.raises(px.PhyxelError, match="viscosity"):
        body.melt(viscosity=-1.0)


def test_a_mixture_knows_each_node():
    first, second = px.Material(young=1e5), px.Material(young=1e6)
    mixture = Mixture.even(first, 4).changed(np.array([0, 1, 0, 1], bool), lambda _: second)
    assert mixture.number("young").tolist() == [1e5, 1e6, 1e5, 1e6]
    assert mixture.changed(np.ones(4, bool), lambda _: first).materials == (first,)


@pytest.mark.parametrize("shape", ["torus", "box", "bear"])
def test_melting_at_rest_does_nothing(shape: str):
    """Without gravity nothing moves what melts at rest: no energy from nowhere, to rounding. Its phyxels are others
    then, which fill the same room."""
    body = px.Body(px.load(shape, points=1000), material=px.Material(young=1e5), nodes=150, size=0.2)
    world = px.World(gravity=(0, 0, 0), device="cpu")
    world.add(body)
    middle, seen = body.masses @ body.positions / body.masses.sum(), body.surface.positions
    body.melt(viscosity=50.0)
    start = body.positions
    assert body.masses @ start / body.masses.sum() == pytest.approx(middle, abs=1e-5 * body.unit)
    assert body.diagnostics()["elastic"] < 1e-9
    assert np.abs(body.surface.positions - seen).max() < 1e-4 * body.unit
    world.advance(0.2)
    assert np.abs(body.positions - start).max() < 1e-4 * body.unit


@pytest.mark.parametrize(("speed", "viscosity"), [(20.0, 100.0), (30.0, 1.0)])
def test_a_drop_that_hits_the_ground_fast_splashes_and_gains_nothing(speed: float, viscosity: float):
    """Faster than its sound (14 m/s): the energy only falls."""
    drop = px.Body(
        px.load("sphere", points=500),
        material=SYRUP,
        nodes=150,
        size=0.2,
        at=(0, 0.15, 0),
        place="center",
        velocity=(0, -speed, 0),
    )
    world = px.World(device="cpu")
    world.add(drop)
    world.add(px.Ground())
    drop.melt(viscosity=viscosity)
    energy = []
    for _ in range(10):
        now = drop.diagnostics()
        energy.append(now["kinetic"] + now["elastic"] + now["potential"])
        world.advance(0.005)
    assert max(energy[1:]) < energy[0]
    assert energy[-1] < 0.5 * energy[0]
    assert drop.positions[:, 1].min() > 0


def test_a_frozen_puddle_of_two_rests():
    """Two drops that have flowed together and are solid: no contact between what is one piece, no energy out of it."""
    material = px.Material(young=1e5)
    ball = px.load("sphere", points=500)
    left = px.Body(ball, nodes=120, size=0.2, at=(0, 0.1, 0), place="center", material=material)
    right = px.Body(ball, nodes=60, size=0.15, at=(0.16, 0.075, 0), place="center", material=material)
    world = px.World(device="cpu")
    for thing in (left, right, px.Ground()):
        world.add(thing)
    for body in (left, right):
        body.melt(viscosity=20.0)
    world.advance(0.6)
    for body in (left, right):
        body.solidify()
    energy = []
    for _ in range(8):
        world.advance(0.1)
        parts = [body.diagnostics() for body in (left, right)]
        energy.append(sum(part["kinetic"] + part["elastic"] + part["potential"] for part in parts))
    assert (np.diff(energy) <= 1e-4 * energy[0]).all()


def test_a_script_that_melted_must_do_so_again_before_restoring(tmp_path):
    def made() -> tuple[px.World, px.Body]:
        ball = px.Body(px.load("sphere", points=500), material=SYRUP.but(viscosity=None), nodes=100, size=0.2)
        world = px.World(device="cpu")
        world.add(ball)
        return world, ball

    world, ball = made()
    ball.melt(viscosity=20.0)
    world.advance(0.05)
    world.save(tmp_path / "melted.npz")
    fresh, _ = made()
    with pytest.raises(px.PhyxelError, match="changed, melted or made solid by a script"):
        fresh.restore(tmp_path / "melted.npz")
