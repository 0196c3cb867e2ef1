"""Whatever is like a cloud becomes one; everything else is told what would do, in a few words."""

from dataclasses import replace

import numpy as np
import pytest

import phyxel as px
from phyxel.errors import LoadError, PhyxelError
from phyxel.points.cloud import PointCloud, as_cloud
from tests.solid.meshes import ball_mesh, box_mesh

VERTICES, FACES = ball_mesh(0.1, rings=12)
MADE_OF = {
    "array": (VERTICES, None),
    "single": (VERTICES.astype(np.float32), None),
    "integers": (np.round(1000 * VERTICES).astype(np.int16), None),
    "lists": (VERTICES.tolist(), None),
    "tuples": ([tuple(row) for row in VERTICES], None),
    "rows": (list(VERTICES), None),
    "pair": ((VERTICES, FACES), FACES),
    "pair of lists": ((VERTICES.tolist(), FACES.tolist()), FACES),
    "list of both": ([VERTICES, FACES], FACES),
    "cloud": (PointCloud(VERTICES, faces=FACES), FACES),
}


@pytest.mark.parametrize("kind", MADE_OF)
def test_what_is_like_a_cloud_becomes_one(kind):
    given, faces = MADE_OF[kind]
    for cloud in (as_cloud(given, "here"), px.load(given)):
        expected = given[0] if faces is not None and not isinstance(given, PointCloud) else given
        expected = VERTICES if isinstance(given, PointCloud) else np.asarray(expected, float)
        np.testing.assert_array_equal(cloud.positions, expected)
        assert cloud.positions.dtype == np.float64
        assert (cloud.faces is None) == (faces is None)
        if faces is not None:
            np.testing.assert_array_equal(cloud.faces, faces)


def test_quads_are_known_by_their_four_corners():
    vertices, faces = box_mesh()
    quads = [[0, 1, 3, 2], [4, 6, 7, 5], [0, 4, 5, 1], [2, 3, 7, 6], [0, 2, 6, 4], [1, 5, 7, 3]]
    assert len(px.load((vertices, quads)).faces) == len(faces)


def test_a_loaded_pair_is_a_mesh_in_metres_with_more_points():
    """In millimetres and z up, with points between its vertices: a ball of 0.1 mm is round in each direction."""
    cloud = px.load((VERTICES, FACES), points=2000, units="mm", up="z")
    assert len(cloud) == 2000 and cloud.normals is not None and cloud.mesh is not None
    np.testing.assert_allclose(cloud.positions[: len(VERTICES)], 1e-3 * VERTICES[:, [0, 2, 1]] * [1, 1, -1], atol=1e-12)
    assert cloud.reading.units_by == "you"


def test_bodies_and_solids_take_the_same():
    vertices, faces = ball_mesh(0.1, rings=24)
    volume = 4 / 3 * np.pi * 1e-3
    assert px.Solid((vertices, faces)).volume == pytest.approx(volume, rel=0.02)
    assert px.Solid(vertices.tolist()).volume == pytest.approx(volume, rel=0.02)
    body = px.Body((vertices, faces), nodes=60)
    assert body.volumes.sum() == pytest.approx(volume, rel=0.05)
    assert body.name == "cloud"


WRONG = {
    "a name": ("bear", "px.load\\(\"bear\"\\)|px.load\\('bear'\\)"),
    "nothing": (None, "None"),
    "a number": (5.0, "5.0"),
    "a table": ({"x": 1}, "\\{'x': 1\\}"),
    "a function": (print, "built-in function print"),
    "two columns": (np.zeros((4000, 2)), r"an array of shape \(4000, 2\), float64"),
    "a volume": (np.zeros((20, 20, 20)), r"shape \(20, 20, 20\)"),
    "a flat list": (list(range(3000)), "a list of 3000"),
    "rows that differ": ([[0.0, 1.0, 2.0], [3.0, 4.0]], "rows of different lengths"),
    "words": ([["a", "b", "c"]] * 100, "a list of 100"),
    "faces of fractions": ((VERTICES, 0.5 * FACES), "faces: an array.*whole numbers"),
}


CALLS = [(make, kind) for make in (px.Body, px.Solid, px.load) for kind in WRONG if (make, kind) != (px.load, "a name")]


@pytest.mark.parametrize(("make", "kind"), CALLS, ids=lambda part: getattr(part, "__name__", part))
def test_everything_else_is_told_what_would_do(make, kind):
    given, word = WRONG[kind]
    with pytest.raises(PhyxelError, match=word) as caught:
        make(given)
    assert "give an array" in str(caught.value) or "give a file" in str(caught.value)
    assert len(str(caught.value)) < 250


def test_what_belongs_to_points_has_their_number():
    with pytest.raises(LoadError, match="scan: 5 colors for 10 points"):
        PointCloud(np.zeros((10, 3)), colors=np.zeros((5, 3)), name="scan")
    with pytest.raises(LoadError, match="scan: 11 normals for 10 points"):
        PointCloud(np.zeros((10, 3)), normals=np.zeros((11, 3)), name="scan")


def squashed(cloud: PointCloud) -> PointCloud:
    return replace(cloud, positions=cloud.positions * [1.0, 0.7, 1.0])


@pytest.mark.parametrize("make", [px.Solid, px.Body, px.load], ids=["Solid", "Body", "load"])
def test_points_moved_off_what_they_were_taken_from_are_refused(make):
    """Else the shape or mesh would silently be used in their place. Without it they are points like any other."""
    for cloud in (px.load("bear", points=600), px.load((VERTICES, FACES), points=600)):
        make(cloud)
        with pytest.raises(LoadError, match=r"off the (built-in bear|mesh) they were taken from.*px\.PointCloud"):
            make(squashed(cloud))
    ball = squashed(px.load("sphere", points=2000))
    assert px.Solid(PointCloud(ball.positions)).volume == pytest.approx(np.pi / 6 * 0.7 * ball.size**3, rel=0.02)
