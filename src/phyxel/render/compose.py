# mypy: disable-error-code="valid-type,no-untyped-def,no-untyped-call"
"""The finished picture: object over ground over background, as bytes."""

from __future__ import annotations

from typing import Any

import numpy as np
import warp as wp
from numpy.typing import NDArray

from phyxel.device import KERNEL_OPTIONS, launch
from phyxel.errors import PhyxelError
from phyxel.render.camera import Camera
from phyxel.render.discs import DiscLayer, View, make_view, ray_through
from phyxel.render.look import Color
from phyxel.render.shadow import GroundMap, ShadowMap
from phyxel.render.tiles import Grid, block_corner

wp.set_module_options(KERNEL_OPTIONS)

Background = str | Color | None
NO_GROUND = -1.0e30
CODES = 8192
_CODES = wp.constant(CODES)


@wp.struct
class Backdrop:
    """What is behind the object, colors linear. `opacity` 0 leaves only the shadow, as black of some alpha."""

    top: wp.vec3
    bottom: wp.vec3
    floor: wp.vec3
    opacity: float
    level: float
    """height of the ground [m]; far below everything if there is none"""
    center: wp.vec3
    spread: float
    """the ground fades into the background over some times this [m]"""


def linear(color: Color) -> wp.vec3:
    """Light for a display color in 0..1 (IEC 61966-2-1)."""
    c = np.clip(np.asarray(color, float).reshape(3), 0, 1)
    return wp.vec3(*np.where(c <= 0.04045, c / 12.92, ((c + 0.055) / 1.055) ** 2.4))


def make_backdrop(background: Background, ground: float | None, camera: Camera) -> Any:
    """Depends on the camera alone, not on what moves before it: a still backdrop stays still."""
    backdrop = Backdrop()
    backdrop.opacity = 0.0 if background is None else 1.0
    if isinstance(background, str):
        if background != "studio":
            raise PhyxelError(f'background "{background}": give "studio", a color (r, g, b) in 0..1, or None')
        backdrop.top, backdrop.bottom = linear((0.74, 0.78, 0.83)), linear((0.96, 0.96, 0.955))
        backdrop.floor = linear((0.955, 0.95, 0.945))
    else:
        backdrop.top = backdrop.bottom = backdrop.floor = linear(background or (0.0, 0.0, 0.0))
    backdrop.level = NO_GROUND if ground is None else float(ground)
    backdrop.center = wp.vec3(*np.asarray(camera.target, float))
    backdrop.spread = 1.2 * float(np.linalg.norm(np.subtract(camera.target, camera.eye)))
    return backdrop


def shadow_on_screen(camera: Camera, place: Any) -> wp.vec4i:
    """Pixels (left, top, right, bottom) where the shadows of a map can be seen: all if they come close to the eye."""
    corners = [(x, place.level, z) for x in (place.lower[0], place.upper[0]) for z in (place.lower[1], place.upper[1])]
    right, up, forward = camera.axes @ (np.array(corners) - np.asarray(camera.eye, float)).T
    if forward.min() < 1e-3 * abs(forward).max():
        return wp.vec4i(0, 0, camera.width, camera.height)
    x = np.clip(camera.width / 2 + camera.focal * right / forward, 0, camera.width)
    y = np.clip(camera.height / 2 - camera.focal * up / forward, 0, camera.height)
    return wp.vec4i(int(x.min()), int(y.min()), int(np.ceil(x.max())), int(np.ceil(y.max())))


def srgb_codes(device: wp.Device) -> wp.array:
    """Bytes for light in 0..1 in steps of 1/8191 (IEC 61966-2-1): fine enough to reach every byte."""
    light = np.linspace(0.0, 1.0, CODES)
    display = np.where(light <= 0.0031308, 12.92 * light, 1.055 * light ** (1 / 2.4) - 0.055)
    return wp.array(np.rint(255 * display).astype(np.uint8), dtype=wp.uint8, device=device)


