"""Surfels as files: binary PLY with positions, normals, colours; and VTK's XML PolyData for ParaView, a file for each
frame and an index with the times. Each has a number by which it is found again in other frames."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any
from xml.sax.saxutils import quoteattr

import numpy as np
from numpy.typing import NDArray

from phyxel.body import Body
from phyxel.errors import PhyxelError
from phyxel.export.follow import at_surfels
from phyxel.files import check_suffix, whole_file
from phyxel.world import Frame

VERTEX = np.dtype(
    [(name, "<f4") for name in ("x", "y", "z", "nx", "ny", "nz")] + [(name, "u1") for name in ("red", "green", "blue")]
)
"""A row of a mesh's file: position [m], normal, colour."""
POINT = np.dtype([*VERTEX.descr, ("id", "<i4"), ("body", "<i4")])
"""A row of a file of points: its number, too, which no other of its body has, and that of the body in the frame."""
PLY_TYPES = {
    "f4": "float", "f8": "double", "i1": "char", "u1": "uchar",
    "i2": "short", "u2": "ushort", "i4": "int", "u4": "uint",
}  # fmt: skip
"""By NumPy's kind and bytes."""
HEADER = '<?xml version="1.0"?>\n<VTKFile type="{}" version="1.0" byte_order="LittleEndian" header_type="UInt64">\n'
TYPES = {"f4": "Float32", "f8": "Float64", "u1": "UInt8", "i4": "Int32", "i8": "Int64"}


def ply(thing: Frame | Body, path: str | os.PathLike[str]) -> None:
    """Write the surfels of a frame's bodies, or of one body (`thing`), as they are now, to `path`. Positions in metres,
    y up. `id` is the same in all frames, `body` the number of the body in the frame.

    >>> world = px.gallery("demo").changed(nodes=64, points=500).world()
    >>> px.export.ply(next(world.play(seconds=1)), "0000.ply")
    >>> len(px.load("0000.ply"))
    500
    """
    points = np.concatenate([surfel_rows(body, k) for k, body in enumerate(bodies_of(thing))])
    with whole_file(path) as file:
        file.write(ply_header([("vertex", len(points), columns_of(POINT))]))
        file.write(points.tobytes())


def bodies_of(thing: Frame | Body) -> Sequence[Body]:
    """The bodies of a frame, or one body."""
    bodies: Sequence[Body] | None = [thing] if isinstance(thing, Body) else getattr(thing, "bodies", None)
    if bodies is None:
        raise PhyxelError(f"export: {thing!r}: give a frame of world.play, or one body")
    return bodies


def surfel_rows(body: Body, number: int) -> NDArray[Any]:
    """The surfels of a body with this number in the frame as rows of a PLY file."""
    tracked = body.surface.tracked
    rows = vertex_rows(tracked.positions, tracked.normals, tracked.colors, POINT)
    rows["id"], rows["body"] = body.surface.ids, number
    return rows


def vertex_rows(
    positions: NDArray[np.floating],
    normals: NDArray[np.floating],
    colors: NDArray[np.floating],
    kind: np.dtype[Any] = VERTEX,
) -> NDArray[Any]:
    """Rows of a PLY file, with these columns filled in, each (m, 3)."""
    rows = np.empty(len(positions), kind)
    rows["x"], rows["y"], rows["z"] = positions.T
    rows["nx"], rows["ny"], rows["nz"] = normals.T
    rows["red"], rows["green"], rows["blue"] = byte_colors(colors).T
    return rows


def byte_colors(colors: NDArray[np.floating]) -> NDArray[np.uint8]:
    """Colours in 0..1 as 0..255."""
    return np.round(255 * np.clip(colors, 0, 1)).astype(np.uint8)


def columns_of(rows: np.dtype[Any]) -> list[str]:
    """PLY property lines of a row type."""
    return [f"property {PLY_TYPES[rows[name].str[1:]]} {name}" for name in rows.names or ()]


def ply_header(elements: Sequence[tuple[str, int, Sequence[str]]]) -> bytes:
    """Header of a binary little-endian PLY with these elements: name, count, property lines."""
    lines = ["ply", "format binary_little_endian 1.0", "comment written by phyxel, metres, y up"]
    for name, count, properties in elements:
        lines += [f"element {name} {count}", *properties]
    return ("\n".join([*lines, "end_header"]) + "\n").encode()


