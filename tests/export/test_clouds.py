"""Points for others: what is written comes back through `px.load` as it was; VTK files are read back by a small
reader that follows the file format's description."""

import xml.etree.ElementTree as ElementTree
from pathlib import Path

import numpy as np
import pytest

import phyxel as px
from tests.export.bodies import SOFT

DTYPES = {"Float32": "<f4", "Float64": "<f8", "UInt8": "u1", "Int32": "<i4", "Int64": "<i8"}


def test_points_come_back_as_they_were(bear, tmp_path):
    px.export.ply(bear, tmp_path / "bear.ply")
    back = px.load(tmp_path / "bear.ply")
    assert len(back) == 700
    assert np.array_equal(back.positions.astype(np.float32), np.asarray(bear.surface.positions, np.float32))
    assert np.abs(back.normals - bear.surface.normals).max() < 1e-5
    assert np.abs(np.linalg.norm(back.normals, axis=1) - 1).max() < 1e-5
    assert np.abs(back.colors - bear.surface.colors).max() <= 0.5001 / 255
    assert np.ptp(back.colors, axis=0).max() > 0.1, "the bear has colours"
    assert np.abs(back.positions - bear.cloud.positions).max() > 0.05, "it has moved"


def test_the_file_is_binary_ply_with_the_usual_names(bear, tmp_path):
    px.export.ply(bear, tmp_path / "bear.ply")
    header = (tmp_path / "bear.ply").read_bytes().split(b"end_header\n")[0].decode().splitlines()
    assert header[:2] == ["ply", "format binary_little_endian 1.0"]
    names = [line.split()[-1] for line in header if line.startswith("property")]
    assert names == ["x", "y", "z", "nx", "ny", "nz", "red", "green", "blue", "id", "body"]


def test_a_frame_holds_all_bodies(tmp_path):
    world = px.World()
    world.add(px.Body(px.load("sphere", points=300), nodes=60, material=SOFT, at=(-2, 0, 0), place="center"))
    world.add(px.Body(px.load("box", points=400), nodes=64, material=SOFT, at=(2, 0, 0), place="center"))
    for frame in world.play(seconds=0.04, fps=50):
        px.export.ply(frame, tmp_path / "new" / "folder" / f"{frame.index:04d}.ply")
    written = sorted((tmp_path / "new" / "folder").iterdir())
    assert [path.name for path in written] == ["0000.ply", "0001.ply", "0002.ply"]
    first, *_, last = (px.load(path) for path in written)
    assert len(first) == len(last) == 700
    assert (first.positions[:300, 0] < 0).all() and (first.positions[300:, 0] > 0).all()
    assert np.abs(last.positions - first.positions - [0, -0.5 * 9.81 * 0.04**2, 0]).max() < 1e-5


def test_normals_turn_with_the_body(tmp_path):
    body = px.Body(
        px.load("box", points=400), nodes=64, rotate=(0, 0, 30), spin=(0, 0, 1), material=SOFT.but(young=1e7)
    )
    world = px.World(gravity=(0, 0, 0))
    world.add(body)
    world.advance(0.5)
    px.export.ply(body, tmp_path / "box.ply")
    angle = np.deg2rad(30) + 0.5
    turn = np.array([[np.cos(angle), -np.sin(angle), 0], [np.sin(angle), np.cos(angle), 0], [0, 0, 1]])
    expected = px.load("box", points=400).normals @ turn.T
    assert np.abs(px.load(tmp_path / "box.ply").normals - expected).max() < 0.02


def test_a_ball_that_falls_keeps_its_outward_normals(tmp_path):
    body = px.Body(px.load("sphere", points=400), nodes=60, material=SOFT)
    world = px.World()
    world.add(body)
    world.advance(0.2)
    px.export.ply(body, tmp_path / "ball.ply")
    back = px.load(tmp_path / "ball.ply")
    outward = back.positions - back.positions.mean(axis=0)
    outward /= np.linalg.norm(outward, axis=1, keepdims=True)
    assert (outward * back.normals).sum(axis=1).min() > 0.99


def test_a_body_without_a_world_has_no_surface_to_write(tmp_path):
    body = px.Body(px.load("box", points=300), nodes=64)
    with pytest.raises(px.PhyxelError, match="world"):
        px.export.ply(body, tmp_path / "box.ply")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("write", [px.export.ply, px.export.mesh])
def test_what_cannot_be_written_says_so(write, cube, tmp_path):
    (tmp_path / "file").write_text("mine")
    with pytest.raises(px.PhyxelError, match="cannot be written"):
        write(cube, tmp_path / "file" / "out.ply")
    (tmp_path / "folder.ply").mkdir()
    with pytest.raises(px.PhyxelError, match="cannot be written"):
        write(cube, tmp_path / "folder.ply")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["file", "folder.ply"]
    assert (tmp_path / "file").read_text() == "mine"


def test_a_failed_write_leaves_the_old_file(bear, tmp_path, monkeypatch):
    path = tmp_path / "bear.ply"
    px.export.ply(bear, path)
    before = path.read_bytes()

    def full(*_args):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.replace", full)
    with pytest.raises(px.PhyxelError, match="space"):
        px.export.ply(bear, path)
    assert path.read_bytes() == before
    assert [one.name for one in tmp_path.iterdir()] == ["bear.ply"]


