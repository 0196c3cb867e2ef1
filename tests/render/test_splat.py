"""Pictures against what geometry and light say they must show."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import warp as wp

from phyxel.contact.table import ColliderTable
from phyxel.device import initialise
from phyxel.errors import PhyxelError
from phyxel.material.look import LOOKS
from phyxel.render import tiles
from phyxel.render.camera import Camera
from phyxel.render.cast import SHEET, marks
from phyxel.render.shade import Light
from phyxel.render.splat import Renderer
from phyxel.surface.discs import Rest
from phyxel.surface.motion import Motion
from phyxel.surface.ring import Ring
from phyxel.surface.surfels import Surfels
from phyxel.surface.walls import Walls
from tests.render.scenes import sphere

CAMERA = Camera(eye=(0, 0, 5), target=(0, 0, 0), fov=35, width=320, height=240)


@pytest.fixture(scope="module")
def renderer() -> Renderer:
    return Renderer("cpu")


def apparent_radius(camera: Camera, radius: float, distance: float) -> float:
    """Radius in pixels of a sphere in the middle of the picture: focal * tan(asin(R / d))."""
    return camera.focal * radius / np.sqrt(distance**2 - radius**2)


def from_middle(camera: Camera) -> np.ndarray:
    """Distance of each pixel from the middle of the picture, in pixels."""
    y, x = np.mgrid[: camera.height, : camera.width]
    return np.hypot(x + 0.5 - camera.width / 2, y + 0.5 - camera.height / 2)


def test_silhouette_of_a_sphere_has_the_area_of_its_projection(renderer):
    alpha = renderer.render(*sphere(10000), CAMERA, background=None)[..., 3] / 255
    assert alpha.sum() == pytest.approx(np.pi * apparent_radius(CAMERA, 1, 5) ** 2, rel=0.01)


def test_sphere_has_no_holes_and_no_halo(renderer):
    alpha = renderer.render(*sphere(), CAMERA, background=None)[..., 3]
    distance, radius = from_middle(CAMERA), apparent_radius(CAMERA, 1, 5)
    assert (alpha[distance < radius - 1.5] == 255).all()
    assert (alpha[distance > radius + 2.0] == 0).all()


def test_edge_is_antialiased(renderer):
    alpha = renderer.render(*sphere(), CAMERA, background=None)[..., 3]
    edge = np.abs(from_middle(CAMERA) - apparent_radius(CAMERA, 1, 5)) < 1.0
    between = (alpha[edge] > 20) & (alpha[edge] < 235)
    assert between.mean() > 0.3


def test_the_outline_does_not_crawl(renderer):
    """Whichever way it lies to the pixels, a sphere covers the same area: 3e-4 of it is 3 of some 11,000 pixels, where
    the outline has 370, each a byte or a few places of 512 off."""
    areas = []
    for step in range(8):
        aside = 0.13 * step * 5 / CAMERA.focal
        camera = Camera(eye=(aside, 0.4 * aside, 5), target=(aside, 0.4 * aside, 0), fov=35, width=320, height=240)
        areas.append(renderer.render(*sphere(), camera, background=None)[..., 3].sum() / 255)
    assert np.ptp(areas) < 3e-4 * np.mean(areas)


def test_tiny_surfels_leave_no_gaps(renderer):
    """Discs far below a pixel grow to one; a sphere seen from afar stays closed."""
    camera = Camera(eye=(0, 0, 60), target=(0, 0, 0), width=160, height=120)
    alpha = renderer.render(*sphere(20000), camera, background=None)[..., 3]
    assert (alpha[from_middle(camera) < apparent_radius(camera, 1, 60) - 1.0] == 255).all()


def test_nearest_surface_wins(renderer):
    behind = sphere(center=(0, 0, -1.5), radius=1.2, color=(0.1, 0.1, 0.9))
    front = sphere(center=(0, 0, 0.5), radius=0.6, color=(0.9, 0.1, 0.1))
    both = [np.concatenate(pair) for pair in zip(behind, front, strict=True)]
    picture = renderer.render(*both, CAMERA, background=None).astype(int)
    distance = from_middle(CAMERA)
    inner = distance < apparent_radius(CAMERA, 0.6, 4.5) - 2
    ring = (distance > apparent_radius(CAMERA, 0.6, 4.5) + 2) & (distance < apparent_radius(CAMERA, 1.2, 6.5) - 2)
    assert (picture[inner, 0] > picture[inner, 2] + 30).all()
    assert (picture[ring, 2] > picture[ring, 0] + 30).all()


def test_side_toward_the_light_is_brighter(renderer):
    for look in (LOOKS["matte"], LOOKS["gummy"]):
        light = Light(direction=(-1.0, 0.3, 0.3))
        picture = renderer.render(*sphere(), CAMERA, light=light, look=look, background=None)[..., :3].astype(float)
        left, right = picture[120, 160 - 60 : 160 - 30].mean(), picture[120, 160 + 30 : 160 + 60].mean()
        assert left > 1.15 * right


def test_shading_is_smooth(renderer):
    """No speckle: second differences along a row through a matte sphere stay small."""
    picture = renderer.render(*sphere(), CAMERA, look=LOOKS["matte"], background=None)[..., :3].astype(float)
    row = picture[120, 160 - 60 : 160 + 60].mean(axis=1)
    assert np.abs(np.diff(row, 2)).max() < 4.0


def test_shadow_darkens_the_ground_beneath_only(renderer):
    camera = Camera(eye=(0, 3, 8), target=(0, 0.5, 0), fov=45, width=320, height=240)
    scene = sphere(center=(0, 1, 0))
    light = Light(direction=(0, 1, 0))
    with_object = renderer.render(*scene, camera, ground=0.0, light=light)[..., :3].astype(int)
    nothing = np.zeros((0, 3), np.float32)
    without = renderer.render(nothing, nothing, nothing, nothing, camera, ground=0.0, light=light)[..., :3].astype(int)
    change = (with_object - without).mean(axis=2)
    x, y = pixel(camera, (0.0, 0.0, 0.95))
    assert change[y, x] < -40
    for far in ((3.0, 0.0, 0.0), (-3.0, 0.0, 1.0), (0.0, 0.0, 4.0)):
        x, y = pixel(camera, far)
        assert abs(change[y, x]) <= 1


def pixel(camera: Camera, point: tuple[float, float, float]) -> tuple[int, int]:
    right, up, forward = camera.axes @ (np.asarray(point) - np.asarray(camera.eye))
    scale = camera.focal / forward
    return int(camera.width / 2 + scale * right), int(camera.height / 2 - scale * up)


def test_ground_hides_what_is_below_it(renderer):
    camera = Camera(eye=(0, 3, 8), target=(0, 0, 0), width=320, height=240)
    picture = renderer.render(*sphere(color=(0.9, 0.1, 0.1)), camera, ground=0.0).astype(int)
    red = picture[..., 0] - picture[..., 1] > 60
    x, top = pixel(camera, (0, 0.6, 0.8))
    assert red[top, x]
    x, below = pixel(camera, (0, -0.7, 0.7))
    assert not red[below, x]


def test_transparent_background_and_shadow_alpha(renderer):
    camera = Camera(eye=(0, 3, 8), target=(0, 0.5, 0), fov=45, width=320, height=240)
    picture = renderer.render(
        *sphere(center=(0, 1, 0)), camera, ground=0.0, background=None, light=Light(direction=(0, 1, 0))
    )
    assert picture[0, 0, 3] == 0 and picture[-1, 0, 3] == 0
    x, y = pixel(camera, (0.0, 1.0, 1.0))
    assert picture[y, x, 3] == 255
    x, y = pixel(camera, (0.0, 0.0, 0.95))
    assert 30 < picture[y, x, 3] < 255
    assert picture[y, x, :3].max() == 0


def test_background_color_comes_out_as_given(renderer):
    picture = renderer.render(*sphere(), CAMERA, background=(0.2, 0.4, 1.0))
    assert np.abs(picture[0, 0].astype(int) - [51, 102, 255, 255]).max() <= 1


@pytest.mark.parametrize("ground", [None, 0.0])
def test_empty_scene_is_background(renderer, ground):
    nothing = np.zeros((0, 3), np.float32)
    picture = renderer.render(nothing, nothing, nothing, nothing, CAMERA, ground=ground, background=None)
    assert picture.shape == (240, 320, 4)
    assert (picture == 0).all()


def test_surfels_that_are_not_finite_are_left_out(renderer):
    scene = sphere()
    clean = renderer.render(*scene, CAMERA, ground=-1.0)
    bad = [np.concatenate([array, array[:4]]) for array in scene]
    for k, array in enumerate(bad):
        array[-1 - k] = np.nan
    bad[0][-1] = np.inf
    assert (renderer.render(*bad, CAMERA, ground=-1.0) == clean).all()


def test_surfels_behind_and_across_the_eye(renderer):
    """Inside a sphere all fronts look away; one surfel through the eye and one behind it do no harm."""
    positions, a, b, colors = sphere()
    inside = Camera(eye=(0, 0, 0), target=(0, 0, -1), width=160, height=120)
    assert (renderer.render(positions, a, b, colors, inside, background=None)[..., 3] == 0).all()
    extra = np.array([[0, 0, 5], [0, 0, 4.99], [0, 0, 9]], np.float32)
    sides = np.tile(np.float32([0.3, 0, 0]), (3, 1)), np.tile(np.float32([0, 0.3, 0]), (3, 1))
    more = [np.concatenate(pair) for pair in zip((positions, a, b, colors), (extra, *sides, extra * 0), strict=True)]
    alpha = renderer.render(*more, CAMERA, background=None)[..., 3]
    assert (alpha == renderer.render(positions, a, b, colors, CAMERA, background=None)[..., 3]).all()


def test_stretched_ellipse_covers_its_area(renderer):
    """One ellipse of half axes 0.8 and 0.2 facing the eye from 5 m."""
    arrays = [np.array([vector], np.float32) for vector in ((0, 0, 0), (0.8, 0, 0), (0, 0.2, 0), (1, 1, 1))]
    alpha = renderer.render(*arrays, CAMERA, background=None)[..., 3] / 255
    assert alpha.sum() == pytest.approx(np.pi * 0.8 * 0.2 * (CAMERA.focal / 5) ** 2, rel=0.02)
    assert (renderer.render(arrays[0], arrays[2], arrays[1], arrays[3], CAMERA, background=None) == 0).all()


def test_supersampled_picture_agrees(renderer):
    plain = renderer.render(*sphere(), CAMERA, background=None).astype(int)
    fine = renderer.render(*sphere(), CAMERA, background=None, supersample=2).astype(int)
    assert fine.shape == plain.shape
    middle = from_middle(CAMERA) < 60
    assert np.abs(plain - fine)[middle].mean() < 2.0
    assert abs(plain[..., 3].sum() / fine[..., 3].sum() - 1) < 0.01


def test_warp_arrays_draw_the_same_picture(renderer):
    scene = sphere()
    arrays = [wp.array(array, dtype=wp.vec3, device="cpu") for array in scene]
    assert (renderer.render(*arrays, CAMERA) == renderer.render(*scene, CAMERA)).all()


@pytest.mark.slow
def test_same_bits_every_time_and_on_any_number_of_threads(renderer, tmp_path):
    first = renderer.render(*sphere(), CAMERA, ground=-1.0, look=LOOKS["gummy"])
    assert (renderer.render(*sphere(), CAMERA, ground=-1.0, look=LOOKS["gummy"]) == first).all()
    script = (
        "import sys, numpy as np\n"
        "from tests.render.test_splat import CAMERA, LOOKS, Renderer, sphere\n"
        "np.save(sys.argv[1], Renderer('cpu').render(*sphere(), CAMERA, ground=-1.0, look=LOOKS['gummy']))\n"
    )
    root = Path(__file__).resolve().parents[2]
    for threads in ("1", "2", "3"):
        path = tmp_path / f"{threads}.npy"
        environment = {**os.environ, "PHYXEL_THREADS": threads}
        subprocess.run([sys.executable, "-c", script, str(path)], check=True, env=environment, cwd=root)
        assert (np.load(path) == first).all()


def test_lengths_that_differ_are_refused(renderer):
    positions, a, b, colors = sphere(100)
    with pytest.raises(PhyxelError, match="99 colors for 100 positions"):
        renderer.render(positions, a, b, colors[:99], CAMERA)
    with pytest.raises(PhyxelError, match="studio"):
        renderer.render(positions, a, b, colors, CAMERA, background="stuido")


def test_pixel_by_pixel_draws_the_same_picture(renderer, monkeypatch):
    """CUDA's way through the picture, taken on the CPU: one pixel a thread instead of one tile."""

    def by_pixels(width, height, device):
        grid = tiles.make_grid(width, height, device)
        grid.span, grid.lanes, grid.rounds = 1, 1, tiles.pixel_count(grid)
        return grid

    monkeypatch.setattr("phyxel.render.splat.make_grid", by_pixels)
    monkeypatch.setattr("phyxel.render.shadow.make_grid", by_pixels)
    options = {"ground": -1.0, "look": LOOKS["gummy"]}
    tiled = renderer.render(*sphere(), CAMERA, **options).astype(int)
    difference = np.abs(Renderer("cpu").render(*sphere(), CAMERA, **options).astype(int) - tiled)
    assert difference.mean() < 0.05
    assert (difference > 8).mean() < 1e-3


