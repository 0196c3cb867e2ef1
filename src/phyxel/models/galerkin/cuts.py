"""Shape functions of a body with cracks (G04 §4.3.1, physics 12.8): a place does not depend on nodes behind a crack.

Nodes that a place does not see are struck off its list, and its functions found anew from the rest. Where the rest does
not determine a field the place looks further: covers are widened, for it alone, till they hold enough nodes that it
sees. Where none are enough its field goes straight on from the nearest node it sees, or the nearest of all; and around
a node that sees too few others the field is even.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from phyxel.mls.neighbours import nearest
from phyxel.mls.shape_values import ShapeValues, entries_of, places_among
from phyxel.models.galerkin.layout import Layout
from phyxel.models.galerkin.point_functions import Extent, PointFunctions
from phyxel.state import State

Floats = NDArray[np.float64]
Indices = NDArray[np.integer]


class Cracked(Protocol):
    """Whether cracks leave the straight ways between places (n, 3) and (n, 3) free, or those in a box do, (n,)."""

    def __call__(
        self, one: NDArray[np.floating], other: NDArray[np.floating], within: Extent | None = None
    ) -> NDArray[np.bool_]: ...


WELL = 1e4
"""cond(A) up to which nodes determine a field."""
FEWEST = 4
"""Nodes without which there is no linear field."""
WIDER = (1.25, 1.6, 2.0, 2.5, 3.2, 4.0)
"""How far covers are widened, one after the other."""
HOMES = 16
"""Nearest nodes that are asked whether they see a place."""


def cut_values(layout: Layout, whole: ShapeValues, X: Floats, sees: Cracked) -> ShapeValues:
    """φ and ∇φ at places X (m, 3), of which `whole` are those without cracks. Where too few nodes are seen they are
    zero, and the condition infinite."""
    owner, index = whole.owner, whole.index.numpy()
    away = X[owner] - layout.nodes[index]
    seen = sees(X[owner], layout.nodes[index]) | ~away.any(axis=1)
    changed = np.union1d(owner[~seen], np.flatnonzero(~np.isfinite(whole.condition)))
    return whole.with_rows(changed, rebuilt(layout, X[changed], *_of(changed, owner[seen], index[seen], len(X)), sees))


def rebuilt(
    layout: Layout,
    X: Floats,
    owner: Indices,
    index: Indices,
    sees: Cracked,
    parted: tuple[Indices, Indices] | None = None,
) -> ShapeValues:
    """φ and ∇φ at places X (m, 3) from nodes that they see, given as pairs (p,), (p,) of a place and a node, both
    ascending; from more nodes where these are not enough. Pairs that have been `parted` stay so, even where a crack
    that turns leaves a gap between them later."""
    found = layout.on(X, owner, index)
    bad: Indices = np.flatnonzero(~(found.condition < WELL))
    if len(bad) == 0:
        return found
    wide, nodes = _seen_around(layout, X[bad], *_of(bad, owner, index, len(X)), sees)
    if parted is not None:
        one, other = _of(bad, *parted, len(X))
        whole = ~np.isin(wide * len(layout) + nodes, one * len(layout) + other)
        wide, nodes = wide[whole], nodes[whole]
    reach = layout.reach_to(X[bad][wide], nodes)
    found = found.with_rows(bad, layout.on(X[bad], wide[:0], nodes[:0]))
    for wider in WIDER:
        hopeless = np.bincount(wide, minlength=len(bad)) < FEWEST
        bad, wide, nodes, reach = _without(hopeless, bad, wide, nodes, reach)
        if len(bad) == 0:
            break
        near = reach < wider
        more = layout.on(X[bad], wide[near], nodes[near], wider)
        helped = more.condition < WELL
        found = found.with_rows(bad[helped], more.rows(np.flatnonzero(helped)))
        bad, wide, nodes, reach = _without(helped, bad, wide, nodes, reach)
    return found


def _of(places: Indices, owner: Indices, index: Indices, count: int) -> tuple[Indices, Indices]:
    """The pairs of some places, counted from 0."""
    place = places_among(places, count)[owner]
    return place[place >= 0], index[place >= 0]


def _without(
    gone: NDArray[np.bool_], places: Indices, owner: Indices, index: Indices, reach: Floats
) -> tuple[Indices, Indices, Indices, Floats]:
    left, kept = np.flatnonzero(~gone), ~gone[owner]
    return places[left], places_among(left, len(gone))[owner[kept]], index[kept], reach[kept]


def _seen_around(layout: Layout, X: Floats, owner: Indices, index: Indices, sees: Cracked) -> tuple[Indices, Indices]:
    """Nodes that places see beyond their covers, as pairs: neighbours of neighbours. That these lie in the same part of
    the solid is known, without a look at it."""
    lists = csr_array((np.ones(len(owner), bool), (owner, index)), (len(X), len(layout)))
    reached = csr_array(lists @ layout.around)
    reached.sort_indices()
    wide, nodes = np.repeat(np.arange(len(X)), np.diff(reached.indptr)), reached.indices
    seen = sees(X[wide], layout.nodes[nodes])
    return wide[seen], nodes[seen]


def alone(values: ShapeValues) -> ShapeValues:
    """Values at the nodes themselves: around a node that sees too few others the field is even, as at the node."""
    lost = np.flatnonzero(~np.isfinite(values.condition))
    if len(lost) == 0:
        return values
    lonely = {
        "start": np.arange(len(lost) + 1), "index": lost, "phi": np.ones(len(lost)), "dphi": np.zeros((len(lost), 3)),
        "condition": np.full(len(lost), np.inf),
    }  # fmt: skip
    return values.with_rows(lost, ShapeValues.restored(lonely, values.node_count, values.start.device))


def with_orphans_led(at_nodes: ShapeValues, functions: PointFunctions) -> ShapeValues:
    """Those at the nodes, of which the ones that no point depends on have no motion of their own: the nearest that has
    leads them."""
    orphans = functions.orphans
    if len(orphans) == 0:
        return at_nodes
    lost = at_nodes.rows(orphans).unknown()
    there = continued(lost, functions.lists.nodes[orphans], functions, at_nodes, None)
    return at_nodes.with_rows(orphans, there)


def continued(
    values: ShapeValues, X: Floats, functions: PointFunctions, at_nodes: ShapeValues, sees: Cracked | None
) -> ShapeValues:
    """Values at X (m, 3); where no function reaches fields go on straight from the nearest node that the place sees, or
    from the nearest of all, as values at the nodes have it."""
    lost = np.flatnonzero(~np.isfinite(values.condition))
    if len(lost) == 0:
        return values
    home = _homes(X[lost], functions, sees)
    at_home = at_nodes.rows(home)
    away = (X[lost] - functions.lists.nodes[home])[at_home.owner]
    rise = np.einsum("pa,pa->p", at_home.dphi.numpy(), away)
    return values.with_rows(lost, at_home.with_values(at_home.phi.numpy() + rise))


def _homes(X: Floats, functions: PointFunctions, sees: Cracked | None) -> Indices:
    """The nearest node that each place sees, or the nearest that any point depends on where none of the first few is
    seen."""
    nodes, felt = functions.lists.nodes, functions.felt
    home = felt[nearest(X, nodes[felt], 1)[1][:, 0]]
    if sees is None:
        return home
    near = nearest(X, nodes, min(HOMES, len(nodes)))[1]
    seen = sees(np.repeat(X, near.shape[1], axis=0), nodes[near.reshape(-1)]).reshape(near.shape)
    return np.where(seen.any(axis=1), near[np.arange(len(X)), seen.argmax(axis=1)], home)


def struck(functions: PointFunctions, sees: Cracked, box: Extent | None) -> NDArray[np.int64]:
    """Entries whose point and node do not see each other any more, for something in a box if there is one."""
    lists, seen = functions.lists, functions.seen
    asked = np.flatnonzero(seen)
    if box is not None:
        asked = lists.near(box)
        asked = asked[seen[asked]]
    return asked[~sees(lists.points[lists.point[asked]], lists.nodes[lists.index[asked]], box)]


def cut_points(
    layout: Layout, functions: PointFunctions, at_nodes: ShapeValues, parted: NDArray[np.int64], sees: Cracked
) -> PointFunctions:
    """Functions at the quadrature points without pairs, numbers (p,), that a crack has `parted`; with those that the
    nodes have now."""
    lists = functions.lists
    seen = functions.seen.copy()
    seen[parted] = False
    changed = functions.lost.copy()
    changed[lists.point[parted]] = True
    rows = np.flatnonzero(changed)
    starts, entries = entries_of(lists.start, rows)
    owner, index, kept = np.repeat(np.arange(len(rows)), np.diff(starts)), lists.index[entries], seen[entries]
    X = lists.points[rows]
    listed = kept & ~functions.lost[rows][owner]  # a point that has seen too few nodes does not see more now
    found = rebuilt(layout, X, owner[listed], index[listed], sees, (owner[~kept], index[~kept]))
    lost = ~np.isfinite(found.condition)
    found = continued(found, X, functions, at_nodes, sees)
    # The lists as they were, with nodes that are new in them.
    count = len(lists.nodes)
    known, wanted = (
        one.astype(np.int64) * count + other for one, other in ((owner, index), (found.owner, found.index.numpy()))
    )
    pairs = np.union1d(known, wanted)
    at_known, at_wanted = np.searchsorted(pairs, known), np.searchsorted(pairs, wanted)
    row = pairs // count
    state: State = {
        "rows": rows, "lost": lost, "count": np.bincount(row, minlength=len(rows)), "index": pairs % count,
        "phi": np.zeros(len(pairs)), "dphi": np.zeros((len(pairs), 3)), "seen": ~lost[row],
    }  # fmt: skip
    state["phi"][at_wanted], state["dphi"][at_wanted] = found.phi.numpy(), found.dphi.numpy()
    state["seen"][at_known] = kept
    return functions.with_rows(state)
