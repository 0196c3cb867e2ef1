"""What moving bodies keep: a pendulum its energy, a falling one its time, a spinning one its momenta."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np

from phyxel.bench.accuracy.boxes import Floats
from phyxel.bench.accuracy.row import NOTHING, Finding, Row, Way, furthest, ways
from phyxel.body import Body
from phyxel.material import Material
from phyxel.points.load import load
from phyxel.world import World

LENGTH = 1.0
"""of the bar, 0.25 m thick [m]"""
GRAVITY = 9.81
SECONDS, STEP = 5.0, 0.01
UP = 2.0
"""how fast what flies is thrown upwards [m/s]"""
SWINGING = (60, 120, 240)
FLYING = (150, 300, 600)


def energy(body: Body) -> float:
    """All it has [J]."""
    now = body.diagnostics()
    return float(now["kinetic"] + now["elastic"] + now["potential"])


def pendulum(young: float, nodes: int, **options: Any) -> tuple[World, Body]:
    """A bar let go level, hinged about a line of one end, that of its nodes nearest to mid-height."""
    material = Material(young=young, poisson=0.3, density=1000.0)
    bar = Body(load("bar", points=1500), nodes=nodes, material=material, integrator="implicit", **options)
    X = bar.reference
    end = X[:, 0] < X[:, 0].min() + 0.5 * bar.unit
    # One line: of an even number of layers two are as near, and would clamp it.
    line = X[end, 1][np.abs(X[end, 1] - 0.5 * (X[:, 1].min() + X[:, 1].max())).argmin()]
    bar.fix(end & (np.abs(X[:, 1] - line) < 1e-3))
    world = World(device="cpu")
    world.add(bar)
    return world, bar


def gained(world: World, bar: Body, seconds: float, step: float = STEP) -> Floats:
    """Energy that a pendulum gains, over m g L/2, every tenth of a second."""
    start, whole = energy(bar), bar.masses.sum() * GRAVITY * LENGTH / 2
    gains = []
    for _ in range(round(10 * seconds)):
        for _ in range(round(0.1 / step)):
            world.advance(step)
        gains.append((energy(bar) - start) / whole)
    return np.array(gains)


def flying(way: Way, nodes: int, gravity: float) -> tuple[World, Body]:
    """A bar thrown with a spin, in a world of its own."""
    material = Material(young=1e6, poisson=0.3, density=1000.0)
    bar = Body(
        load("bar", points=1500), nodes=nodes, material=material, model=way.kind.name,
        velocity=(1.0, UP, 0.5), spin=(1.0, -2.0, 3.0), **way.options,
    )  # fmt: skip
    world = World(gravity=(0, -gravity, 0), device="cpu")
    world.add(bar)
    return world, bar


def _fallen(way: Way, nodes: int) -> Finding:
    """How far from v t − g t²/2 the middle of mass is after a second, over g t²/2; its potential energy says where."""
    world, bar = flying(way, nodes, GRAVITY)
    start = bar.diagnostics()
    world.advance(1.0)
    risen = (bar.diagnostics()["potential"] - start["potential"]) / (start["mass"] * GRAVITY)
    return Finding(float(risen - (UP - GRAVITY / 2)) / (GRAVITY / 2), len(bar.birth))


def _spun(way: Way, nodes: int) -> Finding:
    """How much of its momentum or of its angular momentum is lost or gained in a second, whichever is more."""
    world, bar = flying(way, nodes, 0.0)
    before = bar.diagnostics()
    world.advance(1.0)
    after = bar.diagnostics()
    drifts = [
        np.linalg.norm(np.subtract(after[which], before[which])) / np.linalg.norm(before[which])
        for which in ("momentum", "angular_momentum")
    ]
    return Finding(float(max(drifts)), len(bar.birth))


def _swung(way: Way, young: float, nodes: int) -> Finding:
    """The energy gained or lost that is largest, in 5 s."""
    world, bar = pendulum(young, nodes, model=way.kind.name, **way.options)
    gains = gained(world, bar, SECONDS)
    return Finding(furthest(gains), len(bar.birth))


def rows() -> Iterator[Row]:
    for young in (1e7, 1e9):
        test = f"pendulum 1 × 0.25 × 0.25 m, E = {young / 1e6:g} MPa: energy over 5 s"
        for way in ways():
            # Warped modes may lose energy, which they must not gain.
            asked = NOTHING if "modes" in way.kind.options else (0.5, 0.5, 0.5)
            yield Row(test, "kept; over m g L/2", way.label, SWINGING, partial(_swung, way, young), asked)
    for test, right, measure in (
        ("free fall with a spin, 1 s", "v t + g t²/2", _fallen),
        ("momenta of a thrown bar, 1 s", "kept", _spun),
    ):
        for way in ways(stiff=True):
            yield Row(test, right, way.label, FLYING, partial(measure, way), (0.1, 0.1, 0.1))
