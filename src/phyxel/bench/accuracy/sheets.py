"""Strips of sheets that bend under their weight, against beam theory."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import numpy as np

from phyxel.bench.accuracy.row import Finding, Row
from phyxel.body import Body
from phyxel.material import Membrane
from phyxel.models.kind import public_kinds
from phyxel.points.cloud import PointCloud
from phyxel.world import World

LENGTH, WIDTH, THICKNESS, DENSITY = 0.2, 0.05, 5e-4, 400.0
"""[m], [m], [m], [kg/m³]"""
GRAVITY = 9.81
ROWS = (10, 20, 40)
MESHED = {"weave": 2.0, "triangles": 2.0, "bare": 3.0}
"""and the error that is asked for [%]"""


def model_of_sheets() -> str:
    return next(kind.name for kind in public_kinds() if not kind.has_inside)


def strip(rows: int, young: float, meshed: str, bending: float = 0.2) -> tuple[Body, float]:
    """A strip along x whose first two rows are held, bending in N m, and its spacing [m]."""
    x, z = np.meshgrid(np.linspace(0, LENGTH, rows + 1), np.linspace(0, WIDTH, max(rows // 4, 2) + 1), indexing="ij")
    X = np.stack([x.ravel(), 0 * x.ravel(), z.ravel()], axis=1)
    i = np.arange(len(X)).reshape(x.shape)
    quads = np.stack([i[:-1, :-1], i[:-1, 1:], i[1:, 1:], i[1:, :-1]], axis=2).reshape(-1, 4).astype(np.int32)
    cloud = {
        "weave": PointCloud(X, quads=quads),
        "triangles": PointCloud(X, faces=quads[:, [0, 1, 2, 0, 2, 3]].reshape(-1, 3)),
        "bare": PointCloud(X, normals=np.tile((0.0, 1.0, 0.0), (len(X), 1))),
    }[meshed]
    made = Membrane(young=young, poisson=0.0, density=DENSITY, thickness=THICKNESS, drag=20.0, bending=bending)
    body = Body(cloud, model=model_of_sheets(), material=made)
    body.fix(lambda X: X[:, 0] < 1.01 * LENGTH / rows)
    return body, LENGTH / rows


def beam_sag(spacing: float, bending: float = 0.2) -> float:
    """q l⁴/8B [m] of a strip under its weight, l from halfway between the two held rows: rows of three bend there
    first."""
    return DENSITY * THICKNESS * GRAVITY * (LENGTH - spacing / 2) ** 4 / (8 * bending)


def sag_of(body: Body) -> float:
    """How far the end is down once it has come to rest [m]."""
    world = World(device="cpu")
    world.add(body)
    world.advance(1.5)  # ω = 88/s, and drag leaves e^(-15)
    end = body.birth[:, 0] > body.birth[:, 0].max() - 1e-9
    return -float((body.positions - body.birth)[end, 1].mean())


def rows() -> Iterator[Row]:
    for young in (1e5, 5e9):
        for meshed, asked in MESHED.items():
            test = f"strip of a sheet 0.2 × 0.05 m, {meshed}, E = {young / 1e6:g} MPa; 10, 20, 40 rows"
            measure = partial(_sagged, young, meshed)
            yield Row(test, "beam theory: q l⁴/8B", model_of_sheets(), ROWS, measure, (asked, asked, asked))


def _sagged(young: float, meshed: str, rows: int) -> Finding:
    body, spacing = strip(rows, young, meshed)
    return Finding(sag_of(body) / beam_sag(spacing) - 1, len(body.birth))
