# mypy: disable-error-code="valid-type,no-untyped-def,no-untyped-call,empty-body"
"""Translucent things: Gaussian puffs, sorted by depth and laid over each other front to back (G04 §5.2, physics 14.3).

A puff at x with axes A (3 × 3) is the density exp(−|A⁻¹(y − x)|²/2). On the screen it is a Gaussian of covariance
Σ = T Tᵀ, T the projected axes [pixels], widened by a third of a pixel so that none falls between pixels. What a puff
takes of the light behind it is 1 − e^−τ, with the optical depth

    τ(p) = weight · (focal / depth)² / cos θ · k(q) / (2π √det Σ),   q = (p − p₀)ᵀ Σ⁻¹ (p − p₀),

θ the angle between ray and axis, so that ∫ τ over the area across the rays is the weight [m²]: extinction [1/m] times
volume of a piece of fog, optical depth times area of a piece of film. Depths add up: behind puffs that fill a slab with
extinction κ the light is e^−κs over the way s, whatever their number. k(q) = (e^−q/2 − e^−3) / (1 − 4 e^−3) is a
Gaussian that ends at q = 6.
"""

from __future__ import annotations

import math
from functools import cache
from typing import Any, NamedTuple

import numpy as np
import warp as wp
from numpy.typing import NDArray

from phyxel.device import launch
from phyxel.render.camera import View
from phyxel.render.rows import ROW_OPTIONS
from phyxel.render.tiles import (
    SPLIT_FROM,
    TileGrid,
    TileLists,
    first_pixel,
    grown,
    launch_over,
    past_pixel,
    pixel_count,
    pixel_rect,
    place_of,
    tiles_touched,
    untiled,
)

wp.set_module_options(ROW_OPTIONS)

NUMBERS = 12
"""kept of a puff on the screen: place (2), form (3), nearness, depth of its middle, color (3), two to fill up"""
_NUMBERS = wp.constant(NUMBERS)
LOW_PASS = wp.constant(0.3)
"""Variance added on the screen [pixels²]."""
REACH = wp.constant(6.0)
"""q at which a puff ends."""
PEAK = wp.constant(1.0 / (2.0 * math.pi * (1.0 - 4.0 * math.exp(-3.0))))
"""Factor of e^−q/2 − e^−3 in τ, so that the integral over the screen is the weight."""


class Puffs(NamedTuple):
    """Arrays of shape (n, ...), on the host or the device."""

    positions: Any
    """[m], (n, 3)"""
    axes: Any
    """A as columns [m], (n, 3, 3)"""
    weights: Any
    """[m²], (n,)"""
    colors: Any
    """linear light, 1 is white, (n, 3)"""

    @staticmethod
    def joined(parts: list[Puffs]) -> Puffs:
        """All of several."""
        return Puffs(*(np.concatenate(arrays) for arrays in zip(*parts, strict=True)))

    def on(self, device: wp.Device) -> Puffs:
        """As Warp arrays in single precision."""
        kinds = (wp.vec3, wp.mat33, wp.float32, wp.vec3)

        def moved(array: Any, kind: Any) -> wp.array:
            there = isinstance(array, wp.array)
            return array if there else wp.array(np.ascontiguousarray(array, np.float32), dtype=kind, device=device)

        return Puffs(*map(moved, self, kinds))


@wp.kernel
def find_depths(
    first: int,
    positions: wp.array(dtype=wp.vec3),
    view: View,
    depths: wp.array(dtype=float),
    order: wp.array(dtype=int),
):
    """How far before the eye each puff is; one that is not finite counts as behind it."""
    i = first + wp.tid()
    depth = wp.dot(positions[i] - view.eye, view.forward)
    depths[i] = wp.where(wp.isfinite(depth), depth, -1.0)
    order[i] = i


