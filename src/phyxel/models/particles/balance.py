# mypy: disable-error-code="valid-type,no-untyped-def"
"""Links push nothing about as a whole (physics 13.5): an end of their iterations that is not quite the solution is
moved and turned rigidly, piece by piece, until all forces P = (y − y_free)/H of a piece cancel, and all their torques.

Links do not resist that: y + s + θ × r, r = y − c, changes P by (s + θ × r)/H. With c the middle of 1/H the forces
cancel for s = −ΣP/Σ(1/H). Arms z are those in the middle of the step, not at y, which is seen ahead, or spin would
fade. Then

    Σ (z·r − r zᵀ)/H θ = −Σ z × (P + s/H)"""

from __future__ import annotations

from typing import Any

import numpy as np
import warp as wp
from numpy.typing import NDArray
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components

from phyxel import device as dev
from phyxel.models.reductions import CHUNK

wp.set_module_options(dev.KERNEL_OPTIONS)

MOST_TURN = 0.1
"""[rad], of one step: beyond, the turn would stretch links."""
LEAST_INERTIA = 1.0e-9
"""Added to the moments of inertia, as a share of them: particles in a line have none about it."""


@wp.struct
class HangingPieces:
    """Pieces of a sheet that hang together: their particles in chunks, sums over each chunk, and how each piece
    moves."""

    order: wp.array(dtype=wp.int32)
    """particles, piece by piece, shape (n,)"""
    chunk: wp.array(dtype=wp.int32)
    """where each chunk begins in `order`, shape (chunks + 1,)"""
    piece: wp.array(dtype=wp.int32)
    """where the chunks of each piece begin, shape (pieces + 1,)"""
    of: wp.array(dtype=wp.int32)
    """the piece of each particle, shape (n,)"""
    weight: wp.array(dtype=wp.float64)
    """Σ 1/H"""
    place: wp.array(dtype=wp.vec3d)
    """Σ y/H"""
    spread: wp.array(dtype=wp.mat33d)
    """Σ y zᵀ/H"""
    arm: wp.array(dtype=wp.vec3d)
    """Σ z/H"""
    force: wp.array(dtype=wp.vec3d)
    torque: wp.array(dtype=wp.vec3d)
    middle: wp.array(dtype=wp.vec3d)
    shift: wp.array(dtype=wp.vec3d)
    turn: wp.array(dtype=wp.vec3d)


@wp.kernel
def sum_chunks(
    first: int,
    y: wp.array(dtype=wp.vec3d),
    free: wp.array(dtype=wp.vec3d),
    z: wp.array(dtype=wp.vec3d),
    inertia: wp.array(dtype=wp.float64),
    p: HangingPieces,
):
    """Sums over each chunk, of infinite weight if a particle is held (physics 13.5)."""
    c = first + wp.tid()
    weight = wp.float64(0.0)
    place = wp.vec3d()
    spread = wp.mat33d()
    arm = wp.vec3d()
    force = wp.vec3d()
    torque = wp.vec3d()
    for slot in range(p.chunk[c], p.chunk[c + 1]):
        i = p.order[slot]
        w = inertia[i]
        weight += w
        if not wp.isinf(w):
            P = w * (y[i] - free[i])
            place += w * y[i]
            spread += w * wp.outer(y[i], z[i])
            arm += w * z[i]
            force += P
            torque += wp.cross(z[i], P)
    p.weight[c] = weight
    p.place[c] = place
    p.spread[c] = spread
    p.arm[c] = arm
    p.force[c] = force
    p.torque[c] = torque


