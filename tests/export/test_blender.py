"""A script for Blender, run here with a stand-in for Blender that writes down what it is told."""

import runpy
import sys
from types import SimpleNamespace

import pytest

import phyxel as px


class Cloud(SimpleNamespace):
    """A point cloud of Blender's: its name and materials."""


def opened_by(script, clouds, materials) -> tuple[dict, SimpleNamespace]:
    """What the importer was told, and Blender's render settings, after a script was run in it."""
    told: dict = {}
    render = SimpleNamespace(fps=24, fps_base=1.0)
    blender = SimpleNamespace(
        ops=SimpleNamespace(wm=SimpleNamespace(usd_import=lambda **options: told.update(options))),
        context=SimpleNamespace(scene=SimpleNamespace(render=render)),
        data=SimpleNamespace(pointclouds=clouds, materials=materials),
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(sys.modules, "bpy", blender)
        runpy.run_path(str(script))
    return told, render


@pytest.mark.parametrize("fps", [24, 50, 29.97, 0.4])
def test_blender_gets_the_rate_and_clouds_their_colours(fps, tmp_path):
    px.export.blender(tmp_path / "it's" / "scene.usdc", tmp_path / "scripts" / "open.py", fps=fps)
    bear, other = Cloud(name="bear_points", materials=[]), Cloud(name="mine", materials=["own"])
    told, render = opened_by(tmp_path / "scripts" / "open.py", [bear, other], {"bear_material": "shown"})
    assert render.fps >= 1 and render.fps / render.fps_base == pytest.approx(fps, rel=1e-12)
    assert told == {
        "filepath": str(tmp_path / "scripts" / ".." / "it's" / "scene.usdc"),
        "import_all_materials": True,
    }
    assert bear.materials == ["shown"] and other.materials == ["own"]


def test_a_name_that_is_no_script_is_refused(tmp_path):
    with pytest.raises(px.PhyxelError, match=r"open.txt: give a name that ends in .py"):
        px.export.blender(tmp_path / "scene.usdc", tmp_path / "open.txt")
