"""What `phyxel view` is given: a scene, a finished run, or something bare that a sensible world is put around."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np

from phyxel.errors import LoadError, PhyxelError, did_you_mean
from phyxel.points.cloud import PointCloud
from phyxel.points.load import load
from phyxel.points.shapes import SHAPES
from phyxel.points.sheets import SURFACES
from phyxel.scene import Scene, find_scene, gallery_names
from phyxel.solid.solid import CLOSING
from phyxel.units import length_text

CLOUDS = (".ply", ".obj", ".stl", ".xyz")
"""Endings of files that hold points or meshes."""
SMALLEST, LARGEST = 0.01, 10.0
"""Extents [m]: a file beyond them has other units than metres, or is no thing for hands."""
USUAL = 1.0
"""Extent that such a file is given [m]."""
NODES, MOST_PARTICLES = 800, 10_000
"""Nodes of a solid, and particles of a surface at most."""
DENSITY = 1000.0
"""[kg/m³]"""
STIFFNESS = 60.0
"""Young's modulus over ρ g × height: it wobbles for everyone to see, and yet a cow stands on its legs"""
RINGING = 0.026
"""damping over the time √(height / STIFFNESS g) that a wave takes through it"""
GAP = 0.02
"""between the body and the ground, over its size"""


def opened(what: str, nodes: int | None = None, model: Path | None = None) -> Scene | Path:
    """The scene to be played live, or the folder of the run to be played back.

    `nodes` per body in place of the scene's; `model` is a file in place of the built-in shapes of a scene.
    """
    path = Path(what).expanduser()
    folder = path.parent if path.name == "run.jsonl" else path
    if folder.is_dir():
        return _run(folder, nodes, model)
    if path.suffix == ".toml" or what in gallery_names():
        return find_scene(str(path)).changed(nodes=nodes, model=model)
    if model is not None:
        raise PhyxelError(f"--model {model}: takes the place of shapes in a scene, and {what} is none; leave it out")
    if what in SHAPES or what in SURFACES:
        return _around(what, None, nodes)
    if path.suffix.lower() in CLOUDS or path.is_file():
        return _around(path.name, path, nodes)
    raise PhyxelError(_unknown(what, path))


def _run(folder: Path, nodes: int | None, model: Path | None) -> Path:
    if not (folder / "run.jsonl").is_file():
        above = folder.resolve().parent
        hint = f'; did you mean "{above}"?' if (above / "run.jsonl").is_file() else ""
        raise PhyxelError(f"{folder}: a folder without a run; give one that `phyxel run` wrote, as out/demo{hint}")
    if nodes is not None or model is not None:
        raise PhyxelError(f"{folder}: a finished run is shown as it was; leave --nodes and --model out")
    return folder


def _unknown(what: str, path: Path) -> str:
    if path.suffix or len(path.parts) > 1:
        beside = [one.name for one in path.parent.iterdir()] if path.parent.is_dir() else []
        near = did_you_mean(path.name, beside) if beside else ""
        return f'"{what}": no such file{near if "did you mean" in near else ""}'
    known = [*gallery_names(), *SHAPES, *SURFACES]
    meant = did_you_mean(what.lower(), known, likeness=0.6)
    hint = meant if "did you mean" in meant else ""
    return f'"{what}": no such scene, shape, file or run{hint or ";"} `phyxel gallery` lists the scenes'


def _around(what: str, file: Path | None, nodes: int | None) -> Scene:
    """A thing in a world of its own: soft, a little above a ground; a surface that encloses nothing as particles."""
    if file is not None and not file.is_file():
        raise LoadError(_unknown(str(file), file))
    cloud = load(what if file is None else file)
    size = None if SMALLEST <= cloud.size <= LARGEST else USUAL
    scale = 1.0 if size is None else size / cloud.size
    sheet = what in SURFACES or encloses_nothing(cloud)
    height = float(np.ptp(cloud.positions[:, 1])) * scale
    source = f"file = {json.dumps(str(file.resolve()))}" if file else f"shape = {json.dumps(what)}"
    lines = [f"title = {json.dumps(_title(what, cloud, size, sheet))}", "seconds = 10", "[[body]]", source]
    lines += [f"size = {size:g}"] if size is not None else []
    lines += [f"at = {_place(cloud, scale)}", f'look = "{"matte" if file and cloud.colors is not None else "gummy"}"']
    lines += _thin(cloud) if sheet else [f"nodes = {nodes or NODES}", f"material = {_soft(height)}"]
    lines += ["[[collider]]", 'kind = "ground"', "friction = 0.7"]
    return Scene.parse("\n".join(lines), name=Path(what).stem, shown=what)


def _title(what: str, cloud: PointCloud, size: float | None, sheet: bool) -> str:
    scaled = "" if size is None else f", shown {length_text(size)} large"
    made = "a thin skin" if sheet else "soft as jelly"
    return f"{what}: {length_text(cloud.size)} large{scaled}, {made}, on the ground"


def _place(cloud: PointCloud, scale: float) -> list[float]:
    """Over the origin, a little above the ground at height 0: see `Placement`."""
    corners = (cloud.lower, cloud.upper) if cloud.shape is None else (cloud.shape.lower, cloud.shape.upper)
    middle = 0.5 * np.add(*corners)
    lowest = middle[1] + scale * (cloud.lower[1] - middle[1])
    at = [-middle[0], GAP * scale * cloud.size - lowest, -middle[2]]
    return [round(float(number), 9) for number in at]


def _soft(height: float) -> str:
    young = STIFFNESS * DENSITY * 9.81 * height
    damping = RINGING * math.sqrt(height / (STIFFNESS * 9.81))
    return f"{{ young = {young:.3g}, poisson = 0.4, density = {DENSITY:g}, damping = {damping:.3g} }}"


def _thin(cloud: PointCloud) -> list[str]:
    few = [f"points = {MOST_PARTICLES}"] if cloud.shape is None and len(cloud) > MOST_PARTICLES else []
    return ['model = "particles"', *few]


def encloses_nothing(cloud: PointCloud) -> bool:
    """Whether a surface leaves more open than may be made up: ∮ n dA = 0 if it is closed, else as large as the way
    through its openings."""
    if cloud.is_flat:
        return True
    if cloud.shape is not None:
        return False
    if cloud.faces is not None:
        a, b, c = np.swapaxes(cloud.positions[cloud.faces], 0, 1)
        pieces = np.cross(b - a, c - a)
    elif cloud.normals is not None:
        pieces = cloud.normals
    else:
        return False
    return bool(np.linalg.norm(pieces.sum(axis=0)) > CLOSING * np.linalg.norm(pieces, axis=1).sum())
