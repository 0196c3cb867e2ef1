"""Nodes on sharp edges: found where planes meet, in meshes and in bare scans, and nowhere on what is round."""

import numpy as np
import pytest

import phyxel as px
from phyxel.bench.accuracy.boxes import TURNED, box_mesh, box_scan
from phyxel.solid.edges import edges_beside
from phyxel.solid.solid import Solid

SIDES = (1.0, 0.5, 0.4)


def test_where_two_and_three_planes_meet():
    """Points at random on the three faces of a corner: within half an octant of one edge they go onto it, of two into
    the corner, to rounding; others stay."""
    random = np.random.default_rng(3)
    which = np.arange(150) % 3
    points = 2.5 * random.random((150, 3))
    points[np.arange(150), which] = 0
    faces, there = edges_beside(points, -np.eye(3)[which], np.ones(150))
    beside = faces > 1
    assert np.sort(np.abs(there[beside]), axis=1)[:, 1].max() < 1e-9
    assert np.abs(there[faces == 3]).max() < 1e-9
    second = np.sort(points, axis=1)[:, 1]
    assert not beside[second > 0.6].any()
    assert beside[(second < 0.2) & (points.max(axis=1) > 1.0)].all()


@pytest.mark.parametrize("made", [box_mesh, box_scan])
def test_a_turned_box_has_nodes_on_its_edges(made):
    """Six for ten octants along them: nodes keep half a side apart, and edges cross octants at any angle. Those of a
    scan, whose edges are round, lie within a quarter of one. Without the step it would be five and less."""
    nodes = Solid(made(SIDES, TURNED)).sample(500, (), True, "cells")
    side = float(np.median(nodes.octants))
    X = nodes.positions @ TURNED
    off = np.sort(np.minimum(X, SIDES - X) / side, axis=1)
    on_edges = (off[:, 1] < (1e-3 if made is box_mesh else 0.25)).sum()
    assert on_edges > 0.6 * 4 * sum(SIDES) / side


@pytest.mark.parametrize(("sides", "points"), [((1.0, 0.05, 0.05), 3000), ((2.0, 0.5, 0.4), 6000)])
def test_a_bare_scan_keeps_its_edges_and_flat_faces(sides, points):
    """Edges of its solid lie 0.13 to 0.18 of the points' spacing inside the true ones, and faces bulge by 0.01 of it
    (four scans). With normals from planes through all neighbours it would be 0.36, and 0.03: a bar of such a section
    sags by 1 to 3 % too much."""
    solid, size = Solid(box_scan(sides, points=points)), np.array(sides)
    spacing = np.sqrt(2 * (np.prod(size) / size).sum() / points)
    share = np.linspace(0.05, 0.95, 500)
    edge = np.stack([share * size[0], np.full(500, size[1]), np.zeros(500)], axis=1)
    across = spacing + (size[2] - 2 * spacing) * np.random.default_rng(4).random(500)
    face = np.stack([share * size[0], np.full(500, size[1]), across], axis=1)
    print(solid.distance(edge).mean() / spacing, solid.distance(face).mean() / spacing)
    assert 0 < solid.distance(edge).mean() < 0.25 * spacing
    assert abs(solid.distance(face).mean()) < 0.02 * spacing


def test_round_bodies_have_no_edges():
    solid = Solid(px.load("sphere", points=2000))
    random = np.random.default_rng(0).standard_normal((800, 3))
    points, normals, _ = solid.closest(0.25 * random / np.linalg.norm(random, axis=1, keepdims=True))
    assert (edges_beside(points, normals, np.full(800, 0.06))[0] == 1).all()


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
