"""What bodies weigh, and what the weight above does inside a melt."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np

from phyxel.bench.accuracy.boxes import TURNED, Sides, box_mesh
from phyxel.bench.accuracy.row import Finding, Row, Way, furthest, ways
from phyxel.body import Body
from phyxel.contact.mold import Mold
from phyxel.material import Material
from phyxel.points.load import load
from phyxel.world import World

THIN: tuple[Sides, ...] = ((1.0, 0.05, 0.05), (1.0, 1.0, 0.05))
DENSITY = 1200.0
COUNTS = (500, 1000, 2000)
MELTED = (350, 700, 1400)
TANK = 0.25
"""[m²]"""


def melt_in_a_tank(nodes: int, **options: Any) -> Body:
    """A block that has melted and come to rest in a tank of 0.5 × 0.5 m."""
    tank = Mold(load("box", points=4000), inside_out=True, open_above=0.24, friction=0.0)
    material = Material(young=1e5, density=DENSITY)
    block = Body(
        load("box", points=800), size=0.46, at=(0, -0.015, 0), place="center", nodes=nodes, material=material, **options
    )
    world = World(device="cpu")
    world.add(block)
    world.add(tank)
    block.melt(viscosity=40.0)
    world.advance(1.0)
    return block


def weight_above(melt: Body) -> np.ndarray:
    """Of all that lies above each phyxel, over the area of the tank [Pa]."""
    height, masses = melt.positions[:, 1], melt.masses
    above: np.ndarray = np.where(height > height[:, None], masses, 0).sum(axis=1) + masses / 2
    return 9.81 / TANK * above


def _weighed(way: Way, sides: Sides, nodes: int) -> Finding:
    body = Body(
        box_mesh(sides, TURNED), material=Material(density=DENSITY), nodes=nodes, model=way.kind.name, **way.options
    )
    return Finding(float(body.masses.sum() / (DENSITY * np.prod(sides)) - 1), len(body.birth))


def _pressed(way: Way, nodes: int) -> Finding:
    """Which of the nine means of −σ is furthest from P I, over P, the mean weight above."""
    melt = melt_in_a_tank(nodes, model=way.kind.name, **way.options)
    wrong = -melt.stress.mean(axis=0) / weight_above(melt).mean() - np.eye(3)
    return Finding(furthest(wrong), len(melt.birth))


def rows() -> Iterator[Row]:
    for sides in THIN:
        test = f"mass of an exact mesh {' × '.join(f'{side:g}' for side in sides)} m, turned"
        right = f"ρ V = {DENSITY * np.prod(sides):g} kg"
        for way in ways(stiff=True):
            yield Row(test, right, way.label, COUNTS, partial(_weighed, way, sides), (0.1, 0.1, 0.1))
    test, right = "stress of a melt at rest in a tank", "the weight above, alike in all directions"
    for way in ways():
        if way.kind.can("melt"):
            yield Row(test, right, way.label, MELTED, partial(_pressed, way), (5.0, 5.0, 5.0))
