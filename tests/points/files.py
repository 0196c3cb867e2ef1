"""Small files of meshes, and what their clouds must be."""

import struct
from pathlib import Path

import numpy as np
import pytest

from phyxel.errors import PhyxelError
from phyxel.points.cloud import PointCloud
from phyxel.points.load import load

CORNERS = np.array([[x, y, z] for x in (0, 1) for y in (0, 1) for z in (0, 1)], float)
"""of the unit cube; corner 4x + 2y + z"""
NORMALS = (CORNERS - 0.5) / 0.75**0.5
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
    assert cloud.faces is not None
    assert cloud.positions.dtype == np.float64
    assert cloud.faces.dtype == np.int32 and cloud.faces.shape == (12, 3)
    assert_closed_and_outward(cloud, volume_expected=1.0)


def assert_closed_and_outward(cloud: PointCloud, volume_expected: float) -> None:
    assert cloud.faces is not None and cloud.normals is not None and cloud.mesh is not None
    edges, directed = edge_counts(cloud.faces)
    assert (edges == 2).all() and (directed == 1).all()
    assert volume(cloud.positions, cloud.faces) == pytest.approx(volume_expected)
    np.testing.assert_allclose(np.linalg.norm(cloud.normals, axis=1), 1, atol=1e-6)
    assert cloud.normals.dtype == np.float32
    assert (np.einsum("ij,ij->i", cloud.normals, cloud.positions - cloud.positions.mean(axis=0)) > 0).all()
    np.testing.assert_array_equal(cloud.mesh.vertices, cloud.positions)
    np.testing.assert_array_equal(cloud.mesh.faces, cloud.faces)


def load_or_refuse(path: Path) -> None:
    try:
        cloud = load(path)
    except PhyxelError as error:
        assert path.name in str(error)
    else:
        assert len(cloud) >= 4 and np.isfinite(cloud.positions).all()


def rows_text(table: np.ndarray, separator: str = " ") -> str:
    return "".join(separator.join(f"{number:.6g}" for number in row) + "\n" for row in table)
