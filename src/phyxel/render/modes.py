"""Pictures and videos of modes of vibration: the body bent by each, over a ghost of its rest shape."""

from __future__ import annotations

import math
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import warp as wp
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageFont

from phyxel.body.vibration import Vibrations
from phyxel.contact.table import ColliderTable
from phyxel.device import as_vectors
from phyxel.render.camera import Camera
from phyxel.render.files import encode, save_png
from phyxel.render.shot import Shot
from phyxel.rotation import Floats
from phyxel.surface.motion import Motion
from phyxel.surface.surfels import Surfels
from phyxel.surface.walls import Walls

Pixels = NDArray[np.uint8]
Report = Callable[[str, float], None]

MOST_PICTURES = 12
"""On a sheet; of more modes the lowest are drawn."""
COLUMNS = {1: 1, 2: 2, 3: 3, 4: 2, 5: 3, 6: 3, 7: 4, 8: 4, 9: 3, 10: 4, 11: 4, 12: 4}
"""of a sheet with so many pictures"""
PANEL, FLATTEST, TALLEST = 440, 0.7, 1.25
"""Width of one picture on the sheet [pixels], and what its height over the width may be."""
FRAME = (960, 540)
"""Width and height of the video [pixels]."""
PERIODS, PERIOD, FPS = 2, 1.0, 30
"""How often a mode swings in the video, in what time [s] whatever its frequency, and frames a second."""
GHOST, GHOST_COLOR = 0.2, (0.16, 0.18, 0.24)
"""Opacity and colour of the rest shape."""
INK = (38, 42, 48)
"""Display bytes of words."""
STILL_TO_FAR = ((0.30, 0.38, 0.60), (0.25, 0.58, 0.68), (0.55, 0.74, 0.50), (0.95, 0.78, 0.35), (0.88, 0.28, 0.18))
"""Colours of surfels that do not move, that move a quarter, half, ... as far as the one that moves furthest."""


class ModePictures:
    """Draws the modes of a body from one direction."""

    def __init__(self, found: Vibrations, direction: Sequence[float], fov: float = 32.0) -> None:
        self.found, self._direction, self._fov = found, np.asarray(direction, float), fov
        self._device = found.body.space.device
        self._walls = ColliderTable([found.body.unit], wp.float32, self._device)
        self._lower, self._upper = self._box()

    def sheet(self, report: Report = lambda stage, share: None) -> Pixels:
        """The first modes side by side, each with its frequency, (height, width, 3) bytes."""
        count = min(len(self.found), MOST_PICTURES)
        shot, ghost = self._shot(self._panel(), 2)
        panels = []
        for mode in range(count):
            report("drawing", mode / count)
            picture = self._over(ghost, shot, self._surfels(mode), mode, 1.0, supersample=2)
            panels.append(_labelled(picture, self.caption(mode), 22))
        columns = COLUMNS[count]
        panels += [np.full_like(panels[0], 255)] * (-count % columns)
        rows = [np.concatenate(panels[first : first + columns], axis=1) for first in range(0, len(panels), columns)]
        return np.concatenate(rows)

    def video(self, path: Path, report: Report = lambda stage, share: None) -> None:
        """All modes one after the other, each for two periods, slowed or sped up to be seen."""
        shot, ghost = self._shot(FRAME, 1)
        frames = round(PERIODS * PERIOD * FPS)
        with tempfile.TemporaryDirectory() as folder:
            pictures = []
            for mode in range(len(self.found)):
                surfels = self._surfels(mode)
                for frame in range(frames):
                    report("filming", (mode + frame / frames) / len(self.found))
                    swing = math.sin(2 * math.pi * PERIODS * frame / frames)
                    picture = self._over(ghost, shot, surfels, mode, swing, supersample=1)
                    pictures.append(Path(folder) / f"{mode:03d}-{frame:03d}.png")
                    save_png(_labelled(picture, self.caption(mode), 30), pictures[-1])
            encode(pictures, path, FPS)

    def caption(self, mode: int) -> str:
        return f"{mode + 1}:  {self.found.frequencies[mode]:.4g} Hz"

    def _box(self) -> tuple[Floats, Floats]:
        """Around the body at rest and in all modes that are drawn, swung either way [m]."""
        body, skin = self.found.body, self.found.body.space.at_skin.values
        places = [body.placed_cloud()]
        for mode in range(min(len(self.found), MOST_PICTURES)):
            places += [places[0] + body.unit * (skin @ self.found.bent(mode, swing)) for swing in (-1.0, 1.0)]
        return np.min(places, axis=(0, 1)), np.max(places, axis=(0, 1))

    def _panel(self) -> tuple[int, int]:
        """Width and height of a picture that suits the body [pixels]."""
        view = Camera(eye=self._direction, target=np.zeros(3))
        right, up, _ = np.abs(view.axes) @ (self._upper - self._lower)
        return PANEL, round(PANEL * float(np.clip(up / right, FLATTEST, TALLEST)))

    def _shot(self, size: tuple[int, int], supersample: int) -> tuple[Shot, Pixels]:
        """Where it is drawn, and a picture of the body at rest."""
        camera = Camera.framing(self._lower, self._upper, self._direction, *size, self._fov, margin=1.05)
        shot = Shot(camera, "studio", self._device.alias)
        rest = self._follow(self._surfels(None), np.zeros_like(self.found.body.birth))
        return shot, shot.draw_surfels(rest, supersample)

    def _surfels(self, mode: int | None) -> Surfels:
        """In the colours of how far a mode moves them; of none, a ghost's."""
        body, space = self.found.body, self.found.body.space
        rest = body.appearance.rest()
        colors = np.broadcast_to(GHOST_COLOR, rest.positions.shape)
        if mode is not None:
            way = np.linalg.norm(space.at_skin.values @ self.found.coefficients[:, :, mode], axis=1)
            steps = np.linspace(0, 1, len(STILL_TO_FAR))
            colors = np.stack([np.interp(way / way.max(), steps, c) for c in np.transpose(STILL_TO_FAR)], axis=1)
        return Surfels(replace(rest, colors=colors), space.nodes, self._device, body.sees, space.at_skin)

    def _follow(self, surfels: Surfels, u: Floats) -> Surfels:
        body = self.found.body
        walls = Walls(self._walls.table, self._device)
        surfels.follow(Motion(as_vectors(u, self._device), body.unit, body.born.centre, walls))
        return surfels

    def _over(self, ghost: Pixels, shot: Shot, surfels: Surfels, mode: int, swing: float, supersample: int) -> Pixels:
        """A picture of the body in a mode, with the rest shape seen through it."""
        picture = shot.draw_surfels(self._follow(surfels, self.found.bent(mode, swing)), supersample)
        return np.round((1 - GHOST) * picture[..., :3] + GHOST * ghost[..., :3]).astype(np.uint8)


def _labelled(picture: Pixels, text: str, size: int) -> Pixels:
    """A picture with a line of text at its lower edge, in the middle."""
    image = Image.fromarray(np.ascontiguousarray(picture))
    height, width = picture.shape[:2]
    ImageDraw.Draw(image).text((width / 2, height - size), text, INK, ImageFont.load_default(size), anchor="ms")
    return np.asarray(image)
