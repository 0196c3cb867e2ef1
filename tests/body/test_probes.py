"""Stress and strain anywhere in a body."""

import numpy as np
import pytest

import phyxel as px

E, NU = 1e6, 0.3
STEADY = px.Material(young=E, poisson=NU, density=1000.0, damping=2e-3)


def bar(model: str, nodes: int, **options) -> px.Body:
    """1 × 0.25 × 0.25 m along x, from x = 0 on."""
    return px.Body(px.load("bar", points=1000), material=STEADY, nodes=nodes, model=model, **options)


def inside(count: int = 40) -> np.ndarray:
    """Places in the bar [m], shape (count, 3)."""
    share = np.random.default_rng(7).uniform(0.02, 0.98, (count, 3))
    return np.array([0, -0.125, -0.125]) + share * (1.0, 0.25, 0.25)


@pytest.mark.parametrize("model", ["phyxel", "galerkin"])
def test_all_of_a_stretched_bar_has_the_same_stress(model):
    """Every node is stretched by s along x, u = (sX, 0, 0): E = diag(s + s²/2, 0, 0) everywhere, and from one law one
    stress. To the single precision of phyxels at s = 2 %; Galerkin solves u to 1e-8 of that."""
    s, body = 0.02, bar(model, 150)
    world = px.World(gravity=(0, 0, 0))
    world.add(body)
    for node in range(len(body.reference)):
        body.drag([node], (s * body.reference[node, 0], 0, 0))
    world.advance(0.05)
    strain, stress = body.strain_at(inside()), body.stress_at(inside())
    assert strain == pytest.approx(np.broadcast_to(np.diag([s + s * s / 2, 0, 0]), (40, 3, 3)), abs=3e-6)
    assert np.abs(stress - stress[0]).max() < 1e-3 * np.abs(stress).max()
    lame = E * (1 - NU) / ((1 + NU) * (1 - 2 * NU))
    assert stress[0, 0, 0] == pytest.approx(lame * s, rel=3 * s), "Hooke's, to the square of s"


@pytest.mark.slow
def test_the_root_of_a_cantilever_has_the_stress_of_beam_theory():
    """A bar sags under its weight: σ_xx = M y / I with M = ρgA (L − x)²/2 and I = A h²/12. Its moment over sections
    more than half a height from the clamp (St Venant) to 3 %; over their points to 5 % in the mean square: with 5
    nodes of linear functions across, stress wavers by so much between them."""
    body = bar("galerkin", 480)
    world = px.World(gravity=(0, -1.0, 0))
    world.add(body)
    body.fix(px.Box((-1, -1, -1), (1e-3, 1, 1)))
    px.settle(world)
    across = np.linspace(-0.12, 0.12, 9)
    for x in (0.15, 0.3, 0.5):
        y, z = (grid.ravel() for grid in np.meshgrid(across, across))
        places = np.stack([np.full(81, x), y, z], axis=1)
        slope = 1000.0 * 1.0 * (1 - x) ** 2 / 2 / (0.25**2 / 12)
        stress, strain = body.stress_at(places)[:, 0, 0], body.strain_at(places)[:, 0, 0]
        assert stress @ y / (y @ y) == pytest.approx(slope, rel=0.03)
        assert strain @ y / (y @ y) == pytest.approx(slope / E, rel=0.03)
        assert np.linalg.norm(stress - slope * y) < 0.05 * np.linalg.norm(slope * y)


def test_stress_needs_a_world():
    with pytest.raises(px.PhyxelError, match=r"world\.add"):
        bar("phyxel", 64).stress_at(inside(1))
