"""Mesh in, mesh out: the deformed mesh with the faces and texture coordinates it came with."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np

from phyxel.body import Body
from phyxel.errors import PhyxelError
from phyxel.export.clouds import VERTEX, columns_of, ply_header, surfel_rows
from phyxel.files import whole_file

FACE = np.dtype([("count", "u1"), ("corners", "<i4", 3)])


def mesh(body: Body, path: str | os.PathLike[str]) -> None:
    """Write a body's mesh as it is now: .obj (keeps texture coordinates) or .ply (keeps colours)."""
    if body.cloud.faces is None:
        raise PhyxelError(f"{body.name}: came in without faces, so there is no mesh to write; write its points as PLY")
    writers = {".obj": _obj, ".ply": _ply}
    suffix = Path(path).suffix.lower()
    if suffix not in writers:
        raise PhyxelError(f"{path}: meshes are written as {' or '.join(writers)}")
    content = writers[suffix](body)
    with whole_file(path) as file:
        file.write(content)


def _vertex_count(body: Body) -> int:
    """The mesh's own vertices come first; points that were added on its faces are not part of it."""
    return len(body.cloud) if body.cloud.mesh is None else len(body.cloud.mesh.vertices)


def _obj(body: Body) -> bytes:
    cloud, surface = body.cloud, body.surface
    count, faces = _vertex_count(body), np.asarray(cloud.faces) + 1
    lines = [f"# {body.name}, written by phyxel, metres, y up"]
    lines += ["v {:.7g} {:.7g} {:.7g}".format(*x) for x in surface.positions[:count].tolist()]
    lines += ["vn {:.5g} {:.5g} {:.5g}".format(*n) for n in surface.normals[:count].tolist()]
    if cloud.uv is None or cloud.uv_faces is None:
        lines += ["f {0}//{0} {1}//{1} {2}//{2}".format(*face) for face in faces.tolist()]
    else:
        lines += ["vt {:.7g} {:.7g}".format(*t) for t in cloud.uv.tolist()]
        corners = np.stack([faces, cloud.uv_faces + 1], axis=2).reshape(-1, 6)
        lines += ["f {0}/{1}/{0} {2}/{3}/{2} {4}/{5}/{4}".format(*face) for face in corners.tolist()]
    return ("\n".join(lines) + "\n").encode()


def _ply(body: Body) -> bytes:
    vertices = surfel_rows(body)[: _vertex_count(body)]
    faces = np.empty(len(np.asarray(body.cloud.faces)), FACE)
    faces["count"], faces["corners"] = 3, body.cloud.faces
    header = ply_header(
        [
            ("vertex", len(vertices), columns_of(VERTEX)),
            ("face", len(faces), ["property list uchar int vertex_indices"]),
        ]
    )
    return header + vertices.tobytes() + faces.tobytes()
