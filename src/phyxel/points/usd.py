"""Meshes and points of Universal Scene Description files, where the `usd` extra is installed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from phyxel.errors import LoadError
from phyxel.points.cloud import Floats, PointCloud
from phyxel.points.meshfiles import checked_indices, fan
from phyxel.points.reading import UNITS, Reading
from phyxel.points.texture import display_colors


def usd_cloud(path: Path) -> PointCloud:
    """All meshes and points of the stage as one, where they are at its first time."""
    Usd, UsdGeom, Tf = _pxr(path.name)
    try:
        stage = Usd.Stage.Open(str(path))
    except Tf.ErrorException as error:
        raise LoadError(f"{path.name}: cannot be read as USD; export it again") from error
    time = Usd.TimeCode(stage.GetStartTimeCode()) if stage.HasAuthoredTimeCodeRange() else Usd.TimeCode.EarliestTime()
    places = UsdGeom.XformCache(time)
    positions, faces, colors = [], [], list[Floats]()
    first = 0
    for prim in stage.Traverse(Usd.TraverseInstanceProxies()):
        if not (prim.IsA(UsdGeom.Mesh) or prim.IsA(UsdGeom.Points)):
            continue
        x = np.array(UsdGeom.PointBased(prim).GetPointsAttr().Get(time) or [], np.float64).reshape(-1, 3)
        place = np.array(places.GetLocalToWorldTransform(prim))  # of rows, from the left
        positions.append(x @ place[:3, :3] + place[3, :3])
        shown = _colors(UsdGeom.PointBased(prim), time, len(x))
        colors += [] if shown is None else [shown]
        if prim.IsA(UsdGeom.Mesh):
            corners = _triangles(UsdGeom.Mesh(prim), time, len(x), path.name)
            mirrored = np.linalg.det(place[:3, :3]) < 0
            left_handed = UsdGeom.Mesh(prim).GetOrientationAttr().Get() == UsdGeom.Tokens.leftHanded
            faces.append(first + (corners[:, ::-1] if mirrored != left_handed else corners))
        first += len(x)
    if first == 0:
        raise LoadError(f"{path.name}: its stage has no meshes and no points; export it again with the object in it")
    return PointCloud(
        np.concatenate(positions) * _beyond_units(UsdGeom.GetStageMetersPerUnit(stage)),
        colors=np.concatenate(colors) if len(colors) == len(positions) else None,
        faces=np.concatenate(faces).astype(np.int32) if faces else None,
        name=path.name,
        reading=_reading(stage, UsdGeom),
    )


def _pxr(name: str) -> tuple[Any, Any, Any]:
    try:
        from pxr import Tf, Usd, UsdGeom
    except ImportError as error:
        raise LoadError(f'{name}: USD files need one more package: pip install "phyxel[usd]"') from error
    return Usd, UsdGeom, Tf


def _unit(metres: float) -> str | None:
    """The unit of so many metres, if it has a name."""
    return next((unit for unit, worth in UNITS.items() if np.isclose(worth, metres, rtol=1e-4)), None)


def _beyond_units(metres: float) -> float:
    """What lengths are multiplied by where their unit has no name: metres in one, else 1."""
    return metres if _unit(metres) is None else 1.0


def _reading(stage: Any, UsdGeom: Any) -> Reading:
    """What the stage says; it is in centimetres if it does not say."""
    return Reading(
        units=_unit(UsdGeom.GetStageMetersPerUnit(stage)) or "m",
        units_by="metersPerUnit of the file" if UsdGeom.StageHasAuthoredMetersPerUnit(stage) else "",
        up=str(UsdGeom.GetStageUpAxis(stage)).lower(),
        up_by="upAxis of the file" if stage.HasAuthoredMetadata("upAxis") else "",
    )


def _triangles(mesh: Any, time: Any, points: int, name: str) -> NDArray[np.integer]:
    counts = np.array(mesh.GetFaceVertexCountsAttr().Get(time) or [], np.int64)
    corners = np.array(mesh.GetFaceVertexIndicesAttr().Get(time) or [], np.int64)
    if counts.sum() != len(corners):
        raise LoadError(f"{name}: faces of {counts.sum()} corners name {len(corners)} vertices; export it again")
    return checked_indices(corners[fan(counts)], points, "a face names vertex", name)


def _colors(geometry: Any, time: Any, points: int) -> Floats | None:
    """Display colours of the vertices, if there is one for each or one for all."""
    shown = geometry.GetDisplayColorPrimvar()
    found = np.array(shown.ComputeFlattened(time) if shown.HasValue() else [], np.float64).reshape(-1, 3)
    if len(found) not in (1, points):
        return None
    return np.broadcast_to(display_colors(found), (points, 3)).astype(np.float32)
