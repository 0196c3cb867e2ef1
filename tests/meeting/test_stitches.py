"""Places beside triangles: where they are, and how corners move them."""

import numpy as np

from phyxel.meeting.stitches import BesideTriangles
from phyxel.rotation import cross_matrix


def some(seed=0):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(9, 3))
    triangles = np.array([[0, 1, 2], [3, 4, 5], [6, 7, 8], [0, 4, 8]])
    places = rng.normal(size=(4, 3))
    return x, places, BesideTriangles.of(places, x, triangles)


def test_places_are_found_again():
    x, places, beside = some()
    np.testing.assert_allclose(beside.at(x), places, atol=1e-12)
    np.testing.assert_allclose(beside.weight.sum(axis=1), 1.0, atol=1e-12)


def test_they_go_along_when_all_is_moved_and_turned():
    """x → R x + a takes them to R p + a."""
    x, places, beside = some(1)
    turn, _ = np.linalg.qr(np.random.default_rng(2).normal(size=(3, 3)))
    turn *= np.linalg.det(turn)
    np.testing.assert_allclose(beside.at(x @ turn.T + 2.0), places @ turn.T + 2.0, atol=1e-12)


def test_corners_move_them_as_told():
    """∂p/∂x_c by central differences of 1e-6, whose own error is 1e-10; sums are 1, and forces f on p are shared out so
    that Σ x_c × (∂p/∂x_c)ᵀ f = p × f: both momenta are kept."""
    x, places, beside = some(3)
    moves = beside.moved_by(x)
    for corner in range(3):
        for axis in range(3):
            for k in range(len(places)):
                ahead, behind = x.copy(), x.copy()
                ahead[beside.index[k, corner], axis] += 1e-6
                behind[beside.index[k, corner], axis] -= 1e-6
                slope = (beside.at(ahead)[k] - beside.at(behind)[k]) / 2e-6
                np.testing.assert_allclose(moves[k, corner, :, axis], slope, atol=1e-8)
    np.testing.assert_allclose(moves.sum(axis=1), np.tile(np.eye(3), (4, 1, 1)), atol=1e-12)
    turned = np.einsum("kcab,kcbd->kad", moves, -cross_matrix(x[beside.index]))
    np.testing.assert_allclose(turned, -cross_matrix(places), atol=1e-12)
