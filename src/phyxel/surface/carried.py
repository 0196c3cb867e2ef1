# mypy: disable-error-code="valid-type,no-untyped-def"
"""The points a body came with, carried by its displacement field (M04 §5.1, physics 8.1)."""

from __future__ import annotations

from typing import Any

import numpy as np
import warp as wp
from numpy.typing import NDArray

from phyxel import device as dev
from phyxel.mls.carry import Carriers
from phyxel.surface.discs import Discs, DiscShape, Floats
from phyxel.surface.motion import Motion
from phyxel.surface.walls import FAR, clearance_at, kept_out

wp.set_module_options(dev.KERNEL_OPTIONS)

WORTH_SPLITTING = 3000
"""Nodes whose motion takes longer to describe than it takes to wake a second thread."""
MANY = 12_000
"""Surfels above which a second thread pays: waking it takes as long as 5,000 of them."""


@wp.kernel
def describe_motion(
    first: int,
    first_node: int,
    X: wp.array(dtype=wp.vec3),
    u: wp.array(dtype=wp.vec3),
    gradient: wp.array(dtype=wp.mat33),
    colliders: Any,
    body: int,
    motion: wp.array(dtype=wp.mat44),
):
    """What a node does to the points around it, as one record: u(P) = c + G P with G = ∇u and c = u − G X in the first
    three rows (G | c); in the last where it is, and how far from the nearest collider."""
    i = first + wp.tid()
    node = first_node + i
    G = gradient[node]
    c = u[node] - G * X[node]
    x = X[node] + u[node]
    motion[i] = wp.mat44(
        G[0, 0], G[0, 1], G[0, 2], c[0],
        G[1, 0], G[1, 1], G[1, 2], c[1],
        G[2, 0], G[2, 1], G[2, 2], c[2],
        x[0], x[1], x[2], clearance_at(x, colliders, body),
    )  # fmt: skip


@wp.kernel
def follow_nodes(
    first: int,
    carriers: int,
    nodes: wp.array(dtype=wp.int32),
    shares: wp.array(dtype=float),
    points: wp.array(dtype=wp.vec3),
    axis_a: wp.array(dtype=wp.vec3),
    axis_b: wp.array(dtype=wp.vec3),
    motion: wp.array(dtype=wp.mat44),
    colliders: Any,
    body: int,
    unit: float,
    position: wp.array(dtype=wp.vec3),
    turned_a: wp.array(dtype=wp.vec3),
    turned_b: wp.array(dtype=wp.vec3),
    normal: wp.array(dtype=wp.vec3),
):
    """Where each surfel goes (M04 §5.1, physics 2.7), about the body's origin [m]; its axes go with I + ∇u, its normal
    is their cross product."""
    s = first + wp.tid()
    entry = s * carriers
    end = entry + carriers
    home = nodes[entry]
    mean = wp.mat44()
    while entry < end:
        mean += shares[entry] * motion[nodes[entry]]
        entry += 1
    P = points[s]
    x = P + wp.vec3(
        mean[0, 0] * P[0] + mean[0, 1] * P[1] + mean[0, 2] * P[2] + mean[0, 3],
        mean[1, 0] * P[0] + mean[1, 1] * P[1] + mean[1, 2] * P[2] + mean[1, 3],
        mean[2, 0] * P[0] + mean[2, 1] * P[1] + mean[2, 2] * P[2] + mean[2, 3],
    )
    F = wp.mat33(
        1.0 + mean[0, 0], mean[0, 1], mean[0, 2],
        mean[1, 0], 1.0 + mean[1, 1], mean[1, 2],
        mean[2, 0], mean[2, 1], 1.0 + mean[2, 2],
    )  # fmt: skip
    near = motion[home]
    away = wp.length(x - wp.vec3(near[3, 0], near[3, 1], near[3, 2]))
    # Distance changes by no more than the way: a node far enough away speaks for the points around it.
    if near[3, 3] < FAR * away:
        x = kept_out(x, colliders, body)
    a = F * axis_a[s]
    b = F * axis_b[s]
    position[s] = unit * x
    turned_a[s] = unit * a
    turned_b[s] = unit * b
    normal[s] = wp.normalize(wp.cross(a, b))


