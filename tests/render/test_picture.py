"""One picture by one call: what is in it, where the camera stands, and what it is as an object."""

import numpy as np
import pytest
from PIL import Image

import phyxel as px
from phyxel.run.stage import scene_stage

SCENE = """
[[body]]
shape = "sphere"
nodes = 64
points = 1000
size = 0.4
at = [0.3, 0.1, 0]
[[collider]]
kind = "ground"
[output]
width = 160
height = 96
"""


def shadeless(picture: px.render.picture.Picture) -> np.ndarray:
    """Which pixels show something red, (height, width)."""
    red, green, blue = np.moveaxis(picture.pixels.astype(int), -1, 0)
    return (red > green + 40) & (red > blue + 40)


def red_ball(centre=(0.0, 0.0, 0.0), radius=1.0, count=4000) -> px.PointCloud:
    golden = np.pi * (1 + 5**0.5) * np.arange(count)
    height = 1 - 2 * (np.arange(count) + 0.5) / count
    flat = np.sqrt(1 - height**2)
    normals = np.column_stack([flat * np.cos(golden), height, flat * np.sin(golden)])
    colors = np.broadcast_to([0.9, 0.1, 0.1], normals.shape)
    return px.PointCloud(np.asarray(centre) + radius * normals, normals=normals, colors=colors)


def test_a_world_looks_as_in_the_video_of_its_scene():
    scene = px.Scene.parse(SCENE)
    world = scene.world()
    content = scene.content
    frame = scene_stage(world, content.camera, content.output).draw(world)
    picture = px.render(world, width=160, height=96)
    assert np.array_equal(picture.pixels, frame[..., :3])


@pytest.mark.parametrize("size", [(64, 48), (200, 100), (51, 97)])
@pytest.mark.parametrize(("centre", "radius"), [((0, 0, 0), 1.0), ((1e5, -20, 3), 1e-3), ((0, 7e6, 0), 5e5)])
def test_a_cloud_fills_the_picture_wherever_and_however_large_it_is(size, centre, radius):
    picture = px.render(red_ball(centre, radius), width=size[0], height=size[1])
    assert picture.pixels.shape == (size[1], size[0], 3)
    assert picture.pixels.dtype == np.uint8
    seen = np.argwhere(shadeless(picture))
    middle, extent = 0.5 * (seen.max(axis=0) + seen.min(axis=0)), np.ptp(seen, axis=0).max()
    assert np.abs(middle + 0.5 - 0.5 * np.array(size[::-1])).max() < 0.06 * min(size)
    assert 0.5 * min(size) < extent <= min(size)


def test_the_camera_stands_where_it_is_told():
    ball = red_ball((2.0, 1.0, 0.0))
    near = px.render(ball, width=80, height=80, eye=(2, 1, 8), target=(2, 1, 0))
    far = px.render(ball, width=80, height=80, eye=(2, 1, 16), target=(2, 1, 0))
    aside = px.render(ball, width=80, height=80, eye=(2, 1, 8), target=(3, 1, 0))
    radius = [np.sqrt(shadeless(picture).sum() / np.pi) for picture in (near, far)]
    # A ball of radius 1 at a distance d looks as large as a disc of tan(asin(1/d)) one metre ahead; fov is 32°.
    expected = [40 / np.tan(np.radians(16)) * np.tan(np.arcsin(1 / d)) for d in (8, 16)]
    assert radius == pytest.approx(expected, rel=0.08)
    assert np.argwhere(shadeless(aside))[:, 1].mean() < 30 < 36 < np.argwhere(shadeless(near))[:, 1].mean()


def test_a_body_alone_is_drawn_as_it_is_now_without_the_others():
    world = px.World(gravity=(0, 0, 0))
    body = px.Body(red_ball(radius=0.5), nodes=64, look="matte")
    other = px.Body(red_ball((5, 0, 0), 0.5), nodes=64, look="matte")
    before = px.render(body, width=80, height=80)
    world.add(body)
    world.add(other)
    alone, both = px.render(body, width=80, height=80), px.render(world, width=80, height=80)
    assert np.abs(before.pixels.astype(int) - alone.pixels).max() < 30
    assert shadeless(both).sum() < 0.5 * shadeless(alone).sum()


def test_a_solid_is_drawn_as_its_skin():
    cloud = px.load("box", points=1000)
    cloud_alone, solid = (px.render(thing, width=80, height=80) for thing in (cloud, px.Solid(cloud)))
    assert np.array_equal(cloud_alone.pixels, solid.pixels)


def test_what_is_inside_a_world_is_drawn():
    world = px.Scene.parse(SCENE).world()
    plain = px.render(world, width=160, height=96)
    inside = px.render(world, px.Inside("speed", mode="surface"), width=160, height=96)
    assert inside.pixels.shape == plain.pixels.shape
    assert not np.array_equal(inside.pixels, plain.pixels)


def test_a_picture_is_an_array_a_file_and_shows_itself(tmp_path):
    picture = px.render(red_ball(), width=48, height=32)
    assert np.array_equal(np.asarray(picture), picture.pixels)
    copy = np.array(picture, copy=True)
    copy[:] = 0
    assert picture.pixels.any()
    assert np.asarray(picture, float).dtype == float
    assert repr(picture) == "<Picture: 48 × 32 pixels>"
    picture.save(tmp_path / "ball.png")
    assert np.array_equal(np.asarray(Image.open(tmp_path / "ball.png")), picture.pixels)
    (tmp_path / "shown.png").write_bytes(picture._repr_png_())
    assert np.array_equal(np.asarray(Image.open(tmp_path / "shown.png")), picture.pixels)
    with pytest.raises(px.PhyxelError, match=r"\.png, \.jpg"):
        picture.save(tmp_path / "ball.gif")


def test_the_room_is_a_verb_in_whatever_order_it_is_imported():
    from phyxel.render import camera  # noqa: F401

    assert callable(px.render)
    assert ">>> picture = px.render(world" in (px.render.__doc__ or "")
