"""Rows of places that nodes carry."""

import numpy as np
import pytest

from phyxel.mls.carry import CARRIERS, Carriers
from tests.physics.matter import block, rotation


@pytest.mark.parametrize("seed", range(3))
def test_a_linear_field_is_carried_exactly(seed):
    """Σφ = 1, Σφ_i X_i = X and Σ X_i ∇φ_iᵀ = 1 (physics 2.10) to rounding, inside and on the faces of a shaken block:
    φ_i p has the sum and the torque of p. On a face, half a spacing outside, a place is a third as heavy as a node."""
    random = np.random.default_rng(seed)
    nodes = block(6, 6, 6) + random.uniform(-0.25, 0.25, (216, 3))
    points = random.uniform(-3, 3, (200, 3))
    points[:100, seed] = 3.0
    phi, slopes = Carriers.found(points, nodes).fit(points, nodes)
    assert np.abs(phi.sum(axis=1) - 1).max() < 1e-12
    assert np.abs(phi @ nodes - points).max() < 1e-12
    assert np.abs(np.stack([slope @ nodes for slope in slopes], axis=2) - np.eye(3)).max() < 1e-11
    assert (np.diff(phi.indptr) == CARRIERS).all()
    assert (phi.multiply(phi)).sum(axis=1).max() < 3.0
    push = random.normal(size=(200, 3))
    torque = np.cross(nodes[None], phi.toarray()[:, :, None] * push[:, None]).sum(axis=1)
    assert np.abs(torque - np.cross(points, push)).max() < 1e-11


def test_a_sheet_of_nodes_says_nothing_across():
    """Nodes in a plane: a point above it moves as the place below it."""
    turn = rotation(40.0)
    nodes, points = block(7, 1, 7) @ turn.T, np.array([[0.3, 0.4, -0.2], [1.0, -0.5, 2.0]])
    phi, slopes = Carriers.found(points @ turn.T, nodes).fit(points @ turn.T, nodes)
    assert np.abs(phi.sum(axis=1) - 1).max() < 1e-12
    assert phi @ nodes @ turn == pytest.approx(points * [1, 0, 1], abs=1e-12)
    F = np.stack([slope @ nodes for slope in slopes], axis=2)
    assert turn.T @ F @ turn == pytest.approx(np.tile(np.diag([1.0, 0.0, 1.0]), (2, 1, 1)), abs=1e-12)
