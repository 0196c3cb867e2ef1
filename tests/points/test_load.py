"""What every file goes through, and names of files and shapes."""

from pathlib import Path

import numpy as np
import pytest

from phyxel.errors import LoadError, PhyxelError
from phyxel.points.load import UNITS, load, spread_subset
from tests.points.files import (
    CORNERS,
    INDICES,
    NORMALS,
    TETRA,
    TETRA_FACES,
    TRIANGLES,
    XYZ,
    assert_closed_and_outward,
    assert_is_unit_cube,
    cube_ply,
    ply_bytes,
    rows_text,
    volume,
)

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
        ({"up": "w"}, "there are y, z, x"),
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
    with pytest.raises(LoadError, match=r'"baer": no such file, and no built-in shape; did you mean "bear"\?$'):
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
