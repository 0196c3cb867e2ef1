"""Shape functions and their gradients at points, as lists of the nodes that each point depends on."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import warp as wp
from numpy.typing import NDArray
from scipy.sparse import csr_array

from phyxel.errors import SolidError
from phyxel.state import State


def starts_of(count: NDArray[np.integer]) -> NDArray[np.int32]:
    """Where each list starts, and where the last one ends."""
    start = np.concatenate([[0], np.cumsum(count, dtype=np.int64)])
    if start[-1] > np.iinfo(np.int32).max:
        raise SolidError(f"{start[-1]} pairs of points and nodes: more than 32 bits can count; ask for fewer points")
    return start.astype(np.int32)


def owners_of(start: NDArray[np.int32]) -> NDArray[np.int32]:
    """The list each entry belongs to."""
    return np.repeat(np.arange(len(start) - 1, dtype=np.int32), np.diff(start))


def entries_of(start: NDArray[np.int32], points: NDArray[np.integer]) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
    """Of the lists of some points, (k,): where they start if they follow each other, (k + 1,), and their entries."""
    count = (start[1:] - start[:-1])[points]
    starts = starts_of(count)
    return starts, np.repeat(start[points] - starts[:-1], count) + np.arange(starts[-1])


def places_among(chosen: NDArray[np.integer], count: int) -> NDArray[np.int64]:
    """Where each of `count` things is among those chosen, (k,), or −1; shape (count,)."""
    place = np.full(count, -1)
    place[chosen] = np.arange(len(chosen))
    return place


@dataclass(frozen=True)
class ShapeValues:
    """φ and ∇φ at m points: sparse matrices on the host, and the same numbers as arrays on the device.

    The nodes that point i depends on are `index[start[i] : start[i + 1]]`, ascending. Where they do not determine the
    basis (too few, or in one plane) φ and ∇φ are zero and the condition is infinite.
    """

    start: wp.array
    """shape (m + 1,), int32"""
    index: wp.array
    """I, shape (pairs,), int32"""
    phi: wp.array
    """φ_I(x), shape (pairs,), float64, no unit"""
    dphi: wp.array
    """∇φ_I(x), shape (pairs,) of vec3d [1/m]"""
    condition: NDArray[np.float64]
    """cond(A) with lengths in mean covers, never less than that of the 2-norm and rarely 20 % more, shape (m,)"""
    node_count: int

    def with_gradients(self, gradients: NDArray[np.float64]) -> ShapeValues:
        """The same with other ∇φ, shape (pairs, 3)."""
        return replace(self, dphi=wp.array(gradients, dtype=wp.vec3d, device=self.dphi.device))

    def replaced(self, values: csr_array, gradients: list[csr_array]) -> ShapeValues:
        """Others at the same points: φ (m, n) and its derivatives."""
        pattern = abs(values) + sum(abs(part) for part in gradients)
        pattern.sort_indices()
        owner = np.repeat(np.arange(len(self.condition)), np.diff(pattern.indptr))
        phi, *slopes = (np.asarray(part[owner, pattern.indices]).reshape(-1) for part in (values, *gradients))
        lists = {"start": pattern.indptr.astype(np.int32), "index": pattern.indices.astype(np.int32)}
        return self._others(**lists, phi=phi, dphi=np.stack(slopes, axis=1), condition=self.condition)

    def with_rows(self, points: NDArray[np.integer], other: ShapeValues) -> ShapeValues:
        """Others at some of the points, (k,)."""
        if len(points) == 0:
            return self
        order = np.arange(len(self.condition))
        order[points] = len(order) + np.arange(len(points))
        return self.followed_by(other).rows(order)

    def with_nodes(self, index: NDArray[np.integer], node_count: int) -> ShapeValues:
        """The same with the nodes called by other numbers, (pairs,)."""
        numbers = wp.array(np.asarray(index, np.int32), dtype=wp.int32, device=self.index.device)
        return replace(self, index=numbers, node_count=node_count)

    def unknown(self) -> ShapeValues:
        """The same points, of which nothing is known."""
        return replace(self, condition=np.full(len(self.condition), np.inf))

    def only(self, place: NDArray[np.integer], node_count: int) -> ShapeValues:
        """The same for some nodes only, called by the numbers that `place` (n,) says, or not at all where it says −1.
        Where that leaves out any the condition is infinite."""
        state, index, owner = self.state(), place[self.index.numpy()], self.owner
        kept = index >= 0
        condition = np.where(np.bincount(owner[~kept], minlength=len(self.condition)) > 0, np.inf, self.condition)
        parts = {name: state[name][kept] for name in ("phi", "dphi")}
        start = starts_of(np.bincount(owner[kept], minlength=len(condition)))
        found = {"start": start, "index": index[kept], "condition": condition, **parts}
        return ShapeValues.restored(found, node_count, self.start.device)

    @property
    def owner(self) -> NDArray[np.int32]:
        """The point of each pair, shape (pairs,)."""
        return owners_of(self.start.numpy())

    def with_values(self, values: NDArray[np.float64]) -> ShapeValues:
        """The same with other φ, shape (pairs,)."""
        return replace(self, phi=wp.array(values, dtype=wp.float64, device=self.phi.device))

    def followed_by(self, other: ShapeValues) -> ShapeValues:
        """At these points, and then at those of another, for the same nodes."""
        one, two = self.state(), other.state()
        two["start"] = one["start"][-1] + two["start"][1:]
        return self._others(**{name: np.concatenate([one[name], two[name]]) for name in one})

    def rows(self, points: NDArray[np.integer]) -> ShapeValues:
        """Those of some of the points, (k,)."""
        start, pairs = entries_of(self.start.numpy(), points)
        chosen = {name: getattr(self, name).numpy()[pairs] for name in ("index", "phi", "dphi")}
        return self._others(start=start, **chosen, condition=self.condition[points])

    def _others(self, **state: NDArray[Any]) -> ShapeValues:
        """For the same nodes."""
        return ShapeValues.restored(state, self.node_count, self.start.device)

    def state(self) -> State:
        """All numbers, by name."""
        arrays = {name: getattr(self, name).numpy() for name in ("start", "index", "phi", "dphi")}
        return arrays | {"condition": self.condition}

    @staticmethod
    def restored(state: State, node_count: int, device: wp.Device) -> ShapeValues:
        """From what `state` gave."""
        kinds = {"start": wp.int32, "index": wp.int32, "phi": wp.float64, "dphi": wp.vec3d}
        arrays = {name: wp.array(state[name], dtype=kind, device=device) for name, kind in kinds.items()}
        return ShapeValues(**arrays, condition=state["condition"], node_count=node_count)

    def _matrix(self, entries: NDArray[np.float64]) -> csr_array:
        shape = len(self.condition), self.node_count
        return csr_array((np.ascontiguousarray(entries), self.index.numpy(), self.start.numpy()), shape)

    @cached_property
    def values(self) -> csr_array:
        """φ_I(x_i), shape (m, n): `values @ u` is the field u at the points."""
        return self._matrix(self.phi.numpy())

    @cached_property
    def gradients(self) -> tuple[csr_array, csr_array, csr_array]:
        """∂φ_I/∂x, ∂φ_I/∂y, ∂φ_I/∂z [1/m], each (m, n): `gradients[k] @ u` is ∂u/∂x_k at the points."""
        x, y, z = (self._matrix(entries) for entries in self.dphi.numpy().T)
        return x, y, z
