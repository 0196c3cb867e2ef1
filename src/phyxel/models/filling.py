# mypy: disable-error-code="valid-type,no-untyped-def"
"""The pressure of what a closed surface encloses, p = bulk (amount − V/V₀), of where the surface will be.

A pressure moves each particle by H_i p a_i (a_i = ∂V/∂x_i, its vector of area), and so the volume by p Σ H_i |a_i|².
Areas and V are taken where all leads if the filling presses with f as in the last step, so that at rest they are those
of the surface itself; as seen ahead by βv, the volume is larger by Σ a_i·βv_i:

    p = bulk (amount − (V + Σ a_i·(βv_i − H_i f_i))/V₀) / (1 + bulk/V₀ Σ H_i |a_i|²)

is what is left of it then: one number, found on the device, however stiff the filling is. Its forces add up to nothing,
and neither do they turn the surface.

A surface without links has nothing to keep neighbours side by side: areas that lean with them would press them apart,
and single particles would shoot out of creases. Each is pressed along its normal at rest then, by as much of its area
as looks that way.
"""

from __future__ import annotations

import numpy as np
import warp as wp
from numpy.typing import NDArray

from phyxel import device as dev
from phyxel.errors import PhyxelError
from phyxel.models.arrival import TINY, Arrival

wp.set_module_options(dev.KERNEL_OPTIONS)

Floats = NDArray[np.float64]

CHUNK = wp.constant(256)
"""Particles per partial sum."""
BULK, PER_VOLUME, AMOUNT = range(3)
"""Entries of the filling's numbers: bulk [Pa] times the unit [m], 1/V₀ [1/units³], and how much there is."""


def enclosed(x: Floats, faces: NDArray[np.integer]) -> float:
    """V within triangles (m, 3) of points (n, 3): a sixth of Σ a·(b × c), about one of them so that no digits go."""
    a, b, c = (x[faces[:, corner]] - x[0] for corner in range(3))
    return float(np.einsum("ma,ma->m", a, np.cross(b, c)).sum() / 6)


def is_closed(faces: NDArray[np.integer]) -> bool:
    """Whether every edge has a face on either side, that goes along it the other way."""
    start, end = faces.astype(np.int64).reshape(-1), np.roll(faces, -1, axis=1).astype(np.int64).reshape(-1)
    count = int(faces.max(initial=0)) + 1
    there, back = np.unique(start * count + end), np.unique(end * count + start)
    return len(there) == len(start) and np.array_equal(there, back)


@wp.kernel
def find_ends(
    first: int,
    X: wp.array(dtype=wp.vec3d),
    arrival: Arrival,
    P: wp.array(dtype=wp.vec3d),
    pressed: wp.array(dtype=wp.vec3d),
    x: wp.array(dtype=wp.vec3d),
):
    """Where each particle gets if links pull and the filling presses as they last did."""
    i = first + wp.tid()
    x[i] = X[i] + arrival.x[i] + arrival.A[i] * (P[i] + pressed[i])


@wp.kernel
def find_areas(
    first: int,
    start: wp.array(dtype=wp.int32),
    ring: wp.array(dtype=wp.vec2i),
    x: wp.array(dtype=wp.vec3d),
    area: wp.array(dtype=wp.vec3d),
):
    """a_i = ∂V/∂x_i = Σ x_j × x_k / 6 over the faces (i, j, k) around i, seen from i."""
    i = first + wp.tid()
    total = wp.vec3d()
    for f in range(start[i], start[i + 1]):
        total += wp.cross(x[ring[f][0]] - x[i], x[ring[f][1]] - x[i])
    area[i] = total / wp.float64(6.0)


@wp.kernel
def straighten(
    first: int,
    normal: wp.array(dtype=wp.vec3d),
    area: wp.array(dtype=wp.vec3d),
    along: wp.array(dtype=wp.vec3d),
):
    """As much of an area as looks along a normal."""
    i = first + wp.tid()
    along[i] = wp.max(wp.dot(area[i], normal[i]), wp.float64(0.0)) * normal[i]


@wp.kernel
def sum_chunks(
    first: int,
    n: int,
    arrival: Arrival,
    P: wp.array(dtype=wp.vec3d),
    pressed: wp.array(dtype=wp.vec3d),
    x: wp.array(dtype=wp.vec3d),
    area: wp.array(dtype=wp.vec3d),
    along: wp.array(dtype=wp.vec3d),
    partial: wp.array(dtype=wp.vec2d),
):
    """V = Σ x·a/3, about the first particle, with Σ a·(βv − H f); and Σ H |a|², of CHUNK particles each; of areas that
    are pressed along others, Σ H a·along.

    β is that of links, but no more than A/|B|: if a particle swings many times within a step, v leads far beyond where
    it ever gets, and the volume there says nothing."""
    chunk = first + wp.tid()
    volume = wp.float64(0.0)
    give = wp.float64(0.0)
    for i in range(chunk * CHUNK, wp.min(n, (chunk + 1) * CHUNK)):
        A = arrival.A[i]
        H = wp.min(arrival.H[i], wp.float64(2.0) * A)
        further = (H - A) * P[i] - A * pressed[i]
        if wp.float64(TINY) * H < H - A:
            further += ((H - A) / arrival.B[i]) * arrival.v[i]
        volume += wp.dot((x[i] - x[0]) / wp.float64(3.0) + further, area[i])
        give += H * wp.dot(area[i], along[i])
    partial[chunk] = wp.vec2d(volume, give)


