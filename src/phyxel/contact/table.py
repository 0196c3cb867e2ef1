# mypy: disable-error-code="valid-type,no-untyped-def"
"""All colliders as the device sees them: for each body in the body's own units, about the body's own origin.

The host works out in double how each collider's frame lies to each body, so that neither costs digits by being far from
the world's origin. A moving collider's frame goes on evenly from there, with the velocity and spin that bring it to
where it should be when the host writes the next.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np
import warp as wp
from numpy.typing import NDArray

from phyxel import device as dev
from phyxel.contact.colliders import Collider, Ground
from phyxel.contact.distances import signed_distance
from phyxel.contact.mold import Mold
from phyxel.contact.paths import spin_between
from phyxel.device import Shared
from phyxel.structs import struct_type

wp.set_module_options(dev.KERNEL_OPTIONS)

Floats = NDArray[np.float64]
SIZES = 5
"""Most lengths a shape has."""


@cache
def table_type(real: Any) -> Any:
    """The struct that kernels take, in a precision. Rows of (b, k) are at b·count + k."""
    vector, matrix = wp.types.vector(3, real), wp.types.matrix((3, 3), real)
    fields = {
        "count": int,
        "kind": wp.array(dtype=wp.int32),  # (k)
        "friction": wp.array(dtype=real),  # (k)
        "restitution": wp.array(dtype=real),  # (k)
        "turn": wp.array(dtype=matrix),  # (b, k) world axes -> the frame's
        "place": wp.array(dtype=vector),  # (b, k) from the frame's origin to the body's [spacings]
        "drift": wp.array(dtype=vector),  # (b, k) velocity of the frame's origin [spacings/s]
        "spin": wp.array(dtype=vector),  # (b, k) of the frame [rad/s]
        "size": wp.array(dtype=wp.types.vector(SIZES, real)),  # (b, k) lengths of the shape [spacings]
        "layout": wp.array(dtype=wp.vec4i),  # (k) first entry in `values`, and corners along each axis
        "values": wp.array(dtype=real),  # distances of molds at the corners of their grids [cells]
    }
    return struct_type("Colliders", fields)


@wp.func
def distance_to(kind: int, turn: Any, size: Any, layout: wp.vec4i, values: wp.array(dtype=Any), arm: Any, way: Any):
    """Signed distance of a place, `arm` away from a collider's origin, and the direction out of it (physics 15.2).
    `way` is how it came there, as seen from the collider.

    A place that has come past the middle of a thin wall is not let out on the far side: it is judged from where it
    came.
    """
    p = turn * arm
    distance, normal = signed_distance(kind, p, size, layout, values)
    step = turn * way
    if distance < arm.dtype(0.0) and wp.dot(normal, step) > arm.dtype(0.0):
        before, normal_before = signed_distance(kind, p - step, size, layout, values)
        distance = before + wp.dot(normal_before, step)
        normal = normal_before
    return distance, wp.transpose(turn) * normal


@wp.func
def distance_out_of(colliders: Any, k: int, arm: Any):
    """Signed distance of a place of the only body, `arm` away from the origin of collider k, and the direction out."""
    turn = colliders.turn[k]
    distance, outward = signed_distance(
        colliders.kind[k], turn * arm, colliders.size[k], colliders.layout[k], colliders.values
    )
    return distance, wp.transpose(turn) * outward


@wp.func
def reach_along(n: Any, reach: Any, ball: Any):
    """How far the image of the ball of `reach` around a phyxel goes along n, deformed by `ball` (physics 15.1). What
    has melted is a ball of −reach that stays one: stretched, what tears off would push itself away."""
    if reach < type(reach)(0.0):
        return -reach
    return reach * wp.length(wp.transpose(ball) * n)


@wp.func
def deformed(past: Any, gradient: Any):
    """J F: how a phyxel is deformed against its birth; F is `past`, J = I + gradient."""
    return past + gradient * past


@wp.kernel
def carry_colliders(first: int, colliders: Any, clock: wp.array(dtype=Any), entry: int):
    """Frames go on by a step of clock[entry] [s]."""
    row = first + wp.tid()
    dt = clock[entry]
    colliders.place[row] = colliders.place[row] - dt * colliders.drift[row]
    angle = dt * wp.length(colliders.spin[row])
    if angle > dt * dt.dtype(0.0):
        back = wp.quat_from_axis_angle(wp.normalize(colliders.spin[row]), -angle)
        colliders.turn[row] = colliders.turn[row] * wp.quat_to_matrix(back)


@wp.kernel
def measure(first: int, colliders: Any, x: wp.array(dtype=Any), d: wp.array(dtype=Any), normal: wp.array(dtype=Any)):
    """Signed distance of places in the frame of the first collider, and the direction out of it."""
    i = first + wp.tid()
    distance, n = signed_distance(colliders.kind[0], x[i], colliders.size[0], colliders.layout[0], colliders.values)
    d[i] = distance
    normal[i] = n


class ColliderTable:
    """The colliders of a world, kept where kernels see them."""

    def __init__(self, units: Sequence[float], real: Any, device: wp.Device) -> None:
        self._units, self._real, self._device = units, real, device
        self.met: list[Ground | Collider] = []
        self._lay_out([])

    def _lay_out(self, colliders: Sequence[Ground | Collider]) -> None:
        self.met = list(colliders)
        count, real, device = len(colliders), self._real, self._device
        rows = len(self._units) * count
        vector, matrix = wp.types.vector(3, real), wp.types.matrix((3, 3), real)
        self._turn = Shared(rows, matrix, device)
        self._place, self._drift, self._spin = (Shared(rows, vector, device) for _ in range(3))
        self._size = Shared(rows, wp.types.vector(SIZES, real), device)
        table = table_type(real)()
        table.count = count
        for name, kind in (("kind", wp.int32), ("friction", real), ("restitution", real)):
            setattr(table, name, wp.array([getattr(one, name) for one in colliders], dtype=kind, device=device))
        table.turn, table.place, table.drift = self._turn.array, self._place.array, self._drift.array
        table.spin, table.size = self._spin.array, self._size.array
        layout, values = _grids(colliders)
        table.layout = wp.array(layout, dtype=wp.vec4i, device=device)
        table.values = wp.array(values, dtype=real, device=device)
        self.table = table

    @property
    def rows(self) -> int:
        """Pairs of a body and a collider."""
        return len(self._units) * len(self.met)

    @property
    def moves(self) -> bool:
        """Whether any collider may move."""
        return any(one.moves for one in self.met)

    def write(
        self, colliders: Sequence[Ground | Collider], origins: Floats, span: tuple[float, float], at: float
    ) -> bool:
        """Where the colliders are at the time `at` [s], and how they move over a span of time, for bodies with these
        origins [m]. Whether there are others than before: then captured launches are outdated."""
        others = len(colliders) != len(self.met) or any(a is not b for a, b in zip(colliders, self.met, strict=True))
        if others:
            self._lay_out(colliders)
        if not colliders:
            return others
        for k, collider in enumerate(colliders):
            self._write_frame(k, collider, origins, span, at)
        for shared in (self._turn, self._place, self._drift, self._spin, self._size):
            shared.push()
        return others

    def _write_frame(
        self, k: int, collider: Ground | Collider, origins: Floats, span: tuple[float, float], at: float
    ) -> None:
        rows = slice(k, None, len(self.met))
        units = np.array(self._units)[:, None]
        if isinstance(collider, Ground):
            self._turn.host[rows] = np.eye(3)
            # A plane has no middle: what lies beside the body does not matter.
            self._place.host[rows] = (origins - (0.0, collider.height, 0.0)) * (0.0, 1.0, 0.0) / units
            return
        self._size.host[rows, : len(collider.sizes)] = np.array(collider.sizes) / units
        place, rotation = collider.pose(at)
        drift, spin = motion(collider, *span)
        self._turn.host[rows] = rotation.T
        self._place.host[rows] = (origins - place) / units
        self._drift.host[rows] = drift / units
        self._spin.host[rows] = spin


def measured(
    collider: Ground | Collider, positions: NDArray[np.floating], device: wp.Device, real: Any = wp.float32
) -> tuple[NDArray[np.floating], NDArray[np.floating]]:
    """Signed distances [m] of (n, 3) positions in a collider's frame, (n,), and the directions out of it, (n, 3)."""
    table = ColliderTable([1.0], real, device)
    table.write([collider], np.zeros((1, 3)), (0.0, 0.0), 0.0)
    vector = wp.types.vector(3, real)
    x = wp.array(positions, dtype=vector, device=device)
    distances = wp.zeros(len(x), dtype=real, device=device)
    normals = wp.zeros(len(x), dtype=vector, device=device)
    dev.launch(measure, len(x), [table.table, x, distances, normals], device)
    return distances.numpy(), normals.numpy()


