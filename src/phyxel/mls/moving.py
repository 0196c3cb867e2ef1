# mypy: disable-error-code="valid-type,no-untyped-def"
"""Neighbour lists of nodes that flow past each other, found anew in place: what was captured with them stays valid."""

from __future__ import annotations

from typing import Any

import numpy as np
import warp as wp
from numpy.typing import NDArray

from phyxel import device as dev
from phyxel.mls.neighbours import Neighbourhood, grid_for

wp.set_module_options(dev.KERNEL_OPTIONS)


@wp.kernel
def take_places(first: int, nodes: wp.array(dtype=wp.int32), X: wp.array(dtype=Any), places: wp.array(dtype=wp.vec3)):
    """Where the moving nodes are, in single precision for the grid."""
    q = first + wp.tid()
    x = X[nodes[q]]
    places[q] = wp.vec3(float(x[0]), float(x[1]), float(x[2]))


@wp.kernel
def list_again(
    first: int,
    grid: wp.uint64,
    nodes: wp.array(dtype=wp.int32),
    places: wp.array(dtype=wp.vec3),
    support: wp.array(dtype=wp.float64),
    farthest: float,
    room: int,
    start: wp.array(dtype=wp.int32),
    stride: int,
    index: wp.array(dtype=wp.int32),
    count: wp.array(dtype=wp.int32),
    wanted: wp.array(dtype=wp.int32),
):
    """The list of each moving node: the nodes nearer than the larger of the two supports, as far as there is room."""
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
