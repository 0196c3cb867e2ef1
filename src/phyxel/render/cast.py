# mypy: disable-error-code="valid-type,no-untyped-def,no-untyped-call"
"""What pictures draw: surfels on the device with a table of their looks, and all that is on stage as one set of them.

A mark on every surfel says which look it has. It is one whole number: its lowest six bits are the row of the table, the
next says whether others that lie on it are seen before it, the next whether it is a sheet, which is seen from both
sides, the rest tells the surfels of a body apart. From that comes the grain of stone, so that a grain stays with its
surfel.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import warp as wp
from numpy.typing import NDArray

from phyxel.device import KERNEL_OPTIONS, launch
from phyxel.errors import PhyxelError
from phyxel.material.look import Look
from phyxel.region import Floats
from phyxel.render.tiles import SPLIT_FROM, grown

wp.set_module_options(KERNEL_OPTIONS)

UNDER, SHEET = 64, 128
"""Added to the row of a collider on which sheets lie, and of a sheet, which is seen from both sides."""
_UNDER, _SHEET = wp.constant(UNDER), wp.constant(SHEET)
Vectors = Floats | Any
"""(N, 3) numbers, or a Warp array of N vec3 (which mypy cannot name)."""


@wp.struct
class LookArrays:
    """A look; see `Look`."""

    wrap: float
    even: float
    """Oren and Nayar's A and B"""
    back: float
    shine: float
    blur: float
    translucency: float
    shallow: float
    """one over how deep light gets, in sizes of the thing that is drawn"""
    grain: float


def make_stuff(look: Look) -> LookArrays:
    stuff = LookArrays()
    stuff.wrap, stuff.shine, stuff.blur, stuff.grain = look.wrap, look.shine, look.blur, look.grain
    stuff.translucency, stuff.shallow = look.translucency, 1.0 / look.depth
    variance = look.powder**2
    stuff.even = 1.0 - 0.5 * variance / (variance + 0.33)
    stuff.back = 0.45 * variance / (variance + 0.09)
    return stuff


def stuff_table(looks: Sequence[Look], device: wp.Device) -> wp.array:
    """One row for each look."""
    return wp.array([make_stuff(look) for look in looks], dtype=LookArrays, device=device)


def marks(rows: NDArray[np.integer] | int, count: int) -> NDArray[np.int32]:
    """Marks of `count` surfels of one body, of the looks in these rows of the table."""
    return (np.arange(count, dtype=np.int32) << 8) | np.asarray(rows, np.int32)


@wp.func
def row_of(mark: int) -> int:
    """Which look a surfel has."""
    return mark & (_UNDER - 1)


@wp.func
def lies_under(mark: int) -> bool:
    """Whether others that lie on a surfel, thinner than it is flat, are before it."""
    return (mark & _UNDER) != 0


@wp.func
def has_two_sides(mark: int) -> bool:
    """Whether a surfel is part of a sheet."""
    return (mark & _SHEET) != 0


@wp.func
def speck(mark: int) -> float:
    """A number in -1..1 of a surfel's own: some bits of a mixed mark (Wang's hash)."""
    mixed = wp.uint32(mark >> 8)
    mixed = (mixed ^ wp.uint32(61)) ^ (mixed >> wp.uint32(16))
    mixed = mixed * wp.uint32(9)
    mixed = mixed ^ (mixed >> wp.uint32(4))
    mixed = mixed * wp.uint32(0x27D4EB2D)
    mixed = mixed ^ (mixed >> wp.uint32(15))
    return float(mixed & wp.uint32(65535)) / 32767.5 - 1.0


class DrawnSurfels(NamedTuple):
    """Ellipses on a surface, as Warp arrays (of vec3, but for the marks) on one device, shape (N,)."""

    positions: wp.array
    """[m]"""
    axes_a: wp.array
    """half axis [m]; a × b points outward"""
    axes_b: wp.array
    """half axis [m]"""
    colors: wp.array
    """display colors, 0..1"""
    marks: wp.array
    """whole numbers that say which look each has, see `marks`"""


