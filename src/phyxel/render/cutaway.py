"""A solid cut open: the distance to its surface on the cut, its nodes, and the half behind.

The plane of the cut parts space. What lies behind it, the cut itself and what lies before it are therefore three
pictures, laid over each other in this order. All is drawn in units of the solid's size about the middle of its box, so
that a grain and a planet look alike.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import warp as wp
from numpy.typing import NDArray

from phyxel.material.look import Look
from phyxel.mls.neighbours import nearest
from phyxel.render.camera import Camera
from phyxel.render.inside.pen import PLASTER, Pen, over
from phyxel.render.section import (
    HEIGHT,
    WIDTH,
    CutPlane,
    DistanceBands,
    Section,
    ShownSolid,
    best_cut,
    camera_before,
    draw_scale,
    painted,
    places_in,
)
from phyxel.render.shade import Color, Light
from phyxel.render.splat import Renderer
from phyxel.rotation import tangents
from phyxel.solid.nodes import Nodes
from phyxel.solid.octree import Kind
from phyxel.solid.solid import Solid
from phyxel.surface.discs import Floats, disc_radii
from phyxel.surface.implicit_skin import even_directions
from phyxel.units import decimals, length_text, length_unit

SMOOTH = 2
"""Surfels are drawn at so many times the size, then averaged."""
FEWEST_SURFELS = 60_000
"""Surfels of the whole surface below which more are put between them."""
ALIKE = 16
"""Neighbouring surfels that share a normal, where more were put between those given."""
BALL = 0.2
"""Radius of a node's ball, over the spacing of nodes."""
BALL_SURFELS, MOST_BALL_SURFELS = 400, 600_000
"""Surfels of a ball, and of all balls at most: many nodes have small balls, which need few surfels."""
SHEET = 0.35
"""Spacings before the cut up to which nodes are drawn: farther ones would seem to be off their places in it."""
KINDS: dict[Kind, tuple[str, Color]] = {
    Kind.INTERIOR: ("interior", (0.17, 0.36, 0.85)),
    Kind.INTERIOR_BOUNDARY: ("interior boundary", (0.05, 0.62, 0.56)),
    Kind.EXTERIOR_BOUNDARY: ("exterior boundary, on the surface", (0.97, 0.96, 0.93)),
}
"""What nodes are called, and their display colors."""
MARGIN = 36
"""Of words from the edge [pixels]."""


def draw(solid: Solid, nodes: Nodes, device: str | wp.Device | None = None) -> NDArray[np.uint8]:
    """The solid cut in half, with its nodes and a legend: (960, 1280, 3) bytes."""
    model = ShownSolid(solid)
    cut = best_cut(model).through_nodes(model.scaled(nodes.positions), nodes.spacing / model.size)
    camera = camera_before(cut, model)
    stage = CutStage(camera, Renderer(device))
    behind, before = node_balls(model, nodes, cut)
    section = Section.seen_by(camera, cut, model)
    scale = DistanceBands.of(section.distance, model.size)
    rear = skin_surfels(model, cut).joined(behind).joined(cap_surfels(model, cut))
    picture = stage.backdrop(rear, floor=-float(model.half[1]))
    picture = over(picture, painted(section, scale))
    picture = over(picture, stage.layer(before))
    return _bytes(over(picture, words(scale, nodes, _title(model, cut, nodes))))


def _bytes(picture: Floats) -> NDArray[np.uint8]:
    return np.rint(255 * picture[..., :3]).astype(np.uint8)


# Surfels


class CutSurfels(NamedTuple):
    """What the renderer draws, each of shape (n, 3)."""

    positions: Floats
    axes_a: Floats
    axes_b: Floats
    colors: Floats

    @staticmethod
    def round(positions: Floats, normals: Floats, radii: Floats, colors: Floats) -> CutSurfels:
        """Discs of these radii (n,)."""
        a, b = tangents(normals)
        return CutSurfels(positions, radii[:, None] * a, radii[:, None] * b, colors)

    def joined(self, more: CutSurfels) -> CutSurfels:
        """These and more."""
        return CutSurfels(*(np.concatenate(pair) for pair in zip(self, more, strict=True)))


class CutStage:
    """Draws surfels from one place, lit from over the left shoulder."""

    def __init__(self, camera: Camera, renderer: Renderer) -> None:
        self._camera, self._renderer = camera, renderer
        right, _, forward = camera.axes
        x, y, z = np.array([0.0, 1.2, 0.0]) - 0.5 * right - 0.6 * forward
        self._light = Light(direction=(float(x), float(y), float(z)))

    def backdrop(self, surfels: CutSurfels, floor: float) -> Floats:
        """Surfels on a floor in the studio: display colors and opacity 0..1, (height, width, 4)."""
        return self._drawn(surfels, "studio", floor)

    def layer(self, surfels: CutSurfels) -> Floats:
        """Surfels before nothing: display colors and opacity 0..1, (height, width, 4)."""
        return self._drawn(surfels, None, None) if len(surfels.positions) else np.zeros((HEIGHT, WIDTH, 4))

    def _drawn(self, surfels: CutSurfels, background: str | None, floor: float | None) -> Floats:
        picture = self._renderer.render(
            *surfels,
            self._camera,
            ground=floor,
            background=background,
            light=self._light,
            look=Look(shine=0.8),
            supersample=SMOOTH,
        )
        return picture / 255.0


