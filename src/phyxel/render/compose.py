# mypy: disable-error-code="valid-type,no-untyped-def,no-untyped-call,empty-body"
"""The finished picture: object over a ground that takes shadows over a background, as bytes."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import warp as wp
from numpy.typing import NDArray

from phyxel.colors import color_of
from phyxel.device import launch
from phyxel.render.blend import DiscLayer
from phyxel.render.camera import Camera, View, make_view, ray_through
from phyxel.render.rows import ROW_OPTIONS
from phyxel.render.shade import Color
from phyxel.render.shadow import GroundMap, ShadowMap
from phyxel.render.tiles import TileGrid, first_pixel, launch_over, past_pixel, pixel_of, place_of

wp.set_module_options(ROW_OPTIONS)

Background = str | Color | None
NO_GROUND = -1.0e30
"""Height of the ground where there is none [m]: far below anything that is drawn."""
ROOMS: dict[str, tuple[Color, Color, Color]] = {
    "studio": ((0.74, 0.78, 0.83), (0.96, 0.96, 0.955), (0.955, 0.95, 0.945)),
    "dark": ((0.155, 0.165, 0.19), (0.075, 0.08, 0.095), (0.115, 0.12, 0.135)),
}
"""Display colors of the background at the top and at the bottom, and of the floor."""
CODES = 8192
"""Steps of light for which display bytes are kept: the darkest byte still has two."""
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
    if background is not None and background not in ROOMS:
        background = color_of("background", background, ROOMS)
    backdrop = Backdrop()
    backdrop.dither = int(isinstance(background, str))
    backdrop.opacity = 0.0 if background is None else 1.0
    top, bottom, floor = ROOMS[background] if isinstance(background, str) else [background or (0.0, 0.0, 0.0)] * 3
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
    x = camera.width / 2 + camera.focal * right / forward
    y = camera.height / 2 - camera.focal * up / forward
    left, end_x = (min(max(float(edge), 0.0), camera.width) for edge in (x.min(), x.max()))
    top, end_y = (min(max(float(edge), 0.0), camera.height) for edge in (y.min(), y.max()))
    return wp.vec4i(int(left), int(top), math.ceil(end_x), math.ceil(end_y))


@wp.func
def ground_hit(view: View, backdrop: Backdrop, ray: wp.vec3) -> wp.vec3:
    """Where a ray meets the ground: x, z [m], and 1, or 0 if it does not."""
    drop = view.eye[1] - backdrop.level
    if not (ray[1] < 0.0 and drop > 0.0 and drop < 1.0e20):
        return wp.vec3(0.0, 0.0, 0.0)
    depth = -drop / ray[1]
    return wp.vec3(view.eye[0] + depth * ray[0], view.eye[2] + depth * ray[2], 1.0)


@wp.func
def ground_light(ground: GroundMap, light: wp.array(dtype=wp.vec3), hit: wp.vec3) -> wp.vec3:
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


@wp.func
def backdrop_color(backdrop: Backdrop, y: int, hit: wp.vec3, light: wp.vec3) -> wp.vec4:
    """Linear color of a pixel of row y without the object, and its opacity. The ground fades with distance."""
    color = backdrop.top + float(y) * backdrop.gradient
    dx = hit[0] - backdrop.center[0]
    dz = hit[1] - backdrop.center[2]
    ss = backdrop.spread * backdrop.spread
    presence = hit[2] * ss / (ss + dx * dx + dz * dz)
    color = color + presence * (wp.cw_mul(backdrop.floor, light) - color)
    alpha = wp.max(backdrop.opacity, presence * (1.0 - wp.max(light)))
    return wp.vec4(color[0], color[1], color[2], alpha)


def srgb_codes(device: wp.Device) -> wp.array:
    """256 times the display byte for light in 0..1 in steps of 1/8191 (IEC 61966-2-1)."""
    light = np.linspace(0.0, 1.0, CODES)
    display = np.where(light <= 0.0031308, 12.92 * light, 1.055 * light ** (1 / 2.4) - 0.055)
    return wp.array(np.rint(255 * 256 * display).astype(np.uint32), dtype=wp.uint32, device=device)


# A row of pixels at once, in loops without branches, so that the compiler makes vector instructions of them.
@wp.func_native("""
    const float* covered = coverage.data + p;
    int object = 0, open = 0, edges = 0, dark = 0;
    for (int k = 0; k < lanes; ++k) {
        object |= covered[k] > 0.0f;
        open |= covered[k] == 0.0f;
        edges |= covered[k] > 0.0f && covered[k] < 1.0f ? 1 << k : 0;
    }
    float hit_x[16], hit_z[16], u[16], v[16], lit[3][16];
    int shaded[16] = {}, at[16];
    if (open && y >= shadowed[1] && y < shadowed[3] && x < shadowed[2] && x + lanes > shadowed[0]) {
        const float drop = view.eye[1] - backdrop.level, limit = (float)(ground.texels - 1);
        const float up = (view.center[1] - (float)y - 0.5f) * view.per_focal;
        for (int k = 0; k < lanes; ++k) {
            const float right = ((float)(x + k) + 0.5f - view.center[0]) * view.per_focal;
            const float rx = view.forward[0] + right * view.right[0] + up * view.up[0];
            const float ry = view.forward[1] + right * view.right[1] + up * view.up[1];
            const float rz = view.forward[2] + right * view.right[2] + up * view.up[2];
            const float depth = -drop / (ry < 0.0f ? ry : -1e-20f);
            hit_x[k] = view.eye[0] + depth * rx;
            hit_z[k] = view.eye[2] + depth * rz;
            u[k] = (hit_x[k] - ground.corner[0]) * ground.per_metre - 0.5f;
            v[k] = (hit_z[k] - ground.corner[1]) * ground.per_metre - 0.5f;
            const int inside = (ry < 0.0f) & (drop > 0.0f) & (u[k] > 0.0f) & (v[k] > 0.0f)
                & (u[k] < limit) & (v[k] < limit);
            u[k] = inside ? u[k] : 0.0f;
            v[k] = inside ? v[k] : 0.0f;
            at[k] = (int)v[k] * ground.texels + (int)u[k];
            shaded[k] = inside & (covered[k] == 0.0f) & (darkness.data[at[k]] > 2e-3f);
            dark |= shaded[k];
        }
    }
    if (!(object | dark)) return 0;
    const float* own = colors.data + (p >> 8) * 768 + (p & 255);
    float color[3][16], alpha[16];
    for (int k = 0; k < lanes; ++k) {
        for (int c = 0; c < 3; ++c) color[c][k] = own[256 * c + k];
        alpha[k] = 1.0f;
    }
    if (dark) {
        const float* map = (const float*)light.data;
        const int below = 3 * ground.texels;
        const float ss = backdrop.spread * backdrop.spread;
        for (int k = 0; k < lanes; ++k) {
            const float fu = u[k] - (float)(int)u[k], fv = v[k] - (float)(int)v[k];
            for (int c = 0; c < 3; ++c) {
                const int t = 3 * at[k] + c;
                const float upper = map[t] + fu * (map[t + 3] - map[t]);
                const float lower = map[t + below] + fu * (map[t + below + 3] - map[t + below]);
                lit[c][k] = upper + fv * (lower - upper);
            }
        }
        for (int k = 0; k < lanes; ++k) {
            const float dx = hit_x[k] - backdrop.center[0], dz = hit_z[k] - backdrop.center[2];
            const float presence = ss / (ss + dx * dx + dz * dz);
            float most = lit[0][k] > lit[1][k] ? lit[0][k] : lit[1][k];
            most = most > lit[2][k] ? most : lit[2][k];
            const float shadow = presence * (1.0f - most);
            alpha[k] = shaded[k] ? (shadow > backdrop.opacity ? shadow : backdrop.opacity) : 1.0f;
            for (int c = 0; c < 3; ++c) {
                const float far = backdrop.top[c] + (float)y * backdrop.gradient[c];
                const float mixed = far + presence * (backdrop.floor[c] * lit[c][k] - far);
                color[c][k] = shaded[k] ? mixed : color[c][k];
            }
        }
    }
    unsigned word[16];
    for (int k = 0; k < lanes; ++k) {
        const int mixed = (x + k) ^ y;
        const int pattern = ((mixed & 1) << 3) | ((y & 1) << 2) | (mixed & 2) | ((y & 2) >> 1);
        const unsigned round_up = shaded[k] ? 128 + backdrop.dither * (16 * pattern - 120) : 128;
        unsigned bytes = (unsigned)(int)(alpha[k] * 255.0f + 0.5f) << 24;
        for (int c = 0; c < 3; ++c) {
            float value = color[c][k] > 0.0f ? color[c][k] : 0.0f;
            value = value < 1.0f ? value : 1.0f;
            bytes |= ((codes.data[(int)(value * 8191.0f + 0.5f)] + round_up) >> 8) << (8 * c);
        }
        word[k] = bytes;
    }
    unsigned* to = picture.data + y * width + x;
    const int count = x + lanes < width ? lanes : width - x;
    for (int k = 0; k < count; ++k) to[k] = covered[k] > 0.0f || shaded[k] ? word[k] : to[k];
    return edges;
