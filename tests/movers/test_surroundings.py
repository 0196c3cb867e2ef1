"""Bodies that start in the ground stand on it before anything is seen, and it is said."""

import warnings

import numpy as np
import pytest

import phyxel as px
from phyxel.errors import PhyxelWarning

MODELS = ["phyxel", "galerkin", "modal", "particles"]


def world_with(model: str, depth: float, height: float = 0.0, hold: bool = False) -> tuple[px.World, px.Body]:
    """A box of 0.5 m that reaches so deep into a ground at a height [m]."""
    thin = {"links": "none"} if model == "particles" else {}
    at = (0.3, height - depth, 0)
    body = px.Body(px.load("box", points=600), nodes=60, model=model, at=at, **thin)
    world = px.World(device="cpu")
    world.add(body)
    world.add(px.Ground(height))
    if hold:
        body.fix(lambda X: X[:, 0] > 0.4)
    return world, body


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("height", [0.0, -3.0])
def test_frame_0_has_it_set_down(model, height):
    world, body = world_with(model, 0.2, height)
    with pytest.warns(PhyxelWarning, match=r"box: reaches 20\.\d cm below the ground; it is set down.*`at`"):
        first = next(iter(world.play(seconds=0.1)))
    lowest = first.bodies[0].surface.positions[:, 1].min()
    assert lowest == pytest.approx(height, abs=1e-3)
    before = body.positions
    world.advance(1e-4)
    assert np.abs(body.positions - before).max() < 1e-3  # and the next step finds it there


@pytest.mark.parametrize("model", MODELS)
def test_what_stands_well_or_hardly_touches_is_not_told_of(model):
    for depth in (-0.5, 0.0, 0.01):
        with warnings.catch_warnings():
            warnings.filterwarnings("error", ".*ground", PhyxelWarning)
            world_with(model, depth)[0].advance(0.0)


@pytest.mark.parametrize("model", MODELS)
def test_what_is_held_stays_and_is_told_of(model):
    world, body = world_with(model, 0.3, hold=True)
    before = body.positions
    with pytest.warns(PhyxelWarning, match=r"below the ground\. `at`"):
        world.advance(0.0)
    assert np.array_equal(body.positions, before)


def test_what_happens_at_the_start_happens_to_what_is_set_down():
    """However the first moment is cut up: an event at 0 holds the box where it was set down."""
    world, body = world_with("phyxel", 0.2)
    world.at(0.0, lambda world: body.fix(lambda X: X[:, 0] > 0))
    with pytest.warns(PhyxelWarning):
        world.advance(0.0)
    other, same = world_with("phyxel", 0.2)
    with pytest.warns(PhyxelWarning):
        other.advance(0.0)
    same.fix(lambda X: X[:, 0] > 0)
    for one in (world, other):
        one.advance(0.05)
    assert np.array_equal(body.positions, same.positions)
    assert body.positions[:, 1].min() > -1e-6  # nodes lie on the ground
