"""Which mover moves which body of a world, and what it is told."""

import pytest

import phyxel as px
from phyxel.body.protocols import Change
from phyxel.movers.phyxel_bodies import phyxels_of
from tests.movers.drift import drift_known
from tests.world.boxes import NOWHERE, G, box
from tests.worlds import bits, world_of


@pytest.fixture
def drift():
    """One more model, with a mover of its own."""
    with drift_known() as kind:
        yield kind


def test_each_body_is_moved_by_its_own_mover(drift, tmp_path):
    """Phyxel bodies do as they would without others beside them, wherever those stand in the list."""

    def mixed_world():
        drifting = [box(name=name, at=(x, 0, 0), model="drift") for name, x in (("one", 5), ("two", 7))]
        return world_of(drifting[0], box(name="tom"), drifting[1], box(name="tim", at=(2, 0, 0)), px.Ground(-0.5))

    alone = world_of(box(name="tom"), box(name="tim", at=(2, 0, 0)), px.Ground(-0.5))
    mixed, again = mixed_world(), mixed_world()
    for world in (alone, mixed, again):
        world.at(0.05, lambda w: w.bodies[-1].drag([3], (0.01, 0, 0)))
    for world in (alone, mixed):
        world.advance(0.1)
    assert [bits(mixed)[k] for k in (2, 3, 6, 7)] == bits(alone)
    one, tom, two, _ = mixed.bodies
    mover = mixed.mover_of(one)
    assert mover is mixed.mover_of(two) and mixed.mover_of(tom) is phyxels_of(mixed) is not mover
    assert mover.spans == [(0.0, 0.05), (0.05, pytest.approx(0.05))]
    assert one.positions[0, 1] - one.birth[0, 1] == pytest.approx(-0.5 * G * 0.1**2)
    assert one.velocities[0, 1] == pytest.approx(-G * 0.1)
    assert sorted(body.name for piece in mixed.pieces() for body in piece) == ["one", "tim", "tom", "two"]
    assert {len(piece) for piece in mixed.pieces()} == {1}

    mixed.save(tmp_path / "state.npz")
    again.restore(tmp_path / "state.npz")
    for world in (mixed, again):
        world.advance(0.1)
    assert bits(again) == bits(mixed)


def test_a_mover_hears_what_its_body_does(drift):
    body = box(name="one", model="drift")
    world = world_of(body)
    mover = world.mover_of(body)
    for act, word in (
        (lambda: body.change(young=2e5), Change.MATERIAL),
        (lambda: body.fix([0]), Change.HOLDS),
        (lambda: setattr(body, "force", (1, 0, 0)), Change.FORCE),
        (lambda: setattr(world, "gravity", NOWHERE), "surroundings"),
        (lambda: world.add(px.Ground(-5)), "surroundings"),
        (lambda: world.settle(1e-3), ("settle", 1e-3)),
    ):
        mover.told.clear()
        act()
        assert mover.told == [word]


def test_a_world_without_phyxel_bodies_makes_no_phyxel_model(drift, monkeypatch, tmp_path):
    monkeypatch.setattr("phyxel.movers.phyxel_bodies.PhyxelModel", None)
    world = world_of(box(name="one", model="drift"), px.Ground(-5))
    world.advance(0.1)
    world.settle()
    world.save(tmp_path / "state.npz")
    world.restore(tmp_path / "state.npz")
    assert len(world.pieces()) == 1 and world.steps == 1
