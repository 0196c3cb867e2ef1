"""What stays bent or dented: a bar pushed beyond its yield, a ball of clay that falls."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np
from scipy.optimize import brentq

from phyxel.bench.accuracy.boxes import box_mesh, end_nodes
from phyxel.bench.accuracy.row import Finding, Row, Way, ways
from phyxel.body import Body
from phyxel.contact.colliders import Ground
from phyxel.material import Material
from phyxel.points.load import load
from phyxel.world import World

LENGTH, SIDE = 1.0, 0.1
"""of the bar [m]"""
YOUNG, STRAIN = 2e7, 0.004
"""[Pa], and at which it yields"""
LAYERS = (4, 6, 8)
FIELD_LAYERS = (3, 4, 5)
DROPPED = (120, 250, 500)
RATIOS = (1.6, 2.1)
"""how far the end is pushed, over how far it goes until the first fibre yields"""


def first_yield() -> float:
    """How far the end goes until the first fibre yields [m]."""
    return 2 * STRAIN * LENGTH**2 / (3 * SIDE)


def theoretical_set(ratio: float) -> float:
    """What stays [m] of `ratio` times the first yield δ, by beam theory: with p times the force of that the end goes
    δ p⁻² (5 − (3 + p)√(3 − 2p)); let go, it springs back by p δ."""
    p = brentq(lambda p: (5 - (3 + p) * np.sqrt(3 - 2 * p)) / p**2 - ratio, 1.0001, 1.49999)
    return float((ratio - p) * first_yield())


def set_of(ratio: float, nodes: int, **options: Any) -> tuple[float, int]:
    """What stays of a bar's push [m], and its nodes."""
    material = Material(young=YOUNG, poisson=0.3, density=1000.0, drag=12.0, yield_stress=STRAIN * YOUNG)
    bar = Body(box_mesh((LENGTH, SIDE, SIDE)), nodes=nodes, material=material, place="file", **options)
    world = World(gravity=(0, 0, 0), device="cpu")
    world.add(bar)
    bar.fix(end_nodes(bar))
    X = bar.reference
    end = X[:, 0] > X[:, 0].max() - 0.5 * bar.unit
    row = X[end, 1][np.abs(X[end, 1] - SIDE / 2).argmin()]
    far, off = ratio * first_yield(), row - SIDE / 2

    def way(t: float) -> tuple[float, float, float]:
        pushed = min(t, 1.0)
        down = far * pushed**2 * (3 - 2 * pushed)  # ends slowly: what swings on bends the root further than theory does
        return -0.6 * down**2 / LENGTH + 1.5 * off * down / LENGTH, -down, 0.0

    hold = bar.drag(np.flatnonzero(end & (np.abs(X[:, 1] - row) < 1e-4)), to=way)
    world.advance(1.3)
    bar.release(hold)
    world.advance(1.5)
    return -float(bar.displacement_at(np.array([[LENGTH, SIDE / 2, SIDE / 2]]))[0, 1]), len(X)


def nodes_of(layers: int) -> int:
    """With so many layers of nodes from face to face."""
    return layers**2 * (round(LENGTH / SIDE) * (layers - 1) + 1)


def rebound_of(nodes: int, **options: Any) -> tuple[float, int]:
    """How high a ball of clay of 0.2 m comes up again of the metre that it falls [m], and its nodes."""
    ball = Body(load("sphere", points=1000), nodes=nodes, material=Material.clay(), size=0.2, at=(0, 1, 0), **options)
    world = World(device="cpu")
    world.add(ball)
    world.add(Ground())
    heights = []
    while world.time < 1.2:
        world.advance(0.02)
        heights.append(ball.surface.positions[:, 1].min())
    landed = int(np.argmin(heights[:30]))  # within 0.6 s: it falls for 0.45 s
    return float(max(0.0, *heights[landed:])), len(ball.birth)


def rows() -> Iterator[Row]:
    able = [way for way in ways() if way.kind.can("yield")]
    for ratio in RATIOS:
        test = f"plastic set of a bar 1 × 0.1 × 0.1 m bent to {ratio:g} of its yield; 4, 6, 8 layers, fields 3, 4, 5"
        right = f"beam theory: {1e3 * theoretical_set(ratio):.3g} mm"
        for way in able:
            four, six, eight = map(nodes_of, way.either(LAYERS, FIELD_LAYERS))
            yield Row(test, right, way.label, (four, six, eight), partial(_stayed, way, ratio), (20.0, 10.0, 5.0))
    for way in able:
        yield Row("clay dropped 1 m: rebound", "none", way.label, DROPPED, partial(_rebounded, way), (2.0, 2.0, 2.0))


def _stayed(way: Way, ratio: float, nodes: int) -> Finding:
    left, count = set_of(ratio, nodes, model=way.kind.name, **way.options)
    return Finding(left / theoretical_set(ratio) - 1, count)


def _rebounded(way: Way, nodes: int) -> Finding:
    """Over the metre that it fell."""
    height, count = rebound_of(nodes, model=way.kind.name, **way.options)
    return Finding(height, count)
