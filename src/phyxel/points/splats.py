"""3D Gaussian splats, as radiance field tools write them to PLY files.

A splat is a Gaussian blob with a centre (`x y z`), the sizes of its three axes (`scale_*`, logarithms), how they stand
(`rot_*`, a quaternion w x y z of any length), an opacity (a logit), and a colour: `f_dc_*` is its mean over all
directions of view, and `f_rest_*` how it varies with them, both coefficients of spherical harmonics.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from phyxel.errors import LoadError
from phyxel.points import FEWEST_POINTS
from phyxel.points.ply import Column

CENTRE = ("x", "y", "z")
COLOR = ("f_dc_0", "f_dc_1", "f_dc_2")
OPACITY = ("opacity",)
SIZES = ("scale_0", "scale_1", "scale_2")
QUATERNION = ("rot_0", "rot_1", "rot_2", "rot_3")

COMPRESSED = (".splat", ".ksplat", ".spz", ".sog")
"""suffixes of files with compressed splats, which are not read"""
STANDARD = "export standard PLY, with x, y, z, f_dc_*, opacity, scale_* and rot_* as floats"

SH_0 = 0.28209479177387814
"""the constant spherical harmonic, 1 / sqrt(4 pi)"""
F_REST_COUNTS = (0, 9, 24, 45)
"""three colours times the harmonics of degree 1 up to 0, 1, 2 or 3"""

Doubles = NDArray[np.float64]


@dataclass(frozen=True)
class Splats:
    """All the splats of a file, with everything the file says of them."""

    attributes: dict[str, NDArray]
    """property -> values as they stand in the file, in its order and of its types, each of shape (M,)"""
    surface: NDArray[np.integer]
    """which splats are the points of the cloud, in this order, shape (N,)"""
    scale: float = 1.0
    """metres in one unit of the file"""
    rotation: Doubles = field(default_factory=lambda: np.eye(3))
    """turns the file's axes to the cloud's, 3 × 3"""

    def __len__(self) -> int:
        return len(self.attributes["x"])

    @property
    def positions(self) -> Doubles:
        """Centres in the cloud's coordinates [m], (M, 3)."""
        return self._table(CENTRE) @ self.rotation.T * self.scale

    @property
    def opacities(self) -> Doubles:
        """In 0..1, (M,)."""
        return expit(self._table(OPACITY)[:, 0])

    @property
    def scales(self) -> Doubles:
        """Standard deviations along the splats' axes [m], (M, 3)."""
        with np.errstate(over="ignore"):
            return np.exp(self._table(SIZES)) * self.scale

    @property
    def rotations(self) -> Doubles:
        """The splats' axes in the cloud's coordinates: unit vectors, the columns of (M, 3, 3)."""
        return self.rotation @ rotation_matrices(self._table(QUATERNION))

    @property
    def normals(self) -> NDArray[np.float32]:
        """Directions of the shortest axes, of either sign, in the cloud's coordinates, (M, 3)."""
        shortest = self._table(SIZES).argmin(axis=1)
        columns = np.take_along_axis(self.rotations, shortest[:, None, None], axis=2)
        return columns[:, :, 0].astype(np.float32)

    @property
    def colors(self) -> NDArray[np.float32]:
        """Red, green, blue in 0..1, the mean over all directions of view, (M, 3)."""
        return np.clip(0.5 + SH_0 * self._table(COLOR), 0, 1).astype(np.float32)

    def part(self, kept: NDArray[np.integer]) -> Splats:
        """The same splats for a cloud of which only the points `kept` are left."""
        return replace(self, surface=self.surface[kept])

    def turned(self, scale: float, rotation: Doubles) -> Splats:
        """The same splats for a cloud that is turned, then scaled."""
        return replace(self, scale=scale * self.scale, rotation=rotation @ self.rotation)

    def _table(self, names: Iterable[str]) -> Doubles:
        """Properties as the columns of one array, raw."""
        return np.stack([self.attributes[name] for name in names], axis=1, dtype=np.float64)


def rotation_matrices(quaternions: Doubles) -> Doubles:
    """Rotations from quaternions w, x, y, z (M, 4) of any length but zero: (M, 3, 3)."""
    # By the largest part first: the square of a very long or very short quaternion has no double.
    q = quaternions / np.abs(quaternions).max(axis=1, keepdims=True)
    w, x, y, z = (q / np.linalg.norm(q, axis=1, keepdims=True)).T
    entries = [
        *(1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)),
        *(2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)),
        *(2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)),
    ]
    return np.stack(entries, axis=1).reshape(-1, 3, 3)


