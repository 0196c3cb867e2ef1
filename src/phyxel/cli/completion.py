"""What the shell offers when Tab is pressed. Without the rooms that compute: it has to come at once."""

from __future__ import annotations

import os
from pathlib import Path

from phyxel.files import gallery_files


def scenes(incomplete: str) -> list[str]:
    """Scenes of the gallery and scene files that begin so, and folders on the way to some."""
    return [name for name in gallery_files() if name.startswith(incomplete)] + _files(incomplete, (".toml",))


def scenes_and_scans(incomplete: str) -> list[str]:
    """The same with scans and meshes."""
    suffixes = (".toml", ".ply", ".obj", ".stl", ".xyz")
    return [name for name in gallery_files() if name.startswith(incomplete)] + _files(incomplete, suffixes)


def _files(incomplete: str, suffixes: tuple[str, ...]) -> list[str]:
    folder, start = os.path.split(incomplete)
    try:
        beside = sorted(Path(folder or ".").expanduser().iterdir())
    except OSError:
        return []
    shown = [path for path in beside if path.name.startswith(start) and (start or not path.name.startswith("."))]
    paths = [(os.path.join(folder, path.name), path) for path in shown]
    return [f"{name}/" if path.is_dir() else name for name, path in paths if path.is_dir() or path.suffix in suffixes]
