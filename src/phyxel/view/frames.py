"""The frames of a finished run as pages are shown them: from its point files, or else from its kept states."""

from __future__ import annotations

from functools import cached_property
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import warp as wp
from numpy.typing import NDArray

from phyxel import device as dev
from phyxel.contact.colliders import Collider, Ground
from phyxel.errors import CheckpointError, LoadError, PhyxelError
from phyxel.points.ply import read_ply
from phyxel.rotation import tangents
from phyxel.scene import Scene
from phyxel.surface.discs import Discs, disc_radii
from phyxel.view.encode import Encoder
from phyxel.view.figures import ColliderFigure, kept
from phyxel.view.messages import Blob, DrawnThing, Snapshot
from phyxel.view.snapshots import Snapshots

Floats = NDArray[np.floating]


class RunFrames(Protocol):
    """Frames of a run."""

    numbers: list[int]
    """of those that are there, ascending"""

    def snapshot(self, number: int, time: float) -> Snapshot:
        """What is seen in a frame; a `PhyxelError` if it cannot be read."""


def frames_of(folder: Path, scene: Scene, device: str | None) -> RunFrames:
    """The point files of a run, or else its states."""
    points = _numbered(folder / "frames", ".ply")
    if points:
        return PointFrames(points, scene, device)
    states = _numbered(folder / "checkpoints", ".npz")
    if states:
        return StateFrames(states, scene, device)
    raise PhyxelError(
        f'{folder}: this run has kept neither points nor states; run it again with points = "ply" or states = true'
    )


def _numbered(folder: Path, ending: str) -> dict[int, Path]:
    files = {int(path.stem): path for path in folder.glob(f"*{ending}") if path.stem.isdecimal()}
    return dict(sorted(files.items()))


class PointFrames:
    """Surfels from PLY files. These hold no sizes: discs are as large as is needed to cover the surface."""

    def __init__(self, files: dict[int, Path], scene: Scene, device: str | None) -> None:
        self._files, self._device = files, dev.pick(device)
        self.numbers = list(files)
        made = [part.collider(scene.folder) for part in scene.content.collider]
        self._ground = max((one.height for one in made if isinstance(one, Ground)), default=None)
        solid = [one for one in made if isinstance(one, Collider)]
        self._colliders = [ColliderFigure(one, self._device) for one in solid]
        self._look = scene.content.body[0].look
        self._encoder = Encoder(self._device)
        self._radii: dict[int, Floats] = {}
        """of as many discs"""
        self._size: float | None = None

    def snapshot(self, number: int, time: float) -> Snapshot:
        positions, normals, colors = read_surfels(self._files[number])
        encoded = self._encoder.encode(self._discs(positions, normals))
        if self._size is None:
            self._size = max(float(np.linalg.norm(np.ptp(positions, axis=0))), 1e-9)
        rgba = np.concatenate([colors, np.full((len(colors), 1), 255, np.uint8)], axis=1)
        blobs = {"records": Blob(encoded.records), "colors": kept(rgba.tobytes())}
        about = {"look": self._look, "sheet": False, "pose": None, "valued": False, "collider": False}
        part = DrawnThing("surfels", "surfels", encoded.about() | about, blobs)
        around = [figure.part(f"collider {k}", time) for k, figure in enumerate(self._colliders)]
        return Snapshot(self._about(number, time), (part, *around))

    def _about(self, number: int, time: float) -> dict[str, Any]:
        """What is said of a frame that nobody's hands are in."""
        about = {"frame": number, "time": time, "ground": self._ground, "size": self._size}
        return about | {"legend": None, "plane": None, "pins": [], "grabs": []}

    def _discs(self, positions: Floats, normals: Floats) -> Discs:
        count = len(positions)
        if count not in self._radii:
            self._radii = {count: disc_radii(positions) if count > 6 else np.full(count, 0.01)}
        origin = 0.5 * (positions.min(axis=0) + positions.max(axis=0))
        radius = self._radii[count][:, None]
        a, b = tangents(normals)
        fields = [positions - origin, radius * a, radius * b, normals]
        x, a, b, n = (wp.array(np.asarray(one, np.float32), dtype=wp.vec3, device=self._device) for one in fields)
        return Discs(x, a, b, n, n, origin)


def read_surfels(path: Path) -> tuple[Floats, Floats, NDArray[np.uint8]]:
    """Positions [m] in double, normals and colours (0..255) of a point file that a run wrote, each (m, 3)."""
    vertex = read_ply(path).get("vertex", {})
    try:
        x, n, color = (
            np.stack([np.asarray(vertex[name]) for name in names], axis=1)
            for names in (("x", "y", "z"), ("nx", "ny", "nz"), ("red", "green", "blue"))
        )
    except KeyError as error:
        raise LoadError(f"{path.name}: has no {error}; it is not a frame of a run") from None
    if not len(x) or not (np.isfinite(x).all() and np.isfinite(n).all()):
        raise LoadError(f"{path.name}: no points, or some that are nowhere")
    return x.astype(np.float64), n, color.astype(np.uint8)


class StateFrames:
    """The world itself, as it was in each frame that has a checkpoint."""

    def __init__(self, files: dict[int, Path], scene: Scene, device: str | None) -> None:
        self._files, self._scene, self._device = files, scene, device
        self.numbers = list(files)

    @cached_property
    def _sight(self) -> Snapshots:
        return Snapshots(self._scene.world(self._device))

    def snapshot(self, number: int, time: float) -> Snapshot:
        try:
            return self._restored(number)
        except CheckpointError:  # a world that is past an event cannot go back before it
            del self._sight
            return self._restored(number)

    def _restored(self, number: int) -> Snapshot:
        self._sight.world.restore(self._files[number], note=self._scene.fingerprint())
        return self._sight.snapshot(number, [], [])
