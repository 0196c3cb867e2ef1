"""Clamped bars that sag and twist, against finite elements."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from phyxel.bench.accuracy.boxes import AS_IT_IS, TURNED, Floats, Sides, box_mesh, box_scan, end_nodes
from phyxel.bench.accuracy.finite_elements import ElasticBox, Order, finer_at_both_ends, finer_at_the_root, is_installed
from phyxel.bench.accuracy.row import NOTHING, Counts, Finding, Row, Way, ways
from phyxel.body import Body
from phyxel.fields import Field
from phyxel.material import Material
from phyxel.world import World, settle

COUNTS, FIELD_COUNTS = (500, 1000, 2000), (300, 500, 1000)
TWISTED = (300, 600, 1200)
ORDERS: tuple[Order, ...] = ("linear", "quadratic")
SETTLED = 1e-5
"""spacings that nodes may have left to go: bars sag by a tenth of one and more"""
PUSH = 9.81
"""[m/s²]"""
INNER = np.array([1 - 1e-6, 1.0, 1.0])
"""What is on the far face is looked at just inside."""


@dataclass(frozen=True)
class ClampedBar:
    """A bar along x, clamped by its face at x = 0. All are so stiff that finite elements may be linear."""

    sides: Sides
    young: float
    poisson: float
    density: float = 1200.0

    @property
    def material(self) -> Material:
        return Material(young=self.young, poisson=self.poisson, density=self.density)

    @property
    def coarse(self) -> float:
        """Error that is asked of 500 phyxels [%]: they are four layers of a fat bar, three of a slender one."""
        return 12.0 if self.sides[1] > 0.1 * self.sides[0] else 20.0

    @property
    def end(self) -> Floats:
        """The middle of the far face [m]."""
        return np.array(self.sides) * [1.0, 0.5, 0.5]

    def weight(self, X: Floats) -> Floats:
        """Force per mass [m/s²] along −y at places (3, ...)."""
        return np.stack([0 * X[0], 0 * X[0] - PUSH, 0 * X[0]])

    def couple(self, X: Floats) -> Floats:
        """Force per mass [m/s²] about the bar's axis, PUSH at half its height from it."""
        _, y, z = self.end
        return PUSH / y * np.stack([0 * X[0], -(X[2] - z), X[1] - y])

    @property
    def rim(self) -> Floats:
        """Places on the far face around its middle, (8, 3) [m]."""
        angle = np.arange(8) * np.pi / 4
        return self.end + 0.4 * self.sides[1] * np.stack([0 * angle, np.cos(angle), np.sin(angle)], axis=1)

    def sag_of(self, u: Floats) -> float:
        """How far the end has come down [m], of the displacement (1, 3) of its middle."""
        return -float(u[0, 1])

    def twist_of(self, u: Floats) -> float:
        """By how much the far face is turned, of the displacements (8, 3) of its rim."""
        arm = self.rim - self.end
        return float(np.cross(arm, u)[:, 0].sum() / (arm**2).sum())

    def clamped(
        self, model: str, nodes: int, turn: Floats = AS_IT_IS, scan: bool = False, gravity: float = 0.0, **options: Any
    ) -> tuple[World, Body]:
        """A body, clamped, in its world."""
        cloud = (box_scan if scan else box_mesh)(self.sides, turn)
        body = Body(cloud, material=self.material, nodes=nodes, model=model, place="file", **options)
        world = World(gravity=tuple(turn @ [0, -gravity, 0]), device="cpu")
        world.add(body)
        body.fix(end_nodes(body, turn))
        return world, body

    def sag(self, model: str, nodes: int, turn: Floats = AS_IT_IS, **options: Any) -> tuple[float, int]:
        """Of a body under its weight [m], and its nodes."""
        world, body = self.clamped(model, nodes, turn, gravity=PUSH, **options)
        settle(world, SETTLED)
        return self.sag_of(body.displacement_at(INNER * self.end[None] @ turn.T) @ turn), len(body.birth)

    def twist(self, model: str, nodes: int, turn: Floats = AS_IT_IS, **options: Any) -> tuple[float, int]:
        """Of a body under couples, and its nodes."""
        world, body = self.clamped(model, nodes, turn, **options)
        push = self.couple((body.reference @ turn).T).T @ turn.T
        world.add(Field(lambda x, v, t: push))
        settle(world, SETTLED)
        return self.twist_of(body.displacement_at(INNER * self.rim @ turn.T) @ turn), len(body.birth)

    def elements(self, cells: tuple[int, int, int] = (12, 6, 6)) -> ElasticBox:
        """Finer towards the root and the faces."""
        (x, y, z), (along, up, across) = self.sides, cells
        planes = finer_at_the_root(x, along), finer_at_both_ends(y, up), finer_at_both_ends(z, across)
        return ElasticBox(planes, self.young, self.poisson, self.density)

    def even_elements(self, nodes: int, order: Order) -> ElasticBox:
        return ElasticBox.of(self.sides, nodes, order, self.young, self.poisson, self.density)

    def sag_in(self, box: ElasticBox) -> float:
        """That of finite elements [m]."""
        return self.sag_of(box.at(box.bent(self.weight), self.end[None]))

    def twist_in(self, box: ElasticBox) -> float:
        """That of finite elements."""
        return self.twist_of(box.at(box.bent(self.couple), self.rim))


