"""Bodies that fall apart: what they have, nobody gains or loses."""

from pathlib import Path

import numpy as np
import pytest

import phyxel as px
from phyxel.body import Body
from phyxel.world import World
from phyxel.world.breaking import break_apart
from tests.worlds import energy, total

MODELS = ("phyxel", "galerkin")


def bar(model: str = "phyxel", sides: tuple[float, ...] = (0.4, 0.1, 0.1), **given: object) -> Body:
    """A bar with these sides [m] about the origin."""
    points = px.load("box", points=3000).positions
    middle = 0.5 * (points.min(axis=0) + points.max(axis=0))
    cloud = px.PointCloud((points - middle) / np.ptp(points, axis=0) * sides, name="bar")
    material = px.Material(young=1e6, poisson=0.3, density=1000.0)
    return px.Body(cloud, **({"model": model, "material": material, "nodes": 120} | given))


@pytest.mark.parametrize("model", MODELS)
def test_pieces_share_out_what_the_body_had(model: str) -> None:
    """A restriction of block-diagonal fields: mass, momenta and energy are sums over the pieces, to rounding (phyxels:
    positions and velocities are single precision, their sums are not; of a half step's gain only that of the middle is
    told, and two middles gain otherwise than one: 1e-8). The cut itself keeps mass and momenta
    so; of a vibration it may take what the functions beside it cannot have: 1e-9 of the motion."""
    body = bar(model, spin=(3.0, 2.0, 1.0), velocity=(0.3, -0.2, 0.1), at=(0.0, 1.0, 0.0), place="center")
    world = px.World(gravity=(0, 0, 0))
    world.add(body)
    world.advance(0.05)
    before = {name: total(world, name) for name in ("mass", "momentum", "angular_momentum", "kinetic", "elastic")}
    body.cut((0.03, 1.0, 0.0), (1.0, 0.4, 0.0))
    cut = total(world, "elastic")
    assert cut <= before["elastic"] * (1 + 1e-6)
    np.testing.assert_allclose(total(world, "kinetic"), before["kinetic"], rtol=1e-9)
    before["kinetic"] = total(world, "kinetic")
    assert break_apart(world)
    assert [one.name for one in world.bodies] == ["bar", "bar-2"]
    heavy, light = (one.masses.sum() for one in world.bodies)
    assert heavy > light > 0.3 * heavy
    for name in ("mass", "momentum", "angular_momentum", "kinetic"):
        size = np.abs(before[name]).max()
        share = 1e-8 if (model, name) == ("phyxel", "kinetic") else 1e-12
        np.testing.assert_allclose(total(world, name), before[name], rtol=share, atol=share * size)
    assert total(world, "elastic") == pytest.approx(cut, rel=1e-5, abs=1e-12)
    momentum = total(world, "momentum")
    world.advance(0.05)
    np.testing.assert_allclose(total(world, "momentum"), momentum, atol=1e-6 * np.linalg.norm(momentum))
    assert energy(world) <= before["kinetic"] + before["elastic"] + 1e-6 * before["kinetic"]


@pytest.mark.parametrize("model", ["phyxel", pytest.param("galerkin", marks=pytest.mark.slow)])
def test_pieces_fall_and_lie_on_each_other(model: str) -> None:
    """Two halves of a block, cut across: they fall by ½gt², and then lie on each other, each as high as it is. They sag
    by ρgh²/2E < 1e-4 h under their weight."""
    damped = px.Material(young=1e6, poisson=0.3, density=1000.0, damping=2e-3)
    body = bar(model, nodes=100, sides=(0.2, 0.2, 0.2), at=(0.0, 0.16, 0.0), place="center", material=damped)
    body.cut((0.0, 0.16, 0.0), (0.05, 1.0, 0.05))
    world = px.World()
    world.add(body)
    world.add(px.Ground())
    start = total(world, "potential")
    world.advance(0.1)
    assert len(world.bodies) == 2
    fallen = (start - total(world, "potential")) / (total(world, "mass") * 9.81)
    assert fallen == pytest.approx(0.5 * 9.81 * 0.1**2, rel=1e-4)
    world.advance(0.5)
    low, high = sorted(world.bodies, key=lambda one: one.positions[:, 1].mean())
    below, above = low.surface.positions[:, 1], high.surface.positions[:, 1]
    assert below.min() == pytest.approx(0, abs=0.02 * body.unit)
    assert np.median(above[above < 0.15]) == pytest.approx(0.1, abs=0.2 * body.unit)
    assert above.max() == pytest.approx(0.2, abs=0.2 * body.unit)
    assert max(np.abs(one.velocities).max() for one in world.bodies) < 0.1


