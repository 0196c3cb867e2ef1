"""What stays bent or dented: a bar pushed beyond its yield, a ball of clay that falls."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np
from scipy.optimize import brentq

from phyxel.bench.accuracy.boxes import Floats, box_mesh, end_nodes
from phyxel.bench.accuracy.plastic_elements import PlasticBar
from phyxel.bench.accuracy.row import Finding, Row, Way, ways
from phyxel.body import Body
from phyxel.contact.colliders import Ground
from phyxel.material import Material
from phyxel.points.load import load
from phyxel.world import World

LENGTH, SIDE = 1.0, 0.1
"""of the bar [m]"""
YOUNG, POISSON, STRAIN = 2e7, 0.3, 0.004
"""[Pa], and at which it yields"""
PUSHED, HELD, LED_BACK, LEFT = 2.0, 0.3, 3.0, 1.2
"""for how long [s]: drag and inertia may bend the root no further than the push does"""
ALONG = np.linspace(0, 1, 1001) ** 2
"""places along the axis, over its length: more where it is bent most"""
LAYERS = (4, 6, 8)
FIELD_LAYERS = (3, 4, 5)
DROPPED = (120, 250, 500)
SETS = {1.6: 0.004165, 2.1: 0.01432}
"""[m], by how far the end is pushed, over how far it goes until the first fibre yields: `in_elements` of 28 × 4 × 4
cells, 0.3 % more than of 20 × 3 × 3. Beam theory has 16 and 12 % more: it knows no shear, nor the clamp, which hinders
the root to flow, and what stays is a small difference"""


def first_yield() -> float:
    """How far the end goes until the first fibre yields [m]."""
    return 2 * STRAIN * LENGTH**2 / (3 * SIDE)


def load_of(ratio: float) -> float:
    """Force that pushes the end to `ratio` times the first yield, over that of the first yield, by beam theory: with p
    times that force the end goes p⁻² (5 − (3 + p)√(3 − 2p)) times as far."""
    return float(brentq(lambda p: (5 - (3 + p) * np.sqrt(3 - 2 * p)) / p**2 - ratio, 1.0001, 1.49999))


def theoretical_set(ratio: float) -> float:
    """What stays [m] by beam theory: let go, the end springs back by as much as its force would bend a bar that does
    not yield."""
    return (ratio - load_of(ratio)) * first_yield()


def in_elements(cells: tuple[int, int, int]) -> PlasticBar:
    """The same bar in finite elements, so many along it, over half its height and over half its width."""
    return PlasticBar((LENGTH, SIDE, SIDE), YOUNG, POISSON, STRAIN * YOUNG, cells)


def led(ratio: float) -> tuple[Floats, Floats]:
    """How the end goes when it is pushed to `ratio` of the first yield, and when it is led back until nothing pushes
    it, by beam theory: how far down, by how much nearer to the root [m] and how far turned, shape (3, loads) each."""
    most = load_of(ratio)
    there, back = np.linspace(0.01, most, 300), np.linspace(0, most, 300)
    return _end_of(slopes(there)), _end_of(slopes(np.array([most])) - (most - back)[:, None] * slopes(np.ones(1)))


def slopes(load: Floats) -> Floats:
    """Slope of the axis at ALONG under forces (k,) at the end, over that which makes the root yield; shape (k, n). At
    m times the first yield's moment the curvature is m 2ε/h up to m = 1, and 2ε/h/√(3 − 2m) above."""
    p = load[:, None]
    m = p * (1 - ALONG)
    elastic = (np.minimum(p, 1) ** 2 - np.minimum(m, 1) ** 2) / 2
    flowing = np.sqrt(3 - 2 * np.maximum(m, 1)) - np.sqrt(3 - 2 * np.maximum(p, 1))
    return 2 * STRAIN / SIDE * LENGTH / p * (elastic + flowing)


def _end_of(slope: Floats) -> Floats:
    """See `led`."""
    x = LENGTH * ALONG
    return np.stack([np.trapezoid(slope, x), np.trapezoid(slope**2, x) / 2, slope[:, -1]])


def set_of(ratio: float, nodes: int, **options: Any) -> tuple[float, int]:
    """What stays of a bar's push [m], and its nodes. It goes slowly, and is led back before it is let go: let go at
    once, the wave of it bends the root further, by as much again at 1.6 of the yield."""
    material = Material(young=YOUNG, poisson=POISSON, density=1000.0, drag=12.0, yield_stress=STRAIN * YOUNG)
    bar = Body(box_mesh((LENGTH, SIDE, SIDE)), nodes=nodes, material=material, place="file", **options)
    world = World(gravity=(0, 0, 0), device="cpu")
    world.add(bar)
    bar.fix(end_nodes(bar))
    X = bar.reference
    end = X[:, 0] > X[:, 0].max() - 0.5 * bar.unit
    row = X[end, 1][np.abs(X[end, 1] - SIDE / 2).argmin()]
    off, far = row - SIDE / 2, ratio * first_yield()
    there, back = led(ratio)

    def way(t: float) -> tuple[float, float, float]:
        if t < PUSHED + HELD:
            down, path = far * _eased(t / PUSHED), there
        else:
            down, path = far - (far - theoretical_set(ratio)) * _eased((t - PUSHED - HELD) / LED_BACK), back
        nearer, turned = (np.interp(down, path[0], values) for values in path[1:])
        return float(off * turned - nearer), -float(down + off * turned**2 / 2), 0.0

    hold = bar.drag(np.flatnonzero(end & (np.abs(X[:, 1] - row) < 1e-4)), to=way)
    world.advance(PUSHED + HELD + LED_BACK)
    bar.release(hold)
    world.advance(LEFT)
    return -float(bar.displacement_at(np.array([[LENGTH, SIDE / 2, SIDE / 2]]))[0, 1]), len(X)


def _eased(share: float) -> float:
    """From 0 to 1, beginning and ending slowly."""
    share = min(share, 1.0)
    return share**2 * (3 - 2 * share)


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
    for ratio, left in SETS.items():
        test = f"plastic set of a bar 1 × 0.1 × 0.1 m bent to {ratio:g} of its yield; 4, 6, 8 layers, fields 3, 4, 5"
        right = f"finite elements: {1e3 * left:.4g} mm; beam theory: {1e3 * theoretical_set(ratio):.4g}"
        for way in able:
            four, six, eight = map(nodes_of, way.either(LAYERS, FIELD_LAYERS))
            yield Row(test, right, way.label, (four, six, eight), partial(_stayed, way, ratio), (20.0, 10.0, 5.0))
    for way in able:
        yield Row("clay dropped 1 m: rebound", "none", way.label, DROPPED, partial(_rebounded, way), (2.0, 2.0, 2.0))


def _stayed(way: Way, ratio: float, nodes: int) -> Finding:
    left, count = set_of(ratio, nodes, model=way.kind.name, **way.options)
    return Finding(left / SETS[ratio] - 1, count)


def _rebounded(way: Way, nodes: int) -> Finding:
    """Over the metre that it fell."""
    height, count = rebound_of(nodes, model=way.kind.name, **way.options)
    return Finding(height, count)
