# mypy: disable-error-code="valid-type,no-untyped-def,no-untyped-call,empty-body"
"""The finished picture: object over ground over background, as bytes."""

from __future__ import annotations

from typing import Any

import numpy as np
import warp as wp
from numpy.typing import NDArray

from phyxel.device import KERNEL_OPTIONS, launch
from phyxel.errors import PhyxelError
from phyxel.render.blend import DiscLayer
from phyxel.render.camera import Camera
from phyxel.render.look import Color
from phyxel.render.shadow import GroundMap, ShadowMap
from phyxel.render.tiles import Grid, first_pixel, launch_over, past_pixel, pixel_of, place_of
from phyxel.render.view import View, make_view, ray_through

wp.set_module_options(KERNEL_OPTIONS)

Background = str | Color | None
NO_GROUND = -1.0e30
STUDIO: tuple[Color, Color, Color] = ((0.74, 0.78, 0.83), (0.96, 0.96, 0.955), (0.955, 0.95, 0.945))
"""Display colors of the studio: background at the top and at the bottom, floor."""
CODES = 8192
_CODES = wp.constant(CODES)


@wp.struct
class Backdrop:
    """What is behind the object, colors linear. `opacity` 0 leaves only the shadow, as black of some alpha."""

    top: wp.vec3
    gradient: wp.vec3
    """change of color from one row to the next below"""
    floor: wp.vec3
    opacity: float
    dither: int
    """1: hide the steps of gradients"""
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
    if isinstance(background, str) and background != "studio":
        raise PhyxelError(f'background "{background}": give "studio", a color (r, g, b) in 0..1, or None')
    backdrop = Backdrop()
    backdrop.dither = int(background == "studio")
    backdrop.opacity = 0.0 if background is None else 1.0
    top, bottom, floor = STUDIO if isinstance(background, str) else [background or (0.0, 0.0, 0.0)] * 3
    backdrop.top, backdrop.floor = linear(top), linear(floor)
    backdrop.gradient = (linear(bottom) - backdrop.top) / float(camera.height)
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
    """256 times the display byte for light in 0..1 in steps of 1/8191 (IEC 61966-2-1)."""
    light = np.linspace(0.0, 1.0, CODES)
    display = np.where(light <= 0.0031308, 12.92 * light, 1.055 * light ** (1 / 2.4) - 0.055)
    return wp.array(np.rint(255 * 256 * display).astype(np.uint16), dtype=wp.uint16, device=device)


@wp.func
def _ground_hit(view: View, backdrop: Backdrop, ray: wp.vec3) -> wp.vec3:
    """Where a ray meets the ground: x, z [m], and 1, or 0 if it does not."""
    drop = view.eye[1] - backdrop.level
    if not (ray[1] < 0.0 and drop > 0.0 and drop < 1.0e20):
        return wp.vec3(0.0, 0.0, 0.0)
    depth = -drop / ray[1]
    return wp.vec3(view.eye[0] + depth * ray[0], view.eye[2] + depth * ray[2], 1.0)


@wp.func
def _ground_light(ground: GroundMap, light: wp.array(dtype=wp.vec3), hit: wp.vec3) -> wp.vec3:
    """Part of the light that reaches a place on the ground, by color: bilinear in the map, all of it outside."""
    x = (hit[0] - ground.corner[0]) * ground.per_metre - 0.5
    z = (hit[1] - ground.corner[1]) * ground.per_metre - 0.5
    limit = float(ground.texels - 1)
    if not (hit[2] > 0.0 and x > 0.0 and z > 0.0 and x < limit and z < limit):
        return wp.vec3(1.0, 1.0, 1.0)
    column = int(x)
    row = int(z)
    t = row * ground.texels + column
    fx = x - float(column)
    upper = light[t] + fx * (light[t + 1] - light[t])
    t += ground.texels
    lower = light[t] + fx * (light[t + 1] - light[t])
    return upper + (z - float(row)) * (lower - upper)


