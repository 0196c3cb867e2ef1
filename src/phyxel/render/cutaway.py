"""A solid cut open: distance to its surface on the cut, its nodes, and the half behind.

The plane of the cut parts space. What lies behind it, the cut itself and what lies before it are therefore three
pictures, laid over each other in this order. All is drawn in units of the solid's size about the middle of its box, so
that a grain and a planet look alike.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import warp as wp
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageFont

from phyxel.points.frames import tangents
from phyxel.render.camera import Camera
from phyxel.render.look import Light, Look
from phyxel.render.splat import Renderer
from phyxel.solid.nodes import Nodes
from phyxel.solid.octree import Kind
from phyxel.solid.solid import Solid
from phyxel.surface.surfels import disc_radii

Floats = NDArray[np.floating]
Mask = NDArray[np.bool_]

WIDTH, HEIGHT = 1280, 960
SMOOTH = 2
"""Surfels are drawn at so many times the size, then averaged."""
COARSE = 2
"""Pixels between two places where the distance is asked; between them it is interpolated."""

PLACES = np.linspace(-0.15, 0.15, 7)
"""Where a cut may lie, over the solid's extent across it, about the middle."""
GRID = 48
"""Samples along each side of a section to see how large it is."""
OFF_MIDDLE = 1.0
"""How much larger a section must be, for each extent that it lies off the middle."""

FEWEST_SURFELS = 60_000
"""Surfels of the whole surface below which more are put between them."""
BALL = 0.19
"""Radius of a node's ball, over the spacing of nodes."""
BALL_SURFELS = 400
SHEET = 0.6
"""Nodes up to so many spacings before the cut are drawn as well: those whose octants it cuts."""

BANDS = 6
"""About so many from the surface to the deepest place of the cut."""
REACH = 0.1
"""How far outside the distance is shown."""
SURFACE = (0.80, 0.80, 0.78)
LINING = (0.52, 0.50, 0.48)
"""Display color of the surface seen from within."""
WARM = np.array([(1.0, 0.925, 0.72), (0.985, 0.76, 0.44), (0.91, 0.49, 0.27), (0.72, 0.23, 0.20), (0.47, 0.09, 0.18)])
"""Display colors from the surface to the deepest place."""
COOL = np.array([(0.50, 0.69, 0.88), (0.66, 0.80, 0.93)])
"""Display colors from the surface outward."""
INK = (0.13, 0.15, 0.19)
KINDS = {
    Kind.INTERIOR: ("interior", (0.16, 0.27, 0.62)),
    Kind.INTERIOR_BOUNDARY: ("interior boundary", (0.06, 0.62, 0.58)),
    Kind.EXTERIOR_BOUNDARY: ("exterior boundary, on the surface", (0.97, 0.96, 0.93)),
}
INSIDE_OPACITY = 0.9
OUTSIDE_OPACITY = 0.5


class Surfels(NamedTuple):
    """What the renderer draws, in units of the solid's size; each of shape (n, 3)."""

    positions: Floats
    axes_a: Floats
    axes_b: Floats
    colors: Floats

    def only(self, chosen: Mask) -> Surfels:
        return Surfels(*(field[chosen] for field in self))

    def and_these(self, more: Surfels) -> Surfels:
        return Surfels(*(np.concatenate(pair) for pair in zip(self, more, strict=True)))


@dataclass(frozen=True)
class Model:
    """A solid in units of its largest extent about the middle of its box."""

    solid: Solid

    @property
    def middle(self) -> Floats:
        return 0.5 * (self.solid.lower + self.solid.upper)

    @property
    def size(self) -> float:
        """[m]"""
        return float((self.solid.upper - self.solid.lower).max())

    @property
    def half(self) -> Floats:
        """Half the extents, shape (3,)."""
        return 0.5 * (self.solid.upper - self.solid.lower) / self.size

    def scaled(self, positions: Floats) -> Floats:
        """From metres, (n, 3)."""
        return (positions - self.middle) / self.size

    def metres(self, positions: Floats) -> Floats:
        return self.middle + self.size * positions

    def distance(self, positions: Floats) -> Floats:
        """(n, 3) -> (n,), negative inside."""
        return self.solid.distance(self.metres(positions)) / self.size


