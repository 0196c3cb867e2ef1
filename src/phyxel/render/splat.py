"""The renderer: surfels in, a picture out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import warp as wp
from numpy.typing import NDArray

from phyxel.device import pick
from phyxel.material.look import LOOKS, Look
from phyxel.render.blend import DiscLayer
from phyxel.render.camera import Camera, make_view
from phyxel.render.cast import Vectors, make_surfels, stuff_table
from phyxel.render.cast import marks as whole_body
from phyxel.render.compose import NO_GROUND, Background, Canvas
from phyxel.render.shade import Light, light_direction, make_studio
from phyxel.render.shadow import ShadowMap, bounds_of, place_map
from phyxel.render.tiles import make_grid

STUDIO_LIGHT, MATTE = Light(), LOOKS["matte"]
"""Unless it is told."""
FINE_SHADOW, COARSE_SHADOW = 256, 128
"""Texels along the map of shadows."""
SMALL = 400_000
"""Pixels of a picture up to which a coarse map does: 640 × 480 and less."""


class Renderer:
    """Draws surfels, and keeps its buffers from one picture to the next of the same size."""

    def __init__(self, device: str | wp.Device | None = None) -> None:
        self.device = pick(device)
        self._shadows = ShadowMap(FINE_SHADOW, self.device)
        self.buffers: tuple[DiscLayer, Canvas] | None = None
        self._size = (0, 0)
        self._looks: tuple[Look, ...] = ()
        self._table = stuff_table([MATTE], self.device)

    def render(
        self,
        positions: Vectors,
        axes_a: Vectors,
        axes_b: Vectors,
        colors: Vectors,
        camera: Camera,
        *,
        ground: float | None = None,
        background: Background = "studio",
        light: Light = STUDIO_LIGHT,
        look: Look | Sequence[Look] = MATTE,
        marks: Any = None,
        size: float | None = None,
        supersample: int = 1,
        seen: int | None = None,
    ) -> NDArray[np.uint8]:
        """A picture, (height, width, 4) bytes red, green, blue, alpha (not premultiplied).

        A surfel is an ellipse about its position [m] with half axes a and b [m], seen from the side a × b points to, or
        from both if it is marked as a sheet's; its color is a display color in 0..1. All four arrays are (N, 3)
        float32, or Warp arrays of vec3 on the renderer's device, which are then not copied. Surfels that are not finite
        are left out.

        ground: height y of a ground plane [m] that takes shadows. background: "studio", a display color, or None for
        transparent. look: one for all, or a table of looks and `marks` (N,) that say which each surfel has
        (`cast.marks`), and whether it is part of a sheet. size: of a thing [m], by which shadows soften, light sinks
        in and crevices are dim; if left out, that of all together. supersample: draw at so many times the size and
        average, for stills. seen: so many of the surfels are seen, the others only cast shadows.
        """
        looks = (look,) if isinstance(look, Look) else tuple(look)
        marks = whole_body(0, len(positions)) if marks is None else marks
        surfels = make_surfels(positions, axes_a, axes_b, colors, marks, self.device)
        if looks != self._looks:
            self._looks, self._table = looks, stuff_table(looks, self.device)
        camera = camera.scaled(supersample)
        layer, canvas = self._buffers_for(camera)
        low, high = bounds_of(surfels.positions, self.device)
        size = max(float(np.max(high - low)) if size is None else size, 1e-9)
        level = float(low[1]) if ground is None else float(ground)
        place = place_map(low, high, level, light_direction(light), self._shadows.texels, size)
        cut = NO_GROUND if ground is None else level
        studio = make_studio(light, size, cut)
        self._shadows.draw(surfels, self._table, place)
        if ground is not None:
            self._shadows.light_up(place)
        drawn = surfels if seen is None else type(surfels)(*(array[:seen] for array in surfels))
        layer.draw(drawn, self._table, make_view(camera), studio, place, self._shadows, cut)
        canvas.compose(layer, camera, background, ground, place, self._shadows)
        picture = canvas.bytes()
        return picture if supersample == 1 else averaged(picture, supersample)

    @property
    def solid(self) -> tuple[Any, wp.array]:
        """The last picture's grid, and one over the depth [1/m] of the surface in its pixels, 0 for none."""
        assert self.buffers is not None
        return self.buffers[0].grid, self.buffers[0].front

    def _buffers_for(self, camera: Camera) -> tuple[DiscLayer, Canvas]:
        size = (camera.width, camera.height)
        if self.buffers is None or size != self._size:
            grid = make_grid(*size, self.device)
            self.buffers = DiscLayer(grid, self.device), Canvas(grid, self.device)
            self._shadows = ShadowMap(FINE_SHADOW if size[0] * size[1] > SMALL else COARSE_SHADOW, self.device)
            self._size = size
        return self.buffers


def averaged(picture: NDArray[np.uint8], factor: int) -> NDArray[np.uint8]:
    """Mean over squares of pixels, weighted by alpha and in squared values, which is near enough to linear light."""
    height, width = picture.shape[0] // factor, picture.shape[1] // factor
    squares = picture.reshape(height, factor, width, factor, 4).astype(np.float32)
    alpha = squares[..., 3:]
    light = (squares[..., :3] ** 2 * alpha).sum(axis=(1, 3)) / np.maximum(alpha.sum(axis=(1, 3)), 1.0)
    mean = np.concatenate([np.sqrt(light), alpha.mean(axis=(1, 3))], axis=-1)
    return np.rint(mean).astype(np.uint8)
