"""Mass, middle and inertia of what is rigid: those of the solid itself."""

import numpy as np
import pytest

import phyxel as px
from phyxel.body.mass import balanced, moments_of
from phyxel.points.moments import of_box
from phyxel.points.shapes import MOMENTS
from phyxel.rotation import euler
from phyxel.solid.solid import Solid


def box_mesh(edges: tuple[float, float, float]) -> tuple[np.ndarray, np.ndarray]:
    """Vertices (8, 3) and triangles (12, 3) of a box about the origin."""
    corners = np.array([(x, y, z) for x in (-1, 1) for y in (-1, 1) for z in (-1, 1)]) * np.array(edges) / 2
    quads = [(0, 1, 3, 2), (4, 6, 7, 5), (0, 4, 5, 1), (2, 3, 7, 6), (0, 2, 6, 4), (1, 5, 7, 3)]
    return corners, np.array([corner for a, b, c, d in quads for corner in ((a, b, c), (a, c, d))])


@pytest.mark.parametrize("name", ["sphere", "torus"])
def test_surfaces_are_measured_as_well_as_formulas(name: str) -> None:
    """Second order extrapolated: 1e-4 of all moments is asked for, a tenth of that is left on smooth shapes."""
    solid = Solid(px.load(name, points=500))
    solid.moments = None
    found, exact = moments_of(solid), MOMENTS[name]
    assert found.volume == pytest.approx(exact.volume, rel=2e-5)
    np.testing.assert_allclose(found.middle, exact.middle, atol=1e-6)
    np.testing.assert_allclose(found.second, exact.second, atol=2e-5 * exact.second.max())


@pytest.mark.parametrize(
    ("edges", "turn", "density"), [((1, 1, 1), (0, 0, 0), 1000), ((0.4, 0.03, 0.1), (10, 70, 40), 7850)]
)
def test_a_body_has_the_mass_and_inertia_of_its_mesh(edges, turn, density) -> None:
    """Spun about each axis, L = I ω and T = ½ ω·I ω with I of the box, m(|e|² − e eᵀ)/12; nodes add up to its mass and
    have its middle. All to rounding."""
    size = 10 * np.array(edges)
    mass = density * size.prod()
    R = euler(turn)
    I = R @ (mass / 12 * (size @ size * np.eye(3) - np.diag(size**2))) @ R.T
    for spin in np.diag([1.0, 2.0, 3.0]):
        body = px.Body(
            box_mesh(size), model="rigid", material=px.Material(density=density), rotate=turn, spin=spin,
            at=(1, 2, 3), place="center",
        )  # fmt: skip
        world = px.World(gravity=(0, -9.81, 0), device="cpu")
        world.add(body)
        found = body.diagnostics()
        assert found["mass"] == pytest.approx(mass, rel=1e-12) and body.masses.sum() == pytest.approx(mass, rel=1e-12)
        assert found["volume"] == pytest.approx(size.prod(), rel=1e-12)
        np.testing.assert_allclose(body.masses @ body.positions / mass, (1, 2, 3), rtol=1e-12)
        np.testing.assert_allclose(found["angular_momentum"], I @ spin, atol=1e-12 * np.trace(I))
        assert found["kinetic"] == pytest.approx(0.5 * spin @ I @ spin, rel=1e-12)
        assert found["potential"] == pytest.approx(mass * 9.81 * 2, rel=1e-12)


def test_parts_of_other_density_move_the_middle() -> None:
    """Two halves of a bar, 1000 and 3000 kg/m³: the mass is 2000 V, the middle 1/8 of the length off. By nodes, of
    which some ten lie along it: to a tenth of their distance."""
    heavy = px.Material(density=3000.0)
    body = px.Body(px.load("bar", points=500), model="rigid", material=px.Material(density=1000.0),
                   parts=[(px.Box((0.5, -1, -1), (2, 1, 1)), heavy)])  # fmt: skip
    px.World(device="cpu").add(body)
    assert body.diagnostics()["mass"] == pytest.approx(2000 * 0.0625, rel=0.05)
    middle = body.masses @ body.positions / body.masses.sum()
    np.testing.assert_allclose(middle, (0.625, 0, 0), atol=0.02)


def test_volumes_are_balanced() -> None:
    """Sum and middle are those that are asked for, and all volumes stay above 0."""
    rng = np.random.default_rng(1)
    X, volumes = rng.uniform(-1, 1, (50, 3)), rng.uniform(0.5, 1.5, 50)
    whole = of_box(np.array([0.05, -0.1, 0.1]), np.ones(3))
    found = balanced(X, volumes, whole)
    assert found.sum() == pytest.approx(whole.volume, rel=1e-14) and (found > 0).all()
    np.testing.assert_allclose(found @ X / whole.volume, whole.middle, atol=1e-14)
