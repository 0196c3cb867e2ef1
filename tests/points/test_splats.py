"""Gaussian splats become points on a surface, and nothing of their file is lost."""

import tracemalloc
from pathlib import Path

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from phyxel.errors import LoadError, PhyxelError, SceneError
from phyxel.points.load import UNITS, UPS, load
from phyxel.points.splats import rotation_matrices
from phyxel.scene import Scene
from phyxel.scene.body_tables import BodyPart

FORMATS = {"ascii": "=", "binary_little_endian": "<", "binary_big_endian": ">"}
TYPES = {"f4": "float", "f8": "double", "u1": "uchar", "u4": "uint", "i4": "int"}
COUNT = 400
OPAQUE = 300
"""the first so many splats are clearly on the surface, the others clearly not"""

Columns = dict[str, np.ndarray]


# --- helpers


def sphere(count: int = COUNT) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Points spread over the unit sphere, flat splats' rotations on it, and which axis of each is the shortest."""
    k = np.arange(count)
    y = 1 - (2 * k + 1) / count
    radius = np.sqrt(1 - y * y)
    angle = k * np.pi * (3 - 5**0.5)
    outward = np.stack([radius * np.cos(angle), y, radius * np.sin(angle)], axis=1)
    shortest = k % 3
    first = np.cross(outward, [0.3, 0.5, 0.8])
    first /= np.linalg.norm(first, axis=1, keepdims=True)
    frames = np.stack([outward, first, np.cross(outward, first)], axis=2)
    turns = np.stack([np.roll(frame, axis, axis=1) for frame, axis in zip(frames, shortest, strict=True)])
    return outward, turns, shortest


def splat_columns(degree: int = 1) -> Columns:
    """A unit sphere of flat splats in the order of properties that most tools write."""
    rng = np.random.default_rng(3)
    centres, turns, shortest = sphere()
    quaternions = np.roll(Rotation.from_matrix(turns).as_quat(), 1, axis=1)
    quaternions *= rng.uniform(0.2, 3, (COUNT, 1)) * rng.choice([-1, 1], (COUNT, 1))
    sizes = np.full((COUNT, 3), np.log(0.05))
    sizes[np.arange(COUNT), shortest] = np.log(0.001)
    logits = np.where(np.arange(COUNT) < OPAQUE, 3.0, -3.0)
    # The opaque ones come first in the file, but lie all over the sphere.
    shuffled = rng.permutation(COUNT)
    tables = {
        "{}": ("xyz", centres[shuffled]),
        "n{}": ("xyz", np.zeros((COUNT, 3))),
        "f_dc_{}": ("012", rng.normal(0, 1.5, (COUNT, 3))),
        "f_rest_{}": (range(3 * (degree + 1) ** 2 - 3), rng.normal(0, 0.1, (COUNT, 3 * (degree + 1) ** 2 - 3))),
        "opacit{}": ("y", logits[:, None]),
        "scale_{}": ("012", sizes[shuffled]),
        "rot_{}": ("0123", quaternions[shuffled]),
    }
    return {
        pattern.format(key): table[:, k].astype(np.float32)
        for pattern, (keys, table) in tables.items()
        for k, key in enumerate(keys)
    }


def ply(columns: Columns, form: str = "binary_little_endian", more: str = "") -> bytes:
    """A PLY file with these vertices; `more` are lines at the end of the header."""
    rows = len(next(iter(columns.values())))
    header = ["ply", f"format {form} 1.0", f"element vertex {rows}"]
    header += [f"property {TYPES[column.dtype.str[1:]]} {name}" for name, column in columns.items()]
    head = "\n".join([*header, *more.split("\n")] if more else header) + "\nend_header\n"
    if form == "ascii":
        table = np.stack([column.astype(float) for column in columns.values()], axis=1)
        return (head + "".join(" ".join(f"{v:.9g}" for v in row) + "\n" for row in table)).encode()
    record = np.dtype([(name, FORMATS[form] + column.dtype.str[1:]) for name, column in columns.items()])
    table = np.empty(rows, record)
    for name, column in columns.items():
        table[name] = column
    return head.encode() + table.tobytes()


