# mypy: disable-error-code="valid-type,no-untyped-def"
"""Which nodes may touch: those of other bodies that are near, and those of the same body that are no neighbours.

Lists are symmetric, so that impulses can be gathered, and sorted, so that a step has the same bits whenever its list
was made. They hold what is within touching distance and a margin: they serve until something has moved by that much.
Lengths in metres, about a common origin.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import warp as wp
from numpy.typing import NDArray

from phyxel import device as dev
from phyxel.device import Launch, Program, Shared
from phyxel.mls.neighbours import find_pairs
from phyxel.models.reductions import CHUNK

if TYPE_CHECKING:
    from phyxel.models.phyxel import PhyxelModel

wp.set_module_options(dev.KERNEL_OPTIONS)

DEEPEST = wp.constant(0.75)
"""A node touches with a ball of its distance to the surface, in spacings, or with this if it lies deeper."""
BESIDE = wp.constant(0.75)
"""How far a node may stand beside the one it touches, in spacings: a little more than half a lattice's diagonal."""
MARGIN = wp.constant(0.5)
"""What may move before lists are made anew, in spacings."""
DRAWN_NEARER = wp.constant(0.9)
"""Nodes of one body that are no neighbours count once their distance has shrunk to this share of the first."""
SKIN = 1.2
"""Nodes this deep or deeper, in spacings, do not touch: others are in front of them."""
CAPACITY = 32
"""Length of lists, at first."""


@wp.struct
class Frames:
    """Where bodies are: x = offset + unit·(X + u) in metres about the common origin."""

    unit: wp.array(dtype=float)
    """[m], shape (bodies,)"""
    offset: wp.array(dtype=wp.vec3)
    """[m], shape (bodies,)"""
    friction: wp.array(dtype=float)
    """shape (bodies,)"""


@wp.func
def touching_distance(ball_i: float, ball_k: float, unit_i: float, unit_k: float):
    """Farthest from each other that two nodes with balls of these radii may stand and touch [m]."""
    return ball_i + ball_k + BESIDE * wp.max(unit_i, unit_k)


@wp.kernel
def place_nodes(
    first: int,
    frames: Frames,
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


@wp.kernel
def pick(
    first: int, skin: wp.array(dtype=wp.int32), x: wp.array(dtype=wp.vec3), x_skin: wp.array(dtype=wp.vec3)
):  # fmt: skip
    """x of the skin nodes."""
    s = first + wp.tid()
    x_skin[s] = x[skin[s]]


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
    frames: Frames,
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
    near = touching_distance(ball[i], ball[k], unit_i, unit_k) + 0.5 * MARGIN * (unit_i + unit_k)
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
    grid: wp.uint64,
    farthest: float,
    frames: Frames,
    body: wp.array(dtype=wp.int32),
    ball: wp.array(dtype=float),
    X: wp.array(dtype=wp.vec3),
    support: wp.array(dtype=float),
    cut: wp.array(dtype=wp.int32),
    start: wp.array(dtype=wp.int32),
    count: wp.array(dtype=wp.int32),
    stride: int,
    index: wp.array(dtype=wp.int32),
    skin: wp.array(dtype=wp.int32),
    x_skin: wp.array(dtype=wp.vec3),
    x: wp.array(dtype=wp.vec3),
    found: wp.array(dtype=wp.int32),
    capacity: int,
    candidate: wp.array(dtype=wp.int32),
):
    """The list of each skin node, in the order of its nodes, and how long it would be without a limit."""
    s = first + wp.tid()
    i = skin[s]
    begin = i * capacity
    total = int(0)
    for other in wp.hash_grid_query(grid, x_skin[s], farthest):
        k = skin[other]
        if may_touch(i, k, frames, body, ball, X, support, cut, start, count, stride, index, x):
            if total < capacity:
                entry = begin + total
                while entry > begin and candidate[wp.max(entry - 1, 0)] > k:
                    candidate[entry] = candidate[entry - 1]
                    entry -= 1
                candidate[entry] = k
            total += 1
    found[i] = total


@wp.kernel
def measure_spread(
    first: int,
    n: int,
    frames: Frames,
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
    frames: Frames,
    begin: wp.array(dtype=wp.int32),
    v: wp.array(dtype=wp.vec3),
    velocity: wp.array(dtype=wp.vec3),
):
    """Velocity of the first node of each body [m/s]."""
    b = first + wp.tid()
    velocity[b] = frames.unit[b] * v[begin[b]]