@wp.kernel
def take_as_rest(
    first: int,
    per_unit: float,
    offset: wp.vec3,
    position: wp.array(dtype=wp.vec3),
    axis_a: wp.array(dtype=wp.vec3),
    axis_b: wp.array(dtype=wp.vec3),
    points: wp.array(dtype=wp.vec3),
    rest_a: wp.array(dtype=wp.vec3),
    rest_b: wp.array(dtype=wp.vec3),
):
    """Where surfels are [m] becomes their reference shape [spacings], `offset` away."""
    s = first + wp.tid()
    points[s] = per_unit * position[s] + offset
    rest_a[s] = per_unit * axis_a[s]
    rest_b[s] = per_unit * axis_b[s]


class Carried(Discs):
    """Surfels that go where the nodes around them go."""

    def __init__(self, shape: DiscShape, carriers: Carriers, device: wp.Device) -> None:
        m = len(shape.points)
        color = wp.array(np.asarray(shape.colors, np.float32), dtype=wp.vec3, device=device)
        x, a, b, n = (wp.zeros(m, dtype=wp.vec3, device=device) for _ in range(4))
        super().__init__(x, a, b, n, color, np.zeros(3))
        self._device = device
        self._carriers = carriers.nodes.shape[1]
        self._nodes = wp.array(carriers.nodes.reshape(-1), dtype=wp.int32, device=device)
        self._shares = wp.array(carriers.shares.reshape(-1), dtype=float, device=device)
        self._points, self._axis_a, self._axis_b = (dev.as_vectors(field, device) for field in shape[:3])
        self._motion = wp.empty(0, dtype=wp.mat44, device=device)
        """what each node does to the points around it"""

    def absorb(self, unit: float, origin: Floats) -> None:
        """Where the surfels are now becomes their reference shape, in units of `unit` [m] about `origin` [m]."""
        offset = wp.vec3(*((self.origin - origin) / unit))
        arrays = [self.position, self.axis_a, self.axis_b, self._points, self._axis_a, self._axis_b]
        dev.launch(take_as_rest, len(self), [1 / unit, offset, *arrays], self._device)

    def find_carriers(self, nodes: Floats, spacing: float = 1.0) -> None:
        """Let other nodes carry those surfels whose nodes have gone away from them: the nearest of (n, 3) positions in
        the reference shape, which were a `spacing` apart. What has not flowed stays with the nodes it was born with,
        which know its limb from the next."""
        carriers = self.carriers
        carriers = carriers.refreshed(self._points.numpy(), np.asarray(nodes, np.float32), self._device, spacing)
        self._nodes.assign(carriers.nodes.reshape(-1))
        self._shares.assign(carriers.shares.reshape(-1))

    @property
    def shape(self) -> DiscShape:
        """The reference shape."""
        return DiscShape(self._points.numpy(), self._axis_a.numpy(), self._axis_b.numpy(), self.colors)

    @property
    def carriers(self) -> Carriers:
        """Which nodes carry them."""
        each = (len(self), self._carriers)
        return Carriers(self._nodes.numpy().reshape(each), self._shares.numpy().reshape(each))

    def copy(self) -> Carried:
        """Others with the same reference shape."""
        return Carried(self.shape, self.carriers, self._device)

    def state(self) -> dict[str, NDArray[Any]]:
        """The reference shape, and which nodes carry it."""
        carriers = self.carriers
        arrays = self.shape._asdict() | {"nodes": carriers.nodes, "shares": carriers.shares}
        return {name: array.copy() for name, array in arrays.items()}

    @staticmethod
    def restored(state: dict[str, NDArray[Any]], device: wp.Device) -> Carried:
        """From what `state` gave."""
        shape = DiscShape(*(state[name] for name in DiscShape._fields))
        return Carried(shape, Carriers(state["nodes"], state["shares"]), device)

    def follow(self, motion: Motion) -> None:
        """Go where the nodes around the surfels carry them."""
        self.origin = motion.origin.copy()
        first_node, end_node = motion.nodes
        count, walls = end_node - first_node, [motion.walls.table, motion.walls.body]
        if len(self._motion) != count:
            self._motion = wp.empty(count, dtype=wp.mat44, device=self._device)
        inputs = [first_node, motion.X, motion.u, motion.gradient, *walls, self._motion]
        dev.launch(describe_motion, count, inputs, self._device, split=count > WORTH_SPLITTING)
        shape = [self._carriers, self._nodes, self._shares, self._points, self._axis_a, self._axis_b]
        placed = [self.position, self.axis_a, self.axis_b, self.normal]
        inputs = [*shape, self._motion, *walls, motion.unit, *placed]
        dev.launch(follow_nodes, len(self), inputs, self._device, split=len(self) > MANY)