def draw(solid: Solid, nodes: Nodes, device: str | wp.Device | None = None) -> NDArray[np.uint8]:
    """The solid cut in half, with its nodes and a legend: (960, 1280, 3) bytes."""
    model = Model(solid)
    cut = largest_section(model)
    camera = camera_at(cut, model)
    skin, balls = skin_surfels(model, cut, camera), node_balls(model, nodes, cut)
    stage = _Stage(camera, cut, Renderer(device))
    behind = skin.and_these(balls.only(cut.before(balls.positions) < 0))
    picture = stage.backdrop(behind, -float(model.half[1]))
    field = distance_in_pixels(model, cut, camera)
    scale = Scale.of(field, model.size)
    picture = over(picture, paint(field, scale))
    picture = over(picture, stage.layer(balls.only(cut.before(balls.positions) >= 0)))
    return labelled(picture, scale, nodes, solid.name)


# --- where to cut, and from where to look ----------------------------------------------------------------------------


@dataclass(frozen=True)
class Cut:
    """A plane across an axis, in units of the solid's size."""

    axis: int
    place: float

    @property
    def normal(self) -> Floats:
        """Toward the half that is taken away."""
        return np.eye(3)[self.axis]

    def before(self, positions: Floats) -> Floats:
        """How far positions (n, 3) lie before the plane, shape (n,)."""
        return positions[:, self.axis] - self.place


def largest_section(model: Model) -> Cut:
    """Of planes across the axes through the middle, or near it, the one with the most of the solid in it."""
    cuts = [Cut(axis, 2 * place * model.half[axis]) for axis in (2, 0, 1) for place in PLACES]
    costs = [1 + OFF_MIDDLE * abs(place) for _ in range(3) for place in PLACES]
    return cuts[int(np.argmax([_section(model, cut) / cost for cut, cost in zip(cuts, costs, strict=True)]))]


def _section(model: Model, cut: Cut) -> float:
    """Area of the solid in a plane."""
    u, v = (axis for axis in range(3) if axis != cut.axis)
    steps = (np.arange(GRID) + 0.5) / GRID * 2 - 1
    x = np.full((GRID * GRID, 3), cut.place)
    x[:, u], x[:, v] = np.stack(np.meshgrid(steps, steps)).reshape(2, -1) * model.half[[u, v]][:, None]
    return float((model.distance(x) < 0).mean() * 4 * model.half[u] * model.half[v])


def camera_at(cut: Cut, model: Model) -> Camera:
    """Looks at the cut, aslant so that the half behind it is seen as well."""
    direction = {0: (1.0, 0.36, -0.8), 1: (0.35, 0.8, 1.0), 2: (0.8, 0.36, 1.0)}[cut.axis]
    upper = np.array(model.half)
    upper[cut.axis] = cut.place
    framed = Camera.framing(-model.half, upper, direction, WIDTH - 200, HEIGHT - 160, fov=26.0, margin=1.18)
    # A picture of that width in the middle of this one leaves room for the legend beside it.
    return framed_in(framed, WIDTH, HEIGHT, shift=70)


def framed_in(camera: Camera, width: int, height: int, shift: float) -> Camera:
    """The same view with more around it, moved to the left by so many pixels."""
    fov = np.degrees(2 * np.arctan(0.5 * height / camera.focal))
    distance = np.linalg.norm(np.subtract(camera.target, camera.eye))
    aside = shift * distance / camera.focal * camera.axes[0]
    return Camera(np.add(camera.eye, aside), np.add(camera.target, aside), fov=float(fov), width=width, height=height)


# --- surfels ---------------------------------------------------------------------------------------------------------


def skin_surfels(model: Model, cut: Cut, camera: Camera) -> Surfels:
    """The surface behind the cut, dense enough to look closed, from within and from without."""
    positions, normals, colors = dense_skin(model)
    behind = cut.before(positions) < 0
    positions, normals, colors = positions[behind], normals[behind], colors[behind]
    within = ((positions - np.asarray(camera.eye)) * normals).sum(axis=1) > 0
    normals = np.where(within[:, None], -normals, normals)
    colors = np.where(within[:, None], np.float32(LINING), colors)
    return discs(positions, normals, disc_radii(positions), colors)


