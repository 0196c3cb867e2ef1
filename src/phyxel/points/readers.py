"""Which kinds of files are read, and by what: not yet in metres, turned, completed or checked."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np

from phyxel.errors import LoadError
from phyxel.points.cloud import PointCloud
from phyxel.points.gltf import gltf_cloud
from phyxel.points.meshfiles import obj_cloud, ply_cloud, stl_cloud, xyz_cloud
from phyxel.points.splats import COMPRESSED, STANDARD
from phyxel.points.usd import usd_cloud

READERS: dict[str, Callable[[Path], PointCloud]] = {
    ".ply": ply_cloud,
    ".obj": obj_cloud,
    ".stl": stl_cloud,
    **dict.fromkeys((".xyz", ".txt", ".pts", ".csv"), xyz_cloud),
    **dict.fromkeys((".glb", ".gltf"), gltf_cloud),
    **dict.fromkeys((".usd", ".usda", ".usdc", ".usdz"), usd_cloud),
}


def read_cloud(path: Path) -> PointCloud:
    """The cloud in a file, by its suffix."""
    suffix = path.suffix.lower()
    if suffix in COMPRESSED:
        raise LoadError(f'{path.name}: "{suffix}" files have compressed splats, which are not read; {STANDARD}')
    reader = READERS.get(suffix)
    if reader is None:
        found = f'"{path.suffix}" files are' if path.suffix else "a file without suffix is"
        raise LoadError(
            f"{path.name}: {found} not known; Phyxel reads {', '.join(READERS)}: convert it to one of these"
        )
    with np.errstate(all="ignore"):  # numbers that make no sense are refused by name, not warned of
        return reader(path)
