"""Volume, middle and second moments: triangles against formulas, scaled and turned."""

import numpy as np
import pytest
from scipy.spatial import ConvexHull

from phyxel.points.moments import SolidMoments, enclosed_by, of_ball, of_box, of_dome, of_ring
from phyxel.rotation import euler

TURN = euler((20, -50, 110))


def hull(points: np.ndarray) -> np.ndarray:
    """Triangles of the convex hull of points, outward, (m, 3, 3)."""
    found = ConvexHull(points)
    triangles = points[found.simplices]
    normal = np.cross(triangles[:, 1] - triangles[:, 0], triangles[:, 2] - triangles[:, 0])
    inward = (normal * found.equations[:, :3]).sum(axis=1) < 0
    triangles[inward] = triangles[inward][:, ::-1]
    return triangles


def same(one: SolidMoments, other: SolidMoments, tolerance: float) -> None:
    size = np.cbrt(other.volume)
    assert one.volume == pytest.approx(other.volume, rel=tolerance)
    np.testing.assert_allclose(one.middle, other.middle, atol=tolerance * size)
    np.testing.assert_allclose(one.second, other.second, atol=tolerance * other.volume * size**2)


@pytest.mark.parametrize("size", [1e-6, 1.0, 1e6])
@pytest.mark.parametrize("half", [(0.5, 0.5, 0.5), (1.0, 0.2, 0.01)])
def test_boxes_of_triangles_are_exact(size: float, half: tuple[float, float, float]) -> None:
    """∫dV, ∫x dV and ∫x xᵀ dV are polynomials over tetrahedra: only rounding is left, also off the origin."""
    edges = size * np.array(half)
    signs = np.array([(x, y, z) for x in (-1, 1) for y in (-1, 1) for z in (-1, 1)])
    middle = size * np.array([0.3, 2.0, -1.0])
    triangles = hull(middle + (signs * edges) @ TURN.T)
    same(enclosed_by(triangles), of_box(np.zeros(3), edges).moved(1.0, TURN, middle), 1e-12)


def quadrature(inside, lower, upper, n=80) -> SolidMoments:
    """By midpoints of cells: the surface goes through half as many as a side has, squared, and errors are random."""
    axes = [
        np.linspace(low, high, n, endpoint=False) + 0.5 * (high - low) / n
        for low, high in zip(lower, upper, strict=True)
    ]
    x = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, 3)
    x = x[inside(x)]
    cell = np.prod(np.subtract(upper, lower)) / n**3
    return SolidMoments.about_origin(cell * len(x), cell * x.sum(axis=0), cell * x.T @ x)


def test_formulas_are_those_of_the_shapes() -> None:
    r = np.linalg.norm
    same(quadrature(lambda x: r(x, axis=1) < 0.5, [-0.5] * 3, [0.5] * 3), of_ball(0.5), 2e-3)
    ring = quadrature(
        lambda x: np.hypot(np.hypot(x[:, 0], x[:, 2]) - 0.3, x[:, 1]) < 0.1, (-0.4, -0.1, -0.4), (0.4, 0.1, 0.4)
    )
    same(ring, of_ring(0.3, 0.1), 2e-3)
    dome = quadrature(
        lambda x: (r(x, axis=1) < 0.5) & (r(x, axis=1) > 0.3) & (x[:, 1] > 0), (-0.5, 0, -0.5), (0.5, 0.5, 0.5)
    )
    same(dome, of_dome(0.5, 0.3), 2e-3)


def test_scaled_and_turned_they_are_those_of_the_turned_solid() -> None:
    """V ∝ s³ and ∫x xᵀ ∝ s⁵, turned as a tensor is."""
    rng = np.random.default_rng(0)
    points = rng.normal(size=(30, 3))
    shift = np.array([1.0, 2.0, 3.0])
    one, other = enclosed_by(hull(points)), enclosed_by(hull(shift + 2.5 * points @ TURN.T))
    same(other, one.moved(2.5, TURN, shift + 2.5 * TURN @ one.middle), 1e-12)
