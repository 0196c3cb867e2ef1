# mypy: disable-error-code="valid-type,no-untyped-def"
"""Which nodes may touch: those of other bodies that are near, and those of the same body that are no neighbours
(physics 15.4).

Lists are symmetric, so that impulses can be gathered, and sorted, so that a step has the same bits whenever its list
was made. They hold nodes within touching distance and a margin: they serve until something has moved by that much.
Lengths in metres, about a common origin.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import warp as wp
from numpy.typing import NDArray

from phyxel import device as dev
from phyxel.device import Launch, Program, Shared, packed
from phyxel.mls.neighbours import PairList, find_pairs
from phyxel.mls.visibility import Sees
from phyxel.models.phyxel.contact.groups import SkinGroups, gaps
from phyxel.models.reductions import CHUNK
from phyxel.solid.distance_grid import DistanceGrid
from phyxel.structs import as_struct

if TYPE_CHECKING:
    from phyxel.models.phyxel.model import PhyxelModel

wp.set_module_options(dev.KERNEL_OPTIONS)

DEEPEST = wp.constant(0.75)
"""A node touches with a ball of its distance to the surface, in spacings, or with this if it lies deeper."""
BESIDE = wp.constant(1.0)
"""How far a node may stand beside the one it touches, in spacings: more than half a lattice's diagonal, so that a patch
has several nodes."""
LEAST_MARGIN, MOST_MARGIN = 0.25, 4.0
"""What may move before lists are made anew, in spacings: little at rest, where lists are to be short."""
SERVED = 40
"""Steps for which lists should serve."""
DRAWN_NEARER = wp.constant(0.9)
"""Nodes of one body that are no neighbours count once their distance has shrunk to this share of the first."""
MANY = 3000
"""Skin nodes from which their lists are worth several threads."""
WORK = 1 / 16
"""What a pass of contact takes a phyxel on average, over a pass of forces: most phyxels touch nothing."""
CAPACITY = 32
"""Length of lists, at first."""


@wp.struct
class ContactNodes:
    """Where nodes are, x = offset + unit·(X + u) in metres about the common origin, and which of them may touch."""

    unit: wp.array(dtype=float)
    """[m], shape (bodies,)"""
    offset: wp.array(dtype=wp.vec3)
    """[m], shape (bodies,)"""
    friction: wp.array(dtype=float)
    """shape (bodies,)"""
    family: wp.array(dtype=wp.int32)
    """the same for all pieces of one cracked body, shape (bodies,); -1 for a body without cracks"""
    melted: wp.array(dtype=wp.int32)
    """1 for a body that has ever melted and is touched at the balls of its nodes, shape (bodies,)"""
    margin: float
    """way that nodes may move before lists are made anew, in spacings"""
    body: wp.array(dtype=wp.int32)
    """shape (n,)"""
    tied: wp.array(dtype=wp.int32)
    """the body that a node does not touch, for it is tied to it there, shape (n,); -1: none"""
    ball: wp.array(dtype=float)
    """radius of the ball a node touches with, at rest [m], shape (n,)"""
    x: wp.array(dtype=wp.vec3)
    """[m], shape (n,)"""
    capacity: int
    """room of each list: that of node i begins at i·capacity; 0 until something is near"""
    count: wp.array(dtype=wp.int32)
    """length of each list, shape (n,)"""
    index: wp.array(dtype=wp.int32)
    """the lists"""


@wp.struct
class GroupLists:
    """Skin nodes group by group, and for each group those near it."""

    node: wp.array(dtype=wp.int32)
    """skin nodes, one group after another"""
    group: wp.array(dtype=wp.int32)
    """the group of each"""
    start: wp.array(dtype=wp.int32)
    """where groups begin in `node`, shape (groups + 1,)"""
    partner_start: wp.array(dtype=wp.int32)
    """where the partners of a group begin, shape (groups + 1,)"""
    partner: wp.array(dtype=wp.int32)
    """groups that are near"""


@wp.func
def touching_distance(ball_i: float, ball_k: float, unit_i: float, unit_k: float):
    """Farthest from each other that two nodes with balls of these radii may stand and touch [m]. Nodes on the surface
    have none, and count as if they lay half a spacing inside: a patch of theirs has no fewer nodes than of such."""
    inside_i = wp.where(ball_i > 0.0, ball_i, 0.5 * unit_i)
    inside_k = wp.where(ball_k > 0.0, ball_k, 0.5 * unit_k)
    return inside_i + inside_k + BESIDE * wp.max(unit_i, unit_k)


@wp.kernel
def place_nodes(
    first: int,
    nodes: ContactNodes,
    X: wp.array(dtype=wp.vec3),
    u: wp.array(dtype=wp.vec3),
    v: wp.array(dtype=wp.vec3),
    clock: wp.array(dtype=float),
    drift: int,
):
    """x [m] of all nodes before they moved with v for clock[drift] [s]."""
    packed(nodes.body)
    packed(nodes.x)
    i = first + wp.tid()
    b = nodes.body[i]
    nodes.x[i] = nodes.offset[b] + nodes.unit[b] * (X[i] + (u[i] - clock[drift] * v[i]))


@wp.func
def is_neighbour(i: int, k: int, matter: Any):
    """Whether k is in the neighbour list of i."""
    entry = matter.near.start[i]
    end = entry + matter.near.count[i] * matter.near.stride
    while entry < end:
        if matter.near.index[entry] == k:
            return True
        entry += matter.near.stride
    return False


@wp.func
def may_touch(
    i: int, k: int, nodes: ContactNodes, matter: Any, support: wp.array(dtype=float), cut: wp.array(dtype=wp.int32)
):
    """Whether two nodes are near enough, and not held together by the body's own forces (physics 15.4)."""
    unit_i = nodes.unit[nodes.body[i]]
    unit_k = nodes.unit[nodes.body[k]]
    near = touching_distance(nodes.ball[i], nodes.ball[k], unit_i, unit_k) + 0.5 * nodes.margin * (unit_i + unit_k)
    distance = wp.length_sq(nodes.x[k] - nodes.x[i])
    if k == i or distance > near * near:
        return False
    if nodes.body[k] != nodes.body[i]:
        return True
    at_first = wp.length_sq(matter.birth[k] - matter.birth[i])
    reach = wp.max(support[i], support[k])
    if at_first < reach * reach:
        return cut[i] == 1 and cut[k] == 1 and not is_neighbour(i, k, matter)
    return distance < DRAWN_NEARER * DRAWN_NEARER * unit_i * unit_i * at_first