def vtk(thing: Frame | Body, path: str | os.PathLike[str]) -> None:
    """Write the surfels of a frame's bodies, or of one body (`thing`), to `path` (.vtp): vertices [m] with `normals`,
    `colors`, `velocity` [m/s], `id`, the same in all frames, and `body`, the number of the body in the frame. A frame
    says its time [s].

    >>> world = px.gallery("demo").changed(nodes=64, points=500).world()
    >>> px.export.vtk(next(world.play(seconds=1)), "0000.vtp")
    """
    check_suffix(path, [".vtp"])
    bodies = bodies_of(thing)
    surfels = [body.surface.tracked for body in bodies]
    data = _Appended()
    count = sum(map(len, surfels))

    def of_all(columns: list[NDArray], kind: str) -> NDArray:
        return np.concatenate(columns).astype(kind)

    numbers = [np.full(len(one), k) for k, one in enumerate(surfels)]
    lines = ["<PolyData>"]
    if isinstance(thing, Frame):
        time = data.array("TimeValue", np.array([thing.time], "<f8"), "NumberOfTuples")
        lines += ["<FieldData>", time, "</FieldData>"]
    lines += [
        f'<Piece NumberOfPoints="{count}" NumberOfVerts="{count}" NumberOfLines="0" NumberOfStrips="0" '
        'NumberOfPolys="0">',
        '<PointData Scalars="colors" Vectors="velocity" Normals="normals">',
        data.array("normals", of_all([one.normals for one in surfels], "<f4")),
        data.array("colors", of_all([byte_colors(one.colors) for one in surfels], "u1")),
        data.array("velocity", of_all([at_surfels(body, body.velocities) for body in bodies], "<f4")),
        data.array("id", of_all([body.surface.ids for body in bodies], "<i8")),
        data.array("body", of_all(numbers, "<i4")),
        "</PointData>",
        "<Points>",
        data.array("Points", of_all([one.positions for one in surfels], "<f4")),
        "</Points>",
        "<Verts>",
        data.array("connectivity", np.arange(count, dtype="<i4")),
        data.array("offsets", np.arange(1, count + 1, dtype="<i4")),
        "</Verts>",
        "</Piece>",
        "</PolyData>",
    ]
    with whole_file(path) as file:
        file.write((HEADER.format("PolyData") + "\n".join(lines) + '\n<AppendedData encoding="raw">\n_').encode())
        for block in data.blocks:
            file.write(block)
        file.write(b"\n</AppendedData>\n</VTKFile>\n")


class _Appended:
    """Arrays that stand after the XML, each after its length in bytes."""

    def __init__(self) -> None:
        self.blocks: list[bytes] = []
        self._offset = 0

    def array(self, name: str, values: NDArray, count_as: str | None = None) -> str:
        """Append an array (n,) or (n, k); the XML that names it."""
        content = np.ascontiguousarray(values).tobytes()
        self.blocks.append(np.array(len(content), "<u8").tobytes() + content)
        offset, self._offset = self._offset, self._offset + 8 + len(content)
        shape = f'{count_as}="{len(values)}" ' if count_as else ""
        shape += f'NumberOfComponents="{values.shape[1]}" ' if values.ndim == 2 else ""
        kind = TYPES[values.dtype.str[1:]]
        return f'<DataArray type="{kind}" Name="{name}" {shape}format="appended" offset="{offset}"/>'


def vtk_series(files: Mapping[float, str | os.PathLike[str]], path: str | os.PathLike[str]) -> None:
    """Write a .pvd index of .vtp `files`, by their time [s], to `path`: one thing that moves, for ParaView.

    >>> px.export.vtk_series({0.0: "frames/0000.vtp", 0.5: "frames/0001.vtp"}, "points.pvd")
    """
    folder = Path(path).absolute().parent
    lines = ["<Collection>"]
    for time, file in files.items():
        name = Path(os.path.relpath(Path(file).absolute(), folder)).as_posix()
        lines.append(f'<DataSet timestep="{time:.9g}" part="0" file={quoteattr(name)}/>')
    with whole_file(path) as out:
        out.write((HEADER.format("Collection") + "\n".join([*lines, "</Collection>", "</VTKFile>", ""])).encode())
