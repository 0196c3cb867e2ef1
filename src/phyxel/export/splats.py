# mypy: disable-error-code="valid-type,no-untyped-def"
"""Bodies as Gaussian splats: those they came from, moved, turned and stretched; or new ones made of surfels.

Their colour varies with the direction of view by spherical harmonics, which turn with them.
"""

from __future__ import annotations

import os
from weakref import WeakKeyDictionary

import numpy as np
import warp as wp
from numpy.typing import NDArray
from scipy.spatial.transform import Rotation

from phyxel import device as dev
from phyxel.body import Body
from phyxel.export.clouds import bodies_of, columns_of, ply_header
from phyxel.export.follow import Follower, keeps_its_shape, principal_axes, rotations_of
from phyxel.files import whole_file
from phyxel.points.splats import CENTRE, COLOR, OPACITY, QUATERNION, SH_0, SIZES, Splats
from phyxel.rotation import Floats
from phyxel.world import Frame

wp.set_module_options(dev.KERNEL_OPTIONS)

HARMONICS = 15
"""of degree 1, 2 and 3"""
DIRECTIONS = 24
"""At which functions are compared; spread well, the least-squares problem is nearly orthogonal."""
Harmonics = wp.types.vector(length=HARMONICS, dtype=wp.float64)
Columns = dict[str, NDArray]

NORMAL = ("nx", "ny", "nz")
OPAQUE = 4.6
"""Logit of the opacity of a splat made of a surfel: 0.99."""
WITHIN = 0.5
"""Standard deviation of such a splat over the half axis of its surfel: neighbours cover each other's edges."""
THICKNESS = 0.05
"""Standard deviation across the surface over the mean one along it."""
THINNEST = 1e-30
"""[m]: a size that still has a logarithm"""

_followers: WeakKeyDictionary[Body, Follower] = WeakKeyDictionary()


@wp.func
def harmonics_at(d: wp.vec3d):
    """The real harmonics of degree 1, 2, 3 in a unit direction, in the order and with the signs that splats have:
    degree l from order −l to l, odd orders negative."""
    x, y, z = d[0], d[1], d[2]
    xx, yy, zz = x * x, y * y, z * z
    two, three, four = wp.float64(2.0), wp.float64(3.0), wp.float64(4.0)
    c1 = wp.float64(0.48860251190291992)  # √(3/4π)
    c2 = wp.float64(1.09254843059207907)  # √(15/4π)
    c3 = wp.float64(0.59004358992664351)  # √(35/32π)
    d3 = wp.float64(0.45704579946446574)  # √(21/32π)
    e3 = wp.float64(0.37317633259011540)  # √(7/16π)
    f3 = wp.float64(1.44530572132027702)  # √(105/16π)
    c20 = wp.float64(0.31539156525252001)  # √(5/16π)
    return Harmonics(
        -c1 * y, c1 * z, -c1 * x,
        c2 * x * y, -c2 * y * z, c20 * (two * zz - xx - yy), -c2 * x * z, c2 / two * (xx - yy),
        -c3 * y * (three * xx - yy), two * f3 * x * y * z, -d3 * y * (four * zz - xx - yy),
        e3 * z * (two * zz - three * xx - three * yy),
        -d3 * x * (four * zz - xx - yy), f3 * z * (xx - yy), -c3 * x * (xx - three * yy),
    )  # fmt: skip


@wp.kernel
def evaluate(first: int, directions: wp.array(dtype=wp.vec3d), values: wp.array(dtype=Harmonics)):
    """The harmonics in each direction."""
    i = first + wp.tid()
    values[i] = harmonics_at(directions[i])


