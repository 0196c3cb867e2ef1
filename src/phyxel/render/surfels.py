"""What is drawn."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import warp as wp
from numpy.typing import NDArray

from phyxel.errors import PhyxelError

Vectors = NDArray[np.floating] | Any
"""(N, 3) numbers, or a Warp array of N vec3 (which mypy cannot name)."""


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
    """whole numbers that say which look each has, see `stuff.py`"""


def make_surfels(
    positions: Vectors, axes_a: Vectors, axes_b: Vectors, colors: Vectors, marks: Any, device: wp.Device
) -> DrawnSurfels:
    """From (N, 3) arrays and (N,) marks; what is on the device already, or float32 in the CPU's memory, is not
    copied."""
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
