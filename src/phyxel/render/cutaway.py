"""A solid cut open: the distance to its surface on the cut, in coloured bands, its nodes, and the half behind.

The plane of the cut parts space. What lies behind it, the cut itself and what lies before it are therefore three
pictures, laid over each other in this order. All is drawn in units of the solid's size about the middle of its box, so
that a grain and a planet look alike.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import warp as wp
from numpy.typing import NDArray
from PIL import Image

from phyxel.material.look import Look
from phyxel.mls.neighbours import nearest
from phyxel.render.camera import Camera
from phyxel.render.inside.pen import INK, PLASTER, Pen, layer_of, over
from phyxel.render.shade import Color, Light
from phyxel.render.splat import Renderer
from phyxel.rotation import tangents
from phyxel.solid.nodes import Nodes
from phyxel.solid.octree import Kind
from phyxel.solid.solid import Solid
from phyxel.surface.discs import Floats, disc_radii
from phyxel.surface.implicit_skin import even_directions
from phyxel.units import decimals, length_text, length_unit

WIDTH, HEIGHT = 1280, 960
"""[pixels]"""
ROOM_TOP, ROOM_BOTTOM, ROOM_RIGHT = 96, 84, 190
"""Kept free for words [pixels]."""
COARSE = 2
"""Pixels from one place where the distance is asked to the next; between them it is interpolated."""

PLACES = np.linspace(-0.1, 0.1, 5)
"""Where a cut may lie about the middle, over the solid's extent across it."""
OFF_MIDDLE = 1.0
"""Share by which a section must be larger for each extent that it lies off the middle."""
SECTION_SAMPLES = 48
"""Along each side of a section, to see how large it is."""
DIRECTIONS = {0: (1.0, 0.36, -0.75), 1: (0.35, 0.8, 1.0), 2: (0.75, 0.36, 1.0)}
"""Where the eye is, by the axis of the cut: aslant, so that the half behind the cut is seen as well."""

BANDS = 6
"""About so many from the surface to the deepest place of the cut."""
REACH, MOST_OUTSIDE = 0.09, 4
"""How far outside the distance is shown, in about so much and at most so many bands."""
WARM = np.array([(1.0, 0.93, 0.73), (0.985, 0.78, 0.47), (0.92, 0.53, 0.29), (0.77, 0.28, 0.22), (0.56, 0.12, 0.19)])
"""Display colors from the surface to the deepest place."""
COOL = np.array([(0.47, 0.67, 0.88), (0.66, 0.81, 0.95)])
"""Display colors from the surface outward."""
OUTSIDE_OPACITY = 0.65
"""Of the sheet outside where it leaves the surface; from there it fades."""
LINE_OPACITY = 0.4
"""Of the thin lines between bands."""
BAR_LEFT, BAR_WIDTH, BAR_HEIGHT = WIDTH - 130, 30, 520
"""Of the scale [pixels]."""
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


@dataclass(frozen=True)
class ShownSolid:
    """A solid in units of its size about the middle of its box."""

    solid: Solid

    @property
    def middle(self) -> Floats:
        """[m], shape (3,)."""
        return 0.5 * (self.solid.lower + self.solid.upper)

    @property
    def size(self) -> float:
        """Largest extent [m]."""
        return float((self.solid.upper - self.solid.lower).max())

    @property
    def half(self) -> Floats:
        """Half the extents, shape (3,)."""
        return 0.5 * (self.solid.upper - self.solid.lower) / self.size

    def scaled(self, positions: Floats) -> Floats:
        """From metres, (n, 3)."""
        return (positions - self.middle) / self.size

    def metres(self, positions: Floats) -> Floats:
        """To metres, (n, 3)."""
        return self.middle + self.size * positions

    def distance(self, positions: Floats) -> Floats:
        """(n, 3) -> (n,), negative inside."""
        return self.solid.distance(self.metres(positions)) / self.size


# Where to cut, and from where to look


@dataclass(frozen=True)
class CutPlane:
    """A plane across an axis; the half on the axis' positive side is taken away."""

    axis: int
    place: float

    def before(self, positions: Floats) -> Floats:
        """How far positions (..., 3) lie before the plane, shape (...)."""
        return positions[..., self.axis] - self.place

    def through_nodes(self, positions: Floats, spacing: float) -> CutPlane:
        """The plane within a spacing of this one that the most nodes lie in: they stand in layers."""
        beside = self.before(positions)
        layers, counts = np.unique(np.round(beside[np.abs(beside) < spacing] / spacing, 2), return_counts=True)
        return CutPlane(self.axis, self.place + spacing * float(layers[counts.argmax()])) if len(layers) else self


