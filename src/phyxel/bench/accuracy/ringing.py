"""The first six frequencies of free bodies: a bar against finite elements, a ball against Lamb's solution."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

import numpy as np
from scipy.optimize import brentq
from scipy.sparse import csr_matrix, diags, vstack
from scipy.sparse.linalg import eigsh
from scipy.special import spherical_jn

from phyxel.bench.accuracy.bars import COUNTS, FIELD_COUNTS, TURNS, ClampedBar, element_rows
from phyxel.bench.accuracy.boxes import AS_IT_IS, Floats, box_mesh
from phyxel.bench.accuracy.finite_elements import Order
from phyxel.bench.accuracy.row import Finding, Row, Way, furthest, ways
from phyxel.body import Body
from phyxel.body.vibration import modes
from phyxel.material import Material
from phyxel.movers.phyxel_bodies import phyxels_of
from phyxel.points.cloud import PointCloud
from phyxel.points.load import load
from phyxel.world import World

FIRST = 6
BAR = ClampedBar((1.0, 0.2, 0.2), young=1e6, poisson=0.3, density=1000.0)
BAR_RINGS = (5.7646, 5.7646, 9.0059, 13.5198, 13.5198, 15.7635)
"""[Hz], by 10,985 nodes of even quadratic hexahedra: bending twice, torsion, bending twice, lengthening; 5,929 nodes
differ by 0.01 %"""
RADIUS = 0.25
"""of the ball [m]"""


def rings_of(world: World, way: Way) -> Floats:
    """The lowest frequencies [Hz] of the one free body of a world, without its motions as a whole."""
    return _phyxel_rings(world) if way.shares_a_model else modes(world.bodies[0], FIRST).frequencies


def stiffness_of(world: World) -> tuple[csr_matrix, Floats]:
    """K (3n, 3n) and the masses (3n,) of all phyxels of a world, at rest, in their units."""
    model = phyxels_of(world).model
    model.ensure_forces()
    n = len(model)
    rows = []
    way = np.zeros((n, 3))
    for k in range(3 * n):
        way.flat[k] = 1.0
        rows.append(csr_matrix(-model.vibration.tangent(way).reshape(1, -1).astype(np.float64)))
        way.flat[k] = 0.0
    K = vstack(rows)
    return (0.5 * (K + K.T)).tocsr(), np.repeat(model.matter.mass.numpy().astype(np.float64), 3)


def _phyxel_rings(world: World) -> Floats:
    K, mass = stiffness_of(world)
    per_root = diags(1 / np.sqrt(mass))
    scaled = (per_root @ K @ per_root).tocsc()
    squares = np.sort(eigsh(scaled, FIRST + 6, sigma=-1e-6 * scaled.diagonal().mean(), return_eigenvectors=False))
    return np.sqrt(squares[6:]) / (2 * np.pi)


def ball_rings(radius: float, material: Material) -> Floats:
    """[Hz] of a free ball (Lamb 1882): five alike of torsion, (n − 1) j_n(η) = η j_{n+1}(η), n = 2, and the first of
    its five of lengthening; η = ω a/c_T, ξ = ω a/c_L."""
    lame, shear = material.lame
    slow, fast = np.sqrt(shear / material.density), np.sqrt((lame + 2 * shear) / material.density)

    def j(order: int, x: float) -> float:
        return float(spherical_jn(order, x))

    def torsion(eta: float) -> float:
        return j(2, eta) - eta * j(3, eta)

    def lengthening(eta: float) -> float:
        xi = eta * slow / fast
        return ((2 - eta**2 / 2) * j(2, xi) + 2 * xi * j(3, xi)) * (
            (3 - eta**2 / 2) * j(2, eta) + eta * j(3, eta)
        ) - 6 * (j(2, eta) - eta * j(3, eta)) * (j(2, xi) - xi * j(3, xi))

    roots = [brentq(torsion, 2, 3)] * 5 + [brentq(lengthening, 2, 3)]
    return np.sort(roots) * slow / (2 * np.pi * radius)


def rows() -> Iterator[Row]:
    test = "first six frequencies of a free bar 1 × 0.2 × 0.2 m"
    right = np.array(BAR_RINGS)
    reference = f"finite elements: {', '.join(f'{ring:.4g}' for ring in right)} Hz"
    for turned, turn in TURNS.items():
        yield from _ringing(f"{test}{turned}", reference, partial(box_mesh, BAR.sides, turn), right)
        if turn is AS_IT_IS:
            yield from element_rows(test, reference, _in_elements)
    right = ball_rings(RADIUS, BAR.material)
    reference = f"Lamb: five of {right[0]:.4g}, then {right[5]:.4g} Hz"
    yield from _ringing("first six frequencies of a free ball", reference, partial(load, "sphere", points=2000), right)


def _ringing(test: str, reference: str, cloud: Callable[[], PointCloud], right: Floats) -> Iterator[Row]:
    def error(way: Way, nodes: int) -> Finding:
        body = Body(cloud(), material=BAR.material, nodes=nodes, model=way.kind.name, **way.options)
        world = World(gravity=(0, 0, 0), device="cpu")
        world.add(body)
        return Finding(furthest(rings_of(world, way) / right - 1), len(body.birth))

    for way in ways():
        counts, asked = way.either((COUNTS, (5.0, 5.0, 5.0)), (FIELD_COUNTS, (None, 0.5, 0.5)))
        yield Row(test, reference, way.label, counts, partial(error, way), asked)


def _in_elements(order: Order, nodes: int) -> Finding:
    box = BAR.even_elements(nodes, order)
    return Finding(furthest(box.frequencies(FIRST) / np.array(BAR_RINGS) - 1), box.nodes)
