"""PLY files become clouds, or errors that say what to do."""

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from phyxel.errors import LoadError
from phyxel.points.load import load
from phyxel.points.ply import read_ply
from tests.points.files import (
    CORNERS,
    FORMATS,
    INDICES,
    QUADS,
    TRIANGLES,
    XYZ,
    assert_is_unit_cube,
    cube_ply,
    edge_counts,
    load_or_refuse,
    ply_bytes,
    volume,
)


@pytest.mark.parametrize("form", FORMATS)
def test_ply_triangles(put, form):
    assert_is_unit_cube(load(put("cube.ply", cube_ply(form))))


@pytest.mark.parametrize("form", FORMATS)
def test_ply_polygons_are_cut_into_fans(put, form):
    assert_is_unit_cube(load(put("cube.ply", cube_ply(form, QUADS))))


@pytest.mark.parametrize("form", FORMATS)
def test_ply_mixed_polygons(put, form):
    mixed = [*QUADS[:3], *TRIANGLES[6:]]
    assert_is_unit_cube(load(put("cube.ply", cube_ply(form, mixed))))


@pytest.mark.parametrize("newline", [b"\n", b"\r\n", b"\r"])
def test_ply_header_line_ends(put, newline):
    # The first byte of data is \n: with \r as line end it must not be taken for a part of the line end.
    rows = [[10, *corner] for corner in CORNERS.tolist()]
    data = ply_bytes("binary_little_endian", ("vertex", ["uchar tag", *XYZ], rows), newline=newline)
    path = put("cloud.ply", data)
    np.testing.assert_array_equal(load(path).positions, CORNERS)
    assert (read_ply(path)["vertex"]["tag"] == 10).all()


@pytest.mark.parametrize("form", FORMATS)
def test_ply_any_elements_in_any_order(put, form):
    data = ply_bytes(
        form,
        ("camera", ["double focal", "list uint8 float64 lens"], [[0.035, [1.5, 2.5]], [0.05, []]]),
        ("face", ["uchar flag", "list uchar int32 vertex_index", "float area"], [[1, f, 0.5] for f in TRIANGLES]),
        ("vertex", ["double z", "ushort id", "double y", "double x"], [[z, 7, y, x] for x, y, z in CORNERS.tolist()]),
    )
    path = put("cube.ply", data)
    assert_is_unit_cube(load(path))
    content = read_ply(path)
    assert list(content) == ["camera", "face", "vertex"]
    np.testing.assert_array_equal(content["camera"]["lens"].values, [1.5, 2.5])
    np.testing.assert_array_equal(content["camera"]["lens"].counts, [2, 0])
    np.testing.assert_array_equal(content["camera"]["focal"], [0.035, 0.05])
    np.testing.assert_array_equal(content["face"]["area"], np.full(12, 0.5, np.float32))
    assert content["vertex"]["id"].dtype == np.uint16 and (content["vertex"]["id"] == 7).all()
    assert content["face"]["vertex_index"].values.dtype == np.int32


@pytest.mark.parametrize("form", FORMATS)
def test_ply_doubles_keep_all_digits(put, form):
    rows = (CORNERS / 3 + 4.5e6).tolist()
    cloud = load(put("far.ply", ply_bytes(form, ("vertex", ["double x", "double y", "double z"], rows))))
    np.testing.assert_array_equal(cloud.positions, rows)
    assert cloud.faces is None and cloud.normals is None and cloud.mesh is None


@pytest.mark.parametrize(
    ("properties", "values"),
    [
        (["uchar red", "uchar green", "uchar blue"], [255, 51, 0]),
        (["ushort red", "ushort green", "ushort blue"], [65535, 13107, 0]),
        (["float red", "float green", "float blue"], [1.0, 0.2, 0.0]),
        (["uint8 diffuse_red", "uint8 diffuse_green", "uint8 diffuse_blue"], [255, 51, 0]),
    ],
)
def test_ply_colors(put, properties, values):
    rows = [[*corner, *values] for corner in CORNERS.tolist()]
    cloud = load(put("cube.ply", ply_bytes("binary_big_endian", ("vertex", XYZ + properties, rows))))
    np.testing.assert_allclose(cloud.colors, np.tile([1, 0.2, 0], (8, 1)), atol=1e-7)
    assert cloud.colors.dtype == np.float32