def test_what_is_too_small_to_bend_is_a_crumb() -> None:
    """A corner of one node is rigid from then on: it takes its mass and momenta along, and falls as all does."""
    body = bar(spin=(3.0, 2.0, 1.0), velocity=(0.3, -0.2, 0.1))
    world = px.World()
    world.add(body)
    world.advance(0.01)
    corner = body.birth[np.argmax(body.birth @ np.ones(3))]
    names = ("mass", "momentum", "angular_momentum")
    before = {name: total(world, name) for name in names}
    body.cut(corner - 0.2 * body.unit, (1.0, 1.0, 1.0))
    assert break_apart(world)
    crumb = world.bodies[-1]
    assert (crumb.model, len(crumb.birth)) == ("rigid", 1)
    for name in names:
        np.testing.assert_allclose(total(world, name), before[name], atol=1e-12 * np.abs(before[name]).max())
    before = crumb.diagnostics()["momentum"]
    world.advance(0.1)
    fallen = (crumb.diagnostics()["momentum"] - before) / crumb.masses.sum()
    np.testing.assert_allclose(fallen, (0.0, -0.981, 0.0), atol=1e-9)


def test_holds_go_with_their_pieces() -> None:
    body = bar()
    world = px.World()
    world.add(body)
    left = body.fix(lambda X: X[:, 0] < -0.15)
    both = body.drag(lambda X: np.abs(X[:, 2]) > 0.03, turn=lambda t: (0.0, 0.0, 90 * t))
    held, about = len(both.nodes), both.taken.mean(axis=0)
    body.cut((0.045, 0.0, 0.0), (1.0, 0.0, 0.0))  # the left part is heavier by a layer of nodes
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
    one.release(parts[1])
    assert not one.handles and not other.handles, "a hold that was dealt out is let go as a whole"


def test_the_same_world_breaks_the_same_way_again(tmp_path: Path) -> None:
    """A brittle bar is torn: with the same seed into the same pieces, and on from a checkpoint with the same bits,
    through an event after it broke."""

    def torn(seed: int) -> World:
        material = px.Material(young=1e6, poisson=0.3, density=1000.0, strength=4e4, strength_scatter=0.05)
        body = bar(material=material, seed=seed)
        body.fix(lambda X: X[:, 0] < -0.15)
        body.drag(lambda X: X[:, 0] > 0.15, to=lambda t: (1.0 * t, 0.0, 0.0))
        world = px.World()
        world.add(body)
        world.at(0.035, lambda world: body.fix(lambda X: X[:, 0] == X[:, 0].min()))
        return world

    whole, first, again = torn(1), torn(1), torn(1)
    assert not np.array_equal(whole.bodies[0].strength, torn(2).bodies[0].strength)
    for world in (first, again):
        world.advance(0.03)
    pieces, others = ([one.birth for one in world.bodies] for world in (first, again))
    assert len(pieces) > 1
    assert [len(one) for one in pieces] == [len(one) for one in others]
    np.testing.assert_array_equal(np.concatenate(pieces), np.concatenate(others))
    whole.save(tmp_path / "whole.npz")
    with pytest.raises(px.PhyxelError, match="fallen apart"):
        again.restore(tmp_path / "whole.npz")
    first.advance(0.01)
    first.save(tmp_path / "broken.npz")
    whole.restore(tmp_path / "broken.npz")
    for world in (first, whole):
        world.advance(0.01)
    assert [one.name for one in first.bodies] == [one.name for one in whole.bodies]
    for one, two in zip(first.bodies, whole.bodies, strict=True):
        assert np.isfinite(one.velocities).all()
        np.testing.assert_array_equal(one.positions, two.positions)
        np.testing.assert_array_equal(one.velocities, two.velocities)


