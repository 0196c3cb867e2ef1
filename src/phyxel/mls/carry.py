# mypy: disable-error-code="valid-type,no-untyped-def"
"""Points carried by the displacement of the nodes around them (M04 §5.1, physics 2.7).

    u(X) = Σ_i ω_i (u_i + ∇u_i (X − X_i)) / Σ ω_i,   ω_i = (1 − r_i²/h²)³

M04 weighs with exp(−r²/h²) and cuts it off at h, where it is still 0.37: a jump. Here each point has a support of its
own, h = distance to the (k+1)-th nearest node, where the weight falls to zero smoothly: every point has k nodes, the
field is continuous, and there is nothing to pad. Weights depend on the reference shape only.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import warp as wp
from numpy.typing import NDArray
from scipy.sparse import csr_array, csr_matrix

from phyxel import device as dev
from phyxel.device import float32s, vec3s
from phyxel.mls.moments import THINNEST
from phyxel.mls.neighbours import grid_for, nearest
from phyxel.mls.visibility import Sees, seen_pairs

wp.set_module_options(dev.KERNEL_OPTIONS)

CARRIERS = 16
"""Nodes that carry a point."""
CARRIED_WITHIN = 3.0
"""Distance in node spacings beyond which a node should no longer carry a point: at first 2.2 is about the most."""
NEAREST_BESIDE_CRACKS = 48
"""Nearest nodes among which those on a point's own side of a crack are looked for."""
SEARCH_RADIUS = 2.0
"""Distance in node spacings within which a point in a dense body has more nodes than carry it."""

_Numbers = wp.types.vector(CARRIERS + 1, wp.float32)
_Indices = wp.types.vector(CARRIERS + 1, wp.int32)


@wp.kernel
def find_nearest(
    first: int,
    grid: wp.uint64,
    places: vec3s,
    around: float,
    points: vec3s,
    nodes: wp.array2d(dtype=wp.int32),
    shares: wp.array2d(dtype=float),
):
    """The nearest nodes of each point and their shares (physics 2.7); fewer where fewer are in reach, the nearest of
    all then."""
    s = first + wp.tid()
    x = points[s]
    k = nodes.shape[1]
    radius = float(around)
    found = int(0)
    square = _Numbers()
    index = _Indices()
    while found == 0 and radius < 1.0e3 * around:
        for i in wp.hash_grid_query(grid, x, radius):
            rr = wp.length_sq(x - places[i])
            if rr < radius * radius and (found <= k or rr < square[k]):
                at = wp.min(found, k)
                while at > 0 and rr < square[wp.max(at - 1, 0)]:
                    square[at] = square[at - 1]
                    index[at] = index[at - 1]
                    at -= 1
                square[at] = rr
                index[at] = i
                found = wp.min(found + 1, k + 1)
        radius *= 2.0
    # Beyond the last of those found, a little: it still has a share if there are no more.
    last = wp.where(found > k, square[wp.min(found, k)], 1.2 * square[wp.max(found - 1, 0)] + 1.0e-6)
    total = float(0.0)
    for m in range(k):
        share = float(0.0)
        if m < found:
            share = wp.max(1.0 - square[m] / last, 1.0e-9)
            share = share * share * share
        nodes[s, m] = wp.where(m < found, index[m], index[0])
        shares[s, m] = share
        total += share
    for m in range(k):
        shares[s, m] = shares[s, m] / total


@wp.kernel
def find_farthest(
    first: int,
    places: vec3s,
    points: vec3s,
    nodes: wp.array2d(dtype=wp.int32),
    shares: wp.array2d(dtype=float),
    farthest: float32s,
):
    """Distance of each point to the farthest node with a share; infinite if there is none."""
    s = first + wp.tid()
    most = float(-1.0)
    for m in range(nodes.shape[1]):
        if shares[s, m] > 0.0:
            most = wp.max(most, wp.length(places[nodes[s, m]] - points[s]))
    farthest[s] = wp.where(most < 0.0, wp.inf, most)


