# mypy: disable-error-code="valid-type,no-untyped-def"
"""The space a Galerkin body moves in (G04 §3.1, §4.1): fields u(X) = Σ_I φ_I(X) u_I over its nodes, the quadrature that
integrates them, and the two matrices of small motion,

    M_IJ = ∫ ρ φ_I φ_J,   K_IJ = ∫ B_Iᵀ C B_J.

Lengths are in units of the body's mean node spacing, about the middle of its reference shape; everything is in double.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import warp as wp
from numpy.typing import NDArray
from scipy.sparse import bsr_array, csc_array, csr_array
from scipy.sparse.linalg import splu

from phyxel import device as dev
from phyxel.mls.neighbours import nearest
from phyxel.mls.seen import Sees
from phyxel.mls.shape_functions import Basis, ShapeFunctions, ShapeValues
from phyxel.models.elasticity import hooke
from phyxel.models.laws import Row
from phyxel.solid.fabric import Fabric

wp.set_module_options(dev.KERNEL_OPTIONS)

Floats = NDArray[np.float64]
SAME = 1e-9
"""Distance in spacings within which two places are one."""
mat66d = wp.types.matrix((6, 6), wp.float64)


@dataclass(frozen=True)
class Placing:
    """How a cloud's coordinates lie to a body's: X = (x − middle) turnᵀ / length."""

    middle: Floats
    """what the body counts from, in the cloud's coordinates, shape (3,)"""
    length: float
    """the body's unit, in the cloud's"""
    turn: Floats
    """the cloud's axes in the body's, 3 × 3"""

    def cloud(self, X: NDArray[np.floating]) -> Floats:
        """Positions (m, 3) of the body in the cloud's coordinates."""
        return self.middle + self.length * (np.asarray(X, np.float64).reshape(-1, 3) @ self.turn)

    def body(self, x: Floats) -> Floats:
        """Positions (m, 3) of the cloud in the body's coordinates."""
        return (x - self.middle) @ self.turn.T / self.length


@dataclass(frozen=True)
class Pairs:
    """Which points and nodes meet, in both orders, on the device."""

    start: wp.array
    """of each point's list, shape (q + 1,), int32"""
    node: wp.array
    """shape (pairs,), int32"""
    phi: wp.array
    """shape (pairs,), float64"""
    dphi: wp.array
    """∇φ, shape (pairs,) of vec3d"""
    start_of_node: wp.array
    """of each node's list, shape (n + 1,), int32"""
    pair: wp.array
    """that list: numbers of pairs, by ascending point, shape (pairs,), int32"""
    point: wp.array
    """the point of each entry of that list, shape (pairs,), int32"""


