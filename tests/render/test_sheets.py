"""Sheets: seen, lit and casting shadows on both sides."""

import numpy as np
import pytest

from phyxel.render.camera import Camera
from phyxel.render.splat import Renderer
from phyxel.render.stuff import SHEET, marks

ACROSS, COUNT = 1.0, 40


def picture(renderer, eye, tilt=0.0, turned=False, sheet=True, ground=None, background=None):
    """A square sheet in y = 0.6, tilted about z by so many degrees, seen from somewhere."""
    place = (np.arange(COUNT) + 0.5) / COUNT * ACROSS - ACROSS / 2
    x, z = (axis.reshape(-1) for axis in np.meshgrid(place, place, indexing="ij"))
    cos, sin = np.cos(np.radians(tilt)), np.sin(np.radians(tilt))
    positions = np.stack([cos * x, 0.6 + sin * x, z], axis=1)
    radius = 1.3 * ACROSS / COUNT
    a, b = np.tile([0.0, 0.0, radius], (len(x), 1)), np.tile([cos * radius, sin * radius, 0.0], (len(x), 1))
    a, b = (b, a) if turned else (a, b)
    camera = Camera(eye=np.array(eye), target=np.array([0.0, 0.6, 0.0]), up=(0, 0, 1), width=120, height=120, fov=40)
    return renderer.render(
        *(field.astype(np.float32) for field in (positions, a, b, np.full(positions.shape, 0.7))),
        camera,
        ground=ground,
        background=background,
        marks=marks(SHEET if sheet else 0, len(positions)),
    ).astype(float)


@pytest.fixture(scope="module")
def renderer():
    return Renderer("cpu")


def test_both_sides_are_whole(renderer):
    """The same pixels are covered from above and from below, all of its inside opaque, and the back is no mere
    silhouette of a closed body's: without the mark there is nothing."""
    above, below = (picture(renderer, (0, 0.6 + way, 0.0)) for way in (2.0, -2.0))
    cover = above[..., 3] / 255
    side = 2 * np.tan(np.radians(20)) * 2.0 / 120
    overhang = 2 * 0.8 * ACROSS / COUNT
    assert cover.sum() * side**2 == pytest.approx((ACROSS + overhang) ** 2, rel=0.03)
    assert np.abs(above[..., 3] - below[:, ::-1, 3]).max() < 5  # of 255: rounding at the outline
    assert (above[30:90, 30:90, 3] == 255).all()
    assert picture(renderer, (0, -1.4, 0.0), sheet=False)[..., 3].max() == 0


def test_each_side_is_lit_by_what_it_sees(renderer):
    """The side toward the light is the brighter one, whichever is called the front; the other is not black."""
    pictures = [[picture(renderer, (0, 0.6 + way, 0.0), 10.0, turned) for way in (2.0, -2.0)] for turned in (0, 1)]
    for above, below in pictures:
        top, bottom = (one[40:80, 40:80, :3].mean() for one in (above, below))
        assert 30 < bottom < 0.8 * top
    assert np.abs(np.subtract(*pictures)).max() < 2


def test_the_shadow_is_the_same_whichever_way_it_looks(renderer):
    up, down = (
        picture(renderer, (0, 3.0, -3.0), turned=turned, ground=0.0, background="studio") for turned in (False, True)
    )
    assert np.abs(up - down).max() < 2
    bare = picture(renderer, (0, 3.0, -3.0), sheet=False, turned=True, ground=0.0, background="studio")
    assert np.abs(up - bare).max() > 30