def test_cuda_draws_the_same_picture(renderer):
    initialise()
    if not wp.is_cuda_available():
        pytest.skip("no CUDA device")
    scene = sphere()
    options = {"ground": -1.0, "look": LOOKS["gummy"]}
    here = renderer.render(*scene, CAMERA, **options).astype(int)
    there = Renderer("cuda").render(*scene, CAMERA, **options).astype(int)
    difference = np.abs(here - there)
    assert difference.mean() < 0.1
    assert (difference > 8).mean() < 1e-3


# Sheets: seen, lit and casting shadows on both sides

ACROSS, COUNT = 1.0, 40


def sheet(renderer, eye, tilt=0.0, turned=False, marked=True, ground=None, background=None):
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
        marks=marks(SHEET if marked else 0, len(positions)),
    ).astype(float)


def test_both_sides_are_whole(renderer):
    """The same pixels are covered from above and from below, all of its inside opaque, and the back is no mere
    silhouette of a closed body's: without the mark there is nothing."""
    above, below = (sheet(renderer, (0, 0.6 + way, 0.0)) for way in (2.0, -2.0))
    cover = above[..., 3] / 255
    side = 2 * np.tan(np.radians(20)) * 2.0 / 120
    overhang = 2 * 0.8 * ACROSS / COUNT
    assert cover.sum() * side**2 == pytest.approx((ACROSS + overhang) ** 2, rel=0.03)
    assert np.abs(above[..., 3] - below[:, ::-1, 3]).max() < 5  # of 255: rounding at the outline
    assert (above[30:90, 30:90, 3] == 255).all()
    assert sheet(renderer, (0, -1.4, 0.0), marked=False)[..., 3].max() == 0