class Space:
    """Shape functions of a body, at its quadrature points and anywhere."""

    def __init__(self, fabric: Fabric, placing: Placing, skin: Floats, sees: Sees | None, device: wp.Device) -> None:
        """`skin` (m, 3) are the surfels' positions, `sees` is that of the cloud's coordinates."""
        self.device = device
        self._fabric, self._placing, self._skin, self._sees = fabric, placing, skin, sees
        self.nodes: Floats = placing.body(fabric.nodes.positions)
        """X_I, shape (n, 3)"""
        quadrature = fabric.nodes.quadrature
        self.points: Floats = placing.body(quadrature.points)
        """where integrals look, shape (q, 3)"""
        self.weights: Floats = quadrature.weights / placing.length**3
        """the volume each stands for, shape (q,)"""
        # In the cloud's coordinates: of two that are as near it is the one whose volume has the point, however it lies.
        self.owner: NDArray[np.int64] = nearest(quadrature.points, fabric.nodes.positions, 1)[1][:, 0]
        """the node nearest to each point, shape (q,)"""
        found = self._turned(fabric.at_points)
        self.values: csr_array = found.values
        """φ_I at the points, shape (q, n)"""
        self.gradients: Floats = found.dphi.numpy()
        """∇φ_I of its entries, consistent with the quadrature, shape (pairs, 3)"""
        self.pairs = _paired(self.values, self.gradients, device)

    def __len__(self) -> int:
        return len(self.nodes)

    @property
    def basis(self) -> Basis:
        """ "linear" or "quadratic" """
        return self._fabric.basis

    @cached_property
    def _shape(self) -> ShapeFunctions:
        fabric = self._fabric
        return ShapeFunctions(fabric.nodes.positions, fabric.covers, fabric.basis, self._sees, self.device)

    def at(self, X: NDArray[np.floating]) -> ShapeValues:
        """φ and ∇φ at (m, 3) positions."""
        X = np.asarray(X, np.float64).reshape(-1, 3)
        # Nodes and surfels are known, and asked for most; other places may need a look at the solid, which takes long.
        for places, known in ((self.nodes, "at_nodes"), (self._skin, "at_skin")):
            distance, index = nearest(X, places, 1)
            if len(X) and distance.max() < SAME:
                return getattr(self, known).rows(index[:, 0])
        return self._continued(self._turned(self._shape.at(self._placing.cloud(X))), X)

    def _continued(self, found: ShapeValues, X: Floats) -> ShapeValues:
        """With fields that go on straight from the nearest node where no function reaches X (m, 3)."""
        lost = np.flatnonzero(~np.isfinite(found.condition))
        if not len(lost):
            return found
        home = nearest(X[lost], self.nodes, 1)[1][:, 0]
        at_home = self.at_nodes.rows(home)
        away = np.repeat(X[lost] - self.nodes[home], np.diff(at_home.start.numpy()), axis=0)
        rise = np.einsum("pa,pa->p", at_home.dphi.numpy(), away)
        order = np.arange(len(X))
        order[lost] = len(X) + np.arange(len(lost))
        return found.followed_by(at_home.with_values(at_home.phi.numpy() + rise)).rows(order)

    def _turned(self, found: ShapeValues) -> ShapeValues:
        slope = self._placing.length * found.dphi.numpy()
        turn = self._placing.turn
        return found.with_gradients(slope if np.array_equal(turn, np.eye(3)) else slope @ turn.T)

    @cached_property
    def at_nodes(self) -> ShapeValues:
        """φ and ∇φ at the nodes: a node's coefficient is not its displacement."""
        return self._turned(self._fabric.at_nodes)

    @cached_property
    def at_skin(self) -> ShapeValues:
        """φ and ∇φ at the surfels."""
        return self._turned(self._fabric.at_skin)

    def mass(self, density: Floats) -> csr_array:
        """M_IJ = ∫ ρ φ_I φ_J for densities (q,) at the points, shape (n, n)."""
        weighted = self.values.copy()
        weighted.data = weighted.data * np.repeat(self.weights * density, np.diff(weighted.indptr))
        return csr_array(self.values.T @ weighted)

    def fit(self, density: Floats) -> Callable[[Floats], Floats]:
        """Takes what holds around each node, a (n, k), to coefficients p of the nearest field: M p = ∫ ρ φ a, with a of
        the nearest node. What is even stays so, and forces ρ a keep their sum. Densities (q,) are the points'."""
        weighted = csr_array((self.weights * density, (np.arange(len(self.owner)), self.owner)), self.values.shape)
        load = csr_array(self.values.T @ weighted)
        solve = splu(csc_array(self.mass(density))).solve
        return lambda a: np.asarray(solve(load @ a))

    def stiffness(self, rows: Sequence[Row], which: NDArray[np.integer]) -> bsr_array:
        """K_IJ = ∫ B_Iᵀ C B_J at rest, 3 × 3 blocks, shape (3n, 3n); `which` law is that of each point, (q,)."""
        start, index = self._neighbours
        blocks = wp.zeros(len(index), dtype=wp.mat33d, device=self.device)
        laws = np.array([row.stiffness + row.k_v * _ONES for row in rows])
        pairs = self.pairs
        dev.launch(
            assemble_stiffness,
            len(self),
            [
                pairs.start_of_node, pairs.pair, pairs.point, pairs.start, pairs.node, pairs.dphi,
                wp.array(self.weights, dtype=wp.float64, device=self.device),
                wp.array(np.asarray(which, np.int32), dtype=wp.int32, device=self.device),
                wp.array(laws, dtype=mat66d, device=self.device),
                wp.array(start, dtype=wp.int32, device=self.device),
                wp.array(index, dtype=wp.int32, device=self.device),
                blocks,
            ],
            self.device,
        )  # fmt: skip
        return bsr_array((blocks.numpy(), index, start), shape=(3 * len(self), 3 * len(self)))

    @cached_property
    def _neighbours(self) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
        """Where the lists of nodes that share a point with each node start, and the lists, ascending."""
        meets = csr_array(
            (np.ones(self.values.nnz, np.float32), self.values.indices, self.values.indptr), self.values.shape
        )
        common = csr_array(meets.T @ meets)
        common.sort_indices()
        return common.indptr.astype(np.int32), common.indices.astype(np.int32)


