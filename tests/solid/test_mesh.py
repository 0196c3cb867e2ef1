"""Solids from meshes as they come."""

from collections.abc import Callable

import numpy as np
import pytest

import phyxel as px
from phyxel.points.cloud import PointCloud
from phyxel.rotation import euler
from tests.solid.meshes import box_mesh, together, turned
from tests.solid.scans import Truth, assert_sides, refused


def soup(mesh) -> tuple[np.ndarray, np.ndarray]:
    """No two faces share a vertex."""
    return mesh[0][mesh[1]].reshape(-1, 3), np.arange(mesh[1].size, dtype=np.int32).reshape(-1, 3)


def any_way(mesh) -> tuple[np.ndarray, np.ndarray]:
    """Each face wound at random."""
    flip = np.random.default_rng(1).random(len(mesh[1])) < 0.5
    return mesh[0], np.where(flip[:, None], mesh[1][:, ::-1], mesh[1])


def boxes(*parts) -> Callable:
    """Signed distance (the sign is exact) of the union of (center, half)."""

    def distance(x):
        beyond = [np.abs(x - np.array(c)) - np.array(h) for c, h in parts]
        return np.min([np.linalg.norm(np.maximum(b, 0), axis=1) + np.minimum(b.max(axis=1), 0) for b in beyond], axis=0)

    return distance


ONE = ((0.0, 0.0, 0.0), (1.0, 1.0, 1.0))
NEAR = ((1.0, 0.5, 0.25), (1.0, 1.0, 1.0))
APART = ((3.0, 0.0, 0.0), (1.0, 1.0, 1.0))
WITHIN = ((0.1, 0.0, 0.0), (0.4, 0.4, 0.4))
FINE = 6
MESHES = {
    "closed": (box_mesh(*ONE), (ONE,), 8),
    "inside-out": (turned(box_mesh(*ONE)), (ONE,), 8),
    "soup": (soup(box_mesh(*ONE)), (ONE,), 8),
    "soup-inside-out": (turned(soup(box_mesh(*ONE))), (ONE,), 8),
    "any-way": (any_way(box_mesh(*ONE)), (ONE,), 8),
    "any-way-soup": (soup(any_way(box_mesh(*ONE, cells=2))), (ONE,), 8),
    "overlapping": (together(box_mesh(*ONE), box_mesh(*NEAR)), (ONE, NEAR), 16 - 1 * 1.5 * 1.75),
    "overlapping-one-turned": (together(box_mesh(*ONE), turned(box_mesh(*NEAR))), (ONE, NEAR), 16 - 1 * 1.5 * 1.75),
    "apart": (together(box_mesh(*ONE), box_mesh(*APART)), (ONE, APART), 16),
    "apart-one-turned": (together(box_mesh(*ONE), turned(box_mesh(*APART))), (ONE, APART), 16),
    "apart-any-way": (any_way(together(box_mesh(*ONE), box_mesh(*APART))), (ONE, APART), 16),
}


@pytest.mark.parametrize("kind", MESHES)
def test_meshes_as_they_come(kind):
    """A closed mesh is exact, whichever way its faces are wound: volume within 0.2 % (quadrature), every side right,
    projections on it. Distances far away are kept on a grid: 0.5 % of the size where they have kinks."""
    (vertices, faces), parts, volume = MESHES[kind]
    distance = boxes(*parts)
    truth = Truth(distance, vertices.min(axis=0), vertices.max(axis=0), volume)
    solid = px.Solid(PointCloud(vertices, faces=faces, name=kind))
    assert solid.volume == pytest.approx(volume, rel=2e-3)
    assert_sides(solid, truth, 1, 1e-6, 30_000)
    x = np.random.default_rng(2).uniform(truth.lower - 0.3, truth.upper + 0.3, (5000, 3))
    outside = distance(x) > 0
    assert np.abs(solid.distance(x) - distance(x))[outside].max() < 5e-3 * truth.size
    y = solid.project(x)
    assert np.abs(distance(y)).max() < 1e-5
    bare = distance(solid.skin.positions) > -1e-6
    looks = (solid.skin.positions + 1e-3 * truth.size * solid.skin.normals)[bare]
    assert not solid.inside(looks).any()


