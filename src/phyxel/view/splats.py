# mypy: disable-error-code="valid-type,no-untyped-def,no-untyped-call"
"""Gaussian splats of a body as it is now, as the 28 bytes each that pages draw.

Little-endian: f32 x, y, z about a corner [m]; f16 xx, xy, xz, yy, yz, zz of the covariance J Σ Jᵀ over unit²; rgba8.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import warp as wp
from numpy.typing import NDArray

from phyxel.body import Body
from phyxel.device import KERNEL_OPTIONS, launch
from phyxel.export.clouds import byte_colors
from phyxel.export.follow import Follower
from phyxel.render.tiles import SPLIT_FROM

wp.set_module_options(KERNEL_OPTIONS)

Floats = NDArray[np.floating]

WORDS = 7
"""32-bit words of a record."""
LARGEST = wp.constant(6.0e4)
"""A covariance that 16 bits can still hold."""


@wp.struct
class Clump:
    """Splats of a body at birth, in its units about its middle, and the nodes that carry them."""

    point: wp.array(dtype=wp.vec3)
    beyond: wp.array(dtype=wp.vec3)
    """from there to where the splat is, held stiffly"""
    covariance: wp.array(dtype=wp.mat33)
    """over unit²"""
    start: wp.array(dtype=int)
    node: wp.array(dtype=int)
    share: wp.array(dtype=float)
    surfel: wp.array(dtype=int)
    """which it is of those that the body came with, or -1"""
    color: wp.array(dtype=wp.uint32)


@wp.func
def rotation_of(J: wp.mat33) -> wp.mat33:
    """The rotation nearest to J."""
    U = wp.mat33()
    V = wp.mat33()
    sizes = wp.vec3()
    wp.svd3(J, U, sizes, V)
    return U * wp.transpose(V)


@wp.func
def packed(low: float, high: float) -> wp.uint32:
    """Two numbers in 16 bits each."""
    one = wp.uint32(wp.cast(wp.float16(wp.clamp(low, -LARGEST, LARGEST)), wp.uint16))
    other = wp.uint32(wp.cast(wp.float16(wp.clamp(high, -LARGEST, LARGEST)), wp.uint16))
    return one | (other << wp.uint32(16))


@wp.kernel
def encode_splats(
    first: int,
    clump: Clump,
    fixed: wp.array(dtype=wp.vec3),
    deformation: wp.array(dtype=wp.mat33),
    surfels: wp.array(dtype=wp.vec3),
    unit: float,
    records: wp.array2d(dtype=wp.uint32),
):
    """Σ ω_i (x_i − J_i X_i) + J X and J Σ Jᵀ with J = Σ ω_i J_i (physics 8.1); a splat on the surface is where its
    surfel is."""
    i = first + wp.tid()
    J = wp.mat33()
    x = wp.vec3()
    for k in range(clump.start[i], clump.start[i + 1]):
        J += clump.share[k] * deformation[clump.node[k]]
        x += clump.share[k] * fixed[clump.node[k]]
    x += J * clump.point[i]
    if wp.length_sq(clump.beyond[i]) > 0.0:
        x += rotation_of(J) * clump.beyond[i]
    x = unit * x
    if clump.surfel[i] >= 0:
        x = surfels[clump.surfel[i]]
    C = J * clump.covariance[i] * wp.transpose(J)
    records[i, 0] = wp.cast(x[0], wp.uint32)
    records[i, 1] = wp.cast(x[1], wp.uint32)
    records[i, 2] = wp.cast(x[2], wp.uint32)
    records[i, 3] = packed(C[0, 0], C[0, 1])
    records[i, 4] = packed(C[0, 2], C[1, 1])
    records[i, 5] = packed(C[1, 2], C[2, 2])
    records[i, 6] = clump.color[i]


class SplatEncoder:
    """Encodes the splats of a body that keeps its shape again and again."""

    def __init__(self, body: Body, device: wp.Device) -> None:
        given = body.appearance.placed_splats()
        assert given is not None and body.cloud.splats is not None
        self._body, self._device, self._count = body, device, len(given)
        follower = Follower(body, body.shape.placement.placed(body.cloud.splats.positions))
        axes = given.rotations * given.scales[:, None, :]
        self._unit = float(np.median(given.scales.max(axis=1)))
        """what covariances are counted in [m]"""
        self._reach = float(3 * given.scales.max())
        colors = np.concatenate([byte_colors(given.colors), byte_colors(given.opacities[:, None])], axis=1)
        surfel = np.full(len(given), -1, np.int32)
        surfel[given.surface] = np.arange(len(given.surface))
        covariance = axes @ np.swapaxes(axes, 1, 2) / self._unit**2
        shares = follower.shares

        def moved(array: Any, dtype: Any) -> wp.array:
            return wp.array(np.ascontiguousarray(array), dtype=dtype, device=device)

        self._clump = Clump()
        self._clump.point = moved(follower.points.astype(np.float32), wp.vec3)
        self._clump.beyond = moved(follower.beyond.astype(np.float32), wp.vec3)
        self._clump.covariance = moved(covariance.astype(np.float32), wp.mat33)
        self._clump.start, self._clump.node = moved(shares.indptr, int), moved(shares.indices, int)
        self._clump.share = moved(shares.data.astype(np.float32), float)
        self._clump.surfel, self._clump.color = moved(surfel, int), moved(colors.view("<u4")[:, 0], wp.uint32)
        self._fixed = wp.empty(len(body.birth), dtype=wp.vec3, device=device)
        self._deformation = wp.empty(len(body.birth), dtype=wp.mat33, device=device)
        self._records = wp.empty((len(given), WORDS), dtype=wp.uint32, device=device)

    def encode(self) -> tuple[bytes, dict[str, Any]]:
        """Their records as they are now, and what pages are told about them."""
        body, carried = self._body, self._body.surface.carried
        J = body.skin_deformation
        nodes = (body.positions - body.origin) / body.unit
        fixed = nodes - np.einsum("nab,nb->na", J, (body.birth - body.born.centre) / body.born.unit)
        self._fixed.assign(fixed.astype(np.float32))
        self._deformation.assign(J.astype(np.float32))
        motion = [self._fixed, self._deformation, carried.position, body.unit]
        launch(
            encode_splats,
            self._count,
            [self._clump, *motion, self._records],
            self._device,
            self._count > SPLIT_FROM // 16,
        )
        words = self._records.numpy()
        x = words[:, :3].view("<f4")
        lower = x.min(axis=0)
        x -= lower
        lower = body.origin + lower
        about = {"count": self._count, "lower": lower.tolist(), "upper": (lower + x.max(axis=0)).tolist()}
        return words.tobytes(), about | {"unit": self._unit, "finest": self._reach}