_ONES = np.zeros((6, 6))
_ONES[:3, :3] = 1.0


def _paired(values: csr_array, gradients: Floats, device: wp.Device) -> Pairs:
    owner = np.repeat(np.arange(values.shape[0], dtype=np.int32), np.diff(values.indptr))
    order = np.argsort(values.indices, kind="stable").astype(np.int32)
    starts = np.concatenate([[0], np.cumsum(np.bincount(values.indices, minlength=values.shape[1]))])

    def on_device(array: NDArray[np.generic], dtype: object) -> wp.array:
        return wp.array(array, dtype=dtype, device=device)

    return Pairs(
        on_device(values.indptr, wp.int32),
        on_device(values.indices, wp.int32),
        on_device(values.data, wp.float64),
        on_device(gradients, wp.vec3d),
        on_device(starts, wp.int32),
        on_device(order, wp.int32),
        on_device(owner[order], wp.int32),
    )


@wp.kernel
def assemble_stiffness(
    first: int,
    start_of_node: wp.array(dtype=wp.int32),
    pair: wp.array(dtype=wp.int32),
    point: wp.array(dtype=wp.int32),
    start: wp.array(dtype=wp.int32),
    node: wp.array(dtype=wp.int32),
    dphi: wp.array(dtype=wp.vec3d),
    weight: wp.array(dtype=wp.float64),
    law: wp.array(dtype=wp.int32),
    laws: wp.array(dtype=mat66d),
    row_start: wp.array(dtype=wp.int32),
    column: wp.array(dtype=wp.int32),
    block: wp.array(dtype=wp.mat33d),
):
    """The row of K that belongs to a node: K_IJ = Σ_q w (∇φ_I · C · ∇φ_J), (K_IJ)_ab = Σ_cd φ_I,c C_acbd φ_J,d.

    All lists ascend: a pointer that walks along the row finds the column of each J.
    """
    I = first + wp.tid()
    for entry in range(start_of_node[I], start_of_node[I + 1]):
        q = point[entry]
        g = weight[q] * dphi[pair[entry]]
        C = laws[law[q]]
        # σ of the strain that a unit of u_a at node I makes, for a = x, y, z
        sx = hooke(C, _strain(g, 0))
        sy = hooke(C, _strain(g, 1))
        sz = hooke(C, _strain(g, 2))
        at = row_start[I]
        for other in range(start[q], start[q + 1]):
            J = node[other]
            while column[at] < J:
                at += 1
            h = dphi[other]
            block[at] += wp.matrix_from_rows(sx * h, sy * h, sz * h)


@wp.func
def _strain(g: wp.vec3d, a: int):
    """sym(e_a gᵀ)"""
    e = wp.vec3d()
    e[a] = wp.float64(0.5)
    return wp.outer(e, g) + wp.outer(g, e)
