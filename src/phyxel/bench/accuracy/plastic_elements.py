"""A clamped bar bent beyond its yield, in finite elements: what the references of sets were made with."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.sparse import csc_matrix
from scipy.sparse.linalg import splu

from phyxel.bench.accuracy.boxes import Floats, Sides
from phyxel.bench.accuracy.finite_elements import ElasticBox, even, finer_at_the_root

VOIGT = ((0, 0), (1, 1), (2, 2), (1, 2), (0, 2), (0, 1))
VOLUME = np.outer([1, 1, 1, 0, 0, 0], [1.0, 1, 1, 0, 0, 0])
DEVIATOR = np.diag([1, 1, 1, 0.5, 0.5, 0.5]) - VOLUME / 3
"""of engineering strain"""
HARDENING = 1e-5
"""of the shear modulus, in the tangent alone: a plastic hinge has none"""
SOLVED = 1e-7
"""Largest force left, over that which makes a whole section yield"""
MOST = 40
"""iterations of Newton's method"""


@dataclass(frozen=True)
class PlasticBar:
    """A bar along x, clamped by its face at x = 0, of von Mises' perfect plasticity at small strain. What its end is
    pushed by along y is borne by the line at mid-height; a quarter of it is of quadratic hexahedra."""

    sides: Sides
    young: float
    poisson: float
    yield_stress: float
    """[Pa]"""
    cells: tuple[int, int, int]
    """along the bar, over half its height, over half its width"""

    def sets(self, ways: Floats) -> Floats:
        """What stays [m] when the end is let go, after each of the ways (k,) [m] that it is pushed one after the other,
        further and further."""
        lattice = Lattice.of(self)
        u, plastic, found = np.zeros(lattice.size), np.zeros((*lattice.weights.shape, 6)), []
        held = np.union1d(lattice.fixed, lattice.pushed)
        for way in ways:
            goal = np.where(np.isin(held, lattice.pushed), -way, 0.0)
            u, plastic = self._balanced(lattice, u, plastic, held, goal)
            free, _ = self._balanced(lattice, u, plastic, lattice.fixed, 0 * lattice.fixed, springs_back=True)
            found.append(-free[lattice.pushed[0]])
        return np.array(found)

    def _balanced(
        self, lattice: Lattice, u: Floats, plastic: Floats, held: Floats, goal: Floats, springs_back: bool = False
    ) -> tuple[Floats, Floats]:
        """Displacements and plastic strain at rest with some degrees of freedom held, by Newton's method; what springs
        back does so elastically."""
        u, loose = u.copy(), np.setdiff1d(np.arange(lattice.size), held)
        small = SOLVED * self.yield_stress * self.sides[1] * self.sides[2]
        for _ in range(MOST):
            stress, flowed, tangent = self._law(lattice.strain(u), plastic)
            if springs_back:
                tangent = self._law(0 * stress, 0 * stress)[2]
            force, left = lattice.force(stress), goal - u[held]
            if np.abs(force[loose]).max() < small and not left.any():
                return u, flowed
            K = lattice.stiffness(tangent)
            factor = splu(K[loose][:, loose], permc_spec="MMD_AT_PLUS_A", options={"SymmetricMode": True})
            u[loose] -= factor.solve(force[loose] + K[loose][:, held] @ left)
            u[held] = goal
        raise ArithmeticError(f"no rest in {MOST} iterations; push in smaller steps")

    def _law(self, strain: Floats, plastic: Floats) -> tuple[Floats, Floats, Floats]:
        """Stress [Pa], plastic strain and tangent [Pa] by radial return: the deviator's norm is √(2/3) σ_y at most."""
        shear = self.young / (2 * (1 + self.poisson))
        bulk = self.young / (3 * (1 - 2 * self.poisson))
        elastic = strain - plastic
        tried = 2 * shear * elastic @ DEVIATOR
        norm = np.sqrt(tried**2 @ [1, 1, 1, 2, 2, 2.0])
        kept = np.minimum(1, np.sqrt(2 / 3) * self.yield_stress / np.maximum(norm, 1e-30))[..., None]
        along = tried / np.maximum(norm, 1e-30)[..., None]
        flow = (1 - kept) * tried / (2 * shear) * [1, 1, 1, 2, 2, 2]
        turning = np.where(kept < 1, kept - HARDENING, 0)[..., None] * along[..., :, None] * along[..., None, :]
        tangent = bulk * VOLUME + 2 * shear * (kept[..., None] * DEVIATOR - turning)
        return kept * tried + bulk * elastic @ VOLUME, plastic + flow, tangent


@dataclass(frozen=True)
class Lattice:
    """The quarter above mid-height and on one side of the middle, with what its symmetry holds."""

    strains: Floats
    """B of every point, shape (elements, points, 6, functions)"""
    weights: Floats
    """volume of every point [m³], shape (elements, points)"""
    dofs: Any
    """of every element, shape (elements, functions)"""
    size: int
    fixed: Any
    pushed: Any
    """along y, of the line at mid-height of the end; first that in the middle"""

    @staticmethod
    def of(bar: PlasticBar) -> Lattice:
        (x, y, z), (along, up, across) = bar.sides, bar.cells
        planes = finer_at_the_root(x, along), even(y / 2, up), even(z / 2, across)
        basis = ElasticBox(planes, bar.young, bar.poisson, 1.0).elements
        root, level, middle = (basis.get_dofs(lambda X, k=k: X[k] < 1e-9) for k in range(3))
        fixed = np.unique(np.concatenate([root.all(), level.all(["u^1", "u^3"]), middle.all(["u^3"])]))
        line = level.all(["u^2"])
        line = line[basis.doflocs[0, line] > x * (1 - 1e-9)]
        return Lattice(
            strains=_strains(basis),
            weights=basis.dx,
            dofs=basis.element_dofs.T,
            size=basis.N,
            fixed=fixed,
            pushed=line[np.argsort(basis.doflocs[2, line])],
        )

    def strain(self, u: Floats) -> Floats:
        """Engineering strain of every point, shape (elements, points, 6)."""
        found: Floats = np.matmul(self.strains, u[self.dofs][:, None, :, None])[..., 0]
        return found

    def force(self, stress: Floats) -> Floats:
        """What stress [Pa] lays on every degree of freedom [N]."""
        per_function = np.matmul((stress * self.weights[..., None])[..., None, :], self.strains)[..., 0, :].sum(axis=1)
        found: Floats = np.bincount(self.dofs.ravel(), per_function.ravel(), self.size).astype(np.float64)
        return found

    def stiffness(self, tangent: Floats) -> Any:
        scaled = np.matmul(tangent * self.weights[..., None, None], self.strains)
        per_element = np.matmul(np.swapaxes(self.strains, 2, 3), scaled).sum(axis=1)
        functions = self.dofs.shape[1]
        rows, columns = np.repeat(self.dofs, functions, axis=1), np.tile(self.dofs, (1, functions))
        return csc_matrix((per_element.ravel(), (rows.ravel(), columns.ravel())), (self.size, self.size))


def _strains(basis: Any) -> Floats:
    """Engineering strain of every shape function at every point, shape (elements, points, 6, functions)."""
    B = np.zeros((*basis.dx.shape, 6, basis.Nbfun))
    for k, (function,) in enumerate(basis.basis):
        for row, (a, b) in enumerate(VOIGT):
            B[:, :, row, k] = function.grad[a, b] if a == b else function.grad[a, b] + function.grad[b, a]
    return B
