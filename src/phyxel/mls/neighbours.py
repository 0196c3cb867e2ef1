# mypy: disable-error-code="valid-type,no-untyped-def"
"""Who feels whom (physics 2.3): neighbour lists by hash grid, in the layout of the device.

The relation "j lies in the support of i" is not symmetric, since supports differ. Forces are gathered, so a list holds
the symmetric union {j : |X_ij| < max(h_i, h_j)}, never truncated, and every pair stores both weights:
w_ij (zero where j is outside i's support) for what i takes from j, and w_ji for what j lays on i.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import warp as wp
from numpy.typing import NDArray
from scipy.spatial import cKDTree

from phyxel import device as dev
from phyxel.device import float32s, float64s, int32s, vec3s
from phyxel.mls.shape_values import places_among

wp.set_module_options(dev.KERNEL_OPTIONS)


def curve_order(positions: NDArray[np.floating]) -> NDArray[np.int64]:
    """The order of points along a Z-order (Morton) curve: neighbours in space become neighbours in memory."""
    lower = positions.min(axis=0)
    extent = max(float((positions.max(axis=0) - lower).max()), np.finfo(float).tiny)
    return np.argsort(z_order(((positions - lower) / extent * (2**20 - 1)).astype(np.uint64)), kind="stable")


def z_order(cells: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Number along the Z-order curve of cells given by three whole numbers below 2^21, (n, 3) -> (n,)."""
    code = np.zeros(len(cells), np.uint64)
    for axis in range(3):
        code |= _spread_bits(cells[:, axis]) << np.uint64(axis)
    return code


