"""What was understood of a file or built-in shape, in words: `phyxel sample`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from phyxel.body.resolution import USUAL_NODES, NodeCount, filled_with, nodes_to_bend, remedy
from phyxel.models.kind import public_kinds
from phyxel.points.cloud import PointCloud
from phyxel.points.load import OPACITY, load
from phyxel.run.run import Stopwatch
from phyxel.solid.nodes import Nodes
from phyxel.solid.octree import Kind
from phyxel.solid.solid import CLOSING, Solid
from phyxel.units import decimals, extents_text, length_text, length_unit, volume_text

MUCH_MADE_UP = 0.1
"""Share of the surface."""
MADE_FROM = {"shape": "built-in shape", "mesh": "closed mesh", "points": "points"}
OPEN = {"mesh": "open mesh", "points": "points of an open mesh"}


@dataclass(frozen=True)
class Sample:
    """A model with the solid and nodes made of it."""

    model: str
    """the file or built-in shape as it was named"""
    cloud: PointCloud
    solid: Solid
    nodes: Nodes
    asked: NodeCount
    """nodes"""
    picture: Path | None
    spent: dict[str, float]
    """milliseconds by stage"""


def take(
    model: str,
    nodes: NodeCount = USUAL_NODES,
    picture: Path | None = None,
    *,
    points: int | None = None,
    units: str | None = None,
    up: str | None = None,
    opacity: float | None = None,
    closing: float | None = None,
    device: str | None = None,
    report: Callable[[str], None] = lambda stage: None,
) -> Sample:
    """Load a model, make its solid and nodes, and draw it if a picture is asked for; `report` hears of each stage."""
    if picture is not None:
        from phyxel.render.files import format_of

        format_of(picture)
    watch = Stopwatch()
    report(f"loading {model}")
    with watch.stage("load"):
        cloud = load(model, points, units, up, OPACITY if opacity is None else opacity)
    report("making the solid")
    with watch.stage("solid"):
        solid = Solid(cloud, closing=CLOSING if closing is None else closing, device=device)
    report("placing nodes")
    with watch.stage("nodes"):
        to_surface = public_kinds()[0].scheme().nodes == "to the surface"
        placed = filled_with(nodes, lambda count: solid.sample(count, (), to_surface, "cells"), _enough)
    if picture is not None:
        report("drawing")
        with watch.stage("picture"):
            _draw(solid, placed, picture, device)
    return Sample(model, cloud, solid, placed, nodes, picture, watch.spent)


def _draw(solid: Solid, nodes: Nodes, path: Path, device: str | None) -> None:
    from phyxel.render.cutaway import draw
    from phyxel.render.files import save_picture

    save_picture(draw(solid, nodes, device), path)


# --- the table -------------------------------------------------------------------------------------------------------


def rows_of(sample: Sample) -> Iterator[tuple[str, str]]:
    """What was found, and in words how much of it."""
    yield "model", f"{sample.model}, {_origin(sample)}"
    yield "points", dict(sample.cloud.facts())["points"]
    if sample.cloud.reading is not None:
        yield "read as", str(sample.cloud.reading)
    yield from _bounds(sample.solid)
    yield "normals", _normals(sample)
    if sample.solid.made_from == "points":
        yield from _dirt(sample.solid)
    if sample.solid.made_from == "points" or sample.solid.findings.open_edges:
        yield "holes", dict(sample.solid.facts()).get("holes", "none")
    yield "volume", volume_text(sample.solid.volume)
    yield "nodes", _nodes(sample)
    yield "spacing", f"{length_text(sample.nodes.spacing)} between nodes"
    yield "quadrature", f"{len(sample.nodes.quadrature):,} points"
    yield "time", ", ".join(f"{stage} {1e-3 * spent:.2f} s" for stage, spent in sample.spent.items())
    if sample.picture is not None:
        yield "picture", str(sample.picture)


def _origin(sample: Sample) -> str:
    made_from = sample.solid.made_from
    is_open = sample.solid.findings.open_edges > 0 or (made_from == "points" and sample.cloud.mesh is not None)
    return (OPEN if is_open else MADE_FROM)[made_from]


def _bounds(solid: Solid) -> Iterator[tuple[str, str]]:
    extents = solid.upper - solid.lower
    unit, metres = length_unit(float(extents.max()))
    places = decimals(float(extents.max()) / metres)
    lower, upper = ([f"{value / metres:z.{places}f}" for value in corner] for corner in (solid.lower, solid.upper))
    yield "size", extents_text(extents)
    yield "corners", f"({', '.join(lower)}) to ({', '.join(upper)}) {unit}"


def _normals(sample: Sample) -> str:
    found, cloud = sample.solid.findings, sample.cloud
    if found.normals_made:
        return "estimated"
    if sample.solid.made_from == "shape":
        return "exact"
    if cloud.splats is not None:
        given = "the splats' shortest axes"
    else:
        given = "given" if cloud.mesh is None else "given, or from the triangles"
    return given + (f", {found.turned:,} turned" if found.turned else "")


def _dirt(solid: Solid) -> Iterator[tuple[str, str]]:
    """Of points that are not as they should be, as far as there are some."""
    found = solid.findings
    if found.duplicates:
        yield "duplicates", f"{found.duplicates:,}, counted once"
    if found.outliers:
        yield "outliers", f"{found.outliers:,} left out"
    if found.buried:
        yield "buried", f"{found.buried:,} inside the solid left out"
    if found.noise > 0:
        size = float((solid.upper - solid.lower).max())
        yield "noise", f"{length_text(found.noise * size)}, smoothed ({100 * found.noise:.2g} % of the size)"


def _nodes(sample: Sample) -> str:
    asked = "as many as it needs to bend" if sample.asked == "auto" else f"{sample.asked:,} asked for"
    inside, inner, outer = np.bincount(sample.nodes.kinds, minlength=Kind.EXTERIOR)[: Kind.EXTERIOR]
    return (
        f"{len(sample.nodes):,} ({asked}): {inside:,} interior, {inner:,} interior boundary, "
        f"{outer:,} exterior boundary"
    )


def _enough(nodes: Nodes) -> int | None:
    """How many would be, for the model that bodies have unless they are told, if these are too few."""
    return nodes_to_bend(public_kinds()[0].scheme(), nodes.thickness, nodes.volumes)


def tips_of(sample: Sample) -> Iterator[str]:
    """What looks odd, and what to do about it."""
    solid = sample.solid
    yield from sample.cloud.oddities()
    yield from sample.cloud.reading.missing if sample.cloud.reading is not None else ()
    yield from solid.findings.doubts
    if (enough := _enough(sample.nodes)) is not None:
        kind = public_kinds()[0]
        yield remedy(kind, kind.scheme(), len(sample.nodes), enough)
    if solid.findings.closed_share > MUCH_MADE_UP:
        share = 100 * solid.findings.closed_share
        yield f"{share:.0f} % of the surface is made up; see with --picture whether it closes where it should"