@pytest.fixture
def put(tmp_path: Path):
    """Write a file, get its path."""

    def write(content: bytes, name: str = "splats.ply") -> Path:
        path = tmp_path / name
        path.write_bytes(content)
        return path

    return write


def table(columns: Columns, *names: str) -> np.ndarray:
    return np.stack([columns[name] for name in names], axis=1).astype(np.float64)


def but(columns: Columns, name: str, value: float, rows: slice = slice(None)) -> Columns:
    """The same columns with another value in some rows of one of them."""
    changed = columns[name].copy()
    changed[rows] = value
    return {**columns, name: changed}


def assert_loses_nothing(attributes: Columns, columns: Columns) -> None:
    assert list(attributes) == list(columns)
    for name, column in columns.items():
        assert attributes[name].dtype == column.dtype
        np.testing.assert_array_equal(attributes[name], column)


# --- points


@pytest.mark.parametrize("form", FORMATS)
def test_opaque_splats_are_points_on_the_surface(put, form):
    columns = splat_columns()
    cloud = load(put(ply(columns, form)))
    centres = table(columns, "x", "y", "z")[:OPAQUE]
    np.testing.assert_array_equal(cloud.positions, centres)
    assert cloud.positions.dtype == np.float64
    assert cloud.normals.dtype == cloud.colors.dtype == np.float32
    np.testing.assert_allclose(cloud.normals, centres, atol=1e-5)  # outward, on a unit sphere
    expected = np.clip(0.5 + 0.28209479177387814 * table(columns, "f_dc_0", "f_dc_1", "f_dc_2")[:OPAQUE], 0, 1)
    np.testing.assert_allclose(cloud.colors, expected, atol=1e-6)
    assert cloud.colors.min() == 0 and cloud.colors.max() == 1
    assert cloud.faces is None and cloud.mesh is None and cloud.name == "splats.ply"


@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize("degree", [0, 1, 2, 3])
def test_nothing_of_the_file_is_lost(put, form, degree):
    columns = splat_columns(degree)
    splats = load(put(ply(columns, form))).splats
    assert len(splats) == COUNT
    assert_loses_nothing(splats.attributes, columns)
    np.testing.assert_array_equal(splats.surface, np.arange(OPAQUE))


def test_any_order_of_properties_with_others_among_them(put):
    columns = {name: column.astype(np.float64) for name, column in splat_columns().items()}
    columns = {"tag": np.arange(COUNT, dtype=np.uint32), **dict(reversed(columns.items()))}
    columns["red"] = np.full(COUNT, 7, np.uint8)
    columns = but(columns, "nx", np.nan)  # what is no part of a splat may be anything
    cloud = load(put(ply(columns)))
    assert_loses_nothing(cloud.splats.attributes, columns)
    np.testing.assert_array_equal(cloud.positions, table(columns, "x", "y", "z")[:OPAQUE])
    np.testing.assert_allclose(cloud.normals, cloud.positions, atol=1e-5)


def test_without_normals_in_the_file(put):
    columns = {name: column for name, column in splat_columns().items() if name not in ("nx", "ny", "nz")}
    assert load(put(ply(columns))).normals is not None


def test_the_threshold_of_opacity(put):
    columns = splat_columns()
    columns["opacity"] = np.linspace(-4, 4, COUNT, dtype=np.float32)[::-1].copy()
    path = put(ply(columns))
    opacities = 1 / (1 + np.exp(-columns["opacity"].astype(float)))
    np.testing.assert_allclose(load(path).splats.opacities, opacities, rtol=1e-12)
    for opacity in (0, 0.3, 0.5, 0.9):
        cloud = load(path, opacity=opacity)
        np.testing.assert_array_equal(cloud.splats.surface, np.flatnonzero(opacities >= opacity))
        np.testing.assert_array_equal(cloud.positions, cloud.splats.positions[cloud.splats.surface])


def test_exactly_at_the_threshold_is_on_the_surface(put):
    assert len(load(put(ply(but(splat_columns(), "opacity", 0.0))))) == COUNT


def test_converters_write_infinite_logits(put):
    columns = but(splat_columns(), "opacity", np.inf, slice(0, 200))
    columns = but(columns, "opacity", -np.inf, slice(200, None))
    cloud = load(put(ply(columns)), opacity=1)
    assert len(cloud) == 200
    np.testing.assert_array_equal(cloud.splats.opacities, np.repeat([1.0, 0.0], 200))


