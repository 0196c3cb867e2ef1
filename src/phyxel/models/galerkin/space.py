"""The space a Galerkin body moves in (G04 eq. 14, physics 10.1): fields u(X) = Σ_I φ_I(X) u_I over its nodes, and the
quadrature that integrates them.

A crack cuts points off from nodes (`cuts`): their functions are found anew, with plain gradients; all others stay. A
space does not change: one that is cut is another.

Lengths are in units of the body's mean node spacing, about the middle of its reference shape; everything is in double.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import copy
from functools import cached_property

import numpy as np
import warp as wp
from numpy.typing import NDArray
from scipy.sparse import bsr_array, csc_array, csr_array
from scipy.sparse.csgraph import connected_components
from scipy.sparse.linalg import splu
from scipy.spatial import cKDTree

from phyxel.cache import Kept, Once
from phyxel.mls.neighbours import nearest
from phyxel.mls.shape_values import ShapeValues, places_among
from phyxel.models.galerkin import assembly
from phyxel.models.galerkin.cuts import Cracked, alone, continued, cut_points, cut_values, struck, with_orphans_led
from phyxel.models.galerkin.layout import Layout, Own
from phyxel.models.galerkin.point_functions import Extent, PointFunctions, strongest
from phyxel.models.law import LawRow
from phyxel.state import State

Floats = NDArray[np.float64]

SAME = 1e-9
"""Distance in spacings within which two places are one."""
FEW = 4
"""Nodes that a linear field needs."""
BESIDE = 1.6
"""Spacings within which nodes of crumbs are neighbours."""
MATERIALS = 3
"""Of which a space keeps what follows from them."""


class Space:
    """Shape functions of a body, at its quadrature points and anywhere."""

    def __init__(
        self, layout: Layout, functions: PointFunctions, at_nodes: ShapeValues, cracks: Cracked | None = None
    ) -> None:
        self.layout, self.cracks = layout, cracks
        self.device: wp.Device = layout.device
        self.nodes, self.points, self.weights, self.owner = layout.nodes, layout.points, layout.weights, layout.owner
        self.functions = functions
        """φ_I and ∇φ_I at the points"""
        self.at_nodes = at_nodes
        """φ and ∇φ at the nodes: a node's coefficient is not its displacement"""
        self.once: Once = Kept(MATERIALS)
        """keeps what follows from it and a material"""

    @staticmethod
    def whole(layout: Layout) -> Space:
        """That of a body without cracks."""
        return Space(layout, layout.functions, layout.at_nodes)

    def __len__(self) -> int:
        return len(self.nodes)

    @property
    def values(self) -> csr_array:
        """φ_I at the points, shape (q, n)."""
        return self.functions.values

    @cached_property
    def at_skin(self) -> ShapeValues:
        """φ and ∇φ at the surfels."""
        whole = self.layout.at_skin()
        return whole if self.cracks is None else self._cut(whole, self.layout.skin)

    def at(self, X: NDArray[np.floating]) -> ShapeValues:
        """φ and ∇φ at (m, 3) positions."""
        X = np.asarray(X, np.float64).reshape(-1, 3)
        # Nodes and surfels are known, and asked for most; other places may need a look at the solid, which takes long.
        for places, known in ((self.nodes, "at_nodes"), (self.layout.skin, "at_skin")):
            distance, index = nearest(X, places, 1)
            if len(X) and distance.max() < SAME:
                return getattr(self, known).rows(index[:, 0])
        return self._cut(self.layout.at(X), X)

    def _cut(self, whole: ShapeValues, X: Floats) -> ShapeValues:
        """What cracks leave of functions at (m, 3) positions; where none reach, fields go straight on."""
        if self.cracks is not None:
            whole = cut_values(self.layout, whole, X, self.cracks)
        return continued(whole, X, self.functions, self.at_nodes, self.cracks)

    def prepare(self) -> Space:
        """This space, with all found that bodies which share it need."""
        _ = self.at_skin, self.functions.pairs, self.functions.lists.neighbours
        return self

    def joined(self, held: NDArray[np.integer], rows: Sequence[LawRow], kinds: NDArray[np.integer]) -> Space:
        """The same space, in which cells of nodes that are `held` are parts of those of free ones beside them, if there
        are some of the same of the laws, `kinds` (n,), and this one would lock (physics 10.3); this space where that
        changes nothing."""
        owner, still = self.owner.copy(), np.zeros(len(self), bool)
        still[held] = True
        for kind in np.unique(kinds[held]):
            free = np.flatnonzero(~still & (kinds == kind))
            points = np.flatnonzero(still[self.owner] & (kinds[self.owner] == kind))
            if len(free) and rows[kind].locking > 0:
                owner[points] = free[nearest(self.points[points], self.nodes[free], 1)[1][:, 0]]
        functions = self.functions.with_cells(owner)
        return self if functions is self.functions else Space(self.layout, functions, self.at_nodes, self.cracks)

    # Cracks

    def looked_at(self, sees: Cracked) -> Space:
        """The same space, of which others say what cracks leave free."""
        new = copy(self)
        new.cracks = sees
        return new

    def cut(self, sees: Cracked, boxes: Sequence[Extent] | None = None) -> Space:
        """The same space without pairs that do not see each other any more; this one where there are none.

        `sees` takes positions in the body's coordinates, and is asked again at later times. What is new of the cracks
        lies in the `boxes`, if these are given.
        """
        looked_at: Sequence[Extent | None] = boxes or [None]
        parted = np.unique(np.concatenate([struck(self.functions, sees, box) for box in looked_at]))
        if len(parted) == 0 and not self.functions.lost.any():  # lost points go by what nodes see of each other
            return self
        at_nodes = _at_nodes(self.layout, sees)
        functions = cut_points(self.layout, self.functions, at_nodes, parted, sees)
        return Space(self.layout, functions, with_orphans_led(at_nodes, functions), sees)

    def led(self, X: Floats) -> NDArray[np.bool_]:
        """Which places (m, 3) are those of nodes that no point depends on: other nodes lead them, (m,)."""
        orphans = self.functions.orphans
        if len(orphans) == 0:
            return np.zeros(len(X), bool)
        return np.asarray(nearest(X, self.nodes[orphans], 1)[0][:, 0] < SAME)

    def state(self) -> State:
        """What it is a part of, and what cracks have changed."""
        rows = np.flatnonzero(self.functions.cut_off)
        changed = self.functions.state(rows, rows, np.arange(len(self))) | {"cells": self.functions.lists.owner}
        return changed | vars(self.layout.own)

    def restored(self, state: State, sees: Cracked | None) -> Space:
        """The space of which `state` tells, with cracks through which one `sees` as then."""
        own = Own(state["nodes"], state["points"], state["skin"])
        layout = self.layout if own.same_as(self.layout.own) else self.layout.part(own)
        functions = layout.functions.with_cells(state.get("cells", layout.owner))
        if sees is None:
            return Space(layout, functions, layout.at_nodes)
        functions = functions.with_rows(state)
        return Space(layout, functions, with_orphans_led(_at_nodes(layout, sees), functions), sees)

    # Pieces

    def parts(self) -> NDArray[np.int32]:
        """Number of the part that each node belongs to, shape (n,): those that share a point are in one."""
        label = self.functions.linked()
        felt, orphans = self.functions.felt, self.functions.orphans
        label[orphans] = label[felt[nearest(self.nodes[orphans], self.nodes[felt], 1)[1][:, 0]]]
        label = np.unique(label, return_inverse=True)[1].astype(np.int32)
        return label if self.cracks is None else self._with_crumbs_joined(label, self.cracks)

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
        return strongest(self.at_skin.values)

    def part(self, nodes: NDArray[np.integer], skin: NDArray[np.integer]) -> Space:
        """The space of a piece that has these nodes, ascending, and surfels."""
        whole, chosen = self.layout.own, np.zeros(len(self), bool)
        chosen[nodes] = True
        points = np.flatnonzero(chosen[strongest(self.values)])
        own = Own(whole.nodes[nodes], whole.points[points], whole.skin[skin])
        piece = Space.whole(self.layout.part(own))
        place, rows = places_among(nodes, len(self)), np.flatnonzero(self.functions.cut_off[points])
        return piece.restored(self.functions.state(points[rows], rows, place) | vars(own), self.cracks)

    def points_of(self, piece: Space) -> NDArray[np.int64]:
        """Which points are those of a piece of it, (k,)."""
        return np.searchsorted(self.layout.own.points, piece.layout.own.points)

    # Integrals

    def mass(self, density: Floats) -> csr_array:
        """M_IJ = ∫ ρ φ_I φ_J for densities (q,) at the points, shape (n, n)."""
        return assembly.products(self.functions, density)[0]

    def stiffness(self, rows: Sequence[LawRow], which: NDArray[np.integer]) -> bsr_array:
        """K_IJ at rest (physics 10.2), 3 × 3 blocks, shape (3n, 3n); `which` law is that of each point, (q,)."""
        return assembly.stiffness(self.functions, rows, which)

    def fit(self, density: Floats) -> Callable[[Floats], Floats]:
        """Takes what holds around each node, a (n, k), to coefficients p of the nearest field: M p = ∫ ρ φ a, with a of
        the nearest node. Even fields stay even, and forces ρ a keep their sum. Densities (q,) are the points'."""
        weighted = csr_array((self.weights * density, (np.arange(len(self.owner)), self.owner)), self.values.shape)
        load = csr_array(self.values.T @ weighted)
        solve = splu(csc_array(self.mass(density))).solve
        return lambda a: np.asarray(solve(load @ a))


def _at_nodes(layout: Layout, sees: Cracked) -> ShapeValues:
    """φ and ∇φ at the nodes, as far as cracks let them see each other."""
    return alone(cut_values(layout, layout.at_nodes, layout.nodes, sees))
