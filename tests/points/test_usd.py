"""Meshes and points of USD files, written with the package itself."""

import numpy as np
import pytest

from phyxel.errors import LoadError
from phyxel.points.load import load
from tests.solid.meshes import ball_mesh, box_mesh

pxr = pytest.importorskip("pxr")
from pxr import Gf, Usd, UsdGeom  # noqa: E402

VERTICES, FACES = box_mesh(half=(20.0, 90.0, 10.0))


def stage_with_box(path, metres: float | None, up: str | None) -> Usd.Stage:
    stage = Usd.Stage.CreateNew(str(path))
    if metres is not None:
        UsdGeom.SetStageMetersPerUnit(stage, metres)
    if up is not None:
        UsdGeom.SetStageUpAxis(stage, up)
    mesh = UsdGeom.Mesh.Define(stage, "/World/box")
    mesh.CreatePointsAttr(VERTICES.tolist())
    mesh.CreateFaceVertexCountsAttr([3] * len(FACES))
    mesh.CreateFaceVertexIndicesAttr(FACES.ravel().tolist())
    return stage


@pytest.mark.parametrize("suffix", ["usda", "usdc"])
@pytest.mark.parametrize(("metres", "up"), [(0.01, "Y"), (1.0, "Z"), (0.37, "Y"), (None, None)])
def test_what_the_stage_says_of_units_and_up(tmp_path, suffix, metres, up):
    path = tmp_path / f"box.{suffix}"
    stage_with_box(path, metres, up).Save()
    cloud = load(path)
    x = VERTICES * (metres or 0.01)
    np.testing.assert_allclose(cloud.positions, x[:, [0, 2, 1]] * [1, 1, -1] if up == "Z" else x, rtol=1e-6)
    assert bool(cloud.reading.units_by) == bool(cloud.reading.up_by) == (up is not None)
    np.testing.assert_allclose(
        load(path, units="mm", up="y").positions, 1e-3 * VERTICES * (metres if metres == 0.37 else 1)
    )


def test_places_colours_and_points(tmp_path):
    """A mesh that is moved and mirrored, in green of half the light, and points beside it."""
    path = tmp_path / "two.usda"
    stage = stage_with_box(path, 0.01, "Y")
    box = UsdGeom.Mesh.Get(stage, "/World/box")
    box.CreateDisplayColorAttr([(0.0, 0.5, 0.0)])
    world = UsdGeom.Xformable(stage.DefinePrim("/World", "Xform"))
    world.AddTranslateOp().Set(Gf.Vec3d(100, 0, 0))
    world.AddScaleOp().Set(Gf.Vec3f(-1, 1, 1))
    points = UsdGeom.Points.Define(stage, "/points")
    ball, _ = ball_mesh(rings=8)
    points.CreatePointsAttr(ball.tolist())
    points.CreateDisplayColorAttr([(1.0, 0.0, 0.0)] * len(ball))
    stage.Save()
    cloud = load(path)
    mesh = cloud.positions[: len(VERTICES)]
    np.testing.assert_allclose(mesh, 0.01 * (VERTICES * [-1, 1, 1] + [100, 0, 0]), rtol=1e-6)
    assert np.linalg.det((mesh - mesh.mean(axis=0))[cloud.faces]).sum() > 0
    np.testing.assert_allclose(cloud.colors[: len(mesh)], np.tile([0, 0.7354, 0], (len(mesh), 1)), atol=1e-3)
    np.testing.assert_allclose(cloud.colors[len(mesh) :], np.tile([1, 0, 0], (len(ball), 1)), atol=1e-6)


def test_what_is_wrong_is_named(tmp_path):
    path = tmp_path / "bad.usda"
    path.write_text("no such thing")
    with pytest.raises(LoadError, match=r"bad\.usda"):
        load(path)
    Usd.Stage.CreateNew(str(tmp_path / "empty.usda")).Save()
    with pytest.raises(LoadError, match="no meshes"):
        load(tmp_path / "empty.usda")
