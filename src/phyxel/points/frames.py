"""Axes in the tangent plane of a surface."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.floating]


def tangents(normals: Floats) -> tuple[Floats, Floats]:
    """Two unit vectors in the plane of each unit normal, right-handed with it, each (m, 3).

    The basis of Duff et al. (JCGT 2017), which has no direction where it divides by nearly nothing.
    """
    x, y, z = np.asarray(normals, np.float64).T
    sign = np.copysign(1.0, z)
    p = -1.0 / (sign + z)
    q = x * y * p
    a = np.stack([1.0 + sign * x * x * p, sign * q, -sign * x], axis=1)
    b = np.stack([q, sign + y * y * p, -y], axis=1)
    return a, b
