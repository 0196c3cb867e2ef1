# mypy: disable-error-code="valid-type,no-untyped-def"
"""The pressure of what a closed surface encloses, p = bulk (amount − V/V₀), of where the surface will be (physics
13.6).

A pressure moves each particle by H_i p a_i (a_i = ∂V/∂x_i, its vector of area), and so the volume by p Σ H_i |a_i|².
Areas and V are taken where all leads if the filling presses with f as in the last step, so that at rest they are those
of the surface itself; as seen ahead by βv, the volume is larger by Σ a_i·βv_i:

    p = bulk (amount − (V + Σ a_i·(βv_i − H_i f_i))/V₀) / (1 + bulk/V₀ Σ H_i |a_i|²)

is what is left of it then, or less if the volume, which is of third order in p, says that this leads too far: one
number, found on the device, however stiff the filling is. Its forces add up to nothing, and neither do they turn the
surface.

A surface without links has nothing to keep neighbours side by side: areas that lean with them would press them apart,
and single particles would shoot out of creases. Each is pressed along its normal at rest then, by as much of its area
as looks that way.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import warp as wp
from numpy.typing import NDArray

from phyxel import device as dev
from phyxel.errors import PhyxelError
from phyxel.models.particles.arrival import Arrival, look_ahead
from phyxel.models.reductions import CHUNK
from phyxel.solid.shell import open_edges

wp.set_module_options(dev.KERNEL_OPTIONS)

Floats = NDArray[np.float64]

PRESSURE_HALVINGS = wp.constant(50)
"""Of a pressure, to find it to all its digits."""
Volumes: Any = wp.types.vector(length=6, dtype=wp.float64)
BULK, PER_VOLUME, AMOUNT = range(3)
"""Entries of the filling's numbers: bulk [Pa] times the unit [m], 1/V₀ [1/units³], and how much there is."""


def enclosed(x: Floats, faces: NDArray[np.integer]) -> float:
    """V within triangles (m, 3) of points (n, 3): a sixth of Σ a·(b × c), about one of them so that no digits go."""
    a, b, c = (x[faces[:, corner]] - x[0] for corner in range(3))
    return float(np.einsum("ma,ma->m", a, np.cross(b, c)).sum() / 6)


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
    """a_i = ∂V/∂x_i = Σ x_j × x_k / 6 over the faces (i, j, k) around i, seen from i (physics 13.6)."""
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
def find_ways(
    first: int,
    arrival: Arrival,
    P: wp.array(dtype=wp.vec3d),
    pressed: wp.array(dtype=wp.vec3d),
    along: wp.array(dtype=wp.vec3d),
    unpressed: wp.array(dtype=wp.vec3d),
    way: wp.array(dtype=wp.vec3d),
):
    """e = βv − H f, how far from x a particle is seen without the filling, and d = H along, how much further a pressure
    of 1 leads it (physics 13.6).

    β is that of links, but no more than A/|B|: if a particle swings many times within a step, v leads far beyond where
    it ever gets, and the volume there says nothing."""
    i = first + wp.tid()
    A = arrival.A[i]
    H = wp.min(arrival.H[i], wp.float64(2.0) * A)
    unpressed[i] = (H - A) * P[i] - A * pressed[i] + look_ahead(A, arrival.B[i], H) * arrival.v[i]
    way[i] = H * along[i]


@wp.kernel
def find_volumes(
    first: int,
    start: wp.array(dtype=wp.int32),
    ring: wp.array(dtype=wp.vec2i),
    x: wp.array(dtype=wp.vec3d),
    area: wp.array(dtype=wp.vec3d),
    unpressed: wp.array(dtype=wp.vec3d),
    way: wp.array(dtype=wp.vec3d),
    volume: wp.array(dtype=Volumes),
):
    """What a particle adds to V(x + e + p d) as a polynomial of p (physics 13.6): its four numbers, and before them the
    two of what it is for small e and d, V + Σ a·(e + p d). With a(z) the areas of a surface z, V(x + z) = V(x) + Σ
    a(x)·z + x·a(z) + z·a(z)/3."""
    i = first + wp.tid()
    e = unpressed[i]
    d = way[i]
    ee = wp.vec3d()
    ed = wp.vec3d()
    dd = wp.vec3d()
    for f in range(start[i], start[i + 1]):
        j = ring[f][0]
        k = ring[f][1]
        ej = unpressed[j] - e
        ek = unpressed[k] - e
        dj = way[j] - d
        dk = way[k] - d
        ee += wp.cross(ej, ek)
        ed += wp.cross(ej, dk) + wp.cross(dj, ek)
        dd += wp.cross(dj, dk)
    ee /= wp.float64(6.0)
    ed /= wp.float64(6.0)
    dd /= wp.float64(6.0)
    third = wp.float64(1.0) / wp.float64(3.0)
    at = x[i] - x[0]
    v = Volumes()
    v[0] = wp.dot(third * at + e, area[i])
    v[1] = wp.dot(d, area[i])
    v[2] = v[0] + wp.dot(at + third * e, ee)
    v[3] = v[1] + wp.dot(at, ed) + wp.dot(d, ee)
    v[4] = wp.dot(at + e, dd)
    v[5] = third * wp.dot(d, dd)
    volume[i] = v


