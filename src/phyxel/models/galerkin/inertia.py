"""What a Galerkin body is made of at its quadrature points, and the matrices of its inertia (physics 10.2)."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from phyxel.material import Mixture
from phyxel.models.galerkin.assembly import products, products_from
from phyxel.models.galerkin.point_functions import PointFunctions
from phyxel.models.law import LawRow

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class PointMaterials:
    """A point has the law of the node nearest to it."""

    rows: list[LawRow]
    """one of each of k materials"""
    which: NDArray[np.integer]
    """law of each point, shape (q,)"""
    damping: Floats
    """Rayleigh's β [s], shape (k,)"""
    density: Floats
    """ρ unit², shape (q,)"""
    resistance: Floats
    """Rayleigh's α times that, shape (q,)"""

    @staticmethod
    def of(mixture: Mixture, rotation: Floats, owner: NDArray[np.integer], unit: float) -> PointMaterials:
        """Of points whose nodes are `owner` (q,), with the material's axes turned by `rotation`."""
        density = unit**2 * mixture.number("density")[owner]
        return PointMaterials(
            [LawRow.of(material, rotation) for material in mixture.materials],
            mixture.which[owner],
            np.array([material.damping for material in mixture.materials]),
            density,
            density * mixture.number("drag")[owner],
        )

    @cached_property
    def hardness(self) -> Floats:
        """The largest modulus [Pa] of each law, shape (k,)."""
        return np.array([row.stiffness.max() + row.k_v for row in self.rows])

    def scaled(self, scales: Floats) -> list[LawRow]:
        """The laws, (k,) times as stiff."""
        return [
            replace(row, stiffness=more * row.stiffness, k_v=more * row.k_v)
            for row, more in zip(self.rows, scales, strict=True)
        ]


class Inertia:
    """M, ∫ ∇φ_I · ∇φ_J and αM of a space, shape (n, n) each."""

    def __init__(self, mass: csr_array, slopes: csr_array, drag: csr_array) -> None:
        self.mass, self.slopes, self.drag = mass, slopes, drag
        self._last = math.nan, mass

    @staticmethod
    def of(
        materials: PointMaterials, functions: PointFunctions, before: tuple[PointFunctions, Inertia] | None = None
    ) -> Inertia:
        """With functions that were cut from others `before`, if those of these are known."""
        if before is None:
            mass, slopes = products(functions, materials.density)
        else:
            known = before[1].mass, before[1].slopes
            mass, slopes = products_from(before[0], functions, materials.density, known)
        resistance = materials.resistance
        return Inertia(mass, slopes, products(functions, resistance)[0] if resistance.any() else 0 * mass)

    @cached_property
    def weight(self) -> Floats:
        """Mass of each coefficient, shape (n,)."""
        return np.asarray(self.mass.sum(axis=0)).reshape(-1)

    def over(self, dt: float) -> csr_array:
        """A = M/Δt² + αM/Δt (physics 10.4)"""
        if dt != self._last[0]:
            self._last = dt, csr_array(self.mass / dt**2 + self.drag / dt)
        return self._last[1]

    def resisting(self, dt: float) -> csr_array:
        """M + αM Δt"""
        return csr_array(self.mass + dt * self.drag)