def dense_skin(model: Model) -> tuple[Floats, Floats, Floats]:
    """Positions, normals and colors of many points on the surface: those given, and others beside them."""
    skin = model.solid.skin
    assert skin.normals is not None
    x, normals = model.scaled(skin.positions), skin.normals
    colors = np.tile(np.float32(SURFACE), (len(x), 1)) if skin.colors is None else skin.colors
    copies = -(-FEWEST_SURFELS // len(x)) - 1
    if copies < 1:
        return x, normals, colors
    a, b = (np.repeat(axis, copies, axis=0) for axis in tangents(normals))
    random = np.random.default_rng(0)
    angle, radius = 2 * np.pi * random.random(len(a)), np.sqrt(random.random(len(a)))
    radius *= np.repeat(disc_radii(x), copies)
    beside = np.repeat(x, copies, axis=0) + radius[:, None] * (np.cos(angle)[:, None] * a + np.sin(angle)[:, None] * b)
    beside = model.solid.project(model.metres(beside))
    return (
        np.concatenate([x, model.scaled(beside)]),
        np.concatenate([normals, model.solid.gradient(beside)]),
        np.concatenate([colors, np.repeat(colors, copies, axis=0)]),
    )


def node_balls(model: Model, nodes: Nodes, cut: Cut) -> Surfels:
    """Balls about the nodes behind the cut, and about those before it whose octants it cuts."""
    x = model.scaled(nodes.positions)
    spacing = nodes.spacing / model.size
    chosen = cut.before(x) < SHEET * spacing
    x, kinds = x[chosen], nodes.kinds[chosen]
    normals = even_directions(BALL_SURFELS)
    radius = BALL * spacing
    palette = np.float32([color for _, color in KINDS.values()])
    return discs(
        (x[:, None] + radius * normals).reshape(-1, 3),
        np.tile(normals, (len(x), 1)),
        np.full(len(x) * BALL_SURFELS, 2.6 * radius / np.sqrt(BALL_SURFELS)),
        np.repeat(palette[kinds], BALL_SURFELS, axis=0),
    )


def even_directions(count: int) -> Floats:
    """Unit vectors in all directions, along a spiral from pole to pole; shape (count, 3)."""
    y = 1 - (2 * np.arange(count) + 1) / count
    turn = np.pi * (3 - np.sqrt(5)) * np.arange(count)
    ring = np.sqrt(1 - y * y)
    return np.stack([ring * np.cos(turn), y, ring * np.sin(turn)], axis=1)


def discs(positions: Floats, normals: Floats, radii: Floats, colors: Floats) -> Surfels:
    a, b = tangents(normals)
    return Surfels(positions, radii[:, None] * a, radii[:, None] * b, colors)


class _Stage:
    """Draws surfels from one place, lit from over the camera's left shoulder."""

    def __init__(self, camera: Camera, cut: Cut, renderer: Renderer) -> None:
        self._camera, self._renderer = camera, renderer
        right, _, forward = camera.axes
        toward = -0.5 * right + np.array([0.0, 1.2, 0.0]) - 0.6 * forward
        self._light = Light(direction=tuple(toward.tolist()))

    def backdrop(self, surfels: Surfels, ground: float) -> Floats:
        """Display colors 0..1 of surfels on a floor in the studio, (height, width, 4)."""
        return self._draw(surfels, "studio", ground)

    def layer(self, surfels: Surfels) -> Floats:
        """Display colors 0..1 of surfels alone, (height, width, 4)."""
        return self._draw(surfels, None, None) if len(surfels.positions) else np.zeros((HEIGHT, WIDTH, 4))

    def _draw(self, surfels: Surfels, background: str | None, ground: float | None) -> Floats:
        look = Look(specular=0.25)
        picture = self._renderer.render(
            *surfels,
            self._camera,
            ground=ground,
            background=background,
            light=self._light,
            look=look,
            supersample=SMOOTH,
        )
        return picture / 255.0


# --- the cut ---------------------------------------------------------------------------------------------------------


def distance_in_pixels(model: Model, cut: Cut, camera: Camera) -> Floats:
    """Distance from the surface where each pixel's ray meets the cut; not finite where there is nothing to show."""
    width, height = WIDTH // COARSE, HEIGHT // COARSE
    column, row = np.meshgrid(np.arange(width) + 0.5, np.arange(height) + 0.5)
    right, up, forward = camera.axes
    focal = camera.focal / COARSE
    rays = forward + ((column - width / 2) / focal)[..., None] * right - ((row - height / 2) / focal)[..., None] * up
    eye = np.asarray(camera.eye)
    with np.errstate(divide="ignore"):
        depth = (cut.place - eye[cut.axis]) / rays[..., cut.axis]
    x = eye + depth[..., None] * rays
    near = (np.abs(x) < model.half + 1.5 * REACH).all(axis=-1) & (depth > 0) & (x[..., 1] > -model.half[1])
    found = np.full(near.shape, 1.5 * REACH, np.float32)
    found[near] = np.minimum(model.distance(x[near]), 1.5 * REACH)
    fine = Image.fromarray(found).resize((WIDTH, HEIGHT), Image.Resampling.BILINEAR)
    return np.asarray(fine, np.float64)


@dataclass(frozen=True)
class Scale:
    """Bands of distance, in units of the solid's size."""

    step: float
    """width of a band"""
    deepest: int
    """bands inside"""
    farthest: int
    """bands outside"""
    step_text: float
    """width of a band in `unit`"""
    unit: str

    @staticmethod
    def of(field: Floats, size: float) -> Scale:
        deepest = max(-float(field.min()), 0.02)
        power, unit = next(
            (p, u) for p, u in ((1e3, "km"), (1.0, "m"), (1e-2, "cm"), (1e-3, "mm"), (1e-6, "um"), (1e-9, "nm"))
            if deepest * size >= p or p == 1e-9
        )  # fmt: skip
        rough = deepest * size / power / BANDS
        ten = 10.0 ** np.floor(np.log10(rough))
        nice = ten * min((1, 2, 2.5, 5, 10), key=lambda n: abs(np.log(n * ten / rough)))
        step = nice * power / size
        return Scale(step, int(np.ceil(deepest / step)), max(int(REACH / step), 1), float(nice), unit)

    def colors(self, distance: Floats) -> Floats:
        """Display colors and opacity of the bands, (..., 4)."""
        band = np.floor(distance / self.step)
        inside = _between(WARM, (-band - 1) / max(self.deepest - 1, 1))
        outside = _between(COOL, band / max(self.farthest - 1, 1))
        fade = np.clip(1 - band / self.farthest, 0, 1)
        warm = distance < 0
        color = np.where(warm[..., None], inside, outside)
        return np.concatenate([color, np.where(warm, INSIDE_OPACITY, OUTSIDE_OPACITY * fade)[..., None]], axis=-1)


def _between(colors: Floats, share: Floats) -> Floats:
    """Colors along a row of them, at 0..1 of its length."""
    place = np.clip(share, 0, 1) * (len(colors) - 1)
    return np.stack([np.interp(place, np.arange(len(colors)), channel) for channel in colors.T], axis=-1)


def paint(field: Floats, scale: Scale) -> Floats:
    """The cut: bands with thin lines between them and a strong one along the surface, (height, width, 4)."""
    picture = scale.colors(field)
    slope = np.maximum(np.hypot(*np.gradient(field)), 1e-9)
    nearest = np.round(field / scale.step)
    line = np.clip(1.0 - np.abs(field - nearest * scale.step) / slope, 0, 1)
    shown = (nearest > -scale.deepest) & (nearest < scale.farthest) & (nearest != 0)
    strength = np.where(field < 0, 0.4, 0.4 * np.clip(1 - field / (scale.step * scale.farthest), 0, 1))
    picture = over(picture, with_opacity(np.where(field < 0, 0.0, 0.25), line * shown * strength))
    edge = np.clip(2.0 - np.abs(field) / slope, 0, 1)
    return over(picture, with_opacity(np.zeros_like(field), edge, INK))


def with_opacity(gray: Floats, opacity: Floats, color: tuple[float, float, float] = (1.0, 1.0, 1.0)) -> Floats:
    flat = gray[..., None] * np.ones(3) if color == (1.0, 1.0, 1.0) else np.broadcast_to(color, (*gray.shape, 3))
    return np.concatenate([flat, opacity[..., None]], axis=-1)


def over(below: Floats, above: Floats) -> Floats:
    """One picture laid over another, both (height, width, 4) display colors and opacity in 0..1."""
    a, b = above[..., 3:], below[..., 3:]
    alpha = a + (1 - a) * b
    color = (a * above[..., :3] + (1 - a) * b * below[..., :3]) / np.maximum(alpha, 1e-9)
    return np.concatenate([color, alpha], axis=-1)


# --- words -----------------------------------------------------------------------------------------------------------


def labelled(picture: Floats, scale: Scale, nodes: Nodes, name: str) -> NDArray[np.uint8]:
    return np.rint(255 * picture[..., :3]).astype(np.uint8)