@wp.kernel
def list_candidates(
    first: int,
    nodes: ContactNodes,
    groups: GroupLists,
    matter: Any,
    support: wp.array(dtype=float),
    cut: wp.array(dtype=wp.int32),
):
    """The list of each skin node out of the groups that are near its own, in the order of its nodes, and how long it
    would be without a limit."""
    s = first + wp.tid()
    i = groups.node[s]
    begin = i * nodes.capacity
    total = int(0)
    p = groups.partner_start[groups.group[s]]
    while p < groups.partner_start[groups.group[s] + 1]:
        g = groups.partner[p]
        m = groups.start[g]
        while m < groups.start[g + 1]:
            k = groups.node[m]
            if may_touch(i, k, nodes, matter, support, cut):
                if total < nodes.capacity:
                    entry = begin + total
                    while entry > begin and nodes.index[wp.max(entry - 1, 0)] > k:
                        nodes.index[entry] = nodes.index[entry - 1]
                        entry -= 1
                    nodes.index[entry] = k
                total += 1
            m += 1
        p += 1
    nodes.count[i] = total


@wp.kernel
def measure_spread(
    first: int,
    n: int,
    nodes: ContactNodes,
    begin: wp.array(dtype=wp.int32),
    v: wp.array(dtype=wp.vec3),
    partial: wp.array(dtype=float),
):
    """Largest speed of a node against the first of its body [m/s], in each chunk."""
    c = first + wp.tid()
    fastest = float(0.0)
    i = c * CHUNK
    end = wp.min(n, i + CHUNK)
    while i < end:
        b = nodes.body[i]
        fastest = wp.max(fastest, nodes.unit[b] * wp.length(v[i] - v[begin[b]]))
        i += 1
    partial[c] = fastest


@wp.kernel
def look_at_firsts(
    first: int,
    nodes: ContactNodes,
    begin: wp.array(dtype=wp.int32),
    v: wp.array(dtype=wp.vec3),
    velocity: wp.array(dtype=wp.vec3),
):
    """Velocity of the first node of each body [m/s]."""
    b = first + wp.tid()
    velocity[b] = nodes.unit[b] * v[begin[b]]


@dataclass(frozen=True)
class ContactPart:
    """What contact needs to know of one body."""

    unit: float
    """the mean node spacing [m]"""
    sees: Sees | None
    """which of its places at birth see each other; None for a body that has ever melted"""
    skin: float
    """nodes this deep or deeper, in spacings, do not touch: others are in front of them"""
    flows: bool
    """whether it is molten now, and meets other molten bodies by pressure"""
    family: int
    """the same for all pieces of one cracked body; -1 for a body without cracks"""
    guide: Callable[[], DistanceGrid]
    """lays out the distances of its solid in its first shape, in its units about its middle then"""


