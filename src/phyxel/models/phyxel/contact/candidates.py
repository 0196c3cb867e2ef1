# mypy: disable-error-code="valid-type,no-untyped-def"
"""Which nodes may touch: those of other bodies that are near, and those of the same body that are no neighbours.

Lists are symmetric, so that impulses can be gathered, and sorted, so that a step has the same bits whenever its list
was made. They hold what is within touching distance and a margin: they serve until something has moved by that much.
Lengths in metres, about a common origin.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import warp as wp
from numpy.typing import NDArray

from phyxel import device as dev
from phyxel.device import Launch, Program, Shared
from phyxel.mls.neighbours import PairList, find_pairs
from phyxel.mls.visibility import Sees
from phyxel.models.reductions import CHUNK

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
SKIN = 1.2
"""Nodes this deep or deeper, in spacings, do not touch: others are in front of them."""
MANY = 3000
"""Skin nodes from which their lists are worth several threads."""
GROUPS, SMALLEST_GROUP = 256, 8
"""Into how many groups the skin of a body is divided, about, and how many nodes one may have in any case."""
FOLDED = 1.5
"""Parts of a body that see each other touch when it is folded. This many touching distances apart in the reference
shape, being near is no longer a matter of pressure."""
WORK = 1 / 16
"""What a pass of contact takes a phyxel on average, over a pass of forces: most phyxels touch nothing."""
CAPACITY = 32
"""Length of lists, at first."""


@wp.struct
class BodyFrames:
    """Where bodies are: x = offset + unit·(X + u) in metres about the common origin."""

    unit: wp.array(dtype=float)
    """[m], shape (bodies,)"""
    offset: wp.array(dtype=wp.vec3)
    """[m], shape (bodies,)"""
    friction: wp.array(dtype=float)
    """shape (bodies,)"""
    family: wp.array(dtype=wp.int32)
    """the same for all that has cracked off one body, shape (bodies,); -1 for what has no crack"""
    margin: float
    """what may move before lists are made anew, in spacings"""
    melted: wp.array(dtype=wp.int32)
    """1 for what has ever melted and is touched at the balls of its nodes, shape (bodies,)"""


@wp.func
def touching_distance(ball_i: float, ball_k: float, unit_i: float, unit_k: float):
    """Farthest from each other that two nodes with balls of these radii may stand and touch [m]."""
    return ball_i + ball_k + BESIDE * wp.max(unit_i, unit_k)


@wp.kernel
def place_nodes(
    first: int,
    frames: BodyFrames,
    body: wp.array(dtype=wp.int32),
    X: wp.array(dtype=wp.vec3),
    u: wp.array(dtype=wp.vec3),
    v: wp.array(dtype=wp.vec3),
    clock: wp.array(dtype=float),
    drift: int,
    x: wp.array(dtype=wp.vec3),
):
    """x [m] of all nodes before they moved with v for clock[drift] [s]."""
    i = first + wp.tid()
    b = body[i]
    x[i] = frames.offset[b] + frames.unit[b] * (X[i] + (u[i] - clock[drift] * v[i]))


@wp.func
def is_neighbour(
    i: int, k: int, start: wp.array(dtype=wp.int32), count: wp.array(dtype=wp.int32), stride: int,
    index: wp.array(dtype=wp.int32),
):  # fmt: skip
    """Whether k is in the neighbour list of i."""
    entry = start[i]
    end = entry + count[i] * stride
    while entry < end:
        if index[entry] == k:
            return True
        entry += stride
    return False


@wp.func
def may_touch(
    i: int,
    k: int,
    frames: BodyFrames,
    body: wp.array(dtype=wp.int32),
    ball: wp.array(dtype=float),
    X: wp.array(dtype=wp.vec3),
    support: wp.array(dtype=float),
    cut: wp.array(dtype=wp.int32),
    start: wp.array(dtype=wp.int32),
    count: wp.array(dtype=wp.int32),
    stride: int,
    index: wp.array(dtype=wp.int32),
    x: wp.array(dtype=wp.vec3),
):
    """Whether two nodes are near enough, and not held together by the body's own forces."""
    unit_i = frames.unit[body[i]]
    unit_k = frames.unit[body[k]]
    near = touching_distance(ball[i], ball[k], unit_i, unit_k) + 0.5 * frames.margin * (unit_i + unit_k)
    distance = wp.length_sq(x[k] - x[i])
    if k == i or distance > near * near:
        return False
    if body[k] != body[i]:
        return True
    at_first = wp.length_sq(X[k] - X[i])
    reach = wp.max(support[i], support[k])
    if at_first < reach * reach:
        return cut[i] == 1 and cut[k] == 1 and not is_neighbour(i, k, start, count, stride, index)
    return distance < DRAWN_NEARER * DRAWN_NEARER * unit_i * unit_i * at_first


