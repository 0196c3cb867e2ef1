"""Links of a particle surface (physics 13.2): linear elements e = Σ_a c_a x_a over two to six particles, of energy
½k(|e| − r)²."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from phyxel.material import Mixture

Floats = NDArray[np.float64]

SPRING, WARP, WEFT, DIAGONAL, BEND, BEND_WARP, BEND_WEFT = range(7)
"""Kinds of elements: springs of a sheet that is the same in all directions; along the threads of a weave and across
its meshes; and what resists bending."""


WIDEST = 6
"""Particles of an element, at most."""


@dataclass(frozen=True)
class Elements:
    """All links of a surface. Lengths are in body units."""

    index: NDArray[np.int32]
    """the particles of each, shape (E, 6); -1 where there are fewer"""
    weight: Floats
    """c_a, shape (E, 6); springs have 1 and -1"""
    rest: Floats
    """r = |e| of the reference shape, shape (E,)"""
    kind: NDArray[np.int32]
    """one of the kinds above, shape (E,)"""
    shape: Floats
    """what the stiffness of the sheet is multiplied by to get that of the element: a number for springs, [1/units²] for
    bending, shape (E,)"""
    aspect: Floats
    """(length/width)² of the meshes beside a thread, which are as much stiffer along it by their diagonals; else 0,
    shape (E,)"""

    def __len__(self) -> int:
        return len(self.rest)

    @staticmethod
    def of(
        kind: int,
        X: Floats,
        index: NDArray[np.integer],
        weight: Floats,
        shape: Floats,
        aspect: Floats | None = None,
    ) -> Elements:
        """Elements of one kind, at rest where X (n, 3) are; `index` and `weight` of shape (E, 2..6)."""
        count, width = index.shape
        weight = np.broadcast_to(np.asarray(weight, np.float64), index.shape)
        rest = np.linalg.norm(np.einsum("ea,eai->ei", weight, X[index]), axis=1)
        missing = ((0, 0), (0, WIDEST - width))
        return Elements(
            np.pad(index, missing, constant_values=-1).astype(np.int32),
            np.pad(weight, missing),
            rest,
            np.full(count, kind, np.int32),
            np.asarray(shape, np.float64),
            np.zeros(count) if aspect is None else aspect,
        )

    @staticmethod
    def joined(parts: Sequence[Elements]) -> Elements:
        """All of these."""
        names = ("index", "weight", "rest", "kind", "shape", "aspect")
        return Elements(*(np.concatenate([getattr(part, name) for part in parts]) for name in names))

    @staticmethod
    def none() -> Elements:
        """No links at all."""
        return Elements.of(SPRING, np.zeros((1, 3)), np.empty((0, 2), np.int32), np.empty((0, 2)), np.empty(0))

    def stiffness(self, mixture: Mixture, unit: float) -> Floats:
        """k [N/m] of each, from the data sheets of its particles' membranes (`thickness`, `young`, `weft`, `shear`,
        `bending`, `poisson`), averaged over the element (physics 13.2); `unit` is the body unit [m]. Shape (E,).

        A weave stretches along warp and weft as `young` and `weft` say, though its diagonals, which carry the shear G,
        resist, too: with C₁₂ = Gh of theirs, C₁₁ follows from C₁₁ − C₁₂²/C₂₂ = Eh, C₂₂/C₁₁ = E₂/E₁, and the threads
        have what the diagonals leave of it, or nothing where these are stiffer."""
        young, poisson, thickness = (mixture.number(name) for name in ("young", "poisson", "thickness"))
        weft, shear, bending = (mixture.number(name) for name in ("weft", "shear", "bending"))
        weft = np.where(np.isnan(weft), young, weft)
        shear = thickness * np.where(np.isnan(shear), young / (2 * (1 + poisson)), shear)
        bending = np.where(np.isnan(bending), young * thickness**3 / (12 * (1 - poisson**2)), bending) / unit**2
        ratio = weft / young
        along = thickness * (young + np.sqrt(young**2 + 4 * (shear / thickness) ** 2 / ratio)) / 2
        sheet = np.stack([young * thickness, along, along * ratio, shear, bending, bending, bending * ratio])
        known = self.index >= 0
        own = np.where(known, sheet[self.kind[:, None], self.index], 0.0)
        diagonal = np.where(known, shear[self.index], 0.0)
        mean = (own - self.aspect[:, None] * diagonal).sum(axis=1) / known.sum(axis=1)
        return self.shape * np.maximum(mean, 0.0)
