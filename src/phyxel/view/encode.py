# mypy: disable-error-code="valid-type,no-untyped-def,no-untyped-call"
"""Surfels as the 16 bytes each that pages draw, made on the device.

Little-endian: u16 x, y, z (0..65535 in a box); u16 value (0..65535 on the legend); i16 u, v of the normal on an
octahedron; u8 half axes a >= b, r = finest · 2^((c - 255)/16), rounded up; u8 angle of a, 0..255 for 0..pi; u8, 0.
The angle counts from t1 to t2: with the normal n as it is decoded, t1 = n' × n / |n' × n|, n' = (0, 1, 0) where
|n.y| < 0.9, else (1, 0, 0), and t2 = n × t1.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import warp as wp

from phyxel.device import KERNEL_OPTIONS, launch
from phyxel.render.tiles import SPLIT_FROM, grown
from phyxel.surface.discs import Discs, Floats

wp.set_module_options(KERNEL_OPTIONS)

FULL = wp.constant(65535.0)
"""Steps along a side of the box, and on the legend."""
CHUNKS = 256
"""Parts of the surfels that are each bounded by one thread."""
PER_OCTAVE = wp.constant(16.0)
"""Codes of half axes from one to its double."""
TOO_LARGE = wp.constant(2.1e-4)
"""By which a logarithm may be too large."""
LEAST = wp.constant(1.0e-10)
"""Square of the shortest half axis that is told from nothing, over that of the finest."""
CLOSE = wp.constant(1.0e-4)
"""To the bound between two frames, where that of the normal as it is coded decides."""


@wp.struct
class RecordScale:
    """What numbers of records stand for."""

    lower: wp.vec3
    """corner of the box [m]"""
    per_metre: wp.vec3
    """steps along its sides"""
    per_axis: float
    """one over the half axis that is coded as 255 [1/m]"""
    low: float
    """value at the lower end of the legend"""
    per_value: float
    """steps along it; 0 where there are no values"""


@wp.kernel
def bound_surfels(
    first: int,
    position: wp.array(dtype=wp.vec3),
    axis_a: wp.array(dtype=wp.vec3),
    axis_b: wp.array(dtype=wp.vec3),
    lower: wp.array(dtype=wp.vec3),
    upper: wp.array(dtype=wp.vec3),
    longest: wp.array(dtype=float),
):
    """The box around one part of the surfels, and √(a² + b²) of the largest, which no half axis exceeds."""
    i = first + wp.tid()
    count = position.shape[0]
    parts = lower.shape[0]
    k = int((wp.int64(count) * wp.int64(i)) / wp.int64(parts))
    stop = int((wp.int64(count) * wp.int64(i + 1)) / wp.int64(parts))
    low = wp.vec3(wp.inf, wp.inf, wp.inf)
    high = wp.vec3(-wp.inf, -wp.inf, -wp.inf)
    most = float(0.0)
    while k < stop:
        low = wp.min(low, position[k])
        high = wp.max(high, position[k])
        most = wp.max(most, wp.length_sq(axis_a[k]) + wp.length_sq(axis_b[k]))
        k += 1
    lower[i] = low
    upper[i] = high
    longest[i] = wp.sqrt(most)


@wp.func
def step_of(x: float, steps: float) -> wp.uint32:
    """The nearest of the steps 0..`steps`."""
    return wp.uint32(wp.clamp(x, 0.0, steps) + 0.5)


@wp.func
def signed_step(x: float) -> int:
    """x in -1..1 as the nearest of -32767..32767."""
    return int(wp.floor(32767.0 * x + 0.5))


@wp.func
def sign_of(x: float) -> float:
    return wp.where(x < 0.0, -1.0, 1.0)


@wp.func
def folded(n: wp.vec3) -> wp.vec2:
    """A direction on the octahedron |x| + |y| + |z| = 1, laid out on the square -1..1: its lower half around the
    upper one."""
    sum = wp.max(wp.abs(n[0]) + wp.abs(n[1]) + wp.abs(n[2]), 1.0e-30)
    u = n[0] / sum
    v = n[1] / sum
    under = wp.max(-n[2], 0.0) / sum
    return wp.vec2(u + sign_of(u) * under, v + sign_of(v) * under)


@wp.func
def stands_up(u: float, v: float) -> bool:
    """Whether |n.y| >= 0.9 for the normal n that is laid out there: as who decodes it finds."""
    z = 1.0 - wp.abs(u) - wp.abs(v)
    under = wp.max(-z, 0.0)
    x = u - sign_of(u) * under
    y = v - sign_of(v) * under
    return y * y >= 0.81 * (x * x + y * y + z * z)


@wp.func
def log2_above(x: float) -> float:
    """log2 x of a normal number above 0, at most 2.1e-4 too large and never too small: the bits of x are its exponent
    and its mantissa, of which a polynomial is the logarithm. Five times as fast as the exact one."""
    bits = wp.cast(x, int)
    m = wp.cast((bits & 8388607) | 1065353216, float)
    mantissa = -2.505514 + m * (4.04961689 + m * (-2.09940228 + m * (0.63551112 - m * 0.08001088)))
    return float((bits >> 23) - 127) + mantissa


@wp.func
def axis_code(log2_square: float) -> wp.uint32:
    """Code of a half axis by log2 of its square over that of the finest: never that of a smaller one."""
    return wp.uint32(wp.clamp(255.0 + 0.5 * PER_OCTAVE * log2_square, 0.0, 255.0) + 0.99999)


@wp.func
def half_angle(across: float, along: float) -> float:
    """½ atan2(across, along) over pi, in 0..1, to 0.01 degrees: for |t| <= 1 atan t is a polynomial."""
    t = wp.min(wp.abs(across), wp.abs(along)) / wp.max(wp.max(wp.abs(across), wp.abs(along)), 1.0e-30)
    s = t * t
    turn = t * (0.31809175 + s * (-0.10258056 + s * (0.04742183 - s * 0.01299537)))
    turn = wp.where(wp.abs(across) > wp.abs(along), 0.5 - turn, turn)
    turn = wp.where(along < 0.0, 1.0 - turn, turn)
    return 0.5 * wp.where(across < 0.0, 2.0 - turn, turn)


@wp.func
def record_of(x: wp.vec3, a: wp.vec3, b: wp.vec3, n: wp.vec3, value: float, scale: RecordScale) -> wp.vec4ui:
    """The 16 bytes. The principal axes of the ellipse a cos t + b sin t are those of a aᵀ + b bᵀ."""
    at = wp.cw_mul(x - scale.lower, scale.per_metre)
    place = folded(n)
    u = signed_step(place[0])
    v = signed_step(place[1])
    up = wp.abs(n[1]) >= 0.9
    if wp.abs(wp.abs(n[1]) - 0.9) < CLOSE:
        up = stands_up(float(u) / 32767.0, float(v) / 32767.0)
    # Neither t1 nor t2 has unit length: both have the same, which is left out at the end.
    t1 = wp.vec3(wp.where(up, 0.0, n[2]), wp.where(up, -n[2], 0.0), wp.where(up, n[1], -n[0]))
    t2 = wp.cross(n, t1)
    per_square = scale.per_axis * scale.per_axis / wp.length_sq(t1)
    a1 = wp.dot(a, t1)
    a2 = wp.dot(a, t2)
    b1 = wp.dot(b, t1)
    b2 = wp.dot(b, t2)
    mean = a1 * a1 + a2 * a2 + b1 * b1 + b2 * b2
    along = a1 * a1 + b1 * b1 - a2 * a2 - b2 * b2
    across = 2.0 * (a1 * a2 + b1 * b2)
    apart = wp.sqrt(along * along + across * across)
    # The half axes have the determinant of a and b as their product: no difference of nearly equal numbers.
    area = (a1 * b2 - a2 * b1) * per_square
    major = log2_above(wp.max(0.5 * per_square * (mean + apart), LEAST))
    minor = log2_above(wp.max(area * area, LEAST * LEAST)) - (major - TOO_LARGE)
    return wp.vec4ui(
        step_of(at[0], FULL) | (step_of(at[1], FULL) << wp.uint32(16)),
        step_of(at[2], FULL) | (step_of((value - scale.low) * scale.per_value, FULL) << wp.uint32(16)),
        wp.uint32(u & 65535) | (wp.uint32(v & 65535) << wp.uint32(16)),
        axis_code(major)
        | (axis_code(minor) << wp.uint32(8))
        | (step_of(255.0 * half_angle(across, along), 255.0) << wp.uint32(16)),
    )


@wp.kernel
def encode_surfels(
    first: int,
    position: wp.array(dtype=wp.vec3),
    axis_a: wp.array(dtype=wp.vec3),
    axis_b: wp.array(dtype=wp.vec3),
    normal: wp.array(dtype=wp.vec3),
    value: wp.array(dtype=float),
    scale: RecordScale,
    records: wp.array(dtype=wp.vec4ui),
):
    """The record of each surfel."""
    i = first + wp.tid()
    shown = scale.low
    if value.shape[0] > 0:
        shown = value[i]
    records[i] = record_of(position[i], axis_a[i], axis_b[i], normal[i], shown, scale)


@wp.kernel
def encode_colors(first: int, color: wp.array(dtype=wp.vec3), words: wp.array(dtype=wp.uint32)):
    """Red, green, blue in 0..1 as bytes, and 255."""
    i = first + wp.tid()
    c = 255.0 * color[i]
    words[i] = (
        step_of(c[0], 255.0)
        | (step_of(c[1], 255.0) << wp.uint32(8))
        | (step_of(c[2], 255.0) << wp.uint32(16))
        | (wp.uint32(255) << wp.uint32(24))
    )


@dataclass(frozen=True)
class Encoded:
    """Surfels as bytes, and what their numbers stand for."""

    records: bytes
    lower: Floats
    """[m], shape (3,)"""
    upper: Floats
    finest: float
    """[m]"""

    def about(self) -> dict[str, Any]:
        """For pages."""
        box = {"lower": self.lower.tolist(), "upper": self.upper.tolist()}
        return {"count": len(self.records) // 16, **box, "finest": self.finest}


class Encoder:
    """Encodes the surfels of one body again and again; its arrays grow but do not shrink."""

    def __init__(self, device: wp.Device) -> None:
        self._device = device
        self._records = wp.empty(0, dtype=wp.vec4ui, device=device)
        self._host = wp.empty(0, dtype=wp.vec4ui, device="cpu", pinned=True) if device.is_cuda else self._records
        self._words = wp.empty(0, dtype=wp.uint32, device=device)
        self._lower, self._upper = (wp.empty(CHUNKS, dtype=wp.vec3, device=device) for _ in range(2))
        self._longest = wp.empty(CHUNKS, dtype=float, device=device)
        self._none = wp.empty(0, dtype=float, device=device)

    def encode(self, discs: Discs, values: wp.array | None = None, range: tuple[float, float] = (0.0, 1.0)) -> Encoded:
        """Discs as they are now; `values` (m,) lie in `range` on the legend."""
        count = len(discs)
        if not count:
            return Encoded(b"", discs.origin, discs.origin, 1.0)
        lower, upper, finest = self._bounds(discs)
        extent = np.maximum(upper - lower, 1e-30)
        scale = RecordScale()
        scale.lower, scale.per_metre = wp.vec3(*lower), wp.vec3(*(65535.0 / extent))
        scale.per_axis, scale.low = 1 / finest, range[0]
        scale.per_value = 65535.0 / (range[1] - range[0])
        self._records = grown(self._records, count)
        fields = [discs.position, discs.axis_a, discs.axis_b, discs.normal, self._none if values is None else values]
        launch(encode_surfels, count, [*fields, scale, self._records], self._device, count > SPLIT_FROM // 8)
        return Encoded(self._read(count), discs.origin + lower, discs.origin + lower + extent, finest)

    def colors(self, color: wp.array) -> bytes:
        """Colours in 0..1 as four bytes each."""
        count = len(color)
        self._words = grown(self._words, count)
        launch(encode_colors, count, [color, self._words], self._device, count > SPLIT_FROM)
        return self._words.numpy()[:count].tobytes()

    def _bounds(self, discs: Discs) -> tuple[Floats, Floats, float]:
        """Corners of a box [m] about the origin of discs, in single precision, and their longest half axis [m]."""
        split = len(discs) > 2 * SPLIT_FROM
        bounds = [self._lower, self._upper, self._longest]
        launch(bound_surfels, CHUNKS, [discs.position, discs.axis_a, discs.axis_b, *bounds], self._device, split)
        lower, upper, longest = (array.numpy() for array in bounds)
        lower, upper = lower.min(axis=0).astype(np.float64), upper.max(axis=0).astype(np.float64)
        return lower, upper, max(float(longest.max()), 1e-30)

    def _read(self, count: int) -> bytes:
        if self._device.is_cuda:
            if self._host.size < count:
                self._host = wp.empty(self._records.size, dtype=wp.vec4ui, device="cpu", pinned=True)
            wp.copy(self._host, self._records, count=count)
            wp.synchronize_stream(self._device)
        else:
            self._host = self._records
        return self._host.numpy()[:count].tobytes()
