"""USD: points and meshes over time, whole and consistent at every moment; Blender reads them."""

import importlib.util
import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import phyxel as px
from phyxel.material.look import LOOKS
from tests.export.bodies import bent, write_cube

pytest.importorskip("pxr", reason="needs usd-core")

from pxr import Usd, UsdGeom, UsdShade

from tests.export.usd_rules import faults_of

SOFT = px.Material(young=1e5, poisson=0.3)
FPS = 50


def at(stage: Usd.Stage, path: str, name: str, time: float) -> np.ndarray:
    return np.array(stage.GetPrimAtPath(path).GetAttribute(name).Get(time))


@pytest.fixture(scope="module")
def played(tmp_path_factory) -> tuple[Path, list[dict[str, np.ndarray]]]:
    """Two bodies that fall, one of which melts: the file, and what each frame was."""
    folder = tmp_path_factory.mktemp("usd")
    world = px.World()
    world.add(px.Body(px.load("sphere", points=300), nodes=80, material=SOFT, name="a ball!"))
    world.add(
        px.Body(
            px.load(write_cube(folder / "cube.obj")), nodes=64, material=SOFT, at=(2, 0, 0), place="file", name="cube"
        )
    )
    world.at(0.03, lambda world: world.bodies[0].melt())
    moments = []

    def frames():
        for frame in world.play(seconds=0.06, fps=FPS):
            moments.append({body.name: body.surface.positions.astype(np.float32) for body in world.bodies})
            yield frame

    px.export.usd(frames(), folder / "scene.usdc", fps=FPS, mesh=True)
    return folder / "scene.usdc", moments


def test_nothing_is_wrong_with_it(played):
    assert faults_of(played[0]) == []


def test_a_fault_would_be_found(played, tmp_path):
    """The rules are no rubber stamp: normals that are too few, a face without a vertex, a point outside the extent."""
    stage = Usd.Stage.Open(str(played[0]))
    stage.GetPrimAtPath("/World/cube/cube_points").GetAttribute("primvars:normals").Set([(0, 1, 0)], 1)
    stage.GetPrimAtPath("/World/cube/cube_mesh").GetAttribute("faceVertexIndices").Set([0, 1, 99] * 12)
    stage.GetPrimAtPath("/World/a_ball_/a_ball__points").GetAttribute("extent").Set([(0, 0, 0), (1, 1, 1)], 2)
    stage.Export(str(tmp_path / "bad.usda"))
    faults = " ".join(faults_of(tmp_path / "bad.usda"))
    assert "1 primvars:normals" in faults and "cube_mesh" in faults and "outside the extent" in faults


def test_points_come_back_at_every_time(played):
    path, moments = played
    stage = Usd.Stage.Open(str(path))
    assert len(moments) == 4
    assert (stage.GetStartTimeCode(), stage.GetEndTimeCode(), stage.GetTimeCodesPerSecond()) == (0, 3, FPS)
    assert stage.GetFramesPerSecond() == FPS
    for time, moment in enumerate(moments):
        for prim, name in (("a_ball_", "a ball!"), ("cube", "cube")):
            assert np.array_equal(at(stage, f"/World/{prim}/{prim}_points", "points", time), moment[name])
    shown = at(stage, "/World/cube/cube_points", "primvars:displayColor", 0)
    light = [((c + 0.055) / 1.055) ** 2.4 for c in LOOKS["gummy"].color]
    assert np.abs(shown - light).max() < 1e-3, "light for the display values of its look"


def test_points_have_numbers_that_stay(played):
    """Said once where all stay; Blender's, as a primvar, are the same."""
    stage = Usd.Stage.Open(str(played[0]))
    cube, ball = (stage.GetPrimAtPath(f"/World/{name}/{name}_points") for name in ("cube", "a_ball_"))
    assert np.array_equal(cube.GetAttribute("ids").Get(2), np.arange(len(played[1][0]["cube"])))
    assert cube.GetAttribute("ids").GetTimeSamples() == []
    for prim, time in ((cube, 1), (ball, 0), (ball, 3)):
        ids = np.array(prim.GetAttribute("ids").Get(time))
        assert len(np.unique(ids)) == len(ids)
        assert np.array_equal(ids, prim.GetAttribute("primvars:id").Get(time))


def test_a_material_shows_the_colours(played):
    """What is seen is a UsdPreviewSurface whose diffuse colour is read from `displayColor`."""
    stage = Usd.Stage.Open(str(played[0]))
    for name in ("cube", "a_ball_"):
        for kind in ("points", "mesh"):
            prim = stage.GetPrimAtPath(f"/World/{name}/{name}_{kind}")
            material, _ = UsdShade.MaterialBindingAPI(prim).ComputeBoundMaterial()
            surface = UsdShade.Shader(material.ComputeSurfaceSource()[0])
            assert surface.GetShaderId() == "UsdPreviewSurface"
            source = surface.GetInput("diffuseColor").GetConnectedSources()[0][0]
            reader = UsdShade.Shader(source.source.GetPrim())
            assert reader.GetShaderId() == "UsdPrimvarReader_float3"
            assert reader.GetInput("varname").Get() == "displayColor" and source.sourceName == "result"


