"""What a USD file cannot tell Blender, as a script that Blender runs."""

from __future__ import annotations

import os
from pathlib import Path

from phyxel.files import check_suffix, whole_file

SCRIPT = '''"""Opens {name} in Blender as it was made: blender --python {script}"""

from pathlib import Path

import bpy

bpy.ops.wm.usd_import(filepath=str(Path(__file__).parent / {name!r}), import_all_materials=True)
# The importer keeps the frame rate that Blender has, and gives materials to meshes alone.
render = bpy.context.scene.render
render.fps, render.fps_base = {whole}, {base!r}
for cloud in bpy.data.pointclouds:
    material = bpy.data.materials.get(cloud.name.removesuffix("_points") + "_material")
    if material is not None and not cloud.materials:
        cloud.materials.append(material)
'''


def blender(usd: str | os.PathLike[str], path: str | os.PathLike[str], *, fps: float = 60.0) -> None:
    """Write a Python script to `path` (.py) that opens a file of `usd` in Blender with its `fps` frames a second and
    its colours: `blender --python path`. It finds the file from where it is itself.

    >>> px.export.blender("scene.usdc", "open_in_blender.py", fps=30)
    """
    check_suffix(path, [".py"])
    name = Path(os.path.relpath(Path(usd).absolute(), Path(path).absolute().parent)).as_posix()
    whole = max(round(fps), 1)  # Blender's rate is a whole number over a base
    script = SCRIPT.format(name=name, script=Path(path).name, whole=whole, base=whole / fps)
    with whole_file(path) as file:
        file.write(script.encode())
