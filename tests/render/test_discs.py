"""Single ellipses: what part of each pixel they cover, against the same integral done by brute force."""

from __future__ import annotations

import numpy as np
import pytest

from phyxel.render.camera import Camera
from phyxel.render.splat import Renderer

CAMERA = Camera(eye=(0, 0, 5), target=(0, 0, 0), fov=8, width=72, height=56)
PIXEL = 5.0 / CAMERA.focal
"""Width of a pixel at the target [m]."""
FINE = 24


@pytest.fixture(scope="module")
def renderer() -> Renderer:
    return Renderer("cpu")


def half_axes(a: float, b: float, turn: float, tilt: float = 0.0) -> tuple[np.ndarray, np.ndarray]:
    """Half axes of lengths a, b [pixels], turned in the picture [rad], then leaning back about the horizontal."""
    lean = np.array([[1, 0, 0], [0, np.cos(tilt), -np.sin(tilt)], [0, np.sin(tilt), np.cos(tilt)]])
    axis_a, axis_b = np.array([[np.cos(turn), np.sin(turn), 0], [-np.sin(turn), np.cos(turn), 0]]) @ lean.T
    return PIXEL * a * axis_a, PIXEL * b * axis_b


def coverage(renderer: Renderer, centre: np.ndarray, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    arrays = [np.array([vector], np.float32) for vector in (centre, a, b, (1, 1, 1))]
    return renderer.render(*arrays, CAMERA, background=None)[..., 3] / 255


def integrated(centre: np.ndarray, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Part of FINE² rays through each pixel that meet the ellipse: d t = c + u a + v b with u² + v² < 1."""
    y, x = (np.mgrid[: CAMERA.height * FINE, : CAMERA.width * FINE] + 0.5) / FINE
    rays = np.stack([x - CAMERA.width / 2, CAMERA.height / 2 - y, np.full_like(x, -CAMERA.focal)], axis=-1)
    c = centre - np.asarray(CAMERA.eye)
    u, v, w = (rays @ axis for axis in (np.cross(b, c), np.cross(c, a), np.cross(a, b)))
    inside = (u**2 + v**2 < w**2).reshape(CAMERA.height, FINE, CAMERA.width, FINE)
    return inside.mean(axis=(1, 3))


@pytest.mark.parametrize(
    "shape",
    [
        (20.0, 20.0, 0.0, 0.0),
        (30.0, 3.0, 0.7, 0.0),
        (24.0, 8.0, 2.0, 1.2),
        (20.0, 20.0, 0.3, 1.54),
        (1.5, 0.5, 0.4, 0.0),
    ],
    ids=["round", "10:1", "3:1 leaning", "nearly edge on", "a pixel"],
)
def test_pixels_are_covered_by_what_lies_in_them(renderer, shape):
    """An edge along the sixteen lines of a pixel may be off by half their distance, 3 %; others by less, and all
    together they cancel: what is covered in the end is right to a tenth of one pixel."""
    centre = np.array([0.31, -0.17, 0.0]) * PIXEL
    a, b = half_axes(*shape)
    drawn, true = coverage(renderer, centre, a, b), integrated(centre, a, b)
    assert np.abs(drawn - true).max() < 0.03
    assert np.abs(drawn - true)[(true > 0) & (true < 1)].mean() < 0.01
    assert drawn.sum() == pytest.approx(true.sum(), abs=0.1)


def test_an_ellipse_covers_its_area(renderer):
    """π a b, to a few hundredths of one pixel."""
    for turn in (0.0, 0.4, 1.3):
        centre = np.array([0.31 + turn, -0.17, 0.0]) * PIXEL
        assert coverage(renderer, centre, *half_axes(25.0, 5.0, turn)).sum() == pytest.approx(np.pi * 125, abs=0.1)


def test_a_thin_ellipse_keeps_its_light_as_it_moves_and_turns(renderer):
    """Half axes of 16 and 0.15 pixels: π a b = 7.5 pixels, however it lies to the pixels. A pixel in its way has a
    share of about 0.3, in bytes of 1/255 and places of 1/512: 1 %."""
    expected = np.pi * 16 * 0.15
    for step in range(24):
        shift = np.array([np.cos(step), np.sin(2.0 * step), 0.0]) * PIXEL
        light = coverage(renderer, shift, *half_axes(16.0, 0.15, 0.13 * step)).sum()
        assert light == pytest.approx(expected, rel=0.01)


def test_small_discs_count_alike_wherever_they_lie(renderer):
    """A wall of discs far below a pixel, in stripes of two colors finer than pixels: every pixel shows their mean,
    which discs seen only at the pixels' middles would miss at random."""
    step = 0.22 * PIXEL
    x, y = (axis.ravel() for axis in np.meshgrid(*(np.arange(-140, 141) * step,) * 2))
    positions = np.stack([x + 0.03 * PIXEL, y, 0 * x], axis=1)
    a, b = (np.tile(0.2 * PIXEL * axis, (len(x), 1)) for axis in np.eye(3)[:2])
    stripes = np.arange(-140, 141) % 2
    colors = np.repeat(np.tile(stripes, 281)[:, None], 3, axis=1) * 0.8 + 0.1
    picture = renderer.render(*(np.float32(array) for array in (positions, a, b, colors)), CAMERA, background=None)
    middle = picture[12:44, 20:52]
    assert (middle[..., 3] == 255).all()
    assert middle[..., 0].std() < 0.03 * middle[..., 0].mean()