class Nearby:
    """Finds the nodes that carry points of a body that flows, where all is seen by all: `Carriers.found`, much faster,
    and lone drops have the nodes they have. `spacing` is how far apart the nodes of the body were, in node spacings of
    all that flow together."""

    def __init__(self, nodes: NDArray[np.floating], device: wp.Device, spacing: float = 1.0) -> None:
        self._device, self._count, self._around = device, len(nodes), SEARCH_RADIUS * spacing
        self._places = wp.array(np.asarray(nodes, np.float32), dtype=wp.vec3, device=device)
        self._grid = grid_for(len(nodes), device)
        self._grid.build(self._places, self._around)

    def farthest(self, points: NDArray[np.floating], carriers: Carriers) -> NDArray[np.float32]:
        """Distance of (m, 3) points to the farthest of the nodes that carry them, (m,); infinite where none does."""
        x = wp.array(np.asarray(points, np.float32), dtype=wp.vec3, device=self._device)
        nodes = wp.array(carriers.nodes, dtype=wp.int32, device=self._device)
        shares = wp.array(carriers.shares, dtype=float, device=self._device)
        found = wp.empty(len(x), dtype=float, device=self._device)
        dev.launch(find_farthest, len(x), [self._places, x, nodes, shares, found], self._device)
        return found.numpy()

    def carriers(self, points: NDArray[np.floating]) -> Carriers:
        """Of (m, 3) points."""
        each = (len(points), min(CARRIERS, self._count - 1))
        if len(points) == 0:
            return Carriers(np.zeros(each, np.int32), np.zeros(each, np.float32))
        x = wp.array(np.asarray(points, np.float32), dtype=wp.vec3, device=self._device)
        nodes = wp.empty(each, dtype=wp.int32, device=self._device)
        shares = wp.empty(each, dtype=float, device=self._device)
        dev.launch(find_nearest, len(x), [self._grid.id, self._places, self._around, x, nodes, shares], self._device)
        return Carriers(nodes.numpy(), shares.numpy())