@wp.kernel
def sum_chunks(first: int, n: int, volume: wp.array(dtype=Volumes), partial: wp.array(dtype=Volumes)):
    """Σ of CHUNK particles each."""
    chunk = first + wp.tid()
    total = Volumes()
    for i in range(chunk * CHUNK, wp.min(n, (chunk + 1) * CHUNK)):
        total += volume[i]
    partial[chunk] = total


@wp.func
def excess(filling: wp.array(dtype=wp.float64), v: Volumes, p: wp.float64) -> wp.float64:
    """How much more p is than the filling would press with where p leads."""
    there = v[2] + p * (v[3] + p * (v[4] + p * v[5]))
    return p - filling[BULK] * (filling[AMOUNT] - there * filling[PER_VOLUME])


@wp.kernel
def find_pressure(
    first: int,
    filling: wp.array(dtype=wp.float64),
    partial: wp.array(dtype=Volumes),
    pressure: wp.array(dtype=wp.float64),
):
    """p times the unit, so that p a_i is a force in N/unit (physics 13.6); one thread. Where that of the linear volume
    would lead too far, it is less, found by halving."""
    v = Volumes()
    for chunk in range(partial.shape[0]):
        v += partial[chunk]
    per_volume = filling[PER_VOLUME]
    lack = filling[AMOUNT] - v[0] * per_volume
    p = filling[BULK] * lack / (wp.float64(1.0) + filling[BULK] * per_volume * v[1])
    if excess(filling, v, p) * p > wp.float64(0.0):
        low = wp.float64(0.0)
        high = p
        for _ in range(PRESSURE_HALVINGS):
            p = wp.float64(0.5) * (low + high)
            if excess(filling, v, p) * high > wp.float64(0.0):
                high = p
            else:
                low = p
    pressure[0] = p


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


class EnclosedGas:
    """The gas in a closed surface of points X (n, 3) and faces (m, 3) [units]; `unit` in m. Of one without links, with
    the normals (n, 3) of its points."""

    def __init__(
        self,
        X: Floats,
        faces: NDArray[np.int32] | None,
        unit: float,
        device: wp.Device,
        normals: Floats | None = None,
    ) -> None:
        if faces is None or len(open_edges(faces)):
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
        """areas that are pressed"""
        self._unpressed, self._way = (wp.zeros(n, dtype=wp.vec3d, device=device) for _ in range(2))
        self._volumes = wp.zeros(n, dtype=Volumes, device=device)
        self._partial = wp.zeros(-(-n // CHUNK), dtype=Volumes, device=device)
        self._numbers = dev.Shared(3, wp.float64, device)
        self._pressure = wp.zeros(1, dtype=wp.float64, device=device)
        self.set(0.0, 1.0)

    def set(self, bulk: float, amount: float) -> None:
        """bulk [Pa], and how much there is, as a share of what fills it without pressure."""
        self._numbers.host[:] = bulk * self._unit, 1 / self._volume, amount
        self._numbers.push()

    def launches(self, arrival: Arrival, P: wp.array, pressed: wp.array) -> list[dev.Launch]:
        """Find p and add its forces to `arrival`. `pressed` holds its forces p a_i, (n,) of vec3d [N/unit], in the
        step before and then in this one."""
        n, chunks, area, along = len(self._x), len(self._partial), self._area, self._along
        unpressed, way = self._unpressed, self._way
        straight = [] if self._normal is None else [dev.Launch(straighten, n, [self._normal, area, along], 0.1)]
        return [
            dev.Launch(find_ends, n, [self._X, arrival, P, pressed, self._x], 0.1),
            dev.Launch(find_areas, n, [self._start, self._ring, self._x, area], 0.3),
            *straight,
            dev.Launch(find_ways, n, [arrival, P, pressed, along, unpressed, way], 0.1),
            dev.Launch(find_volumes, n, [self._start, self._ring, self._x, area, unpressed, way, self._volumes], 0.5),
            dev.Launch(sum_chunks, chunks, [n, self._volumes, self._partial], 2),
            dev.Launch(find_pressure, 1, [self._numbers.array, self._partial, self._pressure]),
            dev.Launch(press, n, [self._pressure, along, arrival, pressed], 0.1),
        ]

    def pressure(self) -> float:
        """p of the last step [Pa]."""
        return float(self._pressure.numpy()[0]) / self._unit

    def energy(self, x: Floats) -> float:
        """½ bulk V₀ (amount − V/V₀)² at positions x (n, 3) [units] [J] (physics 13.6)."""
        bulk, _, amount = self._numbers.host
        lack = amount - enclosed(x, self._faces) / self._volume
        return 0.5 * bulk * lack**2 * self._volume * self._unit**2
