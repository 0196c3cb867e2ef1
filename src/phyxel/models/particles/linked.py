# mypy: disable-error-code="valid-type,no-untyped-def"
"""Pull and stiffness of the links of a sheet at some y, for Newton's rounds (physics 13.2, 13.9): on the CPU, in
double."""

from __future__ import annotations

from typing import Any

import numpy as np
import warp as wp
from numpy.typing import NDArray
from scipy.sparse import csr_array

from phyxel import device as dev

wp.set_module_options(dev.KERNEL_OPTIONS)

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@wp.struct
class ListedShares:
    """A sparse matrix by rows."""

    first: wp.array(dtype=wp.int32)
    """where each row begins, shape (rows + 1,)"""
    column: wp.array(dtype=wp.int32)
    share: wp.array(dtype=wp.float64)


@wp.struct
class LinkNumbers:
    """Of each link, shape (E,)."""

    k: wp.array(dtype=wp.float64)
    rest: wp.array(dtype=wp.float64)
    e: wp.array(dtype=wp.vec3d)
    length: wp.array(dtype=wp.float64)
    pull: wp.array(dtype=wp.vec3d)
    """k (1 − r/|e|) e"""
    tension: wp.array(dtype=wp.float64)
    """λ"""
    stiffness: wp.array(dtype=wp.mat33d)
    """k ttᵀ + λ/|e| (1 − ttᵀ)"""


@wp.kernel
def stretch_links(first: int, links: ListedShares, y: wp.array(dtype=wp.vec3d), each: LinkNumbers):
    """e = C y of each link, and its pull (physics 13.2)."""
    l = first + wp.tid()
    e = wp.vec3d()
    for slot in range(links.first[l], links.first[l + 1]):
        e += links.share[slot] * y[links.column[slot]]
    length = wp.max(wp.length(e), wp.float64(1e-300))  # no length: pulls nowhere
    each.e[l] = e
    each.length[l] = length
    each.pull[l] = (each.k[l] * (wp.float64(1.0) - each.rest[l] / length)) * e


@wp.kernel
def gather_pull(first: int, across: ListedShares, each: LinkNumbers, P: wp.array(dtype=wp.vec3d)):
    """P = −Cᵀ of all pulls (physics 13.2)."""
    i = first + wp.tid()
    total = wp.vec3d()
    for slot in range(across.first[i], across.first[i + 1]):
        total -= across.share[slot] * each.pull[across.column[slot]]
    P[i] = total


@wp.kernel
def stiffen_links(first: int, each: LinkNumbers):
    """k ttᵀ + λ/|e| (1 − ttᵀ) of each link; k where it has no length at rest (physics 13.9)."""
    l = first + wp.tid()
    t = each.e[l] / each.length[l]
    across = each.tension[l] / each.length[l]
    if each.rest[l] == wp.float64(0.0):
        across = each.k[l]
    each.stiffness[l] = wp.outer((each.k[l] - across) * t, t) + across * wp.identity(n=3, dtype=wp.float64)


@wp.kernel
def gather_stiffness(first: int, shares: ListedShares, each: LinkNumbers, blocks: wp.array(dtype=wp.mat33d)):
    """Σ c_i c_j of the stiffness of each link that two particles share (physics 13.9)."""
    b = first + wp.tid()
    total = wp.mat33d()
    for slot in range(shares.first[b], shares.first[b + 1]):
        total += shares.share[slot] * each.stiffness[shares.column[slot]]
    blocks[b] = total


class LinkedForces:
    """Pull and stiffness of all links together."""

    def __init__(self, links: csr_array, rest: Floats, rows: Ints, columns: Ints) -> None:
        """`links` are the weights of the elements, e = C y, (E, n); `rows` and `columns` are the two particles of each
        entry of the stiffness."""
        self._cpu = dev.pick("cpu")
        count, n = links.shape
        shares = _shares(links, rows, columns)
        each: Any = LinkNumbers()
        each.rest = wp.array(rest, dtype=wp.float64, device=self._cpu)
        for name, dtype in (
            ("k", wp.float64), ("length", wp.float64), ("tension", wp.float64),
            ("e", wp.vec3d), ("pull", wp.vec3d), ("stiffness", wp.mat33d),
        ):  # fmt: skip
            setattr(each, name, wp.zeros(count, dtype=dtype, device=self._cpu))
        self._each = each
        self._y, self._P = (wp.zeros(n, dtype=wp.vec3d, device=self._cpu) for _ in range(2))
        self._blocks = wp.zeros(len(rows), dtype=wp.mat33d, device=self._cpu)
        stretched = dev.Launch(stretch_links, count, [self._listed(links), self._y, each], 0.1)
        pulled = dev.Launch(gather_pull, n, [self._listed(csr_array(links.T)), each, self._P], 0.1)
        self._pull = dev.Program([stretched, pulled], self._cpu)
        stiffened = dev.Launch(stiffen_links, count, [each], 0.05)
        gathered = dev.Launch(gather_stiffness, len(rows), [self._listed(shares), each, self._blocks], 0.05)
        self._stiffen = dev.Program([stiffened, gathered], self._cpu)

    def _listed(self, matrix: csr_array) -> Any:
        listed: Any = ListedShares()
        listed.first = wp.array(matrix.indptr, dtype=wp.int32, device=self._cpu)
        listed.column = wp.array(matrix.indices, dtype=wp.int32, device=self._cpu)
        listed.share = wp.array(matrix.data, dtype=wp.float64, device=self._cpu)
        return listed

    def set_stiffness(self, k: Floats) -> None:
        """k [N/m] of each link, (E,)."""
        self._each.k.numpy()[:] = k

    def at(self, y: Floats) -> tuple[Floats, Floats, Floats]:
        """e (E, 3), its length (E,) and the pull P on each particle, (n, 3), of particles at y (n, 3)."""
        self._y.numpy()[:] = y
        self._pull.run()
        return self._each.e.numpy().copy(), self._each.length.numpy().copy(), self._P.numpy().copy()

    def stiffness(self, e: Floats, length: Floats, tension: Floats) -> Floats:
        """Blocks of all entries, to be used before they are asked for again, shape (entries, 3, 3)."""
        for array, values in ((self._each.e, e), (self._each.length, length), (self._each.tension, tension)):
            array.numpy()[:] = values
        self._stiffen.run()
        return np.asarray(self._blocks.numpy())


def _shares(links: csr_array, rows: Ints, columns: Ints) -> csr_array:
    """c_i c_j of each element in each entry (i, j) of the stiffness, (entries, E)."""
    n = links.shape[1]
    width = int(np.diff(links.indptr).max(initial=1))
    index = np.full((links.shape[0], width), -1)
    weight = np.zeros((links.shape[0], width))
    row = np.repeat(np.arange(links.shape[0]), np.diff(links.indptr))
    slot = np.arange(len(row)) - links.indptr[row]
    index[row, slot], weight[row, slot] = links.indices, links.data
    keys = rows * n + columns
    order = np.argsort(keys)
    found, elements, products = [], [], []
    for a in range(width):
        for b in range(width):
            both = np.flatnonzero((index[:, a] >= 0) & (index[:, b] >= 0))
            key = index[both, a] * n + index[both, b]
            place = np.minimum(np.searchsorted(keys[order], key), len(keys) - 1)
            hit = keys[order][place] == key
            found.append(order[place[hit]])
            elements.append(both[hit])
            products.append((weight[both, a] * weight[both, b])[hit])
    places = (np.concatenate(found), np.concatenate(elements))
    return csr_array((np.concatenate(products), places), (len(keys), links.shape[0]))
