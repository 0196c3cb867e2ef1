"""VTK files, read back by a small reader that follows the file format's description."""

import xml.etree.ElementTree as ElementTree
from pathlib import Path

import numpy as np
import pytest

import phyxel as px

DTYPES = {"Float32": "<f4", "Float64": "<f8", "UInt8": "u1", "Int32": "<i4"}


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
    spun = px.Body(px.load("box", points=400), nodes=125, material=stiff, at=(3, 0, 0), spin=(0, 0, 0.1))
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