def test_sizes_are_not_judged(put):
    columns = but(splat_columns(), "scale_1", 1000.0, slice(0, 5))
    columns = but(columns, "scale_0", -1000.0, slice(0, 5))
    cloud = load(put(ply(columns)))
    assert len(cloud) == OPAQUE
    np.testing.assert_array_equal(cloud.splats.scales[:5, :2], np.tile([0, np.inf], (5, 1)))


def test_faces_beside_splats_are_left_out(put):
    more = "element face 1\nproperty list uchar int vertex_indices"
    face = b"\3" + np.array([0, 1, 2], "<i4").tobytes()
    assert load(put(ply(splat_columns(), more=more) + face)).faces is None


# --- the cloud's axes and units


@pytest.mark.parametrize("up", UPS)
@pytest.mark.parametrize("units", ["m", "cm"])
def test_units_and_axes_of_the_file(put, up, units):
    columns = splat_columns()
    plain = load(put(ply(columns)))
    cloud = load(put(ply(columns)), units=units, up=up)
    splats = cloud.splats
    assert splats.scale == UNITS[units]
    assert np.linalg.det(splats.rotation) == pytest.approx(1)
    np.testing.assert_array_equal(splats.rotation["xyz".index("y"), "xyz".index(up)], 1)
    np.testing.assert_array_equal(cloud.positions, splats.positions[:OPAQUE])
    np.testing.assert_allclose(cloud.positions, plain.positions @ splats.rotation.T * splats.scale, rtol=1e-12)
    np.testing.assert_allclose(cloud.normals, cloud.positions / splats.scale, atol=1e-5)
    np.testing.assert_allclose(splats.scales, np.exp(table(columns, "scale_0", "scale_1", "scale_2")) * splats.scale)
    file_turns = Rotation.from_quat(table(columns, "rot_1", "rot_2", "rot_3", "rot_0")).as_matrix()
    np.testing.assert_allclose(splats.rotations, splats.rotation @ file_turns, atol=1e-12)
    assert_loses_nothing(splats.attributes, columns)


def test_the_shortest_axis_is_the_normal(put):
    splats = load(put(ply(splat_columns())), up="z").splats
    shortest = splats.scales.argmin(axis=1)
    np.testing.assert_allclose(splats.normals, splats.rotations[np.arange(COUNT), :, shortest], atol=1e-6)
    np.testing.assert_allclose(np.abs((splats.normals * splats.positions).sum(axis=1)), 1, atol=1e-5)


@pytest.mark.parametrize("length", [1e-300, 1e-30, 1.0, 1e30, 1e300])
def test_quaternions_of_any_length(length):
    turns = Rotation.random(50, random_state=2)
    quaternions = np.roll(turns.as_quat(), 1, axis=1) * length
    np.testing.assert_allclose(rotation_matrices(quaternions), turns.as_matrix(), atol=1e-14)


# --- another number of points


def test_thinning_keeps_all_splats(put):
    columns = splat_columns()
    path = put(ply(columns))
    whole, thin = load(path), load(path, points=50)
    assert len(thin) == len(thin.normals) == len(thin.colors) == len(thin.splats.surface) == 50
    assert len(thin.splats) == COUNT and thin.splats.surface.max() < OPAQUE
    assert_loses_nothing(thin.splats.attributes, columns)
    np.testing.assert_array_equal(thin.positions, thin.splats.positions[thin.splats.surface])
    np.testing.assert_array_equal(thin.normals, whole.normals[thin.splats.surface])
    np.testing.assert_array_equal(thin.colors, thin.splats.colors[thin.splats.surface])


def test_more_points_than_opaque_splats_are_refused(put):
    with pytest.raises(PhyxelError, match=r"splats\.ply: points = 301, .* 300 points and no faces .* at most 300"):
        load(put(ply(splat_columns())), points=OPAQUE + 1)


# --- plain clouds


