# mypy: disable-error-code="valid-type,no-untyped-def"
"""The points a body came with, carried by its displacement field (M04 §5.1)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import warp as wp
from numpy.typing import NDArray

from phyxel import device as dev
from phyxel.contact.table import distance_to
from phyxel.mls.carry import Carriers
from phyxel.mls.neighbours import mean_spacing
from phyxel.models.phyxel import PhyxelModel
from phyxel.points.frames import tangents

wp.set_module_options(dev.KERNEL_OPTIONS)

Floats = NDArray[np.floating]

DEEPEST = wp.constant(1.0)
"""How deep in a collider a surfel is brought back, in spacings: deeper, its body is in it."""
OVERLAP = 1.2
"""Radius of a disc over the mean distance to its six nearest: no gap between discs, also at 20 % stretch."""


@wp.kernel
def follow_nodes(
    first: int,
    carriers: int,
    nodes: wp.array(dtype=wp.int32),
    shares: wp.array(dtype=float),
    first_node: int,
    points: wp.array(dtype=wp.vec3),
    axis_a: wp.array(dtype=wp.vec3),
    axis_b: wp.array(dtype=wp.vec3),
    X: wp.array(dtype=wp.vec3),
    u: wp.array(dtype=wp.vec3),
    gradient: wp.array(dtype=wp.mat33),
    unit: float,
    position: wp.array(dtype=wp.vec3),
    turned_a: wp.array(dtype=wp.vec3),
    turned_b: wp.array(dtype=wp.vec3),
    normal: wp.array(dtype=wp.vec3),
):
    """Where each surfel goes (M04 §5.1), about the body's origin [m]; its axes go with I + ∇u, its normal is their
    cross product."""
    s = first + wp.tid()
    point = points[s]
    moved = wp.vec3()
    grad = wp.mat33()
    entry = s * carriers
    end = entry + carriers
    while entry < end:
        i = first_node + nodes[entry]
        share = shares[entry]
        G = gradient[i]
        moved += share * (u[i] + G * (point - X[i]))
        grad += share * G
        entry += 1
    a = axis_a[s] + grad * axis_a[s]
    b = axis_b[s] + grad * axis_b[s]
    position[s] = unit * (point + moved)
    turned_a[s] = unit * a
    turned_b[s] = unit * b
    normal[s] = wp.normalize(wp.cross(a, b))


@wp.kernel
def keep_out(first: int, colliders: Any, body: int, unit: float, position: wp.array(dtype=wp.vec3)):
    """Put surfels that have got into a collider onto its surface: nodes keep clear of it by balls, between which the
    skin can dip in."""
    s = first + wp.tid()
    k = int(0)
    while k < colliders.count:
        row = body * colliders.count + k
        arm = position[s] / unit + colliders.place[row]
        d, n = distance_to(
            colliders.kind[k],
            colliders.turn[row],
            colliders.size[row],
            colliders.layout[k],
            colliders.values,
            arm,
            wp.vec3(),
        )
        if d < 0.0 and d > -DEEPEST:
            position[s] = position[s] - unit * d * n
        k += 1


def disc_radii(positions: Floats) -> Floats:
    """Radius of a disc around each point so that the discs of neighbours overlap [unit of positions], shape (m,)."""
    spacing = mean_spacing(positions, 6)
    typical = float(np.median(spacing))
    # Held near what is typical, so that a stray point does not become a plate, nor a doubled one vanish.
    return OVERLAP * np.clip(spacing, 0.4 * typical, 2.5 * typical)


@dataclass(frozen=True)
class Rest:
    """Surfels in the reference shape, in units of the node spacing about the body's origin."""

    positions: Floats
    normals: Floats
    colors: Floats
    """red, green, blue in 0..1"""


class Discs(NamedTuple):
    """Discs in the reference shape, in units of the node spacing about the body's origin, each array (m, 3)."""

    points: Floats
    axis_a: Floats
    axis_b: Floats
    colors: Floats
    """red, green, blue in 0..1"""

    @staticmethod
    def at_birth(rest: Rest) -> Discs:
        """Round, and so large that they cover the surface."""
        radius = disc_radii(rest.positions)[:, None]
        axis_a, axis_b = tangents(rest.normals)
        return Discs(rest.positions, radius * axis_a, radius * axis_b, rest.colors)