@wp.func
def _ground_light(ground: GroundMap, light: wp.array(dtype=wp.vec3), hit: wp.vec3) -> wp.vec3:
    """Part of the light that reaches a place on the ground, by color: bilinear in the map, all of it outside."""
    x = (hit[0] - ground.corner[0]) / ground.texel - 0.5
    z = (hit[2] - ground.corner[1]) / ground.texel - 0.5
    limit = float(ground.texels - 1)
    if not (x > 0.0 and z > 0.0 and x < limit and z < limit):
        return wp.vec3(1.0, 1.0, 1.0)
    column = int(x)
    row = int(z)
    fx = x - float(column)
    t = row * ground.texels + column
    upper = light[t] + fx * (light[t + 1] - light[t])
    t += ground.texels
    lower = light[t] + fx * (light[t + 1] - light[t])
    return upper + (z - float(row)) * (lower - upper)


@wp.func
def _ground_seen(view: View, backdrop: Backdrop, ray: wp.vec3) -> wp.vec4:
    """Where a ray meets the ground [m], and how much of the ground is seen there: all near by, nothing far away."""
    drop = view.eye[1] - backdrop.level
    if not (ray[1] < 0.0 and drop > 0.0 and drop < 1.0e20):
        return wp.vec4(0.0, 0.0, 0.0, 0.0)
    hit = view.eye - (drop / ray[1]) * ray
    dx = hit[0] - backdrop.center[0]
    dz = hit[2] - backdrop.center[2]
    ss = backdrop.spread * backdrop.spread
    return wp.vec4(hit[0], hit[1], hit[2], ss / (ss + dx * dx + dz * dz))


@wp.func
def _backdrop_color(grid: Grid, backdrop: Backdrop, y: int, presence: float, light: wp.vec3) -> wp.vec4:
    """Linear color of ground over background in a pixel of row y, and its opacity."""
    down = float(y) / float(grid.height)
    color = backdrop.top + down * (backdrop.bottom - backdrop.top)
    color = color + presence * (wp.cw_mul(backdrop.floor, light) - color)
    brightest = wp.max(wp.max(light[0], light[1]), light[2])
    alpha = wp.max(backdrop.opacity, presence * (1.0 - brightest))
    return wp.vec4(color[0], color[1], color[2], alpha)


@wp.func
def _farther_neighbors(
    grid: Grid,
    nearness: wp.array(dtype=float),
    coverage: wp.array(dtype=float),
    colors: wp.array(dtype=wp.vec4),
    x: int,
    y: int,
) -> wp.vec4:
    """Mean color of the pixels about (x, y) that are well covered by something farther away; the fourth is their count."""
    limit = 0.985 * nearness[y * grid.pitch + x]
    total = wp.vec4(0.0, 0.0, 0.0, 0.0)
    row = wp.max(y - 1, 0)
    while row <= wp.min(y + 1, grid.height - 1):
        column = wp.max(x - 1, 0)
        while column <= wp.min(x + 1, grid.width - 1):
            p = row * grid.pitch + column
            if coverage[p] > 0.9 and nearness[p] < limit:
                total += colors[p]
            column += 1
        row += 1
    return total


@wp.func
def _byte(codes: wp.array(dtype=wp.uint8), light: float) -> wp.uint32:
    return wp.uint32(codes[int(wp.clamp(light, 0.0, 1.0) * float(_CODES - 1) + 0.5)])


@wp.func
def _encode(codes: wp.array(dtype=wp.uint8), color: wp.vec4) -> wp.uint32:
    """Red, green, blue, alpha as the four bytes of a little-endian word."""
    alpha = wp.uint32(wp.clamp(color[3], 0.0, 1.0) * 255.0 + 0.5)
    rgb = _byte(codes, color[0]) | (_byte(codes, color[1]) << wp.uint32(8)) | (_byte(codes, color[2]) << wp.uint32(16))
    return rgb | (alpha << wp.uint32(24))


@wp.kernel
def paint_backdrop(
    first: int,
    grid: Grid,
    view: View,
    backdrop: Backdrop,
    codes: wp.array(dtype=wp.uint8),
    picture: wp.array(dtype=wp.uint32),
):
    """One pixel of the scene without object or shadow."""
    i = first + wp.tid()
    y = i // grid.pitch
    seen = _ground_seen(view, backdrop, ray_through(view, i - y * grid.pitch, y))
    picture[i] = _encode(codes, _backdrop_color(grid, backdrop, y, seen[3], wp.vec3(1.0, 1.0, 1.0)))


