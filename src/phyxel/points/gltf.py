"""Meshes and points of glTF files: `.glb`, or `.gltf` with the files it names. Always y up and in metres.

All meshes of the scene are taken where its nodes put them, at rest. Colours are those of the vertices times that of the
material, or the picture of its base colour; other properties of materials, skins and animations are left out.
"""

from __future__ import annotations

import base64
import json
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import unquote

import numpy as np
from numpy.typing import NDArray

from phyxel.errors import LoadError
from phyxel.points.cloud import Floats, Indices, PointCloud
from phyxel.points.meshfiles import checked_indices, fan, strip_triangles
from phyxel.points.ply import CUT_OFF, Ragged, file_bytes
from phyxel.points.reading import Reading
from phyxel.points.splats import rotation_matrices
from phyxel.points.texture import Picture, Texture, display_colors, light_of, read_picture

MAGIC, JSON_CHUNK, BINARY_CHUNK = b"glTF", b"JSON", b"BIN\0"
COMPONENTS = {5120: "i1", 5121: "u1", 5122: "i2", 5123: "u2", 5125: "u4", 5126: "f4"}
WIDTHS = {"SCALAR": 1, "VEC2": 2, "VEC3": 3, "VEC4": 4, "MAT2": 4, "MAT3": 9, "MAT4": 16}
POINTS, TRIANGLES, STRIP, FAN = 0, 4, 5, 6
"""modes of primitives that are read; the others are lines"""
DEEPEST = 200
"""Nodes below each other; more are a ring."""


class _Piece(NamedTuple):
    """A primitive, where its node puts it."""

    positions: Floats
    normals: Floats | None
    colors: Floats | None
    """linear"""
    faces: Indices
    uv: Floats
    """zeros if it has none"""
    picture: int | None
    """which image paints it"""
    factor: Floats
    """that its colours are multiplied by, linear, shape (3,)"""


def gltf_cloud(path: Path) -> PointCloud:
    """All meshes of the scene as one."""
    try:
        return _cloud(_Document(path))
    except (KeyError, IndexError, TypeError, AttributeError, ValueError, struct.error) as error:
        raise LoadError(f"{path.name}: not a sound glTF file ({error!r}); export it again") from error


def _cloud(document: _Document) -> PointCloud:
    name = document.path.name
    pieces = list(document.pieces())
    if not pieces:
        raise LoadError(f"{name}: its scene has no meshes and no points; export it again with the object in it")
    first = np.cumsum([0] + [len(piece.positions) for piece in pieces])
    faces = np.concatenate([piece.faces + start for piece, start in zip(pieces, first, strict=False)])
    normals = [piece.normals for piece in pieces if piece.normals is not None]
    texture, missing = _texture(document, pieces)
    indices = faces.astype(np.int32) if len(faces) else None
    return PointCloud(
        np.concatenate([piece.positions for piece in pieces]),
        normals=np.concatenate(normals) if len(normals) == len(pieces) else None,
        colors=_colors(pieces),
        faces=indices,
        uv=None if texture is None else np.concatenate([piece.uv for piece in pieces]).astype(np.float32),
        uv_faces=None if texture is None else indices,
        name=name,
        texture=texture,
        reading=Reading(units_by="glTF", up_by="glTF", missing=missing),
    )


def _colors(pieces: list[_Piece]) -> Floats | None:
    """Display colours of all vertices; None if they are all white."""
    parts = [
        piece.factor * (np.ones((len(piece.positions), 3)) if piece.colors is None else piece.colors)
        for piece in pieces
    ]
    colors = np.concatenate(parts)
    return None if (colors == 1).all() else display_colors(colors).astype(np.float32)


def _texture(document: _Document, pieces: list[_Piece]) -> tuple[Texture | None, tuple[str, ...]]:
    """What the faces are painted with, and sentences on pictures that cannot be read."""
    pictures: list[Picture] = []
    of_face, missing = [], []
    for piece in pieces:
        picture = None if piece.picture is None else document.picture(piece.picture)
        if piece.picture is not None and picture is None:
            missing.append(f"its texture {piece.picture} cannot be read: export it with pictures as PNG or JPEG")
        of_face.append(np.full(len(piece.faces), -1 if picture is None else len(pictures), np.int32))
        if picture is not None:
            tinted = display_colors(piece.factor * light_of(np.arange(256)[:, None] / 255))
            table = np.round(255 * tinted).astype(np.uint8)
            pictures.append(np.stack([table[picture[:, :, c], c] for c in range(3)], axis=2))
    texture = Texture(pictures, np.concatenate(of_face)) if pictures else None
    return texture, tuple(dict.fromkeys(missing))


