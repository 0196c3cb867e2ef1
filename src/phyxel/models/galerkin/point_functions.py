# mypy: disable-error-code="valid-type"
"""Shape functions of a body at the points of its quadrature (physics 10.1), and what cracks have changed of them
(physics 12.8). A pair that a crack has parted keeps its place, with φ = 0: lists grow only where a point has to look
further."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import warp as wp
from numpy.typing import NDArray
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components

from phyxel.device import float64s, int32s, vec3ds
from phyxel.mls.shape_values import entries_of
from phyxel.state import State

Floats = NDArray[np.float64]
Indices = NDArray[np.integer]
Extent = tuple[Floats, Floats]
"""The lower and the upper corner of a box."""
Lists = tuple[NDArray[np.int32], NDArray[np.int32]]
"""Where the lists of nodes that meet each node start, and the lists, ascending."""


@wp.struct
class Pairs:
    """Which points and nodes meet, in both orders, on the device."""

    start: int32s
    """of each point's list, shape (q + 1,)"""
    node: int32s
    """shape (pairs,)"""
    start_of_node: int32s
    """of each node's list, shape (n + 1,)"""
    pair: int32s
    """that list: numbers of pairs, by ascending point, shape (pairs,)"""
    point: int32s
    """the point of each entry of that list, shape (pairs,)"""
    phi: float64s
    """shape (pairs,)"""
    dphi: vec3ds
    """∇φ, shape (pairs,)"""


@dataclass(frozen=True, eq=False)
class PointLists:
    """The quadrature points and the nodes that each depends on: `index[start[q] : start[q + 1]]`, ascending."""

    points: Floats
    """shape (q, 3)"""
    weights: Floats
    """the volume each stands for, shape (q,)"""
    nodes: Floats
    """shape (n, 3)"""
    owner: Indices
    """the node whose cell each point is in, shape (q,): the nearest, or one beside it whose cell that of a held node is
    a part of"""
    start: NDArray[np.int32]
    """shape (q + 1,)"""
    index: NDArray[np.int32]
    """shape (pairs,)"""
    device: wp.Device
    known_neighbours: Lists | None = None
    """the nodes that share a cell with each node, if they have been found"""

    @property
    def shape(self) -> tuple[int, int]:
        return len(self.points), len(self.nodes)

    @cached_property
    def point(self) -> NDArray[np.int32]:
        """The point of each entry, shape (pairs,)."""
        return np.repeat(np.arange(len(self.points), dtype=np.int32), np.diff(self.start))

    @cached_property
    def neighbours(self) -> Lists:
        """The nodes that share a cell with each node: points of it depend on both."""
        if self.known_neighbours is not None:
            return self.known_neighbours
        felt = np.ones(len(self.index), np.float32), (self.owner[self.point], self.index)
        common = _met(csr_array(felt, 2 * self.shape[1:]))
        return common.indptr.astype(np.int32), common.indices.astype(np.int32)

    @cached_property
    def on_device(self) -> tuple[wp.array, ...]:
        """The lists in both orders, as `Pairs` has them."""
        numbers = np.arange(len(self.index), dtype=np.int32)
        of_nodes = csr_array((numbers, self.index, self.start), self.shape).tocsc()
        arrays = (self.start, self.index, of_nodes.indptr, of_nodes.data, of_nodes.indices)
        return tuple(wp.array(array, dtype=wp.int32, device=self.device) for array in arrays)

    @cached_property
    def _spans(self) -> Extent:
        """The box around each point and its nodes, shape (q, 3) each."""
        nodes, start = self.nodes[self.index], self.start[:-1]
        lower, upper = np.minimum.reduceat(nodes, start), np.maximum.reduceat(nodes, start)
        return np.minimum(lower, self.points), np.maximum(upper, self.points)

    def near(self, box: Extent) -> NDArray[np.int64]:
        """Entries of the points whose ways to their nodes may lead through a box."""
        lower, upper = self._spans
        return entries_of(self.start, np.flatnonzero(((lower < box[1]) & (upper > box[0])).all(axis=1)))[1]

    def grown(self, start: NDArray[np.int32], index: NDArray[np.int32], rows: Indices) -> PointLists:
        """Lists that are longer at some points, (k,)."""
        starts, entries = entries_of(start, rows)
        known = csr_array((np.ones(len(self.neighbours[1]), np.float32), *self.neighbours[::-1]), 2 * self.shape[1:])
        felt = np.ones(len(entries), np.float32), index[entries], starts
        both = csr_array(known + _met(csr_array(felt, (len(rows), self.shape[1]))))
        neighbours = both.indptr.astype(np.int32), both.indices.astype(np.int32)
        return replace(self, start=start, index=index, known_neighbours=neighbours)