# Cracks in awkward places


def rubber_bar(model: str, nodes: int, **given: object) -> Body:
    """1 m × 0.25 m × 0.25 m along x, its axis through the origin."""
    return px.Body(
        px.load("bar", points=2000),
        nodes=nodes,
        model=model,
        material=px.Material(young=1e6, poisson=0.3, density=1000.0),
        **given,
    )


@pytest.mark.slow
def test_a_cut_through_nodes_parts_halves_that_bend() -> None:
    """Nodes lie in the plane y = 0, where ψ1 is 0 but for rounding: each belongs to one side. By symmetry, points of
    the quadrature weigh the same on both, to rounding; two layers of nodes are no crumb."""
    body = rubber_bar("galerkin", 350)
    assert np.isclose(body.birth[:, 1], 0).any()
    body.cut((0.5, 0.0, 0.0), (0.0, 1.0, 0.0))
    world = px.World(gravity=(0, 0, 0))
    world.add(body)
    world.advance(0.01)
    assert [one.model for one in world.bodies] == ["galerkin", "galerkin"]
    np.testing.assert_allclose([one.masses.sum() for one in world.bodies], 31.25, rtol=1e-9)


def test_a_disc_far_wider_than_the_body_is_a_cut_all_through() -> None:
    body = rubber_bar("galerkin", 80)
    body.cut((0.5, 0.0, 0.0), (1.0, 0.0, 0.0), radius=1e6)
    world = px.World(gravity=(0, 0, 0))
    world.add(body)
    world.advance(0.01)
    assert len(world.bodies) == 2


@pytest.mark.parametrize("model", MODELS)
def test_holds_and_forces_are_shared_out_among_pieces(model: str) -> None:
    """One hold on all of a bar that falls apart holds both halves; let go, both fall freely under the force that the
    whole had: dp/dt = F + mg, whatever pushes between them."""
    body = rubber_bar(model, 80)
    everything = body.fix(px.Box((-1, -1, -1), (2, 1, 1)))
    body.force = (0.0, 0.0, 5.0)
    world = px.World(gravity=(0, -2.0, 0))
    world.add(body)
    body.cut((0.5, 0.0, 0.0), (1.0, 0.0, 0.0))
    world.advance(0.02)
    assert len(world.bodies) == 2 and max(np.abs(one.velocities).max() for one in world.bodies) < 1e-6
    body.release(everything)
    assert not any(one.handles for one in world.bodies)
    with pytest.raises(px.PhyxelError, match="not held"):
        body.release(everything)
    world.advance(0.1)
    gained = np.sum([one.diagnostics()["momentum"] for one in world.bodies], axis=0)
    np.testing.assert_allclose(gained, 0.1 * np.array([0.0, -2.0 * 62.5, 5.0]), atol=1e-5 * 12.5)


@pytest.mark.parametrize("model", MODELS)
def test_displacement_jumps_across_a_slit(model: str) -> None:
    """Two cantilevers that lie on each other slip along the slit as they bend, and the bar before it does not. Some
    nodes of the phyxel body lie in the slit."""
    body = rubber_bar(model, 150)
    body.fix(px.Box((-1, -1, -1), (0.1, 1, 1)))
    body.cut((0.5, 0.0, 0.0), (0.0, 1.0, 0.0), ahead=(-1.0, 0.0, 0.0))
    world = px.World()
    world.add(body)
    world.advance(0.1)
    places = np.array([[x, side * 2e-3, 0.0] for side in (-1, 1) for x in (0.3, 0.8, 0.95)])
    below, above = body.displacement_at(places).reshape(2, 3, 3)
    slip = (above - below)[:, 0]
    assert abs(slip[0]) < 5e-4 and (slip[1:] > 1e-3).all()
