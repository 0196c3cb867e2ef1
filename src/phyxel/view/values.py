"""Fields on the surface that is shown of a body, live."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
from numpy.typing import NDArray

from phyxel.body import Body
from phyxel.body.probes import CarriedProbe, Probe
from phyxel.body.quantities import Quantity
from phyxel.render.inside.lattice import shape_of
from phyxel.render.inside.legend import Legend
from phyxel.surface.blended import BURIED
from phyxel.surface.carried import Carried
from phyxel.surface.discs import Discs

Floats = NDArray[np.floating]

QUICK = 0.010
"""Time in which a field should be known [s]: one that takes n times as long is found anew in every n-th update."""
SHADES = 64
"""Colours of a legend."""


def legend_about(legend: Legend) -> dict[str, Any]:
    """A scale of colours as pages are told of it."""
    colors = legend.colors(np.linspace(legend.low, legend.high, SHADES))
    return {
        "title": legend.quantity.title,
        "unit": legend.unit[0],
        "low": legend.low,
        "high": legend.high,
        "colors": np.rint(255 * colors).astype(int).tolist(),
        "ticks": [[float(value), text] for value, text in zip(legend.ticks, legend.labels[1], strict=True)],
    }


def at_rest(body: Body, discs: Any) -> NDArray[np.float64]:
    """Where surfels that are carried are in the reference shape [m], shape (m, 3)."""
    return body.centre + body.unit * np.asarray(discs.shape.points, np.float64)


def carried_discs(body: Body) -> Any:
    """The surfels that are shown, before some are left out, split or merged."""
    surface = body.surface
    return surface.carried if surface.blend is None else surface.blend.shown


class Gauge:
    """A quantity where a body is seen."""

    def __init__(self, body: Body) -> None:
        self.body = body
        self._probes: dict[str, tuple[object, Probe]] = {}
        self._known: dict[str, tuple[object, Floats]] = {}
        self._rests = 0
        """updates until it is found anew"""

    def values(self, quantity: Quantity, kind: str) -> Floats:
        """At the surfels, vertices or nodes that are shown as `kind`, (m,)."""
        if kind == "nodes":
            return self._found(quantity, kind, (shape_of(self.body),), self._at_nodes)
        discs = carried_discs(self.body)
        of = (shape_of(self.body), discs)
        if kind == "mesh" and self.body.cloud.faces is None:
            return self._found(quantity, "vertices", of, self._at_vertices)
        values = self._found(quantity, "surfels", of, lambda: self._at_discs(discs))
        return values if kind == "mesh" else values[self._shown()]

    def _shown(self) -> NDArray[np.integer]:
        """Which of those that are carried each surfel that is shown is, or is a piece of."""
        surface = self.body.surface
        if surface.blend is not None:
            return np.flatnonzero(surface.blend.layer.numpy() != BURIED)
        return surface.owners

    def _found(self, quantity: Quantity, name: str, of: tuple[object, ...], probe: Any) -> Floats:
        now = (quantity, *of)
        known = self._known.get(name)
        if known is not None and known[0] == now and self._rests > 0:
            self._rests -= 1
            return known[1]
        begun = time.perf_counter()
        # What carries the surfels of a body that flows changes all the time.
        if name not in self._probes or self._probes[name][0] != of or self.body.surface.blend is not None:
            self._probes[name] = of, probe()
        values = np.asarray(quantity.at(self._probes[name][1]), np.float64)
        self._known[name] = now, values
        self._rests = int((time.perf_counter() - begun) / QUICK)
        return values

    def _at_nodes(self) -> Probe:
        return self.body.probe(self.body.reference)

    def _at_vertices(self) -> Probe:
        assert self.body.cloud.mesh is not None
        return self.body.probe(self.body.shape.placement.placed(self.body.cloud.mesh.vertices))

    def _at_discs(self, discs: Discs) -> Probe:
        places = at_rest(self.body, discs)
        if isinstance(discs, Carried):
            return CarriedProbe(self.body, places, discs.carriers)
        return self.body.probe(places)