""")
def _compose_row(
    x: int,
    y: int,
    p: int,
    lanes: int,
    width: int,
    view: View,
    backdrop: Backdrop,
    ground: GroundMap,
    light: wp.array(dtype=wp.vec3),
    darkness: wp.array(dtype=float),
    shadowed: wp.vec4i,
    coverage: wp.array(dtype=float),
    colors: wp.array(dtype=float),
    codes: wp.array(dtype=wp.uint32),
    picture: wp.array(dtype=wp.uint32),
) -> int:
    """Write the pixels x, x + 1, ... of row y that show the object or a shadow; return which of them, as bits, the
    object covers in part: their color is still to be mixed."""


@wp.func
def _object_color(colors: wp.array(dtype=float), p: int) -> wp.vec4:
    """Linear color of the object in a pixel, and 1."""
    q = (p >> 8) * 768 + (p & 255)
    return wp.vec4(colors[q], colors[q + 256], colors[q + 512], 1.0)


@wp.func
def _byte(codes: wp.array(dtype=wp.uint32), light: float, round_up: wp.uint32) -> wp.uint32:
    return (codes[int(wp.clamp(light, 0.0, 1.0) * float(_CODES - 1) + 0.5)] + round_up) >> wp.uint32(8)


@wp.func
def _threshold(backdrop: Backdrop, x: int, y: int) -> wp.uint32:
    """256ths added before a value is cut to a byte: half, or a 4 x 4 pattern that hides the steps of a gradient."""
    mixed = x ^ y
    pattern = ((mixed & 1) << 3) | ((y & 1) << 2) | (mixed & 2) | ((y & 2) >> 1)
    return wp.uint32(128 + backdrop.dither * (16 * pattern - 120))


@wp.func
def _encode(codes: wp.array(dtype=wp.uint32), color: wp.vec4, round_up: wp.uint32) -> wp.uint32:
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
    grid: TileGrid,
    view: View,
    backdrop: Backdrop,
    codes: wp.array(dtype=wp.uint32),
    picture: wp.array(dtype=wp.uint32),
):
    """One pixel of the scene without object or shadow."""
    i = first + wp.tid()
    y = i // grid.width
    x = i - y * grid.width
    hit = ground_hit(view, backdrop, ray_through(view, x, y))
    color = backdrop_color(backdrop, y, hit, wp.vec3(1.0, 1.0, 1.0))
    picture[i] = _encode(codes, color, _threshold(backdrop, x, y))


@wp.kernel
def compose_pixels(
    first: int,
    grid: TileGrid,
    view: View,
    backdrop: Backdrop,
    ground: GroundMap,
    light: wp.array(dtype=wp.vec3),
    darkness: wp.array(dtype=float),
    shadowed: wp.vec4i,
    starts: wp.array(dtype=int),
    coverage: wp.array(dtype=float),
    colors: wp.array(dtype=float),
    codes: wp.array(dtype=wp.uint32),
    picture: wp.array(dtype=wp.uint32),
):
    """Draw the object and its shadow over a picture of the empty scene. A pixel the object covers in part shows the
    backdrop as well. Shadows are in the rectangle `shadowed` of the screen."""
    i = first + wp.tid()
    p = int(first_pixel(grid, i))
    stop = past_pixel(grid, i)
    corner = place_of(grid, p & -256)
    beside = corner[0] >= shadowed[2] or corner[1] >= shadowed[3]
    beside = beside or corner[0] + 16 <= shadowed[0] or corner[1] + 16 <= shadowed[1]
    if p >= stop or (beside and starts[p >> 8] == starts[(p >> 8) + 1]):
        return
    lanes = wp.min(grid.span, 16)
    y = corner[1] + ((p >> 4) & 15)
    while p < stop and y < grid.height:
        x = corner[0] + (p & 15)
        edges = int(0)
        if x < grid.width:
            edges = _compose_row(
                x, y, p, lanes, grid.width, view, backdrop,
                ground, light, darkness, shadowed, coverage, colors, codes, picture,
            )  # fmt: skip
        while edges != 0 and x < grid.width:
            if edges & 1 == 1:
                q = pixel_of(grid, x, y)
                hit = ground_hit(view, backdrop, ray_through(view, x, y))
                behind = backdrop_color(backdrop, y, hit, ground_light(ground, light, hit))
                color = _over(_object_color(colors, q), coverage[q], behind)
                picture[y * grid.width + x] = _encode(codes, color, _threshold(backdrop, x, y))
            edges = edges >> 1
            x += 1
        p += lanes
        y += 1


class Canvas:
    """The bytes of the picture, and those of the scene without the object, which stay while the camera does."""

    def __init__(self, grid: Any, device: wp.Device) -> None:
        self.device, self.grid = device, grid
        self._empty = wp.empty(grid.width * grid.height, dtype=wp.uint32, device=device)
        self._empty_for: object = None
        self._backdrop: Any = None
        self.words = self._empty
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
        key = (camera, background, ground)
        if key != self._empty_for:
            self._backdrop = make_backdrop(background, ground, camera)
            inputs = [self.grid, view, self._backdrop, self._codes, self._empty]
            launch(paint_backdrop, self._empty.size, inputs, self.device)
            self._empty_for = key
        if self.device.is_cuda:
            self.words = wp.clone(self._empty)
        else:  # in memory of NumPy's, which keeps it for the next picture; Warp would get new pages from the system
            self.words = wp.array(self._empty.numpy().copy(), dtype=wp.uint32, device=self.device, copy=False)
        shadowed = wp.vec4i(0, 0, 0, 0) if ground is None else shadow_on_screen(camera, place)
        inputs = [self.grid, view, self._backdrop, place, shadows.light, shadows.darkness, shadowed]
        pixels = [layer.lists.starts, layer.coverage, layer.colors]
        launch_over(compose_pixels, self.grid, [*inputs, *pixels, self._codes, self.words], self.device)

    def bytes(self) -> NDArray[np.uint8]:
        """The picture, (height, width, 4); the next one is another array."""
        return self.words.numpy().view(np.uint8).reshape(self.grid.height, self.grid.width, 4)