def make_surfels(
    positions: Vectors, axes_a: Vectors, axes_b: Vectors, colors: Vectors, marks: Any, device: wp.Device
) -> DrawnSurfels:
    """From (N, 3) arrays and (N,) marks; arrays on the device already, or of float32 in the CPU's memory, are
    not copied."""
    arrays = {"positions": positions, "axes_a": axes_a, "axes_b": axes_b, "colors": colors, "marks": marks}
    for name, array in arrays.items():
        if len(array) != len(positions):
            raise PhyxelError(f"render: {len(array)} {name} for {len(positions)} positions; give one for each surfel")
    return DrawnSurfels(*(_on_device(array, device) for array in arrays.values()))


def _on_device(array: Any, device: wp.Device) -> wp.array:
    if isinstance(array, wp.array):
        return array if array.device == device else array.to(device)
    if np.asarray(array).dtype == np.int32:
        return wp.array(array, dtype=int, device=device, copy=device.is_cuda)
    values = np.ascontiguousarray(array, dtype=np.float32).reshape(-1, 3)
    return wp.array(values, dtype=wp.vec3, device=device, copy=device.is_cuda)


class Actor(NamedTuple):
    """One body or collider: its surfels as Warp arrays of vec3, how to turn and where to put them, and its look."""

    position: wp.array
    axis_a: wp.array
    axis_b: wp.array
    color: wp.array
    row: int
    """of the table of looks, plus `SHEET` for a sheet, `UNDER` for what such lie on"""
    rotation: Floats
    """3 × 3"""
    place: Floats
    """[m], shape (3,)"""
    opened: Floats = np.zeros(3)
    """direction, after turning, in which its half is left out to show its inside; zero for none"""


@wp.kernel
def place_surfels(
    first: int,
    position: wp.array(dtype=wp.vec3),
    axis_a: wp.array(dtype=wp.vec3),
    axis_b: wp.array(dtype=wp.vec3),
    color: wp.array(dtype=wp.vec3),
    rotation: wp.mat33,
    place: wp.vec3,
    row: int,
    opened: wp.vec3,
    start: int,
    positions: wp.array(dtype=wp.vec3),
    axes_a: wp.array(dtype=wp.vec3),
    axes_b: wp.array(dtype=wp.vec3),
    colors: wp.array(dtype=wp.vec3),
    marks: wp.array(dtype=int),
):
    """Copy an actor's surfels to `start` and on. Surfels that are left out get no place, and are not drawn."""
    i = first + wp.tid()
    turned = rotation * position[i]
    if wp.dot(turned, opened) > 0.0:
        turned = wp.vec3(wp.nan, wp.nan, wp.nan)
    positions[start + i] = turned + place
    axes_a[start + i] = rotation * axis_a[i]
    axes_b[start + i] = rotation * axis_b[i]
    colors[start + i] = color[i]
    marks[start + i] = (i << 8) | row


class Cast:
    """The surfels of several actors in arrays that grow but do not shrink: numbers may change with every picture."""

    def __init__(self, device: wp.Device) -> None:
        self._device = device
        kinds = (wp.vec3, wp.vec3, wp.vec3, wp.vec3, int)
        self._arrays = DrawnSurfels(*(wp.empty(0, dtype=kind, device=device) for kind in kinds))

    def gathered(self, actors: Sequence[Actor]) -> DrawnSurfels:
        """All surfels, valid until the next call."""
        counts = [len(actor.position) for actor in actors]
        self._arrays = DrawnSurfels(*(grown(array, sum(counts)) for array in self._arrays))
        start = 0
        for actor, count in zip(actors, counts, strict=True):
            surfels: list[Any] = [actor.position, actor.axis_a, actor.axis_b, actor.color]
            pose = [wp.mat33(*actor.rotation.ravel()), wp.vec3(*actor.place), actor.row, wp.vec3(*actor.opened)]
            launch(place_surfels, count, [*surfels, *pose, start, *self._arrays], self._device, count > SPLIT_FROM)
            start += count
        return DrawnSurfels(*(array[:start] for array in self._arrays))
