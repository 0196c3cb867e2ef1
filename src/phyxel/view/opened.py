"""What `phyxel view` is given: a scene, a finished run, or something bare that a sensible world is put around."""

from __future__ import annotations

from pathlib import Path

from phyxel.body.resolution import NodeCount
from phyxel.errors import PhyxelError, did_you_mean
from phyxel.points.shapes import SHAPES
from phyxel.points.sheets import SURFACES
from phyxel.scene import Scene, find_scene, gallery_names
from phyxel.scene.around import Bare


def opened(
    what: str,
    nodes: NodeCount | None = None,
    model: Path | None = None,
    units: str | None = None,
    up: str | None = None,
) -> Scene | Path:
    """The scene to be played live, or the folder of the run to be played back.

    `nodes` per body in place of the scene's; `model` is a file in place of the built-in shapes of a scene; `units` and
    `up` are of files, as `load` takes them.
    """
    path = Path(what).expanduser()
    folder = path.parent if path.name == "run.jsonl" else path
    if folder.is_dir():
        return _run(folder, nodes=nodes, model=model, units=units, up=up)
    if path.suffix == ".toml" or what in gallery_names():
        return find_scene(str(path)).changed(nodes=nodes, model=model, units=units, up=up)
    if model is not None:
        raise PhyxelError(f"--model {model}: takes the place of shapes in a scene, and {what} is none; leave it out")
    if what in SHAPES or what in SURFACES:
        return Bare(what, None, units, up).set_down(nodes)
    if path.is_file():
        return Bare(path.name, path, units, up).set_down(nodes)
    raise PhyxelError(_unknown(what, path))


def _run(folder: Path, **options: object) -> Path:
    if not (folder / "run.jsonl").is_file():
        above = folder.resolve().parent
        hint = f'; did you mean "{above}"?' if (above / "run.jsonl").is_file() else ""
        raise PhyxelError(f"{folder}: a folder without a run; give one that `phyxel run` wrote, as out/demo{hint}")
    if given := [f"--{name}" for name, value in options.items() if value is not None]:
        raise PhyxelError(f"{folder}: a finished run is shown as it was; leave {' and '.join(given)} out")
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