def test_velocities_are_those_of_the_fall(played):
    stage = Usd.Stage.Open(str(played[0]))
    velocities = at(stage, "/World/cube/cube_points", "velocities", 2)
    assert np.abs(velocities - [0, -9.81 * 2 / FPS, 0]).max() < 1e-3


def test_faces_that_stay_are_said_once_and_others_each_time(played):
    stage = Usd.Stage.Open(str(played[0]))
    cube, ball = (UsdGeom.Mesh(stage.GetPrimAtPath(f"/World/{name}/{name}_mesh")) for name in ("cube", "a_ball_"))
    assert cube.GetFaceVertexIndicesAttr().GetTimeSamples() == []
    cloud = px.load(played[0].parent / "cube.obj")
    assert np.array_equal(np.array(cube.GetFaceVertexIndicesAttr().Get(2)).reshape(-1, 3), cloud.faces)
    assert ball.GetFaceVertexIndicesAttr().GetTimeSamples() == [0, 1, 2, 3]
    st = UsdGeom.PrimvarsAPI(cube.GetPrim()).GetPrimvar("st")
    assert st.GetInterpolation() == "faceVarying" and st.GetAttr().GetTimeSamples() == []
    assert np.abs(np.array(st.ComputeFlattened()) - cloud.uv[cloud.uv_faces].reshape(-1, 2)).max() < 1e-6


@pytest.mark.parametrize("suffix", ["usda", "usdc"])
def test_a_body_alone_is_a_file_too(suffix, tmp_path):
    body = bent(px.load("bear", points=400), size=1.0)
    px.export.usd(body, tmp_path / f"bear.{suffix}")
    assert faults_of(tmp_path / f"bear.{suffix}") == []
    assert [path.name for path in tmp_path.iterdir()] == [f"bear.{suffix}"]
    assert (tmp_path / "bear.usda").exists() == (suffix == "usda")


def test_parts_joined_are_as_good_as_the_whole(tmp_path):
    """Also where one mesh stays and another changes from the second frame on."""

    def world():
        world = px.World()
        world.add(px.Body(px.load("box", points=200), nodes=64, material=SOFT, name="stays"))
        world.add(
            px.Body(px.load("box", points=200), nodes=64, material=SOFT, name="melts", at=(3, 0, 0), place="center")
        )
        world.at(0.01, lambda world: world.bodies[1].melt())
        return world

    px.export.usd(world().play(seconds=0.04, fps=FPS), tmp_path / "whole.usdc", fps=FPS, mesh=True)
    parts = []
    for frame in world().play(seconds=0.04, fps=FPS):
        parts.append(tmp_path / f"{frame.index:04d}.usdc")
        px.export.usd(frame, parts[-1], fps=FPS, mesh=True)
    px.export.join_usd(parts, tmp_path / "joined.usdc")
    assert faults_of(tmp_path / "joined.usdc") == []
    whole, joined = (Usd.Stage.Open(str(tmp_path / f"{name}.usdc")) for name in ("whole", "joined"))
    assert joined.GetEndTimeCode() == 2
    for name, times in (("stays", []), ("melts", [0, 1, 2])):
        faces = joined.GetPrimAtPath(f"/World/{name}/{name}_mesh").GetAttribute("faceVertexIndices")
        assert faces.GetTimeSamples() == times
    assert joined.ExportToString(addSourceFileComment=False) == whole.ExportToString(addSourceFileComment=False)


def test_a_damaged_part_is_named(tmp_path):
    (tmp_path / "0000.usdc").write_bytes(b"PXR-USDC cut off")
    for part in ("0000.usdc", "nowhere.usdc"):
        with pytest.raises(px.PhyxelError, match=part):
            px.export.join_usd([tmp_path / part], tmp_path / "joined.usdc")
    assert [path.name for path in tmp_path.iterdir()] == ["0000.usdc"]


def test_what_cannot_be_written_says_so(tmp_path):
    (tmp_path / "folder.usdc").mkdir()
    body = bent(px.load("box", points=200))
    with pytest.raises(px.PhyxelError, match="cannot be written"):
        px.export.usd(body, tmp_path / "folder.usdc")
    assert [path.name for path in tmp_path.iterdir()] == ["folder.usdc"]


