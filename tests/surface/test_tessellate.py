"""Built-in shapes as meshes: closed, even, on the shape."""

import numpy as np
import pytest

import phyxel as px
from phyxel.points.shapes import SHAPES
from phyxel.surface.tessellate import tessellated

HOLES = {"torus": 1}
"""through a shape; others have none"""


def angles(mesh: px.PointCloud) -> np.ndarray:
    """Of the corners of faces [degrees], shape (m, 3)."""
    corners = mesh.positions[mesh.faces]
    ahead, back = np.roll(corners, -1, axis=1) - corners, np.roll(corners, 1, axis=1) - corners
    cos = (ahead * back).sum(axis=2) / np.linalg.norm(ahead, axis=2) / np.linalg.norm(back, axis=2)
    return np.degrees(np.arccos(cos))


@pytest.mark.parametrize("name", SHAPES)
def test_it_is_a_closed_even_mesh_on_the_shape(name):
    """Every directed edge has its opposite, once; V − E + F = 2 − 2 holes, which fails where two fans share a point.
    All points are on the shape, faces look outward, and no triangle is slim."""
    cloud = px.load(name, points=900)
    mesh = tessellated(cloud)
    size = np.ptp(cloud.positions, axis=0).max()
    assert 0.85 * 900 <= len(mesh) <= 900
    assert np.abs(cloud.shape.distance(mesh.positions)).max() < 1e-6 * size
    faces = mesh.faces.astype(np.int64)
    half_edges = np.concatenate([faces[:, pair] for pair in ([0, 1], [1, 2], [2, 0])]) @ [len(mesh), 1]
    opposite = np.concatenate([faces[:, pair] for pair in ([1, 0], [2, 1], [0, 2])]) @ [len(mesh), 1]
    assert len(np.unique(half_edges)) == len(half_edges)
    assert np.array_equal(np.sort(half_edges), np.sort(opposite))
    assert len(np.unique(faces)) == len(mesh)
    assert len(mesh) - len(half_edges) // 2 + len(faces) == 2 - 2 * HOLES.get(name, 0)
    one, two, three = np.moveaxis(mesh.positions[faces], 1, 0)
    area = np.cross(two - one, three - one) / 2
    outward = np.einsum("ni,ni->n", area, mesh.normals[faces].sum(axis=1))
    assert (outward > 0).all()
    least = angles(mesh).min(axis=1)
    assert least.min() > 12 and least.mean() > 45


def test_its_volume_and_colours_are_those_of_the_shape():
    """Chords of a sphere: a face of edge e lies e²/(8 R)·(4/3) below it, 0.4 % of the volume here. Points keep the
    colour they had, which they have moved from by less than their distance."""
    cloud = px.load("bear", points=2500)
    mesh = tessellated(cloud)
    corners = mesh.positions[mesh.faces]
    volume = np.linalg.det(corners).sum() / 6
    assert volume == pytest.approx(px.Solid(cloud).volume, rel=0.01)
    assert len(mesh.colors) == len(mesh) and mesh.uv is None
    off = np.abs(mesh.colors - cloud.shape.color(mesh.positions)).max(axis=1)
    assert np.percentile(off, 95) < 0.1


def test_too_few_points_are_refused_in_words():
    with pytest.raises(px.PhyxelError, match="too few for a closed mesh"):
        tessellated(px.load("bust", points=12))
