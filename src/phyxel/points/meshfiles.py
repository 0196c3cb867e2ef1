"""Point clouds as they stand in PLY, OBJ, STL and XYZ files: not yet in metres, turned, completed or checked."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from phyxel.errors import LoadError
from phyxel.points.cloud import Floats, Indices, PointCloud
from phyxel.points.ply import (
    CUT_OFF,
    Column,
    Ragged,
    file_bytes,
    is_number,
    numbers,
    positions_within,
    read_with_comments,
)
from phyxel.points.reading import comments_in, said_in
from phyxel.points.splats import has_splats, splats_of
from phyxel.points.texture import Texture, obj_texture, read_picture

UNIT_TOLERANCE = 1e-2
"""how far from 1 the length of a normal may be in a text file, where few digits are written"""


# --- PLY


def ply_cloud(path: Path) -> PointCloud:
    """Gaussian splats, or vertices with normals, colours and texture coordinates; faces and triangle strips."""
    content, comments = read_with_comments(path)
    reading = said_in(comments)
    vertex = content.get("vertex", {})
    if has_splats(vertex):
        splats = splats_of(vertex, path.name)  # all of them, opaque or not; their normals have either sign
        look = splats.normals, splats.colors
        return PointCloud(splats.positions, *look, name=path.name, splats=splats, reading=reading)
    positions = _columns(vertex, "x y z")
    if positions is None:
        found = ", ".join(vertex) or "no vertex element"
        raise LoadError(f"{path.name}: vertices need the properties x, y and z; found: {found}")
    colors = _columns(vertex, "red green blue", "diffuse_red diffuse_green diffuse_blue", "r g b")
    faces, quads, uv, uv_faces = _ply_faces(content, len(positions), path.name)
    vertex_uv = _columns(vertex, "s t", "u v", "texture_u texture_v")
    if uv is None and vertex_uv is not None and faces is not None:
        uv, uv_faces = vertex_uv.astype(np.float32), faces
    x, normals = positions.astype(np.float64), _columns(vertex, "nx ny nz")
    colors = None if colors is None else unit_colors(colors, path.name)
    texture = None
    if uv is not None and faces is not None:
        texture, missing = _ply_texture(path, comments, len(faces))
        reading = replace(reading, missing=missing)
    return PointCloud(x, normals, colors, faces, quads, uv, uv_faces, path.name, texture=texture, reading=reading)


def _ply_texture(path: Path, comments: Sequence[str], faces: int) -> tuple[Texture | None, tuple[str, ...]]:
    """The picture that a comment "TextureFile ..." names, as MeshLab writes it, and what could not be read."""
    named = [words[1] for comment in comments if (words := comment.split(maxsplit=1))[:1] == ["TextureFile"]]
    if len(named) != 1:
        some = (f"it has {len(named)} textures, and one is read: join them into one",) if named else ()
        return None, some
    picture = read_picture(path.parent / named[0].strip())
    if picture is None:
        return None, (f'its texture "{named[0]}" cannot be read: put the picture beside it',)
    return Texture([picture], np.zeros(faces, np.int32)), ()


def _columns(element: dict[str, Column], *name_sets: str) -> NDArray | None:
    """The first of the sets of properties that is there as a whole, as the columns of one array."""
    for names in name_sets:
        columns = [element.get(name) for name in names.split()]
        arrays = [column for column in columns if isinstance(column, np.ndarray)]
        if len(arrays) == len(columns):
            return np.stack(arrays, axis=1)
    return None


def _ply_faces(
    content: dict[str, dict[str, Column]], points: int, name: str
) -> tuple[Indices | None, Indices | None, Floats | None, Indices | None]:
    """Triangles of the `face` and `tristrips` elements, the quads if there is nothing else, and texture coordinates if
    the corners have their own."""
    parts = []
    quads = uv = uv_faces = None
    polygons = _index_lists(content.get("face", {}), name)
    if polygons is not None:
        corners = fan(polygons.counts)
        parts.append(polygons.values[corners])
        quads = quads_of(polygons.counts, polygons.values)
        uv = _corner_uv(content["face"], polygons.counts)
        uv_faces = None if uv is None else corners.astype(np.int32)
    strips = _index_lists(content.get("tristrips", {}), name)
    if strips is not None:
        parts.append(strip_triangles(strips))
        quads = uv = uv_faces = None
    triangles = np.concatenate([np.empty((0, 3), np.int64), *parts])
    if len(triangles) == 0:
        return None, None, None, None
    return checked_indices(triangles, points, "a face names vertex", name), quads, uv, uv_faces


def _index_lists(element: dict[str, Column], name: str) -> Ragged | None:
    for key in ("vertex_indices", "vertex_index"):
        lists = element.get(key)
        if isinstance(lists, Ragged):
            if lists.values.dtype.kind == "f":
                raise LoadError(f'{name}: "{key}" has type {lists.values.dtype}; expected an integer type such as int')
            return Ragged(lists.values.astype(np.int64), lists.counts)
    return None


def _corner_uv(face: dict[str, Column], counts: NDArray[np.int64]) -> Floats | None:
    """Texture coordinates of each corner of each polygon, as MeshLab writes them."""
    lists = face.get("texcoord")
    if isinstance(lists, Ragged) and np.array_equal(lists.counts, 2 * counts):
        return lists.values.reshape(-1, 2).astype(np.float32)
    return None


def strip_triangles(strips: Ragged) -> NDArray[np.int64]:
    """Triangles of strips that are separated by -1: every second one turns the other way, degenerate ones fall out."""
    row_ends = np.cumsum(strips.counts)[:-1]
    chain = np.insert(strips.values, row_ends, -1)
    if len(chain) < 3:
        return np.empty((0, 3), np.int64)
    position = np.arange(len(chain))
    strip_start = np.maximum.accumulate(np.where(chain == -1, position + 1, 0))
    odd = (position - strip_start)[:-2] % 2 == 1
    a, b, c = chain[:-2], chain[1:-1], chain[2:]
    triangles = np.stack([a, np.where(odd, c, b), np.where(odd, b, c)], axis=1)
    whole = (triangles != -1).all(axis=1)
    return triangles[whole & (a != b) & (b != c) & (c != a)]


# --- OBJ


def obj_cloud(path: Path) -> PointCloud:
    """Vertices in the file's own order, also where texture seams run: `uv_faces` has the corners' own indices."""
    data = file_bytes(path)
    lines = _ObjLines(data, path.name)
    vertices = lines.table("v", 3)
    faces, uv_faces, normal_faces, quads = lines.faces()
    colors = unit_colors(vertices[:, 3:6], path.name) if vertices.shape[1] >= 6 else None
    normals = _obj_normals(lines.table("vn", 3)[:, :3], faces, normal_faces, len(vertices))
    uv = None if uv_faces is None else lines.table("vt", 2)[:, :2].astype(np.float32)
    texture, missing = lines.texture(path.parent)
    reading = replace(said_in(comments_in(data)), missing=missing)
    x = vertices[:, :3]
    return PointCloud(x, normals, colors, faces, quads, uv, uv_faces, path.name, texture=texture, reading=reading)


class _ObjLines:
    """The lines of an OBJ file by their first word."""

    def __init__(self, data: bytes, name: str) -> None:
        self.name = name
        self._rows: dict[bytes, list[list[bytes]]] = {b"v": [], b"vt": [], b"vn": []}
        self._faces: list[list[bytes]] = []
        self._sizes_before: list[tuple[int, int, int]] = []
        self._libraries: list[str] = []
        self._materials: dict[str, int] = {}
        self._painted_with: list[int] = []
        current = -1
        v, vt, vn = self._rows.values()
        for line in data.replace(b"\\\r\n", b" ").replace(b"\\\n", b" ").splitlines():
            words = line.partition(b"#")[0].split()
            if not words:
                continue
            if words[0] in self._rows:
                self._rows[words[0]].append(words[1:])
            elif words[0] == b"f":
                self._faces.append(words[1:])
                self._sizes_before.append((len(v), len(vt), len(vn)))
                self._painted_with.append(current)
            elif words[0] == b"usemtl":
                current = self._materials.setdefault(_name(words), len(self._materials))
            elif words[0] == b"mtllib":
                self._libraries.append(_name(words))

    def texture(self, folder: Path) -> tuple[Texture | None, tuple[str, ...]]:
        """What its materials paint the triangles with, and what of it could not be read."""
        if not self._materials or not self._faces:
            return None, ()
        counts = np.array([len(face) for face in self._faces], np.int64)
        of_face = np.repeat(np.array(self._painted_with), np.maximum(counts - 2, 0))
        return obj_texture(folder, self._libraries, list(self._materials), of_face)

    def table(self, kind: str, columns: int) -> NDArray[np.float64]:
        """All lines of a kind, as wide as the shortest of them: (lines, at least `columns`)."""
        rows = self._rows[kind.encode()]
        if not rows:
            return np.empty((0, columns))
        width = min(map(len, rows))
        if width < columns:
            where = next(k for k, row in enumerate(rows) if len(row) == width)
            raise LoadError(
                f'{self.name}: "{kind}" line {where + 1} of {len(rows)} has {width} numbers, expected {columns}; '
                "the file is damaged or cut off"
            )
        words = [word for row in rows for word in row[:width]]
        return numbers(words, self.name).reshape(-1, width)

    def faces(self) -> tuple[Indices | None, Indices | None, Indices | None, Indices | None]:
        """Triangles as indices into v, vt and vn, None for what not every corner has; the quads if there is nothing
        else."""
        counts = np.array([len(face) for face in self._faces], np.int64)
        triangles = fan(counts)
        if len(triangles) == 0:
            return None, None, None, None
        found: list[Indices | None] = []
        quads = None
        written = self._corner_numbers()
        sizes_before = np.repeat(np.array(self._sizes_before), counts, axis=0)
        for k, kind in enumerate(("v", "vt", "vn")):
            number = written[:, k]
            if (number == 0).any():
                if kind == "v":
                    raise LoadError(f"{self.name}: a face names vertex 0; OBJ counts from 1: export it again")
                found.append(None)
                continue
            # Negative numbers count back from the last line of the kind before the face.
            index = np.where(number > 0, number - 1, number + sizes_before[:, k])
            size = len(self._rows[kind.encode()])
            found.append(checked_indices(index[triangles], size, f'a face names "{kind}"', self.name))
            if kind == "v":
                quads = quads_of(counts, index)
        return found[0], found[1], found[2], quads

    def _corner_numbers(self) -> NDArray[np.int64]:
        """The numbers v, vt, vn of every corner of every face as they are written, 0 for none: (corners, 3)."""
        corners = [corner for face in self._faces for corner in face]
        try:
            if not any(b"/" in corner for corner in corners):
                only_v = np.array(list(map(int, corners)), np.int64)
                return np.stack([only_v, 0 * only_v, 0 * only_v], axis=1)
            parts = [(corner + b"//").split(b"/") for corner in corners]
            return np.array([[int(p[0]), int(p[1] or 0), int(p[2] or 0)] for p in parts], np.int64)
        except (ValueError, OverflowError):
            bad = next(corner for corner in corners if not re.fullmatch(rb"-?\d{1,18}(/(-?\d{1,18})?){0,2}", corner))
            shown = bad[:40].decode("ascii", errors="replace")
            raise LoadError(
                f'{self.name}: a face has the corner "{shown}"; expected v, v/vt, v//vn or v/vt/vn'
            ) from None


def _name(words: list[bytes]) -> str:
    """What follows the first word of a line: names may have blanks in them."""
    return b" ".join(words[1:]).decode("utf-8", errors="replace")


def _obj_normals(normals: Floats, faces: Indices | None, normal_faces: Indices | None, points: int) -> Floats | None:
    """The mean of all normals that a vertex is mentioned with, if every vertex is; unnormalised, (points, 3)."""
    if faces is None:
        return normals if len(normals) == points else None
    if normal_faces is None or len(np.unique(faces)) < points:
        return None
    return sum_by_index(faces.ravel(), normals[normal_faces.ravel()], points)


# --- STL


def stl_cloud(path: Path) -> PointCloud:
    """Corners that agree exactly are one vertex."""
    data = file_bytes(path)
    corners = _stl_text(data, path.name) if _is_stl_text(data) else _stl_binary(data, path.name)
    if len(corners) == 0:
        return PointCloud(np.empty((0, 3)), name=path.name)
    # Adding 0 makes -0 and 0 the same corner.
    positions, index = np.unique(corners.astype(np.float64) + 0.0, axis=0, return_inverse=True)
    reading = said_in([data[:80].partition(b"\n")[0].decode("ascii", errors="replace")])
    return PointCloud(positions, faces=index.reshape(-1, 3).astype(np.int32), name=path.name, reading=reading)


def _is_stl_text(data: bytes) -> bool:
    # Many binary files begin with "solid" too, so the size decides first.
    if len(data) >= 84 and len(data) == 84 + 50 * int.from_bytes(data[80:84], "little"):
        return False
    start = data[:1000].lower().split()
    return start[:1] == [b"solid"] and (b"facet" in start or b"endsolid" in start)


def _stl_binary(data: bytes, name: str) -> NDArray:
    """(3 * triangles, 3) corners."""
    if len(data) < 84:
        raise LoadError(
            f"{name}: {len(data)} bytes are neither text STL nor the 84 bytes that begin binary STL; {CUT_OFF}"
        )
    count = int.from_bytes(data[80:84], "little")
    there = len(data) - 84
    if there < 50 * count:
        raise LoadError(
            f"{name}: {count} triangles need {50 * count} bytes, but {there} are there ({there // 50} triangles); "
            f"{CUT_OFF}"
        )
    record = np.dtype([("normal", "<f4", 3), ("corners", "<f4", (3, 3)), ("attribute", "<u2")])
    return np.frombuffer(data, record, count, 84)["corners"].reshape(-1, 3)


def _stl_text(data: bytes, name: str) -> NDArray:
    """(3 * triangles, 3) corners."""
    lower = data.lower()
    rows = re.findall(rb"\bvertex\s+(\S+)\s+(\S+)\s+(\S+)", lower)
    facets = len(re.findall(rb"\bfacet\s+normal\b", lower))
    if len(rows) != 3 * facets or b"endsolid" not in lower:
        raise LoadError(
            f'{name}: {facets} facets need {3 * facets} vertices and an "endsolid" line, '
            f"but {len(rows)} vertices are there; {CUT_OFF}"
        )
    return numbers([word for row in rows for word in row], name).reshape(-1, 3)


# --- XYZ


def xyz_cloud(path: Path) -> PointCloud:
    """Rows of x y z, then maybe a normal, a colour, or both; .pts also has an intensity, which is left out."""
    data = file_bytes(path)
    rows, promised = _xyz_rows(data)
    if len(rows) < promised:
        raise LoadError(f"{path.name}: the first line promises {promised:.0f} points, {len(rows)} are there; {CUT_OFF}")
    if not rows:
        return PointCloud(np.empty((0, 3)), name=path.name)
    table = _xyz_table(rows, path.name)
    if table.shape[1] in (4, 7):
        table = np.delete(table, 3, axis=1)
    normals, colors = _normals_and_colors(table[:, 3:], path.name)
    return PointCloud(table[:, :3], normals=normals, colors=colors, name=path.name, reading=said_in(comments_in(data)))


def _xyz_rows(data: bytes) -> tuple[list[list[bytes]], float]:
    """The words of every row of numbers, and the number of points a first line may promise (else 0)."""
    lines = (line.partition(b"#")[0].replace(b",", b" ").split() for line in data.splitlines())
    rows = [words for words in lines if words]
    if not rows:
        return rows, 0
    if len(rows[0]) == 1 and rows[0][0].isdigit():
        return rows[1:], float(rows[0][0])
    is_header = not all(map(is_number, rows[0]))
    return rows[1:] if is_header else rows, 0


def _xyz_table(rows: list[list[bytes]], name: str) -> NDArray[np.float64]:
    width = len(rows[0])
    if width not in (3, 4, 6, 7, 9):
        raise LoadError(
            f"{name}: rows of {width} columns; expected 3 (x y z), 6 (and a normal or a colour) or 9 (both)"
        )
    odd = next((k for k, row in enumerate(rows) if len(row) != width), None)
    if odd is not None:
        raise LoadError(
            f"{name}: point {odd + 1} of {len(rows)} has {len(rows[odd])} columns, the others {width}; "
            "the file is damaged or cut off"
        )
    return numbers([word for row in rows for word in row], name).reshape(-1, width)


def _normals_and_colors(extra: Floats, name: str) -> tuple[Floats | None, Floats | None]:
    """Which of the columns behind x y z are what: unit vectors are normals."""
    triples = [extra[:, k : k + 3] for k in range(0, extra.shape[1], 3)]
    normals = next((triple for triple in triples if _all_unit(triple)), None)
    others = [triple for triple in triples if triple is not normals]
    if not others:
        return normals, None
    if len(others) == 2 or others[0].min() < 0 or others[0].max() > 255:
        raise LoadError(
            f"{name}: the columns behind x y z are neither normals of length 1 nor colours in 0..1 or 0..255; "
            "normalise the normals, or leave these columns out"
        )
    return normals, unit_colors(others[0], name)


def _all_unit(vectors: Floats) -> bool:
    return bool((np.abs(np.linalg.norm(vectors, axis=1) - 1) <= UNIT_TOLERANCE).all())


# --- shared


def fan(counts: NDArray[np.int64]) -> NDArray[np.int64]:
    """Polygons of so many corners cut into triangles around their first corner.

    Indices into the corners of all polygons in a row, shape (triangles, 3); less than three corners make none.
    """
    triangles = np.maximum(counts - 2, 0)
    first = np.repeat(np.cumsum(counts) - counts, triangles)
    second = first + 1 + positions_within(triangles)
    return np.stack([first, second, second + 1], axis=1)


def quads_of(counts: NDArray[np.int64], corners: NDArray[np.int64]) -> Indices | None:
    """The polygons (Q, 4), int32, if each of them has four corners, all different; less than three make no polygon.

    `corners` are those of all polygons in a row, `counts` (polygons,) how many each has.
    """
    if (counts[counts >= 3] != 4).any():
        return None
    quads = corners[np.repeat(counts == 4, counts)].reshape(-1, 4).astype(np.int32)
    ordered = np.sort(quads, axis=1)
    return None if (ordered[:, 1:] == ordered[:, :-1]).any() else quads


def checked_indices(indices: NDArray[np.int64], size: int, what: str, name: str) -> Indices:
    """Indices as int32, or a `LoadError` that names the first that is not in 0..size - 1."""
    bad = (indices < 0) | (indices >= size)
    if bad.any():
        raise LoadError(
            f"{name}: {what} {int(indices[bad][0])} (counted from 0), but there are {size}; "
            "the file is damaged or cut off"
        )
    return indices.astype(np.int32)


def unit_colors(values: NDArray, name: str) -> Floats:
    """Colours in 0..1: integers by the range of their type; floats as they are, unless they clearly run to 255."""
    if not np.isfinite(values).all():
        raise LoadError(f"{name}: some colours are not finite; remove them from the file")
    if values.dtype.kind == "f":
        full = 255.0 if values.size and values.max() > 2 else 1.0
    else:
        full = 65535.0 if values.dtype == np.uint16 else 255.0
    return np.clip(values / full, 0, 1).astype(np.float32)


def sum_by_index(index: Indices, vectors: Floats, size: int) -> Floats:
    """Sum of the vectors (K, 3) that have the same index (K,): (size, 3)."""
    return np.stack([np.bincount(index, vectors[:, axis], size) for axis in range(3)], axis=1)