def test_each_side_is_lit_by_what_it_sees(renderer):
    """The side toward the light is the brighter one, whichever is called the front; the other is not black."""
    pictures = [[sheet(renderer, (0, 0.6 + way, 0.0), 10.0, turned) for way in (2.0, -2.0)] for turned in (0, 1)]
    for above, below in pictures:
        top, bottom = (one[40:80, 40:80, :3].mean() for one in (above, below))
        assert 30 < bottom < 0.8 * top
    assert np.abs(np.subtract(*pictures)).max() < 2


def test_the_shadow_is_the_same_whichever_way_it_looks(renderer):
    up, down = (
        sheet(renderer, (0, 3.0, -3.0), turned=turned, ground=0.0, background="studio") for turned in (False, True)
    )
    assert np.abs(up - down).max() < 2
    bare = sheet(renderer, (0, 3.0, -3.0), marked=False, turned=True, ground=0.0, background="studio")
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
    surfels, table = Surfels(rest, X, cpu, None, ring.values), ColliderTable([unit], wp.float32, cpu)
    table.write((), np.zeros((1, 3)), (0.0, 0.0), 0.0)
    bent = np.stack([R * np.sin(x / R), R * np.cos(x / R) - R, z], axis=1) - X
    moved = wp.array(bent.astype(np.float32), dtype=wp.vec3)
    surfels.follow(Motion(moved, unit, np.zeros(3), Walls(table.table, cpu)))
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
