"""Meshes of glTF files, written here by hand: geometry, places, colours, pictures, and what is wrong with them."""

import base64
import io
import json
import struct
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from phyxel.errors import LoadError
from phyxel.points.load import load
from tests.solid.meshes import ball_mesh, box_mesh, square

FLOAT, USHORT, UINT, UBYTE = 5126, 5123, 5125, 5121
TYPES = {1: "SCALAR", 2: "VEC2", 3: "VEC3", 4: "VEC4"}


class Writer:
    """Collects arrays and pictures into one binary."""

    def __init__(self) -> None:
        self.binary = b""
        self.document: dict = {"asset": {"version": "2.0"}, "accessors": [], "bufferViews": []}

    def view(self, data: bytes, **more) -> int:
        self.binary += b"\0" * (-len(self.binary) % 4)
        self.document["bufferViews"].append(
            {"buffer": 0, "byteOffset": len(self.binary), "byteLength": len(data), **more}
        )
        self.binary += data
        return len(self.document["bufferViews"]) - 1

    def array(self, values, kind: int, **more) -> int:
        dtype = {FLOAT: "<f4", USHORT: "<u2", UINT: "<u4", UBYTE: "u1"}[kind]
        values = np.asarray(values).astype(dtype)
        width = 1 if values.ndim == 1 else values.shape[1]
        view = self.view(values.tobytes())
        accessor = {"bufferView": view, "componentType": kind, "count": len(values), "type": TYPES[width], **more}
        self.document["accessors"].append(accessor)
        return len(self.document["accessors"]) - 1

    def glb(self, path: Path) -> Path:
        self.document["buffers"] = [{"byteLength": len(self.binary)}]
        text = json.dumps(self.document).encode()
        text += b" " * (-len(text) % 4)
        binary = self.binary + b"\0" * (-len(self.binary) % 4)
        chunks = struct.pack("<I4s", len(text), b"JSON") + text + struct.pack("<I4s", len(binary), b"BIN\0") + binary
        path.write_bytes(b"glTF" + struct.pack("<II", 2, 12 + len(chunks)) + chunks)
        return path

    def gltf(self, path: Path, apart: bool) -> Path:
        uri = "data:application/octet-stream;base64," + base64.b64encode(self.binary).decode()
        if apart:
            (path.parent / "the data.bin").write_bytes(self.binary)
            uri = "the%20data.bin"
        self.document["buffers"] = [{"byteLength": len(self.binary), "uri": uri}]
        path.write_text(json.dumps(self.document))
        return path


def one_mesh(primitive: dict, node: dict | None = None) -> dict:
    return {"meshes": [{"primitives": [primitive]}], "nodes": [{"mesh": 0, **(node or {})}]}


def box_writer(**node) -> Writer:
    writer = Writer()
    vertices, faces = box_mesh(half=(0.2, 0.9, 0.1))
    attributes = {"POSITION": writer.array(vertices, FLOAT)}
    indices = writer.array(faces.ravel(), USHORT)
    writer.document |= one_mesh({"attributes": attributes, "indices": indices}, node)
    return writer


@pytest.mark.parametrize("kind", ["glb", "data", "apart"])
def test_a_mesh(tmp_path, kind):
    writer = box_writer()
    path = tmp_path / ("box.glb" if kind == "glb" else "box.gltf")
    cloud = load(writer.glb(path) if kind == "glb" else writer.gltf(path, kind == "apart"))
    vertices, faces = box_mesh(half=(0.2, 0.9, 0.1))
    np.testing.assert_allclose(cloud.positions, vertices, atol=1e-7)
    np.testing.assert_array_equal(cloud.faces, faces)
    assert cloud.colors is None and cloud.normals is not None
    assert (cloud.reading.units, cloud.reading.up, cloud.reading.up_by) == ("m", "y", "glTF")


def test_nodes_place_their_meshes(tmp_path):
    """Scaled, turned a quarter about z (x becomes y), moved; below another node, given as a matrix; a mirrored mesh
    keeps to look outward."""
    turn = [0, 0, np.sqrt(0.5), np.sqrt(0.5)]
    writer = box_writer(scale=[2, 1, -1], rotation=turn, translation=[10, 0, 0])
    above = np.diag([0.5, 0.5, 0.5, 1.0])
    above[:3, 3] = 1, 2, 3
    writer.document["nodes"].append({"children": [0], "matrix": above.T.ravel().tolist()})
    writer.document |= {"scenes": [{"nodes": [1]}], "scene": 0}
    cloud = load(writer.glb(tmp_path / "box.glb"))
    np.testing.assert_allclose(cloud.lower, [0.5 * (10 - 0.9) + 1, 0.5 * -0.4 + 2, 0.5 * -0.1 + 3], atol=1e-6)
    np.testing.assert_allclose(cloud.upper, [0.5 * (10 + 0.9) + 1, 0.5 * 0.4 + 2, 0.5 * 0.1 + 3], atol=1e-6)
    x = cloud.positions - cloud.positions.mean(axis=0)
    assert np.linalg.det(x[cloud.faces]).sum() > 0


