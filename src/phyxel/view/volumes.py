"""A field all through a body, live: values on a small regular grid, which pages show as fog or as an iso-surface."""

from __future__ import annotations

import time

import numpy as np
from scipy.spatial import cKDTree

from phyxel.body import Body
from phyxel.body.quantities import Quantity
from phyxel.render.inside.lattice import FieldLattice, Floats, reference_box
from phyxel.view.messages import Blob, DrawnThing

GRID = 32
"""Cells of the grid along each axis."""
PLACES = 22
"""Places inside the body along its longest side, whose values the grid gets."""
AROUND = 4
"""Places that a cell has the weighted mean of."""
FAR = 2.5
"""Spacings of places beyond which a cell has no value."""
QUICK = 0.02
"""Time in which a volume should be known [s]: one that takes n times as long is found anew in every n-th update."""


class BodyVolume:
    """The inside of a body in the reference shape it has now, wherever that has gone."""

    def __init__(self, body: Body) -> None:
        self.body = body
        lower, upper = reference_box(body)
        self._lattice = FieldLattice(body, float((upper - lower).max()) / PLACES)
        self.values: Floats = np.zeros(0)
        """of the quantity at places inside, shape (m,)"""
        self._x: Floats = np.zeros((0, 3))
        self._took, self._rests = 0.0, 0
        """time that it takes to find a grid [s], and updates until it is found anew"""
        self._kept: DrawnThing | None = None
        self._count = 0

    def look(self, quantity: Quantity) -> None:
        """See how things are now, or were a moment ago."""
        if self._rests > 0:
            self._rests -= 1
            return
        begun = time.perf_counter()
        seen = self._lattice.look(quantity)
        self._x, self.values, self._kept = seen.x, seen.values, None
        self._took = time.perf_counter() - begun

    def part(self, name: str, mode: str, range: tuple[float, float]) -> DrawnThing:
        """The grid as pages get it: for each cell, x fastest, a byte for the value within a range and one that says how
        far inside the body it is."""
        if self._kept is None or self._kept.about["mode"] != mode:
            begun = time.perf_counter()
            self._kept = self._found(name, mode, *range)
            self._rests = int((self._took + time.perf_counter() - begun) / QUICK)
        return self._kept

    def _found(self, name: str, mode: str, low: float, high: float) -> DrawnThing:
        spacing = self._lattice.spacing
        lower, upper = self._x.min(axis=0) - 1.5 * spacing, self._x.max(axis=0) + 1.5 * spacing
        z, y, x = np.indices((GRID, GRID, GRID)).reshape(3, -1)
        cells = lower + (np.column_stack([x, y, z]) + 0.5) / GRID * (upper - lower)
        away, nearest = cKDTree(self._x).query(cells, list(np.arange(AROUND) + 1), distance_upper_bound=FAR * spacing)
        weight = 1 / np.maximum(away, 1e-3 * spacing) ** 2  # none of a place that is too far
        total = np.maximum(weight.sum(axis=1), 1e-300)
        values, distance = (
            (weight * np.append(known, 0.0)[nearest]).sum(axis=1) / total
            for known in (self.values, self._lattice.distance)
        )
        share = np.clip((values - low) / max(high - low, 1e-300), 0, 1)
        inside = np.clip(0.5 - distance / spacing, 0, 1) * (away[:, 0] < spacing)
        data = np.rint(255 * np.stack([share, inside], axis=1)).astype(np.uint8)
        about = {"count": len(cells), "lower": lower.tolist(), "upper": upper.tolist(), "grid": GRID, "mode": mode}
        self._count += 1
        blob = Blob(data.tobytes(), f"{name} {mode} {id(self)} {self._count}")  # sent once, shown until the next
        return DrawnThing(name, "volume", about | {"collider": False, "pose": None}, {"records": blob})