class Candidates:
    """Lists of nodes that may touch, for as long as they serve."""

    def __init__(self, model: PhyxelModel, units: NDArray[np.float64]) -> None:
        self._model = model
        device, n, bodies = model.device, len(model), len(units)
        self._units = units
        self._lows = np.array([low for low, _ in model.ranges])
        self.unit, self.offset, self.friction = (
            Shared(bodies, kind, device) for kind in (wp.float32, wp.vec3, wp.float32)
        )
        self.unit.host[:] = units
        self.unit.push()
        self.frames = Frames()
        self.frames.unit, self.frames.offset, self.frames.friction = (
            shared.array for shared in (self.unit, self.offset, self.friction)
        )
        per_node = np.repeat(units, [high - low for low, high in model.ranges])
        self.ball = wp.array(np.minimum(model.reach.numpy(), float(DEEPEST)) * per_node, dtype=float, device=device)
        """radius of the ball a node touches with, at rest [m], shape (n,)"""
        self.support = wp.array(model.support, dtype=float, device=device)
        self._cut = wp.array(self._cut_nodes(), dtype=wp.int32, device=device)
        self.x = wp.zeros(n, dtype=wp.vec3, device=device)
        """[m], shape (n,)"""
        self.count = wp.zeros(n, dtype=wp.int32, device=device)
        self.capacity = CAPACITY
        self.index = wp.zeros(n * self.capacity, dtype=wp.int32, device=device)
        """the list of node i begins at i·capacity"""
        self._skin = wp.array(np.flatnonzero(model.reach.numpy() < SKIN), dtype=wp.int32, device=device)
        self._x_skin = wp.zeros(len(self._skin), dtype=wp.vec3, device=device)
        cells = int(np.clip(2 ** np.ceil(np.log2(max(n, 8)) / 3), 8, 128))
        self._grid = wp.HashGrid(cells, cells, cells, device=device)
        self._no_time = wp.zeros(1, dtype=float, device=device)
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
        self._margin = 0.5 * float(MARGIN) * np.add.outer(units, units)
        self._slack = np.zeros((bodies, bodies))
        """how much nearer the nodes of two bodies may come before lists are made anew [m]"""
        self.near = np.zeros((bodies, bodies), bool)
        """bodies that are near each other"""
        self.found = np.zeros(bodies, np.int64)
        """candidates of each body's nodes"""

    def _cut_nodes(self) -> NDArray[np.int32]:
        """Nodes that have others within their support that they do not see, as 1, shape (n,)."""
        model = self._model
        X, seen = model.matter.X.numpy(), model.matter.near.count.numpy()
        every = [find_pairs(X[low:high], model.support[low:high], model.device).count for low, high in model.ranges]
        return (np.concatenate(every) > seen).astype(np.int32)

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
        serves = np.divide(self._slack, way, out=np.full_like(way, most), where=way > 0).min()
        return int(np.clip(serves, 0, most))

    def spend(self, duration: float, closing: NDArray[np.float64]) -> None:
        """Time passes."""
        self._slack -= duration * closing

    def place(self, clock: wp.array, drift: int) -> Launch:
        """x from u, before the nodes moved with v for clock[drift] [s]."""
        model = self._model
        where = [self.frames, model.matter.body, model.matter.X, model.u, model.v]
        return Launch(place_nodes, len(model), [*where, clock, drift, self.x])

    def renew(self) -> bool:
        """Make the lists anew; whether they have moved to another place in memory."""
        model = self._model
        item = self.place(self._no_time, 0)
        dev.launch(item.kernel, item.count, item.inputs, model.device, split=False)
        dev.launch(pick, len(self._skin), [self._skin, self.x, self._x_skin], model.device, split=False)
        self._compare_boxes()
        near = self._touching + self._margin
        farthest = float(near[self.near | np.eye(len(near), dtype=bool)].max())
        self._grid.build(self._x_skin, farthest)
        matter = model.matter
        what = [self.frames, matter.body, self.ball, matter.X, self.support, self._cut, *matter.lists]
        inputs = [self._grid.id, farthest, *what, self._skin, self._x_skin, self.x, self.count]
        dev.launch(list_candidates, len(self._skin), [*inputs, self.capacity, self.index], model.device)
        count = self.count.numpy()
        self.found = np.add.reduceat(count, self._lows)
        longest = int(count.max())
        if longest <= self.capacity:
            return False
        self.capacity = longest + longest // 2
        self.index = wp.zeros(len(model) * self.capacity, dtype=wp.int32, device=model.device)
        dev.launch(list_candidates, len(self._skin), [*inputs, self.capacity, self.index], model.device)
        return True

    def _compare_boxes(self) -> None:
        """Which bodies are near each other, and how much nearer the others may come."""
        x = self.x.numpy().astype(np.float64)
        lower, upper = np.minimum.reduceat(x, self._lows), np.maximum.reduceat(x, self._lows)
        apart = (lower[:, None] - upper[None]).max(axis=2)
        room = np.maximum(apart, apart.T) - self._touching
        self.near = room < self._margin
        self._slack = np.where(self.near, self._margin, room)
        np.fill_diagonal(self.near, False)
