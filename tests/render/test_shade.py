"""Light against closed forms: furnaces, Oren and Nayar's law, shadows, crevices, and how looks differ."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import warp as wp

from phyxel.device import launch
from phyxel.errors import PhyxelError
from phyxel.material.look import LOOKS, Look, look_named
from phyxel.render.camera import Camera
from phyxel.render.cast import Actor, Cast, LookArrays, make_surfels, marks, stuff_table
from phyxel.render.shade import Light, light_direction, scattered
from phyxel.render.shadow import ShadowMap, bounds_of, place_map
from phyxel.render.splat import Renderer
from tests.render.scenes import sphere

CAMERA = Camera(eye=(0, 0, 5), target=(0, 0, 0), fov=35, width=160, height=120)
FURNACE = Light(key=(0, 0, 0), sky=(1, 1, 1), bounce=(1, 1, 1))
WHITE = (1.0, 1.0, 1.0)
FULL = 255 * (1.055 * 0.9 ** (1 / 2.4) - 0.055)
"""Byte for light of 1: the film curve makes 0.6 + 0.4 - 0.625 * 0.4² = 0.9 of it."""


@pytest.fixture(scope="module")
def renderer() -> Renderer:
    return Renderer("cpu")


def joined(*scenes):
    return [np.concatenate(arrays) for arrays in zip(*scenes, strict=True)]


@pytest.mark.parametrize("look", [Look(), LOOKS["clay"], Look(shine=1.0, blur=0.0)], ids=["matte", "clay", "mirror"])
def test_a_white_thing_in_a_white_furnace_cannot_be_seen(renderer, look):
    """In even light from all sides every opaque surface that absorbs nothing gives back just that light, whatever part
    of it it mirrors."""
    picture = renderer.render(*sphere(color=WHITE), CAMERA, look=look, light=FURNACE, background=None)
    seen = picture[picture[..., 3] == 255][:, :3]
    assert len(seen) > 2000
    assert np.abs(seen - FULL).max() <= 1.0


def test_crevices_are_dim_and_open_places_are_not(renderer):
    """Two gray spheres that touch, in a furnace: where they meet each hides half the world from the other; their far
    sides see all of it, as a sphere by itself does."""
    gray, options = (0.5, 0.5, 0.5), {"look": Look(shine=0.0), "light": FURNACE, "background": None}
    lone = renderer.render(*sphere(radius=0.6, color=gray), CAMERA, **options)[60, 80, 0]
    pair = joined(*(sphere(radius=0.6, center=(x, 0, 0), color=gray) for x in (-0.6, 0.6)))
    picture = renderer.render(*pair, CAMERA, **options)
    row = picture[60, :, 0].astype(int)
    assert (row[78:82].max() / float(lone)) ** 2.2 < 0.75, "in linear light"
    facing = np.abs(np.abs(np.arange(160) - 79.5) - 0.9 * CAMERA.focal / 5) < 3
    assert facing.sum() > 10
    assert np.abs(row[facing] - int(lone)).max() <= 2


@wp.kernel
def scatter(
    first: int,
    table: wp.array(dtype=LookArrays),
    cosines: wp.array(dtype=wp.vec3),
    light: wp.array(dtype=float),
):
    i = first + wp.tid()
    light[i] = scattered(table[0], cosines[i][0], cosines[i][1], cosines[i][2])


@pytest.mark.slow
def test_rough_skins_scatter_by_oren_and_nayar():
    """cos θi (A + B max(0, cos Δφ) sin α tan β), α the larger and β the smaller of θi and θr; with σ = 0, Lambert's."""
    random = np.random.default_rng(1)
    out, into = random.uniform(0, 1.45, (2, 500))
    turn = random.uniform(0, 2 * np.pi, 500)
    between = np.cos(out) * np.cos(into) + np.sin(out) * np.sin(into) * np.cos(turn)
    cosines = np.float32(np.stack([np.cos(into), np.cos(out), between], axis=1))
    for sigma in (0.0, 0.3, 0.7):
        found = wp.zeros(500, dtype=float, device="cpu")
        table = stuff_table([Look(wrap=0.0, powder=sigma)], wp.get_device("cpu"))
        rays = wp.array(cosines, dtype=wp.vec3, device="cpu")
        launch(scatter, 500, [table, rays, found], wp.get_device("cpu"))
        a, b = 1 - 0.5 * sigma**2 / (sigma**2 + 0.33), 0.45 * sigma**2 / (sigma**2 + 0.09)
        steep, flat = np.maximum(out, into), np.minimum(out, into)
        law = np.cos(into) * (a + b * np.maximum(np.cos(turn), 0) * np.sin(steep) * np.tan(flat))
        assert found.numpy() == pytest.approx(law, abs=1e-5)


