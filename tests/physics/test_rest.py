"""What rests on the ground stays at rest."""

import numpy as np
import pytest

import phyxel as px


def resting(shape: str, integrator: str, young: float, damping: float) -> tuple[px.World, px.Body]:
    """A body that has come to rest on the ground."""
    material = px.Material(young=young, poisson=0.4, density=1000.0, damping=damping)
    turned = (0, 0, 0) if shape == "box" else (-90, 0, 0)
    body = px.Body(px.load(shape, points=500), material=material, nodes=200, integrator=integrator, rotate=turned)
    world = px.World(device="cpu")
    world.add(body)
    world.add(px.Ground())
    world.advance(1.0)
    px.settle(world, 1e-5)
    return world, body


@pytest.mark.parametrize(
    ("shape", "integrator", "young", "damping"),
    [
        ("box", "leapfrog", 1e6, 0.0),
        ("bear", "leapfrog", 1e5, 1e-3),
        pytest.param("bear", "implicit", 1e7, 1e-3, marks=pytest.mark.slow),
    ],
)
def test_at_rest_it_stays(shape, integrator, young, damping):
    """10 s move no node by 1e-4 of the size, and no vibration comes up: not even where nothing damps it. A contact that
    followed the deformation of its phyxel at once fed 0.4 J into the box within 6 s."""
    world, body = resting(shape, integrator, young, damping)
    start = body.positions
    before = body.diagnostics()
    world.advance(10.0)
    after = body.diagnostics()
    assert np.abs(body.positions - start).max() < 1e-4 * np.ptp(body.birth, axis=0).max()
    total = [now["kinetic"] + now["elastic"] + now["potential"] for now in (before, after)]
    assert after["kinetic"] < 1e-5
    assert total[1] == pytest.approx(total[0], rel=1e-4)
