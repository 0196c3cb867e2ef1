"""Cracks in awkward places, and what was asked of a body before it fell apart."""

import numpy as np
import pytest

import phyxel as px
from phyxel.body import Body

MODELS = ("phyxel", "galerkin")
RUBBER = px.Material(young=1e6, poisson=0.3, density=1000.0)


def bar(model: str, nodes: int, **given: object) -> Body:
    """1 m × 0.25 m × 0.25 m along x, its axis through the origin."""
    return px.Body(px.load("bar", points=2000), nodes=nodes, model=model, material=RUBBER, **given)


@pytest.mark.slow
def test_a_cut_through_nodes_parts_halves_that_bend() -> None:
    """Nodes lie in the plane y = 0, where ψ1 is 0 but for rounding: each belongs to one side. By symmetry, points of
    the quadrature weigh the same on both, to rounding; two layers of nodes are no crumb."""
    body = bar("galerkin", 300)
    assert np.isclose(body.birth[:, 1], 0).any()
    body.cut((0.5, 0.0, 0.0), (0.0, 1.0, 0.0))
    world = px.World(gravity=(0, 0, 0))
    world.add(body)
    world.advance(0.01)
    assert [one.model for one in world.bodies] == ["galerkin", "galerkin"]
    np.testing.assert_allclose([one.masses.sum() for one in world.bodies], 31.25, rtol=1e-9)


def test_a_disc_far_wider_than_the_body_is_a_cut_all_through() -> None:
    body = bar("galerkin", 80)
    body.cut((0.5, 0.0, 0.0), (1.0, 0.0, 0.0), radius=1e6)
    world = px.World(gravity=(0, 0, 0))
    world.add(body)
    world.advance(0.01)
    assert len(world.bodies) == 2


@pytest.mark.parametrize("model", MODELS)
def test_holds_and_forces_are_shared_out_among_pieces(model: str) -> None:
    """One hold on all of a bar that falls apart holds both halves; let go, both fall freely under the force that the
    whole had: dp/dt = F + mg, whatever pushes between them."""
    body = bar(model, 80)
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
    body = bar(model, 150)
    body.fix(px.Box((-1, -1, -1), (0.1, 1, 1)))
    body.cut((0.5, 0.0, 0.0), (0.0, 1.0, 0.0), ahead=(-1.0, 0.0, 0.0))
    world = px.World()
    world.add(body)
    world.advance(0.1)
    places = np.array([[x, side * 2e-3, 0.0] for side in (-1, 1) for x in (0.3, 0.8, 0.95)])
    below, above = body.displacement_at(places).reshape(2, 3, 3)
    slip = (above - below)[:, 0]
    assert abs(slip[0]) < 5e-4 and (slip[1:] > 1e-3).all()
