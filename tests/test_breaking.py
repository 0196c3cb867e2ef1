"""Bodies that fall apart: what they have, nobody gains or loses."""

from pathlib import Path

import numpy as np
import pytest

import phyxel as px
from phyxel.body import Body
from phyxel.breaking import break_apart
from phyxel.world import World

MODELS = ("phyxel", "galerkin")


def bar(model: str = "phyxel", **given: object) -> Body:
    """A bar of 0.4 m × 0.1 m × 0.1 m along x, in the middle of which x = 0."""
    points = px.load("box", points=3000).positions
    middle = 0.5 * (points.min(axis=0) + points.max(axis=0))
    cloud = px.PointCloud((points - middle) / np.ptp(points, axis=0) * (0.4, 0.1, 0.1), name="bar")
    material = px.Material(young=1e6, poisson=0.3, density=1000.0)
    return px.Body(cloud, **({"model": model, "material": material, "nodes": 120} | given))


def total(world: World, name: str) -> np.ndarray:
    return np.sum([body.diagnostics()[name] for body in world.bodies], axis=0)


def energy(world: World) -> float:
    return float(sum(total(world, name) for name in ("kinetic", "elastic", "potential")))


@pytest.mark.parametrize("model", MODELS)
def test_pieces_share_out_what_the_body_had(model: str) -> None:
    """A restriction of block-diagonal fields: mass, momenta and energy are sums over the pieces, to rounding (phyxels:
    positions and velocities are single precision, their sums are not)."""
    body = bar(model, spin=(3.0, 2.0, 1.0), velocity=(0.3, -0.2, 0.1), at=(0.0, 1.0, 0.0))
    world = px.World(gravity=(0, 0, 0))
    world.add(body)
    world.advance(0.05)
    before = {name: total(world, name) for name in ("mass", "momentum", "angular_momentum", "kinetic", "elastic")}
    body.cut((0.03, 1.0, 0.0), (1.0, 0.4, 0.0))
    cut = total(world, "elastic")
    assert cut <= before["elastic"] * (1 + 1e-6)
    assert break_apart(world)
    assert [one.name for one in world.bodies] == ["bar", "bar-2"]
    heavy, light = (one.masses.sum() for one in world.bodies)
    assert heavy > light > 0.3 * heavy
    for name in ("mass", "momentum", "angular_momentum", "kinetic"):
        np.testing.assert_allclose(total(world, name), before[name], rtol=1e-12, atol=1e-12 * np.abs(before[name]).max())
    assert total(world, "elastic") == pytest.approx(cut, rel=1e-5, abs=1e-12)
    momentum = total(world, "momentum")
    world.advance(0.05)
    np.testing.assert_allclose(total(world, "momentum"), momentum, atol=1e-6 * np.linalg.norm(momentum))
    assert energy(world) <= before["kinetic"] + before["elastic"] + 1e-6 * before["kinetic"]


@pytest.mark.parametrize("model", MODELS)
def test_pieces_fall_and_lie_on_each_other(model: str) -> None:
    """Two halves of an upright bar, cut across: they fall by ½gt² until the ground, and then stand on each other, each
    as high as it is."""
    body = bar(model, rotate=(0.0, 0.0, 90.0), at=(0.0, 0.3, 0.0), nodes=60)
    body.cut((0.0, 0.3, 0.0), (0.0, 1.0, 0.05))
    world = px.World()
    world.add(body)
    world.add(px.Ground())
    start = total(world, "potential")
    world.advance(0.1)
    assert len(world.bodies) == 2
    fallen = (start - total(world, "potential")) / (total(world, "mass") * 9.81)
    assert fallen == pytest.approx(0.5 * 9.81 * 0.1**2, rel=1e-4)
    world.advance(0.7)
    low, high = sorted(world.bodies, key=lambda one: one.positions[:, 1].mean())
    below, above = low.surface.positions[:, 1], high.surface.positions[:, 1]
    assert below.min() == pytest.approx(0, abs=0.1 * body.unit)
    assert above.min() == pytest.approx(0.2, abs=0.25 * body.unit)
    assert above.max() == pytest.approx(0.4, abs=0.25 * body.unit)
    assert max(np.abs(one.velocities).max() for one in world.bodies) < 0.1


def test_holds_go_with_their_pieces() -> None:
    body = bar()
    world = px.World()
    world.add(body)
    left = body.fix(lambda X: X[:, 0] < -0.15)
    both = body.drag(lambda X: np.abs(X[:, 2]) > 0.04, turn=lambda t: (0.0, 0.0, 90 * t))
    held, about = len(both.nodes), both.taken.mean(axis=0)
    body.cut((0.02, 0.0, 0.0), (1.0, 0.0, 0.0))
    world.advance(1 / 60)
    one, other = world.bodies
    assert left.body is one and left in one.handles and both.body is one
    parts = [both, *other.handles]
    assert len(parts) == 2 and sum(len(part.nodes) for part in parts) == held
    for part in parts:
        # They go on turning about what was their middle, together.
        angle = np.radians(90 * world.time)
        turn = np.array([[np.cos(angle), -np.sin(angle), 0], [np.sin(angle), np.cos(angle), 0], [0, 0, 1]])
        goals = about + (part.taken - about) @ turn.T
        np.testing.assert_allclose(part.body.positions[part.nodes], goals, atol=1e-6)
    one.release(left)
    with pytest.raises(px.PhyxelError, match="another body"):
        one.release(parts[1])


def test_the_same_world_breaks_the_same_way_again(tmp_path: Path) -> None:
    """A brittle bar is torn: with the same seed in the same pieces, and on from a checkpoint with the same bits, through
    events before and after it broke."""

    def torn(seed: int) -> World:
        material = px.Material(young=1e6, poisson=0.3, density=1000.0, strength=5e4, strength_scatter=0.3)
        body = bar(material=material, seed=seed, velocity=(0.0, 1.0, 0.0))
        body.fix(lambda X: X[:, 0] < -0.17)
        body.drag(lambda X: X[:, 0] > 0.17, to=lambda t: (1.0 * t, 0.0, 0.0))
        world = px.World()
        world.add(body)
        world.add(px.Ground(height=-0.3))
        world.at(0.03, lambda world: body.cut((0.05, 0.0, 0.0), (1.0, 0.0, 0.0)))
        world.at(0.08, lambda world: world.bodies[-1].cut((0.1, 0.0, 0.0), (0.0, 1.0, 0.3)))
        return world

    first, again, other = torn(1), torn(1), torn(2)
    for world in (first, again, other):
        world.advance(0.1)
    sizes = [[len(one.birth) for one in world.bodies] for world in (first, again, other)]
    assert len(sizes[0]) > 2
    assert sizes[0] == sizes[1]
    assert not np.array_equal(first.bodies[0].strength, other.bodies[0].strength[: sizes[0][0]])
    first.save(tmp_path / "broken.npz")
    resumed = torn(1)
    resumed.restore(tmp_path / "broken.npz")
    for world in (first, resumed):
        world.advance(0.05)
    assert [one.name for one in first.bodies] == [one.name for one in resumed.bodies]
    for one, two in zip(first.bodies, resumed.bodies, strict=True):
        np.testing.assert_array_equal(one.positions, two.positions)
        np.testing.assert_array_equal(one.velocities, two.velocities)
    with pytest.raises(px.PhyxelError, match="fallen apart"):
        whole = torn(1)
        whole.save(tmp_path / "whole.npz")
        first_again = torn(1)
        first_again.advance(0.05)
        first_again.restore(tmp_path / "whole.npz")