def best_cut(model: ShownSolid) -> CutPlane:
    """Of planes across the axes through the middle, or not far from it, that which shows the most of the inside."""
    shown = {}
    for axis in (2, 0, 1):
        for place in PLACES:
            cut = CutPlane(axis, float(2 * place * model.half[axis]))
            shown[cut] = _area(model, cut) / (1 + OFF_MIDDLE * abs(place))
    return max(shown, key=lambda cut: shown[cut])


def _area(model: ShownSolid, cut: CutPlane) -> float:
    places, area = places_in(model, cut)
    return float((model.distance(places) < 0).sum() * area)


def places_in(model: ShownSolid, cut: CutPlane) -> tuple[Floats, float]:
    """Places all over a plane, (n, 3), and the area each stands for."""
    sides = [axis for axis in range(3) if axis != cut.axis]
    steps = (np.arange(SECTION_SAMPLES) + 0.5) / SECTION_SAMPLES * 2 - 1
    places = np.full((SECTION_SAMPLES**2, 3), cut.place)
    places[:, sides] = np.stack(np.meshgrid(steps, steps), axis=-1).reshape(-1, 2) * model.half[sides]
    return places, float(np.prod(2 * model.half[sides])) / SECTION_SAMPLES**2


def camera_before(cut: CutPlane, model: ShownSolid) -> Camera:
    """Sees all that is left of the solid, with room for words."""
    upper = np.array(model.half)
    upper[cut.axis] = cut.place
    width, height = WIDTH - ROOM_RIGHT, HEIGHT - ROOM_TOP - ROOM_BOTTOM
    inner = Camera.framing(-model.half, upper, DIRECTIONS[cut.axis], width, height, fov=24.0, margin=1.1)
    per_pixel = np.linalg.norm(np.subtract(inner.target, inner.eye)) / inner.focal
    right, up, _ = inner.axes
    aside = per_pixel * (0.5 * ROOM_RIGHT * right + 0.5 * (ROOM_TOP - ROOM_BOTTOM) * up)
    fov = float(np.degrees(2 * np.arctan(0.5 * HEIGHT / inner.focal)))
    return Camera(np.add(inner.eye, aside), np.add(inner.target, aside), fov=fov, width=WIDTH, height=HEIGHT)


# What is seen in the plane of the cut


class Section(NamedTuple):
    """What each pixel sees in the plane of the cut, each of shape (height, width)."""

    distance: Floats
    """from the surface, negative inside, and cut off a little beyond the last band"""
    height: Floats
    """above the floor"""

    @staticmethod
    def seen_by(camera: Camera, cut: CutPlane, model: ShownSolid) -> Section:
        """Where the rays of the camera meet the plane."""
        width, height = WIDTH // COARSE, HEIGHT // COARSE
        right, up, forward = camera.axes
        x = (np.arange(width) + 0.5 - width / 2) * COARSE / camera.focal
        y = (height / 2 - np.arange(height) - 0.5) * COARSE / camera.focal
        rays = forward + x[None, :, None] * right + y[:, None, None] * up
        eye = np.asarray(camera.eye)
        # Rays that never meet the plane count as meeting it far away.
        places = eye + rays * (-cut.before(eye) / np.minimum(rays[..., cut.axis], -1e-3))[..., None]
        near = (np.abs(places) < model.half + 2 * REACH).all(axis=-1)
        distance = np.full(near.shape, 2 * REACH)
        distance[near] = np.minimum(model.distance(places[near]), 2 * REACH)
        return Section(_enlarged(distance), _enlarged(places[..., 1] + model.half[1]))


def _enlarged(field: Floats) -> Floats:
    image = Image.fromarray(field.astype(np.float32))
    return np.asarray(image.resize((WIDTH, HEIGHT), Image.Resampling.BILINEAR), np.float64)