@wp.kernel
def project_puffs(
    first: int,
    order: wp.array(dtype=int),
    positions: wp.array(dtype=wp.vec3),
    axes: wp.array(dtype=wp.mat33),
    weights: wp.array(dtype=float),
    colors: wp.array(dtype=wp.vec3),
    view: View,
    grid: TileGrid,
    puffs: wp.array(dtype=float),
    rects: wp.array(dtype=wp.vec4i),
    counts: wp.array(dtype=int),
):
    """Put the puffs on the screen, the nearest first: place, Σ⁻¹ and the largest τ of each (physics 14.3)."""
    i = first + wp.tid()
    j = order[i]
    rects[i] = wp.vec4i(0, 0, 0, 0)
    counts[i] = 0
    offset = positions[j] - view.eye
    depth = wp.dot(offset, view.forward)
    A = axes[j]
    size = wp.sqrt(wp.ddot(A, A))
    if not (depth > 2.0 * size and depth < 1.0e18 and weights[j] > 0.0):
        return
    per_depth = view.focal / depth
    right = wp.dot(offset, view.right) / depth
    up = wp.dot(offset, view.up) / depth
    across = per_depth * (wp.transpose(A) * (view.right - right * view.forward))
    down = -per_depth * (wp.transpose(A) * (view.up - up * view.forward))
    xx = wp.dot(across, across) + LOW_PASS
    yy = wp.dot(down, down) + LOW_PASS
    xy = wp.dot(across, down)
    det = xx * yy - xy * xy
    x = view.center[0] + view.focal * right
    y = view.center[1] - view.focal * up
    wide = wp.sqrt(REACH * xx)
    tall = wp.sqrt(REACH * yy)
    rect = pixel_rect(grid, x - wide - 0.5, y - tall - 0.5, x + wide - 0.5, y + tall - 0.5)
    slant = wp.sqrt(1.0 + right * right + up * up)
    thick = weights[j] * per_depth * per_depth * slant * PEAK / wp.sqrt(det)
    if not (rect[0] < rect[2] and rect[1] < rect[3] and thick < 1.0e18):
        return
    rects[i] = rect
    counts[i] = tiles_touched(rect)
    at = _NUMBERS * i
    # Form: -q/2 as a power of two.
    half = -0.5 * 1.442695041 / det
    puffs[at] = x
    puffs[at + 1] = y
    puffs[at + 2] = half * yy
    puffs[at + 3] = -2.0 * half * xy
    puffs[at + 4] = half * xx
    puffs[at + 5] = 1.0 / depth
    puffs[at + 6] = thick
    for c in range(3):
        puffs[at + 7 + c] = colors[j][c]


# 2^z for z <= 0: a whole part that goes into the exponent, and a polynomial that is exact at 0 for the rest.
@wp.func_native("""
#if defined(__CUDA_ARCH__)
    enum { W = 1, H = 1 };
    #define PHYXEL_AS_FLOAT(bits) __int_as_float(bits)
#else
    enum { W = 16, H = 16 };
    #define PHYXEL_AS_FLOAT(bits) __builtin_bit_cast(float, bits)
#endif
    float through[W * H], red[W * H], green[W * H], blue[W * H];
    for (int k = 0; k < W * H; ++k) {
        through[k] = 1.0f;
        red[k] = green[k] = blue[k] = 0.0f;
    }
    for (int item = begin; item < end; ++item) {
        const float* f = puffs.data + 12 * items.data[item];
        const int* rect = (const int*)rects.data + 4 * items.data[item];
        const int from = rect[1] > y0 ? rect[1] - y0 : 0, to = rect[3] < y0 + H ? rect[3] - y0 : H;
        if (rect[0] >= x0 + W || rect[2] <= x0) continue;
        for (int row = from; row < to; ++row) {
            const float dx = (float)x0 + 0.5f - f[0], dy = (float)(y0 + row) + 0.5f - f[1];
            const float* near = front.data + p + row * 16;
            float *T = through + row * W, *R = red + row * W, *G = green + row * W, *B = blue + row * W;
            for (int k = 0; k < W; ++k) {
                const float x = dx + (float)k;
                float z = f[2] * x * x + f[3] * x * dy + f[4] * dy * dy;
                z = z > -8.0f ? z : -8.0f;
                int whole = (int)(z - 0.5f);
                float r = z - (float)whole;
                float power = 1.0f + r * (0.693147182f + r * (0.240226507f + r * (0.0555041f
                    + r * (0.00961813f + r * 0.00133336f))));
                const float bell = power * PHYXEL_AS_FLOAT((whole + 127) << 23) - 0.049787068f;
                float tau = f[6] * (bell > 0.0f ? bell : 0.0f);
                tau = near[k] > f[5] ? 0.0f : tau;
                tau = tau < 60.0f ? tau : 60.0f;
                z = -1.442695041f * tau;
                whole = (int)(z - 0.5f);
                r = z - (float)whole;
                power = 1.0f + r * (0.693147182f + r * (0.240226507f + r * (0.0555041f
                    + r * (0.00961813f + r * 0.00133336f))));
                const float left = T[k] * power * PHYXEL_AS_FLOAT((whole + 127) << 23);
                const float taken = T[k] - left;
                R[k] += taken * f[7];
                G[k] += taken * f[8];
                B[k] += taken * f[9];
                T[k] = left;
            }
        }
        if ((item & 31) == 31) {
            float most = 0.0f;
            for (int k = 0; k < W * H; ++k) most = through[k] > most ? through[k] : most;
            if (most < 1e-3f) break;
        }
    }
    for (int k = 0; k < W * H; ++k) {
        haze.data[4 * (p + k)] = red[k];
        haze.data[4 * (p + k) + 1] = green[k];
        haze.data[4 * (p + k) + 2] = blue[k];
        haze.data[4 * (p + k) + 3] = through[k];
    }
""")
def blend_tile(
    p: int,
    x0: int,
    y0: int,
    begin: int,
    end: int,
    items: wp.array(dtype=int),
    rects: wp.array(dtype=wp.vec4i),
    puffs: wp.array(dtype=float),
    front: wp.array(dtype=float),
    haze: wp.array(dtype=float),
):
    """Light of the puffs of a tile and what they let through, e^−Στ (physics 14.3), in its 256 pixels from p on, or in
    pixel p on CUDA."""


