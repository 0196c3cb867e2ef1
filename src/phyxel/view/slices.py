# mypy: disable-error-code="valid-type,no-untyped-def,no-untyped-call"
"""Fields shown on a body, live: on its surface, and where it is cut open. Half of the surfels and the cut itself, a
mesh, are made once for a plane of the reference shape and then only follow the body."""

from __future__ import annotations

import time
from typing import Any, NamedTuple

import numpy as np
import warp as wp
from numpy.typing import NDArray

from phyxel.body import Body
from phyxel.body.inside import Plane
from phyxel.body.probes import CarriedProbe, Probe
from phyxel.body.quantities import Quantity
from phyxel.device import KERNEL_OPTIONS, launch
from phyxel.render.inside.lattice import Floats, reference_box, shape_of
from phyxel.render.inside.legend import Legend
from phyxel.render.inside.panes import Pane, PaneCut
from phyxel.render.tiles import SPLIT_FROM
from phyxel.rotation import tangents
from phyxel.surface.blended import BURIED
from phyxel.surface.carried import Carried
from phyxel.surface.clipping import Ellipses, within
from phyxel.surface.discs import Discs

wp.set_module_options(KERNEL_OPTIONS)

Indices = NDArray[np.integer]

QUICK = 0.010
"""Time in which a field should be known [s]: one that takes n times as long is found anew in every n-th update."""
SHADES = 64
"""Colours of a legend."""
CELLS = 72
"""Along the longer side of a slice."""

coefficients = wp.types.vector(6, wp.float32)


def legend_about(legend: Legend) -> dict[str, Any]:
    """A scale of colours as pages are told of it."""
    colors = legend.colors(np.linspace(legend.low, legend.high, SHADES))
    ticks = [[float(value), text] for value, text in zip(legend.ticks, legend.labels[1], strict=True)]
    about = {"title": legend.quantity.title, "unit": legend.unit[0], "low": legend.low, "high": legend.high}
    return about | {"colors": np.rint(255 * colors).astype(int).tolist(), "ticks": ticks}


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