@pytest.mark.parametrize("names", [["opacity"], ["scale_0", "scale_1", "scale_2"]])
def test_one_such_property_does_not_make_a_cloud_splats(put, names):
    columns = splat_columns()
    cloud = load(put(ply({name: columns[name] for name in ["x", "y", "z", *names]})))
    assert cloud.splats is None and len(cloud) == COUNT


def test_opacity_is_for_splats(put):
    columns = splat_columns()
    path = put(ply({name: columns[name] for name in "xyz"}), "plain.ply")
    with pytest.raises(PhyxelError, match=r"plain\.ply: opacity = 0\.3 is for Gaussian splats, .* leave it out"):
        load(path, opacity=0.3)
    with pytest.raises(PhyxelError, match=r'"bear" is built in, .* opacity are for files'):
        load("bear", opacity=0.3)


@pytest.mark.parametrize("opacity", [-0.1, 1.1, np.nan, np.inf, "half", None])
def test_opacities_that_are_none(put, opacity):
    with pytest.raises(PhyxelError, match=rf"opacity = {opacity}: expected a number in 0\.\.1"):
        load(put(ply(splat_columns())), opacity=opacity)


# --- files that are refused


@pytest.mark.parametrize(
    "missing", ["x", "rot_3", "opacity", "f_dc_1", "scale_0 scale_1 scale_2", "f_dc_0 f_dc_1 f_dc_2", "scale_2 opacity"]
)
def test_missing_properties_are_named(put, missing):
    columns = {name: column for name, column in splat_columns().items() if name not in missing.split()}
    listed = ", ".join(sorted(missing.split(), key=list(splat_columns()).index))
    with pytest.raises(LoadError, match=rf"splats\.ply: these are Gaussian splats, but without {listed}; export"):
        load(put(ply(columns)))


@pytest.mark.parametrize("count", [1, 8, 10, 44, 72])
def test_f_rest_of_no_degree(put, count):
    columns = splat_columns(0) | {f"f_rest_{k}": np.zeros(COUNT, np.float32) for k in range(count)}
    with pytest.raises(LoadError, match=rf"splats\.ply: {count} properties f_rest_\*; .* 0, 9, 24, 45: export"):
        load(put(ply(columns)))


def test_f_rest_with_a_gap(put):
    columns = splat_columns(1)
    columns["f_rest_9"] = columns.pop("f_rest_4")
    with pytest.raises(LoadError, match=r"splats\.ply: 9 properties f_rest_\*, but no f_rest_4"):
        load(put(ply(columns)))


@pytest.mark.parametrize("listed", ["rot_0", "opacity", "f_rest_3", "tags"])
def test_list_properties(put, listed):
    names = [name for name in splat_columns() if name != listed]
    header = ["ply", "format ascii 1.0", "element vertex 2", *(f"property float {name}" for name in names)]
    header += [f"property list uchar float {listed}", "end_header"]
    row = " ".join(["1"] * len(names)) + " 1 0.5"
    with pytest.raises(LoadError, match=rf"splats\.ply: {listed} is a list; .* one number"):
        load(put("\n".join([*header, row, row, ""]).encode()))


@pytest.mark.parametrize("name", ["opacity", "rot_2", "f_rest_0"])
def test_quantised_properties(put, name):
    columns = splat_columns() | {name: np.full(COUNT, 128, np.uint8)}
    with pytest.raises(LoadError, match=rf"splats\.ply: {name} has type uint8; quantised splats are not read: export"):
        load(put(ply(columns)))


@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize(
    ("name", "value"),
    [("y", np.nan), ("f_dc_2", np.inf), ("f_rest_7", np.nan), ("scale_1", -np.inf), ("rot_0", np.nan)],
)
def test_values_that_are_not_finite(put, form, name, value):
    columns = but(splat_columns(), name, value, slice(0, 3))
    with pytest.raises(LoadError, match=rf"splats\.ply: not finite: {name} in 3, of 400 splats; remove"):
        load(put(ply(columns, form)))


def test_many_properties_that_are_not_finite(put):
    columns = splat_columns()
    for name in ("x", "y", "f_rest_1", "opacity", "rot_0"):
        columns = but(columns, name, np.nan, slice(-2, None))
    with pytest.raises(LoadError, match="not finite: x in 2, y in 2, opacity in 2 and 2 more properties, of 400"):
        load(put(ply(columns)))