def test_ply_normals_are_normalised_and_kept(put):
    rows = [[*corner, 0.0, 3.0, 4.0] for corner in CORNERS.tolist()]
    cloud = load(put("cube.ply", ply_bytes("ascii", ("vertex", [*XYZ, "float nx", "float ny", "float nz"], rows))))
    np.testing.assert_allclose(cloud.normals, np.tile([0, 0.6, 0.8], (8, 1)), atol=1e-7)


def test_a_point_without_normal_takes_one_from_its_surroundings(put):
    rows = np.concatenate([CORNERS, 2 * CORNERS - 1], axis=1).tolist()
    rows.append([0.001, 0.0, 0.0, 0.0, 0.0, 0.0])
    data = ply_bytes("binary_little_endian", ("vertex", [*XYZ, "float nx", "float ny", "float nz"], rows))
    cloud = load(put("cube.ply", data))
    np.testing.assert_allclose(cloud.normals[8], cloud.normals[0], atol=1e-6)
    np.testing.assert_allclose(np.linalg.norm(cloud.normals, axis=1), 1, atol=1e-6)


def test_normals_that_are_all_zero_count_as_none(put):
    rows = [[*corner, 0.0, 0.0, 0.0] for corner in CORNERS.tolist()]
    cloud = load(put("cube.ply", ply_bytes("ascii", ("vertex", [*XYZ, "float nx", "float ny", "float nz"], rows))))
    assert cloud.normals is None


@pytest.mark.parametrize("names", [("s", "t"), ("u", "v"), ("texture_u", "texture_v")])
def test_ply_texture_coordinates_of_vertices(put, names):
    rows = [[*corner, corner[0], corner[1] / 4] for corner in CORNERS.tolist()]
    faces = ("face", INDICES, [[face] for face in TRIANGLES])
    cloud = load(put("cube.ply", ply_bytes("ascii", ("vertex", XYZ + [f"float {n}" for n in names], rows), faces)))
    np.testing.assert_array_equal(cloud.uv, CORNERS[:, :2] * [1, 0.25])
    np.testing.assert_array_equal(cloud.uv_faces, cloud.faces)


def test_ply_texture_coordinates_of_corners(put):
    faces = [[quad, [0.0, 0.0, 1.0, 0.0, 1.0, 1.0, 0.0, 1.0]] for quad in QUADS]
    properties = [*INDICES, "list uchar float texcoord"]
    data = ply_bytes("binary_little_endian", ("vertex", XYZ, CORNERS.tolist()), ("face", properties, faces))
    cloud = load(put("cube.ply", data))
    assert_is_unit_cube(cloud)
    np.testing.assert_array_equal(cloud.uv[cloud.uv_faces[1]], [[0, 0], [1, 1], [0, 1]])


@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize("rows", [1, 2])
def test_ply_triangle_strips(put, form, rows):
    around = [0, 1, 2, 3, 6, 7, 4, 5, 0, 1]  # x = 0, y = 1, x = 1, y = 0
    ends = [[0, 2, 4, 6], [1, 5, 3, 7]]  # z = 0 and z = 1
    lists = [[*around, -1, *ends[0], -1, *ends[1]]] if rows == 1 else [[*around, -1, *ends[0]], ends[1]]
    data = ply_bytes(
        form,
        ("vertex", XYZ, CORNERS.tolist()),
        ("tristrips", ["list int int vertex_indices"], [[strip] for strip in lists]),
    )
    assert_is_unit_cube(load(put("cube.ply", data)))


def test_degenerate_triangles_of_strips_fall_out(put):
    # Doubling the first vertex turns the parity, so the strip must run the other way round.
    strips = [[0, 1, 2, 3, 6, 7, 4, 5, 0, 1, -1, 0, 2, 4, 6, -1, 1, 1, 3, 5, 7, 7]]
    data = ply_bytes(
        "ascii",
        ("vertex", XYZ, CORNERS.tolist()),
        ("tristrips", ["list int int vertex_indices"], [[strip] for strip in strips]),
    )
    assert_is_unit_cube(load(put("cube.ply", data)))


def body_start(data: bytes) -> int:
    return data.index(b"end_header\n") + len(b"end_header\n")


@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize("faces", [TRIANGLES, QUADS, [*QUADS[:3], *TRIANGLES[6:]]], ids=["triangles", "quads", "mixed"])
@pytest.mark.parametrize("share", [0.0, 0.2, 0.45, 0.7, 0.9, 0.97])
def test_cut_off_ply(put, form, faces, share):
    data = cube_ply(form, faces)
    start = body_start(data)
    cut = start + int(share * (len(data) - start))
    with pytest.raises(LoadError, match=r"cube\.ply: element \"(vertex|face)\".* cut off") as caught:
        load(put("cube.ply", data[:cut]))
    assert any(character.isdigit() for character in str(caught.value))


