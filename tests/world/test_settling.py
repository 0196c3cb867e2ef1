"""Rest of several bodies: each finds its own, or that is refused."""

import itertools

import pytest

import phyxel as px
from tests.worlds import world_of

SIDE = 0.2
KINDS = ("phyxel", "galerkin", "modal", "rigid")


def box(model, at, name):
    nodes = {} if model == "rigid" else {"nodes": 64}
    stuff = px.Material(young=1e6, poisson=0.3, density=1000.0)
    return px.Body(px.load("box", points=400), model=model, material=stuff, size=SIDE, at=at, name=name, **nodes)


@pytest.mark.parametrize("pair", [*itertools.pairwise(KINDS), ("rigid", "phyxel"), ("modal", "modal")])
def test_what_would_come_to_lie_in_another_is_refused_and_nothing_moves(pair):
    low, high = box(pair[0], (0, 0, 0), "low"), box(pair[1], (0.03, SIDE + 0.03, 0), "high")
    world = world_of(low, high, px.Ground())
    before = [body.positions for body in (low, high)]
    with pytest.raises(px.PhyxelError, match=r"low and high come within .*world\.advance"):
        px.settle(world)
    assert all((body.positions == x).all() for body, x in zip((low, high), before, strict=True))
    assert (low.velocities == 0).all() and world.time == 0


def test_beside_each_other_all_rest_as_if_alone():
    """A row of boxes with gaps of half a side. To 1e-4 of a spacing: elsewhere roundings differ, and where friction
    holds depends on how it was come to."""
    boxes = [box(kind, (1.5 * SIDE * k, 0, 0), kind) for k, kind in enumerate(KINDS)]
    px.settle(world_of(*boxes, px.Ground()))
    for body in boxes:
        alone = box(body.model, tuple(body.origin), "alone")
        px.settle(world_of(alone, px.Ground()))
        assert body.positions == pytest.approx(alone.positions, abs=1e-4 * body.unit)


def test_phyxel_bodies_rest_on_each_other():
    low, high = box("phyxel", (0, 0, 0), "low"), box("phyxel", (0, SIDE + 0.01, 0), "high")
    px.settle(world_of(low, high, px.Ground()))
    assert high.positions[:, 1].min() == pytest.approx(SIDE, abs=0.1 * low.unit)


def test_through_a_thin_plate_is_in_its_way_too():
    """It would come to lie on the ground below, touching the plate neither at first nor at last."""
    plate = px.Body(px.load("box", points=2000), model="rigid", size=SIDE, at=(0, 0.5, 0), name="plate")
    ball = px.Body(px.load("sphere", points=400), model="rigid", size=0.05, at=(0, 0.9, 0), name="ball")
    world = world_of(plate, ball, px.Ground())
    plate.fix(px.Box((-1, -1, -1), (1, 1, 1)))
    with pytest.raises(px.PhyxelError, match="plate and ball come within"):
        px.settle(world)


def test_what_is_tied_is_refused():
    low, high = box("modal", (0, 0, 0), "low"), box("rigid", (0, SIDE, 0), "high")
    world = world_of(low, high, px.Ground())
    world.add(px.Attach(low, high))
    with pytest.raises(px.PhyxelError, match="high are tied"):
        px.settle(world)