def _spread_bits(number: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Put two zero bits after each of the lowest 21 bits."""
    for shift, mask in (
        (32, 0x1F00000000FFFF),
        (16, 0x1F0000FF0000FF),
        (8, 0x100F00F00F00F00F),
        (4, 0x10C30C30C30C30C3),
        (2, 0x1249249249249249),
    ):
        number = (number | (number << np.uint64(shift))) & np.uint64(mask)
    return number


def nearest(
    points: NDArray[np.floating], among: NDArray[np.floating], count: int
) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Distances and indices, each (m, count), of the nearest of (n, 3) positions to each of (m, 3) points."""
    # Starting threads takes milliseconds.
    workers = -1 if len(points) > 5000 else 1
    distance, index = cKDTree(among).query(points, count, workers=workers)
    return distance.reshape(-1, count), index.reshape(-1, count)


def mean_spacing(positions: NDArray[np.floating], count: int = 10) -> NDArray[np.float64]:
    """r̄: mean distance of each point to its ten nearest (M04 §3.2), shape (n,)."""
    distance, _ = nearest(positions, positions, min(count, len(positions) - 1) + 1)
    return distance[:, 1:].mean(axis=1)


@dataclass(frozen=True)
class PairList:
    """Neighbour lists on the host, one after another: node i's are `index[start[i] : start[i] + count[i]]`."""

    count: NDArray[np.int32]
    index: NDArray[np.int32]

    @property
    def start(self) -> NDArray[np.int64]:
        return np.cumsum(self.count, dtype=np.int64) - self.count

    def seen(self, sees: Callable[[NDArray[Any], NDArray[Any]], NDArray[np.bool_]]) -> PairList:
        """The pairs (i, j) whose nodes see each other; every pair is in the lists of both, and asked for once."""
        owner = np.repeat(np.arange(len(self.count)), self.count)
        first, second = np.minimum(owner, self.index), np.maximum(owner, self.index)
        both = np.lexsort((second, first))
        once = both[::2]
        kept = np.empty(len(owner), bool)
        kept[once] = kept[both[1::2]] = sees(first[once], second[once])
        return PairList(np.bincount(owner[kept], minlength=len(self.count)).astype(np.int32), self.index[kept])

    @staticmethod
    def joined(lists: list[PairList]) -> PairList:
        """The lists of several bodies as one; bodies do not feel each other through it."""
        firsts = np.cumsum([0] + [len(pairs.count) for pairs in lists])
        shifted = [pairs.index + np.int32(first) for pairs, first in zip(lists, firsts[:-1], strict=True)]
        return PairList(np.concatenate([pairs.count for pairs in lists]), np.concatenate(shifted))

    def taken(self, order: NDArray[np.integer]) -> PairList:
        """The lists of some nodes, (m,), in another order; neighbours that are not among them are left out."""
        owner = np.repeat(np.arange(len(order)), self.count[order])
        rank = np.arange(len(owner)) - np.repeat(np.cumsum(self.count[order]) - self.count[order], self.count[order])
        index = places_among(order, len(self.count))[self.index[self.start[order][owner] + rank]]
        kept = index >= 0
        return PairList(np.bincount(owner[kept], minlength=len(order)).astype(np.int32), index[kept].astype(np.int32))

    def replaced(self, nodes: NDArray[np.integer], by: PairList) -> PairList:
        """The lists with those of some nodes, ascending (m,), replaced; `by` counts these nodes from 0. No other node
        may have one of them in its list."""
        new = np.zeros(len(self.count), bool)
        new[nodes] = True
        owner = np.repeat(np.arange(len(self.count)), self.count)
        owners = np.concatenate([owner[~new[owner]], nodes[np.repeat(np.arange(len(nodes)), by.count)]])
        index = np.concatenate([self.index[~new[owner]], nodes[by.index].astype(np.int32)])
        count = np.bincount(owners, minlength=len(self.count)).astype(np.int32)
        return PairList(count, index[np.argsort(owners, kind="stable")].astype(np.int32))


@wp.func
def _touches(i: int, j: int, X: vec3s, support: float32s):
    reach = wp.max(support[i], support[j])
    return j != i and wp.length_sq(X[j] - X[i]) < reach * reach


@wp.kernel
def count_neighbours(first: int, grid: wp.uint64, X: vec3s, support: float32s, farthest: float, count: int32s):
    """Length of each node's list."""
    i = first + wp.tid()
    found = int(0)
    for j in wp.hash_grid_query(grid, X[i], farthest):
        if _touches(i, j, X, support):
            found += 1
    count[i] = found


@wp.kernel
def list_neighbours(
    first: int,
    grid: wp.uint64,
    X: vec3s,
    support: float32s,
    farthest: float,
    start: wp.array(dtype=wp.int64),
    index: int32s,
):
    """The lists themselves (physics 2.3)."""
    i = first + wp.tid()
    entry = start[i]
    for j in wp.hash_grid_query(grid, X[i], farthest):
        if _touches(i, j, X, support):
            index[entry] = j
            entry += wp.int64(1)


def grid_for(count: int, device: wp.Device) -> wp.HashGrid:
    """A hash grid with about as many cells as there are points."""
    cells = int(np.clip(2 ** np.ceil(np.log2(max(count, 8)) / 3), 8, 128))
    return wp.HashGrid(cells, cells, cells, device=device)


def find_pairs(positions: NDArray[np.floating], support: NDArray[np.floating], device: wp.Device) -> PairList:
    """All pairs nearer than the larger of their two supports. `positions` (n, 3) in units of the node spacing."""
    n = len(positions)
    X = wp.array(positions.astype(np.float32), dtype=wp.vec3, device=device)
    h = wp.array(support.astype(np.float32), dtype=float, device=device)
    farthest = float(support.max())
    grid = grid_for(n, device)
    grid.build(X, farthest)
    count = wp.empty(n, dtype=int, device=device)
    dev.launch(count_neighbours, n, [grid.id, X, h, farthest, count], device)
    counts = count.numpy()
    start = np.cumsum(counts, dtype=np.int64) - counts
    index = wp.empty(int(counts.sum()), dtype=int, device=device)
    offsets = wp.array(start, dtype=wp.int64, device=device)
    dev.launch(list_neighbours, n, [grid.id, X, h, farthest, offsets, index], device)
    return PairList(counts, index.numpy())


@dataclass(frozen=True)
class Neighbourhood:
    """Neighbour lists on the device. The k-th neighbour of i is `index[start[i] + k·stride]`.

    On the CPU the list of a node is contiguous (stride 1), so that one thread streams it; on CUDA the k-th neighbours
    of all nodes are contiguous (stride n), so that neighbouring threads read neighbouring words.
    """

    start: wp.array
    """shape (n,), int32"""
    count: wp.array
    """shape (n,), int32"""
    stride: int
    index: wp.array
    """j, int32"""
    weight: wp.array
    """w_ij, no unit"""
    weight_back: wp.array
    """w_ji, no unit"""

    @staticmethod
    def laid_out(
        pairs: PairList, real: Any, device: wp.Device, room: NDArray[np.integer] | None = None
    ) -> Neighbourhood:
        """Lists in the device's layout; weights still to be filled. `room` is the length each list may grow to, (n,);
        without it they keep theirs."""
        n = len(pairs.count)
        longest = pairs.count if room is None else np.maximum(room, pairs.count).astype(np.int64)
        if device.is_cuda:
            start, stride, entries = np.arange(n), n, n * int(longest.max(initial=0))
        else:
            start, stride, entries = np.cumsum(longest, dtype=np.int64) - longest, 1, int(longest.sum())
        index = np.zeros(entries, np.int32)
        owner = np.repeat(np.arange(n), pairs.count)
        rank = np.arange(len(pairs.index)) - pairs.start[owner]
        index[start[owner] + rank * stride] = pairs.index
        if len(index) > np.iinfo(np.int32).max:
            raise ValueError(f"{len(index)} neighbour entries: more than 32-bit indices can hold")
        return Neighbourhood(
            start=wp.array(start.astype(np.int32), dtype=wp.int32, device=device),
            count=wp.array(pairs.count, dtype=wp.int32, device=device),
            stride=stride,
            index=wp.array(index, dtype=wp.int32, device=device),
            weight=wp.zeros(len(index), dtype=real, device=device),
            weight_back=wp.zeros(len(index), dtype=real, device=device),
        )

    def pairs(self) -> PairList:
        """The lists as they are now, on the host."""
        start, count, index = (array.numpy() for array in (self.start, self.count, self.index))
        owner = np.repeat(np.arange(len(count)), count)
        rank = np.arange(len(owner)) - (np.cumsum(count, dtype=np.int64) - count)[owner]
        return PairList(count.copy(), index[start[owner] + rank * self.stride])


@wp.kernel
def take_places(first: int, nodes: int32s, X: wp.array(dtype=Any), places: vec3s):
    """Where the moving nodes are, in single precision for the grid."""
    q = first + wp.tid()
    x = X[nodes[q]]
    places[q] = wp.vec3(float(x[0]), float(x[1]), float(x[2]))


@wp.kernel
def list_again(
    first: int,
    grid: wp.uint64,
    nodes: int32s,
    places: vec3s,
    support: float64s,
    farthest: float,
    room: int,
    start: int32s,
    stride: int,
    index: int32s,
    count: int32s,
    wanted: int32s,
):
    """The list of each moving node (physics 7.3): the nodes nearer than the larger of the two supports, as far as there
    is room."""
    q = first + wp.tid()
    i = nodes[q]
    here = places[q]
    found = int(0)
    for other in wp.hash_grid_query(grid, here, farthest):
        j = nodes[other]
        reach = float(wp.max(support[i], support[j]))
        if other != q and wp.length_sq(places[other] - here) < reach * reach:
            if found < room:
                index[start[i] + found * stride] = j
            found += 1
    wanted[q] = found
    count[i] = wp.min(found, room)


class MovingLists:
    """Finds the lists of some nodes among themselves."""

    def __init__(self, nodes: NDArray[np.integer], support: wp.array, room: int, device: wp.Device) -> None:
        self.nodes = wp.array(nodes.astype(np.int32), dtype=wp.int32, device=device)
        """ascending, shape (m,)"""
        self.room = room
        self._support, self._device = support, device
        self._farthest = float(support.numpy()[nodes].max())
        self._places = wp.zeros(len(nodes), dtype=wp.vec3, device=device)
        self._wanted = wp.zeros(len(nodes), dtype=wp.int32, device=device)
        self._grid = grid_for(len(nodes), device)

    def find(self, X: wp.array, near: Neighbourhood) -> int:
        """Write the lists into `near`; the length of the longest, which may be more than there was room for."""
        m, device = len(self.nodes), self._device
        dev.launch(take_places, m, [self.nodes, X, self._places], device, split=False)
        self._grid.build(self._places, self._farthest)
        inputs = [self._grid.id, self.nodes, self._places, self._support, self._farthest, self.room]
        lists = [near.start, near.stride, near.index, near.count, self._wanted]
        dev.launch(list_again, m, [*inputs, *lists], device)
        return int(self._wanted.numpy().max())
