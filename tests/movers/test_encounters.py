"""Phyxel bodies and those with a model of their own. Boxes have sides of 0.2 m."""

import warnings

import numpy as np
import pytest

import phyxel as px
from phyxel.errors import PhyxelWarning
from tests.worlds import world_of


def box(model, at, **more):
    stuff = px.Material(young=1e5, density=1000.0, damping=more.pop("damping", 0.0))
    size = {} if model == "rigid" else {"nodes": 100}
    cloud = px.load("box", points=800)
    return px.Body(cloud, model=model, material=stuff, size=0.2, at=at, place="center", **size, **more)


@pytest.mark.parametrize(
    ("below", "above"),
    [("rigid", "phyxel"), ("phyxel", "rigid"), pytest.param("modal", "phyxel", marks=pytest.mark.slow)],
)
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


def test_all_kinds_meet_and_nothing_is_told() -> None:
    """A cloth and a box."""
    cloth = px.Body(px.load("cloth", points=100), model="particles", at=(0, 0.5, 0))
    world = world_of(box("rigid", (0, 0.1, 0), name="stone"))
    with warnings.catch_warnings():
        warnings.simplefilter("error", PhyxelWarning)
        world.add(cloth)
