"""A world on stage: what is seen of its colliders."""

import numpy as np
import pytest

import phyxel as px
from phyxel.render.camera import Camera
from phyxel.render.stage import Stage, visible_box

RED = (1.0, 0.0, 0.0)
CAMERA = Camera(eye=(0.0, 0.0, 5.0), target=(0.0, 0.0, 0.0), fov=32.0, width=320, height=240)


def world_of(*colliders) -> px.World:
    cloud = px.load("sphere", points=2000)
    body = px.Body(cloud.with_colors(np.broadcast_to(RED, (2000, 3))), nodes=64, size=0.2)
    world = px.World(gravity=(0, 0, 0), device="cpu")
    for thing in (body, *colliders):
        world.add(thing)
    return world


def drawn(*colliders) -> np.ndarray:
    return Stage(CAMERA, None, "cpu").draw(world_of(*colliders)).astype(int)


def test_a_ball_is_seen_as_large_as_it_is():
    """A ball of radius r at distance d fills a disc of radius f r/√(d² − r²), f = h/(2 tan(fov/2)) pixels. Its surfels
    overlap the edge by less than their spacing, 1/50 of r, and a pixel: 10 % of the area."""
    here = (0.8, 0.0, 0.0)
    more = drawn(px.Sphere(0.4, at=here))[..., 3] - drawn()[..., 3]
    ys, xs = np.nonzero(more > 128)
    f = 120 / np.tan(np.radians(16.0))
    assert xs.mean() == pytest.approx(160 + f * 0.8 / 5, abs=3)
    assert ys.mean() == pytest.approx(120, abs=2)
    assert len(xs) == pytest.approx(np.pi * (f * 0.4 / np.sqrt(5**2 - 0.4**2)) ** 2, rel=0.1)


def test_one_looks_into_a_mold_and_a_funnel():
    """The body in the middle is red where it is seen; a solid ball around it would hide it."""
    ball = px.load("sphere", points=300)
    colliders = {
        "hidden": px.Sphere(0.5),
        "mold": px.Mold(ball, inside_out=True, size=1.0),
        "funnel": px.Funnel(0.6, 0.3, 1.0, 0.05, at=(0, -0.5, 0)),
    }
    middle = {name: drawn(one)[120, 160] for name, one in colliders.items()}
    assert middle["hidden"][0] < 1.3 * middle["hidden"][2]
    for name in ("mold", "funnel"):
        assert middle[name][0] > 2 * middle[name][2]
    assert drawn(colliders["mold"])[120, 185, 3] > 128, "and the wall behind it"


def test_the_camera_sees_small_colliders_and_does_not_mind_large_ones():
    bare = visible_box(world_of())
    small = visible_box(world_of(px.Sphere(0.1, at=(0.5, 0, 0))))
    assert small[1][0] == pytest.approx(0.6)
    assert np.allclose(visible_box(world_of(px.Box((-9, -9, -9), (9, -1, 9)))), bare)
