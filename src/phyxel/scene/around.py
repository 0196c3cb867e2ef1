"""A sensible world around something bare: a scan or a shape, soft, over a ground."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np

from phyxel.body.resolution import USUAL_NODES, NodeCount
from phyxel.points.cloud import PointCloud
from phyxel.points.load import load
from phyxel.points.sheets import SURFACES
from phyxel.scene.scene import Scene
from phyxel.scene.toml import comment, written
from phyxel.solid.solid import CLOSING
from phyxel.units import length_text

SMALLEST, LARGEST = 0.01, 10.0
"""Extents [m]: a file beyond them has perhaps other units than metres."""
USUAL = 1.0
"""Extent that such a file is given, if it may be given another [m]."""
MOST_PARTICLES = 10_000
"""Particles of a surface."""
DENSITY, GRAVITY = 1000.0, 9.81
"""[kg/m³], [m/s²]"""
STIFFNESS = 60.0
"""Young's modulus over ρ g × height: it wobbles for everyone to see, and yet a cow stands on its legs"""
RINGING = 0.026
"""damping over the time √(height / STIFFNESS g) that a wave takes through it"""
GAP = 0.02
"""between a body that is set down and the ground, over its size"""
FALL, SHEET_FALL = 0.3, 0.3
"""How far a body is dropped, over its height: it is dented by √(2 FALL / STIFFNESS), a tenth of it. A sheet, which may
have no height, over its size."""
WATCHED, SHORTEST, LONGEST = 12.0, 1.5, 8.0
"""Time for which it is watched after it fell, over √(size / g), and within which limits [s]."""


@dataclass(frozen=True)
class Bare:
    """A scan or a built-in shape, and what is known of it; `units` and `up` as `load` takes them."""

    what: str
    """a file's name, or that of a shape"""
    file: Path | None = None
    units: str | None = None
    up: str | None = None

    @cached_property
    def cloud(self) -> PointCloud:
        return load(self.file or self.what, None, self.units, self.up)

    @cached_property
    def is_sheet(self) -> bool:
        """Whether it can only be a thin skin."""
        return self.what in SURFACES or encloses_nothing(self.cloud)

    @property
    def is_odd_in_size(self) -> bool:
        """Whether its numbers are perhaps no metres."""
        return not SMALLEST <= self.cloud.size <= LARGEST

    @property
    def height(self) -> float:
        """[m]"""
        return float(np.ptp(self.cloud.positions[:, 1]))

    @property
    def fall(self) -> float:
        """How far it is dropped [m]."""
        return SHEET_FALL * self.cloud.size if self.is_sheet else FALL * self.height

    def set_down(self, nodes: NodeCount | None = None, size: float | None = None) -> Scene:
        """Just above the ground, as large as something for hands, or of this `size` [m]."""
        size = USUAL if size is None and self.is_odd_in_size else size
        scaled = "" if size is None else f", shown {length_text(size)} large"
        title = f"{self._about}{scaled}, {self._kind}, on the ground"
        return self._scene(title, 10.0, GAP * (size or self.cloud.size), nodes, size)

    def dropped(self, nodes: NodeCount | None = None, seconds: float | None = None) -> Scene:
        """From above the ground, as large as it is, for so long that it comes to rest."""
        time = math.sqrt(2 * self.fall / GRAVITY)
        time += min(max(WATCHED * math.sqrt(self.cloud.size / GRAVITY), SHORTEST), LONGEST)
        title = f"{self._about}, {self._kind}, falls {length_text(self.fall)}"
        return self._scene(title, seconds or math.ceil(2 * time) / 2, self.fall, nodes, None)

    @property
    def _about(self) -> str:
        return f"{self.what}: {length_text(self.cloud.size)} large"

    @property
    def _kind(self) -> str:
        return "a thin skin" if self.is_sheet else "soft as jelly"

    def _scene(self, title: str, seconds: float, above: float, nodes: NodeCount | None, size: float | None) -> Scene:
        scale = 1.0 if size is None else size / self.cloud.size
        source = ("file", str(self.file.resolve())) if self.file else ("shape", self.what)
        told = [source, ("units", self.units), ("up", self.up)]
        lines = [comment(f"{self.what} in a world of its own").strip(), f"title = {written(title)}"]
        lines += [f"seconds = {seconds:g}", "", "[[body]]"]
        lines += [f"{key} = {written(word)}" for key, word in told if word is not None]
        lines += [f"size = {size:g}  # [m], its largest extent"] if size is not None else []
        lines += [f"at = {written([0.0, float(f'{above:.4g}'), 0.0])}  # [m], where the middle of its foot is"]
        lines += [f'look = "{"matte" if self.file and self.cloud.colors is not None else "gummy"}"']
        count = f"nodes = {written(nodes or USUAL_NODES)}"
        lines += self._thin() if self.is_sheet else [count, f"material = {self._soft(scale)}"]
        lines += ["", "[[collider]]", 'kind = "ground"', "friction = 0.7", ""]
        return Scene.parse("\n".join(lines), name=Path(self.what).stem, shown=self.what)

    def _soft(self, scale: float) -> str:
        height = scale * self.height
        young, damping = STIFFNESS * DENSITY * GRAVITY * height, RINGING * math.sqrt(height / (STIFFNESS * GRAVITY))
        return f"{{ young = {young:.3g}, poisson = 0.4, density = {DENSITY:g}, damping = {damping:.3g} }}"

    def _thin(self) -> list[str]:
        few = self.cloud.shape is None and len(self.cloud) > MOST_PARTICLES
        return ['model = "particles"', *([f"points = {MOST_PARTICLES}"] if few else [])]


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