@wp.kernel
def list_candidates(
    first: int,
    frames: BodyFrames,
    body: wp.array(dtype=wp.int32),
    ball: wp.array(dtype=float),
    X: wp.array(dtype=wp.vec3),
    support: wp.array(dtype=float),
    cut: wp.array(dtype=wp.int32),
    start: wp.array(dtype=wp.int32),
    count: wp.array(dtype=wp.int32),
    stride: int,
    index: wp.array(dtype=wp.int32),
    x: wp.array(dtype=wp.vec3),
    node: wp.array(dtype=wp.int32),
    group: wp.array(dtype=wp.int32),
    group_start: wp.array(dtype=wp.int32),
    partner_start: wp.array(dtype=wp.int32),
    partner: wp.array(dtype=wp.int32),
    found: wp.array(dtype=wp.int32),
    capacity: int,
    candidate: wp.array(dtype=wp.int32),
):
    """The list of each skin node out of the groups that are near its own, in the order of its nodes, and how long it
    would be without a limit."""
    s = first + wp.tid()
    i = node[s]
    begin = i * capacity
    total = int(0)
    p = partner_start[group[s]]
    while p < partner_start[group[s] + 1]:
        g = partner[p]
        m = group_start[g]
        while m < group_start[g + 1]:
            k = node[m]
            if may_touch(i, k, frames, body, ball, X, support, cut, start, count, stride, index, x):
                if total < capacity:
                    entry = begin + total
                    while entry > begin and candidate[wp.max(entry - 1, 0)] > k:
                        candidate[entry] = candidate[entry - 1]
                        entry -= 1
                    candidate[entry] = k
                total += 1
            m += 1
        p += 1
    found[i] = total