@dataclass(frozen=True)
class DistanceBands:
    """Bands of distance."""

    step: float
    """width of a band, in units of the solid's size"""
    inside: int
    """number of bands"""
    outside: int
    """number of bands"""
    shown_step: float
    """width of a band in `unit`"""
    unit: str

    @staticmethod
    def of(distance: Floats, size: float) -> DistanceBands:
        """For the distances, over the size [m] of the solid, that are to be shown."""
        deepest = max(-float(distance.min()), 0.01)
        unit, metres = length_unit(deepest * size)
        rough = deepest * size / metres / BANDS
        ten = 10.0 ** np.floor(np.log10(rough))
        shown_step = float(ten * min((1, 2, 5, 10), key=lambda n: abs(np.log(n * ten / rough))))
        step = shown_step * metres / size
        outside = min(max(round(REACH / step), 1), MOST_OUTSIDE)
        return DistanceBands(step, int(np.ceil(deepest / step)), outside, shown_step, unit)

    def colors(self, distance: Floats) -> Floats:
        """Display colors and opacity (..., 4) of the bands that distances (...) lie in."""
        band = np.floor(distance / self.step)
        warm = _along(WARM, (-band - 1) / max(self.inside - 1, 1))
        cool = _along(COOL, band / max(self.outside - 1, 1))
        inside = distance < 0
        fading = np.clip(1 - (band + 0.5) / self.outside, 0, 1)
        opacity = np.where(inside, 1.0, OUTSIDE_OPACITY * fading)
        return layer_of(np.where(inside[..., None], warm, cool), opacity)

    def text(self, band: int) -> str:
        """The distance at which a band begins, as a number."""
        return f"{band * self.shown_step:.{decimals(self.shown_step, 1)}f}"


def _along(colors: Floats, share: Floats) -> Floats:
    """Colors (..., 3) at 0..1 of the way along a row of them."""
    place = np.clip(share, 0, 1) * (len(colors) - 1)
    return np.stack([np.interp(place, np.arange(len(colors)), channel) for channel in colors.T], axis=-1)


def painted(section: Section, scale: DistanceBands) -> Floats:
    """The cut: bands, thin lines between them and a strong one along the surface, (height, width, 4)."""
    distance = section.distance
    slope = _slope(distance)
    level = np.round(distance / scale.step)
    thin = np.clip(1.0 - np.abs(distance - level * scale.step) / slope, 0, 1)
    fading = np.clip(1 - level / scale.outside, 0, 1)
    picture = over(scale.colors(distance), layer_of(INK, LINE_OPACITY * thin * fading))
    strong = np.clip(2.0 - np.abs(distance) / slope, 0, 1)
    picture = over(picture, layer_of(INK, strong))
    picture[..., 3] *= _pixels_above(section.height, 0.0) * _pixels_above(-distance, -scale.outside * scale.step)
    return picture


def _pixels_above(field: Floats, level: float) -> Floats:
    """1 where a field is above a level, 0 where it is below, with a soft edge a pixel wide."""
    return np.clip((field - level) / _slope(field) + 0.5, 0, 1)


def _slope(field: Floats) -> Floats:
    """Change from a pixel to the next, never quite 0."""
    return np.maximum(np.hypot(*np.gradient(field)), 1e-9)


def draw_scale(pen: Pen, scale: DistanceBands) -> None:
    """The colours of the bands, with the distances at which they begin."""
    bands = scale.inside + scale.outside
    top, band_height = (HEIGHT - BAR_HEIGHT) / 2, BAR_HEIGHT / bands
    right = BAR_LEFT + BAR_WIDTH
    every = -(-bands // 14)
    for row, band in enumerate(range(scale.outside - 1, -scale.inside - 1, -1)):
        color = scale.colors(np.array((band + 0.5) * scale.step))
        pen.box(BAR_LEFT, top + row * band_height, right, top + (row + 1) * band_height, color)
    for row, band in enumerate(range(scale.outside, -scale.inside - 1, -1)):
        y = top + row * band_height
        pen.line(BAR_LEFT, y, right + (6 if band % every == 0 else 0), y, 3.5 if band == 0 else 1)
        if band % every == 0:
            pen.text(right + 14, y, scale.text(band), 18, "lm")
    surface = top + scale.outside * band_height
    pen.text(BAR_LEFT - 12, 0.5 * (top + surface), "outside", 16, "rm", soft=True)
    pen.text(BAR_LEFT - 12, 0.5 * (top + BAR_HEIGHT + surface), "inside", 16, "rm", soft=True)
    pen.text(BAR_LEFT + BAR_WIDTH / 2, top - 52, "distance to", 18, "mm")
    pen.text(BAR_LEFT + BAR_WIDTH / 2, top - 29, f"the surface [{scale.unit}]", 18, "mm")


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
    picture = over(picture, words(scale, nodes, _title(model, cut, nodes)))
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
        how: dict[str, Any] = {"light": self._light, "look": Look(shine=0.8), "supersample": SMOOTH}
        return self._renderer.render(*surfels, self._camera, ground=floor, background=background, **how) / 255.0


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
    places = (centres[:, None] + radius * normals).reshape(-1, 3)
    radii = np.full(len(places), 2.6 * radius / np.sqrt(each))
    return CutSurfels.round(places, np.tile(normals, (len(centres), 1)), radii, np.repeat(colors, each, axis=0))


# Words


def _title(model: ShownSolid, cut: CutPlane, nodes: Nodes) -> tuple[str, str]:
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
