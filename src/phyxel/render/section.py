"""The plane in which a solid is cut open, and what a camera sees in it: distance to the surface, in coloured bands."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from PIL import Image

from phyxel.region import Floats
from phyxel.render.camera import Camera
from phyxel.render.inside.pen import INK, Pen, layer_of, over
from phyxel.solid.solid import Solid
from phyxel.units import decimals, length_unit

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
    """Of the solid in a plane."""
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
