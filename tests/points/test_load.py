"""Files and names become clouds, or errors that say what to do."""

import struct
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from phyxel.errors import LoadError, PhyxelError
from phyxel.points.cloud import PointCloud
from phyxel.points.load import UNITS, load, spread_subset
from phyxel.points.ply import read_ply

CORNERS = np.array([[x, y, z] for x in (0, 1) for y in (0, 1) for z in (0, 1)], float)
"""of the unit cube; corner 4x + 2y + z"""
QUADS = [[0, 1, 3, 2], [4, 6, 7, 5], [0, 4, 5, 1], [2, 3, 7, 6], [0, 2, 6, 4], [1, 5, 7, 3]]
TRIANGLES = [[q[0], q[k], q[k + 1]] for q in QUADS for k in (1, 2)]
TETRA = np.array([[0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1]], float)
TETRA_FACES = [[0, 2, 1], [0, 1, 3], [0, 3, 2], [1, 2, 3]]

FORMATS = ["ascii", "binary_little_endian", "binary_big_endian"]
CODES = {
    "uchar": "B",
    "uint8": "B",
    "ushort": "H",
    "int": "i",
    "int32": "i",
    "float": "f",
    "double": "d",
    "float64": "d",
}


# --- helpers


def ply_bytes(form: str, *elements: tuple[str, list[str], list[list]], newline: bytes = b"\n") -> bytes:
    """A PLY file; an element is its name, its properties as in the header, and rows in which a list is a list."""
    header = ["ply", f"format {form} 1.0", "comment made by hand"]
    body = b""
    for name, properties, rows in elements:
        header.append(f"element {name} {len(rows)}")
        header += [f"property {words}" for words in properties]
        for row in rows:
            body += ply_row(form, properties, row)
    return newline.join(line.encode() for line in [*header, "end_header"]) + newline + body


def ply_row(form: str, properties: list[str], row: list) -> bytes:
    words: list[tuple[str, float]] = []
    for item, value in zip(properties, row, strict=True):
        types = item.split()[:-1]
        if types[0] == "list":
            words += [(types[1], len(value)), *((types[2], number) for number in value)]
        else:
            words.append((types[0], value))
    if form == "ascii":
        return " ".join(repr(number) for _, number in words).encode() + b"\n"
    order = "<" if form == "binary_little_endian" else ">"
    return b"".join(struct.pack(order + CODES[kind], number) for kind, number in words)


XYZ = ["float x", "float y", "float z"]
INDICES = ["list uchar int vertex_indices"]


def cube_ply(form: str = "ascii", faces: list[list[int]] = TRIANGLES) -> bytes:
    rows = CORNERS.tolist()
    return ply_bytes(form, ("vertex", XYZ, rows), ("face", INDICES, [[face] for face in faces]))


@pytest.fixture
def put(tmp_path: Path):
    """Write a file, get its path."""

    def write(name: str, content: bytes | str) -> Path:
        path = tmp_path / name
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path

    return write


def volume(x: np.ndarray, faces: np.ndarray) -> float:
    a, b, c = (x[faces[:, k]] for k in range(3))
    return float((a * np.cross(b, c)).sum() / 6)