@wp.kernel
def compose_pixels(
    first: int,
    grid: Grid,
    view: View,
    backdrop: Backdrop,
    ground: GroundMap,
    light: wp.array(dtype=wp.vec3),
    shadowed: wp.vec4i,
    empty: wp.array(dtype=wp.uint32),
    nearness: wp.array(dtype=float),
    coverage: wp.array(dtype=float),
    colors: wp.array(dtype=wp.vec4),
    codes: wp.array(dtype=wp.uint8),
    picture: wp.array(dtype=wp.uint32),
):
    """One block of the picture. A pixel the object covers in part shows what is behind: farther parts of it or the
    backdrop. A pixel without object or shadow is that of the `empty` scene."""
    i = first + wp.tid()
    corner = block_corner(grid, i)
    end_x = wp.min(corner[0] + grid.block, grid.width)
    end_y = wp.min(corner[1] + grid.block, grid.height)
    no_shadow = corner[0] >= shadowed[2] or corner[1] >= shadowed[3] or end_x <= shadowed[0] or end_y <= shadowed[1]
    y = int(corner[1])
    while y < end_y:
        x = int(corner[0])
        while x < end_x:
            p = y * grid.pitch + x
            covered = coverage[p]
            if covered == 0.0 and no_shadow:
                picture[p] = empty[p]
            elif covered == 1.0:
                picture[p] = _encode(codes, colors[p])
            else:
                behind = wp.vec4(0.0, 0.0, 0.0, 0.0)
                color = wp.vec4(0.0, 0.0, 0.0, 0.0)
                if covered > 0.0:
                    color = colors[p]
                    behind = _farther_neighbors(grid, nearness, coverage, colors, x, y)
                if behind[3] > 0.0:
                    behind = behind / behind[3]
                else:
                    seen = _ground_seen(view, backdrop, ray_through(view, x, y))
                    reaching = wp.vec3(1.0, 1.0, 1.0)
                    if seen[3] > 0.0:
                        reaching = _ground_light(ground, light, wp.vec3(seen[0], seen[1], seen[2]))
                    behind = _backdrop_color(grid, backdrop, y, seen[3], reaching)
                rest = (1.0 - covered) * behind[3]
                alpha = covered + rest
                color = (covered * color + rest * behind) / wp.max(alpha, 1.0e-6)
                color[3] = alpha
                picture[p] = _encode(codes, color)
            x += 1
        y += 1


class Canvas:
    """The bytes of the picture, and those of the scene without the object, which stay while the camera does."""

    def __init__(self, grid: Any, device: wp.Device) -> None:
        self.device, self.grid = device, grid
        self.words = wp.empty(grid.pitch * grid.height, dtype=wp.uint32, device=device)
        self.colors = wp.empty(grid.pitch * grid.height, dtype=wp.vec4, device=device)
        """linear light of the object"""
        self._empty = wp.empty(grid.pitch * grid.height, dtype=wp.uint32, device=device)
        self._empty_for: object = None
        self._codes = srgb_codes(device)

    def compose(
        self,
        layer: DiscLayer,
        camera: Camera,
        background: Background,
        ground: float | None,
        place: Any,
        shadows: ShadowMap,
    ) -> None:
        """Write the lit layer over the backdrop into `words`; the shadows' map lies at `place`."""
        view = make_view(camera)
        backdrop = make_backdrop(background, ground, camera)
        key = repr((camera, background, ground))
        if key != self._empty_for:
            inputs = [self.grid, view, backdrop, self._codes, self._empty]
            launch(paint_backdrop, self._empty.size, inputs, self.device)
            self._empty_for = key
        shadowed = wp.vec4i(0, 0, 0, 0) if ground is None else shadow_on_screen(camera, place)
        inputs = [self.grid, view, backdrop, place, shadows.light, shadowed, self._empty]
        pixels = [layer.nearness, layer.coverage, self.colors]
        launch(compose_pixels, self.grid.blocks, [*inputs, *pixels, self._codes, self.words], self.device)

    def bytes(self) -> NDArray[np.uint8]:
        """The picture, (height, width, 4); a view on the CPU."""
        pixels = self.words.numpy().view(np.uint8).reshape(self.grid.height, self.grid.pitch, 4)
        return pixels[:, : self.grid.width]