def motion(collider: Collider, start: float, end: float) -> tuple[Floats, Floats]:
    """Velocity of the frame's origin [m/s] and spin [rad/s] that bring it from where it is at `start` to `end` [s]."""
    if not collider.moves or end <= start:
        return np.zeros(3), np.zeros(3)
    (place, rotation), (there, onto) = collider.pose(start), collider.pose(end)
    return (there - place) / (end - start), spin_between(rotation, onto) / (end - start)


def top_speed(collider: Collider, start: float, end: float, looks: int = 8) -> float:
    """The fastest that any point of a collider moves over a span of time [m/s]."""
    if not collider.moves:
        return 0.0
    times = np.linspace(start, end, looks + 1)
    moving = [motion(collider, *span) for span in itertools.pairwise(times.tolist())]
    return max(float(np.linalg.norm(drift) + np.linalg.norm(spin) * collider.extent) for drift, spin in moving)


def _grids(colliders: Sequence[Ground | Collider]) -> tuple[NDArray[np.int32], Floats]:
    """The grids of all molds, one after the other."""
    layout = np.zeros((len(colliders), 4), np.int32)
    values: list[Floats] = [np.zeros(0)]
    for k, collider in enumerate(colliders):
        if isinstance(collider, Mold):
            grid = collider.grid
            layout[k] = (sum(len(one) for one in values), *grid.shape)
            values.append(grid.reshape(-1))
    return layout, np.concatenate(values)
