"""Where a collider is: its place, its turn, and the path it takes."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from phyxel.errors import PhyxelError
from phyxel.region import as_vector
from phyxel.rotation import euler, spin_between, spun

Floats = NDArray[np.float64]
Triple = tuple[float, float, float]
Keyframe = tuple[float, Triple, Triple]
"""time [s], place [m], turn about x, y, z [degrees]"""
Path = Sequence[Any] | Callable[[float], Any]
"""keyframes `(time, at)` or `(time, at, rotate)`, or a function of time [s] -> at [m]"""


def triple(what: str, value: Any, unit: str = "m") -> Triple:
    """Three finite numbers, or an error that names them."""
    x, y, z = as_vector(what, value, unit).tolist()
    return x, y, z


def keyframes(what: str, path: Sequence[Any], rotate: Triple) -> tuple[Keyframe, ...]:
    """The keyframes of a path, each with a turn: its own, or that of the one before."""
    frames: list[Keyframe] = []
    for index, given in enumerate(path):
        entry = f"{what}.path[{index}]"
        if not isinstance(given, Sequence) or len(given) not in (2, 3):
            raise PhyxelError(f"{entry} = {given!r}: give (time, at) or (time, at, rotate)")
        time = given[0]
        if not (isinstance(time, int | float) and math.isfinite(time)):
            raise PhyxelError(f"{entry}: time = {time!r}: give a finite number of seconds")
        if frames and time <= frames[-1][0]:
            raise PhyxelError(f"{entry}: time = {time:g} s comes after {frames[-1][0]:g} s; give rising times")
        if len(given) == 3:
            rotate = triple(f"{entry}: rotate", given[2], "degrees")
        frames.append((float(time), triple(f"{entry}: at", given[1]), rotate))
    if not frames:
        raise PhyxelError(f"{what}.path: empty; give keyframes (time, at), or leave it out")
    return tuple(frames)


def between(frames: Sequence[Keyframe], time: float) -> tuple[Floats, Floats]:
    """Place and rotation at a time [s] (physics 16.5): straight from one keyframe to the next, turning evenly the short
    way round; at rest before the first and after the last."""
    times = [frame[0] for frame in frames]
    after = int(np.searchsorted(times, time))
    if after == 0 or after == len(frames):
        _, at, rotate = frames[min(after, len(frames) - 1)]
        return np.array(at), euler(rotate)
    (begin, at, rotate), (end, to, onto) = frames[after - 1], frames[after]
    share = (time - begin) / (end - begin)
    start = euler(rotate)
    turn = share * spin_between(start, euler(onto))
    return np.array(at) + share * np.subtract(to, at), spun(start, turn)
