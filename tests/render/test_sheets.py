"""Sheets: seen, lit and casting shadows on both sides."""

import numpy as np
import pytest

from phyxel.render.camera import Camera
from phyxel.render.splat import Renderer
from phyxel.render.stuff import SHEET, marks
from phyxel.surface.discs import Rest
from phyxel.surface.ring import Ring
from phyxel.surface.surfels import Surfels
from tests.surface.motions import motion

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


def test_a_fold_has_no_holes_and_hardly_sticks_out(renderer):
    """A flat sheet bent to a half pipe of radius R = 4 spacings: seen from its side all of the pipe is opaque, and its
    outline is no farther out than discs of radius r on a round one are, r²/2R = 0.14 spacings, and half a pixel."""
    count, R, unit = 13, 4.0, 0.1
    place = np.arange(count) - (count - 1) / 2
    x, z = (axis.reshape(-1) for axis in np.meshgrid(place, place, indexing="ij"))
    X, corner = np.stack([x, 0 * x, z], axis=1), np.arange(count**2).reshape(count, count)
    quads = np.stack([corner[:-1, :-1], corner[:-1, 1:], corner[1:, 1:], corner[1:, :-1]], axis=2).reshape(-1, 4)
    cpu = renderer.device
    ring = Ring.around(X, np.tile([0.0, 1.0, 0.0], (len(X), 1)), quads, cpu)
    rest = Rest(X, ring.normals, np.full(X.shape, 0.7), unit, ring.radii, ring.axes)
    surfels = Surfels(rest, X, cpu, None, ring.values)
    bent = np.stack([R * np.sin(x / R), R * np.cos(x / R) - R, z], axis=1) - X
    surfels.follow(motion(bent, unit, cpu))
    far, height = 40.0, 240
    camera = Camera(eye=(far, -R * unit, 0), target=(0, -R * unit, 0), width=height, height=height, fov=2.0)
    alpha = renderer.render(
        surfels.position, surfels.axis_a, surfels.axis_b, surfels.color, camera, background=None,
        marks=marks(SHEET, len(surfels)),
    )[..., 3]  # fmt: skip
    pixel = 2 * far * np.tan(np.radians(1.0)) / height
    rows = (height / 2 - 0.5 - np.arange(height)) * pixel / unit  # spacings above the axis of the pipe
    columns = np.abs((np.arange(height) + 0.5 - height / 2) * pixel / unit)
    middle = columns < 5
    assert (alpha[(rows > 0.4) & (rows < R - 0.05)][:, middle] == 255).all()
    sagitta = float(ring.radii.max()) ** 2 / (2 * R)
    assert alpha[rows > R + sagitta + 0.5 * pixel / unit + 0.02][:, middle].max() == 0
