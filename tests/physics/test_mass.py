"""Mass and volume of every built-in shape, within 1 % of the exact."""

import numpy as np
import pytest

import phyxel as px
from phyxel.bench.accuracy.boxes import TURNED, box_scan

EXACT = {
    "bar": 0.25**2,
    "box": 0.5**3,
    "sphere": 4 / 3 * np.pi * 0.25**3,
    "torus": 2 * np.pi**2 * 0.3 * 0.1**2,
    "shell": 2 / 3 * np.pi * (0.5**3 - 0.44**3),
}
SHAPES = ("bear", "bar", "box", "sphere", "torus", "jack", "shell", "bust")


def counted_volume(shape) -> float:
    """Volume by counting the points of a shifted fine lattice that lie inside: error of order h², here below 0.1 %."""
    cells = 150
    lower, upper = np.array(shape.lower), np.array(shape.upper)
    side = (upper - lower).max() / cells
    axes = [np.arange(low + 0.37 * side, high, side) for low, high in zip(lower, upper, strict=True)]
    inside = 0
    for x in axes[0]:
        y, z = np.meshgrid(axes[1], axes[2], indexing="ij")
        layer = np.stack([np.full(y.size, x), y.reshape(-1), z.reshape(-1)], axis=1)
        inside += int((shape.distance(layer) < 0).sum())
    return inside * side**3


@pytest.mark.parametrize("name", SHAPES)
@pytest.mark.parametrize("nodes", [700])
def test_mass_and_volume(name, nodes):
    body = px.Body(px.load(name, points=200), material=px.Material(density=700.0), nodes=nodes)
    exact = EXACT.get(name) or counted_volume(body.cloud.shape)
    print(f"{name}: {len(body.reference)} nodes, volume {body.volumes.sum():.6f} m³, exact {exact:.6f} m³")
    assert body.volumes.sum() == pytest.approx(exact, rel=0.01)
    assert body.masses.sum() == pytest.approx(700.0 * exact, rel=0.01)
    assert (body.volumes > 0).all()
    assert 0.8 * nodes <= len(body.reference) <= 1.2 * nodes


def test_centre_of_mass_is_where_symmetry_puts_it():
    for name in ("box", "sphere", "torus", "jack"):
        body = px.Body(px.load(name, points=200), nodes=400)
        centre = np.average(body.positions, axis=0, weights=body.masses)
        assert np.abs(centre).max() < 1e-3 * body.cloud.size


@pytest.mark.parametrize("turn", [np.eye(3), pytest.param(TURNED, marks=pytest.mark.slow)], ids=["as it is", "turned"])
def test_phyxels_of_a_scan_have_the_second_moments_of_its_solid(turn):
    """ρ A L and ρ I L of a bar of 1 × 0.05 × 0.05 m: to ½ and 1 %, which points at random leave of its edges."""
    side = 0.05
    body = px.Body(box_scan((1.0, side, side), turn), nodes=1000, place="file")
    X, density = body.reference @ turn - [0.5, side / 2, side / 2], body.material.density
    assert body.masses.sum() == pytest.approx(density * side**2, rel=5e-3)
    assert body.masses @ X[:, 1:] ** 2 == pytest.approx(density * side**4 / 12, rel=0.01)
