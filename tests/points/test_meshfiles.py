"""OBJ, STL and tables of points become clouds, or errors that say what to do."""

import struct

import numpy as np
import pytest

from phyxel.errors import LoadError
from phyxel.points.load import load
from tests.points.files import (
    CORNERS,
    NORMALS,
    QUADS,
    TETRA,
    TETRA_FACES,
    TRIANGLES,
    assert_is_unit_cube,
    edge_counts,
    rows_text,
    volume,
)

# --- OBJ


def obj_text(corner, faces=TRIANGLES) -> str:
    lines = [f"v {x} {y} {z}" for x, y, z in CORNERS]
    return "\n".join([*lines, *("f " + " ".join(corner(k) for k in face) for face in faces)]) + "\n"


@pytest.mark.parametrize("faces", [TRIANGLES, QUADS, [*QUADS[:3], *TRIANGLES[6:]]], ids=["triangles", "quads", "mixed"])
def test_obj_plain(put, faces):
    assert_is_unit_cube(load(put("cube.obj", obj_text(lambda k: f"{k + 1}", faces))))


def test_obj_negative_indices_count_back_from_the_face(put):
    text = obj_text(lambda k: f"{k - 8}") + "v 0.5 0.5 2\n"
    cloud = load(put("cube.obj", text))
    np.testing.assert_array_equal(cloud.positions[:8], CORNERS)
    assert volume(cloud.positions, cloud.faces) == pytest.approx(1.0)


def test_obj_comments_continued_lines_and_other_keywords(put):
    text = "# a cube\nmtllib a.mtl\no box\ns off\n" + obj_text(lambda k: f"{k + 1}")
    text = text.replace("f 1 2 4", "usemtl red # comment\nf 1 \\\n 2 4 # first")
    assert_is_unit_cube(load(put("cube.obj", text.replace("\n", "\r\n"))))


def test_obj_colors(put):
    text = "".join(f"v {x} {y} {z} {x} 0.5 0\n" for x, y, z in CORNERS)
    cloud = load(put("cube.obj", text))
    np.testing.assert_allclose(cloud.colors, np.stack([CORNERS[:, 0], np.full(8, 0.5), np.zeros(8)], axis=1))
    assert cloud.faces is None


def test_obj_texture_seams_do_not_split_vertices(put):
    lines = [f"v {x} {y} {z}" for x, y, z in CORNERS]
    lines += ["vt 0 0", "vt 1 0", "vt 1 1", "vt 0 1 0"]
    lines += ["f " + " ".join(f"{v + 1}/{t}" for v, t in zip(quad, (1, 2, 3, -1), strict=True)) for quad in QUADS]
    cloud = load(put("cube.obj", "\n".join(lines)))
    assert_is_unit_cube(cloud)
    assert cloud.uv.shape == (4, 2) and cloud.uv.dtype == np.float32
    np.testing.assert_array_equal(cloud.uv_faces, [[0, 1, 2], [0, 2, 3]] * 6)


@pytest.mark.parametrize("form", ["{v}//{n}", "{v}/1/{n}"])
def test_obj_normals_are_averaged_by_vertex(put, form):
    lines = [f"v {x} {y} {z}" for x, y, z in TETRA] + ["vt 0 0"]
    lines += ["vn 0 0 -1", "vn 0 -1 0", "vn -1 0 0", "vn 1 1 1"]
    for n, face in enumerate(TETRA_FACES, start=1):
        lines.append("f " + " ".join(form.format(v=v + 1, n=n) for v in face))
    cloud = load(put("tetra.obj", "\n".join(lines)))
    np.testing.assert_allclose(cloud.normals[0], -np.ones(3) / 3**0.5, atol=1e-6)
    np.testing.assert_allclose(cloud.normals[1], [1, 0, 0], atol=1e-6)
    assert (cloud.uv is not None) == ("/1/" in form)


def test_obj_points_with_normals_and_no_faces(put):
    text = "".join(f"vn 0 2 0\nv {x} {y} {z}\n" for x, y, z in CORNERS)
    np.testing.assert_array_equal(load(put("points.obj", text)).normals, np.tile([0, 1, 0], (8, 1)))


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("v 0 0 0\nv 1 0\n", '"v" line 2 of 2 has 2 numbers, expected 3'),
        ("v 0 0 zero\n", '"zero"'),
        ("v 0 0 0\nf 1 1 a\n", 'corner "a"'),
        ("v 0 0 0\nf 1 1 1/x\n", 'corner "1/x"'),
        ("v 0 0 0\nf 1 1 99999999999999999999\n", "corner"),
        ("v 0 0 0\nf 0 1 1\n", "counts from 1"),
        ("v 0 0 0\nf 1 1 2\n", 'names "v" 1 '),
        ("v 0 0 0\nf -1 -1 -2\n", 'names "v" -1 '),
        ("v 0 0 0\nvt 0 0\nf 1/1 1/1 1/2\n", 'names "vt" 1 '),
        ("v 0 0 0\nvn 0 0 1\nf 1//1 1//1 1//2\n", 'names "vn" 1 '),
        ("# nothing\n", "no points"),
    ],
)
def test_damaged_obj(put, text, word):
    with pytest.raises(LoadError, match=r"bad\.obj") as caught:
        load(put("bad.obj", text))
    assert word in str(caught.value)


@pytest.mark.parametrize(
    ("name", "points", "faces", "euler", "volume_expected"),
    [("spot.obj", 2930, 5856, 2, 0.71826), ("max-planck.obj", 10_000, 19_996, 2, 0.16555)],
)
def test_closed_models(models, name, points, faces, euler, volume_expected):
    cloud = load(models / name)
    edges, directed = edge_counts(cloud.faces)
    assert (len(cloud), len(cloud.faces)) == (points, faces)
    assert (edges == 2).all() and (directed == 1).all()
    assert points - len(edges) + faces == euler
    assert volume(cloud.positions, cloud.faces) == pytest.approx(volume_expected, rel=1e-4)