def opaque(splats: Splats, opacity: float, name: str) -> NDArray[np.int64]:
    """Indices of the splats that are at least so opaque, or a `LoadError` if too few are."""
    opacities = splats.opacities
    chosen = np.flatnonzero(opacities >= opacity)
    if len(chosen) < min(FEWEST_POINTS, len(splats)):
        enough = np.sort(opacities)[-FEWEST_POINTS:][0]
        count = len(chosen) or "none"
        raise LoadError(
            f"{name}: {count} of its {len(splats)} splats have an opacity of {opacity:g} or more, and a solid needs at "
            f"least {FEWEST_POINTS}; the highest is {opacities.max():.2g}; pass opacity={enough * 2 / 3:.1g}"
        )
    return chosen


# --- what makes a file one of splats, and what makes it a bad one


def has_splats(vertex: Mapping[str, Column]) -> bool:
    """Whether vertices with these properties are meant as splats, whole or not, packed or not."""
    groups = (COLOR, OPACITY, SIZES, QUATERNION)
    # One group alone may mean anything: plain clouds have opacities too.
    return "packed_position" in vertex or sum(any(name in vertex for name in group) for group in groups) >= 2


def splats_of(vertex: Mapping[str, Column], name: str) -> Splats:
    """The splats that such vertices are, all of them on the surface; `name` is for error messages."""
    if "packed_position" in vertex:
        raise LoadError(f"{name}: its splats are compressed (packed_position), which is not read; {STANDARD}")
    needed: tuple[str, ...] = (*CENTRE, *COLOR, *OPACITY, *SIZES, *QUATERNION)
    missing = [key for key in needed if key not in vertex]
    if missing:
        raise LoadError(f"{name}: these are Gaussian splats, but without {', '.join(missing)}; {STANDARD}")
    needed += _checked_f_rest(vertex, name)
    attributes = _plain_columns(vertex, name)
    _refuse_integers(attributes, needed, name)
    _refuse_not_finite(attributes, needed, name)
    _refuse_zero_quaternions(attributes, name)
    return Splats(attributes, surface=np.arange(len(attributes["x"])))


def _checked_f_rest(vertex: Mapping[str, Column], name: str) -> tuple[str, ...]:
    """The names f_rest_0, f_rest_1, ... that are there."""
    found = {key for key in vertex if re.fullmatch(r"f_rest_\d+", key)}
    if len(found) not in F_REST_COUNTS:
        raise LoadError(
            f"{name}: {len(found)} properties f_rest_*; spherical harmonics of degree 0, 1, 2 or 3 have "
            f"{', '.join(map(str, F_REST_COUNTS))}: export it again with one of these degrees"
        )
    expected = tuple(f"f_rest_{k}" for k in range(len(found)))
    gap = next((key for key in expected if key not in found), None)
    if gap is not None:
        raise LoadError(f"{name}: {len(found)} properties f_rest_*, but no {gap}; {STANDARD}")
    return expected


def _plain_columns(vertex: Mapping[str, Column], name: str) -> dict[str, NDArray]:
    plain = {key: column for key, column in vertex.items() if isinstance(column, np.ndarray)}
    for key in vertex:
        if key not in plain:
            raise LoadError(f"{name}: {key} is a list; a splat has one number for each property: {STANDARD}")
    return plain


def _refuse_integers(attributes: Mapping[str, NDArray], needed: Iterable[str], name: str) -> None:
    for key in needed:
        if attributes[key].dtype.kind != "f":
            raise LoadError(
                f"{name}: {key} has type {attributes[key].dtype}; quantised splats are not read: {STANDARD}"
            )


def _refuse_not_finite(attributes: Mapping[str, NDArray], needed: Iterable[str], name: str) -> None:
    bad = {}
    for key in needed:
        values = attributes[key]
        # Converters write an infinite logit for what is fully opaque or fully clear.
        count = np.count_nonzero(np.isnan(values) if key in OPACITY else ~np.isfinite(values))
        if count:
            bad[key] = count
    if bad:
        shown = ", ".join(f"{key} in {count}" for key, count in list(bad.items())[:3])
        others = f" and {len(bad) - 3} more properties" if len(bad) > 3 else ""
        raise LoadError(
            f"{name}: not finite: {shown}{others}, of {len(attributes['x'])} splats; remove these splats from the file"
        )


def _refuse_zero_quaternions(attributes: Mapping[str, NDArray], name: str) -> None:
    zero = np.logical_and.reduce([attributes[key] == 0 for key in QUATERNION])
    if zero.any():
        raise LoadError(
            f"{name}: rot_0 to rot_3 are all zero, which is no rotation, in {np.count_nonzero(zero)} of {len(zero)} "
            "splats; remove these splats from the file"
        )
