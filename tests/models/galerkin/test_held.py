"""Faces that are held at their nodes (physics 10.5): ∫ φ_I (u − d) = 0 for each node I that counts most somewhere."""

import numpy as np
import pytest

from phyxel.bench.accuracy.bars import SQUARE
from phyxel.bench.accuracy.boxes import AS_IT_IS, TURNED, end_nodes
from phyxel.models.galerkin.held import Held
from phyxel.models.galerkin.held_region import _common_plane, _plane
from phyxel.models.galerkin.point_functions import strongest
from phyxel.models.protocol import Goal, Hold


@pytest.fixture(params=[AS_IT_IS, TURNED], ids=["aligned", "turned"])
def end(request):
    """The space of a bar 1 × 0.25 × 0.25 m, and the nodes of its end."""
    _, body = SQUARE.clamped("galerkin", 300, request.param)
    return body.space, end_nodes(body, request.param)


def test_a_face_has_as_many_conditions_as_nodes_that_count_most(end):
    """Those on it, and on a turned bar those beside its edges that count most at an edge; of others, which only reach
    it, none: they would hold what lives beside it. The face is looked at in more places than there are conditions."""
    space, nodes = end
    held = Held.of(space, [Hold(space.nodes[nodes], still=True, fills=True)])
    most = np.union1d(nodes, strongest(held.rows))
    assert held.basis.shape[1] == len(most) < min(held.rows.shape[0] / 2, len(np.unique(held.rows.indices)))
    assert held.basis.T @ held.basis == pytest.approx(np.eye(len(most)), abs=1e-12)


def test_a_held_face_goes_where_its_nodes_are_sent(end):
    """Even motion is in the space, and meets all conditions to round-off."""
    space, nodes = end
    held = Held.of(space, [Hold(space.nodes[nodes], still=True, fills=True)])
    moved = np.tile([0.3, -2.0, 1.0], (len(space), 1))
    aims = held.aims([Goal(moved[nodes], np.eye(3))])
    assert held.basis.T @ moved == pytest.approx(aims, abs=1e-9)


def test_surfels_of_other_faces_do_not_tilt_a_face():
    """Two thirds of the places in the plane x = 0, the others on a side y = 0 of it, from a guess a tenth of a spacing
    too deep and tilted by as much: all of the face within a thousandth. Least squares would be off by a fifth; with
    other faces counting as if they lay as far off as what is flat, the plane was a hundredth too deep, and bars of
    scans hung 0.1 to 0.35 % too high."""
    random = np.random.default_rng(0)
    face = np.c_[np.zeros(60), 2 * random.random((60, 2))]
    side = np.c_[0.5 * random.random(30), np.zeros(30), 2 * random.random(30)]
    normal = np.array([1.0, -0.1, 0.0]) / np.hypot(1.0, 0.1)
    middle, normal, off = _plane(np.concatenate([face, side]), np.array([0.1, 1.0, 1.0]), normal)
    assert max(off, np.abs((face - middle) @ normal).max()) < 1e-3


def test_nodes_beside_a_face_do_not_tilt_it():
    """Six nodes in the plane x = 0, as places of a turned lattice lie, three of its sides up to a quarter spacing in:
    its plane to round-off, where Σ log(r² + FLAT²) = least would be off by a tenth at the edge."""
    face = np.array([[0, 0.1, 0.2], [0, 1.1, 0.5], [0, 0.7, 1.4], [0, 1.8, 1.5], [0, 2.0, 0.4], [0, 0.3, 2.1]], float)
    sides = np.array([[0.15, 0.0, 1.0], [0.25, 0.0, 2.0], [0.1, 1.0, 2.3]])
    middle, normal, _ = _common_plane(np.concatenate([face, sides]))
    assert np.abs((face - middle) @ normal).max() < 1e-12