def test_the_shadow_of_a_sphere_has_its_place_and_its_area():
    """Light along l casts a sphere of radius r, its middle h above the ground, as an ellipse about c - h (l_x, l_z)/l_y
    of area π r²/l_y. High above the ground there is no contact, and the map loses 55 % of the light. Texels that a disc
    touches are dark: the ellipse is larger by at most a texel all around."""
    device = wp.get_device("cpu")
    shadows = ShadowMap(256, device)
    positions, a, b, colors = sphere(20000, radius=1.0, center=(0.3, 4.0, -0.2), color=(0.9, 0.1, 0.1))
    surfels = make_surfels(positions, a, b, colors, marks(0, len(positions)), device)
    to_light = light_direction(Light(direction=(0.5, 1.0, 0.25)))
    place = place_map(*bounds_of(surfels.positions, device), 0.0, to_light, 256, 2.0)
    shadows.draw(surfels, stuff_table([LOOKS["gummy"]], device), place)
    shadows.light_up(place)
    red, green, _ = shadows.light.numpy()[shadows.darkness.numpy() > 0.3].T
    assert (red > green + 0.1).all(), "what shines through has the color of the sphere"
    shadows.draw(surfels, stuff_table([LOOKS["clay"]], device), place)
    shadows.light_up(place)
    dark = shadows.darkness.numpy().reshape(256, 256).astype(float)
    z, x = (np.mgrid[:256, :256] + 0.5) * place.texel
    area = dark.sum() * place.texel**2 / 0.55
    around = np.pi * (1 + 1 / to_light[1])
    assert 0 < area - np.pi / to_light[1] < around * place.texel
    assert (dark * x).sum() / dark.sum() + place.corner[0] == pytest.approx(0.3 - 4 * 0.5, abs=0.02)
    assert (dark * z).sum() / dark.sum() + place.corner[1] == pytest.approx(-0.2 - 4 * 0.25, abs=0.02)


def lit_sphere(renderer: Renderer, look: Look, **light) -> np.ndarray:
    options = {"light": Light(**{"direction": (0.0, 1.0, 0.0), **light}), "background": None}
    return renderer.render(*sphere(20000, color=(0.6, 0.5, 0.4)), CAMERA, look=look, **options).astype(float)


def test_looks_differ_as_they_should(renderer):
    dark = {"sky": (0, 0, 0), "bounce": (0, 0, 0)}
    dull = {name: replace(look, shine=0.0) for name, look in LOOKS.items()}
    below = {name: lit_sphere(renderer, look, **dark)[67:70, 75:85, :3].mean() for name, look in dull.items()}
    assert below["clay"] < 1 and below["stone"] < 1, "past the terminator nothing is lit"
    assert below["wax"] > 40 and below["gummy"] > 40, "but where light goes through"

    aslant = {name: lit_sphere(renderer, look, direction=(0.0, 0.5, 1.0)) for name, look in LOOKS.items()}
    brightest = {name: picture[..., :3].max() for name, picture in aslant.items()}
    assert brightest["gummy"] > brightest["wax"] > brightest["matte"] > brightest["clay"]

    def speckle(name: str) -> float:
        return float(np.abs(np.diff(aslant[name][50:70, 60:100, 0], 2, axis=1)).mean())

    assert speckle("stone") > 3 * speckle("clay")


def test_grain_stays_with_its_surfel():
    """Marks of a body do not depend on how many surfels there are before it."""
    device = wp.get_device("cpu")

    def actor(count: int, row: int) -> Actor:
        fields = (wp.zeros(count, dtype=wp.vec3, device=device) for _ in range(4))
        return Actor(*fields, row, np.eye(3), np.zeros(3))

    cast = Cast(device)
    alone = cast.gathered([actor(50, 3)]).marks.numpy().copy()
    after = cast.gathered([actor(70, 1), actor(50, 3)]).marks.numpy()[70:]
    assert (alone == after).all()
    assert len(np.unique(alone)) == 50 and (alone & 255 == 3).all()


def test_numbers_of_surfels_may_change_from_picture_to_picture(renderer):
    for count in (3000, 6000, 3100, 5900, 40):
        scene = sphere(count)
        assert (renderer.render(*scene, CAMERA) == Renderer("cpu").render(*scene, CAMERA)).all()
    buffers = renderer.buffers
    assert buffers is not None
    before = buffers[0]._discs.ptr
    renderer.render(*sphere(6000), CAMERA)
    assert buffers[0]._discs.ptr == before, "room once made is kept"


def test_unknown_looks_are_refused():
    with pytest.raises(PhyxelError, match=r'look = "jelly": not known; there are gummy, wax, clay, stone, matte'):
        look_named("bear", "jelly")