def skin_surfels(model: ShownSolid, cut: CutPlane) -> CutSurfels:
    """The surface behind the cut, dense enough to look closed."""
    positions, normals = dense_skin(model)
    behind = cut.before(positions) < 0
    positions, normals = positions[behind], normals[behind]
    return CutSurfels.round(positions, normals, disc_radii(positions), _plaster(len(positions)))


def _plaster(count: int) -> Floats:
    return np.tile(np.array(PLASTER, np.float32), (count, 1))


def cap_surfels(model: ShownSolid, cut: CutPlane) -> CutSurfels:
    """A lid on the half behind. The painted section covers it, but without it light would fall in."""
    places, area = places_in(model, cut)
    radius = float(np.sqrt(area))
    places = places[model.distance(places) < -radius]
    outward = np.tile(np.eye(3)[cut.axis], (len(places), 1))
    return CutSurfels.round(places, outward, np.full(len(places), radius), _plaster(len(places)))


def dense_skin(model: ShownSolid) -> tuple[Floats, Floats]:
    """Positions and normals of many points on the surface: those given and, if they are few, others beside them."""
    skin = model.solid.skin
    assert skin.normals is not None
    x, normals = model.scaled(skin.positions), skin.normals
    copies = -(-FEWEST_SURFELS // len(x)) - 1
    if copies < 1:
        return x, normals
    a, b = (np.repeat(axis, copies, axis=0) for axis in tangents(normals))
    random = np.random.default_rng(0)
    u, v = random.uniform(-1, 1, (2, len(a), 1)) * np.repeat(disc_radii(x), copies)[:, None]
    beside = model.solid.project(model.metres(np.repeat(x, copies, axis=0) + u * a + v * b))
    x, normals = np.concatenate([x, model.scaled(beside)]), np.concatenate([normals, model.solid.gradient(beside)])
    # Flat triangles and vertices with smooth normals would make spots: each surfel takes the mean of its surroundings.
    mean = normals[nearest(x, x, ALIKE)[1]].mean(axis=1)
    return x, mean / np.maximum(np.linalg.norm(mean, axis=1, keepdims=True), 1e-9)


def node_balls(model: ShownSolid, nodes: Nodes, cut: CutPlane) -> tuple[CutSurfels, CutSurfels]:
    """Balls about the nodes on the surface behind the cut, and about all nodes in the cut or close before it."""
    x = model.scaled(nodes.positions)
    spacing = nodes.spacing / model.size
    before = cut.before(x) / spacing
    shown = (before > -BALL) & (before < SHEET)
    behind = (before <= -BALL) & (nodes.kinds == Kind.EXTERIOR_BOUNDARY)
    each = int(np.clip(MOST_BALL_SURFELS // max(shown.sum() + behind.sum(), 1), 16, BALL_SURFELS))
    colors = np.array([color for _, color in KINDS.values()], np.float32)[nodes.kinds]
    return (
        _balls(x[behind], BALL * spacing, colors[behind], each),
        _balls(x[shown], BALL * spacing, colors[shown], each),
    )


def _balls(centres: Floats, radius: float, colors: Floats, each: int) -> CutSurfels:
    normals = even_directions(each)
    return CutSurfels.round(
        (centres[:, None] + radius * normals).reshape(-1, 3),
        np.tile(normals, (len(centres), 1)),
        np.full(len(centres) * each, 2.6 * radius / np.sqrt(each)),
        np.repeat(colors, each, axis=0),
    )


# Words


def _title(model: ShownSolid, cut: CutPlane, nodes: Nodes) -> tuple[str, str]:
    """Two lines."""
    unit, metres = length_unit(model.size)
    place = (model.middle[cut.axis] + model.size * cut.place) / metres
    where = f"{'xyz'[cut.axis]} = {place:z.{decimals(model.size / metres)}f} {unit}"
    return model.solid.name, f"{len(nodes):,} nodes, {length_text(nodes.spacing)} apart, cut at {where}"


def words(scale: DistanceBands, nodes: Nodes, title: tuple[str, str]) -> Floats:
    """A title, what the balls are, and the scale of distance: (height, width, 4)."""
    pen = Pen(WIDTH, HEIGHT)
    pen.text(MARGIN, 48, title[0], 32, "lm")
    pen.text(MARGIN, 84, title[1], 19, "lm", soft=True)
    x = MARGIN + 8.0
    for kind, (name, color) in KINDS.items():
        pen.ball(x, HEIGHT - 40, 9, color)
        label = f"{name}  {int((nodes.kinds == kind).sum()):,}"
        x += 20 + pen.text(x + 20, HEIGHT - 40, label, 19, "lm") + 36
    draw_scale(pen, scale)
    return pen.layer()