def test_spot_keeps_its_seams(models):
    cloud = load(models / "spot.obj")
    assert cloud.uv.shape == (3225, 2) and cloud.uv_faces.shape == cloud.faces.shape
    # A texture coordinate belongs to one vertex, while a vertex on a seam has several.
    pairs = np.unique(np.stack([cloud.uv_faces.ravel(), cloud.faces.ravel()], axis=1), axis=0)
    assert len(pairs) == 3225


def test_bunny_keeps_every_vertex(models):
    cloud = load(models / "stanford-bunny.obj")
    assert len(cloud) == 35_947 and len(cloud.faces) == 69_451
    assert len(np.unique(cloud.faces)) == 34_834
    np.testing.assert_allclose(np.linalg.norm(cloud.normals, axis=1), 1, atol=1e-6)
    assert (edge_counts(cloud.faces)[1] == 1).all()


# --- STL


def binary_stl(header: bytes = b"binary") -> bytes:
    records = b"".join(struct.pack("<12fH", 0, 0, 0, *CORNERS[face].ravel(), 0) for face in TRIANGLES)
    return header.ljust(80) + struct.pack("<I", len(TRIANGLES)) + records


def ascii_stl() -> str:
    facets = ""
    for face in TRIANGLES:
        corners = "".join(f"      vertex {x:e} {y:e} {z:e}\n" for x, y, z in CORNERS[face])
        facets += f"  facet normal 0 0 0\n    outer loop\n{corners}    endloop\n  endfacet\n"
    return f"solid facet box\n{facets}endsolid facet box\n"


@pytest.mark.parametrize(
    "content",
    [binary_stl(), binary_stl(b"solid but binary facet"), binary_stl() + b"more", ascii_stl(), ascii_stl().upper()],
    ids=["binary", "solid-binary", "trailing", "text", "upper-case"],
)
def test_stl(put, content):
    assert_is_unit_cube(load(put("cube.stl", content)))


def test_stl_zero_and_minus_zero_are_one_place(put):
    assert len(load(put("cube.stl", ascii_stl().replace("vertex 0.", "vertex -0.", 5)))) == 8


@pytest.mark.parametrize("cut", [10, 83, 84, 100, 400, 683])
def test_cut_off_binary_stl(put, cut):
    with pytest.raises(LoadError, match=r"cube\.stl: .*cut off"):
        load(put("cube.stl", binary_stl()[:cut]))


@pytest.mark.parametrize("share", [0.1, 0.3, 0.5, 0.75, 0.99])
def test_cut_off_text_stl(put, share):
    text = ascii_stl()
    with pytest.raises(LoadError, match=r"cube\.stl"):
        load(put("cube.stl", text[: int(share * len(text)) - 15]))


# --- XYZ


RED = np.tile([255, 51, 0], (8, 1))


@pytest.mark.parametrize("suffix", [".xyz", ".txt", ".pts", ".csv", ".XYZ"])
@pytest.mark.parametrize("start", ["", "# comment\n\n", "8\n", "x y z\n", "X,Y,Z\n"])
@pytest.mark.parametrize("separator", [" ", ",", ", ", "\t"])
def test_xyz_plain(put, suffix, start, separator):
    cloud = load(put("points" + suffix, start + rows_text(CORNERS, separator)))
    np.testing.assert_array_equal(cloud.positions, CORNERS)
    assert cloud.normals is None and cloud.colors is None and cloud.mesh is None


@pytest.mark.parametrize(
    ("extra", "has_normals", "has_colors"),
    [
        ([NORMALS], True, False),
        ([RED], False, True),
        ([RED / 255], False, True),
        ([NORMALS, RED], True, True),
        ([RED, NORMALS], True, True),
        ([np.ones((8, 1))], False, False),
        ([np.ones((8, 1)), RED], False, True),
    ],
)
def test_xyz_normals_and_colors(put, extra, has_normals, has_colors):
    cloud = load(put("points.xyz", rows_text(np.concatenate([CORNERS, *extra], axis=1))))
    assert (cloud.normals is not None, cloud.colors is not None) == (has_normals, has_colors)
    if has_normals:
        np.testing.assert_allclose(cloud.normals, NORMALS, atol=1e-5)
    if has_colors:
        np.testing.assert_allclose(cloud.colors, RED / 255, atol=1e-5)


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("0 0 0\n1 0 0\n0 1\n", "point 3 of 3 has 2 columns, the others 3"),
        ("0 0\n1 0\n", "rows of 2 columns"),
        ("9\n" + rows_text(CORNERS), "promises 9 points, 8 are there"),
        ("0 0 0\n1 zero 0\n", '"zero"'),
        (rows_text(np.concatenate([CORNERS, 3 * NORMALS], axis=1)), "neither normals"),
        (rows_text(np.concatenate([CORNERS, RED, RED], axis=1)), "neither normals"),
        ("# nothing\n", "no points"),
        ("x y z\n", "no points"),
        ("0 0 nan\n1 0 0\n", "not finite"),
        ("0 0 0\n1 0 0\n0 1 0\n", "3 points"),
        ("0 0 0\n1 2 0\n2 4 0\n3 6 0\n", "on one line"),
    ],
)
def test_damaged_xyz(put, text, word):
    with pytest.raises(LoadError, match=r"bad\.xyz") as caught:
        load(put("bad.xyz", text))
    assert word in str(caught.value)
