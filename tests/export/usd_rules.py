"""What must hold in a USD file of points and meshes, at every time: USD itself does not look at lengths."""

from pathlib import Path
from typing import Any

import numpy as np
from pxr import Usd, UsdGeom


def faults_of(path: Path) -> list[str]:
    """What is wrong with a file, in words; nothing is right."""
    stage = Usd.Stage.Open(str(path))
    found = [f"composition: {error}" for error in stage.GetCompositionErrors()] + _official_faults(stage)
    if UsdGeom.GetStageUpAxis(stage) != UsdGeom.Tokens.y or UsdGeom.GetStageMetersPerUnit(stage) != 1.0:
        found.append("not in metres, y up")
    if not stage.GetDefaultPrim():
        found.append("no default prim")
    prims = [prim for prim in stage.Traverse() if prim.IsA(UsdGeom.PointBased)]
    if not prims:
        found.append("neither points nor meshes")
    for prim in prims:
        times = UsdGeom.PointBased(prim).GetPointsAttr().GetTimeSamples()
        if not times:
            found.append(f"{prim.GetPath()}: never has points")
        for time in times:
            found += [f"{prim.GetPath()} at {time}: {fault}" for fault in _faults_at(prim, time)]
    return found


def _official_faults(stage: Any) -> list[str]:
    """What USD's own validators say, where they come along."""
    try:
        from pxr import UsdValidation
    except ImportError:
        return []
    validators = UsdValidation.ValidationRegistry().GetOrLoadAllValidators()
    return [error.GetMessage() for error in UsdValidation.ValidationContext(validators).Validate(stage)]


def _faults_at(prim: Any, time: float) -> list[str]:
    found = []
    x = np.array(UsdGeom.PointBased(prim).GetPointsAttr().Get(time))
    for name in ("primvars:normals", "primvars:displayColor", "primvars:id", "ids", "widths", "velocities"):
        attribute = prim.GetAttribute(name)
        values = attribute.Get(time) if attribute else None
        if values is None:
            needed = prim.IsA(UsdGeom.Points) or name in ("primvars:normals", "primvars:displayColor")
            found += [f"no {name}"] if needed else []
        elif len(values) != len(x):
            found.append(f"{len(values)} {name} for {len(x)} points")
        elif not np.isfinite(np.array(values)).all():
            found.append(f"{name} not finite")
    if not (len(x) and np.isfinite(x).all()):
        return [*found, "points not finite, or none"]
    lower, upper = np.array(UsdGeom.Boundable(prim).GetExtentAttr().Get(time))
    wide = np.array(prim.GetAttribute("widths").Get(time))[:, None] / 2 if prim.IsA(UsdGeom.Points) else 0
    tiny = 1e-6 * np.abs(x).max()
    if (x - wide < lower - tiny).any() or (x + wide > upper + tiny).any():
        found.append("points outside the extent")
    if prim.IsA(UsdGeom.Mesh):
        found += _faults_of_faces(prim, time, len(x))
    return found


def _faults_of_faces(prim: Any, time: float, points: int) -> list[str]:
    mesh = UsdGeom.Mesh(prim)
    corners, counts = mesh.GetFaceVertexIndicesAttr().Get(time), mesh.GetFaceVertexCountsAttr().Get(time)
    valid, why = UsdGeom.Mesh.ValidateTopology(corners, counts, points)
    found = [] if valid else [why]
    if len(np.unique(np.array(corners))) != points:
        found.append("vertices without a face: faces of another time?")
    st = UsdGeom.PrimvarsAPI(prim).GetPrimvar("st")
    if st and len(st.ComputeFlattened(time)) != len(corners):
        found.append("texture coordinates do not fit the corners")
    return found