class Trimmed(NamedTuple):
    """Triangles cut off where a distance is 0: corners and places between an inner and an outer one."""

    inner: Indices
    """corner, shape (v,)"""
    outer: Indices
    """the other one, or the same, shape (v,)"""
    share: Floats
    """of the way to it, shape (v,)"""
    faces: Indices
    """numbers of places, shape (t, 3)"""

    @staticmethod
    def of(triangles: Indices, distance: Floats) -> Trimmed:
        """What of triangles (t, 3) lies where the distance of their corners (m,) is negative."""
        count, inside = len(distance), distance < 0
        within = inside[triangles]
        whole = triangles[within.all(axis=1)]
        # Turned so that the corner that differs from both others comes first.
        odd = [triangles[within.sum(axis=1) == k] for k in (1, 2)]
        turned = []
        for k, some in zip((1, 2), odd, strict=True):
            first = np.argmax(inside[some] == (k == 1), axis=1) if len(some) else np.zeros(0, int)
            turned.append(np.take_along_axis(some, (first[:, None] + np.arange(3)) % 3, axis=1))
        (a, b, c), (p, q, r) = turned[0].T, turned[1].T

        def edge(inner: Indices, outer: Indices) -> Indices:
            return count * (inner + 1) + outer

        cut = ([a, edge(a, b), edge(a, c)], [edge(q, p), q, r], [edge(q, p), r, edge(r, p)])
        keys = np.concatenate([whole, *(np.stack(corners, axis=1) for corners in cut)])
        places, faces = np.unique(keys, return_inverse=True)
        corner = places < count
        inner = np.where(corner, places, places // count - 1)
        outer = np.where(corner, places, places % count)
        apart = np.where(corner, 1.0, distance[inner] - distance[outer])
        share = np.where(corner, 0.0, distance[inner] / apart)
        return Trimmed(inner, outer, share, faces.reshape(-1, 3))

    def between(self, corners: Floats) -> Floats:
        """What corners (m, ...) have, at the places (v, ...)."""
        share = self.share.reshape(-1, *([1] * (corners.ndim - 1)))
        return (1 - share) * corners[self.inner] + share * corners[self.outer]


@wp.kernel
def follow_owners(
    first: int,
    owner: wp.array(dtype=int),
    parts: wp.array(dtype=coefficients),
    position: wp.array(dtype=wp.vec3),
    axis_a: wp.array(dtype=wp.vec3),
    axis_b: wp.array(dtype=wp.vec3),
    normal: wp.array(dtype=wp.vec3),
    positions: wp.array(dtype=wp.vec3),
    axes_a: wp.array(dtype=wp.vec3),
    axes_b: wp.array(dtype=wp.vec3),
    normals: wp.array(dtype=wp.vec3),
):
    """Parts of discs go as their discs do: x + c0 a + c1 b, with the half axes c2 a + c3 b and c4 a + c5 b."""
    i = first + wp.tid()
    s = owner[i]
    c = parts[i]
    a = axis_a[s]
    b = axis_b[s]
    positions[i] = position[s] + c[0] * a + c[1] * b
    axes_a[i] = c[2] * a + c[3] * b
    axes_b[i] = c[4] * a + c[5] * b
    normals[i] = normal[s]


class BodySlice:
    """A body cut along a plane of the reference shape it has now; the part where the normal points to is taken away."""

    def __init__(self, body: Body, plane: Plane, device: wp.Device) -> None:
        self._body, self._device = body, device
        self._pane = Pane(body, plane, CELLS)
        self._trim = Trimmed.of(self._pane.triangles, self._pane.distance)
        self.faces = self._trim.faces
        """of the cut, shape (t, 3)"""
        self._cut = PaneCut([self._pane], [1.0])
        self._half = self._halved()
        self.values: Floats = np.zeros(0)
        """of the quantity at the vertices of the cut, shape (v,)"""
        self.vertices: Floats = np.zeros((0, 3))
        """[m], shape (v, 3)"""
        self.normals: Floats = np.zeros((0, 3))
        """toward the part that was taken away, shape (v, 3)"""

    def look(self, quantity: Quantity) -> None:
        """See how things are now."""
        x, values = self._pane.look(quantity)
        self.vertices, self.values = self._trim.between(x), self._trim.between(values)
        if self._pane.probe is not None:
            J = np.eye(3) + self._pane.probe.gradient()
            cofactor = np.stack([np.cross(J[:, k - 2], J[:, k - 1]) for k in range(3)], axis=1)
            normals = self._trim.between(cofactor @ self._pane.normal)
            self.normals = normals / np.maximum(np.linalg.norm(normals, axis=1, keepdims=True), 1e-300)

    def _halved(self) -> tuple[wp.array, wp.array, Discs]:
        """Which discs are left, or parts of them, which; and room for them."""
        discs = carried_discs(self._body)
        rest = discs.shape
        X, unit = at_rest(self._body, discs), self._body.unit
        whole = Ellipses(
            X, unit * np.asarray(rest.axis_a, float), unit * np.asarray(rest.axis_b, float), np.arange(len(X))
        )
        if self._body.surface.blend is not None:
            whole = whole.some(self._body.surface.blend.layer.numpy() != BURIED)
        behind, reach = self._cut.left(whole.points), whole.longest
        left = whole.some(behind > reach).joined(within(whole.some(np.abs(behind) <= reach), self._cut.left))
        count = len(left.points)
        room = Discs.empty(count, self._device)
        room.color.assign(discs.colors[left.owner])
        parts = _parts(left, X, rest.axis_a * unit, rest.axis_b * unit)
        owner = wp.array(left.owner.astype(np.int32), dtype=int, device=self._device)
        return owner, wp.array(parts, dtype=coefficients, device=self._device), room

    def half(self) -> Discs:
        """What is left of its surfels, as they are now; valid until it is asked again."""
        owner, parts, room = self._half
        discs = carried_discs(self._body)
        fields = [discs.position, discs.axis_a, discs.axis_b, discs.normal]
        shown = [room.position, room.axis_a, room.axis_b, room.normal]
        launch(follow_owners, len(room), [owner, parts, *fields, *shown], self._device, len(room) > SPLIT_FROM)
        room.origin = discs.origin
        return room

    def outline(self) -> dict[str, Any]:
        """Where the plane is now: its middle [m], its normal, and two half sides [m]; and in the reference shape, which
        `low` and `high` bound [m]: where `facing` · X = `at` [m]."""
        if not len(self.vertices):
            middle, normal = np.asarray(self._body.origin, float), self._pane.normal
            axes = self._body.unit * np.concatenate(tangents(normal[None]))
        else:
            middle, normal = self.vertices.mean(axis=0), self.normals.mean(axis=0)
            normal = normal / max(float(np.linalg.norm(normal)), 1e-300)
            sides = np.concatenate(tangents(normal[None]))
            spans = (self.vertices - middle) @ sides.T
            middle = middle + 0.5 * (spans.min(axis=0) + spans.max(axis=0)) @ sides
            axes = 0.5 * np.ptp(spans, axis=0)[:, None] * sides
        now = {"centre": middle.tolist(), "normal": normal.tolist(), "axes": axes.tolist()}
        low, high = (corner.tolist() for corner in reference_box(self._body))
        return now | {"facing": self._pane.normal.tolist(), "at": self._pane.place, "low": low, "high": high}


def _parts(left: Ellipses, X: Floats, axis_a: Floats, axis_b: Floats) -> NDArray[np.float32]:
    """Middles and half axes of parts in terms of the half axes of the discs they are of, shape (n, 6)."""
    a, b = np.asarray(axis_a, float)[left.owner], np.asarray(axis_b, float)[left.owner]
    aa, bb, ab = (np.einsum("na,na->n", x, y) for x, y in ((a, a), (b, b), (a, b)))
    det = np.maximum(aa * bb - ab**2, 1e-300)
    columns = []
    for vector in (left.points - X[left.owner], left.axis_a, left.axis_b):
        va, vb = (np.einsum("na,na->n", vector, axis) for axis in (a, b))
        columns += [(va * bb - vb * ab) / det, (vb * aa - va * ab) / det]
    return np.stack(columns, axis=1).astype(np.float32)
