# mypy: disable-error-code="valid-type,no-untyped-def"
"""The space a Galerkin body moves in (G04 §3.1, §4.1): fields u(X) = Σ_I φ_I(X) u_I over its nodes, the quadrature that
integrates them, and the two matrices of small motion,

    M_IJ = ∫ ρ φ_I φ_J,   K_IJ = ∫ B_Iᵀ C B_J.

A crack cuts points off from nodes (`cuts`): their functions are found anew, with plain gradients; all others stay. A
pair that is cut keeps its place, with φ = 0: lists change only where a point has to look further.

Lengths are in units of the body's mean node spacing, about the middle of its reference shape; everything is in double.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import warp as wp
from numpy.typing import NDArray
from scipy.sparse import bsr_array, csc_array, csr_array
from scipy.sparse.csgraph import connected_components
from scipy.sparse.linalg import splu
from scipy.spatial import cKDTree

from phyxel import device as dev
from phyxel.cache import Kept, Once
from phyxel.mls.neighbours import nearest
from phyxel.mls.shape_functions import Basis, ShapeFunctions, ShapeValues, entries_of
from phyxel.mls.visibility import Sees
from phyxel.models.galerkin.cuts import Cracked, Extent, alone, continued, cut_values, rebuilt
from phyxel.models.galerkin.differences import Difference, Lists, met
from phyxel.models.galerkin.fabric import Fabric
from phyxel.models.law import LawRow, hooke

wp.set_module_options(dev.KERNEL_OPTIONS)

Floats = NDArray[np.float64]
SAME = 1e-9
"""Distance in spacings within which two places are one."""
FEW = 4
"""Nodes that a linear field needs."""
BESIDE = 1.6
"""Spacings within which nodes of crumbs are neighbours."""
ROOM = 4_000_000
"""Numbers of whole rows of a matrix that are summed up at a time."""
MATERIALS = 3
"""Of which a space keeps what follows from them."""
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

    def with_values(self, phi: Floats, dphi: Floats) -> Pairs:
        """The same with other φ (pairs,) and ∇φ (pairs, 3)."""
        device = self.phi.device
        return replace(
            self,
            phi=wp.array(phi, dtype=wp.float64, device=device, copy=False),
            dphi=wp.array(dphi, dtype=wp.vec3d, device=device, copy=False),
        )


@dataclass(frozen=True)
class Own:
    """Which part of a fabric is that of a piece."""

    nodes: NDArray[np.int64]
    """shape (n,)"""
    points: NDArray[np.int64]
    """those of the quadrature, shape (q,)"""
    skin: NDArray[np.int64]
    """surfels, shape (m,)"""


class Space:
    """Shape functions of a body, at its quadrature points and anywhere."""

    def __init__(
        self,
        fabric: Fabric,
        placing: Placing,
        skin: Floats,
        sees: Sees | None,
        device: wp.Device,
        own: Own | None = None,
    ) -> None:
        """`skin` (m, 3) are the positions of all surfels, `sees` is that of the cloud's coordinates; a piece of a body
        has its `own` part of the fabric."""
        self.device = device
        self._fabric, self._placing, self._all_skin, self._sees = fabric, placing, skin, sees
        self._own = own or Own(*(np.arange(len(x)) for x in (fabric.covers, fabric.at_points.condition, skin)))
        nodes, quadrature = fabric.nodes.positions[self._own.nodes], fabric.nodes.quadrature
        points = quadrature.points[self._own.points]
        self._skin = skin[self._own.skin]
        self.nodes: Floats = placing.body(nodes)
        """X_I, shape (n, 3)"""
        self.points: Floats = placing.body(points)
        """where integrals look, shape (q, 3)"""
        self.weights: Floats = quadrature.weights[self._own.points] / placing.length**3
        """the volume each stands for, shape (q,)"""
        # In the cloud's coordinates: of two that are as near it is the one whose volume has the point, however it lies.
        self.owner: NDArray[np.int64] = nearest(points, nodes, 1)[1][:, 0]
        """the node nearest to each point, shape (q,)"""
        found = self._part_of(fabric.at_points, self._own.points)
        self.values: csr_array = found.values
        """φ_I at the points, shape (q, n)"""
        self.gradients: Floats = found.dphi.numpy()
        """∇φ_I of its entries, consistent with the quadrature where no crack is near, shape (pairs, 3)"""
        self.at_nodes: ShapeValues = self._part_of(fabric.at_nodes, self._own.nodes)
        """φ and ∇φ at the nodes: a node's coefficient is not its displacement"""
        self.once: Once = Kept(MATERIALS)
        """keeps what follows from it and a material"""
        self._whole = self
        """this space before there were cracks"""
        self._cracks: Cracked | None = None
        self._seen = np.ones(self.values.nnz, bool)
        """whether the point and the node of an entry see each other, shape (pairs,)"""
        self._cut_off, self._lost = np.zeros(len(self.points), bool), np.zeros(len(self.points), bool)
        """points that have been cut off from nodes, and those that see too few; shape (q,) each"""

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
        return self._cut(self._part_of(self._shape.at(self._placing.cloud(X))), X)

    def on(self, X: Floats, owner: NDArray[np.integer], index: NDArray[np.integer], wider: float = 1.0) -> ShapeValues:
        """φ and ∇φ at (m, 3) positions from given nodes: pairs (p,), (p,) of a position and a node, ascending; with
        covers so many times as wide."""
        shape = self._shape if wider == 1 else self._shape.with_covers(wider * self._fabric.covers)
        found = self._turned(shape.on(self._placing.cloud(X), owner, self._own.nodes[index]))
        return found.with_nodes(index, len(self))

    def reach_to(self, X: Floats, index: NDArray[np.integer]) -> Floats:
        """How far positions (p, 3) lie from nodes (p,), in covers of these, shape (p,)."""
        nodes = self._own.nodes[index]
        away = self._placing.cloud(X) - self._fabric.nodes.positions[nodes]
        return np.asarray(np.abs(away).max(axis=1) / self._fabric.covers[nodes], np.float64)

    def _cut(self, whole: ShapeValues, X: Floats) -> ShapeValues:
        """What cracks leave of functions at (m, 3) positions; where none reach, fields go straight on."""
        if self._cracks is not None:
            whole = cut_values(self, whole, X, self._cracks)
        return continued(self, whole, X, self._cracks)

    def _part_of(self, found: ShapeValues, rows: NDArray[np.integer] | None = None) -> ShapeValues:
        """Some rows of values of the fabric as far as its own nodes go; where others are missing they are not known."""
        found = self._turned(found if rows is None else found.rows(rows))
        if len(self) == len(self._fabric.covers):
            return found
        place = np.full(len(self._fabric.covers), -1)
        place[self._own.nodes] = np.arange(len(self))
        return found.only(place, len(self))

    def _turned(self, found: ShapeValues) -> ShapeValues:
        slope = self._placing.length * found.dphi.numpy()
        turn = self._placing.turn
        return found.with_gradients(slope if np.array_equal(turn, np.eye(3)) else slope @ turn.T)

    @cached_property
    def pairs(self) -> Pairs:
        """Points and nodes that meet."""
        return _paired(self.values, self.gradients, self.device)

    @cached_property
    def at_skin(self) -> ShapeValues:
        """φ and ∇φ at the surfels."""
        whole = self._part_of(self._fabric.at_skin, self._own.skin)
        return whole if self._cracks is None else self._cut(whole, self._skin)

    @cached_property
    def around(self) -> csr_array:
        """The nodes that each node knows where there are no cracks, shape (n, n)."""
        return self._whole.at_nodes.values.astype(bool)

    def prepare(self) -> None:
        """Find now what copies of it are to share."""
        _ = self.at_skin, self.pairs, self._neighbours

    # Cracks

    def cut(self, sees: Cracked, boxes: Sequence[Extent] | None = None) -> Space:
        """The same space without pairs that do not see each other any more; this one where there are none.

        `sees` takes positions in the body's coordinates, and is asked again at later times. What is new of the cracks
        lies in the `boxes`, if these are given.
        """
        looked_at: Sequence[Extent | None] = boxes or [None]
        struck = np.unique(np.concatenate([self._struck(sees, box) for box in looked_at]))
        if len(struck) == 0 and not self._lost.any():  # what is lost goes by what nodes see of each other
            return self
        _ = self._shape, self.around, self._neighbours, self._spans  # what all spaces of a body share
        new = copy.copy(self)
        new._forget()
        new._cracks, new._seen = sees, self._seen.copy()
        new._seen[struck] = False
        new.at_nodes = alone(cut_values(self, self._whole.at_nodes, self.nodes, sees))
        changed = np.zeros(len(self.points), bool)
        changed[self._point[struck]] = True
        new._rebuild(np.flatnonzero(changed | self._lost), sees)
        new._lead_orphans()
        return new

    def _lead_orphans(self) -> None:
        """Nodes that no point depends on any more have no motion of their own: the nearest that has leads them."""
        orphans = self._orphans()
        if len(orphans):
            lost = self.at_nodes.rows(orphans).unknown()
            self.at_nodes = self.at_nodes.with_rows(orphans, continued(self, lost, self.nodes[orphans], None))

    def _orphans(self) -> NDArray[np.int64]:
        return np.setdiff1d(np.arange(len(self)), self.felt())

    def led(self, X: Floats) -> NDArray[np.bool_]:
        """Which places (m, 3) are those of nodes that others lead, (m,)."""
        orphans = self._orphans()
        if len(orphans) == 0:
            return np.zeros(len(X), bool)
        return np.asarray(nearest(X, self.nodes[orphans], 1)[0][:, 0] < SAME)

    def felt(self) -> NDArray[np.int64]:
        """Nodes that points depend on, ascending."""
        return self._felt

    @cached_property
    def _felt(self) -> NDArray[np.int64]:
        felt = np.zeros(len(self), bool)
        felt[self.values.indices[self.values.data != 0]] = True
        return np.flatnonzero(felt)

    def _struck(self, sees: Cracked, box: Extent | None) -> NDArray[np.int64]:
        """Entries whose point and node do not see each other any more, for something in a box if there is one."""
        asked = np.flatnonzero(self._seen)
        if box is not None:
            near = np.flatnonzero(self._near(box))
            asked = entries_of(self.values.indptr, near)[1]
            asked = asked[self._seen[asked]]
        return asked[~sees(self.points[self._point[asked]], self.nodes[self.values.indices[asked]], box)]

    def _forget(self) -> None:
        """What was found for other cracks."""
        for name in ("at_skin", "_felt"):
            self.__dict__.pop(name, None)
        self.once = Kept(MATERIALS)

    def _near(self, box: Extent) -> NDArray[np.bool_]:
        """Points whose ways to their nodes may lead through a box, shape (q,)."""
        lower, upper = self._spans
        return np.asarray(((lower < box[1]) & (upper > box[0])).all(axis=1))

    @cached_property
    def _spans(self) -> Extent:
        """The box around each point and its nodes, shape (q, 3) each."""
        nodes, start = self.nodes[self.values.indices], self.values.indptr[:-1]
        lower, upper = np.minimum.reduceat(nodes, start), np.maximum.reduceat(nodes, start)
        return np.minimum(lower, self.points), np.maximum(upper, self.points)

    @cached_property
    def _point(self) -> NDArray[np.int32]:
        """The point of each entry, shape (pairs,)."""
        return np.repeat(np.arange(len(self.points), dtype=np.int32), np.diff(self.values.indptr))

    def _rebuild(self, rows: NDArray[np.integer], sees: Cracked) -> None:
        """Find the functions of some points, ascending, anew."""
        starts, entries = entries_of(self.values.indptr, rows)
        owner, index, seen = np.repeat(np.arange(len(rows)), np.diff(starts)), self.values.indices, self._seen
        kept = seen[entries]
        X = self.points[rows]
        listed = kept & ~self._lost[rows][owner]  # what has seen too few does not see more now
        parted = owner[~kept], index[entries[~kept]]
        found = rebuilt(self, X, owner[listed], index[entries[listed]], sees, parted)
        lost = ~np.isfinite(found.condition)
        found = continued(self, found, X, sees)
        # The lists as they were, and what is new in them.
        known, wanted = (
            one.astype(np.int64) * len(self) + other
            for one, other in ((owner, index[entries]), (found.owner, found.index.numpy()))
        )
        pairs = np.union1d(known, wanted)
        at_known, at_wanted = np.searchsorted(pairs, known), np.searchsorted(pairs, wanted)
        row = pairs // len(self)
        state: dict[str, NDArray[Any]] = {
            "rows": rows, "lost": lost, "count": np.bincount(row, minlength=len(rows)), "index": pairs % len(self),
            "phi": np.zeros(len(pairs)), "dphi": np.zeros((len(pairs), 3)), "seen": ~lost[row],
        }  # fmt: skip
        state["phi"][at_wanted], state["dphi"][at_wanted] = found.phi.numpy(), found.dphi.numpy()
        state["seen"][at_known] = kept
        self._take(state)

    def _take(self, state: dict[str, NDArray[Any]]) -> None:
        """Other functions at some points."""
        rows = state["rows"]
        starts, entries = entries_of(self.values.indptr, rows)
        arrays = {"phi": self.values.data, "dphi": self.gradients, "seen": self._seen}
        start, index = before, _ = self.values.indptr, self.values.indices
        if np.array_equal(np.diff(starts), state["count"]):
            arrays = {name: array.copy() for name, array in arrays.items()}
            for name, array in arrays.items():
                array[entries] = state[name]
            self.pairs = self.pairs.with_values(arrays["phi"], arrays["dphi"])
        else:
            order = np.arange(len(self.points))
            order[rows] = len(order) + np.arange(len(rows))
            both = np.concatenate([start, start[-1] + np.cumsum(state["count"])])
            start, entries = entries_of(both.astype(np.int32), order)
            arrays = {name: np.concatenate([array, state[name]])[entries] for name, array in arrays.items()}
            index = np.concatenate([index, state["index"].astype(np.int32)])[entries]
            for name in ("pairs", "_point", "_spans"):
                self.__dict__.pop(name, None)
        self.values = csr_array((arrays["phi"], index, start), self.values.shape)
        self.__dict__.pop("_felt", None)
        if "_neighbours" in self.__dict__ and start is not before:
            self._neighbours = self._joined(rows)
        self.gradients, self._seen = arrays["dphi"], arrays["seen"]
        self._lost, self._cut_off = self._lost.copy(), self._cut_off.copy()
        self._lost[rows], self._cut_off[rows] = state["lost"], True

    def _joined(self, rows: NDArray[np.integer]) -> Lists:
        """The nodes that share a point with each node, where some points, (k,), have longer lists than before."""
        start, index = self._neighbours
        known = csr_array((np.ones(len(index), np.float32), index, start), (len(self), len(self)))
        both = csr_array(known + met(csr_array(self.values[rows])))
        return both.indptr.astype(np.int32), both.indices.astype(np.int32)

    # Pieces

    def parts(self) -> NDArray[np.int32]:
        """Number of the part that each node belongs to, shape (n,): those that share a point are in one."""
        linked = csr_array(self.values, copy=True)
        linked.eliminate_zeros()
        points, nodes = linked.shape
        both = csr_array((linked.data, linked.indices + points, linked.indptr), (points, points + nodes))
        both.resize(points + nodes, points + nodes)
        label = connected_components(both, directed=False)[1][points:]
        felt = self.felt()
        orphans = self._orphans()
        label[orphans] = label[felt[nearest(self.nodes[orphans], self.nodes[felt], 1)[1][:, 0]]]
        label = np.unique(label, return_inverse=True)[1].astype(np.int32)
        return label if self._cracks is None else self._with_crumbs_joined(label, self._cracks)

    def _with_crumbs_joined(self, label: NDArray[np.integer], cracks: Cracked) -> NDArray[np.int32]:
        """Parts (n,) of which those too small to bend, as in a sheet that a crack leaves at a held face, are one where
        their nodes are neighbours and see each other."""
        crumbs = np.flatnonzero(np.bincount(label)[label] < FEW)
        one, other = crumbs[cKDTree(self.nodes[crumbs]).query_pairs(BESIDE, output_type="ndarray")].T
        seen = cracks(self.nodes[one], self.nodes[other])
        count = int(label.max()) + 1
        links = csr_array((seen.astype(float), (label[one], label[other])), (count, count))
        return connected_components(links, directed=False)[1][label]

    def homes_of_skin(self) -> NDArray[np.int64]:
        """The node that counts most at each surfel, shape (m,)."""
        return _strongest(self.at_skin.values)

    def part(self, nodes: NDArray[np.integer], skin: NDArray[np.integer]) -> Space:
        """The space of a piece that has these nodes, ascending, and surfels."""
        chosen = np.zeros(len(self), bool)
        chosen[nodes] = True
        points = np.flatnonzero(chosen[_strongest(self.values)])
        own = Own(self._own.nodes[nodes], self._own.points[points], self._own.skin[skin])
        piece = Space(self._fabric, self._placing, self._all_skin, self._sees, self.device, own)
        if self._cracks is None:
            return piece
        place = np.full(len(self), -1)
        place[nodes] = np.arange(len(nodes))
        rows = np.flatnonzero(self._cut_off[points])
        return piece.restored(self._state_of(points[rows], rows, place) | vars(own), self._cracks)

    def points_of(self, piece: Space) -> NDArray[np.int64]:
        """Which points are those of a piece of it, (k,)."""
        return np.searchsorted(self._own.points, piece._own.points)

    def look_by(self, sees: Cracked) -> None:
        """Ask others what cracks leave free."""
        self._cracks = sees

    def state(self) -> dict[str, NDArray[Any]]:
        """What it is a part of, and what cracks have changed."""
        rows = np.flatnonzero(self._cut_off)
        return self._state_of(rows, rows, np.arange(len(self))) | vars(self._own)

    def _state_of(
        self, rows: NDArray[np.integer], names: NDArray[np.integer], place: NDArray[np.integer]
    ) -> dict[str, NDArray[Any]]:
        """Functions at points `rows`, to be called `names`, of nodes to be called `place`, where that is not −1."""
        starts, entries = entries_of(self.values.indptr, rows)
        owner = np.repeat(np.arange(len(rows)), np.diff(starts))
        kept = place[self.values.indices[entries]] >= 0
        entries, owner = entries[kept], owner[kept]
        return {
            "rows": names, "lost": self._lost[rows], "count": np.bincount(owner, minlength=len(rows)),
            "index": place[self.values.indices[entries]],
            "phi": self.values.data[entries], "dphi": self.gradients[entries], "seen": self._seen[entries],
        }  # fmt: skip

    def same_as(self, other: Space) -> bool:
        """Whether the same points see the same nodes."""
        return self is other or (
            np.array_equal(self.values.indptr, other.values.indptr) and np.array_equal(self._seen, other._seen)
        )

    def restored(self, state: dict[str, NDArray[Any]], sees: Cracked | None) -> Space:
        """The space of which `state` tells, with cracks through which one `sees` as then."""
        own = Own(state["nodes"], state["points"], state["skin"])
        new = copy.copy(self._whole)
        if not all(np.array_equal(getattr(own, name), part) for name, part in vars(self._own).items()):
            new = Space(self._fabric, self._placing, self._all_skin, self._sees, self.device, own)
        if sees is None:
            return new
        new._whole = copy.copy(new)
        new._forget()
        new._cracks = sees
        new.at_nodes = alone(cut_values(new, new.at_nodes, new.nodes, sees))
        new._take(state)
        new._lead_orphans()
        return new

    def mass(self, density: Floats) -> csr_array:
        """M_IJ = ∫ ρ φ_I φ_J for densities (q,) at the points, shape (n, n)."""
        return self.products(density)[0]

    def products(self, density: Floats) -> tuple[csr_array, csr_array]:
        """M_IJ = ∫ ρ φ_I φ_J and ∫ ∇φ_I · ∇φ_J, shape (n, n) each."""
        start, index = self._neighbours
        both = np.zeros((2, len(index)))
        rows = np.arange(len(self), dtype=np.int32)
        for some in np.array_split(rows, 1 + len(rows) * len(self) // ROOM):
            starts, entries = entries_of(start, some)
            owner = np.repeat(np.arange(len(some)), np.diff(starts))
            for part, found in zip(both, self._summed(density, some), strict=True):
                part[entries] = found[owner, index[entries]]
        return self.square(both[0]), self.square(both[1])

    def changed_from(self, before: Space) -> NDArray[np.int64]:
        """Points whose functions were others in a space that this one was cut from, ascending."""
        rows = np.flatnonzero(self._cut_off)
        (starts, entries), (others, olds) = (entries_of(space.values.indptr, rows) for space in (self, before))
        counts, old_counts = np.diff(starts), np.diff(others)
        same = counts == old_counts
        entries, olds = entries[np.repeat(same, counts)], olds[np.repeat(same, old_counts)]
        differs = self.values.data[entries] != before.values.data[olds]
        differs |= (self.gradients[entries] != before.gradients[olds]).any(axis=1)
        owner = np.repeat(np.flatnonzero(same), counts[same])
        return np.asarray(rows[~same | (np.bincount(owner[differs], minlength=len(rows)) > 0)], np.int64)

    def products_from(
        self, before: Space, density: Floats, known: tuple[csr_array, csr_array]
    ) -> tuple[csr_array, csr_array]:
        """The same where they are known of the space that this one was cut from: only points that the cut has changed
        are looked at."""
        change = Difference.between(before, self)
        lists = before._neighbours, self._neighbours
        mass = change.added(change.mass(density), known[0].data, *lists)
        return self.square(mass), self.square(change.added(change.slopes(), known[1].data, *lists))

    def _summed(self, density: Floats, rows: NDArray[np.int32]) -> list[Floats]:
        """Whole rows of these two matrices, shape (k, n) each."""
        pairs, device = self.pairs, self.device
        sums = [wp.zeros((len(rows), len(self)), dtype=wp.float64, device=device) for _ in range(2)]
        dev.launch(
            assemble_products,
            len(rows),
            [
                wp.array(rows, dtype=wp.int32, device=device),
                pairs.start_of_node, pairs.pair, pairs.point, pairs.start, pairs.node, pairs.phi, pairs.dphi,
                wp.array(self.weights, dtype=wp.float64, device=device),
                wp.array(density, dtype=wp.float64, device=device),
                *sums,
            ],
            device,
        )  # fmt: skip
        return [part.numpy() for part in sums]

    def square(self, entries: Floats) -> csr_array:
        """A matrix of nodes that meet, shape (n, n), by its entries."""
        matrix = csr_array((len(self), len(self)))
        matrix.indptr, matrix.indices = self._neighbours  # by reference: whose lists are the same can be told
        matrix.data = entries
        return matrix

    def volume(self, u: Floats) -> float:
        """∫ |I + ∇u| of a field with coefficients u (n, 3)."""
        pairs, device = self.pairs, self.device
        ratio = wp.empty(len(self.points), dtype=wp.float64, device=device)
        moved = wp.array(u, dtype=wp.vec3d, device=device)
        dev.launch(find_swelling, len(ratio), [pairs.start, pairs.node, pairs.dphi, moved, ratio], device)
        return float(self.weights @ ratio.numpy())

    def fit(self, density: Floats) -> Callable[[Floats], Floats]:
        """Takes what holds around each node, a (n, k), to coefficients p of the nearest field: M p = ∫ ρ φ a, with a of
        the nearest node. What is even stays so, and forces ρ a keep their sum. Densities (q,) are the points'."""
        weighted = csr_array((self.weights * density, (np.arange(len(self.owner)), self.owner)), self.values.shape)
        load = csr_array(self.values.T @ weighted)
        solve = splu(csc_array(self.mass(density))).solve
        return lambda a: np.asarray(solve(load @ a))

    def stiffness(self, rows: Sequence[LawRow], which: NDArray[np.integer]) -> bsr_array:
        """K_IJ = ∫ B_Iᵀ C B_J at rest, 3 × 3 blocks, shape (3n, 3n); `which` law is that of each point, (q,)."""
        start, index = self._neighbours
        blocks = wp.zeros(len(index), dtype=wp.mat33d, device=self.device)
        laws = np.array([row.at_rest for row in rows])
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
        return self.blocks(blocks.numpy())

    def stiffness_from(
        self, before: Space, known: bsr_array, rows: Sequence[LawRow], which: NDArray[np.integer]
    ) -> bsr_array:
        """The same where it is known of a space that this one was cut from."""
        change = Difference.between(before, self)
        added = change.stiffness([row.at_rest for row in rows], which)
        return self.blocks(change.added(added, known.data, before._neighbours, self._neighbours))

    def blocks(self, entries: Floats) -> bsr_array:
        """A matrix of nodes that meet by its 3 × 3 blocks, shape (3n, 3n)."""
        start, index = self._neighbours
        return bsr_array((entries, index, start), shape=(3 * len(self), 3 * len(self)))

    @cached_property
    def _neighbours(self) -> Lists:
        """Where the lists of nodes that share a point with each node start, and the lists, ascending."""
        common = met(self.values)
        return common.indptr.astype(np.int32), common.indices.astype(np.int32)


def _strongest(values: csr_array) -> NDArray[np.int64]:
    """The node of the largest |φ| in each row, shape (m,)."""
    most = np.maximum.reduceat(np.abs(values.data), values.indptr[:-1])
    chosen = np.abs(values.data) == np.repeat(most, np.diff(values.indptr))
    first = np.flatnonzero(chosen)
    return values.indices[first[np.searchsorted(first, values.indptr[:-1])]].astype(np.int64)


def _paired(values: csr_array, gradients: Floats, device: wp.Device) -> Pairs:
    numbers = np.arange(values.nnz, dtype=np.int32)
    of_nodes = csr_array((numbers, values.indices, values.indptr), values.shape).tocsc()

    def on_device(array: NDArray[np.generic], dtype: object) -> wp.array:
        return wp.array(array, dtype=dtype, device=device)

    return Pairs(
        on_device(values.indptr, wp.int32),
        on_device(values.indices, wp.int32),
        on_device(values.data, wp.float64),
        on_device(gradients, wp.vec3d),
        on_device(of_nodes.indptr, wp.int32),
        on_device(of_nodes.data, wp.int32),
        on_device(of_nodes.indices, wp.int32),
    )


@wp.kernel
def find_swelling(
    first: int,
    start: wp.array(dtype=wp.int32),
    node: wp.array(dtype=wp.int32),
    dphi: wp.array(dtype=wp.vec3d),
    u: wp.array(dtype=wp.vec3d),
    ratio: wp.array(dtype=wp.float64),
):
    """|J| at each point, J = I + Σ u_I ⊗ ∇φ_I."""
    i = first + wp.tid()
    J = wp.identity(n=3, dtype=wp.float64)
    for entry in range(start[i], start[i + 1]):
        J += wp.outer(u[node[entry]], dphi[entry])
    ratio[i] = wp.determinant(J)


@wp.kernel
def assemble_products(
    first: int,
    rows: wp.array(dtype=wp.int32),
    start_of_node: wp.array(dtype=wp.int32),
    pair: wp.array(dtype=wp.int32),
    point: wp.array(dtype=wp.int32),
    start: wp.array(dtype=wp.int32),
    node: wp.array(dtype=wp.int32),
    phi: wp.array(dtype=wp.float64),
    dphi: wp.array(dtype=wp.vec3d),
    weight: wp.array(dtype=wp.float64),
    density: wp.array(dtype=wp.float64),
    mass: wp.array2d(dtype=wp.float64),
    slopes: wp.array2d(dtype=wp.float64),
):
    """The rows of M and of the products of gradients that belong to a node: Σ_q w ρ φ_I φ_J and Σ_q w ∇φ_I · ∇φ_J."""
    k = first + wp.tid()
    I = rows[k]
    for entry in range(start_of_node[I], start_of_node[I + 1]):
        q = point[entry]
        share = weight[q] * density[q] * phi[pair[entry]]
        slope = weight[q] * dphi[pair[entry]]
        for other in range(start[q], start[q + 1]):
            J = node[other]
            mass[k, J] += share * phi[other]
            slopes[k, J] += wp.dot(slope, dphi[other])


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
