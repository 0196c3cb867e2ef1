"""Links of a particle surface: linear elements e = Σ_a c_a x_a over two or three particles, of energy ½k(|e| − r)²."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from phyxel.material import Mixture

Floats = NDArray[np.float64]

EDGE, WARP, WEFT, DIAGONAL, BEND, BEND_WARP, BEND_WEFT = range(7)
"""Kinds of elements."""


@dataclass(frozen=True)
class Elements:
    """All links of a surface. Lengths are in body units."""

    index: NDArray[np.int32]
    """the particles of each, shape (E, 3); -1 where there are only two"""
    weight: Floats
    """c_a, shape (E, 3)"""
    rest: Floats
    """r = |e| of the reference shape, shape (E,)"""
    kind: NDArray[np.int32]
    """one of the kinds above, shape (E,)"""
    shape: Floats
    """what the stiffness of the sheet is multiplied by to get that of the element: a number for springs, [1/units²] for
    bending, shape (E,)"""

    def __len__(self) -> int:
        return len(self.rest)

    @staticmethod
    def none() -> Elements:
        """No links at all."""
        return Elements(np.empty((0, 3), np.int32), np.empty((0, 3)), np.empty(0), np.empty(0, np.int32), np.empty(0))

    def stiffness(self, mixture: Mixture, unit: float) -> Floats:
        """k [N/m] of each, from the data sheets of its particles' membranes (`thickness`, `young`, `weft`, `shear`,
        `bending`, `poisson`), averaged over the element; `unit` is the body unit [m]. Shape (E,)."""
        raise NotImplementedError
