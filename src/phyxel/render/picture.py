"""Pictures as files, and discs for points that come without."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image
from scipy.spatial import cKDTree

from phyxel.errors import PhyxelError

Floats = NDArray[np.floating]


def save_png(image: NDArray[np.uint8], path: str | Path, compress_level: int = 1) -> None:
    """Write (H, W, 3 or 4) bytes as PNG. The file appears under its name only when complete."""
    target = Path(path)
    handle, partial = tempfile.mkstemp(prefix=f".{target.name}.", suffix=".png", dir=target.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            Image.fromarray(image).save(file, format="PNG", compress_level=compress_level)
        os.chmod(partial, 0o644)  # mkstemp makes private files; a picture is for showing
        os.replace(partial, target)
    except BaseException:
        os.unlink(partial)
        raise


def radii_from_spacing(positions: Floats, factor: float = 1.2, neighbors: int = 6) -> NDArray[np.float32]:
    """Radius of a disc about each point that closes the gaps to its neighbours, (N,) in the unit of `positions`.

    That is `factor` times the mean distance to the nearest points, held within 0.4 and 2.5 times the median, so that a
    stray point does not become a plate.
    """
    points = np.asarray(positions, np.float64)
    if len(points) < 2:
        raise PhyxelError(f"{len(points)} points: spacing needs at least 2; give the radii yourself")
    distances = cKDTree(points).query(points, k=min(neighbors + 1, len(points)))[0][:, 1:]
    spacing = distances.mean(axis=1)
    typical = float(np.median(spacing))
    return np.asarray(factor * np.clip(spacing, 0.4 * typical, 2.5 * typical), np.float32)


def tangent_axes(normals: Floats, radii: Floats) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Half axes a, b, each (N, 3), of discs of the given radii (N,) with a × b along the unit normals (N, 3).

    The basis of Duff et al. (JCGT 2017), which has no direction where it divides by nearly nothing.
    """
    x, y, z = np.asarray(normals, np.float64).T
    sign = np.copysign(1.0, z)
    p = -1.0 / (sign + z)
    q = x * y * p
    a = np.stack([1.0 + sign * x * x * p, sign * q, -sign * x], axis=1)
    b = np.stack([q, sign + y * y * p, -y], axis=1)
    scale = np.asarray(radii, np.float64).reshape(-1, 1)
    return np.asarray(scale * a, np.float32), np.asarray(scale * b, np.float32)
