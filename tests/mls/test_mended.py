"""Shape functions at the skin that do not tear."""

import numpy as np
import pytest
from scipy.spatial import cKDTree

import phyxel as px
from phyxel.mls.mended import mended
from phyxel.solid.solid import Solid


@pytest.fixture(scope="module")
def bear():
    """φ at the bear's surfels, their places and normals, and its nodes."""
    solid = Solid(px.load("bear", points=6000))
    nodes = solid.sample(250, on_surface=True)
    plain = solid.shape_functions(nodes).at(solid.skin.positions)
    normals = solid.skin.normals.astype(np.float64)
    return plain, mended(plain, solid.skin.positions, normals, nodes.spacing), solid.skin.positions, normals, nodes


def jumps(values, points, normals, field) -> np.ndarray:
    """How far near neighbours on the same side of the body are taken apart beyond what the gradients at them say, over
    how far apart they were: sorted."""
    _, index = cKDTree(points).query(points, 5)
    one, other = np.repeat(np.arange(len(points)), 4), index[:, 1:].reshape(-1)
    same = (normals[one] * normals[other]).sum(axis=1) > 0.5
    one, other = one[same], other[same]
    moved, slope = values.values @ field, np.stack([part @ field for part in values.gradients], axis=2)
    arm = points[one] - points[other]
    expected = np.einsum("pab,pb->pa", 0.5 * (slope[one] + slope[other]), arm)
    return np.sort(np.linalg.norm(moved[one] - moved[other] - expected, axis=1) / np.linalg.norm(arm, axis=1))


def test_linear_fields_stay_exact(bear):
    """Σφ = 1, ΣφX = x and Σ∇φX = 1, as before: means of what reproduces linear fields do, too."""
    _, values, points, _, nodes = bear
    X = nodes.positions
    assert np.abs(values.values.sum(axis=1) - 1).max() < 1e-12
    assert np.abs(values.values @ X - points).max() < 1e-13
    for k in range(3):
        assert np.abs(values.gradients[k] @ X - np.eye(3)[k]).max() < 1e-10


def test_creases_do_not_tear(bear):
    """An arm that is lifted by itself: nodes with x beyond the body's side move, and what sees them tears off from what
    does not. Mended, the worst of near neighbours stay several times nearer to each other."""
    plain, values, points, normals, nodes = bear
    field = (nodes.positions[:, :1] > 0.11) * np.array([0.0, 0.05, 0.0])
    before, after = (jumps(one, points, normals, field) for one in (plain, values))
    print(f"worst hundred: {before[-100:].mean():.2f}, mended {after[-100:].mean():.2f}")
    assert before[-100:].mean() > 0.5
    assert after[-100:].mean() < 0.5 * before[-100:].mean()


def test_smooth_skin_is_left_alone():
    """Nothing of a ball is hidden from anything near: the very same numbers."""
    solid = Solid(px.load("sphere", points=3000))
    nodes = solid.sample(200, on_surface=True)
    plain = solid.shape_functions(nodes).at(solid.skin.positions)
    values = mended(plain, solid.skin.positions, solid.skin.normals.astype(np.float64), nodes.spacing)
    changed = np.asarray(abs(values.values - plain.values).sum(axis=1)).reshape(-1)
    assert (changed > 0).mean() < 0.01
