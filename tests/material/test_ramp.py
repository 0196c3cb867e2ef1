"""Materials that change smoothly while a world runs."""

import math
from functools import cache

import numpy as np
import pytest

import phyxel as px
from phyxel.material.ramp import Ramp
from phyxel.movers.phyxel_bodies import phyxels_of
from tests.worlds import bits, left_end, weightless, world_of

SOFT = px.Material(young=1e5, poisson=0.3, density=1000.0, damping=2e-3)
NOWHERE = (0.0, 0.0, 0.0)
MASS = 125.0
"""of the box [kg]"""
FIELDS = ("u", "v", "plastic")


@cache
def solid() -> px.Solid:
    return px.Solid(px.load("box", points=300))


def box(**options) -> px.Body:
    return px.Body(solid().skin, **({"nodes": 64, "material": SOFT} | options))


# The way from one material to another


@pytest.mark.parametrize("t, share", [(-1, 0), (0, 0), (0.25, 5 / 32), (0.5, 0.5), (0.75, 27 / 32), (1, 1), (9, 1)])
def test_numbers_go_smoothly_from_one_to_the_other(t, share):
    """s = t²(3 − 2t); moduli, yields and creep by a factor, others by a step."""
    start = SOFT.but(yield_strain=0.01, creep=100.0, drag=1.0)
    end = start.but(young=1e7, poisson=0.4, density=2000, damping=0.0, drag=3.0, yield_strain=0.04, creep=1.0)
    now = Ramp(start, end, begin=2.0, duration=4.0).at(2.0 + 4.0 * t)
    assert now.young == pytest.approx(1e5 * 100**share)
    assert now.yield_strain == pytest.approx(0.01 * 4**share)
    assert now.creep == pytest.approx(100 * 0.01**share)
    assert now.poisson == pytest.approx(0.3 + 0.1 * share)
    assert now.density == pytest.approx(1000 + 1000 * share)
    assert now.damping == pytest.approx(2e-3 * (1 - share), abs=1e-15)
    assert now.drag == pytest.approx(1 + 2 * share)
    assert now.max_strain == 0.5


def test_both_ends_are_exact():
    end = SOFT.but(young=3e4, density=770.0)
    ramp = Ramp(SOFT, end, begin=0.3, duration=0.7)
    assert ramp.at(0.3) == SOFT and ramp.at(1.0) == end


def test_what_is_no_number_at_one_end_changes_at_once():
    ramp = Ramp(SOFT, SOFT.but(yield_stress=50.0, creep=3.0), begin=0.0, duration=1.0)
    assert (ramp.at(0.0).yield_stress, ramp.at(0.0).creep) == (50.0, 3.0)
    back = Ramp(SOFT.but(yield_stress=50.0, creep=3.0), SOFT, begin=0.0, duration=1.0).at(0.0)
    assert back.yield_stress is None and math.isinf(back.creep)


def test_creep_that_begins_at_nothing_grows_in_even_steps():
    ramp = Ramp(SOFT.but(creep=0.0), SOFT.but(creep=8.0), begin=0.0, duration=1.0)
    assert ramp.at(0.5).creep == pytest.approx(4.0)


def test_grain_fades_into_an_even_material():
    wood, gelatin = px.Material.wood(), px.Material.gelatin()
    halfway = Ramp(wood, gelatin, begin=0.0, duration=2.0).at(1.0)
    assert np.allclose(halfway.elasticity, 0.5 * (wood.elasticity + gelatin.elasticity))
    assert Ramp(wood, gelatin, begin=0.0, duration=2.0).at(2.0) == gelatin


# In a world


def test_a_body_changes_from_now_on():
    body = box()
    world = world_of(body)
    world.advance(0.1)
    body.change(young=4e5, density=2000.0, over=0.2)
    assert body.material == SOFT
    world.advance(0.1)
    assert body.material.young == pytest.approx(2e5)
    assert body.diagnostics()["mass"] == pytest.approx(1.5 * MASS, rel=1e-6)
    assert phyxels_of(world).model.matter.mass.numpy().sum() * body.unit == pytest.approx(1.5 * MASS, rel=1e-5)
    world.advance(0.1)
    assert body.material == SOFT.but(young=4e5, density=2000.0)
    world.advance(0.1)
    assert body.material == SOFT.but(young=4e5, density=2000.0)


def test_a_change_without_time_is_there_at_once():
    body = box()
    world_of(body)
    body.change(young=2e5)
    assert body.material == SOFT.but(young=2e5)
    body.change(px.Material.gelatin(), density=900.0)
    assert body.material == px.Material.gelatin().but(density=900.0)


@pytest.mark.parametrize("by", ["assignment", "change"])
def test_a_new_material_replaces_a_change_still_going_on(by):
    body = box()
    world = world_of(body)
    body.change(young=1e6, over=0.2)
    world.advance(0.1)
    if by == "assignment":
        body.material = SOFT
    else:
        body.change(young=1e5, over=0.05)
        assert body.material.young == pytest.approx(1e5 * math.sqrt(10))
    world.advance(0.15)
    assert body.material.young == pytest.approx(1e5)