def read_vtp(path: Path) -> tuple[ElementTree.Element, dict[str, np.ndarray]]:
    """The XML without its data, and all arrays by name. Raw data stand after an underscore, each after its length."""
    content = path.read_bytes()
    before, _, after = content.partition(b'<AppendedData encoding="raw">')
    raw = after[after.index(b"_") + 1 : after.rindex(b"</AppendedData>")]
    root = ElementTree.fromstring(before + b"</VTKFile>")
    assert root.attrib["type"] == "PolyData" and root.attrib["byte_order"] == "LittleEndian"
    assert root.attrib["header_type"] == "UInt64"
    arrays, end = {}, 0
    for entry in root.iter("DataArray"):
        offset = int(entry.attrib["offset"])
        assert entry.attrib["format"] == "appended" and offset == end, "one after the other, without gaps"
        length = int(np.frombuffer(raw, "<u8", 1, offset)[0])
        end = offset + 8 + length
        values = np.frombuffer(raw[offset + 8 : end], DTYPES[entry.attrib["type"]])
        arrays[entry.attrib["Name"]] = values.reshape(-1, int(entry.attrib.get("NumberOfComponents", 1))).squeeze()
    assert raw[end:].strip() == b""
    return root, arrays


@pytest.fixture(scope="module")
def spinning() -> tuple[px.World, list[px.world.Frame]]:
    """Two stiff bodies that turn and fly, where every velocity is known."""
    world = px.World(gravity=(0, 0, 0))
    stiff = px.Material(young=1e7, poisson=0.3)
    world.add(px.Body(px.load("sphere", points=300), nodes=100, material=stiff, velocity=(1, 0, 0)))
    spun = px.Body(
        px.load("box", points=400), nodes=125, material=stiff, at=(3, 0, 0), place="center", spin=(0, 0, 0.1)
    )
    world.add(spun)
    return world, list(world.play(seconds=0.02, fps=100))


def test_points_come_back(spinning, tmp_path):
    world, frames = spinning
    px.export.vtk(frames[-1], tmp_path / "two.vtp")
    root, arrays = read_vtp(tmp_path / "two.vtp")
    piece = root.find("PolyData/Piece")
    assert piece.attrib["NumberOfPoints"] == piece.attrib["NumberOfVerts"] == "700"
    surfaces = [body.surface for body in world.bodies]
    joined = {
        "Points": np.concatenate([s.positions for s in surfaces]),
        "normals": np.concatenate([s.normals for s in surfaces]),
        "colors": np.round(255 * np.concatenate([s.colors for s in surfaces])),
    }
    for name, expected in joined.items():
        assert np.array_equal(arrays[name], expected.astype(arrays[name].dtype)), name
    assert np.array_equal(arrays["body"], [0] * 300 + [1] * 400)
    assert np.array_equal(arrays["id"], [*range(300), *range(400)])
    assert np.array_equal(arrays["connectivity"], np.arange(700))
    assert np.array_equal(arrays["offsets"], np.arange(1, 701))
    assert arrays["TimeValue"] == pytest.approx(0.02)
    places = {entry.attrib["Name"]: parent.tag for parent in root.iter() for entry in parent.findall("DataArray")}
    assert places["Points"] == "Points" and places["offsets"] == "Verts" and places["colors"] == "PointData"


def test_velocities_are_those_of_a_body_that_flies_and_turns(spinning, tmp_path):
    """v = ω × r out to the surface, though no node lies there; vibration at the start is some percent of it."""
    world, frames = spinning
    px.export.vtk(frames[-1], tmp_path / "two.vtp")
    arrays = read_vtp(tmp_path / "two.vtp")[1]
    assert np.abs(arrays["velocity"][:300] - [1, 0, 0]).max() < 1e-3
    arm = world.bodies[1].surface.positions - world.bodies[1].positions.mean(axis=0)
    assert np.abs(arrays["velocity"][300:] - np.cross([0, 0, 0.1], arm)).max() < 0.05 * 0.1 * np.abs(arm).max()


def test_one_body_has_no_time(spinning, tmp_path):
    px.export.vtk(spinning[0].bodies[0], tmp_path / "one.vtp")
    assert "TimeValue" not in read_vtp(tmp_path / "one.vtp")[1]


def test_an_index_gives_files_their_times(tmp_path):
    files = {k / 60: tmp_path / "a & b" / f"{k:04d}.vtp" for k in range(3)}
    px.export.vtk_series(files, tmp_path / "points.pvd")
    root = ElementTree.parse(tmp_path / "points.pvd").getroot()
    assert root.attrib["type"] == "Collection"
    entries = [entry.attrib for entry in root.findall("Collection/DataSet")]
    assert [entry["file"] for entry in entries] == [f"a & b/{k:04d}.vtp" for k in range(3)]
    assert [float(entry["timestep"]) for entry in entries] == pytest.approx([0, 1 / 60, 2 / 60], rel=1e-8)


def test_a_name_that_paraview_would_not_open_is_refused(tmp_path):
    world = px.World(device="cpu")
    ball = px.Body(px.load("sphere", points=100), nodes=20)
    world.add(ball)
    with pytest.raises(px.PhyxelError, match=r"ball.txt: give a name that ends in .vtp"):
        px.export.vtk(ball, tmp_path / "ball.txt")
    assert not list(tmp_path.iterdir())