@wp.kernel
def find_pressure(
    first: int,
    filling: wp.array(dtype=wp.float64),
    partial: wp.array(dtype=wp.vec2d),
    pressure: wp.array(dtype=wp.float64),
):
    """p times the unit, so that p a_i is a force in N/unit; one thread."""
    total = wp.vec2d()
    for chunk in range(partial.shape[0]):
        total += partial[chunk]
    per_volume = filling[PER_VOLUME]
    lack = filling[AMOUNT] - total[0] * per_volume
    pressure[0] = filling[BULK] * lack / (wp.float64(1.0) + filling[BULK] * per_volume * total[1])


@wp.kernel
def press(
    first: int,
    pressure: wp.array(dtype=wp.float64),
    area: wp.array(dtype=wp.vec3d),
    arrival: Arrival,
    pressed: wp.array(dtype=wp.vec3d),
):
    """Let p a_i act over the step."""
    i = first + wp.tid()
    force = pressure[0] * area[i]
    pressed[i] = force
    arrival.x[i] = arrival.x[i] + arrival.A[i] * force
    arrival.v[i] = arrival.v[i] + arrival.B[i] * force


class Filling:
    """What is in a closed surface of points X (n, 3) and faces (m, 3) [units]; `unit` in m. Of one without links, with
    the normals (n, 3) of its points."""

    def __init__(
        self,
        X: Floats,
        faces: NDArray[np.int32] | None,
        unit: float,
        device: wp.Device,
        normals: Floats | None = None,
    ) -> None:
        if faces is None or not is_closed(faces):
            raise PhyxelError(
                "a filling needs a closed surface, every edge between two faces; this one is open or has no faces"
            )
        volume = enclosed(X, faces)
        if volume < 0:  # faces that look inwards
            faces, volume = faces[:, ::-1], -volume
        if not volume > 0:
            raise PhyxelError("a filling needs a surface that encloses a volume; this one encloses none")
        self._faces, self._volume, self._unit = faces, volume, unit
        n = len(X)
        around = np.argsort(faces.reshape(-1), kind="stable")
        ring = np.stack([np.roll(faces, -1, axis=1).reshape(-1), np.roll(faces, -2, axis=1).reshape(-1)], axis=1)
        start = np.searchsorted(faces.reshape(-1)[around], np.arange(n + 1))
        self._start = wp.array(start.astype(np.int32), dtype=wp.int32, device=device)
        self._ring = wp.array(ring[around].astype(np.int32), dtype=wp.vec2i, device=device)
        self._X = wp.array(X, dtype=wp.vec3d, device=device)
        self._x, self._area = (wp.zeros(n, dtype=wp.vec3d, device=device) for _ in range(2))
        self._normal = None
        if normals is not None:
            unit_normals = normals / np.linalg.norm(normals, axis=1, keepdims=True)
            self._normal = wp.array(unit_normals, dtype=wp.vec3d, device=device)
        self._along = self._area if normals is None else wp.zeros(n, dtype=wp.vec3d, device=device)
        """what is pressed"""
        self._partial = wp.zeros(-(-n // int(CHUNK)), dtype=wp.vec2d, device=device)
        self._numbers = dev.Shared(3, wp.float64, device)
        self._pressure = wp.zeros(1, dtype=wp.float64, device=device)
        self.set(0.0, 1.0)

    def set(self, bulk: float, amount: float) -> None:
        """bulk [Pa], and how much there is, as a share of what fills it without pressure."""
        self._numbers.host[:] = bulk * self._unit, 1 / self._volume, amount
        self._numbers.push()

    def launches(self, arrival: Arrival, P: wp.array, pressed: wp.array) -> list[dev.Launch]:
        """Find p and add what it does to `arrival`. `pressed` holds its forces p a_i, (n,) of vec3d [N/unit], in the
        step before and then in this one."""
        n, chunks, area, along = len(self._x), len(self._partial), self._area, self._along
        straight = [] if self._normal is None else [dev.Launch(straighten, n, [self._normal, area, along], 0.1)]
        return [
            dev.Launch(find_ends, n, [self._X, arrival, P, pressed, self._x], 0.1),
            dev.Launch(find_areas, n, [self._start, self._ring, self._x, area], 0.3),
            *straight,
            dev.Launch(sum_chunks, chunks, [n, arrival, P, pressed, self._x, area, along, self._partial], 5),
            dev.Launch(find_pressure, 1, [self._numbers.array, self._partial, self._pressure]),
            dev.Launch(press, n, [self._pressure, along, arrival, pressed], 0.1),
        ]

    def pressure(self) -> float:
        """p of the last step [Pa]."""
        return float(self._pressure.numpy()[0]) / self._unit

    def energy(self, x: Floats) -> float:
        """½ bulk V₀ (amount − V/V₀)² at positions x (n, 3) [units] [J]."""
        bulk, _, amount = self._numbers.host
        lack = amount - enclosed(x, self._faces) / self._volume
        return 0.5 * bulk * lack**2 * self._volume * self._unit**2