@pytest.mark.parametrize("half", [(0.5, 0.025, 0.025), (0.5, 0.5, 0.025), (1.5, 0.4, 0.06), (0.01, 0.01, 0.01)])
@pytest.mark.parametrize("model", ["phyxel", "galerkin"])
def test_bodies_of_exact_meshes_have_their_mass(half, model):
    """Boxes thick and thin, however they lie and however many nodes share them: to rounding, 1e-6 in single."""
    vertices, faces = box_mesh((0.0, 0.0, 0.0), half)
    for turn, nodes in (((0.0, 0.0, 0.0), 300), ((20.0, 30.0, 10.0), 250)):
        cloud = PointCloud(vertices @ euler(turn).T, faces=faces)
        body = px.Body(cloud, nodes=nodes, model=model, material=px.Material(density=1200.0))
        assert body.masses.sum() == pytest.approx(1200 * 8 * np.prod(half), rel=1e-6)


@pytest.mark.parametrize("turn", [(False, True), (True, False), (False, False)])
def test_a_mesh_with_a_cavity(turn):
    """Two nested boxes: a cavity where the inner one looks the other way, else that or a whole box, nothing else."""
    outer, inner = box_mesh(*ONE), box_mesh(*WITHIN)
    mesh = together(turned(outer) if turn[0] else outer, turned(inner) if turn[1] else inner)
    solid = px.Solid(PointCloud(mesh[0], faces=mesh[1], name="nested"))
    whole, cavity = boxes(ONE), boxes(WITHIN)
    full = solid.volume == pytest.approx(8, rel=2e-3)
    assert full or solid.volume == pytest.approx(8 - 0.8**3, rel=2e-3)
    assert not full or turn[0] == turn[1]
    distance = whole if full else lambda x: np.maximum(whole(x), -cavity(x))
    assert_sides(solid, Truth(distance, -np.ones(3), np.ones(3), 8), 1, 1e-6, 30_000)


@pytest.mark.parametrize("wound", [turned, any_way], ids=["inside-out", "any-way"])
def test_a_mesh_with_holes(wound):
    """Three of 432 faces gone, in different places: closed, volume within 1 %, 99.5 % of the sides right."""
    vertices, faces = wound(box_mesh(*ONE, cells=FINE))
    keep = np.ones(len(faces), bool)
    keep[[30, 200, 330]] = False
    solid = px.Solid(PointCloud(vertices, faces=faces[keep], name="holed"))
    assert solid.volume == pytest.approx(8, rel=0.01)
    assert_sides(solid, Truth(boxes(ONE), -np.ones(3), np.ones(3), 8), 0.995, 0.02, 30_000)


@pytest.mark.slow
def test_a_mesh_of_a_box_without_a_side():
    """Twelve large triangles less two: the points between the vertices are those of the faces. Volume within 2 %."""
    vertices, faces = box_mesh(*ONE)
    solid = px.Solid(PointCloud(vertices, faces=faces[2:], name="open"))
    assert solid.findings.holes == 1
    assert solid.volume == pytest.approx(8, rel=0.02)
    refused(PointCloud(vertices, faces=faces[2:], name="open"), "closing", closing=0.05)


def test_a_mesh_that_is_mostly_missing_is_refused():
    vertices, faces = box_mesh(*ONE, cells=4)
    kept = (vertices[faces][:, :, 1] < -0.99).all(axis=1) | (vertices[faces][:, :, 0] > 0.99).all(axis=1)
    refused(PointCloud(vertices, faces=faces[kept], name="corner"), "closing", "open", "enclose")


def test_faces_without_area_do_no_harm():
    """A closed mesh with needles (two equal vertices) and points no face names is the same solid."""
    vertices, faces = box_mesh(*ONE)
    needles = np.stack([faces[:4, 0], faces[:4, 0], faces[:4, 1]], axis=1)
    stray_vertex = np.concatenate([vertices, [[5.0, 5.0, 5.0]]])
    solid = px.Solid(PointCloud(stray_vertex, faces=np.concatenate([faces, needles]).astype(np.int32), name="needles"))
    assert solid.volume == pytest.approx(8, rel=2e-3)
    assert np.abs(solid.upper - 1).max() < 1e-6