@wp.kernel
def turn(
    first: int,
    directions: wp.array(dtype=wp.vec3d),
    back: wp.array(dtype=Harmonics),
    rotations: wp.array(dtype=wp.mat33d),
    coefficients: wp.array2d(dtype=Harmonics),
    result: wp.array2d(dtype=Harmonics),
):
    """Coefficients of c(Rᵀ d) for those of c(d), one row for each splat, red, green, blue.

    c(Rᵀ d) is read off in directions d_q, and `back` takes these values to coefficients, column by column."""
    i = first + wp.tid()
    inverse = wp.transpose(rotations[i])
    red, green, blue = coefficients[i, 0], coefficients[i, 1], coefficients[i, 2]
    r, g, b = Harmonics(), Harmonics(), Harmonics()
    for q in range(directions.shape[0]):
        seen = harmonics_at(inverse * directions[q])
        column = back[q]
        r += wp.dot(seen, red) * column
        g += wp.dot(seen, green) * column
        b += wp.dot(seen, blue) * column
    result[i, 0] = r
    result[i, 1] = g
    result[i, 2] = b


def basis(directions: Floats) -> Floats:
    """`harmonics_at` unit directions (m, 3), shape (m, 15)."""
    device = dev.pick("cpu")
    values = wp.zeros(len(directions), dtype=Harmonics, device=device)
    places = wp.array(np.ascontiguousarray(directions, np.float64), dtype=wp.vec3d, device=device)
    dev.launch(evaluate, len(directions), [places, values], device)
    return values.numpy()


def turned(coefficients: Floats, rotations: Floats) -> Floats:
    """Coefficients (m, 3, k) of functions c(d), k = 3, 8 or 15, become those of c(Rᵀ d), R (m, 3, 3)."""
    device = dev.pick("cpu")
    m, _, k = coefficients.shape
    spread = _directions(DIRECTIONS)
    back = np.linalg.pinv(basis(spread)).T
    whole = np.zeros((m, 3, HARMONICS))
    whole[:, :, :k] = coefficients
    result = wp.zeros((m, 3), dtype=Harmonics, device=device)
    inputs = [
        wp.array(spread, dtype=wp.vec3d, device=device),
        wp.array(back, dtype=Harmonics, device=device),
        wp.array(np.ascontiguousarray(rotations, np.float64), dtype=wp.mat33d, device=device),
        wp.array(whole, dtype=Harmonics, device=device),
    ]
    dev.launch(turn, m, [*inputs, result], device)
    return result.numpy()[:, :, :k]


def _directions(count: int) -> Floats:
    """Unit vectors spread evenly along a spiral, (count, 3)."""
    k = np.arange(count)
    z = 1 - (2 * k + 1) / count
    radius, angle = np.sqrt(1 - z * z), k * np.pi * (3 - np.sqrt(5))
    return np.stack([radius * np.cos(angle), radius * np.sin(angle), z], axis=1)


def splats(thing: Frame | Body, path: str | os.PathLike[str]) -> None:
    """Write the bodies of a frame, or one (`thing`), as they are now as a standard PLY of 3D Gaussian splats, in
    metres, y up, to `path`.

    A body that came from splats has all of them, also those that are no points of its surface, with everything its file
    says of them. Each goes with the deformation J around it (physics 8.1): its covariance becomes J Σ Jᵀ, and what
    varies with the direction of view turns with the rotation of J. Of other bodies, and of bodies that have melted,
    surfels become flat splats.

    >>> world = px.gallery("demo").changed(nodes=64, points=500).world()
    >>> px.export.splats(world.bodies[0], "splats.ply")
    >>> len(px.load("splats.ply").splats)
    500
    """
    columns = _joined([splat_columns(body) for body in bodies_of(thing)])
    rows = np.empty(len(columns["x"]), [(name, column.dtype.newbyteorder("<")) for name, column in columns.items()])
    for name, column in columns.items():
        rows[name] = column
    with whole_file(path) as file:
        file.write(ply_header([("vertex", len(rows), columns_of(rows.dtype))]))
        file.write(rows.tobytes())


def splat_columns(body: Body) -> Columns:
    """The properties of a body's splats as they are now."""
    given = body.appearance.placed_splats()
    return _made_of_surfels(body) if given is None or not keeps_its_shape(body) else _moved(body, given)