@pytest.mark.parametrize("numbers", [{"over": -1}, {"over": math.nan}, {"yuong": 1e5}, {"young": -1.0, "over": 1.0}])
def test_absurd_changes_are_refused(numbers):
    body = box()
    with pytest.raises(px.PhyxelError):
        body.change(**numbers)
    assert body.material == SOFT


def test_a_force_moves_what_grows_heavier_less():
    """v = ∫F/m dt with m = m₀(1 + s(t)): the force is on the mass of the moment, not of the start. The mass at
    the start of each frame of Δt is off by ½Δt [F/m] in all, 0.9 % here."""
    body = box()
    world = weightless(body)
    body.force = (MASS, 0, 0)
    body.change(density=2000.0, over=0.4)
    for _ in range(40):
        world.advance(0.01)
    t = (np.arange(4000) + 0.5) / 4000
    expected = 0.4 * np.mean(1 / (1 + t * t * (3 - 2 * t)))
    assert body.velocities[:, 0].mean() == pytest.approx(expected, rel=0.01)


def test_energy_does_not_jump_when_a_change_begins():
    """Over a second the modulus is, after Δt, 3(Δt)² ln 2 more. Twice the modulus at once leaves the stress, and so
    halves the energy ½σ²/E; only the hourglass part, some percent of it, doubles."""
    body = box()
    world = world_of(body)
    body.fix(left_end)
    px.settle(world)
    before = body.diagnostics()["elastic"]
    body.change(young=2e5, over=1.0)
    assert body.diagnostics()["elastic"] == pytest.approx(before, rel=1e-6)
    world.advance(0.01)
    assert body.diagnostics()["elastic"] == pytest.approx(before, rel=1e-3)
    body.material = SOFT.but(young=2e5)
    assert 0.5 * before < body.diagnostics()["elastic"] < 0.6 * before


def test_what_softens_slowly_sags_as_far_as_what_was_soft():
    """A slow change passes through equilibria: it ends in that of its last material."""
    sags = []
    for slowly in (True, False):
        body = box(material=SOFT.but(young=4e5, damping=0.02) if slowly else SOFT)
        world = world_of(body)
        body.fix(left_end)
        px.settle(world)
        if slowly:
            body.change(young=1e5, over=0.6)
            world.advance(2.4)
        sags.append(body.positions[:, 1].min() - body.reference[:, 1].min())
    assert sags[0] == pytest.approx(sags[1], rel=0.02)


# Checkpoints


def changing(integrator: str) -> px.World:
    """A held body that melts slowly, and on its way turns to something else."""
    body = box(integrator=integrator)
    world = world_of(body)
    body.fix(left_end)
    world.at(0.05, lambda w: body.change(young=2e4, yield_strain=0.02, creep=20.0, over=0.15))
    world.at(0.12, lambda w: body.change(density=1500.0, damping=5e-3, over=0.1))
    return world


@pytest.mark.parametrize("integrator", ["leapfrog", "implicit"])
@pytest.mark.parametrize("when", [0.04, 0.1, 0.16])
def test_a_run_resumed_in_the_middle_of_a_change_has_the_same_bits(integrator, when, tmp_path):
    straight = changing(integrator)
    straight.advance(when)
    straight.save(tmp_path / "state.npz")
    resumed = changing(integrator)
    resumed.restore(tmp_path / "state.npz")
    assert resumed.bodies[0].material == straight.bodies[0].material
    for world in (straight, resumed):
        for _ in range(4):
            world.advance(1 / 30)
    assert bits(resumed, *FIELDS) == bits(straight, *FIELDS)
    assert resumed.bodies[0].material == straight.bodies[0].material


def test_going_back_into_a_change_that_is_over_finds_its_middle(tmp_path):
    body = box()
    world = world_of(body)
    body.fix(left_end)
    body.change(young=4e5, over=0.1)
    world.advance(0.05)
    world.save(tmp_path / "state.npz")
    world.advance(0.1)
    after = bits(world, *FIELDS)
    world.restore(tmp_path / "state.npz")
    assert body.material.young == pytest.approx(2e5)
    world.advance(0.1)
    assert bits(world, *FIELDS) == after


# Scene files


def test_an_event_changes_a_material_over_a_time():
    text = '[[body]]\nshape = "box"\nnodes = 64\npoints = 300\nmaterial = { young = 1.0e5 }\n'
    world = px.Scene.parse(text + "[[event]]\nat = 0.1\nmaterial = { young = 4.0e5 }\nover = 0.2\n").world()
    (body,) = world.bodies
    found = []
    for _ in range(4):
        world.advance(0.1)
        found.append(body.material.young)
    assert found == pytest.approx([1e5, 2e5, 4e5, 4e5])