def test_without_the_package_it_says_how_to_get_it(tmp_path, monkeypatch):
    for name in list(sys.modules):
        if name == "pxr" or name.startswith("pxr."):
            monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "pxr", None)
    body = bent(px.load("box", points=200))
    with pytest.raises(px.PhyxelError, match=r'pip install "phyxel\[usd\]"'):
        px.export.usd(body, tmp_path / "box.usdc")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("name", "options", "word"),
    [("box.obj", {}, "usdc"), ("box.usdc", {"points": False}, "neither")],
)
def test_what_makes_no_sense_is_refused(name, options, word, tmp_path):
    world = px.World()
    world.add(px.Body(px.load("box", points=200), nodes=64, material=SOFT))
    with pytest.raises(px.PhyxelError, match=word):
        px.export.usd(world.bodies[0], tmp_path / name, **options)
    assert list(tmp_path.iterdir()) == []


BLENDER = """
import bpy, json, runpy, sys
bpy.ops.wm.read_factory_settings(use_empty=True)
runpy.run_path(sys.argv[-1])
scene, seen = bpy.context.scene, {}
for frame in range(scene.frame_start, scene.frame_end + 1):
    scene.frame_set(frame)
    graph = bpy.context.evaluated_depsgraph_get()
    for thing in bpy.data.objects:
        if thing.type in ("MESH", "POINTCLOUD"):
            data = thing.evaluated_get(graph).data
            height = [entry.vector[1] for entry in data.attributes["position"].data]
            names = sorted(attribute.name for attribute in data.attributes)
            nodes = [node for material in data.materials for node in material.node_tree.nodes]
            names += [f"shows {node.attribute_name}" for node in nodes if node.type == "ATTRIBUTE"]
            seen.setdefault(thing.name, []).append((thing.type, len(height), sum(height) / len(height), names))
print("SEEN", json.dumps([scene.render.fps / scene.render.fps_base, seen]))
"""


def test_blender_reads_it(played, tmp_path):
    """Blender's own importer, by our script, in a process of its own: Blender has another USD inside."""
    if importlib.util.find_spec("bpy") is None:
        pytest.skip("needs Blender's package bpy")
    path, moments = played
    script = tmp_path / "open.py"
    px.export.blender(path, script, fps=FPS)
    process = subprocess.run([sys.executable, "-c", BLENDER, str(script)], capture_output=True, text=True, timeout=120)
    line = next((line for line in process.stdout.splitlines() if line.startswith("SEEN")), process.stderr)
    rate, seen = json.loads(line.removeprefix("SEEN"))
    assert rate == FPS
    assert all("shows displayColor" in names for moments_seen in seen.values() for *_, names in moments_seen)
    assert sorted(seen) == ["a_ball__mesh", "a_ball__points", "cube_mesh", "cube_points"]
    for name, body in (("a_ball__points", "a ball!"), ("cube_points", "cube")):
        for (kind, count, height, names), moment in zip(seen[name], moments, strict=True):
            assert kind == "POINTCLOUD" and count == len(moment[body])
            assert height == pytest.approx(moment[body][:, 1].mean(), abs=1e-5)
            assert {"normals", "displayColor", "radius", "velocity", "id"} <= set(names)
    assert [entry[:2] for entry in seen["cube_mesh"]] == [["MESH", 8]] * 4
    assert len({entry[1] for entry in seen["a_ball__mesh"]}) > 1, "a melt has another mesh each time"


def test_usd_has_quads_seen_from_both_sides(mat, tmp_path):
    _, body = mat
    px.export.usd(body, tmp_path / "mat.usdc", mesh=True)
    assert faults_of(tmp_path / "mat.usdc") == []
    stage = Usd.Stage.Open(str(tmp_path / "mat.usdc"))
    prim = UsdGeom.Mesh(stage.GetPrimAtPath("/World/mat/mat_mesh"))
    assert np.array_equal(prim.GetFaceVertexCountsAttr().Get(0), np.full(len(body.cloud.quads), 4))
    assert np.array_equal(np.array(prim.GetFaceVertexIndicesAttr().Get(0)).reshape(-1, 4), body.cloud.quads)
    assert prim.GetDoubleSidedAttr().Get()
    st = UsdGeom.PrimvarsAPI(prim).GetPrimvar("st")
    known = np.array(st.Get(0))[np.array(st.GetIndices(0))].reshape(-1, 4, 2)
    columns = np.rint(known.mean(axis=1)[:, 0] * len(known) - 0.5)
    assert np.array_equal(columns, np.arange(len(known)))  # each quad has its own patch of the texture
    speeds = np.array(stage.GetPrimAtPath("/World/mat/mat_points").GetAttribute("velocities").Get(0))
    assert np.abs(speeds - body.velocities).max() < 1e-4 * np.abs(body.velocities).max()