def test_quaternions_that_are_all_zero(put):
    columns = splat_columns()
    for k in range(4):
        columns = but(columns, f"rot_{k}", 0.0, slice(10, 17))
    with pytest.raises(LoadError, match=r"splats\.ply: rot_0 to rot_3 are all zero, .* in 7 of 400 splats; remove"):
        load(put(ply(columns)))


def test_no_splat_is_opaque_enough(put):
    path = put(ply(but(splat_columns(), "opacity", np.log(0.31 / 0.69))))
    message = r"splats\.ply: none of its 400 splats .* 0\.5 or more, .* the highest is 0\.31; pass opacity=0\.2"
    with pytest.raises(LoadError, match=message):
        load(path)
    assert len(load(path, opacity=0.2)) == COUNT


def test_too_few_splats_are_opaque_enough(put):
    columns = but(but(splat_columns(), "opacity", -5.0), "opacity", 5.0, slice(0, 3))
    path = put(ply(columns))
    message = r"3 of its 400 splats .* at least 4; the highest is 0\.99; pass opacity=0\.004"
    with pytest.raises(LoadError, match=message):
        load(path)
    assert len(load(path, opacity=0.004)) == COUNT


@pytest.mark.parametrize("count", [0, 1, 3])
def test_hardly_any_splats(put, count):
    columns = {name: column[:count] for name, column in splat_columns().items()}
    with pytest.raises(LoadError, match=r"splats\.ply: (no|\d) points; a surface needs at least 4"):
        load(put(ply(columns)))


@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize("part", [0.02, 0.3, 0.7, 0.99])
def test_files_that_are_cut_off(put, form, part):
    data = ply(splat_columns(), form)
    with pytest.raises(LoadError, match=r"splats\.ply: .* cut off"):
        load(put(data[: int(part * len(data))]))


@pytest.mark.parametrize("suffix", [".splat", ".ksplat", ".spz", ".sog", ".SPLAT"])
def test_compressed_files(put, suffix):
    with pytest.raises(LoadError, match=rf'scene\{suffix}: "\{suffix.lower()}" files .* not read; export standard PLY'):
        load(put(b"\0" * 64, "scene" + suffix))


def test_compressed_ply(put):
    packed = ("packed_position", "packed_rotation", "packed_scale", "packed_color")
    columns = {name: np.zeros(COUNT, np.uint32) for name in packed}
    message = r"scene\.compressed\.ply: .* compressed \(packed_position\), which is not read; export standard PLY"
    with pytest.raises(LoadError, match=message):
        load(put(ply(columns), "scene.compressed.ply"))


# --- scenes, and large files


def test_a_scene_says_which_splats_count(put, tmp_path):
    columns = splat_columns()
    columns["opacity"] = np.linspace(-4, 4, COUNT, dtype=np.float32)
    put(ply(columns))
    assert len(BodyPart(file="splats.ply").cloud(tmp_path)) == COUNT / 2
    assert len(BodyPart(file="splats.ply", opacity=0.9).cloud(tmp_path)) < COUNT / 3
    with pytest.raises(SceneError, match=r"body\[0\]\.opacity = 1\.5"):
        Scene.parse('[[body]]\nfile = "splats.ply"\nopacity = 1.5\n', folder=tmp_path)


def test_a_large_file_takes_little_more_memory_than_its_size(put):
    columns = {name: np.tile(column, 200) for name, column in splat_columns(degree=3).items()}
    # Mostly clear, as the outskirts of a captured place are: what is measured is the splats, not the cloud.
    columns = but(columns, "opacity", -3.0, slice(COUNT, None))
    data = ply(columns)
    path, size = put(data), len(data)
    del data
    tracemalloc.start()
    try:
        cloud = load(path)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert len(cloud) == OPAQUE and len(cloud.splats) == 200 * COUNT
    assert peak < 3 * size


@pytest.mark.parametrize("piece", [1, 7, 1000])
def test_a_long_text_is_read_in_pieces(put, monkeypatch, piece):
    columns = splat_columns()
    monkeypatch.setattr("phyxel.points.ply.TEXT_PIECE", piece)
    assert_loses_nothing(load(put(ply(columns, "ascii"))).splats.attributes, columns)
