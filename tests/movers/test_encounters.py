"""Phyxel bodies and those with a model of their own. Boxes have sides of 0.2 m."""

import warnings

import numpy as np
import pytest

import phyxel as px
from phyxel.errors import PhyxelWarning
from tests.worlds import energy, sums, weightless, world_of


def box(model, at, **more):
    stuff = px.Material(young=1e5, density=1000.0, damping=more.pop("damping", 0.0))
    size = {} if model == "rigid" else {"nodes": 100}
    cloud = px.load("box", points=800)
    return px.Body(cloud, model=model, material=stuff, size=0.2, at=at, place="center", **size, **more)


@pytest.mark.parametrize("integrator", ["leapfrog", "implicit"])
@pytest.mark.parametrize("other", ["rigid", "modal", "galerkin"])
def test_momenta_are_kept_and_no_energy_comes(other, integrator):
    """At 2 m/s against each other, spinning: momenta to rounding of single precision over what they exchange (1e-6),
    energy to 1e-4."""
    first = box("phyxel", (0, 0, 0), velocity=(1, 0, 0), spin=(0, 0, 2), integrator=integrator, name="a")
    world = weightless(first, box(other, (0.22, 0.05, 0.02), velocity=(-1, 0, 0), spin=(1, 0, 0)))
    momentum, spin = sums(world, "momentum", "angular_momentum")
    start, before, most = np.array(first.diagnostics()["momentum"]), energy(world), 0.0
    for _ in range(4):
        world.advance(0.015)
        most = max(most, energy(world))
    exchanged = np.linalg.norm(np.array(first.diagnostics()["momentum"]) - start)
    after, turned = sums(world, "momentum", "angular_momentum")
    assert exchanged > 1  # they did meet
    assert np.abs(after - momentum).max() < 1e-6 * exchanged
    assert np.abs(turned - spin).max() < 1e-6 * exchanged
    assert most < (1 + 1e-4) * before


@pytest.mark.parametrize(("below", "above"), [("rigid", "phyxel"), ("phyxel", "rigid"), ("modal", "phyxel")])
def test_one_comes_to_rest_on_the_other(below, above):
    """Pressed together by their weight: ρ g (h²/2 + h²)/E = 6 mm for two soft ones. What is left of the motion after
    half a second of damping is below what gravity makes in an interval, g/240 = 4 cm/s."""
    low, high = box(below, (0, 0.1, 0), damping=1e-2), box(above, (0.01, 0.301, 0), damping=1e-2)
    world = world_of(px.Ground(), low, high)
    world.advance(0.5)
    assert high.surface.positions[:, 1].min() == pytest.approx(0.2, abs=0.009)
    speeds = [np.sqrt(2 * body.diagnostics()["kinetic"] / body.masses.sum()) for body in (low, high)]
    assert max(speeds) < 0.03


def test_a_melt_stays_on_a_rigid_box():
    """A small box that melts on a larger one spreads on it; nothing is found below its face, but for what balls of half
    a spacing and the sinking of a step let in."""
    table = box("rigid", (0, 0.1, 0))
    drop = px.Body(px.load("box", points=500), nodes=80, size=0.08, at=(0, 0.205, 0), material=px.Material(young=2e4))
    world = world_of(px.Ground(), table, drop)
    drop.melt(viscosity=20.0)
    world.advance(0.3)
    x = drop.positions
    over = (np.abs(x[:, 0]) < 0.09) & (np.abs(x[:, 2]) < 0.09)
    assert over.sum() > 0.8 * len(x)
    assert x[over, 1].min() > 0.2


def test_bodies_that_are_far_apart_go_as_if_alone():
    """To the bit."""

    def fallen(*others):
        one = box("phyxel", (0, 0.3, 0))
        world_of(px.Ground(), one, *others).advance(0.1)
        return one.positions

    assert np.array_equal(fallen(), fallen(box("rigid", (5, 0.1, 0))))


def test_a_run_goes_on_from_a_checkpoint_with_the_same_bits(tmp_path):
    """In the middle of a contact."""

    def pair():
        return world_of(px.Ground(), box("rigid", (0, 0.1, 0), name="a"), box("phyxel", (0.02, 0.305, 0), name="b"))

    whole, first, second = pair(), pair(), pair()
    whole.advance(0.1)
    whole.advance(0.05)
    first.advance(0.1)
    first.save(tmp_path / "pair.npz")
    second.restore(tmp_path / "pair.npz")
    second.advance(0.05)
    for one, other in zip(whole.bodies, second.bodies, strict=True):
        assert np.array_equal(one.positions, other.positions)


def test_all_kinds_meet_and_nothing_is_told() -> None:
    """A cloth and a box."""
    cloth = px.Body(px.load("cloth", points=100), model="particles", at=(0, 0.5, 0))
    world = world_of(box("rigid", (0, 0.1, 0), name="stone"))
    with warnings.catch_warnings():
        warnings.simplefilter("error", PhyxelWarning)
        world.add(cloth)
