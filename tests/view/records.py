"""Records of surfels, decoded as a page does it."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

RECORD = np.dtype(
    [("x", "<u2", 3), ("value", "<u2"), ("normal", "<i2", 2), ("axes", "u1", 2), ("angle", "u1"), ("flags", "u1")]
)


class Decoded(NamedTuple):
    positions: Floats
    values: Floats
    normals: Floats
    axes: Floats
    """half axes [m], shape (m, 2)"""
    first: Floats
    """direction of the first, shape (m, 3)"""


def decoded(records: bytes, about: dict[str, Any]) -> Decoded:
    """What records stand for; values in 0..1."""
    rows = np.frombuffer(records, RECORD)
    lower, upper = np.array(about["lower"]), np.array(about["upper"])
    u, v = (rows["normal"] / 32767.0).T
    z = 1 - np.abs(u) - np.abs(v)
    under = np.maximum(-z, 0)
    n = np.stack([u - np.where(u < 0, -under, under), v - np.where(v < 0, -under, under), z], axis=1)
    n /= np.linalg.norm(n, axis=1, keepdims=True)
    beside = np.where(np.abs(n[:, 1:2]) < 0.9, [[0.0, 1, 0]], [[1.0, 0, 0]])
    t1 = np.cross(beside, n)
    t1 /= np.linalg.norm(t1, axis=1, keepdims=True)
    angle = np.pi / 255 * rows["angle"][:, None]
    return Decoded(
        lower + rows["x"] / 65535.0 * (upper - lower),
        rows["value"] / 65535.0,
        n,
        about["finest"] * 2 ** ((rows["axes"] - 255.0) / 16),
        np.cos(angle) * t1 + np.sin(angle) * np.cross(n, t1),
    )
