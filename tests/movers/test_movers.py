"""Flocks of phyxel bodies: each body its own integrator and step."""

import numpy as np

import phyxel as px
from tests.movers.flocks import SOFT, STONE, WAX, bits, box, flocks
from tests.worlds import world_of


def test_each_body_chooses_for_itself():
    """What leap-frog takes in few steps, what it would not, and what is told otherwise."""
    soft, stone, told = box(SOFT, (0, 0.1, 0)), box(STONE, (1, 0.1, 0)), box(SOFT, (2, 0.1, 0), integrator="implicit")
    world = world_of(px.Ground(), soft, stone, told)
    world.advance(0.01)
    assert world.integrator == "leapfrog, implicit"
    assert flocks(world)["leapfrog"].bodies == [soft]
    assert flocks(world)["implicit"].bodies == [stone, told]
    assert world.steps == flocks(world)["leapfrog"].steps + 1


def test_a_world_of_one_integrator_has_one_flock():
    for material in (SOFT, STONE):
        world = world_of(px.Ground(), box(material, (0, 0.1, 0)), box(material, (1, 0.1, 0)))
        world.advance(0.01)
        assert len(flocks(world)) == 1


def test_far_apart_each_goes_as_if_alone():
    """To the bit, and in as many steps: a melt and a stone, on the ground."""

    def lived(*bodies):
        world = world_of(px.Ground(), *bodies)
        for body in bodies:
            if body.name == "wax":
                body.melt(viscosity=20.0)
        world.advance(0.05)
        return world

    def wax():
        return box(WAX, (0, 0.11, 0), name="wax")

    def stone():
        return box(STONE, (3, 0.11, 0), name="stone", spin=(0, 0, 1))

    both, alone, other = lived(stone(), wax()), lived(wax()), lived(stone())
    assert bits(*both.bodies) == bits(*other.bodies, *alone.bodies)
    assert flocks(both)["leapfrog"].steps == alone.steps
    assert flocks(both)["implicit"].steps == other.steps


def test_what_melts_leaves_the_stone_beside_it():
    """Stiff wax on a stone: one flock at first; as it melts it goes on by leap-frog, from where it is, and flows over
    the stone, not into it, but for what balls of half a spacing and the sinking of a step let in."""
    stone = box(STONE, (0, 0.1, 0), nodes=60)
    cloud = px.load("box", points=500)
    wax = px.Body(cloud, nodes=80, size=0.08, at=(0, 0.201, 0), material=WAX.but(young=1e9), name="wax")
    world = world_of(px.Ground(), stone, wax)
    world.advance(0.05)
    assert world.integrator == "implicit"
    top = wax.positions[:, 1].max()
    wax.melt(viscosity=20.0)
    world.advance(0.3)
    assert flocks(world)["leapfrog"].bodies == [wax] and flocks(world)["implicit"].bodies == [stone]
    x = wax.positions
    over = (np.abs(x[:, 0]) < 0.09) & (np.abs(x[:, 2]) < 0.09)
    assert over.sum() > 0.8 * len(x)
    assert x[over, 1].min() > 0.2
    assert x[:, 1].max() < top - 0.02  # it has flowed
    wax.solidify()
    world.advance(0.01)
    assert world.integrator == "implicit"  # as stiff as it was, in one flock again
    assert sorted(len(piece) for piece in world.pieces()) == [1, 1]


def test_what_melts_joins_what_has_melted():
    """Of three that are stiff, two melt one after the other."""
    bodies = [
        box(WAX.but(young=1e9), (x, 0.11, 0), nodes=60, name=name) for name, x in (("a", 0), ("b", 0.6), ("c", 2))
    ]
    world = world_of(px.Ground(), *bodies)
    for body in bodies[:2]:
        world.advance(0.01)
        body.melt(viscosity=20.0)
    world.advance(0.01)
    assert flocks(world)["leapfrog"].bodies == bodies[:2] and flocks(world)["implicit"].bodies == bodies[2:]


def test_pieces_stay_with_the_flock_of_what_broke():
    """Also if what keeps the name is a crumb, which something else moves."""
    whole, piece = box(STONE, (0, 0.1, 0), nodes=30), box(STONE, (1, 0.1, 0), nodes=30, name="piece")
    world = world_of(px.Ground(), whole, box(SOFT, (2, 0.1, 0), nodes=30))
    world.advance(0.001)
    chosen = flocks(world)["implicit"].chosen
    chosen.take_after([piece], whole)
    assert chosen.choices == {piece: "implicit"}


def test_settling_knows_no_flocks():
    """A stiff light box on a soft one at rest, in two flocks before and after: pressed together by ρ g h²/2E = 2 mm
    and ρ' g h²/E = 1 mm, and a quarter more as so coarse a box bulges and nodes meet (3 % with 300 nodes)."""
    low = box(SOFT, (0, 0.1, 0), nodes=64)
    high = box(STONE.but(young=1e7, density=300.0), (0, 0.3, 0), nodes=64, integrator="implicit")
    world = world_of(px.Ground(), low, high)
    world.advance(1e-3)
    world.settle(1e-2)
    assert len(flocks(world)) == 1
    world.advance(1e-3)
    assert len(flocks(world)) == 2
    assert 0.003 < 0.3 - high.masses @ high.positions[:, 1] / high.masses.sum() < 0.00375


def test_a_run_goes_on_from_a_checkpoint_with_the_same_bits(tmp_path):
    """In the middle of a contact of two flocks; then with a third body that has melted by an event."""

    def trio():
        wax = box(WAX.but(young=1e9), (0.5, 0.1, 0), nodes=60, name="c")
        world = world_of(px.Ground(), box(STONE, (0, 0.1, 0), name="a"), box(SOFT, (0.02, 0.305, 0), name="b"), wax)
        world.at(0.07, lambda world: world.bodies[2].melt(viscosity=20.0))
        return world

    whole, first = trio(), trio()
    for time in (0.05, 0.05, 0.02):
        whole.advance(time)
    for time in (0.05, 0.05):
        first.advance(time)
        first.save(tmp_path / f"{first.time:.2f}.npz")
    second, third = trio(), trio()
    second.restore(tmp_path / "0.05.npz")
    second.advance(0.05)
    second.advance(0.02)
    third.restore(tmp_path / "0.10.npz")
    third.advance(0.02)
    assert bits(*second.bodies) == bits(*whole.bodies)
    assert bits(*third.bodies) == bits(*whole.bodies)