@wp.kernel
def blend_puffs(
    first: int,
    grid: TileGrid,
    starts: wp.array(dtype=int),
    items: wp.array(dtype=int),
    rects: wp.array(dtype=wp.vec4i),
    puffs: wp.array(dtype=float),
    front: wp.array(dtype=float),
    haze: wp.array(dtype=float),
):
    """The pixels of a thread: a tile on the CPU, one on CUDA."""
    i = first + wp.tid()
    p = first_pixel(grid, i)
    if p < past_pixel(grid, i):
        corner = place_of(grid, p)
        blend_tile(p, corner[0], corner[1], starts[p >> 8], starts[(p >> 8) + 1], items, rects, puffs, front, haze)


class HazeLayer:
    """Puffs before solid surfaces, kept tile after tile."""

    def __init__(self, grid: Any, device: wp.Device) -> None:
        self.device, self.grid = device, grid
        self._haze = wp.zeros(4 * pixel_count(grid), dtype=float, device=device)
        self._lists = TileLists(grid.width, grid.height, device)
        self._depths = wp.empty(0, dtype=float, device=device)
        self._order = wp.empty(0, dtype=int, device=device)
        self._puffs = wp.empty(0, dtype=float, device=device)
        self._rects = wp.empty(0, dtype=wp.vec4i, device=device)

    def draw(self, puffs: Puffs, view: Any, front: wp.array) -> NDArray[np.float32]:
        """Linear light of the puffs and the share of light from behind that they let through, (height, width, 4).
        `front` is one over the depth [1/m] of solid surfaces, in the layout of a `DiscLayer`, 0 for nothing."""
        puffs = puffs.on(self.device)
        count, split = len(puffs.positions), len(puffs.positions) > SPLIT_FROM // 2
        self._depths, self._order = grown(self._depths, 2 * count), grown(self._order, 2 * count)
        self._puffs, self._rects = grown(self._puffs, NUMBERS * count), grown(self._rects, count)
        launch(find_depths, count, [puffs.positions, view, self._depths, self._order], self.device, split)
        if count:
            wp.utils.radix_sort_pairs(self._depths, self._order, count)
        inputs = [self._order, *puffs, view, self.grid, self._puffs, self._rects, self._lists.counts_for(count)]
        launch(project_puffs, count, inputs, self.device, split)
        self._lists.fill(self._rects, count)
        lists = [self._lists.starts, self._lists.items, self._rects]
        launch_over(blend_puffs, self.grid, [self.grid, *lists, self._puffs, front, self._haze], self.device)
        return untiled(self.grid, self._haze.numpy().reshape(-1, 4))


def laid_over(picture: NDArray[np.uint8], haze: NDArray[np.float32]) -> NDArray[np.uint8]:
    """A picture (height, width, 4) seen through what `HazeLayer.draw` gave."""
    light, through = haze[..., :3], haze[..., 3:]
    alpha = picture[..., 3:] / np.float32(255)
    opaque = 1 - through * (1 - alpha)
    seen = (light + through * alpha * light_of_bytes()[picture[..., :3]]) / np.maximum(opaque, 1e-6)
    color = _bytes_of_light()[np.rint(np.clip(seen, 0, 1) * 4095).astype(np.int32)]
    return np.concatenate([color, np.rint(255 * opaque).astype(np.uint8)], axis=-1)


@cache
def light_of_bytes() -> NDArray[np.float32]:
    """Linear light for each display byte (IEC 61966-2-1)."""
    c = np.arange(256) / 255
    return np.where(c <= 0.04045, c / 12.92, ((c + 0.055) / 1.055) ** 2.4).astype(np.float32)


@cache
def _bytes_of_light() -> NDArray[np.uint8]:
    """Display byte for light in steps of 1/4095."""
    light = np.linspace(0, 1, 4096)
    display = np.where(light <= 0.0031308, 12.92 * light, 1.055 * light ** (1 / 2.4) - 0.055)
    return np.rint(255 * display).astype(np.uint8)