def _moved(body: Body, given: Splats) -> Columns:
    if body not in _followers:
        assert body.cloud.splats is not None
        _followers[body] = Follower(body, body.shape.placement.placed(body.cloud.splats.positions))
    follower, carried = _followers[body], body.surface.carried
    J = follower.deformation(body)
    positions = follower.positions(body, J)
    # Surfels are also kept out of colliders.
    positions[given.surface] = carried.origin + carried.position.numpy()
    columns = dict(given.attributes)
    _set(columns, CENTRE, positions)
    _set_shape(columns, J @ (given.rotations * given.scales[:, None, :]))
    turn = rotations_of(J) @ given.rotation
    if all(name in columns for name in NORMAL):
        _set(columns, NORMAL, np.einsum("mab,mb->ma", turn, _table(columns, NORMAL)))
    rest = _f_rest(columns)
    if rest:
        coefficients = _table(columns, rest).reshape(len(given), 3, -1)
        _set(columns, rest, turned(coefficients, turn).reshape(len(given), -1))
    return columns


def _made_of_surfels(body: Body) -> Columns:
    surface = body.surface
    names = (*CENTRE, *NORMAL, *COLOR, *OPACITY, *SIZES, *QUATERNION)
    columns: Columns = {name: np.zeros(len(surface), np.float32) for name in names}
    a, b, normal = (array.numpy().astype(np.float64) for array in (surface.axis_a, surface.axis_b, surface.normal))
    along = WITHIN * np.stack([a, b], axis=2)
    across = THICKNESS * np.linalg.norm(along, axis=1).mean(axis=1, keepdims=True) * normal
    _set(columns, CENTRE, surface.positions)
    _set(columns, NORMAL, normal)
    _set(columns, COLOR, (surface.colors - 0.5) / SH_0)
    _set(columns, OPACITY, np.full((len(surface), 1), OPAQUE))
    _set_shape(columns, np.concatenate([along, across[:, :, None]], axis=2))
    return columns


def _set_shape(columns: Columns, axes: Floats) -> None:
    """Sizes and quaternions of splats with the covariance A Aᵀ, A (m, 3, 3)."""
    turn, sizes = principal_axes(axes)
    _set(columns, SIZES, np.log(np.maximum(sizes, THINNEST)))
    _set(columns, QUATERNION, np.roll(Rotation.from_matrix(turn).as_quat(), 1, axis=1))


def _f_rest(columns: Columns) -> list[str]:
    """The names f_rest_0, f_rest_1, ... that are there: all of red, then of green, then of blue."""
    return [f"f_rest_{k}" for k in range(sum(name.startswith("f_rest_") for name in columns))]


def _table(columns: Columns, names: tuple[str, ...] | list[str]) -> Floats:
    return np.stack([columns[name] for name in names], axis=1, dtype=np.float64)


def _set(columns: Columns, names: tuple[str, ...] | list[str], table: NDArray[np.floating]) -> None:
    """Let properties have other values, of the types they had."""
    for name, column in zip(names, table.T, strict=True):
        columns[name] = column.astype(columns[name].dtype)


def _joined(parts: list[Columns]) -> Columns:
    """The splats of several bodies one after the other, with all properties of any; what a body lacks is 0."""
    degree = max(len(_f_rest(part)) for part in parts) // 3
    parts = [_with_harmonics(part, degree) for part in parts]
    types = {name: column.dtype for part in reversed(parts) for name, column in part.items()}
    names = dict.fromkeys(name for part in parts for name in part)
    return {
        name: np.concatenate([part.get(name, np.zeros(len(part["x"]), types[name])) for part in parts])
        for name in names
    }


def _with_harmonics(columns: Columns, count: int) -> Columns:
    """The same splats with `count` harmonics of each colour, after the mean colour; new ones are 0."""
    names = _f_rest(columns)
    if len(names) == 3 * count:
        return columns
    wider = np.zeros((len(columns["x"]), 3, count), np.float32)
    if names:
        given = _table(columns, names).reshape(len(wider), 3, -1)
        wider[:, :, : given.shape[2]] = given
    table = wider.reshape(len(wider), -1)
    result: Columns = {}
    for name, column in columns.items():
        if name not in names:
            result[name] = column
        if name == COLOR[-1]:
            result |= {f"f_rest_{k}": table[:, k] for k in range(table.shape[1])}
    return result