@wp.kernel
def measure_spread(
    first: int,
    n: int,
    frames: BodyFrames,
    body: wp.array(dtype=wp.int32),
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
        b = body[i]
        fastest = wp.max(fastest, frames.unit[b] * wp.length(v[i] - v[begin[b]]))
        i += 1
    partial[c] = fastest


@wp.kernel
def look_at_firsts(
    first: int,
    frames: BodyFrames,
    begin: wp.array(dtype=wp.int32),
    v: wp.array(dtype=wp.vec3),
    velocity: wp.array(dtype=wp.vec3),
):
    """Velocity of the first node of each body [m/s]."""
    b = first + wp.tid()
    velocity[b] = frames.unit[b] * v[begin[b]]


@dataclass(frozen=True)
class Groups:
    """The skin of one body in compact groups of nodes: what is not near as a group need not be asked one by one."""

    node: NDArray[np.int64]
    """skin nodes, one group after another"""
    start: NDArray[np.int64]
    """where groups begin in `node`"""
    may_touch: NDArray[np.bool_]
    """which groups can come to touch each other, (groups, groups): those that have nodes, or middles, that do not see
    each other inside the solid, and those so far apart that only folding brings them together"""

    @staticmethod
    def of(
        nodes: NDArray[np.int64], X: NDArray[np.float64], near: float, sees: Sees | None, cut: NDArray[np.int64]
    ) -> Groups:
        """Groups of nodes with reference positions X (n, 3); `near` is how far apart touching nodes may be; `cut` are
        pairs of nodes that do not see each other."""
        size = max(SMALLEST_GROUP, -(-len(nodes) // GROUPS))
        groups = _halved(X, np.arange(len(X)), size)
        start = np.cumsum([0] + [len(group) for group in groups[:-1]])
        order = np.concatenate(groups)
        lower, upper = np.minimum.reduceat(X[order], start), np.maximum.reduceat(X[order], start)
        apart = gaps(lower, upper, lower, upper) > FOLDED * near
        middle = np.array([X[g][np.linalg.norm(X[g] - X[g].mean(axis=0), axis=1).argmin()] for g in groups])
        one, other = np.nonzero(np.triu(~apart, 1))
        hidden = np.zeros(len(one), bool) if sees is None else ~sees(middle[one], middle[other])
        apart[one[hidden], other[hidden]] = True
        owner = np.empty(len(X), np.int64)
        owner[order] = np.repeat(np.arange(len(groups)), [len(group) for group in groups])
        apart[tuple(owner[np.searchsorted(nodes, cut)].T)] = True
        return Groups(nodes[order], start, apart | apart.T)

    def boxes(self, x: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Lower and upper corners of the boxes around the groups, (groups, 3) each."""
        places = x[self.node]
        return np.minimum.reduceat(places, self.start), np.maximum.reduceat(places, self.start)


def _halved(X: NDArray[np.float64], group: NDArray[np.int64], size: int) -> list[NDArray[np.int64]]:
    """A group of points, halved across its longest side until no part has more than `size`."""
    if len(group) <= size:
        return [group]
    across = int(np.ptp(X[group], axis=0).argmax())
    order = group[np.argsort(X[group, across], kind="stable")]
    return _halved(X, order[: len(order) // 2], size) + _halved(X, order[len(order) // 2 :], size)


def gaps(
    lower: NDArray[np.float64], upper: NDArray[np.float64], lower_b: NDArray[np.float64], upper_b: NDArray[np.float64]
) -> NDArray[np.float64]:
    """How far boxes (a, 3) and (b, 3) are from each other at least, (a, b); below zero if they overlap."""
    farthest = np.full((len(lower), len(lower_b)), -np.inf)
    for axis in range(3):
        np.maximum(farthest, lower[:, axis, None] - upper_b[:, axis], out=farthest)
        np.maximum(farthest, lower_b[:, axis] - upper[:, axis, None], out=farthest)
    return farthest


class Candidates:
    """Lists of nodes that may touch, for as long as they serve."""

    def __init__(
        self, model: PhyxelModel, units: NDArray[np.float64], sees: Sequence[Sees | None], flowing: NDArray[np.bool_]
    ) -> None:
        self._model = model
        self._flowing = flowing
        """which bodies are molten now, and meet each other by their pressure"""
        device, n, bodies = model.device, len(model), len(units)
        self._units = units
        self._lows = np.array([low for low, _ in model.ranges])
        self.unit, self.offset, self.friction = (
            Shared(bodies, kind, device) for kind in (wp.float32, wp.vec3, wp.float32)
        )
        self.unit.host[:] = units
        self.unit.push()
        self.frames = BodyFrames()
        self.frames.unit, self.frames.offset, self.frames.friction = (
            shared.array for shared in (self.unit, self.offset, self.friction)
        )
        self.frames.melted = wp.array([one is None for one in sees], dtype=wp.int32, device=device)
        per_node = np.repeat(units, [high - low for low, high in model.ranges])
        reach = np.minimum(np.abs(model.reach.numpy()), float(DEEPEST))
        self.ball = wp.array(reach * per_node, dtype=float, device=device)
        """radius of the ball a node touches with, at rest [m], shape (n,)"""
        self.support = wp.array(model.matter.support.numpy(), dtype=float, device=device)
        self._cut_pairs = self._pairs_that_do_not_see()
        cut = np.zeros(n, np.int32)
        cut[self._cut_pairs] = 1
        self._cut = wp.array(cut, dtype=wp.int32, device=device)
        self.x = wp.zeros(n, dtype=wp.vec3, device=device)
        """[m], shape (n,)"""
        self.count = wp.zeros(n, dtype=wp.int32, device=device)
        self.capacity = 0
        self.index = wp.zeros(1, dtype=wp.int32, device=device)
        """the list of node i begins at i·capacity; none until something is near"""
        self._firsts = wp.array(self._lows, dtype=wp.int32, device=device)
        self._velocity = Shared(bodies, wp.vec3, device)
        self._spread = Shared((n + CHUNK - 1) // CHUNK, wp.float32, device)
        inputs = [len(model), self.frames, model.matter.body, self._firsts, model.v, self._spread.array]
        self._survey = Program(
            [
                Launch(measure_spread, len(self._spread.host), inputs, work=CHUNK // 8),
                Launch(look_at_firsts, bodies, [self.frames, self._firsts, model.v, self._velocity.array]),
            ],
            device,
        )
        larger = np.maximum.outer(units, units)
        self._touching = float(DEEPEST) * np.add.outer(units, units) + float(BESIDE) * larger
        self._set_margin(MOST_MARGIN)
        self._groups = self._divided(sees)
        sizes = np.concatenate([np.diff(groups.start, append=len(groups.node)) for groups in self._groups])
        self._first_group = np.cumsum([0] + [len(groups.start) for groups in self._groups])
        node = np.concatenate([groups.node for groups in self._groups])
        owner = np.repeat(np.arange(len(sizes)), sizes)
        self._members = [
            wp.array(numbers, dtype=wp.int32, device=device)
            for numbers in (node, owner, np.concatenate([[0], np.cumsum(sizes)]))
        ]
        """skin nodes group by group, the group of each, where groups begin"""
        self.slack = np.zeros((bodies, bodies))
        """how much nearer the nodes of two bodies may come before lists are made anew [m]"""
        self.near = np.zeros((bodies, bodies), bool)
        """bodies that are near each other"""
        self.found = np.zeros(bodies, np.int64)
        """candidates of each body's nodes"""

    def _set_margin(self, margin: float) -> None:
        self.frames.margin = margin
        self._margin = 0.5 * margin * np.add.outer(self._units, self._units)

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
        return both[(model.reach.numpy() < SKIN)[both].all(axis=1)]

    def _divided(self, sees: Sequence[Sees | None]) -> list[Groups]:
        """The skin of each body in groups."""
        model = self._model
        skin, X = model.reach.numpy() < SKIN, model.matter.birth.numpy().astype(np.float64)
        near = np.diagonal(self._touching + self._margin) / self._units
        divided = []
        for b, (low, high) in enumerate(model.ranges):
            nodes = low + np.flatnonzero(skin[low:high])
            cut = self._cut_pairs[(self._cut_pairs[:, 0] >= low) & (self._cut_pairs[:, 0] < high)]
            divided.append(Groups.of(nodes, X[nodes], near[b], sees[b], cut))
        return divided

    @property
    def lists(self) -> list[Any]:
        """Arguments of kernels that go through the lists."""
        return [self.capacity, self.count, self.index]

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

    def place(self, clock: wp.array, drift: int) -> Launch:
        """x from u, before the nodes moved with v for clock[drift] [s]."""
        model = self._model
        where = [self.frames, model.matter.body, model.matter.X, model.u, model.v]
        return Launch(place_nodes, len(model), [*where, clock, drift, self.x], work=WORK)

    def renew(self, way: float) -> bool:
        """Make the lists anew, for steps in which nodes come nearer by `way` [m] at most; whether they have moved to
        another place in memory."""
        model = self._model
        self._set_margin(float(np.clip(SERVED * way / self._units.min(), LEAST_MARGIN, MOST_MARGIN)))
        x = self._places()
        self._compare_boxes(x)
        one, other = self._near_groups(x)
        if len(one) == 0:
            self.found = np.zeros(len(self._lows), np.int64)
            return False
        self.x.assign(x.astype(np.float32))
        first = np.searchsorted(one, np.arange(self._first_group[-1] + 1))
        partners = [wp.array(numbers, dtype=wp.int32, device=model.device) for numbers in (first, other)]
        matter = model.matter
        what = [self.frames, matter.body, self.ball, matter.birth, self.support, self._cut, *matter.lists, self.x]
        inputs = [*what, *self._members, *partners, self.count]
        members = len(self._members[0])
        many = members > MANY
        dev.launch(list_candidates, members, [*inputs, self.capacity, self.index], model.device, split=many)
        count = self.count.numpy()
        self.found = np.add.reduceat(count, self._lows)
        longest = int(count.max())
        if longest <= self.capacity:
            return False
        self.capacity = max(CAPACITY, longest + longest // 2)
        self.index = wp.zeros(len(model) * self.capacity, dtype=wp.int32, device=model.device)
        dev.launch(list_candidates, members, [*inputs, self.capacity, self.index], model.device, split=many)
        return True

    def _places(self) -> NDArray[np.float64]:
        """Where all nodes are [m], shape (n, 3)."""
        model = self._model
        per_node = model.matter.body.numpy()
        places = (model.matter.X.numpy() + model.u.numpy()).astype(np.float64)
        places *= self._units[per_node][:, None]
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
