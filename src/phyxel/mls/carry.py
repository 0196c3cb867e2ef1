"""Points carried by the displacement of the nodes around them (M04 §5.1).

    u(X) = Σ_i ω_i (u_i + ∇u_i (X − X_i)) / Σ ω_i,   ω_i = (1 − r_i²/h²)³

M04 weighs with exp(−r²/h²) and cuts it off at h, where it is still 0.37: a jump. Here each point has a support of its
own, h = distance to the (k+1)-th nearest node, where the weight falls to zero smoothly: every point has k nodes, the
field is continuous, and there is nothing to pad. Weights depend on the reference shape only.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix

from phyxel.mls.neighbours import nearest
from phyxel.mls.seen import Sees, seen_pairs

CARRIERS = 16
"""Nodes that carry a point."""


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
        k = min(CARRIERS, len(nodes) - 1)
        distance, index = nearest(points, nodes, k + 1)
        share = np.maximum(1 - (distance[:, :k] / distance[:, k:]) ** 2, 1e-9) ** 3
        if sees is not None:
            owner = np.repeat(np.arange(len(points)), k)
            share *= seen_pairs(points, nodes, owner, index[:, :k].reshape(-1), sees).reshape(-1, k)
        share /= share.sum(axis=1, keepdims=True)
        return Carriers(index[:, :k].astype(np.int32), share.astype(np.float32))

    def carry(
        self, points: NDArray[np.floating], nodes: NDArray[np.floating], u: NDArray[Any], gradient: NDArray[Any]
    ) -> NDArray[np.float64]:
        """Displacement of the points, shape (m, 3), on the host in double."""
        reach = points[:, None, :] - nodes[self.nodes]
        moved = u[self.nodes] + np.einsum("mkab,mkb->mka", gradient[self.nodes].astype(np.float64), reach)
        return np.einsum("mk,mka->ma", self.shares, moved)

    def matrix(self, count: int) -> csr_matrix:
        """The shares as a matrix (m, count): what the nodes have (count, ...), it takes to the mean at the points."""
        m, k = self.nodes.shape
        shares = self.shares.reshape(-1).astype(np.float64)
        return csr_matrix((shares, self.nodes.reshape(-1), k * np.arange(m + 1)), (m, count))