# A row of pixels at once, without branches, so that the compiler makes vector instructions of it.
@wp.func_native("""
    const float drop = view.eye[1] - level;
    const float up = (view.center[1] - (float)y - 0.5f) * view.per_focal;
    const float limit = (float)(ground.texels - 1);
    int mask = 0;
    for (int k = 0; k < lanes; ++k) {
        const float right = ((float)(x + k) + 0.5f - view.center[0]) * view.per_focal;
        const float rx = view.forward[0] + right * view.right[0] + up * view.up[0];
        const float ry = view.forward[1] + right * view.right[1] + up * view.up[1];
        const float rz = view.forward[2] + right * view.right[2] + up * view.up[2];
        const float depth = -drop / (ry < 0.0f ? ry : -1e-20f);
        float u = (view.eye[0] + depth * rx - ground.corner[0]) * ground.per_metre - 0.5f;
        float v = (view.eye[2] + depth * rz - ground.corner[1]) * ground.per_metre - 0.5f;
        const bool inside = ry < 0.0f && drop > 0.0f && u > 0.0f && v > 0.0f && u < limit && v < limit;
        u = inside ? u : 0.0f;
        v = inside ? v : 0.0f;
        mask |= inside && darkness.data[(int)v * ground.texels + (int)u] > 2e-3f ? 1 << k : 0;
    }
    return mask;
""")
def _shadow_mask(
    x: int,
    y: int,
    lanes: int,
    view: View,
    level: float,
    ground: GroundMap,
    darkness: wp.array(dtype=float),
) -> int:
    """Which of the pixels x, x + 1, ... of row y see ground in shadow, as bits."""


@wp.func
def _backdrop_color(backdrop: Backdrop, y: int, hit: wp.vec3, light: wp.vec3) -> wp.vec4:
    """Linear color of a pixel of row y without the object, and its opacity. The ground fades with distance."""
    color = backdrop.top + float(y) * backdrop.gradient
    dx = hit[0] - backdrop.center[0]
    dz = hit[1] - backdrop.center[2]
    ss = backdrop.spread * backdrop.spread
    presence = hit[2] * ss / (ss + dx * dx + dz * dz)
    color = color + presence * (wp.cw_mul(backdrop.floor, light) - color)
    alpha = wp.max(backdrop.opacity, presence * (1.0 - wp.max(light)))
    return wp.vec4(color[0], color[1], color[2], alpha)


@wp.func
def _object_color(colors: wp.array(dtype=float), p: int) -> wp.vec4:
    """Linear color of the object in a pixel, and 1."""
    q = (p >> 8) * 768 + (p & 255)
    return wp.vec4(colors[q], colors[q + 256], colors[q + 512], 1.0)


@wp.func
def _behind_edge(
    grid: Grid,
    nearness: wp.array(dtype=float),
    coverage: wp.array(dtype=float),
    colors: wp.array(dtype=float),
    x: int,
    y: int,
    backdrop: wp.vec4,
) -> wp.vec4:
    """What is behind the object in a pixel it covers in part: farther parts of it if the pixels about show some, else
    the backdrop if they show it, else (a seam between parts close together) the object itself."""
    limit = 0.985 * nearness[pixel_of(grid, x, y)]
    farther = wp.vec4(0.0, 0.0, 0.0, 0.0)
    around = wp.vec4(0.0, 0.0, 0.0, 0.0)
    rim = wp.bool(False)
    row = wp.max(y - 1, 0)
    while row <= wp.min(y + 1, grid.height - 1):
        column = wp.max(x - 1, 0)
        while column <= wp.min(x + 1, grid.width - 1):
            p = pixel_of(grid, column, row)
            if coverage[p] == 0.0:
                rim = True
            else:
                around += _object_color(colors, p)
                if coverage[p] > 0.9 and nearness[p] < limit:
                    farther += _object_color(colors, p)
            column += 1
        row += 1
    if farther[3] > 0.0:
        return farther / farther[3]
    if rim:
        return backdrop
    return around / around[3]


@wp.func
def _byte(codes: wp.array(dtype=wp.uint16), light: float, round_up: wp.uint32) -> wp.uint32:
    return (wp.uint32(codes[int(wp.clamp(light, 0.0, 1.0) * float(_CODES - 1) + 0.5)]) + round_up) >> wp.uint32(8)


@wp.func
def _threshold(backdrop: Backdrop, x: int, y: int) -> wp.uint32:
    """256ths added before a value is cut to a byte: half, or a 4 x 4 pattern that hides the steps of a gradient."""
    mixed = x ^ y
    pattern = ((mixed & 1) << 3) | ((y & 1) << 2) | (mixed & 2) | ((y & 2) >> 1)
    return wp.uint32(128 + backdrop.dither * (16 * pattern - 120))


@wp.func
def _encode(codes: wp.array(dtype=wp.uint16), color: wp.vec4, round_up: wp.uint32) -> wp.uint32:
    """Red, green, blue, alpha as the four bytes of a little-endian word."""
    red = _byte(codes, color[0], round_up)
    green = _byte(codes, color[1], round_up) << wp.uint32(8)
    blue = _byte(codes, color[2], round_up) << wp.uint32(16)
    alpha = wp.uint32(wp.clamp(color[3], 0.0, 1.0) * 255.0 + 0.5) << wp.uint32(24)
    return red | green | blue | alpha


