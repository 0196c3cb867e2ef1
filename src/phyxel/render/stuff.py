# mypy: disable-error-code="valid-type,no-untyped-def,no-untyped-call"
"""Looks inside kernels: a table of them, and a mark on every surfel that says which it has.

A mark is one whole number: its lowest six bits are the row of the table, the next says whether others that lie on it
are seen before it, the next whether it is a sheet, which is seen from both sides, the rest tells the surfels of a body
apart. From that comes the grain of stone, so that a grain stays with its surfel.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import warp as wp
from numpy.typing import NDArray

from phyxel.device import KERNEL_OPTIONS
from phyxel.material.look import Look

wp.set_module_options(KERNEL_OPTIONS)

UNDER, SHEET = 64, 128
"""Added to the row of a collider on which sheets lie, and of a sheet, which is seen from both sides."""
_UNDER, _SHEET = wp.constant(UNDER), wp.constant(SHEET)


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