FAT = ClampedBar((2.0, 0.5, 0.4), young=1e8, poisson=0.25)
NEARLY_INCOMPRESSIBLE = ClampedBar((2.0, 0.5, 0.4), young=1e8, poisson=0.45)
SLENDER = ClampedBar((1.0, 0.05, 0.05), young=3e9, poisson=0.3)
SQUARE = ClampedBar((1.0, 0.25, 0.25), young=1e7, poisson=0.3, density=1000.0)

SAGS = {FAT: 0.011854, NEARLY_INCOMPRESSIBLE: 0.011597, SLENDER: 0.0023495}
"""[m], by `ClampedBar.elements`: 16 × 9 × 9 cells for ν = 0.25, 24 × 14 × 14 for 0.45, 32 × 7 × 7 for the slender bar;
they differ by 0.03, 0.1 and 0.02 % from the next coarser ones"""
TWIST = 0.011998
"""of `SQUARE`, of 16 × 9 × 9 cells, 0.03 % more than of 12 × 6 × 6; m L²/(2 G J) = 0.0121 if its root could warp"""
AS_SCANNED = {"mesh": False, "scan": True}
TURNS = {"": AS_IT_IS, ", turned": TURNED}


def rows() -> Iterator[Row]:
    for bar, right in SAGS.items():
        for scanned, scan in AS_SCANNED.items():
            for turned, turn in TURNS.items():
                yield from _sagging(bar, right, f"{scanned}{turned}", turn, scan)
    for turned, turn in TURNS.items():
        yield from _twisting(turned, turn)


def _sagging(bar: ClampedBar, right: float, what: str, turn: Floats, scan: bool) -> Iterator[Row]:
    test = f"cantilever {' × '.join(f'{side:g}' for side in bar.sides)} m, ν = {bar.poisson:g}, {what}"
    reference = f"finite elements: {1e3 * right:.4g} mm"

    def error(way: Way, nodes: int) -> Finding:
        sag, count = bar.sag(way.kind.name, nodes, turn, scan=scan, **way.options)
        return Finding(sag / right - 1, count)

    def in_elements(order: Order, nodes: int) -> Finding:
        box = bar.even_elements(nodes, order)
        return Finding(bar.sag_in(box) / right - 1, box.nodes)

    for way in ways():
        counts, asked = way.either((COUNTS, (bar.coarse, 12.0, 3.0)), (FIELD_COUNTS, (None, 1.0, 1.0)))
        yield Row(test, reference, way.label, counts, partial(error, way), asked)
    if not scan and turn is AS_IT_IS:
        yield from element_rows(test, reference, in_elements)


def _twisting(turned: str, turn: Floats) -> Iterator[Row]:
    test = f"torsion of a square bar 1 × 0.25 × 0.25 m by couples{turned}"
    reference = f"finite elements: {TWIST:.4g}"

    def error(way: Way, nodes: int) -> Finding:
        twist, count = SQUARE.twist(way.kind.name, nodes, turn, **way.options)
        return Finding(twist / TWIST - 1, count)

    def in_elements(order: Order, nodes: int) -> Finding:
        box = SQUARE.even_elements(nodes, order)
        return Finding(SQUARE.twist_in(box) / TWIST - 1, box.nodes)

    for way in ways():
        counts, asked = way.either((TWISTED, (None, None, 5.0)), (FIELD_COUNTS, NOTHING))
        yield Row(test, reference, way.label, counts, partial(error, way), asked)
    if turn is AS_IT_IS:
        yield from element_rows(test, reference, in_elements, TWISTED)


def element_rows(
    test: str, reference: str, measure: Callable[[Order, int], Finding], counts: Counts = COUNTS
) -> Iterator[Row]:
    """The same in as many nodes of hexahedra, where they can be had."""
    if is_installed():
        for order in ORDERS:
            yield Row(test, reference, f"finite elements, {order}", counts, partial(measure, order))