class Carried:
    """Surfels that go where the nodes around them go: position, two half axes and normal, on the device, about
    `origin`. Their number never changes."""

    def __init__(self, discs: Discs, carriers: Carriers, device: wp.Device) -> None:
        self.colors = np.ascontiguousarray(discs.colors, np.float32)
        """red, green, blue in 0..1, shape (m, 3)"""
        self.color = wp.array(self.colors, dtype=wp.vec3, device=device)
        self._device = device
        m = len(discs.points)
        self._carriers = carriers.nodes.shape[1]
        self._nodes = wp.array(carriers.nodes.reshape(-1), dtype=wp.int32, device=device)
        self._shares = wp.array(carriers.shares.reshape(-1), dtype=float, device=device)
        self._points, self._axis_a, self._axis_b = (
            wp.array(np.asarray(field, np.float32), dtype=wp.vec3, device=device)
            for field in (discs.points, discs.axis_a, discs.axis_b)
        )
        self.origin = np.zeros(3)
        """where `position` on the device is counted from [m], in double: far away costs no digits"""
        self.position, self.axis_a, self.axis_b, self.normal = (
            wp.zeros(m, dtype=wp.vec3, device=device) for _ in range(4)
        )

    def __len__(self) -> int:
        return len(self._points)

    def absorb(self, unit: float, origin: Floats) -> None:
        """Where the surfels are now becomes their reference shape, in units of `unit` [m] about `origin` [m]."""
        for rest, now in ((self._axis_a, self.axis_a), (self._axis_b, self.axis_b)):
            rest.assign(now.numpy() / np.float32(unit))
        self._points.assign(((self.origin - origin + self.position.numpy()) / unit).astype(np.float32))

    def find_carriers(self, nodes: Floats) -> None:
        """Let other nodes carry the surfels: the nearest of (n, 3) positions in the reference shape."""
        carriers = Carriers.found(self._points.numpy(), nodes)
        self._nodes.assign(carriers.nodes.reshape(-1))
        self._shares.assign(carriers.shares.reshape(-1))

    @property
    def discs(self) -> Discs:
        """The reference shape."""
        return Discs(self._points.numpy(), self._axis_a.numpy(), self._axis_b.numpy(), self.colors)

    def present(self) -> Discs:
        """Where they are now [m], about `origin`."""
        return Discs(self.position.numpy(), self.axis_a.numpy(), self.axis_b.numpy(), self.colors)

    @property
    def carriers(self) -> Carriers:
        """Which nodes carry them."""
        shape = (len(self), self._carriers)
        return Carriers(self._nodes.numpy().reshape(shape), self._shares.numpy().reshape(shape))

    def copy(self) -> Carried:
        """Others that are the same now."""
        return Carried(self.discs, self.carriers, self._device)

    def state(self) -> dict[str, NDArray[Any]]:
        """The reference shape, and which nodes carry it."""
        return {name: array.numpy().copy() for name, array in self._rest_arrays().items()}

    def restore(self, state: dict[str, NDArray[Any]]) -> None:
        """Take over what `state` gave."""
        for name, array in self._rest_arrays().items():
            array.assign(state[name])

    def _rest_arrays(self) -> dict[str, wp.array]:
        return {
            "points": self._points,
            "axis_a": self._axis_a,
            "axis_b": self._axis_b,
            "nodes": self._nodes,
            "shares": self._shares,
        }

    def follow(self, model: PhyxelModel, body: int, unit: float, origin: Floats) -> None:
        """Go where the displacement field of a body carries the surfels; `unit` and `origin` lead to metres."""
        self.origin = np.asarray(origin, np.float64).copy()
        first_node, _ = model.ranges[body]
        dev.launch(
            follow_nodes,
            len(self),
            [
                self._carriers, self._nodes, self._shares, first_node, self._points, self._axis_a, self._axis_b,
                model.matter.X, model.u, model.forces.gradient, unit,
                self.position, self.axis_a, self.axis_b, self.normal,
            ],
            self._device,
        )  # fmt: skip
        dev.launch(keep_out, len(self), [model.colliders, body, unit, self.position], self._device)
