# mypy: disable-error-code="valid-type,no-untyped-def"
"""Integrals over a body by its quadrature (G04 §4.1, physics 10.2): the two matrices of small motion,

    M_IJ = ∫ ρ φ_I φ_J,   K_IJ = ∫ B_Iᵀ (C − k 1⊗1) B_J + k b̄_I b̄_Jᵀ,   b̄ = mean of ∇φ over a cell,

and ∫ ∇φ_I · ∇φ_J, of what a body is made of at its points; what a cut changes of them is found from the points whose
functions it has changed alone.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import warp as wp
from numpy.typing import NDArray
from scipy.sparse import bsr_array, csc_array, csr_array
from scipy.sparse.linalg import SuperLU, splu

from phyxel import device as dev
from phyxel.device import float64s, int32s, mat33ds, vec3ds
from phyxel.material import Mixture
from phyxel.mls.shape_values import entries_of, owners_of, places_among
from phyxel.models.galerkin.point_functions import Lists, Pairs, PointFunctions, PointLists
from phyxel.models.law import VOIGT, LawRow, hooke

wp.set_module_options(dev.KERNEL_OPTIONS)

Floats = NDArray[np.float64]
Indices = NDArray[np.integer]
mat66d = wp.types.matrix((6, 6), wp.float64)

ROOM = 4_000_000
"""Numbers of whole rows of a matrix that are summed up at a time: 32 MB."""


def square(lists: PointLists, entries: Floats) -> csr_array:
    """A matrix of nodes that meet, shape (n, n), by its entries."""
    count = len(lists.nodes)
    matrix = csr_array((count, count))
    matrix.indptr, matrix.indices = lists.neighbours  # by reference: whose lists are the same can be told
    matrix.data = entries
    return matrix


def blocks(lists: PointLists, entries: Floats) -> bsr_array:
    """A matrix of nodes that meet by its 3 × 3 blocks, shape (3n, 3n)."""
    start, index = lists.neighbours
    return bsr_array((entries, index, start), shape=(3 * len(lists.nodes), 3 * len(lists.nodes)))


@wp.kernel
def assemble_products(
    first: int,
    rows: int32s,
    pairs: Pairs,
    weight: float64s,
    density: float64s,
    mass: wp.array2d(dtype=wp.float64),
    slopes: wp.array2d(dtype=wp.float64),
):
    """The rows of M and of the products of gradients that belong to a node: Σ_q w ρ φ_I φ_J and Σ_q w ∇φ_I · ∇φ_J
    (G04 eq. 19, physics 10.2)."""
    k = first + wp.tid()
    I = rows[k]
    for entry in range(pairs.start_of_node[I], pairs.start_of_node[I + 1]):
        q = pairs.point[entry]
        share = weight[q] * density[q] * pairs.phi[pairs.pair[entry]]
        slope = weight[q] * pairs.dphi[pairs.pair[entry]]
        for other in range(pairs.start[q], pairs.start[q + 1]):
            J = pairs.node[other]
            mass[k, J] += share * pairs.phi[other]
            slopes[k, J] += wp.dot(slope, pairs.dphi[other])


def products(functions: PointFunctions, density: Floats) -> tuple[csr_array, csr_array]:
    """M_IJ = ∫ ρ φ_I φ_J and ∫ ∇φ_I · ∇φ_J for densities (q,) at the points, shape (n, n) each."""
    start, index = functions.lists.neighbours
    both = np.zeros((2, len(index)))
    count = len(functions.lists.nodes)
    rows = np.arange(count, dtype=np.int32)
    for some in np.array_split(rows, 1 + count * count // ROOM):
        starts, entries = entries_of(start, some)
        owner = np.repeat(np.arange(len(some)), np.diff(starts))
        for part, found in zip(both, _whole_rows(functions, density, some), strict=True):
            part[entries] = found[owner, index[entries]]
    return square(functions.lists, both[0]), square(functions.lists, both[1])


def _whole_rows(functions: PointFunctions, density: Floats, rows: NDArray[np.int32]) -> list[Floats]:
    """Some rows of these two matrices, shape (k, n) each."""
    device = functions.lists.device
    sums = [wp.zeros((len(rows), len(functions.lists.nodes)), dtype=wp.float64, device=device) for _ in range(2)]
    numbers = wp.array(rows, dtype=wp.int32, device=device)
    scales = [wp.array(part, dtype=wp.float64, device=device) for part in (functions.lists.weights, density)]
    dev.launch(assemble_products, len(rows), [numbers, functions.pairs, *scales, *sums], device)
    return [part.numpy() for part in sums]


@wp.func
def _strain(g: wp.vec3d, a: int):
    """sym(e_a gᵀ)"""
    e = wp.vec3d()
    e[a] = wp.float64(0.5)
    return wp.outer(e, g) + wp.outer(g, e)


@wp.kernel
def assemble_stiffness(
    first: int,
    pairs: Pairs,
    weight: float64s,
    law: int32s,
    laws: wp.array(dtype=mat66d),
    row_start: int32s,
    column: int32s,
    block: mat33ds,
):
    """The row of K that belongs to a node: K_IJ = Σ_q w (∇φ_I · C · ∇φ_J), (K_IJ)_ab = Σ_cd φ_I,c C_acbd φ_J,d
    (physics 10.2).

    All lists ascend: a pointer that walks along the row finds the column of each J.
    """
    I = first + wp.tid()
    for entry in range(pairs.start_of_node[I], pairs.start_of_node[I + 1]):
        q = pairs.point[entry]
        g = weight[q] * pairs.dphi[pairs.pair[entry]]
        C = laws[law[q]]
        # σ of the strain that a unit of u_a at node I makes, for a = x, y, z
        sx = hooke(C, _strain(g, 0))
        sy = hooke(C, _strain(g, 1))
        sz = hooke(C, _strain(g, 2))
        at = row_start[I]
        for other in range(pairs.start[q], pairs.start[q + 1]):
            J = pairs.node[other]
            while column[at] < J:
                at += 1
            h = pairs.dphi[other]
            block[at] += wp.matrix_from_rows(sx * h, sy * h, sz * h)


@dataclass(frozen=True)
class StiffnessPart:
    """One of two parts that K is the sum of: that of the points, and that of the volume term that would lock, from
    cells."""

    functions: PointFunctions
    laws: Sequence[Floats]
    """C of each law, 6 × 6"""
    which: Indices
    """law of each point, or cell"""

    @staticmethod
    def both(functions: PointFunctions, rows: Sequence[LawRow], which: Indices) -> tuple[StiffnessPart, StiffnessPart]:
        """`which` law is that of each point, (q,), and of all in a cell."""
        of_cells = np.zeros(sum(functions.lists.shape), int)
        of_cells[functions.lists.owner] = of_cells[len(functions.lists.nodes) :] = which
        at_points, in_cells = zip(*(row.parts_at_rest for row in rows), strict=True)
        return StiffnessPart(functions, at_points, which), StiffnessPart(functions.means, in_cells, of_cells)


def stiffness(functions: PointFunctions, rows: Sequence[LawRow], which: Indices) -> bsr_array:
    """K_IJ at rest, 3 × 3 blocks, shape (3n, 3n); `which` law is that of each point, (q,)."""
    lists, device = functions.lists, functions.lists.device
    start, index = (wp.array(part, dtype=wp.int32, device=device) for part in lists.neighbours)
    entries = wp.zeros(len(index), dtype=wp.mat33d, device=device)
    for part in StiffnessPart.both(functions, rows, which):
        weights = wp.array(part.functions.lists.weights, dtype=wp.float64, device=device)
        law = wp.array(part.which, dtype=wp.int32, device=device)
        laws = wp.array(np.array(part.laws), dtype=mat66d, device=device)
        inputs = [part.functions.pairs, weights, law, laws, start, index, entries]
        dev.launch(assemble_stiffness, len(lists.nodes), inputs, device)
    return blocks(lists, entries.numpy())


@wp.kernel
def find_swelling(first: int, start: int32s, node: int32s, dphi: vec3ds, u: vec3ds, ratio: float64s):
    """|J| at each point, J = I + Σ_I u_I ⊗ ∇φ_I (G04 eq. 17, physics 10.3)."""
    i = first + wp.tid()
    J = wp.identity(n=3, dtype=wp.float64)
    for entry in range(start[i], start[i + 1]):
        J += wp.outer(u[node[entry]], dphi[entry])
    ratio[i] = wp.determinant(J)


def volume(functions: PointFunctions, u: Floats) -> float:
    """∫ |I + ∇u| of a field with coefficients u (n, 3)."""
    pairs, weights, device = functions.pairs, functions.lists.weights, functions.lists.device
    ratio = wp.empty(len(weights), dtype=wp.float64, device=device)
    moved = wp.array(u, dtype=wp.vec3d, device=device)
    dev.launch(find_swelling, len(ratio), [pairs.start, pairs.node, pairs.dphi, moved, ratio], device)
    return float(weights @ ratio.numpy())


# What a cut changes

_PLACE = np.zeros((3, 3), int)
for _number, (_a, _b) in enumerate(VOIGT):
    _PLACE[_a, _b] = _PLACE[_b, _a] = _number


@dataclass(frozen=True)
class Difference:
    """Points at which functions differ before and after a cut: once with the new functions, and once with the old ones,
    which count negative."""

    points: Indices
    """shape (2k,)"""
    nodes: Indices
    """those that are felt there, ascending, shape (m,)"""
    functions: Floats
    """φ and ∇φ, shape (4, 2k, m)"""
    weights: Floats
    """volumes, those of the old functions negative, shape (2k,)"""

    @staticmethod
    def between(before: PointFunctions, now: PointFunctions) -> Difference:
        """Of functions `now` and `before` a cut, or several."""
        rows, count = now.changed_from(before), len(now.lists.nodes)
        entries = entries_of(now.lists.start, rows)[1]
        nodes = np.flatnonzero(np.bincount(now.lists.index[entries], minlength=count))
        rank = places_among(nodes, count)
        functions = np.zeros((4, 2 * len(rows), len(nodes)))
        for one, first in ((now, 0), (before, len(rows))):
            starts, entries = entries_of(one.lists.start, rows)
            owner = first + np.repeat(np.arange(len(rows)), np.diff(starts))
            place = owner * len(nodes) + rank[one.lists.index[entries]]
            for part, values in zip(functions, (one.phi[entries], *one.dphi[entries].T), strict=True):
                part.reshape(-1)[place] = values
        weights = np.concatenate([now.lists.weights[rows], -before.lists.weights[rows]])
        return Difference(np.tile(rows, 2), nodes, functions, weights)

    def mass(self, density: Floats) -> Floats:
        """Of ∫ ρ φ_I φ_J for densities (q,) at all points, shape (m, m)."""
        phi = self.functions[0]
        return np.asarray(phi.T @ ((self.weights * density[self.points])[:, None] * phi))

    def slopes(self) -> Floats:
        """Of ∫ ∇φ_I · ∇φ_J, shape (m, m)."""
        flat = self.functions[1:].reshape(3 * len(self.points), len(self.nodes))
        return np.asarray(flat.T @ (np.tile(self.weights, 3)[:, None] * flat))

    def stiffness(self, laws: Sequence[Floats], which: Indices) -> Floats:
        """Of ∫ φ_I,c C_acbd φ_J,d for laws C, 6 × 6, of which that of each of all points is `which`; shape
        (m, m, 3, 3)."""
        count, law = len(self.nodes), np.asarray(which)[self.points]
        total = np.zeros((9, count * count))
        for number in np.unique(law):
            own = law == number
            slopes = self.functions[1:, own].transpose(1, 0, 2).reshape(own.sum(), 3 * count)
            sums = (slopes.T @ (self.weights[own, None] * slopes)).reshape(3, count, 3, count)
            C = laws[number][_PLACE[:, :, None, None], _PLACE]  # (a, c, b, d)
            total += C.transpose(0, 2, 1, 3).reshape(9, 9) @ sums.transpose(0, 2, 1, 3).reshape(9, count * count)
        return np.ascontiguousarray(total.reshape(3, 3, count, count).transpose(2, 3, 0, 1))

    def added(self, change: Floats, entries: Floats, known: Lists, lists: Lists) -> Floats:
        """The entries of a matrix, of which those before are given with their lists, with the change (m, m, ...)."""
        start, index = lists
        if known[1] is index:
            result = entries.copy()
        else:
            result = np.zeros((len(index), *entries.shape[1:]))
            result[np.searchsorted(_keys(*lists), _keys(*known))] = entries
        starts, places = entries_of(start, self.nodes)
        row, column = owners_of(starts), places_among(self.nodes, len(start) - 1)[index[places]]
        met = column >= 0
        result[places[met]] += change[row[met], column[met]]
        return result


def _keys(start: NDArray[np.int32], index: NDArray[np.int32]) -> NDArray[np.int64]:
    rows = np.repeat(np.arange(len(start) - 1, dtype=np.int64), np.diff(start))
    return rows * (len(start) - 1) + index


def products_from(
    before: PointFunctions, functions: PointFunctions, density: Floats, known: tuple[csr_array, csr_array]
) -> tuple[csr_array, csr_array]:
    """`products` where they are `known` for the functions before a cut."""
    change, lists = Difference.between(before, functions), (before.lists.neighbours, functions.lists.neighbours)
    mass = change.added(change.mass(density), known[0].data, *lists)
    return square(functions.lists, mass), square(functions.lists, change.added(change.slopes(), known[1].data, *lists))


def stiffness_from(
    before: PointFunctions, functions: PointFunctions, known: bsr_array, rows: Sequence[LawRow], which: Indices
) -> bsr_array:
    """`stiffness` where it is `known` for the functions before a cut."""
    entries, lists, now = known.data, before.lists.neighbours, functions.lists.neighbours
    for part, old in zip(StiffnessPart.both(functions, rows, which), (before, before.means), strict=True):
        change = Difference.between(old, part.functions)
        entries, lists = change.added(change.stiffness(part.laws, part.which), entries, lists, now), now
    return blocks(functions.lists, entries)


# Materials and inertia


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

    @cached_property
    def _factor(self) -> SuperLU:
        return splu(csc_array(self.mass))

    def accelerated(self, force: Floats) -> Floats:
        """M⁻¹ of a force (n, 3)."""
        return np.asarray(self._factor.solve(force))

    def over(self, dt: float) -> csr_array:
        """A = M/Δt² + αM/Δt (physics 10.4)"""
        if dt != self._last[0]:
            self._last = dt, csr_array(self.mass / dt**2 + self.drag / dt)
        return self._last[1]

    def resisting(self, dt: float) -> csr_array:
        """M + αM Δt"""
        return csr_array(self.mass + dt * self.drag)


def times(matrix: csr_array, field: Floats) -> Floats:
    """A field (n, 3) times a matrix (n, n), one axis at a time: all at once SciPy takes twice as long."""
    return np.stack([matrix @ along for along in np.ascontiguousarray(field.T)], axis=1)


def cauchy_stress(mixture: Mixture, rotation: Floats, which: NDArray[np.integer], J: Floats, plastic: Floats) -> Floats:
    """[Pa] of points (m,) whose laws are `which` of a mixture's, with axes turned by `rotation`, where J is the
    deformation and `plastic` the permanent strain; shape (m, 3, 3) each."""
    result = np.zeros_like(J)
    for k, one in enumerate(mixture.materials):
        of = np.asarray(which) == k
        if of.any():
            shear, pressure = LawRow.of(one, rotation).stress(J[of], plastic[of], np.ones(of.sum()))
            result[of] = shear + pressure[:, None, None] * np.eye(3)
    return result
