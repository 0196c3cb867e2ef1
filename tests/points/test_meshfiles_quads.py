"""Meshes of quads keep them, beside the triangles they are cut into, and sheets keep the sides they have."""

import numpy as np
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from scipy.spatial.transform import Rotation

from phyxel.errors import LoadError
from phyxel.points.cloud import PointCloud, halves
from phyxel.points.load import UNITS, load
from tests.points.files import CORNERS, FORMATS, INDICES, QUADS, ply_bytes

XYZ = ["double x", "double y", "double z"]
POINTS = np.random.default_rng(3).normal(size=(9, 3))

quick = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
corner = st.integers(0, len(POINTS) - 1)
polygon = st.one_of(
    st.lists(corner, min_size=3, max_size=3, unique=True),
    st.lists(corner, min_size=4, max_size=4, unique=True),
    st.lists(corner, min_size=4, max_size=4),  # mostly with a corner named twice
    st.lists(corner, min_size=5, max_size=6, unique=True),
)
quad = st.lists(corner, min_size=4, max_size=4, unique=True)
meshes = st.one_of(st.lists(polygon, min_size=1, max_size=6), st.lists(quad, min_size=1, max_size=6))


def ply(x: np.ndarray, faces: list[list[int]], form: str = "binary_little_endian") -> bytes:
    """With the numbers of its corners, counted through all faces, as texture coordinates."""
    starts = np.cumsum([0, *map(len, faces)])
    uv = [[float(k) for c in range(len(f)) for k in (s + c, 0)] for f, s in zip(faces, starts, strict=False)]
    rows = [[face, numbers] for face, numbers in zip(faces, uv, strict=True)]
    properties = [*INDICES, "list uchar float texcoord"]
    return ply_bytes(form, ("vertex", XYZ, x.tolist()), ("face", properties, rows))


def obj(x: np.ndarray, faces: list[list[int]]) -> str:
    """As `ply`; every second face counts backward."""
    lines = [f"v {a!r} {b!r} {c!r}" for a, b, c in x.tolist()]
    lines += [f"vt {k} 0" for k in range(sum(map(len, faces)))]
    count, total = 0, sum(map(len, faces))
    for row, face in enumerate(faces):
        words = []
        for index in face:
            v, vt = (index + 1, count + 1) if row % 2 == 0 else (index - len(x), count - total)
            words.append(f"{v}/{vt}")
            count += 1
        lines.append("f " + " ".join(words))
    return "\n".join(lines)


def fans(faces: list[list[int]]) -> np.ndarray:
    return np.array([[face[0], face[k], face[k + 1]] for face in faces for k in range(1, len(face) - 1)])


def grid(columns: int = 7, rows: int = 5) -> tuple[np.ndarray, list[list[int]]]:
    """A sheet in the plane z = 0 that looks along z."""
    x = np.array([[c, r, 0.0] for r in range(rows) for c in range(columns)]) / 10
    first = [r * columns + c for r in range(rows - 1) for c in range(columns - 1)]
    return x, [[k, k + 1, k + columns + 1, k + columns] for k in first]


@quick
@given(faces=meshes, form=st.sampled_from([*FORMATS, "obj"]))
@example(faces=[[0, 1, 2, 3], [3, 2, 4, 5]], form="obj")
@example(faces=[[0, 1, 2, 3], [3, 2, 4]], form="obj")
@example(faces=[[0, 1, 2, 2]], form="ascii")
def test_quads_are_kept_where_all_faces_are_quads(put, faces, form):
    """Any polygons: triangles are the fans. Quads are there if each face has four different corners, else None. A mesh
    that was turned is turned in all it has, texture coordinates too."""
    path = put("mesh.obj", obj(POINTS, faces)) if form == "obj" else put("mesh.ply", ply(POINTS, faces, form))
    cloud = load(path)
    corners = [list(range(s, s + len(f))) for f, s in zip(faces, np.cumsum([0, *map(len, faces)]), strict=False)]
    way = 1 if np.array_equal(cloud.faces, fans(faces)) else -1
    np.testing.assert_array_equal(cloud.faces, fans(faces)[:, ::way])
    np.testing.assert_array_equal(cloud.uv[cloud.uv_faces][:, :, 0], fans(corners)[:, ::way])
    if all(len(set(face)) == len(face) == 4 for face in faces):
        np.testing.assert_array_equal(cloud.quads, np.array(faces)[:, ::way])
        assert cloud.quads.dtype == np.int32 and cloud.quads.flags.c_contiguous
        assert_halves(cloud)
    else:
        assert cloud.quads is None


def assert_halves(cloud: PointCloud) -> None:
    """Triangles 2k and 2k + 1 together go round quad k the same way: their edges, less the one passed both ways, are
    those of the quad."""
    for k, whole in enumerate(cloud.quads.tolist()):
        edges = {(t[c - 1], t[c]) for t in cloud.faces[2 * k : 2 * k + 2].tolist() for c in range(3)}
        outer = {(a, b) for a, b in edges if (b, a) not in edges}
        assert outer == {(whole[c - 1], whole[c]) for c in range(4)}


def test_lines_and_points_among_quads_are_no_faces(put):
    data = ply_bytes(
        "ascii", ("vertex", XYZ, CORNERS.tolist()), ("face", INDICES, [[f] for f in [[0], *QUADS, [1, 2], []]])
    )
    np.testing.assert_array_equal(load(put("cube.ply", data)).quads, QUADS)


def test_strips_beside_quads_leave_none(put):
    strip = ("tristrips", ["list int int vertex_indices"], [[[0, 1, 2, 3]]])
    faces = ("face", INDICES, [[f] for f in QUADS[1:]])
    cloud = load(put("cube.ply", ply_bytes("ascii", ("vertex", XYZ, CORNERS.tolist()), faces, strip)))
    assert cloud.quads is None and len(cloud.faces) == 12


