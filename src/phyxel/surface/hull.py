"""What wind and the like can press on, as it was when it was last found."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from phyxel.mls.neighbours import nearest
from phyxel.points.normals import areas_of
from phyxel.rotation import Floats
from phyxel.state import State


@dataclass(frozen=True)
class PressedSkin:
    """A piece is what lies nearest to one node and looks about the same way: the two sides of a leaf, or of a sheet,
    and the faces that meet at an edge, are pieces of their own."""

    node: NDArray[np.int64]
    """to which it belongs, shape (p,)"""
    area: Floats
    """A N: area times outward normal in the reference shape [m²], shape (p, 3)"""

    @staticmethod
    def found(
        positions: NDArray[np.floating], normals: NDArray[np.floating], nodes: NDArray[np.floating]
    ) -> PressedSkin:
        """The skin that points (m, 3) with unit normals (m, 3) sample, of a body with nodes (n, 3), all in metres."""
        _, index = nearest(positions, nodes, 1)
        direction = np.rint(2 * normals).astype(np.int64) + 2  # unlike by more than 51° never share one
        keys = np.ravel_multi_index((index[:, 0], *direction.T), (len(nodes), 5, 5, 5))
        pieces, which = np.unique(keys, return_inverse=True)
        area = summed(which, areas_of(positions)[:, None] * normals, len(pieces))
        return PressedSkin((pieces // 5**3).astype(np.int64), area)

    def moved(self, deformation: Floats) -> Floats:
        """a n of all pieces when the nodes have the deformation gradient J (n, 3, 3), by Nanson's a n = |J| J⁻ᵀ A N
        (physics 16.3)."""
        J = deformation[self.node]
        cofactor = np.stack([np.cross(J[:, k - 2], J[:, k - 1]) for k in range(3)], axis=1)
        return np.einsum("pab,pb->pa", cofactor, self.area)


class Hull:
    """The skin of a body: that of birth, or of what has melted, one of some moments ago."""

    def __init__(self, skin: PressedSkin | None = None, found_at: int = -1) -> None:
        self._skin, self._found_at = skin, found_at

    def skin(self, moment: int, find: Callable[[], PressedSkin]) -> PressedSkin:
        """The skin as it was found at a moment, counted from 0 on, or -1 for that at birth."""
        if self._skin is None or self._found_at != moment:
            self._skin, self._found_at = find(), moment
        return self._skin

    def state(self) -> State:
        """What a checkpoint keeps of it."""
        if self._skin is None:
            return {}
        return {"node": self._skin.node, "area": self._skin.area, "at": np.array(self._found_at)}

    @staticmethod
    def restored(state: State) -> Hull:
        """From what `state` gave."""
        return Hull(PressedSkin(state["node"], state["area"]), int(state["at"])) if state else Hull()


def summed(owner: NDArray[np.integer], vectors: Floats, count: int) -> Floats:
    """Sums of vectors (m, 3) by their owner (m,), shape (count, 3)."""
    return np.stack([np.bincount(owner, part, count) for part in vectors.T], axis=1)
