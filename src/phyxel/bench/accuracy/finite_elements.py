"""Boxes in finite elements, by scikit-fem: what the references of the page were made with, and what as many nodes of
hexahedra give beside ours."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np
from scipy.sparse.linalg import eigsh, splu

from phyxel.bench.accuracy.boxes import Floats, Sides

Order = Literal["linear", "quadratic"]
Load = Callable[[Floats], Floats]
"""(3, ...) places [m] -> (3, ...) forces per mass [m/s²]"""


def is_installed() -> bool:
    """Whether scikit-fem is there, which the extras `bench` and `test` bring."""
    return importlib.util.find_spec("skfem") is not None


def even(length: float, cells: int) -> Floats:
    return np.linspace(0, length, cells + 1)


def finer_at_the_root(length: float, cells: int) -> Floats:
    part = np.linspace(0, 1, cells + 1)
    return length * (0.2 * part + 0.8 * part**2)


def finer_at_both_ends(length: float, cells: int) -> Floats:
    part = np.linspace(0, 1, cells + 1)
    return length * (0.5 * part + 0.25 * (1 - np.cos(np.pi * part)))


def cells_for(sides: Sides, nodes: int, order: Order) -> tuple[int, int, int]:
    """Cells along the three sides that have about so many nodes: as near to cubes as they can be."""
    per_cell = 1 if order == "linear" else 2
    best: tuple[float, tuple[int, int, int]] = (np.inf, (1, 1, 1))
    for size in np.geomspace(min(sides) / 40, max(sides), 400):
        cells = tuple(max(1, round(side / size)) for side in sides)
        away = abs(np.log(np.prod([per_cell * count + 1 for count in cells]) / nodes))
        best = min(best, (away, cells))
    return best[1]


@dataclass(frozen=True)
class ElasticBox:
    """A box from the origin on, of hexahedra between planes."""

    planes: tuple[Floats, Floats, Floats]
    """places along x, y and z [m]"""
    young: float
    poisson: float
    density: float
    order: Order = "quadratic"

    @classmethod
    def of(cls, sides: Sides, nodes: int, order: Order, young: float, poisson: float, density: float) -> ElasticBox:
        """Of about so many nodes, evenly."""
        cells = cells_for(sides, nodes, order)
        x, y, z = (even(side, count) for side, count in zip(sides, cells, strict=True))
        return cls((x, y, z), young, poisson, density, order)

    @cached_property
    def elements(self) -> Any:
        import skfem

        hexahedra = skfem.ElementHex1() if self.order == "linear" else skfem.ElementHex2()
        return skfem.Basis(skfem.MeshHex.init_tensor(*self.planes), skfem.ElementVector(hexahedra), intorder=4)

    @cached_property
    def stiffness(self) -> Any:
        import skfem
        from skfem.models.elasticity import lame_parameters, linear_elasticity

        return skfem.asm(linear_elasticity(*lame_parameters(self.young, self.poisson)), self.elements)

    @property
    def nodes(self) -> int:
        return int(self.elements.N) // 3

    def bent(self, load: Load) -> Floats:
        """Displacements [m] under forces per mass, clamped by the face x = 0."""
        import skfem

        form = skfem.LinearForm(lambda v, w: self.density * sum(v[k] * load(w.x)[k] for k in range(3)))
        force = skfem.asm(form, self.elements)
        root = self.elements.get_dofs(lambda X: X[0] < 1e-9).all()
        free = np.setdiff1d(np.arange(len(force)), root)
        u: Floats = np.zeros(len(force))
        factor = splu(
            self.stiffness[free][:, free].tocsc(), permc_spec="MMD_AT_PLUS_A", options={"SymmetricMode": True}
        )
        u[free] = factor.solve(force[free])
        return u

    def at(self, u: Floats, places: Floats) -> Floats:
        """Displacements at places (m, 3), shape (m, 3)."""
        found: Floats = (self.elements.probes(places.T) @ u).reshape(3, -1).T
        return found

    def frequencies(self, count: int) -> Floats:
        """The lowest [Hz] of the free box but the six of its motions as a whole."""
        import skfem

        mass = skfem.asm(skfem.BilinearForm(lambda u, v, w: self.density * sum(u[k] * v[k] for k in range(3))),
                         self.elements)  # fmt: skip
        below = -1e-3 * self.young / (self.density * max(plane[-1] for plane in self.planes) ** 2)
        squares = eigsh(self.stiffness, count + 6, mass, sigma=below, return_eigenvectors=False)
        return np.sqrt(np.sort(squares)[6:]) / (2 * np.pi)