@pytest.mark.parametrize("up", ["y", "z", "x"])
@pytest.mark.parametrize("units", UNITS)
def test_units_and_up_change_no_quad(put, units, up):
    cloud = load(put("cube.obj", obj(CORNERS, QUADS)), units=units, up=up)
    np.testing.assert_array_equal(cloud.quads, QUADS)


def test_a_cube_of_quads_inside_out_is_turned(put):
    cloud = load(put("cube.obj", obj(CORNERS, [face[::-1] for face in QUADS])))
    np.testing.assert_array_equal(cloud.quads, QUADS)
    assert_halves(cloud)
    assert ((cloud.positions - 0.5) * cloud.normals).sum(axis=1).min() > 0


def test_fewer_points_have_no_quads_and_more_keep_them(put):
    path = put("cube.ply", ply(CORNERS, QUADS))
    assert load(path, points=6).quads is None
    np.testing.assert_array_equal(load(path, points=50).quads, QUADS)


# --- sheets


@quick
@given(
    turn=st.integers(0, 2**32 - 1),
    bend=st.sampled_from([0.0, 1e-12, 0.02, -0.02]),
    far=st.sampled_from([0.0, 1e3, -1e6]),
    mirrored=st.booleans(),
)
def test_a_sheet_keeps_its_sides(put, turn, bend, far, mirrored):
    """Flat, or a little dished either way, however it lies and wherever: its faces are as they were written, and its
    normals look where they do. Written in full digits, a metre at 1e6 m has 1e-10 m left."""
    x, faces = grid()
    x[:, 2] += bend * (20 * (x[:, 0] - 0.3) ** 2 + 20 * (x[:, 1] - 0.2) ** 2)
    rotation = Rotation.random(random_state=turn)
    faces = [face[::-1] for face in faces] if mirrored else faces
    cloud = load(put("sheet.obj", obj(rotation.apply(x) + far, faces)))
    np.testing.assert_array_equal(cloud.quads, faces)
    np.testing.assert_array_equal(cloud.faces, fans(faces))
    ahead = rotation.apply([0, 0, -1.0 if mirrored else 1.0])
    assert (cloud.normals @ ahead).min() > 0.8


def cap(reach: float) -> tuple[np.ndarray, list[list[int]]]:
    """Part of the unit sphere up to an angle from its pole, looking outward."""
    polar, around = np.linspace(0.1, reach, 12), np.arange(16) * 2 * np.pi / 16
    x = [[np.sin(p) * np.cos(a), np.sin(p) * np.sin(a), np.cos(p)] for p in polar for a in around]
    faces = [
        [r * 16 + k, (r + 1) * 16 + k, (r + 1) * 16 + (k + 1) % 16, r * 16 + (k + 1) % 16]
        for r in range(11)
        for k in range(16)
    ]
    return np.array(x), faces


@pytest.mark.parametrize(("reach", "is_turned"), [(0.5, False), (np.pi / 2, True), (2.8, True)])
def test_an_open_mesh_is_turned_where_it_goes_round_an_inside(put, reach, is_turned):
    """A half sphere that looks inward has its volume on the wrong side from wherever it is measured; a shallow bowl
    has no inside and stays as it is; what looks outward always stays."""
    x, faces = cap(reach)
    inward = [face[::-1] for face in faces]
    np.testing.assert_array_equal(load(put("cap.obj", obj(x, faces))).quads, faces)
    np.testing.assert_array_equal(load(put("cap.obj", obj(x, inward))).quads, faces if is_turned else inward)


def test_flat_points_load_whatever_they_have(put):
    """In one plane, alone or with a normal missing, thinned or not; on one line they are refused."""
    x = grid()[0]
    rows = "".join(f"{a} {b} {c} 0 0 1\n" for a, b, c in x.tolist())
    cloud = load(put("sheet.xyz", rows))
    assert cloud.is_flat and not PointCloud(CORNERS).is_flat
    np.testing.assert_array_equal(cloud.normals, np.tile([0, 0, 1], (len(x), 1)))
    assert load(put("plain.xyz", "".join(f"{a} {b} {c}\n" for a, b, c in x.tolist())), points=9).is_flat
    with pytest.raises(LoadError, match=r"line\.xyz: all 7 points lie on one line or point; a surface spreads in two"):
        load(put("line.xyz", "".join(f"{a} {2 * a} {-a}\n" for a in range(7))))


# --- clouds made by hand


def test_quads_alone_get_their_triangles():
    cloud = PointCloud(CORNERS, quads=np.array(QUADS)).checked()
    np.testing.assert_array_equal(cloud.faces, halves(np.array(QUADS)))
    assert_halves(cloud)
    assert cloud.checked() is cloud


@pytest.mark.parametrize(
    ("quads", "faces", "word"),
    [
        (np.array([[0, 1, 2, 8]]), None, "names point 8, but there are 8 points"),
        (np.array([[0, 1, 2, -1]]), None, "names point -1"),
        (np.array([[0, 1, 2]]), None, r"quads: an array of shape \(1, 3\).*\(N, 4\)"),
        (np.array([[0.0, 1.0, 2.0, 3.0]]), None, "quads: .*float64"),
        (np.array(QUADS), np.array([[0, 1, 3]]), "1 faces and 6 quads; give the quads alone"),
    ],
)
def test_wrong_quads_are_refused(quads, faces, word):
    with pytest.raises(LoadError, match=f"made: .*{word}"):
        PointCloud(CORNERS, faces=faces, quads=quads, name="made").checked()