def edge_counts(faces: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """How often each edge is used, and how often each directed edge."""
    directed = np.concatenate([faces[:, [0, 1]], faces[:, [1, 2]], faces[:, [2, 0]]]).astype(np.int64)
    size = faces.max() + 1
    undirected = np.sort(directed, axis=1)
    return (
        np.unique(undirected @ [size, 1], return_counts=True)[1],
        np.unique(directed @ [size, 1], return_counts=True)[1],
    )


def assert_is_unit_cube(cloud: PointCloud) -> None:
    np.testing.assert_array_equal(cloud.positions, CORNERS)
    assert cloud.positions.dtype == np.float64
    assert cloud.faces.dtype == np.int32 and cloud.faces.shape == (12, 3)
    assert_closed_and_outward(cloud, volume_expected=1.0)


def assert_closed_and_outward(cloud: PointCloud, volume_expected: float) -> None:
    edges, directed = edge_counts(cloud.faces)
    assert (edges == 2).all() and (directed == 1).all()
    assert volume(cloud.positions, cloud.faces) == pytest.approx(volume_expected)
    np.testing.assert_allclose(np.linalg.norm(cloud.normals, axis=1), 1, atol=1e-6)
    assert cloud.normals.dtype == np.float32
    assert (np.einsum("ij,ij->i", cloud.normals, cloud.positions - cloud.positions.mean(axis=0)) > 0).all()
    np.testing.assert_array_equal(cloud.mesh.vertices, cloud.positions)
    np.testing.assert_array_equal(cloud.mesh.faces, cloud.faces)


# --- PLY


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


def load_or_refuse(path: Path) -> None:
    try:
        cloud = load(path)
    except PhyxelError as error:
        assert path.name in str(error)
    else:
        assert len(cloud) >= 4 and np.isfinite(cloud.positions).all()


def test_igea_is_closed(models):
    cloud = load(models / "igea.ply")
    edges, directed = edge_counts(cloud.faces)
    assert len(cloud) == 134_345 and len(cloud.faces) == 268_686
    assert (edges == 2).all() and (directed == 1).all()
    assert len(cloud) - len(edges) + len(cloud.faces) == 2
    assert volume(cloud.positions, cloud.faces) == pytest.approx(2.785e-4, rel=1e-3)
    assert cloud.name == "igea.ply"


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


def rows_text(table: np.ndarray, separator: str = " ") -> str:
    return "".join(separator.join(f"{number:.6g}" for number in row) + "\n" for row in table)


NORMALS = (CORNERS - 0.5) / 0.75**0.5
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


# --- what every file goes through


@pytest.mark.parametrize(("units", "metres"), UNITS.items())
def test_units(put, units, metres):
    cloud = load(put("cube.ply", cube_ply()), units=units)
    np.testing.assert_allclose(cloud.positions, CORNERS * metres, rtol=1e-15)
    assert volume(cloud.mesh.vertices, cloud.mesh.faces) == pytest.approx(metres**3)


@pytest.mark.parametrize(
    ("up", "turned"),
    [
        ("y", lambda x, y, z: (x, y, z)),
        ("z", lambda x, y, z: (x, z, -y)),
        ("x", lambda x, y, z: (-y, x, z)),
    ],
)
def test_up_turns_positions_and_normals(put, up, turned):
    table = np.concatenate([CORNERS, NORMALS], axis=1)
    cloud = load(put("cube.xyz", rows_text(table)), up=up)
    np.testing.assert_array_equal(cloud.positions, np.stack(turned(*CORNERS.T), axis=1))
    np.testing.assert_allclose(cloud.normals, np.stack(turned(*NORMALS.T), axis=1), atol=1e-6)
    assert_closed_and_outward(load(put("cube.ply", cube_ply()), up=up), volume_expected=1.0)


@pytest.mark.parametrize(
    ("options", "word"),
    [
        ({"units": "inch"}, 'did you mean "in"?'),
        ({"units": "MM"}, 'did you mean "mm"?'),
        ({"units": "meter"}, 'did you mean "m"?'),
        ({"up": "Z"}, 'did you mean "z"?'),
        ({"up": "w"}, "Known: y, z, x"),
        ({"points": 3}, "at least 4"),
        ({"points": 0}, "at least 4"),
        ({"points": 5.5}, "whole number"),
    ],
)
def test_wrong_options(put, options, word):
    with pytest.raises(PhyxelError) as caught:
        load(put("cube.ply", cube_ply()), **options)
    assert word in str(caught.value)


@pytest.mark.parametrize("shift", [0.0, 1000.0])
def test_a_mesh_inside_out_is_turned(put, shift):
    lines = [f"v {x + shift} {y - shift} {z}" for x, y, z in CORNERS] + ["vt 0 0", "vt 1 0", "vt 1 1"]
    lines += [f"f {c + 1}/3 {b + 1}/2 {a + 1}/1" for a, b, c in TRIANGLES]
    cloud = load(put("cube.obj", "\n".join(lines)))
    assert_closed_and_outward(cloud, volume_expected=1.0)
    np.testing.assert_array_equal(cloud.faces, TRIANGLES)
    np.testing.assert_array_equal(cloud.uv_faces, [[0, 1, 2]] * 12)


def test_inward_normals_of_a_mesh_are_turned(put):
    lines = [f"v {x} {y} {z}\nvn {0.5 - x} {0.5 - y} {0.5 - z}" for x, y, z in CORNERS]
    lines += [f"f {c + 1}//{c + 1} {b + 1}//{b + 1} {a + 1}//{a + 1}" for a, b, c in TRIANGLES]
    cloud = load(put("cube.obj", "\n".join(lines)))
    assert_is_unit_cube(cloud)
    np.testing.assert_allclose(cloud.normals, NORMALS, atol=1e-6)


def test_normals_from_faces_are_weighted_by_area(put):
    lines = [f"v {x} {y} {z}" for x, y, z in TETRA * [1, 2, 4]]
    lines += ["f " + " ".join(str(k + 1) for k in face) for face in TETRA_FACES]
    cloud = load(put("tetra.obj", "\n".join(lines)))
    # At the right-angled corner the three sides have areas 1 (z = 0), 2 (y = 0) and 4 (x = 0).
    np.testing.assert_allclose(cloud.normals[0], -np.array([4, 2, 1]) / 21**0.5, atol=1e-6)


@pytest.mark.parametrize("scale", [1e-6, 1e6])
def test_any_scale(put, scale):
    text = "".join(f"v {x * scale:.9g} {y * scale:.9g} {z * scale:.9g}\n" for x, y, z in CORNERS)
    text += "".join("f " + " ".join(str(k + 1) for k in face) + "\n" for face in TRIANGLES)
    path = put("cube.obj", text)
    assert_closed_and_outward(load(path), volume_expected=scale**3)
    assert len(load(path, points=500)) == 500


def test_duplicated_points_are_fine(put):
    path = put("points.xyz", rows_text(np.repeat(CORNERS, 5, axis=0)))
    assert len(load(path)) == 40
    assert len(np.unique(load(path, points=20).positions, axis=0)) == 8


# --- another number of points


def sphere_points(count: int) -> np.ndarray:
    rng = np.random.default_rng(7)
    directions = rng.normal(size=(count, 3))
    return directions / np.linalg.norm(directions, axis=1, keepdims=True)


@pytest.mark.parametrize("count", [4, 100, 1000, 4999])
def test_thinning_is_exact_and_repeatable(count):
    x = sphere_points(5000)
    kept = spread_subset(x, count)
    assert len(np.unique(kept)) == count and (np.diff(kept) > 0).all()
    np.testing.assert_array_equal(kept, spread_subset(x, count))


def test_thinning_is_even_where_the_points_are_not():
    x = sphere_points(20_000)
    x = x[(x[:, 0] > 0) | (np.arange(20_000) % 10 == 0)]  # ten times denser on one side
    kept = x[spread_subset(x, 500)]
    farthest = max(np.linalg.norm(kept - point, axis=1).min() for point in x[::10])
    spacing = (4 * np.pi / 500) ** 0.5
    assert farthest < 2 * spacing
    assert 0.4 < (kept[:, 0] > 0).mean() < 0.6


def test_a_thinned_cloud_keeps_its_mesh(put):
    rows = [[*corner, 10 * k, 0, 255] for k, corner in enumerate(CORNERS.tolist())]
    faces = ("face", INDICES, [[face] for face in TRIANGLES])
    path = put(
        "cube.ply", ply_bytes("ascii", ("vertex", [*XYZ, "uchar red", "uchar green", "uchar blue"], rows), faces)
    )
    cloud = load(path, points=6)
    assert len(cloud) == len(cloud.normals) == len(cloud.colors) == 6
    assert cloud.faces is None and cloud.uv is None and cloud.uv_faces is None
    assert volume(cloud.mesh.vertices, cloud.mesh.faces) == pytest.approx(1.0)
    index = (cloud.positions @ [4, 2, 1]).astype(int)
    np.testing.assert_allclose(cloud.colors[:, 0], index * 10 / 255, atol=1e-6)


def test_added_points_lie_on_the_faces(put):
    lines = [f"v {x} {y} {z} {x} {y} {z}" for x, y, z in TETRA]
    lines += ["f " + " ".join(str(k + 1) for k in face) for face in TETRA_FACES]
    cloud = load(put("tetra.obj", "\n".join(lines)), points=8004)
    np.testing.assert_array_equal(cloud.positions[:4], TETRA)
    assert len(cloud) == len(cloud.normals) == len(cloud.colors) == 8004
    added = cloud.positions[4:]
    depth = np.stack([*added.T, (1 - added.sum(axis=1)) / 3**0.5], axis=1)
    np.testing.assert_allclose(depth.min(axis=1), 0, atol=1e-12)
    slanted = np.abs(depth[:, 3]) < 1e-12
    assert slanted.mean() == pytest.approx(3**0.5 / (3 + 3**0.5), abs=0.002)
    np.testing.assert_allclose(added[slanted].mean(axis=0), 1 / 3, atol=0.02)
    np.testing.assert_allclose(cloud.colors, cloud.positions, atol=1e-6)
    np.testing.assert_allclose(np.linalg.norm(cloud.normals, axis=1), 1, atol=1e-6)
    assert cloud.faces.max() == 3 and len(cloud.mesh.vertices) == 4


def test_the_same_number_of_points_changes_nothing(put):
    assert_is_unit_cube(load(put("cube.ply", cube_ply()), points=8))


def test_no_faces_no_more_points(put):
    with pytest.raises(PhyxelError, match=r"points\.xyz: points = 9, .* 8 points and no faces .* at most 8"):
        load(put("points.xyz", rows_text(CORNERS)), points=9)


# --- names


def test_a_built_in_shape():
    cloud = load("bear", points=500)
    assert len(cloud) == 500 and cloud.name == "bear" and cloud.shape is not None
    assert np.abs(cloud.shape.distance(cloud.positions)).max() < 1e-3 * cloud.size


def test_a_file_goes_before_a_built_in_shape(put, monkeypatch, tmp_path):
    put("bear", rows_text(CORNERS))
    monkeypatch.chdir(tmp_path)
    with pytest.raises(LoadError, match="without suffix"):
        load("bear")


def test_near_misses_of_names():
    with pytest.raises(
        LoadError, match=r'"baer": no such file, and no built-in shape; did you mean "bear"\? Built in: .*bar'
    ):
        load("baer")


def test_units_of_a_built_in_shape():
    with pytest.raises(PhyxelError, match='"bear" is built in, in metres'):
        load("bear", units="cm")


@pytest.mark.parametrize(
    ("name", "word"), [("missing.ply", "no such file"), ("a\0b", "no such file"), ("x" * 5000, "no such file")]
)
def test_missing_files(name, word):
    with pytest.raises(LoadError, match=word):
        load(name)


def test_a_folder(tmp_path):
    with pytest.raises(LoadError, match="is a folder"):
        load(tmp_path)


@pytest.mark.parametrize("suffix", [".ply", ".obj", ".stl", ".xyz"])
def test_empty_files(put, suffix):
    with pytest.raises(LoadError, match=r"empty\..* the file is empty"):
        load(put("empty" + suffix, b""))


def test_an_unknown_suffix(put):
    with pytest.raises(LoadError, match=r'scan\.fbx: "\.fbx" files are not known; Phyxel reads \.ply, \.obj'):
        load(put("scan.fbx", b"..."))


def test_a_file_that_cannot_be_read(put, monkeypatch):
    def refuse(self):
        raise PermissionError(13, "Permission denied")

    path = put("cube.ply", cube_ply())
    monkeypatch.setattr(Path, "read_bytes", refuse)
    with pytest.raises(LoadError, match=r"cube\.ply: cannot be read \(Permission denied\)"):
        load(path)
