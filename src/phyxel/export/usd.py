"""Bodies as Universal Scene Description, for Blender, Houdini and the like: points and meshes over time in one file."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from phyxel.body import Body
from phyxel.errors import PhyxelError
from phyxel.export.follow import at_surfels
from phyxel.export.meshes import BodyMesh, mesh_of
from phyxel.files import check_suffix, whole_file
from phyxel.world import Frame

SUFFIXES = (".usdc", ".usda", ".usd")
SELDOM_CHANGE = ("faceVertexCounts", "faceVertexIndices", "primvars:st", "primvars:st:indices", "ids", "primvars:id")
"""Attributes of meshes and points."""


def require_usd(what: str) -> Any:
    """The module `pxr`, or a `PhyxelError` that says how to get it; `what` needs it."""
    try:
        import pxr.Sdf
        import pxr.Tf
        import pxr.Usd
        import pxr.UsdGeom
        import pxr.UsdShade
        import pxr.UsdUtils
        import pxr.Vt
    except ImportError as error:
        raise PhyxelError(f'{what}: USD needs one more package: pip install "phyxel[usd]"') from error
    return pxr


def usd(
    thing: Body | Frame | Iterable[Frame],
    path: str | os.PathLike[str],
    *,
    fps: float = 60.0,
    points: bool = True,
    mesh: bool = False,
) -> None:
    """Write surfels (`points`) and meshes (`mesh`) of a body, a frame, or all frames of a play (`thing`) to `path`
    (.usdc or .usda), in metres, y up, as /World/bear/bear_points and /World/bear/bear_mesh, with a material that shows
    their colours. Frames are time codes, `fps` of them a second. A surfel has the same number (`ids`) at all times.

    >>> world = px.gallery("demo").changed(nodes=64, points=500).world()
    >>> px.export.usd(world.play(seconds=0.1, fps=30), "scene.usdc", fps=30)
    """
    pxr = _usd_for(path)
    if not (points or mesh):
        raise PhyxelError(f"{path}: neither points nor meshes; ask for one of them")
    if isinstance(thing, Body):
        thing = Frame(0, 0.0, [thing])
    frames = [thing] if isinstance(thing, Frame) else thing
    stage = _empty_stage(pxr, fps)
    count = 0
    for frame in frames:
        names = _prim_names(pxr, [body.name for body in frame.bodies])
        for name, body in zip(names, frame.bodies, strict=True):
            root = pxr.UsdGeom.Xform.Define(stage, f"/World/{name}").GetPath()
            material = _write_material(pxr, stage, root.AppendChild(f"{name}_material"))
            if points:
                prim = _write_points(pxr, stage, root.AppendChild(f"{name}_points"), body, frame.index)
                _bind(pxr, prim, material)
            if mesh:
                prim = _write_mesh(pxr, stage, root.AppendChild(f"{name}_mesh"), mesh_of(body), frame.index)
                _bind(pxr, prim, material)
        if count == 0:
            stage.SetStartTimeCode(frame.index)
        stage.SetEndTimeCode(frame.index)
        count += 1
    if count == 0:
        raise PhyxelError(f"{path}: no frames to write")
    _save(pxr, stage.GetRootLayer(), path)


def join_usd(parts: Sequence[str | os.PathLike[str]], path: str | os.PathLike[str]) -> None:
    """Write one file with the moments of several that `usd` wrote, the `parts`, to `path`.

    >>> world = px.gallery("demo").changed(nodes=64, points=500).world()
    >>> names = [f"{index:04d}.usdc" for index in range(4)]
    >>> for frame, name in zip(world.play(seconds=0.1, fps=30), names):
    ...     px.export.usd(frame, name, fps=30)
    >>> px.export.join_usd(names, "scene.usdc")
    """
    pxr = _usd_for(path)
    if not parts:
        raise PhyxelError(f"{path}: no files to join")
    whole, *others = (_opened(pxr, part) for part in parts)
    for other in others:
        pxr.UsdUtils.StitchLayers(whole, other)
    _save(pxr, whole, path)


def _opened(pxr: Any, path: str | os.PathLike[str]) -> Any:
    try:
        # Not through the registry, which would remember a file that is written again later.
        return pxr.Sdf.Layer.OpenAsAnonymous(str(path))
    except pxr.Tf.ErrorException as error:
        raise PhyxelError(f"{path}: is no USD file, or damaged") from error


def _usd_for(path: str | os.PathLike[str]) -> Any:
    check_suffix(path, SUFFIXES)
    return require_usd(str(path))


def _empty_stage(pxr: Any, fps: float) -> Any:
    stage = pxr.Usd.Stage.CreateInMemory(".usdc")
    pxr.UsdGeom.SetStageUpAxis(stage, pxr.UsdGeom.Tokens.y)
    pxr.UsdGeom.SetStageMetersPerUnit(stage, 1.0)
    stage.SetTimeCodesPerSecond(fps)
    stage.SetFramesPerSecond(fps)
    stage.SetDefaultPrim(pxr.UsdGeom.Xform.Define(stage, "/World").GetPrim())
    return stage


def _prim_names(pxr: Any, names: Sequence[str]) -> list[str]:
    """Names that USD allows, each once, in this order."""
    found: list[str] = []
    for name in names:
        plain = pxr.Tf.MakeValidIdentifier(name)
        taken = (plain if k == 1 else f"{plain}_{k}" for k in range(1, len(names) + 1))
        found.append(next(one for one in taken if one not in found))
    return found


def _write_material(pxr: Any, stage: Any, path: Any) -> Any:
    """One that shows `displayColor`: programs show that by itself in their viewport at best."""
    shade, types = pxr.UsdShade, pxr.Sdf.ValueTypeNames
    material = shade.Material.Define(stage, path)
    reader = shade.Shader.Define(stage, path.AppendChild("color"))
    reader.CreateIdAttr("UsdPrimvarReader_float3")
    reader.CreateInput("varname", types.String).Set("displayColor")
    color = reader.CreateOutput("result", types.Float3)
    surface = shade.Shader.Define(stage, path.AppendChild("surface"))
    surface.CreateIdAttr("UsdPreviewSurface")
    surface.CreateInput("diffuseColor", types.Color3f).ConnectToSource(color)
    material.CreateSurfaceOutput().ConnectToSource(surface.CreateOutput("surface", types.Token))
    return material


def _bind(pxr: Any, prim: Any, material: Any) -> None:
    pxr.UsdShade.MaterialBindingAPI.Apply(prim.GetPrim()).Bind(material)


def _write_points(pxr: Any, stage: Any, path: Any, body: Body, time: float) -> Any:
    surfels, prim = body.surface.tracked, pxr.UsdGeom.Points.Define(stage, path)
    a, b = (np.linalg.norm(axis.numpy(), axis=1) for axis in (surfels.axis_a, surfels.axis_b))
    # Discs of neighbours overlap well; spheres half as large just do, and swell the body less.
    widths = np.sqrt(a * b)
    _write_vertices(pxr, prim, surfels.positions, surfels.normals, surfels.colors, time, reach=0.5 * widths)
    ids = body.surface.ids
    prim.GetIdsAttr().Set(pxr.Vt.Int64Array.FromNumpy(ids), time)
    # Blender takes primvars alone.
    number = pxr.UsdGeom.PrimvarsAPI(prim).CreatePrimvar(
        "id", pxr.Sdf.ValueTypeNames.IntArray, pxr.UsdGeom.Tokens.vertex
    )
    number.Set(pxr.Vt.IntArray.FromNumpy(ids.astype(np.int32)), time)
    prim.GetWidthsAttr().Set(pxr.Vt.FloatArray.FromNumpy(widths.astype(np.float32)), time)
    prim.SetWidthsInterpolation(pxr.UsdGeom.Tokens.vertex)
    prim.GetVelocitiesAttr().Set(_vectors(pxr, at_surfels(body, body.velocities)), time)
    return prim


def _write_mesh(pxr: Any, stage: Any, path: Any, mesh: BodyMesh, time: float) -> Any:
    prim = pxr.UsdGeom.Mesh.Define(stage, path)
    _write_vertices(pxr, prim, mesh.vertices, mesh.normals, mesh.colors, time)
    integers = pxr.Vt.IntArray.FromNumpy
    prim.GetSubdivisionSchemeAttr().Set(pxr.UsdGeom.Tokens.none)
    prim.GetDoubleSidedAttr().Set(mesh.is_sheet)
    faces, uv_faces = mesh.polygons
    prim.GetFaceVertexCountsAttr().Set(integers(np.full(len(faces), faces.shape[1], np.int32)), time)
    prim.GetFaceVertexIndicesAttr().Set(integers(faces.astype(np.int32).reshape(-1)), time)
    if mesh.uv is not None and uv_faces is not None:
        corners = pxr.UsdGeom.Tokens.faceVarying
        kind = pxr.Sdf.ValueTypeNames.TexCoord2fArray
        st = pxr.UsdGeom.PrimvarsAPI(prim).CreatePrimvar("st", kind, corners)
        st.Set(pxr.Vt.Vec2fArray.FromNumpy(np.ascontiguousarray(mesh.uv, np.float32)), time)
        st.SetIndices(integers(uv_faces.astype(np.int32).reshape(-1)), time)
    return prim


def _write_vertices(
    pxr: Any,
    prim: Any,
    positions: NDArray[np.floating],
    normals: NDArray[np.floating],
    colors: NDArray[np.floating],
    time: float,
    reach: NDArray[np.floating] | float = 0.0,
) -> None:
    """What points and meshes share. `reach` is how far beyond its position a vertex is seen [m]."""
    x = positions.astype(np.float32)
    wide = np.broadcast_to(np.asarray(reach, np.float32), len(x))[:, None]
    prim.GetPointsAttr().Set(_vectors(pxr, x), time)
    if len(x):
        prim.GetExtentAttr().Set(_vectors(pxr, np.array([(x - wide).min(axis=0), (x + wide).max(axis=0)])), time)
    primvars, types = pxr.UsdGeom.PrimvarsAPI(prim), pxr.Sdf.ValueTypeNames
    # Blender drops the plain attribute `normals` of points.
    for name, kind, values in (
        ("normals", types.Normal3fArray, normals),
        ("displayColor", types.Color3fArray, linear_from_srgb(colors)),
    ):
        primvars.CreatePrimvar(name, kind, pxr.UsdGeom.Tokens.vertex).Set(_vectors(pxr, values), time)


def _vectors(pxr: Any, values: NDArray[np.floating]) -> Any:
    return pxr.Vt.Vec3fArray.FromNumpy(np.ascontiguousarray(values, np.float32))


def linear_from_srgb(colors: NDArray[np.floating]) -> NDArray[np.floating]:
    """Light, as USD's colours are, for display values, each in 0..1."""
    c = np.clip(colors, 0, 1)
    return np.where(c <= 0.04045, c / 12.92, ((c + 0.055) / 1.055) ** 2.4)


def _save(pxr: Any, layer: Any, path: str | os.PathLike[str]) -> None:
    """Under its name only when complete; what never changes is said once."""
    stage = pxr.Usd.Stage.Open(layer)
    for prim in stage.Traverse():
        for name in SELDOM_CHANGE:
            _say_once(prim.GetAttribute(name))
    with whole_file(path) as file:
        name = file.name + Path(path).suffix.lower()  # USD goes by the suffix
        try:
            layer.Export(name)
            os.replace(name, file.name)
        except pxr.Tf.ErrorException as error:
            raise PhyxelError(f"{path}: cannot be written") from error
        finally:
            Path(name).unlink(missing_ok=True)


def _say_once(attribute: Any) -> None:
    """A value that is the same at all of several times holds at all times. A single moment stays one: files are joined
    by their moments."""
    if not attribute or len(times := attribute.GetTimeSamples()) < 2:
        return
    first = attribute.Get(times[0])
    if all(attribute.Get(time) == first for time in times[1:]):
        attribute.Clear()
        attribute.Set(first)
