"""Surfels as binary PLY: positions, normals, colours."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from phyxel.body import Body
from phyxel.errors import PhyxelError
from phyxel.files import whole_file
from phyxel.world import Frame

VERTEX = np.dtype(
    [(name, "<f4") for name in ("x", "y", "z", "nx", "ny", "nz")] + [(name, "u1") for name in ("red", "green", "blue")]
)
"""A row of the file: position [m], normal, colour."""
PLY_TYPES = {
    "f4": "float", "f8": "double", "i1": "char", "u1": "uchar",
    "i2": "short", "u2": "ushort", "i4": "int", "u4": "uint",
}  # fmt: skip
"""By NumPy's kind and bytes."""


def ply(thing: Frame | Body, path: str | os.PathLike[str]) -> None:
    """Write the surfels of a frame's bodies, or of one body, as they are now. Positions in metres, y up."""
    vertices = np.concatenate([surfel_rows(body) for body in bodies_of(thing)])
    with whole_file(path) as file:
        file.write(ply_header([("vertex", len(vertices), columns_of(VERTEX))]))
        file.write(vertices.tobytes())


def bodies_of(thing: Frame | Body) -> Sequence[Body]:
    """The bodies of a frame, or one body."""
    bodies: Sequence[Body] | None = [thing] if isinstance(thing, Body) else getattr(thing, "bodies", None)
    if bodies is None:
        raise PhyxelError(f"export: {thing!r}: give a frame of world.play, or one body")
    return bodies


def surfel_rows(body: Body) -> NDArray[Any]:
    """The surfels of a body as rows of a PLY file."""
    surface = body.surface
    rows = np.empty(len(surface), VERTEX)
    rows["x"], rows["y"], rows["z"] = surface.positions.T
    rows["nx"], rows["ny"], rows["nz"] = surface.normals.T
    rows["red"], rows["green"], rows["blue"] = byte_colors(surface.colors).T
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
