"""Nodes evened out beneath a surface that lies at an angle to the octants (physics 9.3)."""

import numpy as np
import pytest
from scipy.spatial import cKDTree
from scipy.spatial.transform import Rotation

import phyxel as px
from phyxel.bench.accuracy.boxes import AS_IT_IS, TURNED, box_mesh
from phyxel.solid.solid import Solid

SIDES = (1.0, 0.5, 0.4)
TURNS = [TURNED, *(Rotation.from_euler("z", angle, degrees=True).as_matrix() for angle in (15, 45))]


@pytest.mark.parametrize("turn", TURNS, ids=["30° askew", "15°", "45°"])
@pytest.mark.parametrize("count", [300, 700])
def test_a_turned_box_is_filled_evenly_to_its_corners(turn, count):
    """A node in each of the eight corners (a twentieth of an octant), and none nearer to another than 0.55 octants;
    what is nearest to the nodes inside, whose cells are whole, differs by a fifth (one standard deviation)."""
    nodes = Solid(box_mesh(SIDES, turn)).sample(count, (), True, "cells")
    X, side = nodes.positions @ turn, float(np.median(nodes.octants))
    corners = np.indices((2, 2, 2)).reshape(3, -1).T * np.array(SIDES)
    assert cKDTree(X).query(corners)[0].max() < 0.05 * side
    assert cKDTree(X).query(X, 2)[0][:, 1].min() > 0.55 * side
    inside = nodes.volumes[nodes.reach > 0]
    assert inside.std() < 0.2 * inside.mean()


def test_nodes_of_a_lattice_that_fits_stay():
    """Corners of octants that fill a box stand in the middles of their cells already, and on its edges: their rows have
    not parted, to the micrometre of single precision."""
    nodes = Solid(box_mesh(SIDES, AS_IT_IS)).sample(300, (), True, "cells")
    assert np.prod([len(np.unique(along.round(6))) for along in nodes.positions.T]) == len(nodes)


def test_directions_along_the_surface():
    """Of a box: three inside, two on a face, one on an edge, none in a corner, all along its axes; of a ball two on its
    surface, across the radius, to 0.02: it is seen from places around."""
    nodes = Solid(box_mesh(SIDES, TURNED)).sample(400, (), True, "cells")
    assert nodes.along is not None
    X, along = nodes.positions @ TURNED, TURNED.T @ nodes.along @ TURNED
    on_faces = (np.minimum(X, SIDES - X) < 1e-5).sum(axis=1)
    free = np.trace(along, axis1=1, axis2=2)
    assert np.bincount(on_faces, minlength=4).min() > 0
    assert (free <= 3 - on_faces + 1e-6).all()
    assert (free == pytest.approx(3 - on_faces)) or ((3 - on_faces - free) > 0.5).mean() < 0.05
    assert np.abs(along - along * np.eye(3)).max() < 1e-3
    ball = Solid(px.load("sphere", points=2000)).sample(400, (), True, "cells")
    assert ball.along is not None
    outer = ball.reach == 0
    radius = ball.positions[outer] / np.linalg.norm(ball.positions[outer], axis=1, keepdims=True)
    assert np.trace(ball.along[outer], axis1=1, axis2=2) == pytest.approx(2)
    assert np.abs(np.einsum("nab,nb->na", ball.along[outer], radius)).max() < 0.02