@dataclass(frozen=True)
class Carriers:
    """Which nodes carry each point, and how much each counts. All in units of the node spacing."""

    nodes: NDArray[np.int32]
    """shape (m, k)"""
    shares: NDArray[np.float32]
    """ω_i / Σω, shape (m, k)"""

    @staticmethod
    def found(points: NDArray[np.floating], nodes: NDArray[np.floating], sees: Sees | None = None) -> Carriers:
        """The nearest nodes of each of (m, 3) points among (n, 3) nodes; those that `sees` denies have no share."""
        if len(nodes) == 1 or len(points) == 0:
            return Carriers._alone(len(points), len(nodes))
        k = min(CARRIERS, len(nodes) - 1)
        distance, index = nearest(points, nodes, k + 1)
        share = np.maximum(1 - (distance[:, :k] / distance[:, k:]) ** 2, 1e-9) ** 3
        if sees is not None:
            owner = np.repeat(np.arange(len(points)), k)
            share *= seen_pairs(points, nodes, owner, index[:, :k].reshape(-1), sees).reshape(-1, k)
        share /= share.sum(axis=1, keepdims=True)
        return Carriers(index[:, :k].astype(np.int32), share.astype(np.float32))

    @staticmethod
    def _alone(points: int, nodes: int) -> Carriers:
        """Of no points, or by one node."""
        each = (points, max(min(CARRIERS, nodes - 1), 1))
        return Carriers(np.zeros(each, np.int32), np.full(each, 1 / each[1], np.float32))

    @staticmethod
    def beside_cracks(
        points: NDArray[np.floating], nodes: NDArray[np.floating], sees: Sees, past_cracks: Sees
    ) -> Carriers:
        """As `found`, but of points beside cracks, of which `sees` knows too: nodes must also be seen `past_cracks`
        from the points themselves, or near a crack's tip its two faces would share some. Each has as many nodes on its
        own side as others have around them; where nothing is hidden it is the same."""
        if len(nodes) == 1 or len(points) == 0:
            return Carriers._alone(len(points), len(nodes))
        k, most = min(CARRIERS, len(nodes) - 1), min(NEAREST_BESIDE_CRACKS, len(nodes))
        distance, index = nearest(points, nodes, most)
        owner = np.repeat(np.arange(len(points)), most)
        seen = seen_pairs(points, nodes, owner, index.reshape(-1), sees, NEAREST_BESIDE_CRACKS).reshape(-1, most)
        asked = np.flatnonzero(seen)
        seen.flat[asked] = past_cracks(points[owner[asked]], nodes[index.flat[asked]])
        # If none is seen at all, the nearest must do.
        seen[:, 0] |= ~seen.any(axis=1)
        order = np.argsort(~seen, axis=1, kind="stable")[:, : k + 1]
        distance, index = np.take_along_axis(distance, order, axis=1), np.take_along_axis(index, order, axis=1)
        seen = np.take_along_axis(seen, order, axis=1)
        last = np.where(seen, distance, 0).max(axis=1, keepdims=True)
        # Beyond the last of those seen, a little: it still has a share if there are no more.
        reach = np.where(seen[:, k:], distance[:, k:], 1.1 * last + 1e-6)
        share = seen[:, :k] * np.maximum(1 - (distance[:, :k] / reach) ** 2, 1e-9) ** 3
        share /= share.sum(axis=1, keepdims=True)
        return Carriers(index[:, :k].astype(np.int32), share.astype(np.float32))

    def refreshed(
        self, points: NDArray[np.floating], nodes: NDArray[np.floating], device: wp.Device, spacing: float = 1.0
    ) -> Carriers:
        """The same, but the nearest nodes for points one of whose nodes has gone far away, or that have none; `spacing`
        as for Nearby."""
        nearby = Nearby(nodes, device, spacing)
        gone = np.flatnonzero(nearby.farthest(points, self) > CARRIED_WITHIN * spacing)
        found = nearby.carriers(points[gone])
        index, shares = self.nodes.copy(), self.shares.copy()
        index[gone], shares[gone] = found.nodes, found.shares
        return Carriers(index, shares)

    def mean(self, values: NDArray[np.floating]) -> NDArray[np.float32]:
        """Of a number of each node (n,), what each point has of it, shape (m,)."""
        return np.einsum("mk,mk->m", self.shares, np.asarray(values, np.float32)[self.nodes])

    def carry(
        self, points: NDArray[np.floating], nodes: NDArray[np.floating], u: NDArray[Any], gradient: NDArray[Any]
    ) -> NDArray[np.float64]:
        """Displacement of the points, shape (m, 3), on the host in double (physics 2.7)."""
        reach = points[:, None, :] - nodes[self.nodes]
        moved = u[self.nodes] + np.einsum("mkab,mkb->mka", gradient[self.nodes].astype(np.float64), reach)
        return np.einsum("mk,mka->ma", self.shares, moved)

    def matrix(self, count: int) -> csr_matrix:
        """The shares as a matrix (m, count): what the nodes have (count, ...), it takes to the mean at the points."""
        return csr_matrix(self._rows(self.shares.astype(np.float64), count))

    def fit(
        self, points: NDArray[np.floating], nodes: NDArray[np.floating]
    ) -> tuple[csr_array, tuple[csr_array, csr_array, csr_array]]:
        """φ and its slopes along three axes at (m, 3) points of (n, 3) nodes, shape (m, n) each: what the nodes have is
        fitted by a linear field, by least squares with the shares ω_i (physics 2.10):

            φ_i = ω_i (1 + (X − X̄)·g_i),   ∇φ_i = ω_i g_i,   g_i = M⁻¹ (X_i − X̄),   M = Σ ω_i (X_i − X̄)(X_i − X̄)ᵀ

        about the mean X̄ = Σ ω_i X_i, so that Σ φ_i = 1, Σ φ_i X_i = X and Σ X_i ∇φ_iᵀ = 1. Across nodes that lie in a
        plane nothing is known, and nothing is made up: M⁻¹ leaves that direction out."""
        shares, places = self.shares.astype(np.float64), np.asarray(nodes, np.float64)[self.nodes]
        shares /= shares.sum(axis=1, keepdims=True)
        middle = np.einsum("mk,mka->ma", shares, places)
        arm = places - middle[:, None]
        moments = np.einsum("mk,mka,mkb->mab", shares, arm, arm)
        slopes = shares[:, :, None] * (arm @ np.linalg.pinv(moments, rcond=THINNEST, hermitian=True))
        phi = shares + np.einsum("mka,ma->mk", slopes, points - middle)
        first, *others = (self._rows(values, len(nodes)) for values in (phi, *np.moveaxis(slopes, 2, 0)))
        return first, (others[0], others[1], others[2])

    def _rows(self, values: NDArray[np.float64], count: int) -> csr_array:
        """Values (m, k) of the points' nodes as a matrix (m, count)."""
        m, k = self.nodes.shape
        return csr_array((values.reshape(-1), self.nodes.reshape(-1), k * np.arange(m + 1)), (m, count))