def _met(felt: csr_array) -> csr_array:
    """Which nodes share a place, given which places feel which nodes (m, n): entries of any value, shape (n, n)."""
    common = csr_array(felt.T @ felt)
    common.sort_indices()
    return common


@dataclass(frozen=True, eq=False)
class PointFunctions:
    """φ_I and ∇φ_I at the points of the quadrature."""

    lists: PointLists
    phi: Floats
    """shape (pairs,)"""
    dphi: Floats
    """∇φ, consistent with the quadrature where no crack is near, shape (pairs, 3)"""
    seen: NDArray[np.bool_]
    """whether the point and the node of an entry see each other, shape (pairs,)"""
    cut_off: NDArray[np.bool_]
    """points that have been cut off from nodes, shape (q,)"""
    lost: NDArray[np.bool_]
    """points that see too few nodes, shape (q,)"""

    @staticmethod
    def whole(lists: PointLists, phi: Floats, dphi: Floats) -> PointFunctions:
        """Those without cracks."""
        none = np.zeros(len(lists.points), bool)
        return PointFunctions(lists, phi, dphi, np.ones(len(phi), bool), none, none)

    @cached_property
    def values(self) -> csr_array:
        """φ_I at the points, shape (q, n)."""
        return csr_array((self.phi, self.lists.index, self.lists.start), self.lists.shape)

    @cached_property
    def pairs(self) -> Pairs:
        """Points and nodes that meet."""
        pairs, device = Pairs(), self.lists.device
        pairs.start, pairs.node, pairs.start_of_node, pairs.pair, pairs.point = self.lists.on_device
        pairs.phi = wp.array(self.phi, dtype=wp.float64, device=device, copy=False)
        pairs.dphi = wp.array(self.dphi, dtype=wp.vec3d, device=device, copy=False)
        return pairs

    @cached_property
    def cell(self) -> NDArray[np.int32]:
        """The cell of each point, shape (q,): that of a node, or one of its own where a crack is near, as what lies
        across is no longer the same matter. So n + q cells in all, many of them empty."""
        points, nodes = self.lists.shape
        return np.where(self.cut_off, nodes + np.arange(points), self.lists.owner).astype(np.int32)

    @cached_property
    def cell_volumes(self) -> Floats:
        """shape (n + q,)"""
        return np.asarray(np.bincount(self.cell, self.lists.weights, sum(self.lists.shape)), np.float64)

    @cached_property
    def means(self) -> PointFunctions:
        """The mean functions of each cell, Σ w φ / Σ w, as if cells were points."""
        lists, (points, nodes) = self.lists, self.lists.shape
        share = lists.weights / self.cell_volumes[self.cell]
        cell = self.cell[lists.point].astype(np.int64)
        keys, place = np.unique(cell * nodes + lists.index, return_inverse=True)
        phi, *dphi = (np.bincount(place, share[lists.point] * part) for part in (self.phi, *self.dphi.T))
        start = np.searchsorted(keys, np.arange(points + nodes + 1) * nodes).astype(np.int32)
        middle = np.stack(
            [np.bincount(self.cell, share * x, points + nodes) for x in lists.points.T], axis=1, dtype=np.float64
        )
        cells = replace(
            lists, points=middle, weights=self.cell_volumes, start=start, index=(keys % nodes).astype(np.int32)
        )
        cut_off = np.zeros(points + nodes, bool)
        cut_off[lists.owner[self.cut_off]] = cut_off[nodes:][self.cut_off] = True
        lost = np.zeros_like(cut_off)
        return PointFunctions(
            cells,
            np.asarray(phi, np.float64),
            np.stack(dphi, axis=1, dtype=np.float64),
            np.ones(len(phi), bool),
            cut_off,
            lost,
        )

    def with_cells(self, owner: Indices) -> PointFunctions:
        """The same with other cells, those of nodes (q,)."""
        if np.array_equal(owner, self.lists.owner):
            return self
        return replace(self, lists=replace(self.lists, owner=owner, known_neighbours=None))

    @cached_property
    def felt(self) -> NDArray[np.int64]:
        """Nodes that points depend on, ascending."""
        felt = np.zeros(len(self.lists.nodes), bool)
        felt[self.lists.index[self.phi != 0]] = True
        return np.flatnonzero(felt)

    @cached_property
    def orphans(self) -> NDArray[np.int64]:
        """Nodes that no point depends on, ascending."""
        return np.setdiff1d(np.arange(len(self.lists.nodes)), self.felt)

    def linked(self) -> NDArray[np.int32]:
        """Number of the part that each node belongs to, shape (n,): those that share a point are in one."""
        linked = csr_array(self.values, copy=True)
        linked.eliminate_zeros()
        points, nodes = linked.shape
        both = csr_array((linked.data, linked.indices + points, linked.indptr), (points, points + nodes))
        both.resize(points + nodes, points + nodes)
        return np.asarray(connected_components(both, directed=False)[1][points:])

    def same_as(self, other: PointFunctions) -> bool:
        """Whether the same points see the same nodes."""
        return self is other or (
            np.array_equal(self.lists.start, other.lists.start) and np.array_equal(self.seen, other.seen)
        )

    def changed_from(self, before: PointFunctions) -> NDArray[np.int64]:
        """Points whose functions were others `before` a cut, or several, ascending."""
        rows = np.flatnonzero(self.cut_off)
        (starts, entries), (others, olds) = (entries_of(one.lists.start, rows) for one in (self, before))
        counts, old_counts = np.diff(starts), np.diff(others)
        same = counts == old_counts
        entries, olds = entries[np.repeat(same, counts)], olds[np.repeat(same, old_counts)]
        differs = self.phi[entries] != before.phi[olds]
        differs |= (self.dphi[entries] != before.dphi[olds]).any(axis=1)
        owner = np.repeat(np.flatnonzero(same), counts[same])
        return np.asarray(rows[~same | (np.bincount(owner[differs], minlength=len(rows)) > 0)], np.int64)

    def state(self, rows: Indices, names: Indices, place: Indices) -> State:
        """Functions at points `rows`, to be called `names`, of nodes to be called `place`, where that is not −1."""
        starts, entries = entries_of(self.lists.start, rows)
        owner = np.repeat(np.arange(len(rows)), np.diff(starts))
        kept = place[self.lists.index[entries]] >= 0
        entries, owner = entries[kept], owner[kept]
        return {
            "rows": names, "lost": self.lost[rows], "count": np.bincount(owner, minlength=len(rows)),
            "index": place[self.lists.index[entries]],
            "phi": self.phi[entries], "dphi": self.dphi[entries], "seen": self.seen[entries],
        }  # fmt: skip

    def with_rows(self, state: State) -> PointFunctions:
        """Others at some points, as a `state` has them."""
        rows, lists = state["rows"], self.lists
        starts, entries = entries_of(lists.start, rows)
        arrays: State = {"phi": self.phi, "dphi": self.dphi, "seen": self.seen}
        if np.array_equal(np.diff(starts), state["count"]):
            arrays = {name: array.copy() for name, array in arrays.items()}
            for name, array in arrays.items():
                array[entries] = state[name]
        else:
            order = np.arange(len(lists.points))
            order[rows] = len(order) + np.arange(len(rows))
            both = np.concatenate([lists.start, lists.start[-1] + np.cumsum(state["count"])])
            start, entries = entries_of(both.astype(np.int32), order)
            arrays = {name: np.concatenate([array, state[name]])[entries] for name, array in arrays.items()}
            index = np.concatenate([lists.index, state["index"].astype(np.int32)])[entries]
            lists = lists.grown(start, index, rows)
        lost, cut_off = self.lost.copy(), self.cut_off.copy()
        lost[rows], cut_off[rows] = state["lost"], True
        return PointFunctions(lists, **arrays, cut_off=cut_off, lost=lost)


def strongest(values: csr_array) -> NDArray[np.int64]:
    """The node of the largest |φ| in each row, shape (m,)."""
    most = np.maximum.reduceat(np.abs(values.data), values.indptr[:-1])
    chosen = np.abs(values.data) == np.repeat(most, np.diff(values.indptr))
    first = np.flatnonzero(chosen)
    return values.indices[first[np.searchsorted(first, values.indptr[:-1])]].astype(np.int64)