class Candidates:
    """Lists of nodes that may touch, for as long as they serve."""

    def __init__(self, model: PhyxelModel, parts: Sequence[ContactPart]) -> None:
        self._model = model
        self._flowing = np.array([part.flows for part in parts])
        device, n, bodies = model.device, len(model), len(parts)
        self._lows = np.array([low for low, _ in model.ranges])
        self.units = np.array([part.unit for part in parts])
        """[m], shape (bodies,)"""
        unit, self.offset, self.friction = (Shared(bodies, kind, device) for kind in (wp.float32, wp.vec3, wp.float32))
        unit.host[:] = self.units
        unit.push()
        nodes = self.nodes = ContactNodes()
        nodes.unit, nodes.offset, nodes.friction = unit.array, self.offset.array, self.friction.array
        nodes.family = wp.array([part.family for part in parts], dtype=wp.int32, device=device)
        nodes.melted = wp.array([part.sees is None for part in parts], dtype=wp.int32, device=device)
        nodes.body = model.matter.body
        nodes.tied = wp.full(n, -1, dtype=wp.int32, device=device)
        per_node = np.repeat(self.units, [high - low for low, high in model.ranges])
        reach = np.minimum(np.abs(model.matter.reach.numpy()), float(DEEPEST))
        nodes.ball = wp.array(reach * per_node, dtype=float, device=device)
        nodes.x = wp.zeros(n, dtype=wp.vec3, device=device)
        nodes.count = wp.zeros(n, dtype=wp.int32, device=device)
        nodes.index = wp.zeros(1, dtype=wp.int32, device=device)
        self.support = wp.array(model.matter.support.numpy(), dtype=float, device=device)
        deep = np.repeat([part.skin for part in parts], [high - low for low, high in model.ranges])
        self._skin = model.matter.reach.numpy() < deep
        self._cut_pairs = self._pairs_that_do_not_see()
        cut = np.zeros(n, np.int32)
        cut[self._cut_pairs] = 1
        self._cut = wp.array(cut, dtype=wp.int32, device=device)
        firsts = wp.array(self._lows, dtype=wp.int32, device=device)
        self._velocity = Shared(bodies, wp.vec3, device)
        self._spread = Shared((n + CHUNK - 1) // CHUNK, wp.float32, device)
        spreading = [n, nodes, firsts, model.v, self._spread.array]
        self._survey = Program(
            [
                Launch(measure_spread, len(self._spread.host), spreading, work=CHUNK // 8),
                Launch(look_at_firsts, bodies, [nodes, firsts, model.v, self._velocity.array]),
            ],
            device,
        )
        larger = np.maximum.outer(self.units, self.units)
        self._touching = float(DEEPEST) * np.add.outer(self.units, self.units) + float(BESIDE) * larger
        self._set_margin(MOST_MARGIN)
        self._groups = self._divided([part.sees for part in parts])
        self._first_group = np.cumsum([0] + [len(groups.start) for groups in self._groups])
        self._lists = self._group_lists()
        self.slack = np.zeros((bodies, bodies))
        """how much nearer the nodes of two bodies may come before lists are made anew [m]"""
        self.near = np.zeros((bodies, bodies), bool)
        """bodies that are near each other"""
        self.found = np.zeros(bodies, np.int64)
        """candidates of each body's nodes"""

    def _group_lists(self) -> GroupLists:
        """The groups of all bodies; which are near each other is still to be found."""
        sizes = np.concatenate([np.diff(groups.start, append=len(groups.node)) for groups in self._groups])
        node, owner = np.concatenate([groups.node for groups in self._groups]), np.repeat(np.arange(len(sizes)), sizes)
        lists = GroupLists()
        lists.node, lists.group, lists.start = (
            wp.array(numbers, dtype=wp.int32, device=self._model.device)
            for numbers in (node, owner, np.concatenate([[0], np.cumsum(sizes)]))
        )
        return lists

    def _set_margin(self, margin: float) -> None:
        self.nodes.margin = margin
        self._margin = 0.5 * margin * np.add.outer(self.units, self.units)

    def _pairs_that_do_not_see(self) -> NDArray[np.int64]:
        """Skin nodes within each other's support that are no neighbours, shape (pairs, 2)."""
        model = self._model
        X, support, near = model.matter.X.numpy(), model.matter.support.numpy(), model.matter.near
        every = PairList.joined(
            [find_pairs(X[low:high], support[low:high], model.device) for low, high in model.ranges]
        )
        known = near.pairs()
        one, other = (
            np.repeat(np.arange(len(X)), pairs.count) * len(X) + pairs.index.astype(np.int64)
            for pairs in (every, known)
        )
        both = np.stack(np.divmod(np.setdiff1d(one, other), len(X)), axis=1)
        both = both[both[:, 0] < both[:, 1]]
        return both[self._skin[both].all(axis=1)]

    def _divided(self, sees: Sequence[Sees | None]) -> list[SkinGroups]:
        """The skin of each body in groups."""
        model = self._model
        skin, X = self._skin, model.matter.birth.numpy().astype(np.float64)
        near = np.diagonal(self._touching + self._margin) / self.units
        divided = []
        for b, (low, high) in enumerate(model.ranges):
            nodes = low + np.flatnonzero(skin[low:high])
            cut = self._cut_pairs[(self._cut_pairs[:, 0] >= low) & (self._cut_pairs[:, 0] < high)]
            divided.append(SkinGroups.of(nodes, X[nodes], near[b], sees[b], cut))
        return divided

    def closing_speeds(self) -> NDArray[np.float64]:
        """How fast nodes of two bodies, or of one, come nearer to each other [m/s], shape (bodies, bodies): as fast as
        the bodies do, and the fastest node against its body. That two such nodes meet is not thought of."""
        self._survey.run()
        velocity = self._velocity.pull().astype(np.float64)
        apart = np.linalg.norm(velocity[:, None] - velocity[None], axis=2)
        return float(self._spread.pull().max()) + apart

    def serve(self, step: float, most: int, closing: NDArray[np.float64]) -> int:
        """For how many of `most` steps the lists serve."""
        way = step * closing
        serves = np.divide(self.slack, way, out=np.full_like(way, most), where=way > 0).min()
        return int(np.clip(serves, 0, most))

    def spend(self, duration: float, closing: NDArray[np.float64]) -> None:
        """Time passes."""
        self.slack -= duration * closing

    def place(self, clock: wp.array, drift: int, u: wp.array) -> Launch:
        """x from u, before the nodes moved there with v for clock[drift] [s]."""
        model = self._model
        return Launch(place_nodes, len(model), [self.nodes, model.matter.X, u, model.v, clock, drift], work=WORK)

    def renew(self, way: float) -> bool:
        """Make the lists anew, for steps in which nodes come nearer by `way` [m] at most; whether they have moved to
        another place in memory."""
        model = self._model
        self._set_margin(float(np.clip(SERVED * way / self.units.min(), LEAST_MARGIN, MOST_MARGIN)))
        x = self._places()
        self._compare_boxes(x)
        one, other = self._near_groups(x)
        if len(one) == 0:
            self.found = np.zeros(len(self._lows), np.int64)
            return False
        nodes, lists, device = self.nodes, self._lists, model.device
        nodes.x.assign(x.astype(np.float32))
        first = np.searchsorted(one, np.arange(self._first_group[-1] + 1))
        lists.partner_start, lists.partner = (
            wp.array(numbers, dtype=wp.int32, device=device) for numbers in (first, other)
        )
        members = len(lists.node)
        inputs = [nodes, lists, as_struct(model.matter), self.support, self._cut]
        dev.launch(list_candidates, members, inputs, device, split=members > MANY)
        count = nodes.count.numpy()
        self.found = np.add.reduceat(count, self._lows)
        longest = int(count.max())
        if longest <= nodes.capacity:
            return False
        nodes.capacity = max(CAPACITY, longest + longest // 2)
        nodes.index = wp.zeros(len(model) * nodes.capacity, dtype=wp.int32, device=device)
        dev.launch(list_candidates, members, inputs, device, split=members > MANY)
        return True

    def _places(self) -> NDArray[np.float64]:
        """Where all nodes are [m], shape (n, 3)."""
        model = self._model
        per_node = model.matter.body.numpy()
        places = (model.matter.X.numpy() + model.u.numpy()).astype(np.float64)
        places *= self.units[per_node][:, None]
        places += self.offset.host[per_node]
        return places

    def _compare_boxes(self, x: NDArray[np.float64]) -> None:
        """Which bodies are near each other, and how much nearer the others may come."""
        lower, upper = np.minimum.reduceat(x, self._lows), np.maximum.reduceat(x, self._lows)
        room = gaps(lower, upper, lower, upper) - self._touching
        self.near = room < self._margin
        self.slack = np.where(self.near, self._margin, room)
        np.fill_diagonal(self.near, False)

    def _near_groups(self, x: NDArray[np.float64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Pairs of groups whose nodes may touch, each from both sides, in the order of the first."""
        near = self._touching + self._margin
        boxes = [groups.boxes(x) for groups in self._groups]
        pairs = [np.zeros((2, 0), np.int64)]
        meeting = (self.near | np.eye(len(near), dtype=bool)) & ~np.logical_and.outer(self._flowing, self._flowing)
        for a, b in zip(*np.nonzero(meeting), strict=True):
            close = gaps(*boxes[a], *boxes[b]) < near[a, b]
            if a == b:
                close &= self._groups[a].may_touch
            one, other = np.nonzero(close)
            pairs.append(np.stack([one + self._first_group[a], other + self._first_group[b]]))
        both = np.concatenate(pairs, axis=1)
        one, other = both[:, np.argsort(both[0], kind="stable")]
        return one, other