@wp.func
def _over(color: wp.vec4, covered: float, behind: wp.vec4) -> wp.vec4:
    """A color that covers part of a pixel, over another of some opacity."""
    rest = (1.0 - covered) * behind[3]
    alpha = covered + rest
    mixed = (covered * color + rest * behind) / wp.max(alpha, 1.0e-6)
    return wp.vec4(mixed[0], mixed[1], mixed[2], alpha)


@wp.kernel
def paint_backdrop(
    first: int,
    grid: Grid,
    view: View,
    backdrop: Backdrop,
    codes: wp.array(dtype=wp.uint16),
    picture: wp.array(dtype=wp.uint32),
):
    """One pixel of the scene without object or shadow."""
    i = first + wp.tid()
    y = i // grid.width
    x = i - y * grid.width
    hit = _ground_hit(view, backdrop, ray_through(view, x, y))
    color = _backdrop_color(backdrop, y, hit, wp.vec3(1.0, 1.0, 1.0))
    picture[i] = _encode(codes, color, _threshold(backdrop, x, y))


@wp.kernel
def compose_pixels(
    first: int,
    grid: Grid,
    view: View,
    backdrop: Backdrop,
    ground: GroundMap,
    light: wp.array(dtype=wp.vec3),
    darkness: wp.array(dtype=float),
    shadowed: wp.vec4i,
    starts: wp.array(dtype=int),
    nearness: wp.array(dtype=float),
    coverage: wp.array(dtype=float),
    colors: wp.array(dtype=float),
    codes: wp.array(dtype=wp.uint16),
    picture: wp.array(dtype=wp.uint32),
):
    """Draw the object and its shadow over a picture of the empty scene. A pixel the object covers in part shows what
    is behind: farther parts of it or the backdrop. Shadows are in the rectangle `shadowed` of the screen."""
    i = first + wp.tid()
    p = int(first_pixel(grid, i))
    stop = past_pixel(grid, i)
    corner = place_of(grid, p & -256)
    lanes = wp.min(grid.span, 16)
    beside = corner[0] >= shadowed[2] or corner[1] >= shadowed[3]
    beside = beside or corner[0] + 16 <= shadowed[0] or corner[1] + 16 <= shadowed[1]
    if p >= stop or (beside and starts[p >> 8] == starts[(p >> 8) + 1]):
        return
    shadows = int(0)
    while p < stop:
        covered = coverage[p]
        x = corner[0] + (p & 15)
        y = corner[1] + ((p >> 4) & 15)
        if p & (lanes - 1) == 0:
            shadows = 0
            if y >= shadowed[1] and y < shadowed[3] and x < shadowed[2] and x + lanes > shadowed[0]:
                shadows = _shadow_mask(x, y, lanes, view, backdrop.level, ground, darkness)
        if (covered > 0.0 or shadows & 1 == 1) and x < grid.width and y < grid.height:
            color = _object_color(colors, p)
            threshold = wp.uint32(128)
            if covered < 1.0:
                hit = _ground_hit(view, backdrop, ray_through(view, x, y))
                behind = _backdrop_color(backdrop, y, hit, _ground_light(ground, light, hit))
                if covered > 0.0:
                    behind = _behind_edge(grid, nearness, coverage, colors, x, y, behind)
                    behind = _over(color, covered, behind)
                color = behind
                threshold = _threshold(backdrop, x, y)
            picture[y * grid.width + x] = _encode(codes, color, threshold)
        shadows = shadows >> 1
        p += 1


class Canvas:
    """The bytes of the picture, and those of the scene without the object, which stay while the camera does."""

    def __init__(self, grid: Any, device: wp.Device) -> None:
        self.device, self.grid = device, grid
        self.words = wp.empty(grid.width * grid.height, dtype=wp.uint32, device=device)
        self._empty = wp.empty(grid.width * grid.height, dtype=wp.uint32, device=device)
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
        """Write the layer over the backdrop into `words`; the shadows' map lies at `place`."""
        view = make_view(camera)
        backdrop = make_backdrop(background, ground, camera)
        key = (camera, background, ground)
        if key != self._empty_for:
            inputs = [self.grid, view, backdrop, self._codes, self._empty]
            launch(paint_backdrop, self._empty.size, inputs, self.device)
            self._empty_for = key
        wp.copy(self.words, self._empty)
        shadowed = wp.vec4i(0, 0, 0, 0) if ground is None else shadow_on_screen(camera, place)
        inputs = [self.grid, view, backdrop, place, shadows.light, shadows.darkness, shadowed]
        pixels = [layer.lists.starts, layer.nearness, layer.coverage, layer.colors]
        launch_over(compose_pixels, self.grid, [*inputs, *pixels, self._codes, self.words], self.device)

    def bytes(self) -> NDArray[np.uint8]:
        """The picture, (height, width, 4); a view on the CPU."""
        return self.words.numpy().view(np.uint8).reshape(self.grid.height, self.grid.width, 4)