def test_cut_off_ply_says_how_much_is_missing(put):
    data = cube_ply("binary_little_endian")
    path = put("cube.ply", data[: body_start(data) + 50])
    with pytest.raises(LoadError, match="8 rows of 12 bytes, 96 in all, but 50 are there \\(4 rows\\)"):
        load(path)


@pytest.mark.parametrize("cut", [1, 3, 4, 20, 60, 150])
def test_cut_off_ply_header(put, cut):
    with pytest.raises(LoadError, match=r"cube\.ply"):
        load(put("cube.ply", cube_ply()[:cut]))


@pytest.mark.parametrize(
    ("old", "new", "word"),
    [
        (b"ply\n", b"\x00\xff\n", "not a PLY file"),
        (b"format ascii 1.0\n", b"", "out of place"),
        (b"format ascii 1.0\n", b"format morse 1.0\n", "line 2"),
        (b"property float x", b"property quaternion x", "unknown type quaternion"),
        (b"property float x", b"property float y", "twice"),
        (b"property float x", b"property x", "expected a type and a name"),
        (b"element vertex 8", b"element vertex many", "number of rows"),
        (b"element vertex 8", b"element vertex -8", "number of rows"),
        (b"element vertex 8", b"element face 8", "there twice"),
        (b"element vertex 8", b"element vertex 99999999999999999999", "cut off"),
        (b"element vertex 8", b"element corner 8", "x, y and z"),
        (b"list uchar int", b"list float int", "integer type"),
        (b"list uchar int", b"list uchar float", "integer type"),
        (b"comment made", b"remark made", "line 3"),
        (b"\n0.0 0.0 0.0\n", b"\n0.0 zero 0.0\n", '"zero"'),
        (b"\n3 0 1 3\n", b"\n3 0 1 3.5\n", "3.5 stands where"),
        (b"\n3 0 1 3\n", b"\n3 0 1 8\n", "names vertex 8"),
        (b"\n3 0 1 3\n", b"\n3 0 1 -1\n", "names vertex -1"),
        (b"\n0.0 0.0 0.0\n", b"\n0.0 nan 0.0\n", "not finite"),
        (b"\n0.0 0.0 0.0\n", b"\n0.0 1e300 0.0\n", "not finite"),
    ],
)
def test_damaged_ply(put, old, new, word):
    good = cube_ply()
    assert good.count(old) == 1
    with pytest.raises(LoadError, match=r"cube\.ply") as caught:
        load(put("cube.ply", good.replace(old, new)))
    assert word in str(caught.value)


def test_a_coordinate_beyond_all_sense(put):
    rows = [*CORNERS.tolist(), [1e308, -1e308, 0.0]]
    with pytest.raises(LoadError, match=r"1e\+308"):
        load(put("far.ply", ply_bytes("binary_little_endian", ("vertex", ["double x", "double y", "double z"], rows))))


@pytest.mark.parametrize("name", ["anything.ply", "anything.obj", "anything.stl", "anything.xyz"])
@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.binary(min_size=0, max_size=300))
def test_random_bytes_raise_only_what_is_meant(put, name, data):
    load_or_refuse(put(name, data))


@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    form=st.sampled_from(FORMATS),
    faces=st.sampled_from([TRIANGLES, QUADS, [*QUADS[:3], *TRIANGLES[6:]]]),
    changes=st.lists(st.tuples(st.floats(0, 0.999), st.binary(max_size=3), st.integers(0, 3)), min_size=1, max_size=6),
)
def test_damaged_bytes_raise_only_what_is_meant(put, form, faces, changes):
    data = cube_ply(form, faces)
    for share, inserted, removed in changes:
        at = int(share * len(data))
        data = data[:at] + inserted + data[at + removed :]
    load_or_refuse(put("damaged.ply", data))


def test_igea_is_closed(models):
    cloud = load(models / "igea.ply")
    edges, directed = edge_counts(cloud.faces)
    assert len(cloud) == 134_345 and len(cloud.faces) == 268_686
    assert (edges == 2).all() and (directed == 1).all()
    assert len(cloud) - len(edges) + len(cloud.faces) == 2
    assert volume(cloud.positions, cloud.faces) == pytest.approx(2.785e-4, rel=1e-3)
    assert cloud.name == "igea.ply"