class _Document:
    """A glTF file and the binary data it names."""

    def __init__(self, path: Path) -> None:
        self.path = path
        data = file_bytes(path)
        self._binary = b""
        if data[:4] == MAGIC:
            data, self._binary = _chunks(data, path.name)
        try:
            self._json: dict[str, Any] = json.loads(data)
        except ValueError as error:
            raise LoadError(f"{path.name}: not a glTF file: its JSON cannot be read; {CUT_OFF}") from error
        packed = [word for word in self._json.get("extensionsRequired", []) if "compression" in word]
        if packed:
            raise LoadError(f"{path.name}: its meshes are packed ({packed[0]}), which is not read; export it without")
        self._buffers: dict[int, bytes] = {}

    def pieces(self) -> Iterator[_Piece]:
        """The primitives of the scene, where its nodes put them."""
        nodes = self._json.get("nodes", [])
        scenes = self._json.get("scenes", [])
        roots = scenes[self._json.get("scene", 0)].get("nodes", []) if scenes else range(len(nodes))
        waiting = [(root, np.eye(4), 0) for root in reversed(roots)]
        while waiting:
            number, above, depth = waiting.pop()
            node = nodes[number]
            place = above @ _placement(node)
            if depth > DEEPEST:
                raise ValueError("nodes in a ring")
            waiting += [(child, place, depth + 1) for child in reversed(node.get("children", []))]
            if "mesh" in node:
                for primitive in self._json["meshes"][node["mesh"]]["primitives"]:
                    if primitive.get("mode", TRIANGLES) in (POINTS, TRIANGLES, STRIP, FAN):
                        yield self._piece(primitive, place)

    def _piece(self, primitive: dict[str, Any], place: Floats) -> _Piece:
        attributes = primitive["attributes"]
        x = self._accessor(attributes["POSITION"])
        faces = self._faces(primitive, len(x))
        turn = place[:3, :3]
        if np.linalg.det(turn) < 0:
            faces = faces[:, ::-1]
        normals = None
        if "NORMAL" in attributes and np.linalg.det(turn) != 0:
            normals = self._accessor(attributes["NORMAL"]) @ np.linalg.inv(turn)
        colors = self._accessor(attributes["COLOR_0"])[:, :3] if "COLOR_0" in attributes else None
        factor, picture, coordinates = self._finish(primitive)
        uv = np.zeros((len(x), 2))
        if coordinates in attributes:
            uv = self._accessor(attributes[coordinates]) * [1, -1] + [0, 1]  # v counts from above here
        else:
            picture = None
        return _Piece(x @ turn.T + place[:3, 3], normals, colors, faces, uv, picture, factor)

    def _finish(self, primitive: dict[str, Any]) -> tuple[Floats, int | None, str]:
        """Colour, image and the name of texture coordinates of its material."""
        if "material" not in primitive:
            return np.ones(3), None, ""
        surface = self._json["materials"][primitive["material"]].get("pbrMetallicRoughness", {})
        factor = np.array(surface.get("baseColorFactor", [1, 1, 1, 1])[:3], np.float64)
        painted = surface.get("baseColorTexture")
        if painted is None:
            return factor, None, ""
        image = self._json["textures"][painted["index"]].get("source", -1)
        return factor, image, f"TEXCOORD_{painted.get('texCoord', 0)}"

    def _faces(self, primitive: dict[str, Any], points: int) -> NDArray[np.int64]:
        mode = primitive.get("mode", TRIANGLES)
        if mode == POINTS:
            return np.empty((0, 3), np.int64)
        chain = np.arange(points)
        if "indices" in primitive:
            chain = self._accessor(primitive["indices"])[:, 0].astype(np.int64)
        if mode == TRIANGLES:
            triangles = chain[: len(chain) // 3 * 3].reshape(-1, 3)
        elif mode == STRIP:
            triangles = strip_triangles(Ragged(chain, np.array([len(chain)])))
        else:
            triangles = chain[fan(np.array([len(chain)]))]
        return checked_indices(triangles, points, "a face names vertex", self.path.name).astype(np.int64)

    def _accessor(self, number: int) -> Floats:
        """Values as floats, (count, width); whole numbers that stand for 0..1 or −1..1 as these."""
        accessor = self._json["accessors"][number]
        dtype = np.dtype("<" + COMPONENTS[accessor["componentType"]])
        count, width = accessor["count"], WIDTHS[accessor["type"]]
        values = np.zeros((count, width), dtype)
        if "bufferView" in accessor:
            values = self._values(accessor["bufferView"], accessor.get("byteOffset", 0), count, width, dtype)
        if "sparse" in accessor:
            values = self._with_some(values, accessor["sparse"])
        if accessor.get("normalized"):
            return np.maximum(values / np.iinfo(dtype).max, -1.0)
        return values.astype(np.float64)

    def _with_some(self, values: NDArray, sparse: dict[str, Any]) -> NDArray:
        """The values with some of them replaced."""
        count, where, what = sparse["count"], sparse["indices"], sparse["values"]
        kind = np.dtype("<" + COMPONENTS[where["componentType"]])
        rows = self._values(where["bufferView"], where.get("byteOffset", 0), count, 1, kind)[:, 0]
        values = values.copy()
        values[rows] = self._values(what["bufferView"], what.get("byteOffset", 0), count, values.shape[1], values.dtype)
        return values

    def _values(self, view: int, offset: int, count: int, width: int, dtype: np.dtype) -> NDArray:
        data, stride = self._view(view)
        row = width * dtype.itemsize
        stride = stride or row
        if count and offset + (count - 1) * stride + row > len(data):
            raise LoadError(f"{self.path.name}: {count} rows of {row} bytes are promised beyond its data; {CUT_OFF}")
        return np.ndarray((count, width), dtype, data, offset, (stride, dtype.itemsize))

    def _view(self, number: int) -> tuple[bytes, int]:
        """The bytes of a part of a buffer, and from row to row, 0 if they follow each other."""
        view = self._json["bufferViews"][number]
        start = view.get("byteOffset", 0)
        return self._buffer(view["buffer"])[start : start + view["byteLength"]], view.get("byteStride", 0)

    def _buffer(self, number: int) -> bytes:
        if number not in self._buffers:
            uri = self._json["buffers"][number].get("uri")
            self._buffers[number] = self._binary if uri is None else self._named(uri)
        return self._buffers[number]

    def _named(self, uri: str) -> bytes:
        """Data written into an address, or in a file beside this one."""
        if uri.startswith("data:"):
            return base64.b64decode(uri.partition(",")[2])
        return file_bytes(self.path.parent / unquote(uri))

    def picture(self, number: int) -> Picture | None:
        """An image, if it can be read."""
        if not 0 <= number < len(self._json.get("images", [])):
            return None
        image = self._json["images"][number]
        try:
            data = self._view(image["bufferView"])[0] if "bufferView" in image else self._named(image["uri"])
        except LoadError:
            return None
        return read_picture(data)


def _chunks(data: bytes, name: str) -> tuple[bytes, bytes]:
    """JSON and binary data of a `.glb` file."""
    version, length = struct.unpack_from("<II", data, 4)
    if version != 2:
        raise LoadError(f"{name}: glTF {version}, and glTF 2 is read; export it again")
    if length > len(data):
        raise LoadError(f"{name}: {length} bytes are promised, {len(data)} are there; {CUT_OFF}")
    found = {JSON_CHUNK: b"", BINARY_CHUNK: b""}
    start = 12
    while start + 8 <= length:
        size, kind = struct.unpack_from("<I4s", data, start)
        found.setdefault(kind, b"")
        found[kind] = found[kind] or data[start + 8 : start + 8 + size]
        start += 8 + size
    return found[JSON_CHUNK], found[BINARY_CHUNK]


def _placement(node: dict[str, Any]) -> Floats:
    """From a node to the one above it, 4 × 4."""
    if "matrix" in node:
        return np.array(node["matrix"], np.float64).reshape(4, 4).T
    place = np.eye(4)
    x, y, z, w = node.get("rotation", (0, 0, 0, 1))
    place[:3, :3] = rotation_matrices(np.array([[w, x, y, z]], np.float64))[0] * node.get("scale", (1, 1, 1))
    place[:3, 3] = node.get("translation", (0, 0, 0))
    return place