@wp.kernel
def find_shifts(first: int, p: HangingPieces):
    """s, θ and c of each piece (physics 13.5); a piece with a held particle stays."""
    k = first + wp.tid()
    weight = wp.float64(0.0)
    place = wp.vec3d()
    spread = wp.mat33d()
    arm = wp.vec3d()
    force = wp.vec3d()
    torque = wp.vec3d()
    for c in range(p.piece[k], p.piece[k + 1]):
        weight += p.weight[c]
        place += p.place[c]
        spread += p.spread[c]
        arm += p.arm[c]
        force += p.force[c]
        torque += p.torque[c]
    p.shift[k] = wp.vec3d()
    p.turn[k] = wp.vec3d()
    p.middle[k] = wp.vec3d()
    if wp.isinf(weight):
        return
    middle = place / weight
    p.middle[k] = middle
    shift = -force / weight
    p.shift[k] = shift
    spread -= wp.outer(middle, arm)
    size = wp.trace(spread)
    if size > wp.float64(LEAST_INERTIA) * weight * wp.dot(middle, middle):
        one = wp.identity(n=3, dtype=wp.float64)
        grown = wp.float64(1.0) + wp.float64(LEAST_INERTIA)
        turn = -wp.inverse(grown * size * one - spread) * (torque + wp.cross(arm, shift))
        p.turn[k] = wp.min(wp.float64(1.0), wp.float64(MOST_TURN) / wp.length(turn)) * turn


@wp.kernel
def balance(first: int, inertia: wp.array(dtype=wp.float64), p: HangingPieces, y: wp.array(dtype=wp.vec3d)):
    """y + s + θ × (y − c) (physics 13.5)."""
    i = first + wp.tid()
    k = p.of[i]
    if not wp.isinf(inertia[i]):
        y[i] += p.shift[k] + wp.cross(p.turn[k], y[i] - p.middle[k])


class Balance:
    """The pieces of a sheet, which links keep together."""

    def __init__(self, index: NDArray[np.int32], n: int, device: wp.Device) -> None:
        """`index` (E, 6) are the particles of each link, -1 where there are fewer."""
        others = index[:, 1:]
        ends = np.broadcast_to(index[:, :1], others.shape)[others >= 0], others[others >= 0]
        count, of = connected_components(csr_array((np.ones(len(ends[0]), bool), ends), (n, n)), directed=False)
        self._n, self._count = len(of), count
        sizes = np.bincount(of, minlength=count)
        chunks = -(-sizes // CHUNK)
        starts = np.repeat(np.cumsum(sizes) - sizes, chunks)
        within = np.arange(chunks.sum()) - np.repeat(np.cumsum(chunks) - chunks, chunks)
        p: Any = HangingPieces()
        p.order, p.of = self._ints(np.argsort(of, kind="stable"), device), self._ints(of, device)
        p.chunk = self._ints(np.append(starts + CHUNK * within, len(of)), device)
        p.piece = self._ints(np.append(0, np.cumsum(chunks)), device)
        self._chunks = int(chunks.sum())
        p.weight = wp.zeros(self._chunks, dtype=wp.float64, device=device)
        p.spread = wp.zeros(self._chunks, dtype=wp.mat33d, device=device)
        for name in ("place", "arm", "force", "torque"):
            setattr(p, name, wp.zeros(self._chunks, dtype=wp.vec3d, device=device))
        for name in ("middle", "shift", "turn"):
            setattr(p, name, wp.zeros(count, dtype=wp.vec3d, device=device))
        self._pieces = p

    @staticmethod
    def _ints(values: NDArray[np.integer], device: wp.Device) -> wp.array:
        return wp.array(values, dtype=wp.int32, device=device)

    def launches(self, y: wp.array, free: wp.array, z: wp.array, inertia: wp.array) -> list[dev.Launch]:
        """Move y (n,) so that what the links pull with, at arms z, cancels. `inertia` is 1/H, infinite where it is
        held."""
        return [
            dev.Launch(sum_chunks, self._chunks, [y, free, z, inertia, self._pieces], 0.1 * CHUNK),
            dev.Launch(find_shifts, self._count, [self._pieces]),
            dev.Launch(balance, self._n, [inertia, self._pieces, y], 0.05),
        ]