@pytest.mark.parametrize("kind", [FLOAT, UBYTE, USHORT])
def test_colours_of_vertices_times_that_of_the_material(tmp_path, kind):
    """They are light, and clouds have display values: half the light is 0.735 of the display's white."""
    writer = Writer()
    vertices, faces = ball_mesh(rings=8)
    full = {FLOAT: 1, UBYTE: 255, USHORT: 65535}[kind]
    colors = np.tile([1.0, 1.0, 0.0, 1.0], (len(vertices), 1)) * full
    attributes = {
        "POSITION": writer.array(vertices, FLOAT),
        "NORMAL": writer.array(vertices, FLOAT),
        "COLOR_0": writer.array(colors, kind, **({} if kind == FLOAT else {"normalized": True})),
    }
    primitive = {"attributes": attributes, "indices": writer.array(faces.ravel(), UINT), "material": 0}
    writer.document |= one_mesh(primitive)
    writer.document["materials"] = [{"pbrMetallicRoughness": {"baseColorFactor": [0.5, 1, 1, 1]}}]
    cloud = load(writer.glb(tmp_path / "ball.glb"), points=1000)
    np.testing.assert_allclose(cloud.colors, np.tile([0.7354, 1, 0], (1000, 1)), atol=1e-3)
    np.testing.assert_allclose(cloud.normals[: len(vertices)], vertices, atol=1e-5)


@pytest.mark.parametrize("there", [True, False])
def test_a_picture_in_the_file(tmp_path, there):
    """Red to the right, green downward, as v counts from above; seen at added points, or told to be missing."""
    down, right = np.meshgrid(np.arange(256), np.arange(256), indexing="ij")
    data = io.BytesIO()
    Image.fromarray(np.stack([right, down, 0 * down], axis=2).astype(np.uint8)).save(data, "PNG")
    writer = Writer()
    vertices, faces = square(1.0)
    attributes = {
        "POSITION": writer.array(vertices, FLOAT),
        "TEXCOORD_0": writer.array(vertices[:, [0, 2]] + 0.5, FLOAT),
    }
    primitive = {"attributes": attributes, "indices": writer.array(faces.ravel(), UINT), "material": 0}
    writer.document |= one_mesh(primitive)
    writer.document |= {
        "materials": [{"pbrMetallicRoughness": {"baseColorTexture": {"index": 0}}}],
        "textures": [{"source": 0}],
        "images": [{"bufferView": writer.view(data.getvalue() if there else b"none")}],
    }
    cloud = load(writer.glb(tmp_path / "sheet.glb"), points=2000)
    if not there:
        assert "texture 0" in cloud.reading.missing[0] and cloud.colors is None
        return
    x = cloud.positions
    within = np.abs(x[:, [0, 2]]).max(axis=1) < 0.495
    expected = np.stack([x[:, 0] + 0.5, x[:, 2] + 0.5, 0 * x[:, 0]], axis=1)
    assert np.abs(cloud.colors - expected)[within].max() < 0.008


@pytest.mark.parametrize(("mode", "chain"), [(5, [0, 1, 2, 3]), (6, [0, 1, 3, 2])])
def test_strips_and_fans(tmp_path, mode, chain):
    writer = Writer()
    corners = np.array([[0, 0, 0], [0, 0, 1], [1, 0, 0], [1, 0, 1.0]])
    primitive = {"attributes": {"POSITION": writer.array(corners, FLOAT)}, "mode": mode}
    writer.document |= one_mesh(primitive | {"indices": writer.array(chain, UINT)})
    cloud = load(writer.glb(tmp_path / "patch.glb"))
    assert len(cloud.faces) == 2
    np.testing.assert_allclose(cloud.normals, np.tile([0, 1, 0], (4, 1)), atol=1e-6)


def test_points_alone(tmp_path):
    writer = Writer()
    vertices, _ = ball_mesh(rings=8)
    writer.document |= one_mesh({"attributes": {"POSITION": writer.array(vertices, FLOAT)}, "mode": 0})
    cloud = load(writer.glb(tmp_path / "points.glb"))
    assert len(cloud) == len(vertices) and cloud.faces is None


def test_what_is_wrong_is_named(tmp_path):
    writer = box_writer()
    whole = writer.glb(tmp_path / "box.glb").read_bytes()
    for k, cut in enumerate((3, 15, 200, len(whole) - 30)):
        path = tmp_path / f"cut{k}.glb"
        path.write_bytes(whole[:cut])
        with pytest.raises(LoadError, match=path.name):
            load(path)
    packed = box_writer()
    packed.document["extensionsRequired"] = ["KHR_draco_mesh_compression"]
    with pytest.raises(LoadError, match="draco"):
        load(packed.glb(tmp_path / "packed.glb"))
    for key, value in (
        ("meshes", []),
        ("nodes", []),
        ("accessors", []),
        ("bufferViews", [{}]),
        ("nodes", [{"children": [0]}]),
    ):
        bad = box_writer()
        bad.document[key] = value
        with pytest.raises(LoadError, match=r"bad\.glb"):
            load(bad.glb(tmp_path / "bad.glb"))
    empty = box_writer()
    empty.document["nodes"] = [{}]
    with pytest.raises(LoadError, match="no meshes"):
        load(empty.glb(tmp_path / "empty.glb"))
